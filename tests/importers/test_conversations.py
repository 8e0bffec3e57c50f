"""Conversations from files as people have them: exports of ChatGPT and Claude, Claude Code's sessions, JSON lines."""

from __future__ import annotations

import io
import json
import os
import random
import re
import zipfile
from datetime import UTC, datetime
from pathlib import Path
from typing import Any
from uuid import UUID

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from satchel.errors import InvalidInput
from satchel.importers import conversations, detect_importer, read_records
from satchel.importers import json_values as values_module
from satchel.importers.conversations import read_conversations
from satchel.importers.jsonl import read_jsonl, write_jsonl
from satchel.models.block import Block, Link, LinkKind, Notice, Record

SESSION = "6f1d9a52-3b1e-4f0e-9a55-0f5a5a5a5a5a"


def uuid(number: int) -> str:
    return str(UUID(int=number))


def written(tmp_path: Path, text: str | bytes, name: str = "chat.jsonl") -> Path:
    path = tmp_path / name
    path.write_bytes(text.encode("utf-8", "surrogatepass") if isinstance(text, str) else text)
    return path


def lines_of(*values: Any) -> str:
    return "".join(json.dumps(value) + "\n" for value in values)


class Told:
    """What reading gave, by kind."""

    def __init__(self, records: list[Record]) -> None:
        blocks = [one for one in records if isinstance(one, Block)]
        self.sessions = [one for one in blocks if one.type == "session"]
        self.messages = [one for one in blocks if one.type == "message"]
        self.notices = [one for one in records if isinstance(one, Notice)]
        links = [one for one in records if isinstance(one, Link)]
        assert {one.kind for one in links} <= {LinkKind.REPLY}
        self.replies = {one.source: one.target for one in links}
        assert len(self.replies) == len(links)
        assert len({one.id for one in blocks}) == len(blocks)
        ids = {one.id for one in self.messages}
        assert all(source in ids and target in ids for source, target in self.replies.items())
        assert {one.parent for one in self.messages} <= {one.id for one in self.sessions}

    @property
    def said(self) -> list[tuple[str, str]]:
        return [(one.metadata["role"], one.content) for one in self.messages]


def told(path: Path) -> Told:
    return Told(list(read_conversations(path)))


# -- JSON lines


def test_lines_with_roles_become_one_session(tmp_path: Path) -> None:
    text = lines_of(
        {"role": "system", "content": "Be kind."},
        {"role": "user", "content": "How do I retry?\nPlease.", "timestamp": "2026-11-01T09:00:00Z", "name": "Ann"},
        {"role": "assistant", "content": "With backoff.", "timestamp": 1793523660, "model": "tiny-1"},
        {"role": "user", "content": "Thanks", "timestamp": 1793523720000},
    )
    found = told(written(tmp_path, text))
    (session,) = found.sessions
    assert re.fullmatch(r"session-[0-9a-f]{16}", session.id)
    assert session.title == "How do I retry?"
    assert session.last_modified == datetime(2026, 11, 1, 9, 2, tzinfo=UTC)
    assert session.metadata == {"source": "jsonl", "model": "tiny-1"}
    assert found.said == [
        ("user", "How do I retry?\nPlease."),
        ("assistant", "With backoff."),
        ("user", "Thanks"),
    ]
    first, second, third = found.messages
    assert [one.id for one in found.messages] == [f"{session.id}/{number}" for number in (1, 2, 3)]
    assert [one.position for one in found.messages] == [1, 2, 3]
    assert first.metadata == {"role": "user", "name": "Ann"}
    assert second.last_modified == datetime(2026, 11, 1, 9, 1, tzinfo=UTC)
    assert found.replies == {second.id: first.id, third.id: second.id}
    assert found.notices == []


def test_ids_stay_when_the_file_grows(tmp_path: Path) -> None:
    text = lines_of({"role": "user", "content": "One"}, {"role": "assistant", "content": "Two"})
    before = told(written(tmp_path, text))
    after = told(written(tmp_path, text + lines_of({"role": "user", "content": "Three"})))
    assert after.sessions[0].id == before.sessions[0].id
    assert [one.id for one in after.messages][:2] == [one.id for one in before.messages]


