"""What reaches the application and what does not, over real connections."""

from __future__ import annotations

import asyncio
import inspect
import json
import sys
from collections import Counter
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from dataclasses import replace
from functools import partial
from statistics import median
from types import FrameType
from typing import Any

import httpx
import pytest
from fastapi import APIRouter, FastAPI
from starlette.responses import StreamingResponse

from satchel import errors
from satchel.errors import SatchelError
from satchel.http import problems
from satchel.http.guard.credentials import Keyring, digest_of
from satchel.http.guard.middleware import CONTENT_SECURITY_POLICY, Guard
from satchel.http.guard.request_checks import HttpLimits, check_strict_json
from satchel.models.request import User
from satchel.service.client import OWNER, Caller
from tests.support.servers import (
    BEARER,
    SMALL,
    TOKEN,
    Running,
    Seen,
    answer,
    connect,
    demo,
    drip,
    guarding,
    head_of,
    parsed,
    raw,
    read_all,
)
from tests.support.virtual_time import pass_time, run_in_virtual_time
from tests.support.waiting import HANG_SECONDS, wait_for, wait_for_async

ANN = Caller(user=User(id="ann", groups=("staff",)))
ANNS = "satchel_anns-token-0123456789"
JSON = {"Content-Type": "application/json"}


@pytest.fixture(scope="module")
def server() -> Iterator[Running]:
    keys = Keyring({digest_of(TOKEN): OWNER, digest_of(ANNS): ANN})
    with guarding(demo, keys=keys, limits=SMALL) as found:
        yield found


@pytest.fixture(scope="module")
def client(server: Running) -> Iterator[httpx.Client]:
    with httpx.Client(base_url=server.url) as found:
        yield found


def is_problem(answer: httpx.Response, status: int, code: str) -> dict[str, Any]:
    assert answer.status_code == status, answer.text
    assert answer.headers["content-type"] == "application/problem+json"
    said: dict[str, Any] = answer.json()
    assert said["type"] == f"urn:satchel:problem:{code}"
    assert (said["code"], said["status"]) == (code, status)
    assert said["title"]
    assert said["detail"]
    assert said["request_id"] == answer.headers["x-request-id"]
    return said


def is_raw_problem(answer: tuple[int, dict[str, str], bytes], status: int, code: str) -> dict[str, Any]:
    assert answer[0] == status, answer
    assert answer[1]["content-type"] == "application/problem+json"
    assert answer[1]["connection"] == "close"
    assert answer[1]["x-content-type-options"] == "nosniff"
    said: dict[str, Any] = json.loads(answer[2])
    assert said["code"] == code
    return said


# -- hosts


@pytest.mark.parametrize(
    "host",
    [
        "evil.com",
        "evil.com:{port}",
        "127.0.0.1.evil.com:{port}",
        "127.0.0.1",
        "127.0.0.1:1",
        "127.0.0.1:{port}0",
        "127.0.0.1.:{port}",
        "localhost.:{port}",
        "LOCALHOST:{port}",
        "localhost",
        "[::1]:{port}",
        "0.0.0.0:{port}",
        "2130706433:{port}",
        "127.1:{port}",
    ],
)
def test_another_hosts_name_is_refused(server: Running, host: str) -> None:
    told = host.format(port=server.port)
    is_raw_problem(raw(server.port, head_of(server.port, host=told)), 421, "unknown-host")


@pytest.mark.parametrize(
    "host", ["127.0.0.1:{port}, evil.com", "evil.com@127.0.0.1:{port}", "127.0.0.1:{port}/x", "a b"]
)
def test_an_odd_host_is_refused(server: Running, host: str) -> None:
    told = host.format(port=server.port)
    is_raw_problem(raw(server.port, head_of(server.port, host=told)), 400, "unknown-host")


def test_both_names_of_this_machine_are_known(server: Running) -> None:
    for name in ("127.0.0.1", "localhost"):
        assert raw(server.port, head_of(server.port, host=f"{name}:{server.port}"))[0] == 200


def test_a_missing_or_doubled_host_is_refused(server: Running) -> None:
    without = head_of(server.port, host="")
    is_raw_problem(raw(server.port, without), 400, "bad-request")
    old = without.replace(b"HTTP/1.1", b"HTTP/1.0")
    is_raw_problem(raw(server.port, old), 400, "unknown-host")
    doubled = head_of(server.port).replace(b"\r\n", f"\r\nHost: 127.0.0.1:{server.port}\r\n".encode(), 1)
    is_raw_problem(raw(server.port, doubled), 400, "bad-request")


def test_an_absolute_target_does_not_get_around_the_host(server: Running) -> None:
    asked = head_of(server.port, path=f"http://127.0.0.1:{server.port}/open", host="evil.com")
    assert raw(server.port, asked)[0] in (400, 421)
    is_raw_problem(raw(server.port, head_of(server.port, path="http://evil.com/open")), 400, "bad-url")


# -- origins


@pytest.mark.parametrize(
    "origin", ["null", "https://evil.com", "http://localhost", "http://127.0.0.1:1", "HTTP://LOCALHOST:{port}", "", "*"]
)
@pytest.mark.parametrize("path", ["/", "/health", "/x", "/login", "/assets/script.js"])
def test_another_origin_is_refused_everywhere(server: Running, client: httpx.Client, origin: str, path: str) -> None:
    told = {**BEARER, "Origin": origin.format(port=server.port)}
    is_problem(client.get(path, headers=told), 403, "cross-site")


def test_our_own_origin_and_none_are_fine(server: Running, client: httpx.Client) -> None:
    for origin in (server.url, f"http://localhost:{server.port}"):
        assert client.get("/x", headers={**BEARER, "Origin": origin}).status_code == 200
    assert client.get("/x", headers=BEARER).status_code == 200


@pytest.mark.parametrize("site", ["cross-site", "same-site", "something-new"])
def test_other_sites_may_only_link_to_the_page(client: httpx.Client, site: str) -> None:
    followed = {"Sec-Fetch-Site": site, "Sec-Fetch-Mode": "navigate", "Sec-Fetch-Dest": "document"}
    assert client.get("/", headers=followed).status_code == 200
    for changed in ({"Sec-Fetch-Mode": "no-cors"}, {"Sec-Fetch-Dest": "iframe"}, {"Sec-Fetch-Dest": "image"}):
        is_problem(client.get("/", headers=followed | changed), 403, "cross-site")
    is_problem(client.get("/x", headers=BEARER | followed), 403, "cross-site")
    is_problem(client.get("/assets/script.js", headers={"Sec-Fetch-Site": site}), 403, "cross-site")
    is_problem(client.post("/", headers=BEARER | followed), 403, "cross-site")


