"""The library in Chroma: the real one, in a folder and behind a real server, filled by us and by others."""

from __future__ import annotations

import asyncio
import base64
import gc
import gzip
import inspect
import io
import os
import re
import socket
import subprocess
import sys
from collections.abc import Callable, Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import ExitStack
from pathlib import Path
from typing import Any, ClassVar
from uuid import uuid4

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from numpy.typing import NDArray

import satchel
from satchel.errors import InvalidInput, InvalidOption, LibraryMismatch, LibraryUnavailable
from satchel.integrations.chroma import ChromaLibrary
from satchel.integrations.chroma.connect import open_folder
from satchel.integrations.chroma.records import MOST_REPEATED_CHARS, chunks_of
from satchel.integrations.embedders.static_embedder import StaticEmbedder
from satchel.models.document import Page, compress_markdown, extract_page_content, whole_markdown
from satchel.models.outline import OutlinePage
from satchel.ports.page_embedder import PageView
from satchel.ports.page_library import PageLibrary, SearchEngine, SearchMode
from satchel.research.builder import ContextBuilder
from satchel.retrieval.late_interaction import max_sim
from tests.support.documents import pdf_of_lines
from tests.support.waiting import HANG_SECONDS, wait_for

pytestmark = pytest.mark.filterwarnings("ignore::DeprecationWarning")

WHEN = "2026-05-04T10:00:00Z"
CRISIS = [
    Page(1, "# The crisis of 2008\n\nA report to the committee.", pictures=1),
    Page(2, "## Causes\n\nSubprime mortgages and excessive leverage caused the financial crisis.\n\n"
            "| Bank | Loss |\n|---|---|\n| Lehman | 39 |\n"),
    Page(3, "The collapse of Lehman Brothers in September triggered a panic.\n\n### Rescue\n\nCentral banks lent."),
]  # fmt: skip
GARDEN = [
    Page(1, "# Gardening\n\nTomatoes want sun and water."),
    Page(2, "Roses are pruned in spring.", captions=("Figure 1: monthly rainfall in Graz, millimetres",), pictures=1),
]


# -- where it runs


def free_port() -> int:
    with socket.socket() as taken:
        taken.bind(("127.0.0.1", 0))
        return int(taken.getsockname()[1])


@pytest.fixture(scope="session")
def port(tmp_path_factory: pytest.TempPathFactory) -> Iterator[int]:
    """A real server on the loopback, for the tests of this process."""
    import httpx

    number = free_port()
    folder = tmp_path_factory.mktemp("chroma-server")
    command = [str(Path(sys.executable).with_name("chroma")), "run", "--host", "127.0.0.1", "--port", str(number),
               "--path", str(folder)]  # fmt: skip
    server = subprocess.Popen(
        command, cwd=folder, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL,
        env={**os.environ, "ANONYMIZED_TELEMETRY": "False"},
    )  # fmt: skip
    try:

        def answers() -> bool:
            assert server.poll() is None, "the server ended at once"
            try:
                return httpx.get(f"http://127.0.0.1:{number}/api/v2/heartbeat").is_success
            except httpx.HTTPError:
                return False

        wait_for(answers, "Chroma's server")
        yield number
    finally:
        server.terminate()
        server.wait(HANG_SECONDS)


Opened = Callable[..., ChromaLibrary]


@pytest.fixture(params=["folder", "server"])
def opened(request: pytest.FixtureRequest, tmp_path: Path) -> Iterator[Opened]:
    """Opens the library of this test, each time with the options given."""
    own = uuid4().hex
    with ExitStack() as libraries:

        def in_folder(**options: Any) -> ChromaLibrary:
            return libraries.enter_context(ChromaLibrary.persistent(tmp_path / "chroma", **options))

        def at_server(visual: str = "visual", text: str = "text", **options: Any) -> ChromaLibrary:
            number = request.getfixturevalue("port")
            options |= {"visual": f"{visual}-{own}", "text": f"{text}-{own}"}
            return libraries.enter_context(ChromaLibrary.server("127.0.0.1", number, **options))

        yield in_folder if request.param == "folder" else at_server


in_a_folder = pytest.mark.parametrize("opened", ["folder"], indirect=True)
"""For what does not depend on how Chroma is reached."""


@pytest.fixture
def library(opened: Opened) -> ChromaLibrary:
    made = opened()
    made.add_document("abc123", "crisis.pdf", CRISIS, timestamp=WHEN, source_path="/docs/crisis.pdf",
                      image_path="/data/abc123_page_{:03}.jpg".format,
                      thumb_path="/data/abc123_page_{:03}_thumb.jpg".format)  # fmt: skip
    made.add_document("def456", "garden.docx", GARDEN, timestamp=WHEN)
    return made


def keys(hits: Sequence[Any]) -> list[tuple[str, int]]:
    return [(hit["doc_id"], hit["page"]) for hit in hits]


# -- what is kept


