"""What was referred to, written down in passing: noted at once, stored a little later, so that no read waits for it."""

from __future__ import annotations

import threading
from collections.abc import Iterable, Mapping, Sequence
from contextlib import suppress
from itertools import combinations

from ..clock import Clock, to_micros
from ..errors import StorageError
from ..security.callers import acting_as
from ..store.database import Session
from ..store.store import Store
from ..store.suggestions import ReferenceRow
from .references import WEIGHTS, WINDOW, Event, EventKind, Strength, faded

__all__ = ["ReferenceLog"]

# So many may wait; more are written at once. Where that fails, the newest are kept for another time.
_WAITING, _LONGEST_WAIT = 20, 200
# So many of a project are kept for people to look at; what they add up to is kept besides.
_KEPT = 100_000
_LONGEST_TASK = 200
# A search that is longer ago has nothing to do with a load.
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
        self._lock = threading.Lock()
        self._waiting: list[Event] = []
        self._found: dict[str, int] = {}

    def searched(self, ids: Iterable[str]) -> None:
        """Remember what a search showed: what is loaded then was found by it."""
        now = to_micros(self._clock.now())
        with self._lock:
            self._found.update(dict.fromkeys(ids, now))
            for old in list(self._found)[: max(0, len(self._found) - _SEARCHES)]:
                del self._found[old]

    def loaded(self, memory_id: str, branch_id: str | None, task: str = "") -> None:
        """Note that a record was loaded, by itself or from what a search showed."""
        now = to_micros(self._clock.now())
        with self._lock:
            found = now - self._found.get(memory_id, -_SEARCHED - 1) <= _SEARCHED
        self.note([memory_id], "recall" if found else "load", branch_id, task)

    def note(self, ids: Sequence[str], kind: EventKind, branch_id: str | None, task: str = "") -> None:
        now = to_micros(self._clock.now())
        with self._lock:
            self._waiting += [Event(one, kind, branch_id, task[:_LONGEST_TASK], now) for one in ids]
            full = len(self._waiting) >= _WAITING
        if full:
            # A store that cannot be written now is no reason to fail a read.
            with suppress(StorageError):
                self.write()

    def write(self) -> None:
        """Store what was noted, if anything was, with what it adds to the strengths."""
        with self._lock:
            events, self._waiting = self._waiting, []
        if not events:
            return
        try:
            # What was noted for one caller is written down in the course of another's call.
            with acting_as(None), self._store.database.write() as session:
                self._keep(session, events)
        except StorageError:
            with self._lock:
                self._waiting = [*events, *self._waiting][-_LONGEST_WAIT:]
            raise

    def accepted(
        self, session: Session, ids: Sequence[str], branch_id: str | None, task: str, now: int, *, by_hand: bool
    ) -> None:
        """Store that suggestions were taken, by a person's own hand or not, in the transaction that says so."""
        kind: EventKind = "select" if by_hand else "accept"
        self._keep(session, [Event(one, kind, branch_id, task[:_LONGEST_TASK], now) for one in ids])

    def _keep(self, session: Session, events: Sequence[Event]) -> None:
        table = self._store.suggestions
        # What was purged meanwhile leaves nothing behind.
        there = self._store.memories.placed(session, [event.memory_id for event in events])
        events = [event for event in events if event.memory_id in there]
        uses = table.strengths(session, self._project, [event.memory_id for event in events])
        pairs: dict[Pair, Sum] = {}
        for event in events:
            recent = table.uses(session, self._project, event.branch_id, WINDOW.events, event.at - WINDOW.span)
            beside: dict[str, EventKind] = {
                one.memory_id: one.kind  # type: ignore[misc]  # only kinds of events are stored
                for one in recent
                # Outside of all lines of work, what was done for one task belongs together.
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
            rows = [ReferenceRow(one.memory_id, one.kind, one.branch_id, one.task, one.at) for one in done]
            table.add(session, self._project, rows, _KEPT)
        table.put_strengths(session, self._project, uses)
        table.put_pairs(session, self._project, pairs)

    def _pair_up(self, session: Session, event: Event, beside: Mapping[str, EventKind], pairs: dict[Pair, Sum]) -> None:
        """Add one event to the strength of each pair it makes with those beside it; `pairs` holds all that changed."""
        others = sorted(beside.keys() - {event.memory_id})
        if not others or event.memory_id in beside:
            # What is loaded twice in one burst is together with the others once.
            return
        # A burst divides its strength among its pairs: with one more in it, those that were there get a little less.
        share, before = 1 / len(others), 1 / (len(others) - 1) if len(others) > 1 else 0.0
        weight, weights = WEIGHTS[event.kind], {other: WEIGHTS[beside[other]] for other in others}
        added = {_pair(event.memory_id, other): (share * min(weight, weights[other]), 1) for other in others}
        added |= {
            pair: ((share - before) * min(weights[pair[0]], weights[pair[1]]), 0) for pair in combinations(others, 2)
        }
        pairs |= self._store.suggestions.pairs(session, self._project, added.keys() - pairs.keys())
        for pair, (more, once) in added.items():
            value, times, at = pairs.get(pair, (0.0, 0, event.at))
            pairs[pair] = (max(0.0, faded(value, at, event.at) + more), times + once, event.at)


def _joined(event: Event, beside: Mapping[str, EventKind]) -> list[Event]:
    """That contexts were used together in one line of work, told of each: when the second comes, of the first too."""
    others = sorted(beside.keys() - {event.memory_id})
    if event.branch_id is None or event.memory_id in beside or not others:
        return []
    both = [event.memory_id, *(others if len(others) == 1 else ())]
    return [Event(one, "together", event.branch_id, event.task, event.at) for one in both]


def _pair(one: str, other: str) -> Pair:
    return (one, other) if one < other else (other, one)
