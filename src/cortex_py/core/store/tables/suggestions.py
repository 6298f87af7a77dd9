"""When records were used, which suggestions were made, and how they were answered.

Uses are kept twice: the newest as events, for people to inspect, and as sums, so that a suggestion reads a few rows
however long the history is. A sum fades with time: it is stored with its moment.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from typing import NamedTuple

from ..database import Changes, Row, Session, marks, replacing, rows_among

__all__ = ["ReferenceRow", "SessionRow", "SuggestedRow", "SuggestionTable", "TrustRow"]


_BATCH = 400
_STRENGTH = ("strength", "times", "at")
_SESSION = "id, task, branch_id, created_at, expires_at, state, answered_at, reason, share"


class ReferenceRow(NamedTuple):
    memory_id: str
    kind: str
    branch_id: str | None
    task: str
    at: int


class SessionRow(NamedTuple):
    id: str
    task: str
    branch_id: str | None
    created_at: int
    expires_at: int
    state: str
    answered_at: int | None
    reason: str
    # 1 or 0, in earlier versions a share, for an answer to suggestions, which may be purged later; else None.
    share: float | None


class SuggestedRow(NamedTuple):
    memory_id: str
    source: str
    raw: float
    confidence: float
    accepted: bool | None


class TrustRow(NamedTuple):
    accepted: float
    refused: float
    at: int


class SuggestionTable:
    # -- references ------------------------------------------------------------------------------

    def add(self, session: Session, project_id: str, events: Sequence[ReferenceRow], most: int) -> None:
        """Add events, and drop the oldest beyond `most`."""
        rows = session.rows("SELECT COALESCE(MAX(n), 0) FROM reference WHERE project_id = ?", (project_id,))
        first = int(rows[0][0]) + 1
        rows = [(project_id, first + place, *event) for place, event in enumerate(events)]
        session.insert_many("reference", ("project_id", "n", *ReferenceRow._fields), rows)
        session.run(
            "DELETE FROM reference WHERE project_id = ? AND n <= ?", (project_id, first + len(events) - 1 - most)
        )

    def recent(self, session: Session, project_id: str, most: int) -> list[ReferenceRow]:
        """The newest events, newest first."""
        rows = session.rows(
            "SELECT memory_id, kind, branch_id, task, at FROM reference WHERE project_id = ? ORDER BY n DESC LIMIT ?",
            (project_id, most),
        )
        return [ReferenceRow(*row) for row in rows]

    def uses(
        self, session: Session, project_id: str, branch_id: str | None, most: int, since: int
    ) -> list[ReferenceRow]:
        """The newest uses in a line of work, or in all for None, newest first; without `together` events."""
        where, values = ("", ()) if branch_id is None else (" AND branch_id = ?", (branch_id,))
        rows = session.rows(
            "SELECT memory_id, kind, branch_id, task, at FROM reference "
            f"WHERE project_id = ?{where} AND at >= ? AND kind <> 'together' ORDER BY n DESC LIMIT ?",
            (project_id, *values, since, most),
        )
        return [ReferenceRow(*row) for row in rows]

    def used(self, session: Session, project_id: str, branch_id: str, most: int) -> list[tuple[str, int]]:
        """What a line of work used, and when, newest first."""
        return session.rows(
            "SELECT memory_id, at FROM reference WHERE project_id = ? AND branch_id = ? "
            "AND kind <> 'together' ORDER BY n DESC LIMIT ?",
            (project_id, branch_id, most),
        )

    def chosen(self, session: Session, project_id: str, most: int) -> list[tuple[str, str]]:
        """The newest explicit choices for a task: the record and the task."""
        # One query per kind: each reads only the end of its index.
        parts = " UNION ALL ".join(
            "SELECT * FROM (SELECT memory_id, task, n FROM reference WHERE project_id = ? "
            f"AND kind = '{kind}' AND task <> '' ORDER BY n DESC LIMIT ?)"
            for kind in ("accept", "select")
        )
        return session.rows(
            f"SELECT memory_id, task FROM ({parts}) ORDER BY n DESC LIMIT ?", (project_id, most, project_id, most, most)
        )

    def count(self, session: Session, project_id: str) -> int:
        return int(session.rows("SELECT COUNT(*) FROM reference WHERE project_id = ?", (project_id,))[0][0])

    def strengths(self, session: Session, project_id: str, ids: Sequence[str]) -> dict[str, tuple[float, int, int]]:
        """How much records were used: strength, times, and the moment of that strength."""
        statement = "SELECT memory_id, strength, times, at FROM referred WHERE project_id = ? AND memory_id IN ({})"
        rows = rows_among(session, statement, (project_id,), ids, size=_BATCH)
        return {row[0]: (row[1], row[2], row[3]) for row in rows}

    def put_strengths(self, session: Session, project_id: str, rows: Mapping[str, tuple[float, int, int]]) -> None:
        session.insert_many(
            "referred",
            ("project_id", "memory_id", *_STRENGTH),
            [(project_id, memory_id, *row) for memory_id, row in rows.items()],
            replacing("referred", *_STRENGTH),
        )

    def together(
        self, session: Session, project_id: str, ids: Sequence[str], most: int
    ) -> list[tuple[str, str, float, int, int]]:
        """The strongest pairs of each record: its id, the other id, strength, times, moment."""
        if not ids:
            return []
        # Each part reads only the head of its index, however many pairs there are.
        parts = [
            f"SELECT * FROM (SELECT {own}, {other}, strength, times, at FROM referred_together "
            f"WHERE project_id = ? AND {own} = ? ORDER BY strength DESC LIMIT ?)"
            for own, other in (("memory_id", "other_id"), ("other_id", "memory_id"))
        ]
        statement = " UNION ALL ".join(parts * len(ids))
        return session.rows(statement, [value for one in ids for value in (project_id, one, most) * 2])

    def named_by_both(
        self, session: Session, spaces: Sequence[str], ids: Sequence[str], others: Sequence[str]
    ) -> dict[tuple[str, str], str]:
        """The name of an entity that both records of a pair mention, for the pairs that have one."""
        rows = session.rows(
            "SELECT m.id, o.id, MIN(e.name) FROM memory m JOIN mention a ON a.num = m.num AND +a.space = m.space "
            "JOIN mention b ON b.space = a.space AND b.entity_id = a.entity_id "
            "JOIN memory o ON o.num = b.num AND +o.space = b.space "
            "JOIN entity e ON e.space = a.space AND e.id = a.entity_id "
            f"WHERE +m.space IN ({marks(len(spaces))}) AND m.id IN ({marks(len(ids))}) "
            f"AND o.id IN ({marks(len(others))}) GROUP BY m.id, o.id",
            (*spaces, *ids, *others),
        )
        return {(row[0], row[1]): row[2] for row in rows}

    def pairs(
        self, session: Session, project_id: str, pairs: Iterable[tuple[str, str]]
    ) -> dict[tuple[str, str], tuple[float, int, int]]:
        found = {}
        for pair in pairs:
            rows = session.rows(
                "SELECT strength, times, at FROM referred_together WHERE project_id = ? AND memory_id = ? AND "
                "other_id = ?",
                (project_id, *pair),
            )
            if rows:
                found[pair] = (rows[0][0], rows[0][1], rows[0][2])
        return found

    def put_pairs(
        self, session: Session, project_id: str, rows: Mapping[tuple[str, str], tuple[float, int, int]]
    ) -> None:
        session.insert_many(
            "referred_together",
            ("project_id", "memory_id", "other_id", *_STRENGTH),
            [(project_id, *pair, *row) for pair, row in rows.items()],
            replacing("referred_together", *_STRENGTH),
        )

    # -- sessions --------------------------------------------------------------------------------

    def open(self, session: Session, project_id: str, made: SessionRow, shown: Sequence[SuggestedRow]) -> None:
        session.insert("suggestion_session", {"project_id": project_id, **made._asdict(), "share": None})
        columns = ("project_id", "session_id", "n", *SuggestedRow._fields[:-1])
        session.insert_many("suggestion", columns, [(project_id, made.id, n, *one[:-1]) for n, one in enumerate(shown)])

    def session(self, session: Session, project_id: str, session_id: str) -> SessionRow | None:
        rows = session.rows(
            f"SELECT {_SESSION} FROM suggestion_session WHERE project_id = ? AND id = ?", (project_id, session_id)
        )
        return SessionRow(*rows[0]) if rows else None

    def suggested(self, session: Session, project_id: str, session_id: str) -> list[SuggestedRow]:
        rows = session.rows(
            "SELECT memory_id, source, raw, confidence, accepted FROM suggestion WHERE project_id = ? AND "
            "session_id = ? ORDER BY n",
            (project_id, session_id),
        )
        return [_suggested(row) for row in rows]

    def pending(self, session: Session, project_id: str, now: int) -> list[tuple[SessionRow, int]]:
        """Open sessions with suggestions, newest first, each with the number of them."""
        rows = session.rows(
            f"SELECT {_SESSION}, (SELECT COUNT(*) FROM suggestion x WHERE x.project_id = ? "
            "AND x.session_id = suggestion_session.id) FROM suggestion_session "
            "WHERE project_id = ? AND state = 'pending' AND expires_at > ? "
            "AND id IN (SELECT session_id FROM suggestion WHERE project_id = ?) ORDER BY created_at DESC, id LIMIT 20",
            (project_id, project_id, now, project_id),
        )
        return [(SessionRow(*row[:-1]), int(row[-1])) for row in rows]

    def answered(self, session: Session, project_id: str, most: int) -> list[SessionRow]:
        """Sessions whose suggestions were answered, newest first."""
        rows = session.rows(
            f"SELECT {_SESSION} FROM suggestion_session "
            "WHERE project_id = ? AND state IN ('accepted', 'rejected') AND share IS NOT NULL "
            "ORDER BY answered_at DESC, id LIMIT ?",
            (project_id, most),
        )
        return [SessionRow(*row) for row in rows]

    def refused(self, session: Session, project_id: str, since: int, most: int) -> list[tuple[str, str, int]]:
        """What the newest refused sessions had suggested: the record, the task, and when they were refused."""
        return session.rows(
            "SELECT s.memory_id, t.task, t.answered_at FROM (SELECT id, task, answered_at FROM suggestion_session "
            "WHERE project_id = ? AND state = 'rejected' AND created_at >= ? "
            "ORDER BY created_at DESC LIMIT ?) t "
            "JOIN suggestion s ON s.project_id = ? AND s.session_id = t.id",
            (project_id, since, most, project_id),
        )

    def answer(
        self, session: Session, project_id: str, session_id: str, state: str, at: int, reason: str, share: float | None
    ) -> bool:
        """Close an open session; False if it was closed meanwhile."""
        changes: Changes = {"state": state, "answered_at": at, "reason": reason, "share": share}
        mine = "project_id = ? AND id = ? AND state = 'pending'"
        return session.update("suggestion_session", changes, mine, (project_id, session_id)) == 1

    def mark(self, session: Session, project_id: str, session_id: str, accepted: Iterable[str]) -> None:
        """Record which suggestions were accepted; all others were not."""
        mine = "project_id = ? AND session_id = ?"
        session.update("suggestion", {"accepted": 0}, mine, (project_id, session_id))
        rows = [(1, project_id, session_id, memory_id) for memory_id in accepted]
        session.update_many("suggestion", ["accepted"], f"{mine} AND memory_id = ?", rows)

    def trim(self, session: Session, project_id: str, before: int) -> None:
        """Let go of sessions that ended long ago."""
        old = "SELECT id FROM suggestion_session WHERE project_id = ? AND created_at < ?"
        session.run(
            f"DELETE FROM suggestion WHERE project_id = ? AND session_id IN ({old})", (project_id, project_id, before)
        )
        session.run("DELETE FROM suggestion_session WHERE project_id = ? AND created_at < ?", (project_id, before))

    # -- trust -----------------------------------------------------------------------------------

    def trust(
        self, session: Session, project_id: str, memories: Sequence[str] | None = None
    ) -> dict[tuple[str, str], TrustRow]:
        """What is trusted how much; of single records all, or only those of some keys."""
        columns = "SELECT kind, key, accepted, refused, at FROM trust WHERE project_id = ?"
        if memories is None:
            rows = list(session.rows(f"{columns} ORDER BY kind, key", (project_id,)))
        else:
            rows = list(session.rows(f"{columns} AND kind <> 'memory' ORDER BY kind, key", (project_id,)))
            inside = f"{columns} AND kind = 'memory' AND key IN ({{}}) ORDER BY key"
            rows += rows_among(session, inside, (project_id,), memories, size=_BATCH)
        return {(row[0], row[1]): TrustRow(row[2], row[3], row[4]) for row in rows}

    def put_trust(self, session: Session, project_id: str, rows: Mapping[tuple[str, str], TrustRow]) -> None:
        session.insert_many(
            "trust",
            ("project_id", "kind", "key", *TrustRow._fields),
            [(project_id, *key, *row) for key, row in rows.items()],
            replacing("trust", *TrustRow._fields),
        )


def _suggested(row: Row) -> SuggestedRow:
    return SuggestedRow(row[0], row[1], row[2], row[3], None if row[4] is None else bool(row[4]))
