"""A small project and a client of its workspace, as most tests of the service need them."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest

from satchel.service.local_client import LocalSatchel, open_local
from tests.support.api import Api, files, served
from tests.support.sample_project import CLIENT, GUIDE, RETRY


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    root = tmp_path / "root"
    root.mkdir()
    for name, text in (("retry.py", RETRY), ("client.py", CLIENT), ("guide.md", GUIDE)):
        (root / name).write_text(text)
    return root


@pytest.fixture
def local_client(folder: Path, tmp_path: Path) -> Iterator[LocalSatchel]:
    with open_local(folder, index_dir=str(tmp_path / "index")) as opened:
        yield opened


@pytest.fixture
def api(tmp_path: Path) -> Iterator[Api]:
    with served(files(tmp_path / "root"), tmp_path / "index") as found:
        yield found
