"""The context tools as a client uses them: a project opened, lines of work begun, saved to, resumed and searched."""

from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import ExitStack
from pathlib import Path
from typing import Any

import pytest

from cortex_py import Cortex
from cortex_py.core.embedding.backends.backend import Backend
from cortex_py.surfaces.mcp.registry import TOOLS, family_tools
from cortex_py.surfaces.mcp.server import build_server

from clients import MODES, TRANSPORTS, Caller, connected, served, stdio_transport
from helpers import git
from servers import http_server
from stub_backend import StubBackend

AWKWARD = "# Plan\r\n\r\n---\ntitle: x\n---\n  two  spaces \n\tand a tab, Zoë 東京 🐘, <!-- entry -->\x00\n\n\n"


@pytest.fixture
def caller(shop: Path, cortex: Cortex, mode: str) -> Iterator[Caller]:
    """A client of a server in the shop, over the real model, on a clock that stands still."""
    with connected(build_server(cortex), mode) as connection:
        yield connection


@pytest.fixture
def shop(project: Path) -> Path:
    git(project, "init", "-q", "-b", "main")
    (project / "README.md").write_text("# Shop\n\nThe warehouse of spare parts has three floors.\n", "utf-8")
    (project / "prices.py").write_text("def gross(net: float) -> float:\n    return net * 1.19\n", "utf-8")
    git(project, "add", ".")
    git(project, "commit", "-q", "-m", "begin")
    git(project, "branch", "feature/prices")
    return project


class Work:
    """A project in a client's hands: the same calls with less to write."""

    def __init__(self, caller: Caller, project: Path, mode: str = "none") -> None:
        self._caller = caller
        self.opened = caller.call("initialize_context", project_path=str(project), mode=mode)
        self.id = self.opened["project_id"]

    def call(self, tool: str, **arguments: Any) -> dict[str, Any]:
        return self._caller.call(tool, project_id=self.id, **arguments)

    def failed(self, tool: str, **arguments: Any) -> str:
        code: str = self._caller.failed(tool, project_id=self.id, **arguments)["error_code"]
        return code

    def branch(self, topic: str, **more: str) -> str:
        id: str = self.call("create_branch", branch_topic=topic, **more)["branch_id"]
        return id

    def say(self, branch: str, content: str, role: str = "user") -> dict[str, Any]:
        return self.call("update_memory", branch_id=branch, content=content, role=role)

    def found(self, query: str, **more: Any) -> list[dict[str, Any]]:
        results: list[dict[str, Any]] = self.call("search_context", query=query, **more)["results"]
        return results


# Each transport and each protocol once; the published examples are replayed in all four.
@pytest.mark.slow
@pytest.mark.parametrize(("transport", "mode"), list(zip(TRANSPORTS, MODES, strict=True)))
def test_what_is_said_comes_back_byte_for_byte(home: Path, shop: Path, transport: str, mode: str) -> None:
    with served(transport, mode, home, shop) as caller:
        work = Work(caller, shop, "light")
        assert work.opened["files_scanned"] == 1
        branch = work.branch("Plan of the warehouse")
        work.say(branch, AWKWARD)
        work.say(branch, "The lift was repaired on Monday.", "assistant")
        summary = work.call("get_active_summary", branch_id=branch)
        assert (summary["message_count"], summary["branch_topic"]) == (2, "Plan of the warehouse")
        assert "lift was repaired" in summary["summary"]
        assert AWKWARD in summary["content"]
        (found,) = [one for one in work.found("Zoë 東京 plan", min_score=0.0) if one["content"] == AWKWARD]
        loaded = work.call("load_context", branch_id=branch, context_id=found["context_id"])
        assert loaded["content"] == AWKWARD
        assert loaded["metadata"]["size_bytes"] == len(AWKWARD.encode())
        assert loaded["metadata"]["compressed"] is False
    assert "The lift was repaired" in (home / "memory" / work.id / f"{branch}.md").read_text("utf-8")


