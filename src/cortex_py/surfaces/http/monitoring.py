"""What operators and probes ask for: metrics for Prometheus, health and status.

Every server has its own registry. The numbers of the store and the service are read at each request. Labels come from
fixed tables and never contain names of people or what they sent.
"""

from __future__ import annotations

import asyncio
import logging
import threading
import time
from collections.abc import Awaitable, Callable, Iterator
from dataclasses import asdict
from typing import TYPE_CHECKING, Any

import anyio
import anyio.to_thread
from prometheus_client import CollectorRegistry, Counter, Gauge, Histogram, generate_latest
from prometheus_client.core import CounterMetricFamily, GaugeMetricFamily, Metric
from prometheus_client.exposition import CONTENT_TYPE_PLAIN_0_0_4
from prometheus_client.registry import Collector
from starlette.concurrency import run_in_threadpool
from starlette.requests import Request
from starlette.responses import JSONResponse, Response
from starlette.routing import Route
from starlette.types import Message, Receive, Scope, Send

from ...core.embedding.service import EmbeddingService
from ...core.errors import CortexError, StorageError
from ...version import __version__
from ..mcp.middleware.telemetry import Meter, Outcome, UpkeepOutcome
from .middleware import HTTP_METHODS, DrainState, error_response

if TYPE_CHECKING:
    from ...app import Cortex

__all__ = ["METRICS_TYPE", "Fault", "HttpMetrics", "Readiness", "health_routes"]

METRICS_TYPE = CONTENT_TYPE_PLAIN_0_0_4

# What servers record for a client that did not wait for its answer.
_GONE = 499
# Finer than usual at the low end: a short text takes two or three milliseconds.
_BUCKETS = (0.001, 0.0025, 0.005, 0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1.0, 2.5, 5.0, 10.0)


class HttpMetrics(Meter):
    """Counts requests and calls, and shows them with the numbers of the embedding service and the store."""

    def __init__(self, service: EmbeddingService) -> None:
        self._registry = registry = CollectorRegistry()
        registry.register(_ServiceCollector(service))
        self._requests = Counter(
            "cortex_http_requests", "Requests answered.", ("path", "method", "status"), registry=registry
        )
        meaning = "Time from the request to the end of its answer."
        self._seconds = Histogram(
            "cortex_http_request_seconds", meaning, ("path",), registry=registry, buckets=_BUCKETS
        )
        self._calls = Counter("cortex_mcp_calls", "Calls of tools.", ("tool", "outcome"), registry=registry)
        self._call_seconds = Histogram(
            "cortex_mcp_call_seconds", "Time from a call to its answer.", ("tool",), registry=registry, buckets=_BUCKETS
        )
        self._upkeep = Counter("cortex_upkeep_runs", "Rounds of work between calls.", ("outcome",), registry=registry)
        self._audit = Counter("cortex_audit_events", "Events for the audit log.", ("outcome",), registry=registry)
        for outcome in ("written", "missing"):
            # Exported from the start, so that the first one is seen as a change.
            self._audit.labels(outcome)

    def watch_requests(self, in_flight: Callable[[], int]) -> None:
        """Show how many requests are not answered yet."""
        gauge = Gauge("cortex_http_requests_in_flight", "Requests not answered yet.", registry=self._registry)
        gauge.set_function(in_flight)

    def watch_store(self, cortex: Cortex, reachable: Callable[[], bool]) -> None:
        """Show the store's numbers too."""
        self._registry.register(_StoreCollector(cortex, reachable))

    def count_call(self, tool: str, outcome: Outcome, seconds: float) -> None:
        self._calls.labels(tool, outcome).inc()
        self._call_seconds.labels(tool).observe(seconds)

    def count_upkeep(self, outcome: UpkeepOutcome) -> None:
        self._upkeep.labels(outcome).inc()

    def count_audit_event(self, written: bool) -> None:
        self._audit.labels("written" if written else "missing").inc()

    def count_requests(self, route: Route) -> Route:
        """The route, with its requests counted from now on."""
        app, path = route.app, route.path

        async def counted(scope: Scope, receive: Receive, send: Send) -> None:
            began, status = time.perf_counter(), 0

            async def noted(message: Message) -> None:
                nonlocal status
                if message["type"] == "http.response.start":
                    status = message["status"]
                await send(message)

            try:
                await app(scope, receive, noted)
                status = status or _GONE
            finally:
                method = scope["method"] if scope["method"] in HTTP_METHODS else "other"
                self._requests.labels(path, method, str(status or 500)).inc()
                self._seconds.labels(path).observe(time.perf_counter() - began)

        route.app = counted
        return route

    def text(self) -> bytes:
        """All of it in Prometheus' text form."""
        return generate_latest(self._registry)


