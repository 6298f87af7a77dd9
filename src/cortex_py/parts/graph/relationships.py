"""Operations on relationships: state, list as of a moment, end, and infer from memories."""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from datetime import datetime
from itertools import combinations
from typing import NamedTuple

from ...core.clock import to_micros
from ...core.errors import InvalidInput, LLMError
from ...core.graph_values import STATED_TYPES, Entity, EntityType, Relationship, RelationshipType
from ...core.memory.consolidation.merging import LOCAL, Method, check_method, choose_model
from ...core.security.permission import require_write
from ...core.store.database import Session
from ...core.store.graph.graph import RelationshipRow
from .base import GraphBase, check_confidence, check_limit, check_properties, check_relationship_type, relationship_from

__all__ = ["InferenceResult", "InferredPair", "RelationshipOperations", "infer"]

# The memories that a language model reads, and the characters of each.
_READ_MOST = 12
_READ_LENGTH = 2_000


@dataclass(frozen=True, slots=True)
class InferredEdge:
    """A relationship that memories suggest, with the evidence; `id` if it was stored."""

    source: Entity
    target: Entity
    type: RelationshipType
    confidence: float
    method: str
    evidence: str
    id: str | None


@dataclass(frozen=True, slots=True)
class InferenceResult:
    """Relationships between entities; `method` is `local`, or `hybrid` where a language model read memories too.

    `llm` is the model's reading alone.
    """

    edges: tuple[InferredEdge, ...]
    method: str
    warnings: tuple[str, ...] = ()


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
        """State a relationship between two existing entities, optionally for a period."""
        kind = check_relationship_type(type)
        extra = check_properties(properties)
        check_confidence(confidence, "confidence")
        if valid_from is not None and valid_to is not None and to_micros(valid_to) <= to_micros(valid_from):
            raise InvalidInput("It would end before it begins.", remedy="Give a later valid_to.", field="valid_to")
        with self._writing() as (session, at):
            space, (a, b) = self._find_pair(session, source, target)
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
            return relationship_from(self._find_relationship(session, relationship_id))

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
        """Current relationships, the surest first, and the total count; with `as_of`, those of that moment."""
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
        """Remove a relationship; with `ended` it stays in the history as one that held until then."""
        with self._writing() as (session, at):
            row = self._find_relationship(session, relationship_id)
            require_write(row.space)
            if ended is None:
                self._table.end_relationship(session, row.space, row.id, ended_at=at)
                return relationship_from(replace(row, ended_at=at))
            until = to_micros(ended)
            if row.valid_from is not None and until <= row.valid_from:
                raise InvalidInput("It would end before it begins.", remedy="Give a later valid_to.", field="valid_to")
            self._table.end_relationship(session, row.space, row.id, valid_to=until)
            return relationship_from(replace(row, valid_to=until))

    def infer(
        self, refs: Sequence[str], *, store: bool = False, min_confidence: float = 0.7, method: str = "auto"
    ) -> InferenceResult:
        """Infer relationships between entities from memories that state them or repeatedly mention both.

        `auto` adds what a language model reads in these memories, if one is configured; `llm` is the latter alone.
        """
        check_confidence(min_confidence)
        with self._reading() as session:
            places = self._find_all(session, refs)
        grouped = {space: [one for where, one in places if where == space] for space, _ in places}
        read, how, warnings = self._ask_model(grouped, check_method(method))
        found: list[InferredEdge] = []
        with self._writing() as (session, at):
            for space, ids in grouped.items():
                if store:
                    require_write(space)
                moment = at if store else None
                found += self._infer_in_space(session, space, ids, min_confidence, moment, read[space], how)
        return InferenceResult(tuple(found), how, warnings)

    def _ask_model(
        self, grouped: Mapping[str, Sequence[str]], method: Method
    ) -> tuple[dict[str, list[_Fact]], str, tuple[str, ...]]:
        """The facts that a language model reads in the memories of each space, how it was done, and warnings."""
        nothing: dict[str, list[_Fact]] = {space: [] for space in grouped}
        model = choose_model(self._model, method)
        if model is None:
            return nothing, LOCAL, ()
        from .model_reading import relate_by_model

        how = "llm" if method == "llm" else "hybrid"
        read = dict(nothing)
        for space, ids in grouped.items():
            # Nothing is asked inside a transaction.
            with self._reading() as session:
                memories = self._evidence(session, space, ids)
                entities = self._entities(session, space, ids)
            if not memories or len(entities) < 2:
                continue
            try:
                stated, name = relate_by_model(model, [entities[one] for one in ids if one in entities], memories)
            except LLMError as error:
                if method == "llm":
                    raise
                return nothing, LOCAL, (f"The language model was not used: {error}",)
            read[space] = [
                _Fact(one.source_id, one.target_id, one.type, one.confidence, name, one.evidence) for one in stated
            ]
        return read, how, ()

    def _evidence(self, session: Session, space: str, ids: Sequence[str]) -> dict[str, str]:
        """The texts of the memories that mention most of the entities, by id: of those with two at least."""
        mentioned = self._table.mentioned_by(session, space, self._sight(), ids)
        telling = sorted((one for one in mentioned if len(mentioned[one]) > 1), key=lambda one: -len(mentioned[one]))
        found = {one: self._store.memories.get(session, space, one) for one in telling[:_READ_MOST]}
        return {one: memory.content[:_READ_LENGTH] for one, memory in found.items() if memory}

    def _infer_in_space(
        self,
        session: Session,
        space: str,
        ids: Sequence[str],
        least: float,
        at: int | None,
        read: Sequence[_Fact],
        how: str,
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
            if how != "llm" or row.method.startswith("llm")
        ]
        edges += [fact for fact in read if fact[:3] not in {edge[:3] for edge in edges}]
        known = {edge[:3] for edge in edges}
        inferred = infer(memories, types, total=total, stated=wordings) if how != "llm" else ()
        for one in inferred:
            if (one.source_id, one.target_id, one.type) not in known:
                reason = f"named together in {one.support} memories: {', '.join(one.memory_ids[:3])}"
                edges.append(_Fact(one.source_id, one.target_id, one.type, one.confidence, one.method, reason))
        sure = [edge for edge in edges if edge.confidence >= least]
        new = [edge for edge in sure if edge.method.startswith(("comention", "llm"))]
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
    """The surest row for each fact."""
    best: dict[tuple[str, str, str], RelationshipRow] = {}
    for row in sorted(rows, key=lambda one: (-one.confidence, one.id)):
        best.setdefault((row.source_id, row.target_id, row.type), row)
    return list(best.values())


