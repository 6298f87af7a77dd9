"""The guard of a server that knows its callers: who it is, how often they come, whether the page is theirs to ask."""

from __future__ import annotations

import logging
import math
from typing import TYPE_CHECKING

import anyio
import anyio.to_thread
from mcp.server.auth.middleware.bearer_auth import AuthenticatedUser
from mcp.server.auth.provider import AccessToken
from starlette.datastructures import Headers
from starlette.responses import JSONResponse
from starlette.types import ASGIApp, Message, Receive, Scope, Send

from ..errors import AccessDenied, CortexError, InvalidInput, ProjectNotFound, RateLimited
from ..mcp.gate import CALLER_KEY, recorded
from ..mcp.meter import Meter
from ..security.buckets import TokenBuckets
from ..security.callers import Caller, acting_as
from .page_scopes import MCP_PATH, OPEN_PATHS, PAGE_SCOPES, page_scope

if TYPE_CHECKING:
    from ..access.authentication import Verifier
    from ..app import Cortex

__all__ = ["PROJECT_HEADER", "KnownCallers"]

# The project that a request is about, by id, remote or name.
PROJECT_HEADER = "Cortex-Project"

# Those who are refused at the door are written down only so often: strangers must not fill the disk.
_REFUSALS_A_MINUTE = 60
_CHECKS_AT_ONCE = 8

_log = logging.getLogger(__name__)


class KnownCallers:
    """Lets through only requests of callers that the verifier knows, and binds each to its caller."""

    def __init__(self, app: ASGIApp, cortex: Cortex, verify: Verifier, *, audited: bool, meter: Meter) -> None:
        self._app = app
        self._meter = meter
        self._cortex = cortex
        self._verify = verify
        self._audited = audited
        self._buckets = TokenBuckets(cortex.settings.subject_rate_limit)
        self._refusals = TokenBuckets(_REFUSALS_A_MINUTE)
        # Of its own, so that a check does not wait behind the work of calls.
        self._checking = anyio.CapacityLimiter(_CHECKS_AT_ONCE)

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        if scope["type"] != "http" or scope["path"] in OPEN_PATHS:
            await self._app(scope, receive, send)
            return
        caller: Caller | None = None
        try:
            caller = await anyio.to_thread.run_sync(self._known, _bearer(scope), limiter=self._checking)
            self._buckets.take(caller.label)
            _require(caller, scope["path"])
            chosen = Headers(scope=scope).get(PROJECT_HEADER, "").strip() or None
            caller = await anyio.to_thread.run_sync(self._verify.admitted, caller, chosen, limiter=self._checking)
        except AccessDenied as error:
            await self._refused(scope, receive, send, caller, error)
            return
        except RateLimited as error:
            wait = {"Retry-After": str(max(1, math.ceil(error.retry_after)))}
            await _told(429, "RATE_LIMITED", error, wait)(scope, receive, send)
            return
        except (ProjectNotFound, InvalidInput) as error:
            status, code = (
                (404, "PROJECT_NOT_FOUND") if isinstance(error, ProjectNotFound) else (400, "INVALID_PROJECT")
            )
            await self._answered(scope, receive, send, caller, _told(status, code, error, {}))
            return
        except CortexError as error:
            await _told(503, type(error).__name__, error, {})(scope, receive, send)
            return
        scope[CALLER_KEY] = caller
        # By this the protocol's sessions belong to whoever began them.
        scope["user"] = AuthenticatedUser(
            AccessToken(token="", client_id=caller.agent or "", scopes=sorted(caller.scopes), subject=caller.user)
        )
        with acting_as(caller):
            if scope["path"] == MCP_PATH or not self._audited:
                # Messages of the protocol are written down one by one, behind this.
                await self._app(scope, receive, send)
            else:
                await self._written_down(scope, receive, send, caller)

    def _known(self, token: str | None) -> Caller:
        if not token:
            raise AccessDenied("Send the header Authorization: Bearer <token>.")
        return self._verify.recognised(token)

    async def _refused(
        self, scope: Scope, receive: Receive, send: Send, caller: Caller | None, error: AccessDenied
    ) -> None:
        if caller is None:
            given = ' error="invalid_token"' if _bearer(scope) else ""
            answer = _told(401, "UNAUTHORIZED", error, {"WWW-Authenticate": f"Bearer{given}"})
        else:
            needed = page_scope(scope["path"])
            missing = f', scope="{needed}"' if needed is not None and needed not in caller.scopes else ""
            told = f'Bearer error="insufficient_scope"{missing}'
            answer = _told(403, "ACCESS_DENIED", error, {"WWW-Authenticate": told})
        await self._answered(scope, receive, send, caller, answer)

    async def _answered(
        self, scope: Scope, receive: Receive, send: Send, caller: Caller | None, answer: JSONResponse
    ) -> None:
        """Turn somebody away, and write that down."""
        await answer(scope, receive, send)
        if self._audited:
            try:
                self._refusals.take("strangers" if caller is None else caller.label)
            except RateLimited:
                _log.warning("refused and, being one of many, not in the audit log: %s", answer.status_code)
                return
            status = str(answer.status_code)
            await recorded(self._cortex, caller, _action(scope), status, [], "http", meter=self._meter)

    async def _written_down(self, scope: Scope, receive: Receive, send: Send, caller: Caller) -> None:
        status = "cancelled"

        async def noted(message: Message) -> None:
            nonlocal status
            if message["type"] == "http.response.start":
                status = str(message["status"])
            await send(message)

        try:
            await self._app(scope, receive, noted)
        finally:
            await recorded(self._cortex, caller, _action(scope), status, [], meter=self._meter)


def _require(caller: Caller, path: str) -> None:
    needed = page_scope(path)
    if needed is not None and needed not in caller.scopes:
        raise AccessDenied(
            f"This page needs the scope {needed}.", remedy="Ask whoever runs this server for a token that has it."
        )


def _bearer(scope: Scope) -> str | None:
    kind, _, given = Headers(scope=scope).get("authorization", "").partition(" ")
    return given.strip() or None if kind.lower() == "bearer" else None


def _action(scope: Scope) -> str:
    """Method and path; a path that is no page of ours is not repeated, it may hold anything."""
    path = scope["path"]
    return f"http:{scope['method'][:10]} {path if path in PAGE_SCOPES or path == MCP_PATH else 'unknown'}"


def _told(status: int, code: str, error: CortexError, headers: dict[str, str]) -> JSONResponse:
    return JSONResponse({"error": {"code": code, "message": str(error)}}, status_code=status, headers=headers)
