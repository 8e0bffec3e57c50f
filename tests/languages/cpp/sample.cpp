#include <vector>
#include "looms/yarn.h"

#define LOOM_CHECK(x) check((x), __LINE__)

namespace looms {
namespace detail {
constexpr int kThreads = 64;
int Count(const Yarn& yarn);
}  // namespace detail

using Pattern = std::vector<int>;

enum class Weave : int { kPlain, kTwill = 2 };

/// Weaves yarn into cloth.
template <typename T>
class Loom : public Machine<T>, private parts::Frame {
 public:
  static constexpr int kWidth = 120;

  explicit Loom(int width) : width_(width) {}
  virtual ~Loom();

  virtual Cloth Weave(const Pattern& pattern) = 0;
  const T* yarn() const { return &yarn_; }
  bool operator<(const Loom& other) const { return width_ < other.width_; }

  template <class U>
  void Feed(U&& yarn) {
    this->Accept(std::forward<U>(yarn));
  }

  struct Shuttle {
    int speed;
  };

 private:
  int width_;
  T yarn_;
};

template <typename T>
Loom<T>::~Loom() {
  shuttle_->Stop();
}

class API_EXPORT Guild;
class LOOM_API Weaver final {
  int age;
};

Cloth* Guild::Members::Order(int metres) {
  auto cloth = new Cloth(metres);
  LOOM_CHECK(metres);
  return detail::Cut<Cloth>(cloth);
}

bool operator==(const Cloth& a, const Cloth& b);

typedef struct {
  int turns;
} Bobbin;

TEST(LoomTest, Weaves) {
  EXPECT_EQ(detail::Count(Yarn{3}), 3);
}

}  // namespace looms
