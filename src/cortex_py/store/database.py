"""What an engine must offer: short transactions, a text index over hashed terms, a change counter.

All other SQL in this folder is written once against these two protocols, with `?` parameters.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from contextlib import AbstractContextManager
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Protocol

from .bounds import Bounds

if TYPE_CHECKING:
    from .nearest import Nearest

__all__ = ["EVERY_ROW", "Database", "Row", "Session", "Sql", "Vitals", "marks", "padded"]

Sql = str | int | float | bytes | None
# A row's columns are known by the statement beside it; each reader converts them into a record type.
Row = tuple[Any, ...]
# A limit that is none.
EVERY_ROW = (1 << 63) - 1


@dataclass(frozen=True, slots=True)
class Vitals:
    """What an engine counts about itself: connections now, and since it was opened the rest.

    `waited` are callers for whom no connection was free, `retries` attempts to reach a server that did not answer,
    `lost` transactions whose connection broke.
    """

    in_use: int
    idle: int
    most: int
    waited: int = 0
    reads: int = 0
    writes: int = 0
    retries: int = 0
    lost: int = 0


class Session(Protocol):
    """One transaction. Statements run in order; leaving the block commits, an error rolls back.

    Where `bounds` are set, the engine itself shows the spaces of a caller alone.
    """

    bounds: Bounds | None

    def rows(self, sql: str, params: Sequence[Sql] = ()) -> list[Row]: ...

    def run(self, sql: str, params: Sequence[Sql] = ()) -> None: ...

    def run_many(self, sql: str, params: Iterable[Sequence[Sql]]) -> None: ...

    def copy(self, table: str, columns: Sequence[str], rows: Sequence[Sequence[Sql]]) -> None:
        """Add many rows in the engine's quickest way; none of them may be there yet."""
        ...

    def changed(self) -> int:
        """How many rows the last statement changed."""
        ...


class Database(Protocol):
    """An engine with its connections."""

    name: str
    # Where the engine can keep an index of vectors itself.
    nearest: Nearest | None

    def read(self) -> AbstractContextManager[Session]: ...

    def write(self) -> AbstractContextManager[Session]: ...

    def has_table(self, session: Session, name: str) -> bool: ...

    def new_numbers(self, session: Session, spaces: Sequence[str]) -> list[int]:
        """Numbers for records about to be added, given by their spaces; ascending in each."""
        ...

    def index_texts(self, session: Session, entries: Sequence[tuple[str, int, str]]) -> None:
        """Put the words of many new records into the text index: space, number, words."""
        ...

    def index_text(self, session: Session, space: str, num: int, words: str) -> None:
        """Put a record's words into the text index, replacing what was there."""
        ...

    def unindex_text(self, session: Session, space: str, num: int) -> None: ...

    def text_matches(
        self, session: Session, space: str, words: Sequence[str], space_words: Sequence[str], limit: int, above: int = 0
    ) -> list[list[int]]:
        """For each word the newest records of a space that hold it, of those with a number above `above`.

        An engine whose index knows no spaces gives those of others too, unless words that stand for spaces are given.
        """
        ...

    def text_condition(self, session: Session, spaces: Sequence[str], words: Sequence[str]) -> tuple[str, list[Sql]]:
        """A condition on `m.num`: the record, which is of one of the spaces, holds all the words."""
        ...

    def compact(self) -> None:
        """Give back space after large deletions."""
        ...

    def check(self) -> list[str]:
        """Faults that the engine finds in its own files; empty when all is well."""
        ...

    def size_bytes(self) -> int: ...

    def ping(self, seconds: float, /) -> None:
        """Raise why the engine cannot be reached; without waiting for others, in about that time."""
        ...

    def leads(self, name: str, /) -> bool:
        """Whether this process, and no other, does the named work for the whole store.

        Once it does, it does so until it is closed, its connection breaks or it dies; then another may.
        """
        ...

    def vitals(self) -> Vitals: ...

    def wait_for_change(self, seconds: float, /) -> bool | None:
        """Wait until memories or prompts may have changed, at most that long; None where the engine cannot tell."""
        ...

    def close(self) -> None: ...


def marks(count: int) -> str:
    """Parameter marks for a list: `?,?,?`."""
    return ",".join("?" * count)


def padded(nums: Sequence[int], step: int = 32) -> list[int]:
    """Numbers filled up with -1, which names nothing, so that few lengths of statement are ever prepared."""
    return [*nums, *[-1] * (-len(nums) % step)]
