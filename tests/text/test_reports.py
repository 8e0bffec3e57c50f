"""Bug reports: what is boilerplate, and the files of stack traces."""

from __future__ import annotations

import pytest

from satchel.text.reports import linked_files, trace_files, without_boilerplate
from tests.support.effort import no_blow_up


@pytest.mark.parametrize(
    "line",
    ["### Describe the bug", "**To Reproduce**", "## Steps to reproduce the problem", "### Expected behavior",
     "- [x] I have searched the existing issues", "_No response_", "<!-- Please update first -->", "numpy: 1.11.0",
     "### What version of Home Assistant Core has the issue?", "- OS: Ubuntu 20.04", "https://example.org/some/page"],
)  # fmt: skip
def test_the_lines_of_a_template_are_left_out(line: str) -> None:
    left = without_boilerplate(f"Login fails\n{line}\nThe token is lost")
    assert left.split() == "Login fails The token is lost".split()


@pytest.mark.parametrize("line", ["## The cache is never cleared", "- the retry handler", "timeout: never applied"])
def test_the_reporter_s_own_lines_stay(line: str) -> None:
    assert line in without_boilerplate(f"Title\n{line}\nend")


def test_the_innermost_frame_of_a_python_trace_is_first() -> None:
    trace = (
        'Traceback:\n  File "/home/me/app/main.py", line 3, in go\n  File "/home/me/app/db/pool.py", line 9, in get\n'
    )
    assert trace_files(trace) == ("/home/me/app/db/pool.py", "/home/me/app/main.py")


@pytest.mark.parametrize(
    ("frame", "file"),
    [("    at connect (/srv/app/lib/socket.js:10:5)", "/srv/app/lib/socket.js"),
     ("\tat org.acme.io.Reader.read(Reader.java:42)", "org/acme/io/Reader.java"),
     ("app/models/user.rb:12:in `save'", "app/models/user.rb")],
)  # fmt: skip
def test_frames_of_other_languages_are_files_too(frame: str, file: str) -> None:
    assert file in trace_files(f"Error: boom\n{frame}\n")


def test_a_link_to_a_file_of_a_repository_names_the_file() -> None:
    text = "see [here](https://github.com/acme/tool/blob/main/src/tool/core.py#L12)"
    assert linked_files(text) == ["src/tool/core.py"]


@pytest.mark.parametrize(
    "text", ["\n- " * 9000, "### " * 9000, "\n**" * 9000, "<!--" * 9000, "at a." * 9000, 'File "' * 9000, "<a " * 9000]
)
def test_no_report_takes_long(text: str) -> None:
    with no_blow_up("a report"):
        without_boilerplate(text)
        trace_files(text)
