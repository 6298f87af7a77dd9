"""Projects, branches and settings: the small tables around the records."""

from __future__ import annotations

from collections.abc import Sequence

from ..clock import to_micros
from ..records import Branch, Project
from .database import Row, Session
from .rows import BRANCH_COLUMNS, PROJECT_COLUMNS, branch_from, project_from

__all__ = ["BranchTable", "ProjectTable", "SettingTable"]

_PROJECT = ", ".join(PROJECT_COLUMNS)
_WHOLE_PROJECT = f"{_PROJECT}, root_commit, created_at, updated_at"
_BRANCH = ", ".join(BRANCH_COLUMNS)


class ProjectTable:
    def save(self, session: Session, project: Project, root_commit: str | None, at: int) -> None:
        session.run(
            "INSERT INTO project (id, root, remote, name, root_commit, created_at, updated_at) "
            "VALUES (?, ?, ?, ?, ?, ?, ?) ON CONFLICT (id) DO UPDATE SET root = excluded.root, "
            "remote = excluded.remote, name = excluded.name, root_commit = excluded.root_commit, "
            "updated_at = excluded.updated_at",
            (project.id, project.root, project.remote, project.name, root_commit, at, at),
        )

    def get(self, session: Session, project_id: str) -> Project | None:
        rows = session.rows(f"SELECT {_PROJECT} FROM project WHERE id = ?", (project_id,))
        return project_from(rows[0]) if rows else None

    def all(self, session: Session) -> list[Project]:
        return [project_from(row) for row in session.rows(f"SELECT {_PROJECT} FROM project ORDER BY name, id")]

    def rows(self, session: Session) -> list[Row]:
        """All that is known of every project, for `copy` into another store."""
        return session.rows(f"SELECT {_WHOLE_PROJECT} FROM project ORDER BY id")

    def copy(self, session: Session, rows: Sequence[Row]) -> None:
        session.run_many(
            f"INSERT INTO project ({_WHOLE_PROJECT}) VALUES (?, ?, ?, ?, ?, ?, ?) ON CONFLICT DO NOTHING", rows
        )

    def by_remote(self, session: Session, remote: str) -> Project | None:
        rows = session.rows(f"SELECT {_PROJECT} FROM project WHERE remote = ? ORDER BY created_at", (remote,))
        return project_from(rows[0]) if rows else None

    def without_remote(self, session: Session, name: str) -> list[tuple[Project, str | None]]:
        """Projects known only by their folder, with the first commit each had."""
        rows = session.rows(f"SELECT {_PROJECT}, root_commit FROM project WHERE remote IS NULL AND name = ?", (name,))
        return [(project_from(row), row[4]) for row in rows]


class BranchTable:
    def add(self, session: Session, branch: Branch) -> bool:
        """Add a branch; False when its id is taken."""
        session.run(
            f"INSERT INTO branch ({_BRANCH}) VALUES (?, ?, ?, ?, ?, ?, ?, ?) ON CONFLICT DO NOTHING",
            (
                branch.id,
                branch.project_id,
                branch.topic,
                branch.parent_id,
                branch.git_branch,
                branch.status,
                to_micros(branch.created_at),
                to_micros(branch.updated_at),
            ),
        )
        return session.changed() == 1

    def remove(self, session: Session, project_id: str, branch_id: str) -> None:
        """Take back a branch that was only just added: it must have no records."""
        session.run("DELETE FROM branch WHERE project_id = ? AND id = ?", (project_id, branch_id))

    def get(self, session: Session, project_id: str, branch_id: str) -> Branch | None:
        rows = session.rows(f"SELECT {_BRANCH} FROM branch WHERE project_id = ? AND id = ?", (project_id, branch_id))
        return branch_from(rows[0]) if rows else None

    def linked_to(self, session: Session, project_id: str, git_branch: str) -> Branch | None:
        """The line of work that belongs to a git branch; the newest when there are several."""
        rows = session.rows(
            f"SELECT {_BRANCH} FROM branch WHERE project_id = ? AND git_branch = ? "
            "ORDER BY created_at DESC, id DESC LIMIT 1",
            (project_id, git_branch),
        )
        return branch_from(rows[0]) if rows else None

    def link(self, session: Session, project_id: str, branch_id: str, git_branch: str, at: int) -> list[str]:
        """Join a line of work to a git branch; returns the ids of those that were joined to it before."""
        others = [
            row[0]
            for row in session.rows(
                "SELECT id FROM branch WHERE project_id = ? AND git_branch = ? AND id <> ? ORDER BY id",
                (project_id, git_branch, branch_id),
            )
        ]
        session.run(
            "UPDATE branch SET git_branch = NULL, updated_at = ? WHERE project_id = ? AND git_branch = ? AND id <> ?",
            (at, project_id, git_branch, branch_id),
        )
        session.run(
            "UPDATE branch SET git_branch = ?, updated_at = ? WHERE project_id = ? AND id = ?",
            (git_branch, at, project_id, branch_id),
        )
        return others

    def retitle(self, session: Session, project_id: str, branch_id: str, topic: str, at: int) -> None:
        session.run(
            "UPDATE branch SET topic = ?, updated_at = ? WHERE project_id = ? AND id = ?",
            (topic, at, project_id, branch_id),
        )

    def summary(self, session: Session, project_id: str, branch_id: str) -> tuple[str | None, int]:
        """The summariser's state, and the change up to which it is current."""
        rows = session.rows(
            "SELECT summary, summary_seq FROM branch WHERE project_id = ? AND id = ?", (project_id, branch_id)
        )
        return (rows[0][0], rows[0][1]) if rows else (None, 0)

    def put_summary(self, session: Session, project_id: str, branch_id: str, state: str, seq: int) -> None:
        # A process that was slower keeps its older state to itself.
        session.run(
            "UPDATE branch SET summary = ?, summary_seq = ? WHERE project_id = ? AND id = ? AND summary_seq <= ?",
            (state, seq, project_id, branch_id, seq),
        )

    def all(self, session: Session, project_id: str) -> list[Branch]:
        rows = session.rows(f"SELECT {_BRANCH} FROM branch WHERE project_id = ? ORDER BY created_at, id", (project_id,))
        return [branch_from(row) for row in rows]


class SettingTable:
    """Facts about the store itself, such as which model made its vectors."""

    def get(self, session: Session, key: str) -> str | None:
        rows = session.rows("SELECT value FROM setting WHERE key = ?", (key,))
        return rows[0][0] if rows else None

    def put(self, session: Session, key: str, value: str) -> None:
        session.run(
            "INSERT INTO setting (key, value) VALUES (?, ?) ON CONFLICT (key) DO UPDATE SET value = excluded.value",
            (key, value),
        )
