"""`cortex serve --http`: the protocol at `/mcp` and plain pages beside it, on one port."""

from __future__ import annotations

import gc
import hmac
import logging
import os
import signal
import socket
import sys
import threading
from collections.abc import Callable
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import fastmcp
import uvicorn
from starlette.applications import Starlette
from starlette.middleware import Middleware
from starlette.routing import Route
from starlette.types import Scope, Send

from ..config import Settings
from ..errors import CortexError, InvalidInput
from ..mcp.middleware.logs import set_up_logs
from ..mcp.middleware.telemetry import send_traces
from ..mcp.posted_calls import PostedCalls
from ..mcp.sdk_adapter import HttpEndpoint, set_largest_body
from ..mcp.server import build_server
from ..mcp.stdio.serve import MOST_BYTES
from ..pools import limit_arenas
from ..security.callers import as_system
from .access import EVENTS_PATH, MCP_PATH, SESSION_PATH, check_exposure
from .callers import KnownCallers
from .connections import ACCEPTS_AT_ONCE, Limits, connection_class
from .embeddings import embedding_routes
from .events import change_events
from .middleware import (
    BearerToken,
    BodyLimit,
    DrainGuard,
    DrainState,
    PlainHost,
    RequestLog,
    TrimmedHeaders,
    WellFormed,
)
from .monitoring import HttpMetrics, Readiness, health_routes
from .page import page_routes
from .sessions import PageGuard, PageLinks, PageSessions, SessionPage, accepts_token, page_address, page_key

if TYPE_CHECKING:
    from ..app import Cortex
    from .workers import SharedPage, Worker

__all__ = ["MCP_PATH", "announced_address", "bind_port", "bind_ports", "build_app", "serve_http"]

# For connections that stay open after everything has been answered.
_GRACE_SECONDS = 3
_BACKLOG = 512
_OBJECTS_A_COLLECTION = 10_000

_log = logging.getLogger(__name__)


def build_app(cortex: Cortex, host: str = "127.0.0.1", shared: SharedPage | None = None) -> Starlette:
    """The whole HTTP application over an opened Cortex. `shared` is what it shares with other workers.

    Its state has `draining` and `end_streams`: begin the first and call the second before stopping it.
    """
    settings = cortex.settings
    check_exposure(host, settings.token, settings.auth)
    verify = cortex.verifier
    audited = settings.audit == "on" or (settings.audit == "auto" and verify is not None)
    draining, metrics = DrainState(), HttpMetrics(cortex.embeddings)
    limits = Limits.of(settings)
    guards = [
        Middleware(RequestLog),
        Middleware(DrainGuard, draining=draining, most_requests=limits.requests, most_streams=limits.streams),
        Middleware(TrimmedHeaders),
        Middleware(PlainHost),
    ]
    page = _page_sessions(cortex, shared)
    guards.append(Middleware(PageGuard, sessions=page.sessions, has_tokens=page.has_tokens))
    if verify is not None:
        guards.append(Middleware(KnownCallers, cortex=cortex, verify=verify, audited=audited, meter=metrics))
    elif settings.token:
        guards.append(Middleware(BearerToken, token=settings.token))
    posted: list[PostedCalls] = []  # filled below: it needs the application that these guards stand before

    async def answer(scope: Scope, message: dict[str, Any], send: Send) -> bool:
        return await posted[0].answer(scope, message, send)

    guards += [Middleware(BodyLimit, most=MOST_BYTES), Middleware(WellFormed, path=MCP_PATH, answer=answer)]
    stateless = _stateless(settings) or shared is not None
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
    posted.append(PostedCalls(HttpEndpoint(server, app, MCP_PATH), server.direct_calls.takes))
    app.state.end_streams = server.end_streams
    app.state.draining = draining
    set_largest_body(app, MCP_PATH, MOST_BYTES)
    readiness = Readiness(cortex, draining)
    metrics.watch_requests(lambda: draining.in_flight)
    metrics.watch_store(cortex, lambda: readiness.store_fault() is None)
    app.router.routes.extend(metrics.count_requests(route) for route in health_routes(cortex, readiness))
    routes = embedding_routes(
        cortex.embeddings, token=settings.token, known_callers=verify is not None, metrics=metrics
    )
    app.router.routes.extend(routes)
    app.router.routes.extend(metrics.count_requests(route) for route in page_routes(cortex))
    app.router.routes.append(Route(SESSION_PATH, page.endpoint))
    app.router.routes.append(Route(EVENTS_PATH, change_events(cortex, draining), methods=["GET"]))
    app.state.page_links = page.links
    return app


@dataclass(frozen=True, slots=True)
class _PageAccess:
    sessions: PageSessions
    links: PageLinks | None
    endpoint: SessionPage
    has_tokens: bool


def _page_sessions(cortex: Cortex, shared: SharedPage | None) -> _PageAccess:
    """How people reach the page. Where callers are known, each signs in as themselves; else a link is enough."""
    token, verify = cortex.settings.token, cortex.verifier
    sessions = shared.sessions() if shared else PageSessions()
    if verify is not None:
        endpoint = SessionPage(sessions, None, accepts=accepts_token(verify.recognised))
        return _PageAccess(sessions, None, endpoint, True)
    links = shared.links() if shared else PageLinks(page_key(cortex.settings))
    accepts = (lambda given: hmac.compare_digest(given.encode(), token.encode())) if token else None
    return _PageAccess(sessions, links, SessionPage(sessions, links, token, accepts), token is not None)


