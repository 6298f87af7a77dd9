"""The guard of a server that knows its callers: who calls, how often, and whether they may read the page."""

from __future__ import annotations

import json
import logging
import math
from typing import TYPE_CHECKING

import anyio
import anyio.to_thread
from mcp.server.auth.middleware.bearer_auth import AuthenticatedUser
from mcp.server.auth.provider import AccessToken
from starlette.datastructures import Headers
from starlette.responses import Response
from starlette.types import ASGIApp, Message, Receive, Scope, Send

from ...core.errors import AccessDenied, CortexError, InvalidInput, ProjectNotFound, RateLimited
from ...core.security.callers import Caller, acting_as
from ...core.security.rate_limit import TokenBuckets
from ..mcp.middleware.access import CALLER_KEY, record_event
from ..mcp.middleware.telemetry import Meter
from .access import MCP_PATH, is_open, page_scope, route_of
from .middleware import RequestGuard, WrongTokens, bearer, error_response, for_callers_elsewhere

if TYPE_CHECKING:
    from ...app import Cortex
    from ...team.access.service import Verifier

__all__ = ["PROJECT_HEADER", "KnownCallers"]

# The project that a request is about, by id, remote or name.
PROJECT_HEADER = "Cortex-Project"

# Refusals in the audit log are bounded, so that strangers cannot fill the disk.
_REFUSALS_A_MINUTE = 60
_CHECKS_AT_ONCE = 8

_log = logging.getLogger(__name__)


class KnownCallers(RequestGuard):
    """Lets through only requests of callers that the verifier knows, and binds each to its caller."""

    def __init__(self, app: ASGIApp, cortex: Cortex, verify: Verifier, *, audited: bool, meter: Meter) -> None:
        super().__init__(app)
        self._meter = meter
        self._cortex = cortex
        self._verify = verify
        self._audited = audited
        self._buckets = TokenBuckets(cortex.settings.subject_rate_limit)
        self._refusals = TokenBuckets(_REFUSALS_A_MINUTE)
        self._wrong = WrongTokens()
        # A limiter of its own, so that checks do not wait for the work of calls.
        self._checking = anyio.CapacityLimiter(_CHECKS_AT_ONCE)

    async def guard(self, scope: Scope, receive: Receive, send: Send) -> None:
        if is_open(scope["path"]):
            await self.app(scope, receive, send)
            return
        with for_callers_elsewhere():
            await self._serve(scope, receive, send)

    async def _serve(self, scope: Scope, receive: Receive, send: Send) -> None:
        caller: Caller | None = None
        try:
            caller = await anyio.to_thread.run_sync(self._known, bearer(scope), limiter=self._checking)
            self._buckets.take(caller.label)
            _require(caller, scope["path"], scope["method"])
            chosen = Headers(scope=scope).get(PROJECT_HEADER, "").strip() or None
            caller = await anyio.to_thread.run_sync(self._verify.admitted, caller, chosen, limiter=self._checking)
        except AccessDenied as error:
            await self._deny(scope, receive, send, caller, error)
            return
        except RateLimited as error:
            wait = {"Retry-After": str(max(1, math.ceil(error.retry_after)))}
            await error_response(429, "RATE_LIMITED", str(error), wait)(scope, receive, send)
            return
        except (ProjectNotFound, InvalidInput) as error:
            unknown = isinstance(error, ProjectNotFound)
            status, code = (404, "PROJECT_NOT_FOUND") if unknown else (400, "INVALID_PROJECT")
            await self._refuse(scope, receive, send, caller, error_response(status, code, str(error)))
            return
        except CortexError as error:
            await error_response(503, type(error).__name__, str(error))(scope, receive, send)
            return
        scope[CALLER_KEY] = caller
        # The protocol's sessions belong to this user in this organisation.
        owner = json.dumps([caller.agent, caller.org])
        scope["user"] = AuthenticatedUser(
            AccessToken(token="", client_id=owner, scopes=sorted(caller.scopes), subject=caller.user)
        )
        with acting_as(caller):
            if scope["path"] == MCP_PATH or not self._audited:
                # Messages of the protocol are recorded one by one, further in.
                await self.app(scope, receive, send)
            else:
                await self._serve_recorded(scope, receive, send, caller)

    def _known(self, token: str | None) -> Caller:
        if not token:
            raise AccessDenied("Send the header Authorization: Bearer <token>.")
        return self._verify.recognised(token)

    async def _deny(
        self, scope: Scope, receive: Receive, send: Send, caller: Caller | None, error: AccessDenied
    ) -> None:
        if caller is None:
            given = bearer(scope)
            invalid = ' error="invalid_token"' if given else ""
            answer: Response = error_response(401, "UNAUTHORIZED", str(error), {"WWW-Authenticate": f"Bearer{invalid}"})
            if given:
                answer = await self._wrong.answer(scope, answer)
        else:
            needed = page_scope(scope["path"], scope["method"])
            missing = f', scope="{needed}"' if needed is not None and needed not in caller.scopes else ""
            challenge = f'Bearer error="insufficient_scope"{missing}'
            answer = error_response(403, "ACCESS_DENIED", str(error), {"WWW-Authenticate": challenge})
        await self._refuse(scope, receive, send, caller, answer)

    async def _refuse(
        self, scope: Scope, receive: Receive, send: Send, caller: Caller | None, answer: Response
    ) -> None:
        """Answer with an error, and record it."""
        await answer(scope, receive, send)
        if self._audited:
            try:
                self._refusals.take("strangers" if caller is None else caller.label)
            except RateLimited:
                _log.warning("one of many refusals, left out of the audit log: %s", answer.status_code)
                return
            status = str(answer.status_code)
            await record_event(self._cortex, caller, _action(scope), status, [], "http", meter=self._meter)

    async def _serve_recorded(self, scope: Scope, receive: Receive, send: Send, caller: Caller) -> None:
        status = "cancelled"

        async def send_noted(message: Message) -> None:
            nonlocal status
            if message["type"] == "http.response.start":
                status = str(message["status"])
            await send(message)

        try:
            await self.app(scope, receive, send_noted)
        finally:
            await record_event(self._cortex, caller, _action(scope), status, [], meter=self._meter)


def _require(caller: Caller, path: str, method: str) -> None:
    needed = page_scope(path, method)
    if needed is not None and needed not in caller.scopes:
        raise AccessDenied(
            f"This page needs the scope {needed}.", remedy="Ask the operator of this server for a token that has it."
        )


def _action(scope: Scope) -> str:
    """Method and path. An unknown path is not repeated, because it may contain anything."""
    return f"http:{scope['method'][:10]} {route_of(scope['path']) or 'unknown'}"
