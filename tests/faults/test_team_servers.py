"""Several servers on one database, many clients: nothing is lost, also when database and server are killed under them.

Clients speak the protocol over HTTP and repeat what was not acknowledged. What was acknowledged is there afterwards.
"""

from __future__ import annotations

import random
import threading
import time
from collections import Counter
from collections.abc import Iterator
from contextlib import ExitStack
from http.client import HTTPConnection, HTTPException
from pathlib import Path
from typing import Any

import pytest

from cortex_py import Cortex
from operations.raw_calls import answer, connection, message, send_call

from postgres_server import PostgresServer, running_server
from servers import HttpServer, http_server
from stub_backend import StubBackend

pytestmark = pytest.mark.sqlite_only  # it starts a server of its own

# What a client may be told while the database is away, to come again.
_AGAIN = {"StoreUnavailable", "StoreBusy"}
_PATIENCE = 60


@pytest.fixture(scope="module")
def postgres() -> Iterator[PostgresServer]:
    with running_server(durable=True) as server:
        yield server


class Team:
    """Servers that come and go; `faults` is set while some of them, or the database, are being killed."""

    def __init__(self, home: Path, project: Path, url: str, count: int, stack: ExitStack) -> None:
        self._home, self._project, self._url, self._stack = home, project, url, stack
        self._lock = threading.Lock()
        self.faults = threading.Event()
        self.stop = threading.Event()
        self.servers = [self._begun(number) for number in range(count)]

    def _begun(self, number: int) -> HttpServer:
        home = self._home / str(number)
        # On a busy machine the database takes longer to come back than a server usually waits for it.
        more = {"CORTEX_DATABASE_URL": self._url, "CORTEX_DATABASE_RETRY_SECONDS": str(_PATIENCE)}
        return self._stack.enter_context(http_server(home, self._project, **more))

    def any(self) -> str:
        with self._lock:
            return random.choice(self.servers).url

    def replace(self, number: int) -> None:
        """Kill a server where it stands, and start another in its place."""
        self.servers[number].process.kill()
        begun = self._begun(number)
        with self._lock:
            self.servers[number] = begun


class Client(threading.Thread):
    """Writes and reads until told to stop. `written` is what was acknowledged, `retried` what had to be repeated."""

    def __init__(self, team: Team, number: int) -> None:
        super().__init__(name=f"client-{number}")
        self._team, self._number = team, number
        self._to: HTTPConnection | None = None
        self.written: dict[str, str] = {}
        self.retried: set[str] = set()
        self.read = 0
        self.last_success = 0.0
        self.fault: BaseException | None = None

    def run(self) -> None:
        try:
            turn = 0
            while not self._team.stop.is_set():
                self._turn(turn)
                turn += 1
        except BaseException as error:  # noqa: BLE001  # told where the threads are joined
            self.fault = error
        finally:
            self._hang_up()

    def _hang_up(self) -> None:
        if self._to is not None:
            self._to.close()
            self._to = None

    def _turn(self, turn: int) -> None:
        content = f"client c{self._number} noted t{turn} about c{self._number}x{turn}"
        made = self._call("subcog_capture", {"content": content, "namespace": "decisions"}, content)
        self.written[made["id"]] = content
        # Whichever server is asked, what was acknowledged is there.
        found = self._call("subcog_get", {"memory_id": made["id"]}, content)
        assert (found["id"], found["content"]) == (made["id"], content)
        if turn % 3 == 0:
            listed = self._call("subcog_recall", {"query": f"c{self._number}x{turn}", "mode": "text"}, content)
            assert made["id"] in {one["id"] for one in listed["results"]}
        self.read += 1

    def _call(self, tool: str, arguments: dict[str, Any], content: str) -> Any:
        until = time.monotonic() + _PATIENCE
        while True:
            troubled = self._team.faults.is_set()
            try:
                told = self._once(tool, arguments)
            except (OSError, HTTPException):
                self._hang_up()
                assert troubled or self._team.faults.is_set(), "a connection was lost without reason"
            else:
                if "result" in told:
                    self.last_success = time.monotonic()
                    return told["result"]["structuredContent"]
                assert told["error"]["data"]["error"] in _AGAIN, told
                assert troubled or self._team.faults.is_set(), told
            if tool == "subcog_capture":
                self.retried.add(content)
            assert time.monotonic() < until, "the client did not recover"
            time.sleep(random.uniform(0.02, 0.2))

    def _once(self, tool: str, arguments: dict[str, Any]) -> Any:
        if self._to is None or random.random() < 0.2:
            self._hang_up()
            self._to = connection(self._team.any())
        send_call(self._to, tool, arguments)
        return message(answer(self._to)[2])


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
    stored = dict(postgres.run("SELECT id, content FROM memory", url.rpartition("/")[2]))
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
