"""What every tool answers in one day of work, compared with a recording.

`CORTEX_WRITE_GOLDEN=1 pytest tests/golden` records the answers again; read the difference before you commit it.
"""

from __future__ import annotations

import json
import re
from pathlib import Path
from typing import Any

import pytest
from mcp.shared.exceptions import MCPError

from cortex_py import Cortex
from cortex_py.surfaces.mcp.registry import TOOLS
from cortex_py.surfaces.mcp.server import build_server
from golden.steady import Steady, compare

from clients import CURRENT, connected
from helpers import FakeClock, git
from stub_backend import StubBackend

# A step, its tool and its arguments. `$step.key.0` stands for a part of the answer of an earlier step.
Step = tuple[str, str, dict[str, Any]]
HERE = {"project_id": "$begin.project_id"}
LINE = {**HERE, "branch_id": "$line.branch_id"}
POSTGRES = "We chose PostgreSQL because Alice needs JSONB. See https://example.org/a?b=c and `src/store.py`."
STEPS: list[Step] = [
    ("begin", "initialize_context", {"project_path": "$project", "mode": "full"}),
    ("begin light", "initialize_context", {"project_path": "$project", "mode": "light"}),
    ("begin nowhere", "initialize_context", {"project_path": "/no/such/folder"}),
    ("line", "create_branch", {**HERE, "branch_topic": "payments: refunds"}),
    ("line below", "create_branch", {**HERE, "branch_topic": "partial", "parent_branch": "$line.branch_id"}),
    ("line empty", "create_branch", {**HERE, "branch_topic": "   "}),
    ("say", "update_memory", {**LINE, "role": "user", "content": "Refunds go through the ledger, never by hand."}),
    ("answer", "update_memory", {**LINE, "role": "assistant", "content": "I added refund() to src/ledger.py."}),
    ("say nothing", "update_memory", {**LINE, "role": "user", "content": ""}),
    ("say as whom", "update_memory", {**LINE, "role": "system", "content": "x"}),
    ("say secret", "update_memory", {**LINE, "role": "user", "content": "key AKIAIOSFODNN7EXAMPLQ here"}),
    ("summary", "get_active_summary", {**LINE, "max_tokens": 300}),
    ("load unknown", "load_context", {**LINE, "context_id": "context_" + "0" * 40}),
    ("search", "search_context", {**HERE, "query": "how do refunds work", "top_k": 3}),
    ("load", "load_context", {**LINE, "context_id": "$search.results.0.context_id"}),
    ("search far", "search_context", {**HERE, "query": "zebra", "min_score": 0.99}),
    ("search badly", "search_context", {**HERE, "query": "x", "top_k": 0}),
    ("graph info", "get_context_graph_info", HERE),
    ("graph info of line", "get_context_graph_info", LINE),
    ("automation", "get_automation_status", HERE),
    ("link", "link_git_branch", {**HERE, "cortex_branch_id": "$line.branch_id", "git_branch_name": "main"}),
    ("link nothing", "link_git_branch", {**HERE, "cortex_branch_id": "$line.branch_id", "git_branch_name": "gone"}),
    ("suggest", "suggest_contexts", {**HERE, "current_context": "I work on refunds in the ledger", "top_k": 2}),
    ("accept", "accept_suggestions", {
        **HERE, "session_id": "$suggest.session_id", "context_ids": ["$search.results.0.context_id"],
    }),
    ("suggest again", "suggest_contexts", {**HERE, "current_context": "refund of a ledger entry"}),
    ("reject", "reject_suggestions", {**HERE, "session_id": "$suggest again.session_id", "reason": "not about it"}),
    ("accept nothing", "accept_suggestions", {**HERE, "session_id": "none", "context_ids": []}),
    ("verify", "verify_response", {**HERE, "response_text": "src/ledger.py defines refund(). src/gone.py exists."}),
    ("verify nothing", "verify_response", {**HERE, "response_text": ""}),
    ("capture", "subcog_capture", {"content": POSTGRES, "namespace": "decisions", "tags": ["db"], "source": "A.md"}),
    ("capture twice", "subcog_capture", {"content": POSTGRES, "namespace": "decisions"}),
    ("capture other", "subcog_capture", {"content": "Tests run in random order ☃", "namespace": "testing"}),
    ("capture newer", "subcog_capture", {
        "content": "We chose SQLite, PostgreSQL is gone.", "namespace": "decisions", "supersedes": "$capture.id",
    }),
    ("capture nowhere", "subcog_capture", {"content": "x", "namespace": "nowhere"}),
    ("capture nothing", "subcog_capture", {"content": " ", "namespace": "decisions"}),
    ("capture extra", "subcog_capture", {"content": "x", "namespace": "decisions", "colour": "red"}),
    ("recall", "subcog_recall", {"query": "which database", "detail": "everything"}),
    ("recall light", "subcog_recall", {"query": "database", "detail": "light", "mode": "text"}),
    ("recall vector", "subcog_recall", {"query": "random tests", "mode": "vector", "limit": 1}),
    ("recall filter", "subcog_recall", {"filter": "ns:decisions status:superseded,active tag:db unknown:x"}),
    ("recall list", "subcog_recall", {"limit": 2, "offset": 1}),
    ("recall badly", "subcog_recall", {"query": "x", "filter": "since:yesteryear"}),
    ("get", "subcog_get", {"memory_id": "$capture newer.id"}),
    ("get nothing", "subcog_get", {"memory_id": "1" * 40}),
    ("get badly", "subcog_get", {"memory_id": "moon"}),
    ("update", "subcog_update", {"memory_id": "$capture other.id", "content": "Tests run shuffled.", "tags": ["t"]}),
    ("history", "subcog_history", {"memory_id": "$capture other.id"}),
    ("delete", "subcog_delete", {"memory_id": "$capture other.id"}),
    ("recall after", "subcog_recall", {"query": "order of tests"}),
    ("restore", "subcog_restore", {"memory_id": "$capture other.id"}),
    ("purge", "subcog_delete", {"memory_id": "$capture other.id", "hard": True}),
    ("restore nothing", "subcog_restore", {"memory_id": "$capture other.id"}),
    ("status", "subcog_status", {}),
    ("namespaces", "subcog_namespaces", {}),
    ("enrich", "subcog_enrich", {"memory_id": "$capture newer.id"}),
    ("consolidate", "subcog_consolidate", {"namespace": "decisions", "strategy": "dedupe", "dry_run": True}),
    ("consolidate really", "subcog_consolidate", {"namespace": "decisions", "dry_run": False}),
    ("gc", "subcog_gc", {"dry_run": True}),
    ("reindex", "subcog_reindex", {}),
    ("sync", "subcog_sync", {"direction": "push"}),
    ("sync up", "sync_to_cloud", HERE),
    ("sync down", "sync_from_cloud", HERE),
    ("person", "subcog_entities", {"action": "create", "name": "Alice", "entity_type": "Person"}),
    ("thing", "subcog_entities", {"action": "create", "name": "Postgres", "entity_type": "Technology"}),
    ("entity", "subcog_entities", {"action": "get", "entity_id": "entity_alice"}),
    ("entities", "subcog_entities", {"action": "list", "limit": 5}),
    ("extract", "subcog_entities", {"action": "extract", "content": "Bob uses Redis at Acme.", "store": True}),
    ("merge", "subcog_entities", {"action": "merge", "entity_ids": ["entity_alice", "entity_bob"], "dry_run": True}),
    ("entity badly", "subcog_entities", {"action": "create"}),
    ("relate", "subcog_relationships", {
        "action": "create", "from_entity": "Alice", "to_entity": "Postgres", "relationship_type": "Uses",
        "valid_from": "2025-01-01",
    }),
    ("relations", "subcog_relationships", {"action": "list", "limit": 5}),
    ("infer", "subcog_relationships", {"action": "infer"}),
    ("relate badly", "subcog_relationships", {"action": "create", "from_entity": "Alice", "to_entity": "Nobody"}),
    ("neighbors", "subcog_graph", {"operation": "neighbors", "entity_id": "entity_alice", "depth": 2}),
    ("path", "subcog_graph", {"operation": "path", "from_entity": "Alice", "to_entity": "Postgres"}),
    ("stats", "subcog_graph", {"operation": "stats"}),
    ("mermaid", "subcog_graph", {"operation": "visualize", "format": "mermaid"}),
    ("dot", "subcog_graph", {"operation": "visualize", "format": "dot", "limit": 2}),
    ("unrelate", "subcog_relationships", {"action": "delete", "relationship_id": "$relate.relationship.id"}),
    ("forget", "subcog_entities", {"action": "delete", "entity_id": "entity_postgres"}),
    ("prompt", "prompt_save", {"name": "greet", "content": "Hello {{name}}, {{what}}!", "tags": ["a"]}),
    ("prompts", "prompt_list", {"limit": 3}),
    ("prompt got", "prompt_get", {"name": "greet"}),
    ("prompt run", "prompt_run", {"name": "greet", "variables": {"name": "Ada", "what": "good day"}}),
    ("prompt short", "prompt_run", {"name": "greet", "variables": {"name": "Ada"}}),
    ("prompt gone", "prompt_delete", {"name": "greet", "domain": "project"}),
    ("prompt action", "subcog_prompts", {"action": "save", "name": "bye", "content": "Bye {{who}}"}),
    ("prompt actions", "subcog_prompts", {"action": "list"}),
    ("template", "subcog_templates", {
        "action": "save", "name": "daily", "content": "# {{day}}\n{{#each memories}}- {{content}}\n{{/each}}",
    }),
    ("template shown", "subcog_templates", {"action": "render", "name": "daily", "variables": {"day": "Monday"}}),
    ("template json", "subcog_templates", {
        "action": "render", "name": "daily", "variables": {"day": "Monday"}, "format": "json",
    }),
    ("templates", "subcog_templates", {"action": "list"}),
    ("snapshot", "create_snapshot", {**HERE, "description": "before the change"}),
    ("snapshots", "list_snapshots", HERE),
    ("back", "restore_snapshot", {**HERE, "snapshot_id": "$snapshot.snapshot_id"}),
    ("back to nothing", "restore_snapshot", {**HERE, "snapshot_id": "snapshot_none"}),
    ("vector", "embedding.generate", {"text": "to be a vector"}),
    ("vector badly", "embedding.generate", {"text": ""}),
    ("vectors", "embedding.batch", {"texts": ["one", "two"], "normalize": False}),
    ("health", "health.status", {}),
    ("model", "model.info", {}),
    ("other project", "create_branch", {"project_id": "ffffffffffff", "branch_topic": "x"}),
    ("no such tool", "subcog_fly", {}),
]  # fmt: skip
LEDGER = '"""The ledger."""\n\n\ndef refund(amount: int) -> int:\n    return -amount\n'


