"""The facts that a sentence states: numbers with units, days, names and identifiers, and the direction of its words."""

from __future__ import annotations

import re
import tomllib
from collections.abc import Iterator
from enum import StrEnum
from functools import cache
from importlib import resources
from typing import Any, Final, NamedTuple

from satchel.text.words import STOP_WORDS, stem

_ENDINGS: Final = (
    "py|pyi|js|ts|tsx|go|rs|java|kt|rb|php|cpp|cs|swift|md|rst|json|toml|ya?ml|html|css|sql|sh|txt|pdf|csv"
)
_TOKEN: Final = re.compile(
    r"(?P<code>`[^`\n]{1,200}`|[A-Za-z_]\w*(?:(?:::|->)\w+)+(?:\(\))?|(?:[\w.-]+/)*[\w-]+\.(?:" + _ENDINGS + r")\b"
    r"|\w*[A-Za-z]_\w+(?:\(\))?|_\w+|[A-Za-z]\w*\(\))"
    r"|(?P<number>(?<![\w.])(?<![A-Za-z]-)[-−]?\d{1,3}(?:,\d{3})+(?:\.\d+)?|(?<![\w.,])(?<![A-Za-z]-)[-−]?\d+(?:\.\d+)?)(?:(?P<ordinal>st|nd|rd|th)\b|s\b)?"
    r"|(?P<word>[^\W_]+(?:['’][^\W_]+)*)"
    r"|(?P<sign>[%$€£])"
)
_ISO_DAY: Final = re.compile(r"\b(\d{4})-(\d{2})-(\d{2})\b")
# `No, …` and `I am not sure, but …` answer somebody and negate nothing of what follows.
_OPENING: Final = re.compile(
    r"^\W*(?:(?:no|yes|well|not)\b|I\s?(?:do\s?n['’o]t|am not|['’]m not)\b)"
    r"(?:[^.;,]{0,40}?\bbut\b|[^.;,!\w]{0,3}\s*[,.!])",
    re.IGNORECASE,
)
_MONTHS: Final = {
    name: number
    for number, names in enumerate(
        "january jan,february feb,march mar,april apr,may,june jun,july jul,august aug,september sep sept,october oct,"
        "november nov,december dec".split(","),
        start=1,
    )
    for name in names.split()
}
_AMBIGUOUS_MONTHS: Final = frozenset(
    {"may", "march", "mar", "jan", "sep", "dec", "jun"}
)  # words and names too, without a day
_BEFORE_MONTHS: Final = frozenset("in since until by of from last next early late mid this".split())
_WEEKDAYS: Final = frozenset("monday tuesday wednesday thursday friday saturday sunday".split())
_BEFORE_ORDINALS: Final = frozenset("the a their his her its".split())
_HEDGES: Final = frozenset("about around nearly roughly approximately almost some over circa ca just".split())
_NEGATIONS: Final = frozenset(
    "not no never cannot without neither nor none nobody nothing hardly isnt arent dont doesnt didnt wont cant".split()
)
_NEGATIVE_WORDS: Final = frozenset("only few fewer little less zero instead rather except unless un".split())
_NEGATIVE_STEMS: Final = tuple("fail refus lack denie deny reject avoid prevent exclud stopp ceas".split())
_MAX_NAME_WORDS: Final = 5
_NAME_JOINTS: Final = frozenset({"of", "de", "von", "van", "der", "la"})


class FactKind(StrEnum):
    """What a fact is about."""

    NUMBER = "number"
    ORDINAL = "ordinal"
    MONTH = "month"
    WEEKDAY = "weekday"
    NAME = "name"
    CODE = "identifier"


class Fact(NamedTuple):
    """A value stated in a text, with the words that state it."""

    kind: FactKind
    value: float | str
    text: str
    stems: frozenset[str]
    unit: str = ""
    """What a number counts or measures: a kind of units with the value in its first unit, or the next word's stem."""
    is_measured: bool = False
    precision: float = 0.0
    """A number's rounding: another number that differs by less states the same."""


class Facts(NamedTuple):
    """What a text states, and its words."""

    facts: tuple[Fact, ...]
    stems: frozenset[str]
    negated: frozenset[str]
    """The first stem after each negation: what it negates."""
    words: tuple[str, ...]
    """All words, numbers and identifiers in order, as they are written."""
    negates: bool
    """True if there is a not, never, without or the like."""
    has_negation: bool
    """True if something is negated, in whatever words: not, without, refuses, lacks."""


