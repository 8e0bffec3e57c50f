"""Download the pinned packages and cut them into (query, text) pairs to train on.

``packages.tsv`` names every package with its index (pypi, npm, debian for source packages, deb for binary ones), its
version and its licence. What the packages hold is read, never run.
The pairs go to a JSON Lines file, one object a pair: package, kind, query, text.
"""

import argparse
import io
import json
import lzma
import re
import tarfile
import time
import urllib.error
import urllib.parse
import urllib.request
import zipfile
from collections import Counter
from collections.abc import Iterator
from concurrent.futures import ProcessPoolExecutor, ThreadPoolExecutor
from pathlib import Path, PurePosixPath
from typing import NamedTuple

from extract import KINDS, Pair, pairs_of

DEBIAN = "http://deb.debian.org/debian"
LARGEST_FILE = 600_000
LARGEST_ARCHIVE = 25_000_000
ATTEMPTS = 3
PAIRS_OF_A_KIND = {"name": 300, "prose": 400, "sentence": 300}
"""At most so many of a kind from one package, that no package speaks for all; code kinds have ``MOST_PAIRS``."""
MOST_PAIRS = 1_200

EVALUATED = set(
    "fastapi model2vec semble requests axios chi jackson guzzle laravel illuminate rails activerecord activesupport "
    "actionpack activemodel actionview activejob activestorage actioncable actionmailer railties messagepack msgpack "
    "ktor click phoenix axum vitest dapper circe http4s snapkit abseil absl redis bats telescope pandoc zls django "
    "sympy sklearn matplotlib pytest sphinx astropy flask seaborn xarray pylint".split()
)
"""The projects that Satchel is measured on. Whatever has one of these words in its name or path is left out."""
_LONG = tuple(name for name in EVALUATED if len(name) > 4 and name not in {"click", "requests"})
_FOREIGN = set(
    "vendor vendored _vendor third_party thirdparty 3rdparty node_modules extern external externals deps "
    "_static static".split()
)
"""Copies of other projects live here: they would be harvested twice, or be an evaluated project in disguise."""


class Package(NamedTuple):
    index: str
    name: str
    version: str
    licence: str


def excluded(name: str) -> bool:
    """Whether a package name or a path belongs to an evaluated project or to a vendored copy."""
    lowered = name.lower()
    if "scikit-learn" in lowered or any(long in lowered for long in _LONG):
        return True
    tokens = set(re.split(r"[^a-z0-9_]+", lowered))
    finer = set(re.split(r"[^a-z0-9]+", lowered))
    return bool(tokens & _FOREIGN or (tokens | finer) & EVALUATED)


def fetch(address: str) -> bytes:
    request = urllib.request.Request(address, headers={"User-Agent": "satchel-harvest"})
    for attempt in range(ATTEMPTS):
        try:
            with urllib.request.urlopen(request, timeout=120) as answer:
                return bytes(answer.read())
        except urllib.error.HTTPError:
            raise
        except OSError:
            if attempt == ATTEMPTS - 1:
                raise
            time.sleep(2)
    raise AssertionError


def debian_addresses() -> dict[tuple[str, str, str], str]:
    """Where the upstream tarball of every Debian source package (debian) and every binary package (deb) is."""
    found = {}
    for stanza in (
        lzma.decompress(fetch(f"{DEBIAN}/dists/bookworm/main/binary-amd64/Packages.xz")).decode().split("\n\n")
    ):
        field = dict(re.findall(r"^(Package|Version|Filename): (.+)$", stanza, re.M))
        if len(field) == 3:
            found["deb", field["Package"], field["Version"]] = f"{DEBIAN}/{field['Filename']}"
    for stanza in lzma.decompress(fetch(f"{DEBIAN}/dists/bookworm/main/source/Sources.xz")).decode().split("\n\n"):
        field = dict(re.findall(r"^(Package|Version|Directory): (.+)$", stanza, re.M))
        files = re.findall(r"^ \w{32} \d+ (\S+)$", stanza, re.M)
        tarball = [f for f in files if re.search(r"(\.orig|_[^-]*)\.tar\.(gz|xz|bz2)$", f)]
        if tarball and len(field) == 3:
            found["debian", field["Package"], field["Version"]] = f"{DEBIAN}/{field['Directory']}/{tarball[0]}"
    return found


def address_of(package: Package, debian: dict[tuple[str, str, str], str], wheels: bool = False) -> str:
    """Where the archive is; with ``wheels`` a wheel of any size, because only wheels carry built catalogues."""
    if package.index in {"debian", "deb"}:
        return debian[package.index, package.name, package.version]
    if package.index == "npm":
        about = json.loads(fetch(f"https://registry.npmjs.org/{package.name.replace('/', '%2f')}/{package.version}"))
        return str(about["dist"]["tarball"])
    files = json.loads(fetch(f"https://pypi.org/pypi/{package.name}/json"))["releases"][package.version]
    files = [f for f in files if wheels or f["size"] < LARGEST_ARCHIVE]
    sdists = [f for f in files if f["packagetype"] == "sdist"]
    built = [f for f in files if f["filename"].endswith(".whl")]
    best = built + sdists if wheels else sdists + built
    return "https://files.pythonhosted.org/packages/" + str(best[0]["url"]).rsplit("packages/", 1)[-1]  # mirrors differ


