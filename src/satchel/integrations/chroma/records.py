"""Conversion of a document's pages to records of the two collections, and of any program's records back.

Fields whose names begin with `satchel_` are ours; all others are those of `PageMetadata`.
"""

from __future__ import annotations

import base64
import binascii
import hashlib
import math
import re
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from itertools import accumulate, pairwise
from typing import TYPE_CHECKING, Any, Final

import numpy as np

from satchel.errors import InvalidInput
from satchel.models.document import PageMetadata, compress_markdown, whole_markdown
from satchel.models.files import extension_of
from satchel.ports.page_embedder import PageView
from satchel.retrieval.late_interaction import pack_vectors, pooled, unpack_vectors
from satchel.text.visible import replace_surrogates

if TYPE_CHECKING:
    from numpy.typing import NDArray

    from satchel.models.document import Page
    from satchel.models.outline import OutlinePage
    from satchel.ports.embedder import Embedder
    from satchel.ports.page_embedder import PageEmbedder

STAMP: Final = "satchel_stamp"
"""Metadata field with the same value in all records of one writing of a document."""
PAGES: Final = "satchel_pages"
CHUNKS: Final = "satchel_chunks"
CHUNK: Final = "satchel_chunk"

MOST_REPEATED_CHARS: Final = 16_384
"""A packed text up to this length is stored on each page of the document, a longer text on the first page only."""

Metadata = dict[str, Any]
Upsert = dict[str, Any]

_PAGES_PER_UPSERT: Final = 32  # the pictures and vectors of these pages are in memory together
_CHUNKS_PER_UPSERT: Final = 256  # larger batches need fewer requests, and more memory for texts and vectors
_NO_VECTORS: Final = "about:blank"
_VECTORS: Final = "data:application/x-satchel-page-vectors;base64,"
_MAX_CHUNK_CHARS: Final = 1_200  # a few paragraphs: longer chunks blur their vector, shorter ones lose their context
_MAX_FIELD_CHARS: Final = 4_096  # Chroma Cloud's limit for a field (docs/chroma.md); longer paths and headings are cut
_BETWEEN: Final = " > "
_HEADING: Final = re.compile(r"^ {0,3}(#{1,6})[ \t]+(\S.*?)[ \t]*#*[ \t]*$")
_FENCE: Final = re.compile(r"^ {0,3}(```|~~~)")
_TABLE_RULE: Final = re.compile(r"^\s*\|?(?:\s*:?-{2,}:?\s*\|)+\s*(?::?-{2,}:?)?\s*\|?\s*$", re.MULTILINE)
_PARAGRAPH: Final = re.compile(r"(?<=\n)\n+(?=[^\n])")


@dataclass(frozen=True, slots=True, kw_only=True)
class DocumentToStore:
    """A document to be written, with functions for images and their paths."""

    doc_id: str
    filename: str
    pages: Sequence[Page]
    timestamp: str
    source_path: str | None = None
    outline: Sequence[OutlinePage] = ()
    images: Callable[[int], bytes] | None = None
    image_path: Callable[[int], str | None] | None = None
    thumb_path: Callable[[int], str | None] | None = None


def records_of(
    source: DocumentToStore, embedder: Embedder, page_embedder: PageEmbedder, most_field_chars: int | None
) -> tuple[Iterator[Upsert], Iterator[Upsert]]:
    """Lazy upsert arguments for the visual and the text collection; the same document gives the same arguments."""
    if page_embedder.needs_images and source.images is None:
        raise InvalidInput("images", None, f"is required: {page_embedder.name} needs the pictures of the pages")
    texts = [replace_surrogates(_page_text(page)) for page in source.pages]
    packed = compress_markdown(
        whole_markdown([(page.number, text) for page, text in zip(source.pages, texts, strict=True)])
    )
    metadatas = [page.to_dict() for page in _metadata(source, texts)]
    chunks = [chunks_of(text) for text in texts]
    stamp = _stamp(packed, metadatas, embedder.name, page_embedder.name)
    own_fields = {STAMP: stamp, PAGES: len(source.pages), CHUNKS: sum(map(len, chunks))}
    metadatas = [{**metadata, **own_fields} for metadata in metadatas]
    most = math.inf if most_field_chars is None else most_field_chars
    visual = _visual(source, texts, page_embedder, metadatas, packed=packed, most=most)
    return visual, _text(source, chunks, embedder, metadatas)


def _visual(
    source: DocumentToStore,
    texts: list[str],
    embedder: PageEmbedder,
    metadatas: list[Metadata],
    *,
    packed: str,
    most: float,
) -> Iterator[Upsert]:
    sees = source.images if embedder.needs_images and source.images else lambda _: b""
    pages_with_text = math.inf if len(packed) <= MOST_REPEATED_CHARS else 1
    for start in range(0, len(texts), _PAGES_PER_UPSERT):
        batch = range(start, min(start + _PAGES_PER_UPSERT, len(texts)))
        pages = [source.pages[i] for i in batch]
        vectors = embedder.embed_pages(
            [PageView(sees(page.number), texts[i], page.captions) for i, page in zip(batch, pages, strict=True)]
        )
        uris = [_VECTORS + base64.b64encode(pack_vectors(rows)).decode("ascii") for rows in vectors]
        whole = {"full_markdown_compressed": packed}
        yield {
            "ids": [f"{replace_surrogates(source.doc_id)}-{page.number}" for page in pages],
            "embeddings": [pooled(rows) for rows in vectors],
            "metadatas": [
                {**metadatas[i], **(whole if i < pages_with_text and len(packed) <= most else {})} for i in batch
            ],
            "uris": [uri if len(uri) <= most else _NO_VECTORS for uri in uris],
        }


