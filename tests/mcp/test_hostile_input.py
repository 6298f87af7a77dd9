"""Whatever a client sends, it is answered correctly and the server lives: both transports, both protocols."""

import asyncio
import json
import socket
from collections.abc import Callable, Iterator
from http.client import HTTPConnection, HTTPResponse
from pathlib import Path
from typing import Any, Protocol
from urllib.parse import urlsplit

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from mcp.shared.inbound import encode_header_value
from starlette.types import Message, Receive, Scope, Send

from cases import each
from cortex_py.surfaces.http.middleware import BodyLimit, WellFormed
from cortex_py.surfaces.mcp.registry import TOOLS, family_tools
from cortex_py.surfaces.mcp.stdio.frames import MessageFrame
from cortex_py.surfaces.mcp.stdio.front import AnswerSnapshot, envelope
from cortex_py.surfaces.mcp.stdio.serve import MOST_BYTES

from servers import HttpServer, StdioServer, http_server, stdio_server

SECONDS = 60
MODERN_META = envelope("2026-07-28")
HELLO = {"protocolVersion": "2025-11-25", "capabilities": {}, "clientInfo": {"name": "test", "version": "1"}}

# What may be answered to a request that makes no sense; neither is a fault of the server.
CODES = {-32600, -32601, -32602, -32604, -32605, -32606, -32607, -32608, -32020, -32022}
# The same where a tool tells it in its answer.
ANSWERED_CODES = {
    "VALIDATION_ERROR",
    "TEXT_TOO_LONG",
    "SECURITY_VIOLATION",
    "RATE_LIMITED",
    "INVALID_PARAMS",
    "PROJECT_NOT_FOUND",
    "BRANCH_NOT_FOUND",
    "CONTEXT_NOT_FOUND",
    "SESSION_NOT_FOUND",
}


class Wire(Protocol):
    """A connection to a living server, over which anything can be sent."""

    modern: bool

    def answer(self, raw: bytes, *, awaited: bool = True) -> Any:
        """The answer to some bytes: a message, or nothing where none is due."""
        ...


def _asked(wire: Wire, method: str, id: Any = 7, **params: Any) -> Any:
    return wire.answer(_request(wire, method, id, **params))


def _request(wire: Wire, method: str, id: Any = 7, **params: Any) -> bytes:
    message = {"jsonrpc": "2.0", "id": id, "method": method, "params": {**params, **_meta(wire)}}
    return json.dumps(message).encode()


def _meta(wire: Wire) -> dict[str, Any]:
    return MODERN_META if wire.modern else {}


def _is_well(wire: Wire) -> bool:
    """Whether an ordinary call still works."""
    answer = _asked(wire, "tools/call", "well?", name="subcog_namespaces", arguments={})
    return answer["id"] == "well?" and len(answer["result"]["structuredContent"]["namespaces"]) == 13


class StdioWire:
    def __init__(self, server: StdioServer, *, modern: bool) -> None:
        self._server = server
        self._probes = 0
        self.modern = modern

    def answer(self, raw: bytes, *, awaited: bool = True) -> Any:
        self._probes += 1
        probe = f"probe {self._probes}"
        self._server.write(raw + b"\n")
        self._server.send("no/such/method", MODERN_META if self.modern else {}, probe)
        answers, probed = [], False
        # The probe says that nothing more need come, unless an answer is due that takes longer.
        while not probed or (awaited and not answers):
            message = self._server.read()
            assert message["jsonrpc"] == "2.0"
            if message.get("id") == probe:
                probed = True
            elif "method" not in message:
                answers.append(message)
        assert len(answers) <= 1
        return answers[0] if answers else None


