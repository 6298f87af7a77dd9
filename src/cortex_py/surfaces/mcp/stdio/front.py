"""The instant front of the stdio server: it answers the first requests while the server loads behind it.

Standard library only. The front owns standard input for the whole life of the process. It answers the handshake and the
lists from the snapshot, keeps everything else in order until the server is loaded, and then only passes lines on. It
always answers invalid messages itself.
"""

from __future__ import annotations

import json
import threading
from collections.abc import Callable, Iterable, Sequence
from pathlib import Path
from typing import Any, Protocol

from ....core.echo import describe_error
from ....core.errors import CortexError, StorageError, wire_form
from ....version import __version__
from ..app_views import announces_apps, with_views
from ..error_forms import error_result
from ..registry import TOOL_BY_NAME, ToolSpec
from .frames import (
    INTERNAL_ERROR,
    INVALID_REQUEST,
    Malformed,
    MessageFrame,
    TooLong,
    error_line,
    read_frame,
    result_line,
)

__all__ = [
    "HANDSHAKE_VERSIONS",
    "LISTS",
    "MODERN_VERSIONS",
    "SNAPSHOT_FILE",
    "AnswerSnapshot",
    "Backend",
    "Front",
    "envelope",
]  # fmt: skip

# Requests under way at one time; a client that sends more waits for answers.
_MOST_OPEN = 512
# A stream of notifications stays open until the client ends it.
_ENDLESS = frozenset(("subscriptions/listen",))


class Backend(Protocol):
    """The loaded server, as the front sees it."""

    def feed(self, message: dict[str, Any]) -> None:
        """Take one message. Called from other threads than the server's."""
        ...


