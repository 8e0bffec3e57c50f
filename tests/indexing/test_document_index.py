"""Documents in a workspace: read, kept, found, cited by page, and never stale."""

from __future__ import annotations

import os
from collections.abc import Iterator
from contextlib import closing
from pathlib import Path
from typing import Any

import apsw
import pytest

import satchel
from satchel.indexing.documents.document_outline import outline_document
from satchel.indexing.indexer import Indexer
from satchel.indexing.walk import Reading, policy_for
from satchel.models.access import DefaultAccess
from satchel.models.document import Bookmark, Document, Page, extract_page_content
from satchel.models.files import SAME_AS
from satchel.models.options import RequestType
from satchel.models.outline import Outline
from satchel.models.search import Filters
from satchel.ports.file_index import NewFile
from satchel.retrieval.freshness import Disk
from satchel.service.importing import import_source
from tests.support.documents import docx_of, encrypted_pdf, pdf_of_lines, pptx_of, scanned_pdf, xlsx_of

EVERYONE = Filters()


def write_papers(root: Path) -> Path:
    root.mkdir()
    (root / "garden.pdf").write_bytes(
        pdf_of_lines([["The garden opens in May."], ["Nothing to see here."], ["Tickets for lions cost 12 euros."]])
    )
    (root / "pumps.docx").write_bytes(docx_of([(1, "Decision", "We will buy three blue pumps.")]))
    (root / "deck.pptx").write_bytes(pptx_of([("Hiring", ["Two welders in spring"], ""), ("End", ["Thank you"], "")]))
    (root / "sales.xlsx").write_bytes(xlsx_of({"Totals": [["Region", "Revenue"], ["Southland", 250]]}))
    (root / "code.py").write_text("def lions():\n    return 12\n")
    return root


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    return write_papers(tmp_path / "papers")


def engine_for(root: Path, **more: Any) -> satchel.ContextEngine:
    return satchel.open_engine(root, index_dir=str(root.parent / "index"), **more)


def place_of_best(result: satchel.ContextBuildResult) -> tuple[str | None, int | None]:
    best = max(result.sources, key=lambda source: source.relevance)
    return best.file, best.page


@pytest.fixture(scope="module")
def reader(tmp_path_factory: pytest.TempPathFactory) -> Iterator[satchel.ContextEngine]:
    """Of papers that were indexed once, for those who only ask."""
    with engine_for(write_papers(tmp_path_factory.mktemp("read") / "papers")) as engine:
        engine.index()
        yield engine


class TestBuildingFromDocuments:
    @pytest.mark.parametrize(
        ("question", "file", "page"),
        [
            ("what do tickets for lions cost", "garden.pdf", 3),
            ("when does the garden open", "garden.pdf", 1),
            ("how many pumps will we buy", "pumps.docx", 1),
            ("when do we hire welders", "deck.pptx", 1),
            ("revenue of Southland", "sales.xlsx", 1),
        ],
    )
    def test_a_question_is_answered_from_the_right_page(
        self, reader: satchel.ContextEngine, question: str, file: str, page: int
    ) -> None:
        result = reader.build(question)
        assert place_of_best(result) == (file, page)

    @pytest.mark.parametrize("format", list(satchel.ContextFormat))
    def test_every_format_says_the_page_and_not_the_lines_of_its_text(
        self, reader: satchel.ContextEngine, format: satchel.ContextFormat
    ) -> None:
        options = satchel.ContextBuildOptions(
            format=format, include_sources=True, max_tokens=500, min_relevance=0, include_line_numbers=True,
            file_patterns=["garden.pdf"],
        )  # fmt: skip
        text = reader.build("what do tickets for lions cost", options).context
        expected = {
            "markdown": "Page 3", "plain": "age 3", "xml": 'page="3"', "json": '"page": 3',
        }[format.value]  # fmt: skip
        assert expected in text
        assert "ines 8" not in text
        assert "startLine" not in text

    def test_documents_stand_beside_code(self, reader: satchel.ContextEngine) -> None:
        files = {source.file for source in reader.build("lions").sources}
        assert {"garden.pdf", "code.py"} <= files

    def test_a_page_and_its_sections_are_blocks(self, reader: satchel.ContextEngine) -> None:
        blocks = reader.store.blocks_of("pumps.docx", EVERYONE)
        page = reader.store.block("garden.pdf#page-3", EVERYONE)
        assert [(block.type, block.page) for block in blocks[1:]] == [("page", 1), ("section", 1)]
        assert page is not None
        assert page.page == 3
        assert "lions" in page.content

    def test_a_page_can_be_expanded_and_focused(self, reader: satchel.ContextEngine) -> None:
        expansion = reader.expand("garden.pdf#page-3")
        request = satchel.ContextRequest(
            query="what is this?", user=satchel.User(id="me"), focus=satchel.Focus(block_id="garden.pdf#page-3")
        )
        payload = reader.build(request)
        assert expansion.page == 3
        assert "12 euros" in expansion.text
        assert "12 euros" in payload.serialized

    def test_a_search_in_a_workspaces_context_says_the_page(self, reader: satchel.ContextEngine) -> None:
        request = satchel.ContextRequest(
            query="what do tickets for lions cost", user=satchel.User(id="me"), type=RequestType.SEARCH
        )
        text = reader.build(request).serialized
        assert "garden.pdf, page 3" in text


