"""A space searched in the engine: too large to be kept in a process, so only candidates are ever read from it."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from functools import partial

import numpy as np
from numpy.typing import NDArray

from .by_words import Held, by_words
from .database import Database, Session, Sql
from .details import read_signals
from .found import Picked
from .kept_codes import CodesInSight, KeptCodes
from .nearest import Columns, Extent, Nearest
from .process_space import WITH_NEIGHBOURS
from .scope import Scope
from .segment import share_of_words
from .where import Where

__all__ = ["EngineSpace"]

_SAMPLED = 1_500
# Of these it is seen how much a filter lets through.
_PROBED = 512
# What is known by sampling is learned anew after so many changes of the store.
_CHANGES = 5_000
# How much further back than expected a word is looked for at first, and then each time.
_MARGIN, _FURTHER = 2.0, 8.0
_MANY = 3_000
# A filter that lets little through makes the look for a word so much longer at most.
_LONGER = 2.0
# A condition is asked of as many as should be needed, within these bounds, and again where far fewer have met it.
_LEAST_AT_ONCE, _MOST_AT_ONCE, _ENOUGH = 100, 2_000, 0.7
# Where fewer than one in so many meet a condition, codes are of use.
_SELDOM = 20
# How many records the index gives at once, less a few, and how few that meet a condition are still worth having.
_STRIDE, _FEW = 270, 16
_REMEMBERED = 256


@dataclass(frozen=True, slots=True)
class _Facts:
    """What sampling tells of a space."""

    seq: int
    extent: Extent
    sample: Sequence[int]
    shares: dict[int, float]
    # For conditions that were asked: about how many records meet it, and their average length.
    opened: dict[tuple[Sql, ...], tuple[int, float]] = field(default_factory=dict)


class EngineSpace:
    def __init__(self, space: str, database: Database, nearest: Nearest, word: Callable[[int], str]) -> None:
        self.space = space
        self._database = database
        self._nearest = nearest
        self._word = word
        self.codes = KeptCodes(space, nearest)
        self._known: _Facts | None = None

    def look_up(self, session: Session, scope: Scope, seq: int, hashes: Sequence[int], count: int) -> _Wide:
        facts = self._facts(session, seq)
        size, where = max(1, facts.extent.records), scope.only(self.space)
        open_records, average = self._open(session, scope, where, facts)
        codes = self.codes.opened(session, where, open_records) if open_records * _SELDOM < size else None
        shares = np.array([facts.shares.get(number, 0.0) for number in hashes], np.float64)
        look = partial(self._look, session, facts, shares, hashes)
        in_sight: Callable[[Sequence[int]], list[int]]
        if not scope.filtered:
            # Nearly all are seen, and those that are not are left out with their columns.
            in_sight = list
        elif codes is not None:
            open_records, in_sight = len(codes), codes.holding
        else:
            in_sight = partial(self._in_sight, session, where, count, open_records / size)
        nums, records = by_words(shares, size, open_records, look, in_sight, _LONGER)
        open_length = round(average * open_records)
        return _Wide(
            self.space,
            seq,
            self._nearest,
            codes,
            scope,
            where,
            nums[:count],
            open_records / size,
            open_records,
            open_length,
            records,
        )

    def _open(self, session: Session, scope: Scope, where: Where, facts: _Facts) -> tuple[int, float]:
        """About how many records may be seen, and their average length. What was asked before is known."""
        asked = (where.sql, *(value for value in where.params if value != scope.now))
        if asked not in facts.opened:
            probed = facts.sample[:_PROBED]
            lengths = [length for _, length in self._nearest.passing(session, self.space, probed, where)]
            records = max(1, round(facts.extent.records * (len(lengths) + 0.5) / (len(probed) + 1)))
            if len(facts.opened) >= _REMEMBERED:
                facts.opened.clear()
            facts.opened[asked] = records, sum(lengths) / len(lengths) if lengths else 1.0
        return facts.opened[asked]

    def _facts(self, session: Session, seq: int) -> _Facts:
        if self._known is None or not 0 <= seq - self._known.seq < _CHANGES:
            extent = self._nearest.extent(session, self.space)
            sample = self._nearest.sample(session, self.space, _SAMPLED, extent.records)
            shares = share_of_words(read_signals(session, self.space, sample))
            # In an order of its own: whatever is cut off at the front is a fair sample too.
            mixed = np.random.default_rng(len(sample)).permutation(np.array(sample, np.int64))
            self._known = _Facts(seq, extent, mixed.tolist(), shares)
        return self._known

    def _look(
        self,
        session: Session,
        facts: _Facts,
        shares: NDArray[np.float64],
        hashes: Sequence[int],
        i: int,
        most: int,
    ) -> Held:
        """The newest records that hold a word. A common one is looked for among the newest only, so that the
        engine need not gather all that hold it before it gives us a few."""
        size, oldest, newest = facts.extent
        reach = float(newest - oldest + 1)
        expected = float(shares[i]) * size
        # Of a word that very many hold, a few newest tell as much as many; they count for all that could be read.
        wanted = most // 3 if expected > _MANY else most
        back = _MARGIN * wanted / max(expected, 1.0) * reach
        while True:
            above = oldest - 1 if back >= reach else newest - int(back)
            (nums,) = self._database.text_matches(session, self.space, [self._word(hashes[i])], (), wanted, above)
            if len(nums) >= wanted or above < oldest:
                break
            back *= _FURTHER
        return Held(len(nums) if len(nums) < wanted else most, len(nums), nums)

    def _in_sight(self, session: Session, where: Where, count: int, share: float, nums: Sequence[int]) -> list[int]:
        """The first of the records that meet a condition, which is asked of no more than needed."""
        at_once = int(min(max(count / share, _LEAST_AT_ONCE), _MOST_AT_ONCE))
        seen: list[int] = []
        for low in range(0, len(nums), at_once):
            passing = self._nearest.passing(session, self.space, nums[low : low + at_once], where)
            seen += [num for num, _ in passing]
            if len(seen) >= _ENOUGH * count:
                break
        return seen


@dataclass(frozen=True, slots=True)
class _Wide:
    """The space after the words of a query were looked up in it."""

    space: str
    seq: int
    nearest: Nearest
    codes: CodesInSight | None
    scope: Scope
    where: Where
    nums: list[int]
    open_share: float
    open_records: int
    open_length: int
    word_records: NDArray[np.float64]

    def pick(self, session: Session, query: NDArray[np.float32] | None, count: int) -> Picked:
        lists = [self.nums]
        if query is not None:
            lists.append(self._closest(session, query, count))
        strongest = [num for nums in lists for num in nums[:WITH_NEIGHBOURS]]
        around = self.nearest.around(session, self.space, strongest)
        every = sorted({num for nums in (*lists, around) for num in nums})
        return self._picked(self.nearest.columns(session, self.space, every, self.where))

    def _closest(self, session: Session, query: NDArray[np.float32], count: int) -> list[int]:
        if self.codes is not None:
            return self.codes.closest(session, query, count)
        # The index is read on in strides; a stride for a few more is worth it only where there are very few.
        wanted = min(count, max(_FEW, int(_STRIDE * self.open_share)))
        return self.nearest.closest(session, self.space, query, self.where, wanted, self.open_records)

    def _picked(self, rows: Sequence[Columns]) -> Picked:
        index = {row.num: n for n, row in enumerate(rows)}
        branches: dict[str, int] = {}
        near = self.scope.near
        return Picked(
            self.space,
            self.seq,
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
            lambda session, nums: read_signals(session, self.space, nums),
        )
