"""The API against its own description: whatever is sent, the answer is one that the description knows, and no 500."""

from __future__ import annotations

import os
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import httpx
import pytest
import schemathesis
from hypothesis import HealthCheck, given, settings
from hypothesis.errors import Unsatisfiable
from schemathesis.checks import (
    content_type_conformance,
    response_schema_conformance,
    status_code_conformance,
)
from schemathesis.specs.openapi.checks import negative_data_rejection

from satchel.http.app import create_app
from satchel.http.guard.request_checks import HttpLimits
from satchel.service.local_client import open_local
from tests.support.api import Api, files, served
from tests.support.error_texts import internals_in
from tests.support.servers import TOKEN
from tests.support.waiting import HANG_SECONDS
from tests.support.workspaces import fill

CHECKS = [
    status_code_conformance,
    content_type_conformance,
    response_schema_conformance,
]
_ROUTES = (
    "POST /v1/context",
    "POST /v1/search",
    "POST /v1/research",
    "POST /v1/expand",
    "POST /v1/ask",
    "POST /v1/find",
    "POST /v1/verify",
    "POST /v1/blocks",
    "GET /v1/blocks/{block_id}",
    "DELETE /v1/blocks/{block_id}",
    "POST /v1/activity",
    "GET /v1/documents",
    "PUT /v1/documents/{path}",
    "DELETE /v1/documents/{path}",
    "GET /v1/pages",
    "GET /v1/status",
    "GET /v1/contents",
    "GET /v1/index",
    "POST /v1/index",
    "POST /api/research/ask",
    "GET /health",
    "GET /metrics",
)
EXAMPLES = int(os.environ.get("HYPOTHESIS_EXAMPLES", "8"))


@pytest.fixture(scope="module")
def api(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Api]:
    folder = tmp_path_factory.mktemp("schema")
    with served(files(folder / "root"), folder / "index", limits=HttpLimits(), every=3600.0) as found:
        fill(found.engine)
        found.local_client.index()
        yield found


@pytest.fixture(scope="module")
def described(api: Api) -> Any:
    schema = schemathesis.openapi.from_dict(api.owner.get("/v1/openapi.json").json())
    found = {}
    for result in schema.get_all_operations():
        operation = result.ok()
        found[operation.label] = operation
    return found


def test_every_route_is_tried(described: Any) -> None:
    assert set(described) == set(_ROUTES)


@pytest.mark.parametrize("mode", ["POSITIVE", "NEGATIVE"])
@pytest.mark.parametrize("route", _ROUTES)
def test_answers_are_as_described(api: Api, described: Any, route: str, mode: str) -> None:
    operation = described[route]
    strategy = operation.as_strategy(generation_mode=schemathesis.GenerationMode[mode])

    @settings(
        max_examples=EXAMPLES,
        deadline=None,
        suppress_health_check=list(HealthCheck),
        database=None,
        derandomize=True,
    )
    @given(case=strategy)
    def sent(case: Any) -> None:
        answer = case.call(base_url=api.url, headers={"Authorization": f"Bearer {TOKEN}"}, timeout=HANG_SECONDS)
        case.validate_response(answer, checks=CHECKS)
        if answer.status_code >= 400:
            told = answer.json()
            assert not internals_in(f"{told['title']} {told.get('detail', '')}".replace(str(case.body), ""))
        if answer.status_code >= 500:
            # Nobody has set a language model here, and that is what is said.
            assert (answer.status_code, answer.json()["code"]) == (503, "language-model-unavailable")
        elif mode == "NEGATIVE" and route.startswith("POST") and answer.status_code not in (413, 414):
            case.validate_response(answer, checks=[negative_data_rejection])

    try:
        sent()
    except Unsatisfiable:
        pytest.skip("nothing can be wrong with it")
    assert api.owner.get("/health").status_code == 200


@pytest.mark.parametrize("route", [route for route in _ROUTES if route != "GET /health"])
def test_nothing_is_given_without_a_token(api: Api, described: Any, route: str) -> None:
    method, _, path = route.partition(" ")
    with httpx.Client(base_url=api.url, trust_env=False) as nobody:
        answer = nobody.request(method, path, json={})
    assert (answer.status_code, answer.json()["code"]) == (401, "no-token")


def test_nothing_is_given_for_a_wrong_token(api: Api) -> None:
    answer = api.owner.get("/v1/status", headers={"Authorization": "Bearer wrong-wrong-wrong-wrong"})
    assert (answer.status_code, answer.json()["code"]) == (401, "wrong-token")


def test_the_description_can_be_had_without_a_server(tmp_path: Path) -> None:
    root = files(tmp_path / "root")
    with open_local(root, index_dir=str(tmp_path / "index")) as local_client:
        assert create_app(local_client.engine).openapi()["info"]["title"] == "Satchel"
