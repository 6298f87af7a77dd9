"""`cortex.contexts`: projects and their lines of work."""

from __future__ import annotations

from pathlib import Path

from ..clock import Clock
from ..errors import BranchNotFound, ProjectNotFound, StorageError
from ..records import Branch, Project
from ..store.store import Store
from .branch import branch_id, check_topic
from .project import identify

__all__ = ["Contexts"]

_ATTEMPTS = 1000


class Contexts:
    """Lines of work of one project."""

    def __init__(self, store: Store, clock: Clock, project: Project) -> None:
        self._store = store
        self._clock = clock
        self._project = project

    @property
    def project(self) -> Project:
        """The project that this Cortex stands in."""
        return self._project

    def projects(self) -> list[Project]:
        """All projects of the store."""
        with self._store.database.read() as session:
            return self._store.projects.all(session)

    def project_at(self, path: str | Path) -> Project:
        """The stored project that a folder belongs to."""
        found = identify(Path(path).expanduser())
        with self._store.database.read() as session:
            project = self._store.projects.get(session, found.id)
        if project is None:
            raise ProjectNotFound(
                f"No memories are kept for {str(path)[:200]!r}.", remedy="Capture something there first.", field="path"
            )
        return project

    def create_branch(self, topic: str, *, parent_id: str | None = None, git_branch: str | None = None) -> Branch:
        """Begin a line of work, perhaps as a child of another."""
        check_topic(topic)
        now = self._clock.now()
        with self._store.database.write() as session:
            if parent_id and self._store.branches.get(session, self._project.id, parent_id) is None:
                raise _unknown(parent_id)
            for attempt in range(_ATTEMPTS):
                branch = Branch(
                    id=branch_id(topic, now, attempt),
                    project_id=self._project.id,
                    topic=topic,
                    parent_id=parent_id,
                    git_branch=git_branch,
                    status="active",
                    created_at=now,
                    updated_at=now,
                )
                if self._store.branches.add(session, branch):
                    return branch
        raise StorageError(
            f"{_ATTEMPTS} branches with the topic {topic[:40]!r} were begun in one second.",
            remedy="Wait a second and repeat.",
        )

    def get_branch(self, branch_id: str) -> Branch:
        """A line of work by its exact id."""
        with self._store.database.read() as session:
            branch = self._store.branches.get(session, self._project.id, branch_id)
        if branch is None:
            raise _unknown(branch_id)
        return branch

    def branches(self) -> list[Branch]:
        """All lines of work of the project, oldest first."""
        with self._store.database.read() as session:
            return self._store.branches.all(session, self._project.id)


def _unknown(branch_id: str) -> BranchNotFound:
    return BranchNotFound(
        f"There is no branch {branch_id[:80]!r} in this project.", remedy="Create it first.", field="branch_id"
    )
