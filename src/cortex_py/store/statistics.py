"""Counts over records: what `status` shows and what garbage collection looks at."""

from __future__ import annotations

from collections.abc import Sequence
from datetime import datetime

from ..clock import from_micros
from ..records import LIVE_STATUSES
from .database import Session, marks
from .where import Where

__all__ = ["StatisticsTable"]

_BATCH = 500
_LIVE = f"m.status IN ({marks(len(LIVE_STATUSES))})"


class StatisticsTable:
    def by_namespace(self, session: Session, where: Where) -> dict[str, int]:
        rows = session.rows(
            f"SELECT m.namespace, count(*) FROM memory m WHERE {where.sql} GROUP BY m.namespace "
            "ORDER BY count(*) DESC, m.namespace",
            where.params,
        )
        return {row[0]: row[1] for row in rows}

    def by_status(self, session: Session, spaces: tuple[str, ...]) -> dict[str, int]:
        rows = session.rows(
            f"SELECT m.status, count(*) FROM memory m WHERE m.space IN ({marks(len(spaces))}) "
            "GROUP BY m.status ORDER BY m.status",
            spaces,
        )
        return {row[0]: row[1] for row in rows}

    def top_tags(self, session: Session, where: Where, limit: int, prefix: str = "") -> list[tuple[str, int]]:
        rows = session.rows(
            f"SELECT t.tag, count(*) FROM tag t JOIN memory m ON m.num = t.num AND m.space = +t.space "
            f"WHERE {where.sql} AND substr(t.tag, 1, ?) = ? GROUP BY t.tag ORDER BY count(*) DESC, t.tag LIMIT ?",
            (*where.params, len(prefix), prefix, limit),
        )
        return [(row[0], row[1]) for row in rows]

    def ids(self, session: Session, where: Where, prefix: str, limit: int) -> list[str]:
        rows = session.rows(
            f"SELECT m.id FROM memory m WHERE {where.sql} AND substr(m.id, 1, ?) = ? "
            "ORDER BY m.created_at DESC, m.id DESC LIMIT ?",
            (*where.params, len(prefix), prefix, limit),
        )
        return [row[0] for row in rows]

    def revision(self, session: Session) -> int:
        return int(session.rows("SELECT seq FROM state")[0][0])

    def recent_tags(self, session: Session, where: Where, records: int) -> list[str]:
        """Tags of the newest records, newest first, with repeats."""
        rows = session.rows(
            f"SELECT t.tag FROM (SELECT m.space, m.num, m.created_at, m.id FROM memory m WHERE {where.sql} "
            "ORDER BY m.created_at DESC, m.id DESC LIMIT ?) r JOIN tag t ON t.num = r.num AND +t.space = r.space "
            "ORDER BY r.created_at DESC, r.id DESC, t.tag",
            (*where.params, records),
        )
        return [row[0] for row in rows]

    def git_branches(self, session: Session, spaces: tuple[str, ...]) -> dict[str, int]:
        """Git branches that live records were written on, with how many."""
        rows = session.rows(
            f"SELECT m.git_branch, count(*) FROM memory m WHERE m.space IN ({marks(len(spaces))}) "
            f"AND {_LIVE} AND m.git_branch IS NOT NULL GROUP BY m.git_branch",
            (*spaces, *LIVE_STATUSES),
        )
        return {row[0]: row[1] for row in rows}

    def on_git_branches(self, session: Session, space: str, names: tuple[str, ...]) -> list[int]:
        rows = session.rows(
            f"SELECT m.num FROM memory m WHERE m.space = ? AND {_LIVE} AND m.git_branch IN ({marks(len(names))})",
            (space, *LIVE_STATUSES, *names),
        )
        return [row[0] for row in rows]

    def lines_of_work(self, session: Session, space: str, nums: Sequence[int]) -> frozenset[str]:
        """The lines of work that records of a space belong to."""
        found: set[str] = set()
        for i in range(0, len(nums), _BATCH):
            batch = nums[i : i + _BATCH]
            rows = session.rows(
                f"SELECT DISTINCT branch_id FROM memory WHERE +space = ? AND num IN ({marks(len(batch))}) "
                "AND branch_id IS NOT NULL",
                (space, *batch),
            )
            found.update(row[0] for row in rows)
        return frozenset(found)

    def last_updated(self, session: Session, project_id: str, branch_id: str) -> datetime | None:
        """When a line of work last changed."""
        rows = session.rows(
            f"SELECT max(m.updated_at) FROM memory m WHERE m.space = ? AND m.branch_id = ? AND {_LIVE}",
            (project_id, branch_id, *LIVE_STATUSES),
        )
        return from_micros(rows[0][0]) if rows[0][0] is not None else None

    def expired(self, session: Session, space: str, now: int) -> list[int]:
        rows = session.rows(
            f"SELECT m.num FROM memory m WHERE m.space = ? AND {_LIVE} "
            "AND m.expires_at IS NOT NULL AND m.expires_at <= ?",
            (space, *LIVE_STATUSES, now),
        )
        return [row[0] for row in rows]

    def tombstones(self, session: Session, space: str, until: int, git_branch: str | None) -> list[int]:
        branch_sql, branch_params = (" AND m.git_branch = ?", (git_branch,)) if git_branch else ("", ())
        rows = session.rows(
            "SELECT m.num FROM memory m WHERE m.space = ? AND m.status = 'tombstoned' "
            f"AND m.tombstoned_at <= ?{branch_sql}",
            (space, until, *branch_params),
        )
        return [row[0] for row in rows]
