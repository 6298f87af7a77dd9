"""The candidates of a query with what ranking needs of them, as flat arrays: one read, then only arithmetic.

Vectors and terms are the stored ones, so scores computed from them are exact. The chunks of a small space are kept as
arrays that grow, so that a query takes its candidates without a loop over records.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Protocol, TypeVar

import numpy as np
from numpy.typing import NDArray

from ..database import Session, padded, rows_among
from .vectors import distinct, stack

__all__ = [
    "CandidateSet", "ChunkColumns", "Details", "Signal", "SpaceCandidates", "SpaceQuery", "combine_candidates",
    "gather", "join_details", "read_details", "read_signals", "record_vectors",
]  # fmt: skip

_BATCH = 896
_T = TypeVar("_T", bound=np.generic)
# The chunks of one record, in order. Each: terms, vector, whether the assistant said it, first and past character.
Signal = list[tuple[bytes, bytes | None, int, int, int]]


@dataclass(frozen=True, slots=True, eq=False)
class Details:
    """Records in the order asked for, their chunks, and the terms of the chunks."""

    nums: NDArray[np.int64]
    chunk_record: NDArray[np.int32]
    by_assistant: NDArray[np.bool_]
    spans: NDArray[np.int32]
    vectors: NDArray[np.float32]
    term_chunk: NDArray[np.int32]
    term_hash: NDArray[np.uint32]
    term_count: NDArray[np.uint8]

    @property
    def size(self) -> int:
        return len(self.nums)


@dataclass(frozen=True, slots=True, eq=False)
class CandidateSet:
    """The candidates of all spaces, and statistics of the scope they come from.

    `before` and `after` are indexes into the same arrays, -1 for none. `word_records` says for each word of the query
    how many records of the scope contain it.
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


@dataclass(frozen=True, slots=True, eq=False)
class SpaceCandidates:
    """The candidates of one space. Branches are numbered from 0, and -1 is none.

    `seq` is the change of the space that all of this is as of; None if some of it is as of a later one.

    `open_records` and `open_length` count the visible records and their terms. `word_records` is None if all visible
    records are candidates. `details` reads what ranking needs of them.
    """

    space: str
    nums: NDArray[np.int64]
    created: NDArray[np.int64]
    length: NDArray[np.int64]
    flags: NDArray[np.int64]
    author: NDArray[np.int64]
    branch: NDArray[np.int32]
    before: NDArray[np.int32]
    after: NDArray[np.int32]
    nearness: NDArray[np.float32]
    open_records: int
    open_length: int
    word_records: NDArray[np.float64] | None
    details: Callable[[Session], Details]


class SpaceQuery(Protocol):
    """A query in one space, after its words were looked up."""

    def pick(self, session: Session, query: NDArray[np.float32] | None, count: int) -> SpaceCandidates:
        """Add the records nearest to the query vector, and the neighbours of the strongest."""


def combine_candidates(spaces: Sequence[SpaceCandidates], details: Details, hashes: Sequence[int]) -> CandidateSet:
    """The candidates of all spaces, one space after the other."""
    branch, before, after = [], [], []
    known_branches = low = 0
    for one in spaces:
        branch.append(np.where(one.branch >= 0, one.branch + known_branches, -1))
        before.append(np.where(one.before >= 0, one.before + low, -1))
        after.append(np.where(one.after >= 0, one.after + low, -1))
        known_branches += int(one.branch.max(initial=-1)) + 1
        low += len(one.nums)
    open_records = sum(one.open_records for one in spaces)
    return CandidateSet(
        details,
        _joined([one.created for one in spaces], np.int64),
        _joined([one.length for one in spaces], np.float32),
        _joined([one.flags for one in spaces], np.int64),
        _joined([one.author for one in spaces], np.int64),
        _joined(branch, np.int32),
        _joined(before, np.int32),
        _joined(after, np.int32),
        _joined([one.nearness for one in spaces], np.float32),
        open_records,
        sum(one.open_length for one in spaces) / open_records if open_records else 1.0,
        _word_records(spaces, details, hashes),
    )


