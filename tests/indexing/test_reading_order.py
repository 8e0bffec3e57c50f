"""The order of reading: what the question names, what resembles it, then what is central."""

from __future__ import annotations

import pytest

from satchel.indexing.reading_order import reading_order
from satchel.indexing.walk import FoundFile

PATHS = [
    "src/app/net/retry_policy.py",
    "src/app/routes.py",
    "src/app/main.py",
    "README.md",
    "docs/guide.md",
    "tests/test_routes.py",
    "src/app/net/wire_test.go",
    "vendor/lib/core.py",
    "locale/de/messages.py",
    "assets/blob.xyz",
]


def order(question: str = "", paths: list[str] = PATHS) -> list[str]:
    return [file.path for file in reading_order([FoundFile(path, 1, 1, 1) for path in paths], question)]


def test_without_a_question_what_is_central_comes_first() -> None:
    assert order() == [
        "README.md",
        "docs/guide.md",
        "src/app/main.py",
        "src/app/routes.py",
        "src/app/net/retry_policy.py",
        "tests/test_routes.py",
        "src/app/net/wire_test.go",
        "assets/blob.xyz",
        "locale/de/messages.py",
        "vendor/lib/core.py",
    ]
    assert order(paths=PATHS[::-1]) == order()


@pytest.mark.parametrize(
    ("question", "first"),
    [
        ("how are the policies for retries chosen?", "src/app/net/retry_policy.py"),
        ("what does vendor/lib/core.py do with routes", "vendor/lib/core.py"),
        (r"what is in .\assets\blob.xyz", "assets/blob.xyz"),
        ("where does a route come from", "src/app/routes.py"),
        ("what is this", "README.md"),
    ],
)
def test_what_the_question_names_comes_before_what_resembles_it(question: str, first: str) -> None:
    assert order(question)[0] == first


def test_rare_words_of_paths_count_more_than_common_ones() -> None:
    paths = [f"src/parser/part{i}.py" for i in range(20)] + ["src/writer.py"]
    assert order("parser and writer", paths)[0] == "src/writer.py"
