"""Taking off what stands on every page: running heads and feet, and page numbers.

Only what recurs is taken off, only from the edges of pages, and a running head stays where it stands first.
"""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Iterator, Sequence
from typing import Final, NamedTuple

# Less than three pages show no habit.
_FEWEST: Final = 3
_MOST_OF_THEM: Final = 0.5
_AT_EACH_END: Final = 2
_LONGEST: Final = 160
_FEWEST_WORDS: Final = 3
_EMPHASIS: Final = re.compile(r"[*_`#\\]+")
_NUMBER: Final = re.compile(r"\d{1,5}")
_BARE: Final = re.compile(r"\W*(?:page|seite|p\.|s\.)?\W*0\W*(?:(?:of|von|/)\W*\d{1,5})?\W*")


class _Edge(NamedTuple):
    """A block at a page's edge: where it stands, what it says, and what it says when its number is left out."""

    page: int
    block: int
    at_top: bool
    text: str


def without_furniture(pages: Sequence[str]) -> list[str]:
    """The pages' Markdown without what is no part of their text."""
    blocks = [page.split("\n\n") for page in pages]
    edges = [edge for number, page in enumerate(blocks) for edge in _edges(number, page)]
    enough = max(_FEWEST, _MOST_OF_THEM * sum(1 for page in pages if page.strip()))
    recurring = Counter(dict.fromkeys(((edge.page, edge.at_top, edge.text) for edge in edges), 1))
    counts = Counter((at_top, text) for _, at_top, text in recurring)
    numbered = Counter((edge.at_top, shape) for edge in edges for shape in set(_shapes(edge)))
    met: set[str] = set()
    gone: set[tuple[int, int]] = set()
    for edge in edges:
        if _is_alone(edge, blocks):
            continue
        if _is_page_number(edge, numbered, enough):
            gone.add((edge.page, edge.block))
            continue
        shape = next((one for one in _shapes(edge) if _is_head(one[0]) and numbered[edge.at_top, one] >= _FEWEST), None)
        if counts[edge.at_top, edge.text] >= enough or shape is not None:
            key = shape[0] if shape else edge.text
            if key in met:
                gone.add((edge.page, edge.block))
            met.add(key)
    return [
        "\n\n".join(block for at, block in enumerate(page) if (number, at) not in gone).strip("\n")
        for number, page in enumerate(blocks)
    ]


def _edges(number: int, blocks: list[str]) -> Iterator[_Edge]:
    places = [at for at, block in enumerate(blocks) if block.strip() and block.strip() != "---"]
    top = places[:_AT_EACH_END]
    for at in dict.fromkeys([*top, *places[-_AT_EACH_END:]]):
        block = blocks[at]
        # Tables, lists and code are what the page is about.
        if len(block) <= _LONGEST and "\n" not in block and not block.startswith(("|", "- ", "```")):
            yield _Edge(number, at, at in top, " ".join(_EMPHASIS.sub("", block).split()).casefold())


def _shapes(edge: _Edge) -> Iterator[tuple[str, int]]:
    """The text with its first or last number left out, and by how much that number is off the page's place."""
    numbers = list(_NUMBER.finditer(edge.text))
    for number in dict.fromkeys([*numbers[:1], *numbers[-1:]]):
        yield f"{edge.text[: number.start()]}0{edge.text[number.end() :]}", int(number[0]) - edge.page


def _is_alone(edge: _Edge, blocks: list[list[str]]) -> bool:
    """Whether a page has nothing else to say."""
    return not any(block.strip() for at, block in enumerate(blocks[edge.page]) if at != edge.block)


def _is_head(shape: str) -> bool:
    """Whether a text with a number at one of its ends is a running head; "Question 3" is none."""
    words = shape.split()
    return len(words) > _FEWEST_WORDS and "0" in (words[0], words[-1])


def _is_page_number(edge: _Edge, numbered: Counter[tuple[bool, tuple[str, int]]], enough: float) -> bool:
    return any(_BARE.fullmatch(shape[0]) and numbered[edge.at_top, shape] >= enough for shape in _shapes(edge))
