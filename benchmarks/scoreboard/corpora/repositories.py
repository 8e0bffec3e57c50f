"""Git repositories: where they are, and the files of a commit."""

from __future__ import annotations

import os
import re
import shutil
import subprocess
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import IO, Final

from benchmarks.scoreboard.corpora.making import write_below
from benchmarks.scoreboard.corpora.model import Unavailable

ORIGIN: Final = "https://github.com"
MAX_FILE_BYTES: Final = 1_000_000
_SLUG: Final = re.compile(r"[A-Za-z0-9_-][A-Za-z0-9_.-]*/[A-Za-z0-9_.-]+")
_COMMIT: Final = re.compile(r"[0-9a-f]{40}")
_SECONDS: Final = 1800


@dataclass(frozen=True, slots=True, kw_only=True)
class Tree:
    """Some files of a commit."""

    slug: str
    commit: str
    root: str = ""
    endings: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True, kw_only=True)
class Repositories:
    """The git folders of a mirror (`owner+name/repo`); what is not there is cloned below `clones`."""

    mirror: Path | None
    clones: Path

    def export(self, tree: Tree, folder: Path) -> None:
        """Writes the tree's files; links, files over 1 MB and what the repository lacks are left out."""
        if not _SLUG.fullmatch(tree.slug) or not _COMMIT.fullmatch(tree.commit):
            raise Unavailable(f"{tree.slug!r} at {tree.commit!r} does not name a repository and a commit")
        git = self._git_folder(tree.slug)
        blobs = _blobs(git, tree)
        _fetch_missing(git, [sha for sha, _ in blobs])
        with subprocess.Popen(
            _command(git, "cat-file", "--batch"), stdin=subprocess.PIPE, stdout=subprocess.PIPE, env=_environment()
        ) as reader:
            assert reader.stdin is not None
            assert reader.stdout is not None
            for sha, path in blobs:
                content = _read(reader.stdin, reader.stdout, sha)
                if content is not None and len(content) <= MAX_FILE_BYTES:
                    write_below(folder, path, content)
        if not any(folder.iterdir()):
            raise Unavailable(f"{tree.slug} at {tree.commit} has no files below {tree.root or 'its root'!r}")

    def date(self, tree: Tree) -> int:
        """When the tree's commit was made, in seconds since 1970."""
        shown = _run(_command(self._git_folder(tree.slug), "log", "-1", "--format=%ct", tree.commit), tree.slug)
        return int(shown)

    def _git_folder(self, slug: str) -> Path:
        name = slug.replace("/", "+")
        if self.mirror is not None:
            for folder in (self.mirror / name / "repo", self.mirror / name / "repo" / ".git"):
                if (folder / "HEAD").is_file():
                    return folder
        clone = self.clones / name
        if not (clone / "HEAD").is_file():
            part = clone.with_name(f"{name}.part")
            shutil.rmtree(part, ignore_errors=True)
            part.parent.mkdir(parents=True, exist_ok=True)
            _run(["git", "clone", "--quiet", "--bare", "--filter=blob:none", f"{ORIGIN}/{slug}", str(part)], slug)
            part.rename(clone)
        return clone


def nearest_mirror(*below: Path) -> Path | None:
    """The folder that CTXEVAL_MIRROR or SATCHEL_BENCH_MIRROR names, or the nearest `.mirror` above these places."""
    told = os.environ.get("CTXEVAL_MIRROR") or os.environ.get("SATCHEL_BENCH_MIRROR")
    if told:
        return Path(told)
    above = (parent / ".mirror" for place in below for parent in place.resolve().parents)
    return next((folder for folder in above if folder.is_dir()), None)


def _blobs(git: Path, tree: Tree) -> list[tuple[str, str]]:
    """Hash and path of the regular files."""
    wanted = [tree.root] if tree.root else []
    listed = _run(_command(git, "ls-tree", "-r", "-z", "--full-tree", tree.commit, "--", *wanted), tree.slug)
    found = []
    for entry in listed.decode(errors="surrogateescape").split("\0")[:-1]:
        about, path = entry.split("\t", 1)
        mode, kind, sha = about.split()
        if kind == "blob" and mode != "120000" and (not tree.endings or path.endswith(tree.endings)):
            found.append((sha, path))
    return found


def _fetch_missing(git: Path, hashes: Sequence[str]) -> None:
    """A clone without file contents gets those of this tree in one go, and not one by one as they are read."""
    if b"true" not in _run(
        _command(git, "config", "--get", "--default", "false", "remote.origin.promisor"), "git config"
    ):
        return
    there = set(_local_objects(git))
    absent = [sha for sha in dict.fromkeys(hashes) if sha not in there]
    if absent:
        fetch = "fetch --quiet --no-tags --no-write-fetch-head --filter=blob:none --stdin origin".split()
        ask_for_all = ("-c", "fetch.negotiationAlgorithm=noop")
        _run(_command(git, *ask_for_all, *fetch), "git fetch", "\n".join(absent).encode())


def _local_objects(git: Path) -> Iterator[str]:
    listed = _run(_command(git, "cat-file", "--batch-all-objects", "--batch-check=%(objectname)"), "git cat-file")
    return iter(listed.decode().split())


def _read(asks: IO[bytes], answers: IO[bytes], sha: str) -> bytes | None:
    asks.write(sha.encode() + b"\n")
    asks.flush()
    head = answers.readline().split()
    if len(head) != 3:  # "<hash> missing": a snapshot need not have everything
        return None
    content = answers.read(int(head[2]))
    answers.read(1)
    return content


def _command(git: Path, *arguments: str) -> list[str]:
    return ["git", f"--git-dir={git}", *arguments]


def _run(command: Sequence[str], what: str, given: bytes = b"") -> bytes:
    try:
        ran = subprocess.run(
            command, input=given, capture_output=True, check=True, timeout=_SECONDS, env=_environment()
        )
    except FileNotFoundError:
        raise Unavailable("git is not installed") from None
    except subprocess.TimeoutExpired:
        raise Unavailable(f"{what}: git took longer than {_SECONDS} seconds") from None
    except subprocess.CalledProcessError as error:
        said = error.stderr.decode(errors="replace").strip().splitlines()
        raise Unavailable(f"{what}: {said[-1] if said else f'git ended with {error.returncode}'}") from None
    return ran.stdout


def _environment() -> dict[str, str]:
    """Git asks nobody for a password: a repository that cannot be had is left out."""
    return {**os.environ, "GIT_TERMINAL_PROMPT": "0", "LC_ALL": "C"}
