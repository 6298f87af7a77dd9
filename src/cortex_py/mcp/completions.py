"""Completion of arguments: of prompts, and of resource addresses (domains, namespaces, ids, tags, help topics)."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from fastmcp import FastMCP
from mcp_types import CompletionArgument, CompletionContext, PromptReference, ResourceTemplateReference

from ..errors import ProjectNotFound, PromptNotFound
from ..memory.namespaces import NAMESPACES
from ..records import DOMAINS
from .help_pages import HELP
from .resources import SCHEME

if TYPE_CHECKING:
    from ..app import Cortex

__all__ = ["register_completions"]


def register_completions(server: FastMCP[Any], cortex: Cortex) -> None:
    @server.completion
    def complete(
        ref: PromptReference | ResourceTemplateReference,
        argument: CompletionArgument,
        context: CompletionContext | None,  # noqa: ARG001
    ) -> list[str] | None:
        try:
            return _completed(cortex, ref, argument)
        except ProjectNotFound:
            # A caller who works in no project has nothing to choose from.
            return None


def _completed(
    cortex: Cortex, ref: PromptReference | ResourceTemplateReference, argument: CompletionArgument
) -> list[str] | None:
    if isinstance(ref, PromptReference):
        return _for_prompt(cortex, ref.name, argument)
    if not str(ref.uri).startswith(SCHEME):
        return None
    typed = argument.value.strip().lower()
    if argument.name == "id":
        return list(cortex.memories.ids(typed))
    if argument.name == "query":
        return [tag for tag, _ in cortex.memories.tags(typed)]
    fixed = {
        "domain": DOMAINS,
        "namespace": tuple(namespace.name for namespace in NAMESPACES),
        "topic": tuple(HELP),
    }
    return [value for value in fixed.get(argument.name, ()) if value.startswith(typed)]


def _for_prompt(cortex: Cortex, name: str, argument: CompletionArgument) -> list[str] | None:
    try:
        return cortex.prompts.complete(name, argument.name, argument.value)
    except PromptNotFound:
        return None
