"""Records: read, written and removed together with their index entries.

Every method takes the session it runs in; the caller decides what is one transaction.
"""

from __future__ import annotations

import json
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import replace
from typing import NamedTuple

from ...clock import from_micros
from ...records import LIVE_STATUSES, Memory, Status, Version
from ..database import (
    EVERY_ROW,
    Changes,
    Computed,
    Database,
    Row,
    Session,
    Sql,
    Values,
    batched,
    by_space,
    column,
    everywhere,
    in_spaces,
    marks,
    padded,
    replacing,
    rows_among,
)
from ..packing import Dictionaries, unpack
from ..rows import MEMORY_COLUMNS, PACKED_COLUMNS, IndexedRecord, memory_from, memory_values, qualified, to_sql
from ..search.filters import Where

__all__ = ["EmptyChunk", "MemoryTable", "purge_rows"]

_COLUMNS = qualified((*MEMORY_COLUMNS, *PACKED_COLUMNS), "m")
_CONTENT = MEMORY_COLUMNS.index("content")
_PACKED = len(MEMORY_COLUMNS)
_EXTRA_COLUMNS = ("space", "seq", "digest", "idempotency_key", "length", "flags", "author")
_TAG_COLUMNS = ("space", "tag", "num")
_CHUNK_COLUMNS = ("num", "n", "space", "first", "past", "by_assistant", "terms", "vector")
_WRITTEN = (*MEMORY_COLUMNS, *_EXTRA_COLUMNS)
_CHANGED = (*MEMORY_COLUMNS, *_EXTRA_COLUMNS[1:], "packed", "packed_with")
_NEXT = "ON CONFLICT (space) DO UPDATE SET seq = space_change.seq + 1 RETURNING seq"
# A record of a space.
_MINE = "space = ? AND num = ?"
_NEWEST_FIRST = "ORDER BY m.created_at DESC, m.id DESC"
# The live records of a line of work. Without the `+`, SQLite would read all live records of the space.
_OF_LINE = f"m.space = ? AND m.branch_id = ? AND +m.status IN ({marks(len(LIVE_STATUSES))})"
_REVIEWED: tuple[Status, ...] = ("active", "active")  # in place of the live ones
# What projects keep of the memories that they used; each condition stands for all places of the id.
_USES = (
    ("reference", "memory_id IN {ids}"),
    ("referred", "memory_id IN {ids}"),
    ("referred_together", "memory_id IN {ids}"),
    ("referred_together", "other_id IN {ids}"),
    ("suggestion", "memory_id IN {ids}"),
    ("trust", "kind = 'memory' AND substr(key, 1, 40) IN {ids}"),
)
_USED_IN = everywhere(
    "forget uses", " UNION ".join(f"SELECT project_id FROM {table} WHERE {condition}" for table, condition in _USES)
)
_FORGET_USES = tuple(f"DELETE FROM {table} WHERE project_id = ? AND {condition}" for table, condition in _USES)
_FORGET_IN_SPACE = (
    "DELETE FROM history WHERE space = ? AND id IN {ids}",
    "DELETE FROM recalled WHERE space = ? AND memory_id IN {ids}",
    "DELETE FROM verification WHERE space = ? AND memory_id IN {ids}",
    "DELETE FROM kept_request WHERE space = ? AND result IN {ids}",
    "DELETE FROM consolidation_part WHERE space = ? AND memory_id IN {ids}",
    "DELETE FROM consolidation_part WHERE space = ? AND EXISTS (SELECT 1 FROM consolidation c "
    "WHERE c.space = consolidation_part.space AND c.id = consolidation_part.consolidation_id AND c.result_id IN {ids})",
    "DELETE FROM consolidation WHERE space = ? AND result_id IN {ids}",
)
# Entities that only purged records mention are removed, unless they were created by hand, described or related.
_FORGET_NAME = (
    "DELETE FROM entity WHERE space = ? AND id = ? AND given = 0 AND properties = '{}' "
    "AND NOT EXISTS (SELECT 1 FROM mention n WHERE n.space = entity.space AND n.entity_id = entity.id) "
    + " ".join(
        f"AND NOT EXISTS (SELECT 1 FROM relationship r WHERE r.space = entity.space AND r.{end} = entity.id)"
        for end in ("source_id", "target_id")
    )
)
_NO_ENTITY = "NOT EXISTS (SELECT 1 FROM entity e WHERE e.space = {0}.space AND e.id = {0}.{1})"


