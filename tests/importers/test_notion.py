"""Notion exports: pages, databases and rows, from a folder or a zip, and that no archive can do harm."""

from __future__ import annotations

import io
import json
import stat
import tempfile
import zipfile
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from satchel.errors import WorkspaceMissing
from satchel.importers.notion import read_notion
from satchel.importers.notion_table import as_date, read_table, relations, row_metadata
from satchel.models.block import Block, BlockType, Link, LinkKind, Notice, Record
from tests.importers.test_vault import blocks, is_a_sound_tree, links, make, notices
from tests.support.effort import no_blow_up
from tests.support.places import TESTS

EXPORT = TESTS / "data" / "notion"
HOME, TASKS, GLAZES = (
    "0f3a9c41d2b84e7f9a6b5c8d7e1f2031",
    "1a2b3c4d5e6f47889900aabbccddeeff",
    "708192a3b4c54dd6deff001122334455",
)
KILN, CLAY, LEFT_OVER, DANA = (
    "3c4d5e6f708149929abbccddeeff0011",
    "4d5e6f7081924aa3abccddeeff001122",
    "5e6f708192a34bb4bcddeeff00112233",
    "6f708192a3b44cc5cdeeff0011223344",
)


@pytest.fixture(scope="module")
def export() -> list[Record]:
    return list(read_notion(EXPORT))


@pytest.fixture(scope="module")
def by_id(export: list[Record]) -> dict[str, Block]:
    return {block.id: block for block in blocks(export)}


def zipped(path: Path, files: dict[str, bytes | str]) -> Path:
    with zipfile.ZipFile(path, "w", zipfile.ZIP_DEFLATED) as archive:
        for name, data in files.items():
            archive.writestr(name, data)
    return path


def zip_bytes(files: dict[str, bytes | str]) -> bytes:
    data = io.BytesIO()
    with zipfile.ZipFile(data, "w", zipfile.ZIP_DEFLATED) as archive:
        for name, text in files.items():
            archive.writestr(name, text)
    return data.getvalue()


def test_pages_go_by_the_id_in_their_file_name_and_nest_by_folder(by_id: dict[str, Block]) -> None:
    assert {name: (by_id[name].title, by_id[name].parent) for name in (HOME, TASKS, GLAZES, DANA)} == {
        HOME: ("Home", None),
        TASKS: ("Tasks", HOME),
        GLAZES: ("Glaze recipes", HOME),
        DANA: ("Dana", KILN),
    }


def test_the_export_is_a_sound_tree(export: list[Record]) -> None:
    is_a_sound_tree(export)
    assert notices(export) == {}


def test_a_table_is_a_database_and_each_row_a_block(by_id: dict[str, Block]) -> None:
    assert by_id[TASKS].type is BlockType.DATABASE
    rows = [block for block in by_id.values() if block.parent == TASKS]
    assert [(row.type, row.title) for row in rows] == [
        (BlockType.DB_ROW, "Mend the kiln"),
        (BlockType.DB_ROW, "Order clay / sand"),
        (BlockType.DB_ROW, "Untold wish"),
        (BlockType.DB_ROW, "Left over"),
    ]


def test_a_row_with_a_page_has_its_id_and_its_blocks(by_id: dict[str, Block]) -> None:
    inner = [block for block in by_id.values() if block.parent == KILN and block.type is not BlockType.PAGE]
    assert [(block.type, block.content) for block in inner] == [
        (BlockType.TEXT, "The door does not close. Note: the spare hinge is in the shed."),
        (BlockType.TODO, "Take the door off"),
    ]
    assert inner[0].start_line == 8


def test_a_title_that_no_file_name_can_hold_still_finds_its_page(by_id: dict[str, Block]) -> None:
    assert by_id[CLAY].title == "Order clay / sand"


