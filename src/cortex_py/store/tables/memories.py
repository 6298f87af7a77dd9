"""Records in the store: written, read, changed and removed together with their index entries.

Every method takes the session it runs in; the caller decides what is one transaction.
"""

from __future__ import annotations

import json
from collections.abc import Iterable, Iterator, Sequence
from typing import TypeVar

from ..clock import from_micros
from ..records import LIVE_STATUSES, Memory, Version
from .database import EVERY_ROW, Database, Row, Session, Sql, marks, padded
from .nearest import VectorRow
from .packing import Dictionaries, unpack
from .placement import everywhere, in_spaces
from .purging import purge_rows
from .rows import MEMORY_COLUMNS, PACKED_COLUMNS, Prepared, memory_from, memory_values, qualified
from .where import Where

__all__ = ["MemoryTable"]

_T = TypeVar("_T")

_BATCH = 500
_COLUMNS = qualified((*MEMORY_COLUMNS, *PACKED_COLUMNS), "m")
_CONTENT = MEMORY_COLUMNS.index("content")
_PACKED = len(MEMORY_COLUMNS)
_EXTRA_COLUMNS = ("space", "seq", "digest", "idempotency_key", "length", "flags", "author")
_CHUNK_COLUMNS = ("num", "n", "space", "first", "past", "by_assistant", "terms", "vector")
_INSERT = (
    f"INSERT INTO memory ({', '.join((*MEMORY_COLUMNS, *_EXTRA_COLUMNS))}) "
    f"VALUES ({marks(len(MEMORY_COLUMNS) + len(_EXTRA_COLUMNS))}) RETURNING num"
)
_UPDATE = (
    f"UPDATE memory SET {', '.join(f'{column} = ?' for column in (*MEMORY_COLUMNS, *_EXTRA_COLUMNS[1:]))}, "
    "packed = NULL, packed_with = NULL WHERE space = ? AND num = ?"
)
_NEWEST_FIRST = "ORDER BY m.created_at DESC, m.id DESC"


