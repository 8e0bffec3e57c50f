"""The inspector, used in a real browser as people use it."""

from __future__ import annotations

import re
from collections.abc import Iterator
from pathlib import Path
from typing import Any, Literal

import pytest

from satchel import Block, User
from satchel.assembly.units import elisions_in
from satchel.models.context import Fate, Reason
from satchel.retrieval.ranking import feature_meanings
from satchel.service.client import Caller
from satchel.text.visible import make_visible_line
from tests.integrations.test_language_model import END, completion_of, said
from tests.support import browser as browsing
from tests.support.browser import DESKTOP, PHONE, Site, Visit, Visitors
from tests.support.documents import report_pdf
from tests.support.endpoint import Answer, serving
from tests.support.places import ROOT
from tests.support.servers import TOKEN, until
from tests.support.workspaces import blocks

pytest.importorskip("fastapi", reason="the server's packages are not installed")
pytest.importorskip("playwright.sync_api", reason="playwright is not installed")

from playwright.sync_api import Route, expect

WEB = ROOT / "src" / "satchel" / "web"
FILES = [one for one in sorted(WEB.iterdir()) if one.suffix in {".html", ".js", ".css", ".svg"}]
ANN = Caller(user=User(id="ann"))

RETRY = '''"""Retries with a backoff."""

import time


def backoff(attempt: int) -> float:
    """The delay doubles with each attempt, up to a minute."""
    return min(60.0, 0.5 * 2**attempt)


def retry(call, attempts=5):
    """Call again after a backoff, until it works or there are no attempts left."""
    for attempt in range(attempts):
        try:
            return call()
        except OSError:
            time.sleep(backoff(attempt))
    raise TimeoutError("gave up")
'''
ASTRAL = "# Harbours \U0001f6a2\n\nA harbour \U0001f600\U0001f468‍\U0001f469‍\U0001f467 of 𝔘𝔫𝔦𝔠𝔬𝔡𝔢 ships.\n"
HOSTILE = """# Lighthouse

<img src=x onerror="window.__hacked=1"> </script><script>window.__hacked=2</script>
[a lighthouse](javascript:window.__hacked=3) <a href="javascript:window.__hacked=4">lighthouse</a>
<svg onload="window.__hacked=5"><iframe srcdoc="<script>parent.__hacked=6</script>"></iframe>
<style>body{background:url(http://127.0.0.1:1/leak)}</style> \u202egnp.lighthouse\u202c \u200b \x1b[31m
"""
HOSTILE_NAME = '"><img src=x onerror=window.__hacked=7>\u202egnp.md'


QUEUE = '''"""Queues of jobs."""


class Queue:
    """A queue of jobs for the dredger."""

    def open(self):
        """Open the queue."""
{opening}

    def drain(self, dredger):
        """Drain the jobs of the dredger, the oldest first."""
        sample = """
⋮ 9 lines (1-9): forged()
"""
        for job in self.jobs:
            dredger.drain(job, sample)

    def close(self):
        """Close the queue."""
{closing}
'''.format(
    opening="\n".join(f"        self.berth_{i} = Berth({i}, depth=self.chart.depth({i}))" for i in range(30)),
    closing="\n".join(f"        self.berth_{i}.release(<None> & {i})" for i in range(30)),
)


def numbered_functions(count: int) -> str:
    body = '    """The tide of harbour {0}, in metres above the chart."""\n    return harbour.tide({0})'
    return "\n\n".join(f"def tide_{i}(harbour):\n{body.format(i)}" for i in range(count))


@pytest.fixture(scope="module")
def visiting() -> Iterator[Visitors]:
    with browsing.chromium() as browser:
        yield Visitors(browser)


@pytest.fixture(scope="module")
def files(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Site]:
    """Code, prose, a document with pages, and files that mean no good."""
    folder = tmp_path_factory.mktemp("files")
    root = folder / "root"
    for name, text in {
        "src/retry.py": RETRY,
        "src/tides.py": numbered_functions(30),
        "src/queue.py": QUEUE,
        "docs/harbours.md": ASTRAL,
        "docs/more.md": "# More harbours\n\nShips wait in the harbour for the tide.\n",
        "docs/lighthouse.md": HOSTILE,
        f"docs/{HOSTILE_NAME}": "# Lighthouse keeper\n\nThe keeper of the lighthouse.\n",
    }.items():
        (root / name).parent.mkdir(parents=True, exist_ok=True)
        (root / name).write_text(text)
    (root / "report.pdf").write_bytes(report_pdf())
    with browsing.site(root, folder / "index") as found:
        found.local_client.index()
        yield found


@pytest.fixture(scope="module")
def team(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Site]:
    """Blocks of a workspace with several users; only Ann may read the salaries."""
    folder = tmp_path_factory.mktemp("team")
    (folder / "root").mkdir()
    with browsing.site(folder / "root", folder / "index") as found:
        with found.local_client.engine.workspace.edit() as edit:
            for block in blocks():
                edit.put(block)
            evil = '<img src=x onerror="window.__hacked=8">\u202etnuocca'
            edit.put(Block(id='evil"><script>', type="page", title=evil, content="</textarea><script>launch event"))
            for name in ("launch", "crew", 'evil"><script>'):
                edit.grant(name, "*")
            edit.grant("salaries", "ann")
        yield found


@pytest.fixture(scope="module")
def notes(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Site]:
    """A log with a section that is too long to be shown whole."""
    folder = tmp_path_factory.mktemp("notes")
    (folder / "root").mkdir()
    with browsing.site(folder / "root", folder / "index") as found:
        with found.local_client.engine.workspace.edit() as edit:
            edit.put(Block(id="log", type="page", title="Log"))
            edit.put(Block(id="days", type="heading", title="Days", parent="log", metadata={"level": 2}))
            for i in range(61):
                text = f"Day {i}: the crew painted boat number {i} and wrote the report about boat {i}. " * 4
                text = "The key of the crane hangs in the office." if i == 30 else text
                edit.put(Block(id=f"day-{i}", type="text", parent="days", content=text, position=i))
        yield found


# -- asking


def test_a_question_shows_its_pieces_their_reasons_and_the_exact_text(files: Site, visiting: Visitors) -> None:
    with visiting(files) as visit:
        page = visit.page
        visit.shoot("welcome")
        expect(page.locator(".example").first).to_contain_text("How does ")  # made from what is here
        assert "Indexed: 8 files" in page.inner_text(".index-line")
        answer = visit.ask("which ships wait in the harbour", budget="700")
        assert page.locator(".card").count() == len(answer["sources"]) > 1
        first = page.locator(".card").first
        assert first.locator(".number").inner_text() == "1"
        assert answer["sources"][0]["path"] in first.inner_text()
        assert f"relevance {answer['ledger'][0]['relevance']:.2f}" in first.inner_text()
        assert first.locator(".signal .for").count() >= 1
        assert page.locator(".text").text_content() == answer["text"]
        assert f"{answer['tokens']} of 700 tokens" in page.inner_text(".text-head")
        assert page.locator("#said").inner_text().startswith(f"{len(answer['sources'])} pieces")
        visit.shoot("result")