class Front:
    """Between one client and one server. `write` takes whole lines and may be called from any thread."""

    def __init__(self, write: Callable[[bytes], None], snapshot: AnswerSnapshot) -> None:
        self._write = write
        self._snapshot = snapshot
        self._change = threading.Condition()
        self._backend: Backend | None = None
        self._failure: BaseException | None = None
        self._asked = False
        self._waiting: list[MessageFrame] = []
        # The tool that each request under way calls; empty for one that calls none.
        self._open: dict[str | int, str] = {}
        self._silenced: set[str | int] = set()

    # -- from the client -------------------------------------------------------------------------

    def take(self, lines: Iterable[bytes | TooLong], most: int) -> None:
        """Handle lines until there are no more."""
        for line in lines:
            if isinstance(line, TooLong):
                self._write(error_line(None, INVALID_REQUEST, f"The message is larger than {most} bytes."))
                continue
            try:
                self._handle(read_frame(line))
            except Malformed as fault:
                self._write(error_line(fault.id, fault.code, str(fault)))

    def _handle(self, frame: MessageFrame) -> None:
        with self._change:
            if frame.is_request:
                # Only requests wait: what ends one must get through.
                self._change.wait_for(lambda: self._backend is None or len(self._open) < _MOST_OPEN)
            if self._backend is None:
                self._handle_alone(frame)
                return
            self._note(frame)
            self._backend.feed(frame.message)

    def _handle_alone(self, frame: MessageFrame) -> None:
        """While there is no server: answer from the snapshot, refuse if loading failed, keep the rest."""
        if self._failure is not None:
            if frame.is_request:
                # Where only the store is at fault, a client connects, and learns from every tool what is wrong.
                result = self._snapshot.answer(frame)
                if result is not None and isinstance(self._failure, StorageError):
                    self._write(result_line(frame.id, result))
                else:
                    self._write(self._refusal(frame.id, _called_tool(frame), self._failure))
            return
        first = frame.is_request and not self._asked
        self._asked |= frame.is_request
        result = self._snapshot.answer(frame)
        if result is not None:
            self._write(result_line(frame.id, result))
            # The server chooses the protocol by the first request and the version by the handshake, so it must get
            # them too, in order.
            if first or frame.method == "initialize":
                self._waiting.append(self._silenced_copy(frame))
        elif not self._withdrawn(frame):
            self._waiting.append(frame)

    def _silenced_copy(self, frame: MessageFrame) -> MessageFrame:
        """The same request under an id of ours, whose answer is dropped: the client may use its id again."""
        id = f"cortex:answered:{len(self._silenced)}"
        self._silenced.add(id)
        return MessageFrame({**frame.message, "id": id})

    def _withdrawn(self, frame: MessageFrame) -> bool:
        """Whether this cancels a request that still waits; then both are dropped."""
        if frame.method != "notifications/cancelled":
            return False
        kept = [one for one in self._waiting if not (one.is_request and one.id == frame.params.get("requestId"))]
        found = len(kept) < len(self._waiting)
        self._waiting = kept
        return found

    def _note(self, frame: MessageFrame) -> None:
        if not frame.is_request or frame.id is None or frame.id in self._silenced or frame.method in _ENDLESS:
            return
        self._open[frame.id] = _called_tool(frame)

    # -- from the server -------------------------------------------------------------------------

    def serve(self, backend: Backend) -> None:
        """The server is loaded: give it what has waited, in order, and pass everything on from now on."""
        with self._change:
            for frame in self._waiting:
                self._note(frame)
                backend.feed(frame.message)
            self._waiting.clear()
            self._backend = backend
            self._change.notify_all()

    def fail(self, error: BaseException) -> None:
        """The server could not be loaded, or has died: refuse everything unanswered and everything to come."""
        with self._change:
            self._failure, self._backend = error, None
            waiting = [(frame.id, _called_tool(frame)) for frame in self._waiting_requests()]
            for id, tool in (*self._open.items(), *waiting):
                self._write(self._refusal(id, tool, error))
            self._open.clear()
            self._waiting.clear()
            self._change.notify_all()

    def answer(self, line: bytes, id: str | int | None) -> None:
        """A line of the server on its way out; `id` is that of the request it answers, if it answers one.

        A request that the client has cancelled ends with an empty line.
        """
        with self._change:
            if id is not None and id in self._silenced:
                self._silenced.discard(id)
                return
            if id is not None:
                self._open.pop(id, None)
                self._change.notify_all()
        if line:
            self._write(line)

    # -- the end ---------------------------------------------------------------------------------

    @property
    def idle(self) -> bool:
        """Whether nobody waits for an answer."""
        with self._change:
            return self._is_idle()

    def settle(self, seconds: float) -> None:
        """Wait until all is answered, but no longer than this."""
        with self._change:
            self._change.wait_for(self._is_idle, seconds)

    def _is_idle(self) -> bool:
        return not self._open and not self._waiting_requests()

    def _waiting_requests(self) -> list[MessageFrame]:
        """The requests among what waits; notifications need no answer."""
        return [frame for frame in self._waiting if frame.is_request and frame.id not in self._silenced]

    def _refusal(self, id: str | int | None, tool: str, error: BaseException) -> bytes:
        """Why there is no answer: in the form of the tool's family, else as an error of the protocol."""
        spec = TOOL_BY_NAME.get(tool)
        if spec is not None and isinstance(error, CortexError) and (result := error_result(spec.errors, error)):
            return result_line(id, {**result, "resultType": "complete"} if self._snapshot.is_modern else result)
        return _error_line(id, error)


def _called_tool(frame: MessageFrame) -> str:
    name = frame.params.get("name") if frame.method == "tools/call" else None
    return name if isinstance(name, str) else ""


def _error_line(id: str | int | None, error: BaseException) -> bytes:
    data: dict[str, Any] = {"error": type(error).__name__}
    if isinstance(error, CortexError):
        code, message = wire_form(error).subcog, str(error)
        if error.remedy:
            data["remedy"] = error.remedy
    else:
        code, message = INTERNAL_ERROR, f"The server does not run: {describe_error(error) or type(error).__name__}"
    return error_line(id, code, message, data)


# The server's answers to the handshake and the lists, rendered in advance for use before it is loaded.
#
# `snapshot.json` holds the real server's answers with every tool, for each protocol version; reading it needs only the
# standard library. `make snapshot` writes it, and a test compares it with the running server.

SNAPSHOT_FILE = Path(__file__).with_name("snapshot.json")
HANDSHAKE_VERSIONS = ("2024-11-05", "2025-03-26", "2025-06-18", "2025-11-25")
MODERN_VERSIONS = ("2026-07-28",)
LISTS = ("tools/list", "resources/list", "resources/templates/list")

_PREFIX = "io.modelcontextprotocol/"


def envelope(version: str) -> dict[str, Any]:
    """What every request of the stateless protocol carries."""
    return {"_meta": {f"{_PREFIX}protocolVersion": version, f"{_PREFIX}clientCapabilities": {}}}