@pytest.mark.requirement("S3.chroma.visual-get", "S3.metadata.core-fields", "S3.metadata.path-fields")
def test_a_pages_metadata_is_what_the_visual_collection_gives_for_its_id_and_page(library: ChromaLibrary) -> None:
    which = {"$and": [{"doc_id": {"$eq": "abc123"}}, {"page": {"$eq": 2}}]}
    kept = library.visual_collection.get(where=which, include=["metadatas"])
    assert len(kept["ids"]) == 1
    raw = kept["metadatas"][0]
    assert {name: raw[name] for name in ("doc_id", "filename", "page", "extension", "timestamp")} == {
        "doc_id": "abc123",
        "filename": "crisis.pdf",
        "page": 2,
        "extension": "pdf",
        "timestamp": WHEN,
    }
    assert raw["source_path"] == "/docs/crisis.pdf"
    assert raw["image_path"] == "/data/abc123_page_002.jpg"
    assert raw["thumb_path"] == "/data/abc123_page_002_thumb.jpg"
    page = library.get_page_metadata("abc123", 2)
    assert page is not None
    assert page.to_dict() == {name: value for name, value in raw.items() if not name.startswith("satchel_")}
    assert library.get_page_metadata("abc123", 4) is None
    assert library.get_page_metadata("nobody", 1) is None
    bare = library.get_page_metadata("def456", 1)
    assert bare is not None
    assert (bare.source_path, bare.image_path, bare.thumb_path) == (None, None, None)


@pytest.mark.requirement("S3.metadata.structure-fields")
def test_pages_say_where_they_stand_and_what_is_on_them(library: ChromaLibrary) -> None:
    pages = [library.get_page_metadata("abc123", number) for number in (1, 2, 3)]
    assert [page and page.section_path for page in pages] == [
        "The crisis of 2008",
        "The crisis of 2008 > Causes",
        "The crisis of 2008 > Causes > Rescue",
    ]
    assert [page and page.parent_heading for page in pages] == ["The crisis of 2008", "Causes", "Rescue"]
    assert [page and (page.num_headings, page.num_tables, page.num_pictures) for page in pages] == [
        (1, 0, 1),
        (1, 1, 0),
        (1, 0, 0),
    ]
    under = library.get_page_metadata("def456", 2)
    assert under is not None
    assert under.section_path == "Gardening", "a page without a heading goes on under the one before"


@in_a_folder
def test_an_outline_knows_better_where_pages_stand(opened: Opened) -> None:
    library = opened()
    outline = [OutlinePage(2, 1, 9, section_path="Part I > Causes", parent_heading="Causes", headings=7, tables=5)]
    library.add_document("abc", "crisis.pdf", CRISIS, timestamp=WHEN, outline=outline)
    page = library.get_page_metadata("abc", 2)
    assert page is not None
    assert (page.section_path, page.num_headings, page.num_tables) == ("Part I > Causes", 7, 5)


@pytest.mark.requirement("S3.chroma.document-markdown", "S3.metadata.compressed-markdown")
def test_a_documents_markdown_is_gzip_in_base64_on_its_pages_and_comes_back_whole(library: ChromaLibrary) -> None:
    whole = whole_markdown([(page.number, page.markdown) for page in CRISIS])
    for raw in library.visual_collection.get(where={"doc_id": {"$eq": "abc123"}}, include=["metadatas"])["metadatas"]:
        assert gzip.decompress(base64.b64decode(raw["full_markdown_compressed"])).decode() == whole
    assert not inspect.iscoroutinefunction(library.get_document_markdown)
    assert library.get_document_markdown("abc123") == whole
    assert library.get_document_markdown("nobody") is None
    for page in CRISIS:
        assert library.get_page_markdown("abc123", page.number) == page.markdown
    assert library.get_page_markdown("abc123", 9) is None


@in_a_folder
def test_a_long_documents_markdown_stands_on_its_first_page_only(opened: Opened) -> None:
    library = opened()
    random = np.random.default_rng(1)
    pages = [Page(n, f"page {n} " + " ".join(map(str, random.integers(0, 10**9, 400)))) for n in range(3, 43)]
    library.add_document("long", "long.pdf", pages, timestamp=WHEN)
    metadatas = library.visual_collection.get(include=["metadatas"])["metadatas"]
    held = {one["page"]: len(one["full_markdown_compressed"]) for one in metadatas if "full_markdown_compressed" in one}
    assert list(held) == [3]
    assert held[3] > MOST_REPEATED_CHARS
    assert library.get_page_markdown("long", 40) == pages[37].markdown
    assert library.get_document_markdown("long") == whole_markdown([(page.number, page.markdown) for page in pages])
    assert library.is_whole("long")
    assert keys(library.search("page 17", 3)) != []


def test_fields_beyond_a_limit_are_left_out_and_nothing_is_lost(opened: Opened) -> None:
    library = opened(most_field_chars=200)
    pages = [Page(n, f"# Part {n}\n\n" + f"Rivers and mountains of region {n}. " * 60) for n in range(1, 41)]
    library.add_document("m", "m.pdf", pages, timestamp=WHEN)
    for raw in library.visual_collection.get(include=["metadatas", "uris"])["metadatas"]:
        assert all(len(value) <= 200 for value in raw.values() if isinstance(value, str))
    assert library.get_document_markdown("m") == whole_markdown([(page.number, page.markdown) for page in pages])
    assert library.get_page_markdown("m", 7) == pages[6].markdown
    assert library.is_whole("m")
    hits = library.search("mountains of region 7", 3, "visual")
    assert hits
    assert any("pooled vector" in note for note in hits.notes)


