"""The functions of the embedding tools.

Answers and errors follow the published contract: an error is an answer with a code, never an exception.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Annotated

from pydantic import Field

from ....embedding.service import EmbeddingService, embed_many, embed_one
from ....errors import CortexError
from .models import (
    BatchEmbeddingResponse,
    CacheMetrics,
    EmbeddingResponse,
    HealthStatusResponse,
    ModelInfoResponse,
    ToolErrorResponse,
)

__all__ = ["CortexPyMCPTools"]

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
