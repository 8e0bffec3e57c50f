"""The HTTP guard checks every request before the application runs, and adds security headers to every response.

| module | defends against |
|---|---|
| `request_checks` | request smuggling, path traversal, DNS rebinding, CSRF; large, slow and ambiguous bodies |
| `credentials`, `authentication` | requests without a token or session, guessing them |
| `middleware` | clickjacking, script injection (response headers), work that does not end |
| `observability` | logs and metrics that reveal content |

`middleware` calls these modules in order, with the numbers of `request_checks.HttpLimits`. `satchel.http.server` limits
the number of connections, and closes those of slow clients (slowloris) and of clients that do not read.
"""
