"""Recalls from a streaming replica: with all that this process wrote, and from the primary where it lags or is away."""

from __future__ import annotations

import json
import subprocess
import time
from collections.abc import Iterator
from pathlib import Path

import pytest

from cortex_py import Cortex

from forking import python_command
from helpers import FakeClock
from homes import opened
from postgres_server import PostgresServer, name_in, running_server, streaming_replica

pytestmark = pytest.mark.sqlite_only  # it starts servers of its own
WRITER = Path(__file__).with_name("replica_writer.py")


@pytest.fixture(scope="module")
def pair() -> Iterator[tuple[PostgresServer, PostgresServer]]:
    with running_server() as primary, streaming_replica(primary) as replica:
        yield primary, replica


@pytest.fixture
def cortex(
    pair: tuple[PostgresServer, PostgresServer], home: Path, project: Path, clock: FakeClock
) -> Iterator[Cortex]:
    primary, replica = pair
    with primary.database() as url:
        name = name_in(url)
        read_url = replica.url(name)
        # A replica that did not answer is left alone for some seconds: the new database has to be there first.
        until = time.monotonic() + 20
        while replica.run(f"SELECT count(*) FROM pg_database WHERE datname = '{name}'") != [(1,)]:
            assert time.monotonic() < until
            time.sleep(0.02)
        with opened(home, project, clock, database_url=url, database_read_url=read_url) as made:
            yield made


def _finds(cortex: Cortex, word: str) -> bool:
    return any(word in hit.memory.content for hit in cortex.memories.recall(word).results)


def _until_replayed(cortex: Cortex, primary: PostgresServer) -> None:
    until = time.monotonic() + 20
    primary.run("CHECKPOINT")  # writes the end of the log, which otherwise may stay in memory
    while cortex.replica_lag() != 0:
        assert time.monotonic() < until
        time.sleep(0.02)
        primary.run("CHECKPOINT")
        time.sleep(0.02)


@pytest.mark.slow
def test_every_write_of_this_process_is_in_its_next_recall(
    pair: tuple[PostgresServer, PostgresServer], cortex: Cortex
) -> None:
    for n in range(30):
        cortex.memories.capture(f"wordnumber{n} is remembered")
        assert _finds(cortex, f"wordnumber{n}")
    _until_replayed(cortex, pair[0])
    before = cortex.vitals().replica_reads
    assert _finds(cortex, "wordnumber7")
    assert cortex.vitals().replica_reads > before


@pytest.mark.slow
def test_a_replica_that_lags_is_passed_over(
    pair: tuple[PostgresServer, PostgresServer], cortex: Cortex, tmp_path: Path, project: Path, clock: FakeClock
) -> None:
    cortex.memories.capture("known to both")
    _until_replayed(cortex, pair[0])
    pair[1].run("SELECT pg_wal_replay_pause()")
    try:
        cortex.memories.capture("lateword only on the primary")
        passed = cortex.vitals().replica_passed
        assert _finds(cortex, "lateword")
        assert cortex.vitals().replica_passed > passed
        pair[0].run("CHECKPOINT")
        assert (cortex.replica_lag() or 0) > 0
    finally:
        pair[1].run("SELECT pg_wal_replay_resume()")
    _until_replayed(cortex, pair[0])
    reads = cortex.vitals().replica_reads
    assert _finds(cortex, "lateword")
    assert cortex.vitals().replica_reads > reads


def test_without_its_replica_the_primary_answers(pair: tuple[PostgresServer, PostgresServer], cortex: Cortex) -> None:
    cortex.memories.capture("still found")
    pair[1].stop()
    try:
        assert cortex.replica_lag() is None
        assert _finds(cortex, "found")
    finally:
        pair[1].start()


def _write_and_read(tmp_path: Path, project: Path, *, processes: int, writes: int, durable: bool) -> dict[str, int]:
    """Let processes write to one project and look for each write; how many recalls each server answered."""
    with running_server(durable=durable) as primary, primary.database() as url, streaming_replica(primary) as replica:
        read_url = replica.url(name_in(url))
        started = [
            subprocess.Popen(
                [
                    *python_command(),
                    str(WRITER),
                    url,
                    read_url,
                    str(tmp_path / str(n)),
                    str(project),
                    str(n),
                    str(writes),
                ],
                stdout=subprocess.PIPE,
                text=True,
            )
            for n in range(processes)
        ]
        counted = [json.loads(process.communicate()[0]) for process in started]
    assert [process.returncode for process in started] == [0] * processes
    assert [word for one in counted for word in one["stale"]] == []
    return {name: sum(one[name] for one in counted) for name in ("writes", "replica", "primary")}


@pytest.mark.soak
def test_ten_thousand_writes_of_four_processes_are_in_their_next_recalls(tmp_path: Path, project: Path) -> None:
    found = _write_and_read(tmp_path, project, processes=4, writes=2_500, durable=True)
    print(found)
    assert found["writes"] >= 10_000
    # Both answer: the replica mostly, and the primary where the replica is late.
    assert found["replica"] > 1_000
