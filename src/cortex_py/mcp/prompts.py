"""Saved prompts as prompts of the protocol: clients show them as commands, with their variables as arguments."""

from __future__ import annotations

from collections.abc import Sequence
from functools import partial
from typing import TYPE_CHECKING, Any

import anyio.to_thread
from fastmcp.exceptions import PromptError
from fastmcp.prompts import Prompt, PromptArgument, PromptResult
from fastmcp.server.providers import Provider
from fastmcp.utilities.components import FastMCPComponent
from fastmcp.utilities.versions import VersionSpec
from pydantic import PrivateAttr

from ..errors import ProjectNotFound, PromptNotFound
from ..prompts.structured import one_line
from ..records import Saved
from ..security.quoting import without_unseen
from .middleware.errors import expected_errors

if TYPE_CHECKING:
    from ..app import Cortex
    from ..prompts.service import Prompts

__all__ = ["SavedPrompts"]


class SavedPrompts(Provider):
    """Looks prompts up at every request, so that a saved prompt is there for everybody at once."""

    def __init__(self, cortex: Cortex) -> None:
        super().__init__()
        self._cortex = cortex

    async def _list_prompts(self) -> Sequence[Prompt]:
        try:
            prompts = self._cortex.prompts
        except ProjectNotFound:
            # A caller without a project has no prompts.
            return ()
        return [_SavedPrompt.of(prompts, one) for one in await anyio.to_thread.run_sync(prompts.visible)]

    async def _get_prompt(self, name: str, version: VersionSpec | None = None) -> Prompt | None:  # noqa: ARG002
        try:
            prompts = self._cortex.prompts
            return _SavedPrompt.of(prompts, await anyio.to_thread.run_sync(prompts.get, name))
        except (PromptNotFound, ProjectNotFound):
            return None

    async def get_tasks(self) -> Sequence[FastMCPComponent]:
        """None: prompts are not background tasks. The framework would list all of them at every start."""
        return ()


class _SavedPrompt(Prompt):
    _prompts: Prompts = PrivateAttr()

    @classmethod
    def of(cls, prompts: Prompts, saved: Saved) -> _SavedPrompt:
        made = cls(
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
        )
        made._prompts = prompts
        return made

    async def render(self, arguments: dict[str, Any] | None = None) -> PromptResult:
        with expected_errors(PromptError):
            # The protocol has no place for a warning, so what the list calls required must be there.
            run = partial(self._prompts.run, self.name, arguments, all_of_them=True)
            filled = await anyio.to_thread.run_sync(run)
        return PromptResult(filled.content, description=self.description)


def _said(saved: Saved) -> str | None:
    """What a client shows of a prompt, beside what the user saved."""
    return (
        f"From {one_line(saved.path)}: {without_unseen(saved.description or '')}" if saved.path else saved.description
    )