def test_lines_may_say_which_session_they_belong_to(tmp_path: Path) -> None:
    text = lines_of(
        {"role": "user", "content": "A1", "session": "a"},
        {"role": "user", "content": "B1", "session": "b"},
        {"role": "assistant", "content": "A2", "session": "a"},
        {"role": "assistant", "content": "C1", "conversation_id": SESSION},
    )
    found = told(written(tmp_path, text))
    a, b, c = found.sessions
    assert c.id == SESSION
    assert [(one.parent, one.content) for one in found.messages] == [
        (a.id, "A1"),
        (b.id, "B1"),
        (a.id, "A2"),
        (c.id, "C1"),
    ]
    assert found.replies == {f"{a.id}/2": f"{a.id}/1"}


def test_parts_and_tools_are_kept_as_text_and_pictures_as_notices(tmp_path: Path) -> None:
    call = {"name": "see", "arguments": '{"x": 1}'}
    text = lines_of(
        {
            "role": "user",
            "content": [
                {"type": "text", "text": "Look:"},
                {"type": "image_url", "image_url": {"url": "data:image/png;base64,AAAA"}},
                {"type": "input_text", "text": "what is it?"},
            ],
        },
        {"role": "assistant", "content": None, "tool_calls": [{"type": "function", "function": call}]},
        {"role": "tool", "content": "a cat"},
        {"role": "user", "content": [{"type": "file", "file_name": "plan.pdf"}]},
    )  # fmt: skip
    found = told(written(tmp_path, text))
    assert found.said == [("user", "Look:\n\nwhat is it?"), ("assistant", 'see({"x": 1})'), ("tool", "a cat")]
    assert [(one.where, one.problem) for one in found.notices] == [
        ("chat.jsonl, line 1, message 1", "an attachment (image_url) could not be imported; only the text was"),
        ("chat.jsonl, line 4, message 4", "the attachment plan.pdf could not be imported; only the text was"),
    ]


def test_an_id_that_is_not_one_of_the_message_loses_no_message(tmp_path: Path) -> None:
    text = lines_of(*({"role": "user", "content": f"No. {number}", "id": "ann"} for number in range(3)))
    found = told(written(tmp_path, text))
    assert [one.content for one in found.messages] == ["No. 0", "No. 1", "No. 2"]


def test_many_attachments_are_one_short_notice(tmp_path: Path) -> None:
    parts = [{"type": "file", "name": f"{number}.pdf"} for number in range(1000)]
    (notice,) = told(written(tmp_path, lines_of({"role": "user", "content": ["Hi", *parts]}))).notices
    assert notice.problem.endswith("the attachment 4.pdf and 995 more could not be imported; only the text was")


def test_many_conversations_of_one_id_do_not_take_long(tmp_path: Path) -> None:
    one = claude(claude_message(1, "human", "Hi"))
    found = told(written(tmp_path, json.dumps([one] * 20_000)))
    assert [found.sessions[number].id for number in (0, 1, 19_999)] == [SESSION, f"{SESSION}~2", f"{SESSION}~20000"]


def test_a_line_that_is_no_message_is_a_notice(tmp_path: Path) -> None:
    text = lines_of({"role": "user", "content": "Hi", "time": "soon"}) + "{broken\n\n[1]\n" + '{"content": "who?"}\n'
    found = told(written(tmp_path, text))
    assert found.said == [("user", "Hi")]
    assert [one.where for one in found.notices] == [f"chat.jsonl, line {number}" for number in (1, 2, 4, 5)]


@pytest.mark.parametrize(
    ("said", "meant"),
    [
        ("2026-11-01T09:00:00+02:00", datetime(2026, 11, 1, 7, tzinfo=UTC)),
        ("2026-11-01 09:00", datetime(2026, 11, 1, 9, tzinfo=UTC)),
        (1700000000, datetime(2023, 11, 14, 22, 13, 20, tzinfo=UTC)),
        (1700000000.5, datetime(2023, 11, 14, 22, 13, 20, 500_000, tzinfo=UTC)),
        ("1700000000", datetime(2023, 11, 14, 22, 13, 20, tzinfo=UTC)),
        (1700000000000, datetime(2023, 11, 14, 22, 13, 20, tzinfo=UTC)),
        (1700000000000000, datetime(2023, 11, 14, 22, 13, 20, tzinfo=UTC)),
        (10**400, None),
        (-1e300, None),
        (float("nan"), None),
        ("0001-01-01T00:00:00+10:00", None),
        (True, None),
        ([], None),
        ("\ud800", None),
    ],
    ids=repr,
)
def test_times_are_moments_or_nothing(tmp_path: Path, said: Any, meant: datetime | None) -> None:
    (message,) = told(written(tmp_path, lines_of({"role": "user", "content": "x", "timestamp": said}))).messages
    assert message.last_modified == meant


