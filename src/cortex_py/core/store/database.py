"""What an engine offers: short transactions, a text index over hashed terms, a change count; and where rows are.

All other SQL of the store is written once against these two, with `?` parameters.

If the store is spread over several servers, a distributed table has one column that decides where a row is: `space`, or
`project_id`, which is the space of the project. A statement names that column for each such table, so that it goes to
the one server that has the rows. The few statements that cannot know the space are listed here and go to every server.
A `+` before the column keeps SQLite from using its index where the number or the id is more selective. PostgreSQL never
sees it.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import AbstractContextManager
from dataclasses import dataclass
from functools import lru_cache
from typing import TYPE_CHECKING, Any, NamedTuple, Protocol, TypeVar

from ..errors import StoreUnavailable
from ..tables import TABLES

if TYPE_CHECKING:
    import numpy as np
    from numpy.typing import NDArray

    from .search.kept_spaces import KeptSpaces
    from .search.vector_index import VectorIndex

__all__ = [
    "AUDIT",
    "COORDINATOR",
    "DISTRIBUTED",
    "EVERY_ROW",
    "FAN_OUTS",
    "Bounds",
    "Changes",
    "Cleaner",
    "Computed",
    "CurrentBounds",
    "Database",
    "Row",
    "ScreenedSession",
    "ServerLoad",
    "Session",
    "Sql",
    "Values",
    "Vitals",
    "batched",
    "by_space",
    "column",
    "everywhere",
    "first",
    "in_spaces",
    "marks",
    "padded",
    "replacing",
    "retry_once",
    "rows_among",
    "unbounded",
    "visible",
]  # fmt: skip


Sql = str | int | float | bytes | None
# The statement beside it says which columns a row has; each reader converts them into a record type.
Row = tuple[Any, ...]
# As a LIMIT: no limit.
EVERY_ROW = (1 << 63) - 1
# Writers of the audit log take turns as those of a space do, and wait for nobody else.
AUDIT = "log:audit"
_T = TypeVar("_T")


@dataclass(frozen=True, slots=True)
class Bounds:
    """The spaces that a caller may read and write. `member` names the caller in the engine's logs."""

    member: str
    readable: frozenset[str]
    writable: frozenset[str]


# Called when a transaction begins. None: work of the server itself, or of a local user, who has full rights.
CurrentBounds = Callable[[], Bounds | None]


def unbounded() -> Bounds | None:
    return None


def visible(spaces: Iterable[str], bounds: Bounds | None) -> tuple[str, ...]:
    """The spaces that a transaction can read.

    Cached spaces are filled from, and served to, such transactions only: one that cannot see the rows of a space would
    cache it as empty for everybody.
    """
    return tuple(space for space in spaces if bounds is None or space in bounds.readable)


@dataclass(frozen=True, slots=True)
class Vitals:
    """Counters of an engine: connections now, the rest since it was opened.

    `waited`: callers for whom no connection was free. `retries`: attempts to reach a server that did not answer.
    `lost`: transactions whose connection broke. `replica_reads` were answered by a replica; `replica_passed` could have
    been, and were answered by the primary. `failovers`: how often another server, or a restored one, took over.
    `turn_seconds`: how long writers waited in all until it was their turn. `lost_changes`: changes that were
    acknowledged to this process, and that a server which took over does not have.
    """

    in_use: int
    idle: int
    most: int
    waited: int = 0
    reads: int = 0
    writes: int = 0
    retries: int = 0
    lost: int = 0
    replica_reads: int = 0
    replica_passed: int = 0
    failovers: int = 0
    turn_seconds: float = 0.0
    lost_changes: int = 0


@dataclass(frozen=True, slots=True)
class ServerLoad:
    """What the server of an engine is busy with now; `spaces_by_worker` is empty unless rows are on workers.

    Of those who wait for a lock, `longest_wait` is the time of the one that has waited longest, in seconds.
    """

    lock_waiters: int
    longest_wait: float
    spaces_by_worker: Mapping[str, int]


