"""The embedding tools in a FastMCP server, which the published documents promise. Nothing else uses FastMCP."""

from __future__ import annotations

import os
from typing import Any

# FastMCP takes settings from a file `.env` in the current folder, which may be a stranger's repository: whatever it
# said would hold for the server, and a pipe of that name would stop it.
os.environ.setdefault("FASTMCP_ENV_FILE", os.devnull)

import mcp_types
from fastmcp import FastMCP
from fastmcp.server.middleware import CallNext, Middleware, MiddlewareContext
from fastmcp.tools import Tool, ToolResult

from ...version import __version__
from .calls import ToolCalls
from .middleware.chain import redact_errors

__all__ = ["mounted"]


class _NoState:
    """The state of a session, of which there is none."""

    async def get(self, key: str) -> None:  # noqa: ARG002
        return None


class _Server(FastMCP[Any]):
    # FastMCP's own store would need packages that nothing else does.
    _state_store: Any = _NoState()


class _Answered(Middleware):
    """Answers every call in place of FastMCP."""

    def __init__(self, calls: ToolCalls) -> None:
        self._calls = calls

    async def on_call_tool(
        self,
        context: MiddlewareContext[mcp_types.CallToolRequestParams],
        call_next: CallNext[mcp_types.CallToolRequestParams, ToolResult],  # noqa: ARG002
    ) -> ToolResult:
        result = await self._calls.call(context.message.name, context.message.arguments or {}, _unreported)
        content = [mcp_types.TextContent(text=one["text"]) for one in result["content"]]
        return ToolResult(content, structured_content=result["structuredContent"], is_error=result["isError"])


async def _unreported(done: float, total: float | None, message: str | None) -> None:
    pass


def mounted(name: str, calls: ToolCalls) -> FastMCP[Any]:
    """A FastMCP server that lists these tools and passes calls on to them."""
    server = _Server(name, version=__version__, middleware=[_Answered(calls)], dereference_schemas=False)
    for one in calls.listed:
        server.add_tool(
            Tool(
                name=one.name,
                title=one.title,
                description=one.description,
                parameters=one.input_schema,
                output_schema=one.output_schema,
                annotations=one.annotations,
            )
        )
    server._mcp_server.middleware.insert(0, redact_errors)
    return server
