"""The PostgreSQL engine by itself: order of commits, other processes, lost connections, refusals, older schemas."""

from __future__ import annotations

import json
import os
import subprocess
import sys
import threading
import traceback
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import pytest
from psycopg import errors

from cases import each
from cortex_py import Cortex, NewMemory
from cortex_py.core.clock import Limit, SystemClock, apply_limit
from cortex_py.core.config import load_settings
from cortex_py.core.errors import (
    ConfigurationError,
    CortexError,
    DeadlineExceeded,
    StorageError,
    StoreBusy,
    StoreCorrupt,
    StoreDenied,
    StoreFull,
    StoreReadOnly,
    StoreTooNew,
    StoreUnavailable,
)
from cortex_py.core.store import migrations
from cortex_py.core.store.packing import Dictionaries
from cortex_py.core.store.search.process_space import changes_of
from cortex_py.core.store.tables.memories import MemoryTable
from cortex_py.team.postgres.engine import PostgresDatabase, as_postgres, open_postgres
from cortex_py.team.postgres.errors import translate_errors
from cortex_py.team.postgres.pool import ConnectionPool
from inside import database_of, store_of
from timing import no_hang

from forking import python_command
from helpers import FakeClock
from homes import fill, opened, state
from postgres_server import PostgresServer, name_in
from stub_backend import StubBackend

WRITER = Path(__file__).parents[1] / "faults" / "writer.py"


@pytest.fixture
def database(postgres_url: str) -> Iterator[PostgresDatabase]:
    opened_database = open_postgres(postgres_url, SystemClock())
    yield opened_database
    opened_database.close()


def test_a_statement_that_outlasts_its_call_is_stopped_by_the_server(database: PostgresDatabase) -> None:
    with (
        no_hang(),
        apply_limit(Limit(0.3)),
        pytest.raises(DeadlineExceeded),
        database.write() as session,
    ):
        session.run("CREATE TABLE by_half (x int)")
        session.rows("SELECT pg_sleep(120)")
    with database.read() as session:
        assert not database.has_table(session, "by_half")
        assert session.rows("SHOW statement_timeout") == [("0",)]


# -- spelling ------------------------------------------------------------------------------------


@each(
    ("sql", "spelled"),
    [
        ("SELECT a FROM b WHERE c = ? AND d = '?'", "SELECT a FROM b WHERE c = %s AND d = '?'"),
        ("SELECT 5 % 2, '100 %', 'it''s ?'", "SELECT 5 %% 2, '100 %%', 'it''s ?'"),
        ("SELECT 1 WHERE a IN () OR b NOT IN ()", "SELECT 1 WHERE a = ANY('{}') OR b <> ALL('{}')"),
        ("CREATE TABLE t (a INTEGER, b REAL, c BLOB)", "CREATE TABLE t (a BIGINT, b DOUBLE PRECISION, c BYTEA)"),
        ("ALTER TABLE t ADD COLUMN kind TEXT NOT NULL", 'ALTER TABLE t ADD COLUMN kind TEXT COLLATE "C" NOT NULL'),
        ("INSERT INTO t (a) VALUES ('REAL TEXT')", "INSERT INTO t (a) VALUES ('REAL TEXT')"),
    ],
)
def test_statements_are_spelled_for_the_engine(sql: str, spelled: str) -> None:
    assert as_postgres(sql) == spelled


def test_every_text_sorts_by_its_bytes_and_only_memories_are_numbered_by_the_engine(
    database: PostgresDatabase,
) -> None:
    with database.read() as session:
        columns = session.rows(
            "SELECT table_name, column_name, data_type, collation_name, is_identity FROM information_schema.columns "
            "WHERE table_schema = current_schema() ORDER BY 1, 2"
        )
    texts = [row for row in columns if row[2] in ("text", "ARRAY")]
    assert len(texts) > 50
    assert {row[3] for row in texts} == {"C"}
    assert {row[2] for row in columns} == {"text", "ARRAY", "bigint", "bytea", "double precision"}
    assert [row[:2] for row in columns if row[4] == "YES"] == [("memory", "num")]


# -- transactions --------------------------------------------------------------------------------


