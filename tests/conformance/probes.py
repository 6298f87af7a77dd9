"""Fixtures that make the server show how it behaves: refusals, silence, and news of changed lists."""

from __future__ import annotations

from fastmcp import Context
from fastmcp.tools import ToolResult
from mcp.server.subscriptions import PromptsListChanged, ServerEvent, ToolsListChanged
from mcp.shared.exceptions import MCPError
from mcp_types import MISSING_REQUIRED_CLIENT_CAPABILITY

from cortex_py.surfaces.mcp.server import MemoryServer

__all__ = ["TOOLS", "watch"]


def test_missing_capability(context: Context) -> ToolResult:
    """Refuses clients that have no model to lend."""
    able = context.session.client_capabilities
    if not able or not able.sampling:
        raise MCPError(
            code=MISSING_REQUIRED_CLIENT_CAPABILITY,
            message="This tool needs the sampling capability.",
            data={"requiredCapabilities": {"sampling": {}}},
        )
    return ToolResult(content="The client can sample.")


async def test_logging_tool(context: Context) -> ToolResult:
    """Logs a line, which reaches only who asked for a level."""
    await context.info("A line of log")
    return ToolResult(content="Logged one line.")


async def test_trigger_tool_change() -> ToolResult:
    """Says that the list of tools has changed."""
    return await _announce(ToolsListChanged())


async def test_trigger_prompt_change() -> ToolResult:
    """Says that the list of prompts has changed."""
    return await _announce(PromptsListChanged())


TOOLS = (test_missing_capability, test_logging_tool, test_trigger_tool_change, test_trigger_prompt_change)


_served: list[MemoryServer] = []


def watch(server: MemoryServer) -> None:
    """Announce to those who listen to this server."""
    _served.append(server)


async def _announce(event: ServerEvent) -> ToolResult:
    # The real server's own lists never change while it runs, so it has no call for this; its streams do.
    for server in _served:
        entry = server.get_request_handler("subscriptions/listen")
        assert entry
        for audience in entry.handler.__self__._audiences.values():  # type: ignore[attr-defined]
            await audience.bus.publish(event)
    return ToolResult(content="Announced.")
