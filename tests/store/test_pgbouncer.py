"""PgBouncer in transaction mode: transactions share connections of the server, and nothing passes between them."""

from __future__ import annotations

import random
import threading
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import pytest

from cortex_py.core.clock import SystemClock
from cortex_py.core.errors import AccessDenied, StorageError
from cortex_py.core.store.database import Bounds
from cortex_py.team.postgres.engine import open_postgres
from inside import database_of

from helpers import FakeClock
from homes import fill, opened, state
from postgres_server import PostgresServer, name_in

pytestmark = pytest.mark.sqlite_only  # it brings its own database

_CALLERS, _TURNS = 12, 25
# What a transaction could leave behind on a connection.
_LEFT_BEHIND = """
    SELECT current_user, coalesce(current_setting('cortex.readable', true), ''), current_setting('lock_timeout'),
        (SELECT count(*) FROM pg_prepared_statements), (SELECT count(*) FROM pg_listening_channels()),
        (SELECT count(*) FROM pg_locks WHERE pid = pg_backend_pid() AND locktype = 'advisory')"""


def test_nobody_sees_rows_of_another_caller(pooler: PostgresServer, postgres_url: str) -> None:
    name = name_in(postgres_url)
    current = threading.local()
    database = open_postgres(
        pooler.url(name), SystemClock(), lambda: getattr(current, "bounds", None), direct_url=postgres_url
    )
    faults: list[object] = []

    def turn(space: str, other: str, n: int) -> None:
        with database.write(space) as session:
            session.run("INSERT INTO saved_change (space, kind, changes) VALUES (?, ?, 1)", (space, f"k{n}"))
        with database.read() as session:
            found = session.rows("SELECT space, count(*) FROM saved_change GROUP BY space")
            if found != [(space, n + 1)]:
                faults.append((space, n, found))
        try:
            with database.write() as session:
                session.run("INSERT INTO saved_change (space, kind, changes) VALUES (?, 'forged', 1)", (other,))
            faults.append((space, "wrote as", other))
        except AccessDenied:
            pass
        if random.random() < 0.2:
            # A transaction that fails leaves nothing to the next one either.
            with pytest.raises(StorageError), database.read() as session:
                session.rows("SELECT 1 / 0")

    def work(number: int) -> None:
        space, other = f"space {number}", f"space {(number + 1) % _CALLERS}"
        current.bounds = Bounds(f"caller {number}", frozenset({space}), frozenset({space}))
        for n in range(_TURNS):
            turn(space, other, n)

    with ThreadPoolExecutor(_CALLERS) as pool:
        list(pool.map(work, range(_CALLERS)))
    assert faults == []
    with database.read() as session:
        assert session.rows("SELECT count(*) FROM saved_change")[0][0] == _CALLERS * _TURNS
    database.close()
    for _ in range(4):
        assert pooler.run(_LEFT_BEHIND, name) == [("postgres", "", "0", 0, 0, 0)]


def test_everything_works_through_it(
    pooler: PostgresServer, postgres_url: str, tmp_path: Path, project: Path, clock: FakeClock
) -> None:
    addresses = {"database_url": pooler.url(name_in(postgres_url)), "database_direct_url": postgres_url}
    with (
        opened(tmp_path / "one", project, clock, **addresses) as one,
        opened(tmp_path / "two", project, clock, **addresses) as two,
    ):
        # Often enough that the driver would prepare the statements by itself.
        for n in range(6):
            fill(one, f"round{n}")
            assert two.memories.recall(f"round{n} Kafka", mode="text").results
        assert state(one) == state(two)
        heard = database_of(two)
        heard.wait_for_change(0)
        one.memories.capture("news")
        assert heard.wait_for_change(20)
        assert database_of(one).leads("upkeep") and not heard.leads("upkeep")
        one.upkeep()
        database_of(one).compact()
        assert one.check() == []