class EmptyChunk(NamedTuple):
    """A chunk without a vector: its record with the last change of it, its place there, and its span."""

    num: int
    seq: int
    n: int
    first: int
    past: int


class MemoryTable:
    def __init__(self, database: Database, dictionaries: Dictionaries) -> None:
        self.database = database
        self.dictionaries = dictionaries

    # -- reading ---------------------------------------------------------------------------------

    def fetch(self, session: Session, nums: Sequence[int], spaces: Sequence[str]) -> dict[int, Memory]:
        """Records by number, within some spaces."""
        # Without the `+`, SQLite would prefer an index over the whole space to the number.
        statement = (
            f"SELECT {_COLUMNS}, m.num FROM memory m WHERE +m.space IN ({marks(len(spaces))}) AND m.num IN ({{}})"
        )
        rows = rows_among(session, statement, spaces, nums, fill=padded)
        return {row[-1]: self._memory(session, row) for row in rows}

    def digests(
        self, session: Session, nums: Sequence[int], spaces: Sequence[str]
    ) -> dict[int, tuple[str, bytes, Status]]:
        """The space of each record, a digest that is equal for equal texts, and its status."""
        asked = f"+m.space IN ({marks(len(spaces))}) AND m.num IN ({{}})"
        statement = f"SELECT m.num, m.space, m.digest, m.status FROM memory m WHERE {asked}"
        return {row[0]: (row[1], row[2], row[3]) for row in rows_among(session, statement, spaces, nums, fill=padded)}

    def by_ids(self, session: Session, ids: Sequence[str], where: Where) -> list[tuple[int, Memory]]:
        """Records by whole id that meet a condition, in the order of the ids."""
        rows = self._of_ids(session, f"{_COLUMNS}, m.num", ids, where)
        found = {row[0]: (row[-1], self._memory(session, row)) for row in rows}
        return [found[one] for one in dict.fromkeys(ids) if one in found]

    def numbers(self, session: Session, ids: Sequence[str], where: Where) -> dict[str, int]:
        """The numbers of records by whole id that meet a condition."""
        return {row[0]: row[1] for row in self._of_ids(session, "m.id, m.num", ids, where)}

    def _of_ids(self, session: Session, columns: str, ids: Sequence[str], where: Where) -> Iterator[Row]:
        for batch in batched(list(dict.fromkeys(ids))):
            # The order of these tables is fixed: the planner would rather read the whole space.
            yield from session.rows(
                f"WITH asked AS MATERIALIZED (SELECT space, num FROM memory WHERE +space IN "
                f"({marks(len(where.spaces))}) AND id IN ({marks(len(batch))})) SELECT {columns} "
                f"FROM asked CROSS JOIN memory m WHERE m.num = asked.num AND +m.space = asked.space AND {where.sql}",
                (*where.spaces, *batch, *where.params),
            )

    def terms(self, session: Session, space: str, num: int) -> list[bytes]:
        return column(session, "SELECT terms FROM chunk WHERE space = ? AND num = ? ORDER BY n", (space, num))

    def find(
        self, session: Session, prefix: str, limit: int = 6, space: str | None = None
    ) -> list[tuple[int, str, Memory]]:
        """Records of any space, or of one, whose id begins with a prefix, as (number, space, record)."""
        begun = "m.id >= ? AND m.id < ? ORDER BY m.id LIMIT ?"
        statement = f"SELECT {_COLUMNS}, m.num, m.space FROM memory m WHERE "
        if space is None:
            rows = session.rows(everywhere("find", f"{statement}{begun}"), (prefix, prefix + "g", limit))
        else:
            rows = session.rows(f"{statement}m.space = ? AND {begun}", (space, prefix, prefix + "g", limit))
        return [(row[-2], row[-1], self._memory(session, row)) for row in rows]

    def get(self, session: Session, space: str, memory_id: str) -> Memory | None:
        """The record of a space with this id."""
        rows = session.rows(f"SELECT {_COLUMNS} FROM memory m WHERE m.space = ? AND m.id = ?", (space, memory_id))
        return self._memory(session, rows[0]) if rows else None

    def locate(self, session: Session, spaces: Sequence[str], memory_id: str) -> tuple[int, str] | None:
        """Number and space of a record, first searched in these spaces, where it most likely is."""
        rows = session.rows(
            f"SELECT num, space FROM memory WHERE {in_spaces('space', spaces)} AND id = ?", (*spaces, memory_id)
        )
        if rows:
            return rows[0][0], rows[0][1]
        return next(((num, space) for num, space, _ in self.find(session, memory_id, 1)), None)

    def spaces_of(self, session: Session, ids: Iterable[str]) -> dict[str, str]:
        """The space of each record, deleted or not; purged ones are missing."""
        statement = everywhere("spaces of", "SELECT id, space FROM memory WHERE id IN ({})")
        return dict(rows_among(session, statement, (), sorted(set(ids))))

    def by_numbers(
        self, session: Session, space: str, nums: Sequence[int]
    ) -> list[tuple[int, str, str | None, Memory]]:
        """Records of a space by number, as (number, space, idempotency key, record)."""
        statement = (
            f"SELECT {_COLUMNS}, m.num, m.space, m.idempotency_key FROM memory m "
            "WHERE +m.space = ? AND m.num IN ({}) ORDER BY m.num"
        )
        rows = list(rows_among(session, statement, (space,), nums))
        return [(row[-3], row[-2], row[-1], self._memory(session, row)) for row in rows]

    def spaces(self, session: Session) -> list[str]:
        """All spaces that hold records."""
        return column(session, everywhere("all spaces", "SELECT DISTINCT space FROM memory ORDER BY space"))

    def all_numbers(self, session: Session, space: str) -> list[int]:
        """Numbers of all records of a space."""
        return column(session, "SELECT num FROM memory WHERE space = ? ORDER BY num", (space,))

    def numbers_after(self, session: Session, space: str, after: int, limit: int) -> list[int]:
        """The next numbers of the records of a space, in the order they were stored."""
        statement = "SELECT num FROM memory WHERE space = ? AND num > ? ORDER BY num LIMIT ?"
        return column(session, statement, (space, after, limit))

    def states(self, session: Session, space: str) -> set[tuple[str, int]]:
        """Id and last change of every record of a space."""
        return {(row[0], row[1]) for row in session.rows("SELECT id, seq FROM memory WHERE space = ?", (space,))}

    def without_vectors(self, session: Session, space: str, limit: int, after: int = 0) -> list[int]:
        """Numbers of records, beyond a number, with a chunk that has no vector."""
        return column(
            session,
            "SELECT DISTINCT num FROM chunk WHERE space = ? AND num > ? AND vector IS NULL ORDER BY num LIMIT ?",
            (space, after, limit),
        )

    def count_without_vectors(self, session: Session, spaces: Sequence[str]) -> int:
        """How many records of some spaces have a chunk that has no vector."""
        statement = f"SELECT count(DISTINCT num) FROM chunk WHERE {in_spaces('space', spaces)} AND vector IS NULL"
        return int(session.rows(statement, spaces)[0][0])

    def heads_without_vectors(self, session: Session, space: str) -> list[int]:
        """Numbers of the first parts of files, which say what a file holds, with a chunk that has no vector."""
        return column(
            session,
            "SELECT m.num FROM memory m JOIN (SELECT path, min(first_line) AS line FROM memory WHERE space = ? "
            "AND path IS NOT NULL GROUP BY path) h ON h.path = m.path AND h.line = m.first_line WHERE m.space = ? "
            "AND EXISTS (SELECT 1 FROM chunk c WHERE c.space = m.space AND c.num = m.num AND c.vector IS NULL) "
            "ORDER BY m.num",
            (space, space),
        )

    def empty_chunks(self, session: Session, space: str, nums: Sequence[int]) -> list[EmptyChunk]:
        """The chunks of some records that have no vector, in order."""
        statement = (
            "SELECT c.num, m.seq, c.n, c.first, c.past FROM chunk c JOIN memory m ON m.num = c.num "
            "AND m.space = c.space WHERE c.space = ? AND c.vector IS NULL AND c.num IN ({}) ORDER BY c.num, c.n"
        )
        return [EmptyChunk(*row) for row in rows_among(session, statement, (space,), nums)]

    def set_vectors(self, session: Session, space: str, made: Sequence[tuple[EmptyChunk, bytes]], seq: int) -> None:
        """Give chunks their vectors, except those of records that have changed since they were read."""
        nums = sorted({one.num for one, _ in made})
        statement = "SELECT num, seq FROM memory WHERE +space = ? AND num IN ({})"
        current: dict[int, int] = dict(rows_among(session, statement, (space,), nums))
        same = [(one, vector) for one, vector in made if current.get(one.num) == one.seq]
        vectors = [(vector, space, one.num, one.n) for one, vector in same]
        session.update_many("chunk", ["vector"], f"{_MINE} AND n = ?", vectors)
        changed = [(seq, space, num) for num in sorted({one.num for one, _ in same})]
        session.update_many("memory", ["seq"], _MINE, changed)
        if self.database.vector_index:
            self.database.vector_index.add(session, [(space, one.num, one.n, vector) for one, vector in same])

    def drop_vectors(self, session: Session) -> None:
        """Remove the vectors of all records of all spaces."""
        session.run(everywhere("all spaces", "UPDATE chunk SET vector = NULL WHERE vector IS NOT NULL"))
        if self.database.vector_index:
            self.database.vector_index.forget_all(session)
        if self.database.kept_spaces:
            self.database.kept_spaces.invalidate(session)

    def without_personal_check(self, session: Session, space: str | None, limit: int) -> dict[str, list[int]]:
        """Records of a space, or of all, that were not checked for personal data, by space.

        Of all spaces without the notes that are to be read for the graph soon, which are checked then.
        """
        if space is None:
            statement = "SELECT space, num FROM memory WHERE personal IS NULL AND graphed <> 2 ORDER BY num LIMIT ?"
            rows = session.rows(everywhere("unchecked", statement), (limit,))
        else:
            rows = session.rows(
                "SELECT space, num FROM memory WHERE +space = ? AND personal IS NULL ORDER BY num LIMIT ?",
                (space, limit),
            )
        return by_space((row[0], row[1]) for row in rows)

    def set_personal(self, session: Session, records: Sequence[tuple[str, int, Memory]]) -> None:
        """Store what was found in (space, number, record), unless the record has changed since."""
        found = [(json.dumps(memory.personal), space, num, memory.version) for space, num, memory in records]
        session.update_many("memory", ["personal"], f"{_MINE} AND version = ? AND personal IS NULL", found)

    def list_page(self, session: Session, where: Where, limit: int, offset: int) -> list[Memory]:
        """Records of a scope, newest first."""
        nums = self._newest(session, where, limit, offset)
        memories = self.fetch(session, nums, where.spaces)
        return [memories[num] for num in nums]

    def list_between(
        self, session: Session, where: Where, since: int, before: int, limit: int, offset: int
    ) -> list[Memory]:
        """Records captured in a period, newest first."""
        return self.list_page(session, _captured(where, since, before), limit, offset)

    def moments(self, session: Session, where: Where, since: int, before: int, limit: int, offset: int) -> list[int]:
        """When the records of a period were captured, in the order of `list_between`."""
        statement, params = _newest_first(_captured(where, since, before), limit, offset)
        return [row[1] for row in session.rows(statement, params)]

    def _newest(self, session: Session, where: Where, limit: int, offset: int = 0) -> list[int]:
        """The numbers of the newest records of a scope, newest first."""
        return column(session, *_newest_first(where, limit, offset))

    def of_branch(
        self, session: Session, project_id: str, branch_id: str, newest: int = -1, *, reviewed: bool = False
    ) -> list[tuple[int, int, Memory]]:
        """The live records of a line of work in order, as (number, change, record): all, or the `newest` ones.

        With `reviewed`, those that wait for a review are left out.
        """
        found = self._numbered(
            session,
            f"{_OF_LINE} ORDER BY m.created_at DESC, m.num DESC LIMIT ?",
            (project_id, branch_id, *(_REVIEWED if reviewed else LIVE_STATUSES), newest if newest >= 0 else EVERY_ROW),
        )
        return found[::-1]

    def of_branch_since(
        self, session: Session, project_id: str, branch_id: str, seq: int, *, reviewed: bool = False
    ) -> tuple[int, list[tuple[int, int, Memory]]]:
        """How many live records of a branch are unchanged since a change sequence, and the others as in `of_branch`.

        A removed record shows in the count.
        """
        params: tuple[Sql, ...] = (project_id, branch_id, *(_REVIEWED if reviewed else LIVE_STATUSES), seq)
        (count,) = session.rows(f"SELECT count(*) FROM memory m WHERE {_OF_LINE} AND m.seq <= ?", params)[0]
        return count, self._numbered(session, f"{_OF_LINE} AND m.seq > ? ORDER BY m.created_at, m.num", params)

    def newest(
        self, session: Session, where: Where, limit: int, branch_id: str | None = None
    ) -> list[tuple[int, Memory]]:
        """The newest records of a scope, or of one line of work in it, oldest first, with their numbers."""
        if branch_id is not None:
            where = _of_line(where, branch_id)
        nums = self._newest(session, where, limit)
        memories = self.fetch(session, nums, where.spaces)
        return [(num, memories[num]) for num in reversed(nums)]

    def of_path(self, session: Session, space: str, path: str) -> list[tuple[int, int, Memory]]:
        """The records of a file, in the order of its lines, as (number, change, record)."""
        return self._numbered(
            session, "m.space = ? AND m.path = ? ORDER BY m.first_line NULLS FIRST, m.num", (space, path)
        )

    def _numbered(self, session: Session, condition: str, params: Sequence[Sql]) -> list[tuple[int, int, Memory]]:
        rows = session.rows(f"SELECT {_COLUMNS}, m.num, m.seq FROM memory m WHERE {condition}", params)
        return [(row[-2], row[-1], self._memory(session, row)) for row in rows]

    def count(self, session: Session, where: Where, branch_id: str | None = None) -> int:
        if branch_id is not None:
            where = _of_line(where, branch_id)
        return int(session.rows(f"SELECT count(*) FROM memory m WHERE {where.sql}", where.params)[0][0])

    def oldest_by_digest(self, session: Session, space: str, digests: Sequence[bytes]) -> dict[bytes, str]:
        """The oldest live record of each digest."""
        found: dict[bytes, str] = {}
        for batch in batched(digests):
            # One by one, by the digest only: without statistics, an engine takes any other condition for more selective
            # and reads the whole space.
            live = f"CASE WHEN m.status IN ({marks(len(LIVE_STATUSES))}) THEN m.id END"
            rows = session.rows(
                f"WITH asked (digest) AS (VALUES {', '.join(['(?)'] * len(batch))}) SELECT digest, "
                f"(SELECT min({live}) FROM memory m WHERE m.space = ? AND m.digest = asked.digest) FROM asked",
                (*batch, *LIVE_STATUSES, space),
            )
            found.update((digest, first) for digest, first in rows if first is not None)
        return found

    def by_key(self, session: Session, space: str, keys: Sequence[str]) -> dict[str, Memory]:
        statement = (
            f"SELECT {_COLUMNS}, m.idempotency_key FROM memory m WHERE m.space = ? AND m.idempotency_key IN ({{}})"
        )
        return {row[-1]: self._memory(session, row) for row in rows_among(session, statement, (space,), keys)}

    def by_key_prefix(self, session: Session, space: str, prefix: str) -> list[tuple[str, Memory]]:
        """Records whose idempotency keys go on with hexadecimal digits after a prefix, oldest first, with the keys."""
        rows = session.rows(
            f"SELECT {_COLUMNS}, m.idempotency_key FROM memory m WHERE m.space = ? AND m.idempotency_key >= ? "
            "AND m.idempotency_key < ? ORDER BY m.num",
            (space, prefix, prefix + "g"),
        )
        return [(row[-1], self._memory(session, row)) for row in rows]

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
        content = unpack(packed, self.dictionaries.get(session, space, packed_with))
        return memory_from(row, content, compressed=True)

    # -- writing ---------------------------------------------------------------------------------

    def next_seq(self, session: Session, space: str) -> int:
        """The next change of a space. Its row is locked until the commit, so it follows the order of commits."""
        return int(session.insert("space_change", {"space": space, "seq": 1}, _NEXT)[0][0])

    def next_seqs(self, session: Session, spaces: Iterable[str]) -> dict[str, int]:
        """The next change of each space, taken in the order in which all writers lock them."""
        return {space: self.next_seq(session, space) for space in sorted(set(spaces))}

    def insert(self, session: Session, record: IndexedRecord, seq: int) -> int:
        row = dict(zip(_WRITTEN, _row_values(record, seq), strict=True))
        num = int(session.insert("memory", row, "RETURNING num")[0][0])
        self._write_parts(session, num, record)
        return num

    def insert_all(self, session: Session, records: Sequence[IndexedRecord], seqs: Mapping[str, int]) -> list[int]:
        """Insert many new records at once, each with the change of its space; their numbers."""
        nums = self.database.new_numbers(session, [record.space for record in records])
        numbered = list(zip(nums, records, strict=True))
        session.copy(
            "memory", ("num", *_WRITTEN), [(num, *_row_values(record, seqs[record.space])) for num, record in numbered]
        )
        session.copy("tag", _TAG_COLUMNS, [row for num, record in numbered for row in _tag_rows(num, record)])
        session.copy("chunk", _CHUNK_COLUMNS, [row for num, record in numbered for row in _chunk_rows(num, record)])
        if self.database.vector_index:
            self.database.vector_index.add(
                session, [row for num, record in numbered for row in _vector_rows(num, record)]
            )
        live = [(num, record) for num, record in numbered if record.memory.status != "tombstoned"]
        self.database.index_texts(session, [(record.space, num, record.words) for num, record in live])
        return nums

    def replace(self, session: Session, num: int, record: IndexedRecord, seq: int) -> None:
        """Replace a record and its index entries."""
        row = (*_row_values(record, seq, with_space=False), None, None, record.space, num)
        session.update_many("memory", _CHANGED, _MINE, [row])
        self._drop_parts(session, record.space, num)
        self._write_parts(session, num, record)

    def reindex(self, session: Session, num: int, record: IndexedRecord, seq: int) -> None:
        """Rewrite the index entries of a record."""
        names = ("length", "flags", "author", "digest")
        changes = {"seq": seq, **{name: getattr(record, name) for name in names}}
        session.update("memory", changes, _MINE, (record.space, num))
        self._drop_parts(session, record.space, num)
        self._write_parts(session, num, record)

    def move(self, session: Session, space: str, num: int, memory: Memory) -> None:
        """Move a part of a file to other lines, or to another symbol or path."""
        names = ("path", "symbol", "first_line", "last_line", "source")
        session.update("memory", {name: getattr(memory, name) for name in names}, _MINE, (space, num))

    def archive_version(self, session: Session, space: str, memory: Memory, operation: str, at: int) -> None:
        """Copy the current state of a record to its history, before it changes."""
        names = ("id", "version", "namespace", "tags", "source", "content")
        row: Values = {"space": space, "recorded_at": at, "operation": operation}
        row |= {name: to_sql(getattr(memory, name)) for name in names}
        session.insert("history", row, replacing("history"))

    def soft_delete(self, session: Session, space: str, nums: Sequence[int], at: int, seq: int) -> None:
        """Mark records as deleted. They leave the text index and keep their former status."""
        for batch in batched(nums):
            changes: Changes = {"prior_status": Computed("status"), "status": "tombstoned", "tombstoned_at": at}
            where = f"status <> 'tombstoned' AND +space = ? AND num IN ({marks(len(batch))})"
            changes |= {"updated_at": at, "seq": seq}
            session.update("memory", changes, where, (space, *batch))
        for num in nums:
            self.database.unindex_text(session, space, num)

    def undelete(self, session: Session, space: str, num: int, words: str, at: int, seq: int) -> None:
        """Undo a soft delete, text index included."""
        changes: Changes = {"status": Computed("COALESCE(prior_status, 'active')"), "prior_status": None}
        changes |= {"tombstoned_at": None, "updated_at": at, "seq": seq}
        session.update("memory", changes, _MINE, (space, num))
        self.database.index_text(session, space, num, words)

    def purge(self, session: Session, space: str, nums: Sequence[int], seq: int, *, names: bool = True) -> None:
        """Remove records of a space and every trace of them, except that their numbers are listed as purged.

        `names` False keeps the entities that only they mention, for a caller who decides about those too.
        """
        for batch in batched(nums):
            purge_rows(session, space, batch, seq, names=names)
        for num in nums:
            self.database.unindex_text(session, space, num)
        if self.database.kept_spaces:
            self.database.kept_spaces.purge(session, space, nums)

    def _write_parts(self, session: Session, num: int, record: IndexedRecord) -> None:
        session.insert_many("tag", _TAG_COLUMNS, _tag_rows(num, record))
        session.insert_many("chunk", _CHUNK_COLUMNS, _chunk_rows(num, record))
        if self.database.vector_index:
            self.database.vector_index.add(session, _vector_rows(num, record))
        if record.memory.status != "tombstoned":
            self.database.index_text(session, record.space, num, record.words)

    def _drop_parts(self, session: Session, space: str, num: int) -> None:
        session.run("DELETE FROM tag WHERE +space = ? AND num = ?", (space, num))
        session.run("DELETE FROM chunk WHERE space = ? AND num = ?", (space, num))