def test_columns_become_properties(by_id: dict[str, Block]) -> None:
    assert by_id[KILN].metadata == {
        "properties": {
            "Status": "In progress",
            "Due": "2026-10-30",
            "Done": False,
            "Owner": "Dana",
            "Related": "Glaze recipes",
            "Tags": "kiln, urgent",
        },
        "status": "In progress",
        "assignee": "Dana",
        "done": False,
        "tags": ["kiln", "urgent"],
        "due": "2026-10-30",
    }
    assert by_id[KILN].content.splitlines()[:3] == ["Status: In progress", "Due: 2026-10-30", "Done: No"]
    assert by_id[CLAY].metadata["due"] == "2026-11-03"


def test_a_date_that_could_be_two_days_is_none(by_id: dict[str, Block]) -> None:
    wish = next(block for block in by_id.values() if block.title == "Untold wish")
    assert wish.metadata["properties"]["Due"] == "11/12/2026"
    assert "due" not in wish.metadata


def test_a_page_that_no_row_speaks_of_is_a_row_by_its_own_properties(by_id: dict[str, Block]) -> None:
    row = by_id[LEFT_OVER]
    assert (row.type, row.metadata["due"], row.metadata["done"]) == (BlockType.DB_ROW, "2026-10-05", False)


def test_relations_and_links_lead_to_pages(export: list[Record], by_id: dict[str, Block]) -> None:
    found = [(link.kind, link.name, link.target) for link in links(export)]
    assert found == [
        (LinkKind.MENTIONS, "Tasks", TASKS),
        (LinkKind.MENTIONS, "Glaze recipes", GLAZES),
        (LinkKind.RELATION, "Glaze recipes", GLAZES),
        (LinkKind.RELATION, "Mend the kiln", KILN),
        (LinkKind.RELATION, "Nobody knows", None),
        (LinkKind.MENTIONS, "Dana", DANA),
        (LinkKind.MENTIONS, "the kiln log", KILN),
    ]


def test_callouts_toggles_to_dos_tables_and_code_are_blocks(by_id: dict[str, Block]) -> None:
    home = [block for block in by_id.values() if block.parent == HOME]
    assert (BlockType.CALLOUT, "💡 The kiln runs on Tuesdays.") in [(block.type, block.content) for block in home]
    toggle = next(block for block in home if block.type is BlockType.LIST_ITEM)
    assert toggle.content == "How we number pots\n\nThe year, a dash, and a running number."
    order = next(block for block in home if block.title == "Order clay")
    assert order.metadata == {"done": False, "status": "open", "due": "2026-10-20"}
    assert [block.title for block in by_id.values() if block.parent == order.id] == ["Ask for the price of ten bags"]
    assert [block.language for block in by_id.values() if block.type is BlockType.CODE] == ["python"]


def test_a_zip_gives_what_its_folder_gives(export: list[Record], tmp_path: Path) -> None:
    files: dict[str, bytes | str] = {
        str(path.relative_to(EXPORT)): path.read_bytes() for path in sorted(EXPORT.rglob("*")) if path.is_file()
    }
    whole = list(read_notion(zipped(tmp_path / "e.zip", files)))
    half = len(files) // 2
    parts: dict[str, bytes | str] = {
        "Export-Part-1.zip": zip_bytes(dict(list(files.items())[:half])),
        "Export-Part-2.zip": zip_bytes(dict(list(files.items())[half:])),
    }
    nested = list(read_notion(zipped(tmp_path / "n.zip", parts)))
    for records in (whole, nested):
        assert [(block.id, block.parent, block.content) for block in blocks(records)] == [
            (block.id, block.parent, block.content) for block in blocks(export)
        ]
        assert links(records) == links(export)


def test_without_ids_pages_go_by_their_path(tmp_path: Path) -> None:
    make(tmp_path, {
        "Home.md": "# Home\n\n[Sub](Home/Sub.md)\n", "Home/Sub.md": "# Sub\n\ntext\n",
        "Home/List.csv": "Name,Status\nA row,Done\n", "Home/List/A row.md": "# A row\n\nStatus: Done\n\nbody\n",
    })  # fmt: skip
    records = list(read_notion(tmp_path))
    assert {block.id: block.parent for block in blocks(records) if "#" not in block.id} == {
        "Home": None,
        "Home/List": "Home",
        "Home/List/A row": "Home/List",
        "Home/Sub": "Home",
    }
    assert [link.target for link in links(records)] == ["Home/Sub"]


