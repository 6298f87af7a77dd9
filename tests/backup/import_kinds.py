"""A small source of every kind that can be imported, and what comes out of it."""

from __future__ import annotations

import json
import sqlite3
import zipfile
from collections.abc import Callable
from contextlib import closing
from dataclasses import dataclass
from pathlib import Path
from shutil import copytree
from typing import Any

SAMPLES = Path(__file__).with_name("import_samples")


@dataclass(frozen=True)
class Kind:
    """Makes a source below a folder; `contents` are the texts of the memories or turns that it gives, in order."""

    name: str
    make: Callable[[Path], Path]
    contents: tuple[str, ...]
    is_turn: bool = False


def lines(path: Path, *values: Any) -> Path:
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text("".join(json.dumps(one, separators=(",", ":")) + "\n" for one in values), "utf-8")
    return path


def text(path: Path, content: str) -> Path:
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text(content, "utf-8")
    return path


def claude_line(kind: str, uuid: str, content: Any, **more: Any) -> dict[str, Any]:
    return {
        "parentUuid": None,
        "isSidechain": False,
        "type": kind,
        "message": {"role": kind, "content": content},
        "uuid": uuid,
        "timestamp": "2026-03-04T05:06:07.000Z",
        "sessionId": "s-1",
        "version": "2.1.0",
        "gitBranch": "main",
        **more,
    }


def claude_code(folder: Path) -> Path:
    call = {"type": "tool_use", "id": "t1", "name": "Bash", "input": {"command": "ls"}}
    result = {"type": "tool_result", "tool_use_id": "t1", "content": "a\nb"}
    lines(
        folder / "projects" / "-gone-shop" / "s-1.jsonl",
        {"type": "file-history-snapshot", "messageId": "m", "snapshot": {}, "isSnapshotUpdate": False},
        claude_line("user", "u1", "Use pnpm here, not npm.<system-reminder>added</system-reminder>"),
        claude_line("assistant", "u2", [{"type": "thinking", "thinking": "hm", "signature": "x"}]),
        claude_line("assistant", "u3", [{"type": "text", "text": "I switched the scripts to pnpm."}]),
        claude_line("assistant", "u4", [call]),
        claude_line("user", "u5", [result], toolUseResult={"stdout": "a\nb"}),
        claude_line("user", "u6", "Caveat: meta", isMeta=True),
        claude_line("user", "u7", "This session is being continued from a previous conversation that ran out."),
        {"type": "summary", "summary": "Pnpm", "leafUuid": "u3"},
    )
    return folder / "projects"


def codex(folder: Path) -> Path:
    at = "2026-03-04T05:06:07.000Z"
    meta = {"id": "c-1", "cli_version": "0.50", "git": {"branch": "fix"}}
    injected = {"type": "message", "role": "user", "content": [{"type": "input_text", "text": "# AGENTS.md"}]}
    return lines(
        folder / "sessions/2026/03/04/rollout-2026-03-04T05-06-07-c-1.jsonl",
        {"timestamp": at, "type": "session_meta", "payload": meta},
        {"timestamp": at, "type": "response_item", "payload": injected},
        {"timestamp": at, "type": "event_msg", "payload": {"type": "user_message", "message": "Why is it slow?"}},
        {"timestamp": at, "type": "event_msg", "payload": {"type": "token_count", "info": None}},
        {"timestamp": at, "type": "event_msg", "payload": {"type": "agent_message", "message": "No index on orders."}},
    )


def gemini(folder: Path) -> Path:
    # Written by the recorder of @google/gemini-cli-core.
    copytree(SAMPLES / "gemini", folder / "chats")
    return folder


def history(folder: Path) -> Path:
    pasted = {"1": {"id": 1, "type": "text", "content": "Traceback: KeyError"}}
    return lines(
        folder / "history.jsonl",
        {"display": "/init", "pastedContents": {}, "timestamp": 1_759_000_000_000, "project": ""},
        {
            "display": "What is [Pasted text #1 +3 lines] about?",
            "pastedContents": pasted,
            "timestamp": 1_759_000_001_000,
            "project": "",
            "sessionId": "s-1",
        },
    )


def codex_history(folder: Path) -> Path:
    prompt = {"session_id": "01a1f588-5bbb-7122-96c8-70ee9ed55a9a", "ts": 1_795_120_716, "text": "Keep port 7001."}
    return lines(folder / "history.jsonl", prompt, {**prompt, "ts": 1_795_120_717, "text": "/status"})


