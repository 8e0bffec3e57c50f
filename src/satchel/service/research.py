"""Research over the documents of a workspace with a language model: S3's flow from end to end."""

from __future__ import annotations

import asyncio
from dataclasses import asdict, dataclass, replace
from typing import TYPE_CHECKING, Any, Final

from satchel.assembly.citations.verify import verify
from satchel.errors import LanguageModelUnavailable
from satchel.models.results import ResearchContext
from satchel.ports.language_model import (
    AnswerStream,
    Completion,
    LanguageModel,
    stream_with_context,
)
from satchel.research.builder import RESEARCH_SYSTEM_PROMPT, ContextBuilder
from satchel.retrieval.sufficiency import is_below, notice_of, with_notice
from satchel.service.question import ASK_MIN_SUFFICIENCY
from satchel.text.visible import make_visible

if TYPE_CHECKING:
    from satchel.models.context import Context
    from satchel.research.library import WorkspaceLibrary
    from satchel.service.question import ResearchQuestion

__all__ = [
    "NO_SOURCES",
    "AnswerStream",
    "Completion",
    "LanguageModel",
    "ResearchAnswer",
    "ResearchContext",
    "answer_from",
    "complete_from",
    "declined_answer",
    "finished",
    "must_have",
    "research",
    "stream_from",
    "streamed_from",
]

NO_SOURCES: Final = "No results: these documents contain no answer to the question."
"""The answer if no page was found; the model is not asked."""


@dataclass(frozen=True, slots=True, kw_only=True)
class ResearchAnswer:
    """What a model answered, from which sources, whether pages did not fit, and the tokens of what it was given.

    `report` is the check of its citations, as `CitationReport.to_dict` tells it.
    """

    answer: str
    sources: tuple[dict[str, Any], ...]
    truncated: bool
    total_tokens: int
    notes: tuple[str, ...] = ()
    report: dict[str, Any] | None = None
    sufficiency: dict[str, Any] | None = None
    """How likely the sources answer the question, as `Sufficiency.to_dict` gives it."""

    def to_dict(self) -> dict[str, Any]:
        """Convert the answer to JSON values."""
        return asdict(self) | {"sources": list(self.sources), "notes": list(self.notes)}


def research(library: WorkspaceLibrary, asked: ResearchQuestion, model: str) -> ResearchContext:
    """Build a context of pages for a question; tokens are counted for `model`."""

    def build(notice: str) -> ResearchContext:
        builder = ContextBuilder(
            library,
            library,
            max_sources=asked.max_sources,
            max_tokens=asked.token_budget,
            model=model,
            notice=notice,
        )
        context = asyncio.run(
            builder.build_context(
                asked.query,
                num_results=asked.num_results,
                include_text=asked.by != "visual",
                include_visual=asked.by != "text",
            )
        )
        return replace(context, sufficiency=library.judge(asked.query, context))

    return with_notice(build, asked.min_sufficiency or 0.0)


def answer_from(context: ResearchContext, asked: ResearchQuestion, model: LanguageModel | None) -> ResearchAnswer:
    """Ask the model for an answer from the context; its citations are checked against the pages."""
    if declined := declined_answer(context, asked.min_sufficiency):
        return finished(context, declined)
    completion = complete_from(must_have(model), asked.query, context.formatted_text, "", asked.answer_tokens)
    return finished(context, completion.content)


def declined_answer(context: Context, min_sufficiency: float | None) -> str:
    """The answer without asking a model, if the context has no sources or is not sufficient; else an empty text.

    A context with little sufficiency is not sent: a model answers from whatever it is given.
    """
    if not context.sources:
        return NO_SOURCES
    least = ASK_MIN_SUFFICIENCY if min_sufficiency is None else min_sufficiency
    if not is_below(context, least):
        return ""
    assert context.sufficiency is not None
    return notice_of(context.sufficiency)


def streamed_from(context: ResearchContext, asked: ResearchQuestion, model: LanguageModel | None) -> AnswerStream:
    """Ask the model for an answer from the context, as a stream."""
    return stream_from(must_have(model), asked.query, context.formatted_text, "", asked.answer_tokens)


def complete_from(model: LanguageModel, query: str, text: str, instructions: str, max_tokens: int) -> Completion:
    """Ask the model for an answer from a context's text, with citations."""
    return model.complete_with_context(query, text, _system_prompt(instructions), max_tokens)


def stream_from(model: LanguageModel, query: str, text: str, instructions: str, max_tokens: int) -> AnswerStream:
    """Ask the model for an answer from a context's text, with citations, as a stream."""
    return stream_with_context(model, query, text, _system_prompt(instructions), max_tokens)


def _system_prompt(instructions: str) -> str:
    return f"{RESEARCH_SYSTEM_PROMPT}\n\n{instructions}".strip() if instructions else RESEARCH_SYSTEM_PROMPT


def finished(context: ResearchContext, text: str) -> ResearchAnswer:
    """Create an answer with sources and a citation report from a model's text."""
    answer = make_visible(text).text
    return ResearchAnswer(
        answer=answer,
        sources=tuple(source.to_dict() for source in context.sources),
        truncated=context.truncated,
        total_tokens=context.total_tokens,
        notes=context.notes,
        report=verify(answer, context).to_dict() if context.sources else None,
        sufficiency=context.sufficiency.to_dict() if context.sufficiency else None,
    )


def must_have(model: LanguageModel | None) -> LanguageModel:
    """Return the model; without a model raise LanguageModelUnavailable with instructions."""
    if model is None:
        how = "not set; set SATCHEL_LANGUAGE_MODEL (openai:MODEL, ollama:MODEL, vllm:MODEL or llamacpp:MODEL)"
        raise LanguageModelUnavailable("", how)
    return model
