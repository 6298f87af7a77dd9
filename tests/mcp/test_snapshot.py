"""The snapshot and the living server say the same, for every protocol version and every choice of tools."""

import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import anyio
import pytest

from cases import each
from cortex_py import Cortex
from cortex_py.surfaces.mcp.reference.rendering import EVERY_SET, ask, render, requests_of
from cortex_py.surfaces.mcp.registry import EVERY_TOOL, TOOLS, ToolSpec, select_tools
from cortex_py.surfaces.mcp.server import build_server
from cortex_py.surfaces.mcp.stdio.frames import MessageFrame
from cortex_py.surfaces.mcp.stdio.front import (
    HANDSHAKE_VERSIONS,
    LISTS,
    MODERN_VERSIONS,
    SNAPSHOT_FILE,
    AnswerSnapshot,
    envelope,
)

from stub_backend import StubBackend

LEGACY, MODERN = "2025-11-25", "2026-07-28"
PREFIX = "io.modelcontextprotocol/"
HELLO = {"protocolVersion": LEGACY, "capabilities": {}, "clientInfo": {"name": "test", "version": "1"}}

SELECTIONS: dict[str, dict[str, Any]] = {
    "all": {},
    "core": {"toolsets": "core"},
    "read-only": {"read_only": True},
    "exclude": {"exclude_tools": "subcog_gc,subcog_capture"},
    "one-tool": {"tools": "subcog_recall"},
    "portable": {"portable_names": True},
    "asked-for": {"toolsets": "all,memory-tool"},
}


@pytest.fixture
def opened(home: Path, project: Path) -> Callable[..., Cortex]:
    return lambda **settings: Cortex.open(home, project=project, backend=StubBackend(), **settings)


def _frame(method: str, params: dict[str, Any] | None = None, id: int = 1) -> MessageFrame:
    message = {"jsonrpc": "2.0", "id": id, "method": method}
    return MessageFrame(message if params is None else {**message, "params": params})


def _loaded(path: Path = SNAPSHOT_FILE) -> AnswerSnapshot:
    return AnswerSnapshot.load(TOOLS, portable=False, path=path)


def _greeted(version: str = LEGACY) -> AnswerSnapshot:
    """A snapshot that has answered a handshake."""
    snapshot = _loaded()
    assert snapshot.answer(_frame("initialize", {**HELLO, "protocolVersion": version})) is not None
    return snapshot


@pytest.mark.parametrize("version", [*HANDSHAKE_VERSIONS, *MODERN_VERSIONS])
@pytest.mark.parametrize("settings", SELECTIONS.values(), ids=SELECTIONS)
def test_it_answers_as_the_server_does(opened: Callable[..., Cortex], settings: dict[str, Any], version: str) -> None:
    requests = requests_of(version)
    if version in HANDSHAKE_VERSIONS:
        requests.append({"jsonrpc": "2.0", "id": len(requests), "method": "ping"})
    with opened(**settings) as cortex:
        snapshot = AnswerSnapshot.load(
            select_tools(EVERY_TOOL, cortex.settings.tool_bounds), portable=cortex.settings.portable_names
        )
        live = anyio.run(ask, build_server(cortex), requests)
    assert {request["method"]: snapshot.answer(MessageFrame(request)) for request in requests} == live
    assert len(live) == len(requests)
    hello = live["initialize" if version in HANDSHAKE_VERSIONS else "server/discover"]
    assert hello["instructions"].startswith("Cortex")
    assert hello["protocolVersion" if version in HANDSHAKE_VERSIONS else "supportedVersions"] in (version, [version])


def test_the_choices_of_tools_differ(opened: Callable[..., Cortex]) -> None:
    listed = {}
    for name, settings in SELECTIONS.items():
        with opened(**settings) as cortex:
            snapshot = AnswerSnapshot.load(select_tools(EVERY_TOOL, cortex.settings.tool_bounds), portable=False)
        answer = snapshot.answer(_frame("tools/list", envelope(MODERN)))
        assert answer is not None
        listed[name] = {tool["name"] for tool in answer["tools"]}
    assert listed["all"] == {spec.name for spec in TOOLS}
    assert listed["one-tool"] == {"subcog_recall"}
    assert listed["exclude"] == listed["all"] - {"subcog_gc", "subcog_capture"}
    assert listed["read-only"] == {spec.name for spec in TOOLS if spec.read_only} < listed["all"]
    assert {"subcog_recall"} < listed["core"] < listed["all"]
    assert listed["asked-for"] - listed["all"] == {"memory"}