def claude_code(number: int, role: str, content: Any, parent: int | None, **more: Any) -> dict[str, Any]:
    return {
        "type": role,
        "message": {"role": role, "content": content},
        "uuid": uuid(number),
        "parentUuid": uuid(parent) if parent else None,
        "timestamp": f"2026-11-01T09:00:{number:02}.000Z",
        "sessionId": SESSION,
        **more,
    }


def test_a_session_of_claude_code_is_read_with_its_own_ids_and_replies(tmp_path: Path) -> None:
    text = lines_of(
        {"type": "summary", "summary": "Fixing the retry", "leafUuid": uuid(6)},
        {"type": "file-history-snapshot", "messageId": uuid(1), "snapshot": {}},
        claude_code(1, "user", "Fix retry", None),
        claude_code(2, "user", "<hidden>", 1, isMeta=True),
        claude_code(3, "assistant", [{"type": "thinking", "thinking": "hm"}], 2),
        claude_code(4, "assistant", [{"type": "tool_use", "name": "Read", "input": {"path": "retry.py"}}], 3),
        claude_code(5, "user", [{"type": "tool_result", "content": [{"type": "text", "text": "def retry"}]}], 4),
        claude_code(6, "assistant", [{"type": "text", "text": "Fixed."}], 5),
        claude_code(7, "user", "No, differently", 1),
        claude_code(6, "assistant", [{"type": "text", "text": "Fixed."}], 5),
        claude_code(8, "user", "Subtask", None, isSidechain=True),
    )
    found = told(written(tmp_path, text, "s.jsonl"))
    (session,) = found.sessions
    assert (session.id, session.title) == (SESSION, "Fixing the retry")
    assert session.metadata == {"source": "claude-code"}
    assert found.said == [
        ("user", "Fix retry"),
        ("assistant", 'Read({"path": "retry.py"})'),
        ("tool", "def retry"),
        ("assistant", "Fixed."),
        ("user", "No, differently"),
        ("user", "Subtask"),
    ]
    assert [one.id for one in found.messages] == [uuid(number) for number in (1, 4, 5, 6, 7, 8)]
    # What answers a message that was left out answers what that one answered.
    assert found.replies == {uuid(4): uuid(1), uuid(5): uuid(4), uuid(6): uuid(5), uuid(7): uuid(1)}
    assert [one.problem for one in found.notices] == [f"the message {uuid(6)} is a duplicate; it was left out"]


def test_a_folder_of_sessions_is_read_and_what_holds_none_is_a_notice(tmp_path: Path) -> None:
    written(tmp_path, lines_of(claude_code(1, "user", "One", None)), "a.jsonl")
    written(tmp_path, lines_of({"type": "summary", "summary": "nothing"}), "b.jsonl")
    written(tmp_path, lines_of(claude_code(2, "user", "Two", None, sessionId=uuid(9))), "c.jsonl")
    (tmp_path / "d.jsonl").symlink_to(tmp_path / "a.jsonl")
    os.mkfifo(tmp_path / "e.jsonl")
    found = told(tmp_path)
    assert [one.content for one in found.messages] == ["One", "Two"]
    assert [one.where for one in found.notices] == ["b.jsonl", "d.jsonl", "e.jsonl"]


# -- ChatGPT


def node(key: str, parent: str | None, role: str, content: Any, **more: Any) -> dict[str, Any]:
    content = {"content_type": "text", "parts": [content]} if isinstance(content, str) else content
    message = {"id": key, "author": {"role": role}, "content": content, "create_time": 1700000000.0, **more}
    return {"id": key, "parent": parent, "children": [], "message": message if role else None}


