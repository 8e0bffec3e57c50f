"""The exact counters against independent implementations."""

from __future__ import annotations

import json
from functools import cache
from pathlib import Path

import pytest
import tokenizers
from hypothesis import example, given
from hypothesis import strategies as st

import satchel
from satchel import counter_for, estimate_tokens
from satchel.errors import TokenizerUnavailable, UnknownTokenizer
from satchel.models.options import TokenEstimationMethod
from satchel.tokens import TokenCounter, describe_tokenizer
from satchel.tokens import openai as borders
from satchel.tokens.openai import CountsAndCuts, OpenAICounter, _loaded
from satchel.tokens.registry import known_models
from tests.support import strategies
from tests.support.effort import no_blow_up
from tests.support.oracle import newer_than_the_oracle, true_count

ENCODINGS = ["o200k_base", "cl100k_base"]
SOURCES = sorted(Path(satchel.__file__).parent.rglob("*.py"))

adversarial = st.lists(
    st.sampled_from([*"ab S's\u017f\n\r/ .1é漢\t<|>`#-", "'ſ", "'S", "'LL", "😀", "\u0301", "\u200d", "K"]), max_size=30
).map("".join)


def visible(text: str) -> bool:
    return not any("\ud800" <= char <= "\udfff" for char in text)


@pytest.mark.requirement("S0.method.tokenizer", "S1.tokens.tokenizer")
@pytest.mark.parametrize("encoding", ENCODINGS)
def test_counts_of_real_source_are_those_of_tiktoken(encoding: str) -> None:
    counter = counter_for(encoding)
    for path in SOURCES:
        text = path.read_text(encoding="utf-8")
        assert counter.count(text) == true_count(text, encoding), path


@pytest.mark.requirement("S1.tokens.tokenizer")
def test_the_tokenizer_method_counts_and_does_not_fall_back_to_characters() -> None:
    text = "한국어 텍스트는 네 글자가 한 토큰이 아닙니다"
    exact = estimate_tokens(text, TokenEstimationMethod.TOKENIZER)
    assert exact == true_count(text)
    assert exact != estimate_tokens(text, TokenEstimationMethod.CHARACTER_BASED)
    with pytest.raises(UnknownTokenizer):
        estimate_tokens(text, TokenEstimationMethod.TOKENIZER, "no-such-model")


@given(st.one_of(adversarial, st.text(), strategies.nasty_text.filter(visible)), st.sampled_from(ENCODINGS))
def test_law_counts_are_those_of_tiktoken(text: str, encoding: str) -> None:
    if visible(text) and not newer_than_the_oracle(text):
        assert counter_for(encoding).count(text) == true_count(text, encoding)


@given(st.lists(st.one_of(adversarial, strategies.nasty_text.filter(visible))), st.sampled_from(ENCODINGS))
def test_law_parts_joined_count_as_the_whole(parts: list[str], encoding: str) -> None:
    known: dict[str, int] = {}
    if newer_than_the_oracle("".join(parts)):
        return
    assert counter_for(encoding).count_joined(parts, known) == true_count("".join(parts), encoding)
    assert counter_for(encoding).count_joined(parts, known) == true_count("".join(parts), encoding)


@given(adversarial, st.sampled_from(ENCODINGS))
def test_law_counts_add_up_at_certain_borders(text: str, encoding: str) -> None:
    pieces = borders.lines_that_add_up(text)
    assert "".join(pieces) == text
    assert sum(true_count(piece, encoding) for piece in pieces) == true_count(text, encoding)


def test_sums_of_counts_are_not_counts_of_sums_elsewhere() -> None:
    # The negative control: adding up counts at any other border is wrong.
    assert true_count("\n") + true_count("\n") != true_count("\n\n")
    assert true_count(" ") + true_count("word") != true_count(" word")


@pytest.mark.parametrize("model", [*ENCODINGS, "claude-sonnet-5", "llama-3.1-8b", "gemini-3-pro"])
@pytest.mark.parametrize("name", ["count", "fits", "prefix", "suffix"])
def test_lone_surrogates_are_counted_as_they_would_be_shown(model: str, name: str) -> None:
    counter = counter_for(model)
    text = "before \ud800 after \udcff"
    assert counter.count(text) == counter.count("before ⟦U+D800⟧ after ⟦0xFF⟧")
    assert counter.fits(text, 100)
    assert counter.prefix(text, 1000) == text
    assert counter.suffix(text, 1000) == text


