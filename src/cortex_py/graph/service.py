"""`cortex.graph`: what memories speak of, how it hangs together, and ways through it.

A caller sees the graphs of the same spaces as their memories: the project's, their own, the organisation's. An edge
never leads from one space into another.
"""

from __future__ import annotations

from .entities import EntityOperations
from .expansion import ExpansionOperations
from .relationships import RelationshipOperations
from .walks import WalkOperations

__all__ = ["Graph"]


class Graph(EntityOperations, RelationshipOperations, WalkOperations, ExpansionOperations):
    """Everything that can be done with the graph."""
