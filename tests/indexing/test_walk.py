"""The walk: against git itself, and against trees that mean harm."""

from __future__ import annotations

import os
import random
import subprocess
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest

from satchel.indexing.ignore import IgnoreRules
from satchel.indexing.walk import FoundFile, PassedOver, Skip, read_file, surroundings, walk
from tests.support.effort import no_blow_up


@contextmanager
def opened(root: Path) -> Iterator[int]:
    folder = os.open(root, os.O_RDONLY | os.O_DIRECTORY)
    try:
        yield folder
    finally:
        os.close(folder)


def walked(root: Path) -> tuple[list[str], dict[str, Skip]]:
    with opened(root) as folder:
        found = list(walk(folder, within=surroundings(str(root.resolve()))))
    files = [entry.path for entry in found if isinstance(entry, FoundFile)]
    return files, {entry.path: entry.reason for entry in found if isinstance(entry, PassedOver)}


def make(root: Path, *paths: str, text: str = "text\n") -> None:
    for path in paths:
        target = root / path
        target.parent.mkdir(parents=True, exist_ok=True)
        target.write_text(text)


def as_git_has_it(root: Path) -> set[str]:
    done = subprocess.run(
        ["git", "-c", "core.quotePath=false", "-C", str(root), "ls-files", "--others", "--exclude-standard", "-z"],
        capture_output=True,
        check=True,
    )
    return {name for name in os.fsdecode(done.stdout).split("\0") if name}


ATOMS = [
    "a", "b", "ab", "*", "?", "**", "[ab]", "[!a]", "[^b]", "a*", "*b", "a*b", "*.c", "x.c", "foo", "[a-c]",
    "\\*", "a\\b", "[[:alpha:]]", " a", "a ", "a\\ ", "*a*b*", "[]a]", "[a", "\\", "#a", "\\#a", "\\!a",
]  # fmt: skip
NAMES = ["a", "b", "ab", "foo", "x.c", "c.c", "aab", "*", "d", " a", "a ", "bab", "#a", "!a", "]"]


@pytest.mark.parametrize("seed", range(60))
def test_ignore_files_are_read_as_git_reads_them(seed: int, tmp_path: Path) -> None:
    chooser = random.Random(seed)

    def patterns() -> str:
        lines = []
        for _ in range(chooser.randint(1, 6)):
            segments = [chooser.choice(ATOMS) for _ in range(chooser.choice([1, 1, 2, 3]))]
            start = chooser.choice(["", "", "", "!"]) + chooser.choice(["", "", "/"])
            lines.append(start + "/".join(segments) + chooser.choice(["", "", "/", "  "]))
        return "\n".join(lines) + "\n"

    subprocess.run(["git", "init", "-q", str(tmp_path)], check=True)
    folders = {""}
    for _ in range(25):
        parts = [chooser.choice(NAMES) for _ in range(chooser.randint(1, 4))]
        try:
            make(tmp_path, "/".join(parts))
            folders.update("/".join(parts[:i]) for i in range(1, len(parts)))
        except (FileExistsError, NotADirectoryError, IsADirectoryError):
            continue
    for folder in chooser.sample(sorted(folders), min(3, len(folders))):
        (tmp_path / folder / ".gitignore").write_text(patterns())
    (tmp_path / ".git" / "info" / "exclude").write_text(patterns())
    files, _ = walked(tmp_path)
    assert set(files) == as_git_has_it(tmp_path)


def test_the_ignore_file_nearest_to_the_user_has_the_last_word(tmp_path: Path) -> None:
    make(tmp_path, "a.txt", "b.txt", "c.txt", "d.txt")
    (tmp_path / ".gitignore").write_text("*.txt\n")
    (tmp_path / ".ignore").write_text("!b.txt\n!c.txt\n")
    (tmp_path / ".satchelignore").write_text("c.txt\n!d.txt\n")
    files, passed = walked(tmp_path)
    assert [file for file in files if file.endswith(".txt")] == ["b.txt", "d.txt"]
    assert passed == {"a.txt": Skip.IGNORED, "c.txt": Skip.IGNORED}


