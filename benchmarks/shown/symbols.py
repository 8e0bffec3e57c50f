"""Names of definitions as questions: drawn from an index by a seeded sample, and judged by the lines that are shown."""

from __future__ import annotations

import random
import re
from collections import defaultdict
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Final

from benchmarks.shown.pieces import ShownPiece, SourceFile, shown_lines
from satchel.models.files import kind_of
from satchel.models.outline import OutlineBlock
from satchel.tokens.counter import TokenCounter

LINE_BUDGETS: Final = (1000, 2000)
"""Budgets at which the line of the definition must be shown,"""
WHOLE_BUDGET: Final = 2000
"""… and at which a definition must be shown whole,"""
WHOLE_TOKENS: Final = 800
"""… if it has at most so many tokens: with room for its frame and a second candidate."""

_DEFINITIONS: Final = frozenset(
    {"class", "function", "struct", "interface", "trait", "enum", "type", "method", "macro"}
)
_METHODS_SHARE: Final = 0.25  # members are asked for less often than what a file is about
_MIN_NAME_LENGTH: Final = 4  # shorter names are words of many lines
_COMMENT: Final = re.compile(r"\s*(//|#(?!\[)|\*|/\*|--|@)")

Files = Callable[[str], SourceFile]


@dataclass(frozen=True, slots=True, kw_only=True)
class Symbol:
    """A definition whose name no other definition of the index has."""

    name: str
    path: str
    first: int
    last: int
    line: int
    """The first line of the definition with its name, after decorators and comments."""
    tokens: int


@dataclass(frozen=True, slots=True, kw_only=True)
class SymbolShown:
    """What the contexts for a name show of its definition."""

    tokens: int
    line_at: dict[int, bool]
    whole: bool
    """Whether each line is shown, at `WHOLE_BUDGET`."""

    @property
    def should_be_whole(self) -> bool:
        """True if the definition is small enough to be shown whole."""
        return self.tokens <= WHOLE_TOKENS


def sample_symbols(paths: Iterable[str], files: Files, counter: TokenCounter, count: int, seed: str) -> list[Symbol]:
    """At most `count` definitions with unique names, three of four not methods; the same ones for the same index."""
    defined: dict[str, list[tuple[str, OutlineBlock]]] = defaultdict(list)
    for path in sorted(paths):
        for block in files(path).named:
            if block.type in _DEFINITIONS:
                defined[block.name].append((path, block))
    unique = [places[0] for name, places in defined.items() if len(places) == 1 and _is_asked_for(name, places[0][0])]
    chooser = random.Random(seed)
    chooser.shuffle(unique)
    methods = [place for place in unique if place[1].type == "method"]
    others = [place for place in unique if place[1].type != "method"]
    wanted = int(count * _METHODS_SHARE)
    chosen = [*others[: count - wanted], *methods[:wanted]]
    symbols = (symbol_at(path, block, files(path), counter) for path, block in chosen)
    return [symbol for symbol in symbols if symbol is not None]


def _is_asked_for(name: str, path: str) -> bool:
    kind = kind_of(path)
    is_source = not (kind.test or kind.example or kind.docs or kind.prose or kind.vendor)
    return is_source and len(name) >= _MIN_NAME_LENGTH and name.isidentifier()


def symbol_at(path: str, block: OutlineBlock, file: SourceFile, counter: TokenCounter) -> Symbol | None:
    """The symbol of a block; None if no line of the block has its name."""
    lines = file.lines[block.first_line - 1 : block.last_line]
    line = _line_of(block.name, lines)
    if line is None:
        return None
    return Symbol(
        name=block.name,
        path=path,
        first=block.first_line,
        last=block.last_line,
        line=block.first_line + line,
        tokens=counter.count("\n".join(lines)),
    )


def _line_of(name: str, lines: Sequence[str]) -> int | None:
    word = re.compile(rf"\b{re.escape(name)}\b")
    return next((i for i, line in enumerate(lines) if word.search(line) and not _COMMENT.match(line)), None)


def judge_symbol(symbol: Symbol, file: SourceFile, pieces_at: Mapping[int, Sequence[ShownPiece]]) -> SymbolShown:
    """What of a definition the pieces show, at each budget."""
    shown = {
        budget: {line for piece in pieces if piece.path == symbol.path for line in shown_lines(piece, file.lines)}
        for budget, pieces in pieces_at.items()
    }
    needed = {line for line in range(symbol.first, symbol.last + 1) if file.has_text(line, line)}
    return SymbolShown(
        tokens=symbol.tokens,
        line_at={budget: symbol.line in shown[budget] for budget in LINE_BUDGETS},
        whole=needed <= shown[WHOLE_BUDGET],
    )
