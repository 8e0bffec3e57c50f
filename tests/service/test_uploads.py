"""Uploads: under checked names, whole or not there, never through a link."""

from __future__ import annotations

import os
from pathlib import Path

import pytest

import satchel
from satchel.service.uploads import Upload, checked_name, remove
from tests.support.api import Api


@pytest.mark.parametrize(
    "name",
    ["../a.pdf", "a/../b.pdf", "/etc/x", "a//b", ".env", "a/.git/x", "", "a\0b", "a\\b", "con", "COM1.txt", "a ", "a.",
     "x" * 200, "a/" * 9 + "b", "a\nb", "\u202ea.pdf", "-rf"],
    ids=ascii,
)  # fmt: skip
def test_a_name_that_leads_elsewhere_is_refused(name: str) -> None:
    with pytest.raises(satchel.errors.InvalidInput):
        checked_name(name)


def test_an_upload_is_whole_or_not_there(tmp_path: Path) -> None:
    with Upload(tmp_path, "reports/größe 2026.pdf") as upload:
        upload.write(b"abc")
        upload.write(b"def")
        upload.keep()
    place = tmp_path / "uploads/reports/größe 2026.pdf"
    assert place.read_bytes() == b"abcdef"
    with Upload(tmp_path, "reports/größe 2026.pdf") as upload:
        upload.write(b"half")
    assert place.read_bytes() == b"abcdef"
    assert os.listdir(place.parent) == ["größe 2026.pdf"]
    assert remove(tmp_path, "reports/größe 2026.pdf")
    assert not place.exists()
    assert not remove(tmp_path, "reports/größe 2026.pdf")
    assert not remove(tmp_path, "nowhere/a.pdf")


def test_an_upload_follows_no_link(tmp_path: Path) -> None:
    outside = tmp_path / "outside"
    outside.mkdir()
    (outside / "a.pdf").write_bytes(b"kept")
    root = tmp_path / "root"
    (root / "uploads").mkdir(parents=True)
    (root / "uploads/there").symlink_to(outside)
    (root / "uploads/a.pdf").symlink_to(outside / "a.pdf")
    for name in ("there/a.pdf", "a.pdf", "there/new.pdf"):
        with pytest.raises(satchel.errors.InvalidInput):
            Upload(root, name)
        assert not remove(root, name)
    assert (outside / "a.pdf").read_bytes() == b"kept"
    assert os.listdir(outside) == ["a.pdf"]


def test_a_file_that_is_still_being_uploaded_is_not_indexed(api: Api) -> None:
    with Upload(api.engine.root, "hr.md") as upload:
        upload.write(b"The zebra's salary is 9000.")
        assert api.local_client.index().read == 3
        assert all("upload" not in hit.path for hit in api.local_client.search("zebra salary").hits)
        upload.keep()
    assert api.local_client.search("zebra salary").hits[0].path == "uploads/hr.md"


def test_what_a_killed_upload_left_behind_is_removed(tmp_path: Path) -> None:
    import os

    left = tmp_path / "uploads" / ".satchel-upload-0123"
    left.parent.mkdir()
    left.write_text("half")
    os.utime(left, (1, 1))
    with Upload(tmp_path, "a.md"):
        assert not left.exists()
