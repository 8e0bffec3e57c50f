"""PDF pages in file order, read by LiteParse; PDFium reads the pages on which LiteParse fails.

Running heads, running feet and page numbers are removed only if they recur, and only from the edges of pages; the
first occurrence of a running head stays.
"""

from __future__ import annotations

import re
import time
from collections import Counter
from collections.abc import Callable, Iterator, Sequence
from contextlib import closing, suppress
from dataclasses import dataclass, field
from functools import partial
from io import BytesIO
from itertools import islice
from typing import TYPE_CHECKING, Any, Final, NamedTuple

from satchel.indexing.documents.figures import Figure, Picture, figures_on, rendered, text_in_pictures
from satchel.indexing.documents.page_check import checked
from satchel.indexing.documents.recognition import DocumentSource, ReadOptions, Recognition
from satchel.indexing.documents.tidy import CannotRead, captions_in, one_line, tidy
from satchel.models.document import Bookmark, Document, Page

if TYPE_CHECKING:
    from PIL.Image import Image


# Text on fewer pages may repeat by chance.
_MIN_REPEATED_PAGES: Final = 3
_REPEATED_PAGES_SHARE: Final = 0.5  # of pages with text: heads of left and right pages may differ
_EDGE_BLOCKS: Final = 2  # at the top and at the bottom: a running head and a page number
_MAX_EDGE_CHARS: Final = 160  # longer blocks are paragraphs of the text
_MAX_TITLE_WORDS: Final = 3  # with a number, so short a line may be a title ("Question 3") and stays
_EMPHASIS: Final = re.compile(r"[*_`#\\]+")
_NUMBER: Final = re.compile(r"\d{1,5}")
_BARE: Final = re.compile(r"\W*(?:page|seite|p\.|s\.)?\W*0\W*(?:(?:of|von|/)\W*\d{1,5})?\W*")


class _Edge(NamedTuple):
    """A text block at a page's edge: the page, the block's index, the edge, and the normalized text."""

    page: int
    block: int
    at_top: bool
    text: str


def without_furniture(pages: Sequence[str]) -> list[str]:
    """The pages' Markdown without running heads, running feet and page numbers."""
    blocks = [page.split("\n\n") for page in pages]
    edges = [edge for number, page in enumerate(blocks) for edge in _edges(number, page)]
    enough = max(_MIN_REPEATED_PAGES, _REPEATED_PAGES_SHARE * sum(1 for page in pages if page.strip()))
    counts = Counter((at_top, text) for _, at_top, text in {(edge.page, edge.at_top, edge.text) for edge in edges})
    numbered = Counter((edge.at_top, shape) for edge in edges for shape in set(_shapes(edge)))
    seen_heads: set[str] = set()
    removed: set[tuple[int, int]] = set()
    for edge in edges:
        if not any(block.strip() for at, block in enumerate(blocks[edge.page]) if at != edge.block):
            continue  # the page has nothing else to say
        shapes = [(shape, numbered[edge.at_top, shape]) for shape in _shapes(edge)]
        if any(_BARE.fullmatch(shape[0]) and count >= enough for shape, count in shapes):
            removed.add((edge.page, edge.block))
            continue
        shape = next((shape for shape, count in shapes if _is_head(shape[0]) and count >= _MIN_REPEATED_PAGES), None)
        if counts[edge.at_top, edge.text] >= enough or shape is not None:
            key = shape[0] if shape else edge.text
            if key in seen_heads:
                removed.add((edge.page, edge.block))
            seen_heads.add(key)
    return [
        "\n\n".join(block for at, block in enumerate(page) if (number, at) not in removed).strip("\n")
        for number, page in enumerate(blocks)
    ]


def _edges(number: int, blocks: list[str]) -> Iterator[_Edge]:
    places = [at for at, block in enumerate(blocks) if block.strip() and block.strip() != "---"]
    top = places[:_EDGE_BLOCKS]
    for at in dict.fromkeys([*top, *places[-_EDGE_BLOCKS:]]):
        block = blocks[at]
        # Tables, lists and code are content.
        if len(block) <= _MAX_EDGE_CHARS and "\n" not in block and not block.startswith(("|", "- ", "```")):
            yield _Edge(number, at, at in top, " ".join(_EMPHASIS.sub("", block).split()).casefold())


