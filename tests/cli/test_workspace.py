"""`satchel workspace` and requests on the command line, as a user runs them."""

from __future__ import annotations

import json
from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.support.command_line import satchel
from tests.support.oracle import true_count
from tests.support.places import ROOT

VAULT = ROOT / "examples" / "vault"


def imported(root: Path) -> Path:
    root.mkdir()
    done = satchel("workspace", "import", VAULT, folder=root)
    assert done.returncode == 0, done.stderr
    assert "blocks" in done.stderr
    return root


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    return imported(tmp_path / "work")


@pytest.fixture(scope="module")
def library(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Path]:
    """For those who only ask, or are refused: what is in it is the same afterwards."""
    root = imported(tmp_path_factory.mktemp("library") / "work")
    before = satchel("workspace", "export", folder=root).stdout
    yield root
    assert satchel("workspace", "export", folder=root).stdout == before


def test_a_vault_is_imported_and_asked(library: Path) -> None:
    asked = satchel(
        "build", "What tasks are overdue?", "--type", "chat", "--hint", "type=todo", "-b", "1500", folder=library
    )
    assert asked.returncode == 0, asked.stderr
    assert "### Related Content\n[1] [" in asked.stdout
    assert "User Query: What tasks are overdue?" in asked.stdout
    assert true_count(asked.stdout.rstrip("\n")) <= 1500
    assert "tokens" in asked.stderr


def test_a_focus_a_format_and_json(library: Path) -> None:
    focus = ("--focus", "Projects/Launch plan")
    page = satchel("build", "Summarize this page", *focus, "--json", "-q", folder=library)
    told = json.loads(page.stdout)
    assert page.stderr == ""
    assert told["kind"] == "workspace"
    assert told["sections"][0]["name"] == told["sources"][0]["section"] == "focus"
    assert told["sources"][0]["id"] == "Projects/Launch plan"
    assert satchel("build", "x", *focus, "-f", "xml", "-q", folder=library).stdout.startswith("<context>")
    explained = satchel("explain", "Summarize this page", *focus, "-q", folder=library)
    assert "focus: focused page" in explained.stdout or "fits" in explained.stdout
    missing = satchel("build", "x", "--focus", "No/Such", folder=library)
    assert missing.returncode == 3
    assert "No/Such" in missing.stderr


def test_grants_say_who_may_read_and_are_taken_back(folder: Path) -> None:
    granted = satchel("workspace", "grant", "Projects/Projects", "group:staff", folder=folder)
    assert "without a grant are denied" in granted.stderr
    assert satchel("workspace", "group", "staff", "ann", "bob", "-q", folder=folder).returncode == 0
    question = ("build", "When is the launch?", "--type", "search", "-q")
    assert "Launch" in satchel(*question, "--user", "ann", folder=folder).stdout
    stranger = satchel(*question, "--user", "eve", folder=folder)
    assert stranger.returncode == 3
    assert "_No relevant content found._" in stranger.stdout
    nobody = satchel("search", "launch", "-q", folder=folder)
    assert nobody.returncode == 2
    assert "--user" in nobody.stderr
    assert satchel("workspace", "grant", "Projects/Projects", "bob", "--deny", "-q", folder=folder).returncode == 0
    assert satchel(*question, "--user", "bob", folder=folder).returncode == 3
    assert satchel("workspace", "revoke", "Projects/Projects", "group:staff", "-q", folder=folder).returncode == 0
    assert satchel(*question, "--user", "ann", folder=folder).returncode == 3
    wrong = satchel("workspace", "revoke", "Projects/Projects", "group:staff", folder=folder)
    assert wrong.returncode == 1
    assert "no grant to revoke" in wrong.stderr
    hidden = satchel("expand", "Projects/Billing#^task-456", "--user", "eve", folder=folder)
    assert hidden.returncode == 3


def test_a_block_that_does_not_inherit_and_the_default_decide_who_may_read(folder: Path) -> None:
    question = ("build", "When is the launch?", "--type", "search", "-q", "--user", "ann")
    satchel("workspace", "grant", "Projects/Projects", "ann", "-q", folder=folder)
    assert "Launch" in satchel(*question, folder=folder).stdout
    closed = satchel("workspace", "inherit", "Projects/Launch plan", "no", folder=folder)
    assert closed.stderr == "satchel: Projects/Launch plan does not inherit now\n"
    assert satchel("expand", "Projects/Launch plan", "--user", "ann", "-q", folder=folder).returncode == 3
    satchel("workspace", "inherit", "Projects/Launch plan", "yes", "-q", folder=folder)
    assert satchel("expand", "Projects/Launch plan", "--user", "ann", "-q", folder=folder).returncode == 0
    assert satchel("expand", "Home", "--user", "eve", "-q", folder=folder).returncode == 3
    opened = satchel("workspace", "default", "allow", folder=folder)
    assert opened.stderr == "satchel: default access: allow\n"
    assert satchel("expand", "Home", "--user", "eve", "-q", folder=folder).returncode == 0


