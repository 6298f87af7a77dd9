"""The instant front alone, before a server that the test plays itself."""

import json
import threading
from collections.abc import Iterator
from typing import Any

import pytest

from cortex_py.core.errors import ConfigurationError, StoreCorrupt
from cortex_py.surfaces.mcp.registry import TOOLS
from cortex_py.surfaces.mcp.stdio.frames import TooLong
from cortex_py.surfaces.mcp.stdio.front import AnswerSnapshot, Front, envelope
from timing import MINUTE

MOST = 1000
# How many requests may be under way at one time.
BOUND = 512
SECONDS = MINUTE

HELLO = {"protocolVersion": "2025-11-25", "capabilities": {}, "clientInfo": {"name": "test", "version": "1"}}
MODERN = envelope("2026-07-28")
RESULTS: dict[str, dict[str, Any]] = {
    "2025-11-25": {"initialize": {"hello": "legacy"}, "resources/list": {"resources": ["legacy"]}},
    "2026-07-28": {"server/discover": {"hello": "modern"}, "resources/list": {"resources": ["modern"]}},
}

Message = dict[str, Any]


class Server:
    """Stands where the loaded server would: keeps what it is given."""

    def __init__(self) -> None:
        self.given: list[Message] = []

    def feed(self, message: Message) -> None:
        self.given.append(message)

    @property
    def methods(self) -> list[str | None]:
        return [message.get("method") for message in self.given]


class Desk:
    """A front with a client's side: what is sent in, and what has come out."""

    def __init__(self) -> None:
        self._out: list[bytes] = []
        self.front = Front(self._out.append, AnswerSnapshot(RESULTS, TOOLS, portable=False))

    def send(self, *messages: Message) -> None:
        self.front.take([json.dumps({"jsonrpc": "2.0", **message}).encode() for message in messages], MOST)

    def send_raw(self, *lines: bytes | TooLong) -> None:
        self.front.take(lines, MOST)

    def answered_by_server(self, id: str | int, result: object) -> None:
        self.front.answer(json.dumps({"jsonrpc": "2.0", "id": id, "result": result}).encode() + b"\n", id)

    def received(self) -> list[Any]:
        """What the client has received since it was last asked."""
        lines = [json.loads(line) for line in self._out]
        self._out.clear()
        return lines

    def results(self) -> list[tuple[Any, Any]]:
        return [(line["id"], line["result"]) for line in self.received()]

    def errors(self) -> list[tuple[Any, int]]:
        return [(line["id"], line["error"]["code"]) for line in self.received()]


@pytest.fixture
def desk() -> Desk:
    return Desk()


@pytest.fixture
def server() -> Server:
    return Server()


def _request(id: str | int, method: str, **params: Any) -> Message:
    return {"id": id, "method": method, "params": params}


def _call(id: str | int) -> Message:
    return _request(id, "tools/call", name="subcog_status")


def _cancel(id: str | int) -> Message:
    return {"method": "notifications/cancelled", "params": {"requestId": id}}


def test_handshake_and_lists_are_answered_while_the_server_loads(desk: Desk) -> None:
    desk.send(_request(1, "initialize", **HELLO), _request(2, "resources/list"), _request("3", "ping"))
    assert desk.results() == [(1, {"hello": "legacy"}), (2, {"resources": ["legacy"]}), ("3", {})]


def test_the_stateless_protocol_is_answered_while_the_server_loads(desk: Desk) -> None:
    desk.send(_request(1, "server/discover", **MODERN), _request(2, "resources/list", **MODERN))
    assert desk.results() == [(1, {"hello": "modern"}), (2, {"resources": ["modern"]})]


def test_everything_else_waits_and_is_passed_on_in_order(desk: Desk, server: Server) -> None:
    desk.send(
        _request(1, "initialize", **HELLO),
        {"method": "notifications/initialized"},
        _call(2),
        _request(3, "resources/list"),
        {"id": 9, "result": {}},
        _request(4, "resources/list", cursor="x"),
    )
    assert desk.results() == [(1, {"hello": "legacy"}), (3, {"resources": ["legacy"]})]
    desk.front.serve(server)
    initialize, *rest = server.given
    assert (initialize["method"], initialize["params"]) == ("initialize", HELLO)
    assert rest == [
        {"jsonrpc": "2.0", "method": "notifications/initialized"},
        {"jsonrpc": "2.0", **_call(2)},
        {"jsonrpc": "2.0", "id": 9, "result": {}},
        {"jsonrpc": "2.0", **_request(4, "resources/list", cursor="x")},
    ]
    assert desk.received() == []


