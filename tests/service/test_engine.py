"""The engine on real folders: indexing, searching, building, expanding, and never showing what is no longer so."""

from __future__ import annotations

import asyncio
import os
import shutil
import subprocess
import threading
import time
from collections.abc import Iterator
from dataclasses import replace
from datetime import UTC, datetime, timedelta
from pathlib import Path

import pytest

import satchel
from satchel import ContextBuildOptions, ContextEngine, LinkKind, open_engine
from satchel.errors import InvalidOption, UnknownBlock
from satchel.indexing.changes import IndexReport
from satchel.indexing.parse import read_outline
from satchel.models.files import _CLOCK_TICK_NS
from satchel.models.options import RerankingStrategy
from satchel.models.search import Filters
from satchel.service.engine import ENGINE_OPTIONS
from satchel.storage.sqlite.store import EmbeddedStore
from satchel.testing.store_suite import file_of
from tests.support.oracle import true_count
from tests.support.sample_project import CLIENT, GUIDE, RETRY, TEST
from tests.support.waiting import wait_for


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    root = tmp_path / "work"
    for path, text in {
        "src/retry.py": RETRY, "src/client.py": CLIENT, "tests/test_client.py": TEST, "docs/guide.md": GUIDE,
        "config/settings.toml": "[retry]\nattempts = 5\n\n[log]\nlevel = 'info'\n",
    }.items():  # fmt: skip
        (root / path).parent.mkdir(parents=True, exist_ok=True)
        (root / path).write_text(text)
    return root


@pytest.fixture
def engine(folder: Path, tmp_path: Path) -> Iterator[ContextEngine]:
    with open_engine(folder, index_dir=str(tmp_path / "index")) as opened:
        opened.index()
        yield opened


def test_the_right_function_comes_first_with_its_exact_lines(engine: ContextEngine, folder: Path) -> None:
    best = engine.search("how long is the backoff delay", top_k=3).hits[0]
    assert best.path == "src/retry.py"
    lines = (folder / best.path).read_text().split("\n")
    assert best.content == "\n".join(lines[best.start_line - 1 : best.end_line])
    assert "def delay" in best.content
    assert best.id == f"src/retry.py:{best.start_line}-{best.end_line}"


@pytest.mark.parametrize(
    ("question", "path"),
    [
        ("Backoff", "src/retry.py"),
        ("Backoff.delay", "src/retry.py"),
        ("parse_headers", "src/client.py"),
        ("parseHeaders", "src/client.py"),
        ("test for the backoff delay", "tests/test_client.py"),
        ("documentation on retrying", "docs/guide.md"),
        ("client.py", "src/client.py"),
        ("attempts setting", "config/settings.toml"),
    ],
)
def test_questions_of_every_kind_find_their_file(engine: ContextEngine, question: str, path: str) -> None:
    assert engine.search(question, top_k=1).hits[0].path == path


@pytest.mark.requirement("S4.semantic.search-by-meaning")
def test_what_shares_no_word_is_found_by_meaning(tmp_path: Path) -> None:
    root = tmp_path / "work"
    root.mkdir()
    (root / "a.py").write_text("def eliminate(rows):\n    rows.clear()\n")
    for i in range(20):
        (root / f"n{i}.py").write_text(f"def rotate_{i}(matrix):\n    return transpose(matrix, {i})\n")
    with open_engine(root, index_dir=str(tmp_path / "index")) as engine:
        engine.index()
        hit = engine.search("remove entries", top_k=1).hits[0]
    assert hit.path == "a.py"
    assert "file_text" not in hit.signals


@pytest.mark.requirement("S4.semantic.calibrated-relevance")
def test_relevance_is_a_probability_and_falls_with_the_rank(engine: ContextEngine) -> None:
    clear = engine.search("Backoff", top_k=10).hits
    vague = engine.search("thing that does something", top_k=10).hits
    assert all(0 <= hit.relevance <= 1 for hit in (*clear, *vague))
    assert [hit.relevance for hit in clear] == sorted((hit.relevance for hit in clear), reverse=True)
    assert clear[0].relevance > 0.5 > max((hit.relevance for hit in vague), default=0)


