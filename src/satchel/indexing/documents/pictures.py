"""Pictures as documents with a page per frame, and document pages rendered as images."""

from __future__ import annotations

import io
import warnings
from collections.abc import Callable
from typing import TYPE_CHECKING, Final, Literal, TypeVar

from satchel.indexing.documents.read_document import kind_of
from satchel.indexing.documents.recognition import DocumentSource
from satchel.indexing.documents.tidy import CannotRead, unreadable
from satchel.models.document import Document, Page, Unreadable
from satchel.models.files import DOCUMENT_KINDS, PageUnit

if TYPE_CHECKING:
    from PIL.Image import Image


MOST_PIXELS: Final = 100_000_000  # 300 MB as RGB, of the 2 GB for a child (MEMORY_BYTES)
T = TypeVar("T")

_MIN_SIDE_PIXELS: Final = 64  # smaller pictures are icons, without room for text
_FORMATS: Final = ("PNG", "JPEG", "TIFF", "WEBP", "BMP", "GIF")
_MANY_FRAMES: Final = ("TIFF",)


def read_picture(source: DocumentSource) -> Document | Unreadable:
    """The text in a picture; a picture without text is an empty page."""
    _, data, options, recognition = source

    def read(image: Image) -> Document:
        count = getattr(image, "n_frames", 1) if image.format in _MANY_FRAMES else 1
        pages: list[Page] = []
        for number in range(1, min(count, options.most_pages) + 1):
            frame = frame_at(image, number)
            text = recognition.text_in(frame) if frame and min(frame.size) >= _MIN_SIDE_PIXELS else None
            pages.append(Page(number, text or "", pictures=1, is_recognized=bool(text)))
        notes = list(recognition.notes())
        if count > len(pages):
            notes.append(f"has {count:,} frames; the first {len(pages):,} were read")
        return Document(tuple(pages), notes=tuple(notes))

    return with_picture(data, read)


def with_picture(data: bytes, work: Callable[[Image], T]) -> T | Unreadable:
    """The result of `work` on the opened picture; Unreadable for a damaged picture or a decompression bomb."""
    from PIL import Image

    with warnings.catch_warnings():
        # Pillow's limit is lower than MOST_PIXELS, which is checked below by the header, before pixels are decoded.
        warnings.simplefilter("ignore", Image.DecompressionBombWarning)
        try:
            with Image.open(io.BytesIO(data), formats=_FORMATS) as image:
                width, height = image.size
                if width * height > MOST_PIXELS:
                    return unreadable(f"is too large a picture: {width:,} × {height:,} pixels")
                return work(image)
        except Image.DecompressionBombError:
            return Unreadable("is too large a picture")
        except Exception:  # plug-ins raise what they like
            return Unreadable("is a damaged picture")


def flattened(image: Image) -> Image:
    """The picture as displayed: upright, with transparency on white."""
    from PIL import Image, ImageOps

    upright = ImageOps.exif_transpose(image)
    if upright.mode in ("RGBA", "LA", "PA") or "transparency" in upright.info:
        seen = upright.convert("RGBA")
        ground = Image.new("RGBA", seen.size, "white")
        return Image.alpha_composite(ground, seen).convert("RGB")
    return upright if upright.mode == "L" else upright.convert("RGB")


def frame_at(image: Image, number: int) -> Image | None:
    """The frame with the given number, counted from 1; None if there is no frame with this number."""
    if number != 1 and (image.format not in _MANY_FRAMES or number > getattr(image, "n_frames", 1)):
        return None
    image.seek(number - 1)
    if image.width * image.height > MOST_PIXELS:
        raise ValueError(f"a frame of {image.width:,} × {image.height:,} pixels")
    return flattened(image)


PictureFormat = Literal["jpeg", "png", "webp"]

_MAX_RENDERED_PIXELS: Final = 40_000_000  # 120 MB as RGB; larger pages are scaled down
_MAX_WIDTH_PIXELS: Final = 10_000  # wider than screens; protects memory from hostile requests
_QUALITY_PERCENT: Final = 85  # of JPEG and WebP; less blurs letters, more makes larger files
_MAX_WEBP_SIDE_PIXELS: Final = 16_383  # limit of the WebP format


def render_page(
    data: bytes, name: str, page: int, *, width: int | None = None, dpi: int = 150, format: PictureFormat = "jpeg"
) -> bytes | Unreadable:
    """A page of a PDF or a frame of a picture, `width` pixels wide, else at `dpi` (pictures keep the original size)."""
    kind = kind_of(name, data)
    if isinstance(kind, Unreadable):
        return kind
    if width is not None and not 1 <= width <= _MAX_WIDTH_PIXELS:
        return unreadable(f"cannot be {width} pixels wide")
    try:
        if kind == "pdf":
            image: Image | Unreadable = _of_pdf(data, page, width, dpi)
        elif DOCUMENT_KINDS.get(kind).unit is PageUnit.PICTURE:
            image = _of_picture(data, page, width)
        else:
            return unreadable(f"has no page pictures: it is a {kind.upper()}")
        return image if isinstance(image, Unreadable) else _encoded(image, format)
    except CannotRead as refusal:
        return unreadable(str(refusal))
    except ModuleNotFoundError:
        return Unreadable("needs Satchel's extra `documents` for page pictures")
    except (MemoryError, ValueError, OSError):
        return Unreadable("cannot be rendered; it is probably damaged")


def _of_pdf(data: bytes, page: int, width: int | None, dpi: int) -> Image:
    import pypdfium2

    from satchel.indexing.documents.pdf import open_pdf, picture_of

    def scale_for(wide: float, high: float) -> float:
        scale = width / wide if width else max(1, min(dpi, 1200)) / 72
        return float(min(scale, (_MAX_RENDERED_PIXELS / (wide * high)) ** 0.5, _MAX_WEBP_SIDE_PIXELS / max(wide, high)))

    with open_pdf(data) as file:
        if not 1 <= page <= len(file):
            raise CannotRead(f"has no page {page}")
        try:
            return picture_of(file, page, scale_for)
        except pypdfium2.PdfiumError:
            raise CannotRead(f"has a damaged page {page}") from None


def _of_picture(data: bytes, page: int, width: int | None) -> Image | Unreadable:
    def frame(image: Image) -> Image | Unreadable:
        picture = frame_at(image, page)
        if picture is None:
            return unreadable(f"has no page {page}")
        wide, high = picture.size
        scale = min(
            (width or wide) / wide,
            (_MAX_RENDERED_PIXELS / (wide * high)) ** 0.5,
            _MAX_WEBP_SIDE_PIXELS / max(wide, high),
        )
        size = (max(1, round(wide * scale)), max(1, round(high * scale)))
        return picture.copy() if size == picture.size else picture.resize(size)

    return with_picture(data, frame)


def _encoded(image: Image, format: PictureFormat) -> bytes:
    out = io.BytesIO()
    image.convert("RGB").save(out, format.upper(), **({} if format == "png" else {"quality": _QUALITY_PERCENT}))
    return out.getvalue()
