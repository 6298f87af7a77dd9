"""Refuses requests that a page of another site sends to a local server: names that point here, and foreign origins."""

from __future__ import annotations

from collections.abc import Sequence
from fnmatch import fnmatchcase
from ipaddress import ip_address
from urllib.parse import urlsplit

from starlette.datastructures import Headers
from starlette.responses import Response
from starlette.types import ASGIApp, Receive, Scope, Send

from ...core.remote import is_loopback
from .middleware import RequestGuard

__all__ = ["HostGuard"]

_LOCAL = ("127.0.0.1", "localhost", "::1")
_PORTS = {"http": 80, "https": 443}


class HostGuard(RequestGuard):
    """`hosts` are names, or patterns of names, beside this machine's own and the address that was reached."""

    def __init__(self, app: ASGIApp, hosts: Sequence[str]) -> None:
        super().__init__(app)
        self._hosts = [_name(one) for one in (*_LOCAL, *hosts)]

    async def guard(self, scope: Scope, receive: Receive, send: Send) -> None:
        headers = Headers(scope=scope)
        host, origin = headers.get("host", ""), headers.get("origin")
        answer: ASGIApp = self.app
        if not self._serves(_name(host), scope):
            answer = Response("Misdirected Request", status_code=421)
        elif origin and not _is_own(origin, host, scope.get("scheme", "http")):
            answer = Response("Forbidden Origin", status_code=403)
        await answer(scope, receive, send)

    def _serves(self, name: str, scope: Scope) -> bool:
        reached = _name(scope["server"][0]) if scope.get("server") else ""
        names = self._hosts if _is_unspecified(reached) else [*self._hosts, reached]
        return any(fnmatchcase(name, one) for one in names)


def _name(host: str) -> str:
    """The name without a port and brackets."""
    host = host.strip().lower()
    if host.startswith("["):
        return host[1:].partition("]")[0] if "]" in host else host
    return host.rpartition(":")[0] if host.count(":") == 1 else host


def _is_unspecified(name: str) -> bool:
    try:
        return not name or ip_address(name).is_unspecified
    except ValueError:
        return False


def _is_own(origin: str, host: str, scheme: str) -> bool:
    """Whether a page comes from this server, or from another one on this machine that was reached as one."""
    try:
        page = urlsplit(origin).hostname or ""
    except ValueError:
        page = ""
    both_local = is_loopback(_name(page)) and is_loopback(_name(host))
    return both_local or _plain(origin) == _plain(f"{scheme}://{host}")


def _plain(origin: str) -> str:
    """An origin with its port, for comparison."""
    origin = origin.strip().rstrip("/").lower()
    try:
        parts = urlsplit(origin)
        port = parts.port or _PORTS.get(parts.scheme)
    except ValueError:
        return origin
    if not parts.hostname or parts.path or parts.query or parts.fragment:
        return origin
    return f"{parts.scheme}://{parts.hostname}:{port}"
