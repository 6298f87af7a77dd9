"""What the graph knows around one memory: the names in it, and what other memories state between them."""

from __future__ import annotations

from collections.abc import Sequence

from ..clock import Clock, to_micros
from ..memory.enrichment import without_context
from ..memory.finding import seek_readable
from ..memory.place import Place
from ..records import Memory
from ..store.database import Session
from ..store.graph_schema import EntityRow, Sight
from ..store.store import Store
from .values import ExtractedEntity, Extraction
from .writing import key_of

__all__ = ["GraphSurroundings"]

_TAGGED = ("Technology", "Concept")
_STATEMENTS_MOST = 5


class GraphSurroundings:
    def __init__(self, store: Store, clock: Clock, place: Place) -> None:
        self._store = store
        self._clock = clock
        self._place = place

    def names(self, memory: Memory, note: object) -> Sequence[str]:
        """Technologies and concepts among what was read in the memory, in the order of the text, as they are known."""
        entities = note.entities if isinstance(note, Extraction) else ()
        with self._store.database.read() as session:
            _, _, known = self._known(session, memory, entities)
        wanted = [one for one in entities if one.type in _TAGGED]
        return list(dict.fromkeys(known[key_of(one)].name if key_of(one) in known else one.name for one in wanted))

    def statements(self, memory: Memory, note: object) -> Sequence[tuple[str, str]]:
        """What other memories state between the things read in it: the statement, and the memory's id."""
        entities = note.entities if isinstance(note, Extraction) else ()
        with self._store.database.read() as session:
            num, space, known = self._known(session, memory, entities)
            named = {row.id: row.name for row in known.values()}
            here = self._place.git_branch() if space in self._place.spaces() else None
            sight = Sight(to_micros(self._clock.now()), here)
            facts = self._store.graph.between(session, space, list(named), sight)
            told = [fact for fact in facts if fact.num is not None and fact.num != num]
            # By the memory's number, which stays: relationships are written anew when it changes.
            told.sort(key=lambda fact: (-fact.confidence, fact.num, fact.source_id, fact.type, fact.target_id))
            sources = self._store.memories.fetch(session, [fact.num for fact in told if fact.num], (space,))
        found: dict[str, str] = {}
        for fact in told:
            source = sources.get(fact.num or 0)
            # What another memory was only given as context is no statement of its own.
            if source and _flat(fact.evidence) in _flat(without_context(source.content)):
                found.setdefault(f"{named[fact.source_id]} {fact.type} {named[fact.target_id]}", source.id)
        return list(found.items())[:_STATEMENTS_MOST]

    def _known(
        self, session: Session, memory: Memory, entities: Sequence[ExtractedEntity]
    ) -> tuple[int | None, str, dict[tuple[str, str], EntityRow]]:
        """The memory's number and space, and those of the names that are entities there."""
        found = seek_readable(self._store, session, self._place.spaces(), memory.id)
        num, space = found or (None, self._place.space(memory.domain))
        keys = {key_of(one) for one in entities}
        rows = self._store.graph.by_keys(session, space, [key for key, _ in keys]) if keys else {}
        known: dict[tuple[str, str], EntityRow] = {}
        for key in sorted(keys):
            for row in rows.get(key[0], ()):
                if row.type == key[1]:
                    known.setdefault(key, row)
        return num, space, known


def _flat(text: str) -> str:
    return " ".join(text.split())