# -- relationships between entities that memories mention together ------------------------------

# A memory with more entities says little about any two of them; the rarest are used.
_PER_MEMORY = 40
_PAIRS = 500_000
_EVIDENCE = 20
# Above this log-likelihood ratio, chance explains a pair in fewer than 1 of 20 cases.
_LIKELY = 3.84


@dataclass(frozen=True, slots=True)
class InferredPair:
    """A relationship between two entities that are mentioned together, with the statistics behind it."""

    source_id: str
    target_id: str
    type: RelationshipType
    confidence: float
    support: int
    pmi: float
    likelihood: float
    memory_ids: tuple[str, ...]
    method: str


# The relationship that two types suggest without any statement, with the highest confidence. The first type is the
# source; other types get RelatesTo.
_SUGGESTED: dict[tuple[EntityType, EntityType], tuple[RelationshipType, float]] = {
    ("Person", "Technology"): ("Uses", 0.6),
    ("Organization", "Technology"): ("Uses", 0.6),
    ("File", "Technology"): ("Uses", 0.8),
    ("Technology", "Technology"): ("RelatesTo", 0.8),
}
_RELATED: tuple[RelationshipType, float] = ("RelatesTo", 0.7)
_STATED_WORTH = 0.95


def infer(
    memories: Mapping[str, Collection[str]],
    types: Mapping[str, EntityType],
    *,
    total: int | None = None,
    stated: Collection[tuple[str, str, RelationshipType]] = (),
    min_support: int = 2,
    min_pmi: float = 0.5,
    min_likelihood: float = _LIKELY,
    limit: int = 1_000,
) -> list[InferredPair]:
    """Pairs of entities that memories mention together more often than chance would, the surest first.

    `memories` has the entities of each memory; `total` also counts memories without any. `stated` are relationships
    that texts state: only these give a pair more than its types suggest, such as WorksAt.
    """
    held = {one: frozenset(ids & types.keys()) for one, ids in ((m, set(memories[m])) for m in sorted(memories))}
    count = max(total or 0, len(held))
    single = Counter(entity for ids in held.values() for entity in ids)
    pairs = _pairs(held, single, max(1, min_support))
    wordings: dict[tuple[str, str], list[tuple[str, str, RelationshipType]]] = {}
    for source, target, type in stated:
        wordings.setdefault((min(source, target), max(source, target)), []).append((source, target, type))
    found = []
    for (a, b), memory_ids in pairs.items():
        support = len(memory_ids)
        if support < min_support:
            continue
        pmi = math.log2(support * count / (single[a] * single[b]))
        likelihood = _likelihood(support, single[a], single[b], count)
        if pmi < min_pmi or likelihood < min_likelihood:
            continue
        source, target, type, worth, method = _typed(a, b, types, wordings.get((a, b), ()))
        confidence = worth * _strength(pmi, support, count) * support / (support + 2)
        found.append(
            InferredPair(
                source_id=source,
                target_id=target,
                type=type,
                confidence=round(confidence, 4),
                support=support,
                pmi=round(pmi, 4),
                likelihood=round(likelihood, 4),
                memory_ids=tuple(memory_ids[:_EVIDENCE]),
                method=method,
            )
        )
    found.sort(key=lambda one: (-one.confidence, -one.likelihood, one.source_id, one.target_id))
    return found[:limit]


