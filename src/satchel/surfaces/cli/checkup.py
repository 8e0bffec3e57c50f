"""What `satchel doctor` looks at."""

from __future__ import annotations

import os
import platform
import shutil
from collections.abc import Callable, Iterator
from importlib.metadata import version
from importlib.util import find_spec
from pathlib import Path
from typing import TYPE_CHECKING, Any, NamedTuple

from satchel.errors import SatchelError

if TYPE_CHECKING:
    from satchel.places import Place


class Finding(NamedTuple):
    """One thing that was looked at."""

    subject: str
    ok: bool
    detail: str


def checkup(path: str, flags: dict[str, Any]) -> list[Finding]:
    """Everything that is worth a look; one thing that fails does not keep the others from being looked at."""
    findings = []
    for subject, look in (
        ("satchel", _versions),
        ("token counting", _counting),
        ("parsers", _parsers),
        ("documents", _documents),
        ("settings", lambda: _settings(path, flags)),
        ("embedder", lambda: _embedder(path, flags)),
        ("index folder", lambda: _folder(path, flags)),
        ("index", lambda: _index(path, flags)),
    ):
        findings.append(_looked(subject, look))
    return findings


def _looked(subject: str, look: Callable[[], str]) -> Finding:
    try:
        return Finding(subject, True, look())
    except SatchelError as error:
        return Finding(subject, False, str(error))
    except Exception as error:  # a broken installation fails in ways that nobody foresees
        return Finding(subject, False, f"{type(error).__name__}: {error}")


def _versions() -> str:
    import apsw

    return f"{version('satchel')} on Python {platform.python_version()}, SQLite {apsw.sqlite_lib_version()}"


def _counting() -> str:
    from satchel.tokens import counter_for

    counted = counter_for("gpt-4o").count("hello world")
    if counted != 2:
        raise ValueError(f"two tokens were counted as {counted}")
    return "exact (o200k)"


def _parsers() -> str:
    from satchel.ingest.code.grammars import GRAMMARS, load_grammar

    broken = list(_broken(GRAMMARS, load_grammar))
    if broken:
        raise ValueError("; ".join(broken))
    return f"{len(GRAMMARS)} grammars"


def _documents() -> str:
    """Whether documents can be read, and scans, and whether their readers are shut in."""
    from satchel.ingest.documents.policy import can_read_documents

    if not can_read_documents():
        return "not read; pip install '.[documents]' in Satchel's checkout to have PDF, office files and e-books read"
    from satchel.ingest.documents.policy import NO_DOCUMENTS, readers_for
    from satchel.model.document import Unreadable

    with readers_for(NO_DOCUMENTS, 1) as readers:
        read = readers.read("probe.csv", b"a,b\n1,2\n")
        confined = readers.is_confined()
    if isinstance(read, Unreadable):
        raise ValueError(f"the reader {read.reason}")
    scans = "tesseract" if shutil.which("tesseract") else "rapidocr" if find_spec("rapidocr") else ""
    told = f"scans by {scans}" if scans else "no scans (install tesseract-ocr or satchel[ocr])"
    shut = (
        ""
        if confined
        else "; the kernel does not keep their readers from the network (documents from strangers: beware)"
    )
    return f"PDF, office files, e-books, web pages; {told}{shut}"


def _broken(names: tuple[str, ...], load: Callable[[str], Any]) -> Iterator[str]:
    for name in names:
        try:
            load(name)
        except Exception as error:
            yield f"{name}: {error}"


def _settings(path: str, flags: dict[str, Any]) -> str:
    from satchel.config import configure
    from satchel.places import is_database
    from satchel.surfaces.cli.shared import settings_for
    from satchel.wiring import workspace

    settings_for(path, flags)
    origins = configure(
        Path(os.curdir) if is_database(path) else workspace(path), heed_project=not is_database(path)
    ).origins
    return ", ".join(f"{name} from {origin}" for name, origin in origins.items()) or "all defaults"


def _embedder(path: str, flags: dict[str, Any]) -> str:
    from satchel.surfaces.cli.shared import settings_for
    from satchel.wiring import make_embedder

    embedder = make_embedder(settings_for(path, flags))
    length = len(embedder.embed_query("does it work"))
    return f"{embedder.name}, {length} dimensions"


def _folder(path: str, flags: dict[str, Any]) -> str:
    place = _place(path, flags)
    if place.folder is None:
        return place.shown
    there = place.folder
    while not there.exists():
        there = there.parent
    if not os.access(there, os.W_OK):
        raise PermissionError(f"{there} cannot be written; use --index-dir or SATCHEL_INDEX_DIR")
    return f"{place.folder} ({shutil.disk_usage(there).free / 1e9:.0f} GB free)"


def _place(path: str, flags: dict[str, Any]) -> Place:
    from satchel.places import database_place, is_database, place_of
    from satchel.surfaces.cli.shared import settings_for
    from satchel.wiring import workspace

    return database_place(path) if is_database(path) else place_of(workspace(path), settings_for(path, flags))


def _index(path: str, flags: dict[str, Any]) -> str:
    place = _place(path, flags)
    if not place.is_there():
        return "not there yet"
    problem = place.check()
    store = place.open()
    try:
        facts = store.facts()
    finally:
        store.close()
    if problem:
        raise ValueError(problem)
    behind = (
        f", the search index is {facts.behind} commits behind and catches up with the next run" if facts.behind else ""
    )
    return f"{facts.files:,} files, {facts.pieces:,} pieces{behind}"
