"""Bodies fill no memory: a bound for each route, one for all of them together, and none from a stranger."""

from __future__ import annotations

import asyncio
import socket
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager
from pathlib import Path
from typing import Any
from urllib.parse import urlsplit

import pytest
from starlette.types import Message, Receive, Scope, Send

from cases import each
from cortex_py.surfaces.http.middleware import SMALL_BODY_BYTES, BodyLimit, read_whole_body
from timing import MINUTE

from servers import HttpServer, http_server

TOKEN = "a-long-enough-token-0123"
MEGABYTE = 1_000_000


@pytest.fixture(scope="module")
def guarded(tmp_path_factory: pytest.TempPathFactory) -> Iterator[HttpServer]:
    folder = tmp_path_factory.mktemp("guarded")
    (folder / "project").mkdir()
    with http_server(folder / "home", folder / "project", CORTEX_TOKEN=TOKEN, CORTEX_HTTP_BODY_SECONDS="2") as server:
        yield server


def _head(path: str, announced: int | None, *headers: str) -> bytes:
    size = "Transfer-Encoding: chunked" if announced is None else f"Content-Length: {announced}"
    lines = [f"POST {path} HTTP/1.1", "Host: localhost", "Content-Type: application/json", size, *headers]
    return "\r\n".join((*lines, "", "")).encode()


@contextmanager
def _connected(server: HttpServer) -> Iterator[socket.socket]:
    place = urlsplit(server.url)
    with socket.create_connection((place.hostname, place.port), timeout=MINUTE) as to:
        yield to


def _status(to: socket.socket) -> int:
    return int(to.recv(1 << 16).split()[1])


def _resident_bytes(server: HttpServer) -> int:
    pid = server.process.pid
    children = Path(f"/proc/{pid}/task/{pid}/children").read_text().split()
    status = Path(f"/proc/{children[0] if children else pid}/status").read_text()
    return int(status.split("VmRSS:")[1].split()[0]) * 1024


@each("path", ["/session", "/api/v1/review", "/no/such/page"])
def test_a_large_body_is_refused_before_it_is_sent(guarded: HttpServer, path: str) -> None:
    with _connected(guarded) as to:
        to.sendall(_head(path, 40 * MEGABYTE, f"Authorization: Bearer {TOKEN}"))
        assert _status(to) == 413


@each("path", ["/mcp", "/embed", "/v1/embeddings", "/api/v1/check", "/api/v1/memories/mem_1"])
def test_the_body_of_a_stranger_is_not_waited_for(guarded: HttpServer, path: str) -> None:
    with _connected(guarded) as to:
        to.sendall(_head(path, 40 * MEGABYTE))
        assert _status(to) == 401


@each("announced", [40 * MEGABYTE, None])
def test_many_large_bodies_are_not_held(guarded: HttpServer, announced: int | None) -> None:
    with _connected(guarded) as to:
        to.sendall(_head("/session", 9) + b"token=abc")
        assert _status(to) == 401
    before = _resident_bytes(guarded)
    part = b"x" * (MEGABYTE if announced else 0) or b"%x\r\n%s\r\n" % (MEGABYTE, b"x" * MEGABYTE)
    with ExitStack() as stack:
        held = [stack.enter_context(_connected(guarded)) for _ in range(20)]
        for to in held:
            to.sendall(_head("/session", announced))
            for _ in range(4):
                to.sendall(part)
        assert _resident_bytes(guarded) - before < 30 * MEGABYTE
        assert {_status(to) for to in held} == {413}


def test_a_body_that_stops_is_not_waited_for(guarded: HttpServer) -> None:
    with _connected(guarded) as to:
        to.sendall(_head("/session", 100) + b"token=")
        assert _status(to) == 408


