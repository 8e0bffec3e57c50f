"""The law over error texts: they say what, which value and what to do, and nothing of how the program is made."""

from __future__ import annotations

import re
from typing import Final

_INTERNALS: Final = re.compile(
    r"\bat 0x[0-9a-f]{6,}|Traceback \(most recent|\bFile \"[^\"]*\", line \d|site-packages|<class '|<function |<object "
    r"|pydantic|validation error for|type=\w+_type|input_value=|\bself\._|NoneType|sqlite3?\.|apsw\.|psycopg\."
    r"|\bsatchel\.\w+\.\w+\.\w+\b"
)
"""What only somebody who reads the code could understand."""


def internals_in(text: str) -> list[str]:
    """What a text says of the program's insides."""
    return [match[0] for match in _INTERNALS.finditer(text)]
