"""No secret leaves Satchel, whatever it came in with: files, documents, notes, chats, own hits, titles."""

from __future__ import annotations

import json
import random
import string
import subprocess
from pathlib import Path

import pytest

import satchel
from satchel import KnowledgeChunk
from satchel.models.block import Activity, Block, Link, LinkKind
from satchel.models.context import SourceDocument
from satchel.research.builder import ContextBuilder
from tests.support.command_line import satchel as run
from tests.support.documents import pdf_of_lines
from tests.support.workspaces import NOW, engine_in, request

DRAWN = random.Random(4)
SECRET = "ghp_" + "".join(DRAWN.choice(string.ascii_letters + string.digits) for _ in range(36))
MARK = "[redacted: github-token]"


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    root = tmp_path / "work"
    root.mkdir()
    (root / "harbor.py").write_text(
        f'def moor(ship):\n    """Moor a ship."""\n    token = "{SECRET}"\n    return token\n'
    )
    (root / "notes.md").write_text(f"# Mooring\n\nTo moor a ship use {SECRET} as the token.\n")
    (root / "config.yaml").write_text(f"mooring:\n  ship_token: {SECRET}\n")
    (root / "mooring.json").write_text(json.dumps({"ship": {"token": SECRET}}, indent=1))
    (root / "ship.ipynb").write_text(json.dumps({"cells": [{"source": [f"token = '{SECRET}'  # moor a ship\n"]}]}))
    (root / "report.pdf").write_bytes(pdf_of_lines([["How to moor a ship", "The token is", SECRET, "for the harbor."]]))
    (root / f"{SECRET}.md").write_text("# Mooring\n\nHow a ship is moored.\n")
    (root / f"dir_{SECRET}").mkdir()
    (root / f"dir_{SECRET}" / "a.md").write_text("# Mooring\n\nA ship is moored here, too.\n")
    (root / f"link_{SECRET}").symlink_to("/nowhere")
    return root


def test_files_are_indexed_and_shown_without_their_secrets(folder: Path, tmp_path: Path) -> None:
    with satchel.open(folder, index_dir=tmp_path / "index") as client:
        for budget in (300, 4000):
            context = client.build("how to moor a ship with its token", token_budget=budget)
            assert SECRET not in context.text
            assert SECRET not in repr(context)
        assert MARK in context.text
        assert any("redacted in this text: github-token" in note for note in context.notes)
        hits = client.search("moor a ship token", top_k=20).hits
        assert SECRET not in repr(hits)
        assert SECRET not in client.expand("harbor.py:1-4").text
        # A file that changed after it was indexed is read from disk.
        (folder / "harbor.py").write_text(
            f'def moor(ship):\n    """Moor it."""\n    key = "{SECRET}"\n    return key\n'
        )
        assert SECRET not in client.build("how to moor a ship with its token", token_budget=4000).text
    stored = b"".join(file.read_bytes() for file in (tmp_path / "index").rglob("*") if file.is_file())
    assert SECRET.encode() not in stored


def test_blocks_are_stored_without_their_secrets(tmp_path: Path) -> None:
    with engine_in(tmp_path) as engine:
        engine.workspace.load([Block(id="b1", type="page", title=f"Token {SECRET}", content=f"Moor with {SECRET}.")])
        context = engine.build(request("moor a ship with the token"))
    assert MARK in context.text
    assert SECRET not in context.text


def test_facts_links_and_activity_are_stored_without_their_secrets(tmp_path: Path) -> None:
    facts = {"assignee": f"Ann {SECRET}", "deep": [{"key": SECRET}]}
    with engine_in(tmp_path) as engine:
        engine.workspace.load(
            [
                Block(id="b1", type="todo", content="Moor", source_path=f"{SECRET}.md", metadata=facts),
                Link(source="b1", kind=LinkKind.MENTIONS, target=None, name=f"the {SECRET}"),
                Activity(block="b1", actor="ann", action="edit", timestamp=NOW, detail=f"set {SECRET}"),
            ]
        )
        assert SECRET not in repr(list(engine.workspace.records()))


