"""Ranking of files: names by word family and rarity, stack traces, and what stays in the background."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path

from satchel.retrieval.ranking import reasons_of
from satchel.service.factory.opening import open_engine

_REPORT = "Boom\n" + "the pool is empty " * 20 + '\nFile "/home/me/venv/lib/acme/db/pool.py", line 9, in get\n'


def _ranked(tmp_path: Path, files: Mapping[str, str], question: str) -> list[str]:
    """The paths of the files, best first."""
    folder = tmp_path / "workspace"
    for path, text in files.items():
        (folder / path).parent.mkdir(parents=True, exist_ok=True)
        (folder / path).write_text(text)
    engine = open_engine(folder, index_dir=str(tmp_path / "index"), history_commits=0)
    try:
        engine.index()
        return list(dict.fromkeys(hit.path for hit in engine.search(question, top_k=20).hits))
    finally:
        engine.close()


def test_a_file_is_found_by_another_word_of_the_family(tmp_path: Path) -> None:
    body = "def run(value):\n    return value\n"
    files = {f"app/{name}.py": f"# {name[0]}\n{body}" for name in ("formatter", "reader", "client", "printer")}
    assert _ranked(tmp_path, files, "formatting of a value")[0] == "app/formatter.py"


def test_a_rare_word_in_a_name_beats_the_word_of_every_name(tmp_path: Path) -> None:
    names = ("client", "server", "retry", "pool", "shell")
    files = {f"acme_{name}.py": f"# {name[0]}\ndef acme_retry(value):\n    return value\n" for name in names}
    assert _ranked(tmp_path, files, "acme retry")[0] == "acme_retry.py"


def test_an_index_file_is_named_by_its_folder(tmp_path: Path) -> None:
    names = ("configuration", "pool", "shell")
    files = {f"src/{name}/mod.rs": f"// {name[0]}\npub fn run() {{}}\n" for name in names}
    assert _ranked(tmp_path, files, "run the cfg")[0] == "src/configuration/mod.rs"


def test_the_file_of_the_innermost_frame_leads(tmp_path: Path) -> None:
    body = "def get():\n    return 'the pool is empty'\n"
    files = {f"src/acme/db/{name}.py": f"# {name[0]}\n{body}" for name in ("access", "pool", "query")}
    assert _ranked(tmp_path, files, _REPORT)[0] == "src/acme/db/pool.py"


def test_an_issue_template_is_never_first_for_a_report(tmp_path: Path) -> None:
    files = {
        ".github/ISSUE_TEMPLATE/bug.md": "Describe the issue: what is the pool, and why is it empty?\n",
        "acme/waiting.py": 'def wait_for(pool):\n    """Wait while the pool is empty."""\n',
    }
    assert _ranked(tmp_path, files, "Issue: the pool is empty\n" + "the pool is empty " * 20)[0] == "acme/waiting.py"


def test_a_change_log_leads_only_if_the_question_asks_what_changed(tmp_path: Path) -> None:
    files = {
        "CHANGELOG.md": "# Changelog\n\n## 2.0\n\nThe router matches paths in order.\n",
        "src/router.py": 'def match(path):\n    """The router matches paths in order."""\n    return path\n',
    }
    assert _ranked(tmp_path / "a", files, "what changed in version 2.0 of the router")[0] == "CHANGELOG.md"
    assert _ranked(tmp_path / "b", files, "how the router matches paths")[0] == "src/router.py"


def test_where_something_is_puts_code_before_its_documentation(tmp_path: Path) -> None:
    files = {
        "docs/router.md": "# Router\n\nThe router matches paths in order, and the router matches them once.\n",
        "src/matching.py": 'def match(path):\n    """The router matches paths in order."""\n    return path\n',
    }
    assert _ranked(tmp_path, files, "where are paths matched in order")[0] == "src/matching.py"


def test_reasons_are_in_words_and_add_up_what_says_the_same() -> None:
    signals = {"file_name": 1.0, "file_name_precision": 0.5, "best_meaning": 0.75, "test": -2.0}
    assert reasons_of(signals, "src/net/retry.py:3-9") == [
        ("it is a test, which was not asked for", -2.0),
        ("the file's name is *retry*", 1.5),
        ("its meaning is similar", 0.75),
    ]
    assert reasons_of({"folder": 1.0}, "src/net/retry.py")[0][0] == "it is in *src/net*"
    assert reasons_of({"folder": 1.0}, "Makefile")[0][0] == "it is in the uppermost folder"
