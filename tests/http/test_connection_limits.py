"""A client without a token cannot stop the server: connections, headers, bodies and idle time have limits."""

from __future__ import annotations

import resource
import socket
import sys
import time
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager, suppress
from pathlib import Path
from urllib.parse import urlsplit

import pytest

from cases import each
from cortex_py.core.config import load_settings
from cortex_py.core.errors import ConfigurationError
from cortex_py.surfaces.http.connections import ConnectionLimits
from operations.raw_calls import answer, call, connection, get
from timing import MINUTE

from servers import HttpServer, http_server

LIVE = b"GET /health/live HTTP/1.1\r\nHost: localhost\r\n\r\n"
POST = b"POST /mcp HTTP/1.1\r\nHost: localhost\r\nContent-Type: application/json\r\n"
# Half a body: the server waits for the rest.
HALF = POST + b"Content-Length: 1000\r\n\r\n{"
SHORT_TIMES = {"CORTEX_HTTP_HEADER_SECONDS": "1", "CORTEX_HTTP_BODY_SECONDS": "1", "CORTEX_HTTP_IDLE_SECONDS": "1"}


@contextmanager
def _raw(server: HttpServer, sent: bytes = b"", source: str = "127.0.0.1") -> Iterator[socket.socket]:
    place = urlsplit(server.url)
    with socket.create_connection((place.hostname, place.port), timeout=MINUTE, source_address=(source, 0)) as to:
        to.sendall(sent)
        yield to


def _to_the_end(to: socket.socket) -> bytes:
    """What comes until the server closes the connection, even by a reset."""
    taken = b""
    try:
        while part := to.recv(1 << 16):
            taken += part
    except ConnectionResetError:
        pass
    return taken


def _one(to: socket.socket) -> bytes:
    """One answer, on a connection that stays open."""
    taken = b""
    while b"\r\n\r\n" not in taken:
        part = to.recv(1 << 16)
        assert part, "the server closed the connection"
        taken += part
    head, _, body = taken.partition(b"\r\n\r\n")
    length = int(head.lower().split(b"content-length:")[1].split()[0])
    while len(body) < length:
        body += to.recv(1 << 16)
    return head


def _cpu_seconds(pid: int) -> float:
    children = Path(f"/proc/{pid}/task/{pid}/children").read_text().split()
    fields = Path(f"/proc/{children[0] if children else pid}/stat").read_text().rpartition(")")[2].split()
    return (int(fields[11]) + int(fields[12])) / 100


@pytest.fixture(scope="module")
def strict(tmp_path_factory: pytest.TempPathFactory) -> Iterator[HttpServer]:
    """A server with short times, for all tests that wait for one to end."""
    folder = tmp_path_factory.mktemp("strict")
    (folder / "project").mkdir()
    with http_server(folder / "home", folder / "project", **SHORT_TIMES) as server:
        yield server


@each("sent", [b"", b"GET / HT", b"GET / HTTP/1.1\r\nHost: x\r\nA: b", b"\r\n\r\n"])
def test_a_header_that_does_not_come_is_not_waited_for(strict: HttpServer, sent: bytes) -> None:
    with _raw(strict, sent) as to:
        told = _to_the_end(to)
    assert told.startswith(b"HTTP/1.1 408 Request Timeout\r\n")
    assert b"Connection: close\r\n" in told


def test_a_header_that_trickles_is_not_waited_for(strict: HttpServer) -> None:
    with _raw(strict, b"GET / HTTP/1.1\r\n") as to:
        to.settimeout(0.1)
        told = b""
        began = time.monotonic()
        while not told and time.monotonic() - began < MINUTE:
            to.sendall(b"A: b\r\n")
            try:
                told = to.recv(1 << 16)
            except TimeoutError:
                continue
    assert told.startswith(b"HTTP/1.1 408 ")


def test_the_next_request_on_a_connection_has_its_own_time(strict: HttpServer) -> None:
    with _raw(strict, LIVE) as to:
        assert _one(to).startswith(b"HTTP/1.1 200 ")
        to.sendall(LIVE[:-5])
        assert _to_the_end(to).startswith(b"HTTP/1.1 408 ")


