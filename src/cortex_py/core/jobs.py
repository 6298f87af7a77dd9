"""Work of a process: its threads, what runs when, how far it is, and spans of it for tracing.

`Pace` says what runs beside calls and to what it yields; `Jobs` does it. `Pool`, `ForkLock` and `load_once` are threads
and locks that survive a fork. `watch` and `report` tell how far long work is; `span` traces its name, start, end and
outcome, never its content.
"""

from __future__ import annotations

import contextlib
import logging
import math
import os
import sys
import threading
import time
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from concurrent.futures import Future, ThreadPoolExecutor
from contextlib import AbstractContextManager, contextmanager, nullcontext
from contextvars import ContextVar
from dataclasses import dataclass
from functools import cache
from typing import Any, Generic, Literal, Protocol, TypeVar
from weakref import WeakSet

from .errors import CortexError, StorageError

__all__ = [
    "FillVectors", "ForkLock", "Jobs", "Notes", "Pace", "Pool", "Tracer", "Unit", "VectorJob", "call_library",
    "is_in_background", "limit_arenas", "load_once", "release", "renew_in_forks", "report", "reported", "require",
    "set_tracer", "span", "trim_arenas", "watch", "work_in_background",
]  # fmt: skip

logger = logging.getLogger(__name__)

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


# What is counted: texts that are embedded, documents that are saved or read, packs that are fetched, files and commits
# of a project that are read.
Unit = Literal["texts", "documents", "packs", "files"]
_watched: ContextVar[tuple[Unit, Callable[[int, int], None]] | None] = ContextVar("watched", default=None)


class Tracer(Protocol):
    def span(
        self, name: str, attributes: Mapping[str, str | int], caller: Mapping[str, str] | None
    ) -> AbstractContextManager[object]:
        """A span inside the current one, or inside the caller's, which its headers name."""
        ...


_NOTHING: AbstractContextManager[object] = nullcontext()
_tracer: Tracer | None = None


def span(
    name: str, attributes: Mapping[str, str | int], caller: Mapping[str, str] | None = None
) -> AbstractContextManager[object]:
    """Enter it around a piece of work. Of an error that leaves it only the type is recorded."""
    return _NOTHING if _tracer is None else _tracer.span(name, attributes, caller)


def set_tracer(tracer: Tracer | None) -> None:
    """Send every later span of this process to the tracer."""
    global _tracer
    _tracer = tracer


@contextmanager
def watch(unit: Unit, progress: Callable[[int, int], None] | None) -> Iterator[None]:
    """Have `progress` called with (done, total) of these units; a total of 0 is not known."""
    before = _watched.set((unit, progress) if progress else None)
    try:
        yield
    finally:
        _watched.reset(before)


def report(unit: Unit, done: int, total: int = 0) -> None:
    """Say how far work is, if somebody watches. If the watcher raises, the work stops there."""
    watched = _watched.get()
    if watched is not None and watched[0] == unit:
        watched[1](done, total)


def reported(unit: Unit, items: Iterable[_T], total: int = 0) -> Iterator[_T]:
    """The items, each reported when it is done."""
    for done, item in enumerate(items, 1):
        yield item
        report(unit, done, total)


# -- what runs beside calls -----------------------------------------------------------------------