class TestIndexing:
    def test_what_cannot_be_read_is_named_with_the_reason_and_the_rest_is_indexed(self, folder: Path) -> None:
        (folder / "closed.pdf").write_bytes(encrypted_pdf("secret"))
        (folder / "empty.pdf").write_bytes(b"")
        (folder / "odd.pdf").write_bytes(b"%PDF-1.7\nnothing more")
        with engine_for(folder) as engine:
            report = engine.index()
            again = engine.index()
        reasons = dict(report.skipped_paths)
        assert "encrypted" in reasons["closed.pdf"]
        assert "empty" in reasons["empty.pdf"]
        assert reasons["odd.pdf"]
        assert report.read == 5
        assert (again.read, dict(again.skipped_paths)) == (0, reasons)

    def test_a_document_without_content_stops_nobody(self, folder: Path) -> None:
        (folder / "empty.html").write_text("<html><body></body></html>")
        (folder / "bare.html").write_text("<!doctype html>")
        (folder / "empty.docx").write_bytes(docx_of([]))
        with engine_for(folder) as engine:
            report = engine.index()
            assert {"empty.html", "bare.html", "empty.docx"} <= set(engine.store.files())
            assert place_of_best(engine.build("tickets for lions")) == ("garden.pdf", 3)
        assert report.read >= 5

    def test_widening_far_takes_no_longer(self, folder: Path) -> None:
        with engine_for(folder) as engine:
            engine.index()
            assert engine.expand("garden.pdf#page-3", lines=10**12).text == "Tickets for lions cost 12 euros."
            assert engine.expand("code.py:1-1", lines=10**12).text == "def lions():\n    return 12"

    def test_only_what_has_changed_is_read_again(self, folder: Path) -> None:
        with engine_for(folder) as engine:
            engine.index()
            (folder / "garden.pdf").write_bytes(pdf_of_lines([["The garden is closed."]]))
            os.utime(folder / "pumps.docx")
            report = engine.index()
            pages = engine.store.pages_of("garden.pdf", EVERYONE)
        assert report.read == 1
        assert ["closed" in page.text for page in pages] == [True]

    def test_documents_of_one_content_are_kept_once_and_known_by_both_names(self, folder: Path) -> None:
        (folder / "old copies").mkdir()
        (folder / "old copies" / "garden.pdf").write_bytes((folder / "garden.pdf").read_bytes())
        with engine_for(folder) as engine:
            report = engine.index()
            sources = engine.build("what do tickets for lions cost").sources
            notes = engine.store.notes()
            text = engine.expand("old copies/garden.pdf#page-3").text
        assert (report.read, report.duplicates) == (5, 1)
        assert notes["old copies/garden.pdf"] == f"{SAME_AS}garden.pdf"
        assert [source.file for source in sources if "garden" in (source.file or "")].count("garden.pdf") >= 1
        assert not any(source.file == "old copies/garden.pdf" for source in sources)
        assert "12 euros" in text

    @pytest.mark.parametrize("change", ["remove", "rewrite"])
    def test_a_copy_takes_over_when_the_first_is_gone(self, folder: Path, change: str) -> None:
        copy = folder / "the copy of it.pdf"
        copy.write_bytes((folder / "garden.pdf").read_bytes())
        with engine_for(folder) as engine:
            engine.index()
            if change == "remove":
                (folder / "garden.pdf").unlink()
            else:
                (folder / "garden.pdf").write_bytes(pdf_of_lines([["Something else."]]))
            engine.index()
            result = engine.build("what do tickets for lions cost")
            again = engine.index()
        assert place_of_best(result) == (copy.name, 3)
        assert (again.read, again.duplicates) == (0, 0)

    def test_a_changed_document_is_read_again_before_it_is_shown(self, folder: Path) -> None:
        with engine_for(folder) as engine:
            engine.index()
            lines = [["A new first page."], ["The garden opens in May."], ["x"], ["Tickets for lions cost 12 euros."]]
            (folder / "garden.pdf").write_bytes(pdf_of_lines(lines))
            result = engine.build("what do tickets for lions cost")
        assert place_of_best(result) == ("garden.pdf", 4)
        assert any("garden.pdf has changed" in note for note in result.notes)

    def test_a_document_that_became_unreadable_is_not_shown(self, folder: Path) -> None:
        with engine_for(folder) as engine:
            engine.index()
            (folder / "garden.pdf").write_bytes(encrypted_pdf("secret"))
            result = engine.build("what do tickets for lions cost")
        assert all(source.file != "garden.pdf" for source in result.sources)

    def test_reading_goes_on_where_it_was_stopped(self, folder: Path, monkeypatch: pytest.MonkeyPatch) -> None:
        monkeypatch.setattr("satchel.indexing.indexer._COMMIT_AT_SECONDS", 0.0)
        seen: list[int] = []

        def impatient(step: object) -> None:
            seen.append(1)
            if len(seen) > 4:
                raise KeyboardInterrupt

        with engine_for(folder) as engine:
            with pytest.raises(KeyboardInterrupt):
                engine.index(impatient)
            kept = len(engine.store.files())
            report = engine.index()
        assert 0 < kept < 5
        assert report.read == 5 - kept

    def test_what_is_too_large_is_passed_over(self, folder: Path) -> None:
        with engine_for(folder, max_document_bytes=1000) as engine:
            report = engine.index()
        assert dict(report.skipped_paths)["garden.pdf"] == "too-large"

    @pytest.mark.parametrize(("reading", "expected"), [("off", {"code.py"}), ("auto", None), ("all", None)])
    def test_documents_can_be_left_alone(self, folder: Path, reading: str, expected: set[str] | None) -> None:
        with engine_for(folder, documents=reading) as engine:
            engine.index()
            files = set(engine.store.files())
        assert files == (expected or {path.name for path in folder.iterdir()})

    def test_in_a_repository_web_pages_and_tables_are_source(self, folder: Path) -> None:
        (folder / "page.html").write_text("<!doctype html><html><body><p>Soup of the day</p></body></html>")
        (folder / "cities.csv").write_text("city,people\nRome,2800000\n")
        outside = policy_for(Reading.AUTO, is_source=False, max_bytes=10**6)
        inside = policy_for(Reading.AUTO, is_source=True, max_bytes=10**6)
        assert outside.takes("page.html")
        assert not inside.takes("page.html")
        assert inside.takes("a/b.pdf")
        with engine_for(folder) as engine:
            engine.index()
            assert engine.store.pages_of("page.html", EVERYONE)
        (folder / ".git").mkdir()
        with satchel.open_engine(folder, index_dir=str(folder.parent / "index2")) as engine:
            engine.index()
            assert not engine.store.pages_of("page.html", EVERYONE)
            assert engine.store.pages_of("garden.pdf", EVERYONE)
            assert engine.expand("page.html:1-1").text.startswith("<!doctype")

    def test_an_index_from_before_documents_is_brought_up(self, folder: Path) -> None:
        from satchel.storage.sqlite import database_file as schema

        with engine_for(folder) as engine:
            (old,) = (folder.parent / "index").rglob("truth.sqlite")
        old.unlink()
        with closing(apsw.Connection(str(old))) as connection:
            connection.execute(schema.migration(1) + schema.migration(2))
            connection.pragma("user_version", 2)
        with engine_for(folder) as engine:
            engine.index()
            assert engine.store.pages_of("garden.pdf", EVERYONE)

    def test_a_change_of_settings_is_a_change(self, folder: Path) -> None:
        (folder / "scan.pdf").write_bytes(scanned_pdf(["Written on a scan"]))
        (folder / "page.html").write_text("<!doctype html><html><body><p>Soup of the day</p></body></html>")
        index: dict[str, Any] = {"index_dir": str(folder.parent / "index")}
        with satchel.open_engine(folder, ocr="off", documents="all", **index) as engine:
            engine.index()
            assert not engine.store.pages_of("scan.pdf", EVERYONE)[0].text
        with satchel.open_engine(folder, documents="all", **index) as engine:
            assert engine.index().read == 6
            assert "scan" in engine.store.pages_of("scan.pdf", EVERYONE)[0].text
            assert engine.index().read == 0
        with satchel.open_engine(folder, documents="off", **index) as engine:
            engine.index()
            assert set(engine.store.files()) == {"code.py", "page.html"}
            assert engine.expand("page.html").text.startswith("<!doctype")

    def test_an_index_of_before_gets_its_documents(self, folder: Path) -> None:
        """What was passed over as binary by a version that could not read it is read by one that can."""
        with engine_for(folder) as engine:
            engine.index()
            with engine.store.write() as writer:
                for path, state in engine.store.files().items():
                    if path != "code.py":
                        writer.put(NewFile(path, state, "", Outline(None, note="passed over: binary")))
                writer.set_fact("documents", "")
        with engine_for(folder) as engine:
            assert engine.index().read == 4
            assert engine.store.pages_of("garden.pdf", EVERYONE)

    def test_no_page_is_widened_over_its_border(self, folder: Path) -> None:
        with engine_for(folder) as engine:
            engine.index()
            for options in (
                satchel.ContextBuildOptions(min_relevance=0),
                satchel.ContextBuildOptions(context_lines=50),
            ):
                shown = engine.build("tickets for lions", options)
                for source, text in ((source, source.text) for source in shown.sources):
                    if source.file == "garden.pdf":
                        assert ("lions" in text) == (source.page == 3)
                        assert ("May" in text) == (source.page == 1)
            hit = engine.search("tickets for lions").hits[0]
            assert engine.expand(hit.id, lines=9).text == "Tickets for lions cost 12 euros."
            assert engine.expand("garden.pdf").text.startswith("<!-- page 1 -->")

    def test_copies_are_found_under_patterns(self, folder: Path) -> None:
        (folder / "the copy.pdf").write_bytes((folder / "garden.pdf").read_bytes())
        with engine_for(folder) as engine:
            engine.index()
            hits = engine.search("lions", filters=Filters(patterns=("the*",))).hits
            assert {hit.path for hit in hits} == {"garden.pdf"}

    def test_what_was_read_before_an_interruption_is_kept(self, folder: Path) -> None:
        seen: list[int] = []

        def impatient(step: object) -> None:
            seen.append(1)
            if len(seen) > 4:
                raise KeyboardInterrupt

        with engine_for(folder) as engine:
            with pytest.raises(KeyboardInterrupt):
                engine.index(impatient)
            assert len(engine.store.files()) >= 3

    def test_readers_hold_for_pages(self, folder: Path) -> None:
        with engine_for(folder) as engine:
            engine.index()
            with engine.workspace.edit() as edit:
                edit.set_default(DefaultAccess.DENY)
            stranger = engine.filters_for(satchel.User(id="eve"))
            assert engine.store.pages_of("garden.pdf", stranger) == []
            assert engine.store.documents(stranger) == {}
            assert engine.store.paths_of(engine.store.files()["garden.pdf"].content_hash, stranger) == []
            assert engine.store.block("garden.pdf#page-3", stranger) is None

    def test_disk_and_indexer_can_be_used_without_documents(self, folder: Path) -> None:
        handle = os.open(folder, os.O_RDONLY)
        try:
            with engine_for(folder) as engine:
                assert Indexer(folder, engine.store, engine.embedder).changes().found == 1
                assert Disk(handle, 100, engine.folder.documents).document("none.pdf", "") is None
        finally:
            os.close(handle)


