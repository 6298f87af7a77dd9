"""Requests to external endpoints: addresses and keys, one request, retries, and errors.

The key goes into one header and nowhere else: no message about an endpoint shows it. The HTTP client is loaded with the
first request.
"""

from __future__ import annotations

import ipaddress
import json
import logging
import math
import random
import threading
import time
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import KW_ONLY, dataclass
from datetime import UTC, datetime
from email.utils import parsedate_to_datetime
from typing import TYPE_CHECKING, Any, TypeVar
from urllib.parse import urlsplit

from .errors import ConfigurationError

if TYPE_CHECKING:
    import httpx2

logger = logging.getLogger(__name__)

T = TypeVar("T")

_CONNECT_SECONDS = 10.0
_RETRYABLE = frozenset({408, 429, 500, 502, 503, 504, 529})
_REASON_LENGTH = 300
# Several times what vectors for one request take. Read as JSON, an answer can need 25 times its bytes.
_MOST_BYTES = 16_000_000
# A longer wait is somebody's mistake or malice.
_LONGEST_WAIT = 86_400.0


@dataclass(eq=False, repr=False)
class RemoteProblem(Exception):
    """A failed request; the caller turns it into an error of its own.

    `status` is the answer's status, if there was one. `retryable`: another attempt may help, `after` so many seconds if
    the endpoint says so. `timed_out`: the endpoint may have processed the request all the same.
    """

    message: str
    _: KW_ONLY
    status: int | None = None
    retryable: bool = False
    after: float | None = None
    timed_out: bool = False

    def __str__(self) -> str:
        return self.message

    @property
    def when(self) -> str:
        """Advice on when to try again."""
        return f"Try again {f'in {self.after:.0f} seconds' if self.after else 'later'}."


@dataclass(frozen=True, slots=True)
class RetryPolicy:
    """How often and how long to try. No attempt starts after `seconds`; no pause is longer than `longest`."""

    attempts: int = 4
    seconds: float = 90.0
    first: float = 0.5
    longest: float = 30.0
    sleep: Callable[[float], None] = time.sleep


def retry(attempt: Callable[[], T], policy: RetryPolicy) -> T:
    """The result of `attempt`, after as many attempts as make sense; else the last RemoteProblem."""
    pause = policy.first
    last_start = time.monotonic() + policy.seconds
    for number in range(1, policy.attempts + 1):
        try:
            return attempt()
        except RemoteProblem as problem:
            # Jitter, so that clients that were refused together do not come back together.
            wait = pause * random.uniform(0.75, 1.25) if problem.after is None else problem.after
            hopeless = not problem.retryable or number == policy.attempts or wait > policy.longest
            if hopeless or time.monotonic() + wait > last_start:
                raise
        policy.sleep(wait)
        pause *= 2
    raise ValueError("at least one attempt is needed")


@dataclass(frozen=True, slots=True)
class Address:
    """The URL of an endpoint, the host it is named by, and who can listen on the way."""

    url: str
    host: str
    encrypted: bool
    loopback: bool


def read_address(url: str, path: str, *, setting: str, key_setting: str) -> Address:
    """The address of `path` below the one that was set, which may already end in the beginning of `path`."""
    try:
        parts = urlsplit(url.strip())
        port = f":{parts.port}" if parts.port else ""
    except ValueError:
        parts, port = urlsplit(""), ""
    if parts.scheme not in ("http", "https") or not parts.hostname or parts.username or parts.password:
        raise ConfigurationError(
            f"{setting} is not the address of an endpoint.",
            remedy=f"Give it as https://HOST/v1, and a key as {key_setting}.",
            field=setting,
        )
    return Address(
        url=parts._replace(path=_joined(parts.path.rstrip("/"), path), fragment="").geturl(),
        host=f"{parts.hostname}{port}",
        encrypted=parts.scheme == "https",
        loopback=is_loopback(parts.hostname),
    )


def _joined(base: str, path: str) -> str:
    steps = path.split("/")
    for count in range(len(steps), 1, -1):
        begun = "/".join(steps[:count])
        if base.endswith(begun):
            return base + path[len(begun) :]
    return base + path


def is_loopback(name: str) -> bool:
    if name == "localhost":
        return True
    try:
        return ipaddress.ip_address(name).is_loopback
    except ValueError:
        return False


