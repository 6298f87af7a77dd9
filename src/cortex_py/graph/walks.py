"""Walks: what is near an entity, ways between two, counts over all, and pictures."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from datetime import datetime

from ..clock import to_micros
from ..errors import InvalidInput
from . import draw, traverse
from .base import GraphBase, relationship_from
from .checks import check_entity_type, check_limit, check_relationship_type
from .values import Entity, Relationship

__all__ = ["GraphStats", "Neighbour", "Route", "WalkOperations"]

_DRAWN = 2_000
_BUSIEST = 10
_MOST_HOPS = 10
_FORMATS = {"mermaid": draw.mermaid, "dot": draw.dot, "json": draw.as_json}


@dataclass(frozen=True, slots=True)
class Neighbour:
    entity: Entity
    distance: int
    step: traverse.Step


@dataclass(frozen=True, slots=True)
class Route:
    """A way from one entity to another, hop by hop; `entities` are all on the way, both ends included."""

    found: bool
    entities: tuple[Entity, ...]
    steps: tuple[traverse.Step, ...]


@dataclass(frozen=True, slots=True)
class GraphStats:
    entities: int
    relationships: int
    mentions: int
    memories: int
    by_entity_type: Mapping[str, int]
    by_relationship_type: Mapping[str, int]
    busiest: tuple[tuple[Entity, int], ...]
    orphans: int


class WalkOperations(GraphBase):
    def neighbors(
        self,
        ref: str,
        *,
        depth: int = 1,
        relationship_types: Sequence[str] = (),
        as_of: datetime | None = None,
        limit: int = 200,
    ) -> tuple[Entity, list[Neighbour]]:
        """The entities within so many hops (3 at most), nearest first."""
        if not 1 <= depth <= traverse.MAX_DEPTH:
            raise InvalidInput(
                f"The depth {depth} is out of range.", remedy=f"Give 1 to {traverse.MAX_DEPTH}.", field="depth"
            )
        check_limit(limit)
        kinds = [check_relationship_type(one) for one in relationship_types]
        with self._reading() as session:
            space, identity = self._find(session, ref)
            found = traverse.neighbours(identity, self._edges(session, space, kinds, as_of), depth, limit)
            entities = self._entities(session, space, [identity, *(one.id for one in found.reached)])
        return entities[identity], [Neighbour(entities[one.id], one.distance, one.via) for one in found.reached]

    def path(self, source: str, target: str, *, max_hops: int = 5, as_of: datetime | None = None) -> Route:
        """The shortest way from one entity to another, whichever way the relationships point."""
        if not 1 <= max_hops <= _MOST_HOPS:
            raise InvalidInput(
                f"{max_hops} hops are out of range.", remedy=f"Give 1 to {_MOST_HOPS}.", field="max_hops"
            )
        with self._reading() as session:
            space, (a, b) = self._both(session, source, target)
            sight, moment = self._sight(), None if as_of is None else to_micros(as_of)
            steps = traverse.path(
                a,
                b,
                self._edges(session, space, as_of=as_of, per_entity=None),
                max_hops,
                some_edges=self._edges(session, space, as_of=as_of),
                joining=lambda ids, others: self._table.joining(session, space, ids, others, sight, as_of=moment),
            )
            on_way = [a, *(step.to_id for step in steps)] if steps is not None else [a, b]
            entities = self._entities(session, space, on_way)
        return Route(steps is not None, tuple(entities[one] for one in on_way), steps or ())

    def stats(self) -> GraphStats:
        """How much the graph holds, by type, and what stands out."""
        entities: dict[str, int] = {}
        relationships: dict[str, int] = {}
        mentions = memories = orphans = 0
        busiest: list[tuple[Entity, int]] = []
        with self._reading() as session:
            for space in self._place.spaces():
                counts = self._table.counts(session, space, self._sight())
                _add(entities, counts.entities)
                _add(relationships, counts.relationships)
                mentions += counts.mentions
                memories += counts.memories
                orphans += len(self._table.orphans(session, space, self._sight()))
                degrees = dict(self._table.degrees(session, space, self._sight(), limit=_BUSIEST))
                found = self._entities(session, space, list(degrees))
                busiest += [(found[one], count) for one, count in degrees.items() if one in found]
        busiest.sort(key=lambda one: (-one[1], one[0].id))
        return GraphStats(
            sum(entities.values()),
            sum(relationships.values()),
            mentions,
            memories,
            entities,
            relationships,
            tuple(busiest[:_BUSIEST]),
            orphans,
        )

    def visualize(
        self,
        *,
        format: str = "mermaid",
        entity: str | None = None,
        entity_types: Sequence[str] = (),
        depth: int = 2,
        limit: int = 50,
        as_of: datetime | None = None,
    ) -> str:
        """A picture of the graph, or of what lies around one entity: Mermaid, Graphviz DOT or JSON."""
        if format not in _FORMATS:
            raise InvalidInput(
                f"Unknown format {format[:40]!r}.", remedy=f"Choose one of {', '.join(_FORMATS)}.", field="format"
            )
        check_limit(limit)
        kinds = [check_entity_type(one) for one in entity_types]
        nodes: list[Entity] = []
        edges: list[Relationship] = []
        centre = None
        if entity is not None:
            start, near = self.neighbors(entity, depth=depth, as_of=as_of, limit=1_000)
            centre, nodes = start.id, [start, *(one.entity for one in near)]
        with self._reading() as session:
            for space in self._place.spaces():
                own = [one.id for one in nodes if one.space == space]
                if entity is None:
                    rows = self._table.busiest_entities(session, space, self._sight(), kinds, _DRAWN)
                    nodes += self._counted(session, space, rows)
                    own = [row.id for row in rows]
                moment = None if as_of is None else to_micros(as_of)
                edges += map(relationship_from, self._table.between(session, space, own, self._sight(), as_of=moment))
        return _FORMATS[format](*_told_apart(nodes, edges), limit=limit, types=kinds, centre=centre)


def _told_apart(nodes: Sequence[Entity], edges: Sequence[Relationship]) -> tuple[list[Entity], list[Relationship]]:
    """Entities of one id in several spaces under ids of their own; the first space keeps the plain ones."""
    places: dict[str, str] = {}
    for one in nodes:
        places.setdefault(one.id, one.space)

    def named(space: str, identity: str) -> str:
        return identity if places.get(identity, space) == space else f"{space}/{identity}"

    return [replace(one, id=named(one.space, one.id)) for one in nodes], [
        replace(one, source_id=named(one.space, one.source_id), target_id=named(one.space, one.target_id))
        for one in edges
    ]


def _add(total: dict[str, int], counts: Mapping[str, int]) -> None:
    for name, count in counts.items():
        total[name] = total.get(name, 0) + count
