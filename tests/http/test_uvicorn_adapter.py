"""What `http/connections` uses of uvicorn's insides is still there; a uvicorn without it fails here."""

from __future__ import annotations

import asyncio
import inspect

import httptools
import uvicorn
from uvicorn.protocols.http.auto import AutoHTTPProtocol
from uvicorn.protocols.http.flow_control import FlowControl
from uvicorn.protocols.http.httptools_impl import STATUS_LINE, HttpToolsProtocol, RequestResponseCycle
from uvicorn.server import ServerState

from cortex_py.http.connections import BoundedConnection, Limits, connection_class

LIMITS = Limits(
    connections=10, requests=4, streams=4, header_bytes=1000, header_seconds=1, body_seconds=1, idle_seconds=1
)


def test_uvicorn_would_choose_the_class_we_extend() -> None:
    assert AutoHTTPProtocol is HttpToolsProtocol
    assert uvicorn.Config("x:y", http=connection_class(LIMITS)).http is not HttpToolsProtocol


def test_what_is_overridden_is_called() -> None:
    source = inspect.getsource(HttpToolsProtocol)
    ours = {name for name, _ in inspect.getmembers(BoundedConnection, inspect.isfunction)}
    for name in ("connection_made", "connection_lost", "data_received", "send_400_response", "on_response_complete"):
        assert name in ours
        assert f"def {name}(" in source
    # The parser calls these by name.
    for name in ("on_message_begin", "on_headers_complete", "on_body", "on_message_complete"):
        assert callable(getattr(HttpToolsProtocol, name))
    assert "on_response=self.on_response_complete" in source


def test_what_is_read_is_there() -> None:
    async def made() -> HttpToolsProtocol:
        async def app(scope: object, receive: object, send: object) -> None: ...

        config = uvicorn.Config(app, lifespan="off")
        config.load()
        return connection_class(LIMITS)(config, ServerState(), {})

    connection = asyncio.run(made())
    for name in ("app", "cycle", "pipeline", "flow", "transport", "client", "loop", "server_state", "config"):
        assert hasattr(connection, name)
    assert connection.app is connection.config.loaded_app
    assert connection.server_state.default_headers == []
    assert STATUS_LINE[431].startswith(b"HTTP/1.1 431 ")
    assert "self.read_paused" in inspect.getsource(FlowControl)
    cycle = inspect.getsource(RequestResponseCycle)
    for name in ("response_complete", "response_started", "disconnected", "message_event", "waiting_for_100_continue"):
        assert f"self.{name}" in cycle


def test_the_parser_tells_of_parts_in_order() -> None:
    told: list[str] = []

    class Parts:
        def __getattr__(self, name: str) -> object:
            return lambda *_: told.append(name)

    httptools.HttpRequestParser(Parts()).feed_data(b"POST /x HTTP/1.1\r\nContent-Length: 1\r\n\r\na")
    parts = ("on_message_begin", "on_url", "on_header", "on_headers_complete", "on_body", "on_message_complete")
    assert [name for name in told if name in parts] == list(parts)