def test_an_idle_connection_is_closed_without_a_word(strict: HttpServer) -> None:
    with _raw(strict, LIVE) as to:
        assert _one(to).startswith(b"HTTP/1.1 200 ")
        assert _to_the_end(to) == b""


@pytest.mark.parametrize(
    "sent", [HALF, POST + b"Transfer-Encoding: chunked\r\n\r\n5\r\n", POST + b"Content-Length: 9\r\n\r\n"]
)
def test_a_body_that_does_not_come_is_not_waited_for(strict: HttpServer, sent: bytes) -> None:
    with _raw(strict, sent) as to:
        told = _to_the_end(to)
    assert told.startswith(b"HTTP/1.1 408 ")
    # Nothing of it is still at work.
    assert b"\ncortex_http_requests_in_flight 1.0\n" in get(strict.url, "/metrics")[2]


def test_a_body_may_take_longer_the_more_of_it_has_come(home: Path, project: Path) -> None:
    body = b'{"text": "' + b" " * 100_000 + b'"}'
    head = b"POST /embed HTTP/1.1\r\nHost: localhost\r\nContent-Type: application/json\r\n"
    with (
        http_server(home, project, CORTEX_HTTP_BODY_SECONDS="1") as server,
        _raw(server, head + b"Content-Length: %d\r\n\r\n" % len(body)) as to,
    ):
        began = time.monotonic()
        for start in range(0, len(body), 10_000):
            to.sendall(body[start : start + 10_000])
            time.sleep(0.3)
        assert time.monotonic() - began > 3
        assert not _one(to).startswith(b"HTTP/1.1 408")


def test_a_client_that_waits_to_be_asked_for_its_body_is_not_late(strict: HttpServer) -> None:
    body = b'{"text": "a short text"}'
    expecting = POST.replace(b"/mcp", b"/embed") + b"Expect: 100-continue\r\nContent-Length: %d\r\n\r\n" % len(body)
    with _raw(strict, expecting) as to:
        assert to.recv(1 << 16).startswith(b"HTTP/1.1 100 Continue")
        to.sendall(body)
        assert _one(to).startswith(b"HTTP/1.1 ")


def test_a_stream_of_the_protocol_stays_open(home: Path, project: Path) -> None:
    accept = {"Accept": "application/json, text/event-stream", "Content-Type": "application/json"}
    hello = (
        '{"jsonrpc": "2.0", "id": 1, "method": "initialize", "params": {"protocolVersion": "2025-11-25",'
        ' "capabilities": {}, "clientInfo": {"name": "t", "version": "1"}}}'
    )
    with http_server(home, project, **SHORT_TIMES) as server:
        to = connection(server.url)
        to.request("POST", "/mcp", hello, accept)
        session = {"Mcp-Session-Id": answer(to)[1]["mcp-session-id"], "MCP-Protocol-Version": "2025-11-25"}
        to.close()
        stream = connection(server.url)
        stream.request("GET", "/mcp", headers={**accept, **session})
        response = stream.getresponse()
        assert (response.status, response.getheader("content-type")) == (200, "text/event-stream")
        assert stream.sock is not None
        stream.sock.settimeout(4)
        with pytest.raises(TimeoutError):
            # Longer than every limit; a stream that was cut would end.
            response.read(1)
        stream.close()


@each("header", [b"A: " + b"a" * 70_000, b"\r\n".join(b"A%d: b" % n for n in range(9_000)), b"A" * 70_000])
@each("end", [b"", b"\r\n\r\n"])
def test_a_large_header_is_refused(strict: HttpServer, header: bytes, end: bytes) -> None:
    with _raw(strict, b"GET /health/live HTTP/1.1\r\nHost: localhost\r\n" + header + end) as to:
        told = _to_the_end(to)
    # A name without a value is no header, and is refused as such where it is whole.
    assert told.startswith((b"HTTP/1.1 431 ", b"HTTP/1.1 400 ") if header.startswith(b"AA") else b"HTTP/1.1 431 ")
    assert b"onnection: close\r\n" in told or b"onnection: close\r\n".lower() in told


