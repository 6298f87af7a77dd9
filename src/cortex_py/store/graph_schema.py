"""The graph's tables and their rows: entities, other spellings, mentions, relationships, and how to undo a merge.

Moments are microseconds since 1970. A row's `num` is the engine's number of the memory that it was read from.
"""

from __future__ import annotations

import json
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from typing import NamedTuple, TypeVar

from ..records import LIVE_STATUSES
from .database import Row, Sql, marks

__all__ = [
    "GRAPH_STEP",
    "RELATIONSHIP",
    "AliasRow",
    "EdgeRow",
    "EntityRow",
    "MentionPlace",
    "MentionRow",
    "RelationshipRow",
    "Sight",
    "as_json",
    "batches",
    "filled",
    "live_memory",
    "relationship_from",
    "relationship_values",
    "seen_relationship",
]

_T = TypeVar("_T")
_BATCH = 480
_LENGTHS = (1, 8, 32, 120, _BATCH)

GRAPH_STEP: tuple[str, ...] = (
    # `folded` is the name without case, for listing by its beginning; `key` is the canonical spelling, made above;
    # `given` is 1 for what somebody made, and 0 for what is there only because memories name it.
    """CREATE TABLE entity (
        space TEXT NOT NULL, id TEXT NOT NULL, name TEXT NOT NULL, folded TEXT NOT NULL, type TEXT NOT NULL,
        key TEXT NOT NULL, properties TEXT NOT NULL, given INTEGER NOT NULL, created_at INTEGER NOT NULL,
        updated_at INTEGER NOT NULL, PRIMARY KEY (space, id))""",
    "CREATE INDEX entity_name ON entity (space, folded, id)",
    "CREATE INDEX entity_type ON entity (space, type, folded, id)",
    "CREATE INDEX entity_key ON entity (space, key)",
    """CREATE TABLE entity_alias (
        space TEXT NOT NULL, entity_id TEXT NOT NULL, alias TEXT NOT NULL, key TEXT NOT NULL,
        PRIMARY KEY (space, entity_id, alias))""",
    "CREATE INDEX entity_alias_key ON entity_alias (space, key)",
    """CREATE TABLE mention (
        space TEXT NOT NULL, entity_id TEXT NOT NULL, num INTEGER NOT NULL, first INTEGER NOT NULL,
        past INTEGER NOT NULL, confidence REAL NOT NULL, method TEXT NOT NULL,
        PRIMARY KEY (space, entity_id, num, first))""",
    "CREATE INDEX mention_num ON mention (num)",
    """CREATE TABLE relationship (
        space TEXT NOT NULL, id TEXT NOT NULL, source_id TEXT NOT NULL, target_id TEXT NOT NULL, type TEXT NOT NULL,
        confidence REAL NOT NULL, method TEXT NOT NULL, evidence TEXT NOT NULL, properties TEXT NOT NULL,
        valid_from INTEGER, valid_to INTEGER, recorded_at INTEGER NOT NULL, ended_at INTEGER, num INTEGER,
        PRIMARY KEY (space, id))""",
    # In the order in which a hub's surest edges are taken first.
    "CREATE INDEX relationship_source ON relationship (space, source_id, confidence, id)",
    "CREATE INDEX relationship_target ON relationship (space, target_id, confidence, id)",
    "CREATE INDEX relationship_pair ON relationship (space, source_id, target_id)",
    "CREATE INDEX relationship_num ON relationship (num) WHERE num IS NOT NULL",
    # What a merge changed, a row for each thing it touched. `num` lets a purge reach what lies here.
    """CREATE TABLE entity_history (
        space TEXT NOT NULL, merge_id TEXT NOT NULL, n INTEGER NOT NULL, into_id TEXT NOT NULL, kind TEXT NOT NULL,
        num INTEGER, data TEXT NOT NULL, recorded_at INTEGER NOT NULL,
        PRIMARY KEY (space, merge_id, n))""",
    "CREATE INDEX entity_history_into ON entity_history (space, into_id)",
    "CREATE INDEX entity_history_num ON entity_history (num) WHERE num IS NOT NULL",
)


class AliasRow(NamedTuple):
    """Another spelling of an entity, and its canonical form."""

    alias: str
    key: str