def check_key(key: str, *, setting: str) -> str:
    """The key, if it can be one."""
    if not key.isascii() or not key.isprintable() or " " in key:
        # Checked here, because the error of the HTTP client would show the key.
        raise ConfigurationError(
            f"{setting} contains characters that no key has.",
            remedy="Give it without spaces and line breaks.",
            field=setting,
        )
    return key


class Endpoint:
    """One address that takes JSON and answers JSON. Safe to share between threads.

    Without `keep_alive` every request has its own connection.
    """

    def __init__(
        self,
        address: Address,
        *,
        key: str | None = None,
        headers: Mapping[str, str] | None = None,
        keep_alive: bool = True,
        most_bytes: int = _MOST_BYTES,
    ) -> None:
        """`key` is the secret inside `headers`, which is never shown."""
        self.address = address
        self._key = key
        self._headers = dict(headers or {})
        self._keep_alive = keep_alive
        self._most_bytes = most_bytes
        self._lock = threading.Lock()
        self._idle: list[_Line] = []

    def __repr__(self) -> str:
        return f"Endpoint({self.address.host!r})"

    def post(self, question: Mapping[str, object], *, silence: float, total: float | None = None) -> Any:
        """The decoded answer to one request; RemoteProblem for everything else.

        `silence` limits the time without data, `total` the time of the whole request.
        """
        status, headers, body = self._exchanged(json.dumps(question).encode(), silence, total)
        if status != 200:
            raise RemoteProblem(
                f"{self.address.host} answered {status}: {self.reason(body)}",
                status=status,
                retryable=status in _RETRYABLE,
                after=retry_after(headers.get("retry-after")),
            )
        try:
            return json.loads(body)
        except (ValueError, RecursionError):
            raise RemoteProblem(f"{self.address.host} gave an answer that is not JSON.") from None

    def problem_in(self, error: object) -> RemoteProblem:
        """The problem in an answer of status 200 that reports an error all the same."""
        code = error.get("code") if isinstance(error, dict) else None
        status = code if isinstance(code, int) else None
        said = self.reason(json.dumps({"error": error}).encode())
        return RemoteProblem(
            f"{self.address.host} answered with an error: {said}", status=status, retryable=status in _RETRYABLE
        )

    def reason(self, body: bytes) -> str:
        """What the endpoint says went wrong, in whichever of the usual fields."""
        text = body.decode("utf-8", "replace")
        try:
            said = json.loads(text)
        except (ValueError, RecursionError):
            said = text
        if isinstance(said, dict):
            said = said.get("error", said)
        if isinstance(said, dict):
            said = said.get("message") or said.get("detail") or said
        return self.clean_text(str(said))

    def clean_text(self, text: str) -> str:
        """Text of the endpoint on one line, shortened, and without the key, which some servers repeat."""
        clean = " ".join(text.split())
        if self._key:
            clean = clean.replace(self._key, "[key]")
        # No terminal acts on what is left, and it can be written as UTF-8.
        return "".join(char if char.isprintable() else "\ufffd" for char in clean[:_REASON_LENGTH]) or "nothing"

    def close(self) -> None:
        """Close the idle connections; the next use opens new ones."""
        with self._lock:
            idle, self._idle = self._idle, []
        for line in idle:
            line.client.close()

    def _exchanged(self, content: bytes, silence: float, total: float | None) -> tuple[int, httpx2.Headers, bytes]:
        import httpx2

        with self._line() as line:
            with deadline(total, line.socket) as end:
                request = self._request(line.client, content, silence, end)
                try:
                    response = line.client.send(request, stream=True)
                    try:
                        found = response.status_code, response.headers, self._body(response)
                    finally:
                        response.close()
                except httpx2.RequestError as error:
                    problem = f"{type(error).__name__}: {self.clean_text(str(error))}"
                    timed_out = isinstance(error, httpx2.ReadTimeout | httpx2.WriteTimeout)
                else:
                    # An answer that ended and one that was cut off look the same.
                    if not end.reached:
                        line.socket = end.socket
                        return found
            if end.reached:
                problem, timed_out = f"not all of it came within {round(total or 0, 1):g} seconds", True
            raise RemoteProblem(f"{self.address.host} does not answer: {problem}", retryable=True, timed_out=timed_out)

    def _request(self, client: httpx2.Client, content: bytes, silence: float, end: Deadline) -> httpx2.Request:
        import httpx2

        try:
            return client.build_request(
                "POST",
                self.address.url,
                content=content,
                headers={"Content-Type": "application/json", **self._headers},
                timeout=httpx2.Timeout(silence, connect=min(_CONNECT_SECONDS, silence)),
                extensions={"trace": end.watch},
            )
        except httpx2.InvalidURL as error:
            raise RemoteProblem(f"{self.address.host} cannot be asked: {self.clean_text(str(error))}") from None

    def _body(self, response: httpx2.Response) -> bytes:
        parts, size = [], 0
        for part in response.iter_bytes():
            size += len(part)
            if size > self._most_bytes:
                raise RemoteProblem(f"{self.address.host} gave an answer of more than {self._most_bytes:,} bytes.")
            parts.append(part)
        return b"".join(parts)

    @contextmanager
    def _line(self) -> Iterator[_Line]:
        """A connection for one request, kept for the next one unless something went wrong."""
        with self._lock:
            line = self._idle.pop() if self._idle else None
        line = line or self._opened()
        try:
            yield line
        except BaseException:
            line.client.close()
            raise
        with self._lock:
            self._idle.append(line)

    def _opened(self) -> _Line:
        import httpx2

        limits = httpx2.Limits(max_connections=1, max_keepalive_connections=1 if self._keep_alive else 0)
        client = open_client(limits, direct=self.address.loopback, encrypted=self.address.encrypted)
        if client is None:
            raise RemoteProblem(
                f"{self.address.host} cannot be asked: the proxy or the certificates that the environment "
                "names cannot be used."
            )
        return _Line(client)


