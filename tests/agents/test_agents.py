"""Settings of agents: what is put in is there, what is taken out leaves the file as it was, to the byte."""

from __future__ import annotations

import json
import os
import re
import sys
import sysconfig
import tomllib
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
import yaml  # type: ignore[import-untyped, unused-ignore]
from hypothesis import given
from hypothesis import strategies as st

from satchel.agents import json_edit, settings_file
from satchel.agents.catalog import AGENTS, Agent, Command, Machine, Scope, Syntax, System, server_command
from satchel.agents.install import difference
from satchel.agents.plan import (
    Result,
    Target,
    carry_out,
    entry_in,
    list_in,
    plan_install,
    plan_uninstall,
    target_for,
    with_entry,
    without_entry,
)
from satchel.agents.settings_file import CannotEdit
from satchel.errors import InvalidOption
from tests.support.places import ROOT

ENTRY = {"command": "/opt/satchel", "args": ["mcp", "/home/ä b"]}
PATH = ("mcpServers", "satchel")
COMMAND = Command(program="/opt/satchel/bin/satchel", args=("mcp",))
BY_KEY = {agent.key: agent for agent in AGENTS}


def there_and_back(text: str, syntax: Syntax, path: tuple[str, ...] = PATH, entry: dict[str, Any] = ENTRY) -> str:
    """Put the entry in, see that nothing else has changed, take it out, see that the text is what it was."""
    after = with_entry(text, syntax, path, entry)
    assert entry_in(after, syntax, path) == entry
    assert without_entry(after, syntax, path) == text
    return after


# JSON with comments


SPACE = st.text(alphabet=" \t\n", max_size=4)
COMMENTS = st.sampled_from(["// a, {note}", "/* b: [ */", '/* "c" */', "// https://d", "/*\n e */"])


@st.composite
def gaps(draw: st.DrawFn) -> str:
    """Space and comments, as they stand between tokens."""
    parts = [draw(SPACE)]
    for comment in draw(st.lists(COMMENTS, max_size=2)):
        parts += [comment, "\n" if comment.startswith("//") else "", draw(SPACE)]
    return "".join(parts)


SCALARS = st.one_of(
    st.none(), st.booleans(), st.integers(), st.floats(allow_nan=False, allow_infinity=False), st.text(max_size=6)
).map(lambda value: json.dumps(value, ensure_ascii=False))
KEYS = st.one_of(st.sampled_from(["a", "mcp", "servers", "mcpServers.x", "//", 'q"']), st.text(max_size=4))


@st.composite
def objects(draw: st.DrawFn, values: st.SearchStrategy[str], keys: st.SearchStrategy[list[str]]) -> str:
    pieces = ["{", draw(gaps())]
    names = draw(keys)
    for at, name in enumerate(names):
        pieces += [json.dumps(name, ensure_ascii=False), draw(gaps()), ":", draw(gaps()), draw(values), draw(gaps())]
        if at < len(names) - 1 or draw(st.booleans()):
            pieces += [",", draw(gaps())]
    return "".join([*pieces, "}"])


def names(*fixed: str) -> st.SearchStrategy[list[str]]:
    """Keys, each once, and of the fixed ones one or none."""
    others = st.lists(KEYS.filter(lambda key: key not in ("mcpServers", "satchel")), max_size=3, unique=True)
    return st.tuples(others, st.sampled_from([(), *((one,) for one in fixed)])).flatmap(
        lambda both: st.permutations([*both[0], *both[1]])
    )


VALUES = st.recursive(
    SCALARS,
    lambda inner: objects(inner, names()) | st.lists(inner, max_size=2).map(lambda items: f"[{', '.join(items)}]"),
    max_leaves=4,
)


@st.composite
def settings_in_json(draw: st.DrawFn) -> str:
    """A settings file: untidy, with or without a list of servers, from any editor."""
    root = draw(objects(VALUES, names()))
    servers = f'"mcpServers":{draw(gaps())}{draw(objects(VALUES, names()))}'
    form = draw(st.sampled_from(["without", "alone", "first", "last"]))
    if form == "alone":
        root = f"{{{draw(gaps())}{servers}{draw(gaps())}}}"
    elif form == "first":
        root = f"{{{draw(gaps())}{servers}{draw(gaps())},{root[1:]}"
    elif form == "last":
        root = f'{{{draw(gaps())}"before": 1,{draw(gaps())}{servers}{draw(gaps())}}}'
    text = draw(gaps()) + root + draw(gaps())
    if draw(st.booleans()):
        text = text.replace("\n", "\r\n")
    return draw(st.sampled_from(["", "\ufeff"])) + text


