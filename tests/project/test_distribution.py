"""The wheel and the source distribution: built, checked as an index would check them, and used outside the checkout."""

from __future__ import annotations

import sys
from pathlib import Path

import pytest

from tests.support.places import ROOT
from tests.support.programs import run


@pytest.fixture(scope="module")
def built(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("dist")
    run(sys.executable, "-m", "build", "--no-isolation", "--outdir", folder, ROOT, cwd=folder)
    return folder


def test_wheel_and_source_distribution_are_what_an_index_takes(built: Path) -> None:
    assert sorted(path.suffix for path in built.iterdir()) == [".gz", ".whl"]
    run(sys.executable, "-m", "twine", "check", "--strict", *built.iterdir(), cwd=built)


def test_the_wheel_works_outside_the_checkout(built: Path, tmp_path: Path) -> None:
    (wheel,) = built.glob("*.whl")
    run(
        sys.executable,
        "-m",
        "pip",
        "install",
        "--quiet",
        "--no-deps",
        "--no-index",
        "--target",
        tmp_path / "site",
        wheel,
        cwd=tmp_path,
    )
    (tmp_path / "notes").mkdir()
    (tmp_path / "notes" / "retry.md").write_text("# Retries\n\nThe delay doubles with each attempt.\n")
    environ = {"PYTHONPATH": str(tmp_path / "site"), "SATCHEL_INDEX_DIR": str(tmp_path / "index")}
    text = run(sys.executable, "-m", "satchel", "build", "how does the delay grow?", "notes", cwd=tmp_path, **environ)
    assert "The delay doubles" in text


def test_every_extra_names_packages() -> None:
    import tomllib

    extras = tomllib.loads((ROOT / "pyproject.toml").read_text("utf-8"))["project"]["optional-dependencies"]
    assert all(extras.values()), "an empty extra promises packages and installs none"
