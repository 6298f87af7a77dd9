"""A server that asks for licences: what each opens to a real client, how the rest is refused, and no leaks."""

from __future__ import annotations

import json
import re
from collections.abc import Iterator
from contextlib import contextmanager
from datetime import timedelta
from pathlib import Path
from typing import Any

import pytest

from cortex_py import Cortex
from cortex_py.surfaces.mcp.registry import TOOLS
from cortex_py.surfaces.mcp.server import build_server
from cortex_py.team.licence.licence import TIER_OF, KeyPair, issue, new_keypair

from clients import Caller, connected, served
from helpers import FakeClock
from stub_backend import StubBackend

KEYS = new_keypair()
SERVED = {spec.name for spec in TOOLS}

# A call of each marked tool, and of those beside them that stay open.
MARKED: dict[str, tuple[str, dict[str, Any]]] = {
    "verify_response": ("verify_response", {"response_text": "It works."}),
    "suggest_contexts": ("suggest_contexts", {"current_context": "sign in"}),
    "get_context_graph_info": ("get_context_graph_info", {}),
    "sync_to_cloud": ("sync_to_cloud", {}),
    "sync_from_cloud": ("sync_from_cloud", {}),
    "search_context.filter_category": ("search_context", {"query": "tabs", "filter_category": "bug_fix"}),
}
FREE: dict[str, dict[str, Any]] = {
    "search_context": {"query": "tabs", "filter_category": None},
    "get_automation_status": {},
}


def _token(tier: Any, clock: FakeClock, keys: KeyPair = KEYS, **more: Any) -> str:
    return issue(keys.private, holder="Acme", tier=tier, clock=clock, **more)


@contextmanager
def _client(home: Path, project: Path, mode: str, clock: FakeClock, **settings: Any) -> Iterator[tuple[Caller, str]]:
    key = home.parent / "public.pem"
    key.write_bytes(KEYS.public)
    cloud = {"cloud_url": str(home.parent / "cloud"), "passphrase": "correct horse battery"}
    settings = {"require_license": True, "license_public_key": key, **cloud, **settings}
    with (
        Cortex.open(home, project=project, backend=StubBackend(), clock=clock, **settings) as cortex,
        connected(build_server(cortex), mode) as caller,
    ):
        yield caller, cortex.project.id


def _opened(caller: Caller, project_id: str) -> set[str]:
    """Which of the marked tools answer; the others are refused in the family's form. The free ones answer always."""
    opened = set()
    for name, (tool, arguments) in MARKED.items():
        result = caller.portal.call(caller.client.call_tool_mcp, tool, {"project_id": project_id, **arguments})
        told = result.structured_content
        if not result.is_error:
            opened.add(name)
            continue
        assert told.keys() == {"success", "error", "error_code", "details"}
        assert (told["success"], told["error_code"]) == (False, "LICENSE_REQUIRED")
        assert told["error"].startswith(f"{name} needs a licence of the tier {TIER_OF[name]}")
        assert told["details"].startswith("LicenseRequired")
        assert ("filter_category" in told["details"]) == (tool == "search_context")
    for tool, arguments in FREE.items():
        caller.call(tool, project_id=project_id, **arguments)
    branch = caller.call("create_branch", project_id=project_id, branch_topic="Layout")["branch_id"]
    said = {"project_id": project_id, "branch_id": branch, "content": "I ran the tests", "role": "assistant"}
    told = caller.call("update_memory", **said)
    # What is said is kept in any case, and checked only where a check is allowed.
    assert told["indexed"]
    assert (told["hallucination_status"] == "NOT_AVAILABLE") == ("verify_response" not in opened)
    assert ("verify_response needs a licence" in told["message"]) == ("verify_response" not in opened)
    caller.call("subcog_status")
    return opened


def _because(caller: Caller, project_id: str) -> str:
    return str(caller.failed("verify_response", project_id=project_id, response_text="It works.")["error"])


def test_every_marked_tool_that_is_served_is_called_here() -> None:
    assert MARKED.keys() == {name for name in TIER_OF if name.partition(".")[0] in SERVED}


@pytest.mark.slow
@pytest.mark.parametrize("tier", [None, "free", "pro", "enterprise"])
def test_a_licence_opens_what_its_tier_opens(
    home: Path, project: Path, clock: FakeClock, mode: str, tier: str | None
) -> None:
    token = _token(tier, clock) if tier else None
    with _client(home, project, mode, clock, license_key=token) as (caller, project_id):
        listed = {tool.name for tool in caller.portal.call(caller.client.list_tools)}
        assert listed == SERVED
        opens = {"pro": {"pro"}, "enterprise": {"pro", "enterprise"}}.get(tier or "", set())
        assert _opened(caller, project_id) == {name for name in MARKED if TIER_OF[name] in opens}
        if tier in (None, "free"):
            assert ("none is set" if tier is None else "is of the tier free") in _because(caller, project_id)