def counters() -> list[TokenCounter]:
    from satchel.tokens import counter_for_method

    return [
        counter_for("o200k_base"),
        counter_for("cl100k_base"),
        counter_for("claude-opus-5"),
        counter_for("llama-3"),
        counter_for("gemma-3"),
        counter_for_method(TokenEstimationMethod.CHARACTER_BASED),
        counter_for_method(TokenEstimationMethod.WORD_BASED),
    ]


def check_cuts(counter: TokenCounter, text: str, limit: int) -> None:
    """Fail unless prefix and suffix fit in the limit, split no grapheme, and are the whole text where it fits."""
    import regex

    ends = {0, *(match.end() for match in regex.finditer(r"\X", text))}
    start, end = counter.prefix(text, limit), counter.suffix(text, limit)
    assert text.startswith(start)
    assert text.endswith(end)
    assert not start or counter.count(start) <= limit
    assert not end or counter.count(end) <= limit
    assert len(start) in ends
    assert len(text) - len(end) in ends
    assert counter.fits(text, limit) == (counter.count(text) <= limit)
    if counter.count(text) <= limit:
        assert start == end == text


@pytest.mark.parametrize("counter", counters(), ids=lambda counter: counter.name)
@given(st.one_of(strategies.nasty_text, st.text(max_size=60)), st.integers(-1, 40))
@example("\x85", 0)
@example("0\u0e33", 1)
@example("\x1cab\ufeff\r\ne\u0301\udcff", 24)
@example("\n\udcff\n\u200d\udcff\udcff\udcff\n\x85ab\u200d", 25)
def test_law_a_cut_fits_and_splits_no_grapheme(counter: TokenCounter, text: str, limit: int) -> None:
    check_cuts(counter, text, limit)


@pytest.mark.parametrize("counter", counters(), ids=lambda counter: counter.name)
@given(strategies.newest_text, st.integers(-1, 60))
@example("\U000323b0\n0", 5)
@example("\r\n\U000323b0\U000323b0\U000323b0\r\n\r\n\U000323b0\r\n\U000323b0", 14)
@example("e\u0301  e\u0301e\u0301  \U0001e6c0\r\n\n\U0001e6c0\r\n", 24)
@example("\U0001e6c0\n\nx'\u017f \U0001e6c0\U0001e6c0\u2028abab", 5)
def test_law_a_cut_of_the_newest_characters_fits(counter: TokenCounter, text: str, limit: int) -> None:
    check_cuts(counter, text, limit)


@given(strategies.newest_text.filter(visible), st.sampled_from(ENCODINGS))
def test_law_the_newest_characters_are_never_counted_too_low(text: str, encoding: str) -> None:
    assert counter_for(encoding).count(text) >= true_count(text, encoding)


@cache
def texts_of_every_code_point() -> list[str]:
    """Every code point but the surrogates, eight a line: the planes in use in small texts, the others in large ones."""
    sizes = {plane: 256 if plane in (0, 1, 2, 3, 14) else 8192 for plane in range(17)}
    return [
        "\n0".join("".join(map(chr, range(line, line + 8))) for line in range(start, start + size, 8))
        for plane, size in sizes.items()
        for start in range(plane << 16, plane + 1 << 16, size)
        if not 0xD800 <= start <= 0xDFFF
    ]


@pytest.mark.parametrize("counter", counters(), ids=lambda counter: counter.name)
def test_a_cut_fits_whatever_the_code_point(counter: TokenCounter) -> None:
    for text in texts_of_every_code_point():
        limit = counter.count(text) // 8
        start, end = counter.prefix(text, limit), counter.suffix(text, limit)
        assert text.startswith(start)
        assert text.endswith(end)
        assert 0 < counter.count(start) <= limit, ascii(text[:8])
        assert 0 < counter.count(end) <= limit, ascii(text[-8:])


@given(st.one_of(strategies.nasty_text, st.text(max_size=40)).filter(visible), st.integers(0, 12))
def test_law_a_prefix_is_as_long_as_it_can_be(text: str, limit: int) -> None:
    import regex

    counter = counter_for("o200k_base")
    ends = [match.end() for match in regex.finditer(r"\X", text)]
    if newer_than_the_oracle(text):
        return
    longest = max((end for end in ends if true_count(text[:end]) <= limit), default=0)
    got = len(counter.prefix(text, limit))
    # Counts are not quite monotone: a much longer text may cost less. Within a dozen graphemes none is missed.
    assert got <= longest
    missed = [end for end in ends if got < end <= longest and true_count(text[:end]) <= limit]
    assert not missed or ends.index(missed[0]) - (ends.index(got) if got else -1) > 12


