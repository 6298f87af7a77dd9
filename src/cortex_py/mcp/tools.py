"""The embedding tools, under the import path that the published documents use."""

from __future__ import annotations

from ..surfaces.mcp.families.embedding import CortexPyMCPTools

__all__ = ["CortexPyMCPTools"]
