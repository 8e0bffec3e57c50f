"""The pictures of docs/scale.md: points and fitted lines, both axes logarithmic."""

from __future__ import annotations

from benchmarks.scale import model
from satchel.evaluation.charts import Axis, Series, line_chart


def pictures(points: model.Points) -> dict[str, str]:
    """The pictures by their names."""
    found = model.Model(points)

    def chart(title: str, across: str, up: str, *keys: str) -> str:
        series = [Series(found.names[key], found.data[key], line=found.fits[key].__call__) for key in keys]
        return line_chart(title, Axis(across, logarithmic=True), Axis(up, logarithmic=True), series)

    return {
        "scale-room.svg": chart(
            "Room of one workspace, with its indexes", "blocks", "bytes", "truth", "words", "dense", "hnsw"
        ),
        "scale-search.svg": chart(
            "CPU time of one search, by part",
            "pieces that may be seen",
            "ms",
            "exact",
            "hnsw_near",
            "postings",
            "weigh",
        ),
        "scale-build.svg": chart(
            "Filling by COPY (on the clock), and building HNSW (CPU)", "blocks", "seconds", "build", "fill"
        ),
        "scale-commit.svg": chart(
            "One block is committed", "blocks in the workspace", "ms of CPU, server and client", "commit", "after"
        ),
    }