class _Body:
    """A request whose body comes piece by piece; `status` is that of its answer."""

    def __init__(self, limit: BodyLimit, path: str) -> None:
        self.status = 0
        self.pieces: asyncio.Queue[Message] = asyncio.Queue()
        scope = {"type": "http", "method": "POST", "path": path, "headers": []}
        self.task = asyncio.ensure_future(limit(scope, self.pieces.get, self._send))

    async def _send(self, message: Message) -> None:
        self.status = message.get("status", self.status)
        self.headers: Any = message.get("headers", getattr(self, "headers", None))

    async def give(self, size: int, *, last: bool = False) -> None:
        self.pieces.put_nowait({"type": "http.request", "body": b"x" * size, "more_body": not last})
        while not self.pieces.empty():
            await asyncio.sleep(0)
        if last:
            await self.task
        else:
            for _ in range(5):
                await asyncio.sleep(0)


async def _take(scope: Scope, receive: Receive, send: Send) -> None:
    if await read_whole_body(receive) is not None:
        await send({"type": "http.response.start", "status": 200, "headers": []})
        await send({"type": "http.response.body", "body": b""})


def test_all_bodies_together_are_bounded_and_small_ones_still_pass() -> None:
    async def steps() -> None:
        limit = BodyLimit(_take, most=100_000, most_held=150_000)
        first, second = _Body(limit, "/mcp"), _Body(limit, "/embed")
        await first.give(90_000)
        await second.give(50_000)
        assert (first.status, second.status) == (0, 0)
        third = _Body(limit, "/mcp")
        await third.give(SMALL_BODY_BYTES + 1)
        assert third.status == 503
        assert (b"retry-after", b"1") in third.headers
        small = _Body(limit, "/session")
        await small.give(SMALL_BODY_BYTES, last=True)
        assert small.status == 200
        # What is held already can end; a client that leaves gives its part back.
        second.pieces.put_nowait({"type": "http.disconnect"})
        await second.task
        await first.give(10_000, last=True)
        assert first.status == 200
        again = _Body(limit, "/mcp")
        await again.give(100_000, last=True)
        assert again.status == 200

    asyncio.run(steps())


def test_a_body_that_grows_beyond_the_bound_of_its_route_is_refused() -> None:
    async def status(path: str) -> int:
        body = _Body(BodyLimit(_take, most=MEGABYTE), path)
        await body.give(SMALL_BODY_BYTES)
        await body.give(1, last=True)
        return body.status

    assert asyncio.run(status("/session")) == 413
    assert asyncio.run(status("/mcp")) == 200


HOSTS = ["[::1].evil.example", "127.0.0.1:1@evil", "localhost:", "localhost:x", "127.0.0.1/", "a b", "localhost, evil"]


@each("host", HOSTS)
def test_a_host_is_a_name_and_a_port(guarded: HttpServer, host: str) -> None:
    assert _asked_as(guarded, f"Host: {host}") in (400, 421)


def test_there_is_one_host(guarded: HttpServer) -> None:
    assert _asked_as(guarded, "Host: localhost") == 200
    assert _asked_as(guarded, "Host: localhost:8000") == 200
    assert _asked_as(guarded, "Host: [::1]:8000") == 200
    assert _asked_as(guarded, "Host: localhost", "Host: evil.example") == 400
    # Probes of load balancers name none; what is guarded refuses them still.
    assert _asked_as(guarded) in (200, 400, 421)


@each(
    "origin", ["http://127.0.0.1:1.evil.example", "http://127.0.0.1:1@evil.example", "http://localhost/x", "localhost"]
)
def test_an_origin_is_a_scheme_a_name_and_a_port(guarded: HttpServer, origin: str) -> None:
    assert _asked_as(guarded, "Host: localhost", f"Origin: {origin}") == 403


def test_there_is_at_most_one_origin(guarded: HttpServer) -> None:
    assert _asked_as(guarded, "Host: localhost", "Origin: http://localhost:3000") == 200
    assert _asked_as(guarded, "Host: localhost", "Origin: http://localhost", "Origin: https://evil.example") == 403


def _asked_as(server: HttpServer, *headers: str) -> int:
    with _connected(server) as to:
        to.sendall("\r\n".join(("GET /health/live HTTP/1.1", *headers, "", "")).encode())
        return _status(to)
