"""What a home remembers of its exchanges with targets: the state of each document there, and how often it was asked."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import NamedTuple

from .database import Session

__all__ = ["REPLICA_STEP", "EntryRow", "ReplicaTable"]

REPLICA_STEP: tuple[str, ...] = (
    """CREATE TABLE sync_entry (
        space TEXT NOT NULL, target TEXT NOT NULL, kind TEXT NOT NULL, key TEXT NOT NULL, versions TEXT NOT NULL,
        stamp INTEGER NOT NULL, latest INTEGER NOT NULL, digest TEXT, pack TEXT NOT NULL, maker TEXT NOT NULL,
        PRIMARY KEY (space, target, kind, key))""",
    """CREATE TABLE sync_fact (
        space TEXT NOT NULL, target TEXT NOT NULL, key TEXT NOT NULL, value TEXT NOT NULL,
        PRIMARY KEY (space, target, key))""",
    """CREATE TABLE sync_day (
        day TEXT NOT NULL, direction TEXT NOT NULL, calls INTEGER NOT NULL, PRIMARY KEY (day, direction))""",
)

_COLUMNS = "kind, key, versions, stamp, latest, digest, pack, maker"


class EntryRow(NamedTuple):
    """`versions` is JSON, a count for each machine. `digest` None: the document is gone."""

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
            f"SELECT {_COLUMNS} FROM sync_entry WHERE space = ? AND target = ? ORDER BY kind, key", (space, target)
        )
        return [EntryRow(*row) for row in rows]

    def keep(self, session: Session, space: str, target: str, entries: Iterable[EntryRow]) -> None:
        session.run_many(
            f"INSERT INTO sync_entry (space, target, {_COLUMNS}) VALUES (?, ?, ?, ?, ?, ?, ?, ?, ?, ?) "
            "ON CONFLICT (space, target, kind, key) DO UPDATE SET versions = excluded.versions, "
            "stamp = excluded.stamp, latest = excluded.latest, digest = excluded.digest, pack = excluded.pack, "
            "maker = excluded.maker",
            ((space, target, *entry) for entry in entries),
        )

    def drop(self, session: Session, space: str, target: str, names: Iterable[tuple[str, str]]) -> None:
        session.run_many(
            "DELETE FROM sync_entry WHERE space = ? AND target = ? AND kind = ? AND key = ?",
            ((space, target, *name) for name in names),
        )

    def forget(self, session: Session, space: str, gone: Sequence[tuple[str, str]]) -> None:
        """Documents that a restore took away are not to be taken from other machines too: they are unknown again."""
        session.run_many(
            "DELETE FROM sync_entry WHERE space = ? AND kind = ? AND key = ?", [(space, *name) for name in gone]
        )
        # What was merged before is looked at once more, so that they can come back.
        session.run("DELETE FROM sync_fact WHERE space = ?", (space,))

    def fact(self, session: Session, space: str, target: str, key: str) -> str | None:
        rows = session.rows(
            "SELECT value FROM sync_fact WHERE space = ? AND target = ? AND key = ?", (space, target, key)
        )
        return str(rows[0][0]) if rows else None

    def remember(self, session: Session, space: str, target: str, key: str, value: str) -> None:
        session.run(
            "INSERT INTO sync_fact (space, target, key, value) VALUES (?, ?, ?, ?) "
            "ON CONFLICT (space, target, key) DO UPDATE SET value = excluded.value",
            (space, target, key, value),
        )

    def count(self, session: Session, day: str, direction: str) -> int:
        """How often was exchanged on a day in a direction, with this time."""
        session.run("DELETE FROM sync_day WHERE day < ?", (day,))
        rows = session.rows(
            "INSERT INTO sync_day (day, direction, calls) VALUES (?, ?, 1) "
            "ON CONFLICT (day, direction) DO UPDATE SET calls = sync_day.calls + 1 RETURNING calls",
            (day, direction),
        )
        return int(rows[0][0])

    def counted(self, session: Session, day: str, direction: str) -> int:
        rows = session.rows("SELECT calls FROM sync_day WHERE day = ? AND direction = ?", (day, direction))
        return int(rows[0][0]) if rows else 0
