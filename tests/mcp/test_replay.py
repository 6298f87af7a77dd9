"""The published document, replayed: every example request, over both transports, in both protocols."""

import json
import re
from pathlib import Path
from typing import Any

import pytest

from cases import each
from cortex_py.surfaces.mcp.registry import TOOL_BY_NAME, TOOLS
from documented_shapes import differences

from clients import MODES, TRANSPORTS, Caller, served
from helpers import git

DOCUMENTED = json.loads(Path(__file__).with_name("documented.json").read_text("utf-8"))

# All tools that the document names, with an example or without.
PUBLISHED = {
    "subcog_capture",
    "subcog_recall",
    "subcog_get",
    "subcog_update",
    "subcog_delete",
    "subcog_status",
    "subcog_gc",
    "subcog_namespaces",
    "subcog_reindex",
    "subcog_enrich",
    "subcog_consolidate",
    "subcog_sync",
    "subcog_prompts",
    "subcog_templates",
    "subcog_graph",
    "subcog_entities",
    "subcog_relationships",
    "prompt_save",
    "prompt_list",
    "prompt_get",
    "prompt_run",
    "prompt_delete",
}
# The memory that the document captures and enriches.
EXAMPLE = "dc58d23a35876f5a59426e81aaa81d796efa7fc1"
# What says the same as that memory. The document merges the two and captures only one.
SAME = {"content": "We use PostgreSQL as the primary storage because it supports JSONB", "namespace": "decisions"}

# What the rendered template is to show. The document captures neither.
PATTERNS = ("Authentication patterns: tokens are checked in one place", "Passwords are hashed with argon2 ☃")


def _prepare(project: Path) -> None:
    """A repository like the document's: a remote, and a second branch."""
    git(project, "init", "-q", "-b", "main")
    git(project, "remote", "add", "origin", "https://github.com/zircote/subcog.git")
    git(project, "commit", "-q", "--allow-empty", "-m", "begin")
    git(project, "checkout", "-q", "-b", "feature/old-auth")


def _vanish_branch(caller: Caller, project: Path) -> None:
    """A memory of a branch that is no more, so that there is garbage to tell of."""
    caller.call("subcog_capture", content="Tokens live for an hour", namespace="security")
    git(project, "checkout", "-q", "main")
    git(project, "branch", "-q", "-D", "feature/old-auth")


@pytest.mark.parametrize("transport", TRANSPORTS)
@pytest.mark.parametrize("mode", MODES)
def test_the_document_holds(home: Path, project: Path, transport: str, mode: str) -> None:
    _prepare(project)
    faults: dict[str, list[str]] = {}
    answers: dict[str, Any] = {}
    with served(transport, mode, home, project) as caller:
        _vanish_branch(caller, project)
        for name, kind in (("Postgres", "Technology"), ("Alice", "Person")):
            made = caller.call("subcog_entities", action="create", name=name, entity_type=kind)
            assert made["entity"]["id"] == f"entity_{name.lower()}"
        for content in PATTERNS:
            caller.call("subcog_capture", content=content, namespace="patterns")
        for example in DOCUMENTED:
            name, arguments = example["request"]["name"], example["request"]["arguments"]
            if name == "subcog_consolidate":
                answers["same"] = caller.call("subcog_capture", **SAME)
            if arguments.get("memory_id") == EXAMPLE:
                arguments = {**arguments, "memory_id": answers["subcog_capture"]["id"]}
            answers[name] = caller.call(name, **arguments)
            if "action" in arguments:
                answers[f"{name} {arguments['action']}"] = answers[name]
            if "response" in example and (found := differences(example["response"], answers[name])):
                faults[name] = found
        _hold_of_a_run(caller)
    assert faults == {}
    captured, (first, *_) = answers["subcog_capture"], answers["subcog_recall"]["results"]
    assert re.fullmatch(r"[0-9a-f]{40}", captured["id"])
    assert captured["urn"] == f"subcog://project/decisions/{captured['id']}"
    assert (first["id"], first["uri"]) == (captured["id"], f"subcog://memory/{captured['id']}")
    assert first["tags"] == ["database", "architecture"]
    assert captured.keys() == {"id", "urn", "pending"}
    assert first.keys() == {"id", "namespace", "tags", "content", "score", "uri", "created_at"}
    assert answers["subcog_status"]["repository"] == {
        "path": str(project),
        "project_id": "github.com/zircote/subcog",
        "branch": "main",
    }
    assert answers["subcog_gc"]["stale_branches"] == ["feature/old-auth"]
    assert (answers["subcog_gc"]["memories_affected"], answers["subcog_gc"]["status"]) == (1, "preview")
    _hold_of_tidying(answers)
    _hold_of_the_graph(answers)
    _hold_of_saved_texts(answers)
    assert answers["subcog_sync"] == next(
        example["response"] for example in DOCUMENTED if example["request"]["name"] == "subcog_sync"
    )


