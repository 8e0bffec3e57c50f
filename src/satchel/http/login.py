"""From a link in the terminal to a session in the browser, and out of it again."""

from __future__ import annotations

from typing import TYPE_CHECKING, Final
from urllib.parse import parse_qs

from satchel.http.admission import caller_by_cookie, caller_by_token, cookie_name, no_token, session_ids
from satchel.http.heads import check_own_page
from satchel.http.problems import Problem, Refused, of_status, problem
from satchel.http.sessions import SESSION_SECONDS

if TYPE_CHECKING:
    from starlette.types import Scope

    from satchel.http.heads import Head
    from satchel.http.keys import Keyring

LOGIN: Final = "/login"
LOGOUT: Final = "/logout"

_USED: Final = (
    "This link has been used before, is more than ten minutes old, or was never given out. Each link works once. "
    "Get a new one where the server runs: it prints one when it starts."
)
_PAGE: Final = (
    '<!doctype html>\n<html lang="en">\n<meta charset="utf-8">\n<title>Satchel</title>\n'
    f'<h1>This link does not work any more</h1>\n<p>{_USED}</p>\n<p><a href="/">To the page</a></p>\n</html>\n'
)

Answer = tuple[int, list[tuple[bytes, bytes]], bytes]
"""A status, headers and a body."""


def logged_in(head: Head, scope: Scope, keys: Keyring, secure: bool) -> Answer | None:
    """Trade the code for a session; None if the code is worth nothing."""
    if head.method == "POST":
        return _with_a_token(head, scope, keys, secure)
    if head.method != "GET":
        raise Refused(of_status(405, {"Allow": "GET, POST"}))
    if b"sec-purpose" in head.said:  # a browser that only looks ahead must not use the code up
        raise Refused(problem(403, "no-prefetch", "This link works once", "It is not given to who only looks ahead."))
    try:
        codes = parse_qs(scope["query_string"].decode("ascii", "replace"), max_num_fields=10).get("code", [])
    except ValueError:
        codes = []
    session_id = keys.sessions.log_in(codes[0]) if len(codes) == 1 else None
    if session_id is None:
        # Whoever is in already gets in by an old link, too.
        is_in = caller_by_cookie(head, scope, keys) is not None
        return (303, [(b"location", b"/"), (b"content-length", b"0")], b"") if is_in else None
    cookie = _cookie(scope, session_id, SESSION_SECONDS, secure)
    return 303, [(b"location", b"/"), (b"set-cookie", cookie), (b"content-length", b"0")], b""


def _with_a_token(head: Head, scope: Scope, keys: Keyring, secure: bool) -> Answer:
    """A session for who has a token: how users other than the owner get to the page. Only our page asks for it."""
    check_own_page(head)
    caller = caller_by_token(head, keys)
    session_id = keys.sessions.log_in(keys.one_time_code(caller))
    assert session_id is not None
    return 204, [(b"set-cookie", _cookie(scope, session_id, SESSION_SECONDS, secure))], b""


def used_up(head: Head) -> Answer | Problem:
    """What is answered to a code that is worth nothing."""
    if b"text/html" in head.said.get(b"accept", b""):
        page = _PAGE.encode()
        return 403, [(b"content-type", b"text/html; charset=utf-8"), (b"content-length", b"%d" % len(page))], page
    return problem(403, "login-link-used", "This link does not work any more", _USED)


def logged_out(head: Head, scope: Scope, keys: Keyring, secure: bool) -> Answer:
    """Forget the session that the request belongs to."""
    if head.method != "POST":
        raise Refused(of_status(405, {"Allow": "POST"}))
    if caller_by_cookie(head, scope, keys) is None:
        raise Refused(no_token())
    check_own_page(head)
    for session_id in session_ids(head, cookie_name(scope)):
        keys.sessions.log_out(session_id)
    return 204, [(b"set-cookie", _cookie(scope, "", 0, secure))], b""


def _cookie(scope: Scope, value: str, seconds: int, secure: bool) -> bytes:
    said = f"{cookie_name(scope)}={value}; HttpOnly; SameSite=Strict; Path=/; Max-Age={seconds}"
    return (said + "; Secure" if secure else said).encode("ascii")
