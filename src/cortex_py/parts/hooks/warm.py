"""A warm process answers hooks on a socket that only its owner can reach; one process for each home at a time.

The first process that takes the lock of the home listens; any server of the home waits to be the next. Where the
listener is, with its bounds, stands in the file `address`, which hooks read.

A hook sends its event as one line of JSON. It gets a receipt once the turn is kept, then the answer, and confirms that
it has passed the answer on, each in a line. What is not confirmed counts as not given.
"""

from __future__ import annotations

import json
import logging
import os
import secrets
import socket
import threading
import time
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import TYPE_CHECKING, Any, Protocol

from ...core.config import Settings
from ...core.echo import describe_error
from ...core.errors import CortexError
from ...version import __version__
from .front import log_line
from .keeper import TurnKeeper

if TYPE_CHECKING:
    from ...app import Cortex

__all__ = ["Answerer", "HookListener", "Keeper", "address_file", "serving_hooks"]

logger = logging.getLogger(__name__)

_MOST_BYTES = 1_000_000
_MOST_AT_ONCE = 16
# Far above what a hook takes: past it, one hangs, and neither other hooks nor the end of the process wait for it.
_LONGEST_HOOK = 60.0
_READ_SECONDS = 2.0
_CONFIRM_SECONDS = 2.0
_POLL_SECONDS = 0.5
_TAKE_OVER_SECONDS = 2.0
# Turns are read while no hook is asked; where hooks come without a break, one turn after each of these waits.
_READ_EVERY_SECONDS = 2.0
_QUIET_SECONDS = 0.1
_LONGEST_QUIET_WAIT = 1.0
_READER_END_SECONDS = 15.0
# The longest path of a socket is 104 bytes on some systems.
_LONGEST_SOCKET = 100


class _Found(Protocol):
    @property
    def text(self) -> str: ...
    @property
    def ids(self) -> tuple[str, ...]: ...


class Keeper(Protocol):
    """What keeps the turns of events: `hooks.keeper.TurnKeeper`."""

    def take(self, event: Mapping[str, Any]) -> Mapping[str, Any]: ...


class Answerer(Protocol):
    """What answers events: `hooks.service.Hooks`, once it is loaded."""

    def answer(self, event: Mapping[str, Any]) -> _Found: ...
    def delivered(self, event: Mapping[str, Any], found: Any) -> None: ...
    def missed(self, event: Mapping[str, Any]) -> None: ...
    def read_turns(self, pause: Callable[[], bool]) -> object: ...


@contextmanager
def serving_hooks(cortex: Cortex) -> Iterator[None]:
    """Answer hooks while a server runs, unless it tells several callers apart: hooks have no caller."""
    if cortex.settings.auth != "token":
        yield
        return
    listener = HookListener(cortex.settings, TurnKeeper(cortex.settings), lambda: cortex.hooks)
    listener.start()
    try:
        yield
    finally:
        listener.close()


def address_file(home: Path) -> Path:
    return home / "hooks" / "address"


