"""`cortex serve` on standard input and output: the front at once, the server behind it as soon as it is loaded.

Imports nothing heavy itself. Standard output carries only the protocol: everything else that writes there, in this
process or its children, goes to standard error.
"""

from __future__ import annotations

import os
import signal
import sys
import threading
from collections.abc import Callable
from contextlib import suppress
from functools import partial
from pathlib import Path
from types import FrameType
from typing import TYPE_CHECKING, Any

from ....core.config import Settings, load_settings
from ....core.echo import describe_error
from ....core.errors import CortexError, wire_form
from ..registry import EVERY_TOOL, select_tools
from .frames import read_lines
from .front import AnswerSnapshot, Front

if TYPE_CHECKING:
    from .streams import MessageServer

__all__ = ["MOST_BYTES", "serve_stdio"]

# Four times the largest memory, for texts with escaped letters. A message needs about four times its size in memory.
MOST_BYTES = 64_000_000
_SIGNALS = (signal.SIGTERM, signal.SIGINT)
_SETTLE_SECONDS = 30.0
_LEAVE_SECONDS = 5.0


class _Stop(Exception):
    """A signal asked to stop."""


def serve_stdio(home: str | Path | None, project: str | Path, overrides: dict[str, Any]) -> int:
    """Serve one client until it goes; the exit code."""
    source, sink = _claim_standard_streams()
    write = partial(_write, sink, threading.Lock())
    try:
        settings = load_settings(home, **overrides)
        specs = select_tools(EVERY_TOOL, settings.tool_bounds)
    except CortexError as error:
        print(f"cortex: {error}", file=sys.stderr)  # noqa: T201
        front = Front(write, AnswerSnapshot({}, (), portable=False))
        front.fail(error)
        _listen(front, source)
        return wire_form(error).exit_code
    front = Front(write, AnswerSnapshot.load(specs, portable=settings.portable_names))
    server = _ServerThread(front, settings, Path(project))
    server.start()
    _listen(front, source)
    return server.stop()


def _listen(front: Front, source: int) -> None:
    """Read what the client sends until its input ends or a signal comes."""
    with suppress(_Stop):
        _on_signals(_stop)
        front.take(read_lines(partial(os.read, source), MOST_BYTES), MOST_BYTES)
        _on_signals(_ignore)


class _ServerThread(threading.Thread):
    """Loads the server and runs it. A daemon: a client that leaves early need not wait for the loading."""

    def __init__(self, front: Front, settings: Settings, project: Path) -> None:
        super().__init__(name="cortex-server", daemon=True)
        self._front = front
        self._settings = settings
        self._project = project
        self._server: MessageServer | None = None
        self._exit_code = 0

    def run(self) -> None:
        if hasattr(signal, "pthread_sigmask"):
            # Also for the threads started here: a signal that one of them takes does not wake the main thread.
            signal.pthread_sigmask(signal.SIG_BLOCK, _SIGNALS)
        try:
            self._serve()
        except Exception as error:  # noqa: BLE001  # the client must get every error
            self._exit_code = wire_form(error).exit_code if isinstance(error, CortexError) else 1
            print(f"cortex: {type(error).__name__}: {describe_error(error)}", file=sys.stderr)  # noqa: T201
            self._front.fail(error)

    def _serve(self) -> None:
        import anyio

        from ....app import Cortex
        from ....core.jobs import limit_arenas
        from ....parts.hooks.warm import serving_hooks
        from ..middleware.logs import set_up_logs
        from ..middleware.telemetry import send_traces
        from ..server import build_server
        from .streams import MessageServer

        limit_arenas()
        set_up_logs(self._settings)
        with send_traces(self._settings), Cortex.from_settings(self._settings, self._project) as cortex:

            async def main() -> None:
                self._server = MessageServer(build_server(cortex), self._front.answer)
                self._front.serve(self._server)
                await self._server.run()

            with serving_hooks(cortex):
                anyio.run(main)

    def stop(self) -> int:
        """Answer what was asked, then close. The exit code."""
        with suppress(_Stop):
            # Another signal ends the waiting, not the closing.
            _on_signals(_stop)
            if self._server is None and self._front.idle:
                # Still loading, and no request waits. There is nothing to close but files.
                os._exit(self._exit_code)
            self._front.settle(_SETTLE_SECONDS)
            _on_signals(_ignore)
        if self._server is not None:
            self._server.end()
        self.join(_LEAVE_SECONDS)
        return self._exit_code


def _claim_standard_streams() -> tuple[int, int]:
    """Private copies of standard input and output. The usual ones become empty input and standard error."""
    source, sink = os.dup(0), os.dup(1)
    for name in (source, sink):
        os.set_inheritable(name, False)
    nothing = os.open(os.devnull, os.O_RDONLY)
    os.dup2(nothing, 0)
    os.close(nothing)
    os.dup2(2, 1)
    return source, sink


def _write(sink: int, lock: threading.Lock, line: bytes) -> None:
    # A client that has left reads no more; its input ends too, and that ends the server.
    with lock, suppress(BrokenPipeError):
        while line:
            line = line[os.write(sink, line) :]


def _on_signals(action: Callable[[int, FrameType | None], None]) -> None:
    for name in _SIGNALS:
        signal.signal(name, action)


def _stop(_signal: int, _frame: FrameType | None) -> None:
    # One is enough: a second one right after would interrupt the shutdown.
    _on_signals(_ignore)
    raise _Stop


def _ignore(_signal: int, _frame: FrameType | None) -> None:
    pass
