"""`satchel build` and `satchel explain`: a question in, a context or the reasons for it out."""

from __future__ import annotations

import json
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final

import click

from satchel.cli.asking import question_from, request_flags
from satchel.cli.output import print_context, write_output
from satchel.cli.shared import PATH, context_flags, filter_flags, open_client, workspace_flags
from satchel.cli.summary import explain, leave_if_empty, nothing_found, summarize
from satchel.text.visible import make_visible_line

if TYPE_CHECKING:
    from satchel.models.context import Context

_FILTERS: Final = {
    "include": "--include", "exclude": "--exclude", "languages": "--lang", "types": "--block-type",
    "since": "--since", "until": "--until",
}  # fmt: skip


# fmt: off
def _build_flags(command: Any) -> Any:
    for option in reversed((  # decorators are applied from below
        context_flags,
        click.option("--expand", metavar="N|symbol", help="Show N more lines around each piece, or all of its symbol."),
        click.option("--sources/--no-sources", default=False, help="List the sources at the end."),
        click.option("--scores/--no-scores", default=False, help="Give each piece's relevance."),
        click.option("--compact", is_flag=True, help="Headings on one line."),
    )):
        command = option(command)
    return command


@click.command("build", short_help="Print a context for a question about a folder.")
@click.argument("question")
@PATH
@_build_flags
@request_flags
@filter_flags
@workspace_flags
@click.option("--json", "as_json", is_flag=True, help="Print the whole result as JSON: text, sources, ledger.")
@click.option("--explain", "told", is_flag=True, help="Say on stderr what became of every piece.")
@click.option("-o", "--output", type=click.Path(dir_okay=False, path_type=Path), help="Write there instead of stdout.")
@click.pass_obj
def build_command(encoding: object, /, question: str, path: str, **flags: Any) -> None:
    """Print a context that answers QUESTION from the files below PATH, within the token budget.

    The folder is indexed first; later only what has changed is. With --focus, --user, --type, --hint or --history,
    and wherever there are blocks beside the files (`satchel workspace`), the context is a workspace's: what is focused,
    found, connected, recent and said, each within its share.
    """
    context, model = _built(question, path, flags, encoding)
    print_context(context, flags["output"], as_json=flags["as_json"])
    if flags["told"]:
        explain(context.ledger)
    if not flags["quiet"]:
        summarize(context, model, explained=flags["told"], if_none=nothing_found(_filters(flags)))
    leave_if_empty(context)


@click.command("explain", short_help="Say why each piece is in a question's context or was left out.")
@click.argument("question")
@PATH
@_build_flags
@request_flags
@filter_flags
@workspace_flags
@click.option("--json", "as_json", is_flag=True, help="Print the ledger as JSON.")
@click.pass_obj
def explain_command(encoding: object, /, question: str, path: str, **flags: Any) -> None:
    """Print the ledger of what `satchel build` would give: each piece considered, its signals and its fate."""
    context, _ = _built(question, path, flags, encoding)
    if flags["as_json"]:
        write_output(json.dumps(context.ledger.to_dicts(), ensure_ascii=False, indent=2), None)
    else:
        explain(context.ledger, signals=True)
    if not len(context.ledger) and not flags["quiet"]:
        click.echo(f"satchel: {nothing_found(_filters(flags))}", err=True)
    leave_if_empty(context)
# fmt: on


def _filters(flags: dict[str, Any]) -> str:
    """The filters that were asked for, as they were."""
    said = []
    for name, flag in _FILTERS.items():
        value = flags.get(name)
        said += [f"{flag} {one}" for one in ((value,) if isinstance(value, str) else value or ())]
    return make_visible_line(" ".join(said)).text


def _built(question: str, path: str, flags: dict[str, Any], encoding: object) -> tuple[Context, str]:
    """The context, and the model for which its tokens were counted."""
    asked = question_from(question, flags)
    with open_client(path, flags, user=flags["user"], encoding=encoding) as client:
        return client.build(asked), asked.model or client.settings.model
