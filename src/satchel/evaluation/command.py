"""`satchel eval`: questions with what is expected in, how well a workspace answers them out."""

from __future__ import annotations

import json
import signal
import sys
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final, NamedTuple

import click

from satchel.cli.exits import Exit
from satchel.cli.options import Workspace, open_client, say, with_workspace
from satchel.cli.output import ProgressBar, write_output
from satchel.evaluation.estimates import LEAST_QUESTIONS
from satchel.evaluation.outcome import latency
from satchel.text.visible import counted, make_visible_line

if TYPE_CHECKING:
    from satchel.evaluation.configuration import Configuration
    from satchel.evaluation.dataset import EvalQuestion
    from satchel.evaluation.estimates import Interval
    from satchel.evaluation.outcome import Comparison, Evaluation, Row
    from satchel.service.client import Satchel


class _Asked(NamedTuple):
    """What is asked of whom."""

    dataset: Path
    workspace: Workspace
    questions: list[EvalQuestion]
    budgets: tuple[int, ...]


@dataclass(frozen=True, slots=True, kw_only=True)
class _Flags:
    """What the flags say."""

    budgets: str
    chosen: tuple[str, ...]
    versus: tuple[str, ...]
    against: Path | None
    sample: int | None
    output: Path | None
    html: Path | None
    as_json: bool
    fail_under: tuple[str, ...]
    fail_on_regression: bool


_FILE = click.Path(exists=True, dir_okay=False, path_type=Path)
_NEW_FILE = click.Path(dir_okay=False, path_type=Path)
_SERVERS: Final = ("http://", "https://")
_SHOWN_UNKNOWN: Final = 5


@click.command("eval", short_help="Measure how well a folder answers your questions.")
@click.argument("dataset", type=_FILE)
@click.option(
    "--budgets",
    default="1000,2000,4000,8000",
    show_default=True,
    metavar="N,N,…",
    help="Token budgets to build contexts for.",
)
@click.option(
    "--set",
    "chosen",
    multiple=True,
    metavar="NAME=VALUE",
    help="Evaluate with this setting or option of questions; may be repeated.",
)
@click.option(
    "--versus",
    multiple=True,
    metavar="NAME=VALUE",
    help="Evaluate a second configuration that differs in this, and compare; may be repeated.",
)
@click.option("--against", type=_FILE, metavar="REPORT", help="Compare with a report that was saved before.")
@click.option("--sample", type=click.IntRange(1), metavar="N", help="Only N of the questions, always the same.")
@click.option("-o", "--output", type=_NEW_FILE, help="Save the report as JSON, to compare with later.")
@click.option("--html", type=_NEW_FILE, help="Save the report as a page with plots.")
@click.option("--json", "as_json", is_flag=True, help="Print the report as JSON instead of a summary.")
@click.option(
    "--fail-under",
    multiple=True,
    metavar="[FIGURE=]VALUE",
    help="Exit with 1 if a figure is lower: cover@2000=0.9, ndcg@10=0.8; a number alone is for cover at "
    "the largest budget.",
)
@click.option(
    "--fail-on-regression", is_flag=True, help="Exit with 1 if a figure is worse than in --against, beyond chance."
)
@with_workspace()
def eval_command(dataset: Path, workspace: Workspace, **values: Any) -> None:
    """Ask PATH (a folder, database or server) every question of DATASET and say how good the contexts are.

    DATASET holds JSON lines: {"query": "…", "files": ["…"], "lines": ["path:10-20"], "pages": ["a.pdf#page=3"],
    "phrases": ["…"]}, any of the four. For each budget: how much of what is expected is really in the text
    (cover), how often all of it is (complete), and what share of the pieces is part of it (precision); of the
    ranking NDCG@10, recall and the first right hit; whether relevance can be believed; how long a build takes.
    Means have 95 % intervals.
    """
    from dataclasses import replace

    from satchel.evaluation.configuration import configuration_from, failures, thresholds_from
    from satchel.evaluation.dataset import read_dataset
    from satchel.evaluation.outcome import compare, read_evaluation

    flags = _Flags(**values)
    _must_make_sense(dataset, flags)
    asked = _Asked(dataset, workspace, _sampled(read_dataset(dataset), flags.sample), _budgets(flags.budgets))
    thresholds = thresholds_from(flags.fail_under, asked.budgets)
    first = configuration_from(flags.chosen, usual_name="satchel")
    second = configuration_from((*flags.chosen, *flags.versus), usual_name="satchel")
    before = replace(read_evaluation(flags.against), name=flags.against.name) if flags.against else None
    signal.signal(signal.SIGTERM, _leave)
    found = _evaluated(asked, first)
    other: Evaluation | None = None
    comparison: Comparison | None = None
    if flags.versus:
        other = _evaluated(asked, second)
        comparison = compare(found, other)
    elif before is not None:
        comparison = compare(before, found)
    if flags.html:
        from satchel.evaluation.page import report_page

        write_output(report_page(found, comparison, other or before), flags.html)
    _report(found, comparison, other, flags)
    failed = failures(found, thresholds)
    if flags.fail_on_regression and comparison is not None:
        failed += [f"{name} is worse than before" for name in comparison.regressions]
    for line in failed:
        say(line)
    if failed:
        sys.exit(Exit.ERROR)


