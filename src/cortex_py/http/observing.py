"""Every HTTP request as seen from outside: its id, its span, its line in the log. Never its contents or its token."""

from __future__ import annotations

import logging
import re
import secrets
import time

from starlette.datastructures import Headers
from starlette.types import ASGIApp, Message, Receive, Scope, Send

from ..mcp.logs import REQUEST_ID
from ..tracing import span
from .page_scopes import MCP_PATH, OPEN_PATHS, PAGE_SCOPES

__all__ = ["Observed"]

_PATHS = frozenset((MCP_PATH, *OPEN_PATHS, *PAGE_SCOPES))
_METHODS = frozenset(("GET", "HEAD", "POST", "PUT", "PATCH", "DELETE", "OPTIONS"))
# What a proxy before us may have named the request.
_ID = re.compile(r"[A-Za-z0-9._-]{1,64}")

_log = logging.getLogger(__name__)


class Observed:
    def __init__(self, app: ASGIApp) -> None:
        self._app = app

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        if scope["type"] != "http":
            await self._app(scope, receive, send)
            return
        headers = Headers(scope=scope)
        given = headers.get("x-request-id", "")
        request_id = given if _ID.fullmatch(given) else secrets.token_hex(8)
        path = scope["path"] if scope["path"] in _PATHS else "other"
        method = scope["method"] if scope["method"] in _METHODS else "other"
        status, began = 0, time.perf_counter()

        async def noted(message: Message) -> None:
            nonlocal status
            if message["type"] == "http.response.start":
                status = message["status"]
                told = [*message.get("headers", ()), (b"x-request-id", request_id.encode())]
                message = {**message, "headers": told}
            await send(message)

        named = REQUEST_ID.set(request_id)
        try:
            attributes = {"http.request.method": method, "http.route": path, "cortex.request_id": request_id}
            with span(f"{method} {path}", attributes, _caller(headers)):
                await self._app(scope, receive, noted)
        finally:
            details = {"method": method, "path": path, "status": status}
            _log.info("request", extra={**details, "seconds": round(time.perf_counter() - began, 6)})
            REQUEST_ID.reset(named)


def _caller(headers: Headers) -> dict[str, str]:
    """The span that the caller is in, by the standard's headers; of a stranger too, for it only gives a name."""
    return {name: headers[name] for name in ("traceparent", "tracestate") if name in headers}
