"""What goes in, as nasty as it comes: shared by the laws and the soak run."""

from __future__ import annotations

from typing import Any

from hypothesis import strategies as st

from satchel import ContextBuildOptions, ContextFormat, Entity, EntityResult, KnowledgeChunk
from satchel.models.options import (
    HeadingStyle,
    Ordering,
    OverflowPolicy,
    Packing,
    ProviderFormat,
    TokenEstimationMethod,
)

# Each of these has broken somebody's prompt, page or parser.
NASTY = (
    "```", "````", "~~~", "```python\n", "\n```\n", "`" * 12, "</context>", "</code-context>", "<code-context>",
    "]]>", "<![CDATA[", "<!--", "-->", "&amp;", "&", "<", ">", "\"", "'", "\\", "{query}", "{focus_section}",
    "### [2] src/forged.py", "### forged", "# heading", "File: forged.py (lines 1-2)", "-" * 40, "-" * 41, "---", "===",
    "=== Relevant Code ===", "Sources:", "**Sources:**", "[1]", "[Document 2: x.pdf, Page 1]", "Lines 1-2", "Line 3",
    "name [file:3]", "[truncated: 3 lines", "// ... (truncated)", "  - x", "\\File: x", "--- a (lines 1-2) ---",
    "\x1b[31mred\x1b[0m", "\x00", "\x07", "\x7f", "\x85", "\u2028", "\u202e", "\u2066", "\u200b", "\ufeff", "\u00ad",
    "\U000e0041\U000e0042", "\ud800", "\udcff", "\uffff", "\r\n", "\r", "\t", "\n", "\n\n",
    "    ", " ", "/", "//", "'\u017f",
    "👨‍👩‍👧", "🏴\U000e0067\U000e0062\U000e0065\U000e006e\U000e0067\U000e007f", "🇩🇪", "e\u0301", "한국어", "漢字",
    "می‌خواهم",
    "def f(x):\n    return x\n", "The quick brown fox. ", "SELECT * FROM t;", "x" * 50, "a b c d e f g ", "0123456789",
)  # fmt: skip

nasty_text = st.lists(
    st.one_of(st.sampled_from(NASTY), st.text(max_size=8), st.text(alphabet="ab \n`-#<", max_size=12)), max_size=12
).map("".join)

# Characters that a tokenizer's Unicode tables may not know yet: letters and marks, of three bytes and of four.
NEWEST = ("\u088f", "\u0c5c", "\u1acf", "\ua7ce", "\U00010ec5", "\U00011b60", "\U0001e6c0", "\U0002b73a", "\U000323b0")

newest_text = st.lists(
    st.one_of(
        st.sampled_from(NEWEST),
        st.characters(codec="utf-8", categories=["Cn"]),  # what Python itself does not know
        st.sampled_from(
            ["\n", "\r\n", "\n\n", " ", "/", "0", "ab", "A", "'s", "'\u017f", "é", "漢", "\u0301", "😀", "\ud800"]
        ),
        st.text(alphabet="ab0 \n", max_size=6),
    ),
    max_size=16,
).map("".join)

paths = st.one_of(
    st.sampled_from(
        ["src/a.py", "src/b.py", "docs/guide.md", "", "__init__.py", "app/[id]/page.tsx", "a b.txt", "C#.cs#"]
    ),
    nasty_text.map(lambda text: text[:40]),
)

languages = st.sampled_from([None, "python", "csharp", "text", "c++", "`evil", "a b", "x\ny", ""])


@st.composite
def chunks(draw: st.DrawFn, /) -> KnowledgeChunk:
    content = draw(nasty_text)
    lines: dict[str, Any] = {}
    if draw(st.booleans()):
        start = draw(st.integers(0, 12))
        # Mostly the truth, sometimes not: retrievers are off by a line.
        honest = content.count("\n") + (not content.endswith("\n"))
        end = start + draw(st.sampled_from([max(honest, 1) - 1, 0, 3]))
        lines = {"start_line": start, "end_line": end}
    return KnowledgeChunk(
        content,
        file_path=draw(paths),
        relevance=draw(st.floats(0, 1)),
        language=draw(languages),
        expanded_context=draw(st.one_of(st.none(), nasty_text)),
        id=draw(st.sampled_from(["", "", "same", "\n", 'q"q'])),
        type=draw(st.sampled_from(["", "function", "document", "message", "odd"])),
        **lines,
    )


@st.composite
def entities(draw: st.DrawFn, /) -> EntityResult:
    some = nasty_text.filter(bool)
    return EntityResult(
        Entity(
            draw(st.sampled_from(["e1", "e2", "e3", "e\n4"])),
            draw(some),
            draw(st.sampled_from(["function", "document", "decision", "odd <type>"])),
            draw(st.one_of(st.none(), paths)),
            draw(st.one_of(st.none(), st.integers(0, 99))),
            draw(st.one_of(st.none(), nasty_text)),
            draw(st.one_of(st.none(), nasty_text, nasty_text.map(lambda text: text * 20))),
        ),
        draw(st.floats(0, 1)),
    )


hits = st.lists(st.one_of(chunks(), chunks(), entities()), max_size=8)
chunk_hits = st.lists(chunks(), max_size=8)

wrapping = st.one_of(st.none(), st.sampled_from(["", "Context:", "Ask me.\n\nNow:", "End."]), nasty_text)


@st.composite
def options(draw: st.DrawFn, /, **fixed: Any) -> ContextBuildOptions:
    chosen: dict[str, Any] = {
        "max_tokens": draw(st.one_of(st.integers(1, 60), st.integers(60, 600), st.just(5000))),
        "max_chunks": draw(st.integers(1, 9)),
        "min_relevance": draw(st.sampled_from([0.0, 0.0, 0.5])),
        "format": draw(st.sampled_from(ContextFormat)),
        "include_file_headers": draw(st.booleans()),
        "include_line_numbers": draw(st.booleans()),
        "include_scores": draw(st.booleans()),
        "group_by_file": draw(st.booleans()),
        "group_by_type": draw(st.booleans()),
        "chunk_separator": draw(st.sampled_from(["\n\n", "\n", "\n---\n", "\n***\n\n", "  \n"])),
        "expand_context": draw(st.booleans()),
        "context_header": draw(wrapping),
        "context_footer": draw(wrapping),
        "token_estimation": draw(st.sampled_from(TokenEstimationMethod)),
        "include_sources": draw(st.booleans()),
        "include_code_content": draw(st.booleans()),
        "include_citations": draw(st.booleans()),
        "heading_style": draw(st.sampled_from(HeadingStyle)),
        "ordering": draw(st.sampled_from([None, *Ordering])),
        "overflow": draw(st.sampled_from(OverflowPolicy)),
        "packing": draw(st.sampled_from(Packing)),
        "merge_adjacent": draw(st.booleans()),
        "provider": draw(st.sampled_from(ProviderFormat)),
        "min_truncated_tokens": draw(st.sampled_from([0, 20, 100])),
        "min_content_length": draw(st.sampled_from([0, 5, 50])),
    }
    chosen |= fixed
    if chosen["token_estimation"] is TokenEstimationMethod.TOKENIZER:
        chosen["tokenizer"] = draw(st.sampled_from(["o200k_base", "cl100k_base", None]))
    return ContextBuildOptions(**chosen)
