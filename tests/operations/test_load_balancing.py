"""Two servers on one database behind a proxy that sends each request to the next: no client needs to stick to one."""

from __future__ import annotations

import threading
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager
from http.client import HTTPConnection
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from itertools import count
from pathlib import Path
from urllib.parse import urlsplit

import pytest
from mcp.shared.exceptions import MCPError

from clients import MODES, connected
from servers import http_server

pytestmark = pytest.mark.sqlite_only  # it asks for PostgreSQL itself

_KEPT_BACK = ("connection", "transfer-encoding", "content-length", "host")


class _Proxy(ThreadingHTTPServer):
    """`served` counts the requests that each server was given."""

    daemon_threads = True

    def __init__(self, servers: list[str]) -> None:
        self.servers = [urlsplit(url).netloc for url in servers]
        self.turns = count()
        self.served = [0] * len(servers)
        super().__init__(("127.0.0.1", 0), _Forward)


class _Forward(BaseHTTPRequestHandler):
    def _forward(self) -> None:
        proxy: _Proxy = self.server  # type: ignore[assignment]
        number = next(proxy.turns) % len(proxy.servers)
        proxy.served[number] += 1
        to = HTTPConnection(proxy.servers[number], timeout=60)
        try:
            body = self.rfile.read(int(self.headers.get("Content-Length", 0)))
            headers = {name: value for name, value in self.headers.items() if name.lower() not in _KEPT_BACK}
            to.request(self.command, self.path, body, headers)
            answer = to.getresponse()
            self.send_response(answer.status)
            for name, value in answer.getheaders():
                if name.lower() not in _KEPT_BACK:
                    self.send_header(name, value)
            self.end_headers()
            while part := answer.read1(65_536):
                self.wfile.write(part)
                self.wfile.flush()
        finally:
            to.close()

    def do_GET(self) -> None:
        self._forward()

    def do_POST(self) -> None:
        self._forward()

    def do_DELETE(self) -> None:
        self._forward()

    def log_message(self, format: str, *args: object) -> None:
        pass


@contextmanager
def _balanced(tmp_path: Path, project: Path, url: str, **variables: str) -> Iterator[tuple[str, _Proxy]]:
    with ExitStack() as stack:
        servers = [
            stack.enter_context(http_server(tmp_path / name, project, CORTEX_DATABASE_URL=url, **variables))
            for name in ("one", "two")
        ]
        proxy = stack.enter_context(_Proxy([server.url for server in servers]))
        thread = threading.Thread(target=proxy.serve_forever, args=(0.05,))
        thread.start()
        try:
            yield f"http://127.0.0.1:{proxy.server_address[1]}/mcp", proxy
        finally:
            proxy.shutdown()
            thread.join()


@pytest.mark.slow
@pytest.mark.filterwarnings("ignore:resources/subscribe is removed")
@pytest.mark.parametrize("mode", MODES)
def test_a_client_of_each_protocol_is_served_by_both(
    tmp_path: Path, project: Path, postgres_url: str, mode: str
) -> None:
    with _balanced(tmp_path, project, postgres_url) as (url, proxy), connected(url, mode) as caller:
        before = list(proxy.served)
        ids = [caller.call("subcog_capture", content=f"note {n}", namespace="decisions")["id"] for n in range(4)]
        for one in ids:
            assert caller.call("subcog_get", memory_id=one)["id"] == one
        assert min(now - then for now, then in zip(proxy.served, before, strict=True)) >= 4
        assert caller.call("subcog_recall", query="note 3")["results"]
        if mode == "legacy":
            # It could not be told of a change later; so it is told now, and not left to wait.
            with pytest.raises(MCPError, match="keeps no sessions"):
                caller.portal.call(caller.client.session.subscribe_resource, "subcog://status")


def test_with_sessions_a_client_of_the_handshake_has_to_stick_to_one(
    tmp_path: Path, project: Path, postgres_url: str
) -> None:
    with (
        _balanced(tmp_path, project, postgres_url, CORTEX_STATELESS_HTTP="off") as (url, _),
        pytest.raises(Exception, match=r"404|[Ss]ession"),
        connected(url, "legacy") as caller,
    ):
        for _ in range(4):
            caller.call("subcog_status")
