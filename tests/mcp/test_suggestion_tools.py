"""The suggestion tools through a real client: what they answer, what is refused, and what plan B shows."""

from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from jsonschema import Draft202012Validator

from cortex_py import Cortex
from cortex_py.surfaces.mcp.server import build_server

from clients import CURRENT, MODES, Caller, connected, served
from helpers import FakeClock, git
from stub_backend import StubBackend

TASK = "Fix the ledger rounding"
TOOLS = ("suggest_contexts", "accept_suggestions", "reject_suggestions", "get_automation_status")


class Desk:
    """A client with a project in its hands; each answer is held against what the tool promised."""

    def __init__(self, caller: Caller, cortex: Cortex) -> None:
        self.caller = caller
        self.cortex = cortex
        self.project = cortex.project.id
        listed = caller.portal.call(caller.client.list_tools)
        self._schemas = {tool.name: tool.output_schema for tool in listed}

    def call(self, tool: str, **arguments: Any) -> dict[str, Any]:
        answer = self.caller.call(tool, project_id=self.project, **arguments)
        Draft202012Validator(self._schemas[tool]).validate(answer)
        return answer

    def suggest(self, task: str = TASK, **arguments: Any) -> dict[str, Any]:
        return self.call("suggest_contexts", current_context=task, **arguments)

    def failed(self, tool: str, **arguments: Any) -> str:
        told = self.caller.failed(tool, **{"project_id": self.project} | arguments)
        assert told.keys() == {"success", "error", "error_code", "details"}
        return str(told["error_code"])


NOTES = (
    "We use PostgreSQL 15 for the orders service.",
    "Retry failed webhooks three times with backoff.",
    "Deploys happen on Tuesdays after the standup.",
    "Redis caches sessions for 30 minutes.",
    "The staging database is restored every Sunday.",
    "Invoices are rounded to two decimals.",
)


@pytest.fixture(params=[CURRENT])
def desk(request: pytest.FixtureRequest, home: Path, project: Path, clock: FakeClock) -> Iterator[Desk]:
    with (
        Cortex.open(home, project=project, clock=clock, backend=StubBackend()) as cortex,
        connected(build_server(cortex), request.param) as caller,
    ):
        cortex.memories.capture("The ledger rounding is half to even")
        cortex.memories.capture("Auditors want every change explained in writing")
        yield Desk(caller, cortex)


def test_suggestions_are_answered_and_the_next_ones_know(desk: Desk) -> None:
    first = desk.suggest(top_k=1)
    (one,) = first["suggestions"]
    assert (one["branch_id"], one["branch_topic"], one["source"]) == ("", "", "ai_analysis")
    assert one["reason"].startswith("Fits the task (")
    assert first["message"] == "1 relevant context suggested"
    assert (first["total_suggestions"], first["requires_confirmation"], "pending" in first) == (1, False, False)
    told = desk.call("reject_suggestions", session_id=first["session_id"], reason="That is outdated")
    assert told == {
        "success": True,
        "message": "Feedback recorded (outdated); such tasks will not get these suggestions again",
    }
    assert one["context_id"] not in {found["context_id"] for found in desk.suggest()["suggestions"]}
    second = desk.suggest("Fix the ledger totals", top_k=1)
    lowered = {found["context_id"]: found["confidence"] for found in second["suggestions"]}
    assert lowered.get(one["context_id"], 0.0) < one["confidence"]
    told = desk.call(
        "accept_suggestions", session_id=second["session_id"], context_ids=[second["suggestions"][0]["context_id"]]
    )
    assert (told["accepted_count"], told["message"].startswith("Feedback recorded: 1 taken")) == (1, True)
    plan = desk.call("get_automation_status")
    assert (plan["current_plan"], plan["acceptance_rate"], plan["rejection_rate"]) == ("A", 0.5, 0.5)
    assert plan["feedback_count"] == 2
    assert {"requires_confirmation", "held", "pending"} & plan.keys() == set()


def test_before_any_answer_the_status_is_plan_a(desk: Desk) -> None:
    plan = desk.call("get_automation_status")
    assert plan.pop("message").startswith("Plan A: Cortex acts by itself. Nothing is known yet")
    assert plan == {
        "success": True,
        "current_plan": "A",
        "acceptance_rate": 0.0,
        "rejection_rate": 0.0,
        "feedback_count": 0,
    }


def test_what_waits_for_an_answer_is_shown(desk: Desk) -> None:
    first = desk.suggest()
    second = desk.suggest("Test the ledger rounding")
    (waiting,) = second["pending"]
    assert (waiting["session_id"], waiting["task"]) == (first["session_id"], TASK)
    assert waiting["suggestions"] == first["total_suggestions"]
    assert waiting["expires_at"] == "2026-01-02T13:04:56Z"
    shown = [one["session_id"] for one in desk.call("get_automation_status")["pending"]]
    assert set(shown) == {first["session_id"], second["session_id"]}


def test_where_nothing_fits_nothing_is_to_be_answered(home: Path, project: Path) -> None:
    with (
        Cortex.open(home, project=project, backend=StubBackend()) as cortex,
        connected(build_server(cortex), "auto") as caller,
    ):
        desk = Desk(caller, cortex)
        told = desk.suggest()
        assert (told["suggestions"], told["total_suggestions"]) == ([], 0)
        assert told["message"].startswith("0 relevant contexts suggested: nothing fits this task yet")
        answer = desk.call("reject_suggestions", session_id=told["session_id"], reason="x")
        assert answer == {"success": True, "message": "Session closed; nothing was suggested"}


