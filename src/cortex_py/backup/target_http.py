"""One connection to one HTTP server: a request at a time, whole answers of bounded size, in bounded time."""

from __future__ import annotations

import socket
import ssl
import threading
from collections.abc import Iterator, Mapping
from contextlib import contextmanager, suppress
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from ..errors import ConfigurationError
from ..remote import retry_after
from .target_faults import TargetProblem, Trouble

if TYPE_CHECKING:
    import httpx2

__all__ = ["Answer", "HttpLine", "TooMuch"]

# Of an answer that tells of a fault only the status is used.
_FAULT_BYTES = 65_536


class TooMuch(Exception):
    """An answer with more bytes than it may have; it was not read any further."""


@dataclass(frozen=True, slots=True)
class Answer:
    status: int
    headers: Mapping[str, str]
    body: bytes

    @property
    def after(self) -> float | None:
        """In how many seconds to come back, where the server tells."""
        return retry_after(self.headers.get("retry-after"))


class HttpLine:
    """Threads may share it; they are served one after the other. Redirects are not followed."""

    def __init__(self, headers: Mapping[str, str], *, direct: bool, encrypted: bool) -> None:
        """`direct` passes by every proxy, as is right for this machine itself."""
        self._headers = {"Accept-Encoding": "identity", **headers}
        self._direct = direct
        self._encrypted = encrypted
        self._lock = threading.Lock()
        self._client: httpx2.Client | None = None
        self._socket: Any = None

    def ask(
        self,
        method: str,
        url: str,
        *,
        seconds: float,
        limit: int = _FAULT_BYTES,
        headers: Mapping[str, str] | None = None,
        content: bytes | None = None,
    ) -> Answer:
        """The answer to one request, which takes `seconds` at most; TooMuch where it has more bytes than `limit`."""
        import httpx2

        with self._lock:
            client = self._connected()
            request = client.build_request(
                method,
                url,
                headers={**self._headers, **(headers or {})},
                content=content,
                timeout=httpx2.Timeout(seconds),
                extensions={"trace": self._watch},
            )
            with self._ending(seconds) as ended:
                try:
                    response = client.send(request, stream=True)
                    try:
                        answer = self._whole(response, limit)
                    finally:
                        response.close()
                except httpx2.ConnectError as error:
                    raise self._unconnected(error) from None
                except httpx2.TimeoutException as error:
                    undone = isinstance(error, httpx2.ConnectTimeout)
                    raise TargetProblem(Trouble.TIMED_OUT, passing=True, undone=undone) from None
                except httpx2.RequestError:
                    # A connection that was ended for its time looks the same as one that broke.
                    trouble = Trouble.TIMED_OUT if ended.is_set() else Trouble.BROKEN_OFF
                    raise TargetProblem(trouble, passing=True) from None
            if ended.is_set():
                raise TargetProblem(Trouble.TIMED_OUT)
            return answer

    def close(self) -> None:
        with self._lock:
            client, self._client = self._client, None
            if client is not None:
                client.close()

    def _whole(self, response: httpx2.Response, limit: int) -> Answer:
        encoding = response.headers.get("content-encoding", "identity")
        if encoding != "identity":
            # It was not asked for, and what it unpacks to could be of any size.
            raise TargetProblem(Trouble.REFUSED, status=response.status_code)
        body = bytearray()
        if response.is_success and int(response.headers.get("content-length") or 0) > limit:
            raise TooMuch
        for part in response.iter_raw(_FAULT_BYTES):
            if len(body) + len(part) > limit:
                if response.is_success:
                    raise TooMuch
                break
            body += part
        return Answer(response.status_code, response.headers, bytes(body))

    def _connected(self) -> httpx2.Client:
        import httpx2

        if self._client is None:
            limits = httpx2.Limits(max_connections=1, max_keepalive_connections=1)
            try:
                transport = None
                if self._direct:
                    # Reading all certificates takes longer than a local answer, and plain http has no use for them.
                    verify = True if self._encrypted else ssl.SSLContext(ssl.PROTOCOL_TLS_CLIENT)
                    transport = httpx2.HTTPTransport(verify=verify, limits=limits)
                self._client = httpx2.Client(transport=transport, limits=limits, follow_redirects=False)
            except (ImportError, OSError, ValueError, httpx2.InvalidURL):
                # The reason is not told: the address of a proxy may hold a password.
                raise ConfigurationError(
                    "The proxy or the certificates that the environment names cannot be used.",
                    remedy="Check HTTPS_PROXY, ALL_PROXY and SSL_CERT_FILE.",
                ) from None
        return self._client

    def _watch(self, event: str, info: Mapping[str, Any]) -> None:
        """Called by the HTTP client with all it does; there is one connection, and the last one made is it."""
        if event.endswith(("connect_tcp.complete", "start_tls.complete")):
            self._socket = info["return_value"].get_extra_info("socket")

    @contextmanager
    def _ending(self, seconds: float) -> Iterator[threading.Event]:
        """Ends the connection when the time is over, however slowly something still comes."""
        ended = threading.Event()

        def end() -> None:
            ended.set()
            if self._socket is not None:
                with suppress(OSError):
                    # Not the method of a TLS socket, which would first take the encryption away.
                    socket.socket.shutdown(self._socket, socket.SHUT_RDWR)

        timer = threading.Timer(seconds, end)
        timer.daemon = True
        timer.start()
        try:
            yield ended
        finally:
            timer.cancel()

    @staticmethod
    def _unconnected(error: BaseException) -> TargetProblem:
        cause: BaseException | None = error
        while cause is not None:
            if isinstance(cause, ssl.SSLError):
                return TargetProblem(Trouble.TLS, undone=True)
            cause = cause.__cause__ or cause.__context__
        return TargetProblem(Trouble.UNREACHABLE, passing=True, undone=True)
