from __future__ import annotations

import dataclasses
import inspect
from typing import Any

import pytest

import satchel
from satchel import Entity, EntityResult, KnowledgeChunk
from satchel.errors import InvalidHit
from satchel.models.chunk import FormattedChunk


@pytest.mark.requirement("S0.formatted-chunk.line-range")
@pytest.mark.parametrize(("start", "end", "says"), [(7, 7, "line 7"), (7, 9, "lines 7-9"), (0, 0, "line 0")])
def test_a_line_range_reads_naturally(start: int, end: int, says: str) -> None:
    assert FormattedChunk(start_line=start, end_line=end).line_range == says


@pytest.mark.requirement("S0.formatted-chunk.character-count")
@pytest.mark.parametrize("text", ["", "abc", "漢字🙂\n"])
def test_the_character_count_is_the_length_of_the_text(text: str) -> None:
    assert FormattedChunk(formatted_content=text).character_count == len(text)


@pytest.mark.requirement("S0.formatted-chunk.text", "S0.formatted-chunk.origin")
def test_a_formatted_chunk_has_quiet_defaults() -> None:
    chunk = FormattedChunk()
    assert dataclasses.astuple(chunk) == ("", 0, "", 0, 0, 0.0, None, None)


@pytest.mark.requirement("S0.formatted-chunk.source-chunk")
def test_a_formatted_chunk_keeps_the_very_chunk_it_came_from() -> None:
    source = KnowledgeChunk("x")
    assert FormattedChunk(source_chunk=source).source_chunk is source


@pytest.mark.requirement("S0.quality.frozen")
def test_a_formatted_chunk_cannot_be_changed() -> None:
    with pytest.raises(dataclasses.FrozenInstanceError):
        FormattedChunk().language = "x"  # type: ignore[misc]
    assert not hasattr(FormattedChunk(), "__dict__")


@pytest.mark.parametrize(
    ("fields", "wrong"),
    [
        ({"relevance": 1.2}, "relevance"),
        ({"relevance": -0.1}, "relevance"),
        ({"relevance": float("nan")}, "relevance"),
        ({"relevance": float("inf")}, "relevance"),
        ({"relevance": "0.5"}, "relevance"),
        ({"relevance": True}, "relevance"),
        ({"start_line": 5, "end_line": 4}, "end_line"),
        ({"start_line": -1, "end_line": 4}, "start_line"),
        ({"start_line": 5}, "end_line"),
        ({"end_line": 5}, "start_line"),
        ({"start_line": 1.0, "end_line": 2}, "start_line"),
        ({"file_path": 3}, "file_path"),
        ({"expanded_context": 3}, "expanded_context"),
    ],
)
def test_a_chunk_that_cannot_be_right_is_refused_by_field(fields: dict[str, Any], wrong: str) -> None:
    with pytest.raises(InvalidHit) as raised:
        KnowledgeChunk("x", **fields)
    assert raised.value.field == wrong
    assert raised.value.code == "invalid-hit"


def test_content_must_be_text() -> None:
    with pytest.raises(InvalidHit, match="content=None: must be text"):
        KnowledgeChunk(None)  # type: ignore[arg-type]


def test_bytes_that_are_not_utf8_are_kept_as_such() -> None:
    chunk = KnowledgeChunk(b"ok \xff")  # type: ignore[arg-type]
    assert chunk.content.encode("utf-8", "surrogateescape") == b"ok \xff"


def test_a_chunk_without_an_id_gets_one_from_its_place_or_its_text() -> None:
    assert KnowledgeChunk("x", file_path="a.py", start_line=1, end_line=2).id == "a.py:1-2"
    assert KnowledgeChunk("x", file_path="a.py").id == KnowledgeChunk("x", file_path="a.py").id
    assert KnowledgeChunk("x").id != KnowledgeChunk("y").id
    assert KnowledgeChunk("x", id="mine").id == "mine"


def test_a_long_value_is_shortened_in_the_message() -> None:
    with pytest.raises(InvalidHit) as raised:
        KnowledgeChunk("x", relevance="9" * 5000)  # type: ignore[arg-type]
    assert len(str(raised.value)) < 200


@pytest.mark.requirement("S2.entity.fields")
def test_an_entity_needs_a_name_and_a_type_only() -> None:
    entity = Entity("e1", "login", "function")
    assert (entity.file_path, entity.start_line, entity.summary, entity.content) == (None, None, None, None)
    result = EntityResult(entity, 0.4)
    assert (result.entity_id, result.entity, result.score) == ("e1", entity, 0.4)


@pytest.mark.parametrize("field", ["id", "name", "type"])
def test_an_entity_without_a_name_is_refused(field: str) -> None:
    fields = {"id": "e", "name": "n", "type": "t"} | {field: ""}
    with pytest.raises(InvalidHit, match=f"{field}=''"):
        Entity(**fields)  # type: ignore[arg-type]


def test_an_entity_score_is_a_relevance() -> None:
    with pytest.raises(InvalidHit, match="score=3"):
        EntityResult(Entity("e", "n", "t"), 3)
    with pytest.raises(InvalidHit, match="start_line"):
        Entity("e", "n", "t", "f", -2)


@pytest.mark.requirement("S0.quality.docstrings", "S1.quality.docstrings")
def test_every_public_name_says_what_one_gets() -> None:
    for name in satchel.__all__:
        thing = getattr(satchel, name)
        assert inspect.getdoc(thing), name
        if inspect.isclass(thing):
            for attribute, member in vars(thing).items():
                if not attribute.startswith("_") and (inspect.isfunction(member) or isinstance(member, property)):
                    assert inspect.getdoc(member), f"{name}.{attribute}"


@pytest.mark.parametrize(
    "fields",
    [{"id": 5}, {"name": 5}, {"language": 5}, {"type": None}, {"last_modified": "2026-01-01"}, {"relevance": 10**400}],
)
def test_a_field_of_the_wrong_type_is_refused(fields: dict[str, object]) -> None:
    with pytest.raises(InvalidHit) as raised:
        KnowledgeChunk("x", **fields)  # type: ignore[arg-type]
    assert raised.value.field == next(iter(fields))


def test_numbers_of_numpy_are_numbers() -> None:
    numpy = pytest.importorskip("numpy")
    chunk = KnowledgeChunk(
        "x", file_path="a", relevance=numpy.float32(0.5), start_line=numpy.int64(3), end_line=numpy.int64(3)
    )
    assert (chunk.relevance, chunk.start_line) == (0.5, 3)
    assert type(chunk.relevance) is float
