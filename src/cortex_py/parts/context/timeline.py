"""What happened in a project, on one axis: captures, lines of work, git commits and merges, and snapshots.

The axis is cut into days. `days` says how much each holds, `window` reads a part of one; so a reader can show any part
of a long history, and no call reads more than it returns and the few events of that day that are not memories.
"""

from __future__ import annotations

from bisect import bisect_left, bisect_right
from collections import Counter
from collections.abc import Collection, Sequence
from dataclasses import dataclass, replace
from datetime import UTC, date, datetime, time, timedelta
from functools import lru_cache
from typing import TYPE_CHECKING, Literal, get_args

from ...core.errors import InvalidInput
from ...core.records import Memory
from ...core.security.secrets.secrets import redact
from ...worktree.git.history import Commit, read_log
from ...worktree.git.repository import Repository

if TYPE_CHECKING:
    from ...session import ProjectSession

__all__ = ["EventKind", "Timeline", "TimelineEvent"]

EventKind = Literal["memory", "line", "commit", "merge", "snapshot"]
EVENT_KINDS: tuple[EventKind, ...] = get_args(EventKind)

_MOST_DAYS = 20_000
_MOST_AT_ONCE = 200
_MOST_OFFSET = 10_000_000
_FARTHEST_ZONE = 24 * 60  # minutes
_LONGEST_TITLE = 200


@dataclass(frozen=True, slots=True)
class TimelineEvent:
    """One event. `id` names what it is about: a memory, a line of work, a commit, a snapshot."""

    kind: EventKind
    at: datetime
    id: str
    title: str
    # The namespace of a memory, the git branch of a line of work, the author of a commit, the kind of a snapshot.
    detail: str = ""
    status: str = ""


@dataclass(frozen=True, slots=True)
class TimelineDay:
    day: date
    counts: dict[EventKind, int]

    @property
    def total(self) -> int:
        return sum(self.counts.values())


class Timeline:
    """The events of one project; `others` are events that its services do not know, such as snapshots."""

    def __init__(self, project: ProjectSession, others: Sequence[TimelineEvent] = ()) -> None:
        self._project = project
        self._others = others

    def days(self, *, zone_minutes: int = 0, kinds: Collection[str] = ()) -> list[TimelineDay]:
        """The days on which something happened, newest first. Days begin at midnight of UTC plus `zone_minutes`."""
        wanted, zone = _kinds(kinds), _zone(zone_minutes)
        counts: dict[date, Counter[EventKind]] = {}
        for event in self._events(wanted):
            counts.setdefault((event.at + zone).date(), Counter())[event.kind] += 1
        if "memory" in wanted:
            for day, count in self._project.memories.days(shift_minutes=zone_minutes):
                counts.setdefault(day, Counter())["memory"] = count
        newest = sorted(counts, reverse=True)[:_MOST_DAYS]
        return [
            TimelineDay(day, {kind: counts[day][kind] for kind in EVENT_KINDS if counts[day][kind]}) for day in newest
        ]

    def window(
        self, day: date, *, zone_minutes: int = 0, kinds: Collection[str] = (), limit: int = 50, offset: int = 0
    ) -> list[TimelineEvent]:
        """A part of a day, newest first: `limit` events (200 at most) after the first `offset` ones."""
        if not 1 <= limit <= _MOST_AT_ONCE:
            raise InvalidInput(
                f"The limit {limit} is out of range.", remedy=f"Give 1 to {_MOST_AT_ONCE}.", field="limit"
            )
        if not 0 <= offset <= _MOST_OFFSET:
            raise InvalidInput(f"The offset {offset} is out of range.", field="offset")
        wanted, zone = _kinds(kinds), _zone(zone_minutes)
        try:
            since = datetime.combine(day, time.min, UTC) - zone
            before = since + timedelta(days=1)
        except OverflowError:
            raise InvalidInput("The day is outside the calendar.", field="day") from None
        others = sorted(
            (one for one in self._events(wanted) if since <= one.at < before),
            key=lambda one: (one.at, one.id),
            reverse=True,
        )
        if "memory" in wanted:
            others = self._merged(others, since, before, limit, offset)
        else:
            others = others[offset : offset + limit]
        return [_screened(one) for one in others]

    def _merged(
        self, others: Sequence[TimelineEvent], since: datetime, before: datetime, limit: int, offset: int
    ) -> list[TimelineEvent]:
        """The wanted part of memories and other events together.

        At most `len(others)` of the events before it are no memories, so it begins at most that much earlier among the
        memories alone.
        """
        memories = self._project.memories
        first = max(0, offset - len(others))
        # The moments suffice to find where the part begins; only its own memories are read.
        moments = memories.moments_between(since, before, limit=offset - first + limit, offset=first)
        older_first = [one.at for one in reversed(others)]
        # At the same moment, a memory comes first.
        places = [first + n + len(others) - bisect_right(older_first, at) for n, at in enumerate(moments)]
        begin, end = bisect_left(places, offset), bisect_left(places, offset + limit)
        read = memories.captured_between(since, before, limit=max(1, end - begin), offset=first + begin)[: end - begin]
        found = dict(zip(places[begin:end], map(_memory_event, read), strict=False))
        rising = moments[::-1]
        for n, event in enumerate(others):
            place = n + first + len(rising) - bisect_left(rising, event.at)
            if offset <= place < offset + limit:
                found.setdefault(place, event)
        return [found[place] for place in sorted(found)]

    def _events(self, kinds: Collection[EventKind]) -> list[TimelineEvent]:
        """All events that are no memories, in no order."""
        found = [one for one in self._others if one.kind in kinds]
        if "line" in kinds:
            project = self._project
            with project.shared.store.database.read() as session:
                lines = project.shared.store.branches.all(session, project.id)
            found += [
                TimelineEvent("line", one.created_at, one.id, one.topic, one.git_branch or "", one.status)
                for one in lines
            ]
        if "commit" in kinds or "merge" in kinds:
            found += [one for one in _log(self._project.repository) if one.kind in kinds]
        return found