def chatgpt(*nodes: dict[str, Any], current: str | None = None, **more: Any) -> dict[str, Any]:
    return {
        "title": "Retry",
        "create_time": 1700000000.0,
        "update_time": 1700000100.0,
        "mapping": {one["id"]: one for one in nodes},
        "current_node": current or nodes[-1]["id"],
        "conversation_id": SESSION,
        "default_model_slug": "gpt-x",
        **more,
    }


BRANCHED = chatgpt(
    node("root", None, "", ""),
    node("sys", "root", "system", "You are"),
    node(uuid(1), "sys", "user", "How?"),
    node(uuid(2), uuid(1), "assistant", "Badly."),
    node(uuid(3), uuid(1), "assistant", {"content_type": "code", "text": "run()"}, recipient="python"),
    node(uuid(4), uuid(3), "tool", {"content_type": "execution_output", "text": "42"}),
    node(uuid(5), uuid(4), "assistant", {"content_type": "thoughts", "thoughts": [{"content": "hm"}]}),
    node(uuid(6), uuid(5), "assistant", "Well.", metadata={"model_slug": "gpt-y"}),
    node(uuid(7), uuid(6), "user", "secret", metadata={"is_visually_hidden_from_conversation": True}),
    node(
        uuid(8), uuid(7), "user",
        {"content_type": "multimodal_text", "parts": [{"content_type": "image_asset_pointer"}, "And this?"]},
        metadata={"attachments": [{"name": "cat.png"}]},
    ),
)  # fmt: skip


def test_the_shown_branch_of_a_chatgpt_conversation_is_taken_over(tmp_path: Path) -> None:
    found = told(written(tmp_path, json.dumps([BRANCHED]), "conversations.json"))
    (session,) = found.sessions
    assert (session.id, session.title) == (SESSION, "Retry")
    assert session.last_modified == datetime.fromtimestamp(1700000100, UTC)
    assert session.metadata == {"source": "chatgpt", "model": "gpt-x"}
    assert found.said == [
        ("user", "How?"),
        ("assistant", "run()"),
        ("tool", "42"),
        ("assistant", "Well."),
        ("user", "And this?"),
    ]
    assert found.replies == {uuid(3): uuid(1), uuid(4): uuid(3), uuid(6): uuid(4), uuid(8): uuid(6)}
    assert found.messages[3].metadata == {"role": "assistant", "model": "gpt-y"}
    where = "conversations.json, conversation 1"
    assert [(one.where, one.problem) for one in found.notices] == [
        (where, "messages on inactive branches were left out: 1"),
        (
            f"{where}, message 5",
            "an attachment (image_asset_pointer), the attachment cat.png could not be imported; only the text was",
        ),
    ]


def test_a_chatgpt_conversation_without_a_current_node_is_read_to_its_last_leaf(tmp_path: Path) -> None:
    nodes = [node("a", None, "user", "One"), node("b", "a", "assistant", "Two")]
    nodes[0]["children"] = ["b"]
    found = told(written(tmp_path, json.dumps([chatgpt(*nodes, current="nowhere", conversation_id=None)])))
    assert [one.content for one in found.messages] == ["One", "Two"]
    assert re.fullmatch(r"session-[0-9a-f]{16}", found.sessions[0].id)
    assert [one.id for one in found.messages] == [f"{found.sessions[0].id}/a", f"{found.sessions[0].id}/b"]


def test_a_chatgpt_tree_that_is_a_circle_ends(tmp_path: Path) -> None:
    circle = chatgpt(node("a", "b", "user", "One"), node("b", "a", "assistant", "Two"))
    assert [one.content for one in told(written(tmp_path, json.dumps([circle]))).messages] == ["One", "Two"]


def test_a_copied_conversation_has_ids_of_its_own(tmp_path: Path) -> None:
    first = chatgpt(node(uuid(1), None, "user", "One"))
    second = chatgpt(node(uuid(1), None, "user", "One"), conversation_id=uuid(50))
    found = told(written(tmp_path, json.dumps([first, second, first])))
    assert [one.id for one in found.messages] == [uuid(1), f"{uuid(50)}/{uuid(1)}", f"{SESSION}~2/{uuid(1)}"]


