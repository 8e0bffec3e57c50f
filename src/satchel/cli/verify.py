"""`satchel verify`: check the citations of an answer against its context."""

from __future__ import annotations

import json
import sys
from pathlib import Path
from typing import TYPE_CHECKING, Final

import click

from satchel.cli.exits import Exit
from satchel.cli.output import write_output
from satchel.models.context import CitationProblem, Verdict
from satchel.text.visible import counted, make_visible, make_visible_line

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator, Sequence

    from satchel.models.context import CitableSource, CitationFinding, CitationReport, Claim, UncitedSentence

_MAX_ANSWER_BYTES: Final = 16_000_000  # as from a language model; today's longest answers have less than a megabyte
_MAX_CONTEXT_BYTES: Final = 256_000_000  # as much as a client takes from a server; a larger file would fill the memory
_MAX_EXCERPT_CHARS: Final = 80  # a classic terminal's width: a finding stays readable at a glance


@click.command("verify", short_help="Check an answer's citations against its context.")
@click.argument("answer", type=click.Path(exists=True, dir_okay=False, allow_dash=True, path_type=Path))
@click.option(
    "-c",
    "--context",
    "context",
    required=True,
    type=click.Path(exists=True, dir_okay=False, path_type=Path),
    help="JSON output of `satchel build`, `assemble` or `ask`.",
)
@click.option(
    "--strict",
    is_flag=True,
    help="Also fail for warnings: uncited or doubted sentences, quotations from outside the sources.",
)
@click.option("--json", "as_json", is_flag=True, help="Print the report as JSON.")
def verify_command(answer: Path, context: Path, strict: bool, as_json: bool) -> None:
    """Check ANSWER, a text file (-: stdin), against the CONTEXT that it was written from.

    Every number that it cites has to be a source's, and every quotation has to stand in a source that it cites.
    Sentences that cite nothing are listed, and those whose numbers, days, names or direction the sources state
    otherwise. Exit code 1 when something is wrong.
    """
    from satchel.service.factory.assembling import sources_from_json, verify

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


def _read(path: Path, max_bytes: int) -> bytes:
    from satchel.errors import InvalidOption

    if str(path) == "-":
        data = sys.stdin.buffer.read(max_bytes + 1)
    else:
        with path.open("rb") as file:
            data = file.read(max_bytes + 1)
    if len(data) > max_bytes:
        raise InvalidOption("file", str(path), f"is longer than {max_bytes:,} bytes")
    return data


def _lines(
    report: CitationReport, text: str, name: str, sources: Sequence[CitableSource], *, passed: bool
) -> Iterator[str]:
    """Yield problems and warnings in the style of compilers (`file:line:column: message`), then a summary line."""
    messages = [
        (error.position, f"{error.problem.value}: {describe_finding(error, sources)}") for error in report.findings
    ]
    messages += [
        (doubt.position, f"warning: {doubt.problem.value}: {describe_finding(doubt, sources)}")
        for doubt in report.warnings
    ]
    messages += [(claim.position, f"warning: {claim.verdict}: {describe_claim(claim)}") for claim in report.doubted]
    messages += [(sentence.position, f"warning: {describe_uncited(sentence)}") for sentence in report.uncited_sentences]
    visible_name = make_visible_line(name).text
    for position, words in sorted(messages):
        yield f"{visible_name}:{place_in(text, position)}: {words}"
    total = len(report.cited) + len(report.uncited)
    warnings = len(report.warnings) + len(report.uncited_sentences) + len(report.doubted)
    errors = counted(len(report.findings), "error")
    supported = sum(claim.verdict is Verdict.SUPPORTED for claim in report.claims)
    claims = f"{supported} of {counted(len(report.claims), 'statement')} supported"
    counts = f"{len(report.cited)} of {total} sources cited, {claims}, {errors}, {counted(warnings, 'warning')}"
    yield f"{'OK' if passed else 'NOT OK'}: {counts}"


def _as_json(report: CitationReport, text: str, passed: bool) -> dict[str, object]:
    fields = report.to_dict()
    for row in (*fields["findings"], *fields["warnings"], *fields["uncited_sentences"], *fields["claims"]):
        line, column = place_in(text, row["position"]).split(":")
        row |= {"line": int(line), "column": int(column), "text": make_visible(row["text"]).text}
    return {"passed": passed, **fields}


def place_in(text: str, position: int) -> str:
    """`line:column` of a position, both from 1."""
    before = text[:position]
    return f"{before.count(chr(10)) + 1}:{position - before.rfind(chr(10))}"


def describe_finding(finding: CitationFinding, sources: Sequence[CitableSource]) -> str:
    """Describe a finding on a single line."""
    text = shortened(finding.text)
    match finding.problem:
        case CitationProblem.UNKNOWN_NUMBER:
            numbers = [source.number for source in sources]
            known = f"sources are {min(numbers)} to {max(numbers)}" if numbers else "there are no sources"
            return f"{text}: no source has the number {_listed(finding.numbers)} ({known})"
        case CitationProblem.QUOTE_NOT_IN_SOURCE:
            instead = f", but is in {_cited(finding.found_in)}" if finding.found_in else ""
            return f'"{text}" is not in {_cited(finding.numbers)}{instead}'
        case CitationProblem.OTHER_PLACE:
            places = ", ".join(_place(source) for source in sources if source.number in finding.numbers)
            return f"{text}: {_cited(finding.numbers)} is {shortened(places)}"
        case CitationProblem.QUOTE_NOT_IN_ANY_SOURCE:
            return f'"{text}" is not in any source'


def describe_uncited(sentence: UncitedSentence) -> str:
    """Describe an uncited sentence on a single line."""
    return f"cites no source: {shortened(sentence.text)}"


def describe_claim(claim: Claim) -> str:
    """Describe a doubted statement on a single line."""
    evidence = f' ([{claim.source}]: "{shortened(claim.evidence)}")' if claim.source else ""
    likely = "likely, " if claim.is_likely else ""
    return f"{shortened(claim.text)}: {likely}{make_visible_line(claim.reason).text}{evidence}"


def shortened(text: str) -> str:
    """The text on a single line, with hidden characters made visible, shortened to a fixed length."""
    line = make_visible_line(" ".join(text.split())).text
    return line if len(line) <= _MAX_EXCERPT_CHARS else f"{line[: _MAX_EXCERPT_CHARS - 1].rstrip()}…"


def _listed(numbers: Iterable[int]) -> str:
    return ", ".join(map(str, numbers))


def _cited(numbers: Iterable[int]) -> str:
    return "".join(f"[{number}]" for number in numbers)


def _place(source: CitableSource) -> str:
    file = source.file or source.name
    return f"{file}, page {source.page}" if source.page else file
