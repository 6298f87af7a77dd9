"""The models of the embedding tools, under the import path that the published documents use."""

from __future__ import annotations

from .families.embedding import *  # noqa: F403
from .families.embedding import __all__ as __all__