def download(
    package: Package, folder: Path, debian: dict[tuple[str, str, str], str], wheels: bool = False
) -> Path | None:
    """The package's archive in the folder; fetched only when it is not there yet."""
    stem = f"{package.index}--{package.name.replace('/', '+')}--{urllib.parse.quote(package.version, safe='')}"
    there = folder / stem
    if there.exists():
        return there
    try:
        content = fetch(address_of(package, debian, wheels))
    except (OSError, KeyError, IndexError) as error:
        print(f"not fetched: {package.name} {package.version}: {error}")
        return None
    there.write_bytes(content)
    return there


def files_of(archive: Path) -> Iterator[tuple[str, str]]:
    """Path and text of every file of the archive that pairs can come from."""
    content = archive.read_bytes()
    if content.startswith(b"!<arch>"):
        content = _data_of_deb(content)
    if content[:2] == b"PK":
        with zipfile.ZipFile(io.BytesIO(content)) as zipped:
            for entry in zipped.infolist():
                if _wanted(entry.filename, entry.file_size):
                    yield entry.filename, zipped.read(entry).decode("utf-8", "ignore")
        return
    with tarfile.open(fileobj=io.BytesIO(content)) as tar:
        for member in tar:
            if member.isfile() and _wanted(member.name, member.size):
                data = tar.extractfile(member)
                assert data is not None
                yield member.name, data.read().decode("utf-8", "ignore")


def _data_of_deb(content: bytes) -> bytes:
    """The tarball with the installed files inside a .deb, which is an ar archive: 8 bytes, then 60-byte headers."""
    at = 8
    while at < len(content):
        size = int(content[at + 48 : at + 58])
        if content[at : at + 8] == b"data.tar":
            return content[at + 60 : at + 60 + size]
        at += 60 + size + size % 2
    raise EOFError("a .deb without data.tar")


def _wanted(path: str, size: int) -> bool:
    pure = PurePosixPath(path)
    if pure.suffix.lower() not in KINDS or not 200 < size < LARGEST_FILE or ".min." in pure.name:
        return False
    inside = "/".join(pure.parts[1:])  # the first part is the package's own folder, judged by its name already
    return not excluded(inside) and not re.search(r"(^|/)(tests?|testdata|locales?|fixtures)/", inside)


def harvest(package: Package, archive: Path) -> list[Pair]:
    """The pairs of one package, without repetitions."""
    pairs, seen, counts = [], set(), Counter[str]()
    try:
        for path, text in files_of(archive):
            kind = KINDS[PurePosixPath(path).suffix.lower()]
            if counts[kind] >= PAIRS_OF_A_KIND.get(kind, MOST_PAIRS):
                continue
            for pair in pairs_of(path, text):
                key = (pair.kind == "name", pair.query)
                if key in seen or counts[pair.kind] >= PAIRS_OF_A_KIND.get(pair.kind, MOST_PAIRS):
                    continue
                seen.add(key)
                counts[pair.kind] += 1
                pairs.append(pair)
    except (tarfile.TarError, zipfile.BadZipFile, EOFError, OSError) as error:
        print(f"not read: {package.name}: {error}")
    return pairs


def downloaded(about: str | None, *, wheels: bool = False) -> tuple[list[tuple[Package, Path]], Path]:
    """The packages of the command's table with their archives, and the file for the pairs."""
    parser = argparse.ArgumentParser(description=about)
    parser.add_argument("packages", type=Path)
    parser.add_argument("archives", type=Path)
    parser.add_argument("pairs", type=Path)
    arguments = parser.parse_args()
    arguments.archives.mkdir(parents=True, exist_ok=True)
    lines = arguments.packages.read_text().splitlines()
    packages = [Package(*line.split("\t")) for line in lines if line and not line.startswith("#")]
    assert not any(excluded(package.name) for package in packages)
    debian = debian_addresses()
    with ThreadPoolExecutor(8) as pool:
        archives = pool.map(lambda package: download(package, arguments.archives, debian, wheels=wheels), packages)
        return [
            (package, archive) for package, archive in zip(packages, archives, strict=True) if archive
        ], arguments.pairs


def main() -> None:
    """Write the pairs of every package of the table."""
    work, file = downloaded(__doc__)
    seen: set[tuple[str, str]] = set()
    counts = Counter[str]()
    with ProcessPoolExecutor(2) as pool, file.open("w") as out:
        for (package, _), pairs in zip(work, pool.map(harvest, *zip(*work, strict=True), chunksize=4), strict=True):
            for pair in pairs:
                if (pair.query, pair.text[:200]) in seen:
                    continue
                seen.add((pair.query, pair.text[:200]))
                counts[pair.kind] += 1
                out.write(json.dumps({"package": f"{package.index}/{package.name}", **pair._asdict()}) + "\n")
    print(f"{len(work)} packages, {sum(counts.values())} pairs: {dict(counts.most_common())}")


if __name__ == "__main__":
    main()