class MemoryTable:
    def __init__(self, database: Database, dictionaries: Dictionaries) -> None:
        self._database = database
        self._dictionaries = dictionaries

    # -- reading ---------------------------------------------------------------------------------

    def fetch(self, session: Session, nums: Sequence[int], spaces: Sequence[str]) -> dict[int, Memory]:
        """Records by number, only those of the given spaces."""
        found: dict[int, Memory] = {}
        for batch in map(padded, _batches(nums)):
            # A plain space would tempt SQLite away from the number and into an index over the whole space.
            rows = session.rows(
                f"SELECT {_COLUMNS}, m.num FROM memory m "
                f"WHERE +m.space IN ({marks(len(spaces))}) AND m.num IN ({marks(len(batch))})",
                (*spaces, *batch),
            )
            found.update((row[-1], self._memory(session, row)) for row in rows)
        return found

    def named(self, session: Session, ids: Sequence[str], where: Where) -> list[tuple[int, Memory]]:
        """Records by whole id, as far as a condition lets them through, in the order of the ids."""
        rows = self._of_ids(session, f"{_COLUMNS}, m.num", ids, where)
        found = {row[0]: (row[-1], self._memory(session, row)) for row in rows}
        return [found[one] for one in dict.fromkeys(ids) if one in found]

    def numbers(self, session: Session, ids: Sequence[str], where: Where) -> dict[str, int]:
        """The numbers of records by whole id, as far as a condition lets them through."""
        return {row[0]: row[1] for row in self._of_ids(session, "m.id, m.num", ids, where)}

    def _of_ids(self, session: Session, columns: str, ids: Sequence[str], where: Where) -> Iterator[Row]:
        for batch in _batches(list(dict.fromkeys(ids))):
            # The ids come first, by an order of tables that the planner keeps: it would rather read the whole space.
            yield from session.rows(
                f"WITH asked AS MATERIALIZED (SELECT space, num FROM memory WHERE +space IN "
                f"({marks(len(where.spaces))}) AND id IN ({marks(len(batch))})) SELECT {columns} "
                f"FROM asked CROSS JOIN memory m WHERE m.num = asked.num AND +m.space = asked.space AND {where.sql}",
                (*where.spaces, *batch, *where.params),
            )

    def terms(self, session: Session, space: str, num: int) -> list[bytes]:
        rows = session.rows("SELECT terms FROM chunk WHERE space = ? AND num = ? ORDER BY n", (space, num))
        return [row[0] for row in rows]

    def find(self, session: Session, prefix: str, limit: int = 6) -> list[tuple[int, str, Memory]]:
        """Records of any space whose id begins with the prefix, as (number, space, record)."""
        statement = (
            f"SELECT {_COLUMNS}, m.num, m.space FROM memory m WHERE m.id >= ? AND m.id < ? ORDER BY m.id LIMIT ?"
        )
        rows = session.rows(everywhere("find", statement), (prefix, prefix + "g", limit))
        return [(row[-2], row[-1], self._memory(session, row)) for row in rows]

    def get(self, session: Session, space: str, memory_id: str) -> Memory | None:
        """The record of a space with this id."""
        rows = session.rows(f"SELECT {_COLUMNS} FROM memory m WHERE m.space = ? AND m.id = ?", (space, memory_id))
        return self._memory(session, rows[0]) if rows else None

    def seek(self, session: Session, spaces: Sequence[str], memory_id: str) -> tuple[int, str] | None:
        """Number and space of a record that lies in one of these spaces most likely, and otherwise in another."""
        rows = session.rows(
            f"SELECT num, space FROM memory WHERE {in_spaces('space', spaces)} AND id = ?", (*spaces, memory_id)
        )
        if rows:
            return rows[0][0], rows[0][1]
        return next(((num, space) for num, space, _ in self.find(session, memory_id, 1)), None)

    def placed(self, session: Session, ids: Iterable[str]) -> dict[str, str]:
        """In which space each of the records lies, deleted or not; those that are gone are missing."""
        found: dict[str, str] = {}
        for batch in _batches(sorted(set(ids))):
            statement = f"SELECT id, space FROM memory WHERE id IN ({marks(len(batch))})"
            found.update((row[0], row[1]) for row in session.rows(everywhere("placed", statement), batch))
        return found

    def located(self, session: Session, space: str, nums: Sequence[int]) -> list[tuple[int, str, str | None, Memory]]:
        """Records of a space by number, as (number, space, idempotency key, record)."""
        rows = [
            row
            for batch in _batches(nums)
            for row in session.rows(
                f"SELECT {_COLUMNS}, m.num, m.space, m.idempotency_key FROM memory m "
                f"WHERE +m.space = ? AND m.num IN ({marks(len(batch))}) ORDER BY m.num",
                (space, *batch),
            )
        ]
        return [(row[-3], row[-2], row[-1], self._memory(session, row)) for row in rows]

    def spaces(self, session: Session) -> list[str]:
        """All spaces that hold records."""
        rows = session.rows(everywhere("all spaces", "SELECT DISTINCT space FROM memory ORDER BY space"))
        return [row[0] for row in rows]

    def all_numbers(self, session: Session, space: str) -> list[int]:
        """Numbers of all records of a space."""
        return [row[0] for row in session.rows("SELECT num FROM memory WHERE space = ? ORDER BY num", (space,))]

    def states(self, session: Session, space: str) -> set[tuple[str, int]]:
        """Id and last change of every record of a space."""
        return {(row[0], row[1]) for row in session.rows("SELECT id, seq FROM memory WHERE space = ?", (space,))}

    def without_vectors(self, session: Session, space: str, limit: int) -> list[int]:
        """Numbers of records of which a part has no vector."""
        rows = session.rows(
            "SELECT DISTINCT num FROM chunk WHERE space = ? AND vector IS NULL ORDER BY num LIMIT ?", (space, limit)
        )
        return [row[0] for row in rows]

    def listing(self, session: Session, where: Where, limit: int, offset: int) -> list[Memory]:
        rows = session.rows(
            f"SELECT {_COLUMNS} FROM memory m WHERE {where.sql} {_NEWEST_FIRST} LIMIT ? OFFSET ?",
            (*where.params, limit, offset),
        )
        return [self._memory(session, row) for row in rows]

    def of_branch(
        self, session: Session, project_id: str, branch_id: str, newest: int = -1
    ) -> list[tuple[int, int, Memory]]:
        """The live records of a line of work in their order, or the newest of them, as (number, change, record).

        Less than none means all.
        """
        found = self._numbered(
            session,
            f"m.space = ? AND m.branch_id = ? AND m.status IN ({marks(len(LIVE_STATUSES))}) "
            "ORDER BY m.created_at DESC, m.num DESC LIMIT ?",
            (project_id, branch_id, *LIVE_STATUSES, newest if newest >= 0 else EVERY_ROW),
        )
        return found[::-1]

    def of_branch_since(
        self, session: Session, project_id: str, branch_id: str, seq: int
    ) -> tuple[int, list[tuple[int, int, Memory]]]:
        """How many live records of a branch are as they were at a change, and the others as `of_branch` gives them.

        A record that was taken away shows by the count.
        """
        live = f"m.space = ? AND m.branch_id = ? AND m.status IN ({marks(len(LIVE_STATUSES))})"
        params: tuple[Sql, ...] = (project_id, branch_id, *LIVE_STATUSES, seq)
        (count,) = session.rows(f"SELECT count(*) FROM memory m WHERE {live} AND m.seq <= ?", params)[0]
        return count, self._numbered(session, f"{live} AND m.seq > ? ORDER BY m.created_at, m.num", params)

    def newest(
        self, session: Session, where: Where, limit: int, branch_id: str | None = None
    ) -> list[tuple[int, Memory]]:
        """The newest records of a scope, perhaps of one line of work, oldest first, with their numbers."""
        condition, params = f"{where.sql} {_NEWEST_FIRST} LIMIT ?", (*where.params, limit)
        if branch_id is not None:
            condition, params = f"m.branch_id = ? AND {condition}", (branch_id, *params)
        return [(num, memory) for num, _, memory in reversed(self._numbered(session, condition, params))]

    def of_path(self, session: Session, space: str, path: str) -> list[tuple[int, int, Memory]]:
        """The records about a file, in the order of its lines, as (number, change, record)."""
        return self._numbered(
            session, "m.space = ? AND m.path = ? ORDER BY m.first_line NULLS FIRST, m.num", (space, path)
        )

    def _numbered(self, session: Session, condition: str, params: Sequence[Sql]) -> list[tuple[int, int, Memory]]:
        rows = session.rows(f"SELECT {_COLUMNS}, m.num, m.seq FROM memory m WHERE {condition}", params)
        return [(row[-2], row[-1], self._memory(session, row)) for row in rows]

    def count(self, session: Session, where: Where, branch_id: str | None = None) -> int:
        condition, params = where.sql, where.params
        if branch_id is not None:
            condition, params = f"m.branch_id = ? AND {condition}", (branch_id, *params)
        return int(session.rows(f"SELECT count(*) FROM memory m WHERE {condition}", params)[0][0])

    def twins(self, session: Session, space: str, digests: Sequence[bytes]) -> dict[bytes, str]:
        """The oldest live record of each digest: who already said exactly this."""
        found: dict[bytes, str] = {}
        for batch in _batches(digests):
            # One by one, and by nothing but the digest: an engine that has not counted its rows yet takes any other
            # condition for more telling, and reads the whole space.
            live = f"CASE WHEN m.status IN ({marks(len(LIVE_STATUSES))}) THEN m.id END"
            rows = session.rows(
                f"WITH asked (digest) AS (VALUES {', '.join(['(?)'] * len(batch))}) SELECT digest, "
                f"(SELECT min({live}) FROM memory m WHERE m.space = ? AND m.digest = asked.digest) FROM asked",
                (*batch, *LIVE_STATUSES, space),
            )
            found.update((digest, first) for digest, first in rows if first is not None)
        return found

    def by_key(self, session: Session, space: str, keys: Sequence[str]) -> dict[str, Memory]:
        found: dict[str, Memory] = {}
        for batch in _batches(keys):
            rows = session.rows(
                f"SELECT {_COLUMNS}, m.idempotency_key FROM memory m "
                f"WHERE m.space = ? AND m.idempotency_key IN ({marks(len(batch))})",
                (space, *batch),
            )
            found.update((row[-1], self._memory(session, row)) for row in rows)
        return found

    def history(self, session: Session, space: str, memory_id: str) -> list[Version]:
        rows = session.rows(
            "SELECT version, content, namespace, tags, source, recorded_at, operation FROM history "
            "WHERE space = ? AND id = ? ORDER BY version",
            (space, memory_id),
        )
        return [
            Version(version, content, namespace, tuple(json.loads(tags)), source, from_micros(at), operation, memory_id)
            for version, content, namespace, tags, source, at, operation in rows
        ]

    def _memory(self, session: Session, row: Row) -> Memory:
        packed, packed_with, space = row[_PACKED : _PACKED + 3]
        if packed is None:
            return memory_from(row, row[_CONTENT], compressed=False)
        content = unpack(packed, self._dictionaries.get(session, space, packed_with))
        return memory_from(row, content, compressed=True)

    # -- writing ---------------------------------------------------------------------------------

    def next_seq(self, session: Session) -> int:
        """The number of this change. Bumped under the write lock, so it follows the order of commits."""
        return int(session.rows("UPDATE state SET seq = seq + 1 WHERE one = 1 RETURNING seq")[0][0])

    def insert(self, session: Session, record: Prepared, seq: int) -> int:
        num = int(session.rows(_INSERT, _row_values(record, seq))[0][0])
        self._write_parts(session, num, record)
        return num

    def insert_all(self, session: Session, records: Sequence[Prepared], seq: int) -> list[int]:
        """Many new records at once, in their order; their numbers."""
        nums = self._database.new_numbers(session, [record.space for record in records])
        columns = ("num", *MEMORY_COLUMNS, *_EXTRA_COLUMNS)
        numbered = list(zip(nums, records, strict=True))
        session.copy("memory", columns, [(num, *_row_values(record, seq)) for num, record in numbered])
        session.copy(
            "tag", ("space", "tag", "num"), [row for num, record in numbered for row in _tag_rows(num, record)]
        )
        session.copy("chunk", _CHUNK_COLUMNS, [row for num, record in numbered for row in _chunk_rows(num, record)])
        if self._database.nearest:
            self._database.nearest.add(session, [row for num, record in numbered for row in _vector_rows(num, record)])
        live = [(num, record) for num, record in numbered if record.memory.status != "tombstoned"]
        self._database.index_texts(session, [(record.space, num, record.words) for num, record in live])
        return nums

    def replace(self, session: Session, num: int, record: Prepared, seq: int) -> None:
        """Write a new state of a record in place of the old one, index entries included."""
        session.run(_UPDATE, (*_row_values(record, seq, with_space=False), record.space, num))
        self._drop_parts(session, record.space, num)
        self._write_parts(session, num, record)

    def reindex(self, session: Session, num: int, record: Prepared, seq: int) -> None:
        """Write the index entries of a record anew; the record itself stays as it is."""
        session.run(
            "UPDATE memory SET seq = ?, length = ?, flags = ?, author = ?, digest = ? WHERE space = ? AND num = ?",
            (seq, record.length, record.flags, record.author, record.digest, record.space, num),
        )
        self._drop_parts(session, record.space, num)
        self._write_parts(session, num, record)

    def move(self, session: Session, space: str, num: int, memory: Memory) -> None:
        """The same part of a file, at other lines or under another symbol or path."""
        session.run(
            "UPDATE memory SET path = ?, symbol = ?, first_line = ?, last_line = ?, source = ? "
            "WHERE space = ? AND num = ?",
            (memory.path, memory.symbol, memory.first_line, memory.last_line, memory.source, space, num),
        )

    def archive_version(self, session: Session, space: str, memory: Memory, operation: str, at: int) -> None:
        """Keep the present state of a record in its history, before it changes."""
        session.run(
            "INSERT INTO history (space, id, version, recorded_at, operation, namespace, tags, source, content) "
            "VALUES (?, ?, ?, ?, ?, ?, ?, ?, ?) ON CONFLICT DO NOTHING",
            (
                space,
                memory.id,
                memory.version,
                at,
                operation,
                memory.namespace,
                json.dumps(memory.tags, ensure_ascii=False),
                memory.source,
                memory.content,
            ),
        )

    def bury(self, session: Session, space: str, nums: Sequence[int], at: int, seq: int) -> None:
        """Soft delete: the records leave the text index and remember the status they had."""
        for batch in _batches(nums):
            session.run(
                "UPDATE memory SET prior_status = status, status = 'tombstoned', tombstoned_at = ?, "
                f"updated_at = ?, seq = ? WHERE status <> 'tombstoned' AND +space = ? AND num IN ({marks(len(batch))})",
                (at, at, seq, space, *batch),
            )
        for num in nums:
            self._database.unindex_text(session, space, num)

    def raise_up(self, session: Session, space: str, num: int, words: str, at: int, seq: int) -> None:
        """Undo a soft delete, text index included."""
        session.run(
            "UPDATE memory SET status = COALESCE(prior_status, 'active'), prior_status = NULL, "
            "tombstoned_at = NULL, updated_at = ?, seq = ? WHERE space = ? AND num = ?",
            (at, seq, space, num),
        )
        self._database.index_text(session, space, num, words)

    def purge(self, session: Session, space: str, nums: Sequence[int], seq: int, *, names: bool = True) -> None:
        """Remove records of a space and every trace of them; what stays is that a number is gone.

        `names` False leaves the names that only they held, for a caller who decides about those too.
        """
        for batch in _batches(nums):
            purge_rows(session, space, batch, seq, names=names)
        for num in nums:
            self._database.unindex_text(session, space, num)

    def _write_parts(self, session: Session, num: int, record: Prepared) -> None:
        session.run_many("INSERT INTO tag (space, tag, num) VALUES (?, ?, ?)", _tag_rows(num, record))
        session.run_many(
            f"INSERT INTO chunk ({', '.join(_CHUNK_COLUMNS)}) VALUES ({marks(len(_CHUNK_COLUMNS))})",
            _chunk_rows(num, record),
        )
        if self._database.nearest:
            self._database.nearest.add(session, _vector_rows(num, record))
        if record.memory.status != "tombstoned":
            self._database.index_text(session, record.space, num, record.words)

    def _drop_parts(self, session: Session, space: str, num: int) -> None:
        session.run("DELETE FROM tag WHERE +space = ? AND num = ?", (space, num))
        session.run("DELETE FROM chunk WHERE space = ? AND num = ?", (space, num))


def _row_values(record: Prepared, seq: int, *, with_space: bool = True) -> tuple[Sql, ...]:
    own = (seq, record.digest, record.idempotency_key, record.length, record.flags, record.author)
    return (*memory_values(record.memory), *((record.space,) if with_space else ()), *own)


def _tag_rows(num: int, record: Prepared) -> list[tuple[Sql, ...]]:
    return [(record.space, tag, num) for tag in sorted({tag.casefold() for tag in record.memory.tags})]


def _chunk_rows(num: int, record: Prepared) -> list[tuple[Sql, ...]]:
    return [
        (num, n, record.space, chunk.first, chunk.past, int(chunk.by_assistant), chunk.terms, chunk.vector)
        for n, chunk in enumerate(record.chunks)
    ]


def _vector_rows(num: int, record: Prepared) -> list[VectorRow]:
    return [(record.space, num, n, chunk.vector) for n, chunk in enumerate(record.chunks)]


def _batches(items: Iterable[_T]) -> Iterable[list[_T]]:
    everything = list(items)
    return (everything[i : i + _BATCH] for i in range(0, len(everything), _BATCH))