@given(settings_in_json())
def test_json_is_what_it_was_when_the_entry_is_gone(text: str) -> None:
    there_and_back(text, Syntax.JSON)


@given(settings_in_json(), st.sampled_from(["b", "zz"]))
def test_json_keeps_what_was_added_later(text: str, key: str) -> None:
    after = with_entry(text, Syntax.JSON, PATH, ENTRY)
    other = with_entry(after, Syntax.JSON, ("mcpServers", key), {"url": "x"})
    left = without_entry(other, Syntax.JSON, PATH)
    assert left is not None
    assert entry_in(left, Syntax.JSON, PATH) is None
    assert entry_in(left, Syntax.JSON, ("mcpServers", key)) == {"url": "x"}


@pytest.mark.parametrize(
    "text",
    [
        "", "\n", "  \r\n", "{}", "{}\n", "{ }", "{\n}\n", "{\r\n}\r\n", "\ufeff{}", '{"mcpServers": {}}',
        '{"mcpServers":{}}', '{"mcpServers": { }}', '{\n  "mcpServers": {}\n}\n', '{\n  "mcpServers": {\n  }\n}',
        '{\n\t"mcpServers": {\n\t\t// none yet\n\t},\n}\n', '{\n  "a": 1 // one\n  // two\n}',
        '{\n  "a": 1, // one\n}\n', '{"a": 1 // one\n}', '{"a": 1, // one\n}', '{"a":1}', '{"a": 1,}',
        '{"mcpServers": {"other": {}}}', '{"mcpServers": {"other": {},}}', '{ /* { */ "mcpServers" /* } */ : {/* */}}',
        '{\n    "mcpServers": {\n        "b": {}\n    },\n    "z": [\n        1\n    ]\n}', '// top\n{\n}\n// end',
    ],
)  # fmt: skip
def test_json_in_forms_that_are_easily_confused(text: str) -> None:
    there_and_back(text, Syntax.JSON)


def test_an_entry_looks_as_the_others_do() -> None:
    text = (
        '{\n\t"theme": "dark", // mine\n\t"mcpServers": {\n\t\t"other": {\n\t\t\t"command": "x"\n\t\t} // that\n\t}\n}'
    )
    after = there_and_back(text, Syntax.JSON, PATH, {"command": "s", "args": ["mcp"]})
    assert after == (
        '{\n\t"theme": "dark", // mine\n\t"mcpServers": {\n\t\t"other": {\n\t\t\t"command": "x"\n\t\t}, // that\n'
        '\t\t"satchel": {\n\t\t\t"command": "s",\n\t\t\t"args": [\n\t\t\t\t"mcp"\n\t\t\t]\n\t\t}\n\t}\n}'
    )
    assert there_and_back('{"a":1,"mcpServers":{"b":{}}}', Syntax.JSON, PATH, {"command": "s"}) == (
        '{"a":1,"mcpServers":{"b":{},"satchel":{"command":"s"}}}'
    )
    assert there_and_back('{\r\n    "a": 1,\r\n}\r\n', Syntax.JSON, PATH, {"command": "s"}) == (
        '{\r\n    "a": 1,\r\n    "mcpServers": {\r\n        "satchel": {\r\n            "command": "s"\r\n        }\r\n'
        "    },\r\n}\r\n"
    )


def test_an_entry_of_somebody_else_is_replaced_where_it_stands() -> None:
    text = '{\n  "mcpServers": {\n    "satchel": {"url": "x"}, // old\n    "b": {}\n  }\n}\n'
    after = with_entry(text, Syntax.JSON, PATH, {"command": "s"})
    assert after == text.replace('{"url": "x"}', '{"command": "s"}')
    assert without_entry(after, Syntax.JSON, PATH) == '{\n  "mcpServers": { // old\n    "b": {}\n  }\n}\n'


