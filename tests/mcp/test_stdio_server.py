"""`cortex serve` as a client starts it: a process, its two pipes, its signals and its exit code."""

import json
import os
import signal
import subprocess
from pathlib import Path
from typing import Any

import pytest

from cortex_py import Cortex
from cortex_py.core.embedding.backends.backend import Backend
from cortex_py.surfaces.mcp.registry import TOOLS
from cortex_py.surfaces.mcp.stdio.front import envelope

from clients import MODES, connected, stdio_transport
from servers import StdioServer, serve_command, serve_environment, stdio_server

SECONDS = 60
MODERN = envelope("2026-07-28")
HELLO = {"protocolVersion": "2025-11-25", "capabilities": {}, "clientInfo": {"name": "test", "version": "1"}}
DECISION = "Use PostgreSQL for the event store"

# The last is what an impatient client does.
SIGNALS = [[signal.SIGTERM], [signal.SIGINT], [signal.SIGINT, signal.SIGTERM]]

# A dependency that writes where it should not, while the server loads.
CHATTY = """
import os, subprocess, sys

class Chatty:
    def find_spec(self, name, path=None, target=None):
        if name == "mcp":
            print("stray print")
            os.write(1, b"stray write\\n")
            subprocess.run(["sh", "-c", "echo stray child; cat"], check=True, timeout=60)

sys.meta_path.insert(0, Chatty())
"""

# A server that does not survive its first call.
MORTAL = """
from cortex_py.surfaces.mcp.stdio import streams

async def run(self):
    while (await self._inbound.get())["method"] != "tools/call":
        pass
    raise RuntimeError("boom")

streams.MessageServer.run = run
"""


class Session(StdioServer):
    """A client of one protocol, who insists that every line it gets is a message."""

    def __init__(self, process: "subprocess.Popen[bytes]", *, modern: bool) -> None:
        super().__init__(process)
        self._params = MODERN if modern else {}

    def read(self) -> Any:
        message = super().read()
        assert _is_message(message), message
        return message

    def ask(self, id: Any, method: str, **params: Any) -> Any:
        return self.request(id, method, {**params, **self._params})

    def tool(self, id: Any, name: str, **arguments: Any) -> Any:
        return self.ask(id, "tools/call", name=name, arguments=arguments)


def _is_message(message: Any) -> bool:
    parts = set(message) - {"params"}
    return message["jsonrpc"] == "2.0" and (
        parts in ({"jsonrpc", "id", "result"}, {"jsonrpc", "id", "error"}, {"jsonrpc", "method"})
    )


def _spelled(names: list[signal.Signals]) -> str:
    return "+".join(name.name for name in names)


def _lines(*messages: dict[str, Any] | bytes) -> bytes:
    """Messages as a client writes them."""
    texts = [one if isinstance(one, bytes) else json.dumps({"jsonrpc": "2.0", **one}).encode() for one in messages]
    return b"".join(text + b"\n" for text in texts)


def _call(id: Any, name: str, *, modern: bool = False, **arguments: Any) -> dict[str, Any]:
    params = {"name": name, "arguments": arguments, **(MODERN if modern else {})}
    return {"id": id, "method": "tools/call", "params": params}


def _piped(
    home: Path, project: Path, text: bytes, *options: str, own_interpreter: bool = False
) -> "subprocess.CompletedProcess[bytes]":
    """What comes of `echo text | cortex serve`."""
    return subprocess.run(
        serve_command(*options, own_interpreter=own_interpreter),
        input=text,
        cwd=project,
        env=serve_environment(home),
        capture_output=True,
        timeout=SECONDS,
        check=False,
    )


def _answers(output: bytes) -> dict[Any, Any]:
    """What was answered, by id; every line is a message and every id comes once."""
    messages = [json.loads(line) for line in output.splitlines()]
    assert all(_is_message(message) for message in messages)
    by_id = {message["id"]: message.get("result", message.get("error")) for message in messages if "id" in message}
    assert len(by_id) == sum("id" in message for message in messages)
    return by_id


def _ended(server: StdioServer) -> tuple[int, str]:
    """The exit code, and what it had to say about it."""
    code = server.process.wait(SECONDS)
    assert server.process.stderr is not None
    return code, server.process.stderr.read().decode()


def _customized(tmp_path: Path, code: str) -> dict[str, str]:
    """The variables under which every interpreter runs this code first."""
    folder = tmp_path / "site"
    folder.mkdir()
    (folder / "sitecustomize.py").write_text(code, "utf-8")
    return {"PYTHONPATH": os.pathsep.join([str(folder), *filter(None, [os.environ.get("PYTHONPATH")])])}


