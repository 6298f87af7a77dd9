"""The services under the names that the published documents use."""

from __future__ import annotations

from .core.embedding.service import EmbeddingService

__all__ = ["EmbeddingService"]
