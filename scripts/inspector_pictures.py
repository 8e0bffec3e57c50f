"""Takes the pictures of the inspector that the documents show.

    python scripts/inspector_pictures.py [FOLDER]

A small harbour office is made, served, and asked in a real browser. The pictures go to build/pictures, or to FOLDER;
those of the documents are in docs/pictures.
"""

from __future__ import annotations

import io
import sys
import tempfile
from pathlib import Path
from typing import TYPE_CHECKING

sys.path.insert(0, str(Path(__file__).parent.parent))

from PIL import Image

from tests.support.browser import PHONE, Site, Visitors, chromium, site

if TYPE_CHECKING:
    from playwright.sync_api import Page

ROOT = Path(__file__).parent.parent
QUESTION = "how is the retry backoff computed?"
WINDOW = {"width": 1200, "height": 780}
COLOURS = 96
BUDGET, OTHER_BUDGET = "500", "150"
ELIDED_QUESTION = "which ships are at a berth?"  # answered by one method of a class
FILES = {
    "src/retry.py": '''"""Retries of calls over the network."""

import random
import time

LONGEST = 60.0


def backoff(attempt: int, base: float = 0.5) -> float:
    """The pause before an attempt: it doubles each time, up to a minute, with some jitter."""
    pause = min(LONGEST, base * 2**attempt)
    return pause * random.uniform(0.8, 1.2)


def retry(call, attempts: int = 5):
    """Call until it works; wait a little longer after each failure."""
    for attempt in range(attempts):
        try:
            return call()
        except OSError:
            time.sleep(backoff(attempt))
    raise TimeoutError("gave up after %d attempts" % attempts)
''',
    "src/client.py": '''"""The client of the harbour office."""

from retry import retry


class Client:
    """Asks the office for ships and tides."""

    def __init__(self, connection, attempts: int = 5):
        self.connection = connection
        self.attempts = attempts

    def ships(self, berth: str):
        """The ships at a berth; asked again with a backoff when the line is bad."""
        return retry(lambda: self.connection.get("/ships", berth=berth), self.attempts)

    def tide(self, hour: int):
        """The height of the tide, in metres above the chart."""
        return retry(lambda: self.connection.get("/tide", hour=hour), self.attempts)
''',
    "docs/network.md": """# When the line is bad

Every call is tried five times. The pause between two attempts doubles (the *retry backoff*): half a second, a second,
two seconds, and so on, but never more than a minute. A tenth or two is added or taken away, so that ships that lost the
line together do not come back together.

# What is not retried

Calls that were refused are not tried again: the answer would be the same.
""",
    "docs/office.md": """# The harbour office

The office keeps the list of ships, the berths and the tide table. It opens at six.
""",
    "tests/test_retry.py": """from retry import backoff, retry


def test_the_backoff_doubles_and_ends_at_a_minute():
    assert 0.4 <= backoff(0) <= 0.6
    assert 1.6 <= backoff(2) <= 2.4
    assert backoff(30) <= 72


def test_a_call_that_fails_is_tried_again():
    failures = iter([OSError, OSError, None])
""",
}


def main() -> None:
    out = Path(sys.argv[1]) if len(sys.argv) > 1 else ROOT / "build" / "pictures"
    out.mkdir(parents=True, exist_ok=True)
    with tempfile.TemporaryDirectory() as folder:
        root = Path(folder) / "harbour"
        for name, text in FILES.items():
            (root / name).parent.mkdir(parents=True, exist_ok=True)
            (root / name).write_text(text)
        with chromium() as browser, site(root, Path(folder) / "index") as served:
            served.local_client.index()
            served.local_client.build(QUESTION)  # so that the tokenizer is loaded
            taken = pictures(Visitors(browser), served)
    for name, picture in taken.items():
        path = out / f"inspector-{name}.png"
        picture.convert("RGB").quantize(COLOURS).save(path, optimize=True)
        print(f"{path}  {picture.width} × {picture.height}  {path.stat().st_size:,} bytes")


def pictures(visiting: Visitors, served: Site) -> dict[str, Image.Image]:
    taken = {}
    with visiting(served, viewport=WINDOW) as visit:
        visit.ask(QUESTION, budget=BUDGET)
        visit.page.locator(".card .facts").nth(1).click()
        taken["light"] = shot(visit.page)
        visit.ask(ELIDED_QUESTION, budget=OTHER_BUDGET)
        visit.page.locator(".elision button").last.click()
        visit.page.wait_for_selector(".elided-lines .line")
        visit.page.locator(".columns").evaluate("one => one.scrollIntoView()")
        taken["elision"] = shot(visit.page, ".columns")
    with visiting(served, viewport=WINDOW, color_scheme="dark") as visit:
        visit.ask(QUESTION, budget=BUDGET)
        compare(visit.page)
        taken["dark"] = shot(visit.page)
    with visiting(served, viewport=PHONE, device_scale_factor=1.5) as visit:
        visit.ask(QUESTION, budget=BUDGET)
        visit.page.locator(".budget-bar").evaluate("one => one.scrollIntoView()")
        first = shot(visit.page)
        visit.page.locator(".card .open").first.click()
        visit.page.wait_for_selector("dialog .line")
        second = shot(visit.page)
        visit.page.keyboard.press("Escape")
        compare(visit.page)
        visit.page.locator(".sides").first.evaluate("one => one.scrollIntoView()")
        taken["phone"] = side_by_side(first, second, shot(visit.page))
    return taken


def compare(page: Page) -> None:
    page.click(".compare-button")
    page.fill("#other-budget", OTHER_BUDGET)
    page.keyboard.press("Enter")
    page.wait_for_selector(".difference")


def shot(page: Page, part: str = "") -> Image.Image:
    page.evaluate("document.activeElement.blur()")
    page.mouse.move(0, 0)
    taken = page.locator(part).screenshot(animations="disabled") if part else page.screenshot(animations="disabled")
    return Image.open(io.BytesIO(taken))


def side_by_side(*pictures: Image.Image) -> Image.Image:
    gap = 24
    width = sum(one.width for one in pictures) + gap * (len(pictures) - 1)
    whole = Image.new("RGB", (width, max(one.height for one in pictures)), "#ffffff")
    at = 0
    for one in pictures:
        whole.paste(one, (at, 0))
        at += one.width + gap
    return whole


if __name__ == "__main__":
    main()
