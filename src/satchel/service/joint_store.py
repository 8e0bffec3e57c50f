"""Several stores as one for a question: one ranking, with the rarity of words counted in all of them.

Paths and block ids begin with the label of their root (`library/src/x.py`); a root without a label has the rest.
Numbers of pieces and files are made distinct, so that the searcher, the packer and the estimate of sufficiency work as
with a single store. Nothing is stored twice: each root has its own index.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import AbstractContextManager, ExitStack, contextmanager
from dataclasses import dataclass, field, replace
from typing import TYPE_CHECKING, NamedTuple, TypeVar

from satchel.models.search import Filters
from satchel.ports.file_index import WordCounts
from satchel.text.patterns import matches

if TYPE_CHECKING:
    from satchel.models.block import Activity, Block
    from satchel.models.files import FileState
    from satchel.models.outline import OutlineBlock
    from satchel.ports.file_index import Candidate, NamedMention, StoredPiece, StoreQuery
    from satchel.ports.store import Store
    from satchel.retrieval.freshness import Disk, DiskFile, Folder

Value = TypeVar("Value")


@dataclass(frozen=True, slots=True, kw_only=True)
class JointFilters(Filters):
    """Filters for each root: a user is in other groups there, and other paths are asked for.

    None stands for a root of which nothing is searched.
    """

    of_roots: tuple[Filters | None, ...] = ()


class Labels:
    """Finds the root of a path or id by its label."""

    def __init__(self, labels: Sequence[str]) -> None:
        self.labels = tuple(labels)

    def shown(self, root: int, name: str) -> str:
        """A root's own path or id as callers see it; '' stays ''."""
        label = self.labels[root]
        return f"{label}/{name}" if label and name else name

    def asked_in(self, glob: str) -> list[int]:
        """The numbers of the roots whose labels a glob for shown paths begins with: `lib/**` or `requests@*/docs/**`.

        Empty for a glob for the paths of every root: one without a label, also where it begins with `*` or `**`.
        """
        return [root for root, label in enumerate(self.labels) if label and self._own_glob(label, glob)]

    def own_glob(self, root: int, glob: str) -> str:
        """A glob for a root's own paths, without the label that it begins with."""
        return self._own_glob(self.labels[root], glob) or glob

    @staticmethod
    def _own_glob(label: str, glob: str) -> str:
        """The glob without the label that it begins with; '' if it begins with no such label."""
        depth = label.count("/") + 1
        parts = glob.split("/")
        head, rest = "/".join(parts[:depth]), "/".join(parts[depth:])
        is_label = len(parts) > depth and head.strip("*/") != "" and matches(label, [head])
        return (rest or "**") if is_label else ""

    def root_of(self, shown: str) -> tuple[int, str] | None:
        """The number of the root and its own path or id; None for a name that begins with no label."""
        for root, label in enumerate(self.labels):
            if label and shown.startswith(f"{label}/"):
                return root, shown[len(label) + 1 :]
        unlabelled = self.labels.index("") if "" in self.labels else None
        return None if unlabelled is None else (unlabelled, shown)


class _Member(NamedTuple):
    root: int
    store: Store
    filters: Filters


