"""Sessions of the page: the one-time link that begins one, its cookie, and the guard that turns it into a caller.

A session stands for the token that its person signed in with. The guard puts that token into the request, so that the
guards behind it decide about people and programs alike. On a server without tokens, a session shows that its browser
was opened by the owner of the home: `cortex ui` signs the link with a key that only the owner can read.
"""

from __future__ import annotations

import contextlib
import hashlib
import hmac
import json
import os
import secrets
import threading
import time
from collections import OrderedDict
from collections.abc import Callable
from dataclasses import dataclass, field, replace
from http.cookies import CookieError, SimpleCookie
from pathlib import Path
from urllib.parse import parse_qs, urlsplit

import anyio.to_thread
from starlette.datastructures import Headers
from starlette.responses import JSONResponse, Response
from starlette.types import ASGIApp, Receive, Scope, Send

from ...core.config import Settings
from ...core.errors import AccessDenied, StorageError
from ...core.paths import read_whole
from ...core.security.key_file import KeyFile
from ..web.views import sign_in_page
from .access import SESSION_PATH, VIEW_PATHS, is_page, route_of
from .middleware import RequestGuard, WrongTokens, bearer, error_response, read_whole_body

__all__ = [
    "CSRF_HEADER", "SESSION_KEY", "PageGuard", "PageLinks", "PageSession", "PageSessions", "SessionPage", "SharedPage",
    "accepts_token", "html_response", "page_address", "page_key",
]  # fmt: skip

# Where the guard leaves the session, in the request's scope.
SESSION_KEY = "cortex.page_session"
CSRF_HEADER = "Cortex-CSRF"

_LINK_SECONDS = 600
_IDLE_SECONDS = 12 * 3600.0
_MOST_SESSIONS = 1_000
# Of the files that workers share: the bytes of a nonce, the size of a file, and how often its use is noted.
_NONCE = 12
_MOST_BYTES = 100_000
_TOUCH_SECONDS = 60.0
_LONGEST_NONCE = 200
_READING = ("GET", "HEAD", "OPTIONS")

# Nothing inline, nothing from elsewhere, and no text that could become markup: scripts cannot even ask for that.
_POLICY = (
    "default-src 'none'; script-src 'self'; style-src 'self'; img-src 'self'; connect-src 'self'; form-action 'self'; "
    "base-uri 'none'; frame-ancestors 'none'; require-trusted-types-for 'script'; trusted-types 'none'"
)
_HEADERS = {
    "Content-Security-Policy": _POLICY,
    "Cross-Origin-Opener-Policy": "same-origin",
    "Cross-Origin-Resource-Policy": "same-origin",
    "Referrer-Policy": "no-referrer",
    "X-Content-Type-Options": "nosniff",
    "X-Frame-Options": "DENY",
    "Cache-Control": "no-store",
}


def html_response(text: str, status: int = 200) -> Response:
    """A view as an answer, with the headers that every view has."""
    return Response(text, status, _HEADERS, "text/html; charset=utf-8")


@dataclass(frozen=True, slots=True)
class PageSession:
    """One browser that signed in. `token` is what it signed in with; None on a server without tokens."""

    csrf: str
    token: str | None
    used_at: float


class PageSessions:
    """The open sessions of one process; those that are idle for half a day end."""

    def __init__(self, now: Callable[[], float] = time.monotonic) -> None:
        self._now = now
        self._lock = threading.Lock()
        self._open: OrderedDict[str, PageSession] = OrderedDict()

    def begin(self, token: str | None) -> str:
        """The secret of a new session, for its cookie."""
        secret = secrets.token_urlsafe(32)
        self._keep(_digest(secret), PageSession(secrets.token_urlsafe(24), token, self._now()))
        return secret

    def find(self, secret: str | None) -> PageSession | None:
        """An open session, which is in use again."""
        return self._use(_digest(secret)) if secret else None

    def end(self, secret: str | None) -> None:
        if secret:
            self._drop(_digest(secret))

    def _keep(self, digest: str, session: PageSession) -> None:
        with self._lock:
            self._open[digest] = session
            while len(self._open) > _MOST_SESSIONS:
                self._open.popitem(last=False)

    def _use(self, digest: str) -> PageSession | None:
        with self._lock:
            session = self._open.pop(digest, None)
            if session is None or self._now() - session.used_at > _IDLE_SECONDS:
                return None
            session = self._open[digest] = replace(session, used_at=self._now())
            return session

    def _drop(self, digest: str) -> None:
        with self._lock:
            self._open.pop(digest, None)


