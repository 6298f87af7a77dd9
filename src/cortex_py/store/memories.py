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
from .packing import Dictionaries, unpack
from .rows import MEMORY_COLUMNS, PACKED_COLUMNS, Prepared, memory_from, memory_values, qualified
from .where import Where

__all__ = ["MemoryTable"]

_T = TypeVar("_T")

_BATCH = 500
_COLUMNS = qualified((*MEMORY_COLUMNS, *PACKED_COLUMNS), "m")
_CONTENT = MEMORY_COLUMNS.index("content")
_PACKED = len(MEMORY_COLUMNS)
_EXTRA_COLUMNS = ("space", "seq", "digest", "idempotency_key", "length", "flags", "author")
_INSERT = (
    f"INSERT INTO memory ({', '.join((*MEMORY_COLUMNS, *_EXTRA_COLUMNS))}) "
    f"VALUES ({marks(len(MEMORY_COLUMNS) + len(_EXTRA_COLUMNS))}) RETURNING num"
)
_UPDATE = (
    f"UPDATE memory SET {', '.join(f'{column} = ?' for column in (*MEMORY_COLUMNS, *_EXTRA_COLUMNS[1:]))}, "
    "packed = NULL, packed_with = NULL WHERE space = ? AND num = ?"
)
# What a purged record took the place of points nowhere any more; it stays superseded until somebody decides.
_FORGET_REPLACING = "UPDATE memory SET superseded_by = NULL WHERE space = ? AND superseded_by = ?"
_FORGET_USES = (
    "DELETE FROM recalled WHERE memory_id IN {ids}",
    "DELETE FROM verification WHERE memory_id IN {ids}",
    "DELETE FROM reference WHERE memory_id IN {ids}",
    "DELETE FROM referred WHERE memory_id IN {ids}",
    "DELETE FROM referred_together WHERE memory_id IN {ids}",
    "DELETE FROM referred_together WHERE other_id IN {ids}",
    "DELETE FROM suggestion WHERE memory_id IN {ids}",
    "DELETE FROM trust WHERE kind = 'memory' AND substr(key, 1, 40) IN {ids}",
    "DELETE FROM consolidation_part WHERE memory_id IN {ids}",
    "DELETE FROM consolidation_part WHERE consolidation_id IN (SELECT id FROM consolidation WHERE result_id IN {ids})",
    "DELETE FROM consolidation WHERE result_id IN {ids}",
)
# A name that only purged records held goes with them; what somebody made, described or related stays.
_FORGET_NAME = (
    "DELETE FROM entity WHERE space = ? AND id = ? AND given = 0 AND properties = '{}' "
    "AND NOT EXISTS (SELECT 1 FROM mention n WHERE n.space = entity.space AND n.entity_id = entity.id) "
    + " ".join(
        f"AND NOT EXISTS (SELECT 1 FROM relationship r WHERE r.space = entity.space AND r.{end} = entity.id)"
        for end in ("source_id", "target_id")
    )
)
_NO_ENTITY = "NOT EXISTS (SELECT 1 FROM entity e WHERE e.space = {0}.space AND e.id = {0}.{1})"
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
            # The spaces are checked here: named in the statement, they would tempt the planner away
            # from the key and into an index over the whole space.
            rows = session.rows(f"SELECT {_COLUMNS}, m.num FROM memory m WHERE m.num IN ({marks(len(batch))})", batch)
            found.update((row[-1], self._memory(session, row)) for row in rows if row[-2] in spaces)
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
                f"WITH asked AS MATERIALIZED (SELECT num FROM memory WHERE id IN ({marks(len(batch))})) "
                f"SELECT {columns} FROM asked CROSS JOIN memory m WHERE m.num = asked.num AND {where.sql}",
                (*batch, *where.params),
            )

    def terms(self, session: Session, num: int) -> list[bytes]:
        return [row[0] for row in session.rows("SELECT terms FROM chunk WHERE num = ? ORDER BY n", (num,))]

    def find(self, session: Session, prefix: str, limit: int = 6) -> list[tuple[int, str, Memory]]:
        """Records whose id begins with the prefix, as (number, space, record)."""
        rows = session.rows(
            f"SELECT {_COLUMNS}, m.num, m.space FROM memory m WHERE m.id >= ? AND m.id < ? ORDER BY m.id LIMIT ?",
            (prefix, prefix + "g", limit),
        )
        return [(row[-2], row[-1], self._memory(session, row)) for row in rows]

    def located(self, session: Session, nums: Sequence[int]) -> list[tuple[int, str, str | None, Memory]]:
        """Records by number, as (number, space, idempotency key, record)."""
        rows = [
            row
            for batch in _batches(nums)
            for row in session.rows(
                f"SELECT {_COLUMNS}, m.num, m.space, m.idempotency_key FROM memory m "
                f"WHERE m.num IN ({marks(len(batch))}) ORDER BY m.num",
                batch,
            )
        ]
        return [(row[-3], row[-2], row[-1], self._memory(session, row)) for row in rows]

    def all_numbers(self, session: Session, space: str | None = None) -> list[int]:
        """Numbers of all records, or of those in one space."""
        where, params = ("WHERE space = ?", (space,)) if space is not None else ("", ())
        return [row[0] for row in session.rows(f"SELECT num FROM memory {where} ORDER BY num", params)]

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
            rows = session.rows(
                f"SELECT digest, min(id) FROM memory WHERE space = ? AND digest IN ({marks(len(batch))}) "
                f"AND status IN ({marks(len(LIVE_STATUSES))}) GROUP BY digest",
                (space, *batch, *LIVE_STATUSES),
            )
            found.update((row[0], row[1]) for row in rows)
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

    def replace(self, session: Session, num: int, record: Prepared, seq: int) -> None:
        """Write a new state of a record in place of the old one, index entries included."""
        session.run(_UPDATE, (*_row_values(record, seq, with_space=False), record.space, num))
        self._drop_parts(session, num)
        self._write_parts(session, num, record)

    def reindex(self, session: Session, num: int, record: Prepared, seq: int) -> None:
        """Write the index entries of a record anew; the record itself stays as it is."""
        session.run(
            "UPDATE memory SET seq = ?, length = ?, flags = ?, author = ?, digest = ? WHERE space = ? AND num = ?",
            (seq, record.length, record.flags, record.author, record.digest, record.space, num),
        )
        self._drop_parts(session, num)
        self._write_parts(session, num, record)

    def move(self, session: Session, num: int, memory: Memory) -> None:
        """The same part of a file, at other lines or under another symbol or path."""
        session.run(
            "UPDATE memory SET path = ?, symbol = ?, first_line = ?, last_line = ?, source = ? WHERE num = ?",
            (memory.path, memory.symbol, memory.first_line, memory.last_line, memory.source, num),
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

    def bury(self, session: Session, nums: Sequence[int], at: int, seq: int) -> None:
        """Soft delete: the record leaves the text index and remembers the status it had."""
        for batch in _batches(nums):
            session.run(
                "UPDATE memory SET prior_status = status, status = 'tombstoned', tombstoned_at = ?, "
                f"updated_at = ?, seq = ? WHERE status <> 'tombstoned' AND num IN ({marks(len(batch))})",
                (at, at, seq, *batch),
            )
        for num in nums:
            self._database.unindex_text(session, num)

    def raise_up(self, session: Session, num: int, words: str, at: int, seq: int) -> None:
        """Undo a soft delete, text index included."""
        session.run(
            "UPDATE memory SET status = COALESCE(prior_status, 'active'), prior_status = NULL, "
            "tombstoned_at = NULL, updated_at = ?, seq = ? WHERE num = ?",
            (at, seq, num),
        )
        self._database.index_text(session, num, words)

    def purge(self, session: Session, nums: Sequence[int], seq: int, *, names: bool = True) -> None:
        """Remove records and every trace of them; what stays is that a number is gone.

        `names` False leaves the names that only they held, for a caller who decides about those too.
        """
        for batch in _batches(nums):
            inside = f"({marks(len(batch))})"
            session.run(
                f"INSERT INTO purged (space, num, seq) SELECT space, num, ? FROM memory WHERE num IN {inside}",
                (seq, *batch),
            )
            session.run(
                "DELETE FROM history WHERE EXISTS (SELECT 1 FROM memory m WHERE m.space = history.space "
                f"AND m.id = history.id AND m.num IN {inside})",
                batch,
            )
            session.run_many(
                _FORGET_REPLACING, session.rows(f"SELECT space, id FROM memory WHERE num IN {inside}", batch)
            )
            for statement in _FORGET_USES:
                session.run(statement.format(ids=f"(SELECT id FROM memory WHERE num IN {inside})"), batch)
            named = session.rows(f"SELECT DISTINCT space, entity_id FROM mention WHERE num IN {inside}", batch)
            for table in ("tag", "chunk", "mention", "relationship", "entity_history", "memory"):
                session.run(f"DELETE FROM {table} WHERE num IN {inside}", batch)
            if not names:
                continue
            session.run_many(_FORGET_NAME, named)
            for table, column in (("entity_alias", "entity_id"), ("entity_history", "into_id")):
                session.run_many(
                    f"DELETE FROM {table} WHERE space = ? AND {column} = ? AND {_NO_ENTITY.format(table, column)}",
                    named,
                )
        for num in nums:
            self._database.unindex_text(session, num)

    def _write_parts(self, session: Session, num: int, record: Prepared) -> None:
        tags = {tag.casefold() for tag in record.memory.tags}
        session.run_many(
            "INSERT INTO tag (space, tag, num) VALUES (?, ?, ?)", [(record.space, tag, num) for tag in sorted(tags)]
        )
        session.run_many(
            "INSERT INTO chunk (num, n, space, first, past, by_assistant, terms, vector) "
            "VALUES (?, ?, ?, ?, ?, ?, ?, ?)",
            [
                (num, n, record.space, chunk.first, chunk.past, int(chunk.by_assistant), chunk.terms, chunk.vector)
                for n, chunk in enumerate(record.chunks)
            ],
        )
        if record.memory.status != "tombstoned":
            self._database.index_text(session, num, record.words)

    def _drop_parts(self, session: Session, num: int) -> None:
        session.run("DELETE FROM tag WHERE num = ?", (num,))
        session.run("DELETE FROM chunk WHERE num = ?", (num,))


def _row_values(record: Prepared, seq: int, *, with_space: bool = True) -> tuple[Sql, ...]:
    own = (seq, record.digest, record.idempotency_key, record.length, record.flags, record.author)
    return (*memory_values(record.memory), *((record.space,) if with_space else ()), *own)


def _batches(items: Iterable[_T]) -> Iterable[list[_T]]:
    everything = list(items)
    return (everything[i : i + _BATCH] for i in range(0, len(everything), _BATCH))