class Recording:
    """OpenAI's tokenizer, and how many characters it was given."""

    def __init__(self) -> None:
        self.real: CountsAndCuts = _loaded("o200k_base")
        self.characters = 0

    def count(self, text: str) -> int:
        self.characters += len(text)
        return self.real.count(text)

    def truncate(self, text: str, limit: int) -> tuple[str, int]:
        self.characters += len(text)
        return self.real.truncate(text, limit)


@pytest.mark.parametrize(
    "text",
    [
        pytest.param("a" * 10**6, id="letters"),
        pytest.param(" " * 10**6, id="spaces", marks=pytest.mark.slow),
        pytest.param("\n" * 10**6, id="newlines"),
        pytest.param("😀" * 250_000, id="emoji", marks=pytest.mark.slow),
        pytest.param("e" + "\u0301" * 500_000, id="accents"),
        pytest.param("👨‍👩‍👧" * 10**5, id="families", marks=pytest.mark.slow),
        pytest.param("ab" * 10**5, id="pairs", marks=pytest.mark.slow),
    ],
)
def test_a_megabyte_of_one_thing_stays_linear(text: str) -> None:
    def characters(part: str) -> int:
        recording = Recording()
        counter = OpenAICounter("o200k_base", served_by=recording)
        counter.count(part)
        counter.fits(part, 1000)
        counter.prefix(part, 1000)
        counter.suffix(part, 1000)
        return recording.characters

    # Four times as much text is four times as much to count, and sixteen times if it were quadratic. What the
    # tokenizer itself does cannot be seen from here: a quadratic one would be at a megabyte for hours.
    with no_blow_up("a megabyte"):
        assert characters(text) < 6 * characters(text[: len(text) // 4])


def test_fits_stops_early() -> None:
    recording = Recording()
    counter = OpenAICounter("o200k_base", served_by=recording)
    text = "word and word\n" * 20_000
    assert not counter.fits(text, 4000)
    # Few tokens cover more characters than this, so that nothing less than counting can tell; but not all of it.
    assert 0 < recording.characters < len(text) / 5
    assert not counter.fits(text * 100, 4000)
    assert recording.characters < len(text) / 5, "so long a text is known to be too long by its length alone"


@pytest.mark.parametrize(
    ("model", "vocabulary", "exact"),
    [
        ("gpt-4o", "o200k_base", True),
        ("gpt-4o-mini-2024-07-18", "o200k_base", True),
        ("gpt-5-codex", "o200k_base", True),
        ("openai/gpt-5", "o200k_base", True),
        ("o3-mini", "o200k_base", True),
        ("gpt-oss-120b", "o200k_harmony", True),
        ("gpt-4-turbo", "cl100k_base", True),
        ("text-embedding-3-small", "cl100k_base", True),
        ("claude-sonnet-4-5", "o200k_base", False),
        ("anthropic/claude-3-haiku", "o200k_base", False),
        ("us.anthropic.claude-sonnet-4-20250514-v1:0", "o200k_base", False),
        ("llama3.1:8b", "llama3", True),
        ("deepseek-chat", "deepseek_v3", True),
        ("Qwen/Qwen2.5-7B-Instruct", "qwen2.5", True),
        ("meta-llama/Llama-3.1-70B", "llama3", True),
        ("llama-2-7b", "llama2", True),
        ("gemini-2.5-pro", "gemma3", False),
        ("gemma-3-27b", "gemma3", True),
        ("qwen3-coder", "qwen3", True),
        ("deepseek-v3.1", "deepseek_v3", True),
    ],
)
def test_a_model_is_known_by_its_name(model: str, vocabulary: str, exact: bool) -> None:
    how = describe_tokenizer(model)
    assert (how.vocabulary, how.exact) == (vocabulary, exact)
    assert bool(how.note) is not exact
    assert counter_for(model).exact is exact
    assert counter_for(model).count("hello world") > 0


@pytest.mark.parametrize("model", ["o1000", "gpt-2", "", "davinci", "llama"])
def test_a_model_nobody_knows_is_an_error_that_says_where_the_known_ones_are(model: str) -> None:
    with pytest.raises(UnknownTokenizer, match="--list-models"):
        counter_for(model)


def test_a_misspelt_model_is_guessed_at() -> None:
    with pytest.raises(UnknownTokenizer, match="did you mean gpt-4o"):
        counter_for("gpt4o")


def test_every_model_in_the_registry_can_be_counted_for() -> None:
    for model in known_models():
        assert counter_for(model).count("def f(x):\n    return x\n") >= 8


def test_a_margin_is_added_and_rounded_up() -> None:
    claude = counter_for("claude-opus-5")
    assert describe_tokenizer("claude-opus-5").margin_percent == 60
    assert claude.count("hello") == 2
    assert claude.count("word " * 100) == -(-true_count("word " * 100) * 160 // 100)


@pytest.fixture(scope="module")
def tokenizer_json(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A small tokenizer trained on our own source, as Hugging Face saves them."""
    tokenizer = tokenizers.Tokenizer(tokenizers.models.BPE())
    tokenizer.pre_tokenizer = tokenizers.pre_tokenizers.ByteLevel(add_prefix_space=False)
    tokenizer.decoder = tokenizers.decoders.ByteLevel()
    trainer = tokenizers.trainers.BpeTrainer(
        vocab_size=900, initial_alphabet=tokenizers.pre_tokenizers.ByteLevel.alphabet(), show_progress=False
    )
    tokenizer.train([str(path) for path in SOURCES], trainer)
    path = tmp_path_factory.mktemp("tokenizer") / "tokenizer.json"
    tokenizer.save(str(path))
    return path


@given(st.one_of(adversarial, st.text()))
def test_law_a_tokenizer_json_counts_as_hugging_face_does(tokenizer_json: Path, text: str) -> None:
    if visible(text):
        reference = tokenizers.Tokenizer.from_file(str(tokenizer_json))
        assert counter_for(str(tokenizer_json)).count(text) == len(reference.encode(text, add_special_tokens=False).ids)


def test_a_tokenizer_json_that_is_none_says_so(tmp_path: Path) -> None:
    with pytest.raises(TokenizerUnavailable, match="cannot be read"):
        counter_for(str(tmp_path / "missing.json"))
    bad = tmp_path / "bad.json"
    bad.write_text(json.dumps({"model": "x"}))
    with pytest.raises(TokenizerUnavailable, match=r"not a usable tokenizer\.json"):
        counter_for(str(bad))


def test_a_missing_package_is_named(monkeypatch: pytest.MonkeyPatch) -> None:
    import sys

    from satchel.tokens import registry

    monkeypatch.setitem(sys.modules, "splintr", None)
    with pytest.raises(TokenizerUnavailable, match=r"splintr-rs, which is missing"):
        registry.bundled("llama-3", "llama3")


DISPUTED = "\u088f\u0c5c\u0cdc\u1acf\ua7ce\U00010940\U00011b60\U00016ea0\U000323b0"


@given(st.text(alphabet=DISPUTED + "ab 's\n1.A漢"), st.sampled_from(["o200k_base", "cl100k_base"]))
def test_law_characters_newer_than_the_tokenizers_are_never_counted_too_low(text: str, encoding: str) -> None:
    counted = counter_for(encoding).count(text)
    assert counted >= true_count(text, encoding)
    if not set(text) & set(DISPUTED):
        assert counted == true_count(text, encoding)


@pytest.mark.slow
def test_every_character_is_counted_as_tiktoken_does_or_higher() -> None:
    counter = counter_for("o200k_base")
    characters = [chr(i) for i in range(0x110000) if not 0xD800 <= i <= 0xDFFF and i not in (0x0A, 0x0D)]
    for start in range(0, len(characters), 512):
        text = "".join(f"a{c}b {c}1{c}'s A{c}\n" for c in characters[start : start + 512])
        assert counter.count(text) >= true_count(text), hex(ord(characters[start]))


def test_a_run_of_flags_is_cut_in_linear_time() -> None:
    counter = counter_for("o200k_base")
    text = "🇩🇪" * 40_000
    with no_blow_up("the cut"):
        prefix, suffix = counter.prefix(text, 80_000), counter.suffix(text, 1000)
    assert len(prefix) % 2 == len(suffix) % 2 == 0
    assert counter.count(prefix) <= 80_000


@pytest.mark.parametrize("model", ["phi-4-mini-instruct", "phi-4-multimodal"])
def test_a_model_with_another_vocabulary_is_not_taken_for_its_namesake(model: str) -> None:
    with pytest.raises(UnknownTokenizer):
        counter_for(model)
