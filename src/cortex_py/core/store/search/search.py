"""Finds candidates: word and vector retrieval under one compiled filter, with what ranking needs of each.

Retrieval never looks outside its scope, and neighbours outside it do not count. A space is searched in the process, or
in the engine if that has an index of its vectors: then it is too large for a process, and only candidates are read.
"""

from __future__ import annotations

import operator
import threading
import time
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from functools import partial
from typing import TYPE_CHECKING

import numpy as np
from numpy.typing import NDArray

from ..database import Database, Session, Sql, visible
from ..rows import index_word
from .candidates import (
    CandidateSet,
    Details,
    SpaceCandidates,
    SpaceQuery,
    combine_candidates,
    gather,
    join_details,
    read_details,
    read_signals,
)
from .codes import CodeCache, FilteredCodes
from .filters import Scope, Where
from .process_space import WITH_NEIGHBOURS, ProcessSpace, Segment, WordMatches, by_words, changes_of, share_of_words

if TYPE_CHECKING:
    from .vector_index import Extent, RankingColumns, VectorIndex

__all__ = ["CandidateSet", "Search"]


_SAMPLED = 1_500
# The part of the sample that a filter is tried on.
_PROBED = 512
# A sample is replaced after so many changes of the space.
_CHANGES = 5_000
# How much further back than expected a word is searched: at first, and in each further attempt.
_MARGIN, _FURTHER = 2.0, 8.0
_MANY = 3_000
# A selective filter makes the search for a word so much longer at most.
_LONGER = 2.0
# The filter is checked for as many records at a time as should be needed, within these bounds, until enough pass.
_LEAST_AT_ONCE, _MOST_AT_ONCE, _ENOUGH = 100, 2_000, 0.7
# Codes are used if fewer than one record in so many passes the filter.
_SELDOM = 20
# Roughly how many records one read of the index yields, and how many that pass are the least to ask for.
_STRIDE, _FEW = 270, 16
_REMEMBERED = 256


@dataclass(frozen=True, slots=True, eq=False)
class _Facts:
    """What is known of a space by sampling."""

    seq: int
    extent: Extent
    sample: Sequence[int]
    shares: dict[int, float]
    # For each filter so far: about how many records pass it, and their average length.
    opened: dict[tuple[Sql, ...], tuple[int, float]] = field(default_factory=dict)


class EngineSpace:
    def __init__(self, space: str, dimensions: int, database: Database, index: VectorIndex) -> None:
        self.space = space
        self._dimensions = dimensions
        self._database = database
        self._index = index
        self.codes = CodeCache(space, index)
        self._known: _Facts | None = None

    def look_up(self, session: Session, scope: Scope, seq: int, hashes: Sequence[int], count: int) -> _EngineQuery:
        facts = self._facts(session, seq)
        size, where = max(1, facts.extent.records), scope.only(self.space)
        open_records, average = self._open(session, scope, where, facts)
        codes = self.codes.opened(session, where, open_records) if open_records * _SELDOM < size else None
        shares = np.array([facts.shares.get(number, 0.0) for number in hashes], np.float64)
        look = partial(self._look, session, facts, shares, hashes)
        in_sight: Callable[[Sequence[int]], list[int]]
        if not scope.filtered:
            # Nearly all records are visible; `columns` drops the others.
            in_sight = list
        elif codes is not None:
            open_records, in_sight = len(codes), codes.holding
        else:
            in_sight = partial(self._in_sight, session, where, count, open_records / size)
        nums, records = by_words(shares, size, open_records, look, in_sight, _LONGER)
        shown = (open_records / size, open_records, round(average * open_records))
        return _EngineQuery(
            self.space, self._dimensions, self._index, codes, scope, where, nums[:count], *shown, records
        )

    def _open(self, session: Session, scope: Scope, where: Where, facts: _Facts) -> tuple[int, float]:
        """About how many records are visible, and their average length; cached for each filter."""
        asked = (where.sql, *(value for value in where.params if value != scope.now))
        known = facts.opened.get(asked)
        if known is None:
            probed = facts.sample[:_PROBED]
            lengths = [length for _, length in self._index.passing(session, self.space, probed, where)]
            records = max(1, round(facts.extent.records * (len(lengths) + 0.5) / (len(probed) + 1)))
            if len(facts.opened) >= _REMEMBERED:
                facts.opened.clear()
            known = facts.opened[asked] = records, sum(lengths) / len(lengths) if lengths else 1.0
        return known

    def _facts(self, session: Session, seq: int) -> _Facts:
        # Read once: another thread may replace it.
        known = self._known
        if known is None or not 0 <= seq - known.seq < _CHANGES:
            extent = self._index.extent(session, self.space)
            sample = self._index.sample(session, self.space, _SAMPLED, extent.records)
            shares = share_of_words(read_signals(session, self.space, sample))
            # Shuffled, so that any beginning of it is a fair sample too.
            mixed = np.random.default_rng(len(sample)).permutation(np.array(sample, np.int64))
            known = self._known = _Facts(seq, extent, mixed.tolist(), shares)
        return known

    def _look(
        self, session: Session, facts: _Facts, shares: NDArray[np.float64], hashes: Sequence[int], i: int, most: int
    ) -> WordMatches:
        """The newest records that contain a word. A common word is searched among the newest records only, so that
        the engine does not collect all of its records to return a few."""
        size, oldest, newest = facts.extent
        reach = float(newest - oldest + 1)
        expected = float(shares[i]) * size
        # For a very common word a few records are enough; they count as if all had been read.
        wanted = most // 3 if expected > _MANY else most
        back = _MARGIN * wanted / max(expected, 1.0) * reach
        while True:
            above = oldest - 1 if back >= reach else newest - int(back)
            nums = self._database.text_matches(session, self.space, index_word(hashes[i]), (), wanted, above)
            if len(nums) >= wanted or above < oldest:
                break
            back *= _FURTHER
        return WordMatches(len(nums) if len(nums) < wanted else most, len(nums), nums)

    def _in_sight(self, session: Session, where: Where, count: int, share: float, nums: Sequence[int]) -> list[int]:
        """The first of the records that pass the filter, which is checked for no more than needed."""
        at_once = int(min(max(count / share, _LEAST_AT_ONCE), _MOST_AT_ONCE))
        seen: list[int] = []
        for low in range(0, len(nums), at_once):
            passing = self._index.passing(session, self.space, nums[low : low + at_once], where)
            seen += [num for num, _ in passing]
            if len(seen) >= _ENOUGH * count:
                break
        return seen