@pytest.mark.requirement("S4.semantic.cache")
def test_a_question_asked_again_is_answered_from_the_cache_until_something_changes(
    engine: ContextEngine, folder: Path
) -> None:
    first = engine.search("backoff delay")
    assert not first.cached
    again = engine.search("backoff delay")
    assert again.hits == first.hits
    assert again.cached
    assert not engine.search("backoff delay", filters=Filters(languages=("python",))).cached
    assert not engine.search("backoff delay", filters=Filters(readers=frozenset({"ann"}))).cached
    (folder / "src/other.py").write_text("def other():\n    return 1\n")
    engine.index()
    assert not engine.search("backoff delay").cached


def test_the_context_is_inside_the_budget_cited_and_explained(engine: ContextEngine) -> None:
    for budget in (120, 300, 1000):
        result = engine.build("backoff delay", replace(ENGINE_OPTIONS, max_tokens=budget))
        assert true_count(result.context, "o200k_base") == result.estimated_tokens <= budget
        assert result.chunks_included
    assert {entry.collector for entry in result.ledger} == {"semantic"}
    assert all(entry.signals for entry in result.ledger)
    assert result.sources[0].number == 1


def test_two_builds_and_two_engines_give_the_same_bytes(engine: ContextEngine, folder: Path, tmp_path: Path) -> None:
    first = engine.build("retry backoff").context
    assert engine.build("retry backoff").context == first
    with open_engine(folder, index_dir=str(tmp_path / "another")) as other:
        other.index()
        assert other.build("retry backoff").context == first


def test_an_index_that_grew_answers_like_one_made_at_once(engine: ContextEngine, folder: Path, tmp_path: Path) -> None:
    (folder / "src/extra.py").write_text("def backoff_limit():\n    return 60\n")
    (folder / "src/client.py").write_text(CLIENT + "\n\ndef close():\n    pass\n")
    (folder / "docs/guide.md").unlink()
    engine.index()
    with open_engine(folder, index_dir=str(tmp_path / "another")) as other:
        other.index()
        for question in ("backoff", "close the client", "headers", "limit"):
            assert engine.build(question).context == other.build(question).context


def test_abuild_is_the_same_for_async_code(engine: ContextEngine) -> None:
    assert asyncio.run(engine.abuild("backoff delay")).context == engine.build("backoff delay").context


# -- what the specifications ask of retrieval


@pytest.mark.requirement("S0.pipeline.retrieve-from-workspace")
def test_build_context_retrieves_from_the_workspace_path_which_must_be_given(folder: Path, tmp_path: Path) -> None:
    settings = {"index_dir": str(tmp_path / "index")}
    result = satchel.build_context(
        "backoff delay", ContextBuildOptions(workspace_path=str(folder), min_relevance=0.0), settings=settings
    )
    assert "src/retry.py" in result.files_included
    with pytest.raises(InvalidOption, match="workspace_path"):
        satchel.build_context("backoff delay", ContextBuildOptions(), settings=settings)


def test_an_engine_does_not_answer_for_another_workspace(engine: ContextEngine, tmp_path: Path) -> None:
    with pytest.raises(InvalidOption, match="this engine is for"):
        engine.build("x", ContextBuildOptions(workspace_path=str(tmp_path)))


@pytest.mark.requirement("S0.pipeline.expand-from-file")
def test_a_match_is_widened_by_lines_of_its_file(engine: ContextEngine, folder: Path) -> None:
    options = replace(ENGINE_OPTIONS, expand_context=True, context_lines=2, max_chunks=1)
    plain = engine.search("parse_headers", top_k=1).hits[0]
    result = engine.build("parse_headers", options)
    lines = (folder / plain.path).read_text().rstrip("\n").split("\n")
    first, last = max(1, plain.start_line - 2), min(len(lines), plain.end_line + 2)
    assert "\n".join(lines[first - 1 : last]) in result.context
    assert f"(lines {first}-{last})" in result.context


def test_neighbours_that_overlap_when_widened_are_shown_once(engine: ContextEngine) -> None:
    result = engine.build("fetch parse_headers", replace(ENGINE_OPTIONS, expand_context=True, context_lines=10))
    assert result.context.count("def parse_headers") == 1


def test_a_match_is_widened_to_its_symbol(tmp_path: Path) -> None:
    root = tmp_path / "work"
    root.mkdir()
    steps = "".join(f"    step_{i} = compute_{i}({'x' * 40})\n" for i in range(40))
    (root / "a.py").write_text(f"def long_one():\n{steps}    return zebra()\n\n\ndef other():\n    pass\n")
    with open_engine(root, index_dir=str(tmp_path / "index")) as engine:
        engine.index()
        result = engine.build("zebra", ENGINE_OPTIONS, expand_to_symbol=True)
    assert "def long_one" in result.context
    assert result.context.count("step_20 =") == 1


