from __future__ import annotations

import os
import signal
from collections.abc import Iterator
from importlib import import_module
from pathlib import Path
from typing import Any

import pytest
from hypothesis import HealthCheck, settings
from hypothesis.database import DirectoryBasedExampleDatabase

# A shell's background job has Ctrl-C switched off, and so would every program that the tests start and interrupt.
if signal.getsignal(signal.SIGINT) is signal.SIG_IGN:
    signal.signal(signal.SIGINT, signal.default_int_handler)

# `make test` tries the same examples every time. Random search and its database belong to `make fuzz`.
settings.register_profile(
    "default",
    max_examples=60,
    derandomize=True,
    database=None,
    deadline=None,
    suppress_health_check=[HealthCheck.too_slow],
)
settings.register_profile(
    "fuzz",
    max_examples=int(os.environ.get("HYPOTHESIS_EXAMPLES", "5000")),
    derandomize=False,
    database=DirectoryBasedExampleDatabase(Path(__file__).parent.parent / ".hypothesis" / "examples"),
    deadline=None,
    suppress_health_check=list(HealthCheck),
)
settings.load_profile(os.environ.get("HYPOTHESIS_PROFILE", "default"))


TOGETHER = {
    "test_chroma": "chroma",
    "test_cross_encoder": "models",
    "test_embedders": "models",
    "test_examples_documents": "examples",
    "test_examples_surfaces": "examples",
    "test_inspector": "browser",
    "test_mcp": "mcp",
    "test_migrate": "migrate",
    "test_page_embedders": "models",
    "test_postgres_faults": "faults",
    "test_postgres_security": "house",
    "test_research": "library",
    "test_scenarios": "scenarios",
    "test_workers": "ray",
}
"""Files whose tests share something that takes seconds to make: one worker runs them, so that it is made once."""


@pytest.hookimpl(optionalhook=True)
def pytest_xdist_make_scheduler(config: pytest.Config, log: Any) -> Any:
    """Give tests to workers one by one, but those of a group to the same.

    xdist's own groups have no effect: it writes them into a field of the test that pytest 9.2 no longer reads.
    """
    scheduler = import_module("xdist.scheduler").LoadScopeScheduling(config, log)
    scheduler._split_scope = lambda nodeid: TOGETHER.get(Path(nodeid.partition("::")[0]).stem, nodeid)
    return scheduler


@pytest.fixture(scope="session")
def postgres() -> Iterator[str]:
    """A database with pgvector; started when the first test asks for it."""
    from tests.postgres import postgres_url

    with postgres_url() as url:
        yield url
