"""Every request of the protocol as seen from outside: its span, its line in the log, its count. Never its contents.

It stands outermost in the SDK's own chain, which sees all requests; the framework's does not.
"""

from __future__ import annotations

import logging
import time
from collections.abc import Mapping
from typing import Any

from mcp.server.context import CallNext, HandlerResult, ServerRequestContext

from ..tracing import span
from .meter import Meter, Outcome
from .registry import TOOLS
from .scopes import CALL_TOOL, OPEN_METHODS

__all__ = ["Observing"]

_NAMES = {spelling: spec.name for spec in TOOLS for spelling in spec.spellings}
# What else is asked for. A method that is none of them may be any text.
_METHODS = OPEN_METHODS | {
    CALL_TOOL,
    "completion/complete",
    "prompts/get",
    "prompts/list",
    "resources/list",
    "resources/read",
    "resources/subscribe",
    "resources/templates/list",
    "resources/unsubscribe",
    "subscriptions/listen",
}

_log = logging.getLogger(__name__)


class Observing:
    def __init__(self, meter: Meter) -> None:
        self._meter = meter

    async def __call__(self, ctx: ServerRequestContext[Any, Any], call_next: CallNext) -> HandlerResult:
        if ctx.request_id is None:
            return await call_next(ctx)
        method = ctx.method if ctx.method in _METHODS else "other"
        tool = _NAMES.get(str((ctx.params or {}).get("name")), "unknown") if method == CALL_TOOL else None
        told = {"mcp.method.name": method, **({"gen_ai.tool.name": tool} if tool else {})}
        outcome: Outcome = "cancelled"
        began = time.perf_counter()
        try:
            with span(f"{method} {tool}" if tool else method, told, _caller(ctx)):
                result = await call_next(ctx)
            outcome = "error" if isinstance(result, Mapping) and result.get("isError") else "ok"
            return result
        except Exception:
            outcome = "error"
            raise
        finally:
            seconds = time.perf_counter() - began
            if tool is not None:
                self._meter.called(tool, outcome, seconds)
            details = {"method": method, "tool": tool, "outcome": outcome, "seconds": round(seconds, 6)}
            _log.info("call", extra={name: value for name, value in details.items() if value is not None})


def _caller(ctx: ServerRequestContext[Any, Any]) -> Mapping[str, str] | None:
    """The caller's own span, where the request names it; over HTTP the headers have told of it already."""
    found = (ctx.params or {}).get("_meta")
    if not isinstance(found, Mapping) or not isinstance(found.get("traceparent"), str):
        return None
    return {name: str(found[name]) for name in ("traceparent", "tracestate") if name in found}