@pytest.mark.parametrize(
    ("text", "problem"),
    [
        ('{"a": 1', "line 1, column 8: expected a comma or }"),
        ('{\n  "a" 1\n}', "line 2, column 7: expected a colon"),
        ("{'a': 1}", "a key in double quotes"),
        ('{"a": nope}', "expected a value"),
        ('{"a": "b\n"}', "unterminated string"),
        ('{"a": "\\x"}', "invalid escape"),
        ("{} {}", "after the end"),
        ("[1]", "not a table of settings"),
        ("// nothing\n", "expected a value"),
        ('{"mcpServers": []}', "line 1, column 16: expected an object"),
        ('{"mcpServers": {}, "mcpServers": {}}', "duplicate key mcpServers"),
        ("[" * 200, "too deeply"),
    ],
    ids=lambda value: value[:20],
)
def test_json_that_cannot_be_edited_says_where_and_why(text: str, problem: str) -> None:
    with pytest.raises(CannotEdit) as caught:
        with_entry(text, Syntax.JSON, PATH, ENTRY)
    assert problem in str(caught.value)


def test_a_comment_swallows_nothing_when_an_entry_goes() -> None:
    text = '{"mcpServers": {"a": {}, // x\n "satchel": {}, "b": {}}}'
    left = without_entry(text, Syntax.JSON, PATH)
    assert left is not None
    assert entry_in(left, Syntax.JSON, ("mcpServers",)) == {"a": {}, "b": {}}


def test_a_file_with_a_comment_of_ones_own_stays() -> None:
    made = with_entry(None, Syntax.JSON, PATH, ENTRY)
    assert without_entry(made, Syntax.JSON, PATH) is None
    assert without_entry(f"// mine\n{made}", Syntax.JSON, PATH) == "// mine\n{}\n"
    assert without_entry(f"{made}// mine\n", Syntax.JSON, PATH) == "{}\n// mine\n"


def test_an_editor_that_errs_is_found_out(monkeypatch: pytest.MonkeyPatch) -> None:
    put = json_edit.put
    for wrong_put in (
        lambda text, path, value: text,
        lambda text, path, value: put("{}", path, value),
        lambda text, path, value: put(text, path, value) + "}",
    ):
        monkeypatch.setattr(json_edit, "put", wrong_put)
        with pytest.raises(CannotEdit, match="cannot be changed without"):
            with_entry('{"a": 1}', Syntax.JSON, PATH, ENTRY)


def test_opencode_has_two_places() -> None:
    lists = BY_KEY["opencode"].lists
    assert list_in('{"mcp": {"servers": {"a": {}}}}', Syntax.JSON, lists) == ("mcp", "servers")
    assert list_in('{"mcp": {"servers": {"type": "local", "command": []}}}', Syntax.JSON, lists) == ("mcp",)
    assert list_in("{}", Syntax.JSON, lists) == ("mcp",)


# TOML


TOML_PATH = ("mcp_servers", "satchel")
TOML_LINES = st.sampled_from(
    [
        "# [mcp_servers.satchel]", "", "  ", 'a = 1 # "x', "b = '''\n[mcp_servers.satchel]\n'''", 'c = """\n# no\n"""',
        "d = [\n  [1, 2], # ]\n  3,\n]", 'e = { x = "}" }', "'f' = \"\\\"\"", "\"g h\".i = ''",
    ]
)  # fmt: skip
TOML_TABLES = st.sampled_from(
    ["[t]", "[[list]]", "[mcp_servers.other]", '[ mcp_servers . "third" ] # x', "[u.v]", "  [w]"]
)


@st.composite
def settings_in_toml(draw: st.DrawFn) -> str:
    lines = draw(st.lists(TOML_LINES, max_size=4, unique=True))
    for table in draw(st.lists(TOML_TABLES, max_size=3, unique=True)):
        lines += [table, *draw(st.lists(TOML_LINES, max_size=3, unique=True))]
    text = "\n".join(lines) + draw(st.sampled_from(["", "\n", "\n\n", "\n# end"]))
    if draw(st.booleans()):
        text = text.replace("\n", "\r\n")
    return draw(st.sampled_from(["", "\ufeff"])) + text


@given(settings_in_toml())
def test_toml_is_what_it_was_when_the_entry_is_gone(text: str) -> None:
    after = there_and_back(text, Syntax.TOML, TOML_PATH)
    assert tomllib.loads(after.removeprefix("\ufeff"))["mcp_servers"]["satchel"] == ENTRY


