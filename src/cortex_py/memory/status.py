"""What a store holds, in numbers that are counted, not kept."""

from __future__ import annotations

from collections import Counter
from dataclasses import dataclass, field

from ..clock import Clock, to_micros
from ..security.callers import current_caller
from ..store.conditions import EVERYTHING
from ..store.store import Store
from .place import Place

__all__ = ["Status", "read_status"]

_TOP_TAGS = 10
_RECENT_RECORDS = 50
_RECENT_TOPICS = 10


@dataclass(frozen=True, slots=True)
class Status:
    """Counts of what a caller sees here. What the whole store holds is told where nobody is bound: here 0 and none."""

    project_id: str
    project_name: str
    project_remote: str | None
    path: str | None
    branch: str | None
    engine: str
    total_count: int
    namespace_counts: dict[str, int]
    status_counts: dict[str, int]
    recent_topics: tuple[str, ...]
    top_tags: tuple[tuple[str, int], ...]
    size_bytes: int
    model: str | None
    # Model, calls, tokens asked, tokens answered, failures: of today.
    llm_use: tuple[tuple[str, int, int, int, int], ...] = ()
    # How many memories a check against the project found well grounded, doubtful, not grounded.
    grounding_counts: dict[str, int] = field(default_factory=dict)


def read_status(store: Store, clock: Clock, place: Place) -> Status:
    """Count live memories of the caller's spaces, with their tags and recent topics."""
    bound = current_caller() is not None
    with store.database.read() as session:
        scope = store.scope(session, EVERYTHING, place.view(to_micros(clock.now())))
        namespaces = store.statistics.by_namespace(session, scope.where)
        recent = store.statistics.recent_tags(session, scope.where, _RECENT_RECORDS)
        return Status(
            project_id=place.project.id,
            project_name=place.project.name,
            project_remote=place.project.remote,
            path=place.project.root,
            branch=place.git_branch(),
            engine=store.database.name,
            total_count=sum(namespaces.values()),
            namespace_counts=namespaces,
            status_counts=store.statistics.by_status(session, scope.spaces),
            recent_topics=tuple(tag for tag, _ in Counter(recent).most_common(_RECENT_TOPICS)),
            top_tags=tuple(store.statistics.top_tags(session, scope.where, _TOP_TAGS)),
            size_bytes=0 if bound else store.database.size_bytes(),
            model=store.settings.get(session, "embedding"),
            llm_use=() if bound else tuple(store.llm_use.of_day(session, clock.now().date().isoformat())),
            grounding_counts=store.verifications.counts(session, scope.where),
        )