class HttpWire:
    def __init__(self, server: HttpServer, *, modern: bool) -> None:
        self._place = urlsplit(server.url)
        self._session: str | None = None
        self.modern = modern
        if not modern:
            hello = json.dumps({"jsonrpc": "2.0", "id": 0, "method": "initialize", "params": HELLO}).encode()
            response, _ = self.post(hello)
            self._session = response.headers["mcp-session-id"]

    def post(self, body: bytes, **headers: str) -> tuple[HTTPResponse, bytes]:
        connection = HTTPConnection(self._place.hostname or "", self._place.port, timeout=SECONDS)
        try:
            connection.request("POST", "/mcp", body, {**self._headers(body), **headers})
            response = connection.getresponse()
            return response, response.read()
        finally:
            connection.close()

    def answer(self, raw: bytes, *, awaited: bool = True) -> Any:
        response, body = self.post(raw)
        assert response.status in (200, 202, 400, 404, 431)
        if response.status == 202:
            assert body == b""
            return None
        if response.status == 431:
            # The name of what is asked for is in a header too, and headers are bounded.
            return {"jsonrpc": "2.0", "id": json.loads(raw)["id"], "error": {"code": -32602, "message": "header"}}
        message = _told(response, body)
        assert message["jsonrpc"] == "2.0"
        assert (response.status == 200) <= ("result" in message or message["id"] is not None)
        return message

    def _headers(self, body: bytes) -> dict[str, str]:
        """What an honest client would say beside this body, as far as it has anything to say."""
        headers = {"Accept": "application/json, text/event-stream", "Content-Type": "application/json"}
        if not self.modern:
            session = {} if self._session is None else {"Mcp-Session-Id": self._session}
            return {**headers, "MCP-Protocol-Version": "2025-11-25", **session}
        headers["MCP-Protocol-Version"] = "2026-07-28"
        try:
            message = json.loads(body)
        except (ValueError, RecursionError):
            return headers
        method = message.get("method") if isinstance(message, dict) else None
        params = message.get("params") if isinstance(message, dict) else None
        if isinstance(method, str) and method and _is_text(method):
            headers["Mcp-Method"] = encode_header_value(method)
        name = params.get("uri" if method == "resources/read" else "name") if isinstance(params, dict) else None
        if isinstance(name, str) and name and _is_text(name):
            headers["Mcp-Name"] = encode_header_value(name)
        return headers


def _is_text(value: str) -> bool:
    return value.encode("utf-8", "replace").decode() == value


def _told(response: HTTPResponse, body: bytes) -> Any:
    """The message in a response: alone, or the last of a stream."""
    if response.headers["content-type"] == "application/json":
        return json.loads(body)
    assert response.headers["content-type"].startswith("text/event-stream")
    return [json.loads(line[6:]) for line in body.split(b"\r\n") if line.startswith(b"data: ")][-1]


def _started(folder: Path) -> tuple[Path, Path]:
    (folder / "project").mkdir()
    return folder / "home", folder / "project"


def _stdio(folder: Path, *, modern: bool) -> Iterator[StdioWire]:
    with stdio_server(*_started(folder)) as server:
        if modern:
            server.request(0, "server/discover", MODERN_META)
        else:
            server.handshake()
        wire = StdioWire(server, modern=modern)
        assert _is_well(wire)
        yield wire
        assert _is_well(wire)
        server.close_input()
        assert server.rest() == b""
        assert server.process.wait(SECONDS) == 0
        # The faults were the client's, and it was told; a log of them could be grown at will.
        assert server.process.stderr is not None
        assert server.process.stderr.read() == b""


@pytest.fixture(scope="module")
def stdio_legacy(tmp_path_factory: pytest.TempPathFactory) -> Iterator[StdioWire]:
    yield from _stdio(tmp_path_factory.mktemp("legacy"), modern=False)


@pytest.fixture(scope="module")
def stdio_modern(tmp_path_factory: pytest.TempPathFactory) -> Iterator[StdioWire]:
    yield from _stdio(tmp_path_factory.mktemp("modern"), modern=True)


@pytest.fixture(scope="module")
def http(tmp_path_factory: pytest.TempPathFactory) -> Iterator[HttpServer]:
    with http_server(*_started(tmp_path_factory.mktemp("http"))) as server:
        yield server
        server.process.terminate()
        assert server.process.wait(SECONDS) == 0


@pytest.fixture(scope="module")
def http_legacy(http: HttpServer) -> HttpWire:
    return HttpWire(http, modern=False)


@pytest.fixture(scope="module")
def http_modern(http: HttpServer) -> HttpWire:
    return HttpWire(http, modern=True)


# Each is started once; a fixture with these as its own parameters would be started anew at every change.
@pytest.fixture(params=["stdio_legacy", "stdio_modern", "http_legacy", "http_modern"])
def wire(request: pytest.FixtureRequest) -> Wire:
    chosen: Wire = request.getfixturevalue(request.param)
    return chosen


@pytest.fixture(params=["http_legacy", "http_modern"])
def http_wire(request: pytest.FixtureRequest) -> HttpWire:
    chosen: HttpWire = request.getfixturevalue(request.param)
    return chosen


def _ping(**parts: Any) -> bytes:
    return json.dumps({"jsonrpc": "2.0", "id": 4, "method": "ping", **parts}).encode()


def _with(part: bytes, value: bytes) -> bytes:
    """A call with one part as it stands here, whatever JSON thinks of it."""
    parts = {b"id": b"4", b"method": b'"ping"', b"params": b"{}", part: value}
    return b'{"jsonrpc":"2.0",' + b",".join(b'"%s":%s' % one for one in parts.items()) + b"}"


def _capturing(content: bytes) -> bytes:
    arguments = b'{"content":%s,"namespace":"decisions"}' % content
    return _with(b"params", b'{"name":"subcog_capture","arguments":%s}' % arguments).replace(b"ping", b"tools/call")


