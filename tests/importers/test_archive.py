"""Exports in folders and zips: every file that is worth reading, and a notice about each that is not."""

from __future__ import annotations

import io
import os
import stat
import zipfile
from pathlib import Path

import pytest

from satchel.errors import WorkspaceMissing
from satchel.importers.archive import ExportFile, first_names, open_export
from satchel.models.block import Notice

MAX_FILE_BYTES = 1_000


def listed(path: Path) -> tuple[list[str], dict[str, str]]:
    """The paths of the files, and the notices by place."""
    with open_export(path, MAX_FILE_BYTES) as export:
        found = list(export.files())
    files = [entry.path for entry in found if isinstance(entry, ExportFile)]
    return files, {entry.where: entry.problem for entry in found if isinstance(entry, Notice)}


def zipped(**members: str | bytes) -> bytes:
    file = io.BytesIO()
    with zipfile.ZipFile(file, "w", zipfile.ZIP_DEFLATED) as archive:
        for name, data in members.items():
            archive.writestr(name.replace("__", "/").replace("_", "."), data)
    return file.getvalue()


def test_a_folder_gives_its_texts_and_says_what_it_left_out(tmp_path: Path) -> None:
    folder = tmp_path / "export"
    (folder / "pages").mkdir(parents=True)
    (folder / "pages" / "a.md").write_text("# A\n")
    (folder / "long.md").write_text("x" * (MAX_FILE_BYTES + 1))
    (folder / "part.zip").write_bytes(zipped(b_md="# B\n"))
    (folder / "picture.png").write_bytes(b"\x89PNG\r\n\x1a\n\0\0\0\0")
    (folder / "link.md").symlink_to("/etc/passwd")
    files, notices = listed(folder)
    assert files == ["pages/a.md"]
    assert set(notices) == {"long.md", "part.zip", "link.md"}  # a picture is no loss
    assert "unpack it, or import it by itself" in notices["part.zip"]


def test_a_file_that_goes_or_grows_after_it_was_listed_is_a_notice(tmp_path: Path) -> None:
    (tmp_path / "a.md").write_text("# A\n")
    (tmp_path / "b.md").write_text("# B\n")
    with open_export(tmp_path, MAX_FILE_BYTES) as export:
        assert len(list(export.files())) == 2
        (tmp_path / "a.md").unlink()
        (tmp_path / "b.md").write_text("x" * (MAX_FILE_BYTES + 1))
        gone, grown = export.read("a.md"), export.read("b.md")
    assert isinstance(gone, Notice)
    assert gone.where == "a.md"
    assert isinstance(grown, Notice)
    assert grown.where == "b.md"


def test_a_zip_in_a_zip_is_read_and_a_zip_in_that_is_not(tmp_path: Path) -> None:
    inner = zipped(deep_md="# Deep\n", third_zip=zipped(never_md="# Never\n"), a_md="# Another\n")
    (tmp_path / "export.zip").write_bytes(zipped(a_md="# A\n", part_zip=inner, broken_zip=b"PK\3\4 and no more"))
    files, notices = listed(tmp_path / "export.zip")
    assert files == ["a.md", "deep.md"]
    assert set(notices) == {"third.zip", "a.md", "broken.zip"}
    assert "nested too deeply" in notices["third.zip"]
    assert "another file with this path" in notices["a.md"]
    with open_export(tmp_path / "export.zip", MAX_FILE_BYTES) as export:
        list(export.files())
        assert export.read("deep.md") == b"# Deep\n"


@pytest.mark.parametrize(
    "name", ["/etc/passwd", "../up.md", "a/../../up.md", "C:/up.md", "a\\b.md"], ids=lambda name: name.replace("/", "|")
)
def test_a_path_out_of_the_export_is_refused(tmp_path: Path, name: str) -> None:
    with zipfile.ZipFile(tmp_path / "export.zip", "w") as archive:
        archive.writestr(name, "# Out\n")
        archive.writestr("pages/", "")
        archive.writestr("pages/in.md", "# In\n")
    files, notices = listed(tmp_path / "export.zip")
    assert files == ["pages/in.md"]
    assert ["path traversal" in problem for problem in notices.values()] == [True]


def test_links_and_what_is_too_large_are_refused(tmp_path: Path) -> None:
    with zipfile.ZipFile(tmp_path / "export.zip", "w", zipfile.ZIP_DEFLATED) as archive:
        link = zipfile.ZipInfo("link.md")
        link.external_attr = (stat.S_IFLNK | 0o777) << 16
        archive.writestr(link, "/etc/passwd")
        archive.writestr("long.md", os.urandom(MAX_FILE_BYTES + 1))
        archive.writestr("bomb.md", b"\0" * 50_000_000)
        archive.writestr("long.png", os.urandom(MAX_FILE_BYTES + 1))
    files, notices = listed(tmp_path / "export.zip")
    assert files == ["long.png"]  # only texts are refused by their size: others are listed, not read
    assert set(notices) == {"link.md", "long.md", "bomb.md"}
    assert "zip bomb" in notices["bomb.md"]
    with open_export(tmp_path / "export.zip", MAX_FILE_BYTES) as export:
        list(export.files())
        assert isinstance(export.read("long.png"), Notice)


def test_bytes_that_are_damaged_inside_the_zip_are_a_notice(tmp_path: Path) -> None:
    data = bytearray(zipped(a_md="# A\n" * 20, b_md="# B\n"))
    data[data.index(b"a.md") + len("a.md")] ^= 0xFF  # the first byte of its compressed text
    (tmp_path / "export.zip").write_bytes(data)
    with open_export(tmp_path / "export.zip", MAX_FILE_BYTES) as export:
        list(export.files())
        damaged = export.read("a.md")
        assert isinstance(damaged, Notice)
        assert "this file of the archive is damaged" in damaged.problem
        assert export.read("b.md") == b"# B\n"


def test_what_is_no_zip_and_what_is_not_there(tmp_path: Path) -> None:
    (tmp_path / "export.zip").write_text("no zip")
    files, notices = listed(tmp_path / "export.zip")
    assert files == []
    assert "not a zip file, or a damaged one" in notices["export.zip"]
    with pytest.raises(WorkspaceMissing, match=r"must be a folder, or the \.zip"):
        listed(tmp_path / "nowhere")


def test_the_first_names_of_a_folder_a_zip_and_another_file(tmp_path: Path) -> None:
    (tmp_path / "folder" / ".hidden").mkdir(parents=True)
    (tmp_path / "folder" / ".hidden" / "b.md").write_text("")
    (tmp_path / "folder" / "a.md").write_text("")
    (tmp_path / "export.zip").write_bytes(zipped(a_md="", pages__b_md=""))
    assert first_names(tmp_path / "folder") == ["a.md"]
    assert first_names(tmp_path / "export.zip") == ["a.md", "pages/b.md"]
    assert first_names(tmp_path / "folder" / "a.md") == []
