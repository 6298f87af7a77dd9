"""Servers for targets, on loopback: real ones for S3 and WebDAV, and one that fails by a script.

with s3_server() as s3:
    target = open_target(s3.new_bucket("copies") + "/prefix" + s3.query, environment=s3.environment)
with webdav_server(folder) as dav:
    target = open_target(f"{dav.url}/cortex", environment=dav.environment)
"""

from __future__ import annotations

import logging
import socket
import threading
import urllib.request
import warnings
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from typing import Any

from timing import MINUTE

USER, PASSWORD = "alice", "correct horse:battery"
KEYS = {"AWS_ACCESS_KEY_ID": "AKIATEST", "AWS_SECRET_ACCESS_KEY": "very/secret+key"}


@dataclass(frozen=True)
class S3Server:
    endpoint: str
    # What clients asked, as method and path.
    asked: list[tuple[str, str]] = field(default_factory=list)

    @property
    def environment(self) -> dict[str, str]:
        return dict(KEYS)

    @property
    def query(self) -> str:
        return f"?endpoint={self.endpoint}&region=eu-central-1&path_style=true"

    def new_bucket(self, name: str) -> str:
        """Make a bucket; its address, which wants a prefix and the query added."""
        place = "<LocationConstraint>eu-central-1</LocationConstraint>"
        self._send("PUT", f"/{name}", f"<CreateBucketConfiguration>{place}</CreateBucketConfiguration>".encode())
        return f"s3://{name}"

    def place(self, bucket: str, key: str, data: bytes) -> None:
        """Put an object there as somebody else would."""
        self._send("PUT", f"/{bucket}/{key}", data)

    def _send(self, method: str, path: str, data: bytes) -> None:
        # The server takes the region from what would be the signature.
        signed = "AWS4-HMAC-SHA256 Credential=x/20260101/eu-central-1/s3/aws4_request, SignedHeaders=host, Signature=x"
        headers = {"Authorization": signed, "Content-Type": "application/octet-stream"}
        request = urllib.request.Request(self.endpoint + path, data, headers, method=method)
        # Without the proxy that the environment may name.
        with urllib.request.build_opener(urllib.request.ProxyHandler({})).open(request, timeout=MINUTE) as answer:
            answer.read()


@contextmanager
def s3_server() -> Iterator[S3Server]:
    """A server for S3 that holds all in memory. Each request is answered alone, as if in a transaction.

    All such servers of a process share what they hold, and it is gone when one of them ends.
    """
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        from moto.moto_server.werkzeug_app import DomainDispatcherApplication, create_backend_app
        from werkzeug.serving import WSGIRequestHandler, make_server

        application = DomainDispatcherApplication(create_backend_app)
    alone = threading.Lock()
    asked: list[tuple[str, str]] = []

    def transacted(environ: dict[str, Any], start: Callable[..., Any]) -> list[bytes]:
        with alone:
            asked.append((environ["REQUEST_METHOD"], environ["PATH_INFO"]))
            answer = application(environ, start)
            try:
                return [b"".join(answer)]
            finally:
                getattr(answer, "close", lambda: None)()

    class Silent(WSGIRequestHandler):
        def log(self, *_: object) -> None:
            pass

    server = make_server("127.0.0.1", 0, transacted, threaded=True, request_handler=Silent)
    server.daemon_threads = True  # type: ignore[attr-defined]
    with _served(server):
        running = S3Server(f"http://127.0.0.1:{server.server_port}", asked)
        try:
            yield running
        finally:
            running._send("POST", "/moto-api/reset", b"")


@dataclass(frozen=True)
class WebDavServer:
    port: int
    folder: Path

    @property
    def url(self) -> str:
        return f"http://{USER}@127.0.0.1:{self.port}"

    @property
    def environment(self) -> dict[str, str]:
        return {"CORTEX_CLOUD_PASSWORD": PASSWORD}


@contextmanager
def webdav_server(folder: Path) -> Iterator[WebDavServer]:
    """A WebDAV server for a folder, which asks for a password."""
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        from cheroot.wsgi import Server
        from wsgidav.wsgidav_app import WsgiDAVApp

        application = WsgiDAVApp(
            {
                "provider_mapping": {"/": str(folder)},
                "simple_dc": {"user_mapping": {"*": {USER: {"password": PASSWORD}}}},
                "http_authenticator": {"accept_basic": True, "accept_digest": False, "default_to_digest": False},
                "verbose": 0,
                "logging": {"enable": False},
            }
        )
    logging.getLogger("wsgidav").setLevel(logging.CRITICAL)
    # Short, since the end of the server waits for connections that are idle.
    server = Server(("127.0.0.1", 0), application, numthreads=4, timeout=1, shutdown_timeout=1)
    server.prepare()
    thread = threading.Thread(target=server.serve)
    thread.start()
    try:
        yield WebDavServer(server.bind_addr[1], folder)
    finally:
        server.stop()
        thread.join()


