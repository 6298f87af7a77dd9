"""A real Citus cluster for tests: a coordinator and two workers, each a server of its own.

It stands in for a single server: every store that it makes is distributed. CORTEX_TEST_CITUS names the installation
that `make soak-citus` builds.
"""

from __future__ import annotations

import os
import socket
from collections.abc import Iterator, Mapping
from contextlib import ExitStack, contextmanager
from itertools import count
from pathlib import Path

import pytest

from postgres_server import PostgresServer, running_server

__all__ = ["CitusCluster", "running_cluster"]

# Read before the environment is cleared.
_INSTALLED = os.environ.get("CORTEX_TEST_CITUS", "")
_NAME = "cortex"
_SHARDS = 4
_SETTINGS = {
    "shared_preload_libraries": "citus",
    "wal_level": "logical",
    "max_prepared_transactions": "200",
    "max_connections": "200",
    "max_locks_per_transaction": "512",
    "max_worker_processes": "32",
    "listen_addresses": "127.0.0.1",
    # A worker that is down is noticed at once on this machine.
    "citus.node_connection_timeout": "2000",
}


class CitusCluster:
    def __init__(self, nodes: list[PostgresServer], stack: ExitStack, settings: Mapping[str, str]) -> None:
        self.coordinator, *self.workers = nodes
        self._stack = stack
        self._settings = settings
        self._names = (f"store_{n}" for n in count())

    def run(self, statement: str, database: str = _NAME) -> list[tuple[object, ...]]:
        return self.coordinator.run(statement, database)

    @contextmanager
    def database(self, *, distributed: bool = True) -> Iterator[str]:
        """The URL of a new store, in a schema of its own."""
        from cortex_py.core.clock import SystemClock
        from cortex_py.team.postgres.distribution import complete
        from cortex_py.team.postgres.engine import open_postgres

        name = next(self._names)
        self.run(f"CREATE SCHEMA {name}")
        url = f"{self.coordinator.url(_NAME)}?options=-csearch_path%3D{name}"
        opened = open_postgres(url, SystemClock())
        try:
            if distributed:
                # Not `distribute`: tests keep stores in other schemas of the database open.
                with opened.writing_as(None) as session:
                    complete(session, _SHARDS)
                opened.on_workers()
        finally:
            opened.close()
        # It goes with the cluster: dropping it would take longer than the test.
        yield url

    def add_worker(self) -> PostgresServer:
        worker = self._stack.enter_context(_node(self._settings))
        self.run(f"SELECT citus_add_node('127.0.0.1', {worker.port})")
        self.workers.append(worker)
        return worker

    def worker_of(self, url: str, space: str) -> PostgresServer:
        """The worker that has the rows of a space."""
        schema = url.rpartition("%3D")[2]
        ((port,),) = self.run(
            "SELECT nodeport FROM pg_dist_shard_placement "
            f"WHERE shardid = get_shard_id_for_distribution_column('{schema}.memory', '{space}')"
        )
        return next(worker for worker in self.workers if worker.port == port)


@contextmanager
def _node(settings: Mapping[str, str]) -> Iterator[PostgresServer]:
    with socket.socket() as free:
        free.bind(("127.0.0.1", 0))
        port = free.getsockname()[1]
    programs = Path(_INSTALLED) / "bin"
    with running_server(programs=programs, port=port, settings={**_SETTINGS, **settings}, durable=True) as server:
        server.run(f"CREATE DATABASE {_NAME}")
        server.run("CREATE EXTENSION citus", _NAME)
        yield server


@contextmanager
def running_cluster(workers: int = 2, settings: Mapping[str, str] | None = None) -> Iterator[CitusCluster]:
    if not _INSTALLED:
        pytest.skip("needs Citus: make soak-citus")
    with ExitStack() as stack:
        coordinator, *others = [stack.enter_context(_node(settings or {})) for _ in range(workers + 1)]
        coordinator.run(f"SELECT citus_set_coordinator_host('127.0.0.1', {coordinator.port})", _NAME)
        for worker in others:
            coordinator.run(f"SELECT citus_add_node('127.0.0.1', {worker.port})", _NAME)
        yield CitusCluster([coordinator, *others], stack, settings or {})
