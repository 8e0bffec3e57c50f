"""`satchel eval` as a user runs it: real processes, a real folder, a real server."""

from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
from collections.abc import Mapping, Sequence
from pathlib import Path

import pytest

from tests.cli.test_build_and_search import folder  # noqa: F401 - a fixture
from tests.support.api import files, served
from tests.support.command_line import satchel
from tests.support.measuring import unmeasured
from tests.support.places import ROOT
from tests.support.servers import TOKEN
from tests.support.waiting import HANG_SECONDS, wait_for

QUESTIONS = [
    {"query": "how long is the backoff delay", "files": ["src/retry.py"], "group": "code"},
    {
        "query": "how is a page downloaded",
        "files": ["src/client.py"],
        "phrases": ["Download a page, trying again"],
        "group": "code",
    },
    {"query": "where is the guide", "files": ["docs/guide.md"], "lines": ["docs/guide.md:1-2"], "group": "prose"},
]


@pytest.fixture
def dataset(tmp_path: Path) -> Path:
    return written(tmp_path / "questions.jsonl", QUESTIONS)


def written(path: Path, questions: Sequence[Mapping[str, object]]) -> Path:
    path.write_text("".join(json.dumps(one) + "\n" for one in questions))
    return path


def test_a_summary_for_people(folder: Path, dataset: Path) -> None:  # noqa: F811
    done = satchel("eval", dataset, "--budgets", "200,1000", folder=folder)
    assert done.returncode == 0, done.stderr
    figures = ("cover", "1,000", "NDCG@10", "tokens used", "from expected files", "relevance", "time of a build")
    for words in ("3 questions", *figures, "over budget"):
        assert words in done.stdout
    assert "0 of 6" in done.stdout
    assert all(len(line) <= 80 for line in done.stdout.splitlines())


def test_the_report_as_json_has_every_question(folder: Path, dataset: Path) -> None:  # noqa: F811
    done = satchel("eval", dataset, "--json", "-q", "--budgets", "1000", folder=folder)
    assert done.stderr == ""
    report = json.loads(done.stdout)
    assert report["figures"]["cover@1000"]["mean"] == 1
    assert report["figures"]["ndcg@10"]["n"] == 3
    assert 0 < report["figures"]["token_share@1000"]["mean"] < 1
    assert 0 < report["mean_tokens"]["1000"] <= 1000
    assert [row["query"] for row in report["rows"]] == [one["query"] for one in QUESTIONS]
    assert report["about"]["dataset"] == "questions.jsonl"
    assert len(report["about"]["sha256"]) == 64
    assert report["calibration"]["hits"] > 0
    assert report["latency_ms"]["n"] == 3


def test_headings_and_the_question_itself_do_not_count(folder: Path, dataset: Path) -> None:  # noqa: F811
    asked = [{"query": "backoff or blancmange", "phrases": ["backoff or blancmange", "src/retry.py"]}]
    report = json.loads(satchel("eval", written(dataset, asked), "--json", "-q", folder=folder).stdout)
    assert {at["cover"] for at in report["rows"][0]["at"]} == {0.0}


def test_figures_that_are_too_low_fail(folder: Path, dataset: Path) -> None:  # noqa: F811
    questions = [*QUESTIONS, {"query": "backoff", "files": ["src/gone.py"]}]
    dataset = written(dataset, questions)
    done = satchel("eval", dataset, "--fail-under", "cover@1000=0.9", "--fail-under", "mrr=0.1", folder=folder)
    assert done.returncode == 1
    assert "cover@1000 is 0.750; at least 0.9 is required" in done.stderr
    assert "mrr" not in done.stderr
    assert "not in the index" in done.stderr
    assert "src/gone.py" in done.stderr
    quiet = satchel("eval", dataset, "--fail-under", "0.7", "-q", folder=folder)
    assert (quiet.returncode, quiet.stderr) == (0, "")
    assert "src/gone.py: expected, but cannot be found" in quiet.stdout