class _StoreCollector(Collector):
    def __init__(self, cortex: Cortex, reachable: Callable[[], bool]) -> None:
        self._cortex = cortex
        self._reachable = reachable

    def describe(self) -> Iterator[Metric]:
        yield from ()

    def collect(self) -> Iterator[Metric]:
        found = self._cortex.vitals()
        up = self._reachable()
        yield GaugeMetricFamily("cortex_store_up", "Whether the store can be reached.", int(up))
        connections = GaugeMetricFamily("cortex_store_connections", "Connections to the store.", labels=("state",))
        connections.add_metric(("in_use",), found.in_use)
        connections.add_metric(("idle",), found.idle)
        yield connections
        yield GaugeMetricFamily("cortex_store_connections_max", "The most there may be.", found.most)
        transactions = CounterMetricFamily("cortex_store_transactions", "Transactions ended.", labels=("access",))
        transactions.add_metric(("read",), found.reads)
        transactions.add_metric(("write",), found.writes)
        yield transactions
        for name, value, meaning in (
            ("waits", found.waited, "Callers that no connection was free for."),
            ("retries", found.retries, "Attempts to reach it that were repeated."),
            ("lost", found.lost, "Transactions whose connection broke."),
            ("failovers", found.failovers, "Times that another server or a restored one took over."),
            ("lost_changes", found.lost_changes, "Acknowledged changes that it did not have."),
            ("turn_seconds", found.turn_seconds, "Waiting of writers for their turn."),
        ):
            yield CounterMetricFamily(f"cortex_store_{name}", meaning, value)
        if up:
            yield from self._server()
        if up and (lag := self._cortex.replica_lag()) is not None:
            yield GaugeMetricFamily("cortex_replica_lag_bytes", "Bytes of the log it has not replayed.", lag)
        if found.replica_reads or found.replica_passed:
            reads = CounterMetricFamily("cortex_replica_reads", "Reads that a replica could answer.", labels=("by",))
            reads.add_metric(("replica",), found.replica_reads)
            reads.add_metric(("primary",), found.replica_passed)
            yield reads

    def _server(self) -> Iterator[Metric]:
        load = self._cortex.server_load()
        if load is None:
            return
        yield GaugeMetricFamily("cortex_store_lock_waiters", "Transactions that wait for a lock.", load.lock_waiters)
        yield GaugeMetricFamily(
            "cortex_store_lock_wait_seconds", "How long the first of them has waited.", load.longest_wait
        )
        if load.spaces_by_worker:
            spaces = GaugeMetricFamily("cortex_store_spaces", "Spaces on each worker.", labels=("worker",))
            for worker, count in load.spaces_by_worker.items():
                spaces.add_metric((worker,), count)
            yield spaces


class _ServiceCollector(Collector):
    def __init__(self, service: EmbeddingService) -> None:
        self._service = service

    def describe(self) -> Iterator[Metric]:
        """Nothing: registering must not ask the service, because counting a cache file opens it."""
        yield from ()

    def collect(self) -> Iterator[Metric]:
        service = self._service
        counted, loaded = service.all_metrics, int(service.backend.loaded)
        for family, name, value, meaning in (
            (CounterMetricFamily, "cache_hits", counted.cache_hits, "Texts whose vector was known."),
            (CounterMetricFamily, "cache_misses", counted.cache_misses, "Texts whose vector had to be made."),
            (CounterMetricFamily, "rate_limited", counted.rate_limited, "Requests refused by the rate limit."),
            (GaugeMetricFamily, "cache_size", service.cache_size, "Vectors in the cache."),
            (GaugeMetricFamily, "model_loaded", loaded, "Whether the model is in memory."),
        ):
            yield family(f"cortex_embedding_{name}", meaning, value)


