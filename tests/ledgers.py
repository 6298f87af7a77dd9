"""A ledger in memory, in place of the store's."""

from __future__ import annotations

import threading

from cortex_py.core.llm.values import Usage

__all__ = ["MemoryLedger"]


class MemoryLedger:
    """Counts usage as the store does, for as long as the test runs."""

    def __init__(self) -> None:
        self._lock = threading.Lock()
        self._used: dict[tuple[str, str], Usage] = {}

    def spent(self, day: str) -> int:
        with self._lock:
            return sum(usage.tokens for (when, _), usage in self._used.items() if when == day)

    def record(self, day: str, model: str, calls: int, input_tokens: int, output_tokens: int, failed: int) -> None:
        with self._lock:
            before = self._used.get((day, model), Usage())
            self._used[day, model] = before + Usage(calls, input_tokens, output_tokens, failed)

    def usage(self, day: str, model: str) -> Usage:
        """What was recorded for that day and model."""
        with self._lock:
            return self._used.get((day, model), Usage())
