"""Pictures of pages."""

from __future__ import annotations

import io
from typing import TYPE_CHECKING, Final, Literal

from satchel.indexing.documents.kinds import is_picture, kind_of
from satchel.indexing.documents.tidy import unreadable
from satchel.models.document import Unreadable

if TYPE_CHECKING:
    from PIL.Image import Image

PictureFormat = Literal["jpeg", "png", "webp"]

_MOST_PIXELS: Final = 40_000_000
_MOST_WIDTH: Final = 10_000
_QUALITY: Final = 85
_WEBP_SIDE: Final = 16_383


def render_page(
    data: bytes, name: str, page: int, *, width: int | None = None, dpi: int = 150, format: PictureFormat = "jpeg"
) -> bytes | Unreadable:
    """A page of a PDF or a frame of a picture, `width` pixels wide, else at `dpi` (a picture: as it is)."""
    kind = kind_of(name, data)
    if isinstance(kind, Unreadable):
        return kind
    if width is not None and not 1 <= width <= _MOST_WIDTH:
        return unreadable(f"cannot be {width} pixels wide")
    try:
        if kind == "pdf":
            image = _of_pdf(data, page, width, dpi)
        elif is_picture(kind):
            image = _of_picture(data, page, width)
        else:
            return unreadable(f"has no page pictures: it is a {kind.upper()}")
        return image if isinstance(image, Unreadable) else _encoded(image, format)
    except ModuleNotFoundError:
        return Unreadable("needs Satchel's extra documents to be shown")
    except (MemoryError, ValueError, OSError):
        return Unreadable("cannot be shown; it is probably damaged")


def _of_pdf(data: bytes, page: int, width: int | None, dpi: int) -> Image | Unreadable:
    import pypdfium2

    from satchel.indexing.documents.pdf import open_pdf, picture_of

    file = open_pdf(data)
    if isinstance(file, Unreadable):
        return file

    def scale(wide: float, high: float) -> float:
        wanted = width / wide if width else max(1, min(dpi, 1200)) / 72
        return float(min(wanted, (_MOST_PIXELS / (wide * high)) ** 0.5, _WEBP_SIDE / max(wide, high)))

    with file:
        if not 1 <= page <= len(file):
            return unreadable(f"has no page {page}")
        try:
            return picture_of(file, page, scale)
        except pypdfium2.PdfiumError:
            return unreadable(f"has a damaged page {page}")


def _of_picture(data: bytes, page: int, width: int | None) -> Image | Unreadable:
    from satchel.indexing.documents.pictures import frame_at, with_picture

    def frame(image: Image) -> Image | Unreadable:
        found = frame_at(image, page)
        if found is None:
            return unreadable(f"has no page {page}")
        wide, high = found.size
        scale = min((width or wide) / wide, (_MOST_PIXELS / (wide * high)) ** 0.5, _WEBP_SIDE / max(wide, high))
        size = (max(1, round(wide * scale)), max(1, round(high * scale)))
        return found.copy() if size == found.size else found.resize(size)

    return with_picture(data, frame)


def _encoded(image: Image, format: PictureFormat) -> bytes:
    out = io.BytesIO()
    image.convert("RGB").save(out, format.upper(), **({} if format == "png" else {"quality": _QUALITY}))
    return out.getvalue()
