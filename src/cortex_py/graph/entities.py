"""Entities: made, looked up, listed, deleted, read out of texts, merged into one."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace

from ..errors import InvalidInput
from ..memory.place import canonical_domain
from ..memory.prepare import check_no_secret, check_text
from ..records import Domain
from ..security.permission import require_admin, require_write
from ..security.secrets import redact
from ..store.database import Session
from .base import NAME_BYTES, GraphBase, entity_from, relationship_from
from .checks import check_confidence, check_entity_type, check_limit, check_properties
from .duplicates import Duplicates, find_duplicates
from .naming import canonical
from .values import Entity, ExtractedEntity, Extraction, Mention, Relationship
from .writing import Joiner, key_of, surer

__all__ = ["EntityOperations", "EntityView", "Extracted", "Merged"]

_CONTENT_BYTES = 16_000_000
_SHOWN = 20


@dataclass(frozen=True, slots=True)
class EntityView:
    """An entity with where it is mentioned and what is known to hold for it."""

    entity: Entity
    mentions: tuple[Mention, ...]
    relationships: tuple[Relationship, ...]


@dataclass(frozen=True, slots=True)
class Extracted:
    """What a text names and states, with the ids of the entities where they were stored."""

    extraction: Extraction
    ids: tuple[str, ...]
    method: str


@dataclass(frozen=True, slots=True)
class Merged:
    """A merge, or its preview: the entity that stays, what went into it, and how much was moved or dropped."""

    entity: Entity
    merged: tuple[Entity, ...]
    mentions_moved: int
    relationships_moved: int
    relationships_dropped: int
    merge_id: str | None


class EntityOperations(GraphBase):
    def create(
        self, name: str, type: str, *, properties: Mapping[str, object] | None = None, domain: Domain = "project"
    ) -> Entity:
        """An entity by name and type; one that is there already gains the properties."""
        kind = check_entity_type(type)
        check_no_secret(check_text(name, "name", NAME_BYTES), "name")
        extra = check_properties(properties)
        space = self._place.writing(canonical_domain(domain))
        with self._writing() as (session, at):
            wanted = ExtractedEntity(name.strip(), kind, 0, 0, 1.0, "given")
            identity = Joiner(self._table, session, space, at).ids([wanted])[key_of(wanted)]
            self._table.mark_given(session, space, [identity])
            row = self._rows(session, space, [identity])[identity]
            if extra:
                joined = check_properties({**row.properties, **extra})
                self._table.update_entity(session, replace(row, properties=joined, updated_at=at))
            return self._entities(session, space, [identity])[identity]

    def get(self, ref: str) -> EntityView:
        """An entity by id, name or other spelling, with its mentions and relationships."""
        with self._reading() as session:
            space, identity = self._find(session, ref)
            sight = self._sight()
            mentions = self._table.mentions(session, space, identity, sight, limit=_SHOWN)
            facts, _ = self._table.list_relationships(
                session, space, sight, either=identity, valid_at=sight.now, limit=_SHOWN
            )
            return EntityView(
                self._entities(session, space, [identity])[identity],
                tuple(Mention(*one) for one in mentions),
                tuple(map(relationship_from, facts)),
            )

    def entities(
        self, *, type: str | None = None, prefix: str = "", limit: int = 50, offset: int = 0
    ) -> tuple[list[Entity], int]:
        """Entities in the order of their names, and how many there are in all."""
        check_limit(limit, offset)
        kinds = (check_entity_type(type),) if type else ()
        found: list[Entity] = []
        total = 0
        with self._reading() as session:
            for space in self._place.spaces():
                rows, count = self._table.list_entities(
                    session, space, types=kinds, prefix=prefix, limit=limit + offset, offset=0
                )
                total += count
                found += self._counted(session, space, rows)
        found.sort(key=lambda one: (one.name.casefold(), one.id))
        return found[offset : offset + limit], total

    def delete(self, ref: str) -> Entity:
        """Remove an entity with its mentions and relationships; memories stay as they are."""
        with self._writing() as (session, _):
            space, identity = self._find(session, ref)
            require_admin(space)
            entity = self._entities(session, space, [identity])[identity]
            self._table.delete_entities(session, space, [identity])
            return entity

    def extract(self, content: str, *, store: bool = False, min_confidence: float = 0.6) -> Extracted:
        """What a text names and states. With `store` the entities and relationships become part of the graph."""
        check_text(content, "content", _CONTENT_BYTES)
        check_confidence(min_confidence)
        # What is kept quotes the text as evidence.
        found = surer(self._read(redact(content).text if store else content), min_confidence)
        ids: tuple[str, ...] = ()
        if store:
            space = self._place.writing("project")
            with self._writing() as (session, at):
                known = Joiner(self._table, session, space, at).ids(found.entities)
                ids = tuple(known[key_of(one)] for one in found.entities)
                self._table.mark_given(session, space, ids)
                self._add_facts(
                    session,
                    space,
                    [
                        (ids[f.source], ids[f.target], f.type, f.confidence, f.method, f.evidence)
                        for f in found.relationships
                    ],
                    at,
                )
        return Extracted(found, ids, "local")

    def merge(self, refs: Sequence[str], *, canonical_name: str | None = None, dry_run: bool = False) -> Merged:
        """Make one entity of several: the one most mentioned stays, the names of the others become spellings of it."""
        if canonical_name is not None:
            check_text(canonical_name, "canonical_name", NAME_BYTES)
            canonical_name = check_no_secret(canonical_name, "canonical_name").strip()
        with self._writing() as (session, at):
            places = self._several(session, refs)
            spaces = {space for space, _ in places}
            if len(spaces) > 1:
                raise InvalidInput("The entities lie in different domains.", field="entity_ids")
            space, ids = places[0][0], [identity for _, identity in places]
            if not dry_run:
                require_write(space)
            before = self._entities(session, space, ids)
            kept = max(ids, key=lambda one: (before[one].mention_count, -ids.index(one)))
            key = canonical(canonical_name, before[kept].type) if canonical_name else None
            if key is not None:
                self._check_free(session, space, key, before[kept].type, ids)
            plan = self._table.plan_merge(session, space, kept, ids, at, name=canonical_name, key=key)
            if plan is None or len(ids) < 2:
                raise InvalidInput("These are one entity already.", field="entity_ids")
            merge_id = None
            if not dry_run:
                merge_id = f"merge_{self._ids.new()}"
                self._table.merge(session, plan, merge_id, at)
            return Merged(
                entity_from(plan.kept, sum(one.mention_count for one in before.values())),
                tuple(before[one] for one in ids if one != kept),
                len(plan.merged_mentions),
                len(plan.changed),
                len(plan.loops) + len(plan.duplicates),
                merge_id,
            )

    def _check_free(self, session: Session, space: str, key: str, type: str, ids: Sequence[str]) -> None:
        """Two entities of one name and type could not be told apart."""
        for row in self._table.by_keys(session, space, [key]).get(key, ()):
            if row.type == type and row.id not in ids:
                raise InvalidInput(f"{row.id} goes by that name.", remedy="Merge it too.", field="canonical_name")

    def undo_merge(self, merge_id: str) -> bool:
        """Take a merge back; False where it is not known, or can no longer be undone."""
        with self._writing() as (session, at):
            return any(self._table.undo_merge(session, space, merge_id, at) for space in self._place.spaces("write"))

    def duplicates(self, *, limit: int = 50) -> list[Duplicates]:
        """Groups of entities that are likely one, the likeliest first."""
        check_limit(limit)
        found: list[Duplicates] = []
        with self._reading() as session:
            for space in self._place.spaces():
                rows = self._table.all_entities(session, space)
                found += find_duplicates((entity_from(row, 0) for row in rows), limit)
        return sorted(found, key=lambda one: (-one.confidence, one.ids))[:limit]

    def orphans(self, *, delete: bool = False) -> list[Entity]:
        """Entities that nothing mentions and nothing leads to.

        With `delete` they are removed, but for those in memories that are only out of sight: deleted ones that can be
        restored, and those confined to another git branch.
        """
        found: list[Entity] = []
        with self._writing() as (session, _):
            for space in self._place.spaces("admin" if delete else "read"):
                ids = self._table.orphans(session, space, None if delete else self._sight())
                found += self._entities(session, space, ids).values()
                if delete:
                    self._table.delete_entities(session, space, ids)
        return found
