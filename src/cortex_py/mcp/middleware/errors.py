"""Errors on the wire: the library's error tree as JSON-RPC errors with the documented codes.

FastMCP turns what a tool raises into a result. A middleware can still raise a protocol error, so errors are translated
here.
"""

from __future__ import annotations

import json
import logging
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import asdict
from typing import Any

import mcp_types
from fastmcp.exceptions import FastMCPError, NotFoundError, PromptError, ResourceError, ToolError
from fastmcp.exceptions import ValidationError as ArgumentError
from fastmcp.server.middleware import CallNext, Middleware, MiddlewareContext
from fastmcp.tools import ToolResult
from mcp.server.context import CallNext as SdkCallNext
from mcp.server.context import HandlerResult, ServerRequestContext
from mcp.shared.exceptions import MCPError
from pydantic import ValidationError

from ...echo import clean_value, cleaner_for, describe_error
from ...errors import (
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
from ...ids import full_address
from ..families.context.models import ContextError
from ..families.embedding.models import ToolErrorResponse
from ..registry import ToolSpec
from .telemetry import CALL_TOOL

__all__ = [
    "INTERNAL_ERROR", "INVALID_PARAMS", "UNKNOWN_TOOL", "ErrorRedaction", "NextTool", "Requirement", "ToolContext",
    "ToolMiddleware", "WireErrors", "as_wire_error", "expected_errors",
]  # fmt: skip

UNKNOWN_TOOL = -32601
INVALID_PARAMS = -32602
INTERNAL_ERROR = -32603

ToolContext = MiddlewareContext[mcp_types.CallToolRequestParams]
NextTool = CallNext[mcp_types.CallToolRequestParams, ToolResult]

# The names of arguments for what the library calls a field.
_ARGUMENTS = {"id": "memory_id", "project": "repo_path", "path": "repo_path"}

# Takes a tool's name and arguments, and raises why it may not be called.
Requirement = Callable[[str, dict[str, Any]], None]

_log = logging.getLogger(__name__)


@contextmanager
def expected_errors(kind: type[FastMCPError]) -> Iterator[None]:
    """Raise the library's errors as the framework's own, which it does not log as faults of the server."""
    try:
        yield
    except CortexError as error:
        raise kind(str(error), log_level=logging.DEBUG) from error


class ErrorRedaction:
    """Redacts secrets in every error on its way to the client, and bounds its length.

    It belongs outermost into the SDK's own chain: only there it sees all errors, also those of the framework and the
    SDK. Secrets in the arguments of the call are not repeated, not even in part.
    """

    async def __call__(self, ctx: ServerRequestContext[Any, Any], call_next: SdkCallNext) -> HandlerResult:
        try:
            result = await call_next(ctx)
        except MCPError as error:
            show, detail = cleaner_for(ctx.params), error.error
            data = clean_value(detail.data, show)
            raise MCPError(code=detail.code, message=show(detail.message), data=data) from error
        except (ValidationError, CortexError):
            raise
        except Exception as error:
            raise MCPError(code=INTERNAL_ERROR, message=cleaner_for(ctx.params)(describe_error(error))) from error
        if isinstance(result, Mapping) and result.get("isError"):
            answered = result.get("structuredContent")
            if answered is None:
                return {**result, "content": clean_value(result.get("content"), cleaner_for(ctx.params))}
            clean = clean_value(answered, cleaner_for(ctx.params))
            if clean != answered:
                text = json.dumps(clean, ensure_ascii=False, separators=(",", ":"))
                return {**result, "structuredContent": clean, "content": [{"type": "text", "text": text}]}
        return result


class ToolMiddleware(Middleware):
    """Calls its hook for a tool directly; for each request the framework builds a chain of all hooks."""

    async def __call__(self, context: MiddlewareContext[Any], call_next: CallNext[Any, Any]) -> Any:
        if not _calls_tool(context):
            return await super().__call__(context, call_next)
        return await self.on_call_tool(context, call_next)


def _calls_tool(context: MiddlewareContext[Any]) -> bool:
    """Whether a message is a well-formed call; another one only passes the hooks for all requests."""
    return context.method == CALL_TOOL and isinstance(context.message, mcp_types.CallToolRequestParams)


class WireErrors(Middleware):
    """Gives clients the documented codes for the library's errors.

    It also maps the other spelling of a tool's name, because the name can still be changed here, and refuses calls for
    which one of the checks in `require` fails, such as that of a scope or a licence.
    """

    def __init__(self, specs: list[ToolSpec], *, portable: bool, require: Sequence[Requirement] = ()) -> None:
        self._specs = {spelling: spec for spec in specs for spelling in spec.spellings}
        self._portable = portable
        self._require = require

    async def __call__(self, context: MiddlewareContext[Any], call_next: CallNext[Any, Any]) -> Any:
        if not _calls_tool(context):
            return await super().__call__(context, call_next)
        return await self.on_request(context, lambda context: self.on_call_tool(context, call_next))

    async def on_request(
        self, context: MiddlewareContext[mcp_types.Request[Any, Any]], call_next: CallNext[Any, Any]
    ) -> Any:
        """Translates what no other hook has. The message of an unexpected error is left out: it may quote data."""
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

    async def on_call_tool(self, context: ToolContext, call_next: NextTool) -> ToolResult:
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
            if spec is not None and spec.errors == "text":
                return ToolResult(content=str(fault), is_error=True)
            if spec is not None and spec.errors != "jsonrpc":
                answer = (
                    ToolErrorResponse.from_error(fault)
                    if spec.errors == "embedding"
                    else ContextError.from_error(fault, arguments)
                )
                return ToolResult(structured_content=answer.payload(), is_error=True)
            raise _jsonrpc_error(name, fault, arguments) from error

    async def on_read_resource(
        self, context: MiddlewareContext[mcp_types.ReadResourceRequestParams], call_next: CallNext[Any, Any]
    ) -> Any:
        uri = full_address(str(context.message.uri))
        if uri != str(context.message.uri):
            context = context.copy(message=context.message.model_copy(update={"uri": uri}))
        try:
            return await call_next(context)
        except ResourceError as error:
            cause = error.__cause__
            if not isinstance(cause, CortexError):
                raise
            # The protocol has one code for a resource that does not exist.
            absent = isinstance(cause, NotFound | InvalidInput | AmbiguousId)
            detail = as_wire_error(cause, {}).error
            raise MCPError(
                code=INVALID_PARAMS if absent else detail.code,
                message=detail.message,
                data={**detail.data, "uri": str(context.message.uri)},
            ) from error

    async def on_get_prompt(
        self, context: MiddlewareContext[mcp_types.GetPromptRequestParams], call_next: CallNext[Any, Any]
    ) -> Any:
        name = context.message.name[:200]
        try:
            return await call_next(context)
        except NotFoundError as error:
            raise MCPError(code=INVALID_PARAMS, message=f"Unknown prompt: {name}", data={"prompt": name}) from error
        except PromptError as error:
            if not isinstance(cause := error.__cause__, CortexError):
                raise
            detail = as_wire_error(cause, {}).error
            # The protocol has one code for a prompt that does not exist and for arguments that do not fit.
            code = INVALID_PARAMS if isinstance(cause, NotFound) else detail.code
            raise MCPError(code=code, message=detail.message, data={**detail.data, "prompt": name}) from error


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
    """What went wrong in a call, as an error of the library. Unexpected errors are logged, not repeated."""
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
    reasons = "; ".join(f"{place}: {message}" for place, message in places) or "The arguments do not fit the tool."
    return BadArguments(f"{name}: {reasons}", fields=tuple(dict.fromkeys(place.split(".")[0] for place, _ in places)))
