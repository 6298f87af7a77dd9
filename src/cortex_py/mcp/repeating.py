"""Calls that only read are done once more when the database went away under them: its restart is not the client's.

A call that writes is not repeated here: it may have written, in a transaction before the one that broke.
"""

from __future__ import annotations

import logging
from collections.abc import Awaitable, Callable, Sequence
from typing import Any, TypeVar

import mcp_types
from fastmcp.exceptions import FastMCPError
from fastmcp.server.middleware import CallNext, Middleware, MiddlewareContext
from fastmcp.tools import ToolResult

from ..errors import StoreUnavailable
from .tool_spec import ToolSpec

__all__ = ["Repeating"]

_T = TypeVar("_T")

_log = logging.getLogger(__name__)


class Repeating(Middleware):
    def __init__(self, specs: Sequence[ToolSpec]) -> None:
        self._reading = {name for spec in specs if spec.read_only and not spec.reaches_out for name in spec.spellings}

    async def on_call_tool(
        self,
        context: MiddlewareContext[mcp_types.CallToolRequestParams],
        call_next: CallNext[mcp_types.CallToolRequestParams, ToolResult],
    ) -> ToolResult:
        if context.message.name not in self._reading:
            return await call_next(context)
        return await _again(lambda: call_next(context))

    async def on_read_resource(
        self,
        context: MiddlewareContext[mcp_types.ReadResourceRequestParams],
        call_next: CallNext[mcp_types.ReadResourceRequestParams, Any],
    ) -> Any:
        return await _again(lambda: call_next(context))

    async def on_get_prompt(
        self,
        context: MiddlewareContext[mcp_types.GetPromptRequestParams],
        call_next: CallNext[mcp_types.GetPromptRequestParams, Any],
    ) -> Any:
        return await _again(lambda: call_next(context))


async def _again(read: Callable[[], Awaitable[_T]]) -> _T:
    try:
        return await read()
    except (FastMCPError, StoreUnavailable) as error:
        if not isinstance(error, StoreUnavailable) and not isinstance(error.__cause__, StoreUnavailable):
            raise
        _log.warning("the database went away under a read; it is done once more")
    return await read()