class _SharedSessions(PageSessions):
    """The sessions of the page, for all workers: encrypted files in a folder that lasts as long as the server."""

    def __init__(self, folder: Path, key: bytes) -> None:
        from cryptography.hazmat.primitives.ciphers.aead import AESGCM

        super().__init__(time.time)
        self._folder = folder
        self._cipher = AESGCM(key)

    def _keep(self, digest: str, session: PageSession) -> None:
        nonce = os.urandom(_NONCE)
        content = json.dumps([session.csrf, session.token]).encode()
        (self._folder / digest).write_bytes(nonce + self._cipher.encrypt(nonce, content, digest.encode()))
        kept = sorted((one.stat().st_mtime, one) for one in self._folder.iterdir() if not one.name.startswith("used-"))
        for _, oldest in kept[: len(kept) - _MOST_SESSIONS]:
            oldest.unlink(missing_ok=True)

    def _use(self, digest: str) -> PageSession | None:
        from cryptography.exceptions import InvalidTag

        path = self._folder / digest
        try:
            used_at, content = path.stat().st_mtime, read_whole(path, _MOST_BYTES)
            csrf, token = json.loads(self._cipher.decrypt(content[:_NONCE], content[_NONCE:], digest.encode()))
        except (OSError, ValueError, InvalidTag):
            return None
        if self._now() - used_at > _IDLE_SECONDS:
            path.unlink(missing_ok=True)
            return None
        if self._now() - used_at > _TOUCH_SECONDS:
            with contextlib.suppress(OSError):
                os.utime(path)
        return PageSession(csrf, token, used_at)

    def _drop(self, digest: str) -> None:
        (self._folder / digest).unlink(missing_ok=True)


def _digest(secret: str) -> str:
    return hashlib.sha256(secret.encode("utf-8", "replace")).hexdigest()


class PageLinks:
    """One-time links, signed with the key of the home, for one run of the server."""

    def __init__(
        self,
        key: bytes,
        run: str | None = None,
        now: Callable[[], float] = time.time,
        first_use: Callable[[str], bool] = lambda _: True,
    ) -> None:
        """`first_use` says whether no other process of this run has redeemed a code."""
        self._key = key
        self._now = now
        self._first_use = first_use
        self.run = run or secrets.token_hex(8)
        self._lock = threading.Lock()
        self._used: dict[str, float] = {}

    def code(self) -> str:
        """A code that opens one session within the next minutes."""
        unsigned = f"{int(self._now()) + _LINK_SECONDS}.{secrets.token_hex(8)}"
        return f"{unsigned}.{self._sign(f'code {self.run} {unsigned}')}"

    def redeem(self, code: str) -> bool:
        """Whether a code is right, in time, and used for the first time."""
        unsigned, _, signature = code.rpartition(".")
        if not hmac.compare_digest(signature.encode(), self._sign(f"code {self.run} {unsigned}").encode()):
            return False
        until, now = float(unsigned.partition(".")[0]), self._now()
        with self._lock:
            self._used = {one: end for one, end in self._used.items() if end > now}
            if until < now or unsigned in self._used:
                return False
            self._used[unsigned] = until
        return self._first_use(unsigned)

    def proof(self, nonce: str) -> str:
        """What shows that this server has the key of the home."""
        return self._sign(f"proof {self.run} {nonce}")

    def _sign(self, text: str) -> str:
        return hmac.new(self._key, text.encode("utf-8", "replace"), "sha256").hexdigest()


@dataclass(frozen=True, slots=True)
class SharedPage:
    """What the workers of one server share about the page."""

    folder: Path
    link_key: bytes
    run: str = field(default_factory=lambda: os.urandom(8).hex())
    session_key: bytes = field(default_factory=lambda: os.urandom(32), repr=False)

    def sessions(self) -> PageSessions:
        return _SharedSessions(self.folder, self.session_key)

    def links(self) -> PageLinks:
        return PageLinks(self.link_key, self.run, first_use=self._first_use)

    def _first_use(self, code: str) -> bool:
        """Whether no worker has seen a code before: only one of them can create its file."""
        try:
            (self.folder / f"used-{hashlib.sha256(code.encode()).hexdigest()}").touch(exist_ok=False)
        except FileExistsError:
            return False
        return True


def page_key(settings: Settings) -> bytes:
    """The key that signs links: in the home, so that `cortex ui` and a server of the same home share it.

    Where the home cannot be written, the key lasts as long as the process, and only the server itself makes links.
    """
    try:
        return KeyFile(settings.home / "page.key", "key of the page").make()
    except StorageError:
        return secrets.token_bytes(32)


def page_address(url: str, links: PageLinks | None) -> str:
    """Where to open the page of a server: with a one-time code, where links are made."""
    return f"{url}{SESSION_PATH}?code={links.code()}" if links else f"{url}/"


class PageGuard(RequestGuard):
    """Lets requests of the page through that carry a session or, on a server with tokens, a token."""

    def __init__(self, app: ASGIApp, sessions: PageSessions, has_tokens: bool) -> None:
        super().__init__(app)
        self._sessions = sessions
        self._has_tokens = has_tokens

    async def guard(self, scope: Scope, receive: Receive, send: Send) -> None:
        answer = self._admit(scope) if is_page(scope["path"]) else None
        await (answer or self.app)(scope, receive, send)

    def _admit(self, scope: Scope) -> Response | None:
        """Bind the session of a request; the refusal where there is none, or where another site may have sent it."""
        session = self._sessions.find(_cookie(scope))
        if session is None:
            if self._has_tokens and bearer(scope):
                return None  # judged by the next guard
            if route_of(scope["path"]) in VIEW_PATHS:
                return html_response(sign_in_page(takes_token=self._has_tokens), 401)
            return error_response(401, "UNAUTHORIZED", "This session has ended. Run `cortex ui` to begin another.")
        if scope["method"] not in _READING:
            given = Headers(scope=scope).get(CSRF_HEADER, "")
            if not _same_origin(scope) or not hmac.compare_digest(given.encode(), session.csrf.encode()):
                return error_response(403, "FORBIDDEN", "This change was not asked for by the page. Reload it.")
        scope[SESSION_KEY] = session
        if session.token:
            headers = [(name, value) for name, value in scope["headers"] if name != b"authorization"]
            scope["headers"] = [*headers, (b"authorization", f"Bearer {session.token}".encode())]
        return None