def test_the_bar_has_a_segment_for_each_file_and_for_what_is_unused(files: Site, visiting: Visitors) -> None:
    with visiting(files) as visit:
        page = visit.page
        answer = visit.ask("harbour tide", budget="700")
        tokens: dict[str, int] = {}
        file_of = {source["number"]: source["path"] for source in answer["sources"]}
        for entry in answer["ledger"]:
            if entry["number"]:
                file = file_of[entry["number"]]
                tokens[file] = tokens.get(file, 0) + entry["tokens"]
        labels = [one.get_attribute("aria-label") or "" for one in page.locator(".segment").all()]
        for file, count in tokens.items():
            assert any(f"{make_visible_line(file).text}: {count} tokens" in label for label in labels), file
        assert labels[-1].startswith(f"Unused: {700 - answer['tokens']} tokens")
        page.locator(".segment").first.hover()
        assert page.locator(".text mark.lit").count() >= 1
        assert labels[0] == page.inner_text(".bar-said")
        page.click(".figures summary")
        assert page.locator(".figures tfoot td").first.inner_text() == "700"
        widths = [
            one["width"]
            for one in page.locator(".segment").evaluate_all("all => all.map((one) => one.getBoundingClientRect())")
        ]
        assert widths[-1] / sum(widths) == pytest.approx((700 - answer["tokens"]) / 700, abs=0.03)


_UNSPENT: tuple[tuple[list[tuple[str, str]], str], ...] = (
    ([("kept", "fits"), ("dropped", "not-worth-its-tokens")], "nothing left was likely enough to help"),
    ([("dropped", "not-worth-its-tokens"), ("dropped", "over-budget")], "what was left out does not fit"),
    ([("dropped", "not-worth-its-tokens"), ("dropped", "max-chunks")], "the maximum number of pieces was reached"),
    ([("kept", "fits"), ("merged", "lines-already-shown")], "everything that was found is shown"),
)


@pytest.mark.parametrize(("entries", "why"), _UNSPENT, ids=lambda one: one if isinstance(one, str) else "")
def test_the_bar_says_what_was_left_unspent_and_why(
    files: Site, visiting: Visitors, entries: list[tuple[str, str]], why: str
) -> None:
    def answered(route: Route) -> None:
        answer = route.fetch().json()
        answer |= {"budget": 4000, "tokens": 2856}
        first = answer["ledger"][0] | {"fate": "kept", "reason": "fits"}
        rest = [{**first, "number": None, "fate": fate, "reason": reason} for fate, reason in entries]
        route.fulfill(json=answer | {"sources": answer["sources"][:1], "ledger": [first, *rest]})

    with visiting(files) as visit:
        page = visit.page
        page.route("**/v1/context", answered)
        visit.ask("harbour tide", budget="4000")
        assert page.inner_text(".bar-said") == f"1,144 of 4,000 tokens left unspent: {why}"
        label = page.locator(".segment").last.get_attribute("aria-label")
        assert label == f"Unused: 1,144 tokens, 29 %, {why}"


@pytest.mark.slow
def test_another_budget_asks_again_and_a_cut_piece_can_be_seen_whole(files: Site, visiting: Visitors) -> None:
    with visiting(files) as visit:
        page = visit.page
        large = visit.ask("tide of harbour in metres", budget="2000")
        with page.expect_response("**/v1/context") as answered:
            page.focus("#budget-slider")
            page.keyboard.press("Home")
        small = answered.value.json()
        expect(page.locator(".text-head")).to_contain_text("of 200 tokens")
        assert page.input_value("#budget") == "200"
        assert small["tokens"] <= 200 < large["tokens"]
        cut = page.locator(".card.is-cut")
        assert cut.count() == len([one for one in small["ledger"] if one["fate"] == "trimmed"]) == 1
        assert re.search(r"Missing: \d+ lines?\.", cut.inner_text())
        cut.get_by_role("button", name="Show the whole").click()
        page.wait_for_selector(".whole .line")
        entry = next(one for one in small["ledger"] if one["fate"] == "trimmed")
        whole = visit.site.local_client.expand(entry["id"]).text
        assert page.locator(".whole .line code").all_text_contents() == whole.split("\n")
        assert 0 < page.locator(".whole .line.missing").count() < len(whole.split("\n"))
        visit.shoot("cut")


def test_what_was_left_out_is_listed_by_reason_and_filtered_by_fate(files: Site, visiting: Visitors) -> None:
    with visiting(files) as visit:
        page = visit.page
        answer = visit.ask("tide of harbour in metres", budget="200")
        dropped = [one for one in answer["ledger"] if one["fate"] == "dropped"]
        assert len(dropped) > 1
        page.locator(".choice.fate-dropped").click()
        assert page.locator(".card:visible").count() == 0
        assert page.locator(".row").count() == len(dropped)
        assert "It does not fit into the rest of the budget." in page.inner_text(".reason")
        kept = {one["number"] for one in answer["ledger"] if one["fate"] == "kept"}
        page.locator(".choice.fate-kept").click()
        assert page.locator(".card:visible").count() == len(kept) > 0
        assert page.locator(".row").count() == 0


def test_everything_under_more_is_sent(files: Site, visiting: Visitors) -> None:
    with visiting(files) as visit:
        page = visit.page
        page.click("#more summary")
        page.select_option("#format", "xml")
        with page.expect_request("**/v1/context") as asked:
            visit.ask("harbour", top_k="3", min_relevance="0.01", include="docs/**, *.md", exclude="docs/light*")
        assert asked.value.post_data_json == {
            "query": "harbour",
            "format": "xml",
            "token_budget": 4000,
            "top_k": 3,
            "min_relevance": 0.01,
            "include": ["docs/**", "*.md"],
            "exclude": ["docs/light*"],
        }
        assert all("docs/" in one for one in page.locator(".card").all_inner_texts())
        assert page.inner_text("#more-said") == "More (4 set)"
        answer = visit.ask("harbour", include="", exclude="", focus="src/retry.py:6", user="somebody")
        assert answer["kind"] == "workspace"
        assert "Focused Content" in page.locator(".card").first.inner_text()


# -- the text


