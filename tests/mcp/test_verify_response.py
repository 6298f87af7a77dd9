"""Answers checked against a project through a real client: what is told of each claim, and what turns are worth."""

from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from cortex_py import Cortex
from cortex_py.surfaces.mcp.server import build_server

from clients import CURRENT, MODES, Caller, connected, served
from helpers import git
from stub_backend import StubBackend

AUTH = '''"""JWT authentication."""

ACCESS_SECONDS = 900


def issue_refresh_token(user: str) -> dict[str, str]:
    """A refresh token, for which a new JWT is given."""
    return {"sub": user, "kind": "refresh"}


def is_still_valid(token: dict[str, float], now: float) -> bool:
    """Whether a JWT still holds."""
    return token["exp"] > now
'''
EXAMPLE = "I implemented JWT authentication with refresh tokens in auth.py"
MISSING = "I added the function `rotate_all_tokens` to auth.py."
REPORT = '<testsuite name="shop">{}</testsuite>'
PASSED = '<testcase name="a"/><testcase name="b"/>'
FAILED = '<testcase name="a"/><testcase name="b"><failure message="no"/></testcase>'

FIELDS = {
    "success": bool,
    "grounding_score": float,
    "status": str,
    "risk_level": str,
    "claims_extracted": int,
    "claims_verified": int,
    "evidence_items": list,
    "fuzzy_confidence": float,
    "contradictions": list,
    "message": str,
}
ITEM = {"claim": str, "evidence": str, "grounding": float, "verified": bool, "verdict": str}
AGAINST = dict.fromkeys(("claim", "against", "reason", "source"), str)


@pytest.fixture
def shop(project: Path) -> Path:
    git(project, "init", "-q", "-b", "main")
    (project / "README.md").write_text("# Shop\n\nSells parts to people who have signed in.\n", "utf-8")
    git(project, "add", ".")
    git(project, "commit", "-q", "-m", "begin")
    (project / "auth.py").write_text(AUTH, "utf-8")
    git(project, "add", ".")
    git(project, "commit", "-q", "-m", "Add JWT authentication with refresh tokens")
    return project


class Desk:
    """A client with a project in its hands."""

    def __init__(self, caller: Caller, project: str) -> None:
        self.caller = caller
        self.project = project

    def call(self, tool: str, **arguments: Any) -> dict[str, Any]:
        return self.caller.call(tool, project_id=self.project, **arguments)

    def verify(self, text: str, *sources: str) -> dict[str, Any]:
        given = {"evidence_sources": list(sources)} if sources else {}
        return self.call("verify_response", response_text=text, **given)

    def failed(self, **arguments: Any) -> dict[str, Any]:
        return self.caller.failed(
            "verify_response", **{"project_id": self.project, "response_text": EXAMPLE} | arguments
        )


@pytest.fixture
def desk(home: Path, shop: Path, request: pytest.FixtureRequest) -> Iterator[Desk]:
    """A client of one protocol unless a test asks for both: what is found does not depend on it."""
    with (
        Cortex.open(home, project=shop, backend=StubBackend()) as cortex,
        connected(build_server(cortex), getattr(request, "param", "auto")) as caller,
    ):
        yield Desk(caller, caller.call("initialize_context", project_path=str(shop), mode="none")["project_id"])


def _has_the_published_types(told: dict[str, Any]) -> None:
    """To the letter: no field but the published ones and those that were added, each of its type."""
    assert {name: type(value) for name, value in told.items() if name != "not_checked"} == FIELDS
    assert told["success"] is True
    assert told["status"] in ("ACCEPT", "WARN", "REJECT")
    assert told["risk_level"] in ("low", "medium", "high")
    for item in told["evidence_items"]:
        assert {name: type(value) for name, value in item.items()} == ITEM
        assert item["verified"] is (item["verdict"] == "supported")
        assert 0 <= item["grounding"] <= 1
    for one in told["contradictions"]:
        assert {name: type(value) for name, value in one.items()} == AGAINST
    assert told["claims_extracted"] == len(told["evidence_items"])
    assert told["claims_verified"] == sum(item["verified"] for item in told["evidence_items"])
    assert 0 <= told["grounding_score"] <= 1
    assert 0 <= told["fuzzy_confidence"] <= 1
    assert told["status"] == _status(told["grounding_score"])


