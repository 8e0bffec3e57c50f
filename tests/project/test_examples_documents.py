"""The documents in `examples`: they are made, read, found by what they say, and cited by their pages."""

from __future__ import annotations

import asyncio
import os
import shutil
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest

import satchel
from examples.documents.make import documents, write
from satchel.research import ContextBuilder
from satchel.research.library import WorkspaceLibrary
from tests.support.places import ROOT

has_ocr = shutil.which("tesseract") is not None

QUESTIONS = [
    ("What was total revenue in 2025?", "annual-report-2025.pdf", 3, "41,450"),
    ("How many kilometres of mains were replaced in the old town?", "annual-report-2025.pdf", 2, "14.2 kilometres"),
    ("Who became managing director?", "annual-report-2025.pdf", 2, "Rosalind Okafor"),
    ("What is the penalty for late delivery?", "pipe-supply.docx", 1, "0.5 percent"),
    ("What does the new building on the hill cost?", "pumping-station.pptx", 3, "6.4 million"),
    ("How much water did Kestrel Paper Mill use?", "tariff-and-customers.xlsx", 2, "412750"),
    ("What does a standpipe cost per week?", "tariff-and-customers.xlsx", 1, "35"),
    ("How is a hydrant flushed?", "handbook-for-crews.epub", 2, "quarter turn"),
    ("When is the water off in Orchard Street?", "orchard-street.html", 1, "4 December 2025"),
    ("nitrate in Stonebridge well 2", "samples-2025-10.csv", 1, "31.7"),
]
IN_PICTURES = [
    ("Whose water smells of iron?", "2025-11-12-holm.pdf", 1, "Holm"),
    ("How many kWh per cubic metre does pumping take?", "annual-report-2025.pdf", 4, "0.61"),
    ("leakage in percent by quarter", "leakage-2025.png", 1, "14.1"),
]


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    made = tmp_path_factory.mktemp("examples") / "documents"
    write(made)
    return made


@pytest.fixture(scope="module")
def library(folder: Path) -> Iterator[WorkspaceLibrary]:
    with satchel.open_library(folder, index_dir=str(folder.parent / "index")) as opened:
        report = opened.engine.index()
        assert (report.read, report.skipped_paths) == (9, [])
        yield opened


def test_the_same_bytes_are_made_each_time(folder: Path) -> None:
    kept = {path.relative_to(folder).as_posix(): path.read_bytes() for path in folder.rglob("*") if path.is_file()}
    assert kept == documents()


@pytest.mark.parametrize(("question", "filename", "page", "fact"), QUESTIONS)
def test_the_best_source_is_the_page_that_answers(
    library: WorkspaceLibrary, question: str, filename: str, page: int, fact: str
) -> None:
    check(library, question, filename, page, fact)


@pytest.mark.skipif(not has_ocr, reason="no tesseract here")
@pytest.mark.parametrize(("question", "filename", "page", "fact"), IN_PICTURES)
def test_what_only_pictures_say_is_found_too(
    library: WorkspaceLibrary, question: str, filename: str, page: int, fact: str
) -> None:
    check(library, question, filename, page, fact)


def check(library: WorkspaceLibrary, question: str, filename: str, page: int, fact: str) -> None:
    context = asyncio.run(ContextBuilder(library, library, max_tokens=2000).build_context(question))
    best = context.get_citation_map()[1]
    assert (best.filename, best.page) == (filename, page)
    assert fact in best.markdown_content
    assert context.formatted_text.startswith(f"[Document 1: {filename}, Page {page}]\n")


def test_the_program_prints_the_context_and_its_citations(library: WorkspaceLibrary, folder: Path) -> None:
    before = library.engine.store.generation
    done = subprocess.run(
        [sys.executable, ROOT / "examples/research.py", "What was net income in 2025?", folder],
        env={**os.environ, "SATCHEL_INDEX_DIR": str(folder.parent / "index")},
        capture_output=True,
        text=True,
        check=True,
    )
    assert done.stdout.startswith("[Document 1: annual-report-2025.pdf, Page 3]\n")
    assert "| Net income | 3,685 | 2,940 |" in done.stdout
    assert "\n[1] annual-report-2025.pdf, page 3, relevance 0." in done.stdout
    assert library.engine.store.generation == before  # nothing had changed, nothing was read again
