"""Whether requests should come: a database that is gone is told in time, without a token, and without its name."""

from __future__ import annotations

import asyncio
import json
import threading
import time
from pathlib import Path
from urllib.parse import urlsplit

import pytest

from cortex_py.core.errors import StoreUnavailable
from cortex_py.surfaces.http.middleware import DrainState
from cortex_py.surfaces.http.monitoring import Fault, Readiness
from operations.raw_calls import call, get
from timing import MINUTE

from postgres_server import running_server
from servers import http_server
from stub_backend import StubBackend

pytestmark = pytest.mark.sqlite_only  # it starts a server of its own

TOKEN = "a-long-enough-token-0123"


@pytest.mark.slow
def test_callers_are_not_told_where_the_database_is_and_the_log_is(home: Path, project: Path, tmp_path: Path) -> None:
    log = tmp_path / "log"
    with (
        running_server() as postgres,
        postgres.database() as url,
        http_server(
            home, project, log=log, CORTEX_DATABASE_URL=url, CORTEX_TOKEN=TOKEN, CORTEX_DATABASE_RETRY_SECONDS="0"
        ) as server,
    ):
        bearer = {"Authorization": f"Bearer {TOKEN}"}
        name = urlsplit(url).path.strip("/")
        assert call(server.url, "subcog_status", {}, **bearer)[0] == 200
        postgres.stop()
        status, _, body = get(server.url, "/status", **bearer)
        told = body.decode() + str(call(server.url, "subcog_status", {}, **bearer)[2])
        postgres.start()  # its database is dropped at the end
        assert status == 503
        assert told.count("The store of this server cannot be reached.") == 2
        assert not [place for place in (str(postgres.folder), name, "port") if place in told]
        assert name in log.read_text()


@pytest.mark.slow
def test_a_server_is_ready_while_its_database_is_and_reads_outlive_a_restart(home: Path, project: Path) -> None:
    with (
        running_server(durable=True) as postgres,
        postgres.database() as url,
        http_server(home, project, CORTEX_DATABASE_URL=url, CORTEX_TOKEN=TOKEN) as server,
    ):
        bearer = {"Authorization": f"Bearer {TOKEN}"}
        assert get(server.url, "/health/ready")[::2] == (200, b'{"status":"ready"}')
        assert call(server.url, "subcog_status", {}, **bearer)[0] == 200
        postgres.stop()
        began = time.monotonic()
        # What was found a moment ago still counts for that moment.
        while (answered := get(server.url, "/health/ready"))[0] == 200:
            assert time.monotonic() - began < MINUTE
            time.sleep(0.05)
        status, headers, body = answered
        assert (status, headers["retry-after"]) == (503, "1")
        assert json.loads(body)["error"]["code"] == "StoreUnavailable"
        assert str(postgres.folder) not in body.decode()
        assert get(server.url, "/health/live")[0] == 200
        _, _, metrics = get(server.url, "/metrics", **bearer)
        assert b"\ncortex_store_up 0.0\n" in metrics
        told: list[object] = []
        asking = threading.Thread(target=lambda: told.append(call(server.url, "subcog_status", {}, **bearer)[2]))
        asking.start()
        postgres.start()
        asking.join()
        assert "result" in str(told)
        while get(server.url, "/health/ready")[0] != 200:
            assert time.monotonic() - began < 2 * MINUTE
            time.sleep(0.05)
        assert b"\ncortex_store_up 1.0\n" in get(server.url, "/metrics", **bearer)[2]


class _Hanging:
    """A store that does not answer until it is let go; `asked` counts who tried."""

    def __init__(self) -> None:
        self.backend = StubBackend()
        self.go = threading.Event()
        self.asked = 0

    def reach(self, seconds: float) -> None:
        self.asked += 1
        assert self.go.wait(60)
        raise StoreUnavailable("PostgreSQL at secret.example cannot be reached.", remedy="x")


def test_a_database_that_says_nothing_is_told_in_time_and_not_crowded() -> None:
    store = _Hanging()
    asked = Readiness(store, DrainState(), seconds=0.1)  # type: ignore[arg-type]

    async def probes() -> list[Fault]:
        found = [await asked.fault() for _ in range(3)]
        store.go.set()
        while (last := await asked.fault()) == found[0]:
            pass
        return [*found, last]

    *slow, last = asyncio.run(probes())
    assert [fault and fault[0] for fault in slow] == ["StoreUnavailable"] * 3
    assert store.asked == 1
    assert last is not None
    assert "secret.example" not in last[1]
