"""Finds the places that a change may reach, each with what speaks for it.

They are the changed symbols and the frames of a stack trace, what uses these, what overrides them, the tests of them
and of their callers, and the files that the same commits changed.
"""

from __future__ import annotations

import math
import re
from collections import Counter, defaultdict
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from functools import cache, cached_property
from itertools import chain
from typing import TYPE_CHECKING, Final, NamedTuple

from satchel.models.block import BlockType
from satchel.models.files import PROSE, detect_language, kind_of
from satchel.models.outline import WHOLE_FILE
from satchel.retrieval.change import MAX_HUNKS, Change, defined_names, touched_lines
from satchel.retrieval.find import Symbol, heirs_of, references
from satchel.retrieval.freshness import lines_of
from satchel.text.reports import shared_ending, trace_frames
from satchel.text.visible import PLAIN_NAME, make_visible_line

if TYPE_CHECKING:
    from satchel.models.find import Match
    from satchel.models.outline import OutlineBlock
    from satchel.models.search import Filters
    from satchel.ports.searched_store import SearchedStore

# How probable it is that a place has to be looked at, by what speaks for it.
_CALLS: Final = 0.5
_TESTS: Final = 0.6  # a line of a test that names it
_INHERITS: Final = 0.5  # a class below a changed one
_OVERRIDES: Final = 0.6  # the same method above or below
_IMPORTS: Final = 0.05  # the use stands elsewhere in the file
_NAMES_IT: Final = 0.15  # by name alone, which may be another symbol's
_DESCRIBES: Final = 0.1  # documentation that names it
_GONE_SHARE: Final = 0.5  # of the weight, for a name that the change seems to remove
_REACHES: Final = 0.25  # a test of what calls it
_NAMESAKE_TEST: Final = 0.45  # tests/test_retry.py for src/retry.py
_CHANGES_TOGETHER: Final = 1.6  # times the share of commits, in which large ones count for less
_CHANGED: Final = 0.5  # a changed line itself
CHANGED_HERE: Final = "changed here"
"""What speaks for a changed line itself."""
_FRAME: Final = 0.9  # of a stack trace, halved from frame to frame

_MAX_SYMBOLS: Final = 24  # changed symbols followed; the largest changes come first
_MAX_REFERENCES: Final = 200  # lines that name one symbol; a name that is everywhere says nothing
_COMMON: Final = 12  # references from which on a name weighs less and less
_MAX_COMMITS: Final = 20_000  # entries of the history compared: far more than are read
_FEW_COMMITS: Final = 2.0  # added to the commits of a file: two of two are no habit yet
_MIN_TOGETHER: Final = 0.08  # less is chance
_SHORTEST_NAME: Final = 3  # a shorter name is in every file

_FAMILIES: Final[dict[str, str]] = {
    "typescript": "javascript",
    "cpp": "c",
    "kotlin": "java",
    "scala": "java",
    "groovy": "java",
}
_NO_CODE: Final = frozenset({*PROSE, "json", "yaml", "toml", "xml", "ini", None})
_STANDS_FOR_FOLDER: Final = frozenset({"__init__", "index", "mod", "lib", "main"})


class Reached(NamedTuple):
    """A place that a change may reach: a line, or with line 0 the file; how probably, and why."""

    path: str
    line: int
    weight: float
    why: str


_NOTHING: Final = Reached("", 0, 0.0, "")


class _Touched(NamedTuple):
    """A symbol that is changed, or in which a frame of a stack trace stands."""

    path: str
    block: OutlineBlock
    lines: frozenset[int]


class _Namesakes(NamedTuple):
    """Other definitions of a symbol's name."""

    paths: frozenset[str]
    importers: frozenset[str]
    """The files in which the name is surely that of the symbol."""
    users_of_owner: frozenset[str]
    """The files that name the symbol's class."""