def test_what_is_written_in_pictures_is_part_of_the_page(opened: Opened) -> None:
    library = opened()
    library.add_document("s", "scan.png", [Page(1, "", seen="INVOICE 2231\nTotal 1,204")], timestamp=WHEN)
    assert library.get_page_markdown("s", 1) == "> In a picture:\n> INVOICE 2231\n> Total 1,204"
    assert keys(library.search("total of invoice 2231")) == [("s", 1), ("s", 1)]


# -- what is found


@pytest.mark.requirement("S3.search.signature")
def test_the_library_answers_both_ports_with_blocking_calls(library: ChromaLibrary) -> None:
    assert isinstance(library, SearchEngine)
    assert isinstance(library, PageLibrary)
    parameters = inspect.signature(library.search).parameters
    assert list(parameters) == ["query", "num_results", "search_mode"]
    assert parameters["num_results"].default == 10
    assert parameters["search_mode"].default == "hybrid"
    assert not inspect.iscoroutinefunction(library.search)
    assert keys(library.search(query="subprime mortgages", num_results=1, search_mode="text")) == [("abc123", 2)]


@pytest.mark.requirement("S3.search.result-shape", "S3.search.sorted")
@pytest.mark.parametrize("mode", list(SearchMode))
def test_hits_have_their_shape_and_come_best_first(library: ChromaLibrary, mode: SearchMode) -> None:
    hits = library.search("what caused the crisis of the banks?", search_mode=mode)
    assert hits
    for hit in hits:
        assert set(hit) == {"doc_id", "page", "score", "filename", "metadata"}
        assert [type(hit[name]) for name in ("doc_id", "page", "score", "filename")] == [str, int, float, str]
        assert 0 < hit["score"] <= 1
        assert hit["metadata"]["extension"] in {"pdf", "docx"}
        assert hit["metadata"]["timestamp"] == WHEN
        assert "thumb_path" in hit["metadata"], "S3 reads it from every hit"
        assert "full_markdown_compressed" not in hit["metadata"]
        assert hit["metadata"]["collection"] in ({"visual", "text"} if mode == "hybrid" else {mode})
    scores = [hit["score"] for hit in hits]
    assert scores == sorted(scores, reverse=True)
    assert keys(hits)[0][0] == "abc123"
    assert library.search("what caused the crisis of the banks?", search_mode=mode) == hits


@pytest.mark.requirement("S3.search.hybrid-both-collections")
def test_a_hybrid_search_brings_hits_of_both_collections(library: ChromaLibrary) -> None:
    hits = library.search("monthly rainfall in Graz", 10)
    assert {hit["metadata"]["collection"] for hit in hits} == {"visual", "text"}
    assert keys(hits)[0] == ("def456", 2), "its caption says so"
    both = [key for key in set(keys(hits)) if keys(hits).count(key) == 2]
    assert both, "a page may come twice"
    few = library.search("monthly rainfall in Graz", 3)
    assert len(few) == len(set(keys(few))) == 3, "a page's second hit takes no other page's room"


@in_a_folder
def test_a_chart_is_found_by_its_caption_in_the_visual_collection_only(library: ChromaLibrary) -> None:
    assert keys(library.search("rainfall chart, millimetres", 1, "visual")) == [("def456", 2)]


@in_a_folder
@pytest.mark.parametrize("mode", list(SearchMode))
def test_any_question_is_answered_or_finds_nothing(library: ChromaLibrary, mode: str) -> None:
    odd = ("?!", "…", "検索", "\ud800", "(?i)[*+", "'; DROP TABLE", "the of and", "x" * 9_000, "\x00", "\u202ecrisis")
    for query in odd:
        assert isinstance(library.search(query, 5, mode), list), query
    assert library.search("", 5, mode) == library.search(" \n", 5, mode) == []


@in_a_folder
def test_words_beyond_the_embedders_vocabulary_are_found_as_they_are_written(opened: Opened) -> None:
    library = opened()
    library.add_document(
        "j", "j.pdf", [Page(1, "検索エンジンの設計"), Page(2, "料理の本"), Page(3, "Größe")], timestamp=WHEN
    )
    assert keys(library.search("検索エンジン", 5, "text"))[0] == ("j", 1)
    assert keys(library.search("GRÖSSE Größe", 5, "text"))[0] == ("j", 3)


@in_a_folder
def test_a_rare_word_is_found_among_pages_that_are_nearer_in_meaning(opened: Opened) -> None:
    library = opened()
    alike = [Page(n, f"The quarterly report on revenue, part {n}.") for n in range(1, 261)]
    alike[200] = Page(201, "Order XK4471 was shipped to the warehouse after inspection of the goods in the harbour.")
    library.add_document("r", "r.pdf", alike, timestamp=WHEN)
    assert keys(library.search("quarterly revenue report XK4471", 3, "text"))[0] == ("r", 201)


@pytest.mark.parametrize(("option", "value"), [("num_results", 0), ("num_results", True), ("search_mode", "both")])
@in_a_folder
def test_options_that_cannot_be_right_are_named(library: ChromaLibrary, option: str, value: Any) -> None:
    with pytest.raises(InvalidOption, match=option):
        library.search("crisis", **{option: value})
    with pytest.raises(InvalidInput, match="page"):
        library.get_page_metadata("abc123", 0)