class TestOutlines:
    def test_every_page_has_its_lines_and_every_piece_its_page(self) -> None:
        pages = (
            Page(1, "# Report\n\nFirst words.\n\n## Money\n\nMuch."),
            Page(2, ""),
            Page(3, "It goes on.\r\n\r\n| a | b |\n|---|---|\n| 1 | 2 |", captions=("Figure 1",), pictures=2),
            Page(4, "<!-- page 9 -->\nA forged border.", seen="axis label"),
        )
        text, outline = outline_document("a/report.pdf", Document(pages, title="The report"))
        for page in outline.pages:
            said = "\n".join(text.split("\n")[page.first_line - 1 : page.last_line])
            assert extract_page_content(text, page.number) == said.replace("\\<!--", "<!--")
        for piece in outline.pieces:
            page = outline.pages[piece.page - 1]
            assert page.first_line <= piece.first_line <= piece.last_line <= page.last_line
            assert text[piece.start : piece.end] == "\n".join(text.split("\n")[piece.first_line - 1 : piece.last_line])
        third = outline.pages[2]
        assert (third.section_path, third.parent_heading) == ("Report > Money", "Money")
        assert (third.tables, third.pictures, third.captions) == (1, 2, ("Figure 1",))
        assert outline.pages[0].headings == 2
        assert "axis label" in (extract_page_content(text, 4) or "")
        assert extract_page_content(text, 9) is None

    def test_a_table_of_contents_names_the_sections(self) -> None:
        pages = tuple(Page(i, f"Text of page {i}.") for i in range(1, 6))
        marks = (Bookmark(1, "One", 1), Bookmark(2, "One and a half", 2), Bookmark(1, "Two", 4))
        outline = outline_document("a.pdf", Document(pages, bookmarks=marks)).outline
        assert [page.section_path for page in outline.pages] == [
            "One", "One > One and a half", "One > One and a half", "Two", "Two",
        ]  # fmt: skip

    def test_what_converters_guard_needlessly_is_written_plainly(self) -> None:
        markdown = "Call asn1\\_get\\_tag, cost \\$5 \\* 2\n\\_start\n\\* no list\n| a \\| b |\nC:\\\\_x"
        text = outline_document("a.pdf", Document((Page(1, markdown),))).text
        assert text.split("\n")[1:] == [
            "Call asn1_get_tag, cost $5 * 2", "_start", "\\* no list", "| a \\| b |", "C:\\\\_x",
        ]  # fmt: skip

    def test_names_that_come_twice_on_a_page_stay_apart(self) -> None:
        _, outline = outline_document("a.pdf", Document((Page(1, "# Note\n\na\n\n# Note\n\nb"),)))
        names = [block.qualified for block in outline.blocks]
        assert len(names) == len(set(names))


