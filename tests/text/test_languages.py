"""The language of a question is recognized, and English is never taken for another."""

from __future__ import annotations

import pytest

from satchel.text.languages import is_written_in, language_of


@pytest.mark.parametrize(
    ("question", "language"),
    [
        ("wie wird eine Anfrage nach einem Fehler wiederholt", "de"),
        ("comment une requête est-elle répétée après une erreur", "fr"),
        ("cómo se repite una solicitud después de un error", "es"),
        ("como uma requisição é repetida depois de um erro", "pt"),
        ("как повторяется запрос после ошибки", "ru"),
        ("请求失败后如何重试", "zh"),
        ("リクエストは失敗後にどのように再試行されますか", "ja"),
        ("오류 후 요청은 어떻게 다시 시도되나요", "ko"),
        ("كيف تتم إعادة المحاولة بعد الخطأ", "ar"),
        ("how is a request retried after an error", ""),
        ("send an e-mail through a mail server", ""),
        ("Backoff.delay", ""),
        ("Où est le café? is what the test types into the form, and then it checks the answer of the server", ""),
    ],
)
def test_a_question_is_in_its_language(question: str, language: str) -> None:
    assert language_of(question) == language


def test_a_text_that_quotes_a_word_is_not_written_in_its_language() -> None:
    assert is_written_in("Wie die Anfrage nach einem Fehler wiederholt wird, steht in der Datei.", "de")
    assert not is_written_in("greeting = 'guten Tag und auf Wiedersehen'", "de")
    assert is_written_in("Запрос повторяется после ошибки", "ru")
    assert not is_written_in("mir = 'мир'", "ru")
