"""What the measured points say about more than was measured: fits, and what is reckoned from them."""

from __future__ import annotations

import json
import math
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any, Final, NamedTuple

import numpy as np

Points = dict[str, Any]
Pairs = list[tuple[float, float]]

Basis = tuple[Callable[[float], float], Callable[[float], float]]
_FORMS: Final[dict[str, Basis]] = {
    "a + b·n": (lambda _: 1.0, lambda n: n),
    "a + b·ln n": (lambda _: 1.0, math.log),
    "n·(a + b·ln n)": (lambda n: n, lambda n: n * math.log(n)),
    "b·n·ln n": (lambda _: 0.0, lambda n: n * math.log(n)),
}
_DERIVED: Final = ("posting", "chunk", "dense", "dead")
HNSW: Final = "index dense_nearest_256"


def read(path: Path) -> Points:
    """The points as they were kept."""
    found: Points = json.loads(path.read_text(encoding="utf-8"))
    return found


class Fit(NamedTuple):
    """A line through points: every point counts by its own size, so that the small ones are fitted too."""

    form: str
    a: float
    b: float
    worst: float
    """By how much of its size the worst point is off."""
    unseen: float | None
    """By how much the largest point is off when the line is drawn without it."""

    def __call__(self, n: float, /) -> float:
        """What the line says."""
        first, second = _FORMS[self.form]
        return self.a * first(n) + self.b * second(n)


def fit(pairs: Sequence[tuple[float, float]], form: str) -> Fit:
    """The line of a form through these points."""
    line = _line(pairs, form)
    unseen = None
    ordered = sorted(pairs)
    if len({n for n, _ in pairs}) >= 4:
        last = [pair for pair in ordered if pair[0] == ordered[-1][0]]
        shorter = _line([pair for pair in ordered if pair not in last], form)
        unseen = max((shorter(n) - y) / y for n, y in last)
    return line._replace(worst=max(abs(line(n) - y) / y for n, y in pairs), unseen=unseen)


def _line(pairs: Sequence[tuple[float, float]], form: str) -> Fit:
    columns = [[basis(n) / y for n, y in pairs] for basis in _FORMS[form]]
    a, b = np.linalg.lstsq(np.array(columns).T, np.ones(len(pairs)), rcond=None)[0]
    return Fit(form, float(a), float(b), 0.0, None)


def bytes_of(room: dict[str, float]) -> float:
    """A table with everything that belongs to it, but the index of near vectors."""
    return sum(value for name, value in room.items() if name not in ("rows", HNSW))