def _word_records(spaces: Sequence[SpaceCandidates], details: Details, hashes: Sequence[int]) -> NDArray[np.float64]:
    """In how many records of the scope each word occurs; counted in spaces where all records are candidates."""
    totals = np.zeros(len(hashes), np.float64)
    record = details.chunk_record[details.term_chunk]
    low = 0
    for one in spaces:
        high = low + len(one.nums)
        if one.word_records is not None:
            totals += one.word_records
        else:
            inside = (record >= low) & (record < high)
            totals += [len(distinct(record[inside & (details.term_hash == number)])) for number in hashes]
        low = high
    return totals


def _joined(parts: Sequence[NDArray[Any]], kind: type[_T]) -> NDArray[_T]:
    return np.concatenate(parts).astype(kind) if parts else np.empty(0, kind)


def read_signals(session: Session, space: str, nums: Sequence[int]) -> dict[int, Signal]:
    """The chunks of records of a space, by number."""
    found: dict[int, Signal] = {}
    columns = "num, terms, vector, by_assistant, first, past"
    statement = f"SELECT {columns} FROM chunk WHERE space = ? AND num IN ({{}}) ORDER BY num, n"
    for num, *chunk in rows_among(session, statement, (space,), nums, size=_BATCH, fill=padded):
        found.setdefault(num, []).append(tuple(chunk))
    return found


def gather(nums: Sequence[int], signals: Mapping[int, Signal], dimensions: int) -> Details:
    """The records as arrays. Every number must be among the signals."""
    per_record = [len(signals[num]) for num in nums]
    chunks = [chunk for num in nums for chunk in signals[num]]
    terms = [chunk[0] for chunk in chunks]
    zero = bytes(4 * dimensions)
    per_chunk = [len(blob) // 5 for blob in terms]
    return Details(
        nums=np.array(nums, np.int64),
        chunk_record=np.repeat(np.arange(len(nums), dtype=np.int32), per_record),
        by_assistant=np.array([chunk[2] for chunk in chunks], np.bool_),
        spans=np.array([chunk[3:] for chunk in chunks], np.int32).reshape(-1, 2),
        vectors=stack([chunk[1] or zero for chunk in chunks], dimensions),
        term_chunk=np.repeat(np.arange(len(terms), dtype=np.int32), per_chunk),
        term_hash=np.frombuffer(b"".join([blob[: 4 * n] for blob, n in zip(terms, per_chunk, strict=True)]), np.uint32),
        term_count=np.frombuffer(b"".join([blob[4 * n :] for blob, n in zip(terms, per_chunk, strict=True)]), np.uint8),
    )


def read_details(session: Session, space: str, nums: Iterable[int], dimensions: int) -> Details:
    """Records of a space as arrays, read from the store."""
    asked = list(nums)
    return gather(asked, read_signals(session, space, asked), dimensions)


def join_details(parts: Sequence[Details]) -> Details:
    """The records of several spaces, one space after the other."""
    records = chunks = 0
    chunk_record, term_chunk = [], []
    for one in parts:
        chunk_record.append(one.chunk_record + np.int32(records))
        term_chunk.append(one.term_chunk + np.int32(chunks))
        records, chunks = records + one.size, chunks + len(one.chunk_record)
    return Details(
        nums=np.concatenate([one.nums for one in parts]),
        chunk_record=np.concatenate(chunk_record),
        by_assistant=np.concatenate([one.by_assistant for one in parts]),
        spans=np.concatenate([one.spans for one in parts]),
        vectors=np.concatenate([one.vectors for one in parts]),
        term_chunk=np.concatenate(term_chunk),
        term_hash=np.concatenate([one.term_hash for one in parts]),
        term_count=np.concatenate([one.term_count for one in parts]),
    )


def record_vectors(
    session: Session, spaces: Sequence[str], nums: Sequence[int], dimensions: int
) -> NDArray[np.float32]:
    """The unit mean vector of each record's chunks; zeros for a record without vectors or outside the spaces."""
    signals: dict[int, Signal] = {}
    for space in spaces:
        signals |= read_signals(session, space, [num for num in nums if num not in signals])
    made = np.zeros((len(nums), dimensions), np.float32)
    for i, num in enumerate(nums):
        vectors = [chunk[1] for chunk in signals.get(num, []) if chunk[1]]
        if vectors:
            mean = stack(vectors, dimensions).sum(axis=0)
            made[i] = mean / max(float(np.linalg.norm(mean)), 1e-9)
    return made


# -- the chunks of a small space -----------------------------------------------------------------

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
