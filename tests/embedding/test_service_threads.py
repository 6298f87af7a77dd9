"""One embedding service for many threads and an event loop: exact numbers, shared batches, cancelled work dropped."""

from __future__ import annotations

import asyncio
import os
import queue
import subprocess
import sys
import threading
from collections.abc import Callable, Coroutine, Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from numpy.typing import NDArray

from cases import each
from cortex_py.core.embedding.batching import Batcher, Job
from cortex_py.core.embedding.cache import VectorCache
from cortex_py.core.embedding.service import EmbeddingService, Metrics, embed_many, embed_one
from cortex_py.core.embedding.sqlite_vectors import SqliteVectors
from cortex_py.core.errors import CortexError, EmbeddingError, RateLimited, wire_form
from timing import MINUTE

from stub_backend import StubBackend

PATIENCE = MINUTE
THREADS = 8


class Held(StubBackend):
    """Tells when a batch began, and ends it when told."""

    def __init__(self) -> None:
        self.begun: queue.Queue[list[str]] = queue.Queue()
        self.go = threading.Semaphore(0)
        self.texts: list[str] = []

    def embed(self, texts: Sequence[str], *, normalize: bool = True) -> NDArray[np.float32]:
        self.begun.put(list(texts))
        assert self.go.acquire(timeout=PATIENCE)
        self.texts += texts
        return super().embed(texts, normalize=normalize)


@pytest.fixture
def held() -> Iterator[Held]:
    backend = Held()
    yield backend
    backend.go.release(10_000)


def _busy(backend: Held, **options: Any) -> EmbeddingService:
    """A service whose only runner is at work; what is asked now waits."""
    service = EmbeddingService(backend=backend, rate_limit=0, **options)
    service._batcher = Batcher(backend, runners=1)
    service.begin("the first")
    assert backend.begun.get(timeout=PATIENCE) == ["the first"]
    return service


def _together(work: Callable[[int], Any], threads: int = THREADS) -> list[Any]:
    """Run work in threads that begin at the same moment."""
    start = threading.Barrier(threads)

    def begin(number: int) -> Any:
        start.wait(PATIENCE)
        return work(number)

    with ThreadPoolExecutor(threads) as pool:
        return list(pool.map(begin, range(threads)))


def _run(work: Coroutine[Any, Any, Any]) -> Any:
    async def in_time() -> Any:
        return await asyncio.wait_for(work, PATIENCE)

    return asyncio.run(in_time())


# Threads


@pytest.mark.parametrize("memory_bytes", [1_000_000, 5_000], ids=["roomy", "tight"])
def test_hits_and_misses_are_exact_and_every_answer_right(home: Path, memory_bytes: int) -> None:
    cache = VectorCache(memory_bytes, SqliteVectors(home / "v.db", 10_000_000))
    stub = StubBackend()
    with EmbeddingService(backend=stub, rate_limit=0, cache=cache) as service:

        def work(number: int) -> tuple[int, int]:
            hits = misses = 0
            for turn in range(40):
                texts = [f"own {number} {turn}", f"shared {turn}", f"shared {turn // 2}"]
                found = service.batch(texts)
                assert np.allclose(found.vectors, stub.embed(texts), atol=1e-6)
                assert found.metadata.cache_metrics.cache_hits >= found.metadata.cached_hits
                hits += found.metadata.cached_hits
                # In the first turn the last two texts are one, computed once.
                misses += 2 - found.metadata.cached_hits // 2 if turn == 0 else 3 - found.metadata.cached_hits
            return hits, misses

        hits, misses = map(sum, zip(*_together(work), strict=True))
        assert service.metrics == Metrics(cache_hits=hits, cache_misses=misses)
        assert service.health().cache_size == THREADS * 40 + 40
        # After its first turn, a thread has asked for the third text before.
        assert hits >= THREADS * 39


def test_refusals_are_exact() -> None:
    def refused(service: EmbeddingService, number: int) -> int:
        count = 0
        for turn in range(25):
            try:
                service.generate(f"text {number} {turn}")
            except RateLimited:
                count += 1
        return count

    with EmbeddingService(backend=StubBackend(), rate_limit=100) as service:
        assert sum(_together(lambda number: refused(service, number))) == 100
        assert service.metrics == Metrics(cache_hits=0, cache_misses=100, rate_limited=100)


def test_a_failure_counts_nothing_whoever_shares_the_batch() -> None:
    def picky(text: str) -> list[float]:
        if text.startswith("bad"):
            raise ValueError(text)
        return [1.0]

    with EmbeddingService(generator=picky, rate_limit=0) as service:

        def work(number: int) -> int:
            served = 0
            for turn in range(30):
                try:
                    service.generate(f"{'bad' if number == 0 else 'good'} {number} {turn}")
                    served += 1
                except EmbeddingError:
                    continue
            return served

        served = _together(work)
        assert served[0] == 0
        assert service.metrics == Metrics(cache_hits=0, cache_misses=sum(served))


