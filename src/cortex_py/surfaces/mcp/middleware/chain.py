"""What every request passes, as plain functions; `server` puts them in order.

Only in the SDK's chain all requests are seen, also those that the SDK itself answers or refuses.
"""

from __future__ import annotations

import json
import logging
import time
from collections.abc import Mapping
from dataclasses import asdict
from hashlib import sha256
from typing import Any

from mcp.server.apps import client_supports_apps
from mcp.server.context import CallNext, HandlerResult, ServerMiddleware, ServerRequestContext
from mcp.shared.exceptions import MCPError
from mcp_types import DiscoverResult, InitializeResult
from mcp_types.methods import validate_client_request
from pydantic import BaseModel, ValidationError

from ....core.clock import Limit, apply_limit
from ....core.config import Settings
from ....core.echo import clean_value, cleaner_for, describe_error
from ....core.errors import (
    AmbiguousId,
    BadArguments,
    ContentBlocked,
    ContentSyntaxError,
    ContentTooLarge,
    CortexError,
    FilterSyntaxError,
    InvalidInput,
    LimitExceeded,
    wire_form,
)
from ....core.jobs import span
from ....core.memory.recall.recall import LONGEST_QUERY
from ....core.security.callers import current_caller
from ....core.security.repeats import repeatable
from ..registry import TOOL_BY_NAME
from .telemetry import CALL_TOOL, METHODS, Meter, Outcome

__all__ = [
    "INTERNAL_ERROR", "INVALID_PARAMS", "LONGEST_TEXT", "MOST_VALUES", "Link", "as_wire_error", "bound_requests",
    "check_sizes", "keep_list", "observe", "order_handshake", "redact_errors", "repeat_once", "show_views",
    "translate_errors",
]  # fmt: skip

INVALID_PARAMS = -32602
INTERNAL_ERROR = -32603

Context = ServerRequestContext[Any, Any]
Link = ServerMiddleware[Any]

_log = logging.getLogger(__name__)


# -- errors --------------------------------------------------------------------------------------

# The names of arguments for what the library calls a field.
_ARGUMENTS = {"id": "memory_id", "project": "repo_path", "path": "repo_path"}


async def redact_errors(ctx: Context, call_next: CallNext) -> HandlerResult:
    """Redact secrets in every error on its way to the client, and bound its length.

    Secrets in the arguments of the call are not repeated, not even in part.
    """
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


async def translate_errors(ctx: Context, call_next: CallNext) -> HandlerResult:
    """Give the library's errors their codes. The message of an unexpected error is left out: it may quote data."""
    try:
        return await call_next(ctx)
    except (MCPError, ValidationError):
        raise
    except CortexError as error:
        raise as_wire_error(error, {}) from error
    except Exception as error:
        _log.error("%s failed", ctx.method, exc_info=error)
        raise MCPError(
            code=INTERNAL_ERROR, message=f"{ctx.method} failed; the server's log has the details."
        ) from error


def as_wire_error(error: CortexError, arguments: Mapping[str, Any]) -> MCPError:
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


# -- as seen from outside ------------------------------------------------------------------------


def observe(meter: Meter | None) -> Link:
    """Give each request its span, its line in the log and its count; never its content."""

    async def observed(ctx: Context, call_next: CallNext) -> HandlerResult:
        if ctx.request_id is None:
            return await call_next(ctx)
        method = ctx.method if ctx.method in METHODS else "other"
        tool = None
        if method == CALL_TOOL:
            spec = TOOL_BY_NAME.get(str((ctx.params or {}).get("name")))
            tool = spec.name if spec else "unknown"
        attributes = {"mcp.method.name": method, **({"gen_ai.tool.name": tool} if tool else {})}
        outcome: Outcome = "cancelled"
        began = time.perf_counter()
        try:
            with span(f"{method} {tool}" if tool else method, attributes, _caller_span(ctx)):
                result = await call_next(ctx)
            outcome = "error" if isinstance(result, Mapping) and result.get("isError") else "ok"
            return result
        except Exception:
            outcome = "error"
            raise
        finally:
            seconds = time.perf_counter() - began
            if tool is not None and meter is not None:
                meter.count_call(tool, outcome, seconds)
            details = {"method": method, "tool": tool, "outcome": outcome, "seconds": round(seconds, 6)}
            _log.info("call", extra={name: value for name, value in details.items() if value is not None})

    return observed


def _caller_span(ctx: Context) -> Mapping[str, str] | None:
    """The caller's own span, where the request names it; over HTTP the headers name it."""
    meta = (ctx.params or {}).get("_meta")
    if not isinstance(meta, Mapping) or not isinstance(meta.get("traceparent"), str):
        return None
    return {name: str(meta[name]) for name in ("traceparent", "tracestate") if name in meta}


# -- repeats -------------------------------------------------------------------------------------

_REQUEST_ID = "request_id"
_LONGEST_REQUEST_ID = 200