def test_a_header_below_the_bound_and_a_body_beside_it_pass(strict: HttpServer) -> None:
    with _raw(strict, LIVE[:-2] + b"A: " + b"a" * 60_000 + b"\r\n\r\n") as to:
        assert _one(to).startswith(b"HTTP/1.1 200 ")
    body = b'{"text": "%s"}' % (b"a" * 150_000)
    with _raw(strict, POST.replace(b"/mcp", b"/embed") + b"Content-Length: %d\r\n\r\n" % len(body) + body) as to:
        # The text is too long for the page; the request as such is not.
        assert not _one(to).startswith(b"HTTP/1.1 431 ")
        to.sendall(LIVE)
        assert _one(to).startswith(b"HTTP/1.1 200 ")


def test_an_endless_header_costs_next_to_nothing(strict: HttpServer) -> None:
    before = _cpu_seconds(strict.process.pid)
    part, sent = b"a" * 1_000_000, 0
    with _raw(strict, b"GET / HTTP/1.1\r\nA: ") as to:
        try:
            for _ in range(200):
                to.sendall(part)
                sent += len(part)
        except OSError:
            pass
    assert sent < 50_000_000
    assert _cpu_seconds(strict.process.pid) - before < 10


def test_requests_that_come_before_their_answers_are_bounded(strict: HttpServer) -> None:
    with _raw(strict, LIVE * 10) as to:
        for _ in range(10):
            assert _one_of_many(to).startswith(b"HTTP/1.1 200 ")
    with _raw(strict) as to:
        with suppress(OSError):
            to.sendall(LIVE * 100_000)
        assert _to_the_end(to).count(b"HTTP/1.1 200 ") < 1_000
    assert get(strict.url, "/health/live")[0] == 200


def _one_of_many(to: socket.socket) -> bytes:
    taken = b""
    while not taken.endswith(b"\r\n\r\n"):
        taken += to.recv(1)
    length = int(taken.lower().split(b"content-length:")[1].split()[0])
    while length:
        length -= len(to.recv(length))
    return taken


def test_requests_at_work_are_bounded(home: Path, project: Path) -> None:
    with http_server(home, project, CORTEX_HTTP_REQUESTS="3") as server, ExitStack() as stack:
        for _ in range(3):
            stack.enter_context(_raw(server, HALF))
        while b"\ncortex_http_requests_in_flight 4.0\n" not in get(server.url, "/metrics")[2]:
            time.sleep(0.02)
        status, headers, body = get(server.url, "/health")
        assert (status, headers["connection"], headers["retry-after"]) == (503, "close", "1")
        assert b"TOO_MANY_REQUESTS" in body
        assert get(server.url, "/health/live")[0] == 200
        stack.close()
        while get(server.url, "/health")[0] != 200:
            time.sleep(0.02)


def test_clients_that_wait_for_nothing_give_way_to_new_ones(home: Path, project: Path) -> None:
    with http_server(home, project, CORTEX_HTTP_CONNECTIONS="10") as server, ExitStack() as stack:
        working = stack.enter_context(_raw(server, HALF))
        idle = stack.enter_context(_raw(server, LIVE))
        assert _one(idle).startswith(b"HTTP/1.1 200 ")
        half_open = [stack.enter_context(_raw(server, b"GET / HTTP/1.1\r\n")) for _ in range(8)]
        kept = [idle]
        for one in half_open:
            # Those that have not sent a whole request go first, the oldest of them first.
            kept.append(stack.enter_context(_raw(server, LIVE)))
            assert _one(kept[-1]).startswith(b"HTTP/1.1 200 ")
            assert _to_the_end(one).startswith(b"HTTP/1.1 503 ")
        assert get(server.url, "/health/live")[0] == 200
        assert _to_the_end(kept[0]) == b""
        # An answer that is due is not lost.
        working.sendall(b" " * 999)
        assert _one(working).startswith(b"HTTP/1.1 400 ")


