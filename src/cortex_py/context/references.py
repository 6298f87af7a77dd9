"""References: how much a use of a memory weighs, how it fades, and which memories are used together.

A strength is kept as one number and the moment it was true at, and fades only when it is read. Adding to it costs the
same however many uses are behind it, and the result is the sum over all of them, in whatever order they came.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from itertools import combinations
from math import exp2
from typing import Literal

__all__ = [
    "HALF_LIFE",
    "WEIGHTS",
    "WINDOW",
    "Event",
    "EventKind",
    "Habit",
    "Strength",
    "Window",
    "bursts",
    "coreferences",
    "faded",
    "habits",
    "pairs",
    "uses",
]

EventKind = Literal["load", "accept", "recall", "together", "select"]

HALF_LIFE = 30 * 86_400_000_000
# What a person did by hand says most; what merely came up in a search, or was one of several, says least.
WEIGHTS: Mapping[EventKind, float] = {"select": 2.0, "accept": 1.5, "load": 1.0, "recall": 0.4, "together": 0.2}
# So many memories at once are an export or a scan: their pairs would cost much and say nothing.
_LARGEST = 200


@dataclass(frozen=True, slots=True)
class Event:
    """A memory was used in a line of work; `at` is in microseconds since 1970."""

    memory_id: str
    kind: EventKind
    branch_id: str | None
    task: str
    at: int


@dataclass(frozen=True, slots=True)
class Window:
    """How long, and how many events, a burst of work goes on."""

    span: int = 2 * 3_600_000_000
    events: int = 20


WINDOW = Window()
# A burst says half as much of the next one as one that came so many bursts later: what is worked on moves on.
_STALE = 6.0


@dataclass(frozen=True, slots=True)
class Habit:
    """In how many of the last bursts of a line of work a memory was used, and how likely that makes the next use."""

    rate: float
    times: int
    bursts: int


@dataclass(frozen=True, slots=True)
class Strength:
    """What uses add up to at the moment `at`, and in how many bursts there were any."""

    value: float = 0.0
    at: int = 0
    times: int = 0

    def at_time(self, now: int) -> float:
        """The strength that is left; a clock that went back makes nothing stronger."""
        return faded(self.value, self.at, now)

    def plus(self, weight: float, now: int, *, again: bool = False) -> Strength:
        """The strength with one more use. A use that is older than the newest arrives as faded as it is by then.

        One `again` in the same burst makes it stronger, and is no further time.
        """
        times = self.times + (not again)
        if now < self.at:
            return Strength(self.value + faded(weight, now, self.at), self.at, times)
        return Strength(faded(self.value, self.at, now) + weight, now, times)


def faded(strength: float, since: int, now: int) -> float:
    """What is left of a strength: half after every half-life."""
    return strength * exp2(-max(0, now - since) / HALF_LIFE)


def uses(events: Iterable[Event]) -> dict[str, Strength]:
    """How strongly each memory was used."""
    found: dict[str, Strength] = {}
    for burst in bursts(events):
        seen: set[str] = set()
        for event in burst:
            before = found.get(event.memory_id, Strength())
            found[event.memory_id] = before.plus(WEIGHTS[event.kind], event.at, again=event.memory_id in seen)
            seen.add(event.memory_id)
    return found


def bursts(events: Iterable[Event], window: Window = WINDOW) -> list[list[Event]]:
    """Events of one line of work that belong together, the earliest bursts first.

    A burst is over when its first event is longer ago than the window, or when it is full; but events of one moment
    are never parted, because they are one act. Events without a branch belong together when their task is the same.
    """
    lines: defaultdict[tuple[str, str], list[Event]] = defaultdict(list)
    for event in events:
        lines[("", event.task) if event.branch_id is None else (event.branch_id, "")].append(event)
    found: list[list[Event]] = []
    for line in lines.values():
        line.sort(key=_order)
        burst: list[Event] = []
        for event in line:
            full = len(burst) >= window.events and event.at > burst[-1].at
            if burst and (full or event.at - burst[0].at > window.span):
                found.append(burst)
                burst = []
            burst.append(event)
        found.append(burst)
    return sorted(found, key=lambda burst: _order(burst[0]))


def pairs(burst: Iterable[Event]) -> dict[tuple[str, str], float]:
    """What one burst adds to each pair of its memories, the smaller id first.

    A pair is as strong as the weaker of its uses, and a memory divides its strength among its companions: a hundred
    loaded at once say little about any two of them.
    """
    weights: dict[str, float] = {}
    for event in burst:
        weights[event.memory_id] = max(weights.get(event.memory_id, 0.0), WEIGHTS[event.kind])
    if not 2 <= len(weights) <= _LARGEST:
        return {}
    shared = len(weights) - 1
    return {(a, b): min(weights[a], weights[b]) / shared for a, b in combinations(sorted(weights), 2)}


def coreferences(events: Iterable[Event], window: Window = WINDOW) -> dict[tuple[str, str], Strength]:
    """How strongly memories were used together, the smaller id first; `times` counts the bursts they shared."""
    found: dict[tuple[str, str], Strength] = {}
    for burst in bursts(events, window):
        for pair, weight in pairs(burst).items():
            found[pair] = found.get(pair, Strength()).plus(weight, burst[-1].at)
    return found


def habits(events: Iterable[tuple[str, int]], span: int = WINDOW.span) -> dict[str, Habit]:
    """What one line of work uses again and again; `events` are (memory, moment), the newest first.

    A rate is the share of the bursts in which a memory was used, the later ones counting for more. One burst more, in
    which nothing was used, is counted too: a line of work that has just begun has no habits.
    """
    rates: dict[str, float] = {}
    times: dict[str, int] = {}
    count, weight, total = 0, 1.0, 1.0
    newest: int | None = None
    seen: set[str] = set()
    for memory_id, at in events:
        if newest is None or newest - at > span:
            weight = exp2(-count / _STALE)
            count, total, newest = count + 1, total + weight, at
            seen = set()
        if memory_id not in seen:
            seen.add(memory_id)
            rates[memory_id] = rates.get(memory_id, 0.0) + weight
            times[memory_id] = times.get(memory_id, 0) + 1
    return {one: Habit(rate / total, times[one], count) for one, rate in rates.items()}


def _order(event: Event) -> tuple[int, str, str, str, str]:
    return event.at, event.memory_id, event.kind, event.branch_id or "", event.task
