"""Answers the POST of a plain tool call in the stateless protocol, in the task that read it.

The SDK starts two tasks and a stream for each request, because a handler may send notifications before its answer. A
plain call sends none. Whatever is not exactly such a request, valid in all its parts, is left to the SDK. As there, a
client that leaves ends a call that has not begun, and from the time of the first ping on the answer is a stream.
"""

from __future__ import annotations

import asyncio
import contextlib
import json
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from typing import Any

import anyio
from mcp.server.connection import Connection
from mcp.server.runner import modern_error_data
from mcp.shared.exceptions import NoBackChannelError
from mcp.shared.inbound import ERROR_CODE_HTTP_STATUS
from mcp.shared.message import ServerMessageMetadata
from mcp.shared.transport_context import TransportContext
from mcp_types import (
    CLIENT_CAPABILITIES_META_KEY,
    CLIENT_INFO_META_KEY,
    PROTOCOL_VERSION_META_KEY,
    JSONRPCError,
    JSONRPCResponse,
)
from mcp_types.version import MODERN_PROTOCOL_VERSIONS
from starlette.requests import Request
from starlette.types import Scope, Send

from .middleware.telemetry import CALL_TOOL
from .sdk_adapter import HttpEndpoint

__all__ = ["DEPARTURE", "Departure", "PostedCalls"]

# Where the connection of a request tells that the client has left, in the request's scope.
DEPARTURE = "cortex.departure"

PING_SECONDS = 15.0
_MESSAGE = {"jsonrpc", "id", "method", "params"}
_ONCE = frozenset((b"mcp-protocol-version", b"mcp-method", b"mcp-name", b"accept", b"content-type"))
_ACCEPTED = frozenset((b"application/json", b"text/event-stream"))
_STREAM_HEADERS = [
    (b"content-type", b"text/event-stream"),
    (b"cache-control", b"no-cache, no-transform"),
    (b"connection", b"keep-alive"),
    (b"x-accel-buffering", b"no"),
]


class Departure:
    """Whether the client of a request has left, and what to do then."""

    def __init__(self) -> None:
        self._done = False
        self._then: Callable[[], None] | None = None

    def happen(self) -> None:
        self._done = True
        if self._then:
            self._then()

    def then(self, act: Callable[[], None]) -> None:
        self._then = act
        if self._done:
            act()


@dataclass
class _Exchange:
    """What the SDK's runner asks of the transport of one request, which sends nothing but the answer."""

    transport: TransportContext
    request_id: str | int
    message_metadata: ServerMessageMetadata
    can_send_request: bool = False
    cancel_requested: anyio.Event = field(default_factory=anyio.Event)

    async def send_raw_request(self, method: str, params: Mapping[str, Any] | None, opts: Any = None) -> dict[str, Any]:  # noqa: ARG002
        raise NoBackChannelError(method)

    async def notify(self, method: str, params: Mapping[str, Any] | None, opts: Any = None) -> None:
        pass

    async def progress(self, progress: float, total: float | None = None, message: str | None = None) -> None:
        pass


class PostedCalls:
    """`takes` says whether the parameters of a call are those of a plain one."""

    def __init__(self, endpoint: HttpEndpoint, takes: Callable[[Mapping[str, Any]], bool]) -> None:
        self._endpoint = endpoint
        self._takes = takes

    async def answer(self, scope: Scope, message: dict[str, Any], send: Send) -> bool:
        """Answer a request, or leave it: then nothing was sent, and nothing done."""
        if not self._endpoint.is_open or not self._fits(scope, message):
            return False
        meta = message["params"]["_meta"]
        connection = Connection.from_envelope(
            meta[PROTOCOL_VERSION_META_KEY], meta.get(CLIENT_INFO_META_KEY), meta[CLIENT_CAPABILITIES_META_KEY]
        )
        request = Request(scope)
        exchange = _Exchange(
            TransportContext(kind="streamable-http", can_send_request=False, headers=request.headers),
            message["id"],
            ServerMessageMetadata(request_context=request),
        )
        runner = self._endpoint.runner(connection)
        reply = _Reply(send)
        with anyio.CancelScope() as cancelling:
            scope[DEPARTURE].then(cancelling.cancel)
            try:
                result = await runner.on_request(exchange, CALL_TOOL, message["params"])
            except Exception as error:  # noqa: BLE001  # the SDK's own table has the answer to each
                fault = modern_error_data(error)
                failed = JSONRPCError(jsonrpc="2.0", id=message["id"], error=fault)
                await reply.finish(_dumped(failed), ERROR_CODE_HTTP_STATUS.get(fault.code, 200))
            else:
                await reply.finish({"jsonrpc": "2.0", "id": message["id"], "result": result}, 200)
            finally:
                reply.close()
                await connection.exit_stack.aclose()
        return True

    def _fits(self, scope: Scope, message: dict[str, Any]) -> bool:
        if message.get("method") != CALL_TOOL or message.keys() != _MESSAGE or DEPARTURE not in scope:
            return False
        params = message["params"]
        if not self._takes(params):
            return False
        meta = params.get("_meta") or {}
        headers: dict[bytes, bytes] = {}
        for name, value in scope["headers"]:
            if (name in _ONCE and name in headers) or name.startswith(b"mcp-param-"):
                return False
            headers[name] = value
        version = headers.get(b"mcp-protocol-version", b"").decode("latin-1")
        return (
            version in MODERN_PROTOCOL_VERSIONS
            and meta.get(PROTOCOL_VERSION_META_KEY) == version
            and CLIENT_CAPABILITIES_META_KEY in meta
            and headers.get(b"mcp-method") == CALL_TOOL.encode()
            and headers.get(b"mcp-name") == params["name"].encode()
            and headers.get(b"content-type") == b"application/json"
            and _ACCEPTED.issubset(headers.get(b"accept", b"").replace(b" ", b"").split(b","))
        )


class _Reply:
    """One answer: a plain body, or the last event of a stream that was begun to keep the connection open."""

    def __init__(self, send: Send) -> None:
        self._send = send
        self._begun = False
        self._pings: asyncio.Task[None] | None = None
        self._timer = asyncio.get_running_loop().call_later(PING_SECONDS, self._begin)

    def _begin(self) -> None:
        self._pings = asyncio.create_task(self._ping())

    async def _ping(self) -> None:
        self._begun = True
        await self._send({"type": "http.response.start", "status": 200, "headers": _STREAM_HEADERS})
        while True:
            await self._send({"type": "http.response.body", "body": b": ping\r\n\r\n", "more_body": True})
            await asyncio.sleep(PING_SECONDS)

    async def finish(self, reply: dict[str, Any], status: int) -> None:
        body = json.dumps(reply, separators=(",", ":")).encode()
        self.close()
        if self._pings is not None:
            with contextlib.suppress(asyncio.CancelledError):
                await self._pings
        if self._begun:
            body = b"event: message\r\ndata: " + body + b"\r\n\r\n"
        else:
            headers = [(b"content-length", str(len(body)).encode()), (b"content-type", b"application/json")]
            await self._send({"type": "http.response.start", "status": status, "headers": headers})
        await self._send({"type": "http.response.body", "body": body, "more_body": False})

    def close(self) -> None:
        self._timer.cancel()
        if self._pings is not None:
            self._pings.cancel()


def _dumped(message: JSONRPCResponse | JSONRPCError) -> dict[str, Any]:
    return message.model_dump(mode="json", by_alias=True, exclude_none=True)