@pytest.mark.skipif(sys.platform != "linux", reason="needs several addresses on loopback")
def test_the_address_with_the_most_connections_gives_way_first(home: Path, project: Path) -> None:
    part = b"GET / HTTP/1.1\r\n"
    with http_server(home, project, CORTEX_HTTP_CONNECTIONS="5") as server, ExitStack() as stack:
        alone = stack.enter_context(_raw(server, part, "127.0.0.2"))
        crowd = [stack.enter_context(_raw(server, part)) for _ in range(4)]
        for one in crowd:
            # The oldest of all is spared as long as its address has fewer than another.
            stack.enter_context(_raw(server, part))
            assert _to_the_end(one).startswith(b"HTTP/1.1 503 ")
        alone.sendall(LIVE.partition(b"\r\n")[2])
        assert _one(alone).startswith(b"HTTP/1.1 401 ")


def _hold_half_open(server: HttpServer, log: Path, count: int, rounds: int) -> tuple[float, int]:
    """Open so many connections that send half a request, and ask for a page meanwhile: the slowest answer."""
    slowest, held = 0.0, []
    try:
        for number in range(count):
            place = urlsplit(server.url)
            one = socket.create_connection((place.hostname, place.port), timeout=MINUTE)
            held.append(one)
            if number % 2:
                one.sendall(b"GET /health/live HTTP/1.1\r\nHost: localhost\r\n")
            if number % (count // rounds) == 0:
                slowest = max(slowest, _live_seconds(server))
        for _ in range(rounds):
            slowest = max(slowest, _live_seconds(server))
        assert call(server.url, "subcog_status", {})[0] == 200
    finally:
        for one in held:
            one.close()
    return slowest, log.stat().st_size


def _live_seconds(server: HttpServer) -> float:
    began = time.monotonic()
    assert get(server.url, "/health/live")[0] == 200
    return time.monotonic() - began


@pytest.fixture
def many_descriptors() -> Iterator[None]:
    """This process needs one for each connection, too."""
    soft, hard = resource.getrlimit(resource.RLIMIT_NOFILE)
    if hard != resource.RLIM_INFINITY and hard < 2_000:
        pytest.skip("the operating system gives this process too few descriptors")
    resource.setrlimit(resource.RLIMIT_NOFILE, (max(soft, 2_000), hard))
    yield
    resource.setrlimit(resource.RLIMIT_NOFILE, (soft, hard))


@pytest.mark.slow
@pytest.mark.usefixtures("many_descriptors")
def test_half_open_connections_do_not_stop_the_server(home: Path, project: Path, tmp_path: Path) -> None:
    log = tmp_path / "log"
    with http_server(home, project, descriptors=1_024, log=log) as server:
        slowest, grown = _hold_half_open(server, log, 1_300, rounds=20)
    print(f"slowest /health/live: {slowest:.3f} s, log: {grown} bytes")
    assert slowest < 10
    assert grown < 100_000


def _limits(home: Path, descriptors: int, monkeypatch: pytest.MonkeyPatch, **settings: int) -> ConnectionLimits:
    monkeypatch.setattr(resource, "getrlimit", lambda _: (descriptors, descriptors))
    return ConnectionLimits.of(load_settings(home, environment={}, **settings))


@pytest.mark.parametrize("descriptors", [64, 256, 1_024, 1 << 20, resource.RLIM_INFINITY])
def test_half_of_the_descriptors_and_a_fifth_of_the_connections_stay_free(
    home: Path, descriptors: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    for settings in ({}, {"http_connections": 50_000, "http_requests": 50_000}):
        limits = _limits(home, descriptors, monkeypatch, **settings)
        if descriptors != resource.RLIM_INFINITY:
            assert limits.connections <= descriptors // 2
        assert limits.requests + limits.streams <= limits.connections * 4 // 5
        assert min(limits.requests, limits.streams) >= 1


@pytest.mark.parametrize("name", ["http_connections", "http_requests", "http_header_bytes", "http_idle_seconds"])
def test_no_limit_is_zero(home: Path, name: str) -> None:
    with pytest.raises(ConfigurationError, match="1 or more"):
        load_settings(home, environment={f"CORTEX_{name.upper()}": "0"})
