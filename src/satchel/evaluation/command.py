"""`satchel eval`: ask a workspace the questions of a dataset and report how well the contexts answer them."""

from __future__ import annotations

import json
import signal
import sys
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass, replace
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final

import click

from satchel.cli.exits import Exit
from satchel.cli.flags import WorkspaceFlags, open_client, with_workspace
from satchel.cli.output import ProgressBar, say, write_output
from satchel.errors import InvalidInput, InvalidOption
from satchel.evaluation.dataset import EvalQuestion, read_dataset
from satchel.evaluation.estimates import FEW_QUESTIONS, LEAST_QUESTIONS, Interval
from satchel.evaluation.judging import RANK_FIGURES
from satchel.evaluation.outcome import Comparison, Evaluation, compare, latency, read_evaluation, to_dict
from satchel.evaluation.running import about, evaluate, unknown_paths
from satchel.text.visible import counted, make_visible_line

if TYPE_CHECKING:
    from satchel.evaluation.configuration import Configuration
    from satchel.service.client import Satchel

_FILE: Final = click.Path(exists=True, dir_okay=False, path_type=Path)
_NEW_FILE: Final = click.Path(dir_okay=False, path_type=Path)
# Larger budgets are taken for typing errors and refused before any question is asked.
_MAX_TOKEN_BUDGET: Final = 10_000_000
# Paths in the warning: a few show the pattern, all of them would hide the summary.
_MAX_UNKNOWN_PATHS: Final = 5
# Questions in the summary, two lines each: the summary stays on one screen; --html and --json have all.
_MAX_WORST_QUESTIONS: Final = 5
# Fits a terminal of 80 columns without wrapping.
_LINE_CHARACTERS: Final = 78
# Figures with intervals in the summary: a fourth would not fit on a line.
_COLUMNS: Final = ("cover", "complete", "precision")
# What the summary calls figures of a ranking, where that is not their name.
_RANK_NAMES: Final = {"ndcg@10": "NDCG@10", "mrr": "first relevant hit (MRR)"}


@dataclass(frozen=True, slots=True, kw_only=True)
class _Flags:
    """Values of the command-line flags."""

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
    help="Evaluate with this setting or question option; may be repeated.",
)
@click.option(
    "--versus",
    multiple=True,
    metavar="NAME=VALUE",
    help="Compare with a second configuration that has this setting; may be repeated.",
)
@click.option("--against", type=_FILE, metavar="REPORT", help="Compare with a saved report.")
@click.option(
    "--sample", type=click.IntRange(1), metavar="N", help="Evaluate only N of the questions, the same N in each run."
)
@click.option("-o", "--output", type=_NEW_FILE, help="Save the report as JSON, for later comparisons.")
@click.option("--html", type=_NEW_FILE, help="Save the report as a page with plots.")
@click.option("--json", "as_json", is_flag=True, help="Print the report as JSON instead of a summary.")
@click.option(
    "--fail-under",
    multiple=True,
    metavar="[FIGURE=]VALUE",
    help="Exit with 1 if a figure is lower, e.g. cover@2000=0.9, ndcg@10=0.8; a number alone is for cover at "
    "the largest budget.",
)
@click.option(
    "--fail-on-regression", is_flag=True, help="Exit with 1 if a figure is significantly worse than in --against."
)
@with_workspace()
def eval_command(dataset: Path, workspace: WorkspaceFlags, **values: Any) -> None:
    """Ask PATH (a folder, database or server) every question of DATASET and say how good the contexts are.

    DATASET holds JSON lines: {"query": "…", "files": ["…"], "lines": ["path:10-20"], "pages": ["a.pdf#page=3"],
    "phrases": ["…"]}, any of the four. For each budget: how much of what is expected is really in the text
    (cover), how often all of it is (complete), and what share of the pieces is part of it (precision); of the
    ranking NDCG@10, recall and the first right hit; whether relevance can be believed; how long a build takes.
    Means have 95 % intervals.
    """
    from satchel.evaluation.configuration import configuration_from, failures, thresholds_from

    flags = _Flags(**values)
    _refuse_in_vain(dataset, flags)
    questions, budgets = _sample(read_dataset(dataset), flags.sample), _budgets(flags.budgets)
    thresholds = thresholds_from(flags.fail_under, budgets)
    first = configuration_from(flags.chosen)
    second = configuration_from((*flags.chosen, *flags.versus))
    before = replace(read_evaluation(flags.against), name=flags.against.name) if flags.against else None
    # CI ends a run so; the temporary index is removed on the way out.
    signal.signal(signal.SIGTERM, lambda *_: sys.exit(128 + signal.SIGTERM))
    ask = partial(_evaluate, workspace, dataset, questions, budgets)
    evaluation, other = ask(first), ask(second) if flags.versus else None
    comparison = compare(evaluation, other) if other else compare(before, evaluation) if before else None
    if flags.html:
        from satchel.evaluation.page import report_page

        write_output(report_page(evaluation, comparison, other or before), flags.html)
    _report(evaluation, comparison, other, flags)
    failed = failures(evaluation, thresholds)
    if flags.fail_on_regression and comparison is not None:
        failed += [f"{name} is worse than before" for name in comparison.regressions]
    for line in failed:
        say(line)
    if failed:
        sys.exit(Exit.ERROR)


