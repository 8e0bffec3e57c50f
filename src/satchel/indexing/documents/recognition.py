"""The recognizing of one document's scans and pictures: with which engine, for how long, and what came of it."""

from __future__ import annotations

import subprocess
import time
from collections import Counter
from collections.abc import Callable, Iterator
from typing import TYPE_CHECKING, Final, NamedTuple, TypeVar

from satchel.indexing.documents.ocr import HOW_TO_READ, Engine, Line, engine_named
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

Result = TypeVar("Result")


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
        self._ends: dict[str, float] = {}
        self._without_engine: Counter[str] = Counter()
        self._late: Counter[str] = Counter()
        self._failure = ""
        self._is_used = False

    @property
    def is_wanted(self) -> bool:
        """True if anything is to be recognized, be there an engine for it or not."""
        return self._options.ocr

    def text_in(self, image: Image) -> str | None:
        """The text in the picture of a page, or None when it was not looked for."""
        options = self._options
        return self._recognize("page", options.ocr_seconds, lambda engine: engine.text(image, options.languages))

    def labels_in(self, picture: Callable[[], Image | None]) -> list[Line]:
        """The lines in a picture on a page; the picture is made only if there is an engine and time for it."""
        options = self._options

        def labels(engine: Engine) -> list[Line]:
            image = picture()
            seconds = min(_PICTURE_SECONDS, options.read_seconds)
            return [] if image is None else engine.labels(image, options.languages, seconds)

        return self._recognize("picture", options.picture_seconds, labels) or []

    def _recognize(self, kind: str, seconds: float, work: Callable[[Engine], Result]) -> Result | None:
        """What the engine makes of a page or picture; None without an engine or time for it, and when it fails."""
        if self._engine is None:
            self._without_engine[kind] += 1
            return None
        ends = self._ends.setdefault(kind, time.monotonic() + seconds)
        if time.monotonic() >= ends:
            self._late[kind] += 1
            return None
        self._on_page()
        self._is_used = True
        try:
            return work(self._engine)
        except subprocess.TimeoutExpired:
            if kind == "page":
                self._failure = "a page took too long to recognize"
            else:
                self._late[kind] += 1
        except (OSError, ValueError, RuntimeError) as error:
            self._failure = one_line(str(error))
        finally:
            self._on_page()
        return None

    def notes(self) -> Iterator[str]:
        """What was not recognized, and what to do about it."""
        if self._without_engine["page"]:
            yield f"is a scan; {HOW_TO_READ} it" if self.is_wanted else "is a scan, and recognizing scans is turned off"
        elif self._without_engine["picture"] and self.is_wanted:
            yield f"has pictures that may have text in them; {HOW_TO_READ} them"
        missing = self._engine.lacks(self._options.languages) if self._engine and self._is_used else ()
        if missing:
            packages = " ".join(f"tesseract-ocr-{name.replace('_', '-').lower()}" for name in missing)
            without = f"its pictures were read without {', '.join(missing)}, which Tesseract lacks here"
            yield one_line(f"{without}: apt install {packages}")
        if self._late["page"]:
            yield f"{self._late['page']:,} scanned pages were left out: recognizing them took too long"
        if self._late["picture"]:
            yield f"{self._late['picture']:,} of its pictures were not read: reading them took too long"
        if self._failure:
            yield f"some of its scans or pictures could not be recognized ({self._failure})"