def test_an_export_is_read_from_its_folder_and_its_zip_too(tmp_path: Path) -> None:
    folder = tmp_path / "export"
    folder.mkdir()
    written(folder, json.dumps([BRANCHED]), "conversations.json")
    written(folder, "{}", "user.json")
    alone = list(read_conversations(folder / "conversations.json"))
    assert list(read_conversations(folder)) == alone
    with zipfile.ZipFile(tmp_path / "export.zip", "w", zipfile.ZIP_DEFLATED) as archive:
        archive.write(folder / "conversations.json", "conversations.json")
        archive.writestr("user.json", "{}")
        archive.writestr("cat.png", b"\x89PNG")
    assert list(read_conversations(tmp_path / "export.zip")) == alone


def test_an_export_in_several_files_is_read_whole(tmp_path: Path) -> None:
    for number in range(2):
        one = chatgpt(node(uuid(number), None, "user", f"No. {number}"), conversation_id=uuid(90 + number))
        written(tmp_path, json.dumps([one]), f"conversations-00{number}.json")
    assert [one.content for one in told(tmp_path).messages] == ["No. 0", "No. 1"]


# -- Claude


def claude_message(number: int, sender: str, text: str, parent: int | None = None, **more: Any) -> dict[str, Any]:
    message = {"uuid": uuid(number), "sender": sender, "text": text, "created_at": "2026-11-01T09:00:00.5Z", **more}
    return message | ({"parent_message_uuid": uuid(parent)} if parent is not None else {})


def claude(*messages: dict[str, Any], **more: Any) -> dict[str, Any]:
    return {"uuid": SESSION, "name": "Garden", "updated_at": "2026-11-02T00:00:00Z", "chat_messages": messages, **more}


def test_an_export_of_claude_is_read_without_the_branches_that_were_left(tmp_path: Path) -> None:
    value = claude(
        claude_message(1, "human", "What grows?", 0, attachments=[{"file_name": "soil.pdf"}]),
        claude_message(2, "assistant", "Weeds.", 1),
        claude_message(
            3, "assistant", "", 1,
            content=[
                {"type": "thinking", "thinking": "hm"},
                {"type": "text", "text": "Beans."},
                {"type": "tool_use", "name": "search", "input": {"q": "beans"}},
                {"type": "tool_result", "content": [{"type": "text", "text": "green"}]},
            ],
        ),
        claude_message(4, "human", "Thanks", 3),
    )  # fmt: skip
    found = told(written(tmp_path, json.dumps([value], indent=2), "conversations.json"))
    (session,) = found.sessions
    assert (session.id, session.title, session.metadata) == (SESSION, "Garden", {"source": "claude"})
    assert session.last_modified == datetime(2026, 11, 2, tzinfo=UTC)
    assert found.said == [
        ("user", "What grows?"),
        ("assistant", 'Beans.\n\nsearch({"q": "beans"})\n\ngreen'),
        ("user", "Thanks"),
    ]
    assert found.replies == {uuid(3): uuid(1), uuid(4): uuid(3)}
    assert [one.problem for one in found.notices] == [
        "messages on inactive branches were left out: 1",
        "the attachment soil.pdf could not be imported; only the text was",
    ]


def test_an_older_export_of_claude_is_a_row_of_messages(tmp_path: Path) -> None:
    value = claude(*(claude_message(n, "human" if n % 2 else "assistant", f"No. {n}") for n in range(1, 5)))
    found = told(written(tmp_path, json.dumps(value)))
    assert [one.content for one in found.messages] == ["No. 1", "No. 2", "No. 3", "No. 4"]
    assert found.replies == {uuid(n): uuid(n - 1) for n in range(2, 5)}


def test_what_is_no_conversation_in_an_export_is_a_notice(tmp_path: Path) -> None:
    values = [claude(), 7, claude(claude_message(1, "human", "Hi")), {"foo": 1}]
    path = written(tmp_path, json.dumps(values))
    found = told(path)
    assert [one.content for one in found.messages] == ["Hi"]
    assert [one.where for one in found.notices] == [f"chat.jsonl, conversation {number}" for number in (1, 2, 4)]