def _status(score: float) -> str:
    """The published thresholds; what stands on one belongs to the better side."""
    return "ACCEPT" if score >= 0.7 else "WARN" if score >= 0.3 else "REJECT"


@pytest.mark.parametrize("desk", [CURRENT], indirect=True)
def test_what_the_project_has_is_accepted_with_the_place(desk: Desk) -> None:
    told = desk.verify(EXAMPLE, "auth.py", "git log")
    _has_the_published_types(told)
    assert (told["status"], told["risk_level"], told["contradictions"]) == ("ACCEPT", "low", [])
    (item,) = told["evidence_items"]
    assert item["claim"] == EXAMPLE
    assert item["evidence"].startswith(("Commit ", "File: auth.py"))
    assert "supported" in told["message"]


@pytest.mark.parametrize("desk", [CURRENT], indirect=True)
def test_a_symbol_that_is_not_there_is_a_contradiction(desk: Desk) -> None:
    told = desk.verify(MISSING)
    _has_the_published_types(told)
    assert (told["status"], told["risk_level"], told["claims_verified"]) == ("REJECT", "high", 0)
    (item,) = told["evidence_items"]
    assert (item["verdict"], item["verified"]) == ("contradicted", False)
    assert "rotate_all_tokens" in item["evidence"]
    (against,) = told["contradictions"]
    assert (against["claim"], against["against"]) == (MISSING, "no symbol `rotate_all_tokens` in auth.py")
    assert "rotate_all_tokens" in told["message"]


def test_one_invented_claim_among_true_ones_is_not_accepted(desk: Desk) -> None:
    true = "Added `issue_refresh_token` to auth.py. `ACCESS_SECONDS` is 900 in auth.py."
    assert desk.verify(true)["status"] == "ACCEPT"
    told = desk.verify(f"{true} {MISSING}")
    _has_the_published_types(told)
    assert (told["claims_extracted"], told["claims_verified"]) == (3, 2)
    assert told["status"] != "ACCEPT"
    assert [one["claim"] for one in told["contradictions"]] == [MISSING]


@pytest.mark.parametrize(
    ("said", "place"),
    [
        ("`issue_refresh_token` is defined in auth.py.", "File: auth.py line 6"),
        ("`ACCESS_SECONDS` is 900 in auth.py.", "File: auth.py line 3"),
    ],
)
def test_evidence_is_a_place_that_a_person_can_open(desk: Desk, said: str, place: str) -> None:
    (item,) = desk.verify(said)["evidence_items"]
    assert (item["evidence"], item["verified"]) == (place, True)


@pytest.mark.parametrize(
    "said",
    [
        "Added `issue_refresh_token` to README.md.",
        "Removed `issue_refresh_token` from auth.py.",
        "auth.py does not define `issue_refresh_token`.",
        "`ACCESS_SECONDS` is 600 in auth.py.",
        "`issue_refresh_token` is in login.py.",
    ],
)
def test_that_something_exists_is_not_all_that_counts(desk: Desk, said: str) -> None:
    told = desk.verify(said)
    assert (told["status"], told["claims_verified"]) == ("REJECT", 0)
    assert len(told["contradictions"]) == 1


def test_what_is_not_committed_counts_at_once(desk: Desk, shop: Path) -> None:
    assert desk.verify(MISSING)["status"] == "REJECT"
    (shop / "auth.py").write_text(f"{AUTH}\n\ndef rotate_all_tokens() -> None: ...\n", "utf-8")
    told = desk.verify(MISSING)
    assert (told["status"], told["claims_verified"]) == ("ACCEPT", 1)


def test_doubt_lowers_the_confidence_and_hides_no_claim(desk: Desk) -> None:
    for said in (MISSING, "I added `issue_refresh_token` to auth.py."):
        plain, doubting = desk.verify(said), desk.verify(said.replace("I added", "I probably added"))
        assert doubting["fuzzy_confidence"] < plain["fuzzy_confidence"]
        assert doubting["claims_extracted"] == plain["claims_extracted"] == 1
        assert doubting["status"] == plain["status"]
        assert abs(doubting["grounding_score"] - plain["grounding_score"]) < 0.05


