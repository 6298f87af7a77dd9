"""How the context tools fail: the documented form and codes, in both protocols; what is refused changes nothing."""

from collections.abc import Iterator
from contextlib import ExitStack
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pytest

from cases import each
from cortex_py import Cortex
from cortex_py.core.embedding.backends.backend import Backend
from cortex_py.core.errors import WIRE_FORMS
from cortex_py.surfaces.mcp.registry import family_tools
from reference_pages import read_words

from clients import CURRENT, MODES, Caller, connected
from helpers import FakeClock
from servers import http_server

# Of the tools for snapshots and sync: test_backup_tools.py.
OF_OTHERS = {"RATE_LIMITED", "NETWORK_ERROR", "SNAPSHOT_NOT_FOUND"}
# Only where the settings ask for a licence: test_license_required.py.
LICENSED = {"LICENSE_REQUIRED"}
# Only where callers are known: tests/http/test_known_callers.py.
SCOPED = {"ACCESS_DENIED"}
DOCUMENTED = {"PROJECT_NOT_FOUND", "BRANCH_NOT_FOUND", "INVALID_PARAMS", "STORAGE_ERROR", *LICENSED, "NETWORK_ERROR"}
ADDED = {"CONTEXT_NOT_FOUND", "SESSION_NOT_FOUND", "SESSION_CLOSED", *SCOPED}

NOWHERE = "0" * 40
TOKEN = "ghp_" + "1a2B3c4D5e" * 3 + "6F7g8h"

Arguments = dict[str, Any]

# A call of each tool that succeeds; a word after $ stands for what the fixture prepared.
GOOD: dict[str, Arguments] = {
    "initialize_context": {"project_path": "$path", "mode": "none"},
    "create_branch": {"project_id": "$project", "branch_topic": "Prices", "parent_branch": "$branch"},
    "update_memory": {"project_id": "$project", "branch_id": "$branch", "content": "Use tabs", "role": "user"},
    "verify_response": {"project_id": "$project", "response_text": "Use tabs", "evidence_sources": ["README.md"]},
    "get_active_summary": {"project_id": "$project", "branch_id": "$branch", "max_tokens": 100},
    "search_context": {
        "project_id": "$project",
        "query": "tabs",
        "top_k": 3,
        "filter_category": "bug_fix",
        "min_score": 0.5,
        "max_tokens": 100,
    },
    "load_context": {"project_id": "$project", "branch_id": "$branch", "context_id": "$twin"},
    "suggest_contexts": {"project_id": "$project", "current_context": "Use tabs", "top_k": 3},
    "accept_suggestions": {"project_id": "$project", "session_id": "$session", "context_ids": [NOWHERE]},
    "reject_suggestions": {"project_id": "$project", "session_id": "$session", "reason": "not relevant"},
    "get_automation_status": {"project_id": "$project"},
    "get_context_graph_info": {"project_id": "$project", "branch_id": "$branch"},
    "link_git_branch": {"project_id": "$project", "cortex_branch_id": "$branch", "git_branch_name": "main"},
}
READING = (
    "verify_response",
    "get_active_summary",
    "search_context",
    "load_context",
    "get_automation_status",
    "get_context_graph_info",
)
NUMBERS = {"top_k", "min_score", "max_tokens"}
OPTIONAL = {"mode", "parent_branch", "top_k", "filter_category", "min_score", "max_tokens", "evidence_sources"} | {
    # Of one tool only.
    ("get_context_graph_info", "branch_id")
}


@dataclass(frozen=True)
class Bad:
    """A call that fails: its code, and what `details` names."""

    tool: str
    arguments: Arguments
    code: str
    named: str


def _changed(tool: str, code: str, named: str, **changes: Any) -> Bad:
    """A good call with some arguments changed."""
    return Bad(tool, {**GOOD[tool], **changes}, code, named)


