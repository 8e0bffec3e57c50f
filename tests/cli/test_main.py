"""The command line as a user runs it: real processes."""

from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
from pathlib import Path
from typing import Any

import click
import pytest

from satchel import errors
from satchel.cli.exits import EXIT_CODES, Exit
from satchel.cli.main import cli
from tests.support import lawbook
from tests.support.oracle import true_count
from tests.support.places import ROOT
from tests.support.waiting import HANG_SECONDS, killed_at_the_end

HITS = [
    {
        "content": "def retry(n):\n    return 2**n",
        "file": "src/retry.py",
        "startLine": 10,
        "endLine": 11,
        "score": 0.92,
    },
    {"content": "Retries back off exponentially.", "file_path": "docs/retry.md", "relevance": 0.7},
    {"content": "unrelated", "file": "a.txt", "score": 0.2},
]


def satchel(*arguments: str | Path, stdin: bytes | None = None) -> subprocess.CompletedProcess[bytes]:
    command = [sys.executable, "-m", "satchel", *map(str, arguments)]
    return subprocess.run(
        command, input=stdin if stdin is not None else b"", capture_output=True, timeout=HANG_SECONDS, check=False
    )


@pytest.fixture
def hits(tmp_path: Path) -> Path:
    path = tmp_path / "hits.json"
    path.write_text(json.dumps(HITS))
    return path


def test_assemble_prints_the_context_and_nothing_else_on_stdout(hits: Path) -> None:
    done = satchel("assemble", hits, "--token-budget", "4000", "--format", "xml")
    assert done.returncode == 0
    root = lawbook.xml_root(done.stdout.decode())
    assert [element.get("id") for element in root] == ["1", "2"]
    assert b"2 of 3 hits" in done.stderr
    assert b"left out: 1 below-min-relevance" in done.stderr


def test_stdin_works_and_quiet_is_quiet(hits: Path) -> None:
    done = satchel("assemble", "-q", stdin=hits.read_bytes())
    assert done.stderr == b""
    assert lawbook.headings(done.stdout.decode()) == ["[1] src/retry.py", "[2] docs/retry.md"]
    assert satchel("assemble", "-", "-q", stdin=hits.read_bytes()).stdout == done.stdout


def test_the_budget_is_counted_exactly_by_default(tmp_path: Path) -> None:
    path = tmp_path / "hits.json"
    path.write_text(json.dumps([{"content": "한국어 " * 40, "file": f"{i}.txt"} for i in range(9)]), encoding="utf-8")
    done = satchel("assemble", path, "-b", "300", "-q")
    assert 150 < true_count(done.stdout.decode().rstrip("\n")) <= 300


def test_what_is_written_is_the_context_to_the_byte(hits: Path, tmp_path: Path) -> None:
    for budget in range(30, 60):
        file = tmp_path / "context.md"
        done = satchel("assemble", hits, "-b", str(budget), "-q")
        if done.returncode == 0:
            assert satchel("assemble", hits, "-b", str(budget), "-q", "-o", file).returncode == 0
            assert file.read_bytes() == done.stdout
            assert true_count(done.stdout.decode()) <= budget
            break
    told = json.loads(satchel("assemble", hits, "-b", str(budget), "-q", "--json").stdout)
    assert told["text"].encode() == done.stdout, "a line end more can be a token more"


def test_json_has_the_text_the_sources_and_the_ledger(hits: Path) -> None:
    told = json.loads(satchel("assemble", hits, "--json", "--query", "retry").stdout)
    assert told["text"].startswith("### [1]")
    assert [source["number"] for source in told["sources"]] == [1, 2]
    assert [entry["fate"] for entry in told["ledger"]] == ["kept", "kept", "dropped"]
    assert told["tokens"] <= told["budget"] == 4000


def test_json_is_printed_even_when_nothing_fits(hits: Path) -> None:
    done = satchel("assemble", hits, "-b", "5", "--json")
    assert done.returncode == Exit.OVER_BUDGET
    told = json.loads(done.stdout)
    assert told["text"] == ""
    assert {entry["reason"] for entry in told["ledger"]} == {"over-budget", "below-min-relevance"}