def test_a_text_that_contradicts_itself_says_where(desk: Desk) -> None:
    told = desk.verify("The shop runs on PostgreSQL 15. The shop runs on PostgreSQL 16.")
    _has_the_published_types(told)
    (against,) = told["contradictions"]
    assert (against["claim"], against["against"]) == (
        "The shop runs on PostgreSQL 15.",
        "The shop runs on PostgreSQL 16.",
    )
    assert against["source"] == "text"
    assert told["status"] != "ACCEPT"


def test_a_memory_that_says_otherwise_is_named(desk: Desk) -> None:
    kept = desk.caller.call("subcog_capture", content="The shop runs on PostgreSQL 16.", namespace="decisions")["id"]
    (against,) = desk.verify("The shop runs on PostgreSQL 15.")["contradictions"]
    assert (against["against"], against["source"]) == ("The shop runs on PostgreSQL 16.", f"Memory: {kept}")
    assert desk.verify("The shop runs on PostgreSQL 15.", "auth.py")["contradictions"] == []


def test_what_tests_gave_needs_a_report(desk: Desk, shop: Path) -> None:
    told = desk.verify("All tests pass.")
    assert (told["status"], told["evidence_items"][0]["verdict"]) == ("WARN", "not checkable")
    (shop / "junit.xml").write_text(REPORT.format(PASSED), "utf-8")
    told = desk.verify("All tests pass.", "test report")
    assert (told["status"], told["evidence_items"][0]["verified"]) == ("ACCEPT", True)
    assert told["evidence_items"][0]["evidence"].startswith("Test report: junit.xml")
    (shop / "junit.xml").write_text(REPORT.format(FAILED), "utf-8")
    told = desk.verify("All tests pass.")
    assert (told["status"], len(told["contradictions"])) == ("REJECT", 1)
    assert "1 failed" in told["contradictions"][0]["against"]


def test_a_path_and_a_name_are_shown_as_they_are(desk: Desk) -> None:
    (path,) = desk.verify("auth.py contains 7 functions.")["evidence_items"]
    assert path["evidence"].startswith("auth.py defines ")
    (name,) = desk.verify("`kind` is a part of auth.py.")["evidence_items"]
    assert name["evidence"].count(" but ") <= 1


def test_sources_bound_what_counts(desk: Desk) -> None:
    said = "I added `issue_refresh_token` to auth.py."
    (item,) = desk.verify(said, "git log")["evidence_items"]
    assert item["evidence"].startswith("Commit ")
    (item,) = desk.verify(said, "*.py")["evidence_items"]
    # That it is there does not show that anybody added it.
    assert item["evidence"].startswith("Unverified: auth.py exists")
    (item,) = desk.verify("`issue_refresh_token` is defined in auth.py.", "*.py")["evidence_items"]
    assert item["evidence"].startswith("File: auth.py")
    told = desk.verify(said, "README.md")
    assert told["claims_verified"] == 0
    assert "Nothing matches the source 'no/such/*.txt'." in desk.verify(said, "auth.py", "no/such/*.txt")["message"]


@pytest.mark.parametrize("sources", [None, []])
def test_no_sources_are_all_sources(desk: Desk, sources: list[str] | None) -> None:
    assert desk.call("verify_response", response_text=EXAMPLE, evidence_sources=sources) == desk.verify(EXAMPLE)


@pytest.mark.parametrize("text", ["", " \n\t ", "Hello!", "What does auth.py do?", "I like it. Please merge auth.py."])
def test_where_nothing_is_claimed_nothing_was_checked(desk: Desk, text: str) -> None:
    told = desk.verify(text)
    _has_the_published_types(told)
    assert (told["grounding_score"], told["status"], told["claims_extracted"]) == (1.0, "ACCEPT", 0)
    assert told["message"].startswith("Nothing was checked")
    assert ("not_checked" in told) is bool(text.strip())


@pytest.mark.parametrize("desk", [CURRENT], indirect=True)
def test_what_was_left_aside_is_told_with_the_reason(desk: Desk) -> None:
    told = desk.verify("`issue_refresh_token` is in auth.py. Will you merge it? Please review auth.py.")
    assert told["not_checked"] == [
        {"text": "Will you merge it?", "reason": "question"},
        {"text": "Please review auth.py.", "reason": "instruction"},
    ]
    assert told["claims_extracted"] == 1


