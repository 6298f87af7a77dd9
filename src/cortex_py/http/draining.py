"""The end of a server, in order: it says that it goes, takes nothing new, and finishes what it has.

While it drains the port stays open, so that whoever distributes requests is told, and not left to guess.
"""

from __future__ import annotations

import asyncio
import time
from collections.abc import Callable

from starlette.responses import JSONResponse
from starlette.types import ASGIApp, Message, Receive, Scope, Send

from .page_scopes import MCP_PATH

__all__ = ["Draining", "Drains"]

# Whoever watches a server must see how it goes.
_ALWAYS = frozenset(("/health/live", "/health/ready", "/metrics"))
_TICK_SECONDS = 0.02


class Draining:
    """Whether the server is going, and how many requests it has not answered yet."""

    def __init__(self) -> None:
        self.begun = False
        self.in_flight = 0

    def begin(self) -> None:
        self.begun = True

    async def quiet(self, seconds: float, hurried: Callable[[], bool]) -> bool:
        """Wait until nothing is in flight, at most so long; whether it is so."""
        until = time.monotonic() + seconds
        while self.in_flight and not hurried() and time.monotonic() < until:
            await asyncio.sleep(_TICK_SECONDS)
        return not self.in_flight


class Drains:
    """Counts requests, and refuses those that come when the server is going."""

    def __init__(self, app: ASGIApp, draining: Draining) -> None:
        self._app = app
        self._draining = draining

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        if scope["type"] != "http":
            await self._app(scope, receive, send)
            return
        if self._draining.begun and scope["path"] not in _ALWAYS:
            await _refusal()(scope, receive, send)
            return

        async def closing(message: Message) -> None:
            if message["type"] == "http.response.start" and self._draining.begun:
                # Asked for before the end began, answered after: the connection takes no more.
                headers = [*message.get("headers", ()), (b"connection", b"close")]
                message = {**message, "headers": headers}
            await send(message)

        # The stream of a session stays open as long as its client; it is ended, not waited for.
        counts = not (scope["path"] == MCP_PATH and scope["method"] == "GET")
        self._draining.in_flight += counts
        try:
            await self._app(scope, receive, closing)
        finally:
            self._draining.in_flight -= counts


def _refusal() -> JSONResponse:
    body = {"error": {"code": "DRAINING", "message": "This server is about to stop. Nothing was done; try again."}}
    return JSONResponse(body, status_code=503, headers={"Connection": "close", "Retry-After": "1"})
