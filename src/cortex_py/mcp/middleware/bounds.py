"""How large the arguments of a request may be, and how long a request may take.

Both hold for every request, so that a new tool or parameter is bounded from the start. Sizes are checked before
anything else reads the arguments; `ToolSpec.long` marks the tools that may take longer than others.
"""

from __future__ import annotations

import logging
from collections.abc import Awaitable, Callable, Mapping, Sequence
from typing import Any, TypeVar

import anyio
from fastmcp.exceptions import FastMCPError, ToolError
from fastmcp.server.middleware import CallNext, MiddlewareContext
from fastmcp.tools import ToolResult
from mcp.server.context import CallNext as SdkCallNext
from mcp.server.context import HandlerResult, ServerRequestContext

from ...config import Settings
from ...deadline import Limit, apply_limit
from ...errors import ContentTooLarge, CortexError, LimitExceeded, StoreUnavailable
from ...memory.recall.recall import LONGEST_QUERY
from ..registry import ToolSpec
from .errors import NextTool, ToolContext, ToolMiddleware, as_wire_error, expected_errors
from .telemetry import CALL_TOOL

__all__ = ["LONGEST_TEXT", "MOST_VALUES", "Deadlines", "RequestLimits", "RetryReads", "check_sizes"]

# Characters of one text in the arguments of a call, unless its name has another limit.
LONGEST_TEXT = 1_000_000
# Values in the arguments of a call, those in lists and objects included.
MOST_VALUES = 20_000
_LISTEN = "subscriptions/listen"
_LONGEST: dict[str, int] = {"query": LONGEST_QUERY, "filter": 10_000}


def check_sizes(arguments: Mapping[str, object], settings: Settings) -> None:
    """Refuse arguments that are larger than any call needs. The error names the argument and the limit."""
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


class Deadlines(ToolMiddleware):
    """Sets the limit in seconds around each call; the library stops there with `DeadlineExceeded`."""

    def __init__(self, specs: Sequence[ToolSpec], settings: Settings) -> None:
        self._seconds = settings.call_seconds
        self._long_seconds = settings.long_call_seconds
        self._long = {name for spec in specs if spec.long for name in spec.spellings}
        # They wait for a batch that also works for others, and hold no transaction.
        self._waiting = {name for spec in specs if spec.family == "embedding" for name in spec.spellings}

    async def on_call_tool(self, context: ToolContext, call_next: NextTool) -> ToolResult:
        name = context.message.name
        with apply_limit(Limit(self._long_seconds if name in self._long else self._seconds)) as limit:
            if name not in self._waiting:
                return await call_next(context)
            with anyio.move_on_after(limit.seconds):
                return await call_next(context)
            with expected_errors(ToolError):
                limit.check()
            raise TimeoutError


class RequestLimits:
    """Bounds the requests that call no tool: for resources, prompts and completions.

    It belongs into the SDK's own chain, because the framework's does not see completions. A stream of notifications
    has no time limit: it ends with its client.
    """

    def __init__(self, settings: Settings) -> None:
        self._settings = settings

    async def __call__(self, ctx: ServerRequestContext[Any, Any], call_next: SdkCallNext) -> HandlerResult:
        if ctx.method == CALL_TOOL:
            return await call_next(ctx)
        try:
            check_sizes(ctx.params or {}, self._settings)
        except CortexError as error:
            raise as_wire_error(error, {}) from error
        if ctx.method == _LISTEN:
            return await call_next(ctx)
        with apply_limit(Limit(self._settings.call_seconds)):
            return await call_next(ctx)


# Repeats a call that only reads if the database went away meanwhile, so that its restart is no fault of the client.
#
# A call that writes is not repeated: an earlier transaction of it may have been committed.

_T = TypeVar("_T")

_log = logging.getLogger(__name__)


class RetryReads(ToolMiddleware):
    def __init__(self, specs: Sequence[ToolSpec]) -> None:
        self._reading = {name for spec in specs if spec.read_only and not spec.reaches_out for name in spec.spellings}

    async def on_call_tool(self, context: ToolContext, call_next: NextTool) -> ToolResult:
        if context.message.name not in self._reading:
            return await call_next(context)
        return await _retry(lambda: call_next(context))

    async def on_read_resource(self, context: MiddlewareContext[Any], call_next: CallNext[Any, Any]) -> Any:
        return await _retry(lambda: call_next(context))

    on_get_prompt = on_read_resource


async def _retry(read: Callable[[], Awaitable[_T]]) -> _T:
    try:
        return await read()
    except (FastMCPError, StoreUnavailable) as error:
        if not isinstance(error, StoreUnavailable) and not isinstance(error.__cause__, StoreUnavailable):
            raise
        _log.warning("the database went away during a read; retrying once")
    return await read()
