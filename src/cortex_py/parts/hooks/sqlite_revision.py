"""The number of the last change to a store, read with the standard library alone."""

from __future__ import annotations

from pathlib import Path

__all__ = ["read_revision"]


def read_revision(database: Path) -> int | None:
    """The change number of the store in a file; None if it cannot be read, or is encrypted."""
    # Imported here: most hooks need no database.
    import sqlite3

    try:
        connection = sqlite3.connect(f"{database.as_uri()}?mode=ro", uri=True, timeout=0.02)
        try:
            return int(connection.execute("SELECT COALESCE(sum(seq), 0) FROM space_change").fetchone()[0])
        finally:
            connection.close()
    except (sqlite3.Error, ValueError, TypeError):
        return None
