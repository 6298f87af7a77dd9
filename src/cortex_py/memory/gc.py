"""Garbage collection: memories of git branches that are gone, expired ones, and old tombstones.

What would go is computed by the same code for a preview and for the real run.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable
from dataclasses import dataclass
from datetime import datetime

from ..clock import Clock, to_micros
from ..errors import InvalidInput
from ..store.database import Session
from ..store.store import Store
from .capture import Progress
from .filters import parse_moment
from .place import Place

__all__ = ["Collected", "GarbageCollector", "StaleBranches"]

StaleBranches = Callable[[Iterable[str]], tuple[str, ...]]

_STEPS = 3


@dataclass(frozen=True, slots=True)
class Collected:
    """What a run did, or would do. `memories_affected` counts each record once; `branches` are lines of work."""

    stale_branches: tuple[str, ...]
    memories_affected: int
    tombstoned: int
    expired: int
    purged: int
    dry_run: bool
    branches: frozenset[str] = frozenset()


@dataclass(frozen=True, slots=True)
class _Plan:
    stale_branches: tuple[str, ...]
    orphaned: list[int]
    expired: list[int]
    purged: list[int]
    branches: frozenset[str]


class GarbageCollector:
    def __init__(self, store: Store, clock: Clock, place: Place, stale: StaleBranches) -> None:
        self._store = store
        self._clock = clock
        self._place = place
        self._stale = stale

    def run(
        self,
        *,
        dry_run: bool = False,
        branch: str | None = None,
        purge: bool = False,
        older_than: str | None = None,
        progress: Progress | None = None,
    ) -> Collected:
        """Tombstone memories of deleted git branches and expired ones; purge tombstones if asked."""
        told = progress or _untold
        self._place.arrive()
        now = self._clock.now()
        until = _moment(older_than, now) if older_than else now
        stale = self._stale_branches(branch)
        told(1, _STEPS)
        if dry_run:
            with self._store.database.read() as session:
                plan = self._plan(session, stale, branch, purge, now, until)
        else:
            with self._store.database.write() as session:
                plan = self._plan(session, stale, branch, purge, now, until)
                self._carry_out(session, plan, now)
                # Last chance for a caller to stop: raising here rolls everything back.
                told(2, _STEPS)
            if plan.purged:
                self._store.database.compact()
        told(_STEPS, _STEPS)
        fallen = {*plan.orphaned, *plan.expired}
        return Collected(
            plan.stale_branches,
            len(fallen | set(plan.purged)),
            len(fallen),
            len(plan.expired),
            len(plan.purged),
            dry_run,
            plan.branches,
        )

    def _stale_branches(self, branch: str | None) -> tuple[str, ...]:
        """Branches with memories that git no longer knows; asked before the transaction, git takes its time."""
        with self._store.database.read() as session:
            named = self._store.statistics.git_branches(session, self._place.spaces())
        wanted = [branch] if branch else list(named)
        return tuple(name for name in self._stale(wanted) if name in named)

    def _plan(
        self,
        session: Session,
        stale: tuple[str, ...],
        branch: str | None,
        purge: bool,
        now: datetime,
        until: datetime,
    ) -> _Plan:
        statistics, spaces = self._store.statistics, self._place.spaces()
        orphaned = statistics.on_git_branches(session, spaces, stale) if stale else []
        expired = [] if branch else statistics.expired(session, spaces, to_micros(now))
        # A tombstone set by this very run is younger than any age asked for.
        purged = statistics.tombstones(session, spaces, to_micros(until), branch) if purge else []
        branches = statistics.lines_of_work(session, sorted({*orphaned, *expired, *purged}))
        return _Plan(stale, orphaned, expired, purged, branches)

    def _carry_out(self, session: Session, plan: _Plan, now: datetime) -> None:
        memories = self._store.memories
        fallen = sorted({*plan.orphaned, *plan.expired})
        if not fallen and not plan.purged:
            return
        seq = memories.next_seq(session)
        memories.bury(session, fallen, to_micros(now), seq)
        memories.purge(session, plan.purged, seq)


def _untold(done: int, total: int) -> None:
    """Nobody listens."""


def _moment(text: str, now: datetime) -> datetime:
    try:
        moment = parse_moment(text, now=now)
    except InvalidInput as error:
        raise InvalidInput(error.message, remedy=error.remedy, field="older_than") from None
    if moment > now:
        raise InvalidInput(f"{text[:40]!r} lies in the future.", remedy="Give an age such as 30d.", field="older_than")
    return moment
