"""The segments on disk: which there are, which generation they reflect, and how they catch up with the truth."""

from __future__ import annotations

import json
import os
from collections.abc import Iterable, Sequence
from contextlib import suppress
from pathlib import Path
from typing import TYPE_CHECKING, NamedTuple

from satchel.storage.sqlite.arrays import DamagedArrays
from satchel.storage.sqlite.database_file import mark_of

if TYPE_CHECKING:
    from satchel.storage.sqlite.database_file import SqliteDatabase
    from satchel.storage.sqlite.segment import Segment


class Manifest(NamedTuple):
    """Which segments make up the whole, the generation they reflect, and which of their files are no more."""

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
        """What changes whenever the manifest does."""
        try:
            info = os.stat(self._current)
        except OSError:
            return None
        return info.st_ino, info.st_mtime_ns

    def manifest(self) -> Manifest:
        """The manifest; an empty one where there is none that can be read."""
        try:
            kept = json.loads(self._current.read_bytes())
            segments, gone = kept["segments"], kept["gone"]
            if not all(isinstance(one, str) and "/" not in one for one in segments):
                return Manifest()
            return Manifest(int(kept["generation"]), tuple(segments), tuple(map(int, gone)), str(kept["mark"]))
        except (OSError, ValueError, KeyError, TypeError, OverflowError, RecursionError):
            return Manifest()

    def reflected(self, db: SqliteDatabase) -> int:
        """The generation of this truth that the segments reflect; 0 when they are missing, damaged or of another."""
        manifest, _ = self.open()
        return manifest.generation if manifest.mark == mark_of(db, manifest.generation) else 0

    def open(self) -> tuple[Manifest, list[Segment]]:
        """The segments of the manifest, opened; none when one of them is missing or damaged."""
        from satchel.storage.sqlite.segment import Segment

        for _ in range(3):
            manifest = self.manifest()
            try:
                return manifest, [Segment(self._folder / name) for name in manifest.segments]
            except FileNotFoundError:
                continue  # a writer was faster: its manifest names others
            except (DamagedArrays, KeyError, OSError, ValueError):
                break
        return Manifest(), []

    def forget(self) -> None:
        """Let the next run make everything anew."""
        with suppress(OSError):
            self._current.unlink()

    def catch_up(self, db: SqliteDatabase, generation: int, dimensions: int) -> bool:
        """Make segments for what the truth holds and they do not; whether there was anything to do."""
        manifest, segments = self.open()
        if manifest.mark != mark_of(db, manifest.generation):
            manifest, segments = Manifest(), []
        if manifest.generation == generation and self._current.exists():
            return False
        self._folder.mkdir(parents=True, exist_ok=True)
        since = (manifest.generation,)
        gone = {*manifest.gone, *(row[0] for row in db.execute("SELECT file FROM gone WHERE generation > ?", since))}
        newer = "SELECT id FROM file WHERE workspace = ? AND generation > ? ORDER BY id"
        fresh = [row[0] for row in db.execute(newer, (db.workspace, *since))]
        kept, again = _to_merge(segments, gone)
        files = sorted({*fresh, *(file for segment in again for file in segment.files.tolist() if file not in gone)})
        names = [segment.name for segment in kept]
        if files:
            names.append(self._write(db, files, generation, dimensions))
        held = {file for segment in kept for file in segment.files.tolist()}
        self._replace(Manifest(generation, tuple(names), tuple(sorted(gone & held)), mark_of(db, generation)))
        self._sweep(names)
        return True

    def _write(self, db: SqliteDatabase, files: Sequence[int], generation: int, dimensions: int) -> str:
        from satchel.storage.sql.scoring_layout import Layout, lay_out
        from satchel.storage.sqlite.arrays import write_arrays

        layout = Layout(dimensions)
        lay_out(layout, db, files)
        name = f"{generation:010d}-{os.getpid()}.segment"
        write_arrays(self._folder / name, layout.arrays())
        return name

    def _replace(self, manifest: Manifest) -> None:
        part = self._folder / f"current.{os.getpid()}.part"
        try:
            with part.open("w") as file:
                json.dump(manifest._asdict(), file)
                file.flush()
                os.fsync(file.fileno())
            part.replace(self._current)
        finally:
            part.unlink(missing_ok=True)

    def _sweep(self, names: Iterable[str]) -> None:
        keep = {*names, self._current.name}
        for path in self._folder.iterdir():
            if path.name not in keep:
                with suppress(OSError):
                    path.unlink()


def _to_merge(segments: Sequence[Segment], gone: set[int]) -> tuple[list[Segment], list[Segment]]:
    """The segments that stay, and those whose files are laid out anew."""
    from satchel.storage.sql.scoring_layout import segments_to_merge

    files = sum(len(segment.files) for segment in segments)
    sizes = {segment.name: len(segment.piece_ids) for segment in segments}
    chosen = set(segments_to_merge(sizes, gone=len(gone), files=files))
    stay = [segment for segment in segments if segment.name not in chosen]
    return stay, [segment for segment in segments if segment.name in chosen]
