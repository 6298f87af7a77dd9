"""Schema changes while a PostgreSQL store is used: what a step may say, and how long others wait for it."""

from __future__ import annotations

import re
import threading
import time
from collections.abc import Iterator
from pathlib import Path

import pytest

from cortex_py.core.clock import SystemClock
from cortex_py.core.store import migrations
from cortex_py.team.postgres import engine
from cortex_py.team.postgres.engine import POSTGRES_STEPS, open_postgres
from cortex_py.team.postgres.online import later_indexes
from timing import MINUTE

from homes import opened
from old_schemas import use_schema
from postgres_server import PostgresServer

pytestmark = pytest.mark.sqlite_only  # it brings its own database

_EVERY_STEP = [(*ours, *own) for ours, own in zip(migrations.MIGRATIONS, POSTGRES_STEPS, strict=True)]
SAMPLE = ("ALTER TABLE memory ADD COLUMN sample TEXT", "CREATE INDEX memory_sample ON memory (space, sample)")
_VALID = "SELECT c.relname FROM pg_index i JOIN pg_class c ON c.oid = i.indexrelid WHERE i.indisvalid"


def _step(monkeypatch: pytest.MonkeyPatch, *statements: str) -> None:
    """A version that comes after this one."""
    monkeypatch.setattr(migrations, "MIGRATIONS", (*migrations.MIGRATIONS, statements))
    monkeypatch.setattr(migrations, "SCHEMA_VERSION", migrations.SCHEMA_VERSION + 1)
    monkeypatch.setattr(engine, "POSTGRES_STEPS", (*POSTGRES_STEPS, ()))


# The steps from this one on follow the rule. They take no time however many rows there are, and a server of the version
# before goes on: a new column has no default, or a constant, and nothing is dropped but an index that another replaces.
_FIRST_RULED = 20
_QUICK = (
    r"CREATE INDEX \w+ ON \w+\b",
    r"CREATE TABLE \w+\b",
    r"ALTER TABLE \"?\w+\"? ADD COLUMN \w+ \w+(\[\])?( NOT NULL DEFAULT ('[^']*'|-?\d+)| DEFAULT \S+)?$",
    r"ALTER TABLE \"?\w+\"? (ENABLE ROW LEVEL SECURITY$|SET \()",
    r"(CREATE|ALTER|DROP) POLICY\b",
    r"CREATE (OR REPLACE )?FUNCTION\b",
    r"DROP INDEX \w+$",
    r"INSERT INTO \w+ \([^)]*\) VALUES\b",
)


def test_every_later_step_follows_the_rule() -> None:
    """Add a column or a table, let upkeep fill it, and drop what nobody uses in a version after that."""
    quick = re.compile("|".join(rf"\s*(?:{form})" for form in _QUICK))
    for statements in _EVERY_STEP[_FIRST_RULED - 1 :]:
        assert [statement for statement in statements if not quick.match(statement)] == []


