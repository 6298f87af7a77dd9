"""Consolidations and the records they replaced, how often records were recalled, and verification results.

Results of verifications are kept beside the records, because they are rarely read and can be long.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from ..database import Changes, Computed, Session, Values, batched, column, first, marks, replacing, rows_among
from ..search.filters import GROUNDED_WORDS, Where

__all__ = ["Consolidation", "ConsolidationTable", "RecallTable", "VerificationTable"]


_BATCH = 500


@dataclass(frozen=True, slots=True)
class Consolidation:
    """One record made of several: `parts` are their ids, each with its former status."""

    space: str
    id: str
    result_id: str
    strategy: str
    method: str
    created_at: int
    undone_at: int | None
    parts: tuple[tuple[str, str], ...]


class ConsolidationTable:
    def add(self, session: Session, made: Consolidation) -> None:
        names = ("space", "id", "result_id", "strategy", "method", "created_at")
        session.insert("consolidation", {name: getattr(made, name) for name in names})
        columns = ("space", "consolidation_id", "n", "memory_id", "prior_status")
        parts = [(made.space, made.id, n, memory_id, status) for n, (memory_id, status) in enumerate(made.parts)]
        session.insert_many("consolidation_part", columns, parts)

    def of_result(self, session: Session, space: str, result_id: str) -> Consolidation | None:
        """The consolidation that made a record, if it was made of others."""
        row = first(
            session,
            "SELECT id, strategy, method, created_at, undone_at FROM consolidation WHERE space = ? AND result_id = ? "
            "ORDER BY created_at DESC LIMIT 1",
            (space, result_id),
        )
        if not row:
            return None
        parts = session.rows(
            "SELECT memory_id, prior_status FROM consolidation_part WHERE space = ? AND consolidation_id = ? "
            "ORDER BY n",
            (space, row[0]),
        )
        consolidation_id, strategy, method, at, undone_at = row
        members = tuple((part[0], part[1]) for part in parts)
        return Consolidation(space, consolidation_id, result_id, strategy, method, at, undone_at, members)

    def summaries(self, session: Session, space: str) -> set[str]:
        """Ids of the records that summarise others."""
        return set(
            column(
                session,
                "SELECT result_id FROM consolidation WHERE space = ? AND strategy = 'summarize' AND undone_at IS NULL",
                (space,),
            )
        )

    def mark_undone(self, session: Session, space: str, consolidation_id: str, at: int) -> None:
        session.update("consolidation", {"undone_at": at}, "space = ? AND id = ?", (space, consolidation_id))

    def replace(self, session: Session, space: str, ids: Sequence[str], result_id: str, at: int, seq: int) -> None:
        """Mark records as superseded by another."""
        for some in batched(ids, _BATCH):
            changes: Changes = {"status": "superseded", "superseded_by": result_id, "updated_at": at, "seq": seq}
            session.update("memory", changes, f"space = ? AND id IN ({marks(len(some))})", (space, *some))

    def reinstate(
        self, session: Session, space: str, memory_id: str, result_id: str, status: str, at: int, seq: int
    ) -> bool:
        """Restore the former status of a record that is still superseded by that result; whether it was.

        A record that was deleted meanwhile stays deleted and gets that status when it is restored.
        """
        mine, key = "space = ? AND id = ? AND superseded_by = ?", (space, memory_id, result_id)
        changes = {"status": status, "superseded_by": None, "updated_at": at, "seq": seq}
        if session.update("memory", changes, f"{mine} AND status = 'superseded'", key) == 1:
            return True
        prior = Computed("CASE prior_status WHEN 'superseded' THEN ? ELSE prior_status END", (status,))
        session.update("memory", {"superseded_by": None, "prior_status": prior, "seq": seq}, mine, key)
        return False

    def replaced_by(self, session: Session, space: str, result_id: str) -> list[str]:
        """Ids of the records that one supersedes, oldest first."""
        return column(
            session,
            "SELECT id FROM memory WHERE space = ? AND superseded_by = ? ORDER BY created_at, id",
            (space, result_id),
        )


class RecallTable:
    """How often records were recalled, and when last; written in batches, never by the recall itself."""

    def add(self, session: Session, counts: Mapping[tuple[str, str], tuple[int, int]]) -> None:
        """Add recalls, by (space, id)."""
        session.insert_many(
            "recalled",
            ("space", "memory_id", "recalls", "recalled_at"),
            [(*key, count, at) for key, (count, at) in counts.items()],
            "ON CONFLICT (space, memory_id) DO UPDATE "
            "SET recalls = recalled.recalls + excluded.recalls, recalled_at = CASE WHEN excluded.recalled_at > "
            "recalled.recalled_at THEN excluded.recalled_at ELSE recalled.recalled_at END",
        )

    def of(self, session: Session, space: str, memory_id: str) -> tuple[int, int]:
        """How often a record was recalled, and when last; zeros if it never was."""
        row = first(
            session, "SELECT recalls, recalled_at FROM recalled WHERE space = ? AND memory_id = ?", (space, memory_id)
        )
        return (int(row[0]), int(row[1])) if row else (0, 0)

    def last(self, session: Session, spaces: Sequence[str], ids: Sequence[str]) -> dict[str, int]:
        """When each record was last recalled; records that never were are missing."""
        statement = (
            f"SELECT memory_id, recalled_at FROM recalled WHERE space IN ({marks(len(spaces))}) AND memory_id IN ({{}})"
        )
        return dict(rows_among(session, statement, spaces, ids))


class VerificationTable:
    def put(self, session: Session, space: str, memory_id: str, checked_at: int, result: str) -> None:
        """Store a result in place of the previous one."""
        row: Values = {"space": space, "memory_id": memory_id, "checked_at": checked_at, "result": result}
        session.insert("verification", row, replacing("verification", "checked_at", "result"))

    def get(self, session: Session, space: str, memory_id: str) -> str | None:
        row = first(session, "SELECT result FROM verification WHERE space = ? AND memory_id = ?", (space, memory_id))
        return str(row[0]) if row else None

    def results(self, session: Session, space: str, ids: Sequence[str]) -> dict[str, str]:
        """The results of those of these records that were checked, by id."""
        statement = "SELECT memory_id, result FROM verification WHERE space = ? AND memory_id IN ({})"
        return {str(memory_id): str(result) for memory_id, result in rows_among(session, statement, (space,), ids)}

    def drop(self, session: Session, space: str, memory_id: str) -> None:
        """Drop the result of a record whose text changed."""
        session.run("DELETE FROM verification WHERE space = ? AND memory_id = ?", (space, memory_id))

    def counts(self, session: Session, where: Where) -> dict[str, int]:
        """How many records are in each range of the score; empty if none was checked."""
        ranges = {name: bounds for name, bounds in GROUNDED_WORDS.items() if bounds is not None}
        sums = ", ".join("SUM(CASE WHEN m.grounding >= ? AND m.grounding < ? THEN 1 ELSE 0 END)" for _ in ranges)
        rows = session.rows(
            f"SELECT {sums} FROM memory m WHERE m.grounding IS NOT NULL AND {where.sql}",
            (*(bound for bounds in ranges.values() for bound in bounds), *where.params),
        )
        found = {name: int(count or 0) for name, count in zip(ranges, rows[0], strict=True)}
        return found if any(found.values()) else {}
