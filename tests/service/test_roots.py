"""The folders of a question: labels, folders given twice, and folders inside others."""

from __future__ import annotations

from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from satchel.errors import InvalidOption, WorkspaceMissing
from satchel.service.roots import MAX_ROOTS, labels_of, roots_of


def made(root: Path, *names: str) -> list[Path]:
    for name in names:
        (root / name).mkdir(parents=True, exist_ok=True)
    return [root / name for name in names]


def test_a_label_is_the_folders_name(tmp_path: Path) -> None:
    found = roots_of(made(tmp_path, "service", "libs/library"))
    assert [root.label for root in found.folders] == ["service", "library"]
    assert not found.notes


def test_a_single_folder_has_no_label(tmp_path: Path) -> None:
    (folder,) = made(tmp_path, "service")
    assert [root.label for root in roots_of([folder]).folders] == [""]
    assert [root.label for root in roots_of([folder, str(folder)]).folders] == [""]


def test_folders_of_one_name_are_told_apart_by_their_parents(tmp_path: Path) -> None:
    found = roots_of(made(tmp_path, "service/src", "library/src", "tools"))
    assert [root.label for root in found.folders] == ["service/src", "library/src", "tools"]


def test_no_label_begins_with_another(tmp_path: Path) -> None:
    found = roots_of(made(tmp_path, "a/lib", "b/lib/core", "c/core"))
    labels = [root.label for root in found.folders]
    assert len(set(labels)) == 3
    assert not any(f"{other}/".startswith(f"{label}/") for label in labels for other in labels if label != other)


NAMES = st.sampled_from(["a", "b", "src", "lib"])


@given(st.lists(st.lists(NAMES, min_size=1, max_size=4).map(tuple), min_size=2, max_size=6, unique=True))
def test_law_labels_are_unique_and_do_not_depend_on_the_order(parts: list[tuple[str, ...]]) -> None:
    outer = {one for one in parts if not any(one[: len(other)] == other for other in parts if other != one)}
    folders = [Path("/", *one) for one in sorted(outer)]
    labels = labels_of(folders)
    assert not any(f"{b}/".startswith(f"{a}/") for i, a in enumerate(labels) for j, b in enumerate(labels) if i != j)
    assert labels_of(folders[::-1]) == labels[::-1]


def test_a_folder_given_twice_is_asked_once_and_said(tmp_path: Path) -> None:
    service, library = made(tmp_path, "service", "library")
    found = roots_of([service, library, tmp_path / "library" / ".." / "service"])
    assert [root.path for root in found.folders] == [service.resolve(), library.resolve()]
    assert [note for note in found.notes if "twice" in note]


def test_a_folder_inside_another_is_part_of_it(tmp_path: Path) -> None:
    service, inner, library = made(tmp_path, "service", "service/api/v1", "library")
    found = roots_of([inner, service, library])
    assert [root.label for root in found.folders] == ["service", "library"]
    assert found.notes == (f"{inner} is searched as part of {service}",)


@pytest.mark.parametrize("inner", ["vendor/lib", "node_modules/lib", "env/lib"])
def test_a_folder_that_the_outer_one_leaves_out_is_a_root_of_its_own(tmp_path: Path, inner: str) -> None:
    service, lib = made(tmp_path, "service", f"service/{inner}")
    (service / ".git").mkdir()
    (service / ".gitignore").write_text("vendor/\n")
    if inner.startswith("env"):
        (service / "env" / "pyvenv.cfg").write_text("")
    found = roots_of([service, lib])
    assert [root.path for root in found.folders] == [service.resolve(), lib.resolve()]


def test_a_url_among_folders_is_refused_without_its_password(tmp_path: Path) -> None:
    for url in ("http://127.0.0.1:8420", "postgresql://ann:secret@host/db"):
        with pytest.raises(InvalidOption, match="only folders can be asked together") as error:
            roots_of([tmp_path, url])
        assert "secret" not in str(error.value)


def test_a_missing_folder_and_too_many_are_errors(tmp_path: Path) -> None:
    with pytest.raises(WorkspaceMissing, match="does not exist"):
        roots_of([tmp_path, tmp_path / "nowhere"])
    with pytest.raises(InvalidOption, match=f"at most {MAX_ROOTS}"):
        roots_of(made(tmp_path, *map(str, range(MAX_ROOTS + 1))))
