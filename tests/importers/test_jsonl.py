"""A workspace as JSON lines: what goes out comes in again, and what is wrong is told with its line."""

from __future__ import annotations

import io
import json
import tracemalloc
from collections.abc import Iterator
from datetime import UTC, datetime, timedelta, timezone
from pathlib import Path
from types import MappingProxyType
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from satchel.errors import InvalidInput
from satchel.importers.jsonl import read_jsonl, write_jsonl
from satchel.models.access import DefaultAccess, Effect, Grant, Group, principal
from satchel.models.block import Action, Activity, Block, BlockType, Link, LinkKind, Notice, Policy, Record
from tests.support.strategies import nasty_text

HEADER = '{"record": "workspace", "version": 1}\n'


def joined(text: str) -> str:
    """The text with the halves of a character joined, which no encoding tells from the character."""
    return text.encode("utf-16-le", "surrogatepass").decode("utf-16-le", "surrogatepass")


texts = st.one_of(st.text(st.characters(exclude_categories=()), max_size=20), nasty_text).map(joined)
json_values = st.recursive(
    st.one_of(
        st.none(),
        st.booleans(),
        st.integers(),
        st.integers(10**4000, 10**4200),
        st.floats(allow_nan=False, allow_infinity=False),
        texts,
    ),
    lambda inner: st.one_of(st.lists(inner, max_size=3), st.dictionaries(texts, inner, max_size=3)),
    max_leaves=8,
)
zones = st.integers(-86_399, 86_399).map(lambda seconds: timezone(timedelta(seconds=seconds)))
moments = st.datetimes(datetime(2, 1, 1), datetime(9998, 1, 1), timezones=zones)
line_numbers = st.integers(-(2**63), 2**63 - 1)
blocks = st.builds(
    Block,
    id=texts,
    type=st.one_of(st.sampled_from(BlockType), st.from_regex(r"[a-z][a-z0-9_.-]{0,63}", fullmatch=True)),
    source_path=texts,
    title=texts,
    qualified_name=texts,
    parent=st.one_of(st.none(), texts),
    position=st.one_of(st.floats(allow_nan=False, allow_infinity=False), st.integers()),
    start_line=line_numbers,
    end_line=line_numbers,
    signature=texts,
    summary=texts,
    language=st.one_of(st.none(), texts),
    content=texts,
    last_modified=st.one_of(st.none(), moments),
    metadata=st.dictionaries(texts, json_values, max_size=4),
    inherits=st.booleans(),
)
links = st.builds(Link, source=texts, kind=st.sampled_from(LinkKind), name=texts, target=st.one_of(st.none(), texts))
activities = st.builds(
    Activity,
    block=texts,
    actor=texts,
    action=st.one_of(st.sampled_from(Action), texts),
    timestamp=moments,
    detail=texts,
    reference=texts,
)
names = st.text(st.characters(codec="utf-8"), min_size=1, max_size=9).filter(lambda t: t.isprintable() and t.strip())
principals = st.one_of(
    st.just("*"), names.map(lambda name: f"user:{name}"), names.map(lambda name: f"group:{name}")
).filter(lambda text: principal(text) == text)
grants = st.builds(Grant, block=texts, principal=principals, effect=st.sampled_from(Effect))
groups = st.builds(Group, name=texts, members=st.lists(texts, max_size=4).map(tuple))
policies = st.builds(Policy, default=st.sampled_from(DefaultAccess))
records = st.one_of(blocks, links, activities, grants, groups, policies)


def read_lines(*lines: str) -> list[Record]:
    return list(read_jsonl(io.BytesIO("".join(lines).encode())))


@given(st.lists(records, max_size=6))
def test_law_what_is_written_is_read_again_as_it_was(some: list[Record]) -> None:
    lines = list(write_jsonl(some))
    assert all(line.isascii() and line.endswith("\n") and line.count("\n") == 1 for line in lines)
    assert read_lines(*lines) == some
    assert list(write_jsonl(read_lines(*lines))) == lines