@dataclass(frozen=True, slots=True, kw_only=True)
class Pace:
    """When background work runs, and how long it and its callers wait, in seconds. Tests choose other figures.

    | what                | when it runs                            | after                  | yields to          |
    |---------------------|-----------------------------------------|------------------------|--------------------|
    | reading new notes   | once a capture or an import marked some | captures of many notes | calls              |
    | vectors             | once a scan left some to be computed    |                        | who needs them now |
    | rounds of upkeep    | between calls, by the server            | reading, vectors       | calls              |
    | threads of a `Pool` | with the call that they help            |                        |                    |

    What is left when a process ends is marked in the store, so a later process goes on there. Three other waits are
    data structures beside what they serve: `CommitGroups` of the store commits together what waits for the same turn,
    `Batcher` merges the texts of many callers, and `Turns` of the MCP server lets few calls work at the same time.
    """

    # `beside` calls in a thread, `with` each capture, or only when somebody `asks` for the graph.
    reads: Literal["beside", "with", "asks"] = "beside"
    # From here on, a capture of few notes reads twice as many as it adds, and one more. An import reads none: what it
    # leaves is read when calls pause, and captures after it do not pay for it.
    most_pending: int = 5_000
    quiet: float = 0.1  # without a capture or a recall, before a thread begins
    first_quiet: float = 1.0  # the same before the first note that a process reads: a command has ended by then
    patience: float = 2.0  # how long reading lets calls go first
    linger: float = 5.0  # how long its thread waits for more
    # Other background work goes on for so long before it lets calls go first, and then waits at most so long.
    stretch: float = 0.05
    yields: float = 0.5
    finish: float = 2.0  # what a query of the graph spends on what is pending
    close: float = 0.5
    rival: float = 2.0  # how long the thread leaves everything to another process that reads as well
    fork: float = 5.0


_MOST_COUNTED = 1_000_000
_BATCH = 16
_FEW = 4  # what is read at a time while calls do not pause
# Computes vectors until the function that it is given says stop.
FillVectors = Callable[[Callable[[], bool]], int]


class Notes(Protocol):
    """The notes of a store that wait to be read for the graph (`memory.capture.reading.WaitingNotes`)."""

    def count(self, most: int) -> int: ...

    def take(self, spaces: Sequence[str] | None, most: int) -> Sequence[Any]:
        """The oldest ones, of some spaces or of all."""
        ...

    def read(self, note: Any) -> bool:
        """Read one and store what was read; returns whether another process has done so at the same time."""
        ...


