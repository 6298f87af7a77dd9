"""A small HTTP server: `/health`, `/health/live`, `/health/ready` and `/status`, as JSON.

Answers only callers that name this machine, so that a web page elsewhere cannot read it through the
browser.
"""

from __future__ import annotations

import json
from collections.abc import Callable
from dataclasses import asdict
from http import HTTPStatus
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import TYPE_CHECKING
from urllib.parse import urlsplit

from ..errors import CortexError, InvalidInput
from ..version import __version__

if TYPE_CHECKING:
    from ..app import Cortex

__all__ = ["HealthServer"]

_LOOPBACK = {"127.0.0.1", "localhost", "::1"}


class HealthServer(ThreadingHTTPServer):
    """Serves one opened Cortex until `shutdown` is called."""

    daemon_threads = True

    def __init__(self, cortex: Cortex, host: str, port: int) -> None:
        if host not in _LOOPBACK:
            raise InvalidInput(
                f"Refusing to serve on {host!r} without authentication.", remedy="Use 127.0.0.1.", field="host"
            )
        self.cortex = cortex
        try:
            super().__init__((host, port), _Handler)
        except OSError as error:
            raise InvalidInput(
                f"Port {port} of {host} cannot be used: {error.strerror}.",
                remedy="Choose another --port.",
                field="port",
            ) from error

    @property
    def url(self) -> str:
        return f"http://{self.server_address[0]!s}:{self.server_address[1]}"

    def health(self) -> dict[str, object]:
        """What is true now; loads nothing."""
        model = self.cortex.embeddings
        return {
            "status": "healthy",
            "version": __version__,
            "project_id": self.cortex.project.id,
            "model": {"name": model.model_name, "loaded": model.loaded},
        }

    def ready(self) -> dict[str, object]:
        """Whether the store answers and the model is installed; raises what is wrong."""
        status = self.cortex.memories.status()
        return {"status": "ready", "memories": status.total_count, "model": self.cortex.embeddings.fingerprint}


class _Handler(BaseHTTPRequestHandler):
    server: HealthServer
    protocol_version = "HTTP/1.1"

    def do_GET(self) -> None:
        if urlsplit(f"//{self.headers.get('Host', '')}").hostname not in _LOOPBACK:
            self._answer(HTTPStatus.FORBIDDEN, {"error": {"code": "FORBIDDEN", "message": "This host is not served."}})
            return
        pages: dict[str, Callable[[], object]] = {
            "/health": self.server.health,
            "/health/live": lambda: {"status": "live"},
            "/health/ready": self.server.ready,
            "/status": lambda: asdict(self.server.cortex.memories.status()),
        }
        page = pages.get(urlsplit(self.path).path)
        if page is None:
            self._answer(HTTPStatus.NOT_FOUND, {"error": {"code": "NOT_FOUND", "message": f"Try {', '.join(pages)}."}})
            return
        try:
            self._answer(HTTPStatus.OK, page())
        except CortexError as error:
            self._answer(
                HTTPStatus.SERVICE_UNAVAILABLE, {"error": {"code": type(error).__name__, "message": str(error)}}
            )

    def _answer(self, status: HTTPStatus, body: object) -> None:
        payload = json.dumps(body, ensure_ascii=False).encode()
        self.send_response(status)
        self.send_header("Content-Type", "application/json")
        self.send_header("Content-Length", str(len(payload)))
        self.end_headers()
        self.wfile.write(payload)

    def log_message(self, format: str, *args: object) -> None:
        """Requests are not logged: addresses may hold what somebody searched for."""