@pytest.mark.parametrize(
    "kind", ["text/plain", "application/x-www-form-urlencoded", "multipart/form-data; boundary=x", None]
)
def test_a_form_of_another_site_gets_nowhere(client: httpx.Client, kind: str | None) -> None:
    told = {"Content-Type": kind} if kind else {}
    is_problem(client.post("/x", content=b'{"a":1}', headers=told | {"Origin": "https://evil.com"}), 403, "cross-site")
    is_problem(client.post("/x", content=b'{"a":1}', headers=told), 401, "no-token")
    is_problem(client.post("/x", content=b'{"a":1}', headers=told | BEARER), 415, "not-json")


def test_preflights_and_odd_methods_are_refused_without_cors(client: httpx.Client) -> None:
    asked = {"Access-Control-Request-Method": "POST"}
    for origin in ({}, {"Origin": "https://evil.com"}):
        refused = client.options("/x", headers=asked | origin)
        assert refused.status_code in (403, 405)
        assert not [name for name in refused.headers if name.startswith("access-control")]
    for method in ("TRACE", "PROPFIND", "QUERY"):
        is_problem(client.request(method, "/x", headers=BEARER), 405, "method-not-allowed")


# -- tokens


def test_what_is_open_needs_no_token(client: httpx.Client) -> None:
    for path in ("/", "/health", "/assets/script.js", "/assets/deep/er.css"):
        assert client.get(path).status_code == 200
        assert client.head(path).status_code == 200


@pytest.mark.parametrize(
    ("method", "path"),
    [
        ("GET", "/x"),
        ("GET", "/metrics"),
        ("GET", "/assets"),
        ("GET", "/health/x"),
        ("POST", "/"),
        ("POST", "/health"),
        ("DELETE", "/assets/script.js"),
        ("PUT", "/v1/documents/a"),
        ("POST", "/mcp"),
        ("POST", "/logout"),
    ],
)
def test_everything_else_does(client: httpx.Client, method: str, path: str) -> None:
    refused = client.request(method, path)
    is_problem(refused, 401, "no-token")
    assert refused.headers["www-authenticate"] == "Bearer"


@pytest.mark.parametrize("path", ["/assets/../x", "/assets/%2e%2e/x", "/assets/..%2fx", "/./x", "/x/.", "/x/.."])
def test_a_path_must_mean_what_it_says(server: Running, path: str) -> None:
    is_raw_problem(raw(server.port, head_of(server.port, path=path, Authorization="")), 400, "bad-url")


def test_callers_are_who_their_tokens_say(client: httpx.Client) -> None:
    assert client.get("/x", headers=BEARER).json()["caller"] == "owner"
    assert client.get("/x", headers={"Authorization": f"bearer  {ANNS}"}).json()["caller"] == "ann"
    assert client.get("/health").json()["caller"] == "nobody"
    assert client.get("/health", headers=BEARER).json()["caller"] == "owner"
    assert client.get("/health", headers={"Authorization": "Bearer wrong"}).json()["caller"] == "nobody"


def test_a_wrong_token_is_refused() -> None:
    with guarding(demo) as server:
        for given in ("Bearer", "Bearer wrong", f"Basic {TOKEN}", TOKEN, f"Bearer {TOKEN}x"):
            refused = httpx.get(f"{server.url}/x", headers={"Authorization": given})
            is_problem(refused, 401, "wrong-token")
            assert "Bearer" in refused.headers["www-authenticate"]


def test_two_authorizations_are_refused(server: Running) -> None:
    doubled = head_of(server.port).replace(b"\r\n", b"\r\nAuthorization: Bearer wrong\r\n", 1)
    is_raw_problem(raw(server.port, doubled), 400, "doubled-header")


def test_who_guesses_waits_and_who_knows_does_not() -> None:
    async def pauses(tokens: list[str]) -> list[float]:
        guard = Guard(demo, keys=Keyring.single(TOKEN), hosts=frozenset({"a"}))
        loop = asyncio.get_running_loop()
        found = []
        for token in tokens:
            began = loop.time()
            sent = await asked_directly(guard, scope_of(authorization=f"Bearer {token}"), [b""])
            assert statuses(sent) == [200 if token == TOKEN else 401]
            found.append(loop.time() - began)
        return found

    waited = run_in_virtual_time(pauses([*["wrong"] * 8, TOKEN, "wrong", TOKEN]))
    assert waited == pytest.approx([0, 0, 0, 0, 0, 0.1, 0.2, 0.4, 0, 0.8, 0])


# -- the page's session


@contextmanager
def logged_in(server: Running) -> Iterator[httpx.Client]:
    with httpx.Client(base_url=server.url) as client:
        assert client.get("/login", params={"code": server.keys.one_time_code(OWNER)}).status_code == 303
        yield client


def test_a_link_from_the_terminal_makes_a_session(server: Running) -> None:
    code = server.keys.one_time_code(ANN)
    with httpx.Client(base_url=server.url) as client:
        went = client.get(f"/login?code={code}", headers={"Sec-Fetch-Site": "none", "Sec-Fetch-Mode": "navigate"})
        assert went.status_code == 303
        assert went.headers["location"] == "/"
        name, *rest = went.headers["set-cookie"].split("; ")
        assert name.startswith(f"satchel_session_{server.port}=")
        assert set(rest) == {"HttpOnly", "SameSite=Strict", "Path=/", "Max-Age=43200"}
        assert code not in name
        assert client.get("/x").json()["caller"] == "ann"
        assert client.get(f"/login?code={code}").headers["location"] == "/"  # in already
        client.cookies.clear()
        again = client.get(f"/login?code={code}", headers={"Accept": "text/html,*/*"})
        assert again.status_code == 403
        assert "used before" in again.text
        assert again.headers["content-security-policy"] == CONTENT_SECURITY_POLICY
        assert "set-cookie" not in again.headers


@pytest.mark.parametrize(
    "query", ["", "?code=", "?code=wrong", "?code={code}&code={code}", "?Code={code}", "?code=%F0%9F%92%A9"]
)
def test_a_wrong_code_makes_none(server: Running, client: httpx.Client, query: str) -> None:
    refused = client.get("/login" + query.format(code=server.keys.one_time_code(OWNER)))
    said = is_problem(refused, 403, "login-link-used")
    assert "new link" in said["detail"]


def test_a_token_makes_a_session_for_our_own_page_alone(server: Running) -> None:
    ours = {"Origin": server.url, "Sec-Fetch-Site": "same-origin"}
    with httpx.Client(base_url=server.url) as client:
        is_problem(client.post("/login", json={}, headers=BEARER), 403, "cross-site")
        is_problem(client.post("/login", json={}, headers=BEARER | {"Origin": "https://evil.com"}), 403, "cross-site")
        is_problem(client.post("/login", json={}, headers=ours), 401, "no-token")
        wrong = {"Authorization": "Bearer wrong-wrong-wrong-wrong"}
        is_problem(client.post("/login", json={}, headers=ours | wrong), 401, "wrong-token")
        assert not client.cookies
        assert client.post("/login", json={}, headers=ours | BEARER).status_code == 204
        assert client.get("/x").json()["owner"] is True


