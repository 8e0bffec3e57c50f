"""OCR of a document's scans and pictures: engines, time limits, and notes on failures."""

from __future__ import annotations

import importlib.util
import io
import os
import re
import shutil
import subprocess
import time
from collections import Counter, defaultdict
from collections.abc import Callable, Iterator
from contextlib import suppress
from functools import lru_cache
from itertools import pairwise
from typing import TYPE_CHECKING, Any, Final, NamedTuple, TypeVar

from satchel.indexing.confine import dying_with_us
from satchel.indexing.documents.tidy import one_line, tidy

if TYPE_CHECKING:
    from PIL.Image import Image


HOW_TO_READ: Final = "install tesseract-ocr or Satchel's extra `ocr` to read"

_PAGE_SECONDS: Final = 60  # for a page by Tesseract; a slower page would use up the time of the document
_LANGUAGES: Final = re.compile(r"[A-Za-z0-9_]{2,40}(?:\+[A-Za-z0-9_]{2,40}){0,9}")

# OCR works best on letters about thirty pixels high; larger pictures cost time and give no more text.
_MAX_SIDE_PIXELS: Final = 3600
_MIN_SIDE_PIXELS: Final = 1000  # smaller pages are doubled in size: their letters are too small
_MIN_CHART_SIDE_PIXELS: Final = 1600  # labels of charts are smaller than the letters of pages

# Less confident words are mostly lines and dots taken for letters.
_MIN_CONFIDENCE_PERCENT: Final = 50.0
_MIN_CONFIDENCE_SHARE: Final = 0.6  # the same on the scale of RapidOCR, from 0 to 1
_MIN_AXIS_CONFIDENCE_PERCENT: Final = 70.0  # horizontal labels, turned with the axis, look like letters too
_MIN_PHOTO_CONFIDENCE_PERCENT: Final = 90.0  # grain looks like letters here and there
_MIN_SURE_WORDS_SHARE: Final = 0.5  # with fewer sure words, the picture is a photograph
_MIN_AXIS_LETTERS: Final = 3  # an axis has a word for a name; fewer letters are numbers misread

# The left part of a chart, with the vertical name of the axis.
_AXIS_WIDTH_SHARE: Final = 0.18
_TSV_COLUMNS: Final = 12  # fixed by Tesseract's TSV format
_SPARSE: Final = ("--psm", "11", "tsv")
_LABEL_SECONDS: Final = 20.0  # for a second pass over a page; after a time-out the text of the first pass remains
_USUAL: Final = "eng"
_NO_LANGUAGES: Final = ("osd", "equ", "snum")

# A page of prose has this many words, and this many in a line.
_MIN_PROSE_WORDS: Final = 40
_MIN_PROSE_WORDS_PER_LINE: Final = 5  # lines of tables and charts have fewer
_MAX_LABEL_WORDS: Final = 3  # so short a line must match in every word; longer lines may have words misread
_NEARLY_ALL_SHARE: Final = 0.8  # of the words of the text; the order of the labels is used above
_AROUND_WORDS: Final = ".,;:!?()[]{}|'\"“”‘’*_~-—–"

# Two columns: few lines cross the gap between the columns, and lines fill their column.
_MAX_ACROSS_SHARE: Final = 0.2
_MIN_COLUMN_LINES: Final = 3  # fewer lines side by side are a heading or a table
_MIN_FILLED_SHARE: Final = 0.5  # of the column's width, by the median line; cells of tables fill less


class Engine(NamedTuple):
    """An OCR engine: a function for pages (prose, in reading order), and a function for chart labels with a time limit.

    `lacks` returns the requested languages that are not installed; the engine reads with the remaining languages.
    """

    text: Callable[[Image, str], str]
    labels: Callable[[Image, str, float], list[Line]]
    lacks: Callable[[str], tuple[str, ...]]


def engine_named(name: str = "") -> Engine | None:
    """The engine with the given name, or the first installed engine; None if none is installed."""
    if name in ("", "tesseract") and shutil.which("tesseract"):
        return Engine(with_tesseract, labels_by_tesseract, languages_missing)
    has_rapidocr = importlib.util.find_spec("rapidocr") and importlib.util.find_spec("onnxruntime")
    if name in ("", "rapidocr") and has_rapidocr:
        return Engine(with_rapidocr, labels_by_rapidocr, lambda _: ())
    return None


def with_tesseract(image: Image, languages: str) -> str:
    """The text in a picture, by the program `tesseract`, given only the picture.

    A picture without prose is read a second time for labels: as a page, a chart loses its numbers.
    """
    text = _joined(_tesseract(_prepared(image), languages, _PAGE_SECONDS))
    if not _is_prose(text):
        with suppress(subprocess.TimeoutExpired):
            return with_labels(text, labels_by_tesseract(image, languages, _LABEL_SECONDS))
    return text


