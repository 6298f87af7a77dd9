"""The graph in the store: entities, mentions, relationships and merges together, and counts over them.

Every method takes the session it runs in, and a space: nothing is read or written across spaces.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from typing import NamedTuple

from .database import EVERY_ROW, Session, marks
from .graph_merging import MergePlan, MergeRow, MergingTable
from .graph_schema import (
    GRAPH_STEP,
    AliasRow,
    EdgeRow,
    EntityRow,
    MentionPlace,
    MentionRow,
    RelationshipRow,
    Sight,
    batches,
    live_memory,
    seen_relationship,
)
from .placement import by_space, everywhere

__all__ = [
    "GRAPH_STEP",
    "AliasRow",
    "EdgeRow",
    "EntityRow",
    "GraphCounts",
    "GraphTable",
    "MentionPlace",
    "MentionRow",
    "MergePlan",
    "MergeRow",
    "RelationshipRow",
    "Removed",
    "Sight",
]


class Removed(NamedTuple):
    """How many rows went."""

    entities: int
    mentions: int
    relationships: int


class GraphCounts(NamedTuple):
    """What a space's graph holds, as far as it is seen."""

    entities: Mapping[str, int]
    relationships: Mapping[str, int]
    mentions: int
    memories: int


class GraphTable(MergingTable):
    def delete_entities(self, session: Session, space: str, ids: Sequence[str]) -> Removed:
        """Remove entities with all that hangs on them; merges into them can no longer be taken back."""
        gone = [0, 0, 0]
        for batch in batches(dict.fromkeys(ids)):
            inside = marks(len(batch))
            for place, table, column in (
                (0, "entity", "id"),
                (1, "mention", "entity_id"),
                (2, "relationship", "source_id"),
                (2, "relationship", "target_id"),
                (None, "entity_alias", "entity_id"),
                (None, "entity_history", "into_id"),
            ):
                session.run(f"DELETE FROM {table} WHERE space = ? AND {column} IN ({inside})", (space, *batch))
                if place is not None:
                    gone[place] += session.changed()
        return Removed(*gone)

    def restate(
        self,
        session: Session,
        space: str,
        num: int,
        mentions: Iterable[MentionRow],
        relationships: Iterable[RelationshipRow] = (),
    ) -> None:
        """What a memory names and states, in place of what it named and stated before."""
        for table in ("mention", "relationship"):
            session.run(f"DELETE FROM {table} WHERE +space = ? AND num = ?", (space, num))
        self.add_mentions(session, mentions)
        self.add_relationships(session, relationships)

    def drop_mentions(self, session: Session, space: str, nums: Sequence[int]) -> None:
        """Forget all that memories named and stated, also where a merge keeps it: for when they are purged."""
        for batch in batches(nums):
            for table in ("mention", "relationship", "entity_history"):
                session.run(f"DELETE FROM {table} WHERE +space = ? AND num IN ({marks(len(batch))})", (space, *batch))

    def counts(self, session: Session, space: str, sight: Sight, *, as_of: int | None = None) -> GraphCounts:
        """Entities by type, relationships on record by type, mentions, and how many memories they stand in."""
        moment = sight.now if as_of is None else as_of
        entities = session.rows(
            "SELECT type, count(*) FROM entity WHERE space = ? GROUP BY type ORDER BY count(*) DESC, type", (space,)
        )
        relationships = session.rows(
            "SELECT r.type, count(*) FROM relationship r WHERE r.space = ? AND r.ended_at IS NULL "
            "AND (r.valid_from IS NULL OR r.valid_from <= ?) AND (r.valid_to IS NULL OR r.valid_to > ?) "
            f"AND {seen_relationship()} GROUP BY r.type ORDER BY count(*) DESC, r.type",
            (space, moment, moment, *sight.seen_in(space)),
        )
        mentions, memories = session.rows(
            f"SELECT count(*), count(DISTINCT n.num) FROM mention n JOIN memory m ON {live_memory('n')} "
            "WHERE n.space = ?",
            (*sight.params, space),
        )[0]
        return GraphCounts(dict(entities), dict(relationships), mentions, memories)

    def orphans(self, session: Session, space: str, sight: Sight | None, limit: int = EVERY_ROW) -> list[str]:
        """Entities that no memory in sight mentions and no relationship on record leads to.

        Without `sight`, memories that cannot be seen count too: only what they do not mention can be given up.
        """
        memory, seen = (f" JOIN memory m ON {live_memory('n')}", f" AND {seen_relationship()}") if sight else ("", "")
        edges = " ".join(
            f"AND NOT EXISTS (SELECT 1 FROM relationship r WHERE r.space = e.space AND r.{end} = e.id "
            f"AND r.ended_at IS NULL{seen})"
            for end in ("source_id", "target_id")
        )
        rows = session.rows(
            f"SELECT e.id FROM entity e WHERE e.space = ? AND NOT EXISTS (SELECT 1 FROM mention n{memory} "
            f"WHERE n.space = e.space AND n.entity_id = e.id) {edges} ORDER BY e.id LIMIT ?",
            (space, *((*sight.params, *sight.seen_in(space) * 2) if sight else ()), limit),
        )
        return [row[0] for row in rows]

    def notes(self, session: Session, space: str, sight: Sight) -> int:
        """How many memories of a space are seen, with those that mention nothing."""
        statement = f"SELECT count(*) FROM memory o JOIN memory m ON {live_memory('o')} WHERE o.space = ?"
        return int(session.rows(statement, (*sight.params, space))[0][0])

    def mark_given(self, session: Session, space: str, ids: Sequence[str]) -> None:
        """Entities that somebody wants, whether memories name them or not."""
        session.run_many("UPDATE entity SET given = 1 WHERE space = ? AND id = ?", [(space, one) for one in ids])

    def mark_read(self, session: Session, space: str, nums: Sequence[int]) -> None:
        """Memories whose names and statements are in the graph now."""
        session.run_many("UPDATE memory SET graphed = 1 WHERE space = ? AND num = ?", [(space, num) for num in nums])

    def unread(self, session: Session, limit: int) -> dict[str, list[int]]:
        """Memories that were stored before anybody read them for the graph, by their spaces."""
        rows = session.rows(
            everywhere(
                "unread",
                "SELECT space, num FROM memory WHERE graphed = 0 AND kind = 'note' AND status <> 'tombstoned' "
                "ORDER BY num LIMIT ?",
            ),
            (limit,),
        )
        return by_space((row[0], row[1]) for row in rows)

    def busiest_entities(
        self, session: Session, space: str, sight: Sight, types: Sequence[str], limit: int
    ) -> list[EntityRow]:
        """The entities with most relationships, then those mentioned at all, for a picture of the whole."""
        ids = [entity_id for entity_id, _ in self.degrees(session, space, sight, limit=limit)]
        if len(ids) < limit:
            wanted, _ = self.list_entities(session, space, types=types, limit=limit - len(ids))
            ids += [row.id for row in wanted if row.id not in set(ids)]
        rows = self.entities(session, space, ids)
        return [rows[one] for one in ids if one in rows and (not types or rows[one].type in types)]
