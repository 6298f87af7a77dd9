"""A database that restarts, hangs up or is gone: what is waited for, what is told, what is never repeated."""

from __future__ import annotations

import subprocess
import sys
import threading
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import psycopg
import pytest

from cortex_py.core.clock import SystemClock
from cortex_py.core.errors import StoreUnavailable
from cortex_py.core.store.database import Session, retry_once
from cortex_py.team.postgres.engine import PostgresDatabase, open_postgres
from cortex_py.team.postgres.pool import ConnectionPool
from inside import database_of
from timing import MINUTE, no_hang

from helpers import FakeClock
from homes import opened
from postgres_server import PostgresServer, running_server

pytestmark = pytest.mark.sqlite_only  # it starts a server of its own


@pytest.fixture(scope="module")
def own_server() -> Iterator[PostgresServer]:
    """A server that may be stopped: the others of this process are not disturbed."""
    with running_server(durable=True) as server:
        yield server


@pytest.fixture
def url(own_server: PostgresServer) -> Iterator[str]:
    with own_server.database() as made:
        yield made


def _sequence(database: PostgresDatabase) -> int:
    with database.read() as session:
        return int(session.rows("SELECT revision FROM tenancy")[0][0])


def _set_sequence(session: Session, value: int) -> None:
    session.run("UPDATE tenancy SET revision = ?", (value,))


# -- waiting ---------------------------------------------------------------------------------------


@pytest.mark.slow
@pytest.mark.parametrize("way", ["stop", "kill"])
def test_calls_wait_while_the_server_restarts(own_server: PostgresServer, url: str, way: str) -> None:
    database = open_postgres(url, SystemClock(), retry_seconds=30)
    with database.write() as session:
        _set_sequence(session, 7)
    getattr(own_server, way)()
    seen: list[int] = []
    readers = [threading.Thread(target=lambda: seen.append(_sequence(database))) for _ in range(4)]
    for one in readers:
        one.start()
    while not database.vitals().retries:
        time.sleep(0.01)
    own_server.start()
    for one in readers:
        one.join()
    assert seen == [7] * 4
    assert database.vitals().in_use == 0
    database.close()


def test_the_waiting_is_bounded(own_server: PostgresServer, url: str) -> None:
    database = open_postgres(url, SystemClock(), retry_seconds=0.3)
    own_server.stop()
    try:
        began = time.monotonic()
        with pytest.raises(StoreUnavailable, match="cannot be reached") as told, database.read():
            pass
        assert 0.3 <= time.monotonic() - began < MINUTE
        assert not told.value.perhaps_written
        assert database.vitals().retries
        # A probe does not wait for it.
        with pytest.raises(StoreUnavailable):
            database.ping(2)
    finally:
        own_server.start()
    database.ping(2)
    assert _sequence(database) == 0
    database.close()


def test_a_server_that_was_never_there_is_told_at_once(tmp_path: Path) -> None:
    with no_hang(), pytest.raises(StoreUnavailable):
        open_postgres(f"postgresql://me@/db?host={tmp_path}", SystemClock(), retry_seconds=600)


@pytest.mark.slow
def test_a_writer_that_waits_for_its_turn_outlives_a_restart(own_server: PostgresServer, url: str) -> None:
    """It has done nothing yet, so it begins anew; the one that held the lock is told."""
    holder, waiter = (
        open_postgres(url, SystemClock(), retry_seconds=30),
        open_postgres(url, SystemClock(), retry_seconds=30),
    )

    def wait() -> None:
        with waiter.write() as session:
            _set_sequence(session, 3)

    thread = threading.Thread(target=wait)
    with pytest.raises(StoreUnavailable) as told, holder.write() as session:
        _set_sequence(session, 99)
        thread.start()
        waiting = "SELECT count(*) FROM pg_locks WHERE locktype = 'advisory' AND NOT granted"
        while own_server.run(waiting) != [(1,)]:
            time.sleep(0.01)
        own_server.kill()
        own_server.start()
        session.rows("SELECT 1")
    assert not told.value.perhaps_written
    thread.join()
    assert _sequence(holder) == 3
    holder.close()
    waiter.close()


# -- what may have been written --------------------------------------------------------------------


def test_a_change_that_broke_before_its_commit_was_not_written(own_server: PostgresServer, url: str) -> None:
    database = open_postgres(url, SystemClock())
    with pytest.raises(StoreUnavailable, match="Nothing was written") as told, database.write() as session:
        _set_sequence(session, 99)
        own_server.cut(url)
        session.rows("SELECT 1")
    assert told.value.remedy
    assert not told.value.perhaps_written
    assert _sequence(database) == 0
    assert database.vitals().lost == 1
    database.close()


def test_a_commit_whose_answer_is_lost_is_told_as_such(own_server: PostgresServer, url: str) -> None:
    database = open_postgres(url, SystemClock())
    with pytest.raises(StoreUnavailable, match="may have been written or not") as told, database.write() as session:
        _set_sequence(session, 99)
        own_server.cut(url)
    assert told.value.perhaps_written
    # A read has nothing to commit.
    with pytest.raises(StoreUnavailable, match="Nothing was written"), database.read() as session:
        session.rows("SELECT 1")
        own_server.cut(url)
    database.close()


