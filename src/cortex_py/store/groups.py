"""Small writes of one space that wait for the same turn, committed together by the thread that gets it first."""

from __future__ import annotations

import logging
import threading
from collections import deque
from collections.abc import Callable, Hashable
from typing import Generic, TypeVar

from ..errors import StoreBusy, StoreUnavailable
from ..jobs import renew_in_forks

__all__ = ["CommitGroups"]

logger = logging.getLogger(__name__)

_T = TypeVar("_T")
_R = TypeVar("_R")
# A group commits soon, whatever else arrives.
_MOST = 32
_WAIT_SECONDS = 30.0


Write = Callable[[Callable[[], list[_T]]], list[_R]]


class _Waiting(Generic[_T, _R]):
    def __init__(self, item: _T) -> None:
        self.item = item
        # Set when it is done, or when it is its turn to write.
        self.called = threading.Event()
        self.leads = False
        self.result: list[_R] = []
        self.error: StoreUnavailable | None = None


class CommitGroups(Generic[_T, _R]):
    """Nobody waits for a group to fill: a thread that has its turn takes along what waits at that moment."""

    def __init__(self) -> None:
        self.renew()
        renew_in_forks(self)

    def renew(self) -> None:
        self._lock = threading.Lock()
        # What waits for each key, in order; there is a list while somebody writes.
        self._waiting: dict[Hashable, deque[_Waiting[_T, _R]]] = {}

    def run(self, key: Hashable, item: _T, write: Write[_T, _R]) -> _R:
        """Store an item, perhaps with others of the same key; returns its result.

        `write` begins a transaction, calls what it is given for the items, stores them and returns the result of each.
        If a group fails, each of its items is stored alone, so that nobody sees the error of another. Only if a group
        may have been written is that the error of all.
        """
        mine: _Waiting[_T, _R] = _Waiting(item)
        with self._lock:
            mine.leads = key not in self._waiting
            self._waiting.setdefault(key, deque()).append(mine)
        if not mine.leads:
            self._wait(key, mine)
        if mine.leads:
            try:
                self._commit(key, mine, write)
            finally:
                self._pass_on(key)
        if mine.error is not None:
            raise mine.error
        return mine.result[0] if mine.result else write(lambda: [item])[0]

    def _wait(self, key: Hashable, mine: _Waiting[_T, _R]) -> None:
        if mine.called.wait(_WAIT_SECONDS):
            return
        with self._lock:
            if not mine.leads and mine in self._waiting[key]:
                self._waiting[key].remove(mine)
                raise StoreBusy("Other writes to this space take too long.", remedy="Nothing was written; try again.")
        # Somebody has taken it along.
        mine.called.wait()

    def _pass_on(self, key: Hashable) -> None:
        with self._lock:
            if waiting := self._waiting[key]:
                waiting[0].leads = True
                waiting[0].called.set()
            else:
                del self._waiting[key]

    def _commit(self, key: Hashable, mine: _Waiting[_T, _R], write: Write[_T, _R]) -> None:
        """Store the first items that wait; the one that leads is the first of them."""
        group: list[_Waiting[_T, _R]] = []

        def take() -> list[_T]:
            with self._lock:
                waiting = self._waiting[key]
                group.extend(waiting.popleft() for _ in range(min(_MOST, len(waiting))))
            return [one.item for one in group]

        try:
            for one, result in zip(group, write(take), strict=True):
                one.result.append(result)
        except Exception as error:
            if len(group) <= 1:
                raise  # its own
            logger.debug("a group of %d writes failed: %s", len(group), type(error).__name__)
            if isinstance(error, StoreUnavailable) and error.perhaps_written:
                for one in group:
                    one.error = error
        except BaseException:
            # Ctrl-C, perhaps behind the commit: the others must not store theirs a second time.
            interrupted = "The write was interrupted by that of another caller, perhaps after it was done."
            for one in group:
                one.error = StoreUnavailable(interrupted, remedy="Look whether it is there.", perhaps_written=True)
            raise
        finally:
            if not group:
                # No transaction began: the next one must not wait for this one.
                with self._lock:
                    self._waiting[key].remove(mine)
            for one in group:
                one.called.set()