def test_the_page_shows_the_answer(home: Path, project: Path, clock: FakeClock) -> None:
    page = (Path(__file__).parents[2] / "docs" / "reference" / "licences.md").read_text("utf-8")
    shown = re.search(r"```json\n(.*?)```", page, re.DOTALL)
    assert shown
    with _client(home, project, "auto", clock) as (caller, project_id):
        answer = caller.failed("verify_response", project_id=project_id, response_text="It works.")
    assert json.loads(shown[1]) == answer


def test_a_feature_opens_one_tool(home: Path, project: Path, clock: FakeClock, mode: str) -> None:
    token = _token("free", clock, features=["get_context_graph_info"])
    with _client(home, project, mode, clock, license_key=token) as (caller, project_id):
        assert _opened(caller, project_id) == {"get_context_graph_info"}


@pytest.mark.slow
def test_without_the_setting_nothing_needs_a_licence(home: Path, project: Path, clock: FakeClock, mode: str) -> None:
    with _client(home, project, mode, clock, require_license=False, license_key="none at all") as (caller, project_id):
        assert _opened(caller, project_id) == MARKED.keys()


@pytest.mark.parametrize("fault", ["changed", "another key", "nonsense", "later", "no key", "no key file"])
def test_what_is_not_valid_opens_nothing_and_is_not_repeated(
    home: Path, project: Path, clock: FakeClock, fault: str
) -> None:
    token = _token("enterprise", clock)
    settings: dict[str, Any] = {}
    if fault == "changed":
        token = f"{token[:30]}{'A' if token[30] != 'A' else 'B'}{token[31:]}"
    elif fault == "another key":
        token = _token("enterprise", clock, new_keypair())
    elif fault == "nonsense":
        token = "sesame-open-please"
    elif fault == "later":
        ahead = FakeClock()
        ahead.advance(hours=1)
        token = _token("enterprise", ahead)
    elif fault == "no key file":
        settings["license_public_key"] = home.parent / "nowhere.pem"
    if fault == "no key":
        # Arguments that are None leave the default.
        with (
            Cortex.open(
                home, project=project, backend=StubBackend(), clock=clock, require_license=True, license_key=token
            ) as cortex,
            connected(build_server(cortex), "auto") as caller,
        ):
            assert "No key to verify" in _because(caller, cortex.project.id)
        return
    with _client(home, project, "auto", clock, license_key=token, **settings) as (caller, project_id):
        assert _opened(caller, project_id) == set()
        told = _because(caller, project_id)
        assert token not in told
        word = {"changed": "changed", "another key": "another key", "nonsense": "not a licence", "later": "not valid"}
        assert word.get(fault, "cannot be read") in told


@pytest.mark.slow
def test_an_expired_licence_is_told_and_free_tools_go_on(
    home: Path, project: Path, clock: FakeClock, mode: str
) -> None:
    token = _token("enterprise", clock, expires_at=clock.now() + timedelta(days=1))
    with _client(home, project, mode, clock, license_key=token) as (caller, project_id):
        assert _opened(caller, project_id) == MARKED.keys()
        clock.advance(days=1)
        assert _opened(caller, project_id) == set()
        assert "expired at 2026-01-03T12:34:56Z" in _because(caller, project_id)


def test_a_refusal_comes_before_the_arguments_are_looked_at(home: Path, project: Path, clock: FakeClock) -> None:
    with _client(home, project, "auto", clock) as (caller, _):
        for arguments in ({}, {"project_id": "nowhere", "response_text": 5}):
            assert caller.failed("verify_response", **arguments)["error_code"] == "LICENSE_REQUIRED"
        assert caller.failed("search_context")["error_code"] == "INVALID_PARAMS"


def test_a_tool_that_is_not_served_is_unknown_and_not_refused_for_a_licence(
    home: Path, project: Path, clock: FakeClock
) -> None:
    with _client(home, project, "auto", clock, exclude_tools=["verify_response"]) as (caller, project_id):
        assert caller.refused("verify_response", project_id=project_id, response_text="x").code == -32601


def test_a_process_takes_it_from_its_environment(home: Path, project: Path, clock: FakeClock) -> None:
    key = home.parent / "public.pem"
    key.write_bytes(KEYS.public)
    variables = {
        "CORTEX_REQUIRE_LICENSE": "true",
        "CORTEX_LICENSE_PUBLIC_KEY": str(key),
        "CORTEX_LICENSE_KEY": _token("pro", clock),
    }
    with served("stdio", "auto", home, project, **variables) as caller:
        project_id = caller.call("initialize_context", project_path=str(project), mode="none")["project_id"]
        assert caller.call("suggest_contexts", project_id=project_id, current_context="sign in")["success"]
        told = caller.failed("get_context_graph_info", project_id=project_id)
        assert (told["error_code"], "tier enterprise" in told["error"]) == ("LICENSE_REQUIRED", True)
