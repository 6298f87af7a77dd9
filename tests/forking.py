"""`cortex` processes without the price of their imports: each is forked off one that has imported everything.

What runs is a process like any other, with its own directory, environment, streams, signals and exit code; only the
interpreter is not started anew, so a test about the start itself (what is imported when, `PYTHON…` variables,
`/proc/PID/environ`) begins one with `sys.executable`. Tests see the process that `forked_launcher` is: it hands over
its streams, passes signals on and ends as the forked one does; if it is killed, the forked one is killed too.
"""

from __future__ import annotations

import atexit
import gc
import marshal
import os
import pkgutil
import runpy
import selectors
import shutil
import signal
import socket
import subprocess
import sys
import tempfile
import threading
import time
from functools import cache
from importlib import import_module
from pathlib import Path
from types import FrameType
from typing import Any

__all__ = ["cortex_command", "python_command"]

_LAUNCHER = Path(__file__).with_name("forked_launcher.py")
# What commands import only when they need it, beside the modules of Cortex. Not onnxruntime: it begins a thread.
_LATER = (
    "anyio._backends._asyncio", "numpy", "rich.console", "rich.markup", "rich.table", "uvicorn.lifespan.on",
    "uvicorn.loops.auto", "uvicorn.protocols.http.httptools_impl",
)  # fmt: skip


def cortex_command() -> list[str]:
    """The words that start `cortex`; more may follow. The first use in a test run starts what is forked."""
    if sys.platform != "linux":
        # Elsewhere libraries do not survive a fork.
        return [sys.executable, "-m", "cortex_py"]
    # Isolated and without site: it needs nothing of either, and starts in a third of the time.
    return [sys.executable, "-I", "-S", str(_LAUNCHER), _origin()]


def python_command() -> list[str]:
    """The words that start Python with everything of Cortex imported; `-c` and code follow, or a script's path."""
    return cortex_command() if sys.platform == "linux" else [sys.executable]


@cache
def _origin() -> str:
    """The address of the process that forks. It ends with this one: its input does, then."""
    address = str(Path(tempfile.mkdtemp(prefix="cortex-forks-"), "origin"))
    process = subprocess.Popen(
        [sys.executable, __file__, address],
        # A second thread of a library would not be there after a fork. What it captures must not go into the database
        # of the test that happens to start it.
        env={**os.environ, "OPENBLAS_NUM_THREADS": "1", "CORTEX_DATABASE_URL": ""},
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
    )
    assert process.stdin is not None
    assert process.stdout is not None

    owner = os.getpid()

    def stop() -> None:
        if os.getpid() != owner:
            # A child that a test forked without starting an interpreter.
            return
        assert process.stdin is not None
        process.stdin.close()
        process.wait()

    atexit.register(stop)
    with process.stdout:
        assert process.stdout.readline() == b"ready\n", "nothing can be forked"
    return address


# -- in the process that forks -----------------------------------------------------------------------


def _import_all() -> None:
    gc.disable()
    package = import_module("cortex_py")
    modules = [found.name for found in pkgutil.walk_packages(package.__path__, "cortex_py.")]
    for name in [*(name for name in modules if not name.endswith("__main__")), *_LATER]:
        import_module(name)
    _use_everything()
    assert len(os.listdir("/proc/self/task")) == 1, "a library has begun a thread: it would be missing in every fork"  # noqa: PTH208
    gc.enable()
    gc.collect()
    gc.freeze()


def _use_everything() -> None:
    """Do once what most tests do, so that tables are read and expressions compiled before a fork."""
    from cortex_py import Cortex
    from patience import wait_longer

    from new_stores import BESIDE, spare_the_disk, use_world
    from stub_backend import StubBackend

    use_world(BESIDE)
    spare_the_disk()
    wait_longer()
    with tempfile.TemporaryDirectory(prefix="cortex-forks-") as folder:
        project = Path(folder, "project")
        project.mkdir()
        with Cortex.open(Path(folder, "home"), project=project, backend=StubBackend(), snapshot_every="off") as cortex:
            cortex.memories.capture("We decided that BillingService uses PostgreSQL 18, since Redis lost data.")
            cortex.memories.recall("which database")


