"""`satchel build` and `satchel explain`: a question in, a context or the reasons for it out."""

from __future__ import annotations

import json
import sys
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final

import click

from satchel.cli.asking import question_from, request_flags
from satchel.cli.assemble import rendered
from satchel.cli.exits import Exit
from satchel.cli.output import write_context, write_output
from satchel.cli.shared import (
    PATH,
    bring_up,
    context_flags,
    filter_flags,
    opened,
    settings_for,
    workspace_flags,
)
from satchel.cli.summary import explain, summarize, summarize_payload, tell_nothing_found
from satchel.models.payload import ContextPayload
from satchel.text.visible import make_visible_line

if TYPE_CHECKING:
    from satchel.models.result import ContextBuildResult
    from satchel.service.settings import Settings
    from satchel.tokens.counter import TokenCounter

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
def build_command(question: str, path: str, **flags: Any) -> None:
    """Print a context that answers QUESTION from the files below PATH, within the token budget.

    The folder is indexed first; later only what has changed is. With --focus, --user, --type, --hint or --history,
    and wherever there are blocks beside the files (`satchel workspace`), the context is a workspace's: what is focused,
    found, connected, recent and said, each within its share.
    """
    result, settings = _built(question, path, flags)
    if isinstance(result, ContextPayload):
        _print_payload(result, flags)
        return
    if not result.is_empty or flags["as_json"]:
        shown = {"as_json": flags["as_json"], "provider": "none", "token_budget": settings.token_budget}
        write = write_output if flags["as_json"] else write_context
        write(rendered(result, shown), flags["output"])
    if flags["told"]:
        explain(result.ledger)
    if not flags["quiet"]:
        about = {"model": settings.model, "count": "exact", "token_budget": settings.token_budget,
                 "explain": flags["told"], "overflow": "truncate", "searched": True,
                 "filters": _filters(flags)}
        summarize(result, len(result.ledger), about)
    _leave(result)


@click.command("explain", short_help="Say why each piece is in a question's context or was left out.")
@click.argument("question")
@PATH
@_build_flags
@request_flags
@filter_flags
@workspace_flags
@click.option("--json", "as_json", is_flag=True, help="Print the ledger as JSON.")
def explain_command(question: str, path: str, **flags: Any) -> None:
    """Print the ledger of what `satchel build` would give: each piece considered, its signals and its fate."""
    result, _ = _built(question, path, flags)
    if flags["as_json"]:
        write_output(json.dumps(result.ledger.to_dicts(), ensure_ascii=False, indent=2), None)
    else:
        explain(result.ledger, signals=True)
    if not len(result.ledger) and not flags["quiet"]:
        tell_nothing_found(_filters(flags))
    if not isinstance(result, ContextPayload):
        _leave(result)
# fmt: on


def _filters(flags: dict[str, Any]) -> str:
    """The filters that were asked for, as they were."""
    said = []
    for name, flag in _FILTERS.items():
        value = flags.get(name)
        said += [f"{flag} {one}" for one in ((value,) if isinstance(value, str) else value or ())]
    return make_visible_line(" ".join(said)).text


def _print_payload(payload: ContextPayload, flags: dict[str, Any]) -> None:
    if flags["as_json"]:
        write_output(json.dumps(payload.to_dict(), ensure_ascii=False, indent=2), flags["output"])
    else:
        write_context(payload.serialized, flags["output"])
    if flags["told"]:
        explain(payload.ledger)
    if not flags["quiet"]:
        summarize_payload(payload)
    if not payload.items:
        sys.exit(Exit.NOTHING_FOUND)


def _built(question: str, path: str, flags: dict[str, Any]) -> tuple[ContextBuildResult | ContextPayload, Settings]:
    from satchel.service import build as answering

    settings, asked = settings_for(path, flags), question_from(question, flags)
    with opened(path, settings) as engine:
        bring_up(engine, quick=flags["quick"], quiet=flags["quiet"])
        return answering.build(engine, settings, asked, counter=_warm_counter(settings.model)), settings


def _warm_counter(model: str) -> TokenCounter | None:
    """The counter of the child that has been loading it all the while, if it is the one that is wanted."""
    from satchel.tokens.openai import OpenAICounter
    from satchel.tokens.registry import Tokenization, describe_tokenizer

    served = click.get_current_context().find_root().obj
    if served is None or describe_tokenizer(model) != Tokenization(served.name):
        return None
    return OpenAICounter(served.name, served_by=served)


def _leave(result: ContextBuildResult) -> None:
    if result.is_empty:
        sys.exit(Exit.OVER_BUDGET if result.chunks_truncated else Exit.NOTHING_FOUND)
