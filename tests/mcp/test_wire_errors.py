"""Every documented error code as a client sees it, in both protocols; what is refused changes nothing."""

import json
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from itertools import groupby
from pathlib import Path
from typing import Any

import mcp_types
import pytest
from mcp.shared.exceptions import MCPError

from cortex_py import Cortex
from cortex_py.core.embedding.backends.backend import Backend
from cortex_py.core.errors import WIRE_FORMS, StoreBusy
from cortex_py.surfaces.mcp.help_pages import HELP
from cortex_py.surfaces.mcp.server import build_server
from cortex_py.surfaces.mcp.stdio.front import envelope
from llm.chat_server import ChatServer, chat, refusal

from clients import MODES, PROTOCOLS, Caller, connected
from helpers import FakeClock
from servers import http_server, stdio_server
from stub_backend import StubBackend

DOCUMENTED = {-32600, -32601, -32602, -32603, -32604, -32605, -32606, -32607, -32608}
KEY = "sk-test-0123456789abcdef"

EXCLUDED = "subcog_namespaces"
TOKEN = "ghp_" + "1a2B3c4D5e" * 3 + "6F7g8h"
SECRET = f"Deploy with {TOKEN} from the runner"
LEAK = "hunter2 in the connection string"


@dataclass(frozen=True)
class Bad:
    """A call that is refused: with which code, and what `data` says among other things."""

    tool: str
    arguments: dict[str, Any]
    code: int
    data: dict[str, Any]


# By what is wrong.
BAD = {
    name: Bad(**bad)
    for name, bad in json.loads(
        Path(__file__).with_name("wire_errors.json").read_text("utf-8").replace("$SECRET", SECRET)
    ).items()
}

MALFORMED = {
    b"[]": None,
    b"17": None,
    b'{"jsonrpc": "2.0", "id": null, "method": "tools/list"}': None,
    b'{"jsonrpc": "1.0", "id": 1, "method": "tools/list"}': 1,
    b'{"jsonrpc": "2.0", "id": 2}': 2,
    b'{"jsonrpc": "2.0", "id": 3, "method": "tools/call", "params": ["subcog_status"]}': 3,
}


@dataclass(frozen=True)
class Prepared:
    """A running server over two memories whose ids begin alike."""

    url: str
    mcp: str
    twins: tuple[str, str]


@pytest.fixture(scope="module")
def prepared(tmp_path_factory: pytest.TempPathFactory, model: Backend) -> Iterator[Prepared]:
    home, project = tmp_path_factory.mktemp("home"), tmp_path_factory.mktemp("project")
    clock = FakeClock()
    with Cortex.open(home, project=project, clock=clock, backend=model) as cortex:
        first = cortex.memories.capture("Use tabs", namespace="decisions").id
        clock.repeat_prefix()
        second = cortex.memories.capture("Use spaces", namespace="decisions").id
    with http_server(home, project, "--exclude-tools", EXCLUDED, CORTEX_SECRETS="block") as server:
        yield Prepared(server.url, server.mcp, (first, second))


@pytest.fixture(scope="module", params=MODES)
def client(prepared: Prepared, request: pytest.FixtureRequest) -> Iterator[Caller]:
    with connected(prepared.mcp, request.param) as caller:
        yield caller


@pytest.fixture(params=MODES)
def mode(request: pytest.FixtureRequest) -> str:
    return str(request.param)


def _state(client: Caller) -> tuple[int, Any]:
    statistics = client.call("subcog_status")["statistics"]
    return statistics["total_count"], client.call("subcog_recall", detail="everything")


def test_every_documented_code_is_produced_here() -> None:
    assert {bad.code for bad in BAD.values()} | {-32600, -32603, -32606} == DOCUMENTED
    assert {form.subcog for _, form in WIRE_FORMS} | {-32600, -32601} == DOCUMENTED
    assert all(str(code) in HELP["errors"] for code in DOCUMENTED)


@pytest.mark.slow
def test_a_bad_call_is_refused_and_changes_nothing(client: Caller) -> None:
    before = _state(client)
    assert before[0] == 2
    for tool, calls in groupby(sorted(BAD.values(), key=_tool_of), _tool_of):
        for bad in calls:
            error = client.refused(tool, **bad.arguments)
            assert (error.code, bad) == (bad.code, bad)
            assert {name: error.data[name] for name in bad.data} == bad.data
            assert TOKEN not in error.model_dump_json()
        assert _state(client) == before, tool


def _tool_of(bad: Bad) -> str:
    return bad.tool


def test_a_prefix_of_several_ids_names_the_candidates(client: Caller, prepared: Prepared) -> None:
    prefix = prepared.twins[0][:8]
    assert prepared.twins[1].startswith(prefix)
    for tool in ("subcog_get", "subcog_delete", "subcog_history"):
        error = client.refused(tool, memory_id=prefix)
        assert (error.code, error.data["error"], error.data["memory_id"]) == (-32602, "AmbiguousId", prefix)
        assert sorted(error.data["candidates"]) == sorted(prepared.twins)
    assert _state(client)[0] == 2


