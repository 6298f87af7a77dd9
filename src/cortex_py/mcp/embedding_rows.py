"""The rows of the embedding tools."""

from __future__ import annotations

from .tool_spec import ToolSpec

__all__ = ["EMBEDDING_TOOLS"]

EMBEDDING_TOOLS: tuple[ToolSpec, ...] = (
    ToolSpec(
        "embedding.generate",
        "embedding",
        "embedding_generate",
        "Embed a text",
        "Compute the embedding vector of one text.",
        ("embedding",),
        read_only=True,
        idempotent=True,
        errors="embedding",
    ),
    ToolSpec(
        "embedding.batch",
        "embedding",
        "embedding_batch",
        "Embed many texts",
        "Compute embedding vectors of many texts, in order; known ones come from the cache.",
        ("embedding",),
        read_only=True,
        idempotent=True,
        errors="embedding",
    ),
    ToolSpec(
        "model.info",
        "embedding",
        "model_info",
        "Embedding model",
        "Tell which embedding model is active; loads nothing.",
        ("embedding",),
        read_only=True,
        idempotent=True,
        errors="embedding",
    ),
    ToolSpec(
        "health.status",
        "embedding",
        "health_status",
        "Embedding health",
        "Report the embedding service's health, cache use and rate limit.",
        ("embedding",),
        read_only=True,
        idempotent=True,
        errors="embedding",
    ),
)