@dataclass(frozen=True, slots=True, eq=False)
class _EngineQuery:
    """A query in the space, after its words were looked up."""

    space: str
    dimensions: int
    index: VectorIndex
    codes: FilteredCodes | None
    scope: Scope
    where: Where
    nums: list[int]
    open_share: float
    open_records: int
    open_length: int
    word_records: NDArray[np.float64]

    def pick(self, session: Session, query: NDArray[np.float32] | None, count: int) -> SpaceCandidates:
        lists = [self.nums]
        if query is not None:
            lists.append(self._closest(session, query, count))
        strongest = [num for nums in lists for num in nums[:WITH_NEIGHBOURS]]
        around = self.index.around(session, self.space, strongest)
        every = sorted({num for nums in (*lists, around) for num in nums})
        return self._candidates(self.index.columns(session, self.space, every, self.where))

    def _closest(self, session: Session, query: NDArray[np.float32], count: int) -> list[int]:
        if self.codes is not None:
            return self.codes.closest(session, query, count)
        # The index is read in strides; one more stride is only worth it where very few records pass.
        wanted = min(count, max(_FEW, int(_STRIDE * self.open_share)))
        return self.index.closest(session, self.space, query, self.where, wanted, self.open_records)

    def _candidates(self, rows: Sequence[RankingColumns]) -> SpaceCandidates:
        index = {row.num: n for n, row in enumerate(rows)}
        branches: dict[str, int] = {}
        near = self.scope.near
        return SpaceCandidates(
            self.space,
            np.array([row.num for row in rows], np.int64),
            np.array([row.created for row in rows], np.int64),
            np.array([row.length for row in rows], np.int64),
            np.array([row.flags for row in rows], np.int64),
            np.array([row.author for row in rows], np.int64),
            np.array(
                [-1 if row.branch is None else branches.setdefault(row.branch, len(branches)) for row in rows], np.int32
            ),
            np.array([index.get(row.before or -1, -1) for row in rows], np.int32),
            np.array([index.get(row.after or -1, -1) for row in rows], np.int32),
            np.array([near.get(row.branch or "", 0.0) for row in rows], np.float32),
            self.open_records,
            self.open_length,
            self.word_records,
            lambda session: read_details(session, self.space, index, self.dimensions),
        )


# How many codes a process keeps at most, about 72 bytes each.
_CODES_MOST = 2_000_000
# A process holds spaces with so many records together, about 1.5 KB each, and those that were searched a moment ago.
_RECORDS_MOST = 500_000
_USED_SECONDS = 60.0


