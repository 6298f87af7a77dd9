"""When the place, the store or the model fails the context tools: told in the documented form, nothing by half."""

from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from cortex_py import Cortex
from cortex_py.core.errors import StoreBusy
from cortex_py.core.store.database import Database
from cortex_py.surfaces.mcp.registry import family_tools
from cortex_py.surfaces.mcp.server import build_server

from clients import connected
from servers import http_server
from stub_backend import StubBackend

LEAK = "hunter2 in the connection string"


def _is_told(told: dict[str, Any], named: str) -> None:
    assert told.keys() == {"success", "error", "error_code", "details"}
    assert (told["success"], told["error_code"]) == (False, "STORAGE_ERROR")
    assert told["error"]
    assert named in told["details"], told


@pytest.fixture
def cortex(home: Path, project: Path) -> Iterator[Cortex]:
    with Cortex.open(home, project=project, backend=StubBackend()) as opened:
        yield opened


@pytest.mark.parametrize("where", ["memory", "memory/project"])
def test_a_branch_whose_file_has_no_place_is_not_begun(home: Path, cortex: Cortex, mode: str, where: str) -> None:
    id = cortex.contexts.project.id
    place = home / where.replace("project", id)
    place.parent.mkdir(exist_ok=True)
    place.write_text("in the way", "utf-8")
    with connected(build_server(cortex), mode) as caller:
        told = caller.failed("create_branch", project_id=id, branch_topic="Prices")
        _is_told(told, "CORTEX_HOME")
        assert caller.call("get_context_graph_info", project_id=id)["nodes"] == []
        place.unlink()
        created = caller.call("create_branch", project_id=id, branch_topic="Prices")
        assert created["verified"] is True
        assert len(caller.call("get_context_graph_info", project_id=id)["nodes"]) == 1


def test_what_is_said_is_kept_though_its_file_has_no_place(home: Path, cortex: Cortex, mode: str) -> None:
    id, branch = cortex.contexts.project.id, cortex.contexts.create_branch("Prices")
    (home / "memory").rename(home / "elsewhere")
    (home / "memory").write_text("in the way", "utf-8")
    with connected(build_server(cortex), mode) as caller:
        caller.call("update_memory", project_id=id, branch_id=branch.id, content="They rise", role="user")
        caller.call("link_git_branch", project_id=id, cortex_branch_id=branch.id, git_branch_name="prices")
        (home / "memory").unlink()
        (home / "elsewhere").rename(home / "memory")
        caller.call("update_memory", project_id=id, branch_id=branch.id, content="They fall", role="user")
        assert caller.call("get_active_summary", project_id=id, branch_id=branch.id)["message_count"] == 2
    text = (home / "memory" / id / f"{branch.id}.md").read_text("utf-8")
    assert "They rise" in text
    assert "They fall" in text


def _set(database: Database, pragma: str) -> None:
    with database.read() as session:
        session.rows("SELECT 1")
    for connection in database._file._idle:  # type: ignore[attr-defined]
        connection.execute(f"PRAGMA {pragma}")


@pytest.mark.slow
@pytest.mark.parametrize(("broken", "mended"), [("query_only = 1", "query_only = 0"), ("full", "roomy")])
def test_a_store_that_takes_no_more_is_told(cortex: Cortex, mode: str, broken: str, mended: str) -> None:
    contexts, database = cortex.contexts, cortex._store.database
    id, branch = contexts.project.id, contexts.create_branch("Prices")
    contexts.append(branch.id, "They rise", "user")
    with database.read() as session:
        (pages,) = session.rows("PRAGMA page_count")[0]
    pragmas = {"full": f"max_page_count = {pages + 4}", "roomy": "max_page_count = 1000000"}
    turn = {"project_id": id, "branch_id": branch.id, "content": "They fall. " * 10_000, "role": "user"}
    with connected(build_server(cortex), mode) as caller:
        before = caller.call("get_active_summary", project_id=id, branch_id=branch.id)
        _set(database, pragmas.get(broken, broken))
        _is_told(caller.failed("update_memory", **turn), "Store")
        _set(database, pragmas.get(mended, mended))
        assert caller.call("get_active_summary", project_id=id, branch_id=branch.id) == before
        assert caller.call("update_memory", **turn)["indexed"] is True
    assert cortex.check() == []


