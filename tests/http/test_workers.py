"""`--workers`: several processes on one port, which a client cannot tell from one."""

from __future__ import annotations

import os
import re
import signal
import socket
import sys
import time
from collections.abc import Callable
from contextlib import ExitStack
from pathlib import Path
from typing import Any

import httpx2
import pytest

from cortex_py.core.errors import InvalidInput
from cortex_py.surfaces.http.connections import bind_ports
from cortex_py.surfaces.http.sessions import SharedPage
from cortex_py.surfaces.mcp.reference.rendering import requests_of
from operations.raw_calls import get
from timing import MINUTE

from servers import http_server

pytestmark = pytest.mark.skipif(sys.platform != "linux", reason="looks into /proc")


def _until(done: Callable[[], Any]) -> Any:
    """What a check answers once it is true."""
    end = time.monotonic() + MINUTE
    while not (found := done()):
        assert time.monotonic() < end, "it did not happen in time"
        time.sleep(0.02)
    return found


def _children(pid: int) -> set[int]:
    return {int(one) for one in Path(f"/proc/{pid}/task/{pid}/children").read_text().split()}


def _called(url: str, tool: str, **arguments: Any) -> str:
    """A tool's answer in the handshake protocol, each request on a connection of its own."""
    first = requests_of("2025-11-25")[0]
    asked = {"jsonrpc": "2.0", "id": 7, "method": "tools/call", "params": {"name": tool, "arguments": arguments}}
    accept = {"Content-Type": "application/json", "Accept": "application/json, text/event-stream"}
    for request in (first, asked):
        answer = httpx2.post(f"{url}/mcp", json=request, headers=accept, timeout=MINUTE)
        assert answer.status_code == 200
        assert "mcp-session-id" not in answer.headers
    return answer.text


@pytest.mark.slow
def test_workers_answer_as_one_server_and_are_started_again(home: Path, project: Path) -> None:
    with http_server(home, project, "--workers", "2", own_interpreter=True) as server:
        workers = _until(lambda: len(_children(server.process.pid)) == 2 and _children(server.process.pid))
        for number in range(6):
            noted = _called(server.url, "subcog_capture", content=f"Worker note {number}", namespace="learnings")
            assert '"id"' in noted
        assert all("Worker note" in _called(server.url, "subcog_recall", query="worker note") for _ in range(4))

        # A worker that dies is started again, and the other one answers meanwhile.
        victim = min(workers)
        os.kill(victim, signal.SIGKILL)
        assert "Worker note" in _called(server.url, "subcog_recall", query="worker note")
        _until(lambda: victim not in _children(server.process.pid))
        after = _until(lambda: len(_children(server.process.pid)) == 2 and _children(server.process.pid))
        assert len(after & workers) == 1

        # A session of the page begun in one worker is known in all.
        assert server.process.stdout is not None
        link = _until(lambda: re.search(r"/session\?code=\S+", server.process.stdout.readline()))[0]  # type: ignore[union-attr]
        cookie = get(server.url, link)[1]["set-cookie"].partition(";")[0]
        for _ in range(8):
            assert get(server.url, "/", Cookie=cookie)[0] == 200
            assert get(server.url, link)[0] == 401  # the link works once

        server.process.send_signal(signal.SIGTERM)
        assert server.process.wait(60) == 0
        _until(lambda: not any(Path(f"/proc/{pid}").exists() for pid in after))


@pytest.mark.slow
def test_workers_end_with_the_first_process(home: Path, project: Path) -> None:
    with http_server(home, project, "--workers", "2", own_interpreter=True) as server:
        workers = _until(lambda: len(_children(server.process.pid)) == 2 and _children(server.process.pid))
        server.process.kill()
        _until(lambda: not any(Path(f"/proc/{pid}").exists() for pid in workers))


def test_connections_are_shared_out_among_the_sockets_of_workers() -> None:
    with ExitStack() as opened:
        sockets = [opened.enter_context(one) for one in bind_ports("127.0.0.1", 0, 2)]
        (address,) = {one.getsockname() for one in sockets}
        for _ in range(60):
            opened.enter_context(socket.create_connection(address, 10))
        for one in sockets:
            one.settimeout(10)
            # All sixty at one of them would be a chance of one in 10^17; fewer than ten one in 10^8.
            for _ in range(10):
                opened.enter_context(one.accept()[0])


@pytest.mark.parametrize("workers", [1, 2])
def test_a_port_of_workers_is_in_use_for_everybody_else(workers: int) -> None:
    with ExitStack() as opened:
        first, *_ = [opened.enter_context(one) for one in bind_ports("127.0.0.1", 0, 2)]
        with pytest.raises(InvalidInput, match="cannot be used"):
            bind_ports("127.0.0.1", first.getsockname()[1], workers)


def test_sessions_and_links_are_shared_and_cannot_be_read_in_the_folder(tmp_path: Path) -> None:
    page = SharedPage(tmp_path, b"k" * 32)
    one, other = page.sessions(), page.sessions()
    secret = one.begin("the-token-of-anna")
    found = other.find(secret)
    assert found is not None and found.token == "the-token-of-anna"
    assert other.find("another") is None
    kept = [file.read_bytes() for file in tmp_path.iterdir() if file.is_file()]
    assert not any(word in text for text in kept for word in (b"anna", secret.encode(), found.csrf.encode()))
    other.end(secret)
    assert one.find(secret) is None
    code = page.links().code()
    assert page.links().redeem(code)
    assert not page.links().redeem(code)