def test_toml_that_is_made_for_the_entry_goes_with_it() -> None:
    made = with_entry(None, Syntax.TOML, TOML_PATH, ENTRY)
    assert made == '[mcp_servers.satchel]\ncommand = "/opt/satchel"\nargs = ["mcp", "/home/ä b"]\n'
    assert without_entry(made, Syntax.TOML, TOML_PATH) is None
    assert with_entry("a = 1", Syntax.TOML, TOML_PATH, ENTRY) == f"a = 1\n\n{made[:-1]}"
    assert without_entry(f"a = 1\n{made}[next]\n", Syntax.TOML, TOML_PATH) == "a = 1\n[next]\n"
    assert without_entry(f"# mine\n\n{made}\n[next]\na = 1\n", Syntax.TOML, TOML_PATH) == "# mine\n\n[next]\na = 1\n"


def test_toml_tables_below_the_entry_go_with_it() -> None:
    text = 'a = 1\n\n[mcp_servers."satchel"]\nurl = "x"\n[mcp_servers.satchel.env]\nA = "b" # c\n\n# next\n[n]\n'
    assert with_entry(text, Syntax.TOML, TOML_PATH, {"command": "s"}) == (
        'a = 1\n\n[mcp_servers.satchel]\ncommand = "s" # c\n\n# next\n[n]\n'
    )


def test_toml_lists_of_tables_below_the_entry_go_with_it() -> None:
    text = "[mcp_servers.satchel]\na = 1\n[[mcp_servers.satchel.b]]\nc = '''\n[n]\n# no'''\n\n# next\n[n]\n"
    assert without_entry(text, Syntax.TOML, TOML_PATH) == "\n# next\n[n]\n"


@pytest.mark.parametrize(
    ("text", "problem"),
    [
        ("a = \n", "line 1"),
        (f"a = {'[' * 5000}", "recursion|nest"),
        ("mcp_servers = {}", "cannot be changed without"),
        ('[mcp_servers]\nsatchel = { url = "x" }', "cannot be changed without"),
        ("[[mcp_servers]]\n", "cannot be changed without"),
    ],
)
def test_toml_that_cannot_be_edited_is_refused(text: str, problem: str) -> None:
    with pytest.raises(CannotEdit, match=problem):
        with_entry(text, Syntax.TOML, TOML_PATH, ENTRY)


def test_toml_in_a_form_that_is_not_edited_is_refused_when_it_is_to_go() -> None:
    with pytest.raises(CannotEdit, match="by hand"):
        without_entry("[mcp_servers]\nsatchel.url = 'x'\n", Syntax.TOML, TOML_PATH)


# YAML


YAML_PATH = ("extensions", "satchel")
YAML_LINES = st.sampled_from(
    [
        "# extensions:", "", "A: 1 # x", "B: 'extensions:'", "C:\n- 1\n- a: b", "D: |-\n  extensions:\n    x: 1",
        "E: {a: [1, 2]}", '"F": "\\"{"', "G:\n  satchel:\n    a: 1", "H: .nan",
    ]
)  # fmt: skip
YAML_EXTENSIONS = st.sampled_from(
    [
        "extensions:", "extensions: # none", "extensions: {}", "extensions: { }", "extensions: {a: {b: 1}}",
        "extensions:\n  a:\n    b: 1", "extensions:\n    # one\n    a: {b: 1}\n    # two\n    c:\n        d: e # f",
        "'extensions':\n a: {}",
    ]
)  # fmt: skip


@st.composite
def settings_in_yaml(draw: st.DrawFn) -> str:
    lines = draw(st.lists(YAML_LINES, max_size=4, unique=True))
    if draw(st.booleans()):
        lines.insert(draw(st.integers(0, len(lines))), draw(YAML_EXTENSIONS))
    text = "\n".join(lines) + draw(st.sampled_from(["", "\n", "\n\n", "\n# end", "\n# end\n"]))
    if draw(st.booleans()):
        text = text.replace("\n", "\r\n")
    return text


@given(settings_in_yaml())
def test_yaml_is_what_it_was_when_the_entry_is_gone(text: str) -> None:
    after = there_and_back(text, Syntax.YAML, YAML_PATH)
    assert yaml.safe_load(after)["extensions"]["satchel"] == ENTRY


def test_yaml_that_is_made_for_the_entry_goes_with_it() -> None:
    made = with_entry(None, Syntax.YAML, YAML_PATH, ENTRY)
    assert made.startswith('extensions:\n  satchel:\n    command: "/opt/satchel"\n')
    assert without_entry(made, Syntax.YAML, YAML_PATH) is None


