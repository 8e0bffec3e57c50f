"""Git repositories made on the spot."""

from __future__ import annotations

from pathlib import Path

import pygit2

ANN = pygit2.Signature("Ann", "ann@example.org", 1_700_000_000, 0)


class Repository:
    """A repository in a folder, with `git`, the library's view of it."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder
        self.git = pygit2.init_repository(str(folder), initial_head="main")

    def write(self, files: dict[str, str]) -> None:
        """Write files, and commit nothing."""
        for name, text in files.items():
            place = self.folder / name
            place.parent.mkdir(parents=True, exist_ok=True)
            place.write_text(text)

    def commit(
        self, message: str, files: dict[str, str], parents: list[pygit2.Oid] | None = None, branch: str = "HEAD"
    ) -> pygit2.Oid:
        """Write files, and commit all there is."""
        self.write(files)
        self.git.index.add_all()
        self.git.index.write()
        if parents is None:
            parents = [] if self.git.head_is_unborn else [self.git.head.target]
        return self.git.create_commit(branch, ANN, ANN, message, self.git.index.write_tree(), parents)