@each(
    ("raw", "code", "id"),
    [
        pytest.param(b"nonsense", -32700, None, id="no JSON"),
        pytest.param(b'{"jsonrpc":"2.0","id":4', -32700, None, id="half a message"),
        pytest.param(b"\xff\xfe\xfd", -32700, None, id="no UTF-8"),
        pytest.param(_with(b"method", b'"\x01"'), -32700, None, id="a bare control character"),
        pytest.param(_with(b"id", b"NaN"), -32700, None, id="id not a number"),
        pytest.param(_with(b"id", b'"\\ud800"'), -32700, None, id="lone surrogate as id"),
        pytest.param(_capturing(b'"a \\udfff b"'), -32700, None, id="lone surrogate as content"),
        pytest.param(b"[" + _ping() + b"," + _ping(id=5) + b"]", -32600, None, id="batch"),
        pytest.param(_ping(id=True), -32600, None, id="id true"),
        pytest.param(_ping(id=None), -32600, None, id="id null"),
        pytest.param(_ping(id=2**63), -32600, None, id="id too large"),
        pytest.param(_ping(jsonrpc="1.0"), -32600, 4, id="other protocol"),
        pytest.param(_ping(method=5), -32600, 4, id="method a number"),
        pytest.param(b'{"jsonrpc":"2.0","id":"four"}', -32600, "four", id="no method"),
        pytest.param(_ping(params=[]), -32600, 4, id="params a list"),
        pytest.param(_with(b"params", b'{"a":' + b"[" * 100 + b"]" * 100 + b"}"), -32600, 4, id="deep"),
        pytest.param(_with(b"params", b'{"a":' * 100_000 + b"1" + b"}" * 100_000), -32600, None, id="very deep"),
    ],
)
def test_what_is_no_message_is_refused_with_its_code(wire: Wire, raw: bytes, code: int, id: Any) -> None:
    answer = wire.answer(raw)
    assert (answer["id"], answer["error"]["code"]) == (id, code)
    assert answer["error"]["message"]
    assert _is_well(wire)


def _call(tool: str, codes: set[int], /, **arguments: Any) -> tuple[str, dict[str, Any], set[int]]:
    return "tools/call", {"name": tool, "arguments": arguments}, codes


CALLS: dict[str, tuple[str, dict[str, Any], set[int]]] = {
    "unknown method": ("no/such/method", {}, {-32601}),
    "empty method": ("", {}, {-32601}),
    "method of control characters": ("\x00\x1b[31m", {}, {-32601}),
    "no tool": ("tools/call", {}, {-32602}),
    "tool not a text": ("tools/call", {"name": 5}, {-32602}),
    "tool null": ("tools/call", {"name": None}, {-32602}),
    "unknown tool": _call("no_such_tool", {-32601}),
    "tool of control characters": _call("\x00\x07", {-32601}),
    "arguments a list": ("tools/call", {"name": "subcog_recall", "arguments": [1]}, {-32602}),
    "arguments a text": ("tools/call", {"name": "subcog_recall", "arguments": "query"}, {-32602}),
    "unknown argument": ("tools/call", {"name": "subcog_recall", "arguments": {"": 1}}, {-32602}),
    "argument missing": _call("subcog_capture", {-32602}, content="x"),
    "argument of the wrong type": _call("subcog_get", {-32602}, memory_id={}),
    "argument null": _call("subcog_get", {-32602}, memory_id=None),
    "number far too large": _call("subcog_recall", {-32602}, limit=10**300),
    "no such mode": _call("subcog_recall", {-32602}, mode="\x00"),
    "no id": _call("subcog_get", {-32602}, memory_id="\x00"),
    "project that is no folder": _call("subcog_reindex", {-32602}, repo_path="/nowhere"),
    "no such id": _call("subcog_get", {-32604}, memory_id="f" * 40),
    "consolidation of control characters": _call("subcog_consolidate", {-32608}, namespace="\x00\u202e"),
    "consolidation of a million characters": _call("subcog_consolidate", {-32608}, namespace="x" * 1_000_000),
    "consolidation of words beyond all bounds": _call(
        "subcog_consolidate", {-32602}, namespace="decisions", query="tag:x " * 100_000
    ),
    "enrichment of no id": _call("subcog_enrich", {-32602}, memory_id="\x00"),
    "enrichment of a million characters": _call("subcog_enrich", {-32602}, memory_id="f" * 1_000_000),
    "capture in the place of control characters": _call(
        "subcog_capture", {-32602}, content="x", namespace="decisions", supersedes="\x00"
    ),
    "capture in the place of a million characters": _call(
        "subcog_capture", {-32602}, content="x", namespace="decisions", supersedes="f" * 1_000_000
    ),
    "capture in the place of a list": _call(
        "subcog_capture", {-32602}, content="x", namespace="decisions", supersedes=["f" * 40]
    ),
    "meta not an object": ("tools/call", {"name": "subcog_status", "_meta": [1]}, {-32602}),
    "token not a text": ("tools/call", {"name": "subcog_status", "_meta": {"progressToken": []}}, {-32602}),
    "no address": ("resources/read", {}, {-32602}),
    "address not a text": ("resources/read", {"uri": {}}, {-32602}),
    "no such address": ("resources/read", {"uri": "file:///etc/passwd"}, {-32602}),
    "address of control characters": ("resources/read", {"uri": "subcog://memory/\x00"}, {-32602}),
    "cursor not a text": ("tools/list", {"cursor": 5}, {-32602}),
    "completion of nothing": ("completion/complete", {"ref": {"type": "x"}, "argument": 5}, {-32602}),
    "prompt that is not there": ("prompts/get", {"name": "\x00"}, {-32602}),
    "no prompt": ("prompts/get", {}, {-32602}),
    "prompt not a text": ("prompts/get", {"name": ["start-session"]}, {-32602}),
    "prompt of a million characters": ("prompts/get", {"name": "x" * 1_000_000}, {-32602}),
    "prompt with a list of arguments": ("prompts/get", {"name": "start-session", "arguments": ["task"]}, {-32602}),
    "prompt with arguments that are no texts": (
        "prompts/get",
        {"name": "start-session", "arguments": {"task": {"a": 1}}},
        {-32602},
    ),
    "saved name of a million characters": _call(
        "subcog_prompts", {-32602}, action="save", name="x" * 1_000_000, content="x"
    ),
    "saved name of a million characters asked for": _call(
        "subcog_templates", {-32607}, action="get", name="x" * 1_000_000
    ),
    "variable of a million characters": _call("prompt_save", {-32602}, name="x", content="{{%s}}" % ("x" * 190_000)),
    "deep template": _call(
        "subcog_templates", {-32602}, action="save", name="x", content="{{#if a}}" * 9_000 + "{{/if}}" * 9_000
    ),
    "braces without end": _call("subcog_prompts", {-32602}, action="save", name="x", content="{" * 200_000),
}


