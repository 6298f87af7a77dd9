"""What a backup is of: one space, and what else hangs on it in this home."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Protocol

from ..store.database import Session
from ..store.document import Document
from ..store.rows import Prepared

__all__ = ["Held"]


class Held(Protocol):
    """A project with all that is in it, or what a person or an organisation keeps for all projects."""

    @property
    def space(self) -> str: ...

    @property
    def facts(self) -> Mapping[str, str | None]:
        """What names it: told in a snapshot, and enough to make it known in another home."""
        ...

    def settle(self) -> None:
        """Bring into the store what waits outside it, such as edits of branch files."""
        ...

    def files(self) -> Iterator[tuple[str, bytes]]:
        """Files that are made from the space, for people to read in a snapshot."""
        ...

    def prepared(self, document: Document) -> Prepared:
        """A memory made ready for the store; BackupCorrupt where it is none."""
        ...

    def written(self, session: Session) -> None:
        """Note in the same transaction what the documents written call for, such as vectors to make."""
        ...

    def changed(self) -> None:
        """Bring up to date what is made from the space, after documents were written into it."""
        ...
