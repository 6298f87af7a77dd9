"""`cortex serve --http`: the protocol at `/mcp` and plain pages beside it, on one port."""

from __future__ import annotations

import signal
import socket
from collections.abc import Callable
from typing import TYPE_CHECKING

import uvicorn
from starlette.middleware import Middleware
from starlette.types import ASGIApp

from ..errors import InvalidInput
from ..mcp.logs import quiet_logs
from ..mcp.server import build_server
from ..mcp.stdio import MOST_BYTES
from .exposure import check_exposure
from .guards import BearerToken, BodyLimit
from .routes import health_routes

if TYPE_CHECKING:
    from ..app import Cortex

__all__ = ["MCP_PATH", "build_app", "serve_http"]

MCP_PATH = "/mcp"
_GRACE_SECONDS = 3


def build_app(cortex: Cortex, host: str = "127.0.0.1") -> ASGIApp:
    """The whole HTTP application over an opened Cortex."""
    settings = cortex.settings
    check_exposure(host, settings.token)
    guards = [Middleware(BodyLimit, most=MOST_BYTES)]
    if settings.token:
        guards.insert(0, Middleware(BearerToken, token=settings.token))
    app = build_server(cortex).http_app(
        path=MCP_PATH,
        middleware=guards,
        host_origin_protection=True,
        allowed_hosts=[*settings.allowed_hosts, *([] if _is_unspecified(host) else [host])],
    )
    app.router.routes.extend(health_routes(cortex))
    return app


def _is_unspecified(host: str) -> bool:
    return host in ("0.0.0.0", "::", "")


def serve_http(cortex: Cortex, host: str, port: int, started: Callable[[str], None]) -> None:
    """Serve until a signal comes. `started` is given the address once connections are taken."""
    quiet_logs()
    app = build_app(cortex, host)
    with _bound(host, port) as bound:
        config = uvicorn.Config(
            app, log_config=None, access_log=False, timeout_graceful_shutdown=_GRACE_SECONDS, lifespan="on", ws="none"
        )
        server = uvicorn.Server(config)

        # The server has handlers of its own while it runs; these are for before, and for the signal it hands on after.
        def stop(*_: object) -> None:
            server.should_exit = True

        for name in (signal.SIGTERM, signal.SIGINT):
            signal.signal(name, stop)
        started(f"http://{f'[{host}]' if ':' in host else host}:{bound.getsockname()[1]}")
        server.run(sockets=[bound])


def _bound(host: str, port: int) -> socket.socket:
    """A socket on the port. Bound here, so that a port in use is told in plain words."""
    try:
        family = socket.getaddrinfo(host, port, type=socket.SOCK_STREAM)[0][0]
        return socket.create_server((host, port), family=family, backlog=512)
    except OSError as error:
        raise InvalidInput(
            f"Port {port} of {host} cannot be used: {error.strerror or error}.",
            remedy="Choose another --port.",
            field="port",
        ) from error
