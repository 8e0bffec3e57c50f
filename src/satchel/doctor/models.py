"""What counts, what makes vectors and what answers: whether each is there. A language model is sent no content."""

from __future__ import annotations

import json
import os
from collections.abc import Iterator
from typing import TYPE_CHECKING, Final
from urllib.parse import urlsplit

from satchel.cli.packages import pip_install
from satchel.doctor.finding import Finding, note, ok, problem
from satchel.errors import InvalidOption, SatchelError
from satchel.http_client import HttpClient, HttpProblem

if TYPE_CHECKING:
    from satchel.service.settings import Settings

LATE_EMBEDDER: Final = "look whether the embedder's endpoint is up; `--embedder static` needs none"
LATE_LANGUAGE_MODEL: Final = "look whether the language model's endpoint is up"
_SECONDS: Final = 5.0
_MAX_BYTES: Final = 1_000_000
_OPENAI: Final = "https://api.openai.com/v1"


def counting(settings: Settings) -> Iterator[Finding]:
    """Whether tokens are counted, and how exactly, for the model that is set."""
    from satchel.tokens import counter_for
    from satchel.tokens.registry import describe_tokenizer

    counted = counter_for("gpt-4o").count("hello world")
    if counted != 2:
        yield problem("token counting", f"two tokens were counted as {counted}", pip_install())
        return
    try:
        counter_for(settings.model).count("hello world")
        how = describe_tokenizer(settings.model)
    except SatchelError as error:
        yield problem("token counting", str(error), "satchel tokens --list-models")
        return
    kind = f"estimated, with a margin of {how.margin_percent} %" if how.margin_percent else "exact"
    yield ok("token counting", f"{kind} for {settings.model}")


def embedder(settings: Settings) -> Iterator[Finding]:
    """Whether the embedder makes a vector. Nothing is downloaded for it."""
    from satchel.service.factory.opening import make_embedder

    kind, _, model = settings.embedder.partition(":")
    if kind == "openai" and model:
        base = settings.embedder_url or _OPENAI
        wrong = _unreachable(base).replace(base, bare(base))
        if wrong:
            how = "start it or correct SATCHEL_EMBEDDER_URL; without it: --embedder static"
            yield problem("embedder", f"{settings.embedder}: {wrong}", how)
            return
    # The libraries would load a model from the Internet.
    os.environ["HF_HUB_OFFLINE"] = "1"
    try:
        made = make_embedder(settings)
        length = len(made.embed_query("does it work"))
    except SatchelError as error:
        yield problem("embedder", str(error), _embedder_remedy(kind))
        return
    yield ok("embedder", f"{made.name}, {length} dimensions")


def _embedder_remedy(kind: str) -> str:
    if kind in ("fastembed", "sentence-transformers"):
        return f"{pip_install(kind)}; a model that is not on this machine yet is loaded by the first `satchel index`"
    if kind == "openai":
        return "correct SATCHEL_EMBEDDER, SATCHEL_EMBEDDER_URL or SATCHEL_EMBEDDER_KEY; without it: --embedder static"
    return "use `--embedder static`, or unset SATCHEL_EMBEDDER; docs/embedders.md lists the others"


def language_model(settings: Settings) -> Iterator[Finding]:
    """Whether the language model's endpoint is up and has the model. It is asked for its list of models only."""
    from satchel.service.factory.opening import language_model_endpoint

    subject = "language model"
    try:
        asked = language_model_endpoint(settings)
    except SatchelError as error:
        yield problem(subject, str(error), "export SATCHEL_LANGUAGE_MODEL=ollama:qwen3, or another that it names")
        return
    if asked is None:
        yield ok(subject, "none is set; only `satchel ask` needs one")
        return
    base, name = asked.url or _OPENAI, f"{asked.kind}:{asked.model}"
    wrong = _unreachable(base).replace(base, bare(base))
    if wrong:
        how = "ollama serve" if asked.kind == "ollama" else "start it, or correct SATCHEL_LANGUAGE_MODEL_URL"
        yield problem(subject, f"{name}: {wrong}", how)
        return
    status, known = _models(base, asked.key)
    if status in (401, 403):
        yield problem(subject, f"{name}: {bare(base)} refuses the key", "export SATCHEL_LANGUAGE_MODEL_KEY=…")
    elif known and not any(one in (asked.model, f"{asked.model}:latest") for one in known):
        how = f"ollama pull {asked.model}" if asked.kind == "ollama" else f"name one that it has: {_few(known)}"
        yield problem(subject, f"{name}: {bare(base)} has no such model", how)
    elif known:
        yield ok(subject, f"{name} at {bare(base)}")
    else:
        yield note(subject, f"{name}: {bare(base)} answers, but does not say which models it has")


def bare(url: str) -> str:
    """An address without what may be a secret in it: names, passwords and parameters."""
    parts = urlsplit(url)
    return f"{parts.scheme}://{parts.netloc.rpartition('@')[2]}{parts.path}"


def _few(known: list[str]) -> str:
    return ", ".join(known[:5]) + (", …" if len(known) > 5 else "")


def _get_models(base: str, key: str) -> tuple[int, bytes]:
    """Status and body of the endpoint's list of models; HttpProblem or InvalidOption where there is none."""
    client = HttpClient(base, key=key, timeout=_SECONDS, uses_proxies=True)
    try:
        response = client.request("GET", "models", max_bytes=_MAX_BYTES)
        return response.status, response.read()
    finally:
        client.close()


def _unreachable(base: str) -> str:
    """Why the endpoint does not answer; '' if it does. No key is sent."""
    try:
        _get_models(base, "")
    except InvalidOption as error:
        return error.problem
    except HttpProblem as error:
        return "" if error.status else f"nobody answers at {base} ({error.reason})"
    return ""


def _models(base: str, key: str) -> tuple[int, list[str]]:
    """The status of the endpoint's answer, and the models that it lists."""
    try:
        status, body = _get_models(base, key)
        listed = json.loads(body or b"{}").get("data", []) if status < 300 else []
        return status, [str(entry["id"]) for entry in listed if isinstance(entry, dict) and "id" in entry]
    except (HttpProblem, ValueError, AttributeError, TypeError):
        return 0, []
