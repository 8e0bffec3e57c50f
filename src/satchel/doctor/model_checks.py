"""Checks of token counting, embedder, language model and document readers. A language model is sent no content."""

from __future__ import annotations

import json
import os
import shutil
from collections.abc import Iterator
from contextlib import closing
from importlib.util import find_spec
from typing import TYPE_CHECKING, Final
from urllib.parse import urlsplit

from satchel.cli.packages import pip_install
from satchel.doctor.finding import Finding, note, ok, problem
from satchel.errors import InvalidOption, SatchelError
from satchel.http_client import HttpClient, HttpProblem

if TYPE_CHECKING:
    from satchel.service.settings import Settings


LATE_EMBEDDER: Final = "check that the embedder's endpoint is running; `--embedder static` needs no endpoint"
LATE_LANGUAGE_MODEL: Final = "check that the language model's endpoint is running"
# A list of models needs no computation; an endpoint that takes longer counts as not answering.
_REQUEST_SECONDS: Final = 5.0
# Lists of models are far smaller; the limit protects memory from an endpoint that never stops sending.
_MAX_RESPONSE_BYTES: Final = 1_000_000
# Enough to choose from on one line; some endpoints list hundreds.
_MAX_MODELS_IN_REMEDY: Final = 5
_OPENAI: Final = "https://api.openai.com/v1"


def check_counting(settings: Settings) -> list[Finding]:
    """Check if, and how exactly, tokens are counted for the configured model."""
    from satchel.tokens import counter_for
    from satchel.tokens.registry import describe_tokenizer

    count = counter_for("gpt-4o").count("hello world")
    if count != 2:
        return [problem("token counting", f"two tokens were counted as {count}", pip_install())]
    try:
        counter_for(settings.model).count("hello world")
        margin = describe_tokenizer(settings.model).margin_percent
    except SatchelError as error:
        return [problem("token counting", str(error), "satchel tokens --list-models")]
    kind = f"estimated, with a margin of {margin} %" if margin else "exact"
    return [ok("token counting", f"{kind} for {settings.model}")]


def check_embedder(settings: Settings) -> list[Finding]:
    """Check if the embedder makes a vector. The check downloads nothing."""
    from satchel.service.factory.adapters import make_embedder

    kind, _, model = settings.embedder.partition(":")
    if kind == "openai" and model:
        base = settings.embedder_url or _OPENAI
        if reason := _unreachable(base).replace(base, without_secrets(base)):
            how = "start the endpoint or correct SATCHEL_EMBEDDER_URL; or use --embedder static"
            return [problem("embedder", f"{settings.embedder}: {reason}", how)]
    # The libraries would load a model from the Internet.
    os.environ["HF_HUB_OFFLINE"] = "1"
    try:
        embedder = make_embedder(settings)
        dimensions = len(embedder.embed_query("does it work"))
    except SatchelError as error:
        return [problem("embedder", str(error), _embedder_remedy(kind))]
    return [ok("embedder", f"{embedder.name}, {dimensions} dimensions")]


def _embedder_remedy(kind: str) -> str:
    if kind in ("fastembed", "sentence-transformers"):
        return f"{pip_install(kind)}; the first `satchel index` downloads the model"
    if kind == "openai":
        return "correct SATCHEL_EMBEDDER, SATCHEL_EMBEDDER_URL or SATCHEL_EMBEDDER_KEY; or use --embedder static"
    return "use `--embedder static`, or unset SATCHEL_EMBEDDER; docs/embedders.md lists all embedders"


def check_language_model(settings: Settings) -> list[Finding]:
    """Check if the language model's endpoint answers and has the model. The check only requests the list of models."""
    from satchel.service.factory.adapters import language_model_endpoint

    subject = "language model"
    try:
        endpoint = language_model_endpoint(settings)
    except SatchelError as error:
        return [problem(subject, str(error), "export SATCHEL_LANGUAGE_MODEL=ollama:qwen3, or another known model")]
    if endpoint is None:
        return [ok(subject, "not set; only `satchel ask` needs a language model")]
    base, name, is_ollama = endpoint.url or _OPENAI, f"{endpoint.kind}:{endpoint.model}", endpoint.kind == "ollama"
    address = without_secrets(base)
    if reason := _unreachable(base).replace(base, address):
        how = "ollama serve" if is_ollama else "start the endpoint, or correct SATCHEL_LANGUAGE_MODEL_URL"
        return [problem(subject, f"{name}: {reason}", how)]
    status, models = _models(base, endpoint.key)
    if status in (401, 403):
        return [problem(subject, f"{name}: {address} refuses the key", "export SATCHEL_LANGUAGE_MODEL_KEY=…")]
    if not models:
        return [note(subject, f"{name}: {address} answers, but does not list its models")]
    if endpoint.model in models or f"{endpoint.model}:latest" in models:
        return [ok(subject, f"{name} at {address}")]
    few = ", ".join(models[:_MAX_MODELS_IN_REMEDY]) + (", …" if len(models) > _MAX_MODELS_IN_REMEDY else "")
    how = f"ollama pull {endpoint.model}" if is_ollama else f"use one of its models: {few}"
    return [problem(subject, f"{name}: {address} has no such model", how)]