class Computed(NamedTuple):
    """A value that the engine computes, with its parameters: `Computed("COALESCE(?, path)", (path,))`."""

    sql: str
    values: tuple[Sql, ...] = ()


# Values of a row by column.
Values = dict[str, Sql]
Changes = dict[str, Sql | Computed]
NewValues = Mapping[str, Sql | Computed]


class Session:
    """One transaction. Leaving the block commits, an error rolls back.

    With `bounds`, the engine itself hides all other spaces. Rows are written by `insert`, `update` and their kin, which
    know the table's declaration: texts are screened for secrets there, and a statement that writes texts past them is
    refused. `as_is` is the same transaction for rows that were screened where they were made, as those of a backup.
    """

    bounds: Bounds | None = None

    @property
    def as_is(self) -> Session:
        return self

    def rows(self, sql: str, params: Sequence[Sql] = ()) -> list[Row]:
        raise NotImplementedError

    def run(self, sql: str, params: Sequence[Sql] = ()) -> None:
        raise NotImplementedError

    def run_many(self, sql: str, params: Iterable[Sequence[Sql]]) -> None:
        raise NotImplementedError

    def changed(self) -> int:
        """How many rows the last statement changed."""
        raise NotImplementedError

    def insert(self, table: str, row: Mapping[str, Sql], end: str = "") -> list[Row]:
        """Insert a row; what `end` returns. See `replacing` for an `end` that replaces the row of the same key."""
        return self.rows(_insertion(table, tuple(row), end), tuple(row.values()))

    def insert_many(self, table: str, columns: Sequence[str], rows: Iterable[Sequence[Sql]], end: str = "") -> None:
        self.run_many(_insertion(table, tuple(columns), end), rows)

    def copy(self, table: str, columns: Sequence[str], rows: Sequence[Sequence[Sql]]) -> None:
        """Insert many new rows in the engine's fastest way."""
        self.insert_many(table, columns, rows)

    def update(self, table: str, changes: Mapping[str, Sql | Computed], where: str, params: Sequence[Sql] = ()) -> int:
        """Change the rows that meet a condition; how many there were."""
        spelled = tuple((name, one.sql if isinstance(one, Computed) else "?") for name, one in changes.items())
        given = [value for one in changes.values() for value in (one.values if isinstance(one, Computed) else (one,))]
        self.run(_change(table, spelled, where), (*given, *params))
        return self.changed()

    def update_many(self, table: str, columns: Sequence[str], where: str, rows: Iterable[Sequence[Sql]]) -> None:
        """Change columns of rows; each item has their values and the parameters of the condition."""
        self.run_many(_change(table, tuple((name, "?") for name in columns), where), rows)


def replacing(table: str, *columns: str) -> str:
    """The end of an insertion that changes these columns where the key exists already; without any, it changes none."""
    if not columns:
        return "ON CONFLICT DO NOTHING"
    changes = ", ".join(f"{name} = excluded.{name}" for name in columns)
    return f"ON CONFLICT ({', '.join(TABLES[table].key)}) DO UPDATE SET {changes}"


@lru_cache(maxsize=1_024)
def _insertion(table: str, columns: tuple[str, ...], end: str) -> str:
    _check_declared(table, columns, end)
    return f"INSERT INTO {table} ({', '.join(columns)}) VALUES ({marks(len(columns))}) {end}".rstrip()


@lru_cache(maxsize=1_024)
def _change(table: str, changes: tuple[tuple[str, str], ...], where: str) -> str:
    _check_declared(table, [name for name, _ in changes])
    return f"UPDATE {table} SET {', '.join(f'{name} = {value}' for name, value in changes)} WHERE {where}"


def _check_declared(table: str, columns: Sequence[str], end: str = "") -> None:
    unknown = set(columns) - {column.name for column in TABLES[table].columns}
    if unknown or "?" in end:
        raise ValueError(f"{table} has no {', '.join(sorted(unknown)) or 'values in ' + end}")


