"""Make docs/http-api.md from the server's own OpenAPI document.

    python scripts/http_reference.py

A test compares the page with what this prints.
"""

from __future__ import annotations

import tempfile
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any, Final

PAGE: Final = Path(__file__).parent.parent / "docs" / "http-api.md"
_ABOUT: Final = """\
# HTTP routes

Made from the server's OpenAPI document (`GET /v1/openapi.json`) by `python scripts/http_reference.py`. How to start a
server, tokens, errors and events: [the HTTP API](http.md).
"""


def openapi() -> dict[str, Any]:
    """The description that a server gives of itself."""
    import satchel
    from satchel.http.app import create_app

    with tempfile.TemporaryDirectory() as folder, satchel.open_engine(folder, index_dir=f"{folder}/index") as engine:
        described: dict[str, Any] = create_app(engine).openapi()
    return described


def page(described: Mapping[str, Any]) -> str:
    """The page: for each route its purpose, its parameters and its body."""
    parts = [_ABOUT]
    for path, methods in described["paths"].items():
        for method, route in methods.items():
            parts += _route(path, method, route, described["components"]["schemas"])
    return "\n".join(parts).rstrip() + "\n"


def _route(path: str, method: str, route: Mapping[str, Any], schemas: Mapping[str, Any]) -> Iterator[str]:
    yield f"\n## {method.upper()} {path}\n\n{route['summary']}."
    if route.get("description"):
        yield f"\n{route['description'].strip()}"
    rows = [
        _row(value["name"], value["schema"], required=value.get("required", False), where=value["in"])
        for value in route.get("parameters", ())
    ]
    body = route.get("requestBody", {}).get("content", {}).get("application/json", {}).get("schema", {})
    for name in _names(body):
        required = schemas[name].get("required", ())
        rows += [
            _row(field, schema, required=field in required, where="body" if len(_names(body)) == 1 else name)
            for field, schema in schemas[name].get("properties", {}).items()
        ]
    if rows:
        yield "\n| field | in | type | |\n|---|---|---|---|"
        yield from rows
    yield f"\nAnswers: {', '.join(sorted(route['responses']))}."


def _row(name: str, schema: Mapping[str, Any], *, required: bool, where: str) -> str:
    text = str(schema.get("description", "")).replace("|", "\\|").replace("\n", " ")
    default = schema.get("default")
    if required:
        text = f"required. {text}".strip()
    elif isinstance(default, str | int | float) and default:
        text = f"{text} Default: `{default}`.".strip()
    return f"| `{name}` | {where} | {_type(schema)} | {text} |"


def _type(schema: Mapping[str, Any]) -> str:
    if "$ref" in schema:
        return str(schema["$ref"]).rpartition("/")[2]
    if "anyOf" in schema:
        return " or ".join(dict.fromkeys(_type(part) for part in schema["anyOf"] if part.get("type") != "null"))
    if "enum" in schema or "const" in schema:
        return ", ".join(f"`{value}`" for value in schema.get("enum", [schema.get("const")]))
    if schema.get("type") == "array":
        return f"list of {_type(schema.get('items', {}))}"
    return str(schema.get("type", "any"))


def _names(schema: Mapping[str, Any]) -> list[str]:
    """The names of the models that a body may be."""
    choices = [schema, *schema.get("anyOf", ()), *schema.get("oneOf", ())]
    return [choice["$ref"].rpartition("/")[2] for choice in choices if "$ref" in choice]


if __name__ == "__main__":
    PAGE.write_text(page(openapi()), encoding="utf-8")
    print(PAGE)