def test_scanned_files_are_found_and_loaded(caller: Caller, shop: Path) -> None:
    work = Work(caller, shop, "full")
    best = work.found("how many floors has the warehouse", min_score=0.0)[0]
    assert (best["branch_id"], best["branch_topic"]) == ("", "")
    assert best["metadata"]["source"].startswith("README.md:1-")
    assert "three floors" in work.call("load_context", branch_id="", context_id=best["context_id"])["content"]
    assert work.found("gross", min_score=0.0)[0]["metadata"]["source"].startswith("prices.py:")


def test_a_repeated_scan_reads_only_what_changed(caller: Caller, shop: Path) -> None:
    first = Work(caller, shop, "full").opened
    again = Work(caller, shop, "full").opened
    (shop / "prices.py").write_text("def gross(net: float) -> float:\n    return net * 1.07\n", "utf-8")
    changed = Work(caller, shop, "full").opened
    assert (first["files_scanned"], first["contexts_created"] > 0) == (2, True)
    assert (again["files_scanned"], again["contexts_created"]) == (2, 0)
    assert "0 of 2 files were new or changed" in again["message"]
    assert "1 of 2 files were new or changed" in changed["message"]
    assert Work(caller, shop, "none").opened["files_scanned"] == 0


def test_a_child_grows_from_its_parent(caller: Caller, shop: Path) -> None:
    work = Work(caller, shop)
    parent = work.branch("Prices")
    child = work.branch("Prices for friends", parent_branch=parent)
    work.call("link_git_branch", cortex_branch_id=child, git_branch_name="main")
    grandchild = work.branch("Prices for old friends", parent_branch="active")
    edges = work.call("get_context_graph_info")["edges"]
    assert {(edge["from"], edge["to"], edge["type"]) for edge in edges} == {
        (child, parent, "child_of"),
        (grandchild, child, "child_of"),
    }


def test_one_topic_twice_in_a_second_makes_two_branches(caller: Caller, shop: Path) -> None:
    work = Work(caller, shop)
    first, second = work.branch("Größe/Preis"), work.branch("Größe/Preis")
    assert (first, second) == ("grosse_preis_20260102_123456", "grosse_preis_20260102_123456_2")
    assert work.call("get_active_summary", branch_id=second)["branch_topic"] == "Größe/Preis"


def test_a_captured_memory_is_found_as_a_context(caller: Caller, shop: Path) -> None:
    work = Work(caller, shop)
    stored = caller.call("subcog_capture", content="Invoices are printed on green paper", namespace="decisions")
    (found,) = work.found("what colour is the paper of invoices")
    assert found["context_id"] == f"context_{stored['id']}"
    loaded = work.call("load_context", branch_id="", context_id=found["context_id"])
    assert loaded["content"] == "Invoices are printed on green paper"


def test_a_turn_is_found_as_a_memory_by_its_branch_and_its_category(caller: Caller, shop: Path) -> None:
    work = Work(caller, shop)
    branch, other = work.branch("Printing of invoices"), work.branch("Something else")
    content = "Fixed the crash of the printer when the paper tray is empty"
    category = work.say(branch, content, "assistant")["ontology_category"]

    def recalled(filter: str) -> list[str]:
        results = caller.call("subcog_recall", query="printer crash", filter=filter, detail="everything")["results"]
        return [one["content"] for one in results]

    assert recalled(f"branch:{branch}") == [content]
    assert recalled('branch:"Printing of invoices"') == [content]
    assert recalled(f"category:{category} role:assistant") == [content]
    assert recalled(f"branch:{other}") == recalled(f"-category:{category}") == recalled("role:user") == []
    assert [one["content"] for one in work.found("printer crash", filter_category=category)] == [content]
    assert work.found("printer crash", filter_category="documentation") == []


def test_a_deleted_memory_is_no_context_any_more(caller: Caller, shop: Path) -> None:
    work = Work(caller, shop)
    branch = work.branch("Printing")
    work.say(branch, "Invoices are printed on green paper")
    (found,) = work.found("green paper")
    caller.call("subcog_delete", memory_id=found["context_id"])
    assert work.found("green paper", min_score=0.0) == []
    assert work.failed("load_context", branch_id=branch, context_id=found["context_id"]) == "CONTEXT_NOT_FOUND"
    assert work.call("get_active_summary", branch_id=branch)["message_count"] == 0
    assert [node["type"] for node in work.call("get_context_graph_info")["nodes"]] == ["branch"]