@pytest.mark.parametrize(
    ("arguments", "code", "named"),
    [
        ({"project_id": "000000000000"}, "PROJECT_NOT_FOUND", "project_id"),
        ({"project_id": ""}, "PROJECT_NOT_FOUND", "project_id"),
        ({"response_text": None}, "INVALID_PARAMS", "response_text"),
        ({"response_text": 7}, "INVALID_PARAMS", "response_text"),
        ({"response_text": "x" * 1_000_001}, "INVALID_PARAMS", "response_text"),
        ({"evidence_sources": "auth.py"}, "INVALID_PARAMS", "evidence_sources"),
        ({"evidence_sources": [7]}, "INVALID_PARAMS", "evidence_sources"),
        ({"evidence_sources": ["auth.py", ""]}, "INVALID_PARAMS", "evidence_sources"),
        ({"evidence_sources": ["a"] * 101}, "INVALID_PARAMS", "evidence_sources"),
        ({"surprise": 1}, "INVALID_PARAMS", "surprise"),
    ],
)
@pytest.mark.parametrize("desk", [CURRENT], indirect=True)
def test_a_bad_call_is_told_in_the_published_form(desk: Desk, arguments: dict[str, Any], code: str, named: str) -> None:
    told = desk.failed(**arguments)
    assert {name: type(value) for name, value in told.items()} == {
        "success": bool,
        "error": str,
        "error_code": str,
        "details": str,
    }
    assert (told["success"], told["error_code"]) == (False, code)
    assert named in told["details"]


def test_the_longest_text_is_read(desk: Desk) -> None:
    told = desk.verify("Added `issue_refresh_token` to auth.py. ".ljust(1_000_000))
    assert (told["status"], told["claims_extracted"]) == ("ACCEPT", 1)


def test_the_project_is_the_one_that_was_named(desk: Desk, tmp_path: Path) -> None:
    other = tmp_path / "other"
    other.mkdir()
    (other / "auth.py").write_text("def rotate_all_tokens() -> None: ...\n", "utf-8")
    there = desk.caller.call("initialize_context", project_path=str(other), mode="none")["project_id"]
    said = "`rotate_all_tokens` is defined in auth.py."
    assert Desk(desk.caller, there).verify(said)["status"] == "ACCEPT"
    assert desk.verify(said)["status"] == "REJECT"


def test_checking_changes_nothing(desk: Desk, shop: Path) -> None:
    desk.caller.call("subcog_capture", content="Refresh tokens are rotated daily", namespace="decisions")
    before = desk.caller.call("subcog_recall", detail="everything"), git(shop, "status", "--porcelain")
    assert desk.verify(EXAMPLE) == desk.verify(EXAMPLE)
    assert (desk.caller.call("subcog_recall", detail="everything"), git(shop, "status", "--porcelain")) == before


@pytest.mark.slow
@pytest.mark.parametrize("mode", MODES)
def test_a_server_that_only_reads_serves_it(home: Path, shop: Path, mode: str) -> None:
    with Cortex.open(home, project=shop, backend=StubBackend()) as cortex:
        project = cortex.contexts.project.id
    with served("stdio", mode, home, shop, "--read-only") as caller:
        assert "update_memory" not in {tool.name for tool in caller.portal.call(caller.client.list_tools)}
        told = caller.call("verify_response", project_id=project, response_text=EXAMPLE)
    _has_the_published_types(told)
    assert told["status"] == "ACCEPT"


# -- turns ---------------------------------------------------------------------------------------


@pytest.fixture
def branch(desk: Desk) -> str:
    id: str = desk.call("create_branch", branch_topic="Signing in")["branch_id"]
    return id


def _say(desk: Desk, branch: str, content: str, role: str = "assistant") -> dict[str, Any]:
    return desk.call("update_memory", branch_id=branch, content=content, role=role)