def test_yaml_entries_are_replaced_and_leave_an_empty_mapping() -> None:
    text = "a: 1\nextensions:\n  satchel: # mine\n    cmd: x\n    args: []\nb: 2\n"
    after = with_entry(text, Syntax.YAML, YAML_PATH, {"cmd": "s"})
    assert after == 'a: 1\nextensions:\n  satchel:\n    cmd: "s"\nb: 2\n'
    assert without_entry(after, Syntax.YAML, YAML_PATH) == "a: 1\nextensions: {}\nb: 2\n"
    kept = "a: 1\nextensions:\n  satchel:\n    b: 1\n"
    assert without_entry(kept, Syntax.YAML, YAML_PATH) == "a: 1\nextensions: {}\n"
    flow = "extensions: {b: {}, satchel: {c: 1}}\n"
    assert with_entry(flow, Syntax.YAML, YAML_PATH, {"c": 2}) == 'extensions: {b: {}, satchel: {"c": 2}}\n'
    assert without_entry(flow, Syntax.YAML, YAML_PATH) == "extensions: {b: {}}\n"


@pytest.mark.parametrize(
    ("text", "problem"),
    [
        ("a: [", "line 1"),
        ("a: 1\n---\nb: 2\n", "more than one YAML document"),
        ("extensions: 1\n", "not a mapping"),
        ("extensions: null\n", "not a mapping"),
        ("extensions: {}\nextensions: {}\n", "line 2: duplicate key extensions"),
        ("{a: 1}\n", "one key per line"),
        ("- a\n", "not a table of settings"),
        ("a: !thing x\n", "line 1"),
        ("a: |+\n  b\n", "cannot be changed without"),
        ("a: |\n  b", "cannot be changed without"),
    ],
)
def test_yaml_that_cannot_be_edited_is_refused(text: str, problem: str) -> None:
    with pytest.raises(CannotEdit, match=problem):
        with_entry(text, Syntax.YAML, YAML_PATH, ENTRY)


# Agents


def machine_at(home: Path, system: System = System.LINUX, environment: dict[str, str] | None = None) -> Machine:
    return Machine(system=system, home=home, environment=environment or {})


def parsed(agent: Agent, data: bytes) -> Any:
    """Read with the parser of the format's own library, not with ours."""
    text = data.decode()
    readers: dict[Syntax, Callable[[str], Any]] = {
        Syntax.JSON: json.loads, Syntax.TOML: tomllib.loads, Syntax.YAML: yaml.safe_load,
    }  # fmt: skip
    return readers[agent.syntax](text)


SAMPLES = {
    Syntax.JSON: b'{\r\n\t"theme": "dark",\r\n\t"x.mcpServers": {\r\n\t\t"a": {}\r\n\t}\r\n}',
    Syntax.TOML: b'model = "x" # mine\n\n[mcp_servers.other]\ncommand = "y"',
    Syntax.YAML: b"# mine\nGOOSE_MODE: auto\nextensions:\n  developer:\n    enabled: true\n",
}
PLACES = [(agent, scope) for agent in AGENTS for scope in Scope if scope is Scope.USER or agent.project]


@pytest.mark.parametrize(("agent", "scope"), PLACES, ids=[f"{agent.key}-{scope}" for agent, scope in PLACES])
@pytest.mark.parametrize("system", System)
@pytest.mark.parametrize("exists", [True, False], ids=["there", "new"])
def test_every_agent_there_and_back(tmp_path: Path, agent: Agent, scope: Scope, system: System, exists: bool) -> None:
    home, project = tmp_path / "home", tmp_path / "project"
    for folder in (home, project):
        folder.mkdir()
    target = target_for(agent, scope, machine_at(home, system), project, "satchel")
    assert target is not None
    assert target.file.is_relative_to(home if scope is Scope.USER else project)
    if exists:
        target.file.parent.mkdir(parents=True, exist_ok=True)
        target.file.write_bytes(SAMPLES[agent.syntax])
    entry = agent.entry(scope, COMMAND, "satchel")

    assert carry_out([plan_install(target, entry)])[0].action is Result.INSTALLED
    held = parsed(agent, target.file.read_bytes())
    for key in agent.lists[-1]:
        held = held[key]
    assert held["satchel"] == entry
    assert COMMAND.program in json.dumps(entry)
    assert plan_install(target, entry).action is Result.UNCHANGED

    assert carry_out([plan_uninstall(target)])[0].action is Result.REMOVED
    assert plan_uninstall(target).action is Result.ABSENT
    if exists:
        assert target.file.read_bytes() == SAMPLES[agent.syntax]
    else:
        assert not list(project.iterdir())
        assert not target.file.parent.exists() or scope is Scope.PROJECT or target.file.parent == home


