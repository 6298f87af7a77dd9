"""What threads share is loaded by one of them."""

from __future__ import annotations

import threading
from concurrent.futures import ThreadPoolExecutor

from cortex_py.core.jobs import load_once
from timing import MINUTE


def test_threads_that_need_a_model_at_once_load_it_once() -> None:
    loads: list[int] = []
    everybody = threading.Barrier(8)
    loading = threading.Event()

    @load_once
    def model() -> object:
        loading.wait(MINUTE)
        loads.append(1)
        return object()

    def use() -> object:
        everybody.wait(MINUTE)
        loading.set()
        return model()

    with ThreadPoolExecutor(8) as threads:
        found = [one.result() for one in [threads.submit(use) for _ in range(8)]]
    assert len(loads) == 1
    assert len(set(map(id, found))) == 1
