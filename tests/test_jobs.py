"""Threads of the process's own: they come back after a fork, and end with the last Cortex that needs them."""

from __future__ import annotations

import contextlib
import os
import platform
import signal
import subprocess
import sys
import threading
import warnings
from collections import deque
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import numpy as np
import pytest

from cortex_py import Cortex
from cortex_py.core.jobs import ForkLock, Pool, is_in_background, work_in_background
from cortex_py.core.store.search import vectors
from cortex_py.core.store.search.vectors import VectorMatrix

from stub_backend import StubBackend

forks = pytest.mark.skipif(not hasattr(os, "fork"), reason="there are no forks here")


def _ours() -> list[str]:
    return [thread.name for thread in threading.enumerate() if thread.name.startswith("cortex-")]


def _in_a_fork(work: Callable[[], bool]) -> int:
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        child = os.fork()
    if child == 0:
        code = 3
        try:
            # Without its threads it would wait for ever.
            signal.signal(signal.SIGALRM, signal.SIG_DFL)
            signal.alarm(20)
            code = 0 if work() else 1
        finally:
            os._exit(code)
    return os.waitstatus_to_exitcode(os.waitpid(child, 0)[1])


@forks
def test_a_lock_that_another_thread_holds_is_free_in_a_fork() -> None:
    lock, held, over = ForkLock(), threading.Event(), threading.Event()

    def hold() -> None:
        with lock:
            held.set()
            over.wait()

    def take() -> bool:
        with lock:
            return True

    holder = threading.Thread(target=hold)
    holder.start()
    held.wait()
    assert _in_a_fork(take) == 0
    over.set()
    holder.join()
    assert take()


@forks
def test_who_forks_with_a_lock_gives_it_back_in_both_processes() -> None:
    lock = ForkLock()
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        with lock:
            child = os.fork()
    if child == 0:
        with lock:
            os._exit(0)
    assert os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]) == 0
    with lock:
        pass


@pytest.mark.skipif(sys.platform != "linux", reason="threads have priorities of their own on Linux")
def test_those_who_help_in_the_background_let_others_go_first_and_help_nobody_else() -> None:
    pool = Pool(2, "cortex-test")

    def here() -> tuple[bool, int]:
        return is_in_background(), os.getpriority(os.PRIO_PROCESS, 0)

    usual = here()

    def behind() -> list[tuple[bool, int]]:
        work_in_background()
        return [here(), pool.submit(here).result()]

    with ThreadPoolExecutor(1) as one:
        assert one.submit(behind).result() == [(True, max(10, usual[1]))] * 2
    assert pool.submit(here).result() == here() == usual
    pool.close()
    assert not any(name.startswith("cortex-test") for name in _ours())


@forks
def test_a_fork_recalls_with_threads_of_its_own(home: Path, project: Path) -> None:
    with Cortex.open(home, project=project, backend=StubBackend()) as cortex:
        cortex.memories.capture("PostgreSQL rounds down")
        assert cortex.memories.recall("rounds").results
        assert any(name.startswith("cortex-embed") for name in _ours())

        def work() -> bool:
            cortex.memories.recall("a query that is new")
            return any(name.startswith("cortex-embed") for name in _ours())

        assert _in_a_fork(work) == 0
        assert cortex.memories.recall("rounds").results


@forks
def test_a_fork_scans_vectors_with_threads_of_its_own(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(vectors, "_BLOCK", 8 * 16)
    sample = np.random.default_rng(7).random((64, 16), np.float32)
    matrix = VectorMatrix(sample, 64)
    places = np.arange(64, dtype=np.int32)
    matrix.append(sample, places)

    def nearest() -> list[int]:
        found: list[int] = matrix.nearest(sample[0], places >= 0, 5).tolist()
        return found

    expected = nearest()
    assert any(name.startswith("cortex-scan") for name in _ours())
    assert _in_a_fork(lambda: nearest() == expected and any(one.startswith("cortex-scan") for one in _ours())) == 0
    vectors._HELPER.close()


def test_the_last_to_close_leaves_no_thread(home: Path, project: Path, tmp_path: Path) -> None:
    first = Cortex.open(home, project=project, backend=StubBackend())
    second = Cortex.open(tmp_path / "second", project=project, backend=StubBackend())
    for cortex in (first, second):
        cortex.memories.capture("PostgreSQL rounds down")
        assert cortex.memories.recall("rounds").results
    first.close()
    first.close()
    assert second.memories.recall("rounds").results
    assert _ours()
    second.close()
    assert _ours() == []
    with Cortex.open(home, project=project, backend=StubBackend()) as again:
        assert again.memories.recall("rounds").results
    assert _ours() == []


def test_work_is_shared_with_helpers_and_ends_with_the_last_of_them() -> None:
    pool = Pool(2, "cortex-shared")
    items, done = deque(range(200)), list[int]()

    def work() -> None:
        with contextlib.suppress(IndexError):
            while True:
                done.append(items.popleft())

    pool.run_beside(work, 2)
    assert sorted(done) == list(range(200))
    pool.close()


@pytest.mark.parametrize("fails", ["helper", "caller"])
def test_a_failure_of_shared_work_reaches_the_caller_after_all_have_stopped(fails: str) -> None:
    pool = Pool(1, "cortex-shared")
    begun, at_work = threading.Event(), threading.Semaphore(0)

    def work() -> None:
        is_helper = threading.current_thread() is not threading.main_thread()
        if is_helper:
            begun.set()
        else:
            # Otherwise the caller could be done before a helper begins.
            assert begun.wait(30)
        if is_helper == (fails == "helper"):
            raise ValueError(fails)
        at_work.release()

    with pytest.raises(ValueError, match=fails):
        pool.run_beside(work, 1)
    assert at_work.acquire(blocking=False)
    pool.close()


@pytest.mark.skipif(platform.libc_ver()[0] != "glibc", reason="only this C library keeps what is freed")
def test_freed_memory_goes_back_to_the_system_when_it_is_trimmed() -> None:
    # A block that is still in use above the freed ones keeps the C library from giving them back by itself.
    program = """
import ctypes
from pathlib import Path
from cortex_py.core.jobs import trim_arenas

def resident():
    return int(Path("/proc/self/statm").read_text().split()[1])

library = ctypes.CDLL(None)
library.malloc.restype, library.free.argtypes = ctypes.c_void_p, [ctypes.c_void_p]
blocks = [library.malloc(65_536) for _ in range(1_000)]
for block in blocks:
    ctypes.memset(block, 1, 65_536)
for block in blocks[:-1]:
    library.free(block)
before = resident()
trim_arenas()
assert resident() < before - 10_000, (before, resident())
"""
    subprocess.run([sys.executable, "-c", program], check=True)