def _unfit() -> Iterator[tuple[str, Bad]]:
    """Arguments that do not fit the schema: each missing, each of the wrong type, one too many."""
    for tool, good in GOOD.items():
        yield f"{tool} with a stranger", _changed(tool, "INVALID_PARAMS", "surprise", surprise=1)
        for name in good:
            rest = {key: value for key, value in good.items() if key != name}
            if name not in OPTIONAL and (tool, name) not in OPTIONAL:
                yield f"{tool} without {name}", Bad(tool, rest, "INVALID_PARAMS", name)
                yield f"{tool} with null {name}", _changed(tool, "INVALID_PARAMS", name, **{name: None})
            for wrong in ("many",) if name in NUMBERS else (7, True):
                yield f"{tool} with {name} {wrong}", _changed(tool, "INVALID_PARAMS", name, **{name: wrong})
            for wrong in ([good[name]], {"value": good[name]}):
                yield (
                    f"{tool} with {name} {type(wrong).__name__}",
                    _changed(tool, "INVALID_PARAMS", name, **{name: wrong}),
                )


def _unknown() -> Iterator[tuple[str, Bad]]:
    """Ids of nothing."""
    for tool, good in GOOD.items():
        if "project_id" in good:
            for project in ("000000000000", "", "$project2", "../..", "PROJECT"):
                code = "PROJECT_NOT_FOUND"
                yield f"{tool} in project {project!r}", _changed(tool, code, "project_id", project_id=project)
        for name in {"branch_id", "cortex_branch_id", "parent_branch"} & good.keys():
            for branch in ("nowhere", "$part", "active", "$theirs", "../x"):
                code = "BRANCH_NOT_FOUND"
                yield f"{tool} with {name} {branch}", _changed(tool, code, name, **{name: branch})
    for id in (
        NOWHERE,
        f"context_{NOWHERE}",
        NOWHERE[:8],
        f"subcog://project/decisions/{NOWHERE}",
        "$other",
        "$deleted",
    ):
        yield f"load of {id}", _changed("load_context", "CONTEXT_NOT_FOUND", "context_id", context_id=id)
    for tool in ("accept_suggestions", "reject_suggestions"):
        for session in ("suggestion_session_000000000000", "", "../x", "$branch"):
            code = "SESSION_NOT_FOUND"
            yield f"{tool} of {session!r}", _changed(tool, code, "session_id", session_id=session)
        # What the fixture asked for is long ago.
        yield f"{tool} of an expired session", _changed(tool, "SESSION_CLOSED", "session_id")
    yield (
        "load of theirs",
        _changed("load_context", "CONTEXT_NOT_FOUND", "context_id", branch_id="", context_id="$their_context"),
    )


VALUES: dict[str, tuple[str, Arguments]] = {
    "unknown mode": ("initialize_context", {"mode": "deep"}),
    "relative path": ("initialize_context", {"project_path": "project"}),
    "path of here": ("initialize_context", {"project_path": "."}),
    "home of nobody": ("initialize_context", {"project_path": "~nobody-of-that-name"}),
    "empty path": ("initialize_context", {"project_path": ""}),
    "path of nothing": ("initialize_context", {"project_path": "/nowhere/at/all"}),
    "path of nobody": ("initialize_context", {"project_path": "~nobody-of-this-name/project"}),
    "path with a null byte": ("initialize_context", {"project_path": "/tmp/\0"}),
    "path too long": ("initialize_context", {"project_path": "/x" * 5000}),
    "empty topic": ("create_branch", {"branch_topic": " \n"}),
    "topic too long": ("create_branch", {"branch_topic": "x" * 201}),
    "empty content": ("update_memory", {"content": " \n"}),
    "content too large": ("update_memory", {"content": "x" * 2001}),
    "secret": ("update_memory", {"content": f"Deploy with {TOKEN} from the runner"}),
    "unknown role": ("update_memory", {"role": "system"}),
    "answer too long": ("verify_response", {"response_text": "x" * 1_000_001}),
    "empty source": ("verify_response", {"evidence_sources": ["README.md", " "]}),
    "too many sources": ("verify_response", {"evidence_sources": ["README.md"] * 101}),
    "source too long": ("verify_response", {"evidence_sources": ["x" * 501]}),
    "no tokens for a summary": ("get_active_summary", {"max_tokens": 0}),
    "empty query": ("search_context", {"query": " "}),
    "none wanted": ("search_context", {"top_k": 0}),
    "fewer than none wanted": ("search_context", {"top_k": -1}),
    "too many wanted": ("search_context", {"top_k": 1001}),
    "half of one wanted": ("search_context", {"top_k": 1.5}),
    "score above all": ("search_context", {"min_score": 2}),
    "score below all": ("search_context", {"min_score": -0.1}),
    "unknown category": ("search_context", {"filter_category": "gardening"}),
    "empty category": ("search_context", {"filter_category": ""}),
    "no tokens for results": ("search_context", {"max_tokens": -5}),
    "empty task": ("suggest_contexts", {"current_context": " "}),
    "task too long": ("suggest_contexts", {"current_context": "x" * 10_001}),
    "no suggestion wanted": ("suggest_contexts", {"top_k": 0}),
    "too many suggestions wanted": ("suggest_contexts", {"top_k": 51}),
    "nothing taken": ("accept_suggestions", {"context_ids": []}),
    "no reason": ("reject_suggestions", {"reason": " "}),
    "no id": ("load_context", {"context_id": "the one about tabs"}),
    "id too short": ("load_context", {"context_id": "context_0000000"}),
    "id too long": ("load_context", {"context_id": NOWHERE + "0"}),
    **{
        f"git branch {name!r}": ("link_git_branch", {"git_branch_name": name})
        for name in (
            "",
            "a b",
            "a..b",
            "-x",
            "/x",
            "x/",
            "x.lock",
            "HEAD",
            "@",
            "a~1",
            "a:b",
            "a\\b",
            "x" * 300,
            "a\0b",
        )
    },
}

