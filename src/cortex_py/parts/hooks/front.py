"""`cortex hook CLIENT EVENT`: answers a hook of a client, at once. Standard library only.

It asks the warm process of the home and waits no longer than the deadline. Past it, or on any fault, it prints the
client's empty answer and exits with 0: a hook never stops a prompt. Where no process is warm, it starts the helper,
which keeps the turn and answers the next hook.
"""

from __future__ import annotations

import json
import os
import socket
import sys
import threading
import time
from pathlib import Path
from typing import Any

from ...core.ownership import open_folders
from ...core.paths import expanded, read_regular
from ...version import __version__
from .dialects import CLIENTS, Hook, answer, find_hook, read_event
from .prepared import read_prepared

__all__ = ["log_line", "run_hook"]

_DEADLINE_MS = 150
# What the interpreter takes before and after this module.
_STARTED_MS = 40
# How long an event that is not there at the deadline is waited for once the answer is given: its turn is worth it.
_ARRIVAL_SECONDS = 2.0
_MOST_INPUT = 4_000_000
_MOST_ANSWER = 1_000_000
_MOST_ADDRESS = 10_000
_LONGEST_LOG = 200_000
_MOST_HANDED = 60_000  # bytes; a pipe takes them without waiting for its reader


class _Work:
    """What the answering thread has reached, for the main thread, which waits only until the deadline."""

    def __init__(self, client: str, hook: Hook, home: Path, place: dict[str, Any], until: float) -> None:
        self.client = client
        self.hook = hook
        self.home = home
        self.place = place
        self.until = until
        self.event: dict[str, Any] | None = None
        self.context = ""
        self.kept = False
        self.fault = ""
        self.connection: socket.socket | None = None
        self.arrived = threading.Event()
        self.finished = threading.Event()

    def run(self) -> None:
        try:
            self._run()
        except Exception as error:  # noqa: BLE001  # whatever it is, the client gets its empty answer
            self.fault = type(error).__name__
        self.finished.set()

    def _run(self) -> None:
        data = b""
        while len(data) < _MOST_INPUT and (more := os.read(0, 1 << 20)):
            data += more
        event = read_event(self.client, self.hook, data)
        event["id"] = os.urandom(12).hex()
        event.setdefault("cwd", os.environ.get("CLAUDE_PROJECT_DIR") or str(Path.cwd()))
        self.event = event
        self.arrived.set()
        try:
            self._ask(event)
        except (OSError, ValueError, LookupError, TypeError) as error:
            self.fault = f"no warm process ({type(error).__name__})"
            if open_folders(self.home):
                return  # what is there may not be ours either; the helper mends the home, or refuses it
            if self.hook.kind == "start":
                self._take_prepared(event)
            elif self.hook.kind == "prompt" and self.hook.takes_context and not self.kept:
                self._search(event)

    def _ask(self, event: dict[str, Any]) -> None:
        self.connection = _connect(self.place, self._left())
        message = {**event, "version": __version__, "token": self.place.get("token", "")}
        self.connection.sendall(json.dumps(message).encode() + b"\n")
        held = b""
        while held.count(b"\n") < 2 and len(held) < _MOST_ANSWER:
            self.connection.settimeout(self._left())
            data = self.connection.recv(65_536)
            if not data:
                break
            held += data
            self.kept = self.kept or b"\n" in held
        self.context = str(json.loads(held.split(b"\n")[1])["text"])

    def _left(self) -> float:
        left = self.until - time.monotonic()
        if left <= 0:
            raise TimeoutError
        return left

    def _take_prepared(self, event: dict[str, Any]) -> None:
        found = read_prepared(self.home, Path(event["cwd"]), time.time())
        if found:
            self.context = found["text"]
            event["delivered"] = found["ids"]

    def _search(self, event: dict[str, Any]) -> None:
        # Imported here: a warm process answers most hooks.
        from .cold import answer_cold

        self.context, ids = answer_cold(self.home, event)
        if ids:
            event["delivered"] = ids


