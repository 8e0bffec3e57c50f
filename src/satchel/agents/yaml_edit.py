"""Add and remove an entry in a mapping of a YAML file, without changing any byte elsewhere.

The mapping is the value of a top-level key. A missing key is appended after an empty line, with the entry on several
lines; for an existing key without a value, the entry is on a single line.
"""

from __future__ import annotations

import json
from typing import Any, Final

import yaml  # type: ignore[import-untyped, unused-ignore]

from satchel.agents.settings_file import CannotEdit, appended, line_end_of

Keys = tuple[str, ...]
_Pair = tuple[yaml.Node, yaml.Node]

_STEP: Final = "  "


def read(text: str) -> Any:
    """The parsed document; an empty mapping for a text without a document."""
    try:
        documents = [document for document in yaml.safe_load_all(text) if document is not None]
    except (yaml.YAMLError, ValueError, RecursionError) as error:
        raise CannotEdit(_reason(error)) from None
    if len(documents) > 1:
        raise CannotEdit("the file contains more than one YAML document")
    return documents[0] if documents else {}


def new(path: Keys, value: Any) -> str:
    """A text with only the entry."""
    return _block(path, value, "\n") + "\n"


def put(text: str, path: Keys, value: Any) -> str:
    """The text with the entry: replaces an existing entry, else inserts the entry before all entries."""
    key, name = path
    line_end = line_end_of(text)
    parent = _pair(_root(text), key)
    if parent is None:
        return appended(text, _block(path, value, line_end))
    entries = parent[1]
    line = f"{name}: {json.dumps(value, ensure_ascii=False)}"
    if isinstance(entries, yaml.MappingNode):
        if pair := _pair(entries, name):
            return _replaced(text, pair, name, value)
        if entries.flow_style:
            at = entries.start_mark.index + 1
            return text[:at] + line + (", " if entries.value else "") + text[at:]
        at = _line_start(text, entries.value[0][0].start_mark.index)
        indent = text[at : entries.value[0][0].start_mark.index]
        return text[:at] + _lines(name, value, indent, line_end) + line_end + text[at:]
    if isinstance(entries, yaml.ScalarNode) and entries.value == "" and entries.style is None:
        at = text.find("\n", entries.start_mark.index)
        if at < 0:
            return text + line_end + _STEP + line
        return text[: at + 1] + _STEP + line + line_end + text[at + 1 :]
    raise CannotEdit(f"{key} is not a mapping")


def drop(text: str, path: Keys) -> str | None:
    """The text without the entry; None if the text was created for the entry."""
    key, name = path
    parent = _pair(_root(text), key)
    pair = _pair(parent[1], name) if parent and isinstance(parent[1], yaml.MappingNode) else None
    if parent is None or pair is None:
        return text
    entries = parent[1]
    if entries.flow_style:
        return _without_flow(text, pair, alone=len(entries.value) == 1)
    start, end = _line_start(text, pair[0].start_mark.index), _line_behind(text, _end(pair))
    if len(entries.value) > 1 or pair[1].flow_style:
        return _without_lines(text, start, end)
    return _without_all(text, parent[0], start, end)


def _without_all(text: str, key: yaml.Node, start: int, end: int) -> str | None:
    """The text without the mapping if the mapping was created for the entry, else with an empty mapping."""
    line_end, at = line_end_of(text), _line_start(text, key.start_mark.index)
    before = text[:at]
    if end == len(text):
        if not text.endswith("\n"):
            if before.endswith(line_end * 2):
                return before[: -2 * len(line_end)]
        elif not before:
            return None
        elif before.endswith(line_end) and before[: -len(line_end)][-1:] in ("", "\n"):
            return before[: -len(line_end)]
    colon = text.index(":", key.end_mark.index) + 1
    return text[:colon] + " {}" + _without_lines(text[colon:], start - colon, end - colon)


def _without_lines(text: str, start: int, end: int) -> str:
    if end == len(text) and not text.endswith("\n"):
        return text[:start].removesuffix("\n").removesuffix("\r")
    return text[:start] + text[end:]


def _without_flow(text: str, pair: _Pair, *, alone: bool) -> str:
    start, end = pair[0].start_mark.index, pair[1].end_mark.index
    if alone:
        return text[:start] + text[end:]
    if text[end:].lstrip().startswith(","):
        end = text.index(",", end) + 1
        return text[:start] + text[end:].removeprefix(" ")
    return text[: text.rindex(",", 0, start)] + text[end:]


def _replaced(text: str, pair: _Pair, name: str, value: Any) -> str:
    start, end = pair[0].start_mark.index, _end(pair)
    if pair[1].flow_style or pair[1].start_mark.line == pair[0].start_mark.line:
        new = f"{name}: {json.dumps(value, ensure_ascii=False)}"
    else:
        indent = text[_line_start(text, start) : start]
        new = _lines(name, value, indent, line_end_of(text)).removeprefix(indent)
    return text[:start] + new + text[end:]


def _block(path: Keys, value: Any, line_end: str) -> str:
    return f"{path[0]}:{line_end}{_lines(path[1], value, _STEP, line_end)}"


def _lines(name: str, value: dict[str, Any], indent: str, line_end: str) -> str:
    # JSON's values are YAML as well.
    inner = (f"{indent}{_STEP}{key}: {json.dumps(item, ensure_ascii=False)}" for key, item in value.items())
    return line_end.join([f"{indent}{name}:", *inner])


def _root(text: str) -> yaml.MappingNode | None:
    root = yaml.compose(text, Loader=yaml.SafeLoader)
    if root is None or (isinstance(root, yaml.MappingNode) and not root.flow_style):
        return root
    raise CannotEdit("expected a mapping with one key per line")


def _pair(mapping: yaml.Node | None, key: str) -> _Pair | None:
    pairs = [pair for pair in mapping.value if pair[0].value == key] if mapping else []
    if len(pairs) > 1:
        raise CannotEdit(f"line {pairs[1][0].start_mark.line + 1}: duplicate key {key}")
    return pairs[0] if pairs else None


def _end(pair: _Pair) -> int:
    """End position of a pair: the end of the last value, as PyYAML ends a block mapping where the next begins."""
    node = pair[1]
    if isinstance(node, yaml.CollectionNode) and not node.flow_style and node.value:
        last = node.value[-1]
        return _end(last if isinstance(last, tuple) else (last, last))
    index: int = node.end_mark.index
    return index


def _line_start(text: str, at: int) -> int:
    return text.rfind("\n", 0, at) + 1


def _line_behind(text: str, at: int) -> int:
    if text[at - 1 : at] == "\n":
        return at
    end = text.find("\n", at)
    return len(text) if end < 0 else end + 1


def _reason(error: Exception) -> str:
    mark = getattr(error, "problem_mark", None)
    if mark is None:
        return str(error).splitlines()[0] if str(error) else "not valid YAML"
    return f"line {mark.line + 1}, column {mark.column + 1}: {getattr(error, 'problem', None) or 'invalid YAML'}"