class _Origin:
    def __init__(self, address: str) -> None:
        self._address = address
        self._listener = socket.socket(socket.AF_UNIX)
        self._listener.bind(address)
        self._listener.listen(64)
        self._woken, self._wakes = socket.socketpair()
        self._woken.setblocking(False)
        self._wakes.setblocking(False)
        self._ready = selectors.DefaultSelector()
        self._running: dict[int, socket.socket] = {}

    def serve(self) -> tuple[list[str], str, dict[str, str]] | None:
        """Fork until the test run ends. Returns in a fork, with what it shall be, and at the end with nothing."""
        signal.signal(signal.SIGINT, signal.SIG_IGN)
        signal.signal(signal.SIGCHLD, _nothing)
        signal.set_wakeup_fd(self._wakes.fileno(), warn_on_full_buffer=False)
        for source in (self._listener, self._woken, sys.stdin):
            self._ready.register(source, selectors.EVENT_READ)
        while True:
            for key, _ in self._ready.select():
                if key.fileobj is sys.stdin:
                    self._kill_all()
                    return None
                if key.fileobj is self._woken:
                    self._woken.recv(4096)
                    self._reap()
                elif key.fileobj is self._listener:
                    wanted = self._accept()
                    if wanted is not None:
                        return wanted
                elif key.data in self._running:
                    # Whoever asked for it has gone.
                    os.kill(key.data, signal.SIGKILL)
                    self._ready.unregister(key.fileobj)

    def _accept(self) -> tuple[list[str], str, dict[str, str]] | None:
        asker = self._listener.accept()[0]
        head, streams, _, _ = socket.recv_fds(asker, 8, 3)
        text = b""
        while len(text) < int.from_bytes(head) and (part := asker.recv(1 << 20)):
            text += part
        pid = os.fork() if len(streams) == 3 and len(text) == int.from_bytes(head) else -1
        if pid == 0:
            self._leave(asker, streams)
            wanted: tuple[list[str], str, dict[str, str]] = marshal.loads(text)
            return wanted
        for stream in streams:
            os.close(stream)
        if pid < 0:
            asker.close()
            return None
        self._running[pid] = asker
        self._ready.register(asker, selectors.EVENT_READ, pid)
        _tell(asker, pid)
        return None

    def _leave(self, asker: socket.socket, streams: list[int]) -> None:
        """In a fork: keep nothing of what belongs to the process that forks, and take the streams."""
        signal.set_wakeup_fd(-1)
        signal.signal(signal.SIGCHLD, signal.SIG_DFL)
        signal.signal(signal.SIGINT, signal.default_int_handler)
        for one in (self._ready, self._listener, self._woken, self._wakes, asker, *self._running.values()):
            one.close()
        for number, stream in enumerate(streams):
            os.dup2(stream, number)
            os.close(stream)

    def _reap(self) -> None:
        for pid in list(self._running):
            found, status = os.waitpid(pid, os.WNOHANG)
            if found:
                asker = self._running.pop(pid)
                if asker.fileno() in self._ready.get_map():
                    self._ready.unregister(asker)
                _tell(asker, os.waitstatus_to_exitcode(status))
                asker.close()

    def _kill_all(self) -> None:
        for pid in self._running:
            os.kill(pid, signal.SIGKILL)
            os.waitpid(pid, 0)


def _tell(asker: socket.socket, number: int) -> None:
    try:
        asker.sendall(b"%d\n" % number)
    except OSError:
        # It was killed; then nobody wants to know.
        return


def _nothing(_signal: int, _frame: FrameType | None) -> None:
    """That a child ended is seen by the byte that wakes."""


def _become(words: list[str], folder: str, environment: dict[str, str]) -> None:
    """Be `python -m cortex_py` with these words, in this place, or `python` where they are a script or code."""
    os.chdir(folder)
    os.environ.clear()
    os.environ.update(environment)
    time.tzset()
    unbuffered = bool(os.environ.get("PYTHONUNBUFFERED"))
    # As the interpreter opens them.
    sys.stdin = sys.__stdin__ = open(0, encoding="utf-8", closefd=False)  # type: ignore[misc]  # noqa: SIM115
    for name, number, errors in (("stdout", 1, "strict"), ("stderr", 2, "backslashreplace")):
        stream = open(number, "w", encoding="utf-8", errors=errors, closefd=False)  # noqa: SIM115
        stream.reconfigure(line_buffering=number == 2, write_through=unbuffered)
        setattr(sys, name, stream)
        setattr(sys, f"__{name}__", stream)
    code: Any = 0
    try:
        _run(words)
    except SystemExit as end:
        code = end.code or 0
        if not isinstance(code, int):
            raise
    # As the interpreter ends, but for taking two thousand modules apart, which costs more than most commands.
    threading._shutdown()  # type: ignore[attr-defined]
    atexit._run_exitfuncs()
    sys.stdout.flush()
    sys.stderr.flush()
    os._exit(code)


def _run(words: list[str]) -> None:
    if words[:1] == ["-c"]:
        sys.argv = ["-c", *words[2:]]
        exec(compile(words[1], "<string>", "exec"), {"__name__": "__main__"})
    elif words and words[0].endswith(".py"):
        sys.argv = words
        runpy.run_path(words[0], run_name="__main__")
    else:
        sys.argv = ["cortex_py", *words]
        runpy.run_module("cortex_py", run_name="__main__", alter_sys=True)


def _main(address: str) -> None:
    _import_all()
    origin = _Origin(address)
    print("ready", flush=True)
    wanted = origin.serve()
    if wanted is not None:
        _become(*wanted)
    else:
        # Here and not where it was made: a test run that is killed tidies nothing.
        shutil.rmtree(Path(address).parent)


if __name__ == "__main__":
    _main(sys.argv[1])
