"""What the server counts, as Prometheus reads it: requests, calls of tools, the store, the embedding service.

Every server has a registry of its own. The numbers of store and service are read when they are asked for. Labels are
names from tables of ours, never those of people or what they sent.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Iterator
from typing import TYPE_CHECKING

from prometheus_client import CollectorRegistry, Counter, Gauge, Histogram, generate_latest
from prometheus_client.core import CounterMetricFamily, GaugeMetricFamily, Metric
from prometheus_client.exposition import CONTENT_TYPE_PLAIN_0_0_4
from prometheus_client.registry import Collector
from starlette.routing import Route
from starlette.types import ASGIApp, Message, Receive, Scope, Send

from ..embedding.service import EmbeddingService
from ..mcp.meter import Outcome, UpkeepOutcome

if TYPE_CHECKING:
    from ..app import Cortex

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
        self._calls = Counter("cortex_mcp_calls", "Calls of tools.", ("tool", "outcome"), registry=self._registry)
        self._call_seconds = Histogram(
            "cortex_mcp_call_seconds",
            "Time from a call to its answer.",
            ("tool",),
            registry=self._registry,
            buckets=_BUCKETS,
        )
        self._upkeep = Counter(
            "cortex_upkeep_runs", "Rounds of work between calls.", ("outcome",), registry=self._registry
        )
        self._audit = Counter("cortex_audit_events", "Events for the audit log.", ("outcome",), registry=self._registry)
        for outcome in ("written", "missing"):
            # There from the beginning, so that a first one is seen as a change.
            self._audit.labels(outcome)

    def watch_requests(self, in_flight: Callable[[], int]) -> None:
        """Tell how many requests have come and are not answered yet."""
        gauge = Gauge("cortex_http_requests_in_flight", "Requests not answered yet.", registry=self._registry)
        gauge.set_function(in_flight)

    def watch_store(self, cortex: Cortex, reachable: Callable[[], bool]) -> None:
        """Tell the store's numbers too."""
        self._registry.register(_StoreCollector(cortex, reachable))

    def called(self, tool: str, outcome: Outcome, seconds: float) -> None:
        self._calls.labels(tool, outcome).inc()
        self._call_seconds.labels(tool).observe(seconds)

    def upkept(self, outcome: UpkeepOutcome) -> None:
        self._upkeep.labels(outcome).inc()

    def audited(self, written: bool) -> None:
        self._audit.labels("written" if written else "missing").inc()

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


class _StoreCollector(Collector):
    def __init__(self, cortex: Cortex, reachable: Callable[[], bool]) -> None:
        self._cortex = cortex
        self._reachable = reachable

    def describe(self) -> Iterator[Metric]:
        yield from ()

    def collect(self) -> Iterator[Metric]:
        found = self._cortex.vitals()
        yield GaugeMetricFamily("cortex_store_up", "Whether the store can be reached.", int(self._reachable()))
        connections = GaugeMetricFamily("cortex_store_connections", "Connections to the store.", labels=("state",))
        connections.add_metric(("in_use",), found.in_use)
        connections.add_metric(("idle",), found.idle)
        yield connections
        yield GaugeMetricFamily("cortex_store_connections_max", "The most there may be.", found.most)
        transactions = CounterMetricFamily("cortex_store_transactions", "Transactions ended.", labels=("access",))
        transactions.add_metric(("read",), found.reads)
        transactions.add_metric(("write",), found.writes)
        yield transactions
        yield CounterMetricFamily("cortex_store_waits", "Callers that no connection was free for.", found.waited)
        yield CounterMetricFamily("cortex_store_retries", "Attempts to reach it that were repeated.", found.retries)
        yield CounterMetricFamily("cortex_store_lost", "Transactions whose connection broke.", found.lost)


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
