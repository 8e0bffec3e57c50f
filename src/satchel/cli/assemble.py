"""`satchel assemble`: hits in, a context out."""

from __future__ import annotations

import sys
from collections.abc import Callable
from enum import StrEnum
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from satchel.cli.flags import OUTPUT
from satchel.cli.output import explain, leave_if_empty, print_context, summarize
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
    from satchel.models.chunk import EntityResult, KnowledgeChunk

_GROUPS = ("file", "type", "none")
_ORDERINGS = tuple(str(ordering) for ordering in Ordering)
_COUNTS = {
    "exact": TokenEstimationMethod.TOKENIZER,
    "characters": TokenEstimationMethod.CHARACTER_BASED,
    "words": TokenEstimationMethod.WORD_BASED,
}


_DEFAULTS = ContextBuildOptions(include_citations=True)
_FLAGS = {
    "max_tokens": ("-b --token-budget --max-tokens", "Hard limit in tokens, counted on the finished text."),
    "format": ("-f --format", "Output format of the context."),
    "max_chunks": ("-k --max-chunks", "Maximum number of hits."),
    "min_relevance": ("--min-relevance", "Leave out hits with a lower relevance."),
    "overflow": ("--overflow", "How to handle a hit that does not fit."),
    "reranking": ("--rerank", "How to rerank the hits."),
    "provider": ("--provider", "Print this provider's message content instead of the text."),
    "include_file_headers": ("--headers/--no-headers", "Show the path of each piece."),
    "include_line_numbers": ("--line-numbers/--no-line-numbers", "Show the line numbers of each piece."),
    "include_scores": ("--scores/--no-scores", "Show the relevance of each piece."),
    "include_citations": ("--citations/--no-citations", "Number the pieces."),
    "include_sources": ("--sources/--no-sources", "List the sources at the end."),
    "context_header": ("--header", "Text to put before the context."),
    "context_footer": ("--footer", "Text to put after the context."),
}
"""The flags of those options that a flag sets as it is, and their help."""


def _option_flags(command: Callable[..., None]) -> Callable[..., None]:
    for name, (flags, text) in reversed(_FLAGS.items()):  # decorators are applied from below
        default = getattr(_DEFAULTS, name)
        kind: click.ParamType[Any] | None = None
        if name == "format":
            kind = click.Choice(FORMATS.names())
        elif isinstance(default, StrEnum):
            # A cross-encoder needs a model, which the command line cannot name yet.
            kind = click.Choice([str(value) for value in type(default) if value != RerankingStrategy.CROSS_ENCODER])
        elif isinstance(default, float):
            kind = click.FloatRange(0, 1)
        elif isinstance(default, int) and not isinstance(default, bool):
            kind = click.IntRange(1)
        is_set = default is not None
        value = str(default) if isinstance(default, StrEnum) else default
        command = click.option(*flags.split(), name, type=kind, default=value, show_default=is_set, help=text)(command)
    return command


@click.command("assemble", short_help="Turn hits into a context within a token budget.")
@click.argument("hits", type=click.Path(allow_dash=True, path_type=Path), default="-", metavar="[HITS]")
@click.option("--query", help="The question; hits that contain its words are preferred.")
@_option_flags
@click.option(
    "--model", default="gpt-4o", show_default=True, help="Model, encoding or tokenizer.json for token counts."
)
@click.option(
    "--count", type=click.Choice([*_COUNTS]), default="exact", show_default=True, help="How tokens are counted."
)
@click.option("--group-by", type=click.Choice(_GROUPS), default="file", show_default=True, help="Group pieces by this.")
@click.option(
    "--order",
    "ordering",
    type=click.Choice(_ORDERINGS),
    help="Order: best first, best at both ends, or as given.",
)
@click.option("--include", multiple=True, metavar="GLOB", help="Only matching paths; may be repeated.")
@click.option("--exclude", multiple=True, metavar="GLOB", help="No matching paths; may be repeated.")
@click.option("--lang", "languages", multiple=True, metavar="LANGUAGE", help="Only this language; may be repeated.")
@click.option("--compact", is_flag=True, help="Write each heading on one line.")
@click.option(
    "--scores-are",
    type=click.Choice([str(kind) for kind in ScoreKind]),
    default="relevance",
    show_default=True,
    help="Type of the hits' scores: relevance from 0 to 1, cosine, distance (0 is best), or rank (order only).",
)
@click.option("--json", "as_json", is_flag=True, help="Print the whole result as JSON: text, sources, ledger.")
@click.option("--explain", "explains", is_flag=True, help="Print on stderr why each hit was included or left out.")
@click.option("--skip-invalid", is_flag=True, help="Skip invalid hits instead of stopping.")
@OUTPUT
@click.option("-q", "--quiet", is_flag=True, help="Print only errors and --explain on stderr.")
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
    chunks = _read_hits(hits, scores_are, skip_invalid=skip_invalid, quiet=quiet)
    context = assemble_hits(chunks, chosen, query=query)
    provider_content = None if chosen.provider is ProviderFormat.NONE else context.provider_content
    print_context(context, output, as_json=as_json, provider_content=provider_content)
    if explains:
        explain(context.ledger)
    if not quiet:
        counted_by = model if count == "exact" else f"estimated by {count}"
        overflow = chosen.overflow
        summarize(context, counted_by, is_explained=explains, overflow=overflow, if_none="the input contains no hits")
    leave_if_empty(context)


def _read_hits(path: Path, scores_are: str, *, skip_invalid: bool, quiet: bool) -> list[KnowledgeChunk | EntityResult]:
    from satchel.service.factory.assembling import read_hits

    def skip(error: InvalidHit) -> None:
        if not quiet:
            click.echo(f"satchel: skipped {error}", err=True)

    data = sys.stdin.buffer.read() if str(path) == "-" else path.read_bytes()
    return list(read_hits(data, scores_are, skip=skip if skip_invalid else None))