@pytest.mark.slow
@each(("method", "params", "codes"), CALLS.values(), ids=CALLS)
def test_a_request_that_makes_no_sense_is_refused(
    wire: Wire, method: str, params: dict[str, Any], codes: set[int]
) -> None:
    if wire.modern and isinstance(meta := params.get("_meta"), dict):
        params = {**params, "_meta": {**MODERN_META["_meta"], **meta}}
    elif "_meta" not in params:
        params = {**params, **_meta(wire)}
    answer = wire.answer(json.dumps({"jsonrpc": "2.0", "id": 7, "method": method, "params": params}).encode())
    assert answer["id"] == 7
    # Over HTTP the stateless protocol also compares the headers with such a body, and may object there.
    assert answer["error"]["code"] in (codes | {-32020} if isinstance(wire, HttpWire) and wire.modern else codes)
    assert answer["error"]["message"]
    assert len(json.dumps(answer)) < 10_000
    assert _is_well(wire)


@pytest.mark.parametrize("id", [0, -1, 2**63 - 1, -(2**63) + 1, "", "7", "\x00\u202e", "x" * 10_000])
def test_every_id_comes_back_as_it_was(wire: Wire, id: str | int) -> None:
    answer = _asked(wire, "tools/call", id, name="no_such_tool", arguments={})
    assert (answer["id"], type(answer["id"])) == (id, type(id))
    assert answer["error"]["code"] == -32601


@pytest.mark.parametrize(
    "message",
    [
        {"method": "no/such/notification"},
        {"method": "notifications/cancelled", "params": {"requestId": [1]}},
        {"method": "notifications/cancelled", "params": {"requestId": "nobody"}},
        {"method": "notifications/progress", "params": {"progressToken": True, "progress": "x"}},
        {"method": "tools/call", "params": {"name": "subcog_status"}},
    ],
)
def test_a_notification_is_never_answered(wire: Wire, message: dict[str, Any]) -> None:
    assert wire.answer(json.dumps({"jsonrpc": "2.0", **message}).encode(), awaited=False) is None
    assert _is_well(wire)


@pytest.mark.parametrize("content", [{"result": 5}, {"error": 5}, {"error": {"code": "x"}}, {"result": []}])
def test_a_response_to_nothing_is_not_taken_for_a_request(wire: Wire, content: dict[str, Any]) -> None:
    answer = wire.answer(json.dumps({"jsonrpc": "2.0", "id": 4, **content}).encode(), awaited=False)
    # Whoever hears of it must not believe that a request of its own was answered.
    assert answer is None or (answer["id"], "error" in answer) == (None, True)
    assert _is_well(wire)