def test_a_context_is_loaded_by_every_spelling_of_its_id(caller: Caller, shop: Path) -> None:
    work = Work(caller, shop)
    branch = work.branch("Printing")
    work.say(branch, "Invoices are printed on green paper")
    (found,) = work.found("green paper")
    id = found["context_id"].removeprefix("context_")
    namespace = caller.call("subcog_get", memory_id=id)["namespace"]
    for spelling in (
        id,
        id.upper(),
        id[:8],
        id[:20],
        f"context_{id}",
        f"context_{id[:8]}",
        f"subcog://memory/{id}",
        f"subcog://project/{namespace}/{id}",
        f" {id}\n",
    ):
        assert work.call("load_context", branch_id=branch, context_id=spelling)["context_id"] == f"context_{id}"


def test_the_active_branch_follows_the_checkout(caller: Caller, shop: Path) -> None:
    work = Work(caller, shop)
    assert work.failed("get_active_summary", branch_id="active") == "BRANCH_NOT_FOUND"
    trunk, prices = work.branch("Trunk"), work.branch("Prices")
    work.call("link_git_branch", cortex_branch_id=trunk, git_branch_name="main")
    work.call("link_git_branch", cortex_branch_id=prices, git_branch_name="feature/prices")
    for branch, git_branch in ((prices, "feature/prices"), (trunk, "main"), (prices, "feature/prices")):
        git(shop, "checkout", "-q", git_branch)
        work.say("active", f"Said on {git_branch}")
        assert work.call("get_active_summary", branch_id="active") == work.call("get_active_summary", branch_id=branch)
    assert work.call("get_active_summary", branch_id=prices)["message_count"] == 2
    assert work.call("get_active_summary", branch_id=trunk)["message_count"] == 1
    git(shop, "checkout", "-q", "--detach")
    assert work.failed("update_memory", branch_id="active", content="x", role="user") == "BRANCH_NOT_FOUND"


def test_a_link_goes_to_the_last_who_asked(caller: Caller, shop: Path) -> None:
    work = Work(caller, shop)
    first, second = work.branch("First"), work.branch("Second")
    work.call("link_git_branch", cortex_branch_id=first, git_branch_name="main")
    told = work.call("link_git_branch", cortex_branch_id=second, git_branch_name="main")
    assert first in told["message"]
    assert work.call("get_active_summary", branch_id="active")["branch_topic"] == "Second"
    absent = work.call("link_git_branch", cortex_branch_id=first, git_branch_name="not/yet")
    assert "no such git branch yet" in absent["message"]


def test_a_project_is_named_from_anywhere(caller: Caller, shop: Path, tmp_path: Path) -> None:
    """A server that stands in one project serves all of its store."""
    other = tmp_path / "other"
    other.mkdir()
    work, theirs = Work(caller, shop), Work(caller, other)
    branch = theirs.branch("Elsewhere")
    theirs.say(branch, "The other warehouse has nine floors")
    assert [one["content"] for one in theirs.found("floors")] == ["The other warehouse has nine floors"]
    assert work.found("floors", min_score=0.0) == []
    assert work.failed("get_active_summary", branch_id=branch) == "BRANCH_NOT_FOUND"


def test_results_are_as_many_and_as_good_as_asked_for(caller: Caller, shop: Path) -> None:
    work = Work(caller, shop)
    branch = work.branch("Floors")
    for number in range(6):
        work.say(branch, f"Floor {number} of the warehouse stores pallets")
    assert len(work.found("floor of the warehouse", top_k=4)) == 4
    some = work.call("search_context", query="floor of the warehouse", top_k=2, min_score=0.0)
    assert (len(some["results"]), some["total_results"]) == (2, 6)
    assert some["message"] == "2 of 6 contexts shown"
    scores = [one["score"] for one in work.found("floor of the warehouse")]
    assert scores == sorted(scores, reverse=True)
    assert scores[-1] >= 0.3
    assert work.found("zebra crossing in Lisbon", min_score=0.9) == []