def _report(evaluation: Evaluation, comparison: Comparison | None, other: Evaluation | None, flags: _Flags) -> None:
    """Save and print an evaluation: as JSON for programs, as a summary for people."""
    report = to_dict(evaluation)
    report |= {"comparison": comparison.to_dict()} if comparison else {}
    report |= {"versus": to_dict(other)} if other else {}
    written = json.dumps(report, ensure_ascii=False, indent=1)
    if flags.output:
        write_output(written, flags.output)
    write_output(written if flags.as_json else summary(evaluation, comparison, other), None)


def _refuse_in_vain(dataset: Path, flags: _Flags) -> None:
    """Refuse, before the first question, options that would later fail or overwrite an input file."""
    outputs = [(name, path.resolve()) for name, path in (("output", flags.output), ("html", flags.html)) if path]
    inputs = {dataset.resolve(): "the dataset"}
    if flags.against:
        inputs[flags.against.resolve()] = "the report of --against"
    for name, path in outputs:
        if path in inputs:
            raise InvalidOption(name, str(path), f"is {inputs[path]} and would be overwritten")
        if not path.parent.is_dir():
            raise InvalidOption(name, str(path), "is in a folder that does not exist")
    if len({path for _, path in outputs}) < len(outputs):
        raise InvalidOption("html", str(outputs[0][1]), "is also the file of -o; give two different files")
    if flags.versus and flags.against:
        problem = "compares with a saved report, --versus with a second run; choose one"
        raise InvalidOption("against", str(flags.against), problem)
    if flags.fail_on_regression and not flags.against:
        raise InvalidOption("fail_on_regression", True, "needs --against REPORT to compare with")


def _budgets(flag: str) -> tuple[int, ...]:
    parts = [part.strip().replace("_", "") for part in flag.split(",") if part.strip()]
    if not parts or not all(part.isdecimal() and 0 < int(part) <= _MAX_TOKEN_BUDGET for part in parts):
        raise InvalidOption("budgets", flag, "must be numbers of tokens, e.g. 1000,2000")
    return tuple(sorted(set(map(int, parts))))


def _sample(questions: list[EvalQuestion], most: int | None) -> list[EvalQuestion]:
    """At most `most` questions, in dataset order; a hash of the ids selects the same questions every time."""
    if most is None or most >= len(questions):
        return questions
    from hashlib import blake2b

    ids = sorted((question.id for question in questions), key=lambda key: blake2b(key.encode(), digest_size=8).digest())
    chosen = set(ids[:most])
    return [question for question in questions if question.id in chosen]


def _evaluate(
    workspace: WorkspaceFlags,
    dataset: Path,
    questions: list[EvalQuestion],
    budgets: tuple[int, ...],
    configuration: Configuration,
) -> Evaluation:
    """The evaluation of a workspace under a configuration; InvalidInput if every question was refused."""
    with _opened(workspace, configuration) as client:
        if unknown := unknown_paths(client, questions):
            names = ", ".join(map(_line, unknown[:_MAX_UNKNOWN_PATHS]))
            more = f" and {len(unknown) - _MAX_UNKNOWN_PATHS} more" if len(unknown) > _MAX_UNKNOWN_PATHS else ""
            missed = f"these expected files are not in the index and cannot be found: {names}{more}"
            workspace.say(f"{missed}; write paths relative to the folder")
        with ProgressBar(quiet=workspace.quiet) as bar:
            evaluation = evaluate(
                client,
                questions,
                budgets=budgets,
                name=configuration.name,
                options=configuration.options,
                watch=lambda done, of: bar.show(f"asking ({configuration.name})", done, of),
                about=about(client, dataset, unknown),
            )
    errors = [at.error for row in evaluation.rows for at in row.at]
    if all(errors):  # then it is not the workspace that is bad
        raise InvalidInput("questions", len(evaluation.rows), f"all questions failed: {errors[0]}")
    return evaluation


@contextmanager
def _opened(workspace: WorkspaceFlags, configuration: Configuration) -> Iterator[Satchel]:
    """The workspace opened with a configuration; settings that change indexing get a temporary index."""
    import tempfile

    from satchel.service import opening

    if workspace.path.startswith(("http://", "https://")):
        if configuration.settings:
            raise InvalidOption("set", sorted(configuration.settings), "are settings of the server; set them there")
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