def test_stop_says_what_stood_in_the_way() -> None:
    big = {"content": "word " * 500, "score": 0.9}
    done = satchel("assemble", "-b", "100", "--overflow", "stop", stdin=json.dumps([big, {"content": "x"}]).encode())
    assert done.returncode == 0
    done = satchel(
        "assemble", "-b", "100", "--overflow", "stop", stdin=json.dumps([big, {"content": "x", "score": 0.8}]).encode()
    )
    assert done.returncode == Exit.OVER_BUDGET
    assert b"use --overflow skip or truncate" in done.stderr


def test_explain_tells_of_every_hit_on_stderr(hits: Path) -> None:
    done = satchel("assemble", hits, "--explain")
    assert b"below-min-relevance" in done.stderr
    assert b"src/retry.py:10-11" in done.stderr


def test_provider_content_is_json(hits: Path) -> None:
    blocks = json.loads(satchel("assemble", hits, "--provider", "anthropic").stdout)
    assert {block["type"] for block in blocks} == {"search_result"}


def test_every_flag_reaches_the_options(hits: Path) -> None:
    flags: list[str | Path] = [
        "-f", "plain", "--max-chunks", "5", "--min-relevance", "0", "--model", "gpt-4", "--group-by", "none",
        "--order", "relevance", "--overflow", "stop", "--rerank", "none", "--exclude", "*.md", "--header", "HEAD",
        "--footer", "FOOT", "--no-line-numbers", "--no-citations", "--sources", "--compact", "--lang", "python",
        "--count", "words",
    ]  # fmt: skip
    done = satchel("assemble", hits, *flags)
    assert done.stdout.decode() == (
        "HEAD\n\n--- src/retry.py ---\ndef retry(n):\n    return 2**n\n\nSources:\n  - src/retry.py:10\n\nFOOT"
    )
    assert b"estimated by words" in done.stderr
    assert "Relevance: 92%" in satchel("assemble", hits, "--scores", "--include", "src/**").stdout.decode()
    assert satchel("assemble", hits, "--no-headers", "--no-citations", "-q").stdout.startswith(b"```")


def test_output_goes_to_a_file_whole_or_not_at_all(hits: Path, tmp_path: Path) -> None:
    target = tmp_path / "context.md"
    done = satchel("assemble", hits, "-o", target)
    assert done.stdout == b""
    assert target.read_text().startswith("### [1]")
    assert sorted(path.name for path in tmp_path.iterdir()) == ["context.md", "hits.json"]
    missing = tmp_path / "no" / "context.md"
    failed = satchel("assemble", hits, "-o", missing)
    assert failed.returncode == 1
    assert failed.stderr.decode() == f"satchel: {missing}: No such file or directory\n"


def test_output_keeps_links_rights_and_pipes(hits: Path, tmp_path: Path) -> None:
    real, link, pipe = tmp_path / "real.md", tmp_path / "link.md", tmp_path / "pipe"
    real.write_text("old")
    real.chmod(0o600)
    link.symlink_to(real)
    satchel("assemble", hits, "-o", link)
    assert link.is_symlink()
    assert real.read_text().startswith("### [1]")
    assert real.stat().st_mode & 0o777 == 0o600
    os.mkfifo(pipe)
    reader = subprocess.Popen(["cat", str(pipe)], stdout=subprocess.PIPE)
    satchel("assemble", hits, "-o", pipe)
    assert reader.communicate(timeout=HANG_SECONDS)[0].startswith(b"### [1]")
    assert satchel("assemble", hits, "-o", "").returncode in (1, 2)


