"""Builds the server: the chosen tools, resources and prompts over one opened Cortex."""

from __future__ import annotations

import asyncio
import logging
import threading
from collections.abc import AsyncIterator, Callable, Mapping, Sequence
from contextlib import AbstractAsyncContextManager, asynccontextmanager, nullcontext, suppress
from typing import Any

import anyio
import anyio.to_thread
from fastmcp import FastMCP

from ..app import Cortex
from ..embedding.service import EmbeddingService
from ..errors import CortexError
from ..security.callers import current_caller
from ..version import __version__
from .families.backup.tools import BackupTools
from .families.context.tools import ContextTools
from .families.embedding.tools import CortexPyMCPTools
from .families.graph.tools import GraphTools
from .families.memory.tools import MemoryTools
from .families.memory_tool.tools import MemoryFileTools
from .families.prompts.tools import PromptTools
from .families.tool import WhileAnswering, make_tool
from .help_pages import INSTRUCTIONS
from .middleware.access import AccessGuard, require_scope
from .middleware.apps import AppViews
from .middleware.bounds import Deadlines, RequestLimits, RetryReads, check_sizes
from .middleware.calls import DirectCalls
from .middleware.errors import ErrorRedaction, Requirement, WireErrors
from .middleware.repeats import RepeatableCalls
from .middleware.telemetry import Meter, RequestTelemetry, UpkeepOutcome
from .models import CONTRACTS, ToolErrorResponse
from .prompts import SavedPrompts
from .registry import EVERY_TOOL, ToolSpec, family_tools, select_tools
from .resources import MemoryResources, register_completions, register_resources
from .sdk_adapter import StatelessServer, add_sdk_middleware, server_info
from .subscriptions import Subscriptions

__all__ = ["TOOL_CONTRACTS", "WORKERS", "MemoryServer", "Upkeep", "build_server", "create_mcp_server"]

# The input, output and error of each embedding tool, as JSON schemas.
TOOL_CONTRACTS: dict[str, dict[str, Any]] = {
    name: {
        "input": taken.model_json_schema(),
        "output": answered.model_json_schema(),
        "error": ToolErrorResponse.model_json_schema(),
    }
    for name, (taken, answered) in CONTRACTS.items()
}

# Calls at work at the same time. More would wait for each other, each with a connection and its cache.
WORKERS = 8
# Those of them that compute; with a database server, calls mostly wait.
_COMPUTING = 2


class MemoryServer(StatelessServer):
    """The framework's server. Call `end_streams` before stopping it: it ends the streams of watchers in order."""

    end_streams: Callable[[], None]
    direct_calls: DirectCalls


def build_server(
    cortex: Cortex,
    *,
    known_callers: bool = False,
    audited: bool | None = None,
    meter: Meter | None = None,
    sessions: bool = True,
) -> MemoryServer:
    """A server over an opened Cortex, with the tools its settings allow.

    `known_callers`: a guard in front of it identifies callers, and each may do what their scopes allow. `audited`:
    calls are written into the audit log; by default, if the setting is `on`. `meter` counts what happens. `sessions`:
    whether a client of the handshake protocol can get notifications after a request.

    The caller closes the Cortex when the server has stopped.
    """
    portable = cortex.settings.portable_names
    counts = meter or Meter()
    written = cortex.settings.audit == "on" if audited is None else audited
    specs = select_tools(EVERY_TOOL, cortex.settings.tool_bounds)
    resources = MemoryResources(cortex)
    subscriptions = Subscriptions(cortex, resources, sessions=sessions)
    server = MemoryServer(
        "cortex",
        version=__version__,
        instructions=INSTRUCTIONS,
        middleware=[
            WireErrors(specs, portable=portable, require=_requirements(cortex, known_callers)),
            Deadlines(specs, cortex.settings),
            RetryReads(specs),
        ],
        on_duplicate="error",
        mask_error_details=True,
        strict_input_validation=True,
        dereference_schemas=False,
        # Addresses name records, never files, so they may contain any text.
        resource_security=None,
        lifespan=_lifespan(subscriptions, Upkeep(cortex, meter=counts)),
    )
    families = {
        "memory": MemoryTools(cortex),
        "context": ContextTools(cortex),
        "backup": BackupTools(cortex),
        "graph": GraphTools(cortex),
        "prompts": PromptTools(cortex),
        "embedding": CortexPyMCPTools(cortex.embeddings, _caller_name),
        "memory_tool": MemoryFileTools(cortex),
    }
    _add_tools(server, specs, families, portable=portable, while_answering=cortex.answering)
    register_resources(server, resources)
    server.add_provider(SavedPrompts(cortex))
    # A busy store is an error, not an empty list.
    server.provider_error_strategy = "raise"
    register_completions(server, cortex)
    subscriptions.register(server)
    at_once = WORKERS if cortex.settings.database_url else _COMPUTING
    server.direct_calls = DirectCalls(specs, server.kept_tools, server.middleware, server_info(server), at_once)
    add_sdk_middleware(server, server.direct_calls)
    add_sdk_middleware(server, AppViews(cortex))
    add_sdk_middleware(server, RequestLimits(cortex.settings))
    add_sdk_middleware(server, RepeatableCalls())
    if known_callers or written:
        guard = AccessGuard(cortex, known_callers=known_callers, audited=written, meter=counts)
        add_sdk_middleware(server, guard)
    add_sdk_middleware(server, RequestTelemetry(counts))
    add_sdk_middleware(server, ErrorRedaction())
    server.end_streams = subscriptions.close
    return server


