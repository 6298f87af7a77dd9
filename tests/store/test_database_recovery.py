"""PostgreSQL's own backups: a dump that is restored, and recovery to a moment; the store goes on from there."""

from __future__ import annotations

import shutil
import time
from pathlib import Path

import pytest

from cortex_py import Cortex
from cortex_py.core.clock import SystemClock
from cortex_py.core.security.callers import Caller
from cortex_py.team.postgres.engine import open_postgres
from inside import database_of
from timing import MINUTE

from homes import fill, opened, state
from postgres_server import PostgresServer, name_in, running_server

pytestmark = pytest.mark.sqlite_only  # it brings its own databases

ANN = Caller("ann", "bot", frozenset(("read",)), "token:1")


def _sequence(cortex: Cortex) -> int:
    with database_of(cortex).read() as session:
        ((seq,),) = session.rows("SELECT seq FROM space_change WHERE space = ?", (cortex.project.id,))
    return int(seq)


def _goes_on(cortex: Cortex, sequence: int, events: int) -> None:
    """A store is whole, and its next changes follow those before."""
    assert cortex.check() == []
    assert cortex.audit.verify().events == events
    cortex.audit.record(ANN, "tool:after", "ok")
    assert cortex.audit.verify().events == events + 1
    fresh = cortex.memories.capture("written after the recovery")
    assert _sequence(cortex) > sequence
    assert cortex.memories.recall("recovery").results[0].memory.id == fresh.id
    assert database_of(cortex).caller_role()  # type: ignore[attr-defined]


def test_a_dump_is_restored_elsewhere_and_goes_on(postgres_server: PostgresServer, home: Path, project: Path) -> None:
    dump = postgres_server.folder / "cortex.dump"
    with postgres_server.database() as url:
        with opened(home, project, database_url=url) as cortex:
            fill(cortex)
            cortex.audit.record(ANN, "tool:before", "ok")
            before, sequence = state(cortex), _sequence(cortex)
            events = cortex.audit.verify().events
        name = name_in(url)
        reached = ["-h", postgres_server.folder, "-U", "postgres"]
        postgres_server.call("pg_dump", *reached, "-Fc", "-f", dump, name)
    with postgres_server.empty_database("restored") as restored:
        restoring = ["--no-owner", "--no-acl", "--exit-on-error", "-d", "restored"]
        postgres_server.call("pg_restore", *reached, *restoring, dump)
        dump.unlink()
        with opened(home, project, database_url=restored) as cortex:
            assert state(cortex) == before
            assert [hit.memory.content for hit in cortex.memories.recall("Kafka events", limit=1).results] == [
                "first: we decided on Kafka for events"
            ]
            _goes_on(cortex, sequence, events)


@pytest.mark.soak
def test_a_store_is_recovered_to_the_moment_before_a_mistake(home: Path, project: Path) -> None:
    with running_server(durable=True, settings={"archive_mode": "on"}) as server:
        archive = server.folder / "archive"
        archive.mkdir()
        if "user" in server.as_user:
            shutil.chown(archive, server.as_user["user"], server.as_user["group"])  # type: ignore[call-overload]
        server.run(f"ALTER SYSTEM SET archive_command = 'cp %p {archive}/%f'")
        server.run("SELECT pg_reload_conf()")
        server.run("CREATE DATABASE team")
        open_postgres(server.url("team"), SystemClock()).close()
        settings = server.settings | {"archive_mode": "off"}
        recovered = PostgresServer(server.folder / "recovered", server.programs, settings, server.as_user)
        source = ["-h", server.folder, "-U", "postgres", "-c", "fast", "-X", "none"]
        server.call("pg_basebackup", "-D", recovered.folder / "data", *source)
        with opened(home, project, database_url=server.url("team")) as cortex:
            ids = fill(cortex)
            cortex.audit.record(ANN, "tool:before", "ok")
            before, sequence = state(cortex), _sequence(cortex)
            events = cortex.audit.verify().events
            ((moment,),) = server.run("SELECT clock_timestamp()::text")
            cortex.audit.record(ANN, "tool:mistake", "ok")
            for one in ids:
                cortex.memories.delete(one, hard=True)
        ((segment,),) = server.run("SELECT pg_walfile_name(pg_switch_wal())")
        until = time.monotonic() + MINUTE
        while not (archive / str(segment)).exists():
            assert time.monotonic() < until
            time.sleep(0.05)
        server.stop()
        _recover(recovered, archive, str(moment))
        try:
            # The same home: its key seals the audit log.
            with opened(home, project, database_url=recovered.url("team")) as cortex:
                assert state(cortex) == before
                _goes_on(cortex, sequence, events)
        finally:
            recovered.abandon()


def _recover(server: PostgresServer, archive: Path, moment: str) -> None:
    data = server.folder / "data"
    with (data / "postgresql.auto.conf").open("a", encoding="utf-8") as settings:
        settings.write(f"restore_command = 'cp {archive}/%f %p'\n")
        settings.write(f"recovery_target_time = '{moment}'\nrecovery_target_action = 'promote'\n")
    signal = data / "recovery.signal"
    signal.touch()
    signal.chmod(0o666)
    server.start()
    until = time.monotonic() + MINUTE
    while server.run("SELECT pg_is_in_recovery()") != [(False,)]:
        assert time.monotonic() < until
        time.sleep(0.05)
