"""Installed packages: found by their metadata, copied once per version, and never run."""

from __future__ import annotations

import os
from pathlib import Path

import pytest

from satchel.errors import InvalidOption
from satchel.service.packages import find_package, package_folder
from tests.support.packages import install_npm, install_python

FILES = {"tiny/__init__.py": "from tiny.core import pour\n", "tiny/core.py": "def pour(cups):\n    return cups\n"}


@pytest.fixture
def project(tmp_path: Path) -> Path:
    (tmp_path / "project").mkdir()
    return tmp_path / "project"


def texts(folder: Path) -> dict[str, str]:
    return {path.relative_to(folder).as_posix(): path.read_text() for path in folder.rglob("*") if path.is_file()}


def copied(name: str, project: Path, cache: Path, **environ: str) -> dict[str, str]:
    return texts(package_folder(find_package(name, project, environ), cache))


@pytest.mark.parametrize("environment", [".venv", "venv"])
def test_a_package_of_the_projects_environment_is_copied_with_its_readme(
    project: Path, tmp_path: Path, environment: str
) -> None:
    install_python(project / environment, "tiny", "1.2", FILES, readme="# Tiny\n\nPours tea.\n")
    found = find_package("tiny", project, {})
    assert found.label == "tiny@1.2"
    folder = package_folder(found, tmp_path / "cache")
    assert folder.name == "tiny@1.2"
    assert texts(folder) == {**FILES, "README.md": "# Tiny\n\nPours tea.\n"}


def test_the_name_is_found_as_pip_finds_it(project: Path) -> None:
    install_python(project / ".venv", "Tiny_Tea", "2", {"tiny_tea.py": "CUPS = 3\n"})
    assert find_package("tiny-tea", project, {}).label == "Tiny_Tea@2"


def test_without_an_environment_in_the_project_the_active_one_is_read(project: Path, tmp_path: Path) -> None:
    install_python(tmp_path / "active", "tiny", "3", FILES)
    assert find_package("tiny", project, {"VIRTUAL_ENV": str(tmp_path / "active")}).label == "tiny@3"
    install_python(project / ".venv", "tiny", "1.2", FILES)
    assert find_package("tiny", project, {"VIRTUAL_ENV": str(tmp_path / "active")}).label == "tiny@1.2"


def test_else_it_is_the_environment_of_this_python(project: Path) -> None:
    assert find_package("click", project, {}).label.startswith("click@")


def test_equal_installations_share_one_copy_and_another_version_has_its_own(project: Path, tmp_path: Path) -> None:
    install_python(project / ".venv", "tiny", "1.2", FILES, record=("../../../bin/tiny,sha256=one,9",))
    other = tmp_path / "other"
    other.mkdir()
    site = install_python(other / ".venv", "tiny", "1.2", FILES, record=("../../../bin/tiny,sha256=two,9",))
    for path in FILES:
        os.utime(site / path, (0, 0))
    cache = tmp_path / "cache"
    folder = package_folder(find_package("tiny", project, {}), cache)
    assert package_folder(find_package("tiny", other, {}), cache) == folder
    install_python(tmp_path / "third" / ".venv", "tiny", "1.3", FILES)
    assert package_folder(find_package("tiny", tmp_path / "third", {}), cache) != folder


def test_a_package_edited_after_its_installation_is_read_as_it_is(project: Path, tmp_path: Path) -> None:
    site = install_python(project / ".venv", "tiny", "1.2", FILES)
    before = copied("tiny", project, tmp_path / "cache")
    (site / "tiny" / "core.py").write_text("def pour(cups):\n    return -cups\n")
    os.utime(site / "tiny" / "core.py", (2**32, 2**32))
    after = copied("tiny", project, tmp_path / "cache")
    assert before["tiny/core.py"] == FILES["tiny/core.py"]
    assert "-cups" in after["tiny/core.py"]


def test_secrets_binaries_links_and_ways_out_are_left_out(project: Path, tmp_path: Path) -> None:
    (tmp_path / "outside").mkdir()
    (tmp_path / "outside" / "diary.py").write_text("private = 1\n")
    odd: dict[str, str | bytes] = {**FILES, "tiny/.env": "KEY=1\n", "tiny/server.pem": "-----\n", "tiny/x.so": b"\0\1"}
    odd["tiny/__pycache__/core.py"] = "cached\n"
    ways_out = ("../../../../outside/diary.py,,", f"{tmp_path}/outside/diary.py,,", "tiny/link/diary.py,,")
    site = install_python(project / ".venv", "tiny", "1.2", odd, record=(*ways_out, "tiny/other.py,,"))
    (site / "tiny" / "link").symlink_to(tmp_path / "outside")
    (site / "tiny" / "other.py").symlink_to(tmp_path / "outside" / "diary.py")
    assert copied("tiny", project, tmp_path / "cache") == FILES