@pytest.mark.requirement("S0.pipeline.rerank-on-retrieval")
def test_retrieved_chunks_are_reordered_by_the_strategy(engine: ContextEngine) -> None:
    class Backwards:
        name = "backwards"

        def score(self, query: str, texts: list[str]) -> list[float]:
            return [1.0 if "Headers are parsed" in text else 0.0 for text in texts]

    engine._cross_encoder = Backwards()  # type: ignore[assignment]
    options = replace(ENGINE_OPTIONS, reranking=RerankingStrategy.CROSS_ENCODER)
    assert engine.build("backoff delay", options).sources[0].file == "docs/guide.md"
    boosted = engine.build("backoff delay", replace(ENGINE_OPTIONS, reranking=RerankingStrategy.KEYWORD_BOOST))
    assert any("keyword" in name for entry in boosted.ledger for name in entry.signals)


def test_the_options_own_filters_reach_the_store(engine: ContextEngine) -> None:
    only = engine.build("retry", replace(ENGINE_OPTIONS, file_patterns=["*.md"]))
    assert only.files_included == ("docs/guide.md",)
    assert engine.build("retry", replace(ENGINE_OPTIONS, languages=["toml"])).files_included == (
        "config/settings.toml",
    )


def test_filters_by_type_and_time(engine: ContextEngine, folder: Path) -> None:
    old = datetime(2020, 1, 1, tzinfo=UTC)
    os.utime(folder / "docs/guide.md", (old.timestamp(), old.timestamp()))
    engine.index()
    before = Filters(modified_before=old + timedelta(days=1))
    assert {hit.path for hit in engine.search("retrying", filters=before).hits} == {"docs/guide.md"}
    sections = engine.search("retrying", filters=Filters(types=("section",))).hits
    assert {hit.block_type for hit in sections} == {"section"}


# -- never stale


def test_lines_that_moved_are_shown_where_they_are_now(engine: ContextEngine, folder: Path) -> None:
    (folder / "src/retry.py").write_text("# one\n# two\n# three\n" + RETRY)
    hit = next(hit for hit in engine.search("backoff delay").hits if hit.path == "src/retry.py")
    lines = (folder / "src/retry.py").read_text().split("\n")
    assert hit.reanchored
    assert hit.content == "\n".join(lines[hit.start_line - 1 : hit.end_line])


def test_what_changed_is_shown_as_it_is_now_by_its_name(engine: ContextEngine, folder: Path) -> None:
    (folder / "src/retry.py").write_text(RETRY.replace("0.5 * 2**attempt", "17 * attempt").replace("random", "chance"))
    found = engine.search("Backoff delay")
    for hit in found.hits:
        if hit.path == "src/retry.py":
            lines = (folder / hit.path).read_text().split("\n")
            assert hit.content == "\n".join(lines[hit.start_line - 1 : hit.end_line])
    assert any("has changed" in note for note in found.notes)
    assert "2**attempt" not in engine.build("Backoff delay").context


def test_the_same_size_and_time_do_not_hide_a_change(engine: ContextEngine, folder: Path) -> None:
    path = folder / "src/retry.py"
    info = path.stat()
    path.write_text(RETRY.replace("2**attempt", "3**attempt"))
    os.utime(path, ns=(info.st_atime_ns, info.st_mtime_ns))
    assert path.stat().st_size == info.st_size
    assert "2**attempt" not in engine.build("backoff delay").context
    assert engine.index().read == 1


def test_a_file_that_is_gone_is_left_out_with_a_note(engine: ContextEngine, folder: Path) -> None:
    (folder / "src/retry.py").unlink()
    result = engine.build("backoff delay")
    assert "src/retry.py" not in result.files_included
    assert "src/retry.py is missing" in result.notes


# -- incremental


def test_only_what_changed_is_read_and_nothing_is_embedded_twice(engine: ContextEngine, folder: Path) -> None:
    def index() -> IndexReport:
        # A file that is read in the same tick in which it was written is looked at again.
        written = max(path.stat().st_ctime_ns for path in folder.rglob("*"))
        wait_for(lambda: time.time_ns() > written + _CLOCK_TICK_NS, "the tick after the last change of a file")
        return engine.index()

    assert index().read == 0
    (folder / "src/client.py").write_text(CLIENT + "\n\ndef more():\n    return 2\n")
    report = index()
    assert (report.read, report.dropped) == (1, 0)
    shutil.move(folder / "src/retry.py", folder / "src/waiting.py")
    report = index()
    assert (report.read, report.dropped, report.embedded) == (1, 1, 0)
    os.utime(folder / "docs/guide.md")
    report = index()
    assert (report.read, report.touched) == (0, 1)
    assert engine.changes().to_look_at == 0