def _processes_of(home: Path) -> set[int]:
    """All processes that were started for this home."""
    if not Path("/proc/self/environ").exists():
        pytest.skip("tells processes by /proc")
    mark = f"CORTEX_HOME={home}\0".encode()
    found = set()
    for folder in Path("/proc").iterdir():
        try:
            if folder.name.isdigit() and mark in (folder / "environ").read_bytes():
                found.add(int(folder.name))
        except OSError:
            continue
    return found


def _load(server: StdioServer) -> None:
    """Wait until the server is there: it has answered a call."""
    server.handshake()
    assert "result" in server.call(1, "subcog_status")


@pytest.mark.slow
@pytest.mark.parametrize("modern", [False, True], ids=["legacy", "modern"])
def test_a_whole_session_is_protocol_and_nothing_else(home: Path, project: Path, tmp_path: Path, modern: bool) -> None:
    with stdio_server(home, project, own_interpreter=True, **_customized(tmp_path, CHATTY)) as plain:
        server = Session(plain.process, modern=modern)
        hello = server.ask(0, "server/discover") if modern else server.handshake()
        named = hello["result"]["_meta"]["io.modelcontextprotocol/serverInfo"] if modern else None
        assert (named or hello["result"]["serverInfo"])["name"] == "cortex"
        listed = server.ask("list", "tools/list")["result"]["tools"]
        assert [tool["name"] for tool in listed] == [spec.name for spec in TOOLS]
        captured = server.tool(2, "subcog_capture", content=DECISION, namespace="decisions")["result"]
        found = server.tool(3, "subcog_recall", query="which database")["result"]["structuredContent"]
        assert [hit["id"] for hit in found["results"]] == [captured["structuredContent"]["id"]]
        status = server.tool(4, "subcog_status")["result"]["structuredContent"]
        assert status["repository"]["path"] == str(project)
        assert (
            "decisions" in server.ask(5, "resources/read", uri="subcog://namespaces")["result"]["contents"][0]["text"]
        )
        # Loaded or not, the lists are the same.
        assert server.ask(6, "tools/list")["result"]["tools"] == listed
        codes = [
            server.tool(7, "subcog_get", memory_id="f" * 40)["error"]["code"],
            server.tool(8, "subcog_capture", content="x", namespace="nowhere")["error"]["code"],
            server.tool(9, "subcog_capture")["error"]["code"],
            server.tool(10, "no_such_tool")["error"]["code"],
            server.ask(11, "no/such/method")["error"]["code"],
        ]
        assert codes == [-32604, -32608, -32602, -32601, -32601]
        server.write(b"nonsense\n")
        fault = server.read()
        assert (fault["id"], fault["error"]["code"]) == (None, -32700)
        server.close_input()
        assert server.rest() == b""
        code, told = _ended(server)
        assert code == 0
        assert [told.count(f"stray {kind}\n") for kind in ("print", "write", "child")] == [1, 1, 1]


def test_it_leaves_at_once_when_its_input_ends(home: Path, project: Path) -> None:
    done = _piped(home, project, b"", own_interpreter=True)
    assert (done.returncode, done.stdout, done.stderr) == (0, b"", b"")


def test_it_leaves_after_a_handshake_that_nothing_follows(home: Path, project: Path) -> None:
    hello = {"id": 1, "method": "initialize", "params": HELLO}
    done = _piped(home, project, _lines(hello, {"method": "notifications/initialized"}), own_interpreter=True)
    assert done.returncode == 0
    assert _answers(done.stdout)[1]["serverInfo"]["name"] == "cortex"


@pytest.mark.slow
@pytest.mark.parametrize("modern", [False, True], ids=["legacy", "modern"])
def test_what_was_asked_is_answered_before_it_leaves(home: Path, project: Path, modern: bool) -> None:
    hello = [{"id": "h", "method": "initialize", "params": HELLO}, {"method": "notifications/initialized"}]
    text = _lines(
        *([] if modern else hello),
        _call(1, "subcog_capture", modern=modern, content=DECISION, namespace="decisions"),
        _call(2, "subcog_namespaces", modern=modern),
        b"nonsense",
        _call(3, "no_such_tool", modern=modern),
    )
    # The last line of a script may lack its end.
    done = _piped(home, project, text.rstrip(b"\n"))
    answers = _answers(done.stdout)
    assert done.returncode == 0
    assert set(answers) == {1, 2, 3, None, *(() if modern else ("h",))}
    assert answers[1]["structuredContent"]["urn"].startswith("subcog://project/decisions/")
    assert len(answers[2]["structuredContent"]["namespaces"]) == 13
    assert (answers[3]["code"], answers[None]["code"]) == (-32601, -32700)


