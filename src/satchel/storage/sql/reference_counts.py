"""How much each file's definitions are used by others."""

from __future__ import annotations

import math
from typing import TYPE_CHECKING, Final

from satchel.storage.sql.file_writer import FileWriter, fact
from satchel.storage.sql.rows import count

if TYPE_CHECKING:
    from satchel.storage.sql.rows import Database

_RELINK_SHARE: Final = 0.05
_QUICKLY_LINKED: Final = 20_000
_MOST_HOMES: Final = 3
_MOST_USERS: Final = 20


def file_centrality(db: Database) -> dict[int, float]:
    """How much each file is used by others; files that are not used are left out."""
    return dict(db.execute("SELECT id, central FROM file WHERE workspace = ? AND central <> 0", (db.workspace,)))


def weigh_links(db: Database, generation: int) -> bool:
    """Count how much each file is used; not anew for every small change. Whether anything was counted."""
    here = db.workspace
    since = int(fact(db, "linked") or 0)
    fresh = int(db.execute("SELECT count(*) FROM file WHERE workspace = ? AND generation > ?", (here, since)).get)
    if fresh <= _RELINK_SHARE * count(db, "file") and count(db, "mention") > _QUICKLY_LINKED:
        return False
    before = file_centrality(db)
    mentioning = "SELECT name, count(DISTINCT file) FROM mention WHERE workspace = ? GROUP BY name"
    users = dict(db.execute(mentioning, (here,)))
    homes: dict[str, set[int]] = {}
    for file, name in db.execute("SELECT file, name FROM block WHERE workspace = ?", (here,)):
        homes.setdefault(name, set()).add(file)
    used: dict[int, float] = {}
    for name, files in homes.items():
        # A name that many files define says little about any of them.
        if len(files) <= _MOST_HOMES and name in users:
            for file in files:
                used[file] = used.get(file, 0.0) + min(users[name], _MOST_USERS) / len(files)
    now = {file: math.log1p(value) for file, value in used.items()}
    changed = [file for file in sorted(before.keys() | now.keys()) if before.get(file) != now.get(file)]
    db.executemany(
        "UPDATE file SET central = ? WHERE workspace = ? AND id = ?",
        [(now.get(file, 0.0), here, file) for file in changed],
    )
    FileWriter(db, generation).set_fact("linked", generation)
    return bool(changed)
