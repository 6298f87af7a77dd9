"""Real servers for tests: `cortex serve` as a process, on stdio or on a port of its own.

Processes are forked (see `forking`), which spares their imports, unless a test asks for an interpreter of its own.
"""

import json
import os
import socket
import subprocess
import sys
import threading
from collections.abc import Iterator, Sequence
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import Any

import uvicorn
from starlette.types import ASGIApp

from forking import cortex_command

__all__ = [
    "HttpServer",
    "StdioServer",
    "app_server",
    "http_server",
    "serve_command",
    "serve_environment",
    "stdio_server",
]


def serve_command(*options: str, own_interpreter: bool = False) -> list[str]:
    start = [sys.executable, "-m", "cortex_py"] if own_interpreter else cortex_command()
    return [*start, "serve", *options]


def serve_environment(home: Path, **more: str) -> dict[str, str]:
    """The environment of a server, without settings of whoever runs the tests, but with the engine they run on."""
    plain = {
        name: value
        for name, value in os.environ.items()
        if name == "CORTEX_DATABASE_URL" or (not name.startswith("CORTEX_") and "CLAUDE" not in name)
    }
    return {**plain, "CORTEX_HOME": str(home), "PYTHONUNBUFFERED": "1", **more}


class HttpServer:
    """`url` is where it answers; `process` is it."""

    def __init__(self, process: subprocess.Popen[str], url: str) -> None:
        self.process = process
        self.url = url

    @property
    def mcp(self) -> str:
        return f"{self.url}/mcp"


@contextmanager
def http_server(
    home: Path,
    project: Path,
    *options: str,
    own_interpreter: bool = False,
    descriptors: int | None = None,
    log: Path | None = None,
    under: Sequence[str] = (),
    **variables: str,
) -> Iterator[HttpServer]:
    """A server on a port of loopback, with so many descriptors and its log in a file where these are given.

    `under`: the words of a program that starts it and becomes it.
    """
    own_interpreter |= bool(descriptors or under)
    command = [*under, *serve_command("--http", "--port", "0", *options, own_interpreter=own_interpreter)]
    if descriptors:
        command = ["sh", "-c", f'ulimit -n {descriptors}; exec "$@"', "sh", *command]
    with (log or Path(os.devnull)).open("wb") as errors:
        process = subprocess.Popen(
            command,
            cwd=project,
            env=serve_environment(home, **variables),
            stdout=subprocess.PIPE,
            stderr=errors,
            text=True,
        )
    try:
        assert process.stdout is not None
        words = process.stdout.readline().split()
        assert words[:2] == ["Cortex", "serves"], "the server did not start"
        yield HttpServer(process, words[2])
    finally:
        process.kill()
        process.wait()
        # It has gone when nobody can write there any more.
        with process.stdout:
            process.stdout.read()


@contextmanager
def app_server(app: ASGIApp, **options: Any) -> Iterator[str]:
    """An application on a port of loopback, in a thread of this process; its address."""
    with socket.create_server(("127.0.0.1", 0)) as bound:
        server = uvicorn.Server(uvicorn.Config(app, log_config=None, access_log=False, ws="none", **options))
        thread = threading.Thread(target=server.run, args=([bound],))
        thread.start()
        try:
            yield f"http://127.0.0.1:{bound.getsockname()[1]}"
        finally:
            server.should_exit = True
            thread.join()


class StdioServer:
    """One client's lines to a server, and its lines back."""

    def __init__(self, process: subprocess.Popen[bytes]) -> None:
        self.process = process
        assert process.stdin and process.stdout
        self._to, self._from = process.stdin, process.stdout

    def write(self, line: bytes) -> None:
        self._to.write(line)
        self._to.flush()

    def send(self, method: str, params: dict[str, Any] | None = None, id: Any = None) -> None:
        message: dict[str, Any] = {"jsonrpc": "2.0", "method": method}
        message |= {} if params is None else {"params": params}
        message |= {} if id is None else {"id": id}
        self.write(json.dumps(message).encode() + b"\n")

    def read(self) -> Any:
        line = self._from.readline()
        assert line, "the server closed its output"
        return json.loads(line)

    def request(self, id: Any, method: str, params: dict[str, Any] | None = None) -> Any:
        """Send a request and read up to its answer; notifications in between are dropped."""
        self.send(method, params, id)
        while (answer := self.read()).get("id") != id or "method" in answer:
            pass
        return answer

    def handshake(self, version: str = "2025-11-25") -> Any:
        client = {"name": "test", "version": "1"}
        answer = self.request(
            "hello", "initialize", {"protocolVersion": version, "capabilities": {}, "clientInfo": client}
        )
        self.send("notifications/initialized")
        return answer

    def call(self, id: Any, tool: str, **arguments: Any) -> Any:
        return self.request(id, "tools/call", {"name": tool, "arguments": arguments})

    def close_input(self) -> None:
        self._to.close()

    def rest(self) -> bytes:
        return self._from.read()


@contextmanager
def stdio_server(
    home: Path, project: Path, *options: str, own_interpreter: bool = False, **variables: str
) -> Iterator[StdioServer]:
    process = subprocess.Popen(
        serve_command(*options, own_interpreter=own_interpreter),
        cwd=project,
        env=serve_environment(home, **variables),
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
    )
    try:
        yield StdioServer(process)
    finally:
        process.kill()
        process.wait()
        assert process.stdin and process.stdout and process.stderr
        # It has gone when nobody can write there any more.
        with process.stdout:
            process.stdout.read()
        process.stderr.close()
        with suppress(BrokenPipeError):
            process.stdin.close()
