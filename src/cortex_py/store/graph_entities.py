"""Entities with their other spellings, and where memories mention them."""

from __future__ import annotations

import json
from collections.abc import Iterable, Mapping, Sequence

from .database import Row, Session, Sql, marks
from .graph_schema import (
    AliasRow,
    EntityRow,
    MentionPlace,
    MentionRow,
    Sight,
    as_json,
    batches,
    filled,
    live_memory,
)

__all__ = ["EntityTable"]

_ENTITY = "e.space, e.id, e.name, e.type, e.key, e.properties, e.created_at, e.updated_at, e.given"
# Sorts after every text that begins with what stands before it.
_LAST = "\U0010ffff"
_PUT_ALIAS = "INSERT INTO entity_alias (space, entity_id, alias, key) VALUES (?, ?, ?, ?) ON CONFLICT DO NOTHING"


class EntityTable:
    # -- entities --------------------------------------------------------------------------------

    def add_entities(self, session: Session, rows: Iterable[EntityRow]) -> None:
        added = list(rows)
        session.run_many(
            "INSERT INTO entity (space, id, name, folded, type, key, properties, created_at, updated_at, given) "
            "VALUES (?, ?, ?, ?, ?, ?, ?, ?, ?, ?)",
            [
                (
                    row.space,
                    row.id,
                    row.name,
                    row.name.casefold(),
                    row.type,
                    row.key,
                    as_json(row.properties),
                    row.created_at,
                    row.updated_at,
                    int(row.given),
                )
                for row in added
            ],
        )
        _put_aliases(session, added)

    def update_entity(self, session: Session, row: EntityRow) -> bool:
        """Write a new state in place of the old one, aliases included; False where there is no such entity."""
        session.run(
            "UPDATE entity SET name = ?, folded = ?, type = ?, key = ?, properties = ?, updated_at = ?, given = ? "
            "WHERE space = ? AND id = ?",
            (
                row.name,
                row.name.casefold(),
                row.type,
                row.key,
                as_json(row.properties),
                row.updated_at,
                int(row.given),
                row.space,
                row.id,
            ),
        )
        if not session.changed():
            return False
        session.run("DELETE FROM entity_alias WHERE space = ? AND entity_id = ?", (row.space, row.id))
        _put_aliases(session, [row])
        return True

    def add_aliases(self, session: Session, space: str, entity_id: str, aliases: Iterable[AliasRow]) -> None:
        """Other spellings beside those that an entity has."""
        session.run_many(_PUT_ALIAS, [(space, entity_id, alias.alias, alias.key) for alias in aliases])

    def entities(self, session: Session, space: str, ids: Sequence[str]) -> dict[str, EntityRow]:
        """Entities by id, those that there are."""
        found: dict[str, EntityRow] = {}
        for batch in map(filled, batches(ids)):
            rows = session.rows(
                f"SELECT {_ENTITY} FROM entity e WHERE e.space = ? AND e.id IN ({marks(len(batch))})", (space, *batch)
            )
            found.update((row.id, row) for row in self._whole(session, space, rows))
        return found

    def entity(self, session: Session, space: str, entity_id: str) -> EntityRow | None:
        return self.entities(session, space, [entity_id]).get(entity_id)

    def ids_like(self, session: Session, space: str, ids: Sequence[str]) -> set[str]:
        """Which of the ids are taken, and which that are one of them with an underscore and more."""
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
        """Entities in the order of their names, and how many there are in all."""
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
        """Entities by canonical key: those of that name first, then those that are also spelled so, oldest first."""
        pairs: list[tuple[str, str]] = []
        for table, column in (("entity", "id"), ("entity_alias", "entity_id")):
            for batch in map(filled, batches(keys)):
                # Sorted here: asked for an order, the planner would go through the whole space by id.
                pairs += sorted(
                    session.rows(
                        f"SELECT key, {column} FROM {table} WHERE space = ? AND key IN ({marks(len(batch))})",
                        (space, *batch),
                    )
                )
        rows = self.entities(session, space, list(dict.fromkeys(entity_id for _, entity_id in pairs)))
        found: dict[str, list[EntityRow]] = {}
        for key, entity_id in dict.fromkeys(pairs):
            if key in keys and entity_id in rows:
                found.setdefault(key, []).append(rows[entity_id])
        return found

    def all_entities(self, session: Session, space: str) -> list[EntityRow]:
        """Every entity of a space, for looking for duplicates."""
        rows = session.rows(f"SELECT {_ENTITY} FROM entity e WHERE e.space = ? ORDER BY e.id", (space,))
        return self._whole(session, space, rows, everything=True)

    def _whole(self, session: Session, space: str, rows: Sequence[Row], *, everything: bool = False) -> list[EntityRow]:
        """Entities from their rows, with their other spellings."""
        aliases: dict[str, list[AliasRow]] = {}
        statement = "SELECT entity_id, alias, key FROM entity_alias WHERE space = ?"
        if everything:
            found = session.rows(f"{statement} ORDER BY entity_id, alias", (space,))
        else:
            found = [
                pair
                for batch in map(filled, batches(row[1] for row in rows))
                for pair in session.rows(
                    f"{statement} AND entity_id IN ({marks(len(batch))}) ORDER BY alias", (space, *batch)
                )
            ]
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
        """One at the same place of the same memory is replaced."""
        session.run_many(
            "INSERT INTO mention (space, entity_id, num, first, past, confidence, method) VALUES (?, ?, ?, ?, ?, ?, ?) "
            "ON CONFLICT (space, entity_id, num, first) DO UPDATE SET past = excluded.past, "
            "confidence = excluded.confidence, method = excluded.method",
            rows,
        )

    def mention_counts(self, session: Session, space: str, ids: Sequence[str], sight: Sight) -> dict[str, int]:
        """How often memories that are seen mention each entity; all ids are in the answer."""
        counts = dict.fromkeys(ids, 0)
        for batch in map(filled, batches(ids)):
            counts.update(
                session.rows(
                    f"SELECT n.entity_id, count(*) FROM mention n JOIN memory m ON {live_memory('n')} "
                    f"WHERE n.space = ? AND n.entity_id IN ({marks(len(batch))}) GROUP BY n.entity_id",
                    (*sight.params, space, *batch),
                )
            )
        return counts

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
        """The entities of each memory that is seen, by the memory's id: all, or only the given ones."""
        found: dict[str, list[str]] = {}
        statement = (
            f"SELECT DISTINCT m.id, n.entity_id FROM mention n JOIN memory m ON {live_memory('n')} WHERE n.space = ?"
        )
        params: tuple[Sql, ...] = (*sight.params, space)
        if ids:
            rows = [
                row
                for batch in map(filled, batches(ids))
                for row in session.rows(f"{statement} AND n.entity_id IN ({marks(len(batch))})", (*params, *batch))
            ]
        else:
            rows = session.rows(statement, params)
        for memory_id, entity_id in sorted(rows):
            found.setdefault(memory_id, []).append(entity_id)
        return found

    def mentions_of(self, session: Session, space: str, nums: Sequence[int]) -> Mapping[int, list[MentionRow]]:
        """What memories of a space mention, by their numbers, in the order of the text."""
        found: dict[int, list[MentionRow]] = {}
        for batch in batches(nums):
            rows = session.rows(
                "SELECT space, entity_id, num, first, past, confidence, method FROM mention "
                f"WHERE +space = ? AND num IN ({marks(len(batch))}) ORDER BY num, first, entity_id",
                (space, *batch),
            )
            for row in rows:
                found.setdefault(row[2], []).append(MentionRow(*row))
        return found


def _put_aliases(session: Session, rows: Iterable[EntityRow]) -> None:
    session.run_many(_PUT_ALIAS, [(row.space, row.id, alias.alias, alias.key) for row in rows for alias in row.aliases])