def chatgpt_conversations() -> list[dict[str, Any]]:
    def node(name: str, parent: str | None, children: list[str], role: str, said: str, **facts: Any) -> dict[str, Any]:
        content = {"content_type": "text", "parts": [said]}
        message = {"id": name, "author": {"role": role}, "create_time": 1_700_000_000.5, "content": content}
        return {"id": name, "parent": parent, "children": children, "message": {**message, "metadata": facts}}

    mapping = {
        "root": {"id": "root", "parent": None, "children": ["a"], "message": None},
        "a": node("a", "root", ["b"], "system", "hidden", is_visually_hidden_from_conversation=True),
        "b": node("b", "a", ["c", "d"], "user", "How do I cache this?"),
        "c": node("c", "b", [], "assistant", "Use Redis with a TTL."),
        "d": node("d", "b", [], "assistant", "Use an LRU cache."),
    }
    return [{"title": "Caching", "create_time": 1_700_000_000.0, "id": "g-1", "mapping": mapping}]


def chatgpt(folder: Path) -> Path:
    path = folder / "export.zip"
    folder.mkdir(parents=True, exist_ok=True)
    with zipfile.ZipFile(path, "w", zipfile.ZIP_DEFLATED) as archive:
        archive.writestr("conversations.json", json.dumps(chatgpt_conversations()))
        archive.writestr("chat.html", "<html></html>")
    return path


def claude_ai(folder: Path) -> Path:
    messages = [
        {"uuid": "m1", "sender": "human", "text": "Draft a runbook.", "created_at": "2025-05-01T10:00:00Z"},
        {"uuid": "m2", "sender": "assistant", "text": "Here is one.", "created_at": "2025-05-01T10:00:05Z"},
    ]
    one = {"uuid": "v1", "name": "Runbook", "created_at": "2025-05-01T10:00:00Z", "chat_messages": messages}
    text(folder / "conversations.json", json.dumps([one]))
    return folder


def claude_ai_projects(folder: Path) -> Path:
    docs = [{"uuid": "d1", "filename": "style.md", "content": "Write short sentences.", "created_at": "2025-05-01"}]
    one = {"uuid": "p1", "name": "Docs", "prompt_template": "You edit documentation.", "docs": docs}
    return text(folder / "projects.json", json.dumps([one]))


CLAUDE_MD = """# Shop

Read @docs/more.md first.

## Build

- Use pnpm, never npm.
- Run the tests before a push:
  `pnpm test`

## Style

Functions are verbs.
"""


def instructions(folder: Path) -> Path:
    return text(folder / "CLAUDE.md", CLAUDE_MD)


def cursor(folder: Path) -> Path:
    front = "---\ndescription: SQL rules\nglobs: '*.sql'\nalwaysApply: false\n---\n"
    text(folder / ".cursor/rules/sql.mdc", front + "- Write keywords in capitals.\n- No `SELECT *`.\n")
    return folder


def memory_folder(folder: Path) -> Path:
    text(folder / "memory/MEMORY.md", "# Memory\n\n- The staging host is slow on Mondays.\n")
    text(folder / "memory/feedback.md", "---\nname: feedback\ntype: feedback\n---\nNo emojis in commits.\n")
    return folder / "memory"


def server_memory(folder: Path) -> Path:
    # Written by @modelcontextprotocol/server-memory 0.6.3.
    folder.mkdir(parents=True, exist_ok=True)
    path = folder / "memory.jsonl"
    path.write_bytes((SAMPLES / "server-memory.jsonl").read_bytes())
    return path


BASIC_NOTE = """---
title: Search API
type: note
permalink: search-api
tags:
- api
---
# Search API

The service behind the search box.

## Observations
- [decision] Queries go through one endpoint #design (agreed in May)
- [fact] Answers in 40 ms

## Relations
- depends_on [[Index Builder]]
"""


def vault(folder: Path) -> Path:
    text(folder / "vault/Search API.md", BASIC_NOTE)
    text(folder / "vault/plain.md", "Just a note.\n")
    return folder / "vault"


def adr(folder: Path) -> Path:
    body = (
        "# 7. Use SQLite\n\nDate: 2025-02-03\n\n## Status\n\nAccepted\n\n## Context\n\nOne machine.\n\n## Decision\n\n"
    )
    return text(
        folder / "docs/adr/0007-use-sqlite.md", body + "We keep everything in SQLite.\n\n## Consequences\n\nX\n"
    )


def changelog(folder: Path) -> Path:
    body = "# Changelog\n\n## [2.0.0] - 2025-06-01\n\n### Added\n\n- A flag.\n\n### Removed\n\n- Python 3.8.\n"
    return text(folder / "CHANGELOG.md", body + "\n### Fixed\n\n- A typo.\n- No longer reads `.rc` files.\n")


def plain_text(folder: Path) -> Path:
    return text(folder / "notes.txt", "The printer is on floor 2.\n")


def csv_table(folder: Path) -> Path:
    return text(folder / "facts.csv", 'content,tags,created_at\n"We use UTC, always","time;rule",2025-01-02\nTwo,,\n')


def json_lines(folder: Path) -> Path:
    return lines(folder / "facts.jsonl", {"id": 1, "content": "One fact"}, {"content": "Another", "tags": ["x"]})