@pytest.mark.parametrize("names", SIGNALS, ids=_spelled)
def test_a_signal_stops_it_while_it_loads(home: Path, project: Path, names: list[signal.Signals]) -> None:
    with stdio_server(home, project, own_interpreter=True) as server:
        server.handshake()
        for name in names:
            server.process.send_signal(name)
        assert server.rest() == b""
        assert _ended(server) == (0, "")


@pytest.mark.slow
@pytest.mark.parametrize("names", SIGNALS, ids=_spelled)
def test_a_signal_stops_it_when_it_is_loaded(home: Path, project: Path, names: list[signal.Signals]) -> None:
    with stdio_server(home, project) as server:
        _load(server)
        for name in names:
            server.process.send_signal(name)
        assert server.rest() == b""
        assert _ended(server) == (0, "")


@pytest.mark.slow
def test_a_call_that_waits_is_answered_before_a_signal_is_heeded(home: Path, project: Path) -> None:
    with stdio_server(home, project, own_interpreter=True) as server:
        server.handshake()
        server.send("tools/call", {"name": "subcog_status", "arguments": {}}, 1)
        # Once this is answered, the call before it has been read.
        assert "result" in server.request(2, "tools/list")
        server.process.send_signal(signal.SIGTERM)
        assert "structuredContent" in _answers(server.rest())[1]
        assert _ended(server) == (0, "")


@pytest.mark.slow
@pytest.mark.parametrize("names", [[], SIGNALS[-1]], ids=["end of input", _spelled(SIGNALS[-1])])
def test_its_end_leaves_no_process_behind(home: Path, project: Path, names: list[signal.Signals]) -> None:
    with stdio_server(home, project, own_interpreter=True) as server:
        _load(server)
        assert server.process.pid in _processes_of(home)
        for name in names:
            server.process.send_signal(name)
        if not names:
            server.close_input()
        assert server.rest() == b""
        assert _ended(server) == (0, "")
        assert _processes_of(home) == set()


def test_a_damaged_store_is_told_to_every_request(home: Path, project: Path) -> None:
    home.mkdir()
    (home / "cortex.db").write_bytes(b"this was a database once " * 400)
    with stdio_server(home, project) as server:
        # The handshake may be answered before the store is opened; the first call may not.
        server.handshake()
        error = server.call(1, "subcog_status")["error"]
        assert (error["code"], error["data"]["error"]) == (-32603, "StoreCorrupt")
        assert error["message"].startswith(f"{home / 'cortex.db'}")
        assert server.request(2, "tools/call", {"name": "subcog_recall"})["error"] == error
        assert server.request(3, "prompts/list", {})["error"] == error
        assert server.request(4, "tools/list", {})["result"]["tools"]
        server.close_input()
        assert server.rest() == b""
        code, told = _ended(server)
    assert code == 7
    assert "StoreCorrupt" in told
    assert "Traceback" not in told


def test_a_damaged_store_is_told_even_if_the_client_has_finished_speaking(home: Path, project: Path) -> None:
    home.mkdir()
    (home / "cortex.db").write_bytes(b"this was a database once " * 400)
    done = _piped(home, project, _lines(_call(1, "subcog_status", modern=True)))
    assert _answers(done.stdout)[1]["data"]["error"] == "StoreCorrupt"
    assert done.returncode == 7


@pytest.mark.parametrize(
    ("config", "options", "told"),
    [
        ("= nonsense", [], "config.toml is not valid TOML"),
        ("secrets = 'keep'", [], "Setting 'secrets' in"),
        ("", ["--toolsets", "core,nonsense"], "Unknown toolset 'nonsense'."),
        ("", ["--exclude-tools", "subcog_nothing"], "Unknown tool 'subcog_nothing'."),
    ],
)
def test_settings_that_make_no_sense_are_told_on_the_wire(
    home: Path, project: Path, config: str, options: list[str], told: str
) -> None:
    home.mkdir()
    (home / "config.toml").write_text(config, "utf-8")
    asked = [
        {"id": 1, "method": "initialize", "params": HELLO},
        {"method": "notifications/initialized"},
        _call(2, "subcog_status"),
        {"id": 3, "method": "server/discover", "params": MODERN},
        b"nonsense",
    ]
    done = _piped(home, project, _lines(*asked), *options)
    answers = _answers(done.stdout)
    assert set(answers) == {1, 2, 3, None}
    assert answers[None]["code"] == -32700
    for id in (1, 2, 3):
        assert answers[id]["code"] == -32602
        assert told in answers[id]["message"]
        assert answers[id]["data"]["error"] == "ConfigurationError"
        assert answers[id]["data"]["remedy"]
    assert done.returncode == 2


