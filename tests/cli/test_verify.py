"""`satchel verify` as a user runs it, on what the other commands print."""

from __future__ import annotations

import io
import json
import os
import subprocess
import sys
from collections.abc import Mapping
from contextlib import chdir, redirect_stderr, redirect_stdout
from pathlib import Path
from typing import Any, NamedTuple

import pytest

from satchel.cli.main import main
from satchel.errors import InvalidOption
from satchel.integrations.frameworks.json_context import sources_from_json

HITS = [
    {
        "content": 'Retries wait twice as long each time,\nup to a <minute> & "more".',
        "file_path": "retry.md",
        "relevance": 0.9,
    },
    {"content": "It is limited to 5 attempts.", "file_path": "limits.md", "relevance": 0.8},
]


class Done(NamedTuple):
    returncode: int
    stdout: str
    stderr: str


def satchel(*arguments: str | Path, folder: Path, env: Mapping[str, str] | None = None) -> Done:
    """The command line without a process of its own, which takes longer than all that is tested here."""
    out, err = io.TextIOWrapper(io.BytesIO(), encoding="utf-8"), io.StringIO()
    argv, environ, code = sys.argv, dict(os.environ), 0
    sys.argv = ["satchel", *map(str, arguments)]
    os.environ.update(env or {"SATCHEL_INDEX_DIR": str(folder.parent / "index")})
    try:
        with chdir(folder), redirect_stdout(out), redirect_stderr(err):
            main()
    except SystemExit as done:
        code = int(done.code or 0)
    finally:
        sys.argv = argv
        os.environ.clear()
        os.environ.update(environ)
    out.flush()
    return Done(code, out.buffer.getvalue().decode(), err.getvalue())


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    root = tmp_path / "work"
    root.mkdir()
    (root / "hits.json").write_text(json.dumps(HITS))
    (root / "retry.md").write_text("# Retrying\n\nRetries wait twice as long each time, up to a minute.\n")
    (root / "answer.md").write_text("They wait.\n")
    (root / "ctx.json").write_text(json.dumps({"sources": [{"number": 1, "text": "They wait."}]}))
    return root


def verified(folder: Path, answer: str, context: Any, *flags: str) -> Any:
    (folder / "answer.md").write_text(answer)
    (folder / "ctx.json").write_text(context if isinstance(context, str) else json.dumps(context))
    return satchel("verify", "answer.md", "--context", "ctx.json", *flags, folder=folder)


CONTEXT = {
    "sources": [
        {"number": 1, "name": "retry.md", "file": "retry.md", "text": "Retries wait twice as long each time."},
        {"number": 2, "name": "a.pdf", "file": "a.pdf", "page": 3, "text": "It is limited to 5 attempts."},
    ]
}


def test_a_good_answer_is_ok(folder: Path) -> None:
    done = verified(folder, 'They "wait twice as long" [1], five times at most [2].\n', CONTEXT)
    assert (done.returncode, done.stderr) == (0, "")
    assert done.stdout == "OK: 2 of 2 sources cited, 1 of 1 statement supported, 0 errors, 0 warnings\n"


def test_what_is_wrong_is_told_with_its_place(folder: Path) -> None:
    answer = (
        "# How it waits\n\n"
        "It waits [7]. It is\n"
        '"limited to 5 attempts" [1], as [Document 2: a.pdf, Page 4] says.\n'
        "It never sleeps at all, which \x1b[31mnobody knows.\n"
    )
    done = verified(folder, answer, CONTEXT)
    assert done.returncode == 1
    assert done.stdout.splitlines() == [
        "answer.md:3:10: unknown-number: [7]: no source has the number 7 (sources are 1 to 2)",
        'answer.md:4:1: quote-not-in-source: "limited to 5 attempts" is not in [1], but is in [2]',
        "answer.md:4:33: other-place: [Document 2: a.pdf, Page 4]: [2] is a.pdf, page 3",
        "answer.md:5:1: warning: cites no source: It never sleeps at all, which ␛[31mnobody knows.",
        "answer.md:5:1: warning: not-in-sources: It never sleeps at all, which ␛[31mnobody knows.: 31 is not there",
        "NOT OK: 2 of 2 sources cited, 1 of 2 statements supported, 3 errors, 2 warnings",
    ]


def test_warnings_fail_only_when_it_is_strict(folder: Path) -> None:
    answer = 'It waits for long. He wrote "all that glitters is not gold" [1]?\n'.replace(" [1]?", ".")
    done = verified(folder, answer, CONTEXT)
    assert done.returncode == 0
    assert 'warning: quote-not-in-any-source: "all that glitters is not gold" is not in any source' in done.stdout
    assert verified(folder, answer, CONTEXT, "--strict").returncode == 1
    assert verified(folder, "It waits for long [1].", CONTEXT, "--strict").returncode == 0


def test_a_wrong_number_with_a_right_citation_is_a_warning(folder: Path) -> None:
    done = verified(folder, "It is limited to 50 attempts [2].\n", CONTEXT)
    assert done.returncode == 0
    assert done.stdout.splitlines() == [
        "answer.md:1:1: warning: contradicted: It is limited to 50 attempts [2].: 50: the source says 5 "
        '([2]: "It is limited to 5 attempts.")',
        "OK: 1 of 2 sources cited, 0 of 1 statement supported, 0 errors, 1 warning",
    ]
    assert verified(folder, "It is limited to 50 attempts [2].\n", CONTEXT, "--strict").returncode == 1


