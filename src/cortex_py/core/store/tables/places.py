"""The small tables around the records: projects, branches, settings, repeated requests, use of the language model."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence

from ...records import Branch, Project
from ..database import Changes, Database, Row, Session, Values, column, marks, replacing, rows_among
from ..rows import BRANCH_COLUMNS, PROJECT_COLUMNS, branch_from, project_from, to_sql

__all__ = ["BranchTable", "LLMUsageTable", "ProjectTable", "RequestTable", "SettingTable"]


class LLMUsageTable:
    """Implements the ledger of `llm`: `spent` and `record` run in transactions of their own."""

    def __init__(self, database: Database) -> None:
        self._database = database

    def spent(self, day: str) -> int:
        """Input and output tokens of a day."""
        statement = "SELECT COALESCE(sum(input_tokens + output_tokens), 0) FROM llm_use WHERE day = ?"
        with self._database.read() as session:
            return int(session.rows(statement, (day,))[0][0])

    def record(self, day: str, model: str, calls: int, input_tokens: int, output_tokens: int, failed: int) -> None:
        with self._database.write() as session:
            counts = {"calls": calls, "input_tokens": input_tokens, "output_tokens": output_tokens, "failed": failed}
            added = ", ".join(f"{name} = llm_use.{name} + excluded.{name}" for name in counts)
            row: Values = {"day": day, "model": model, **counts}
            session.insert("llm_use", row, f"ON CONFLICT (day, model) DO UPDATE SET {added}")

    def of_day(self, session: Session, day: str) -> list[tuple[str, int, int, int, int]]:
        """Model, calls, input tokens, output tokens, failures."""
        return session.rows(
            "SELECT model, calls, input_tokens, output_tokens, failed FROM llm_use WHERE day = ? ORDER BY model", (day,)
        )


_PROJECT = ", ".join(PROJECT_COLUMNS)
_WHOLE_PROJECT = (*PROJECT_COLUMNS, "root_commit", "created_at", "updated_at")
_BRANCH = ", ".join(BRANCH_COLUMNS)


class ProjectTable:
    def save(self, session: Session, project: Project, root_commit: str | None, at: int) -> None:
        changing = {name: getattr(project, name) for name in ("root", "remote", "name")}
        changing |= {"root_commit": root_commit, "updated_at": at}
        session.insert("project", {"id": project.id, "created_at": at, **changing}, replacing("project", *changing))

    def leave(self, session: Session, root: str, project_id: str, at: int) -> None:
        """Take a folder from projects without a remote, except from the one that it belongs to now."""
        mine = "root = ? AND remote IS NULL AND id <> ?"
        session.update("project", {"root": None, "updated_at": at}, mine, (root, project_id))

    def get(self, session: Session, project_id: str) -> Project | None:
        rows = session.rows(f"SELECT {_PROJECT} FROM project WHERE id = ?", (project_id,))
        return project_from(rows[0]) if rows else None

    def all(self, session: Session) -> list[Project]:
        return [project_from(row) for row in session.rows(f"SELECT {_PROJECT} FROM project ORDER BY name, id")]

    def rows(self, session: Session) -> list[Row]:
        """Every project with all its columns, for `copy` into another store."""
        return session.rows(f"SELECT {', '.join(_WHOLE_PROJECT)} FROM project ORDER BY id")

    def copy(self, session: Session, rows: Sequence[Row]) -> None:
        session.as_is.insert_many("project", _WHOLE_PROJECT, rows, replacing("project"))

    def overlapping(self, session: Session, around: Sequence[str], path: str) -> list[str]:
        """Ids of the projects whose root is one of the folders `around`, or below a path."""
        known = marks(len(around))
        below = f"{path.rstrip('/')}/"
        return column(
            session,
            f"SELECT id FROM project WHERE root IN ({known}) OR substr(root, 1, ?) = ?",
            (*around, len(below), below),
        )

    def by_remote(self, session: Session, remote: str) -> Project | None:
        rows = session.rows(f"SELECT {_PROJECT} FROM project WHERE remote = ? ORDER BY created_at", (remote,))
        return project_from(rows[0]) if rows else None

    def of_plain_folder(self, session: Session, folders: Sequence[str]) -> Project | None:
        """The project of the longest of these paths that is a folder without a repository."""
        rows = session.rows(
            f"SELECT {_PROJECT} FROM project WHERE root IN ({marks(len(folders))}) AND remote IS NULL "
            "AND root_commit IS NULL ORDER BY length(root) DESC LIMIT 1",
            tuple(folders),
        )
        return project_from(rows[0]) if rows else None

    def without_remote(self, session: Session, name: str) -> list[tuple[Project, str | None]]:
        """Projects known only by their folder, each with its first commit."""
        rows = session.rows(f"SELECT {_PROJECT}, root_commit FROM project WHERE remote IS NULL AND name = ?", (name,))
        return [(project_from(row), row[4]) for row in rows]


class BranchTable:
    def add(self, session: Session, branch: Branch) -> bool:
        """Add a branch; False when its id is taken."""
        row = {name: to_sql(getattr(branch, name)) for name in BRANCH_COLUMNS}
        session.insert("branch", row, replacing("branch"))
        return session.changed() == 1

    def remove(self, session: Session, project_id: str, branch_id: str) -> None:
        """Remove a branch that was just added and has no records."""
        session.run("DELETE FROM branch WHERE project_id = ? AND id = ?", (project_id, branch_id))

    def get(self, session: Session, project_id: str, branch_id: str) -> Branch | None:
        rows = session.rows(f"SELECT {_BRANCH} FROM branch WHERE project_id = ? AND id = ?", (project_id, branch_id))
        return branch_from(rows[0]) if rows else None

    def linked_to(self, session: Session, project_id: str, git_branch: str) -> Branch | None:
        """The newest line of work that is linked to a git branch."""
        rows = session.rows(
            f"SELECT {_BRANCH} FROM branch WHERE project_id = ? AND git_branch = ? "
            "ORDER BY created_at DESC, id DESC LIMIT 1",
            (project_id, git_branch),
        )
        return branch_from(rows[0]) if rows else None

    def link(self, session: Session, project_id: str, branch_id: str, git_branch: str, at: int) -> list[str]:
        """Link a line of work to a git branch; the ids of those that were linked to it before."""
        others: list[str] = column(
            session,
            "SELECT id FROM branch WHERE project_id = ? AND git_branch = ? AND id <> ? ORDER BY id",
            (project_id, git_branch, branch_id),
        )
        unlinked = {"git_branch": None, "updated_at": at}
        session.update(
            "branch", unlinked, "project_id = ? AND git_branch = ? AND id <> ?", (project_id, git_branch, branch_id)
        )
        linked: Changes = {"git_branch": git_branch, "updated_at": at}
        session.update("branch", linked, "project_id = ? AND id = ?", (project_id, branch_id))
        return others

    def retitle(self, session: Session, project_id: str, branch_id: str, topic: str, at: int) -> None:
        changes: Changes = {"topic": topic, "updated_at": at}
        session.update("branch", changes, "project_id = ? AND id = ?", (project_id, branch_id))

    def summary(self, session: Session, project_id: str, branch_id: str) -> tuple[str | None, int]:
        """The state of the summariser, and the change sequence it is current at."""
        rows = session.rows(
            "SELECT summary, summary_seq FROM branch WHERE project_id = ? AND id = ?", (project_id, branch_id)
        )
        return (rows[0][0], rows[0][1]) if rows else (None, 0)

    def put_summary(self, session: Session, project_id: str, branch_id: str, state: str, seq: int) -> None:
        # A slower process does not overwrite a newer state.
        older = "project_id = ? AND id = ? AND summary_seq <= ?"
        session.update("branch", {"summary": state, "summary_seq": seq}, older, (project_id, branch_id, seq))

    def all(self, session: Session, project_id: str) -> list[Branch]:
        rows = session.rows(f"SELECT {_BRANCH} FROM branch WHERE project_id = ? ORDER BY created_at, id", (project_id,))
        return [branch_from(row) for row in rows]


class SettingTable:
    """Facts about the store itself, such as the model that made its vectors."""

    def get(self, session: Session, key: str) -> str | None:
        rows = session.rows("SELECT value FROM setting WHERE key = ?", (key,))
        return rows[0][0] if rows else None

    def get_many(self, session: Session, keys: Sequence[str]) -> dict[str, str]:
        """Several facts at once, those that are stored."""
        marks = ",".join("?" * len(keys))
        return dict(session.rows(f"SELECT key, value FROM setting WHERE key IN ({marks})", tuple(keys)))

    def beginning_with(self, session: Session, prefix: str) -> dict[str, str]:
        """All facts whose keys begin with a text."""
        return dict(session.rows("SELECT key, value FROM setting WHERE substr(key, 1, ?) = ?", (len(prefix), prefix)))

    def put(self, session: Session, key: str, value: str) -> None:
        session.insert("setting", {"key": key, "value": value}, replacing("setting", "value"))

    def remove(self, session: Session, key: str) -> None:
        session.run("DELETE FROM setting WHERE key = ?", (key,))


# A day, in microseconds. A client repeats a request within minutes.
_KEPT = 86_400_000_000


class RequestTable:
    """What requests with a key have stored, for a day: a repeated request finds it."""

    def results(self, session: Session, space: str, keys: Iterable[str]) -> dict[str, str]:
        """What earlier requests with these keys have stored in a space, as they recorded it."""
        statement = "SELECT key, result FROM kept_request WHERE space = ? AND key IN ({})"
        return dict(rows_among(session, statement, (space,), keys))

    def result(self, session: Session, space: str, key: str | None) -> str | None:
        """What an earlier request with this key has stored; None without a key too."""
        return None if key is None else self.results(session, space, [key]).get(key)

    def keep(self, session: Session, space: str, results: Mapping[str, str], at: int) -> None:
        """Record what was stored, in the transaction that stores it; what is older than a day goes."""
        if not results:
            return
        session.run("DELETE FROM kept_request WHERE space = ? AND at < ?", (space, at - _KEPT))
        rows = [(space, key, result, at) for key, result in results.items()]
        session.insert_many(
            "kept_request", ("space", "key", "result", "at"), rows, replacing("kept_request", "result", "at")
        )