def test_control_characters_are_kept_as_they_are(wire: Wire) -> None:
    content = "bell \x07, escape \x1b[31m, null \x00, \u202e bidi, \ufeff mark, \u2028 line"
    arguments = {"content": content, "namespace": "learnings"}
    stored = _asked(wire, "tools/call", name="subcog_capture", arguments=arguments)["result"]["structuredContent"]
    got = _asked(wire, "tools/call", name="subcog_get", arguments={"memory_id": stored["id"]})
    assert got["result"]["structuredContent"]["content"] == content


@pytest.mark.slow
@pytest.mark.parametrize("name", ["stdio_legacy", "stdio_modern"])
def test_a_line_beyond_all_bounds_is_thrown_away(request: pytest.FixtureRequest, name: str) -> None:
    wire: StdioWire = request.getfixturevalue(name)
    answer = wire.answer(_capturing(b'"' + b"x" * MOST_BYTES + b'"'))
    assert (answer["id"], answer["error"]["code"]) == (None, -32600)
    assert answer["error"]["message"] == f"The message is larger than {MOST_BYTES} bytes."
    assert _is_well(wire)


def test_a_body_beyond_all_bounds_is_refused_before_it_is_sent(http_wire: HttpWire) -> None:
    response, body = http_wire.post(b"{}", **{"Content-Length": str(MOST_BYTES + 1)})
    assert (response.status, json.loads(body)["error"]["code"]) == (413, -32600)
    assert _is_well(http_wire)


def test_a_large_body_is_taken(http_wire: HttpWire) -> None:
    # Larger than the framework's own bound, smaller than ours; it must be the tool that refuses.
    answer = _asked(http_wire, "tools/call", name="subcog_recall", arguments={"padding": "x" * 5_000_000})
    assert (answer["id"], answer["error"]["data"]["field"]) == (7, "padding")


def _through_guards(pieces: list[bytes], most: int) -> tuple[int, bytes, list[bytes]]:
    """Status, answer and what got through, when a body comes in these pieces without saying how large it is."""
    waiting: list[Message] = [
        {"type": "http.request", "body": piece, "more_body": number < len(pieces) - 1}
        for number, piece in enumerate(pieces)
    ]
    sent: list[Message] = []
    through: list[bytes] = []

    async def receive() -> Message:
        return waiting.pop(0)

    async def send(message: Message) -> None:
        sent.append(message)

    async def inner(scope: Scope, receive: Receive, send: Send) -> None:
        through.append((await receive())["body"])
        await send({"type": "http.response.start", "status": 200, "headers": []})
        await send({"type": "http.response.body", "body": b""})

    scope = {"type": "http", "method": "POST", "path": "/mcp", "headers": []}
    asyncio.run(BodyLimit(WellFormed(inner, path="/mcp"), most=most)(scope, receive, send))
    return sent[0]["status"], sent[1]["body"], through


def test_a_body_that_grows_beyond_the_bound_is_refused() -> None:
    ping = _ping()
    assert _through_guards([ping[:20], ping[20:]], len(ping)) == (200, b"", [ping])
    status, body, through = _through_guards([ping[:20], ping[20:]], len(ping) - 1)
    assert (status, json.loads(body)["error"]["code"], through) == (413, -32600, [])


def test_a_body_may_have_many_lines(http_wire: HttpWire) -> None:
    message = json.loads(_request(http_wire, "tools/list", "list"))
    answer = http_wire.answer(json.dumps(message, indent=2).encode())
    assert len(answer["result"]["tools"]) == len(TOOLS)


HEADERS: dict[str, tuple[dict[str, str], int]] = {
    "another kind of content": ({"Content-Type": "text/plain"}, 400),
    "nothing acceptable": ({"Accept": "image/png"}, 406),
    "unknown protocol": ({"MCP-Protocol-Version": "1999-01-01"}, 400),
    "another host": ({"Host": "evil.example"}, 421),
    "another origin": ({"Origin": "https://evil.example"}, 403),
}


@pytest.mark.parametrize(("headers", "status"), HEADERS.values(), ids=HEADERS)
def test_headers_that_make_no_sense_are_refused(http_wire: HttpWire, headers: dict[str, str], status: int) -> None:
    response, _ = http_wire.post(_request(http_wire, "tools/list"), **headers)
    assert response.status == status
    assert _is_well(http_wire)


def test_a_session_that_never_was_is_not_found(http_legacy: HttpWire) -> None:
    response, _ = http_legacy.post(_request(http_legacy, "tools/list"), **{"Mcp-Session-Id": "no such session"})
    assert response.status == 404
    assert _is_well(http_legacy)