def test_a_forgotten_source_takes_its_blocks_along_and_leaves_its_files(tmp_path: Path) -> None:
    work, vault = tmp_path / "work", tmp_path / "vault"
    for place in (work, vault):
        place.mkdir()
    (vault / "Boats.md").write_text("# Boats\n\nThe ferry leaves at nine.\n")
    done = satchel("workspace", "import", vault, "--kind", "vault", "--json", folder=work)
    told = json.loads(done.stdout)
    assert (told["removed"], told["notes"]) == (0, [])
    listed = satchel("workspace", "forget", folder=work).stdout.splitlines()
    assert listed == [f"vault:{vault}"]
    forgotten = satchel("workspace", "forget", listed[0], folder=work)
    assert forgotten.stderr == f"satchel: removed {told['counts']['block']} blocks\n"
    assert satchel("workspace", "forget", folder=work).stdout == ""
    assert satchel("expand", "Boats", "-q", folder=work).returncode == 3
    assert (vault / "Boats.md").exists()


def test_an_export_can_be_imported_elsewhere(folder: Path, tmp_path: Path) -> None:
    satchel("workspace", "grant", "Home", "ann", "-q", folder=folder)
    satchel("workspace", "activity", "--user", "ann", "--action", "view", "--block", "Home", "-q", folder=folder)
    out = tmp_path / "all.jsonl"
    assert satchel("workspace", "export", "-o", out, folder=folder).returncode == 0
    other = tmp_path / "other"
    other.mkdir()
    assert satchel("workspace", "import", out, folder=other).returncode == 0
    again = satchel("workspace", "export", folder=other)
    assert again.stdout == out.read_text()
    listed = json.loads(satchel("workspace", "activity", "--json", folder=other).stdout)
    assert [(one["actor"], one["action"], one["block"]) for one in listed] == [("ann", "view", "Home")]


def test_what_changes_in_a_vault_is_imported_again(tmp_path: Path) -> None:
    vault = tmp_path / "vault"
    vault.mkdir()
    (vault / "Boats.md").write_text("# Boats\n\nThe ferry leaves at nine from the north pier.\n")
    (vault / "Old.md").write_text("# Old\n\nThe lighthouse is closed.\n")
    assert satchel("workspace", "import", vault, "-w", vault, "-q", folder=tmp_path).returncode == 0
    ask = ("search", "when does the ferry leave", vault, "--json", "-q")
    found = json.loads(satchel(*ask, folder=tmp_path).stdout)
    assert [hit["path"] for hit in found["hits"]] == [""] * len(found["hits"])  # the notes are blocks, not files too
    (vault / "Boats.md").write_text("# Boats\n\nThe ferry leaves at ten from the south pier.\n")
    (vault / "Old.md").unlink()
    changed = satchel("search", "when does the ferry leave", vault, "--content", folder=tmp_path)
    assert "has changed" in changed.stderr
    assert "ten from the south pier" in changed.stdout
    everything = satchel("workspace", "export", "-w", vault, folder=tmp_path).stdout
    assert "lighthouse" not in everything


def test_a_conversation_goes_along(library: Path, tmp_path: Path) -> None:
    chat = tmp_path / "chat.jsonl"
    turns = [
        {"role": "user", "content": "Tell me about the billing migration."},
        {"role": "assistant", "content": "Sure."},
    ]
    chat.write_text("\n".join(map(json.dumps, turns)))
    asked = satchel("build", "And when is it?", "--history", chat, "-q", folder=library)
    assert "### Conversation\n[message]\nuser: Tell me about the billing migration." in asked.stdout


@pytest.mark.parametrize(
    ("arguments", "code", "told"),
    [
        (("build", "x", "--hint", "colour=red"), 2, "hint"),
        (("build", "x", "--hint", "depth=deep"), 2, "whole number"),
        (("build", "x", "--hint", "since=2026-02-01", "--hint", "until=2026-01-01"), 2, "must not be before"),
        (("build", "x", "--hint", "include=a", "--hint", "exclude=a"), 2, "remove it from one of them"),
        (("build", "x", "--type", "chat", "-b", "20"), 4, "raise the budget"),
        (("workspace", "import", "nowhere"), 1, "does not exist"),
        (("workspace", "grant", "nothing", "ann"), 3, "no file or block in this index"),
        (("workspace", "activity", "--action", "edit"), 2, "--user and --block"),
        (("clear",), 2, "satchel workspace export"),
    ],
)
def test_wrong_usage_says_what_to_do(library: Path, arguments: tuple[str, ...], code: int, told: str) -> None:
    done = satchel(*arguments, folder=library)
    assert done.returncode == code, done.stderr
    assert told in done.stderr
    assert "Traceback" not in done.stderr


def test_clearing_by_force_removes_the_blocks_too(folder: Path) -> None:
    assert satchel("clear", "--force", "-q", folder=folder).returncode == 0
    assert satchel("workspace", "export", folder=folder).stdout.count("\n") <= 1
