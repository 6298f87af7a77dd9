"""The embedding tools, under the import path that the published documents use."""

from __future__ import annotations

from .families.embedding import CortexPyMCPTools

__all__ = ["CortexPyMCPTools"]