def _pairs(
    held: Mapping[str, frozenset[str]], single: Mapping[str, int], least: int
) -> dict[tuple[str, str], list[str]]:
    """Pairs with the memories that mention both, without entities that are mentioned too rarely."""
    pairs: dict[tuple[str, str], list[str]] = {}
    for memory_id, ids in held.items():
        frequent = sorted((single[one], one) for one in ids if single[one] >= least)
        for pair in combinations(sorted(one for _, one in frequent[:_PER_MEMORY]), 2):
            pairs.setdefault(pair, []).append(memory_id)
        if len(pairs) > _PAIRS:
            # To bound memory, pairs seen once so far are dropped; a frequent one comes again.
            pairs = {pair: where for pair, where in pairs.items() if len(where) > 1}
    return pairs


def _strength(pmi: float, support: int, count: int) -> float:
    """How strongly a pair is associated, from 0.4 at chance to 1 for two that always occur together."""
    if support >= count:
        return 0.4
    return 0.4 + 0.6 * min(1.0, max(0.0, pmi / -math.log2(support / count)))


def _likelihood(both: int, a: int, b: int, count: int) -> float:
    """Dunning's log-likelihood ratio of a pair against independence."""
    cells = (both, a - both, b - both, count - a - b + both)
    expected = (a * b, a * (count - b), (count - a) * b, (count - a) * (count - b))
    return 2 * sum(seen * math.log(seen * count / chance) for seen, chance in zip(cells, expected, strict=True) if seen)


def _typed(
    a: str, b: str, types: Mapping[str, EntityType], wordings: Sequence[tuple[str, str, RelationshipType]]
) -> tuple[str, str, RelationshipType, float, str]:
    for source, target, type in sorted(wordings):
        sources, targets = STATED_TYPES.get(type, ((), ()))
        if types[source] in sources and types[target] in targets:
            return source, target, type, _STATED_WORTH, "comention+pattern"
    # Ordered by type, so that a person uses a technology and not the reverse.
    source, target = sorted((a, b), key=lambda one: (_rank(types[one]), one))
    type, worth = _SUGGESTED.get((types[source], types[target]), _RELATED)
    return source, target, type, worth, "comention"


def _rank(type: EntityType) -> int:
    return ("Person", "Organization", "File", "Technology", "Concept").index(type)