def test_looking_ahead_does_not_use_a_code_up(server: Running) -> None:
    code = server.keys.one_time_code(OWNER)
    with httpx.Client(base_url=server.url) as client:
        is_problem(client.get("/login", params={"code": code}, headers={"Sec-Purpose": "prefetch"}), 403, "no-prefetch")
        assert client.head("/login", params={"code": code}).status_code == 405
        assert client.put("/login", params={"code": code}, json={}).status_code == 405
        is_problem(client.post("/login", params={"code": code}, json={}), 403, "cross-site")
        assert client.get("/login", params={"code": code}).status_code == 303


def test_behind_https_the_cookie_is_secure() -> None:
    origins = frozenset({"https://satchel.example", "https://both", "http://both"})
    names = frozenset({"satchel.example", "both"})
    with guarding(demo, hosts=names, origins=origins) as server, httpx.Client(base_url=server.url) as client:
        for host, secure in (("satchel.example", True), ("both", False)):
            asked = {"code": server.keys.one_time_code(OWNER)}
            went = client.get("/login", params=asked, headers={"Host": host})
            assert ("Secure" in went.headers["set-cookie"].split("; ")) is secure


def test_a_session_changes_things_only_from_our_own_page(server: Running) -> None:
    with logged_in(server) as client:
        ours = {"Sec-Fetch-Site": "same-origin"}
        assert client.get("/x").status_code == 200
        assert client.post("/x", json={}, headers=ours).status_code == 200
        assert client.post("/x", json={}, headers={"Origin": server.url}).status_code == 200
        assert client.put("/v1/documents/a", content=b"x", headers=ours).status_code == 200
        assert client.delete("/x", headers=ours).status_code == 200
        is_problem(client.post("/x", json={}), 403, "cross-site")
        is_problem(client.post("/x", json={}, headers={"Sec-Fetch-Site": "none"}), 403, "cross-site")
        is_problem(client.delete("/x"), 403, "cross-site")
        is_problem(client.put("/v1/documents/a", content=b"x"), 403, "cross-site")
        is_problem(client.post("/x", headers=ours), 415, "not-json")
        is_problem(client.post("/x", content=b"{}", headers=ours | {"Content-Type": "text/plain"}), 415, "not-json")
        is_problem(client.get("/x", headers={"Authorization": "Bearer wrong"}), 401, "wrong-token")


def test_logging_out_ends_the_session(server: Running) -> None:
    with logged_in(server) as client:
        kept = dict(client.cookies)
        is_problem(client.post("/logout", json={}), 403, "cross-site")
        assert client.get("/logout").status_code == 405
        assert client.get("/x").status_code == 200
        went = client.post("/logout", json={}, headers={"Origin": server.url})
        assert went.status_code == 204
        assert "Max-Age=0" in went.headers["set-cookie"]
        client.cookies.update(kept)
        is_problem(client.get("/x"), 401, "no-token")


def test_cookies_of_other_servers_do_no_harm(server: Running) -> None:
    with logged_in(server) as client:
        name, value = next(iter(client.cookies.items()))
        crowd = f"other=1; {name}=planted; a=b;; =; {name}={value}; satchel_session_1=x"
        assert httpx.get(f"{server.url}/x", headers={"Cookie": crowd}).status_code == 200
        wrong = f"x{name}={value}; {name}x={value}; {name.upper()}={value}"
        assert httpx.get(f"{server.url}/x", headers={"Cookie": wrong}).status_code == 401


# -- bodies


def post(client: httpx.Client, body: bytes) -> httpx.Response:
    return client.post("/x", content=body, headers=BEARER | JSON)


@pytest.mark.parametrize(
    ("body", "position"),
    [
        pytest.param(b'{"a": NaN}', 6, id="nan"),
        pytest.param(b'{"a": [1, -Infinity]}', 10, id="infinity"),
        pytest.param(b'{"a": 1e999}', 6, id="overflow"),
        pytest.param(b'{"a": -1E+999}', 6, id="negative-overflow"),
        pytest.param(b'{"a": ' + b"1" * 1_001 + b"}", 6, id="digits"),
        pytest.param(b'{"a": 1, "b": {"a": 1, "c": 2, "a": 3}}', 31, id="doubled"),
        pytest.param(b'{"a": 1, "\\u0061": 2}', 9, id="doubled-when-read"),
        pytest.param(b'{"a": "\\ud800"}', 7, id="high-surrogate"),
        pytest.param(b'{"a": "x\\uDC00"}', 8, id="low-surrogate"),
        pytest.param(b'{"a": "\\\\\\ud800\\\\udc00"}', 9, id="surrogates-that-do-not-pair"),
        pytest.param(b'{"\\udfff": 1}', 2, id="surrogate-in-a-name"),
        pytest.param(b'{"a": "\xed\xa0\x80"}', 7, id="surrogate-in-utf8"),
        pytest.param(b'{"a": "\xff"}', 7, id="no-utf8"),
        pytest.param('{"a": 1}'.encode("utf-16"), 0, id="utf16"),
        pytest.param(b"\xef\xbb\xbf{}", 0, id="bom"),
        pytest.param(b"[" * 65 + b"]" * 65, 64, id="deep"),
        pytest.param(b'{"a":' * 65 + b"1" + b"}" * 65, 320, id="deep-objects"),
        pytest.param(b"[" * 5_000, 64, id="very-deep"),
        pytest.param(b"[" * 65, 64, id="deep-and-cut"),
        pytest.param(b"[[]" + b",[]" * 65, 198, id="many-and-cut"),
        pytest.param(b"{", 1, id="cut"),
        pytest.param(b"{} {}", 3, id="two"),
        pytest.param(b"{'a': 1}", 1, id="quotes"),
        pytest.param(b'{"a": "\x00"}', 7, id="control"),
        pytest.param(b'{"a": 01}', 7, id="leading-zero"),
        pytest.param(b"   ", 3, id="blank"),
        pytest.param(b'{\n  "a": NaN}', 9, id="second-line"),
    ],
)
def test_json_that_is_not_strict_is_refused_with_its_place(client: httpx.Client, body: bytes, position: int) -> None:
    said = is_problem(post(client, body), 400, "bad-json")
    assert said["position"] == position
    assert f"line {said['line']}, column {said['column']}" in said["detail"]
    before = body.decode("latin-1")[:position]
    assert said["line"] == before.count("\n") + 1
    assert said["column"] == len(before.rpartition("\n")[2]) + 1


