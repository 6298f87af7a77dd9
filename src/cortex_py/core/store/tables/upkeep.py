"""Counts over records, compression of idle ones, and records confined to a git branch."""

from __future__ import annotations

import json
from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime
from itertools import accumulate
from typing import Literal

from ...clock import from_micros
from ...records import LIVE_STATUSES, Confinement
from ..database import (
    Changes,
    Computed,
    Row,
    Session,
    Sql,
    Values,
    by_space,
    column,
    everywhere,
    in_spaces,
    marks,
    replacing,
    rows_among,
)
from ..packing import Dictionaries
from ..search.filters import Scope, Where

__all__ = ["DAY", "NOT_LOOKED_AT", "FacetColumn", "IdleRecord", "StatisticsTable", "UpkeepTable"]


# Microseconds.
DAY = 86_400_000_000
NOT_LOOKED_AT = "not looked at yet"
FacetColumn = Literal["namespace", "status", "git_branch", "user_id", "agent_id", "project_id"]
# With the `+`, SQLite uses the index of another condition, which leaves fewer records than the status.
_LIVE = f"+m.status IN ({marks(len(LIVE_STATUSES))})"


def _counted(rows: Iterable[Row]) -> Counter[str]:
    return Counter({row[0]: row[1] for row in rows})


