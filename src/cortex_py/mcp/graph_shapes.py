"""From the graph's values to what its tools answer."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, cast

from pydantic import JsonValue

from ..clock import iso
from ..graph.entities import EntityView, Extracted, Merged
from ..graph.relationships import InferredEdge
from ..graph.traverse import Step
from ..graph.values import Entity, ExtractedEntity, Relationship
from ..graph.walks import GraphStats, Neighbour, Route
from . import graph_answers as answers

__all__ = [
    "entity_item",
    "extracted",
    "inferred",
    "listed_item",
    "merged",
    "neighbors",
    "relationship_item",
    "route",
    "stats",
    "viewed",
]


def entity_item(entity: Entity) -> answers.EntityItem:
    return answers.EntityItem(**_told(entity))


def listed_item(entity: Entity) -> answers.ListedEntity:
    return answers.ListedEntity(**_told(entity))


def _near(entity: Entity, distance: int | None = None) -> answers.NearEntity:
    return answers.NearEntity(**_told(entity), distance=distance)


def _told(entity: Entity) -> dict[str, Any]:
    return {
        "id": entity.id,
        "name": entity.name,
        "type": entity.type,
        "aliases": list(entity.aliases) or None,
        "properties": dict(entity.properties) or None,
        "mention_count": entity.mention_count,
    }


def relationship_item(fact: Relationship) -> answers.RelationshipItem:
    return answers.RelationshipItem(
        id=fact.id,
        from_entity=fact.source_id,
        to_entity=fact.target_id,
        type=fact.type,
        confidence=round(fact.confidence, 3),
        method=fact.method,
        evidence=fact.evidence or None,
        properties=cast("dict[str, JsonValue]", dict(fact.properties)) or None,
        valid_from=iso(fact.valid_from) if fact.valid_from else None,
        valid_to=iso(fact.valid_to) if fact.valid_to else None,
    )


def viewed(view: EntityView) -> answers.EntitiesAnswer:
    return answers.EntitiesAnswer(
        action="get",
        entity=entity_item(view.entity),
        relationships=[relationship_item(one) for one in view.relationships],
        mentions=[
            answers.MentionItem(
                memory_id=one.memory_id, start=one.start, end=one.end, confidence=one.confidence, method=one.method
            )
            for one in view.mentions
        ],
    )


def extracted(found: Extracted) -> answers.EntitiesAnswer:
    names = found.extraction.entities
    ends = found.ids or tuple(one.name for one in names)
    return answers.EntitiesAnswer(
        action="extract",
        entities=[_found_item(one, found.ids[i] if found.ids else None) for i, one in enumerate(names)],
        relationships=[
            answers.RelationshipItem(
                from_entity=ends[fact.source],
                to_entity=ends[fact.target],
                type=fact.type,
                confidence=round(fact.confidence, 3),
                method=fact.method,
                evidence=fact.evidence,
            )
            for fact in found.extraction.relationships
        ],
        total=len(names),
        method=found.method,
        stored=bool(found.ids),
    )


def _found_item(one: ExtractedEntity, entity_id: str | None) -> answers.ListedEntity:
    return answers.ListedEntity(
        id=entity_id,
        name=one.name,
        type=one.type,
        confidence=round(one.confidence, 3),
        method=one.method,
        start=one.start,
        end=one.end,
    )


def merged(result: Merged) -> answers.EntitiesAnswer:
    return answers.EntitiesAnswer(
        action="merge",
        entity=entity_item(result.entity),
        entities=[listed_item(one) for one in result.merged],
        total=len(result.merged),
        dry_run=result.merge_id is None,
        merge_id=result.merge_id,
    )


def inferred(edges: Sequence[InferredEdge], *, stored: bool) -> answers.RelationshipsAnswer:
    return answers.RelationshipsAnswer(
        action="infer",
        relationships=[
            answers.RelationshipItem(
                id=edge.id,
                from_entity=edge.source.id,
                to_entity=edge.target.id,
                type=edge.type,
                confidence=round(edge.confidence, 3),
                method=edge.method,
                evidence=edge.evidence,
            )
            for edge in edges
        ],
        total=len(edges),
        method="local",
        stored=stored,
    )


def neighbors(start: Entity, found: Sequence[Neighbour]) -> answers.GraphAnswer:
    return answers.GraphAnswer(
        operation="neighbors",
        entity=entity_item(start),
        entities=[_near(one.entity, one.distance) for one in found],
        hops=[_hop(one.step) for one in found],
    )


def route(way: Route) -> answers.GraphAnswer:
    return answers.GraphAnswer(
        operation="path",
        found=way.found,
        entities=[_near(one) for one in way.entities] if way.found else None,
        hops=[_hop(step) for step in way.steps],
    )


def stats(found: GraphStats) -> answers.GraphAnswer:
    return answers.GraphAnswer(
        operation="stats",
        counts={
            "entities": found.entities,
            "relationships": found.relationships,
            "mentions": found.mentions,
            "memories": found.memories,
            "orphans": found.orphans,
        },
        entity_types=dict(found.by_entity_type),
        relationship_types=dict(found.by_relationship_type),
        entities=[_near(entity) for entity, _ in found.busiest],
    )


def _hop(step: Step) -> answers.HopItem:
    return answers.HopItem(
        from_entity=step.from_id,
        to_entity=step.to_id,
        type=step.edge.type,
        direction="outgoing" if step.forward else "incoming",
        confidence=round(step.edge.confidence, 3),
    )
