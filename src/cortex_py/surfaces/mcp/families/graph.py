"""The tools for the knowledge graph: one function for each, which goes by its action.

The published document shows their parameters and no answers.
"""

from __future__ import annotations

from datetime import datetime
from typing import TYPE_CHECKING, Annotated, Any, Literal, Self

from pydantic import Field, JsonValue

from ....core.graph_values import EntityType, Relationship, RelationshipType
from ....core.memory.consolidation.merging import Method
from .answer import Answer, FamilyTools, require_argument

if TYPE_CHECKING:
    from ....parts.graph.entities import ExtractionResult
    from ....parts.graph.traversal import Step

__all__ = ["GraphTools"]


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


EntityRef = Annotated[str | None, Field(description="Id or name")]
AsOf = Annotated[str | None, Field(description="E.g. 2026-01-31")]


class GraphTools(FamilyTools):
    def graph(
        self,
        operation: Literal["neighbors", "path", "stats", "visualize"],
        entity_id: EntityRef = None,
        depth: int | None = None,
        relationship_types: list[RelationshipType] | None = None,
        from_entity: str | None = None,
        to_entity: str | None = None,
        max_hops: int = 5,
        format: Literal["mermaid", "dot", "json"] = "mermaid",
        entity_types: list[EntityType] | None = None,
        limit: int = 50,
        as_of: AsOf = None,
    ) -> GraphAnswer:
        graph, moment = self._cortex.graph, self._moment(as_of, "as_of")
        if operation == "neighbors":
            start, found = graph.neighbors(
                require_argument(entity_id, "entity_id"),
                depth=1 if depth is None else depth,
                relationship_types=relationship_types or (),
                as_of=moment,
                limit=limit,
            )
            return GraphAnswer(
                operation=operation,
                entity=EntityItem.from_record(start),
                entities=[NearEntity.from_record(one.entity, distance=one.distance) for one in found],
                hops=[HopItem.from_step(one.step) for one in found],
            )
        if operation == "path":
            ends = require_argument(from_entity, "from_entity"), require_argument(to_entity, "to_entity")
            way = graph.path(*ends, max_hops=max_hops, as_of=moment)
            return GraphAnswer(
                operation=operation,
                found=way.found,
                entities=[NearEntity.from_record(one) for one in way.entities] if way.found else None,
                hops=[HopItem.from_step(step) for step in way.steps],
            )
        if operation == "stats":
            stats = graph.stats()
            counts = ("entities", "relationships", "mentions", "memories", "orphans")
            return GraphAnswer(
                operation=operation,
                counts={name: getattr(stats, name) for name in counts},
                entity_types=dict(stats.by_entity_type),
                relationship_types=dict(stats.by_relationship_type),
                entities=[NearEntity.from_record(entity) for entity, _ in stats.busiest],
            )
        content = graph.visualize(
            format=format,
            entity=entity_id,
            entity_types=entity_types or (),
            depth=2 if depth is None else depth,
            limit=limit,
            as_of=moment,
        )
        return GraphAnswer(operation=operation, format=format, content=content)

    def entities(
        self,
        action: Literal["create", "get", "list", "delete", "extract", "merge"],
        name: str | None = None,
        entity_type: EntityType | None = None,
        properties: dict[str, Any] | None = None,
        entity_id: EntityRef = None,
        limit: int = 50,
        content: str | None = None,
        store: bool = False,
        min_confidence: float = 0.6,
        entity_ids: list[str] | None = None,
        canonical_name: str | None = None,
        dry_run: bool = False,
        method: Method = "auto",
    ) -> EntitiesAnswer:
        graph = self._cortex.graph
        if action == "create":
            made = graph.create(
                require_argument(name, "name"), require_argument(entity_type, "entity_type"), properties=properties
            )
            return EntitiesAnswer(action=action, entity=EntityItem.from_record(made))
        if action == "get":
            view = graph.get(require_argument(entity_id or name, "entity_id"))
            return EntitiesAnswer(
                action=action,
                entity=EntityItem.from_record(view.entity),
                relationships=[_item(one) for one in view.relationships],
                mentions=[MentionItem.from_record(one) for one in view.mentions],
            )
        if action == "list":
            found, total = graph.entities(type=entity_type, limit=limit)
            return EntitiesAnswer(action=action, entities=[ListedEntity.from_record(one) for one in found], total=total)
        if action == "delete":
            gone = graph.delete(require_argument(entity_id or name, "entity_id"))
            return EntitiesAnswer(action=action, entity=EntityItem.from_record(gone))
        if action == "extract":
            text = require_argument(content, "content")
            return _extracted(graph.extract(text, store=store, min_confidence=min_confidence, method=method))
        refs = require_argument(entity_ids, "entity_ids")
        merge = graph.merge(refs, canonical_name=canonical_name, dry_run=dry_run)
        return EntitiesAnswer(
            action=action,
            entity=EntityItem.from_record(merge.entity),
            entities=[ListedEntity.from_record(one) for one in merge.merged],
            total=len(merge.merged),
            dry_run=merge.merge_id is None,
            merge_id=merge.merge_id,
        )

    def relationships(
        self,
        action: Literal["create", "get", "list", "delete", "infer"],
        from_entity: EntityRef = None,
        to_entity: EntityRef = None,
        relationship_type: RelationshipType | None = None,
        properties: dict[str, Any] | None = None,
        relationship_id: str | None = None,
        entity_ids: list[str] | None = None,
        store: bool = False,
        min_confidence: float = 0.7,
        limit: int = 50,
        valid_from: str | None = None,
        valid_to: str | None = None,
        as_of: AsOf = None,
        method: Method = "auto",
    ) -> RelationshipsAnswer:
        graph = self._cortex.graph
        if action == "create":
            made = graph.relate(
                require_argument(from_entity, "from_entity"),
                require_argument(to_entity, "to_entity"),
                require_argument(relationship_type, "relationship_type"),
                properties=properties,
                valid_from=self._moment(valid_from, "valid_from"),
                valid_to=self._moment(valid_to, "valid_to"),
            )
            return RelationshipsAnswer(action=action, relationship=_item(made))
        if action == "get":
            fact = graph.relationship(require_argument(relationship_id, "relationship_id"))
            return RelationshipsAnswer(action=action, relationship=_item(fact))
        if action == "list":
            found, total = graph.relationships(
                source=from_entity,
                target=to_entity,
                type=relationship_type,
                as_of=self._moment(as_of, "as_of"),
                limit=limit,
            )
            items = [_item(one) for one in found]
            return RelationshipsAnswer(action=action, relationships=items, total=total)
        if action == "delete":
            gone = graph.unrelate(
                require_argument(relationship_id, "relationship_id"), ended=self._moment(valid_to, "valid_to")
            )
            return RelationshipsAnswer(action=action, relationship=_item(gone))
        refs = require_argument(entity_ids, "entity_ids")
        inferred = graph.infer(refs, store=store, min_confidence=min_confidence, method=method)
        return RelationshipsAnswer(
            action=action,
            relationships=[RelationshipItem.from_fact(one, one.source.id, one.target.id) for one in inferred.edges],
            total=len(inferred.edges),
            method=inferred.method,
            stored=store,
            warnings=list(inferred.warnings) or None,
        )

    def _moment(self, text: str | None, field: str) -> datetime | None:
        return None if text is None else self._cortex.graph.moment(text, field=field)


def _item(fact: Relationship) -> RelationshipItem:
    return RelationshipItem.from_fact(fact, fact.source_id, fact.target_id)


def _extracted(found: ExtractionResult) -> EntitiesAnswer:
    names = found.extraction.entities
    ids = found.ids or (None,) * len(names)
    ends = found.ids or tuple(one.name for one in names)
    return EntitiesAnswer(
        action="extract",
        entities=[
            ListedEntity.from_record(one, id=entity_id, confidence=round(one.confidence, 3))
            for one, entity_id in zip(names, ids, strict=True)
        ],
        relationships=[
            RelationshipItem.from_fact(fact, ends[fact.source], ends[fact.target])
            for fact in found.extraction.relationships
        ],
        total=len(names),
        method=found.method,
        stored=bool(found.ids),
        warnings=list(found.warnings) or None,
    )
