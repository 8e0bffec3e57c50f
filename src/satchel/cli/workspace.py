"""`satchel search`, `index`, `status`, `expand`, `clear` and `doctor`: what there is to do with a workspace."""

from __future__ import annotations

import json
import sys
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from satchel.cli.asking import question_from, user_from
from satchel.cli.exits import Exit
from satchel.cli.output import write_output
from satchel.cli.shared import (
    PATH,
    bring_sources_up,
    bring_up,
    described,
    filter_flags,
    opened,
    run_index,
    settings_for,
    when_free,
    with_progress,
    workspace_flags,
)
from satchel.text.counted import counted

if TYPE_CHECKING:
    from satchel.doctor.checks import Finding
    from satchel.models.search import Expansion
    from satchel.service.engine import ContextEngine
    from satchel.service.factory.locations import Place
    from satchel.service.settings import Settings


_MOST_NAMED = 20


@click.command("search", short_help="List the pieces that answer a question best.")
@click.argument("question")
@PATH
@click.option("-k", "--top-k", type=click.IntRange(1), help="How many.  [default: 10]")
@click.option("--min-relevance", type=click.FloatRange(0, 1), help="Leave out pieces below this.")
@click.option("--content/--no-content", default=False, help="Print the pieces' text as well.")
@click.option("--quick", is_flag=True, help="Answer from the index as it is; do not look for changes.")
@click.option("--user", metavar="USER", help="Who asks, where a workspace has several users.")
@filter_flags
@workspace_flags
@click.option("--json", "as_json", is_flag=True, help="Print the hits as JSON.")
def search_command(question: str, path: str, **flags: Any) -> None:
    """List the pieces below PATH that answer QUESTION best, with how likely each is."""
    from satchel.models.document import page_words
    from satchel.service import build as answering
    from satchel.service.remote_results import search_to_dict
    from satchel.text.visible import make_visible, make_visible_line

    settings = settings_for(path, flags)
    with opened(path, settings) as engine:
        bring_up(engine, quick=flags["quick"], quiet=flags["quiet"])
        found = answering.search(engine, settings, question_from(question, flags))
    hits = found.hits
    if flags["as_json"]:
        write_output(json.dumps(search_to_dict(found), indent=2), None)
    else:
        for hit in hits:
            name = f"  {hit.title or hit.content[:60]}" if hit.title or not hit.path else ""
            if hit.page:
                name = f"  {page_words(hit.path, hit.page)}  {hit.title.partition('/')[2]}".rstrip()
            click.echo(f"{hit.relevance:.2f}  {make_visible_line(f'{hit.id}{name}').text}")
            if flags["content"]:
                click.echo(make_visible(hit.content).text + "\n")
    if not flags["quiet"]:
        for note in found.notes:
            click.echo(f"satchel: {make_visible_line(note).text}", err=True)
    if not hits:
        if not flags["quiet"]:
            click.echo("satchel: nothing found", err=True)
        sys.exit(Exit.NOTHING_FOUND)


@click.command("index", short_help="Index a folder, or bring its index up to date.")
@PATH
@click.option("--watch", is_flag=True, help="Stay, and index again whenever something changes.")
@click.option("--list-skipped", is_flag=True, help="List what was passed over, and why.")
@click.option("--page-images", is_flag=True, help="Make pictures and thumbnails of the pages of documents, too.")
@click.option("--on", "ingest_on", metavar="WHERE", help="Who reads: local, ray or ray://HOST:PORT.  [default: local]")
@click.option("--json", "as_json", is_flag=True, help="Print what was done as JSON.")
@workspace_flags
def index_command(path: str, **flags: Any) -> None:
    """Index the folder at PATH: only what has changed is read. Ctrl-C leaves an index that goes on from there."""
    settings = settings_for(path, flags)
    with opened(path, settings) as engine:
        _index_once(engine, flags)
        if flags["page_images"]:
            _make_images(path, settings, flags)
        if flags["watch"]:
            _watch(engine, flags)


def _make_images(path: str, settings: Settings, flags: dict[str, Any]) -> None:
    from satchel.service.factory.opening import open_library

    with open_library(path, settings=settings) as library:
        made = with_progress("making pictures of pages", library.make_images, quiet=flags["quiet"])
    if not flags["quiet"]:
        click.echo(f"satchel: made pictures of {made:,} pages", err=True)


