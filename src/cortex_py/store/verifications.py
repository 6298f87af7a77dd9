"""What a check of a record against its project found, beside the record: it is read rarely and may be long."""

from __future__ import annotations

from .conditions import GROUNDED_WORDS
from .database import Session
from .where import Where

__all__ = ["VERIFICATION_STEP", "VerificationTable"]

VERIFICATION_STEP = (
    """CREATE TABLE verification (
        space TEXT NOT NULL, memory_id TEXT NOT NULL, checked_at INTEGER NOT NULL, result TEXT NOT NULL,
        PRIMARY KEY (space, memory_id))""",
    "CREATE INDEX memory_grounding ON memory (space, grounding) WHERE grounding IS NOT NULL",
)


class VerificationTable:
    def put(self, session: Session, space: str, memory_id: str, checked_at: int, result: str) -> None:
        """Keep what was found; what was found before is no longer asked for."""
        session.run(
            "INSERT INTO verification (space, memory_id, checked_at, result) VALUES (?, ?, ?, ?) "
            "ON CONFLICT (space, memory_id) DO UPDATE SET checked_at = excluded.checked_at, result = excluded.result",
            (space, memory_id, checked_at, result),
        )

    def get(self, session: Session, space: str, memory_id: str) -> str | None:
        rows = session.rows("SELECT result FROM verification WHERE space = ? AND memory_id = ?", (space, memory_id))
        return str(rows[0][0]) if rows else None

    def drop(self, session: Session, space: str, memory_id: str) -> None:
        """What was found about another wording says nothing about the present one."""
        session.run("DELETE FROM verification WHERE space = ? AND memory_id = ?", (space, memory_id))

    def counts(self, session: Session, where: Where) -> dict[str, int]:
        """How many records lie in each range of the score; empty where none was checked."""
        ranges = {name: bounds for name, bounds in GROUNDED_WORDS.items() if bounds is not None}
        sums = ", ".join("SUM(CASE WHEN m.grounding >= ? AND m.grounding < ? THEN 1 ELSE 0 END)" for _ in ranges)
        rows = session.rows(
            f"SELECT {sums} FROM memory m WHERE m.grounding IS NOT NULL AND {where.sql}",
            (*(bound for bounds in ranges.values() for bound in bounds), *where.params),
        )
        found = {name: int(count or 0) for name, count in zip(ranges, rows[0], strict=True)}
        return found if any(found.values()) else {}
