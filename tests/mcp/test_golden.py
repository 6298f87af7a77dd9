"""What each tool says of itself is pinned, and what it answers is what it says.

`CORTEX_WRITE_GOLDEN=1 pytest tests/mcp/test_golden.py` writes the pinned definitions again.
"""

import json
import os
import re
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from jsonschema import Draft202012Validator

from cortex_py import Cortex
from cortex_py.surfaces.mcp.registry import TOOLS, ToolSpec
from cortex_py.surfaces.mcp.server import build_server
from llm.chat_server import ChatServer, refusal

from clients import MODES, Caller, connected
from helpers import git
from stub_backend import StubBackend

GOLDEN = Path(__file__).with_name("golden")
# Read now: no variable of this kind reaches a test.
WRITE = bool(os.environ.get("CORTEX_WRITE_GOLDEN"))
# Tools that ask a language model or the target of sync where one is configured for what they do.
REACHING_OUT = (
    "subcog_consolidate",
    "subcog_enrich",
    "subcog_entities",
    "subcog_relationships",
    "update_memory",
    "verify_response",
    "sync_to_cloud",
    "sync_from_cloud",
)
PINNED = ("name", "title", "description", "inputSchema", "outputSchema", "annotations")

Definition = dict[str, Any]


@pytest.fixture(scope="module")
def listed(tmp_path_factory: pytest.TempPathFactory) -> dict[str, dict[str, Definition]]:
    """The definitions as each protocol lists them, by mode and name."""
    home, project = tmp_path_factory.mktemp("home"), tmp_path_factory.mktemp("project")
    found = {}
    with Cortex.open(home, project=project, backend=StubBackend()) as cortex:
        for mode in MODES:
            with connected(build_server(cortex), mode) as caller:
                tools = caller.portal.call(caller.client.list_tools)
            found[mode] = {tool.name: tool.model_dump(by_alias=True, mode="json", exclude_none=True) for tool in tools}
    return found


@pytest.fixture(params=TOOLS, ids=lambda spec: spec.name)
def spec(request: pytest.FixtureRequest) -> ToolSpec:
    return request.param  # type: ignore[no-any-return]


@pytest.fixture
def definition(listed: dict[str, dict[str, Definition]], spec: ToolSpec) -> Definition:
    return listed["auto"][spec.name]


def _file(name: str) -> Path:
    return GOLDEN / f"{name}.json"


def test_a_definition_is_the_pinned_one(definition: Definition) -> None:
    file, now = _file(definition["name"]), {key: definition.get(key) for key in PINNED}
    if WRITE:
        GOLDEN.mkdir(exist_ok=True)
        file.write_text(json.dumps(now, indent=2, ensure_ascii=False) + "\n", "utf-8")
    assert file.exists(), f"{file.name} is missing: pin the new tool with CORTEX_WRITE_GOLDEN=1"
    assert now == json.loads(file.read_text("utf-8"))


def test_only_tools_that_exist_are_pinned() -> None:
    pinned = {file.name.removesuffix(".json"): file for file in GOLDEN.iterdir()}
    for name in pinned.keys() - {spec.name for spec in TOOLS}:
        if WRITE:
            pinned.pop(name).unlink()
    assert pinned.keys() - {spec.name for spec in TOOLS} == set()


def test_both_protocols_list_the_same_tools_in_the_same_order(listed: dict[str, dict[str, Definition]]) -> None:
    assert list(listed["legacy"]) == [spec.name for spec in TOOLS]
    assert list(listed["auto"]) == [spec.name for spec in TOOLS]
    assert listed["legacy"] == listed["auto"]


def test_arguments_are_closed_and_plain(definition: Definition) -> None:
    schema = definition["inputSchema"]
    Draft202012Validator.check_schema(schema)
    assert schema["type"] == "object"
    assert schema["additionalProperties"] is False
    assert not {"anyOf", "oneOf", "allOf", "not", "if", "$ref", "$defs"} & schema.keys()
    assert all("type" in argument for argument in schema["properties"].values())
    assert set(schema.get("required", [])) <= schema["properties"].keys()


def test_answers_are_closed_objects(definition: Definition) -> None:
    schema = definition["outputSchema"]
    Draft202012Validator.check_schema(schema)
    assert not {"anyOf", "oneOf", "allOf", "$ref", "$defs"} & schema.keys()
    objects = [part for part in _parts(schema) if part.get("type") == "object"]
    assert objects[0] is schema
    assert all(part["additionalProperties"] is not True for part in objects)
    assert all(part["additionalProperties"] is False for part in objects if "properties" in part)


