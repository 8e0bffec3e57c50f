from __future__ import annotations

import ast
import gzip
import hashlib
import importlib.util
import json
import os
import subprocess
import sys
import zipfile
from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from benchmarks.scoreboard.corpora import Asked, QuestionSet, docstrings, question_sets, sample
from benchmarks.scoreboard.corpora.evaluation import SETS, whole_repositories
from benchmarks.scoreboard.corpora.model import Planned, Unavailable
from benchmarks.scoreboard.corpora.packages import Package
from benchmarks.scoreboard.corpora.pinned import PACKAGES
from benchmarks.scoreboard.corpora.repositories import Repositories, Tree
from benchmarks.scoreboard.corpora.sentences import can_be_asked, first_sentence, squeezed
from benchmarks.scoreboard.corpora.stripping import strip
from satchel.errors import InvalidInput
from satchel.evaluation.dataset import Expected
from tests.support.places import ROOT

# An evaluation folder with real repositories


def git(folder: Path, *arguments: str, **more: str) -> str:
    who = {"GIT_AUTHOR_NAME": "a", "GIT_AUTHOR_EMAIL": "a@b", "GIT_COMMITTER_NAME": "a", "GIT_COMMITTER_EMAIL": "a@b"}
    ran = subprocess.run(
        ["git", *arguments], cwd=folder, check=True, capture_output=True, text=True, env={**os.environ, **who, **more}
    )
    return ran.stdout.strip()


def repository(folder: Path) -> str:
    """A repository with all that needs care; its commit."""
    (folder / "lib" / "deep").mkdir(parents=True)
    (folder / "lib" / "a.py").write_bytes(b"a = 1\r\n\xff")
    (folder / "lib" / "deep" / "ü.py").write_text("b = 2\n", encoding="utf-8")
    (folder / "lib" / "c.txt").write_text("c\n")
    (folder / "lib" / "large.py").write_bytes(b"#" * 1_000_001)
    (folder / "lib" / "limit.py").write_bytes(b"#" * 1_000_000)
    (folder / "lib" / "link.py").symlink_to("a.py")
    (folder / "library").mkdir()
    (folder / "library" / "other.py").write_text("other = 3\n")
    git(folder, "init", "-q")
    git(folder, "add", ".")
    git(folder, "commit", "-q", "-m", "all")
    (folder / "lib" / "a.py").write_text("later = True\n")
    git(folder, "commit", "-q", "-a", "-m", "later")
    return git(folder, "rev-parse", "HEAD~1")


def write_lines(path: Path, rows: Sequence[Mapping[str, Any]]) -> None:
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text("".join(json.dumps(row) + "\n" for row in rows), encoding="utf-8")


def asks(set_name: str, corpus: str, number: int = 1, **more: Any) -> dict[str, Any]:
    gold = [{"path": "lib/a.py", "primary": True}]
    return {
        "id": f"{corpus}/{number}",
        "set": set_name,
        "corpus": corpus,
        "query": "what is a",
        "gold_files": gold,
        **more,
    }


