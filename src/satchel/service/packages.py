"""Installed packages as roots: the text of a Python or npm package, as the project's environment has it.

Only files are read: metadata (`*.dist-info`, `package.json`) and the files that belong to the package. Nothing of the
package or of its interpreter is run. The text is copied once per version into the cache, where all projects share it.
"""

from __future__ import annotations

import json
import os
import re
import shutil
import sys
import tempfile
from collections.abc import Iterator, Mapping, Sequence
from contextlib import suppress
from hashlib import blake2b
from importlib.metadata import Distribution, distributions
from itertools import islice
from pathlib import Path
from typing import Final, NamedTuple

from satchel.errors import InvalidOption
from satchel.indexing.walk import DEFAULT_MAX_FILE_BYTES, Skip, may_hold_secrets, opened_folder, read_bytes, text_of

_NAME: Final = re.compile(r"(?:(npm|python):)?((?:@[A-Za-z0-9][\w.-]*/)?[A-Za-z0-9][\w.-]*)")
"""A package's name, with the kind where both have one of this name; no name leads out of a folder."""
_ENVIRONMENTS: Final = (".venv", "venv")
"""Folders of a project's virtual environment, as the tools of Python name them."""
_SITE_PACKAGES: Final = ("lib/python*/site-packages", "Lib/site-packages")
_PACKAGE_FOLDERS: Final = ("site-packages", "dist-packages")
COPIES: Final = "satchel-packages"
"""The folder of the copies in the cache, beside the indexes; nobody else has a folder of this name there."""
_MAX_FILES: Final = 20_000
"""Files of a package: three times those of the largest common ones; more are data, which would fill the cache."""
_INSTALLATION_S: Final = 2.0
"""Files of one installation are written within this time before their marker; a later file was edited by hand."""
_MAX_MANIFEST_BYTES: Final = 1_000_000  # a package.json has a few kilobytes


class Package(NamedTuple):
    """An installed package: the folder of its files, and their paths in it."""

    label: str
    """`requests@2.32.3`: a name for paths, so without slashes."""
    folder: Path
    files: Mapping[str, str]
    """The path of each file in the folder, with the hash (Python) or the size (npm) that it was installed with."""
    marker: str
    """The file that the installation wrote last: `RECORD` or `package.json`; '' if there is none."""
    readme: tuple[str, str] | None = None
    """The file name and the text of a description that is in the metadata."""


def find_package(name: str, project: Path, environ: Mapping[str, str] | None = None) -> Package:
    """The installed package for a project: of its virtual environment, or of the `node_modules` around it.

    Without a `.venv` or `venv` in the project, the environment is that of `VIRTUAL_ENV`, else of this Python. Raises
    InvalidOption with the places that were searched.
    """
    match = _NAME.fullmatch(name)
    if match is None:
        raise InvalidOption("with", name, "must be the name of a Python package, or of an npm package (@scope/name)")
    kind, bare = match.groups()
    sites = [] if kind == "npm" or bare.startswith("@") else _site_packages(project, environ or os.environ)
    modules = [] if kind == "python" else [folder / "node_modules" for folder in (project, *project.parents)]
    python, npm = _python_package(bare, sites), _npm_package(bare, modules)
    if python and npm:
        problem = f"is both a Python and an npm package here; give python:{bare} or npm:{bare}"
        raise InvalidOption("with", name, problem)
    if found := python or npm:
        return found
    searched = [str(place) for place in (*sites, *modules) if place.is_dir()]
    raise InvalidOption(
        "with",
        name,
        f"is not installed in {', '.join(searched) or 'any environment'}; install it there, or leave it out",
    )


def package_folder(package: Package, cache: Path) -> Path:
    """The folder below `cache` with the text of the package, copied there if it is not there yet.

    Binary files, secrets and links are left out. A package edited after its installation has a copy of its own.
    """
    with opened_folder(package.folder) as handle:
        target = cache / COPIES / _digest(package, handle) / package.label
        if not target.is_dir():
            target.parent.parent.mkdir(parents=True, exist_ok=True)
            # Renamed at the end: a process that is killed, or two at once, leave no half copy.
            made = Path(tempfile.mkdtemp(prefix=".", dir=target.parent.parent))
            try:
                _copy(package, handle, made / package.label)
                with suppress(OSError):
                    made.rename(target.parent)
            finally:
                shutil.rmtree(made, ignore_errors=True)
    return target


def _copy(package: Package, handle: int, target: Path) -> None:
    target.mkdir()
    for path in package.files:
        data = read_bytes(handle, path, DEFAULT_MAX_FILE_BYTES)
        if not isinstance(data, Skip) and not isinstance(text_of(path, data), Skip):
            file = target / path
            file.parent.mkdir(parents=True, exist_ok=True)
            file.write_bytes(data)
    if package.readme is not None:
        name, text = package.readme
        (target / name).write_text(text, encoding="utf-8", errors="replace")