def _parts(schema: Any) -> Iterator[dict[str, Any]]:
    """A schema and all within it."""
    if isinstance(schema, dict):
        yield schema
        schema = list(schema.values())
    if isinstance(schema, list):
        for item in schema:
            yield from _parts(item)


def test_all_four_hints_are_given_and_agree_with_each_other(definition: Definition, spec: ToolSpec) -> None:
    hints = definition["annotations"]
    assert hints.keys() == {"readOnlyHint", "destructiveHint", "idempotentHint", "openWorldHint"}
    assert all(isinstance(hint, bool) for hint in hints.values())
    assert hints["openWorldHint"] is (spec.name in REACHING_OUT)
    assert not (hints["readOnlyHint"] and hints["destructiveHint"])
    assert (hints["readOnlyHint"], hints["destructiveHint"], hints["idempotentHint"]) == (
        spec.read_only,
        spec.destructive,
        spec.idempotent,
    )


def test_what_deletes_says_so_and_what_reads_says_so(listed: dict[str, dict[str, Definition]]) -> None:
    hints = {name: tool["annotations"] for name, tool in listed["auto"].items()}
    assert {name for name, hint in hints.items() if hint["destructiveHint"]} == {
        "subcog_delete",
        "subcog_gc",
        "subcog_consolidate",
        "subcog_entities",
        "subcog_relationships",
        "subcog_prompts",
        "subcog_templates",
        "prompt_delete",
        "restore_snapshot",
    }
    assert {name for name, hint in hints.items() if not hint["readOnlyHint"]} == {
        "create_snapshot",
        "restore_snapshot",
        "sync_to_cloud",
        "sync_from_cloud",
        "subcog_capture",
        "subcog_update",
        "subcog_delete",
        "subcog_restore",
        "subcog_gc",
        "subcog_reindex",
        "subcog_consolidate",
        "subcog_enrich",
        "initialize_context",
        "create_branch",
        "update_memory",
        "suggest_contexts",
        "accept_suggestions",
        "reject_suggestions",
        "link_git_branch",
        "subcog_entities",
        "subcog_relationships",
        "subcog_prompts",
        "subcog_templates",
        "prompt_save",
        "prompt_run",
        "prompt_delete",
    }
    assert {name for name, hint in hints.items() if not hint["idempotentHint"]} == {
        "create_snapshot",
        "restore_snapshot",
        "subcog_capture",
        "subcog_update",
        "subcog_delete",
        "subcog_restore",
        "create_branch",
        "update_memory",
        "suggest_contexts",
        "accept_suggestions",
        "reject_suggestions",
        "subcog_entities",
        "subcog_relationships",
        "subcog_prompts",
        "subcog_templates",
        "prompt_save",
        "prompt_run",
        "prompt_delete",
    }


def test_the_first_sentence_of_a_description_stands_alone(definition: Definition) -> None:
    sentence = re.match(r"(.+?[.])(?:\s|$)", definition["description"])
    assert sentence
    words = sentence[1].split()
    assert words[0][0].isupper()
    assert 3 <= len(words) <= 25
    assert not {"this", "it", "they", "these", "that"} & {word.lower().strip(",.;:") for word in words[:3]}


def test_a_name_is_portable(spec: ToolSpec) -> None:
    assert re.fullmatch(r"[a-zA-Z0-9_-]{1,64}", spec.portable_name)


def test_no_two_tools_share_a_spelling_or_a_title() -> None:
    spellings = [spelling for spec in TOOLS for spelling in spec.spellings]
    titles = [spec.title for spec in TOOLS]
    assert len(spellings) == len(set(spellings))
    assert len(titles) == len(set(titles))


class Checked:
    """Calls tools and holds each answer against what the tool promised."""

    def __init__(self, caller: Caller, definitions: dict[str, Definition]) -> None:
        self._caller = caller
        self._promises = {name: Draft202012Validator(tool["outputSchema"]) for name, tool in definitions.items()}
        self.called: set[str] = set()
        self.fields: dict[str, set[str]] = {}

    def __call__(self, tool: str, **arguments: Any) -> dict[str, Any]:
        result = self._caller.portal.call(self._caller.client.call_tool_mcp, tool, arguments)
        answer = result.structured_content
        self._promises[tool].validate(answer)
        (block,) = result.content
        assert json.loads(block.text) == answer
        assert not result.is_error
        self.called.add(tool)
        self.fields.setdefault(tool, set()).update(_places(answer))
        return answer  # type: ignore[no-any-return]