def test_subjects_of_commits_are_read_without_their_secrets(tmp_path: Path) -> None:
    (tmp_path / "work").mkdir()
    (tmp_path / "work" / "a.py").write_text("def moor(ship):\n    return ship\n")
    git = ["git", "-c", "user.name=n", "-c", "user.email=n@x", "-C", str(tmp_path / "work")]
    for arguments in (["init", "-q"], ["add", "a.py"], ["commit", "-q", "-m", f"moor with {SECRET}"]):
        subprocess.run([*git, *arguments], check=True)
    with satchel.open(tmp_path / "work", index_dir=tmp_path / "index") as client:
        client.search("moor")
    stored = b"".join(file.read_bytes() for file in (tmp_path / "index").rglob("*") if file.is_file())
    assert SECRET.encode() not in stored


def test_own_hits_are_rendered_without_their_secrets() -> None:
    chunk = KnowledgeChunk(f"token = '{SECRET}'", file_path=f"a/{SECRET}.py", relevance=0.9, name=SECRET, id="own")
    context = satchel.assemble([chunk])
    assert context.text.count(MARK) >= 2
    assert SECRET not in context.text
    assert SECRET not in context.expand("own")
    assert any("redacted" in note for note in context.notes)


def test_pages_of_somebody_elses_search_are_rendered_without_their_secrets() -> None:
    builder = ContextBuilder(None, None)  # type: ignore[arg-type]
    page = SourceDocument("d", "a.pdf", 1, "pdf", markdown_content=f"The token is {SECRET}.")
    assert MARK in builder.format_source_citation(page, 1)
    assert SECRET not in builder.format_source_citation(page, 1)


NAMES = (
    ".netrc", ".npmrc", ".pypirc", ".git-credentials", ".env", ".env.production", "prod.env", ".htpasswd", ".pgpass",
    ".my.cnf", ".aws/credentials", ".kube/config", "terraform.tfstate", "terraform.tfstate.backup", "terraform.tfvars",
    "secrets.yaml", "secrets.yml", "secrets.json", "secrets.toml", "service-account.json", "service_account_prod.json",
    "credentials.json", "client_secret_1.json", "id_rsa", "id_ed25519", "server.pem", "server.key", "key.p12", "a.jks",
    "release.keystore", "vpn.ovpn", "passwords.kdbx", ".vault-token", ".s3cfg", ".boto", ".dockercfg", "kubeconfig",
    "rclone.conf", ".bash_history", ".ssh/config", "x.ppk", "app.publishsettings",
)  # fmt: skip


def test_files_that_exist_to_hold_credentials_are_not_indexed(tmp_path: Path) -> None:
    root = tmp_path / "work"
    for name in NAMES:
        (root / name).parent.mkdir(parents=True, exist_ok=True)
        (root / name).write_text("harbor pilot\n")
    for name in (".env.example", "secrets.py", "credentials.go", "public.pub", "environment.md"):
        (root / name).write_text("harbor pilot = 1\n")
    with satchel.open(root, index_dir=tmp_path / "index") as client:
        paths = {hit.path for hit in client.search("harbor pilot", top_k=100).hits}
    assert not paths.intersection(NAMES)
    assert "secrets.py" in paths


def test_secrets_are_listed_with_their_places_and_never_shown(folder: Path) -> None:
    (folder / ".env").write_text(f"\nGITHUB={SECRET}\n")
    listed = run("secrets", folder, folder=folder)
    assert listed.returncode == 0
    assert "harbor.py:3  github-token" in listed.stdout
    assert ".env:2  github-token  (file is not indexed)" in listed.stdout
    assert f'= "{SECRET}' not in listed.stdout
    rows = json.loads(run("secrets", folder, "--json", folder=folder).stdout)["secrets"]
    assert {"path": "config.yaml", "line": 2, "kind": "github-token", "indexed": True} in rows
    assert "no secrets found" in run("secrets", folder / "report.pdf", folder=folder).stderr
