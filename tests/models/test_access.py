"""Who may read."""

from __future__ import annotations

import pytest

from satchel.errors import InvalidInput
from satchel.models.access import principal


@pytest.mark.parametrize("wrong", ["groups:staff", "Group:x", "", "user:", "group: "])
def test_a_principal_that_is_misspelt_is_refused(wrong: str) -> None:
    with pytest.raises(InvalidInput):
        principal(wrong)
