"""Reads new notes for the graph after their capture was acknowledged: in their order, once, and by any process.

A capture marks its notes as pending in its own transaction. A thread of the process reads them when captures and
recalls pause; so does whatever needs the graph, before it looks, and the next process that opens the home. A note is
read as it would have been before it was stored: after all earlier ones of its space, and without the later ones. The
first to write what was read claims the note in that transaction, so nothing is written twice.
"""

from __future__ import annotations

import logging
import os
import threading
import time
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from functools import cache
from typing import TYPE_CHECKING, Protocol
from weakref import WeakSet

from ...errors import CortexError, StorageError
from ...pools import renew_in_forks, trim_arenas
from ...records import Memory
from ...security.callers import as_system
from ...store.database import Session
from ...store.store import Store

if TYPE_CHECKING:
    from .capture import StoredRecord

__all__ = ["PendingReading", "PendingVectors", "YieldToCalls"]

logger = logging.getLogger(__name__)

# From here on, a capture of few notes reads twice as many as it adds, and one more. An import reads none: what it
# leaves is read when calls pause, and captures after it do not pay for it.
_MOST_PENDING = 5_000
_MOST_COUNTED = 1_000_000
_BATCH = 16
_FEW = 4  # what it reads at a time while calls do not pause
_QUIET_SECONDS = 0.1  # without a capture or a recall, before the thread begins
_FIRST_QUIET_SECONDS = 1.0  # the same before the first note that a process reads: a command has ended by then
_PATIENCE_SECONDS = 2.0  # how long it lets calls go first
_LINGER_SECONDS = 5.0  # how long it waits for more
# Other background work goes on for so long before it lets calls go first, and then waits at most so long for a pause.
_STRETCH_SECONDS, _YIELD_SECONDS = 0.05, 0.5
_FINISH_SECONDS = 2.0  # what a query of the graph spends on what is pending
_CLOSE_SECONDS = 0.5
_RIVAL_SECONDS = 2.0  # how long the thread leaves everything to another process that reads as well
_FORK_WAIT_SECONDS = 5.0


class Reader(Protocol):
    """What reads notes and stores what it read: `memory.capture.capture.Capture`."""

    def read_stored(self, space: str, num: int, memory: Memory) -> StoredRecord: ...

    def unreadable(self, space: str, num: int, memory: Memory) -> StoredRecord: ...

    def write_stored(self, session: Session, one: StoredRecord) -> None: ...


