"""Merges the texts of many callers into small batches of similar length for one model.

Callers wait while runner threads take what is pending: alternately the text that has waited longest and the shortest
one, together with those nearest in length, up to a budget of tokens. So no text waits forever, and short texts wait
for few batches. The queue is bounded; callers beyond it wait to submit.
"""

from __future__ import annotations

import threading
from collections.abc import Sequence
from concurrent.futures import Future, InvalidStateError
from contextlib import suppress
from dataclasses import dataclass, field
from typing import TYPE_CHECKING

from ..errors import CortexError, EmbeddingError
from .backends.backend import Backend

if TYPE_CHECKING:
    import numpy as np
    from numpy.typing import NDArray

__all__ = ["Batcher", "Job"]

_TOKENS_PER_BATCH = 1024
_MOST_PENDING = 2_048
# Two: one batch is prepared while the other is computed.
_RUNNERS = 2


@dataclass(slots=True)
class _Text:
    text: str
    length: int
    job: Job
    place: int


@dataclass(slots=True)
class Job:
    """One request with its vectors as they arrive. Cancelling drops what has not begun."""

    missing: int
    vectors: list[NDArray[np.float32] | None] = field(default_factory=list)
    result: Future[NDArray[np.float32]] = field(default_factory=Future)
    _lock: threading.Lock = field(default_factory=threading.Lock)

    def cancel(self) -> None:
        with self._lock:
            self.result.cancel()

    @property
    def dropped(self) -> bool:
        """Whether nobody waits any more: the job is cancelled, failed or done."""
        return self.result.done()

    def deliver(self, place: int, vector: NDArray[np.float32]) -> None:
        import numpy as np

        with self._lock:
            self.vectors[place] = vector
            self.missing -= 1
            if self.missing == 0 and not self.dropped:
                made = np.stack([one for one in self.vectors if one is not None])
                # An event loop may cancel the future at any moment without this lock.
                with suppress(InvalidStateError):
                    self.result.set_result(made)

    def fail(self, error: Exception) -> None:
        with self._lock, suppress(InvalidStateError):
            self.result.set_exception(error)


class Batcher:
    """Safe to share between threads. `close` finishes pending texts and refuses new ones."""

    def __init__(self, backend: Backend, *, most_pending: int = _MOST_PENDING, runners: int = _RUNNERS) -> None:
        self._backend = backend
        self._most_pending = most_pending
        self._runners = runners
        self._pending: list[_Text] = []
        self._change = threading.Condition()
        self._threads: list[threading.Thread] = []
        self._closed = False
        self._shortest_next = False

    def embed(self, texts: Sequence[str]) -> NDArray[np.float32]:
        """One raw vector per text, in order; not normalised."""
        return self.submit(texts).result.result()

    def submit(self, texts: Sequence[str]) -> Job:
        """Ask for vectors without waiting for them; blocks only while the queue is full."""
        job = Job(len(texts), [None] * len(texts))
        if not texts:
            import numpy as np

            job.result.set_result(np.empty((0, self._backend.dimensions), np.float32))
            return job
        longest = self._backend.max_tokens
        lengths = [min(self._backend.count_tokens(text), longest) for text in texts]
        self._add([_Text(text, lengths[place], job, place) for place, text in enumerate(texts)], job)
        return job

    @property
    def crowded(self) -> bool:
        """Whether `submit` would have to wait, or soon might."""
        return len(self._pending) >= self._most_pending // 2

    def close(self) -> None:
        with self._change:
            self._closed = True
            self._change.notify_all()
        for thread in self._threads:
            thread.join()

    def _add(self, texts: Sequence[_Text], job: Job) -> None:
        """Add all texts at once if they fit, so that one request shares batches."""
        added = 0
        with self._change:
            while added < len(texts):
                self._change.wait_for(lambda: len(self._pending) < self._most_pending or self._closed or job.dropped)
                if self._closed:
                    job.cancel()
                    raise EmbeddingError("The embedding service is closed.", remedy="Open a new one.")
                if job.dropped:
                    return
                some = texts[added : added + self._most_pending - len(self._pending)]
                self._pending += some
                added += len(some)
                if len(self._threads) < self._runners:
                    thread = threading.Thread(target=self._run, name="cortex-batch", daemon=True)
                    self._threads.append(thread)
                    thread.start()
                self._change.notify_all()

    def _run(self) -> None:
        while batch := self._next():
            try:
                for one, vector in zip(batch, self._vectors(batch), strict=True):
                    one.job.deliver(one.place, vector)
            except BaseException as error:  # noqa: BLE001  # it belongs to the callers, not to this thread
                failure = _as_failure(error)
                for one in batch:
                    one.job.fail(failure)

    def _vectors(self, batch: Sequence[_Text]) -> NDArray[np.float32]:
        import numpy as np

        vectors = np.asarray(self._backend.embed([one.text for one in batch], normalize=False), np.float32)
        if vectors.ndim != 2 or len(vectors) != len(batch):
            raise EmbeddingError(f"The model gave vectors of shape {vectors.shape} for {len(batch)} texts.")
        if not np.isfinite(vectors).all():
            raise EmbeddingError("The model gave vectors that are not made of finite numbers.")
        return vectors

    def _next(self) -> list[_Text]:
        """The next batch; empty when closed and done."""
        with self._change:
            while True:
                wanted = [one for one in self._pending if not one.job.dropped]
                if len(wanted) < len(self._pending):
                    # The queue has space again, even if nothing is left to take.
                    self._pending = wanted
                    self._change.notify_all()
                if self._pending:
                    break
                if self._closed:
                    return []
                self._change.wait()
            batch = _grouped(self._pending, self._first())
            taken = {id(one) for one in batch}
            self._pending = [one for one in self._pending if id(one) not in taken]
            self._change.notify_all()
            return batch

    def _first(self) -> _Text:
        shortest, self._shortest_next = self._shortest_next, not self._shortest_next
        return min(self._pending, key=lambda text: text.length) if shortest else self._pending[0]


def _grouped(pending: Sequence[_Text], first: _Text) -> list[_Text]:
    """A text and those nearest in length, as many as fit the budget when padded to the longest."""
    group: list[_Text] = []
    longest = 0
    for one in sorted(pending, key=lambda text: abs(text.length - first.length)):
        longest = max(longest, one.length)
        if group and (len(group) + 1) * longest > _TOKENS_PER_BATCH:
            break
        group.append(one)
    return group


def _as_failure(error: BaseException) -> CortexError:
    """Wrap whatever a model raises in one kind of error."""
    if isinstance(error, CortexError):
        return error
    failure = EmbeddingError(f"The model failed: {type(error).__name__}: {error}")
    failure.__cause__ = error
    return failure
