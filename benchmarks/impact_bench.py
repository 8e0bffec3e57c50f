"""What else a commit changed: the answer to the diff of one of its files, beside words and beside history alone.

python -m benchmarks.impact_bench REPOSITORY...            measure, and write the section of docs/benchmarks.md
python -m benchmarks.impact_bench REPOSITORY... --print    measure and print

Each case is a commit of the repository's history that changes two to ten files which its parent has, one of them code.
The parent is checked out with the commit's change of one file, the code file with the most changed lines; its
diff is the question, and the other files of the commit are the answer. History is known up to the parent. `words` ranks
files by BM25 over the lines of the diff; `history` by how often they changed in the same commits.
"""

from __future__ import annotations

import subprocess
import sys
import tempfile
from collections import Counter, defaultdict
from pathlib import Path
from statistics import mean, stdev
from typing import Final, NamedTuple

import bm25s

sys.path.insert(0, str(Path(__file__).parent.parent))

import satchel
from benchmarks.sections import measure_repositories
from satchel.models.files import kind_of
from satchel.models.search import Filters
from satchel.retrieval.change import Change
from satchel.retrieval.impact import ImpactSearcher

_COMMITS: Final = 60  # of a repository, spread over its last ones
_AMONG: Final = 1_500
_HISTORY: Final = 300  # commits known to `history` and to Satchel
_TOP: Final = 5


class Case(NamedTuple):
    """A commit, the file whose change is known, and the other files that it changes."""

    commit: str
    seed: str
    others: frozenset[str]


class Outcome(NamedTuple):
    """For a case and a way of ranking: the shares of the other files, and of the tests, among the first five."""

    files: float
    tests: float | None


def _git(folder: Path, *command: str, check: bool = True) -> str:
    ran = subprocess.run(["git", *command], cwd=folder, capture_output=True, text=True, check=check, errors="replace")
    return ran.stdout


