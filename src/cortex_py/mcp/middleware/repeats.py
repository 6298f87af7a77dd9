"""Calls that a client may repeat without doing them twice: those with a `request_id` in their `_meta`."""

from __future__ import annotations

import json
from collections.abc import Mapping
from hashlib import sha256
from typing import Any

from mcp.server.context import CallNext, HandlerResult, ServerRequestContext

from ...errors import InvalidInput
from ...security.callers import current_caller
from ...security.repeats import repeatable
from ..registry import TOOL_BY_NAME
from .errors import as_wire_error

__all__ = ["RepeatableCalls"]

_FIELD = "request_id"
_LONGEST = 200


class RepeatableCalls:
    """Belongs inside the guard that binds a request to its caller.

    The id of the JSON-RPC message is not used: it starts again with every connection, so that after a lost one the
    same number belongs to another request.
    """

    async def __call__(self, ctx: ServerRequestContext[Any, Any], call_next: CallNext) -> HandlerResult:
        params = ctx.params or {}
        meta = params.get("_meta")
        given = meta.get(_FIELD) if isinstance(meta, Mapping) else None
        if ctx.method != "tools/call" or given is None:
            return await call_next(ctx)
        if not isinstance(given, str) or not 0 < len(given) <= _LONGEST:
            error = InvalidInput(f"It is not a text of 1 to {_LONGEST} characters.", field=f"_meta.{_FIELD}")
            raise as_wire_error(error, {}) from error
        with repeatable(_key(given, params)):
            return await call_next(ctx)


def _key(request_id: str, params: Mapping[str, Any]) -> str:
    """A digest of who asks for what under which id: the same id with other arguments is another request."""
    caller, name = current_caller(), str(params.get("name"))
    who = (caller.user, caller.agent) if caller else None
    tool = TOOL_BY_NAME[name].name if name in TOOL_BY_NAME else name
    text = json.dumps([who, tool, params.get("arguments"), request_id], sort_keys=True)
    return sha256(text.encode()).hexdigest()
