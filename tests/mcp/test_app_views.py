"""Views inside a conversation: for clients that announce the extension; for all others nothing is new."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any

import anyio
import pytest

from cortex_py import Cortex
from cortex_py.core.security.callers import Caller, acting_as
from cortex_py.surfaces.mcp.app_views import EXTENSION, MIME_TYPE, REVIEW_TOOL, VIEWS
from cortex_py.surfaces.mcp.reference.rendering import ask, requests_of
from cortex_py.surfaces.mcp.registry import TOOLS, select_tools
from cortex_py.surfaces.mcp.server import build_server
from cortex_py.surfaces.mcp.stdio.frames import MessageFrame
from cortex_py.surfaces.mcp.stdio.front import AnswerSnapshot

from stub_backend import StubBackend

SHOWS = {"extensions": {EXTENSION: {"mimeTypes": [MIME_TYPE]}}}
OTHER = {"extensions": {EXTENSION: {"mimeTypes": ["text/plain"]}, "other": {}}}


@pytest.fixture
def opened(home: Path, project: Path) -> Callable[..., Cortex]:
    return lambda **settings: Cortex.open(home, project=project, backend=StubBackend(), **settings)


def _requests(version: str, capabilities: dict[str, Any], *more: tuple[str, dict[str, Any]]) -> list[dict[str, Any]]:
    """The first requests of a client with these capabilities, and more."""
    requests = requests_of(version)
    for request in requests:
        if request["method"] == "initialize":
            request["params"]["capabilities"] = capabilities
    envelope = {} if version < "2026" else requests[-1]["params"]["_meta"]
    requests += [
        {
            "jsonrpc": "2.0",
            "id": 100 + n,
            "method": method,
            "params": {**params, **({"_meta": envelope} if envelope else {})},
        }
        for n, (method, params) in enumerate(more)
    ]
    for request in requests:
        if meta := request["params"].get("_meta"):
            request["params"]["_meta"] = {**meta, "io.modelcontextprotocol/clientCapabilities": capabilities}
    return requests


def _ask(cortex: Cortex, requests: list[dict[str, Any]]) -> dict[str, Any]:
    return anyio.run(ask, build_server(cortex), requests)


@pytest.mark.parametrize(
    "settings", [{}, {"read_only": True}, {"tools": "subcog_get"}], ids=["all", "read-only", "one"]
)
@pytest.mark.parametrize("version", ["2025-11-25", "2026-07-28"])
def test_the_front_and_the_server_list_the_same_views(
    opened: Callable[..., Cortex], version: str, settings: dict[str, Any]
) -> None:
    requests = _requests(version, SHOWS)
    with opened(**settings) as cortex:
        snapshot = AnswerSnapshot.load(select_tools(TOOLS, cortex.settings.tool_bounds), portable=False)
        live = _ask(cortex, requests)
    assert {request["method"]: snapshot.answer(MessageFrame(request)) for request in requests} == live
    bound = {tool["name"]: tool["_meta"]["ui"] for tool in live["tools/list"]["tools"] if "ui" in tool.get("_meta", {})}
    offered = {
        view.tool: {"resourceUri": view.uri} for view in VIEWS if not settings.get("tools") or view.tool == "subcog_get"
    }
    app_only = {} if settings.get("tools") else {REVIEW_TOOL: {"visibility": ["app"]}}
    assert bound == {**offered, **app_only}
    listed = {one["uri"]: one["mimeType"] for one in live["resources/list"]["resources"]}
    assert {view.uri: MIME_TYPE for view in VIEWS}.items() <= listed.items()


@pytest.mark.parametrize("capabilities", [{}, OTHER], ids=["none", "another form"])
def test_a_client_without_the_extension_sees_nothing_new(opened: Callable[..., Cortex], capabilities: Any) -> None:
    with opened() as cortex:
        found = _ask(cortex, _requests("2025-11-25", capabilities))
        assert found == _ask(cortex, requests_of("2025-11-25"))
        assert "ui://" not in str(found)
        assert REVIEW_TOOL not in str(found)
        for method, params in (
            ("resources/read", {"uri": VIEWS[0].uri}),
            ("tools/call", {"name": REVIEW_TOOL, "arguments": {"action": "list"}}),
        ):
            # An error of the protocol, as for any unknown name.
            with pytest.raises(KeyError, match="result"):
                _ask(cortex, _requests("2025-11-25", capabilities, (method, params)))


@pytest.mark.parametrize("version", ["2025-11-25", "2026-07-28"])
def test_every_view_is_one_document_that_loads_nothing(opened: Callable[..., Cortex], version: str) -> None:
    with opened() as cortex:
        for view in VIEWS:
            found = _ask(cortex, _requests(version, SHOWS, ("resources/read", {"uri": view.uri})))["resources/read"]
            (content,) = found["contents"]
            assert content["mimeType"] == MIME_TYPE
            assert content["text"].startswith("<!doctype html>")
            assert f'data-view="{view.name}"' in content["text"]
            for sign in ("src=", "href=", 'http-equiv="refresh', "import "):
                assert sign not in content["text"].replace("a[href]", "").replace("link.href", ""), sign


def _decide(cortex: Cortex, **arguments: Any) -> dict[str, Any]:
    requests = _requests("2025-11-25", SHOWS, ("tools/call", {"name": REVIEW_TOOL, "arguments": arguments}))
    found: dict[str, Any] = _ask(cortex, requests)["tools/call"]
    return found


def test_a_person_decides_in_the_view(opened: Callable[..., Cortex]) -> None:
    with opened() as cortex:
        memories = cortex.memories
        staged = memories.update(memories.capture("Tests need Redis", tags=["test"]).id, status="pending")
        (shown,) = _decide(cortex, action="list")["structuredContent"]["staged"]
        assert (shown["id"], shown["content"], shown["tags"]) == (staged.id, "Tests need Redis", ["test"])
        for action, status in (
            ("accept", "active"),
            ("stage", "pending"),
            ("drop", "tombstoned"),
            ("restore", "pending"),
        ):
            assert _decide(cortex, action=action, id=staged.id)["structuredContent"]["id"] == staged.id
            found = memories.recall(None, filter=f"status:{status}").results
            assert [hit.memory.id for hit in found] == [staged.id], action
        for wrong in (
            {},
            {"action": "purge"},
            {"action": "accept"},
            {"action": "accept", "id": "0" * 40},
            {"action": "list", "x": 1},
        ):
            assert _decide(cortex, **wrong)["isError"], wrong


def test_decisions_need_the_right_to_change(opened: Callable[..., Cortex]) -> None:
    with opened(read_only=True) as cortex:
        assert _decide(cortex, action="list")["structuredContent"] == {"staged": []}
        assert _decide(cortex, action="accept", id="0" * 40)["isError"]
    with opened() as cortex, acting_as(Caller("ann", scopes=frozenset({"read"}))):
        answer = _decide(cortex, action="accept", id="0" * 40)
        assert answer["isError"]
        assert "scope write" in answer["content"][0]["text"]
