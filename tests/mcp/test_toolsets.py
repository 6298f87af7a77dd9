"""Which tools are served: every source bounds the list, none widens what another allows, under either spelling."""

import json
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st
from mcp.server.lowlevel import Server
from mcp.shared.exceptions import MCPError
from mcp_types import CallToolRequestParams

from cases import each
from cortex_py.core.config import ToolBound, load_settings
from cortex_py.core.errors import ConfigurationError
from cortex_py.surfaces.mcp.calls import ToolCalls, make_tool
from cortex_py.surfaces.mcp.families.answer import Answer
from cortex_py.surfaces.mcp.registry import EVERY_TOOL, TOOLS, TOOLSETS, ToolSpec, select_tools

from clients import MODES, connected, stdio_transport

SPECS = [
    ToolSpec("notes", "read", "Read", "Read a note.", ("core", "memory"), read_only=True),
    ToolSpec("notes", "write", "Write", "Write a note.", ("core", "memory")),
    ToolSpec("notes", "clean", "Clean", "Throw notes away.", ("memory",), destructive=True),
    ToolSpec("graph", "graph.show", "Show", "Show the graph.", ("graph",), read_only=True),
    ToolSpec("graph", "graph.link", "Link", "Link two notes.", ("graph",)),
]
NAMES = ["read", "write", "clean", "graph.show", "graph.link"]

Given = dict[str, Any]
SOURCES = ("file", "environment", "flags")


def _served(
    home: Path,
    specs: Sequence[ToolSpec] = SPECS,
    *,
    file: Given | None = None,
    environment: Given | None = None,
    flags: Given | None = None,
) -> list[str]:
    """The tools that these settings leave, in order."""
    home.mkdir(exist_ok=True)
    lines = [f"{name} = {json.dumps(value)}" for name, value in (file or {}).items()]
    (home / "config.toml").write_text("\n".join(lines), "utf-8")
    variables = {f"CORTEX_{name.upper()}": _spelled(value) for name, value in (environment or {}).items()}
    spelled = {name: value if value is True else _spelled(value) for name, value in (flags or {}).items()}
    settings = load_settings(home, environment=variables, **spelled)
    return [spec.name for spec in select_tools(specs, settings.tool_bounds)]


def _spelled(value: Any) -> str:
    return ",".join(value) if isinstance(value, list) else str(value)


@pytest.fixture(params=SOURCES)
def source(request: pytest.FixtureRequest) -> str:
    return str(request.param)


def test_without_a_bound_all_tools_are_served(home: Path) -> None:
    assert _served(home) == NAMES


@pytest.mark.parametrize(
    ("given", "left"),
    [
        ({"toolsets": ["core"]}, ["read", "write"]),
        ({"toolsets": ["memory"]}, ["read", "write", "clean"]),
        ({"toolsets": ["core", "graph"]}, ["read", "write", "graph.show", "graph.link"]),
        ({"toolsets": ["backup"]}, []),
        ({"toolsets": ["backup", "all"]}, NAMES),
        ({"tools": ["graph.link", "read"]}, ["read", "graph.link"]),
        ({"toolsets": ["core"], "tools": ["clean"]}, ["read", "write", "clean"]),
        ({"exclude_tools": ["clean"]}, ["read", "write", "graph.show", "graph.link"]),
        ({"exclude_tools": ["graph_show", "graph.link"]}, ["read", "write", "clean"]),
        ({"tools": ["clean", "read"], "exclude_tools": ["clean"]}, ["read"]),
        ({"toolsets": ["core"], "exclude_tools": ["write"]}, ["read"]),
        ({"toolsets": ["all"], "exclude_tools": NAMES}, []),
        ({"read_only": True}, ["read", "graph.show"]),
        ({"read_only": True, "toolsets": ["core"]}, ["read"]),
        ({"read_only": True, "tools": ["clean"]}, []),
    ],
)
def test_each_source_bounds_the_tools(home: Path, source: str, given: Given, left: list[str]) -> None:
    assert _served(home, **{source: given}) == left


