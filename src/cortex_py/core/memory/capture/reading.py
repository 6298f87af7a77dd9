"""Reads new notes for the graph after their capture was acknowledged: in their order, once, and by any process.

A capture marks its notes as pending in its own transaction. `jobs.Jobs` says when they are read: when captures and
recalls pause, by whatever needs the graph before it looks, and by the next process that opens the home. A note is read
as it would have been before it was stored: after all earlier ones of its space, and without the later ones. The first
to write what was read claims the note in that transaction, so nothing is written twice.
"""

from __future__ import annotations

import logging
from collections.abc import Sequence
from typing import TYPE_CHECKING

from ...errors import CortexError
from ...records import Memory
from ...security.callers import as_system
from ...store.store import Store

if TYPE_CHECKING:
    from .capture import Capture

__all__ = ["WaitingNotes"]

logger = logging.getLogger(__name__)

# Space and number of a note, and the note.
_Note = tuple[str, int, Memory]


class WaitingNotes:
    """The notes of one store that wait to be read."""

    def __init__(self, store: Store) -> None:
        self._store = store
        self._reader: Capture | None = None

    def use(self, reader: Capture) -> None:
        """Read with this one, unless there is another already: each can read the notes of all spaces."""
        self._reader = self._reader or reader

    def count(self, most: int) -> int:
        with as_system(), self._store.database.read() as session:
            return self._store.graph.count_pending(session, most)

    def take(self, spaces: Sequence[str] | None, most: int) -> list[_Note]:
        """The oldest ones, of some spaces or of all."""
        memories = self._store.memories
        with as_system(), self._store.database.read() as session:
            return [
                (space, num, memory)
                for space, nums in self._store.graph.pending(session, spaces, most).items()
                for num, _, _, memory in memories.by_numbers(session, space, nums)
            ]

    def read(self, note: _Note) -> bool:
        """Read one and store what was read; returns whether another process has done so at the same time."""
        with as_system():
            return self._read(*note)

    def _read(self, space: str, num: int, memory: Memory) -> bool:
        reader = self._reader
        if reader is None:
            raise RuntimeError("no project is open")
        try:
            stored = reader.read_stored(space, num, memory)
        except CortexError:
            raise
        except Exception:
            # It would fail again, and everything behind it would wait for ever.
            logger.exception("memory %s could not be read for the graph, which has nothing of it", memory.id)
            stored = reader.unreadable(space, num, memory)
        with self._store.database.write(space, derived=True) as session:
            claimed = self._store.graph.claim(session, space, num, memory.version)
            if claimed:
                reader.write_stored(session, stored)
        return not claimed
