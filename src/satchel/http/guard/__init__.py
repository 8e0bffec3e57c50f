"""The HTTP guard: every request passes it before the application sees it, and every response on its way out.

| module | defends against |
|---|---|
| `connections` | slow clients (slowloris), clients that do not read, too many connections |
| `request_checks` | request smuggling, path traversal, DNS rebinding, CSRF |
| `credentials`, `authentication` | requests without a token or session, guessing them |
| `bodies` | large and slow bodies, JSON that two parsers read differently |
| `middleware` | clickjacking, script injection (response headers), work that does not end |
| `observability` | logs and metrics that reveal content |

`middleware` calls them in order, with the numbers of `request_checks.Limits`.
"""
