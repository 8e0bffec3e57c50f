"""A real browser in front of a real server: what the inspector's tests share.

Every page is watched while it is used: whatever is reported by the content security policy, thrown by a script, or
asked of another server fails the test that did it.
"""

from __future__ import annotations

import os
import shutil
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest

from satchel.http.app import create_app
from satchel.http.guard.credentials import Keyring
from satchel.http.guard.request_checks import HttpLimits
from satchel.service.client import OWNER, Caller
from satchel.service.local_client import LocalSatchel, open_local
from tests.support.places import ROOT
from tests.support.servers import TOKEN, running_on
from tests.support.waiting import HANG_SECONDS

if TYPE_CHECKING:
    from playwright.sync_api import Browser, BrowserContext, ConsoleMessage, Dialog, Page, ViewportSize

CHROMIUM = next(
    (found for name in ("chromium", "chromium-browser", "google-chrome") if (found := shutil.which(name))), None
)
SCREENSHOTS = ROOT / "build" / "screenshots"
DESKTOP: ViewportSize = {"width": 1280, "height": 860}
PHONE: ViewportSize = {"width": 360, "height": 740}

_UNDER_MORE = {"top_k", "min_relevance", "include", "exclude"}
_WATCH = """
window.__violations = [];
document.addEventListener("securitypolicyviolation", (event) => {
  window.__violations.push(`${event.violatedDirective}: ${event.blockedURI}`);
});
"""


@contextmanager
def chromium() -> Iterator[Browser]:
    """Debian's Chromium, headless; the test is skipped where there is none."""
    playwright = pytest.importorskip("playwright.sync_api", reason="playwright is not installed")
    if CHROMIUM is None:
        pytest.skip("there is no Chromium on this machine (apt install chromium)")
    with playwright.sync_playwright() as driver:
        # Only a browser that may not have a sandbox goes without one.
        args = ["--no-sandbox"] if os.geteuid() == 0 else []
        browser = driver.chromium.launch(executable_path=CHROMIUM, args=args)
        try:
            yield browser
        finally:
            browser.close()


@dataclass
class Site:
    """A workspace that is served, with links to log in."""

    url: str
    local_client: LocalSatchel
    keys: Keyring

    def link(self, caller: Caller = OWNER) -> str:
        """A link that works once."""
        return f"{self.url}/login?code={self.keys.one_time_code(caller)}"


@contextmanager
def site(root: Path, index: Path, model_url: str = "") -> Iterator[Site]:
    """A folder, served to browsers; with a language model at a URL."""
    keys = Keyring.single(TOKEN)
    model: dict[str, Any] = {"language_model": "openai:tiny", "language_model_url": model_url} if model_url else {}
    with open_local(root, index_dir=str(index), every=0.5, patience=20.0, **model) as local_client:

        def make(listener: Any) -> Any:
            return create_app(local_client, keys=keys, hosts=listener.hosts, origins=listener.origins)

        with running_on(make, limits=HttpLimits(), keys=keys) as running:
            yield Site(running.url, local_client, keys)


@dataclass
class Visit:
    """A page of a site, and everything suspicious that happened on it."""

    page: Page
    context: BrowserContext
    site: Site
    elsewhere: list[str] = field(default_factory=list)
    complaints: list[str] = field(default_factory=list)

    def ask(self, query: str, **fields: str) -> dict[str, Any]:
        """Fill the form and ask; what the server answered."""
        self.page.fill("#query", query)  # first: another budget for the question before would be asked for
        if fields.keys() & _UNDER_MORE:
            self.page.evaluate("document.querySelector('#more').open = true")
        for name, value in fields.items():
            self.page.fill(f"#{name}", value)
        self.page.evaluate("document.querySelector('#stage > *').dataset.before = ''")
        with self.page.expect_response("**/v1/context") as answered:
            self.page.press("#query", "Enter")
        self.page.wait_for_selector("#stage > :is(.result, .problem):not([data-before])")
        told: dict[str, Any] = answered.value.json()
        return told

    def shoot(self, name: str) -> None:
        """A picture for whoever wants to look."""
        SCREENSHOTS.mkdir(parents=True, exist_ok=True)
        self.page.screenshot(path=SCREENSHOTS / f"{name}.png", animations="disabled")

    def is_wider_than_its_window(self) -> bool:
        """Whether one would have to scroll sideways."""
        found: bool = self.page.evaluate("document.documentElement.scrollWidth > document.documentElement.clientWidth")
        return found

    def module(self, name: str, call: str, *given: Any) -> Any:
        """What a function of one of the page's modules gives."""
        return self.page.evaluate(
            "async ([name, call, given]) => (await import(`/assets/${name}`))[call](...given)",
            [name, call, list(given)],
        )


@dataclass
class Visitors:
    """Visits with one browser. Whoever wants nothing special shares a page that is logged in, and finds it clean."""

    browser: Browser
    _shared: dict[str, Visit] = field(default_factory=dict)

    @contextmanager
    def __call__(self, site: Site, *, caller: Caller | None = OWNER, **options: Any) -> Iterator[Visit]:
        """A page of a site; logged in as the caller (None: not at all), in a context of its own if one has options."""
        if caller == OWNER and not options:
            if site.url not in self._shared:
                self._shared[site.url] = self._opened(site, OWNER, {})
            visit = self._shared[site.url]
            _cleaned(visit)
            yield visit
            _found_well(visit)
            return
        visit = self._opened(site, caller, options)
        try:
            yield visit
            _found_well(visit)
        finally:
            visit.context.close()

    def _opened(self, site: Site, caller: Caller | None, options: dict[str, Any]) -> Visit:
        context = self.browser.new_context(**{"viewport": DESKTOP, **options})
        context.add_init_script(_WATCH)
        page = context.new_page()
        page.set_default_timeout(1000 * HANG_SECONDS)
        visit = Visit(page, context, site)
        page.on("request", lambda request: _note_request(visit, request.url))
        page.on("console", lambda message: _note_message(visit, message))
        page.on("pageerror", lambda error: visit.complaints.append(f"thrown: {error}"))
        page.on("dialog", lambda dialog: _note_dialog(visit, dialog))
        page.goto(site.link(caller) if caller else site.url)
        page.wait_for_selector("#stage > *")
        return visit


def _cleaned(visit: Visit) -> None:
    page = visit.page
    page.unroute_all()
    page.evaluate("sessionStorage.clear(); localStorage.clear()")
    page.set_viewport_size(DESKTOP)
    page.emulate_media(color_scheme="light")
    page.goto(visit.site.url)
    page.wait_for_selector("#stage > *")
    visit.complaints.clear()
    visit.elsewhere.clear()


def _found_well(visit: Visit) -> None:
    assert visit.complaints + visit.page.evaluate("window.__violations") == []
    assert visit.elsewhere == []
    assert visit.page.evaluate("window.__hacked") is None


def _note_request(visit: Visit, url: str) -> None:
    if not url.startswith((f"{visit.site.url}/", f"blob:{visit.site.url}/")):
        visit.elsewhere.append(url)


def _note_dialog(visit: Visit, dialog: Dialog) -> None:
    visit.complaints.append(f"dialog: {dialog.message}")
    dialog.dismiss()


def _note_message(visit: Visit, message: ConsoleMessage) -> None:
    # A refusal by the server is written to the console as well, and is what some tests are about.
    if message.type == "error" and not message.text.startswith("Failed to load resource"):
        visit.complaints.append(message.text)
