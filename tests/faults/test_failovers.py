"""The primary is killed again and again under many clients, and its replica promoted: nothing acknowledged is lost."""

from __future__ import annotations

import time
from collections import Counter
from contextlib import ExitStack
from pathlib import Path

import pytest

from cortex_py import Cortex
from cortex_py.core.clock import SystemClock
from cortex_py.team.postgres.engine import open_postgres
from faults.team import PATIENCE, Client, Team

from postgres_server import PostgresServer, both_url, running_server, streaming_replica
from stub_backend import StubBackend

pytestmark = [pytest.mark.sqlite_only, pytest.mark.soak]  # it starts servers of its own

_SYNCHRONOUS = {"synchronous_commit": "on", "max_connections": "120", "wal_keep_size": "256MB"}
_STANDBYS = "synchronous_standby_names"


def _configure(server: PostgresServer, change: str) -> None:
    server.run(f"ALTER SYSTEM {change}")
    server.run("SELECT pg_reload_conf()")


def _wait_for_replica(primary: PostgresServer, replica: PostgresServer) -> None:
    """From now on a commit is acknowledged when the replica has it too."""
    # It is promoted without one of its own.
    _configure(replica, f"RESET {_STANDBYS}")
    _configure(primary, f"SET {_STANDBYS} = '*'")
    ((written,),) = primary.run("SELECT pg_current_wal_insert_lsn()")
    flushed = f"SELECT count(*) FROM pg_stat_replication WHERE sync_state = 'sync' AND flush_lsn >= '{written}'"
    until = time.monotonic() + PATIENCE
    while primary.run(flushed) != [(1,)]:
        assert time.monotonic() < until
        time.sleep(0.05)


def _until_all_succeed(clients: list[Client]) -> None:
    now = time.monotonic()
    while not all(one.last_success > now for one in clients):
        assert time.monotonic() < now + 2 * PATIENCE
        assert not any(one.fault for one in clients), [one.fault for one in clients if one.fault]
        time.sleep(0.05)


def fail_over(tmp_path: Path, project: Path, *, clients: int, times: int) -> None:
    with running_server(settings=_SYNCHRONOUS) as one, ExitStack() as stack:
        one.run("CREATE DATABASE team")
        open_postgres(one.url("team"), SystemClock()).close()
        primary, replica = one, stack.enter_context(streaming_replica(one))
        team = Team(tmp_path / "homes", project, both_url("team", primary, replica), 2, stack)
        # Whatever fails while a server is being replaced is repeated.
        team.faults.set()
        threads = [Client(team, number, keyed=True) for number in range(clients)]
        for thread in threads:
            thread.start()
        for n in range(times):
            _wait_for_replica(primary, replica)
            _until_all_succeed(threads)
            began = time.monotonic()
            primary.kill()
            replica.promote()
            _until_all_succeed(threads)
            print(f"failover {n + 1}: all clients go on after {time.monotonic() - began:.1f} s", flush=True)
            primary.follow(replica)
            primary, replica = replica, primary
        team.stop.set()
        for thread in threads:
            thread.join()
        assert not any(thread.fault for thread in threads), [one.fault for one in threads if one.fault]
        written = {id: content for thread in threads for id, content in thread.written.items()}
        stored = dict(primary.run("SELECT id, content FROM memory", "team"))
        repeated = {content for thread in threads for content in thread.retried}
        print(f"{len(written)} captures acknowledged, {len(repeated)} of them repeated, {len(stored)} stored")
        assert {id: stored.get(id) for id in written} == written
        # Every capture has its request id: whatever was repeated is there once.
        assert Counter(stored.values()) == Counter(written.values())
        url = primary.url("team")
        with Cortex.open(tmp_path / "after", project=project, backend=StubBackend(), database_url=url) as cortex:
            assert cortex.check() == []


def test_twenty_failovers_under_thirty_two_clients_lose_nothing(tmp_path: Path, project: Path) -> None:
    fail_over(tmp_path, project, clients=32, times=20)
