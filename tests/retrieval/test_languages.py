"""A question in another language finds English code by meaning, and text in its own language by words."""

from __future__ import annotations

from pathlib import Path

import pytest

import satchel

FILES = {
    "net/retry.py": "def retry_request(request, attempts):\n    '''Send the request again after an error.'''\n"
    "    for attempt in range(attempts):\n        try:\n            return send(request)\n"
    "        except TimeoutError:\n            wait(attempt)\n",
    "ui/colors.py": "def paint_button(button, color):\n    '''Choose a button's color.'''\n    button.fill(color)\n",
    "store/users.py": "def delete_user(user):\n    '''Remove a user and all of the user's files.'''\n    drop(user)\n",
    "text/parse.py": "def parse_date(text):\n    '''Read a date from a text.'''\n    return text.split('-')\n",
}


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    for path, text in FILES.items():
        (tmp_path / "work" / path).parent.mkdir(parents=True, exist_ok=True)
        (tmp_path / "work" / path).write_text(text)
    return tmp_path / "work"


@pytest.mark.parametrize(
    "question",
    [
        "wie wird eine Anfrage nach einem Fehler noch einmal gesendet",
        "как повторить запрос после ошибки",
        "出错后如何重新发送请求",
        "エラーの後にリクエストを再送信する",
    ],
)
def test_a_question_in_another_language_finds_english_code(folder: Path, question: str) -> None:
    with satchel.open(folder, index_dir=str(folder.parent / "index")) as client:
        context = client.build(question, token_budget=1000)
    assert context.sources[0].path == "net/retry.py"


def test_text_in_the_language_of_the_question_is_found_by_its_words(folder: Path) -> None:
    german = "# Anfragen\n\nWie eine Anfrage nach einem Fehler wiederholt wird, steht in der Datei mit den Regeln.\n"
    (folder / "hinweise.md").write_text(german)
    with satchel.open(folder, index_dir=str(folder.parent / "index")) as client:
        context = client.build("wie wird die Anfrage nach einem Fehler wiederholt", token_budget=1000)
    assert context.sources[0].path == "hinweise.md"


def test_a_text_in_many_languages_is_found_once_in_that_of_the_question(tmp_path: Path) -> None:
    folder = tmp_path / "work"
    texts = {
        "en": "# Moorings\n\nA mooring is booked in the harbour office before noon.\n",
        "de": "# Liegeplätze\n\nEin Liegeplatz (mooring) wird im Hafenbüro (harbour office) vor Mittag gebucht.\n",
        "fr": "# Amarrages\n\nUn amarrage (mooring) se réserve au bureau du port (harbour office) avant midi.\n",
    }
    for language, text in texts.items():
        (folder / "docs" / language).mkdir(parents=True)
        (folder / "docs" / language / "moorings.md").write_text(text)
    (folder / "docs" / "en" / "fees.md").write_text("# Fees\n\nA mooring costs five a night.\n")
    with satchel.open(folder, index_dir=tmp_path / "index") as client:
        english = client.search("how is a mooring booked in the harbour office").hits
        german = client.search("Wie wird ein Liegeplatz im Hafenbüro gebucht und wann?").hits
    assert english[0].path == "docs/en/moorings.md"
    assert all(hit.relevance < english[0].relevance / 100 for hit in english if "/en/" not in hit.path)
    assert german[0].path == "docs/de/moorings.md"