def _requirements(cortex: Cortex, known_callers: bool) -> tuple[Requirement, ...]:
    def sizes(_tool: str, arguments: dict[str, Any]) -> None:
        check_sizes(arguments, cortex.settings)

    scope: tuple[Requirement, ...] = (require_scope,) if known_callers else ()
    return (sizes, *scope, cortex.require) if cortex.settings.require_license else (sizes, *scope)


def _caller_name() -> str:
    caller = current_caller()
    return caller.label if caller else "mcp"


def create_mcp_server(service: EmbeddingService | None = None) -> FastMCP[Any]:
    """A server with only the embedding tools, over the given service or the default one."""
    specs = list(family_tools("embedding"))
    server = StatelessServer(
        "cortex-py",
        version=__version__,
        middleware=[WireErrors(specs, portable=False)],
        on_duplicate="error",
        mask_error_details=True,
        strict_input_validation=True,
        dereference_schemas=False,
    )
    _add_tools(server, specs, {"embedding": CortexPyMCPTools(service or EmbeddingService())}, portable=False)
    add_sdk_middleware(server, ErrorRedaction())
    return server


def _add_tools(
    server: StatelessServer,
    specs: Sequence[ToolSpec],
    families: Mapping[str, object],
    *,
    portable: bool,
    while_answering: WhileAnswering = nullcontext,
) -> None:
    functions = [(spec, getattr(families[spec.family], spec.method)) for spec in specs]
    server.keep_tools(
        make_tool(spec, function, portable=portable, while_answering=while_answering) for spec, function in functions
    )


def _lifespan(
    subscriptions: Subscriptions, upkeep: Upkeep
) -> Callable[[FastMCP[Any]], AbstractAsyncContextManager[None]]:
    """Runs what works between requests: the watch for changes, and upkeep."""

    @asynccontextmanager
    async def lifespan(_: FastMCP[Any]) -> AsyncIterator[None]:
        # Separate tasks: the framework may leave this context from another task than it entered it.
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


# Work that a running server does between requests, such as packing idle memories.

EVERY_SECONDS = 60.0

_log = logging.getLogger(__name__)


class Upkeep:
    """Runs at intervals until it is closed. A read-only server has none."""

    def __init__(self, cortex: Cortex, every_seconds: float | None = None, meter: Meter | None = None) -> None:
        self._cortex = cortex
        self._every = EVERY_SECONDS if every_seconds is None else every_seconds
        self._meter = meter or Meter()
        self._stop = threading.Event()
        self._needed = not any(bound.read_only for bound in cortex.settings.tool_bounds)

    async def run(self) -> None:
        while self._needed:
            await anyio.sleep(self._every)
            # With a limiter of its own, so that calls do not wait for it. Not abandoned, because it uses the store.
            await anyio.to_thread.run_sync(self._work, limiter=anyio.CapacityLimiter(1))

    def close(self) -> None:
        """Let the work end at its next batch."""
        self._stop.set()

    def _work(self) -> None:
        self._meter.count_upkeep(self._outcome())

    def _outcome(self) -> UpkeepOutcome:
        try:
            self._cortex.upkeep(self._stop.is_set)
        except CortexError as error:
            _log.warning("upkeep was postponed: %s", error)
            return "put_off"
        except Exception:  # noqa: BLE001  # it would end all upkeep, and be raised when the server stops
            _log.exception("upkeep failed")
            return "failed"
        return "done"
