"""What the server counts about itself, as Prometheus reads it: requests, the time they took, and the embedding service.

Every server has a registry of its own. The service's numbers are read when they are asked for.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Iterator

from prometheus_client import CollectorRegistry, Counter, Histogram, generate_latest
from prometheus_client.core import CounterMetricFamily, GaugeMetricFamily, Metric
from prometheus_client.exposition import CONTENT_TYPE_PLAIN_0_0_4
from prometheus_client.registry import Collector
from starlette.routing import Route
from starlette.types import ASGIApp, Message, Receive, Scope, Send

from ..embedding.service import EmbeddingService

__all__ = ["METRICS_TYPE", "HttpMetrics"]

METRICS_TYPE = CONTENT_TYPE_PLAIN_0_0_4

_METHODS = frozenset(("GET", "HEAD", "POST", "PUT", "PATCH", "DELETE", "OPTIONS"))
# What servers write down for a client that did not wait for its answer.
_GONE = 499
# Finer than usual at the low end: a short text takes two or three milliseconds.
_BUCKETS = (0.001, 0.0025, 0.005, 0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1.0, 2.5, 5.0, 10.0)


class HttpMetrics:
    """Counts requests, and tells them together with what the embedding service counted."""

    def __init__(self, service: EmbeddingService) -> None:
        self._registry = CollectorRegistry()
        self._registry.register(_ServiceCollector(service))
        self._requests = Counter(
            "cortex_http_requests", "Requests answered.", ("path", "method", "status"), registry=self._registry
        )
        self._seconds = Histogram(
            "cortex_http_request_seconds",
            "Time from the request to the end of its answer.",
            ("path",),
            registry=self._registry,
            buckets=_BUCKETS,
        )

    def counted(self, route: Route) -> Route:
        """The route, with its requests counted from now on."""
        route.app = _Counted(route.app, route.path, self._count)
        return route

    def _count(self, path: str, method: str, status: int, seconds: float) -> None:
        self._requests.labels(path, method if method in _METHODS else "other", str(status)).inc()
        self._seconds.labels(path).observe(seconds)

    def text(self) -> bytes:
        """All of it in Prometheus' text form."""
        return generate_latest(self._registry)


class _Counted:
    def __init__(self, app: ASGIApp, path: str, count: Callable[[str, str, int, float], None]) -> None:
        self._app = app
        self._path = path
        self._count = count

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        began = time.perf_counter()
        status = 0

        async def noted(message: Message) -> None:
            nonlocal status
            if message["type"] == "http.response.start":
                status = message["status"]
            await send(message)

        try:
            await self._app(scope, receive, noted)
            status = status or _GONE
        finally:
            self._count(self._path, scope["method"], status or 500, time.perf_counter() - began)


class _ServiceCollector(Collector):
    def __init__(self, service: EmbeddingService) -> None:
        self._service = service

    def describe(self) -> Iterator[Metric]:
        """Registering must not ask the service anything: counting a cache file opens it."""
        yield from ()

    def collect(self) -> Iterator[Metric]:
        health = self._service.health()
        counted = health.metrics
        yield CounterMetricFamily("cortex_embedding_cache_hits", "Texts whose vector was known.", counted.cache_hits)
        yield CounterMetricFamily(
            "cortex_embedding_cache_misses", "Texts whose vector had to be made.", counted.cache_misses
        )
        yield CounterMetricFamily(
            "cortex_embedding_rate_limited", "Requests refused by the rate limit.", counted.rate_limited
        )
        yield GaugeMetricFamily("cortex_embedding_cache_size", "Vectors in the cache.", health.cache_size)
        yield GaugeMetricFamily(
            "cortex_embedding_model_loaded", "Whether the model is in memory.", int(self._service.backend.loaded)
        )
