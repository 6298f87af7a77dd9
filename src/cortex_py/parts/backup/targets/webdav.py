"""A folder of a WebDAV server as a target, over one connection with answers of bounded size, in bounded time."""

from __future__ import annotations

import logging
import re
import secrets
import ssl
import threading
from base64 import b64encode
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager, suppress
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from email.utils import parsedate_to_datetime
from time import monotonic
from typing import TYPE_CHECKING, Any, NamedTuple
from urllib.parse import quote, unquote, urlsplit
from xml.etree import ElementTree

from ....core.errors import ConfigurationError
from ....core.remote import deadline, open_client, retry_after
from .target import (
    StoredObject,
    TargetProblem,
    Trouble,
    check_name,
    check_prefix,
    is_name,
    problem_of_status,
    retry_request,
    too_large,
)

if TYPE_CHECKING:
    import httpx2

__all__ = ["WebDavTarget"]


# Only the status of an error answer is used.
_FAULT_BYTES = 65_536


class AnswerTooLarge(Exception):
    """The answer has more bytes than allowed; the rest was not read."""


@dataclass(frozen=True, slots=True)
class HttpAnswer:
    status: int
    headers: Mapping[str, str]
    body: bytes

    @property
    def after(self) -> float | None:
        """The seconds to wait before a retry, if the server says so."""
        return retry_after(self.headers.get("retry-after"))


class HttpConnection:
    """Threads may share it; their requests run one after the other. Redirects are not followed."""

    def __init__(self, headers: Mapping[str, str], *, direct: bool, encrypted: bool) -> None:
        """`direct` bypasses every proxy, for servers on this machine."""
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
    ) -> HttpAnswer:
        """Send one request and return its answer within `seconds`; AnswerTooLarge above `limit` bytes."""
        import httpx2

        with self._lock, deadline(seconds, self._socket) as end:
            client = self._connected()
            request = client.build_request(
                method,
                url,
                headers={**self._headers, **(headers or {})},
                content=content,
                timeout=httpx2.Timeout(seconds),
                extensions={"trace": end.watch},
            )
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
                raise TargetProblem(Trouble.TIMED_OUT, retryable=True, undone=undone) from None
            except httpx2.RequestError:
                # A connection closed by the timer looks the same as one that broke.
                trouble = Trouble.TIMED_OUT if end.reached else Trouble.BROKEN_OFF
                raise TargetProblem(trouble, retryable=True) from None
            finally:
                self._socket = end.socket
        if end.reached:
            raise TargetProblem(Trouble.TIMED_OUT)
        return answer

    def close(self) -> None:
        with self._lock:
            client, self._client = self._client, None
            if client is not None:
                client.close()

    def _whole(self, response: httpx2.Response, limit: int) -> HttpAnswer:
        encoding = response.headers.get("content-encoding", "identity")
        if encoding != "identity":
            # It was not asked for, and it could unpack to any size.
            raise TargetProblem(Trouble.REFUSED, status=response.status_code)
        body = bytearray()
        if response.is_success and int(response.headers.get("content-length") or 0) > limit:
            raise AnswerTooLarge
        for part in response.iter_raw(_FAULT_BYTES):
            if len(body) + len(part) > limit:
                if response.is_success:
                    raise AnswerTooLarge
                break
            body += part
        return HttpAnswer(response.status_code, response.headers, bytes(body))

    def _connected(self) -> httpx2.Client:
        import httpx2

        if self._client is None:
            limits = httpx2.Limits(max_connections=1, max_keepalive_connections=1)
            self._client = open_client(limits, direct=self._direct, encrypted=self._encrypted)
        if self._client is None:
            raise ConfigurationError(
                "The proxy or the certificates that the environment names cannot be used.",
                remedy="Check HTTPS_PROXY, ALL_PROXY and SSL_CERT_FILE.",
            )
        return self._client

    @staticmethod
    def _unconnected(error: BaseException) -> TargetProblem:
        cause: BaseException | None = error
        while cause is not None:
            if isinstance(cause, ssl.SSLError):
                return TargetProblem(Trouble.TLS, undone=True)
            cause = cause.__cause__ or cause.__context__
        return TargetProblem(Trouble.UNREACHABLE, retryable=True, undone=True)


logger = logging.getLogger(__name__)

QUESTION = (
    b'<?xml version="1.0" encoding="utf-8"?>'
    b'<propfind xmlns="DAV:"><prop><resourcetype/><getcontentlength/><getlastmodified/></prop></propfind>'
)


_DRAFT = re.compile(r"\.[a-z0-9._-]+-[a-z0-9]{16}\.part")
_DRAFT_AGE = timedelta(days=1)
_MOST_LISTED = 1_000_000
_LISTING_BYTES = 64_000_000
# Of an answer to PROPFIND; a file has about ten elements, six deep.
_MOST_ELEMENTS = 2_000_000
_DEEPEST = 50
_PIECE_BYTES = 1 << 16
# Answers of servers that cannot rename a file, or that are behind a proxy which changes addresses.
_CANNOT_MOVE = (400, 405, 501, 502)