def run_hook(arguments: list[str]) -> int:
    """Answer one event of a client; 0 whatever happens."""
    begun = time.monotonic()
    arguments, home = _without_home(arguments)
    client, event = ([*arguments, "", ""])[:2]
    hook = find_hook(client, event)
    if hook is None:
        known = ", ".join(one.name for one in CLIENTS.get(client, ())) or ", ".join(CLIENTS)
        sys.stderr.write(f"cortex hook: unknown {'event' if client in CLIENTS else 'client'}. Known: {known}.\n")
        _print("{}")
        return 0
    place = _read_address(home)
    allowed = _milliseconds(os.environ.get("CORTEX_HOOK_DEADLINE_MS") or place.get("deadline_ms"))
    work = _Work(client, hook, home, place, begun + max(10, allowed - _STARTED_MS) / 1e3)
    if home.is_dir():
        threading.Thread(target=work.run, daemon=True).start()
        work.finished.wait(max(0.0, work.until - time.monotonic()))
    late = not work.finished.is_set()
    context = "" if late else work.context
    _print(answer(client, hook, context))
    _confirm(work, late)
    if late:
        work.arrived.wait(_ARRIVAL_SECONDS)
    if work.event is not None and not work.kept:
        _hand_over(work, missed=not context)
    if (late or work.fault) and home.is_dir():
        log_line(
            home, f"{client} {hook.name} {'late' if late else work.fault} {1e3 * (time.monotonic() - begun):.0f} ms"
        )
    return 0


def _without_home(arguments: list[str]) -> tuple[list[str], Path]:
    """The arguments without `--home FOLDER`, and the home."""
    home = os.environ.get("CORTEX_HOME") or "~/.cortex"
    rest = []
    words = iter(arguments)
    for word in words:
        if word == "--home":
            home = next(words, home)
        elif word.startswith("--home="):
            home = word.removeprefix("--home=")
        else:
            rest.append(word)
    return rest, expanded(home).absolute()


def _read_address(home: Path) -> dict[str, Any]:
    """Where the warm process of a home listens; empty if there is none, or if somebody else may have written it."""
    if open_folders(home):
        return {}
    try:
        found = json.loads(read_regular(home / "hooks" / "address", _MOST_ADDRESS) or b"{}")
    except ValueError:
        return {}
    return found if isinstance(found, dict) else {}


def _milliseconds(given: Any) -> int:
    try:
        return int(given)
    except (ValueError, TypeError):
        return _DEADLINE_MS


def _connect(place: dict[str, Any], seconds: float) -> socket.socket:
    if "socket" in place:
        connection = socket.socket(socket.AF_UNIX, socket.SOCK_STREAM)
        target: Any = place["socket"]
    else:
        connection = socket.socket(socket.AF_INET, socket.SOCK_STREAM)
        target = ("127.0.0.1", int(place["port"]))
    connection.settimeout(seconds)
    connection.connect(target)
    return connection


def _print(text: str) -> None:
    # ASCII bytes: neither code pages nor line ends can change them.
    try:
        os.write(1, text.encode("ascii") + b"\n")
    except OSError:
        return


def _confirm(work: _Work, late: bool) -> None:
    if work.connection is not None:
        try:
            if not late and not work.fault:
                work.connection.settimeout(0.02)
                work.connection.sendall(b"given\n")
            work.connection.close()
        except OSError:
            return


def _hand_over(work: _Work, *, missed: bool) -> None:
    """Start the helper and give it the event through a pipe, so that nothing unscreened is written anywhere."""
    import subprocess

    event = dict(work.event or {})
    event["missed"] = missed
    data = json.dumps(event).encode()
    if len(data) > _MOST_HANDED:
        event["text"] = str(event.get("text", ""))[: _MOST_HANDED // 8]
        data = json.dumps(event).encode()
    try:
        helper = subprocess.Popen(
            [sys.executable, "-P", "-m", "cortex_py.parts.hooks.helper", "--home", str(work.home)],
            stdin=subprocess.PIPE,
            stdout=subprocess.DEVNULL,
            stderr=subprocess.DEVNULL,
            cwd=str(work.home),
            start_new_session=True,
        )
        if helper.stdin:
            helper.stdin.write(data)
            helper.stdin.close()
        # It is nobody's child to wait for: it ends by itself.
        helper.returncode = 0
    except OSError as error:
        work.fault += f" helper not started ({type(error).__name__})"


def log_line(home: Path, line: str) -> None:
    """One line without content; the file is begun again when it is long."""
    path = home / "hooks" / "log"
    try:
        path.parent.mkdir(mode=0o700, exist_ok=True)
        flags = os.O_WRONLY | os.O_CREAT | os.O_APPEND
        if path.exists() and path.stat().st_size > _LONGEST_LOG:
            flags |= os.O_TRUNC
        file = os.open(path, flags, 0o600)
        os.write(file, f"{time.strftime('%Y-%m-%dT%H:%M:%SZ', time.gmtime())} {line}\n".encode())
        os.close(file)
    except OSError:
        return
