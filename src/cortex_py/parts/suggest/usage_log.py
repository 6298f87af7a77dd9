"""The log of references: which memories were used, how strongly, and which were used together.

A use is noted at once and stored a little later, so that no read waits for a write. A strength is one number and the
moment it was true at; it fades when it is read. Adding a use costs the same however many there were, and the result is
the sum over all of them, in whatever order they came.
"""

from __future__ import annotations

import logging
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from itertools import combinations
from math import exp2
from typing import Literal

from ...core.clock import Clock, to_micros
from ...core.errors import StorageError, StoreReadOnly
from ...core.jobs import ForkLock
from ...core.security.callers import as_system
from ...core.store.database import Session
from ...core.store.store import Store
from ...core.store.tables.suggestions import ReferenceRow

__all__ = [
    "BURST", "BURST_EVENTS", "HALF_LIFE", "WEIGHTS", "EventKind", "Habit", "ReferenceLog", "Strength", "fade", "habits",
]  # fmt: skip

logger = logging.getLogger(__name__)

EventKind = Literal["load", "accept", "recall", "together", "select"]

HALF_LIFE = 30 * 86_400_000_000
# A choice by hand says most; coming up in a search, or being one of several, says least.
WEIGHTS: Mapping[str, float] = {"select": 2.0, "accept": 1.5, "load": 1.0, "recall": 0.4, "together": 0.2}


# The longest duration of a burst of work, and the most events in it.
BURST = 2 * 3_600_000_000
BURST_EVENTS = 20
# A burst weighs half as much as one that came so many bursts later: work moves on.
_STALE = 6.0


@dataclass(frozen=True, slots=True)
class Habit:
    """In how many of the last bursts on a branch a memory was used, and how likely that makes the next use."""

    rate: float
    times: int
    bursts: int


@dataclass(frozen=True, slots=True)
class Strength:
    """The sum of all uses at the moment `at`, and the number of bursts with a use."""

    value: float = 0.0
    at: int = 0
    times: int = 0

    def plus(self, weight: float, now: int, *, again: bool = False) -> Strength:
        """The strength with one more use; one older than the newest counts as faded as it is by then.

        `again`: a further use in the same burst, which adds strength but is not counted in `times`.
        """
        times = self.times + (not again)
        if now < self.at:
            return Strength(self.value + fade(weight, now, self.at), self.at, times)
        return Strength(fade(self.value, self.at, now) + weight, now, times)


def fade(strength: float, since: int, now: int) -> float:
    """What is left of a strength: half after every half-life. A clock that went back makes nothing stronger."""
    return strength * exp2(-max(0, now - since) / HALF_LIFE)


def habits(events: Iterable[tuple[str, int]]) -> dict[str, Habit]:
    """What a branch uses again and again; `events` are (memory, moment), the newest first.

    A rate is the share of the bursts in which a memory was used; later ones count for more. One empty burst is added,
    so that a branch that has just begun has no habits.
    """
    rates: dict[str, float] = {}
    times: dict[str, int] = {}
    count, weight, total = 0, 1.0, 1.0
    newest: int | None = None
    seen: set[str] = set()
    for memory_id, at in events:
        if newest is None or newest - at > BURST:
            weight = exp2(-count / _STALE)
            count, total, newest = count + 1, total + weight, at
            seen = set()
        if memory_id not in seen:
            seen.add(memory_id)
            rates[memory_id] = rates.get(memory_id, 0.0) + weight
            times[memory_id] = times.get(memory_id, 0) + 1
    return {one: Habit(rate / total, times[one], count) for one, rate in rates.items()}


# This many events are kept in memory before they are written. If writing fails, the newest of them are kept.
_WAITING, _LONGEST_WAIT = 20, 200
# This many events of a project stay listed; their strengths are stored separately.
_KEPT = 100_000
_LONGEST_TASK = 200
# A load counts as found by a search that was at most this long ago.
_SEARCHED = 30 * 60 * 1_000_000
_SEARCHES = 500

# Strength, times, and the moment of that strength.
Sum = tuple[float, int, int]
Pair = tuple[str, str]


