"""Installed packages as roots: the text of a Python or npm package, as the project's environment has it.

Only files are read: metadata (`*.dist-info`, `package.json`) and the files that belong to the package. Nothing of the
package or of its interpreter is run. The text is copied once per version into the cache, where all projects share it.
"""

from __future__ import annotations

import csv
import json
import os
import re
import shutil
import sys
import tempfile
from collections.abc import Iterator, Mapping, Sequence
from contextlib import suppress
from email import message_from_string
from email.message import Message
from hashlib import blake2b
from itertools import islice
from pathlib import Path
from typing import Final, NamedTuple

from satchel.errors import InvalidOption
from satchel.indexing.walk import DEFAULT_MAX_FILE_BYTES, Skip, may_hold_secrets, opened_folder, read_bytes, text_of
from satchel.text.decoding import decode_text

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
_MAX_METADATA_BYTES: Final = 10_000_000  # RECORD of the largest packages has a few megabytes; the rest is smaller


class Package(NamedTuple):
    """An installed package: the folder of its files, and their paths in it."""

    label: str
    """`requests@2.32.3`: a name for paths, so without slashes."""
    folder: Path
    files: Mapping[str, str]
    """The path of each file in the folder, with the hash in RECORD, or without RECORD the size."""
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
    wanted = _normalized(name)
    for site in sites:
        for info in sorted(place.name for place in site.glob("*.dist-info")):
            if _normalized(info.removesuffix(".dist-info").rpartition("-")[0]) == wanted:
                with opened_folder(site) as handle:
                    return _installed(name, site, handle, info)
    return None


def _installed(name: str, site: Path, handle: int, info: str) -> Package:
    """The package of a `dist-info` folder; its files are read without following links, as all files of a project."""
    _refuse_editable(name, _read(handle, f"{info}/direct_url.json"))
    metadata = message_from_string(_read(handle, f"{info}/METADATA"))
    rows = [row for row in csv.reader(_read(handle, f"{info}/RECORD").splitlines()) if row]
    bare, _, version = info.removesuffix(".dist-info").rpartition("-")
    modules = _read(handle, f"{info}/top_level.txt").split() or [bare, bare.lower()]
    hashes = {row[0]: row[1] if len(row) > 1 else "" for row in rows} or _of_modules(site, modules)
    own = sorted(path for path in hashes if not path.startswith(f"{info}/") and _is_text_file(path))
    return Package(
        label=_label(str(metadata["Name"] or bare), str(metadata["Version"] or version)),
        folder=site,
        files={path: hashes[path] for path in own[:_MAX_FILES]},
        marker=f"{info}/RECORD" if rows else "",
        readme=_readme(metadata),
    )


def _of_modules(site: Path, modules: Sequence[str]) -> dict[str, str]:
    """The files of modules with their sizes: of a package without RECORD, as Linux distributions install them."""
    folders = [site / name for name in dict.fromkeys(modules) if name.isidentifier()]
    files = {f"{folder.name}/{path}": size for folder in folders for path, size in _files_below(folder)}
    return files | {f"{folder.name}.py": "" for folder in folders if Path(f"{folder}.py").is_file()}


def _refuse_editable(name: str, direct_url: str) -> None:
    """Raise InvalidOption for a package that is only a pointer to its source folder: that folder can be asked."""
    try:
        origin = json.loads(direct_url or "{}")
    except (ValueError, RecursionError):
        return
    if isinstance(origin, dict) and isinstance(origin.get("dir_info"), dict) and origin["dir_info"].get("editable"):
        source = str(origin.get("url", "")).removeprefix("file://")
        raise InvalidOption("with", name, f"is installed in editable mode from {source}; give that folder as a root")


def _readme(metadata: Message) -> tuple[str, str] | None:
    """The description that a wheel has in its metadata: usually the project's README."""
    text = metadata["Description"] or metadata.get_payload()
    name = "README.md" if "markdown" in str(metadata["Description-Content-Type"]) else "README.rst"
    return (name, text) if isinstance(text, str) and text.strip() else None


def _normalized(name: str) -> str:
    """A name as Python's tools compare it."""
    return re.sub(r"[-_.]+", "-", name).lower()


def _read(handle: int, path: str) -> str:
    """The text of a metadata file; '' if it is missing, too large or a link."""
    data = read_bytes(handle, path, _MAX_METADATA_BYTES)
    return "" if isinstance(data, Skip) else decode_text(data)


# -- npm


def _npm_package(name: str, modules: Sequence[Path]) -> Package | None:
    for folder in modules:
        real = (folder / name).resolve()
        # pnpm and workspaces use links. One may lead to another package, or to a folder beside its `node_modules`.
        is_inside = real.is_relative_to(folder.parent.resolve()) or "node_modules" in real.parts
        manifest = _manifest(real) if is_inside and real.is_dir() else {}
        if manifest.get("name") == name:
            return Package(
                label=_label(name, str(manifest.get("version") or "0")),
                folder=real,
                # Beside a package.json `dist` is taken for build output, but of an installed package it is the source.
                files={path: size for path, size in islice(_files_below(real), _MAX_FILES) if path != "package.json"},
                marker="package.json",
            )
    return None


def _manifest(folder: Path) -> Mapping[str, object]:
    with opened_folder(folder) as handle:
        text = _read(handle, "package.json")
    try:
        manifest = json.loads(text)
    except (ValueError, RecursionError):
        return {}
    return manifest if isinstance(manifest, dict) else {}


def _files_below(package: Path) -> Iterator[tuple[str, str]]:
    """The files that may hold text below a folder, with their sizes; without the packages that it depends on."""
    for folder, below, names in os.walk(package):
        below[:] = sorted(name for name in below if name not in ("node_modules", ".git"))
        for name in sorted(names):
            path = (Path(folder).relative_to(package) / name).as_posix()
            if _is_text_file(path):
                with suppress(OSError):
                    yield path, str(os.lstat(os.path.join(folder, name)).st_size)


def _label(name: str, version: str) -> str:
    return re.sub(r"[^\w.@+!-]", "+", f"{name}@{version}")
