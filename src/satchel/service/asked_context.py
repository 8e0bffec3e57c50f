"""A language model's answer from the context of any question, checked against that context."""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any

from satchel.models.context import source_dict
from satchel.service.research import complete_from, declined_answer, must_have, stream_from
from satchel.text.visible import make_visible

if TYPE_CHECKING:
    from satchel.models.context import CitationReport, Context
    from satchel.ports.language_model import AnswerStream, LanguageModel
    from satchel.service.open_roots import LocalClient
    from satchel.service.question import Question

_ANSWER_TOKENS = 1024  # as for an answer from documents


@dataclass(frozen=True, slots=True, kw_only=True)
class CheckedAnswer:
    """An answer and the report on its citations and claims; the report is None where nothing was found."""

    answer: str
    context: Context
    report: CitationReport | None

    def to_dict(self) -> dict[str, Any]:
        """The answer as a JSON-compatible dictionary."""
        context = self.context
        return {
            "answer": self.answer,
            "sources": [source_dict(source) for source in context.sources],
            "report": self.report.to_dict() if self.report else None,
            "sufficiency": context.sufficiency.to_dict() if context.sufficiency else None,
            "tokens": context.tokens,
            "notes": list(context.notes),
        }


@dataclass(frozen=True, slots=True, kw_only=True)
class AskedContext:
    """The context of a question that is put to a language model."""

    question: Question
    context: Context
    instructions: str
    """The caller's system prompt: an instruction to the model, and no part of the context."""

    @classmethod
    def of(cls, client: LocalClient, question: Question) -> AskedContext:
        """Build the context for a question."""
        instructions, question = question.system_prompt, replace(question, system_prompt="")
        return cls(question=question, context=client.build(question), instructions=instructions)

    @property
    def declined(self) -> str:
        """The answer in place of the model's, if nothing was found or the context does not seem to answer."""
        return declined_answer(self.context, self.question.min_sufficiency)

    def stream(self, model: LanguageModel | None) -> AnswerStream:
        """The model's answer as it comes."""
        return stream_from(must_have(model), self.question.query, self.context.text, self.instructions, _ANSWER_TOKENS)

    def answered(self, text: str) -> CheckedAnswer:
        """The answer with its report; hidden characters in it are made visible."""
        from satchel.assembly.citations.verify import verify

        answer = make_visible(text).text
        report = verify(answer, self.context) if self.context.sources and not self.declined else None
        return CheckedAnswer(answer=answer, context=self.context, report=report)


def answer_to(client: LocalClient, question: Question) -> CheckedAnswer:
    """Ask the language model that is set a question about a workspace, and check its answer."""
    model = must_have(client.language_model)
    asked = AskedContext.of(client, question)
    if asked.declined:
        return asked.answered(asked.declined)
    text = complete_from(model, asked.question.query, asked.context.text, asked.instructions, _ANSWER_TOKENS).content
    return asked.answered(text)