# -- what can be wrong


@pytest.mark.parametrize(
    "data",
    [
        b"",
        b"  \n ",
        b"hello",
        b"\xff\xfe\x00\x01",
        b'"text"',
        b"null",
        b"{}",
        b'{"a": 1}\n{"b": 2}\n',
        b'{"role": "user"}',
        b'{"role": "system", "content": "only"}',
        b"[1, 2]",
        b"[",
        b"[{",
        b'[{"mapping": {}}',
        b'[{"mapping": {}},]',
        b'[{"mapping": {}}] x',
        b'[{"mapping": {}} {"mapping": {}}]',
        b"[" * 100_000,
        b'[{"mapping":' * 50_000,
        b'{"role": "user", "content": ' + b"[" * 100_000,
        b'[{"a": ' + b"9" * 5000 + b"}]",
        b'{"role": "user", "content": "' + b"x" * 16_000_001 + b'"}',
        b'[{"mapping": {}, "x": "' + b"x" * 34_000_000 + b'"}]',
        b"PK\x03\x04 and so on",
        b"PK\x05\x06",
        b"PK\x05\x06" + b"\x00" * 18,
    ],
    ids=lambda data: repr(data[:30]),
)
def test_what_is_no_conversation_at_all_is_one_clear_error(tmp_path: Path, data: bytes) -> None:
    path = written(tmp_path, data)
    with pytest.raises(InvalidInput, match="path=") as caught:
        list(read_conversations(path))
    assert str(caught.value).isprintable()
    assert len(str(caught.value)) < 600


def test_a_place_where_nothing_is_is_an_error(tmp_path: Path) -> None:
    os.mkfifo(tmp_path / "pipe")
    (tmp_path / "folder").mkdir()
    for name in ("nowhere", "pipe", "folder", "nul\0"):
        with pytest.raises(InvalidInput, match="path="):
            list(read_conversations(tmp_path / name))


def packed(path: Path, **entries: bytes) -> Path:
    with zipfile.ZipFile(path, "w", zipfile.ZIP_DEFLATED) as archive:
        for name, data in entries.items():
            archive.writestr(name.replace("__", "/") + ".json", data)
    return path