class Jobs:
    """The background work of one open home. Notes are read in their order, by one thread of the process at a time."""

    def __init__(self, notes: Notes, pace: Pace | None = None) -> None:
        self.pace = pace or Pace()
        self._notes = notes
        self.vectors = VectorJob(self.pace)
        self.renew()
        renew_in_forks(self)
        _pause_at_forks()
        _open.add(self)

    def renew(self) -> None:
        self._lock = threading.Lock()
        # Reading may ask git, so nobody waits for a turn without a limit.
        self._turn = threading.Semaphore()
        self._news = threading.Event()
        self._closing = threading.Event()
        self._thread: threading.Thread | None = None
        self._called_at = -math.inf
        self._calls = 0  # that are being answered
        self._counting = threading.Lock()
        self._paused = False
        self._bulks = 0  # captures of many notes that are under way
        self._is_warm = False  # whether this process has read a note
        self._has_rival = False  # whether another process has just read the same note
        self._added = 0  # by this process, since it last found nothing pending
        self._waiting: int | None = None  # at most so many; exact each time that it exceeds the bound
        self._allowed = self.pace.most_pending  # the bound: what an import left, and so many more

    # -- calls, which go first -------------------------------------------------------------------

    def note_call(self) -> None:
        """Let the caller go first: a thread that computes would take the interpreter from it."""
        self._called_at = time.monotonic()

    @contextlib.contextmanager
    def answering(self) -> Iterator[None]:
        """Let the caller go first until the end of the block."""
        with self._counting:
            self._calls += 1
        try:
            yield
        finally:
            self.note_call()
            with self._counting:
                self._calls -= 1

    def wait_for_a_pause(self, patience: float, quiet: float) -> bool:
        """Wait until there are no calls for a moment; False if that takes too long."""
        until = time.monotonic() + patience
        while True:
            now = time.monotonic()
            left = min(until - now, quiet if self._calls else self._called_at + quiet - now)
            if left <= 0 or self._closing.wait(left):
                return not self._calls and self._called_at + quiet <= now

    def let_calls_pass(self) -> Callable[..., None]:
        """A function that lets calls go first, after each short stretch of work. It takes a progress report.

        A thread that computes takes the interpreter from calls, which then take three to four times as long.
        """
        until = 0.0

        def wait(*_done_and_total: int) -> None:
            nonlocal until
            if time.monotonic() >= until:
                self.wait_for_a_pause(self.pace.yields, self.pace.quiet)
                until = time.monotonic() + self.pace.stretch

        return wait

    # -- reading notes ---------------------------------------------------------------------------

    def added(self, count: int) -> None:
        """Take up what a capture marked; a capture of few notes reads some at once where too much is pending.

        The capture is stored: what fails here, such as a server that has other spaces, is left for later.
        """
        self.note_call()
        try:
            with self._lock:
                self._added += count
                full = self._is_full(count)
            self._start()
            if self.pace.reads == "with":
                self.read(None, None, math.inf)
            elif full:
                self.read(None, 2 * count + 1, time.monotonic() + self.pace.finish)
        except StorageError as error:
            logger.warning("new notes were not read for the graph yet: %s", error)

    def _is_full(self, count: int) -> bool:
        """Whether a capture of so many notes has to read some: too many came since the last import."""
        most = self.pace.most_pending
        if self._waiting is None:
            self._waiting = self._notes.count(_MOST_COUNTED)
            self._allowed = self._waiting + most
            return False
        self._waiting += count
        if count > _FEW:
            self._allowed = self._waiting + most
        elif self._waiting > self._allowed:
            self._waiting = self._notes.count(_MOST_COUNTED)
        return self._waiting > self._allowed

    @contextlib.contextmanager
    def held_back(self) -> Iterator[None]:
        """While many notes are captured, the thread reads none: the model has the processors."""
        with self._lock:
            self._bulks += 1
        try:
            yield
        finally:
            with self._lock:
                self._bulks -= 1

    def take_up(self) -> None:
        """Read what another process or an import left, in the background and when calls pause."""
        if self._notes.count(1):
            self.note_call()
            self._start()

    def finish(self, spaces: Sequence[str]) -> bool:
        """Read what is pending in some spaces; returns whether nothing is left after two seconds."""
        return not self._notes.take(spaces, 1) or self.read(spaces, None, time.monotonic() + self.pace.finish)

    def close(self) -> None:
        """Read what this process marked, if that is soon done, and end the threads. The rest stays marked.

        A process that has read nothing yet, such as a single command, leaves it to one that needs the graph: to load
        what reads takes longer than all else that it does.
        """
        self._closing.set()
        self._news.set()
        self.vectors.close()
        if thread := self._thread:
            thread.join()
        if self._added and self._is_warm:
            try:
                self.read(None, None, time.monotonic() + self.pace.close)
            except CortexError as error:
                logger.debug("pending notes are left to the next process: %s", type(error).__name__)

    def join(self, seconds: float) -> bool:
        """Wait until the threads have ended; returns whether they have."""
        until = time.monotonic() + seconds
        for thread in (self._thread, self.vectors.thread):
            if thread:
                thread.join(max(0.0, until - time.monotonic()))
        return not any(thread and thread.is_alive() for thread in (self._thread, self.vectors.thread))

    def read(self, spaces: Sequence[str] | None, most: int | None, until: float) -> bool:
        """Read pending notes, the oldest first; returns whether none is left."""
        wait = max(0.0, until - time.monotonic())
        if not self._turn.acquire(timeout=None if math.isinf(wait) else wait):
            return False
        try:
            return self._read_in_turn(spaces, most, until)
        finally:
            self._turn.release()

    def _read_in_turn(self, spaces: Sequence[str] | None, most: int | None, until: float) -> bool:
        done = 0
        while notes := self._notes.take(spaces, _BATCH):
            for note in notes:
                if done == most or time.monotonic() >= until:
                    return False
                self._is_warm = True
                self._has_rival = self._notes.read(note)
                done += 1
                if self._has_rival and most is not None:
                    return False
        if spaces is None:
            self._added, self._waiting, self._allowed = 0, 0, self.pace.most_pending
        return True

    def _start(self) -> None:
        self._news.set()
        with self._lock:
            if self.pace.reads == "beside" and self._thread is None and not self._closing.is_set():
                self._thread = threading.Thread(target=self._run, name="cortex-reading", daemon=True)
                self._thread.start()

    def _run(self) -> None:
        pace = self.pace
        while not self._closing.is_set():
            self._news.clear()
            while self._bulks and not self._closing.wait(pace.quiet):
                pass
            quiet = pace.quiet if self._is_warm else pace.first_quiet
            most = _BATCH if self.wait_for_a_pause(pace.patience, quiet) else _FEW
            try:
                # A batch at a time, so that calls go first again.
                done = self._closing.is_set() or self.read(None, most, time.monotonic() + pace.patience)
            except CortexError as error:
                # A store that is read-only, busy or gone: the next capture, query or process tries again.
                logger.debug("pending notes were not read: %s", type(error).__name__)
                done = True
            except Exception:
                logger.exception("pending notes were not read")
                done = True
            if self._has_rival:
                # Processes that go on side by side read each note several times, and are slower than one of them.
                self._has_rival = False
                self._closing.wait(pace.rival)
            if done and not self._news.wait(pace.linger):
                with self._lock:
                    if not self._news.is_set():
                        self._thread = None
                        break
        trim_arenas()

    def before_fork(self) -> None:
        """Wait until nothing is being read: a child would have modules that are loaded by half."""
        self._paused = self._turn.acquire(timeout=self.pace.fork)

    def after_fork_in_parent(self) -> None:
        if self._paused:
            self._turn.release()


