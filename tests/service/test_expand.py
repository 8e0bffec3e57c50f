"""`expand` over every way in: what an elision, a symbol, a heading or a page stands for, and nothing else."""

from __future__ import annotations

import json
from collections.abc import Callable, Iterator
from contextlib import contextmanager

import pytest

from satchel.assembly.units import elisions_in
from satchel.models.context import Context, ContextSource
from satchel.service.importing import import_source
from tests.support.api import Api, served
from tests.support.command_line import satchel

pytest.importorskip("mcp", reason="the MCP packages are not installed")

from tests.support.mcp_talk import command, talking

Expand = Callable[[str], str]

CODE = "\n".join(
    [
        '"""Winches of the yard."""',
        *("", "", "class Winch:", '    """A winch with a drum."""', ""),
        "    def haul(self, rope):",
        '        """Haul the rope onto the drum, and slip the clutch under load."""',
        *(f"        self.drum.turn({i})  # turn {i} of the drum" for i in range(60)),
        "        self.clutch.slip(rope)",
        *("", "    def stow(self):", '        """Stow the winch."""'),
        *(f"        self.part_{i}.stow()" for i in range(40)),
        "",
    ]
)
_DAYS = [f"On day {i} the crew {' '.join([f'painted boat {i}, wrote the log and went home.'] * 5)}" for i in range(40)]
GUIDE = "\n\n".join(
    [
        "# Handbook",
        "How the yard works.",
        "## Painting",
        *_DAYS[:20],
        "The spare anchor lies behind the paint store.",
        *_DAYS[20:],
        "## Closing",
        "The gate closes at six.\n",
    ]
)
NOTE = GUIDE.replace("Handbook", "Diary").replace(_DAYS[2], f"{_DAYS[2]}\n\n- [ ] polish the brass anchor")


@pytest.fixture(scope="module")
def api(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Api]:
    """Code and Markdown, served."""
    folder = tmp_path_factory.mktemp("files")
    root = folder / "root"
    root.mkdir()
    (root / "winch.py").write_text(CODE)
    (root / "guide.md").write_text(GUIDE)
    with served(root, folder / "index") as found:
        found.local_client.index()
        yield found


@pytest.fixture(scope="module")
def notes(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Api]:
    """An imported vault, served."""
    folder = tmp_path_factory.mktemp("notes")
    for name in ("root", "vault"):
        (folder / name).mkdir()
    (folder / "vault" / "Diary.md").write_text(NOTE)
    with served(folder / "root", folder / "index") as found:
        import_source(found.engine.workspace, folder / "vault")
        yield found


@contextmanager
def ways_into(api: Api) -> Iterator[dict[str, Expand]]:
    """`expand` over HTTP, MCP and the command line."""
    root, index = api.engine.root, api.engine.root.parent / "index"

    def over_http(piece_id: str) -> str:
        return str(api.owner.post("/v1/expand", json={"id": piece_id}).raise_for_status().json()["text"])

    def on_the_command_line(piece_id: str) -> str:
        done = satchel("expand", piece_id, "--json", folder=root)
        assert done.returncode == 0, done.stderr
        return str(json.loads(done.stdout)["text"])

    with talking(command(root, index=index), "2026-07-28") as talk:

        def over_mcp(piece_id: str) -> str:
            return "".join(page["text"] for page in talk.pages("expand", id=piece_id))

        yield {"http": over_http, "mcp": over_mcp, "command line": on_the_command_line}


@pytest.fixture(scope="module")
def ways(api: Api) -> Iterator[dict[str, Expand]]:
    with ways_into(api) as found:
        yield found


@pytest.fixture(scope="module")
def note_ways(notes: Api) -> Iterator[dict[str, Expand]]:
    with ways_into(notes) as found:
        yield found


def completed(source: ContextSource, base: str, expand: Expand) -> list[str]:
    """The text of a source with the lines that its elisions stand for in their place."""
    elisions = {elision.render(mark): elision for elision in elisions_in(source.text) for mark in ("⋮", "⋮⋮")}
    assert elisions
    lines: list[str] = []
    for line in source.text.split("\n"):
        elision = elisions.get(line)
        lines += expand(f"{base}:{elision.first}-{elision.last}").split("\n") if elision else [line]
    return lines


def elided_source(context: Context, start: str) -> ContextSource:
    source = next(source for source in context.sources if source.id.startswith(start) and source.elided)
    assert isinstance(source, ContextSource)
    return source


@pytest.mark.parametrize(
    ("query", "path"), [("haul the rope and slip the clutch", "winch.py"), ("where is the spare anchor", "guide.md")]
)
def test_a_piece_of_a_file_and_its_elisions_give_the_block(
    api: Api, ways: dict[str, Expand], query: str, path: str
) -> None:
    source = elided_source(api.local_client.build(query, token_budget=500, include=(path,)), path)
    text = (api.engine.root / path).read_text().split("\n")
    assert source.line is not None
    for way, expand in ways.items():
        assert completed(source, path, expand) == text[source.line - 1 : source.end_line], way
        assert expand(source.id).split("\n") == text[source.line - 1 : source.end_line], way


@pytest.mark.parametrize("query", ["where is the spare anchor", "which tasks are open about the brass anchor?"])
def test_a_piece_of_a_note_and_its_elisions_give_the_block(
    notes: Api, note_ways: dict[str, Expand], query: str
) -> None:
    context = notes.local_client.build(query, type="search", token_budget=900)
    source = elided_source(context, "Diary")
    alone = [line for other in context.sources if other.type == "todo" for line in other.text.split("\n")]
    for way, expand in note_ways.items():
        whole, pieces = expand(source.id).split("\n"), completed(source, source.id, expand)
        # A task with a piece of its own is left out of its section, with the empty line before it.
        assert [line for line in whole if line and line not in alone] == [*filter(None, pieces)], way
        assert alone or pieces == whole
    assert bool(alone) is ("tasks" in query)


def test_symbols_and_headings_of_files_are_given_whole(api: Api, ways: dict[str, Expand]) -> None:
    code = CODE.split("\n")
    haul, stow = (next(i for i, line in enumerate(code) if f"def {name}" in line) for name in ("haul", "stow"))
    painting = GUIDE[GUIDE.index("## Painting") : GUIDE.index("\n\n## Closing")]
    blocks = api.engine.store.blocks_of("guide.md", api.local_client.filters())
    heading = next(block.id for block in blocks if block.title == "Painting")
    for way, expand in ways.items():
        assert expand("winch.py#Winch.haul") == "\n".join(code[haul : stow - 1]), way
        assert expand(heading).strip() == painting, way
        assert expand("guide.md").strip() == GUIDE.strip(), way


def test_headings_and_pages_of_notes_are_given_whole(notes: Api, note_ways: dict[str, Expand]) -> None:
    painting = NOTE[NOTE.index("## Painting") : NOTE.index("\n\n## Closing")]
    for way, expand in note_ways.items():
        assert expand("Diary#Diary/Painting") == painting, way
        assert expand("Diary") == NOTE.strip(), way  # the title of the page is its first heading, too
