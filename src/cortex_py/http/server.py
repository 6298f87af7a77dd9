"""`cortex serve --http`: the protocol at `/mcp` and plain pages beside it, on one port."""

from __future__ import annotations

import logging
import os
import signal
import socket
from collections.abc import AsyncIterator, Callable
from contextlib import asynccontextmanager
from typing import TYPE_CHECKING, Any

import uvicorn
from starlette.applications import Starlette
from starlette.middleware import Middleware
from starlette.routing import Route

from ..config import Settings
from ..errors import InvalidInput
from ..mcp.logs import set_up_logs
from ..mcp.server import build_server
from ..mcp.stdio import MOST_BYTES
from ..mcp.traces import traced
from .callers import KnownCallers
from .draining import Draining, Drains
from .embeddings import embedding_routes
from .exposure import check_exposure
from .guards import BearerToken, BodyLimit, TrimmedHeaders, WellFormed
from .metrics import HttpMetrics
from .observing import Observed
from .page_scopes import MCP_PATH
from .readiness import Readiness
from .routes import health_routes

if TYPE_CHECKING:
    from ..app import Cortex

__all__ = ["MCP_PATH", "build_app", "serve_http"]

# For connections that stay open when all has been answered.
_GRACE_SECONDS = 3
_KEEP_ALIVE_SECONDS = 30
_BACKLOG = 512

_log = logging.getLogger(__name__)


def build_app(cortex: Cortex, host: str = "127.0.0.1") -> Starlette:
    """The whole HTTP application over an opened Cortex.

    Its state has `draining` and `end_streams`: whoever stops it begins the one and calls the other first.
    """
    settings = cortex.settings
    check_exposure(host, settings.token, settings.auth)
    verify = cortex.verifier
    audited = settings.audit == "on" or (settings.audit == "auto" and verify is not None)
    draining, metrics = Draining(), HttpMetrics(cortex.embeddings)
    guards = [Middleware(Observed), Middleware(Drains, draining=draining), Middleware(TrimmedHeaders)]
    if verify is not None:
        guards.append(Middleware(KnownCallers, cortex=cortex, verify=verify, audited=audited, meter=metrics))
    elif settings.token:
        guards.append(Middleware(BearerToken, token=settings.token))
    guards += [Middleware(BodyLimit, most=MOST_BYTES), Middleware(WellFormed, path=MCP_PATH)]
    stateless = _stateless(settings)
    server = build_server(
        cortex, known_callers=verify is not None, audited=audited, meter=metrics, sessions=not stateless
    )
    app = server.http_app(
        path=MCP_PATH,
        middleware=guards,
        host_origin_protection=True,
        stateless_http=stateless,
        allowed_hosts=[*settings.allowed_hosts, *([] if _is_unspecified(host) else [host])],
    )
    app.state.end_streams = server.end_streams
    app.state.draining = draining
    _take_large_bodies(app)
    readiness = Readiness(cortex, draining)
    metrics.watch_requests(lambda: draining.in_flight)
    metrics.watch_store(cortex, lambda: readiness.store_fault() is None)
    app.router.routes.extend(metrics.counted(route) for route in health_routes(cortex, readiness))
    routes = embedding_routes(
        cortex.embeddings, token=settings.token, known_callers=verify is not None, metrics=metrics
    )
    app.router.routes.extend(routes)
    return app


def _stateless(settings: Settings) -> bool:
    """Whether no session ties a client to this process: where others serve the same store, the next may be theirs."""
    return settings.stateless_http == "on" or (settings.stateless_http == "auto" and bool(settings.database_url))


def _take_large_bodies(app: Starlette) -> None:
    """The framework has a smaller bound of its own and no public way to set it; a test guards this one."""
    endpoint: Any
    (endpoint,) = [route.endpoint for route in app.routes if isinstance(route, Route) and route.path == MCP_PATH]
    inner = app.router.lifespan_context

    @asynccontextmanager
    async def lifespan(outer: Starlette) -> AsyncIterator[Any]:
        async with inner(outer) as state:
            endpoint.session_manager.asgi_app.max_body_size = MOST_BYTES
            yield state

    app.router.lifespan_context = lifespan


def _is_unspecified(host: str) -> bool:
    return host in ("0.0.0.0", "::", "")


def _reachable(host: str) -> str:
    """A name under which this machine itself can call the server."""
    if _is_unspecified(host):
        return "localhost"
    return f"[{host}]" if ":" in host else host


class _Server(uvicorn.Server):
    """Finishes what it has before it closes the port.

    The streams of watchers are ended first: they would stay open, and seem lost when cut.
    """

    def __init__(self, config: uvicorn.Config, app: Starlette, drain_seconds: float) -> None:
        super().__init__(config)
        self._state = app.state
        self._drain_seconds = drain_seconds

    async def shutdown(self, sockets: list[socket.socket] | None = None) -> None:
        draining: Draining = self._state.draining
        draining.begin()
        self._state.end_streams()
        if not await draining.quiet(self._drain_seconds, lambda: self.force_exit):
            _log.warning("%s requests were not finished within drain_seconds", draining.in_flight)
        await super().shutdown(sockets)


def serve_http(cortex: Cortex, host: str, port: int, started: Callable[[str], None]) -> None:
    """Serve until a signal comes. `started` is given the address once connections are taken."""
    set_up_logs(cortex.settings)
    app = build_app(cortex, host)
    with traced(cortex.settings), _bound(host, port) as bound:
        config = uvicorn.Config(
            app,
            log_config=None,
            access_log=False,
            timeout_graceful_shutdown=_GRACE_SECONDS,
            timeout_keep_alive=_KEEP_ALIVE_SECONDS,
            lifespan="on",
            ws="none",
        )
        server = _Server(config, app, cortex.settings.drain_seconds)

        # The server has handlers of its own while it runs; these are for before, and for the signal it hands on after.
        def stop(*_: object) -> None:
            server.should_exit = True

        for name in (signal.SIGTERM, signal.SIGINT):
            signal.signal(name, stop)
        started(f"http://{_reachable(host)}:{bound.getsockname()[1]}")
        server.run(sockets=[bound])


def _bound(host: str, port: int) -> socket.socket:
    """A socket on the port. Bound here, so that a port in use is told in plain words."""
    try:
        family, kind, _, _, address = socket.getaddrinfo(host, port, type=socket.SOCK_STREAM)[0]
        # The protocol is named because asyncio switches off Nagle's delay only where it is: 40 ms an answer.
        bound = socket.socket(family, kind, socket.IPPROTO_TCP)
        try:
            if os.name == "posix":
                bound.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
            bound.bind(address)
            bound.listen(_BACKLOG)
        except OSError:
            bound.close()
            raise
        return bound
    except OSError as error:
        raise InvalidInput(
            f"Port {port} of {host} cannot be used: {error.strerror or error}.",
            remedy="Choose another --port.",
            field="port",
        ) from error
