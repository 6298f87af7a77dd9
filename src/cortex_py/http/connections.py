"""Limits of HTTP connections: their number, the size of a header, the time for header, body and answer.

The one module that touches the insides of uvicorn's protocol class; `tests/http/test_uvicorn_adapter.py` guards them.
One sweep a second measures all connections, instead of a timer for each.
"""

from __future__ import annotations

import asyncio
import json
from collections.abc import Iterable
from dataclasses import dataclass
from enum import Enum
from typing import Any, ClassVar

from starlette.responses import JSONResponse
from uvicorn.config import Config
from uvicorn.protocols.http.httptools_impl import STATUS_LINE, HttpToolsProtocol
from uvicorn.server import ServerState

from ..config import Settings

__all__ = ["ACCEPTS_AT_ONCE", "BoundedConnection", "Limits", "connection_class"]

# The event loop accepts this many before it handles any of them; each needs a descriptor beyond the bound.
ACCEPTS_AT_ONCE = 16

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


@dataclass(frozen=True, slots=True)
class Limits:
    """What a server accepts. `requests` and `streams` leave a fifth of the connections free for new clients."""

    connections: int
    requests: int
    streams: int
    header_bytes: int
    header_seconds: int
    body_seconds: int
    idle_seconds: int

    @classmethod
    def of(cls, settings: Settings) -> Limits:
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


def connection_class(limits: Limits) -> type[BoundedConnection]:
    """The protocol class for one server, whose connections are counted together."""
    return type("BoundedConnection", (BoundedConnection,), {"connection_table": _ConnectionTable(limits)})


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
        waiting = self._by_address.get(connection.address)
        if waiting is not None:
            waiting.pop(connection, None)
            if not waiting:
                del self._by_address[connection.address]

    def oldest(self) -> BoundedConnection | None:
        """The oldest of the address that has the most, so that no address can drive out the others."""
        most = max(self._by_address.values(), key=len, default=None)
        return None if most is None else next(iter(most))


class _ConnectionTable:
    """All connections of one server."""

    def __init__(self, limits: Limits) -> None:
        self.limits = limits
        self._all: dict[BoundedConnection, _Queue | None] = {}
        self._opening, self._idle = _Queue(), _Queue()
        self._swept: float | None = None

    def admit(self, connection: BoundedConnection) -> bool:
        """Accept a new connection. If there are too many, one that waits for nothing is closed."""
        if len(self._all) >= self.limits.connections:
            victim = self._opening.oldest() or self._idle.oldest()
            if victim is None:
                return False
            half_open = self._all[victim] is self._opening
            self.remove(victim)
            victim.give_way(half_open)
        self._all[connection] = self._opening
        self._opening.add(connection)
        if self._swept is None:
            self._swept = connection.loop.time()
            connection.loop.call_later(_SWEEP_SECONDS, self._sweep, connection.loop)
        return True

    def remove(self, connection: BoundedConnection) -> None:
        queue = self._all.pop(connection, None)
        if queue is not None:
            queue.discard(connection)

    def settle(self, connection: BoundedConnection, *, unanswered: bool, idle: bool) -> None:
        """Note whether a connection can be closed without loss."""
        if connection not in self._all:
            return
        before = self._all[connection]
        queue = None if unanswered else self._idle if idle else self._opening
        if queue is not before or queue is self._idle:
            if before is not None:
                before.discard(connection)
            if queue is not None:
                queue.add(connection)
            self._all[connection] = queue

    def _sweep(self, loop: asyncio.AbstractEventLoop) -> None:
        now = loop.time()
        # Time in which the server itself was blocked does not count against clients.
        elapsed = min(now - (self._swept or now), 2 * _SWEEP_SECONDS)
        for connection in list(self._all):
            connection.measure(elapsed)
        if self._all:
            self._swept = now
            loop.call_later(_SWEEP_SECONDS, self._sweep, loop)
        else:
            self._swept = None


class BoundedConnection(HttpToolsProtocol):
    """A connection that keeps to the limits."""

    connection_table: ClassVar[_ConnectionTable]

    def __init__(
        self,
        config: Config,
        server_state: ServerState,
        app_state: dict[str, Any],
        _loop: asyncio.AbstractEventLoop | None = None,
    ) -> None:
        super().__init__(config, server_state, app_state, _loop)
        self.address = ""
        self._limits = self.connection_table.limits
        self._phase = _Phase.HEADER
        # Seconds of the phase for which the client is answerable.
        self._spent = 0.0
        # Bytes of the header, of the body, or dropped: as the phase has it.
        self._taken = 0
        self._chunk = 0
        self._begun = 0
        self._unsent = 0
        self._unsent_seconds = 0.0

    @property
    def _answered(self) -> bool:
        return self.cycle is None or self.cycle.response_complete

    def connection_made(self, transport: asyncio.Transport) -> None:  # type: ignore[override]  # as uvicorn has it
        super().connection_made(transport)
        self.address = self.client[0] if self.client else ""
        if not self.connection_table.admit(self):
            self.give_way(half_open=True)

    def connection_lost(self, exc: Exception | None) -> None:
        self.connection_table.remove(self)
        super().connection_lost(exc)

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
            self.transport.write(_plain_answer(503, *_BUSY, self.server_state.default_headers))
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
        self.transport.write(_plain_answer(status, code, message, self.server_state.default_headers))
        self.transport.write_eof()
        self._enter(_Phase.LINGERING)
        self._settle()

    def _enter(self, phase: _Phase) -> None:
        self._phase, self._spent, self._taken = phase, 0.0, 0

    def _settle(self) -> None:
        lost = self._phase is _Phase.LINGERING or self._answered
        self.connection_table.settle(self, unanswered=not lost, idle=self._phase is _Phase.WHOLE)

    def _header_size(self) -> int:
        # The names and values, with the colon, the blank and the end of each line.
        return len(self.url) + sum(len(name) + len(value) + 4 for name, value in self.headers)


def _plain_answer(status: int, code: str, message: str, headers: Iterable[tuple[bytes, bytes]]) -> bytes:
    body = json.dumps({"error": {"code": code, "message": message}}).encode()
    lines = [b"%s: %s\r\n" % header for header in headers]
    retry = b"Retry-After: 1\r\n" if status == 503 else b""
    lines += [b"Content-Type: application/json\r\nContent-Length: %d\r\n" % len(body), retry]
    return b"".join((STATUS_LINE[status], *lines, b"Connection: close\r\n\r\n", body))


# An application, so that the answer comes after those of earlier requests.
_header_too_large: Any = JSONResponse(
    {"error": dict(zip(("code", "message"), _TOO_LARGE, strict=True))}, status_code=431, headers={"Connection": "close"}
)