def _hold_of_tidying(answers: dict[str, Any]) -> None:
    """What is merged and enriched are the memories of before, and the dry run left them as they were."""
    captured, same = answers["subcog_capture"]["id"], answers["same"]["id"]
    found = answers["subcog_consolidate"]
    (merge,) = found["candidate_merges"]
    assert (found["groups_found"], merge["memories"], found["dry_run"]) == (1, [captured, same], True)
    assert 0.75 < merge["similarity"] <= 1
    assert all(word in merge["proposed_content"] for word in ("PostgreSQL", "primary storage", "JSONB"))
    enriched = answers["subcog_enrich"]
    assert (enriched["memory_id"], enriched["version"]) == (captured, 2)
    assert {"postgresql", "jsonb"} <= set(enriched["changes"]["tags_added"])
    assert enriched["changes"]["structure_improved"] is True
    assert f"subcog://memory/{same}" in enriched["changes"]["context_added"]


def _hold_of_the_graph(answers: dict[str, Any]) -> None:
    """The document shows no answers for these; its sentence is told what it names and states."""
    read = answers["subcog_entities"]
    assert [(one["id"], one["type"]) for one in read["entities"]] == [
        ("entity_alice", "Person"),
        ("entity_anthropic", "Organization"),
        ("entity_rust", "Technology"),
        ("entity_claude_api", "Technology"),
    ]
    assert {(one["type"], one["to_entity"]) for one in read["relationships"]} == {
        ("WorksAt", "entity_anthropic"),
        ("Uses", "entity_rust"),
        ("Created", "entity_claude_api"),
    }
    drawn = answers["subcog_graph"]
    assert (drawn["operation"], drawn["format"]) == ("visualize", "mermaid")
    assert all(name in drawn["content"] for name in ("Alice", "Postgres"))
    inferred = answers["subcog_relationships"]
    assert (inferred["action"], inferred["relationships"], inferred["stored"]) == ("infer", [], True)


def _hold_of_saved_texts(answers: dict[str, Any]) -> None:
    """Nor for these: what was saved is told, and what is filled in and laid out is the truth."""
    prompt = answers["subcog_prompts save"]["prompt"]
    assert (prompt["name"], prompt["domain"], prompt["version"]) == ("code-review", "project", 1)
    assert (prompt["description"], prompt["tags"]) == ("Comprehensive code review", ["review", "quality"])
    assert prompt["variables"] == [{"name": name, "required": False} for name in ("file", "issue_type")]
    assert answers["subcog_prompts run"] == {
        "action": "run",
        "name": "code-review",
        "domain": "project",
        "version": 1,
        "content": "Review src/main.rs for:\n- security issues\n- Best practices",
    }
    template = answers["subcog_templates save"]["template"]
    assert (template["name"], template["domain"], template["version"]) == ("search-results", "user", 1)
    made = answers["subcog_templates render"]
    assert (made["name"], made["format"]) == ("search-results", "markdown")
    heading, blank, *lines = made["content"].splitlines()
    assert (heading, blank) == ("# Auth Patterns", "")
    # One of them has several lines since it was enriched.
    assert len([line for line in lines if line.startswith("- **")]) == made["memories"] <= 10
    assert {f"- **patterns**: {content}" for content in PATTERNS} <= set(lines)


