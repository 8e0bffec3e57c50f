"""`satchel tokens`: token counts of files, folder by folder."""

from __future__ import annotations

import errno
import json
import sys
from collections import Counter
from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from satchel.cli.exits import Exit
from satchel.cli.flags import QUIET
from satchel.cli.output import ProgressBar
from satchel.text.decoding import decode_text
from satchel.text.visible import make_visible_line

if TYPE_CHECKING:
    from collections.abc import Iterator

    from satchel.service.token_counts import Passed, TextFile, TokenCounter


_MAX_TREE_LEVELS = 60  # JSON is written recursively, a call for each level; deeper paths share the last level


@dataclass(slots=True)
class _Node:
    """A folder or file with its number of tokens."""

    name: str
    tokens: int = 0
    files: int = 0
    children: dict[str, _Node] = field(default_factory=dict)

    def add(self, parts: tuple[str, ...], tokens: int) -> None:
        node = self
        node.tokens += tokens
        node.files += 1
        for part in parts:
            node = node.children.setdefault(part, _Node(part))
            node.tokens += tokens
            node.files += 1

    def to_dict(self) -> dict[str, Any]:
        fields: dict[str, Any] = {"name": self.name, "tokens": self.tokens}
        if self.children:
            fields |= {"files": self.files, "children": [child.to_dict() for child in self._ordered()]}
        return fields

    def rows(self, depth: int, indent: int = 0) -> Iterator[tuple[int, str]]:
        name = f"{self.name}/" if self.children else self.name
        yield self.tokens, "  " * indent + make_visible_line(name).text
        if depth > 0:
            for child in self._ordered():
                yield from child.rows(depth - 1, indent + 1)

    def _ordered(self) -> list[_Node]:
        return sorted(self.children.values(), key=lambda node: (-node.tokens, node.name))


@click.command("tokens", short_help="Count the tokens of files and folders.")
@click.argument("paths", nargs=-1, type=click.Path(allow_dash=True, path_type=Path), metavar="[FILE]...")
@click.option(
    "--model", default="gpt-4o", show_default=True, help="Model, encoding or tokenizer.json for token counts."
)
@click.option("--depth", type=click.IntRange(0), default=3, show_default=True, help="Depth of the tree in folders.")
@click.option("--json", "as_json", is_flag=True, help="Print the whole tree as JSON.")
@click.option("--list-models", is_flag=True, help="List the known models and how their tokens are counted.")
@QUIET
def tokens_command(
    paths: tuple[Path, ...], model: str, depth: int, *, as_json: bool, list_models: bool, quiet: bool
) -> None:
    """Count the tokens of files and folders (- or nothing: stdin)."""
    from satchel.service.token_counts import counter_for, describe_tokenizer

    if list_models:
        _print_models()
        return
    counter = counter_for(model)
    how = describe_tokenizer(model)
    root, skipped = _counted(paths or (Path("-"),), counter, quiet)
    if as_json:
        fields = {
            "model": model,
            "vocabulary": how.vocabulary,
            "margin_percent": how.margin_percent,
            "tokens": root.tokens,
            "files": root.files,
            "children": root.to_dict().get("children", []),
            "skipped": [{"path": _visible_path(passed.path), "reason": passed.reason} for passed in skipped],
        }
        click.echo(json.dumps(fields, ensure_ascii=False, indent=2))
    else:
        _print_tree(root, depth)
    if not quiet:
        _report_skipped(skipped, how.note)
    if root.files == 0:
        sys.exit(Exit.NOTHING_FOUND)


def _counted(paths: tuple[Path, ...], counter: TokenCounter, quiet: bool) -> tuple[_Node, list[Passed]]:
    from satchel.service.token_counts import Passed, text_files

    root = _Node("total")
    skipped: list[Passed] = []
    for path in paths:
        if str(path) == "-":
            text = decode_text(sys.stdin.buffer.read())
            root.add(("stdin",), counter.count(text))
            continue
        if not path.exists():
            raise FileNotFoundError(errno.ENOENT, "no such file or folder", _visible_path(path))
        with ProgressBar(quiet=quiet) as bar:
            for number, file in enumerate(text_files(path), start=1):
                if isinstance(file, Passed):
                    skipped.append(file)
                else:
                    root.add(_parts(path, file), counter.count(file.text))
                bar.show("counting files", number)
    return root, skipped


def _parts(root: Path, file: TextFile) -> tuple[str, ...]:
    """Path of a file in the tree: the given folder, then the file's path below the folder."""
    base = _visible_path(root)
    if not file.path:
        return (base,)
    below = [make_visible_line(part).text for part in file.path.split("/")]
    # A hostile archive may hold a tree deeper than JSON writers can recurse, or a reader can follow.
    if len(below) > _MAX_TREE_LEVELS:
        below[_MAX_TREE_LEVELS:] = ["/".join(below[_MAX_TREE_LEVELS:])]
    return (base, *below)


def _print_models() -> None:
    from satchel.service.token_counts import known_models

    models = sorted(known_models().items())
    width = max(len(name) for name, _ in models)
    for name, how in models:
        margin = f" + {how.margin_percent} %" if how.margin_percent else ""
        click.echo(f"{name:<{width}}  {how.vocabulary}{margin}")


def _print_tree(root: _Node, depth: int) -> None:
    rows = [row for child in root._ordered() for row in child.rows(depth)]
    if len(root.children) != 1:
        rows.append((root.tokens, "total"))
    width = max((len(f"{tokens:,}") for tokens, _ in rows), default=1)
    click.echo("\n".join(f"{tokens:>{width},}  {name}" for tokens, name in rows))


def _report_skipped(skipped: list[Passed], note: str) -> None:
    if skipped:
        reasons = Counter(passed.reason for passed in skipped)
        counts = ", ".join(f"{count} {reason}" for reason, count in reasons.most_common())
        click.echo(f"satchel: skipped {counts} (--json lists them)", err=True)
    if note:
        click.echo(f"satchel: {note}", err=True)


def _visible_path(path: Path | str) -> str:
    return make_visible_line(str(path)).text
