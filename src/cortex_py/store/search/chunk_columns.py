"""The chunks of a small space as arrays that grow, so that a query takes its candidates without a loop over records."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import numpy as np
from numpy.typing import NDArray

from .candidates import Details, Signal, gather

__all__ = ["ChunkColumns"]

_NONE = -1
# Rows of records that changed are left behind; so many at least, and more than are in use, before they are dropped.
_DEAD_LEAST = 64


class _Table:
    """Arrays of equal length that grow at their end. Parts that were handed out stay as they are."""

    def __init__(self, **columns: tuple[type[np.generic], tuple[int, ...]]) -> None:
        self.size = 0
        self._arrays = {name: np.empty((64, *shape), kind) for name, (kind, shape) in columns.items()}

    def append(self, **values: NDArray[Any]) -> None:
        added = len(next(iter(values.values())))
        for name, given in values.items():
            array = self._arrays[name]
            if self.size + added > len(array):
                longer = np.empty((max(self.size + added, len(array) * 3 // 2), *array.shape[1:]), array.dtype)
                longer[: self.size] = array[: self.size]
                array = self._arrays[name] = longer
            array[self.size : self.size + added] = given
        self.size += added

    def __getitem__(self, name: str) -> NDArray[Any]:
        return self._arrays[name][: self.size]


class ChunkColumns:
    """The chunks of records by the place of the record. Not safe to share between threads; what it returns is."""

    def __init__(self, dimensions: int) -> None:
        self._dimensions = dimensions
        self._clear()

    def _clear(self) -> None:
        self._row_of = np.full(64, _NONE, np.int32)
        self._dead = 0
        self._records = _Table(place=(np.int32, ()), num=(np.int64, ()), first=(np.int32, ()), chunks=(np.int32, ()))
        self._chunks = _Table(
            record=(np.int32, ()),
            by_assistant=(np.bool_, ()),
            spans=(np.int32, (2,)),
            vectors=(np.float32, (self._dimensions,)),
            first=(np.int32, ()),
            terms=(np.int32, ()),
        )
        self._terms = _Table(chunk=(np.int32, ()), hash=(np.uint32, ()), count=(np.uint8, ()))
        self._taken: tuple[NDArray[np.int32], Details] | None = None

    def missing(self, places: NDArray[np.int32]) -> NDArray[np.bool_]:
        """Which of the places have no chunks here yet."""
        self._reach(places)
        return np.asarray(self._row_of[places] == _NONE)

    def forget(self, places: NDArray[np.int32]) -> None:
        """Drop the chunks of records that changed or went."""
        self._reach(places)
        known = int(np.count_nonzero(self._row_of[places] != _NONE))
        if not known:
            return
        self._row_of[places] = _NONE
        self._dead += known
        self._taken = None
        if self._dead > max(_DEAD_LEAST, self._records.size - self._dead):
            self._drop_dead()

    def add(self, places: NDArray[np.int32], nums: NDArray[np.int64], signals: Mapping[int, Signal]) -> None:
        """Add records that have none here yet."""
        self._reach(places)
        self._append(places, gather(nums.tolist(), signals, self._dimensions))

    def take(self, places: NDArray[np.int32], nums: NDArray[np.int64]) -> Details:
        """The records at these places, in this order; none may be missing."""
        if self._taken is not None and np.array_equal(self._taken[0], places):
            return self._taken[1]
        rows = self._row_of[places]
        # Records that are asked for in the order in which they came, which is the usual case, are parts of the arrays.
        found = self._slice(rows, nums) if len(rows) and (rows[1:] - rows[:-1] == 1).all() else self._pick(rows, nums)
        self._taken = (places, found)
        return found

    def _slice(self, rows: NDArray[np.int32], nums: NDArray[np.int64]) -> Details:
        chunks, terms, first, last = self._chunks, self._terms, int(rows[0]), int(rows[-1])
        low, high = (
            int(self._records["first"][first]),
            int(self._records["first"][last] + self._records["chunks"][last]),
        )
        some = slice(low, high)
        words = slice(int(chunks["first"][low]), int(chunks["first"][high - 1] + chunks["terms"][high - 1]))
        return Details(
            nums=nums,
            chunk_record=chunks["record"][some] - first if first else chunks["record"][some],
            by_assistant=chunks["by_assistant"][some],
            spans=chunks["spans"][some],
            vectors=chunks["vectors"][some],
            term_chunk=terms["chunk"][words] - low if low else terms["chunk"][words],
            term_hash=terms["hash"][words],
            term_count=terms["count"][words],
        )

    def _pick(self, rows: NDArray[np.int32], nums: NDArray[np.int64]) -> Details:
        held = self._records["chunks"][rows]
        chunks = _ranges(self._records["first"][rows], held)
        in_chunk = self._chunks["terms"][chunks]
        terms = _ranges(self._chunks["first"][chunks], in_chunk)
        return Details(
            nums=nums,
            chunk_record=np.repeat(np.arange(len(rows), dtype=np.int32), held),
            by_assistant=self._chunks["by_assistant"][chunks],
            spans=self._chunks["spans"][chunks],
            vectors=self._chunks["vectors"][chunks],
            term_chunk=np.repeat(np.arange(len(chunks), dtype=np.int32), in_chunk),
            term_hash=self._terms["hash"][terms],
            term_count=self._terms["count"][terms],
        )

    def _append(self, places: NDArray[np.int32], new: Details) -> None:
        records, chunks, terms = self._records.size, self._chunks.size, self._terms.size
        held = np.bincount(new.chunk_record, minlength=new.size)
        in_chunk = np.bincount(new.term_chunk, minlength=len(new.chunk_record))
        self._row_of[places] = np.arange(records, records + new.size, dtype=np.int32)
        self._records.append(place=places, num=new.nums, first=chunks + np.cumsum(held) - held, chunks=held)
        self._chunks.append(
            record=new.chunk_record + records,
            by_assistant=new.by_assistant,
            spans=new.spans,
            vectors=new.vectors,
            first=terms + np.cumsum(in_chunk) - in_chunk,
            terms=in_chunk,
        )
        self._terms.append(chunk=new.term_chunk + chunks, hash=new.term_hash, count=new.term_count)

    def _drop_dead(self) -> None:
        places, nums = self._records["place"], self._records["num"]
        used = np.flatnonzero(self._row_of[places] == np.arange(len(places)))
        rows = used[np.argsort(places[used])].astype(np.int32)
        places, kept = places[rows], self._pick(rows, nums[rows])
        self._clear()
        self._reach(places)
        self._append(places, kept)

    def _reach(self, places: NDArray[np.int32]) -> None:
        most = int(places.max(initial=0)) + 1
        if most > len(self._row_of):
            longer = np.full(max(most, len(self._row_of) * 3 // 2), _NONE, np.int32)
            longer[: len(self._row_of)] = self._row_of
            self._row_of = longer


def _ranges(first: NDArray[np.int32], count: NDArray[np.int32]) -> NDArray[np.int64]:
    """All numbers of some ranges, one range after the other."""
    return np.repeat(first - np.cumsum(count) + count, count) + np.arange(int(count.sum()))