@dataclass(frozen=True, slots=True, kw_only=True)
class EntityRow:
    space: str
    id: str
    name: str
    type: str
    key: str
    aliases: tuple[AliasRow, ...] = ()
    properties: Mapping[str, object] = field(default_factory=dict)
    created_at: int
    updated_at: int
    given: bool = False


class MentionRow(NamedTuple):
    """Where a memory names an entity: characters from `first` to before `past`."""

    space: str
    entity_id: str
    num: int
    first: int
    past: int
    confidence: float
    method: str


class MentionPlace(NamedTuple):
    """A mention as it is shown, with the memory's id."""

    entity_id: str
    memory_id: str
    first: int
    past: int
    confidence: float
    method: str


@dataclass(frozen=True, slots=True, kw_only=True)
class RelationshipRow:
    """A fact. `num` is the memory that states it, if one does: the fact is seen only while that memory is."""

    space: str
    id: str
    source_id: str
    target_id: str
    type: str
    confidence: float
    method: str
    evidence: str = ""
    properties: Mapping[str, object] = field(default_factory=dict)
    valid_from: int | None = None
    valid_to: int | None = None
    recorded_at: int
    ended_at: int | None = None
    num: int | None = None


class EdgeRow(NamedTuple):
    """As much of a relationship as a walk over the graph needs."""

    id: str
    source_id: str
    target_id: str
    type: str
    confidence: float


class Sight(NamedTuple):
    """From when and from which git branch one looks: it decides which memories are there to be seen."""

    now: int
    here: str | None = None

    @property
    def params(self) -> tuple[Sql, ...]:
        return (*LIVE_STATUSES, self.now, self.here)

    def seen_in(self, space: str) -> tuple[Sql, ...]:
        """The parameters of `seen_relationship`."""
        return (space, *self.params)


def live_memory(alias: str) -> str:
    """A condition on `memory m` for a row that was read from it; its parameters are `Sight.params`."""
    return (
        f"m.num = {alias}.num AND m.space = {alias}.space AND m.status IN ({marks(len(LIVE_STATUSES))}) "
        "AND (m.expires_at IS NULL OR m.expires_at > ?) AND (m.confinement IS NULL OR m.git_branch = ?)"
    )


def seen_relationship() -> str:
    """A condition on `relationship r`: no memory states it, or one that is seen; parameters are `Sight.seen_in`."""
    # The space once more as a value: from equality with a row outside planners do not conclude which server it is.
    return f"(r.num IS NULL OR EXISTS (SELECT 1 FROM memory m WHERE m.space = ? AND {live_memory('r')}))"


RELATIONSHIP = (
    "r.space, r.id, r.source_id, r.target_id, r.type, r.confidence, r.method, r.evidence, r.properties, "
    "r.valid_from, r.valid_to, r.recorded_at, r.ended_at, r.num"
)


def relationship_from(row: Row) -> RelationshipRow:
    space, id, source_id, target_id, type, confidence, method, evidence, properties, *moments, num = row
    valid_from, valid_to, recorded_at, ended_at = moments
    return RelationshipRow(
        space=space,
        id=id,
        source_id=source_id,
        target_id=target_id,
        type=type,
        confidence=confidence,
        method=method,
        evidence=evidence,
        properties=json.loads(properties),
        valid_from=valid_from,
        valid_to=valid_to,
        recorded_at=recorded_at,
        ended_at=ended_at,
        num=num,
    )


def relationship_values(row: RelationshipRow) -> tuple[Sql, ...]:
    return (
        row.space,
        row.id,
        row.source_id,
        row.target_id,
        row.type,
        row.confidence,
        row.method,
        row.evidence,
        as_json(row.properties),
        row.valid_from,
        row.valid_to,
        row.recorded_at,
        row.ended_at,
        row.num,
    )


def as_json(value: object) -> str:
    return json.dumps(dict(value) if isinstance(value, Mapping) else value, ensure_ascii=False, sort_keys=True)


def batches(items: Iterable[_T]) -> Iterator[list[_T]]:
    everything = list(items)
    return (everything[i : i + _BATCH] for i in range(0, len(everything), _BATCH))


def filled(ids: Sequence[str]) -> list[str]:
    """Ids filled up with the empty one, which names nothing, so that few lengths of statement are ever prepared."""
    length = next((size for size in _LENGTHS if size >= len(ids)), len(ids))
    return [*ids, *[""] * (length - len(ids))]
