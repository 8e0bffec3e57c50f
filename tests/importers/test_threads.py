"""Threads of people's messages: Slack exports and mail."""

from __future__ import annotations

import json
import zipfile
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from satchel.errors import InvalidInput
from satchel.importers import detect_importer, read_records
from satchel.models.block import Block, Link, Notice, Record

USERS = [
    {"id": "U1", "name": "ann", "profile": {"display_name": "Ann", "real_name": "Ann Lee"}},
    {"id": "U2", "name": "bob", "profile": {"display_name": "", "real_name": "Bob Ray"}},
]
GENERAL = {"id": "C0123456", "name": "general", "purpose": {"value": "All &amp; sundry"}}
FIRST = "1700000000.000100"
DAY = [
    {"user": "U1", "ts": FIRST, "thread_ts": FIRST, "text": "Release?"},
    {"user": "U2", "ts": "1700000060.000200", "text": "Lunch, <@U1>? See <#C0123456|general>"},
    {"user": "U9", "ts": "1700000120.000300", "thread_ts": FIRST, "text": "On &lt;Friday&gt;"},
    {"user": "U2", "ts": "1700000130.000000", "subtype": "channel_join", "text": "joined"},
    {"user": "U1", "ts": "1700000140.000000", "text": "<https://a.org/x|the plan>", "files": [{"name": "plan.pdf"}]},
]


def slack_folder(tmp_path: Path, **files: Any) -> Path:
    root = tmp_path / "export"
    everything = {"users": USERS, "channels": [GENERAL], "general/2023-11-14": DAY} | files
    for name, value in everything.items():
        path = root / f"{name}.json"
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(value if isinstance(value, str) else json.dumps(value), encoding="utf-8")
    return root


class Read:
    """The records of a source, by kind."""

    def __init__(self, path: Path) -> None:
        self.kind = detect_importer(path)
        self.records: list[Record] = list(read_records(self.kind, path))
        self.blocks = [record for record in self.records if isinstance(record, Block)]
        self.links = [record for record in self.records if isinstance(record, Link)]
        self.problems = [record.problem for record in self.records if isinstance(record, Notice)]
        assert len({block.id for block in self.blocks}) == len(self.blocks)

    def sessions(self) -> dict[str, list[tuple[str, str]]]:
        """The author and text of each message, by the title of its session."""
        titles = {block.id: block.title for block in self.blocks if block.type == "session"}
        found: dict[str, list[tuple[str, str]]] = {title: [] for title in titles.values()}
        for block in self.blocks:
            if block.type == "message":
                found[titles[block.parent or ""]].append((str(block.metadata["author"]), block.content))
        return found


def test_a_slack_export_is_channels_with_threads_and_days(tmp_path: Path) -> None:
    read = Read(slack_folder(tmp_path))
    assert read.kind == "slack"
    assert read.sessions() == {
        "Release?": [("Ann", "Release?"), ("U9", "On <Friday>")],
        "#general, 2023-11-14": [("Bob Ray", "Lunch, @Ann? See #general"), ("Ann", "the plan (https://a.org/x)")],
    }
    page = read.blocks[0]
    assert (page.type, page.title, page.content) == ("page", "#general", "All & sundry")
    (reply,) = read.links
    assert (reply.source, reply.target) == (
        "slack/C0123456/1700000000.000100/1700000120.000300",
        "slack/C0123456/1700000000.000100/1700000000.000100",
    )
    plan = read.blocks[-1]
    assert plan.metadata["attachments"] == ["plan.pdf"]
    assert plan.metadata["permalink"] == "/archives/C0123456/p1700000140000000"
    assert plan.last_modified == datetime(2023, 11, 14, 22, 15, 40, tzinfo=UTC)


def test_a_zip_of_a_slack_export_is_read_as_its_folder(tmp_path: Path) -> None:
    folder = slack_folder(tmp_path)
    packed = tmp_path / "export.zip"
    with zipfile.ZipFile(packed, "w") as archive:
        for path in sorted(folder.rglob("*.json")):
            archive.write(path, path.relative_to(folder).as_posix())
    assert Read(packed).blocks == Read(folder).blocks


def test_direct_conversations_of_slack_are_marked_private(tmp_path: Path) -> None:
    direct = {"dms": [{"id": "D1", "members": ["U1", "U2"]}], "D1/2023-11-14": [DAY[1]]}
    read = Read(slack_folder(tmp_path, **direct))
    (page,) = [block for block in read.blocks if block.metadata.get("private")]
    assert page.title == "Ann, Bob Ray"
    assert read.problems == ["1 private channels and direct conversations were imported; grant access only to members"]


def test_what_is_broken_in_a_slack_export_is_said_and_the_rest_is_read(tmp_path: Path) -> None:
    broken = {"general/2023-11-15": "[{", "general/2023-11-16": "{}", "general/2023-11-17": [{"text": "no time"}, 3]}
    read = Read(slack_folder(tmp_path, **broken))
    assert len(read.sessions()["#general, 2023-11-14"]) == 2
    assert [problem.partition(":")[0] for problem in read.problems] == [
        "not read",
        "not read",
        "has no time stamp; left out",
    ]


