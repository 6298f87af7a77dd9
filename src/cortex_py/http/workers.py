"""`cortex serve --http --workers N`: several processes answer on one port.

The first process binds the port and forks the others. It serves nothing itself: it starts a worker again that has died,
and passes on the signal to stop. What the workers must share is in the store, or here: the sessions of the page, and
which of its links were used.

A client stays with the worker that accepted its connection. On Linux each worker has a socket of its own on the port,
and the system shares the connections out among them; those of a worker that has died wait for its successor. If they
accepted from one socket, the one that is awake would get nearly all.
"""

from __future__ import annotations

import contextlib
import json
import logging
import os
import select
import shutil
import signal
import socket
import tempfile
import threading
import time
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, field
from hashlib import sha256
from pathlib import Path

from ..config import Settings
from ..errors import InvalidInput
from ..paths import read_whole
from .sessions import IDLE_SECONDS, MOST_SESSIONS, PageLinks, PageSession, PageSessions, page_key

__all__ = ["SharedPage", "SharedSessions", "Worker", "fork_workers"]

_log = logging.getLogger(__name__)

_NONCE = 12
_MOST_BYTES = 100_000
_TOUCH_SECONDS = 60.0
_LOOK_SECONDS = 0.2
_GRACE_SECONDS = 10.0
# A worker that ends sooner is started again after a pause, which doubles each time.
_SHORT_LIFE_SECONDS = 5.0
_FIRST_PAUSE, _LONGEST_PAUSE = 0.1, 5.0


class SharedSessions(PageSessions):
    """The sessions of the page, for all workers: encrypted files in a folder that lasts as long as the server."""

    def __init__(self, folder: Path, key: bytes) -> None:
        super().__init__(time.time)
        self._folder = folder
        self._key = key

    def _keep(self, digest: str, session: PageSession) -> None:
        from cryptography.hazmat.primitives.ciphers.aead import AESGCM

        nonce = os.urandom(_NONCE)
        content = json.dumps([session.csrf, session.token]).encode()
        path = self._folder / digest
        path.write_bytes(nonce + AESGCM(self._key).encrypt(nonce, content, digest.encode()))
        kept = sorted((one.stat().st_mtime, one) for one in self._folder.iterdir() if not one.name.startswith("used-"))
        for _, oldest in kept[: len(kept) - MOST_SESSIONS]:
            oldest.unlink(missing_ok=True)

    def _take(self, digest: str) -> PageSession | None:
        from cryptography.exceptions import InvalidTag
        from cryptography.hazmat.primitives.ciphers.aead import AESGCM

        path = self._folder / digest
        try:
            used_at, content = path.stat().st_mtime, read_whole(path, _MOST_BYTES)
            csrf, token = json.loads(
                AESGCM(self._key).decrypt(content[:_NONCE], content[_NONCE:], digest.encode()).decode()
            )
        except (OSError, ValueError, InvalidTag):
            return None
        if self._now() - used_at > IDLE_SECONDS:
            path.unlink(missing_ok=True)
            return None
        if self._now() - used_at > _TOUCH_SECONDS:
            with contextlib.suppress(OSError):
                os.utime(path)
        return PageSession(csrf, token, used_at)

    def _drop(self, digest: str) -> None:
        (self._folder / digest).unlink(missing_ok=True)


@dataclass(frozen=True, slots=True)
class SharedPage:
    """What the workers of one server share about the page."""

    folder: Path
    link_key: bytes
    run: str = field(default_factory=lambda: os.urandom(8).hex())
    session_key: bytes = field(default_factory=lambda: os.urandom(32), repr=False)

    def sessions(self) -> SharedSessions:
        return SharedSessions(self.folder, self.session_key)

    def links(self) -> PageLinks:
        return PageLinks(self.link_key, self.run, first_use=self._first_use)

    def _first_use(self, code: str) -> bool:
        """Whether no worker has seen a code before: only one of them can create its file."""
        try:
            (self.folder / f"used-{sha256(code.encode()).hexdigest()}").touch(exist_ok=False)
        except FileExistsError:
            return False
        return True


@dataclass(frozen=True, slots=True)
class Worker:
    """What a worker needs of the first process: its socket, what is shared, and whom to notify that it accepts."""

    bound: socket.socket
    page: SharedPage
    ready: Callable[[], None]


