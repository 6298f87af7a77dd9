"""`EmbeddingService`: texts to vectors for callers outside the engine, checked, cached, limited and counted.

The order is fixed: the texts are checked, known vectors are taken from the cache, only what is then missing
counts against the rate limit and goes to the model.
"""

from __future__ import annotations

import os
import platform
import threading
from collections.abc import Mapping, Sequence
from concurrent.futures import CancelledError
from dataclasses import dataclass, replace
from datetime import datetime
from typing import TYPE_CHECKING, Any, Literal

from ..clock import Clock, SystemClock
from ..config import Profile
from ..errors import CortexError, EmbeddingError, InvalidInput
from .backend import Backend
from .backends import available_backends, open_backend
from .batcher import Batcher, Job
from .cache import VectorCache, cache_key
from .generators import as_backend, of_length_one
from .guard import Guard
from .limits import SlidingWindow

if TYPE_CHECKING:
    import numpy as np
    from numpy.typing import NDArray

__all__ = [
    "Asked",
    "Embedding",
    "EmbeddingService",
    "Embeddings",
    "Health",
    "Metadata",
    "Metrics",
    "ModelInfo",
    "Source",
]

Source = Literal["cache", "generator", "mixed"]

MAX_TEXT_LENGTH = 8_192
MAX_TEXTS = 2_048
RATE_LIMIT = 120
_MEMORY_BYTES = 16_000_000


@dataclass(frozen=True, slots=True)
class Metrics:
    """Counted since the service was opened: texts that were and were not in the cache, requests refused."""

    cache_hits: int = 0
    cache_misses: int = 0
    rate_limited: int = 0


@dataclass(frozen=True, slots=True)
class Metadata:
    """Where vectors came from. `truncated` tells that the model did not read to the end of a text."""

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
class Health:
    status: Literal["healthy", "unhealthy"]
    platform: str
    backends_available: Mapping[str, bool]
    rate_limit: int
    cache_size: int
    metrics: Metrics
    problem: str | None = None


@dataclass(frozen=True, slots=True)
class Asked:
    """A request under way: what was known, and the job that makes the rest. Wait for it, or cancel it."""

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
        """Nobody wants the vectors any more: what the model has not begun it never will."""
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
    ) -> None:
        """Over a generator of your own, or a backend by itself or by name; without either, the default one."""
        chosen = generator if generator is not None else backend
        self.backend = open_backend(chosen) if chosen is None or isinstance(chosen, str) else as_backend(chosen)
        self._cache = cache if cache is not None else VectorCache(_MEMORY_BYTES)
        self._limiter = limiter or SlidingWindow(rate_limit)
        self.guard = Guard(max_text_length, max_texts, profile)
        self._clock = clock or SystemClock()
        self._batcher = Batcher(self.backend)
        self._metrics = Metrics()
        self._lock = threading.Lock()
        self._process: int | None = None

    def generate(self, text: str, *, normalize: bool = True, caller: str = "local") -> Embedding:
        """The vector of one text."""
        found = self.begin(text, normalize=normalize, caller=caller).wait()
        return Embedding(found.vectors[0], found.metadata)

    def batch(self, texts: Sequence[str], *, normalize: bool = True, caller: str = "local") -> Embeddings:
        """The vectors of many texts. Equal texts are computed once."""
        return self.begin_batch(texts, normalize=normalize, caller=caller).wait()

    def begin(self, text: object, *, normalize: bool = True, caller: str = "local") -> Asked:
        """Check a text and ask for its vector, without waiting for it."""
        _check_normalize(normalize)
        return self._begin([self.guard.check(text)], normalize, caller)

    def begin_batch(self, texts: object, *, normalize: bool = True, caller: str = "local") -> Asked:
        """Check many texts and ask for their vectors, without waiting for them."""
        _check_normalize(normalize)
        return self._begin(self.guard.check_many(texts), normalize, caller)

    def info(self) -> ModelInfo:
        """What is known about the model; loads nothing."""
        available = available_backends()
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

    def health(self) -> Health:
        """What is true now; loads nothing."""
        problem = None
        try:
            _ = self.backend.fingerprint
        except EmbeddingError as error:
            problem = str(error)
        return Health(
            status="healthy" if problem is None else "unhealthy",
            platform=platform.system(),
            backends_available=available_backends(),
            rate_limit=self._limiter.limit,
            cache_size=self._cache.count(),
            metrics=self.metrics,
            problem=problem,
        )

    @property
    def metrics(self) -> Metrics:
        with self._lock:
            return self._metrics

    @property
    def crowded(self) -> bool:
        """Whether so much is pending that asking may have to wait."""
        return self._batcher.crowded

    def close(self) -> None:
        if self._process in (None, os.getpid()):
            self._batcher.close()
            self._cache.close()

    def __enter__(self) -> EmbeddingService:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    def _begin(self, texts: Sequence[str], normalize: bool, caller: str) -> Asked:
        self._check_process()
        fingerprint = self.backend.fingerprint
        keys = [cache_key(fingerprint, normalize, text) for text in texts]
        found = self._cache.get_many(list(dict.fromkeys(keys)))
        fresh = {key: text for key, text in zip(keys, texts, strict=True) if key not in found}
        job = None
        if fresh:
            self._count_against_limit(caller)
            job = self._batcher.submit(list(fresh.values()))
        return Asked(self, texts, keys, found, list(fresh), normalize, job)

    def finish(self, asked: Asked, raw: NDArray[np.float32] | None) -> Embeddings:
        """Put together what was known and what the model made, `raw`; keep the latter for the next time."""
        import numpy as np

        found = asked.found
        if raw is not None:
            if asked.normalize:
                raw = of_length_one(raw)
            made = {key: vector.copy() for key, vector in zip(asked.fresh, raw, strict=True)}
            self._cache.put_many(made)
            found = {**found, **made}
        hits = sum(key in asked.found for key in asked.keys)
        metrics = self._counted(hits, len(asked.keys) - hits)
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
        """Threads, locks and the cache's file belong to the process that first asked: after a fork none works."""
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
            with self._lock:
                self._metrics = replace(self._metrics, rate_limited=self._metrics.rate_limited + 1)
            raise

    def _counted(self, hits: int, misses: int) -> Metrics:
        with self._lock:
            self._metrics = replace(
                self._metrics,
                cache_hits=self._metrics.cache_hits + hits,
                cache_misses=self._metrics.cache_misses + misses,
            )
            return self._metrics


def _check_normalize(normalize: object) -> None:
    if not isinstance(normalize, bool):
        raise InvalidInput("normalize is neither true nor false.", remedy="Give true or false.", field="normalize")