def with_labels(text: str, labels: list[Line]) -> str:
    """The text plus labels missing from the text; in label order if the labels contain nearly all of the text."""
    own, in_labels = Counter(_tokens(text)), Counter(token for line in labels for token in _tokens(line.text))
    if in_labels.total() > own.total() and (own & in_labels).total() >= _NEARLY_ALL_SHARE * own.total():
        more = "\n".join(line for line in text.split("\n") if not _take_words(line, in_labels))
        return tidy("\n".join(in_rows(labels)) + f"\n\n{more}").strip()
    more = "\n".join(in_rows([line for line in labels if not _take_words(line.text, own)]))
    return f"{text}\n\n{more}".strip("\n") if more else text


def _take_words(line: str, words: Counter[str]) -> bool:
    """True if `words` contains the line, whose words are then removed from `words`; a long line may differ a little."""
    tokens = Counter(_tokens(line))
    lacking = (tokens - words).total()
    if lacking and (tokens.total() <= _MAX_LABEL_WORDS or lacking > tokens.total() / 2):
        return False
    words.subtract(tokens & words)
    return True


def _tokens(text: str) -> list[str]:
    return [token for word in text.casefold().split() if (token := word.strip(_AROUND_WORDS))]


def _is_prose(text: str) -> bool:
    lines = [line.split() for line in text.split("\n") if line.strip()]
    words = sum(map(len, lines))
    return words >= _MIN_PROSE_WORDS and words >= _MIN_PROSE_WORDS_PER_LINE * len(lines)


def languages_missing(languages: str) -> tuple[str, ...]:
    """Languages missing from Tesseract; empty if Tesseract does not list any."""
    has = _languages_there()
    return tuple(dict.fromkeys(name for name in languages.split("+") if name not in has)) if has else ()


def _languages_to_use(languages: str) -> str:
    """The installed languages among the given; if none, English or else the first installed language."""
    has = _languages_there()
    there = [name for name in languages.split("+") if name in has] if has else languages.split("+")
    return "+".join(there or [name for name in (_USUAL, *has) if name in has and name not in _NO_LANGUAGES][:1])


@lru_cache(maxsize=1)
def _languages_there() -> tuple[str, ...]:
    try:
        done = _run_tesseract("--list-langs", timeout=_PAGE_SECONDS)
    except (OSError, subprocess.TimeoutExpired):
        return ()
    names = done.stdout.decode("utf-8", "replace").splitlines()[1:]
    return tuple(name.strip() for name in names if _LANGUAGES.fullmatch(name.strip()))


def labels_by_tesseract(image: Image, languages: str, seconds: float) -> list[Line]:
    """The lines of text in a chart; lines along the vertical axis come last."""
    from PIL.Image import Transpose

    ends = time.monotonic() + seconds
    ready = _prepared(image, _MIN_CHART_SIDE_PIXELS)
    lines = _lines_of_tsv(_tesseract(ready, languages, seconds, *_SPARSE), _MIN_CONFIDENCE_PERCENT)
    axis = ready.crop((0, 0, max(1, round(ready.width * _AXIS_WIDTH_SHARE)), ready.height)).transpose(
        Transpose.ROTATE_270
    )
    darkest, lightest = axis.getextrema()
    if darkest != lightest:
        seconds = max(1.0, ends - time.monotonic())
        for line in _lines_of_tsv(_tesseract(axis, languages, seconds, *_SPARSE), _MIN_AXIS_CONFIDENCE_PERCENT):
            if sum(map(str.isalpha, line.text)) >= _MIN_AXIS_LETTERS:
                below = ready.height + line.top
                lines.append(Line(0.0, below, 1.0, below + line.bottom - line.top, line.text))
    return lines


def _run_tesseract(*arguments: str, **how: Any) -> subprocess.CompletedProcess[bytes]:
    program = shutil.which("tesseract")
    assert program is not None
    # preexec_fn makes a single system call, which is safe between fork and exec.
    return subprocess.run(  # noqa: S603 - the program's own path, and arguments of ours
        [program, *arguments], capture_output=True, check=False, preexec_fn=dying_with_us(), **how
    )


def _tesseract(image: Image, languages: str, seconds: float, *how: str) -> str:
    if not _LANGUAGES.fullmatch(languages):
        raise OSError(f"{languages!r} are not Tesseract languages")
    data = io.BytesIO()
    image.save(data, "PPM")
    arguments = ("stdin", "stdout", "-l", _languages_to_use(languages), *how)
    one_thread = {**os.environ, "OMP_THREAD_LIMIT": "1"}
    done = _run_tesseract(*arguments, input=data.getvalue(), timeout=seconds, env=one_thread)
    if done.returncode:
        complaint = done.stderr.decode("utf-8", "replace").strip().splitlines()
        raise OSError(f"tesseract failed: {complaint[-1] if complaint else done.returncode}")
    return done.stdout.decode("utf-8", "replace")