@pytest.mark.parametrize("header", ["Mcp-Method", "Mcp-Name"])
def test_headers_that_contradict_the_body_are_refused(http_modern: HttpWire, header: str) -> None:
    body = _request(http_modern, "tools/call", name="subcog_status", arguments={})
    response, text = http_modern.post(body, **{header: "other"})
    assert (response.status, json.loads(text)["error"]["code"], json.loads(text)["id"]) == (400, -32020, 7)
    assert _is_well(http_modern)


def test_what_is_no_http_is_refused(http: HttpServer, http_legacy: HttpWire) -> None:
    place = urlsplit(http.url)
    for raw in (
        b"\x00\xff\x16\x03\x01 nonsense\r\n\r\n",
        b"POST /mcp HTTP/1.1\r\nHost: x\r\nContent-Length: minus one\r\n\r\n",
        b"GET /" + b"x" * 200_000 + b" HTTP/1.1\r\n\r\n",
    ):
        with socket.create_connection((place.hostname or "", place.port or 0), timeout=SECONDS) as connection:
            connection.sendall(raw)
            connection.shutdown(socket.SHUT_WR)
            assert connection.recv(1000).split(b" ", 2)[1:2] in ([b"400"], [b"414"], [b"431"])
    assert _is_well(http_legacy)


# Numbers stay within what the store can hold; text is anything that text can be.
texts = st.text(st.characters(exclude_categories=["Cs"]), max_size=20)
values: st.SearchStrategy[Any] = st.recursive(
    st.none() | st.booleans() | st.integers(-(2**63), 2**63 - 1) | st.floats(-1e300, 1e300) | texts,
    lambda inner: st.lists(inner, max_size=4) | st.dictionaries(texts, inner, max_size=4),
    max_leaves=8,
)
ids = texts | st.integers(-(2**63) + 1, 2**63 - 1)
METHODS = """tools/list tools/call resources/list resources/templates/list resources/read resources/subscribe
    resources/unsubscribe prompts/list prompts/get completion/complete logging/setLevel server/discover
    ping tasks/get notifications/cancelled notifications/initialized"""
methods = st.sampled_from(METHODS.split())
FITTING: dict[str | None, st.SearchStrategy[Any]] = {
    "string": texts,
    "integer": st.integers(-(2**63), 2**63 - 1),
    "number": st.floats(-1e300, 1e300),
    "boolean": st.booleans(),
    "array": st.lists(texts, max_size=4),
    "object": st.dictionaries(texts, values, max_size=3),
}


def _schemas() -> dict[str, dict[str, Any]]:
    """The parameters of every tool."""
    request = MessageFrame({"jsonrpc": "2.0", "id": 0, "method": "tools/list", "params": MODERN_META})
    listed = AnswerSnapshot.load(TOOLS, portable=False).answer(request)
    assert listed is not None
    return {tool["name"]: tool["inputSchema"]["properties"] for tool in listed["tools"]}


def _arguments(schema: dict[str, Any]) -> st.SearchStrategy[dict[str, Any]]:
    """Arguments for a tool, most of them of a type it takes: those get furthest."""
    fitting = _fitting(schema)
    given = st.fixed_dictionaries(fitting)
    given |= st.fixed_dictionaries({}, optional=fitting)
    given |= st.fixed_dictionaries({}, optional={**dict.fromkeys(schema, values), "surprise": values})
    return given.filter(lambda arguments: not _is_folder(arguments.get("project_path")))


def _fitting(schema: dict[str, Any]) -> dict[str, st.SearchStrategy[Any]]:
    return {name: _fit(part) for name, part in schema.items()}


def _fit(part: dict[str, Any]) -> st.SearchStrategy[Any]:
    if "enum" in part:
        return st.sampled_from(part["enum"])
    if "enum" in part.get("items", {}):
        return st.lists(st.sampled_from(part["items"]["enum"]), max_size=4)
    return FITTING.get(part.get("type"), texts)


def _is_folder(path: Any) -> bool:
    """Whether a path leads to something, all of which would be read."""
    try:
        return isinstance(path, str) and Path(path).expanduser().exists()
    except (OSError, RuntimeError, ValueError):
        return False


SCHEMAS = _schemas()
calls = st.sampled_from(sorted(SCHEMAS.items())).flatmap(lambda one: st.tuples(st.just(one[0]), _arguments(one[1])))

fuzzed: Callable[[Any], Any] = settings(
    max_examples=40,
    deadline=None,
    # The wire is shared on purpose: it must stand all examples.
    suppress_health_check=[HealthCheck.function_scoped_fixture, HealthCheck.too_slow],
)
fuzzed_little: Callable[[Any], Any] = settings(fuzzed, max_examples=15)  # type: ignore[arg-type]


