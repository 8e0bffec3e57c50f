"""Vectors of pages: from what is written on them, or from a model that looks at their pictures.

*Written.* Each caption and each line of a page has a vector of its own, so the label of an axis counts as much as a
paragraph: a chart or a scan is found by the words that stand on it. What only a picture shows is not seen. No weights
are needed beyond an embedder's.
*Multi-vector.* ColPali, ColQwen2, ColModernVBert and their kin: checkpoints of those three are loaded by transformers'
own classes; one that sentence-transformers saved, by its `MultiVectorEncoder`. Nothing is fetched from a hub unless
`download` says so, and no code that comes with a model is run.
"""

from __future__ import annotations

import io
import re
import warnings
from collections.abc import Sequence
from itertools import pairwise
from pathlib import Path
from threading import Lock
from typing import TYPE_CHECKING, Any, Final, Protocol

import numpy as np

from satchel.errors import EmbedderUnavailable, InvalidInput
from satchel.retrieval.late_interaction import unit_rows
from satchel.text.visible import replace_surrogates
from satchel.text.words import IDENTIFIER, STOP_WORDS

if TYPE_CHECKING:
    from numpy.typing import NDArray

    from satchel.ports.embedder import Embedder
    from satchel.ports.page_embedder import PageView


MOST_VECTORS: Final = 256
"""For a page: a dense page of a report has 50 to 90 lines; beyond this, neighbouring lines share a vector."""

_MOST_CAPTIONS: Final = 64
_MOST_WORDS: Final = 24
"""Of a question; a longer one is a text, and its first words and its whole say what it is about."""

_LONGEST_LINE: Final = 400
_LONGEST_TEXT: Final = 400_000
_DRAWING: Final = re.compile(r"[|#*_`>~=\-:.\s]+")


class WrittenPageEmbedder:
    """Looks at what is written on a page, line by line, with the vectors of an `Embedder`."""

    def __init__(self, embedder: Embedder) -> None:
        self._embedder = embedder

    @property
    def name(self) -> str:
        """Says that only writing is looked at, and whose vectors these are."""
        return f"written/{self._embedder.name}"

    @property
    def dimensions(self) -> int:
        """How long the vectors are."""
        return self._embedder.dimensions

    @property
    def needs_images(self) -> bool:
        """It never looks at the picture."""
        return False

    def embed_pages(self, pages: Sequence[PageView]) -> list[NDArray[np.float32]]:
        """For each page the vectors of its captions and lines; none for a page on which nothing is written."""
        written = [regions(page) for page in pages]
        vectors = self._embedder.embed_texts([region for page in written for region in page])
        parts = np.split(vectors, np.cumsum([len(page) for page in written])[:-1]) if written else []
        return [part[part.any(axis=1)] for part in parts]

    def embed_query(self, text: str) -> NDArray[np.float32]:
        """The question as a whole, then each of its words that say something."""
        asked = text[:_LONGEST_TEXT]
        content = dict.fromkeys(word for word in IDENTIFIER.findall(asked) if word.lower() not in STOP_WORDS)
        words = list(content)[:_MOST_WORDS]
        whole = self._embedder.embed_query(asked)[np.newaxis]
        if len(words) < 2:
            return whole
        vectors = np.concatenate([whole, *(self._embedder.embed_query(word)[np.newaxis] for word in words)])
        kept: NDArray[np.float32] = vectors[vectors.any(axis=1)]
        return kept if len(kept) else whole


def regions(page: PageView) -> list[str]:
    """What has a vector of its own: each caption, and each line, or as many neighbouring lines as make 256 in all."""
    captions = [caption.strip()[:_LONGEST_LINE] for caption in page.captions[:_MOST_CAPTIONS] if caption.strip()]
    lines = [part for line in page.text[:_LONGEST_TEXT].splitlines() for part in _parts(line)]
    room = MOST_VECTORS - len(captions)
    if len(lines) > room:
        size, more = divmod(len(lines), room)
        borders = [i * size + min(i, more) for i in range(room + 1)]
        lines = [" ".join(lines[a:b]) for a, b in pairwise(borders)]
    return captions + lines