def _newest_first(where: Where, limit: int, offset: int) -> tuple[str, tuple[Sql, ...]]:
    """The statement that lists the numbers and times of records, newest first.

    Where an index has parts of a scope in the order of their time, only the head of each is read: under one condition
    for all of them, the engine would read and sort every record.
    """
    keys = "SELECT m.num, m.created_at, m.id FROM memory m WHERE"
    if where.by_time is None:
        return f"{keys} {where.sql} {_NEWEST_FIRST} LIMIT ? OFFSET ?", (*where.params, limit, offset)
    heads: list[str] = []
    params: list[Sql] = []
    for sql, values in where.by_time.parts():
        heads.append(f"SELECT * FROM ({keys} {sql} {_NEWEST_FIRST} LIMIT ?) AS head{len(heads)}")
        params += [*values, offset + limit]
    return (
        f"SELECT m.num, m.created_at FROM ({' UNION ALL '.join(heads)}) AS m {_NEWEST_FIRST} LIMIT ? OFFSET ?",
        (*params, limit, offset),
    )


def _captured(where: Where, since: int, before: int) -> Where:
    """The records of a scope that were captured in a period."""
    condition, period = " AND m.created_at >= ? AND m.created_at < ?", (since, before)
    by_time = where.by_time
    if by_time is not None:
        by_time = replace(by_time, sql=by_time.sql + condition, params=(*by_time.params, *period))
    return replace(where, sql=where.sql + condition, params=(*where.params, *period), tagged=None, by_time=by_time)


