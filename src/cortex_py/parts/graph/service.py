"""`cortex.graph`: the entities and relationships of memories, and traversal of them.

A caller sees the graphs of the same spaces as their memories: of the project, the person and the organisation. An edge
never crosses spaces.
"""

from __future__ import annotations

from .entities import EntityOperations
from .relationships import RelationshipOperations
from .traversal import TraversalOperations

__all__ = ["Graph"]


class Graph(EntityOperations, RelationshipOperations, TraversalOperations):
    """All operations on the graph."""