def _hold_of_a_run(caller: Caller) -> None:
    """The document's lines for Claude Code work as printed; one of them gives one of two values."""
    run = {"action": "run", "name": "code-review"}
    for given in ({"file": "src/main.rs"}, '{"file":"src/main.rs"}'):
        half = caller.call("subcog:prompts", **run, variables=given)
        assert half["content"] == "Review src/main.rs for:\n- {{issue_type}} issues\n- Best practices"
        assert half["warnings"] == ["No value was given for issue_type."]
    filled = caller.call("subcog_prompts", **run, variables={"file": "src/main.rs", "issue_type": "style"})
    assert filled["content"] == "Review src/main.rs for:\n- style issues\n- Best practices"
    assert "warnings" not in filled
    recalled = caller.call("subcog:recall", query="database decision", filter="ns:decisions since:7d")
    assert recalled["results"][0]["namespace"] == "decisions"
    shown = caller.portal.call(caller.client.get_prompt, "subcog:code-review", {"file": "a", "issue_type": "b"})
    assert shown.messages[0].content.text == "Review a for:\n- b issues\n- Best practices"
    assert caller.read("subcog:topics") == caller.read("subcog://topics")


def test_every_tool_of_the_document_has_both_its_names() -> None:
    """The document's table of names for Claude Code."""
    memories = ("capture", "recall", "get", "update", "delete", "status", "gc", "namespaces", "reindex")
    others = ("enrich", "consolidate", "prompts", "templates", "graph", "entities", "relationships")
    for name in (*memories, *others):
        assert TOOL_BY_NAME[f"subcog:{name}"] is TOOL_BY_NAME[f"subcog_{name}"]


def test_every_documented_tool_is_served() -> None:
    assert len(PUBLISHED) == 22
    assert PUBLISHED - {tool.name for tool in TOOLS} == set()
    assert {example["request"]["name"] for example in DOCUMENTED} - PUBLISHED == set()


def test_the_documented_answers_are_compared() -> None:
    assert [example["request"]["name"] for example in DOCUMENTED if example.get("response")] == [
        "subcog_capture",
        "subcog_recall",
        "subcog_status",
        "subcog_gc",
        "subcog_namespaces",
        "subcog_consolidate",
        "subcog_enrich",
        "subcog_sync",
        "subcog_reindex",
    ]


@each(
    ("answered", "told"),
    [
        ({"id": "x", "hits": [{"score": 0.5}], "n": 1, "more": True}, []),
        ({"id": "x", "hits": [{"score": 1}], "n": 1}, []),
        ({"id": "x", "n": 1}, ["hits: missing"]),
        ({"id": 7, "hits": [{"score": 0.5}], "n": 1}, ["id: int instead of str"]),
        ({"id": "x", "hits": [], "n": 1}, ["hits: empty"]),
        ({"id": "x", "hits": [{"score": 0.5}, {}], "n": 1}, ["hits[1].score: missing"]),
        ({"id": "x", "hits": [{"score": "high"}], "n": 1}, ["hits[0].score: str instead of float"]),
        ({"id": "x", "hits": [{"score": 0.5}], "n": True}, ["n: bool instead of int"]),
        ({"id": "x", "hits": [{"score": 0.5}], "n": 1.0}, ["n: float instead of int"]),
        ({"id": None, "hits": {}, "n": 1}, ["id: NoneType instead of str", "hits: dict instead of list"]),
    ],
)
def test_the_comparison_sees(answered: Any, told: list[str]) -> None:
    assert differences({"id": "a", "hits": [{"score": 0.85}], "n": 3}, answered) == told


def test_the_comparison_takes_a_tally_by_its_values() -> None:
    documented = {"statistics": {"namespace_counts": {"decisions": 12, "patterns": 8}}}
    assert differences(documented, {"statistics": {"namespace_counts": {"security": 1}}}) == []
    assert differences(documented, {"statistics": {"namespace_counts": {"security": "1"}}}) == [
        "statistics.namespace_counts.security: str instead of int"
    ]
    assert differences(documented, {"statistics": {"namespace_counts": {}}}) == ["statistics.namespace_counts: empty"]