class WebDavTarget:
    """Objects are files. Each is sent under the name of a draft and renamed when it is complete."""

    def __init__(
        self, origin: str, path: str, *, user: str | None, password: str | None, timeout: float, loopback: bool
    ) -> None:
        """`origin` is scheme and host, `path` the decoded folder without slashes at its ends."""
        self._origin = origin
        self._root = f"/{path}" if path else ""
        self.shown = self._origin + self._root
        self._timeout = timeout
        headers = {}
        if user is not None:
            headers["Authorization"] = "Basic " + b64encode(f"{user}:{password}".encode()).decode()
        self._connection = HttpConnection(headers, direct=loopback, encrypted=origin.startswith("https:"))

    def put(self, name: str, data: bytes) -> None:
        check_name(name)
        retry_request(self.shown, self._timeout, lambda seconds: self._write(name, data, seconds, replace=True))

    def create(self, name: str, data: bytes) -> bool:
        """Write an object unless it exists, which is checked before and again at the rename.

        The server decides the latter between writers as well as it can: the protocol promises no more.
        """
        check_name(name)

        def write(seconds: float) -> bool:
            end = monotonic() + seconds
            with _without_effect():
                if self._resource(name, seconds) is not None:
                    return False
            return self._write(name, data, end - monotonic(), replace=False)

        return retry_request(self.shown, self._timeout, write, repeatable=False)

    def get(self, name: str, limit: int) -> bytes | None:
        check_name(name)

        def read(seconds: float) -> bytes | None:
            try:
                answer = self._connection.ask("GET", self._url(name), seconds=seconds, limit=limit)
            except AnswerTooLarge:
                raise too_large(self.shown, name, limit) from None
            if answer.status in (404, 410):
                return None
            return _checked(answer, 200).body

        return retry_request(self.shown, self._timeout, read)

    def list(self, prefix: str) -> Iterator[StoredObject]:
        check_prefix(prefix)
        found = retry_request(self.shown, self._timeout, lambda seconds: self._listed(prefix, seconds))
        return iter(sorted(found))

    def delete(self, name: str) -> None:
        check_name(name)

        def remove(seconds: float) -> None:
            end = monotonic() + seconds
            there = self._resource(name, seconds)
            # Deleting a folder would delete everything in it.
            if there is not None and not there.folder:
                self._remove(name, end - monotonic())

        retry_request(self.shown, self._timeout, remove)

    def close(self) -> None:
        self._connection.close()

    def _url(self, name: str) -> str:
        return self._origin + quote(f"{self._root}/{name}" if name else f"{self._root}/")

    def _write(self, name: str, data: bytes, seconds: float, *, replace: bool) -> bool:
        end = monotonic() + seconds
        folder, slash, own = name.rpartition("/")
        draft = f"{folder}{slash}.{own}-{secrets.token_hex(8)}.part"
        with _without_effect():
            # A draft is not listed.
            self._sent(draft, data, end)
        moved = self._connection.ask(
            "MOVE",
            self._url(draft),
            headers={"Destination": self._url(name), "Overwrite": "T" if replace else "F"},
            seconds=_left(end),
        )
        if moved.status in (201, 204):
            return True
        problem = problem_of_status(moved.status, after=moved.after)
        with suppress(TargetProblem):
            # If the draft is still there, the server did not move it.
            problem.undone = self._resource(draft, _left(end)) is not None
            self._remove(draft, _left(end))
        if moved.status == 412 and not replace:
            return False
        if moved.status in _CANNOT_MOVE:
            condition = {} if replace else {"If-None-Match": "*"}
            answer = self._connection.ask("PUT", self._url(name), headers=condition, content=data, seconds=_left(end))
            if answer.status == 412 and not replace:
                return False
            _checked(answer, 200, 201, 204)
            return True
        raise problem

    def _sent(self, draft: str, data: bytes, end: float) -> None:
        answer = self._connection.ask("PUT", self._url(draft), content=data, seconds=_left(end))
        if answer.status in (403, 404, 409):
            # The folder is missing, which servers report in different ways.
            self._make_folders(draft.rpartition("/")[0], end)
            answer = self._connection.ask("PUT", self._url(draft), content=data, seconds=_left(end))
        _checked(answer, 200, 201, 204)

    def _make_folders(self, folder: str, end: float) -> None:
        parts = folder.split("/") if folder else []
        for count in range(len(parts) + 1):
            made = "/".join(parts[:count])
            address = self._url(f"{made}/" if made else "")
            # The answer is ignored: servers differ, and the next request shows whether the folder exists.
            self._connection.ask("MKCOL", address, seconds=_left(end))

    def _remove(self, name: str, seconds: float) -> None:
        _checked(self._connection.ask("DELETE", self._url(name), seconds=seconds), 200, 202, 204, 404, 410)

    def _resource(self, name: str, seconds: float) -> Resource | None:
        found, _ = self._asked_for(name, "0", seconds)
        return found[0] if found else None

    def _asked_for(self, name: str, depth: str, seconds: float) -> tuple[Sequence[Resource], datetime]:
        """The resources at a name, and the server's time."""
        headers = {"Depth": depth, "Content-Type": "application/xml"}
        try:
            answer = self._connection.ask(
                "PROPFIND", self._url(name), headers=headers, content=QUESTION, seconds=seconds, limit=_LISTING_BYTES
            )
        except AnswerTooLarge:
            raise TargetProblem(Trouble.FOREIGN) from None
        now = moment(answer.headers.get("date", "")) or datetime.now(UTC)
        if answer.status in (404, 410):
            return [], now
        return [*resources(_checked(answer, 207).body)], now

    def _listed(self, prefix: str, seconds: float) -> set[StoredObject]:
        end = monotonic() + seconds
        found: set[StoredObject] = set()
        above, slash, _ = prefix.rpartition("/")
        waiting = {above + slash}
        seen = set(waiting)
        while waiting:
            folder = waiting.pop()
            inside, now = self._asked_for(folder, "1", _left(end))
            for one in inside:
                # Only resources of the folder itself: the answer can contain anything.
                parent, _, own = one.path.rpartition("/")
                if f"{parent}/" != f"{self._root}/{folder}":
                    continue
                name = folder + own
                if _DRAFT.fullmatch(own) and not one.folder:
                    if one.changed is not None and now - one.changed > _DRAFT_AGE:
                        try:
                            self._remove(name, _left(end))
                        except TargetProblem as problem:
                            logger.debug("an old draft stays in the target: %s", problem.trouble.name)
                elif not is_name(name):
                    continue
                elif not one.folder:
                    if name.startswith(prefix):
                        found.add(StoredObject(name, one.size))
                elif f"{name}/".startswith(prefix) or prefix.startswith(f"{name}/"):
                    waiting |= {f"{name}/"} - seen
                    seen.add(f"{name}/")
            if len(found) + len(seen) > _MOST_LISTED:
                raise TargetProblem(Trouble.FOREIGN)
        return found


