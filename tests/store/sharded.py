"""A store spread over real PostgreSQL servers by the space of each row, for tests.

Every statement runs on the one server of its spaces. Those that read from several go, as the store wrote them, to a
coordinator: a database whose tables are hash partitions, each a foreign table on one of the servers. Which server a
space lies on is what PostgreSQL's own hash partitioning says, so that all agree.

Numbers of records come from a range for each server: server i of n gives out those that leave i+1 when divided by n.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Iterator, Sequence
from contextlib import ExitStack, contextmanager
from functools import cached_property
from typing import Any

import psycopg
from routing import Route, route

from cortex_py.core.clock import Clock
from cortex_py.core.store.database import AUDIT, DISTRIBUTED, Row, Session, Sql
from cortex_py.team.postgres.engine import PostgresDatabase, open_postgres

from postgres_server import PostgresServer

__all__ = ["ShardedDatabase", "Shards", "coordinator", "joined_template"]


_TEMPLATE = "over_all"


def joined_template(servers: Sequence[PostgresServer], urls: Sequence[str]) -> None:
    """Make what coordinators are copied from: the tables of all servers as one, without a row of their own."""
    servers[0].run(f"CREATE DATABASE {_TEMPLATE}")
    with psycopg.connect(servers[0].url(_TEMPLATE), autocommit=True) as connection:
        _join(connection, servers, urls)


@contextmanager
def coordinator(servers: Sequence[PostgresServer], urls: Sequence[str]) -> Iterator[str]:
    """The URL of a database on the first server that shows the tables of these databases as one."""
    name = f"over_{urls[0].rpartition('/')[2]}"
    servers[0].run(f"CREATE DATABASE {name} TEMPLATE {_TEMPLATE}")
    try:
        for n, url in enumerate(urls):
            servers[0].run(f"ALTER SERVER shard{n} OPTIONS (SET dbname '{url.rpartition('/')[2]}')", name)
        yield servers[0].url(name)
    finally:
        servers[0].run(f"DROP DATABASE {name} WITH (FORCE)")


def _join(connection: psycopg.Connection, servers: Sequence[PostgresServer], urls: Sequence[str]) -> None:
    with psycopg.connect(urls[0]) as first:
        # Types that the tables use.
        extensions = first.execute("SELECT extname FROM pg_extension WHERE extname <> 'plpgsql'").fetchall()
    for (extension,) in [*extensions, ("postgres_fdw",)]:
        connection.execute(f"CREATE EXTENSION {extension}".encode())
    for n, (server, url) in enumerate(zip(servers, urls, strict=True)):
        options = f"host '{server.folder}', dbname '{url.rpartition('/')[2]}'"
        connection.execute(f"CREATE SERVER shard{n} FOREIGN DATA WRAPPER postgres_fdw OPTIONS ({options})".encode())
        connection.execute(f"CREATE USER MAPPING FOR CURRENT_USER SERVER shard{n} OPTIONS (user 'postgres')".encode())
    connection.execute("CREATE SCHEMA as_there")
    connection.execute("IMPORT FOREIGN SCHEMA public FROM SERVER shard0 INTO as_there")
    for table, key in DISTRIBUTED.items():
        definition = f'CREATE TABLE "{table}" (LIKE as_there."{table}") PARTITION BY HASH ({key})'
        connection.execute(definition.encode())
        for n in range(len(servers)):
            part = (
                f'CREATE FOREIGN TABLE "{table}_{n}" PARTITION OF "{table}" '
                f"FOR VALUES WITH (MODULUS {len(servers)}, REMAINDER {n}) SERVER shard{n} "
                f"OPTIONS (table_name '{table}')"
            )
            connection.execute(part.encode())
    connection.execute("DROP SCHEMA as_there CASCADE")


class Shards:
    """The databases and who lies where.

    Kept for tests: how often a listed statement went everywhere, and what was read on one server alone.
    """

    def __init__(self, urls: Sequence[str], coordinator_url: str) -> None:
        self.urls = urls
        self.coordinator_url = coordinator_url
        self.fanned_out: Counter[str] = Counter()
        self.read_here: dict[tuple[str, int], Sequence[Sql]] = {}
        self._places: dict[str, int] = {}
        for n, url in enumerate(urls):
            with psycopg.connect(url, autocommit=True) as connection:
                numbers = f"SET INCREMENT BY {len(urls)} RESTART WITH {n + 1}"
                connection.execute(f"ALTER TABLE memory ALTER COLUMN num {numbers}".encode())

    def of(self, spaces: Iterable[Sql]) -> list[int]:
        return sorted({self._place(str(space)) for space in spaces})

    def _place(self, space: str) -> int:
        if space not in self._places:
            asked = ", ".join(
                f"satisfies_hash_partition('memory'::regclass, {len(self.urls)}, {n}, %s::text)"
                for n in range(len(self.urls))
            )
            with psycopg.connect(self.coordinator_url) as connection:
                (found,) = connection.execute(f"SELECT {asked}".encode(), [space] * len(self.urls)).fetchall()
            self._places[space] = found.index(True)
        return self._places[space]


class _Session(Session):
    def __init__(
        self, shards: Shards, sessions: Sequence[Session], all_of_them: PostgresDatabase, spaces: Sequence[str] = ()
    ) -> None:
        self._shards = shards
        self._sessions = sessions
        self._all = all_of_them
        # Those that it may write to; all if none is named.
        self._spaces = {*spaces, *(space.removesuffix("/files") for space in spaces)}
        self._changed = 0
        self._written = False
        self._ending = ExitStack()

    def rows(self, sql: str, params: Sequence[Sql] = ()) -> list[Row]:
        found, places = self._where(sql, params)
        if found.writes:
            return self._do(sql, params, places)
        if len(places) == 1 and found.distributed:
            self._shards.read_here.setdefault((sql, places[0]), params)
        if len(places) == 1 or found.plain:
            return [row for n in places for row in self._sessions[n].rows(sql, params)]
        # What counts, sorts or cuts is put together by the coordinator, which sees only what was committed.
        assert not self._written, f"reads from several servers in the middle of a change: {sql}"
        return self._coordinator.rows(sql, params)

    def run(self, sql: str, params: Sequence[Sql] = ()) -> None:
        _, places = self._where(sql, params)
        self._do(sql, params, places)

    def _do(self, sql: str, params: Sequence[Sql], places: Sequence[int]) -> list[Row]:
        self._written, self._changed, found = True, 0, []
        for n in places:
            found += self._sessions[n].rows(sql, params)
            self._changed += self._sessions[n].changed()
        return found

    def run_many(self, sql: str, params: Iterable[Sequence[Sql]]) -> None:
        self._written = True
        by_place: dict[int, list[Sequence[Sql]]] = {}
        for one in params:
            _, places = self._where(sql, one)
            for n in places:
                by_place.setdefault(n, []).append(one)
        for n, some in by_place.items():
            self._sessions[n].run_many(sql, some)

    def copy(self, table: str, columns: Sequence[str], rows: Sequence[Sequence[Sql]]) -> None:
        self._written = True
        key = columns.index(DISTRIBUTED[table])
        for n, some in self._by_place(rows, key).items():
            self._sessions[n].copy(table, columns, some)

    def _by_place(self, rows: Sequence[Sequence[Sql]], key: int) -> dict[int, list[Sequence[Sql]]]:
        by_place: dict[int, list[Sequence[Sql]]] = {}
        for row in rows:
            assert not self._spaces or row[key] in self._spaces
            by_place.setdefault(self._shards.of([row[key]])[0], []).append(row)
        return by_place

    def on(self, space: str) -> Session:
        """The session on the server of one space."""
        return self._sessions[self._shards.of([space])[0]]

    def changed(self) -> int:
        return self._changed

    def end(self) -> None:
        self._ending.close()

    @cached_property
    def _coordinator(self) -> Session:
        return self._ending.enter_context(self._all.read())

    def _where(self, sql: str, params: Sequence[Sql]) -> tuple[Route, list[int]]:
        """The servers that a statement must go to: one, unless its spaces lie on several or it is a listed one."""
        found = route(sql)
        if found.writes and self._spaces and AUDIT not in self._spaces:
            given = {params[place] for keys in found.keys for place in keys}
            assert given and given <= self._spaces, f"writes outside of {sorted(self._spaces)}: {sql}"
        if not found.distributed:
            return found, [0]
        assert found.distributed == found.tables, f"joins tables that lie apart: {sql}"
        if found.everywhere:
            self._shards.fanned_out[found.everywhere] += 1
            return found, list(range(len(self._sessions)))
        assert not found.missing, f"without the key of {', '.join(found.missing)}: {sql}"
        places = self._shards.of(params[place] for keys in found.keys for place in keys)
        assert len(places) == 1 or not found.writes, f"writes on several servers: {sql}"
        return found, places or [0]


class ShardedDatabase:
    """The `Database` protocol over all of them. Commits are one after the other: a real one would need two phases."""

    name = "postgresql"
    vector_index = None
    distributed = False
    kept_spaces = None
    era = 0

    def __init__(self, shards: Shards, clock: Clock) -> None:
        self.shards = shards
        self._databases = [open_postgres(url, clock) for url in shards.urls]
        self._all = PostgresDatabase(shards.coordinator_url)

    @contextmanager
    def read(self, *, behind: bool = False) -> Iterator[Session]:
        with ExitStack() as stack:
            session = _Session(self.shards, [stack.enter_context(one.read()) for one in self._databases], self._all)
            stack.callback(session.end)
            yield session

    @contextmanager
    def write(self, *spaces: str, derived: bool = False) -> Iterator[Session]:
        with ExitStack() as stack:
            # In this order everywhere, so that writers take turns at the first.
            sessions = []
            for n, one in enumerate(self._databases):
                mine = [space for space in spaces if self.shards.of([space]) == [n]]
                # A writer of some spaces has nothing to write on other servers.
                transaction = one.read() if spaces and not mine else one.write(*mine, derived=derived)
                sessions.append(stack.enter_context(transaction))
            session = _Session(self.shards, sessions, self._all, spaces)
            stack.callback(session.end)
            yield session

    def __getattr__(self, name: str) -> Any:
        """What is the same on every server, such as the words of the text index."""
        return getattr(self._databases[0], name)

    def new_numbers(self, session: Session, spaces: Sequence[str]) -> list[int]:
        assert isinstance(session, _Session)
        return [self._databases[0].new_numbers(session.on(space), [space])[0] for space in spaces]

    def compact(self) -> None:
        for one in self._databases:
            one.compact()

    def check(self) -> list[str]:
        return [fault for one in self._databases for fault in one.check()]

    def size_bytes(self) -> int:
        return sum(one.size_bytes() for one in self._databases)

    def wait_for_change(self, _seconds: float) -> bool | None:
        return None

    def replica_lag(self) -> int | None:
        return None

    def server_load(self) -> None:
        return None

    def close(self) -> None:
        for one in (*self._databases, self._all):
            one.close()
