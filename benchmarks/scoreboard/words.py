"""What the page says around its tables."""

from __future__ import annotations

from typing import Final

INTRODUCTION: Final = """Satchel and its peers on the same {questions:,} questions in {sets} sets, by `{command}` ({minutes} minutes on {cores} shared cores with Python {python}, load {load:.1f} when it began, {date}).
The run makes the corpora, puts every peer into an environment of its own with pinned versions, asks everybody everything, and writes this part of the page, its plots and
[benchmarks.json](benchmarks.json); at the end it says which figures lie outside the intervals that stood here before.

**Coverage** (`cover@B`) is the share of what was expected that is really in the text when it is cut to B tokens (o200k), judged by the text alone: tools that rank but know no
budget are filled up to it, best first, by the same code. A file counts when three lines of it stand there that stand in no other file. **±** is half of the 95 % interval of a bootstrap
over the questions. What a tool cannot do is marked –, not scored."""

READING: Final = """Quality does not depend on the clock: run again, Satchel's figures are the same to the last digit, and so are those of most peers. `questions` is smaller where a slow tool was
asked only some; differences to it are taken on those."""

WITHOUT_PEERS: Final = """Tools without a budget of their own are cut by us, so nothing of theirs can be over. "They are right": the first and the last line that is shown stand in the file at the lines that the tool names
(of passages that are shown whole). What a tool says that a text costs is held against o200k."""

WHY_BEHIND: Final[dict[str, str]] = {}
"""Why we are behind on a set, where we are; a test asks for an entry for each."""

WHY_SLOWER: Final = {
    "index_s": "Satchel parses every file into blocks with its grammars, embeds the pieces, and commits to disk; tools that cut at fixed lines, or know words only, do less.",
    "ask_ms": "A question is ranked with 30 features, held against the files on disk, packed, written and counted exactly; the others return passages, and we fill up and count for them off the clock.",
    "peak_mb": "Satchel has two parsers in children and a database; most of it is the interpreter with numpy, three times.",
}
