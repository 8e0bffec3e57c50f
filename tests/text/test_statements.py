"""Complete parts of code: statements by layout, with the heads of the statements around them."""

from __future__ import annotations

import pytest
from hypothesis import example, given
from hypothesis import strategies as st

from satchel.text.statements import CompletePart, statements

LONG_BODY = "\n".join(f"        step_{i}();" for i in range(14))

C_FUNCTION = f"""\
int f(int a) {{
    int x = 1;
#ifdef FOO
    if (a) {{
        x = 2;
    }} else {{
        y();
    }}
#endif
    for (;;) {{
{LONG_BODY}
    }}
    return x;
}}"""


def parts_of(code: str) -> list[tuple[str, list[str]]]:
    """The first line of each part, with the first lines of the heads around it, the innermost first."""
    lines = code.split("\n")
    return [(_first_line(lines, part), _heads(lines, part)) for part in statements(lines, 1, len(lines))]


def _first_line(lines: list[str], part: CompletePart) -> str:
    return lines[part.lines.first - 1].strip()


def _heads(lines: list[str], part: CompletePart) -> list[str]:
    heads = []
    while part.parent is not None:
        part = part.parent
        heads.append(_first_line(lines, part))
    return heads


def test_statements_of_a_function_with_braces_stand_side_by_side() -> None:
    parts = parts_of(C_FUNCTION)
    assert [first for first, heads in parts if heads == ["int f(int a) {"]] == ["int x = 1;", "#ifdef FOO", "return x;"]


def test_statements_of_a_loop_have_the_loop_and_the_function_above_them() -> None:
    assert ("step_7();", ["#endif", "int f(int a) {"]) in parts_of(C_FUNCTION)


def test_a_closing_bracket_belongs_to_the_last_statement() -> None:
    lines = C_FUNCTION.split("\n")
    last = statements(lines, 1, len(lines))[-1]
    assert lines[last.lines.first - 1 : last.lines.last] == ["    return x;", "}"]


@pytest.mark.parametrize("end", ["", "end", "}"])
def test_a_branch_is_shown_with_its_own_head(end: str) -> None:
    body = "\n".join(f"  step_{i}" for i in range(14))
    parts = parts_of(f"if ready\n{body}\nelse\n  give_up\n  leave\n{end}".rstrip())
    assert ("give_up", ["else", "if ready"]) in parts
    assert ("step_3", ["if ready"]) in parts


def test_a_bracket_on_its_own_line_continues_the_signature_above() -> None:
    parts = parts_of(f"impl<T> Json<T>\nwhere\n    T: Send,\n{{\n    fn f() {{\n{LONG_BODY}\n    }}\n}}")
    assert ("step_3();", ["fn f() {", "{", "impl<T> Json<T>"]) in parts


def test_the_head_of_a_branch_may_go_on_in_the_next_line() -> None:
    body = "\n".join(f"    step_{i}();" for i in range(14))
    parts = parts_of(f"try\n{{\n{body}\n}}\ncatch (Error e)\n{{\n    give_up();\n    leave();\n}}")
    assert ("give_up();", ["catch (Error e)", "try"]) in parts


CODE_LINES = st.builds(
    "{}{}".format,
    st.sampled_from(["", "  ", "    ", "        ", "            "]),
    st.sampled_from(
        ["x = 1", "if x {", "}", "else:", "// why", "#ifdef X", "", "end", "{", ")", "@decorated", "case 1:"]
    ),
)


@given(st.lists(CODE_LINES, min_size=1, max_size=60))
@example(["if x {", *["    x = 1"] * 14, "}"])
def test_law_parts_and_heads_cover_every_line_once_and_in_order(lines: list[str]) -> None:
    shown: list[int] = []
    heads: dict[tuple[int, int], CompletePart] = {}
    for part in statements(lines, 1, len(lines)):
        shown += [n for n in range(part.lines.first, part.lines.last + 1) if lines[n - 1].strip()]
        above = part.parent
        while above is not None:
            assert above.lines.last < part.lines.first
            heads[above.lines.first, above.lines.last] = above
            above = above.parent
    assert shown == sorted(shown)
    of_heads = [n for first, last in heads for n in range(first, last + 1) if lines[n - 1].strip()]
    assert sorted(shown + of_heads) == [n for n, line in enumerate(lines, 1) if line.strip()]


DOCSTRING = [
    "def retry(call):",
    '    """Call again and again.',
    "",
    *[f"    The {word} paragraph says something of its own." for word in ("first",)],
    "",
    *["    Another paragraph, in two lines,", "    ends here."],
    "",
    *[f"    - item {number}" for number in range(4)],
    '    """',
    "    return call()",
]


def test_a_long_docstring_is_divided_into_paragraphs_below_the_signature() -> None:
    lines = DOCSTRING[:5] + [""] * 8 + DOCSTRING[5:]
    parts = parts_of("\n".join(lines))
    firsts = [first for first, _ in parts]
    assert "Another paragraph, in two lines," in firsts
    assert "ends here." not in firsts
    assert parts[-1] == ("return call()", ["def retry(call):"])


@pytest.mark.parametrize("mark", ["//", "#", "--", " *"])
def test_a_long_comment_is_divided_into_paragraphs(mark: str) -> None:
    paragraphs = [
        f"{mark} Paragraph {number} has two lines,\n{mark} and this is its second.\n{mark}" for number in range(6)
    ]
    opening, closing = ("/*\n", "\n */") if mark == " *" else ("", "")
    firsts = [first for first, _ in parts_of(f"{opening}{chr(10).join(paragraphs)}{closing}\nint answer = 42;")]
    assert f"{mark.strip()} Paragraph 3 has two lines," in firsts
    assert not any("second" in first for first in firsts)


def test_a_long_example_is_shown_by_the_statement_between_its_fences() -> None:
    example = "\n".join(f"call_{number}()\n" for number in range(20))
    lines = f"Do this:\n\n```python\n{example}```\n".split("\n")
    parts = statements(lines, 1, len(lines), is_prose=True)
    heads = {_first_line(lines, part): _heads(lines, part) for part in parts}
    assert heads["call_7()"] == ["```", "```python", "Do this:"]
