"""`satchel ask`: a language model's answer to a question about a folder, with citations checked."""

from __future__ import annotations

import json
import os
import sys
from collections import deque
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Final

import click

from satchel.cli.answer import AnswerPrinter, ShownSource, print_text, shown_sources
from satchel.cli.exits import Exit
from satchel.cli.flags import QUICK, WorkspaceFlags, open_asked, with_question, with_roots
from satchel.cli.output import describe_doubt, say, write_output
from satchel.cli.verify import describe_claim, describe_finding, describe_uncited
from satchel.errors import LanguageModelUnavailable
from satchel.service.question import ASK_MIN_SUFFICIENCY, Surface
from satchel.text.visible import counted

if TYPE_CHECKING:
    from collections.abc import Iterable

    from satchel.models.context import CitationReport, Context, Sufficiency
    from satchel.service.open_roots import LocalClient
    from satchel.service.question import Question
    from satchel.service.research import Completion, LanguageModel

_DEFAULT_ANSWER_TOKENS: Final = 1024  # as in `ResearchQuestion`; a longer answer is cut off, with a warning
_MAX_UNCITED_SENTENCES: Final = 5  # more warnings would push the answer off the screen; the rest is counted
_NO_MODEL: Final = """\
no language model is set, so there is no answer; this is the context that a model would receive. To set a model:
  SATCHEL_LANGUAGE_MODEL=openai:gpt-4o-mini           and the key in SATCHEL_LANGUAGE_MODEL_KEY or OPENAI_API_KEY
  --language-model ollama:qwen3                       a model on this machine; vllm:MODEL and llamacpp:MODEL too
  --language-model-url http://…/v1                    the endpoint, if not the default
or language_model and language_model_url in the user file ({user_file})"""


@click.command("ask", short_help="Answer a question from a folder, with checked citations.")
@click.option(
    "--language-model",
    metavar="KIND:MODEL",
    help="Language model: openai:MODEL, ollama:MODEL, vllm:MODEL or llamacpp:MODEL.",
)
@click.option(
    "--language-model-url",
    metavar="URL",
    help="Base URL of the endpoint, e.g. http://localhost:11434/v1.  [default: the provider's usual URL]",
)
@click.option(
    "--answer-tokens",
    type=click.IntRange(1),
    default=_DEFAULT_ANSWER_TOKENS,
    show_default=True,
    help="Maximum length of the answer in tokens.",
)
@click.option("--check", is_flag=True, help="Also ask the model about sentences that rules cannot check.")
@click.option("--stream/--no-stream", default=True, help="Print the answer while it is generated.  [default: stream]")
@with_question(Surface.ASK)
@QUICK
@with_roots
@click.option(
    "--json", "as_json", is_flag=True, help="Print the question, answer, sources, report, context and usage as JSON."
)
def ask_command(
    *,
    question: Question,
    workspace: WorkspaceFlags,
    language_model: str | None,
    language_model_url: str | None,
    answer_tokens: int,
    check: bool,
    stream: bool,
    quick: bool,
    as_json: bool,
) -> None:
    """Answer QUESTION from the files below PATH with the language model that is set, and check what it cites.

    The answer goes to stdout, then the sources it cites, as links; what is wrong with its citations goes to stderr.
    Without a language model the context itself is printed (exit code 1). If the files do not seem to answer the
    question, the model is not asked (exit code 3; `--min-sufficiency 0` asks anyway). Only the question and its
    context are sent, and only to that model's endpoint.
    """
    # Prompt injection: the context is data for the model, while the user's system prompt is an instruction.
    instructions, question = question.system_prompt, replace(question, system_prompt="")
    settings = {"language_model": language_model, "language_model_url": language_model_url}
    with open_asked(workspace, quick=quick, **settings) as client:
        model = client.language_model
        context = client.build(_with_numbers(client, question))
        sources = shown_sources(context, client.disk_path)
    if not sources:
        _leave_empty(context, workspace)
    inquiry = _Inquiry(
        question=question.query,
        context=context,
        sources=sources,
        answer_tokens=answer_tokens,
        is_checked_again=check,
        is_streamed=stream,
        as_json=as_json,
    )
    if model is None:
        inquiry.show_context()
        sys.exit(Exit.ERROR)
    least = ASK_MIN_SUFFICIENCY if question.min_sufficiency is None else question.min_sufficiency
    if context.sufficiency and context.sufficiency.probability < least:
        _decline(inquiry, context.sufficiency)
    workspace.say(f"asking {model.name} with {counted(len(sources), 'source')}")
    inquiry.ask(model, instructions)


def _with_numbers(client: LocalClient, question: Question) -> Question:
    """The question with numbered pieces in the context; the pieces of a workspace's context always have numbers."""
    return question if client.is_for_workspace(question) else replace(question, include_sources=True)


def _leave_empty(context: Context, workspace: WorkspaceFlags) -> None:
    """Exit with a message if the context has no sources: the model is not asked."""
    workspace.say("no results, so the language model was not asked")
    for note in context.notes:
        workspace.say(note)
    sys.exit(Exit.OVER_BUDGET if context.nothing_fits else Exit.NOTHING_FOUND)