BAD: dict[str, Bad] = {
    **dict(_unfit()),
    **dict(_unknown()),
    **{
        name: _changed(tool, "INVALID_PARAMS", next(iter(changes)), **changes)
        for name, (tool, changes) in VALUES.items()
    },
}


@dataclass(frozen=True)
class Prepared:
    mcp: str
    home: Path
    names: dict[str, str]

    def filled(self, arguments: Arguments) -> Arguments:
        """The arguments with what their words stand for, also inside lists and objects."""
        return {name: self._filled(value) for name, value in arguments.items()}

    def _filled(self, value: Any) -> Any:
        return self.names.get(value[1:], value) if isinstance(value, str) and value.startswith("$") else value


@pytest.fixture(scope="module")
def prepared(tmp_path_factory: pytest.TempPathFactory, model: Backend) -> Iterator[Prepared]:
    """A running server over two projects; in one, two contexts whose ids begin alike."""
    folder = tmp_path_factory.mktemp("prepared")
    home, here, there = folder / "home", folder / "here", folder / "there"
    here.mkdir()
    there.mkdir()
    clock = FakeClock()
    with Cortex.open(home, project=here, clock=clock, backend=model) as cortex:
        contexts = cortex.contexts
        branch, other = contexts.create_branch("Layout"), contexts.create_branch("Other")
        first = contexts.append(branch.id, "Use tabs", "user").memory.id
        clock.repeat_prefix()
        twins = [first, contexts.append(branch.id, "Use spaces", "user").memory.id]
        elsewhere = contexts.append(other.id, "Use neither", "user").memory
        deleted = contexts.append(branch.id, "Use both", "user").memory
        cortex.memories.delete(deleted.id)
        session = cortex.suggestions.suggest("Use tabs").session_id
        second = contexts.initialize(there, "none").project
        theirs = contexts.create_branch("Theirs", project_id=second.id)
        their_context = contexts.append(theirs.id, "Use none of ours", "user", project_id=second.id).memory
        names = {
            "path": str(here),
            "project": contexts.project.id,
            "project2": contexts.project.id[:8],
            "branch": branch.id,
            "part": branch.id[:-1],
            "theirs": theirs.id,
            "twin": twins[0],
            "twin2": twins[1],
            "other": elsewhere.id,
            "deleted": deleted.id,
            "their_context": their_context.id,
            "session": session,
        }
    with http_server(home, here, CORTEX_SECRETS="block", CORTEX_MAX_CONTENT_BYTES="2000") as server:
        yield Prepared(server.mcp, home, names)


# Each is connected once; a fixture of the module with these as its parameters would be made anew at every change.
@pytest.fixture(scope="module")
def callers(prepared: Prepared) -> Iterator[dict[str, Caller]]:
    with ExitStack() as stack:
        yield {mode: stack.enter_context(connected(prepared.mcp, mode)) for mode in MODES}


@pytest.fixture(params=[CURRENT])
def client(callers: dict[str, Caller], request: pytest.FixtureRequest) -> Caller:
    return callers[request.param]


