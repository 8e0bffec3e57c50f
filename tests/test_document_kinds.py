"""Kinds of documents that other packages bring: installed apart, read in a confined child, harmless when broken."""

import json
import os
import subprocess
import sys
from pathlib import Path

import pytest

from satchel.indexing.documents.kinds import kind_of
from satchel.models.document import DOCUMENT_KINDS, PageUnit, document_suffixes, page_unit, page_words

ROOT = Path(__file__).resolve().parent.parent


@pytest.fixture(scope="module")
def installed(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A folder with the example's distribution, and a broken one beside it."""
    folder = tmp_path_factory.mktemp("installed")
    source = tmp_path_factory.mktemp("source")
    for file in (ROOT / "examples" / "plugins" / "document_kind").iterdir():
        if file.is_file():
            (source / file.name).write_bytes(file.read_bytes())
    pip = [sys.executable, "-m", "pip", "install", "--quiet", "--no-index", "--no-deps", "--no-build-isolation"]
    subprocess.run([*pip, "--target", folder, source], check=True, capture_output=True)
    broken = folder / "broken_kind-1.0.dist-info"
    broken.mkdir()
    (broken / "METADATA").write_text("Metadata-Version: 2.1\nName: broken-kind\nVersion: 1.0\n")
    (broken / "entry_points.txt").write_text("[satchel.document_kinds]\nrune = no_such_module_of_runes:RUNE\n")
    return folder


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    work = tmp_path / "work"
    work.mkdir()
    (work / "board.minutes").write_text("MINUTES\nBoard of May\n* The okapi moves house.\n* Lions eat at noon.\n")
    (work / "notes.minutes").write_text("nothing of the kind\n")
    (work / "plain.md").write_text("# Plain\n\nOrdinary words.\n")
    return work


def satchel(installed: Path, folder: Path, *words: str) -> subprocess.CompletedProcess[str]:
    environment = {**os.environ, "PYTHONPATH": str(installed)}
    command = [sys.executable, "-P", "-m", "satchel", *words, "--index-dir", str(folder.parent / "index")]
    return subprocess.run(command, cwd=folder, env=environment, capture_output=True, text=True, check=True)


def test_a_kind_from_another_package_is_read_found_and_cited_by_its_unit(installed: Path, folder: Path) -> None:
    done = satchel(installed, folder, "index", ".")
    assert "the plug-in 'rune' of broken-kind cannot be loaded (ModuleNotFoundError" in done.stderr
    built = json.loads(satchel(installed, folder, "build", "where does the okapi move", "--json", "-q").stdout)
    assert "okapi moves house" in json.dumps(built)
    assert "board.minutes" in json.dumps(built)
    assert "section 1" in satchel(installed, folder, "search", "lions at noon okapi", "-q").stdout


def test_without_the_package_the_file_is_text(tmp_path: Path, folder: Path) -> None:
    satchel(tmp_path, folder, "index", ".")
    assert "MINUTES" in satchel(tmp_path, folder, "search", "okapi", "--content", "-q").stdout


def test_every_suffix_of_ours_has_a_unit_and_a_reader() -> None:
    assert len(document_suffixes()) == 25
    for name in DOCUMENT_KINDS.names():
        kind = DOCUMENT_KINDS.get(name)
        assert {page_unit(f"a.{suffix}") for suffix in kind.suffixes} <= {kind.unit}
    assert page_words("a.pptx", 3) == "slide 3"
    assert page_unit("a.py") is None
    assert document_suffixes(often_source=True) | document_suffixes(often_source=False) == document_suffixes()
    assert PageUnit.PICTURE not in {page_unit(f"a.{suffix}") for suffix in document_suffixes(often_source=False)}


def test_the_bytes_decide_before_the_name() -> None:
    assert kind_of("a.docx", b"%PDF-1.4\n") == "pdf"
    assert kind_of("a.tif", b"MM\0*....") == "tiff"
    assert kind_of("a.txt", b"words") == "text"
    assert kind_of("a.bin", b"RIFF1234WEBPxxxx") == "webp"