class ReferenceLog:
    """The references of one project."""

    def __init__(self, store: Store, clock: Clock, project_id: str) -> None:
        self._store = store
        self._clock = clock
        self._project = project_id
        self._lock = ForkLock()
        self._waiting: list[ReferenceRow] = []
        self._found: dict[str, int] = {}

    def searched(self, ids: Iterable[str]) -> None:
        """Note the results of a search: one that is loaded soon after was found by it."""
        now = to_micros(self._clock.now())
        with self._lock:
            self._found.update(dict.fromkeys(ids, now))
            for old in list(self._found)[: max(0, len(self._found) - _SEARCHES)]:
                del self._found[old]

    def loaded(self, memory_id: str, branch_id: str | None, task: str = "") -> None:
        """Note that a record was loaded, by itself or from the results of a search."""
        now = to_micros(self._clock.now())
        with self._lock:
            found = now - self._found.get(memory_id, -_SEARCHED - 1) <= _SEARCHED
        self.note([memory_id], "recall" if found else "load", branch_id, task)

    def note(self, ids: Sequence[str], kind: EventKind, branch_id: str | None, task: str = "") -> None:
        now = to_micros(self._clock.now())
        with self._lock:
            self._waiting += [ReferenceRow(one, kind, branch_id, task[:_LONGEST_TASK], now) for one in ids]
            full = len(self._waiting) >= _WAITING
        if full:
            try:
                self.write()
            except StorageError as error:
                # A read must not fail because the store cannot be written now; the events wait.
                logger.debug("references were not stored yet: %s", type(error).__name__)

    def write(self) -> None:
        """Store the noted events, and add them to the strengths."""
        with self._lock:
            events, self._waiting = self._waiting, []
        if not events:
            return
        try:
            # The events of one caller may be written during another's call.
            with as_system(), self._store.database.write(self._project) as session:
                self._keep(session, events)
        except StoreReadOnly:
            logger.debug("the store is read-only: references are not stored")
        except StorageError:
            with self._lock:
                self._waiting = [*events, *self._waiting][-_LONGEST_WAIT:]
            raise

    def accepted(
        self, session: Session, ids: Sequence[str], branch_id: str | None, task: str, now: int, *, by_hand: bool
    ) -> None:
        """Store that suggestions were accepted, in the transaction that accepts them."""
        kind: EventKind = "select" if by_hand else "accept"
        self._keep(session, [ReferenceRow(one, kind, branch_id, task[:_LONGEST_TASK], now) for one in ids])

    def _keep(self, session: Session, events: Sequence[ReferenceRow]) -> None:
        table = self._store.suggestions
        # Memories that were purged meanwhile leave nothing behind.
        there = self._store.memories.spaces_of(session, [event.memory_id for event in events])
        events = [event for event in events if event.memory_id in there]
        uses = table.strengths(session, self._project, [event.memory_id for event in events])
        pairs: dict[Pair, Sum] = {}
        for event in events:
            recent = table.uses(session, self._project, event.branch_id, BURST_EVENTS, event.at - BURST)
            beside: dict[str, str] = {
                one.memory_id: one.kind
                for one in recent
                # Outside of all branches, events of one task belong together.
                if one.branch_id == event.branch_id and (event.branch_id is not None or one.task == event.task)
            }
            self._pair_up(session, event, beside, pairs)
            done = [event, *_joined(event, beside)]
            missing = [one.memory_id for one in done if one.memory_id not in uses]
            uses |= table.strengths(session, self._project, missing)
            for one in done:
                value, times, at = uses.get(one.memory_id, (0.0, 0, 0))
                again = one.kind == "together" or one.memory_id in beside
                grown = Strength(value, at, times).plus(WEIGHTS[one.kind], one.at, again=again)
                uses[one.memory_id] = (grown.value, grown.times, grown.at)
            table.add(session, self._project, done, _KEPT)
        table.put_strengths(session, self._project, uses)
        table.put_pairs(session, self._project, pairs)

    def _pair_up(
        self, session: Session, event: ReferenceRow, beside: Mapping[str, str], pairs: dict[Pair, Sum]
    ) -> None:
        """Add an event to the strength of its pairs with the memories beside it; `pairs` collects the changes."""
        others = sorted(beside.keys() - {event.memory_id})
        if not others or event.memory_id in beside:
            # A memory that is loaded twice in one burst is paired with the others once.
            return
        # A burst divides its strength among its pairs: one more memory takes a little from the earlier pairs.
        share, before = 1 / len(others), 1 / (len(others) - 1) if len(others) > 1 else 0.0
        weight, weights = WEIGHTS[event.kind], {other: WEIGHTS[beside[other]] for other in others}
        added = {_pair(event.memory_id, other): (share * min(weight, weights[other]), 1) for other in others}
        added |= {
            pair: ((share - before) * min(weights[pair[0]], weights[pair[1]]), 0) for pair in combinations(others, 2)
        }
        pairs |= self._store.suggestions.pairs(session, self._project, added.keys() - pairs.keys())
        for pair, (more, once) in added.items():
            value, times, at = pairs.get(pair, (0.0, 0, event.at))
            pairs[pair] = (max(0.0, fade(value, at, event.at) + more), times + once, event.at)


def _joined(event: ReferenceRow, beside: Mapping[str, str]) -> list[ReferenceRow]:
    """The events for memories used together on one branch: for this memory and, if it is the second, for the first."""
    others = sorted(beside.keys() - {event.memory_id})
    if event.branch_id is None or event.memory_id in beside or not others:
        return []
    both = [event.memory_id, *(others if len(others) == 1 else ())]
    return [ReferenceRow(one, "together", event.branch_id, event.task, event.at) for one in both]


def _pair(one: str, other: str) -> Pair:
    return (one, other) if one < other else (other, one)
