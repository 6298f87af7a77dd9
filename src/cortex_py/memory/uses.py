"""Which memories were recalled: noted in passing, written down later. A recall never waits for a write."""

from __future__ import annotations

import threading
from collections.abc import Iterable

from ..clock import Clock, to_micros
from ..store.store import Store

__all__ = ["Uses"]


class Uses:
    def __init__(self, store: Store, clock: Clock) -> None:
        self._store = store
        self._clock = clock
        self._lock = threading.Lock()
        self._noted: dict[str, tuple[int, int]] = {}

    def note(self, ids: Iterable[str]) -> None:
        """Count one recall of each."""
        at = to_micros(self._clock.now())
        with self._lock:
            for memory_id in ids:
                count, _ = self._noted.get(memory_id, (0, 0))
                self._noted[memory_id] = (count + 1, at)

    def write(self) -> None:
        """Write down what was noted, if anything was."""
        with self._lock:
            noted, self._noted = self._noted, {}
        if noted:
            with self._store.database.write() as session:
                # What was purged meanwhile leaves nothing behind.
                placed = self._store.memories.placed(session, noted)
                self._store.recalls.add(session, {(space, one): noted[one] for one, space in placed.items()})
