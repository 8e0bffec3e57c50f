"""Patterns of paths: what they match, and that no pattern takes long."""

from __future__ import annotations

import pytest

from satchel.text.patterns import matches
from tests.support.effort import no_blow_up


@pytest.mark.parametrize(
    ("path", "patterns", "let_through"),
    [
        ("src/a.py", ["*.py"], True),
        ("src/a.py", ["src/*.py"], True),
        ("src/x/a.py", ["src/*.py"], False),
        ("src/x/a.py", ["src/**/*.py"], True),
        ("src/a.py", ["src/**/*.py"], True),
        ("src/a.py", ["**/a.py"], True),
        ("a.py", ["**/a.py"], True),
        ("src/a.py", ["/src/*"], True),
        ("./src/a.py", ["src/a.py"], True),
        ("src\\a.py", ["src/*.py"], True),
        ("docs/x.md", ["docs/"], True),
        ("a.py", ["?.py"], True),
        ("ab.py", ["?.py"], False),
        ("a.py", ["[ab].py"], True),
        ("a.py", ["*.py", "!a.*"], False),
        ("b.py", ["!a.*"], True),
        ("a.py", ["!a.*", "*.py"], True),
        ("A.PY", ["*.py"], False),
    ],
)
def test_patterns(path: str, patterns: list[str], let_through: bool) -> None:
    assert matches(path, patterns) is let_through


def test_a_hostile_pattern_takes_no_time() -> None:
    # Forms that try every way to share the letters out among the stars never end.
    with no_blow_up("a pattern"):
        assert not matches("a" * 2000 + "b", ["*a" * 40 + "c"])
        assert not matches("/".join("a" * 200), ["/".join(["**", "a"] * 40 + ["c"])])


def test_a_pattern_of_many_stars_takes_no_time() -> None:
    # Forms that try every way to share the folders out among the stars never end.
    with no_blow_up("a pattern"):
        for i in range(20_000):
            assert not matches(f"src/deep/er/m{i}.py", ["**/" * 160 + "nothing.py"])
        assert not matches("a/" * 200 + "m.py", ["**/" * 160 + "nothing.py"])
    assert matches("src/a/b.py", ["**/**/**/b.py"])
    assert matches("src/a/b.py", ["src/**/**"])
    assert not matches("b.py", ["a/b/c/d/**/b.py"])
