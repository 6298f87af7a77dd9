"""What was used, day by day: what the client needs of a ledger, and one that lasts as long as the process."""

from __future__ import annotations

import threading
from typing import Protocol

from .values import Usage

__all__ = ["Ledger", "MemoryLedger"]


class Ledger(Protocol):
    """Counts of requests and tokens by day (UTC, as 2026-01-02) and model. Safe to share between threads."""

    def spent(self, day: str) -> int:
        """Tokens of that day, asked and answered, of all models."""
        ...

    def record(self, day: str, model: str, calls: int, input_tokens: int, output_tokens: int, failed: int) -> None:
        """Add to the counts; `failed` of the calls brought nothing."""
        ...


class MemoryLedger:
    """A ledger for tests, and for those who have no store."""

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