async def repeat_once(ctx: Context, call_next: CallNext) -> HandlerResult:
    """Do a call with a `request_id` in its `_meta` only once; belongs inside the guard that knows the caller.

    The id of the JSON-RPC message is not used: it starts again with every connection, so that after a lost one the
    same number belongs to another request.
    """
    params = ctx.params or {}
    meta = params.get("_meta")
    given = meta.get(_REQUEST_ID) if isinstance(meta, Mapping) else None
    if ctx.method != CALL_TOOL or given is None:
        return await call_next(ctx)
    if not isinstance(given, str) or not 0 < len(given) <= _LONGEST_REQUEST_ID:
        error = InvalidInput(
            f"It is not a text of 1 to {_LONGEST_REQUEST_ID} characters.", field=f"_meta.{_REQUEST_ID}"
        )
        raise as_wire_error(error, {}) from error
    with repeatable(_digest(given, params)):
        return await call_next(ctx)


def _digest(request_id: str, params: Mapping[str, Any]) -> str:
    """Who asks for what under which id: the same id with other arguments is another request."""
    caller, name = current_caller(), str(params.get("name"))
    who = (caller.user, caller.agent) if caller else None
    tool = TOOL_BY_NAME[name].name if name in TOOL_BY_NAME else name
    text = json.dumps([who, tool, params.get("arguments"), request_id], sort_keys=True)
    return sha256(text.encode()).hexdigest()


# -- limits --------------------------------------------------------------------------------------

# Characters of one text in the arguments of a call, unless its name has another limit.
LONGEST_TEXT = 1_000_000
# Values in the arguments of a call, those in lists and objects included.
MOST_VALUES = 20_000
_LONGEST: dict[str, int] = {"query": LONGEST_QUERY, "filter": 10_000}
_LISTEN = "subscriptions/listen"


def bound_requests(settings: Settings) -> Link:
    """Bound the requests that call no tool: for resources, prompts and completions.

    A stream of notifications has no time limit: it ends with its client.
    """

    async def bounded(ctx: Context, call_next: CallNext) -> HandlerResult:
        if ctx.method == CALL_TOOL:
            return await call_next(ctx)
        try:
            check_sizes(ctx.params or {}, settings)
        except CortexError as error:
            raise as_wire_error(error, {}) from error
        if ctx.method == _LISTEN:
            return await call_next(ctx)
        with apply_limit(Limit(settings.call_seconds)):
            return await call_next(ctx)

    return bounded


def check_sizes(arguments: Mapping[str, object], settings: Settings) -> None:
    """Refuse arguments that are larger than any call needs. The error names the argument and the limit.

    It holds for every request, so that a new tool or parameter is bounded from the start.
    """
    count = 0
    for name, argument in arguments.items():
        longest = settings.max_content_bytes if name == "content" else _LONGEST.get(name, LONGEST_TEXT)
        waiting: list[object] = [name, argument]
        while waiting:
            value = waiting.pop()
            count += 1
            if isinstance(value, str):
                if len(value) > longest:
                    raise ContentTooLarge(
                        f"A text in {name[:100]} is longer than {longest:,} characters.", field=name[:100]
                    )
            elif isinstance(value, dict | list | Mapping):
                if count + len(value) > MOST_VALUES:
                    raise LimitExceeded(f"The arguments hold more than {MOST_VALUES:,} values.", field=name[:100])
                waiting += value if isinstance(value, list) else [*value, *value.values()]


# -- views ---------------------------------------------------------------------------------------

_SHOWN = ("tools/list", "resources/list", CALL_TOOL, "resources/read")


def show_views(answer: Link) -> Link:
    """Let `answer` take requests of clients that show views of MCP Apps."""

    async def shown(ctx: Context, call_next: CallNext) -> HandlerResult:
        if ctx.method in _SHOWN and client_supports_apps(ctx):
            return await answer(ctx, call_next)
        return await call_next(ctx)

    return shown


# -- the handshake -------------------------------------------------------------------------------

_HANDSHAKES: dict[str, type[BaseModel]] = {"initialize": InitializeResult, "server/discover": DiscoverResult}


async def order_handshake(ctx: Context, call_next: CallNext) -> HandlerResult:
    """Answer the handshake with its fields in the order of the specification; the SDK sorts them by name."""
    result = await call_next(ctx)
    model = _HANDSHAKES.get(ctx.method)
    return model.model_validate(result) if model else result


# -- the list of tools ---------------------------------------------------------------------------

_LIST_TOOLS = "tools/list"


def keep_list() -> Link:
    """Write the list of tools once for each version of the protocol: every client asks, and the SDK takes 7 ms."""
    kept: dict[str, HandlerResult] = {}

    async def listed(ctx: Context, call_next: CallNext) -> HandlerResult:
        version, params = ctx.protocol_version, ctx.params or {}
        if ctx.method != _LIST_TOOLS or not params.keys() <= {"_meta"} or ctx.session.client_params is None:
            return await call_next(ctx)
        if version not in kept:
            kept[version] = await call_next(ctx)
        else:
            validate_client_request(_LIST_TOOLS, version, ctx.params)
        return kept[version]

    return listed
