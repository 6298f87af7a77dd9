"""Bad calls of the prompt and template tools: refused with a code and the argument at fault, and nothing changed."""

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

DEEP: Any = json.loads("[" * 40 + "]" * 40)
MANY = " ".join(f"{{{{v{number}}}}}" for number in range(101))


def _bad(tool: str, code: int, field: str, **given: Any) -> Any:
    words = " ".join(f"{name}={str(value)[:20]}" for name, value in given.items())
    return pytest.param(tool, code, field, given, id=f"{tool} {field} {words}"[:90])


def _alike(code: int, field: str, **given: Any) -> list[Any]:
    """The same for both tools."""
    return [_bad(tool, code, field, **given) for tool in ("subcog_prompts", "subcog_templates")]


SAVE = {"action": "save", "name": "new"}
BAD = [
    *_alike(-32602, "action"),
    *_alike(-32602, "action", action="teleport"),
    *_alike(-32602, "action", action="SAVE"),
    _bad("subcog_prompts", -32602, "action", action="render", name="greet"),
    _bad("subcog_templates", -32602, "action", action="run", name="greet"),
    # What an action needs.
    *(_bad("subcog_prompts", -32602, "name", action=action) for action in ("save", "get", "run", "delete")),
    *(_bad("subcog_templates", -32602, "name", action=action) for action in ("save", "get", "render", "delete")),
    *_alike(-32602, "content", **SAVE),
    *_alike(-32602, "domain", action="delete", name="greet"),
    # What is not there.
    *_alike(-32607, "name", action="get", name="absent"),
    *_alike(-32607, "name", action="get", name="greet", domain="org"),
    *_alike(-32607, "version", action="get", name="greet", version=2),
    *_alike(-32607, "name", action="delete", name="absent", domain="project"),
    *_alike(-32607, "name", action="delete", name="greet", domain="user"),
    *_alike(-32607, "name", action="get", name="x" * 1_000_000),
    *_alike(-32607, "name", action="get", name="../../etc/passwd"),
    *_alike(-32607, "name", action="get", name="Greet"),
    _bad("subcog_prompts", -32607, "name", action="run", name="absent"),
    _bad("subcog_prompts", -32607, "name", action="run", name="greet", domain="user"),
    _bad("subcog_prompts", -32607, "name", action="delete", name="start-session", domain="project"),
    _bad("subcog_templates", -32607, "name", action="render", name="absent"),
    # What breaks a rule.
    *(
        case
        for name in ("", " ", "Greet", "gre et", "-greet", "greet-", "a--b", "grüß", "a_b", "x" * 65, "x" * 1_000_000)
        for case in _alike(-32602, "name", action="save", name=name, content="Hello")
    ),
    *(
        case
        for content in ("", " \n", "x" * 200_001, MANY)
        for case in _alike(-32602, "content", **SAVE, content=content)
    ),
    *_alike(-32602, "description", **SAVE, content="Hello", description="x" * 2_001),
    *_alike(-32602, "tags", **SAVE, content="Hello", tags=["x" * 129]),
    *_alike(-32602, "tags", **SAVE, content="Hello", tags="a,b"),
    *(
        case
        for action in ({**SAVE, "content": "Hello"}, {"action": "delete", "name": "greet"})
        for domain in ("mars", "builtin", "")
        for case in _alike(-32602, "domain", **action, domain=domain)
    ),
    *_alike(-32602, "domain", action="list", domain="mars"),
    *_alike(-32602, "version", action="get", name="greet", version=0),
    *_alike(-32602, "version", action="get", name="greet", version=2**70),
    *_alike(-32602, "version", action="get", name="greet", version="first"),
    *(case for limit in (-1, 0, 1_001, 2**70) for case in _alike(-32602, "limit", action="list", limit=limit)),
    *(case for offset in (-1, 2**70) for case in _alike(-32602, "offset", action="list", offset=offset)),
    # Declarations.
    *(
        case
        for declared in (
            [7],
            [{}],
            [{"name": "x", "colour": "red"}],
            [{"name": "x"}, {"name": "x"}],
            [{"name": "1x"}],
            [{"name": "subcog_x"}],
            [{"name": "x" * 65}],
            [{"name": f"v{number}"} for number in range(101)],
            {"x": {"choices": "red"}},
            {"x": {"choices": [1]}},
            {"x": {"choices": ["red"], "default": "blue"}},
            {"x": {"required": "yes"}},
            {"x": {"description": 7}},
            {"x": {"default": DEEP}},
        )
        for case in _alike(-32602, "variables", **SAVE, content="{{x}}", variables=declared)
    ),
    *_alike(-32602, "variables", **SAVE, content="{{x}}", variables="x"),
    # Values.
    *(
        _bad(tool, -32602, "variables", action=use, name="greet", variables=values)
        for tool, use in (("subcog_prompts", "run"), ("subcog_templates", "render"))
        for values in ([], [{"name": "who"}], "who")
    ),
    _bad("subcog_prompts", -32602, "variables", action="run", name="greet", variables={"who": "x" * 1_000_001}),
    _bad("subcog_prompts", -32602, "who", action="run", name="greet"),
    _bad("subcog_prompts", -32602, "variables", action="run", name="greet", variables={"who": "me", "tone": "rude"}),
    # Rendering.
    _bad("subcog_templates", -32602, "format", action="render", name="greet", format="html"),
    _bad("subcog_templates", -32602, "query", action="render", name="greet", query=7),
    *(_bad("subcog_templates", -32602, "limit", action="render", name="list", limit=limit) for limit in (0, 1_001)),
    _bad("subcog_templates", -32602, "filter", action="render", name="list", filter='tag:"a'),
    _bad("subcog_templates", -32608, "filter", action="render", name="list", filter="ns:thoughts"),
    # The deprecated tools.
    _bad("prompt_save", -32602, "content", name="new"),
    _bad("prompt_save", -32602, "name", name="Not Kebab", content="Hello"),
    _bad("prompt_list", -32602, "limit", limit=0),
    _bad("prompt_get", -32607, "name", name="absent"),
    _bad("prompt_run", -32602, "who", name="greet"),
    _bad("prompt_run", -32602, "variables", name="greet", variables=["who"]),
    _bad("prompt_delete", -32602, "domain", name="greet"),
    _bad("prompt_delete", -32607, "name", name="absent", domain="org"),
]