@dataclass(eq=False)
class Consequences:
    """What a change reaches in a store, as far as the readers of the filters may know."""

    store: SearchedStore
    filters: Filters
    change: Change
    notes: list[str] = field(default_factory=list)

    @cached_property
    def _paths(self) -> dict[str, list[str]]:
        """The paths of files by their last part; what is shown of a file is read with the filters."""
        by_name: dict[str, list[str]] = defaultdict(list)
        for path in self.store.files():
            by_name[path.rpartition("/")[2]].append(path)
        return by_name

    def located(self, elsewhere: str) -> str:
        """The readable path of a file that is named as on another machine, or from another folder; "" for none."""
        likely = [(shared_ending(path, elsewhere), path) for path in self._paths.get(elsewhere.rpartition("/")[2], ())]
        for same, path in sorted(likely, key=lambda each: (-each[0], each[1])):
            if same and self.store.text_of(path, self.filters) is not None:
                return path
        return ""

    def reached(self) -> list[Reached]:
        """The places that the change may reach, the changed ones first."""
        touched, changed, removed = self._touched()
        names = {(each.path, each.block.qualified) for each in touched}
        symbols = [self._symbol(each) for each in touched]
        symbols += [Symbol(name, "", ()) for name in removed if name not in {symbol.name for symbol in symbols}]
        symbols = [symbol for symbol in symbols if len(symbol.name) >= _SHORTEST_NAME][:_MAX_SYMBOLS]
        own = {path: set[int]() for path in changed}
        for each in touched:
            own.setdefault(each.path, set()).update(range(each.block.first_line, each.block.last_line + 1))
        used = list(self._uses(symbols, own))
        return [
            *chain.from_iterable(changed.values()),
            *used,
            *self._overriding(touched),
            *self._reaching_tests(used, names),
            *self._namesake_tests(changed),
            *self._changing_together(set(changed)),
        ]

    # -- the change itself

    def _touched(self) -> tuple[list[_Touched], dict[str, list[Reached]], list[str]]:
        """The touched symbols, the touched lines by path, and the names that the change removes."""
        lines: dict[str, set[int]] = defaultdict(set)
        places: dict[str, list[Reached]] = {}
        removed: Counter[str] = Counter()
        unknown: set[str] = set()
        for hunk in self.change.hunks:
            path = self.located(hunk.path or hunk.old_path) or self.located(hunk.old_path)
            gone = set(defined_names(hunk.signed("-"))) - set(defined_names(hunk.signed("+")))
            if not path:
                unknown.add(hunk.path or hunk.old_path)
                continue
            removed.update(gone)
            text = lines_of(self.store.text_of(path, self.filters) or "")
            touched = touched_lines(hunk, text)
            lines[path].update(touched)
            places.setdefault(path, []).extend(Reached(path, line, _CHANGED, CHANGED_HERE) for line in touched)
        for place, frame in enumerate(trace_frames(self.change.trace)):
            if path := self.located(frame.path):
                lines[path].add(frame.line or 1)
                why = "named here" if "\n" not in self.change.trace else "in the stack trace"
                places.setdefault(path, []).append(Reached(path, frame.line, _FRAME * 0.8**place, why))
        if len(self.change.hunks) >= MAX_HUNKS:
            self.notes.append(f"the diff is long: only its first {MAX_HUNKS:,} hunks are followed")
        if unknown:
            named = ", ".join(sorted(path for path in unknown if PLAIN_NAME.fullmatch(path))[:5])
            self.notes.append(f"not in the index, so nothing follows from its change: {named or 'a file'}")
        touched_symbols = [each for path, numbers in lines.items() for each in self._symbols_at(path, numbers)]
        touched_symbols.sort(key=lambda each: -len(each.lines))
        still = {each.block.name for each in touched_symbols}
        return touched_symbols[:_MAX_SYMBOLS], places, [name for name, _ in removed.most_common() if name not in still]

    def _symbols_at(self, path: str, numbers: set[int]) -> Iterator[_Touched]:
        """The innermost symbols around lines; a class counts only where a line is in none of its members."""
        by_block: dict[OutlineBlock, set[int]] = defaultdict(set)
        for line in sorted(numbers):
            if block := self._innermost_code(path, line):
                by_block[block].add(line)
        for found, lines in by_block.items():
            yield _Touched(path, found, frozenset(lines))

    def _innermost_code(self, path: str, line: int) -> OutlineBlock | None:
        if kind_of(path).prose:
            return None
        return innermost(self.store.outline_of(path, self.filters), line)

    def _symbol(self, touched: _Touched) -> Symbol:
        block = touched.block
        is_member = block.parent != WHOLE_FILE and block.type != BlockType.CLASS
        owner = block.qualified.split(".")[-2] if is_member and "." in block.qualified else ""
        return Symbol(block.name, owner, ((touched.path, block),))

    # -- what follows

    def _uses(self, symbols: Sequence[Symbol], own: Mapping[str, set[int]]) -> Iterator[Reached]:
        """The lines outside of the changed symbols that name them; names that are everywhere weigh little."""
        by_symbol: dict[str, list[Reached]] = defaultdict(list)
        namesakes = {symbol: self._namesakes(symbol) for symbol in symbols}
        for symbol, match in references(self.store, symbols, self.filters):
            uses, others = by_symbol[symbol.name], namesakes[symbol]
            if len(uses) >= _MAX_REFERENCES or match.line in own.get(match.path, ()) or match.path in others.paths:
                continue
            # A call on some object is one of the symbol where its class is known.
            is_seen = match.kind in ("calls", "tests") and match.path in others.users_of_owner
            is_certain = (match.is_certain or is_seen) and (not others.paths or match.path in others.importers)
            is_module = match.kind == "imports" and symbol.owner  # a member cannot be imported, its namesake can
            if is_module or not (is_certain or _tells(symbol.name, match)) or not _may_use(match.path, symbol):
                continue
            shown = ".".join(filter(None, (symbol.owner, symbol.name)))
            weight, verb = _weight_of(match.path, match.kind, is_certain)
            if not symbol.defined:
                weight *= _GONE_SHARE
            uses.append(Reached(match.path, match.line, weight, f"{verb} {make_visible_line(shown).text}"))
        for uses in by_symbol.values():
            files = len({use.path for use in uses})
            share = min(1.0, (1 + math.log(_COMMON)) / (1 + math.log(max(1, files))))
            yield from (use._replace(weight=use.weight * share) for use in uses)

    def _namesakes(self, symbol: Symbol) -> _Namesakes:
        """The files that define the same name otherwise, and those that import the file of this one."""
        here = {path for path, _ in symbol.defined}
        others = {path for path, _ in self.store.definitions(symbol.name, self.filters)} - here
        importers = set(here)
        for path in here if others else ():
            for name in _module_names(path):
                mentions = self.store.mentions_of(name, self.filters)
                if found := {mention.path for mention in mentions if mention.kind == "imports"}:
                    importers |= found
                    break
        owner = self.store.mentions_of(symbol.owner, self.filters) if symbol.owner else ()
        users = here | {mention.path for mention in owner}
        return _Namesakes(frozenset(others) if here else frozenset(), frozenset(importers | users), frozenset(users))

    def _overriding(self, touched: Sequence[_Touched]) -> Iterator[Reached]:
        """The methods of the same name below and above a changed method's class."""
        heirs = cache(lambda name: frozenset(heirs_of(self.store, name, self.filters)))
        for each in touched:
            own_class = (each.path, each.block.qualified.rpartition(".")[0])
            owner = own_class[1].rpartition(".")[2]
            if not owner or each.block.name.startswith("__init"):
                continue
            defined = self.store.definitions(each.block.name, self.filters)
            if len(defined) < 2:
                continue
            for path, block in defined:
                other = block.qualified.rpartition(".")[0]
                if (path, other) in heirs(owner):
                    yield Reached(path, block.first_line, _OVERRIDES, f"overrides {owner}.{block.name}")
                elif other != owner and block.type == each.block.type and own_class in heirs(other.rpartition(".")[2]):
                    yield Reached(path, block.first_line, _OVERRIDES, f"is overridden by {owner}.{block.name}")

    def _reaching_tests(self, used: Sequence[Reached], changed: set[tuple[str, str]]) -> Iterator[Reached]:
        """The tests of what calls the changed symbols."""
        callers: dict[str, str] = {}
        for use in used:
            if use.why.startswith("calls") and use.weight >= _CALLS * 0.5 and not kind_of(use.path).test:
                block = innermost(self.store.outline_of(use.path, self.filters), use.line)
                if block and (use.path, block.qualified) not in changed and len(block.name) > _SHORTEST_NAME:
                    callers.setdefault(block.name, use.path)
        for name in list(callers)[:_MAX_SYMBOLS]:
            if len(self.store.definitions(name, self.filters)) != 1:
                continue
            for mention in self.store.mentions_of(name, self.filters):
                if mention.kind in ("calls", "tests") and kind_of(mention.path).test and mention.first_line:
                    yield Reached(mention.path, mention.first_line, _REACHES, f"tests its caller {name}")

    def _namesake_tests(self, changed: Iterable[str]) -> Iterator[Reached]:
        """The test files that are called like a changed file."""
        for path in changed:
            stem = _stem(path)
            if kind_of(path).test or len(stem) < _SHORTEST_NAME:
                continue
            for paths in self._paths.values():
                for other in paths:
                    if other != path and _stem(other) == stem and kind_of(other).test:
                        yield Reached(other, 0, _NAMESAKE_TEST, f"tests of {path.rpartition('/')[2]}")

    def _changing_together(self, changed: set[str]) -> Iterator[Reached]:
        """The files that the commits of the changed files changed, too."""
        commits: dict[str, set[str]] = defaultdict(set)
        for entry in self.store.activity(self.filters, limit=_MAX_COMMITS):
            commits[entry.reference].add(entry.block)
        times: Counter[str] = Counter()
        together: dict[str, Counter[str]] = defaultdict(Counter)
        weights: dict[str, Counter[str]] = defaultdict(Counter)
        for files in commits.values():
            for path in files & changed:
                times[path] += 1
                for other in files - changed:
                    together[path][other] += 1
                    # A commit of many files says less about each pair of them.
                    weights[path][other] += 1 / math.log2(1 + len(files))  # type: ignore[assignment]
        known = {path for paths in self._paths.values() for path in paths}
        best: dict[str, Reached] = {}
        for path, others in together.items():
            for other, count in others.items():
                share = weights[path][other] / (times[path] + _FEW_COMMITS)
                if other in known and share >= _MIN_TOGETHER and share > best.get(other, _NOTHING).weight:
                    why = f"changed in {count} of {times[path]} commits of {path.rpartition('/')[2]}"
                    best[other] = Reached(other, 0, share, why)
        yield from (place._replace(weight=_CHANGES_TOGETHER * place.weight) for place in best.values())