@dataclass(slots=True)
class _Line:
    """A client with one connection: so a request that reuses the connection knows what to close in time."""

    client: httpx2.Client
    socket: Any = None


def open_client(limits: httpx2.Limits, *, direct: bool, encrypted: bool) -> httpx2.Client | None:
    """An HTTP client; None if the proxy or the certificates that the environment names cannot be used.

    `direct` bypasses every proxy, for servers on this machine. Redirects are not followed: they would carry
    credentials elsewhere. The reason of a failure is not reported: the address of a proxy may contain a password.
    """
    import ssl

    import httpx2

    try:
        transport = None
        if direct:
            # Loading the certificates takes longer than a local answer, and plain HTTP needs none.
            verify = True if encrypted else ssl.SSLContext(ssl.PROTOCOL_TLS_CLIENT)
            transport = httpx2.HTTPTransport(verify=verify, limits=limits)
        return httpx2.Client(transport=transport, limits=limits, follow_redirects=False)
    except (ImportError, OSError, ValueError, httpx2.InvalidURL) as error:
        logger.debug("no HTTP client could be opened: %s", type(error).__name__)
        return None


class Deadline:
    """Closes a connection when its time is over, whatever it is waiting for."""

    def __init__(self, socket: Any = None) -> None:
        self.reached = False
        self.socket = socket
        self._lock = threading.Lock()

    def watch(self, event: str, info: Mapping[str, Any]) -> None:
        """Called by the HTTP client with every event; remembers a connection as soon as there is one."""
        if event.endswith(("connect_tcp.complete", "start_tls.complete")):
            with self._lock:
                self.socket = info["return_value"].get_extra_info("socket")
                if self.reached:
                    self._shut()

    def reach(self) -> None:
        with self._lock:
            self.reached = True
            self._shut()

    def _shut(self) -> None:
        import socket

        if self.socket is not None:
            try:
                # Not the method of a TLS socket, which would end the encryption first.
                socket.socket.shutdown(self.socket, socket.SHUT_RDWR)
            except OSError as error:
                logger.debug("the connection was closed before its time was over: %s", type(error).__name__)


@contextmanager
def deadline(seconds: float | None, socket: Any = None) -> Iterator[Deadline]:
    """Limit the time of one request; `socket` is the connection that it may reuse."""
    end = Deadline(socket)
    if seconds is None:
        yield end
        return
    timer = threading.Timer(seconds, end.reach)
    timer.daemon = True
    timer.start()
    try:
        yield end
    finally:
        timer.cancel()


def retry_after(value: str | None) -> float | None:
    """The seconds to wait, given as a number or a date; None if it is neither."""
    try:
        seconds = float(value or "")
    except ValueError:
        try:
            moment = parsedate_to_datetime(value or "")
            seconds = (moment.replace(tzinfo=moment.tzinfo or UTC) - datetime.now(UTC)).total_seconds()
        except (ValueError, OverflowError):
            return None
    return min(max(0.0, seconds), _LONGEST_WAIT) if math.isfinite(seconds) else None
