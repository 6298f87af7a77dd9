"""Which scope each tool and each request needs, computed from the table of tools: none can be forgotten.

| a tool that | needs |
|---|---|
| may destroy something, or is of the set `backup` | `admin` |
| only reads | `read` |
| does anything else | `write` |

`tool:NAME` opens one tool in place of its scope. Requests that show what is stored need `read`; those of the
handshake, and the list of tools, need none but a known caller.
"""

from __future__ import annotations

from collections.abc import Collection

from ..errors import AccessDenied
from ..security.scopes import TOOL_PREFIX, Scope
from .tool_spec import ToolSpec

__all__ = ["CALL_TOOL", "OPEN_METHODS", "needed_scope", "permits", "require_method", "require_tool"]

CALL_TOOL = "tools/call"
# They tell nothing of what is stored.
OPEN_METHODS = frozenset(("initialize", "ping", "server/discover", "tools/list", "logging/setLevel"))


def needed_scope(spec: ToolSpec) -> Scope:
    if spec.destructive or "backup" in spec.toolsets:
        return "admin"
    return "read" if spec.read_only else "write"


def permits(scopes: Collection[str], spec: ToolSpec) -> bool:
    return needed_scope(spec) in scopes or any(f"{TOOL_PREFIX}{name}" in scopes for name in spec.spellings)


def require_tool(scopes: Collection[str], spec: ToolSpec) -> None:
    """Raise `AccessDenied` where the scopes do not open a tool."""
    if not permits(scopes, spec):
        raise AccessDenied(
            f"{spec.name} needs the scope {needed_scope(spec)}, or {TOOL_PREFIX}{spec.name}.",
            remedy="Ask whoever runs this server for a token that has it.",
        )


def require_method(scopes: Collection[str], method: str) -> None:
    """Raise `AccessDenied` where the scopes do not open a request. Those for tools are decided tool by tool."""
    if method != CALL_TOOL and method not in OPEN_METHODS and "read" not in scopes:
        raise AccessDenied(
            f"{method[:80]} needs the scope read.", remedy="Ask whoever runs this server for a token that has it."
        )
