"""What indexes share: the time and disk of a second worktree, of a branch switched and switched back, of an edited note.

    python benchmarks/sharing_bench.py            measures, and puts its part into docs/benchmarks.md
    python benchmarks/sharing_bench.py --print    measures and prints

SATCHEL_BENCH_REPOSITORY is a git repository with at least 300 commits (default: this one). Each step is a `satchel index`
in a process of its own; a ratio is that of two steps of one run.
"""

from __future__ import annotations

import os
import shutil
import subprocess
import sys
import tempfile
import time
from pathlib import Path

ROOT = Path(__file__).resolve().parent.parent
sys.path.insert(0, str(ROOT))

from benchmarks.sections import put_section  # noqa: E402
from satchel.service.factory.opening import open_engine  # noqa: E402
from satchel.service.importing import import_again, import_source  # noqa: E402

HEADING = "## What indexes share"
REPOSITORY = Path(os.environ.get("SATCHEL_BENCH_REPOSITORY") or ROOT)
NOTES = 1_100
COMMITS_BACK = 100  # the other branch: some hundred files differ, as between branches of a few weeks


def page() -> str:
    """The part of docs/benchmarks.md that is about shared work."""
    load = os.getloadavg()[0]
    with tempfile.TemporaryDirectory() as place:
        base = Path(place)
        one, two = base / "one", base / "two"
        checkout(one, "HEAD")
        shutil.copytree(one, two, symlinks=True)
        files = sum(path.is_file() for path in one.rglob("*"))
        empty = base / "empty"
        empty.mkdir()
        start = index(empty)
        cold = index(one) - start
        whole = disk(base, "one")
        shared = disk(base, "shared")
        second, second_disk = index(two) - start, disk(base, "two")
        remove(base, "two")
        remove(base, "one")
        prepared, prepared_disk = index(two) - start, disk(base, "two")
        other = switch(two, f"HEAD~{COMMITS_BACK}", start)
        back = switch(two, "HEAD", start)
        steps = (
            ("second worktree: starts from the index of the first", second, second_disk),
            ("the same without another index: prepared files alone", prepared, prepared_disk),
            (f"switched to {COMMITS_BACK} commits earlier", other, None),
            ("switched back", back, None),
        )
    rows = [f"| {what} | {s / cold:.3f} | {'' if size is None else f'{size / whole:.2f}'} |" for what, s, size in steps]
    return "\n".join(
        [
            HEADING,
            "",
            f"`python benchmarks/sharing_bench.py`; {REPOSITORY.name}, {files:,} files; load {load:.1f} when it began. One is the first index of the",
            f"repository: {cold:.1f} processor seconds beside the start of the program ({start:.1f} s, in none of the times), {whole / 1e6:.0f} MB on disk. The shared file has {shared / 1e6:.0f} MB.",
            "Disk counts a hard-linked file in none but the first index. Every step reads and compares all files.",
            "",
            "| step | processor time | disk |",
            "|---|--:|--:|",
            *rows,
            f"| one of {NOTES:,} imported notes edited, ÷ the import of all | {edited_note():.3f} | |",
            "",
        ]
    )


def edited_note() -> float:
    """Processor time of importing one edited note again, as a share of the import of all."""
    with tempfile.TemporaryDirectory() as place:
        folder = Path(place) / "vault"
        folder.mkdir()
        for number in range(NOTES):
            text = f"# Note {number}\n\n" + "".join(
                f"## Part {part}\n\n{'some words of a note ' * 10}\n\n- to [[note{(number * 7 + part) % NOTES}#Part 1]]\n\n"
                for part in range(3)
            )
            (folder / f"note{number}.md").write_text(text)
        time.sleep(0.1)  # a file written just before an import is read again at the next
        with open_engine(folder, index_dir=f"{place}/indexes") as engine:
            began = time.process_time()
            import_source(engine.workspace, folder)
            imported = time.process_time() - began
            with (folder / "note7.md").open("a") as note:
                note.write("\nand another line\n")
            began = time.process_time()
            (source,) = engine.workspace.changed_sources()
            import_again(engine.workspace, source, only_changes=True)
            return (time.process_time() - began) / imported


def checkout(folder: Path, revision: str) -> None:
    folder.mkdir(exist_ok=True)
    archive = subprocess.run(["git", "-C", str(REPOSITORY), "archive", revision], capture_output=True, check=True)
    subprocess.run(["tar", "x", "-C", str(folder)], input=archive.stdout, check=True)


def switch(folder: Path, revision: str, start: float) -> float:
    """Processor seconds of the index run after the folder has been switched; only files that differ are written."""
    with tempfile.TemporaryDirectory() as place:
        wanted = Path(place) / "wanted"
        checkout(wanted, revision)
        paths = {path.relative_to(wanted) for path in wanted.rglob("*") if path.is_file()}
        for path in [path for path in folder.rglob("*") if path.is_file()]:
            if path.relative_to(folder) not in paths:
                path.unlink()
        for path in paths:
            target, data = folder / path, (wanted / path).read_bytes()
            if not target.is_file() or target.read_bytes() != data:
                target.parent.mkdir(parents=True, exist_ok=True)
                target.write_bytes(data)
    return index(folder) - start


def index(folder: Path) -> float:
    """Processor seconds of `satchel index`, its child processes included."""
    command = [sys.executable, "-m", "satchel", "index", str(folder), "--index-dir", str(folder.parent / "indexes")]
    before = os.times()
    done = subprocess.run(command, capture_output=True, text=True, check=True)
    after = os.times()
    seconds = after.children_user + after.children_system - before.children_user - before.children_system
    print(f"{folder.name}: {seconds:.2f} s, {done.stderr.splitlines()[0]}", file=sys.stderr)
    return seconds


def disk(base: Path, name: str) -> int:
    """Bytes of an index; a linked segment belongs to the index that made it."""
    files = [path.stat() for path in base.glob(f"indexes/{name}*/**/*") if path.is_file()]
    return sum(info.st_size for info in files if info.st_nlink == 1)


def remove(base: Path, name: str) -> None:
    for folder in base.glob(f"indexes/{name}*"):
        shutil.rmtree(folder)


if __name__ == "__main__":
    measured = page()
    print(measured)
    if "--print" not in sys.argv[1:]:
        put_section(ROOT / "docs/benchmarks.md", HEADING, measured)