def _log(repository: Repository | None) -> list[TimelineEvent]:
    """The commits of a repository; read again only if HEAD has moved."""
    head = repository.head().commit if repository else None
    return [] if repository is None or head is None else _log_at(repository, head)


@lru_cache(maxsize=8)
def _log_at(repository: Repository, _head: str) -> list[TimelineEvent]:
    return [_commit_event(one) for one in read_log(repository)]


def _commit_event(commit: Commit) -> TimelineEvent:
    kind: EventKind = "merge" if len(commit.parents) > 1 else "commit"
    return TimelineEvent(kind, commit.time, commit.id, commit.subject, commit.author)


def _memory_event(memory: Memory) -> TimelineEvent:
    title = " ".join(memory.content[:_LONGEST_TITLE].split())
    return TimelineEvent("memory", memory.created_at, memory.id, title, memory.namespace, memory.status)


def _screened(event: TimelineEvent) -> TimelineEvent:
    """Texts that were not captured have not been screened for secrets yet."""
    if event.kind == "memory":
        return event
    return replace(
        event, title=redact(event.title[:_LONGEST_TITLE]).text, detail=redact(event.detail[:_LONGEST_TITLE]).text
    )


def _kinds(kinds: Collection[str]) -> frozenset[EventKind]:
    unknown = [one for one in kinds if one not in EVENT_KINDS]
    if unknown:
        raise InvalidInput(
            f"Unknown kind {unknown[0][:40]!r}.", remedy=f"Choose of {', '.join(EVENT_KINDS)}.", field="kinds"
        )
    return frozenset(one for one in EVENT_KINDS if one in kinds) or frozenset(EVENT_KINDS)


def _zone(minutes: int) -> timedelta:
    if not -_FARTHEST_ZONE <= minutes <= _FARTHEST_ZONE:
        raise InvalidInput(f"The zone {minutes} is out of range.", remedy="Give minutes, such as 60.", field="zone")
    return timedelta(minutes=minutes)
