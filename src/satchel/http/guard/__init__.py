"""The HTTP guard: every request passes it before the application sees it, and every response on its way out.

| module | defends against |
|---|---|
| `request_checks` | request smuggling, path traversal, DNS rebinding, CSRF; large, slow and ambiguous bodies |
| `credentials`, `authentication` | requests without a token or session, guessing them |
| `middleware` | clickjacking, script injection (response headers), work that does not end |
| `observability` | logs and metrics that reveal content |

`middleware` calls them in order, with the numbers of `request_checks.Limits`. `satchel.http.server` ends connections of
slow clients (slowloris) and of clients that do not read, and limits their number.
"""