@dataclass(frozen=True, slots=True)
class JointStore:
    """The stores of several roots as one; every read takes `JointFilters`."""

    stores: tuple[Store, ...]
    labels: Labels

    @property
    def generation(self) -> int:
        """The sum of the generations: it grows with every commit in any of the stores."""
        return sum(store.generation for store in self.stores)

    def generation_for(self, filters: Filters) -> int:
        """The sum of the last commits that these readers can see."""
        return sum(store.generation_for(own) for _, store, own in self._members(filters))

    def search_version(self, filters: Filters) -> tuple[object, ...]:
        """A value that changes whenever search results for these readers could change."""
        return tuple(store.search_version(own) for _, store, own in self._members(filters))

    @contextmanager
    def snapshot(self) -> Iterator[None]:
        """A context in which all reads of the calling thread see the same state of each store."""
        with ExitStack() as stack:
            for store in self.stores:
                stack.enter_context(store.snapshot())
            yield

    def access_key(self, filters: Filters) -> object:
        """A value that is equal for two readers if and only if both have the same read access in every store."""
        return tuple((root, store.access_key(own)) for root, store, own in self._members(filters))

    def embedder(self) -> str:
        """The name of the embedder behind the stored vectors; two names where the stores have different ones."""
        return " and ".join(sorted({store.embedder() for store in self.stores} - {""}))

    def holds_blocks(self) -> bool:
        """True if a store has blocks beside the blocks of indexed files."""
        return any(store.holds_blocks() for store in self.stores)

    def search(self, query: StoreQuery, filters: Filters, *, top_k: int) -> list[Candidate]:
        """The best candidates of each store, with evidence that can be compared: words are as rare as in all stores."""
        query = replace(query, counts=self.word_counts(list(query.terms), filters))
        return [
            found._replace(piece=self._number(root, found.piece), file=self._number(root, found.file))
            for root, store, own in self._members(filters)
            for found in store.search(query, own, top_k=top_k)
        ]

    def word_counts(self, terms: Sequence[str], filters: Filters) -> WordCounts:
        """Count the readable pieces with each term in all stores."""
        counts = [store.word_counts(terms, own) for _, store, own in self._members(filters)]
        with_term = {term: sum(count.with_term[term] for count in counts) for term in terms}
        return WordCounts(sum(count.pieces for count in counts), with_term)

    def paths(self, files: Sequence[int], filters: Filters) -> dict[int, str]:
        """The paths without labels: the name of a root says nothing about what kind of file is in it."""
        return self._by_number(files, filters, lambda store, mine, own: store.paths(mine, own))

    def titles(self, files: Sequence[int], filters: Filters) -> dict[int, str]:
        """The titles of the workspaces' own blocks by the numbers in candidates."""
        return self._by_number(files, filters, lambda store, mine, own: store.titles(mine, own))

    def last_changes(self, files: Sequence[int], filters: Filters) -> dict[int, int]:
        """When files last changed in the version history, in seconds since 1970, by the numbers in candidates."""
        return self._by_number(files, filters, lambda store, mine, own: store.last_changes(mine, own))

    def pieces(self, ids: Sequence[int], filters: Filters) -> list[StoredPiece]:
        """The readable pieces among the given ids, in the given order."""

        def own_pieces(store: Store, mine: Sequence[int], own: Filters) -> Mapping[int, StoredPiece]:
            return {piece.id: piece for piece in store.pieces(mine, own)}

        found = self._by_number(ids, filters, own_pieces)
        return [self._shown(number, found[number]) for number in ids if number in found]

    def text_of(self, path: str, filters: Filters) -> str | None:
        """The whole text of a file as indexed, or None."""
        member, own_path = self._member_of(path, filters)
        return member.store.text_of(own_path, member.filters) if member else None

    def files(self) -> dict[str, FileState]:
        """The state of every indexed file, by path, whoever may read it."""
        return {
            self.labels.shown(root, path): state
            for root, store in enumerate(self.stores)
            for path, state in store.files().items()
        }

    def activity(self, filters: Filters, *, path: str | None = None, limit: int = 50) -> list[Activity]:
        """The commits in the version histories with changes to files, newest first."""
        member, own_path = self._member_of(path, filters) if path else (None, None)
        found = [
            replace(entry, block=self.labels.shown(root, entry.block))
            for root, store, own in self._members(filters)
            if member is None or root == member.root
            for entry in store.activity(own, path=own_path, limit=limit)
        ]
        return sorted(found, key=lambda entry: entry.timestamp, reverse=True)[:limit]

    def texts(self, filters: Filters) -> Iterator[tuple[str, str | None, str]]:
        """The path, language and text of every readable file, store by store."""
        for root, store, own in self._members(filters):
            for path, language, text in store.texts(own):
                yield self.labels.shown(root, path), language, text

    def definitions(self, name: str, filters: Filters) -> list[tuple[str, OutlineBlock]]:
        """The readable blocks with a name, with the paths of their files."""
        return [
            (self.labels.shown(root, path), block)
            for root, store, own in self._members(filters)
            for path, block in store.definitions(name, own)
        ]

    def mentions_of(self, name: str, filters: Filters) -> list[NamedMention]:
        """The readable references to a name."""
        return [
            mention._replace(path=self.labels.shown(root, mention.path))
            for root, store, own in self._members(filters)
            for mention in store.mentions_of(name, own)
        ]

    def outline_of(self, path: str, filters: Filters) -> list[OutlineBlock]:
        """The definitions and sections of a file from top to bottom, outer ones first."""
        member, own_path = self._member_of(path, filters)
        return member.store.outline_of(own_path, member.filters) if member else []

    def block(self, block_id: str, filters: Filters) -> Block | None:
        """The block with an id, with the names that its own store has for it."""
        member, own_id = self._member_of(block_id, filters)
        return member.store.block(own_id, member.filters) if member else None

    def _members(self, filters: Filters) -> list[_Member]:
        assert isinstance(filters, JointFilters)
        pairs = zip(self.stores, filters.of_roots, strict=True)
        return [_Member(root, store, own) for root, (store, own) in enumerate(pairs) if own is not None]

    def _member_of(self, shown: str, filters: Filters) -> tuple[_Member | None, str]:
        root, own_name = self.labels.root_of(shown) or (-1, shown)
        return next((member for member in self._members(filters) if member.root == root), None), own_name

    def _number(self, root: int, number: int) -> int:
        """A number of a store as one that no other store has."""
        return number * len(self.stores) + root

    def _by_number(
        self,
        numbers: Sequence[int],
        filters: Filters,
        read: Callable[[Store, Sequence[int], Filters], Mapping[int, Value]],
    ) -> dict[int, Value]:
        found: dict[int, Value] = {}
        for root, store, own in self._members(filters):
            mine = [number // len(self.stores) for number in numbers if number % len(self.stores) == root]
            values = read(store, mine, own) if mine else {}
            found |= {self._number(root, number): value for number, value in values.items()}
        return found

    def _shown(self, number: int, piece: StoredPiece) -> StoredPiece:
        root = number % len(self.stores)
        path, block = self.labels.shown(root, piece.path), self.labels.shown(root, piece.block)
        # Of a block of a workspace the title is all that a heading shows.
        title = piece.title if path else self.labels.shown(root, piece.title)
        return piece._replace(id=number, path=path, block=block, title=title)


@dataclass(frozen=True, slots=True)
class JointFolder:
    """The folders of several roots, to compare their files with the disk."""

    folders: tuple[Folder, ...]
    labels: Labels

    @contextmanager
    def opened(self) -> Iterator[JointDisk]:
        """Compare files by their paths with labels; a folder is opened for its first file."""
        with ExitStack() as stack:
            yield JointDisk(self, stack)


@dataclass(frozen=True, slots=True)
class JointDisk:
    """The files of several folders as they are now."""

    folder: JointFolder
    _stack: ExitStack
    _disks: dict[int, Disk] = field(default_factory=dict)

    def look(self, path: str, state: FileState) -> DiskFile:
        """Compare the file on disk with the indexed state; the changed text is included."""
        found = self.folder.labels.root_of(path)
        assert found is not None
        root, own_path = found
        if root not in self._disks:
            opening: AbstractContextManager[Disk] = self.folder.folders[root].opened()
            self._disks[root] = self._stack.enter_context(opening)
        return self._disks[root].look(own_path, state)
