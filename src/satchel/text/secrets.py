"""Finds secrets in text, and puts `[redacted: aws-access-key]` in their place, line for line.

The forms are in secret_forms.toml. RE2 matches them in time in proportion to the text, whatever the text. One pass
tells which words of the rules occur; only their rules are tried.
"""

from __future__ import annotations

import re
import tomllib
from collections.abc import Iterator, Mapping, Sequence
from functools import cache
from importlib import resources
from typing import Any, Final, NamedTuple

from satchel.text.secret_values import CHECKS_BY_NAME, FoundValue, NoSecrets, is_secret

REDACTED: Final = re.compile(r"\[redacted: ([a-z0-9-]+)\]")
"""What stands in place of a secret."""

# What may stand before and after a token: no letter or digit, but for an escape (`%3D`, `\n`) or a color's end.
_TOKEN: Final = (
    rb"(?:^|[^A-Za-z0-9]|%%[0-9A-Fa-f]{2}|\\u[0-9A-Fa-f]{4}|\\x[0-9A-Fa-f]{2}|\\[nrt]|\x1b\[[\d;]{1,8}m)(%s)"
    rb"(?:[^A-Za-z0-9_-]|[_-]{1,3}(?:[^A-Za-z0-9_-]|$)|$)"
)
_SET_MEMORY: Final = 64 << 20  # for the automaton of a set; with less it is built again and again
_MIN_CHARS: Final = 12  # a shorter text holds no secret


class Secret(NamedTuple):
    """A secret in a text, by the places of its characters."""

    start: int
    end: int
    rule: str


class _Rule(NamedTuple):
    """A form of secrets."""

    id: str
    regex: Any
    each: Any
    check: str
    random: float
    rank: int
    """The place of the rule in its table: of overlapping secrets the first names them all."""


class _Rules(NamedTuple):
    """All rules, with the sets that tell in a pass which of them may match."""

    rules: Sequence[_Rule]
    words: Any
    of_word: Sequence[Sequence[_Rule]]
    forms: Sequence[tuple[Any, Sequence[_Rule]]]
    """Sets of the forms that no word announces, each with its rules."""
    values: NoSecrets


def redact(text: str) -> str:
    """The text with a mark in place of each secret; a secret of several lines leaves as many lines."""
    secrets = find_secrets(text)
    if not secrets:
        return text
    parts, end = [], 0
    for secret in secrets:
        lines = text.count("\n", secret.start, secret.end)
        parts += [text[end : secret.start], f"[redacted: {secret.rule}]", "\n" * lines]
        end = secret.end
    return "".join([*parts, text[end:]])


def redactions(text: str) -> list[str]:
    """The kinds of secrets that were redacted in a text, one for each."""
    return REDACTED.findall(text) if "[redacted: " in text else []


def find_secrets(text: str) -> list[Secret]:
    """The secrets in a text, in order and without overlaps."""
    if len(text) < _MIN_CHARS:
        return []
    data = text.encode("utf-8", "surrogatepass")
    merged: list[tuple[int, int, _Rule]] = []
    for start, end, rule in sorted(_found(data), key=lambda found: (found[0], -found[1])):
        if merged and start < merged[-1][1]:
            first, last, other = merged[-1]
            merged[-1] = (first, max(last, end), min(rule, other, key=lambda each: each.rank))
        else:
            merged.append((start, end, rule))
    if len(data) == len(text):
        return [Secret(start, end, rule.id) for start, end, rule in merged]
    return list(_in_characters(data, merged))


def _in_characters(data: bytes, found: Sequence[tuple[int, int, _Rule]]) -> Iterator[Secret]:
    at = chars = 0
    for start, end, rule in found:
        first = chars + len(data[at:start].decode("utf-8", "surrogatepass"))
        chars = first + len(data[start:end].decode("utf-8", "surrogatepass"))
        at = end
        yield Secret(first, chars, rule.id)


def _found(data: bytes) -> Iterator[tuple[int, int, _Rule]]:
    """The secrets by the places of their bytes; several rules may find one secret."""
    known = _rules()
    tried = {rule.rank: rule for word in known.words.Match(data) or () for rule in known.of_word[word]}
    for forms, rules in known.forms:
        tried |= {rules[place].rank: rules[place] for place in forms.Match(data) or ()}
    for rule in tried.values():
        at = 0
        while match := rule.regex.search(data, at):
            group = next((number for number in range(1, rule.regex.groups + 1) if match.start(number) >= 0), 0)
            start, end = match.span(group)
            inner = [one.span(1) for one in rule.each.finditer(data, start, end)] if rule.each else [(start, end)]
            # A value that is no secret may stand in the way of one just behind its name.
            at = max(match.start() + 1, end if rule.each or not group else start)
            for first, last in inner:
                if is_secret(FoundValue(data, first, last, match.start()), rule.check, rule.random, known.values):
                    yield first, last, rule
                    at = max(at, last)


@cache
def _rules() -> _Rules:
    import re2

    table = tomllib.loads(resources.files("satchel.text").joinpath("secret_forms.toml").read_text("utf-8"))
    rules = [_compiled(rank, rule) for rank, rule in enumerate(table["rule"])]
    by_word: dict[str, list[_Rule]] = {}
    # Two small automata fit into the processor's caches where one of all forms does not: more than twice as fast.
    alone: dict[bool, list[tuple[bytes, _Rule]]] = {True: [], False: []}
    for rule, row in zip(rules, table["rule"], strict=True):
        for word in row.get("near", ()):
            by_word.setdefault(word, []).append(rule)
        if "near" not in row:
            alone[rule.check in CHECKS_BY_NAME].append((_source(row), rule))
    forms = [(_search_set([form for form, _ in some]), [rule for _, rule in some]) for some in alone.values()]
    values = table["values"]
    return _Rules(
        rules,
        _search_set([re2.escape(word.encode()) for word in by_word], case_sensitive=False),
        list(by_word.values()),
        forms,
        NoSecrets(
            re.compile(values["placeholder"].encode()),
            re.compile(values["weak"].encode()),
            frozenset(value.encode() for value in values["known"]),
        ),
    )


def _compiled(rank: int, row: Mapping[str, Any]) -> _Rule:
    import re2

    each = re2.compile(row["each"].encode(), _options()) if "each" in row else None
    regex = re2.compile(_source(row), _options())
    return _Rule(row["id"], regex, each, row.get("check", ""), row.get("random", 0.0), rank)


def _source(row: Mapping[str, Any]) -> bytes:
    return _TOKEN % row["token"].encode() if "token" in row else bytes(row["regex"].encode())


def _search_set(sources: Sequence[bytes], *, case_sensitive: bool = True) -> Any:
    import re2

    made = re2.Set.SearchSet(_options(never_capture=True, max_mem=_SET_MEMORY, case_sensitive=case_sensitive))
    for source in sources:
        made.Add(source)
    made.Compile()
    return made


def _options(**settings: Any) -> Any:
    """Options for bytes: offsets in text would be counted anew for every match."""
    import re2

    options = re2.Options()
    options.encoding = re2.Options.Encoding.LATIN1
    options.log_errors = False
    for name, value in settings.items():
        setattr(options, name, value)
    return options
