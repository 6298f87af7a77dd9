"""The tables of the graph together, counts over them, and merges of entities, which are first planned, then written.

Every method takes the session it runs in and a space: nothing is read or written across spaces.
"""

from __future__ import annotations

import json
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import asdict, dataclass, replace
from typing import Any, NamedTuple

from ..database import EVERY_ROW, Session, Sql, by_space, column, everywhere, in_spaces, marks
from .tables import (
    MENTIONS,
    RELATIONSHIP,
    AliasRow,
    EdgeRow,
    EntityRow,
    EntityTable,
    MentionPlace,
    MentionRow,
    RelationshipRow,
    RelationshipTable,
    Sight,
    among,
    as_json,
    batches,
    live_memory,
    relationship_from,
    seen_relationship,
)

__all__ = [
    "AliasRow", "DeletionCounts", "EdgeRow", "EntityRow", "GraphCounts", "GraphTable", "MentionPlace", "MentionRow",
    "MergePlan", "RelationshipRow", "Sight",
]  # fmt: skip


@dataclass(frozen=True, slots=True)
class MergePlan:
    """What a merge does, row by row. All rows but `kept`, `merged_mentions` and `changed` are as they were before."""

    kept: EntityRow
    before: EntityRow
    dropped: tuple[EntityRow, ...]
    # All mentions of the dropped entities, and those of the kept one at the same places.
    mentions: tuple[MentionRow, ...]
    merged_mentions: tuple[MentionRow, ...]
    touched: tuple[RelationshipRow, ...]
    changed: tuple[RelationshipRow, ...]
    loops: tuple[RelationshipRow, ...]
    duplicates: tuple[RelationshipRow, ...]


class DeletionCounts(NamedTuple):
    """How many rows were deleted."""

    entities: int
    mentions: int
    relationships: int


class GraphCounts(NamedTuple):
    """The size of a space's graph, as far as it is visible."""

    entities: Mapping[str, int]
    relationships: Mapping[str, int]
    mentions: int
    memories: int


