"""Entry point; a child process loads the tokenizer in parallel: `satchel build` takes 0.65 of the time.

Loading a tokenizer takes longer than the rest of `satchel build`. Therefore a child process is forked before heavy
imports; the child loads the tokenizer while this process opens the index and searches, and then counts the texts sent
to it. The child ends with this process: it reads from a pipe whose other end only this process has open.
"""

from __future__ import annotations

import os
import pickle
import signal
import sys
from contextlib import suppress
from typing import IO, Any, Final

_ENCODING: Final = "o200k_base"
_WARMS_UP: Final = ' satchel.open_engine("path/to/repository")'
"""Text with a word in no vocabulary: only such a word makes the tokenizer build its tables."""


class WarmEncoding:
    """Proxy for the child's tokenizer, with the interface expected by `OpenAICounter`."""

    name = _ENCODING

    def __init__(self, requests: IO[bytes], answers: IO[bytes]) -> None:
        self._requests = requests
        self._answers = answers
        self._instead: Any = None

    def count(self, text: str) -> int:
        """Count the tokens of the text."""
        text.encode()  # raises UnicodeEncodeError for a lone surrogate; the caller handles it
        return int(self._ask((text, None)))

    def truncate(self, text: str, limit: int) -> tuple[str, int]:
        """Return the longest prefix of at most `limit` tokens, and the number of tokens of the whole text."""
        text.encode()
        prefix, total = self._ask((text, limit))
        return str(prefix), int(total)

    def _ask(self, question: tuple[str, int | None]) -> Any:
        if self._instead is None:
            try:
                pickle.dump(question, self._requests)
                self._requests.flush()
                return pickle.load(self._answers)  # noqa: S301 - from our own child
            except (OSError, EOFError, pickle.UnpicklingError):
                import toktok  # the child is gone: count here

                self._instead = toktok._encoding(_ENCODING)
        text, limit = question
        return self._instead.count(text) if limit is None else self._instead.truncate(text, limit)


def start_tokenizer() -> WarmEncoding | None:
    """Start the child process; None on systems without `fork`."""
    if not hasattr(os, "fork"):
        return None
    requests_out, requests_in = os.pipe()
    answers_out, answers_in = os.pipe()
    if os.fork() == 0:
        os.close(requests_in)
        os.close(answers_out)
        _serve(requests_out, answers_in)
    os.close(requests_out)
    os.close(answers_in)
    return WarmEncoding(os.fdopen(requests_in, "wb"), os.fdopen(answers_out, "rb"))


def _serve(requests: int, answers: int) -> None:
    """Main loop of the child process. Standard streams go to /dev/null: the child must not hold a pipe open."""
    try:
        signal.signal(signal.SIGINT, signal.SIG_IGN)
        signal.signal(signal.SIGPIPE, signal.SIG_DFL)
        nothing = os.open(os.devnull, os.O_RDWR)
        for stream in (0, 1, 2):
            os.dup2(nothing, stream)
        encoding = _loaded()
        with os.fdopen(requests, "rb") as questions, os.fdopen(answers, "wb") as out, suppress(EOFError):
            while True:
                text, limit = pickle.load(questions)  # noqa: S301 - from our own parent
                pickle.dump(encoding.count(text) if limit is None else encoding.truncate(text, limit), out)
                out.flush()
    finally:
        os._exit(0)


def _loaded() -> Any:
    """Load splintr if installed: quicker to load than toktok, with the same counts; toktok is quicker once loaded."""
    try:
        import splintr
    except ImportError:
        import toktok

        return toktok._encoding(_ENCODING)
    return _Quick(splintr.Tokenizer.from_pretrained(_ENCODING))


class _Quick:
    def __init__(self, tokenizer: Any) -> None:
        self._tokenizer = tokenizer
        self.count(_WARMS_UP)

    def count(self, text: str) -> int:
        return len(self._tokenizer.encode_ordinary(text))

    def truncate(self, text: str, limit: int) -> tuple[str, int]:
        tokens = self._tokenizer.encode_ordinary(text)
        if len(tokens) <= limit:
            return text, len(tokens)
        return bytes(self._tokenizer.decode_bytes(tokens[:limit])).decode("utf-8", "ignore"), len(tokens)


def main() -> None:
    """Run the command line."""
    encoding = None
    if sys.argv[1:2] in (["build"], ["explain"]) and not {"-h", "--help"} & set(sys.argv):
        encoding = start_tokenizer()
    try:
        from satchel.cli.main import main as run
    except ModuleNotFoundError as error:
        # Without click or another required package, not even `satchel doctor` can run.
        sys.exit(
            f"satchel: the package {error.name!r} is missing; install Satchel again: pip install . in its checkout"
        )
    run(encoding)
