"""Entities: grouped by type, written by name and summary, with their sources."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import pytest

from satchel import (
    ContextBuildOptions,
    ContextBuildResult,
    ContextFormat,
    Entity,
    EntityResult,
    assemble,
    estimate_tokens,
)
from satchel.models.chunk import CATEGORY_ORDER, CATEGORY_TITLES, categorize
from satchel.models.files import detect_language
from satchel.models.options import OverflowPolicy, TokenEstimationMethod
from tests.support import lawbook

PLAIN = ContextBuildOptions(format=ContextFormat.PLAIN, group_by_type=False)


def found(name: str = "login", type: str = "function", score: float = 0.9, **fields: Any) -> EntityResult:
    return EntityResult(Entity(fields.pop("id", f"id-{name}"), name, type, **fields), score)


LOGIN = found(file_path="src/auth.py", start_line=12, summary="Checks a password.", content="def login(): ...")
SPEC = found("Sign-in", "requirement", 0.8, summary="Users sign in with a password.")
TALK = found("Why Argon2", "decision", 0.7, summary="It was slower.")
ODD = found("logo.svg", "image", 0.95)
ALL = [SPEC, ODD, TALK, LOGIN]


@pytest.mark.requirement("S2.assemble.entities", "S2.result.type", "S2.quality.tests")
def test_entities_give_text_sources_count_and_flag() -> None:
    given = list(ALL)
    result = assemble(ALL)
    assert given == ALL
    assert isinstance(result, ContextBuildResult)
    assert "Checks a password." in result.context
    assert result.estimated_tokens == estimate_tokens(result.context)
    assert result.was_truncated is False
    assert len(result.sources) == 4


@pytest.mark.requirement("S2.result.sources", "S2.source.fields")
def test_each_written_entity_has_a_source_in_order() -> None:
    result = assemble([SPEC, LOGIN], replace(PLAIN, max_chunks=1))
    (source,) = result.sources
    assert (source.entity_id, source.name, source.type) == ("id-login", "login", "function")
    assert (source.file, source.line, source.relevance) == ("src/auth.py", 12, 0.9)
    assert [s.name for s in assemble([SPEC, LOGIN]).sources] == ["login", "Sign-in"]


@pytest.mark.requirement("S2.order.by-score")
@pytest.mark.parametrize("group_by_type", [True, False])
def test_entities_go_by_score(group_by_type: bool) -> None:
    hits = [found(name, score=score) for name, score in [("a", 0.6), ("b", 0.9), ("c", 0.6), ("d", 0.8)]]
    result = assemble(hits, ContextBuildOptions(group_by_type=group_by_type, group_by_file=False))
    assert [source.name for source in result.sources] == ["b", "d", "a", "c"]


class TestGroups:
    @pytest.mark.requirement("S2.group.by-type", "S2.group.order", "S2.group.titles", "S2.group.heading")
    def test_sections_in_fixed_order_with_titles(self) -> None:
        text = assemble(ALL, ContextBuildOptions(group_by_type=True)).context
        titles = ["Relevant Code", "Related Documentation", "Previous Conversations", "Other Context"]
        assert lawbook.headings(text, "h2") == titles
        assert lawbook.headings(text) == ["login", "Sign-in", "Why Argon2", "logo.svg"]
        plain = assemble(ALL, replace(PLAIN, group_by_type=True)).context
        assert [line for line in plain.split("\n") if line.startswith("===")] == [
            f"=== {title} ===" for title in titles
        ]

    @pytest.mark.requirement("S2.group.categories")
    @pytest.mark.parametrize(
        ("types", "category"),
        [
            ("function method class interface type file module", "code"),
            ("document section requirement feature", "documentation"),
            ("session message decision", "conversation"),
            ("image person Function", "other"),
        ],
    )
    def test_types_have_categories(self, types: str, category: str) -> None:
        assert {categorize(name) for name in types.split()} == {category}

    @pytest.mark.requirement("S2.group.titles")
    def test_every_category_has_a_title(self) -> None:
        assert tuple(CATEGORY_TITLES) == CATEGORY_ORDER

    @pytest.mark.requirement("S2.group.by-type", "S2.group.heading-needs-entity")
    def test_a_section_without_entities_has_no_heading(self) -> None:
        text = assemble([LOGIN], ContextBuildOptions(group_by_type=True)).context
        assert lawbook.headings(text, "h2") == ["Relevant Code"]

    @pytest.mark.requirement("S2.group.heading-needs-entity")
    def test_a_heading_is_not_paid_for_when_its_entities_do_not_fit(self) -> None:
        big = found("big", "document", 0.8, summary="word " * 500)
        options = ContextBuildOptions(
            group_by_type=True, max_tokens=150, token_estimation=TokenEstimationMethod.TOKENIZER
        )
        text = assemble([LOGIN, big], options).context
        assert lawbook.headings(text, "h2") == ["Relevant Code"]

    @pytest.mark.requirement("S2.group.off")
    def test_without_groups_there_is_no_section_heading(self) -> None:
        text = assemble(ALL).context
        assert lawbook.headings(text, "h2") == []

    @pytest.mark.requirement("S2.group.separators")
    @pytest.mark.parametrize("format", [ContextFormat.MARKDOWN, ContextFormat.PLAIN])
    def test_blank_lines_between_entities_and_rules_between_sections(self, format: ContextFormat) -> None:
        two = found("logout", score=0.85, summary="Ends it.")
        text = assemble([LOGIN, two, SPEC], ContextBuildOptions(format=format, group_by_type=True)).context
        assert text.count("\n\n---\n\n") == 1
        heading = "## Relevant Code\n\n### login" if format is ContextFormat.MARKDOWN else "===\n\nlogin ["
        assert heading in text
        assert "\n\n### logout" in text or "\n\nlogout [" in text


class TestMarkdown:
    @pytest.mark.requirement("S2.markdown.heading", "S2.markdown.code")
    def test_name_place_summary_code(self) -> None:
        assert assemble([LOGIN]).context == (
            "### login\n*src/auth.py:12*\n\nChecks a password.\n\n```python\ndef login(): ...\n```"
        )

    @pytest.mark.requirement("S2.markdown.location")
    @pytest.mark.parametrize(
        ("path", "line", "place"),
        [
            ("a.py", 3, "a.py:3"),
            ("a.py", None, "a.py"),
            ("a.py", 0, "a.py"),
            (None, 3, "function"),
            ("", None, "function"),
        ],
    )
    def test_the_place_is_as_exact_as_can_be(self, path: str | None, line: int | None, place: str) -> None:
        assert f"\n*{place}*\n" in assemble([found(file_path=path, start_line=line, summary="x")]).context

    @pytest.mark.requirement("S2.markdown.code")
    def test_a_fence_inside_the_content_does_not_end_it(self) -> None:
        content = "```\nx\n```"
        assert lawbook.fences(assemble([found(content=content)]).context) == [content]

    @pytest.mark.requirement("S2.markdown.code-limit")
    def test_content_is_cut_after_500_characters_and_says_so(self) -> None:
        content = "0123456789" * 60
        result = assemble([found(content=content)])
        (block,) = lawbook.fences(result.context)
        shown, mark = block.rsplit("\n", 1)
        assert shown == content[:500]
        assert mark.startswith("// ... (truncated)")
        assert "100 more characters" in mark
        assert 'expand("id-login")' in mark
        assert result.expand("id-login") == content
        assert "(truncated)" not in assemble([found(content=content[:500])]).context

    @pytest.mark.requirement("S2.markdown.code-off")
    def test_content_can_be_left_out(self) -> None:
        options = ContextBuildOptions(include_code_content=False)
        assert "def login" not in assemble([LOGIN], options).context
        assert lawbook.fences(assemble([found(content="x = 1")], options).context) == []

    def test_a_summary_cannot_pose_as_a_heading_or_open_anything(self) -> None:
        summary = "# One\n## Two\n```\n- a\n> b\n<script>\n1. x\n---\n===\n[a]: b\n    code"
        text = assemble([found(summary=summary), found("next", summary="fine")]).context
        assert lawbook.headings(text) == ["login", "next"]
        assert lawbook.fences(text) == []
        kinds = {token.type for token in lawbook.markdown_blocks(text)}
        assert kinds == {"heading_open", "heading_close", "paragraph_open", "paragraph_close"}


@pytest.mark.requirement("S2.language.detect")
@pytest.mark.parametrize(
    ("path", "language"),
    [
        ("a.ts", "typescript"),
        ("a.tsx", "typescript"),
        ("a.js", "javascript"),
        ("a.jsx", "javascript"),
        ("x/a.PY", "python"),
        ("a.go", "go"),
        ("a.rs", "rust"),
        ("A.java", "java"),
        ("a.unknown", None),
        ("Makefile", None),
        ("dir.py/file", None),
        ("", None),
        (None, None),
    ],
)
def test_the_language_is_told_by_the_extension(path: str | None, language: str | None) -> None:
    assert detect_language(path) == language


class TestXml:
    OPTIONS = ContextBuildOptions(format=ContextFormat.XML)

    @pytest.mark.requirement("S2.xml.entity")
    def test_an_element_with_the_summary_or_the_content(self) -> None:
        root = lawbook.xml_root(assemble([LOGIN, found("bare", content="x = 1", score=0.6)], self.OPTIONS).context)
        first, second = root
        assert dict(first.attrib) == {"name": "login", "type": "function", "file": "src/auth.py", "line": "12"}
        assert first.text == "\nChecks a password.\n"
        assert (second.text, dict(second.attrib)) == ("\nx = 1\n", {"name": "bare", "type": "function"})

    @pytest.mark.requirement("S2.xml.limit")
    @pytest.mark.parametrize("field", ["summary", "content"])
    def test_a_long_text_is_cut_and_marked(self, field: str) -> None:
        fields: dict[str, Any] = {field: "x" * 777}
        result = assemble([found(**fields)], self.OPTIONS)
        (entity,) = lawbook.xml_root(result.context)
        assert entity.text == f"\n{'x' * 500}\n"
        assert entity.get("truncated") == "1 lines, 277 characters"
        assert len(result.expand(entity.get("expand"))) == 777

    @pytest.mark.requirement("S2.xml.escape")
    def test_nothing_can_end_its_element(self) -> None:
        evil = "</entity></context>\"'<&>]]>"
        hit = EntityResult(Entity("e", evil, evil, evil, 1, evil))
        root = lawbook.xml_root(assemble([hit], replace(self.OPTIONS, include_sources=True)).context)
        entity, sources = root
        assert (entity.get("name"), entity.get("type"), entity.get("file")) == (evil, evil, evil)
        assert entity.text == f"\n{evil}\n"
        assert sources[0].get("name") == evil

    @pytest.mark.requirement("S2.xml.sections")
    def test_sections_are_elements_of_one_root(self) -> None:
        root = lawbook.xml_root(assemble(ALL, replace(self.OPTIONS, group_by_type=True, include_sources=True)).context)
        assert [child.tag for child in root] == ["section"] * 4 + ["sources"]
        assert [child.get("name") for child in root[:4]] == list(CATEGORY_TITLES.values())
        assert [len(child) for child in root] == [1, 1, 1, 1, 4]
        assert (root.text or "").strip() == ""


@pytest.mark.requirement("S2.plain.entity")
def test_a_plain_entity_is_a_line_and_its_text() -> None:
    long = "s" * 900
    hits = [LOGIN, found("b", score=0.8, file_path="b.py", content=long), found("c", "idea", 0.7)]
    text = assemble(hits, PLAIN).context
    assert text == f"login [src/auth.py:12]\nChecks a password.\n\nb [b.py:0]\n{long}\n\nc [idea]"


class TestSources:
    @pytest.mark.requirement("S2.sources.footer", "S2.sources.markdown")
    def test_markdown(self) -> None:
        text = assemble(ALL, ContextBuildOptions(include_sources=True)).context
        assert text.endswith(
            "\n\n---\n**Sources:**\n- logo.svg (image)\n- login (src/auth.py:12)\n"
            "- Sign-in (requirement)\n- Why Argon2 (decision)"
        )
        assert "Sources" not in assemble(ALL).context

    @pytest.mark.requirement("S2.sources.xml")
    def test_xml(self) -> None:
        text = assemble([SPEC], ContextBuildOptions(format=ContextFormat.XML, include_sources=True)).context
        assert '<sources>\n  <source name="Sign-in" type="requirement" />\n</sources>' in text

    @pytest.mark.requirement("S2.sources.plain")
    def test_plain(self) -> None:
        text = assemble([SPEC, TALK], replace(PLAIN, include_sources=True)).context
        assert text.endswith("\n\nSources:\n  - Sign-in\n  - Why Argon2")

    @pytest.mark.requirement("S2.sources.ten")
    def test_no_more_than_ten_are_listed(self) -> None:
        hits = [found(f"f{i}", score=0.9 - i / 100) for i in range(12)]
        result = assemble(hits, ContextBuildOptions(include_sources=True, max_chunks=12))
        assert result.context.count("\n- f") == 10
        assert len(result.sources) == 12

    @pytest.mark.requirement("S2.sources.fits")
    def test_the_list_gives_way_when_nothing_else_would_fit(self) -> None:
        options = ContextBuildOptions(include_sources=True, token_estimation=TokenEstimationMethod.TOKENIZER)
        alone = assemble([SPEC], replace(options, include_sources=False)).estimated_tokens
        result = assemble([SPEC], replace(options, max_tokens=alone))
        assert "Sources" not in result.context
        assert result.chunks_included == 1
        assert len(result.sources) == 1
        assert "did not fit" in result.notes[0]

    @pytest.mark.requirement("S2.sources.fits")
    def test_the_list_counts_towards_the_budget(self) -> None:
        options = ContextBuildOptions(include_sources=True, token_estimation=TokenEstimationMethod.TOKENIZER)
        needed = assemble(ALL, options).estimated_tokens
        assert assemble(ALL, replace(options, max_tokens=needed)).context == assemble(ALL, options).context
        assert assemble(ALL, replace(options, max_tokens=needed - 1)).chunks_included == 3


@pytest.mark.requirement("S2.budget.stop", "S2.tokens.estimate")
def test_stop_ends_the_later_sections_too() -> None:
    big = found("big", "function", 0.85, summary="word " * 300)
    options = ContextBuildOptions(max_tokens=100, group_by_type=True, overflow=OverflowPolicy.STOP)
    result = assemble([LOGIN, big, SPEC], options)
    assert [source.name for source in result.sources] == ["login"]
    assert result.was_truncated
    assert result.estimated_tokens == estimate_tokens(result.context) <= 100