class ColourEmbedder:
    """Looks at pictures: a vector for each of 16 parts, its colours. A question names colours."""

    name = "colours/1"
    dimensions = 4
    needs_images = True
    _WORDS: ClassVar = {"red": (1, 0, 0), "green": (0, 1, 0), "blue": (0, 0, 1)}

    def embed_pages(self, pages: Sequence[PageView]) -> list[NDArray[np.float32]]:
        return [self._parts(page.image) if page.image else np.zeros((0, 4), np.float32) for page in pages]

    def _parts(self, image: bytes) -> NDArray[np.float32]:
        from PIL import Image

        small = np.asarray(Image.open(io.BytesIO(image)).convert("RGB").resize((4, 4)), np.float32).reshape(16, 3)
        return self._unit(np.concatenate([small, np.full((16, 1), 20, np.float32)], axis=1))

    def embed_query(self, text: str) -> NDArray[np.float32]:
        named = [(*self._WORDS[word], 0) for word in text.lower().split() if word in self._WORDS]
        return self._unit(np.array(named, np.float32).reshape(-1, 4))

    @staticmethod
    def _unit(rows: NDArray[np.float32]) -> NDArray[np.float32]:
        return np.asarray(rows / np.maximum(np.linalg.norm(rows, axis=1, keepdims=True), 1e-9), np.float32)


def picture(*colours: str) -> bytes:
    from PIL import Image, ImageDraw

    image = Image.new("RGB", (40, 40), "black")
    for i, colour in enumerate(colours):
        ImageDraw.Draw(image).rectangle((i * 10, 0, i * 10 + 9, 40), fill=colour)
    kept = io.BytesIO()
    image.save(kept, "PNG")
    return kept.getvalue()


@pytest.mark.requirement("S3.search.two-stage")
def test_pictures_are_found_in_two_stages_and_scored_exactly(opened: Opened) -> None:
    embedder = ColourEmbedder()
    library = opened(page_embedder=embedder)
    random = np.random.default_rng(4)
    names = ("red", "lime", "blue", "white", "gray")
    pictures = {n: picture(*random.choice(names, 4)) for n in range(1, 181)}
    pictures[120] = picture("red", "blue", "black", "black")
    library.add_document("p", "p.pdf", [Page(n, "") for n in pictures], timestamp=WHEN, images=pictures.__getitem__)
    hits = library.search("red and blue", 180, "visual")
    asked = embedder.embed_query("red and blue")
    exact = dict(
        zip(pictures, max_sim(asked, embedder.embed_pages([PageView(p) for p in pictures.values()])), strict=True)
    )
    for hit in hits:
        assert hit["score"] == pytest.approx(float(exact[hit["page"]]), abs=0.01)
    best = library.search("red and blue", 5, "visual")
    assert [hit["score"] for hit in best] == pytest.approx(sorted(exact.values(), reverse=True)[:5], abs=0.01)
    assert library.search("no colour at all", 5, "visual") == []


@in_a_folder
def test_an_embedder_that_looks_at_pictures_wants_them(opened: Opened) -> None:
    library = opened(page_embedder=ColourEmbedder())
    with pytest.raises(InvalidInput, match=r"images.*colours/1 needs the pictures"):
        library.add_document("p", "p.pdf", CRISIS, timestamp=WHEN)
    library.add_document("p", "p.pdf", CRISIS, timestamp=WHEN, images=lambda page: picture("red") if page == 2 else b"")
    assert keys(library.search("red", 9, "visual")) == [("p", 2)], "a page without a picture has no vectors"
    assert library.get_page_metadata("p", 1) is not None


# -- adding, again, and forgetting


def contents(library: ChromaLibrary) -> list[Any]:
    kept = [
        one.get(include=["metadatas", "documents", "uris"])
        for one in (library.visual_collection, library.text_collection)
    ]
    return [sorted(zip(one["ids"], map(repr, map(sorted, map(dict.items, one["metadatas"]))), one["documents"] or [],
                       strict=False)) for one in kept]  # fmt: skip


def test_adding_a_document_again_changes_nothing(library: ChromaLibrary) -> None:
    before = contents(library)
    library.add_document("def456", "garden.docx", GARDEN, timestamp=WHEN)
    assert contents(library) == before
    assert library.doc_ids() == ["abc123", "def456"]


def test_a_changed_document_leaves_nothing_of_the_former_one(library: ChromaLibrary) -> None:
    library.add_document("abc123", "crisis.pdf", [Page(2, "Only whales here.")], timestamp=WHEN)
    assert library.get_page_metadata("abc123", 1) is None
    assert library.get_page_metadata("abc123", 3) is None
    assert library.get_document_markdown("abc123") == "<!-- page 2 -->\nOnly whales here."
    assert library.is_whole("abc123")
    assert ("abc123", 3) not in keys(library.search("collapse of Lehman Brothers", 20))
    assert library.is_whole("def456")


def test_a_document_is_forgotten_whole(library: ChromaLibrary) -> None:
    library.delete_document("abc123")
    library.delete_document("nobody")
    assert library.doc_ids() == ["def456"]
    assert library.get_document_markdown("abc123") is None
    assert library.get_page_markdown("abc123", 2) is None
    assert not library.is_whole("abc123")
    assert {hit["doc_id"] for hit in library.search("crisis")} == {"def456"}


