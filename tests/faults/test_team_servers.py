"""Several servers on one database, many clients: nothing is lost, also when database and server are killed under them.

Clients speak the protocol over HTTP and repeat what was not acknowledged. What was acknowledged is there afterwards.
"""

from __future__ import annotations

import threading
import time
from collections import Counter
from collections.abc import Iterator
from contextlib import ExitStack
from pathlib import Path

import pytest

from cortex_py import Cortex
from faults.team import Client, Team
from operations.raw_calls import answer, connection, send_call

from postgres_server import PostgresServer, name_in, running_server
from stub_backend import StubBackend

pytestmark = pytest.mark.sqlite_only  # it starts a server of its own


@pytest.fixture(scope="module")
def postgres() -> Iterator[PostgresServer]:
    with running_server(durable=True) as server:
        yield server


def _work(
    tmp_path: Path, project: Path, postgres: PostgresServer, servers: int, clients: int, seconds: float, kill: bool
) -> None:
    with postgres.database() as url, ExitStack() as stack:
        team = Team(tmp_path / "homes", project, url, servers, stack)
        # Loads each model before the clock runs.
        for server in team.servers:
            to = connection(server.url)
            send_call(to, "subcog_recall", {"query": "warm"})
            assert answer(to)[0] == 200
            to.close()
        threads = [Client(team, number) for number in range(clients)]
        for one in threads:
            one.start()
        time.sleep(seconds / 3)
        recovered_after = time.monotonic()
        if kill:
            team.faults.set()
            postgres.kill()
            # The new one is begun while the database is away.
            replacing = threading.Thread(target=team.replace, args=(0,))
            replacing.start()
            postgres.start()
            replacing.join()
            recovered_after = time.monotonic()
        time.sleep(seconds * 2 / 3)
        team.stop.set()
        for one in threads:
            one.join()
        _check(tmp_path, project, postgres, url, threads, recovered_after)


def _check(
    tmp_path: Path, project: Path, postgres: PostgresServer, url: str, threads: list[Client], recovered_after: float
) -> None:
    faults = [one.fault for one in threads if one.fault is not None]
    assert not faults, faults
    assert all(one.last_success > recovered_after for one in threads)
    written = {id: content for one in threads for id, content in one.written.items()}
    retried = {content for one in threads for content in one.retried}
    assert len(written) >= len(threads)
    print(f"{len(written)} written, {sum(one.read for one in threads)} read back, {len(retried)} repeated")
    stored = dict(postgres.run("SELECT id, content FROM memory", name_in(url)))
    assert {id: stored.get(id) for id in written} == written
    # What was never in doubt is there once; what was repeated may be there twice, and nothing else is.
    times = Counter(stored.values())
    assert set(times) == set(written.values())
    assert {content for content, count in times.items() if count > 1} <= retried
    with Cortex.open(tmp_path / "after", project=project, backend=StubBackend(), database_url=url) as cortex:
        assert cortex.check() == []


@pytest.mark.slow
def test_two_servers_and_eight_clients(tmp_path: Path, project: Path, postgres: PostgresServer) -> None:
    _work(tmp_path, project, postgres, 2, 8, 3, kill=True)


@pytest.mark.soak
@pytest.mark.parametrize("kill", [False, True], ids=["calm", "killed"])
def test_four_servers_and_sixty_four_clients(
    tmp_path: Path, project: Path, postgres: PostgresServer, kill: bool
) -> None:
    _work(tmp_path, project, postgres, 4, 64, 60, kill)