def _filled(value: Any, answers: dict[str, Any], project: Path) -> Any:
    """Arguments with the parts of earlier answers in their places."""
    if isinstance(value, dict):
        return {key: _filled(part, answers, project) for key, part in value.items()}
    if isinstance(value, list):
        return [_filled(part, answers, project) for part in value]
    if value == "$project":
        return str(project)
    if isinstance(value, str) and (named := re.fullmatch(r"\$([\w ]+)\.([\w.]+)", value)):
        found = answers[named[1]]
        for key in named[2].split("."):
            found = found[int(key)] if isinstance(found, list) else found[key]
        return found
    return value


@pytest.mark.sqlite_only
def test_a_day_of_work_is_answered_as_recorded(home: Path, project: Path, clock: FakeClock) -> None:
    (project / "src").mkdir()
    (project / "src" / "ledger.py").write_text(LEDGER)
    (project / "README.md").write_text("# Shop\n\nThe shop keeps its money in the ledger.\n")
    git(project, "init", "-q", "-b", "main")
    git(project, "add", ".")
    git(project, "commit", "-q", "-m", "begin", "--date", "2026-01-01T00:00:00Z")
    steady = Steady(project=project, home=home)
    answers: dict[str, Any] = {}
    recorded: dict[str, Any] = {}
    with (
        Cortex.open(home, project=project, clock=clock, backend=StubBackend()) as cortex,
        connected(build_server(cortex), CURRENT) as caller,
    ):
        for step, tool, arguments in STEPS:
            clock.advance(seconds=61)
            given = _filled(arguments, answers, project)
            try:
                result = caller.portal.call(caller.client.call_tool_mcp, tool, given)
            except MCPError as error:
                recorded[step] = json.loads(steady.text(error.error.model_dump_json()))
                continue
            (block,) = result.content
            assert json.loads(block.text) == result.structured_content
            answers[step] = result.structured_content
            recorded[step] = {"is_error": result.is_error, "text": steady.text(block.text)}
    compare("tools", recorded)


def test_every_tool_has_a_part_in_that_day() -> None:
    assert len({step for step, *_ in STEPS}) == len(STEPS)
    assert {tool for _, tool, _ in STEPS} - {"subcog_fly"} == {spec.name for spec in TOOLS}