def _of_line(where: Where, branch_id: str) -> Where:
    """The records of a scope that are of one line of work, which has an index of its own."""
    sql = f"{where.sql} AND m.branch_id = ?"
    return replace(where, sql=sql, params=(*where.params, branch_id), tagged=None, by_time=None)


def _row_values(record: IndexedRecord, seq: int, *, with_space: bool = True) -> tuple[Sql, ...]:
    own = (seq, record.digest, record.idempotency_key, record.length, record.flags, record.author)
    return (*memory_values(record.memory), *((record.space,) if with_space else ()), *own)


def _tag_rows(num: int, record: IndexedRecord) -> list[tuple[Sql, ...]]:
    return [(record.space, tag, num) for tag in sorted({tag.casefold() for tag in record.memory.tags})]


def _chunk_rows(num: int, record: IndexedRecord) -> list[tuple[Sql, ...]]:
    return [
        (num, n, record.space, chunk.first, chunk.past, int(chunk.by_assistant), chunk.terms, chunk.vector)
        for n, chunk in enumerate(record.chunks)
    ]


def _vector_rows(num: int, record: IndexedRecord) -> list[tuple[str, int, int, bytes | None]]:
    return [(record.space, num, n, chunk.vector) for n, chunk in enumerate(record.chunks)]


