"""Which snapshots are kept as time goes by: the newest of each hour, day and week, as many as asked for."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from datetime import datetime

from ..errors import InvalidInput

__all__ = ["Kept", "Retention", "kept"]


@dataclass(frozen=True, slots=True)
class Retention:
    """How many hours, days and weeks back one snapshot each is kept."""

    hourly: int = 24
    daily: int = 7
    weekly: int = 8

    def __post_init__(self) -> None:
        if min(self.hourly, self.daily, self.weekly) < 0:
            raise InvalidInput("A number of snapshots to keep is below 0.", field="keep")


@dataclass(frozen=True, slots=True)
class Kept:
    """A snapshot as far as retention looks at it. `good`: it was verified and can be restored."""

    id: str
    created_at: datetime
    good: bool


def kept(snapshots: Sequence[Kept], retention: Retention) -> frozenset[str]:
    """Ids of those that stay. Of the good ones the last always does, whatever the numbers say."""
    good = sorted((one for one in snapshots if one.good), key=lambda one: (one.created_at, one.id), reverse=True)
    staying = {one.id for one in good[:1]}
    periods: list[tuple[int, Callable[[datetime], object]]] = [
        (retention.hourly, lambda moment: (moment.date(), moment.hour)),
        (retention.daily, lambda moment: moment.date()),
        (retention.weekly, lambda moment: moment.isocalendar()[:2]),
    ]
    for most, period in periods:
        seen: dict[object, str] = {}
        for one in good:
            seen.setdefault(period(one.created_at), one.id)
        staying.update(list(seen.values())[:most])
    return frozenset(staying)