def test_a_page_beside_its_table_is_the_databases_own_text(tmp_path: Path) -> None:
    make(tmp_path, {f"T {TASKS}.md": "# Tasks\n\nWhat to do.\n", f"T {TASKS}_all.csv": "Name\nA\n"})
    database, text, row = blocks(list(read_notion(tmp_path)))
    assert (database.type, database.title, database.summary) == (BlockType.DATABASE, "Tasks", "What to do.")
    assert (text.parent, row.parent) == (database.id, database.id)


def test_rows_of_one_title_find_their_pages_by_their_properties(tmp_path: Path) -> None:
    make(tmp_path, {
        f"T {TASKS}.csv": "Name,Owner\nWeekly,Ann\nWeekly,Bob\n",
        f"T {TASKS}/Weekly {KILN}.md": "# Weekly\n\nOwner: Bob\n\nof Bob\n",
        f"T {TASKS}/Weekly {CLAY}.md": "# Weekly\n\nOwner: Ann\n\nof Ann\n",
    })  # fmt: skip
    found = {block.id: block for block in blocks(list(read_notion(tmp_path)))}
    assert found[KILN].metadata["properties"] == {"Owner": "Bob"}
    assert found[CLAY].metadata["properties"] == {"Owner": "Ann"}


def test_a_title_that_the_file_name_cuts_short_finds_its_page(tmp_path: Path) -> None:
    title = "A title that goes on and on until the file system has had enough of it and more"
    make(tmp_path, {
        f"T {TASKS}.csv": f"Name\n{title}\n", f"T {TASKS}/{title[:50].strip()} {KILN}.md": f"# {title}\n\nbody\n",
    })  # fmt: skip
    assert [block.id for block in blocks(list(read_notion(tmp_path))) if block.type is BlockType.DB_ROW] == [KILN]


def test_a_database_that_is_exported_twice_is_taken_once(tmp_path: Path) -> None:
    make(tmp_path, {f"A {TASKS}.csv": "Name\nx\n", f"sub/A {TASKS}.csv": "Name\nx\n"})
    records = list(read_notion(tmp_path))
    assert len(blocks(records)) == 2
    assert "twice" in notices(records)[f"sub/A {TASKS}.csv"]


@pytest.mark.parametrize(
    ("text", "date"),
    [
        ("November 1, 2026", "2026-11-01"),
        ("Nov 1, 2026", "2026-11-01"),
        ("1 November 2026", "2026-11-01"),
        ("2026-11-01", "2026-11-01"),
        ("2026/11/01", "2026-11-01"),
        ("November 1, 2026 9:05 AM", "2026-11-01T09:05"),
        ("November 1, 2026 12:05 AM (GMT+1)", "2026-11-01T00:05"),
        ("November 1, 2026 3:05 PM", "2026-11-01T15:05"),
        ("November 1, 2026 → November 5, 2026", "2026-11-01/2026-11-05"),
        ("13/11/2026", "2026-11-13"),
        ("11/13/2026", "2026-11-13"),
        ("11/12/2026", None),
        ("February 30, 2026", None),
        ("tomorrow", None),
        ("", None),
    ],
)
def test_dates_are_read_where_they_mean_one_day(text: str, date: str | None) -> None:
    assert as_date(text) == date