def purge_rows(session: Session, space: str, nums: Sequence[int], seq: int, *, names: bool) -> None:
    """Remove every row made from some records of a space, or about them; not their text index.

    See `MemoryTable.purge` for `names`.
    """
    mine = f"+space = ? AND num IN ({marks(len(nums))})"
    found = session.rows(f"SELECT num, id FROM memory WHERE {mine}", (space, *nums))
    ids = [row[1] for row in found]
    session.insert_many("purged", ("space", "num", "seq"), [(space, row[0], seq) for row in found])
    for statement in _FORGET_IN_SPACE:
        session.run(statement.format(ids=f"({marks(len(ids))})"), (space, *ids))
    # Records that a purged one superseded stay superseded.
    session.update(
        "memory", {"superseded_by": None}, f"space = ? AND superseded_by IN ({marks(len(ids))})", (space, *ids)
    )
    # Any project may have used them: one statement asks everywhere, the others go where there is something.
    for project in column(session, _USED_IN.format(ids=f"({marks(len(ids))})"), (*ids,) * len(_USES)):
        for statement in _FORGET_USES:
            session.run(statement.format(ids=f"({marks(len(ids))})"), (project, *ids))
    named = session.rows(f"SELECT DISTINCT space, entity_id FROM mention WHERE {mine}", (space, *nums))
    for table in ("tag", "chunk", "mention", "relationship", "entity_history", "memory"):
        session.run(f"DELETE FROM {table} WHERE {mine}", (space, *nums))
    if not names:
        return
    session.run_many(_FORGET_NAME, named)
    for table, key in (("entity_alias", "entity_id"), ("entity_history", "into_id")):
        session.run_many(
            f"DELETE FROM {table} WHERE space = ? AND {key} = ? AND {_NO_ENTITY.format(table, key)}", named
        )
