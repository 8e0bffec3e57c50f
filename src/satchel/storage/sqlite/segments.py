"""The segments on disk: the manifest with their generation, and the refresh from the database.

The name of a segment ends in the checksum of its content, and the manifest holds its own checksum. A process verifies
them once for each version of a file, before it answers anything from the file.
"""

from __future__ import annotations

import json
import mmap
import os
import zlib
from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager, suppress
from dataclasses import dataclass
from pathlib import Path
from typing import Any, BinaryIO, Final, NamedTuple

import numpy as np
from numpy.typing import NDArray

from satchel.errors import IndexDamaged
from satchel.storage.sql.scoring import NO_POSTINGS, STEPS, Columns, Postings, View, among, in_steps
from satchel.storage.sqlite.database_file import FILE_NAME, SqliteDatabase, mark_of

_MAGIC: Final = b"SATCHELARRAYS 2\n"
_SEGMENT: Final = ".segment"
_ALIGNMENT_BYTES: Final = 64  # a cache line of usual processors, and a multiple of every number's size


class DamagedArrays(Exception):
    """Derived files are damaged, missing, or made from another state of the index."""


class FileVersion(NamedTuple):
    """Tells apart the versions of a file."""

    inode: int
    modified_ns: int
    size: int


Stamp = tuple[FileVersion | None, ...]
"""The versions of the manifest and its segments."""


def file_version(file: int | Path) -> FileVersion | None:
    """The version of a file; None if missing."""
    try:
        info = os.stat(file)
    except OSError:
        return None
    return FileVersion(info.st_ino, info.st_mtime_ns, info.st_size)


@contextmanager
def _new_file(part: Path) -> Iterator[BinaryIO]:
    """A temporary file to write to, on disk at the end of the `with` block; the caller then moves the file."""
    try:
        with part.open("w+b") as file:
            yield file
            file.flush()
            os.fsync(file.fileno())
    except BaseException:
        part.unlink(missing_ok=True)
        raise


def write_arrays(folder: Path, stem: str, arrays: Mapping[str, NDArray[Any]]) -> str:
    """Write the arrays to a file in the folder; returns the name of the file: the stem and the content's checksum."""
    layout: dict[str, tuple[str, tuple[int, ...], int]] = {}
    position = 0
    for name, array in arrays.items():
        position = _aligned(position)
        layout[name] = (array.dtype.str, array.shape, position)
        position += array.nbytes
    header = json.dumps({"layout": layout, "bytes": position}).encode()
    part = folder / f"{stem}.part"
    with _new_file(part) as file:
        file.write(_MAGIC + len(header).to_bytes(8, "little") + header)
        start = _aligned(file.tell())
        for name, array in arrays.items():
            file.seek(start + layout[name][2])
            np.ascontiguousarray(array).tofile(file)
        file.truncate(start + position)
        file.flush()
        with mmap.mmap(file.fileno(), 0, access=mmap.ACCESS_READ) as data:
            name = f"{stem}-{zlib.crc32(data):08x}{_SEGMENT}"
    part.replace(folder / name)
    return name


def open_arrays(path: Path) -> tuple[dict[str, NDArray[Any]], FileVersion | None]:
    """The memory-mapped arrays of a file, and the version of the file; readable even after the file is deleted."""
    with path.open("rb") as file:
        version = file_version(file.fileno())
        if version is None or version.size < len(_MAGIC) + 8:
            raise DamagedArrays("a segment is damaged: too short")
        data = mmap.mmap(file.fileno(), 0, access=mmap.ACCESS_READ)
    if not path.name.endswith(f"-{zlib.crc32(data):08x}{_SEGMENT}"):
        raise DamagedArrays("a segment is damaged: it does not match its checksum")
    at = len(_MAGIC) + 8
    try:
        header = json.loads(data[at : at + int.from_bytes(data[len(_MAGIC) : at], "little")])
        start = len(data) - header["bytes"]
        arrays = {
            name: np.frombuffer(data, dtype, int(np.prod(shape)), start + offset).reshape(shape)
            for name, (dtype, shape, offset) in header["layout"].items()
        }
    except (ValueError, KeyError, TypeError) as error:
        raise DamagedArrays(f"a segment is invalid: {error}") from error
    return arrays, version


