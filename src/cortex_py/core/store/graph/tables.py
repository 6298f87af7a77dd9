"""The tables of the graph: entities with their aliases, where memories mention them, and relationships.

A relationship is a fact with the time it was valid and the time it was recorded. Moments are microseconds since 1970.
`num` is the engine's number of the memory that a row was read from.
"""

from __future__ import annotations

import json
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, fields
from typing import NamedTuple, TypeVar

from ...records import LIVE_STATUSES
from ..database import Computed, Row, Session, Sql, batched, marks, padded, replacing, rows_among

__all__ = [
    "MENTIONS", "RELATIONSHIP", "AliasRow", "EdgeRow", "EntityRow", "EntityTable", "MentionPlace", "MentionRow",
    "RelationshipRow", "RelationshipTable", "Sight", "among", "as_json", "batches", "live_memory", "relationship_from",
    "seen_relationship",
]  # fmt: skip


_T = TypeVar("_T")
_BATCH = 480
_LENGTHS = (1, 8, 32, 120, _BATCH)
MENTIONS = "SELECT space, entity_id, num, first, past, confidence, method FROM mention"


class AliasRow(NamedTuple):
    """An alias of an entity, and its canonical form."""

    alias: str
    key: str


@dataclass(frozen=True, slots=True, kw_only=True)
class EntityRow:
    space: str
    id: str
    name: str
    type: str
    key: str
    aliases: tuple[AliasRow, ...] = ()
    properties: Mapping[str, object] = field(default_factory=dict)
    created_at: int
    updated_at: int
    given: bool = False


class MentionRow(NamedTuple):
    """Where a memory mentions an entity: characters from `first` to before `past`."""

    space: str
    entity_id: str
    num: int
    first: int
    past: int
    confidence: float
    method: str


class MentionPlace(NamedTuple):
    """A mention with the id of its memory."""

    entity_id: str
    memory_id: str
    first: int
    past: int
    confidence: float
    method: str


@dataclass(frozen=True, slots=True, kw_only=True)
class RelationshipRow:
    """A fact. `num` is the memory that states it, if any: the fact is visible only while that memory is."""

    space: str
    id: str
    source_id: str
    target_id: str
    type: str
    confidence: float
    method: str
    evidence: str = ""
    properties: Mapping[str, object] = field(default_factory=dict)
    valid_from: int | None = None
    valid_to: int | None = None
    recorded_at: int
    ended_at: int | None = None
    num: int | None = None


class EdgeRow(NamedTuple):
    """The part of a relationship that a traversal needs."""

    id: str
    source_id: str
    target_id: str
    type: str
    confidence: float


class Sight(NamedTuple):
    """The moment and the git branch of a reader, which decide which memories are visible."""

    now: int
    here: str | None = None

    @property
    def params(self) -> tuple[Sql, ...]:
        return (*LIVE_STATUSES, self.now, self.here)

    def seen_in(self, space: str) -> tuple[Sql, ...]:
        """The parameters of `seen_relationship`."""
        return (space, *self.params)


def live_memory(alias: str) -> str:
    """A condition: `memory m`, from which the row was read, is visible. Its parameters are `Sight.params`."""
    return (
        f"m.num = {alias}.num AND m.space = {alias}.space AND m.status IN ({marks(len(LIVE_STATUSES))}) "
        "AND (m.expires_at IS NULL OR m.expires_at > ?) AND (m.confinement IS NULL OR m.git_branch = ?)"
    )


def seen_relationship() -> str:
    """A condition: `relationship r` is stated by no memory or by a visible one. Parameters: `Sight.seen_in`."""
    # The space again as a value: planners do not infer the server from equality with an outer row.
    return f"(r.num IS NULL OR EXISTS (SELECT 1 FROM memory m WHERE m.space = ? AND {live_memory('r')}))"


_RELATIONSHIP_COLUMNS = tuple(column.name for column in fields(RelationshipRow))
RELATIONSHIP = ", ".join(f"r.{name}" for name in _RELATIONSHIP_COLUMNS)


def relationship_from(row: Row) -> RelationshipRow:
    values = dict(zip(_RELATIONSHIP_COLUMNS, row, strict=True))
    return RelationshipRow(**{**values, "properties": json.loads(values["properties"])})