def test_the_answer_to_a_replayed_request_is_kept_back(desk: Desk, server: Server) -> None:
    desk.send(_request(1, "initialize", **HELLO))
    desk.front.serve(server)
    desk.received()
    desk.answered_by_server(server.given[0]["id"], {"hello": "again"})
    assert desk.received() == []
    desk.front.answer(b'{"jsonrpc":"2.0","method":"notifications/progress"}\n', None)
    assert desk.received() == [{"jsonrpc": "2.0", "method": "notifications/progress"}]


def test_an_id_whose_answer_was_given_can_be_used_again(desk: Desk, server: Server) -> None:
    desk.send(_request(1, "server/discover", **MODERN), _request(1, "tools/call", name="x", **MODERN))
    desk.front.serve(server)
    desk.received()
    # The later request is answered first; only the replayed one is kept back.
    desk.answered_by_server(1, "of the call")
    desk.answered_by_server(server.given[0]["id"], "of the replay")
    assert desk.results() == [(1, "of the call")]


@pytest.mark.parametrize("earlier", [_request(1, "ping"), {"method": "notifications/roots/list_changed"}])
def test_a_handshake_reaches_the_server_in_its_place(desk: Desk, server: Server, earlier: Message) -> None:
    desk.send(earlier, _request(2, "initialize", **HELLO), _call(3))
    assert desk.results() == [(2, {"hello": "legacy"})]
    desk.front.serve(server)
    assert server.methods == [earlier["method"], "initialize", "tools/call"]
    desk.answered_by_server(server.given[1]["id"], {})
    assert desk.received() == []


def test_of_the_stateless_protocol_only_the_first_request_is_replayed(desk: Desk, server: Server) -> None:
    desk.send(_request(1, "server/discover", **MODERN), _request(2, "resources/list", **MODERN))
    desk.front.serve(server)
    assert server.methods == ["server/discover"]


def test_a_first_request_that_waits_is_passed_on_once(desk: Desk, server: Server) -> None:
    desk.send(_request(1, "tools/call", name="x", **MODERN), _request(2, "resources/list", **MODERN))
    desk.front.serve(server)
    assert server.methods == ["tools/call"]
    desk.received()
    desk.answered_by_server(1, "done")
    assert desk.results() == [(1, "done")]


def test_a_cancelled_request_that_still_waits_is_withdrawn(desk: Desk, server: Server) -> None:
    desk.send(_call(1), _call(2), _call("2"), _cancel(2))
    desk.front.serve(server)
    assert [message["id"] for message in server.given] == [1, "2"]
    assert desk.received() == []


def test_a_cancellation_of_something_else_is_passed_on(desk: Desk, server: Server) -> None:
    desk.send(_call(1), _cancel(7))
    desk.front.serve(server)
    assert server.methods == ["tools/call", "notifications/cancelled"]


def test_after_loading_everything_goes_to_the_server(desk: Desk, server: Server) -> None:
    desk.front.serve(server)
    messages = [_request(1, "initialize", **HELLO), _request(2, "resources/list"), _request(3, "ping"), _cancel(3)]
    desk.send(*messages)
    assert server.given == [{"jsonrpc": "2.0", **message} for message in messages]
    assert desk.received() == []
    desk.answered_by_server(2, "late")
    assert desk.results() == [(2, "late")]


def test_a_failure_is_told_to_what_waits_and_to_what_comes(desk: Desk) -> None:
    desk.send(_request(1, "initialize", **HELLO), {"method": "notifications/initialized"}, _call(2), _call("three"))
    desk.received()
    desk.front.fail(StoreCorrupt("The store is damaged.", remedy="Restore a backup."))
    assert desk.received() == [
        {
            "jsonrpc": "2.0",
            "id": id,
            "error": {
                "code": -32603,
                "message": "The store is damaged. Restore a backup.",
                "data": {"error": "StoreCorrupt", "remedy": "Restore a backup."},
            },
        }
        for id in (2, "three")
    ]
    desk.send(_request(4, "prompts/list"), _request(5, "resources/read"), _cancel(5), {"id": 6, "result": {}})
    assert desk.errors() == [(4, -32603), (5, -32603)]
    assert desk.front.idle


