"""Builds the server: the chosen tools, resources and prompts over one opened Cortex."""

from __future__ import annotations

import asyncio
import logging
import threading
from collections.abc import AsyncIterator, Iterable, Mapping, Sequence
from contextlib import asynccontextmanager, suppress
from typing import TYPE_CHECKING, Any

import anyio
import anyio.to_thread
import mcp_types
from mcp.server.context import ServerRequestContext
from mcp.server.lowlevel import NotificationOptions, Server
from mcp.server.models import InitializationOptions
from mcp.server.request_state import RequestStateBoundary, RequestStateSecurity

from ...app import Cortex
from ...core.embedding.service import EmbeddingService
from ...core.errors import CortexError
from ...core.security.callers import current_caller
from ...version import __version__
from .app_views import EXTENSION
from .calls import Requirement, Tool, ToolCalls, make_tool
from .families.backup import BackupTools
from .families.context import ContextTools
from .families.embedding import CONTRACTS, CortexPyMCPTools, ToolErrorResponse
from .families.graph import GraphTools
from .families.memory import MemoryTools
from .families.memory_tool import MemoryFileTools
from .families.prompts import PromptTools
from .help_pages import INSTRUCTIONS
from .middleware.access import AccessGuard, require_scope
from .middleware.apps import AppViews
from .middleware.chain import (
    bound_requests,
    keep_list,
    observe,
    order_handshake,
    redact_errors,
    repeat_once,
    show_views,
    translate_errors,
)
from .middleware.telemetry import CALL_TOOL, Meter, UpkeepOutcome
from .prompts import SavedPrompts
from .registry import EVERY_TOOL, ToolSpec, family_tools, select_tools
from .resources import MemoryResources, serve_completions, serve_resources
from .subscriptions import Subscriptions

if TYPE_CHECKING:
    from fastmcp import FastMCP

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


class MemoryServer(Server[None]):
    """The SDK's server over one opened Cortex. Call `end_streams` before stopping it: it ends watchers in order."""

    def __init__(
        self, cortex: Cortex, calls: ToolCalls, meter: Meter | None, guard: AccessGuard | None, *, sessions: bool
    ) -> None:
        resources, prompts = MemoryResources(cortex), SavedPrompts(cortex)
        self.subscriptions = subscriptions = Subscriptions(cortex, resources, prompts, sessions=sessions)
        super().__init__(
            "cortex",
            version=__version__,
            instructions=INSTRUCTIONS,
            lifespan=lambda _: self._running(),
            # No argument of a tool is repeated in a header. Without this answer, every call would list all tools.
            get_tool_input_schema=lambda _: None,
        )
        self.calls = calls
        self.end_streams = subscriptions.close
        self.extensions[EXTENSION] = {}
        # Without the SDK's own first link, whose spans would not be sent.
        self.middleware = [
            redact_errors,
            observe(meter),
            *([guard] if guard else []),
            repeat_once,
            bound_requests(cortex.settings),
            show_views(AppViews(cortex)),
            translate_errors,
            order_handshake,
            keep_list(),
            # No tool asks back, so whatever a client sends as the state of a question is refused.
            RequestStateBoundary(RequestStateSecurity.ephemeral(), default_audience=self.name),
        ]
        self.add_request_handler("tools/list", mcp_types.PaginatedRequestParams, calls.list)
        self.add_request_handler(CALL_TOOL, mcp_types.CallToolRequestParams, calls.answer)
        self.add_request_handler("prompts/get", mcp_types.GetPromptRequestParams, prompts.get)
        self.add_request_handler("logging/setLevel", mcp_types.SetLevelRequestParams, _set_level)
        serve_resources(self, resources)
        serve_completions(self, cortex)
        subscriptions.serve(self)
        self._work = (subscriptions, Upkeep(cortex, meter=meter))
        self._connected = 0
        self._tasks: list[asyncio.Task[None]] = []

    def create_initialization_options(
        self,
        notification_options: NotificationOptions | None = None,
        experimental_capabilities: dict[str, dict[str, Any]] | None = None,
        extensions: dict[str, dict[str, Any]] | None = None,
    ) -> InitializationOptions:
        every = NotificationOptions(prompts_changed=True, resources_changed=True, tools_changed=True)
        return super().create_initialization_options(
            notification_options or every, experimental_capabilities, extensions
        )

    @asynccontextmanager
    async def _running(self) -> AsyncIterator[None]:
        """Run what works between requests, the watch for changes and upkeep, while anybody is connected."""
        self._connected += 1
        if self._connected == 1:
            anyio.to_thread.current_default_thread_limiter().total_tokens = WORKERS
            # Separate tasks: this context may be left from another task than it was entered.
            self._tasks = [asyncio.create_task(one.run()) for one in self._work]
        try:
            yield
        finally:
            self._connected -= 1
            if not self._connected:
                for one in self._work:
                    one.close()
                for task in self._tasks:
                    task.cancel()
                for task in self._tasks:
                    with suppress(asyncio.CancelledError):
                        await task


async def _set_level(_: ServerRequestContext[Any, Any], __: mcp_types.SetLevelRequestParams) -> mcp_types.EmptyResult:
    """Nothing is logged to clients, whatever level they set."""
    return mcp_types.EmptyResult()


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
    settings = cortex.settings
    written = settings.audit == "on" if audited is None else audited
    families = {
        "memory": MemoryTools(cortex),
        "context": ContextTools(cortex),
        "backup": BackupTools(cortex),
        "graph": GraphTools(cortex),
        "prompts": PromptTools(cortex),
        "embedding": CortexPyMCPTools(cortex.embeddings, _caller_name),
        "memory_tool": MemoryFileTools(cortex),
    }
    require: list[Requirement] = [require_scope] if known_callers else []
    if settings.require_license:
        require.append(cortex.require)
    calls = ToolCalls(
        _tools(select_tools(EVERY_TOOL, settings.tool_bounds), families, portable=settings.portable_names),
        settings,
        require=require,
        while_answering=cortex.answering,
        at_once=WORKERS if settings.database_url else _COMPUTING,
    )
    guard = None
    if known_callers or written:
        guard = AccessGuard(cortex, known_callers=known_callers, audited=written, meter=meter)
    return MemoryServer(cortex, calls, meter, guard, sessions=sessions)


def _caller_name() -> str:
    caller = current_caller()
    return caller.label if caller else "mcp"


def create_mcp_server(service: EmbeddingService | None = None) -> FastMCP[Any]:
    """A server with only the embedding tools, over the given service or the default one."""
    # FastMCP takes longer to load than everything else.
    from .fastmcp_server import mounted

    families = {"embedding": CortexPyMCPTools(service or EmbeddingService())}
    return mounted("cortex-py", ToolCalls(_tools(family_tools("embedding"), families, portable=False)))


def _tools(specs: Sequence[ToolSpec], families: Mapping[str, object], *, portable: bool) -> Iterable[Tool]:
    return [make_tool(spec, getattr(families[spec.family], spec.method), portable=portable) for spec in specs]


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
        self._stop.clear()  # another client came after the last one had left
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
