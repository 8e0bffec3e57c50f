"""Documents and research: how fast PDFs are read, and what a context of pages costs.

`python benchmarks/research_bench.py` measures this part alone and puts it into docs/benchmarks.md. With SATCHEL_EVAL
set to the folder of the evaluation data, the pages of filings are searched too (see documents_bench.py).
"""

from __future__ import annotations

import asyncio
import io
import os
import random
import statistics
import sys
import tempfile
import time
from collections.abc import Callable
from functools import partial
from pathlib import Path

ROOT = Path(__file__).resolve().parent.parent
sys.path.insert(0, str(ROOT))

from benchmarks.sections import measure  # noqa: E402
from benchmarks.texts import english_prose  # noqa: E402
from satchel.indexing.documents.read_document import read_document  # noqa: E402
from satchel.indexing.documents.recognition import ReadOptions  # noqa: E402
from satchel.models.document import Document  # noqa: E402
from satchel.research import ContextBuilder  # noqa: E402
from satchel.service.factory.opening import open_library  # noqa: E402

HEADING = "## Documents and research"
PAGES = 200
ROUNDS = 5


def page() -> str:
    """The part of docs/benchmarks.md that is about documents."""
    load = os.getloadavg()[0]
    rows = ["| what | measured | target | met |", "|---|--:|--:|---|"]
    rows += reading()
    rows += research()
    intro = (
        "Measured by `python benchmarks/research_bench.py`, in a run of its own. Times of a single call are wall-clock "
        f"medians of {ROUNDS} or more; pages per second are of CPU time, in one process. "
        f"The load average at the start was {load:.1f} on two cores."
    )
    return f"{HEADING}\n\n{intro}\n\n" + "\n".join(rows) + "\n" + quality()


def row(what: str, measured: str, target: str, met: bool) -> str:
    """A row of the table."""
    return f"| {what} | {measured} | {target} | {'yes' if met else 'NO'} |"


def text_pdf(pages: int) -> bytes:
    """A PDF of prose, forty lines to a page, without pictures."""
    from reportlab.pdfgen.canvas import Canvas

    words = english_prose().split()
    chance = random.Random(5)
    target = io.BytesIO()
    canvas = Canvas(target, invariant=1)
    for number in range(1, pages + 1):
        canvas.setFont("Helvetica-Bold", 14)
        canvas.drawString(70, 790, f"Section {number}")
        canvas.setFont("Helvetica", 10)
        for line in range(40):
            start = chance.randrange(len(words) - 12)
            canvas.drawString(70, 765 - 17 * line, " ".join(words[start : start + 12])[:95])
        canvas.showPage()
    canvas.save()
    return target.getvalue()


def reading() -> list[str]:
    """How many pages of a text PDF are read in a second of one core, and against the bare text of the pages."""
    import pypdfium2

    data = text_pdf(PAGES)

    def ours() -> None:
        document = read_document("report.pdf", data, ReadOptions(ocr=False))
        assert isinstance(document, Document)
        assert len(document.pages) == PAGES

    def floor() -> None:
        pdf = pypdfium2.PdfDocument(data)
        for one in pdf:
            one.get_textpage().get_text_range()
        pdf.close()

    ours()
    floor()
    times = [(cpu(ours), cpu(floor)) for _ in range(ROUNDS)]
    speed = PAGES / statistics.median(one for one, _ in times)
    ratio = statistics.median(one / bare for one, bare in times)
    return [
        row(f"pages of a text PDF ({PAGES}) read per CPU second", f"{speed:.0f}", "30", speed >= 30),
        f"| the same, against pypdfium2's bare text of the pages | {ratio:.1f} × the time | | |",
    ]


def research() -> list[str]:
    """What S3 asks for: a context of ten sources, the metadata of one, merging a hundred results, counting."""
    with tempfile.TemporaryDirectory() as folder:
        root = Path(folder) / "papers"
        root.mkdir()
        for i in range(5):
            (root / f"paper {i}.pdf").write_bytes(text_pdf(60 + i))
        with open_library(root, index_dir=str(Path(folder) / "index")) as library:
            library.engine.index()
            library.look_at_pages()
            builder = ContextBuilder(library, library)
            words = english_prose().split()
            questions = [" ".join(words[i : i + 8]) for i in range(0, 8 * 40, 8)]
            asyncio.run(builder.build_context("warm"))
            contexts = []

            def build(question: str) -> None:
                contexts.append(asyncio.run(builder.build_context(question)))

            build_ms = [wall(partial(build, one)) for one in questions]
            assert all(len(one.sources) == 10 for one in contexts)
            keys = [(one.doc_id, one.page) for context in contexts for one in context.sources][:200]

            async def fetch(some: list[tuple[str, int]]) -> None:
                await asyncio.gather(*(builder.get_source_metadata(*key) for key in some))

            ten_ms = statistics.median(wall(lambda: asyncio.run(fetch(keys[:10]))) for _ in range(20))
            one_ms = statistics.median([wall(partial(asyncio.run, fetch([key]))) for key in keys])
        results = [{"doc_id": f"d{i % 30}", "page": i % 7 + 1, "score": (i * 37 % 100) / 100} for i in range(100)]
        dedupe_ms = statistics.median(wall(lambda: builder.deduplicate_results(results)) for _ in range(50))
        text = english_prose()
        parts = [text[i : i + 10_000] for i in range(0, len(text) - 10_000, 10_000)]
        count_ms = statistics.median([wall(partial(builder.estimate_tokens, part)) for part in parts])
    median, worst = statistics.median(build_ms), sorted(build_ms)[int(len(build_ms) * 0.95)]
    return [
        row("a research context of 10 sources, p95 of 40 questions over 310 pages (visual and text)",
            f"{worst:.0f} ms (median {median:.0f})", "1,000 ms", worst < 1000),
        row("the metadata and text of one source", f"{one_ms:.2f} ms", "100 ms", one_ms < 100),
        row("the same of 10 sources at once", f"{ten_ms:.1f} ms", "100 ms each", ten_ms < 1000),
        row("merging 100 results", f"{dedupe_ms:.3f} ms", "10 ms", dedupe_ms < 10),
        row("counting the tokens of 10,000 characters not seen before", f"{count_ms:.2f} ms", "5 ms", count_ms < 5),
    ]  # fmt: skip


def quality() -> str:
    """The pages of filings, where the evaluation data is at hand."""
    from benchmarks.documents_bench import measured
    from benchmarks.scoreboard.corpora.evaluation import evaluation_folder

    data = evaluation_folder()
    return f"\n{measured(data)}\n" if (data / "data" / "docs_finance").is_dir() else ""


def cpu(work: Callable[[], object]) -> float:
    """Seconds of CPU time."""
    started = time.process_time()
    work()
    return time.process_time() - started


def wall(work: Callable[[], object]) -> float:
    """Milliseconds on the clock."""
    started = time.perf_counter()
    work()
    return (time.perf_counter() - started) * 1000


if __name__ == "__main__":
    measure(HEADING, page)