def _decline(inquiry: _Inquiry, sufficiency: Sufficiency) -> None:
    """Exit without asking the model: it would answer from whatever it is given."""
    if inquiry.as_json:
        inquiry.write_unanswered()
    say(f"{describe_doubt(sufficiency)}; the language model was not asked (--min-sufficiency 0 asks anyway)")
    sys.exit(Exit.NOTHING_FOUND)


@dataclass(frozen=True, slots=True, kw_only=True)
class _Inquiry:
    """A question with a context, and the options for asking the model and printing the answer."""

    question: str
    context: Context
    sources: list[ShownSource]
    answer_tokens: int
    is_checked_again: bool
    is_streamed: bool
    as_json: bool

    def show_context(self) -> None:
        """Print how to set a model, and the context for the model."""
        from satchel.service.settings import user_file

        where = os.environ.get("SATCHEL_CONFIG") or user_file()
        click.echo(f"satchel: {_NO_MODEL.format(user_file=where)}", err=True)
        write_output(self._to_json(None, None, None, "") if self.as_json else self.context.text, None)

    def write_unanswered(self) -> None:
        """Print the question and its context as JSON, without an answer."""
        write_output(self._to_json(None, None, None, ""), None)

    def ask(self, model: LanguageModel, instructions: str) -> None:
        """Ask the model, print the answer, check the citations; an incomplete answer is printed and checked, too."""
        from satchel.service.research import complete_from, stream_from

        tokens = self.answer_tokens
        if not self.is_streamed:
            completion = complete_from(model, self.question, self.context.text, instructions, tokens)
            if not self.as_json:
                _print_answer([completion.content])
            self._finish(model, completion.content, completion)
            return
        with stream_from(model, self.question, self.context.text, instructions, tokens) as stream:
            try:
                if self.as_json:
                    deque(stream, maxlen=0)
                else:
                    _print_answer(stream)
            except LanguageModelUnavailable as error:
                if stream.content.strip():
                    self._finish(None, stream.content, None, error.reason)
                raise
        self._finish(model, stream.content, stream.completion)

    def _finish(
        self, model: LanguageModel | None, text: str, completion: Completion | None, interrupted: str = ""
    ) -> None:
        """Check the citations of the answer; print the cited sources and the problems, or everything as JSON."""
        from satchel.service.factory.assembling import citable_sources, verify
        from satchel.text.visible import make_visible

        # Check the text as printed: the positions of findings then match the text on the screen.
        answer = make_visible(text).text
        report = verify(answer, self.context)
        if self.is_checked_again and model:
            from satchel.service.doubtful_claims import judged

            report = judged(report, citable_sources(self.context), model)
        if self.as_json:
            write_output(self._to_json(answer, report, completion, interrupted), None)
        else:
            self._print_sources(report)
        self._warn(report, completion)

    def _print_sources(self, report: CitationReport) -> None:
        on_terminal = sys.stdout.isatty()
        rows = [source.row(on_terminal=on_terminal) for source in self.sources if source.number in report.cited]
        if rows:
            print_text("\n" + "\n".join(["Sources:", *rows]) + "\n")

    def _warn(self, report: CitationReport, completion: Completion | None) -> None:
        from satchel.service.factory.assembling import citable_sources

        if completion and completion.is_cut_off:
            _warn(f"the answer was cut off at {self.answer_tokens:,} tokens: raise --answer-tokens")
        sources = citable_sources(self.context)
        for finding in (*report.findings, *report.warnings):
            _warn(describe_finding(finding, sources))
        for claim in report.doubted:
            _warn(f"{claim.verdict}: {describe_claim(claim)}")
        if not report.cited and report.uncited_sentences:
            _warn("the answer cites no source, so it cannot be checked")
            return
        for sentence in report.uncited_sentences[:_MAX_UNCITED_SENTENCES]:
            _warn(describe_uncited(sentence))
        if (more := len(report.uncited_sentences) - _MAX_UNCITED_SENTENCES) > 0:
            _warn(f"{more} more sentences cite no source")

    def _to_json(
        self, answer: str | None, report: CitationReport | None, completion: Completion | None, interrupted: str
    ) -> str:
        from satchel.text.visible import make_visible

        cited = report.cited if report else ()
        usage = completion and {
            "prompt_tokens": completion.prompt_tokens,
            "completion_tokens": completion.completion_tokens,
            "is_cut_off": completion.is_cut_off,
        }
        fields = {
            "question": make_visible(self.question).text,
            "answer": answer,
            "interrupted": interrupted or None,
            "sources": [source.to_dict(cited=source.number in cited) for source in self.sources],
            "report": report and report.to_dict(),
            "context": self.context.to_dict(),
            "usage": usage,
        }
        return json.dumps(fields, ensure_ascii=False, indent=2)


def _print_answer(pieces: Iterable[str]) -> None:
    printer = AnswerPrinter()
    try:
        for piece in pieces:
            printer.write(piece)
    finally:
        printer.end()


def _warn(text: str) -> None:
    say(f"warning: {text}")
