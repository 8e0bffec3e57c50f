"""Settings, from the weakest to the strongest: defaults < user file < project < `SATCHEL_*` < arguments of the caller.

The user file is `config.toml` in the OS's configuration folder. A project's settings are `satchel.toml` or
`[tool.satchel]` in `pyproject.toml`. A project may come from an untrusted author: settings for write locations and
network endpoints are taken only from the user, the environment and the caller.
"""

from __future__ import annotations

import os
import re
import tomllib
from collections.abc import Iterable, Mapping
from contextlib import suppress
from dataclasses import dataclass, field, fields, replace
from pathlib import Path
from typing import Any, Final

from satchel.errors import InvalidOption
from satchel.models.options import FORMATS

_FROM_THE_USER_ONLY: Final = frozenset(
    {
        "index_dir",
        "store",
        "embedder",
        "embedder_url",
        "page_embedder",
        "language_model",
        "language_model_url",
        "workers",
        "ingest_on",
    }
)
_ENVIRONMENT: Final = "SATCHEL_"
_OTHER_VARIABLES: Final = (
    "SATCHEL_CONFIG",
    "SATCHEL_EMBEDDER_KEY",
    "SATCHEL_LANGUAGE_MODEL_KEY",
    "SATCHEL_TOKEN",
    "SATCHEL_P",
    "SATCHEL_Q",
)
"""Variables without a setting in any file: the path of the user file, keys, and the arguments of `make run`."""
_FOR_DEVELOPERS: Final = ("SATCHEL_TEST_", "SATCHEL_BENCH_", "SATCHEL_SOAK_", "SATCHEL_EVAL")
MAX_CONFIG_BYTES: Final = 1_000_000  # a settings file has a few lines; a larger file is not read, to save memory


@dataclass(frozen=True, slots=True, kw_only=True)
class Settings:
    """All settings of a workspace, with their defaults."""

    index_dir: str = ""
    store: str = ""
    embedder: str = "static"
    embedder_url: str = ""
    page_embedder: str = "written"
    workers: int = 0
    ingest_on: str = "local"
    max_file_bytes: int = 50_000_000
    max_document_bytes: int = 100_000_000
    documents: str = "auto"
    ocr: str = "auto"
    ocr_languages: str = "eng"
    history_commits: int = 300
    token_budget: int = 4000
    format: str = "markdown"
    model: str = "gpt-4o"
    top_k: int = 10
    min_relevance: float = 0.0
    include: tuple[str, ...] = ()
    exclude: tuple[str, ...] = ()
    languages: tuple[str, ...] = ()
    with_packages: tuple[str, ...] = ()
    language_model: str = ""
    language_model_url: str = ""
    context: Mapping[str, Any] = field(default_factory=dict)


_TYPES: Final = {field.name: type(getattr(Settings(), field.name)) for field in fields(Settings)}
_IN_FILES: Final = {"with": "with_packages"}
"""Settings that are shorter in files; in Python `with` is a keyword."""
_CHOICES: Final = {"format": FORMATS.names(), "documents": ("auto", "all", "off"), "ocr": ("auto", "off")}
_LANGUAGES: Final = re.compile(r"[A-Za-z][A-Za-z0-9_]{1,30}(?:\+[A-Za-z][A-Za-z0-9_]{1,30}){0,9}")
_INGEST_ON: Final = re.compile(r"local|ray|ray://(?:[A-Za-z0-9._-]{1,253}|\[[0-9A-Fa-f:.]{2,45}\]):[0-9]{1,5}")
_LEAST: Final = {
    "workers": 0,
    "max_file_bytes": 1,
    "max_document_bytes": 1,
    "history_commits": 0,
    "token_budget": 1,
    "top_k": 1,
    "min_relevance": 0,
}


@dataclass(frozen=True, slots=True)
class Configured:
    """The settings, and the origin of each setting with a value other than the default."""

    settings: Settings
    origins: Mapping[str, str]


