"""All that ranking needs to know of some records, as flat arrays: one gather, then only arithmetic.

Vectors and terms are the stored ones, so scores computed from them are exact.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from .database import Session, marks, padded
from .vectors import stack

__all__ = ["Details", "Signal", "gather", "read_signals"]

_BATCH = 896


# The chunks of one record, in order. Each: terms, vector, whether they are an assistant's words, span.
Signal = list[tuple[bytes, bytes | None, int, int, int]]


@dataclass(frozen=True, slots=True)
class Details:
    """Records in the order asked for, then their chunks, then the terms of the chunks."""

    nums: NDArray[np.int64]
    chunk_record: NDArray[np.int32]
    by_assistant: NDArray[np.bool_]
    spans: tuple[tuple[int, int], ...]
    vectors: NDArray[np.float32]
    term_chunk: NDArray[np.int32]
    term_hash: NDArray[np.uint32]
    term_count: NDArray[np.uint8]

    @property
    def size(self) -> int:
        return len(self.nums)


def read_signals(session: Session, space: str, nums: Sequence[int]) -> dict[int, Signal]:
    """Read the chunks of records of a space by number."""
    found: dict[int, Signal] = {}
    for low in range(0, len(nums), _BATCH):
        batch = padded(nums[low : low + _BATCH])
        rows = session.rows(
            "SELECT num, terms, vector, by_assistant, first, past FROM chunk "
            f"WHERE space = ? AND num IN ({marks(len(batch))}) ORDER BY num, n",
            (space, *batch),
        )
        for num, *chunk in rows:
            found.setdefault(num, []).append(tuple(chunk))
    return found


def gather(nums: Sequence[int], signals: Mapping[int, Signal], dimensions: int) -> Details:
    """Lay the records out as arrays. Every number must be among the signals."""
    per_record = [len(signals[num]) for num in nums]
    chunks = [chunk for num in nums for chunk in signals[num]]
    terms = [chunk[0] for chunk in chunks]
    zero = bytes(4 * dimensions)
    per_chunk = [len(blob) // 5 for blob in terms]
    return Details(
        nums=np.array(nums, np.int64),
        chunk_record=np.repeat(np.arange(len(nums), dtype=np.int32), per_record),
        by_assistant=np.array([chunk[2] for chunk in chunks], np.bool_),
        spans=tuple([(chunk[3], chunk[4]) for chunk in chunks]),
        vectors=stack([chunk[1] or zero for chunk in chunks], dimensions),
        term_chunk=np.repeat(np.arange(len(terms), dtype=np.int32), per_chunk),
        term_hash=np.frombuffer(b"".join([blob[: 4 * n] for blob, n in zip(terms, per_chunk, strict=True)]), np.uint32),
        term_count=np.frombuffer(b"".join([blob[4 * n :] for blob, n in zip(terms, per_chunk, strict=True)]), np.uint8),
    )


def record_vectors(
    session: Session, spaces: Sequence[str], nums: Sequence[int], dimensions: int
) -> NDArray[np.float32]:
    """The mean vector of each record's parts, of length 1; zeros for one without any, or of none of the spaces."""
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