@given(
    st.lists(
        st.one_of(
            st.binary(max_size=40),
            st.builds(json.dumps, json_values).map(str.encode),
            st.dictionaries(
                st.sampled_from(["record", "id", "type", "parent", "position", "last_modified", "metadata", "version"]),
                st.one_of(json_values, st.sampled_from(["block", "link", "page", "2026-01-01"])),
            ).map(lambda values: json.dumps(values).encode()),
        ),
        max_size=4,
    ),
    st.booleans(),
)
def test_law_any_lines_are_records_or_one_clear_error(lines: list[bytes], has_header: bool) -> None:
    data = (HEADER.encode() if has_header else b"") + b"\n".join(lines)
    problem = "line "
    try:
        for record in read_jsonl(io.BytesIO(data)):
            assert isinstance(record, Record)
    except InvalidInput as error:
        problem = str(error)
    assert problem.startswith("line ")
    assert problem.isprintable()


def test_a_workspace_looks_like_this() -> None:
    some: list[Record] = [
        Block(id="p1", type=BlockType.PAGE, title="Garden", last_modified=datetime(2026, 11, 1, 9, tzinfo=UTC)),
        Block(id="r1", type="acme.recipe", parent="p1", position=1.5, metadata={"serves": 4}, inherits=False),
        Link(source="r1", kind=LinkKind.MENTIONS, target="p1"),
        Grant(block="p1", principal="user:ann"),
        Notice(where="r1", problem="is no part of it"),
        Group(name="staff", members=("ann", "bob")),
        Policy(default=DefaultAccess.DENY),
    ]
    assert list(write_jsonl(some)) == [
        HEADER,
        '{"record": "block", "id": "p1", "type": "page", "title": "Garden", '
        '"last_modified": "2026-11-01T09:00:00+00:00"}\n',
        '{"record": "block", "id": "r1", "type": "acme.recipe", "parent": "p1", "position": 1.5, '
        '"metadata": {"serves": 4}, "inherits": false}\n',
        '{"record": "link", "source": "r1", "kind": "mentions", "target": "p1"}\n',
        '{"record": "grant", "block": "p1", "principal": "user:ann"}\n',
        '{"record": "group", "name": "staff", "members": ["ann", "bob"]}\n',
        '{"record": "policy", "default": "deny"}\n',
    ]


def read_line(line: str) -> Record:
    (record,) = read_lines(HEADER, line)
    return record


def test_people_may_write_it_by_hand() -> None:
    lines = [
        "\ufeff" + HEADER.strip() + "\r\n",
        "\n",
        ' {"type": "page", "record": "block", "id": "ü", "parent": null}',
    ]
    assert read_lines(*lines) == [Block(id="ü", type=BlockType.PAGE)]
    noon = read_line('{"record": "block", "id": "a", "type": "page", "last_modified": "2026-11-01T12:00"}')
    assert noon == Block(id="a", type="page", last_modified=datetime(2026, 11, 1, 12, tzinfo=UTC))


def test_a_refusal_of_a_plain_name_keeps_the_user_of_that_name_out() -> None:
    line = '{"record": "grant", "block": "p1", "principal": "ann", "effect": "deny"}'
    assert read_line(line) == Grant(block="p1", principal="user:ann", effect=Effect.DENY)


def test_what_has_another_form_comes_back_as_what_it_means() -> None:
    naive = Block(id="a", type="page", title="\ud83d\ude00", last_modified=datetime(2026, 11, 1))
    (back,) = read_lines(*write_jsonl([naive]))
    assert back == Block(id="a", type="page", title="😀", last_modified=datetime(2026, 11, 1, tzinfo=UTC))


def test_a_mapping_that_is_no_dict_is_an_object() -> None:
    metadata = MappingProxyType({"a": [1]})
    (back,) = read_lines(*write_jsonl([Block(id="a", type="page", metadata=metadata)]))
    assert isinstance(back, Block)
    assert back.metadata == {"a": [1]}


BLOCK = '{"record": "block", "id": "a", "type": "page", %s}'