def _digest(package: Package, handle: int) -> str:
    """Names what is installed: equal for equal installations, in whatever environment they are."""
    known = blake2b(f"{package.label}\0{package.readme}".encode("utf-8", "replace"), digest_size=8)
    installed = _modified(handle, package.marker) + _INSTALLATION_S if package.marker else 0.0
    for path, stamp in package.files.items():
        known.update(f"{path}\0{stamp}\0".encode("utf-8", "replace"))
        if _modified(handle, path) > installed:
            data = read_bytes(handle, path, DEFAULT_MAX_FILE_BYTES)
            known.update(b"" if isinstance(data, Skip) else data)
    return known.hexdigest()


def _modified(handle: int, path: str) -> float:
    try:
        return os.stat(path, dir_fd=handle, follow_symlinks=False).st_mtime
    except OSError:
        return 0.0


def _is_text_file(path: str) -> bool:
    """True for a path below the package's folder that may hold text: no cache, no secret, no way out."""
    parts = path.split("/")
    is_below = not path.startswith("/") and ".." not in parts
    return is_below and "__pycache__" not in parts and not may_hold_secrets(parts[-1])


# -- Python


def _site_packages(project: Path, environ: Mapping[str, str]) -> list[Path]:
    own = [place for name in _ENVIRONMENTS for place in _sites_of(project / name)]
    if own:
        return own
    active = environ.get("VIRTUAL_ENV")
    of_this_python = [Path(entry) for entry in sys.path if Path(entry).name in _PACKAGE_FOLDERS]
    return (_sites_of(Path(active)) if active else []) or of_this_python


def _sites_of(environment: Path) -> list[Path]:
    return [place for pattern in _SITE_PACKAGES for place in sorted(environment.glob(pattern)) if place.is_dir()]


def _python_package(name: str, sites: Sequence[Path]) -> Package | None:
    found = next(iter(distributions(name=name, path=[str(site) for site in sites])), None) if sites else None
    if found is None:
        return None
    _refuse_editable(name, found)
    stamps = {path.as_posix(): path.hash.value if path.hash else "" for path in found.files or ()}
    own = sorted(path for path in stamps if not _is_metadata(path) and _is_text_file(path))
    return Package(
        label=_label(_field(found, "Name") or name, found.version),
        folder=Path(str(found.locate_file(""))),
        files={path: stamps[path] for path in own[:_MAX_FILES]},
        marker=next((path for path in stamps if _is_metadata(path) and path.endswith("/RECORD")), ""),
        readme=_readme(found),
    )


def _is_metadata(path: str) -> bool:
    return path.partition("/")[0].endswith((".dist-info", ".egg-info"))


def _field(found: Distribution, name: str) -> str:
    return str(found.metadata[name]) if name in found.metadata else ""


def _refuse_editable(name: str, found: Distribution) -> None:
    """Raise InvalidOption for a package that is only a pointer to its source folder: that folder can be asked."""
    try:
        origin = json.loads(found.read_text("direct_url.json") or "{}")
    except ValueError:
        return
    if isinstance(origin, dict) and isinstance(origin.get("dir_info"), dict) and origin["dir_info"].get("editable"):
        source = str(origin.get("url", "")).removeprefix("file://")
        raise InvalidOption("with", name, f"is installed in editable mode from {source}; give that folder as a root")


def _readme(found: Distribution) -> tuple[str, str] | None:
    """The description that a wheel has in its metadata: usually the project's README."""
    text = _field(found, "Description")
    name = "README.md" if "markdown" in _field(found, "Description-Content-Type") else "README.rst"
    return (name, text) if text.strip() else None


# -- npm


def _npm_package(name: str, modules: Sequence[Path]) -> Package | None:
    for folder in modules:
        manifest = _manifest(folder / name)
        # A link may lead anywhere (pnpm and workspaces use them): only to a package of this name.
        if manifest.get("name") == name:
            real = (folder / name).resolve()
            return Package(
                label=_label(name, str(manifest.get("version") or "0")),
                folder=real,
                files=dict(islice(_npm_files(real), _MAX_FILES)),
                marker="package.json",
            )
    return None


def _manifest(folder: Path) -> Mapping[str, object]:
    if not (folder / "package.json").is_file():
        return {}
    with opened_folder(folder) as handle:
        data = read_bytes(handle, "package.json", _MAX_MANIFEST_BYTES)
    try:
        manifest = json.loads(b"" if isinstance(data, Skip) else data)
    except (ValueError, RecursionError):
        return {}
    return manifest if isinstance(manifest, dict) else {}


def _npm_files(package: Path) -> Iterator[tuple[str, str]]:
    """The files of an npm package with their sizes, without the packages that it depends on."""
    for folder, below, names in os.walk(package):
        below[:] = sorted(name for name in below if name not in ("node_modules", ".git"))
        for name in sorted(names):
            path = (Path(folder).relative_to(package) / name).as_posix()
            # Beside a package.json `dist` is taken for build output, but of an installed package it is the source.
            if name != "package.json" and _is_text_file(path):
                with suppress(OSError):
                    yield path, str(os.lstat(os.path.join(folder, name)).st_size)


def _label(name: str, version: str) -> str:
    return re.sub(r"[^\w.@+!-]", "+", f"{name}@{version}")