Clean = Callable[[str], str]
# The function that cleans texts for a column of a table; None if they are stored as they are.
Cleaner = Callable[[str, str], Clean | None]
_WRITES = re.compile(r"\b(?:INSERT|UPDATE|MERGE|REPLACE\s+INTO)\b", re.IGNORECASE)
_WORD = re.compile(r"\w+")
# Tables with texts from outside.
_SCREENED = frozenset(
    name for name, table in TABLES.items() if any(one.origin in ("prose", "name", "found") for one in table.columns)
)


class ScreenedSession(Session):
    """A transaction in which every text is cleaned as the declaration of its column asks."""

    def __init__(self, session: Session, cleaner: Cleaner) -> None:
        self._session = session
        self.bounds = session.bounds
        self._cleaner = cleaner

    @property
    def as_is(self) -> Session:
        return self._session

    def rows(self, sql: str, params: Sequence[Sql] = ()) -> list[Row]:
        _refuse_texts(sql, params)
        return self._session.rows(sql, params)

    def run(self, sql: str, params: Sequence[Sql] = ()) -> None:
        _refuse_texts(sql, params)
        self._session.run(sql, params)

    def run_many(self, sql: str, params: Iterable[Sequence[Sql]]) -> None:
        _refuse_texts(sql, params)
        self._session.run_many(sql, params)

    def changed(self) -> int:
        return self._session.changed()

    def insert(self, table: str, row: Mapping[str, Sql], end: str = "") -> list[Row]:
        (values,) = self._cleaned(table, tuple(row), [tuple(row.values())])
        return self._session.insert(table, dict(zip(row, values, strict=True)), end)

    def insert_many(self, table: str, columns: Sequence[str], rows: Iterable[Sequence[Sql]], end: str = "") -> None:
        self._session.insert_many(table, columns, self._cleaned(table, columns, rows), end)

    def copy(self, table: str, columns: Sequence[str], rows: Sequence[Sequence[Sql]]) -> None:
        self._session.copy(table, columns, list(self._cleaned(table, columns, rows)))

    def update(self, table: str, changes: Mapping[str, Sql | Computed], where: str, params: Sequence[Sql] = ()) -> int:
        cleaned: Changes = {}
        for name, one in changes.items():
            given = one.values if isinstance(one, Computed) else (one,)
            values = [self._cleaned(table, (name,), [(value,)])[0][0] for value in given]
            cleaned[name] = Computed(one.sql, tuple(values)) if isinstance(one, Computed) else values[0]
        return self._session.update(table, cleaned, where, params)

    def update_many(self, table: str, columns: Sequence[str], where: str, rows: Iterable[Sequence[Sql]]) -> None:
        self._session.update_many(table, columns, where, self._cleaned(table, columns, rows))

    def _cleaned(self, table: str, columns: Sequence[str], rows: Iterable[Sequence[Sql]]) -> list[Sequence[Sql]]:
        """Rows that begin with the values of these columns."""
        plan = _plan(self._cleaner, table, tuple(columns))
        return [_clean_row(row, plan) for row in rows]


@lru_cache(maxsize=1_024)
def _plan(cleaner: Cleaner, table: str, columns: tuple[str, ...]) -> tuple[tuple[int, Clean], ...]:
    """The places of the values that are cleaned, each with what cleans it."""
    return tuple((place, clean) for place, name in enumerate(columns) if (clean := cleaner(table, name)))


def _clean_row(row: Sequence[Sql], plan: Sequence[tuple[int, Clean]]) -> Sequence[Sql]:
    if not plan:
        return row
    cleaned = list(row)
    for place, clean in plan:
        if isinstance(text := cleaned[place], str) and text:
            # A plain str: drivers look at the exact type.
            cleaned[place] = str(clean(text))
    return cleaned