def _places(answer: Any, place: str = "") -> Iterator[str]:
    """The paths of all fields of an answer, those of a list's items under one name."""
    if isinstance(answer, list):
        for item in answer:
            yield from _places(item, f"{place}[]")
    elif isinstance(answer, dict):
        for name, value in answer.items():
            yield f"{place}.{name}".lstrip(".")
            yield from _places(value, f"{place}.{name}".lstrip("."))


def _promised(schema: dict[str, Any], place: str = "") -> Iterator[str]:
    """The paths of all fields that a schema names."""
    if schema.get("type") == "array":
        yield from _promised(schema["items"], f"{place}[]")
    for name, value in schema.get("properties", {}).items():
        yield f"{place}.{name}".lstrip(".")
        yield from _promised(value, f"{place}.{name}".lstrip("."))


@pytest.mark.parametrize("mode", MODES)
def test_answers_keep_what_the_definitions_promise(
    listed: dict[str, dict[str, Definition]], home: Path, project: Path, mode: str
) -> None:
    git(project, "init", "-q", "-b", "main")
    (project / "README.md").write_text("# Shop\n\nSells `parts.csv` to Zoë.\n", "utf-8")
    git(project, "add", ".")
    git(project, "commit", "-q", "-m", "begin")
    with (
        ChatServer(usual=refusal(403, "not for you")) as model,
        _asking(home, project, model) as cortex,
        connected(build_server(cortex), mode) as caller,
    ):
        call = Checked(caller, listed[mode])
        secret = "ghp_" + "1a2B3c4D5e" * 3 + "6F7g8h"
        note = {
            "content": f"Zoë (zoe@parts-shop.de) deploys with {secret} ☃",
            "namespace": "config",
            "source": "docs/deploy.md",
        }
        id = call("subcog_capture", **note, tags=["deploy", "code review"])["id"]
        again = call("subcog_capture", **note)["id"]
        call("subcog_update", memory_id=id, tags=["deploy"])
        for detail in ("light", "medium", "everything"):
            call("subcog_recall", query="who deploys", detail=detail)
            call("subcog_recall", detail=detail, filter="red")
        cortex.memories.update(id, ttl="1d")
        call("subcog_get", memory_id=id)
        call("subcog_get", memory_id=again)
        call("subcog_history", memory_id=id)
        call("subcog_delete", memory_id=id)
        call("subcog_restore", memory_id=id)
        for tool in ("subcog_status", "subcog_namespaces", "subcog_gc", "subcog_reindex", "subcog_sync"):
            call(tool)
        call("subcog_delete", memory_id=id, hard=True)
        call("embedding.generate", text="hello")
        call("embedding.batch", texts=["hello", "world"])
        call("model.info")
        call("health.status")
        _use_tidying(call)
        _use_contexts(call, project)
        _use_graph(call)
        _use_saved_texts(call, project, secret)
        _use_backups(call, cortex, home)
    assert call.called == {spec.name for spec in TOOLS}
    promised = {name: set(_promised(tool["outputSchema"])) for name, tool in listed[mode].items()}
    seen = call.fields
    for name in [spec.name for spec in TOOLS if "legacy" in spec.toolsets]:
        # The deprecated ones promise together what the tool does that has taken their place.
        assert promised.pop(name) == promised["subcog_prompts"]
        seen["subcog_prompts"] |= seen.pop(name)
    unseen = {name: promised[name] - seen[name] for name in promised if promised[name] - seen[name]}
    # What is wrong is told only when something is, and that a group was skipped only when another was faster. A list of
    # saved texts leaves the contents out, and only a list tells which are hidden. Under plan A nothing asks first.
    # Only a text that is too long to be indexed whole has a warning, and only a search without a model a message.
    # Only a large scan leaves vectors to be computed, and only what a newer memory gave up is outdated.
    assert unseen == {
        "initialize_context": {"pending_outlines", "pending_vectors"},
        "subcog_status": {"statistics.pending_outlines", "statistics.pending_vectors"},
        "get_automation_status": {"held", "requires_confirmation"},
        "subcog_capture": {"warnings"},
        "subcog_consolidate": {"skipped"},
        "subcog_recall": {"message", "results[].outdated_by"},
        "subcog_restore": {"warnings"},
        "subcog_update": {"warnings"},
        "health.status": {"problem"},
        "subcog_prompts": {"prompt.shadowed_by", "prompts[].content"},
        "subcog_templates": {"template.shadowed_by", "templates[].content"},
    }


