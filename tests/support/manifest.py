"""The requirements manifest and the tests that name its entries."""

from __future__ import annotations

import ast
import tomllib
from collections import defaultdict
from functools import cache
from typing import Any

from tests.support.places import ROOT, TESTS

MANIFEST = ROOT / "docs" / "requirements"


@cache
def requirements() -> list[dict[str, Any]]:
    """Every entry of the five manifests."""
    return [
        entry
        for path in sorted(MANIFEST.glob("s*.toml"))
        for entry in tomllib.loads(path.read_text(encoding="utf-8"))["requirement"]
    ]


@cache
def covering_tests() -> dict[str, list[str]]:
    """For each id that a test names with `@pytest.mark.requirement`, those tests."""
    covering: dict[str, list[str]] = defaultdict(list)
    for path in sorted(TESTS.rglob("test_*.py")):
        for node in ast.walk(ast.parse(path.read_text(encoding="utf-8"))):
            if isinstance(node, (ast.FunctionDef, ast.AsyncFunctionDef)) and node.name.startswith("test"):
                for decorator in node.decorator_list:
                    if isinstance(decorator, ast.Call) and ast.unparse(decorator.func) == "pytest.mark.requirement":
                        for argument in decorator.args:
                            covering[ast.literal_eval(argument)].append(f"{path.relative_to(TESTS)}::{node.name}")
    return covering
