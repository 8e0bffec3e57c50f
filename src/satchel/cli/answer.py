"""Printing of a streamed answer with terminal control characters made visible, and of links to the sources."""

from __future__ import annotations

import os
import sys
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final, NamedTuple

from satchel.cli.output import exit_by_sigpipe
from satchel.models.files import page_words
from satchel.text.visible import make_visible, make_visible_line

if TYPE_CHECKING:
    from collections.abc import Callable

    from satchel.models.context import Context

_FLAG: Final = "\U0001f3f4"
_FLAG_CHARS: Final = 7  # a subdivision flag: black flag, five tag letters, cancel tag
_JOINERS: Final = "\u200c\u200d\r"
_LOOKBACK_CHARS: Final = 16  # longer than the longest sequence that is shown as a unit, a flag of 7 characters


class AnswerPrinter:
    """Writes a streamed answer to stdout, with hidden characters made visible exactly as in the whole text."""

    def __init__(self) -> None:
        self._held = ""
        self._before = ""
        self._last = ""

    def write(self, piece: str) -> None:
        """Print the text except a tail whose rendering depends on the text after the tail."""
        text = self._held + piece
        flag = text.rfind(_FLAG, max(0, len(text) - _FLAG_CHARS))
        safe = text[:flag] if flag >= 0 else text.rstrip(_JOINERS)
        self._held = text[len(safe) :]
        self._print(safe)

    def end(self) -> None:
        """Print the remaining tail, and end the line if any text was printed."""
        self._print(self._held)
        self._held = ""
        if self._last not in ("", "\n"):
            print_text("\n")
        self._last = ""

    def _print(self, text: str) -> None:
        if not text:
            return
        # The rendering of a joiner or a variation selector depends on the characters before it.
        known = make_visible(self._before).text
        visible = make_visible(self._before + text).text
        visible = visible[len(known) :] if visible.startswith(known) else make_visible(text).text
        self._before = (self._before + text)[-_LOOKBACK_CHARS:]
        self._last = visible[-1:] or self._last
        print_text(visible)


def print_text(text: str) -> None:
    """Write to stdout without buffering, as UTF-8 whatever the encoding of the terminal."""
    try:
        sys.stdout.buffer.write(text.encode("utf-8", "replace"))
        sys.stdout.buffer.flush()
    except BrokenPipeError:
        exit_by_sigpipe()


class ShownSource(NamedTuple):
    """A source of the context as shown to a reader; `path` is set if the file exists."""

    number: int
    name: str
    file: str | None
    line: int | None = None
    page: int | None = None
    path: Path | None = None

    @property
    def place(self) -> str:
        """Place of the source: `path:line`, `report.pdf, page 3`, or the name of a source without a file."""
        if not self.file:
            return make_visible_line(self.name).text
        file = _nearest(self.path) if self.path else self.file
        place = f"{file}, {page_words(file, self.page)}" if self.page else f"{file}:{self.line}" if self.line else file
        return make_visible_line(place).text

    @property
    def link(self) -> str | None:
        """The file URL of the source, with a page number for PDF viewers; None without a file."""
        if self.path is None:
            return None
        return self.path.as_uri() + (f"#page={self.page}" if self.page and _is_pdf(self.path) else "")

    def row(self, *, on_terminal: bool) -> str:
        """A line of the list of sources."""
        if self.link and on_terminal:
            # OSC 8; the address is percent-encoded, so nothing in it can end the sequence.
            return f"[{self.number}] \x1b]8;;{self.link}\x1b\\{self.place}\x1b]8;;\x1b\\"
        return f"[{self.number}] {self.place}" + (f"  {self.link}" if self.link and self.page else "")

    def to_dict(self, *, cited: bool) -> dict[str, Any]:
        """Place and link of the source, and True if the answer cites the source; the context has the rest by number."""
        return {"number": self.number, "place": self.place, "link": self.link, "cited": cited}


def shown_sources(context: Context, disk_path: Callable[[str], Path]) -> list[ShownSource]:
    """Return the sources of a context, ordered by number; `disk_path` gives the place of a source's file."""
    sources = [
        ShownSource(source.number, source.name, source.path, source.line, source.page) for source in context.sources
    ]
    return [source._replace(path=_existing(disk_path, source.file)) for source in sorted(sources)]


def _existing(disk_path: Callable[[str], Path], file: str | None) -> Path | None:
    path = disk_path(file) if file else None
    try:
        return path if path and path.is_file() else None
    except (OSError, ValueError):
        return None


def _is_pdf(path: Path) -> bool:
    return path.suffix.lower() == ".pdf"


def _nearest(path: Path) -> str:
    """The path relative to the working directory, or the absolute path of a file outside the working directory."""
    near = os.path.relpath(path)
    return str(path) if near.startswith("..") else near