def _asking(home: Path, project: Path, server: ChatServer) -> Cortex:
    chosen = {"llm_provider": "openai", "llm_model": "some-model", "llm_url": server.url}
    sync = {"cloud_url": str(home.parent / "cloud"), "passphrase": "correct horse battery"}
    return Cortex.open(home, project=project, backend=StubBackend(), **chosen, **sync)


def _use_tidying(call: Checked) -> None:
    """With a language model that refuses: the local method does it, and says why."""
    old = call("subcog_capture", content="Production runs PostgreSQL 15 on three machines", namespace="apis")["id"]
    new = {"content": "Production runs PostgreSQL 16 on three machines", "namespace": "apis"}
    told = call("subcog_capture", **new)
    assert [one["memory_id"] for one in told["conflicts_with"]] == [old]
    newest = call("subcog_capture", **new, supersedes=old)["id"]
    assert call("subcog_get", memory_id=old)["superseded_by"] == newest
    assert call("subcog_get", memory_id=newest)["supersedes"] == [old]
    for dry_run in (True, False):
        call("subcog_consolidate", namespace="apis", dry_run=dry_run)
    for content in ("Cache answers because the API is slow", "Cache answers because the API is very slow"):
        id = call("subcog_capture", content=content, namespace="performance")["id"]
    call("subcog_enrich", memory_id=id, add_context=True)
    call("subcog_status")


def _use_contexts(call: Checked, project: Path) -> None:
    for scan in ("none", "light", "full"):
        id = call("initialize_context", project_path=str(project), mode=scan)["project_id"]
    branch = call("create_branch", project_id=id, branch_topic="Parts")["branch_id"]
    call("create_branch", project_id=id, branch_topic="Prices of parts", parent_branch=branch)
    call("link_git_branch", project_id=id, cortex_branch_id=branch, git_branch_name="main")
    for role in ("user", "assistant"):
        call("update_memory", project_id=id, branch_id="active", content=f"`parts.csv` is for {role}", role=role)
    call("subcog_status")
    said = "Added `parts.csv` with the prices. Are they right? There is no file `parts.csv`. It is in `gone.py`."
    call("verify_response", project_id=id, response_text=said, evidence_sources=["*.csv"])
    call("verify_response", project_id=id, response_text=said)
    call("get_active_summary", project_id=id, branch_id=branch, max_tokens=300)
    found = call("search_context", project_id=id, query="`parts.csv`", min_score=0.0)["results"]
    # The others are for suggestions: what is loaded in the line of work at hand is not suggested in it.
    for one in found[:1]:
        call("load_context", project_id=id, branch_id=one["branch_id"], context_id=one["context_id"])
    call("get_context_graph_info", project_id=id)
    for answer in ("accept", "leave", "reject"):
        told = call("suggest_contexts", project_id=id, current_context="Where are the parts of `parts.csv`?")
        assert told["suggestions"]
        session = {"project_id": id, "session_id": told["session_id"]}
        if answer == "accept":
            call("accept_suggestions", **session, context_ids=[told["suggestions"][0]["context_id"]])
        elif answer == "reject":
            call("reject_suggestions", **session, reason="Those are other parts")
    call("suggest_contexts", project_id=id, current_context="Where are the parts of `parts.csv`?")
    call("get_automation_status", project_id=id)


def _use_backups(call: Checked, cortex: Cortex, home: Path) -> None:
    """With a snapshot that is damaged, another machine that changed the same memory, and one whose copy is damaged."""
    id, project = cortex.project.id, cortex._session.folder
    made = call("create_snapshot", project_id=id, description="now")["snapshot_id"]
    call("restore_snapshot", project_id=id, snapshot_id=made)
    damaged = Path(call("create_snapshot", project_id=id)["snapshot_path"])
    damaged.write_bytes(damaged.read_bytes()[:-1])
    call("list_snapshots", project_id=id)
    rival = call("subcog_capture", content="Both will change this", namespace="context")["id"]
    call("sync_to_cloud", project_id=id)
    cloud = {"cloud_url": cortex.settings.cloud_url, "passphrase": cortex.settings.passphrase}
    for name in ("other", "broken"):
        with Cortex.open(home.parent / name, project=project or ".", backend=StubBackend(), **cloud) as other:
            other.backups.pull()
            other.memories.update(rival, content=f"Changed by {name}")
            there = home.parent / "cloud" / other.backups.push().cloud_path
    there.write_bytes(there.read_bytes()[:-1])
    call("subcog_update", memory_id=rival, content="Changed here")
    call("sync_from_cloud", project_id=id)


