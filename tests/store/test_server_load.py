"""What an operator sees of the database: who waits for locks, how long writers wait, and where spaces are."""

from __future__ import annotations

import threading
import time
from pathlib import Path

import pytest

from citus_cluster import running_cluster
from cortex_py import Cortex
from cortex_py.surfaces.http.monitoring import HttpMetrics
from timing import MINUTE

from helpers import FakeClock
from homes import opened

pytestmark = pytest.mark.sqlite_only  # it brings its own database


def _metrics(cortex: Cortex) -> dict[str, float]:
    metrics = HttpMetrics(cortex.embeddings)
    metrics.watch_store(cortex, lambda: True)
    lines = [line for line in metrics.text().decode().splitlines() if not line.startswith("#")]
    return {name: float(value) for name, _, value in (line.rpartition(" ") for line in lines)}


def test_a_writer_that_waits_for_another_program_is_counted(
    home: Path, project: Path, clock: FakeClock, postgres_url: str
) -> None:
    import psycopg

    with opened(home, project, clock, database_url=postgres_url) as cortex:
        # The first ones write to the whole store.
        for n in range(3):
            cortex.memories.capture(f"note {n}")
        calm = _metrics(cortex)
        assert (calm["cortex_store_lock_waiters"], calm["cortex_store_lock_wait_seconds"]) == (0, 0)
        writer = threading.Thread(target=cortex.memories.capture, args=("waits for its turn",))
        with psycopg.connect(postgres_url) as other:
            other.execute("SELECT 1 FROM space_change FOR UPDATE")
            writer.start()
            until = time.monotonic() + MINUTE
            while (busy := _metrics(cortex))["cortex_store_lock_wait_seconds"] < 0.2:
                assert time.monotonic() < until
            assert busy["cortex_store_lock_waiters"] == 1
            other.rollback()
        writer.join()
        assert _metrics(cortex)["cortex_store_turn_seconds_total"] > calm["cortex_store_turn_seconds_total"] + 0.2
        assert not any(name.startswith("cortex_store_spaces") for name in busy)


@pytest.mark.soak
def test_the_spaces_of_each_worker_are_counted(tmp_path: Path, clock: FakeClock) -> None:
    with running_cluster() as cluster, cluster.database() as url:
        for n in range(6):
            project = tmp_path / f"project{n}"
            project.mkdir()
            with opened(tmp_path / "home", project, clock, database_url=url) as cortex:
                cortex.memories.capture("a note")
                load = cortex.server_load()
        assert load is not None
        assert load.spaces_by_worker.keys() == {f"127.0.0.1:{worker.port}" for worker in cluster.workers}
        assert sum(load.spaces_by_worker.values()) >= 6
