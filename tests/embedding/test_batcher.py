"""Many callers, one model: what is merged, in which order, and what happens when callers leave or the model fails.

A text tells its own length in tokens: "300:a" has 300.
"""

from __future__ import annotations

import asyncio
import queue
import threading
from collections.abc import Callable, Iterator, Sequence
from concurrent.futures import CancelledError, Future, ThreadPoolExecutor
from contextlib import contextmanager
from itertools import chain
from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from numpy.typing import NDArray

from cases import each
from cortex_py.core.embedding.batching import Batcher, Job
from cortex_py.core.errors import EmbeddingError, ModelMissing
from timing import MINUTE

PATIENCE = MINUTE


class Telling:
    """Vectors that tell which text they belong to: its length, and the code of its last letter."""

    name = "telling"
    model_name = "telling"
    dimensions = 2
    max_tokens = 100_000
    fingerprint = "telling"
    loaded = True

    def __init__(self) -> None:
        self.batches: list[list[str]] = []
        self.fault: Callable[[Sequence[str]], Any] | None = None

    def count_tokens(self, text: str) -> int:
        return int(text.split(":")[0])

    def embed(self, texts: Sequence[str], *, normalize: bool = True) -> NDArray[np.float32]:
        self.batches.append(list(texts))
        if self.fault is not None and (answer := self.fault(texts)) is not None:
            return answer  # type: ignore[no-any-return]
        return np.array([_vector(text) for text in texts], np.float32)


class Held(Telling):
    """Begins a batch at once, and ends it when told."""

    def __init__(self) -> None:
        super().__init__()
        self.begun: queue.Queue[list[str]] = queue.Queue()
        self.go = threading.Semaphore(0)

    def embed(self, texts: Sequence[str], *, normalize: bool = True) -> NDArray[np.float32]:
        self.begun.put(list(texts))
        assert self.go.acquire(timeout=PATIENCE)
        return super().embed(texts, normalize=normalize)

    def next(self) -> list[str]:
        """Let the batch that runs end, and tell which one began then."""
        self.go.release()
        return self.begun.get(timeout=PATIENCE)

    def rest(self) -> None:
        self.go.release(1000)


class Watched(threading.Condition):
    """Tells when a thread begins to wait."""

    def __init__(self) -> None:
        super().__init__()
        self.waiting: queue.Queue[str] = queue.Queue()

    def wait(self, timeout: float | None = None) -> bool:
        self.waiting.put(threading.current_thread().name)
        return super().wait(timeout)

    def until_waits(self, name: str) -> None:
        while self.waiting.get(timeout=PATIENCE) != name:
            pass


def _vector(text: str) -> list[float]:
    return [float(text.split(":")[0]), float(ord(text[-1]))]


def _done(job: Job) -> list[list[float]]:
    return job.result.result(PATIENCE).tolist()  # type: ignore[no-any-return]


@contextmanager
def _running(backend: Telling, **options: int) -> Iterator[Batcher]:
    batcher = Batcher(backend, **{"runners": 1, **options})
    try:
        yield batcher
    finally:
        if isinstance(backend, Held):
            backend.rest()
        batcher.close()


@contextmanager
def _busy(**options: int) -> Iterator[tuple[Batcher, Held]]:
    """A batcher whose only runner is at work on a text of its own; what is submitted now waits."""
    backend = Held()
    with _running(backend, **options) as batcher:
        batcher.submit(["1:first"])
        assert backend.begun.get(timeout=PATIENCE) == ["1:first"]
        yield batcher, backend


def test_requests_that_wait_are_merged_and_each_gets_its_own() -> None:
    with _busy() as (batcher, backend):
        jobs = [batcher.submit(["5:b"]), batcher.submit(["5:c", "5:d"]), batcher.submit(["5:e"])]
        assert backend.next() == ["5:b", "5:c", "5:d", "5:e"]
        backend.rest()
        assert [_done(job) for job in jobs] == [[[5, 98]], [[5, 99], [5, 100]], [[5, 101]]]


def test_the_texts_of_one_request_are_not_torn_apart_by_an_idle_runner() -> None:
    backend = Telling()
    with _running(backend, runners=2) as batcher:
        batcher.embed([f"2:{n}" for n in range(200)])
    assert [len(batch) for batch in backend.batches] == [200]


@each(
    ("texts", "most_read", "batches"),
    [
        ("5:a 700:b 7:c 600:d 6:e", 100_000, ["5:a 6:e 7:c", "700:b", "600:d"]),
        ("300:a 300:b 300:c 300:d 300:e", 100_000, ["300:a 300:b 300:c", "300:d 300:e"]),
        ("5000:a 5000:b", 100_000, ["5000:a", "5000:b"]),
        ("5000:a 5000:b 5000:c 5000:d 5000:e", 256, ["5000:a 5000:b 5000:c 5000:d", "5000:e"]),
        ("500:a 500:b 500:c 500:d", 100_000, ["500:a 500:b", "500:c 500:d"]),
    ],
    ids=["like lengths", "padded within the budget", "too long goes alone", "what is read counts", "in their order"],
)
def test_which_texts_make_a_batch(texts: str, most_read: int, batches: list[str]) -> None:
    with _busy() as (batcher, backend):
        backend.max_tokens = most_read
        batcher.submit(texts.split())
        assert [" ".join(backend.next()) for _ in batches] == batches


