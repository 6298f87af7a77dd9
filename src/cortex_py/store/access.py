"""Who may call, and what was called: API tokens by their digests, and the audit log with its head."""

from __future__ import annotations

from collections.abc import Iterable
from typing import NamedTuple

from .database import Session

__all__ = ["ACCESS_STEP", "AccessTable", "AuditTable", "TokenRow"]

ACCESS_STEP: tuple[str, ...] = (
    """CREATE TABLE api_token (
        id TEXT PRIMARY KEY, digest TEXT NOT NULL, user_id TEXT NOT NULL, agent_id TEXT, scopes TEXT NOT NULL,
        created_at INTEGER NOT NULL, expires_at INTEGER, last_used_at INTEGER, revoked_at INTEGER)""",
    "CREATE UNIQUE INDEX api_token_digest ON api_token (digest)",
    "CREATE TABLE audit_event (n INTEGER PRIMARY KEY, event TEXT NOT NULL, hash TEXT NOT NULL)",
    """CREATE TABLE audit_head (
        one INTEGER PRIMARY KEY CHECK (one = 1), events INTEGER NOT NULL, hash TEXT NOT NULL, seal TEXT NOT NULL)""",
    "INSERT INTO audit_head (one, events, hash, seal) VALUES (1, 0, '', '')",
)

_COLUMNS = "id, user_id, agent_id, scopes, created_at, expires_at, last_used_at, revoked_at, org, project_id"


class TokenRow(NamedTuple):
    """`scopes` are separated by blanks, moments are microseconds. No `org` is the server's own."""

    id: str
    user_id: str
    agent_id: str | None
    scopes: str
    created_at: int
    expires_at: int | None
    last_used_at: int | None
    revoked_at: int | None
    org: str | None
    project_id: str | None


class AccessTable:
    def add(self, session: Session, row: TokenRow, digest: str) -> None:
        session.run(
            f"INSERT INTO api_token (digest, {_COLUMNS}) VALUES (?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?)",
            (digest, *row),
        )

    def all(self, session: Session) -> list[TokenRow]:
        return [TokenRow(*row) for row in session.rows(f"SELECT {_COLUMNS} FROM api_token ORDER BY created_at, id")]

    def by_digest(self, session: Session, digest: str) -> TokenRow | None:
        rows = session.rows(f"SELECT {_COLUMNS} FROM api_token WHERE digest = ?", (digest,))
        return TokenRow(*rows[0]) if rows else None

    def by_id(self, session: Session, id: str) -> TokenRow | None:
        rows = session.rows(f"SELECT {_COLUMNS} FROM api_token WHERE id = ?", (id,))
        return TokenRow(*rows[0]) if rows else None

    def revoke(self, session: Session, id: str, now: int) -> None:
        session.run("UPDATE api_token SET revoked_at = ? WHERE id = ? AND revoked_at IS NULL", (now, id))

    def used(self, session: Session, uses: Iterable[tuple[str, int]]) -> None:
        session.run_many(
            "UPDATE api_token SET last_used_at = ? WHERE id = ? AND (last_used_at IS NULL OR last_used_at < ?)",
            ((moment, id, moment) for id, moment in uses),
        )


class AuditTable:
    """What it takes and gives are the parts of a chain; what they mean is not known here."""

    def next(self, session: Session) -> tuple[int, str, str] | None:
        """The head, kept from all other writers until this transaction ends; None where there is none."""
        # A statement that changes the row, because engines with many writers lock it only for that.
        rows = session.rows("UPDATE audit_head SET events = events + 1 WHERE one = 1 RETURNING events, hash, seal")
        return (int(rows[0][0]) - 1, str(rows[0][1]), str(rows[0][2])) if rows else None

    def append(self, session: Session, number: int, event: str, hash: str, seal: str) -> None:
        session.run("INSERT INTO audit_event (n, event, hash) VALUES (?, ?, ?)", (number, event, hash))
        session.run("UPDATE audit_head SET events = ?, hash = ?, seal = ? WHERE one = 1", (number, hash, seal))

    def head(self, session: Session) -> tuple[int, str, str] | None:
        rows = session.rows("SELECT events, hash, seal FROM audit_head WHERE one = 1")
        return (int(rows[0][0]), str(rows[0][1]), str(rows[0][2])) if rows else None

    def after(self, session: Session, number: int, limit: int) -> list[tuple[int, str, str]]:
        """Events in their order."""
        rows = session.rows("SELECT n, event, hash FROM audit_event WHERE n > ? ORDER BY n LIMIT ?", (number, limit))
        return [(int(row[0]), str(row[1]), str(row[2])) for row in rows]

    def latest(self, session: Session, limit: int) -> list[tuple[int, str]]:
        rows = session.rows("SELECT n, event FROM audit_event ORDER BY n DESC LIMIT ?", (limit,))
        return [(int(row[0]), str(row[1])) for row in rows]