def test_a_client_connects_where_only_the_store_fails(desk: Desk) -> None:
    desk.front.fail(StoreCorrupt("The store is damaged.", remedy="Restore a backup."))
    desk.send(_request(1, "initialize", **HELLO), _request(2, "resources/list"))
    assert desk.results() == [(1, {"hello": "legacy"}), (2, {"resources": ["legacy"]})]


@pytest.mark.parametrize("waits", [True, False])
@pytest.mark.parametrize("meta", [{}, MODERN])
def test_a_failure_has_the_form_of_the_tools_family(desk: Desk, waits: bool, meta: dict[str, Any]) -> None:
    if not meta:
        desk.send(_request(0, "initialize", **HELLO))
    calls = [
        _request(id, "tools/call", name=name, **meta)
        for id, name in enumerate(("search_context", "embedding.generate", "embedding_generate", "subcog_status"), 1)
    ]
    desk.received()
    if waits:
        desk.send(*calls)
    desk.front.fail(StoreCorrupt("The store is damaged.", remedy="Restore a backup."))
    if not waits:
        desk.send(*calls)
    context, embedding, portable, status = desk.received()
    assert status["error"]["code"] == -32603
    assert portable["result"] == embedding["result"]
    assert context["result"].pop("resultType", None) == ("complete" if meta else None)
    content = {
        "success": False,
        "error": "The store is damaged.",
        "error_code": "STORAGE_ERROR",
        "details": "StoreCorrupt. Restore a backup.",
    }
    (block,) = context["result"].pop("content")
    assert json.loads(block["text"]) == content
    assert context["result"] == {"structuredContent": content, "isError": True}
    assert embedding["result"]["structuredContent"]["code"] == "INTERNAL_ERROR"


def test_settings_that_cannot_be_read_are_told_at_once(desk: Desk) -> None:
    desk.front.fail(ConfigurationError("No such setting."))
    desk.send(_request(1, "initialize", **HELLO), _request(2, "resources/list"))
    assert desk.errors() == [(1, -32602), (2, -32602)]


def test_every_kind_of_failure_has_its_code(desk: Desk) -> None:
    desk.front.fail(ConfigurationError("No such setting."))
    desk.send(_request(1, "initialize", **HELLO))
    desk.front.fail(RuntimeError("boom"))
    desk.send(_request(2, "initialize", **HELLO))
    desk.front.fail(RecursionError())
    desk.send(_request(3, "initialize", **HELLO))
    assert [line["error"] for line in desk.received()] == [
        {"code": -32602, "message": "No such setting.", "data": {"error": "ConfigurationError"}},
        {"code": -32603, "message": "The server does not run: boom", "data": {"error": "RuntimeError"}},
        {"code": -32603, "message": "The server does not run: RecursionError", "data": {"error": "RecursionError"}},
    ]


def test_a_server_that_dies_leaves_nobody_without_an_answer(desk: Desk, server: Server) -> None:
    desk.front.serve(server)
    desk.send(_call(1), _call(2))
    desk.answered_by_server(1, "done")
    desk.received()
    desk.front.fail(RuntimeError("boom"))
    assert desk.errors() == [(2, -32603)]
    desk.send(_call(3), _request(4, "initialize", **HELLO))
    assert desk.errors() == [(3, -32603), (4, -32603)]
    assert len(server.given) == 2
    assert desk.front.idle


def test_what_is_no_message_is_answered_before_and_after_loading(desk: Desk, server: Server) -> None:
    nonsense = [b"{", b"[]", b'{"jsonrpc": "2.0", "id": 7}', TooLong()]
    faults = [(None, -32700), (None, -32600), (7, -32600), (None, -32600)]
    desk.send_raw(*nonsense)
    assert desk.errors() == faults
    desk.front.serve(server)
    desk.send_raw(*nonsense)
    assert desk.errors() == faults
    desk.front.fail(RuntimeError("boom"))
    desk.send_raw(*nonsense)
    assert desk.errors() == faults
    assert server.given == []
    desk.send_raw(TooLong())
    assert desk.received()[0]["error"]["message"] == "The message is larger than 1000 bytes."