def test_short_texts_pass_long_ones_that_came_before_them() -> None:
    with _busy() as (batcher, backend):
        batcher.submit([f"900:{n}" for n in range(9)])
        batcher.submit(["4:a"])
        batcher.submit(["5:b"])
        assert ["4:a", "5:b"] in [backend.next(), backend.next()]


def test_a_long_text_is_not_passed_for_ever() -> None:
    with _busy() as (batcher, backend):
        batcher.submit(["900:long"])
        batches = []
        for turn in range(4):
            # New short ones keep coming, as many as a batch holds.
            batcher.submit([f"4:{turn}"] * 256)
            batches.append(backend.next()[0])
        assert "900:long" in batches[:2]


@given(st.lists(st.lists(st.integers(1, 2000), max_size=12), max_size=8), st.integers(1, 20))
def test_every_text_is_embedded_once_within_the_budget_and_reaches_its_caller(
    requests: list[list[int]], most_pending: int
) -> None:
    backend = Telling()
    asked = [[f"{length}:{chr(97 + place)}" for place, length in enumerate(lengths)] for lengths in requests]
    with _running(backend, runners=2, most_pending=most_pending) as batcher:
        jobs = [batcher.submit(texts) for texts in asked]
        found = [_done(job) for job in jobs]
    assert found == [[_vector(text) for text in texts] for texts in asked]
    assert sorted(chain(*backend.batches)) == sorted(chain(*asked))
    for batch in backend.batches:
        assert len(batch) == 1 or len(batch) * max(backend.count_tokens(text) for text in batch) <= 1024


def test_nothing_asked_nothing_begun() -> None:
    backend = Telling()
    with _running(backend) as batcher:
        assert batcher.embed([]).shape == (0, 2)
    assert backend.batches == []


def test_a_full_queue_makes_callers_wait_and_lets_them_go_on() -> None:
    with _busy(most_pending=2) as (batcher, backend), ThreadPoolExecutor(1, "caller") as pool:
        watched = batcher._change = Watched()
        assert not batcher.crowded
        batcher.submit(["600:a", "600:b"])
        assert batcher.crowded
        asked = pool.submit(batcher.submit, ["600:c"])
        watched.until_waits("caller_0")
        assert not asked.done()
        assert len(batcher._pending) == 2
        assert backend.next() == ["600:a"]
        job = asked.result(PATIENCE)
        assert [one.text for one in batcher._pending] == ["600:b", "600:c"]
        backend.rest()
        assert _done(job) == [[600, 99]]


def test_a_request_larger_than_the_queue_goes_through_in_parts() -> None:
    backend = Telling()
    with _running(backend, most_pending=4) as batcher:
        found = batcher.embed([f"9:{chr(97 + n)}" for n in range(23)])
    assert found.tolist() == [[9, 97 + n] for n in range(23)]
    assert max(len(batch) for batch in backend.batches) <= 4


def test_what_is_cancelled_before_it_began_never_begins() -> None:
    with _busy() as (batcher, backend):
        gone, kept = batcher.submit(["5:a", "900:b"]), batcher.submit(["5:c"])
        gone.cancel()
        assert backend.next() == ["5:c"]
        backend.rest()
        assert _done(kept) == [[5, 99]]
        assert gone.result.cancelled()
    assert backend.batches == [["1:first"], ["5:c"]]


def test_what_is_cancelled_while_it_runs_disturbs_no_other() -> None:
    with _busy() as (batcher, backend):
        gone, kept = batcher.submit(["5:a"]), batcher.submit(["5:b"])
        assert backend.next() == ["5:a", "5:b"]
        gone.cancel()
        backend.rest()
        assert _done(kept) == [[5, 98]]
        with pytest.raises(CancelledError):
            gone.result.result(PATIENCE)
        assert _done(batcher.submit(["5:c"])) == [[5, 99]]


def test_cancelled_work_makes_room_for_those_who_wait() -> None:
    with _busy(most_pending=2) as (batcher, backend), ThreadPoolExecutor(1, "caller") as pool:
        watched = batcher._change = Watched()
        gone = batcher.submit(["600:a", "600:b"])
        asked = pool.submit(batcher.submit, ["600:c"])
        watched.until_waits("caller_0")
        gone.cancel()
        # Nothing is left to take but what still waits outside.
        assert backend.next() == ["600:c"]
        backend.rest()
        assert _done(asked.result(PATIENCE)) == [[600, 99]]


class Hasty(Future[NDArray[np.float32]]):
    """Is cancelled just after someone saw that it was not."""

    def done(self) -> bool:
        answer = super().done()
        self.cancel()
        return answer


def test_a_request_cancelled_at_the_last_moment_is_no_error() -> None:
    delivered, failed = Job(1, [None], Hasty()), Job(1, [None], Hasty())
    delivered.deliver(0, np.zeros(2, np.float32))
    assert not failed.dropped
    failed.fail(EmbeddingError("x"))
    assert delivered.result.cancelled()
    assert failed.result.cancelled()


