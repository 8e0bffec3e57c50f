"""Issues and pull requests of GitHub as JSON."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

import satchel
from satchel.errors import InvalidInput
from satchel.importers import detect_importer, read_records
from satchel.models.block import Block, Link, Notice
from satchel.service.importing import import_source

ISSUE: dict[str, Any] = {
    "number": 5,
    "title": "Backoff grows without bound",
    "state": "OPEN",
    "url": "https://github.com/o/r/issues/5",
    "body": "In src/retry.py:2 it doubles for ever.\n\n- [ ] cap it\n",
    "author": {"login": "bob"},
    "assignees": [{"login": "ann"}],
    "labels": [{"name": "bug"}],
    "milestone": {"title": "v2", "dueOn": "2026-02-01T00:00:00Z"},
    "comments": [{"author": {"login": "ann"}, "body": "Cap at a minute", "createdAt": "2026-01-01T00:00:00Z"}],
}
PULL = {
    "number": 6,
    "title": "Cap the backoff",
    "state": "closed",
    "merged_at": "2026-01-04T00:00:00Z",
    "user": {"login": "ann"},
    "html_url": "https://github.com/o/r/pull/6",
    "body": "Fixes #5, see https://github.com/o/r/blob/main/src/retry.py#L2",
}
REMARK = {
    "issue_url": "https://api.github.com/repos/o/r/issues/6",
    "user": None,
    "body": "Nice",
    "created_at": "2026-01-05T00:00:00Z",
}


def written(path: Path, *values: Any) -> Path:
    path.write_text("\n".join(json.dumps(value) for value in values), encoding="utf-8")
    return path


def test_an_issue_is_a_page_with_its_state_people_text_and_comments(tmp_path: Path) -> None:
    path = written(tmp_path / "issues.json", [ISSUE])
    assert detect_importer(path) == "github"
    page, text, task, comment = [record for record in read_records("github", path) if isinstance(record, Block)]
    assert (page.id, page.title) == ("github/o/r#5", "#5 Backoff grows without bound")
    assert page.content == "Open issue by bob; assigned to ann; milestone v2; due 2026-02-01; labels: bug"
    assert {name: page.metadata[name] for name in ("done", "due", "assignee", "tags")} == {
        "done": False, "due": "2026-02-01", "assignee": "ann", "tags": ["bug"],
    }  # fmt: skip
    assert (text.content, task.type) == ("In src/retry.py:2 it doubles for ever.", "todo")
    assert (comment.type, comment.metadata["author"], comment.content) == ("message", "ann", "Cap at a minute")


def test_pages_of_the_api_and_comments_of_their_own_belong_together(tmp_path: Path) -> None:
    written(tmp_path / "all.json", [ISSUE], [PULL])  # `gh api --paginate` writes an array for each page
    written(tmp_path / "comments.json", [REMARK, {"other": 1}])
    records = list(read_records(detect_importer(tmp_path), tmp_path))
    (pull,) = [each for each in records if isinstance(each, Block) and each.title.startswith("#6")]
    assert (pull.metadata["kind"], pull.metadata["status"], pull.metadata["done"]) == ("pull request", "merged", True)
    (remark,) = [each for each in records if isinstance(each, Block) and each.content == "Nice"]
    assert (remark.parent, remark.metadata["author"]) == (pull.id, "ghost")
    targets = {each.target for each in records if isinstance(each, Link) and each.source.startswith(pull.id)}
    assert targets == {"github/o/r#5", "src/retry.py"}
    (notice,) = [each for each in records if isinstance(each, Notice)]
    assert notice.problem == "1 values that are no issue, pull request or comment were left out"


def test_an_issue_leads_to_the_code_that_it_names(tmp_path: Path) -> None:
    home = tmp_path / "home"
    (home / "src").mkdir(parents=True)
    (home / "src/retry.py").write_text("def backoff(n):\n    return 2 ** n\n", encoding="utf-8")
    path = written(tmp_path / "issues.json", [ISSUE])
    with satchel.open_engine(home, index_dir=str(tmp_path / "index")) as engine:
        engine.index()
        assert import_source(engine.workspace, path).kind == "github"
    with satchel.open(home, index_dir=str(tmp_path / "index")) as client:
        assert "return 2 ** n" in client.build("why?", focus="#5 Backoff grows without bound").text


def test_what_is_cut_off_is_read_up_to_there(tmp_path: Path) -> None:
    whole = json.dumps([ISSUE, PULL])
    (tmp_path / "cut.json").write_text(whole[:-30], encoding="utf-8")
    records = list(read_records("github", tmp_path / "cut.json"))
    assert sum(isinstance(each, Block) and each.type == "page" for each in records) == 1
    assert any(isinstance(each, Notice) and each.problem.startswith("not read any further") for each in records)


def test_a_file_without_issues_is_refused(tmp_path: Path) -> None:
    with pytest.raises(InvalidInput, match="contains no issue or pull request"):
        list(read_records("github", written(tmp_path / "x.json", [{"a": 1}])))
