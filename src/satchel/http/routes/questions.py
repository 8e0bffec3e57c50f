"""Routes for questions: contexts, hits, exact texts, checks of answers, and research (S3)."""

from __future__ import annotations

import logging
from collections.abc import Iterator
from dataclasses import asdict, replace
from functools import partial
from typing import Annotated, Final, Literal

from fastapi import APIRouter, Query, Request
from starlette.responses import Response

from satchel.errors import InvalidOption, SatchelError, UnknownBlock
from satchel.http import schemas
from satchel.http.problems import problem_for, problem_for_status
from satchel.http.routes.requests import as_events, as_json, describe, event, fresh, satchel_for, wants, work_of
from satchel.models.context import CitableSource, Context, source_dict
from satchel.service.asked_context import AskedContext, answer_to
from satchel.service.client import search_to_dict
from satchel.service.factory.assembling import assemble_hits, read_hits, sources_from_document
from satchel.service.factory.assembling import verify as verify_citations
from satchel.service.open_roots import LocalClient
from satchel.service.question import Question, ResearchQuestion
from satchel.service.research import answer_from, declined_answer, finished, must_have, streamed_from

router = APIRouter(prefix="/v1", tags=["contexts"])
research_router = APIRouter(tags=["research"])
_TEXT: Final = "text/plain"
_log: Final = logging.getLogger(__name__)

Shape = Annotated[
    Literal["context", "specification"], Query(description="Satchel's field names, or those of the specification")
]


@router.post(
    "/context",
    **describe("A context for a question or from chunks", schemas.ShapedContext, 404, 422, 503, also=_TEXT),
)
async def build_context(request: Request, body: schemas.QuestionOrChunks, shape: Shape = "context") -> Response:
    """One text inside the budget, with its sources, where each piece stands in it, and why.

    Give a `query` for a context from the workspace: chunks of files (`kind` is `chunks`), or with a user, focus, type,
    hints or conversation the sections of a workspace's context (`workspace`). Give `chunks` to have what your own
    retriever found assembled. With `Accept: text/plain` the answer is the text alone; with `?shape=specification` it
    has the names of the specification (S4's camelCase payload, S0's result) instead of those of every context.
    """
    if isinstance(body, schemas.AssembleBody):
        build = partial(_assemble, body)
    else:
        question = body.question(Question)
        build = partial((await fresh(request, question.user, question.fresh)).build, question)
    return await work_of(request).question(lambda: _context_response(request, build(), shape))


def _context_response(request: Request, built: Context, shape: str) -> Response:
    if wants(request, _TEXT):
        return Response(built.text, media_type="text/plain; charset=utf-8", headers={"X-Tokens": str(built.tokens)})
    return as_json(built.to_specification() if shape == "specification" else built.to_dict())


def _assemble(body: schemas.AssembleBody) -> Context:
    hits = list(read_hits(list(body.chunks), body.scores_are, name="chunks"))
    return assemble_hits(hits, body.build_options(), query=body.query)


@router.post(
    "/ask",
    **describe(
        "The language model's answer to a question, checked",
        schemas.CheckedAnswer,
        404,
        422,
        503,
        also="text/event-stream",
    ),
)
async def ask_question(request: Request, body: schemas.ContextBody) -> Response:
    """The context of `/v1/context` is given to the language model that is set; what it says is checked against it.

    With `Accept: text/event-stream` the answer comes as events: `context` (the sources), `piece` (text) as often as
    needed, then `done` with the whole, or `problem`. If the context does not seem to answer, the model is not asked.
    """
    work = work_of(request)
    must_have(satchel_for(request).language_model)
    question = body.question(Question)
    client = await fresh(request, question.user, question.fresh)
    if wants(request, "text/event-stream"):
        return as_events(work.stream(_told_bit_by_bit(client, question)))
    return await work.model(lambda: as_json(answer_to(client, question).to_dict()))


def _told_bit_by_bit(client: LocalClient, question: Question) -> Iterator[bytes]:
    try:
        asked = AskedContext.of(client, question)
        yield event("context", {"sources": [source_dict(source) for source in asked.context.sources]})
        if asked.declined:
            yield event("piece", {"text": asked.declined})
            yield event("done", asked.answered(asked.declined).to_dict())
            return
        with asked.stream(client.language_model) as stream:
            for piece in stream:
                yield event("piece", {"text": piece})
        yield event("done", asked.answered(stream.content).to_dict())
    except SatchelError as error:
        yield event("problem", problem_for(error, client.caller).as_dict())
    except Exception as error:
        _log.error("an answer was interrupted: %s", type(error).__name__)
        yield event("problem", problem_for_status(500).as_dict())


