"""Time: the clock, which tests replace, the time limit of a call, and ids, which begin with the time.

The store keeps UTC microseconds since 1970. A server sets a limit around each call. Store statements and embedding
batches check the time between two steps and stop by raising; an open transaction then rolls back. Cancellation is
checked where work reports progress, after a complete unit. The first 8 digits of an id are a fast clock; those of
earlier versions begin with a slower one, so several can share 8 digits.
"""

from __future__ import annotations

import math
import re
import secrets
import time
from collections.abc import Iterator
from contextlib import contextmanager
from contextvars import ContextVar
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from typing import Protocol

from .errors import DeadlineExceeded, InvalidId
from .jobs import ForkLock

__all__ = [
    "ID_LENGTH", "MIN_PREFIX", "SCHEME", "Cancelled", "Clock", "IdMaker", "Limit", "MemoryRef", "SystemClock",
    "apply_limit", "check_deadline", "context_id", "current_limit", "deadline_is_over", "from_micros", "full_address",
    "in_utc", "iso", "memory_uri", "memory_urn", "parse_ref", "to_micros",
]  # fmt: skip


_EPOCH = datetime(1970, 1, 1, tzinfo=UTC)
_MICROSECOND = timedelta(microseconds=1)


class Clock(Protocol):
    def now(self) -> datetime:
        """The current time in UTC."""
        ...


class SystemClock:
    def now(self) -> datetime:
        return datetime.now(UTC)


def in_utc(moment: datetime) -> datetime:
    """The same moment in UTC; a naive one is taken as UTC."""
    return moment.astimezone(UTC) if moment.tzinfo else moment.replace(tzinfo=UTC)


def to_micros(moment: datetime) -> int:
    """Microseconds since 1970; a naive moment is taken as UTC."""
    return (in_utc(moment) - _EPOCH) // _MICROSECOND


def from_micros(micros: int) -> datetime:
    if micros < 0:
        return _EPOCH + timedelta(microseconds=micros)
    seconds, rest = divmod(micros, 1_000_000)
    # Three times as fast as adding a timedelta to the epoch.
    return datetime.fromtimestamp(seconds, UTC).replace(microsecond=rest)


def iso(moment: datetime) -> str:
    """The UTC form that all interfaces show: 2026-01-02T12:34:56Z."""
    return moment.astimezone(UTC).strftime("%Y-%m-%dT%H:%M:%SZ")


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


def deadline_is_over() -> bool:
    """Whether the current call's time is over."""
    limit = _current.get()
    return limit is not None and limit.is_over


def check_deadline() -> None:
    """Raise if the current call's time is over. Call it between two steps of long work."""
    limit = _current.get()
    if limit is not None:
        limit.check_time()


SCHEME = "subcog://"
ID_LENGTH = 40
MIN_PREFIX = 8

_SHORT_FORMS = 1 << 32
_HEX = re.compile(r"[0-9a-f]+\Z")
_URN = re.compile(r"subcog:(?://)?(?P<scope>[^/]+)/(?:(?P<namespace>[^/]+)/)?(?P<id>[^/]+)\Z")


class IdMaker:
    """Makes ids whose first 8 digits differ, even if the clock stands still or steps back."""

    def __init__(self, clock: Clock) -> None:
        self._clock = clock
        self._last = 0
        self._lock = ForkLock()

    def new(self) -> str:
        with self._lock:
            self._last = max(to_micros(self._clock.now()), self._last + 1)
            return f"{self._last % _SHORT_FORMS:08x}{secrets.token_hex(16)}"


@dataclass(frozen=True, slots=True)
class MemoryRef:
    """A whole id or a prefix of one, as a caller gave it."""

    prefix: str

    @property
    def is_whole(self) -> bool:
        return len(self.prefix) == ID_LENGTH


def parse_ref(text: str) -> MemoryRef:
    """Read an id, a prefix of at least 8 digits, a `context_…` id, a URN or a URI."""
    raw = text.strip()
    urn = _URN.match(raw)
    digits = (urn["id"] if urn else raw).removeprefix("context_").rstrip(".…").lower()
    if not _HEX.match(digits) or len(digits) > ID_LENGTH:
        raise InvalidId(
            f"{text[:80]!r} is not a memory id.",
            remedy="Give the 40 hexadecimal digits, a prefix of at least 8, or a subcog:// address.",
            field="id",
        )
    if len(digits) < MIN_PREFIX:
        raise InvalidId(
            f"The id prefix {digits!r} is too short.",
            remedy=f"Give at least {MIN_PREFIX} digits.",
            field="id",
        )
    return MemoryRef(digits)


def context_id(memory_id: str) -> str:
    return f"context_{memory_id}"


def full_address(uri: str) -> str:
    """The address as it is listed; `subcog:topics` is short for `subcog://topics`."""
    return SCHEME + uri.removeprefix("subcog:") if uri.startswith("subcog:") and not uri.startswith(SCHEME) else uri


def memory_uri(memory_id: str) -> str:
    return f"subcog://memory/{memory_id}"


def memory_urn(domain: str, namespace: str, memory_id: str) -> str:
    return f"subcog://{domain}/{namespace}/{memory_id}"
