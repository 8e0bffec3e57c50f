"""Contexts, hits, exact texts and checks of answers."""

from __future__ import annotations

from dataclasses import asdict, replace
from typing import Annotated, Literal

from fastapi import APIRouter, Query, Request
from starlette.responses import Response

from satchel.errors import UnknownBlock
from satchel.http import answers
from satchel.http.routes.callers import fresh, satchel_for, work_of
from satchel.http.routes.replies import as_json, describe, wants
from satchel.http.schemas import (
    AssembleBody,
    ContextBody,
    ExpandBody,
    QuestionOrChunks,
    SearchBody,
    VerifyBody,
    must_be_one,
    user_of,
)
from satchel.models.context import CitableSource, Context
from satchel.service.factory.assembling import assemble_hits, read_hits, sources_from_document, verify
from satchel.service.remote_results import search_to_dict

router = APIRouter(prefix="/v1", tags=["contexts"])

Shape = Annotated[
    Literal["context", "specification"], Query(description="The names of every context, or of the specification")
]


@router.post(
    "/context",
    **describe(
        "build_context",
        "A context for a question, or of chunks",
        404,
        422,
        503,
        model=answers.ContextAnswer,
        media_type="text/plain",
    ),
)
async def build_context(request: Request, body: QuestionOrChunks, shape: Shape = "context") -> Response:
    """One text inside the budget, with its sources, where each piece stands in it, and why.

    Give a `query` for a context from the workspace: chunks of files (`kind` is `chunks`), or with a user, focus, type,
    hints or conversation the sections of a workspace's context (`workspace`). Give `chunks` to have what your own
    retriever found assembled. With `Accept: text/plain` the answer is the text alone; with `?shape=specification` it
    has the names of the specification (S4's camelCase payload, S0's result) instead of those of every context.
    """
    question = body.question() if isinstance(body, ContextBody) else None
    bag = await fresh(request, question.user) if question else None

    def answered() -> Response:
        built = bag.build(question) if bag and question else _assembled(body)
        return _context_response(request, built, shape)

    return await work_of(request).question(answered)


def _context_response(request: Request, built: Context, shape: str) -> Response:
    if wants(request, "text/plain"):
        return Response(built.text, media_type="text/plain; charset=utf-8", headers={"X-Tokens": str(built.tokens)})
    return as_json(built.to_specification() if shape == "specification" else built.to_dict())


def _assembled(body: ContextBody | AssembleBody) -> Context:
    assert isinstance(body, AssembleBody)
    hits = list(read_hits(list(body.chunks), body.scores_are, name="chunks"))
    return assemble_hits(hits, body.build_options(), query=body.query)


@router.post("/search", **describe("search", "The pieces that answer a question best", 422, 503, model=answers.Found))
async def search(request: Request, body: SearchBody) -> Response:
    """Pieces with their text, best first; `relevance` is an estimate of how likely each is to answer."""
    question = body.question()
    bag = await fresh(request, question.user)
    return await work_of(request).question(lambda: as_json(search_to_dict(bag.search(question))))


@router.post("/expand", **describe("expand", "The exact text behind an id", 404, 422, 503, model=answers.Expanded))
async def expand(request: Request, body: ExpandBody) -> Response:
    """What stands behind the id of a piece, a block, a path, or a path with lines (`src/a.py:10-20`)."""
    user = user_of(body.user)
    bag = replace(satchel_for(request, user), index_notes=())

    def expanded() -> Response:
        return as_json(asdict(bag.expand(body.id, lines=body.lines)))

    try:
        return await work_of(request).question(expanded)
    except UnknownBlock:
        bag = await fresh(request, user)
        return await work_of(request).question(expanded)


@router.post("/verify", **describe("verify", "Whether an answer's citations hold", 422, model=answers.Report))
async def verify_answer(request: Request, body: VerifyBody) -> Response:
    """Numbers that no source has, and quotations that no cited source holds.

    `context` is what `/v1/context` answered; or give the `sources` that were shown.
    """
    must_be_one("context or sources", body.context, body.sources)

    def check() -> Response:
        shown = (
            sources_from_document(body.context)
            if body.context is not None
            else tuple(CitableSource(**dict(one)) for one in body.sources or ())
        )
        return as_json(verify(body.answer, shown).to_dict())

    return await work_of(request).long(check)
