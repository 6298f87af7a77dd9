"""Errors on the wire: the library's error tree as JSON-RPC errors with the documented codes.

FastMCP turns whatever a tool raises into a result; a middleware may still raise a protocol error, so the
translation happens there.
"""

from __future__ import annotations

import logging
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

import mcp_types
from fastmcp.exceptions import FastMCPError, NotFoundError, ResourceError, ToolError
from fastmcp.exceptions import ValidationError as ArgumentError
from fastmcp.server.middleware import CallNext, Middleware, MiddlewareContext
from fastmcp.tools import ToolResult
from mcp.shared.exceptions import MCPError
from pydantic import ValidationError

from ..errors import AmbiguousId, ContentBlocked, CortexError, FilterSyntaxError, InvalidInput, NotFound, wire_form
from .registry import ToolSpec

__all__ = ["INTERNAL_ERROR", "INVALID_PARAMS", "UNKNOWN_TOOL", "WireErrors", "as_wire_error", "expected_errors"]

UNKNOWN_TOOL = -32601
INVALID_PARAMS = -32602
INTERNAL_ERROR = -32603

_log = logging.getLogger(__name__)


@contextmanager
def expected_errors(kind: type[FastMCPError]) -> Iterator[None]:
    """Let the library's errors pass as the framework's own, which it does not log as faults of the server."""
    try:
        yield
    except CortexError as error:
        raise kind(str(error), log_level=logging.DEBUG) from error


class WireErrors(Middleware):
    """Lets tools raise the library's errors and clients see the documented codes.

    Also where a tool's other spelling is understood, because here the name can still be changed.
    """

    def __init__(self, specs: list[ToolSpec], *, portable: bool) -> None:
        self._listed = {
            spelling: spec.portable_name if portable else spec.name for spec in specs for spelling in spec.spellings
        }

    async def on_call_tool(
        self,
        context: MiddlewareContext[mcp_types.CallToolRequestParams],
        call_next: CallNext[mcp_types.CallToolRequestParams, ToolResult],
    ) -> ToolResult:
        name, arguments = context.message.name, context.message.arguments or {}
        listed = self._listed.get(name, name)
        if listed != name:
            context = context.copy(message=context.message.model_copy(update={"name": listed}))
        try:
            return await call_next(context)
        except NotFoundError as error:
            raise MCPError(code=UNKNOWN_TOOL, message=f"Unknown tool: {name}", data={"tool": name}) from error
        except ArgumentError as error:
            raise _bad_arguments(name, error) from error
        except ToolError as error:
            if isinstance(error.__cause__, CortexError):
                raise as_wire_error(error.__cause__, arguments) from error
            _log.error("%s failed", name, exc_info=error)
            raise MCPError(
                code=INTERNAL_ERROR,
                message=f"{name} failed; the server's log has the details.",
                data={"tool": name},
            ) from error

    async def on_read_resource(
        self,
        context: MiddlewareContext[mcp_types.ReadResourceRequestParams],
        call_next: CallNext[mcp_types.ReadResourceRequestParams, Any],
    ) -> Any:
        try:
            return await call_next(context)
        except ResourceError as error:
            cause = error.__cause__
            if not isinstance(cause, CortexError):
                raise
            # The protocol has one code for a resource that is not there.
            absent = isinstance(cause, NotFound | InvalidInput | AmbiguousId)
            told = as_wire_error(cause, {})
            raise MCPError(
                code=INVALID_PARAMS if absent else told.error.code,
                message=told.error.message,
                data={**told.error.data, "uri": str(context.message.uri)},
            ) from error


def as_wire_error(error: CortexError, arguments: dict[str, Any]) -> MCPError:
    """An error of the library with its code; `data` names the argument, its value if it is an id, and the remedy."""
    field = error.field
    if field == "id" and "memory_id" in arguments:
        field = "memory_id"
    details: dict[str, Any] = {"error": type(error).__name__, "field": field, "remedy": error.remedy}
    if field == "memory_id":
        details["memory_id"] = str(arguments["memory_id"])[:200]
    if isinstance(error, AmbiguousId):
        details["candidates"] = list(error.candidates)
    if isinstance(error, ContentBlocked):
        details["kinds"] = list(error.kinds)
    if isinstance(error, FilterSyntaxError):
        details["position"] = error.position
    data = {name: value for name, value in details.items() if value is not None}
    return MCPError(code=wire_form(error).subcog, message=str(error), data=data)


def _bad_arguments(name: str, error: ArgumentError) -> MCPError:
    faults = error.__cause__.errors() if isinstance(error.__cause__, ValidationError) else []
    places = [(".".join(str(part) for part in fault["loc"]), fault["msg"]) for fault in faults if fault["loc"]]
    told = "; ".join(f"{place}: {message}" for place, message in places) or "The arguments do not fit the tool."
    fields = list(dict.fromkeys(place.split(".")[0] for place, _ in places))
    return MCPError(
        code=INVALID_PARAMS,
        message=f"{name}: {told}",
        data={"tool": name, "field": fields[0] if fields else None, "fields": fields},
    )
