"""From the embedding service's values to the answers of its tools and of its HTTP interface."""

from __future__ import annotations

from typing import Any

from ..clock import iso
from ..embedding.service import Embedding, Embeddings, Health, Metadata, Metrics, ModelInfo
from ..errors import ContentBlocked, CortexError, RateLimited, wire_form
from . import models

__all__ = ["batch_response", "embedding_response", "error_response", "health_response", "info_response"]


def embedding_response(found: Embedding) -> models.EmbeddingResponse:
    return models.EmbeddingResponse(
        embedding=found.vector.tolist(),
        metadata=models.EmbeddingMetadata(**_metadata(found.metadata)),
    )


def batch_response(found: Embeddings) -> models.BatchEmbeddingResponse:
    return models.BatchEmbeddingResponse(
        embeddings=found.vectors.tolist(),
        metadata=models.BatchMetadata(
            **_metadata(found.metadata), count=found.metadata.count, cached_hits=found.metadata.cached_hits
        ),
    )


def info_response(info: ModelInfo) -> models.ModelInfoResponse:
    more = {"max_tokens": info.max_tokens} | ({"fingerprint": info.fingerprint} if info.fingerprint else {})
    return models.ModelInfoResponse(
        model_name=info.model_name,
        dimensions=info.dimensions,
        backend=info.backend,
        model_loaded=info.model_loaded,
        extras={**info.extras, **more},
    )


def health_response(health: Health) -> models.HealthStatusResponse:
    return models.HealthStatusResponse(
        status=health.status,
        platform=health.platform,
        backends_available=dict(health.backends_available),
        rate_limit=health.rate_limit,
        cache_size=health.cache_size,
        metrics=_metrics(health.metrics),
        problem=health.problem,
    )


def error_response(error: CortexError) -> models.ToolErrorResponse:
    """An error with its code; `details` names the field and what else a caller can use."""
    details: dict[str, Any] = {"error": type(error).__name__, "field": error.field, "remedy": error.remedy}
    if isinstance(error, RateLimited):
        details["retry_after"] = round(error.retry_after, 3)
    if isinstance(error, ContentBlocked):
        details["kinds"] = list(error.kinds)
    return models.ToolErrorResponse(
        code=wire_form(error).embedding,  # type: ignore[arg-type]  # checked by the model
        message=str(error),
        details={name: value for name, value in details.items() if value is not None},
    )


def _metadata(metadata: Metadata) -> dict[str, Any]:
    return {
        "model_name": metadata.model_name,
        "dimensions": metadata.dimensions,
        "backend": metadata.backend,
        "cached": metadata.cached,
        "source": metadata.source,
        "generated_at": iso(metadata.generated_at),
        "cache_metrics": _metrics(metadata.cache_metrics),
        "tokens": metadata.tokens,
        "truncated": metadata.truncated,
    }


def _metrics(metrics: Metrics) -> models.CacheMetrics:
    return models.CacheMetrics(
        cache_hits=metrics.cache_hits, cache_misses=metrics.cache_misses, rate_limited=metrics.rate_limited
    )
