"""`from cortex_py.mcp.server import create_mcp_server`, as the API is published."""

from ..surfaces.mcp.server import TOOL_CONTRACTS, create_mcp_server

__all__ = ["TOOL_CONTRACTS", "create_mcp_server"]
