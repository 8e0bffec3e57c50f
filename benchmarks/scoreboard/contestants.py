"""Who takes part in the scoreboard, and exactly how."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path
from typing import Final

WORKERS: Final = Path(__file__).parent / "workers"
REQUIREMENTS: Final = Path(__file__).parent / "requirements"
MODEL: Final = "{model}"
"""Stands for the folder of the static model in a worker's arguments,"""
SEMBLE_MODEL: Final = "{semble-model}"
"""… for the one that semble is given, which SATCHEL_BENCH_SEMBLE_MODEL may name,"""
PACKAGES: Final = "{packages}"
"""… and for the node_modules of a tool from npm."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Contestant:
    """A tool in one configuration.

    `kinds`: what it is for. `variant`: another configuration of a tool that is there anyway, for full runs. `ranks`: it gives passages in an order. `takes_budget`: it writes a text for a budget itself. `cites_lines`: it says
    from which lines a passage is. `reads_question`: what it answers depends on the question. `every`: only every n-th
    question is put to it, because it is slow.
    """

    name: str
    tool: str
    what: str
    worker: str
    arguments: tuple[str, ...] = ()
    requirements: str | None = None
    programs: tuple[str, ...] = ()
    ranks: bool = True
    takes_budget: bool = False
    cites_lines: bool = True
    reads_question: bool = True
    every: int = 1
    kinds: tuple[str, ...] = ("code", "prose")
    variant: bool = False

    @property
    def title(self) -> str:
        """The tool with the version that is pinned, where one is."""
        version = pinned(self.requirements).get(self.tool.lower()) if self.requirements else None
        return f"{self.name} ({self.tool} {version})" if version else self.name

    @property
    def from_npm(self) -> bool:
        """Whether its requirements are npm's."""
        return self.requirements is not None and self.requirements.endswith(".npm.txt")


def pinned(requirements: str) -> dict[str, str]:
    """The packages of a requirements file in small letters, with their versions."""
    lines = (line.partition("#")[0].strip() for line in (REQUIREMENTS / requirements).read_text().splitlines())
    pairs = (line.partition("==") for line in lines if line)
    return {name.lower(): version for name, _, version in pairs}


_STATIC = "Satchel's static model (satchel-static-2, 256 dimensions, as a model2vec folder)"

CONTESTANTS: Final = (
    Contestant(
        name="satchel",
        tool="satchel",
        what="This checkout; `build` with default options at each budget, `search` for the ranking.",
        worker="satchel_engine.py",
        takes_budget=True,
    ),
    Contestant(
        name="bm25-50",
        tool="bm25s",
        what="BM25 (bm25s, English stemmer and stop words) over windows of 50 lines, 10 of them overlapping; the path"
        " counts as text.",
        worker="bm25_windows.py",
        arguments=("50", "10"),
        requirements="bm25.txt",
    ),
    Contestant(
        name="bm25-12",
        tool="bm25s",
        what="As bm25-50, with windows of 12 lines, 3 of them overlapping.",
        worker="bm25_windows.py",
        arguments=("12", "3"),
        requirements="bm25.txt",
    ),
    Contestant(
        name="ripgrep",
        tool="ripgrep",
        what="`rg` for the question's words; whole files, those with the most different words first, then most matches.",
        worker="ripgrep_files.py",
        programs=("rg",),
    ),
    Contestant(
        name="semble",
        tool="semble",
        what=f"Its own chunks, BM25, reranking and choice of weights; {_STATIC}, because its own is a download;"
        " `content` is code for code and docs for prose; top_k 50.",
        worker="semble_search.py",
        arguments=(SEMBLE_MODEL,),
        requirements="semble.txt",
    ),
    Contestant(
        name="semble-words",
        tool="semble",
        what="As semble, without a model: alpha 0, so words alone.",
        worker="semble_search.py",
        arguments=("words",),
        requirements="semble.txt",
        variant=True,
    ),
    Contestant(
        name="llamaindex",
        tool="llama-index-core",
        what="SimpleDirectoryReader; CodeSplitter (800 characters: of 800 to 3,000 the best coverage at 1,000 tokens) for code,"
        " SentenceSplitter (128 tokens, 16 overlapping; the best of 128 to 512) for the rest; BM25Retriever and VectorStoreIndex with"
        f" {_STATIC}, top 50 each, in QueryFusionRetriever (reciprocal ranks, no generated queries).",
        worker="llamaindex_hybrid.py",
        arguments=(MODEL,),
        requirements="llamaindex.txt",
        every=3,
    ),
    Contestant(
        name="langchain",
        tool="langchain",
        what="RecursiveCharacterTextSplitter.from_language (700 characters for code, 1,000 for prose, 100 overlapping;"
        " of 700 to 2,500 and 500 to 1,500 the best coverage at 1,000 tokens), the path as a piece's first line; BM25Retriever over lower-case words and InMemoryVectorStore with"
        f" {_STATIC}, k 50 each, in EnsembleRetriever (0.5, 0.5).",
        worker="langchain_hybrid.py",
        arguments=(MODEL,),
        requirements="langchain.txt",
    ),
    Contestant(
        name="aider",
        tool="aider-chat",
        what="RepoMap with map_tokens as the budget, no files in the chat, mentioned names found by aider's own functions;"
        " tokens counted as for gpt-4o. It shows signatures, not bodies.",
        worker="aider_map.py",
        requirements="aider.txt",
        takes_budget=True,
        cites_lines=False,
        every=8,
        kinds=("code",),
    ),
    Contestant(
        name="repomix",
        tool="repomix",
        what="Its default XML file, cut at the budget.",
        worker="repomix_pack.py",
        arguments=(PACKAGES,),
        requirements="repomix.npm.txt",
        programs=("node", "npm"),
        ranks=False,
        cites_lines=False,
        reads_question=False,
    ),
    Contestant(
        name="repomix-compress",
        tool="repomix",
        what="As repomix, with `--compress`.",
        worker="repomix_pack.py",
        arguments=(PACKAGES, "--compress"),
        requirements="repomix.npm.txt",
        programs=("node", "npm"),
        ranks=False,
        cites_lines=False,
        reads_question=False,
        variant=True,
    ),
    Contestant(
        name="gitingest",
        tool="gitingest",
        what="Its digest (tree, then files), cut at the budget.",
        worker="gitingest_digest.py",
        requirements="gitingest.txt",
        ranks=False,
        cites_lines=False,
        reads_question=False,
    ),
)


def contestant(name: str) -> Contestant:
    """The one of that name."""
    for one in CONTESTANTS:
        if one.name == name:
            return one
    raise KeyError(f"no contestant {name!r}; there are {', '.join(one.name for one in CONTESTANTS)}")
