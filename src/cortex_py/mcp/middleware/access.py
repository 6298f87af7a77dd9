"""What every request of the protocol passes: its caller is bound to it, must be allowed it, and it is written down.

It stands in the SDK's own chain, below the framework's: that one does not see completions and subscriptions.
"""

from __future__ import annotations

import logging
from collections.abc import Iterator, Mapping
from typing import TYPE_CHECKING, Any

import anyio
import anyio.to_thread
from mcp.server.context import CallNext, HandlerResult, ServerRequestContext
from mcp.shared.exceptions import MCPError
from starlette.requests import Request

from ..errors import AccessDenied, CortexError
from ..security.callers import Caller, acting_as, current_caller
from .errors import as_wire_error
from .meter import Meter, NoMeter
from .registry import TOOLS
from .scopes import CALL_TOOL, OPEN_METHODS, require_method, require_tool

if TYPE_CHECKING:
    from ..app import Cortex

__all__ = ["CALLER_KEY", "Gate", "recorded", "require_scope"]

# Where the HTTP guard leaves the caller it recognised, in the request's scope.
CALLER_KEY = "cortex.caller"

_SPECS = {spelling: spec for spec in TOOLS for spelling in spec.spellings}
_DEEPEST = 6

_log = logging.getLogger(__name__)


def require_scope(tool: str, _arguments: Mapping[str, object] | None = None) -> None:
    """Raise `AccessDenied` where the caller of this request may not call a tool."""
    caller = current_caller()
    if caller is None:
        raise AccessDenied("Nobody is known to make this call.")
    require_tool(caller.scopes, _SPECS[tool])


class Gate:
    """`known_callers`: every request must have a caller. `audited`: requests are written into the audit log."""

    def __init__(self, cortex: Cortex, *, known_callers: bool, audited: bool, meter: Meter | None = None) -> None:
        self._cortex = cortex
        self._meter = meter or NoMeter()
        self._known_callers = known_callers
        self._audited = audited

    async def __call__(self, ctx: ServerRequestContext[Any, Any], call_next: CallNext) -> HandlerResult:
        caller = _caller(ctx.request)
        method = ctx.method
        with acting_as(caller):
            if not self._audited or ctx.request_id is None or method in OPEN_METHODS:
                return await self._allowed(ctx, call_next, caller)
            outcome, result = "cancelled", None
            try:
                result = await self._allowed(ctx, call_next, caller)
                outcome = _outcome(result)
                return result
            except MCPError as error:
                outcome = f"error {error.error.code}"
                raise
            finally:
                params = ctx.params or {}
                await recorded(
                    self._cortex,
                    caller,
                    _action(method, params),
                    outcome,
                    [*_ids(params.get("arguments")), *_ids(result)],
                    meter=self._meter,
                )

    async def _allowed(
        self, context: ServerRequestContext[Any, Any], call_next: CallNext, caller: Caller | None
    ) -> HandlerResult:
        if self._known_callers and context.request_id is not None:
            try:
                if caller is None:
                    raise AccessDenied("Nobody is known to make this call.")
                require_method(caller.scopes, context.method)
            except AccessDenied as error:
                raise as_wire_error(error, {}) from error
        return await call_next(context)


async def recorded(
    cortex: Cortex,
    caller: Caller | None,
    action: str,
    outcome: str,
    ids: list[str],
    via: str = "local",
    *,
    meter: Meter,
) -> None:
    """Write an event into the audit log. If that fails the answer stands, for it was done, and the log tells."""

    def write() -> None:
        # Of the server's own project where the caller chose none, be it theirs to see or not.
        with acting_as(None):
            chosen = caller.project if caller and caller.project else cortex.project.id
            cortex.audit.record(caller, action, outcome, project=chosen, ids=ids, via=via)

    try:
        # Cancelled calls were made too. Of a place of its own: it must not wait for the work of others.
        with anyio.CancelScope(shield=True):
            await anyio.to_thread.run_sync(write, limiter=anyio.CapacityLimiter(1))
        meter.audited(True)
    except CortexError as error:
        meter.audited(False)
        _log.error("not in the audit log: %s by %s (%s): %s", action, caller.user if caller else via, outcome, error)


def _caller(request: object) -> Caller | None:
    found = request.scope.get(CALLER_KEY) if isinstance(request, Request) else None
    return found if isinstance(found, Caller) else None


def _action(method: str, params: Mapping[str, Any]) -> str:
    """The tool's own name, whichever spelling was used; a name that is none is not repeated."""
    if method == CALL_TOOL:
        spec = _SPECS.get(str(params.get("name")))
        return f"tool:{spec.name if spec else 'unknown'}"
    return f"mcp:{method}"


def _outcome(result: HandlerResult) -> str:
    if not isinstance(result, Mapping) or not result.get("isError"):
        return "ok"
    told = result.get("structuredContent")
    code = (told.get("error_code") or told.get("code")) if isinstance(told, Mapping) else None
    return f"error {code}" if code else "error"


def _ids(value: object, depth: int = 0) -> Iterator[str]:
    """What stands under names of ids, anywhere in arguments and answers."""
    if isinstance(value, list) and depth < _DEEPEST:
        for item in value:
            yield from _ids(item, depth + 1)
    elif isinstance(value, Mapping) and depth < _DEEPEST:
        for name, item in value.items():
            if name == "id" or name.endswith(("_id", "_ids")):
                yield from (one for one in (item if isinstance(item, list) else [item]) if isinstance(one, str))
            else:
                yield from _ids(item, depth + 1)