def test_work_is_repeated_only_where_that_adds_nothing() -> None:
    def failing(perhaps_written: bool) -> tuple[list[int], object]:
        done: list[int] = []

        def work() -> int:
            done.append(1)
            if len(done) == 1:
                raise StoreUnavailable("lost.", remedy="x", perhaps_written=perhaps_written)
            return len(done)

        return done, work

    for perhaps_written, keyed in ((False, False), (False, True), (True, True)):
        done, work = failing(perhaps_written)
        assert retry_once(work, keyed=keyed) == 2  # type: ignore[arg-type]
    done, work = failing(True)
    with pytest.raises(StoreUnavailable):
        retry_once(work)  # type: ignore[arg-type]
    assert done == [1]


class _Cutting:
    """Cuts the connection of the next change: at its `beginning`, or `after` it was committed, before that is told."""

    def __init__(self, server: PostgresServer, url: str, monkeypatch: pytest.MonkeyPatch) -> None:
        self.at: str | None = None
        whole = ConnectionPool.connection

        @contextmanager
        def connection(pool: ConnectionPool, begin: str = "") -> Iterator[psycopg.Connection[Any]]:
            with whole(pool, begin) as real:
                at = None
                if "READ WRITE" in begin:
                    at, self.at = self.at, None
                if at == "beginning":
                    server.cut(url)
                yield real if at != "after" else _Deaf(real)  # type: ignore[misc]

        monkeypatch.setattr(ConnectionPool, "connection", connection)


class _Deaf:
    def __init__(self, connection: psycopg.Connection[Any]) -> None:
        self._connection = connection

    def cursor(self, **options: Any) -> Any:
        return self._connection.cursor(**options)

    def execute(self, statement: str) -> Any:
        assert statement == "COMMIT"
        self._connection.execute(statement)
        self._connection.close()
        raise psycopg.OperationalError("the answer was lost")


def test_a_capture_is_repeated_unless_it_may_be_there_already(
    own_server: PostgresServer,
    url: str,
    home: Path,
    project: Path,
    clock: FakeClock,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    with opened(home, project, clock, database_url=url) as cortex:
        cortex.memories.capture("the first makes the connection")
        cutting = _Cutting(own_server, url, monkeypatch)
        cutting.at = "beginning"
        cortex.memories.capture("cut before anything was written")
        cutting.at = "after"
        with pytest.raises(StoreUnavailable) as told:
            cortex.memories.capture("the answer to its commit was lost")
        assert told.value.perhaps_written
        cutting.at = "after"
        kept = cortex.memories.capture("lost too, and found again by its key", idempotency_key="once")
        assert cutting.at is None
        found = [hit.memory for hit in cortex.memories.recall(limit=20).results]
        assert sorted(memory.content for memory in found) == [
            "cut before anything was written",
            "lost too, and found again by its key",
            "the answer to its commit was lost",
            "the first makes the connection",
        ]
        assert kept.id in {memory.id for memory in found}


# -- one of several --------------------------------------------------------------------------------

HOLDER = """
import sys, time
from cortex_py.core.clock import SystemClock
from cortex_py.team.postgres.engine import open_postgres
database = open_postgres(sys.argv[1], SystemClock())
print(database.leads("upkeep"), flush=True)
sys.stdin.read()
"""


def test_one_process_leads_and_is_followed_when_it_is_killed(url: str) -> None:
    first = subprocess.Popen(
        [sys.executable, "-c", HOLDER, url], stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True
    )
    assert first.stdout is not None and first.stdin is not None
    assert first.stdout.readline() == "True\n"
    database = open_postgres(url, SystemClock())
    assert not database.leads("upkeep")
    # Another name is another matter, and another schema too.
    assert database.leads("snapshots of x")
    first.kill()
    first.wait()
    first.stdout.close()
    first.stdin.close()
    until = time.monotonic() + MINUTE
    while not database.leads("upkeep"):
        assert time.monotonic() < until
        time.sleep(0.02)
    other = open_postgres(url, SystemClock())
    assert not other.leads("upkeep")
    assert database.leads("upkeep")
    database.close()
    assert other.leads("upkeep")
    other.close()


def test_whoever_leads_and_loses_the_connection_is_one_of_all_again(own_server: PostgresServer, url: str) -> None:
    one, two = open_postgres(url, SystemClock()), open_postgres(url, SystemClock())
    assert one.leads("upkeep")
    own_server.cut(url)
    assert two.leads("upkeep")
    assert not one.leads("upkeep")
    one.close()
    two.close()


def test_shared_upkeep_is_done_by_one_and_its_own_by_each(
    url: str, tmp_path: Path, project: Path, clock: FakeClock
) -> None:
    with (
        opened(tmp_path / "one", project, clock, database_url=url, compress_after_minutes=1) as one,
        opened(tmp_path / "two", project, clock, database_url=url, compress_after_minutes=1) as two,
    ):
        one.memories.capture("long enough to be packed: " + "alpha beta gamma " * 200)
        assert two.upkeep().records == 0
        clock.advance(minutes=5)
        assert one.upkeep().records == 0
        one.memories.recall("alpha")
        one.upkeep()
        with database_of(two).read() as session:
            assert session.rows("SELECT count(*) FROM recalled")[0][0] == 1
        assert two.upkeep().records == 1
        two.close()
        one.memories.capture("also long enough: " + "delta epsilon " * 200)
        clock.advance(minutes=5)
        assert one.upkeep().records == 1
