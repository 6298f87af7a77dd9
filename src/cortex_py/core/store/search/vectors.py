"""The vectors of one space in a process's memory, compared by cosine, coarse to fine.

All chunks are first compared in the leading principal directions, then the best of them with their whole vectors. Both
are kept as bytes, because a scan is bound by how much memory it reads. Of very many chunks, which a file has in groups
of similar ones, only the groups nearest to the query are compared. Callers rescore the result with the exact vectors,
so the only approximation is in which records are left out.
"""

from __future__ import annotations

import os
import threading
from collections import deque
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from functools import lru_cache
from typing import Any, TypeVar

import numpy as np
from numpy.typing import NDArray

from ...jobs import Pool, renew_in_forks

__all__ = ["GROUPED_FROM", "VectorMatrix", "distinct", "rows_at", "single_threaded", "stack"]

# One thread for array arithmetic while a query runs: a matrix-vector product of a few milliseconds gains little from a
# second thread, and if another process has the other core, waiting for that thread costs a whole scheduler slice.


def _array_libraries() -> list[Any]:
    """The libraries whose number of threads is set; none where NumPy was loaded with one thread."""
    if os.environ.get("OPENBLAS_NUM_THREADS") == "1":
        return []
    from threadpoolctl import ThreadpoolController

    # Set directly: the library's own context manager also describes each library, which takes ten times as long.
    found: list[Any] = ThreadpoolController().select(user_api="blas").lib_controllers
    return found


class _Guard:
    """The first to enter sets the limit, the last to leave restores it."""

    def __init__(self) -> None:
        self._libraries = _array_libraries()
        self.renew()
        renew_in_forks(self)

    def renew(self) -> None:
        self._lock = threading.Lock()
        self._inside = 0
        self._former: list[int | None] = []

    def enter(self) -> None:
        with self._lock:
            self._inside += 1
            if self._inside == 1:
                self._former = [one.get_num_threads() for one in self._libraries]
                for one in self._libraries:
                    one.set_num_threads(1)

    def leave(self) -> None:
        with self._lock:
            self._inside -= 1
            if self._inside == 0:
                for one, threads in zip(self._libraries, self._former, strict=True):
                    if threads is not None:
                        one.set_num_threads(threads)

    @property
    def crowded(self) -> bool:
        """Whether several queries run at once; then each has a core for itself at best."""
        return self._inside > 1


@lru_cache(maxsize=1)
def _guard() -> _Guard:
    return _Guard()


@contextmanager
def single_threaded() -> Iterator[None]:
    guard = _guard()
    guard.enter()
    try:
        yield
    finally:
        guard.leave()


# On 37,000 vectors of the real model, 32 results hold 99.1% of the ten nearest, 98.0% of the 32 nearest.
_DIRECTIONS = 64
_FINE_SHARE = 0.01
_FINE_MOST = 6_000
# Of the chunks that a selective filter leaves, this share is compared with whole vectors, and at least so many: on
# 12,000 vectors of the real model these hold 99.7% of the 32 nearest.
_FINE_SHARE_CHOSEN = 0.02
_FINE_LEAST = 1_000
_BYTE = 127.0
_BLOCK = 262_144  # numbers at a time, in rows as long as a vector or its code
_GROUPED_AT_ONCE = 4_096
# If fewer than one record in so many is visible, only the chunks of those are compared.
_SELECTIVE = 5
# From this many chunks on, rows in a file are in groups: how many, fitted on how many chunks each, in how many rounds.
GROUPED_FROM = 250_000
_GROUPS, _GROUPED_ON, _GROUPING_ROUNDS = 4_096, 32, 4
# A centre is that of at least so many chunks: it must not tell what one record was, after a purge.
_GROUPED_LEAST = 8
# The share of the rows that is compared if they are in groups, and the share of those that must be visible. On 48,000
# vectors of the real model this gives 99.5% of the ten and 99.4% of the 32 that comparing all rows gives.
_PROBED, _PROBED_VISIBLE = 0.16, 0.5
_HELPER = Pool(2, "cortex-scan")