@pytest.mark.parametrize(
    ("properties", "metadata"),
    [
        ({"Status": "Done"}, {"status": "Done", "done": True}),
        ({"Status": "Canceled", "Due date": "2026-11-01"}, {"status": "Canceled", "done": True, "due": "2026-11-01"}),
        ({"Status": "Doing", "Date": "2026-11-01"}, {"status": "Doing", "done": False, "due": "2026-11-01"}),
        ({"Done": True, "Status": "Doing"}, {"done": True, "status": "Doing"}),
        ({"Date": "2026-11-01"}, {}),
        ({"Deadline": "2026-11-01T10:00"}, {"due": "2026-11-01"}),
        ({"Priority": "High"}, {"priority": "High"}),
    ],
)
def test_a_row_is_done_and_due_by_its_columns(properties: dict[str, Any], metadata: dict[str, Any]) -> None:
    assert row_metadata(properties) == metadata


def test_relations_may_hold_commas_and_brackets_in_their_titles() -> None:
    cell = "Plan (v2), final (Plan%20(v2)%20abc.md), Web (https://www.notion.so/Web-0f3a9c41d2b84e7f9a6b5c8d7e1f2031)"
    assert [one.title for one in relations(cell)] == ["Plan (v2), final", "Web"]
    assert relations("an ordinary (cell), with brackets") == []


def test_a_table_is_read_whatever_is_in_it() -> None:
    table = read_table('Name,Name,\n"a\nb",2,3,4\n\nshort\n')
    assert table.columns == ("Name", "Name 2", "Column 3", "Column 4")
    assert [(row.title, row.properties["Column 4"]) for row in table.rows] == [("a\nb", "4"), ("short", "")]
    cut = read_table("Name,Text\nx," + "y" * 300_000 + "\nz,w\n")
    assert len(cut.rows[0].properties["Text"]) == 20_000
    assert cut.rows[1].title == "z"
    assert cut.problems == ("cells were cut at 20,000 characters",)


def test_paths_that_lead_out_links_and_bombs_are_refused(tmp_path: Path) -> None:
    path = tmp_path / "bad.zip"
    link = zipfile.ZipInfo("link.md")
    link.external_attr = (stat.S_IFLNK | 0o777) << 16
    with zipfile.ZipFile(path, "w", zipfile.ZIP_DEFLATED) as archive:
        for name in ("../up.md", "/root.md", "a/../../b.md", "C:/x.md"):
            archive.writestr(name, "x")
        archive.writestr(link, "/etc/passwd")
        archive.writestr("bomb.md", b"\n" * 12_000_000)
        archive.writestr("large.md", bytes(range(1, 256)) * 80_000)
        archive.writestr("inner.zip", zip_bytes({"deep.zip": zip_bytes({"deepest.md": "x"}), "fine.md": "# Fine\n"}))
        archive.writestr("good.md", "# Good\n")
    records = list(read_notion(path))
    assert [block.title for block in blocks(records)] == ["Fine", "Good"]
    found = notices(records)
    assert {name for name, problem in found.items() if "leads outside" in problem} == {
        "../up.md", "/root.md", "a/../../b.md", "C:/x.md",
    }  # fmt: skip
    assert found["link.md"] == "not read: link"
    assert "too many bytes" in found["bomb.md"]
    assert "too-large" in found["large.md"]
    assert "nested too deeply" in found["deep.zip"]


def test_nothing_of_a_zip_is_written_beside_it(tmp_path: Path) -> None:
    zipped(tmp_path / "e.zip", {"p.zip": zip_bytes({"a.md": "# A\n"})})
    list(read_notion(tmp_path / "e.zip"))
    assert [path.name for path in tmp_path.iterdir()] == ["e.zip"]


@pytest.mark.parametrize("data", [b"", b"PK", b"no zip at all", b"PK\x05\x06" + b"\xff" * 18])
def test_what_is_no_zip_is_reported(data: bytes, tmp_path: Path) -> None:
    (tmp_path / "e.zip").write_bytes(data)
    records = list(read_notion(tmp_path / "e.zip"))
    assert [problem.partition(":")[0] for problem in notices(records).values()] == ["not read"]