class GraphTable(EntityTable, RelationshipTable):
    def delete_entities(self, session: Session, space: str, ids: Sequence[str]) -> DeletionCounts:
        """Remove entities with all that depends on them; merges into them can no longer be undone."""
        gone = [0, 0, 0]
        for batch in batches(dict.fromkeys(ids)):
            inside = marks(len(batch))
            for place, table, key in (
                (0, "entity", "id"),
                (1, "mention", "entity_id"),
                (2, "relationship", "source_id"),
                (2, "relationship", "target_id"),
                (None, "entity_alias", "entity_id"),
                (None, "entity_history", "into_id"),
            ):
                session.run(f"DELETE FROM {table} WHERE space = ? AND {key} IN ({inside})", (space, *batch))
                if place is not None:
                    gone[place] += session.changed()
        return DeletionCounts(*gone)

    def restate(
        self,
        session: Session,
        space: str,
        num: int,
        mentions: Iterable[MentionRow],
        relationships: Iterable[RelationshipRow] = (),
    ) -> None:
        """Replace the mentions and relationships of a memory."""
        for table in ("mention", "relationship"):
            session.run(f"DELETE FROM {table} WHERE +space = ? AND num = ?", (space, num))
        self.add_mentions(session, mentions)
        self.add_relationships(session, relationships)

    def counts(self, session: Session, space: str, sight: Sight, *, as_of: int | None = None) -> GraphCounts:
        """Entities by type, relationships on record by type, mentions, and how many memories have mentions."""
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
        """Entities without a mention by a visible memory and without a relationship on record.

        Without `sight`, all memories count: only what none of them mentions may be removed.
        """
        memory, seen = (f" JOIN memory m ON {live_memory('n')}", f" AND {seen_relationship()}") if sight else ("", "")
        edges = " ".join(
            f"AND NOT EXISTS (SELECT 1 FROM relationship r WHERE r.space = e.space AND r.{end} = e.id "
            f"AND r.ended_at IS NULL{seen})"
            for end in ("source_id", "target_id")
        )
        return column(
            session,
            f"SELECT e.id FROM entity e WHERE e.space = ? AND NOT EXISTS (SELECT 1 FROM mention n{memory} "
            f"WHERE n.space = e.space AND n.entity_id = e.id) {edges} ORDER BY e.id LIMIT ?",
            (space, *((*sight.params, *sight.seen_in(space) * 2) if sight else ()), limit),
        )

    def notes(self, session: Session, space: str, sight: Sight) -> int:
        """The number of visible memories of a space, with or without mentions."""
        statement = f"SELECT count(*) FROM memory o JOIN memory m ON {live_memory('o')} WHERE o.space = ?"
        return int(session.rows(statement, (*sight.params, space))[0][0])

    def mark_given(self, session: Session, space: str, ids: Sequence[str]) -> None:
        """Mark entities as created by a user, whether memories mention them or not."""
        session.update_many("entity", ["given"], "space = ? AND id = ?", [(1, space, one) for one in ids])

    def mark_read(self, session: Session, space: str, nums: Sequence[int]) -> None:
        """Mark memories as read for the graph."""
        session.update_many("memory", ["graphed"], "space = ? AND num = ?", [(1, space, num) for num in nums])

    def mark_unread(self, session: Session, space: str, where: str, params: Sequence[Sql], limit: int) -> int:
        """Mark the newest memories `m` that meet a condition to be read for the graph again; returns how many."""
        newest = f"m.space = ? AND m.kind = 'note' AND {where} ORDER BY m.num DESC LIMIT ?"
        mine = f"space = ? AND num IN (SELECT m.num FROM memory m WHERE {newest})"
        return session.update("memory", {"graphed": 0}, mine, (space, space, *params, limit))

    def mark_pending(self, session: Session, space: str, nums: Sequence[int]) -> None:
        """Mark new memories to be read soon, in their order."""
        session.update_many("memory", ["graphed"], "space = ? AND num = ?", [(2, space, num) for num in nums])

    def pending(self, session: Session, spaces: Sequence[str] | None, limit: int) -> dict[str, list[int]]:
        """Memories that are to be read soon, by space, the oldest first; of some spaces, or of all."""
        oldest = "graphed = 2 AND status <> 'tombstoned' ORDER BY num LIMIT ?"
        if spaces is None:
            rows = session.rows(everywhere("pending", f"SELECT space, num FROM memory WHERE {oldest}"), (limit,))
        else:
            within = in_spaces("+space", spaces)
            rows = session.rows(f"SELECT space, num FROM memory WHERE {within} AND {oldest}", (*spaces, limit))
        return by_space((row[0], row[1]) for row in rows)

    def count_pending(self, session: Session, most: int) -> int:
        """How many memories are to be read soon; `most` if there are more."""
        statement = "SELECT count(*) FROM (SELECT 1 FROM memory WHERE graphed = 2 LIMIT ?) p"
        return int(session.rows(everywhere("how many pending", statement), (most,))[0][0])

    def claim(self, session: Session, space: str, num: int, version: int) -> bool:
        """Take a pending memory in this transaction; False if it changed, or if somebody else has read it."""
        waiting = "space = ? AND num = ? AND version = ? AND graphed = 2"
        return session.update("memory", {"graphed": 1}, waiting, (space, num, version)) == 1

    def unread(self, session: Session, limit: int) -> dict[str, list[int]]:
        """Memories that were not read for the graph yet, by space."""
        rows = session.rows(
            everywhere(
                "unread",
                "SELECT space, num FROM memory WHERE graphed = 0 AND kind = 'note' AND status <> 'tombstoned' "
                "ORDER BY num LIMIT ?",
            ),
            (limit,),
        )
        return by_space((row[0], row[1]) for row in rows)

    def most_named(
        self, session: Session, space: str, sight: Sight, types: Sequence[str], limit: int
    ) -> list[EntityRow]:
        """The entities that most memories name, then those with the most relationships, then others."""
        of_types = f"AND e.type IN ({marks(len(types))})" if types else ""
        ids = column(
            session,
            f"SELECT n.entity_id FROM mention n JOIN memory m ON {live_memory('n')} "
            f"JOIN entity e ON e.space = n.space AND e.id = n.entity_id WHERE n.space = ? {of_types} "
            "GROUP BY n.entity_id ORDER BY count(DISTINCT n.num) DESC, n.entity_id LIMIT ?",
            (*sight.params, space, *types, limit),
        )
        if len(ids) < limit:
            ids += [entity_id for entity_id, _ in self.degrees(session, space, sight, limit=limit)]
            ids += [row.id for row in self.list_entities(session, space, types=types, limit=limit)[0]]
        rows = self.entities(session, space, list(dict.fromkeys(ids)))
        return [rows[one] for one in dict.fromkeys(ids) if one in rows and (not types or rows[one].type in types)][
            :limit
        ]

    # -- merges ----------------------------------------------------------------------------------

    def plan_merge(
        self,
        session: Session,
        space: str,
        into: str,
        ids: Sequence[str],
        at: int,
        *,
        name: str | None = None,
        key: str | None = None,
    ) -> MergePlan | None:
        """Plan a merge of entities, without changing anything; None if one of them does not exist.

        The properties of the kept entity win; the names of the others become its aliases.
        """
        others = [one for one in dict.fromkeys(ids) if one != into]
        rows = self.entities(session, space, [into, *others])
        if len(rows) != len(others) + 1:
            return None
        before, dropped = rows[into], tuple(rows[one] for one in others)
        group = {into, *others}
        mentions, merged = _merged_mentions(self._mentions_in(session, space, sorted(group)), into)
        touched, changed, loops, duplicates = _moved(self._relationships_at(session, space, sorted(group)), into, group)
        return MergePlan(
            kept=_united(before, dropped, name or before.name, key or before.key, at),
            before=before,
            dropped=dropped,
            mentions=mentions,
            merged_mentions=merged,
            touched=touched,
            changed=changed,
            loops=loops,
            duplicates=duplicates,
        )

    def merge(self, session: Session, plan: MergePlan, merge_id: str, at: int) -> None:
        """Write a plan that was made in the same transaction, with a log to undo it."""
        space, into = plan.kept.space, plan.kept.id
        gone = {row.id for row in (*plan.loops, *plan.duplicates)}
        log: list[tuple[str, int | None, str]] = [
            ("merge", None, _entity_json(plan.kept)),
            ("kept", None, _entity_json(plan.before)),
            *(("entity", None, _entity_json(row)) for row in plan.dropped),
            *(("mention", row.num, as_json(list(row))) for row in plan.mentions),
            *(
                ("dropped" if row.id in gone else "moved", row.num, as_json(asdict(row)))
                for row in (*plan.touched, *plan.loops, *plan.duplicates)
            ),
        ]
        session.insert_many(
            "entity_history",
            ("space", "merge_id", "n", "into_id", "kind", "num", "data", "recorded_at"),
            [(space, merge_id, n, into, kind, num, data, at) for n, (kind, num, data) in enumerate(log)],
        )
        self.delete_relationships(session, space, sorted(gone))
        self._move(session, plan.changed)
        for batch in batches(row.id for row in plan.dropped):
            inside = marks(len(batch))
            session.run(f"DELETE FROM mention WHERE space = ? AND entity_id IN ({inside})", (space, *batch))
            session.run(f"DELETE FROM entity_alias WHERE space = ? AND entity_id IN ({inside})", (space, *batch))
            session.run(f"DELETE FROM entity WHERE space = ? AND id IN ({inside})", (space, *batch))
        self.add_mentions(session, plan.merged_mentions)
        self.update_entity(session, plan.kept)

    def merged_into(self, session: Session, space: str, entity_id: str) -> str | None:
        """The entity that one was last merged into; None if it was not merged, or the merge was undone."""
        # The pattern only narrows the search: an underscore in it stands for any character.
        rows = session.rows(
            "SELECT into_id, data FROM entity_history WHERE space = ? AND kind = 'entity' AND data LIKE ? "
            "ORDER BY recorded_at DESC, merge_id DESC",
            (space, f"%{json.dumps(entity_id)}%"),
        )
        return next((into for into, data in rows if json.loads(data)["id"] == entity_id), None)

    def undo_merge(self, session: Session, space: str, merge_id: str, at: int) -> bool:
        """Undo a merge. False if it is unknown, its entity was merged or deleted since, or one of the merged ids is
        taken by another entity.

        What was added to the kept entity since stays with it; what was removed since stays removed.
        """
        log = self._log(session, space, merge_id)
        parts = {kind: [json.loads(data) for found, data in log if found == kind] for kind in dict.fromkeys(dict(log))}
        if not log or (now := self.entity(session, space, parts["merge"][0]["id"])) is None:
            return False
        gone = [_entity_from(one) for one in parts.get("entity", ())]
        if self.entities(session, space, [one.id for one in gone]):
            return False
        self.add_entities(session, gone)
        self._restore_mentions(session, now.id, [MentionRow(*one) for one in parts.get("mention", ())])
        self._restore_edges(session, now.id, [RelationshipRow(**one) for one in parts.get("moved", ())])
        self._restore_dropped(session, [RelationshipRow(**one) for one in parts.get("dropped", ())])
        self.update_entity(session, _parted(now, _entity_from(parts["merge"][0]), _entity_from(parts["kept"][0]), at))
        session.run("DELETE FROM entity_history WHERE space = ? AND merge_id = ?", (space, merge_id))
        return True

    def _log(self, session: Session, space: str, merge_id: str) -> list[tuple[str, str]]:
        return session.rows(
            "SELECT kind, data FROM entity_history WHERE space = ? AND merge_id = ? ORDER BY n", (space, merge_id)
        )

    def _restore_mentions(self, session: Session, into: str, rows: Sequence[MentionRow]) -> None:
        own = [row for row in rows if row.entity_id == into]
        others = [row for row in rows if row.entity_id != into]
        there: set[tuple[int, int]] = set()
        for row in others:
            found = session.rows(
                "SELECT 1 FROM mention WHERE space = ? AND entity_id = ? AND num = ? AND first = ?",
                (row.space, into, row.num, row.first),
            )
            # A memory that was read again since has other mentions now.
            there |= {(row.num, row.first)} if found else set()
        session.run_many(
            "DELETE FROM mention WHERE space = ? AND entity_id = ? AND num = ? AND first = ?",
            [(row.space, into, row.num, row.first) for row in others],
        )
        self.add_mentions(session, [row for row in (*others, *own) if (row.num, row.first) in there])

    def _restore_edges(self, session: Session, into: str, rows: Sequence[RelationshipRow]) -> None:
        given = []
        for row in rows:
            now = self.relationship(session, row.space, row.id)
            if now is not None:
                # The other end may have been merged elsewhere since: only this one is restored.
                source = row.source_id if now.source_id == into else now.source_id
                target = row.target_id if now.target_id == into else now.target_id
                given.append(replace(row, source_id=source, target_id=target))
        self._move(session, given)

    def _restore_dropped(self, session: Session, rows: Sequence[RelationshipRow]) -> None:
        if rows:
            ends = sorted({end for row in rows for end in (row.source_id, row.target_id)})
            there = self.entities(session, rows[0].space, ends)
            self.add_relationships(session, [row for row in rows if row.source_id in there and row.target_id in there])

    def _move(self, session: Session, rows: Sequence[RelationshipRow]) -> None:
        moved = [(row.source_id, row.target_id, as_json(row.properties), row.space, row.id) for row in rows]
        session.update_many("relationship", ("source_id", "target_id", "properties"), "space = ? AND id = ?", moved)

    def _mentions_in(self, session: Session, space: str, ids: Sequence[str]) -> list[MentionRow]:
        statement = f"{MENTIONS} WHERE space = ? AND entity_id IN ({{}}) ORDER BY entity_id, num, first"
        return [MentionRow(*row) for row in among(session, statement, (space,), ids)]

    def _relationships_at(self, session: Session, space: str, ids: Sequence[str]) -> list[RelationshipRow]:
        """Every relationship of the entities, visible or not, on record or not."""
        found: dict[str, RelationshipRow] = {}
        for end in ("source_id", "target_id"):
            statement = f"SELECT {RELATIONSHIP} FROM relationship r WHERE r.space = ? AND r.{end} IN ({{}})"
            rows = among(session, statement, (space,), ids)
            found.update((row[1], relationship_from(row)) for row in rows)
        return [found[one] for one in sorted(found)]


