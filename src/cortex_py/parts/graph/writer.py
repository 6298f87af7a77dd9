"""Writes what memories name and state into the graph, in the memory's own transaction.

The text is read before the transaction. Its names are resolved to entities inside it, because only then is it certain
which entities exist. `RelatedFacts` reads what the graph knows around a memory.
"""

from __future__ import annotations

import re
from collections.abc import Collection, Iterator, Mapping, Sequence
from functools import cache
from typing import Protocol

from anyascii import anyascii

from ...core.clock import Clock, IdMaker, to_micros
from ...core.graph_values import ExtractedEntity, Extraction, canonical
from ...core.memory.capture.capture import StoredRecord, entity_words
from ...core.memory.comparison.statements import without_context
from ...core.memory.spaces import Place, seek_readable
from ...core.records import Memory
from ...core.store.database import Session
from ...core.store.graph.graph import AliasRow, EntityRow, GraphTable, MentionRow, RelationshipRow
from ...core.store.graph.tables import Sight
from ...core.store.rows import space_word
from ...core.store.store import Store
from .reading.entity_names import KnownEntity
from .reading.knowledge import Knowledge

__all__ = [
    "MIN_CONFIDENCE", "EntityResolver", "GraphWriter", "KnowledgeSource", "RelatedFacts", "StoredEntities",
    "drop_unsure", "entity_key", "sure_person_names",
]  # fmt: skip


# Less certain names are not stored; callers of `extract` can ask for another limit.
MIN_CONFIDENCE = 0.6
_TEXTS = 8  # memories that are read to see how a word is used
_REPEATED = 3  # mentions from which a name counts as repeated
PREFIX = "entity_"
_LENGTH = 60
_NOT_SLUG = re.compile(r"[^a-z0-9]+")
# Spelled out, so that C, C++ and C# get different ids.
_SPELLED = str.maketrans({"+": " plus ", "#": " sharp "})


class KnowledgeSource(Protocol):
    """Gives the names that the project of a memory brings along, and the space that it belongs to."""

    def of(self, memory: Memory) -> Knowledge: ...

    def space(self, memory: Memory) -> str: ...


class StoredEntities:
    """The entities of some spaces, found by the keys of their names (`reading.entity_names.EntityLookup`)."""

    def __init__(self, store: Store, spaces: Sequence[str], before: int = 0) -> None:
        """Of texts, only those of memories with a lower number than `before` are found, if it is given."""
        self._store = store
        self._spaces = spaces
        self._before = before

    def find(self, keys: Collection[str]) -> Mapping[str, Sequence[KnownEntity]]:
        """The entities by key; those of the first space come first."""
        found: dict[str, list[KnownEntity]] = {}
        if not keys:
            return found
        wanted, table = sorted(keys), self._store.graph
        with self._store.database.read() as session:
            for space in self._spaces:
                known: dict[str, KnownEntity] = {}
                for key, rows in table.by_keys(session, space, wanted).items():
                    for row in rows:
                        if row.id not in known:
                            repeated = row.given or table.is_mentioned(session, space, row.id, _REPEATED)
                            known[row.id] = _known_entity(row, repeated)
                    found.setdefault(key, []).extend(known[row.id] for row in rows)
        return found

    def texts(self, word: str) -> Sequence[str]:
        """The contents of the newest memories that contain a word."""
        words, found = entity_words(word), []
        with self._store.database.read() as session:
            for space in self._spaces if len(words) == 1 else ():
                nums = self._store.database.text_matches(
                    session, space, words[0], (space_word(space),), _TEXTS, below=self._before
                )
                found += [memory.content for memory in self._store.memories.fetch(session, nums, (space,)).values()]
        return found


def _known_entity(row: EntityRow, is_repeated: bool) -> KnownEntity:
    spellings = frozenset((row.name, *(alias.alias for alias in row.aliases)))
    return KnownEntity(row.name, row.type, spellings, row.given, is_repeated)  # type: ignore[arg-type]  # as written