def facts_of(text: str) -> Facts:
    """Read what a sentence states."""
    text = _OPENING.sub(lambda opening: " " * len(opening[0]), text, count=1)
    text = text.replace("\\n", "  ")  # a line break in JSON or code
    plain = _ISO_DAY.sub(lambda day: f"{day[3]} {_month_name(int(day[2]))} {day[1]}", text)
    tokens = list(_TOKEN.finditer(plain))
    facts: list[Fact] = []
    stems: set[str] = set()
    negated: set[str] = set()
    is_waiting = negates = has_negation = False
    for at, token in enumerate(tokens):
        lower = token[0].lower().replace("’", "'")
        if token["word"] and is_negation(lower):
            # `neither A nor B wins` negates what comes later.
            is_waiting = lower not in ("neither", "nor")
            negates = has_negation = True
            continue
        found = _stems(token)
        stems |= found
        has_negation = has_negation or lower in _NEGATIVE_WORDS or lower.startswith(_NEGATIVE_STEMS)
        if is_waiting and found:
            negated |= found
            is_waiting = False
        if at + 1 < len(tokens) and re.search(r"[.;:!?]|, (?:but|and)", plain[token.end() : tokens[at + 1].start()]):
            is_waiting = False
    facts.extend(_numbers(plain, tokens))
    facts.extend(_days(tokens))
    facts.extend(_names(plain, tokens))
    words = tuple(
        token["number"] or token[0].removesuffix("'s").removesuffix("’s") for token in tokens if not token["sign"]
    )
    return Facts(tuple(facts), frozenset(stems), frozenset(negated), words, negates, has_negation)


def _stems(token: re.Match[str]) -> set[str]:
    if token["code"]:
        return {stem(part.lower()) for part in re.findall(r"[A-Za-z]+|\d+", token["code"])}
    if token["number"]:
        return {token["number"].replace(",", "").replace("−", "-")}
    if not token["word"]:
        return set()
    word = _bare(token["word"])
    return set() if word in STOP_WORDS or word in _NEGATIONS else {stem(word)}


def _bare(word: str) -> str:
    """The word in lower case without its possessive ending."""
    return word.lower().replace("’", "'").removesuffix("'s")


def is_negation(word: str) -> bool:
    """True for not, never, without, isn't and the like."""
    lower = word.lower().replace("’", "'")
    return lower in _NEGATIONS or lower.endswith("n't")


# -- numbers


class _Number(NamedTuple):
    """A number as written, and the place after its last token."""

    value: float
    precision: float
    end: int


def _numbers(text: str, tokens: list[re.Match[str]]) -> Iterator[Fact]:
    at = 0
    while at < len(tokens):
        first, at = at, at + 1
        if place := _ordinal(tokens, first):
            yield Fact(FactKind.ORDINAL, place, tokens[first][0], frozenset(_stems(tokens[first])))
            continue
        digits = _digits_or_word(text, tokens, first)
        if digits is None:
            continue
        number = _scaled(text, tokens, digits)
        if number is digits:
            number = digits._replace(precision=_hedged(digits.value) if _is_hedged(tokens, first) else 0.0)
        at = number.end
        unit, is_measured, factor = _unit(text, tokens, first, at)
        stated = text[tokens[first].start() : tokens[at - 1].end()]
        words = re.findall(r"\w+", f"{stated} {tokens[at][0]}" if is_measured and at < len(tokens) else stated)
        stems = frozenset({stem(word.lower()) for word in words} | _stems(tokens[first]))
        value, precision = number.value * factor, number.precision * factor
        yield Fact(FactKind.NUMBER, value, stated, stems, unit, is_measured, precision)


def _ordinal(tokens: list[re.Match[str]], at: int) -> float | None:
    """The place in an order: 3rd, the third; `every second` is a unit."""
    token, lower = tokens[at], tokens[at][0].lower()
    if token["ordinal"]:
        return float(re.sub(r"\D", "", lower))
    is_placed = at > 0 and tokens[at - 1][0].lower() in _BEFORE_ORDINALS
    return float(_table()["ordinals"][lower]) if is_placed and lower in _table()["ordinals"] else None


def _digits_or_word(text: str, tokens: list[re.Match[str]], at: int) -> _Number | None:
    """The number at a place without its scale: 6.4, twelve, twenty-four."""
    token, names = tokens[at], _table()["numbers"]
    if token["number"]:
        digits = token["number"].replace(",", "").replace("−", "-")
        decimals = len(digits.partition(".")[2])
        return _Number(float(digits), 0.5 * 10.0**-decimals, at + 1)
    value = names.get(token[0].lower())
    if value is None:
        return None
    if value >= 20 and at + 1 < len(tokens) and _adjoins(text, tokens, at + 1):
        following = tokens[at + 1][0].lower()
        ones = 1 if following == "one" else names.get(following, 0)
        if 0 < ones < 10:
            return _Number(float(value + ones), 0.5, at + 2)
    return _Number(float(value), 0.5, at + 1)


def _scaled(text: str, tokens: list[re.Match[str]], number: _Number) -> _Number:
    """The number with the scale behind it: 6.4 million."""
    while number.end < len(tokens) and _adjoins(text, tokens, number.end):
        word = tokens[number.end][0].lower()
        scale = _table()["scales"].get(word)
        is_apart = text[tokens[number.end - 1].end() : tokens[number.end].start()] != ""
        if not scale or (len(word) == 1 and is_apart):  # `5 m` is a length
            break
        number = _Number(number.value * scale, number.precision * scale, number.end + 1)
    return number