def check_document_readers() -> Iterator[Finding]:
    """Check if a child process reads a small table, the way documents are read, and is sandboxed."""
    from satchel.indexing.documents.readers import readers_for
    from satchel.indexing.walk import NO_DOCUMENTS, can_read_documents
    from satchel.models.document import Unreadable
    from satchel.models.files import DOCUMENT_KINDS, document_suffixes

    document_suffixes()  # loads the plug-ins
    for reason in DOCUMENT_KINDS.problems.values():
        yield problem("documents", reason, "update or uninstall that package")
    if not can_read_documents():
        yield note("documents", "PDF, office files and e-books are not read: the extra `documents` is not installed")
        return
    with readers_for(NO_DOCUMENTS, 1) as children:
        document = children.read("probe.csv", b"a,b\n1,2\n")
        confined = children.is_confined()
    if isinstance(document, Unreadable):
        yield problem("documents", f"the reader {document.reason}", pip_install("documents"))
        return
    yield ok("documents", "PDF, office files, e-books, web pages")
    if not confined:
        yield note("documents", "the kernel cannot sandbox document readers: do not index untrusted files")


def check_scans(settings: Settings) -> Iterator[Finding]:
    """Check which OCR program reads scanned pages, and if the configured languages are installed."""
    from satchel.indexing.documents.recognition import languages_missing
    from satchel.indexing.walk import can_read_documents

    program = shutil.which("tesseract")
    if settings.ocr == "off":
        yield ok("scans", "not read: the setting `ocr` is off")
    elif not can_read_documents():
        yield ok("scans", "not read, because documents are not read")
    elif program:
        if missing := languages_missing(settings.ocr_languages):
            packages = " ".join(f"tesseract-ocr-{language.replace('_', '-').lower()}" for language in missing)
            detail = f"tesseract lacks the languages {', '.join(missing)} (setting ocr_languages)"
            yield problem("scans", detail, f"sudo apt install {packages}   (or export SATCHEL_OCR_LANGUAGES=eng)")
        else:
            yield ok("scans", f"by tesseract ({program}), {settings.ocr_languages}")
    elif find_spec("rapidocr"):
        yield ok("scans", "by rapidocr")
    else:
        how = f"sudo apt install tesseract-ocr, or {pip_install('ocr')}"
        yield note("scans", "pages that are pictures are not read", how)


def without_secrets(url: str) -> str:
    """An address without user, password and parameters (possible secrets)."""
    parts = urlsplit(url)
    return f"{parts.scheme}://{parts.netloc.rpartition('@')[2]}{parts.path}"


def _get_models(base: str, key: str) -> tuple[int, bytes]:
    """Status and body of the endpoint's list of models; raises HttpProblem or InvalidOption without an answer."""
    with closing(HttpClient(base, key=key, timeout=_REQUEST_SECONDS, uses_proxies=True)) as client:
        response = client.request("GET", "models", max_bytes=_MAX_RESPONSE_BYTES)
        return response.status, response.read()


def _unreachable(base: str) -> str:
    """Reason why the endpoint does not answer; '' on success. No key is sent."""
    try:
        _get_models(base, "")
    except InvalidOption as error:
        return error.problem
    except HttpProblem as error:
        return "" if error.status else f"no answer from {base} ({error.reason})"
    return ""


def _models(base: str, key: str) -> tuple[int, list[str]]:
    """Status of the endpoint's response, and the listed models."""
    try:
        status, body = _get_models(base, key)
        listed = json.loads(body or b"{}").get("data", []) if status < 300 else []
        return status, [str(entry["id"]) for entry in listed if isinstance(entry, dict) and "id" in entry]
    except (HttpProblem, ValueError, AttributeError, TypeError):
        return 0, []