def test_scores_of_pairs_and_in_metadata_are_read_as_told() -> None:
    pairs = b'[[{"page_content": "near", "metadata": {"source": "a"}}, 0.1], [{"page_content": "far"}, 0.9]]'
    told = json.loads(satchel("assemble", "--scores-are", "distance", "--json", stdin=pairs).stdout)
    assert [round(entry["relevance"], 3) for entry in told["ledger"]] == [0.909, 0.526]
    inside = b'[{"text": "x", "metadata": {"score": 3}}]'
    told = json.loads(satchel("assemble", "--scores-are", "distance", "--json", stdin=inside).stdout)
    assert told["ledger"][0]["relevance"] == 0.25


def test_scores_of_other_kinds_can_be_told(tmp_path: Path) -> None:
    path = tmp_path / "hits.json"
    path.write_text(json.dumps([{"content": "x", "score": 12.5}, {"content": "y", "score": 3.0}]))
    assert satchel("assemble", path).returncode == 1
    ranked = json.loads(satchel("assemble", path, "--scores-are", "rank", "--json").stdout)
    assert [source["relevance"] for source in ranked["sources"]] == [1.0, 0.5]
    cosines = json.loads(
        satchel("assemble", "--scores-are", "cosine", "--json", stdin=b'[{"text": "x", "score": -0.2}]').stdout
    )
    assert cosines["ledger"][0]["relevance"] == 0.4
    distances = json.loads(
        satchel("assemble", path, "--scores-are", "distance", "--min-relevance", "0", "--json").stdout
    )
    assert [source["relevance"] for source in distances["sources"]] == [0.25, 1 / 13.5]


@pytest.mark.parametrize(
    ("stdin", "arguments", "code", "says"),
    [
        (b"[]", [], Exit.NOTHING_FOUND, b"the input contains no hits"),
        (b'[{"content": "x", "score": 0.1}]', [], Exit.NOTHING_FOUND, b"below min_relevance=0.5 (the best has 0.10)"),
        (b'[{"content": "x"}]', ["-b", "3"], Exit.OVER_BUDGET, b"no hit fits the budget; the smallest has 13 tokens"),
        (
            b'[{"content": "x y z "}]',
            ["-b", "3", "--overflow", "truncate"],
            Exit.OVER_BUDGET,
            b"raise --token-budget\n",
        ),
        (b'[{"content": "x"}]', ["-b", "3", "--header", "a b c d e f"], Exit.OVER_BUDGET, b"budget-cannot-be-met"),
        (b'[{"content": "x"}]', ["--header", "a b c", "-b", "3"], Exit.OVER_BUDGET, b"raise the budget"),
        (b"{bad", [], Exit.ERROR, b"not JSON"),
        (b"[{}]", [], Exit.ERROR, b"hits[0].content=None: is missing"),
        (b'[{"content": "x", "score": 7}]', [], Exit.ERROR, b"hits[0].relevance=7"),
        (b"[]", ["--model", "no-such-model"], Exit.NOTHING_FOUND, b""),
        (b'[{"content": "x"}]', ["--model", "no-such-model"], Exit.USAGE, b"unknown-tokenizer"),
        (b"[]", ["--format", "yaml"], Exit.USAGE, b"'yaml' is not one of"),
        (b'[{"content": "x"}]', ["--model", "gpt4o"], Exit.USAGE, b"did you mean gpt-4o"),
        (b"[]", ["-b", "0"], Exit.USAGE, b"x>=1"),
        (b"[]", ["--no-such-flag"], Exit.USAGE, b"No such option"),
    ],
)
def test_exit_codes(stdin: bytes, arguments: list[str], code: int, says: bytes) -> None:
    done = satchel("assemble", *arguments, stdin=stdin)
    assert done.returncode == code
    assert says in done.stderr
    assert done.stdout == b""
    assert b"Traceback" not in done.stderr


def test_a_missing_file_is_an_error_that_names_it() -> None:
    done = satchel("assemble", "/no/such/hits.json")
    assert done.returncode == 1
    assert b"/no/such/hits.json: No such file" in done.stderr


def test_bad_hits_can_be_skipped() -> None:
    done = satchel("assemble", "--skip-invalid", stdin=b'[{"content": "good"}, {"score": 1}, 7]')
    assert done.returncode == 0
    assert b"good" in done.stdout
    assert done.stderr.count(b"skipped hits[") == 2


