"""Saved prompts as prompts of the protocol: clients show them as commands, with their variables as arguments."""

from __future__ import annotations

import logging
from functools import partial
from typing import TYPE_CHECKING, Any

import anyio.to_thread
from mcp.server.context import ServerRequestContext
from mcp.shared.exceptions import MCPError
from mcp_types import (
    GetPromptRequestParams,
    GetPromptResult,
    ListPromptsResult,
    PaginatedRequestParams,
    Prompt,
    PromptArgument,
    PromptMessage,
    TextContent,
)

from ...core.errors import CortexError, NotFound, ProjectNotFound, PromptNotFound
from ...core.records import Saved
from ...core.security.quoting import without_unseen
from ...texts.structured import one_line
from .calls import META, retried
from .middleware.chain import INTERNAL_ERROR, INVALID_PARAMS, as_wire_error

if TYPE_CHECKING:
    from ...app import Cortex

__all__ = ["SavedPrompts"]

_log = logging.getLogger(__name__)


class SavedPrompts:
    """Looks prompts up at every request, so that a saved prompt is there for everybody at once."""

    def __init__(self, cortex: Cortex) -> None:
        self._cortex = cortex

    async def list(self, _: ServerRequestContext[Any, Any], __: PaginatedRequestParams) -> ListPromptsResult:
        try:
            prompts = self._cortex.prompts
        except ProjectNotFound:
            # A caller without a project has no prompts.
            return ListPromptsResult(prompts=[])
        return ListPromptsResult(prompts=[_listed(one) for one in await anyio.to_thread.run_sync(prompts.visible)])

    async def get(self, _: ServerRequestContext[Any, Any], params: GetPromptRequestParams) -> GetPromptResult:
        return await retried(partial(self._get, params))

    async def _get(self, params: GetPromptRequestParams) -> GetPromptResult:
        name = params.name[:200]
        try:
            prompts = self._cortex.prompts
            saved = await anyio.to_thread.run_sync(prompts.get, params.name)
        except (PromptNotFound, ProjectNotFound) as error:
            raise MCPError(code=INVALID_PARAMS, message=f"Unknown prompt: {name}", data={"prompt": name}) from error
        # The protocol has no place for a warning, so what the list calls required must be there.
        run = partial(prompts.run, saved.name, params.arguments, all_of_them=True)
        try:
            filled = await anyio.to_thread.run_sync(run)
        except CortexError as error:
            detail = as_wire_error(error, {}).error
            # The protocol has one code for a prompt that does not exist and for arguments that do not fit.
            code = INVALID_PARAMS if isinstance(error, NotFound) else detail.code
            raise MCPError(code=code, message=detail.message, data={**detail.data, "prompt": name}) from error
        except Exception as error:
            _log.error("prompts/get failed", exc_info=error)
            raise MCPError(code=INTERNAL_ERROR, message=f"Error rendering prompt {params.name!r}") from error
        message = PromptMessage(role="user", content=TextContent(text=filled.content))
        return GetPromptResult(description=_said(saved), messages=[message])


def _listed(saved: Saved) -> Prompt:
    return Prompt(
        name=saved.name,
        description=_said(saved),
        arguments=[
            PromptArgument(
                name=one.name,
                description=without_unseen(one.description or "") or None,
                required=one.required is not False and one.default is None,
            )
            for one in saved.variables
        ],
        _meta=META,
    )


def _said(saved: Saved) -> str | None:
    """What a client shows of a prompt, beside what the user saved."""
    return (
        f"From {one_line(saved.path)}: {without_unseen(saved.description or '')}" if saved.path else saved.description
    )