def test_indexes_of_an_older_store_are_built_beside_its_use(
    postgres_server: PostgresServer, tmp_path: Path, project: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    later = set(later_indexes(_EVERY_STEP))
    assert later == {
        "memory_unlooked", "memory_user", "memory_agent", "memory_pending",
        "memory_filed", "memory_of_line", "memory_source", "memory_expiring",
    }  # fmt: skip
    with postgres_server.empty_database("older") as url:
        with monkeypatch.context() as old:
            use_schema(old, 13)
            with opened(tmp_path / "old", project, database_url=url) as cortex:
                cortex.memories.capture("from an earlier version")
        assert not later & {row[0] for row in postgres_server.run(_VALID, "older")}
        with opened(tmp_path / "new", project, database_url=url) as cortex:
            assert cortex.memories.recall("earlier").total == 1
        assert later <= {row[0] for row in postgres_server.run(_VALID, "older")}
        # Interrupted while it built one: the next start completes it.
        postgres_server.run("DROP INDEX memory_user", "older")
        open_postgres(url, SystemClock()).close()
        assert later <= {row[0] for row in postgres_server.run(_VALID, "older")}


def test_nobody_waits_behind_a_step_that_waits(postgres_url: str, monkeypatch: pytest.MonkeyPatch) -> None:
    database = open_postgres(postgres_url, SystemClock())
    _step(monkeypatch, *SAMPLE)
    migrating = threading.Thread(target=lambda: open_postgres(postgres_url, SystemClock()).close())
    with database.read() as long_one:
        long_one.rows("SELECT count(*) FROM memory")
        migrating.start()
        # The step cannot have the table before this transaction ends; meanwhile others read on.
        until = time.monotonic() + 1.5
        while time.monotonic() < until:
            with database.read() as session:
                session.rows("SELECT count(*) FROM memory")
        assert migrating.is_alive()
    migrating.join(MINUTE)
    with database.read() as session:
        assert session.rows("SELECT count(sample) FROM memory") == [(0,)]
    database.close()


# -- a large store ---------------------------------------------------------------------------------

_ROWS = 1_000_000
# The longest that anybody waits for a lock. The builder of an index waits for older transactions and keeps nobody.
_WAITS = (
    "SELECT coalesce(max(extract(epoch FROM clock_timestamp() - waitstart)), 0)::float8 "
    "FROM pg_locks WHERE NOT granted AND locktype <> 'virtualxid'"
)


def _multiply(server: PostgresServer, database: str) -> None:
    """Make a million of the one memory in the store."""
    columns = [
        str(row[0])
        for row in server.run(
            "SELECT column_name::text FROM information_schema.columns WHERE table_name = 'memory'", database
        )
    ]
    made = {"num": "m.num + n", "id": "md5(n::text) || '00000000'", "seq": "m.seq + n", "space": "'many ' || n % 100"}
    server.run(
        f"INSERT INTO memory ({', '.join(columns)}) SELECT {', '.join(made.get(one, f'm.{one}') for one in columns)} "
        f"FROM memory m, generate_series(1, {_ROWS}) n",
        database,
    )


class _Watch(threading.Thread):
    """Notes the longest wait for a lock, as the server sees it."""

    def __init__(self, server: PostgresServer, database: str) -> None:
        super().__init__(name="watch")
        self._server, self._database = server, database
        self.done = threading.Event()
        self.longest = 0.0

    def run(self) -> None:
        import psycopg

        with psycopg.connect(self._server.url(self._database), autocommit=True) as connection:
            while not self.done.wait(0.01):
                ((waited,),) = connection.execute(_WAITS.encode()).fetchall()
                self.longest = max(self.longest, waited)


@pytest.fixture
def large(postgres_server: PostgresServer, tmp_path: Path, project: Path) -> Iterator[str]:
    with postgres_server.empty_database("large") as url:
        with opened(tmp_path / "fill", project, database_url=url) as cortex:
            cortex.memories.capture("one of a million")
        _multiply(postgres_server, "large")
        yield "large"


@pytest.mark.soak
def test_a_step_on_a_million_rows_keeps_nobody_waiting_for_a_second(
    postgres_server: PostgresServer, large: str, tmp_path: Path, project: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    url = postgres_server.url(large)
    watch = _Watch(postgres_server, large)
    calls: list[float] = []
    faults: list[BaseException] = []

    def work() -> None:
        try:
            with opened(tmp_path / "writer", project, database_url=url) as cortex:
                while not watch.done.is_set():
                    began = time.monotonic()
                    cortex.memories.capture(f"note {len(calls)}")
                    calls.append(time.monotonic() - began)
        except BaseException as error:  # noqa: BLE001  # reported where the thread is joined
            faults.append(error)

    writer = threading.Thread(target=work)
    writer.start()
    until = time.monotonic() + MINUTE
    while len(calls) < 20 and time.monotonic() < until:
        time.sleep(0.05)
    before = len(calls)
    watch.start()
    _step(monkeypatch, *SAMPLE)
    began = time.monotonic()
    open_postgres(url, SystemClock()).close()
    took = time.monotonic() - began
    watch.done.set()
    writer.join()
    watch.join()
    assert faults == []
    print(
        f"step in {took:.1f} s, {len(calls) - before} captures meanwhile, the longest in {max(calls[before:]):.2f} s; "
        f"longest wait for a lock {watch.longest:.2f} s"
    )
    assert "memory_sample" in {row[0] for row in postgres_server.run(_VALID, large)}
    assert watch.longest < 1.0
