"""Walks over the graph: who is near an entity, and the shortest way from one to another.

The graph is only ever seen through a function that gives the edges at some entities, in both directions, in any
order. Results do not depend on that order: of several edges that lead to an entity the surest counts, then the one
with the smaller id.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Protocol

__all__ = [
    "MAX_DEPTH",
    "Edges",
    "Hop",
    "Joining",
    "Neighbourhood",
    "Reached",
    "Search",
    "Step",
    "neighbours",
    "path",
    "search",
]

MAX_DEPTH = 3
# How many entities a walk takes in before it stops.
NEAR_LIMIT = 1_000
SEARCH_LIMIT = 50_000
# How many of a ring are looked beyond at once.
_PART = 64
# Up to how many pairs of entities are looked up one by one.
_JOINED = 20_000


class Hop(Protocol):
    """An edge as it is stored. A relationship is one, and so is the store's short form of it."""

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
Joining = Callable[[Sequence[str], Sequence[str]], Sequence[Hop]]


@dataclass(frozen=True, slots=True)
class Step:
    """An edge as it is walked; `forward` where that is the direction in which it is stored."""

    edge: Hop
    from_id: str
    to_id: str
    forward: bool


@dataclass(frozen=True, slots=True)
class Reached:
    """An entity that was reached, over how many edges, and the last of them."""

    id: str
    distance: int
    via: Step


@dataclass(frozen=True, slots=True)
class Neighbourhood:
    """Entities near one, nearest first, and the surest before others; `complete` is False where some are left out."""

    reached: tuple[Reached, ...]
    complete: bool


@dataclass(frozen=True, slots=True)
class Search:
    """The way that was found, if any; without one, `complete` tells whether there really is none."""

    steps: tuple[Step, ...] | None
    complete: bool


_Sides = tuple[dict[str, Step | None], dict[str, Step | None]]


def neighbours(start: str, edges: Edges, depth: int = 1, limit: int = NEAR_LIMIT) -> Neighbourhood:
    """Entities within `depth` edges of one (3 at most), breadth first, `limit` of them at most.

    The surest of a ring are looked beyond first, and once there are enough the others are not.
    """
    seen, frontier = {start}, [start]
    found: list[Reached] = []
    for distance in range(1, min(depth, MAX_DEPTH) + 1):
        room = limit - len(found)
        beyond: dict[str, Step] = {}
        asked = 0
        while asked < len(frontier) and len(beyond) <= room:
            part = frontier[asked : asked + _PART]
            _outward(edges(part), part, seen, beyond)
            asked += len(part)
        steps = sorted(beyond.values(), key=_strength)
        found += [Reached(step.to_id, distance, step) for step in steps[:room]]
        if len(steps) > room:
            return Neighbourhood(tuple(found), complete=False)
        frontier = [step.to_id for step in steps]
        seen.update(frontier)
    return Neighbourhood(tuple(found), complete=True)


def path(
    a: str,
    b: str,
    edges: Edges,
    max_hops: int = 5,
    limit: int = SEARCH_LIMIT,
    *,
    some_edges: Edges | None = None,
    joining: Joining | None = None,
) -> tuple[Step, ...] | None:
    """The shortest way from one entity to another, whichever way the edges point; None where none was found."""
    return search(a, b, edges, max_hops, limit, some_edges=some_edges, joining=joining).steps


def search(
    a: str,
    b: str,
    edges: Edges,
    max_hops: int = 5,
    limit: int = SEARCH_LIMIT,
    *,
    some_edges: Edges | None = None,
    joining: Joining | None = None,
) -> Search:
    """`path`, from both ends at once, with whether all that `max_hops` allows was looked at.

    Two ways to be quick where there are hubs: `some_edges` may leave edges of theirs out, for a way found with it is
    as good as any if there is none that is shorter; `joining` gives the edges between two sets of entities, for the
    last hop is between two rings and need not go over all that lies beyond one of them.
    """
    if some_edges is None:
        return _search(a, b, edges, max_hops, limit, joining)
    quick = _search(a, b, some_edges, max_hops, limit, joining)
    if quick.steps == ():
        return quick
    # Begin where there is less to see.
    first = int(len(some_edges([b])) < len(some_edges([a])))
    if quick.steps is None:
        return _search(a, b, edges, max_hops, limit, joining, first)
    shorter = _search(a, b, edges, len(quick.steps) - 1, limit, joining, first)
    return quick if shorter.steps is None else shorter


def _search(a: str, b: str, edges: Edges, max_hops: int, limit: int, joining: Joining | None, first: int = 0) -> Search:
    if a == b:
        return Search((), complete=True)
    # For each side the step by which an entity was reached; the ends themselves have none.
    sides: _Sides = {a: None}, {b: None}
    frontiers = [[a], [b]]
    for hop in range(max_hops):
        if joining is not None and hop == max_hops - 1 and len(frontiers[0]) * len(frontiers[1]) <= _JOINED:
            return Search(_joined(sides, joining(*frontiers)), complete=True)
        side = first if len(frontiers[first]) <= len(frontiers[1 - first]) else 1 - first
        mine, other = sides[side], sides[1 - side]
        steps: dict[str, Step] = {}
        _outward(edges(frontiers[side]), frontiers[side], mine, steps)
        mine.update(steps)
        # Whole rings are compared, so every meeting is equally far and the shortest.
        met = [steps[one] for one in steps if one in other]
        if met:
            middle = min(met, key=_strength).to_id
            return Search((*_back(sides[0], middle), *_onward(sides[1], middle)), complete=True)
        frontiers[side] = sorted(steps)
        if not steps:
            return Search(None, complete=True)
        if len(sides[0]) + len(sides[1]) > limit:
            return Search(None, complete=False)
    return Search(None, complete=True)


def _outward(
    hops: Iterable[Hop], frontier: Sequence[str], seen: Mapping[str, object] | set[str], best: dict[str, Step]
) -> None:
    """Note in `best` the best step to each entity beyond the frontier."""
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
    """The way over the surest edge that leads from one ring to the other."""
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
    """From the first end to the middle."""
    steps: list[Step] = []
    at = middle
    while (step := side[at]) is not None:
        steps.append(step)
        at = step.from_id
    return steps[::-1]


def _onward(side: Mapping[str, Step | None], middle: str) -> list[Step]:
    """From the middle to the last end: the other side's steps, walked the other way."""
    steps: list[Step] = []
    at = middle
    while (step := side[at]) is not None:
        steps.append(Step(step.edge, step.to_id, step.from_id, forward=not step.forward))
        at = step.from_id
    return steps
