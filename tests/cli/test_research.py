"""`satchel research`, `satchel page` and `satchel index --page-images`, as a user runs them."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from pathlib import Path

import pytest

from tests.support.documents import docx_of, encrypted_pdf, pdf_of_lines
from tests.support.waiting import HANG_SECONDS


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    root = tmp_path_factory.mktemp("cli research") / "papers"
    root.mkdir()
    (root / "garden.pdf").write_bytes(
        pdf_of_lines([["The garden opens in May."], ["Tickets for lions cost 12 euros."]])
    )
    (root / "a copy of it.pdf").write_bytes((root / "garden.pdf").read_bytes())
    (root / "minutes.docx").write_bytes(docx_of([(1, "Minutes", "We will buy pumps.")]))
    (root / "closed.pdf").write_bytes(encrypted_pdf("secret"))
    return root


def satchel(folder: Path, *arguments: str) -> subprocess.CompletedProcess[str]:
    command = [sys.executable, "-m", "satchel", *arguments, "--index-dir", str(folder.parent / "index")]
    return subprocess.run(command, cwd=folder, capture_output=True, text=True, timeout=HANG_SECONDS, check=False)


def test_index_names_what_it_cannot_read_and_makes_pictures(folder: Path) -> None:
    done = satchel(folder, "index", "--page-images")
    assert done.returncode == 0
    assert "closed.pdf is encrypted" in done.stderr
    assert "1 duplicates" in done.stderr
    assert "made pictures of 2 pages" in done.stderr
    status = satchel(folder, "status", "--json")
    assert "encrypted" in json.loads(status.stdout)["unread"]["closed.pdf"]
    assert json.loads(status.stdout)["skipped"] == 1


def test_research_prints_pages_and_says_what_they_take(folder: Path) -> None:
    done = satchel(folder, "research", "what do tickets for lions cost", "-n", "2", "-b", "200")
    assert done.returncode == 0
    assert done.stdout.startswith("[Document 1: garden.pdf, Page 2]\nTickets for lions cost 12 euros.")
    assert "of 200 tokens" in done.stderr


def test_research_as_json_can_be_verified(folder: Path, tmp_path: Path) -> None:
    context, answer = tmp_path / "ctx.json", tmp_path / "answer.md"
    assert satchel(folder, "research", "tickets for lions", "-n", "1", "--json", "-o", str(context)).returncode == 0
    command = [sys.executable, "-m", "satchel", "verify", str(answer), "--context", str(context)]
    for text, code in (
        ('They "cost 12 euros" [1].', 0),
        ('They "cost 99 euros" [1].', 1),
        ("They cost 12 euros [7].", 1),
    ):
        answer.write_text(text)
        assert subprocess.run(command, capture_output=True, check=False).returncode == code, text


def test_nothing_found_and_nothing_that_fits_have_their_codes(folder: Path, tmp_path: Path) -> None:
    assert satchel(folder, "research", "tickets", "-b", "3").returncode == 4
    (tmp_path / "empty").mkdir()
    assert satchel(tmp_path / "empty", "research", "tickets").returncode == 3


@pytest.mark.parametrize("name", ["garden.pdf", "./garden.pdf", "a copy of it.pdf"])
def test_a_picture_of_a_page(folder: Path, tmp_path: Path, name: str) -> None:
    where = satchel(folder, "page", name, "2").stdout.strip()
    assert Path(where).read_bytes()[:2] == b"\xff\xd8"
    target = tmp_path / "page.jpg"
    assert satchel(folder, "page", name, "2", "--thumbnail", "-o", str(target)).returncode == 0
    assert 0 < target.stat().st_size < Path(where).stat().st_size


@pytest.mark.parametrize(
    ("arguments", "said"),
    [
        (("garden.pdf", "9"), "no such page"),
        (("none.pdf", "1"), "no such document"),
        (("minutes.docx", "1"), "only PDFs and pictures"),
        (("garden.pdf", "0"), "0 is not in the range"),
    ],
)
def test_pages_that_cannot_be_shown(folder: Path, arguments: tuple[str, ...], said: str) -> None:
    done = satchel(folder, "page", *arguments)
    assert done.returncode
    assert said in done.stderr
    assert "Traceback" not in done.stderr


def test_documents_that_are_not_read_are_said_so(folder: Path) -> None:
    command = [sys.executable, "-m", "satchel", "build", "lions", "--index-dir", str(folder.parent / "off")]
    environment = {**os.environ, "SATCHEL_DOCUMENTS": "off"}
    done = subprocess.run(command, cwd=folder, capture_output=True, text=True, env=environment, check=False)
    assert done.returncode == 3
    assert "4 documents were not read: the setting `documents` is off" in done.stderr