def test_what_is_nobodys_writing_is_passed_over_and_listed(tmp_path: Path) -> None:
    make(
        tmp_path,
        "src/main.py", "node_modules/x/index.js", "venv/pyvenv.cfg", "venv/lib/x.py", "target/debug/x.rs",
        "Cargo.toml", "web/package.json", "web/dist/app.js", "web/src/app.js", "cache/CACHEDIR.TAG", "cache/x",
        "logo.png", "app.min.js", "Cargo.lock", ".env", ".env.example", "server.pem", "id_rsa", "id_rsa.pub",
        "build/lib.py", "dist/notes.md",
    )  # fmt: skip
    files, passed = walked(tmp_path)
    assert files == [
        ".env.example", "Cargo.toml", "id_rsa.pub", "build/lib.py", "dist/notes.md", "src/main.py", "web/package.json",
        "web/src/app.js",
    ]  # fmt: skip
    assert passed == {
        ".env": Skip.SECRET,
        "Cargo.lock": Skip.GENERATED,
        "app.min.js": Skip.GENERATED,
        "id_rsa": Skip.SECRET,
        "logo.png": Skip.BINARY,
        "server.pem": Skip.SECRET,
        "cache": Skip.BUILD_OUTPUT,
        "node_modules": Skip.NEVER_ENTERED,
        "target": Skip.BUILD_OUTPUT,
        "venv": Skip.VIRTUAL_ENVIRONMENT,
        "web/dist": Skip.BUILD_OUTPUT,
    }


def test_worktrees_are_not_walked_twice_and_submodules_are_walked(tmp_path: Path) -> None:
    make(tmp_path, "a.py")
    git = ["git", "-c", "user.name=x", "-c", "user.email=x@x", "-C", str(tmp_path)]
    subprocess.run(["git", "init", "-q", str(tmp_path)], check=True)
    subprocess.run([*git, "add", "a.py"], check=True)
    subprocess.run([*git, "commit", "-qm", "x"], check=True)
    subprocess.run([*git, "worktree", "add", "-q", "other"], check=True, capture_output=True)
    make(tmp_path, "sub/b.py", "inner/c.py")
    (tmp_path / "sub" / ".git").write_text("gitdir: ../.git/modules/sub\n")
    (tmp_path / "inner" / ".git").write_text("gitdir: /x/.git/worktrees/wt/modules/vendor/inner\n")
    files, passed = walked(tmp_path)
    assert files == ["a.py", "inner/c.py", "sub/b.py"]
    assert passed["other"] is Skip.WORKTREE


def test_a_folder_of_a_repository_heeds_the_rules_above_it(tmp_path: Path) -> None:
    subprocess.run(["git", "init", "-q", str(tmp_path)], check=True)
    make(tmp_path, "pkg/a.log", "pkg/b.py", "pkg/deep/c.py", "pkg/deep/d.txt", "pkg/keep.log")
    (tmp_path / ".gitignore").write_text("*.log\n/pkg/deep/*.txt\n")
    (tmp_path / "pkg" / ".gitignore").write_text("!keep.log\n")
    files, passed = walked(tmp_path / "pkg")
    assert [file for file in files if file != ".gitignore"] == ["b.py", "keep.log", "deep/c.py"]
    assert passed == {"a.log": Skip.IGNORED, "deep/d.txt": Skip.IGNORED}


@pytest.mark.filterwarnings("error")
@pytest.mark.parametrize("pattern", ["[z-a]x", "[a-[:digit:]]x", "a[b--d]", "[]-a]", "[a-]", "[--0]", "[[:nope:]]"])
def test_odd_brackets_break_nothing(pattern: str, tmp_path: Path) -> None:
    subprocess.run(["git", "init", "-q", str(tmp_path)], check=True)
    make(tmp_path, "x", "ax", "a.", "ab", "a-", "-", "]", "a", "0", "-x", ".x", "1x", "ac", "ad")
    (tmp_path / ".gitignore").write_text(f"{pattern}\n*.bak\n")
    files, _ = walked(tmp_path)
    assert set(files) == as_git_has_it(tmp_path)


def test_a_byte_order_mark_hides_no_pattern() -> None:
    assert IgnoreRules("\ufeff*.log\n").ignores("x.log", False)