def test_requests_of_several_threads_share_a_batch(held: Held) -> None:
    with _busy(held) as service:
        asked = _together(lambda number: service.begin(f"text {number}"))
        held.go.release()
        assert sorted(held.begun.get(timeout=PATIENCE)) == [f"text {n}" for n in range(THREADS)]
        held.go.release(100)
        for number, one in enumerate(asked):
            assert np.allclose(one.wait().vectors, StubBackend().embed([f"text {number}"]), atol=1e-6)


def test_a_slow_text_holds_up_neither_the_cache_nor_the_checks(held: Held) -> None:
    with _busy(held) as service:
        known = service.begin("known")
        held.go.release(2)
        known.wait()
        waiting = service.begin("slow")
        assert held.begun.get(timeout=PATIENCE) == ["known"]
        assert held.begun.get(timeout=PATIENCE) == ["slow"]
        # The model is at work on the slow one and stays there.
        assert service.generate("known").metadata.cached
        with pytest.raises(CortexError):
            service.generate("")
        assert service.health().metrics == Metrics(cache_hits=1, cache_misses=1)
        held.go.release(100)
        assert waiting.wait().metadata.count == 1


def test_a_request_cancelled_from_another_thread_says_so(held: Held) -> None:
    with _busy(held) as service, ThreadPoolExecutor(1) as pool:
        asked = service.begin("unwanted")
        waiting = pool.submit(asked.wait)
        asked.cancel()
        with pytest.raises(EmbeddingError, match="cancelled") as caught:
            waiting.result(PATIENCE)
        assert wire_form(caught.value).embedding == "INTERNAL_ERROR"
        held.go.release(100)
        service.generate("wanted")
    assert held.texts == ["the first", "wanted"]


# An event loop


def test_many_tasks_wait_without_a_thread_each() -> None:
    before = set(threading.enumerate())

    async def work(service: EmbeddingService) -> None:
        found = await asyncio.gather(*(embed_one(service, f"text {n}", True, "me") for n in range(200)))
        assert np.allclose(
            np.stack([one.vector for one in found]), StubBackend().embed([f"text {n}" for n in range(200)]), atol=1e-6
        )
        assert {thread.name for thread in set(threading.enumerate()) - before} == {"cortex-batch"}

    with EmbeddingService(backend=StubBackend(), rate_limit=0) as service:
        _run(work(service))
        assert service.metrics == Metrics(cache_hits=0, cache_misses=200)


@pytest.mark.parametrize("loaded", [True, False])
def test_both_ways_to_wait_give_the_same_answers(loaded: bool) -> None:
    class Slow(StubBackend):
        pass

    Slow.loaded = loaded
    with EmbeddingService(backend=Slow(), rate_limit=2) as service:
        one = _run(embed_one(service, "a text", False, "me"))
        many = _run(embed_many(service, ["a text", "b text"], False, "me"))
        assert many.vectors[0].tolist() == one.vector.tolist()
        assert (many.metadata.source, many.metadata.cached_hits) == ("mixed", 1)
        for text, code in (("", "VALIDATION_ERROR"), ("x" * 9000, "TEXT_TOO_LONG"), ("c text", "RATE_LIMITED")):
            with pytest.raises(CortexError) as caught:
                _run(embed_one(service, text, False, "me"))
            assert wire_form(caught.value).embedding == code
        with pytest.raises(CortexError) as caught:
            _run(embed_many(service, "no list", False, "me"))
        assert wire_form(caught.value).embedding == "VALIDATION_ERROR"


def test_a_cancelled_task_cancels_its_job_and_the_model_never_sees_it(
    held: Held, monkeypatch: pytest.MonkeyPatch
) -> None:
    jobs: list[Job] = []
    service = _busy(held)
    submit = service._batcher.submit
    monkeypatch.setattr(service._batcher, "submit", lambda texts: jobs.append(submit(texts)) or jobs[-1])

    async def work() -> None:
        task = asyncio.create_task(embed_one(service, "unwanted", True, "me"))
        other = asyncio.create_task(embed_many(service, ["wanted"], True, "me"))
        while len(jobs) < 2:
            await asyncio.sleep(0)
        task.cancel()
        with pytest.raises(asyncio.CancelledError):
            await task
        assert jobs[0].result.cancelled()
        assert not jobs[1].result.done()
        held.go.release(100)
        assert (await other).metadata.source == "generator"

    with service:
        _run(work())
        assert service.metrics == Metrics(cache_hits=0, cache_misses=1)
    assert held.texts == ["the first", "wanted"]