def test_a_damaged_store_is_told(home: Path, project: Path, mode: str) -> None:
    with Cortex.open(home, project=project, backend=StubBackend()) as cortex:
        id, branch = cortex.contexts.project.id, cortex.contexts.create_branch("Prices")
        with cortex._store.database.read() as session:
            (root,) = session.rows("SELECT rootpage FROM sqlite_schema WHERE name = 'branch'")[0]
            (size,) = session.rows("PRAGMA page_size")[0]
    with (home / "cortex.db").open("r+b") as file:
        file.seek((root - 1) * size)
        file.write(b"\xa5" * size)
    with (
        Cortex.open(home, project=project, backend=StubBackend()) as cortex,
        connected(build_server(cortex), mode) as caller,
    ):
        for tool, arguments in {
            "create_branch": {"branch_topic": "More"},
            "update_memory": {"branch_id": branch.id, "content": "x", "role": "user"},
            "get_active_summary": {"branch_id": branch.id},
            "get_context_graph_info": {},
        }.items():
            _is_told(caller.failed(tool, project_id=id, **arguments), "StoreCorrupt")
        assert caller.call("subcog_namespaces")["namespaces"]


@pytest.fixture(scope="module")
def without_model(tmp_path_factory: pytest.TempPathFactory) -> Iterator[tuple[str, str]]:
    home, project = tmp_path_factory.mktemp("home"), tmp_path_factory.mktemp("project")
    (project / "README.md").write_text("# Shop\n", "utf-8")
    with http_server(home, project, CORTEX_EMBEDDING_MODEL="all-MiniLM-L6-v2") as server:
        yield server.mcp, str(project)


def test_without_a_model_words_are_stored_and_searched(without_model: tuple[str, str], mode: str) -> None:
    address, path = without_model
    with connected(address, mode) as caller:
        id = caller.call("initialize_context", project_path=path)["project_id"]
        branch = caller.call("create_branch", project_id=id, branch_topic="Prices")["branch_id"]
        turn = {"project_id": id, "branch_id": branch, "content": "The prices rise in May", "role": "user"}
        assert caller.call("update_memory", **turn)["success"]
        found = caller.call("search_context", project_id=id, query="prices")
        assert "rise in May" in str(found)
        assert "words only" in found["message"]
        assert "Remove embedding_model from the settings" in found["message"]


def _fail_with(error: Exception, cortex: Cortex, monkeypatch: pytest.MonkeyPatch) -> None:
    def fail(*_: object, **__: object) -> object:
        raise error

    for name in ("initialize", "create_branch", "append", "verify", "resume", "search", "load", "graph", "link"):
        monkeypatch.setattr(cortex.contexts, name, fail)
    for name in ("suggest", "accept", "reject", "automation"):
        monkeypatch.setattr(cortex.suggestions, name, fail)


PROJECT = {"project_id": "0123456789ab"}
# Calls of each tool that fit its schema.
CALLS: dict[str, dict[str, Any]] = {
    "initialize_context": {"project_path": "/"},
    "create_branch": {**PROJECT, "branch_topic": "Prices"},
    "update_memory": {**PROJECT, "branch_id": "prices", "content": "They rise", "role": "user"},
    "verify_response": {**PROJECT, "response_text": "They rise"},
    "get_active_summary": {**PROJECT, "branch_id": "prices"},
    "search_context": {**PROJECT, "query": "prices"},
    "load_context": {**PROJECT, "branch_id": "prices", "context_id": "0" * 40},
    "suggest_contexts": {**PROJECT, "current_context": "prices"},
    "accept_suggestions": {**PROJECT, "session_id": "suggestion_session_0", "context_ids": ["0" * 40]},
    "reject_suggestions": {**PROJECT, "session_id": "suggestion_session_0", "reason": "They fell"},
    "get_automation_status": PROJECT,
    "get_context_graph_info": PROJECT,
    "link_git_branch": {**PROJECT, "cortex_branch_id": "prices", "git_branch_name": "main"},
}


def test_every_tool_is_made_to_fail() -> None:
    assert CALLS.keys() == {spec.name for spec in family_tools("context")}


# All tools on one server: making one costs more than all the calls.
def test_an_unforeseen_error_is_told_without_its_words(
    cortex: Cortex, mode: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    _fail_with(RuntimeError(LEAK), cortex, monkeypatch)
    with connected(build_server(cortex), mode) as caller:
        told = {tool: caller.failed(tool, **arguments) for tool, arguments in CALLS.items()}
        assert caller.call("subcog_namespaces")["namespaces"]
    for tool, one in told.items():
        _is_told(one, "")
        assert "hunter2" not in str(one), tool
        assert "log" in one["error"], tool


def test_an_error_of_the_store_is_told_in_full(cortex: Cortex, mode: str, monkeypatch: pytest.MonkeyPatch) -> None:
    _fail_with(StoreBusy("Another process writes.", remedy="Try again."), cortex, monkeypatch)
    with connected(build_server(cortex), mode) as caller:
        told = {tool: caller.failed(tool, **arguments) for tool, arguments in CALLS.items()}
    refusal = {
        "success": False,
        "error": "Another process writes.",
        "error_code": "STORAGE_ERROR",
        "details": "StoreBusy. Try again.",
    }
    assert told == dict.fromkeys(CALLS, refusal)
