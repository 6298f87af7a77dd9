"""The tools, one module per part of a family."""

from __future__ import annotations

from .embedding import CortexPyMCPTools

__all__ = ["CortexPyMCPTools"]
