"""Thread pools that start when first used, restart in a forked process, and end with their last user.

Also `work_in_background`, for threads that nobody waits for, `load_once`, for what the threads of a process share,
`limit_arenas` and `trim_arenas`, for the memory that they keep, and `call_library`, for calls of the C library.
"""

from __future__ import annotations

import contextlib
import os
import sys
import threading
from collections.abc import Callable
from concurrent.futures import Future, ThreadPoolExecutor
from typing import Any, Generic, Protocol, TypeVar
from weakref import WeakSet

__all__ = [
    "ForkLock", "Pool", "call_library", "is_in_background", "limit_arenas", "load_once", "release", "renew_in_forks",
    "require", "trim_arenas", "work_in_background",
]  # fmt: skip

_M_ARENA_MAX, _ARENAS = -8, 2  # of glibc's malloc.h
_NICENESS = 10
_thread = threading.local()
_T = TypeVar("_T")


def work_in_background() -> None:
    """From now on, let other threads have the cores before this one, and before the threads of pools that help it.

    Only for threads that compute: one that holds the lock of a file would make others wait for it.
    """
    _thread.in_background = True
    # Elsewhere a thread has no priority of its own, or one that could not be set in this way.
    if sys.platform == "linux":
        with contextlib.suppress(OSError):
            os.setpriority(os.PRIO_PROCESS, 0, max(_NICENESS, os.getpriority(os.PRIO_PROCESS, 0)))


def is_in_background() -> bool:
    """Whether this thread works in the background."""
    return getattr(_thread, "in_background", False)


def limit_arenas() -> None:
    """Let all threads of a server share two heaps of the C library, which keeps freed memory apart for each thread."""
    call_library("mallopt", _M_ARENA_MAX, _ARENAS)


def trim_arenas() -> None:
    """Give freed memory back to the system, after work that took much of it for a while."""
    call_library("malloc_trim", 0)


def call_library(name: str, *arguments: Any) -> None:
    """Call a function of the C library, if it has it. Other threads go on meanwhile."""
    import ctypes

    with contextlib.suppress(OSError, AttributeError, TypeError):  # another C library, or Windows
        getattr(ctypes.CDLL(None), name)(*arguments)


class Renewable(Protocol):
    """Has threads or locks, which do not survive a fork."""

    def renew(self) -> None: ...


_renewable: WeakSet[Renewable] = WeakSet()


def renew_in_forks(one: Renewable) -> None:
    """Call `renew` in every process forked from this one."""
    _renewable.add(one)


def _renew_all() -> None:
    for one in list(_renewable):
        one.renew()


if hasattr(os, "register_at_fork"):
    os.register_at_fork(after_in_child=_renew_all)


class ForkLock:
    """A lock that is free in a forked process, even if a thread of the parent held it."""

    def __init__(self) -> None:
        self.renew()
        renew_in_forks(self)

    def renew(self) -> None:
        self._lock = threading.Lock()

    def __enter__(self) -> None:
        self._lock.acquire()

    def __exit__(self, *_: object) -> None:
        # Not held in a child whose only thread forked while it had the lock.
        if self._lock.locked():
            self._lock.release()


class load_once(Generic[_T]):  # noqa: N801  # a decorator
    """Calls a function at its first use and keeps the result; threads that need it meanwhile wait.

    `functools.cache` lets each of them load its own: eight at once took eight times the memory and the time.
    """

    def __init__(self, load: Callable[[], _T]) -> None:
        self._load = load
        self._loaded: tuple[_T] | None = None
        self.__doc__ = load.__doc__
        self.renew()
        renew_in_forks(self)

    def renew(self) -> None:
        self._lock = threading.Lock()

    @property
    def is_loaded(self) -> bool:
        return self._loaded is not None

    def __call__(self) -> _T:
        if self._loaded is None:
            with self._lock:
                if self._loaded is None:
                    self._loaded = (self._load(),)
        return self._loaded[0]


class Pool:
    """A thread pool that a process shares. Work in the background has threads of its own, which stay there."""

    def __init__(self, workers: int, name: str) -> None:
        self._workers = workers
        self._name = name
        self.renew()
        _pools.append(self)
        renew_in_forks(self)

    def renew(self) -> None:
        self._lock = threading.Lock()
        self._executors: dict[bool, ThreadPoolExecutor] = {}

    def submit(self, work: Callable[[], _T]) -> Future[_T]:
        in_background = is_in_background()
        with self._lock:
            executor = self._executors.get(in_background)
            if executor is None:
                begin = work_in_background if in_background else None
                executor = ThreadPoolExecutor(self._workers, self._name, initializer=begin)
                self._executors[in_background] = executor
            return executor.submit(work)

    def run_beside(self, work: Callable[[], None], helpers: int) -> None:
        """Call `work` here and in so many threads of the pool as are free; returns when none of them is at it.

        `work` takes the next part of what is to be done until nothing is left.
        """
        others = [self.submit(work) for _ in range(helpers)]
        try:
            work()
        finally:
            for other in others:
                if not other.cancel():
                    other.result()

    def close(self) -> None:
        """Finish pending work and end the threads; the next use starts new ones."""
        with self._lock:
            executors, self._executors = self._executors, {}
        for executor in executors.values():
            executor.shutdown()


class _Users:
    """The number of users of the pools in this process."""

    def __init__(self) -> None:
        self.count = 0
        self.renew()
        renew_in_forks(self)

    def renew(self) -> None:
        self.lock = threading.Lock()


_pools: list[Pool] = []
_users = _Users()


def require() -> None:
    """Keep the pools until `release`."""
    with _users.lock:
        _users.count += 1


def release() -> None:
    """The last to release ends all threads."""
    with _users.lock:
        _users.count -= 1
        last = _users.count == 0
    if last:
        for pool in _pools:
            pool.close()