@pytest.mark.parametrize(
    ("earlier", "later", "left"),
    [
        ({"toolsets": ["core"]}, {"toolsets": ["all"]}, ["read", "write"]),
        ({"toolsets": ["core"]}, {"toolsets": ["memory"]}, ["read", "write"]),
        ({"toolsets": ["core"]}, {"tools": ["clean"]}, []),
        ({"toolsets": ["core"]}, {"tools": ["clean", "read"]}, ["read"]),
        ({"toolsets": ["core"]}, {"exclude_tools": ["write"]}, ["read"]),
        ({"tools": ["read"]}, {"toolsets": ["all"], "tools": ["clean"]}, ["read"]),
        ({"exclude_tools": ["clean"]}, {"tools": ["clean"]}, []),
        ({"read_only": True}, {"tools": ["clean", "read"]}, ["read"]),
        ({"toolsets": ["graph"]}, {"toolsets": ["core"]}, []),
    ],
)
@pytest.mark.parametrize("sources", [("file", "environment"), ("file", "flags"), ("environment", "flags")])
def test_a_later_source_narrows_and_never_widens(
    home: Path, sources: tuple[str, str], earlier: Given, later: Given, left: list[str]
) -> None:
    assert _served(home, **{sources[0]: earlier, sources[1]: later}) == left
    assert _served(home, **{sources[0]: later, sources[1]: earlier}) == left


def test_a_switch_cannot_be_taken_back(home: Path) -> None:
    assert _served(home, file={"read_only": True}, environment={"read_only": "false"}) == ["read", "graph.show"]


def test_all_three_sources_bound_together(home: Path) -> None:
    left = _served(
        home,
        file={"toolsets": ["memory", "graph"]},
        environment={"exclude_tools": ["graph.show"]},
        flags={"read_only": True},
    )
    assert left == ["read"]


@pytest.mark.parametrize("name", ["tools", "exclude_tools"])
def test_an_unknown_tool_is_an_error_that_names_the_known_ones(home: Path, source: str, name: str) -> None:
    with pytest.raises(ConfigurationError, match="Unknown tool 'teleport'") as caught:
        _served(home, **{source: {name: ["read", "teleport"]}})
    assert caught.value.field == "tools"
    assert caught.value.remedy == "Known: clean, graph.link, graph.show, graph_link, graph_show, read, write."


def test_an_unknown_toolset_is_an_error_that_names_the_known_ones(home: Path, source: str) -> None:
    with pytest.raises(ConfigurationError, match="Unknown toolset 'everything'") as caught:
        _served(home, **{source: {"toolsets": ["core", "everything"]}})
    assert caught.value.field == "toolsets"
    assert (
        caught.value.remedy
        == "Known: all, backup, context, core, embedding, graph, legacy, memory, memory-tool, prompts."
    )


def test_an_unknown_name_is_told_even_where_another_source_leaves_nothing(home: Path) -> None:
    with pytest.raises(ConfigurationError):
        _served(home, file={"toolsets": ["backup"]}, flags={"tools": ["teleport"]})


def test_every_toolset_is_known_and_every_tool_is_in_one() -> None:
    assert TOOLSETS == ("core", "context", "memory", "graph", "prompts", "embedding", "backup", "legacy", "memory-tool")
    assert all(spec.toolsets and set(spec.toolsets) <= set(TOOLSETS) for spec in EVERY_TOOL)


LEGACY = ["prompt_save", "prompt_list", "prompt_get", "prompt_run", "prompt_delete"]
SAVED_TEXTS = ["subcog_prompts", "subcog_templates"]


