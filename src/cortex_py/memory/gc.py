"""Garbage collection: memories of git branches that are gone, expired ones, and old tombstones.

What would go is computed by the same code for a preview and for the real run.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable
from dataclasses import dataclass, replace
from datetime import datetime

from ..clock import Clock, to_micros
from ..errors import InvalidInput
from ..security.permission import require_admin, require_write
from ..security.rights import Level
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
    """Records by number, for each space."""

    stale_branches: tuple[str, ...]
    orphaned: dict[str, list[int]]
    expired: dict[str, list[int]]
    purged: dict[str, list[int]]
    branches: frozenset[str]

    def fallen(self) -> dict[str, list[int]]:
        """What is to be buried: for one reason or the other, or both."""
        return {space: sorted({*nums, *self.expired[space]}) for space, nums in self.orphaned.items()}


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
        level: Level = "admin" if purge else "write"
        (require_admin if purge else require_write)(self._place.space("project"))
        spaces = self._place.spaces(level)
        self._place.arrive()
        now = self._clock.now()
        until = _moment(older_than, now) if older_than else now
        stale = self._stale_branches(branch, spaces)
        told(1, _STEPS)
        if dry_run:
            with self._store.database.read() as session:
                plan = self._plan(session, spaces, stale, branch, purge, now, until)
        else:
            with self._store.database.write() as session:
                plan = self._plan(session, spaces, stale, branch, purge, now, until)
                self._carry_out(session, plan, now)
                # Last chance for a caller to stop: raising here rolls everything back.
                told(2, _STEPS)
            if any(plan.purged.values()):
                self._store.database.compact()
        told(_STEPS, _STEPS)
        fallen = plan.fallen()
        return Collected(
            plan.stale_branches,
            sum(len({*nums, *plan.purged[space]}) for space, nums in fallen.items()),
            sum(map(len, fallen.values())),
            sum(map(len, plan.expired.values())),
            sum(map(len, plan.purged.values())),
            dry_run,
            plan.branches,
        )

    def _stale_branches(self, branch: str | None, spaces: tuple[str, ...]) -> tuple[str, ...]:
        """Branches with memories that git no longer knows; asked before the transaction, git takes its time."""
        with self._store.database.read() as session:
            named = self._store.statistics.git_branches(session, spaces)
        wanted = [branch] if branch else list(named)
        return tuple(name for name in self._stale(wanted) if name in named)

    def _plan(
        self,
        session: Session,
        spaces: tuple[str, ...],
        stale: tuple[str, ...],
        branch: str | None,
        purge: bool,
        now: datetime,
        until: datetime,
    ) -> _Plan:
        statistics = self._store.statistics
        plan = _Plan(stale, {}, {}, {}, frozenset())
        branches: set[str] = set()
        for space in spaces:
            plan.orphaned[space] = statistics.on_git_branches(session, space, stale) if stale else []
            plan.expired[space] = [] if branch else statistics.expired(session, space, to_micros(now))
            # A tombstone set by this very run is younger than any age asked for.
            plan.purged[space] = statistics.tombstones(session, space, to_micros(until), branch) if purge else []
            every = {*plan.orphaned[space], *plan.expired[space], *plan.purged[space]}
            branches |= statistics.lines_of_work(session, space, sorted(every))
        return replace(plan, branches=frozenset(branches))

    def _carry_out(self, session: Session, plan: _Plan, now: datetime) -> None:
        memories = self._store.memories
        fallen = plan.fallen()
        if not any(fallen.values()) and not any(plan.purged.values()):
            return
        seq = memories.next_seq(session)
        for space, nums in fallen.items():
            memories.bury(session, space, nums, to_micros(now), seq)
            memories.purge(session, space, plan.purged[space], seq)


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