class SessionPage:
    """`/session`: begin a session by a link or a token, end it, or prove that this server has the key of the home.

    `links` is None where each caller must sign in as themselves; `token` is what a link signs in with. `accepts` says
    whether a token is right; it is None on a server without tokens.
    """

    def __init__(
        self,
        sessions: PageSessions,
        links: PageLinks | None,
        token: str | None = None,
        accepts: Callable[[str], bool] | None = None,
    ) -> None:
        self.sessions = sessions
        self.links = links
        self._token = token
        self._accepts = accepts
        self._wrong = WrongTokens()

    @property
    def takes_tokens(self) -> bool:
        return self._accepts is not None

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        answer = await (self._get(scope) if scope["method"] in _READING else self._change(scope, receive))
        await answer(scope, receive, send)

    async def _get(self, scope: Scope) -> Response:
        query = parse_qs(scope["query_string"].decode("latin-1"))
        code, nonce = query.get("code", [""])[0], query.get("nonce", [""])[0]
        if nonce and self.links is not None:
            return JSONResponse({"run": self.links.run, "proof": self.links.proof(nonce[:_LONGEST_NONCE])})
        tried = bool(code) and self.links is not None and _opens(scope)
        if tried and self.links is not None and self.links.redeem(code):
            return self._signed_in(scope, self._token)
        return html_response(sign_in_page(takes_token=self.takes_tokens, spent_link=tried), 401)

    async def _change(self, scope: Scope, receive: Receive) -> Response:
        if not _same_origin(scope):
            return error_response(403, "FORBIDDEN", "This was not asked for by the page.")
        if scope["method"] == "DELETE":
            self.sessions.end(_cookie(scope))
            return Response(status_code=204, headers={"Set-Cookie": f"{_cookie_name(scope)}=; Path=/; Max-Age=0"})
        if scope["method"] != "POST" or self._accepts is None:
            return error_response(405, "METHOD_NOT_ALLOWED", "Run `cortex ui` for a link to the page.")
        body = await read_whole_body(receive) or b""
        token = parse_qs(body.decode("utf-8", "replace")).get("token", [""])[0].strip()
        is_right: bool = await anyio.to_thread.run_sync(self._accepts, token)
        if is_right:
            return self._signed_in(scope, token)
        return await self._wrong.answer(scope, html_response(sign_in_page(takes_token=True, wrong_token=True), 401))

    def _signed_in(self, scope: Scope, token: str | None) -> Response:
        cookie = f"{_cookie_name(scope)}={self.sessions.begin(token)}; Path=/; HttpOnly; SameSite=Strict"
        if scope.get("scheme") == "https":
            cookie += "; Secure"
        headers = {"Location": "/", "Set-Cookie": cookie, "Cache-Control": "no-store", "Referrer-Policy": "no-referrer"}
        return Response(status_code=303, headers=headers)


def accepts_token(recognised: Callable[[str], object]) -> Callable[[str], bool]:
    """Whether a verifier knows a token."""

    def accepts(token: str) -> bool:
        try:
            recognised(token)
        except AccessDenied:
            return False
        return True

    return accepts


def _cookie_name(scope: Scope) -> str:
    """Browsers share cookies between the ports of a machine, so each server has a name of its own."""
    server = scope.get("server")
    return f"cortex_session_{server[1] if server else 0}"


def _cookie(scope: Scope) -> str | None:
    try:
        found = SimpleCookie(Headers(scope=scope).get("cookie", "")).get(_cookie_name(scope))
    except CookieError:
        return None
    return found.value if found else None


def _opens(scope: Scope) -> bool:
    """Whether somebody opens an address. Previews, scanners and browsers that look ahead must not spend a link."""
    purposes = [Headers(scope=scope).get(name, "") for name in ("sec-purpose", "purpose", "x-purpose", "x-moz")]
    return scope["method"] == "GET" and not any("pre" in purpose.lower() for purpose in purposes)


def _same_origin(scope: Scope) -> bool:
    """Whether the page itself sent a request. A program that is no browser names no origin."""
    headers = Headers(scope=scope)
    origin, site = headers.get("origin"), headers.get("sec-fetch-site", "same-origin")
    if site not in ("same-origin", "none"):
        return False
    return origin is None or urlsplit(origin).netloc.lower() == headers.get("host", "").lower()
