"""`satchel migrate`: carries everything that one index holds to another place."""

from __future__ import annotations

import json
import sys
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final

import click

from satchel.cli.output import write_output

if TYPE_CHECKING:
    from satchel.service.factory.locations import Place
    from satchel.storage.migration.transfer import MoveReport, Side

_EMBEDDED: Final = "embedded:"


@click.command("migrate", short_help="Move an index to another place: a folder, or a database.")
@click.argument("source")
@click.argument("target")
@click.option("--verify-only", is_flag=True, help="Move nothing; say whether TARGET holds what SOURCE holds.")
@click.option("--index-dir", help="Indexes of folders are below this folder instead of the OS's cache.")
@click.option("--json", "as_json", is_flag=True, help="Print what was moved as JSON.")
@click.option("-q", "--quiet", is_flag=True, help="Say nothing on stderr but errors.")
def migrate_command(source: str, target: str, **flags: Any) -> None:
    """Carry everything that the index SOURCE holds to TARGET, and check that all of it is there.

    Each is a folder that is indexed, `embedded:FOLDER` for the folder of an index itself, or a
    `postgresql://…?workspace=name`. SOURCE is only read. Ctrl-C leaves a TARGET from which the same command goes on.
    """
    from satchel.storage.migration.transfer import move, verify

    verify_only = flags["verify_only"]
    with _opened(source, target, flags["index_dir"], verify_only=verify_only) as (one, other):
        try:
            with _progress(quiet=flags["quiet"]) as watch:
                report = (verify if verify_only else move)(one, other, watch)
        except KeyboardInterrupt:
            if not verify_only:
                click.echo("satchel: what was moved is kept; the same command goes on from there", err=True)
            raise
    if flags["as_json"]:
        write_output(json.dumps(_told(report), indent=2), None)
    if not flags["quiet"]:
        from satchel.text.visible import make_visible_line

        click.echo(f"satchel: {make_visible_line(_described(report, verify_only)).text}", err=True)


@contextmanager
def _opened(source: str, target: str, index_dir: str | None, *, verify_only: bool) -> Iterator[tuple[Side, Side]]:
    from satchel.errors import WorkspaceMissing
    from satchel.storage.migration.transfer import Side

    places = [_place(one, index_dir, other) for one, other in ((source, target), (target, source))]
    for given, place in zip((source, target), places if verify_only else places[:1], strict=False):
        if place.folder is not None and not place.is_there():
            raise WorkspaceMissing("source" if place is places[0] else "target", given, f"no index at {place.shown}")
    stores = [places[0].open()]
    try:
        if not stores[0].generation and not stores[0].kept.facts():
            raise WorkspaceMissing("source", places[0].shown, "nothing was ever kept there")
        stores.append(places[1].open())
        names = [place.shown if place.folder is None else f"{_EMBEDDED}{place.shown}" for place in places]
        yield Side(stores[0], names[0]), Side(stores[1], names[1])
    finally:
        for store in stores:
            store.close()


def _place(given: str, index_dir: str | None, other: str) -> Place:
    """The place that somebody named; a database without a workspace's name has the one of the folder it is about."""
    from satchel.service.factory.locations import FolderPlace, database_place, is_database

    if not is_database(given):
        return FolderPlace(_index_folder(given, index_dir).resolve())
    about = "" if is_database(other) else _index_folder(other, index_dir).name
    return database_place(given, about)


def _index_folder(given: str, index_dir: str | None) -> Path:
    from satchel.service.factory.opening import workspace
    from satchel.service.settings import configure, index_folder

    if given.startswith(_EMBEDDED):
        return Path(given.removeprefix(_EMBEDDED)).expanduser()
    root = workspace(given)
    return index_folder(root, configure(root, {"index_dir": index_dir}, heed_project=False).settings)


@contextmanager
def _progress(*, quiet: bool) -> Iterator[Callable[[str, int, int], None] | None]:
    """A progress bar where somebody is watching."""
    if quiet or not sys.stderr.isatty():
        yield None
        return
    from rich.console import Console
    from rich.progress import BarColumn, MofNCompleteColumn, Progress, SpinnerColumn, TextColumn, TimeElapsedColumn

    columns = (
        SpinnerColumn(), TextColumn("{task.description}"), BarColumn(), MofNCompleteColumn(), TimeElapsedColumn(),
    )  # fmt: skip
    with Progress(*columns, console=Console(stderr=True), transient=True) as bar:
        task = bar.add_task("looking", total=None)
        yield lambda doing, done, of: bar.update(task, description=doing, completed=done, total=of or None)


def _told(report: MoveReport) -> dict[str, Any]:
    told = {name: getattr(report, name) for name in report.__slots__ if name != "held"}
    kinds = {kind: {"count": held.count, "digest": held.digest} for kind, held in report.held.items()}
    return {**told, "held": kinds}


def _described(report: MoveReport, verify_only: bool) -> str:
    held = {kind: one.count for kind, one in report.held.items()}
    what = f"{held['files']:,} files, {held['workspace_blocks']:,} blocks of the workspace, {held['pieces']:,} pieces"
    asked = f"; {report.questions} questions are answered alike" if report.questions else ""
    if verify_only:
        return f"{report.target} holds what {report.source} holds: {what}{asked}"
    there = f" ({report.passed:,} were there already)" if report.passed else ""
    return f"moved to {report.target} in {report.seconds:.1f} s{there}, and found to be the same: {what}{asked}"
