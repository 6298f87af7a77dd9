"""What could be tidied up: duplicates, contradictions, and memories that are stale, never recalled or oversized.

Nothing is changed here; every finding comes with the command that would.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from typing import Literal

from ..clock import Clock, to_micros
from ..records import Contradiction, Memory
from ..store.conditions import EVERYTHING
from ..store.store import Store
from .consolidation import Consolidated
from .place import Place
from .wording import Strategy

__all__ = ["Finding", "Hygiene", "Trouble"]

Trouble = Literal["duplicate", "contradicted", "stale", "never-recalled", "oversized"]

_STALE = timedelta(days=180)
_UNSEEN = timedelta(days=60)
_OVERSIZED = 20_000
# Contradictions are looked for among the newest: each costs a search.
_CHECKED = 200
_MOST = 50
_NEVER = datetime(1970, 1, 1, tzinfo=UTC)


@dataclass(frozen=True, slots=True)
class Finding:
    """Memories that have a trouble, why, and the one command that mends it."""

    trouble: Trouble
    memories: tuple[str, ...]
    reason: str
    remedy: str


class Hygiene:
    def __init__(
        self,
        store: Store,
        clock: Clock,
        place: Place,
        consolidate: Callable[[Strategy], Consolidated],
        conflicts: Callable[[Memory], tuple[Contradiction, ...]],
    ) -> None:
        """`consolidate` previews a strategy over all namespaces."""
        self._store = store
        self._clock = clock
        self._place = place
        self._consolidate = consolidate
        self._conflicts = conflicts

    def report(self) -> list[Finding]:
        """All findings, at most fifty of each kind, the newest memories first."""
        self._place.arrive()
        memories = self._memories()
        recalled = self._recalled(memories)
        return [
            *self._duplicates(),
            *self._contradicted(memories),
            *self._stale(memories, recalled),
            *self._never_recalled(memories, recalled),
            *self._oversized(memories),
        ]

    def _memories(self) -> list[Memory]:
        now = to_micros(self._clock.now())
        with self._store.database.read() as session:
            where = self._store.scope(session, EVERYTHING, self._place.view(now)).where
            return self._store.memories.listing(session, where, 1_000_000, 0)

    def _recalled(self, memories: list[Memory]) -> dict[str, int]:
        with self._store.database.read() as session:
            return self._store.recalls.last(session, self._place.spaces(), [one.id for one in memories])

    def _duplicates(self) -> list[Finding]:
        found: list[Finding] = []
        strategies: tuple[Strategy, ...] = ("dedupe", "merge")
        for strategy in strategies:
            for group in self._consolidate(strategy).groups[:_MOST]:
                command = f"cortex consolidate {group.namespace} --strategy {strategy}"
                reason = f"{len(group.memories)} memories say the same ({group.similarity:.2f})"
                if not any(set(group.memories) <= set(one.memories) for one in found):
                    found.append(Finding("duplicate", group.memories, reason, command))
        return found[:_MOST]

    def _contradicted(self, memories: list[Memory]) -> list[Finding]:
        found: list[Finding] = []
        order = {one.id: (one.created_at, one.id) for one in memories}
        for memory in memories[:_CHECKED]:
            for other in self._conflicts(memory):
                if other.memory_id in order and order[other.memory_id] < order[memory.id]:
                    command = f"cortex supersede {other.memory_id[:12]} {memory.id[:12]}"
                    found.append(Finding("contradicted", (other.memory_id, memory.id), other.reason, command))
        return found[:_MOST]

    def _stale(self, memories: list[Memory], recalled: dict[str, int]) -> list[Finding]:
        before = self._clock.now() - _STALE
        used = {one.id: max(recalled.get(one.id, 0), to_micros(one.accessed_at or _NEVER)) for one in memories}
        old = [one for one in memories if one.updated_at < before and 0 < used[one.id] < to_micros(before)]
        return [
            Finding(
                "stale",
                (one.id,),
                f"unchanged since {one.updated_at.date().isoformat()} and not recalled for half a year",
                f"cortex update {one.id[:12]} --status archived",
            )
            for one in old[:_MOST]
        ]

    def _never_recalled(self, memories: list[Memory], recalled: dict[str, int]) -> list[Finding]:
        before = self._clock.now() - _UNSEEN
        unseen = [
            one for one in memories if one.created_at < before and one.id not in recalled and one.accessed_at is None
        ]
        return [
            Finding(
                "never-recalled",
                (one.id,),
                f"stored {one.created_at.date().isoformat()} and never recalled since recalls are counted",
                f"cortex update {one.id[:12]} --status archived",
            )
            for one in unseen[:_MOST]
        ]

    def _oversized(self, memories: list[Memory]) -> list[Finding]:
        return [
            Finding(
                "oversized",
                (one.id,),
                f"{len(one.content):,} characters; small memories are found better",
                f"cortex get {one.id[:12]} --json",
            )
            for one in memories
            if len(one.content) > _OVERSIZED
        ][:_MOST]