@pytest.mark.parametrize(
    ("given", "left"),
    [
        ({"toolsets": ["prompts"]}, SAVED_TEXTS),
        ({"toolsets": ["legacy"]}, LEGACY),
        ({"toolsets": ["legacy", "prompts"]}, [*SAVED_TEXTS, *LEGACY]),
        ({"toolsets": ["prompts"], "exclude_tools": ["subcog_templates"]}, ["subcog_prompts"]),
        ({"toolsets": ["prompts"], "tools": ["prompt_run"]}, [*SAVED_TEXTS, "prompt_run"]),
        ({"toolsets": ["legacy"], "exclude_tools": ["prompt_run", "prompt_delete"]}, LEGACY[:3]),
        ({"toolsets": ["legacy"], "read_only": True}, ["prompt_list", "prompt_get"]),
        ({"toolsets": ["prompts"], "read_only": True}, []),
    ],
)
def test_prompts_and_their_deprecated_tools_are_sets_of_their_own(
    home: Path, source: str, given: Given, left: list[str]
) -> None:
    assert _served(home, TOOLS, **{source: given}) == left


TIDYING = ["subcog_consolidate", "subcog_enrich"]


@pytest.mark.parametrize(
    ("given", "left"),
    [
        ({"toolsets": ["memory"]}, TIDYING),
        ({"toolsets": ["core"]}, []),
        ({"toolsets": ["core"], "tools": ["subcog_enrich"]}, ["subcog_enrich"]),
        ({"toolsets": ["memory"], "exclude_tools": ["subcog_consolidate"]}, ["subcog_enrich"]),
        ({"toolsets": ["memory"], "read_only": True}, []),
    ],
)
def test_tidying_is_for_memory_and_not_for_the_core(home: Path, source: str, given: Given, left: list[str]) -> None:
    assert [name for name in _served(home, TOOLS, **{source: given}) if name in TIDYING] == left


def test_all_tools_are_the_deprecated_ones_too(home: Path) -> None:
    everything = [spec.name for spec in TOOLS]
    assert _served(home, TOOLS) == _served(home, TOOLS, flags={"toolsets": ["all"]}) == everything
    assert set(LEGACY) <= set(everything)
    without = [name for name in TOOLSETS if name != "legacy"]
    assert _served(home, TOOLS, flags={"toolsets": without}) == [name for name in everything if name not in LEGACY]


@each(
    ("given", "is_served"),
    [
        ({}, False),
        ({"toolsets": ["all"]}, False),
        ({"toolsets": ["memory"]}, False),
        ({"exclude_tools": ["memory"]}, False),
        ({"toolsets": ["all", "memory-tool"]}, True),
        ({"toolsets": ["memory-tool"]}, True),
        ({"tools": ["memory"]}, True),
        ({"toolsets": ["memory-tool"], "exclude_tools": ["memory"]}, False),
        ({"toolsets": ["memory-tool"], "read_only": True}, False),
    ],
)
def test_the_tool_for_files_must_be_asked_for(home: Path, source: str, given: Given, is_served: bool) -> None:
    assert ("memory" in _served(home, EVERY_TOOL, **{source: given})) == is_served
    assert "memory" not in _served(home, EVERY_TOOL, file={"toolsets": ["core"]}, flags={"tools": ["memory"]})


BOUNDS = st.builds(
    ToolBound,
    toolsets=st.lists(st.sampled_from([*TOOLSETS, "all"]), max_size=3).map(tuple),
    tools=st.lists(st.sampled_from(NAMES), max_size=4).map(tuple),
    exclude_tools=st.lists(st.sampled_from(NAMES), max_size=4).map(tuple),
    read_only=st.booleans(),
)


@given(st.lists(BOUNDS, max_size=4), BOUNDS)
def test_every_further_bound_only_narrows(bounds: list[ToolBound], further: ToolBound) -> None:
    before, after = select_tools(SPECS, bounds), select_tools(SPECS, [*bounds, further])
    alone = select_tools(SPECS, [further])
    assert after == [spec for spec in before if spec in alone]
    assert after == select_tools(SPECS, [further, *bounds])
    assert not {spec.name for spec in after}.intersection(further.exclude_tools)
    assert not further.read_only or all(spec.read_only for spec in after)


# -- the other spelling ----------------------------------------------------------------------------


class Greeting(Answer):
    text: str


def _greet(name: str = "you") -> Greeting:
    return Greeting(text=f"Hello {name}")


DOTTED = ToolSpec("greeting", "greeting.say", "Greet", "Say hello to somebody.", ("core",), read_only=True)


