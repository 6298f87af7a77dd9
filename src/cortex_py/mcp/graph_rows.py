"""The rows of the graph tools."""

from __future__ import annotations

from .tool_spec import ToolSpec

__all__ = ["GRAPH_TOOLS"]

GRAPH_TOOLS: tuple[ToolSpec, ...] = (
    ToolSpec(
        "subcog_graph",
        "graph",
        "graph",
        "Knowledge graph",
        "Walk the graph of what memories speak of: neighbors, a path between two, stats, or a drawing.",
        ("graph",),
        read_only=True,
        idempotent=True,
    ),
    ToolSpec(
        "subcog_entities",
        "graph",
        "entities",
        "Entities",
        "Create, get, list, delete, extract or merge entities: people, organizations, technologies, concepts, files.",
        ("graph",),
        destructive=True,
    ),
    ToolSpec(
        "subcog_relationships",
        "graph",
        "relationships",
        "Relationships",
        "Create, get, list, delete or infer relationships between entities.",
        ("graph",),
        destructive=True,
    ),
)