def test_a_later_run_is_compared_with_a_saved_one(folder: Path, dataset: Path, tmp_path: Path) -> None:  # noqa: F811
    saved, page = tmp_path / "before.json", tmp_path / "report.html"
    assert satchel("eval", dataset, "-o", saved, "--html", page, "-q", folder=folder).returncode == 0
    assert page.read_text().lstrip().lower().startswith("<!doctype html>")
    (folder / "src" / "retry.py").write_text("x = 1\n")
    again = satchel("eval", dataset, "--against", saved, "--fail-on-regression", "-q", folder=folder)
    assert "satchel against before.json, on 3 questions in both runs" in again.stdout
    assert "-0.333" in again.stdout or again.returncode == 0  # one question of three: no more than chance
    same = satchel("eval", dataset, "--against", saved, "--json", "-q", folder=folder)
    assert json.loads(same.stdout)["comparison"]["questions"] == 3


def test_two_configurations_side_by_side(folder: Path, dataset: Path) -> None:  # noqa: F811
    arguments = ("eval", dataset, "--versus", "top_k=1", "--versus", "history_commits=0", "--json", "-q")
    report = json.loads(satchel(*arguments, folder=folder).stdout)
    assert report["versus"]["name"] == "top_k=1, history_commits=0"
    found = report["comparison"]["differences"]
    assert found["precision@1000"]["after"] >= found["precision@1000"]["before"]
    assert found["cover@1000"]["n"] == 3
    # The second configuration had an index of its own, and left the user's alone.
    indexes = [path.name for path in (folder.parent / "index").iterdir() if path.is_dir() and path.name != "shared"]
    assert len(indexes) == 1


@pytest.mark.parametrize(
    ("arguments", "words"),
    [
        (("--budgets", "x"), "must be numbers of tokens"),
        (("--set", "tok_k=3"), "did you mean top_k"),
        (("--set", "format=yaml"), "must be one of"),
        (("--set", "model=gpt-9"), "gpt-9"),
        (("--set", "top_k=0"), "top_k"),
        (("--versus", "min_relevance=7"), "min_relevance"),
        (("--fail-under", "cover@7=1"), "there is no such figure"),
        (("--fail-on-regression",), "needs --against"),
        (("--versus", "top_k=1", "--against", "DATASET"), "choose one"),
        (("--against", "DATASET"), "is not a report"),
    ],
)
def test_nonsense_is_refused_before_anything_is_asked(
    folder: Path,  # noqa: F811
    dataset: Path,
    arguments: tuple[str, ...],
    words: str,
) -> None:
    given = [str(dataset) if one == "DATASET" else one for one in arguments]
    done = satchel("eval", dataset, *given, folder=folder)
    assert done.returncode == (1 if "--against" in arguments and "--versus" not in arguments else 2), done.stderr
    assert words in done.stderr
    assert "all questions failed" not in done.stderr
    assert not (folder.parent / "index").exists()


def test_a_budget_that_cannot_be_met_is_counted_not_fatal(folder: Path, dataset: Path) -> None:  # noqa: F811
    done = satchel("eval", dataset, "--budgets", "1,1000", "-q", folder=folder)
    assert done.returncode == 0, done.stderr
    assert "0.000" in done.stdout


def test_a_sample_is_the_same_each_time(folder: Path, dataset: Path) -> None:  # noqa: F811
    runs = [json.loads(satchel("eval", dataset, "--sample", "2", "--json", "-q", folder=folder).stdout) for _ in "ab"]
    ids = [[row["id"] for row in run["rows"]] for run in runs]
    assert ids[0] == ids[1]
    assert len(ids[0]) == 2


def test_only_what_a_user_may_read_counts(folder: Path, dataset: Path) -> None:  # noqa: F811
    assert satchel("index", folder=folder).returncode == 0
    assert satchel("workspace", "grant", "docs", "user:ann", folder=folder).returncode == 0
    asked = [one | {"user": "ann"} for one in QUESTIONS]
    report = json.loads(satchel("eval", written(dataset, asked), "--json", "-q", folder=folder).stdout)
    assert [row["at"][0]["cover"] for row in report["rows"]] == [0.0, 0.0, 1.0]


def test_a_server_can_be_evaluated(tmp_path: Path) -> None:
    dataset = written(tmp_path / "q.jsonl", [{"query": "how long is the backoff delay", "files": ["src/retry.py"]}])
    with served(files(tmp_path / "root"), tmp_path / "index") as api:
        done = satchel("eval", dataset, api.url, "--json", folder=tmp_path, env={"SATCHEL_TOKEN": TOKEN})
        refused = satchel("eval", dataset, api.url, "--set", "ocr=off", folder=tmp_path, env={"SATCHEL_TOKEN": TOKEN})
    assert json.loads(done.stdout)["questions"] == 1, done.stderr
    assert "are settings of the server" in refused.stderr