def database(name: str, *dumps: str) -> Callable[[Path], Path]:
    """Makes a database from what was dumped of one that the real program wrote."""

    def make(folder: Path) -> Path:
        folder.mkdir(parents=True, exist_ok=True)
        for n, dump in enumerate(dumps):
            with closing(sqlite3.connect(folder / f"{n}-{name}")) as connection:
                connection.executescript((SAMPLES / dump).read_text("utf-8"))
        return folder

    return make


def mem0_json(folder: Path) -> Path:
    return text(folder / "mem0.json", (SAMPLES / "mem0.json").read_text("utf-8"))


def service_json(folder: Path) -> Path:
    one = {"content": "Ports are in ports.md", "content_hash": "ab12", "tags": ["ports"], "memory_type": "reference"}
    given = {"export_metadata": {"exporter_version": "5.0.1"}, "memories": [{**one, "created_at": 1_759_000_000.5}]}
    return text(folder / "export.json", json.dumps(given, indent=2))


_STEPS = [f"Step {n} restarts worker {n} and waits for its queue." for n in range(1, 18)]

KINDS = (
    Kind("claude-code", claude_code, ("Use pnpm here, not npm.", "I switched the scripts to pnpm."), is_turn=True),
    Kind("claude-code-history", history, ("What is Traceback: KeyError about?",), is_turn=True),
    Kind("codex-history", codex_history, ("Keep port 7001.",), is_turn=True),
    Kind("codex", codex, ("Why is it slow?", "No index on orders."), is_turn=True),
    Kind(
        "gemini",
        gemini,
        ("Why does the build fail on Windows?", "The path separator is wrong in paths.py.", "Fix it with pathlib."),
        is_turn=True,
    ),
    Kind("chatgpt", chatgpt, ("How do I cache this?", "Use Redis with a TTL.", "Use an LRU cache."), is_turn=True),
    Kind("claude-ai", claude_ai, ("Draft a runbook.", "Here is one."), is_turn=True),
    Kind("claude-ai-projects", claude_ai_projects, ("You edit documentation.", "Write short sentences.")),
    Kind(
        "instructions",
        instructions,
        (
            "Read @docs/more.md first.",
            "Build: Use pnpm, never npm.",
            "Build: Run the tests before a push:\n  `pnpm test`",
            "Style: Functions are verbs.",
        ),
    ),
    Kind("cursor", cursor, ("SQL rules: Write keywords in capitals.", "SQL rules: No `SELECT *`.")),
    Kind("memory-folder", memory_folder, ("The staging host is slow on Mondays.", "No emojis in commits.")),
    Kind(
        "server-memory",
        server_memory,
        (
            "Ada Park: Prefers tabs over spaces",
            "Ada Park: Reviews every migration",
            "BillingService: Runs on port 8080",
        ),
    ),
    Kind(
        "vault",
        vault,
        (
            "# Search API\n\nThe service behind the search box.\n\n",
            "Search API: Queries go through one endpoint #design (agreed in May)",
            "Search API: Answers in 40 ms",
            "Just a note.\n",
        ),
    ),
    Kind("adr", adr, ("7. Use SQLite\n\nStatus: Accepted\n\nWe keep everything in SQLite.\n\nContext: One machine.",)),
    Kind("changelog", changelog, ("2.0.0, removed: Python 3.8.", "2.0.0, fixed: No longer reads `.rc` files.")),
    Kind("text", plain_text, ("The printer is on floor 2.\n",)),
    Kind("csv", csv_table, ("We use UTC, always", "Two")),
    Kind("json", json_lines, ("One fact", "Another")),
    Kind(
        "mem0",
        database("history.db", "mem0-history.sql"),
        ("Ada prefers tabs over spaces", "The billing service runs on port 9090"),
    ),
    Kind("mem0-json", mem0_json, ("Ada prefers tabs over spaces", "The billing service runs on port 9090")),
    Kind("openmemory", database("openmemory.db", "openmemory.sql"), ("Lunch is at noon",)),
    Kind(
        "mempalace",
        database("palace.sqlite3", "mempalace-chroma.sql", "mempalace-graph.sql"),
        ("We deploy from the main branch only", "Grace owns the billing service"),
    ),
    Kind(
        "mempalace-exact",
        database("palace.sqlite3", "mempalace-exact.sql"),
        # The program keeps the second in two parts.
        ("We deploy from the main branch only", f"Runbook: {' '.join(_STEPS)}"),
    ),
    Kind(
        "mcp-memory-service",
        database("sqlite_vec.db", "mcp-memory-service.sql"),
        ("We chose SQLite because one machine is enough", "The CI needs Node 22"),
    ),
    Kind("mcp-memory-service-json", service_json, ("Ports are in ports.md",)),
)