def test_hostile_hits_reach_the_terminal_harmless() -> None:
    raw = json.dumps([{"content": "\x1b]0;x\x07 \u202e", "file": "\x1b[2J\n# x"}]).encode()
    done = satchel("assemble", "--explain", stdin=raw.replace(b"x\\u0007", b"x\\u0007\xff"))
    assert done.returncode == 0
    for stream in (done.stdout, done.stderr):
        assert b"\x1b" not in stream
    assert "⟦0xFF⟧".encode() in done.stdout


class TestTokens:
    @pytest.fixture
    def folder(self, tmp_path: Path) -> Path:
        root = tmp_path / "project"
        (root / "src" / "deep").mkdir(parents=True)
        (root / ".git").mkdir()
        (root / "node_modules").mkdir()
        (root / "env").mkdir()
        (root / "env" / "pyvenv.cfg").write_text("home = x")
        for name, text in {
            "src/a.py": "def a():\n    return 1\n",
            "src/deep/b.py": "b = 2\n" * 10,
            "README.md": "# Project\n",
            ".git/config": "[core]\n",
            "node_modules/x.js": "x\n",
            "env/y.py": "y\n",
            "secret.log": "x\n",
            ".gitignore": "*.log\n",
        }.items():
            (root / name).write_text(text)
        (root / "blob.bin").write_bytes(b"\x00\x01")
        (root / "link").symlink_to("/etc")
        os.mkfifo(root / "pipe")
        return root

    def test_a_tree_of_counts(self, folder: Path) -> None:
        done = satchel("tokens", folder)
        assert done.returncode == 0
        lines = done.stdout.decode().split("\n")
        names = ("src/a.py", "src/deep/b.py", "README.md", ".gitignore")
        a, b, readme, ignore = (true_count((folder / name).read_text()) for name in names)
        assert lines[0].split() == [str(a + b + readme + ignore), f"{folder}/"]
        assert [line.split()[0] for line in lines[1:7]] == [str(n) for n in (a + b, b, b, a, readme, ignore)]
        assert b"1 binary" in done.stderr
        assert b"1 not-a-regular-file" in done.stderr
        assert b"1 ignored" in done.stderr

    def test_json(self, folder: Path) -> None:
        told = json.loads(satchel("tokens", folder, folder / "README.md", "--json", "--model", "claude-opus-5").stdout)
        assert told["margin_percent"] == 60
        assert told["files"] == 5
        assert [child["name"] for child in told["children"]] == [str(folder), str(folder / "README.md")]
        assert {skip["reason"] for skip in told["skipped"]} == {
            "binary", "not-a-regular-file", "link", "not-source", "virtual-environment", "ignored"
        }  # fmt: skip

    def test_odd_names_and_depths(self, tmp_path: Path) -> None:
        deep = tmp_path
        for _ in range(150):
            deep = deep / "d"
        deep.mkdir(parents=True)
        (deep / "f.txt").write_text("deep")
        Path(os.fsdecode(os.fsencode(tmp_path) + b"/caf\xe9.txt")).write_text("odd")
        told = json.loads(satchel("tokens", tmp_path, "--json").stdout)
        assert told["files"] == 2
        assert "caf⟦0xE9⟧.txt" in [child["name"] for child in told["children"][0]["children"]]

    def test_what_is_named_is_counted(self, tmp_path: Path) -> None:
        (tmp_path / "made.py").write_text("# @generated\nx = 1\n")
        assert satchel("tokens", tmp_path / "made.py").returncode == 0
        assert satchel("tokens", "/dev/stdin", stdin=b"hello world").stdout == b"2  /dev/stdin\n"

    def test_two_files_of_one_name_are_two_rows(self, tmp_path: Path) -> None:
        for folder in ("a", "b"):
            (tmp_path / folder).mkdir()
            (tmp_path / folder / "f.py").write_text("x = 1\n")
        rows = satchel("tokens", tmp_path / "a/f.py", tmp_path / "b/f.py").stdout.splitlines()
        assert len(rows) == 3

    def test_stdin(self) -> None:
        assert satchel("tokens", stdin=b"hello world").stdout == b"2  stdin\n"
        assert satchel("tokens", "-", stdin=b"").stdout == b"0  stdin\n"

    def test_depth(self, folder: Path) -> None:
        assert len(satchel("tokens", folder, "--depth", "0", "-q").stdout.splitlines()) == 1

    def test_what_is_not_there_is_an_error(self) -> None:
        done = satchel("tokens", "/no/such/place")
        assert done.returncode == 1
        assert b"/no/such/place" in done.stderr

    def test_nothing_to_count_is_said(self, tmp_path: Path) -> None:
        assert satchel("tokens", tmp_path).returncode == Exit.NOTHING_FOUND

    def test_the_models_are_listed(self) -> None:
        lines = satchel("tokens", "--list-models").stdout.decode().splitlines()
        assert "claude                     o200k_base + 60 %" in lines
        assert len({line.rindex(line.split()[1]) for line in lines}) == 1, "one column"

    def test_a_margin_is_said(self, folder: Path) -> None:
        assert b"no public tokenizer" in satchel("tokens", folder, "--model", "claude-opus-5").stderr