def fork_workers(
    settings: Settings, sockets: Sequence[socket.socket], announce: Callable[[PageLinks | None], None]
) -> Worker:
    """Start a worker on each socket. This returns in each of them; the first process ends when they have.

    `announce` is called in the first process once all of them accept connections.
    """
    if not hasattr(os, "fork"):
        raise InvalidInput(
            "Several workers need a system that can fork.", remedy="Leave out --workers.", field="workers"
        )
    folder = Path(tempfile.mkdtemp(prefix="cortex-page-"))
    page = SharedPage(folder, page_key(settings))
    try:
        watch = _Watch(sockets, page, settings.drain_seconds + _GRACE_SECONDS)
        worker = watch.start_all()
        if worker is None:
            worker = watch.run(lambda: announce(page.links() if settings.auth == "token" else None))
    except BaseException:
        if not _is_worker:
            shutil.rmtree(folder, ignore_errors=True)
        raise
    if worker is None:
        shutil.rmtree(folder, ignore_errors=True)
        raise SystemExit(watch.status)
    return worker


_is_worker = False


class _Watch:
    """The first process: which workers live, on which socket, since when, and how often one died early."""

    def __init__(self, sockets: Sequence[socket.socket], page: SharedPage, stop_seconds: float) -> None:
        self._sockets = sockets
        self._page = page
        self._stop_seconds = stop_seconds
        self._born: dict[int, tuple[float, socket.socket]] = {}
        self._early = 0
        self._stopping: float | None = None
        self._announced = False
        self.status = 0
        self._ready_read, self._ready_write = os.pipe()
        # Nobody writes here: it ends with the first process, however that ends.
        self._alive_read, self._alive_write = os.pipe()

    def start_all(self) -> Worker | None:
        for bound in self._sockets:
            if worker := self._start(bound):
                return worker
        return None

    def _start(self, bound: socket.socket) -> Worker | None:
        """Fork; what the child needs is returned there."""
        global _is_worker  # a process is one or it is not
        pid = os.fork()
        if pid:
            self._born[pid] = time.monotonic(), bound
            return None
        _is_worker = True
        for name in (signal.SIGTERM, signal.SIGINT):
            signal.signal(name, signal.SIG_DFL)
        os.close(self._ready_read)
        os.close(self._alive_write)
        for other in self._sockets:
            if other is not bound:
                other.close()
        threading.Thread(target=_end_with, args=(self._alive_read,), name="cortex-parent", daemon=True).start()
        ready = self._ready_write
        return Worker(bound, self._page, lambda: _write(ready))

    def run(self, announce: Callable[[], None]) -> Worker | None:
        """Watch until all workers have ended; returns in a worker that was started meanwhile."""
        with self._signals():
            accepting = 0
            while self._born or self._stopping is None:
                if select.select([self._ready_read], [], [], _LOOK_SECONDS)[0]:
                    accepting += len(os.read(self._ready_read, 1_000))
                if accepting >= len(self._sockets) and not self._announced:
                    self._announced = True
                    announce()
                for status, lived, bound in self._ended():
                    if worker := self._replace(status, lived, bound):
                        return worker
                if self._stopping is not None and time.monotonic() > self._stopping + self._stop_seconds:
                    self._signal(signal.SIGKILL)
        return None

    def _ended(self) -> Iterator[tuple[int, float, socket.socket]]:
        """The status of each worker that has ended, how long it lived, and its socket."""
        while self._born:
            pid, status = os.waitpid(-1, os.WNOHANG)
            if pid == 0:
                return
            if pid in self._born:
                born, bound = self._born.pop(pid)
                yield os.waitstatus_to_exitcode(status), time.monotonic() - born, bound

    def _replace(self, status: int, lived: float, bound: socket.socket) -> Worker | None:
        if self._stopping is not None:
            return None
        if not self._announced:
            # It has said why. The others would fail alike.
            self.status = status if status > 0 else 1
            self.stop(signal.SIGTERM)
            return None
        _log.warning("a worker ended with status %s after %.0f seconds and is started again", status, lived)
        self._early = self._early + 1 if lived < _SHORT_LIFE_SECONDS else 0
        if self._early:
            time.sleep(min(_FIRST_PAUSE * 2 ** (self._early - 1), _LONGEST_PAUSE))
        return self._start(bound) if self._stopping is None else None

    def stop(self, number: int) -> None:
        if self._stopping is None:
            self._stopping = time.monotonic()
        self._signal(number)

    def _signal(self, number: int) -> None:
        for pid in list(self._born):
            with contextlib.suppress(ProcessLookupError):
                os.kill(pid, number)

    @contextlib.contextmanager
    def _signals(self) -> Iterator[None]:
        for name in (signal.SIGTERM, signal.SIGINT):
            signal.signal(name, lambda *_: self.stop(signal.SIGTERM))
        yield


def _write(pipe: int) -> None:
    with contextlib.suppress(OSError):
        os.write(pipe, b".")


def _end_with(alive: int) -> None:
    """Stop as if asked to, when the first process is gone."""
    os.read(alive, 1)
    os.kill(os.getpid(), signal.SIGTERM)
