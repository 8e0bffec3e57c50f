"""The segments on disk: the manifest with their generation, and the refresh from the database."""

from __future__ import annotations

import json
import mmap
import os
from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager, suppress
from dataclasses import dataclass
from pathlib import Path
from typing import Any, BinaryIO, Final, NamedTuple

import numpy as np
from numpy.typing import NDArray

from satchel.storage.sql.scoring import NO_POSTINGS, STEPS, Columns, Postings, View, among, in_steps
from satchel.storage.sqlite.database_file import SqliteDatabase, mark_of

_MAGIC: Final = b"SATCHELARRAYS 2\n"
_ALIGNMENT_BYTES: Final = 64  # a cache line of usual processors, and a multiple of every number's size


class DamagedArrays(Exception):
    """The file is damaged or no file of arrays."""


@contextmanager
def _replacing(path: Path) -> Iterator[BinaryIO]:
    """A temporary file to write to; replaces the file at the path after a complete write and fsync."""
    part = path.with_name(f"{path.name}.{os.getpid()}.part")
    try:
        with part.open("wb") as file:
            yield file
            file.flush()
            os.fsync(file.fileno())
        part.replace(path)
    finally:
        part.unlink(missing_ok=True)


def write_arrays(path: Path, arrays: Mapping[str, NDArray[Any]]) -> None:
    """Write the arrays to a temporary file and move the file to the path."""
    layout: dict[str, tuple[str, tuple[int, ...], int]] = {}
    position = 0
    for name, array in arrays.items():
        position = _aligned(position)
        layout[name] = (array.dtype.str, array.shape, position)
        position += array.nbytes
    header = json.dumps({"layout": layout, "bytes": position}).encode()
    with _replacing(path) as file:
        file.write(_MAGIC + len(header).to_bytes(8, "little") + header)
        start = _aligned(file.tell())
        for name, array in arrays.items():
            file.seek(start + layout[name][2])
            np.ascontiguousarray(array).tofile(file)
        file.truncate(start + position)


def open_arrays(path: Path) -> dict[str, NDArray[Any]]:
    """The memory-mapped arrays of a file; readable even after the file is deleted."""
    with path.open("rb") as file:
        if os.fstat(file.fileno()).st_size < len(_MAGIC) + 8:
            raise DamagedArrays(str(path))
        data = mmap.mmap(file.fileno(), 0, access=mmap.ACCESS_READ)
    if data[: len(_MAGIC)] != _MAGIC:
        raise DamagedArrays(str(path))
    at = len(_MAGIC) + 8
    length = int.from_bytes(data[len(_MAGIC) : at], "little")
    try:
        header = json.loads(data[at : at + length])
        start = _aligned(at + length)
        if len(data) != start + header["bytes"]:
            raise DamagedArrays(str(path))
        return {
            name: np.frombuffer(data, dtype, int(np.prod(shape)), start + offset).reshape(shape)
            for name, (dtype, shape, offset) in header["layout"].items()
        }
    except (ValueError, KeyError, TypeError) as error:
        raise DamagedArrays(f"{path}: {error}") from error


def _aligned(position: int) -> int:
    return -(-position // _ALIGNMENT_BYTES) * _ALIGNMENT_BYTES


_SCAN_BATCH_ROWS: Final = 1024  # a strip of so many vectors stays in the processor's cache


class Segment(Columns):
    """A segment with the arrays for a search."""

    def __init__(self, path: Path) -> None:
        arrays = open_arrays(path)
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


class Derived:
    """The folder of segments."""

    def __init__(self, folder: Path) -> None:
        self._folder = folder
        self._current = folder / "current.json"

    def stamp(self) -> tuple[int, int] | None:
        """A value that changes with every change of the manifest."""
        try:
            info = os.stat(self._current)
        except OSError:
            return None
        return info.st_ino, info.st_mtime_ns

    def manifest(self) -> Manifest:
        """The manifest; empty if missing or unreadable."""
        try:
            stored = json.loads(self._current.read_bytes())
            segments, gone = stored["segments"], stored["gone"]
            if not all(isinstance(name, str) and "/" not in name for name in segments):
                return Manifest()
            return Manifest(int(stored["generation"]), tuple(segments), tuple(map(int, gone)), str(stored["mark"]))
        except (OSError, ValueError, KeyError, TypeError, OverflowError, RecursionError):
            return Manifest()

    def open_for(self, db: SqliteDatabase) -> tuple[Manifest, list[Segment]]:
        """The manifest and its segments if made from this database; otherwise empty."""
        manifest, segments = self.open()
        return (manifest, segments) if manifest.mark == mark_of(db, manifest.generation) else (Manifest(), [])

    def open(self) -> tuple[Manifest, list[Segment]]:
        """The manifest and its opened segments; empty if any segment is missing or damaged."""
        for _ in range(3):
            manifest = self.manifest()
            try:
                return manifest, [Segment(self._folder / name) for name in manifest.segments]
            except FileNotFoundError:
                continue  # a writer has replaced the segments: read the new manifest
            except (DamagedArrays, KeyError, OSError, ValueError):
                break
        return Manifest(), []

    def forget(self) -> None:
        """Delete the manifest: the next index run builds all segments anew."""
        with suppress(OSError):
            self._current.unlink()

    def catch_up(self, db: SqliteDatabase, generation: int, dimensions: int) -> bool:
        """Build segments for new files of the database; True if there was anything to do."""
        from satchel.storage.sql.scoring_layout import lay_out, segments_to_merge

        manifest, segments = self.open_for(db)
        if manifest.generation == generation and self._current.exists():
            return False
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
            names.append(f"{generation:010d}-{os.getpid()}.segment")
            write_arrays(self._folder / names[-1], new)
        stored = {file for segment in stay for file in segment.files.tolist()}
        manifest = Manifest(generation, tuple(names), tuple(sorted(gone & stored)), mark_of(db, generation))
        with _replacing(self._current) as file:
            file.write(json.dumps(manifest._asdict()).encode())
        self._sweep(names)
        return True

    def _sweep(self, names: Iterable[str]) -> None:
        keep = {*names, self._current.name}
        for path in self._folder.iterdir():
            if path.name not in keep:
                with suppress(OSError):
                    path.unlink()


def _merged(segments: Sequence[Columns], gone: Collection[int]) -> Mapping[str, NDArray[Any]] | None:
    """The arrays of the segments together, without deleted files; None without any file."""
    from satchel.storage.sql.scoring_layout import SegmentPart, merge

    parts = [SegmentPart(segment.arrays, ~among(segment.files, gone)) for segment in segments]
    if not any(part.kept.any() for part in parts):
        return None
    return parts[0].arrays if len(parts) == 1 and parts[0].kept.all() else merge(parts)