class GraphWriter:
    """Extracts entities and relationships from memories as they are stored."""

    def __init__(
        self,
        store: Store,
        clock: Clock,
        ids: IdMaker,
        knowledge: KnowledgeSource,
        least: float = MIN_CONFIDENCE,
    ) -> None:
        self._store = store
        self._table = store.graph
        self._clock = clock
        self._ids = ids
        self._knowledge = knowledge
        self._least = least

    def read(self, memory: Memory, stored: tuple[str, int] | None = None) -> Extraction:
        """The entities and relationships of a memory that are certain enough to be stored.

        Of a `stored` one, the space and number are given; later memories do not count for it.
        """
        if memory.kind != "note":
            return Extraction((), ())
        from .reading.extract import extract

        # Context that enriching added quotes other memories: what they state is not this one's statement.
        text = without_context(memory.content)
        space, num = stored or (self._knowledge.space(memory), 0)
        known = StoredEntities(self._store, (space,), num)
        return drop_unsure(extract(text, self._knowledge.of(memory), known), self._least)

    def people(self, note: object) -> list[tuple[int, int]]:
        """The spans of people's names that are certain."""
        return list(sure_people(note)) if isinstance(note, Extraction) else []

    def write(self, session: Session, stored: Sequence[StoredRecord]) -> None:
        """Replace what memories named and stated before by what they name and state now."""
        by_space: dict[str, list[tuple[int, Extraction]]] = {}
        for one in stored:
            if one.memory.kind == "note" and isinstance(one.note, Extraction):
                by_space.setdefault(one.space, []).append((one.num, one.note))
        at = to_micros(self._clock.now())
        for space, ones in by_space.items():
            known = EntityResolver(self._table, session, space, at).ids(
                [entity for _, note in ones for entity in note.entities]
            )
            for num, note in ones:
                self._restate(session, space, num, note, known, at)
            self._table.mark_read(session, space, [num for num, _ in ones])

    def _restate(
        self, session: Session, space: str, num: int, note: Extraction, known: dict[tuple[str, str], str], at: int
    ) -> None:
        ids = [known[entity_key(entity)] for entity in note.entities]
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


class EntityResolver:
    """Resolves names to the entities of a space, and creates missing ones."""

    def __init__(self, table: GraphTable, session: Session, space: str, at: int) -> None:
        self._table = table
        self._session = session
        self._space = space
        self._at = at

    def ids(self, entities: Sequence[ExtractedEntity]) -> dict[tuple[str, str], str]:
        """The id for each (key, type); new spellings become aliases."""
        wanted = {entity_key(one): one for one in entities}
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
        stems = [make_slug(one.name) for one in fresh]
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
            spelled.setdefault(found[entity_key(one)], {})[one.name] = canonical(one.name, one.type)
        rows = self._table.entities(self._session, self._space, list(spelled))
        for identity, names in spelled.items():
            row = rows[identity]
            new = [AliasRow(name, key) for name, key in names.items() if name != row.name]
            self._table.add_aliases(
                self._session, self._space, identity, [one for one in new if one not in row.aliases]
            )


def entity_key(entity: ExtractedEntity) -> tuple[str, str]:
    """The identity of an entity: its canonical spelling and its type."""
    return canonical(entity.name, entity.type), entity.type


def drop_unsure(found: Extraction, least: float) -> Extraction:
    """Only the entities with enough confidence, and the relationships between them."""
    kept = [i for i, one in enumerate(found.entities) if one.confidence >= least]
    place = {old: new for new, old in enumerate(kept)}
    facts = [
        type(fact)(place[fact.source], place[fact.target], fact.type, fact.confidence, fact.method, fact.evidence)
        for fact in found.relationships
        if fact.confidence >= least and fact.source in place and fact.target in place
    ]
    return Extraction(tuple(found.entities[i] for i in kept), tuple(facts))