@pytest.mark.parametrize(
    "body",
    [
        b"",
        b"null",
        b'"x"',
        b'{"a": "\\ud83d\\ude00 \\\\ud800 \\u0000"}',
        b"[" * 64 + b"]" * 64,
        b'["' + b"[" * 500 + b'"]',
        b'{"a": ' + b"1" * 1_000 + b"}",
        b'{"a": 1e308, "b": -0.0, "c": 1E-999}',
        b'[{"a": 1}, {"a": 1}]',
        '{"a": "ünïcödé 💼"}'.encode(),
    ],
)
def test_strict_json_is_passed_on_as_it_was_sent(client: httpx.Client, body: bytes) -> None:
    found = post(client, body)
    assert found.status_code == 200, found.text
    assert found.json()["body"].encode() == body


def test_a_large_body_is_checked_without_its_place_being_sought() -> None:
    with pytest.raises(problems.Refused) as caught:
        check_strict_json(b"[" + b"1," * 100_000 + b"NaN]", 64)
    assert caught.value.problem.more["position"] is None
    assert "NaN" in caught.value.problem.detail


def test_every_level_of_nesting_up_to_the_limit_is_taken() -> None:
    for depth in range(1, 6):
        for opened, closed in ((b"[", b"]"), (b'{"a":', b"}"), (b'[{"a":', b"}]")):
            levels = depth * (2 if opened == b'[{"a":' else 1)
            body = opened * depth + b"0" + closed * depth
            check_strict_json(body, levels)
            with pytest.raises(problems.Refused) as caught:
                check_strict_json(body, levels - 1)
            assert "deeper" in caught.value.problem.detail


@pytest.mark.parametrize(
    "kind", ["application/json", "application/json; charset=utf-8", 'APPLICATION/JSON;charset="UTF-8"']
)
def test_json_is_taken_by_any_of_its_names(client: httpx.Client, kind: str) -> None:
    assert client.post("/x", content=b"{}", headers=BEARER | {"Content-Type": kind}).status_code == 200


@pytest.mark.parametrize(
    "kind",
    [
        "text/json",
        "application/jsonp",
        "application/json; charset=utf-16",
        "application/problem+json",
        "text/plain, application/json",
    ],
)
@pytest.mark.parametrize("method", ["POST", "PUT", "PATCH", "DELETE"])
def test_other_types_are_refused(client: httpx.Client, method: str, kind: str) -> None:
    asked = client.request(method, "/x", content=b"{}", headers=BEARER | {"Content-Type": kind})
    is_problem(asked, 415, "not-json")


def test_documents_may_be_of_any_type(client: httpx.Client) -> None:
    sent = client.put(
        "/v1/documents/a/b.pdf", content=b"\xff" * 100_000, headers=BEARER | {"Content-Type": "application/pdf"}
    )
    assert sent.json() == {"bytes": 100_000}
    is_problem(client.post("/v1/documents/a", content=b"x", headers=BEARER), 415, "not-json")
    is_problem(client.put("/v1/documents", content=b"x", headers=BEARER), 415, "not-json")


def test_a_get_with_a_body_is_refused(client: httpx.Client) -> None:
    is_problem(client.request("GET", "/x", content=b"{}", headers=BEARER | JSON), 400, "unexpected-body")


def test_a_body_over_the_limit_is_refused_before_it_is_read(client: httpx.Client) -> None:
    exact = b'"' + b"x" * (SMALL.body_bytes - 2) + b'"'
    assert post(client, exact).status_code == 200
    refused = post(client, exact + b" ")
    assert is_problem(refused, 413, "body-too-large")["most_bytes"] == SMALL.body_bytes
    assert refused.headers["connection"] == "close"
    is_problem(
        client.put("/v1/documents/a", content=b"x" * (SMALL.upload_bytes + 1), headers=BEARER), 413, "body-too-large"
    )


def chunk(data: bytes) -> bytes:
    return b"%x\r\n%s\r\n" % (len(data), data)


@pytest.mark.parametrize("path", ["/x", "/v1/documents/a"])
def test_a_chunked_body_over_the_limit_ends_early(server: Running, path: str) -> None:
    most = SMALL.upload_bytes if "documents" in path else SMALL.body_bytes
    asked = head_of(server.port, "PUT", path, Transfer_Encoding="chunked", Content_Type="application/json")
    with connect(server.port) as client:
        client.sendall(asked)
        sent = 0
        with suppress(OSError):
            while sent < 200_000_000:
                client.sendall(chunk(b"x" * 50_000))
                sent += 50_000
    # What was sent beyond the limits lies in the buffers of the two sockets.
    assert sent < most + SMALL.linger_bytes + 20_000_000
    assert server.last_request(code="body-too-large")["status"] == 413


def test_the_refusal_of_a_chunked_body_can_be_read() -> None:
    def parts() -> Iterator[bytes]:
        for _ in range(3):
            yield b"x" * 10_000

    limits = replace(SMALL, linger_seconds=HANG_SECONDS)  # until the client has sent all, however slow it is
    with guarding(demo, limits=limits) as server, httpx.Client(base_url=server.url) as client:
        is_problem(client.post("/x", content=parts(), headers=BEARER | JSON), 413, "body-too-large")
        is_problem(client.post("/x", content=parts(), headers=JSON), 401, "no-token")
        assert client.get("/health").status_code == 200


@pytest.mark.parametrize("path", ["/x", "/v1/documents/a"])
def test_a_body_smaller_than_said_is_not_waited_for(path: str) -> None:
    with guarding(demo, limits=replace(SMALL, body_seconds=0.2)) as server:
        asked = head_of(server.port, "PUT", path, Content_Length="100", Content_Type="application/json")
        is_raw_problem(raw(server.port, asked + b"{}"), 408, "body-too-slow")


@pytest.mark.parametrize("path", ["/x", "/v1/documents/a"])
def test_a_body_has_its_time_and_no_more(path: str) -> None:
    async def asked(seconds: float) -> list[int]:
        guard = Guard(demo, keys=Keyring.single(TOKEN), hosts=frozenset({"a"}), limits=HttpLimits(body_seconds=5))
        scope = scope_of("PUT", path, {"content-length": "2"}, {"state": {}})
        return statuses(await asked_directly(guard, scope, [b"{", b"}"], seconds))

    assert run_in_virtual_time(asked(2.4)) == [200]
    assert run_in_virtual_time(asked(2.6)) == [408]


def test_a_body_larger_than_said_is_another_request(server: Running) -> None:
    asked = head_of(
        server.port, "POST", "/x", Content_Length="2", Content_Type="application/json", Connection="keep-alive"
    )
    with connect(server.port) as client:
        client.sendall(asked + b"{}smuggled\r\n\r\n")
        answers = read_all(client)
    status, _, rest = parsed(answers)
    assert status == 200
    assert rest.count(b"HTTP/1.1 ") == 1
    assert b"HTTP/1.1 400 " in rest


