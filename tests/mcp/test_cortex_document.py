"""The published document of the context tools, replayed: every example, over both transports, in both protocols."""

import json
import re
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pytest

from cortex_py.core.memory.labels.ontology import CATEGORY_NAMES
from cortex_py.surfaces.mcp.registry import family_tools
from documented_shapes import differences

from clients import MODES, TRANSPORTS, Caller, served
from helpers import git

ISO = re.compile(r"\d{4}-\d\d-\d\dT\d\d:\d\d:\d\dZ")


@dataclass(frozen=True)
class Documented:
    """A tool: type and default of its parameters, the call of the example, and the answer shown."""

    parameters: Mapping[str, Mapping[str, Any]]
    call: Mapping[str, Any]
    answer: Mapping[str, Any]


# In the order of a session. A parameter without a default is required.
DOCUMENT = {
    tool: Documented(**shown)
    for tool, shown in json.loads(Path(__file__).with_name("cortex_document.json").read_text("utf-8")).items()
}
# What the project knows about the task of the document's example.
ROLES = ("Roles decide access: an admin may delete users", "Access control is by role, checked in `guards.py`")
AUTH = '''"""JWT authentication."""


def issue_refresh_token(user: str) -> dict[str, str]:
    """A refresh token, for which a new JWT is given."""
    return {"sub": user, "kind": "refresh"}
'''
FAILURE = {"success": False, "error": "Error message", "error_code": "ERROR_CODE", "details": "Detailed information"}


@pytest.fixture
def shop(project: Path) -> Path:
    """A repository with the git branch and the work of the document's examples."""
    git(project, "init", "-q", "-b", "main")
    (project / "README.md").write_text("# Shop\n\nSells parts to people who have signed in.\n", "utf-8")
    (project / "main.py").write_text('"""The shop\'s entry point."""\n\nprint("open")\n', "utf-8")
    git(project, "add", ".")
    git(project, "commit", "-q", "-m", "begin")
    (project / "auth.py").write_text(AUTH, "utf-8")
    git(project, "add", ".")
    git(project, "commit", "-q", "-m", "Add JWT authentication with refresh tokens")
    git(project, "branch", "feature/authentication")
    return project


def _replayed(caller: Caller, project: Path) -> dict[str, dict[str, Any]]:
    """The answers to the document's calls, with our ids, and the category that was told, in the place of its own."""
    answers: dict[str, dict[str, Any]] = {}
    known: dict[str, Any] = {"project_path": str(project)}
    for tool, documented in DOCUMENT.items():
        if tool == "suggest_contexts":
            for role in ROLES:
                caller.call("update_memory", **_picked(known), content=role, role="user")
        elif tool == "reject_suggestions":
            # Those of the example were accepted.
            again = caller.call("suggest_contexts", **DOCUMENT["suggest_contexts"].call | _picked(known, "project_id"))
            known["session_id"] = again["session_id"]
        answers[tool] = caller.call(tool, **{name: known.get(name, given) for name, given in documented.call.items()})
        known |= {"session_id": answers[tool]["session_id"]} if "session_id" in answers[tool] else {}
        known["context_ids"] = [one["context_id"] for one in answers.get("suggest_contexts", {}).get("suggestions", [])]
        known |= {name: answers[tool][name] for name in ("project_id", "branch_id") if name in answers[tool]}
        known["cortex_branch_id"] = known.get("branch_id")
        known["filter_category"] = answers.get("update_memory", {}).get("ontology_category")
        for result in answers[tool].get("results", []):
            known["context_id"] = result["context_id"]
    return answers


def _picked(known: Mapping[str, Any], *names: str) -> dict[str, Any]:
    return {name: known[name] for name in names or ("project_id", "branch_id")}


@pytest.mark.parametrize("transport", TRANSPORTS)
@pytest.mark.parametrize("mode", MODES)
def test_the_document_holds(home: Path, shop: Path, transport: str, mode: str) -> None:
    with served(transport, mode, home, shop) as caller:
        answers = _replayed(caller, shop)
    found = {tool: differences(documented.answer, answers[tool]) for tool, documented in DOCUMENT.items()}
    assert {tool: faults for tool, faults in found.items() if faults} == {}
    assert all(isinstance(answer["message"], str) for answer in answers.values())
    _hold_the_documented_forms(answers, home, shop)


def _hold_the_documented_forms(answers: Mapping[str, dict[str, Any]], home: Path, project: Path) -> None:
    opened, branch, saved = answers["initialize_context"], answers["create_branch"], answers["update_memory"]
    assert re.fullmatch(r"[0-9a-f]{12}", opened["project_id"])
    assert (opened["mode"], opened["files_scanned"], opened["contexts_created"]) == ("light", 2, 2)
    assert opened["message"].startswith("Project initialized successfully")
    assert re.fullmatch(r"user_authentication_implementation_\d{8}_\d{6}", branch["branch_id"])
    assert branch["branch_path"] == str(home / "memory" / opened["project_id"] / f"{branch['branch_id']}.md")
    assert branch["message"] == "Branch 'user_authentication_implementation' created and verified"
    assert branch["verified"] is True
    assert re.fullmatch(r"task_\d{8}_\d{6}_[0-9a-f]+", saved["task_id"])
    assert saved["ontology_category"] in CATEGORY_NAMES
    assert saved["indexed"] is True
    assert saved["hallucination_status"] == _status(saved["grounding_score"])
    assert saved["message"].startswith("Memory updated and verified")
    _holds_as_documented(answers["verify_response"])
    summary = answers["get_active_summary"]
    assert (summary["branch_topic"], summary["message_count"], summary["status"]) == (
        "User Authentication Implementation",
        1,
        "active",
    )
    assert "JWT" in summary["summary"]
    assert "Implemented JWT authentication with refresh tokens" in summary["content"]
    (result,) = answers["search_context"]["results"]
    loaded = answers["load_context"]
    assert re.fullmatch(r"context_[0-9a-f]{40}", result["context_id"])
    assert (result["branch_id"], result["branch_topic"]) == (branch["branch_id"], summary["branch_topic"])
    assert 0.3 <= result["score"] <= 1
    assert (loaded["context_id"], loaded["content"]) == (result["context_id"], result["content"])
    assert loaded["metadata"]["size_bytes"] == len(loaded["content"])
    times = (summary["last_updated"], result["metadata"]["created_at"], loaded["metadata"]["created_at"])
    assert all(ISO.fullmatch(time) for time in times), times
    assert answers["link_git_branch"] == DOCUMENT["link_git_branch"].answer
    graph = answers["get_context_graph_info"]
    assert (graph["total_nodes"], graph["total_edges"]) == (len(graph["nodes"]), len(graph["edges"]))
    nodes = {(node["type"], node["id"]) for node in graph["nodes"]}
    assert nodes == {("context", result["context_id"]), ("branch", branch["branch_id"]), ("entity", "entity_jwt")}
    edges = {(edge["type"], edge["from"], edge["to"]) for edge in graph["edges"]}
    assert ("MentionedIn", "entity_jwt", result["context_id"]) in edges
    _suggests_as_documented(answers, branch["branch_id"])