def test_an_archive_that_is_damaged_in_the_middle_gives_the_rest(tmp_path: Path) -> None:
    path = zipped(tmp_path / "e.zip", {"a.md": "# Alpha\n" + "text " * 500, "b.md": "# Beta\n"})
    data = bytearray(path.read_bytes())
    data[45:60] = b"\xff" * 15
    path.write_bytes(data)
    records = list(read_notion(path))
    assert "damaged" in notices(records)["a.md"]
    assert "Beta" in [block.title for block in blocks(records)]


def test_an_entry_without_a_name_is_no_file(tmp_path: Path) -> None:
    path = zipped(tmp_path / "e.zip", {"a.md": "# Alpha\n", "b.md": "# Beta\n"})
    path.write_bytes(path.read_bytes().replace(b"a.md", b"\0.md"))
    assert [block.title for block in blocks(list(read_notion(path)))] == ["Beta"]


def test_an_export_that_is_not_there_is_an_error(tmp_path: Path) -> None:
    with pytest.raises(WorkspaceMissing):
        list(read_notion(tmp_path / "gone.zip"))


@pytest.mark.slow
def test_a_large_table_takes_no_long_time(tmp_path: Path) -> None:
    rows = "".join(f'Untitled,Status {i % 7},"November {i % 28 + 1}, 2026"\n' for i in range(5_000))
    pages: dict[str, str | bytes] = {
        f"T {TASKS}/Untitled {i:032x}.md": f"# Untitled\n\nStatus: Status {i % 7}\n" for i in range(200)
    }
    make(tmp_path, {f"T {TASKS}.csv": "Name,Status,Date\n" + rows, **pages})
    with no_blow_up("a table"):
        records = list(read_notion(tmp_path))
    assert len([block for block in blocks(records) if block.type is BlockType.DB_ROW]) == 5_000


@pytest.mark.parametrize("cell", ["(" * 200_000, "(x" * 100_000, "(.md" * 50_000, "→" * 200_000, " (a.md)" * 25_000])
def test_no_cell_takes_long(cell: str) -> None:
    with no_blow_up("a cell"):
        read_table(f"Name,Cell\nx,{cell}\n")


@given(st.binary(max_size=300), st.binary(max_size=300), st.booleans())
def test_any_bytes_give_records(page: bytes, table: bytes, with_title: bool) -> None:
    with tempfile.TemporaryDirectory() as folder:
        make(Path(folder), {
            f"A {HOME}.md": page,
            f"A {HOME}/T {TASKS}.csv": b"Name,B,C\n" + table if with_title else table,
            f"A {HOME}/T {TASKS}/x {KILN}.md": b"# x\n\nB: 1\n" + page,
        })  # fmt: skip
        is_a_sound_tree(list(read_notion(Path(folder))))


@given(st.data())
def test_a_zip_with_any_bytes_changed_gives_records(data: st.DataObject) -> None:
    whole = bytearray(
        zip_bytes({"a.md": "# A\n\n- [ ] x\n", "a/t.csv": "Name\nrow\n", "p.zip": zip_bytes({"b.md": "b"})})
    )
    for at in data.draw(st.lists(st.integers(0, len(whole) - 1), min_size=1, max_size=4)):
        whole[at] = data.draw(st.integers(0, 255))
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder) / "e.zip"
        path.write_bytes(whole)
        is_a_sound_tree(list(read_notion(path)))


def test_metadata_is_json(export: list[Record]) -> None:
    for block in blocks(export):
        json.dumps(dict(block.metadata), allow_nan=False)
    assert all(isinstance(record, Block | Link) for record in export)


def test_an_export_with_an_endless_list_of_files_is_not_opened(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    export = tmp_path / "export.zip"
    with zipfile.ZipFile(export, "w") as archive:
        for number in range(60):
            archive.writestr(f"f{number}.md", "# A")
    monkeypatch.setattr("satchel.importers.archive._MAX_DIRECTORY_BYTES", 1000)
    told = [record.problem for record in read_notion(export) if isinstance(record, Notice)]
    assert told == ["not read: its table of contents is too large"]