def test_one_server_lists_its_tools_in_each_protocol(home: Path, project: Path) -> None:
    versions = (HANDSHAKE_VERSIONS[-1], MODERN_VERSIONS[-1])
    with Cortex.open(home, project=project, backend=StubBackend()) as cortex:
        server = build_server(cortex)

        async def twice() -> list[bool]:
            lists = [(await ask(server, requests_of(version)))["tools/list"] for version in versions * 2]
            return ["ttlMs" in listed for listed in lists]

        assert anyio.run(twice) == [False, True, False, True]


def test_what_a_client_says_of_itself_changes_nothing(opened: Callable[..., Cortex]) -> None:
    rich = {
        "protocolVersion": LEGACY,
        "capabilities": {"roots": {"listChanged": True}, "sampling": {}, "elicitation": {}},
        "clientInfo": {"name": "claude-code", "title": "Claude Code", "version": "2.1", "websiteUrl": "https://a.b"},
        "_meta": {"progressToken": 5},
    }
    request = {"jsonrpc": "2.0", "id": 0, "method": "initialize", "params": rich}
    with opened() as cortex:
        live = anyio.run(ask, build_server(cortex), [request])
    assert _loaded().answer(MessageFrame(request)) == live["initialize"]


def test_the_committed_file_is_what_the_server_says_now(opened: Callable[..., Cortex]) -> None:
    with opened(toolsets=EVERY_SET) as cortex:
        content = anyio.run(render, build_server(cortex))
    # Run `make snapshot` if this fails.
    assert json.loads(SNAPSHOT_FILE.read_text("utf-8")) == content


def test_names_without_dots_are_listed_where_asked_for() -> None:
    specs = [ToolSpec("x", name, "x", "x", ("embedding",)) for name in ("embedding.generate", "plain")]
    tools = [{"name": "embedding.generate", "title": "E"}, {"name": "unwanted"}, {"name": "plain"}]
    for portable, name in ((False, "embedding.generate"), (True, "embedding_generate")):
        snapshot = AnswerSnapshot({MODERN: {"tools/list": {"tools": tools, "ttlMs": 0}}}, specs, portable=portable)
        assert snapshot.answer(_frame("tools/list", envelope(MODERN))) == {
            "tools": [{"name": name, "title": "E"}, {"name": "plain"}],
            "ttlMs": 0,
        }


def _renamed(content: Any) -> Any:
    return {**content, "version": "0.0.0"}


def _shortened(content: Any) -> Any:
    return {**content, "results": content["results"][:1]}


