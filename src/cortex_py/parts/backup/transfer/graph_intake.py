"""Names and relations of other programs in the graph; what is known already stays as it is."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from contextlib import suppress
from functools import partial
from typing import TYPE_CHECKING

from ....core.errors import CortexError, EntityNotFound, InvalidInput, StorageError
from ....core.graph_values import ENTITY_TYPES, RELATIONSHIP_TYPES
from ....core.records import Domain
from .readers.records import SourceEntity, SourceRelation

if TYPE_CHECKING:
    from ...graph.service import Graph

__all__ = ["GraphIntake"]

_ENTITY_WORDS = {
    "person": "Person", "people": "Person", "user": "Person", "organization": "Organization", "company": "Organization",
    "team": "Organization", "technology": "Technology", "tool": "Technology", "library": "Technology",
    "framework": "Technology", "language": "Technology", "database": "Technology", "service": "Technology",
    "file": "File", "module": "File",
}  # fmt: skip
_NAMED_TYPES = {one.lower(): one for one in (*ENTITY_TYPES, *RELATIONSHIP_TYPES)}


class GraphIntake:
    """Stores names and relations; `refuse` is called with the name and the reason of what cannot be stored."""

    def __init__(self, graph: Graph, domain: Domain, refuse: Callable[[str, str], None]) -> None:
        self._graph = graph
        self._domain: Domain = domain
        self._refuse = refuse
        self._ids: dict[str, str] = {}
        self._added = 0

    def relate(self, entities: Sequence[SourceEntity], relations: Sequence[SourceRelation]) -> int:
        """Store names and relations between them; the number of relations that are new."""
        self._added = 0
        for entity in entities:
            self._try(entity.name, partial(self._named, entity.name, entity.type))
        for one in relations:
            self._try(f"{one.source} → {one.target}", partial(self._relate, one))
        return self._added

    def _named(self, name: str, sort: str = "") -> str:
        if name not in self._ids or sort:
            kind = _NAMED_TYPES.get(sort.lower()) or _ENTITY_WORDS.get(sort.lower())
            if kind not in ENTITY_TYPES:
                # A name without a type of ours may be one that a text has shown already.
                with suppress(EntityNotFound, InvalidInput):
                    self._ids[name] = self._graph.get(name).entity.id
                    return self._ids[name]
                kind = "Concept"
            extra = {"type": sort[:200]} if sort and sort.lower() != kind.lower() else None
            self._ids[name] = self._graph.create(name, kind, properties=extra, domain=self._domain).id
        return self._ids[name]

    def _relate(self, one: SourceRelation) -> None:
        ends = self._named(one.source), self._named(one.target)
        if ends[0] == ends[1]:
            return
        sort = _NAMED_TYPES.get(one.type.lower().replace("_", "").replace(" ", "").replace("-", ""), "RelatesTo")
        sort = sort if sort in RELATIONSHIP_TYPES else "RelatesTo"
        extra = {"type": one.type[:200]} if one.type and sort == "RelatesTo" else {}
        known, _ = self._graph.relationships(source=ends[0], target=ends[1], type=sort)
        if not any(dict(other.properties) == extra for other in known):
            self._graph.relate(*ends, sort, properties=extra)
            self._added += 1

    def _try(self, name: str, act: Callable[[], object]) -> None:
        try:
            act()
        except StorageError:
            raise
        except CortexError as error:
            self._refuse(name, error.message.rstrip("."))
