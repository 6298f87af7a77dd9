"""Bad calls of the graph tools: refused with a code and the argument at fault, and nothing changed."""

import json
from collections.abc import Iterator
from typing import Any

import pytest

from cases import each
from cortex_py import Cortex
from cortex_py.surfaces.mcp.registry import ToolSpec, family_tools
from cortex_py.surfaces.mcp.server import build_server

from clients import CURRENT, Caller, connected
from helpers import FakeClock
from stub_backend import StubBackend


def _bad(tool: str, code: int, field: str, **given: Any) -> Any:
    key = "operation" if tool == "graph" else "action"
    words = " ".join(f"{name}={str(value)[:20]}" for name, value in given.items())
    return pytest.param(f"subcog_{tool}", code, field, given, id=f"{tool} {given.get(key)} {field} {words}"[:80])


NOBODY = "entity_nobody"
USES = {"action": "create", "relationship_type": "Uses"}
PERSON = {"action": "create", "entity_type": "Person"}
DEEP: Any = json.loads("[" * 40 + "]" * 40)

BAD = [
    *(_bad(tool, -32602, key) for tool, key in (("graph", "operation"), ("entities", "action"))),
    _bad("relationships", -32602, "action"),
    _bad("graph", -32602, "operation", operation="teleport"),
    _bad("entities", -32602, "action", action="rename"),
    _bad("relationships", -32602, "action", action="STATS"),
    # What an action needs.
    _bad("graph", -32602, "entity_id", operation="neighbors"),
    _bad("graph", -32602, "from_entity", operation="path", to_entity="One"),
    _bad("graph", -32602, "to_entity", operation="path", from_entity="One"),
    _bad("entities", -32602, "name", action="create", entity_type="Person"),
    _bad("entities", -32602, "entity_type", action="create", name="X"),
    _bad("entities", -32602, "entity_id", action="get"),
    _bad("entities", -32602, "entity_id", action="delete"),
    _bad("entities", -32602, "content", action="extract"),
    _bad("entities", -32602, "entity_ids", action="merge"),
    _bad("relationships", -32602, "from_entity", action="create", to_entity="One", relationship_type="Uses"),
    _bad("relationships", -32602, "to_entity", action="create", from_entity="One", relationship_type="Uses"),
    _bad("relationships", -32602, "relationship_type", action="create", from_entity="One", to_entity="Two"),
    _bad("relationships", -32602, "relationship_id", action="get"),
    _bad("relationships", -32602, "relationship_id", action="delete"),
    _bad("relationships", -32602, "entity_ids", action="infer"),
    _bad("entities", -32602, "method", action="extract", content="x", method="guess"),
    _bad("relationships", -32602, "method", action="infer", entity_ids=["One"], method="guess"),
    # What is not there.
    _bad("graph", -32604, "entity_id", operation="neighbors", entity_id=NOBODY),
    _bad("graph", -32604, "entity_id", operation="neighbors", entity_id="x" * 100_000),
    _bad("graph", -32604, "entity_id", operation="neighbors", entity_id="x" + " " * 100_000 + "y"),
    _bad("graph", -32604, "entity_id", operation="visualize", entity_id=NOBODY),
    _bad("graph", -32604, "from_entity", operation="path", from_entity=NOBODY, to_entity="One"),
    _bad("graph", -32604, "to_entity", operation="path", from_entity="One", to_entity=NOBODY),
    _bad("entities", -32604, "entity_id", action="get", entity_id=NOBODY),
    _bad("entities", -32604, "entity_id", action="get", name="Nobody"),
    _bad("entities", -32604, "entity_id", action="delete", entity_id=NOBODY),
    _bad("entities", -32604, "entity_ids", action="merge", entity_ids=["One", NOBODY]),
    _bad("relationships", -32604, "from_entity", **USES, from_entity=NOBODY, to_entity="One"),
    _bad("relationships", -32604, "to_entity", **USES, from_entity="One", to_entity=NOBODY),
    _bad("relationships", -32604, "from_entity", action="list", from_entity=NOBODY),
    _bad("relationships", -32604, "to_entity", action="list", to_entity=NOBODY),
    _bad("relationships", -32604, "relationship_id", action="get", relationship_id="relationship_0"),
    _bad("relationships", -32604, "relationship_id", action="delete", relationship_id="relationship_0"),
    _bad("relationships", -32604, "entity_ids", action="infer", entity_ids=["One", NOBODY]),
    # What breaks a rule.
    *(_bad("graph", -32602, "depth", operation="neighbors", entity_id="One", depth=depth) for depth in (-1, 0, 4)),
    _bad("graph", -32602, "depth", operation="visualize", entity_id="One", depth=4),
    *(
        _bad("graph", -32602, "max_hops", operation="path", from_entity="One", to_entity="Two", max_hops=n)
        for n in (0, 11)
    ),
    *(_bad("graph", -32602, "limit", operation="visualize", limit=limit) for limit in (0, 1001)),
    _bad("graph", -32602, "format", operation="visualize", format="png"),
    _bad("graph", -32602, "entity_types", operation="visualize", entity_types=["Animal"]),
    _bad("graph", -32602, "relationship_types", operation="neighbors", entity_id="One", relationship_types=["Eats"]),
    _bad("graph", -32602, "as_of", operation="neighbors", entity_id="One", as_of="yesterdayish"),
    _bad("entities", -32602, "name", **PERSON, name=" "),
    _bad("entities", -32602, "name", **PERSON, name="x" * 2_001),
    _bad("entities", -32602, "entity_type", action="create", name="X", entity_type="Animal"),
    _bad("entities", -32602, "properties", **PERSON, name="X", properties="x"),
    _bad("entities", -32602, "properties", **PERSON, name="X", properties={"a": DEEP}),
    _bad("entities", -32602, "properties", **PERSON, name="X", properties={"a": "x" * 70_000}),
    _bad("entities", -32602, "limit", action="list", limit=0),
    _bad("entities", -32602, "entity_type", action="list", entity_type="Animal"),
    _bad("entities", -32602, "content", action="extract", content=""),
    *(_bad("entities", -32602, "min_confidence", action="extract", content="x", min_confidence=n) for n in (-0.1, 1.1)),
    *(_bad("entities", -32602, "entity_ids", action="merge", entity_ids=ids) for ids in ([], ["One"], ["One", "one"])),
    _bad("entities", -32602, "entity_ids", action="merge", entity_ids=["One"] * 1_001 + ["Two"]),
    _bad("entities", -32602, "canonical_name", action="merge", entity_ids=["One", "Two"], canonical_name=""),
    _bad("relationships", -32602, "to_entity", **USES, from_entity="One", to_entity="one"),
    _bad("relationships", -32602, "relationship_type", action="list", relationship_type="Eats"),
    _bad("relationships", -32602, "properties", **USES, from_entity="One", to_entity="Two", properties={"a": DEEP}),
    _bad("relationships", -32602, "valid_from", **USES, from_entity="One", to_entity="Two", valid_from="soon"),
    _bad("relationships", -32602, "store", action="infer", entity_ids=["One", "Two"], store="perhaps"),
    _bad("entities", -32602, "store", action="extract", content="x", store="perhaps"),
    _bad("entities", -32602, "dry_run", action="merge", entity_ids=["One", "Two"], dry_run="perhaps"),
    _bad("relationships", -32602, "as_of", action="list", as_of=""),
    _bad("relationships", -32602, "limit", action="list", limit=1001),
    _bad("relationships", -32602, "min_confidence", action="infer", entity_ids=["One", "Two"], min_confidence=2),
    *(_bad("relationships", -32602, "entity_ids", action="infer", entity_ids=ids) for ids in ([], ["One"])),
    _bad(
        "relationships",
        -32602,
        "valid_to",
        action="create",
        from_entity="One",
        to_entity="Two",
        relationship_type="Uses",
        valid_from="2025-01-01",
        valid_to="2024-01-01",
    ),
]


