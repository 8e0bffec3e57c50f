"""The recognizing of one document's scans and pictures: with which engine, for how long, and what came of it."""

from __future__ import annotations

import subprocess
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import TYPE_CHECKING, Final, NamedTuple

from satchel.indexing.documents.ocr import HOW_TO_READ, Line, engine_named
from satchel.indexing.documents.tidy import one_line

if TYPE_CHECKING:
    from PIL.Image import Image


class ReadOptions(NamedTuple):
    """Whether scans and pictures are recognized and in which languages, and how much of a document is read at most."""

    ocr: bool = True
    languages: str = "eng"
    """Tesseract's names of them, with `+` between: `eng+deu`."""
    most_pages: int = 5000
    most_chars: int = 30_000_000
    read_seconds: float = 90.0
    """How long the pages of one PDF may take; what was not reached by then is left out."""
    ocr_seconds: float = 600.0
    """How long the scans of one document may take, beyond what reading it takes."""
    engine: str = ""
    """`tesseract` or `rapidocr`; empty for the first of them that is there."""
    picture_seconds: float = 30.0
    """How long the pictures on pages with text may take, beyond what scans may take."""


_PICTURE_SECONDS: Final = 20.0


class DocumentSource(NamedTuple):
    """What a reader gets: the kind and the bytes of a file, how much of it is read, and who recognizes its scans."""

    kind: str
    data: bytes
    options: ReadOptions
    recognition: Recognition


class Recognition:
    """Recognizes until the time for it is used up; `on_page` is told before and after each page and picture."""

    def __init__(self, options: ReadOptions, on_page: Callable[[], None]) -> None:
        self._engine = engine_named(options.engine) if options.ocr else None
        self._options = options
        self._on_page = on_page
        self._ends: float | None = None
        self._pictures_end: float | None = None
        self._late = 0
        self._late_pictures = 0
        self._without_engine = 0
        self._pictures_without_engine = 0
        self._failure = ""
        self._asked = False

    @property
    def is_wanted(self) -> bool:
        """Whether anything is to be recognized, be there an engine for it or not."""
        return self._options.ocr

    def text_in(self, image: Image) -> str | None:
        """The text in the picture of a page, or None when it was not looked for."""
        if self._engine is None:
            self._without_engine += 1
            return None
        self._ends = self._ends or time.monotonic() + self._options.ocr_seconds
        if time.monotonic() >= self._ends:
            self._late += 1
            return None
        with self._reported():
            try:
                return self._engine.text(image, self._options.languages)
            except subprocess.TimeoutExpired:
                self._failure = "a page took too long to recognize"
        return None

    def labels_in(self, picture: Callable[[], Image | None]) -> list[Line]:
        """The lines in a picture on a page; the picture is made only if there is an engine and time for it."""
        if self._engine is None:
            self._pictures_without_engine += 1
            return []
        self._pictures_end = self._pictures_end or time.monotonic() + self._options.picture_seconds
        if time.monotonic() >= self._pictures_end:
            self._late_pictures += 1
            return []
        with self._reported():
            try:
                image = picture()
                most = min(_PICTURE_SECONDS, self._options.read_seconds)
                return self._engine.labels(image, self._options.languages, most) if image is not None else []
            except subprocess.TimeoutExpired:
                self._late_pictures += 1
        return []

    @contextmanager
    def _reported(self) -> Iterator[None]:
        """Tell `on_page` before and after; a failure becomes a note."""
        self._on_page()
        self._asked = True
        try:
            yield
        except (OSError, ValueError, RuntimeError) as error:
            self._failure = one_line(str(error))
        finally:
            self._on_page()

    def notes(self) -> Iterator[str]:
        """What was not recognized, and what to do about it."""
        if self._without_engine and self._options.ocr:
            yield f"is a scan; {HOW_TO_READ} it"
        elif self._without_engine:
            yield "is a scan, and recognizing scans is turned off"
        elif self._pictures_without_engine and self._options.ocr:
            yield f"has pictures that may have text in them; {HOW_TO_READ} them"
        missing = self._engine.lacks(self._options.languages) if self._engine and self._asked else ()
        if missing:
            packages = " ".join(f"tesseract-ocr-{one.replace('_', '-').lower()}" for one in missing)
            names = ", ".join(missing)
            yield one_line(
                f"its pictures were read without {names}, which Tesseract lacks here: apt install {packages}"
            )
        if self._late:
            yield f"{self._late:,} scanned pages were left out: recognizing them took too long"
        if self._late_pictures:
            yield f"{self._late_pictures:,} of its pictures were not read: reading them took too long"
        if self._failure:
            yield f"some of its scans or pictures could not be recognized ({self._failure})"
