"""The topics of the newest memories: their tags, the names they mention, and what they are about."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Mapping, Sequence

from ...records import Memory, tells_subject
from ...store.database import Session
from ...store.search.filters import Where
from ...store.store import Store
from .keyphrases import suggest_tags

__all__ = ["find_topics"]

_RECORDS = 50
_MOST = 10
_READ = 2_000  # characters
_NAMED = ("Technology", "Concept", "Organization")
# A tag was chosen by somebody, what a text speaks of is inferred.
_TAG, _INFERRED = 1.0, 0.75


def find_topics(store: Store, session: Session, where: Where) -> tuple[str, ...]:
    """The topics that most of the newest memories share, and among equals the newest."""
    newest = store.memories.newest(session, where, _RECORDS)
    names = _names(store, session, where.spaces, [num for num, _ in newest])
    weights: defaultdict[str, float] = defaultdict(float)
    for num, memory in reversed(newest):
        for tag in filter(tells_subject, memory.tags):
            weights[tag] += _TAG
        for topic in _inferred(memory, names.get(num, ())):
            weights[topic] += _INFERRED
    chosen: list[str] = []
    # The order is stable, and the newest came first.
    for topic in sorted(weights, key=lambda one: -weights[one]):
        # Of "postgresql" and "postgresql-connection", the first one says it.
        if len(topic) > 1 and not any(_overlap(topic, other) for other in chosen):
            chosen.append(topic)
    return tuple(chosen[:_MOST])


def _overlap(topic: str, other: str) -> bool:
    words, others = set(topic.split("-")), set(other.split("-"))
    return words <= others or others <= words


def _inferred(memory: Memory, names: Sequence[str]) -> Sequence[str]:
    return suggest_tags(memory.content[:_READ], list(filter(tells_subject, memory.tags)), names)


def _names(store: Store, session: Session, spaces: Sequence[str], nums: Sequence[int]) -> Mapping[int, list[str]]:
    """The names that memories mention, by their number."""
    found: dict[int, list[str]] = {}
    for space in spaces:
        mentions = store.graph.mentions_of(session, space, nums)
        ids = list(dict.fromkeys(one.entity_id for group in mentions.values() for one in group))
        known = store.graph.entities(session, space, ids)
        for num, group in mentions.items():
            rows = (known[one.entity_id] for one in group if one.entity_id in known)
            found.setdefault(num, []).extend(row.name for row in rows if row.type in _NAMED)
    return found
