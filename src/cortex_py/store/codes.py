"""Vectors as the signs of their values, a bit for each: enough to tell which of many are worth comparing exactly.

48 bytes for a vector of 384 values, so that the codes of a million fit into a process that could not hold the vectors.
"""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
from numpy.typing import NDArray

__all__ = ["Codes", "Numbers"]

_BLOCK = 2_048
_COUNT_BYTES = 4
_BITS = np.unpackbits(np.arange(256, dtype=np.uint8)[:, None], axis=1).astype(np.float32)

Numbers = NDArray[np.int64]


class Codes:
    """Codes in the order of the numbers of their records; a long record has several. It never changes."""

    def __init__(self, nums: Numbers, bits: NDArray[np.uint8]) -> None:
        """`bits` has a row for each number, the first value in the highest bit of its first byte."""
        order = np.argsort(nums, kind="stable")
        self.nums = nums[order]
        self._bits = bits[order]
        # Each record once, and where its parts begin; at the end, where they all end.
        self._records, begin = np.unique(self.nums, return_index=True)
        self._begin = np.append(begin, len(nums)).astype(np.int64)

    def __len__(self) -> int:
        return len(self.nums)

    @property
    def width(self) -> int:
        """Bytes of a code."""
        return int(self._bits.shape[1])

    @classmethod
    def sent(cls, nums: bytes, bits: bytes, dimensions: int) -> Codes:
        """As an engine sends them: whole numbers of eight bytes, and bits that are preceded by their count."""
        rows = np.frombuffer(bits, np.uint8).reshape(-1, _COUNT_BYTES + (dimensions + 7) // 8)
        return cls(np.frombuffer(nums, ">i8").astype(np.int64), rows[:, _COUNT_BYTES:])

    @classmethod
    def joined(cls, parts: Sequence[Codes]) -> Codes:
        return cls(np.concatenate([one.nums for one in parts]), np.concatenate([one._bits for one in parts]))

    def changed(self, nums: Sequence[int], now: Codes) -> Codes:
        """With what `now` has of those records, and nothing else of them."""
        kept = ~np.isin(self.nums, np.array(nums, np.int64))
        return Codes.joined([Codes(self.nums[kept], self._bits[kept]), now])

    def nearest(self, query: NDArray[np.float32], among: Numbers, count: int) -> tuple[Numbers, bool]:
        """Out of records, each given once, those of about the `count` nearest codes, best first.

        And whether these are all.
        """
        rows = self._rows(among)
        # The query keeps its values: against signs they tell far more than its own signs would. What each value of a
        # byte is worth at each place is worked out once.
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
        """The places of all parts of the records."""
        place = np.searchsorted(self._records, among)
        known = place < len(self._records)
        known[known] = self._records[place[known]] == among[known]
        place = place[known]
        first = self._begin[place]
        many = self._begin[place + 1] - first
        if len(many) == many.sum():
            return first
        # The parts of one record lie side by side: count on from the first of each.
        onward = np.arange(many.sum()) - np.repeat(np.cumsum(many) - many, many)
        rows: Numbers = np.repeat(first, many) + onward
        return rows
