"""A replica takes over from a killed primary: clients with both in their address go on, and know what it means."""

from __future__ import annotations

import logging
import time
from collections.abc import Iterator
from pathlib import Path

import pytest

from cortex_py import Cortex
from cortex_py.core.clock import SystemClock
from cortex_py.core.errors import StoreBusy, StoreReadOnly, StoreUnavailable
from cortex_py.team.postgres.engine import open_postgres
from cortex_py.team.postgres.pool import ConnectionPool, full_conninfo
from timing import MINUTE

from homes import opened
from postgres_server import PostgresServer, both_url, running_server, streaming_replica

pytestmark = pytest.mark.sqlite_only  # it starts servers of its own


@pytest.fixture
def pair() -> Iterator[tuple[PostgresServer, PostgresServer, str]]:
    """A primary, its replica, and the address of a store on both."""
    with running_server() as primary:
        primary.run("CREATE DATABASE team")
        open_postgres(primary.url("team"), SystemClock()).close()
        with streaming_replica(primary) as replica:
            yield primary, replica, both_url("team", primary, replica)


def _until_replayed(primary: PostgresServer, replica: PostgresServer) -> None:
    ((written,),) = primary.run("SELECT pg_current_wal_insert_lsn() - '0/0'")
    until = time.monotonic() + MINUTE
    while replica.run("SELECT pg_last_wal_replay_lsn() - '0/0'")[0][0] < written:  # type: ignore[operator]
        assert time.monotonic() < until
        time.sleep(0.02)


def _found(cortex: Cortex, word: str) -> list[str]:
    return [hit.memory.content for hit in cortex.memories.recall(word, mode="text").results]


def test_what_the_replica_had_not_received_is_lost_for_every_cache_too(
    pair: tuple[PostgresServer, PostgresServer, str], tmp_path: Path, project: Path, caplog: pytest.LogCaptureFixture
) -> None:
    primary, replica, url = pair
    with (
        opened(tmp_path / "one", project, database_url=url) as one,
        opened(tmp_path / "two", project, database_url=url) as two,
    ):
        one.memories.capture("early word")
        assert _found(two, "early") == ["early word"]
        _until_replayed(primary, replica)
        replica.run("ALTER SYSTEM SET primary_conninfo = ''")
        replica.run("SELECT pg_reload_conf()")
        while replica.run("SELECT count(*) FROM pg_stat_wal_receiver") != [(0,)]:
            time.sleep(0.01)
        one.memories.capture("lost word")
        assert _found(two, "lost") == ["lost word"]
        primary.kill()
        replica.promote()
        # Its change has the number of the lost one: a cache that only counts would not look again.
        with caplog.at_level(logging.WARNING):
            one.memories.capture("later word")
        assert "goes on with timeline 2 of its log, after 1" in caplog.text
        for cortex in (one, two):
            assert sorted(_found(cortex, "word")) == ["early word", "later word"]
            assert cortex.vitals().failovers == 1
        assert "at least 1 acknowledged changes of this process are lost, in 1 spaces" in caplog.text
        # The other process was told of nothing that is missing.
        assert (one.vitals().lost_changes, two.vitals().lost_changes) == (1, 0)
        for cortex in (one, two):
            assert cortex.check() == []


def test_a_server_that_was_replaced_is_refused(pair: tuple[PostgresServer, PostgresServer, str]) -> None:
    primary, replica, url = pair
    _until_replayed(primary, replica)
    alone = open_postgres(replica.url("team"), SystemClock())
    with alone.read() as session:
        assert session.rows("SELECT revision FROM tenancy") == [(0,)]
    with pytest.raises(StoreReadOnly), alone.write():
        pass
    alone.close()
    database = open_postgres(url, SystemClock(), retry_seconds=0.3)
    primary.kill()
    with pytest.raises(StoreBusy, match="session is read-only"), database.read():
        pass
    replica.promote()
    with database.write() as session:
        session.run("UPDATE tenancy SET revision = 5")
    # It comes back as what it was, and is first in the address.
    primary.start()
    replica.stop()
    with pytest.raises(StoreUnavailable, match="was replaced: it is on timeline 1"), database.read():
        pass
    database.close()


def test_the_place_names_every_server() -> None:
    for url, place in (
        ("postgresql://me:secret@a:1,b:2/db", "a:1,b:2/db"),
        ("postgresql:///db?host=a,b&port=5", "a:5,b:5/db"),
        ("postgresql://a,b/db", "a,b/db"),
    ):
        assert ConnectionPool(url).place == place
    assert "target_session_attrs=read-write" in full_conninfo("postgresql://a,b/db")
    assert "target_session_attrs=any" in full_conninfo("postgresql://a,b/db?target_session_attrs=any")
    assert "target_session_attrs=prefer-standby" in full_conninfo("postgresql://a,b/db", replica=True)
    assert "target_session_attrs" not in full_conninfo("postgresql://a/db")
