"""A token bucket for each caller: it fills steadily, and each request takes one token. Pure."""

from __future__ import annotations

import math
import threading
import time
from collections import OrderedDict
from collections.abc import Callable

from ..errors import RateLimited

__all__ = ["TokenBuckets"]

# The callers remembered; the least recent are dropped first, whose buckets are full again by then.
_MOST_CALLERS = 10_000


class TokenBuckets:
    """Allows `per_minute` requests on average for each caller, and as many at once after a pause; 0: no limit."""

    def __init__(self, per_minute: int, now: Callable[[], float] = time.monotonic) -> None:
        self._most = float(per_minute)
        self._rate = per_minute / 60.0
        self._now = now
        self._buckets: OrderedDict[str, tuple[float, float]] = OrderedDict()
        self._lock = threading.Lock()

    def take(self, caller: str) -> None:
        """Count one request, or raise `RateLimited` with the seconds to wait; a refused one is not counted."""
        if self._most <= 0:
            return
        with self._lock:
            now = self._now()
            left, since = self._buckets.get(caller, (self._most, now))
            left = min(self._most, left + (now - since) * self._rate)
            refused = left < 1.0
            self._buckets[caller] = (left if refused else left - 1.0, now)
            self._buckets.move_to_end(caller)
            while len(self._buckets) > _MOST_CALLERS:
                self._buckets.popitem(last=False)
        if refused:
            wait = (1.0 - left) / self._rate
            raise RateLimited(
                f"More than {self._most:.0f} requests a minute.",
                remedy=f"Wait {math.ceil(wait)} s.",
                retry_after=wait,
            )