def test_an_upload_may_take_long_if_it_keeps_coming() -> None:
    limits = HttpLimits(body_seconds=5, upload_rate=100_000)

    async def asked(part: bytes) -> list[int]:
        guard = Guard(demo, keys=Keyring.single(TOKEN), hosts=frozenset({"a"}), limits=limits)
        scope = scope_of("PUT", "/v1/documents/a", {"transfer-encoding": "chunked"})
        return statuses(await asked_directly(guard, scope, [part] * 100, 1))

    assert run_in_virtual_time(asked(b"x" * 101_000)) == [200]
    assert run_in_virtual_time(asked(b"x" * 90_000)) == [408]


def test_an_upload_that_drips_is_ended() -> None:
    with guarding(demo, limits=replace(SMALL, body_seconds=0.2)) as server, connect(server.port) as client:
        client.sendall(head_of(server.port, "PUT", "/v1/documents/a", Transfer_Encoding="chunked"))
        received = drip(client, chunk(b"x"))
        is_raw_problem(parsed(received + read_all(client)), 408, "body-too-slow")


def test_a_document_that_nobody_reads_ends_the_connection(server: Running) -> None:
    asked = head_of(server.port, "PUT", "/v1/documents/unread", Content_Length="40000", Connection="keep-alive")
    with connect(server.port) as client:
        client.sendall(asked + b"x" * 40_000)
        status, headers, body = parsed(read_all(client))
    assert (status, headers["connection"], body) == (409, "close", b"{}")


def test_who_waits_to_be_asked_for_the_body_is_not_asked_in_vain(server: Running) -> None:
    asked = head_of(
        server.port, "PUT", "/x", Content_Length="100000", Content_Type="application/json", Expect="100-continue"
    )
    # It would linger for longer than any test may take: who is not asked for the body sends none.
    with guarding(demo, limits=replace(SMALL, linger_seconds=10 * HANG_SECONDS)) as patient:
        is_raw_problem(
            raw(patient.port, asked.replace(server.host.encode(), patient.host.encode())), 413, "body-too-large"
        )
    with connect(server.port) as client:
        client.sendall(asked.replace(b"100000", b"2"))
        assert client.recv(100).startswith(b"HTTP/1.1 100 ")
        client.sendall(b"{}")
        assert parsed(read_all(client))[0] == 200


def test_bodies_do_not_fill_the_memory_together() -> None:
    limits = replace(SMALL, total_body_bytes=15_000)
    with guarding(demo, limits=limits) as server, connect(server.port) as first:
        first.sendall(head_of(server.port, "POST", "/x", Content_Length="9000", Content_Type="application/json"))
        first.sendall(b'"' + b"x" * 8_000)
        wait_for(lambda: server_holds(server) >= 8_000, "the first body's beginning")
        second = httpx.post(f"{server.url}/x", content=b'"' + b"x" * 8_000 + b'"', headers=BEARER | JSON)
        is_problem(second, 503, "server-busy")
        first.sendall(b"x" * 998 + b'"')
        assert parsed(read_all(first))[0] == 200
        assert server_holds(server) == 0


def server_holds(server: Running) -> int:
    guard = server.server._app
    assert isinstance(guard, Guard)
    return guard._bodies.received_bytes


# -- URLs


@pytest.mark.parametrize(
    "path", ["/x%00y", "/x%ff", "/x%ED%A0%80", "/x?q=%00", "/x?q=%ff", "/x?q=%C0%80", "/x?%ED%BF%BF=1", "x", "*"]
)
def test_urls_that_are_not_text_are_refused(server: Running, path: str) -> None:
    is_raw_problem(raw(server.port, head_of(server.port, path=path)), 400, "bad-url")


@pytest.mark.parametrize(
    "path", ["/x%F0%9F%92%BC", "/a%2Fb", "/x?q=%F0%9F%92%BC&r=%25%zz", "/.well-known/x", "/a..b/...", "/%C3%A9"]
)
def test_urls_that_are_text_are_passed_on(server: Running, path: str) -> None:
    assert raw(server.port, head_of(server.port, path=path))[0] == 200


def test_a_long_url_is_refused(server: Running) -> None:
    assert raw(server.port, head_of(server.port, path="/x?" + "q" * 990))[0] == 200
    is_raw_problem(raw(server.port, head_of(server.port, path="/x?" + "q" * 1_000)), 414, "url-too-long")
    is_raw_problem(raw(server.port, head_of(server.port, path="/" + "q" * 1_000)), 414, "url-too-long")


def test_other_versions_of_http_are_refused(server: Running) -> None:
    asked = head_of(server.port).replace(b"HTTP/1.1", b"HTTP/2.0")
    is_raw_problem(raw(server.port, asked), 505, "unknown-version")
    assert raw(server.port, b"PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n")[0] == 505
    chunked = head_of(server.port, "POST", "/x", Transfer_Encoding="chunked", Content_Type="application/json")
    is_raw_problem(raw(server.port, chunked.replace(b"HTTP/1.1", b"HTTP/1.0") + b"0\r\n\r\n"), 400, "bad-request")


