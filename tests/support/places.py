"""Where the checkout and the data of the tests are."""

from __future__ import annotations

from pathlib import Path
from typing import Final

TESTS: Final = Path(__file__).resolve().parents[1]
ROOT: Final = TESTS.parent
