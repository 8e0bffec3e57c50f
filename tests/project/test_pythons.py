"""`make test-pythons` with interpreters and a `make` that only pretend."""

from __future__ import annotations

import os
import shutil
import subprocess
from pathlib import Path

import pytest

from tests.support.places import ROOT
from tests.support.waiting import HANG_SECONDS

# Asked for its version like any Python: it has the one of its file's name.
INTERPRETER = """#!/bin/sh
version=${0##*python}
case $2 in
    *platform*) echo "$version.7" ;;
    *"'$version'"*) exit 0 ;;
    *) exit 1 ;;
esac
"""

# `make setup` puts the Python of a virtual environment there: on 3.92 its tests fail, for 3.93 there are no packages.
MAKE = """#!/bin/sh
for word in "$@"; do
    case $word in VENV=*) venv=${word#VENV=} ;; esac
done
case $venv in *3.93) echo "no matching distribution"; exit 2 ;; esac
mkdir -p "$venv/bin"
{
    echo '#!/bin/sh'
    echo 'echo "asked: $*"'
    case $venv in *3.92) echo 'echo "1 failed, 2 passed"; exit 1' ;; *) echo 'echo "3 passed"' ;; esac
} >"$venv/bin/python"
chmod +x "$venv/bin/python"
"""


def run(folder: Path, versions: str, *arguments: str) -> subprocess.CompletedProcess[str]:
    """The script in a folder of its own, where the given versions are wanted and 3.91 to 3.93 are there."""
    programs = folder / "programs"
    programs.mkdir()
    for name, text in {"make": MAKE, **dict.fromkeys(("python3.91", "python3.92", "python3.93"), INTERPRETER)}.items():
        (programs / name).write_text(text)
        (programs / name).chmod(0o755)
    (folder / "scripts").mkdir()
    script = shutil.copy(ROOT / "scripts" / "pythons.sh", folder / "scripts")
    path = f"{programs}{os.pathsep}{os.environ['PATH']}"
    return subprocess.run(
        [script, *arguments],
        env={**os.environ, "PATH": path, "HOME": str(folder), "PYTHONS": versions},
        capture_output=True,
        text=True,
        timeout=HANG_SECONDS,
        check=False,
    )


def test_each_python_is_tested_and_the_end_says_which_passed_failed_or_were_not_found(tmp_path: Path) -> None:
    done = run(tmp_path, "3.91 3.92 3.93 3.94")
    assert done.returncode == 1
    assert done.stdout.rpartition("\n\n")[2].splitlines() == [
        "Python 3.91.7: 3 passed",
        "Python 3.92.7: FAILED, 1 failed, 2 passed; see build/pytest-3.92.log",
        "Python 3.93.7: FAILED, its packages could not be installed",
        "Python 3.94: not found, not tested",
    ]


@pytest.mark.parametrize(("versions", "code"), [("3.91 3.94", 0), ("3.94", 1)])
def test_a_python_that_is_not_there_fails_only_if_none_is(tmp_path: Path, versions: str, code: int) -> None:
    done = run(tmp_path, versions)
    assert done.returncode == code, done.stderr


def test_arguments_go_to_pytest(tmp_path: Path) -> None:
    done = run(tmp_path, "3.91", "tests/text", "-k", "two words")
    assert "asked: -m pytest -n 3 tests/text -k two words\n" in done.stdout
