"""An evaluation as JSON, and back: what one run is compared with another by."""

from __future__ import annotations

import json
import math
from collections.abc import Mapping
from dataclasses import asdict
from pathlib import Path
from typing import Any, Final

import msgspec

from satchel.errors import InvalidInput
from satchel.evaluation.intervals import json_fields
from satchel.evaluation.ranking import RECALLED_AT
from satchel.evaluation.rows import Evaluation, Row

KIND: Final = "satchel-evaluation"
VERSION: Final = 1


def to_dict(evaluation: Evaluation) -> dict[str, Any]:
    """The evaluation with its figures, as JSON can hold it."""
    calibration = evaluation.calibration()
    return {
        "kind": KIND,
        "version": VERSION,
        "name": evaluation.name,
        "about": dict(evaluation.about),
        "questions": len(evaluation.rows),
        "over_budget": evaluation.over,
        "figures": {name: json_fields(one) for name, one in evaluation.figures().items()},
        "latency_ms": latency(evaluation.latencies),
        "calibration": _rounded(asdict(calibration)) if calibration else None,
        "rows": [_row(row) for row in evaluation.rows],
    }


def _rounded(fields: Mapping[str, Any]) -> dict[str, Any]:
    """The fields of a calibration, and those of its bins, in six decimals."""
    return {
        name: round(value, 6) if isinstance(value, float) else [*map(_rounded, value)] if name == "bins" else value
        for name, value in fields.items()
    }


def latency(values: list[float]) -> dict[str, float] | None:
    """The middle and the slow end of some times."""
    if not values:
        return None
    ordered = sorted(values)

    def at(share: float) -> float:
        return round(ordered[math.ceil(share * len(ordered)) - 1], 3)

    return {"p50": at(0.5), "p95": at(0.95), "worst": round(ordered[-1], 3), "n": len(ordered)}


def _row(row: Row) -> dict[str, Any]:
    return {
        "id": row.id,
        "query": row.query,
        "group": row.group,
        "expected": row.expected,
        # Not rounded: what is the same must compare as the same.
        "ndcg": None if row.ranking is None else row.ranking.ndcg,
        "recall": None if row.ranking is None else {str(k): share for k, share in row.ranking.recall.items()},
        "rr": None if row.ranking is None else row.ranking.reciprocal_rank,
        "judged": [[round(said, 6), right] for said, right in row.judged],
        "at": [
            {
                "budget": at.budget,
                "cover": at.cover,
                "precision": at.precision,
                "tokens": at.tokens,
                "ms": round(at.milliseconds, 3),
                "missing": list(at.missing),
                **({"error": at.error} if at.error else {}),
            }
            for at in row.at
        ],
    }


def read_evaluation(path: Path) -> Evaluation:
    """An evaluation that was saved by `satchel eval --json`."""
    try:
        told = json.loads(path.read_text("utf-8"), parse_constant=_no_number)
        if not isinstance(told, Mapping) or told.get("kind") != KIND:
            raise InvalidInput("report", str(path), "is not a report that `satchel eval -o` or `--json` wrote")
        if told["version"] != VERSION:
            raise InvalidInput("report", str(path), f"has version {told['version']}; this Satchel reads {VERSION}")
        return Evaluation(name=told["name"], rows=tuple(map(_row_from, told["rows"])), about=dict(told["about"]))
    except InvalidInput:
        raise
    except (ValueError, KeyError, TypeError, AttributeError, RecursionError, msgspec.ValidationError) as error:
        raise InvalidInput(
            "report",
            str(path),
            f"is not a report that `satchel eval -o` or `--json` wrote ({type(error).__name__}: {error})",
        ) from None


def _no_number(given: str) -> float:
    raise ValueError(f"{given} is no number")


def _row_from(told: Mapping[str, Any]) -> Row:
    recall = told["recall"]
    ranking = recall and {
        "ndcg": told["ndcg"],
        "recall": {k: recall[str(k)] for k in RECALLED_AT},
        "reciprocal_rank": told["rr"],
    }
    cells = [{**at, "milliseconds": at["ms"]} for at in told["at"]]
    return msgspec.convert({**told, "ranking": ranking, "at": cells}, Row)
