"""Plain calls are answered past the SDK's streams: with the same answers, pings for slow ones, no work for nobody."""

from __future__ import annotations

import json
import threading
import time
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from numpy.typing import NDArray
from starlette.applications import Starlette

from cortex_py import Cortex
from cortex_py.surfaces.http.connections import ConnectionLimits, connection_class
from cortex_py.surfaces.http.server import build_app
from cortex_py.surfaces.mcp import posted_calls
from cortex_py.surfaces.mcp.server import WORKERS
from operations.raw_calls import answer, call, connection, send_call
from timing import MINUTE

from helpers import FakeClock
from servers import app_server
from stub_backend import StubBackend


class Held(StubBackend):
    """A model that waits for `go` where a text says so; `waiting` counts the texts that do."""

    def __init__(self) -> None:
        self.go = threading.Event()
        self.waiting = threading.Semaphore(0)

    def embed(self, texts: Sequence[str], *, normalize: bool = True) -> NDArray[np.float32]:
        if any("slowly" in text for text in texts):
            self.waiting.release()
            assert self.go.wait(MINUTE)
        return super().embed(texts, normalize=normalize)


@pytest.fixture
def backend() -> Held:
    return Held()


@pytest.fixture
def cortex(home: Path, project: Path, clock: FakeClock, backend: Held) -> Iterator[Cortex]:
    with Cortex.open(home, project=project, clock=clock, backend=backend) as opened:
        yield opened


@pytest.fixture
def app(cortex: Cortex) -> Starlette:
    return build_app(cortex)


@pytest.fixture
def url(cortex: Cortex, app: Starlette, backend: Held) -> Iterator[str]:
    with app_server(app, http=connection_class(ConnectionLimits.of(cortex.settings)), lifespan="on") as address:
        yield address
        backend.go.set()


CALLS: list[tuple[str, dict[str, Any]]] = [
    ("subcog_namespaces", {}),
    ("subcog_recall", {"query": "JSONB", "limit": "5"}),
    ("subcog_recall", {"query": 3}),
    ("subcog_recall", {"query": "x", "filter": "since:never"}),
    ("subcog_get", {"memory_id": "0" * 40}),
    ("subcog_teleport", {}),
]


def test_a_plain_call_has_the_answer_that_the_sdk_gives(
    url: str, cortex: Cortex, monkeypatch: pytest.MonkeyPatch
) -> None:
    cortex.memories.capture("Use PostgreSQL for JSONB – it is indexed", namespace="decisions")
    plain = [call(url, tool, arguments) for tool, arguments in CALLS]

    async def passed_on(*_: object) -> bool:
        return False

    monkeypatch.setattr(posted_calls.PostedCalls, "answer", passed_on)
    others = [call(url, tool, arguments) for tool, arguments in CALLS]
    for (status, told, message), (other_status, other_told, other) in zip(plain, others, strict=True):
        assert (status, told["content-type"], message) == (other_status, other_told["content-type"], other)


def test_a_slow_call_is_kept_open_with_pings(url: str, backend: Held, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(posted_calls, "PING_SECONDS", 0.01)
    to = connection(url)
    send_call(to, "subcog_capture", {"content": "said slowly", "namespace": "decisions"})
    response = to.getresponse()
    assert response.headers["content-type"] == "text/event-stream"
    assert response.readline() == b": ping\r\n"
    backend.go.set()
    *_, event, data, end = response.read().split(b"\r\n")[:-1]
    assert (event, end) == (b"event: message", b"")
    assert json.loads(data.removeprefix(b"data: "))["result"]["isError"] is False
    to.close()


def test_a_client_that_leaves_ends_a_call_that_has_not_begun(
    url: str, app: Starlette, cortex: Cortex, backend: Held
) -> None:
    busy = [connection(url) for _ in range(WORKERS)]
    for number, to in enumerate(busy):
        send_call(to, "subcog_capture", {"content": f"said slowly by {number}", "namespace": "decisions"})
    for _ in busy:
        assert backend.waiting.acquire(timeout=MINUTE)
    leaving = connection(url)
    send_call(leaving, "subcog_capture", {"content": "for nobody", "namespace": "decisions"})
    _wait_for(app, WORKERS + 1)
    leaving.close()
    _wait_for(app, WORKERS)
    backend.go.set()
    assert [answer(to)[0] for to in busy] == [200] * WORKERS
    assert cortex.memories.recall(limit=50).total == WORKERS, "nothing was stored for the client that left"
    for to in busy:
        to.close()


def _wait_for(app: Starlette, requests: int) -> None:
    until = time.monotonic() + MINUTE
    while app.state.draining.in_flight != requests:
        assert time.monotonic() < until
        time.sleep(0.01)
