"""The codes of a space that the engine searches, kept in a process for filters that let little through.

An index of vectors passes over all that a filter leaves out; with codes only what it lets through is looked at. They
are read between calls. What was written since is compared as it is, and where that is much the index does the work.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from .codes import Codes, Numbers
from .database import Session
from .details import read_signals
from .nearest import Nearest
from .where import Where

__all__ = ["CodesInSight", "KeptCodes"]

# Up to so many numbers are quicker fetched than an index is read on: from the tags, or from the records themselves.
_BY_TAG_MOST, _BY_RECORD_MOST = 40_000, 12_000
# Records changed since the codes were read, up to which they are still of use.
_RECENT = 2_000
# So many for each record wanted are compared exactly, and more where too few of them may be seen.
_COMPARED, _MORE = 16, 8
_SAMPLED = 500
_NUMBERS_AT_ONCE = 20_000
# Beyond so many changes all are read anew.
_MANY = 20_000

Floats = NDArray[np.float32]


class _Kept(NamedTuple):
    seq: int
    codes: Codes
    # How large the values of vectors are on average: a sign stands for as much.
    sizes: Floats


class KeptCodes:
    def __init__(self, space: str, nearest: Nearest) -> None:
        self._space = space
        self._nearest = nearest
        self._kept: _Kept | None = None
        # Whether a query would have used them.
        self.wanted = False

    def __len__(self) -> int:
        return len(self._kept.codes) if self._kept else 0

    def opened(self, session: Session, where: Where, open_records: int) -> CodesInSight | None:
        """The codes of what meets a condition; None where they are of no use. `open_records` is about how many do."""
        if open_records > (_BY_TAG_MOST if where.tagged else _BY_RECORD_MOST):
            return None
        self.wanted = True
        # Read once: it is replaced between calls, by another thread.
        kept = self._kept
        if kept is None:
            return None
        recent = self._nearest.changed(session, self._space, kept.seq, _RECENT + 1)
        if len(recent) > _RECENT:
            return None
        numbers = self._nearest.numbers(session, self._space, where)
        among = _each_once(np.frombuffer(numbers, ">i8").astype(np.int64))
        return CodesInSight(self._space, self._nearest, where, kept, among, _held(recent, among))

    def read(self, session: Session, seq: int, most: int, stop: Callable[[], bool]) -> None:
        """Bring them to the state of the transaction, whose change sequence is given.

        There are none afterwards if they would be more than `most`, if nothing has a vector, or if it was told to stop.
        """
        kept = self._kept
        codes = None if kept is None else self._brought_on(session, kept)
        if kept is not None and codes is not None:
            self._kept = _Kept(seq, codes, kept.sizes)
            return
        codes = self._read_all(session, most, stop)
        self._kept = _Kept(seq, codes, self._sizes(session, len(codes))) if codes else None

    def _brought_on(self, session: Session, kept: _Kept) -> Codes | None:
        """None where it is better to begin anew."""
        changed = self._nearest.changed(session, self._space, kept.seq, _MANY + 1)
        if not changed:
            return kept.codes
        if len(changed) > _MANY:
            return None
        now = self._nearest.codes(session, self._space, changed)
        return kept.codes.changed(changed, now) if now.width == kept.codes.width else None

    def _read_all(self, session: Session, most: int, stop: Callable[[], bool]) -> Codes | None:
        records, oldest, newest = self._nearest.extent(session, self._space)
        blocks: list[Codes] = []
        for low in range(oldest, newest + 1, _NUMBERS_AT_ONCE):
            if stop() or max(records, sum(map(len, blocks))) > most:
                return None
            numbers = range(low, min(low + _NUMBERS_AT_ONCE, newest + 1))
            blocks.append(self._nearest.codes(session, self._space, numbers))
        return Codes.joined(blocks)

    def _sizes(self, session: Session, records: int) -> Floats:
        sample = read_signals(session, self._space, self._nearest.sample(session, self._space, _SAMPLED, records))
        vectors = [vector for parts in sample.values() for _, vector, *_ in parts if vector]
        sizes: Floats = np.abs(np.frombuffer(b"".join(vectors), np.float32).reshape(len(vectors), -1)).mean(axis=0)
        return sizes


class CodesInSight:
    """Codes of the records that meet a condition; some of the records may not, which shows when they are compared."""

    def __init__(
        self, space: str, nearest: Nearest, where: Where, kept: _Kept, among: Numbers, unread: list[int]
    ) -> None:
        self._space = space
        self._nearest = nearest
        self._where = where
        self._kept = kept
        self._among = among
        self._unread = unread

    def __len__(self) -> int:
        return len(self._among)

    def holding(self, nums: Sequence[int]) -> list[int]:
        """Those of the records that are among them, in the order given."""
        return _held(nums, self._among)

    def closest(self, session: Session, query: Floats, count: int) -> list[int]:
        """Records nearest to a query that meet the condition, best first."""
        most = _COMPARED * count
        while True:
            worth, complete = self._kept.codes.nearest(query * self._kept.sizes, self._among, most)
            asked = [*worth.tolist(), *self._unread]
            found = self._nearest.compared(session, self._space, query, self._where, asked, count)
            if len(found) >= count or complete:
                return found
            most *= _MORE


def _each_once(nums: Numbers) -> Numbers:
    """In order. What numpy has for it is many times slower."""
    nums.sort()
    return nums[np.append(True, nums[1:] != nums[:-1])] if len(nums) else nums


def _held(nums: Sequence[int], among: Numbers) -> list[int]:
    """Those that are among others, which come in order."""
    asked = np.array(nums, np.int64)
    place = np.minimum(np.searchsorted(among, asked), len(among) - 1)
    held: list[int] = asked[among[place] == asked].tolist() if len(among) else []
    return held