@pytest.fixture(scope="module")
def untouched(callers: dict[str, Caller], prepared: Prepared) -> Any:
    """What there was before any call: nothing that is asked here changes it."""
    return _state(callers["auto"], prepared)


def _state(client: Caller, prepared: Prepared) -> Any:
    """All that a call could have changed."""
    files = {file: file.read_bytes() for file in prepared.home.joinpath("memory").rglob("*.md")}
    graph = client.call("get_context_graph_info", project_id=prepared.names["project"])
    return files, graph, client.call("subcog_recall", detail="everything"), client.call("subcog_status")


def _is_told(told: dict[str, Any], code: str, named: str) -> None:
    assert told.keys() == {"success", "error", "error_code", "details"}
    assert (told["success"], told["error_code"]) == (False, code)
    assert told["error"]
    assert named in told["details"], told


def test_every_code_is_produced() -> None:
    # What fails without the caller's doing is in test_context_faults.py.
    produced = {bad.code for bad in BAD.values()} | LICENSED | SCOPED | {"STORAGE_ERROR"}
    assert produced | {"NETWORK_ERROR"} == DOCUMENTED | ADDED
    assert {form.cortex for _, form in WIRE_FORMS} == produced | OF_OTHERS
    assert set(read_words()["errors"]) == produced | OF_OTHERS


def test_every_tool_and_every_argument_is_tried(client: Caller, prepared: Prepared, untouched: Any) -> None:
    listed = {tool.name: tool.input_schema for tool in client.portal.call(client.client.list_tools)}
    assert GOOD.keys() == {spec.name for spec in family_tools("context")}
    for tool, good in GOOD.items():
        assert good.keys() == listed[tool]["properties"].keys()
        tried = {bad.named for bad in BAD.values() if bad.tool == tool}
        assert tried >= good.keys()
    for tool in ("initialize_context", *READING):
        assert client.call(tool, **prepared.filled(GOOD[tool]))["success"] is True
    assert _state(client, prepared) == untouched


# All of them in one protocol; in the other the first of each tool with each code, for it is the same code that answers.
_FIRST = {(bad.tool, bad.code): name for name, bad in reversed(BAD.items())}
_TRIED = [("auto", name) for name in BAD] + [("legacy", name) for name in _FIRST.values()]


@pytest.mark.slow
@each(("mode", "tool"), sorted({(mode, BAD[name].tool) for mode, name in _TRIED}))
def test_a_bad_call_is_refused_and_changes_nothing(
    callers: dict[str, Caller], prepared: Prepared, untouched: Any, mode: str, tool: str
) -> None:
    client = callers[mode]
    for name in [name for tried, name in _TRIED if tried == mode and BAD[name].tool == tool]:
        told = client.failed(tool, **prepared.filled(BAD[name].arguments))
        _is_told(told, BAD[name].code, BAD[name].named)
        assert TOKEN not in str(told)
    assert _state(client, prepared) == untouched


def test_a_prefix_of_several_ids_names_the_candidates(client: Caller, prepared: Prepared) -> None:
    twins = [prepared.names["twin"], prepared.names["twin2"]]
    told = client.failed("load_context", **prepared.filled(GOOD["load_context"] | {"context_id": twins[0][:8]}))
    _is_told(told, "INVALID_PARAMS", "AmbiguousId in context_id.")
    assert all(twin in told["details"] for twin in twins)


def test_current_names_the_servers_own_project(client: Caller, prepared: Prepared, untouched: Any) -> None:
    for tool in READING:
        arguments = prepared.filled(GOOD[tool] | {"project_id": "current"})
        assert client.call(tool, **arguments)["success"] is True, tool
    assert client.call("list_snapshots", project_id="current")["success"] is True
    assert _state(client, prepared) == untouched


def test_a_context_of_another_branch_says_where_it_is(client: Caller, prepared: Prepared) -> None:
    told = client.failed("load_context", **prepared.filled(GOOD["load_context"] | {"context_id": "$other"}))
    assert "belongs to 'other_" in told["error"]
    assert "branch_id that search_context shows" in told["details"]


def test_a_refused_secret_is_named_by_its_kind(client: Caller, prepared: Prepared) -> None:
    given = prepared.filled(GOOD["update_memory"] | {"content": f"It is {TOKEN}"})
    _is_told(client.failed("update_memory", **given), "INVALID_PARAMS", "Kinds: github-token.")
