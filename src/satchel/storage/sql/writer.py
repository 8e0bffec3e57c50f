"""One commit in the making: files, blocks of the workspace, and rows of another store."""

from __future__ import annotations

from functools import cached_property

from satchel.storage.sql.block_writer import BlockWriter
from satchel.storage.sql.file_writer import FileWriter
from satchel.storage.sql.transfer import SqlTransferWriter


class RelationalWriter(FileWriter):
    """One commit in the making."""

    @cached_property
    def blocks(self) -> BlockWriter:
        """The writer of the workspace's blocks."""
        return BlockWriter(self._db, self, self._generation)

    @property
    def transfer(self) -> SqlTransferWriter:
        """The writer of rows from another store."""
        return SqlTransferWriter(self._db, self)

    def settle(self) -> None:
        """Write what the blocks of this commit have left to the end."""
        if "blocks" in self.__dict__:
            self.blocks.settle()