def _in_background(work: Any, *arguments: Any) -> threading.Thread:
    thread = threading.Thread(target=work, args=arguments, daemon=True)
    thread.start()
    return thread


def _stuck(thread: threading.Thread) -> bool:
    thread.join(0.2)
    return thread.is_alive()


def _filled(desk: Desk, server: Server) -> threading.Thread:
    """A client that has sent one request more than may be under way, and waits to be heard."""
    reached = threading.Event()

    def requests() -> Iterator[bytes]:
        for id in range(BOUND):
            yield json.dumps({"jsonrpc": "2.0", **_call(id)}).encode()
        reached.set()
        yield json.dumps({"jsonrpc": "2.0", **_call("over")}).encode()

    desk.front.serve(server)
    thread = _in_background(desk.front.take, requests(), MOST)
    assert reached.wait(SECONDS)
    return thread


def test_a_client_with_too_many_requests_under_way_waits_for_an_answer(desk: Desk, server: Server) -> None:
    thread = _filled(desk, server)
    assert _stuck(thread)
    assert len(server.given) == BOUND
    desk.answered_by_server(100, "done")
    thread.join(SECONDS)
    assert server.given[-1]["id"] == "over"


def test_a_cancellation_gets_through_to_make_room(desk: Desk, server: Server) -> None:
    desk.front.serve(server)
    desk.send(*(_call(id) for id in range(BOUND)))
    thread = _in_background(desk.send, _cancel(5))
    thread.join(SECONDS)
    assert server.given[-1] == {"jsonrpc": "2.0", **_cancel(5)}
    # The server ends a cancelled request without a line.
    desk.front.answer(b"", 5)
    desk.send(_call("next"))
    assert server.given[-1]["id"] == "next"
    assert desk.received() == []


def test_a_client_that_waits_for_room_hears_when_the_server_dies(desk: Desk, server: Server) -> None:
    thread = _filled(desk, server)
    desk.front.fail(RuntimeError("boom"))
    thread.join(SECONDS)
    assert not thread.is_alive()
    errors = desk.errors()
    assert len(errors) == BOUND + 1
    assert ("over", -32603) in errors


def test_the_front_is_idle_when_nobody_waits_for_an_answer(desk: Desk, server: Server) -> None:
    assert desk.front.idle
    desk.send(_request(1, "initialize", **HELLO), {"method": "notifications/initialized"})
    assert desk.front.idle
    desk.send(_call(2))
    assert not desk.front.idle
    desk.front.serve(server)
    assert not desk.front.idle
    desk.answered_by_server(2, "done")
    assert desk.front.idle
    # An open stream ends when the client leaves; nobody waits for its end.
    desk.send(_request(3, "subscriptions/listen"))
    assert desk.front.idle


def test_settling_ends_with_the_last_answer(desk: Desk, server: Server) -> None:
    desk.send(_call(1))
    thread = _in_background(desk.front.settle, SECONDS)
    desk.front.serve(server)
    desk.send(_call(2))
    desk.answered_by_server(1, "done")
    assert _stuck(thread)
    desk.answered_by_server(2, "done")
    thread.join(SECONDS / 2)
    assert not thread.is_alive()


def test_settling_does_not_wait_for_a_stream_that_never_ends(desk: Desk, server: Server) -> None:
    desk.send(_request(1, "subscriptions/listen"))
    thread = _in_background(desk.front.settle, SECONDS)
    assert _stuck(thread)
    desk.front.serve(server)
    thread.join(SECONDS / 2)
    assert not thread.is_alive()


def test_settling_gives_up_after_a_while(desk: Desk, server: Server) -> None:
    desk.front.serve(server)
    desk.send(_call(1))
    desk.front.settle(0.01)
    assert not desk.front.idle


def test_a_failure_ends_the_settling(desk: Desk) -> None:
    desk.send(_call(1))
    thread = _in_background(desk.front.settle, SECONDS)
    desk.front.fail(RuntimeError("boom"))
    thread.join(SECONDS / 2)
    assert not thread.is_alive()
    assert desk.errors() == [(1, -32603)]