def test_a_read_sees_one_moment(database: PostgresDatabase, postgres_url: str) -> None:
    with database.read() as session:
        assert session.rows("SELECT revision FROM tenancy") == [(0,)]
        with database.write() as other:
            other.run("UPDATE tenancy SET revision = revision + 1")
        assert session.rows("SELECT revision FROM tenancy") == [(0,)]
    with database.read() as session:
        assert session.rows("SELECT revision FROM tenancy") == [(1,)]


def test_an_error_rolls_back_and_the_connection_is_used_again(database: PostgresDatabase) -> None:
    with pytest.raises(KeyError), database.write() as session:
        session.run("UPDATE tenancy SET revision = 77")
        raise KeyError
    with pytest.raises(StorageError, match="failed before it was committed"), database.write() as session:
        session.run("UPDATE tenancy SET revision = 78")
        with pytest.raises(Exception, match="division by zero"):
            session.run("SELECT 1/0")
    with database.read() as session:
        assert session.rows("SELECT revision FROM tenancy") == [(0,)]
    assert database.vitals().idle == 1


def test_nothing_is_written_in_a_read(database: PostgresDatabase) -> None:
    with pytest.raises(StoreReadOnly), database.read() as session:
        session.run("UPDATE tenancy SET revision = 1")


def test_the_sequence_follows_the_order_of_commits(postgres_url: str) -> None:
    """Whoever has read up to a change misses nothing: no change with a smaller number comes later."""
    bases = [open_postgres(postgres_url, SystemClock()) for _ in range(3)]
    stop = threading.Event()

    def write(database: PostgresDatabase, mark: int) -> None:
        for turn in range(40):
            with database.write("shared") as session:
                seq = MemoryTable(database, Dictionaries(database)).next_seq(session, "shared")
                session.run("INSERT INTO purged (space, num, seq) VALUES ('shared', ?, ?)", (1_000 * mark + turn, seq))

    seen: list[int] = []

    def read(database: PostgresDatabase) -> None:
        last, done = 0, False
        while not done:
            done = stop.is_set()
            with database.read() as session:
                now = changes_of(session, ["shared"])["shared"]
                seen.extend(
                    row[0] for row in session.rows("SELECT seq FROM purged WHERE seq > ? ORDER BY seq", (last,))
                )
                last = now

    with ThreadPoolExecutor(3) as pool:
        reading = pool.submit(read, bases[2])
        list(pool.map(write, bases[:2], range(2)))
        stop.set()
        reading.result()
    assert seen == list(range(1, 81))
    for base in bases:
        base.close()


def test_a_writer_that_waits_too_long_is_told(database: PostgresDatabase, postgres_url: str) -> None:
    other = PostgresDatabase(postgres_url, wait_seconds=0.05)
    with database.write(), pytest.raises(StoreBusy), other.write():
        pass
    with other.write() as session:
        assert session.rows("SELECT 1") == [(1,)]
    other.close()


# -- processes -----------------------------------------------------------------------------------


