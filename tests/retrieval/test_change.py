"""Reading diffs: hunks of every program, and the lines of a text that they touch, applied or not."""

from __future__ import annotations

import difflib

import pytest
from hypothesis import given
from hypothesis import strategies as st

from satchel.retrieval.change import Hunk, defined_names, read_diff, touched_lines

BEFORE = "import os\n\n\ndef delay(n):\n    return 2 ** n\n\n\ndef pause(n):\n    return delay(n)\n"
AFTER = "import os\n\n\ndef delay(n, most):\n    return min(most, 2 ** n)\n\n\ndef pause(n):\n    return delay(n)\n"
GIT = """diff --git a/shop/retry.py b/shop/retry.py
index 123..456 100644
--- a/shop/retry.py
+++ b/shop/retry.py
@@ -1,7 +1,7 @@ class Retry
 import os


-def delay(n):
-    return 2 ** n
+def delay(n, most):
+    return min(most, 2 ** n)


\\ No newline at end of file
diff --git a/gone.py b/gone.py
--- a/gone.py
+++ /dev/null
@@ -1 +0,0 @@
-x = 1
diff --git "a/\\303\\244.py" "b/\\303\\244.py"
--- "a/\\303\\244.py"
+++ "b/\\303\\244.py"\t2026-11-19
@@ -0,0 +1 @@
+y = 2
"""


def diffed(before: str, after: str) -> list[Hunk]:
    lines = difflib.unified_diff(before.splitlines(), after.splitlines(), "a/x.py", "b/x.py", lineterm="")
    return read_diff("\n".join(lines))


def test_the_hunks_of_git_are_read_with_their_paths() -> None:
    changed, gone, quoted = read_diff(GIT)
    assert (changed.old_path, changed.path, changed.first) == ("shop/retry.py", "shop/retry.py", 1)
    assert changed.signed("+") == ["def delay(n, most):", "    return min(most, 2 ** n)"]
    assert changed.signed("-") == ["def delay(n):", "    return 2 ** n"]
    assert (gone.old_path, gone.path, gone.lines) == ("gone.py", "", ("-x = 1",))
    assert quoted.path == "ä.py"


@pytest.mark.parametrize(("text", "lines"), [(BEFORE, [4, 5]), (AFTER, [4, 5]), ("# new\n" * 3 + AFTER, [7, 8])])
def test_the_touched_lines_are_found_before_and_after_and_elsewhere(text: str, lines: list[int]) -> None:
    (hunk,) = diffed(BEFORE, AFTER)
    assert touched_lines(hunk, text.split("\n")) == lines


def test_a_hunk_of_another_text_touches_nothing() -> None:
    (hunk,) = diffed(BEFORE, AFTER)
    assert touched_lines(hunk, ["nothing", "of it"]) == []


@pytest.mark.parametrize("text", ["", "no diff", "@@ -1 +1 @@", "--- a\n+++ b\n@@ -9,9 +9,9 @@\n+x", "@@ -x +y @@\n+1"])
def test_what_is_no_diff_has_no_changed_lines(text: str) -> None:
    assert [line for hunk in read_diff(text) for line in hunk.signed("-")] == []


LINES = st.lists(st.sampled_from(["a", "b", "  c", "", "d = 1"]), max_size=12)


@given(LINES, LINES)
def test_every_added_line_of_a_diff_is_touched_where_it_stands(before: list[str], after: list[str]) -> None:
    hunks = diffed("\n".join(before), "\n".join(after))
    added = [line for hunk in hunks for line in hunk.signed("+")]
    touched = [after[number - 1] for hunk in hunks for number in touched_lines(hunk, after) if number <= len(after)]
    assert set(added) <= set(touched)


@given(st.text(alphabet='@-+ ,0123456789abdeift/\n\\"', max_size=200))
def test_no_text_stops_the_reader(text: str) -> None:
    for hunk in read_diff(text):
        touched_lines(hunk, text.split("\n"))


def test_names_are_known_in_many_languages() -> None:
    lines = ["def delay(n):", "fn next_id() {", "func (s *Store) Get(k string)", "export class Backoff {", "x = 1"]
    assert defined_names(lines) == ["delay", "next_id", "Get", "Backoff"]
