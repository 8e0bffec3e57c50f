"""The content of a web page without what stands around it: menus, banners, footers, columns of other pages.

What is left out is decided by the page's own structure (its elements, their roles and names); if too little would
be left, nothing is. Positions in the text are cut, so that what stays is as it was.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Sequence
from html.parser import HTMLParser
from typing import Final

_VOID: Final = frozenset("area base br col embed hr img input link meta param source track wbr frame".split())
# Elements that end where the next of their kind begins, or with their parent.
_CLOSED_BY_NEXT: Final = frozenset("p li dt dd tr td th option".split())
_ROLES: Final = frozenset("navigation banner contentinfo complementary search dialog alertdialog menu menubar".split())
_NAMED: Final = re.compile(
    r"(?:^|[\s_-])(?:cookies?|consent|gdpr|breadcrumbs?|skip-?(?:link|nav)|(?:site-?|global-?|top-?)?nav(?:igation|-?bar)?"
    r"|(?:main|side|top)-?menu|menu-?bar|side-?bar|top-?bar|tool-?bar|masthead|(?:site|page|global)-?(?:header|footer)|footer"
    r"|social(?:-?(?:links|share|media))?|shar(?:e|ing)(?:-?(?:bar|buttons|links|tools))?|subscribe|newsletter|popup|modal"
    r"|promos?|adverts?|advertisements?|ads?|recommend(?:ed|ations)|trending|most-?(?:read|popular|viewed)"
    r"|related(?:-?(?:posts|articles|links|content|stories))?)"
    r"(?:-?(?:banner|consent|notice|bar|box|popup|signup|list|wrapper|container))?(?:$|\s)",
    re.IGNORECASE,
)
_NAMED_ELEMENTS: Final = frozenset("div section ul ol header form p".split())
_MAX_SHARE: Final = 0.5  # of the page's letters: what holds more is not around the content
_MIN_KEPT_SHARE: Final = 0.25  # of the letters; where less would be left, the page is kept whole
_MIN_MAIN_SHARE: Final = 0.4  # of the letters that are not around; a smaller <main> is not where the content is
_MAX_CHARS: Final = 3_000_000  # of a page; a larger one is data, and is kept whole
_MAX_DEPTH: Final = 500  # of elements: a deeper page is kept whole


def main_content(text: str) -> str:
    """The page without menus, banners, footers and columns of other pages."""
    reader = _Reader(text)
    if len(text) > _MAX_CHARS or not reader.read():
        return text
    around = _outermost(each for each in reader.done if each.is_around and each.letters <= _MAX_SHARE * reader.letters)
    mains = [each for each in reader.done if each.name == "main"]
    spans = [(each.start, each.end) for each in around]
    kept = reader.letters - sum(each.letters for each in around)
    if len(mains) == 1 and mains[0].letters >= _MIN_MAIN_SHARE * kept:
        (main,) = mains
        inside = [each for each in around if main.start < each.start and each.end <= main.end]
        spans = [(each.start, each.end) for each in inside]
        spans += [(reader.body_start, main.start), (main.end, reader.body_end)]
        kept = main.letters - sum(each.letters for each in inside)
    if not around or kept < _MIN_KEPT_SHARE * reader.letters:
        return text
    return _without(text, spans)


def _outermost(elements: Iterable[_Element]) -> list[_Element]:
    found: list[_Element] = []
    for element in sorted(elements, key=lambda each: (each.start, -each.end)):
        if not found or element.start >= found[-1].end:
            found.append(element)
    return found


def _without(text: str, spans: Sequence[tuple[int, int]]) -> str:
    parts, at = [], 0
    for start, end in sorted(spans):
        if start > at:
            parts.append(text[at:start])
        at = max(at, end)
    return "".join([*parts, text[at:]])


class _Element:
    """An element of the page: where it stands, and the letters in it."""

    __slots__ = ("end", "is_around", "letters", "name", "start")

    def __init__(self, name: str, start: int, *, is_around: bool) -> None:
        self.name, self.start, self.end, self.is_around = name, start, start, is_around
        self.letters = 0


class _TooDeep(Exception):
    """The page has more levels than any page that people read."""


class _Reader(HTMLParser):
    """Notes the elements that stand around the content, and those that hold it, with their places."""

    def __init__(self, text: str) -> None:
        super().__init__(convert_charrefs=True)
        self.text = text
        self.lines = [0, *(match.end() for match in re.finditer("\n", text))]
        self.open: list[_Element] = []
        self.done: list[_Element] = []
        self.letters = 0
        self.body_start, self.body_end = 0, len(text)

    def read(self) -> bool:
        """Read the page; False for one that cannot be read to its end."""
        try:
            self.feed(self.text)
            self.close()
        except (_TooDeep, AssertionError, ValueError):  # the parser of the standard library asserts on odd pages
            return False
        while self.open:
            self._end(len(self.text))
        return True

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        """Open an element."""
        at = self._at()
        if tag in _CLOSED_BY_NEXT and self.open and self.open[-1].name == tag:
            self._end(at)
        if tag in _VOID:
            return
        if len(self.open) >= _MAX_DEPTH:
            raise _TooDeep
        if tag == "body":
            self.body_start = at + len(self.get_starttag_text() or "")
        given = {name: value or "" for name, value in attrs}
        self.open.append(_Element(tag, at, is_around=self._is_around(tag, given)))

    def handle_startendtag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        """An element without content has nothing to leave out."""

    def handle_endtag(self, tag: str) -> None:
        """Close an element, and those in it that are still open."""
        at = self._at()
        if tag == "body":
            self.body_end = at
        if any(each.name == tag for each in self.open):
            while self.open[-1].name != tag:
                self._end(at)
            self._end(self.text.find(">", at) + 1 or len(self.text))

    def handle_data(self, data: str) -> None:
        """Count the letters."""
        if self.open and self.open[-1].name in ("script", "style", "title"):
            return
        letters = sum(map(str.isalnum, data))
        self.letters += letters
        for each in self.open:
            each.letters += letters

    def _end(self, at: int) -> None:
        element = self.open.pop()
        element.end = at
        if element.is_around or element.name == "main":
            self.done.append(element)

    def _is_around(self, tag: str, given: dict[str, str]) -> bool:
        is_role = given.get("role", "").lower() in _ROLES
        if tag in ("nav", "dialog") or (is_role and tag not in ("main", "body", "html", "article")):
            return True
        if any(each.name in ("article", "main") for each in self.open):
            return False  # its footnotes and asides are its own
        if tag in ("footer", "aside"):
            return True
        named = f"{given.get('id', '')} {given.get('class', '')}"[:400]
        return tag in _NAMED_ELEMENTS and _NAMED.search(named) is not None

    def _at(self) -> int:
        line, column = self.getpos()
        return self.lines[line - 1] + column