class StatisticsTable:
    def by_namespace(self, session: Session, where: Where) -> dict[str, int]:
        rows = session.rows(
            f"SELECT m.namespace, count(*) FROM memory m WHERE {where.sql} GROUP BY m.namespace "
            "ORDER BY count(*) DESC, m.namespace",
            where.params,
        )
        return dict(rows)

    def by_columns(
        self, session: Session, where: Where, columns: Sequence[FacetColumn], limit: int
    ) -> list[list[tuple[str, int]]]:
        """The most frequent values of each column, with their numbers of records."""
        # One look at the records for all columns: together they have few different values.
        every = ", ".join(f"m.{column}" for column in columns)
        rows = session.rows(f"SELECT count(*), {every} FROM memory m WHERE {where.sql} GROUP BY {every}", where.params)
        counts: list[Counter[str]] = [Counter() for _ in columns]
        for records, *values in rows:
            for counter, value in zip(counts, values, strict=True):
                if value is not None:
                    counter[value] += records
        return [sorted(one.items(), key=lambda pair: (-pair[1], pair[0]))[:limit] for one in counts]

    def since(self, session: Session, where: Where, moments: Sequence[int]) -> list[int]:
        """How many records were captured since each moment."""
        sums = ", ".join(["coalesce(sum(CASE WHEN m.created_at >= ? THEN 1 ELSE 0 END), 0)"] * len(moments))
        rows = session.rows(f"SELECT {sums} FROM memory m WHERE {where.sql}", (*moments, *where.params))
        return [int(count) for count in rows[0]]

    def by_day(self, session: Session, where: Where, shift: int) -> list[tuple[int, int]]:
        """How many records were captured on each day, by days since 1970, newest first; `shift` moves midnight."""
        day = f"(m.created_at + ?) / {DAY}"
        return session.rows(
            f"SELECT {day} AS day, count(*) FROM memory m WHERE {where.sql} GROUP BY day ORDER BY day DESC",
            (shift, *where.params),
        )

    def by_status(self, session: Session, spaces: tuple[str, ...]) -> dict[str, int]:
        rows = session.rows(
            f"SELECT m.status, count(*) FROM memory m WHERE m.space IN ({marks(len(spaces))}) "
            "GROUP BY m.status ORDER BY m.status",
            spaces,
        )
        return dict(rows)

    def by_personal(self, session: Session, where: Where) -> dict[str, int]:
        """In how many records each kind of personal data was found, and how many were not checked yet."""
        rows = session.rows(
            f"SELECT m.personal, count(*) FROM memory m WHERE {where.sql} "
            "AND (m.personal IS NULL OR m.personal <> '[]') GROUP BY m.personal",
            where.params,
        )
        found: Counter[str] = Counter()
        for text, count in rows:
            for kind in [NOT_LOOKED_AT] if text is None else [one[0] for one in json.loads(text)]:
                found[kind] += count
        return dict(sorted(found.items()))

    def top_tags(self, session: Session, scope: Scope, limit: int | None, prefix: str = "") -> list[tuple[str, int]]:
        """The most frequent tags that begin with a prefix, each with its number of records."""
        where = scope.where
        begins, given = ("substr(t.tag, 1, ?) = ?", (len(prefix), prefix)) if prefix else ("TRUE", ())
        of_records = (
            "SELECT t.tag, count(*) FROM memory m CROSS JOIN tag t WHERE t.num = m.num AND +t.space = m.space "
            f"AND {begins} AND {{}} GROUP BY t.tag"
        )
        if scope.filtered:
            counts = _counted(session.rows(of_records.format(where.sql), (*given, *where.params)))
        else:
            # Nearly all records are visible. Counting all tags and subtracting those of hidden records is quicker than
            # looking up each record; an index tells which are hidden.
            mine = in_spaces("t.space", where.spaces)
            every = f"SELECT t.tag, count(*) FROM tag t WHERE {mine} AND {begins} GROUP BY t.tag"
            hidden = f"{in_spaces('m.space', where.spaces)} AND NOT COALESCE({where.sql}, FALSE)"
            counts = _counted(session.rows(every, (*where.spaces, *given)))
            counts -= _counted(session.rows(of_records.format(hidden), (*given, *where.spaces, *where.params)))
        return sorted(counts.items(), key=lambda pair: (-pair[1], pair[0]))[:limit]

    def ids(self, session: Session, where: Where, prefix: str, limit: int) -> list[str]:
        return column(
            session,
            f"SELECT m.id FROM memory m WHERE {where.sql} AND substr(m.id, 1, ?) = ? "
            "ORDER BY m.created_at DESC, m.id DESC LIMIT ?",
            (*where.params, len(prefix), prefix, limit),
        )

    def revision(self, session: Session) -> int:
        """A number that grows with every change in the spaces that the transaction can read."""
        statement = everywhere("all changes", "SELECT COALESCE(sum(seq), 0) FROM space_change")
        if session.bounds is None:
            return int(session.rows(statement)[0][0])
        readable = sorted(session.bounds.readable)
        statement = "SELECT COALESCE(sum(seq), 0) FROM space_change WHERE space IN ({})"
        return sum(int(row[0]) for row in rows_among(session, statement, (), readable))

    def git_branches(self, session: Session, spaces: tuple[str, ...]) -> dict[str, int]:
        """Git branches that live records were written on, with how many."""
        rows = session.rows(
            f"SELECT m.git_branch, count(*) FROM memory m WHERE m.space IN ({marks(len(spaces))}) "
            f"AND {_LIVE} AND m.git_branch IS NOT NULL GROUP BY m.git_branch",
            (*spaces, *LIVE_STATUSES),
        )
        return dict(rows)

    def on_git_branches(self, session: Session, space: str, names: tuple[str, ...]) -> list[int]:
        return column(
            session,
            f"SELECT m.num FROM memory m WHERE m.space = ? AND {_LIVE} AND m.git_branch IN ({marks(len(names))})",
            (space, *LIVE_STATUSES, *names),
        )

    def lines_of_work(self, session: Session, space: str, nums: Sequence[int]) -> frozenset[str]:
        """The lines of work of some records of a space."""
        statement = "SELECT DISTINCT branch_id FROM memory WHERE +space = ? AND num IN ({}) AND branch_id IS NOT NULL"
        return frozenset(row[0] for row in rows_among(session, statement, (space,), nums))

    def last_updated(self, session: Session, project_id: str, branch_id: str) -> datetime | None:
        """When a line of work last changed."""
        rows = session.rows(
            f"SELECT max(m.updated_at) FROM memory m WHERE m.space = ? AND m.branch_id = ? AND {_LIVE}",
            (project_id, branch_id, *LIVE_STATUSES),
        )
        return from_micros(rows[0][0]) if rows[0][0] is not None else None

    def expired(self, session: Session, space: str, now: int) -> list[int]:
        return column(
            session,
            f"SELECT m.num FROM memory m WHERE m.space = ? AND {_LIVE} "
            "AND m.expires_at IS NOT NULL AND m.expires_at <= ?",
            (space, *LIVE_STATUSES, now),
        )

    def tombstones(self, session: Session, space: str, until: int, git_branch: str | None) -> list[int]:
        branch_sql, branch_params = (" AND m.git_branch = ?", (git_branch,)) if git_branch else ("", ())
        return column(
            session,
            "SELECT m.num FROM memory m WHERE m.space = ? AND m.status = 'tombstoned' "
            f"AND m.tombstoned_at <= ?{branch_sql}",
            (space, until, *branch_params),
        )


# In `packed_with`: packing does not pay off.
_LEFT = -1
# An unpacked record that did not change.
_SAME = "space = ? AND num = ? AND version = ? AND packed IS NULL"


@dataclass(frozen=True, slots=True)
class IdleRecord:
    """A record that was not used for a while."""

    num: int
    space: str
    version: int
    content: str
    summary: str | None


