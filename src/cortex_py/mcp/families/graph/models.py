"""What the graph tools answer; the published document shows their parameters and no answers."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Literal, Self

from pydantic import JsonValue

from ..answer import Answer

if TYPE_CHECKING:
    from ....graph.traversal import Step

__all__ = [
    "EntitiesAnswer", "EntityItem", "GraphAnswer", "HopItem", "ListedEntity", "MentionItem", "NearEntity",
    "RelationshipItem", "RelationshipsAnswer",
]  # fmt: skip


class EntityItem(Answer):
    id: str
    name: str
    type: str
    aliases: list[str] | None = None
    properties: dict[str, JsonValue] | None = None
    mention_count: int


class NearEntity(EntityItem):
    """`distance` counts the hops from the entity that was asked for."""

    distance: int | None = None


class ListedEntity(Answer):
    """An entity of the graph, or one that a text names; it has an id only once it is stored."""

    id: str | None = None
    name: str
    type: str
    aliases: list[str] | None = None
    properties: dict[str, JsonValue] | None = None
    mention_count: int | None = None
    confidence: float | None = None
    method: str | None = None
    start: int | None = None
    end: int | None = None


class MentionItem(Answer):
    memory_id: str
    start: int
    end: int
    confidence: float
    method: str


class RelationshipItem(Answer):
    id: str | None = None
    from_entity: str
    to_entity: str
    type: str
    confidence: float
    method: str
    evidence: str | None = None
    properties: dict[str, JsonValue] | None = None
    valid_from: str | None = None
    valid_to: str | None = None

    @classmethod
    def from_fact(cls, fact: Any, source: str, target: str) -> Self:
        """A stored, extracted or inferred relationship between two entities, by id or name."""
        return cls.from_record(fact, from_entity=source, to_entity=target, confidence=round(fact.confidence, 3))


class HopItem(Answer):
    """One hop of a path; `direction` is outgoing where the relationship points along the path."""

    from_entity: str
    to_entity: str
    type: str
    direction: Literal["outgoing", "incoming"]
    confidence: float

    @classmethod
    def from_step(cls, step: Step) -> Self:
        return cls(
            from_entity=step.from_id,
            to_entity=step.to_id,
            type=step.edge.type,
            direction="outgoing" if step.forward else "incoming",
            confidence=round(step.edge.confidence, 3),
        )


class EntitiesAnswer(Answer):
    action: str
    entity: EntityItem | None = None
    entities: list[ListedEntity] | None = None
    relationships: list[RelationshipItem] | None = None
    mentions: list[MentionItem] | None = None
    total: int | None = None
    method: str | None = None
    stored: bool | None = None
    dry_run: bool | None = None
    merge_id: str | None = None
    warnings: list[str] | None = None


class RelationshipsAnswer(Answer):
    action: str
    relationship: RelationshipItem | None = None
    relationships: list[RelationshipItem] | None = None
    total: int | None = None
    method: str | None = None
    stored: bool | None = None
    warnings: list[str] | None = None


class GraphAnswer(Answer):
    operation: str
    entity: EntityItem | None = None
    entities: list[NearEntity] | None = None
    hops: list[HopItem] | None = None
    found: bool | None = None
    counts: dict[str, int] | None = None
    entity_types: dict[str, int] | None = None
    relationship_types: dict[str, int] | None = None
    format: str | None = None
    content: str | None = None
