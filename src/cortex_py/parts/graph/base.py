"""What all graph operations share: visible spaces, finding an entity, checking arguments, turning rows into values."""

from __future__ import annotations

import json
import re
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from datetime import datetime
from typing import TYPE_CHECKING, TypeVar

from ...core.clock import Clock, IdMaker, from_micros, to_micros
from ...core.errors import EntityNotFound, InvalidInput, RelationshipNotFound
from ...core.graph_values import (
    ENTITY_TYPES,
    RELATIONSHIP_TYPES,
    Entity,
    EntityType,
    Relationship,
    RelationshipType,
    keys_of,
)
from ...core.memory.capture.capture import check_no_secret
from ...core.memory.recall.filters import parse_moment
from ...core.memory.spaces import Place
from ...core.store.database import Session
from ...core.store.graph.graph import EntityRow, RelationshipRow, Sight
from ...core.store.store import Store
from .reading.knowledge import ProjectNames

if TYPE_CHECKING:
    from ...core.llm.client import LanguageModel
    from .traversal import Edges

__all__ = [
    "NAME_BYTES", "GraphBase", "check_confidence", "check_entity_type", "check_limit", "check_properties",
    "check_relationship_type", "entity_from", "relationship_from",
]  # fmt: skip

# -- checks of arguments ------------------------------------------------------------------------

_Type = TypeVar("_Type", bound=str)

_LIMIT_MOST = 1_000
_OFFSET_MOST = 1_000_000
_ENTITIES_MOST = 1_000
_PROPERTY_BYTES = 65_536
# Not every client can read deeper nesting.
_PROPERTY_DEPTH = 32
_ID = re.compile(r"entity_[a-z0-9_]+")
# An id that says a name. A number at its end tells apart entities of one name, and is no part of it.
_NAMED_ID = re.compile(r"entity_([a-z0-9_]*[a-z])")


def check_entity_type(text: str, field: str = "entity_type") -> EntityType:
    return _check_type(text, ENTITY_TYPES, "entity", field)


def check_relationship_type(text: str, field: str = "relationship_type") -> RelationshipType:
    return _check_type(text, RELATIONSHIP_TYPES, "relationship", field)


def _check_type(text: str, known: Sequence[_Type], kind: str, field: str) -> _Type:
    """A type by its name, in any case."""
    for one in known:
        if text.strip().casefold() == one.casefold():
            return one
    raise InvalidInput(f"Unknown {kind} type {text[:40]!r}.", remedy=f"Choose one of {', '.join(known)}.", field=field)


def check_confidence(value: float, field: str = "min_confidence") -> None:
    if not 0.0 <= value <= 1.0:
        raise InvalidInput(f"The confidence {value} is out of range.", remedy="Give 0.0 to 1.0.", field=field)


def check_limit(limit: int, offset: int = 0) -> None:
    if not 1 <= limit <= _LIMIT_MOST:
        raise InvalidInput(f"The limit {limit} is out of range.", remedy=f"Give 1 to {_LIMIT_MOST}.", field="limit")
    if not 0 <= offset <= _OFFSET_MOST:
        raise InvalidInput(f"The offset {offset} is out of range.", remedy=f"Give 0 to {_OFFSET_MOST}.", field="offset")


def check_entities(refs: Sequence[str]) -> None:
    """At least two entities, and not too many."""
    if len(dict.fromkeys(refs)) < 2:
        raise InvalidInput("There are fewer than two entities.", remedy="Give two or more.", field="entity_ids")
    if len(refs) > _ENTITIES_MOST:
        raise InvalidInput(f"There are more than {_ENTITIES_MOST:,} entities.", field="entity_ids")


def check_properties(properties: Mapping[str, object] | None) -> dict[str, object]:
    """The properties as JSON stores them: keys become strings, tuples lists. The size is bounded."""
    try:
        text = json.dumps(dict(properties or {}), ensure_ascii=False, allow_nan=False)
        size = len(text.encode())
    except (TypeError, ValueError, RecursionError):
        raise InvalidInput(
            "The properties cannot be stored as JSON.",
            remedy="Use strings, numbers and lists of them.",
            field="properties",
        ) from None
    if size > _PROPERTY_BYTES:
        raise InvalidInput(f"The properties are larger than {_PROPERTY_BYTES:,} bytes.", field="properties")
    kept: dict[str, object] = json.loads(text)
    if _depth(kept) > _PROPERTY_DEPTH:
        raise InvalidInput(f"The properties are nested more than {_PROPERTY_DEPTH} deep.", field="properties")
    check_no_secret(text, "properties")
    return kept