class HookListener:
    """Listens for hooks of a home. `answerer` may wait until what answers is loaded; turns are kept at once."""

    def __init__(self, settings: Settings, keeper: Keeper, answerer: Callable[[], Answerer]) -> None:
        self._settings = settings
        self._keeper = keeper
        self._answerer = answerer
        self._stop = threading.Event()
        self._slots = threading.BoundedSemaphore(_MOST_AT_ONCE)
        self._last = time.monotonic()
        self._busy = 0
        self._count = threading.Lock()
        self._thread: threading.Thread | None = None
        self._socket: socket.socket | None = None
        self._token = secrets.token_hex(16)
        # Turns that an earlier process left may be there.
        self._unread = True
        self.outdated = False

    # -- in a server -----------------------------------------------------------------------------

    def start(self) -> None:
        """Listen in a thread, now or as soon as no other process of the home does."""
        self._thread = threading.Thread(target=self._take_turns, name="cortex-hooks", daemon=True)
        self._thread.start()

    def close(self) -> None:
        self._stop.set()
        if self._socket is not None:
            with suppress(OSError):
                # Ends the waiting for the next hook.
                self._socket.shutdown(socket.SHUT_RDWR)
        if self._thread is not None:
            self._thread.join(_POLL_SECONDS * 4)

    def _take_turns(self) -> None:
        while not self._stop.is_set():
            try:
                self.listen()
            except (OSError, CortexError) as error:
                log_line(self._settings.home, f"hooks are not served ({type(error).__name__})")
            self._stop.wait(_TAKE_OVER_SECONDS)

    # -- listening -------------------------------------------------------------------------------

    def listen(self, done: Callable[[], bool] = lambda: False, begun: Callable[[], None] = lambda: None) -> bool:
        """Listen until `done` or `close`; False, without calling `begun`, if another process of the home does."""
        from ...core.files import exclusive_lock

        folder = address_file(self._settings.home).parent
        folder.mkdir(mode=0o700, parents=True, exist_ok=True)
        with exclusive_lock(folder / "lock", "", wait=False) as held:
            if not held:
                return False
            self._socket = listener = self._bind(folder)
            begun()
            over = threading.Event()
            reader = threading.Thread(target=self._read_turns, args=(over,), name="cortex-turns", daemon=True)
            reader.start()
            try:
                self._accept(listener, done)
            finally:
                over.set()
                reader.join(_READER_END_SECONDS)
                self._socket = None
                listener.close()
                self._withdraw(folder)
        return True

    def _bind(self, folder: Path) -> socket.socket:
        path = folder / "socket"
        if hasattr(socket, "AF_UNIX") and len(os.fsencode(path)) <= _LONGEST_SOCKET:
            path.unlink(missing_ok=True)
            listener = socket.socket(socket.AF_UNIX, socket.SOCK_STREAM)
            listener.bind(str(path))
            path.chmod(0o600)
            place: dict[str, Any] = {"socket": str(path)}
        else:
            # A port of this machine; a hook must know the token, which stands in a file that only the owner can read.
            listener = socket.socket(socket.AF_INET, socket.SOCK_STREAM)
            listener.bind(("127.0.0.1", 0))
            place = {"port": listener.getsockname()[1], "token": self._token}
        listener.listen(128)
        listener.settimeout(_POLL_SECONDS)
        place |= {"pid": os.getpid(), "version": __version__, "deadline_ms": self._settings.hook_deadline_ms}
        target = address_file(self._settings.home)
        draft = target.with_name(f".address-{os.getpid()}")
        with os.fdopen(os.open(draft, os.O_WRONLY | os.O_CREAT | os.O_TRUNC, 0o600), "w") as file:
            json.dump(place, file)
        draft.replace(target)
        return listener

    def _withdraw(self, folder: Path) -> None:
        with suppress(OSError):
            (folder / "address").unlink(missing_ok=True)
            (folder / "socket").unlink(missing_ok=True)

    def _accept(self, listener: socket.socket, done: Callable[[], bool]) -> None:
        self._last = time.monotonic()
        while not self._stop.is_set() and not done():
            try:
                connection, _ = listener.accept()
            except TimeoutError:
                continue
            except OSError:
                if self._stop.is_set():
                    return
                raise
            if self._slots.acquire(timeout=_POLL_SECONDS):
                threading.Thread(target=self._serve, args=(connection,), name="cortex-hook", daemon=True).start()
            else:
                # A hook that nobody serves keeps its turn by itself.
                connection.close()

    def _read_turns(self, over: threading.Event) -> None:
        """Read the turns that were kept, in the background, out of the way of hooks."""
        while not over.wait(_READ_EVERY_SECONDS):
            if not self._unread or not self.idle_seconds:
                continue
            self._unread = False
            try:
                self._answerer().read_turns(lambda: self._wait_for_quiet(over))
            except Exception as error:  # noqa: BLE001  # it is tried again with the next turn
                logger.warning("turns were not read: %s: %s", type(error).__name__, describe_error(error))
                log_line(self._settings.home, f"turns were not read ({type(error).__name__})")

    def _wait_for_quiet(self, over: threading.Event) -> bool:
        """Wait while hooks are answered, for a bounded time; False if listening ends."""
        until = time.monotonic() + _LONGEST_QUIET_WAIT
        while self.idle_seconds < _QUIET_SECONDS and time.monotonic() < until:
            if over.wait(_QUIET_SECONDS / 4):
                return False
        return not over.is_set()

    @property
    def idle_seconds(self) -> float:
        """How long nothing has been asked; 0 while something is, unless that hangs."""
        idle = time.monotonic() - self._last
        return 0.0 if self._busy and idle < _LONGEST_HOOK else idle

    # -- one hook --------------------------------------------------------------------------------

    def _serve(self, connection: socket.socket) -> None:
        with self._count:
            self._busy += 1
            self._last = time.monotonic()
        try:
            with connection:
                connection.settimeout(_READ_SECONDS)
                lines = _Lines(connection)
                event = json.loads(lines.read())
                if isinstance(event, dict) and (connection.family != socket.AF_INET or self._knows(event)):
                    self._answer(connection, lines, event)
        except (OSError, ValueError) as error:
            logger.debug("a hook was not answered: %s", type(error).__name__)
        except Exception as error:  # noqa: BLE001  # a hook must not end a server
            logger.warning("a hook was not answered: %s: %s", type(error).__name__, describe_error(error))
        finally:
            with self._count:
                self._busy -= 1
                self._last = time.monotonic()
            self._slots.release()

    def _knows(self, event: dict[str, Any]) -> bool:
        return secrets.compare_digest(str(event.pop("token", "")).encode(), self._token.encode())

    def _answer(self, connection: socket.socket, lines: _Lines, event: Mapping[str, Any]) -> None:
        if event.get("version") != __version__:
            # Cortex was upgraded; the next hook finds a process of the new version.
            self.outdated = True
        event = self._keeper.take(event)
        self._unread = True
        _send(connection, {"kept": True})
        answerer = self._answerer()
        found = answerer.answer(event)
        try:
            _send(connection, {"text": found.text, "ids": list(found.ids)})
            connection.settimeout(_CONFIRM_SECONDS)
            confirmed = lines.read() == b"given"
        except OSError:
            confirmed = False
        (answerer.delivered(event, found) if confirmed else answerer.missed(event))


def _send(connection: socket.socket, message: dict[str, Any]) -> None:
    connection.sendall(json.dumps(message, separators=(",", ":")).encode() + b"\n")


class _Lines:
    def __init__(self, connection: socket.socket) -> None:
        self._connection = connection
        self._held = b""

    def read(self) -> bytes:
        """The next line; what came, if the other side ends before it."""
        while b"\n" not in self._held and len(self._held) < _MOST_BYTES:
            data = self._connection.recv(65_536)
            if not data:
                break
            self._held += data
        line, _, self._held = self._held.partition(b"\n")
        return line