def test_what_is_newly_ignored_goes(engine: ContextEngine, folder: Path) -> None:
    (folder / ".gitignore").write_text("docs/\n")
    assert engine.index().dropped == 1
    assert engine.search("retrying", filters=Filters(patterns=("docs/",))).hits == ()


def test_history_gives_activity(folder: Path, tmp_path: Path) -> None:
    def git(*arguments: str) -> None:
        identity = ["-c", "user.name=Ann", "-c", "user.email=ann@example.org"]
        subprocess.run(["git", *identity, *arguments], cwd=folder, check=True, capture_output=True)

    git("init", "-q")
    git("add", ".")
    git("commit", "-qm", "Begin")
    (folder / "src/retry.py").write_text(RETRY + "\n")
    git("commit", "-qam", "Touch the retry")
    with open_engine(folder, index_dir=str(tmp_path / "index")) as engine:
        engine.index()
        newest, oldest = engine.store.activity(Filters(), path="src/retry.py")
        assert (newest.detail, newest.actor, oldest.detail) == ("Touch the retry", "Ann", "Begin")
        assert len(engine.store.activity(Filters(), path="src/client.py")) == 1
    with open_engine(folder / "src", index_dir=str(tmp_path / "index")) as below:
        below.index()
        assert below.store.activity(Filters(), path="retry.py")[0].detail == "Touch the retry"


# -- expand


def test_expand_gives_the_exact_text_of_lines_blocks_and_files(engine: ContextEngine) -> None:
    assert engine.expand("src/retry.py").text.rstrip("\n") == RETRY.rstrip("\n")
    block = engine.expand("src/retry.py#Backoff.delay")
    assert block.text.startswith("    def delay(")
    assert (block.start_line, block.end_line) == (9, 12)
    lines = engine.expand("src/retry.py:11-11", lines=1)
    assert lines.text == "\n".join(RETRY.split("\n")[9:12])


def test_everything_a_result_names_can_be_expanded(engine: ContextEngine) -> None:
    result = engine.build("backoff delay", replace(ENGINE_OPTIONS, max_tokens=400))
    for entry in result.ledger:
        expansion = engine.expand(entry.id)
        assert expansion.text == result.expand(entry.id)


def test_expand_finds_moved_lines_and_marks_lost_ones(engine: ContextEngine, folder: Path) -> None:
    (folder / "src/retry.py").write_text("# new\n" + RETRY)
    assert engine.expand("src/retry.py:11-11").start_line == 12
    (folder / "src/retry.py").write_text("nothing is left\n")
    lost = engine.expand("src/retry.py:11-11")
    assert lost.stale
    assert lost.text == RETRY.split("\n")[10]


@pytest.mark.parametrize("wrong", ["nope.py", "src/retry.py#Nope", "src/retry.py:0-4", "src/retry.py:9-2", "x:1", ""])
def test_what_cannot_be_expanded_is_said_with_help(engine: ContextEngine, wrong: str) -> None:
    with pytest.raises(UnknownBlock, match="An id is a path"):
        engine.expand(wrong)


def test_an_empty_question_is_refused(engine: ContextEngine) -> None:
    with pytest.raises(InvalidOption, match="must not be empty"):
        engine.search("  ")


def test_verify_checks_an_answer_against_the_context(engine: ContextEngine) -> None:
    result = engine.build("backoff delay")
    assert engine.verify("It doubles [1].", result).ok
    assert not engine.verify("It doubles [99].", result).ok


def test_an_index_is_not_searched_with_vectors_of_another_model(
    engine: ContextEngine, folder: Path, tmp_path: Path
) -> None:
    class Other:
        name = "other"
        dimensions = 256

        def embed_texts(self, texts: list[str]) -> None:
            raise AssertionError("nothing may be embedded")

        embed_query = embed_texts

    other = open_engine(folder, index_dir=str(tmp_path / "index"), embedder=Other())  # type: ignore[arg-type]
    with other, pytest.raises(satchel.errors.EmbedderMismatch, match="satchel-static-2"):
        other.search("backoff")


