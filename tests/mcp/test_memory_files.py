"""The memory tool of Claude's API as a tool of the protocol and over HTTP: the same texts, refusals and rights."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import pytest
from fastmcp.client.transports import StreamableHttpTransport
from starlette.testclient import TestClient

from cases import each
from cortex_py import Cortex
from cortex_py.surfaces.http.server import build_app
from cortex_py.surfaces.mcp.server import build_server

from clients import MODES, Caller, connected
from servers import http_server
from stub_backend import StubBackend

URL = "/api/v1/memory-tool"
SETS = {"toolsets": "all,memory-tool"}
PATH = "/memories/build.md"
CREATE = {"command": "create", "path": PATH, "file_text": "Use pnpm.\n"}
VIEW = {"command": "view", "path": PATH}
SHOWN = f"Here's the content of {PATH} with line numbers:\n     1\tUse pnpm.\n     2\t"
SECRET = "ghp_" + "a1B2c3D4e5F6g7H8i9J0k1L2m3N4o5P6q7R8"

# A call, and a part of its refusal.
REFUSED: list[tuple[dict[str, Any], str]] = [
    ({"command": "view", "path": "/memories/no.md"}, "The path /memories/no.md does not exist. Please provide a valid"),
    ({"command": "view", "path": "/memories/../etc/passwd"}, "is no path below /memories"),
    ({"command": "view", "path": "/memories/%2e%2e/x"}, "is no path below /memories"),
    ({"command": "view", "path": "/etc/passwd"}, "is no path below /memories"),
    ({"command": "view", "path": "/memories\\..\\x"}, "is no path below /memories"),
    ({"command": "view", "path": "/memories/a\0"}, "is no path below /memories"),
    ({**CREATE, "file_text": "x"}, f"File {PATH} already exists."),
    ({**CREATE, "path": f"/memories/{SECRET}"}, "looks like a secret"),
    ({"command": "create", "path": "/memories/new.md"}, "file_text is missing."),
    (
        {"command": "str_replace", "path": PATH, "old_str": SECRET, "new_str": "x"},
        "No replacement was performed, old_str `[REDACTED",
    ),
    (
        {"command": "insert", "path": PATH, "insert_line": 9, "insert_text": "x"},
        "Invalid `insert_line` parameter: 9. It should be within the range [0, 1].",
    ),
    ({"command": "rename", "old_path": PATH, "new_path": "/memories/../b"}, "is no path below /memories"),
    ({"command": "format"}, "command"),
    ({"command": "create", "path": 5, "file_text": "x"}, "path"),
    ({**VIEW, "view_range": "all"}, "view_range"),
    ({**VIEW, "elsewhere": "x"}, "elsewhere"),
]


@contextmanager
def _cortex(home: Path, project: Path, **settings: Any) -> Iterator[Cortex]:
    with Cortex.open(home, project=project, backend=StubBackend(), **{**SETS, **settings}) as cortex:
        if settings.get("auth") == "tokens":
            cortex.tenants.join("ann", "write")
        yield cortex


def _call(caller: Caller, given: dict[str, Any]) -> tuple[bool, str]:
    result = caller.portal.call(caller.client.call_tool_mcp, "memory", given)
    assert result.structured_content is None
    return bool(result.is_error), result.content[0].text


@contextmanager
def _over_http(cortex: Cortex, token: str) -> Iterator[TestClient]:
    headers = {"Authorization": f"Bearer {token}"}
    with TestClient(
        build_app(cortex), base_url="http://127.0.0.1", headers=headers, raise_server_exceptions=False
    ) as client:
        yield client


@each("mode", MODES)
def test_a_client_uses_it_as_the_tool_of_the_api(home: Path, project: Path, mode: str) -> None:
    with _cortex(home, project) as cortex, connected(build_server(cortex), mode) as caller:
        assert _call(caller, CREATE) == (False, f"File created successfully at: {PATH}")
        assert _call(caller, VIEW) == (False, SHOWN)
        assert cortex.memories.recall("pnpm").results[0].memory.source == PATH
        assert _call(caller, {"command": "delete", "path": PATH}) == (False, f"Successfully deleted {PATH}")


def test_what_is_refused_changes_nothing(home: Path, project: Path) -> None:
    with _cortex(home, project, auth="tokens") as cortex:
        cortex.memory_tool.call(CREATE)
        token = cortex.access.create("ann", scopes=["read", "write"]).token
        with connected(build_server(cortex), "auto") as caller, _over_http(cortex, token) as client:
            for given, reason in REFUSED:
                failed, text = _call(caller, given)
                answer = client.post(URL, json=given)
                assert failed, given
                assert reason in text
                assert answer.status_code in (404, 409, 422), given
                assert reason in answer.json()["error"]["message"]
                assert SECRET[4:20] not in text + answer.text
        assert cortex.memory_tool.call({"command": "view", "path": "/memories"}).splitlines()[1:] == [
            "10B\t/memories",
            f"10B\t{PATH}",
        ]
        assert cortex.memory_tool.call(VIEW) == SHOWN


def test_a_token_that_reads_only_looks(home: Path, project: Path) -> None:
    with _cortex(home, project, auth="tokens") as cortex:
        token = {name: cortex.access.create("ann", scopes=[name]).token for name in ("read", "embed")}
        writer = cortex.access.create("ann", scopes=["read", "write"]).token
        with _over_http(cortex, writer) as client:
            assert client.post(URL, json=CREATE).json() == {"text": f"File created successfully at: {PATH}"}
        changes = [
            {**CREATE, "path": "/memories/b.md"},
            {"command": "str_replace", "path": PATH, "old_str": "pnpm", "new_str": "bun"},
            {"command": "insert", "path": PATH, "insert_line": 0, "insert_text": "x"},
            {"command": "delete", "path": PATH},
            {"command": "rename", "old_path": PATH, "new_path": "/memories/c.md"},
        ]
        with _over_http(cortex, token["read"]) as client:
            assert client.post(URL, json=VIEW).json() == {"text": SHOWN}
            assert [client.post(URL, json=one).status_code for one in changes] == [403] * 5
        with _over_http(cortex, token["embed"]) as client:
            assert client.post(URL, json=VIEW).status_code == 403
        with http_server(home, project, "--toolsets", "all,memory-tool", CORTEX_AUTH="tokens") as server:
            transport = StreamableHttpTransport(server.mcp, headers={"Authorization": f"Bearer {token['read']}"})
            with connected(transport, "auto") as caller:
                assert _call(caller, VIEW) == (False, SHOWN)
                for one in changes:
                    failed, text = _call(caller, one)
                    assert failed
                    assert "memory needs the scope write, or tool:memory." in text
        assert cortex.memory_tool.call(VIEW) == SHOWN


def test_a_server_that_only_reads_shows_files(home: Path, project: Path) -> None:
    with _cortex(home, project) as cortex:
        cortex.memory_tool.call(CREATE)
    with _cortex(home, project, auth="tokens", read_only=True) as cortex:
        with _over_http(cortex, cortex.access.create("ann", scopes=["read", "write"]).token) as client:
            assert client.post(URL, json=VIEW).json() == {"text": SHOWN}
            answer = client.post(URL, json={"command": "delete", "path": PATH})
            assert (answer.status_code, "changes nothing" in answer.text) == (403, True)
        with connected(build_server(cortex), "auto") as caller:
            assert caller.refused("memory", **VIEW).code == -32601


def test_a_secret_in_a_file_is_stored_and_shown_redacted(home: Path, project: Path) -> None:
    with _cortex(home, project) as cortex, connected(build_server(cortex), "auto") as caller:
        _call(caller, {**CREATE, "file_text": f"The token is {SECRET}."})
        changed = {"command": "str_replace", "path": PATH, "old_str": "The", "new_str": f"{SECRET} is the"}
        for given in (VIEW, changed, VIEW):
            failed, text = _call(caller, given)
            assert not failed
            assert "[REDACTED" in text
            assert SECRET[4:20] not in text


def test_a_huge_text_is_refused(home: Path, project: Path) -> None:
    with _cortex(home, project) as cortex, connected(build_server(cortex), "auto") as caller:
        failed, text = _call(caller, {**CREATE, "file_text": "x" * 1_000_001})
        assert (failed, text) == (True, "A text in file_text is longer than 1,000,000 characters.")
        assert cortex.memories.recall(limit=1).total == 0


@pytest.mark.parametrize("given", [{}, {"toolsets": "all"}])
def test_nobody_who_did_not_ask_gets_it(home: Path, project: Path, given: dict[str, str]) -> None:
    with (
        Cortex.open(home, project=project, backend=StubBackend(), **given) as cortex,  # type: ignore[arg-type]
        connected(build_server(cortex), "auto") as caller,
    ):
        assert "memory" not in [tool.name for tool in caller.portal.call(caller.client.list_tools)]
        assert caller.refused("memory", **VIEW).code == -32601
