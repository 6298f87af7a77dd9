"""Compression of records that lie idle: without loss, beside a summary, and never while somebody waits for a read.

Contents are packed outside any transaction and put in place in short ones; a record that changed meanwhile stays as
it is and is looked at again.
"""

from __future__ import annotations

import threading
from collections.abc import Callable
from dataclasses import dataclass
from datetime import timedelta

from ..clock import Clock, to_micros
from ..store.packing import pack, trained
from ..store.store import Store
from ..store.upkeep import Idle
from .chunking import Chunk, snippet

__all__ = ["Compressed", "Compressor"]

_RECORDS = 200
_CHARACTERS = 8_000_000
_SAMPLES = 2_000
# A space that has grown this much since a dictionary did not pay is tried again.
_GROWTH = 4
_SUMMARY = 200


@dataclass(frozen=True, slots=True)
class Compressed:
    """What a run packed: how many records, and their size before and after."""

    records: int
    bytes_before: int
    bytes_after: int


class Compressor:
    def __init__(self, store: Store, clock: Clock, idle_minutes: int) -> None:
        self._store = store
        self._clock = clock
        self._idle = timedelta(minutes=idle_minutes) if idle_minutes else None
        self._used: dict[str, int] = {}
        self._lock = threading.Lock()
        self._refused: dict[str, int] = {}

    def used(self, memory_id: str) -> None:
        """Note that a record was loaded; it is written down with the next run, not now."""
        with self._lock:
            self._used[memory_id] = to_micros(self._clock.now())

    def run(self, stop: Callable[[], bool] = lambda: False) -> Compressed:
        """Pack all that is idle, batch by batch, until there is no more or the caller wants to stop."""
        if self._idle is None:
            return Compressed(0, 0, 0)
        self.write_uses()
        until = to_micros(self._clock.now() - self._idle)
        records = before = after = 0
        while not stop():
            with self._store.database.read() as session:
                batch = self._store.upkeep.idle(session, until, _RECORDS, _CHARACTERS)
            if not batch:
                break
            packed = self._pack(batch)
            records += len(packed)
            before += sum(len(one.content.encode()) for one, _ in packed)
            after += sum(size for _, size in packed)
        return Compressed(records, before, after)

    def write_uses(self) -> None:
        """Write down what was loaded since the last time."""
        with self._lock:
            used, self._used = self._used, {}
        if used:
            with self._store.database.write() as session:
                placed = self._store.memories.placed(session, used)
                self._store.upkeep.accessed(session, {(space, one): used[one] for one, space in placed.items()})

    def _pack(self, batch: list[Idle]) -> list[tuple[Idle, int]]:
        """Pack a batch; returns those that shrank, with their new size."""
        dictionaries = {space: self._dictionary(space) for space in {one.space for one in batch}}
        made = [(one, pack(one.content, dictionaries[one.space][1])) for one in batch]
        done = []
        with self._store.database.write() as session:
            for one, packed in made:
                if packed is None:
                    self._store.upkeep.leave(session, one)
                    continue
                summary = one.summary or _gist(one.content)
                if self._store.upkeep.put_packed(session, one, packed, dictionaries[one.space][0], summary):
                    done.append((one, len(packed)))
        return done

    def _dictionary(self, space: str) -> tuple[int, bytes | None]:
        """The dictionary of a space and its number, learned now if that pays; 0 for none."""
        with self._store.database.read() as session:
            known = self._store.upkeep.dictionaries.newest(session, space)
            if known:
                return known
            samples = self._store.upkeep.samples(session, space, _SAMPLES)
        refused = self._refused.get(space, 0)
        if refused >= _SAMPLES or len(samples) < min(_GROWTH * refused, _SAMPLES):
            return 0, None
        made = trained(samples)
        if made is None:
            self._refused[space] = len(samples)
            return 0, None
        with self._store.database.write() as session:
            # Another process may have been quicker; one dictionary is enough.
            known = self._store.upkeep.dictionaries.newest(session, space)
            if known:
                return known
            return self._store.upkeep.dictionaries.add(session, space, made, to_micros(self._clock.now())), made


def _gist(content: str) -> str:
    """The beginning of a content, as a summary for one that has none."""
    return snippet(content, Chunk(0, len(content)), None, _SUMMARY)