def _text(
    source: DocumentToStore, chunks: list[list[str]], embedder: Embedder, metadatas: list[Metadata]
) -> Iterator[Upsert]:
    parts = [(i, number, part) for i, page in enumerate(chunks) for number, part in enumerate(page)]
    for start in range(0, len(parts), _CHUNKS_PER_UPSERT):
        batch = parts[start : start + _CHUNKS_PER_UPSERT]
        above = [f"{metadatas[i]['filename']}\n{metadatas[i].get('section_path', '')}" for i, _, _ in batch]
        yield {
            "ids": [f"{replace_surrogates(source.doc_id)}-{source.pages[i].number}-{number}" for i, number, _ in batch],
            "embeddings": list(
                embedder.embed_texts([f"{title}\n{part}" for title, (_, _, part) in zip(above, batch, strict=True)])
            ),
            "metadatas": [{**metadatas[i], CHUNK: number} for i, number, _ in batch],
            "documents": [part for _, _, part in batch],
        }


def vectors_in(uri: object, dimensions: int) -> NDArray[np.float32] | None:
    """The vectors in a page's record; None if absent, foreign, or of another dimension."""
    if not isinstance(uri, str) or not uri.startswith(_VECTORS):
        return None
    try:
        vectors = unpack_vectors(base64.b64decode(uri[len(_VECTORS) :], validate=True))
    except (InvalidInput, binascii.Error, ValueError):
        return None
    return vectors if vectors.shape[1] == dimensions else None


def chunks_of(text: str) -> list[str]:
    """The text split into chunks, at paragraphs if possible; joining the chunks restores the text."""
    borders = [0, *(match.end() for match in _PARAGRAPH.finditer(text)), len(text)]
    paragraphs = [text[a:b] for a, b in pairwise(borders) if a < b]
    chunks: list[str] = []
    for paragraph in (part for whole in paragraphs for part in _pieces(whole)):
        if chunks and len(chunks[-1]) + len(paragraph) <= _MAX_CHUNK_CHARS:
            chunks[-1] += paragraph
        else:
            chunks.append(paragraph)
    return chunks


def _pieces(paragraph: str) -> list[str]:
    """A paragraph split to the chunk size at line ends, else at spaces, else anywhere."""
    pieces = []
    while len(paragraph) > _MAX_CHUNK_CHARS:
        cut = (
            max(
                paragraph.rfind("\n", 0, _MAX_CHUNK_CHARS),
                paragraph.rfind(" ", _MAX_CHUNK_CHARS // 2, _MAX_CHUNK_CHARS),
            )
            + 1
        )
        pieces.append(paragraph[: cut or _MAX_CHUNK_CHARS])
        paragraph = paragraph[cut or _MAX_CHUNK_CHARS :]
    return [*pieces, paragraph]


def _metadata(source: DocumentToStore, texts: list[str]) -> list[PageMetadata]:
    structures = list(accumulate(texts, _structure, initial=_Structure()))[1:]
    known = {page.number: page for page in source.outline}
    pages = []
    for page, text, structure in zip(source.pages, texts, structures, strict=True):
        outline = known.get(page.number)
        path = outline.section_path if outline else _BETWEEN.join(structure.path)
        parent = outline.parent_heading if outline else next(reversed(structure.path), "")
        pages.append(
            PageMetadata(
                doc_id=replace_surrogates(source.doc_id),
                filename=replace_surrogates(source.filename),
                page=page.number,
                extension=extension_of(source.filename),
                timestamp=replace_surrogates(source.timestamp),
                source_path=_optional(source.source_path),
                image_path=_optional(source.image_path(page.number) if source.image_path else None),
                thumb_path=_optional(source.thumb_path(page.number) if source.thumb_path else None),
                section_path=_optional(path),
                parent_heading=_optional(parent),
                num_headings=outline.headings if outline else structure.count,
                num_tables=outline.tables if outline else len(_TABLE_RULE.findall(text)),
                num_pictures=page.pictures,
            )
        )
    return pages


@dataclass(frozen=True, slots=True)
class _Structure:
    """Headings of a page: open at the page's end, above the page, and the count on the page."""

    open: tuple[tuple[int, str], ...] = ()
    path: tuple[str, ...] = ()
    count: int = 0


def _structure(before: _Structure, text: str) -> _Structure:
    """The headings of the next page: the path is the page's first heading, or the headings still open from before."""
    levels = before.open
    path: tuple[tuple[int, str], ...] = ()
    count = 0
    in_fence = False
    for line in text.splitlines():
        if _FENCE.match(line):
            in_fence = not in_fence
        heading = None if in_fence else _HEADING.match(line)
        if heading:
            count += 1
            depth = len(heading[1])
            levels = (*(level for level in levels if level[0] < depth), (depth, heading[2][:200]))
            path = path or levels
    return _Structure(levels, tuple(title for _, title in path or levels), count)


def _page_text(page: Page) -> str:
    """The text of a page; text inside pictures comes last, quoted under a label."""
    if not page.seen.strip():
        return page.markdown
    seen = "\n".join(f"> {line}" for line in page.seen.splitlines() if line.strip())
    return f"{page.markdown}\n\n> In a picture:\n{seen}".lstrip("\n")


def _stamp(packed: str, metadatas: Sequence[Mapping[str, Any]], *names: str) -> str:
    identity = repr((packed, [sorted(metadata.items()) for metadata in metadatas], names))
    return hashlib.sha256(identity.encode()).hexdigest()[:32]


def _optional(text: str | None) -> str | None:
    return replace_surrogates(text)[:_MAX_FIELD_CHARS] if text else None
