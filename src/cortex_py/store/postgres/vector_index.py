"""Nearest vectors in PostgreSQL by pgvector: an HNSW index over half precision for each large space.

A condition is met inside the search: the index is read on until enough records have met it. Where few meet it, all of
them are compared instead, which is quicker and exact.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from contextlib import AbstractContextManager
from typing import TYPE_CHECKING

from ..records import LIVE_STATUSES
from .database import Row, Session, Sql, marks
from .nearest import Columns, Extent, VectorRow
from .postgres_near_build import build, forget
from .postgres_near_tables import as_vector
from .where import Where

if TYPE_CHECKING:
    import numpy as np
    from numpy.typing import NDArray

    from .codes import Codes
    from .postgres_pool import Pool

__all__ = ["PostgresNearest"]

# Up to so many records all are compared.
_EXACT = 4_000
# Parts asked for, for each record wanted: long records come with several.
_PARTS = 1.1
# And so many more, where some may turn out not to meet the condition.
_SPARE, _ALL = 2, 1_000_000_000
_LIVE = ", ".join(f"'{status}'" for status in LIVE_STATUSES)
_OF_LINE = f"o.space = m.space AND o.branch_id = m.branch_id AND o.status IN ({_LIVE})"
_BEFORE = (
    f"(SELECT o.num FROM memory o WHERE {_OF_LINE} AND (o.created_at, o.num) < (m.created_at, m.num) "
    "ORDER BY o.created_at DESC, o.num DESC LIMIT 1)"
)
_AFTER = (
    f"(SELECT o.num FROM memory o WHERE {_OF_LINE} AND (o.created_at, o.num) > (m.created_at, m.num) "
    "ORDER BY o.created_at, o.num LIMIT 1)"
)
_AMONG = "m.space = ? AND m.num = ANY (?::bigint[])"


class PostgresNearest:
    def __init__(
        self,
        pool: Pool,
        write: Callable[[], AbstractContextManager[Session]],
    ) -> None:
        """`write` begins a transaction of the server itself."""
        self._pool = pool
        self._write = write

    def covered(self, session: Session, spaces: Sequence[str]) -> set[str]:
        statement = f"SELECT space FROM near_space WHERE space IN ({marks(len(spaces))}) AND ready = 1"
        return {row[0] for row in session.rows(statement, tuple(spaces))} if spaces else set()

    def add(self, session: Session, rows: Sequence[VectorRow]) -> None:
        given = [(space, num, n, vector) for space, num, n, vector in rows if vector is not None]
        lengths = {space: len(vector) // 4 for space, _, _, vector in given}
        listed = f"SELECT space, part, dimensions FROM near_space WHERE space IN ({marks(len(lengths))})"
        covered = session.rows(listed, list(lengths)) if lengths else []
        for space, part, dimensions in covered:
            if dimensions != lengths[space]:
                # Another model: the index is of no use any more, and made anew when the space is next looked after.
                forget(session, space, part)
        kept = {space for space, _, dimensions in covered if dimensions == lengths[space]}
        if kept:
            session.run_many(
                "INSERT INTO near (space, num, n, vector) VALUES (?, ?, ?, ?::halfvec)",
                [(space, num, n, as_vector(vector)) for space, num, n, vector in given if space in kept],
            )

    def extent(self, session: Session, space: str) -> Extent:
        part, _ = self._part(session, space)
        rows = session.rows(f"SELECT count(*), coalesce(min(num), 0), coalesce(max(num), 0) FROM {part} WHERE n = 0")
        return Extent(*rows[0])

    def sample(self, session: Session, space: str, count: int, records: int) -> list[int]:
        part, _ = self._part(session, space)
        # Whole pages are drawn, so more than asked for may come.
        share = min(100.0, 130.0 * count / max(1, records))
        rows = session.rows(f"SELECT DISTINCT num FROM {part} TABLESAMPLE SYSTEM (?) REPEATABLE (7)", (share,))
        return [row[0] for row in rows][: 2 * count]

    def passing(self, session: Session, space: str, nums: Sequence[int], where: Where) -> list[tuple[int, int]]:
        if not nums:
            return []
        asked = "unnest(?::bigint[]) asked (num)"
        params: tuple[Sql, ...] = (_array(nums),)
        if where.tagged is not None:
            # Tags first, which OFFSET has the engine do: a record is further away.
            listed, given = where.tagged
            asked = f"(SELECT a.num FROM unnest(?::bigint[]) a (num) WHERE a.num IN ({listed}) OFFSET 0) asked"
            params = (*params, *given)
        rows = session.rows(
            f"SELECT m.num, m.length FROM {asked} JOIN memory m ON m.space = ? AND m.num = asked.num WHERE {where.sql}",
            (*params, space, *where.params),
        )
        lengths: dict[int, int] = dict(rows)
        return [(num, lengths[num]) for num in nums if num in lengths]

    def closest(
        self,
        session: Session,
        space: str,
        query: NDArray[np.float32],
        where: Where,
        count: int,
        open_records: int,
    ) -> list[int]:
        if open_records <= _EXACT:
            return self._of_all(session, space, query, where, count)
        if where.tagged is not None:
            listed, given = where.tagged
            found = self._checked(session, space, query, where, count, f"v.num IN ({listed})", given)
            if len(found) >= count:
                return found
        part, dimensions = self._part(session, space)
        # The inner order is that of the index, which is nearly right; the outer one is right.
        statement = (
            f"SELECT f.num FROM (SELECT v.num, {_distance(dimensions)} AS distance FROM {part} v "
            f"JOIN memory m ON m.space = v.space AND m.num = v.num WHERE {where.sql} "
            "ORDER BY distance LIMIT ?) f ORDER BY f.distance"
        )
        params = (as_vector(query.tobytes()), *where.params, int(_PARTS * count))
        return _each_once(session.rows(statement, params), count)

    def _of_all(self, session: Session, space: str, query: NDArray[np.float32], where: Where, count: int) -> list[int]:
        part, dimensions = self._part(session, space)
        statement = (
            f"WITH allowed AS MATERIALIZED (SELECT m.num FROM memory m WHERE m.space = ? AND {where.sql}) "
            f"SELECT v.num FROM allowed a JOIN {part} v ON v.space = ? AND v.num = a.num "
            f"ORDER BY {_distance(dimensions)} LIMIT ?"
        )
        params = (space, *where.params, space, as_vector(query.tobytes()), int(_PARTS * count))
        return _each_once(session.rows(statement, params), count)

    def _checked(
        self,
        session: Session,
        space: str,
        query: NDArray[np.float32],
        where: Where,
        count: int,
        among: str,
        given: Sequence[Sql],
        spare: int = _SPARE,
    ) -> list[int]:
        """The nearest of some vectors, and the condition asked of those alone, because nearly all will meet it."""
        part, dimensions = self._part(session, space)
        statement = (
            f"SELECT f.num FROM (SELECT v.num, {_distance(dimensions)} AS distance FROM {part} v "
            f"WHERE v.space = ? AND {among} ORDER BY distance LIMIT ?) f "
            f"JOIN memory m ON m.space = ? AND m.num = f.num WHERE {where.sql} ORDER BY f.distance"
        )
        params = (as_vector(query.tobytes()), space, *given, int(_PARTS * count) + spare, space, *where.params)
        return _each_once(session.rows(statement, params), count)

    def numbers(self, session: Session, space: str, where: Where) -> bytes:
        every = (f"SELECT m.num FROM memory m WHERE m.space = ? AND {where.sql}", (space, *where.params))
        statement, params = where.tagged or every
        # In one value: rows would take longer to travel than to be read.
        sent = f"SELECT coalesce(string_agg(int8send(f.num), ''::bytea), ''::bytea) FROM ({statement}) f (num)"
        ((numbers,),) = session.rows(sent, params)
        return bytes(numbers)

    def compared(
        self,
        session: Session,
        space: str,
        query: NDArray[np.float32],
        where: Where,
        nums: Sequence[int],
        count: int,
    ) -> list[int]:
        among, given = "v.num = ANY (?::bigint[])", (_array(nums),)
        found = self._checked(session, space, query, where, count, among, given)
        # More parts than any records have: all are looked at, where the nearest were not enough.
        return found if len(found) >= count else self._checked(session, space, query, where, count, among, given, _ALL)

    def changed(self, session: Session, space: str, seq: int, most: int) -> list[int]:
        statement = "SELECT num FROM memory WHERE space = ? AND seq > ? ORDER BY seq LIMIT ?"
        return [row[0] for row in session.rows(statement, (space, seq, most))]

    def codes(self, session: Session, space: str, nums: Sequence[int]) -> Codes:
        part, dimensions = self._part(session, space)
        asked: tuple[Sql, ...]
        if isinstance(nums, range):
            among, asked = "num >= ? AND num < ?", (nums.start, nums.stop)
        else:
            among, asked = "num = ANY (?::bigint[])", (_array(nums),)
        statement = (
            "SELECT coalesce(string_agg(int8send(num), ''::bytea), ''::bytea), "
            f"coalesce(string_agg(bit_send(binary_quantize(vector::halfvec({dimensions}))), ''::bytea), ''::bytea) "
            f"FROM {part} WHERE space = ? AND {among}"
        )
        ((numbers, bits),) = session.rows(statement, (space, *asked))
        # Not above: a process that asks nothing shall not load it.
        from .codes import Codes

        return Codes.sent(numbers, bits, dimensions)

    def around(self, session: Session, space: str, nums: Sequence[int]) -> list[int]:
        if not nums:
            return []
        statement = f"SELECT {_BEFORE}, {_AFTER} FROM memory m WHERE {_AMONG} AND m.branch_id IS NOT NULL"
        rows = session.rows(statement, (space, _array(nums)))
        return [num for row in rows for num in row if num is not None]

    def columns(self, session: Session, space: str, nums: Sequence[int], where: Where) -> list[Columns]:
        if not nums:
            return []
        statement = (
            f"SELECT m.num, m.created_at, m.length, m.flags, m.author, m.branch_id, {_BEFORE}, {_AFTER} "
            f"FROM memory m WHERE {_AMONG} AND {where.sql} ORDER BY m.num"
        )
        return [Columns(*row) for row in session.rows(statement, (space, _array(nums), *where.params))]

    def build(self, space: str, dimensions: int, stop: Callable[[], bool]) -> bool:
        return build(self._pool, self._write, space, dimensions, stop)

    def _part(self, session: Session, space: str) -> tuple[str, int]:
        ((part, dimensions),) = session.rows("SELECT part, dimensions FROM near_space WHERE space = ?", (space,))
        return str(part), int(dimensions)


def _distance(dimensions: int) -> str:
    return f"v.vector::halfvec({dimensions}) <#> ?::halfvec({dimensions})"


def _each_once(rows: Sequence[Row], count: int) -> list[int]:
    return list(dict.fromkeys(row[0] for row in rows))[:count]


def _array(nums: Sequence[int]) -> str:
    return f"{{{','.join(map(str, nums))}}}"
