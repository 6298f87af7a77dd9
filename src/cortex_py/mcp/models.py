"""What the embedding tools take and answer, field by field as the published contract shows it."""

from __future__ import annotations

from typing import Any, Literal

from pydantic import BaseModel, ConfigDict, Field

__all__ = [
    "CONTRACTS",
    "BatchEmbeddingResponse",
    "BatchMetadata",
    "CacheMetrics",
    "EmbeddingBatchInput",
    "EmbeddingGenerateInput",
    "EmbeddingMetadata",
    "EmbeddingResponse",
    "HealthStatusInput",
    "HealthStatusResponse",
    "ModelInfoInput",
    "ModelInfoResponse",
    "ToolErrorResponse",
]

ErrorCode = Literal["VALIDATION_ERROR", "TEXT_TOO_LONG", "SECURITY_VIOLATION", "RATE_LIMITED", "INTERNAL_ERROR"]


class _Model(BaseModel):
    # Field names such as model_name are the contract's.
    model_config = ConfigDict(extra="forbid", protected_namespaces=())

    def __getitem__(self, name: str) -> Any:
        """Fields by name too: callers treat answers as objects or as mappings."""
        if name not in type(self).model_fields:
            raise KeyError(name)
        return getattr(self, name)

    def payload(self) -> dict[str, Any]:
        """What goes over the wire; fields without a value are left out."""
        return self.model_dump(mode="json", exclude_none=True)


class EmbeddingGenerateInput(_Model):
    text: str
    normalize: bool = True


class EmbeddingBatchInput(_Model):
    texts: list[str]
    normalize: bool = True


class ModelInfoInput(_Model):
    pass


class HealthStatusInput(_Model):
    pass


class CacheMetrics(_Model):
    cache_hits: int
    cache_misses: int
    rate_limited: int


class EmbeddingMetadata(_Model):
    model_name: str
    dimensions: int
    backend: str | None
    cached: bool
    source: Literal["generator", "cache"]
    generated_at: str
    cache_metrics: CacheMetrics
    tokens: int = Field(description="Tokens in the text")
    truncated: bool = Field(description="Whether the model read only its beginning")


class BatchMetadata(_Model):
    model_name: str
    dimensions: int
    backend: str | None
    cached: bool
    source: Literal["generator", "cache", "mixed"]
    generated_at: str
    cache_metrics: CacheMetrics
    count: int
    cached_hits: int
    tokens: int
    truncated: bool


class EmbeddingResponse(_Model):
    embedding: list[float]
    metadata: EmbeddingMetadata


class BatchEmbeddingResponse(_Model):
    embeddings: list[list[float]]
    metadata: BatchMetadata


class ModelInfoResponse(_Model):
    model_name: str
    dimensions: int
    backend: str | None
    model_loaded: bool
    extras: dict[str, bool | int | str]


class HealthStatusResponse(_Model):
    status: Literal["healthy", "unhealthy"]
    platform: str
    backends_available: dict[str, bool]
    rate_limit: int
    cache_size: int
    metrics: CacheMetrics
    problem: str | None = None


class ToolErrorResponse(_Model):
    code: ErrorCode
    message: str
    details: dict[str, Any] | None = None


# Tool → what it takes, what it answers.
CONTRACTS: dict[str, tuple[type[BaseModel], type[BaseModel]]] = {
    "embedding.generate": (EmbeddingGenerateInput, EmbeddingResponse),
    "embedding.batch": (EmbeddingBatchInput, BatchEmbeddingResponse),
    "model.info": (ModelInfoInput, ModelInfoResponse),
    "health.status": (HealthStatusInput, HealthStatusResponse),
}