@pytest.mark.parametrize(
    "damage",
    [
        lambda text: json.dumps(_renamed(json.loads(text))),
        lambda text: json.dumps(_shortened(json.loads(text))),
        lambda text: text[: len(text) // 2],
        lambda text: "",
        lambda text: "[]",
        lambda text: "null",
        lambda text: json.dumps({"version": json.loads(text)["version"]}),
        lambda text: json.dumps({**json.loads(text), "places": [1]}),
        lambda text: "\ud800",
    ],
    ids=["other version", "results missing", "cut", "empty", "list", "null", "no places", "wrong places", "not UTF-8"],
)
def test_a_file_of_another_version_or_a_damaged_one_answers_nothing(
    tmp_path: Path, damage: Callable[[str], str]
) -> None:
    file = tmp_path / "snapshot.json"
    file.write_text(damage(SNAPSHOT_FILE.read_text("utf-8")), "utf-8", errors="surrogatepass")
    assert _loaded(file).answer(_frame("initialize", HELLO)) is None
    for method in ("server/discover", *LISTS):
        assert _loaded(file).answer(_frame(method, envelope(MODERN))) is None


def test_a_file_that_is_not_there_answers_nothing(tmp_path: Path) -> None:
    assert _loaded(tmp_path / "none.json").answer(_frame("initialize", HELLO)) is None


def _without(values: dict[str, Any], key: str) -> dict[str, Any]:
    return {name: value for name, value in values.items() if name != key}


@each(
    "params",
    [
        {**HELLO, "protocolVersion": "1999-01-01"},
        {**HELLO, "protocolVersion": MODERN},
        {**HELLO, "protocolVersion": 5},
        {**HELLO, "protocolVersion": None},
        _without(HELLO, "protocolVersion"),
        _without(HELLO, "capabilities"),
        {**HELLO, "capabilities": []},
        _without(HELLO, "clientInfo"),
        {**HELLO, "clientInfo": "me"},
        {**HELLO, "clientInfo": {"name": "me"}},
        {**HELLO, "clientInfo": {"name": "me", "version": 2}},
        {},
    ],
)
def test_an_unusual_handshake_is_left_to_the_server(params: dict[str, Any]) -> None:
    snapshot = _loaded()
    assert snapshot.answer(_frame("initialize", params)) is None
    # What follows depends on what the server makes of it.
    assert snapshot.answer(_frame("tools/list")) is None


@each(
    ("method", "params"),
    [
        ("initialize", HELLO),
        ("tools/list", {"cursor": "x"}),
        ("tools/list", {"_meta": 5}),
        ("tools/list", {"surprise": None}),
        ("tools/list", envelope(MODERN)),
        ("tools/call", {"name": "subcog_status"}),
        ("prompts/list", {}),
        ("server/discover", {}),
        ("no/such/method", {}),
    ],
)
def test_an_unusual_request_after_the_handshake_is_left_to_the_server(method: str, params: dict[str, Any]) -> None:
    assert _greeted().answer(_frame(method, params)) is None


@each("params", [None, {}, {"_meta": {}}, {"_meta": {"progressToken": 1}}])
def test_the_plain_request_is_answered(params: dict[str, Any] | None) -> None:
    answer = _greeted().answer(_frame("resources/templates/list", params))
    assert answer is not None
    assert {template["name"] for template in answer["resourceTemplates"]} >= {"memory", "search"}


@pytest.mark.parametrize("method", ["tools/list", "resources/list", "ping"])
def test_nothing_is_answered_before_the_handshake(method: str) -> None:
    assert _loaded().answer(_frame(method)) is None


def _enveloped(version: object = MODERN, capabilities: object = ..., info: object = ...) -> dict[str, Any]:
    meta = {"protocolVersion": version, "clientCapabilities": capabilities, "clientInfo": info}
    return {"_meta": {f"{PREFIX}{key}": value for key, value in meta.items() if value is not ...}}


@each(
    ("method", "params"),
    [
        ("tools/list", _enveloped()),
        ("tools/list", _enveloped(..., {})),
        ("tools/list", _enveloped(MODERN, [])),
        ("tools/list", _enveloped(MODERN, None)),
        ("tools/list", _enveloped("2099-01-01", {})),
        ("tools/list", _enveloped(LEGACY, {})),
        ("tools/list", _enveloped(5, {})),
        ("tools/list", _enveloped(MODERN, {}, "me")),
        ("tools/list", _enveloped(MODERN, {}, {"name": "me"})),
        ("tools/list", {**_enveloped(MODERN, {}), "cursor": "x"}),
        ("ping", _enveloped(MODERN, {})),
        ("prompts/list", _enveloped(MODERN, {})),
    ],
)
def test_an_unusual_request_of_the_stateless_protocol_is_left_to_the_server(
    method: str, params: dict[str, Any]
) -> None:
    assert _loaded().answer(_frame(method, params)) is None


@each("info", [..., None, {"name": "me", "version": "1"}, {"name": "me", "version": "1", "title": ""}])
def test_a_client_of_the_stateless_protocol_may_say_who_it_is(info: object) -> None:
    assert _loaded().answer(_frame("tools/list", _enveloped(MODERN, {}, info))) is not None


def test_notifications_and_responses_are_left_to_the_server() -> None:
    snapshot = _greeted()
    assert snapshot.answer(MessageFrame({"jsonrpc": "2.0", "method": "tools/list"})) is None
    assert snapshot.answer(MessageFrame({"jsonrpc": "2.0", "id": 1, "result": {}})) is None


def test_a_connection_stays_in_the_protocol_of_its_first_request() -> None:
    modern = _loaded()
    assert modern.answer(_frame("tools/list", envelope(MODERN))) is not None
    assert modern.answer(_frame("initialize", HELLO)) is None
    waiting = _loaded()
    assert waiting.answer(_frame("tools/call", {**envelope(MODERN), "name": "x"})) is None
    assert waiting.answer(_frame("initialize", HELLO)) is None
    assert waiting.answer(_frame("tools/list", envelope(MODERN))) is not None
    legacy = _loaded()
    assert legacy.answer(_frame("ping")) is None
    assert legacy.answer(_frame("tools/list", envelope(MODERN))) is None
    assert legacy.answer(_frame("initialize", HELLO)) is not None