def _refuse_texts(sql: str, params: object) -> None:
    if params and _writes_texts(sql):
        raise ValueError(f"texts are written by insert and update, which screen them, not by: {sql}")


@lru_cache(maxsize=2_048)
def _writes_texts(sql: str) -> bool:
    """Whether a statement may write a table with texts from outside: it names one and does more than read or remove."""
    return bool(_WRITES.search(sql)) and not _SCREENED.isdisjoint(word.lower() for word in _WORD.findall(sql))


class Database(Protocol):
    """An engine with its connections."""

    name: str
    # None if the engine keeps no vector index of its own.
    vector_index: VectorIndex | None
    cleaner: Cleaner | None
    # Whether rows are on several servers, one of which may be down while the others work.
    distributed: bool

    @property
    def era(self) -> int:
        """Grows when writes that were acknowledged may have been lost: what was cached before is dropped then."""

    @property
    def kept_spaces(self) -> KeptSpaces | None:
        """The files that spare a fresh process the first load of a space; None if there are none."""

    def read(self, *, behind: bool = False) -> AbstractContextManager[Session]:
        """A transaction that reads, all of it as of one moment.

        One that may be `behind` can miss what other processes wrote in the last moments, never what this one did.
        """

    def write(self, *spaces: str, derived: bool = False) -> AbstractContextManager[Session]:
        """A transaction that writes rows of these spaces; without any, of the whole store, when nobody else writes.

        Writers of one space take turns, from the beginning of the transaction to its end: what it reads of its spaces
        stays true. Rows without a space belong to the whole store. What is `derived` can be made again, and need not be
        on disk when this returns.
        """

    def has_table(self, session: Session, name: str) -> bool: ...

    def new_numbers(self, session: Session, spaces: Sequence[str]) -> list[int]:
        """Ascending numbers for new records, one for each of the spaces."""

    def index_texts(self, session: Session, entries: Sequence[tuple[str, int, str]]) -> None:
        """Add new records to the text index: space, number, words."""

    def index_text(self, session: Session, space: str, num: int, words: str) -> None:
        """Set the words of a record in the text index."""

    def unindex_text(self, session: Session, space: str, num: int) -> None: ...

    def text_matches(
        self,
        session: Session,
        space: str,
        word: str,
        space_words: Sequence[str],
        limit: int,
        above: int = 0,
        below: int = 0,
    ) -> list[int]:
        """The newest records of a space that contain a word, with a number above one and, if given, below another.

        An engine whose index knows no spaces also returns records of other spaces, unless `space_words` are given.
        """

    def numbers(self, session: Session, sql: str, params: Sequence[Sql]) -> NDArray[np.int64]:
        """The numbers that a statement lists in its column `num`, which may be very many."""

    def text_condition(self, session: Session, spaces: Sequence[str], words: Sequence[str]) -> tuple[str, list[Sql]]:
        """A condition on `m.num`: the record, in one of the spaces, contains all the words."""

    def compact(self) -> None:
        """Return disk space after large deletions."""

    def check(self) -> list[str]:
        """The faults that the engine finds in its own files."""

    def size_bytes(self) -> int: ...

    def ping(self, seconds: float, /) -> None:
        """Raise an error if the engine cannot be reached in that time; does not wait for a free connection."""

    def leads(self, name: str, /) -> bool:
        """Whether this process is the only one to do the named work for the store.

        It stays so until it closes the store, loses its connection or dies.
        """

    def vitals(self) -> Vitals: ...

    def replica_lag(self) -> int | None:
        """How many bytes of its log a replica has not replayed; None if there is none, or it does not answer."""

    def server_load(self) -> ServerLoad | None:
        """What the server is busy with; None if the engine has none, or it does not answer."""

    def wait_for_change(self, seconds: float, /) -> bool | None:
        """Wait until memories or prompts may have changed, at most that long; None if the engine cannot notify."""

    def close(self) -> None: ...


def marks(count: int) -> str:
    """Parameter marks for a list: `?,?,?`."""
    return ",".join("?" * count)


