"""A space searched in the process: its segment is caught up before each use, then asked."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from .by_words import Held, by_words
from .database import Database, Session
from .found import Picked
from .placement import everywhere
from .scope import Scope
from .segment import SMALL, Segment

__all__ = ["WITH_NEIGHBOURS", "ProcessSpace"]

WITH_NEIGHBOURS = 24


class ProcessSpace:
    def __init__(self, database: Database, segment: Segment, word: Callable[[int], str], space_word: str) -> None:
        self.segment = segment
        self._database = database
        self._word = word
        self._space_word = space_word
        self._newest = (-1, 0)

    def look_up(self, session: Session, scope: Scope, hashes: Sequence[int], count: int) -> _Seen:
        """The half of a search that needs no vector: what may be seen, and what holds the query's words."""
        segment = self.segment
        allowed = np.array(scope.allowed(session, segment.space), np.int64) if scope.filtered else None
        open_places = segment.ledger.open_to(scope.now, allowed, scope.here)
        open_records = int(np.count_nonzero(open_places))
        if open_records <= SMALL:
            return _Seen(segment, scope, open_places, np.flatnonzero(open_places).astype(np.int32), None)
        places, records = self._by_word(session, hashes, open_places, open_records, count)
        return _Seen(segment, scope, open_places, places, records)

    def _by_word(
        self,
        session: Session,
        hashes: Sequence[int],
        open_places: NDArray[np.bool_],
        open_records: int,
        count: int,
    ) -> tuple[NDArray[np.int32], NDArray[np.float64]]:
        ledger, space = self.segment.ledger, self.segment.space
        narrowing = self._narrowing(session)

        def look(i: int, most: int) -> Held:
            (nums,) = self._database.text_matches(session, space, [self._word(hashes[i])], narrowing, most)
            # Without a narrowing word, records of other spaces are among them and count for nothing here.
            places = ledger.places(nums)
            return Held(len(nums), len(places), places[open_places[places]].tolist())

        shares = np.array(self.segment.word_share(session, hashes), np.float64)
        best, records = by_words(shares, ledger.size, open_records, look, lambda places: list(places[:count]))
        return np.array(best, np.int32), records

    def _narrowing(self, session: Session) -> list[str]:
        """The space's own word, needed only where most of the store belongs to others."""
        segment = self.segment
        if session.bounds is not None:
            # How large the store is cannot be seen from here.
            return [self._space_word]
        if self._newest[0] != segment.seq:
            (newest,) = session.rows(everywhere("newest number", "SELECT max(num) FROM memory"))[0]
            self._newest = (segment.seq, newest or 0)
        return [self._space_word] if segment.ledger.size < self._newest[1] // 2 else []


@dataclass(frozen=True, slots=True)
class _Seen:
    """The segment as a query sees it: which places are open, and which were picked.

    `word_records` is None where the segment is small enough to take all of it.
    """

    segment: Segment
    scope: Scope
    open_places: NDArray[np.bool_]
    places: NDArray[np.int32]
    word_records: NDArray[np.float64] | None

    def pick(self, session: Session, query: NDArray[np.float32] | None, count: int) -> Picked:
        """A small segment is taken whole."""
        if self.word_records is None:
            return self._picked(self.places)
        lists = [self.places]
        if query is not None:
            lists.append(self.segment.vectors(session).nearest(query, self.open_places, count))
        strongest = np.concatenate([places[:WITH_NEIGHBOURS] for places in lists])
        around = np.concatenate(self.segment.ledger.neighbours(strongest))
        around = around[around >= 0]
        places = np.unique(np.concatenate([*lists, around[self.open_places[around]]]))
        return self._picked(places.astype(np.int32))

    def _picked(self, places: NDArray[np.int32]) -> Picked:
        ledger = self.segment.ledger
        index = np.full(ledger.size + 1, -1, np.int32)
        index[places] = np.arange(len(places), dtype=np.int32)
        # The last slot stands for "no neighbour", which -1 addresses.
        index[-1] = -1
        previous, following = ledger.neighbours(places)
        open_records, open_length = ledger.total_length(self.open_places)
        return Picked(
            self.segment.space,
            self.segment.seq,
            ledger.nums[places],
            ledger.column("created", places),
            ledger.column("length", places),
            ledger.column("flags", places),
            ledger.column("author", places),
            ledger.branches(places),
            index[previous],
            index[following],
            ledger.nearness(places, self.scope.near),
            open_records,
            open_length,
            self.word_records,
            self.segment.signals,
        )
