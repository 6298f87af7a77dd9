"""The server: the chosen tools and the resources over one opened Cortex."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Callable, Mapping, Sequence
from contextlib import AbstractAsyncContextManager, asynccontextmanager, suppress
from typing import Any

import anyio.to_thread
from fastmcp import FastMCP

from ..app import Cortex
from ..embedding.service import EmbeddingService
from ..security.callers import current_caller
from ..version import __version__
from .completions import register_completions
from .errors import Requirement, WireErrors
from .gate import Gate, require_scope
from .instructions import INSTRUCTIONS
from .meter import Meter, NoMeter
from .models import CONTRACTS, ToolErrorResponse
from .observing import Observing
from .prompts import SavedPrompts
from .registry import EMBEDDING_TOOLS, TOOLS, ToolSpec
from .repeating import Repeating
from .resources import MemoryResources, register_resources
from .selection import select
from .subscriptions import Subscriptions
from .tool_making import make_tool
from .tools.backup import BackupTools
from .tools.context import ContextTools
from .tools.embedding import CortexPyMCPTools
from .tools.graph import GraphTools
from .tools.memory import MemoryTools
from .tools.prompts import PromptTools
from .upkeep import Upkeep

__all__ = ["TOOL_CONTRACTS", "WORKERS", "MemoryServer", "build_server", "create_mcp_server"]

# What each embedding tool takes, answers, and answers when it fails, as JSON schemas.
TOOL_CONTRACTS: dict[str, dict[str, Any]] = {
    name: {
        "input": taken.model_json_schema(),
        "output": answered.model_json_schema(),
        "error": ToolErrorResponse.model_json_schema(),
    }
    for name, (taken, answered) in CONTRACTS.items()
}

# Calls at work at one time. More would only wait for each other, each with a connection and its cache.
WORKERS = 8


class MemoryServer(FastMCP[Any]):
    """The framework's server. `end_streams` ends those of watchers in order; whoever stops it calls that first."""

    end_streams: Callable[[], None]


def build_server(
    cortex: Cortex,
    *,
    known_callers: bool = False,
    audited: bool | None = None,
    meter: Meter | None = None,
    sessions: bool = True,
) -> MemoryServer:
    """A server over an opened Cortex, with the tools its settings allow.

    `known_callers`: a guard before it tells who calls, and each may do what their scopes allow. `audited`: calls
    are written down; by default, where the settings say so outright. `meter`: is told what happens. `sessions`:
    whether a client of the handshake protocol can be told of anything later.

    The caller closes the Cortex when the server has stopped.
    """
    portable = cortex.settings.portable_names
    counts = meter or NoMeter()
    written_down = cortex.settings.audit == "on" if audited is None else audited
    specs = select(TOOLS, cortex.settings.tool_bounds)
    resources = MemoryResources(cortex)
    subscriptions = Subscriptions(
        resources.read,
        cortex.memories.revision,
        lambda: cortex.prompts.state(),
        cortex.tenants.admitted,
        changed=cortex.wait_for_change,
        sessions=sessions,
    )
    server = MemoryServer(
        "cortex",
        version=__version__,
        instructions=INSTRUCTIONS,
        middleware=[
            WireErrors(specs, portable=portable, require=_requirements(cortex, known_callers)),
            Repeating(specs),
        ],
        on_duplicate="error",
        mask_error_details=True,
        dereference_schemas=False,
        # Addresses name records, never files: any text may stand in them.
        resource_security=None,
        lifespan=_watching(subscriptions, Upkeep(cortex, meter=counts)),
    )
    families = {
        "memory": MemoryTools(cortex),
        "context": ContextTools(cortex),
        "backup": BackupTools(cortex),
        "graph": GraphTools(cortex),
        "prompts": PromptTools(cortex),
        "embedding": CortexPyMCPTools(cortex.embeddings, _caller_name),
    }
    _add_tools(server, specs, families, portable=portable)
    register_resources(server, resources)
    server.add_provider(SavedPrompts(cortex))
    # A store that is busy is an error, not an empty list.
    server.provider_error_strategy = "raise"
    register_completions(server, cortex)
    subscriptions.register(server)
    if known_callers or written_down:
        # The framework's own chain does not see every request; a test walks them all.
        gate = Gate(cortex, known_callers=known_callers, audited=written_down, meter=counts)
        server._mcp_server.middleware.insert(0, gate)
    server._mcp_server.middleware.insert(0, Observing(counts))
    server.end_streams = subscriptions.close
    return server


def _requirements(cortex: Cortex, known_callers: bool) -> tuple[Requirement, ...]:
    scope: tuple[Requirement, ...] = (require_scope,) if known_callers else ()
    return (*scope, cortex.require) if cortex.settings.require_license else scope


def _caller_name() -> str:
    caller = current_caller()
    return caller.label if caller else "mcp"


def create_mcp_server(service: EmbeddingService | None = None) -> FastMCP[Any]:
    """A server with the embedding tools alone, over a service of yours or the default one."""
    specs = list(EMBEDDING_TOOLS)
    server: FastMCP[Any] = FastMCP(
        "cortex-py",
        version=__version__,
        middleware=[WireErrors(specs, portable=False)],
        on_duplicate="error",
        mask_error_details=True,
        dereference_schemas=False,
    )
    _add_tools(server, specs, {"embedding": CortexPyMCPTools(service or EmbeddingService())}, portable=False)
    return server


def _add_tools(
    server: FastMCP[Any], specs: Sequence[ToolSpec], families: Mapping[str, object], *, portable: bool
) -> None:
    tools = [make_tool(spec, getattr(families[spec.family], spec.method), portable=portable) for spec in specs]
    for tool in tools:
        server.add_tool(tool)
    # Without this the stateless protocol lists all tools, at length, before every call over HTTP.
    server._mcp_server.get_tool_input_schema = {tool.name: tool.parameters for tool in tools}.get


def _watching(
    subscriptions: Subscriptions, upkeep: Upkeep
) -> Callable[[FastMCP[Any]], AbstractAsyncContextManager[None]]:
    """The part of the server's life that looks for changes, and after the store."""

    @asynccontextmanager
    async def lifespan(_: FastMCP[Any]) -> AsyncIterator[None]:
        # A task of its own: the framework may leave this context from another task than it entered it.
        anyio.to_thread.current_default_thread_limiter().total_tokens = WORKERS
        tasks = [asyncio.create_task(subscriptions.run()), asyncio.create_task(upkeep.run())]
        try:
            yield
        finally:
            subscriptions.close()
            upkeep.close()
            for task in tasks:
                task.cancel()
            for task in tasks:
                with suppress(asyncio.CancelledError):
                    await task

    return lifespan