def configure(
    root: Path,
    flags: Mapping[str, Any] | None = None,
    environ: Mapping[str, str] | None = None,
    *,
    heed_project: bool = True,
) -> Configured:
    """Load the settings for a workspace."""
    environ = os.environ if environ is None else environ
    settings = Settings()
    origins: dict[str, str] = {}
    for values, origin, trusted in _layers(root, environ, heed_project):
        checked = {name: _checked(name, value, origin, trusted, settings) for name, value in values.items()}
        settings = replace(settings, **checked)
        origins |= dict.fromkeys(checked, origin)
    arguments = {name: value for name, value in (flags or {}).items() if value not in (None, ())}
    arguments = {name: _typed(name, value, "given") for name, value in arguments.items()}
    return Configured(replace(settings, **arguments), origins | dict.fromkeys(arguments, "given"))


def doubts(root: Path, environ: Mapping[str, str] | None = None, *, heed_project: bool = True) -> list[InvalidOption]:
    """Find all errors in the settings of a workspace; `configure` stops at the first error."""
    environ = os.environ if environ is None else environ
    problems: list[InvalidOption] = []
    try:
        layers = _layers(root, environ, heed_project)
    except InvalidOption as error:
        if heed_project:
            problems += doubts(root, environ, heed_project=False)
        return problems if any(str(doubt) == str(error) for doubt in problems) else [*problems, error]
    for values, origin, trusted in layers:
        for name, value in values.items():
            try:
                _checked(name, value, origin, trusted, Settings())
            except InvalidOption as error:
                problems.append(error)
    return problems


def strangers(environ: Mapping[str, str] | None = None) -> dict[str, str]:
    """Unknown `SATCHEL_*` variables, each with the most similar known name ('' if none is similar)."""
    environ = os.environ if environ is None else environ
    known = [*(_ENVIRONMENT + name.upper() for name in _TYPES), *_OTHER_VARIABLES]
    mine = [name for name in environ if name.startswith(_ENVIRONMENT) and name not in known]
    return {name: _nearest(name, known) for name in sorted(mine) if not name.startswith(_FOR_DEVELOPERS)}


def _nearest(name: str, known: Iterable[str]) -> str:
    from difflib import get_close_matches

    return next(iter(get_close_matches(name, list(known), n=1, cutoff=0.75)), "")


def _checked(name: str, value: Any, origin: str, trusted: bool, settings: Settings) -> Any:
    """Check and convert the value of a setting; a project may not set every setting."""
    if name not in _TYPES:
        near = _nearest(name, _TYPES)
        guess = f"did you mean {near}? " if near else ""
        raise InvalidOption(
            name, value, f"there is no such setting ({origin}); {guess}known settings: {', '.join(_TYPES)}"
        )
    if not trusted and name in _FROM_THE_USER_ONLY:
        raise InvalidOption(
            name,
            value,
            f"a project may not set this ({origin}); use the user file, SATCHEL_{name.upper()} or a flag",
        )
    typed = _typed(name, value, origin)
    return typed if trusted else _from_a_project(name, typed, settings, origin)


def _from_a_project(name: str, value: Any, settings: Settings, origin: str) -> Any:
    """Restrict a project's value: a model only by name, never by file; size limits no higher than the user's."""
    if name == "model" and (value.endswith(".json") or "/" in value or os.sep in value):
        raise InvalidOption(name, value, f"a project may only name a model, not a file ({origin})")
    return min(value, getattr(settings, name)) if name in ("max_file_bytes", "max_document_bytes") else value


def user_file() -> Path:
    """Path of the user's own settings."""
    import platformdirs

    return Path(platformdirs.user_config_dir("satchel", appauthor=False)) / "config.toml"


def index_folder(root: Path, settings: Settings) -> Path:
    """Folder for the index of a workspace, named after the workspace and a hash of its path."""
    from hashlib import blake2b

    if settings.index_dir:
        base = Path(settings.index_dir).expanduser()
    else:
        import platformdirs

        base = Path(platformdirs.user_cache_dir("satchel", appauthor=False))
    digest = blake2b(os.fsencode(root), digest_size=6).hexdigest()
    readable = "".join(c if c.isalnum() or c in "-_." else "_" for c in root.name)[:40]
    return base / f"{readable or 'root'}-{digest}"