def test_a_slack_export_without_a_day_is_refused(tmp_path: Path) -> None:
    folder = slack_folder(tmp_path)
    (folder / "general" / "2023-11-14.json").unlink()
    with pytest.raises(InvalidInput, match="contains no day of messages"):
        list(read_records("slack", folder))


MAILBOX = b"""From ann@x.org Mon Jan  1 10:00:00 2024
Message-ID: <1@x.org>
From: Ann Lee <ann@x.org>
To: Bob <bob@x.org>
Subject: =?utf-8?q?Caf=C3=A9?= lease
Date: Mon, 1 Jan 2024 10:00:00 +0100

Who signs the lease?
>From here it is late.

From bob@x.org Tue Jan  2 10:00:00 2024
Message-ID: <2@x.org>
In-Reply-To: <1@x.org>
From: bob@x.org
Subject: Re: =?utf-8?q?Caf=C3=A9?= lease
Date: Tue, 2 Jan 2024 10:00:00 +0000
MIME-Version: 1.0
Content-Type: multipart/mixed; boundary=b

--b
Content-Type: text/html; charset=utf-8

<p>I do, on <b>Friday</b>.</p><script>no()</script><ul><li>bring a pen</li></ul>
--b
Content-Type: application/pdf; name=lease.pdf
Content-Disposition: attachment; filename=lease.pdf

x
--b--

From carl@x.org Wed Jan  3 10:00:00 2024
Message-ID: <3@x.org>
References: <1@x.org> <2@x.org>
From: Carl
Subject: AW: lease
Date: not a date

I come too.

On Tue, 2 Jan 2024 Bob
 <bob@x.org> wrote:
> I do, on Friday.
"""


def test_a_mailbox_is_threads_in_the_order_of_their_messages(tmp_path: Path) -> None:
    path = tmp_path / "archive"  # Thunderbird's mailboxes have no ending
    path.write_bytes(MAILBOX)
    read = Read(path)
    assert read.kind == "mail"
    ((title, messages),) = read.sessions().items()
    assert title in ("Café lease", "lease")
    assert sorted(messages) == [
        ("Ann Lee", "Who signs the lease?\nFrom here it is late."),
        ("Carl", "I come too."),
        ("bob@x.org", "I do, on Friday.\n\n- bring a pen"),
    ]
    assert {(link.source[-7:], (link.target or "")[-7:]) for link in read.links} >= {("2@x.org", "1@x.org")}
    assert read.problems == ["attachments were not read (.pdf: 1)"]
    answer = next(block for block in read.blocks if block.id.endswith("2@x.org"))
    assert answer.metadata == {"author": "bob@x.org", "attachments": ["lease.pdf"]}


def test_the_same_message_in_two_mailboxes_is_imported_once(tmp_path: Path) -> None:
    for name in ("a.mbox", "b.mbox"):
        (tmp_path / name).write_bytes(MAILBOX)
    (tmp_path / "one.eml").write_bytes(b"Message-ID: <9@x.org>\nSubject: alone\n\nhi\n")
    read = Read(tmp_path)
    assert sorted(map(len, read.sessions().values())) == [1, 3]


def test_a_mailbox_without_a_message_is_refused(tmp_path: Path) -> None:
    (tmp_path / "empty.mbox").write_bytes(b"nothing\n")
    with pytest.raises(InvalidInput, match="contains no message"):
        list(read_records("mail", tmp_path / "empty.mbox"))


MAIL_LINES = [*MAILBOX.splitlines(keepends=True), b"\xff\x00\n", b"--b\n", b"From x 1999\n"]


@settings(max_examples=60, deadline=None)
@given(st.lists(st.sampled_from(MAIL_LINES), max_size=60))
def test_law_any_mix_of_lines_is_read_or_refused(tmp_path_factory: pytest.TempPathFactory, lines: list[bytes]) -> None:
    path = tmp_path_factory.mktemp("mail") / "any.mbox"
    path.write_bytes(b"".join(lines))
    try:
        records = list(read_records("mail", path))
    except InvalidInput:
        return
    assert len({record.id for record in records if isinstance(record, Block)}) == sum(
        isinstance(record, Block) for record in records
    )


def test_a_message_nested_in_messages_without_end_is_read_up_to_a_limit(tmp_path: Path) -> None:
    depth = 3_000
    nested = b"Content-Type: message/rfc822\n\n" * depth + b"Subject: deep\n\nhello\n"
    (tmp_path / "deep.eml").write_bytes(b"Message-ID: <d@x>\nSubject: top\nMIME-Version: 1.0\n" + nested)
    read = Read(tmp_path / "deep.eml")
    assert len(read.sessions()) == 1
