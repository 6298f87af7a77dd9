"""Fixtures that make the server show how it behaves: refusals, silence, and news of changed lists."""

from __future__ import annotations

from fastmcp import Context
from fastmcp.tools import ToolResult
from mcp.server.subscriptions import PromptsListChanged, ServerEvent, ToolsListChanged
from mcp.shared.exceptions import MCPError
from mcp_types import MISSING_REQUIRED_CLIENT_CAPABILITY

__all__ = ["TOOLS"]


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


async def test_trigger_tool_change(context: Context) -> ToolResult:
    """Says that the list of tools has changed."""
    return await _announce(context, ToolsListChanged())


async def test_trigger_prompt_change(context: Context) -> ToolResult:
    """Says that the list of prompts has changed."""
    return await _announce(context, PromptsListChanged())


TOOLS = (test_missing_capability, test_logging_tool, test_trigger_tool_change, test_trigger_prompt_change)


async def _announce(context: Context, event: ServerEvent) -> ToolResult:
    # The real server's own lists never change while it runs, so it has no call for this; its streams do.
    entry = context.fastmcp._mcp_server.get_request_handler("subscriptions/listen")
    for audience in entry.handler.__self__._audiences.values():
        await audience.bus.publish(event)
    return ToolResult(content="Announced.")
