"""The features by which files are ranked: each has a name, a meaning and a weight, and can be shown to whoever asks.

The evidence comes from the store; what is added here is what the question wants and what kind of file each one is.
"""

from __future__ import annotations

import tomllib
from collections.abc import Iterable, Mapping, Sequence
from importlib import resources
from typing import Final

from satchel.models.file_kind import kind_of
from satchel.retrieval.query import Question

_AS_GIVEN: Final = tuple(
    "file_text file_coverage best_text best_coverage best_name best_name_precision"
    " best_meaning stem stem_precision folder folder_precision".split()
)
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


def feature_meanings() -> dict[str, str]:
    """Every feature and what it says of a file."""
    return tomllib.loads(resources.files("satchel.retrieval").joinpath("features.toml").read_text("utf-8"))


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
