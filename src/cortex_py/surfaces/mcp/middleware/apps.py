"""Serves the views of MCP Apps to clients that announce the extension, and the decisions that people make in them."""

from __future__ import annotations

import json
from collections.abc import Mapping
from typing import TYPE_CHECKING, Any

import anyio
import anyio.to_thread
from mcp.server.context import CallNext, HandlerResult, ServerRequestContext
from mcp_types import CallToolResult, ReadResourceResult, TextContent, TextResourceContents
from pydantic import BaseModel

from ....core.clock import Limit, apply_limit, iso
from ....core.errors import AccessDenied, CortexError, InvalidInput
from ....core.security.callers import current_caller
from ...web.app_view import app_document
from ..app_views import MIME_TYPE, REVIEW_ACTIONS, REVIEW_TOOL, VIEWS, with_views
from .telemetry import CALL_TOOL

if TYPE_CHECKING:
    from ....app import Cortex

__all__ = ["AppViews"]

_BY_URI = {view.uri: view for view in VIEWS}
_LISTS = ("tools/list", "resources/list")
_MOST_STAGED = 50


class AppViews:
    """Answers for the views. It belongs into the SDK's own chain, behind the guard that knows the caller."""

    def __init__(self, cortex: Cortex) -> None:
        self._cortex = cortex

    async def __call__(self, ctx: ServerRequestContext[Any, Any], call_next: CallNext) -> HandlerResult:
        params = ctx.params or {}
        if ctx.method == "resources/read" and (view := _BY_URI.get(str(params.get("uri")))):
            text = app_document(view.name, view.title)
            meta = {"ui": {"prefersBorder": True}}
            return ReadResourceResult(
                contents=[TextResourceContents(uri=view.uri, mime_type=MIME_TYPE, text=text, _meta=meta)]
            )
        if ctx.method == CALL_TOOL and params.get("name") == REVIEW_TOOL:
            limiter = anyio.CapacityLimiter(1)
            return await anyio.to_thread.run_sync(self._review, params.get("arguments") or {}, limiter=limiter)
        result = await call_next(ctx)
        if ctx.method not in _LISTS:
            return result
        plain = (
            result.model_dump(by_alias=True, mode="json", exclude_none=True)
            if isinstance(result, BaseModel)
            else result
        )
        return with_views(ctx.method, plain or {})

    def _review(self, arguments: Mapping[str, Any]) -> CallToolResult:
        try:
            with apply_limit(Limit(self._cortex.settings.call_seconds)):
                answer = self._decide(arguments)
        except CortexError as error:
            return CallToolResult(content=[TextContent(text=str(error))], is_error=True)
        return CallToolResult(content=[TextContent(text=json.dumps(answer))], structured_content=answer)

    def _decide(self, arguments: Mapping[str, Any]) -> dict[str, Any]:
        action, ref = arguments.get("action"), arguments.get("id")
        if action not in REVIEW_ACTIONS or arguments.keys() - {"action", "id"}:
            raise InvalidInput(
                "The action is not known.", remedy=f"Give one of {', '.join(REVIEW_ACTIONS)}.", field="action"
            )
        self._require("read" if action == "list" else "write")
        review, memories = self._cortex.review, self._cortex.memories
        if action == "list":
            return {"staged": [_shown(one) for one in review.staged(_MOST_STAGED)]}
        if not isinstance(ref, str):
            raise InvalidInput("The id is missing.", field="id")
        if action == "accept":
            done = review.accept(ref)
        elif action == "drop":
            done = review.drop(ref)
        elif action == "restore":
            done = memories.restore(ref)
        else:
            done = memories.update(ref, status="pending")
        return {"id": done.id, "status": done.status}

    def _require(self, scope: str) -> None:
        caller = current_caller()
        if caller is not None and scope not in caller.scopes:
            raise AccessDenied(f"This needs the scope {scope}.")
        if scope == "write" and any(bound.read_only for bound in self._cortex.settings.tool_bounds):
            raise AccessDenied("This server changes nothing.", remedy="Start it without --read-only.")


def _shown(staged: Any) -> dict[str, Any]:
    memory = staged.memory
    return {
        "id": memory.id,
        "content": memory.content,
        "namespace": memory.namespace,
        "tags": list(memory.tags),
        "created_at": iso(memory.created_at),
        "conflicts": [one.reason for one in staged.conflicts],
    }
