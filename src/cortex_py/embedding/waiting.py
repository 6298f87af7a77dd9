"""The embedding service for servers: waits without holding a thread, and cancels what nobody wants any more."""

from __future__ import annotations

import asyncio
from collections.abc import Callable

from .service import Asked, Embedding, Embeddings, EmbeddingService

__all__ = ["embed_many", "embed_one"]

# Above this many characters, checking and hashing the texts would hold up the loop. What every text counts beside
# its characters also keeps requests that would wait for room in the queue away from it.
_SMALL = 16_384
_EACH = 64


async def embed_one(service: EmbeddingService, text: object, normalize: bool, caller: str) -> Embedding:
    """The vector of one text."""
    found = await _settled(lambda: service.begin(text, normalize=normalize, caller=caller), _size([text]), service)
    return Embedding(found.vectors[0], found.metadata)


async def embed_many(service: EmbeddingService, texts: object, normalize: bool, caller: str) -> Embeddings:
    """The vectors of many texts."""
    size = _size(texts) if isinstance(texts, list | tuple) else 0
    return await _settled(lambda: service.begin_batch(texts, normalize=normalize, caller=caller), size, service)


def _size(texts: list[object] | tuple[object, ...]) -> int:
    return sum(_EACH + len(text) for text in texts if isinstance(text, str))


async def _settled(begin: Callable[[], Asked], size: int, service: EmbeddingService) -> Embeddings:
    small = size <= _SMALL and service.backend.loaded and not service.crowded
    asked = begin() if small else await _begun(begin)
    raw = None
    if asked.job is not None:
        try:
            raw = await asyncio.wrap_future(asked.job.result)
        except asyncio.CancelledError:
            asked.cancel()
            raise
    return service.finish(asked, raw) if small else await asyncio.to_thread(service.finish, asked, raw)


async def _begun(begin: Callable[[], Asked]) -> Asked:
    """Begin in a thread. It cannot be stopped there; if nobody waits any more, what it began is dropped at its end."""
    beginning = asyncio.ensure_future(asyncio.to_thread(begin))
    try:
        return await asyncio.shield(beginning)
    except asyncio.CancelledError:
        beginning.add_done_callback(_drop)
        raise


def _drop(beginning: asyncio.Future[Asked]) -> None:
    if not beginning.cancelled() and beginning.exception() is None:
        beginning.result().cancel()