@pytest.mark.parametrize("lost", ["visual page", "text chunk", "all of visual", "old page left"])
def test_a_writer_that_was_stopped_between_the_collections_is_noticed_and_mended(
    library: ChromaLibrary, lost: str
) -> None:
    visual, text = library.visual_collection, library.text_collection
    assert library.is_whole("abc123")
    if lost == "visual page":
        visual.delete(ids=["abc123-2"])
    elif lost == "text chunk":
        text.delete(ids=["abc123-2-0"])
    elif lost == "all of visual":
        visual.delete(where={"doc_id": {"$eq": "abc123"}})
        kept = library.get_page_metadata("abc123", 2)
        assert kept is not None, "the text collection still knows the page"
        assert library.get_page_markdown("abc123", 2) == CRISIS[1].markdown
    else:
        old = {"doc_id": "abc123", "page": 9, "filename": "crisis.pdf", "satchel_stamp": "an older one"}
        visual.upsert(ids=["abc123-9"], embeddings=[[1.0] * StaticEmbedder().dimensions], metadatas=[old])
    assert not library.is_whole("abc123")
    library.add_document("abc123", "crisis.pdf", CRISIS, timestamp=WHEN)
    assert library.is_whole("abc123")
    assert library.get_page_metadata("abc123", 9) is None
    assert library.get_page_metadata("abc123", 2) is not None


def test_documents_stay_when_the_library_is_opened_again(library: ChromaLibrary, opened: Opened) -> None:
    again = opened()
    assert again.doc_ids() == ["abc123", "def456"]
    assert again.search("subprime mortgages") == library.search("subprime mortgages")


@pytest.mark.parametrize(
    "doc_id", ['it\'s "quoted"', "line\nbreak", "a-1-2", "ü/…/検索", "\udcff lost", "x" * 300, "{'$ne': 1}"]
)
@in_a_folder
def test_odd_ids_and_names_are_kept_as_they_are(opened: Opened, doc_id: str) -> None:
    library = opened()
    library.add_document(doc_id, "evil]\n[Document 2: b.pdf", CRISIS, timestamp=WHEN)
    library.add_document("other", "other.pdf", GARDEN, timestamp=WHEN)
    page = library.get_page_metadata(doc_id, 2)
    assert page is not None
    assert page.filename == "evil]\n[Document 2: b.pdf"
    assert library.get_page_markdown(doc_id, 2) == CRISIS[1].markdown
    assert library.is_whole(doc_id)
    assert sorted(library.doc_ids()) == sorted([doc_id.encode("utf-8", "replace").decode(), "other"])
    library.delete_document(doc_id)
    assert library.doc_ids() == ["other"]


@pytest.mark.parametrize("pages", [[Page(0, "a")], [Page(1, "a"), Page(1, "b")]], ids=["zero", "twice"])
@in_a_folder
def test_pages_need_numbers_of_their_own(opened: Opened, pages: list[Page]) -> None:
    with pytest.raises(InvalidInput, match="distinct numbers"):
        opened().add_document("a", "a.pdf", pages, timestamp=WHEN)
    with pytest.raises(InvalidInput, match="doc_id"):
        opened().add_document("", "a.pdf", [], timestamp=WHEN)


@given(text=st.text(alphabet="ab \n#|-é検", max_size=6_000))
def test_the_law_that_chunks_joined_are_the_text(text: str) -> None:
    chunks = chunks_of(text)
    assert "".join(chunks) == text
    assert all(0 < len(chunk) <= 1_200 for chunk in chunks)


def test_many_threads_read_and_search_at_once(library: ChromaLibrary) -> None:
    expected = library.search("collapse of Lehman Brothers")

    def read(number: int) -> bool:
        page = number % 3 + 1
        metadata = library.get_page_metadata("abc123", page)
        if number % 5 == 0:
            library.add_document("abc123", "crisis.pdf", CRISIS, timestamp=WHEN, source_path="/docs/crisis.pdf")
        return (
            metadata is not None
            and metadata.page == page
            and library.get_page_markdown("abc123", page) == CRISIS[page - 1].markdown
            and keys(library.search("collapse of Lehman Brothers"))[0] == keys(expected)[0]
        )

    with ThreadPoolExecutor(8) as pool:
        assert all(pool.map(read, range(40)))


# -- collections that another program filled


def strange_pages() -> list[dict[str, Any]]:
    whole = "--- page 1 ---\nFirst page.\n--- page 2 ---\nSolar panels on roofs.\n--- page 3 ---\nWind."
    rich = {"doc_id": "r1", "filename": "solar.PDF", "page": 1, "extension": ".pdf", "timestamp": WHEN,
            "thumb_path": "/t/1.jpg", "full_markdown_compressed": compress_markdown(whole), "colour": "blue",
            "num_tables": "many", "is_new": True}  # fmt: skip
    return [
        rich,
        {"doc_id": "r1", "filename": "solar.PDF", "page": 2.0, "chunk_number": 7},
        {"doc_id": "r1", "page": 3, "filename": "solar.PDF"},
        {"doc_id": "r2", "page": 1, "filename": "no text\n[Document 1: x]"},
        {"title": "of no document"},
    ]


