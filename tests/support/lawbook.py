"""Checks of a finished context that use none of Satchel's own code: other tokenizers and other parsers."""

from __future__ import annotations

import json
import re
from typing import Any

from lxml import etree
from markdown_it import MarkdownIt
from markdown_it.token import Token

from satchel import ContextBuildOptions, ContextBuildResult, ContextFormat
from satchel.models.options import TokenEstimationMethod
from tests.support.formulas_again import by_characters, by_words
from tests.support.oracle import newer_than_the_oracle, true_count

_COMMONMARK = MarkdownIt("commonmark")


def counted(text: str, options: ContextBuildOptions) -> int:
    if options.token_estimation is TokenEstimationMethod.TOKENIZER:
        return true_count(text, options.tokenizer or "o200k_base")
    if options.token_estimation is TokenEstimationMethod.CHARACTER_BASED:
        return by_characters(text)
    return by_words(text)


def markdown_blocks(text: str) -> list[Token]:
    return [token for token in _COMMONMARK.parse(text) if token.level == 0]


def fences(text: str) -> list[str]:
    return [token.content.removesuffix("\n") for token in _COMMONMARK.parse(text) if token.type == "fence"]


def headings(text: str, level: str = "h3") -> list[str]:
    tokens = _COMMONMARK.parse(text)
    return [
        tokens[i + 1].content
        for i, token in enumerate(tokens)
        if token.type == "heading_open" and token.tag == level and token.markup.startswith("#")
    ]


def xml_root(text: str) -> Any:
    return etree.fromstring(text.encode(), etree.XMLParser(resolve_entities=False, no_network=True, huge_tree=True))


def xml_texts(text: str) -> list[str]:
    root = xml_root(text)
    found = []
    for element in root.iter("code-context", "entity"):
        assert len(element) == 0
        body = element.text or ""
        assert body.startswith("\n")
        assert body.endswith("\n")
        found.append(body[1:-1])
    return found


def json_chunks(text: str) -> list[dict[str, Any]]:
    document = json.loads(text, parse_constant=_no_constants)
    if "sections" in document:
        return [chunk for section in document["sections"] for chunk in section["chunks"]]
    return list(document["chunks"])


def _no_constants(name: str) -> float:
    raise AssertionError(f"{name} is not JSON")


# A reader for the plain format, written from docs/formats.md alone.
_PLAIN_HEAD = re.compile(
    r"^(?:\[\d+\] )?(?:File: .*\n-{40}$|Lines? \d+(?:-\d+)?\n-{40}$|--- .* ---$)|^\[\d+\]$(?:\n-{40}$)?|^-{40}$",
    re.MULTILINE,
)
_PLAIN_MARK = re.compile(
    r"^\\(?=\\*(?:(?:\[\d+\] ?)?(?:File: |--- .* ---$|[Ll]ines? \d+(?:-\d+)?$)|\[\d+\](?: .*)?$|-{40,}$"
    r"|=== .* ===$|Sources:$|\[truncated: |(?=.*\]$).* \[))",
    re.MULTILINE,
)


def plain_texts(text: str) -> list[str]:
    """The pieces of a plain context without header, footer, sources, sections and trims."""
    heads = list(_PLAIN_HEAD.finditer(text))
    ends = [head.start() for head in heads[1:]] + [len(text)]
    return [_PLAIN_MARK.sub("", text[head.end() + 1 : end]) for head, end in zip(heads, ends, strict=True)]


def check(result: ContextBuildResult, options: ContextBuildOptions) -> None:
    """Promises 1, 5 and 6 on one result, whatever went in."""
    text = result.context
    tokens = counted(text, options)
    assert tokens <= options.max_tokens, (tokens, options.max_tokens)
    text.encode("utf-8")
    assert not re.search("[\x00-\x08\x0b-\x1f\x7f-\x9f\u202a-\u202e\u2066-\u2069]", text)
    assert [source.number for source in result.sources] == list(range(1, len(result.sources) + 1))
    assert len(result.spans) == len(result.sources)
    if result.is_empty:
        assert result.sources == ()
        return
    if not result.provider_content and not newer_than_the_oracle(text):
        assert result.estimated_tokens == tokens
    assert result.estimated_tokens >= tokens
    check_parses(result, options)


def check_parses(result: ContextBuildResult, options: ContextBuildOptions) -> None:
    """The text holds exactly the pieces that the result says were put in, in that order."""
    text = result.context
    shown_texts = [source.text for source in result.sources]
    if options.format is ContextFormat.XML:
        assert xml_root(text).tag == "context"
        assert len(xml_texts(text)) == len(shown_texts)
        for body, shown in zip(xml_texts(text), shown_texts, strict=True):
            assert body == shown
    elif options.format is ContextFormat.JSON:
        chunks = json_chunks(text)
        assert len(chunks) == len(shown_texts)
        for chunk, shown in zip(chunks, shown_texts, strict=True):
            body = "\n".join(part for part in (chunk.get("summary"), chunk.get("content")) if part)
            assert body == shown
    elif options.format is ContextFormat.MARKDOWN:
        for (start, end), shown in zip(result.spans, shown_texts, strict=True):
            blocks = fences(text[start:end])
            assert len(blocks) <= 1
            if blocks:
                body = re.sub(r"\n// \.\.\. \(truncated\) .*\Z", "", blocks[0])
                assert shown.endswith((body, blocks[0]))
        inside = [block for start, end in result.spans for block in fences(text[start:end])]
        # The caller's own text may have fences; how many depends on what stands before it (a list, say).
        callers = f"{options.context_header}\n{options.context_footer}"
        outside = [line for line in callers.splitlines() if "```" in line or "~~~" in line]
        assert len(fences(text)) <= len(inside) + len(outside)
        everything = fences(text)
        assert _is_subsequence(inside, everything)
    else:
        for (start, end), shown in zip(result.spans, shown_texts, strict=True):
            assert shown.rstrip() in _PLAIN_MARK.sub("", text[start:end])


def _is_subsequence(wanted: list[str], given: list[str]) -> bool:
    remaining = iter(given)
    return all(any(one == other for other in remaining) for one in wanted)