def test_two_processes_write_at_once_and_nothing_is_lost(
    home: Path, project: Path, postgres_url: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("CORTEX_DATABASE_URL", postgres_url)
    command = [*python_command(), str(WRITER), str(home), str(project)]
    processes = [
        subprocess.Popen([*command, str(number), "25"], stdout=subprocess.PIPE, text=True) for number in range(2)
    ]
    written = [one for process in processes for one in json.loads(process.communicate()[0])]
    assert [process.returncode for process in processes] == [0, 0]
    with Cortex.open(home, project=project, backend=StubBackend()) as cortex:
        assert cortex.check() == []
        assert cortex.memories.recall(limit=1).total == len(set(written)) == 50
        with database_of(cortex).read() as session:
            changes = [row[0] for row in session.rows("SELECT seq FROM memory ORDER BY num")]
        assert changes == sorted(set(changes))


def test_what_another_home_writes_is_noticed_at_once(
    tmp_path: Path, project: Path, clock: FakeClock, postgres_url: str
) -> None:
    with (
        opened(tmp_path / "one", project, clock, database_url=postgres_url) as one,
        opened(tmp_path / "two", project, clock, database_url=postgres_url) as two,
    ):
        assert not two.memories.recall("kafka").results
        before = two.memories.revision()
        made = one.memories.capture("Kafka carries events")
        assert two.memories.revision() > before
        assert [hit.memory.id for hit in two.memories.recall("kafka").results] == [made.id]
        one.prompts.save("greet", "Hello {{name}}", domain="project")
        assert two.prompts.get("greet").content == "Hello {{name}}"
        two.memories.delete(made.id, hard=True)
        assert not one.memories.recall("kafka").results


def test_two_homes_write_in_one_line_of_work_and_both_files_show_it_all(
    tmp_path: Path, project: Path, clock: FakeClock, postgres_url: str
) -> None:
    with (
        opened(tmp_path / "one", project, clock, database_url=postgres_url) as one,
        opened(tmp_path / "two", project, clock, database_url=postgres_url) as two,
    ):
        branch = one.contexts.create_branch("Speed up")
        for turn in range(6):
            clock.advance(seconds=1)
            (one, two)[turn % 2].contexts.append(branch.id, f"step {turn}", "user")
        told = [f"step {turn}" for turn in range(6)]
        for cortex in (one, two):
            assert [memory.content for memory in cortex.contexts.content(branch.id)] == told
            cortex.contexts.sync(branch.id)
            assert [memory.content for memory in cortex.contexts.content(branch.id)] == told


@pytest.mark.soak
def test_equal_texts_are_looked_up_in_their_index_before_anything_was_counted(
    home: Path, project: Path, clock: FakeClock, postgres_url: str
) -> None:
    """A filling would otherwise take the longer the more there is, until the engine looks at its tables."""
    asked = "SELECT idx_tup_fetch + seq_tup_read FROM pg_stat_xact_user_tables WHERE relname = 'memory'"
    with opened(home, project, clock, database_url=postgres_url) as cortex:
        # Of fewer rows the engine takes all its indexes for equally good.
        cortex.memories.capture_many([NewMemory(content=f"note {n}") for n in range(1_500)])
        store, space = store_of(cortex), cortex.project.id
        with store.database.read() as session:
            digests = [row[0] for row in session.rows("SELECT digest FROM memory WHERE space = ? LIMIT 100", (space,))]
            ((before,),) = session.rows(asked)
            assert len(store.memories.oldest_by_digest(session, space, [*digests, b"nobody's"])) == len(digests)
            assert session.rows(asked) == [(before + len(digests),)]


def test_two_schemas_of_one_database_are_two_stores(
    tmp_path: Path, project: Path, clock: FakeClock, postgres_server: PostgresServer, postgres_url: str
) -> None:
    postgres_server.run("CREATE SCHEMA team", name_in(postgres_url))
    apart = f"{postgres_url}?options=-csearch_path%3Dteam"
    with (
        opened(tmp_path / "one", project, clock, database_url=postgres_url) as one,
        opened(tmp_path / "two", project, clock, database_url=apart) as two,
    ):
        made = one.memories.capture("Kafka carries events")
        assert [hit.memory.id for hit in one.memories.recall("kafka").results] == [made.id]
        assert not two.memories.recall("kafka").results
        database_of(two).compact()
        assert two.check() == []


# -- connections ---------------------------------------------------------------------------------


def test_idle_connections_that_were_cut_are_replaced_unnoticed(
    postgres_server: PostgresServer, database: PostgresDatabase, postgres_url: str
) -> None:
    with database.read(), database.read(), database.read():
        pass
    assert database.vitals().idle == 3
    postgres_server.cut(postgres_url)
    with database.write() as session:
        session.run("UPDATE tenancy SET revision = 5")
    with database.read() as session:
        assert session.rows("SELECT revision FROM tenancy") == [(5,)]


def test_connections_are_bounded_and_closed(postgres_server: PostgresServer, postgres_url: str) -> None:
    pool = ConnectionPool(postgres_url, connections=2, wait_seconds=0.05)
    with pool.connection(), pool.connection(), pytest.raises(StoreBusy, match="in use"), pool.connection():
        pass
    with pool.connection():
        pass
    pool.close()
    with pytest.raises(StorageError, match="closed"), pool.connection():
        pass
    count = f"SELECT count(*) FROM pg_stat_activity WHERE datname = '{name_in(postgres_url)}' AND state = 'active'"
    assert postgres_server.run(count) == [(0,)]


def test_it_gives_back_space_and_finds_faults(database: PostgresDatabase) -> None:
    assert database.check() == []
    assert database.size_bytes() > 0
    database.compact()
    with database.write() as session:
        session.run("INSERT INTO memory_text (num, space, words) VALUES (12, 's', '{ghi}')")
        assert [database.text_matches(session, "s", word, [], 5) for word in ("abc", "ghi")] == [[], [12]]
    assert database.check() == ["1 entries of the text index belong to no memory"]


_FORKING = """
import os, signal, sys, threading, warnings
from cortex_py.core.clock import SystemClock
from cortex_py.team.postgres.engine import open_postgres

warnings.simplefilter("ignore")
signal.alarm(50)
database = open_postgres(sys.argv[1], SystemClock())

def backend():
    with database.read() as session:
        return session.rows("SELECT pg_backend_pid()")[0][0]

before = [backend(), database.leads("work"), database.wait_for_change(0)]
inside, go = threading.Event(), threading.Event()

def work():
    with database.write("held"):
        inside.set()
        go.wait(40)

thread = threading.Thread(target=work)
thread.start()
inside.wait(40)
child = os.fork()
if child == 0:
    signal.alarm(40)
    # Another lock, and a connection of its own for each purpose; those of the parent stay open.
    others = [backend() not in before, not database.leads("work"), database.wait_for_change(0)]
    others.append(not database.vitals().in_use)
    database.close()
    os._exit(sum(others))
code = os.waitstatus_to_exitcode(os.waitpid(child, 0)[1])
go.set()
thread.join()
print(code, [backend(), database.leads("work"), database.wait_for_change(0.1)] == [*before[:2], False])
"""


@pytest.mark.skipif(not hasattr(os, "fork"), reason="there are no forks here")
def test_a_forked_process_opens_connections_of_its_own(postgres_url: str) -> None:
    done = subprocess.run([sys.executable, "-c", _FORKING, postgres_url], capture_output=True, text=True, check=False)
    assert (done.stdout.split(), done.stderr) == (["4", "True"], "")


# -- refusals ------------------------------------------------------------------------------------

SECRET = "hunter2-hunter2"


@pytest.mark.parametrize(
    ("url", "error"),
    [
        (f"mysql://me:{SECRET}@somewhere/db", ConfigurationError),
        (f"postgresql://me:{SECRET}@[half/db", ConfigurationError),
        (f"postgresql://me:{SECRET}@127.0.0.1:port/db", StorageError),
        (f"postgres://me:{SECRET}@127.0.0.1:1/db", StorageError),
        (f"postgresql://me:{SECRET}@/db?host=/nowhere/at/all", StorageError),
        (f"postgresql://me:{SECRET}@127.0.0.1:1/db?bogus=1", ConfigurationError),
    ],
)
def test_a_place_that_cannot_be_reached_is_told_without_the_password(
    home: Path, project: Path, url: str, error: type[CortexError]
) -> None:
    with pytest.raises(error) as told:
        Cortex.open(home, project=project, backend=StubBackend(), database_url=url)
    assert told.value.remedy
    assert SECRET not in "".join(traceback.format_exception(told.value, limit=0))
    assert SECRET not in repr(load_settings(home, database_url=url))


@each(
    ("raised", "told"),
    [
        (errors.LockNotAvailable, StoreBusy),
        (errors.TooManyConnections, StoreBusy),
        (errors.DeadlockDetected, StoreBusy),
        (errors.DiskFull, StoreFull),
        (errors.ReadOnlySqlTransaction, StoreReadOnly),
        (errors.InsufficientPrivilege, StoreDenied),
        (errors.DataCorrupted, StoreCorrupt),
        (errors.AdminShutdown, StoreUnavailable),
        (errors.NumericValueOutOfRange, StorageError),
        (errors.InternalError_, StorageError),
    ],
)
def test_every_refusal_of_the_server_is_told_as_ours(raised: type[Exception], told: type[StorageError]) -> None:
    with pytest.raises(StorageError) as found, translate_errors("somewhere/db"):
        raise raised("the server's own words")
    assert type(found.value) is told
    assert found.value.remedy
    assert "somewhere/db" in found.value.message


def test_the_doctor_names_the_place_and_not_the_password(
    home: Path, project: Path, clock: FakeClock, postgres_server: PostgresServer, postgres_url: str
) -> None:
    url = postgres_server.url(name_in(postgres_url), password=SECRET)
    with opened(home, project, clock, database_url=url) as cortex:
        found = cortex.doctor()
    assert SECRET not in repr(found)
    assert found.checks[0].well
    assert found.checks[0].told.endswith(f"/{name_in(postgres_url)}")
    assert [one.purpose for one in found.outbound] == ["store"]


def test_a_missing_driver_is_told(home: Path, project: Path) -> None:
    """A process of its own: modules taken out of this one would be missing for the tests that follow."""
    script = (
        "import sys\n"
        "from pathlib import Path\n"
        "from cortex_py import Cortex\n"
        "sys.modules['psycopg'] = None\n"
        "Cortex.open(Path(sys.argv[1]), project=Path(sys.argv[2]), database_url='postgresql://127.0.0.1/db')"
    )
    found = subprocess.run(
        [sys.executable, "-c", script, str(home), str(project)], capture_output=True, text=True, check=False
    )
    assert found.returncode == 1
    assert "ConfigurationError" in found.stderr
    assert "pip install '.[postgres]'" in found.stderr


def test_a_database_that_is_not_there_or_not_ours_is_left_alone(postgres_server: PostgresServer) -> None:
    with pytest.raises(StorageError, match="does not exist"):
        open_postgres(postgres_server.url("no_such_database"), SystemClock())
    with postgres_server.empty_database("of_others") as url:
        postgres_server.run("CREATE TABLE project (name text)", "of_others")
        with pytest.raises(StoreCorrupt, match="not that of a Cortex store"):
            open_postgres(url, SystemClock())
        tables = "SELECT count(*) FROM pg_tables WHERE schemaname = 'public'"
        assert postgres_server.run(tables, "of_others") == [(1,)]


def test_a_role_without_rights_is_told(postgres_server: PostgresServer, postgres_url: str) -> None:
    name = name_in(postgres_url)
    postgres_server.run("CREATE ROLE stranger LOGIN")
    stranger = PostgresDatabase(postgres_server.url(name, user="stranger"))
    with pytest.raises(StoreDenied), stranger.write() as session:
        session.run("UPDATE tenancy SET revision = 1")
    stranger.close()
    with pytest.raises(StorageError, match="stranger"):
        open_postgres(postgres_server.url(name, user="stranger_yet"), SystemClock())
    postgres_server.run("DROP ROLE stranger")


def test_a_store_of_a_later_version_is_not_touched(
    database: PostgresDatabase, postgres_url: str, clock: FakeClock
) -> None:
    with database.write() as session:
        session.run("INSERT INTO schema_step (version, applied_at) VALUES (999, 0)")
    with pytest.raises(StoreTooNew):
        open_postgres(postgres_url, clock)


def test_a_store_of_an_older_schema_is_brought_up_to_date(
    postgres_server: PostgresServer, home: Path, project: Path, clock: FakeClock, monkeypatch: pytest.MonkeyPatch
) -> None:
    with postgres_server.empty_database("older") as url:
        with monkeypatch.context() as old:
            old.setattr(migrations, "MIGRATIONS", migrations.MIGRATIONS[:3])
            old.setattr(migrations, "SCHEMA_VERSION", 3)
            database = open_postgres(url, clock)
            with database.read() as session:
                assert not database.has_table(session, "saved")
            database.close()
        with opened(home, project, clock, database_url=url) as cortex:
            fill(cortex)
            assert state(cortex)
            assert cortex.check() == []


def test_only_a_cluster_can_take_a_distributed_store(
    home: Path, project: Path, clock: FakeClock, postgres_url: str
) -> None:
    with opened(home, project, clock) as cortex, pytest.raises(ConfigurationError, match="Only a store in PostgreSQL"):
        cortex.distribute()
    with opened(home, project, clock, database_url=postgres_url) as cortex:
        with pytest.raises(ConfigurationError, match="no Citus"):
            cortex.distribute()
        with pytest.raises(ConfigurationError, match="1 to 1024"):
            cortex.distribute(0)
        assert cortex.memories.capture("still there").id
