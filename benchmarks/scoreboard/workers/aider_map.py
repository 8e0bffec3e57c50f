"""aider's repository map with `map_tokens` as the budget; what the question mentions is found as aider finds it.

aider maps what git tracks; here every file counts as tracked, and none is in the chat.
"""

from __future__ import annotations

import shutil
import tempfile
from collections.abc import Sequence
from importlib import import_module
from importlib.metadata import version
from pathlib import Path
from types import SimpleNamespace
from typing import Any

from benchmarks.scoreboard.workers.hosting import MOST_PASSAGES, Json, Tool, files_below, passage, serve

_MODEL = "gpt-4o"
"""Decides only how tokens are counted; nothing is asked of it."""


class AiderMap(Tool):
    """Definitions in the order of aider's PageRank, shown as its tree of signatures."""

    version = version("aider-chat")

    def __init__(self) -> None:
        self._repomap = import_module("aider.repomap").RepoMap
        self._coder = import_module("aider.coders.base_coder").Coder
        self._io = import_module("aider.io").InputOutput(pretty=False, yes=True, fancy_input=False)
        self._model = import_module("aider.models").Model(_MODEL)
        self._model.token_count("warm")
        self._place = ""
        self._map: Any = None
        self._files: list[str] = []
        self._listed = SimpleNamespace()

    def index(self, folder: Path, kind: str) -> None:  # noqa: ARG002
        """Find every definition and reference."""
        self.close()
        self._place = tempfile.mkdtemp(prefix="aider-tags-")
        self._repomap.TAGS_CACHE_DIR = self._place  # beside the folder otherwise
        self._map = self._repomap(root=str(folder), main_model=self._model, io=self._io)
        self._files = [str(path) for path in files_below(folder)]
        relative = [self._map.get_rel_fname(name) for name in self._files]
        self._listed = SimpleNamespace(
            get_all_relative_files=lambda: relative,
            get_addable_relative_files=lambda: relative,
            get_inchat_relative_files=list,
            abs_read_only_fnames=set(),
        )
        for name, short in zip(self._files, relative, strict=True):
            self._map.get_tags(name, short)

    def ask(self, question: str, budgets: Sequence[int]) -> Json:
        """The map at each budget, and the definitions as it ranked them."""
        idents = self._coder.get_ident_mentions(self._listed, question)
        names = self._coder.get_file_mentions(self._listed, question)
        names |= self._coder.get_ident_filename_matches(self._listed, idents)
        tags = self._map.get_ranked_tags(set(), set(self._files), names, idents)
        self._map.get_ranked_tags = lambda *_args, **_more: tags  # the same for every budget
        try:
            contexts = {str(budget): self._context(budget, names, idents) for budget in budgets}
        finally:
            del self._map.get_ranked_tags
        return {"contexts": contexts, "passages": self._passages(tags)}

    def count(self, texts: Sequence[str]) -> list[int | None]:
        """As the map counts: exactly up to 200 characters, from a sample of lines beyond."""
        counter = self._repomap.token_count
        return [round(counter(SimpleNamespace(main_model=self._model), text)) for text in texts]

    def close(self) -> None:
        """Remove the cache of tags."""
        if self._map is not None and hasattr(self._map.TAGS_CACHE, "close"):
            self._map.TAGS_CACHE.close()
        if self._place:
            shutil.rmtree(self._place, ignore_errors=True)

    def _context(self, budget: int, names: set[str], idents: set[str]) -> Json:
        self._map.max_map_tokens = budget
        text = self._map.get_repo_map(
            set(), set(self._files), mentioned_fnames=names, mentioned_idents=idents, force_refresh=True
        )
        return {"text": text or "", "claimed": round(self._map.token_count(text)) if text else 0}

    def _passages(self, tags: list[Any]) -> list[Json]:
        """Each definition's line; a file without any stands for itself."""
        found = []
        for tag in tags[:MOST_PASSAGES]:
            line = tag.line + 1 if len(tag) > 1 and tag.line >= 0 else None
            found.append(passage(Path(tag[0]).as_posix(), line, line, tag.name if len(tag) > 1 else ""))
        return found


if __name__ == "__main__":
    serve(AiderMap)