class AnswerSnapshot:
    """Answers to the first requests of a client, if they are the plain, usual ones."""

    def __init__(self, results: dict[str, dict[str, Any]], specs: Sequence[ToolSpec], *, portable: bool) -> None:
        self._results = results
        self._names = {spec.name: spec.portable_name if portable else spec.name for spec in specs}
        self._handshake: str | None = None
        self._modern: bool | None = None
        # Whether the client announced at the handshake that it shows views.
        self._shows_views = False

    @classmethod
    def load(cls, specs: Sequence[ToolSpec], *, portable: bool, path: Path = SNAPSHOT_FILE) -> AnswerSnapshot:
        """The snapshot of this version; one of another version, or a damaged one, answers nothing."""
        try:
            results = _results(json.loads(path.read_text("utf-8")))
        except (OSError, ValueError, LookupError, TypeError, AttributeError) as error:
            # Imported only here: the front must start at once.
            import logging

            logging.getLogger(__name__).debug("the snapshot cannot be read: %s", type(error).__name__)
            results = {}
        return cls(results, specs, portable=portable)

    @property
    def is_modern(self) -> bool:
        """Whether the client speaks the stateless protocol, as far as its requests came here."""
        return bool(self._modern)

    def answer(self, frame: MessageFrame) -> dict[str, Any] | None:
        """The result of a request, or None when only the server itself can answer."""
        if not frame.is_request or frame.method is None:
            return None
        if self._modern is None:
            self._modern = _opens_modern(frame)
        version = self._version(frame)
        if version is None:
            return None
        if frame.method == "ping" and version in HANDSHAKE_VERSIONS:
            return {}
        result = self._results.get(version, {}).get(frame.method)
        if frame.method == "tools/list" and result is not None:
            result = {**result, "tools": [self._named(tool) for tool in result["tools"] if tool["name"] in self._names]}
        if result is not None and self._wants_views(frame):
            result = with_views(frame.method, result)
        return result

    def _wants_views(self, frame: MessageFrame) -> bool:
        if self._handshake:
            return self._shows_views
        meta = frame.params.get("_meta")
        return isinstance(meta, dict) and announces_apps(meta.get(f"{_PREFIX}clientCapabilities"))

    def _named(self, tool: dict[str, Any]) -> dict[str, Any]:
        return {**tool, "name": self._names[tool["name"]]}

    def _version(self, frame: MessageFrame) -> str | None:
        """The protocol version a request is made under, if it is the usual request and no more."""
        if frame.method == "initialize":
            return self._begin(frame.params)
        params = dict(frame.params)
        meta = params.pop("_meta", {})
        if params or not isinstance(meta, dict):
            return None
        if self._handshake:
            return self._handshake if f"{_PREFIX}protocolVersion" not in meta else None
        return _modern_version(meta) if self._modern else None

    def _begin(self, params: dict[str, Any]) -> str | None:
        version = params.get("protocolVersion")
        usual = (
            self._handshake is None
            and not self._modern
            and version in self._results
            and version in HANDSHAKE_VERSIONS
            and isinstance(params.get("capabilities"), dict)
            and _is_implementation(params.get("clientInfo"))
        )
        if usual:
            self._handshake = version
            self._shows_views = announces_apps(params["capabilities"])
        return version if usual else None


def _results(content: dict[str, Any]) -> dict[str, dict[str, Any]]:
    """The results by protocol version and method."""
    if content["version"] != __version__:
        return {}
    return {
        version: {method: content["results"][place] for method, place in places.items()}
        for version, places in content["places"].items()
    }


def _opens_modern(frame: MessageFrame) -> bool:
    """Whether a first request makes this a connection of the stateless protocol; it stays one."""
    meta = frame.params.get("_meta")
    return frame.method != "initialize" and isinstance(meta, dict) and f"{_PREFIX}protocolVersion" in meta


def _modern_version(meta: dict[str, Any]) -> str | None:
    version = meta.get(f"{_PREFIX}protocolVersion")
    info = meta.get(f"{_PREFIX}clientInfo")
    usual = (
        version in MODERN_VERSIONS
        and isinstance(meta.get(f"{_PREFIX}clientCapabilities"), dict)
        and (info is None or _is_implementation(info))
    )
    return version if usual else None


def _is_implementation(value: object) -> bool:
    return isinstance(value, dict) and isinstance(value.get("name"), str) and isinstance(value.get("version"), str)