def innermost(spans: Sequence[OutlineBlock], line: int) -> OutlineBlock | None:
    """The smallest named block around a line."""
    around = [span for span in spans if span.first_line <= line <= span.last_line and span.qualified]
    return min(around, key=lambda span: span.last_line - span.first_line, default=None)


def _weight_of(path: str, kind: str, is_certain: bool) -> tuple[float, str]:
    """How probable a use makes a place, and its verb."""
    is_test = kind_of(path).test
    if kind in ("calls", "tests") or (is_test and kind == "names"):
        verb, weight = ("tests", _TESTS) if is_test else ("calls", _CALLS)
        return (weight, verb) if is_certain else (_NAMES_IT * (1.5 if is_test else 1.0), "names")
    if kind == "inherits":
        return _INHERITS if is_certain else _NAMES_IT, "inherits"
    if kind == "imports":
        return _IMPORTS, "imports"
    if kind_of(path).prose:
        return _DESCRIBES, "describes"
    return (_CALLS * 0.8 if is_certain else _NAMES_IT), "uses" if is_certain else "names"


def _tells(name: str, match: Match) -> bool:
    """False for a plain word in a text: it hardly stands for the symbol of that name."""
    is_plain = match.kind == "names" and name.islower() and "_" not in name
    return not is_plain or any(written in match.text for written in (f"{name}(", f"`{name}`", f".{name}"))


def _may_use(path: str, symbol: Symbol) -> bool:
    """False for code in another language than that of the symbol."""
    languages = {detect_language(path), *(detect_language(defined_in) for defined_in, _ in symbol.defined)}
    return len({_FAMILIES.get(language or "", language) for language in languages} - _NO_CODE) <= 1


def _stem(path: str) -> str:
    """The name of a file without its ending and without what marks a test: `test_retry.py` is `retry`.

    Of a file that stands for its folder (`mod.rs`, `index.js`) it is the name of the folder.
    """
    folder, _, file = path.lower().rpartition("/")
    name = file.partition(".")[0]
    if name in _STANDS_FOR_FOLDER:
        name = folder.rpartition("/")[2]
    return re.sub(r"^tests?[_-]|[_-]?(?:tests?|spec)$", "", name)


def _module_names(path: str) -> Iterator[str]:
    """The names by which other files may import a file, the surest first."""
    parts = [part.partition(".")[0] for part in path.split("/")]
    if parts[-1] in _STANDS_FOR_FOLDER:
        parts.pop()
    yield from (".".join(parts[-count:]) for count in (2, 1) if len(parts) >= count)
