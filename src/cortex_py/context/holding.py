"""What backups hold of a project, or of a person or organisation: its space, and the files made from it."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from contextlib import suppress

from ..errors import CortexError
from ..records import Domain
from ..store.database import Session
from ..store.document import Document
from ..store.rows import Prepared
from ..store.store import Store
from .branch_store import BranchFiles
from .desk import Desk

__all__ = ["HeldSpace"]


class HeldSpace:
    """The space of a domain as seen from a desk. Only a project has lines of work, and so files."""

    def __init__(self, store: Store, files: BranchFiles, desk: Desk, domain: Domain = "project") -> None:
        self._store = store
        self._files = files
        self._desk = desk
        self._domain = domain
        self._carried = desk.memories.carried(self.space)

    @property
    def space(self) -> str:
        return self._desk.memories.place.space(self._domain)

    @property
    def facts(self) -> Mapping[str, str | None]:
        if self._domain != "project":
            return {"domain": self._domain}
        project = self._desk.project
        return {"domain": "project", "project_id": project.id, "name": project.name, "remote": project.remote}

    def settle(self) -> None:
        self._desk.memories.write_uses()
        for branch_id in self._branches():
            self._desk.projection.try_refresh(branch_id)

    def files(self) -> Iterator[tuple[str, bytes]]:
        for branch_id in self._branches():
            with suppress(CortexError):
                # A file that cannot be read is no reason to have no backup: the store has all that is in it.
                text = self._files.read(self._desk.project.id, branch_id)
                if text is not None:
                    yield f"branches/{branch_id}.md", text.encode()

    def prepared(self, document: Document) -> Prepared:
        return self._carried.prepared(document)

    def written(self, session: Session) -> None:
        self._carried.written(session)

    def changed(self) -> None:
        """Files of lines of work that are no longer there go; the others are written anew."""
        if self._domain == "project":
            there = self._branches()
            for branch_id in there:
                self._desk.summaries.refresh(branch_id)
                self._desk.projection.try_refresh(branch_id, whole=True)
            for branch_id in set(self._files.names(self._desk.project.id)) - set(there):
                self._files.remove(self._desk.project.id, branch_id)
        self._desk.memories.fill_vectors()

    def _branches(self) -> list[str]:
        if self._domain != "project":
            return []
        with self._store.database.read() as session:
            return sorted(branch.id for branch in self._store.branches.all(session, self._desk.project.id))
