"""All that ranking needs to know of some records, as flat arrays: one gather, then only arithmetic.

Vectors and terms are the stored ones, so scores computed from them are exact.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from .database import Session, marks
from .vectors import stack

__all__ = ["Details", "Signal", "gather", "read_signals"]

_BATCH = 900


# The chunks of one record, in order: their terms, their vectors, whether they are an assistant's words.
Signal = tuple[tuple[bytes, ...], tuple[bytes | None, ...], tuple[int, ...]]


@dataclass(frozen=True, slots=True)
class Details:
    """Records in the order asked for, then their chunks, then the terms of the chunks."""

    nums: NDArray[np.int64]
    chunk_record: NDArray[np.int32]
    by_assistant: NDArray[np.bool_]
    vectors: NDArray[np.float32]
    term_chunk: NDArray[np.int32]
    term_hash: NDArray[np.uint32]
    term_count: NDArray[np.uint8]

    @property
    def size(self) -> int:
        return len(self.nums)


def read_signals(session: Session, nums: Sequence[int]) -> dict[int, Signal]:
    """Read the chunks of records by number."""
    found: dict[int, Signal] = {}
    for low in range(0, len(nums), _BATCH):
        batch = nums[low : low + _BATCH]
        rows = session.rows(
            f"SELECT num, terms, vector, by_assistant FROM chunk WHERE num IN ({marks(len(batch))}) ORDER BY num, n",
            batch,
        )
        for num, terms, vector, voice in rows:
            earlier = found.get(num)
            if earlier is None:
                found[num] = ((terms,), (vector,), (voice,))
            else:
                found[num] = ((*earlier[0], terms), (*earlier[1], vector), (*earlier[2], voice))
    return found


def gather(nums: Sequence[int], signals: Mapping[int, Signal], dimensions: int) -> Details:
    """Lay the records out as arrays. Every number must be among the signals."""
    chosen = [signals[num] for num in nums]
    terms = [blob for blobs, _, _ in chosen for blob in blobs]
    zero = bytes(4 * dimensions)
    vectors = [vector or zero for _, parts, _ in chosen for vector in parts]
    per_record = [len(blobs) for blobs, _, _ in chosen]
    per_chunk = [len(blob) // 5 for blob in terms]
    return Details(
        nums=np.array(nums, np.int64),
        chunk_record=np.repeat(np.arange(len(chosen), dtype=np.int32), per_record),
        by_assistant=np.array([voice for _, _, voices in chosen for voice in voices], np.bool_),
        vectors=stack(vectors, dimensions),
        term_chunk=np.repeat(np.arange(len(terms), dtype=np.int32), per_chunk),
        term_hash=np.frombuffer(b"".join([blob[: 4 * n] for blob, n in zip(terms, per_chunk, strict=True)]), np.uint32),
        term_count=np.frombuffer(b"".join([blob[4 * n :] for blob, n in zip(terms, per_chunk, strict=True)]), np.uint8),
    )
