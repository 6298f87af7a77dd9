"""Relationships: stated, listed as they held at a moment, ended, and inferred from what memories say."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from datetime import datetime
from typing import NamedTuple

from ..clock import to_micros
from ..errors import InvalidInput
from ..security.permission import require_write
from ..store.database import Session
from ..store.graph import RelationshipRow
from .base import GraphBase, relationship_from
from .checks import check_confidence, check_limit, check_properties, check_relationship_type
from .cooccur import infer
from .values import Entity, Relationship, RelationshipType

__all__ = ["InferredEdge", "RelationshipOperations"]


@dataclass(frozen=True, slots=True)
class InferredEdge:
    """A relationship that the memories suggest, with the reason; `id` where it was stored."""

    source: Entity
    target: Entity
    type: RelationshipType
    confidence: float
    method: str
    evidence: str
    id: str | None


class _Fact(NamedTuple):
    source: str
    target: str
    type: str
    confidence: float
    method: str
    evidence: str


class RelationshipOperations(GraphBase):
    def relate(
        self,
        source: str,
        target: str,
        type: str,
        *,
        properties: Mapping[str, object] | None = None,
        confidence: float = 1.0,
        valid_from: datetime | None = None,
        valid_to: datetime | None = None,
    ) -> Relationship:
        """State that something holds between two entities, which must exist; perhaps from and to a moment."""
        kind = check_relationship_type(type)
        extra = check_properties(properties)
        check_confidence(confidence, "confidence")
        if valid_from is not None and valid_to is not None and to_micros(valid_to) <= to_micros(valid_from):
            raise InvalidInput("It would end before it begins.", remedy="Give a later valid_to.", field="valid_to")
        with self._writing() as (session, at):
            space, (a, b) = self._both(session, source, target)
            require_write(space)
            if a == b:
                raise InvalidInput("Both ends are the same entity.", field="to_entity")
            row = RelationshipRow(
                space=space,
                id=f"relationship_{self._ids.new()}",
                source_id=a,
                target_id=b,
                type=kind,
                confidence=confidence,
                method="given",
                properties=extra,
                valid_from=None if valid_from is None else to_micros(valid_from),
                valid_to=None if valid_to is None else to_micros(valid_to),
                recorded_at=at,
            )
            self._table.add_relationships(session, [row])
            return relationship_from(row)

    def relationship(self, relationship_id: str) -> Relationship:
        """One relationship by its id."""
        with self._reading() as session:
            return relationship_from(self._fact(session, relationship_id))

    def relationships(
        self,
        *,
        source: str | None = None,
        target: str | None = None,
        entity: str | None = None,
        type: str | None = None,
        as_of: datetime | None = None,
        limit: int = 50,
        offset: int = 0,
    ) -> tuple[list[Relationship], int]:
        """Relationships that hold, the surest first, and how many there are; with `as_of` those that held then."""
        check_limit(limit, offset)
        kinds = (check_relationship_type(type),) if type else ()
        found: list[RelationshipRow] = []
        total = 0
        with self._reading() as session:
            asked = (
                ("source", "from_entity", source),
                ("target", "to_entity", target),
                ("either", "entity_id", entity),
            )
            named = {name: self._find(session, ref, field) for name, field, ref in asked if ref is not None}
            sight = self._sight()
            moment = sight.now if as_of is None else to_micros(as_of)
            for space in self._place.spaces():
                if any(place != space for place, _ in named.values()):
                    continue
                ends = {name: identity for name, (_, identity) in named.items()}
                rows, count = self._table.list_relationships(
                    session,
                    space,
                    sight,
                    source=ends.get("source"),
                    target=ends.get("target"),
                    either=ends.get("either"),
                    types=kinds,
                    valid_at=moment,
                    limit=limit + offset,
                )
                found += rows
                total += count
        found.sort(key=lambda row: (-row.confidence, -row.recorded_at, row.id))
        return [relationship_from(row) for row in found[offset : offset + limit]], total

    def unrelate(self, relationship_id: str, *, ended: datetime | None = None) -> Relationship:
        """Take a relationship off the record; with `ended` it stays as something that held until then."""
        with self._writing() as (session, at):
            row = self._fact(session, relationship_id)
            require_write(row.space)
            if ended is None:
                self._table.end_relationship(session, row.space, row.id, ended_at=at)
                return relationship_from(replace(row, ended_at=at))
            until = to_micros(ended)
            if row.valid_from is not None and until <= row.valid_from:
                raise InvalidInput("It would end before it begins.", remedy="Give a later valid_to.", field="valid_to")
            self._table.end_relationship(session, row.space, row.id, valid_to=until)
            return relationship_from(replace(row, valid_to=until))

    def infer(self, refs: Sequence[str], *, store: bool = False, min_confidence: float = 0.7) -> list[InferredEdge]:
        """Relationships between entities that memories suggest: by stating them, or by naming both again and again."""
        check_confidence(min_confidence)
        with self._writing() as (session, at):
            places = self._several(session, refs)
            found: list[InferredEdge] = []
            for space in dict.fromkeys(space for space, _ in places):
                ids = [identity for where, identity in places if where == space]
                if store:
                    require_write(space)
                found += self._inferred(session, space, ids, min_confidence, at if store else None)
            return found

    def _inferred(
        self, session: Session, space: str, ids: Sequence[str], least: float, at: int | None
    ) -> list[InferredEdge]:
        sight = self._sight()
        entities = self._entities(session, space, ids)
        stated = self._table.between(session, space, ids, sight)
        memories = self._table.mentioned_by(session, space, sight, ids)
        total = self._table.notes(session, space, sight)
        types = {one: entities[one].type for one in ids}
        wordings = {(row.source_id, row.target_id, check_relationship_type(row.type)) for row in stated}
        edges = [
            _Fact(row.source_id, row.target_id, row.type, row.confidence, row.method, row.evidence)
            for row in _surest(stated)
        ]
        known = {edge[:3] for edge in edges}
        for one in infer(memories, types, total=total, stated=wordings):
            if (one.source_id, one.target_id, one.type) not in known:
                told = f"named together in {one.support} memories: {', '.join(one.memory_ids[:3])}"
                edges.append(_Fact(one.source_id, one.target_id, one.type, one.confidence, one.method, told))
        sure = [edge for edge in edges if edge.confidence >= least]
        new = [edge for edge in sure if edge.method.startswith("comention")]
        made = dict(zip(new, self._add_facts(session, space, new, at), strict=True)) if at is not None else {}
        return [
            InferredEdge(
                entities[edge.source],
                entities[edge.target],
                check_relationship_type(edge.type),
                edge.confidence,
                edge.method,
                edge.evidence,
                made.get(edge),
            )
            for edge in sure
        ]


def _surest(rows: Iterable[RelationshipRow]) -> list[RelationshipRow]:
    """One row for each fact that memories state, the surest."""
    best: dict[tuple[str, str, str], RelationshipRow] = {}
    for row in sorted(rows, key=lambda one: (-one.confidence, one.id)):
        best.setdefault((row.source_id, row.target_id, row.type), row)
    return list(best.values())