def test_characters_beyond_the_basic_plane_are_marked_exactly(files: Site, visiting: Visitors) -> None:
    with visiting(files) as visit:
        for form in ("markdown", "json", "xml", "plain"):
            visit.page.select_option("#format", form)
            answer = visit.ask("harbour ships", exclude="")
            text = answer["text"]
            first = next(i for i, char in enumerate(text) if ord(char) > 0xFFFF)
            assert first < answer["spans"][-1][0], "an astral character has to stand before a span"
            shown = visit.page.locator(".text mark").evaluate_all("all => all.map((one) => one.textContent)")
            assert shown == [text[start:end] for start, end in answer["spans"]]


def test_a_piece_and_its_place_in_the_text_light_each_other_up(files: Site, visiting: Visitors) -> None:
    with visiting(files) as visit:
        page = visit.page
        visit.ask("harbour ships tide")
        page.locator(".card").nth(1).hover()
        assert page.locator(".text mark.lit").count() == 1
        assert page.locator(".text mark").nth(1).evaluate("one => one.classList.contains('lit')")
        page.locator(".card .facts").nth(1).click()
        assert page.locator(".card").nth(1).get_attribute("aria-current") == "true"
        assert page.locator(".text mark").nth(1).evaluate("one => one.classList.contains('selected')")
        page.locator(".text mark").first.click(position={"x": 5, "y": 5})
        assert page.locator(".card").first.get_attribute("aria-current") == "true"
        assert page.locator(".card.lit").count() == 1


def test_the_copy_button_copies_the_exact_text(files: Site, visiting: Visitors) -> None:
    with visiting(files, permissions=["clipboard-read", "clipboard-write"]) as visit:
        answer = visit.ask("harbour ships")
        visit.page.evaluate("window.__clipboard = navigator.clipboard")
        copy = visit.page.locator(".text-head .copy")
        for way in ("the clipboard", "the old command"):
            copy.click()
            expect(copy).to_have_text("Copied")
            assert visit.page.evaluate("window.__clipboard.readText()") == answer["text"], way
            visit.page.evaluate("window.__clipboard.writeText('')")
            visit.page.evaluate("Object.defineProperty(navigator, 'clipboard', {value: undefined})")
            expect(copy).to_have_text("Copy")


# -- elisions

DREDGER = "drain the jobs of the dredger"


@pytest.mark.parametrize("form", ["markdown", "plain", "xml"])
def test_an_elision_is_a_divider_that_fetches_its_lines(files: Site, visiting: Visitors, form: str) -> None:
    with visiting(files) as visit:
        page = visit.page
        page.select_option("#format", form)
        answer = visit.ask(DREDGER, budget="500", include="src/queue.py")
        (source,) = answer["sources"]
        elisions = elisions_in(source["text"])
        assert len(elisions) > 1
        assert "⋮ 9 lines (1-9): forged()" in source["text"].split("\n")
        dividers = page.locator(".text .elision")
        expect(dividers).to_have_count(len(elisions))
        assert page.locator(".text").text_content() == answer["text"]
        for i, elision in enumerate(elisions):
            assert elision.render("⋮⋮") == (dividers.nth(i).text_content() or "").rstrip("\n")
            button = dividers.nth(i).get_by_role("button")
            assert button.get_attribute("aria-label") == ": ".join(
                filter(None, (f"Show lines {elision.first} to {elision.last}", ", ".join(elision.names)))
            )
            with page.expect_request("**/v1/expand") as asked:
                button.click()
            assert asked.value.post_data_json == {"id": f"src/queue.py:{elision.first}-{elision.last}", "lines": 0}
            expect(button).to_have_attribute("aria-expanded", "true")
            shown = page.locator(".elided-lines:visible")
            assert (
                shown.locator(".line code").all_text_contents() == QUEUE.split("\n")[elision.first - 1 : elision.last]
            )
            assert shown.locator(".line-number").first.inner_text() == str(elision.first)
            button.focus()
            page.keyboard.press("Enter")
            expect(shown).to_have_count(0)
            assert button.get_attribute("aria-expanded") == "false"
        assert f"Missing: {source['elided']} lines." in page.inner_text(".card .cut")


def test_an_elision_is_drawn_in_few_words_and_its_failure_is_said_in_place(files: Site, visiting: Visitors) -> None:
    with visiting(files) as visit:
        page = visit.page
        visit.ask(DREDGER, budget="500", include="src/queue.py")
        first = page.locator(".elision").first
        quiet = first.locator(".elision-quiet").all_text_contents()
        assert quiet[0] == "⋮⋮ "
        assert re.fullmatch(r" \(\d+-\d+\)", quiet[1])
        refusal = {"title": "Unknown block", "detail": "no such lines <b>", "code": "unknown-block"}
        page.route("**/v1/expand", lambda route: route.fulfill(status=404, json=refusal))
        first.get_by_role("button").click()
        expect(page.locator(".elided-lines:visible .fault")).to_have_text("no such lines <b>")
        page.unroute("**/v1/expand")
        first.get_by_role("button").click()
        first.get_by_role("button").click()
        page.wait_for_selector(".elided-lines .line")
        visit.shoot("elision")
        page.set_viewport_size(PHONE)
        page.get_by_role("button", name="Text", exact=True).click()
        page.locator(".elision button").last.click()
        expect(page.locator(".elision button").last).to_have_attribute("aria-expanded", "true")
        assert page.is_visible(".text"), "the button of an elision does not select its piece"
        assert not visit.is_wider_than_its_window()


def test_without_a_count_of_elided_lines_nothing_is_an_elision(files: Site, visiting: Visitors) -> None:
    text = "def f():\n⋮ 9 lines (1-9): forged()\n    x\n⋮⋮ 3 lines (4-6): g()"
    with visiting(files) as visit:
        assert visit.module("elisions.js", "elisionsIn", text, 0) == []
        (found,) = visit.module("elisions.js", "elisionsIn", text, 3)
        assert found == {"line": "⋮⋮ 3 lines (4-6): g()", "first": 4, "last": 6, "names": "g()"}
        assert visit.module("elisions.js", "elisionsIn", "cut away", 3) == []


def test_the_elisions_of_a_note_are_lines_of_the_note(notes: Site, visiting: Visitors) -> None:
    with visiting(notes) as visit:
        page = visit.page
        page.click("#more summary")
        page.select_option("#type", "search")
        answer = visit.ask("Where does the key of the crane hang?", budget="900")
        source = next(one for one in answer["sources"] if one["id"] == "days")
        whole = visit.site.local_client.expand("days").text.split("\n")
        for i, elision in enumerate(elisions_in(source["text"])):
            button = page.locator(".elision button").nth(i)
            with page.expect_request("**/v1/expand") as asked:
                button.click()
            assert asked.value.post_data_json == {"id": f"days:{elision.first}-{elision.last}", "lines": 0}
            expect(button).to_have_attribute("aria-expanded", "true")
            shown = page.locator(".elided-lines:visible .line code").all_text_contents()
            assert shown == whole[elision.first - 1 : elision.last]
            button.click()
        assert source["elided"] > 0
        visit.shoot("elision-note")


