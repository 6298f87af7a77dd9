"""The models of the embedding tools, under the import path that the published documents use."""

from __future__ import annotations

from ..surfaces.mcp.families.embedding import *  # noqa: F403
from ..surfaces.mcp.families.embedding import __all__ as __all__
