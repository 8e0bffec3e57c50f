"""An embedder that is the end of a worker on certain texts; workers on Ray import it by name."""

from __future__ import annotations

import os
import signal
from collections.abc import Sequence
from functools import partial
from typing import TYPE_CHECKING

from satchel.indexing import parse
from satchel.integrations.embedders.static_embedder import StaticEmbedder

if TYPE_CHECKING:
    import numpy as np
    from numpy.typing import NDArray

DEADLY = "a word that kills"
FAULTY = "a word that fails"


class Poisonous(StaticEmbedder):
    """Ours, but for two words."""

    def embed_texts(self, texts: Sequence[str]) -> NDArray[np.float32]:
        """The same vectors, or death."""
        if any(DEADLY in text for text in texts):
            os.kill(os.getpid(), signal.SIGKILL)
        if any(FAULTY in text for text in texts):
            raise ValueError("it failed")
        return super().embed_texts(texts)


class Stranger(StaticEmbedder):
    """Ours under another name."""

    @property
    def name(self) -> str:
        """Another name."""
        return "stranger/1"


def impatient(_: str) -> Poisonous:
    """Made in a worker, whose parsers then have less time."""
    parse.Parsers = partial(parse.Parsers, deadline=1.5)  # type: ignore[assignment,misc]
    return Poisonous()
