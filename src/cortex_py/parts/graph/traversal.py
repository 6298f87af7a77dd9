"""Traversal of the graph: neighbours, shortest paths, statistics, drawings, and expansion of recall hits.

The algorithms see the graph through a function that returns the edges of some entities in both directions, in any
order. Results do not depend on that order: of several edges to an entity the surest wins, then the smaller id.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from datetime import datetime
from functools import partial
from typing import Protocol

from ...core.clock import to_micros
from ...core.errors import InvalidInput
from ...core.graph_values import Entity, EntityType, Relationship
from ...core.memory.text import Chunk, snippet
from ...core.records import Hit
from ...core.store.database import Session
from . import draw
from .base import GraphBase, check_entity_type, check_limit, check_relationship_type, relationship_from

__all__ = [
    "Edges", "EdgesBetween", "GraphRoute", "Hop", "Picture", "Step", "TraversalOperations", "neighbours", "search",
]  # fmt: skip

MAX_DEPTH = 3
# How many entities a traversal visits before it stops.
NEAR_LIMIT = 1_000
SEARCH_LIMIT = 50_000
# How many entities of a ring are expanded at once.
_PART = 64
# Up to how many pairs of entities `EdgesBetween` is used.
_JOINED = 20_000


class Hop(Protocol):
    """A stored edge: a relationship, or the store's short form of one."""

    @property
    def id(self) -> str: ...
    @property
    def source_id(self) -> str: ...
    @property
    def target_id(self) -> str: ...
    @property
    def type(self) -> str: ...
    @property
    def confidence(self) -> float: ...


Edges = Callable[[Sequence[str]], Sequence[Hop]]
EdgesBetween = Callable[[Sequence[str], Sequence[str]], Sequence[Hop]]


@dataclass(frozen=True, slots=True)
class Step:
    """An edge as it is followed; `forward` if that is its stored direction."""

    edge: Hop
    from_id: str
    to_id: str
    forward: bool


@dataclass(frozen=True, slots=True)
class ReachedEntity:
    """A reached entity, its distance in edges, and the last step to it."""

    id: str
    distance: int
    via: Step


@dataclass(frozen=True, slots=True)
class Neighbourhood:
    """The entities near one, by distance and confidence; `complete` is False if the limit cut some off."""

    reached: tuple[ReachedEntity, ...]
    complete: bool


@dataclass(frozen=True, slots=True)
class GraphSearch:
    """The path, if one was found; otherwise `complete` says whether there is certainly none."""

    steps: tuple[Step, ...] | None
    complete: bool


_Sides = tuple[dict[str, Step | None], dict[str, Step | None]]


def neighbours(start: str, edges: Edges, depth: int = 1, limit: int = NEAR_LIMIT) -> Neighbourhood:
    """Up to `limit` entities within `depth` edges (3 at most), breadth first.

    The surest entities of a ring are expanded first, until there are enough.
    """
    seen, frontier = {start}, [start]
    found: list[ReachedEntity] = []
    for distance in range(1, min(depth, MAX_DEPTH) + 1):
        left = limit - len(found)
        beyond: dict[str, Step] = {}
        asked = 0
        while asked < len(frontier) and len(beyond) <= left:
            part = frontier[asked : asked + _PART]
            _outward(edges(part), part, seen, beyond)
            asked += len(part)
        steps = sorted(beyond.values(), key=_strength)
        found += [ReachedEntity(step.to_id, distance, step) for step in steps[:left]]
        if len(steps) > left:
            return Neighbourhood(tuple(found), complete=False)
        frontier = [step.to_id for step in steps]
        seen.update(frontier)
    return Neighbourhood(tuple(found), complete=True)


def search(
    a: str,
    b: str,
    edges: Edges,
    max_hops: int = 5,
    limit: int = SEARCH_LIMIT,
    *,
    some_edges: Edges | None = None,
    joining: EdgesBetween | None = None,
) -> GraphSearch:
    """Search for a path from both ends, and say whether the search covered all of `max_hops`.

    Two shortcuts help with hubs. `some_edges` may omit edges of hubs: a path found with it is the answer unless a
    shorter one exists. `joining` returns the edges between two sets of entities, so that the last hop does not have to
    expand a whole ring.
    """
    if some_edges is None:
        return _search(a, b, edges, max_hops, limit, joining)
    quick = _search(a, b, some_edges, max_hops, limit, joining)
    if quick.steps == ():
        return quick
    # Start at the end with fewer edges.
    first = int(len(some_edges([b])) < len(some_edges([a])))
    if quick.steps is None:
        return _search(a, b, edges, max_hops, limit, joining, first)
    shorter = _search(a, b, edges, len(quick.steps) - 1, limit, joining, first)
    return quick if shorter.steps is None else shorter