def _shapes(edge: _Edge) -> Iterator[tuple[str, int]]:
    """The text with the first or last number replaced by 0, and the offset of the number from the page index."""
    numbers = list(_NUMBER.finditer(edge.text))
    for number in dict.fromkeys([*numbers[:1], *numbers[-1:]]):
        yield f"{edge.text[: number.start()]}0{edge.text[number.end() :]}", int(number[0]) - edge.page


def _is_head(shape: str) -> bool:
    """True if a text with a number at either end is a running head; "Question 3" is too short."""
    words = shape.split()
    return len(words) > _MAX_TITLE_WORDS and "0" in (words[0], words[-1])


_BATCH_PAGES: Final = 64  # parsed at a time; larger batches overrun the time limit further
_SCAN_DPI: Final = 220  # less loses small letters, more costs time and memory
_MAX_SCAN_PIXELS: Final = 14_000_000  # bounds the time for OCR; larger pages are rendered at lower resolution
_MAX_FORM_LEVELS: Final = 4  # of nested form objects; bounds the search for pictures on hostile pages
_MAX_PAGE_OBJECTS: Final = 20_000  # bounds the search for pictures on pages with large drawings
_MAX_BOOKMARKS: Final = 20_000  # bounds a hostile table of contents; further entries are left out
_MAX_BOOKMARK_LEVELS: Final = 8  # bounds a hostile table of contents; deeper entries are left out
_EMPTY_FENCE: Final = re.compile(r"```\w*\s*```")

# A scan carries no more of a text layer than a stamp or a page number.
_MIN_TEXT_CHARS: Final = 24

_BROKEN_WORD: Final = re.compile(r"([a-zà-ÿ]{2,})(?:-\n|\x02)([a-zà-ÿ]{2,})", re.IGNORECASE)
_WORD: Final = re.compile(r"[a-zà-ÿ]{4,}", re.IGNORECASE)
# Emphasis (`**`) may close at the line break.
_STILL_BROKEN: Final = re.compile(r"(?<![a-zà-ÿ-])([a-zà-ÿ]{2,})-(\*{0,3}) ([a-zà-ÿ]{2,})(?![a-zà-ÿ-])", re.IGNORECASE)
_HYPHENATED: Final = re.compile(r"\b[a-zà-ÿ]{2,}-[a-zà-ÿ]{2,}\b", re.IGNORECASE)


@dataclass(slots=True)
class _Draft:
    """A page in progress."""

    markdown: str = ""
    text: str = ""
    pictures: int = 0
    recognized: bool = False
    is_unusable: bool = False
    """True if the letters of the page mean nothing."""
    figures: list[Figure] = field(default_factory=list)
    seen: str = ""


def read_pdf(source: DocumentSource) -> Document:
    """Every page of a PDF, including empty pages, numbered in file order."""
    _, data, options, recognition = source
    with open_pdf(data) as file:
        total = len(file)
        count = min(total, options.most_pages)
        if not count:
            raise CannotRead("has no pages")
        notes = [f"has {total:,} pages; the first {count:,} were read"] if count < total else []
        drafts, note = _drafts(data, file, count, options)
        notes += note
        _look_at_pictures(file, drafts, recognition)
        if recognition.is_wanted:
            _read_figures(file, drafts, recognition)
        notes += recognition.notes()
        return Document(tuple(_pages(drafts)), _title(file), tuple(_bookmarks(file, count)), tuple(notes))


def open_pdf(data: bytes) -> Any:
    """The PDF, opened by PDFium; raises CannotRead for an encrypted or damaged file."""
    import pypdfium2

    try:
        file = pypdfium2.PdfDocument(data)
        len(file)
    except pypdfium2.PdfiumError as error:
        if "password" in str(error).lower():
            raise CannotRead("is encrypted; save it without a password") from None
        raise CannotRead("is a damaged PDF: it cannot be opened") from None
    return file


def picture_of(file: Any, number: int, scale_for: Callable[[float, float], float], *, grey: bool = False) -> Image:
    """A page as an image; `scale_for` maps the width and height in points to a scale."""
    with closing(file[number - 1]) as page:
        width, height = page.get_size()
        return rendered(page, scale=scale_for(max(width, 1.0), max(height, 1.0)), grayscale=grey)