def _lines_of_tsv(table: str, sure_percent: float) -> list[Line]:
    """Lines of the words recognized with at least `sure_percent` confidence."""
    rows = [cells for row in table.splitlines()[1:] if len(cells := row.split("\t")) == _TSV_COLUMNS]
    words = [cells for cells in rows if cells[-1].strip()]
    sure = [cells for cells in words if float(cells[-2]) >= sure_percent]
    if len(sure) < _MIN_SURE_WORDS_SHARE * len(words):
        # A photograph: grain looks like letters here and there.
        sure = [cells for cells in sure if float(cells[-2]) >= _MIN_PHOTO_CONFIDENCE_PERCENT]
    lines: dict[tuple[str, ...], list[Line]] = defaultdict(list)
    for cells in sure:
        left, top, width, height = map(float, cells[6:10])
        lines[tuple(cells[1:5])].append(Line(left, top, left + width, top + height, tidy(cells[-1]).strip()))
    return [_united(words) for words in lines.values()]


def _united(words: list[Line]) -> Line:
    lefts, tops, rights, bottoms, texts = zip(*words, strict=True)
    return Line(min(lefts), min(tops), max(rights), max(bottoms), " ".join(texts))


def with_rapidocr(image: Image, languages: str) -> str:  # noqa: ARG001 - its one model reads Latin and Chinese
    """The text in a picture, by RapidOCR, with lines sorted into reading order."""
    lines = _lines_by_rapidocr(_prepared(image))
    return tidy("\n\n".join("\n".join(rows) for rows in in_reading_order(lines) if rows))


def labels_by_rapidocr(image: Image, languages: str, seconds: float) -> list[Line]:  # noqa: ARG001 - see above
    """The lines in a chart, including vertical lines."""
    return _lines_by_rapidocr(_prepared(image), _MIN_CONFIDENCE_SHARE)


def _lines_by_rapidocr(image: Image, sure_share: float = 0.0) -> list[Line]:
    import numpy

    result = _rapidocr()(numpy.asarray(image.convert("RGB"))[:, :, ::-1])
    if result.boxes is None or result.txts is None:
        return []
    lines = []
    for box, text, score in zip(result.boxes.tolist(), result.txts, result.scores, strict=True):
        if float(score) >= sure_share:
            xs, ys = zip(*box, strict=True)
            lines.append(Line(float(min(xs)), float(min(ys)), float(max(xs)), float(max(ys)), str(text)))
    return lines


@lru_cache(maxsize=1)
def _rapidocr() -> Any:
    from rapidocr import RapidOCR

    one_thread = {f"EngineConfig.onnxruntime.{kind}_op_num_threads": 1 for kind in ("intra", "inter")}
    return RapidOCR(params={"Global.log_level": "critical", **one_thread})


class Line(NamedTuple):
    """A line of text and the line's bounding box."""

    left: float
    top: float
    right: float
    bottom: float
    text: str

    @property
    def middle(self) -> float:
        """The vertical centre."""
        return (self.top + self.bottom) / 2


def in_reading_order(lines: list[Line]) -> list[list[str]]:
    """Rows of text, column by column; a line across all columns separates the rows above from the rows below."""
    gap = _gap_between_columns(lines)
    if gap is None:
        return [in_rows(lines)]
    out: list[list[str]] = []
    band: list[Line] = []

    def finish() -> None:
        for is_left in (True, False):
            if side := [line for line in band if (line.right <= gap) is is_left]:
                out.extend(in_reading_order(side))
        band.clear()

    for line in sorted(lines, key=lambda line: line.top):
        if line.left < gap < line.right:
            finish()
            out.append([line.text])
        else:
            band.append(line)
    finish()
    return out


def _gap_between_columns(lines: list[Line]) -> float | None:
    edges = sorted({line.right for line in lines} | {line.left for line in lines})
    gaps: list[tuple[int, float]] = []
    for before, after in pairwise(edges):
        at = (before + after) / 2
        left = [line for line in lines if line.right <= at]
        right = [line for line in lines if line.left >= at]
        across = len(lines) - len(left) - len(right)
        if min(len(left), len(right)) < _MIN_COLUMN_LINES or across > _MAX_ACROSS_SHARE * len(lines):
            continue
        if _is_column(left) and _is_column(right) and _side_by_side(left, right):
            gaps.append((across, at))
    return min(gaps)[1] if gaps else None


