"""Finds symbols and exact text: definitions, references, implementations, outlines, strings and patterns.

Definitions are those of the parsed files. A reference is every line with the name as a word; it is certain where the
file defines or imports the name, or where only one file defines it and the parser saw a call, an import or a base
class. Every other reference is one by name.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Sequence
from functools import partial
from typing import TYPE_CHECKING, Final, NamedTuple, Protocol

from satchel.errors import InvalidOption
from satchel.models.files import PROSE
from satchel.models.find import MAX_MATCHES, FindKind, Found, Match
from satchel.text.visible import make_visible_line

if TYPE_CHECKING:
    from satchel.models.outline import OutlineBlock
    from satchel.models.search import Filters
    from satchel.ports.file_index import NamedMention

_MAX_COUNTED: Final = 100_000  # matches counted; a pattern that fits every line is stopped here
_MAX_LINE_CHARS: Final = 200  # of a line shown with a match
_MAX_OUTLINED: Final = 200  # files of a folder's outline
_MAX_NAMES: Final = 12  # of a file in a folder's outline
_LONGEST: Final = 500  # characters of what is looked for

_PROSE: Final = frozenset({None, *PROSE})


class FoundIn(Protocol):
    """What is read of a store."""

    def texts(self, filters: Filters) -> Iterator[tuple[str, str | None, str]]:
        """The path, language and text of every readable file."""

    def definitions(self, name: str, filters: Filters) -> list[tuple[str, OutlineBlock]]:
        """The blocks with a name, with their paths."""

    def mentions_of(self, name: str, filters: Filters) -> list[NamedMention]:
        """The references to a name that the parser saw."""

    def outline_of(self, path: str, filters: Filters) -> list[OutlineBlock]:
        """The definitions of a file."""


def find(store: FoundIn, what: str, kind: FindKind | str, filters: Filters, limit: int = 100) -> Found:
    """Find a symbol, a text or an outline in the files that the filters let through."""
    if kind not in list(FindKind):
        raise InvalidOption("kind", kind, f"must be one of {', '.join(FindKind)}")
    if not what.strip() and kind is not FindKind.OUTLINE:
        raise InvalidOption("what", what, "must not be empty")
    if len(what) > _LONGEST:
        raise InvalidOption("what", what, f"must have at most {_LONGEST} characters")
    ways: dict[str, Callable[[FoundIn, str, Filters], Iterable[Match]]] = {
        FindKind.DEFINITION: _definitions,
        FindKind.REFERENCES: _references,
        FindKind.IMPLEMENTATIONS: _implementations,
        FindKind.OUTLINE: _outline,
        FindKind.TEXT: _lines_with,
        FindKind.PATTERN: _lines_like,
    }
    matches: list[Match] = []
    total = 0
    for match in ways[kind](store, what, filters):
        total += 1
        if len(matches) < min(limit, MAX_MATCHES):
            matches.append(match)
        if total >= _MAX_COUNTED:
            break
    notes = (f"counting stopped at {_MAX_COUNTED:,} matches",) if total >= _MAX_COUNTED else ()
    return Found(what=what, kind=FindKind(kind), matches=tuple(matches), total=total, notes=notes)


def _parts(name: str) -> list[str]:
    plain = name.strip().removesuffix("()").replace("::", ".").replace("#", ".").replace("->", ".")
    return [part for part in plain.split(".") if part]


# -- symbols


def _definitions(store: FoundIn, what: str, filters: Filters) -> Iterator[Match]:
    """The definitions of a name, those with the given owner if there are some."""
    *owners, name = _parts(what) or [what]
    for path, block in _owned(store.definitions(name, filters), owners):
        yield _of_block(path, block)


def _owned(found: list[tuple[str, OutlineBlock]], owners: list[str]) -> list[tuple[str, OutlineBlock]]:
    """The definitions with the given owner; all if none has it."""
    return [each for each in found if not owners or owners[-1] in each[1].qualified.split(".")[:-1]] or found


def _of_block(path: str, block: OutlineBlock) -> Match:
    return Match(
        path=path,
        line=block.first_line,
        end_line=block.last_line,
        kind=block.type,
        text=_shown(block.signature or block.name),
        name=block.qualified,
    )


def _references(store: FoundIn, what: str, filters: Filters) -> Iterator[Match]:
    *owners, name = _parts(what) or [what]
    defined = _owned(store.definitions(name, filters), owners)
    by_name: list[Match] = []
    sure: list[Match] = []
    for _, match in references(store, [Symbol(name, owners[-1] if owners else "", tuple(defined))], filters):
        (sure if match.is_certain else by_name).append(match)
    yield from sure
    yield from sorted(by_name, key=lambda match: match.kind == "names")


class Symbol(NamedTuple):
    """A symbol whose references are looked for: its name, its owner if that is known, and its definitions."""

    name: str
    owner: str
    defined: tuple[tuple[str, OutlineBlock], ...]


def references(store: FoundIn, symbols: Sequence[Symbol], filters: Filters) -> Iterator[tuple[Symbol, Match]]:
    """Every line that names one of the symbols, file by file, without the lines that define it."""
    mentions: dict[str, dict[str, list[NamedMention]]] = {}
    for name in {symbol.name for symbol in symbols}:
        by_path = mentions.setdefault(name, {})
        for mention in store.mentions_of(name, filters):
            by_path.setdefault(mention.path, []).append(mention)
    for path, language, text in store.texts(filters):
        for symbol in symbols:
            if symbol.name in text:
                seen = mentions[symbol.name].get(path, [])
                for match in _references_in(path, language, text, symbol, seen):
                    yield symbol, match


def _references_in(
    path: str, language: str | None, text: str, symbol: Symbol, mentions: Sequence[NamedMention]
) -> Iterator[Match]:
    own_paths = {defined_in for defined_in, _ in symbol.defined}
    own_lines = {block.first_line for defined_in, block in symbol.defined if defined_in == path}
    is_imported = any(mention.kind == "imports" for mention in mentions)
    for number, line in _lines_of(text, partial(_has_word, word=symbol.name)):
        if number in own_lines:
            continue
        kind = "names" if language in _PROSE or _is_remark(line) else _kind_at(mentions, number)
        is_seen = kind in ("calls", "imports", "inherits", "tests")
        is_sure = path in own_paths or is_imported or (is_seen and len(own_paths) == 1)
        # A method of that name may be of another class.
        is_owners = not symbol.owner or path in own_paths or symbol.owner in line
        is_certain = language not in _PROSE and is_sure and is_owners
        yield Match(path=path, line=number, end_line=number, kind=kind, text=line, is_certain=is_certain)


def _kind_at(mentions: Iterable[NamedMention], line: int) -> str:
    """The kind of the reference in the smallest block around a line."""
    around = [each for each in mentions if each.first_line <= line <= each.last_line or not each.first_line]
    if not around:
        return "names"
    return min(around, key=lambda each: (not each.first_line, each.last_line - each.first_line)).kind


def _is_remark(line: str) -> bool:
    return line.startswith(("#", "//", "/*", "* ", "--", ";", "%"))


def _has_word(line: str, word: str) -> bool:
    at = line.find(word)
    while at >= 0:
        before, after = line[at - 1 : at] if at else "", line[at + len(word) : at + len(word) + 1]
        if not _is_word(before) and not _is_word(after):
            return True
        at = line.find(word, at + 1)
    return False


def _is_word(char: str) -> bool:
    return char.isalnum() or char == "_"


def _implementations(store: FoundIn, what: str, filters: Filters) -> Iterator[Match]:
    """The classes with a base class of the name, nearest first; or their methods."""
    parts = _parts(what) or [what]
    heirs = heirs_of(store, parts[-1], filters)
    if not heirs and len(parts) > 1:
        owners = {(path, qualified) for path, qualified in heirs_of(store, parts[-2], filters)}
        for path, block in store.definitions(parts[-1], filters):
            if (path, block.qualified.rpartition(".")[0]) in owners:
                yield _of_block(path, block)
        return
    for path, qualified in heirs:
        for block in store.outline_of(path, filters):
            if block.qualified == qualified:
                yield _of_block(path, block)


def heirs_of(store: FoundIn, name: str, filters: Filters) -> list[tuple[str, str]]:
    """The path and name of each class below a class, level by level."""
    found: dict[tuple[str, str], None] = {}
    waiting, seen = [name], {name}
    while waiting and len(found) < MAX_MATCHES:
        for mention in store.mentions_of(waiting.pop(0), filters):
            if mention.kind == "inherits" and mention.inside and (mention.path, mention.inside) not in found:
                found[mention.path, mention.inside] = None
                heir = mention.inside.rpartition(".")[2]
                if heir not in seen:
                    seen.add(heir)
                    waiting.append(heir)
    return list(found)


# -- outlines


def _outline(store: FoundIn, what: str, filters: Filters) -> Iterator[Match]:
    """The definitions of a file; for a folder, its files with the names at their top."""
    path = what.strip().strip("/").removeprefix("./")
    path = "" if path == "." else path
    blocks = store.outline_of(path, filters) if path else []
    if blocks:
        for block in blocks:
            yield _of_block(path, block)
        return
    inside = f"{path}/" if path else ""
    files = [name for name, _, _ in store.texts(filters) if name.startswith(inside) or name == path]
    for name in files[:_MAX_OUTLINED]:
        top = [block.name for block in store.outline_of(name, filters) if block.parent < 0]
        more = f" … {len(top) - _MAX_NAMES} more" if len(top) > _MAX_NAMES else ""
        text = _shown(", ".join(top[:_MAX_NAMES]) + more)
        yield Match(path=name, line=0, end_line=0, kind="file", text=text)


# -- text


def _lines_with(store: FoundIn, what: str, filters: Filters) -> Iterator[Match]:
    for path, _, text in store.texts(filters):
        if what in text:
            for number, line in _lines_of(text, lambda line: what in line):
                yield Match(path=path, line=number, end_line=number, kind="text", text=line)


def _lines_like(store: FoundIn, what: str, filters: Filters) -> Iterator[Match]:
    import re2

    options = re2.Options()
    options.log_errors = False
    try:
        pattern = re2.compile(what, options)
    except re2.error as error:
        reason = error.args[0].decode("utf-8", "replace") if isinstance(error.args[0], bytes) else error
        raise InvalidOption("what", what, f"is no regular expression of RE2 ({reason})") from None
    for path, _, text in store.texts(filters):
        for number, line in _lines_of(text, lambda line: pattern.search(line) is not None):
            yield Match(path=path, line=number, end_line=number, kind="text", text=line)


def _lines_of(text: str, fits: Callable[[str], bool]) -> Iterator[tuple[int, str]]:
    """The numbers and texts of the lines that fit."""
    return ((number, _shown(line)) for number, line in enumerate(text.split("\n"), start=1) if fits(line))


def _shown(line: str) -> str:
    shown = make_visible_line(" ".join(line.split())).text
    return shown if len(shown) <= _MAX_LINE_CHARS else f"{shown[: _MAX_LINE_CHARS - 1]}…"
