"""The only module that touches internals of FastMCP and the MCP SDK, for what they have no public way to do.

`tests/mcp/test_sdk_adapter.py` names what is missing when a release of theirs changes one of them.
"""

from __future__ import annotations

import json
from collections.abc import AsyncIterator, Awaitable, Callable, Iterable, Mapping
from contextlib import AbstractAsyncContextManager, asynccontextmanager
from types import MappingProxyType
from typing import Any

import mcp_types
from fastmcp import FastMCP
from fastmcp.server.context import reset_transport, set_transport
from fastmcp.tools import Tool
from fastmcp.utilities.versions import VersionSpec
from mcp.server.connection import Connection
from mcp.server.context import ServerMiddleware, ServerRequestContext
from mcp.server.runner import ServerRunner
from starlette.applications import Starlette
from starlette.routing import Route

__all__ = [
    "HttpEndpoint", "StatelessServer", "add_request_handler", "add_sdk_middleware", "connection_of", "open_stdio",
    "prompt_lister", "run_on_streams", "server_info", "set_largest_body", "set_tool_schemas",
]  # fmt: skip

# Marks an argument of a tool that clients repeat in a header.
_IN_HEADER = "x-mcp-header"

RequestHandler = Callable[[ServerRequestContext[Any, Any], Any], Awaitable[Any]]


class _NoState:
    """The state of a session, of which there is none."""

    async def get(self, key: str) -> None:  # noqa: ARG002
        return None


class StatelessServer(FastMCP[Any]):
    """FastMCP's server without its store of what sessions keep.

    FastMCP reads that store at each request, to see which components a session hid. No session here hides any, and the
    store would need packages that nothing else does. For the same reason a tool is found by its name alone: FastMCP
    asks every provider, each in a task of its own, which took a tenth of its time for a call.
    """

    _state_store: Any = _NoState()
    kept_tools: Mapping[str, Tool] = MappingProxyType({})

    def keep_tools(self, tools: Iterable[Tool]) -> None:
        """Add tools, which stay as they are."""
        self.kept_tools = {tool.name: tool for tool in tools}
        for tool in self.kept_tools.values():
            self.add_tool(tool)
        set_tool_schemas(self, {tool.name: tool.parameters for tool in self.kept_tools.values()})

    async def get_tool(self, name: str, version: VersionSpec | None = None) -> Tool | None:
        return self.kept_tools.get(name) or await super().get_tool(name, version)


def add_sdk_middleware(server: FastMCP[Any], middleware: ServerMiddleware[Any]) -> None:
    """Put a middleware outermost in the SDK's own chain, which sees all requests; FastMCP's does not."""
    server._mcp_server.middleware.insert(0, middleware)


def set_tool_schemas(server: FastMCP[Any], schemas: Mapping[str, dict[str, Any]]) -> None:
    """Give the tools' input schemas by name. Without them the stateless protocol lists all tools before each call.

    It looks in them for arguments that are repeated in headers; a schema without any is not walked for each call.
    """
    shown = {name: schema if _IN_HEADER in json.dumps(schema) else {} for name, schema in schemas.items()}
    server._mcp_server.get_tool_input_schema = shown.get


def add_request_handler(server: FastMCP[Any], method: str, params: type[Any], handler: RequestHandler) -> None:
    server._mcp_server.add_request_handler(method, params, handler)


def prompt_lister(
    server: FastMCP[Any],
) -> Callable[
    [ServerRequestContext[Any, Any], mcp_types.PaginatedRequestParams | None], Awaitable[mcp_types.ListPromptsResult]
]:
    """FastMCP's own handler of `prompts/list`."""
    return server._on_list_prompts


def server_info(server: FastMCP[Any]) -> dict[str, Any]:
    """What the SDK adds to each answer of the stateless protocol."""
    return server._mcp_server.server_info_stamp


def connection_of(context: ServerRequestContext[Any, Any]) -> Connection:
    """The connection of a request. The session lives only as long as the request."""
    return context.session._connection


@asynccontextmanager
async def open_stdio(server: FastMCP[Any]) -> AsyncIterator[None]:
    """The server's life, as FastMCP's own stdio transport has it."""
    token = set_transport("stdio")
    try:
        async with server._lifespan_manager():
            yield
    finally:
        reset_transport(token)


async def run_on_streams(server: FastMCP[Any], read: Any, write: Any) -> None:
    """Serve one client on a pair of streams."""
    inner = server._mcp_server
    await inner.run(read, write, inner.create_initialization_options())


class HttpEndpoint:
    """The SDK's server behind a path of the application."""

    def __init__(self, server: FastMCP[Any], app: Starlette, path: str) -> None:
        self._server = server._mcp_server
        self._endpoint = _endpoint(app, path)

    @property
    def is_open(self) -> bool:
        manager = self._endpoint.session_manager
        return manager is not None and manager._task_group is not None

    def runner(self, connection: Connection) -> ServerRunner[Any]:
        """What handles the requests of a connection."""
        return ServerRunner(self._server, connection, self._endpoint.session_manager._lifespan_state)


def _endpoint(app: Starlette, path: str) -> Any:
    (endpoint,) = [route.endpoint for route in app.routes if isinstance(route, Route) and route.path == path]
    return endpoint


def set_largest_body(app: Starlette, path: str, most: int) -> None:
    """Replace FastMCP's bound on the size of a request, which is set when the application starts."""
    endpoint = _endpoint(app, path)
    inner: Callable[[Starlette], AbstractAsyncContextManager[Any]] = app.router.lifespan_context

    @asynccontextmanager
    async def lifespan(outer: Starlette) -> AsyncIterator[Any]:
        async with inner(outer) as state:
            endpoint.session_manager.asgi_app.max_body_size = most
            yield state

    app.router.lifespan_context = lifespan