@pytest.mark.parametrize("desk", [CURRENT], indirect=True)
def test_an_assistants_turn_is_checked(desk: Desk, branch: str) -> None:
    good, bad = _say(desk, branch, EXAMPLE), _say(desk, branch, MISSING)
    assert (good["hallucination_status"], good["risk_level"]) == ("ACCEPT", "low")
    assert (bad["hallucination_status"], bad["risk_level"]) == ("REJECT", "high")
    for told, text in ((good, EXAMPLE), (bad, MISSING)):
        assert told["grounding_score"] == desk.verify(text)["grounding_score"]
        assert told["message"].startswith("Memory updated and verified; ")
    assert "rotate_all_tokens" in bad["message"]


def test_a_users_own_words_are_not_checked(desk: Desk, branch: str) -> None:
    told = _say(desk, branch, MISSING, "user")
    assert (told["hallucination_status"], told["risk_level"]) == ("NOT_AVAILABLE", "unknown")
    assert "grounding_score" not in told
    assert told["message"] == "Memory updated; a user's own words are not checked"


def test_a_turn_without_claims_says_that_nothing_was_checked(desk: Desk, branch: str) -> None:
    told = _say(desk, branch, "Shall I go on?")
    assert (told["grounding_score"], told["hallucination_status"], told["risk_level"]) == (1.0, "ACCEPT", "low")
    assert "Nothing was checked" in told["message"]
    assert desk.caller.call("subcog_recall", filter="grounded:none")["total"] == 1
    assert "grounding_counts" not in desk.caller.call("subcog_status")["statistics"]


def test_what_was_found_stays_with_the_turn(desk: Desk, branch: str) -> None:
    for content in (EXAMPLE, MISSING):
        _say(desk, branch, content)
    _say(desk, branch, "Go on", "user")
    recall = desk.caller.call

    def found(words: str) -> list[str]:
        return sorted(one["content"] for one in recall("subcog_recall", filter=words, detail="everything")["results"])

    assert found("grounded:accept") == found("grounded:>=0.7") == [EXAMPLE]
    assert found("grounded:reject") == found("grounded:<0.3") == [MISSING]
    assert found("grounded:none") == ["Go on"]
    assert found("-grounded:reject role:assistant") == [EXAMPLE]
    assert recall("subcog_status")["statistics"]["grounding_counts"] == {"accept": 1, "warn": 0, "reject": 1}
    (bad,) = recall("subcog_recall", filter="grounded:reject")["results"]
    recall("subcog_update", memory_id=bad["id"], content="I added nothing.")
    assert found("grounded:none") == ["Go on", "I added nothing."]


def test_what_an_assistant_said_before_proves_nothing(desk: Desk, branch: str) -> None:
    said = "Invoices are printed on green paper by the night shift."
    before = desk.verify(said)
    _say(desk, branch, said)
    assert desk.verify(said) == before
    assert before["claims_verified"] == 0


def test_a_summary_never_reports_what_was_rejected_as_done(desk: Desk) -> None:
    branch = desk.call("create_branch", branch_topic="Signing in")["branch_id"]
    for role, said in (
        ("user", "I want people to sign in with tokens."),
        ("assistant", "I added the function `issue_refresh_token` to auth.py."),
        ("assistant", MISSING),
        ("user", "thanks!"),
    ):
        desk.call("update_memory", branch_id=branch, content=said, role=role)
    told = desk.call("get_active_summary", branch_id=branch)["summary"]
    done, _, rest = told.partition("Unverified:")
    assert "issue_refresh_token" in done
    assert "rotate_all_tokens" not in done
    assert MISSING.rstrip(".") in rest
    assert "(" in rest  # the reason


def test_a_question_stays_open_until_it_is_answered(desk: Desk) -> None:
    branch = desk.call("create_branch", branch_topic="Signing in")["branch_id"]

    def summary(*turns: tuple[str, str]) -> str:
        for role, said in turns:
            desk.call("update_memory", branch_id=branch, content=said, role=role)
        return str(desk.call("get_active_summary", branch_id=branch)["summary"])

    question = "How long should a refresh token live?"
    asked = summary(("user", "I want people to sign in."), ("assistant", question), ("user", "thanks, looks great!"))
    assert f"Open: {question}" in asked
    later = summary(("user", "I'll come back to you tomorrow. Will keep you posted."))
    assert f"Open: {question}" in later
    answered = summary(("assistant", question), ("user", "A refresh token should live for 30 days."))
    assert "Open:" not in answered