def test_every_refusal_has_its_code_and_changes_nothing(desk: Desk, clock: FakeClock) -> None:
    told = desk.suggest(top_k=1)
    session, context = told["session_id"], told["suggestions"][0]["context_id"]
    other = desk.cortex.memories.capture("Written after the question").id
    for ids in ([], ["../../x"], ["context_" + "0" * 40], [context, other], [""]):
        assert desk.failed("accept_suggestions", session_id=session, context_ids=ids) == "INVALID_PARAMS"
    for ids in (None, "all", [1], {}):
        assert desk.failed("accept_suggestions", session_id=session, context_ids=ids) == "INVALID_PARAMS"
    assert desk.failed("reject_suggestions", session_id=session, reason="  ") == "INVALID_PARAMS"
    for given in ({"current_context": ""}, {"current_context": "x" * 10_001}):
        assert desk.failed("suggest_contexts", **given) == "INVALID_PARAMS"
    for top_k in (0, 51, -1, "five"):
        assert desk.failed("suggest_contexts", current_context=TASK, top_k=top_k) == "INVALID_PARAMS"
    for unknown in ("suggestion_session_000000000000", "../../x", ""):
        assert desk.failed("accept_suggestions", session_id=unknown, context_ids=[context]) == "SESSION_NOT_FOUND"
        assert desk.failed("reject_suggestions", session_id=unknown, reason="no") == "SESSION_NOT_FOUND"
    (waiting,) = desk.call("get_automation_status")["pending"]
    assert waiting["session_id"] == session
    assert desk.call("accept_suggestions", session_id=session, context_ids=[context])["accepted_count"] == 1
    late = desk.suggest()["session_id"]
    clock.advance(minutes=30)
    for closed in (session, late):
        assert desk.failed("accept_suggestions", session_id=closed, context_ids=[context]) == "SESSION_CLOSED"
        assert desk.failed("reject_suggestions", session_id=closed, reason="no") == "SESSION_CLOSED"
    assert desk.call("get_automation_status")["feedback_count"] == 1


@pytest.mark.parametrize("mode", MODES)
def test_plan_b_asks_first_and_says_so(home: Path, project: Path, mode: str) -> None:
    git(project, "init", "-q", "-b", "main")
    git(project, "commit", "-q", "--allow-empty", "-m", "begin")
    settings = {"automation": "B", "branch_memories": "stage"}
    with (
        Cortex.open(home, project=project, backend=StubBackend(), **settings) as cortex,
        connected(build_server(cortex), mode) as caller,
    ):
        desk = Desk(caller, cortex)
        cortex.memories.capture("The ledger rounding is half to even")
        git(project, "checkout", "-q", "-b", "feature")
        git(project, "commit", "-q", "--allow-empty", "-m", "work")
        cortex.memories.capture("The ledger rounding of the feature")
        git(project, "checkout", "-q", "main")
        git(project, "merge", "-q", "--no-ff", "feature")
        told = desk.suggest()
        assert told["requires_confirmation"] is True
        assert told["message"].endswith("; ask the user before loading them")
        plan = desk.call("get_automation_status")
        assert (plan["current_plan"], plan["feedback_count"], plan["held"]) == ("B", 0, {"feature": "merged"})
        assert plan["requires_confirmation"] == ["suggest", "branch", "promote", "consolidate"]
        cortex.suggestions.confirm()
        assert "held" not in desk.call("get_automation_status")


def test_a_read_only_server_tells_the_plan_and_takes_no_answers(home: Path, project: Path) -> None:
    with served("stdio", "auto", home, project, "--read-only") as caller:
        names = {tool.name for tool in caller.portal.call(caller.client.list_tools)}
        assert names & set(TOOLS) == {"get_automation_status"}
        for tool in set(TOOLS) - names:
            assert caller.refused(tool).code == -32601


@pytest.mark.slow
def test_two_servers_share_sessions(home: Path, project: Path, tmp_path: Path) -> None:
    """With real processes and the real model: one suggests, the other is told the answer."""
    note = {"content": "Permissions are checked in `guards.py` by the user's group", "namespace": "decisions"}
    with served("stdio", "auto", home, project) as first, served("http", "legacy", home, project) as second:
        project_id = first.call("initialize_context", project_path=str(project), mode="none")["project_id"]
        first.call("subcog_capture", **note)
        told = first.call("suggest_contexts", project_id=project_id, current_context="Adding role-based access control")
        answer = {"project_id": project_id, "session_id": told["session_id"]}
        ids = [one["context_id"] for one in told["suggestions"]]
        assert second.call("accept_suggestions", **answer, context_ids=ids)["accepted_count"] == len(ids) == 1
        assert first.failed("reject_suggestions", **answer, reason="no")["error_code"] == "SESSION_CLOSED"
        assert first.call("get_automation_status", project_id=project_id)["feedback_count"] == 1


@pytest.mark.parametrize("task", ["Bake sourdough bread for the party", "Translate a Finnish poem"])
def test_nothing_is_offered_where_nothing_fits(home: Path, project: Path, task: str) -> None:
    with Cortex.open(home, project=project) as cortex, connected(build_server(cortex), CURRENT) as caller:
        for note in NOTES:
            cortex.memories.capture(note)
        told = Desk(caller, cortex).suggest(task)
    assert told["suggestions"] == []
    assert told["message"].startswith("0 relevant contexts")


def test_what_is_offered_names_its_link_and_is_not_padded(home: Path, project: Path) -> None:
    with Cortex.open(home, project=project) as cortex, connected(build_server(cortex), CURRENT) as caller:
        for note in NOTES:
            cortex.memories.capture(note)
        told = Desk(caller, cortex).suggest("Change how often webhooks are retried")
    one, *others = told["suggestions"]
    assert "“webhooks”" in one["reason"]
    assert others == []  # those that have nothing to do with it are left out
