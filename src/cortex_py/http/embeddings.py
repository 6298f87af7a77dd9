"""The embedding service over plain HTTP: its own form, OpenAI's form, its numbers and its description."""

from __future__ import annotations

import asyncio
import hashlib
from collections.abc import Callable
from functools import cache
from typing import TypeVar

from pydantic import BaseModel
from pydantic_core import to_json
from starlette.routing import Route

from ..embedding.service import EmbeddingService
from ..embedding.waiting import embed_many, embed_one
from ..mcp.embedding_shapes import batch_response, embedding_response
from ..mcp.models import EmbeddingBatchInput, EmbeddingGenerateInput
from .metrics import METRICS_TYPE, HttpMetrics
from .openai_form import embed_input, openai_embeddings, openai_models, read_openai_request
from .openapi import openapi
from .pages import Answer, Page, read_body

__all__ = ["embedding_routes"]

# Above these, reading a body or writing an answer would hold up the loop.
_SMALL_BODY = 65_536
_FEW_VECTORS = 32

_T = TypeVar("_T")


def embedding_routes(
    service: EmbeddingService,
    *,
    token: str | None = None,
    known_callers: bool = False,
    metrics: HttpMetrics | None = None,
) -> list[Route]:
    """The pages of a service. Where the server asks for a token, that token is also who the caller is.

    `known_callers`: a guard before them tells who calls.
    `metrics` are those to count in and to show, if other pages of the server are counted too.
    """
    counts = metrics or HttpMetrics(service)
    pages = _Pages(service, counts, needs_token=known_callers or token is not None, known_callers=known_callers)
    caller = None if token is None else f"token:{hashlib.sha256(token.encode()).hexdigest()[:16]}"
    posted = {"/embed": pages.embed, "/embeddings": pages.embeddings, "/v1/embeddings": pages.v1_embeddings}
    asked = {
        "/models": pages.models,
        "/v1/models": pages.models,
        "/metrics": pages.metrics,
        "/openapi.json": pages.openapi,
    }
    routes = [Route(path, Page(path, "POST", work, caller)) for path, work in posted.items()]
    routes += [Route(path, Page(path, "GET", work, caller)) for path, work in asked.items()]
    return [counts.counted(route) for route in routes]


class _Pages:
    """What each page does."""

    def __init__(
        self, service: EmbeddingService, metrics: HttpMetrics, *, needs_token: bool, known_callers: bool
    ) -> None:
        self._service = service
        self._metrics = metrics
        # Made when first asked for, then kept: what it says stays true.
        self._description = cache(
            lambda: to_json(openapi(service, needs_token=needs_token, known_callers=known_callers))
        )

    async def embed(self, body: bytes, caller: str) -> Answer:
        asked = await _aside(lambda: read_body(EmbeddingGenerateInput, body), len(body) > _SMALL_BODY)
        return _json(embedding_response(await embed_one(self._service, asked.text, asked.normalize, caller)))

    async def embeddings(self, body: bytes, caller: str) -> Answer:
        asked = await _aside(lambda: read_body(EmbeddingBatchInput, body), len(body) > _SMALL_BODY)
        found = await embed_many(self._service, asked.texts, asked.normalize, caller)
        return await _aside(lambda: _json(batch_response(found)), len(found.vectors) > _FEW_VECTORS)

    async def v1_embeddings(self, body: bytes, caller: str) -> Answer:
        backend = self._service.backend
        asked = await _aside(lambda: read_openai_request(body, backend), len(body) > _SMALL_BODY)
        found = await embed_input(self._service, asked, caller)
        return await _aside(
            lambda: _json(openai_embeddings(found, asked.encoding_format)), len(found.vectors) > _FEW_VECTORS
        )

    async def models(self, _body: bytes, _caller: str) -> Answer:
        # In a thread: some backends look into the model's folder for what they tell.
        return await asyncio.to_thread(lambda: _json(openai_models(self._service.backend)))

    async def metrics(self, _body: bytes, _caller: str) -> Answer:
        return Answer(await asyncio.to_thread(self._metrics.text), kind=METRICS_TYPE.encode())

    async def openapi(self, _body: bytes, _caller: str) -> Answer:
        return Answer(await asyncio.to_thread(self._description))


async def _aside(work: Callable[[], _T], large: bool) -> _T:
    """Do the work: in a thread if it is large, else at once."""
    return await asyncio.to_thread(work) if large else work()


def _json(model: BaseModel) -> Answer:
    # The same bytes as of the model's payload, without making it first.
    return Answer(to_json(model, exclude_none=True))