def make_slug(name: str) -> str:
    """A name in lower-case ASCII words joined by underscores, of bounded length."""
    words = _NOT_SLUG.sub("_", anyascii(name.translate(_SPELLED)).lower()).strip("_")
    return words[:_LENGTH].rstrip("_") or "unnamed"


def entity_id(slug: str, attempt: int = 0) -> str:
    """A readable id such as `entity_postgresql`; later attempts add a number, for different things of one name."""
    return f"{PREFIX}{slug}_{attempt + 1}" if attempt else f"{PREFIX}{slug}"


_TAGGED = ("Technology", "Concept")
_STATEMENTS_MOST = 5


class RelatedFacts:
    def __init__(self, store: Store, clock: Clock, place: Place) -> None:
        self._store = store
        self._clock = clock
        self._place = place

    def names(self, memory: Memory, note: object) -> Sequence[str]:
        """The technologies and concepts of a memory, in its order, by the names of their entities."""
        entities = note.entities if isinstance(note, Extraction) else ()
        with self._store.database.read() as session:
            _, _, known = self._known(session, memory, entities)
        wanted = [one for one in entities if one.type in _TAGGED]
        return list(
            dict.fromkeys(known[entity_key(one)].name if entity_key(one) in known else one.name for one in wanted)
        )

    def statements(self, memory: Memory, note: object) -> Sequence[tuple[str, str]]:
        """What other memories state between the entities of a memory: each statement with the id of its memory."""
        entities = note.entities if isinstance(note, Extraction) else ()
        with self._store.database.read() as session:
            num, space, known = self._known(session, memory, entities)
            named = {row.id: row.name for row in known.values()}
            here = self._place.git_branch() if space in self._place.spaces() else None
            sight = Sight(to_micros(self._clock.now()), here)
            facts = self._store.graph.between(session, space, list(named), sight)
            stated = [fact for fact in facts if fact.num is not None and fact.num != num]
            # By the memory's number, because the ids of relationships change whenever their memory does.
            stated.sort(key=lambda fact: (-fact.confidence, fact.num, fact.source_id, fact.type, fact.target_id))
            sources = self._store.memories.fetch(session, [fact.num for fact in stated if fact.num], (space,))
        # Text that was added to another memory as context is not its own statement.
        own = cache(lambda source: _flat(without_context(sources[source].content)))
        states = cache(lambda source, evidence: _flat(evidence) in own(source))
        found: dict[str, str] = {}
        for fact in stated:
            text = f"{named[fact.source_id]} {fact.type} {named[fact.target_id]}"
            if text not in found and fact.num in sources and states(fact.num, fact.evidence):
                found[text] = sources[fact.num].id
                if len(found) == _STATEMENTS_MOST:
                    break
        return list(found.items())

    def _known(
        self, session: Session, memory: Memory, entities: Sequence[ExtractedEntity]
    ) -> tuple[int | None, str, dict[tuple[str, str], EntityRow]]:
        """The memory's number and space, and the rows of its entities that exist there."""
        found = seek_readable(self._store, session, self._place.spaces(), memory.id)
        num, space = found or (None, self._place.space(memory.domain))
        keys = {entity_key(one) for one in entities}
        rows = self._store.graph.by_keys(session, space, [key for key, _ in keys]) if keys else {}
        known: dict[tuple[str, str], EntityRow] = {}
        for key in sorted(keys):
            for row in rows.get(key[0], ()):
                if row.type == key[1]:
                    known.setdefault(key, row)
        return num, space, known


def _flat(text: str) -> str:
    return " ".join(text.split())


_SURE = 0.85  # from here on, at least nine of ten are people


def sure_person_names(text: str) -> Iterator[tuple[int, int]]:
    """The spans of people's names in a text, in order."""
    from .reading.extract import extract

    return sure_people(extract(text))


def sure_people(found: Extraction) -> Iterator[tuple[int, int]]:
    """The spans of people's names in an extraction, in order."""
    for entity in found.entities:
        if entity.type == "Person" and entity.confidence >= _SURE:
            yield entity.start, entity.end
