"""The errors of Satchel.

    SatchelError
    ├── InvalidInput            (also a ValueError) an invalid value
    │   ├── InvalidOption       an invalid option
    │   ├── InvalidHit          an invalid hit, chunk or entity
    │   ├── WorkspaceMissing    there is no folder to index
    │   └── NotAllowed          the caller may not do this
    ├── BudgetCannotBeMet       even the fixed parts are over the budget
    ├── UnknownTokenizer        no tokenizer has the name
    ├── TokenizerUnavailable    the tokenizer cannot be loaded here
    ├── RerankerMissing         the reranking strategy needs a model
    ├── UnknownPiece            no piece has the id
    ├── IndexProblem            a problem with an index
    │   ├── IndexTooNew         the index was made by a newer Satchel
    │   ├── IndexBusy           another process is writing to the index
    │   ├── IndexNotReady       too little is indexed yet for an answer
    │   ├── IndexDamaged        the index cannot be read
    │   ├── IndexUnwritable     the index cannot be written
    │   ├── StoreUnavailable    the database cannot be reached or is not suitable
    │   ├── StoresDiffer        two indexes have different content
    │   ├── MoveUnfinished      the transfer from another index is not finished
    │   └── EmbedderMismatch    the index contains vectors of another model
    ├── LibraryUnavailable      a library of pages cannot be reached
    ├── LibraryMismatch         a library contains vectors of another model
    ├── EmbedderUnavailable     the embedder cannot be used here
    ├── LanguageModelUnavailable the language model cannot be used here
    ├── ServerUnavailable       a Satchel server cannot be reached or gives an invalid answer
    ├── PlatformUnsupported     folders cannot be indexed on this system
    ├── ExtraMissing            a feature needs packages that are not installed
    ├── UnknownBlock            no file or block in the index has the id
    │   └── AmbiguousBlock      several blocks have the name
    └── UnknownPage             (also a ValueError) the library does not contain the page

Each carries its data as attributes and its name in kebab case as a stable `code`; the message says what is wrong,
with which value, and what to do. Truncation and empty results are facts in the result, not errors.
"""

from __future__ import annotations

import re
from collections.abc import Sequence
from typing import Any, ClassVar

# A value of one terminal line: longer values would hide the explanation after them.
_MAX_VALUE_CHARS = 80
_ADDRESS = re.compile(r" at 0x[0-9a-f]+(?=>)")


def shown(value: object) -> str:
    """A value for an error message: a single escaped line without addresses in memory, shortened if long."""
    text = _ADDRESS.sub("", ascii(value))
    return text if len(text) <= _MAX_VALUE_CHARS else f"{text[:_MAX_VALUE_CHARS]}… ({len(text)} characters)"


class SatchelError(Exception):
    """The base class of all Satchel errors."""

    code: ClassVar[str] = "satchel-error"

    def __init_subclass__(cls) -> None:
        cls.code = "".join(f"-{c.lower()}" if c.isupper() else c for c in cls.__name__)[1:]

    def __reduce__(self) -> tuple[Any, ...]:
        # Errors cross process borders; most take other arguments than the message that `args` holds.
        return _restored, (type(self), self.args, self.__dict__)


def _restored(kind: type[SatchelError], args: tuple[Any, ...], state: dict[str, Any]) -> SatchelError:
    error = kind.__new__(kind, *args)
    error.args = args
    error.__dict__.update(state)
    return error


class InvalidInput(SatchelError, ValueError):
    """An invalid value."""

    def __init__(self, field: str, value: object, problem: str) -> None:
        super().__init__(f"{field}={shown(value)}: {problem}")
        self.field = field
        self.value = value
        self.problem = problem


class InvalidOption(InvalidInput):
    """An invalid option."""


class InvalidHit(InvalidInput):
    """An invalid chunk, entity or hit."""


class BudgetCannotBeMet(SatchelError):
    """The header, footer and wrappers alone are over the budget."""

    def __init__(self, max_tokens: int, needed_tokens: int) -> None:
        super().__init__(
            f"max_tokens={max_tokens}: the header, footer and wrappers alone take {needed_tokens} tokens; "
            f"raise the budget to more than {needed_tokens} or shorten the header and the footer (in a request: the "
            "question and the instructions)"
        )
        self.max_tokens = max_tokens
        self.needed_tokens = needed_tokens


