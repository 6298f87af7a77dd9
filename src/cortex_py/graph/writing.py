"""What memories name and state, written into the graph in the memory's own transaction.

Reading a text happens before the transaction, joining its names to entities inside it: only there is it certain which
entities exist.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence

from ..clock import Clock, to_micros
from ..ids import IdMaker
from ..memory.annotating import Stored
from ..records import Memory
from ..store.database import Session
from ..store.graph import AliasRow, EntityRow, GraphTable, MentionRow, RelationshipRow
from .entity_ids import entity_id, slug_of
from .naming import canonical
from .values import ExtractedEntity, Extraction

__all__ = ["LEAST", "GraphWriter", "Joiner", "key_of", "surer"]

# A name that is less sure is not kept on its own; whoever extracts can ask for more or less.
LEAST = 0.6


class GraphWriter:
    """Reads memories as they are stored. `read` is the extraction, with what is known of the memory's own project."""

    def __init__(
        self, table: GraphTable, clock: Clock, ids: IdMaker, read: Callable[[Memory], Extraction], least: float = LEAST
    ) -> None:
        self._table = table
        self._clock = clock
        self._ids = ids
        self._read = read
        self._least = least

    def read(self, memory: Memory) -> Extraction:
        """What a memory names and states, as far as that is sure enough to be kept."""
        if memory.kind != "note":
            return Extraction((), ())
        return surer(self._read(memory), self._least)

    def write(self, session: Session, stored: Sequence[Stored]) -> None:
        """Put what memories name and state in place of what they named and stated before."""
        by_space: dict[str, list[tuple[int, Extraction]]] = {}
        for one in stored:
            if one.memory.kind == "note" and isinstance(one.note, Extraction):
                by_space.setdefault(one.space, []).append((one.num, one.note))
        at = to_micros(self._clock.now())
        for space, ones in by_space.items():
            known = Joiner(self._table, session, space, at).ids(
                [entity for _, note in ones for entity in note.entities]
            )
            for num, note in ones:
                self._restate(session, space, num, note, known, at)
            self._table.mark_read(session, space, [num for num, _ in ones])

    def _restate(
        self, session: Session, space: str, num: int, note: Extraction, known: dict[tuple[str, str], str], at: int
    ) -> None:
        ids = [known[key_of(entity)] for entity in note.entities]
        mentions = [
            MentionRow(space, entity_id, num, entity.start, entity.end, entity.confidence, entity.method)
            for entity, entity_id in zip(note.entities, ids, strict=True)
        ]
        facts = [
            RelationshipRow(
                space=space,
                id=f"relationship_{self._ids.new()}",
                source_id=ids[fact.source],
                target_id=ids[fact.target],
                type=fact.type,
                confidence=fact.confidence,
                method=fact.method,
                evidence=fact.evidence,
                recorded_at=at,
                num=num,
            )
            for fact in note.relationships
            if ids[fact.source] != ids[fact.target]
        ]
        self._table.restate(session, space, num, mentions, facts)


class Joiner:
    """Joins names to the entities of a space, making those that are new."""

    def __init__(self, table: GraphTable, session: Session, space: str, at: int) -> None:
        self._table = table
        self._session = session
        self._space = space
        self._at = at

    def ids(self, entities: Sequence[ExtractedEntity]) -> dict[tuple[str, str], str]:
        """The id for each (key, type); spellings that differ from the entity's name become aliases of it."""
        wanted = {key_of(one): one for one in entities}
        found: dict[tuple[str, str], str] = {}
        known = self._table.by_keys(self._session, self._space, [key for key, _ in wanted]) if wanted else {}
        fresh: list[ExtractedEntity] = []
        for key, one in wanted.items():
            same = [row for row in known.get(key[0], ()) if row.type == one.type]
            if same:
                found[key] = same[0].id
            else:
                fresh.append(one)
        for row in self._made(fresh):
            found[row.key, row.type] = row.id
        self._learn_spellings(entities, found)
        return found

    def _made(self, fresh: Sequence[ExtractedEntity]) -> list[EntityRow]:
        stems = [slug_of(one.name) for one in fresh]
        taken = self._table.ids_like(self._session, self._space, [entity_id(stem) for stem in stems])
        rows = []
        for one, stem in zip(fresh, stems, strict=True):
            identity = next(name for n in range(len(taken) + 2) if (name := entity_id(stem, n)) not in taken)
            taken.add(identity)
            rows.append(
                EntityRow(
                    space=self._space,
                    id=identity,
                    name=one.name,
                    type=one.type,
                    key=canonical(one.name, one.type),
                    created_at=self._at,
                    updated_at=self._at,
                )
            )
        self._table.add_entities(self._session, rows)
        return rows

    def _learn_spellings(self, entities: Sequence[ExtractedEntity], found: dict[tuple[str, str], str]) -> None:
        spelled: dict[str, dict[str, str]] = {}
        for one in entities:
            spelled.setdefault(found[key_of(one)], {})[one.name] = canonical(one.name, one.type)
        rows = self._table.entities(self._session, self._space, list(spelled))
        for identity, names in spelled.items():
            row = rows[identity]
            new = [AliasRow(name, key) for name, key in names.items() if name != row.name]
            self._table.add_aliases(
                self._session, self._space, identity, [one for one in new if one not in row.aliases]
            )


def key_of(entity: ExtractedEntity) -> tuple[str, str]:
    """What makes two names one entity: the canonical spelling, and the type."""
    return canonical(entity.name, entity.type), entity.type


def surer(found: Extraction, least: float) -> Extraction:
    """Only the entities that are sure enough, and the relationships between those that are left."""
    kept = [i for i, one in enumerate(found.entities) if one.confidence >= least]
    place = {old: new for new, old in enumerate(kept)}
    facts = [
        type(fact)(place[fact.source], place[fact.target], fact.type, fact.confidence, fact.method, fact.evidence)
        for fact in found.relationships
        if fact.confidence >= least and fact.source in place and fact.target in place
    ]
    return Extraction(tuple(found.entities[i] for i in kept), tuple(facts))
