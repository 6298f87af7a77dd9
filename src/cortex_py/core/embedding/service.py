"""`EmbeddingService`: texts to vectors for outside callers, with guards, cache, rate limit and metrics.

The order is fixed: texts are checked, cached vectors are looked up, and only missing vectors count against the rate
limit and go to the model.
"""

from __future__ import annotations

import asyncio
import os
import platform
import threading
from collections.abc import Callable, Mapping, Sequence
from concurrent.futures import CancelledError
from dataclasses import dataclass
from datetime import datetime
from typing import TYPE_CHECKING, Any, Literal

from ..clock import Clock, SystemClock
from ..config import Profile
from ..errors import CortexError, EmbeddingError, InvalidInput
from .backends.backend import Backend
from .backends.registry import available_backends, open_backend
from .backends.token_batches import normalize_rows
from .batching import Batcher, Job
from .cache import VectorCache, cache_key
from .generators import as_backend
from .guards import Guard, SlidingWindow

if TYPE_CHECKING:
    import numpy as np
    from numpy.typing import NDArray

__all__ = [
    "Embedding",
    "EmbeddingService",
    "Embeddings",
    "Metadata",
    "Metrics",
    "ModelInfo",
    "PendingEmbeddings",
    "ServiceHealth",
    "Source",
    "embed_many",
    "embed_one",
]

Source = Literal["cache", "generator", "mixed"]

MAX_TEXT_LENGTH = 8_192
MAX_TEXTS = 2_048
RATE_LIMIT = 120
_MEMORY_BYTES = 16_000_000


@dataclass(frozen=True, slots=True)
class Metrics:
    """Counts since the service was opened: cached texts, those that were computed, and refused requests."""

    cache_hits: int = 0
    cache_misses: int = 0
    rate_limited: int = 0

    def plus(self, hits: int = 0, misses: int = 0, refused: int = 0) -> Metrics:
        return Metrics(self.cache_hits + hits, self.cache_misses + misses, self.rate_limited + refused)


@dataclass(frozen=True, slots=True)
class Metadata:
    """Where vectors came from. `truncated` means that the model did not read a text to its end."""

    model_name: str
    dimensions: int
    backend: str | None
    cached: bool
    source: Source
    generated_at: datetime
    cache_metrics: Metrics
    count: int
    cached_hits: int
    tokens: int
    truncated: bool


@dataclass(frozen=True, slots=True)
class Embedding:
    vector: NDArray[np.float32]
    metadata: Metadata


@dataclass(frozen=True, slots=True)
class Embeddings:
    """One row per text, in the order given."""

    vectors: NDArray[np.float32]
    metadata: Metadata


@dataclass(frozen=True, slots=True)
class ModelInfo:
    model_name: str
    dimensions: int
    backend: str
    model_loaded: bool
    max_tokens: int
    fingerprint: str | None
    extras: Mapping[str, bool]


@dataclass(frozen=True, slots=True)
class ServiceHealth:
    status: Literal["healthy", "unhealthy"]
    platform: str
    backends_available: Mapping[str, bool]
    rate_limit: int
    cache_size: int
    metrics: Metrics
    problem: str | None = None


@dataclass(frozen=True, slots=True)
class PendingEmbeddings:
    """A running request: the cached vectors, and the job that computes the rest. Wait for it or cancel it."""

    service: EmbeddingService
    texts: Sequence[str]
    keys: Sequence[bytes]
    found: Mapping[bytes, NDArray[np.float32]]
    fresh: Sequence[bytes]
    normalize: bool
    job: Job | None

    def wait(self) -> Embeddings:
        raw = None
        if self.job is not None:
            try:
                raw = self.job.result.result()
            except CancelledError as error:
                raise EmbeddingError("The request was cancelled.", remedy="Ask again.") from error
        return self.service.finish(self, raw)

    def cancel(self) -> None:
        """Drop the texts that the model has not begun."""
        if self.job is not None:
            self.job.cancel()