# -- where things come from


def test_a_piece_opens_its_source_with_the_lines_around_it(files: Site, visiting: Visitors) -> None:
    with visiting(files) as visit:
        page = visit.page
        answer = visit.ask("tide of harbour 12 in metres", budget="300", include="src/tides.py")
        source = next(one for one in answer["sources"] if one["line"] > 10)
        page.locator(".card .open").nth(source["number"] - 1).click()
        page.wait_for_selector("dialog .line.around")
        exact = visit.site.local_client.expand(source["id"])
        assert page.locator("dialog .line:not(.around) code").all_text_contents() == exact.text.split("\n")
        assert page.locator("dialog .line:not(.around) .line-number").first.inner_text() == str(exact.start_line)
        assert page.locator("dialog .line").count() > len(exact.text.split("\n"))
        before = page.locator("dialog .line").count()
        page.get_by_role("button", name="More lines").click()
        expect(page.locator("dialog .line")).not_to_have_count(before)
        assert page.locator("dialog .line").count() > before
        visit.shoot("source")
        page.keyboard.press("Escape")
        assert page.locator("dialog").count() == 0


def test_a_page_of_a_document_opens_with_its_picture_and_without_one_as_text(files: Site, visiting: Visitors) -> None:
    with visiting(files) as visit:
        page = visit.page
        visit.ask("revenue and cost by quarter", include="report.pdf")
        assert "report.pdf, page 1" in page.inner_text(".cards")
        page.locator(".card .open").first.click()
        picture = page.locator(".page-picture img")
        picture.wait_for()
        picture.evaluate("one => one.decode()")
        assert picture.evaluate("one => one.naturalWidth") > 300
        assert "Revenue" in page.inner_text("dialog .lines")
        assert picture.get_attribute("alt") == "Page 1 of report.pdf"
        visit.shoot("page")
        page.keyboard.press("Escape")
        page.route("**/v1/pages?*", lambda route: route.fulfill(status=404, json={"title": "The page does not exist"}))
        page.locator(".card .open").first.click()
        page.wait_for_selector("text=There is no picture of this page")
        assert "Revenue" in page.inner_text("dialog .lines")


# -- comparing


def test_two_budgets_side_by_side(files: Site, visiting: Visitors) -> None:
    with visiting(files) as visit:
        page = visit.page
        large = visit.ask("tide of harbour in metres", budget="2000")
        page.click(".compare-button")
        page.fill("#other-budget", "200")
        with page.expect_response("**/v1/context") as answered:
            page.keyboard.press("Enter")
        small = answered.value.json()
        page.wait_for_selector(".difference")
        only = len(large["sources"]) - len(small["sources"])
        assert only > 0
        assert page.locator("tr.is-only-a").count() == only
        assert page.locator("tr.is-only-b").count() == 0
        assert f"{only} only in A" in page.inner_text(".tally")
        assert "cut in B" in page.locator("tr.is-changed .told").first.inner_text()
        page.click(".texts summary")
        texts = [one.text_content() for one in page.locator(".texts .text").all()]
        assert texts == [large["text"], small["text"]]
        assert page.locator(".texts mark.is-only-a").count() == only
        visit.shoot("compare")
        page.get_by_role("button", name="Back to the build").click()
        assert page.locator(".text").text_content() == large["text"]


@pytest.mark.slow
def test_two_users_side_by_side(team: Site, visiting: Visitors) -> None:
    with visiting(team) as visit:
        page = visit.page
        visit.ask("What about the launch event?", user="ann")
        assert "Salaries" in page.inner_text(".cards")
        page.click(".compare-button")
        page.fill("#other-user", "bob")
        page.fill("#other-budget", "4000")
        page.get_by_role("button", name="Build B").click()
        page.wait_for_selector(".difference")
        assert page.locator("tr.is-only-a th").all_inner_texts() == ["Salaries\nsalaries"]
        assert page.locator("tr.is-only-b").count() == 0
        assert "Ann earns more" not in (page.locator(".texts .text").nth(1).text_content() or "")
        page.fill("#other-user", "")
        page.get_by_role("button", name="Build B").click()
        page.wait_for_selector("text=Who asks?")
        assert page.evaluate("document.activeElement.id") == "other-user"


_LISTS: tuple[tuple[list[str], list[str], list[str]], ...] = (
    (["a:1-5", "b:1-5"], ["b:1-5", "a:1-5"], ["moved from 1 to 2", "the same in both"]),
    (["a:1-5"], ["a:3-9", "c:1-2"], ["cut in A", "only in B"]),
    (["a:1-5", "b:1-5", "c:1-5"], ["d:1-5", "b:1-5"], ["only in A", "only in B", "the same in both", "only in A"]),
    ([], ["a:1-5"], ["only in B"]),
    (["a:1-5"], [], ["only in A"]),
)


def test_the_difference_of_two_lists(files: Site, visiting: Visitors) -> None:
    def build(ids: list[str]) -> dict[str, Any]:
        shown = [one.partition(":")[0] * int(one[-1]) for one in ids]
        return {"pieces": [{"id": one, "number": i + 1, "shown": shown[i]} for i, one in enumerate(ids)]}

    with visiting(files) as visit:
        for first, second, told in _LISTS:
            rows = visit.module("difference.js", "difference", build(first), build(second))
            assert [row["told"] for row in rows] == told


# -- the index and the session


def test_the_index_is_brought_up_with_progress(tmp_path: Path, visiting: Visitors) -> None:
    root = tmp_path / "root"
    root.mkdir()
    for i in range(40):
        (root / f"file-{i}.md").write_text(f"# Buoy {i}\n\nThe colour of buoy {i}.\n")
    with browsing.site(root, tmp_path / "index") as site, visiting(site) as visit:
        page = visit.page
        page.wait_for_selector("text=The folder is not indexed yet")
        assert page.inner_text("#index-said") == "Not indexed"
        page.click("#open-index")
        seen = page.evaluate_handle("[]")
        page.evaluate(
            "seen => new MutationObserver(() => seen.push(document.querySelector('.index-said')?.textContent))"
            ".observe(document.querySelector('.index-said'), {childList: true, characterData: true, subtree: true})",
            seen,
        )
        page.get_by_role("button", name="Refresh the index").click()
        page.wait_for_selector("text=40 of 40 files read")
        assert any(re.search(r"of 40 files$", said) for said in seen.json_value())
        assert page.locator("dialog progress").evaluate("one => one.value") == 1
        assert page.inner_text("#index-said") == "40 files"
        visit.shoot("index")


