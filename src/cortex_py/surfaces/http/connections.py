"""The port of `cortex serve --http`: limits of its connections, a graceful end, and the processes that share it.

Granian 2.8 was tried in place of this module. Nine tests of limits fail with it: a body that stops holds it for ever, a
late header gets no answer, headers above the bound and 100,000 pipelined requests pass, and a full server refuses
nobody. A call takes the same processor time (7.2 ms) as with uvicorn, which FastMCP needs anyway.

The limits touch the insides of uvicorn's protocol class; `tests/http/test_connection_limits.py` guards them. One sweep
a second measures all connections, instead of a timer for each.

With `--workers`, the first process binds the port and forks the others. It serves nothing itself: it restarts a worker
that has died, and passes on the signal to stop. On Linux each worker has a socket of its own on the port, and the
system shares the connections out; those of a dead worker wait for its successor. From one shared socket, the worker
that is awake would accept nearly all.
"""

from __future__ import annotations

import asyncio
import contextlib
import json
import logging
import os
import select
import shutil
import signal
import socket
import sys
import tempfile
import threading
import time
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from enum import Enum
from pathlib import Path
from typing import Any, ClassVar

import uvicorn
from starlette.applications import Starlette
from uvicorn.protocols.http.httptools_impl import STATUS_LINE, HttpToolsProtocol

from ...core.config import Settings
from ...core.errors import InvalidInput
from ..mcp.posted_calls import DEPARTURE, Departure
from .middleware import DrainState, error_response
from .sessions import PageLinks, SharedPage, page_key

__all__ = [
    "BoundedConnection", "ConnectionLimits", "Worker", "bind_port", "bind_ports", "connection_class", "fork_workers",
    "serve_app",
]  # fmt: skip

# The event loop accepts this many before it handles any of them; each needs a descriptor beyond the bound.
_ACCEPTS_AT_ONCE = 16
_BACKLOG = 512
# For connections that stay open after everything has been answered.
_GRACE_SECONDS = 3
# How long the first process waits for its workers, beyond their own drain time, before it kills them.
_STOP_SECONDS = 10.0
_LOOK_SECONDS = 0.2
# A worker that ends sooner is started again after a pause, which doubles each time.
_SHORT_LIFE_SECONDS = 5.0
_FIRST_PAUSE, _LONGEST_PAUSE = 0.1, 5.0

# A body may take the setting's time, and a second more for each of so many bytes that have arrived.
_BODY_BYTES_A_SECOND = 16_000
_SWEEP_SECONDS = 1.0
# After a refusal the rest of the request is read and dropped, so that the client sees the answer and not a reset.
_LINGER_SECONDS = 2.0
_LINGER_BYTES = 1_000_000
# Requests that a client sent before it had the answers to earlier ones.
_MOST_PIPELINED = 16

_TOO_LARGE = ("HEADER_TOO_LARGE", "The header of the request is too large.")
_BUSY = ("TOO_MANY_CONNECTIONS", "The server has as many connections as it can take. Try again.")
_LATE_HEADER = ("REQUEST_TIMEOUT", "The header of the request did not come in time.")
_LATE_BODY = ("REQUEST_TIMEOUT", "The body of the request did not come in time.")

_log = logging.getLogger(__name__)