@pytest.fixture(scope="module", params=[CURRENT])
def caller(tmp_path_factory: pytest.TempPathFactory, request: pytest.FixtureRequest) -> Iterator[Caller]:
    """A client of a server with a small graph, which no test here changes."""
    home, project = tmp_path_factory.mktemp("home"), tmp_path_factory.mktemp("project")
    with (
        Cortex.open(home, project=project, clock=FakeClock(), backend=StubBackend()) as cortex,
        connected(build_server(cortex), request.param) as connection,
    ):
        for name in ("One", "Two"):
            cortex.graph.create(name, "Technology")
        cortex.graph.relate("One", "Two", "Uses")
        yield connection


def _state(caller: Caller) -> Any:
    """All that a call could have changed."""
    lists = [caller.call(f"subcog_{tool}", action="list") for tool in ("entities", "relationships")]
    return lists, caller.call("subcog_graph", operation="stats")


@pytest.mark.slow
@each(("tool", "code", "field", "given"), BAD)
def test_a_bad_call_is_refused_and_changes_nothing(
    caller: Caller, tool: str, code: int, field: str, given: dict[str, Any]
) -> None:
    before = _state(caller)
    error = caller.refused(tool, **given)
    assert (error.code, error.data["field"]) == (code, field), error
    assert len(error.message) < 500
    assert _state(caller) == before


def test_every_argument_is_tried(caller: Caller) -> None:
    listed = {tool.name: tool.input_schema for tool in caller.portal.call(caller.client.list_tools)}
    for spec in family_tools("graph"):
        tried = {case.values[2] for case in BAD if case.values[0] == spec.name}
        assert listed[spec.name]["properties"].keys() == tried


@pytest.mark.parametrize("spec", family_tools("graph"), ids=lambda spec: spec.name)
def test_an_unknown_argument_is_named(caller: Caller, spec: ToolSpec) -> None:
    key = "operation" if spec.name == "subcog_graph" else "action"
    value = "stats" if spec.name == "subcog_graph" else "list"
    error = caller.refused(spec.name, **{key: value, "colour": "red"})
    assert (error.code, error.data["field"]) == (-32602, "colour")