class UpkeepTable:
    def __init__(self, dictionaries: Dictionaries) -> None:
        self.dictionaries = dictionaries

    # -- packing ---------------------------------------------------------------------------------

    def idle(self, session: Session, until: int, records: int, characters: int) -> list[IdleRecord]:
        """Unpacked records that were not used since a moment, longest idle first, within bounds."""
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
        return [IdleRecord(*row) for row in sorted(rows, key=lambda row: row[0])]

    def put_packed(
        self, session: Session, record: IdleRecord, packed: bytes, dictionary: int, summary: str | None
    ) -> bool:
        """Store a packed content, unless the record has changed since it was read."""
        changes: Changes = {"content": "", "packed": packed, "packed_with": dictionary}
        changes |= {"summary": Computed("COALESCE(summary, ?)", (summary,))}
        return session.update("memory", changes, _SAME, (record.space, record.num, record.version)) > 0

    def mark_unpackable(self, session: Session, record: IdleRecord) -> None:
        """Record that packing a record does not pay off."""
        session.update("memory", {"packed_with": _LEFT}, _SAME, (record.space, record.num, record.version))

    def samples(self, session: Session, space: str, limit: int) -> list[str]:
        """Unpacked contents of a space, to train a dictionary on."""
        return column(
            session,
            "SELECT content FROM memory WHERE space = ? AND packed IS NULL ORDER BY num DESC LIMIT ?",
            (space, limit),
        )

    def accessed(self, session: Session, moments: Mapping[tuple[str, str], int]) -> None:
        """Record when records were last loaded, by (space, id)."""
        earlier = "space = ? AND id = ? AND (accessed_at IS NULL OR accessed_at < ?)"
        rows = [(moment, *key, moment) for key, moment in moments.items()]
        session.update_many("memory", ["accessed_at"], earlier, rows)

    # -- git branches ----------------------------------------------------------------------------

    def confined(self, session: Session, project_id: str) -> dict[str, str]:
        """Git branches that records are confined to, each with how: `stage` if any of them is staged."""
        rows = session.rows(
            "SELECT git_branch, max(confinement) FROM memory WHERE space = ? AND confinement IS NOT NULL "
            "AND git_branch IS NOT NULL AND status <> 'tombstoned' GROUP BY git_branch",
            (project_id,),
        )
        return dict(rows)

    def staged(self, session: Session, project_id: str, git_branch: str) -> list[int]:
        return column(
            session,
            "SELECT num FROM memory WHERE space = ? AND git_branch = ? AND confinement = 'stage' "
            "AND status <> 'tombstoned'",
            (project_id, git_branch),
        )

    def promote(
        self, session: Session, space: str, nums: Sequence[int], git_branch: str | None, at: int, seq: int
    ) -> None:
        """Make staged records visible everywhere, as written on the branch that theirs was merged into, if any."""
        self._confine(session, space, nums, git_branch, at, seq, None)

    def stage(
        self, session: Session, space: str, nums: Sequence[int], git_branch: str | None, at: int, seq: int
    ) -> None:
        """Confine records to a git branch until it is merged."""
        self._confine(session, space, nums, git_branch, at, seq, "stage")

    def isolate(self, session: Session, space: str, nums: Sequence[int], at: int, seq: int) -> None:
        """Confine staged records to their git branch for good."""
        self._confine(session, space, nums, None, at, seq, "isolate")

    def _confine(
        self,
        session: Session,
        space: str,
        nums: Sequence[int],
        git_branch: str | None,
        at: int,
        seq: int,
        confinement: Confinement | None,
    ) -> None:
        changes: dict[str, Sql] = {"confinement": confinement, "updated_at": at, "seq": seq}
        if git_branch is not None:
            changes["git_branch"] = git_branch
        rows = [(*changes.values(), space, num) for num in nums]
        session.update_many("memory", tuple(changes), "space = ? AND num = ?", rows)

    def tips(self, session: Session, project_id: str, git_branches: Sequence[str]) -> dict[str, str]:
        """The last commit seen on each git branch."""
        rows = session.rows(
            f"SELECT git_branch, tip FROM git_tip WHERE project_id = ? AND git_branch IN ({marks(len(git_branches))})",
            (project_id, *git_branches),
        )
        return dict(rows)

    def put_tip(self, session: Session, project_id: str, git_branch: str, tip: str, at: int) -> None:
        row: Values = {"project_id": project_id, "git_branch": git_branch, "tip": tip, "seen_at": at}
        session.insert("git_tip", row, replacing("git_tip", "tip", "seen_at"))

    def rename_git_branch(self, session: Session, project_id: str, old: str, new: str, seq: int) -> frozenset[str]:
        """Rename a git branch in records and lines of work; the ids of the latter."""
        linked = session.rows("SELECT id FROM branch WHERE project_id = ? AND git_branch = ?", (project_id, old))
        session.update("memory", {"git_branch": new, "seq": seq}, "space = ? AND git_branch = ?", (project_id, old))
        session.update("branch", {"git_branch": new}, "project_id = ? AND git_branch = ?", (project_id, old))
        session.run("DELETE FROM git_tip WHERE project_id = ? AND git_branch = ?", (project_id, old))
        return frozenset(row[0] for row in linked)