def test_links_lead_from_tests_to_what_they_test_and_from_imports_to_files(engine: ContextEngine) -> None:
    store = engine.store
    asked = ["tests/test_client.py#test_backoff_delay_grows", "src/client.py"]
    tested, imported = (store.links_from(asked, Filters())[block] for block in asked)
    assert [(link.kind, link.target) for link in tested] == [("tests", "src/client.py#fetch")]
    assert {link.target for link in imported if link.kind is LinkKind.IMPORTS} == {
        "src/retry.py",
        "src/retry.py#Backoff",
    }
    back = store.links_to(["src/client.py#fetch", "src/retry.py"], Filters())
    testing = [link.source for link in back["src/client.py#fetch"] if link.kind is LinkKind.TESTS]
    assert testing == ["tests/test_client.py#test_backoff_delay_grows"]
    assert "src/client.py" in {link.source for link in back["src/retry.py"]}


def test_what_was_changed_lately_counts_a_little(folder: Path, tmp_path: Path) -> None:
    (folder / "src/one.py").write_text("def zebra():\n    return 1\n")
    (folder / "src/two.py").write_text("def zebra():\n    return 1\n")

    def git(*arguments: str, when: str) -> None:
        identity = ["-c", "user.name=Ann", "-c", "user.email=ann@example.org"]
        dates = {"GIT_AUTHOR_DATE": when, "GIT_COMMITTER_DATE": when}
        env = {**os.environ, **dates}
        subprocess.run(["git", *identity, *arguments], cwd=folder, check=True, capture_output=True, env=env)

    git("init", "-q", when="2026-01-01T00:00:00Z")
    git("add", "src/one.py", when="2026-01-01T00:00:00Z")
    git("commit", "-qm", "old", when="2026-01-01T00:00:00Z")
    git("add", ".", when="2026-11-01T00:00:00Z")
    git("commit", "-qm", "new", when="2026-11-01T00:00:00Z")
    with open_engine(folder, index_dir=str(tmp_path / "index")) as engine:
        engine.index()
        hits = engine.search("zebra").hits
    assert [hit.path for hit in hits[:2]] == ["src/two.py", "src/one.py"]
    assert hits[0].signals["recent"] > 0


def test_windows_line_ends_leave_no_trace_in_a_context(tmp_path: Path) -> None:
    root = tmp_path / "windows"
    root.mkdir()
    (root / "retry.py").write_bytes(RETRY.replace("\n", "\r\n").encode())
    with open_engine(root, index_dir=str(tmp_path / "index"), workers=1) as engine:
        engine.index()
        built = engine.build("how long is the backoff delay")
    assert "def delay" in built.context
    assert "␍" not in built.context
    assert "\r" not in built.context
    assert built.statistics.characters_made_visible == 0


def test_a_private_file_that_changes_stays_private(tmp_path: Path) -> None:
    root = tmp_path / "work"
    root.mkdir()
    (root / "priv.py").write_text("def secret():\n    return 1\n")
    with open_engine(root, index_dir=str(tmp_path / "index")) as engine:
        with engine.store.write() as writer:
            writer.settle_embedder("satchel-static-2", 256)
            writer.put(file_of("priv.py", ["secret"], readers=("alice",)))
        engine.index()
        assert engine.search("secret", filters=Filters(readers=frozenset({"bob"}))).hits == ()
        assert engine.search("secret", filters=Filters(readers=frozenset({"alice"}))).hits[0].path == "priv.py"


def test_an_answer_from_before_catching_up_is_not_cached(tmp_path: Path) -> None:
    root = tmp_path / "work"
    root.mkdir()
    (root / "a.py").write_text("def alpha():\n    return 1\n")
    with open_engine(root, index_dir=str(tmp_path / "index")) as engine:
        engine.index()
        assert isinstance(engine.store, EmbeddedStore)
        (root / "b.py").write_text("def beta():\n    return 2\n")
        outline = read_outline("b.py", "def beta():\n    return 2\n")
        with engine.store.write() as writer:
            writer.put(file_of("b.py", ["beta"])._replace(outline=outline, text="def beta():\n    return 2\n"))
        assert engine.search("beta").hits == ()
        engine.store.catch_up()
        assert engine.search("beta").hits[0].path == "b.py"