@pytest.mark.parametrize(
    ("line", "problem"),
    [
        ("", None),
        ("hello", r"line 2='hello': is not JSON"),
        ('{"record": "block"', "line 2=.*is not JSON"),
        ('{"record": "block"} {}', "is not JSON"),
        ('["block"]', "must be an object"),
        ("null", "must be an object"),
        ('{"id": "a"}', "line 2, record=None: must be one of block, link"),
        ('{"record": "blob"}', "line 2, record='blob': must be one of block, link"),
        ('{"record": ["block"]}', "must be one of block, link"),
        ('{"record": "notice", "where": "a", "problem": "b"}', "must be one of block, link"),
        (HEADER, "record='workspace': must be one of"),
        ('{"record": "block", "type": "page"}', "line 2, id=None: is missing"),
        ('{"record": "policy"}', "line 2, default=None: is missing"),
        (BLOCK % '"colour": "red"', "line 2='colour': is not a field of this record; known fields: id, type"),
        (BLOCK % '"title": 7', "line 2, title=7: must be text"),
        (BLOCK % '"title": null', "line 2, title=None: must be text"),
        (BLOCK % '"position": "1"', "line 2, position='1': must be a number"),
        (BLOCK % '"position": true', "line 2, position=True: must be a number"),
        (BLOCK % f'"position": 1{"0" * 400}', "line 2, position=1000*….*: must be a finite number"),
        (BLOCK % '"start_line": 1.5', "line 2, start_line=1.5: must be a whole number"),
        (BLOCK % f'"end_line": {2**63}', "must be a whole number of at most 64 bits"),
        (BLOCK % '"inherits": 1', "line 2, inherits=1: must be true or false"),
        (BLOCK % '"metadata": []', "line 2, metadata=.*: must be an object"),
        (BLOCK % '"last_modified": "yesterday"', "line 2, last_modified='yesterday': must be a time such as"),
        (BLOCK % '"last_modified": 1700000000', "must be a time such as"),
        (BLOCK % '"last_modified": "0001-01-01T00:00:00+10:00"', "within the years 1 to 9999"),
        (BLOCK % '"metadata": {"a": NaN}', "line 2=.*: contains NaN"),
        (BLOCK % '"metadata": {"a": -Infinity}', "contains -Infinity"),
        (BLOCK % '"position": 1e999', "contains 1e999, which is too large"),
        (BLOCK % f'"metadata": {{"a": {"9" * 5000}}}', "a number of 5,000 digits; write it as text"),
        (BLOCK % '"title": "a", "title": "b"', 'has "title" twice in one object'),
        (BLOCK % '"metadata": {"a": {"b": 1, "b": 1}}', 'has "b" twice in one object'),
        (BLOCK % f'"metadata": {{"a": {"[" * 200}{"]" * 200}}}', "nested more than 100 levels"),
        (BLOCK % f'"metadata": {{"a": {"[" * 100_000}{"]" * 100_000}}}', "nested too deeply"),
        ("[" * 1_000_000, "nested too deeply"),
        ('{"a":' * 1_000_000, "nested too deeply"),
        ('{"record": "block", "id": "a", "type": "Page!"}', "line 2, type='Page!': must be a known block type"),
        ('{"record": "link", "source": "a", "kind": "likes"}', "line 2, kind='likes': must be one of calls"),
        ('{"record": "link", "source": "a", "kind": ["calls"]}', "must be one of calls"),
        ('{"record": "group", "name": "a", "members": "ann"}', "members='ann': must be a list of texts"),
        ('{"record": "group", "name": "a", "members": [1]}', "must be a list of texts"),
        ('{"record": "grant", "block": "a", "principal": ""}', "line 2, principal='': must be a name"),
        ('{"record": "grant", "block": "a", "principal": "user:ann", "effect": "maybe"}', "must be one of allow, deny"),
        ('{"record": "activity", "block": "a", "actor": "b", "action": "edit"}', "line 2, timestamp=None: is missing"),
    ],
    ids=lambda value: str(value)[:40],
)
def test_a_line_that_is_wrong_is_an_error_that_says_where_and_what(line: str, problem: str | None) -> None:
    if problem is None:
        assert read_lines(HEADER, line) == []
        return
    with pytest.raises(InvalidInput, match=problem) as caught:
        read_lines(HEADER, line)
    assert str(caught.value).startswith("line 2")
    assert len(str(caught.value)) < 500