@pytest.mark.slow
@fuzzed
@given(st.binary(min_size=1, max_size=60).filter(lambda raw: b"\n" not in raw and raw.strip() == raw))
def test_any_bytes_are_answered(wire: Wire, raw: bytes) -> None:
    answer = wire.answer(raw)
    assert answer["id"] is None
    assert answer["error"]["code"] in (-32700, -32600)
    assert _is_well(wire)


@pytest.mark.slow
@fuzzed
@given(
    st.fixed_dictionaries(
        {"jsonrpc": st.just("2.0") | values},
        optional={"id": ids | values, "method": methods | values, "params": values, "result": values, "error": values},
    )
)
def test_any_message_is_answered_if_an_answer_is_due(wire: Wire, message: dict[str, Any]) -> None:
    id = message.get("id")
    usable = isinstance(id, str) or (type(id) is int and abs(id) < 2**63)
    due = (
        message["jsonrpc"] == "2.0"
        and usable
        and isinstance(message.get("method"), str)
        and isinstance(message.get("params", {}), dict)
    )
    answer = wire.answer(json.dumps(message).encode(), awaited=due)
    if due:
        assert answer is not None
    if answer is not None:
        assert answer["id"] in (id if usable else None, None)
        assert "result" in answer or answer["error"]["code"] in CODES
    assert _is_well(wire)


@pytest.mark.slow
@fuzzed
@given(ids, calls)
def test_any_arguments_are_answered(wire: Wire, id: str | int, call: tuple[str, dict[str, Any]]) -> None:
    answer = _asked(wire, "tools/call", id, name=call[0], arguments=call[1])
    assert answer["id"] == id
    if "error" in answer:
        assert answer["error"]["code"] in CODES
    elif answer["result"].get("isError"):
        told = answer["result"]["structuredContent"]
        assert told.get("error_code", told.get("code")) in ANSWERED_CODES, told
    assert _is_well(wire)


@pytest.fixture
def place(wire: Wire, tmp_path: Path) -> dict[str, str]:
    """A line of work, so that calls for it get past their first look."""

    def made(tool: str, **arguments: str) -> Any:
        return _asked(wire, "tools/call", name=tool, arguments=arguments)["result"]["structuredContent"]

    project = made("initialize_context", project_path=str(tmp_path), mode="none")["project_id"]
    branch = made("create_branch", project_id=project, branch_topic="Hostile")["branch_id"]
    return {"project_id": project, "branch_id": branch, "cortex_branch_id": branch}


@pytest.mark.slow
@fuzzed
@given(st.data())
def test_any_arguments_for_a_line_of_work_are_answered(wire: Wire, place: dict[str, str], data: st.DataObject) -> None:
    name = data.draw(
        st.sampled_from([spec.name for spec in family_tools("context") if spec.name != "initialize_context"])
    )
    schema = SCHEMAS[name]
    known = {key: value for key, value in place.items() if key in schema}
    arguments = data.draw(st.fixed_dictionaries(_fitting(schema))) | known
    result = _asked(wire, "tools/call", name=name, arguments=arguments)["result"]["structuredContent"]
    assert result["success"] is True or result["error_code"] in ANSWERED_CODES, result
    assert _is_well(wire)


# Most refer to something that is there, and stay in range: those get furthest.
NEAR = {
    "integer": st.integers(1, 3),
    "number": st.floats(0, 1),
    "string": st.sampled_from(("One", "entity_two", "two", "2026-01-01", "3d")),
    "array": st.lists(st.sampled_from(("One", "Two")), min_size=2, max_size=3),
}


@pytest.fixture
def entities(wire: Wire) -> None:
    """Two entities, so that calls for them get past their first look."""
    for name in ("One", "Two"):
        given = {"action": "create", "name": name, "entity_type": "Concept"}
        _asked(wire, "tools/call", name="subcog_entities", arguments=given)


@pytest.mark.slow
@fuzzed
@pytest.mark.usefixtures("entities")
@given(st.data())
def test_any_arguments_for_the_graph_are_answered(wire: Wire, data: st.DataObject) -> None:
    schema = SCHEMAS[name := data.draw(st.sampled_from([spec.name for spec in family_tools("graph")]))]
    fitting = {
        key: _fit(part) if "enum" in str(part) or part["type"] not in NEAR else NEAR[part["type"]] | _fit(part)
        for key, part in schema.items()
    }
    needed = "operation" if "operation" in schema else "action"
    drawn = st.fixed_dictionaries({needed: fitting.pop(needed)}, optional=fitting)
    answer = _asked(wire, "tools/call", name=name, arguments=data.draw(drawn))
    assert "result" in answer or answer["error"]["code"] in CODES, answer
    assert _is_well(wire)