def relationship_values(row: RelationshipRow) -> tuple[Sql, ...]:
    values = ((name, getattr(row, name)) for name in _RELATIONSHIP_COLUMNS)
    return tuple(as_json(value) if name == "properties" else value for name, value in values)


def as_json(value: object) -> str:
    return json.dumps(dict(value) if isinstance(value, Mapping) else value, ensure_ascii=False, sort_keys=True)


def batches(items: Iterable[_T]) -> Iterator[list[_T]]:
    return batched(items, _BATCH)


def among(session: Session, sql: str, params: Sequence[Sql], ids: Sequence[str]) -> Iterator[Row]:
    return rows_among(session, sql, params, ids, size=_BATCH, fill=filled)


def filled(ids: Sequence[str]) -> list[str]:
    """Ids filled up with the empty id, which no entity has, so that few statement lengths are ever prepared."""
    length = next((size for size in _LENGTHS if size >= len(ids)), len(ids))
    return [*ids, *[""] * (length - len(ids))]


_ENTITY = "e.space, e.id, e.name, e.type, e.key, e.properties, e.created_at, e.updated_at, e.given"
# After a prefix: sorts after every text that begins with it.
_LAST = "\U0010ffff"


class EntityTable:
    # -- entities --------------------------------------------------------------------------------

    def add_entities(self, session: Session, rows: Iterable[EntityRow]) -> None:
        added = list(rows)
        session.insert_many(
            "entity",
            (*_ENTITY_VALUES, "created_at", "space", "id"),
            [(*_entity_values(row), row.created_at, row.space, row.id) for row in added],
        )
        _put_aliases(session, added)

    def update_entity(self, session: Session, row: EntityRow) -> bool:
        """Replace an entity and its aliases; False if it does not exist."""
        changes = dict(zip(_ENTITY_VALUES, _entity_values(row), strict=True))
        if not session.update("entity", changes, "space = ? AND id = ?", (row.space, row.id)):
            return False
        session.run("DELETE FROM entity_alias WHERE space = ? AND entity_id = ?", (row.space, row.id))
        _put_aliases(session, [row])
        return True

    def add_aliases(self, session: Session, space: str, entity_id: str, aliases: Iterable[AliasRow]) -> None:
        """Add aliases to those of an entity."""
        rows = [(space, entity_id, alias.alias, alias.key) for alias in aliases]
        session.insert_many("entity_alias", _ALIAS, rows, replacing("entity_alias"))

    def entities(self, session: Session, space: str, ids: Sequence[str]) -> dict[str, EntityRow]:
        """The entities that exist, by id."""
        rows = among(session, f"SELECT {_ENTITY} FROM entity e WHERE e.space = ? AND e.id IN ({{}})", (space,), ids)
        return {row.id: row for row in self._whole(session, space, list(rows))}

    def entity(self, session: Session, space: str, entity_id: str) -> EntityRow | None:
        return self.entities(session, space, [entity_id]).get(entity_id)

    def ids_like(self, session: Session, space: str, ids: Sequence[str]) -> set[str]:
        """The ids that are taken, and those that are one of them with an underscore and a suffix."""
        found: set[str] = set()
        for one in dict.fromkeys(ids):
            rows = session.rows(
                "SELECT id FROM entity WHERE space = ? AND id = ? UNION ALL "
                "SELECT id FROM entity WHERE space = ? AND id >= ? AND id < ?",
                (space, one, space, f"{one}_", f"{one}_{_LAST}"),
            )
            found.update(row[0] for row in rows)
        return found

    def list_entities(
        self,
        session: Session,
        space: str,
        *,
        types: Sequence[str] = (),
        prefix: str = "",
        limit: int = 50,
        offset: int = 0,
    ) -> tuple[list[EntityRow], int]:
        """Entities by name, and how many there are in all."""
        where, params = "e.space = ?", [space]
        if types:
            where, params = f"{where} AND e.type IN ({marks(len(types))})", [*params, *types]
        if prefix:
            folded = prefix.casefold()
            where, params = f"{where} AND e.folded >= ? AND e.folded < ?", [*params, folded, folded + _LAST]
        (count,) = session.rows(f"SELECT count(*) FROM entity e WHERE {where}", params)[0]
        rows = session.rows(
            f"SELECT {_ENTITY} FROM entity e WHERE {where} ORDER BY e.folded, e.id LIMIT ? OFFSET ?",
            (*params, limit, offset),
        )
        return self._whole(session, space, rows), int(count)

    def by_keys(self, session: Session, space: str, keys: Sequence[str]) -> dict[str, list[EntityRow]]:
        """Entities by canonical key: by name first, then by alias, oldest first."""
        pairs: list[tuple[str, str]] = []
        for table, column in (("entity", "id"), ("entity_alias", "entity_id")):
            # Sorted here: with an ORDER BY, the planner would scan the whole space by id.
            statement = f"SELECT key, {column} FROM {table} WHERE space = ? AND key IN ({{}})"
            pairs += sorted(among(session, statement, (space,), keys))
        rows = self.entities(session, space, list(dict.fromkeys(entity_id for _, entity_id in pairs)))
        found: dict[str, list[EntityRow]] = {}
        wanted = frozenset(keys)
        for key, entity_id in dict.fromkeys(pairs):
            if key in wanted and entity_id in rows:
                found.setdefault(key, []).append(rows[entity_id])
        return found

    def all_entities(self, session: Session, space: str) -> list[EntityRow]:
        """Every entity of a space, to find duplicates."""
        rows = session.rows(f"SELECT {_ENTITY} FROM entity e WHERE e.space = ? ORDER BY e.id", (space,))
        return self._whole(session, space, rows, everything=True)

    def _whole(self, session: Session, space: str, rows: Sequence[Row], *, everything: bool = False) -> list[EntityRow]:
        """Entities from their rows, with their aliases."""
        aliases: dict[str, list[AliasRow]] = {}
        statement = "SELECT entity_id, alias, key FROM entity_alias WHERE space = ?"
        if everything:
            found = session.rows(f"{statement} ORDER BY entity_id, alias", (space,))
        else:
            inside = f"{statement} AND entity_id IN ({{}}) ORDER BY alias"
            found = list(among(session, inside, (space,), [row[1] for row in rows]))
        for entity_id, alias, key in found:
            aliases.setdefault(entity_id, []).append(AliasRow(alias, key))
        return [
            EntityRow(
                space=row[0],
                id=row[1],
                name=row[2],
                type=row[3],
                key=row[4],
                aliases=tuple(aliases.get(row[1], ())),
                properties=json.loads(row[5]),
                created_at=row[6],
                updated_at=row[7],
                given=bool(row[8]),
            )
            for row in rows
        ]

    # -- mentions --------------------------------------------------------------------------------

    def add_mentions(self, session: Session, rows: Iterable[MentionRow]) -> None:
        """Add mentions; one at the same place of the same memory is replaced."""
        again = replacing("mention", "past", "confidence", "method")
        session.insert_many("mention", MentionRow._fields, rows, again)

    def mention_counts(self, session: Session, space: str, ids: Sequence[str], sight: Sight) -> dict[str, int]:
        """How many visible memories mention each entity; every id is in the result."""
        statement = (
            f"SELECT n.entity_id, count(DISTINCT n.num) FROM mention n JOIN memory m ON {live_memory('n')} "
            "WHERE n.space = ? AND n.entity_id IN ({}) GROUP BY n.entity_id"
        )
        return dict.fromkeys(ids, 0) | dict(among(session, statement, (*sight.params, space), ids))

    def is_mentioned(self, session: Session, space: str, entity_id: str, times: int) -> bool:
        """Whether an entity is mentioned that often; no further mention is counted."""
        statement = "SELECT 1 FROM mention WHERE space = ? AND entity_id = ? LIMIT ?"
        return len(session.rows(statement, (space, entity_id, times))) >= times

    def mentions(
        self, session: Session, space: str, entity_id: str, sight: Sight, *, limit: int = 50, offset: int = 0
    ) -> list[MentionPlace]:
        """Where an entity is mentioned, newest memories first."""
        rows = session.rows(
            f"SELECT n.entity_id, m.id, n.first, n.past, n.confidence, n.method FROM mention n "
            f"JOIN memory m ON {live_memory('n')} WHERE n.space = ? AND n.entity_id = ? "
            "ORDER BY m.created_at DESC, m.id DESC, n.first LIMIT ? OFFSET ?",
            (*sight.params, space, entity_id, limit, offset),
        )
        return [MentionPlace(*row) for row in rows]

    def mentioned_by(self, session: Session, space: str, sight: Sight, ids: Sequence[str] = ()) -> dict[str, list[str]]:
        """The entities that each visible memory mentions, by memory id: all, or only the given ones."""
        found: dict[str, list[str]] = {}
        statement = (
            f"SELECT DISTINCT m.id, n.entity_id FROM mention n JOIN memory m ON {live_memory('n')} WHERE n.space = ?"
        )
        params: tuple[Sql, ...] = (*sight.params, space)
        if ids:
            rows = list(among(session, f"{statement} AND n.entity_id IN ({{}})", params, ids))
        else:
            rows = session.rows(statement, params)
        for memory_id, entity_id in sorted(rows):
            found.setdefault(memory_id, []).append(entity_id)
        return found

    def mentions_of(self, session: Session, space: str, nums: Sequence[int]) -> Mapping[int, list[MentionRow]]:
        """The mentions of memories, by number, in the order of the text."""
        found: dict[int, list[MentionRow]] = {}
        statement = f"{MENTIONS} WHERE +space = ? AND num IN ({{}}) ORDER BY num, first, entity_id"
        for row in rows_among(session, statement, (space,), nums, size=_BATCH):
            found.setdefault(row[2], []).append(MentionRow(*row))
        return found


