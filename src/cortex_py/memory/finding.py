"""Records by their ids, as far as the caller may read: what they may not is as if it were not there."""

from __future__ import annotations

from collections.abc import Sequence

from ..records import Memory
from ..security.permission import readable
from ..store.database import Session
from ..store.store import Store

__all__ = ["find_readable", "seek_readable"]


def find_readable(store: Store, session: Session, prefix: str, limit: int = 6) -> list[tuple[int, str, Memory]]:
    """Records whose id begins with the prefix, as (number, space, record)."""
    asked = limit
    while True:
        rows = store.memories.find(session, prefix, asked)
        seen = [row for row in rows if readable(row[1])]
        if len(seen) >= limit or len(rows) < asked:
            return seen[:limit]
        # Others have taken the places: a beginning is shared by what is stored in the same moment.
        asked *= 8


def seek_readable(store: Store, session: Session, spaces: Sequence[str], memory_id: str) -> tuple[int, str] | None:
    """Number and space of a record by whole id, most likely of one of these spaces."""
    found = store.memories.seek(session, spaces, memory_id)
    return found if found and readable(found[1]) else None
