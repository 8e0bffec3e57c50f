#include <stdio.h>
#include "pump.h"

#define MAX_VALVES 8
#define OPEN(v) ((v)->open = 1)
#define PUMP_H

typedef struct valve {
    int open;
    struct valve *next;
    void (*on_turn)(struct valve *, int);
} valve_t, *valve_p;

typedef enum { PUMP_IDLE, PUMP_BUSY = 4 } pump_state;
typedef int (*gauge_fn)(const char *name, int level);
typedef unsigned long litres;

struct pump {
    valve_t *valves;
    pump_state state;
};

union reading {
    int whole;
    float part;
};

enum side { LEFT, RIGHT };

static const char *names[] = {"inlet", "outlet"};
struct pump main_pump;
extern int pump_count;

int pump_start(struct pump *p, gauge_fn gauge);

#ifdef WITH_LOG
void pump_log(const char *line);
#endif

/* Turns a valve and tells who listens. */
static inline int turn(valve_t *v, int by) {
    int turned = by % MAX_VALVES;
    OPEN(v);
    v->on_turn(v, turned);
    return turned;
}

struct pump *pump_new(litres size) {
    struct pump *p = calloc(1, sizeof(struct pump));
    (*hooks)(p);
    return p;
}

int pump_start(struct pump *p, gauge_fn gauge) {
    for (valve_t *v = p->valves; v; v = v->next) turn(v, 1);
    return gauge(names[0], printf("%d\n", pump_count));
}
