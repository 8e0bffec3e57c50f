"""Forms units from the chosen blocks of a file: neighbours and members of a class together, under one name."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Final

from satchel.assembly.found_blocks import CALLABLE, FoundBlock
from satchel.assembly.units import SourceText, UnitText, lines_between, on_its_own, plain_heading, unit_text
from satchel.models.outline import WHOLE_FILE, OutlineBlock
from satchel.text.statements import LineRun

# Blocks of a file with at most so many lines between them are one unit: an elision costs less than a heading.
_MAX_GAP_LINES: Final = 12

# Names in the heading of a unit of several blocks; more would be longer than the path.
_MAX_NAMES: Final = 3


def together(blocks: Sequence[FoundBlock]) -> list[list[FoundBlock]]:
    """The blocks of a file in units: members of one class together, and neighbours without a gap."""
    units: list[list[FoundBlock]] = []
    for block in sorted(blocks, key=lambda block: block.lines):
        last = units[-1][-1] if units else None
        is_same_page = last is not None and last.source.page(last.lines.first) == last.source.page(block.lines.first)
        if last is not None and is_same_page and (_belong_together(last, block) or _gap(last, block) <= _MAX_GAP_LINES):
            units[-1].append(block)
        else:
            units.append([block])
    return units


def _belong_together(one: FoundBlock, other: FoundBlock) -> bool:
    """True for parts of a section, for members of a class, and for a class and its member."""
    if one.source.is_prose:
        return bool(one.span.qualified) and one.span == other.span
    around = _class_of(one)
    return around is not None and around == _class_of(other)


def _class_of(block: FoundBlock) -> OutlineBlock | None:
    span = block.span
    if not span.qualified or span.type in CALLABLE:
        return block.source.spans[span.parent] if span.qualified and span.parent != WHOLE_FILE else None
    return span


def _gap(one: FoundBlock, other: FoundBlock) -> int:
    return lines_between(one.source, one.lines, other.lines)


def form_unit(blocks: Sequence[FoundBlock]) -> tuple[str, str, UnitText]:
    """The name, the kind and the text of a unit."""
    source, first = blocks[0].source, blocks[0]
    runs = [run for block in blocks for run in block.runs]
    is_within = first.lines.first >= first.span.first_line and first.lines.last <= first.span.last_line
    if (len(blocks) == 1 and is_within) or (
        source.is_prose and all(_belong_together(first, block) for block in blocks)
    ):
        around, name, kind = first.around, source.name(first.span), first.span.type
        if not source.is_prose and first.lines.first > first.span.first_line:
            runs += source.head(first.span)
    elif (parent := _class_of(first)) and not source.is_prose and all(_class_of(block) == parent for block in blocks):
        runs += source.head(parent)
        members = [block for block in blocks if block.span != parent]
        named = [block for block in members if block.is_definition] or members
        # Of several members only the one that was asked for is named: the others are seen below the head.
        name = source.plain(f"{parent.qualified}.{named[0].span.name}" if len(named) == 1 else parent.qualified)
        around, kind = LineRun(parent.first_line, parent.last_line), parent.type
    else:
        around = LineRun(first.lines.first, max(block.around.last for block in blocks))
        name, kind = _names(source, blocks), first.span.type
    around, runs = on_its_own(source, around, runs)
    return name, kind, unit_text(source, around, runs)


def _names(source: SourceText, blocks: Sequence[FoundBlock]) -> str:
    """The names of the outermost definitions or sections in a unit of several blocks."""
    inside = {index for block in blocks for index in source.inside(block.lines)}
    shown = [source.spans[index] for index in sorted(inside) if source.spans[index].parent not in inside]
    shown = shown or [block.span for block in blocks if block.span.qualified]
    if len(shown) == 1:
        return source.name(shown[0])
    names = list(
        dict.fromkeys(plain_heading(span.name) if source.is_prose else source.plain(span.qualified) for span in shown)
    )
    return ", ".join([*names[:_MAX_NAMES], "…"] if len(names) > _MAX_NAMES else names)
