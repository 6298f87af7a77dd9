"""What is done to records between calls: packing those that lie idle, and letting go those confined to a git branch."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from itertools import accumulate

from .database import Session, marks
from .packing import Dictionaries
from .placement import by_space, everywhere

__all__ = ["Idle", "UpkeepTable"]

# Tried, and not worth packing.
_LEFT = -1


@dataclass(frozen=True, slots=True)
class Idle:
    """A record that nobody has used for a while, as it lies in the store."""

    num: int
    space: str
    version: int
    content: str
    summary: str | None


class UpkeepTable:
    def __init__(self, dictionaries: Dictionaries) -> None:
        self.dictionaries = dictionaries

    # -- packing ---------------------------------------------------------------------------------

    def idle(self, session: Session, until: int, records: int, characters: int) -> list[Idle]:
        """Records untouched since a moment that were not packed yet, the longest idle first, within bounds."""
        sizes = session.rows(
            everywhere(
                "idle",
                "SELECT space, num, length(content) FROM memory WHERE packed IS NULL AND packed_with IS NULL "
                "AND updated_at <= ? AND (accessed_at IS NULL OR accessed_at <= ?) ORDER BY updated_at LIMIT ?",
            ),
            (until, until, records),
        )
        sums = list(accumulate(size for *_, size in sizes))
        placed = by_space(row[:2] for row, total in zip(sizes, sums, strict=True) if total - row[2] < characters)
        rows = [
            row
            for space, nums in placed.items()
            for row in session.rows(
                "SELECT num, space, version, content, summary FROM memory "
                f"WHERE +space = ? AND num IN ({marks(len(nums))})",
                (space, *nums),
            )
        ]
        return [Idle(*row) for row in sorted(rows, key=lambda row: row[0])]

    def put_packed(self, session: Session, record: Idle, packed: bytes, dictionary: int, summary: str | None) -> bool:
        """Keep a record packed, unless it has changed since it was read. Its index entries stay as they are."""
        session.run(
            "UPDATE memory SET content = '', packed = ?, packed_with = ?, summary = COALESCE(summary, ?) "
            "WHERE space = ? AND num = ? AND version = ? AND packed IS NULL",
            (packed, dictionary, summary, record.space, record.num, record.version),
        )
        return session.changed() > 0

    def leave(self, session: Session, record: Idle) -> None:
        """Remember that packing a record does not pay."""
        session.run(
            "UPDATE memory SET packed_with = ? WHERE space = ? AND num = ? AND version = ? AND packed IS NULL",
            (_LEFT, record.space, record.num, record.version),
        )

    def samples(self, session: Session, space: str, limit: int) -> list[str]:
        """Contents of a space that are not packed, to learn a dictionary from."""
        rows = session.rows(
            "SELECT content FROM memory WHERE space = ? AND packed IS NULL ORDER BY num DESC LIMIT ?", (space, limit)
        )
        return [row[0] for row in rows]

    def accessed(self, session: Session, moments: Mapping[tuple[str, str], int]) -> None:
        """Note when records, each named by space and id, were last loaded."""
        session.run_many(
            "UPDATE memory SET accessed_at = ? WHERE space = ? AND id = ? AND (accessed_at IS NULL OR accessed_at < ?)",
            [(moment, *key, moment) for key, moment in moments.items()],
        )

    # -- git branches ----------------------------------------------------------------------------

    def confined(self, session: Session, project_id: str) -> dict[str, str]:
        """Git branches that records are confined to, with how: staged where any of them is."""
        rows = session.rows(
            "SELECT git_branch, max(confinement) FROM memory WHERE space = ? AND confinement IS NOT NULL "
            "AND git_branch IS NOT NULL AND status <> 'tombstoned' GROUP BY git_branch",
            (project_id,),
        )
        return {row[0]: row[1] for row in rows}

    def staged(self, session: Session, project_id: str, git_branch: str) -> list[int]:
        rows = session.rows(
            "SELECT num FROM memory WHERE space = ? AND git_branch = ? AND confinement = 'stage' "
            "AND status <> 'tombstoned'",
            (project_id, git_branch),
        )
        return [row[0] for row in rows]

    def promote(
        self, session: Session, space: str, nums: Sequence[int], git_branch: str | None, at: int, seq: int
    ) -> None:
        """Let staged records be seen everywhere; they count as written on the branch that took theirs in, if any."""
        session.run_many(
            "UPDATE memory SET confinement = NULL, git_branch = COALESCE(?, git_branch), updated_at = ?, seq = ? "
            "WHERE space = ? AND num = ?",
            [(git_branch, at, seq, space, num) for num in nums],
        )

    def isolate(self, session: Session, space: str, nums: Sequence[int], at: int, seq: int) -> None:
        """Let staged records stay on their git branch, whatever becomes of it."""
        session.run_many(
            "UPDATE memory SET confinement = 'isolate', updated_at = ?, seq = ? WHERE space = ? AND num = ?",
            [(at, seq, space, num) for num in nums],
        )

    def tips(self, session: Session, project_id: str, git_branches: Sequence[str]) -> dict[str, str]:
        """The last commit seen on each git branch."""
        rows = session.rows(
            f"SELECT git_branch, tip FROM git_tip WHERE project_id = ? AND git_branch IN ({marks(len(git_branches))})",
            (project_id, *git_branches),
        )
        return {row[0]: row[1] for row in rows}

    def saw_tip(self, session: Session, project_id: str, git_branch: str, tip: str, at: int) -> None:
        session.run(
            "INSERT INTO git_tip (project_id, git_branch, tip, seen_at) VALUES (?, ?, ?, ?) "
            "ON CONFLICT (project_id, git_branch) DO UPDATE SET tip = excluded.tip, seen_at = excluded.seen_at",
            (project_id, git_branch, tip, at),
        )

    def rename_git_branch(self, session: Session, project_id: str, old: str, new: str, seq: int) -> frozenset[str]:
        """Records and lines of work follow a git branch that was renamed; returns the ids of the latter."""
        linked = session.rows("SELECT id FROM branch WHERE project_id = ? AND git_branch = ?", (project_id, old))
        session.run(
            "UPDATE memory SET git_branch = ?, seq = ? WHERE space = ? AND git_branch = ?", (new, seq, project_id, old)
        )
        session.run("UPDATE branch SET git_branch = ? WHERE project_id = ? AND git_branch = ?", (new, project_id, old))
        session.run("DELETE FROM git_tip WHERE project_id = ? AND git_branch = ?", (project_id, old))
        return frozenset(row[0] for row in linked)
