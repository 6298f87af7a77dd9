"""Compression of idle records, without loss and beside a summary.

Contents are packed outside any transaction and stored in short ones, so that readers never wait. A record that changed
in between is left for the next run.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from datetime import timedelta

from ..clock import Clock, to_micros
from ..jobs import ForkLock
from ..store.packing import pack, train_dictionary
from ..store.store import Store
from ..store.tables.upkeep import IdleRecord
from .text import Chunk, snippet

__all__ = ["CompressionResult", "Compressor"]

_RECORDS = 200
_CHARACTERS = 8_000_000
_SAMPLES = 2_000
# A dictionary that did not pay is tried again once the space has grown by this factor.
_GROWTH = 4
_SUMMARY = 200


@dataclass(frozen=True, slots=True)
class CompressionResult:
    """How many records a run packed, and their size before and after."""

    records: int
    bytes_before: int
    bytes_after: int


class Compressor:
    def __init__(self, store: Store, clock: Clock, idle_minutes: int) -> None:
        self._store = store
        self._clock = clock
        self._idle = timedelta(minutes=idle_minutes) if idle_minutes else None
        self._used: dict[str, int] = {}
        self._lock = ForkLock()
        self._refused: dict[str, int] = {}

    def mark_used(self, memory_id: str) -> None:
        """Record that a memory was loaded; it is stored by the next `write_uses`."""
        with self._lock:
            self._used[memory_id] = to_micros(self._clock.now())

    def run(self, stop: Callable[[], bool] = lambda: False) -> CompressionResult:
        """Pack all idle records, batch by batch, until none is left or `stop` returns true."""
        if self._idle is None:
            return CompressionResult(0, 0, 0)
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
        return CompressionResult(records, before, after)

    def write_uses(self) -> None:
        """Store what was loaded since the last call."""
        with self._lock:
            used, self._used = self._used, {}
        if used:
            with self._store.database.read() as session:
                spaces = set(self._store.memories.spaces_of(session, used).values())
            if not spaces:
                return
            with self._store.database.write(*spaces) as session:
                placed = self._store.memories.spaces_of(session, used)
                self._store.upkeep.accessed(session, {(space, one): used[one] for one, space in placed.items()})

    def _pack(self, batch: list[IdleRecord]) -> list[tuple[IdleRecord, int]]:
        """Pack a batch; returns the records that shrank, with their new sizes."""
        dictionaries = {space: self._dictionary(space) for space in {one.space for one in batch}}
        made = [(one, pack(one.content, dictionaries[one.space][1])) for one in batch]
        done = []
        with self._store.database.write(*dictionaries) as session:
            for one, packed in made:
                if packed is None:
                    self._store.upkeep.mark_unpackable(session, one)
                    continue
                summary = one.summary or snippet(one.content, Chunk(0, len(one.content)), None, _SUMMARY)
                if self._store.upkeep.put_packed(session, one, packed, dictionaries[one.space][0], summary):
                    done.append((one, len(packed)))
        return done

    def _dictionary(self, space: str) -> tuple[int, bytes | None]:
        """The number and dictionary of a space, trained now if that pays; 0 and None without one."""
        with self._store.database.read() as session:
            known = self._store.upkeep.dictionaries.newest(session, space)
            if known:
                return known
            samples = self._store.upkeep.samples(session, space, _SAMPLES)
        refused = self._refused.get(space, 0)
        if refused >= _SAMPLES or len(samples) < min(_GROWTH * refused, _SAMPLES):
            return 0, None
        made = train_dictionary(samples)
        if made is None:
            self._refused[space] = len(samples)
            return 0, None
        with self._store.database.write(space) as session:
            # Another process may have stored one meanwhile; one is enough.
            known = self._store.upkeep.dictionaries.newest(session, space)
            if known:
                return known
            return self._store.upkeep.dictionaries.add(session, space, made, to_micros(self._clock.now())), made