def _united(kept: EntityRow, dropped: Sequence[EntityRow], name: str, key: str, at: int) -> EntityRow:
    spellings = {kept.name: kept.key} | dict(kept.aliases)
    properties = dict(kept.properties)
    for row in dropped:
        for alias, its_key in ((row.name, row.key), *row.aliases):
            spellings.setdefault(alias, its_key)
        properties = {**row.properties, **properties}
    spellings.pop(name, None)
    aliases = tuple(AliasRow(alias, its_key) for alias, its_key in sorted(spellings.items()))
    given = any(row.given for row in (kept, *dropped))
    return replace(kept, name=name, key=key, aliases=aliases, properties=properties, updated_at=at, given=given)


def _parted(now: EntityRow, merged: EntityRow, before: EntityRow, at: int) -> EntityRow:
    """The kept entity without what the merge added; what was changed since stays."""
    given = set(merged.aliases) - set(before.aliases)
    aliases = {*(alias for alias in now.aliases if alias not in given), *before.aliases}
    properties = {
        key: value
        for key, value in now.properties.items()
        if key in before.properties or merged.properties.get(key) != value
    }
    name, key = (before.name, before.key) if now.name == merged.name else (now.name, now.key)
    parted = replace(now, name=name, key=key, aliases=tuple(sorted(aliases)), properties=properties, updated_at=at)
    return replace(parted, given=before.given if now.given == merged.given else now.given)