def _checked(answer: HttpAnswer, *wanted: int) -> HttpAnswer:
    if answer.status not in wanted:
        raise problem_of_status(answer.status, after=answer.after)
    return answer


@contextmanager
def _without_effect() -> Iterator[None]:
    """Faults inside have changed nothing."""
    try:
        yield
    except TargetProblem as problem:
        problem.undone = True
        raise


def _left(end: float) -> float:
    """The seconds left; raises if there are none."""
    left = end - monotonic()
    if left <= 0:
        raise TargetProblem(Trouble.TIMED_OUT)
    return left


# -- answers to PROPFIND ----------------------------------------------------------------------------


class Resource(NamedTuple):
    """A file or a folder; `path` is its decoded path on the server, without a trailing slash."""

    path: str
    folder: bool
    size: int
    changed: datetime | None


class _Plain(ElementTree.TreeBuilder):
    """Refuses documents that define entities, or have more elements than a list of files: they can fill the memory."""

    def __init__(self) -> None:
        super().__init__()
        self._depth = self._elements = 0

    def doctype(self, *_: object) -> None:
        raise TargetProblem(Trouble.REFUSED)

    def start(self, tag: str, attrs: dict[str, str]) -> ElementTree.Element:
        self._depth += 1
        self._elements += 1
        if self._depth > _DEEPEST or self._elements > _MOST_ELEMENTS:
            raise TargetProblem(Trouble.REFUSED)
        return super().start(tag, attrs)

    def end(self, tag: str) -> ElementTree.Element:
        self._depth -= 1
        return super().end(tag)


def resources(document: bytes) -> Iterator[Resource]:
    """The resources in an answer of status 207; what cannot be parsed is left out."""
    parser = ElementTree.XMLParser(target=_Plain())
    try:
        # Piece by piece: the parser goes to the end of a piece although it was told to stop.
        for begin in range(0, len(document), _PIECE_BYTES):
            parser.feed(document[begin : begin + _PIECE_BYTES])
        root = parser.close()
    except (ElementTree.ParseError, LookupError, ValueError):
        raise TargetProblem(Trouble.REFUSED) from None
    for response in root.iter("{DAV:}response"):
        try:
            path = unquote(urlsplit(response.findtext("{DAV:}href", "").strip()).path, errors="strict")
        except ValueError:
            continue
        size = _first(response, "{DAV:}getcontentlength")
        yield Resource(
            path=path.rstrip("/"),
            folder=response.find(".//{DAV:}resourcetype/{DAV:}collection") is not None,
            size=int(size) if size.isascii() and size.isdigit() and len(size) < 19 else 0,
            changed=moment(_first(response, "{DAV:}getlastmodified")),
        )


def moment(text: str) -> datetime | None:
    """A date in the format of HTTP."""
    try:
        found = parsedate_to_datetime(text)
    except (ValueError, OverflowError):
        return None
    return found.replace(tzinfo=found.tzinfo or UTC)


def _first(response: ElementTree.Element, tag: str) -> str:
    return next((one.text or "" for one in response.iter(tag)), "").strip()