def _is_hedged(tokens: list[re.Match[str]], at: int) -> bool:
    return at > 0 and tokens[at - 1][0].lower() in _HEDGES


def _hedged(value: float) -> float:
    """How far a number is rounded that somebody calls approximate: by its zeros, and at least by two percent."""
    digits = str(int(value)) if value.is_integer() else ""
    return max(0.5 * 10.0 ** (len(digits) - len(digits.rstrip("0"))), abs(value) * 0.02)


def _adjoins(text: str, tokens: list[re.Match[str]], at: int) -> bool:
    return text[tokens[at - 1].end() : tokens[at].start()] in ("", " ", "-", "\u00a0")


def _unit(text: str, tokens: list[re.Match[str]], first: int, after: int) -> tuple[str, bool, float]:
    """The unit of a number, true if it is known, and the factor to the first unit of its kind."""
    units = _units()
    if first and tokens[first - 1]["sign"] and (known := units.get(tokens[first - 1][0])):
        return known[0], True, known[1]
    if after < len(tokens) and _adjoins(text, tokens, after):
        word = tokens[after][0].lower()
        known = units.get(word) or units.get(word.removesuffix("s"))
        if known:
            return known[0], True, known[1]
        if tokens[after]["word"] and word not in STOP_WORDS:
            return stem(word), False, 1.0
    return "", False, 1.0


# -- days, names and identifiers


def _days(tokens: list[re.Match[str]]) -> Iterator[Fact]:
    for at, token in enumerate(tokens):
        lower = token[0].lower()
        if not token["word"] or not token[0][:1].isupper():
            continue
        if lower in _WEEKDAYS:
            yield Fact(FactKind.WEEKDAY, lower, token[0], frozenset({stem(lower)}))
        elif lower in _MONTHS:
            beside = [tokens[i] for i in (at - 1, at + 1) if 0 <= i < len(tokens)]
            is_dated = any(other["number"] for other in beside) or (at and tokens[at - 1][0].lower() in _BEFORE_MONTHS)
            if lower not in _AMBIGUOUS_MONTHS or is_dated:
                yield Fact(FactKind.MONTH, float(_MONTHS[lower]), token[0], frozenset({stem(lower)}))


def _names(text: str, tokens: list[re.Match[str]]) -> Iterator[Fact]:
    at = 0
    while at < len(tokens):
        token = tokens[at]
        at += 1
        if token["code"]:
            code = token["code"].strip("`").removesuffix("()").strip()
            if code:
                yield Fact(FactKind.CODE, code.lower(), code, frozenset(_stems(token)))
            continue
        if not _is_name(text, token):
            continue
        run = [token]
        while at < len(tokens) and len(run) < _MAX_NAME_WORDS and _goes_on(text, tokens, at):
            run.append(tokens[at])
            at += 1
        while run and not _is_name(text, run[-1]):
            run.pop()
        words = [_bare(part[0]) for part in run if _bare(part[0]) not in _NAME_JOINTS]
        stated = text[run[0].start() : run[-1].end()]
        yield Fact(FactKind.NAME, " ".join(words), stated, frozenset(stem(word) for word in words))


def _is_name(text: str, token: re.Match[str]) -> bool:
    word = token["word"]
    if not word:
        return False
    lower = _bare(word)
    if lower in STOP_WORDS or lower in _WEEKDAYS or lower in _MONTHS or lower in _table()["numbers"]:
        return False
    has_inner = any(char.isupper() for char in word[1:]) or (any(map(str.isdigit, word)) and not word.isdigit())
    if has_inner:
        return True
    # The first word of a sentence has a capital whatever it is.
    return word[0].isupper() and len(word) > 1 and not _begins(text, token.start())


def _begins(text: str, start: int) -> bool:
    before = text[:start].rstrip(" \t\"'“‘([*_")
    return not before or before[-1] in ".!?:;|>\n•-"


def _goes_on(text: str, tokens: list[re.Match[str]], at: int) -> bool:
    if text[tokens[at - 1].end() : tokens[at].start()] not in (" ", "-", "\u00a0"):
        return False
    if _is_name(text, tokens[at]):
        return True
    is_joint = tokens[at][0].lower() in _NAME_JOINTS
    return is_joint and at + 1 < len(tokens) and _is_name(text, tokens[at + 1])


# -- tables


@cache
def _table() -> dict[str, Any]:
    return tomllib.loads(resources.files("satchel.assembly.citations").joinpath("facts.toml").read_text("utf-8"))


@cache
def _units() -> dict[str, tuple[str, float]]:
    return {name: (kind, size) for kind, names in _table()["units"].items() for name, size in names.items()}


@cache
def opposites() -> tuple[tuple[frozenset[str], frozenset[str]], ...]:
    """Pairs of groups of words: a word of one group says the opposite of a word of the other."""
    pairs = (pair.partition("|") for pair in _table()["opposites"]["pairs"])
    return tuple((frozenset(left.split()), frozenset(right.split())) for left, _, right in pairs)


def _month_name(number: int) -> str:
    return next((name.capitalize() for name, value in _MONTHS.items() if value == number), str(number))
