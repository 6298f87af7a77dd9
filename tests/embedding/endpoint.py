"""A small endpoint on loopback that speaks OpenAI's interface, answers by a script, and remembers what was asked."""

from __future__ import annotations

import json
import threading
from collections.abc import Callable
from dataclasses import dataclass, field
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import Any

from stub_backend import StubBackend

Answer = tuple[int, dict[str, str], bytes]
Step = Callable[[dict[str, Any]], Answer]


def vectors(question: dict[str, Any]) -> Answer:
    """What a sound endpoint answers; last text first, because the order is not promised."""
    found = StubBackend().embed(question["input"])
    data = [{"object": "embedding", "index": n, "embedding": row.tolist()} for n, row in enumerate(found)]
    return answer({"object": "list", "model": question["model"], "data": data[::-1]})


def answer(content: object, status: int = 200, **headers: str) -> Answer:
    return status, {"Content-Type": "application/json", **headers}, json.dumps(content).encode()


def refusal(status: int, message: str, **headers: str) -> Step:
    return lambda _: answer({"error": {"message": message, "type": "refused"}}, status, **headers)


@dataclass
class Asked:
    path: str
    headers: dict[str, str]
    body: dict[str, Any]


@dataclass
class Endpoint:
    """`script` is used up first, one step for each request; after that every answer is sound."""

    script: list[Step] = field(default_factory=list)
    asked: list[Asked] = field(default_factory=list)
    usual: Step = vectors

    def __enter__(self) -> Endpoint:
        endpoint = self

        class Handler(BaseHTTPRequestHandler):
            protocol_version = "HTTP/1.1"

            def do_POST(self) -> None:
                body = json.loads(self.rfile.read(int(self.headers["Content-Length"])))
                endpoint.asked.append(Asked(self.path, {k.lower(): v for k, v in self.headers.items()}, body))
                step = endpoint.script.pop(0) if endpoint.script else endpoint.usual
                status, headers, content = step(body)
                self.send_response(status)
                for name, value in {**headers, "Content-Length": str(len(content))}.items():
                    self.send_header(name.replace("_", "-"), value)
                self.end_headers()
                self.wfile.write(content)

            def log_message(self, *_: object) -> None:
                pass

        self._server = ThreadingHTTPServer(("127.0.0.1", 0), Handler)
        self._server.daemon_threads = True
        self._thread = threading.Thread(target=self._server.serve_forever, kwargs={"poll_interval": 0.01})
        self._thread.start()
        return self

    def __exit__(self, *_: object) -> None:
        self._server.shutdown()
        self._server.server_close()
        self._thread.join()

    @property
    def url(self) -> str:
        return f"http://127.0.0.1:{self._server.server_port}/v1"
