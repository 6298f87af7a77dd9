"""The only module that touches internals of the MCP SDK, for what it has no public way to do.

`tests/mcp/test_sdk_adapter.py` names what is missing when a release changes one of them.
"""

from __future__ import annotations

from collections.abc import AsyncIterator, Sequence
from contextlib import asynccontextmanager
from typing import Any

from mcp.server.connection import Connection
from mcp.server.context import ServerRequestContext
from mcp.server.lowlevel import Server
from mcp.server.runner import ServerRunner
from mcp.server.streamable_http_manager import StreamableHTTPASGIApp, StreamableHTTPSessionManager
from mcp.server.transport_security import TransportSecuritySettings
from starlette.applications import Starlette
from starlette.middleware import Middleware
from starlette.routing import Route

__all__ = ["HttpEndpoint", "connection_of"]


def connection_of(context: ServerRequestContext[Any, Any]) -> Connection:
    """The connection of a request. The session lives only as long as the request."""
    return context.session._connection


class HttpEndpoint:
    """The server behind a path of an application. Without sessions the next request may reach another server."""

    def __init__(self, server: Server[Any], *, sessions: bool, largest_body: int) -> None:
        self._server = server
        self._sessions = sessions
        self._manager = StreamableHTTPSessionManager(
            server,
            stateless=not sessions,
            max_request_body_size=largest_body,
            # A guard of ours stands before it.
            security_settings=TransportSecuritySettings(enable_dns_rebinding_protection=False),
        )
        self._lifespan_state: Any = None
        self.is_open = False

    def app(self, path: str, middleware: Sequence[Middleware]) -> Starlette:
        methods = None if self._sessions else ["POST", "DELETE"]
        route = Route(path, endpoint=StreamableHTTPASGIApp(self._manager), methods=methods)
        return Starlette(routes=[route], middleware=middleware, lifespan=self._lifespan)

    @asynccontextmanager
    async def _lifespan(self, _: Starlette) -> AsyncIterator[None]:
        async with self._manager.run():
            self._lifespan_state, self.is_open = self._manager._lifespan_state, True
            try:
                yield
            finally:
                self.is_open = False
                # Streams that are only cancelled look broken to clients.
                for transport in list(self._manager._server_instances.values()):
                    await transport.terminate()

    def runner(self, connection: Connection) -> ServerRunner[Any]:
        """What handles the requests of a connection."""
        return ServerRunner(self._server, connection, self._lifespan_state)
