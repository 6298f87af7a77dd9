"""The end of a server: it says so first, finishes what it has, refuses the rest cleanly, and ends with 0."""

from __future__ import annotations

import asyncio
import json
import re
import signal
import threading
import time
from pathlib import Path
from typing import Any

from cortex_py.core.clock import SystemClock
from cortex_py.core.store.sqlite import open_sqlite
from cortex_py.surfaces.http.middleware import DrainState
from operations.raw_calls import answer, call, connection, get, message, send_call
from timing import MINUTE, no_hang

from servers import http_server

CAPTURE = {"content": "asked for before the end began", "namespace": "decisions"}


def _in_flight(url: str) -> int:
    found = re.search(rb"^cortex_http_requests_in_flight (\d+)", get(url, "/metrics")[2], re.MULTILINE)
    assert found
    return int(found[1])


def test_what_is_under_way_is_finished_and_the_rest_refused(home: Path, project: Path) -> None:
    with http_server(home, project) as server:
        # The first call loads the model; the slow one shall wait for nothing but the lock.
        assert call(server.url, "subcog_capture", {"content": "the first", "namespace": "decisions"})[0] == 200
        database = open_sqlite(home / "cortex.db", SystemClock())
        kept, slow = connection(server.url), connection(server.url)
        kept.request("GET", "/health/live")
        assert answer(kept)[0] == 200
        done: list[Any] = []

        def ask() -> None:
            send_call(slow, "subcog_capture", CAPTURE)
            done.append(answer(slow))

        asking = threading.Thread(target=ask)
        with database.write():
            asking.start()
            while _in_flight(server.url) < 2:
                time.sleep(0.02)
            server.process.send_signal(signal.SIGTERM)
            while (ready := get(server.url, "/health/ready"))[0] == 200:
                time.sleep(0.02)
            assert (ready[0], json.loads(ready[2])["error"]["code"]) == (503, "DRAINING")
            assert get(server.url, "/health/live")[0] == 200
            # On a connection that was there before, and on a new one.
            for to in (kept, connection(server.url)):
                send_call(to, "subcog_status", {})
                status, headers, body = answer(to)
                assert (status, headers["connection"], headers["retry-after"]) == (503, "close", "1")
                assert json.loads(body)["error"]["code"] == "DRAINING"
                to.close()
            assert server.process.poll() is None
            assert not done
        asking.join()
        slow.close()
        ((status, headers, body),) = done
        assert (status, headers["connection"]) == (200, "close")
        assert "result" in message(body)
        assert server.process.wait(MINUTE) == 0
        with database.read() as session:
            assert session.rows("SELECT count(*) FROM memory") == [(2,)]
        database.close()


def test_the_waiting_is_bounded_and_can_be_cut_short() -> None:
    draining = DrainState()
    draining.in_flight = 1
    assert asyncio.run(draining.wait_until_idle(0.05, lambda: False)) is False
    with no_hang():
        assert asyncio.run(draining.wait_until_idle(600, lambda: True)) is False

    async def answered() -> bool:
        waiting = asyncio.create_task(draining.wait_until_idle(600, lambda: False))
        await asyncio.sleep(0)
        draining.in_flight = 0
        return await waiting

    assert asyncio.run(answered()) is True
