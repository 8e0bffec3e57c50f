"""What the page says around its tables."""

from __future__ import annotations

from typing import Final

INTRODUCTION: Final = """Satchel and its peers on the same {questions:,} questions in {sets} sets, by `{command}` ({minutes} minutes on {cores} shared cores with Python {python}, load {load:.1f} when it began, {date}).
The run makes the corpora, puts every peer into an environment of its own with pinned versions, asks everybody everything, and writes this part of the page, its plots and
[benchmarks.json](benchmarks.json); at the end it says which figures lie outside the intervals that stood here before.

**Coverage** (`cover@B`) is the share of the expected results that is really in the text when it is cut to B tokens (o200k), judged by the text alone: tools that rank but know no
budget are filled up to it, best first, by the same code. A file counts when three lines of it stand there that stand in no other file. **±** is half of the 95 % interval of a bootstrap
over the questions. What a tool cannot do is marked –, not scored."""

READING: Final = """Quality does not depend on the clock: run again, Satchel's figures are the same to the last digit, and so are those of most peers. `questions` is smaller where a slow tool was
asked only some; differences to it are taken on those. semble, LlamaIndex and LangChain run with Satchel's own static model, since theirs are downloads: with another they may be better or worse. Its
teacher (all-MiniLM-L6-v2) may have seen docstrings like those asked here; the packages are none of those that the model or the ranker were trained on."""

WITHOUT_PEERS: Final = """Tools without a budget of their own are cut by us, so nothing of theirs can be over; windows of whole lines that overlap or touch are joined for them, which few pipelines do. "They are right": the first and the last line that is shown stand in the file at the lines that the tool names
(of passages that are shown whole), or all of it stands inside those lines. What a tool says that a text costs is held against o200k."""

_WHOLE_SETS: Final = (
    "`BENCH=full python -m benchmarks.scoreboard --only satchel,semble,bm25-12,bm25-50 --sets code_swelite,docs_prose`"
)

WHY_BEHIND: Final[dict[str, str]] = {
    "code_semble_whole": "**code_semble_whole**: at 4,000 tokens the difference is within the noise; what is missing there is mostly the second of two files, as on source folders alone.",
    "code_muloc": "**code_muloc**: few questions in a bounded run, each on a tree of its own.",
    "code_semble": "**code_semble**: the files that are missing at 4,000 tokens are mostly the second of two that the annotators named, of which our ranking has the first on top and the second beyond the first ten; semble, with our own model, spreads wider. The difference is within the noise.",
    "code_swelite": f"**code_swelite**: few questions in a bounded run, each on a tree of its own (Django). Of all 109, asked on 2026-11-17 by {_WHOLE_SETS}, Satchel was first in every figure: NDCG@10 0.711 against semble's 0.595, cover@4000 0.741 against 0.605 of bm25-50.",
    "docs_contracts": "**docs_contracts**: at 8,000 tokens about half of a contract is in the text, whoever chooses; one question of 71 makes 0.014.",
    "docs_prose": f"**docs_prose**: a sample of the set's 1,410 questions; the difference is within the noise. Of all of them, asked on 2026-11-17 by {_WHOLE_SETS}, Satchel was first in every figure: cover 0.870, 0.916, 0.948 and 0.967 against 0.849, 0.898, 0.931 and 0.959 of bm25-12, NDCG@10 0.941 against 0.928.",
    "docs_ir": "**docs_ir**: the judges chose abstracts on a subject, where most of our questions have one answer in one place; that its words stand close together says little here. It is not for want of tuning: our own evidence with weights fitted on this set alone gives an NDCG@10 of 0.401, and abstracts that come twice among the first ten cost 0.003. BM25's words over whole abstracts are simply as good.",
    "docs_finance": "**docs_finance**: fifteen questions.",
    "docstrings": "**docstrings**: see the intervals.",
}
"""Why we are behind on a set, where we are; a test asks for an entry for each."""

WHY_SLOWER: Final = {
    "index_s": "Satchel parses every file into blocks with its grammars, embeds the pieces, and commits to disk; tools that cut at fixed lines, or know words only, do less.",
    "ask_ms": "A question is ranked with 30 features, held against the files on disk, packed, written and counted exactly; the others return passages, and we fill up and count for them off the clock.",
    "peak_mb": "Satchel has two parsers in children and a database; most of it is the interpreter with numpy, three times.",
}
