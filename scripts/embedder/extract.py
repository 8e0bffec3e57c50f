"""Cut one file into (query, text) pairs: what a human wrote about a piece, and the piece itself.

Python is read with its own parser. The other languages share one line-based reading: a comment block that stands right
above a declaration describes it, and the declaration ends where the indentation comes back. That is wrong now and then,
which training forgives, and it needs no grammar.
"""

import ast
import itertools
import re
import warnings
from collections.abc import Iterator
from pathlib import PurePosixPath
from typing import NamedTuple

from satchel.text.words import words

KINDS = {
    ".py": "python",
    **dict.fromkeys(".js .mjs .cjs .jsx .ts .tsx".split(), "javascript"),
    ".go": "go",
    ".rs": "rust",
    ".java": "java",
    **dict.fromkeys(".c .h .cc .cpp .hpp .cxx .hh".split(), "c"),
    ".rb": "ruby",
    ".php": "php",
    **dict.fromkeys(".lua .hs .ex .exs .swift .scala .kt .cs .sh .bash .zig".split(), "other"),
    **dict.fromkeys(".md .rst .txt .markdown".split(), "prose"),
}
LONGEST_TEXT = 1_500
SHORTEST_CODE = 80
SHORTEST_PROSE = 200

_MARK = re.compile(r"^\s*(/\*\*?!?<?|\*/|\*|//[/!]?|---?\s?[|^]?|#+|\{-\s?\|?)\s?")
_LINE_COMMENT = {"hash": re.compile(r"\s*#(?!\[|!|include|define|if|end|el|pragma)"), "slash": re.compile(r"\s*//")}
_LINE_COMMENT["dash"] = re.compile(r"\s*--")
_STYLE = {".rb": "hash", ".sh": "hash", ".bash": "hash", ".ex": "hash", ".exs": "hash", ".lua": "dash", ".hs": "dash"}
_ATTRIBUTE = re.compile(r"\s*(@\w|#\[|\[[A-Z]\w*|@doc|@spec|template\s*<)")
_DECLARATION = re.compile(
    r"\s*(?:(?:export|default|public|private|protected|internal|static|final|abstract|async|override|open|sealed|inline|"
    r"virtual|extern|unsafe|pub(?:\([\w ]+\))?|const|constexpr|suspend|local|partial|readonly|implicit|case|declare)"
    r"\s+)*(?:(?:func|fn|function|fun|def|defp|defmodule|defmacro|class|struct|enum|union|interface|trait|impl|module|"
    r"namespace|type|typedef|object|protocol|extension|record|data|newtype|instance|sub|macro_rules!|const|let|var|val)\b"
    r"|[\w:<>\[\],&*?. ]+\()"
)
_NAME = re.compile(
    r"(?:func|fn|function\*?|fun|def|defp|class|struct|enum|interface|trait|module|type|object|protocol|const|let|var)\s+"
    r"(?:\([^)]*\)\s*)?(?:self\.)?([A-Za-z_]\w*)|([A-Za-z_]\w*)\s*\("
)
_NOT_A_DOC = re.compile(
    r"copyright|licen[sc]e|eslint|todo|fixme|generated|pylint|noqa|istanbul|@ts-|SPDX|prettier|^\W*$|NOLINT|clang-|"
    r"inheritdoc|see https?:",
    re.I,
)
_NOT_A_NAME = set("if for while switch return catch else new await throw sizeof elif unless until match super".split())


class Pair(NamedTuple):
    kind: str
    query: str
    text: str


def pairs_of(path: str, text: str) -> Iterator[Pair]:
    """Every pair that the file gives."""
    kind = KINDS[PurePosixPath(path).suffix.lower()]
    if kind == "prose":
        yield from _sections(text)
    elif len(text) < 100 * (text.count("\n") + 1):  # longer lines: packed or generated
        yield from _python(path, text) if kind == "python" else _by_lines(path, text, kind)


def _summary(comment: str) -> str | None:
    """The first sentence, if it says something in words."""
    comment = re.split(r"\n\s*(?:[@\\:]\w|Args:|Parameters|Returns:|-{3,}|>>>|```)", "\n" + comment, maxsplit=1)[
        0
    ].strip()
    paragraph = re.split(r"\n\s*\n", comment, maxsplit=1)[0]
    paragraph = re.sub(r"<[^>]{1,40}>|\{@\w+ ([^}]*)\}|``?", r" \1", paragraph)
    sentence = re.split(r"(?<=[a-z)]{2}[.!?])\s", " ".join(paragraph.split()), maxsplit=1)[0]
    if not 20 <= len(sentence) <= 400 or _NOT_A_DOC.search(sentence) or sentence.count(" ") < 2:
        return None
    letters = sum(c.isascii() and (c.isalpha() or c == " ") for c in sentence)
    return sentence if letters > 0.8 * len(sentence) else None


def _named(path: str, name: str, body: str) -> Iterator[Pair]:
    """A weak pair: what a unit is called and where it lives, for its inside."""
    own = words(name)
    inside = body.split("\n", 1)[-1]
    if len(own) < 2 or len(inside) < 2 * SHORTEST_CODE or name in _NOT_A_NAME or name.startswith(("test", "Test")):
        return
    pure = PurePosixPath(path)
    where = [
        w for part in (pure.parent.name, pure.stem) for w in words(part) if w not in own and len(w) > 2 and w.isalpha()
    ]
    yield Pair("name", " ".join(own + where[-3:]), inside[:LONGEST_TEXT])


