"""Who may do what: the scope that each tool and request needs, the caller of a request, and the audit log.

The scopes are computed from the table of tools, so that none can be forgotten.

| a tool that | needs |
|---|---|
| may destroy something, or is of the set `backup` | `admin` |
| only reads, or does so with the command that is given | `read` |
| does anything else | `write` |

`tool:NAME` opens one tool in place of its scope. Requests that show what is stored need `read`; those of the
handshake, and the list of tools, need only a known caller.
"""

from __future__ import annotations

import logging
from collections.abc import Collection, Iterator, Mapping
from typing import TYPE_CHECKING, Any

import anyio
import anyio.to_thread
from mcp.server.context import CallNext, HandlerResult, ServerRequestContext
from mcp.shared.exceptions import MCPError
from starlette.requests import Request

from ....core.errors import AccessDenied, CortexError
from ....core.security.callers import Caller, acting_as, current_caller
from ....core.security.rights import TOOL_PREFIX, Scope
from ..registry import TOOL_BY_NAME, ToolSpec
from .chain import as_wire_error
from .telemetry import CALL_TOOL, OPEN_METHODS, Meter

if TYPE_CHECKING:
    from ....app import Cortex

__all__ = [
    "CALLER_KEY", "OPEN_METHODS", "AccessGuard", "needed_scope", "permits", "record_event", "require_method",
    "require_scope", "require_tool",
]  # fmt: skip

# Where the HTTP guard leaves the caller it recognised, in the request's scope.
CALLER_KEY = "cortex.caller"

_DEEPEST = 6
_LONGEST_ID = 500
_ASK = "Ask the operator of this server for a token that has it."

_log = logging.getLogger(__name__)


def needed_scope(spec: ToolSpec, command: object = None) -> Scope:
    """The scope for a call; `command` is the argument of that name, where the tool has one."""
    if spec.destructive or "backup" in spec.toolsets:
        return "admin"
    return "read" if spec.read_only or command in spec.reading else "write"


def permits(scopes: Collection[str], spec: ToolSpec, command: object = None) -> bool:
    return needed_scope(spec, command) in scopes or any(f"{TOOL_PREFIX}{name}" in scopes for name in spec.spellings)


def require_tool(scopes: Collection[str], spec: ToolSpec, command: object = None) -> None:
    """Raise `AccessDenied` where the scopes do not open a tool."""
    if not permits(scopes, spec, command):
        raise AccessDenied(
            f"{spec.name} needs the scope {needed_scope(spec, command)}, or {TOOL_PREFIX}{spec.name}.", remedy=_ASK
        )


def require_method(scopes: Collection[str], method: str) -> None:
    """Raise `AccessDenied` where the scopes do not open a request. Calls of tools are decided tool by tool."""
    if method != CALL_TOOL and method not in OPEN_METHODS and "read" not in scopes:
        raise AccessDenied(f"{method[:80]} needs the scope read.", remedy=_ASK)


def require_scope(tool: str, arguments: Mapping[str, object] | None = None) -> None:
    """Raise `AccessDenied` where the caller of this request may not call a tool."""
    caller = current_caller()
    if caller is None:
        raise AccessDenied("The caller of this request is not known.")
    require_tool(caller.scopes, TOOL_BY_NAME[tool], (arguments or {}).get("command"))


class AccessGuard:
    """Binds each request to its caller, checks that they may make it, and writes it into the audit log.

    `known_callers`: every request must have a caller. `audited`: requests are written into the audit log. It belongs
    into the SDK's own chain: the framework's does not see completions and subscriptions.
    """

    def __init__(self, cortex: Cortex, *, known_callers: bool, audited: bool, meter: Meter | None = None) -> None:
        self._cortex = cortex
        self._meter = meter or Meter()
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
                await record_event(
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
                    raise AccessDenied("The caller of this request is not known.")
                require_method(caller.scopes, context.method)
            except AccessDenied as error:
                raise as_wire_error(error, {}) from error
        return await call_next(context)


async def record_event(
    cortex: Cortex,
    caller: Caller | None,
    action: str,
    outcome: str,
    ids: list[str],
    via: str = "local",
    *,
    meter: Meter,
) -> None:
    """Write an event into the audit log. If that fails it is logged, and the answer stands: the work is done."""

    def write() -> None:
        # For the server's own project where the caller chose none, whether or not they may see it.
        with acting_as(None):
            chosen = caller.project if caller and caller.project else cortex.project.id
            cortex.audit.record(caller, action, outcome, project=chosen, ids=ids, via=via)

    try:
        # Cancelled calls are recorded too. A limiter of its own, so that it does not wait for the work of others.
        with anyio.CancelScope(shield=True):
            await anyio.to_thread.run_sync(write, limiter=anyio.CapacityLimiter(1))
        meter.count_audit_event(True)
    except CortexError as error:
        meter.count_audit_event(False)
        _log.error("not in the audit log: %s by %s (%s): %s", action, caller.user if caller else via, outcome, error)


def _caller(request: object) -> Caller | None:
    found = request.scope.get(CALLER_KEY) if isinstance(request, Request) else None
    return found if isinstance(found, Caller) else None


def _action(method: str, params: Mapping[str, Any]) -> str:
    """The tool's own name, whichever spelling was used; an unknown name is not repeated."""
    if method == CALL_TOOL:
        spec = TOOL_BY_NAME.get(str(params.get("name")))
        return f"tool:{spec.name if spec else 'unknown'}"
    return f"mcp:{method}"


def _outcome(result: HandlerResult) -> str:
    if not isinstance(result, Mapping) or not result.get("isError"):
        return "ok"
    content = result.get("structuredContent")
    code = (content.get("error_code") or content.get("code")) if isinstance(content, Mapping) else None
    return f"error {code}" if code else "error"


def _ids(value: object, depth: int = 0) -> Iterator[str]:
    """The values of fields that are named like ids, anywhere in arguments and answers."""
    if isinstance(value, list) and depth < _DEEPEST:
        for item in value:
            yield from _ids(item, depth + 1)
    elif isinstance(value, Mapping) and depth < _DEEPEST:
        for name, item in value.items():
            if name == "id" or name.endswith(("_id", "_ids")):
                found = item if isinstance(item, list) else [item]
                yield from (one[:_LONGEST_ID] for one in found if isinstance(one, str))
            else:
                yield from _ids(item, depth + 1)
