"""Sessions: a context has what its reader was not shown before, and nothing is withheld that was not."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import satchel
from satchel.models.context import ContextSource, Reason
from satchel.models.search import SearchHit
from satchel.service.client import Caller
from satchel.service.local_client import LocalSatchel, open_local
from satchel.service.sessions import MAX_SESSIONS, Sessions, ShownLines

QUESTION = "how long is the backoff delay"


@pytest.fixture
def client(tmp_path: Path) -> Iterator[LocalSatchel]:
    root = tmp_path / "work"
    root.mkdir()
    for number in range(6):
        text = (
            f'def backoff_delay_{number}(n):\n    """The backoff delay {number} doubles."""\n    return {number} ** n\n'
        )
        (root / f"retry{number}.py").write_text(text)
    (root / "odd [1] name.py").write_text("def backoff_delay_odd(n):\n    return n\n")
    with open_local(root, index_dir=str(tmp_path / "index")) as opened:
        opened.index()
        yield opened


def paths(context: satchel.Context) -> set[str]:
    return {str(source.path) for source in context.sources}


def test_a_session_is_shown_each_piece_once(client: LocalSatchel) -> None:
    first = client.build(QUESTION, session="a", token_budget=220)
    second = client.build(QUESTION, session="a", token_budget=220)
    assert first.sources
    assert second.sources
    assert not paths(first) & paths(second)
    assert second.tokens <= 220
    line = second.text.rstrip().splitlines()[-1]
    assert line.startswith("Shown before in this session: ")
    assert set(line.partition(": ")[2].split(", ")) <= {source.id for source in first.sources} | {"1 more"}
    before = [entry.id for entry in second.ledger if entry.reason is Reason.SHOWN_BEFORE]
    assert set(before) == {source.id for source in first.sources}
    assert any("shown before in this session left out" in note for note in second.notes)
    other = client.build(QUESTION, session="b", token_budget=220)
    assert other.text == client.build(QUESTION, token_budget=220).text == first.text


def test_when_everything_was_shown_only_the_line_is_left(client: LocalSatchel) -> None:
    for _ in range(8):
        last = client.build(QUESTION, session="a")
    assert not last.sources
    assert last.sufficiency is None
    assert "[1]" not in last.text


def test_what_was_edited_is_shown_again(client: LocalSatchel) -> None:
    client.build(QUESTION, session="a")
    path = client.root / "retry3.py"
    path.write_text(path.read_text().replace("return 3", "return 3.5"))
    client.index()
    assert paths(client.build(QUESTION, session="a")) == {"retry3.py"}


def test_sessions_of_users_are_their_own(client: LocalSatchel) -> None:
    with client.engine.workspace.edit() as edit:
        edit.set_default("allow")
    views = [client.seen_by(Caller(user=satchel.User(id=name))) for name in ("ann", "bob")]
    first, second = (view.build(QUESTION, session="a", include=("*.py",)) for view in views)
    assert first.text == second.text


def test_a_context_of_a_workspace_has_no_session(client: LocalSatchel) -> None:
    with pytest.raises(satchel.errors.InvalidOption, match="session"):
        client.build(QUESTION, session="a", type="chat")


def test_old_sessions_are_forgotten() -> None:
    sessions = Sessions()
    first = sessions.of("", "first")
    assert sessions.of("", "first") is first
    for number in range(MAX_SESSIONS):
        sessions.of("", str(number))
    assert sessions.of("", "first") is not first


LINES = st.lists(st.sampled_from(["a = 1", "b = 2", "", "    return a", "}"]), min_size=1, max_size=12)


@settings(max_examples=300)
@given(LINES, st.data())
def test_law_a_piece_is_withheld_only_if_each_line_was_shown_as_it_is(lines: list[str], data: st.DataObject) -> None:
    """Shown are the lines outside the elisions; an elision line says which lines it stands for."""
    hidden = data.draw(st.sets(st.integers(1, len(lines))))
    text, number = [], 1
    while number <= len(lines):
        if number in hidden:
            last = number
            while last + 1 in hidden:
                last += 1
            text.append(f"  ⋮ {last - number + 1} lines ({number}-{last}): x()")
            number = last + 1
        else:
            text.append(lines[number - 1])
            number += 1
    shown = ShownLines()
    shown.add([ContextSource("a.py:1", "a", "file", "a.py", 1, end_line=len(lines), text="\n".join(text), elided=1)])
    first = data.draw(st.integers(1, len(lines)))
    last = data.draw(st.integers(first, len(lines)))
    now = [data.draw(st.sampled_from([line, line + "!"])) for line in lines[first - 1 : last]]
    hit = SearchHit(f"a.py:{first}-{last}", "a.py", first, last, 0.5, "\n".join(now))
    is_known = all(
        not line.strip() or (number not in hidden and line == lines[number - 1])
        for number, line in enumerate(now, start=first)
    )
    assert not shown.has(hit) or is_known
    if is_known and len(hidden) < len(lines):
        assert shown.has(hit)