def test_a_task_cancelled_while_it_asks_in_a_thread_leaves_no_work_behind(
    held: Held, monkeypatch: pytest.MonkeyPatch
) -> None:
    service = _busy(held)
    inside, go_on = threading.Event(), threading.Event()
    jobs: list[Job] = []
    submit = service._batcher.submit

    def slow_submit(texts: Sequence[str]) -> Job:
        inside.set()
        assert go_on.wait(PATIENCE)
        jobs.append(submit(texts))
        return jobs[-1]

    monkeypatch.setattr(service._batcher, "submit", slow_submit)
    monkeypatch.setattr(held, "loaded", False, raising=False)

    async def work() -> None:
        task = asyncio.create_task(embed_one(service, "unwanted", True, "me"))
        assert await asyncio.to_thread(inside.wait, PATIENCE)
        task.cancel()
        with pytest.raises(asyncio.CancelledError):
            await task
        go_on.set()
        while not (jobs and jobs[0].dropped):
            await asyncio.sleep(0)
        assert jobs[0].result.cancelled()

    with service:
        _run(work())
        held.go.release(100)
    assert held.texts == ["the first"]


def test_a_full_queue_does_not_stop_the_loop(held: Held) -> None:
    async def work() -> None:
        # Nearly half full, and not yet called crowded; the next request does not fit.
        service.begin_batch([f"text {n}" for n in range(1000)])
        assert not service.crowded
        task = asyncio.create_task(embed_many(service, [f"{n}" for n in range(2048)], True, "me"))
        while not service.crowded:
            await asyncio.sleep(0)
        # The loop turns, though the model has not moved.
        assert held.texts == []
        held.go.release(10_000)
        assert (await task).metadata.count == 2048

    with _busy(held) as service:
        _run(work())


@each("error", [StopIteration(), asyncio.CancelledError(), SystemExit(1), KeyError("x")])
def test_a_task_hears_of_every_failure_of_the_model(error: BaseException) -> None:
    def broken(text: str) -> list[float]:
        raise error

    with (
        EmbeddingService(generator=broken) as service,
        pytest.raises(EmbeddingError, match=f"The model failed: {type(error).__name__}"),
    ):
        _run(embed_one(service, "text", True, "me"))


def test_coroutines_of_a_generator_run_beside_the_loop() -> None:
    async def later(text: str) -> list[float]:
        await asyncio.sleep(0)
        return [float(len(text)), 0.0]

    with EmbeddingService(generator=later) as service:
        assert _run(embed_many(service, ["a", "bbb"], False, "me")).vectors.tolist() == [[1, 0], [3, 0]]
        assert service.generate("cc", normalize=False).vector.tolist() == [2, 0]


# A fork


_FORKING = """
import os, signal, sys, warnings
from pathlib import Path
import numpy as np
from cortex_py.core.embedding.cache import VectorCache
from cortex_py.core.embedding.service import EmbeddingService
from cortex_py.core.embedding.sqlite_vectors import SqliteVectors
from cortex_py.core.errors import EmbeddingError

warnings.simplefilter("ignore")
signal.alarm(20)
kept = SqliteVectors(Path(sys.argv[1]), 1_000_000)
used = EmbeddingService(lambda text: [1.0, 2.0], cache=VectorCache(0, kept))
unused = EmbeddingService(lambda text: [1.0, 2.0])
used.generate("before")
child = os.fork()
if child == 0:
    signal.alarm(20)
    try:
        used.generate("before")
    except EmbeddingError as error:
        # The cache opens the file for the child; the parent's connection is neither used nor closed.
        kept.put_many({b"k" * 32: np.zeros(2, np.float32)})
        used.close()
        kept.close()
        right = "forked" in error.message and kept.count() == 0 and unused.generate("x").metadata.count == 1
        os._exit(0 if right else 1)
    os._exit(2)
_, status = os.waitpid(child, 0)
print(os.waitstatus_to_exitcode(status))
print([used.generate(text).metadata.source for text in ("before", "after", "after")], kept.count())
used.close()
"""


@pytest.mark.skipif(not hasattr(os, "fork"), reason="there are no forks here")
def test_after_a_fork_the_child_is_told_to_open_its_own(home: Path) -> None:
    command = [sys.executable, "-c", _FORKING, str(home / "v.db")]
    run = subprocess.run(command, capture_output=True, text=True, timeout=60, check=False)
    assert run.stderr == ""
    assert run.stdout.splitlines() == ["0", "['cache', 'generator', 'cache'] 3"]