def test_a_failure_reaches_all_callers_of_the_batch_and_no_other() -> None:
    def fault(texts: Sequence[str]) -> None:
        if "5:bad" in texts:
            raise ValueError("cannot read this")

    with _busy() as (batcher, backend):
        backend.fault = fault
        bad, beside, apart = batcher.submit(["5:bad", "800:x"]), batcher.submit(["5:b"]), batcher.submit(["900:c"])
        backend.rest()
        for job in (bad, beside):
            with pytest.raises(EmbeddingError, match="The model failed: ValueError: cannot read this"):
                _done(job)
        assert _done(apart) == [[900, 99]]
        assert _done(batcher.submit(["5:d"])) == [[5, 100]]
    # The rest of what failed is not worth computing.
    assert not any("800:x" in batch for batch in backend.batches)


def test_an_error_of_our_own_arrives_as_it_is() -> None:
    def fault(_: Sequence[str]) -> None:
        raise ModelMissing("No model.", remedy="Install it.")

    backend = Telling()
    backend.fault = fault
    with _running(backend) as batcher, pytest.raises(ModelMissing) as caught:
        batcher.submit(["5:a"]).result.result(PATIENCE)
    assert caught.value.remedy == "Install it."


@each("error", [SystemExit(3), KeyboardInterrupt(), asyncio.CancelledError(), StopIteration()])
def test_nothing_a_model_raises_stops_the_runner(error: BaseException) -> None:
    def fault(_: Sequence[str]) -> None:
        raise error

    backend = Telling()
    with _running(backend) as batcher:
        backend.fault = fault
        with pytest.raises(EmbeddingError, match=type(error).__name__):
            batcher.submit(["5:a"]).result.result(PATIENCE)
        backend.fault = None
        assert _done(batcher.submit(["5:b"])) == [[5, 98]]


@each(
    "answer",
    [
        np.zeros((1, 2)),
        np.zeros((3, 2)),
        np.zeros(2),
        np.zeros((2, 2, 2)),
        [[1.0, 2.0], [3.0]],
        [[1.0, float("nan")], [1.0, 2.0]],
        [[1.0, float("inf")], [1.0, 2.0]],
        "vectors",
    ],
    ids=["too-few", "too-many", "flat", "deep", "ragged", "nan", "infinite", "text"],
)
def test_an_answer_of_the_wrong_shape_is_a_failure_not_a_silence(answer: Any) -> None:
    backend = Telling()
    with _running(backend) as batcher:
        backend.fault = lambda texts: answer
        with pytest.raises(EmbeddingError):
            batcher.submit(["5:a", "5:b"]).result.result(PATIENCE)
        backend.fault = None
        assert _done(batcher.submit(["5:b"])) == [[5, 98]]


def test_batches_of_one_request_that_do_not_fit_together_are_a_failure() -> None:
    backend = Telling()
    backend.fault = lambda texts: np.zeros((len(texts), 3 if "9:a" in texts else 4))
    with _running(backend) as batcher, pytest.raises(EmbeddingError):
        batcher.submit(["9:a", "900:b"]).result.result(PATIENCE)


@each("kind", [np.float64, np.float16, np.int64, list])
def test_vectors_are_floats_of_32_bits_whatever_the_model_gives(kind: Any) -> None:
    backend = Telling()
    backend.fault = lambda texts: [[1, 2]] if kind is list else np.array([[1, 2]], kind)
    with _running(backend) as batcher:
        found = batcher.embed(["5:a"])
    assert found.dtype == np.float32
    assert found.tolist() == [[1, 2]]


def test_closing_lets_what_was_asked_finish_and_refuses_the_rest() -> None:
    with _busy() as (batcher, backend):
        watched = batcher._change = Watched()
        asked = batcher.submit(["5:a"])
        closing = threading.Thread(target=batcher.close)
        closing.start()
        with watched:
            assert watched.wait_for(lambda: batcher._closed, PATIENCE)
        with pytest.raises(EmbeddingError, match="closed"):
            batcher.submit(["5:b"])
        backend.rest()
        closing.join(PATIENCE)
        assert _done(asked) == [[5, 97]]
        assert not any(thread.is_alive() for thread in batcher._threads)


def test_closing_refuses_those_who_wait_for_room() -> None:
    with _busy(most_pending=1) as (batcher, backend), ThreadPoolExecutor(2, "caller") as pool:
        watched = batcher._change = Watched()
        waiting = pool.submit(batcher.submit, ["600:a", "600:b"])
        watched.until_waits("caller_0")
        closing = pool.submit(batcher.close)
        with pytest.raises(EmbeddingError, match="closed"):
            waiting.result(PATIENCE)
        backend.rest()
        closing.result(PATIENCE)
    # Nobody waits for the part that had found room.
    assert backend.batches == [["1:first"]]


def test_closing_twice_and_closing_what_was_never_used() -> None:
    batcher = Batcher(Telling())
    batcher.close()
    batcher.close()
    with pytest.raises(EmbeddingError, match="closed"):
        batcher.submit(["5:a"])