Floats = NDArray[np.float32]
_Rows = range | NDArray[np.int64]
_T = TypeVar("_T", bound=np.generic)
_PER_CHUNK = ("coarse", "fine", "scale", "place")


class VectorMatrix:
    """Chunk vectors, each with the place of its record; -1 for dead chunks."""

    def __init__(self, sample: Floats, capacity: int) -> None:
        """Fit the directions on a sample; `capacity` is how many chunks will be added."""
        self._basis = _principal_directions(sample)
        # The step of each direction; the few values beyond the range are clipped.
        self._steps = np.quantile(np.abs(sample @ self._basis), 0.9995, axis=0).astype(np.float32) / _BYTE + 1e-9
        self._size = 0
        self._fitted = max(capacity, 256)
        self._coarse = np.empty((self._fitted, self._basis.shape[1]), np.int8)
        self._fine = np.empty((self._fitted, sample.shape[1]), np.int8)
        self._scale = np.empty(self._fitted, np.float32)
        self._place = np.empty(self._fitted, np.int32)
        # Rows from whose scores a threshold is estimated, if not evenly spaced ones.
        self._sampled: NDArray[np.int32] | None = None
        # The centre of each group, and where the rows of each begin; the last number is where those after them begin.
        self._centres = np.empty((0, self._basis.shape[1]), np.float32)
        self._bounds = np.zeros(1, np.int64)
        # Chunks of records that changed or were purged.
        self.dead = 0

    def arrays(
        self, nums: NDArray[np.int64]
    ) -> tuple[NDArray[np.int64] | None, dict[str, NDArray[Any]], dict[str, Any]]:
        """Everything, for a file: which rows of the arrays to write (None: all, as they are), the arrays, a few values.

        `nums` says which number the record at each place has. Arrays of vectors are shared: rows are only appended.
        """
        place = self._place[: self._size].copy()
        alive = place >= 0
        alive[alive] = nums[place[alive]] >= 0
        rows = None if alive.all() else np.flatnonzero(alive)
        sampled, centres, bounds = np.empty(0, np.int32), self._centres[:0], np.zeros(1, np.int64)
        chunks = int(np.count_nonzero(alive))
        if chunks >= GROUPED_FROM:
            rows, centres, bounds = self._grouped(np.flatnonzero(alive))
            # The sample is that of rows in the order of their records, as they are when the file is not there.
            sampled = np.argsort(nums[place[rows]], kind="stable")[:: _stride(len(rows))].astype(np.int32)
        arrays: dict[str, NDArray[Any]] = {name: getattr(self, f"_{name}")[: self._size] for name in _PER_CHUNK}
        arrays |= {"place": place, "basis": self._basis, "steps": self._steps, "sampled": sampled}
        arrays |= {"centres": centres, "bounds": bounds}
        return rows, arrays, {"chunks": chunks, "fitted": self._fitted}

    @classmethod
    def from_arrays(cls, arrays: Mapping[str, NDArray[Any]], facts: Mapping[str, Any]) -> VectorMatrix:
        """The same again. The arrays may be longer than what they hold."""
        made = cls.__new__(cls)
        for name in ("basis", "steps", "centres", "bounds", *_PER_CHUNK):
            setattr(made, f"_{name}", arrays[name])
        made._size, made._fitted = int(facts["chunks"]), int(facts["fitted"])
        made._sampled = arrays["sampled"] if len(arrays["sampled"]) else None
        # Chunks of records that were purged since.
        made.dead = int(np.count_nonzero(arrays["place"][: made._size] < 0))
        return made

    def _grouped(self, rows: NDArray[np.int64]) -> tuple[NDArray[np.int64], Floats, NDArray[np.int64]]:
        """The rows with similar ones side by side, the centres of the groups, and where in the rows each begins.

        A search then reads few parts of a long file.
        """
        sample = self._coarse[rows[:: max(1, len(rows) // (_GROUPED_ON * _GROUPS))]] * self._steps
        centres = sample[::_GROUPED_ON][:_GROUPS]
        for _ in range(_GROUPING_ROUNDS):
            nearest = (sample @ centres.T).argmax(axis=1)
            sums = np.zeros_like(centres)
            np.add.at(sums, nearest, sample)
            centres = sums / (np.linalg.norm(sums, axis=1, keepdims=True) + 1e-9)
        centres = centres[np.bincount(nearest, minlength=len(centres)) >= min(_GROUPED_LEAST, len(sample))]
        # Similar groups side by side too: those that a query is compared with then form fewer parts.
        centres = centres[_chain(centres)]
        groups = np.empty(len(rows), np.int16)
        for low in range(0, len(rows), _GROUPED_AT_ONCE):
            part = self._coarse[rows[low : low + _GROUPED_AT_ONCE]] * self._steps
            groups[low : low + _GROUPED_AT_ONCE] = (part @ centres.T).argmax(axis=1)
        bounds = np.append(0, np.cumsum(np.bincount(groups, minlength=len(centres))))
        return rows[np.argsort(groups, kind="stable")], centres, bounds

    @property
    def outgrown(self) -> bool:
        """Whether the directions were fitted on far fewer chunks, or many chunks are dead."""
        return self._size > 8 * self._fitted or self.dead > self._size // 3 + 64

    def append(self, vectors: Floats, places: NDArray[np.int32]) -> None:
        start, end = self._size, self._size + len(vectors)
        self._grow(end)
        step = 4_096
        for low in range(0, len(vectors), step):
            part = vectors[low : low + step]
            here = slice(start + low, start + low + len(part))
            peak = np.abs(part).max(axis=1, initial=1e-9) / _BYTE
            self._coarse[here] = np.clip(np.rint((part @ self._basis) / self._steps), -_BYTE, _BYTE)
            self._fine[here] = np.rint(part / peak[:, None])
            self._scale[here] = peak
        self._place[start:end] = places
        self._size = end

    def forget(self, places: NDArray[np.int32]) -> None:
        """Drop all chunks of the records at these places."""
        gone = rows_at(self._place[: self._size], places)
        self._place[gone] = -1
        self.dead += len(gone)

    def nearest(self, query: Floats, open_places: NDArray[np.bool_], count: int) -> NDArray[np.int32]:
        """Places of the records nearest to the query, best first, among the open ones."""
        direction = query @ self._basis
        projected = direction * self._steps
        if np.count_nonzero(open_places) * _SELECTIVE < self._size:
            place = self._place[: self._size]
            rows = np.flatnonzero(open_places[place] & (place >= 0) if self.dead else open_places[place])
            return self._finish(query, self._scan(projected, [rows]), count, rows)
        if len(self._centres):
            parts = self._probed(direction)
            closed = self._closed(open_places, parts)
            # Groups that a filter mostly excludes do not tell where the visible rows near the query are.
            if closed is None or np.count_nonzero(closed) <= len(closed) * (1 - _PROBED_VISIBLE):
                return self._finish(query, self._scan(projected, parts, closed), count, parts)
        parts = [range(self._size)]
        return self._finish(query, self._scan(projected, parts, self._closed(open_places, parts)), count)

    def _probed(self, direction: Floats) -> list[range]:
        """The rows of the groups nearest to the query, and those that are in no group, in order."""
        order = np.argsort(-(self._centres @ direction))
        ends = np.cumsum(np.diff(self._bounds)[order])
        near = np.sort(order[: np.searchsorted(ends, ends[-1] * _PROBED) + 1])
        # Groups side by side are one part.
        first = np.append(True, np.diff(near) > 1)
        lows, highs = self._bounds[near[first]], self._bounds[near[np.append(first[1:], True)] + 1]
        parts = [range(low, high) for low, high in zip(lows.tolist(), highs.tolist(), strict=True)]
        return [*parts, range(int(self._bounds[-1]), self._size)]

    def _scan(self, projected: Floats, parts: Sequence[_Rows], closed: NDArray[np.bool_] | None = None) -> Floats:
        """Coarse scores of the rows in all parts; closed rows are excluded."""
        scores = _products(self._coarse, projected, parts)
        if closed is not None:
            scores[closed] = -np.inf
        return scores

    def _closed(self, open_places: NDArray[np.bool_], parts: Sequence[range]) -> NDArray[np.bool_] | None:
        """Which chunks in these parts are not of visible records; None if all are."""
        if not self.dead and open_places.all():
            return None
        place = np.concatenate([self._place[part.start : part.stop] for part in parts])
        closed: NDArray[np.bool_] = ~open_places[place]
        if self.dead:
            closed |= place < 0
        return closed

    def _finish(
        self,
        query: Floats,
        scores: Floats,
        count: int,
        chosen: NDArray[np.int64] | Sequence[range] | None = None,
    ) -> NDArray[np.int32]:
        """The best by their whole vectors. The scores are those of all chunks, of the chosen ones, or of parts."""
        keep = min(max(8 * count, int(self._size * _FINE_SHARE)), max(_FINE_MOST, 8 * count))
        if isinstance(chosen, np.ndarray):
            keep = min(keep, max(8 * count, _FINE_LEAST, int(len(chosen) * _FINE_SHARE_CHOSEN)))
        rows = _best(scores, keep, self._sampled if chosen is None else None)
        if chosen is not None:
            rows = chosen[rows] if isinstance(chosen, np.ndarray) else _rows_of(chosen, rows)
        fine = _products(self._fine, query, [rows])
        fine *= self._scale[rows]
        return _best_places(self._place[rows], fine, count)

    def _grow(self, needed: int) -> None:
        if needed <= len(self._place):
            return
        capacity = max(needed, len(self._place) * 3 // 2)
        for name in ("_coarse", "_fine", "_scale", "_place"):
            old: NDArray[np.generic] = getattr(self, name)
            new = np.empty((capacity, *old.shape[1:]), old.dtype)
            new[: self._size] = old[: self._size]
            setattr(self, name, new)


def _principal_directions(sample: Floats) -> Floats:
    """The directions in which a sample varies most, as columns."""
    dimensions = sample.shape[1]
    wanted = min(_DIRECTIONS, dimensions)
    # The second moment, not the covariance: a dot product also counts the mean.
    moment = sample.T @ sample + 1e-6 * np.eye(dimensions, dtype=np.float32)
    _, directions = np.linalg.eigh(moment)
    return np.ascontiguousarray(directions[:, -wanted:], dtype=np.float32)


def _chain(centres: Floats) -> list[int]:
    """An order in which each is followed by the one that it is most like, of those that are left."""
    left = np.zeros(len(centres), np.float32)
    order = [0]
    while len(order) < len(centres):
        left[order[-1]] = -np.inf
        order.append(int((centres @ centres[order[-1]] + left).argmax()))
    return order


def _stride(size: int) -> int:
    return max(1, size // 4_096)


def _products(codes: NDArray[np.int8], vector: Floats, parts: Sequence[_Rows]) -> Floats:
    """The products of the rows in all parts with a vector, in blocks shared between this thread and a helper.

    If no other core is free, or other queries run, this thread computes them all.
    """
    size, most = sum(map(len, parts)), max(1, _BLOCK // len(vector))
    products = np.empty(size, np.float32)
    blocks = deque(_blocks(parts, most))

    def work() -> None:
        # Bytes become floats one block at a time, in a buffer that fits the processor's cache.
        floats = np.empty((min(most, size), len(vector)), np.float32)
        while True:
            try:
                at, block = blocks.popleft()
            except IndexError:
                return
            filled = 0
            for rows in block:
                taken = codes[rows.start : rows.stop] if isinstance(rows, range) else codes[rows]
                floats[filled : filled + len(taken)] = taken
                filled += len(taken)
            np.matmul(floats[:filled], vector, out=products[at : at + filled])

    _HELPER.run_beside(work, 1 if len(blocks) > 2 and not _guard().crowded else 0)
    return products


def _blocks(parts: Sequence[_Rows], most: int) -> Iterator[tuple[int, list[_Rows]]]:
    """The rows of all parts in blocks of at most so many, each with the number of rows before it."""
    at, block, size = 0, list[_Rows](), 0
    for part in parts:
        low = 0
        while low < len(part):
            some = part[low : low + most - size]
            block.append(some)
            low, size = low + len(some), size + len(some)
            if size == most:
                yield at, block
                at, block, size = at + size, [], 0
    if block:
        yield at, block


def _rows_of(parts: Sequence[range], indexes: NDArray[np.int64]) -> NDArray[np.int64]:
    """The rows at these indexes of all parts, one after the other."""
    begins = np.cumsum([0, *(len(part) for part in parts)])
    within = np.searchsorted(begins, indexes, side="right") - 1
    rows: NDArray[np.int64] = indexes + (np.array([part.start for part in parts]) - begins[:-1])[within]
    return rows


def _best(scores: Floats, count: int, sample: NDArray[np.int32] | None) -> NDArray[np.int64]:
    """Indexes of about the `count` best finite scores, without sorting everything.

    `sample` says by which of very many scores a threshold is estimated; None for evenly spaced ones.
    """
    size = len(scores)
    if size <= 2 * count:
        return np.flatnonzero(scores > -np.inf)
    if size <= 50_000:
        rows = np.argpartition(scores, size - count)[size - count :]
        return rows[scores[rows] > -np.inf]
    # A threshold from a sample is several times cheaper than partitioning a long array.
    sampled = scores[:: _stride(size)] if sample is None else scores[sample]
    rank = max(1, round(len(sampled) * count / size))
    threshold = np.partition(sampled, len(sampled) - rank)[len(sampled) - rank]
    rows = np.flatnonzero(scores >= threshold if threshold > -np.inf else scores > threshold)
    if len(rows) > 3 * count:
        rows = rows[np.argpartition(scores[rows], len(rows) - count)[len(rows) - count :]]
    return rows


def _best_places(places: NDArray[np.int32], scores: Floats, count: int) -> NDArray[np.int32]:
    """The places of the best scores, best first, each once however many of its chunks are among them."""
    # The best few chunks nearly always belong to enough different records.
    for likely in (2 * count, len(scores)):
        least = np.partition(scores, -likely)[-likely] if likely < len(scores) else -np.inf
        best = np.flatnonzero(scores >= least)
        ordered = places[best[np.argsort(-scores[best], kind="stable")]]
        # Chunks of records that changed during the search have no place.
        distinct = dict.fromkeys(ordered[ordered >= 0].tolist())
        if len(distinct) >= count:
            break
    return np.fromiter(distinct, np.int32, len(distinct))[:count]


def rows_at(place: NDArray[np.int32], places: NDArray[np.int32]) -> NDArray[np.int64]:
    """The rows that have one of these places."""
    wanted = np.zeros(max(int(place.max(initial=0)), int(places.max(initial=0))) + 2, np.bool_)
    wanted[places] = True
    # -1 addresses the last slot.
    return np.flatnonzero(wanted[place])


def distinct(values: NDArray[_T]) -> NDArray[_T]:
    """Sorted distinct values: quicker than `np.unique`, which also imports all of `numpy.ma`."""
    ordered = np.sort(values)
    return ordered[np.append(True, ordered[1:] != ordered[:-1])] if len(ordered) else ordered


def stack(vectors: Sequence[bytes], dimensions: int) -> Floats:
    """Stored vectors as one matrix."""
    return np.frombuffer(b"".join(vectors), np.float32).reshape(-1, dimensions)
