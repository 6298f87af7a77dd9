"""Sync state of a home: what each target has of each document, and how many exchanges a day had.

Before anything is sent, sync asks which records contain personal data, and what is known only through them.
"""

from __future__ import annotations

from collections.abc import Collection, Iterable, Iterator, Sequence
from typing import NamedTuple

from ..database import Session, replacing, rows_among

__all__ = ["EntryRow", "ReplicaTable", "earlier_texts", "marked", "only_mentioned_by", "replacements"]


class EntryRow(NamedTuple):
    """`versions` is JSON, a counter for each machine. A document without `digest` was deleted."""

    kind: str
    key: str
    versions: str
    stamp: int
    latest: int
    digest: str | None
    pack: str
    maker: str


class ReplicaTable:
    def entries(self, session: Session, space: str, target: str) -> list[EntryRow]:
        rows = session.rows(
            f"SELECT {', '.join(EntryRow._fields)} FROM sync_entry WHERE space = ? AND target = ? ORDER BY kind, key",
            (space, target),
        )
        return [EntryRow(*row) for row in rows]

    def keep(self, session: Session, space: str, target: str, entries: Iterable[EntryRow]) -> None:
        session.insert_many(
            "sync_entry",
            ("space", "target", *EntryRow._fields),
            [(space, target, *entry) for entry in entries],
            replacing("sync_entry", *EntryRow._fields[2:]),
        )

    def drop(self, session: Session, space: str, target: str, names: Iterable[tuple[str, str]]) -> None:
        session.run_many(
            "DELETE FROM sync_entry WHERE space = ? AND target = ? AND kind = ? AND key = ?",
            ((space, target, *name) for name in names),
        )

    def forget(self, session: Session, space: str, gone: Sequence[tuple[str, str]]) -> None:
        """Forget documents that a restore removed, so that their removal does not reach other machines."""
        session.run_many(
            "DELETE FROM sync_entry WHERE space = ? AND kind = ? AND key = ?", [(space, *name) for name in gone]
        )
        # Everything is merged again, so that they can come back.
        session.run("DELETE FROM sync_fact WHERE space = ?", (space,))

    def fact(self, session: Session, space: str, target: str, key: str) -> str | None:
        rows = session.rows(
            "SELECT value FROM sync_fact WHERE space = ? AND target = ? AND key = ?", (space, target, key)
        )
        return str(rows[0][0]) if rows else None

    def remember(self, session: Session, space: str, target: str, key: str, value: str) -> None:
        row = {"space": space, "target": target, "key": key, "value": value}
        session.insert("sync_fact", row, replacing("sync_fact", "value"))

    def count(self, session: Session, day: str, direction: str) -> int:
        """Count an exchange on a day in a direction; how many there were."""
        session.run("DELETE FROM sync_day WHERE day < ?", (day,))
        more = "ON CONFLICT (day, direction) DO UPDATE SET calls = sync_day.calls + 1 RETURNING calls"
        rows = session.insert("sync_day", {"day": day, "direction": direction, "calls": 1}, more)
        return int(rows[0][0])

    def counted(self, session: Session, day: str, direction: str) -> int:
        rows = session.rows("SELECT calls FROM sync_day WHERE day = ? AND direction = ?", (day, direction))
        return int(rows[0][0]) if rows else 0


# -- personal data -------------------------------------------------------------------------------

_BATCH = 400


def marked(session: Session, space: str) -> dict[str, int]:
    """Ids and numbers of the records that contain personal data or were not checked yet."""
    rows = session.rows(
        "SELECT id, num FROM memory WHERE space = ? AND (personal IS NULL OR personal <> '[]')", (space,)
    )
    return {row[0]: row[1] for row in rows}


def earlier_texts(session: Session, space: str) -> Iterator[tuple[str, int, tuple[str, ...]]]:
    """Id, number and texts of every earlier version of a record."""
    last: tuple[str, int] = ("", -1)
    while rows := session.rows(
        "SELECT h.id, h.version, m.num, h.content, h.tags, h.source FROM history h "
        "JOIN memory m ON m.space = h.space AND m.id = h.id "
        "WHERE h.space = ? AND (h.id, h.version) > (?, ?) ORDER BY h.id, h.version LIMIT ?",
        (space, *last, _BATCH),
    ):
        last = rows[-1][0], rows[-1][1]
        for identity, _, num, *texts in rows:
            yield identity, num, tuple(text for text in texts if text)


def replacements(session: Session, space: str) -> list[tuple[str, int, str]]:
    """Id and number of every superseded record, and the id of the one that supersedes it."""
    return session.rows(
        "SELECT id, num, superseded_by FROM memory WHERE space = ? AND superseded_by IS NOT NULL", (space,)
    )


def only_mentioned_by(session: Session, space: str, nums: Collection[int]) -> set[str]:
    """Ids of the entities that only these records mention."""
    statement = "SELECT DISTINCT entity_id FROM mention WHERE +space = ? AND num IN ({})"
    found = {row[0] for row in rows_among(session, statement, (space,), sorted(nums), size=_BATCH)}
    statement = "SELECT DISTINCT entity_id, num FROM mention WHERE space = ? AND entity_id IN ({})"
    mentioned = rows_among(session, statement, (space,), sorted(found), size=_BATCH)
    return found - {entity for entity, num in mentioned if num not in nums}
