"""Python source without the docstrings of its functions, and what those said."""

from __future__ import annotations

import ast
import warnings
from collections.abc import Iterator
from dataclasses import dataclass

Function = ast.FunctionDef | ast.AsyncFunctionDef


@dataclass(frozen=True, slots=True, kw_only=True)
class Described:
    """A function that had a docstring, and where it stands in the source without it."""

    name: str
    qualified: str
    docstring: str
    first: int
    last: int
    body_lines: int
    inner: bool
    """Whether it is inside of another function."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Stripped:
    """A source whose functions have no docstrings."""

    text: str
    described: tuple[Described, ...]


def strip(source: str) -> Stripped | None:
    """The source without the docstrings of its functions; None if it is no Python that we can read.

    Lines that held only a docstring go; where nothing would be left of a function, or something else stands on the
    same line, `pass` takes its place.
    """
    source = source.replace("\r\n", "\n").replace("\r", "\n")
    try:
        before = _parsed(source)
        docstrings = [_docstring(function) for function, _, _ in _functions(before)]
        text = _without(source, before)
        after = list(_functions(_parsed(text)))
    except (SyntaxError, ValueError, RecursionError):
        return None
    lines = text.split("\n")
    assert len(docstrings) == len(after)
    return Stripped(
        text=text,
        described=tuple(
            _described(function, qualified, inner, docstring, lines)
            for docstring, (function, qualified, inner) in zip(docstrings, after, strict=True)
            if docstring
        ),
    )


def _parsed(source: str) -> ast.Module:
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # about escapes in the strings of others
        return ast.parse(source)


def _functions(tree: ast.AST, above: str = "", inner: bool = False) -> Iterator[tuple[Function, str, bool]]:
    for node in ast.iter_child_nodes(tree):
        if isinstance(node, Function):
            yield node, above + node.name, inner
            yield from _functions(node, f"{above}{node.name}.", True)
        elif isinstance(node, ast.ClassDef):
            yield from _functions(node, f"{above}{node.name}.", inner)
        else:
            yield from _functions(node, above, inner)


def _docstring(function: Function) -> str:
    return ast.get_docstring(function, clean=True) or ""


def _without(source: str, tree: ast.Module) -> str:
    """Edited from the end, so that what comes before keeps its place; columns count bytes."""
    lines = [line.encode() for line in source.split("\n")]
    for function, _, _ in sorted(_functions(tree), key=lambda found: found[0].body[0].lineno, reverse=True):
        statement = function.body[0]
        if ast.get_docstring(function, clean=False) is None:
            continue
        assert statement.end_lineno is not None
        assert statement.end_col_offset is not None
        first, last = statement.lineno - 1, statement.end_lineno - 1
        start, rest = lines[first][: statement.col_offset], lines[last][statement.end_col_offset :]
        after = rest.lstrip(b"; \t")
        alone = not start.strip() and (not after or after.startswith(b"#"))
        if alone and len(function.body) > 1:
            lines[first : last + 1] = []
            _drop_blank(lines, first)
        else:
            lines[first : last + 1] = [start + b"pass" + rest]
    return b"\n".join(lines).decode()


def _drop_blank(lines: list[bytes], at: int) -> None:
    """The empty lines that parted a docstring from the code go with it."""
    while at < len(lines) and not lines[at].strip():
        del lines[at]


def _described(function: Function, qualified: str, inner: bool, docstring: str, lines: list[str]) -> Described:
    assert function.end_lineno is not None
    body = lines[function.body[0].lineno - 1 : function.end_lineno]
    return Described(
        name=function.name,
        qualified=qualified,
        docstring=docstring,
        first=min([function.lineno, *(decorator.lineno for decorator in function.decorator_list)]),
        last=function.end_lineno,
        body_lines=sum(bool(line.strip()) for line in body),
        inner=inner,
    )
