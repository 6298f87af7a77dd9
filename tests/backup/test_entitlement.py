"""What needs a licence: the document's marks, the server's tools, and one place that refuses."""

from __future__ import annotations

import inspect
import re
from datetime import timedelta
from pathlib import Path
from typing import Any

import pytest

from cortex_py import Cortex
from cortex_py.core.config import Settings, load_settings
from cortex_py.core.errors import ConfigurationError, LicenceInvalid, LicenseRequired
from cortex_py.surfaces.mcp.families.context import ContextTools
from cortex_py.surfaces.mcp.registry import TOOLS
from cortex_py.team.licence.licence import (
    TIER_OF,
    TIERS,
    Licence,
    LicenceGate,
    Tier,
    allowed,
    configured,
    issue,
    new_keypair,
    opened_by,
    required_tier,
)

from helpers import FakeClock
from stub_backend import StubBackend

# Every tool of the published document with the mark it bears there, "" for none, and its marked parameters below.
DOCUMENT = {
    "initialize_context": "",
    "create_branch": "",
    "update_memory": "Pro+",
    "get_active_summary": "",
    "search_context": "",
    "load_context": "",
    "suggest_contexts": "Pro+",
    "accept_suggestions": "",
    "reject_suggestions": "",
    "verify_response": "Pro+",
    "get_context_graph_info": "Enterprise",
    "create_snapshot": "",
    "restore_snapshot": "",
    "list_snapshots": "",
    "sync_to_cloud": "Enterprise",
    "sync_from_cloud": "Enterprise",
    "link_git_branch": "",
    "get_automation_status": "",
}
PARAMETERS = {("search_context", "filter_category"): "Pro+"}
# Marked for its background work; refusing to save would lose what was said.
OPEN = {"update_memory"}
MARKS: dict[str, Tier] = {"Pro+": "pro", "Enterprise": "enterprise"}

KEYS = new_keypair()
CLOCK = FakeClock()


def _mark(mark: str) -> Tier:
    return MARKS.get(mark, "free")


def _licence(tier: Tier, *features: str) -> Licence:
    return Licence("a1", "Acme", tier, CLOCK.now(), None, features)


def _settings(home: Path, token: str | None = None, **more: Any) -> Settings:
    key = home.parent / "public.pem"
    key.write_bytes(KEYS.public)
    return load_settings(
        home, environment={}, license_key=token, **{"license_public_key": key, "require_license": True, **more}
    )


def _token(tier: Tier, **more: Any) -> str:
    return issue(KEYS.private, holder="Acme", tier=tier, **{"clock": CLOCK, **more})


def test_the_table_is_what_the_document_marks() -> None:
    marked = {tool: _mark(words) for tool, words in DOCUMENT.items() if tool not in OPEN}
    marked |= {f"{tool}.{parameter}": _mark(words) for (tool, parameter), words in PARAMETERS.items()}
    assert {name: tier for name, tier in marked.items() if tier != "free"} == TIER_OF


def test_every_name_of_the_table_is_served_or_will_be() -> None:
    served = {spec.name for spec in TOOLS}
    for name in TIER_OF:
        tool, _, argument = name.partition(".")
        assert tool in DOCUMENT
        if tool in served:
            assert next(spec for spec in TOOLS if spec.name == tool).errors == "cortex"
        else:
            assert tool in {"sync_to_cloud", "sync_from_cloud"}
        if argument:
            assert argument in inspect.signature(getattr(ContextTools, tool)).parameters


def test_every_other_tool_of_the_server_is_free() -> None:
    assert {spec.name for spec in TOOLS if required_tier(spec.name) != "free"} <= TIER_OF.keys()
    for spec in TOOLS:
        if spec.name not in TIER_OF:
            assert allowed(spec.name, None)


def test_the_page_tells_the_table() -> None:
    page = (Path(__file__).parents[2] / "docs" / "reference" / "licences.md").read_text("utf-8")
    rows = re.findall(r"^\| (.*`.*) \| (pro|enterprise) \|$", page, re.MULTILINE)
    told = {}
    for names, tier in rows:
        tools = re.findall(r"`(\w+)`", names)
        told |= {".".join(tools): tier} if " with " in names else dict.fromkeys(tools, tier)
    assert told == TIER_OF


def test_a_tier_opens_what_lower_ones_open() -> None:
    opened = [set(opened_by(_licence(tier))) for tier in TIERS]
    assert opened[0] == set(opened_by(None)) == set()
    assert opened[1] == {name for name, tier in TIER_OF.items() if tier == "pro"}
    assert opened[2] == set(TIER_OF)