@dataclass(frozen=True)
class Asked:
    method: str
    path: str
    headers: dict[str, str]
    body: bytes


@dataclass(frozen=True)
class Reply:
    """`length` is what the answer says it has; `cut` ends the connection afterwards. Status 0 says nothing at all.

    `drips` goes on for ever, byte by byte: in the "head", or in the "body".
    """

    status: int
    body: bytes = b""
    headers: dict[str, str] = field(default_factory=dict)
    length: int | None = None
    cut: bool = False
    drips: str = ""


Step = Callable[[Asked], Reply]


@dataclass
class FaultyServer:
    """`script` is used up first, one step for each request; after that `usual` answers."""

    script: list[Step] = field(default_factory=list)
    usual: Step = field(default=lambda asked: Reply(404))
    asked: list[Asked] = field(default_factory=list)
    ending: threading.Event = field(default_factory=threading.Event)

    def __enter__(self) -> FaultyServer:
        self._server = _Listener(("127.0.0.1", 0), _handler(self))
        self._serving = _served(self._server)
        self._serving.__enter__()
        return self

    def __exit__(self, *_: object) -> None:
        self.ending.set()
        self._serving.__exit__(None, None, None)

    @property
    def port(self) -> int:
        return self._server.server_port

    @property
    def url(self) -> str:
        return f"http://127.0.0.1:{self.port}"

    def silence(self, _: Asked) -> Reply:
        """A step that says nothing until the server ends."""
        self.ending.wait()
        return Reply(500, cut=True)


def always(status: int, body: bytes = b"", **headers: str) -> Step:
    return lambda _: Reply(status, body, {name.replace("_", "-"): value for name, value in headers.items()})


def hang_up(_: Asked) -> Reply:
    """Break the connection off without a word."""
    return Reply(0, cut=True)


def closed_port() -> int:
    """A port of this machine on which nobody listens."""
    with socket.socket() as one:
        one.bind(("127.0.0.1", 0))
        return int(one.getsockname()[1])


class _Listener(ThreadingHTTPServer):
    daemon_threads = True

    def handle_error(self, request: Any, client_address: Any) -> None:
        """Clients that go away are what is tested."""


def _handler(server: FaultyServer) -> type[BaseHTTPRequestHandler]:
    class Handler(BaseHTTPRequestHandler):
        protocol_version = "HTTP/1.1"
        # Head and body leave together, or the other side waits for the second of them.
        wbufsize = -1

        def handle_one_request(self) -> None:
            self.raw_requestline = self.rfile.readline(65_537)
            if not self.raw_requestline or not self.parse_request():
                self.close_connection = True
                return
            body = self.rfile.read(int(self.headers.get("Content-Length") or 0))
            headers = {name.lower(): value for name, value in self.headers.items()}
            asked = Asked(self.command, self.path, headers, body)
            server.asked.append(asked)
            self._answer((server.script.pop(0) if server.script else server.usual)(asked))

        def _answer(self, reply: Reply) -> None:
            if reply.status:
                self.send_response_only(reply.status)
                self.send_header("Content-Length", str(len(reply.body) if reply.length is None else reply.length))
                for name, value in reply.headers.items():
                    self.send_header(name, value)
                if reply.drips != "head":
                    self.end_headers()
                if self.command != "HEAD":
                    self.wfile.write(reply.body)
                self.flush_headers()
                self.wfile.flush()
            while reply.drips and not server.ending.wait(0.02):
                self.wfile.write(b"x" if reply.drips == "body" else b"X-A: b\r\n")
                self.wfile.flush()
            if reply.cut:
                self.close_connection = True
                self.connection.shutdown(socket.SHUT_RDWR)

        def log_message(self, *_: object) -> None:
            pass

    return Handler


@contextmanager
def _served(server: Any) -> Iterator[None]:
    thread = threading.Thread(target=server.serve_forever, kwargs={"poll_interval": 0.01})
    thread.start()
    try:
        yield
    finally:
        server.shutdown()
        server.server_close()
        thread.join()
