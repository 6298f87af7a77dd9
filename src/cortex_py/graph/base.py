"""What all operations on the graph share: whose graph it is, how an entity is found, how rows become values."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Sequence
from contextlib import contextmanager
from datetime import datetime

from ..clock import Clock, from_micros, to_micros
from ..errors import EntityNotFound, InvalidInput, RelationshipNotFound
from ..ids import IdMaker
from ..memory.filters import parse_moment
from ..memory.place import Place
from ..store.database import Session
from ..store.graph import EntityRow, RelationshipRow, Sight
from ..store.store import Store
from . import traverse
from .checks import check_entities
from .naming import keys_of
from .values import Entity, Extraction, Relationship

__all__ = ["NAME_BYTES", "PER_ENTITY", "GraphBase", "entity_from", "relationship_from"]

# How many edges of a hub are walked, in each direction: the surest.
PER_ENTITY = 100
# No name is longer, and the time to look for one grows with the square of its length.
NAME_BYTES = 2_000


class GraphBase:
    """The graph that a caller at one place sees: of the project, of the person, of the organisation."""

    def __init__(
        self, store: Store, clock: Clock, ids: IdMaker, place: Place, read: Callable[[str], Extraction]
    ) -> None:
        """`read` is the extraction, with what is known of the project."""
        self._store = store
        self._table = store.graph
        self._clock = clock
        self._ids = ids
        self._place = place
        self._read = read

    def moment(self, text: str, field: str) -> datetime:
        """A moment as callers write it: an ISO date or time, or how long ago."""
        try:
            return parse_moment(text, now=self._clock.now())
        except InvalidInput as error:
            raise InvalidInput(error.message, remedy=error.remedy, field=field) from None

    @contextmanager
    def _reading(self) -> Iterator[Session]:
        self._place.arrive()
        with self._store.database.read() as session:
            yield session

    @contextmanager
    def _writing(self) -> Iterator[tuple[Session, int]]:
        self._place.arrive()
        with self._store.database.write() as session:
            yield session, to_micros(self._clock.now())

    def _sight(self) -> Sight:
        return Sight(to_micros(self._clock.now()), self._place.git_branch())

    def _find(self, session: Session, ref: str, field: str = "entity_id") -> tuple[str, str]:
        """The space and id of an entity, by id, name or other spelling; the project's comes before the person's.

        `field` is the argument to blame.
        """
        text = ref.strip()
        spaces = self._place.spaces() if len(text) <= NAME_BYTES else ()
        for space in spaces:
            if self._table.entity(session, space, text):
                return space, text
        for space in spaces:
            keys = keys_of(text)
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

    def _both(self, session: Session, source: str, target: str) -> tuple[str, tuple[str, str]]:
        (space, a), (other, b) = self._find(session, source, "from_entity"), self._find(session, target, "to_entity")
        if space != other:
            raise InvalidInput("The entities lie in different domains.", field="to_entity")
        return space, (a, b)

    def _several(self, session: Session, refs: Sequence[str]) -> list[tuple[str, str]]:
        """The space and id of each of at least two entities, each once."""
        check_entities(refs)
        return list(dict.fromkeys(self._find(session, ref, "entity_ids") for ref in dict.fromkeys(refs)))

    def _fact(self, session: Session, relationship_id: str) -> RelationshipRow:
        """A relationship that is on record, and not of a memory that is not seen."""
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
    ) -> traverse.Edges:
        """The edges at entities; of a hub, unless all are wanted, only the surest."""
        sight, moment = self._sight(), None if as_of is None else to_micros(as_of)
        return lambda ids: self._table.neighbours(
            session, space, ids, sight, types=kinds, as_of=moment, per_entity=per_entity
        )

    def _rows(self, session: Session, space: str, ids: Sequence[str]) -> dict[str, EntityRow]:
        return self._table.entities(session, space, ids)

    def _entities(self, session: Session, space: str, ids: Sequence[str]) -> dict[str, Entity]:
        rows = self._rows(session, space, ids)
        return {one.id: one for one in self._counted(session, space, [rows[i] for i in ids if i in rows])}

    def _counted(self, session: Session, space: str, rows: Sequence[EntityRow]) -> list[Entity]:
        counts = self._table.mention_counts(session, space, [row.id for row in rows], self._sight())
        return [entity_from(row, counts[row.id]) for row in rows]

    def _add_facts(
        self,
        session: Session,
        space: str,
        facts: Iterable[tuple[str, str, str, float, str, str]],
        at: int,
    ) -> list[str]:
        """Put facts on record that no memory answers for; returns their ids. One that is there stays as it is."""
        wanted = [fact for fact in facts if fact[0] != fact[1]]
        ends = sorted({end for fact in wanted for end in fact[:2]})
        known = {
            (row.source_id, row.target_id, row.type): row.id
            for row in self._table.between(session, space, ends, self._sight())
            if row.num is None
        }
        # Backwards, so that of two alike the first stays.
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