class Model:
    """The fits to all that was measured, and what follows."""

    def __init__(self, points: Points) -> None:
        self.points: list[Points] = points["points"]
        self.about = points
        self.names: dict[str, str] = {}
        self.data: dict[str, Pairs] = {}
        self.fits: dict[str, Fit] = {}
        self._fit_room()
        self._fit_searches()
        self._fit_writing()

    def _add(self, key: str, name: str, form: str, pairs: Pairs) -> None:
        self.names[key], self.data[key] = name, pairs
        self.fits[key] = fit(pairs, form)

    def _by_size(self, value: Callable[[Points], float]) -> Pairs:
        return [(one["blocks"], value(one)) for one in self.points]

    def _fit_room(self) -> None:
        def of(tables: Callable[[str], bool]) -> Pairs:
            return self._by_size(lambda one: sum(bytes_of(room) for name, room in one["room"].items() if tables(name)))

        self._add("truth", "files, texts, blocks", "a + b·n", of(lambda name: name not in _DERIVED))
        self._add("words", "words", "n·(a + b·ln n)", of(lambda name: name in ("posting", "chunk")))
        self._add("dense", "vectors", "a + b·n", of(lambda name: name == "dense"))
        indexed = [one for one in self.points if "hnsw" in one]
        self._add("hnsw", "HNSW index", "a + b·n", [(one["blocks"], one["hnsw"]["bytes"]) for one in indexed])
        self._add(
            "rows",
            "rows of `posting` for a block",
            "a + b·ln n",
            self._by_size(lambda one: one["fill"]["posting_rows"] / one["blocks"]),
        )
        self._add(
            "build",
            "building HNSW",
            "b·n·ln n",
            [(one["blocks"], one["hnsw"]["build_cpu_s"]) for one in indexed],
        )
        self._add(
            "insert",
            "taking one vector into HNSW",
            "a + b·ln n",
            [(one["blocks"], one["hnsw"]["insert_ms"]) for one in indexed],
        )
        self._add("fill", "filling by COPY", "a + b·n", self._by_size(filled_s))
        self._add("analyze", "ANALYZE", "a + b·ln n", self._by_size(lambda one: one["analyze_s"]))
        self._add("peak", "memory of whoever lays out", "a + b·n", self._by_size(lambda one: one["fill"]["peak_bytes"]))

    def _fit_searches(self) -> None:
        def of(part: str, cost: Callable[[Points], float], readers: Sequence[str]) -> Pairs:
            return [
                (one[part][reader]["visible"], cost(one[part][reader])) for one in self.points for reader in readers
            ]

        both = ("owner", "half")
        self._add(
            "exact",
            "all compared",
            "a + b·n",
            sorted(of("exact", lambda one: one["near_server_cpu_ms"] + one["near_client_cpu_ms"], both)),
        )
        indexed = [one for one in self.points if "hnsw" in one]
        near = [(one["blocks"], one["by_index"]) for one in self.points]
        self._add(
            "hnsw_near",
            "400 nearest by HNSW",
            "a + b·ln n",
            [(one["blocks"], one["by_index"]["near_server_cpu_ms"]) for one in indexed],
        )
        self._add(
            "second",
            "the second exchange",
            "a + b·n",
            [(n, cpu_ms(one, "second_")) for n, one in near],
        )
        self._add(
            "postings",
            "inverted lists",
            "a + b·n",
            of("search", lambda one: one["postings_server_cpu_ms"] + one["postings_client_cpu_ms"], ("owner",)),
        )
        self._add(
            "heavy",
            "inverted lists, six frequent words",
            "a + b·n",
            of("heavy", lambda one: one["postings_server_cpu_ms"] + one["postings_client_cpu_ms"], ("owner",)),
        )
        self._add(
            "weigh",
            "weighing, in the client",
            "a + b·n",
            of("exact", lambda one: one["weigh_client_cpu_ms"], ("owner",)),
        )
        self._add(
            "weigh_twice",
            "weighing twice, in the client",
            "a + b·n",
            [(n, one["weigh_client_cpu_ms"]) for n, one in near],
        )
        self._add(
            "bytes",
            "bytes of lists for a question",
            "a + b·n",
            of("search", lambda one: one["postings"] * 5, ("owner",)),
        )
        self._add(
            "heavy_bytes",
            "the same, six frequent words",
            "a + b·n",
            of("heavy", lambda one: one["postings"] * 5, ("owner",)),
        )
        self._add(
            "held",
            "columns in the client's memory",
            "a + b·n",
            self._by_size(lambda one: one["first"]["owner"]["held_bytes"]),
        )
        self._add(
            "question",
            "the client's memory for a question",
            "a + b·n",
            self._by_size(lambda one: one["first"]["owner"]["question_bytes"]),
        )
        self._add(
            "first", "first search of a process", "a + b·n", self._by_size(lambda one: one["first"]["owner"]["wall_ms"])
        )

    def _fit_writing(self) -> None:
        indexed = [one for one in self.points if "hnsw" in one]
        self._add(
            "first_after",
            "first search after a commit",
            "a + b·n",
            [(one["blocks"], one["first"]["after_commit_ms"]) for one in indexed],
        )
        self._add("commit", "the commit", "a + b·ln n", [(one["blocks"], cpu_ms(one["commit"])) for one in indexed])
        self._add(
            "wal", "WAL of a commit", "a + b·ln n", [(one["blocks"], one["commit"]["wal_bytes"]) for one in indexed]
        )
        self._add(
            "after", "catching up after it", "a + b·n", self._by_size(lambda one: cpu_ms(one["commit"], "after_"))
        )
        self._add(
            "relay",
            "laying out a block again",
            "a + b·ln n",
            self._by_size(lambda one: cpu_ms(one["relay"]) / one["relay"]["blocks"]),
        )
        self._add(
            "grant",
            "a block whose readers change",
            "a + b·ln n",
            self._by_size(lambda one: cpu_ms(one["grant"]) / one["grant"]["blocks"]),
        )

    # -- what follows

    def search_ms(self, pieces: float, *, by_index: bool) -> float:
        """CPU time, server's and client's, of a plain question to one who sees so many pieces."""
        return self.server_ms(pieces, by_index=by_index) + self.fits["weigh_twice" if by_index else "weigh"](pieces)

    def server_ms(self, pieces: float, *, by_index: bool) -> float:
        """The same without weighing, which is done where the program runs; the reading of lists is counted in."""
        near = self.fits["hnsw_near"](pieces) + self.fits["second"](pieces) if by_index else self.fits["exact"](pieces)
        return self.fits["postings"](pieces) + near

    def most_pieces(self, within_ms: float, *, by_index: bool) -> float:
        """How many pieces somebody may see and still be answered in time."""
        low, high = 1e3, 1e9
        for _ in range(60):
            middle = math.sqrt(low * high)
            low, high = (middle, high) if self.search_ms(middle, by_index=by_index) <= within_ms else (low, middle)
        return low

    def bytes_per_block(self, key: str, size: int) -> float:
        """What a block takes in a workspace of that size: as measured, or as the line says."""
        measured = dict(self.data[key])
        return measured.get(size, self.fits[key](size)) / size


def cpu_ms(figures: Points, part: str = "") -> float:
    """CPU time of a step, server's and client's."""
    return float(figures[f"{part}server_cpu_ms"] + figures[f"{part}client_cpu_ms"])


def filled_s(point: Points) -> float:
    """Seconds of filling, without making the texts up."""
    told = point["fill"]
    return float(told["layout_s"] + told["truth_s"] + told["chunk_posting_s"] + told["dense_s"])