@pytest.mark.parametrize(
    ("system", "key", "file"),
    [
        (System.LINUX, "claude-desktop", ".config/Claude/claude_desktop_config.json"),
        (System.MACOS, "claude-desktop", "Library/Application Support/Claude/claude_desktop_config.json"),
        (System.WINDOWS, "claude-desktop", "AppData/Roaming/Claude/claude_desktop_config.json"),
        (System.LINUX, "vscode", ".config/Code/User/mcp.json"),
        (System.MACOS, "vscode", "Library/Application Support/Code/User/mcp.json"),
        (System.WINDOWS, "vscode", "AppData/Roaming/Code/User/mcp.json"),
        (System.MACOS, "zed", ".config/zed/settings.json"),
        (System.WINDOWS, "zed", "AppData/Roaming/Zed/settings.json"),
        (System.MACOS, "goose", ".config/goose/config.yaml"),
        (System.WINDOWS, "goose", "AppData/Roaming/Block/goose/config/config.yaml"),
        (System.WINDOWS, "cursor", ".cursor/mcp.json"),
    ],
)
def test_files_are_where_each_system_has_them(tmp_path: Path, system: System, key: str, file: str) -> None:
    target = target_for(BY_KEY[key], Scope.USER, machine_at(tmp_path, system), tmp_path, "satchel")
    assert target is not None
    assert target.file == tmp_path / file


@pytest.mark.parametrize(
    ("key", "variable", "file"),
    [
        ("opencode", "XDG_CONFIG_HOME", "opencode/opencode.json"),
        ("codex", "CODEX_HOME", "config.toml"),
        ("copilot-cli", "COPILOT_HOME", "mcp-config.json"),
        ("claude-code", "CLAUDE_CONFIG_DIR", ".claude.json"),
        ("cline", "CLINE_DIR", "data/settings/cline_mcp_settings.json"),
        ("crush", "CRUSH_GLOBAL_CONFIG", "crush.json"),
    ],
)
def test_folders_that_the_user_has_moved_are_heeded(tmp_path: Path, key: str, variable: str, file: str) -> None:
    moved = tmp_path / "moved"
    machine = machine_at(tmp_path, environment={variable: str(moved)})
    target = target_for(BY_KEY[key], Scope.USER, machine, tmp_path, "satchel")
    assert target is not None
    assert target.file == moved / file
    relative = machine_at(tmp_path, environment={variable: "here"})
    fallen_back = target_for(BY_KEY[key], Scope.USER, relative, tmp_path, "satchel")
    assert fallen_back is not None
    assert fallen_back.file.is_relative_to(tmp_path)


def test_of_several_files_the_one_that_is_there_is_used(tmp_path: Path) -> None:
    agent, machine = BY_KEY["opencode"], machine_at(tmp_path)
    folder = tmp_path / ".config" / "opencode"
    folder.mkdir(parents=True)
    (folder / "opencode.jsonc").write_text('{\n  // mine\n  "mcp": {"servers": {"a": {"type": "local"}}}\n}\n')
    target = target_for(agent, Scope.USER, machine, tmp_path, "satchel")
    assert target is not None
    assert target.file.name == "opencode.jsonc"
    change = plan_install(target, agent.entry(Scope.USER, COMMAND, "satchel"))
    assert change.after is not None
    assert entry_in(change.after.decode(), Syntax.JSON, ("mcp", "servers", "satchel")) is not None


def test_an_agent_is_in_use_where_its_files_or_folders_are(tmp_path: Path) -> None:
    machine, project = machine_at(tmp_path / "home"), tmp_path / "project"

    def used(scope: Scope) -> list[str]:
        return [agent.key for agent in AGENTS if agent.in_use(scope, machine, project, "satchel")]

    assert used(Scope.USER) == []
    (tmp_path / "home" / ".codex").mkdir(parents=True)
    (project / ".zed").mkdir(parents=True)
    (project / ".zed" / "settings.json").touch()
    assert used(Scope.USER) == ["codex"]
    assert used(Scope.PROJECT) == ["codex", "zed"]


