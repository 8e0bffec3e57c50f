"""What a session saves: the questions about a repository asked one after another, with and without a session's name.

python -m benchmarks.sessions_bench REPOSITORY...            measure, and write the section of docs/benchmarks.md
python -m benchmarks.sessions_bench REPOSITORY... --print    measure and print

The questions are those of the evaluation's `code_semble` about the repository, in their order, as of one agent. A
repeated line is one of at least ten letters that was shown before in the same file.
"""

from __future__ import annotations

import json
import subprocess
import sys
import tempfile
from pathlib import Path
from typing import Final, NamedTuple

sys.path.insert(0, str(Path(__file__).parent.parent))

import satchel
from benchmarks.places import ROOT
from benchmarks.sections import measure_repositories

_BUDGET: Final = 4_000
_MIN_LETTERS: Final = 10


class Replayed(NamedTuple):
    """A replay: the tokens of all contexts, and the share of their lines that the reader had seen."""

    tokens: int
    repeated: float


def questions_about(slug: str) -> list[str]:
    """The questions about a repository, in their order."""
    folder = ROOT.parent / "shared" / "eval" / "data" / "code_semble"
    names = {each["slug"]: each["name"] for each in map(json.loads, (folder / "repos.jsonl").open(encoding="utf-8"))}
    tasks = map(json.loads, (folder / "dev.jsonl").open(encoding="utf-8"))
    return [task["query"] for task in tasks if task["corpus"] == names.get(slug)]


def replay(client: satchel.Satchel, questions: list[str], session: str) -> Replayed:
    """Ask the questions one after another."""
    seen: set[tuple[str, str]] = set()
    tokens = lines = repeated = 0
    for question in questions:
        context = client.build(question, token_budget=_BUDGET, session=session)
        tokens += context.tokens
        shown = {
            (source.path or "", line.strip())
            for source in context.sources
            for line in source.text.split("\n")
            if sum(map(str.isalpha, line)) >= _MIN_LETTERS
        }
        lines += len(shown)
        repeated += len(shown & seen)
        seen |= shown
    return Replayed(tokens, repeated / max(1, lines))


def _page(repositories: list[Path]) -> str:
    rows = []
    for repository in repositories:
        folder = repository.parent if repository.name == "repo" else repository
        slug = folder.name.replace("+", "/")
        questions = questions_about(slug)
        with tempfile.TemporaryDirectory() as work:
            tree = Path(work) / "tree"
            subprocess.run(["git", "clone", "--quiet", "--shared", str(repository), str(tree)], check=True)
            with satchel.open(tree, index_dir=Path(work) / "index", embedder="static") as client:
                client.index()
                without, within = replay(client, questions, ""), replay(client, questions, "agent")
        saved = 1 - within.tokens / without.tokens
        rows.append(
            f"| {slug} | {len(questions)} | {without.tokens:,} | {within.tokens:,} | {saved:.0%} |"
            f" {without.repeated:.0%} | {within.repeated:.0%} |"
        )
    return "\n".join((_HEADING, "", _ABOUT, "", *_COLUMNS, *rows))


_HEADING: Final = "## Sessions"
_ABOUT: Final = (
    "The questions of the evaluation about a repository, asked one after another with 4,000 tokens each, without and "
    "with the name of a session (`session=`): tokens of all contexts, and the share of lines that their reader had "
    "seen. Made by `python -m benchmarks.sessions_bench REPOSITORY...`."
)
_COLUMNS: Final = (
    "| repository | questions | tokens | in a session | saved | lines seen before | in a session |",
    "|---|--:|--:|--:|--:|--:|--:|",
)


if __name__ == "__main__":
    measure_repositories(_HEADING, _page)