def _search(
    a: str, b: str, edges: Edges, max_hops: int, limit: int, joining: EdgesBetween | None, first: int = 0
) -> GraphSearch:
    if a == b:
        return GraphSearch((), complete=True)
    # For each side, the step to each reached entity; the end itself has none.
    sides: _Sides = {a: None}, {b: None}
    frontiers = [[a], [b]]
    for hop in range(max_hops):
        if joining is not None and hop == max_hops - 1 and len(frontiers[0]) * len(frontiers[1]) <= _JOINED:
            return GraphSearch(_joined(sides, joining(*frontiers)), complete=True)
        side = first if len(frontiers[first]) <= len(frontiers[1 - first]) else 1 - first
        mine, other = sides[side], sides[1 - side]
        steps: dict[str, Step] = {}
        _outward(edges(frontiers[side]), frontiers[side], mine, steps)
        mine.update(steps)
        # Whole rings are compared, so all meeting points give shortest paths.
        met = [steps[one] for one in steps if one in other]
        if met:
            middle = min(met, key=_strength).to_id
            return GraphSearch((*_back(sides[0], middle), *_onward(sides[1], middle)), complete=True)
        frontiers[side] = sorted(steps)
        if not steps:
            return GraphSearch(None, complete=True)
        if len(sides[0]) + len(sides[1]) > limit:
            return GraphSearch(None, complete=False)
    return GraphSearch(None, complete=True)


def _outward(
    hops: Iterable[Hop], frontier: Sequence[str], seen: Mapping[str, object] | set[str], best: dict[str, Step]
) -> None:
    """Record in `best` the best step to each entity beyond the frontier."""
    inside = set(frontier)
    for hop in hops:
        source, target = hop.source_id, hop.target_id
        if source in inside and target not in seen:
            known = best.get(target)
            if known is None or _surer(hop, known.edge):
                best[target] = Step(hop, source, target, forward=True)
        elif target in inside and source not in seen:
            known = best.get(source)
            if known is None or _surer(hop, known.edge):
                best[source] = Step(hop, target, source, forward=False)


def _joined(sides: _Sides, hops: Iterable[Hop]) -> tuple[Step, ...] | None:
    """The path over the surest edge between the two rings."""
    best: Hop | None = None
    for hop in hops:
        if best is None or _surer(hop, best):
            best = hop
    if best is None:
        return None
    forward = best.source_id in sides[0] and best.target_id in sides[1]
    ends = (best.source_id, best.target_id) if forward else (best.target_id, best.source_id)
    return (*_back(sides[0], ends[0]), Step(best, *ends, forward=forward), *_onward(sides[1], ends[1]))


def _surer(hop: Hop, known: Hop) -> bool:
    return hop.confidence > known.confidence or (hop.confidence == known.confidence and hop.id < known.id)


def _strength(step: Step) -> tuple[float, str, str]:
    return -step.edge.confidence, step.edge.id, step.to_id


def _back(side: Mapping[str, Step | None], middle: str) -> list[Step]:
    """The steps from the first end to the middle."""
    steps: list[Step] = []
    at = middle
    while (step := side[at]) is not None:
        steps.append(step)
        at = step.from_id
    return steps[::-1]


def _onward(side: Mapping[str, Step | None], middle: str) -> list[Step]:
    """The steps from the middle to the last end: those of the other side, reversed."""
    steps: list[Step] = []
    at = middle
    while (step := side[at]) is not None:
        steps.append(Step(step.edge, step.to_id, step.from_id, forward=not step.forward))
        at = step.from_id
    return steps


# Operations of the graph service

_FROM = 5
_LIMIT = 5
# The worth of a tie relative to the score of its hit: by a shared entity, and by a neighbour of one.
_NAMED, _NEAR = 0.5, 0.25
# An entity that a larger share of the memories mention is ignored.
_COMMON = 0.2
_NEIGHBOURS = 100
_DRAWN = 2_000
_BUSIEST = 10
_MOST_HOPS = 10
_FORMATS = {"mermaid": draw.mermaid, "dot": draw.dot, "json": draw.as_json}


@dataclass(frozen=True, slots=True)
class Neighbour:
    entity: Entity
    distance: int
    step: Step


@dataclass(frozen=True, slots=True)
class GraphRoute:
    """A path between two entities; `entities` includes both ends."""

    found: bool
    entities: tuple[Entity, ...]
    steps: tuple[Step, ...]


