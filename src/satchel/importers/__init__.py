"""Importers: each reads blocks from sources of a certain kind and is selected by name or by recognition.

An importer of your own is a function that reads a path as records, another that recognizes such a path, and an entry
point of the group `satchel.importers` whose value is an `Importer`.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass, replace
from pathlib import Path
from pkgutil import resolve_name
from typing import Final, ParamSpec, TypeVar

from satchel.errors import InvalidInput, SatchelError
from satchel.indexing.walk import NOTE_FILES
from satchel.models.access import Grant
from satchel.models.block import Activity, Block, Link, Record
from satchel.registry import Registry
from satchel.workspace.sources import SourceUpdate

Result = TypeVar("Result")
Arguments = ParamSpec("Arguments")


@dataclass(frozen=True, slots=True, kw_only=True)
class Importer:
    """Functions to recognize and read sources of a certain kind; a name (`module:function`) loads a function late."""

    help: str
    """A short description of a source of this kind."""
    detect: Callable[[Path], bool] | str
    """True if the file or folder is a source of this kind."""
    read: Callable[[Path], Iterable[Record]] | str
    """All records of the source, parents before children; a `Notice` for anything left out."""
    update: Callable[[Path, str], SourceUpdate] | str = ""
    """What changed in the source since the state that an earlier update returned ("": everything), in place of `read`;
    "" for an importer that always reads everything."""
    is_guess: bool = False
    """True if `detect` may accept sources of another kind; it is then called after the exact importers."""
    only_adds: bool = False
    """True if an import only adds blocks: nothing is removed, and a changed source is not read again."""
    replaces: tuple[str, ...] = ()
    """Extensions of source files that are not indexed as files, because they are imported as blocks."""


def _own_importer(detect: str, read: str, **fields: object) -> Importer:
    if fields.get("update"):
        fields["update"] = f"satchel.importers.{fields['update']}"
    return Importer(detect=f"satchel.importers.{detect}", read=f"satchel.importers.{read}", **fields)  # type: ignore[arg-type]


IMPORTERS: Final[Registry[Importer]] = Registry(
    "importer",
    "satchel.importers",
    {
        "conversations": _own_importer(
            "conversations:is_conversations",
            "conversations:read_conversations",
            help="a ChatGPT or Claude export, sessions of Claude Code, Codex or opencode, JSON lines with roles",
            is_guess=True,
        ),
        "github": _own_importer(
            "github:is_github_export",
            "github:read_github",
            help="issues and pull requests as JSON: `gh issue list --json …`, or GitHub's REST API",
        ),
        "jsonl": _own_importer(
            "jsonl:is_record_file",
            "jsonl:read_record_file",
            help="what `satchel workspace export` writes",
            only_adds=True,
        ),
        "logseq": _own_importer(
            "logseq:is_logseq",
            "logseq:read_logseq",
            update="logseq:update_logseq",
            help="a Logseq graph (a folder with pages and journals, Markdown or org-mode)",
            replaces=NOTE_FILES,
        ),
        "mail": _own_importer("mail:is_mail", "mail:read_mail", help="an mbox file, .eml files, or a folder of them"),
        "notion": _own_importer(
            "notion:is_notion_export",
            "notion:read_notion",
            help='the folder or .zip of Notion\'s "Markdown & CSV"',
            is_guess=True,
        ),
        "org": _own_importer("org:is_org", "org:read_org", help="an org-mode file, or a folder of them"),
        "slack": _own_importer(
            "slack:is_slack_export", "slack:read_slack", help="the folder or .zip of a Slack export"
        ),
        "vault": _own_importer(
            "vault:is_vault",
            "vault:read_vault",
            update="vault:update_vault",
            help="a folder of Markdown notes (Obsidian)",
            is_guess=True,
            replaces=NOTE_FILES,
        ),
    },
    Importer,
)
"""Every importer by name; exact importers are tried before guessing ones, and the first match is used."""


def detect_importer(path: Path) -> str:
    """The name of the importer for the path; raises InvalidInput if no importer recognizes the path."""
    problems = []
    for name, importer in sorted(IMPORTERS.entries(), key=lambda entry: entry[1].is_guess):
        try:
            if _function(importer.detect)(path):
                return name
        except (SatchelError, OSError):
            raise
        except Exception as error:  # a plugin's function may raise anything
            problems.append(f"; {name} failed ({type(error).__name__}: {error})")
    names = ", ".join(IMPORTERS.names())
    problems += [f"; {problem}" for problem in IMPORTERS.problems.values()]
    raise InvalidInput(
        "path", str(path), f"cannot detect the kind of this source; give it with --kind ({names}){''.join(problems)}"
    )


def read_update(kind: str, path: Path, prefix: str = "", state: str = "") -> SourceUpdate:
    """What changed at the path since the state of an earlier update, with the prefix on each id."""
    importer = IMPORTERS.get(kind)
    if not importer.update:
        return SourceUpdate(_checked_records(kind, path, prefix, lambda: _function(importer.read)(path)))
    update = _function(importer.update)(path, state)
    records = _checked_records(kind, path, prefix, lambda: update.records)
    return replace(update, records=records, kept=lambda: [f"{prefix}{kept}" for kept in update.kept()])


def read_records(kind: str, path: Path, prefix: str = "") -> Iterator[Record]:
    """The records of the path as read by the importer, with the prefix on each id."""
    return iter(read_update(kind, path, prefix).records)


def _checked_records(kind: str, path: Path, prefix: str, read: Callable[[], Iterable[Record]]) -> Iterator[Record]:
    try:
        for record in read():
            if not isinstance(record, Record):
                raise TypeError(f"{type(record).__name__} is not a record")
            yield _prefixed(record, prefix) if prefix else record
    except (SatchelError, OSError):
        raise
    except Exception as error:  # a plugin's function may raise anything
        problem = f"the importer {kind!r} failed ({type(error).__name__}: {error})"
        raise InvalidInput("source", str(path), problem) from error


def _function(place: Callable[Arguments, Result] | str) -> Callable[Arguments, Result]:
    if isinstance(place, str):
        function: Callable[Arguments, Result] = resolve_name(place)
        return function
    return place


def _prefixed(record: Record, prefix: str) -> Record:
    if isinstance(record, Block):
        parent = None if record.parent is None else f"{prefix}{record.parent}"
        return replace(record, id=f"{prefix}{record.id}", parent=parent)
    if isinstance(record, Link):
        target = None if record.target is None else f"{prefix}{record.target}"
        return replace(record, source=f"{prefix}{record.source}", target=target)
    if isinstance(record, (Grant, Activity)):
        return replace(record, block=f"{prefix}{record.block}")
    return record
