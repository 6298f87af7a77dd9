"""What a request must pass before it reaches the server: a token where one is set, a bound on its size, and sense."""

from __future__ import annotations

import hmac

from starlette.datastructures import Headers
from starlette.responses import JSONResponse, Response
from starlette.types import ASGIApp, Message, Receive, Scope, Send

from ..mcp.frames import Malformed, error_line, read_frame
from .page_scopes import OPEN_PATHS

__all__ = ["BearerToken", "BodyLimit", "TrimmedHeaders", "WellFormed"]


class BearerToken:
    """Lets through only requests that carry the token."""

    def __init__(self, app: ASGIApp, token: str) -> None:
        self._app = app
        self._token = token.encode()

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        if scope["type"] == "http" and scope["path"] not in OPEN_PATHS and not self._carries_token(scope):
            body = {"error": {"code": "UNAUTHORIZED", "message": "Send the header Authorization: Bearer <token>."}}
            response = JSONResponse(body, status_code=401, headers={"WWW-Authenticate": "Bearer"})
            await response(scope, receive, send)
            return
        await self._app(scope, receive, send)

    def _carries_token(self, scope: Scope) -> bool:
        kind, _, given = Headers(scope=scope).get("authorization", "").partition(" ")
        return kind.lower() == "bearer" and hmac.compare_digest(given.strip().encode(), self._token)


class BodyLimit:
    """Refuses bodies larger than a bound, by what is announced and by what arrives."""

    def __init__(self, app: ASGIApp, most: int) -> None:
        self._app = app
        self._most = most

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        if scope["type"] != "http":
            await self._app(scope, receive, send)
            return
        announced = Headers(scope=scope).get("content-length", "0")
        if announced.isdigit() and int(announced) > self._most:
            await self._refusal()(scope, receive, send)
            return
        taken, answered = 0, False

        async def counted() -> Message:
            nonlocal taken
            message = await receive()
            taken += len(message.get("body", b""))
            if taken > self._most:
                raise _TooLarge
            return message

        async def watched(message: Message) -> None:
            nonlocal answered
            answered = True
            await send(message)

        try:
            await self._app(scope, counted, watched)
        except _TooLarge:
            if not answered:
                await self._refusal()(scope, receive, send)

    def _refusal(self) -> JSONResponse:
        error = {"code": -32600, "message": f"The body is larger than {self._most} bytes."}
        return JSONResponse({"jsonrpc": "2.0", "id": None, "error": error}, status_code=413)


class _TooLarge(Exception):
    pass


class TrimmedHeaders:
    """Takes the blanks around header values away; not every parser of HTTP does."""

    def __init__(self, app: ASGIApp) -> None:
        self._app = app

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        if scope["type"] == "http":
            scope["headers"] = [(name, value.strip(b" \t")) for name, value in scope["headers"]]
        await self._app(scope, receive, send)


class WellFormed:
    """Refuses what is no message with the same words as the stdio server; the framework lets some of it pass."""

    def __init__(self, app: ASGIApp, path: str) -> None:
        self._app = app
        self._path = path

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        if scope["type"] != "http" or scope["method"] != "POST" or scope["path"] != self._path:
            await self._app(scope, receive, send)
            return
        body = await _whole_body(receive)
        if body is None:
            return
        try:
            read_frame(body)
        except Malformed as fault:
            line = error_line(fault.id, fault.code, str(fault))
            await Response(line, status_code=400, media_type="application/json")(scope, receive, send)
            return
        unread: list[Message] = [{"type": "http.request", "body": body, "more_body": False}]

        async def again() -> Message:
            return unread.pop() if unread else await receive()

        await self._app(scope, again, send)


async def _whole_body(receive: Receive) -> bytes | None:
    """The body, or nothing if the client went away before its end."""
    parts: list[bytes] = []
    while (message := await receive())["type"] == "http.request":
        parts.append(message.get("body", b""))
        if not message.get("more_body", False):
            return b"".join(parts)
    return None
