"""The time limit and the cancellation of one call.

A server sets a limit around each call. Store statements and embedding batches check the time between two steps and stop
by raising; an open transaction then rolls back. Cancellation is checked where work reports progress, after a complete
unit.
"""

from __future__ import annotations

import math
import time
from collections.abc import Iterator
from contextlib import contextmanager
from contextvars import ContextVar

from .errors import DeadlineExceeded

__all__ = ["Cancelled", "Limit", "apply_limit", "check", "current_limit", "is_over"]


class Cancelled(Exception):
    """The caller no longer wants the result."""


class Limit:
    """The limit of one call. Threads that work for it share the object."""

    def __init__(self, seconds: float = math.inf) -> None:
        self.seconds = seconds
        self._end = time.monotonic() + seconds
        self._is_cancelled = False

    @classmethod
    def within(cls, outer: Limit | None) -> Limit:
        """A limit for a part of the work: it ends with the outer one, or when it is closed."""
        made = cls()
        if outer is not None:
            made.seconds, made._end = outer.seconds, outer._end
        return made

    def close(self) -> None:
        """Nobody waits for the work any more: it stops at its next step."""
        self._end = -math.inf

    def cancel(self) -> None:
        self._is_cancelled = True

    @property
    def is_over(self) -> bool:
        return time.monotonic() > self._end

    @property
    def left(self) -> float:
        """The seconds until the time is over."""
        return max(0.0, self._end - time.monotonic())

    def check(self) -> None:
        """Raise `Cancelled` or `DeadlineExceeded` if the work should stop; call it between two units of work."""
        if self._is_cancelled:
            raise Cancelled
        self.check_time()

    def check_time(self) -> None:
        """Raise `DeadlineExceeded` if the time is over."""
        if self.is_over:
            raise DeadlineExceeded(
                f"The call took longer than {self.seconds:,g} seconds and was stopped.",
                remedy="Ask for less at a time, or raise call_seconds.",
            )


_current: ContextVar[Limit | None] = ContextVar("cortex_limit", default=None)


def current_limit() -> Limit | None:
    """The limit of the current call; None outside a call."""
    return _current.get()


@contextmanager
def apply_limit(limit: Limit) -> Iterator[Limit]:
    """Set a limit for the work inside, and for threads that inherit its context."""
    token = _current.set(limit)
    try:
        yield limit
    finally:
        _current.reset(token)


def is_over() -> bool:
    """Whether the current call's time is over."""
    limit = _current.get()
    return limit is not None and limit.is_over


def check() -> None:
    """Raise if the current call's time is over. Call it between two steps of long work."""
    limit = _current.get()
    if limit is not None:
        limit.check_time()