def test_a_secret_is_refused_in_a_change_too(client: Caller, prepared: Prepared) -> None:
    error = client.refused("subcog_update", memory_id=prepared.twins[0], content=SECRET)
    assert (error.code, error.data["kinds"]) == (-32605, ["github-token"])
    assert TOKEN not in error.model_dump_json()
    assert client.call("subcog_get", memory_id=prepared.twins[0])["content"] == "Use tabs"


def test_an_excluded_tool_is_not_listed(client: Caller) -> None:
    names = [tool.name for tool in client.portal.call(client.client.list_tools)]
    assert EXCLUDED not in names
    assert "subcog_status" in names


def test_raw_requests_are_refused_over_stdio_and_the_secret_appears_nowhere(
    home: Path, project: Path, mode: str
) -> None:
    meta = {} if mode == "legacy" else envelope(PROTOCOLS[mode])
    with stdio_server(home, project, CORTEX_SECRETS="block") as server:
        if mode == "legacy":
            server.handshake()
        for line, id in MALFORMED.items():
            server.write(line + b"\n")
            answer = server.read()
            assert (answer["error"]["code"], answer["id"]) == (-32600, id)
        for params in ({}, {"name": 3}, {"name": "subcog_status", "arguments": ["x"]}):
            assert server.request(4, "tools/call", {**params, **meta})["error"]["code"] == -32602
        assert server.request(5, "tools/teleport", meta)["error"]["code"] == -32601
        call = {"name": "subcog_capture", "arguments": {"content": SECRET, "namespace": "config"}, **meta}
        refused = server.request(6, "tools/call", call)
        assert (refused["error"]["code"], refused["error"]["data"]["kinds"]) == (-32605, ["github-token"])
        server.close_input()
        rest = server.rest()
        assert server.process.stderr is not None
        log = server.process.stderr.read()
    assert TOKEN not in json.dumps(refused)
    assert TOKEN.encode() not in rest + log
    assert not any(TOKEN.encode() in file.read_bytes() for file in home.rglob("*") if file.is_file())


def test_a_language_model_that_is_not_configured_is_told(client: Caller, prepared: Prepared) -> None:
    before = _state(client)
    error = client.refused("subcog_enrich", memory_id=prepared.twins[0], method="llm")
    assert (error.code, error.data["error"]) == (-32606, "LLMError")
    assert "llm_provider" in error.data["remedy"]
    assert error.data["remedy"] in error.message
    assert _state(client) == before


@pytest.fixture
def chat_server() -> Iterator[ChatServer]:
    with ChatServer() as opened:
        yield opened


@pytest.fixture
def asking(home: Path, project: Path, model: Backend, chat_server: ChatServer) -> Iterator[Cortex]:
    """Two memories that say the same, and a language model to make one of them."""
    chosen = {"llm_provider": "openai", "llm_model": "some-model", "llm_url": chat_server.url, "llm_api_key": KEY}
    with Cortex.open(home, project=project, backend=model, **chosen) as opened:
        for content in ("Use PostgreSQL for primary storage", "We use PostgreSQL as the primary storage"):
            opened.memories.capture(content, namespace="decisions")
        yield opened


@pytest.mark.parametrize("tool", ["subcog_consolidate", "subcog_enrich"])
def test_a_language_model_that_fails_is_told_where_it_was_asked_for(
    asking: Cortex, chat_server: ChatServer, mode: str, tool: str
) -> None:
    chat_server.usual = refusal(403, f"{KEY} may not use some-model")
    id = asking.memories.recall().results[0].memory.id
    arguments = {"namespace": "decisions"} if tool == "subcog_consolidate" else {"memory_id": id}
    with connected(build_server(asking), mode) as client:
        before = _state(client)
        error = client.refused(tool, **arguments, method="llm")
        assert (error.code, error.data["error"]) == (-32606, "LLMError")
        assert "may not use some-model" in error.message
        assert KEY not in error.model_dump_json()
        assert _state(client) == before
        assert len(chat_server.asked) == 1
        # Without that wish the local method takes over, and says why.
        done = client.call(tool, **arguments)
    assert done["method"] == "local"
    assert ["may not use some-model" in warning for warning in done["warnings"]] == [True]
    assert KEY not in json.dumps(done)


def test_a_language_model_that_leaves_a_fact_out_is_told(asking: Cortex, chat_server: ChatServer, mode: str) -> None:
    chat_server.usual = chat({"content": "Use a database."})
    with connected(build_server(asking), mode) as client:
        before = _state(client)
        error = client.refused("subcog_consolidate", namespace="decisions", method="llm")
        assert (error.code, _state(client)) == (-32606, before)
    assert "left out" in error.message


@pytest.fixture(scope="module")
def without_model(tmp_path_factory: pytest.TempPathFactory) -> Iterator[str]:
    home, project = tmp_path_factory.mktemp("home"), tmp_path_factory.mktemp("project")
    with http_server(home, project, CORTEX_EMBEDDING_MODEL="all-MiniLM-L6-v2") as server:
        yield server.mcp


