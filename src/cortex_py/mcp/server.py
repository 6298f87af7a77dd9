"""The server: the chosen tools and the resources over one opened Cortex."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Callable
from contextlib import AbstractAsyncContextManager, asynccontextmanager, suppress
from typing import Any

from fastmcp import FastMCP

from ..app import Cortex
from ..version import __version__
from .completions import register_completions
from .errors import WireErrors
from .instructions import INSTRUCTIONS
from .registry import TOOLS
from .resources import MemoryResources, register_resources
from .selection import select
from .subscriptions import Subscriptions
from .tool_making import make_tool
from .tools.memory import MemoryTools

__all__ = ["build_server"]


def build_server(cortex: Cortex) -> FastMCP[Any]:
    """A server over an opened Cortex, with the tools its settings allow.

    The caller closes the Cortex when the server has stopped.
    """
    portable = cortex.settings.portable_names
    specs = select(TOOLS, cortex.settings.tool_bounds)
    resources = MemoryResources(cortex)
    subscriptions = Subscriptions(resources.read, cortex.memories.revision)
    server: FastMCP[Any] = FastMCP(
        "cortex",
        version=__version__,
        instructions=INSTRUCTIONS,
        middleware=[WireErrors(specs, portable=portable)],
        on_duplicate="error",
        mask_error_details=True,
        # Addresses name records, never files: any text may stand in them.
        resource_security=None,
        lifespan=_watching(subscriptions),
    )
    families = {"memory": MemoryTools(cortex)}
    for spec in specs:
        server.add_tool(make_tool(spec, getattr(families[spec.family], spec.method), portable=portable))
    register_resources(server, resources)
    register_completions(server, cortex)
    subscriptions.register(server)
    return server


def _watching(subscriptions: Subscriptions) -> Callable[[FastMCP[Any]], AbstractAsyncContextManager[None]]:
    """The part of the server's life that looks for changes."""

    @asynccontextmanager
    async def lifespan(_: FastMCP[Any]) -> AsyncIterator[None]:
        # A task of its own: the framework may leave this context from another task than it entered it.
        watcher = asyncio.create_task(subscriptions.run())
        try:
            yield
        finally:
            subscriptions.close()
            watcher.cancel()
            with suppress(asyncio.CancelledError):
                await watcher

    return lifespan