def _parts(line: str) -> list[str]:
    """A line without what only draws (table bars, marks of a heading), in pieces of a line's usual length."""
    if not _DRAWING.sub("", line):
        return []
    plain = line.strip().strip("|#*>").strip()
    return [plain[i : i + _LONGEST_LINE] for i in range(0, len(plain), _LONGEST_LINE)]


MOST_PIXELS: Final = 64_000_000
"""A page of A3 at 400 dpi has 31 million; a picture that claims more than this was made to fill the memory."""

_FORMATS: Final = ("PNG", "JPEG", "WEBP")
_LONGEST_QUESTION: Final = 4_000
_FAMILIES: Final = {
    "ColPaliForRetrieval": "ColPaliProcessor",
    "ColQwen2ForRetrieval": "ColQwen2Processor",
    "ColModernVBertForRetrieval": "ColModernVBertProcessor",
}


class MultiVectorPageEmbedder:
    """The model is a folder, or a name that the local cache of the hub knows; it is loaded when first needed."""

    def __init__(
        self,
        model: str,
        *,
        name: str | None = None,
        device: str = "cpu",
        batch_size: int = 4,
        download: bool = False,
    ) -> None:
        if not model:
            raise InvalidInput("model", model, "must be a folder, or the name of a model")
        self._model = model
        self._name = name or model
        self._device = device
        self._batch_size = max(1, batch_size)
        self._download = download
        self._loaded: _Loaded | None = None
        self._lock = Lock()

    @property
    def name(self) -> str:
        """The model."""
        return f"multi-vector:{self._name}"

    @property
    def dimensions(self) -> int:
        """How long the vectors are."""
        return self._encoder().dimensions

    @property
    def needs_images(self) -> bool:
        """It looks at the picture, and at nothing else."""
        return True

    def embed_pages(self, pages: Sequence[PageView]) -> list[NDArray[np.float32]]:
        """For each page the vectors of its patches; none for a page without a picture."""
        encoder = self._encoder()
        found = [np.zeros((0, encoder.dimensions), np.float32) for _ in pages]
        seen = [i for i, page in enumerate(pages) if page.image]
        for start in range(0, len(seen), self._batch_size):
            batch = seen[start : start + self._batch_size]
            vectors = self._run(encoder.of_images, [decoded(pages[i].image) for i in batch])
            for i, rows in zip(batch, vectors, strict=True):
                found[i] = _without_padding(rows)
        return found

    def embed_query(self, text: str) -> NDArray[np.float32]:
        """The vectors of a question, one for each of its tokens."""
        asked = replace_surrogates(text[:_LONGEST_QUESTION])
        return _without_padding(self._run(self._encoder().of_queries, [asked])[0])

    def _run(self, encode: Any, inputs: list[Any]) -> list[NDArray[np.float32]]:
        try:
            with self._lock:
                vectors: list[NDArray[np.float32]] = encode(inputs)
        except Exception as error:  # each model has errors of its own
            raise EmbedderUnavailable(self._name, f"the model cannot be run ({_told(error)})") from error
        return vectors

    def _encoder(self) -> _Loaded:
        with self._lock:
            if self._loaded is None:
                self._loaded = self._load()
            return self._loaded

    def _load(self) -> _Loaded:
        offline = self._is_folder() or not self._download
        try:
            import transformers
            from PIL import Image  # noqa: F401
        except ImportError:
            reason = "needs an extra: pip install '.[visual]' in Satchel's checkout"
            raise EmbedderUnavailable(self._name, reason) from None
        options = {"local_files_only": offline, "trust_remote_code": False}
        try:
            if self._is_folder() and Path(self._model, "modules.json").is_file():
                return _SentenceTransformersModel(self._model, self._device)
            config = transformers.AutoConfig.from_pretrained(self._model, **options)
            kinds = [kind for kind in config.architectures or () if kind in _FAMILIES]
            if kinds:
                return _TransformersModel(transformers, kinds[0], self._model, self._device, options)
        except _NoImages:
            kinds = []
        except Exception as error:  # each file format and each transport has errors of its own
            raise EmbedderUnavailable(self._name, self._why_not(error, offline)) from error
        known = ", ".join(name.removesuffix("ForRetrieval") for name in _FAMILIES)
        reason = f"is no model that looks at pages with many vectors; known are {known} (…ForRetrieval)"
        raise EmbedderUnavailable(self._name, reason)

    def _is_folder(self) -> bool:
        return Path(self._model).is_dir()

    def _why_not(self, error: Exception, offline: bool) -> str:
        if self._is_folder() or not offline:
            return f"the model cannot be loaded ({_told(error)})"
        return (
            "there is no such folder, and the local cache of the hub holds no model of that name; "
            f"download=True fetches it from the hub ({_told(error)})"
        )


