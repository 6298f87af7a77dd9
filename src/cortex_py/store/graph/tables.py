"""Relationships between entities: facts with when they held and since when they are known."""

from __future__ import annotations

from collections.abc import Iterable, Sequence

from .database import Row, Session, Sql, marks
from .graph_schema import (
    RELATIONSHIP,
    EdgeRow,
    RelationshipRow,
    Sight,
    batches,
    filled,
    relationship_from,
    relationship_values,
    seen_relationship,
)

__all__ = ["RelationshipTable"]

_ENDS = ("source_id", "target_id")
_MANY = 200
_VALID = "(r.valid_from IS NULL OR r.valid_from <= ?) AND (r.valid_to IS NULL OR r.valid_to > ?)"
_EDGE = "r.id, r.source_id, r.target_id, r.type, r.confidence"


class RelationshipTable:
    def add_relationships(self, session: Session, rows: Iterable[RelationshipRow]) -> None:
        session.run_many(
            f"INSERT INTO relationship ({RELATIONSHIP.replace('r.', '')}) VALUES ({marks(14)})",
            map(relationship_values, rows),
        )

    def relationship(
        self, session: Session, space: str, relationship_id: str, sight: Sight | None = None
    ) -> RelationshipRow | None:
        """A relationship by id; with `sight` not one of a memory that is not seen."""
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
        """Relationships, the surest first, and how many there are in all.

        `valid_at`: those that held then; without it, whenever they hold. `known_at`: those that were on record
        then; without it, those that are on record now.
        """
        parts: list[tuple[str, tuple[Sql, ...]]] = [("r.space = ?", (space,))]
        parts += [(f"r.{column} = ?", (value,)) for column, value in zip(_ENDS, (source, target), strict=True) if value]
        if either:
            # Two searches by key instead of an OR over the space.
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

    def end_relationship(
        self,
        session: Session,
        space: str,
        relationship_id: str,
        *,
        valid_to: int | None = None,
        ended_at: int | None = None,
    ) -> bool:
        """Say until when a fact held (`valid_to`), or that it is off the record from a moment on (`ended_at`).

        To keep what was believed before, take the old row off the record and add one with the new validity.
        """
        session.run(
            "UPDATE relationship SET valid_to = COALESCE(?, valid_to), ended_at = COALESCE(?, ended_at) "
            "WHERE space = ? AND id = ?",
            (valid_to, ended_at, space, relationship_id),
        )
        return session.changed() > 0

    def delete_relationships(self, session: Session, space: str, ids: Sequence[str]) -> int:
        removed = 0
        for batch in batches(ids):
            session.run(f"DELETE FROM relationship WHERE space = ? AND id IN ({marks(len(batch))})", (space, *batch))
            removed += session.changed()
        return removed

    # -- the graph as it is walked ---------------------------------------------------------------

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
        """The edges at any of the entities, in both directions, that hold at a moment (now, unless told).

        With `per_entity`, an entity with more edges in one direction gives only the surest of that direction.
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
        """Entities with more edges than that in one direction, as (column, id)."""
        if per_entity is None:
            return []
        wanted = filled(ids)
        # Only as many as are asked for are ever passed over, however many there are.
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
        """The edges from any of the entities to any of the others or back, looked up by both ends."""
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
        """The relationships that have both ends among the entities, in the order of their ids."""
        condition, params = _holding(space, sight, types, as_of)
        inside = dict.fromkeys(ids)
        select = f"SELECT {RELATIONSHIP} FROM relationship r WHERE r.space = ? AND {condition}"
        rows: list[Row] = []
        for batch in batches(inside):
            hubs = [one for end, one in self._hubs(session, space, batch, _MANY) if end == "source_id"]
            plain = filled([one for one in batch if one not in hubs])
            rows += session.rows(f"{select} AND r.source_id IN ({marks(len(plain))})", (space, *params, *plain))
            for hub in hubs:
                # What a hub has with the others is looked up by both ends, not among all that it has.
                for others in map(filled, batches(inside)):
                    rows += session.rows(
                        f"{select} AND r.source_id = ? AND r.target_id IN ({marks(len(others))})",
                        (space, *params, hub, *others),
                    )
        return sorted((relationship_from(row) for row in rows if row[3] in inside), key=lambda row: row.id)

    def ends(self, session: Session, space: str, sight: Sight, *, as_of: int | None = None) -> list[tuple[str, str]]:
        """Every edge of a space as its two ends, for looking at the graph as a whole."""
        condition, params = _holding(space, sight, (), as_of)
        rows = session.rows(
            f"SELECT r.source_id, r.target_id FROM relationship r WHERE r.space = ? AND {condition}", (space, *params)
        )
        return [(row[0], row[1]) for row in rows]

    def degrees(
        self, session: Session, space: str, sight: Sight, *, as_of: int | None = None, limit: int = 50
    ) -> list[tuple[str, int]]:
        """The entities with the most edges, and how many; an edge to itself counts twice."""
        condition, params = _holding(space, sight, (), as_of)
        both = " UNION ALL ".join(
            f"SELECT r.{end} AS end_id FROM relationship r WHERE r.space = ? AND {condition}" for end in _ENDS
        )
        rows = session.rows(
            f"SELECT end_id, count(*) FROM ({both}) b GROUP BY end_id ORDER BY count(*) DESC, end_id LIMIT ?",
            (*(space, *params) * 2, limit),
        )
        return [(row[0], row[1]) for row in rows]


def _holding(space: str, sight: Sight, types: Sequence[str], as_of: int | None) -> tuple[str, list[Sql]]:
    """A condition on `relationship r`: on record, valid at the moment, seen, of one of the types."""
    moment = sight.now if as_of is None else as_of
    sql = f"r.ended_at IS NULL AND {_VALID} AND {seen_relationship()}"
    params: list[Sql] = [moment, moment, *sight.seen_in(space)]
    if types:
        sql, params = f"{sql} AND r.type IN ({marks(len(types))})", [*params, *types]
    return sql, params