def _use_graph(call: Checked) -> None:
    """Every action and every operation."""
    for store in (False, True):
        content = "Alice from Anthropic uses Rust to build the Claude API."
        call("subcog_entities", action="extract", content=content, store=store)
    call("subcog_capture", content="Alice uses PostgreSQL.", namespace="decisions")
    for name in ("k8s", "Kubernetes"):
        call("subcog_entities", action="create", name=name, entity_type="Technology", properties={"since": [2014]})
    held = {"properties": {"team": "core"}, "valid_from": "2020-01-01", "valid_to": "2999-12-31"}
    ends = {"from_entity": "Alice", "to_entity": "k8s", "relationship_type": "Uses"}
    made = call("subcog_relationships", action="create", **ends, **held)["relationship"]["id"]
    known = call("subcog_entities", action="get", entity_id="Alice")["relationships"]
    for id in (made, next(one["id"] for one in known if "evidence" in one)):
        call("subcog_relationships", action="get", relationship_id=id)
    call("subcog_relationships", action="list", as_of="1d")
    call("subcog_relationships", action="infer", entity_ids=["Alice", "PostgreSQL", "k8s"])
    for around in ("k8s", "Alice"):
        call("subcog_graph", operation="neighbors", entity_id=around)
    call("subcog_graph", operation="path", from_entity="Alice", to_entity="k8s")
    call("subcog_graph", operation="stats")
    call("subcog_graph", operation="visualize")
    call("subcog_relationships", action="delete", relationship_id=made)
    call("subcog_entities", action="list")
    for trial in (True, False):
        call("subcog_entities", action="merge", entity_ids=["k8s", "Rust"], dry_run=trial)
    call("subcog_entities", action="delete", entity_id="k8s")


def _use_saved_texts(call: Checked, project: Path, secret: str) -> None:
    """Every action of both tools, on texts of every kind, and the deprecated tools."""
    declared = {"name": "file", "description": "What to read", "default": "README.md", "choices": ["README.md", "x"]}
    for tool, kind, use in (("subcog_prompts", "prompt", "run"), ("subcog_templates", "template", "render")):
        folder = project / ".cortex" / f"{kind}s"
        folder.mkdir(parents=True)
        (folder / "shared.md").write_text("---\nname: shared\ndescription: For all\n---\nHello {{who}}\n", "utf-8")
        (folder / "bad.md").write_text("---\nname: Not Kebab\n---\nHello\n", "utf-8")
        new = {"name": "read", "content": f"Read {{{{file}}}} with {secret}", "tags": ["deploy"]}
        more = {"description": "Read a file", "variables": [declared, {"name": "nowhere"}]}
        call(tool, action="save", **new, **more)
        call(tool, action="save", **new, **more, domain="user")
        call(tool, action="save", name="shared", content="Stored")
        call(tool, action="list")
        for name in ("read", "project:shared"):
            call(tool, action="get", name=name)
            call(tool, action=use, name=name, variables={"file": "x", "who": "Zoë"})
        call(tool, action="delete", name="read", domain="user")
    call("subcog_prompts", action="run", name="read", variables={"surprise": 1})
    call("subcog_templates", action="save", name="found", content="{{memories}} {{nothing}}")
    for format in ("markdown", "json", "xml"):
        call("subcog_templates", action="render", name="found", query="Alice", format=format)
    call("prompt_save", name="old", content="{{x}}", variables={"x": 1})
    call("prompt_list")
    call("prompt_get", name="old", version=1)
    call("prompt_run", name="old")
    call("prompt_delete", name="old", domain="project")


def test_the_history_names_the_memory_however_it_was_asked_for(home: Path, project: Path) -> None:
    with (
        Cortex.open(home, project=project, backend=StubBackend()) as cortex,
        connected(build_server(cortex), "auto") as caller,
    ):
        memory = cortex.memories.capture("Use tabs", namespace="decisions")
        for spelling in (memory.id, memory.id[:12], f"context_{memory.id}", f"subcog://project/decisions/{memory.id}"):
            assert caller.call("subcog_history", memory_id=spelling)["id"] == memory.id
