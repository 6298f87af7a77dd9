"""`cortex serve --http`: the protocol at `/mcp` and plain pages beside it, on one port."""

from __future__ import annotations

import gc
import hmac
import logging
import socket
import threading
from collections.abc import Callable
from typing import TYPE_CHECKING, Any

from starlette.applications import Starlette
from starlette.middleware import Middleware
from starlette.routing import Route
from starlette.types import Scope, Send

from ...core.errors import CortexError
from ...core.jobs import limit_arenas
from ...core.security.callers import as_system
from ..mcp.middleware.logs import set_up_logs
from ..mcp.middleware.telemetry import send_traces
from ..mcp.posted_calls import PostedCalls
from ..mcp.sdk_adapter import HttpEndpoint
from ..mcp.server import build_server
from ..mcp.stdio.serve import MOST_BYTES
from .access import EVENTS_PATH, MCP_PATH, SESSION_PATH, check_exposure
from .callers import KnownCallers
from .connections import ConnectionLimits, Worker, bind_port, serve_app
from .embeddings import embedding_routes
from .events import change_events
from .hosts import HostGuard
from .middleware import (
    BearerToken,
    BodyLimit,
    DrainGuard,
    DrainState,
    PlainHeaders,
    RequestLog,
    WellFormed,
)
from .monitoring import HttpMetrics, Readiness, health_routes
from .page import page_routes
from .sessions import PageGuard, PageLinks, PageSessions, SessionPage, SharedPage, accepts_token, page_address, page_key

if TYPE_CHECKING:
    from ...app import Cortex

__all__ = ["MCP_PATH", "announced_address", "build_app", "serve_http"]

# A store that does not answer is not waited for.
_WARM_UP_SECONDS = 3
_OBJECTS_A_COLLECTION = 10_000
_ALL_ADDRESSES = ("0.0.0.0", "::", "")

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
    limits = ConnectionLimits.of(settings)
    guards = [
        Middleware(RequestLog),
        Middleware(DrainGuard, draining=draining, most_requests=limits.requests, most_streams=limits.streams),
        Middleware(PlainHeaders),
    ]
    sign_in = _session_page(cortex, shared)
    guards.append(Middleware(PageGuard, sessions=sign_in.sessions, has_tokens=sign_in.takes_tokens))
    if verify is not None:
        guards.append(Middleware(KnownCallers, cortex=cortex, verify=verify, audited=audited, meter=metrics))
    elif settings.token:
        guards.append(Middleware(BearerToken, token=settings.token))
    posted: list[PostedCalls] = []  # filled below: it needs the application that these guards stand before

    async def answer(scope: Scope, message: dict[str, Any], send: Send) -> bool:
        return await posted[0].answer(scope, message, send)

    guards += [Middleware(BodyLimit, most=MOST_BYTES), Middleware(WellFormed, path=MCP_PATH, answer=answer)]
    # Where several servers share a store, the next request of a client may reach another one.
    stateless = settings.stateless_http == "on" or shared is not None
    stateless |= settings.stateless_http == "auto" and bool(settings.database_url)
    server = build_server(
        cortex, known_callers=verify is not None, audited=audited, meter=metrics, sessions=not stateless
    )
    hosts = [*settings.allowed_hosts, *([] if host in _ALL_ADDRESSES else [host])]
    endpoint = HttpEndpoint(server, sessions=not stateless, largest_body=MOST_BYTES)
    app = endpoint.app(MCP_PATH, [Middleware(HostGuard, hosts=hosts), *guards])
    posted.append(PostedCalls(endpoint, server.calls.takes))
    app.state.end_streams = server.end_streams
    app.state.draining = draining
    readiness = Readiness(cortex, draining)
    metrics.watch_requests(lambda: draining.in_flight)
    metrics.watch_store(cortex, lambda: readiness.store_fault() is None)
    counted = [*health_routes(cortex, readiness), *page_routes(cortex)]
    app.router.routes += [
        *embedding_routes(cortex.embeddings, token=settings.token, known_callers=verify is not None, metrics=metrics),
        *(metrics.count_requests(route) for route in counted),
        Route(SESSION_PATH, sign_in),
        Route(EVENTS_PATH, change_events(cortex, draining), methods=["GET"]),
    ]
    app.state.page_links = sign_in.links
    return app


def _session_page(cortex: Cortex, shared: SharedPage | None) -> SessionPage:
    """How people reach the page. Where callers are known, each signs in as themselves; else a link is enough."""
    token, verify = cortex.settings.token, cortex.verifier
    sessions = shared.sessions() if shared else PageSessions()
    if verify is not None:
        return SessionPage(sessions, None, accepts=accepts_token(verify.recognised))
    links = shared.links() if shared else PageLinks(page_key(cortex.settings))
    accepts = (lambda given: hmac.compare_digest(given.encode(), token.encode())) if token else None
    return SessionPage(sessions, links, token, accepts)


def serve_http(
    cortex: Cortex, host: str, port: int, started: Callable[[str, str], None], worker: Worker | None = None
) -> None:
    """Serve until a signal comes. `started` gets the address, and that of the page, once connections are accepted.

    A `worker` serves on the socket that it was given.
    """
    set_up_logs(cortex.settings)
    app = build_app(cortex, host, worker.page if worker else None)
    with send_traces(cortex.settings), worker.bound if worker else bind_port(host, port) as bound:
        warming = threading.Thread(target=_warm_up, args=(cortex,), name="cortex-warm-up", daemon=True)

        def begin() -> None:
            _tune_process()
            started(*announced_address(host, bound, app.state.page_links))
            warming.start()

        serve_app(app, bound, cortex.settings, begin, shared_port=worker is not None)
        # The store is closed next.
        warming.join(_WARM_UP_SECONDS)


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
    runs less often (it took a tenth of the processor time).
    """
    gc.collect()
    gc.freeze()
    gc.set_threshold(_OBJECTS_A_COLLECTION)
    limit_arenas()


def announced_address(host: str, bound: socket.socket, links: PageLinks | None) -> tuple[str, str]:
    """The address under which this machine reaches a server, and that of its page."""
    name = "localhost" if host in _ALL_ADDRESSES else f"[{host}]" if ":" in host else host
    url = f"http://{name}:{bound.getsockname()[1]}"
    return url, page_address(url, links)