def _report(found: Evaluation, comparison: Comparison | None, other: Evaluation | None, flags: _Flags) -> None:
    """Save and print what was found: for programs as JSON, for people as a summary."""
    from satchel.evaluation.outcome import to_dict

    told = to_dict(found) | ({"comparison": comparison.to_dict()} if comparison else {})
    written = json.dumps(told | ({"versus": to_dict(other)} if other else {}), ensure_ascii=False, indent=1)
    if flags.output:
        write_output(written, flags.output)
    write_output(written if flags.as_json else summary(found, comparison, other), None)


def _leave(*_: object) -> None:
    """Whoever is told to end (CI does it so) takes the temporary index along."""
    sys.exit(128 + signal.SIGTERM)


def _must_make_sense(dataset: Path, flags: _Flags) -> None:
    """Refuse what would fail, or lose something, only after everything was asked."""
    from satchel.errors import InvalidOption

    named = (("output", flags.output), ("html", flags.html))
    written = [(name, path.resolve()) for name, path in named if path]
    read = ((dataset, "the dataset"), (flags.against, "the report of --against"))
    kept = {path.resolve(): words for path, words in read if path}
    for name, path in written:
        if path in kept:
            raise InvalidOption(name, str(path), f"is {kept[path]}, which would be written over")
        if not path.parent.is_dir():
            raise InvalidOption(name, str(path), "is in a folder that is not there")
    if len(written) > 1 and written[0][1] == written[1][1]:
        raise InvalidOption("html", str(written[0][1]), "is where the report goes as JSON (-o); name two files")
    if flags.versus and flags.against:
        problem = "compares with a saved report, --versus with a second run; choose one"
        raise InvalidOption("against", str(flags.against), problem)
    if flags.fail_on_regression and not flags.against:
        raise InvalidOption("fail_on_regression", True, "needs --against REPORT to compare with")


def _budgets(given: str) -> tuple[int, ...]:
    from satchel.errors import InvalidOption

    parts = [part.strip().replace("_", "") for part in given.split(",") if part.strip()]
    if not parts or not all(part.isdecimal() and 0 < int(part) <= 10_000_000 for part in parts):
        raise InvalidOption("budgets", given, "must be numbers of tokens like 1000,2000")
    return tuple(sorted({int(part) for part in parts}))


def _sampled(questions: list[EvalQuestion], most: int | None) -> list[EvalQuestion]:
    """As many questions as are wanted, chosen by their ids, so that the same ones come again; in their order."""
    if most is None or most >= len(questions):
        return questions
    from hashlib import blake2b

    chosen = sorted(questions, key=lambda one: blake2b(one.id.encode(), digest_size=8).digest())[:most]
    ids = {one.id for one in chosen}
    return [one for one in questions if one.id in ids]


def _evaluated(asked: _Asked, configuration: Configuration) -> Evaluation:
    from satchel.evaluation.running import about, evaluate, unknown_paths

    with _opened(asked.workspace, configuration) as bag:
        unknown = unknown_paths(bag, asked.questions)
        if unknown and not asked.workspace.quiet:
            _tell_unknown(unknown)
        with ProgressBar(quiet=asked.workspace.quiet) as bar:
            evaluation = evaluate(
                bag,
                asked.questions,
                budgets=asked.budgets,
                name=configuration.name,
                told=configuration.told,
                watch=lambda done, of: bar.show(f"asking ({configuration.name})", done, of),
                about=about(bag, asked.dataset, unknown),
            )
        _must_be_answered(evaluation)
        return evaluation


def _must_be_answered(evaluation: Evaluation) -> None:
    """When every question was refused, it is not the workspace that is bad."""
    from satchel.errors import InvalidInput

    errors = [at.error for row in evaluation.rows for at in row.at]
    if all(errors):
        raise InvalidInput("questions", len(evaluation.rows), f"all were refused: {errors[0]}")


def _tell_unknown(unknown: list[str]) -> None:
    from satchel.text.visible import make_visible_line

    shown = ", ".join(make_visible_line(one).text for one in unknown[:_SHOWN_UNKNOWN])
    more = f" and {len(unknown) - _SHOWN_UNKNOWN} more" if len(unknown) > _SHOWN_UNKNOWN else ""
    told = f"expected but not in the index, so they can only be missed: {shown}{more}; paths start at the folder"
    say(told)


@contextmanager
def _opened(workspace: Workspace, configuration: Configuration) -> Iterator[Satchel]:
    """The workspace under a configuration; one that its index would not fit gets an index of its own for the while."""
    import tempfile
    from dataclasses import replace

    from satchel.errors import InvalidOption
    from satchel.service import opening

    if workspace.path.startswith(_SERVERS):
        if configuration.settings:
            raise InvalidOption("set", sorted(configuration.settings), "are the server's own; set them there")
        with opening.open(workspace.path) as server:
            yield server
        return
    with ExitStack() as stack:
        settings = configuration.settings
        if configuration.needs_own_index:
            folder = stack.enter_context(tempfile.TemporaryDirectory(prefix="satchel-eval-"))
            settings = settings | {"index_dir": folder}
        client = stack.enter_context(open_client(workspace, **settings))
        client.refresh()
        yield replace(client, index_notes=())


