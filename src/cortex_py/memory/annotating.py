"""What else is read out of a record when it is stored. Others do the reading; the record's transaction is shared."""

from __future__ import annotations

from collections.abc import Sequence
from typing import NamedTuple, Protocol

from ..records import Memory
from ..store.database import Session

__all__ = ["Annotator", "Stored"]


class Stored(NamedTuple):
    """A record as it was just stored, with what was read in it beforehand."""

    num: int
    space: str
    memory: Memory
    note: object


class Annotator(Protocol):
    def read(self, memory: Memory) -> object:
        """Look at a record before the transaction; what comes of it is handed back to `write`."""
        ...

    def write(self, session: Session, stored: Sequence[Stored]) -> None:
        """Keep what was read, inside the transaction that stores the records."""
        ...
