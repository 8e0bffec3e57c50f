"""What is wrong with a request that does not have the form it has to have."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any, Final

from fastapi.exceptions import RequestValidationError

from satchel.http.problems import Problem, problem


async def invalid(_: object, error: Exception) -> Problem:
    """What is wrong with a request, field by field; what was sent is not repeated."""
    assert isinstance(error, RequestValidationError)
    wrong = [
        {"field": _where(one["loc"]), "problem": _SAID.get(one["type"], one["msg"])} for one in error.errors()[:20]
    ]
    told = "; ".join(f"{one['field']}: {one['problem']}" for one in wrong[:3])
    return problem(422, "invalid-request", "The request is not valid", told, errors=wrong)


_SAID: Final = {
    "extra_forbidden": "there is no such field here (the fields are in /v1/openapi.json)",
    "missing": "is missing",
}


def _where(place: Iterable[Any]) -> str:
    """The field's name: where in the body, the query or the path it stands."""
    found = [str(one) for one in place]
    if len(found) > 2 and found[:2] in (["body", "question"], ["body", "chunks"]):
        del found[1]  # which of the two kinds of body it was taken for
    return ".".join(found)
