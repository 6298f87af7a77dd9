"""The instant front of the stdio server: it answers the first requests while the server loads behind it.

Standard library only. The front owns standard input for the whole life of the process; it answers the
handshake and the lists from the snapshot, keeps everything else in order until the server is there, and
then only passes lines on. What is no message it answers itself, before and after.
"""

from __future__ import annotations

import threading
from collections.abc import Callable, Iterable
from typing import Any, Protocol

from ..errors import CortexError, wire_form
from .frames import (
    INTERNAL_ERROR,
    INVALID_REQUEST,
    Frame,
    Malformed,
    TooLong,
    error_line,
    read_frame,
    result_line,
)
from .snapshot import Snapshot

__all__ = ["Backend", "Front"]

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

    def __init__(self, write: Callable[[bytes], None], snapshot: Snapshot) -> None:
        self._write = write
        self._snapshot = snapshot
        self._change = threading.Condition()
        self._backend: Backend | None = None
        self._failure: BaseException | None = None
        self._asked = False
        self._waiting: list[Frame] = []
        self._open: set[str | int] = set()
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

    def _handle(self, frame: Frame) -> None:
        with self._change:
            if frame.is_request:
                # Only requests wait: what ends one must get through.
                self._change.wait_for(lambda: self._backend is None or len(self._open) < _MOST_OPEN)
            if self._backend is None:
                self._handle_alone(frame)
                return
            self._note(frame)
            self._backend.feed(frame.message)

    def _handle_alone(self, frame: Frame) -> None:
        """While there is no server: answer what is known, refuse if loading failed, keep the rest."""
        if self._failure is not None:
            if frame.is_request:
                self._write(_refusal(frame.id, self._failure))
            return
        first = frame.is_request and not self._asked
        self._asked |= frame.is_request
        result = self._snapshot.answer(frame)
        if result is not None:
            self._write(result_line(frame.id, result))
            # The server decides by the first request which protocol it speaks, and by the handshake which
            # version, so it must see them too, in their place.
            if first or frame.method == "initialize":
                self._waiting.append(self._silenced_copy(frame))
        elif not self._withdrawn(frame):
            self._waiting.append(frame)

    def _silenced_copy(self, frame: Frame) -> Frame:
        """The same request under an id of ours, whose answer is kept back: the client may use its own again."""
        id = f"cortex:answered:{len(self._silenced)}"
        self._silenced.add(id)
        return Frame({**frame.message, "id": id})

    def _withdrawn(self, frame: Frame) -> bool:
        """Whether this cancels a request that still waits; then neither is kept."""
        if frame.method != "notifications/cancelled":
            return False
        kept = [one for one in self._waiting if not (one.is_request and one.id == frame.params.get("requestId"))]
        found = len(kept) < len(self._waiting)
        self._waiting = kept
        return found

    def _note(self, frame: Frame) -> None:
        if not frame.is_request or frame.id is None or frame.id in self._silenced or frame.method in _ENDLESS:
            return
        self._open.add(frame.id)

    # -- from the server -------------------------------------------------------------------------

    def serve(self, backend: Backend) -> None:
        """The server is there: give it what has waited, in order, and pass everything on from now."""
        with self._change:
            for frame in self._waiting:
                self._note(frame)
                backend.feed(frame.message)
            self._waiting.clear()
            self._backend = backend
            self._change.notify_all()

    def fail(self, error: BaseException) -> None:
        """The server could not be loaded, or has died: all that is unanswered, and all that comes, is told why."""
        with self._change:
            self._failure, self._backend = error, None
            for id in (*self._open, *self._waiting_ids()):
                self._write(_refusal(id, error))
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
                self._open.discard(id)
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
        return not self._open and not self._waiting_ids()

    def _waiting_ids(self) -> list[str | int]:
        """The requests among what waits; a notification is no reason to stay."""
        ids = [frame.id for frame in self._waiting if frame.is_request]
        return [id for id in ids if id is not None and id not in self._silenced]


def _refusal(id: str | int | None, error: BaseException) -> bytes:
    data: dict[str, Any] = {"error": type(error).__name__}
    if isinstance(error, CortexError):
        code, message = wire_form(error).subcog, str(error)
        if error.remedy:
            data["remedy"] = error.remedy
    else:
        code, message = INTERNAL_ERROR, f"The server does not run: {str(error) or type(error).__name__}"
    return error_line(id, code, message, data)
