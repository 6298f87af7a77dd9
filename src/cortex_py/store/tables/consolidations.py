"""What was made of what: consolidations with the records they took the place of, and older records that newer replace.

Also here, because they came with the same step: how much a language model was used, and what was recalled.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from .database import Session, marks

__all__ = ["CONSOLIDATION_STEP", "Consolidation", "ConsolidationTable", "LLMUseTable", "RecallTable"]

CONSOLIDATION_STEP = (
    """CREATE TABLE consolidation (
        space TEXT NOT NULL, id TEXT NOT NULL, result_id TEXT NOT NULL, strategy TEXT NOT NULL, method TEXT NOT NULL,
        created_at INTEGER NOT NULL, undone_at INTEGER, PRIMARY KEY (space, id))""",
    "CREATE INDEX consolidation_result ON consolidation (space, result_id)",
    """CREATE TABLE consolidation_part (
        space TEXT NOT NULL, consolidation_id TEXT NOT NULL, n INTEGER NOT NULL, memory_id TEXT NOT NULL,
        prior_status TEXT NOT NULL, PRIMARY KEY (space, consolidation_id, n))""",
    "CREATE INDEX memory_superseded ON memory (space, superseded_by) WHERE superseded_by IS NOT NULL",
    """CREATE TABLE llm_use (
        day TEXT NOT NULL, model TEXT NOT NULL, calls INTEGER NOT NULL, input_tokens INTEGER NOT NULL,
        output_tokens INTEGER NOT NULL, failed INTEGER NOT NULL, PRIMARY KEY (day, model))""",
    # Beside the records, so that a recall changes none of them.
    """CREATE TABLE recalled (
        memory_id TEXT PRIMARY KEY, recalls INTEGER NOT NULL, recalled_at INTEGER NOT NULL)""",
)

_BATCH = 500


@dataclass(frozen=True, slots=True)
class Consolidation:
    """One record made of several: `parts` are their ids, each with the status it had."""

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
        session.run(
            "INSERT INTO consolidation (space, id, result_id, strategy, method, created_at) VALUES (?, ?, ?, ?, ?, ?)",
            (made.space, made.id, made.result_id, made.strategy, made.method, made.created_at),
        )
        session.run_many(
            "INSERT INTO consolidation_part (space, consolidation_id, n, memory_id, prior_status) "
            "VALUES (?, ?, ?, ?, ?)",
            [(made.space, made.id, n, memory_id, status) for n, (memory_id, status) in enumerate(made.parts)],
        )

    def of_result(self, session: Session, space: str, result_id: str) -> Consolidation | None:
        """How a record came about, if it was made of others."""
        rows = session.rows(
            "SELECT id, strategy, method, created_at, undone_at FROM consolidation WHERE space = ? AND result_id = ? "
            "ORDER BY created_at DESC LIMIT 1",
            (space, result_id),
        )
        if not rows:
            return None
        found = rows[0]
        parts = session.rows(
            "SELECT memory_id, prior_status FROM consolidation_part WHERE space = ? AND consolidation_id = ? "
            "ORDER BY n",
            (space, found[0]),
        )
        return Consolidation(
            space, found[0], result_id, found[1], found[2], found[3], found[4], tuple((row[0], row[1]) for row in parts)
        )

    def summaries(self, session: Session, space: str) -> set[str]:
        """Ids of the records that sum up others."""
        rows = session.rows(
            "SELECT result_id FROM consolidation WHERE space = ? AND strategy = 'summarize' AND undone_at IS NULL",
            (space,),
        )
        return {row[0] for row in rows}

    def undone(self, session: Session, space: str, consolidation_id: str, at: int) -> None:
        session.run("UPDATE consolidation SET undone_at = ? WHERE space = ? AND id = ?", (at, space, consolidation_id))

    def replace(self, session: Session, space: str, ids: Sequence[str], result_id: str, at: int, seq: int) -> None:
        """Mark records as superseded by another."""
        for low in range(0, len(ids), _BATCH):
            some = ids[low : low + _BATCH]
            session.run(
                "UPDATE memory SET status = 'superseded', superseded_by = ?, updated_at = ?, seq = ? "
                f"WHERE space = ? AND id IN ({marks(len(some))})",
                (result_id, at, seq, space, *some),
            )

    def bring_back(
        self, session: Session, space: str, memory_id: str, result_id: str, status: str, at: int, seq: int
    ) -> bool:
        """Give a record back the status it had, if it is still superseded by that result.

        One that was deleted meanwhile stays so, and has that status once it is restored.
        """
        mine = "WHERE space = ? AND id = ? AND superseded_by = ?"
        session.run(
            "UPDATE memory SET status = ?, superseded_by = NULL, updated_at = ?, seq = ? "
            f"{mine} AND status = 'superseded'",
            (status, at, seq, space, memory_id, result_id),
        )
        if session.changed() == 1:
            return True
        session.run(
            "UPDATE memory SET superseded_by = NULL, "
            f"prior_status = CASE prior_status WHEN 'superseded' THEN ? ELSE prior_status END, seq = ? {mine}",
            (status, seq, space, memory_id, result_id),
        )
        return False

    def replaced_by(self, session: Session, space: str, result_id: str) -> list[str]:
        """Ids of the records that one takes the place of, oldest first."""
        rows = session.rows(
            "SELECT id FROM memory WHERE space = ? AND superseded_by = ? ORDER BY created_at, id", (space, result_id)
        )
        return [row[0] for row in rows]


class RecallTable:
    """How often memories were recalled, and when last; written down now and then, never by the recall itself."""

    def add(self, session: Session, counts: Mapping[tuple[str, str], tuple[int, int]]) -> None:
        """Count recalls of records, each named by space and id."""
        session.run_many(
            "INSERT INTO recalled (space, memory_id, recalls, recalled_at) VALUES (?, ?, ?, ?) "
            "ON CONFLICT (space, memory_id) DO UPDATE "
            "SET recalls = recalled.recalls + excluded.recalls, recalled_at = CASE WHEN excluded.recalled_at > "
            "recalled.recalled_at THEN excluded.recalled_at ELSE recalled.recalled_at END",
            [(*key, count, at) for key, (count, at) in counts.items()],
        )

    def last(self, session: Session, spaces: Sequence[str], ids: Sequence[str]) -> dict[str, int]:
        """When each was last recalled; those never recalled are missing."""
        found: dict[str, int] = {}
        for low in range(0, len(ids), _BATCH):
            some = ids[low : low + _BATCH]
            rows = session.rows(
                f"SELECT memory_id, recalled_at FROM recalled WHERE space IN ({marks(len(spaces))}) "
                f"AND memory_id IN ({marks(len(some))})",
                (*spaces, *some),
            )
            found.update((row[0], row[1]) for row in rows)
        return found


class LLMUseTable:
    def spent(self, session: Session, day: str) -> int:
        rows = session.rows("SELECT COALESCE(sum(input_tokens + output_tokens), 0) FROM llm_use WHERE day = ?", (day,))
        return int(rows[0][0])

    def add(
        self, session: Session, day: str, model: str, calls: int, input_tokens: int, output_tokens: int, failed: int
    ) -> None:
        session.run(
            "INSERT INTO llm_use (day, model, calls, input_tokens, output_tokens, failed) VALUES (?, ?, ?, ?, ?, ?) "
            "ON CONFLICT (day, model) DO UPDATE SET calls = llm_use.calls + excluded.calls, "
            "input_tokens = llm_use.input_tokens + excluded.input_tokens, "
            "output_tokens = llm_use.output_tokens + excluded.output_tokens, "
            "failed = llm_use.failed + excluded.failed",
            (day, model, calls, input_tokens, output_tokens, failed),
        )

    def of_day(self, session: Session, day: str) -> list[tuple[str, int, int, int, int]]:
        """Model, calls, tokens asked, tokens answered, failures."""
        rows = session.rows(
            "SELECT model, calls, input_tokens, output_tokens, failed FROM llm_use WHERE day = ? ORDER BY model", (day,)
        )
        return [(row[0], row[1], row[2], row[3], row[4]) for row in rows]
