from __future__ import annotations

import os
import signal
from collections.abc import Iterator
from importlib import import_module
from typing import Any

import httpx
import pytest
from hypothesis import HealthCheck, settings
from hypothesis.database import DirectoryBasedExampleDatabase

from tests.support.measuring import save_measured
from tests.support.places import ROOT
from tests.support.waiting import HANG_SECONDS

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
    database=DirectoryBasedExampleDatabase(ROOT / ".hypothesis" / "examples"),
    deadline=None,
    suppress_health_check=list(HealthCheck),
)
_PROFILE = os.environ.get("HYPOTHESIS_PROFILE", "default")
settings.load_profile(_PROFILE)
if _PROFILE == "default":
    # Hypothesis also draws the constants of the modules that are loaded, which are others on each worker and each run.
    providers: Any = import_module("hypothesis.internal.conjecture.providers")
    assert hasattr(providers, "is_local_module_file")
    providers.is_local_module_file = lambda _: False

# httpx gives up after five seconds where nothing else is said; here only a hang is too long.
for _step in ("connect", "read", "write", "pool"):
    setattr(httpx._config.DEFAULT_TIMEOUT_CONFIG, _step, HANG_SECONDS)


# Haystack reports its use to its makers unless it is told not to, before it is imported.
os.environ["HAYSTACK_TELEMETRY_ENABLED"] = "False"

TOGETHER = {
    "tests/integrations/test_chroma.py": "chroma",
    "tests/integrations/test_embedders.py": "models",
    "tests/project/test_examples_documents.py": "examples",
    "tests/project/test_examples_surfaces.py": "examples",
    "tests/web/test_inspector.py": "browser",
    "tests/mcp/test_stdio.py": "mcp",
    "tests/storage/test_migrate.py": "migrate",
    "tests/integrations/test_page_embedders.py": "models",
    "tests/storage/test_postgres_faults.py": "faults",
    "tests/storage/test_postgres_security.py": "house",
    "tests/research/test_research.py": "library",
    "tests/project/test_scenarios.py": "scenarios",
    "tests/indexing/test_workers.py": "ray",
}
"""Files whose tests share something that takes seconds to make: one worker runs them, so that it is made once."""


@pytest.hookimpl(optionalhook=True)
def pytest_xdist_make_scheduler(config: pytest.Config, log: Any) -> Any:
    """Give tests to workers one by one, but those of a group to the same.

    xdist's own groups have no effect: it writes them into a field of the test that pytest 9.2 no longer reads.
    """
    scheduler = import_module("xdist.scheduler").LoadScopeScheduling(config, log)
    scheduler._split_scope = lambda nodeid: TOGETHER.get(nodeid.partition("::")[0], nodeid)
    return scheduler


def pytest_sessionfinish() -> None:
    """Keep what a worker measured: xdist kills a worker that needs more than ten seconds to end."""
    save_measured()


@pytest.fixture(scope="session")
def postgres() -> Iterator[str]:
    """A database with pgvector; started when the first test asks for it."""
    from tests.support.postgres import postgres_url

    with postgres_url() as url:
        yield url