@pytest.fixture
def place(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    for name in ("CTXEVAL_MIRROR", "SATCHEL_BENCH_MIRROR", "SATCHEL_BENCH_DATASET"):
        monkeypatch.delenv(name, raising=False)
    monkeypatch.setenv("SATCHEL_EVAL", str(tmp_path / "eval"))
    (tmp_path / ".mirror").mkdir()
    return tmp_path


def code_set(place: Path, repos: Sequence[Mapping[str, Any]]) -> QuestionSet:
    data = place / "eval" / "data" / "code_semble"
    write_lines(data / "repos.jsonl", repos)
    write_lines(data / "dev.jsonl", [asks("code_semble", repo["name"], category="symbol") for repo in repos])
    return named("code_semble", place)


def named(name: str, place: Path) -> QuestionSet:
    [found] = [one for one in question_sets(place / "work") if one.name == name]
    return found


def files_below(folder: Path) -> set[str]:
    return {path.relative_to(folder).as_posix() for path in folder.rglob("*") if not path.is_dir()}


def test_a_tree_is_the_files_of_the_commit(place: Path) -> None:
    commit = repository(place / ".mirror" / "some+project" / "repo")
    about = {"slug": "some/project", "commit": commit}
    questions = code_set(
        place,
        [
            {"name": "part", "root": "lib", **about},
            {"name": "whole", "root": "", **about},
            {"name": "python", "root": "lib", "ext": [".py"], **about},
        ],
    )
    part, whole, python = questions.corpora
    assert files_below(part.folder) == {"lib/a.py", "lib/deep/ü.py", "lib/c.txt", "lib/limit.py"}
    assert (part.folder / "lib" / "a.py").read_bytes() == b"a = 1\r\n\xff"
    assert files_below(whole.folder) == {*files_below(part.folder), "library/other.py"}
    assert files_below(python.folder) == files_below(part.folder) - {"lib/c.txt"}
    assert part.folder == place / "work" / "trees" / "code_semble" / "part"
    [asked] = part.questions
    assert asked.expected == (Expected(path="lib/a.py"),)
    assert asked.group == "symbol"
    assert (questions.missing, questions.fitted, questions.kind) == ({}, True, "code")
    assert files_below(place / "eval") == {"data/code_semble/repos.jsonl", "data/code_semble/dev.jsonl"}


def test_a_whole_repository_has_the_files_outside_of_its_root_too(place: Path) -> None:
    commit = repository(place / ".mirror" / "some+project" / "repo")
    about = {"slug": "some/project", "commit": commit}
    code_set(place, [{"name": "part", "root": "lib/deep", "ext": [".py"], **about}])
    whole = whole_repositories(place / "work")
    [corpus] = whole.corpora
    assert whole.name == "code_semble_whole"
    assert files_below(corpus.folder) == {"lib/a.py", "lib/deep/ü.py", "lib/c.txt", "lib/limit.py", "library/other.py"}
    assert [asked.files for asked in corpus.questions] == [("lib/a.py",)]


def test_a_tree_has_the_date_of_its_commit(place: Path) -> None:
    commit = repository(place / ".mirror" / "some+project" / "repo")
    repositories = Repositories(mirror=place / ".mirror", clones=place / "clones")
    told = git(place / ".mirror" / "some+project" / "repo", "show", "-s", "--format=%ct", commit)
    assert repositories.date(Tree(slug="some/project", commit=commit)) == int(told)


def test_what_a_snapshot_lacks_is_left_out(place: Path) -> None:
    folder = place / ".mirror" / "some+project" / "repo"
    commit = repository(folder)
    blob = git(folder, "rev-parse", f"{commit}:lib/c.txt")
    (folder / ".git" / "objects" / blob[:2] / blob[2:]).unlink()
    [corpus] = code_set(place, [{"name": "p", "root": "lib", "slug": "some/project", "commit": commit}]).corpora
    assert files_below(corpus.folder) == {"lib/a.py", "lib/deep/ü.py", "lib/limit.py"}


@pytest.fixture
def origin(place: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A folder that git takes for GitHub; there is no mirror."""
    settings = place / "gitconfig"
    settings.write_text(f'[url "file://{place}/origin/"]\n\tinsteadOf = https://github.com/\n')
    monkeypatch.setenv("GIT_CONFIG_GLOBAL", str(settings))
    monkeypatch.setenv("SATCHEL_BENCH_MIRROR", str(place / "nothing"))
    return place / "origin"


def test_a_repository_that_is_not_in_the_mirror_is_cloned_without_what_is_not_needed(
    place: Path, origin: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    commit = repository(origin / "some" / "project")
    for setting in ("uploadpack.allowFilter", "uploadpack.allowAnySHA1InWant"):
        git(origin / "some" / "project", "config", setting, "true")
    elsewhere = git(origin / "some" / "project", "rev-parse", f"{commit}:library/other.py")
    trace = place / "trace"
    monkeypatch.setenv("GIT_TRACE", str(trace))
    [corpus] = code_set(place, [{"name": "p", "root": "lib", "slug": "some/project", "commit": commit}]).corpora
    assert files_below(corpus.folder) == {"lib/a.py", "lib/deep/ü.py", "lib/c.txt", "lib/limit.py"}
    monkeypatch.delenv("GIT_TRACE")
    clone = place / "work" / "repositories" / "some+project"
    assert elsewhere not in git(clone, "cat-file", "--batch-all-objects", "--batch-check=%(objectname)")
    assert trace.read_text().count("built-in: git fetch") == 1
    assert not clone.with_name("some+project.part").exists()


def test_a_repository_that_cannot_be_had_is_missing_and_the_others_are_there(place: Path, origin: Path) -> None:
    commit = repository(origin / "some" / "project")
    questions = code_set(
        place,
        [
            {"name": "gone", "root": "", "slug": "no/where", "commit": commit},
            {"name": "older", "root": "", "slug": "some/project", "commit": "0" * 40},
            {"name": "empty", "root": "nothing", "slug": "some/project", "commit": commit},
            {"name": "bad", "root": "", "slug": "../some", "commit": commit},
            {"name": "there", "root": "lib", "slug": "some/project", "commit": commit},
        ],
    )
    assert [corpus.name for corpus in questions.corpora] == ["there"]
    assert set(questions.missing) == {"gone", "older", "empty", "bad"}
    assert "no/where" in questions.missing["gone"]
    assert "nothing" in questions.missing["empty"]
    assert files_below(place / "work" / "trees" / "code_semble").isdisjoint({"gone", "gone.part", "older.part"})


def test_a_tree_is_made_when_it_is_its_turn_once_and_again_for_another_commit(place: Path) -> None:
    folder = place / ".mirror" / "some+project" / "repo"
    commit = repository(folder)
    repos = [{"name": name, "root": "lib", "slug": "some/project", "commit": commit} for name in ("one", "two")]
    trees = place / "work" / "trees" / "code_semble"
    corpora = code_set(place, repos).corpora
    assert not trees.exists()
    next(corpora)
    assert (trees / "one").is_dir()
    assert not (trees / "two").exists()
    (trees / "one" / "mine").touch()
    next(code_set(place, repos).corpora)
    assert (trees / "one" / "mine").exists()
    repos[0]["commit"] = git(folder, "rev-parse", "HEAD")
    next(code_set(place, repos).corpora)
    assert (trees / "one" / "lib" / "a.py").read_text() == "later = True\n"
    assert not (trees / "one" / "mine").exists()


def test_the_nearest_mirror_is_used_and_the_variables_come_first(place: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    commit = repository(place / "elsewhere" / "some+project" / "repo")
    repos = [{"name": "p", "root": "lib", "slug": "some/project", "commit": commit}]
    monkeypatch.setenv("CTXEVAL_MIRROR", str(place / "elsewhere"))
    [corpus] = code_set(place, repos).corpora
    assert (corpus.folder / "lib" / "a.py").is_file()


def test_documents_are_written_and_evidence_is_asked_for(place: Path) -> None:
    data = place / "eval" / "data" / "docs_prose"
    write_lines(
        data / "dev.jsonl",
        [
            asks("docs_prose", "c", 1, source="squad", answers=["308"], evidence=["gave up 308", "in all"]),
            asks("docs_prose", "c", 2, source="nq", answers=["four", "4"]),
            asks("docs_prose", "other", 3, source="nq"),
        ],
    )
    texts = [
        {"corpus": "c", "path": "x/ä.md", "text": "gave up\r\n308\n"},
        {"corpus": "other", "path": "o.md", "text": "o"},
    ]
    (data / "corpus.jsonl.gz").write_bytes(gzip.compress("\n".join(map(json.dumps, texts)).encode()))
    questions = named("docs_prose", place)
    corpus, other = questions.corpora
    assert files_below(corpus.folder) == {"x/ä.md"}
    assert (corpus.folder / "x" / "ä.md").read_bytes() == b"gave up\r\n308\n"
    assert files_below(other.folder) == {"o.md"}
    assert [one.expected for one in corpus.questions] == [
        (Expected(phrases=("gave up 308",)), Expected(phrases=("in all",))),
        (Expected(phrases=("four", "4")),),
    ]
    assert corpus.questions[0].by_file().expected == (Expected(path="lib/a.py"),)
    assert other.questions[0].expected == (Expected(path="lib/a.py"),)
    assert [one.group for one in corpus.questions] == ["squad", "nq"]


@pytest.mark.parametrize("path", ["../out.md", "/out.md", "a/../../out.md"])
def test_nothing_is_written_outside_of_the_corpus(place: Path, path: str) -> None:
    data = place / "eval" / "data" / "docs_ir"
    write_lines(data / "dev.jsonl", [asks("docs_ir", "c")])
    line = json.dumps({"corpus": "c", "path": path, "text": "x"})
    (data / "corpus.jsonl.gz").write_bytes(gzip.compress(line.encode()))
    questions = named("docs_ir", place)
    assert list(questions.corpora) == []
    assert "outside" in questions.missing["c"]
    assert not list((place / "work").rglob("out.md"))


def test_a_fix_is_judged_by_its_lines_and_ranked_by_its_file(place: Path) -> None:
    data = place / "eval" / "data" / "code_swelite"
    write_lines(data / "repos.jsonl", [{"name": "c", "slug": "a/b", "commit": "0" * 40}])
    spans = [{"path": "lib/a.py", "start_line": 3, "end_line": 9}]
    write_lines(data / "dev.jsonl", [asks("code_swelite", "c", evidence=["return None"], gold_spans=spans)])
    [plan] = named("code_swelite", place).planned
    assert plan.questions()[0].expected == (Expected(path="lib/a.py", first=3, last=9),)
    assert plan.questions()[0].by_file().expected == (Expected(path="lib/a.py"),)


def test_the_issues_of_many_projects_are_those_marked_fast_and_judged_by_their_lines(place: Path) -> None:
    data = place / "eval" / "data" / "code_muloc"
    write_lines(data / "repos.jsonl", [{"name": name, "slug": "a/b", "commit": "0" * 40} for name in "cd"])
    spans = [{"path": "lib/a.py", "start_line": 3, "end_line": 9}]
    issues = [
        asks("code_muloc", "c", gold_spans=spans, fast=True),
        asks("code_muloc", "d", gold_spans=spans, fast=False),
    ]
    write_lines(data / "dev.jsonl", issues)
    [plan] = named("code_muloc", place).planned
    assert plan.name == "c"
    assert plan.questions()[0].expected == (Expected(path="lib/a.py", first=3, last=9),)


def test_without_an_evaluation_folder_the_sets_say_so(place: Path) -> None:
    sets = question_sets(place / "work")
    assert [one.name for one in sets] == [*(about.name for about in SETS), "docstrings"]
    for one in sets[:-1]:
        assert list(one.corpora) == []
        assert "SATCHEL_EVAL" in one.missing[one.name]


# Samples


def plain_set(groups: Mapping[str, Mapping[str, int]]) -> QuestionSet:
    """A set by corpus, group and number of questions."""

    def plan(corpus: str) -> Planned:
        asked = tuple(
            Asked(id=f"{corpus}/{group}/{number}", query="q", expected=(Expected(path="a"),), group=group)
            for group, count in groups[corpus].items()
            for number in range(count)
        )
        return Planned(name=corpus, questions=lambda: asked, folder=lambda: Path(corpus))

    planned = tuple(plan(corpus) for corpus in groups)
    return QuestionSet(name="s", title="s", kind="code", source="s", fitted=False, planned=planned)


def ids(questions: QuestionSet) -> list[str]:
    return [one.id for corpus in questions.corpora for one in corpus.questions]


def test_a_larger_sample_contains_the_smaller_one() -> None:
    whole = plain_set({"a": {"x": 30, "y": 3}, "b": {"x": 5}, "c": {"z": 50}})
    before: set[str] = set()
    for most in range(90):
        chosen = ids(sample(whole, most))
        assert len(chosen) == min(most, 88)
        assert before <= set(chosen)
        before = set(chosen)
    assert sorted(before) == sorted(ids(whole))


def test_a_sample_has_the_same_share_of_everything() -> None:
    whole = plain_set({"a": {"x": 100, "y": 10}, "b": {"x": 100}, "c": {"x": 30}})
    chosen = Counter(one.rsplit("/", 1)[0] for one in ids(sample(whole, 24)))
    assert chosen == {"a/x": 10, "a/y": 1, "b/x": 10, "c/x": 3}


def backwards(plan: Planned) -> Planned:
    return replace(plan, questions=lambda: plan.questions()[::-1])


def test_a_sample_is_the_same_whatever_the_order() -> None:
    groups = {"a": {"x": 20, "y": 7}, "b": {"x": 9}}
    whole = plain_set(groups)
    turned = replace(whole, planned=tuple(map(backwards, reversed(whole.planned))))
    for most in (1, 2, 11, 30):
        assert set(ids(sample(whole, most))) == set(ids(sample(turned, most)))
    assert set(ids(sample(plain_set(groups), 11))) != set(ids(plain_set(groups))[:11])


def test_a_corpus_outside_of_the_sample_is_not_made() -> None:
    made: list[str] = []

    def plan(name: str) -> Planned:
        def folder() -> Path:
            made.append(name)
            return Path(name)

        asked = (Asked(id=name, query="q", expected=(Expected(path="a"),)),)
        return Planned(name=name, questions=lambda: asked, folder=folder)

    planned = tuple(plan(str(number)) for number in range(10))
    whole = QuestionSet(name="s", title="s", kind="code", source="s", fitted=False, planned=planned)
    chosen = ids(sample(whole, 3))
    assert made == chosen
    assert len(made) == 3


def test_a_corpus_without_its_questions_is_missing_in_the_sample() -> None:
    def fails() -> tuple[Asked, ...]:
        raise Unavailable("no network")

    whole = plain_set({"a": {"x": 2}})
    gone = Planned(name="gone", questions=fails, folder=lambda: Path("gone"))
    both = QuestionSet(
        name="s", title="s", kind="code", source="s", fitted=False, planned=(gone, *whole.planned), missing={"b": "c"}
    )
    part = sample(both, 5)
    assert part.missing == {"b": "c", "gone": "no network"}
    assert len(ids(part)) == 2
    assert both.missing == {"b": "c"}


# Docstrings

SOURCE = '''"""Of the module: stays."""
import functools


class Reader:
    """Of the class: stays."""

    @functools.cache
    def head(self):
        """Returns what stands before the body.

        More of it.
        """

        # ünïcode before
        return "ü"; """no docstring"""

    async def wait(self): "one line"

    def nothing(self):
        """Only this."""

    def two(self): """é"""; return 2

    def third(self):
        ("in "
         "parts")  # a comment
        def inner():
            r"""Inside."""
            return """not a docstring"""
        return inner


def last():
    \'\'\'Ends the file.\'\'\';
    return 1'''


def test_docstrings_of_functions_go_and_the_rest_stays() -> None:
    stripped = strip(SOURCE)
    assert stripped is not None
    for gone in ("stands before", "More of it", "one line", "Only this", "é", "parts", "Inside", "Ends the file"):
        assert gone not in stripped.text
    for kept in ("Of the module", "Of the class", "no docstring", "not a docstring", "# ünïcode before", '"ü"'):
        assert kept in stripped.text
    spans = {one.qualified: (one.first, one.last) for one in stripped.described}
    lines = stripped.text.split("\n")
    assert lines[spans["Reader.head"][0] - 1].strip() == "@functools.cache"
    assert lines[spans["Reader.head"][0] + 1].strip() == "# ünïcode before"
    assert lines[spans["Reader.head"][1] - 1].strip().startswith('return "ü"')
    assert lines[spans["last"][0] - 1 : spans["last"][1]] == ["def last():", "    return 1"]
    assert [one.qualified for one in stripped.described if one.inner] == ["Reader.third.inner"]
    assert {one.name: one.docstring for one in stripped.described}["third"] == "in parts"
    assert {one.name: one.body_lines for one in stripped.described}["head"] == 1


def without_docstrings(tree: ast.Module) -> str:
    for node in ast.walk(tree):
        if (
            isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef)
            and ast.get_docstring(node, clean=False) is not None
        ):
            node.body[:1] = []
        if isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef):
            node.body = [one for one in node.body if not isinstance(one, ast.Pass)]
    return ast.dump(tree)


@pytest.mark.parametrize(
    "module",
    [
        "ast",
        "pathlib",
        *(pytest.param(name, marks=pytest.mark.slow) for name in ("inspect", "tarfile", "turtle", "typing")),
    ],
)
def test_real_modules_stay_what_they_are(module: str) -> None:
    found = importlib.util.find_spec(module)
    assert found is not None
    assert found.origin is not None
    source = Path(found.origin).read_text(encoding="utf-8")
    stripped = strip(source.replace("\n", "\r\n"))
    assert stripped is not None
    assert len(stripped.described) > 10
    assert without_docstrings(ast.parse(stripped.text)) == without_docstrings(ast.parse(source))
    again = strip(stripped.text)
    assert again is not None
    assert again.described == ()
    assert again.text == stripped.text


@pytest.mark.parametrize("source", ["def f(:", "print 'two'", "x = '\0'"])
def test_what_is_no_python_is_nothing(source: str) -> None:
    assert strip(source) is None


@pytest.mark.parametrize(
    ("docstring", "sentence"),
    [
        ("Reads the head. Then more.", "Reads the head"),
        ("Reads the head\nof a file.\n\nMore.", "Reads the head of a file"),
        ("Sorts things, e.g. Names, by :class:`~a.Key`. More", "Sorts things, e.g. Names, by a.Key"),
        ("Uses ``x`` and *y* and `z`", "Uses x and y and z"),
        ("Takes version 1.2 of it. Done.", "Takes version 1.2 of it"),
        (":param x: the thing", ""),
        ("Title\n=====\nText", ""),
        ("  ", ""),
    ],
)
def test_first_sentences(docstring: str, sentence: str) -> None:
    assert first_sentence(docstring) == sentence


@pytest.mark.parametrize(
    ("sentence", "name", "wanted"),
    [
        ("Return the longest leading part that all of the given strings share", "common_prefix", True),
        ("Return the common prefix that all of the given strings share", "common_prefix", False),
        ("Return the commonprefix that all of the given strings share", "common_prefix", False),
        ("Return the common-prefix that all of the given strings share", "CommonPrefix", False),
        ("Saves all of the host keys back to a file", "save", False),
        ("Return the longest leading part", "common_prefix", False),
        ("Return " + "the very " * 12 + "long part", "f_x", False),
        ("Return the longest leading part that all strings share:", "f_x", False),
        ("Gibt den längsten Anfang zurück, den alle Texte gemeinsam haben", "f_x", False),
        ("Return a_b and c_d of the longest leading part of strings", "f_x", False),
        ("Deprecated since the last release, use the other one for this", "f_x", False),
        ("Return the longest leading part that all of the given strings share", "_", False),
    ],
)
def test_which_sentences_can_be_asked(sentence: str, name: str, wanted: bool) -> None:
    assert can_be_asked(sentence, name) is wanted


BODY = "    a = 1\n    b = 2\n    c = 3\n    d = 4\n    return a\n"
MODULES = {
    "pkg/__init__.py": "",
    "pkg/good.py": (
        f'def shared_start(x):\n    """Return the longest leading part that all strings have. More."""\n{BODY}'
        f'def short(x):\n    """Tell whether a text has fewer letters than are wanted here."""\n    return x\n'
    ),
    "pkg/leaks.py": (
        f'def told(x):\n    """Find the first of all the places where water comes out."""\n{BODY}'
        "# find the first of all the\n# places where water comes out\n"
    ),
    "pkg/twice.py": (
        f'def one(x):\n    """Send every letter to the people who asked for them."""\n{BODY}'
        f'def two(x):\n    """Send every letter to the people who asked for them!"""\n{BODY}'
    ),
    "pkg/taken.py": f'def over(x):\n    """Count the grains of sand that lie on a beach."""\n{BODY}',
    "pkg/tests/test_it.py": f'def helper(x):\n    """Make all the things that the cases of today need."""\n{BODY}',
    "pkg/old.py": "print 'two'\n",
    "pkg/notes.md": "Return the longest leading part that all strings have.",
}


def wheel_of(folder: Path, name: str, modules: Mapping[str, str]) -> Package:
    folder.mkdir(exist_ok=True)
    path = folder / f"{name}-1.0-py3-none-any.whl"
    about = f"{name}-1.0.dist-info"
    with zipfile.ZipFile(path, "w") as archive:
        for inner, text in modules.items():
            archive.writestr(inner, text)
        archive.writestr(f"{about}/METADATA", f"Metadata-Version: 2.1\nName: {name}\nVersion: 1.0\n")
        archive.writestr(f"{about}/WHEEL", "Wheel-Version: 1.0\nRoot-Is-Purelib: true\nTag: py3-none-any\n")
        archive.writestr(f"{about}/RECORD", "")
    return Package(name=name, version="1.0", sha256=hashlib.sha256(path.read_bytes()).hexdigest())


@pytest.fixture
def index(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A folder that is all pip knows."""
    monkeypatch.setenv("PIP_CONFIG_FILE", os.devnull)
    monkeypatch.setenv("PIP_NO_INDEX", "1")
    monkeypatch.setenv("PIP_FIND_LINKS", str(tmp_path / "index"))
    monkeypatch.delenv("PIP_EXTRA_INDEX_URL", raising=False)
    return tmp_path / "index"


def test_docstrings_are_asked_of_the_code_without_them(index: Path, tmp_path: Path) -> None:
    made = wheel_of(index, "tiny", MODULES)
    package = Package(name=made.name, version=made.version, sha256=made.sha256, copied=("pkg/taken.py",))
    questions = docstrings.question_set(tmp_path / "work", (package,))
    assert not (tmp_path / "work").exists()
    [corpus] = questions.corpora
    assert files_below(corpus.folder) == {
        "pkg/__init__.py",
        "pkg/good.py",
        "pkg/leaks.py",
        "pkg/twice.py",
        "pkg/taken.py",
    }
    [asked] = corpus.questions
    assert asked.query == "Return the longest leading part that all strings have"
    assert asked.expected == (Expected(path="pkg/good.py", first=1, last=6),)
    assert asked.by_file().expected == (Expected(path="pkg/good.py"),)
    everything = squeezed("".join(path.read_text() for path in corpus.folder.rglob("*.py")))
    assert squeezed(asked.query) not in everything
    assert (questions.fitted, questions.missing) == (False, {})
    (index / "tiny-1.0-py3-none-any.whl").unlink()
    assert [one.questions for one in docstrings.question_set(tmp_path / "work", (package,)).corpora] == [(asked,)]


def test_a_wheel_with_another_hash_is_missing(index: Path, tmp_path: Path) -> None:
    good = wheel_of(index, "tiny", MODULES)
    other = wheel_of(index, "other", MODULES)
    forged = Package(name="other", version="1.0", sha256="0" * 64)
    absent = Package(name="absent", version="1.0", sha256=good.sha256)
    mute = wheel_of(index, "mute", {"mute.py": "x = 1\n"})
    questions = docstrings.question_set(tmp_path / "work", (forged, absent, mute, good))
    assert [corpus.name for corpus in questions.corpora] == ["tiny"]
    assert "hash" in questions.missing["other"].lower()
    assert "absent" in questions.missing["absent"]
    assert "no docstring" in questions.missing["mute"]
    assert other.sha256 != forged.sha256
    assert not (tmp_path / "work" / "trees" / "docstrings" / "other").exists()


def test_a_stored_wheel_that_was_changed_is_not_used(index: Path, tmp_path: Path) -> None:
    package = wheel_of(index, "tiny", MODULES)
    stored = tmp_path / "work" / "downloads" / "tiny-1.0" / "tiny-1.0-py3-none-any.whl"
    stored.parent.mkdir(parents=True)
    stored.write_bytes(b"something else")
    [corpus] = docstrings.question_set(tmp_path / "work", (package,)).corpora
    assert len(corpus.questions) == 2
    assert hashlib.sha256(stored.read_bytes()).hexdigest() == package.sha256


def test_at_most_three_of_a_file_and_twenty_of_a_package() -> None:
    def sentence(seed: str) -> str:
        letters = hashlib.sha256(seed.encode()).hexdigest().translate(str.maketrans("0123456789", "ghijklmnop"))
        return "Bring " + " ".join(letters[at : at + 6] for at in range(0, 54, 6))

    def source(path: str) -> str:
        return "".join(f'def q{i}(x):\n    """{sentence(path + str(i))}."""\n{BODY}' for i in range(5))

    stripped = {path: strip(source(path)) for path in "abcdefghi"}
    chosen = docstrings.choose({path: one for path, one in stripped.items() if one is not None})
    assert len(chosen) == 20
    assert max(Counter(one.path for one in chosen).values()) == 3


def test_the_packages_are_held_out(monkeypatch: pytest.MonkeyPatch) -> None:
    """None was read for the embedding model, and none has the name of a project that the ranker was fitted on."""
    folder = ROOT / "scripts" / "embedder"
    read = {line.split("\t")[1].lower() for line in (folder / "packages.tsv").read_text().splitlines()}
    monkeypatch.syspath_prepend(str(folder))
    harvest = importlib.import_module("harvest")
    monkeypatch.delitem(sys.modules, "harvest")
    for package in PACKAGES:
        assert package.name not in read
        assert not {one for one in read if package.name in one.replace("_", "-").split("-")}
        assert not harvest.excluded(package.name)
    assert harvest.excluded("django")
    assert "httpx" in read
    assert len({package.name for package in PACKAGES}) == len(PACKAGES) == 12


# A user's own


def own_sets(monkeypatch: pytest.MonkeyPatch, told: str) -> list[QuestionSet]:
    monkeypatch.setenv("SATCHEL_BENCH_DATASET", told)
    return [one for one in question_sets(Path("unused")) if one.name == "own"]


def test_a_users_own_questions(place: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    (place / "mine").mkdir()
    (place / "mine" / "a.md").write_text("text")
    dataset = place / "q.jsonl"
    write_lines(dataset, [{"query": "what", "lines": ["a.md:1-2"], "phrases": ["text"], "group": "g"}])
    [own] = own_sets(monkeypatch, f"{dataset}:{place / 'mine'}")
    [corpus] = own.corpora
    assert (own.kind, own.fitted, corpus.folder) == ("prose", False, place / "mine")
    [asked] = corpus.questions
    assert asked.expected == (Expected(path="a.md", first=1, last=2), Expected(phrases=("text",)))
    assert (asked.files, asked.group) == (("a.md",), "g")
    (place / "mine" / "a.py").touch()
    (place / "mine" / "b.py").touch()
    assert own_sets(monkeypatch, f"{dataset}:{place / 'mine'}")[0].kind == "code"


def test_a_users_own_questions_that_are_wrong_are_told(place: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    dataset = place / "q.jsonl"
    write_lines(dataset, [{"query": "what", "files": ["a"], "user": "ann"}])
    for told in (str(dataset), f"{dataset}:{place / 'nowhere'}", f"{place / 'none.jsonl'}:{place}"):
        with pytest.raises(InvalidInput, match=r"questions\.jsonl:folder"):
            own_sets(monkeypatch, told)
    with pytest.raises(InvalidInput, match="know no users"):
        own_sets(monkeypatch, f"{dataset}:{place}")