def test_agents_are_known_by_unique_keys_in_order() -> None:
    keys = [agent.key for agent in AGENTS]
    assert keys == sorted(set(keys))
    # Whoever shares a file must want the same in it.
    shared: dict[str, list[Any]] = {}
    for agent in AGENTS:
        for file in agent.project:
            shared.setdefault(file, []).append((agent.lists, agent.entry(Scope.PROJECT, COMMAND, "satchel")))
    assert all(one == wants[0] for wants in shared.values() for one in wants)
    assert len(shared[".mcp.json"]) == 2


def test_crush_gets_slashes_that_a_shell_keeps() -> None:
    windows = Command(program="C:\\tools\\satchel.exe", args=("mcp", "D:\\work"))
    assert BY_KEY["crush"].entry(Scope.USER, windows, "satchel") == {
        "type": "stdio", "command": "C:/tools/satchel.exe", "args": ["mcp", "D:/work"],
    }  # fmt: skip


# Files


def cursor(home: Path) -> Target:
    target = target_for(BY_KEY["cursor"], Scope.USER, machine_at(home), home, "satchel")
    assert target is not None
    return target


def test_links_are_followed_and_rights_are_kept(tmp_path: Path) -> None:
    target = cursor(tmp_path)
    real = tmp_path / "dotfiles" / "mcp.json"
    for path in (real, target.file):
        path.parent.mkdir()
    real.write_text("{}\n")
    real.chmod(0o640)
    target.file.symlink_to(real)
    carry_out([plan_install(target, ENTRY)])
    assert target.file.is_symlink()
    assert json.loads(real.read_text())["mcpServers"]["satchel"] == ENTRY
    assert real.stat().st_mode & 0o777 == 0o640
    carry_out([plan_uninstall(target)])
    assert real.read_text() == "{}\n"
    assert os.listdir(real.parent) == ["mcp.json"]