def _index_once(engine: Any, flags: dict[str, Any]) -> None:
    bring_sources_up(engine, quiet=flags["quiet"])
    report = run_index(engine, quiet=flags["quiet"])
    if flags["as_json"]:
        told = {name: getattr(report, name) for name in report.__slots__}
        write_output(json.dumps(told, indent=2), None)
        return
    if flags["list_skipped"]:
        from satchel.text.visible import make_visible_line

        for where, reason in report.passed_paths:
            click.echo(f"{reason}\t{make_visible_line(where).text}")
    if not flags["quiet"]:
        from satchel.indexing.walk import Skip
        from satchel.text.visible import make_visible_line

        usual = {one.value for one in Skip}
        for reason, count in sorted(report.passed_over.items()):
            if reason in usual:
                click.echo(f"satchel: passed over {count:,}: {reason}", err=True)
        unread = [f"{where} {reason}" for where, reason in sorted(report.passed_paths) if reason not in usual]
        for line in [*unread[:_MOST_NAMED], *report.notes[:_MOST_NAMED]]:
            click.echo(f"satchel: {make_visible_line(line).text}", err=True)
        more = max(0, len(unread) - _MOST_NAMED) + max(0, len(report.notes) - _MOST_NAMED)
        if more:
            click.echo(f"satchel: and {more:,} more (--list-skipped, --json)", err=True)


def _watch(engine: Any, flags: dict[str, Any]) -> None:
    from watchfiles import watch

    if not flags["quiet"]:
        click.echo(f"satchel: watching {engine.root} (Ctrl-C ends it)", err=True)
    for _ in watch(engine.root, debounce=300, raise_interrupt=True):
        report = when_free(engine.index)
        if report.changed and not flags["quiet"]:
            click.echo(f"satchel: {described(report)}", err=True)


@click.command("status", short_help="Say what an index holds and whether it is up to date.")
@PATH
@click.option("--json", "as_json", is_flag=True, help="Print it as JSON.")
@workspace_flags
def status_command(path: str, **flags: Any) -> None:
    """Say what the index of PATH holds, where it is, and what has changed since."""
    from satchel.indexing.changes import Changes
    from satchel.indexing.indexer import PASSED_OVER
    from satchel.ports.store import SAME_AS
    from satchel.service.settings import configure
    from satchel.text.visible import make_visible_line

    settings = settings_for(path, flags, heed_project=False)
    root, place = _root_and_place(path, settings)
    if not place.is_there():
        if flags["as_json"]:
            write_output(json.dumps({"workspace": str(root), "index": place.shown, "indexed": False}, indent=2), None)
        else:
            click.echo(make_visible_line(f"{root} is not indexed (its index would be {place.shown})").text)
        sys.exit(Exit.NOTHING_FOUND)
    with opened(path, settings) as engine:
        facts = engine.status()
        changes = engine.changes() if engine.is_here else Changes(facts.files, (), (), ())
        notes = engine.store.notes()
    unread = {where: note.removeprefix(PASSED_OVER) for where, note in notes.items() if note.startswith(PASSED_OVER)}
    partly = {where: note for where, note in notes.items() if not note.startswith((PASSED_OVER, SAME_AS))}
    told = {
        "workspace": str(root), "index": place.shown, "indexed": True, **facts._asdict(),
        "changed": len(changes.suspect), "gone": len(changes.missing),
        "passed_over": len(changes.passed) + len(unread), "unread": unread, "partly_read": partly,
        "settings": dict(configure(root, heed_project=False).origins),
    }  # fmt: skip
    if flags["as_json"]:
        write_output(json.dumps(told, indent=2), None)
        return
    shown = make_visible_line(str(root)).text
    click.echo(
        f"workspace   {shown}\nindex       {make_visible_line(place.shown).text} ({facts.bytes_on_disk / 1e6:.1f} MB)"
    )
    held = ((facts.files - len(unread), "file"), (facts.blocks, "block"), (facts.pieces, "piece"))
    click.echo(f"holds       {', '.join(counted(number, thing) for number, thing in held)}")
    click.echo(f"embedder    {facts.embedder or '(none yet)'}\ngeneration  {facts.generation}")
    state = (
        "up to date"
        if not changes.to_look_at
        else f"{counted(len(changes.suspect), 'file')} to look at, {len(changes.missing):,} gone"
    )
    passed = len(changes.passed) + len(unread)
    click.echo(f"state       {state}; {passed:,} passed over (`satchel index --list-skipped`)")
    for where, note in list(partly.items())[:_MOST_NAMED]:
        click.echo(f"note        {make_visible_line(f'{where}: {note}').text}")


@click.command("expand", short_help="Print the exact text behind an id.")
@click.argument("piece_id", metavar="ID")
@PATH
@click.option("-C", "--lines", type=click.IntRange(0), default=0, help="This many more lines on either side.")
@click.option("--user", metavar="USER", help="Who asks, where a workspace has several users.")
@click.option("--json", "as_json", is_flag=True, help="Print it as JSON, with its place.")
@workspace_flags
def expand_command(piece_id: str, path: str, **flags: Any) -> None:
    """Print the text behind ID: a path, a path with lines (a.py:3-9) or a block (a.py#Class.method)."""
    settings = settings_for(path, flags)
    with opened(path, settings) as engine:
        found = _expanded(engine, piece_id, flags)
    if flags["as_json"]:
        from satchel.service.remote_results import expansion_to_dict

        write_output(json.dumps(expansion_to_dict(found), indent=2), None)
    else:
        from satchel.text.visible import make_visible

        write_output(make_visible(found.text).text, None)
    if found.stale and not flags["quiet"]:
        click.echo("satchel: the file is gone or says something else now; this is the text as it was indexed", err=True)