def _drafts(data: bytes, file: Any, count: int, options: ReadOptions) -> tuple[list[_Draft], list[str]]:
    """The pages within the limits of time and length, and a note on any pages left out."""
    ends = time.monotonic() + options.read_seconds
    parsed: dict[int, _Draft] = {}
    left = options.most_chars
    for number, draft in _by_liteparse(_without_looping_bookmarks(data, file), count):
        parsed[number] = draft
        left -= len(draft.markdown)
        if left < 0 or time.monotonic() > ends:
            break
    drafts: list[_Draft] = []
    left = options.most_chars
    for number in range(1, count + 1):
        if number not in parsed and time.monotonic() > ends:
            return drafts, [f"took too long to read; its first {len(drafts):,} pages were read"]
        draft = parsed.pop(number) if number in parsed else _by_pdfium(file, number)
        _check(file, number, draft)
        left -= len(draft.markdown)
        if left < 0:
            return drafts, [f"is longer than {options.most_chars:,} characters; the rest of it was not read"]
        drafts.append(draft)
    return drafts, []


def _without_looping_bookmarks(data: bytes, file: Any) -> bytes:
    """The PDF; a copy of its pages without bookmarks if these lead in a circle, in which LiteParse would be lost."""
    import pypdfium2

    if not _bookmarks_loop(file):
        return data
    with suppress(pypdfium2.PdfiumError), closing(pypdfium2.PdfDocument.new()) as copy, BytesIO() as made:
        copy.import_pages(file)
        copy.save(made)
        return made.getvalue()
    return data


def _bookmarks_loop(file: Any) -> bool:
    """True if a bookmark is reached twice."""
    import ctypes

    from pypdfium2 import raw

    seen: set[int | None] = set()
    waiting = [raw.FPDFBookmark_GetFirstChild(file, None)]
    while waiting and len(seen) <= _MAX_BOOKMARKS:
        bookmark = waiting.pop()
        if not bookmark:
            continue
        address = ctypes.cast(bookmark, ctypes.c_void_p).value
        if address in seen:
            return True
        seen.add(address)
        waiting.append(raw.FPDFBookmark_GetNextSibling(file, bookmark))
        waiting.append(raw.FPDFBookmark_GetFirstChild(file, bookmark))
    return False


def _by_liteparse(data: bytes, count: int) -> Iterator[tuple[int, _Draft]]:
    """Pages as Markdown, as far as LiteParse gets. LiteParse may neither download nor recognize anything."""
    from liteparse import LiteParse, ParseError

    parser = LiteParse(
        ocr_enabled=False,
        output_format="markdown",
        quiet=True,
        num_workers=1,
        image_mode="off",
        extract_links=False,
        keep_headers_footers=True,
        continue_on_page_error=True,
        max_pages=count,
    )
    with suppress(ParseError):
        for batch in parser.parse_batches(data, _BATCH_PAGES):
            for page in batch.result.pages:
                markdown = _EMPTY_FENCE.sub("", page.markdown)
                if 1 <= page.page_num <= count and (markdown.strip() or not page.text.strip()):
                    yield page.page_num, _Draft(tidy(markdown), page.text)
            if batch.end_page >= count:
                return


def _check(file: Any, number: int, draft: _Draft) -> None:
    """Correct a page where the places of its letters contradict it."""
    import pypdfium2

    with suppress(pypdfium2.PdfiumError), closing(file[number - 1]) as page:
        right = checked(draft.markdown, page)
        draft.is_unusable = right.fault is not None
        if right.markdown != draft.markdown:
            draft.markdown = tidy(right.markdown)


def _by_pdfium(file: Any, number: int) -> _Draft:
    import pypdfium2

    with suppress(pypdfium2.PdfiumError), closing(file[number - 1]) as page:
        text = page.get_textpage().get_text_bounded()
        return _Draft(tidy(_BROKEN_WORD.sub(r"\1\2", text)), text)
    return _Draft()


def _look_at_pictures(file: Any, drafts: list[_Draft], recognition: Recognition) -> None:
    """Count the pictures on every page, and recognize the text of scanned pages."""
    import pypdfium2

    for number, draft in enumerate(drafts, 1):
        try:
            chars = len("".join(draft.markdown.split()))
            draft.pictures, draft.figures = _pictures_on(file, number, chars if recognition.is_wanted else None)
            if not draft.is_unusable and (not draft.pictures or chars >= _MIN_TEXT_CHARS):
                continue
            draft.figures = []
            seen = recognition.text_in(picture_of(file, number, _scan_scale, grey=True))
        except (pypdfium2.PdfiumError, ValueError):
            continue
        if seen:
            draft.recognized = True
            draft.text = seen
            # OCR of the page mostly includes the stamp.
            is_all = draft.is_unusable or draft.markdown in seen
            draft.markdown = seen if is_all else f"{draft.markdown}\n\n{seen}".strip("\n")


