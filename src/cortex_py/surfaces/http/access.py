"""Who may reach the server and its pages. Standard library only, so that `cortex serve` can refuse at once."""

from __future__ import annotations

import re
from collections.abc import Mapping
from functools import cache
from types import MappingProxyType

from ...core.config import Authentication
from ...core.errors import ConfigurationError
from ...core.remote import is_loopback
from ...core.security.rights import Scope

__all__ = [
    "API", "CHANGE_SCOPES", "EVENTS_PATH", "MCP_PATH", "OPEN_PATHS", "PAGE_SCOPES", "SESSION_PATH", "SHORTEST_TOKEN",
    "STATIC_PATH", "VIEW_PATHS", "check_exposure", "is_open", "is_page", "page_scope", "route_of", "takes_long_texts",
]  # fmt: skip

MCP_PATH = "/mcp"
SESSION_PATH = "/session"
STATIC_PATH = "/static/{version}/{name}"
API = "/api/v1"
EVENTS_PATH = f"{API}/events"
# Probes have no token; their pages say only whether the server lives, and whether it should get requests. A session
# begins without one, and the files of the page are the same for everybody.
OPEN_PATHS = frozenset(("/health/live", "/health/ready", SESSION_PATH, STATIC_PATH))

# The page that people look at, view by view.
VIEW_PATHS = (
    "/", "/timeline", "/graph", "/review", "/check", "/lines", "/next", "/doctor", "/memories/{id}",
)  # fmt: skip
# The operations behind it, by the scope that each needs.
_READ = (
    "openapi.json", "events", "search", "facets", "memories/{id}", "memories/{id}/history", "complete", "timeline",
    "timeline/{id}", "graph", "graph/path", "graph/facts", "graph/entity", "graph/names", "evidence", "review/{id}",
    "check", "lines", "lines/{id}", "next",
    # To look; what changes something needs `write`, see the operation.
    "memory-tool",
)  # fmt: skip
_WRITE = ("memories/{id}/restore", "memories/{id}/supersede", "review", "review/{id}/merge", "promote")
_ADMIN = (
    "memories/{id}/purge", "snapshots", "snapshots/{id}/verify", "snapshots/{id}/restore", "sync",
    # It names folders and addresses of the machine.
    "doctor",
)  # fmt: skip

# The scope that a page needs where callers are known. Other pages need `admin`: closed by default.
PAGE_SCOPES: Mapping[str, Scope] = MappingProxyType(
    {
        **dict.fromkeys((*VIEW_PATHS, *(f"{API}/{path}" for path in _READ), "/health", "/status"), "read"),
        **dict.fromkeys((f"{API}/{path}" for path in _WRITE), "write"),
        **dict.fromkeys(("/embed", "/embeddings", "/v1/embeddings", "/models", "/v1/models", "/openapi.json"), "embed"),
        **dict.fromkeys((*(f"{API}/{path}" for path in _ADMIN), "/metrics"), "admin"),
    }
)
# What a request needs that changes something there.
CHANGE_SCOPES: Mapping[str, Scope] = MappingProxyType({f"{API}/memories/{{id}}": "write"})
SHORTEST_TOKEN = 16

# The routes that take texts of any length; every other one is content with a short body.
_LONG_TEXTS = frozenset(
    (
        MCP_PATH, "/embed", "/embeddings", "/v1/embeddings",
        f"{API}/memories/{{id}}", f"{API}/memory-tool", f"{API}/check",
    )
)  # fmt: skip

_READING = ("GET", "HEAD", "OPTIONS")


@cache
def _templates() -> tuple[str, ...]:
    return tuple(route for route in (*PAGE_SCOPES, *OPEN_PATHS) if "{" in route)


@cache
def _patterns() -> re.Pattern[str]:
    """One group for each route that has parts of any text."""
    return re.compile("|".join("(" + re.sub(r"\\{\w+\\}", "[^/]+", re.escape(route)) + ")" for route in _templates()))


def route_of(path: str) -> str | None:
    """The route of a path, such as `/memories/{id}`; None for what is not known here."""
    if path == MCP_PATH or path in PAGE_SCOPES or path in OPEN_PATHS:
        return path
    found = _patterns().fullmatch(path)
    return _templates()[(found.lastindex or 1) - 1] if found else None


def is_open(path: str) -> bool:
    """Whether a path is answered for anybody."""
    return route_of(path) in OPEN_PATHS


def is_page(path: str) -> bool:
    """Whether a path belongs to the page that people look at: one of its views, or the interface behind them."""
    route = route_of(path)
    return route is not None and (route in VIEW_PATHS or route.startswith(f"{API}/"))


def takes_long_texts(path: str) -> bool:
    """Whether a request to a path may have a large body."""
    return route_of(path) in _LONG_TEXTS


def page_scope(path: str, method: str = "GET") -> Scope | None:
    """The scope for a path; None for the protocol's own, where each message is decided by itself."""
    if path == MCP_PATH:
        return None
    route = route_of(path) or path
    read = PAGE_SCOPES.get(route, "admin")
    return read if method in _READING else CHANGE_SCOPES.get(route, read)


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