@pytest.mark.slow
def test_a_server_that_dies_tells_its_client(home: Path, project: Path, tmp_path: Path) -> None:
    with stdio_server(home, project, own_interpreter=True, **_customized(tmp_path, MORTAL)) as server:
        server.handshake()
        error = server.call(1, "subcog_status")["error"]
        assert (error["code"], error["message"]) == (-32603, "The server does not run: boom")
        assert server.call(2, "subcog_status")["error"] == error
        assert server.request(3, "initialize", HELLO)["error"] == error
        server.close_input()
        assert server.rest() == b""
        assert _ended(server) == (1, "cortex: RuntimeError: boom\n")


@pytest.mark.parametrize(("options", "chosen"), [([], "named"), (["--project", "other"], "other")])
def test_the_client_chooses_the_project_unless_an_option_does(
    home: Path, project: Path, options: list[str], chosen: str
) -> None:
    for name in ("named", "other"):
        (project / name).mkdir()
    with stdio_server(home, project, *options, CLAUDE_PROJECT_DIR=str(project / "named")) as server:
        server.handshake()
        status = server.call(1, "subcog_status")["result"]["structuredContent"]
        assert status["repository"]["path"] == str(project / chosen)


def _found(server: StdioServer, id: Any, query: str) -> list[str]:
    answer = server.call(id, "subcog_recall", query=query)["result"]["structuredContent"]
    return [hit["content"] for hit in answer["results"]]


@pytest.mark.slow
def test_two_servers_on_one_home_see_each_others_memories_at_once(home: Path, project: Path) -> None:
    with stdio_server(home, project) as one, stdio_server(home, project) as other:
        for server in (one, other):
            server.handshake()
            assert _found(server, "before", "which database") == []
        first = one.call(1, "subcog_capture", content=DECISION, namespace="decisions")["result"]["structuredContent"]
        assert _found(other, 1, "which database") == [DECISION]
        other.call(2, "subcog_capture", content="Deploy on Fridays never", namespace="patterns")
        assert "Deploy on Fridays never" in _found(one, 2, "when to deploy")
        one.call(3, "subcog_delete", memory_id=first["id"])
        assert DECISION not in _found(other, 3, "which database")


@pytest.mark.slow
def test_what_was_acknowledged_survives_a_kill(home: Path, project: Path, model: Backend) -> None:
    with stdio_server(home, project, own_interpreter=True) as server:
        server.handshake()
        texts = [f"{DECISION}, part {number}" for number in range(5)]
        kept = {
            server.call(text, "subcog_capture", content=text, namespace="decisions")["result"]["structuredContent"][
                "id"
            ]: text
            for text in texts
        }
        os.kill(server.process.pid, signal.SIGKILL)
        assert server.process.wait(SECONDS) == -signal.SIGKILL
    with Cortex.open(home, project=project, backend=model) as cortex:
        assert cortex.check() == []
        assert {id: cortex.memories.get(id).content for id in kept} == kept
        assert cortex.memories.recall(f"{DECISION}, part 4").results[0].memory.content == f"{DECISION}, part 4"


@pytest.mark.slow
@pytest.mark.parametrize("mode", MODES)
def test_the_official_client_is_served(home: Path, project: Path, mode: str) -> None:
    with connected(stdio_transport(home, project), mode) as caller:
        tools = caller.portal.call(caller.client.list_tools)
        assert {tool.name for tool in tools} == {spec.name for spec in TOOLS}
        id = caller.call("subcog_capture", content=DECISION, namespace="decisions")["id"]
        assert [hit["id"] for hit in caller.call("subcog_recall", query="which database")["results"]] == [id]
        assert json.loads(caller.read(f"subcog://memory/{id}"))["content"] == DECISION
        assert caller.refused("subcog_get", memory_id="f" * 40).code == -32604
