"""The graph tools: one function for each, which goes by its action.

Parameters follow the published document; each function only calls the library and shapes the answer.
"""

from __future__ import annotations

from datetime import datetime
from typing import TYPE_CHECKING, Annotated, Any, Literal

from pydantic import Field

from ...graph.values import EntityType, RelationshipType
from .. import graph_answers as answers
from .. import graph_shapes as shapes
from .needed import needed

if TYPE_CHECKING:
    from ...app import Cortex

__all__ = ["GraphTools"]

EntityRef = Annotated[str | None, Field(description="Id or name")]
AsOf = Annotated[str | None, Field(description="As it was then, e.g. 2026-01-31")]


class GraphTools:
    """The tools over one opened Cortex."""

    def __init__(self, cortex: Cortex) -> None:
        self._cortex = cortex

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
    ) -> answers.GraphAnswer:
        graph, moment = self._cortex.graph, self._moment(as_of, "as_of")
        if operation == "neighbors":
            start, found = graph.neighbors(
                needed(entity_id, "entity_id"),
                depth=1 if depth is None else depth,
                relationship_types=relationship_types or (),
                as_of=moment,
                limit=limit,
            )
            return shapes.neighbors(start, found)
        if operation == "path":
            ends = needed(from_entity, "from_entity"), needed(to_entity, "to_entity")
            return shapes.route(graph.path(*ends, max_hops=max_hops, as_of=moment))
        if operation == "stats":
            return shapes.stats(graph.stats())
        content = graph.visualize(
            format=format,
            entity=entity_id,
            entity_types=entity_types or (),
            depth=2 if depth is None else depth,
            limit=limit,
            as_of=moment,
        )
        return answers.GraphAnswer(operation=operation, format=format, content=content)

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
    ) -> answers.EntitiesAnswer:
        graph = self._cortex.graph
        if action == "create":
            made = graph.create(needed(name, "name"), needed(entity_type, "entity_type"), properties=properties)
            return answers.EntitiesAnswer(action=action, entity=shapes.entity_item(made))
        if action == "get":
            return shapes.viewed(graph.get(needed(entity_id or name, "entity_id")))
        if action == "list":
            found, total = graph.entities(type=entity_type, limit=limit)
            return answers.EntitiesAnswer(
                action=action, entities=[shapes.listed_item(one) for one in found], total=total
            )
        if action == "delete":
            gone = graph.delete(needed(entity_id or name, "entity_id"))
            return answers.EntitiesAnswer(action=action, entity=shapes.entity_item(gone))
        if action == "extract":
            text = needed(content, "content")
            return shapes.extracted(graph.extract(text, store=store, min_confidence=min_confidence))
        refs = needed(entity_ids, "entity_ids")
        return shapes.merged(graph.merge(refs, canonical_name=canonical_name, dry_run=dry_run))

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
    ) -> answers.RelationshipsAnswer:
        graph = self._cortex.graph
        if action == "create":
            made = graph.relate(
                needed(from_entity, "from_entity"),
                needed(to_entity, "to_entity"),
                needed(relationship_type, "relationship_type"),
                properties=properties,
                valid_from=self._moment(valid_from, "valid_from"),
                valid_to=self._moment(valid_to, "valid_to"),
            )
            return answers.RelationshipsAnswer(action=action, relationship=shapes.relationship_item(made))
        if action == "get":
            fact = graph.relationship(needed(relationship_id, "relationship_id"))
            return answers.RelationshipsAnswer(action=action, relationship=shapes.relationship_item(fact))
        if action == "list":
            found, total = graph.relationships(
                source=from_entity,
                target=to_entity,
                type=relationship_type,
                as_of=self._moment(as_of, "as_of"),
                limit=limit,
            )
            items = [shapes.relationship_item(one) for one in found]
            return answers.RelationshipsAnswer(action=action, relationships=items, total=total)
        if action == "delete":
            gone = graph.unrelate(needed(relationship_id, "relationship_id"), ended=self._moment(valid_to, "valid_to"))
            return answers.RelationshipsAnswer(action=action, relationship=shapes.relationship_item(gone))
        edges = graph.infer(needed(entity_ids, "entity_ids"), store=store, min_confidence=min_confidence)
        return shapes.inferred(edges, stored=store)

    def _moment(self, text: str | None, field: str) -> datetime | None:
        return None if text is None else self._cortex.graph.moment(text, field=field)
