"""One space in a process's memory: its ledger, and lazily its vectors, signals and word frequencies.

Everything here is derived and caught up by the change sequence before each use, so a write by any
process is seen by the very next query of every other.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence

import numpy as np

from .database import Row, Session
from .details import Signal, read_signals
from .ledger import LEDGER_COLUMNS, Ledger
from .vectors import VectorMatrix, stack

__all__ = ["SMALL", "Segment", "share_of_words"]

# Up to this many records every one is scored; beyond it retrieval picks candidates first.
SMALL = 1_500
_BLOCK = 16_384
_FIT_ON = 6_000
_SKETCH_ON = 1_500


class Segment:
    def __init__(self, space: str, dimensions: int) -> None:
        self.space = space
        self.ledger = Ledger()
        self.seq = 0
        self._dimensions = dimensions
        self._matrix: VectorMatrix | None = None
        self._signals: dict[int, Signal] = {}
        self._sketch: dict[int, float] = {}
        self._sketched = 0

    def catch_up(self, session: Session, seq: int) -> None:
        """Take in all changes up to `seq`, the store's present count."""
        if seq <= self.seq:
            return
        gone = session.rows("SELECT num FROM purged WHERE space = ? AND seq > ?", (self.space, self.seq))
        changed = session.rows(
            f"SELECT {LEDGER_COLUMNS} FROM memory WHERE space = ? AND seq > ? ORDER BY seq, num",
            (self.space, self.seq),
        )
        self._forget([row[0] for row in gone])
        self.ledger.drop([row[0] for row in gone])
        self._forget([row[0] for row in changed])
        self.ledger.apply(changed)
        self._extend_matrix(session, changed)
        self.seq = seq

    def _forget(self, nums: Sequence[int]) -> None:
        for num in nums:
            self._signals.pop(num, None)
        if self._matrix is not None and nums:
            places = self.ledger.places(nums)
            if len(places):
                self._matrix.forget(places)

    def _extend_matrix(self, session: Session, changed: Sequence[Row]) -> None:
        if self._matrix is None or not changed:
            return
        signals = read_signals(session, self.space, [row[0] for row in changed])
        self._add(self._matrix, [(num, v) for num, chunks in signals.items() for _, v, *_ in chunks])
        if self._matrix.outgrown:
            self._matrix = None

    # -- asking ----------------------------------------------------------------------------------

    def signals(self, session: Session, nums: Sequence[int]) -> dict[int, Signal]:
        """Signals of records; kept in memory while the space is small."""
        if self.ledger.size > 2 * SMALL:
            self._signals.clear()
            return read_signals(session, self.space, nums)
        missing = [num for num in nums if num not in self._signals]
        if missing:
            self._signals.update(read_signals(session, self.space, missing))
        return self._signals

    def vectors(self, session: Session) -> VectorMatrix:
        """The space's vectors, loaded when first asked for."""
        if self._matrix is None:
            self._matrix = self._load_matrix(session)
        return self._matrix

    def word_share(self, session: Session, hashes: Sequence[int]) -> list[float]:
        """About which share of the records holds each word, from a sample."""
        if self.ledger.size > 2 * self._sketched:
            self._sketch = self._draw_sketch(session)
            self._sketched = self.ledger.size
        return [self._sketch.get(number, 0.0) for number in hashes]

    def _load_matrix(self, session: Session) -> VectorMatrix:
        sampled = read_signals(session, self.space, self._sample(_FIT_ON))
        vectors = [v for chunks in sampled.values() for _, v, *_ in chunks if v]
        (expected,) = session.rows("SELECT count(*) FROM chunk WHERE space = ?", (self.space,))[0]
        matrix = VectorMatrix(stack(vectors, self._dimensions), int(expected))
        num, n = -1, -1
        while rows := session.rows(
            "SELECT num, n, vector FROM chunk WHERE (num, n) > (?, ?) AND space = ? ORDER BY num, n LIMIT ?",
            (num, n, self.space, _BLOCK),
        ):
            num, n = rows[-1][:2]
            self._add(matrix, [(row[0], row[2]) for row in rows])
        return matrix

    def _add(self, matrix: VectorMatrix, rows: Sequence[tuple[int, bytes | None]]) -> None:
        kept = [(num, vector) for num, vector in rows if vector is not None]
        if kept:
            nums, vectors = zip(*kept, strict=True)
            matrix.append(stack(vectors, self._dimensions), self.ledger.places(nums))

    def _draw_sketch(self, session: Session) -> dict[int, float]:
        return share_of_words(read_signals(session, self.space, self._sample(_SKETCH_ON)))

    def _sample(self, count: int) -> list[int]:
        nums = self.ledger.nums
        known: list[int] = nums[nums >= 0].tolist()
        # A fixed seed: the same store gives the same directions, hence the same results.
        picked = np.random.default_rng(len(known)).choice(len(known), min(count, len(known)), replace=False)
        return [known[i] for i in sorted(picked.tolist())]


def share_of_words(signals: Mapping[int, Signal]) -> dict[int, float]:
    """Which share of some records holds each word that any of them holds."""
    if not signals:
        return {}
    words = [
        np.unique(np.concatenate([np.frombuffer(terms, np.uint32, len(terms) // 5) for terms, *_ in chunks]))
        for chunks in signals.values()
    ]
    hashes, counts = np.unique(np.concatenate(words), return_counts=True)
    return dict(zip(hashes.tolist(), (counts / len(words)).tolist(), strict=True))
