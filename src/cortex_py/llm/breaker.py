"""A breaker: after several failures in a row nobody asks for a while, then one may try."""

from __future__ import annotations

import threading
from collections.abc import Iterator
from contextlib import contextmanager
from datetime import datetime, timedelta

from ..clock import Clock
from ..errors import LLMBudgetSpent, LLMError

__all__ = ["Breaker"]


class Breaker:
    """Counts failures in a row. Safe to share between threads."""

    def __init__(self, clock: Clock, *, failures: int = 5, seconds: float = 60.0) -> None:
        self._clock = clock
        self._limit = failures
        self._pause = timedelta(seconds=seconds)
        self._lock = threading.Lock()
        self._failed = 0
        self._opened: datetime | None = None
        self._trying = False

    @property
    def is_open(self) -> bool:
        """Whether a call would be refused now."""
        with self._lock:
            return self._opened is not None and (self._trying or self._seconds_left() > 0)

    @contextmanager
    def passage(self) -> Iterator[None]:
        """Around a call: refused while open. What counts is whether it raised LLMError, spent budgets aside."""
        trial = self._enter()
        try:
            yield
        except LLMBudgetSpent:
            raise
        except LLMError:
            self._count_failure()
            raise
        else:
            with self._lock:
                self._failed, self._opened = 0, None
        finally:
            if trial:
                with self._lock:
                    self._trying = False

    def _enter(self) -> bool:
        """Whether this call is the trial."""
        with self._lock:
            if self._opened is None:
                return False
            left = self._seconds_left()
            if left > 0 or self._trying:
                raise LLMError(
                    f"The language model failed {self._failed} times in a row and is left alone for a while.",
                    remedy=f"Try again in {max(1, round(left))} seconds.",
                )
            self._trying = True
            return True

    def _count_failure(self) -> None:
        with self._lock:
            self._failed += 1
            if self._failed >= self._limit:
                self._opened = self._clock.now()

    def _seconds_left(self) -> float:
        if self._opened is None:
            return 0.0
        since = self._clock.now() - self._opened
        # A clock that was set back must not prolong it.
        return (self._pause - since).total_seconds() if since >= timedelta(0) else 0.0