class VectorJob:
    """Computes the vectors that records wait for, in one thread of the process at a time."""

    def __init__(self, pace: Pace) -> None:
        self._pace = pace
        self.renew()
        renew_in_forks(self)
        _pause_at_forks()
        _open.add(self)

    def renew(self) -> None:
        self._lock = threading.Lock()
        self._working = threading.Lock()
        self._stop = threading.Event()
        self.thread: threading.Thread | None = None
        self._unfinished: FillVectors | None = None
        self._held = self._closed = False

    def begin(self, fill: FillVectors) -> None:
        """Compute them in the background, unless that is being done."""
        with self._lock:
            if not self._closed and (self.thread is None or not self.thread.is_alive()):
                self._stop.clear()
                self._unfinished = fill
                self.thread = threading.Thread(target=self._run, args=(fill,), name="cortex-vectors", daemon=True)
                self.thread.start()

    def run(self, fill: FillVectors, stop: Callable[[], bool]) -> int:
        """Compute them here and now; the thread goes on with what is left."""
        unfinished = self._pause()
        try:
            with self._working:
                return fill(stop)
        finally:
            if unfinished:
                self.begin(unfinished)

    def close(self) -> None:
        self._closed = True
        self._pause()

    def before_fork(self) -> None:
        self._pause()
        self._held = self._working.acquire(timeout=self._pace.fork)

    def after_fork_in_parent(self) -> None:
        if self._held:
            self._working.release()
        if self._unfinished:
            self.begin(self._unfinished)

    def _pause(self) -> FillVectors | None:
        """End the thread; returns what it has not finished."""
        self._stop.set()
        if thread := self.thread:
            thread.join()
        return self._unfinished

    def _run(self, fill: FillVectors) -> None:
        while not self._working.acquire(timeout=self._pace.quiet):
            if self._stop.is_set():
                return
        try:
            fill(self._stop.is_set)
        except CortexError as error:
            logger.debug("vectors are left to the next process: %s", type(error).__name__)
        except Exception:
            logger.exception("vectors were not computed")
        finally:
            self._working.release()
        if not self._stop.is_set():
            self._unfinished = None


_open: WeakSet[Jobs | VectorJob] = WeakSet()


def _before() -> None:
    for one in list(_open):
        one.before_fork()


def _in_parent() -> None:
    for one in list(_open):
        one.after_fork_in_parent()


@cache
def _pause_at_forks() -> None:
    """Registered once a store is open, so that this waits before the store holds its connections back."""
    if hasattr(os, "register_at_fork"):
        os.register_at_fork(before=_before, after_in_parent=_in_parent)
