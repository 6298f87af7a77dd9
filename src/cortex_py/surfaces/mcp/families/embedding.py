"""The embedding tools: vectors, the model, and the state of the service.

Answers and errors follow the published contract: an error is an answer with a code, never an exception.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING, Annotated, Any, Literal, Self

from pydantic import BaseModel, ConfigDict, Field

from ....core.embedding.service import EmbeddingService, embed_many, embed_one
from ....core.errors import CortexError
from ..error_forms import embedding_error
from .answer import Answer

if TYPE_CHECKING:
    from ....core.embedding.service import Embedding, Embeddings, Metadata

__all__ = [
    "CONTRACTS", "BatchEmbeddingResponse", "BatchMetadata", "CacheMetrics", "CortexPyMCPTools", "EmbeddingBatchInput",
    "EmbeddingGenerateInput", "EmbeddingMetadata", "EmbeddingResponse", "ErrorCode", "HealthStatusInput",
    "HealthStatusResponse", "ModelInfoInput", "ModelInfoResponse", "ToolErrorResponse",
]  # fmt: skip


ErrorCode = Literal["VALIDATION_ERROR", "TEXT_TOO_LONG", "SECURITY_VIOLATION", "RATE_LIMITED", "INTERNAL_ERROR"]


class _Model(Answer):
    # Field names such as model_name are the contract's.
    model_config = ConfigDict(protected_namespaces=())

    def __getitem__(self, name: str) -> Any:
        """Fields by name too: callers treat answers as objects or as mappings."""
        if name not in type(self).model_fields:
            raise KeyError(name)
        return getattr(self, name)


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


class _Metadata(_Model):
    @classmethod
    def from_metadata(cls, metadata: Metadata) -> Self:
        return cls.from_record(metadata, cache_metrics=CacheMetrics.from_record(metadata.cache_metrics))


class EmbeddingMetadata(_Metadata):
    model_name: str
    dimensions: int
    backend: str | None
    cached: bool
    source: Literal["generator", "cache"]
    generated_at: str
    cache_metrics: CacheMetrics
    tokens: int = Field(description="Tokens in the text")
    truncated: bool = Field(description="Whether the model read only its beginning")


class BatchMetadata(_Metadata):
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

    @classmethod
    def from_embedding(cls, found: Embedding) -> Self:
        # Not validated: the service's own values need no check, and checking every number costs time.
        return cls.model_construct(
            embedding=found.vector.tolist(), metadata=EmbeddingMetadata.from_metadata(found.metadata)
        )


class BatchEmbeddingResponse(_Model):
    embeddings: list[list[float]]
    metadata: BatchMetadata

    @classmethod
    def from_embeddings(cls, found: Embeddings) -> Self:
        return cls.model_construct(
            embeddings=found.vectors.tolist(), metadata=BatchMetadata.from_metadata(found.metadata)
        )


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

    @classmethod
    def from_error(cls, error: CortexError) -> Self:
        """An error with its code; `details` names the field and what else a caller can use."""
        return cls(**embedding_error(error))


# What each tool takes and answers.
CONTRACTS: dict[str, tuple[type[BaseModel], type[BaseModel]]] = {
    "embedding.generate": (EmbeddingGenerateInput, EmbeddingResponse),
    "embedding.batch": (EmbeddingBatchInput, BatchEmbeddingResponse),
    "model.info": (ModelInfoInput, ModelInfoResponse),
    "health.status": (HealthStatusInput, HealthStatusResponse),
}


Normalize = Annotated[bool, Field(description="To length 1")]


class CortexPyMCPTools:
    """The tools over one embedding service. `caller` names the caller for the rate limit."""

    def __init__(self, service: EmbeddingService, caller: Callable[[], str] = lambda: "mcp") -> None:
        self._service = service
        self._caller = caller

    async def embedding_generate(self, text: str, normalize: Normalize = True) -> EmbeddingResponse | ToolErrorResponse:
        try:
            found = await embed_one(self._service, text, normalize, self._caller())
        except CortexError as error:
            return ToolErrorResponse.from_error(error)
        return EmbeddingResponse.from_embedding(found)

    async def embedding_batch(
        self, texts: list[str], normalize: Normalize = True
    ) -> BatchEmbeddingResponse | ToolErrorResponse:
        try:
            found = await embed_many(self._service, texts, normalize, self._caller())
        except CortexError as error:
            return ToolErrorResponse.from_error(error)
        return BatchEmbeddingResponse.from_embeddings(found)

    async def model_info(self) -> ModelInfoResponse:
        info = self._service.info()
        more = {"max_tokens": info.max_tokens} | ({"fingerprint": info.fingerprint} if info.fingerprint else {})
        return ModelInfoResponse.from_record(info, extras={**info.extras, **more})

    async def health_status(self) -> HealthStatusResponse:
        health = self._service.health()
        return HealthStatusResponse.from_record(health, metrics=CacheMetrics.from_record(health.metrics))