@pytest.fixture
def filled(opened: Opened, tmp_path: Path, request: pytest.FixtureRequest) -> Callable[..., ChromaLibrary]:
    """Fills two collections with Chroma's own calls, in the schema of S3, and opens them with our library."""

    def fill(visual_size: int = 0, text_size: int = 0, space: str = "l2") -> ChromaLibrary:
        dimensions = StaticEmbedder().dimensions
        first = opened()
        client = first.client
        names = [first.visual_collection.name, first.text_collection.name]
        for name in names:
            client.delete_collection(name)
        visual, text = (
            client.create_collection(name, embedding_function=None, configuration={"hnsw": {"space": space}})
            for name in names
        )
        random = np.random.default_rng(0)
        pages = strange_pages()
        looks = random.normal(size=(len(pages), visual_size or dimensions)).astype(np.float32)
        visual.add(ids=[f"any-{i}" for i in range(len(pages))], metadatas=pages, embeddings=looks)
        chunks = ["First page.", "Solar panels", "on roofs give electricity.", "A note of no page."]
        metadatas = [
            {"doc_id": "r1", "page": 1},
            {"doc_id": "r2", "page": 1},
            {"doc_id": "r2", "page": 1},
            {"kind": "note"},
        ]
        vectors = StaticEmbedder().embed_texts(chunks) if not text_size else random.normal(size=(4, text_size))
        text.add(ids=["x", "chunk_0002", "9c", "ü"], documents=chunks, metadatas=metadatas, embeddings=vectors * 3)
        return opened()

    return fill


@pytest.mark.requirement("S3.chroma.visual-get", "S3.chroma.document-markdown")
def test_pages_that_another_program_wrote_are_read(filled: Callable[..., ChromaLibrary]) -> None:
    library = filled()
    one = library.get_page_metadata("r1", 1)
    assert one is not None
    assert (one.extension, one.thumb_path, one.image_path, one.num_tables) == ("pdf", "/t/1.jpg", None, 0)
    two = library.get_page_metadata("r1", 2)
    assert two is not None
    assert (two.page, type(two.page), two.extension, two.timestamp) == (2, int, "pdf", "")
    whole = library.get_document_markdown("r1")
    assert whole is not None, "only one of its records holds it"
    assert extract_page_content(whole, 2) == library.get_page_markdown("r1", 2) == "Solar panels on roofs."
    assert library.get_page_markdown("r2", 1) == "Solar panels\n\non roofs give electricity.", (
        "put together from chunks"
    )
    assert library.get_document_markdown("r3") is None
    assert library.doc_ids() == ["r1", "r2"]
    assert not library.is_whole("r1")


@pytest.mark.parametrize("space", ["l2", "cosine", "ip"])
@in_a_folder
def test_pages_that_another_program_wrote_are_found(filled: Callable[..., ChromaLibrary], space: str) -> None:
    library = filled(space=space)
    text = library.search("solar panels electricity roofs", 5, "text")
    assert keys(text)[0] == ("r2", 1)
    assert all(0 < hit["score"] <= 1 for hit in text)
    assert any("without a document and page" in note for note in text.notes)
    looks = library.search("solar panels", 9, "visual")
    assert any("scored by their pooled vector" in note for note in looks.notes)
    assert all(0 < hit["score"] <= 1 for hit in looks)
    assert {hit["metadata"]["collection"] for hit in library.search("solar panels", 9)} >= {"text"}


def test_vectors_of_another_length_are_told_and_the_other_collection_is_searched(
    filled: Callable[..., ChromaLibrary],
) -> None:
    ours = StaticEmbedder().dimensions
    library = filled(visual_size=8)
    with pytest.raises(LibraryMismatch, match=rf"vectors of 8 numbers.*makes vectors of {ours}.*give ChromaLibrary"):
        library.search("solar panels", 5, "visual")
    assert keys(library.search("solar panels", 5, "text"))[0] == ("r2", 1)
    hits = library.search("solar panels", 5)
    assert keys(hits)[0] == ("r2", 1)
    assert any("vectors of 8 numbers" in note for note in hits.notes)
    assert library.get_page_metadata("r1", 1) is not None
    with pytest.raises(LibraryMismatch, match="vectors of 8 numbers"):
        library.add_document("n", "n.pdf", CRISIS, timestamp=WHEN)
    assert library.text_collection.count() == 4, "nothing was written to the collection that would have taken it"


@in_a_folder
def test_a_text_collection_of_another_length_leaves_the_visual_one(filled: Callable[..., ChromaLibrary]) -> None:
    library = filled(text_size=5)
    with pytest.raises(LibraryMismatch, match="vectors of 5 numbers"):
        library.search("solar panels", 5, "text")
    hits = library.search("solar panels", 5)
    assert {hit["metadata"]["collection"] for hit in hits} == {"visual"}
    assert any("vectors of 5 numbers" in note for note in hits.notes)
    with pytest.raises(LibraryMismatch, match=r"5 numbers.*|8 numbers.*"):
        filled(visual_size=8, text_size=5).search("solar panels")


@in_a_folder
def test_vectors_of_another_model_of_the_same_length_are_told(library: ChromaLibrary, opened: Opened) -> None:
    class Other(StaticEmbedder):
        name = "other/1"

    with pytest.raises(LibraryMismatch, match=rf"by '{re.escape(StaticEmbedder().name)}'.*'other/1'"):
        opened(embedder=Other()).search("crisis", 5, "text")