def test_large_deep_and_special_files_are_passed_over(tmp_path: Path) -> None:
    make(tmp_path, "/".join(["d"] * 210) + "/x.py")
    with (tmp_path / "sparse.txt").open("wb") as sparse:
        sparse.truncate(10**12)
    os.mkfifo(tmp_path / "pipe")
    (tmp_path / "zero").symlink_to("/dev/zero")
    (tmp_path / "out").symlink_to("/etc")
    (tmp_path / "loop").symlink_to(tmp_path)
    files, passed = walked(tmp_path)
    assert files == []
    assert passed.pop("/".join(["d"] * 201)) is Skip.TOO_DEEP
    assert passed == {
        "sparse.txt": Skip.TOO_LARGE,
        "pipe": Skip.SPECIAL,
        "zero": Skip.LINK,
        "out": Skip.LINK,
        "loop": Skip.LINK,
    }


def test_any_name_a_file_can_have_comes_through(tmp_path: Path) -> None:
    names = [
        "a b",
        "a\nb",
        "a\\b",
        "CON",
        "con.txt",
        "x:y",
        "é",
        "e\u0301",
        "*",
        "-rf",
        "漢字",
        "a" * 200,
        "trailing.",
        " lead",
    ]
    make(tmp_path, *names)
    odd = os.fsdecode(b"\xff\xfe.txt")
    (tmp_path / odd).write_text("odd")
    files, _ = walked(tmp_path)
    assert sorted(files) == sorted([*names, odd])
    with opened(tmp_path) as folder:
        assert read_file(folder, odd, 100) == "odd"


def test_a_folder_that_becomes_a_link_meanwhile_leads_nowhere(tmp_path: Path) -> None:
    outside = tmp_path / "outside"
    make(outside, "inner/secret.txt", text="secret")
    root = tmp_path / "root"
    make(root, "inner/secret.txt", text="harmless")
    stop = threading.Event()

    def swap() -> None:
        while not stop.is_set():
            (root / "inner").rename(root / "was")
            (root / "inner").symlink_to(outside / "inner")
            (root / "inner").unlink()
            (root / "was").rename(root / "inner")

    thread = threading.Thread(target=swap)
    thread.start()
    try:
        texts = set()
        for _ in range(300):
            with opened(root) as folder:
                for entry in walk(folder):
                    if isinstance(entry, FoundFile):
                        texts.add(read_file(folder, entry.path, 1000))
                texts.add(read_file(folder, "inner/secret.txt", 1000))
    finally:
        stop.set()
        thread.join()
    assert texts <= {"harmless", *Skip}


@pytest.mark.parametrize(
    ("name", "text", "reason"),
    [
        ("a.py", "x\0y", Skip.BINARY),
        ("a.go", "// Code generated by protoc. DO NOT EDIT.\npackage a\n", Skip.GENERATED),
        ("a.js", "/** @generated */\nx()\n", Skip.GENERATED),
        ("a.py", 'MARK = "@generated"\n', None),
        ("a.js", "var a=1;" * 2000, Skip.GENERATED),
        ("a.js", "var a = 1;\n" * 2000, None),
        ("a.md", "a long paragraph of prose. " * 500, None),
        ("a.py", "caf\xe9", None),
    ],
)
def test_what_is_in_a_file_decides_too(name: str, text: str, reason: Skip | None, tmp_path: Path) -> None:
    (tmp_path / name).write_bytes(text.encode("latin-1"))
    with opened(tmp_path) as folder:
        text_or_reason = read_file(folder, name, 10**6)
        assert (text_or_reason if isinstance(text_or_reason, Skip) else None) is reason


def test_a_file_that_grows_or_vanishes_is_said_so(tmp_path: Path) -> None:
    make(tmp_path, "a.txt", text="x" * 100)
    with opened(tmp_path) as folder:
        assert read_file(folder, "a.txt", 99) is Skip.TOO_LARGE
        assert read_file(folder, "gone.txt", 99) is Skip.UNREADABLE
        assert read_file(folder, "no/such/folder.txt", 99) is Skip.UNREADABLE


def test_hostile_patterns_cost_no_time() -> None:
    # Forms that try every way to share the letters out among the stars never end.
    with no_blow_up("a pattern"):
        beyond_reason = ["a" * 10_000, "**/" * 50 + "y"]
        rules = IgnoreRules("\n".join(["*a" * 200 + "c", "**/" * 4 + "x" * 50, *beyond_reason]))
        for path in ("a" * 4000 + "b", "/".join("a" * 60)):
            assert not rules.ignores(path, False)
    assert not IgnoreRules("\n".join(beyond_reason)), "patterns beyond reason are not used"
