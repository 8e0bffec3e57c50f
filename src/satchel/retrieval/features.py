"""The features by which files are ranked: each has a name, a meaning and a weight, and can be shown to whoever asks.

The evidence comes from the store; what is added here is what the question wants and what kind of file each one is.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from typing import Final

from satchel.models.file_kind import kind_of
from satchel.retrieval.query import Question

FEATURES: Final[Mapping[str, str]] = {
    "file_text": "the question's words, in the whole file",
    "file_coverage": "the share of the question's words that the file holds",
    "best_text": "the question's words, in the file's best piece",
    "best_coverage": "the share of the question's words that one piece holds",
    "best_name": "the question's words in the names that a piece defines",
    "best_name_precision": "the share of such a name that the question says",
    "best_meaning": "likeness of meaning, of the best piece",
    "second_text": "coherence: the words of the second-best piece",
    "second_meaning": "coherence: the meaning of the second-best piece",
    "stem": "the question's words in the file's name",
    "stem_precision": "the share of the file's name that the question says",
    "stem_whole": "the question says the whole of the file's name",
    "near": "the share of the question's words that two sentences of a passage hold",
    "pairs": "the question's neighbouring words, as neighbours in a passage",
    "figures": "the share of a passage's words that are numbers, where the question asks for one",
    "title": "a document's name says what the question calls it",
    "folder": "the question's words in the folders' names",
    "folder_precision": "the share of the folders' names that the question says",
    "defines": "defines a name that the question mentions",
    "defines_symbol": "defines the very symbol that is the question",
    "defines_long": "defines a name from a long report",
    "path_named": "the question gives its path",
    "module_named": "the question gives its module",
    "central": "how many files use what it defines",
    "recent": "how recently it was changed, among the candidates",
    "size": "how long it is",
    "depth": "how deep it lies",
    "test": "a test, and no test was asked for",
    "test_wanted": "a test, and tests were asked for",
    "example": "an example, and none was asked for",
    "docs": "in a folder of documentation, which was not asked for",
    "prose": "prose, and no documentation was asked for",
    "prose_wanted": "prose, and documentation was asked for",
    "example_wanted": "an example, and examples were asked for",
    "vendor": "somebody else's code, kept here",
    "legacy": "there for compatibility",
    "entry": "an index or entry file",
    "declarations": "declarations only",
    "locale": "translations or migrations",
    "config": "configuration or data",
    "unknown": "of no known language",
    "relative_file_text": "file_text, against the best file's",
    "relative_text": "best_text, against the best file's",
    "relative_meaning": "best_meaning, against the best file's",
    "relative_file_coverage": "file_coverage, against the best file's",
    "relative_coverage": "best_coverage, against the best file's",
    "first_file_text": "near the top by file_text",
    "first_text": "near the top by best_text",
    "first_meaning": "near the top by best_meaning",
    "lead_text": "first by best_text, and how far before the second",
    "lead_coverage": "first by best_coverage, and how far before the second",
    "lead_meaning": "first by best_meaning, and how far before the second",
}
"""Every feature and what it says."""

_AS_GIVEN: Final = (
    "file_text", "file_coverage", "best_text", "best_coverage", "best_name", "best_name_precision", "best_meaning",
    "stem", "stem_precision", "folder", "folder_precision",
)  # fmt: skip
_RELATIVE: Final = {
    "relative_file_text": "file_text",
    "relative_text": "best_text",
    "relative_meaning": "best_meaning",
    "relative_file_coverage": "file_coverage",
    "relative_coverage": "best_coverage",
}
_FIRST: Final = {"first_file_text": "file_text", "first_text": "best_text", "first_meaning": "best_meaning"}
_LEADS: Final = {"lead_text": "best_text", "lead_coverage": "best_coverage", "lead_meaning": "best_meaning"}
_WHOLE: Final = 0.99


def file_features(
    question: Question,
    path: str,
    of_file: Mapping[str, float],
    signals: Sequence[Mapping[str, float]],
    *,
    recent: float = 0.0,
) -> dict[str, float]:
    """The features of one file, from its own signals and those of its candidate pieces."""
    features = {name: of_file[name] for name in _AS_GIVEN}
    features["second_text"] = _second(piece["text"] for piece in signals)
    features["second_meaning"] = _second(piece["meaning"] for piece in signals)
    features["stem_whole"] = float(of_file["stem_precision"] >= _WHOLE)
    for name in ("title", "near", "pairs", "figures"):
        features[name] = of_file.get(name, 0.0)
    features["size"] = of_file["file_size"] / 10
    features["central"] = of_file.get("central", 0.0) / 5
    features["recent"] = recent
    defines = max(piece["defines"] for piece in signals)
    features["defines"] = defines * (not question.is_symbol) * (not question.is_long)
    features["defines_symbol"] = defines * question.is_symbol
    features["defines_long"] = defines * question.is_long
    features["path_named"] = float(_is_named(path.lower(), question.paths))
    features["module_named"] = float(any(_is_module(path, name) for name in question.names))
    kind = kind_of(path)
    features["depth"] = kind.depth / 10
    features["test"] = float(kind.test and not question.wants_tests)
    features["test_wanted"] = float(kind.test and question.wants_tests)
    features["example"] = float(kind.example and not question.wants_examples)
    features["docs"] = float(kind.docs and not question.wants_docs)
    features["prose"] = float(kind.prose and not question.wants_docs)
    features["prose_wanted"] = float((kind.prose or kind.docs) and question.wants_docs)
    features["example_wanted"] = float(kind.example and question.wants_examples)
    for name in ("vendor", "legacy", "entry", "declarations", "locale", "config", "unknown"):
        features[name] = float(getattr(kind, name))
    return features


def add_relative(files: Sequence[dict[str, float]]) -> None:
    """Add what a file's features are worth among those of the others."""
    for relative, name in _RELATIVE.items():
        best = max((features[name] for features in files), default=0.0)
        for features in files:
            features[relative] = features[name] / best if best > 0 else 0.0
    for first, name in _FIRST.items():
        for rank, features in enumerate(sorted(files, key=lambda features, by=name: -features[by])):  # type: ignore[misc]
            features[first] = 1 / (1 + rank)
    for lead, name in _LEADS.items():
        # Whether the first is right shows less in what it has than in how little the second has.
        ordered = sorted(files, key=lambda features, by=name: -features[by])  # type: ignore[misc]
        for place, features in enumerate(ordered):
            second = ordered[1][name] if len(ordered) > 1 else 0.0
            features[lead] = (features[name] - second) / features[name] if not place and features[name] > 0 else 0.0


def _second(values: Iterable[float]) -> float:
    ordered = sorted(values, reverse=True)
    return ordered[1] if len(ordered) > 1 else 0.0


def _is_named(path: str, mentioned: Iterable[str]) -> bool:
    for mention in mentioned:
        wanted = mention.lower()
        if path == wanted or path.endswith(f"/{wanted}") or wanted.replace(".", "/") in path:
            return True
    return False


def _is_module(path: str, name: str) -> bool:
    """Whether a dotted name leads to this file: `django.db.models.query.QuerySet` to django/db/models/query.py."""
    module = name.replace("::", ".").rpartition(".")[0].replace(".", "/")
    return bool(module) and module in path
