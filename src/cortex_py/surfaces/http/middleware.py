"""What every request passes before it reaches the server, outermost first:

its line in the log (`RequestLog`), the count and bound of requests at work (`DrainGuard`), clean headers with one host
and origin that can be read in one way only (`PlainHeaders`), the token where one is set (`BearerToken`; known callers
are in `callers`), bounds on its body (`BodyLimit`), and a check that it is a message of the protocol (`WellFormed`).
"""

from __future__ import annotations

import asyncio
import hmac
import ipaddress
import logging
import math
import random
import re
import time
from abc import ABC, abstractmethod
from collections.abc import Awaitable, Callable, Iterator
from contextlib import contextmanager
from typing import Any

import anyio
from starlette.datastructures import Headers
from starlette.responses import JSONResponse, Response
from starlette.types import ASGIApp, Message, Receive, Scope, Send

from ...core.errors import CALLED_FROM_ELSEWHERE, RateLimited
from ...core.jobs import span
from ...core.security.rate_limit import TokenBuckets
from ..mcp.middleware.logs import REQUEST_ID
from ..mcp.stdio.frames import Malformed, error_line, read_frame
from .access import EVENTS_PATH, MCP_PATH, is_open, route_of, takes_long_texts

__all__ = [
    "HTTP_METHODS", "MOST_HELD_BYTES", "SMALL_BODY_BYTES", "BearerToken", "BodyLimit", "DrainGuard", "DrainState",
    "PlainHeaders", "RequestGuard", "RequestLog", "WellFormed", "WrongTokens", "bearer", "error_response",
    "for_callers_elsewhere", "read_whole_body",
]  # fmt: skip

HTTP_METHODS = frozenset(("GET", "HEAD", "POST", "PUT", "PATCH", "DELETE", "OPTIONS"))
# The id that a proxy in front of the server may have given the request.
_ID = re.compile(r"[A-Za-z0-9._-]{1,64}")

# Answered while the server drains too, so that operators and load balancers can follow.
_ALWAYS = frozenset(("/health/live", "/health/ready", "/metrics"))
_TICK_SECONDS = 0.02

# A body on a route that takes no long texts: a form, a decision, a list of ids.
SMALL_BODY_BYTES = 16_384
# The bodies that a process holds at one time, together. Four of the largest fit; without a bound, as many as there are
# requests at work would: 12 GB. What is made of a body takes a few times its size.
MOST_HELD_BYTES = 256_000_000

_WRONG_TOKENS_A_MINUTE = 30
_PAUSE_SECONDS = 1.0
_MOST_PAUSED = 16

_log = logging.getLogger(__name__)