def test_interrupted_it_leaves_no_half_report(folder: Path, dataset: Path, tmp_path: Path) -> None:  # noqa: F811
    many = [one | {"id": f"{i}-{j}"} for i in range(4000) for j, one in enumerate(QUESTIONS)]
    dataset, saved = written(dataset, many), tmp_path / "report.json"
    running = subprocess.Popen(
        [sys.executable, "-m", "satchel", "eval", str(dataset), "-o", str(saved)],
        env=unmeasured(), cwd=folder, stderr=subprocess.PIPE, stdout=subprocess.PIPE, text=True,
    )  # fmt: skip
    assert running.stderr is not None
    indexed = running.stderr.readline()
    assert "files read" in indexed, "now it asks, which takes minutes"
    running.send_signal(signal.SIGINT)
    _, told = running.communicate(timeout=HANG_SECONDS)
    assert running.returncode == 130
    assert "interrupted" in told
    assert "Traceback" not in told
    assert sorted(path.name for path in tmp_path.iterdir()) == ["questions.jsonl", "work"] or not saved.exists()


def test_the_example_is_about_files_that_are_there() -> None:
    from satchel.evaluation import read_dataset

    questions = read_dataset(ROOT / "examples" / "questions.jsonl")
    assert len(questions) == 19
    assert all((ROOT / one.path).is_file() for question in questions for one in question.expected if one.path)


def test_nothing_is_written_over_and_nothing_is_asked_in_vain(folder: Path, dataset: Path, tmp_path: Path) -> None:  # noqa: F811
    before = dataset.read_bytes()
    for arguments, words in (
        (("-o", dataset), "would be overwritten"),
        (("-o", tmp_path / "x", "--html", tmp_path / "x"), "give two different files"),
        (("-o", tmp_path / "none" / "x.json"), "a folder that does not exist"),
        (("--versus", "tok_k=3"), "did you mean top_k"),
    ):
        done = satchel("eval", dataset, *arguments, folder=folder)
        assert done.returncode == 2
        assert words in done.stderr
        assert not (folder.parent / "index").exists()
    assert dataset.read_bytes() == before


def test_when_every_question_is_refused_that_is_an_error(folder: Path, dataset: Path) -> None:  # noqa: F811
    done = satchel("eval", dataset, "--set", "since=yesterday", "-q", folder=folder)
    assert done.returncode == 1
    assert "all questions failed" in done.stderr
    assert "2026-11-01" in done.stderr


def test_who_asks_is_said_by_the_question_first(folder: Path, dataset: Path) -> None:  # noqa: F811
    asked = [QUESTIONS[0] | {"user": "ann"}]
    done = satchel("eval", written(dataset, asked), "--set", "user=bob", "--json", "-q", folder=folder)
    assert json.loads(done.stdout)["questions"] == 1, done.stderr


def test_what_can_only_be_missed_is_told(folder: Path, dataset: Path) -> None:  # noqa: F811
    asked = [{"query": "q", "files": ["src/retry.py:1-3"], "lines": ["src/retry.py:1-9000"]}]
    done = satchel("eval", written(dataset, asked), folder=folder)
    assert "src/retry.py:1-3, src/retry.py:1-9000 (it has" in done.stderr


@pytest.mark.slow
def test_told_to_end_it_takes_its_index_along(folder: Path, dataset: Path, tmp_path: Path) -> None:  # noqa: F811
    many = [one | {"id": f"{i}-{j}"} for i in range(4000) for j, one in enumerate(QUESTIONS)]
    temporary = tmp_path / "temporary"
    temporary.mkdir()
    running = subprocess.Popen(
        [sys.executable, "-m", "satchel", "eval", str(written(dataset, many)), "--set", "history_commits=5"],
        cwd=folder, stderr=subprocess.PIPE, stdout=subprocess.PIPE, text=True,
        env=os.environ | {"TMPDIR": str(temporary)},
    )  # fmt: skip
    wait_for(lambda: list(temporary.glob("satchel-eval-*/*/truth.sqlite")), "an index of its own")
    running.send_signal(signal.SIGTERM)
    _, told = running.communicate(timeout=HANG_SECONDS)
    assert running.returncode == 143, told
    assert not list(temporary.iterdir())
