"""Which scope each plain page needs where callers are known. What is not named here needs `admin`: shut, not open."""

from __future__ import annotations

from collections.abc import Mapping
from types import MappingProxyType

from ..security.scopes import Scope

__all__ = ["MCP_PATH", "OPEN_PATHS", "PAGE_SCOPES", "page_scope"]

MCP_PATH = "/mcp"
# A probe has no token; these pages say only whether the server lives, and whether it should be sent requests.
OPEN_PATHS = frozenset(("/health/live", "/health/ready"))

PAGE_SCOPES: Mapping[str, Scope] = MappingProxyType(
    {
        "/health": "read",
        "/status": "read",
        "/embed": "embed",
        "/embeddings": "embed",
        "/v1/embeddings": "embed",
        "/models": "embed",
        "/v1/models": "embed",
        "/openapi.json": "embed",
        "/metrics": "admin",
    }
)


def page_scope(path: str) -> Scope | None:
    """The scope for a path; None for the protocol's, whose messages are each decided on their own."""
    return None if path == MCP_PATH else PAGE_SCOPES.get(path, "admin")
