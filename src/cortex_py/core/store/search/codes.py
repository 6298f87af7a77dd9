"""Vectors as the signs of their values, one bit each: enough to select the ones worth comparing exactly.

A vector of 384 values takes 48 bytes, so the codes of a million vectors fit into a process that could not hold the
vectors. A process caches the codes of spaces that the engine searches, for selective filters: an index of vectors skips
over everything that a filter excludes, codes only look at what it lets through.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING, NamedTuple

import numpy as np
from numpy.typing import NDArray

from ..database import Session
from .candidates import read_signals
from .filters import Where
from .vectors import distinct

if TYPE_CHECKING:
    from .vector_index import VectorIndex

__all__ = ["CodeCache", "Codes", "FilteredCodes"]

_BLOCK = 2_048
_COUNT_BYTES = 4
_BITS = np.unpackbits(np.arange(256, dtype=np.uint8)[:, None], axis=1).astype(np.float32)
# Up to so many numbers are faster to fetch than an index is to read: from the tags, or from the records themselves.
_BY_TAG_MOST, _BY_RECORD_MOST = 40_000, 12_000
# Codes are of use until so many records have changed since they were read.
_RECENT = 2_000
# So many candidates per wanted record are compared exactly, and so many times more if too few of them pass the filter.
_COMPARED, _MORE = 16, 8
_SAMPLED = 500
_NUMBERS_AT_ONCE = 20_000
# After more changes than this, all codes are read again.
_MANY = 20_000

Floats = NDArray[np.float32]
Numbers = NDArray[np.int64]


class Codes:
    """Codes sorted by record number; a long record has several. Immutable."""

    def __init__(self, nums: Numbers, bits: NDArray[np.uint8]) -> None:
        """`bits` has one row per number; the first value is the highest bit of the first byte."""
        order = np.argsort(nums, kind="stable")
        self.nums = nums[order]
        self._bits = bits[order]
        # Each record once, and the index of its first code; at the end, the number of codes.
        self._records, begin = np.unique(self.nums, return_index=True)
        self._begin = np.append(begin, len(nums)).astype(np.int64)

    def __len__(self) -> int:
        return len(self.nums)

    @property
    def width(self) -> int:
        """Bytes per code."""
        return int(self._bits.shape[1])

    @classmethod
    def sent(cls, nums: bytes, bits: bytes, dimensions: int) -> Codes:
        """Codes as an engine sends them: numbers of eight bytes, and bits preceded by their count."""
        rows = np.frombuffer(bits, np.uint8).reshape(-1, _COUNT_BYTES + (dimensions + 7) // 8)
        return cls(np.frombuffer(nums, ">i8").astype(np.int64), rows[:, _COUNT_BYTES:])

    @classmethod
    def joined(cls, parts: Sequence[Codes]) -> Codes:
        return cls(np.concatenate([one.nums for one in parts]), np.concatenate([one._bits for one in parts]))

    def changed(self, nums: Sequence[int], now: Codes) -> Codes:
        """These codes, with those of some records replaced by the ones in `now`."""
        kept = ~np.isin(self.nums, np.array(nums, np.int64))
        return Codes.joined([Codes(self.nums[kept], self._bits[kept]), now])

    def nearest(self, query: Floats, among: Numbers, count: int) -> tuple[Numbers, bool]:
        """The records of about the `count` nearest codes, best first, and whether these are all.

        `among` are distinct record numbers.
        """
        rows = self._rows(among)
        # The query keeps its values: against signs they say far more than its own signs. The worth of each byte value
        # at each position is computed once.
        padded = np.zeros(8 * self.width, np.float32)
        padded[: len(query)] = query
        worth = (padded.reshape(-1, 8) @ _BITS.T).ravel()
        places = np.arange(0, len(worth), 256, dtype=np.int32)
        scores = np.empty(len(rows), np.float32)
        for low in range(0, len(rows), _BLOCK):
            here = rows[low : low + _BLOCK]
            scores[low : low + _BLOCK] = worth[self._bits[here] + places].sum(axis=1)
        best = np.argpartition(-scores, count)[:count] if len(scores) > count else np.arange(len(scores))
        best = best[np.argsort(-scores[best], kind="stable")]
        return np.fromiter(dict.fromkeys(self.nums[rows[best]].tolist()), np.int64), len(rows) <= count

    def _rows(self, among: Numbers) -> Numbers:
        """The indexes of all codes of the records."""
        place = np.searchsorted(self._records, among)
        known = place < len(self._records)
        known[known] = self._records[place[known]] == among[known]
        place = place[known]
        first = self._begin[place]
        many = self._begin[place + 1] - first
        if len(many) == many.sum():
            return first
        # The codes of one record are adjacent: count on from the first of each.
        onward = np.arange(many.sum()) - np.repeat(np.cumsum(many) - many, many)
        rows: Numbers = np.repeat(first, many) + onward
        return rows


class _Kept(NamedTuple):
    seq: int
    codes: Codes
    # The mean absolute value in each dimension: what a sign stands for.
    sizes: Floats


class CodeCache:
    """The codes of one space. They are read between calls; records written since are compared as they are."""

    def __init__(self, space: str, index: VectorIndex) -> None:
        self._space = space
        self._index = index
        self._kept: _Kept | None = None
        # Whether a query would have used them.
        self.wanted = False

    def __len__(self) -> int:
        return len(self._kept.codes) if self._kept else 0

    def opened(self, session: Session, where: Where, open_records: int) -> FilteredCodes | None:
        """The codes of the records that pass a filter, about `open_records`; None if the index is faster."""
        if open_records > (_BY_TAG_MOST if where.tagged else _BY_RECORD_MOST):
            return None
        self.wanted = True
        # Read once: another thread may replace it.
        kept = self._kept
        if kept is None:
            return None
        recent = self._index.changed(session, self._space, kept.seq, _RECENT + 1)
        if len(recent) > _RECENT:
            return None
        numbers = self._index.numbers(session, self._space, where)
        among = distinct(np.frombuffer(numbers, ">i8").astype(np.int64))
        return FilteredCodes(self._space, self._index, where, kept, among, _held(recent, among))

    def read(self, session: Session, seq: int, most: int, stop: Callable[[], bool]) -> None:
        """Bring the codes to the state of the transaction, whose change sequence is given.

        The cache is empty afterwards if there are more than `most`, if no record has a vector, or on `stop`.
        """
        kept = self._kept
        codes = None if kept is None else self._updated(session, kept)
        if kept is not None and codes is not None:
            self._kept = _Kept(seq, codes, kept.sizes)
            return
        codes = self._read_all(session, most, stop)
        self._kept = _Kept(seq, codes, self._sizes(session, len(codes))) if codes else None

    def _updated(self, session: Session, kept: _Kept) -> Codes | None:
        """None if it is better to read all again."""
        changed = self._index.changed(session, self._space, kept.seq, _MANY + 1)
        if not changed:
            return kept.codes
        if len(changed) > _MANY:
            return None
        now = self._index.codes(session, self._space, changed)
        return kept.codes.changed(changed, now) if now.width == kept.codes.width else None

    def _read_all(self, session: Session, most: int, stop: Callable[[], bool]) -> Codes | None:
        records, oldest, newest = self._index.extent(session, self._space)
        blocks: list[Codes] = []
        for low in range(oldest, newest + 1, _NUMBERS_AT_ONCE):
            if stop() or max(records, sum(map(len, blocks))) > most:
                return None
            numbers = range(low, min(low + _NUMBERS_AT_ONCE, newest + 1))
            blocks.append(self._index.codes(session, self._space, numbers))
        return Codes.joined(blocks)

    def _sizes(self, session: Session, records: int) -> Floats:
        sample = read_signals(session, self._space, self._index.sample(session, self._space, _SAMPLED, records))
        vectors = [vector for parts in sample.values() for _, vector, *_ in parts if vector]
        sizes: Floats = np.abs(np.frombuffer(b"".join(vectors), np.float32).reshape(len(vectors), -1)).mean(axis=0)
        return sizes


class FilteredCodes:
    """Codes of the records that pass a filter. A few of them may not; the exact comparison drops those."""

    def __init__(
        self, space: str, index: VectorIndex, where: Where, kept: _Kept, among: Numbers, unread: list[int]
    ) -> None:
        self._space = space
        self._index = index
        self._where = where
        self._kept = kept
        self._among = among
        self._unread = unread

    def __len__(self) -> int:
        return len(self._among)

    def holding(self, nums: Sequence[int]) -> list[int]:
        """The records that are among them, in the order given."""
        return _held(nums, self._among)

    def closest(self, session: Session, query: Floats, count: int) -> list[int]:
        """The records nearest to a query that pass the filter, best first."""
        most = _COMPARED * count
        while True:
            worth, complete = self._kept.codes.nearest(query * self._kept.sizes, self._among, most)
            asked = [*worth.tolist(), *self._unread]
            found = self._index.compared(session, self._space, query, self._where, asked, count)
            if len(found) >= count or complete:
                return found
            most *= _MORE


def _held(nums: Sequence[int], among: Numbers) -> list[int]:
    """The numbers that are in a sorted array, in the order given."""
    asked = np.array(nums, np.int64)
    place = np.minimum(np.searchsorted(among, asked), len(among) - 1)
    held: list[int] = asked[among[place] == asked].tolist() if len(among) else []
    return held