@pytest.mark.parametrize(
    ("data", "problem"),
    [
        (b"", "line 1='': is missing; a workspace begins with"),
        (b"\n \n", "a workspace begins with"),
        (b'{"record": "block", "id": "a", "type": "page"}', "must be the header of a workspace"),
        (b'{"record": "workspace"}', "line 1, version=None: must be a whole number"),
        (b'{"record": "workspace", "version": true}', "must be a whole number"),
        (b'{"record": "workspace", "version": 0}', "must be a whole number"),
        (b'{"record": "workspace", "version": 2}', "line 1, version=2: is newer than 1.*update"),
        (b'{"record": "workspace", "version": 1, "by": "me"}', "'by': is not a field"),
        (HEADER.encode() + b'{"record": "\xff"}', r"line 2=b'\\xff': is not UTF-8"),
        (HEADER.encode("utf-16"), "is not UTF-8"),
        (HEADER.encode() + b"x" * 16_000_001, r"line 2='xxx.*longer than 16,000,000 characters"),
    ],
    ids=lambda value: str(value)[:40],
)
def test_a_file_that_is_no_workspace_is_an_error(data: bytes, problem: str) -> None:
    with pytest.raises(InvalidInput, match=problem):
        list(read_jsonl(io.BytesIO(data)))


@pytest.mark.parametrize(
    ("record", "problem"),
    [
        (Block(id="a", type="Page!"), "block.type='Page!': must be a known block type"),
        (Block(id="a", type="page", position=float("nan")), "block.position=nan"),
        (Block(id="a", type="page", position=10**400), "block.position="),
        (Block(id="a", type="page", start_line=2**70), "block.start_line="),
        (Block(id="a", type="page", metadata={"a": float("inf")}), "block.metadata=.*contains inf"),
        (Block(id="a", type="page", metadata={"a": (1, 2)}), "contains a tuple"),
        (Block(id="a", type="page", metadata={"a": UTC}), "contains a timezone"),
        (Block(id="a", type="page", metadata={"a": {1: 2}}), "a key of type int"),
        (Block(id="a", type="page", metadata={"a": 10**5000}), "block.metadata='dict': contains a number"),
        (Block(id="a", type="page", content="x" * 16_000_000), "split it"),
        (Grant(block="a", principal="ann"), "would be read as 'user:ann'"),
        ("block", "record='str': must be one of"),
    ],
    ids=lambda value: str(type(value)),
)
def test_what_could_not_be_read_again_is_not_written(record: Any, problem: str) -> None:
    with pytest.raises(InvalidInput, match=problem):
        list(write_jsonl([record]))


def test_a_value_that_holds_itself_is_an_error() -> None:
    endless: list[Any] = []
    endless.append(endless)
    with pytest.raises(InvalidInput, match="nested more than"):
        list(write_jsonl([Block(id="a", type="page", metadata={"a": endless})]))


@pytest.mark.slow
def test_memory_does_not_grow_with_the_workspace(tmp_path: Path) -> None:
    def many() -> Iterator[Record]:
        for number in range(20_000):
            yield Block(id=str(number), type="page", content="x" * 1000)

    path = tmp_path / "workspace.jsonl"
    tracemalloc.start()
    with path.open("w") as out:
        out.writelines(write_jsonl(many()))
    with path.open("rb") as file:
        assert sum(1 for _ in read_jsonl(file)) == 20_000
    peak = tracemalloc.get_traced_memory()[1]
    tracemalloc.stop()
    assert path.stat().st_size > 20_000_000
    assert peak < 2_000_000
