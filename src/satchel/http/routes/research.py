"""S3's research API: a question to the documents, answered by a language model."""

from __future__ import annotations

import logging
from collections.abc import Iterator
from typing import Any, Final

from fastapi import APIRouter, Request
from starlette.responses import Response

from satchel.errors import InvalidOption, SatchelError
from satchel.http import answers
from satchel.http.problems import problem_for, problem_for_status
from satchel.http.routes.callers import fresh, satchel_for, work_of
from satchel.http.routes.replies import as_events, as_json, describe, event, wants
from satchel.http.schemas import ResearchRequest, user_of
from satchel.service.local_client import LocalSatchel
from satchel.service.question import ResearchQuestion
from satchel.service.research import NO_SOURCES, answer_from, finished, must_have, streamed_from

router = APIRouter(tags=["research"])

_log: Final = logging.getLogger(__name__)


@router.post(
    "/api/research/ask",
    **describe(
        "ask_research_question",
        "An answer from the documents, with its sources",
        422,
        503,
        model=answers.Answered,
        media_type="text/event-stream",
    ),
)
async def ask_research_question(request: Request, body: ResearchRequest) -> Response:
    """The pages that answer the question best are given to the language model that is set; its answer cites them.

    With `stream` (or `Accept: text/event-stream`) the answer comes as events: `context` (sources, truncated,
    total_tokens), `piece` (text) as often as needed, then `done` with the whole, or `problem`.
    """
    work = work_of(request)
    must_have(satchel_for(request).engine.language_model)
    bag = await fresh(request, user_of(body.user))
    bag.filters()
    if not body.include_text and not body.include_visual:
        raise InvalidOption("include_text", False, "one of include_text and include_visual must be true")
    asked = ResearchQuestion(
        query=body.query,
        num_results=body.num_results,
        max_sources=body.max_sources or body.num_results,
        token_budget=body.max_tokens,
        by="hybrid" if body.include_text and body.include_visual else "text" if body.include_text else "visual",
        answer_tokens=body.answer_tokens,
    )
    if body.stream or wants(request, "text/event-stream"):
        return as_events(work.stream(_streamed(bag, asked)))
    return await work.model(lambda: as_json(_answered(bag, asked)))


def _answered(bag: LocalSatchel, asked: ResearchQuestion) -> dict[str, Any]:
    return answer_from(bag.research(asked), asked, bag.engine.language_model).to_dict()


def _streamed(bag: LocalSatchel, asked: ResearchQuestion) -> Iterator[bytes]:
    try:
        context = bag.research(asked)
        told = finished(context, "").to_dict()
        yield event("context", {name: told[name] for name in ("sources", "truncated", "total_tokens", "notes")})
        if not context.sources:
            yield event("piece", {"text": NO_SOURCES})
            yield event("done", finished(context, NO_SOURCES).to_dict())
            return
        with streamed_from(context, asked, bag.engine.language_model) as stream:
            for piece in stream:
                yield event("piece", {"text": piece})
        yield event("done", finished(context, stream.said).to_dict())
    except SatchelError as error:
        yield event("problem", problem_for(error, bag.caller).as_dict())
    except Exception as error:
        _log.error("an answer broke off: %s", type(error).__name__)
        yield event("problem", problem_for_status(500).as_dict())