def test_whoever_is_not_the_owner_sees_no_more_than_they_may(team: Site, visiting: Visitors) -> None:
    with visiting(team, caller=ANN) as visit:
        page = visit.page
        expect(page.locator("#index-said")).to_have_text("Indexed")
        assert not page.is_visible("#user")
        visit.ask("What about the launch event?")
        assert "Salaries" in page.inner_text(".cards")
        page.click("#open-index")
        assert page.get_by_role("button", name="Refresh the index").count() == 0


@pytest.mark.slow
def test_history_shows_builds_again_and_keeps_questions_only(files: Site, visiting: Visitors) -> None:
    with visiting(files) as visit:
        page = visit.page
        first = visit.ask("harbour ships")
        visit.ask("retry backoff", budget="500")
        assert page.inner_text("#history-count") == "2"
        page.click("#open-history")
        assert page.locator(".history-question").all_inner_texts() == ["retry backoff", "harbour ships"]
        visit.shoot("history")
        page.locator(".history-show").nth(1).click()
        assert page.locator(".text").text_content() == first["text"]
        assert page.input_value("#query") == "harbour ships"
        assert page.input_value("#budget") == "4000"
        kept = page.evaluate("JSON.stringify({...sessionStorage, ...localStorage})")
        assert "retry backoff" in kept
        assert "Ships wait" not in kept
        assert "src/" not in kept
        page.reload()
        page.click("#open-history")
        page.get_by_role("button", name="harbour ships").click()
        page.wait_for_selector(".result")
        assert page.locator(".text").text_content() == first["text"]


# -- addresses, orders and answers


def test_a_build_has_an_address_that_can_be_loaded_again_and_sent(files: Site, visiting: Visitors) -> None:
    with visiting(files) as visit:
        page = visit.page
        first = visit.ask("harbour ships", budget="600", include="docs/**, *.md")
        address = page.url
        assert "#query=harbour+ships" in address
        assert "token_budget=600" in address
        visit.ask("retry backoff", include="")
        page.go_back()
        expect(page.locator(".text")).to_have_text(first["text"], use_inner_text=False)
        assert page.input_value("#include") == "docs/**, *.md"
        page.reload()
        expect(page.locator(".text")).to_have_text(first["text"], use_inner_text=False)
        page.evaluate("location.hash = 'query=%3Cimg+src%3Dx+onerror%3D1%3E&token_budget=zz&top_k=-1'")
        page.wait_for_selector(".problem, .result")
        assert page.input_value("#query") == "<img src=x onerror=1>"


def test_the_pieces_can_stand_by_relevance(files: Site, visiting: Visitors) -> None:
    with visiting(files) as visit:
        visit.ask("the tide of harbour 7, in metres above the chart", budget="1500")
        numbers = visit.page.locator(".card .number")
        by_place = numbers.all_inner_texts()
        visit.page.select_option(".order", "relevance")
        by_relevance = numbers.all_inner_texts()
        assert sorted(by_relevance) == sorted(by_place)
        shown = visit.page.locator(".card .relevance").all_inner_texts()
        values = [float(text.split()[1]) for text in shown]
        assert values == sorted(values, reverse=True)
        visit.page.select_option(".order", "place")
        assert numbers.all_inner_texts() == by_place


def test_an_answer_comes_with_what_its_sources_say(tmp_path: Path, visiting: Visitors) -> None:
    (tmp_path / "root").mkdir()
    (tmp_path / "root" / "crane.md").write_text("# Crane\n\nThe crane lifts 40 tonnes and hangs in the office.\n")
    words = ("The crane lifts 40 tonnes [1]. ", "The crane lifts 44 tonnes [1]. ", "<b>See</b> [9].")
    with serving(lambda _: completion_of("")) as endpoint:
        endpoint.answers += [Answer(parts=[*said(*words), *END])]
        with browsing.site(tmp_path / "root", tmp_path / "index", endpoint.url) as found, visiting(found) as visit:
            visit.ask("how much does the crane lift?")
            visit.page.get_by_role("button", name="Answer this").click()
            expect(visit.page.get_by_role("button", name="Answer again")).to_be_visible()
            answer = visit.page.locator(".answer-live")
            assert "<b>See</b>" in answer.inner_text()
            marks = visit.page.locator(".verdict")
            assert marks.all_inner_texts()[:2] == ["✓", "✗"]
            assert "44: the source says 40" in str(marks.nth(1).get_attribute("aria-label"))
            doubts = visit.page.locator(".answer-doubts li").all_inner_texts()
            assert any("[9]" in doubt for doubt in doubts)
            assert any("44: the source says 40" in doubt for doubt in doubts)
            visit.page.locator(".cite").first.click()
            assert visit.page.locator(".card[aria-current]").count() == 1
            visit.shoot("answer")


def test_without_a_model_the_page_says_how_to_set_one(files: Site, visiting: Visitors) -> None:
    with visiting(files) as visit:
        visit.ask("harbour ships")
        visit.page.get_by_role("button", name="Answer this").click()
        problem = visit.page.locator(".answer-problem")
        expect(problem).to_contain_text("SATCHEL_LANGUAGE_MODEL")
        assert visit.page.locator(".card").count()


# -- when something is not as it should be


def test_without_a_session_the_page_says_how_to_get_one(files: Site, visiting: Visitors) -> None:
    with visiting(files, caller=None) as visit:
        visit.page.wait_for_selector("text=You are not logged in")
        assert "satchel serve" in visit.page.inner_text("#stage")
        assert not visit.page.is_visible("#query")
        visit.shoot("logged-out")


def test_logging_out_ends_the_session(files: Site, visiting: Visitors) -> None:
    with visiting(files, viewport=DESKTOP) as visit:
        visit.ask("harbour ships")
        visit.page.click("#open-index")
        visit.page.get_by_role("button", name="Log out").click()
        visit.page.wait_for_selector("text=You are not logged in")
        assert "Ships wait" not in visit.page.content()
        visit.page.reload()
        visit.page.wait_for_selector("text=You are not logged in")


def test_a_workspace_of_several_users_asks_who(team: Site, visiting: Visitors) -> None:
    with visiting(team) as visit:
        expect(visit.page.locator("#user")).to_have_attribute("required", "")
        visit.ask("What about the launch event?")
        assert "several users" in visit.page.inner_text(".problem")
        assert visit.page.evaluate("document.activeElement.id") == "user"
        visit.page.keyboard.type("bob")
        visit.page.keyboard.press("Enter")
        visit.page.wait_for_selector(".result")


