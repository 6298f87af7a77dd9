"""The last change of each space that was acknowledged to this process: a promoted replica may lack some of them.

Asynchronous replicas receive a commit after it was acknowledged. When another server takes over, the change sequences
of the spaces that were written last are compared with its own. What is missing was lost; if others wrote in the
meantime, more may be missing than is found.
"""

from __future__ import annotations

import logging
import threading
from collections.abc import Mapping

from ...core.store.database import Session, in_spaces

__all__ = ["Acknowledged"]

logger = logging.getLogger(__name__)

# Spaces that were written before this many others are no longer looked at.
_SPACES_MOST = 500


class Acknowledged:
    def __init__(self) -> None:
        self._lock = threading.Lock()
        self._changes: dict[str, int] = {}
        self._era = 0
        self.lost = 0

    def note(self, changes: Mapping[str, int], era: int) -> None:
        """Note the last change of each space that a transaction wrote, after its commit."""
        with self._lock:
            if era == self._era:
                for space, seq in changes.items():
                    self._changes[space] = max(seq, self._changes.pop(space, 0))
                while len(self._changes) > _SPACES_MOST:
                    del self._changes[next(iter(self._changes))]

    def take(self, era: int) -> dict[str, int]:
        """The changes to look for, if another server has taken over since the last call; otherwise none."""
        if era == self._era:
            return {}
        with self._lock:
            changes = self._changes if era != self._era else {}
            self._changes, self._era = {}, era
            return changes

    def compare(self, session: Session, changes: Mapping[str, int]) -> None:
        """Report the changes that the store does not have."""
        statement = f"SELECT space, seq FROM space_change WHERE {in_spaces('space', [*changes])}"
        found: dict[str, int] = dict(session.rows(statement, [*changes]))
        missing = [seq - found.get(space, 0) for space, seq in changes.items() if seq > found.get(space, 0)]
        if missing:
            with self._lock:
                self.lost += sum(missing)
            logger.error(
                "at least %d acknowledged changes of this process are lost, in %d spaces", sum(missing), len(missing)
            )
