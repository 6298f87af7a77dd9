"""A language model's server on loopback: answers by a script in either protocol, and remembers what was asked."""

from __future__ import annotations

import json
import threading
from collections.abc import Callable
from dataclasses import dataclass, field
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import Any

SCHEMA = {
    "type": "object",
    "properties": {"name": {"type": "string", "maxLength": 20}, "number": {"type": "integer", "minimum": 0}},
    "required": ["name", "number"],
    "additionalProperties": False,
}
GOOD = {"name": "alpha", "number": 3}


@dataclass
class Asked:
    path: str
    headers: dict[str, str]
    body: dict[str, Any]

    @property
    def system(self) -> str:
        """What was said as the system, in whichever of the two protocols."""
        return str(self.body.get("system") or self.body["messages"][0]["content"])

    @property
    def user(self) -> str:
        return str(self.body["messages"][-1]["content"])


@dataclass
class Answer:
    """`drips` sends it byte by byte, so slowly that it never ends: "head" from the status line on, "body" after it."""

    status: int
    content: bytes
    headers: dict[str, str] = field(default_factory=dict)
    drips: str = ""


Step = Callable[[Asked], Answer]


def answer(content: object, status: int = 200, **headers: str) -> Answer:
    return Answer(status, json.dumps(content).encode(), headers)


def chat(content: object, *, finish: str = "stop", tokens: tuple[int, int] | None = (11, 7), **more: object) -> Step:
    """A chat completion that says `content`, as JSON where it is no text."""
    said = content if isinstance(content, str) or content is None else json.dumps(content)
    body: dict[str, Any] = {
        "object": "chat.completion",
        "choices": [{"index": 0, "message": {"role": "assistant", "content": said, **more}, "finish_reason": finish}],
    }
    if tokens:
        body["usage"] = {"prompt_tokens": tokens[0], "completion_tokens": tokens[1]}
    return lambda _: answer(body)


def message(*blocks: dict[str, Any], stop: str = "tool_use") -> Step:
    """A message of Anthropic's with those blocks."""
    usage = {"input_tokens": 11, "cache_read_input_tokens": 2, "output_tokens": 7}
    return lambda _: answer({"type": "message", "content": list(blocks), "stop_reason": stop, "usage": usage})


def tool_use(value: object) -> dict[str, Any]:
    return {"type": "tool_use", "id": "toolu_1", "name": "answer", "input": value}


def refusal(status: int, why: str, **headers: str) -> Step:
    return lambda _: answer({"error": {"message": why, "type": "refused"}}, status, **headers)


def dripping(what: str) -> Step:
    return lambda _: Answer(200, json.dumps({"choices": []}).encode(), drips=what)


@dataclass
class ChatServer:
    """`script` is used up first, one step for each request; after that `usual` answers."""

    script: list[Step] = field(default_factory=list)
    usual: Step = field(default_factory=lambda: chat(GOOD))
    asked: list[Asked] = field(default_factory=list)
    ending: threading.Event = field(default_factory=threading.Event)

    def __enter__(self) -> ChatServer:
        self._server = _Listener(("127.0.0.1", 0), _handler(self))
        self._thread = threading.Thread(target=self._server.serve_forever, kwargs={"poll_interval": 0.01})
        self._thread.start()
        return self

    def __exit__(self, *_: object) -> None:
        self.ending.set()
        self._server.shutdown()
        self._server.server_close()
        self._thread.join()

    @property
    def root(self) -> str:
        return f"http://127.0.0.1:{self._server.server_port}"

    @property
    def url(self) -> str:
        return f"{self.root}/v1"

    def silence(self, _: Asked) -> Answer:
        """A step that says nothing until the server ends."""
        self.ending.wait()
        return answer({})


class _Listener(ThreadingHTTPServer):
    daemon_threads = True

    def handle_error(self, *_: object) -> None:
        """Clients that go away are part of the script."""


def _handler(server: ChatServer) -> type[BaseHTTPRequestHandler]:
    class Handler(BaseHTTPRequestHandler):
        protocol_version = "HTTP/1.1"

        def do_POST(self) -> None:
            body = json.loads(self.rfile.read(int(self.headers["Content-Length"])))
            asked = Asked(self.path, {name.lower(): value for name, value in self.headers.items()}, body)
            server.asked.append(asked)
            step = server.script.pop(0) if server.script else server.usual
            given = step(asked)
            if given.drips == "head":
                self._drip(b"HTTP/1.1 200 OK\r\nX-Filler: " + b"x" * 100_000)
                return
            self.send_response(given.status)
            length = 100_000 if given.drips else len(given.content)
            for name, value in {**given.headers, "Content-Length": str(length)}.items():
                self.send_header(name.replace("_", "-"), value)
            self.end_headers()
            if given.drips:
                self._drip(given.content + b" " * 100_000)
            else:
                self.wfile.write(given.content)

        def _drip(self, content: bytes) -> None:
            for byte in content:
                self.wfile.write(bytes([byte]))
                if server.ending.wait(0.02):
                    return

        def log_message(self, *_: object) -> None:
            pass

    return Handler