@pytest.mark.parametrize("size", [5_000, 300_000])
def test_large_headers_are_refused(server: Running, size: int) -> None:
    is_raw_problem(raw(server.port, head_of(server.port, X_Padding="x" * size)), 431, "headers-too-large")
    many = {f"X-{number}": "x" * 10 for number in range(size // 20)}
    is_raw_problem(raw(server.port, head_of(server.port, **many)), 431, "headers-too-large")


# -- answers


def test_every_answer_has_the_same_headers(client: httpx.Client) -> None:
    wanted = {
        "x-content-type-options": "nosniff",
        "referrer-policy": "no-referrer",
        "cross-origin-resource-policy": "same-origin",
        "cross-origin-opener-policy": "same-origin",
        "x-frame-options": "DENY",
        "cache-control": "no-store",
    }
    for path in ("/", "/x", "/nowhere", "/fail", "/refuse"):
        found = client.get(path, headers=BEARER).headers
        assert wanted.items() <= dict(found).items(), path
        assert "server" not in found
        assert found["content-security-policy"].startswith("default-src 'none';")
    assert client.get("/").headers["content-security-policy"] == CONTENT_SECURITY_POLICY


def test_files_of_the_page_may_be_kept_but_not_shared(client: httpx.Client) -> None:
    found = client.get("/assets/script.js").headers
    assert found.get_list("cache-control") == ["max-age=60"]
    assert "access-control-allow-origin" not in found
    assert client.get("/other/script.js", headers=BEARER).headers.get_list("cache-control") == ["no-store"]


@pytest.mark.parametrize("given", ["abc", "A.b_c-9", "x" * 64])
def test_a_request_keeps_its_id(server: Running, client: httpx.Client, given: str) -> None:
    answer = client.get("/refuse", headers=BEARER | {"X-Request-Id": given})
    assert answer.headers["x-request-id"] == given
    assert answer.json()["request_id"] == given
    server.last_request(request_id=given)


@pytest.mark.parametrize("given", ["", "x" * 65, "a b", "a\tb", 'a"b', "ä", "<x>"])
def test_an_odd_id_is_replaced(client: httpx.Client, given: str) -> None:
    told = [(b"Authorization", BEARER["Authorization"].encode()), (b"X-Request-Id", given.encode())]
    made = {client.get("/x", headers=told).headers["x-request-id"] for _ in range(3)}
    assert len(made) == 3
    assert given not in made


def test_an_error_of_ours_becomes_a_problem_with_its_data(client: httpx.Client) -> None:
    said = is_problem(client.get("/refuse", headers=BEARER), 422, "invalid-option")
    assert said["field"] == "top_k"
    assert "top_k=0" in said["detail"]


def test_nothing_of_an_unexpected_error_gets_out(server: Running, client: httpx.Client) -> None:
    answer = client.get("/fail?marker", headers=BEARER)
    is_problem(answer, 500, "internal-error")
    assert "secret" not in answer.text
    line = next(line for line in server.lines if line["event"] == "exception")
    assert line["type"] == "RuntimeError"
    assert line["request_id"]
    assert any("tests/support/servers.py:" in frame for frame in line["frames"])
    assert "secret" not in server.written.getvalue()


def test_an_error_after_the_beginning_breaks_the_answer_off(client: httpx.Client, server: Running) -> None:
    with client.stream("GET", "/fail-late", headers=BEARER) as answer:
        assert answer.status_code == 200
        with pytest.raises(httpx.RemoteProtocolError):
            answer.read()
    assert server.last_request(code="internal-error")["status"] == 200


# -- in time


def test_an_application_that_takes_too_long_is_answered_for() -> None:
    limits = replace(SMALL, request_seconds=0.2)
    with guarding(demo, limits=limits) as server, httpx.Client(base_url=server.url) as client:
        is_problem(client.get("/hang", headers=BEARER), 504, "took-too-long")
        assert server.last_request(code="took-too-long")["status"] == 504
        assert client.get("/x", headers=BEARER).status_code == 200


def test_a_thread_that_takes_too_long_is_answered_for_and_keeps_its_place() -> None:
    Seen.released.clear()
    limits = replace(SMALL, concurrent=1, request_seconds=0.2)
    with guarding(demo, limits=limits) as server, httpx.Client(base_url=server.url) as client:
        try:
            is_problem(client.get("/thread", headers=BEARER | {"X-Request-Id": "slow"}), 504, "took-too-long")
            assert server.last_request(code="took-too-long")
            is_problem(client.get("/x", headers=BEARER), 503, "server-busy")
        finally:
            Seen.released.set()
        wait_for(lambda: client.get("/x", headers=BEARER).status_code == 200, "the thread's place")
        assert [one["status"] for one in server.requests() if one["request_id"] == "slow"] == [504]


def test_more_requests_than_there_are_places_are_sent_away() -> None:
    Seen.released.clear()
    limits = replace(SMALL, concurrent=4)

    async def ask(url: str) -> list[httpx.Response]:
        async with httpx.AsyncClient(base_url=url, headers=BEARER) as client:
            asked = [asyncio.create_task(client.get("/wait")) for _ in range(10)]
            await wait_for_async(lambda: sum(task.done() for task in asked) >= 6, "six refusals")
            health = await client.get("/health")
            Seen.released.set()
            return [health, *await asyncio.gather(*asked)]

    with guarding(demo, limits=limits) as server:
        health, *answers = asyncio.run(ask(server.url))
        assert health.status_code == 200
        assert sorted(one.status_code for one in answers) == [200] * 4 + [503] * 6
        refused = next(one for one in answers if one.status_code == 503)
        is_problem(refused, 503, "server-busy")
        assert int(refused.headers["retry-after"]) >= 1
        assert "satchel_http_in_work 0.0" in server.metrics.render().decode()


@pytest.mark.parametrize("path", ["/stream", "/pour"])
def test_who_leaves_a_stream_ends_it(server: Running, client: httpx.Client, path: str) -> None:
    ended = Seen.streams_ended
    with client.stream("GET", path, headers=BEARER | {"X-Request-Id": f"left{path[1:]}"}) as answer:
        assert answer.status_code == 200
        next(answer.iter_raw())
    wait_for(lambda: Seen.streams_ended == ended + 1, "the stream's end")
    line = server.last_request(request_id=f"left{path[1:]}")
    assert line["status"] == 499
    assert line["bytes_out"] > 0


def test_a_stream_may_take_longer_than_an_answer() -> None:
    async def asked(before: float, within: float) -> tuple[list[int], bytes]:
        async def streams(scope: Any, receive: Any, send: Any) -> None:
            await pass_time(before)
            await send({"type": "http.response.start", "status": 200, "headers": []})
            await send({"type": "http.response.body", "body": b"one", "more_body": True})
            await pass_time(within)
            await send({"type": "http.response.body", "body": b" two", "more_body": False})

        guard = Guard(streams, keys=Keyring.single(TOKEN), hosts=frozenset({"a"}), limits=HttpLimits(request_seconds=5))
        sent = await asked_directly(guard, scope_of("GET"), [b""])
        return statuses(sent), b"".join(message.get("body", b"") for message in sent)

    assert run_in_virtual_time(asked(before=4, within=600)) == ([200], b"one two")
    assert run_in_virtual_time(asked(before=6, within=0))[0] == [504]


def test_who_leaves_before_the_answer_is_noted() -> None:
    Seen.released.clear()
    with guarding(demo) as server:
        with connect(server.port) as client:
            client.sendall(head_of(server.port, path="/wait"))
            wait_for(
                lambda: "satchel_http_in_work 1.0" in server.metrics.render().decode(), "the request to be in work"
            )
        wait_for(lambda: not server.server.server_state.connections, "the connection's end")
        Seen.released.set()
        assert server.last_request()["status"] == 499


# -- the log and the metrics


def test_the_log_has_nothing_of_what_requests_are_about() -> None:
    with guarding(demo) as server, httpx.Client(base_url=server.url) as client:
        marker = "MARKER5f1d"
        told = {**BEARER, "User-Agent": marker, "Referer": marker, "X-Other": marker, "Cookie": f"a={marker}"}
        client.get(f"/v1/{marker}/x?{marker}={marker}", headers=told)
        client.get(f"/fail?{marker}", headers=told)
        client.get(f"/assets/{marker}.js", headers=told)
        client.post(f"/{marker}", json={"question": marker}, headers=told)
        client.post("/x", content=f'{{"{marker}": 1, "{marker}": 2}}'.encode(), headers=told | JSON)
        client.put(f"/v1/documents/{marker}", content=marker.encode(), headers=told)
        client.get("/x", headers={"Authorization": f"Bearer {marker}"})
        client.get(f"/login?code={marker}")
        client.request(marker, "/x", headers=told)
        client.get("/x", headers={"Origin": f"https://{marker}"})
        client.get("/x", headers={"X-Request-Id": f"{marker}?"})
        raw(server.port, f"{marker} {marker}\r\n\r\n".encode())
        raw(server.port, head_of(server.port, host=marker))
        client.get("/x", headers=BEARER | {"X-Request-Id": "after-the-marker"})
        server.last_request(request_id="after-the-marker")
        assert len(server.lines) > 10
        assert marker not in server.written.getvalue()
        assert marker not in server.metrics.render().decode()
        assert TOKEN not in server.written.getvalue()


def test_a_line_says_what_happened(server: Running, client: httpx.Client) -> None:
    client.get("/health", headers={"Authorization": f"Bearer {ANNS}", "X-Request-Id": "line"})
    line = server.last_request(request_id="line")
    assert line["time"].endswith("+00:00")
    assert {key: line[key] for key in ("method", "route", "status", "caller", "user")} == {
        "method": "GET",
        "route": "/health",
        "status": 200,
        "caller": "user",
        "user": "ann",
    }
    assert line["milliseconds"] > 0
    assert line["bytes_out"] > 0


def test_the_metrics_have_few_names(server: Running, client: httpx.Client) -> None:
    for number in range(20):
        client.get(f"/somewhere/{number}", headers=BEARER)
        client.get(f"/assets/{number}")
        client.request(f"M{number}", "/x", headers=BEARER)
    found = server.metrics.render().decode()
    routes = {line.partition('route="')[2].partition('"')[0] for line in found.splitlines() if 'route="' in line}
    assert routes <= {"/", "/health", "/login", "/logout", "/metrics", "/mcp", "/assets/*", "(unknown)"}
    assert 'method="other"' in found
    assert 'satchel_http_refused_total{code="method-not-allowed"}' in found


# -- with FastAPI


def api() -> FastAPI:
    app = FastAPI(openapi_url=None)
    router = APIRouter(prefix="/v1")

    @router.get("/blocks/{block_id:path}")
    def block(block_id: str) -> None:
        raise errors.UnknownBlock(block_id, ["near/secret.py"])

    @router.get("/busy")
    def busy() -> None:
        raise errors.IndexBusy("/home/owner/secret", " 123")

    @router.get("/broken")
    async def broken() -> None:
        raise KeyError("secret")

    @router.post("/echo")
    def echo(body: dict[str, Any]) -> dict[str, Any]:
        return body

    @router.get("/events")
    async def events() -> StreamingResponse:
        async def made() -> Any:
            while True:
                yield b"data: x\n\n"
                await asyncio.sleep(0)

        return StreamingResponse(made(), media_type="text/event-stream")

    app.include_router(router)
    problems.install_handlers(app)
    return app


@pytest.fixture(scope="module")
def fast() -> Iterator[tuple[Running, httpx.Client]]:
    keys = Keyring({digest_of(TOKEN): OWNER, digest_of(ANNS): ANN})
    with guarding(api(), keys=keys) as server, httpx.Client(base_url=server.url) as client:
        yield server, client


def test_an_applications_errors_are_problems(fast: tuple[Running, httpx.Client]) -> None:
    server, client = fast
    said = is_problem(client.get("/v1/blocks/a/b.py", headers=BEARER), 404, "unknown-block")
    assert said["block_id"] == "a/b.py"
    busy = client.get("/v1/busy", headers=BEARER)
    assert "/home/owner" in is_problem(busy, 503, "index-busy")["detail"]
    assert busy.headers["retry-after"]
    anns = client.get("/v1/busy", headers={"Authorization": f"Bearer {ANNS}"})
    assert "/home/owner" not in anns.text
    is_problem(anns, 503, "index-busy")
    is_problem(client.get("/nowhere", headers=BEARER), 404, "not-found")
    other = client.post("/v1/busy", headers=BEARER)
    is_problem(other, 405, "method-not-allowed")
    assert other.headers["allow"] == "GET"
    broken = client.get("/v1/broken", headers=BEARER)
    is_problem(broken, 500, "internal-error")
    assert "secret" not in broken.text
    assert "secret" not in server.written.getvalue()
    wait_for(
        lambda: any(line["event"] == "exception" and line["type"] == "KeyError" for line in server.lines),
        "the exception's line",
    )


def test_routes_are_named_by_their_templates(fast: tuple[Running, httpx.Client]) -> None:
    server, client = fast
    client.get("/v1/blocks/some/id", headers=BEARER | {"X-Request-Id": "templated"})
    line = server.last_request(request_id="templated")
    assert line["route"] == "/v1/blocks/{block_id}"
    assert line["code"] == "unknown-block"
    assert 'route="/v1/blocks/{block_id}",status="404"' in server.metrics.render().decode()


def test_a_body_reaches_the_application(fast: tuple[Running, httpx.Client]) -> None:
    _, client = fast
    assert client.post("/v1/echo", json={"a": ["ü"]}, headers=BEARER).json() == {"a": ["ü"]}


def test_starlettes_streams_end_with_their_clients(fast: tuple[Running, httpx.Client]) -> None:
    server, client = fast
    with client.stream("GET", "/v1/events", headers=BEARER | {"X-Request-Id": "events"}) as answer:
        next(answer.iter_raw())
    assert server.last_request(request_id="events")["status"] == 499
    assert not [line for line in server.lines if line["event"] == "exception" and line.get("request_id") == "events"]


# -- problems


def every_error() -> list[type[SatchelError]]:
    return [one for _, one in inspect.getmembers(errors, inspect.isclass) if issubclass(one, SatchelError)]


MADE: dict[type[SatchelError], SatchelError] = {
    errors.SatchelError: errors.SatchelError("at /srv/secret"),
    errors.InvalidInput: errors.InvalidInput("root", "/srv/secret", "is wrong"),
    errors.InvalidOption: errors.InvalidOption("root", "/srv/secret", "is wrong"),
    errors.InvalidHit: errors.InvalidHit("content", "/srv/secret", "is wrong"),
    errors.WorkspaceMissing: errors.WorkspaceMissing("root", "/srv/secret", "no folder"),
    errors.NotAllowed: errors.NotAllowed("user", "/srv/secret", "only an owner's token may"),
    errors.BudgetCannotBeMet: errors.BudgetCannotBeMet(1, 2),
    errors.UnknownTokenizer: errors.UnknownTokenizer("x", ["y"]),
    errors.TokenizerUnavailable: errors.TokenizerUnavailable("x", "at /srv/secret"),
    errors.RerankerMissing: errors.RerankerMissing("x"),
    errors.UnknownPiece: errors.UnknownPiece("x", 3),
    errors.IndexProblem: errors.IndexProblem("at /srv/secret"),
    errors.IndexTooNew: errors.IndexTooNew("/srv/secret", 9, 1),
    errors.StoreUnavailable: errors.StoreUnavailable("/srv/secret", "x"),
    errors.StoresDiffer: errors.StoresDiffer("/srv/secret", "/srv/secret", ["x"]),
    errors.MoveUnfinished: errors.MoveUnfinished("/srv/secret", "/srv/secret"),
    errors.IndexBusy: errors.IndexBusy("/srv/secret", ""),
    errors.IndexNotReady: errors.IndexNotReady("/srv/secret", 3, 10, 7),
    errors.IndexDamaged: errors.IndexDamaged("/srv/secret", "x"),
    errors.IndexUnwritable: errors.IndexUnwritable("/srv/secret", "x"),
    errors.EmbedderMismatch: errors.EmbedderMismatch("/srv/secret", "x"),
    errors.EmbedderUnavailable: errors.EmbedderUnavailable("x", "at /srv/secret"),
    errors.LanguageModelUnavailable: errors.LanguageModelUnavailable("x", "at /srv/secret"),
    errors.ServerUnavailable: errors.ServerUnavailable("http://srv/secret", "x"),
    errors.ExtraMissing: errors.ExtraMissing("reading", "documents"),
    errors.UnknownBlock: errors.UnknownBlock("x", ["srv/secret"]),
    errors.AmbiguousBlock: errors.AmbiguousBlock("x", ["readable-1", "readable-2"]),
    errors.PlatformUnsupported: errors.PlatformUnsupported("win32"),
    errors.LibraryUnavailable: errors.LibraryUnavailable("/srv/secret", "x"),
    errors.LibraryMismatch: errors.LibraryMismatch("/srv/secret", "x"),
    errors.UnknownPage: errors.UnknownPage("x", 3),
}


@pytest.mark.parametrize("kind", every_error(), ids=lambda kind: kind.__name__)
def test_every_error_has_a_status_and_tells_others_nothing_of_the_server(kind: type[SatchelError]) -> None:
    assert kind in problems.STATUSES
    error = MADE[kind]
    for caller in (ANN, None):
        told = problems.problem_for(error, caller)
        assert (told.status, told.title) == problems.STATUSES[kind]
        assert 400 <= told.status < 600
        assert told.code == kind.code
        assert b"secret" not in told.encode("id")[1]
    owners = problems.problem_for(error, OWNER)
    assert owners.detail == str(error)
    assert json.loads(owners.encode("id")[1])["request_id"] == "id"


def test_a_problem_that_passes_says_when_to_try_again() -> None:
    told = {kind: problems.problem_for(error).headers.get("Retry-After") for kind, error in MADE.items()}
    assert {kind: after for kind, after in told.items() if after} == {errors.IndexBusy: "5", errors.IndexNotReady: "7"}
    long = errors.IndexNotReady("x", 3, 1_000_000, 5_000)
    assert problems.problem_for(long).headers["Retry-After"] == "60"


def test_an_error_of_a_kind_unknown_here_is_told_as_its_parent() -> None:
    class Newer(errors.IndexDamaged):
        code = "newer"

    assert problems.problem_for(Newer("x", "y")).status == problems.STATUSES[errors.IndexDamaged][0]


def test_a_problem_can_be_sent_whatever_is_in_it() -> None:
    told = problems.problem_for(errors.InvalidOption("x\ud800", "y", "z\ud800"), OWNER)
    assert json.loads(told.encode("id")[1])["field"] == "x\\ud800"
    odd = problems.Problem(400, "a", "b", "c", more={"status": 999, "code": "no", "more": [1]})
    assert odd.as_dict("id") == {
        "type": "urn:satchel:problem:a",
        "title": "b",
        "status": 400,
        "detail": "c",
        "code": "a",
        "request_id": "id",
        "more": [1],
    }


# -- without a server


def scope_of(
    method: str = "POST",
    path: str = "/x",
    headers: dict[str, str] | None = None,
    more: dict[str, Any] | None = None,
    *,
    authorization: str = f"Bearer {TOKEN}",
) -> dict[str, Any]:
    """A request as a server hands it to the guard."""
    given = {"host": "a", "authorization": authorization, "content-type": "application/json", **(headers or {})}
    pairs = [(name.encode(), value.encode()) for name, value in given.items()]
    return {"type": "http", "method": method, "path": path, "query_string": b"", "headers": pairs, **(more or {})}


async def asked_directly(guard: Guard, scope: dict[str, Any], parts: list[bytes], seconds_each: float = 0) -> list[Any]:
    """What the guard sends for a request whose parts take so long to arrive, by the loop's own clock."""
    sent: list[Any] = []
    left = list(parts)

    async def receive() -> Any:
        if seconds_each:
            await pass_time(seconds_each)
        part = left.pop(0)
        return {"type": "http.request", "body": part, "more_body": bool(left)}

    async def send(message: Any) -> None:
        sent.append(message)

    await guard(scope, receive, send)
    return sent


def statuses(sent: list[Any]) -> list[int]:
    return [message["status"] for message in sent if message["type"] == "http.response.start"]


def _count(seen: Counter[str], _frame: FrameType, event: str, _argument: object) -> None:
    seen[event] += 1


def test_the_guard_costs_little() -> None:
    async def app(scope: Any, receive: Any, send: Any) -> None:
        await receive()
        await answer(send, b"{}")

    body = b'{"question": "where is it", "top_k": 10, "filters": {"paths": ["src"]}}'
    headers = {"content-length": str(len(body)), **{f"x-{number}": "x" for number in range(8)}}

    async def calls(times: int) -> list[int]:
        """How many functions of Python and of C each request calls."""
        guard = Guard(app, keys=Keyring.single(TOKEN), hosts=frozenset({"a"}))
        found = []
        for _ in range(times):
            seen: Counter[str] = Counter()
            sys.setprofile(partial(_count, seen))
            try:
                sent = await asked_directly(guard, scope_of("POST", "/x", headers), [body])
            finally:
                sys.setprofile(None)
            assert statuses(sent) == [200]
            found.append(seen["call"] + seen["c_call"])
        return found

    assert median(asyncio.run(calls(200))) < 400  # 290 when this was written, with those of the test's own


def test_websockets_are_closed() -> None:
    sent: list[Any] = []

    async def send(message: Any) -> None:
        sent.append(message)

    guard = Guard(demo, keys=Keyring.single(TOKEN), hosts=frozenset({"a"}))
    asyncio.run(guard({"type": "websocket", "path": "/x"}, None, send))  # type: ignore[arg-type]
    assert sent == [{"type": "websocket.close", "code": 1008}]
