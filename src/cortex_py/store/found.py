"""What a search found: candidates of all spaces as flat arrays, laid out from what was picked in each. Pure."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Protocol, TypeVar

import numpy as np
from numpy.typing import NDArray

from .database import Session
from .details import Details, Signal

__all__ = ["Found", "Looked", "Picked", "lay_out", "word_records"]

_T = TypeVar("_T", bound=np.generic)


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
class Picked:
    """The same for one space. Branches are numbered from 0, and -1 for none.

    `open_records` is how many records may be seen, `open_length` how many terms they have. `word_records` is None
    where all that may be seen was picked. `signals` reads what ranking needs of records.
    """

    space: str
    seq: int
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
    signals: Callable[[Session, Sequence[int]], Mapping[int, Signal]]


class Looked(Protocol):
    """One space, after the words of a query were looked up in it."""

    def pick(self, session: Session, query: NDArray[np.float32] | None, count: int) -> Picked:
        """Add what is near to the query, and the neighbours of the strongest."""
        ...


def lay_out(picked: Sequence[Picked], details: Details, hashes: Sequence[int]) -> Found:
    """All spaces one after the other."""
    branch, before, after = [], [], []
    known_branches = low = 0
    for pick in picked:
        branch.append(np.where(pick.branch >= 0, pick.branch + known_branches, -1))
        before.append(np.where(pick.before >= 0, pick.before + low, -1))
        after.append(np.where(pick.after >= 0, pick.after + low, -1))
        known_branches += int(pick.branch.max(initial=-1)) + 1
        low += len(pick.nums)
    open_records = sum(pick.open_records for pick in picked)
    return Found(
        details,
        _joined([pick.created for pick in picked], np.int64),
        _joined([pick.length for pick in picked], np.float32),
        _joined([pick.flags for pick in picked], np.int64),
        _joined([pick.author for pick in picked], np.int64),
        _joined(branch, np.int32),
        _joined(before, np.int32),
        _joined(after, np.int32),
        _joined([pick.nearness for pick in picked], np.float32),
        open_records,
        sum(pick.open_length for pick in picked) / open_records if open_records else 1.0,
        word_records(picked, details, hashes),
    )


def word_records(picked: Sequence[Picked], details: Details, hashes: Sequence[int]) -> NDArray[np.float64]:
    """In how many records of the scope each word occurs: counted where all are candidates."""
    totals = np.zeros(len(hashes), np.float64)
    low = 0
    for pick in picked:
        high = low + len(pick.nums)
        totals += _counted(details, hashes, low, high) if pick.word_records is None else pick.word_records
        low = high
    return totals


def _counted(details: Details, hashes: Sequence[int], low: int, high: int) -> NDArray[np.float64]:
    record = details.chunk_record[details.term_chunk]
    inside = (record >= low) & (record < high)
    counts = np.zeros(len(hashes), np.float64)
    for i, number in enumerate(hashes):
        counts[i] = len(np.unique(record[inside & (details.term_hash == number)]))
    return counts


def _joined(parts: Sequence[NDArray[Any]], kind: type[_T]) -> NDArray[_T]:
    return np.concatenate(parts).astype(kind) if parts else np.empty(0, kind)