# The pages for operators and probes: `/health`, `/health/live`, `/health/ready` and `/status`, as JSON.
#
# Anybody may ask whether the server is ready, because a probe has no token. So that answer names no place, and asking
# often costs no more than asking once.

_LIMIT_SECONDS = 2.0
_KEPT_SECONDS = 1.0
_SLOW = ("StoreUnavailable", f"The store did not answer within {_LIMIT_SECONDS:.0f} seconds.")
_DRAINING = ("DRAINING", "This server is about to stop.")

_log = logging.getLogger(__name__)

# A code and a message; None if all is well.
Fault = tuple[str, str] | None
Page = Callable[[], dict[str, Any]]


def health_routes(cortex: Cortex, readiness: Readiness) -> list[Route]:
    """The routes; none of them loads the model."""
    pages: dict[str, Page] = {"/health": lambda: _health(cortex), "/status": lambda: asdict(cortex.memories.status())}
    routes = [Route(path, _endpoint(page), methods=["GET"]) for path, page in pages.items()]
    routes.append(Route("/health/live", _live, methods=["GET"]))
    routes.append(Route("/health/ready", readiness.page, methods=["GET"]))
    return routes


async def _live(_: Request) -> Response:
    """Answers without a thread: all threads may be waiting for the database."""
    return JSONResponse({"status": "live"})


def _health(cortex: Cortex) -> dict[str, Any]:
    model = cortex.backend
    return {
        "status": "healthy",
        "version": __version__,
        "project_id": cortex.project.id,
        "model": {"name": model.model_name, "loaded": model.loaded},
    }


def _endpoint(page: Page) -> Callable[[Request], Awaitable[Response]]:
    async def answer(_: Request) -> Response:
        try:
            return JSONResponse(await run_in_threadpool(page))
        except CortexError as error:
            return error_response(503, type(error).__name__, str(error))

    return answer


class Readiness:
    """Ready: the database can be reached, the model is installed, and the server is not about to stop."""

    def __init__(self, cortex: Cortex, draining: DrainState, seconds: float = _LIMIT_SECONDS) -> None:
        """`seconds`: how long a probe waits for the store."""
        self._cortex = cortex
        self._draining = draining
        self._seconds = seconds
        self._lock = threading.Lock()
        self._store: CortexError | None = None
        self._looked_at: float | None = None
        self._looking: asyncio.Task[Fault] | None = None
        # None while it does not answer: the primary answers instead, so the server is ready.
        self._lag: int | None = None

    async def page(self, _: Request) -> Response:
        fault = await self.fault()
        if fault is None:
            lag = {"replica_lag_bytes": self._lag} if self._cortex.settings.database_read_url else {}
            return JSONResponse({"status": "ready", **lag})
        return error_response(503, *fault, {"Retry-After": "1"})

    async def fault(self) -> Fault:
        """Why no requests should come; found within a bounded time, even if the database hangs."""
        if self._draining.begun:
            return _DRAINING
        if self._looking is None or self._looking.done():
            # One task looks and all requests wait for it, so that probes cannot pile up on a database that hangs.
            self._looking = asyncio.create_task(self._look())
        done, _ = await asyncio.wait({self._looking}, timeout=self._seconds)
        return self._looking.result() if done else _SLOW

    async def _look(self) -> Fault:
        return await anyio.to_thread.run_sync(self._find, limiter=anyio.CapacityLimiter(1), abandon_on_cancel=True)

    def _find(self) -> Fault:
        if (error := self.store_fault()) is not None:
            return type(error).__name__, "The store cannot be reached; the server's log has the details."
        try:
            # Checks that the model is installed, without loading it.
            assert self._cortex.backend.fingerprint
        except CortexError as error:
            return type(error).__name__, "The embedding model cannot be used."
        return None

    def store_fault(self) -> CortexError | None:
        """Why the store cannot be reached; looked up at most once a second."""
        with self._lock:
            if self._looked_at is None or time.monotonic() - self._looked_at > _KEPT_SECONDS:
                before, self._store = self._store, self._reach()
                self._lag = self._cortex.replica_lag() if self._store is None else None
                self._looked_at = time.monotonic()
                if self._store is not None and before is None:
                    _log.error("not ready: %s", self._store)
            return self._store

    def _reach(self) -> CortexError | None:
        try:
            self._cortex.reach(self._seconds)
        except StorageError as error:
            return error
        return None