def _merged_mentions(rows: Sequence[MentionRow], into: str) -> tuple[tuple[MentionRow, ...], tuple[MentionRow, ...]]:
    """The mentions that a merge removes or overwrites, and those of the kept entity in their place."""
    places: dict[tuple[int, int], list[MentionRow]] = {}
    for row in rows:
        places.setdefault((row.num, row.first), []).append(row)
    taken = [group for group in places.values() if any(row.entity_id != into for row in group)]
    # One span is one mention: the surest one stays.
    best = [max(group, key=lambda row: (row.confidence, row.past, row.method)) for group in taken]
    return tuple(row for group in taken for row in group), tuple(row._replace(entity_id=into) for row in best)


def _moved(rows: Sequence[RelationshipRow], into: str, group: set[str]) -> tuple[tuple[RelationshipRow, ...], ...]:
    """The changed relationships before and after, those that become loops, and duplicates."""
    before = {row.id: row for row in rows}
    same: dict[tuple[object, ...], list[RelationshipRow]] = {}
    loops = []
    for row in rows:
        source = into if row.source_id in group else row.source_id
        target = into if row.target_id in group else row.target_id
        if source == target:
            loops.append(row)
            continue
        # The same fact from another memory or time is another fact.
        fact = (source, target, row.type, row.valid_from, row.valid_to, row.ended_at, row.num)
        same.setdefault(fact, []).append(replace(row, source_id=source, target_id=target))
    changed, doubles = [], []
    for group_of_same in same.values():
        best, *others = sorted(group_of_same, key=lambda row: (-row.confidence, row.recorded_at, row.id))
        properties: Mapping[str, object] = best.properties
        for row in others:
            properties = {**row.properties, **properties}
        best = replace(best, properties=properties)
        if best != before[best.id]:
            changed.append(best)
        doubles += [before[row.id] for row in others]
    return tuple(before[row.id] for row in changed), tuple(changed), tuple(loops), tuple(doubles)


def _entity_json(row: EntityRow) -> str:
    return as_json(asdict(row))


def _entity_from(one: Mapping[str, Any]) -> EntityRow:
    return EntityRow(**{**one, "aliases": tuple(AliasRow(*alias) for alias in one["aliases"])})