def test_a_field_that_cannot_be_right_is_marked(files: Site, visiting: Visitors) -> None:
    with visiting(files) as visit:
        page = visit.page
        page.click("#more summary")
        visit.ask("harbour", focus="src/retry.py:6", include="docs/**")
        assert page.get_attribute("#include", "aria-invalid") == "true"
        assert page.evaluate("document.activeElement.id") == "include"
        assert "invalid-option" in page.inner_text(".problem")
        page.select_option("#format", "json")
        visit.ask("harbour", focus="", include="", budget="2")
        assert page.get_attribute("#budget", "aria-invalid") == "true"
        assert "Raise the budget" in page.inner_text(".problem")
        visit.shoot("problem")


def test_who_has_a_token_logs_in_with_it(team: Site, visiting: Visitors) -> None:
    with visiting(team) as visit:
        page = visit.page
        page.context.clear_cookies()
        page.reload()
        page.fill("#token", "satchel_wrong-wrong-wrong-wrong")
        page.keyboard.press("Enter")
        page.wait_for_selector("text=does not know this token")
        page.fill("#token", TOKEN)
        page.get_by_role("button", name="Log in").click()
        page.wait_for_selector("#query")
        until(lambda: page.locator(".logged-out").count() == 0)
        visit.ask("book the hall for the launch", user="ann")
        assert page.evaluate("document.documentElement.scrollWidth <= innerWidth")
        page.set_viewport_size({"width": 360, "height": 800})
        assert page.evaluate("document.documentElement.scrollWidth <= innerWidth")


def test_a_workspaces_own_budget_and_format_are_asked_for(files: Site, visiting: Visitors) -> None:
    with visiting(files) as visit:
        page = visit.page

        def other(route: Route) -> None:
            known = route.fetch()
            route.fulfill(response=known, json={**known.json(), "token_budget": 750, "format": "xml"})

        page.route("**/v1/status", other)
        page.reload()
        until(lambda: page.input_value("#budget") == "750")
        assert page.input_value("#format") == "xml"
        visit.ask("harbour")
        assert "of 750 tokens" in page.inner_text("main")


def test_waiting_failing_and_a_server_that_is_gone(files: Site, visiting: Visitors) -> None:
    with visiting(files) as visit:
        page = visit.page
        held: list[Route] = []
        page.route("**/v1/context", lambda route: held.append(route))  # noqa: PLW0108 - a builtin cannot be wrapped
        page.fill("#query", "harbour ships")
        page.keyboard.press("Enter")
        page.wait_for_selector(".skeleton")
        visit.shoot("loading")
        page.get_by_role("button", name="Stop").click()
        page.wait_for_selector(".welcome")
        page.keyboard.press("/")
        page.keyboard.press("Enter")
        page.wait_for_selector(".skeleton")
        told = {"title": "The server is busy", "detail": "It works on 64.", "code": "server-busy", "request_id": "7f"}
        held[-1].fulfill(status=503, json=told)
        page.wait_for_selector(".problem")
        for words in ("The server is busy", "It works on 64.", "Wait a moment", "server-busy", "7f"):
            assert words in page.inner_text(".problem")
        page.unroute("**/v1/context")
        page.route("**/v1/**", lambda route: route.abort())
        page.get_by_role("button", name="Try again").click()
        page.wait_for_selector("text=The server does not answer")
        assert "satchel serve" in page.inner_text(".problem")
        page.unroute("**/v1/**")
        page.get_by_role("button", name="Try again").click()
        page.wait_for_selector(".result")


def test_nothing_found_says_what_to_do(files: Site, visiting: Visitors) -> None:
    with visiting(files) as visit:
        visit.ask("zxqv", include="nowhere/**")
        assert "No results" in visit.page.inner_text("#stage")
        assert "globs" in visit.page.inner_text(".nothing")
        assert visit.page.locator("#said").inner_text() == "No results."


# -- hostile content


def test_hostile_files_are_text_and_nothing_else(files: Site, visiting: Visitors) -> None:
    with visiting(files) as visit:
        page = visit.page
        for form in ("markdown", "plain", "xml", "json"):
            page.select_option("#format", form)
            answer = visit.ask("lighthouse keeper")
            assert "onerror" in answer["text"]
            assert page.locator(".text").text_content() == answer["text"]
        visit.shoot("hostile")
        for i, source in enumerate(answer["sources"]):
            page.locator(".card .open").nth(i).click()
            page.wait_for_selector("dialog .line, dialog .fault")
            _holds_no_markup(visit)
            if source["path"].endswith("lighthouse.md"):
                lines = "\n".join(page.locator("dialog .line code").all_text_contents())
                assert '<img src=x onerror="window.__hacked=1">' in lines
                assert "⟦U+202E⟧" in lines
                assert "␛[31m" in lines
            page.keyboard.press("Escape")
        page.click("#open-history")
        _holds_no_markup(visit)


def test_hostile_names_of_blocks_users_and_questions_are_text(team: Site, visiting: Visitors) -> None:
    with visiting(team) as visit:
        page = visit.page
        visit.ask('<img src=x onerror="window.__hacked=9">\u202e launch event', user="<b>ann", focus='evil"><script>')
        _holds_no_markup(visit)
        assert "⟦U+202E⟧" in page.inner_text(".result-head")
        visit.ask("launch event", user="ann", focus="")
        assert '<img src=x onerror="window.__hacked=8">⟦U+202E⟧tnuocca' in page.inner_text(".cards")
        page.locator(".card .open").filter(has_text="onerror").click()
        page.wait_for_selector("dialog .line")
        assert "</textarea><script>" in page.inner_text("dialog .lines")
        page.keyboard.press("Escape")
        page.click(".compare-button")
        page.fill("#other-user", "<script>window.__hacked=10</script>")
        page.keyboard.press("Enter")
        page.wait_for_selector(".difference")
        _holds_no_markup(visit)


def _holds_no_markup(visit: Visit) -> None:
    """Nothing on the page but what the page itself makes."""
    found = visit.page.evaluate(
        "[...document.querySelectorAll('#stage *, dialog *')].filter((one) => "
        "/^(script|iframe|object|embed|svg|style|link|base|form|a|img|meta)$/i.test(one.localName) "
        "&& !one.matches('.page-picture img, form.other') "
        "|| [...one.attributes].some(({name}) => name.startsWith('on') || name === 'href' || name === 'srcdoc'))"
        ".map((one) => one.outerHTML.slice(0, 80))"
    )
    assert found == []


_NASTY = (
    "plain",
    "a\u202eb\u202c",
    "zero\u200bwidth\ufeff",
    "\x1b[31m\x07\x7f\x85",
    "tags\U000e0041\U000e0042",
    "line\nand\ttab",
    "\U0001f468\u200d\U0001f469\u200d\U0001f467 ❤\ufe0f",
    "a\u200db",
    "नमस्\u200dते",
    "x\ufe0f",
    "\u2028\u2066isolate\u2069\u061c",
    "soft\xadhyphen \u3164 \u2800",
)