def _read_figures(file: Any, drafts: list[_Draft], recognition: Recognition) -> None:
    """Recognize text in the pictures on pages with text."""
    pages = []
    for number, draft in enumerate(drafts, 1):
        pictures = [
            Picture(figure.key, partial(figure.cut_out, file, number), partial(figure.text_over, file, number))
            for figure in draft.figures
        ]
        pages.append((f"{draft.markdown}\n{draft.text}" if pictures else "", pictures))
    for draft, text in zip(drafts, text_in_pictures(pages, recognition), strict=True):
        draft.seen = text


def _pictures_on(file: Any, number: int, chars: int | None) -> tuple[int, list[Figure]]:
    """Number of pictures on a page, and the figures worth recognizing given the length of the page's text."""
    import pypdfium2.raw

    with closing(file[number - 1]) as page:
        things = islice(page.get_objects(max_depth=_MAX_FORM_LEVELS), _MAX_PAGE_OBJECTS)
        images = [thing for thing in things if thing.type == pypdfium2.raw.FPDF_PAGEOBJ_IMAGE]
        return len(images), list(figures_on(page, images, chars)) if images and chars is not None else []


def _scan_scale(width: float, height: float) -> float:
    return float(min(_SCAN_DPI / 72, (_MAX_SCAN_PIXELS / (width * height)) ** 0.5))


def _pages(drafts: list[_Draft]) -> Iterator[Page]:
    hyphenated = {word.casefold() for draft in drafts for word in _HYPHENATED.findall(draft.text)}
    markdowns = _rejoin_broken_words([_restore_hyphens(draft, hyphenated) for draft in drafts], hyphenated)
    texts = without_furniture(markdowns)
    for number, (draft, markdown) in enumerate(zip(drafts, texts, strict=True), 1):
        yield Page(
            number,
            markdown,
            captions=captions_in(tidy(draft.text), draft.markdown),
            seen=draft.seen,
            pictures=draft.pictures,
            is_recognized=draft.recognized,
        )


def _restore_hyphens(draft: _Draft, hyphenated: set[str]) -> str:
    """The Markdown with words broken at a hyphen hyphenated again, if the document hyphenates the word elsewhere."""
    markdown = draft.markdown
    for first, second in set(_BROKEN_WORD.findall(draft.text)):
        if f"{first}-{second}".casefold() in hyphenated:
            markdown = re.sub(rf"\b{first}{second}\b", f"{first}-{second}", markdown)
    return markdown


def _rejoin_broken_words(texts: list[str], hyphenated: set[str]) -> list[str]:
    """The texts with broken words (`ELE- MENT`) rejoined, if the document contains the whole word elsewhere."""
    if not any(_STILL_BROKEN.search(text) for text in texts):
        return texts
    words = {word.casefold() for text in texts for word in _WORD.findall(text)}

    def whole(broken: re.Match[str]) -> str:
        first, marks, second = broken.groups()
        if f"{first}{second}".casefold() in words:
            return f"{first}{second}{marks}"
        return f"{first}-{second}{marks}" if f"{first}-{second}".casefold() in hyphenated else broken[0]

    return [_STILL_BROKEN.sub(whole, text) for text in texts]


def _title(file: Any) -> str:
    title = one_line(tidy(file.get_metadata_value("Title")))
    # Defaults of programs for files without a title.
    return "" if title.casefold() in ("untitled", "(anonymous)") else title


def _bookmarks(file: Any, count: int) -> Iterator[Bookmark]:
    import pypdfium2

    with suppress(pypdfium2.PdfiumError):
        for entry in islice(file.get_toc(max_depth=_MAX_BOOKMARK_LEVELS), _MAX_BOOKMARKS):
            place = entry.get_dest()
            page = place.get_index() if place else None
            title = one_line(tidy(entry.get_title()))
            if title and page is not None and 0 <= page < count:
                yield Bookmark(entry.level + 1, title, page + 1)