def test_without_a_model_words_are_stored_and_searched(without_model: str, mode: str) -> None:
    with connected(without_model, mode) as client:
        stored = client.call("subcog_capture", content="Use tabs in every file", namespace="decisions")
        found = client.call("subcog_recall", query="tabs or spaces")
        assert stored["id"] in [one["id"] for one in found["results"]]
        assert "words only" in str(found["message"])


Ask = Callable[[Caller], object]


def _complete(client: Caller) -> object:
    reference = mcp_types.ResourceTemplateReference(uri="subcog://memory/{id}")
    return client.portal.call(client.client.complete, reference, {"name": "id", "value": ""})


def _subscribe(client: Caller) -> object:
    request = mcp_types.SubscribeRequest(params=mcp_types.SubscribeRequestParams(uri="subcog://topics"))
    return client.portal.call(client.client.session.send_request, request, mcp_types.EmptyResult)


def _complete_prompt(client: Caller) -> object:
    reference = mcp_types.PromptReference(name="start-session")
    return client.portal.call(client.client.complete, reference, {"name": "task", "value": ""})


def _get_prompt(client: Caller) -> object:
    return client.portal.call(client.client.get_prompt, "start-session")


def _list_prompts(client: Caller) -> object:
    return client.portal.call(client.client.list_prompts)


ASKED: dict[str, Ask] = {
    "a tool": lambda client: client.call("subcog_status"),
    "a tool for prompts": lambda client: client.call("prompt_run", name="start-session"),
    "a tool for templates": lambda client: client.call("subcog_templates", action="list"),
    "a prompt": _get_prompt,
    "a completion for a prompt": _complete_prompt,
    "a long tool": lambda client: client.call("subcog_gc"),
    "a resource": lambda client: client.read("subcog://topics"),
    "a template": lambda client: client.read("subcog://project/decisions"),
    "a completion": _complete,
}


@pytest.fixture
def cortex(home: Path, project: Path) -> Iterator[Cortex]:
    with Cortex.open(home, project=project, backend=StubBackend()) as opened:
        yield opened


def _fail_with(error: Exception, cortex: Cortex, monkeypatch: pytest.MonkeyPatch) -> None:
    def fail(*_: object, **__: object) -> object:
        raise error

    for name in ("status", "gc", "tags", "ids", "recall"):
        monkeypatch.setattr(cortex.memories, name, fail)
    for name in ("run", "complete"):
        monkeypatch.setattr(cortex.prompts, name, fail)
    monkeypatch.setattr(cortex.templates, "list", fail)


def _told(ask: Ask, client: Caller) -> mcp_types.ErrorData:
    with pytest.raises(MCPError) as caught:
        ask(client)
    return caught.value.error


# All of them on one server: making one costs more than all the calls.
@pytest.mark.slow
def test_an_unforeseen_error_is_told_without_its_words(
    cortex: Cortex, mode: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    _fail_with(RuntimeError(LEAK), cortex, monkeypatch)
    with connected(build_server(cortex), mode) as client:
        for asked, ask in ASKED.items():
            error = _told(ask, client)
            assert error.code == -32603, asked
            assert "hunter2" not in error.model_dump_json(), asked
            assert client.call("subcog_namespaces")["namespaces"], asked


def test_an_unforeseen_error_of_a_watch_is_told_without_its_words(
    cortex: Cortex, monkeypatch: pytest.MonkeyPatch
) -> None:
    _fail_with(RuntimeError(LEAK), cortex, monkeypatch)
    with connected(build_server(cortex), "legacy") as client:
        error = _told(_subscribe, client)
    assert error.code == -32603
    assert "hunter2" not in error.model_dump_json()


def test_an_error_of_the_store_is_told_in_full(cortex: Cortex, mode: str, monkeypatch: pytest.MonkeyPatch) -> None:
    _fail_with(StoreBusy("Another process writes.", remedy="Try again."), cortex, monkeypatch)
    with connected(build_server(cortex), mode) as client:
        for asked, ask in ASKED.items():
            error = _told(ask, client)
            assert (error.code, error.message) == (-32603, "Another process writes. Try again."), asked
            assert error.data["error"] == "StoreBusy", asked


# The framework drops what a provider raises unless it is told not to: server.provider_error_strategy = "raise".
@pytest.mark.parametrize(("ask", "asked"), [(_list_prompts, "visible"), (_get_prompt, "get")], ids=["list", "get"])
def test_prompts_that_cannot_be_looked_up_are_an_error_and_not_absent(
    cortex: Cortex, mode: str, ask: Ask, asked: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    def busy(*_: object, **__: object) -> object:
        raise StoreBusy("Another process writes.", remedy="Try again.")

    monkeypatch.setattr(cortex.prompts, asked, busy)
    with connected(build_server(cortex), mode) as client:
        error = _told(ask, client)
    assert (error.code, error.message) == (-32603, "Another process writes. Try again.")