def _expanded(engine: ContextEngine, piece_id: str, flags: dict[str, Any]) -> Expansion:
    """What an id stood for when it was given out; indexed anew only if it is unknown."""
    from satchel.errors import UnknownBlock
    from satchel.service.build import seen_by

    lines, filters = flags["lines"], seen_by(engine, user_from(flags))
    try:
        return engine.expand(piece_id, lines=lines, filters=filters)
    except UnknownBlock:
        bring_up(engine, quick=False, quiet=True)
        return engine.expand(piece_id, lines=lines, filters=filters)


@click.command("clear", short_help="Remove an index.")
@PATH
@click.option("--all", "every", is_flag=True, help="Remove the indexes of all workspaces.")
@click.option("--force", is_flag=True, help="Also if it holds blocks, grants or activity that no file holds.")
@workspace_flags
def clear_command(path: str, **flags: Any) -> None:
    """Remove the index of PATH. Your files are not touched; indexing makes it again."""
    from satchel.service.factory.locations import FolderPlace

    settings = settings_for(path, flags, heed_project=False)
    _, place = _root_and_place(path, settings)
    places = [place]
    if flags["every"] and place.folder is not None:
        places = [FolderPlace(truth.parent) for truth in sorted(place.folder.parent.glob("*/truth.sqlite"))]
    if not flags["force"]:
        for one in places:
            _refuse_to_lose(one)
    removed = [one for one in places if (one.folder.is_dir() if one.folder is not None else one.is_there())]
    for one in removed:
        one.remove()
        if not flags["quiet"]:
            click.echo(f"satchel: removed {one.shown}", err=True)
    if not removed:
        if not flags["quiet"]:
            click.echo(f"satchel: there is no index at {place.shown}", err=True)
        sys.exit(Exit.NOTHING_FOUND)


def _root_and_place(path: str, settings: Settings) -> tuple[Path, Place]:
    """The folder, or the name of a workspace without one, and where its index is."""
    from satchel.service.factory.locations import database_place, is_database, place_of
    from satchel.service.factory.opening import workspace

    if is_database(path):
        place = database_place(path)
        return Path(place.address.workspace), place
    root = workspace(path)
    return root, place_of(root, settings)


def _refuse_to_lose(place: Place) -> None:
    """Blocks that were imported or put are not made again by indexing."""
    from contextlib import suppress

    from satchel.errors import IndexDamaged, IndexTooNew, InvalidOption

    own = None
    with suppress(IndexDamaged, IndexTooNew):
        if not place.is_there():
            return
        store = place.open()
        own = next(iter(store.records()), None)
        store.close()
    if own is not None:
        raise InvalidOption(
            "path", place.shown, "holds blocks of its own that indexing would not bring back; keep them with "
            "`satchel workspace export -o FILE`, then use --force",
        )  # fmt: skip


@click.command("doctor", short_help="Check that everything Satchel needs is there and works.")
@PATH
@click.option("--json", "as_json", is_flag=True, help="Print the findings as JSON.")
@workspace_flags
def doctor_command(path: str, **flags: Any) -> None:
    """Check the installation, the settings, the models and the index of PATH, and say what to do about what is wrong.

    Nothing is changed. Each thing looked at is ok, worth a note, or a problem; the exit code is 1 if one is a problem.
    """
    import os

    from satchel.doctor.checks import Checkup, State

    checkup, findings = Checkup(path, flags), []
    for one in checkup.findings():
        findings.append(one)
        if not flags["as_json"]:
            _tell(one)
    problems = sum(one.state is State.PROBLEM for one in findings)
    if flags["as_json"]:
        write_output(json.dumps([one.to_dict() for one in findings], indent=2), None)
    elif not flags["quiet"]:
        told = "1 problem" if problems == 1 else f"{problems or 'no'} problems"
        click.echo(f"satchel: {told} found in {len(findings)} things looked at", err=True)
    code = Exit.ERROR if problems else Exit.OK
    if checkup.is_stuck:
        # What does not come to its end must not keep us, either.
        sys.stdout.flush()
        sys.stderr.flush()
        os._exit(code)
    sys.exit(code)


def _tell(finding: Finding) -> None:
    from satchel.text.visible import make_visible_line

    click.echo(make_visible_line(f"{finding.state:7}  {finding.subject}: {finding.detail}").text)
    if finding.remedy:
        click.echo(f"         → {make_visible_line(finding.remedy).text}")
    sys.stdout.flush()