def test_a_foreign_document_is_replaced_when_we_add_it(filled: Callable[..., ChromaLibrary]) -> None:
    library = filled()
    library.add_document("r1", "solar.pdf", GARDEN, timestamp=WHEN)
    assert library.is_whole("r1")
    assert library.get_page_metadata("r1", 3) is None
    assert library.get_page_markdown("r2", 1) is not None


def bomb() -> str:
    return base64.b64encode(gzip.compress(b"\0" * 70_000_000, 9)).decode()


@pytest.mark.parametrize(
    "field", ["not base64!", base64.b64encode(b"no gzip").decode(), bomb()], ids=["text", "bytes", "bomb"]
)
def test_a_harmful_text_field_is_refused_and_the_rest_is_read(opened: Opened, field: str) -> None:
    library = opened()
    size = StaticEmbedder().dimensions
    bad = {"doc_id": "evil", "page": 1, "filename": "evil.pdf", "full_markdown_compressed": field}
    library.visual_collection.add(ids=["e1"], embeddings=[[0.5] * size], metadatas=[bad])
    with pytest.raises(InvalidInput, match="full_markdown_compressed"):
        library.get_document_markdown("evil")
    assert library.get_page_metadata("evil", 1) is not None
    good = {**bad, "page": 2, "full_markdown_compressed": compress_markdown("<!-- page 2 -->\nfine")}
    library.visual_collection.add(ids=["e2"], embeddings=[[0.5] * size], metadatas=[good])
    assert library.get_page_markdown("evil", 2) == "fine"


@pytest.mark.parametrize("uri", ["http://elsewhere/x", "data:application/x-satchel-page-vectors;base64,!!!",
                                 "data:application/x-satchel-page-vectors;base64,AAAA"])  # fmt: skip
@in_a_folder
def test_harmful_page_vectors_are_as_good_as_none(opened: Opened, uri: str) -> None:
    library = opened()
    size = StaticEmbedder().dimensions
    library.visual_collection.add(
        ids=["e1"], embeddings=[[0.5] * size], metadatas=[{"doc_id": "e", "page": 1}], uris=[uri]
    )
    hits = library.search("solar panels", 5, "visual")
    assert hits == [] or hits.notes


def test_collections_that_are_not_there_can_be_an_error(opened: Opened) -> None:
    with pytest.raises(LibraryUnavailable, match="does not exist"):
        opened(create=False)
    opened()
    assert opened(create=False).doc_ids() == []
    assert opened(visual="pictures", text="words").search("anything") == []


# -- reaching it


@pytest.mark.requirement("S3.chroma.real-server")
def test_a_question_to_a_real_server_gives_a_context_of_pages_unpacked(port: int) -> None:
    with ChromaLibrary.server("127.0.0.1", port, visual="real-visual", text="real-text") as library:
        library.add_document(
            "abc123", "crisis.pdf", CRISIS, timestamp=WHEN, thumb_path="/data/abc123_page_{:03}_thumb.jpg".format
        )
        # What chunks say is changed behind our back: the page's text must come out of the packed Markdown.
        kept = library.text_collection.get(ids=["abc123-2-0"], include=["documents"])
        library.text_collection.update(
            ids=kept["ids"], documents=["What caused the financial crisis? Forged."], embeddings=[[1.0] * 256]
        )
        builder = ContextBuilder(library, library)
        context = asyncio.run(builder.build_context("what caused the financial crisis?", num_results=2))
        source = next(one for one in context.sources if one.page == 2)
        assert source.thumbnail_path == "/data/abc123_page_002_thumb.jpg"
        assert source.timestamp == WHEN
        assert source.section_path == "The crisis of 2008 > Causes"
        assert "Subprime mortgages" in source.markdown_content
        assert "Forged" not in context.formatted_text
        assert "crisis.pdf, Page 2]" in context.formatted_text


def test_nothing_is_told_to_anybody_and_calls_have_a_time_limit(tmp_path: Path, port: int) -> None:
    with ChromaLibrary.persistent(tmp_path) as here, ChromaLibrary.server("127.0.0.1", port, timeout_s=7) as there:
        for library in (here, there):
            assert library.client.get_settings().anonymized_telemetry is False
            assert library.visual_collection._embedding_function is None
        assert there.client._server._session.timeout.read == 7


def test_a_server_that_is_not_there_is_told_with_its_address() -> None:
    number = free_port()
    with pytest.raises(LibraryUnavailable, match=rf"http://127\.0\.0\.1:{number}.*no answer.*chroma run"):
        ChromaLibrary.server("127.0.0.1", number)


def test_a_server_that_never_answers_is_given_up() -> None:
    with socket.socket() as silent:
        silent.bind(("127.0.0.1", 0))
        silent.listen(8)
        number = silent.getsockname()[1]
        with pytest.raises(LibraryUnavailable, match=rf"127\.0\.0\.1:{number}.*does not answer in time"):
            ChromaLibrary.server("127.0.0.1", number, timeout_s=0.3)


