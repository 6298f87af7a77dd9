"""Real clients for tests, used without `await`: a client of each protocol, connected to any server."""

from __future__ import annotations

import json
from collections.abc import AsyncIterator, Iterator
from contextlib import ExitStack, asynccontextmanager, contextmanager
from pathlib import Path
from typing import Any

import anyio
import pytest
from anyio.from_thread import BlockingPortal, start_blocking_portal
from fastmcp import Client
from fastmcp.client.transports import ClientTransport, StdioTransport
from fastmcp.client.transports.base import SessionKwargs, TransportOptions
from mcp.server.lowlevel import Server
from mcp.shared.exceptions import MCPError
from mcp.shared.memory import create_client_server_memory_streams
from mcp_types import ErrorData
from typing_extensions import Unpack

from mcp import ClientSession

from servers import http_server, serve_command, serve_environment

__all__ = [
    "CURRENT",
    "MODES",
    "PROTOCOLS",
    "TRANSPORTS",
    "Caller",
    "InMemory",
    "connected",
    "served",
    "stdio_transport",
]

PROTOCOLS = {"legacy": "2025-11-25", "auto": "2026-07-28"}
MODES = tuple(PROTOCOLS)
# Tests of one tool speak the newest protocol. What differs between protocols is tested in both: the examples of the
# documents (`test_replay`, `test_cortex_document`), error codes (`test_wire_errors`), resources, watching, long calls.
CURRENT = "auto"
TRANSPORTS = ("stdio", "http")


class Caller:
    """A connected client. `client` is the framework's own; `portal` runs its coroutines."""

    def __init__(self, portal: BlockingPortal, client: Client[Any]) -> None:
        self.portal = portal
        self.client = client

    def call(self, tool: str, /, **arguments: Any) -> dict[str, Any]:
        """What a tool answers."""
        result = self.portal.call(self.client.call_tool_mcp, tool, arguments)
        assert not result.is_error
        assert isinstance(result.structured_content, dict)
        return result.structured_content

    def refused(self, tool: str, /, **arguments: Any) -> ErrorData:
        """The error with which a call is answered."""
        with pytest.raises(MCPError) as caught:
            self.portal.call(self.client.call_tool_mcp, tool, arguments)
        return caught.value.error

    def failed(self, tool: str, /, **arguments: Any) -> dict[str, Any]:
        """What a tool answers in a result that is marked as an error."""
        result = self.portal.call(self.client.call_tool_mcp, tool, arguments)
        assert result.is_error
        assert isinstance(result.structured_content, dict)
        (block,) = result.content
        assert json.loads(block.text) == result.structured_content
        return result.structured_content

    def read(self, uri: str) -> str:
        """The text of a resource."""
        contents = self.portal.call(self.client.read_resource, uri)
        assert len(contents) == 1
        return str(contents[0].text)

    def unreadable(self, uri: str) -> ErrorData:
        """The error with which reading is answered."""
        with pytest.raises(MCPError) as caught:
            self.portal.call(self.client.read_resource, uri)
        return caught.value.error


class InMemory(ClientTransport):
    """Connects the framework's client with a server object of the SDK."""

    def __init__(self, server: Server[Any]) -> None:
        self._server = server

    @asynccontextmanager
    async def connect_session(
        self, *, transport_options: TransportOptions | None = None, **session_kwargs: Unpack[SessionKwargs]
    ) -> AsyncIterator[ClientSession]:
        make_session = (transport_options or TransportOptions()).session_class
        async with (
            create_client_server_memory_streams() as (client, (read, write)),
            anyio.create_task_group() as group,
        ):
            group.start_soon(self._server.run, read, write, self._server.create_initialization_options())
            async with make_session(*client, **session_kwargs) as session:
                yield session
            group.cancel_scope.cancel()


@contextmanager
def connected(
    server: Server[Any] | ClientTransport | str, mode: str, portal: BlockingPortal | None = None, **options: Any
) -> Iterator[Caller]:
    """A client in one of the `MODES`. The server may be an object, a transport or an address.

    Two clients of one server object share its portal: the object belongs to one event loop.
    """
    with ExitStack() as stack:
        loop = portal or stack.enter_context(start_blocking_portal())
        transport = InMemory(server) if isinstance(server, Server) else server
        client = loop.call(lambda: Client(transport, mode=mode, timeout=60, **options))
        stack.enter_context(loop.wrap_async_context_manager(client))
        assert client.protocol_version == PROTOCOLS[mode]
        yield Caller(loop, client)


def stdio_transport(
    home: Path, project: Path, *options: str, own_interpreter: bool = False, **variables: str
) -> StdioTransport:
    """A `cortex serve` process of its own for whoever connects."""
    command, *arguments = serve_command(*options, own_interpreter=own_interpreter)
    return StdioTransport(
        command, arguments, env=serve_environment(home, **variables), cwd=str(project), keep_alive=False
    )


@contextmanager
def served(transport: str, mode: str, home: Path, project: Path, *options: str, **variables: str) -> Iterator[Caller]:
    """A client of a server process of its own, over one of the `TRANSPORTS`."""
    if transport == "stdio":
        with connected(stdio_transport(home, project, *options, **variables), mode) as caller:
            yield caller
    else:
        with http_server(home, project, *options, **variables) as server, connected(server.mcp, mode) as caller:
            yield caller