_WORST: Final = 5
_WIDTH: Final = 78
_FEW: Final = 20


_RANK_FIGURES: Final = {
    "ndcg@10": "NDCG@10",
    "recall@1": "recall@1",
    "recall@5": "recall@5",
    "recall@10": "recall@10",
    "mrr": "first right hit (MRR)",
}
"""The figures of a ranking, as the summary names them."""


def summary(evaluation: Evaluation, comparison: Comparison | None = None, other: Evaluation | None = None) -> str:
    """The figures, what was compared, and the questions that fared worst."""
    lines = [*_figures(evaluation)]
    if other is not None:
        lines += ["", *_figures(other)]
    if comparison is not None:
        lines += ["", *_differences(comparison)]
    lines += _worst(other or evaluation)
    return "\n".join(lines)


def _figures(evaluation: Evaluation) -> Iterator[str]:
    asked = len(evaluation.rows)
    yield f"{_line(evaluation.name)}: {counted(asked, 'question')}"
    figures = evaluation.figures()
    yield ""
    yield f"  {'tokens':>8}  {'cover':>18}  {'complete':>18}  {'precision':>18}"
    for budget in evaluation.budgets:
        cells = [_cell(figures.get(f"{name}@{budget}")) for name in ("cover", "complete", "precision")]
        yield f"  {budget:>8,}  " + "  ".join(f"{cell:>18}" for cell in cells)
    yield ""
    for name, words in _RANK_FIGURES.items():
        if name in figures:
            yield f"  {words:<24}{_cell(figures[name])}"
    calibration = evaluation.calibration()
    if calibration is not None:
        told = (
            f"off by {calibration.error:.3f} (ECE), Brier {calibration.brier:.3f}, {counted(calibration.hits, 'hit')}"
        )
        yield f"  {'relevance':<24}{told}"
    took = latency(evaluation.latencies)
    if took:
        told = ", ".join(f"{name} {took[name]:.0f} ms" for name in ("p50", "p95", "worst"))
        yield f"  {'time of a build':<24}{told}"
    if asked < _FEW:
        yield f"  {'':<24}with so few questions, intervals are too narrow"
    texts = sum(len(row.at) for row in evaluation.rows)
    yield f"  {'over budget':<24}{evaluation.over:,} of {texts:,}"
    unknown = evaluation.about.get("unknown_paths")
    if isinstance(unknown, list | tuple) and unknown:
        more = f" and {len(unknown) - 1:,} more" if len(unknown) > 1 else ""
        yield f"  {'not in the index':<24}{_line(str(unknown[0]))}{more}: expected, and can only be missed"
    failed = sum(bool(at.error) for row in evaluation.rows for at in row.at)
    if failed:
        yield f"  {'refused':<24}{failed:,} of {texts:,} (counted as nothing found; --json has the reasons)"


def _cell(one: Interval | None) -> str:
    return "–" if one is None else f"{one.mean:.3f} ({one.low:.2f}–{one.high:.2f})"


def _differences(comparison: Comparison) -> Iterator[str]:
    names = f"{_line(comparison.after)} against {_line(comparison.before)}"
    yield f"{names}, on {counted(comparison.questions, 'question')} that both answered"
    if comparison.left_out:
        yield f"  (left out: {comparison.left_out})"
    if comparison.questions < LEAST_QUESTIONS:
        yield f"  (no verdicts: fewer than {LEAST_QUESTIONS} questions can change by chance)"
    yield ""
    yield f"  {'':<16}{'before':>8}{'after':>8}{'change':>9}   95 % interval"
    for name, one in comparison.differences.items():
        sign = {"better": "better", "worse": "WORSE"}.get(one.verdict, "")
        apart = f"{one.low:+.3f} to {one.high:+.3f}"
        yield f"  {name:<16}{one.before:>8.3f}{one.after:>8.3f}{one.difference:>+9.3f}   {apart:<18} {sign}".rstrip()


def _worst(evaluation: Evaluation) -> list[str]:
    rows = sorted((row for row in evaluation.rows if _lacks(row)), key=lambda row: (row.at[-1].cover, row.id))
    if not rows:
        return []
    lines = ["", f"missing most at {evaluation.budgets[-1]:,} tokens:"]
    for row in rows[:_WORST]:
        lines.append(_cut(f"  {_line(row.query)}"))
        at = row.at[-1]
        lines.append(_cut(f"      {_line(at.error or 'lacks ' + ', '.join(at.missing))}"))
    if len(rows) > _WORST:
        lines.append(f"  … and {len(rows) - _WORST:,} more (--html or --json has them all)")
    return lines


def _lacks(row: Row) -> bool:
    return bool(row.at) and row.at[-1].cover < 1


def _line(text: str) -> str:
    return make_visible_line(text).text


def _cut(text: str) -> str:
    return text if len(text) <= _WIDTH else f"{text[: _WIDTH - 1]}…"
