"""MCP Apps: views that a client shows inside a conversation. Clients that do not announce the extension see nothing.

Standard library only, and the same code for the instant front and the server, so that both list the same.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

__all__ = [
    "EXTENSION",
    "MIME_TYPE",
    "REVIEW_ACTIONS",
    "REVIEW_TOOL",
    "VIEWS",
    "AppView",
    "announces_apps",
    "with_views",
]

EXTENSION = "io.modelcontextprotocol/ui"
MIME_TYPE = "text/html;profile=mcp-app"
REVIEW_TOOL = "cortex_review"
REVIEW_ACTIONS = ("list", "accept", "drop", "stage", "restore")


@dataclass(frozen=True, slots=True)
class AppView:
    """A view, and the tool whose results it shows."""

    name: str
    title: str
    description: str
    tool: str

    @property
    def uri(self) -> str:
        return f"ui://cortex/{self.name}"


VIEWS = (
    AppView("search", "Memories", "What a search found; each memory opens in place", "subcog_recall"),
    AppView("memory", "Memory", "One memory with its history", "subcog_get"),
    AppView("review", "Review", "Memories that wait until a person accepts or drops them", "subcog_status"),
)
_BY_TOOL = {view.tool: view for view in VIEWS}

# People decide, so the view may call it and the model may not.
_REVIEW: dict[str, Any] = {
    "name": REVIEW_TOOL,
    "title": "Review",
    "description": "List memories that wait for a review, and decide about one. For the view, not for the model.",
    "inputSchema": {
        "type": "object",
        "properties": {"action": {"type": "string", "enum": list(REVIEW_ACTIONS)}, "id": {"type": "string"}},
        "required": ["action"],
        "additionalProperties": False,
    },
    "annotations": {"readOnlyHint": False, "destructiveHint": False, "idempotentHint": False, "openWorldHint": False},
    "_meta": {"ui": {"visibility": ["app"]}},
}


def announces_apps(capabilities: object) -> bool:
    """Whether the capabilities of a client, as it sent them, include views of our kind."""
    extensions = capabilities.get("extensions") if isinstance(capabilities, Mapping) else None
    settings = extensions.get(EXTENSION) if isinstance(extensions, Mapping) else None
    kinds = settings.get("mimeTypes") if isinstance(settings, Mapping) else None
    return isinstance(kinds, list) and MIME_TYPE in kinds


def with_views(method: str, result: dict[str, Any]) -> dict[str, Any]:
    """A list of tools or resources, for a client that shows views."""
    if method == "tools/list":
        tools = [_bound(tool) for tool in result["tools"]]
        decides = any(tool["name"] == VIEWS[-1].tool for tool in tools)
        return {**result, "tools": [*tools, _REVIEW] if decides else tools}
    if method == "resources/list":
        views = [
            {
                "uri": view.uri,
                "name": f"view-{view.name}",
                "title": view.title,
                "description": view.description,
                "mimeType": MIME_TYPE,
            }
            for view in VIEWS
        ]
        return {**result, "resources": [*result["resources"], *views]}
    return result


def _bound(tool: dict[str, Any]) -> dict[str, Any]:
    view = _BY_TOOL.get(tool["name"])
    return tool if view is None else {**tool, "_meta": {**tool.get("_meta", {}), "ui": {"resourceUri": view.uri}}}