@dataclass(frozen=True, slots=True)
class Picture:
    """A part of the graph to draw, around `centre` if there is one; not `complete` if a limit cut entities off."""

    nodes: tuple[Entity, ...]
    edges: tuple[Relationship, ...]
    centre: str | None
    complete: bool


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


class TraversalOperations(GraphBase):
    def neighbors(
        self,
        ref: str,
        *,
        depth: int = 1,
        relationship_types: Sequence[str] = (),
        as_of: datetime | None = None,
        limit: int = 200,
    ) -> tuple[Entity, list[Neighbour]]:
        """The entities within `depth` hops (3 at most), nearest first."""
        if not 1 <= depth <= MAX_DEPTH:
            raise InvalidInput(f"The depth {depth} is out of range.", remedy=f"Give 1 to {MAX_DEPTH}.", field="depth")
        check_limit(limit)
        kinds = [check_relationship_type(one) for one in relationship_types]
        with self._reading() as session:
            space, identity = self._find(session, ref)
            found = neighbours(identity, self._edges(session, space, kinds, as_of), depth, limit)
            entities = self._entities(session, space, [identity, *(one.id for one in found.reached)])
        return entities[identity], [Neighbour(entities[one.id], one.distance, one.via) for one in found.reached]

    def path(self, source: str, target: str, *, max_hops: int = 5, as_of: datetime | None = None) -> GraphRoute:
        """The shortest path between two entities, in either direction of the relationships."""
        if not 1 <= max_hops <= _MOST_HOPS:
            raise InvalidInput(
                f"{max_hops} hops are out of range.", remedy=f"Give 1 to {_MOST_HOPS}.", field="max_hops"
            )
        with self._reading() as session:
            space, (a, b) = self._find_pair(session, source, target)
            sight, moment = self._sight(), None if as_of is None else to_micros(as_of)
            steps = search(
                a,
                b,
                self._edges(session, space, as_of=as_of, per_entity=None),
                max_hops,
                some_edges=self._edges(session, space, as_of=as_of),
                joining=lambda ids, others: self._table.joining(session, space, ids, others, sight, as_of=moment),
            ).steps
            on_way = [a, *(step.to_id for step in steps)] if steps is not None else [a, b]
            entities = self._entities(session, space, on_way)
        return GraphRoute(steps is not None, tuple(entities[one] for one in on_way), steps or ())

    def stats(self) -> GraphStats:
        """Counts by type, the entities with most relationships, and the number of orphans."""
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
        """Draw the graph, or the part around one entity, as Mermaid, Graphviz DOT or JSON."""
        if format not in _FORMATS:
            raise InvalidInput(
                f"Unknown format {format[:40]!r}.", remedy=f"Choose one of {', '.join(_FORMATS)}.", field="format"
            )
        check_limit(limit)
        kinds = [check_entity_type(one) for one in entity_types]
        drawn = self._drawn(entity, kinds, depth, _DRAWN if entity is None else NEAR_LIMIT, as_of)
        return _FORMATS[format](
            *_with_unique_ids(drawn.nodes, drawn.edges), limit=limit, types=kinds, centre=drawn.centre
        )

    def picture(
        self, *, entity: str | None = None, entity_types: Sequence[str] = (), depth: int = 1, limit: int = 200
    ) -> Picture:
        """The entities around one, or those that most memories name, and one edge for each pair and type.

        Of several facts that say the same, the surest is kept; `facts_between` has them all.
        """
        if not 1 <= limit <= _DRAWN:
            raise InvalidInput(f"The limit {limit} is out of range.", remedy=f"Give 1 to {_DRAWN}.", field="limit")
        kinds = [check_entity_type(one) for one in entity_types]
        drawn = self._drawn(entity, kinds, depth, limit, None)
        nodes, facts = _with_unique_ids(drawn.nodes, drawn.edges)
        wanted = [one for one in nodes if not kinds or one.type in kinds or one.id == drawn.centre][:limit]
        shown = {one.id for one in wanted}
        edges: dict[tuple[str, str, str], Relationship] = {}
        for fact in facts:
            key = (fact.source_id, fact.target_id, fact.type)
            if (
                fact.source_id in shown
                and fact.target_id in shown
                and (key not in edges or fact.confidence > edges[key].confidence)
            ):
                edges[key] = fact
        return Picture(tuple(wanted), tuple(edges.values()), drawn.centre, drawn.complete)

    def facts_between(self, one: str, other: str, *, limit: int = 50) -> list[tuple[Relationship, str | None]]:
        """The facts between two entities, the surest first, each with the id of the memory that states it, if any."""
        check_limit(limit)
        with self._reading() as session:
            space, (a, b) = self._find_pair(session, one, other)
            rows = self._table.between(session, space, [a, b], self._sight())
            rows = sorted(rows, key=lambda row: (-row.confidence, row.id))[:limit]
            nums = [row.num for row in rows if row.num is not None]
            stated = {num: memory.id for num, _, _, memory in self._store.memories.by_numbers(session, space, nums)}
        return [(relationship_from(row), stated.get(row.num) if row.num is not None else None) for row in rows]

    def _drawn(
        self, entity: str | None, kinds: Sequence[EntityType], depth: int, most: int, as_of: datetime | None
    ) -> Picture:
        """The part of the graph around an entity, or around the names that most memories have."""
        if entity is not None and not 1 <= depth <= MAX_DEPTH:
            raise InvalidInput(f"The depth {depth} is out of range.", remedy=f"Give 1 to {MAX_DEPTH}.", field="depth")
        nodes: list[Entity] = []
        edges: list[Relationship] = []
        centre, complete = None, True
        moment = None if as_of is None else to_micros(as_of)
        with self._reading() as session:
            if entity is not None:
                space, centre = self._find(session, entity)
                found = neighbours(centre, self._edges(session, space, as_of=as_of), depth, most)
                complete = found.complete
                nodes = list(self._entities(session, space, [centre, *(one.id for one in found.reached)]).values())
            for space in self._place.spaces():
                own = [one.id for one in nodes if one.space == space]
                if entity is None:
                    rows = self._table.most_named(session, space, self._sight(), kinds, most)
                    complete = complete and len(rows) < most
                    nodes += self._with_counts(session, space, rows)
                    own = [row.id for row in rows]
                if own:
                    edges += map(
                        relationship_from, self._table.between(session, space, own, self._sight(), as_of=moment)
                    )
        return Picture(tuple(nodes), tuple(edges), centre, complete)

    def expand(self, hits: Sequence[Hit], *, limit: int = _LIMIT) -> list[Hit]:
        """Further memories, best first, that share rare entities with the first hits or mention their neighbours."""
        known = {hit.memory.id for hit in hits}
        strength: dict[str, float] = {}
        spaces: dict[str, str] = {}
        found: dict[str, Hit] = {}
        with self._reading() as session:
            for space in self._place.spaces():
                for memory_id, weight in self._tied(session, space, hits[:_FROM]).items():
                    if memory_id not in known:
                        strength[memory_id] = max(weight, strength.get(memory_id, 0.0))
                        spaces[memory_id] = space
            for memory_id in sorted(strength, key=lambda one: (-strength[one], one))[:limit]:
                memory = self._store.memories.get(session, spaces[memory_id], memory_id)
                if memory is not None:
                    whole = Chunk(0, len(memory.content))
                    passage = partial(snippet, memory.content, whole, None, 200)
                    found[memory_id] = Hit(memory, strength[memory_id], strength[memory_id], passage)
        return list(found.values())

    def _tied(self, session: Session, space: str, hits: Sequence[Hit]) -> dict[str, float]:
        """The score of each memory that is tied to the hits, at most half the best hit's score."""
        sight = self._sight()
        everything = self._table.mentioned_by(session, space, sight)
        named = {hit.memory.id: set(everything.get(hit.memory.id, ())) for hit in hits}
        total = max(1, len(everything))
        weights: dict[str, float] = {}
        for hit in hits:
            for entity in named[hit.memory.id]:
                weights[entity] = max(weights.get(entity, 0.0), _NAMED * hit.score)
        if not weights:
            return {}
        edges = self._table.neighbours(session, space, list(weights), sight, per_entity=_NEIGHBOURS)
        for edge in edges:
            for near, far in ((edge.source_id, edge.target_id), (edge.target_id, edge.source_id)):
                if near in weights and far not in weights:
                    weights[far] = _NEAR / _NAMED * weights[near] * edge.confidence
        spread: dict[str, int] = {}
        for ids in everything.values():
            for entity in set(ids) & weights.keys():
                spread[entity] = spread.get(entity, 0) + 1
        rare = {one for one, count in spread.items() if count <= max(3.0, _COMMON * total)}
        rarity = {one: math.log1p(total / spread[one]) / math.log1p(total) for one in rare}
        return {
            memory_id: max(weights[one] * rarity[one] for one in shared)
            for memory_id, ids in everything.items()
            if (shared := set(ids) & rare)
        }


def _with_unique_ids(nodes: Sequence[Entity], edges: Sequence[Relationship]) -> tuple[list[Entity], list[Relationship]]:
    """Make ids unique across spaces; the first space keeps the plain ones."""
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
