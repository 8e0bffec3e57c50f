"""Questions of ``questions.tsv`` in ten languages, asked of Python's standard library by vector alone.

Prints for each language how often the right module is first and among the first five, and the cosines of the first.
"""

import argparse
import sysconfig
from collections.abc import Iterator
from pathlib import Path

import numpy as np

from satchel.integrations.embedders.static_embedder import StaticEmbedder

QUESTIONS = Path(__file__).with_name("questions.tsv")
LINES = 40
"""Lines of a passage."""
SKIPPED = set(
    "test tests site-packages dist-packages idlelib lib2to3 encodings ensurepip tkinter turtledemo distutils "
    "pydoc_data __pycache__ config-3.11-x86_64-linux-gnu".split()
)


def passages(folder: Path) -> Iterator[tuple[str, str]]:
    """Module and text of every passage of the library."""
    for path in sorted(folder.rglob("*.py")):
        place = path.relative_to(folder)
        if not SKIPPED & set(place.parts):
            lines = path.read_text("utf-8", "ignore").split("\n")
            for start in range(0, len(lines), LINES):
                yield place.parts[0], f"{place}\n" + "\n".join(lines[start : start + LINES])


def main() -> None:
    """Print a line for each language."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("model", type=Path)
    embedder = StaticEmbedder(parser.parse_args().model)
    modules, texts = zip(*passages(Path(sysconfig.get_path("stdlib"))), strict=True)
    vectors = embedder.embed_texts(texts)
    header, *rows = (line.split("\t") for line in QUESTIONS.read_text("utf-8").splitlines())
    for column, language in enumerate(header[1:], start=1):
        ranks, best = [], []
        for row in rows:
            scores = vectors @ embedder.embed_query(row[column])
            order = dict.fromkeys(modules[i] for i in np.argsort(-scores, kind="stable"))
            ranks.append(1 + list(order).index(row[0]) if scores.any() else len(order))
            best.append(float(scores.max()))
        places = np.array(ranks)
        print(
            f"{language}: first {(places == 1).sum()}, in 5 {(places <= 5).sum()} of {len(places)}, "
            f"MRR {(1 / places).mean():.3f}, cosine of the first {np.mean(best):.2f}"
        )


if __name__ == "__main__":
    main()