def test_an_archive_that_was_made_to_harm_is_refused(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    path = tmp_path / "x.zip"
    with pytest.raises(InvalidInput, match=r"contains no conversations\.json"):
        list(read_conversations(packed(path, other=b"[]", a__b__conversations=b"[]")))
    with pytest.raises(InvalidInput, match="more than 200 times its size"):
        list(read_conversations(packed(path, conversations=b"[" + b" " * 30_000_000 + b"]")))
    with zipfile.ZipFile(path, "w", zipfile.ZIP_LZMA) as archive:
        archive.writestr("conversations.json", "[]")
    with pytest.raises(InvalidInput, match="unsupported compression"):
        list(read_conversations(path))
    with zipfile.ZipFile(path, "w") as archive:
        archive.writestr("conversations.json", "[]")
        with pytest.warns(UserWarning, match="Duplicate"):
            archive.writestr("conversations.json", "[]")
    with pytest.raises(InvalidInput, match="two files with the same name"):
        list(read_conversations(path))
    packed(path, conversations=b"[]")
    data = bytearray(path.read_bytes())
    data[data.index(b"PK\x01\x02") + 8] |= 1
    path.write_bytes(data)
    with pytest.raises(InvalidInput, match="is encrypted"):
        list(read_conversations(path))
    many = {f"f{number}": b"" for number in range(60)}
    packed(path, conversations=b"[]", **many)
    monkeypatch.setattr(conversations, "_MOST_ENTRIES", 50)
    with pytest.raises(InvalidInput, match="contains more than 50 files"):
        list(read_conversations(path))
    monkeypatch.setattr(conversations, "_MOST_DIRECTORY_BYTES", 1000)
    with pytest.raises(InvalidInput, match="list of files is too long"):
        list(read_conversations(path))


def test_law_a_damaged_archive_is_records_or_one_clear_error(tmp_path: Path) -> None:
    whole = packed(tmp_path / "x.zip", conversations=json.dumps([BRANCHED]).encode()).read_bytes()
    chance = random.Random(7)
    for _ in range(600):
        data = bytearray(whole)
        for _ in range(chance.randint(1, 4)):
            data[chance.randrange(4, len(data))] = chance.randrange(256)
        path = written(tmp_path, bytes(data[: chance.choice([len(data), chance.randrange(4, len(data))])]), "y.zip")
        check_whatever(path)


json_values = st.recursive(
    st.one_of(
        st.none(),
        st.booleans(),
        st.integers(),
        st.floats(),
        st.text(st.characters(exclude_categories=()), max_size=6),
        st.sampled_from(["user", "assistant", "system", "text", "tool_use", "a", "b", uuid(1), "2026-01-01"]),
    ),
    lambda inner: st.one_of(
        st.lists(inner, max_size=3),
        st.dictionaries(
            st.sampled_from(
                "mapping chat_messages current_node parent message author role content parts type text uuid sender a b "
                "parent_message_uuid attachments name input timestamp session create_time metadata title id".split()
            ),
            inner,
            max_size=5,
        ),
    ),
    max_leaves=20,
)
nodes = st.dictionaries(st.sampled_from("abc"), st.fixed_dictionaries({}, optional={
    "parent": st.sampled_from(["a", "b", "c", None, 7]),
    "message": st.fixed_dictionaries({}, optional={
        "author": st.one_of(json_values, st.just({"role": "user"})), "content": json_values, "metadata": json_values,
        "create_time": json_values,
    }),
}))  # fmt: skip
exports = st.lists(
    st.one_of(
        json_values,
        st.fixed_dictionaries({"mapping": st.one_of(nodes, json_values), "current_node": json_values}),
        st.fixed_dictionaries({"chat_messages": st.one_of(st.lists(json_values), json_values), "uuid": json_values}),
    ),
    max_size=4,
)
line_values = st.one_of(
    json_values,
    st.fixed_dictionaries(
        {"role": st.one_of(json_values, st.just("user")), "content": json_values},
        optional={"timestamp": json_values, "session": json_values, "uuid": json_values, "tool_calls": json_values},
    ),
    st.fixed_dictionaries({"type": json_values, "message": json_values}, optional={"parentUuid": json_values}),
)


def check_whatever(path: Path) -> None:
    try:
        found = list(read_conversations(path))
    except InvalidInput:
        return
    Told(found)
    kept = [one for one in found if not isinstance(one, Notice)]
    assert list(read_jsonl(io.BytesIO("".join(write_jsonl(found)).encode()))) == kept


@settings(suppress_health_check=[HealthCheck.function_scoped_fixture, HealthCheck.too_slow])
@given(exports)
def test_law_any_export_is_records_or_one_clear_error(tmp_path: Path, values: list[Any]) -> None:
    check_whatever(written(tmp_path, json.dumps(values)))


@settings(suppress_health_check=[HealthCheck.function_scoped_fixture, HealthCheck.too_slow])
@given(st.lists(line_values, min_size=1, max_size=5))
def test_law_any_lines_are_records_or_one_clear_error(tmp_path: Path, values: list[Any]) -> None:
    check_whatever(written(tmp_path, lines_of(*values)))


@settings(suppress_health_check=[HealthCheck.function_scoped_fixture, HealthCheck.too_slow])
@given(st.one_of(st.binary(max_size=200), st.text('[]{},:"\\ 0-.eu', max_size=60).map(str.encode)))
def test_law_any_bytes_are_records_or_one_clear_error(tmp_path: Path, data: bytes) -> None:
    check_whatever(written(tmp_path, data))


@settings(suppress_health_check=[HealthCheck.function_scoped_fixture, HealthCheck.too_slow])
@given(st.lists(st.text(max_size=30), min_size=1, max_size=4), st.integers(1, 40), st.sampled_from([None, 1, "\t"]))
def test_law_it_does_not_matter_where_a_chunk_ends(
    tmp_path: Path, texts: list[str], chunk: int, indent: int | str | None
) -> None:
    values = [
        claude(claude_message(n, "human", f"! {text}"), uuid=uuid(900 + n), pi=[3.25, -1e-9, True, None, {}, []])
        for n, text in enumerate(texts)
    ]
    path = written(tmp_path, json.dumps(values, ensure_ascii=chunk % 2 == 0, indent=indent))
    whole = list(read_conversations(path))
    before = values_module._CHUNK_BYTES
    values_module._CHUNK_BYTES = chunk  # type: ignore[misc]
    try:
        assert list(read_conversations(path)) == whole
    finally:
        values_module._CHUNK_BYTES = before  # type: ignore[misc]
    assert len(Told(whole).messages) == len(texts)


def test_a_deep_value_in_a_message_is_a_notice_and_no_crash(tmp_path: Path) -> None:
    deep = '{"role": "user", "content": ["Hi", ' + "[" * 300 + '"x"' + "]" * 300 + "]}\n"
    found = told(written(tmp_path, deep))
    assert found.said == [("user", "Hi")]
    assert "nested too deeply" in found.notices[0].problem


# -- Codex


def test_a_session_of_codex_has_messages_calls_and_results_without_its_surroundings(tmp_path: Path) -> None:
    def item(**payload: Any) -> dict[str, Any]:
        return {"timestamp": "2026-06-05T04:58:23Z", "type": "response_item", "payload": payload}

    def message(role: str, text: str) -> dict[str, Any]:
        return item(type="message", role=role, content=[{"type": "input_text", "text": text}])

    day = tmp_path / "sessions" / "2026" / "06" / "05"
    day.mkdir(parents=True)
    text = lines_of(
        {"timestamp": "2026-06-05T04:58:20Z", "type": "session_meta", "payload": {"id": SESSION, "cwd": "/app"}},
        message("developer", "rules"),
        message("user", "<environment_context>\n</environment_context>"),
        message("user", "Why does it fail?"),
        {"type": "event_msg", "payload": {"type": "user_message", "message": "Why does it fail?"}},
        item(type="function_call", name="shell", arguments='{"command": ["ls"]}', call_id="c"),
        item(type="function_call_output", call_id="c", output='{"output": "a.py", "metadata": {"exit_code": 0}}'),
        item(type="reasoning", summary=[], encrypted_content="x"),
        message("assistant", "A file is missing."),
    )
    (day / "rollout-2026-06-05.jsonl").write_text(text, encoding="utf-8")
    found = told(tmp_path / "sessions")
    (session,) = found.sessions
    assert (session.id, session.title, session.metadata["source"]) == (SESSION, "Why does it fail?", "codex")
    assert found.said == [
        ("user", "Why does it fail?"),
        ("assistant", 'shell({"command": ["ls"]})'),
        ("tool", "a.py"),
        ("assistant", "A file is missing."),
    ]
    assert found.notices == []


def test_an_exported_session_of_opencode_is_what_its_reader_saw(tmp_path: Path) -> None:
    value = {
        "info": {"id": "ses_1", "title": "Fix retry", "time": {"created": 1_700_000_000_000}},
        "messages": [
            {
                "info": {"id": "msg_1", "role": "user", "time": {"created": 1_700_000_000_000}},
                "parts": [{"type": "text", "text": "Why?"}, {"type": "text", "text": "<file>", "synthetic": True}],
            },
            {
                "info": {"id": "msg_2", "role": "assistant", "modelID": "m-1"},
                "parts": [
                    {"type": "step-start"},
                    {"type": "reasoning", "text": "hm"},
                    {"type": "tool", "tool": "read", "state": {"input": {"path": "a.py"}, "output": "x = 1"}},
                    {"type": "text", "text": "Because."},
                ],
            },
        ],
    }
    path = tmp_path / "session.json"
    path.write_text(json.dumps(value, indent=2), encoding="utf-8")
    assert detect_importer(path) == "conversations"
    records = list(read_records("conversations", path))
    session, asked, answer = [record for record in records if isinstance(record, Block)]
    assert (session.title, session.metadata) == ("Fix retry", {"source": "opencode", "model": "m-1"})
    assert (asked.content, asked.metadata["role"]) == ("Why?", "user")
    assert answer.content == 'read({"path": "a.py"})\n\nx = 1\n\nBecause.'
    assert [record for record in records if isinstance(record, Notice)] == []
