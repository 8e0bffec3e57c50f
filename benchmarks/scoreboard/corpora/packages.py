"""The packages whose docstrings are asked, each pinned by its hash, and how they are fetched.

None of them was read when Satchel's embedding model was trained (`scripts/embedder/packages.tsv`), and none is among
the repositories that its ranker was fitted on. A test keeps it so.

Wheels, not source distributions: pip runs the build of a source distribution before it hands it out, and nothing of
theirs should run here. A wheel of pure Python holds the same modules.
"""

from __future__ import annotations

import hashlib
import subprocess
import sys
import zipfile
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path, PurePosixPath
from typing import Final

from benchmarks.scoreboard.corpora.model import Unavailable

_ANY: Final = "--only-binary=:all: --implementation=py --abi=none --platform=any --python-version=3.11".split()
_SECONDS: Final = 600
_LEFT_OUT: Final = set(
    "test tests testing conftest.py _vendor vendor vendored extern externals third_party thirdparty _version.py".split()
)
MAX_FILE_BYTES: Final = 1_000_000


@dataclass(frozen=True, slots=True, kw_only=True)
class Package:
    """A wheel of pure Python on a package index."""

    name: str
    version: str
    sha256: str
    copied: tuple[str, ...] = ()
    """Files taken over from projects that the embedding model was trained on: searched, but not asked about."""


def wheel(package: Package, downloads: Path) -> Path:
    """The package's wheel, fetched by pip from the index it is set up with, if it is not there yet."""
    folder = downloads / f"{package.name}-{package.version}"
    there = _right(folder, package)
    if there is None:
        _download(package, folder)
        there = _right(folder, package)
    if there is None:
        raise Unavailable(f"pip did not bring the wheel of {package.name} {package.version} with the pinned hash")
    return there


def modules(archive: Path) -> Iterator[tuple[str, bytes]]:
    """Path and content of the Python files, without tests and copies of other projects."""
    with zipfile.ZipFile(archive) as opened:
        for entry in sorted(opened.infolist(), key=lambda entry: entry.filename):
            path = PurePosixPath(entry.filename)
            foreign = _LEFT_OUT & set(path.parts) or path.name.startswith("test_") or path.parts[0].endswith(".data")
            if path.suffix == ".py" and not foreign and entry.file_size <= MAX_FILE_BYTES:
                yield entry.filename, opened.read(entry)


def _right(folder: Path, package: Package) -> Path | None:
    found = sorted(folder.glob("*.whl"))
    return next((path for path in found if hashlib.sha256(path.read_bytes()).hexdigest() == package.sha256), None)


def _download(package: Package, folder: Path) -> None:
    folder.mkdir(parents=True, exist_ok=True)
    wanted = folder / "requirements.txt"
    wanted.write_text(f"{package.name}=={package.version} --hash=sha256:{package.sha256}\n", encoding="ascii")
    command = [sys.executable, "-m", "pip", "--quiet", "--disable-pip-version-check", "--no-input", "download"]
    command += ["--no-deps", "--require-hashes", *_ANY, "--dest", str(folder), "--requirement", str(wanted)]
    try:
        subprocess.run(command, capture_output=True, check=True, timeout=_SECONDS)
    except subprocess.TimeoutExpired:
        raise Unavailable(f"pip took longer than {_SECONDS} seconds for {package.name}") from None
    except subprocess.CalledProcessError as error:
        said = [line for line in error.stderr.decode(errors="replace").splitlines() if line.startswith("ERROR")]
        reason = said[-1] if said else f"pip ended with {error.returncode}"
        raise Unavailable(f"{package.name} {package.version}: {reason}") from None