def _is_column(lines: list[Line]) -> bool:
    """True if the lines fill the column width as prose does; table cells do not."""
    width = max(line.right for line in lines) - min(line.left for line in lines)
    widths = sorted(line.right - line.left for line in lines)
    return widths[len(widths) // 2] >= _MIN_FILLED_SHARE * width and sum(len(line.text) for line in lines) >= 12 * len(
        lines
    )


def _side_by_side(left: list[Line], right: list[Line]) -> bool:
    bottom = min(max(line.bottom for line in side) for side in (left, right))
    return bottom > max(min(line.top for line in side) for side in (left, right))


def in_rows(lines: list[Line]) -> list[str]:
    """Lines from top to bottom; lines side by side are joined into a row."""
    rows: list[list[Line]] = []
    for line in sorted(lines, key=lambda line: line.middle):
        if rows and line.middle < rows[-1][0].bottom:
            rows[-1].append(line)
        else:
            rows.append([line])
    return [" ".join(line.text for line in sorted(row)) for row in rows]


def _prepared(image: Image, small_side: int = _MIN_SIDE_PIXELS) -> Image:
    """The picture in grey, at a size suitable for OCR."""
    grey = image.convert("L")
    side = max(grey.size)
    if side > _MAX_SIDE_PIXELS:
        grey.thumbnail((_MAX_SIDE_PIXELS, _MAX_SIDE_PIXELS))
    elif side < small_side:
        grey = grey.resize((grey.width * 2, grey.height * 2))
    return grey


def _joined(text: str) -> str:
    """Recognized lines as paragraphs, with words rejoined that a line end broke."""
    text = tidy(text.replace("\f", "\n\n"))
    return re.sub(r"(?<=[a-z])-\n(?=[a-z])", "", text)


class ReadOptions(NamedTuple):
    """OCR settings and languages, and limits on the size and reading time of a document."""

    ocr: bool = True
    languages: str = "eng"
    """Tesseract's language names, joined by `+`: `eng+deu`."""
    most_pages: int = 5000
    most_chars: int = 30_000_000
    read_seconds: float = 90.0
    """Time limit for the pages of a PDF; later pages are left out."""
    ocr_seconds: float = 600.0
    """Time limit for the scans of a document, in addition to reading."""
    engine: str = ""
    """`tesseract` or `rapidocr`; empty for the first installed engine."""
    picture_seconds: float = 30.0
    """Time limit for pictures on pages with text, in addition to scans."""


_MAX_PICTURE_SECONDS: Final = 20.0  # a slower picture would use up the time of the document (picture_seconds)

Result = TypeVar("Result")


class DocumentSource(NamedTuple):
    """Input of a document reader: the kind and bytes of a file, the reading limits, and the OCR."""

    kind: str
    data: bytes
    options: ReadOptions
    recognition: Recognition


class Recognition:
    """Recognizes until the time limit; calls `on_page` before and after each page and picture."""

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
        """True if OCR is turned on, with or without an installed engine."""
        return self._options.ocr

    def text_in(self, image: Image) -> str | None:
        """The text in the picture of a page, or None if not recognized."""
        options = self._options
        return self._recognize("page", options.ocr_seconds, lambda engine: engine.text(image, options.languages))

    def labels_in(self, picture: Callable[[], Image | None]) -> list[Line]:
        """The lines in a picture on a page; calls `picture` only if an engine and time are available."""
        options = self._options

        def labels(engine: Engine) -> list[Line]:
            image = picture()
            seconds = min(_MAX_PICTURE_SECONDS, options.read_seconds)
            return [] if image is None else engine.labels(image, options.languages, seconds)

        return self._recognize("picture", options.picture_seconds, labels) or []

    def _recognize(self, kind: str, seconds: float, work: Callable[[Engine], Result]) -> Result | None:
        """The engine's result for a page or picture; None without an engine, without time, or after a failure."""
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
        """Notes on scans and pictures left out, each with a remedy if there is any."""
        if self._without_engine["page"]:
            yield f"is a scan; {HOW_TO_READ} it" if self.is_wanted else "is a scan, and the setting `ocr` is off"
        elif self._without_engine["picture"] and self.is_wanted:
            yield f"has pictures that may contain text; {HOW_TO_READ} them"
        missing = self._engine.lacks(self._options.languages) if self._engine and self._is_used else ()
        if missing:
            packages = " ".join(f"tesseract-ocr-{name.replace('_', '-').lower()}" for name in missing)
            without = f"its pictures were read without {', '.join(missing)}, which Tesseract lacks"
            yield one_line(f"{without}: apt install {packages}")
        if self._late["page"]:
            yield f"{self._late['page']:,} scanned pages were left out: recognizing them took too long"
        if self._late["picture"]:
            yield f"{self._late['picture']:,} of its pictures were not read: reading them took too long"
        if self._failure:
            yield f"some of its scans or pictures could not be recognized ({self._failure})"
