"""A PostgreSQL that keeps the index: reachable, set up, of our version, open to this login. Nothing is made there."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final

from satchel.cli.packages import pip_install
from satchel.doctor.finding import Finding, note, ok, problem
from satchel.errors import ExtraMissing, SatchelError
from satchel.text.counted import counted

if TYPE_CHECKING:
    from satchel.service.factory.locations import DatabasePlace
    from satchel.service.settings import Settings

LATE: Final = "look whether the database is up and reachable from here: pg_isready -h HOST -p PORT"
_SETUP: Final = "an administrator has to run: satchel postgres setup 'postgresql://ADMIN@HOST/DATABASE'"


def database(place: DatabasePlace, root: Path | None, settings: Settings) -> Iterator[Finding]:
    """The server, what is set up in it, and the workspace."""
    from satchel.service.factory.locations import administration

    try:
        seen = administration().look_at(place.address)
    except ExtraMissing as error:
        yield problem("database", str(error), pip_install("postgres"))
        return
    except SatchelError as error:
        yield problem("database", str(error), f"correct the address or the password, or start it; {LATE}")
        return
    yield ok("database", f"{place.shown} (PostgreSQL {seen.server}, as {seen.user})")
    wrong = list(_set_up(seen))
    yield from wrong
    if wrong:
        return
    yield ok("database", f"version {seen.version}, pgvector {seen.pgvector}, roles granted")
    if not seen.has_workspace:
        yield ok("index", "not there yet; the first `satchel index` makes it")
        return
    yield from _workspace(place, root, settings)


def _set_up(seen: Any) -> Iterator[Finding]:
    login = f"{_SETUP} --login {seen.user}"
    if not seen.pgvector:
        yield problem("database", "it has no pgvector", _SETUP)
    elif seen.pgvector_too_old:
        yield problem("database", f"its pgvector is {seen.pgvector}; 0.8 is needed", "ALTER EXTENSION vector UPDATE")
    if seen.not_let_in:
        yield problem("database", f"{seen.user} was not let in", login)
    elif not seen.version:
        yield problem("database", "it is not set up for Satchel", login)
    elif seen.version > seen.ours:
        yield problem(
            "database", f"set up by a newer Satchel (version {seen.version} of {seen.ours})", "update Satchel"
        )
    elif seen.version < seen.ours:
        yield problem("database", f"set up by an older Satchel (version {seen.version} of {seen.ours})", _SETUP)
    elif not seen.can_read:
        yield problem("database", f"{seen.user} may not take on the role satchel_reader", login)
    elif not seen.can_write:
        yield note("database", f"{seen.user} may ask, and change nothing", login)


def _workspace(place: DatabasePlace, root: Path | None, settings: Settings) -> Iterator[Finding]:
    """It is there and of our version, so that opening it makes nothing."""
    from satchel.indexing.changes import Lookout
    from satchel.service.factory.opening import make_document_policy, make_embedder

    store = place.open()
    try:
        facts, wrong = store.facts(), store.check()  # type: ignore[attr-defined]
        try:
            named = make_embedder(settings).name
        except SatchelError:
            named = ""
        if facts.embedder and named and facts.embedder != named:
            how = "unset SATCHEL_EMBEDDER, or satchel clear and index again"
            yield problem("index", f"it holds vectors of {facts.embedder}, and {named} is set", how)
        if wrong:
            yield problem("index", wrong, "satchel index PATH --store URL")
        yield ok("index", f"{counted(facts.files, 'file')}, {counted(facts.pieces, 'piece')}")
        if root is None:
            return
        documents = make_document_policy(root, settings)
        limit = settings.max_file_bytes
        changes = Lookout(root, store, max_file_bytes=limit, without="", documents=documents).changes()
    finally:
        store.close()
    if changes.to_look_at:
        told = (
            f"{counted(len(changes.suspect), 'file')} may be new or changed, and {len(changes.missing):,} gone, since"
        )
        yield note("index age", f"{told}; the next `satchel build` reads them")
    else:
        yield ok("index age", "up to date")
