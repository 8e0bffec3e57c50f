"""Lazy import of the MCP SDK: only the modules of a server.

`import mcp` loads clients, an HTTP library and a second kind of server, and builds every model of every protocol
version. Here the package's own `__init__` runs on first attribute access, and models are built on first use. Both are
ordinary features of Python and pydantic; if the lazy import fails, the SDK is imported the usual way.
"""

from __future__ import annotations

import gc
import importlib
import importlib.util
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from types import ModuleType
from typing import Any, Final

from satchel.errors import ExtraMissing

_LAZY_PACKAGES: Final = ("mcp", "mcp.server")
_SERVER_MODULES: Final = ("mcp.server.lowlevel", "mcp.server.stdio", "mcp.shared.exceptions", "mcp_types")


def load(what: str = "satchel mcp") -> None:
    """Import the SDK's modules for a server; raises ExtraMissing if the SDK is not installed."""
    # Imports create no garbage, but garbage collection takes a tenth of the import time.
    collects_garbage = gc.isenabled()
    gc.disable()
    try:
        if "mcp" not in sys.modules:
            _load_lazily()
        _import_server_modules()
    except ImportError:
        raise ExtraMissing(what, "mcp") from None
    finally:
        if collects_garbage:
            gc.enable()


def _load_lazily() -> None:
    """Import the SDK lazily; on failure, unload all SDK modules."""
    try:
        with _deferred_models():
            for name in _LAZY_PACKAGES:
                _postpone(name)
            _import_server_modules()
    except Exception:  # after any failure, the plain import shows if the SDK is installed
        for name in [name for name in sys.modules if name.partition(".")[0] == "mcp"]:
            del sys.modules[name]


def _import_server_modules() -> None:
    for name in _SERVER_MODULES:
        importlib.import_module(name)


class _Postponed(ModuleType):
    """A package with a delayed `__init__`: submodules import at once, any further attribute runs `__init__`."""

    def __getattr__(self, name: str) -> Any:
        spec = self.__dict__["__spec__"]
        if spec is None or self.__dict__.get("_has_run"):
            raise AttributeError(f"module {self.__name__!r} has no attribute {name!r}")
        self.__dict__["_has_run"] = True
        spec.loader.exec_module(self)
        return getattr(self, name)


def _postpone(name: str) -> None:
    spec = importlib.util.find_spec(name)
    if spec is None or spec.loader is None or spec.submodule_search_locations is None:
        raise ImportError(name)
    package = importlib.util.module_from_spec(spec)
    package.__class__ = _Postponed
    sys.modules[name] = package
    parent, _, child = name.rpartition(".")
    if parent:
        setattr(sys.modules[parent], child, package)


@contextmanager
def _deferred_models() -> Iterator[None]:
    """Inside the context, new pydantic models are built on first use (`defer_build`)."""
    from pydantic import BaseModel

    before = BaseModel.model_config
    BaseModel.model_config = {**before, "defer_build": True}
    try:
        yield
    finally:
        BaseModel.model_config = before