def cases_of(folder: Path, head: str) -> list[Case]:
    """The cases of a repository on the way to a commit, oldest first."""
    # A mirror may lack large files of old commits: what is listed before the first of them is enough.
    command = ("log", "--no-merges", "--first-parent", f"-{_AMONG}", "--numstat", "--format=%x00%H", head)
    listed = _git(folder, *command, check=False)
    found = []
    for entry in listed.split("\0")[1:]:
        commit, *rows = entry.strip().split("\n")
        changed = [row.split("\t") for row in rows if row.count("\t") == 2 and "=>" not in row]
        if not 2 <= len(changed) <= 10:
            continue
        before = set(_git(folder, "ls-tree", "-r", "--name-only", f"{commit}^").split("\n"))
        known = {path: int(added) + int(gone) for added, gone, path in changed if path in before and added != "-"}
        after = set(_git(folder, "ls-tree", "-r", "--name-only", commit).split("\n"))
        code = {path: lines for path, lines in known.items() if _is_code(path) and path in after}
        if code and len(known) > 1:
            seed = max(code, key=lambda path: (code[path], path))
            found.append(Case(commit, seed, frozenset(known) - {seed}))
    step = max(1, len(found) // _COMMITS)
    return found[::step][:_COMMITS][::-1]


def _is_code(path: str) -> bool:
    kind = kind_of(path)
    return not (kind.test or kind.docs or kind.prose or kind.config or kind.unknown or kind.build or kind.example)


def measured(repository: Path, work: Path) -> dict[str, list[Outcome]]:
    """The outcomes of each way of ranking."""
    tree = work / _name(repository)
    _git(work, "clone", "--quiet", "--shared", "--no-checkout", str(repository), str(tree))
    outcomes: dict[str, list[Outcome]] = defaultdict(list)
    for case in cases_of(tree, _git(repository, "rev-parse", "HEAD").strip()):
        _git(tree, "checkout", "--quiet", "--force", f"{case.commit}^")
        _git(tree, "clean", "-qfd")
        _git(tree, "checkout", case.commit, "--", case.seed)
        _git(tree, "reset", "--quiet")
        diff = _git(tree, "diff", "--", case.seed)
        with satchel.open(tree, index_dir=work / f"{tree.name}.index", embedder="static") as client:
            client.index()
            context = client.build("", diff=diff, token_budget=4000)
            ranked = {
                "shown in 4,000 tokens": [source.path or "" for source in context.sources],
                "satchel": _by_satchel(client, diff),
                "words": _by_words(client, diff),
                "history": _by_history(client, case.seed),
            }
        for way, paths in ranked.items():
            first = [path for path in dict.fromkeys(paths) if path != case.seed]
            outcomes[way].append(_judged(case, first if way.startswith("shown") else first[:_TOP]))
    return outcomes


def _judged(case: Case, first: list[str]) -> Outcome:
    tests = {path for path in case.others if kind_of(path).test}
    return Outcome(
        files=len(case.others & set(first)) / len(case.others),
        tests=len(tests & set(first)) / len(tests) if tests else None,
    )


def _by_satchel(client: satchel.LocalSatchel, diff: str) -> list[str]:
    change = Change(diff)
    finder = ImpactSearcher(client.engine.searcher, change)
    return [hit.path for hit in finder.search(change.words, top_k=200, filters=Filters()).hits]


def _by_words(client: satchel.LocalSatchel, diff: str) -> list[str]:
    lines = [line[1:] for line in diff.split("\n") if line[:1] in "+-" and not line.startswith(("+++", "---"))]
    texts = {path: text for path, _, text in client.engine.store.texts(Filters())}
    index = bm25s.BM25()
    words = bm25s.tokenize([f"{path}\n{text}" for path, text in texts.items()], show_progress=False)
    index.index(words, show_progress=False)
    asked = bm25s.tokenize(["\n".join(lines)], show_progress=False)
    numbers, _ = index.retrieve(asked, k=min(_TOP + 1, len(texts)), show_progress=False)
    paths = list(texts)
    return [paths[number] for number in numbers[0]]


def _by_history(client: satchel.LocalSatchel, seed: str) -> list[str]:
    commits: dict[str, set[str]] = defaultdict(set)
    for entry in client.engine.store.activity(Filters(), limit=100_000):
        commits[entry.reference].add(entry.block)
    together = Counter(path for files in commits.values() if seed in files for path in files)
    return sorted(together, key=lambda path: (-together[path], path))


def _page(repositories: list[Path]) -> str:
    rows: list[str] = []
    with tempfile.TemporaryDirectory() as work:
        for repository in repositories:
            outcomes = measured(repository, Path(work))
            rows += [f"| {_name(repository)} | {way} | {_figures(found)} |" for way, found in outcomes.items()]
    return "\n".join((_HEADING, "", _ABOUT, "", *_COLUMNS, *rows))


def _name(repository: Path) -> str:
    folder = repository.parent if repository.name == "repo" else repository
    return folder.name.rpartition("+")[2]


def _figures(outcomes: list[Outcome]) -> str:
    tests = [each.tests for each in outcomes if each.tests is not None]
    files = [each.files for each in outcomes]
    half = 1.96 * stdev(files) / len(files) ** 0.5
    of_tests = f"{mean(tests):.2f}" if tests else "–"
    return f"{len(outcomes)} | {mean(files):.2f} ± {half:.2f} | {of_tests} ({len(tests)})"


_HEADING: Final = "## Impact"
_ABOUT: Final = (
    "What a commit changed beside the file whose diff is given (`build --diff`): its other files, and of them the "
    "tests, among the first five files, for up to 60 commits of a repository, each on the tree and the history before "
    "it. `words` ranks files by BM25 over the changed lines, `history` by how often they changed in the same commits; "
    "± is half of the 95 % interval. The weights were chosen on requests, click and chi. Made by "
    "`python -m benchmarks.impact_bench REPOSITORY...`."
)
_COLUMNS: Final = ("| repository | by | commits | other files | tests |", "|---|---|--:|--:|--:|")


if __name__ == "__main__":
    measure_repositories(_HEADING, _page)
