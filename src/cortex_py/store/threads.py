"""One thread for array arithmetic while a query runs.

A matrix–vector product of a few milliseconds gains little from a second thread, and when another
process holds the other core, waiting for that thread costs a whole scheduler slice.
"""

from __future__ import annotations

import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from functools import lru_cache

from threadpoolctl import ThreadpoolController

__all__ = ["single_threaded"]


class _Guard:
    """Counts who is inside: the first sets the limit, the last restores what was before."""

    def __init__(self) -> None:
        self._controller = ThreadpoolController()
        self._lock = threading.Lock()
        self._inside = 0
        self._restore: Callable[[], None] = lambda: None

    def enter(self) -> None:
        with self._lock:
            self._inside += 1
            if self._inside == 1:
                self._restore = self._controller.limit(limits=1, user_api="blas").restore_original_limits

    def leave(self) -> None:
        with self._lock:
            self._inside -= 1
            if self._inside == 0:
                self._restore()


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
