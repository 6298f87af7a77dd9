"""Runs a well-formed call of a plain tool past the framework, with the same hooks and the same answer; lists tools.

For each call FastMCP makes contexts and spans, looks for dependencies and checks the answer against two models, which
takes several times as long as the call's own checks. A function that takes nothing but its arguments needs none of it.
Every other request goes on to the framework, and so does a call whose arguments do not fit, for its error.
"""

from __future__ import annotations

import asyncio
import inspect
from collections.abc import AsyncIterator, Iterable, Mapping, Sequence
from contextlib import asynccontextmanager
from functools import partial
from typing import Any

import anyio.to_thread
import mcp_types
from fastmcp.exceptions import FastMCPError, ToolError
from fastmcp.server.middleware import Middleware, MiddlewareContext
from fastmcp.tools import FunctionTool, Tool, ToolResult
from mcp.server.context import CallNext, HandlerResult, ServerRequestContext
from mcp_types.methods import validate_client_request
from mcp_types.version import MODERN_PROTOCOL_VERSIONS
from pydantic import TypeAdapter, ValidationError
from pydantic_core import to_json

from ..registry import ToolSpec
from .errors import ToolContext
from .telemetry import CALL_TOOL

__all__ = ["DirectCalls", "Turns"]

LIST_TOOLS = "tools/list"

_PARAMS = {"name", "arguments", "_meta"}
_META = {
    mcp_types.PROTOCOL_VERSION_META_KEY,
    mcp_types.CLIENT_INFO_META_KEY,
    mcp_types.CLIENT_CAPABILITIES_META_KEY,
    # A plain call reports no progress and logs nothing to the client, so these change nothing.
    mcp_types.LOG_LEVEL_META_KEY,
    "progressToken",
    # The hooks around a call read them.
    "request_id",
    "traceparent",
    "tracestate",
}


class _BadArguments(FastMCPError):
    """The arguments do not fit: the framework says how. Nothing was done."""


# How long a call keeps its turn.
_TURN_SECONDS = 0.05


class Turns:
    """Lets few calls work at the same time; one that takes long gives its turn to the next, and goes on.

    Threads that compute wait for each other's hold of the interpreter: eight of them take a quarter more processor time
    for each call than two.
    """

    def __init__(self, most: int) -> None:
        self._free = asyncio.Semaphore(most)

    @asynccontextmanager
    async def taken(self) -> AsyncIterator[None]:
        await self._free.acquire()
        has_turn = True

        def give_back() -> None:
            nonlocal has_turn
            if has_turn:
                has_turn = False
                self._free.release()

        timer = asyncio.get_running_loop().call_later(_TURN_SECONDS, give_back)
        try:
            yield
        finally:
            timer.cancel()
            give_back()


class DirectCalls:
    """Belongs innermost into the SDK's own chain. `hooks` are those of the framework's chain, outermost first.

    `at_once`: how many calls work at the same time, unless they take long.
    """

    def __init__(
        self,
        specs: Iterable[ToolSpec],
        tools: Mapping[str, Tool],
        hooks: Sequence[Middleware],
        server_info: Mapping[str, Any],
        at_once: int,
    ) -> None:
        self._calls = {
            name: _Call(tool)
            for name, tool in tools.items()
            if isinstance(tool, FunctionTool) and not inspect.iscoroutinefunction(tool.fn)
        }
        self._names = {
            spelling for spec in specs if not spec.spellings.isdisjoint(self._calls) for spelling in spec.spellings
        }
        self._meta = {mcp_types.SERVER_INFO_META_KEY: server_info}
        self._lists: dict[str, dict[str, Any]] = {}  # by version of the protocol
        self._hooks = hooks
        self._turns = Turns(at_once)

    async def __call__(self, ctx: ServerRequestContext[Any, Any], call_next: CallNext) -> HandlerResult:
        params = ctx.params or {}
        if ctx.request_id is None or ctx.session.client_params is None:
            # Not a request, or of a client that has not introduced itself.
            return await call_next(ctx)
        if ctx.method == LIST_TOOLS and params.keys() <= {"_meta"}:
            return await self._list(ctx, call_next)
        if ctx.method != CALL_TOOL or not self.takes(params):
            return await call_next(ctx)
        try:
            validate_client_request(CALL_TOOL, ctx.protocol_version, params)
            message = mcp_types.CallToolRequestParams(name=params["name"], arguments=params.get("arguments") or {})
            call: Any = self._run
            for hook in reversed(self._hooks):
                call = partial(hook, call_next=call)
            result = await call(MiddlewareContext(message=message, method=CALL_TOOL))
        except (_BadArguments, ValidationError, KeyError):
            return await call_next(ctx)
        return self._wire(result, modern=ctx.protocol_version in MODERN_PROTOCOL_VERSIONS)

    async def _list(self, ctx: ServerRequestContext[Any, Any], call_next: CallNext) -> HandlerResult:
        """The list of all tools, which stays as it is: clients ask for it when they connect."""
        known = self._lists.get(ctx.protocol_version)
        try:
            validate_client_request(LIST_TOOLS, ctx.protocol_version, ctx.params)
        except (ValidationError, KeyError):
            known = None
        if known is not None:
            return known
        result = await call_next(ctx)
        if isinstance(result, dict):
            self._lists[ctx.protocol_version] = result
        return result

    def takes(self, params: Mapping[str, Any]) -> bool:
        """Whether these are the parameters of a plain call."""
        meta = params.get("_meta")
        return (
            params.get("name") in self._names
            and params.keys() <= _PARAMS
            and (meta is None or (isinstance(meta, Mapping) and meta.keys() <= _META))
        )

    async def _run(self, context: ToolContext) -> ToolResult:
        message = context.message
        async with self._turns.taken():
            return await anyio.to_thread.run_sync(self._calls[message.name], message.arguments or {})

    def _wire(self, result: ToolResult, *, modern: bool) -> dict[str, Any]:
        """The answer as the SDK writes it."""
        texts = [{"text": one.text, "type": "text"} for one in result.content if isinstance(one, mcp_types.TextContent)]
        wire: dict[str, Any] = {"content": texts, "isError": result.is_error}
        if modern:
            wire["resultType"] = "complete"
        if result.structured_content is not None:
            wire["structuredContent"] = result.structured_content
        if modern:
            wire["_meta"] = self._meta
        return wire


class _Call:
    """The function of a tool with the check of its arguments."""

    def __init__(self, tool: FunctionTool) -> None:
        self._function = tool.fn
        self._name = tool.name

        def taken(*args: Any, **kwargs: Any) -> tuple[tuple[Any, ...], dict[str, Any]]:
            return args, kwargs

        checked: Any = taken
        checked.__signature__ = inspect.signature(tool.fn)
        checked.__annotations__ = tool.fn.__annotations__
        self._arguments: TypeAdapter[Any] = TypeAdapter(checked)

    def __call__(self, arguments: dict[str, Any]) -> ToolResult:
        try:
            args, kwargs = self._arguments.validate_json(to_json(arguments), strict=True)
        except ValidationError as error:
            raise _BadArguments from error
        try:
            result: ToolResult = self._function(*args, **kwargs)
        except FastMCPError:
            raise
        except Exception as error:
            raise ToolError(f"Error calling tool {self._name!r}") from error
        return result