def test_many_threads_search_while_one_indexes(tmp_path: Path) -> None:
    root = tmp_path / "work"
    root.mkdir()
    for i in range(30):
        (root / f"m{i}.py").write_text(f"def alpha_{i}():\n    return {i}\n")
    troubles: list[BaseException] = []
    with open_engine(root, index_dir=str(tmp_path / "index")) as engine:
        engine.index()
        done = threading.Event()

        def ask(number: int) -> None:
            try:
                while not done.is_set():
                    assert engine.search(f"alpha {number}").hits
            except BaseException as error:
                troubles.append(error)

        threads = [threading.Thread(target=ask, args=(i,)) for i in range(4)]
        for thread in threads:
            thread.start()
        for i in range(15):
            (root / "m0.py").write_text(f"def alpha_0():\n    return {i} * 100\n")
            engine.index()
        done.set()
        for thread in threads:
            thread.join()
    assert troubles == []


def test_a_commit_with_an_impossible_date_and_encoding_does_not_stop_the_run(tmp_path: Path) -> None:
    root = tmp_path / "work"
    root.mkdir()
    (root / "a.py").write_text("def alpha():\n    return 1\n")

    def git(*arguments: str, given: str | None = None, when: str = "1700000000 +0000") -> str:
        identity = {
            "GIT_AUTHOR_NAME": "A",
            "GIT_AUTHOR_EMAIL": "a@b",
            "GIT_COMMITTER_NAME": "A",
            "GIT_COMMITTER_EMAIL": "a@b",
        }
        dates = {"GIT_AUTHOR_DATE": when, "GIT_COMMITTER_DATE": when}
        done = subprocess.run(
            ["git", *arguments], cwd=root, input=given, text=True, capture_output=True, check=True,
            env={**os.environ, **identity, **dates},
        )  # fmt: skip
        return done.stdout.strip()

    git("init", "-q")
    git("add", ".")
    tree = git("write-tree")
    person = "A <a@b> 99999999999999 +0000"
    raw = f"tree {tree}\nauthor {person}\ncommitter {person}\nencoding x-evil\n\nhi\n"
    commit = git("hash-object", "-t", "commit", "-w", "--stdin", "--literally", given=raw)
    git("update-ref", "HEAD", commit)
    with open_engine(root, index_dir=str(tmp_path / "index")) as engine:
        engine.index()
        assert engine.search("alpha").hits


def test_a_file_in_a_folder_with_a_number_sign_can_be_expanded_by_every_name(tmp_path: Path) -> None:
    root = tmp_path / "work"
    (root / "c#").mkdir(parents=True)
    (root / "c#/b.py").write_text("def alpha():\n    return 1\n")
    with open_engine(root, index_dir=str(tmp_path / "index")) as engine:
        engine.index()
        hit = engine.search("alpha").hits[0]
        for name in (hit.id, hit.path, hit.block_id, "c#/b.py#alpha"):
            assert "def alpha" in engine.expand(name).text


def test_pieces_that_became_one_are_shown_once(tmp_path: Path) -> None:
    root = tmp_path / "work"
    root.mkdir()
    methods = "".join(f"    def alpha_{i}(self):\n        return '{'x' * 300}'\n\n" for i in range(16))
    (root / "a.py").write_text(f"class Alpha:\n{methods}")
    with open_engine(root, index_dir=str(tmp_path / "index")) as engine:
        engine.index()
        (root / "a.py").write_text("class Alpha:\n    def alpha_1(self):\n        return 2\n")
        hits = engine.search("Alpha alpha").hits
        assert len({hit.id for hit in hits}) == len(hits)


def test_an_index_inside_the_workspace_is_not_part_of_it(tmp_path: Path) -> None:
    (tmp_path / "a.py").write_text("def alpha():\n    return 1\n")
    with open_engine(tmp_path, index_dir=str(tmp_path / ".idx")) as engine:
        assert engine.index().read == 1
        assert set(engine.store.files()) == {"a.py"}


def test_a_word_that_is_a_name_finds_its_definition(tmp_path: Path) -> None:
    root = tmp_path / "work"
    root.mkdir()
    (root / "termui.py").write_text("def echo_via_pager(text):\n    return echo(text)\n" * 3)
    (root / "testing.py").write_text("class EchoingStdin:\n    def echo_all(self):\n        return self.echo\n" * 3)
    (root / "utils.py").write_text("def other():\n    pass\n\n\ndef echo(message):\n    print(message)\n")
    with open_engine(root, index_dir=str(tmp_path / "index")) as engine:
        engine.index()
        assert engine.search("echo").hits[0].path == "utils.py"