_ALIAS = ("space", "entity_id", "alias", "key")
_ENTITY_VALUES = ("name", "folded", "type", "key", "properties", "updated_at", "given")


def _entity_values(row: EntityRow) -> tuple[Sql, ...]:
    properties = as_json(row.properties)
    return row.name, row.name.casefold(), row.type, row.key, properties, row.updated_at, int(row.given)


def _put_aliases(session: Session, rows: Iterable[EntityRow]) -> None:
    aliases = [(row.space, row.id, alias.alias, alias.key) for row in rows for alias in row.aliases]
    session.insert_many("entity_alias", _ALIAS, aliases, replacing("entity_alias"))


_ENDS = ("source_id", "target_id")
_MANY = 200
_VALID = "(r.valid_from IS NULL OR r.valid_from <= ?) AND (r.valid_to IS NULL OR r.valid_to > ?)"
_EDGE = "r.id, r.source_id, r.target_id, r.type, r.confidence"


class RelationshipTable:
    def add_relationships(self, session: Session, rows: Iterable[RelationshipRow]) -> None:
        session.insert_many("relationship", _RELATIONSHIP_COLUMNS, map(relationship_values, rows))

    def relationship(
        self, session: Session, space: str, relationship_id: str, sight: Sight | None = None
    ) -> RelationshipRow | None:
        """A relationship by id; with `sight` only if it is visible."""
        seen, params = (f" AND {seen_relationship()}", sight.seen_in(space)) if sight else ("", ())
        rows = session.rows(
            f"SELECT {RELATIONSHIP} FROM relationship r WHERE r.space = ? AND r.id = ?{seen}",
            (space, relationship_id, *params),
        )
        return relationship_from(rows[0]) if rows else None

    def list_relationships(
        self,
        session: Session,
        space: str,
        sight: Sight,
        *,
        source: str | None = None,
        target: str | None = None,
        either: str | None = None,
        types: Sequence[str] = (),
        valid_at: int | None = None,
        known_at: int | None = None,
        limit: int = 50,
        offset: int = 0,
    ) -> tuple[list[RelationshipRow], int]:
        """Relationships by descending confidence, and how many there are in all.

        `valid_at`: those valid at that moment; by default at any. `known_at`: those on record at that moment; by
        default now.
        """
        parts: list[tuple[str, tuple[Sql, ...]]] = [("r.space = ?", (space,))]
        parts += [(f"r.{column} = ?", (value,)) for column, value in zip(_ENDS, (source, target), strict=True) if value]
        if either:
            # Two lookups by key instead of an OR over the space.
            found = " UNION ALL ".join(f"SELECT id FROM relationship WHERE space = ? AND {end} = ?" for end in _ENDS)
            parts.append((f"r.id IN ({found})", (space, either) * 2))
        if types:
            parts.append((f"r.type IN ({marks(len(types))})", tuple(types)))
        if valid_at is not None:
            parts.append((_VALID, (valid_at, valid_at)))
        if known_at is None:
            parts.append(("r.ended_at IS NULL", ()))
        else:
            parts.append(("r.recorded_at <= ? AND (r.ended_at IS NULL OR r.ended_at > ?)", (known_at, known_at)))
        parts.append((seen_relationship(), sight.seen_in(space)))
        where = " AND ".join(sql for sql, _ in parts)
        params = tuple(value for _, values in parts for value in values)
        (count,) = session.rows(f"SELECT count(*) FROM relationship r WHERE {where}", params)[0]
        rows = session.rows(
            f"SELECT {RELATIONSHIP} FROM relationship r WHERE {where} "
            "ORDER BY r.confidence DESC, r.recorded_at DESC, r.id DESC LIMIT ? OFFSET ?",
            (*params, limit, offset),
        )
        return list(map(relationship_from, rows)), int(count)

    def superseding(
        self, session: Session, space: str, nums: Sequence[int], others: Sequence[int]
    ) -> list[tuple[int, int, int, int]]:
        """Which of some `others` name a thing that supersedes one which a memory names.

        Each: the number of the memory with the superseded thing, where its name begins and ends there, and the other's
        number. What a memory states counts for that memory alone, what a caller stored for all that name the thing.
        """
        named, naming = padded(nums, 8), padded(others)
        # In this order: a few memories, their names, and what supersedes each.
        return [
            (row[0], row[1], row[2], row[3])
            for row in session.rows(
                f"SELECT o.num, o.first, o.past, n.num FROM mention o CROSS JOIN relationship r CROSS JOIN mention n "
                f"WHERE +o.space = ? AND o.num IN ({marks(len(named))}) AND r.space = ? AND r.target_id = o.entity_id "
                "AND r.type = 'Supersedes' AND r.ended_at IS NULL AND r.valid_to IS NULL AND n.space = ? "
                f"AND n.entity_id = r.source_id AND n.num IN ({marks(len(naming))}) AND n.num <> o.num "
                "AND (r.num IS NULL OR r.num = n.num)",
                (space, *named, space, space, *naming),
            )
        ]

    def end_relationship(
        self,
        session: Session,
        space: str,
        relationship_id: str,
        *,
        valid_to: int | None = None,
        ended_at: int | None = None,
    ) -> bool:
        """Set until when a fact was valid (`valid_to`), or from when it is off the record (`ended_at`).

        To keep what was believed before, end the old row and add one with the new validity.
        """
        ends = {"valid_to": valid_to, "ended_at": ended_at}
        changes = {name: Computed(f"COALESCE(?, {name})", (at,)) for name, at in ends.items()}
        return session.update("relationship", changes, "space = ? AND id = ?", (space, relationship_id)) > 0

    def delete_relationships(self, session: Session, space: str, ids: Sequence[str]) -> int:
        removed = 0
        for batch in batches(ids):
            session.run(f"DELETE FROM relationship WHERE space = ? AND id IN ({marks(len(batch))})", (space, *batch))
            removed += session.changed()
        return removed

    # -- traversal --------------------------------------------------------------------------------

    def neighbours(
        self,
        session: Session,
        space: str,
        ids: Sequence[str],
        sight: Sight,
        *,
        types: Sequence[str] = (),
        as_of: int | None = None,
        per_entity: int | None = None,
    ) -> list[EdgeRow]:
        """The edges of the entities, in both directions, that are valid at a moment (now by default).

        With `per_entity`, an entity with more edges in one direction yields only the surest of them.
        """
        condition, params = _holding(space, sight, types, as_of)
        found: dict[str, EdgeRow] = {}
        for batch in batches(dict.fromkeys(ids)):
            hubs = self._hubs(session, space, batch, per_entity)
            plain = {end: filled([one for one in batch if (end, one) not in hubs]) for end in _ENDS}
            rows = session.rows(
                " UNION ALL ".join(
                    f"SELECT {_EDGE} FROM relationship r WHERE r.space = ? AND r.{end} IN ({marks(len(wanted))}) "
                    f"AND {condition}"
                    for end, wanted in plain.items()
                ),
                [value for wanted in plain.values() for value in (space, *wanted, *params)],
            )
            for end, hub in hubs:
                rows += session.rows(
                    f"SELECT {_EDGE} FROM relationship r WHERE r.space = ? AND r.{end} = ? AND {condition} "
                    "ORDER BY r.confidence DESC, r.id DESC LIMIT ?",
                    (space, hub, *params, per_entity),
                )
            found.update((row[0], EdgeRow(*row)) for row in rows)
        return list(found.values())

    def _hubs(self, session: Session, space: str, ids: Sequence[str], per_entity: int | None) -> list[tuple[str, str]]:
        """Entities with more than `per_entity` edges in one direction, as (column, id)."""
        if per_entity is None:
            return []
        wanted = filled(ids)
        # Reads at most `per_entity` + 1 edges of each, however many there are.
        return [
            (end, row[0])
            for end in _ENDS
            for row in session.rows(
                f"WITH wanted (id) AS (VALUES {','.join(['(?)'] * len(wanted))}) SELECT w.id FROM wanted w WHERE "
                f"(SELECT 1 FROM relationship r WHERE r.space = ? AND r.{end} = w.id LIMIT 1 OFFSET ?) IS NOT NULL",
                (*wanted, space, per_entity),
            )
        ]

    def joining(
        self,
        session: Session,
        space: str,
        ids: Sequence[str],
        others: Sequence[str],
        sight: Sight,
        *,
        types: Sequence[str] = (),
        as_of: int | None = None,
    ) -> list[EdgeRow]:
        """The edges between the entities and the others, in both directions, looked up by both ends."""
        condition, params = _holding(space, sight, types, as_of)
        found: dict[str, EdgeRow] = {}
        for sources, targets in ((ids, others), (others, ids)):
            for some in map(filled, batches(dict.fromkeys(sources))):
                for more in map(filled, batches(dict.fromkeys(targets))):
                    rows = session.rows(
                        f"SELECT {_EDGE} FROM relationship r WHERE r.space = ? AND r.source_id IN ({marks(len(some))}) "
                        f"AND r.target_id IN ({marks(len(more))}) AND {condition}",
                        (space, *some, *more, *params),
                    )
                    found.update((row[0], EdgeRow(*row)) for row in rows)
        return list(found.values())

    def between(
        self,
        session: Session,
        space: str,
        ids: Sequence[str],
        sight: Sight,
        *,
        types: Sequence[str] = (),
        as_of: int | None = None,
    ) -> list[RelationshipRow]:
        """The relationships with both ends among the entities, by id."""
        condition, params = _holding(space, sight, types, as_of)
        inside = dict.fromkeys(ids)
        select = f"SELECT {RELATIONSHIP} FROM relationship r WHERE r.space = ? AND {condition}"
        rows: list[Row] = []
        for batch in batches(inside):
            hubs = [one for end, one in self._hubs(session, space, batch, _MANY) if end == "source_id"]
            plain = filled([one for one in batch if one not in hubs])
            rows += session.rows(f"{select} AND r.source_id IN ({marks(len(plain))})", (space, *params, *plain))
            for hub in hubs:
                # The edges of a hub are looked up by both ends, not by reading all of them.
                for others in map(filled, batches(inside)):
                    rows += session.rows(
                        f"{select} AND r.source_id = ? AND r.target_id IN ({marks(len(others))})",
                        (space, *params, hub, *others),
                    )
        return sorted((relationship_from(row) for row in rows if row[3] in inside), key=lambda row: row.id)

    def degrees(
        self, session: Session, space: str, sight: Sight, *, as_of: int | None = None, limit: int = 50
    ) -> list[tuple[str, int]]:
        """The entities with the most edges, and how many; a loop counts twice."""
        condition, params = _holding(space, sight, (), as_of)
        both = " UNION ALL ".join(
            f"SELECT r.{end} AS end_id FROM relationship r WHERE r.space = ? AND {condition}" for end in _ENDS
        )
        return session.rows(
            f"SELECT end_id, count(*) FROM ({both}) b GROUP BY end_id ORDER BY count(*) DESC, end_id LIMIT ?",
            (*(space, *params) * 2, limit),
        )


def _holding(space: str, sight: Sight, types: Sequence[str], as_of: int | None) -> tuple[str, list[Sql]]:
    """A condition: `relationship r` is on record, valid at the moment, visible, and of one of the types."""
    moment = sight.now if as_of is None else as_of
    sql = f"r.ended_at IS NULL AND {_VALID} AND {seen_relationship()}"
    params: list[Sql] = [moment, moment, *sight.seen_in(space)]
    if types:
        sql, params = f"{sql} AND r.type IN ({marks(len(types))})", [*params, *types]
    return sql, params