@router.post(
    "/research",
    **describe("The pages of documents that answer a question", schemas.ContextAnswer, 404, 422, 503, also=_TEXT),
)
async def research_context(request: Request, body: schemas.ResearchBody) -> Response:
    """The pages of the documents that answer a question, numbered, inside the budget; answered as `/v1/context` is."""
    question = body.question(ResearchQuestion)
    client = await fresh(request, question.user)
    return await work_of(request).question(lambda: _context_response(request, client.research(question), "context"))


@router.post("/search", **describe("The pieces that answer a question best", schemas.Found, 422, 503))
async def search(request: Request, body: schemas.SearchBody) -> Response:
    """Pieces with their text, best first; `relevance` is an estimate of how likely each is to answer."""
    question = body.question(Question)
    client = await fresh(request, question.user, question.fresh)
    return await work_of(request).question(lambda: as_json(search_to_dict(client.search(question))))


@router.post("/find", **describe("Definitions, references, outlines and exact text", schemas.FoundPlaces, 422, 503))
async def find(request: Request, body: schemas.FindBody) -> Response:
    """Where a symbol is defined, named or implemented, the outline of a file or folder, or every line with a text."""
    client = await fresh(request, schemas.user_of(body.user))

    def found() -> Response:
        given = client.find(body.what, body.kind, limit=body.limit, include=body.include, exclude=body.exclude)
        return as_json(given.to_dict())

    return await work_of(request).question(found)


@router.post("/expand", **describe("The exact text of an id", schemas.Expanded, 404, 422, 503))
async def expand(request: Request, body: schemas.ExpandBody) -> Response:
    """What stands behind the id of a piece, a block, a path, or a path with lines (`src/a.py:10-20`)."""
    user = schemas.user_of(body.user)
    client = replace(satchel_for(request, user), index_notes=())

    def expanded() -> Response:
        return as_json(asdict(client.expand(body.id, lines=body.lines)))

    try:
        return await work_of(request).question(expanded)
    except UnknownBlock:
        client = await fresh(request, user)
        return await work_of(request).question(expanded)


@router.post("/verify", **describe("Check an answer's citations", schemas.Report, 422))
async def verify(request: Request, body: schemas.VerifyBody) -> Response:
    """Numbers that no source has, and quotations that no cited source holds.

    `context` is what `/v1/context` answered; or give the `sources` that were shown.
    """
    if (body.context is None) == (body.sources is None):
        raise InvalidOption("context or sources", None, "give exactly one of context and sources")

    def check() -> Response:
        sources = tuple(CitableSource(**dict(source)) for source in body.sources or ())
        if body.context is not None:
            sources = sources_from_document(body.context)
        return as_json(verify_citations(body.answer, sources).to_dict())

    return await work_of(request).long(check)


@research_router.post(
    "/api/research/ask",
    **describe("An answer from the documents, with its sources", schemas.Answered, 422, 503, also="text/event-stream"),
)
async def ask_research_question(request: Request, body: schemas.ResearchRequest) -> Response:
    """The pages that answer the question best are given to the language model that is set; its answer cites them.

    With `stream` (or `Accept: text/event-stream`) the answer comes as events: `context` (sources, truncated,
    total_tokens), `piece` (text) as often as needed, then `done` with the whole, or `problem`.
    """
    work = work_of(request)
    model = must_have(satchel_for(request).language_model)
    client = await fresh(request, schemas.user_of(body.user))
    client.filters()
    if not body.include_text and not body.include_visual:
        raise InvalidOption("include_text", False, "one of include_text and include_visual must be true")
    question = ResearchQuestion(
        query=body.query,
        num_results=body.num_results,
        max_sources=body.max_sources or body.num_results,
        token_budget=body.max_tokens,
        by="hybrid" if body.include_text and body.include_visual else "text" if body.include_text else "visual",
        min_sufficiency=body.min_sufficiency,
        answer_tokens=body.answer_tokens,
    )
    if body.stream or wants(request, "text/event-stream"):
        return as_events(work.stream(_streamed(client, question)))
    return await work.model(lambda: as_json(answer_from(client.research(question), question, model).to_dict()))


def _streamed(client: LocalClient, question: ResearchQuestion) -> Iterator[bytes]:
    try:
        context = client.research(question)
        answer = finished(context, "").to_dict()
        yield event("context", {name: answer[name] for name in ("sources", "truncated", "total_tokens", "notes")})
        if declined := declined_answer(context, question.min_sufficiency):
            yield event("piece", {"text": declined})
            yield event("done", finished(context, declined).to_dict())
            return
        with streamed_from(context, question, client.language_model) as stream:
            for piece in stream:
                yield event("piece", {"text": piece})
        yield event("done", finished(context, stream.content).to_dict())
    except SatchelError as error:
        yield event("problem", problem_for(error, client.caller).as_dict())
    except Exception as error:
        _log.error("an answer was interrupted: %s", type(error).__name__)
        yield event("problem", problem_for_status(500).as_dict())
