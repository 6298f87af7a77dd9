"""The source of a backup: one space, and what belongs to it in this home."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import TYPE_CHECKING, Protocol

from ...core.records import CommitMessage, Domain
from ...core.security.permission import require_admin
from ...core.store.database import Session
from ...core.store.documents.document import Document
from ...core.store.rows import IndexedRecord

if TYPE_CHECKING:
    from ...core.memory.service import Memories
    from ..graph.service import Graph

__all__ = ["AdministeredSources", "BackupSource", "BackupSources"]


class BackupSource(Protocol):
    """A project with everything in it, or what a person or an organisation keeps for all projects."""

    @property
    def space(self) -> str: ...

    @property
    def facts(self) -> Mapping[str, str | None]:
        """Names of the space, stored in a snapshot; enough to register it in another home."""

    @property
    def model(self) -> str:
        """The fingerprint of the embedding model that makes the vectors; empty without a usable one."""

    @property
    def tag(self) -> bytes | None:
        """The tag of the index entries that this home makes; None without a usable model."""

    def settle(self) -> None:
        """Bring pending edits, such as those of branch files, into the store."""

    def look_for_personal_data(self) -> None:
        """Check the memories that were not checked yet."""

    def files(self) -> Iterator[tuple[str, bytes]]:
        """Readable files made from the space, for a snapshot."""

    def index(self, document: Document) -> IndexedRecord:
        """A memory indexed for the store; BackupCorrupt if the document is not a memory."""

    def finish(self, session: Session) -> None:
        """Record, in the same transaction, what the written documents require, such as missing vectors."""

    def changed(self) -> None:
        """Update what is derived from the space, after documents were written into it."""


class BackupSources(Protocol):
    """Everything that can be backed up from here; the project None is the caller's current one."""

    def source(self, project_id: str | None, domain: Domain) -> BackupSource: ...

    def memories(self, project_id: str | None) -> Memories: ...

    def graph(self, project_id: str | None) -> Graph: ...

    def commits(self, folder: Path, most: int) -> Iterator[CommitMessage]:
        """The commits of the repository at a folder, newest first, without merges; InvalidInput if there is none."""

    def project_of(self, folder: str) -> str | None:
        """The id of the project that a folder belongs to; None if it is no folder here and no project had it."""


class AdministeredSources:
    """The sources of a project by domain, for a caller who administers them: a copy holds all of a space."""

    def __init__(self, sources: BackupSources, project_id: str | None) -> None:
        self._sources = sources
        self._project_id = project_id

    def __getitem__(self, domain: Domain) -> BackupSource:
        held = self._sources.source(self._project_id, domain)
        require_admin(held.space)
        return held
