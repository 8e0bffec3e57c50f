"""The table of importers: which one reads a source, what one that fails costs, and prefixes of ids."""

from __future__ import annotations

from collections.abc import Iterable
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import pytest

from satchel.errors import InvalidInput
from satchel.importers import Importer, detect_importer, read_records
from satchel.models.access import Grant
from satchel.models.block import Activity, Block, Link, LinkKind, Notice
from satchel.registry import Registry

SOURCE = Path("notes.mine")


def use(patch: pytest.MonkeyPatch, **importers: Importer) -> None:
    patch.setattr("satchel.importers.IMPORTERS", Registry("importer", "satchel.no_plugins", importers))


def importer(records: Iterable[Any] = (), *, detects: bool = True, is_guess: bool = False) -> Importer:
    return Importer(help="mine", detect=lambda _: detects, read=lambda _: records, is_guess=is_guess)


def failing(_: Path) -> Any:
    raise LookupError("no such thing")


def test_an_exact_importer_is_chosen_before_one_that_guesses(monkeypatch: pytest.MonkeyPatch) -> None:
    use(monkeypatch, guessing=importer(is_guess=True), other=importer(detects=False), exact=importer())
    assert detect_importer(SOURCE) == "exact"


def test_an_importer_that_fails_to_look_costs_only_itself(monkeypatch: pytest.MonkeyPatch) -> None:
    broken = Importer(help="mine", detect=failing, read=failing)
    use(monkeypatch, broken=broken, good=importer())
    assert detect_importer(SOURCE) == "good"
    use(monkeypatch, broken=broken, other=importer(detects=False))
    with pytest.raises(InvalidInput, match=r"--kind \(broken, other\); broken failed \(LookupError: no such thing\)"):
        detect_importer(SOURCE)


@pytest.mark.parametrize("error", [FileNotFoundError("gone"), InvalidInput("path", "x", "is odd")])
def test_what_is_wrong_with_the_source_itself_is_not_blamed_on_the_importer(
    error: Exception, monkeypatch: pytest.MonkeyPatch
) -> None:
    def refuse(_: Path) -> Any:
        raise error

    use(monkeypatch, mine=Importer(help="mine", detect=refuse, read=refuse))
    with pytest.raises(type(error)) as detected:
        detect_importer(SOURCE)
    with pytest.raises(type(error)) as read:
        list(read_records("mine", SOURCE))
    assert detected.value is read.value is error


def test_records_come_until_an_importer_fails_and_then_its_name(monkeypatch: pytest.MonkeyPatch) -> None:
    block = Block(id="a", type="page")
    use(monkeypatch, mine=importer([block, "a text"]), broken=Importer(help="", detect=failing, read=failing))
    records = read_records("mine", SOURCE)
    assert next(records) == block
    with pytest.raises(InvalidInput, match=r"the importer 'mine' failed \(TypeError: str is not a record\)"):
        next(records)
    with pytest.raises(InvalidInput, match=r"the importer 'broken' failed \(LookupError: no such thing\)"):
        next(read_records("broken", SOURCE))


def test_a_prefix_stands_before_every_id_of_a_block_and_nothing_else(monkeypatch: pytest.MonkeyPatch) -> None:
    now = datetime(2026, 1, 1, tzinfo=UTC)
    given = [
        Block(id="a", type="page", title="A"),
        Block(id="b", type="text", parent="a"),
        Link(source="a", kind=LinkKind.MENTIONS, target="b"),
        Link(source="a", kind=LinkKind.MENTIONS, name="nowhere"),
        Grant(block="a", principal="user:ann"),
        Activity(block="b", actor="ann", action="edit", timestamp=now),
        Notice(where="a", problem="is long"),
    ]
    use(monkeypatch, mine=importer(given))
    assert list(read_records("mine", SOURCE)) == given
    assert list(read_records("mine", SOURCE, "x/")) == [
        Block(id="x/a", type="page", title="A"),
        Block(id="x/b", type="text", parent="x/a"),
        Link(source="x/a", kind=LinkKind.MENTIONS, target="x/b"),
        Link(source="x/a", kind=LinkKind.MENTIONS, name="nowhere"),
        Grant(block="x/a", principal="user:ann"),
        Activity(block="x/b", actor="ann", action="edit", timestamp=now),
        Notice(where="a", problem="is long"),
    ]