def _aligned(position: int) -> int:
    return -(-position // _ALIGNMENT_BYTES) * _ALIGNMENT_BYTES


_SCAN_BATCH_ROWS: Final = 1024  # a strip of so many vectors stays in the processor's cache


class Segment(Columns):
    """A segment with the arrays for a search."""

    def __init__(self, path: Path) -> None:
        arrays, self.version = open_arrays(path)
        super().__init__(arrays)
        self.name = path.name
        self.vectors: NDArray[np.int8] = arrays["vectors"]

    def postings(self, field: str, hashes: Sequence[int]) -> list[Postings]:
        """For each term hash the documents with the term in the field."""
        known = self.arrays[f"{field}.hashes"]
        if not len(known):
            return [NO_POSTINGS] * len(hashes)
        terms = np.array(hashes, np.uint64)
        at = np.minimum(np.searchsorted(known, terms), len(known) - 1)
        offsets = self.arrays[f"{field}.offsets"]
        documents, counts = self.arrays[f"{field}.documents"], self.arrays[f"{field}.counts"]
        postings = []
        for position, is_there in zip(at.tolist(), (known[at] == terms).tolist(), strict=True):
            first, last = (int(offsets[position]), int(offsets[position + 1])) if is_there else (0, 0)
            postings.append(Postings(documents[first:last], counts[first:last]))
        return postings


@dataclass(slots=True)
class SegmentSource:
    """A segment with a reader's view, as a source of evidence."""

    segment: Segment
    view: View

    def postings(self, field: str, hashes: Sequence[int]) -> list[Postings]:
        """For each term hash the documents with the term in the field."""
        return self.segment.postings(field, hashes)

    def likeness(self, vector: NDArray[np.float32]) -> NDArray[Any]:
        """The similarity of each piece to the question; only values of visible pieces are meaningful."""
        vectors, question = self.segment.vectors, in_steps(vector)
        likeness = np.zeros(len(vectors), np.float32)
        few = self.view.few
        # Small strips stay in the processor's cache while they are widened.
        strip = np.empty((_SCAN_BATCH_ROWS, vectors.shape[1]), np.float32)
        picked = np.empty(strip.shape, np.int8)
        scanned = likeness if few is None else np.empty(len(few), np.float32)
        for first in range(0, len(scanned), _SCAN_BATCH_ROWS):
            where = slice(first, first + _SCAN_BATCH_ROWS)
            part = vectors[where]
            if few is not None:
                part = np.take(vectors, few[where], axis=0, out=picked[: len(few[where])], mode="clip")
            np.copyto(strip[: len(part)], part)
            np.dot(strip[: len(part)], question, out=scanned[where])
        if few is not None:
            likeness[few] = scanned
        likeness /= 127.0 * STEPS
        return likeness


class Manifest(NamedTuple):
    """The names of the current segments, their generation, and the deleted files still in them."""

    generation: int = 0
    segments: tuple[str, ...] = ()
    gone: tuple[int, ...] = ()
    mark: str = ""

    def encoded(self) -> bytes:
        """The manifest as JSON, with its checksum."""
        return json.dumps({**self._asdict(), "checksum": self._checksum()}).encode()

    @classmethod
    def decode(cls, data: bytes) -> Manifest:
        """The manifest; raises DamagedArrays if it does not match its checksum."""
        try:
            stored = json.loads(data)
            segments, gone = tuple(map(str, stored["segments"])), tuple(map(int, stored["gone"]))
            manifest = cls(int(stored["generation"]), segments, gone, str(stored["mark"]))
            if stored["checksum"] != manifest._checksum():
                raise ValueError("it does not match its checksum")
        except (ValueError, KeyError, TypeError, OverflowError, RecursionError) as error:
            raise DamagedArrays(f"the manifest is damaged: {error}") from error
        return manifest

    def _checksum(self) -> int:
        return zlib.crc32(json.dumps(self._asdict()).encode())


class Opened(NamedTuple):
    """The manifest, its segments, and the versions of their files."""

    manifest: Manifest = Manifest()
    segments: tuple[Segment, ...] = ()
    stamp: Stamp = (None,)


_MAX_READS: Final = 3  # a writer replaces the manifest once in a run, and a reading takes milliseconds
MANIFEST: Final = "current.json"
LAID_OUT: Final = "laid_out"
"""Key of the fact in the database: the generation of the latest manifest. An older manifest is no longer valid: the
database has forgotten the files deleted before this generation."""


class Derived:
    """The folder of segments."""

    def __init__(self, folder: Path) -> None:
        self._folder = folder
        self._current = folder / MANIFEST
        self._verified: dict[str, Segment] = {}

    def stamp(self, segments: Iterable[Segment]) -> Stamp:
        """The present versions of the manifest and of the files of these segments."""
        return file_version(self._current), *(file_version(self._folder / segment.name) for segment in segments)

    def open_for(self, db: SqliteDatabase) -> Opened:
        """The manifest and its segments; empty if none were made yet from this database.

        Raises DamagedArrays for files that cannot be used, and IndexDamaged for a database older than the manifest.
        """
        for left in reversed(range(_MAX_READS)):
            before = file_version(self._current)
            try:
                return self._open(db)
            except (DamagedArrays, OSError, KeyError) as error:
                # A writer may have replaced the manifest and the segments: read the new manifest.
                if left and file_version(self._current) != before:
                    continue
                damage = str(error) if isinstance(error, DamagedArrays) else "a segment is missing or damaged"
                raise DamagedArrays(damage) from error
        raise AssertionError

    def refuse_older(self, db: SqliteDatabase) -> None:
        """Raise IndexDamaged for a database older than the manifest that was made from it."""
        with suppress(OSError, DamagedArrays):
            generation = Manifest.decode(self._current.read_bytes()).generation
            # A snapshot may be older than what other processes have made since it began.
            if not db.in_transaction and generation > int(db.fact("generation") or 0):
                problem = f"{FILE_NAME} is older than the search arrays that were made from it"
                raise IndexDamaged(str(self._folder.parent), problem)

    def _open(self, db: SqliteDatabase) -> Opened:
        self.refuse_older(db)
        try:
            with self._current.open("rb") as file:
                version, manifest = file_version(file.fileno()), Manifest.decode(file.read())
        except FileNotFoundError:
            if db.fact(LAID_OUT):
                raise DamagedArrays("the files are missing") from None
            return Opened()
        is_ours = manifest.mark == mark_of(db, manifest.generation)
        if not is_ours and manifest.generation <= int(db.fact("generation") or 0):
            raise DamagedArrays("the files belong to another index")
        if manifest.generation < int(db.fact(LAID_OUT) or 0):
            raise DamagedArrays("the files are of an older state of the index")
        segments = tuple(map(self._segment, manifest.segments))
        self._verified = {segment.name: segment for segment in segments}
        return Opened(manifest, segments, (version, *(segment.version for segment in segments)))

    def _segment(self, name: str) -> Segment:
        """A segment; its content is verified once for each version of the file."""
        verified = self._verified.get(name)
        if verified is not None and verified.version == file_version(self._folder / name):
            return verified
        return Segment(self._folder / name)

    def catch_up(self, db: SqliteDatabase, generation: int, dimensions: int) -> bool:
        """Build segments for new files of the database; True if there was anything to do."""
        from satchel.storage.sql.scoring_layout import lay_out, segments_to_merge

        try:
            manifest, segments, stamp = self.open_for(db)
            if manifest.generation == generation and stamp != Opened().stamp:
                return False
        except DamagedArrays:
            manifest, segments, _ = Opened()
        self._folder.mkdir(parents=True, exist_ok=True)
        since = manifest.generation
        gone = {*manifest.gone, *(row[0] for row in db.execute("SELECT file FROM gone WHERE generation > ?", (since,)))}
        newer = db.run("SELECT id FROM file WHERE workspace = ? AND generation > ? ORDER BY id", since).fetchall()
        fresh = Columns(lay_out(db, [row[0] for row in newer], dimensions))
        sizes = {segment: len(segment.piece_ids) for segment in (*segments, *([fresh] if newer else []))}
        merged = segments_to_merge(sizes, gone=len(gone), files=sum(len(segment.files) for segment in segments))
        stay = [segment for segment in segments if segment not in merged]
        new = _merged([segment for segment in sizes if segment in merged or segment is fresh], gone)
        names = [segment.name for segment in stay]
        if new is not None:
            names.append(write_arrays(self._folder, f"{generation:010d}-{os.getpid()}", new))
        stored = {file for segment in stay for file in segment.files.tolist()}
        manifest = Manifest(generation, tuple(names), tuple(sorted(gone & stored)), mark_of(db, generation))
        part = self._folder / f"{self._current.name}.{os.getpid()}.part"
        with _new_file(part) as file:
            file.write(manifest.encoded())
        part.replace(self._current)
        self._sweep(names)
        return True

    def _sweep(self, names: Iterable[str]) -> None:
        keep = {*names, self._current.name}
        for path in self._folder.iterdir():
            if path.name not in keep:
                with suppress(OSError):
                    path.unlink()


def refuse_lost_database(folder: Path) -> None:
    """Raise IndexDamaged if the database is missing or empty beside the arrays that were made from it."""
    database = folder / FILE_NAME
    is_empty = not database.exists() or not database.stat().st_size
    if is_empty and (folder / "derived" / MANIFEST).exists():
        raise IndexDamaged(str(folder), f"{FILE_NAME} is missing or empty")


def _merged(segments: Sequence[Columns], gone: Collection[int]) -> Mapping[str, NDArray[Any]] | None:
    """The arrays of the segments together, without deleted files; None without any file."""
    from satchel.storage.sql.scoring_layout import SegmentPart, merge

    parts = [SegmentPart(segment.arrays, ~among(segment.files, gone)) for segment in segments]
    if not any(part.kept.any() for part in parts):
        return None
    return parts[0].arrays if len(parts) == 1 and parts[0].kept.all() else merge(parts)