def summary(evaluation: Evaluation, comparison: Comparison | None = None, other: Evaluation | None = None) -> str:
    """Text summary: the figures, the comparison and the questions with the lowest coverage."""
    lines = [*_figures(evaluation)]
    if other is not None:
        lines += ["", *_figures(other)]
    if comparison is not None:
        lines += ["", *_differences(comparison)]
    return "\n".join([*lines, *_worst(other or evaluation)])


def _figures(evaluation: Evaluation) -> Iterator[str]:
    count, figures = len(evaluation.rows), evaluation.figures()
    yield f"{_line(evaluation.name)}: {counted(count, 'question')}"
    yield ""
    yield f"  {'tokens':>8}  {'cover':>18}  {'complete':>18}  {'precision':>18}"
    for budget in evaluation.budgets:
        cells = [_cell(figures.get(f"{name}@{budget}")) for name in _COLUMNS]
        yield f"  {budget:>8,}  " + "  ".join(f"{cell:>18}" for cell in cells)
    yield ""
    facts = [(_RANK_NAMES.get(name, name), _cell(figures[name])) for name in RANK_FIGURES if name in figures]
    facts.append(("tokens used", ", ".join(f"{tokens:,.0f}" for tokens in evaluation.mean_tokens().values())))
    shares = [figures.get(f"token_share@{budget}") for budget in evaluation.budgets]
    if any(shares):
        means = ", ".join("–" if share is None else f"{share.mean:.3f}" for share in shares)
        facts.append(("… from expected files", means))
    if calibration := evaluation.calibration():
        hits = counted(calibration.hits, "hit")
        facts.append(("relevance", f"off by {calibration.error:.3f} (ECE), Brier {calibration.brier:.3f}, {hits}"))
    if took := latency(evaluation.latencies):
        facts.append(("time of a build", ", ".join(f"{name} {took[name]:.0f} ms" for name in ("p50", "p95", "worst"))))
    if count < FEW_QUESTIONS:
        facts.append(("", "too few questions: the intervals are too narrow"))
    facts.append(("over budget", f"{evaluation.over:,} of {evaluation.contexts:,}"))
    unknown = evaluation.about.get("unknown_paths")
    if isinstance(unknown, list | tuple) and unknown:
        more = f" and {len(unknown) - 1:,} more" if len(unknown) > 1 else ""
        facts.append(("not in the index", f"{_line(str(unknown[0]))}{more}: expected, but cannot be found"))
    if failed := evaluation.refused:
        counts = f"{failed:,} of {evaluation.contexts:,}"
        facts.append(("refused", f"{counts} (counted as empty results; --json has the reasons)"))
    for name, fact in facts:
        yield f"  {name:<24}{fact}"


def _cell(mean: Interval | None) -> str:
    return "–" if mean is None else f"{mean.mean:.3f} ({mean.low:.2f}–{mean.high:.2f})"


def _differences(comparison: Comparison) -> Iterator[str]:
    names = f"{_line(comparison.after)} against {_line(comparison.before)}"
    yield f"{names}, on {counted(comparison.questions, 'question')} in both runs"
    if comparison.left_out:
        yield f"  (left out: {comparison.left_out})"
    if comparison.questions < LEAST_QUESTIONS:
        yield f"  (no verdicts: results of fewer than {LEAST_QUESTIONS} questions can change by chance)"
    yield ""
    yield f"  {'':<16}{'before':>8}{'after':>8}{'change':>9}   95 % interval"
    for name, change in comparison.differences.items():
        sign = {"better": "better", "worse": "WORSE"}.get(change.verdict, "")
        figures = f"{change.before:>8.3f}{change.after:>8.3f}{change.difference:>+9.3f}"
        apart = f"{change.low:+.3f} to {change.high:+.3f}"
        yield f"  {name:<16}{figures}   {apart:<18} {sign}".rstrip()


def _worst(evaluation: Evaluation) -> Iterator[str]:
    cells = [(row.at[-1], row) for row in evaluation.rows if row.at and row.at[-1].cover < 1]
    if not cells:
        return
    cells.sort(key=lambda cell: (cell[0].cover, cell[1].id))
    yield from ("", f"missing most at {evaluation.budgets[-1]:,} tokens:")
    for at, row in cells[:_MAX_WORST_QUESTIONS]:
        yield _cut(f"  {_line(row.query)}")
        yield _cut(f"      {_line(at.error or 'lacks ' + ', '.join(at.missing))}")
    if len(cells) > _MAX_WORST_QUESTIONS:
        yield f"  … and {len(cells) - _MAX_WORST_QUESTIONS:,} more (--html or --json has them all)"


def _line(text: str) -> str:
    return make_visible_line(text).text


def _cut(text: str) -> str:
    return text if len(text) <= _LINE_CHARACTERS else f"{text[: _LINE_CHARACTERS - 1]}…"