class Search:
    def __init__(self, database: Database, dimensions: int) -> None:
        self._database = database
        self._dimensions = dimensions
        # The space that was searched last comes last.
        self._in_process: dict[str, ProcessSpace] = {}
        self._in_engine: dict[str, EngineSpace] = {}
        self._lock = threading.RLock()
        self._joined: tuple[Sequence[Details], Details] | None = None
        self._era = database.era

    def changes(self, session: Session, spaces: Sequence[str]) -> dict[str, int]:
        """The last change of each space that the transaction can read; 0 where there was none."""
        if self._era != (era := self._database.era):
            # Change sequences may have gone back, and count other changes now.
            self.forget_all()
            self._era = era
        return changes_of(session, visible(spaces, session.bounds))

    def look_up(
        self,
        session: Session,
        scope: Scope,
        hashes: Sequence[int],
        count: int,
        changes: Mapping[str, int] | None = None,
    ) -> list[SpaceQuery]:
        """The half of a search that needs no vector: which records are visible, and which contain the words.

        `changes` is the result of `changes` for these spaces, if it was called before.
        """
        seqs = self.changes(session, scope.spaces) if changes is None else changes
        # Nothing was ever written to the others.
        spaces = [space for space in visible(scope.spaces, session.bounds) if seqs[space]]
        index = self._database.vector_index
        covered = index.covered(session, spaces) if index is not None else set()
        queries = [self._space(one, one in covered).look_up(session, scope, seqs[one], hashes, count) for one in spaces]
        return [query for query in queries if query is not None]

    def candidates(
        self,
        session: Session,
        scope: Scope,
        hashes: Sequence[int],
        query: NDArray[np.float32] | None,
        count: int,
        looked_up: Sequence[SpaceQuery] | None = None,
    ) -> CandidateSet:
        """The records worth ranking for a query, given as word hashes and optionally a vector.

        `looked_up` is the result of `look_up` for the same scope and words, if it was called before.
        """
        queries = self.look_up(session, scope, hashes, count) if looked_up is None else looked_up
        spaces = [one.pick(session, query, count) for one in queries]
        return combine_candidates(spaces, self._details(session, spaces), hashes)

    def count(self, session: Session, scope: Scope) -> int | None:
        """How many records are visible; None where this process holds no columns that tell, and the store has to."""
        seqs = self.changes(session, scope.spaces)
        spaces = [space for space in visible(scope.spaces, session.bounds) if seqs[space]]
        with self._lock:
            held = [self._in_process.get(space) for space in spaces]
        total = 0
        for space, one in zip(spaces, held, strict=True):
            counted = one.count(session, scope, seqs[space]) if one else None
            if counted is None:
                return None
            total += counted
        return total

    def nearest(self, session: Session, scope: Scope, query: NDArray[np.float32], count: int) -> Details:
        """What is stored of at least `count` records near a vector, if there are as many, in no certain order."""
        looked_up = self.look_up(session, scope, (), count)
        return self._details(session, [one.pick(session, query, count) for one in looked_up])

    def forget_all(self) -> None:
        """Drop all caches, after a change outside the change sequences, such as a new model."""
        with self._lock:
            self._in_process.clear()
            self._in_engine.clear()
            self._joined = None

    def forget(self, spaces: Iterable[str]) -> None:
        """Drop what is cached of some spaces."""
        with self._lock:
            for space in spaces:
                self._in_process.pop(space, None)
                self._in_engine.pop(space, None)
            self._joined = None

    def larger_than(self, records: int) -> list[str]:
        """Spaces searched in the process that have more records than this."""
        return [space for space, one in self.segments().items() if one.columns.size > records]

    def segments(self) -> dict[str, Segment]:
        """The spaces that are searched in the process."""
        with self._lock:
            return {space: one.segment for space, one in self._in_process.items()}

    def read_codes(self, stop: Callable[[], bool]) -> None:
        """Read, or update, the codes that queries could have used in spaces that the engine searches."""
        with self._lock:
            wanted = {space: one.codes for space, one in self._in_engine.items() if one.codes.wanted}
        index, left = self._database.vector_index, _CODES_MOST
        if index is None:
            return
        for space, codes in wanted.items():
            with self._database.read() as session:
                # A dropped index has nothing to read; the next query notices too.
                if space in index.covered(session, [space]):
                    codes.read(session, changes_of(session, [space])[space], left, stop)
            left -= len(codes)

    def _space(self, space: str, covered: bool) -> ProcessSpace | EngineSpace:
        index = self._database.vector_index
        with self._lock:
            if index is not None and covered:
                self._in_process.pop(space, None)
                return self._in_engine.setdefault(space, EngineSpace(space, self._dimensions, self._database, index))
            self._in_engine.pop(space, None)
            held = self._in_process.pop(space, None)
            if held is None:
                self._drop_unused()
                held = ProcessSpace(self._database, Segment(space, self._dimensions, self._database.kept_spaces))
            held.used_at = time.monotonic()
            self._in_process[space] = held
            return held

    def _drop_unused(self) -> None:
        """Drop the spaces that were searched longest ago, if a process holds too many records."""
        records = sum(one.segment.columns.size for one in self._in_process.values())
        for space, one in [*self._in_process.items()]:
            if records <= _RECORDS_MOST or one.used_at > time.monotonic() - _USED_SECONDS:
                return
            records -= one.segment.columns.size
            del self._in_process[space]

    def keep_spaces(self, stop: Callable[[], bool], *, check: bool) -> None:
        """Write the files from which other processes read the spaces that this one searched.

        `check` also reads all of a file that this process uses, once, and drops what came from a damaged one.
        """
        for space, segment in self.segments().items():
            if stop():
                return
            # The file takes less memory than what it was written from.
            if (segment.is_unkept and segment.keep(self._database)) or (check and not segment.check_kept()):
                self.forget([space])

    def _details(self, session: Session, spaces: Sequence[SpaceCandidates]) -> Details:
        parts = [one.details(session) for one in spaces]
        if len(parts) < 2:
            return parts[0] if parts else gather([], {}, self._dimensions)
        # Read once: another thread may replace it.
        joined = self._joined
        if joined is None or len(joined[0]) != len(parts) or not all(map(operator.is_, joined[0], parts)):
            joined = self._joined = parts, join_details(parts)
        return joined[1]