def _greeter(specs: list[ToolSpec], *, portable: bool) -> Server[Any]:
    calls = ToolCalls(make_tool(spec, _greet, portable=portable) for spec in specs)
    server: Server[Any] = Server("greeter", on_list_tools=calls.list)
    server.add_request_handler("tools/call", CallToolRequestParams, calls.answer)
    return server


@each("mode", MODES)
@each(("portable", "listed"), [(True, "greeting_say"), (False, "greeting.say")])
def test_a_dotted_tool_is_listed_as_asked_and_called_by_both_names(mode: str, portable: bool, listed: str) -> None:
    with connected(_greeter([DOTTED], portable=portable), mode) as caller:
        assert [tool.name for tool in caller.portal.call(caller.client.list_tools)] == [listed]
        assert caller.call("greeting_say") == {"text": "Hello you"}
        assert caller.call("greeting.say", name="Zoë") == {"text": "Hello Zoë"}
        error = caller.refused("greeting.say", title="Dr")
        assert (error.code, error.data["field"]) == (-32602, "title")
        assert caller.refused("greeting-say").code == -32601


@pytest.mark.parametrize("mode", MODES)
def test_an_excluded_dotted_tool_answers_to_neither_name(mode: str) -> None:
    with connected(_greeter([], portable=True), mode) as caller:
        for name in DOTTED.spellings:
            assert (caller.refused(name).code, caller.refused(name).data) == (-32601, {"tool": name})


@pytest.mark.parametrize("name", ["greeting_say", "greeting.say"])
def test_a_dotted_tool_is_chosen_and_excluded_by_both_names(name: str) -> None:
    assert select_tools([DOTTED], [ToolBound(tools=(name,))]) == [DOTTED]
    assert select_tools([DOTTED], [ToolBound(exclude_tools=(name,))]) == []


# -- a real server ---------------------------------------------------------------------------------


@pytest.mark.parametrize("mode", MODES)
def test_a_server_process_heeds_file_environment_and_flags(home: Path, project: Path, mode: str) -> None:
    home.mkdir()
    (home / "config.toml").write_text('toolsets = ["core"]\n', "utf-8")
    options = ("--exclude-tools", "subcog_delete", "--toolsets", "all")
    variables = {"CORTEX_TOOLS": "subcog_gc,subcog_get,subcog_delete,subcog_status"}
    with connected(stdio_transport(home, project, *options, **variables), mode) as caller:
        # The first list comes from the front, the second from the server that has loaded meanwhile.
        early = [tool.name for tool in caller.portal.call(caller.client.list_tools)]
        assert caller.call("subcog_status")["statistics"]["total_count"] == 0
        late = [tool.name for tool in caller.portal.call(caller.client.list_tools)]
        assert early == late == ["subcog_get", "subcog_status"]
        for name in ("subcog_delete", "subcog_gc", "subcog_capture"):
            error = caller.refused(name, memory_id="0" * 40)
            assert (error.code, error.data) == (-32601, {"tool": name})


@pytest.mark.parametrize("mode", MODES)
def test_a_server_process_that_only_reads_has_two_of_the_deprecated_tools(home: Path, project: Path, mode: str) -> None:
    with connected(stdio_transport(home, project, "--toolsets", "prompts,legacy", "--read-only"), mode) as caller:
        listed = [tool.name for tool in caller.portal.call(caller.client.list_tools)]
        assert listed == ["prompt_list", "prompt_get"]
        assert caller.call("prompt_get", name="start-session")["prompt"]["domain"] == "builtin"
        for name in ("prompt_run", "subcog_prompts"):
            assert caller.refused(name, action="run", name="start-session").code == -32601


def test_a_server_process_with_an_unknown_tool_says_so_to_its_client(home: Path, project: Path) -> None:
    with (
        pytest.raises(MCPError, match=r"Unknown tool 'subcog_teleport'.*subcog_capture") as caught,
        connected(stdio_transport(home, project, "--tools", "subcog_teleport"), "legacy"),
    ):
        pass
    assert caught.value.error.code == -32602