def test_hidden_characters_are_shown_as_the_server_shows_them(files: Site, visiting: Visitors) -> None:
    with visiting(files) as visit:
        for text in _NASTY:
            assert visit.module("visible.js", "visibleLine", text) == make_visible_line(text).text


# -- how it looks and feels


def test_dark_is_as_the_system_says_until_somebody_chooses(files: Site, visiting: Visitors) -> None:
    background = "getComputedStyle(document.documentElement).backgroundColor"
    with visiting(files) as visit:
        page = visit.page
        light = page.evaluate(background)
        page.click("#theme")
        dark = page.evaluate(background)
        assert sum(map(int, re.findall(r"\d+", dark))) < 150 < 600 < sum(map(int, re.findall(r"\d+", light)))
        assert page.get_attribute("#theme", "aria-pressed") == "true"
        page.reload()
        assert page.evaluate(background) == dark
        visit.ask("harbour ships")
        visit.shoot("dark")
        page.click("#theme")
        assert page.evaluate(background) == light
        assert page.evaluate("localStorage.length") == 0
        page.emulate_media(color_scheme="dark")
        assert page.evaluate(background) == dark


@pytest.mark.parametrize("scheme", ["light", "dark"])
def test_words_stand_out_from_what_is_behind_them(
    files: Site, visiting: Visitors, scheme: Literal["light", "dark"]
) -> None:
    with visiting(files) as visit:
        page = visit.page
        page.emulate_media(color_scheme=scheme)
        visit.ask("tide of harbour in metres", budget="400")
        page.locator(".card .facts").first.click()
        # Colours fade.
        page.evaluate("() => Promise.allSettled(document.getAnimations().map((one) => one.finished)).then(() => null)")
        low = page.evaluate(_CONTRASTS)
        page.click(".compare-button")
        page.keyboard.press("Enter")
        page.wait_for_selector(".difference")
        assert low + page.evaluate(_CONTRASTS) == []


_CONTRASTS = """() => {
  const canvas = Object.assign(document.createElement("canvas"), {width: 1, height: 1});
  const pen = canvas.getContext("2d", {willReadFrequently: true});
  const mixed = (colors) => {
    pen.clearRect(0, 0, 1, 1);
    for (const color of colors) { pen.fillStyle = color; pen.fillRect(0, 0, 1, 1); }
    return [...pen.getImageData(0, 0, 1, 1).data].slice(0, 3);
  };
  const linear = (one) => one <= 0.04045 ? one / 12.92 : ((one + 0.055) / 1.055) ** 2.4;
  const light = (rgb) => rgb.reduce((sum, one, i) => sum + linear(one / 255) * [0.2126, 0.7152, 0.0722][i], 0);
  const low = [];
  for (const one of document.querySelectorAll("body *")) {
    const words = [...one.childNodes].map((node) => node.nodeType === 3 ? node.textContent.trim() : "").join("");
    if (!words || !one.checkVisibility() || one.closest(".unseen, :disabled, script, option")) continue;
    const behind = [];
    for (let at = one; at; at = at.parentElement) behind.unshift(getComputedStyle(at).backgroundColor);
    const back = mixed(behind);
    const [a, b] = [light(back), light(mixed([...behind, getComputedStyle(one).color]))].sort((x, y) => y - x);
    const contrast = (a + 0.05) / (b + 0.05);
    if (contrast < 4.5) low.push(`${one.localName}.${one.className} ${words.slice(0, 20)} ${contrast.toFixed(2)}`);
  }
  return low;
}"""


def test_a_phone_needs_no_scrolling_sideways(files: Site, visiting: Visitors) -> None:
    with visiting(files) as visit:
        page = visit.page
        page.set_viewport_size(PHONE)
        assert not visit.is_wider_than_its_window()
        page.click("#more summary")
        visit.ask("lighthouse tide of harbour in metres", budget="900")
        assert not visit.is_wider_than_its_window()
        visit.shoot("phone")
        assert not page.is_visible(".text")
        page.get_by_role("button", name="Text", exact=True).click()
        assert page.is_visible(".text")
        assert not visit.is_wider_than_its_window()
        page.get_by_role("button", name="Pieces", exact=True).click()
        page.locator(".card .open").first.click()
        page.wait_for_selector("dialog .line")
        box = page.locator("dialog").bounding_box()
        assert box is not None
        assert box["width"] <= 360
        assert page.evaluate("document.querySelector('dialog').scrollWidth <= 360")
        page.keyboard.press("Escape")
        page.click(".compare-button")
        page.fill("#other-budget", "300")
        page.keyboard.press("Enter")
        page.wait_for_selector(".difference")
        page.click(".texts summary")
        assert not visit.is_wider_than_its_window()
        visit.shoot("phone-compare")


def test_everything_can_be_done_with_the_keyboard(files: Site, visiting: Visitors) -> None:
    with visiting(files) as visit:
        page = visit.page
        keys = page.keyboard
        assert page.evaluate("document.activeElement.id") == "query"
        keys.type("harbour ships tide")
        keys.press("Enter")
        page.wait_for_selector(".result")
        keys.press("j")
        keys.press("j")
        keys.press("ArrowDown")
        keys.press("k")
        assert page.locator(".card").nth(1).get_attribute("aria-current") == "true"
        keys.press("Enter")
        page.wait_for_selector("dialog .line")
        title = page.inner_text("dialog h2")
        keys.press("j")
        expect(page.locator("dialog h2")).not_to_have_text(title)
        keys.press("Escape")
        assert page.locator("dialog").count() == 0
        assert page.evaluate("document.activeElement.closest('.card')?.ariaCurrent") == "true"
        for key, heading in (("h", "History"), ("?", "Keys")):
            keys.press(key)
            assert page.inner_text("dialog h2") == heading
            keys.press("Escape")
        keys.press("x")
        keys.type("300")
        keys.press("Enter")
        page.wait_for_selector(".difference")
        keys.press("/")
        assert page.evaluate("document.activeElement.id") == "query"
        keys.type("x")  # a letter in a field is a letter
        assert page.input_value("#query") == "x"


def test_every_stop_of_the_tab_key_has_a_name_and_can_be_seen(files: Site, visiting: Visitors) -> None:
    with visiting(files) as visit:
        page = visit.page
        visit.ask("harbour ships tide", budget="300")
        page.evaluate("document.activeElement.blur()")
        stops = []
        for _ in range(80):
            page.keyboard.press("Tab")
            found = page.evaluate(
                "() => { const at = document.activeElement; if (at === document.body) return null;"
                "const seen = at.matches('.choices input') ? at.nextElementSibling : at;"
                "const name = at.ariaLabel || at.labels?.[0]?.innerText || at.innerText || at.textContent;"
                "return [at.id || at.className, name.trim() !== '', getComputedStyle(seen).outlineStyle !== 'none']; }"
            )
            if found is None:
                break
            stops.append(found)
        assert len(stops) > 15
        assert [one for one in stops if not (one[1] and one[2])] == []


