"""The embedding tools: vectors, the model, and how the service does.

Answers and errors follow the published contract: an error is an answer too, with a code, never an exception.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Annotated

from pydantic import Field

from ...embedding.service import EmbeddingService
from ...embedding.waiting import embed_many, embed_one
from ...errors import CortexError
from ..embedding_shapes import batch_response, embedding_response, error_response, health_response, info_response
from ..models import (
    BatchEmbeddingResponse,
    EmbeddingResponse,
    HealthStatusResponse,
    ModelInfoResponse,
    ToolErrorResponse,
)

__all__ = ["CortexPyMCPTools"]

Normalize = Annotated[bool, Field(description="Give vectors of length 1")]


class CortexPyMCPTools:
    """The tools over one embedding service. `caller` names who asks, for the rate limit."""

    def __init__(self, service: EmbeddingService, caller: Callable[[], str] = lambda: "mcp") -> None:
        self._service = service
        self._caller = caller

    async def embedding_generate(self, text: str, normalize: Normalize = True) -> EmbeddingResponse | ToolErrorResponse:
        try:
            return embedding_response(await embed_one(self._service, text, normalize, self._caller()))
        except CortexError as error:
            return error_response(error)

    async def embedding_batch(
        self, texts: list[str], normalize: Normalize = True
    ) -> BatchEmbeddingResponse | ToolErrorResponse:
        try:
            return batch_response(await embed_many(self._service, texts, normalize, self._caller()))
        except CortexError as error:
            return error_response(error)

    async def model_info(self) -> ModelInfoResponse:
        return info_response(self._service.info())

    async def health_status(self) -> HealthStatusResponse:
        return health_response(self._service.health())