class UnknownTokenizer(SatchelError, LookupError):
    """There is no tokenizer with the given name."""

    def __init__(self, name: str, near: Sequence[str]) -> None:
        guess = f"did you mean {' or '.join(near)}? " if near else ""
        super().__init__(
            f"tokenizer={shown(name)}: no tokenizer or model has this name; {guess}`satchel tokens --list-models` "
            "lists the known models; the path of a tokenizer.json works too"
        )
        self.name = name
        self.near = tuple(near)


class TokenizerUnavailable(SatchelError):
    """The tokenizer is known but cannot be loaded here."""

    def __init__(self, name: str, reason: str) -> None:
        super().__init__(f"tokenizer={shown(name)}: {reason}")
        self.name = name
        self.reason = reason


class RerankerMissing(SatchelError):
    """The reranking strategy needs a model, and the caller gave none."""

    def __init__(self, strategy: str) -> None:
        super().__init__(f"reranking={strategy}: this strategy needs a model; pass cross_encoder=… to assemble()")
        self.strategy = strategy


class UnknownPiece(SatchelError, LookupError):
    """The result has no piece with the given id."""

    def __init__(self, piece_id: str, known: int) -> None:
        super().__init__(
            f"id={shown(piece_id)}: none of the {known} texts in this result has this id; the ledger lists the ids"
        )
        self.piece_id = piece_id


class IndexProblem(SatchelError):
    """The base class of problems with an index."""


class IndexTooNew(IndexProblem):
    """The index was made by a newer Satchel."""

    def __init__(self, where: str, version: int, newest_known: int) -> None:
        super().__init__(
            f"{shown(where)}: this index has format version {version}, but this Satchel reads only versions up to "
            f"{newest_known}; update Satchel, or remove the index with `satchel clear` and index again"
        )
        self.where = where
        self.version = version


class IndexBusy(IndexProblem):
    """Another process is writing to the index."""

    def __init__(self, where: str, owner: str) -> None:
        super().__init__(
            f"{shown(where)}: another process{owner} is indexing this workspace; wait until it is done, or stop it"
        )
        self.where = where


class IndexNotReady(IndexProblem):
    """Too little is indexed yet for an answer: the first index run goes on.

    Attributes: `done` of `of` files can be searched (0 of 0: not known yet), and the estimated `seconds_left`.
    """

    def __init__(self, where: str, done: int, of: int, seconds_left: int | None = None) -> None:
        progress = f"{done:,} of {of:,} files are indexed" if of else "its files are being listed"
        left = f", the rest takes about {seconds_left:,} s" if seconds_left is not None else ""
        super().__init__(
            f"{shown(where)}: the first index run goes on, and too little is indexed for an answer ({progress}{left}); "
            "ask again later"
        )
        self.where = where
        self.done = done
        self.of = of
        self.seconds_left = seconds_left


class IndexDamaged(IndexProblem):
    """The index cannot be read."""

    def __init__(self, where: str, problem: str, remedy: str = "") -> None:
        remedy = remedy or (
            "remove it with `satchel clear` and index again with `satchel index` (it is made from your files, which "
            "are not touched), or restore the folder of the index from a backup"
        )
        super().__init__(f"{shown(where)}: the index cannot be read ({problem}); {remedy}")
        self.where = where
        self.problem = problem


class IndexUnwritable(IndexProblem):
    """The index cannot be written: no permission, or a full disk.

    With `is_read_only`, the whole folder of the index may only be read; questions are still answered from it.
    """

    def __init__(self, where: str, problem: str, *, is_read_only: bool = False) -> None:
        super().__init__(
            f"{shown(where)}: the index cannot be written ({problem}); free disk space or choose another folder with "
            "--index-dir or SATCHEL_INDEX_DIR. Committed data is safe"
        )
        self.where = where
        self.problem = problem
        self.is_read_only = is_read_only


class StoreUnavailable(IndexProblem):
    """The database of the index cannot be reached or is not suitable."""

    def __init__(self, where: str, problem: str) -> None:
        super().__init__(f"{shown(where)}: the database cannot be used ({problem}). Committed data is safe")
        self.where = where
        self.problem = problem