@pytest.fixture(scope="module", params=[CURRENT])
def caller(tmp_path_factory: pytest.TempPathFactory, request: pytest.FixtureRequest) -> Iterator[Caller]:
    """A client of a server with a few texts, which no test here changes."""
    home, project = tmp_path_factory.mktemp("home"), tmp_path_factory.mktemp("project")
    with (
        Cortex.open(home, project=project, clock=FakeClock(), backend=StubBackend()) as cortex,
        connected(build_server(cortex), request.param) as connection,
    ):
        content, declared = "Hello {{who}}{{tone}}", {"who": {}, "tone": {"default": ".", "choices": [".", "!"]}}
        for saved in (cortex.prompts, cortex.templates):
            saved.save("greet", content, variables=declared)
        cortex.templates.save("list", "{{memories}}")
        yield connection


def _state(caller: Caller) -> Any:
    """All that a call could have changed, uses among it."""
    return [caller.call(tool, action="list") for tool in ("subcog_prompts", "subcog_templates")]


@pytest.mark.slow
@each(("tool", "code", "field", "given"), BAD)
def test_a_bad_call_is_refused_and_changes_nothing(
    caller: Caller, tool: str, code: int, field: str, given: dict[str, Any]
) -> None:
    before = _state(caller)
    error = caller.refused(tool, **given)
    assert (error.code, error.data["field"]) == (code, field), error.message[:500]
    assert len(error.model_dump_json()) < 2_000
    assert _state(caller) == before


@pytest.mark.parametrize(
    ("tool", "given"),
    [
        ("subcog_prompts", {**SAVE, "content": "{{x}}", "variables": {"x": {"default": "x" * 20_001}}}),
        ("subcog_prompts", {**SAVE, "content": "{{x}}", "variables": {"x": {"description": "x" * 2_001}}}),
        ("subcog_templates", {"action": "render", "name": "greet", "variables": {"who": "x" * 1_000_001}}),
    ],
)
def test_what_is_too_large_is_refused(caller: Caller, tool: str, given: dict[str, Any]) -> None:
    before = _state(caller)
    error = caller.refused(tool, **given)
    assert error.code == -32602
    assert "000" in error.message
    assert len(error.model_dump_json()) < 2_000
    assert _state(caller) == before


def test_every_argument_is_tried(caller: Caller) -> None:
    listed = {tool.name: tool.input_schema for tool in caller.portal.call(caller.client.list_tools)}
    for name in ("subcog_prompts", "subcog_templates"):
        tried = {case.values[2] for case in BAD if case.values[0] == name} - {"who"}
        assert listed[name]["properties"].keys() == tried


@each("spec", family_tools("prompts"), ids=lambda spec: spec.name)
def test_an_unknown_argument_is_named(caller: Caller, spec: ToolSpec) -> None:
    error = caller.refused(spec.name, action="list", name="greet", domain="user", content="x", colour="red")
    assert error.code == -32602
    assert "colour" in error.data["fields"]


@each(
    ("tool", "content", "places"),
    [
        ("subcog_prompts", "a {{b} c\n}} {{1x}}", [(2, 1, 3), (9, 2, 1), (12, 2, 4)]),
        ("subcog_prompts", "{{}}", [(0, 1, 1)]),
        ("subcog_prompts", "ä\n☃ {{system_prompt}}", [(4, 2, 3)]),
        ("subcog_templates", "{{#each memories}}\n{{#if x}}\n{{/each}}", [(19, 2, 1)]),
        ("subcog_templates", "{{/if}}", [(0, 1, 1)]),
        ("subcog_templates", "a {{x | shout}}", [(8, 1, 9)]),
    ],
)
def test_every_fault_of_a_content_is_told_with_its_place(
    caller: Caller, tool: str, content: str, places: list[tuple[int, int, int]]
) -> None:
    error = caller.refused(tool, action="save", name="new", content=content)
    assert (error.code, error.data["error"], error.data["field"]) == (-32602, "ContentSyntaxError", "content")
    faults = error.data["faults"]
    assert [(one["position"], one["line"], one["column"]) for one in faults] == places
    assert all(one["message"] for one in faults)
    assert all(f"ine {one['line']}, column {one['column']}" in error.message for one in faults)


def test_a_hostile_content_has_no_end_of_faults_and_the_answer_has_one(caller: Caller) -> None:
    for tool in ("subcog_prompts", "subcog_templates"):
        error = caller.refused(tool, action="save", name="new", content="{{ " * 60_000)
        assert error.code == -32602
        assert 0 < len(error.data["faults"]) <= 100
        assert len(error.model_dump_json()) < 20_000
