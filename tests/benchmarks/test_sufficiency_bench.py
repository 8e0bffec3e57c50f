"""How abstention is measured: AUC, calibration, the plan of wrong collections, the fit, and the page."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest

from benchmarks.sufficiency.asking import Put, plan_asks
from benchmarks.sufficiency.collections import ISSUES, REPOSITORIES, Collection, Task
from benchmarks.sufficiency.figures import Judged, auc, calibration_error, figures_of
from benchmarks.sufficiency.fitting import _logistic
from benchmarks.sufficiency.page import HEADING, section


def test_auc_counts_pairs_in_the_right_order_and_ties_by_half() -> None:
    assert auc([0.9, 0.8], [0.1, 0.2]) == 1.0
    assert auc([0.5], [0.5]) == 0.5
    assert auc([0.1, 0.9], [0.5]) == 0.5
    assert auc([], [0.5]) is None


def test_a_probability_that_holds_up_has_no_calibration_error() -> None:
    fair = [Judged(ISSUES, Put.RIGHT, i < 5, 0.5) for i in range(10)]
    assert calibration_error(fair) == pytest.approx(0.0)
    sure = [Judged(ISSUES, Put.RIGHT, i < 5, 0.99) for i in range(10)]
    assert calibration_error(sure) == pytest.approx(0.49)


def test_a_question_is_put_to_its_own_collection_and_only_to_other_projects_else() -> None:
    collections = [Collection(REPOSITORIES, name, name, Path(name)) for name in "abcde"]
    tasks = [Task(REPOSITORIES, name, name, "q", "python" if name in "ab" else "go", {}) for name in "abcde"]
    plan = plan_asks(tasks, collections)
    asked = [(name, task.corpus, put) for name, of in plan.items() for task, put in of]
    assert all((name == home) == (put is not Put.WRONG) for name, home, put in asked)
    assert sum(put is Put.WRONG for *_, put in asked) == 3 * len(tasks)
    assert ("b", "a", Put.WRONG) in asked, "one of the same language is always asked"


def test_the_fit_finds_the_direction_of_the_evidence() -> None:
    columns = np.array([[value] for value in np.linspace(-1, 1, 200)])
    intercept, weight = _logistic(columns, (columns[:, 0] > 0).astype(int), np.ones(200))
    assert weight > 0
    assert abs(intercept) < 0.01


def test_the_page_says_what_misses_its_target() -> None:
    judged = [Judged(ISSUES, Put.RIGHT, True, 0.9), Judged(ISSUES, Put.WRONG, False, 0.1)]
    judged += [Judged(REPOSITORIES, Put.RIGHT, True, 0.1), Judged(REPOSITORIES, Put.WRONG, False, 0.9)]
    run = {"cores": 2, "load": 1.0, "minutes": 3, "date": "2026-11-18", "mode": "a sample"}
    languages = {"same": None, "other": None}
    results = figures_of(judged, [0.5] * 4) | {"run": run, "missing": ["notes"], "by_language": languages}
    page = section(results)
    assert page.startswith(HEADING)
    assert [row.split("|")[1].strip() for row in page.splitlines() if row.endswith("| NO |")] == [
        "questions about repositories"
    ]
    assert "Not measured: notes." in page