def _stateless(settings: Settings) -> bool:
    """Whether clients have no session: where several servers share a store, the next request may reach another one."""
    return settings.stateless_http == "on" or (settings.stateless_http == "auto" and bool(settings.database_url))


def _is_unspecified(host: str) -> bool:
    return host in ("0.0.0.0", "::", "")


def _reachable(host: str) -> str:
    """A name under which this machine itself can call the server."""
    if _is_unspecified(host):
        return "localhost"
    return f"[{host}]" if ":" in host else host


class _Server(uvicorn.Server):
    """Finishes its requests before it closes the port.

    The streams of watchers are ended first: they would stay open, and look broken when cut.
    """

    def __init__(self, config: uvicorn.Config, app: Starlette, drain_seconds: float) -> None:
        super().__init__(config)
        self._state = app.state
        self._drain_seconds = drain_seconds

    async def startup(self, sockets: list[socket.socket] | None = None) -> None:
        await super().startup(sockets)
        for bound in sockets or ():
            # uvicorn uses one number for the queue in the kernel and for what is accepted at once.
            bound.listen(_BACKLOG)

    async def shutdown(self, sockets: list[socket.socket] | None = None) -> None:
        draining: DrainState = self._state.draining
        draining.begin()
        self._state.end_streams()
        if not await draining.wait_until_idle(self._drain_seconds, lambda: self.force_exit):
            _log.warning("%s requests were not finished within drain_seconds", draining.in_flight)
        await super().shutdown(sockets)


def serve_http(
    cortex: Cortex, host: str, port: int, started: Callable[[str, str], None], worker: Worker | None = None
) -> None:
    """Serve until a signal comes. `started` gets the address, and that of the page, once connections are accepted.

    A `worker` serves on the socket that it was given.
    """
    set_up_logs(cortex.settings)
    app = build_app(cortex, host, worker.page if worker else None)
    limits = Limits.of(cortex.settings)
    with send_traces(cortex.settings), worker.bound if worker else bind_port(host, port) as bound:
        config = uvicorn.Config(
            app,
            log_config=None,
            access_log=False,
            timeout_graceful_shutdown=_GRACE_SECONDS,
            timeout_keep_alive=limits.idle_seconds,
            http=connection_class(limits),
            # One at a time, where others may accept from the same socket.
            backlog=1 if worker else ACCEPTS_AT_ONCE,
            lifespan="on",
            ws="none",
        )
        server = _Server(config, app, cortex.settings.drain_seconds)

        # uvicorn has its own handlers while it runs; these are for the time before, and for the signal it re-raises.
        def stop(*_: object) -> None:
            server.should_exit = True

        for name in (signal.SIGTERM, signal.SIGINT):
            signal.signal(name, stop)
        _tune_process()
        started(*announced_address(host, bound, app.state.page_links))
        warming = threading.Thread(target=_warm_up, args=(cortex,), name="cortex-warm-up", daemon=True)
        warming.start()
        server.run(sockets=[bound])
        # The store is closed next; one that does not answer is not waited for.
        warming.join(_GRACE_SECONDS)


def _warm_up(cortex: Cortex) -> None:
    """Load what calls need, while clients connect. What fails here fails again in a call, which then says why."""
    try:
        with as_system():
            cortex.memories.warm_up()
    except CortexError as error:
        _log.warning("the server begins cold: %s", error)


def _tune_process() -> None:
    """For a process that answers many requests with a few threads.

    What was loaded so far stays, so the garbage collector need not look at it again; requests leave few cycles, so it
    runs less often (it took a tenth of the processor time). The framework's own spans are never sent, so it makes none.
    """
    fastmcp.settings.telemetry_mode = "propagation_only"
    gc.collect()
    gc.freeze()
    gc.set_threshold(_OBJECTS_A_COLLECTION)
    limit_arenas()


def announced_address(host: str, bound: socket.socket, links: PageLinks | None) -> tuple[str, str]:
    """The address of a server, and that of its page."""
    url = f"http://{_reachable(host)}:{bound.getsockname()[1]}"
    return url, page_address(url, links)


def bind_port(host: str, port: int) -> socket.socket:
    """A socket on the port. Bound here, so that a port in use gives a plain error."""
    return _bound(host, port, socket.SO_REUSEADDR)


def bind_ports(host: str, port: int, workers: int) -> list[socket.socket]:
    """A socket for each worker, all on one port; on systems that do not share connections out, the same one for all."""
    first = bind_port(host, port)
    if sys.platform != "linux":
        return [first] * workers
    # Others could join a port that is shared from the start: another server of this user would get no error.
    port = first.getsockname()[1]
    first.close()
    return [_bound(host, port, socket.SO_REUSEADDR, socket.SO_REUSEPORT) for _ in range(workers)]


def _bound(host: str, port: int, *options: int) -> socket.socket:
    try:
        family, kind, _, _, address = socket.getaddrinfo(host, port, type=socket.SOCK_STREAM)[0]
        # With the protocol named, asyncio switches off Nagle's algorithm, which would delay answers by 40 ms.
        bound = socket.socket(family, kind, socket.IPPROTO_TCP)
        try:
            if os.name == "posix":
                for option in options:
                    bound.setsockopt(socket.SOL_SOCKET, option, 1)
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