@dataclass(frozen=True, slots=True)
class ConnectionLimits:
    """What a server accepts. `requests` and `streams` leave a fifth of the connections free for new clients."""

    connections: int
    requests: int
    streams: int
    header_bytes: int
    header_seconds: int
    body_seconds: int
    idle_seconds: int

    @classmethod
    def of(cls, settings: Settings) -> ConnectionLimits:
        """The limits of the settings, within half of the descriptors that this process may have."""
        connections = max(5, min(settings.http_connections, _most_descriptors() // 2))
        share = connections * 2 // 5
        return cls(
            connections=connections,
            requests=min(settings.http_requests, share),
            streams=share,
            header_bytes=settings.http_header_bytes,
            header_seconds=settings.http_header_seconds,
            body_seconds=settings.http_body_seconds,
            idle_seconds=settings.http_idle_seconds,
        )


def _most_descriptors() -> int:
    try:
        import resource
    except ImportError:  # Windows has no such limit.
        return 1 << 20
    soft = resource.getrlimit(resource.RLIMIT_NOFILE)[0]
    return 1 << 20 if soft == resource.RLIM_INFINITY else soft


def connection_class(limits: ConnectionLimits) -> type[BoundedConnection]:
    """The protocol class for one server, whose connections are counted together."""
    return type("BoundedConnection", (BoundedConnection,), {"table": _ConnectionTable(limits)})


class _Phase(Enum):
    HEADER = "header"
    BODY = "body"
    # The request is whole: it is being answered, or the connection waits for the next one.
    WHOLE = "whole"
    # Refused; what still comes is dropped.
    LINGERING = "lingering"


class _Queue:
    """Connections that can be closed without loss, by address, the longest waiting first."""

    def __init__(self) -> None:
        self._by_address: dict[str, dict[BoundedConnection, None]] = {}

    def add(self, connection: BoundedConnection) -> None:
        self._by_address.setdefault(connection.address, {})[connection] = None

    def discard(self, connection: BoundedConnection) -> None:
        waiting = self._by_address.get(connection.address, {})
        waiting.pop(connection, None)
        if not waiting:
            self._by_address.pop(connection.address, None)

    def oldest(self) -> BoundedConnection | None:
        """The oldest of the address that has the most, so that no address can drive out the others."""
        most = max(self._by_address.values(), key=len, default=None)
        return None if most is None else next(iter(most))


class _ConnectionTable:
    """All connections of one server, each with the queue that it waits in, if it can be closed without loss."""

    def __init__(self, limits: ConnectionLimits) -> None:
        self.limits = limits
        self.opening, self.idle = _Queue(), _Queue()
        self._queues: dict[BoundedConnection, _Queue | None] = {}
        self._swept: float | None = None

    def admit(self, connection: BoundedConnection) -> bool:
        """Accept a new connection. If there are too many, one that waits for nothing is closed."""
        if len(self._queues) >= self.limits.connections:
            victim = self.opening.oldest() or self.idle.oldest()
            if victim is None:
                return False
            half_open = self._queues[victim] is self.opening
            self.remove(victim)
            victim.give_way(half_open)
        self._queues[connection] = None
        self.settle(connection, self.opening)
        if self._swept is None:
            self._swept = connection.loop.time()
            connection.loop.call_later(_SWEEP_SECONDS, self._sweep, connection.loop)
        return True

    def remove(self, connection: BoundedConnection) -> None:
        self.settle(connection, None)
        self._queues.pop(connection, None)

    def settle(self, connection: BoundedConnection, queue: _Queue | None) -> None:
        """Put a connection into a queue; an idle one waits from now on."""
        before = self._queues.get(connection)
        if connection in self._queues and (queue is not before or queue is self.idle):
            if before is not None:
                before.discard(connection)
            if queue is not None:
                queue.add(connection)
            self._queues[connection] = queue

    def _sweep(self, loop: asyncio.AbstractEventLoop) -> None:
        now = loop.time()
        # Time in which the server itself was blocked does not count against clients.
        elapsed = min(now - (self._swept or now), 2 * _SWEEP_SECONDS)
        for connection in list(self._queues):
            connection.measure(elapsed)
        self._swept = now if self._queues else None
        if self._queues:
            loop.call_later(_SWEEP_SECONDS, self._sweep, loop)


class BoundedConnection(HttpToolsProtocol):
    """A connection that keeps to the limits."""

    table: ClassVar[_ConnectionTable]

    def __init__(self, *args: Any, **options: Any) -> None:
        super().__init__(*args, **options)
        self.address = ""
        self._limits = self.table.limits
        self._phase = _Phase.HEADER
        self._spent = 0.0  # seconds of the phase for which the client is answerable
        self._taken = 0  # bytes of the header, of the body, or dropped, as the phase has it
        self._chunk = 0  # bytes of the data that is being parsed
        self._begun = 0  # requests that began in it
        self._unsent = 0
        self._unsent_seconds = 0.0
        self._departure = Departure()  # of the latest request

    @property
    def _answered(self) -> bool:
        return self.cycle is None or self.cycle.response_complete

    def connection_made(self, transport: asyncio.Transport) -> None:  # type: ignore[override]  # as uvicorn has it
        super().connection_made(transport)
        self.address = self.client[0] if self.client else ""
        if not self.table.admit(self):
            self.give_way(half_open=True)

    def connection_lost(self, exc: Exception | None) -> None:
        self.table.remove(self)
        super().connection_lost(exc)
        if not self._answered:
            self._departure.happen()

    def data_received(self, data: bytes) -> None:
        if self._phase is _Phase.LINGERING:
            self._taken += len(data)
            if self._taken > _LINGER_BYTES:
                self.transport.abort()
            return
        between = self._phase is _Phase.WHOLE or (self._phase is _Phase.HEADER and not self._taken)
        if self._phase is _Phase.WHOLE:
            self._enter(_Phase.HEADER)
        self._begun, self._chunk = 0, len(data)
        super().data_received(data)
        if self._phase is _Phase.HEADER:
            # If a chunk ends with the beginning of another request, the size of that part is not known.
            self._taken += len(data) if not self._begun or (between and self._begun == 1) else 1
            if self._taken > self._limits.header_bytes and self._answered:
                self._refuse(431, *_TOO_LARGE)
        self._settle()

    def on_message_begin(self) -> None:
        super().on_message_begin()
        self._begun += 1
        self._enter(_Phase.HEADER)

    def on_headers_complete(self) -> None:
        most = self._limits.header_bytes
        large = self._taken + self._chunk > most and self._header_size() > most
        self.app = _header_too_large if large else self.config.loaded_app
        super().on_headers_complete()
        scope: Any = self.scope
        scope[DEPARTURE] = self._departure = Departure()
        self._enter(_Phase.BODY)
        if len(self.pipeline) > _MOST_PIPELINED:
            self.transport.abort()
            raise ValueError("too many requests before an answer")

    def on_body(self, body: bytes) -> None:
        self._taken += len(body)
        super().on_body(body)

    def on_message_complete(self) -> None:
        super().on_message_complete()
        self._enter(_Phase.WHOLE)

    def on_response_complete(self) -> None:
        super().on_response_complete()
        if self._phase is not _Phase.BODY:
            self._spent = 0.0
        self._settle()

    def send_400_response(self, msg: str) -> None:
        if not self.transport.is_closing():
            super().send_400_response(msg)

    def give_way(self, half_open: bool) -> None:
        """Close in favour of another connection; the descriptor is free at the next turn of the loop."""
        if half_open and self._phase is not _Phase.LINGERING:
            self._write_refusal(503, *_BUSY)
        if self.transport.get_write_buffer_size():
            self.transport.abort()
        else:
            self.transport.close()

    def measure(self, elapsed: float) -> None:
        """Count the time that has passed against the client, if it is their turn."""
        unsent = self.transport.get_write_buffer_size()
        self._unsent_seconds = self._unsent_seconds + elapsed if unsent and unsent == self._unsent else 0.0
        self._unsent = unsent
        if self._unsent_seconds > self._limits.body_seconds:
            # The client does not read its answer.
            self.transport.abort()
        elif not self.transport.is_closing() and self._owes():
            self._spent += elapsed
            if self._spent > self._allowed():
                self._expire()

    def _owes(self) -> bool:
        """Whether it is the client's turn."""
        if self._phase is _Phase.BODY:
            return not (self.flow.read_paused or (self.cycle.waiting_for_100_continue and not self._answered))
        return self._answered

    def _allowed(self) -> float:
        if self._phase is _Phase.HEADER:
            return self._limits.header_seconds
        if self._phase is _Phase.BODY:
            return self._limits.body_seconds + self._taken / _BODY_BYTES_A_SECOND
        return self._limits.idle_seconds if self._phase is _Phase.WHOLE else _LINGER_SECONDS

    def _expire(self) -> None:
        if self._phase is _Phase.HEADER:
            self._refuse(408, *_LATE_HEADER)
        elif self._phase is not _Phase.BODY or self._answered:
            self.transport.close()
        elif self.pipeline or self.cycle.response_started:
            # An answer here would end up inside another one.
            self.transport.abort()
        else:
            self.cycle.disconnected = True
            self.cycle.message_event.set()
            self._refuse(408, *_LATE_BODY)

    def _refuse(self, status: int, code: str, message: str) -> None:
        self._write_refusal(status, code, message)
        self.transport.write_eof()
        self._enter(_Phase.LINGERING)
        self._settle()

    def _write_refusal(self, status: int, code: str, message: str) -> None:
        body = json.dumps({"error": {"code": code, "message": message}}).encode()
        lines = [b"%s: %s\r\n" % header for header in self.server_state.default_headers]
        retry = b"Retry-After: 1\r\n" if status == 503 else b""
        lines += [b"Content-Type: application/json\r\nContent-Length: %d\r\n" % len(body), retry]
        self.transport.write(b"".join((STATUS_LINE[status], *lines, b"Connection: close\r\n\r\n", body)))

    def _enter(self, phase: _Phase) -> None:
        self._phase, self._spent, self._taken = phase, 0.0, 0

    def _settle(self) -> None:
        if self._phase is not _Phase.LINGERING and not self._answered:
            self.table.settle(self, None)
        else:
            self.table.settle(self, self.table.idle if self._phase is _Phase.WHOLE else self.table.opening)

    def _header_size(self) -> int:
        # The names and values, with the colon, the blank and the end of each line.
        return len(self.url) + sum(len(name) + len(value) + 4 for name, value in self.headers)


# An application, so that the answer comes after those of earlier requests.
_header_too_large: Any = error_response(431, *_TOO_LARGE, {"Connection": "close"})


# -- the port and its server -----------------------------------------------------------------------


def bind_port(host: str, port: int) -> socket.socket:
    """A socket on the port. Bound here, so that a port in use gives a plain error."""
    return _bound(host, port, socket.SO_REUSEADDR)


def bind_ports(host: str, port: int, workers: int) -> list[socket.socket]:
    """A socket for each worker, all on one port; on systems that do not share connections out, the same one for all."""
    first = bind_port(host, port)
    if sys.platform != "linux":
        return [first] * workers
    # Others could join a port that is shared from the start: another server of this user would get no error.
    port = first.getsockname()[1]
    first.close()
    return [_bound(host, port, socket.SO_REUSEADDR, socket.SO_REUSEPORT) for _ in range(workers)]


def _bound(host: str, port: int, *options: int) -> socket.socket:
    try:
        family, kind, _, _, address = socket.getaddrinfo(host, port, type=socket.SOCK_STREAM)[0]
        # With the protocol named, asyncio switches off Nagle's algorithm, which would delay answers by 40 ms.
        bound = socket.socket(family, kind, socket.IPPROTO_TCP)
        try:
            if os.name == "posix":
                for option in options:
                    bound.setsockopt(socket.SOL_SOCKET, option, 1)
            bound.bind(address)
            bound.listen(_BACKLOG)
        except OSError:
            bound.close()
            raise
        return bound
    except OSError as error:
        raise InvalidInput(
            f"Port {port} of {host} cannot be used: {error.strerror or error}.",
            remedy="Choose another --port.",
            field="port",
        ) from error


class _Server(uvicorn.Server):
    """Finishes its requests before it closes the port.

    The streams of watchers are ended first: they would stay open, and look broken when cut.
    """

    def __init__(self, config: uvicorn.Config, app: Starlette, drain_seconds: float) -> None:
        super().__init__(config)
        self._state = app.state
        self._drain_seconds = drain_seconds

    async def startup(self, sockets: list[socket.socket] | None = None) -> None:
        await super().startup(sockets)
        for bound in sockets or ():
            # uvicorn uses one number for the queue in the kernel and for what is accepted at once.
            bound.listen(_BACKLOG)

    async def shutdown(self, sockets: list[socket.socket] | None = None) -> None:
        draining: DrainState = self._state.draining
        draining.begin()
        self._state.end_streams()
        if not await draining.wait_until_idle(self._drain_seconds, lambda: self.force_exit):
            _log.warning("%s requests were not finished within drain_seconds", draining.in_flight)
        await super().shutdown(sockets)


def serve_app(
    app: Starlette, bound: socket.socket, settings: Settings, started: Callable[[], None], *, shared_port: bool
) -> None:
    """Serve on a socket until a signal comes. `started` is called just before connections are accepted."""
    limits = ConnectionLimits.of(settings)
    config = uvicorn.Config(
        app,
        log_config=None,
        access_log=False,
        timeout_graceful_shutdown=_GRACE_SECONDS,
        timeout_keep_alive=limits.idle_seconds,
        http=connection_class(limits),
        # One at a time, where others may accept from the same socket.
        backlog=1 if shared_port else _ACCEPTS_AT_ONCE,
        lifespan="on",
        ws="none",
    )
    server = _Server(config, app, settings.drain_seconds)

    # uvicorn has its own handlers while it runs; these are for the time before, and for the signal it re-raises.
    def stop(*_: object) -> None:
        server.should_exit = True

    for name in (signal.SIGTERM, signal.SIGINT):
        signal.signal(name, stop)
    started()
    server.run(sockets=[bound])


# -- worker processes ------------------------------------------------------------------------------


@dataclass(frozen=True, slots=True)
class Worker:
    """What a worker needs of the first process: its socket, what is shared, and whom to notify that it accepts."""

    bound: socket.socket
    page: SharedPage
    ready: Callable[[], None]


def fork_workers(
    settings: Settings, sockets: Sequence[socket.socket], announce: Callable[[PageLinks | None], None]
) -> Worker:
    """Start a worker on each socket. This returns in each of them; the first process ends when they have.

    `announce` is called in the first process once all of them accept connections.
    """
    if not hasattr(os, "fork"):
        raise InvalidInput(
            "Several workers need a system that can fork.", remedy="Leave out --workers.", field="workers"
        )
    first = os.getpid()
    folder = Path(tempfile.mkdtemp(prefix="cortex-page-"))
    try:
        page = SharedPage(folder, page_key(settings))
        supervisor = _Supervisor(sockets, page, settings.drain_seconds + _STOP_SECONDS)
        worker = supervisor.run(lambda: announce(page.links() if settings.auth == "token" else None))
    finally:
        if os.getpid() == first:
            shutil.rmtree(folder, ignore_errors=True)
    if worker is None:
        raise SystemExit(supervisor.status)
    return worker


class _Supervisor:
    """The first process: which workers live, on which socket, since when, and how often one died early."""

    def __init__(self, sockets: Sequence[socket.socket], page: SharedPage, stop_seconds: float) -> None:
        self._sockets = sockets
        self._page = page
        self._stop_seconds = stop_seconds
        self._born: dict[int, tuple[float, socket.socket]] = {}
        self._early = 0
        self._stopping: float | None = None
        self._announced = False
        self.status = 0
        self._ready_read, self._ready_write = os.pipe()
        # Nobody writes here: it ends with the first process, however that ends.
        self._alive_read, self._alive_write = os.pipe()

    def run(self, announce: Callable[[], None]) -> Worker | None:
        """Start the workers and watch until all have ended. In each worker this returns at once."""
        for bound in self._sockets:
            if worker := self._start(bound):
                return worker
        for name in (signal.SIGTERM, signal.SIGINT):
            signal.signal(name, lambda *_: self._stop())
        accepting = 0
        while self._born or self._stopping is None:
            if select.select([self._ready_read], [], [], _LOOK_SECONDS)[0]:
                accepting += len(os.read(self._ready_read, 1_000))
            if accepting >= len(self._sockets) and not self._announced:
                self._announced = True
                announce()
            for status, lived, bound in self._ended():
                if worker := self._replace(status, lived, bound):
                    return worker
            if self._stopping is not None and time.monotonic() > self._stopping + self._stop_seconds:
                self._signal(signal.SIGKILL)
        return None

    def _start(self, bound: socket.socket) -> Worker | None:
        """Fork; what the child needs is returned there."""
        pid = os.fork()
        if pid:
            self._born[pid] = time.monotonic(), bound
            return None
        for name in (signal.SIGTERM, signal.SIGINT):
            signal.signal(name, signal.SIG_DFL)
        os.close(self._ready_read)
        os.close(self._alive_write)
        for other in self._sockets:
            if other is not bound:
                other.close()
        threading.Thread(target=_end_with, args=(self._alive_read,), name="cortex-parent", daemon=True).start()
        ready = self._ready_write
        return Worker(bound, self._page, lambda: _write(ready))

    def _ended(self) -> Iterator[tuple[int, float, socket.socket]]:
        """The status of each worker that has ended, how long it lived, and its socket."""
        while self._born:
            pid, status = os.waitpid(-1, os.WNOHANG)
            if pid == 0:
                return
            if pid in self._born:
                born, bound = self._born.pop(pid)
                yield os.waitstatus_to_exitcode(status), time.monotonic() - born, bound

    def _replace(self, status: int, lived: float, bound: socket.socket) -> Worker | None:
        if self._stopping is not None:
            return None
        if not self._announced:
            # It has said why. The others would fail alike.
            self.status = status if status > 0 else 1
            self._stop()
            return None
        _log.warning("a worker ended with status %s after %.0f seconds and is started again", status, lived)
        self._early = self._early + 1 if lived < _SHORT_LIFE_SECONDS else 0
        if self._early:
            time.sleep(min(_FIRST_PAUSE * 2 ** (self._early - 1), _LONGEST_PAUSE))
        return self._start(bound) if self._stopping is None else None

    def _stop(self) -> None:
        if self._stopping is None:
            self._stopping = time.monotonic()
        self._signal(signal.SIGTERM)

    def _signal(self, number: int) -> None:
        for pid in list(self._born):
            with contextlib.suppress(ProcessLookupError):
                os.kill(pid, number)


def _write(pipe: int) -> None:
    with contextlib.suppress(OSError):
        os.write(pipe, b".")


def _end_with(alive: int) -> None:
    """Stop as if asked to, when the first process is gone."""
    os.read(alive, 1)
    os.kill(os.getpid(), signal.SIGTERM)