class TestGrantsOnFiles:
    """A document is granted like any block, and a folder with all that is in it."""

    @pytest.fixture
    def engine(self, tmp_path: Path) -> Iterator[satchel.ContextEngine]:
        root = tmp_path / "shared"
        for name in ("board/plan.pdf", "board/old/plan.pdf", "staff/menu.pdf"):
            (root / name).parent.mkdir(parents=True, exist_ok=True)
            (root / name).write_bytes(pdf_of_lines([[f"The {name} is about pumps."]]))
        (root / "pumps.py").write_text("def pumps():\n    return 3\n")
        with satchel.open_engine(root, index_dir=str(tmp_path / "index")) as engine:
            engine.index()
            yield engine

    def readable(self, engine: satchel.ContextEngine, user: str) -> set[str]:
        filters = engine.filters_for(satchel.User(id=user))
        found = {hit.path for hit in engine.search("pumps", filters=filters).hits}
        assert found >= set(engine.store.documents(filters))
        return found

    def test_a_file_a_folder_and_everything(self, engine: satchel.ContextEngine) -> None:
        with engine.workspace.edit() as edit:
            edit.grant("board/plan.pdf", "ann")
            edit.grant("board", "bob")
            edit.grant("/", "cleo")
        assert self.readable(engine, "ann") == {"board/plan.pdf"}
        assert self.readable(engine, "bob") == {"board/plan.pdf", "board/old/plan.pdf"}
        assert len(self.readable(engine, "cleo")) == 4
        assert self.readable(engine, "eve") == set()

    def test_a_denial_below_a_grant_and_its_revocation(self, engine: satchel.ContextEngine) -> None:
        with engine.workspace.edit() as edit:
            edit.grant("board/", "bob")
            edit.deny("board/old/", "bob")
        assert self.readable(engine, "bob") == {"board/plan.pdf"}
        with engine.workspace.edit() as edit:
            edit.revoke("board/old", "bob")
        assert self.readable(engine, "bob") == {"board/plan.pdf", "board/old/plan.pdf"}
        with engine.workspace.edit() as edit:
            edit.revoke("board", "bob")
        assert self.readable(engine, "bob") == set()

    def test_a_file_that_comes_later_or_comes_back_has_its_folders_grants(self, engine: satchel.ContextEngine) -> None:
        with engine.workspace.edit() as edit:
            edit.grant("board", "bob")
            edit.deny("board/plan.pdf", "bob")
        (engine.root / "board" / "new.pdf").write_bytes(pdf_of_lines([["New pumps."]]))
        kept = (engine.root / "board" / "plan.pdf").read_bytes()
        (engine.root / "board" / "plan.pdf").unlink()
        engine.index()
        assert self.readable(engine, "bob") == {"board/old/plan.pdf", "board/new.pdf"}
        (engine.root / "board" / "plan.pdf").write_bytes(kept)
        engine.index()
        assert self.readable(engine, "bob") == {"board/old/plan.pdf", "board/new.pdf"}

    def test_a_changed_file_stays_as_closed_as_it_was(self, engine: satchel.ContextEngine) -> None:
        with engine.workspace.edit() as edit:
            edit.grant("staff/menu.pdf", "ann")
        (engine.root / "staff" / "menu.pdf").write_bytes(pdf_of_lines([["Soup and pumps."]]))
        engine.index()
        assert self.readable(engine, "ann") == {"staff/menu.pdf"}
        assert self.readable(engine, "eve") == set()

    def test_a_name_that_a_block_has_too_means_both(self, engine: satchel.ContextEngine) -> None:
        with engine.workspace.edit() as edit:
            edit.put(satchel.Block(id="board", type="text", content="A note on pumps."))
            edit.grant("/", "bob")
            edit.grant("board", "ann")
            edit.deny("board", "bob")
        assert self.readable(engine, "bob") == {"staff/menu.pdf", "pumps.py"}
        assert self.readable(engine, "ann") == {"", "board/plan.pdf", "board/old/plan.pdf"}
        with engine.workspace.edit() as edit:
            edit.revoke("board", "bob")
        assert "board/plan.pdf" in self.readable(engine, "bob")

    def test_grants_come_back_before_the_files_do(self, engine: satchel.ContextEngine, tmp_path: Path) -> None:
        """An export that is taken over by an empty index keeps out whom it kept out."""
        with engine.workspace.edit() as edit:
            edit.grant("/", "bob")
            edit.deny("board", "bob")
        kept = list(engine.store.records())
        with satchel.open_engine(engine.root, index_dir=str(tmp_path / "second")) as again:
            report = again.workspace.load(kept)
            again.index()
            assert not report.notes
            assert self.readable(again, "bob") == {"staff/menu.pdf", "pumps.py"}

    @pytest.mark.parametrize(
        "path", ["..", "../", "../../", "...//", "/s/", "./s/", "s//", "s/../o/", "/etc/", "s/\0", ""]
    )
    def test_a_path_that_leads_elsewhere_is_no_place_for_a_grant(
        self, engine: satchel.ContextEngine, path: str
    ) -> None:
        with pytest.raises(satchel.errors.InvalidInput):
            engine.workspace.load([satchel.Grant(block=path, principal="user:eve", is_path=True)])
        assert engine.store.default_access() is DefaultAccess.OWNER

    def test_a_folder_of_dots_is_a_folder(self, engine: satchel.ContextEngine, tmp_path: Path) -> None:
        (engine.root / "...").mkdir()
        (engine.root / "..." / "d.txt").write_text("pumps again\n")
        engine.index()
        with engine.workspace.edit() as edit:
            edit.grant("...", "ann")
        with satchel.open_engine(engine.root, index_dir=str(tmp_path / "other")) as again:
            again.workspace.load(list(engine.store.records()))
            again.index()
            assert self.readable(engine, "ann") == self.readable(again, "ann") == {".../d.txt"}

    def test_a_folder_in_the_place_of_a_denied_file_is_denied(self, engine: satchel.ContextEngine) -> None:
        with engine.workspace.edit() as edit:
            edit.grant("/", "bob")
            edit.deny("staff/menu.pdf", "bob")
        (engine.root / "staff/menu.pdf").unlink()
        (engine.root / "staff/menu.pdf").mkdir()
        (engine.root / "staff/menu.pdf/in.txt").write_text("pumps inside\n")
        engine.index()
        assert not any(path.startswith("staff") for path in self.readable(engine, "bob"))

    def test_notes_of_a_vault_are_files_no_longer(self, engine: satchel.ContextEngine) -> None:
        """What becomes a block with readers of its own is at once no file that a folder's grant opens."""
        vault = engine.root / "vault"
        (vault / ".obsidian").mkdir(parents=True)
        (vault / "Salaries.md").write_text("# Salaries\n\nThe pumps pay 12 zorkmids.\n")
        engine.index()
        import_source(engine.workspace, vault)
        with engine.workspace.edit() as edit:
            edit.grant("/", "bob")
        assert not any("Salaries" in path for path in self.readable(engine, "bob"))
        assert not any(path.startswith("vault") for path in engine.store.files())

    def test_the_name_of_a_hidden_copy_is_not_told(self, tmp_path: Path) -> None:
        root = tmp_path / "two"
        for name in ("hr/fire-bob.pdf", "public folder/announcement.pdf"):
            (root / name).parent.mkdir(parents=True)
            (root / name).write_bytes(pdf_of_lines([["The merger."]]))
        with satchel.open_engine(root, index_dir=str(tmp_path / "index2")) as engine:
            engine.index()
            with engine.workspace.edit() as edit:
                edit.grant("public folder", "ann")
            filters = engine.filters_for(satchel.User(id="ann"))
            with pytest.raises(satchel.errors.UnknownBlock) as told:
                engine.expand("public folder/announcement.pdf", filters=filters)
            assert "fire-bob" not in str(told.value)

    def test_hidden_files_have_no_say_in_which_of_equals_are_found(self, tmp_path: Path) -> None:
        found = []
        for hidden in (1, 150):
            root = tmp_path / f"with {hidden}"
            for folder, count in (("v", 150), ("h", hidden)):
                (root / folder).mkdir(parents=True)
                for i in range(count):
                    (root / folder / f"{i:04}.txt").write_text("The zebra is striped.\n")
            with satchel.open_engine(root, index_dir=str(tmp_path / f"index {hidden}")) as engine:
                engine.index()
                with engine.workspace.edit() as edit:
                    edit.grant("v", "ann")
                filters = engine.filters_for(satchel.User(id="ann"))
                found.append([hit.id for hit in engine.search("zebra", top_k=40, filters=filters).hits])
        assert found[0] == found[1]

    def test_what_is_neither_block_nor_file_is_refused(self, engine: satchel.ContextEngine) -> None:
        with pytest.raises(satchel.errors.UnknownBlock), engine.workspace.edit() as edit:
            edit.grant("boar", "bob")

    def test_grants_on_paths_are_exported(self, engine: satchel.ContextEngine) -> None:
        with engine.workspace.edit() as edit:
            edit.grant("board", "bob")
        grants = [one for one in engine.store.records() if isinstance(one, satchel.Grant)]
        assert grants == [satchel.Grant(block="board/", principal="user:bob", is_path=True)]

    def test_copies_of_a_document_are_read_by_whoever_may_read_one_of_them(self, engine: satchel.ContextEngine) -> None:
        """Kept once, under one path: whoever may read only the other path must not lose it, nor gain the first."""
        (engine.root / "staff" / "copy of the plan.pdf").write_bytes((engine.root / "board/plan.pdf").read_bytes())
        with engine.workspace.edit() as edit:
            edit.grant("staff", "sam")
        engine.index()
        assert self.readable(engine, "sam") == {"staff/menu.pdf", "staff/copy of the plan.pdf"}
