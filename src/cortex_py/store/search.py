"""Finding candidates: both retrievers under one compiled filter, with what ranking needs of each.

Retrieval never looks outside the scope it is given, and neighbours outside it lend nothing.
"""

from __future__ import annotations

import math
import threading
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from .database import Database, Session
from .details import Details, Signal, gather
from .scope import Scope
from .segment import SMALL, Segment

__all__ = ["Found", "Part", "Search"]

_WORDS_MOST = 24
_COMMON = 0.04
_MATCHES_MOST = 600
_WITH_NEIGHBOURS = 24


@dataclass(frozen=True, slots=True)
class Found:
    """Candidates and the statistics of the scope they come from.

    `before` and `after` point into the same arrays, -1 for none. `word_records` tells for each word
    of the query how many records of the scope hold it.
    """

    details: Details
    created: NDArray[np.int64]
    length: NDArray[np.float32]
    flags: NDArray[np.int64]
    author: NDArray[np.int64]
    branch: NDArray[np.int32]
    before: NDArray[np.int32]
    after: NDArray[np.int32]
    nearness: NDArray[np.float32]
    scope_size: int
    average_length: float
    word_records: NDArray[np.float64]


@dataclass(frozen=True, slots=True)
class Part:
    """One segment as a query sees it: which places are open, and which were picked.

    `word_records` is None where the segment is small enough to take all of it.
    """

    segment: Segment
    open_places: NDArray[np.bool_]
    places: NDArray[np.int32]
    word_records: NDArray[np.float64] | None


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
        self._segments: dict[str, Segment] = {}
        self._lock = threading.RLock()
        self._newest = (-1, 0)
        self._gathered: tuple[tuple[object, ...], Details] | None = None

    @contextmanager
    def turn(self) -> Iterator[None]:
        """Hold the cached segments still, from before a transaction begins until its candidates are found.

        Another thread with a later transaction would otherwise move them past what this one can read.
        """
        with self._lock:
            yield

    def look_up(self, session: Session, scope: Scope, hashes: Sequence[int], count: int) -> list[Part]:
        """The half of a search that needs no vector: what may be seen, and what holds the query's words."""
        with self._lock:
            return [self._view(session, segment, scope, hashes, count) for segment in self._open(session, scope)]

    def candidates(
        self,
        session: Session,
        scope: Scope,
        hashes: Sequence[int],
        query: NDArray[np.float32] | None,
        count: int,
        views: Sequence[Part] | None = None,
    ) -> Found:
        """The records worth ranking for a query given as word hashes and, if wanted, a vector.

        `views` is what `look_up` gave for the same scope and words, if it was called before.
        """
        looked_up = self.look_up(session, scope, hashes, count) if views is None else views
        with self._lock:
            picked = [self._pick(session, view, query, count) for view in looked_up]
            return self._lay_out(session, scope, hashes, picked)

    def forget_all(self) -> None:
        """Drop what is cached, after a change that the sequence does not tell, such as a new model."""
        with self._lock:
            self._segments.clear()
            self._gathered = None

    # -- one segment -----------------------------------------------------------------------------

    def _open(self, session: Session, scope: Scope) -> list[Segment]:
        (seq,) = session.rows("SELECT seq FROM state WHERE one = 1")[0]
        segments = []
        for space in scope.spaces:
            segment = self._segments.get(space)
            if segment is None:
                segment = self._segments[space] = Segment(space, self._dimensions)
            segment.catch_up(session, int(seq))
            if segment.ledger.size:
                segments.append(segment)
        return segments

    def _view(self, session: Session, segment: Segment, scope: Scope, hashes: Sequence[int], count: int) -> Part:
        allowed = None if scope.allowed is None else np.array(scope.allowed, np.int64)
        open_places = segment.ledger.open_to(scope.now, allowed, scope.here)
        if int(np.count_nonzero(open_places)) <= SMALL:
            return Part(segment, open_places, np.flatnonzero(open_places).astype(np.int32), None)
        by_word, word_records = self._by_word(session, segment, hashes, open_places, count)
        return Part(segment, open_places, by_word, word_records)

    def _pick(self, session: Session, view: Part, query: NDArray[np.float32] | None, count: int) -> Part:
        """Add what is near to the query, and the neighbours of the strongest; a small segment is taken whole."""
        if view.word_records is None:
            return view
        lists = [view.places]
        if query is not None:
            lists.append(view.segment.vectors(session).nearest(query, view.open_places, count))
        strongest = np.concatenate([places[:_WITH_NEIGHBOURS] for places in lists])
        around = np.concatenate(view.segment.ledger.neighbours(strongest))
        around = around[around >= 0]
        places = np.unique(np.concatenate([*lists, around[view.open_places[around]]]))
        return Part(view.segment, view.open_places, places.astype(np.int32), view.word_records)

    def _by_word(
        self,
        session: Session,
        segment: Segment,
        hashes: Sequence[int],
        open_places: NDArray[np.bool_],
        count: int,
    ) -> tuple[NDArray[np.int32], NDArray[np.float64]]:
        """Records that hold the query's rarer words, by the weight of those words.

        Words that very many records hold are left out while there are rarer ones, and of each word
        only the newest records are read: the cost stays the same however large the store grows.
        """
        size = segment.ledger.size
        shares = np.array(segment.word_share(session, hashes), np.float64)
        records = shares * size
        narrowing = self._narrowing(session, segment)
        # A filter that lets little through needs a longer look to find as much.
        budget = int(_MATCHES_MOST * min(8.0, size / max(1, int(np.count_nonzero(open_places)))))
        order = [int(i) for i in np.argsort(shares, kind="stable")[:_WORDS_MOST]]
        held: list[NDArray[np.int32]] = []
        weights: list[float] = []
        for i in order:
            if budget <= 0 or (any(map(len, held)) and shares[i] > _COMMON):
                break
            (nums,) = self._database.text_matches(session, [self._word(hashes[i])], narrowing, budget)
            places = segment.ledger.places(nums)
            # Without a narrowing word, records of other spaces are among them and count for nothing here.
            records[i] = len(places) if len(nums) < budget else max(float(records[i]), float(len(places)))
            held.append(places[open_places[places]])
            weights.append(math.log1p(size / max(float(records[i]), 0.5)))
            budget -= len(nums)
        if not sum(map(len, held)):
            return np.empty(0, np.int32), records
        total: dict[int, float] = {}
        for part, weight in zip(held, weights, strict=True):
            for place in part.tolist():
                total[place] = total.get(place, 0.0) + weight
        # Nearly all have one word; those come in the order they were read, the newest first.
        best = sorted(total, key=total.__getitem__, reverse=True)[:count]
        return np.array(best, np.int32), records

    def _narrowing(self, session: Session, segment: Segment) -> list[str]:
        """The space's own word, needed only where most of the store belongs to others."""
        if self._newest[0] != segment.seq:
            (newest,) = session.rows("SELECT max(num) FROM memory")[0]
            self._newest = (segment.seq, newest or 0)
        return [self._space_word(segment.space)] if segment.ledger.size < self._newest[1] // 2 else []

    # -- all segments ----------------------------------------------------------------------------

    def _lay_out(self, session: Session, scope: Scope, hashes: Sequence[int], picked: Sequence[Part]) -> Found:
        nums: list[int] = []
        branch, before, after = [], [], []
        known_branches = 0
        for pick in picked:
            own, previous, following = _neighbourhood(pick, len(nums))
            nums += pick.segment.ledger.nums[pick.places].tolist()
            branch.append(np.where(own >= 0, own + known_branches, -1))
            before.append(previous)
            after.append(following)
            known_branches += int(own.max(initial=-1)) + 1
        details = self._details(session, scope, picked, nums)
        return Found(
            details,
            _column(picked, "created"),
            _column(picked, "length").astype(np.float32),
            _column(picked, "flags"),
            _column(picked, "author"),
            _joined(branch),
            _joined(before),
            _joined(after),
            _nearness(picked, scope),
            sum(int(np.count_nonzero(pick.open_places)) for pick in picked),
            _average_length(picked),
            self._word_records(details, hashes, picked),
        )

    def _details(self, session: Session, scope: Scope, picked: Sequence[Part], nums: list[int]) -> Details:
        whole = scope.allowed is None and all(pick.word_records is None for pick in picked)
        key = (len(nums), *((pick.segment.space, pick.segment.seq) for pick in picked))
        if whole and self._gathered and self._gathered[0] == key and np.array_equal(self._gathered[1].nums, nums):
            return self._gathered[1]
        signals: dict[int, Signal] = {}
        low = 0
        for pick in picked:
            part = nums[low : low + len(pick.places)]
            found = pick.segment.signals(session, part)
            signals = found if len(picked) == 1 else {**signals, **found}
            low += len(part)
        details = gather(nums, signals, self._dimensions)
        if whole:
            self._gathered = (key, details)
        return details

    def _word_records(self, details: Details, hashes: Sequence[int], picked: Sequence[Part]) -> NDArray[np.float64]:
        """In how many records of the scope each word occurs: counted where all are candidates."""
        totals = np.zeros(len(hashes), np.float64)
        low = 0
        for pick in picked:
            high = low + len(pick.places)
            totals += _counted(details, hashes, low, high) if pick.word_records is None else pick.word_records
            low = high
        return totals


