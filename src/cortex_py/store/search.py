"""Finding candidates: both retrievers under one compiled filter, with what ranking needs of each.

Retrieval never looks outside the scope it is given, and neighbours outside it lend nothing. A space is searched in the
process, or in the engine where that has an index of its vectors.
"""

from __future__ import annotations

import threading
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager

import numpy as np
from numpy.typing import NDArray

from .bounds import visible
from .database import Database, Session
from .details import Details, Signal, gather
from .engine_space import EngineSpace
from .found import Found, Looked, Picked, lay_out
from .process_space import ProcessSpace
from .scope import Scope
from .segment import Segment

__all__ = ["Found", "Search"]

# A process keeps no more than these, about 72 bytes each.
_CODES_MOST = 2_000_000


class Search:
    def __init__(
        self,
        database: Database,
        dimensions: int,
        word: Callable[[int], str],
        space_word: Callable[[str], str],
    ) -> None:
        self._database = database
        self._dimensions = dimensions
        self._word = word
        self._space_word = space_word
        self._in_process: dict[str, ProcessSpace] = {}
        self._in_engine: dict[str, EngineSpace] = {}
        self._lock = threading.RLock()
        self._gathered: tuple[tuple[object, ...], Details] | None = None

    @contextmanager
    def turn(self) -> Iterator[None]:
        """Hold the cached segments still, from before a transaction begins until its candidates are found.

        Another thread with a later transaction would otherwise move them past what this one can read.
        """
        with self._lock:
            yield

    def look_up(self, session: Session, scope: Scope, hashes: Sequence[int], count: int) -> list[Looked]:
        """The half of a search that needs no vector: what may be seen, and what holds the query's words."""
        (seq,) = session.rows("SELECT seq FROM state WHERE one = 1")[0]
        spaces = visible(scope.spaces, session.bounds)
        nearest = self._database.nearest
        covered = nearest.covered(session, spaces) if nearest is not None else set()
        with self._lock:
            return [
                looked
                for space in spaces
                if (looked := self._look_up(session, scope, space, space in covered, int(seq), hashes, count))
                is not None
            ]

    def candidates(
        self,
        session: Session,
        scope: Scope,
        hashes: Sequence[int],
        query: NDArray[np.float32] | None,
        count: int,
        looked_up: Sequence[Looked] | None = None,
    ) -> Found:
        """The records worth ranking for a query given as word hashes and, if wanted, a vector.

        `looked_up` is what `look_up` gave for the same scope and words, if it was called before.
        """
        looked = self.look_up(session, scope, hashes, count) if looked_up is None else looked_up
        with self._lock:
            picked = [one.pick(session, query, count) for one in looked]
            return lay_out(picked, self._details(session, scope, picked), hashes)

    def forget_all(self) -> None:
        """Drop what is cached, after a change that the sequence does not tell, such as a new model."""
        with self._lock:
            self._in_process.clear()
            self._in_engine.clear()
            self._gathered = None

    def larger_than(self, records: int) -> list[str]:
        """Spaces kept in the process that have more records than this."""
        with self._lock:
            return [space for space, held in self._in_process.items() if held.segment.ledger.size > records]

    def read_codes(self, stop: Callable[[], bool]) -> None:
        """Read, or bring up to date, what queries would have used of spaces that the engine searches."""
        with self._lock:
            wanted = {space: held.codes for space, held in self._in_engine.items() if held.codes.wanted}
        nearest, room = self._database.nearest, _CODES_MOST
        if nearest is None:
            return
        for space, codes in wanted.items():
            with self._database.read() as session:
                # An index that was given up has nothing to read; the next query notices too.
                if space in nearest.covered(session, [space]):
                    (seq,) = session.rows("SELECT seq FROM state WHERE one = 1")[0]
                    codes.read(session, int(seq), room, stop)
            room -= len(codes)

    def _look_up(
        self,
        session: Session,
        scope: Scope,
        space: str,
        covered: bool,
        seq: int,
        hashes: Sequence[int],
        count: int,
    ) -> Looked | None:
        nearest = self._database.nearest
        if nearest is not None and covered:
            self._in_process.pop(space, None)
            wide = self._in_engine.setdefault(space, EngineSpace(space, self._database, nearest, self._word))
            return wide.look_up(session, scope, seq, hashes, count)
        self._in_engine.pop(space, None)
        held = self._in_process.get(space)
        if held is None:
            segment = Segment(space, self._dimensions)
            held = self._in_process[space] = ProcessSpace(self._database, segment, self._word, self._space_word(space))
        held.segment.catch_up(session, seq)
        return held.look_up(session, scope, hashes, count) if held.segment.ledger.size else None

    def _details(self, session: Session, scope: Scope, picked: Sequence[Picked]) -> Details:
        nums = [num for pick in picked for num in pick.nums.tolist()]
        whole = not scope.filtered and all(pick.word_records is None for pick in picked)
        key = (len(nums), *((pick.space, pick.seq) for pick in picked))
        if whole and self._gathered and self._gathered[0] == key and np.array_equal(self._gathered[1].nums, nums):
            return self._gathered[1]
        found = [pick.signals(session, pick.nums.tolist()) for pick in picked]
        signals: Mapping[int, Signal] = found[0] if len(found) == 1 else {k: v for one in found for k, v in one.items()}
        details = gather(nums, signals, self._dimensions)
        if whole:
            self._gathered = (key, details)
        return details