def padded(nums: Sequence[int], step: int = 32) -> list[int]:
    """Numbers filled up with -1, which no record has, so that few statement lengths are ever prepared."""
    return [*nums, *[-1] * (-len(nums) % step)]


def batched(items: Iterable[_T], size: int = 500) -> Iterator[list[_T]]:
    """Lists of at most `size` items, for statements with a list of parameters."""
    everything = list(items)
    return (everything[low : low + size] for low in range(0, len(everything), size))


def rows_among(
    session: Session,
    sql: str,
    params: Sequence[Sql],
    values: Iterable[Sql],
    *,
    size: int = 500,
    fill: Callable[[list[Any]], list[Any]] = list,
) -> Iterator[Row]:
    """The rows of a statement that ends with a list of values, in batches; `{}` stands for the marks of the list.

    `fill` makes batches of few different lengths, so that few statements are ever prepared.
    """
    for batch in batched(values, size):
        given = fill(batch)
        yield from session.rows(sql.format(marks(len(given))), (*params, *given))


def column(session: Session, sql: str, params: Sequence[Sql] = ()) -> list[Any]:
    """The first column of all rows."""
    return [row[0] for row in session.rows(sql, params)]


def first(session: Session, sql: str, params: Sequence[Sql] = ()) -> Row | None:
    """The first row, if there is one."""
    rows = session.rows(sql, params)
    return rows[0] if rows else None


def retry_once(work: Callable[[], _T], *, keyed: bool = False) -> _T:
    """Run one transaction, and once more if its connection was lost.

    Work that may have been written is repeated only if it is `keyed`, that is, if it finds what an earlier attempt
    wrote.
    """
    try:
        return work()
    except StoreUnavailable as lost:
        if lost.perhaps_written and not keyed:
            raise
    # The next transaction waits for the server; see the pool.
    return work()


# Each distributed table with the column that decides where a row is, and the small tables on the coordinator.
DISTRIBUTED: Mapping[str, str] = {name: table.space for name, table in TABLES.items() if table.space}
COORDINATOR = tuple(name for name, table in TABLES.items() if not table.space)

# Statements that go to every server, and why.
FAN_OUTS: Mapping[str, str] = {
    "find": "A user gives an id or its beginning; the space is not known yet.",
    "spaces of": "Uses are recorded by id and written later in the background; this finds the space of each record.",
    "forget uses": "Any project may have used a record; a purge leaves no trace in any of them.",
    "all spaces": "A reindex and a move to another engine visit every space.",
    "idle": "Compression takes the records that are idle longest in any space; it runs in the background.",
    "unread": "The graph catches up with the oldest records of any space; it runs in the background.",
    "how many pending": "A capture of few notes reads some of them itself where too many are pending.",
    "pending": "New records of any space are read for the graph in their order; it runs in the background.",
    "unchecked": "The check for personal data takes the oldest records of any space; it runs in the background.",
    "all changes": "A page and a subscription watch every space that their caller may read.",
    "newest number": "A search compares the size of the store with that of its own space.",
}


def everywhere(name: str, sql: str) -> str:
    """A statement that goes to every server, marked with its name in `FAN_OUTS`."""
    if name not in FAN_OUTS:
        raise KeyError(name)
    return f"/* everywhere: {name} */ {sql}"


def in_spaces(column: str, spaces: Sequence[str]) -> str:
    """A condition on the column that decides where a row is; its parameters are the spaces.

    A single space is compared with `=`: only then do planners see that a table joined by its space is on the same
    server.
    """
    return f"{column} = ?" if len(spaces) == 1 else f"{column} IN ({marks(len(spaces))})"


def by_space(rows: Iterable[tuple[str, int]]) -> dict[str, list[int]]:
    """Record numbers by space."""
    found: dict[str, list[int]] = {}
    for space, num in rows:
        found.setdefault(space, []).append(num)
    return found
