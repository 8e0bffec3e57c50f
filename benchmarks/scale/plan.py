"""What many workspaces need, and what becomes of a large one: reckoned from the model."""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import Final, NamedTuple

from benchmarks.scale.model import Model

LEAST_INDEXED: Final = 50_000
TARGET_MS: Final = 150.0
SIZES: Final = (10_000, 100_000, 1_000_000)
"""The workspaces of a deployment: each size holds a third of all blocks."""
COPIES: Final = 2
HOT_WORDS: Final = 0.2
"""The share of the inverted lists, and of their index, that is asked for often."""
VCPUS, RAM, DISK = 16, 64e9, 1e12
USED_RAM, USED_DISK, USED_CPU = 0.75, 0.5, 0.5
QUESTIONS_PER_BLOCK: Final = 1e-6
"""Questions a second."""
WORKERS: Final = 16


def relaid(held: int, share: float = 0.1) -> float:
    """How often a block is laid out again, on average, while a workspace grows by a share in commits of one block.

    After every commit the store looks which segments to lay together; this asks the store's own rule.
    """
    from satchel.storage.sql.scoring_layout import segments_to_merge

    sizes, moved, added = {0: held}, 0, int(held * share)
    for number in range(1, added + 1):
        sizes[number] = 1
        chosen = segments_to_merge(sizes, gone=0, files=held)
        if chosen:
            size = sum(sizes.pop(one) for one in chosen)
            moved += size
            sizes[number] = size
    return moved / added


def most_blocks_of_views() -> float:
    """The largest workspace of which a process keeps as many views as it may, each of half of the blocks."""
    from satchel.storage.postgres.search import _MOST_BYTES, _MOST_VIEWS, _PER_PIECE

    return _MOST_BYTES / _MOST_VIEWS / (2 * _PER_PIECE * 0.5)


class Deployment(NamedTuple):
    """What so many blocks need, from the measured room and the fitted times."""

    blocks: float
    workspaces: tuple[int, ...]
    disk: float
    """Bytes of one copy."""
    ram: float
    """Bytes that are read by most questions."""
    cores: float
    """Server cores that are busy with questions, when each large workspace has an index of its own."""
    shards: int
    index_cpu_s: float
    import_s: float
    """With the workers, each with workspaces of its own."""


def deployment(model: Model, blocks: float, sizes: Sequence[int] = SIZES) -> Deployment:
    """Workspaces of these sizes, each size with the same share of the blocks."""
    share = blocks / len(sizes)
    disk = ram = cores = built = 0.0
    for size in sizes:
        large = size >= LEAST_INDEXED
        words, dense = model.bytes_per_block("words", size), model.bytes_per_block("dense", size)
        hnsw = model.bytes_per_block("hnsw", size) if large else 0.0
        disk += share * (model.bytes_per_block("truth", size) + words + dense + hnsw)
        ram += share * (HOT_WORDS * words + (hnsw if large else dense))
        cores += share * QUESTIONS_PER_BLOCK * model.server_ms(size / 2, by_index=large) / 1e3
        built += share / size * model.fits["build"](size) if large else 0.0
    shards = max(
        1, *(math.ceil(one) for one in (ram / (USED_RAM * RAM), disk / (USED_DISK * DISK), cores / (USED_CPU * VCPUS)))
    )
    engine = model.about["engine"]
    taken = blocks / WORKERS * engine["import_s"] / engine["blocks"]
    return Deployment(blocks, tuple(round(share / size) for size in sizes), disk, ram, cores, shards, built, taken)