def _suggests_as_documented(answers: Mapping[str, dict[str, Any]], branch: str) -> None:
    told, count = answers["suggest_contexts"], len(answers["suggest_contexts"]["suggestions"])
    assert re.fullmatch(r"suggestion_session_[0-9a-f]+", told["session_id"])
    assert count >= len(ROLES)
    assert told["total_suggestions"] == answers["accept_suggestions"]["accepted_count"] == count
    assert told["message"].startswith(f"{count} relevant contexts suggested")
    for one in told["suggestions"]:
        assert re.fullmatch(r"context_[0-9a-f]{40}", one["context_id"])
        # Parts of scanned files belong to no line of work.
        assert (one["branch_id"], one["branch_topic"]) in ((branch, "User Authentication Implementation"), ("", ""))
        assert one["source"] in ("reference_history", "ai_analysis", "user_selected")
        assert 0 < one["confidence"] <= 1
        assert one["reason"]
    for tool in ("accept_suggestions", "reject_suggestions"):
        assert answers[tool]["message"].startswith("Feedback recorded")
    plan = answers["get_automation_status"]
    assert (plan["current_plan"], plan["acceptance_rate"], plan["rejection_rate"]) == ("A", 0.5, 0.5)
    assert plan["feedback_count"] == 2
    assert plan["message"].startswith("Plan A")


def _holds_as_documented(told: Mapping[str, Any]) -> None:
    assert (told["status"], told["risk_level"], told["contradictions"]) == ("ACCEPT", "low", [])
    assert told["claims_extracted"] == told["claims_verified"] == len(told["evidence_items"]) == 1
    (item,) = told["evidence_items"]
    assert item["claim"] == DOCUMENT["verify_response"].call["response_text"]
    assert re.match(r"File: auth\.py( line \d+)?$|Commit [0-9a-f]{7} ", item["evidence"])
    assert item["verified"] is True
    assert 0.7 <= told["grounding_score"] <= 1
    assert 0 < told["fuzzy_confidence"] <= 1


def _status(score: float) -> str:
    """The documented thresholds."""
    return "ACCEPT" if score >= 0.7 else "WARN" if score >= 0.3 else "REJECT"


@pytest.mark.slow
@pytest.mark.parametrize("transport", TRANSPORTS)
@pytest.mark.parametrize("mode", MODES)
def test_the_documents_own_ids_are_refused_in_the_documented_form(
    home: Path, project: Path, transport: str, mode: str
) -> None:
    with served(transport, mode, home, project) as caller:
        for tool, documented in DOCUMENT.items():
            told = caller.failed(tool, **documented.call)
            assert differences(FAILURE, told) == []
            assert told.keys() == FAILURE.keys()
            code = "INVALID_PARAMS" if tool == "initialize_context" else "PROJECT_NOT_FOUND"
            assert (told["success"], told["error_code"]) == (False, code), tool


@pytest.mark.parametrize("mode", MODES)
def test_parameters_and_defaults_are_the_documented_ones(home: Path, project: Path, mode: str) -> None:
    with served("stdio", mode, home, project) as caller:
        listed = {tool.name: tool.input_schema for tool in caller.portal.call(caller.client.list_tools)}
    for tool, documented in DOCUMENT.items():
        schema = listed[tool]
        assert set(schema["required"]) == {name for name, one in documented.parameters.items() if "default" not in one}
        for name, parameter in documented.parameters.items():
            told = schema["properties"][name]
            assert (told["type"], told.get("default")) == (parameter["type"], parameter.get("default")), (tool, name)
        # What was added may be left out.
        assert schema["properties"].keys() - documented.parameters.keys() <= {"max_tokens"}
    assert listed["initialize_context"]["properties"]["mode"]["enum"] == ["full", "light", "none"]
    assert listed["verify_response"]["properties"]["evidence_sources"]["items"] == {"type": "string"}
    assert listed["accept_suggestions"]["properties"]["context_ids"]["items"] == {"type": "string"}
    assert listed["update_memory"]["properties"]["role"]["enum"] == ["user", "assistant"]


def test_every_documented_tool_is_served() -> None:
    # Those for snapshots and sync are replayed in test_backup_tools.py.
    assert set(DOCUMENT) == {spec.name for spec in family_tools("context")}
    assert len(DOCUMENT) + len(family_tools("backup")) == 18