def test_a_feature_opens_one_tool() -> None:
    licence = _licence("free", "verify_response", "search_context.filter_category")
    assert opened_by(licence) == ("verify_response", "search_context.filter_category")


def test_no_licence_is_asked_for_unless_the_settings_do(home: Path, project: Path) -> None:
    with Cortex.open(home, project=project, backend=StubBackend(), clock=CLOCK) as cortex:
        for name in TIER_OF:
            cortex.require(name, {"filter_category": "bug_fix"})
        assert "_gate" not in vars(cortex)


def test_the_library_asks_and_stays_open_itself(home: Path, project: Path) -> None:
    settings = _settings(home)
    with Cortex.from_settings(settings, project, backend=StubBackend(), clock=CLOCK) as cortex:
        cortex.require("update_memory")
        with pytest.raises(LicenseRequired):
            cortex.require("verify_response")
        assert cortex.grounding.verify("It works.").status


@pytest.mark.parametrize(
    ("tool", "arguments", "needs"),
    [
        ("verify_response", {}, "pro"),
        ("get_context_graph_info", None, "enterprise"),
        ("search_context", {"query": "x", "filter_category": "bug_fix"}, "pro"),
    ],
)
def test_what_is_not_open_is_refused_with_the_tier(
    home: Path, tool: str, arguments: dict[str, object] | None, needs: str
) -> None:
    for tier in (None, *TIERS):
        gate = LicenceGate(_settings(home, _token(tier) if tier else None), CLOCK)
        if tier and TIERS.index(tier) >= TIERS.index(needs):  # type: ignore[arg-type]
            gate.require(tool, arguments)
            continue
        with pytest.raises(LicenseRequired, match=f"tier {needs}") as caught:
            gate.require(tool, arguments)
        assert (f"tier {tier}" if tier else "none is set") in caught.value.message
        assert caught.value.field == ("filter_category" if tool == "search_context" else None)


def test_an_argument_that_is_not_given_needs_nothing(home: Path) -> None:
    gate = LicenceGate(_settings(home), CLOCK)
    gate.require("search_context", {"query": "x"})
    gate.require("search_context", {"query": "x", "filter_category": None})


def test_a_licence_that_expires_while_served_is_refused_from_then_on(home: Path) -> None:
    clock = FakeClock()
    gate = LicenceGate(_settings(home, _token("pro", expires_at=clock.now() + timedelta(hours=1))), clock)
    gate.require("verify_response")
    clock.advance(hours=1)
    with pytest.raises(LicenseRequired, match="expired at"):
        gate.require("verify_response")
    gate.require("update_memory")


def test_the_signature_is_checked_once(home: Path) -> None:
    settings = _settings(home, f"  {_token('pro')}\n")
    gate = LicenceGate(settings, CLOCK)
    gate.require("verify_response")
    assert settings.license_public_key
    settings.license_public_key.unlink()
    gate.require("verify_response")


@pytest.mark.parametrize("missing", ["setting", "file"])
def test_without_a_key_to_check_by_nothing_is_opened(home: Path, missing: str) -> None:
    path = None if missing == "setting" else home / "nowhere.pem"
    settings = _settings(home, _token("enterprise"))
    settings = Settings(
        home=settings.home,
        require_license=True,
        license_key=settings.license_key,
        license_public_key=path,
    )
    with pytest.raises(LicenceInvalid):
        configured(settings)
    with pytest.raises(LicenseRequired, match="key"):
        LicenceGate(settings, CLOCK).require("verify_response")


def test_the_key_is_a_secret_of_the_settings(home: Path, project: Path) -> None:
    token = _token("pro")
    settings = load_settings(home, environment={"CORTEX_LICENSE_KEY": token, "CORTEX_REQUIRE_LICENSE": "yes"})
    assert (settings.license_key, settings.require_license) == (token, True)
    assert token not in repr(settings)
    home.mkdir(parents=True)
    (home / "config.toml").write_text("license_key = 5\n")
    with pytest.raises(ConfigurationError, match="not a text"):
        load_settings(home, environment={})
    (home / "config.toml").unlink()
    with Cortex.from_settings(settings, project, backend=StubBackend(), clock=CLOCK) as cortex:
        assert token not in repr(cortex.doctor())
        with pytest.raises(LicenseRequired) as caught:
            cortex.require("verify_response")
    assert token not in str(caught.value)