class RequestGuard(ABC):
    """A layer before an application, for its requests."""

    def __init__(self, app: ASGIApp) -> None:
        self.app = app

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        await (self.guard if scope["type"] == "http" else self.app)(scope, receive, send)

    @abstractmethod
    async def guard(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Answer a request, or pass it on to the application."""


class RequestLog(RequestGuard):
    """Gives each request its id, its span and its line in the log. They never contain its content or its token."""

    async def guard(self, scope: Scope, receive: Receive, send: Send) -> None:
        headers = Headers(scope=scope)
        given = headers.get("x-request-id", "")
        # No secret: it only tells requests apart. The system's own random numbers would let other threads go first.
        request_id = given if given and _ID.fullmatch(given) else f"{random.getrandbits(64):016x}"
        path = route_of(scope["path"]) or "other"
        method = scope["method"] if scope["method"] in HTTP_METHODS else "other"
        status, began = 0, time.perf_counter()

        async def send_with_id(message: Message) -> None:
            nonlocal status
            if message["type"] == "http.response.start":
                status = message["status"]
                message = with_header(message, b"x-request-id", request_id.encode())
            await send(message)

        token = REQUEST_ID.set(request_id)
        try:
            attributes = {"http.request.method": method, "http.route": path, "cortex.request_id": request_id}
            # The caller's own span, by the standard's headers. It only names a parent, so anybody may send it.
            caller = {name: headers[name] for name in ("traceparent", "tracestate") if name in headers}
            with span(f"{method} {path}", attributes, caller):
                await self.app(scope, receive, send_with_id)
        finally:
            details = {"method": method, "path": path, "status": status}
            _log.info("request", extra={**details, "seconds": round(time.perf_counter() - began, 6)})
            REQUEST_ID.reset(token)


def with_header(message: Message, name: bytes, value: bytes) -> Message:
    """The beginning of an answer, with one more header."""
    return {**message, "headers": [*message.get("headers", ()), (name, value)]}


class DrainState:
    """Whether the server is about to stop, and how many requests it has not answered yet."""

    def __init__(self) -> None:
        self.begun = False
        self.in_flight = 0
        self.streams = 0

    def count(self, change: int, stream: bool) -> None:
        if stream:
            self.streams += change
        else:
            self.in_flight += change

    def begin(self) -> None:
        self.begun = True

    async def wait_until_idle(self, seconds: float, hurried: Callable[[], bool]) -> bool:
        """Wait until nothing is in flight, for a limited time; whether that was reached."""
        until = time.monotonic() + seconds
        while self.in_flight and not hurried() and time.monotonic() < until:
            await asyncio.sleep(_TICK_SECONDS)
        return not self.in_flight


class DrainGuard(RequestGuard):
    """Counts requests, and refuses new ones while the server drains or is full.

    While it drains the port stays open, so that a load balancer sees it. Streams of watchers are counted apart: they
    stay open as long as their client, so they are ended and not waited for.
    """

    def __init__(self, app: ASGIApp, draining: DrainState, most_requests: int, most_streams: int) -> None:
        super().__init__(app)
        self._draining = draining
        self._most_requests = most_requests
        self._most_streams = most_streams

    async def guard(self, scope: Scope, receive: Receive, send: Send) -> None:
        state, stream = self._draining, _is_stream(scope)
        if scope["path"] not in _ALWAYS:
            full = state.streams >= self._most_streams if stream else state.in_flight >= self._most_requests
            if state.begun or full:
                code, message = (
                    ("DRAINING", "This server is about to stop.")
                    if state.begun
                    else ("TOO_MANY_REQUESTS", "This server has as many requests as it can take.")
                )
                headers = {"Connection": "close", "Retry-After": "1"}
                answer = error_response(503, code, f"{message} Nothing was done; try again.", headers)
                await answer(scope, receive, send)
                return

        async def send_and_close(message: Message) -> None:
            if message["type"] == "http.response.start" and state.begun:
                # The request came before draining began: this connection takes no further one.
                message = with_header(message, b"connection", b"close")
            await send(message)

        state.count(1, stream)
        try:
            await self.app(scope, receive, send_and_close)
        finally:
            state.count(-1, stream)


def _is_stream(scope: Scope) -> bool:
    """Whether the answer lasts as long as the client: notifications, with or without a session."""
    if scope["path"] != MCP_PATH:
        return bool(scope["path"] == EVENTS_PATH)
    return scope["method"] == "GET" or (b"mcp-method", b"subscriptions/listen") in scope["headers"]


def error_response(status: int, code: str, message: str, headers: dict[str, str] | None = None) -> JSONResponse:
    """An error in the form that all guards and health pages use."""
    return JSONResponse({"error": {"code": code, "message": message}}, status_code=status, headers=headers)


def bearer(scope: Scope) -> str | None:
    """The token that a request carries."""
    kind, _, given = Headers(scope=scope).get("authorization", "").partition(" ")
    return given.strip() or None if kind.lower() == "bearer" else None


class WrongTokens:
    """Slows down addresses that keep sending wrong tokens. A right token is never delayed.

    The clients behind one proxy share an address, so one that guesses must not shut out the others.
    """

    def __init__(self, per_minute: int = _WRONG_TOKENS_A_MINUTE, pause: float = _PAUSE_SECONDS) -> None:
        self._buckets = TokenBuckets(per_minute)
        self._pause = pause
        self._paused = 0

    async def answer(self, scope: Scope, usual: Response) -> Response:
        """The answer to a wrong token: the usual one, or after too many of them 429, with a delay."""
        try:
            self._buckets.take(_network(scope))
            return usual
        except RateLimited as error:
            wait = max(1, math.ceil(error.retry_after))
        if self._paused < _MOST_PAUSED:
            self._paused += 1
            try:
                await anyio.sleep(self._pause)
            finally:
                self._paused -= 1
        headers = {"Retry-After": str(wait), "Connection": "close"}
        return error_response(429, "RATE_LIMITED", f"Too many wrong tokens. Wait {wait} s.", headers)


def _network(scope: Scope) -> str:
    """Where a request comes from: an IPv4 address, or the network of an IPv6 address, which belongs to one client."""
    host = (scope.get("client") or ("",))[0]
    try:
        address = ipaddress.ip_address(host)
    except ValueError:
        return str(host)
    return str(ipaddress.ip_network((address, 64), strict=False)) if address.version == 6 else host


class BearerToken(RequestGuard):
    """Lets through only requests that carry the token."""

    def __init__(self, app: ASGIApp, token: str) -> None:
        super().__init__(app)
        self._token = token.encode()
        self._wrong = WrongTokens()

    async def guard(self, scope: Scope, receive: Receive, send: Send) -> None:
        if not is_open(scope["path"]):
            given = bearer(scope)
            if not hmac.compare_digest((given or "").encode(), self._token):
                message = "Send the header Authorization: Bearer <token>."
                response: Response = error_response(401, "UNAUTHORIZED", message, {"WWW-Authenticate": "Bearer"})
                if given:
                    response = await self._wrong.answer(scope, response)
                await response(scope, receive, send)
                return
        with for_callers_elsewhere():
            await self.app(scope, receive, send)


@contextmanager
def for_callers_elsewhere() -> Iterator[None]:
    """Around a request with a token: errors of the store do not say where it is."""
    before = CALLED_FROM_ELSEWHERE.set(True)
    try:
        yield
    finally:
        CALLED_FROM_ELSEWHERE.reset(before)


class BodyLimit(RequestGuard):
    """Refuses bodies larger than the bound of their route, by their announced and by their actual size.

    It also bounds what all requests hold together. A small body is always taken: the bound on requests at work is
    enough for those, and a client that sends large ones must not keep out everybody else.
    """

    def __init__(
        self, app: ASGIApp, most: int, small: int = SMALL_BODY_BYTES, most_held: int = MOST_HELD_BYTES
    ) -> None:
        """`most` is for the routes that take long texts, `small` for all others."""
        super().__init__(app)
        self._most = most
        self._small = min(small, most)
        self._most_held = most_held
        self._held = 0

    async def guard(self, scope: Scope, receive: Receive, send: Send) -> None:
        most = self._most if takes_long_texts(scope["path"]) else self._small
        announced = Headers(scope=scope).get("content-length", "")
        refusal = self._refusal(int(announced), 0, most) if announced.isdigit() else None
        if refusal is not None:
            await refusal(scope, receive, send)
            return
        taken, answered = 0, False

        async def receive_counted() -> Message:
            nonlocal taken
            message = await receive()
            if more := len(message.get("body", b"")):
                refusal = self._refusal(more, taken, most)
                if refusal is not None:
                    raise _Refused(refusal)
                taken += more
                self._held += more
            return message

        async def send_noted(message: Message) -> None:
            nonlocal answered
            answered = True
            await send(message)

        try:
            await self.app(scope, receive_counted, send_noted)
        except _Refused as refused:
            if not answered:
                await refused.answer(scope, receive, send)
        finally:
            # Until here, the application may hold the body or what it made of it.
            self._held -= taken

    def _refusal(self, more: int, taken: int, most: int) -> JSONResponse | None:
        """Why a request that has sent `taken` bytes may not send so many more; None if it may."""
        if taken + more > most:
            error = {"code": -32600, "message": f"The body is larger than {most} bytes."}
            return JSONResponse({"jsonrpc": "2.0", "id": None, "error": error}, status_code=413)
        if taken + more > self._small and self._held + more > self._most_held:
            message = "This server holds as many large requests as it can. Nothing was done; try again."
            return error_response(503, "TOO_MANY_BODIES", message, {"Retry-After": "1"})
        return None


class _Refused(Exception):
    def __init__(self, answer: JSONResponse) -> None:
        super().__init__()
        self.answer = answer


# One name or address, and a port. Readers that are content with less disagree on what `127.0.0.1:1@name` names.
_HOST = r"(?:[A-Za-z0-9._-]{1,253}|\[[0-9A-Fa-f:.]{2,45}\])(?::[0-9]{1,5})?"
_ONE_HOST = re.compile(_HOST)
_ONE_ORIGIN = re.compile(rf"null|[A-Za-z][A-Za-z0-9+.-]{{0,30}}://{_HOST}")


class PlainHeaders(RequestGuard):
    """Strips blanks around header values, since not every HTTP parser does.

    Refuses a host or origin that comes twice, or not in its plain form. `hosts` compares their names.
    """

    async def guard(self, scope: Scope, receive: Receive, send: Send) -> None:
        scope["headers"] = [(name, value.strip(b" \t")) for name, value in scope["headers"]]
        headers = Headers(scope=scope)
        hosts, origins = headers.getlist("host"), headers.getlist("origin")
        answer: ASGIApp = self.app
        # None at all is what probes of load balancers send.
        if len(hosts) > 1 or not all(map(_ONE_HOST.fullmatch, hosts)):
            answer = error_response(400, "BAD_HOST", "Send one header Host, as NAME or NAME:PORT.")
        elif len(origins) > 1 or not all(map(_ONE_ORIGIN.fullmatch, origins)):
            answer = error_response(403, "BAD_ORIGIN", "Send one header Origin at most, as SCHEME://NAME:PORT.")
        await answer(scope, receive, send)


# Answers a message, or returns False and has sent nothing.
Answer = Callable[[Scope, dict[str, Any], Send], Awaitable[bool]]


class WellFormed(RequestGuard):
    """Refuses what is not a message, with the same errors as the stdio server; the framework lets some of it pass.

    A message that `answer` answers goes no further.
    """

    def __init__(self, app: ASGIApp, path: str, answer: Answer | None = None) -> None:
        super().__init__(app)
        self._path = path
        self._answer = answer

    async def guard(self, scope: Scope, receive: Receive, send: Send) -> None:
        if scope["method"] != "POST" or scope["path"] != self._path:
            await self.app(scope, receive, send)
            return
        body = await read_whole_body(receive)
        if body is None:
            return
        try:
            frame = read_frame(body)
        except Malformed as fault:
            line = error_line(fault.id, fault.code, str(fault))
            await Response(line, status_code=400, media_type="application/json")(scope, receive, send)
            return
        if self._answer is not None and await self._answer(scope, frame.message, send):
            return
        unread: list[Message] = [{"type": "http.request", "body": body, "more_body": False}]

        async def receive_again() -> Message:
            return unread.pop() if unread else await receive()

        await self.app(scope, receive_again, send)


async def read_whole_body(receive: Receive) -> bytes | None:
    """The body, or None if the client left before its end."""
    parts: list[bytes] = []
    while (message := await receive())["type"] == "http.request":
        parts.append(message.get("body", b""))
        if not message.get("more_body", False):
            return b"".join(parts)
    return None
