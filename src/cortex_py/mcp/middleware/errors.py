"""Errors on the wire: the library's error tree as JSON-RPC errors with the documented codes.

FastMCP turns whatever a tool raises into a result; a middleware may still raise a protocol error, so the
translation happens there.
"""

from __future__ import annotations

import logging
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import asdict
from typing import Any

import mcp_types
from fastmcp.exceptions import FastMCPError, NotFoundError, PromptError, ResourceError, ToolError
from fastmcp.exceptions import ValidationError as ArgumentError
from fastmcp.server.middleware import CallNext, Middleware, MiddlewareContext
from fastmcp.tools import ToolResult
from mcp.shared.exceptions import MCPError
from pydantic import ValidationError

from ..errors import (
    AmbiguousId,
    BadArguments,
    ContentBlocked,
    ContentSyntaxError,
    CortexError,
    FilterSyntaxError,
    InvalidInput,
    NotFound,
    wire_form,
)
from .context_shapes import context_error
from .embedding_shapes import error_response
from .registry import ToolSpec

__all__ = [
    "INTERNAL_ERROR",
    "INVALID_PARAMS",
    "UNKNOWN_TOOL",
    "Requirement",
    "WireErrors",
    "as_wire_error",
    "expected_errors",
]

UNKNOWN_TOOL = -32601
INVALID_PARAMS = -32602
INTERNAL_ERROR = -32603

# What the library calls a field where the tools' argument has another name.
_ARGUMENTS = {"id": "memory_id", "project": "repo_path", "path": "repo_path"}

# Given a tool's name and arguments, raises why it may not be called.
Requirement = Callable[[str, dict[str, Any]], None]

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

    Also where a tool's other spelling is understood, because here the name can still be changed, and where
    a call is refused for want of a scope or a licence: all of `require` are asked before each.
    """

    def __init__(
        self,
        specs: list[ToolSpec],
        *,
        portable: bool,
        require: Sequence[Requirement] = (),
    ) -> None:
        self._specs = {spelling: spec for spec in specs for spelling in spec.spellings}
        self._portable = portable
        self._require = require

    async def on_request(
        self, context: MiddlewareContext[mcp_types.Request[Any, Any]], call_next: CallNext[Any, Any]
    ) -> Any:
        """What no other hook has translated. An unforeseen error is not told in its own words: they may quote data."""
        try:
            return await call_next(context)
        except (MCPError, FastMCPError, NotFoundError, ValidationError):
            raise
        except CortexError as error:
            raise as_wire_error(error, {}) from error
        except Exception as error:
            _log.error("%s failed", context.method, exc_info=error)
            raise MCPError(
                code=INTERNAL_ERROR, message=f"{context.method} failed; the server's log has the details."
            ) from error

    async def on_call_tool(
        self,
        context: MiddlewareContext[mcp_types.CallToolRequestParams],
        call_next: CallNext[mcp_types.CallToolRequestParams, ToolResult],
    ) -> ToolResult:
        name, arguments = context.message.name, context.message.arguments or {}
        spec = self._specs.get(name)
        listed = name if spec is None else spec.portable_name if self._portable else spec.name
        if listed != name:
            context = context.copy(message=context.message.model_copy(update={"name": listed}))
        try:
            if spec is not None:
                with expected_errors(ToolError):
                    for requirement in self._require:
                        requirement(spec.name, arguments)
            return await call_next(context)
        except NotFoundError as error:
            raise MCPError(code=UNKNOWN_TOOL, message=f"Unknown tool: {name}", data={"tool": name}) from error
        except (ArgumentError, ToolError) as error:
            fault = _fault(name, error)
            if spec is not None and spec.errors != "jsonrpc":
                told = error_response(fault) if spec.errors == "embedding" else context_error(fault, arguments)
                return ToolResult(structured_content=told.payload(), is_error=True)
            raise _jsonrpc_error(name, fault, arguments) from error

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

    async def on_get_prompt(
        self,
        context: MiddlewareContext[mcp_types.GetPromptRequestParams],
        call_next: CallNext[mcp_types.GetPromptRequestParams, Any],
    ) -> Any:
        name = context.message.name[:200]
        try:
            return await call_next(context)
        except NotFoundError as error:
            raise MCPError(code=INVALID_PARAMS, message=f"Unknown prompt: {name}", data={"prompt": name}) from error
        except PromptError as error:
            if not isinstance(cause := error.__cause__, CortexError):
                raise
            told = as_wire_error(cause, {})
            # The protocol has one code for a prompt that is not there, as for arguments that do not fit.
            code = INVALID_PARAMS if isinstance(cause, NotFound) else told.error.code
            raise MCPError(code=code, message=told.error.message, data={**told.error.data, "prompt": name}) from error


def as_wire_error(error: CortexError, arguments: dict[str, Any]) -> MCPError:
    """An error of the library with its code; `data` names the argument, its value if it is an id, and the remedy."""
    field = error.field
    if (argument := _ARGUMENTS.get(field or "")) in arguments:
        field = argument
    details: dict[str, Any] = {"error": type(error).__name__, "field": field, "remedy": error.remedy}
    if field == "memory_id":
        details["memory_id"] = str(arguments["memory_id"])[:200]
    if isinstance(error, AmbiguousId):
        details["candidates"] = list(error.candidates)
    if isinstance(error, ContentBlocked):
        details["kinds"] = list(error.kinds)
    if isinstance(error, FilterSyntaxError):
        details["position"] = error.position
    if isinstance(error, BadArguments):
        details["fields"] = list(error.fields)
    if isinstance(error, ContentSyntaxError):
        details["faults"] = [asdict(fault) for fault in error.faults]
    data = {name: value for name, value in details.items() if value is not None}
    return MCPError(code=wire_form(error).subcog, message=str(error), data=data)


def _fault(name: str, error: ArgumentError | ToolError) -> CortexError:
    """What went wrong in a call, as an error of the library's tree. What was not foreseen is logged, not told."""
    cause = error.__cause__
    if isinstance(cause, CortexError):
        return cause
    if isinstance(error, ArgumentError):
        return _bad_arguments(name, cause)
    _log.error("%s failed", name, exc_info=error)
    return CortexError(f"{name} failed; the server's log has the details.")


def _jsonrpc_error(name: str, fault: CortexError, arguments: dict[str, Any]) -> MCPError:
    if isinstance(fault, BadArguments):
        data = {"tool": name, "field": fault.field, "fields": list(fault.fields)}
        return MCPError(code=INVALID_PARAMS, message=str(fault), data=data)
    if type(fault) is CortexError:
        return MCPError(code=INTERNAL_ERROR, message=str(fault), data={"tool": name})
    return as_wire_error(fault, arguments)


def _bad_arguments(name: str, cause: BaseException | None) -> BadArguments:
    faults = cause.errors() if isinstance(cause, ValidationError) else []
    places = [(".".join(str(part) for part in fault["loc"]), fault["msg"]) for fault in faults if fault["loc"]]
    told = "; ".join(f"{place}: {message}" for place, message in places) or "The arguments do not fit the tool."
    return BadArguments(f"{name}: {told}", fields=tuple(dict.fromkeys(place.split(".")[0] for place, _ in places)))