class _NoImages(Exception):
    """The model takes no pictures."""


class _Loaded(Protocol):
    dimensions: int

    def of_images(self, images: list[Any]) -> list[NDArray[np.float32]]: ...

    def of_queries(self, texts: list[str]) -> list[NDArray[np.float32]]: ...


class _TransformersModel:
    """A checkpoint whose own class projects and normalises.

    Not through `MultiVectorEncoder`: sentence-transformers 6.2 hands pictures to a processor's `__call__`, which for
    ColModernVBert makes no text to go with them, and the model then fails; `process_images` does.
    """

    def __init__(self, library: Any, kind: str, model: str, device: str, options: dict[str, Any]) -> None:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")  # the libraries' remarks on each other's versions
            # The class, not AutoProcessor: that one would ask for torchvision's processors first.
            self._processor = getattr(library, _FAMILIES[kind]).from_pretrained(model, **options)
            self._model = getattr(library, kind).from_pretrained(model, **options).to(device).eval()
        self._device = device
        self.dimensions = int(self._model.config.embedding_dim)

    def of_images(self, images: list[Any]) -> list[NDArray[np.float32]]:
        return self._embedded(self._processor.process_images(images=images))

    def of_queries(self, texts: list[str]) -> list[NDArray[np.float32]]:
        return self._embedded(self._processor.process_queries(text=texts))

    def _embedded(self, inputs: Any) -> list[NDArray[np.float32]]:
        import torch

        inputs.pop("labels", None)
        with torch.inference_mode():
            vectors = self._model(**inputs.to(self._device)).embeddings
        return [np.asarray(rows, np.float32) for rows in vectors.float().cpu().numpy()]


class _SentenceTransformersModel:
    """A model that sentence-transformers saved."""

    def __init__(self, folder: str, device: str) -> None:
        from sentence_transformers import MultiVectorEncoder

        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            self._model = MultiVectorEncoder(folder, device=device, local_files_only=True, trust_remote_code=False)
        if "image" not in self._model.modalities:
            raise _NoImages
        self.dimensions = int(self._model.get_embedding_dimension())

    def of_images(self, images: list[Any]) -> list[NDArray[np.float32]]:
        return self._encoded(self._model.encode_document, images)

    def of_queries(self, texts: list[str]) -> list[NDArray[np.float32]]:
        return self._encoded(self._model.encode_query, texts)

    def _encoded(self, encode: Any, inputs: list[Any]) -> list[NDArray[np.float32]]:
        vectors = encode(inputs, convert_to_numpy=True, show_progress_bar=False, normalize_embeddings=True)
        return [np.asarray(rows, np.float32) for rows in vectors]


def decoded(image: bytes) -> Any:
    """The picture, in red, green and blue; another kind, or too many pixels, is refused before it is unpacked."""
    from PIL import Image

    try:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")  # ours is the limit on pixels
            opened = Image.open(io.BytesIO(image), formats=_FORMATS)
    except Image.DecompressionBombError as error:
        raise InvalidInput("image", str(error), f"must have at most {MOST_PIXELS:,} pixels") from None
    except Exception as error:  # a broken picture may fail anywhere in a decoder
        raise InvalidInput("image", image[:16], f"is no PNG, JPEG or WebP picture ({_told(error)})") from None
    width, height = opened.size
    if width * height > MOST_PIXELS:
        raise InvalidInput("image", f"{width} × {height}", f"must have at most {MOST_PIXELS:,} pixels")
    try:
        return opened.convert("RGB")
    except Exception as error:
        raise InvalidInput("image", image[:16], f"cannot be read to its end ({_told(error)})") from None


def _without_padding(rows: NDArray[np.float32]) -> NDArray[np.float32]:
    units = unit_rows(rows)
    kept: NDArray[np.float32] = units[units.any(axis=1)]
    return kept


def _told(error: Exception) -> str:
    return f"{type(error).__name__}: {' '.join(str(error).split())[:300]}"