@pytest.mark.slow
def test_an_answer_keeps_within_its_budget(caller: Caller, shop: Path, model: Backend) -> None:
    work = Work(caller, shop)
    branch = work.branch("Floors")
    for number in range(30):
        work.say(branch, f"We decided that floor {number} of the warehouse stores pallets. " + "It is dry there. " * 20)
    for budget in (1, 30, 200, 1000):
        told = work.call("get_active_summary", branch_id=branch, max_tokens=budget)
        assert model.count_tokens(told["summary"]) + model.count_tokens(told["content"]) <= budget + 4
        found = work.found("which floor stores pallets", min_score=0.0, max_tokens=budget)
        assert sum(model.count_tokens(one["content"]) for one in found) <= budget
    assert len(work.found("which floor stores pallets", min_score=0.0, max_tokens=1000)) > 1


@pytest.mark.slow
@pytest.mark.parametrize("mode", ["legacy"])
def test_two_clients_of_one_server_lose_nothing(home: Path, shop: Path, mode: str) -> None:
    with http_server(home, shop) as server, ExitStack() as stack:
        clients = [stack.enter_context(connected(server.mcp, mode)) for _ in range(2)]
        _both_write(clients, home, shop)


@pytest.mark.slow
@pytest.mark.parametrize("mode", ["auto"])
def test_two_servers_of_one_home_lose_nothing(home: Path, shop: Path, mode: str) -> None:
    with ExitStack() as stack:
        clients = [stack.enter_context(connected(stdio_transport(home, shop), mode)) for _ in range(2)]
        _both_write(clients, home, shop)


def _both_write(clients: list[Caller], home: Path, project: Path) -> None:
    works = [Work(client, project) for client in clients]
    branch = works[0].branch("Together")
    said = [[f"Client {number} says {turn}" for turn in range(8)] for number in range(2)]
    with ThreadPoolExecutor(2) as pool:
        list(pool.map(lambda one: [one[0].say(branch, text) for text in one[1]], zip(works, said, strict=True)))
    for work in works:
        assert work.call("get_active_summary", branch_id=branch)["message_count"] == 16
        found = {one["content"] for one in work.found("Client says", top_k=50, min_score=0.0)}
        assert found == {text for texts in said for text in texts}
    text = (home / "memory" / works[0].id / f"{branch}.md").read_text("utf-8")
    assert all(one in text for texts in said for one in texts)


@pytest.mark.parametrize("mode", ["auto"])
def test_a_server_that_only_reads_lists_only_what_reads(home: Path, shop: Path, mode: str) -> None:
    with Cortex.open(home, project=shop, backend=StubBackend()) as writer:
        id, branch = writer.contexts.project.id, writer.contexts.create_branch("Prices").id
    with connected(stdio_transport(home, shop, "--read-only"), mode) as caller:
        listed = [tool.name for tool in caller.portal.call(caller.client.list_tools)]
        assert listed == [spec.name for spec in TOOLS if spec.read_only]
        assert caller.call("get_active_summary", project_id=id, branch_id=branch)["message_count"] == 0
        for spec in family_tools("context"):
            if not spec.read_only:
                assert caller.refused(spec.name).code == -32601


def test_a_toolset_of_contexts_lists_only_them(home: Path, shop: Path, mode: str) -> None:
    with connected(stdio_transport(home, shop, "--toolsets", "context"), mode) as caller:
        listed = [tool.name for tool in caller.portal.call(caller.client.list_tools)]
    assert listed == [spec.name for spec in family_tools("context")]


def test_what_only_reads_writes_nothing(stubbed: Cortex, project: Path, home: Path, mode: str) -> None:
    with connected(build_server(stubbed), mode) as caller:
        work = Work(caller, project)
        branch = work.branch("Prices")
        work.say(branch, "They rise")
        (found,) = work.found("rise", min_score=0.0)
        before = (stubbed.memories.revision(), sorted(home.joinpath("memory").rglob("*")))
        work.call("get_active_summary", branch_id=branch)
        work.found("rise")
        work.call("load_context", branch_id=branch, context_id=found["context_id"])
        work.call("get_context_graph_info", branch_id=branch)
        assert (stubbed.memories.revision(), sorted(home.joinpath("memory").rglob("*"))) == before
