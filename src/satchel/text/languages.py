"""The language of a question, recognized by its script or its function words.

Only languages other than English that the packaged embedder knows are recognized: their questions find English text by
meaning, where no word of the question occurs in the text.
"""

from __future__ import annotations

import re
from typing import Final

_LATIN: Final = {
    "de": (
        "aber als auf aus bei beim das dass dem den der des die durch ein eine einem einen einer eines für "
        "gibt im ist kann mit nach nicht oder ohne sich sind um und vom von warum welche welcher welches wenn "
        "werden wie wird wo zu zum zur über"
    ),
    "fr": (
        "afin au aux avec ces cette comment dans des deux du elle en entre est et il je la le les leur "
        "lorsque ne nous ou où par pas peut plus pour pourquoi quand que quel quelle qui sans ses sont sur un "
        "une vers à"
    ),
    "es": (
        "al aquí con cuando cuál cuándo cómo de del desde donde dos dónde el ella en entre es esta este hay "
        "la las lo los muy más para pero por porque que qué se según si sin sobre su sus un una y"
    ),
    "pt": (
        "ao aos até com como da das de depois do dois dos duas ela em entre essa esse está mais mas na nas no "
        "nos não o onde os ou para pela pelo por porque qual quando que quem se sem sobre sua são um uma às é"
    ),
}
"""Frequent words without a meaning of their own."""

_ENGLISH: Final = frozenset(
    (
        "a and are as at be by can do does for from how in is it not of on or that the this to what when "
        "where which why with"
    ).split()
)
_FUNCTION_WORDS: Final = {language: frozenset(words.split()) for language, words in _LATIN.items()}

_SCRIPTS: Final = {
    "ru": re.compile(r"[\u0400-\u04ff]"),
    "ar": re.compile(r"[\u0600-\u06ff]"),
    "ko": re.compile(r"[\uac00-\ud7af\u1100-\u11ff]"),
    "ja": re.compile(r"[\u3040-\u30ff]"),
    "zh": re.compile(r"[\u4e00-\u9fff]"),
}
"""The letters of a script; Japanese is looked for before Chinese, whose characters it shares."""

_WORD: Final = re.compile(r"[^\W\d_]+")

# Of the letters of a question: names of programs and files are in Latin letters in every language.
_MIN_SCRIPT_SHARE: Final = 0.2

# Fewer words may be names, or words that two languages share.
_MIN_FUNCTION_WORDS: Final = 2

# Of the distinct words of a question: a long report in English quotes words of everything.
_MIN_FUNCTION_SHARE: Final = 0.12

# Letters that English words do not have count as a function word.
_ACCENTED: Final = re.compile(r"[à-öø-ÿ]", re.IGNORECASE)

# Letters or function words of a language in a text that is written in it, rather than quoting a word.
_MIN_LETTERS_IN_TEXT: Final = 12
_MIN_WORDS_IN_TEXT: Final = 4


def language_of(question: str) -> str:
    """The code of a question's language (`de`, `zh`); empty for English and for languages that are not known.

    >>> language_of("wie wird die Anfrage nach einem Fehler wiederholt")
    'de'
    """
    letters = sum(map(str.isalpha, question))
    for language, letter in _SCRIPTS.items():
        if len(letter.findall(question)) > _MIN_SCRIPT_SHARE * letters:
            return language
    words = {word.lower() for word in _WORD.findall(question)}
    counts = {language: len(words & known) for language, known in _FUNCTION_WORDS.items()}
    best = max(counts, key=lambda language: counts[language])
    count = counts[best] + bool(counts[best] and _ACCENTED.search(question))
    least = max(_MIN_FUNCTION_WORDS, _MIN_FUNCTION_SHARE * len(words), 1 + len(words & _ENGLISH))
    return best if count >= least else ""


def is_written_in(text: str, language: str) -> bool:
    """True if a text has several words of the language."""
    if letter := _SCRIPTS.get(language):
        return len(letter.findall(text)) >= _MIN_LETTERS_IN_TEXT
    words = {word.lower() for word in _WORD.findall(text)}
    return len(words & (_FUNCTION_WORDS[language] - _ENGLISH)) >= _MIN_WORDS_IN_TEXT


_LANGUAGE_FOLDER: Final = re.compile(r"(?<![^/])[a-z]{2}(?:[-_](?:[A-Z]{2}|[a-z]{2}|[Hh]an[st]))?/")
"""A folder named by a language: `de/`, `pt-br/`, `zh-hant/`."""
_ENGLISH_FOLDER: Final = re.compile(r"(?<![^/])en(?:[-_][a-zA-Z]{2})?/")


def shared_path(path: str) -> str:
    """The path that the translations of a file have in common: `docs/*/index.md` for `docs/de/index.md`."""
    return _LANGUAGE_FOLDER.sub("*/", path)


def is_in_english(path: str) -> bool:
    """True if a folder says that the file is in English."""
    return bool(_ENGLISH_FOLDER.search(path))