def test_the_report_as_json(folder: Path) -> None:
    done = verified(folder, "It waits [1].\nIt never \x9b31m sleeps. So [9].", CONTEXT, "--json")
    told = json.loads(done.stdout)
    assert done.returncode == 1
    assert (told["passed"], told["ok"], told["cited"], told["uncited"]) == (False, False, [1], [2])
    assert told["findings"] == [
        {
            "problem": "unknown-number",
            "text": "[9]",
            "position": 39,
            "numbers": [9],
            "found_in": [],
            "line": 2,
            "column": 26,
        }
    ]
    assert told["uncited_sentences"][0]["line"] == 2
    assert "\x9b" not in done.stdout


def test_an_answer_comes_from_stdin_too(folder: Path) -> None:
    command = [sys.executable, "-m", "satchel", "verify", "-", "-c", "ctx.json"]
    done = subprocess.run(command, input=b"\xef\xbb\xbfSo [3]. \xff", capture_output=True, cwd=folder, check=False)
    assert done.returncode == 1
    assert done.stdout.startswith(b"stdin:1:4: unknown-number")


@pytest.mark.parametrize("form", ["markdown", "plain", "xml", "json"])
def test_what_assemble_prints_is_a_context_in_every_format(folder: Path, form: str) -> None:
    made = satchel("assemble", "hits.json", "--json", "-q", "-f", form, folder=folder)
    good = '"up to a <minute> & more" [1], "limited to 5 attempts" [2].'
    assert verified(folder, good, made.stdout).returncode == 0
    done = verified(folder, good.replace("[1]", "[2]").replace("5", "6"), made.stdout)
    assert done.stdout.count("quote-not-in-source") == 2


def test_what_build_prints_is_a_context_with_and_without_a_workspace(folder: Path) -> None:
    plain = satchel("build", "how long do retries wait", "--json", "-q", folder=folder)
    payload = satchel("build", "how long do retries wait", "--json", "-q", "--type", "search", folder=folder)
    for made in (plain, payload):
        numbers = {
            source.number for source in sources_from_json(made.stdout.encode()) if "twice as long" in source.text
        }
        assert numbers
        good = "".join(f'They "wait twice as long each time" [{number}].\n' for number in numbers)
        assert verified(folder, good, made.stdout).returncode == 0
        assert verified(folder, 'They "wait thrice as long" [1].', made.stdout).returncode == 1
    assert json.loads(plain.stdout)["sections"] == []
    assert json.loads(payload.stdout)["sections"]


def test_a_research_context_as_json_is_one_too(folder: Path) -> None:
    texts = {3: "The bank failed.", 4: "It was saved."}
    under_s3 = [{"filename": "a.pdf", "page": page, "markdown_content": text} for page, text in texts.items()]
    numbered = [
        {"number": number, "path": "reports/a.pdf", "page": page, "text": text}
        for number, (page, text) in enumerate(texts.items(), start=1)
    ]
    for sources in (under_s3, numbered):
        context = {"kind": "research", "sources": sources}
        assert verified(folder, '"It was saved" [Document 2: a.pdf, Page 4].', context).returncode == 0
        assert verified(folder, '"It was saved" [1].', context).returncode == 1
        assert verified(folder, "So [Document 2: a.pdf, Page 5].", context).returncode == 1


@pytest.mark.parametrize(
    ("context", "said"),
    [
        ("", "is not JSON"),
        ("{", "is not JSON"),
        ("[" * 100_000, "is not JSON"),
        ("\x00\x1b[31m", "is not JSON"),
        ("7", "not a context"),
        ("[]", "not a context"),
        ("{}", "not a context"),
        ('{"sources": 7}', "not a context"),
        ('{"sources": [7]}', r"sources\[0\] is not an object"),
        ('{"sources": [{"number": 0.5, "text": "a"}]}', r"sources\[0\] has no number of 1 or more"),
        ('{"sources": [{"number": -1, "text": "a"}]}', r"sources\[0\] has no number of 1 or more"),
        ('{"sources": [{"number": 1}]}', "has no shown text"),
        ('{"sources": [{"number": 1, "text": 7}]}', r"sources\[0\] has no shown text"),
        ('{"sources": [{"number": true, "text": "a"}]}', r"sources\[0\] has no number of 1 or more"),
        ('{"sources": [{"filename": "a"}], "formatted_text": "b"}', "has no shown text"),
        ('{"context": {"sources": [7]}}', r"sources\[0\] is not an object"),
        ('{"context": {}}', "not a context"),
    ],
)
def test_what_is_not_a_context_is_an_error_that_says_so(context: str, said: str) -> None:
    with pytest.raises(InvalidOption, match=said) as caught:
        sources_from_json(context.encode(), "ctx.json")
    assert "\x1b" not in str(caught.value)


def test_wrong_usage_is_told_apart_from_a_wrong_answer(folder: Path) -> None:
    done = verified(folder, "So [1].", "<html>")
    assert done.returncode == 2
    assert "context='ctx.json': is not JSON" in done.stderr
    for arguments in (("answer.md",), ("nowhere.md", "-c", "ctx.json"), ("answer.md", "-c", "nowhere.json")):
        done = satchel("verify", *arguments, folder=folder)
        assert done.returncode == 2
        assert "Traceback" not in done.stderr
