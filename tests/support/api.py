"""The API over a real folder, on a real server."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import httpx

from satchel.http.app import create_app
from satchel.http.guard.credentials import Keyring, digest_of
from satchel.http.guard.request_checks import HttpLimits
from satchel.http.server import Listener
from satchel.models.request import User
from satchel.service.client import Caller
from satchel.service.engine import ContextEngine
from satchel.service.local_client import LocalSatchel, open_local
from satchel.service.open_roots import LocalClient
from tests.support.sample_project import CLIENT, GUIDE, RETRY
from tests.support.servers import TOKEN, Running, running_on
from tests.support.waiting import HANG_SECONDS

ANN_TOKEN = "satchel_ann-0123456789-0123456789"
EVE_TOKEN = "satchel_eve-0123456789-0123456789"


def files(root: Path) -> Path:
    """A small folder of code and prose."""
    root.mkdir(exist_ok=True)
    for name, text in (("retry.py", RETRY), ("client.py", CLIENT), ("guide.md", GUIDE)):
        (root / name).write_text(text)
    return root


def keyring() -> Keyring:
    """The owner, Ann of the staff, and Eve."""
    return Keyring(
        {
            digest_of(TOKEN): Caller(is_owner=True),
            digest_of(ANN_TOKEN): Caller(user=User(id="ann", groups=("staff",))),
            digest_of(EVE_TOKEN): Caller(user=User(id="eve")),
        }
    )


@dataclass
class Api:
    """A served workspace, and clients of it."""

    running: Running
    local_client: LocalSatchel
    owner: httpx.Client
    ann: httpx.Client
    eve: httpx.Client

    @property
    def url(self) -> str:
        return self.running.url

    @property
    def engine(self) -> ContextEngine:
        return self.local_client.engine


def client(url: str, token: str = TOKEN, **how: Any) -> httpx.Client:
    """A client with a token; nothing of the environment's."""
    return httpx.Client(
        base_url=url, headers={"Authorization": f"Bearer {token}"}, timeout=HANG_SECONDS, trust_env=False, **how
    )


@contextmanager
def served(root: Path, index: Path, *, limits: HttpLimits = HttpLimits(), **settings: Any) -> Iterator[Api]:  # noqa: B008
    """The API of a folder."""
    with (
        open_local(root, index_dir=str(index), every=settings.pop("every", 0.0), **settings) as local_client,
        serving(local_client, limits=limits) as (running, *clients),
    ):
        yield Api(running, local_client, *clients)


@contextmanager
def serving(
    local_client: LocalClient,
    *,
    limits: HttpLimits = HttpLimits(),  # noqa: B008
) -> Iterator[tuple[Running, httpx.Client, httpx.Client, httpx.Client]]:
    """The API of an open client, and the owner's, Ann's and Eve's clients of it."""

    def make(listener: Listener) -> Any:
        return create_app(
            local_client, keys=keyring(), hosts=listener.hosts, origins=listener.origins, limits=limits, log=None
        )

    with running_on(make, limits=limits, keys=keyring()) as running, ExitStack() as opened:
        owner, ann, eve = (opened.enter_context(client(running.url, token)) for token in (TOKEN, ANN_TOKEN, EVE_TOKEN))
        yield running, owner, ann, eve
