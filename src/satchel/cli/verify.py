"""`satchel verify`: an answer and the context it was given in, what is wrong with its citations out."""

from __future__ import annotations

import json
import sys
from pathlib import Path
from typing import TYPE_CHECKING, Final

import click

from satchel.cli.citation_report import place_in, told, told_uncited
from satchel.cli.exits import Exit
from satchel.cli.output import write_output

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

    from satchel.models.citation import CitableSource, CitationReport

_MAX_ANSWER_BYTES: Final = 16_000_000
_MAX_CONTEXT_BYTES: Final = 256_000_000


# fmt: off
@click.command("verify", short_help="Check an answer's citations against its context.")
@click.argument("answer", type=click.Path(exists=True, dir_okay=False, allow_dash=True, path_type=Path))
@click.option("-c", "--context", "context", required=True,
              type=click.Path(exists=True, dir_okay=False, path_type=Path),
              help="What `satchel build --json`, `assemble --json` or `ask --json` printed.")
@click.option("--strict", is_flag=True, help="Fail for warnings as well: uncited sentences, quotes from elsewhere.")
@click.option("--json", "as_json", is_flag=True, help="Print the report as JSON.")
def verify_command(answer: Path, context: Path, strict: bool, as_json: bool) -> None:
    """Check ANSWER, a text file (-: stdin), against the CONTEXT that it was written from.

    Every number that it cites has to be a source's, and every quotation has to stand in a source that it cites.
    Sentences that cite nothing are listed. Exit code 1 when something is wrong.
    """
    from satchel.service.factory.verification import sources_from_json, verify

    sources = sources_from_json(_read(context, _MAX_CONTEXT_BYTES), str(context))
    text = _read(answer, _MAX_ANSWER_BYTES).decode("utf-8", "surrogateescape").removeprefix("\ufeff")
    report = verify(text, sources)
    passed = report.is_fully_cited if strict else report.ok
    if as_json:
        write_output(json.dumps(_as_json(report, text, passed), ensure_ascii=False, indent=2), None)
    else:
        name = "stdin" if str(answer) == "-" else str(answer)
        write_output("\n".join(_lines(report, text, name, sources, passed=passed)), None)
    if not passed:
        sys.exit(Exit.ERROR)


# fmt: on
def _read(path: Path, most: int) -> bytes:
    from satchel.errors import InvalidOption

    if str(path) == "-":
        data = sys.stdin.buffer.read(most + 1)
    else:
        with path.open("rb") as file:
            data = file.read(most + 1)
    if len(data) > most:
        raise InvalidOption("file", str(path), f"is longer than {most:,} bytes")
    return data


def _lines(
    report: CitationReport, text: str, name: str, sources: Sequence[CitableSource], *, passed: bool
) -> Iterator[str]:
    """The problems and warnings as compilers tell them, and a last line that sums up."""
    found = [(one.position, f"{one.problem.value}: {told(one, sources)}") for one in report.findings]
    found += [(one.position, f"warning: {one.problem.value}: {told(one, sources)}") for one in report.warnings]
    found += [(one.position, f"warning: {told_uncited(one)}") for one in report.uncited_sentences]
    from satchel.text.visible import make_visible_line

    shown = make_visible_line(name).text
    for position, words in sorted(found):
        yield f"{shown}:{place_in(text, position)}: {words}"
    total = len(report.cited) + len(report.uncited)
    warnings = len(report.warnings) + len(report.uncited_sentences)
    counts = f"{len(report.cited)} of {total} sources cited, {len(report.findings)} wrong, {warnings} to look at"
    yield f"{'OK' if passed else 'NOT OK'}: {counts}"


def _as_json(report: CitationReport, text: str, passed: bool) -> dict[str, object]:
    from satchel.text.visible import make_visible

    fields = report.to_dict()
    for row in (*fields["findings"], *fields["warnings"], *fields["uncited_sentences"]):
        line, column = place_in(text, row["position"]).split(":")
        row |= {"line": int(line), "column": int(column), "text": make_visible(row["text"]).text}
    return {"passed": passed, **fields}
