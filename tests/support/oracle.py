"""An independent count of tokens: tiktoken, on the vocabulary that is inside toktok's wheel.

The vocabulary file is written out token by token and must have the hash that tiktoken expects of OpenAI's own file, so
the two implementations share their data and nothing else.
"""

from __future__ import annotations

import base64
import hashlib
import inspect
import os
import re
import tempfile
from functools import cache
from pathlib import Path

import tiktoken
import toktok
from tiktoken_ext import openai_public

from satchel.tokens.openai import _DISPUTED

_VOCABULARY_SIZES = {"o200k_base": 199_998, "cl100k_base": 100_256}


def _published(encoding: str) -> tuple[str, str]:
    """Where tiktoken would download the vocabulary from, and the hash it expects."""
    source = inspect.getsource(getattr(openai_public, encoding))
    url = re.search(r'"(https://[^"]+)"', source)
    digest = re.search(r'expected_hash="([0-9a-f]{64})"', source)
    assert url is not None
    assert digest is not None
    return url[1], digest[1]


@cache
def _cache_folder() -> Path:
    folder = Path(tempfile.gettempdir()) / f"satchel-vocabularies-{os.getuid()}"
    folder.mkdir(mode=0o700, exist_ok=True)
    return folder


@cache
def tiktoken_encoding(encoding: str) -> tiktoken.Encoding:
    url, expected = _published(encoding)
    path = _cache_folder() / hashlib.sha1(url.encode()).hexdigest()
    if not path.exists():
        tokens = toktok._encoding(encoding)
        size = _VOCABULARY_SIZES[encoding]
        lines = (base64.b64encode(tokens.decode_bytes([i])) + b" %d\n" % i for i in range(size))
        partial = path.with_suffix(f".{os.getpid()}")
        partial.write_bytes(b"".join(lines))
        partial.replace(path)
    assert hashlib.sha256(path.read_bytes()).hexdigest() == expected
    os.environ["TIKTOKEN_CACHE_DIR"] = str(_cache_folder())
    return tiktoken.get_encoding(encoding)


def true_count(text: str, encoding: str = "o200k_base") -> int:
    return len(tiktoken_encoding(encoding).encode_ordinary(text))


def newer_than_the_oracle(text: str) -> bool:
    """Whether the text has characters that tiktoken's Unicode tables do not know: their count is an upper bound."""
    return _DISPUTED.search(text) is not None
