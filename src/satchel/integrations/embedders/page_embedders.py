"""Vectors of pages: from the written text, or from a vision model of the page images.

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
from collections.abc import Callable, Sequence
from functools import partial
from itertools import pairwise
from pathlib import Path
from threading import Lock
from typing import TYPE_CHECKING, Any, Final, NamedTuple

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

_MAX_CAPTIONS: Final = 64  # leaves three quarters of `MOST_VECTORS` to the lines of the page
# A longer question is a text: its first words and the whole text's vector represent it.
_MAX_QUESTION_WORDS: Final = 24

_MAX_LINE_CHARS: Final = 400  # a longer line is a paragraph; it is split, because a single vector would blur it
_MAX_TEXT_CHARS: Final = 400_000  # more than any page holds; bounds the time for a text made to be slow
_DRAWING: Final = re.compile(r"[|#*_`>~=\-:.\s]+")

MOST_PIXELS: Final = 64_000_000
"""A page of A3 at 400 dpi has 31 million; a picture that claims more than this was made to fill the memory."""

_FORMATS: Final = ("PNG", "JPEG", "WEBP")
_MAX_QUESTION_CHARS: Final = 4_000  # longer questions are cut: the model's time and memory grow with the tokens
_FAMILIES: Final = {
    "ColPaliForRetrieval": "ColPaliProcessor",
    "ColQwen2ForRetrieval": "ColQwen2Processor",
    "ColModernVBertForRetrieval": "ColModernVBertProcessor",
}


class WrittenPageEmbedder:
    """Embeds the written text of a page, line by line, with the vectors of an `Embedder`."""

    needs_images = False

    def __init__(self, embedder: Embedder) -> None:
        self.name = f"written/{embedder.name}"
        self._embedder = embedder

    @property
    def dimensions(self) -> int:
        """The number of dimensions of a vector."""
        return self._embedder.dimensions

    def embed_pages(self, pages: Sequence[PageView]) -> list[NDArray[np.float32]]:
        """The vectors of captions and lines for each page; none for a page without text."""
        written = [regions(page) for page in pages]
        vectors = self._embedder.embed_texts([region for page in written for region in page])
        parts = np.split(vectors, np.cumsum([len(page) for page in written])[:-1]) if written else []
        return [part[part.any(axis=1)] for part in parts]

    def embed_query(self, text: str) -> NDArray[np.float32]:
        """The vector of the whole question, then a vector for each content word."""
        question = text[:_MAX_TEXT_CHARS]
        content = dict.fromkeys(word for word in IDENTIFIER.findall(question) if word.lower() not in STOP_WORDS)
        words = list(content)[:_MAX_QUESTION_WORDS]
        whole = self._embedder.embed_query(question)[np.newaxis]
        if len(words) < 2:
            return whole
        vectors = np.concatenate([whole, *(self._embedder.embed_query(word)[np.newaxis] for word in words)])
        words_known: NDArray[np.float32] = vectors[vectors.any(axis=1)]
        return words_known if len(words_known) else whole


def regions(page: PageView) -> list[str]:
    """The texts to embed: each caption, and each line, or neighbouring lines joined to make 256 in all."""
    captions = [caption.strip()[:_MAX_LINE_CHARS] for caption in page.captions[:_MAX_CAPTIONS] if caption.strip()]
    lines = [part for line in page.text[:_MAX_TEXT_CHARS].splitlines() for part in _parts(line)]
    room = MOST_VECTORS - len(captions)
    if len(lines) > room:
        size, more = divmod(len(lines), room)
        borders = [i * size + min(i, more) for i in range(room + 1)]
        lines = [" ".join(lines[a:b]) for a, b in pairwise(borders)]
    return captions + lines


def _parts(line: str) -> list[str]:
    """A line without drawing characters (table bars, heading marks), split at the usual length of a line."""
    if not _DRAWING.sub("", line):
        return []
    plain = line.strip().strip("|#*>").strip()
    return [plain[i : i + _MAX_LINE_CHARS] for i in range(0, len(plain), _MAX_LINE_CHARS)]


class MultiVectorPageEmbedder:
    """Embeds page images with a model from a folder or the local hub cache, loaded at first use."""

    needs_images = True

    def __init__(
        self, model: str, *, name: str | None = None, device: str = "cpu", batch_size: int = 4, download: bool = False
    ) -> None:
        if not model:
            raise InvalidInput("model", model, "must be a folder, or the name of a model")
        self.name = f"multi-vector:{name or model}"
        self._model = model
        self._model_name = name or model
        self._device = device
        self._batch_size = max(1, batch_size)
        self._download = download
        self._loaded: _Loaded | None = None
        self._lock = Lock()

    @property
    def dimensions(self) -> int:
        """The number of dimensions of a vector."""
        return self._encoder().dimensions

    def embed_pages(self, pages: Sequence[PageView]) -> list[NDArray[np.float32]]:
        """The vectors of image patches for each page; none for a page without a picture."""
        encoder = self._encoder()
        vectors = [np.zeros((0, encoder.dimensions), np.float32) for _ in pages]
        seen = [i for i, page in enumerate(pages) if page.image]
        for start in range(0, len(seen), self._batch_size):
            batch = seen[start : start + self._batch_size]
            rows = self._run(encoder.of_images, [decoded(pages[i].image) for i in batch])
            for i, page_rows in zip(batch, rows, strict=True):
                vectors[i] = _without_padding(page_rows)
        return vectors

    def embed_query(self, text: str) -> NDArray[np.float32]:
        """The vectors of a question, a row for each token."""
        question = replace_surrogates(text[:_MAX_QUESTION_CHARS])
        return _without_padding(self._run(self._encoder().of_queries, [question])[0])

    def _run(
        self, encode: Callable[[list[Any]], list[NDArray[np.float32]]], inputs: list[Any]
    ) -> list[NDArray[np.float32]]:
        try:
            with self._lock:
                return encode(inputs)
        except Exception as error:  # each model has errors of its own
            raise EmbedderUnavailable(self._model_name, f"the model cannot be run ({_reason(error)})") from error

    def _encoder(self) -> _Loaded:
        with self._lock:
            if self._loaded is None:
                self._loaded = self._load()
            return self._loaded

    def _load(self) -> _Loaded:
        is_folder = Path(self._model).is_dir()
        is_offline = is_folder or not self._download
        try:
            import transformers
            from PIL import Image  # noqa: F401
        except ImportError:
            reason = "needs an extra: pip install 'satchel[visual]'"
            raise EmbedderUnavailable(self._model_name, reason) from None
        options = {"local_files_only": is_offline, "trust_remote_code": False}
        try:
            if is_folder and Path(self._model, "modules.json").is_file():
                loaded = _load_sentence_transformers(self._model, self._device)
            else:
                loaded = _load_transformers(transformers, self._model, self._device, options)
        except Exception as error:  # each file format and each transport has errors of its own
            reason = f"the model cannot be loaded ({_reason(error)})"
            if is_offline and not is_folder:
                reason = (
                    "there is no such folder, and the local cache of the hub holds no model of that name; "
                    f"download=True fetches it from the hub ({_reason(error)})"
                )
            raise EmbedderUnavailable(self._model_name, reason) from error
        if loaded is None:
            known = ", ".join(name.removesuffix("ForRetrieval") for name in _FAMILIES)
            reason = f"is not a multi-vector page model; known model types: {known} (…ForRetrieval)"
            raise EmbedderUnavailable(self._model_name, reason)
        return loaded


class _Loaded(NamedTuple):
    """A loaded model: vector dimensions, and the encoders of pictures and of questions."""

    dimensions: int
    of_images: Callable[[list[Any]], list[NDArray[np.float32]]]
    of_queries: Callable[[list[Any]], list[NDArray[np.float32]]]


def _load_transformers(library: Any, name: str, device: str, options: dict[str, Any]) -> _Loaded | None:
    """A checkpoint loaded by its transformers class, with projection and normalisation; None for another family.

    Not through `MultiVectorEncoder`: sentence-transformers 6.2 hands pictures to a processor's `__call__`, which for
    ColModernVBert makes no text to go with them, and the model then fails; `process_images` does.
    """
    config = library.AutoConfig.from_pretrained(name, **options)
    kind = next((kind for kind in config.architectures or () if kind in _FAMILIES), None)
    if kind is None:
        return None
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # warnings about library versions
        # The class, not AutoProcessor, which would ask for torchvision's processors first.
        processor = getattr(library, _FAMILIES[kind]).from_pretrained(name, **options)
        model = getattr(library, kind).from_pretrained(name, **options).to(device).eval()

    def embed(inputs: Any) -> list[NDArray[np.float32]]:
        import torch

        inputs.pop("labels", None)
        with torch.inference_mode():
            vectors = model(**inputs.to(device)).embeddings
        return [np.asarray(rows, np.float32) for rows in vectors.float().cpu().numpy()]

    return _Loaded(
        int(model.config.embedding_dim),
        lambda images: embed(processor.process_images(images=images)),
        lambda texts: embed(processor.process_queries(text=texts)),
    )


def _load_sentence_transformers(folder: str, device: str) -> _Loaded | None:
    """A model saved by sentence-transformers; None for a model without image input."""
    from sentence_transformers import MultiVectorEncoder

    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        model = MultiVectorEncoder(folder, device=device, local_files_only=True, trust_remote_code=False)
    if "image" not in model.modalities:
        return None

    def embed(encode: Any, inputs: list[Any]) -> list[NDArray[np.float32]]:
        vectors = encode(inputs, convert_to_numpy=True, show_progress_bar=False, normalize_embeddings=True)
        return [np.asarray(rows, np.float32) for rows in vectors]

    dimensions = int(model.get_embedding_dimension())
    return _Loaded(dimensions, partial(embed, model.encode_document), partial(embed, model.encode_query))


def decoded(image: bytes) -> Any:
    """The picture in RGB; InvalidInput for another format or too many pixels (decompression bomb), before decoding."""
    from PIL import Image

    try:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")  # ours is the limit on pixels
            opened = Image.open(io.BytesIO(image), formats=_FORMATS)
    except Image.DecompressionBombError as error:
        raise InvalidInput("image", str(error), f"must have at most {MOST_PIXELS:,} pixels") from None
    except Exception as error:  # a broken picture may fail anywhere in a decoder
        raise InvalidInput("image", image[:16], f"is not a PNG, JPEG or WebP picture ({_reason(error)})") from None
    width, height = opened.size
    if width * height > MOST_PIXELS:
        raise InvalidInput("image", f"{width} × {height}", f"must have at most {MOST_PIXELS:,} pixels")
    try:
        return opened.convert("RGB")
    except Exception as error:
        raise InvalidInput("image", image[:16], f"is incomplete or damaged ({_reason(error)})") from None


def _without_padding(rows: NDArray[np.float32]) -> NDArray[np.float32]:
    units = unit_rows(rows)
    return np.asarray(units[units.any(axis=1)], np.float32)


def _reason(error: Exception) -> str:
    return f"{type(error).__name__}: {' '.join(str(error).split())[:300]}"