def test_single_keys_can_be_switched_off(files: Site, visiting: Visitors) -> None:
    with visiting(files) as visit:
        page = visit.page
        page.click("#open-keys")
        page.get_by_label("single-key shortcuts").uncheck()
        page.keyboard.press("Escape")
        page.keyboard.press("h")
        assert page.locator("dialog").count() == 0


# -- what it is made of


def test_the_page_is_small_and_asks_for_nothing_else(files: Site, visiting: Visitors) -> None:
    assert sum(one.stat().st_size for one in FILES) < 250_000
    with visiting(files) as visit:
        names = visit.page.evaluate("performance.getEntriesByType('resource').map((one) => new URL(one.name).pathname)")
        assert {name for name in names if name.startswith("/assets/")} == {
            f"/assets/{one.name}" for one in FILES if one.suffix != ".html"
        }
        paint = visit.page.evaluate("performance.getEntriesByName('first-contentful-paint')[0].startTime")
        assert paint < 1000


@pytest.mark.parametrize("file", FILES, ids=lambda one: one.name)
def test_no_file_can_make_markup_of_content(file: Path) -> None:
    text = file.read_text("utf-8")
    for word in (
        r"innerHTML|outerHTML|insertAdjacentHTML|document\.write|createContextualFragment|setHTML|DOMParser",
        r"\beval\b|new Function|setTimeout\(\s*[\"'`]|\bimport\((?!\"\./[a-z]+\.js\"\)\.)",
        r"cssText|\.setAttribute\(\s*[\"']style",
        r"https?://(?!www\.w3\.org/2000/svg)",
    ):
        assert not re.search(word, text), word
    if file.suffix == ".html":
        assert not re.search(r"\son\w+=|\sstyle=|<style|<script(?![^>]* src=)", text)
    if file.suffix == ".js":
        assert text.startswith("/**")
        assert len(text.splitlines()) < 250


def test_every_fate_reason_and_signal_has_words() -> None:
    words = (WEB / "words.js").read_text("utf-8")
    for name in [*Fate, *Reason, *feature_meanings()]:
        assert re.search(rf'^\s*(export const FATES = .*\b{name}:|"?{re.escape(name)}"?: ")', words, re.MULTILINE), name


# -- what there is


def test_examples_are_made_from_what_is_there(visiting: Visitors, files: Site, team: Site) -> None:
    with visiting(files) as visit:
        expect(visit.page.locator(".example").first).to_have_text(re.compile(r"How does \w+"))
        assert visit.page.locator(".example").count() <= 5
        with visit.page.expect_response("**/v1/context") as answered:
            visit.page.locator(".example").first.click()
        assert answered.value.json()["sources"]
    with visiting(team, caller=ANN) as visit:
        expect(visit.page.locator(".examples")).to_contain_text("What do we know about")


def test_people_browse_and_open_and_focus_on_what_they_may_read(visiting: Visitors, team: Site) -> None:
    with visiting(team, caller=ANN) as visit:
        page = visit.page
        page.click("#open-browse")
        dialog = page.locator("dialog[open]")
        expect(dialog.locator(".browse-open").first).to_be_visible()
        assert "Salaries" in dialog.inner_text()
        page.fill(".browse-filter", "launch")
        expect(dialog.locator(".browse-open")).to_have_count(1)
        dialog.get_by_role("button", name="Focus on").click()
        assert page.input_value("#focus") == "launch"
        page.click("#open-browse")
        page.fill(".browse-filter", "launch")
        dialog.locator(".browse-open").click()
        expect(page.locator("dialog.source")).to_contain_text("Launch")
        page.keyboard.press("Escape")
        assert page.locator("#focus-options option").count() > 1
    with visiting(team, caller=Caller(user=User(id="eve"))) as visit:
        visit.page.click("#open-browse")
        expect(visit.page.locator(".browse-list")).to_contain_text("Notes")
        assert "Salaries" not in visit.page.locator("dialog[open]").inner_text()


def test_a_file_that_is_dropped_is_uploaded_and_found(visiting: Visitors, tmp_path: Path) -> None:
    (tmp_path / "root").mkdir()
    (tmp_path / "root" / "a.md").write_text("# Quay\n\nA quay.\n")
    with browsing.site(tmp_path / "root", tmp_path / "index") as site:
        site.local_client.index()
        with visiting(site, viewport=DESKTOP) as visit:
            page = visit.page
            expect(page.locator("#index-said")).to_have_text("1 file")
            with page.expect_response("**/v1/documents/**") as answered:
                page.evaluate(
                    """() => {
                        const carried = new DataTransfer();
                        carried.items.add(new File(["# Dredger\\n\\nThe dredger works at night.\\n"], "dredger.md"));
                        dispatchEvent(new DragEvent("drop", {dataTransfer: carried, cancelable: true}));
                    }"""
                )
            assert answered.value.ok
            assert (tmp_path / "root" / "uploads" / "dredger.md").exists()
            expect(page.locator("#index-said")).to_have_text("2 files")
            assert "night" in visit.ask("when does the dredger work?")["text"]


@pytest.mark.parametrize("scheme", ["light", "dark"])
def test_nothing_is_in_the_way_of_those_who_do_not_see(
    visiting: Visitors, files: Site, team: Site, scheme: Literal["light", "dark"]
) -> None:
    """The rules of axe-core, on every view of the page."""
    from axe_playwright_python.sync_playwright import Axe

    def check(visit: Visit, where: str) -> None:
        found = Axe().run(visit.page, options={"resultTypes": ["violations"]})
        said = [(each["id"], [node["html"][:160] for node in each["nodes"]]) for each in found.response["violations"]]
        assert not said, f"{where}: {said}"

    with visiting(files, color_scheme=scheme, reduced_motion="reduce") as visit:
        expect(visit.page.locator(".example").first).to_contain_text("How does")
        check(visit, "welcome")
        visit.ask("how do retries back off?")
        check(visit, "result")
        for opens in ("#open-browse", "#open-index", "#open-history", "#open-keys"):
            visit.page.click(opens)
            expect(visit.page.locator("dialog[open] h2")).to_be_visible()
            check(visit, opens)
            visit.page.keyboard.press("Escape")
    with visiting(team, color_scheme=scheme, reduced_motion="reduce", caller=ANN) as visit:
        visit.ask("when is the launch?")
        check(visit, "workspace")