def _depth(value: object) -> int:
    """The depth of nested objects and lists."""
    depth, inside = 0, [value]
    while inside := [one for one in inside if isinstance(one, dict | list)]:
        depth += 1
        inside = [item for one in inside for item in (one.values() if isinstance(one, dict) else one)]
    return depth


# The edges of a hub that are followed in each direction, by confidence.
PER_ENTITY = 100
# The longest name; the time to look one up grows with the square of its length.
NAME_BYTES = 2_000


class GraphBase:
    """The graph as the caller sees it: of the project, the person and the organisation."""

    def __init__(
        self,
        store: Store,
        clock: Clock,
        ids: IdMaker,
        place: Place,
        names: ProjectNames,
        model: Callable[[], LanguageModel | None] = lambda: None,
        finish_reading: Callable[[], object] = lambda: None,
    ) -> None:
        """`model` returns the language model, if one is configured; `finish_reading` reads what waits for the graph."""
        self._finish_reading = finish_reading
        self._model = model
        self._store = store
        self._table = store.graph
        self._clock = clock
        self._ids = ids
        self._place = place
        self._names = names

    def moment(self, text: str, field: str) -> datetime:
        """Parse a moment: an ISO date or time, or how long ago."""
        try:
            return parse_moment(text, now=self._clock.now())
        except InvalidInput as error:
            raise InvalidInput(error.message, remedy=error.remedy, field=field) from None

    @contextmanager
    def _reading(self) -> Iterator[Session]:
        self._place.sync_git_state()
        self._finish_reading()
        with self._store.database.read() as session:
            yield session

    @contextmanager
    def _writing(self) -> Iterator[tuple[Session, int]]:
        self._place.sync_git_state()
        self._finish_reading()
        with self._store.database.write(*self._place.spaces()) as session:
            yield session, to_micros(self._clock.now())

    def _sight(self) -> Sight:
        return Sight(to_micros(self._clock.now()), self._place.git_branch())

    def _find(self, session: Session, ref: str, field: str = "entity_id") -> tuple[str, str]:
        """The space and id of an entity, by id, name or other spelling; the project comes before the person.

        An id that no entity has is read as a name: `entity_postgres` names PostgreSQL. `field` is the argument that an
        error names.
        """
        text = ref.strip()
        spaces = self._place.spaces() if len(text) <= NAME_BYTES else ()
        for space in spaces:
            if found := self._by_id(session, space, text):
                return space, found
        named = _NAMED_ID.fullmatch(text)
        for name in (text, named[1].replace("_", " ")) if named else (text,):
            for space in spaces:
                keys = keys_of(name)
                rows = [row for key in keys for row in self._table.by_keys(session, space, [key]).get(key, ())]
                unique = {row.id: row for row in rows}
                if len(unique) == 1:
                    return space, next(iter(unique))
                if unique:
                    raise InvalidInput(
                        f"{text[:80]!r} may be {', '.join(sorted(unique))}.",
                        remedy="Give one of these ids.",
                        field=field,
                    )
        raise EntityNotFound(f"There is no entity {text[:80]!r}.", remedy="List them, or create it.", field=field)

    def _by_id(self, session: Session, space: str, identity: str) -> str | None:
        """The entity with an id, or the one that it was merged into, by however many merges."""
        seen: set[str] = set()
        at: str | None = identity
        while at is not None and at not in seen:
            if self._table.entity(session, space, at):
                return at
            seen.add(at)
            at = self._table.merged_into(session, space, at) if _ID.fullmatch(at) else None
        return None

    def _find_pair(self, session: Session, source: str, target: str) -> tuple[str, tuple[str, str]]:
        (space, a), (other, b) = self._find(session, source, "from_entity"), self._find(session, target, "to_entity")
        if space != other:
            raise InvalidInput("The entities are in different domains.", field="to_entity")
        return space, (a, b)

    def _find_all(self, session: Session, refs: Sequence[str]) -> list[tuple[str, str]]:
        """The spaces and ids of two or more entities, without duplicates."""
        check_entities(refs)
        return list(dict.fromkeys(self._find(session, ref, "entity_ids") for ref in dict.fromkeys(refs)))

    def _find_relationship(self, session: Session, relationship_id: str) -> RelationshipRow:
        """A current relationship, unless it comes from a memory that the caller does not see."""
        for space in self._place.spaces():
            row = self._table.relationship(session, space, relationship_id.strip(), self._sight())
            if row is not None and row.ended_at is None:
                return row
        raise RelationshipNotFound(f"There is no relationship {relationship_id[:80]!r}.", field="relationship_id")

    def _edges(
        self,
        session: Session,
        space: str,
        kinds: Sequence[str] = (),
        as_of: datetime | None = None,
        per_entity: int | None = PER_ENTITY,
    ) -> Edges:
        """A function that returns the edges of entities; of a hub only the surest, unless `per_entity` is None."""
        sight, moment = self._sight(), None if as_of is None else to_micros(as_of)
        return lambda ids: self._table.neighbours(
            session, space, ids, sight, types=kinds, as_of=moment, per_entity=per_entity
        )

    def _entities(self, session: Session, space: str, ids: Sequence[str]) -> dict[str, Entity]:
        rows = self._table.entities(session, space, ids)
        return {one.id: one for one in self._with_counts(session, space, [rows[i] for i in ids if i in rows])}

    def _with_counts(self, session: Session, space: str, rows: Sequence[EntityRow]) -> list[Entity]:
        counts = self._table.mention_counts(session, space, [row.id for row in rows], self._sight())
        return [entity_from(row, counts[row.id]) for row in rows]

    def _add_facts(
        self, session: Session, space: str, facts: Iterable[tuple[str, str, str, float, str, str]], at: int
    ) -> list[str]:
        """Store facts that do not come from a memory; returns their ids. Existing facts stay as they are."""
        wanted = [fact for fact in facts if fact[0] != fact[1]]
        ends = sorted({end for fact in wanted for end in fact[:2]})
        known = {
            (row.source_id, row.target_id, row.type): row.id
            for row in self._table.between(session, space, ends, self._sight())
            if row.num is None
        }
        # Reversed, so that the first of two equal facts wins.
        new = {fact[:3]: fact for fact in reversed(wanted) if fact[:3] not in known}
        rows = [
            RelationshipRow(
                space=space,
                id=f"relationship_{self._ids.new()}",
                source_id=a,
                target_id=b,
                type=kind,
                confidence=confidence,
                method=method,
                evidence=evidence,
                recorded_at=at,
            )
            for a, b, kind, confidence, method, evidence in new.values()
        ]
        self._table.add_relationships(session, rows)
        known |= {(row.source_id, row.target_id, row.type): row.id for row in rows}
        return [known[fact[:3]] for fact in wanted]


def entity_from(row: EntityRow, mentions: int) -> Entity:
    return Entity(
        id=row.id,
        space=row.space,
        name=row.name,
        type=row.type,  # type: ignore[arg-type]  # checked when it was written
        aliases=tuple(alias.alias for alias in row.aliases),
        properties=row.properties,
        mention_count=mentions,
        created_at=from_micros(row.created_at),
        updated_at=from_micros(row.updated_at),
    )


def relationship_from(row: RelationshipRow) -> Relationship:
    return Relationship(
        id=row.id,
        space=row.space,
        source_id=row.source_id,
        target_id=row.target_id,
        type=row.type,  # type: ignore[arg-type]  # checked when it was written
        confidence=row.confidence,
        method=row.method,
        evidence=row.evidence,
        properties=row.properties,
        valid_from=_moment(row.valid_from),
        valid_to=_moment(row.valid_to),
        recorded_at=from_micros(row.recorded_at),
        ended_at=_moment(row.ended_at),
    )


def _moment(micros: int | None) -> datetime | None:
    return None if micros is None else from_micros(micros)