def test_the_cloud_client_is_given_its_key_tenant_and_database(port: int) -> None:
    there: dict[str, Any] = {"host": "127.0.0.1", "port": port, "ssl": False, "api_key": "ck-secret"}
    with ChromaLibrary.cloud(tenant="default_tenant", database="default_database", **there) as library:
        assert library.client._server._session.headers["x-chroma-token"] == "ck-secret"
        assert (library.client.tenant, library.client.database) == ("default_tenant", "default_database")
        assert library.client.get_settings().anonymized_telemetry is False
    default = inspect.signature(ChromaLibrary.cloud).parameters
    assert [default[name].default for name in ("host", "port", "ssl")] == ["api.trychroma.com", 443, True]


@pytest.mark.filterwarnings("ignore")
def test_a_tenant_that_is_not_there_is_told_with_the_address(port: int) -> None:
    there: dict[str, Any] = {"host": "127.0.0.1", "port": port, "ssl": False, "api_key": "ck-secret"}
    with pytest.raises(LibraryUnavailable, match=rf":{port}.*nobody"):
        ChromaLibrary.cloud(tenant="nobody", database="none", **there)
    with pytest.raises(LibraryUnavailable, match="api_key"):
        ChromaLibrary.cloud(tenant="nobody", **{**there, "api_key": None})
    gc.collect()  # the sockets that Chroma's client leaves open when it fails, while their warnings are ignored


def test_a_folder_that_this_process_opened_otherwise_is_told(tmp_path: Path) -> None:
    import chromadb

    theirs = chromadb.PersistentClient(str(tmp_path), settings=chromadb.config.Settings(allow_reset=True))
    with pytest.raises(LibraryUnavailable, match="pass that client to ChromaLibrary"):
        ChromaLibrary.persistent(tmp_path)
    assert ChromaLibrary(theirs).doc_ids() == []


def test_a_path_that_cannot_be_a_folder_is_told(tmp_path: Path) -> None:
    (tmp_path / "file").write_text("no folder")
    with pytest.raises(LibraryUnavailable, match=r"(?i)file"):
        open_folder(tmp_path / "file")


def test_a_collection_that_was_removed_by_another_is_told(library: ChromaLibrary) -> None:
    library.client.delete_collection(library.visual_collection.name)
    with pytest.raises(LibraryUnavailable, match=r"Open the library again|chroma"):
        library.get_page_metadata("abc123", 1)


def test_without_chroma_the_error_says_what_to_install() -> None:
    code = (
        "import sys; sys.modules['chromadb'] = None\n"
        "from satchel.integrations.chroma import ChromaLibrary\n"
        "ChromaLibrary.persistent('nowhere')"
    )
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=False)
    assert "LibraryUnavailable" in done.stderr
    assert "pip install 'satchel[chroma]'" in done.stderr


def test_importing_the_library_loads_neither_chroma_nor_torch() -> None:
    code = (
        "import sys, satchel.integrations.chroma, satchel.integrations.embedders.page_embedders\n"
        "print([name for name in ('chromadb', 'torch', 'transformers', 'PIL') if name in sys.modules])"
    )
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert done.stdout.strip() == "[]"


@pytest.mark.requirement("S3.chroma.real-server", "S3.page.extraction")
def test_from_files_through_the_index_into_chroma_and_back(tmp_path: Path) -> None:
    """A folder of PDFs is indexed, copied into Chroma, and answers from there with the right pages."""
    root = tmp_path / "reports"
    root.mkdir()
    (root / "crisis.pdf").write_bytes(
        pdf_of_lines([["Contents."], ["Lehman fell."], ["Subprime mortgages caused it."]])
    )
    (root / "copy.pdf").write_bytes((root / "crisis.pdf").read_bytes())
    with (
        satchel.open_library(root, index_dir=str(tmp_path / "index")) as workspace,
        ChromaLibrary.persistent(tmp_path / "chroma") as chroma,
    ):
        workspace.engine.index()
        assert workspace.copy_to(chroma) == 1
        assert workspace.copy_to(chroma) == 0
        context = asyncio.run(ContextBuilder(chroma, chroma).build_context("what did subprime mortgages cause", 3))
        first = context.sources[0]
        assert (first.page, first.markdown_content) == (3, "Subprime mortgages caused it.")
        assert first.doc_id in workspace.doc_ids()
        assert chroma.get_document_markdown(first.doc_id) == workspace.get_document_markdown(first.doc_id)


def test_writers_of_one_document_do_not_take_each_others_pages_away(tmp_path: Path) -> None:
    def write(library: ChromaLibrary, word: str) -> None:
        for i in range(3):
            library.add_document("same", "a.pdf", [Page(1, f"{word} {i}"), Page(2, f"more {word}")], timestamp="t")

    with ChromaLibrary.persistent(tmp_path / "chroma") as library, ThreadPoolExecutor(4) as threads:
        list(threads.map(lambda word: write(library, word), ["lions", "tigers", "bears", "foxes"]))
        assert library.is_whole("same")
        whole = library.get_document_markdown("same") or ""
        assert any(f"{word} 2" in whole and f"more {word}" in whole for word in ("lions", "tigers", "bears", "foxes"))
        library.add_document("same", "a.pdf", [Page(1, "one page only")], timestamp="t")
        assert library.is_whole("same")
        assert extract_page_content(library.get_document_markdown("same") or "", 2) is None
