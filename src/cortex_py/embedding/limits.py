"""How often each caller may ask for new vectors: a window that slides, per caller. Pure but for the clock given."""

from __future__ import annotations

import math
import threading
import time
from collections import OrderedDict, deque
from collections.abc import Callable

from ..errors import RateLimited

__all__ = ["SlidingWindow"]

# Callers remembered at one time; those longest silent are forgotten first, which only ever favours them.
_MOST_CALLERS = 10_000


class SlidingWindow:
    """At most `limit` requests in any `seconds`, for each caller; a limit of 0 means none."""

    def __init__(self, limit: int, seconds: float = 60.0, now: Callable[[], float] = time.monotonic) -> None:
        self.limit = limit
        self._seconds = seconds
        self._now = now
        self._asked: OrderedDict[str, deque[float]] = OrderedDict()
        self._lock = threading.Lock()

    def take(self, caller: str) -> None:
        """Count one request, or raise `RateLimited` with the seconds to wait; a refused one is not counted."""
        if self.limit <= 0:
            return
        with self._lock:
            now = self._now()
            asked = self._asked.setdefault(caller, deque())
            self._asked.move_to_end(caller)
            while asked and asked[0] <= now - self._seconds:
                asked.popleft()
            if len(asked) >= self.limit:
                raise _refused(self.limit, self._seconds, asked[0] + self._seconds - now)
            asked.append(now)
            while len(self._asked) > _MOST_CALLERS:
                self._asked.popitem(last=False)


def _refused(limit: int, seconds: float, wait: float) -> RateLimited:
    return RateLimited(
        f"More than {limit} requests in {seconds:.0f} s.",
        remedy=f"Wait {math.ceil(wait)} s, or raise the rate limit.",
        retry_after=max(wait, 0.0),
    )
