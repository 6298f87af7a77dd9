"""Merging entities into one, and taking a merge back: first worked out as a plan, then written."""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass, replace
from typing import Any, NamedTuple

from .database import Session, marks
from .graph_edges import RelationshipTable
from .graph_entities import EntityTable
from .graph_schema import (
    RELATIONSHIP,
    AliasRow,
    EntityRow,
    MentionRow,
    RelationshipRow,
    as_json,
    batches,
    filled,
    relationship_from,
)

__all__ = ["MergePlan", "MergeRow", "MergingTable"]


class MergeRow(NamedTuple):
    """A merge that can be taken back: into which entity, and which ids and names went into it."""

    merge_id: str
    into_id: str
    ids: tuple[str, ...]
    names: tuple[str, ...]
    recorded_at: int


@dataclass(frozen=True, slots=True)
class MergePlan:
    """What a merge does, row by row. Everything but `kept` and `changed` is as it was before."""

    kept: EntityRow
    before: EntityRow
    dropped: tuple[EntityRow, ...]
    # All mentions of the entities that go, and those of the kept one that stand at the same place.
    mentions: tuple[MentionRow, ...]
    merged_mentions: tuple[MentionRow, ...]
    touched: tuple[RelationshipRow, ...]
    changed: tuple[RelationshipRow, ...]
    loops: tuple[RelationshipRow, ...]
    duplicates: tuple[RelationshipRow, ...]