@pytest.fixture
def alike(wire: Wire) -> list[str]:
    """Two memories that say the same, so that there is something to consolidate, enrich and replace."""
    given = {"content": "Zoë deploys\x00 on Friday because ☃", "namespace": "blockers"}
    made = [_asked(wire, "tools/call", name="subcog_capture", arguments=given) for _ in range(2)]
    return [one["result"]["structuredContent"]["id"] for one in made]


@pytest.mark.slow
@fuzzed_little
@given(st.data())
def test_any_arguments_for_tidying_are_answered(wire: Wire, alike: list[str], data: st.DataObject) -> None:
    name = data.draw(st.sampled_from(("subcog_consolidate", "subcog_enrich", "subcog_capture")))
    near: dict[str, st.SearchStrategy[Any]] = {
        "namespace": st.sampled_from(("blockers", "BLOCKERS ")) | texts,
        "memory_id": st.sampled_from((*alike, alike[0][:16], f"context_{alike[1]}")) | texts,
        "supersedes": st.sampled_from(alike) | texts,
        "query": st.sampled_from(("Friday", "tag:x", "-tag:x Friday", "since:1d", "ns:decisions", 'tag:"')) | texts,
    }
    schema = SCHEMAS[name]
    fitting = {key: near.get(key, _fit(part)) for key, part in schema.items()}
    needed = {key: fitting.pop(key) for key in ("namespace", "memory_id", "content") if key in fitting}
    drawn = st.fixed_dictionaries(needed, optional=fitting)
    answer = _asked(wire, "tools/call", name=name, arguments=data.draw(drawn))
    assert "result" in answer or answer["error"]["code"] in CODES, answer
    assert _is_well(wire)


LAUGHS = {
    "loops in loops": ("{{#each a}}" * 12 + "ha" + "{{/each}}" * 12, {"a": list(range(200))}),
    "empty loops in loops": ("{{#each a}}" * 12 + "{{/each}}" * 12, {"a": list(range(200))}),
    "a long value many times": ("{{a}}" * 1_000, {"a": "ha" * 100_000}),
    "a long value in a loop": ("{{#each a}}{{b}}{{/each}}", {"a": list(range(1_000)), "b": "ha" * 100_000}),
}


@pytest.mark.slow
@pytest.mark.parametrize(("content", "variables"), LAUGHS.values(), ids=LAUGHS)
def test_a_text_that_would_grow_without_end_is_not_made(wire: Wire, content: str, variables: dict[str, Any]) -> None:
    new = {"action": "save", "name": "laughs", "content": content}
    assert "result" in _asked(wire, "tools/call", name="subcog_templates", arguments=new)
    use = {"action": "render", "name": "laughs", "variables": variables}
    error = _asked(wire, "tools/call", name="subcog_templates", arguments=use)["error"]
    assert (error["code"], error["data"]["error"]) == (-32602, "LimitExceeded")
    assert len(error["message"]) < 500
    assert _is_well(wire)


@pytest.fixture
def saved(wire: Wire) -> None:
    """A text of each kind, so that calls for it get past their first look."""
    for tool in ("subcog_prompts", "subcog_templates"):
        given = {"action": "save", "name": "one", "content": "{{x}} {{y}}", "variables": {"y": {"default": "z"}}}
        _asked(wire, "tools/call", name=tool, arguments=given)


@pytest.mark.slow
@fuzzed
@pytest.mark.usefixtures("saved")
@given(st.data())
def test_any_arguments_for_saved_texts_are_answered(wire: Wire, data: st.DataObject) -> None:
    schema = SCHEMAS[name := data.draw(st.sampled_from([spec.name for spec in family_tools("prompts")]))]
    near: dict[str, st.SearchStrategy[Any]] = {
        "name": st.sampled_from(("one", "two", "start-session")),
        "content": st.text("{}#/|x1_ \\\n`", max_size=40) | texts,
        "domain": st.sampled_from(("project", "user", "builtin")),
        "variables": st.dictionaries(st.sampled_from(("x", "y")), values) | st.lists(values, max_size=2),
        "version": st.integers(0, 2),
        "limit": st.integers(1, 3),
    }
    fitting = {key: near[key] | _fit(part) if key in near else _fit(part) for key, part in schema.items()}
    needed = {key: fitting.pop(key) for key in ("action", "name") if key in fitting}
    drawn = st.fixed_dictionaries(needed, optional=fitting)
    answer = _asked(wire, "tools/call", name=name, arguments=data.draw(drawn))
    assert "result" in answer or answer["error"]["code"] in CODES, answer
    assert _is_well(wire)