class StoresDiffer(IndexProblem):
    """Two indexes have different content."""

    def __init__(self, where: str, source: str, differences: Sequence[str]) -> None:
        super().__init__(
            f"{shown(where)}: the content differs from {shown(source)} ({'; '.join(differences)}). If the source has "
            "changed since the move, this is expected. Otherwise clear the target and run `satchel migrate` again"
        )
        self.where = where
        self.source = source
        self.differences = tuple(differences)


class MoveUnfinished(IndexProblem):
    """The transfer from another index is not finished."""

    def __init__(self, where: str, source: str) -> None:
        super().__init__(
            f"{shown(where)}: the move from {shown(source)} is not finished, so this index is "
            "incomplete; finish the move with `satchel migrate`, or remove the index with `satchel clear`"
        )
        self.where = where
        self.source = source


class EmbedderMismatch(IndexProblem):
    """The index contains vectors of another model."""

    def __init__(self, stored: str, requested: str) -> None:
        super().__init__(
            f"embedder={shown(requested)}: this index contains vectors of {shown(stored)}, and vectors of two "
            "models cannot be compared; use that model, or remove the index with `satchel clear` and index again"
        )
        self.stored = stored
        self.requested = requested


class EmbedderUnavailable(SatchelError):
    """The embedder cannot be used here."""

    def __init__(self, name: str, reason: str) -> None:
        super().__init__(f"embedder={shown(name)}: {reason}")
        self.name = name
        self.reason = reason


class LanguageModelUnavailable(SatchelError):
    """The language model cannot be used here."""

    def __init__(self, name: str, reason: str) -> None:
        super().__init__(f"language_model={shown(name)}: {reason}")
        self.name = name
        self.reason = reason


class WorkspaceMissing(InvalidInput):
    """There is no folder to index."""


class NotAllowed(InvalidInput):
    """The caller may not do this."""


class ServerUnavailable(SatchelError):
    """A Satchel server cannot be reached or gives an invalid answer."""

    def __init__(self, url: str, reason: str) -> None:
        super().__init__(f"server={shown(url)}: {reason}")
        self.url = url
        self.reason = reason


class ExtraMissing(SatchelError):
    """A feature needs packages that are not installed."""

    def __init__(self, what: str, extra: str) -> None:
        super().__init__(f"{what} needs packages that are not installed: pip install 'satchel[{extra}]'")
        self.what = what
        self.extra = extra


class UnknownBlock(SatchelError, LookupError):
    """The index has no block or location with the given id."""

    def __init__(self, block_id: str, near: Sequence[str] = ()) -> None:
        guess = f"; did you mean {' or '.join(near)}?" if near else ""
        super().__init__(
            f"id={shown(block_id)}: no file or block in this index has this id{guess or '.'} "
            "An id is a path, a path with lines (src/a.py:10-20), a path and a name (src/a.py#Class.method), or the "
            "id of a block of a workspace"
        )
        self.block_id = block_id
        self.near = tuple(near)


class AmbiguousBlock(UnknownBlock):
    """Several blocks are called so."""

    def __init__(self, name: str, ids: Sequence[str]) -> None:
        which = ", ".join(ids)
        SatchelError.__init__(self, f"{shown(name)} is the name of several blocks: {which}; give one of these ids")
        self.block_id = name
        self.near = tuple(ids)


class UnknownPage(SatchelError, ValueError):
    """The library does not contain the page."""

    def __init__(self, doc_id: str, page: int) -> None:
        super().__init__(f"document {shown(doc_id)}, page {shown(page)}: the library has no such page")
        self.doc_id = doc_id
        self.page = page


class PlatformUnsupported(SatchelError):
    """Folders cannot be indexed on this system, which has no file locks or sandbox that Satchel knows."""

    def __init__(self, system: str) -> None:
        super().__init__(
            f"folders can be indexed on Linux and macOS only, and this is {shown(system)}: run Satchel in WSL or in a "
            "container; packing your own hits (assemble), counting tokens, verify and the client of a server work here"
        )
        self.system = system


class LibraryUnavailable(SatchelError):
    """A library of pages cannot be reached or opened."""

    def __init__(self, where: str, reason: str) -> None:
        super().__init__(f"library={shown(where)}: {reason}")
        self.where = where
        self.reason = reason


class LibraryMismatch(SatchelError):
    """A library contains vectors of another model."""

    def __init__(self, where: str, reason: str) -> None:
        super().__init__(f"library={shown(where)}: {reason}")
        self.where = where
        self.reason = reason