def test_a_package_in_editable_mode_names_its_source_folder(project: Path) -> None:
    origin = '{"url": "file:///home/ann/tiny", "dir_info": {"editable": true}}'
    install_python(project / ".venv", "tiny", "1.2", {"tiny.pth": "/home/ann/tiny\n"}, more={"direct_url.json": origin})
    with pytest.raises(InvalidOption, match="editable mode from /home/ann/tiny; give that folder"):
        find_package("tiny", project, {})


@pytest.mark.parametrize("origin", ["{", "[]", '{"dir_info": 1}', '{"dir_info": {}}'])
def test_odd_metadata_is_passed_over(project: Path, origin: str) -> None:
    install_python(project / ".venv", "tiny", "1.2", FILES, more={"direct_url.json": origin})
    assert find_package("tiny", project, {}).label == "tiny@1.2"


def test_metadata_that_is_a_link_is_not_read(project: Path, tmp_path: Path) -> None:
    (tmp_path / "diary.txt").write_text("private\n")
    site = install_python(project / ".venv", "tiny", "1.2", FILES)
    (site / "tiny-1.2.dist-info" / "METADATA").unlink()
    (site / "tiny-1.2.dist-info" / "METADATA").symlink_to(tmp_path / "diary.txt")
    found = find_package("tiny", project, {})
    assert (found.label, found.readme) == ("tiny@1.2", None)


@pytest.mark.parametrize("names", ["tiny\nother", ""])
def test_a_package_without_a_record_is_read_by_its_top_level_names(project: Path, tmp_path: Path, names: str) -> None:
    more = {"top_level.txt": names} if names else {}
    files = {**FILES, "tiny.py": "CUPS = 1\n", "stranger/__init__.py": "no\n"}
    site = install_python(project / ".venv", "Tiny", "1.2", files, more=more)
    (site / "Tiny-1.2.dist-info" / "RECORD").unlink()
    assert copied("tiny", project, tmp_path / "cache") == {**FILES, "tiny.py": "CUPS = 1\n"}


def test_an_npm_package_is_found_in_the_folders_above_without_its_dependencies(project: Path, tmp_path: Path) -> None:
    files = {"dist/index.js": "exports.pour = () => 1;\n", "node_modules/deep/index.js": "no\n", "README.md": "# Tea\n"}
    install_npm(tmp_path / "node_modules", "tea", "4.0.0", files)
    assert find_package("tea", project, {}).label == "tea@4.0.0"
    found = copied("tea", project, tmp_path / "cache")
    assert found == {"dist/index.js": files["dist/index.js"], "README.md": "# Tea\n"}


def test_a_scope_stays_in_a_label_without_a_slash(project: Path) -> None:
    install_npm(project / "node_modules", "@types/tea", "1.0.0", {"index.d.ts": "export {};\n"})
    assert find_package("@types/tea", project, {}).label == "@types+tea@1.0.0"


def test_a_link_in_node_modules_leads_to_no_folder_outside_of_the_project(project: Path, tmp_path: Path) -> None:
    install_npm(project / ".pnpm", "tea", "4.0.0", {"index.js": "exports.pour = 1;\n"})
    (project / "node_modules").mkdir()
    (project / "node_modules" / "tea").symlink_to(project / ".pnpm" / "tea")
    (tmp_path / "home").mkdir()
    (tmp_path / "home" / "diary.md").write_text("private\n")
    (project / "node_modules" / "home").symlink_to(tmp_path / "home")
    assert copied("tea", project, tmp_path / "cache") == {"index.js": "exports.pour = 1;\n"}
    for manifest in (None, "{", "[]", '{"name": "other"}', '{"name": "home"}'):
        if manifest is not None:
            (tmp_path / "home" / "package.json").write_text(manifest)
        with pytest.raises(InvalidOption, match="is not installed in"):
            find_package("npm:home", project, {})


def test_a_package_of_both_kinds_is_asked_by_its_kind(project: Path) -> None:
    install_python(project / ".venv", "tea", "1", {"tea.py": "CUPS = 1\n"})
    install_npm(project / "node_modules", "tea", "2.0.0", {"index.js": "1;\n"})
    with pytest.raises(InvalidOption, match="give python:tea or npm:tea"):
        find_package("tea", project, {})
    assert find_package("python:tea", project, {}).label == "tea@1"
    assert find_package("npm:tea", project, {}).label == "tea@2.0.0"


def test_a_missing_package_says_where_it_was_looked_for(project: Path) -> None:
    site = install_python(project / ".venv", "tiny", "1.2", FILES)
    (project / "node_modules").mkdir()
    with pytest.raises(InvalidOption) as error:
        find_package("absent", project, {})
    assert str(site) in str(error.value)
    assert str(project / "node_modules") in str(error.value)


@pytest.mark.parametrize("name", ["../tiny", "a/b/c", "", "/etc", "tiny core", "@scope/../x"])
def test_a_name_leads_out_of_no_folder(project: Path, name: str) -> None:
    with pytest.raises(InvalidOption, match="must be the name of a Python package"):
        find_package(name, project, {})