class PendingReading:
    """What is pending in one store."""

    def __init__(self, store: Store, most: int = _MOST_PENDING) -> None:
        self._store = store
        self._reader: Reader | None = None
        self._most = most
        self.vectors = PendingVectors()
        self.renew()
        renew_in_forks(self)
        _pause_at_forks()
        _open.add(self)

    def renew(self) -> None:
        self._lock = threading.Lock()
        # One thread of a process reads at a time. Reading may ask git, so nobody waits for a turn without a limit.
        self._turn = threading.Semaphore()
        self._news = threading.Event()
        self._closing = threading.Event()
        self._thread: threading.Thread | None = None
        self._called_at = 0.0
        self._calls = 0  # that are being answered
        self._counting = threading.Lock()
        self._paused = False
        self._bulks = 0  # captures of many notes that are under way
        self._is_warm = False  # whether this process has read a note
        self._has_rival = False  # whether another process has just read the same note
        self._added = 0  # by this process, since it last found nothing pending
        self._waiting: int | None = None  # at most so many; exact each time that it exceeds the bound
        self._allowed = self._most  # the bound: what an import left, and so many more

    def use(self, reader: Reader) -> None:
        """Read with this one, unless there is another already: each can read the notes of all spaces."""
        self._reader = self._reader or reader

    def mark(self, session: Session, space: str, nums: Sequence[int]) -> None:
        """Mark new notes as pending, in the transaction that stores them."""
        self._store.graph.mark_pending(session, space, nums)

    def added(self, count: int) -> None:
        """Take up what a capture marked; a capture of few notes reads some at once where too much is pending.

        The capture is stored: what fails here, such as a server that has other spaces, is left for later.
        """
        self._called_at = time.monotonic()
        try:
            with self._lock:
                self._added += count
                full = self._is_full(count)
            self._start()
            if full:
                self._read(None, 2 * count + 1, time.monotonic() + _FINISH_SECONDS)
        except StorageError as error:
            logger.warning("new notes were not read for the graph yet: %s", error)

    def _is_full(self, count: int) -> bool:
        """Whether a capture of so many notes has to read some: too many came since the last import."""
        if self._waiting is None:
            self._waiting = self._count()
            self._allowed = self._waiting + self._most
            return False
        self._waiting += count
        if count > _FEW:
            self._allowed = self._waiting + self._most
        elif self._waiting > self._allowed:
            self._waiting = self._count()
        return self._waiting > self._allowed

    @contextmanager
    def held_back(self) -> Iterator[None]:
        """While many notes are captured, the thread reads none: the model has the processors."""
        with self._lock:
            self._bulks += 1
        try:
            yield
        finally:
            with self._lock:
                self._bulks -= 1

    def note_call(self) -> None:
        """Let the caller go first: the thread would take the interpreter from it."""
        self._called_at = time.monotonic()

    @contextmanager
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

    def wait_for_a_pause(self, patience: float = _PATIENCE_SECONDS, quiet: float = _QUIET_SECONDS) -> bool:
        """Wait until there are no calls for a moment; False if that takes too long."""
        until = time.monotonic() + patience
        while True:
            now = time.monotonic()
            left = min(until - now, quiet if self._calls else self._called_at + quiet - now)
            if left <= 0 or self._closing.wait(left):
                return not self._calls and self._called_at + quiet <= now

    def take_up(self) -> None:
        """Read what another process or an import left, in the background and when calls pause."""
        if self._count(1):
            self._called_at = time.monotonic()
            self._start()

    def finish(self, spaces: Sequence[str]) -> bool:
        """Read what is pending in some spaces; returns whether nothing is left after two seconds."""
        with self._store.database.read() as session:
            if not self._store.graph.pending(session, spaces, 1):
                return True
        return self._read(spaces, None, time.monotonic() + _FINISH_SECONDS)

    def close(self) -> None:
        """Read what this process marked, if that is soon done, and end the thread. The rest stays marked.

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
                self._read(None, None, time.monotonic() + _CLOSE_SECONDS)
            except CortexError as error:
                logger.debug("pending notes are left to the next process: %s", type(error).__name__)

    # -- reading ---------------------------------------------------------------------------------

    def _read(self, spaces: Sequence[str] | None, most: int | None, until: float) -> bool:
        """Read pending notes, the oldest first; returns whether none is left."""
        if not self._turn.acquire(timeout=max(0.0, until - time.monotonic())):
            return False
        try:
            with as_system():
                return self._read_in_turn(spaces, most, until)
        finally:
            self._turn.release()

    def _read_in_turn(self, spaces: Sequence[str] | None, most: int | None, until: float) -> bool:
        done = 0
        memories, graph = self._store.memories, self._store.graph
        while True:
            with self._store.database.read() as session:
                placed = graph.pending(session, spaces, _BATCH)
                rows = [
                    (space, num, memory)
                    for space, nums in placed.items()
                    for num, _, _, memory in memories.by_numbers(session, space, nums)
                ]
            if not rows:
                if spaces is None:
                    self._added, self._waiting, self._allowed = 0, 0, self._most
                return True
            for space, num, memory in rows:
                if done == most or time.monotonic() >= until:
                    return False
                self._read_one(space, num, memory)
                done += 1
                if self._has_rival and most is not None:
                    return False

    def _read_one(self, space: str, num: int, memory: Memory) -> None:
        reader = self._reader
        if reader is None:
            raise RuntimeError("no project is open")
        self._is_warm = True
        try:
            stored = reader.read_stored(space, num, memory)
        except CortexError:
            raise
        except Exception:
            # It would fail again, and everything behind it would wait for ever.
            logger.exception("memory %s could not be read for the graph, which has nothing of it", memory.id)
            stored = reader.unreadable(space, num, memory)
        with self._store.database.write(space, derived=True) as session:
            self._has_rival = not self._store.graph.claim(session, space, num, memory.version)
            if not self._has_rival:
                reader.write_stored(session, stored)

    # -- forks -----------------------------------------------------------------------------------

    def before_fork(self) -> None:
        """Wait until nothing is being read: a child would have modules that are loaded by half."""
        self._paused = self._turn.acquire(timeout=_FORK_WAIT_SECONDS)

    def after_fork_in_parent(self) -> None:
        if self._paused:
            self._turn.release()

    # -- the thread ------------------------------------------------------------------------------

    def _count(self, most: int = _MOST_COUNTED) -> int:
        with as_system(), self._store.database.read() as session:
            return self._store.graph.count_pending(session, most)

    def _start(self) -> None:
        self._news.set()
        with self._lock:
            if self._thread is None and not self._closing.is_set():
                self._thread = threading.Thread(target=self._run, name="cortex-reading", daemon=True)
                self._thread.start()

    def _run(self) -> None:
        while not self._closing.is_set():
            self._news.clear()
            while self._bulks and not self._closing.wait(_QUIET_SECONDS):
                pass
            quiet = _QUIET_SECONDS if self._is_warm else _FIRST_QUIET_SECONDS
            most = _BATCH if self.wait_for_a_pause(quiet=quiet) else _FEW
            try:
                # A batch at a time, so that calls go first again.
                done = self._closing.is_set() or self._read(None, most, time.monotonic() + _PATIENCE_SECONDS)
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
                self._closing.wait(_RIVAL_SECONDS)
            if done and not self._news.wait(_LINGER_SECONDS):
                with self._lock:
                    if not self._news.is_set():
                        self._thread = None
                        break
        trim_arenas()


class YieldToCalls:
    """A `stop` callback for background work that also lets calls go first, after each short stretch of work.

    A thread that computes takes the interpreter from calls, which then take three to four times as long.
    """

    def __init__(self, pending: PendingReading, stop: Callable[[], bool]) -> None:
        self._pending = pending
        self._stop = stop
        self._until = 0.0

    def __call__(self) -> bool:
        self.let_calls_pass()
        return self._stop()

    def let_calls_pass(self, *_done_and_total: int) -> None:
        """Let calls go first. Takes what a progress callback takes, for work that reports progress but never stops."""
        if time.monotonic() >= self._until:
            self._pending.wait_for_a_pause(_YIELD_SECONDS)
            self._until = time.monotonic() + _STRETCH_SECONDS


# Computes vectors until the function that it is given says stop.
FillVectors = Callable[[Callable[[], bool]], int]


class PendingVectors:
    """Computes the vectors that records wait for, in one thread of the process at a time.

    What is missing is marked in the store, so whatever is left when a process ends is computed by a later one.
    """

    def __init__(self) -> None:
        self.renew()
        renew_in_forks(self)
        _pause_at_forks()
        _open.add(self)

    def renew(self) -> None:
        self._lock = threading.Lock()
        self._working = threading.Lock()
        self._stop = threading.Event()
        self._thread: threading.Thread | None = None
        self._unfinished: FillVectors | None = None
        self._held = self._closed = False

    def begin(self, fill: FillVectors) -> None:
        """Compute them in the background, unless that is being done."""
        with self._lock:
            if not self._closed and (self._thread is None or not self._thread.is_alive()):
                self._stop.clear()
                self._unfinished = fill
                self._thread = threading.Thread(target=self._run, args=(fill,), name="cortex-vectors", daemon=True)
                self._thread.start()

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
        self._held = self._working.acquire(timeout=_FORK_WAIT_SECONDS)

    def after_fork_in_parent(self) -> None:
        if self._held:
            self._working.release()
        if self._unfinished:
            self.begin(self._unfinished)

    def _pause(self) -> FillVectors | None:
        """End the thread; returns what it has not finished."""
        self._stop.set()
        if thread := self._thread:
            thread.join()
        return self._unfinished

    def _run(self, fill: FillVectors) -> None:
        while not self._working.acquire(timeout=_QUIET_SECONDS):
            if self._stop.is_set():
                return
        try:
            with as_system():
                fill(self._stop.is_set)
        except CortexError as error:
            logger.debug("vectors are left to the next process: %s", type(error).__name__)
        except Exception:
            logger.exception("vectors were not computed")
        finally:
            self._working.release()
        if not self._stop.is_set():
            self._unfinished = None


class _Pausing(Protocol):
    def before_fork(self) -> None: ...

    def after_fork_in_parent(self) -> None: ...


_open: WeakSet[_Pausing] = WeakSet()


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
