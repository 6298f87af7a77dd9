"""Who may reach the server and its pages. Standard library only, so that `cortex serve` can refuse at once."""

from __future__ import annotations

from collections.abc import Mapping
from types import MappingProxyType

from ..config import Authentication
from ..errors import ConfigurationError
from ..remote import is_loopback
from ..security.rights import Scope

__all__ = ["MCP_PATH", "OPEN_PATHS", "PAGE_SCOPES", "SHORTEST_TOKEN", "check_exposure", "page_scope"]

MCP_PATH = "/mcp"
# Probes have no token; these pages say only whether the server lives, and whether it should get requests.
OPEN_PATHS = frozenset(("/health/live", "/health/ready"))

# The scope that a page needs where callers are known. Other pages need `admin`: closed by default.
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
SHORTEST_TOKEN = 16


def page_scope(path: str) -> Scope | None:
    """The scope for a path; None for the protocol's own, where each message is decided by itself."""
    return None if path == MCP_PATH else PAGE_SCOPES.get(path, "admin")


def check_exposure(host: str, token: str | None, auth: Authentication = "token") -> None:
    """Refuse a shared token that no header can carry, and other machines where callers need not identify themselves."""
    if auth == "token" and token and not (token.isascii() and token.isprintable() and token == token.strip()):
        raise ConfigurationError(
            "The shared token is blank, begins or ends with a blank, or has characters that no header carries.",
            remedy="Set CORTEX_TOKEN to a long random text of letters and digits.",
            field="token",
        )
    if auth == "token" and not is_loopback(host) and len(token or "") < SHORTEST_TOKEN:
        raise ConfigurationError(
            f"Refusing to serve on {host!r}, which other machines can reach, without a token of "
            f"{SHORTEST_TOKEN} characters or more.",
            remedy="Set CORTEX_TOKEN to a long random text, or auth to tokens or oidc, or serve on 127.0.0.1.",
            field="host",
        )