def _neighbourhood(pick: Part, offset: int) -> tuple[NDArray[np.int32], NDArray[np.int32], NDArray[np.int32]]:
    """Branch codes and neighbours of the picked places, as indexes into the picked arrays."""
    ledger = pick.segment.ledger
    index = np.full(ledger.size + 1, -1, np.int32)
    index[pick.places] = np.arange(offset, offset + len(pick.places), dtype=np.int32)
    # The last slot stands for "no neighbour", which -1 addresses.
    index[-1] = -1
    previous, following = ledger.neighbours(pick.places)
    return ledger.branches(pick.places), index[previous], index[following]


def _counted(details: Details, hashes: Sequence[int], low: int, high: int) -> NDArray[np.float64]:
    record = details.chunk_record[details.term_chunk]
    inside = (record >= low) & (record < high)
    counts = np.zeros(len(hashes), np.float64)
    for i, number in enumerate(hashes):
        counts[i] = len(np.unique(record[inside & (details.term_hash == number)]))
    return counts


def _column(picked: Sequence[Part], name: str) -> NDArray[np.int64]:
    parts = [pick.segment.ledger.column(name, pick.places) for pick in picked]
    return np.concatenate(parts) if parts else np.empty(0, np.int64)


def _average_length(picked: Sequence[Part]) -> float:
    counted = [pick.segment.ledger.total_length(pick.open_places) for pick in picked]
    records = sum(count for count, _ in counted)
    return sum(length for _, length in counted) / records if records else 1.0


def _nearness(picked: Sequence[Part], scope: Scope) -> NDArray[np.float32]:
    parts = [pick.segment.ledger.nearness(pick.places, scope.near) for pick in picked]
    return np.concatenate(parts) if parts else np.empty(0, np.float32)


def _joined(parts: Sequence[NDArray[np.int32]]) -> NDArray[np.int32]:
    return np.concatenate(parts).astype(np.int32) if parts else np.empty(0, np.int32)