class EmbeddingService:
    """Safe to share between threads. Close it, or use it as a context manager."""

    def __init__(
        self,
        generator: Any = None,
        *,
        backend: Backend | str | None = None,
        cache: VectorCache | None = None,
        rate_limit: int = RATE_LIMIT,
        profile: Profile = "code",
        max_text_length: int = MAX_TEXT_LENGTH,
        max_texts: int = MAX_TEXTS,
        clock: Clock | None = None,
        limiter: SlidingWindow | None = None,
        tenant: Callable[[], str] = lambda: "",
    ) -> None:
        """Use a generator of your own, a backend or its name, or else the configured backend.

        `tenant` names the tenant of the current call; each tenant has its own cached vectors.
        """
        self._tenant = tenant
        chosen = generator if generator is not None else backend
        self.backend = open_backend(chosen) if chosen is None or isinstance(chosen, str) else as_backend(chosen)
        self._cache = cache if cache is not None else VectorCache(_MEMORY_BYTES)
        self._limiter = limiter or SlidingWindow(rate_limit)
        self.guard = Guard(max_text_length, max_texts, profile)
        self._clock = clock or SystemClock()
        self._batcher = Batcher(self.backend)
        # What one tenant does must not show in the counts of another; the empty name is for callers without one.
        self._metrics: dict[str, Metrics] = {}
        self._all_metrics = Metrics()
        self._lock = threading.Lock()
        self._process: int | None = None

    def generate(self, text: str, *, normalize: bool = True, caller: str = "local") -> Embedding:
        """The vector of one text."""
        found = self.begin(text, normalize=normalize, caller=caller).wait()
        return Embedding(found.vectors[0], found.metadata)

    def batch(self, texts: Sequence[str], *, normalize: bool = True, caller: str = "local") -> Embeddings:
        """The vectors of many texts. Equal texts are computed once."""
        return self.begin_batch(texts, normalize=normalize, caller=caller).wait()

    def begin(self, text: object, *, normalize: bool = True, caller: str = "local") -> PendingEmbeddings:
        """Check a text and ask for its vector, without waiting for it."""
        _check_normalize(normalize)
        return self._begin([self.guard.check(text)], normalize, caller)

    def begin_batch(self, texts: object, *, normalize: bool = True, caller: str = "local") -> PendingEmbeddings:
        """Check many texts and ask for their vectors, without waiting for them."""
        _check_normalize(normalize)
        return self._begin(self.guard.check_many(texts), normalize, caller)

    def info(self) -> ModelInfo:
        """What is known about the model; loads nothing."""
        available = available_backends(self.backend.name)
        try:
            fingerprint = self.backend.fingerprint
        except EmbeddingError:
            fingerprint = None
        return ModelInfo(
            model_name=self.backend.model_name,
            dimensions=self.backend.dimensions,
            backend=self.backend.name,
            model_loaded=self.backend.loaded,
            max_tokens=self.backend.max_tokens,
            fingerprint=fingerprint,
            extras={f"{name}_available": there for name, there in available.items()},
        )

    def health(self) -> ServiceHealth:
        """What is true now; loads nothing."""
        problem = None
        try:
            _ = self.backend.fingerprint
        except EmbeddingError as error:
            problem = str(error)
        return ServiceHealth(
            status="healthy" if problem is None else "unhealthy",
            platform=platform.system(),
            backends_available=available_backends(self.backend.name),
            rate_limit=self._limiter.limit,
            # Of the cache that tenants share, each sees what they put there.
            cache_size=self.metrics.cache_misses if self._tenant() else self.cache_size,
            metrics=self.metrics,
            problem=problem,
        )

    @property
    def metrics(self) -> Metrics:
        """The counts of the tenant of the current call."""
        with self._lock:
            return self._metrics.get(self._tenant(), Metrics())

    @property
    def all_metrics(self) -> Metrics:
        """The counts of all tenants together, for the operator."""
        with self._lock:
            return self._all_metrics

    @property
    def cache_size(self) -> int:
        """The number of cached vectors, of all tenants."""
        return self._cache.count()

    @property
    def crowded(self) -> bool:
        """Whether a new request may have to wait for the queue."""
        return self._batcher.crowded

    def close(self) -> None:
        if self._process in (None, os.getpid()):
            self._batcher.close()
            self._cache.close()

    def __enter__(self) -> EmbeddingService:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    def _begin(self, texts: Sequence[str], normalize: bool, caller: str) -> PendingEmbeddings:
        self._check_process()
        # A cache hit must not reveal that another tenant embedded the same text.
        fingerprint = f"{self.backend.fingerprint}{self._tenant()}"
        keys = [cache_key(fingerprint, normalize, text) for text in texts]
        found = self._cache.get_many(list(dict.fromkeys(keys)))
        fresh = {key: text for key, text in zip(keys, texts, strict=True) if key not in found}
        job = None
        if fresh:
            self._count_against_limit(caller)
            job = self._batcher.submit(list(fresh.values()))
        return PendingEmbeddings(self, texts, keys, found, list(fresh), normalize, job)

    def finish(self, asked: PendingEmbeddings, raw: NDArray[np.float32] | None) -> Embeddings:
        """Combine cached vectors with the model's output `raw`, and cache the latter."""
        import numpy as np

        found = asked.found
        if raw is not None:
            if asked.normalize:
                raw = normalize_rows(raw)
            made = {key: vector.copy() for key, vector in zip(asked.fresh, raw, strict=True)}
            self._cache.put_many(made)
            found = {**found, **made}
        hits = sum(key in asked.found for key in asked.keys)
        metrics = self._count(hits, len(asked.fresh))
        tokens = [self.backend.count_tokens(text) for text in asked.texts]
        vectors = np.stack([found[key] for key in asked.keys])
        source: Source = "generator" if not hits else "mixed" if asked.fresh else "cache"
        return Embeddings(
            vectors,
            Metadata(
                model_name=self.backend.model_name,
                dimensions=vectors.shape[1],
                backend=self.backend.name,
                cached=not asked.fresh,
                source=source,
                generated_at=self._clock.now(),
                cache_metrics=metrics,
                count=len(asked.texts),
                cached_hits=hits,
                tokens=sum(tokens),
                truncated=any(count > self.backend.max_tokens for count in tokens),
            ),
        )

    def _check_process(self) -> None:
        """Refuse use after a fork: threads, locks and the cache file belong to the process that first used them."""
        process = os.getpid()
        self._process = self._process or process
        if self._process != process:
            raise EmbeddingError(
                "This embedding service was used before the process was forked.",
                remedy="Open one after the fork.",
            )

    def _count_against_limit(self, caller: str) -> None:
        try:
            self._limiter.take(caller)
        except CortexError:
            self._count(refused=1)
            raise

    def _count(self, hits: int = 0, misses: int = 0, refused: int = 0) -> Metrics:
        tenant = self._tenant()
        with self._lock:
            self._all_metrics = self._all_metrics.plus(hits, misses, refused)
            counted = self._metrics[tenant] = self._metrics.get(tenant, Metrics()).plus(hits, misses, refused)
            return counted


def _check_normalize(normalize: object) -> None:
    if not isinstance(normalize, bool):
        raise InvalidInput("normalize is neither true nor false.", remedy="Give true or false.", field="normalize")


# -- For servers: wait without holding a thread, and cancel what nobody wants any more -------------


# Checking and hashing more characters than this would block the event loop. The charge for each text keeps requests
# with very many texts, which might wait for the queue, off the loop too.
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


async def _settled(begin: Callable[[], PendingEmbeddings], size: int, service: EmbeddingService) -> Embeddings:
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


async def _begun(begin: Callable[[], PendingEmbeddings]) -> PendingEmbeddings:
    """Begin in a thread. If the waiter is cancelled meanwhile, the request is cancelled once it has begun."""
    beginning = asyncio.ensure_future(asyncio.to_thread(begin))
    try:
        return await asyncio.shield(beginning)
    except asyncio.CancelledError:
        beginning.add_done_callback(_drop)
        raise


def _drop(beginning: asyncio.Future[PendingEmbeddings]) -> None:
    if not beginning.cancelled() and beginning.exception() is None:
        beginning.result().cancel()