class MergingTable(EntityTable, RelationshipTable):
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
        """What merging the entities into one would do; None where one of them is not there. Nothing changes.

        The kept entity's own properties win; the names of the others become other spellings of it.
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
        """Write a plan made in the same transaction, and what it takes to undo it."""
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
        session.run_many(
            "INSERT INTO entity_history (space, merge_id, n, into_id, kind, num, data, recorded_at) "
            "VALUES (?, ?, ?, ?, ?, ?, ?, ?)",
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

    def merges(self, session: Session, space: str, entity_id: str | None = None, limit: int = 50) -> list[MergeRow]:
        """Merges that can be taken back, newest first: all, or those into one entity."""
        where, params = ("space = ? AND into_id = ?", [space, entity_id]) if entity_id else ("space = ?", [space])
        heads = session.rows(
            f"SELECT merge_id, into_id, recorded_at FROM entity_history WHERE {where} AND kind = 'merge' "
            "ORDER BY recorded_at DESC, merge_id DESC LIMIT ?",
            (*params, limit),
        )
        found = []
        for merge_id, into_id, recorded_at in heads:
            rows = [json.loads(row) for kind, row in self._log(session, space, merge_id) if kind == "entity"]
            ids, names = tuple(row["id"] for row in rows), tuple(row["name"] for row in rows)
            found.append(MergeRow(merge_id, into_id, ids, names, recorded_at))
        return found

    def undo_merge(self, session: Session, space: str, merge_id: str, at: int) -> bool:
        """Take a merge back. False where it is not known, its entity was itself merged away or deleted since, or an id
        that went into it has been given to another entity.

        What was added to the kept entity after the merge stays with it; what was removed since stays removed.
        """
        log = self._log(session, space, merge_id)
        parts = {kind: [json.loads(data) for found, data in log if found == kind] for kind in dict.fromkeys(dict(log))}
        if not log or (now := self.entity(session, space, parts["merge"][0]["id"])) is None:
            return False
        gone = [_entity_from(one) for one in parts.get("entity", ())]
        if self.entities(session, space, [one.id for one in gone]):
            return False
        self.add_entities(session, gone)
        self._give_back_mentions(session, now.id, [MentionRow(*one) for one in parts.get("mention", ())])
        self._give_back_edges(session, now.id, [RelationshipRow(**one) for one in parts.get("moved", ())])
        self._add_again(session, [RelationshipRow(**one) for one in parts.get("dropped", ())])
        self.update_entity(session, _parted(now, _entity_from(parts["merge"][0]), _entity_from(parts["kept"][0]), at))
        session.run("DELETE FROM entity_history WHERE space = ? AND merge_id = ?", (space, merge_id))
        return True

    def _log(self, session: Session, space: str, merge_id: str) -> list[tuple[str, str]]:
        rows = session.rows(
            "SELECT kind, data FROM entity_history WHERE space = ? AND merge_id = ? ORDER BY n", (space, merge_id)
        )
        return [(row[0], row[1]) for row in rows]

    def _give_back_mentions(self, session: Session, into: str, rows: Sequence[MentionRow]) -> None:
        own = [row for row in rows if row.entity_id == into]
        others = [row for row in rows if row.entity_id != into]
        there: set[tuple[int, int]] = set()
        for row in others:
            found = session.rows(
                "SELECT 1 FROM mention WHERE space = ? AND entity_id = ? AND num = ? AND first = ?",
                (row.space, into, row.num, row.first),
            )
            # A memory that was read anew since has other mentions now.
            there |= {(row.num, row.first)} if found else set()
        session.run_many(
            "DELETE FROM mention WHERE space = ? AND entity_id = ? AND num = ? AND first = ?",
            [(row.space, into, row.num, row.first) for row in others],
        )
        self.add_mentions(session, [row for row in (*others, *own) if (row.num, row.first) in there])

    def _give_back_edges(self, session: Session, into: str, rows: Sequence[RelationshipRow]) -> None:
        given = []
        for row in rows:
            now = self.relationship(session, row.space, row.id)
            if now is not None:
                # The other end may have been merged elsewhere since: only ours is put back.
                source = row.source_id if now.source_id == into else now.source_id
                target = row.target_id if now.target_id == into else now.target_id
                given.append(replace(row, source_id=source, target_id=target))
        self._move(session, given)

    def _add_again(self, session: Session, rows: Sequence[RelationshipRow]) -> None:
        if rows:
            ends = sorted({end for row in rows for end in (row.source_id, row.target_id)})
            there = self.entities(session, rows[0].space, ends)
            self.add_relationships(session, [row for row in rows if row.source_id in there and row.target_id in there])

    def _move(self, session: Session, rows: Sequence[RelationshipRow]) -> None:
        session.run_many(
            "UPDATE relationship SET source_id = ?, target_id = ?, properties = ? WHERE space = ? AND id = ?",
            [(row.source_id, row.target_id, as_json(row.properties), row.space, row.id) for row in rows],
        )

    def _mentions_in(self, session: Session, space: str, ids: Sequence[str]) -> list[MentionRow]:
        return [
            MentionRow(*row)
            for batch in map(filled, batches(ids))
            for row in session.rows(
                "SELECT space, entity_id, num, first, past, confidence, method FROM mention "
                f"WHERE space = ? AND entity_id IN ({marks(len(batch))}) ORDER BY entity_id, num, first",
                (space, *batch),
            )
        ]

    def _relationships_at(self, session: Session, space: str, ids: Sequence[str]) -> list[RelationshipRow]:
        """Every relationship at the entities, seen or not, on record or not."""
        found: dict[str, RelationshipRow] = {}
        for batch in map(filled, batches(ids)):
            for end in ("source_id", "target_id"):
                rows = session.rows(
                    f"SELECT {RELATIONSHIP} FROM relationship r WHERE r.space = ? AND r.{end} IN ({marks(len(batch))})",
                    (space, *batch),
                )
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
    """The kept entity without what the merge gave it; what was changed since stays."""
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
    """The mentions that a merge takes away or overwrites, and those of the kept entity in their place."""
    places: dict[tuple[int, int], list[MentionRow]] = {}
    for row in rows:
        places.setdefault((row.num, row.first), []).append(row)
    taken = [group for group in places.values() if any(row.entity_id != into for row in group)]
    # One stretch of text is one mention: the surest reading of it stays.
    best = [max(group, key=lambda row: (row.confidence, row.past, row.method)) for group in taken]
    return tuple(row for group in taken for row in group), tuple(row._replace(entity_id=into) for row in best)


def _moved(rows: Sequence[RelationshipRow], into: str, group: set[str]) -> tuple[tuple[RelationshipRow, ...], ...]:
    """(changed, before), (changed, after), edges that would lead back to where they start, doubles."""
    before = {row.id: row for row in rows}
    same: dict[tuple[object, ...], list[RelationshipRow]] = {}
    loops = []
    for row in rows:
        source = into if row.source_id in group else row.source_id
        target = into if row.target_id in group else row.target_id
        if source == target:
            loops.append(row)
            continue
        # Facts of other memories or other times are facts of their own.
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