def _python(path: str, text: str) -> Iterator[Pair]:
    try:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            tree = ast.parse(text)
    except (SyntaxError, ValueError, RecursionError, MemoryError):
        return
    lines = text.split("\n")
    for node in ast.walk(tree):
        if not isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef | ast.ClassDef | ast.Module) or not node.body:
            continue
        doc = ast.get_docstring(node, clean=True)
        first = getattr(node, "lineno", 1) - 1
        last = min(getattr(node, "end_lineno", None) or len(lines), first + 80)
        kept = lines[first:last]
        if doc:
            string = node.body[0]
            kept = lines[first : string.lineno - 1] + lines[string.end_lineno or string.lineno : last]
        body = "\n".join(kept)[:LONGEST_TEXT]
        if len(body) < SHORTEST_CODE:
            continue
        query = _summary(doc) if doc else None
        if query:
            yield Pair("python", query, body)
        if not isinstance(node, ast.Module):
            yield from _named(path, node.name, body)


def _by_lines(path: str, text: str, kind: str) -> Iterator[Pair]:
    suffix = PurePosixPath(path).suffix.lower()
    style = _LINE_COMMENT[_STYLE.get(suffix, "slash")]
    lines = text.split("\n")
    at = 0
    comment: list[str] = []
    while at < len(lines):
        line = lines[at]
        if style.match(line):
            comment.append(_MARK.sub("", line, count=1))
            at += 1
        elif line.lstrip().startswith(("/*", "{-", '@doc """', '@moduledoc """')):
            comment, at = _block(lines, at)
        elif not line.strip():
            comment = []
            at += 1
        elif comment and _ATTRIBUTE.match(line):
            at += 1
        else:
            if _DECLARATION.match(line) and not line.rstrip().endswith(";"):
                yield from _declaration(path, kind, lines, at, comment)
            comment = []
            at += 1


def _block(lines: list[str], at: int) -> tuple[list[str], int]:
    opening = lines[at]
    closing = "*/" if "/*" in opening else "-}" if "{-" in opening else '"""'
    inside = opening.replace('@doc """', "").replace('@moduledoc """', "")
    found = [_MARK.sub("", inside, count=1).replace(closing, "")]
    if closing in inside:
        return found, at + 1
    at += 1
    while at < len(lines) and closing not in lines[at]:
        found.append(_MARK.sub("", lines[at], count=1))
        at += 1
    return found, at + 1


def _indent(line: str) -> int:
    return len(line) - len(line.lstrip())


def _declaration(path: str, kind: str, lines: list[str], at: int, comment: list[str]) -> Iterator[Pair]:
    base = _indent(lines[at])
    end = at + 1
    while end < min(len(lines), at + 80):
        line = lines[end]
        if line.strip() and _indent(line) <= base and not line.lstrip().startswith(("{", ")", "where")):
            end += line.lstrip().startswith(("}", "end", "]"))
            break
        end += 1
    body = "\n".join(lines[at:end])[:LONGEST_TEXT]
    if len(body) < SHORTEST_CODE:
        return
    query = _summary("\n".join(comment)) if comment else None
    if query:
        yield Pair(kind, query, body)
    name = _NAME.search(lines[at])
    if name:
        yield from _named(path, name[1] or name[2], body)


_HEADING = re.compile(r"^(?:#{1,4} +(?P<hash>\S.*?)\s*#*|(?P<under>\S.*)\n(?P<line>=+|-+|~+|\^+|\*+))$", re.M)


def _sections(text: str) -> Iterator[Pair]:
    """Heading and section, and a sentence with the section it was taken from."""
    headings = [h for h in _HEADING.finditer(text) if h["hash"] or len(h["line"]) >= min(4, len(h["under"]))]
    for this, following in itertools.pairwise([*headings, None]):
        assert this is not None
        section = text[this.end() : following.start() if following else len(text)].strip()
        title = re.sub(r"\[([^\]]*)\]\([^)]*\)|[`*:]", r"\1", this["hash"] or this["under"]).strip()
        prose = re.sub(r"\[([^\]]*)\]\([^)]*\)", r"\1", section)[:LONGEST_TEXT]
        if len(prose) < SHORTEST_PROSE or _NOT_A_DOC.search(title):
            continue
        if len(words(title)) >= 2 and sum(c.isalpha() for c in title) > 0.6 * len(title) and len(title) < 120:
            yield Pair("prose", title, prose)
        sentences = re.split(r"(?<=[a-z)]{2}[.!?])\s+", prose)
        chosen = len(prose) % len(sentences)
        rest = " ".join(sentences[:chosen] + sentences[chosen + 1 :])
        plain = " ".join(sentences[chosen].split())
        if len(sentences) > 3 and 40 <= len(plain) <= 300 and sum(c.isalpha() for c in plain) > 0.7 * len(plain):
            yield Pair("sentence", plain, rest)