def _layers(root: Path, environ: Mapping[str, str], heed_project: bool) -> list[tuple[Mapping[str, Any], str, bool]]:
    layers: list[tuple[Mapping[str, Any], str, bool]] = []
    own = Path(environ["SATCHEL_CONFIG"]) if environ.get("SATCHEL_CONFIG") else user_file()
    layers.append((_toml(own), str(own), True))
    project = root / "satchel.toml"
    if not heed_project:
        pass
    elif project.is_file():
        layers.append((_toml(project), str(project), False))
    else:
        pyproject = root / "pyproject.toml"
        with suppress(InvalidOption):  # an invalid pyproject.toml may be a template
            layers.append((_table(_toml(pyproject), str(pyproject)), f"{pyproject} [tool.satchel]", False))
    from_environment = {
        name: environ[_ENVIRONMENT + name.upper()] for name in _TYPES if environ.get(_ENVIRONMENT + name.upper())
    }
    layers.append((from_environment, "environment", True))
    return [(_with_full_names(values), origin, trusted) for values, origin, trusted in layers]


def _with_full_names(values: Mapping[str, Any]) -> Mapping[str, Any]:
    return {_IN_FILES.get(name, name): value for name, value in values.items()}


def _table(document: Mapping[str, Any], origin: str) -> Mapping[str, Any]:
    tool = document.get("tool", {})
    table = tool.get("satchel", {}) if isinstance(tool, dict) else {}
    if not isinstance(table, dict):
        raise InvalidOption("tool.satchel", table, f"must be a table ({origin})")
    return table


def _toml(path: Path) -> Mapping[str, Any]:
    try:
        if not path.is_file() or path.stat().st_size > MAX_CONFIG_BYTES:
            return {}
        return tomllib.loads(path.read_text("utf-8"))
    except (tomllib.TOMLDecodeError, RecursionError) as error:
        raise InvalidOption("config", path.name, f"{path} is not valid TOML: {error}") from None
    except (OSError, UnicodeDecodeError) as error:
        raise InvalidOption("config", path.name, f"{path} cannot be read: {error}") from None


def _typed(name: str, value: Any, origin: str) -> Any:
    """Convert a value to the type of the setting and check its range; text comes from the environment."""
    expected_type = _TYPES[name]
    value = os.fspath(value) if isinstance(value, os.PathLike) else value
    try:
        if expected_type is dict:
            return _context_changes(value)
        if expected_type is tuple:
            parts = value.split(",") if isinstance(value, str) else value
            typed: Any = tuple(part.strip() if isinstance(part, str) else part for part in parts)
            if not all(isinstance(part, str) for part in typed):
                raise ValueError
        elif isinstance(value, bool) or (expected_type is str and not isinstance(value, str)):
            raise ValueError
        else:
            typed = expected_type(value)
    except InvalidOption:
        raise
    except (TypeError, ValueError, OverflowError):
        kinds = {
            dict: "a table (as JSON in the environment)",
            tuple: "a list of strings",
            int: "a whole number",
            float: "a number",
            str: "text",
        }
        raise InvalidOption(name, value, f"must be {kinds[expected_type]} ({origin})") from None
    if name in _LEAST and typed < _LEAST[name]:
        raise InvalidOption(name, value, f"must be at least {_LEAST[name]} ({origin})")
    if name == "min_relevance" and typed > 1:
        raise InvalidOption(name, value, f"must be at most 1 ({origin})")
    if name in _CHOICES and typed not in _CHOICES[name]:
        raise InvalidOption(name, value, f"must be one of {', '.join(_CHOICES[name])} ({origin})")
    if name == "ingest_on" and not _INGEST_ON.fullmatch(typed):
        raise InvalidOption(name, value, f"must be local, ray (on this machine) or ray://HOST:PORT ({origin})")
    if name == "ocr_languages" and not _LANGUAGES.fullmatch(typed):
        raise InvalidOption(name, value, f"must be Tesseract languages, e.g. eng+deu ({origin})")
    return typed


def _context_changes(value: Any) -> Mapping[str, Any]:
    """Check the changes to the context configuration (docs/collectors.md)."""
    import json

    from satchel.models.options import DEFAULT_CONTEXT_CONFIG, with_changes

    changes = json.loads(value) if isinstance(value, str) else value
    if not isinstance(changes, Mapping):
        raise ValueError
    with_changes(DEFAULT_CONTEXT_CONFIG, changes, "context.")
    return changes
