"""What an engine must offer: short transactions, a text index over hashed terms, a change counter.

All other SQL in this folder is written once against these two protocols, with `?` parameters.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from contextlib import AbstractContextManager
from typing import Any, Protocol

__all__ = ["EVERY_ROW", "Database", "Row", "Session", "Sql", "marks", "padded"]

Sql = str | int | float | bytes | None
# A row's columns are known by the statement beside it; each reader converts them into a record type.
Row = tuple[Any, ...]
# A limit that is none.
EVERY_ROW = (1 << 63) - 1


class Session(Protocol):
    """One transaction. Statements run in order; leaving the block commits, an error rolls back."""

    def rows(self, sql: str, params: Sequence[Sql] = ()) -> list[Row]: ...

    def run(self, sql: str, params: Sequence[Sql] = ()) -> None: ...

    def run_many(self, sql: str, params: Iterable[Sequence[Sql]]) -> None: ...

    def changed(self) -> int:
        """How many rows the last statement changed."""
        ...


class Database(Protocol):
    """An engine with its connections."""

    name: str

    def read(self) -> AbstractContextManager[Session]: ...

    def write(self) -> AbstractContextManager[Session]: ...

    def has_table(self, session: Session, name: str) -> bool: ...

    def index_text(self, session: Session, num: int, words: str) -> None:
        """Put a record's words into the text index, replacing what was there."""
        ...

    def unindex_text(self, session: Session, num: int) -> None: ...

    def text_matches(
        self, session: Session, words: Sequence[str], space_words: Sequence[str], limit: int
    ) -> list[list[int]]:
        """For each word the newest records that hold it; only those of the spaces, if any are given."""
        ...

    def text_condition(self, words: Sequence[str]) -> tuple[str, list[Sql]]:
        """A condition on `m.num`: the record holds all the words."""
        ...

    def compact(self) -> None:
        """Give back space after large deletions."""
        ...

    def check(self) -> list[str]:
        """Faults that the engine finds in its own files; empty when all is well."""
        ...

    def size_bytes(self) -> int: ...

    def close(self) -> None: ...


def marks(count: int) -> str:
    """Parameter marks for a list: `?,?,?`."""
    return ",".join("?" * count)


def padded(nums: Sequence[int], step: int = 32) -> list[int]:
    """Numbers filled up with -1, which names nothing, so that few lengths of statement are ever prepared."""
    return [*nums, *[-1] * (-len(nums) % step)]
