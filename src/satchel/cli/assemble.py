"""`satchel assemble`: hits in, a context out."""

from __future__ import annotations

import sys
from collections.abc import Callable, Iterable
from dataclasses import fields
from enum import StrEnum
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from satchel.cli.options import OUTPUT, Command
from satchel.cli.output import print_context
from satchel.cli.summary import explain, leave_if_empty, summarize
from satchel.models.options import (
    FORMATS,
    ContextBuildOptions,
    HeadingStyle,
    Ordering,
    ProviderFormat,
    RerankingStrategy,
    TokenEstimationMethod,
)
from satchel.service.factory.assembling import ScoreKind

if TYPE_CHECKING:
    from satchel.errors import InvalidHit
    from satchel.models.chunk import KnowledgeChunk
    from satchel.models.entity import EntityResult

_COUNTS = {
    "exact": TokenEstimationMethod.TOKENIZER,
    "characters": TokenEstimationMethod.CHARACTER_BASED,
    "words": TokenEstimationMethod.WORD_BASED,
}

_DEFAULTS = {field.name: field.default for field in fields(ContextBuildOptions)}


def _flag(field: str, *flags: str, help: str, **settings: Any) -> Callable[[Command], Command]:
    """A flag for a field of `ContextBuildOptions`, with the type and the default of the field."""
    default: Any = _DEFAULTS[field]
    match default:
        case bool():
            pass
        case int():
            settings["type"] = click.IntRange(1)
        case float():
            settings["type"] = click.FloatRange(0, 1)
        case StrEnum():
            settings.setdefault("type", _choices(type(default)))
            default = default.value
    settings = {"default": default, "show_default": default is not None, **settings}
    return click.option(*flags, field, help=help, **settings)


def _choices(values: Iterable[str]) -> click.Choice[str]:
    return click.Choice([str(value) for value in values])


def _choice(flag: str, values: Iterable[str], help: str) -> Callable[[Command], Command]:
    """A flag that takes one of some values; the first is the default."""
    choices = _choices(values)
    return click.option(flag, type=choices, default=choices.choices[0], show_default=True, help=help)


# A cross-encoder needs a model, which the command line cannot name yet.
_RERANKINGS = _choices(s for s in RerankingStrategy if s is not RerankingStrategy.CROSS_ENCODER)
_SCORES = "What a hit's score is: 0 to 1, a cosine, a distance (0 is best), or good only for the order."


@click.command("assemble", short_help="Turn hits into a context within a token budget.")
@click.argument("hits", type=click.Path(allow_dash=True, path_type=Path), default="-", metavar="[HITS]")
@_flag("max_tokens", "-b", "--token-budget", "--max-tokens", help="Hard limit, counted on the finished text.")
@_flag("format", "-f", "--format", type=_choices(FORMATS.names()), help="How the context is written.")
@click.option("--query", help="The question: hits that hold its words are preferred.")
@_flag("max_chunks", "-k", "--max-chunks", help="At most this many hits.")
@_flag("min_relevance", "--min-relevance", help="Leave out hits below this.")
@click.option("--model", default="gpt-4o", show_default=True, help="Model, encoding or tokenizer.json to count for.")
@_choice("--count", _COUNTS, "How tokens are counted.")
@_choice("--group-by", ("file", "type", "none"), "What stands together.")
@_flag("ordering", "--order", type=_choices(Ordering), help="Best first, best at both ends, or as given.")
@_flag("overflow", "--overflow", help="What happens to a hit that does not fit.")
@_flag("reranking", "--rerank", type=_RERANKINGS, help="How hits are scored again.")
@click.option("--include", multiple=True, metavar="GLOB", help="Only files that match; may be repeated.")
@click.option("--exclude", multiple=True, metavar="GLOB", help="No files that match; may be repeated.")
@click.option("--lang", "languages", multiple=True, metavar="LANGUAGE", help="Only these languages; may be repeated.")
@_flag("context_header", "--header", help="Text to put before the context.")
@_flag("context_footer", "--footer", help="Text to put after the context.")
@_flag("include_file_headers", "--headers/--no-headers", help="Name the file above each piece.")
@_flag("include_line_numbers", "--line-numbers/--no-line-numbers", help="Give its lines as well.")
@_flag("include_scores", "--scores/--no-scores", help="Give its relevance as well.")
@_flag("include_citations", "--citations/--no-citations", default=True, help="Number the pieces.")
@_flag("include_sources", "--sources/--no-sources", help="List the sources at the end.")
@click.option("--compact", is_flag=True, help="Headings on one line.")
@_flag("provider", "--provider", help="Print this provider's message content instead of the text.")
@_choice("--scores-are", ScoreKind, _SCORES)
@click.option("--json", "as_json", is_flag=True, help="Print the whole result as JSON: text, sources, ledger.")
@click.option("--explain", "explains", is_flag=True, help="Say on stderr what became of every hit.")
@click.option("--skip-invalid", is_flag=True, help="Leave out hits that cannot be read instead of stopping.")
@OUTPUT
@click.option("-q", "--quiet", is_flag=True, help="Say nothing on stderr but errors and what --explain tells.")
def assemble_command(
    *,
    hits: Path,
    query: str | None,
    model: str,
    count: str,
    group_by: str,
    include: tuple[str, ...],
    exclude: tuple[str, ...],
    languages: tuple[str, ...],
    compact: bool,
    scores_are: str,
    as_json: bool,
    explains: bool,
    skip_invalid: bool,
    output: Path | None,
    quiet: bool,
    **options: Any,
) -> None:
    """Assemble a context from HITS, a JSON or JSON Lines file (- or nothing: stdin).

    A hit has content, and may have file_path, start_line, end_line, relevance (0 to 1), language and id. Entities
    (name, type, summary) work too.
    """
    from satchel.service.factory.assembling import assemble_hits

    chosen = ContextBuildOptions(
        **options,
        group_by_file=group_by == "file",
        group_by_type=group_by == "type",
        file_patterns=[*include, *(f"!{glob}" for glob in exclude)] or None,
        languages=languages or None,
        token_estimation=_COUNTS[count],
        tokenizer=model if count == "exact" else None,
        heading_style=HeadingStyle.COMPACT if compact else HeadingStyle.FULL,
    )
    found = _read_hits(hits, scores_are, skip_invalid=skip_invalid, quiet=quiet)
    context = assemble_hits(found, chosen, query=query)
    provider_content = None if chosen.provider is ProviderFormat.NONE else context.provider_content
    print_context(context, output, as_json=as_json, provider_content=provider_content)
    if explains:
        explain(context.ledger)
    if not quiet:
        counted_by = model if count == "exact" else f"estimated by {count}"
        overflow = chosen.overflow
        summarize(context, counted_by, is_explained=explains, overflow=overflow, if_none="no hits were given")
    leave_if_empty(context)


def _read_hits(path: Path, scores_are: str, *, skip_invalid: bool, quiet: bool) -> list[KnowledgeChunk | EntityResult]:
    from satchel.service.factory.assembling import read_hits

    def skip(error: InvalidHit) -> None:
        if not quiet:
            click.echo(f"satchel: left out {error}", err=True)

    data = sys.stdin.buffer.read() if str(path) == "-" else path.read_bytes()
    return list(read_hits(data, scores_are, skip=skip if skip_invalid else None))