def test_files_that_cannot_be_edited_are_told_and_left_alone(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    target = cursor(tmp_path)
    target.file.parent.mkdir()
    for data, problem in ((b'{"a": ', "line 1"), (b"\xff\xfe{\x00}\x00", "byte 0: not valid UTF-8")):
        target.file.write_bytes(data)
        change = carry_out([plan_install(target, ENTRY)])[0]
        assert change.action is Result.FAILED
        assert problem in change.problem
        assert target.file.read_bytes() == data
        assert plan_uninstall(target).action is Result.ABSENT
    target.file.write_bytes(b'{"satchel": ')
    assert plan_uninstall(target).action is Result.FAILED
    monkeypatch.setattr(settings_file, "MAX_BYTES", 3)
    assert "12 bytes" in plan_install(target, ENTRY).problem
    target.file.unlink()
    target.file.mkdir()
    assert "not a regular file" in plan_install(target, ENTRY).problem


def test_a_file_that_changes_meanwhile_is_left_alone(tmp_path: Path) -> None:
    target = cursor(tmp_path)
    change = plan_install(target, ENTRY)
    target.file.parent.mkdir()
    target.file.write_text('{"mine": 1}')
    done = carry_out([change])[0]
    assert (done.action, done.problem) == (Result.FAILED, "the file changed while this command ran; run it again")
    assert target.file.read_text() == '{"mine": 1}'


@pytest.mark.skipif(os.geteuid() == 0, reason="the superuser may write everywhere")
def test_a_folder_that_cannot_be_written_is_told(tmp_path: Path) -> None:
    target = cursor(tmp_path)
    tmp_path.chmod(0o500)
    try:
        done = carry_out([plan_install(target, ENTRY)])[0]
    finally:
        tmp_path.chmod(0o700)
    assert (done.action, done.problem) == (Result.FAILED, "Permission denied")


def test_nothing_is_left_when_writing_fails(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    def full(*_: object) -> None:
        raise OSError(28, "No space left on device")

    monkeypatch.setattr(os, "replace", full)
    done = carry_out([plan_install(cursor(tmp_path), ENTRY)])[0]
    assert done.problem == "No space left on device"
    assert os.listdir(tmp_path) == []


def test_one_that_fails_stops_no_other_and_two_may_share_a_file(tmp_path: Path) -> None:
    machine = machine_at(tmp_path)
    (tmp_path / ".vscode").mkdir()
    (tmp_path / ".vscode" / "mcp.json").write_text("nonsense")
    targets = [
        target
        for key in ("vscode", "claude-code", "copilot-cli")
        if (target := target_for(BY_KEY[key], Scope.PROJECT, machine, tmp_path, "satchel"))
    ]
    done = carry_out([plan_install(one, one.agent.entry(one.scope, COMMAND, one.name)) for one in targets])
    assert [change.action for change in done] == [
        Result.FAILED,
        Result.INSTALLED,
        Result.INSTALLED,
    ]
    gone = carry_out([plan_uninstall(one) for one in targets])
    assert [change.action for change in gone] == [Result.ABSENT, Result.REMOVED, Result.REMOVED]
    assert sorted(os.listdir(tmp_path)) == [".vscode"]


# What is run, and what is shown


def test_the_program_of_this_environment_is_named_by_its_path(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    python = tmp_path / "bin" / "python"
    python.parent.mkdir()
    monkeypatch.setattr(sys, "executable", str(python))
    monkeypatch.setattr(sysconfig, "get_path", lambda _: str(python.parent))
    assert server_command(None) == Command(program=str(python), args=("-m", "satchel", "mcp"))
    script = python.with_name("satchel")
    script.touch(mode=0o755)
    assert server_command(tmp_path) == Command(program=str(script), args=("mcp", str(tmp_path)))


@pytest.mark.parametrize("name", ["a$HOME", "a\nb", "a\udcff"])
def test_paths_that_would_not_arrive_are_refused(tmp_path: Path, name: str) -> None:
    with pytest.raises(InvalidOption, match="use a"):
        server_command(tmp_path / name)


def test_the_difference_is_small_and_hides_nothing() -> None:
    before = b'{\r\n  "a": "\x1b[31m",\r\n  "b": 1\r\n}\r\n'
    after = b'{\r\n  "a": "\x1b[31m",\r\n  "b": 1,\r\n  "c": "\xe2\x80\xae"\r\n}\r\n'
    assert difference("f\x1b.json", before, after) == (
        '--- f␛.json\n+++ f␛.json\n@@ -1,4 +1,5 @@\n {\n   "a": "␛[31m",\n-  "b": 1\n+  "b": 1,\n+  "c": "⟦U+202E⟧"\n }'
    )
    assert difference("x", None, b"a\n") == "--- /dev/null\n+++ x\n@@ -0,0 +1 @@\n+a"
    assert difference("x", b"a\n", None) == "--- x\n+++ /dev/null\n@@ -1 +0,0 @@\n-a"


def test_of_a_long_line_the_place_of_the_change_is_shown() -> None:
    long = json.dumps({"history": ["x" * 50] * 100, "mcpServers": {}, "z": ["y"] * 500})
    after = with_entry(long, Syntax.JSON, PATH, ENTRY)
    shown = difference("x", long.encode(), after.encode())
    assert "/opt/satchel" in shown
    assert len(shown) < 900


# What the page says


PAGE = (ROOT / "docs" / "agents.md").read_text("utf-8")
BY_HAND = Command(program="/path/to/satchel", args=("mcp", "/path/to/project"))


@pytest.mark.parametrize(("agent", "scope"), PLACES, ids=[f"{agent.key}-{scope}" for agent, scope in PLACES])
def test_the_page_shows_each_agent_and_its_entry(agent: Agent, scope: Scope) -> None:
    row = next(line for line in PAGE.splitlines() if line.startswith(f"| `{agent.key}` |"))
    assert f"[{agent.title}][" in row
    assert row.endswith("| folder |") == agent.needs_folder
    cells = row.split(" | ")
    for file in agent.project[:1]:
        assert f"`{file.replace('{name}', 'satchel')}`" in cells[3]
    usual = agent.user[0].replace("{home}", "~").replace("{claude}", "~").replace("{config}", "CONFIG")
    for name, folder in (("cline", "~/.cline"), ("codex", "~/.codex"), ("copilot", "~/.copilot"),
                         ("crush", "CONFIG/crush"), ("support", "SUPPORT"), ("name", "satchel")):  # fmt: skip
        usual = usual.replace(f"{{{name}}}", folder)
    assert f"`{usual}`" in cells[2]
    wanted: dict[str, Any] = {"satchel": agent.entry(scope, BY_HAND, "satchel")}
    for key in reversed(agent.lists[-1]):
        wanted = {key: wanted}
    shown = re.findall(rf"^```{agent.syntax}\n(.*?)^```", PAGE, re.DOTALL | re.MULTILINE)
    assert wanted in [parsed(agent, one.encode()) for one in shown]