def test_interrupting_leaves_no_mess(tmp_path: Path) -> None:
    target = tmp_path / "out.md"
    command = [sys.executable, "-m", "satchel", "assemble", "-o", str(target)]
    with killed_at_the_end(command, stdin=subprocess.PIPE, stderr=subprocess.PIPE) as process:
        assert process.stdin is not None
        # More than a pipe holds: when this returns, the program has started and is reading.
        process.stdin.write(b"[" + b" " * 1_000_000)
        process.stdin.flush()
        process.send_signal(signal.SIGINT)
        _, told = process.communicate(timeout=HANG_SECONDS)
    assert process.returncode == 130
    assert b"interrupted" in told
    assert b"Traceback" not in told
    assert list(tmp_path.iterdir()) == []


def test_a_closed_pipe_ends_it_silently(hits: Path) -> None:
    read, write = os.pipe()
    os.close(read)
    command = [sys.executable, "-m", "satchel", "assemble", str(hits), "-q"]
    done = subprocess.run(command, stdout=write, stderr=subprocess.PIPE, timeout=HANG_SECONDS, check=False)
    os.close(write)
    assert done.returncode == -signal.SIGPIPE
    assert done.stderr == b""


def all_errors() -> list[type[errors.SatchelError]]:
    found: list[type[errors.SatchelError]] = [errors.SatchelError]
    for error in found:
        found += error.__subclasses__()
    return found


def test_every_error_has_an_exit_code_a_code_of_its_own_and_a_place_in_the_tree() -> None:
    assert set(EXIT_CODES) == set(all_errors())
    assert len({error.code for error in all_errors()}) == len(all_errors())
    for error in all_errors():
        assert error.__name__ in (errors.__doc__ or "")


def commands() -> list[tuple[str, click.Command]]:
    context = click.Context(cli)
    return [(name, command) for name in cli.list_commands(context) if (command := cli.get_command(context, name))]


@pytest.mark.parametrize(("name", "command"), commands())
def test_every_command_and_every_flag_is_documented(name: str, command: Any) -> None:
    page = (ROOT / "docs" / "cli.md").read_text(encoding="utf-8")
    assert f"## satchel {name}\n" in page
    section = page.split(f"## satchel {name}\n")[1].split("\n## ")[0]
    for parameter in command.params:
        if isinstance(parameter, click.Option):
            for flag in parameter.opts:
                if flag.startswith("--"):
                    assert f"`{flag}" in section, flag


def test_help_names_the_exit_codes() -> None:
    assert b"4 budget too small" in b" ".join(satchel("--help").stdout.split())
    assert satchel("--version").stdout.startswith(b"satchel, version ")
