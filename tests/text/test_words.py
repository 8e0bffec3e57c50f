"""Words of identifiers and of scripts without spaces."""

import pytest

from satchel.text.words import is_caseless, parts_of, runs_of


@pytest.mark.parametrize(
    ("identifier", "runs", "parts"),
    [
        ("getUserByID2", ("get", "user", "by", "id", "2"), ("get", "user", "by", "id", "2")),
        ("Größe_Änderung", ("große", "anderung"), ("große", "anderung")),
        ("соединение", ("соединение",), ("соединение",)),
        ("数据库连接", ("数据库连接",), ("数据", "据库", "库连", "连接")),
        ("解析HTTPヘッダ", ("解析", "http", "ヘッタ"), ("解析", "http", "ヘッ", "ッタ")),
        ("연결을", ("연결을",), ("연결", "결을")),
    ],
)
def test_runs_keep_caseless_scripts_whole_where_parts_are_pairs_of_letters(
    identifier: str, runs: tuple[str, ...], parts: tuple[str, ...]
) -> None:
    assert runs_of(identifier) == runs
    assert parts_of(identifier) == parts


def test_a_long_run_without_spaces_is_text_and_a_long_word_with_case_is_data() -> None:
    assert runs_of("数" * 100) == ("数" * 100,)
    assert runs_of("я" * 100) == ()


def test_only_scripts_without_upper_and_lower_case_are_caseless() -> None:
    assert [is_caseless(run) for run in ("数据", "연결", "اتصال", "größe", "поток", "12")] == [True] * 3 + [False] * 3
