"""Conversations: transcripts of coding agents (Claude Code, Codex, Gemini CLI), and exports of ChatGPT and Claude.ai.

What was said becomes turns; what tools did not.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from hashlib import sha256
from pathlib import Path
from typing import Any

from .....core.security.spoken import spoken
from .files import SourceFile
from .parsing import JsonItem, first_objects, json_reader, json_values, mapped, moment, text_of
from .records import Found, Skipped, SourceReader, SourceRecord

__all__ = ["CONVERSATIONS"]


def _said(text: object) -> str | None:
    """What a person or model said; None if that is nothing."""
    return (spoken(text) or None) if isinstance(text, str) else None


def _joined(content: object) -> str | None:
    """The text of a message that is a text or a list of blocks."""
    if isinstance(content, list):
        blocks = (one for one in content if isinstance(one, dict))
        texts = (one.get("text") for one in blocks if str(one.get("type", "text")).lower() == "text")
        content = "\n\n".join(text for text in texts if isinstance(text, str) and text)
    return _said(content)


# -- Claude Code: ~/.claude/projects/<folder>/<session>.jsonl ------------------------------------------


def _is_claude_code(file: SourceFile) -> bool:
    # A session that was resumed often begins with many summaries, which name no session.
    return any(
        "leafUuid" in one or ("sessionId" in one and ("uuid" in one or "snapshot" in one))
        for one in first_objects(file.head)
    )


def _may_speak(line: bytes) -> bool:
    """Whether a line may hold words of a person or model: results and calls of tools are most of a transcript."""
    # Inside a text these quotation marks would be escaped.
    tools = (b'"type":"tool_result"', b'"type":"tool_use"', b'"type":"thinking"')
    return b'"type":"text"' in line or not any(mark in line for mark in tools)


def _claude_code_turn(line: JsonItem, _file: SourceFile) -> Iterator[Found]:
    entry = line.object
    # What the client, another agent or a failed request wrote, nobody said in this conversation.
    others = ("isMeta", "isCompactSummary", "isSidechain", "isApiErrorMessage")
    if entry.get("type") not in ("user", "assistant") or any(entry.get(mark) for mark in others):
        return
    message, uuid = entry.get("message"), entry.get("uuid")
    if not isinstance(message, dict) or not isinstance(uuid, str):
        yield Skipped(f"line {line.number}", "it has no message or no uuid")
    elif text := _joined(message.get("content")):
        yield SourceRecord(
            source="claude-code", position=uuid, line=line.number, kind="turn", content=text, role=entry["type"],
            agent="claude-code",
            **mapped(entry, at="timestamp", session="sessionId", folder="cwd", git_branch="gitBranch"),
        )  # fmt: skip


# -- Claude Code: ~/.claude/history.jsonl, the prompts that a person typed -------------------------------


def _is_claude_code_history(file: SourceFile) -> bool:
    found = first_objects(file.head)
    return bool(found) and all({"display", "timestamp", "project"} <= one.keys() for one in found)


def _claude_code_prompt(line: JsonItem, _file: SourceFile) -> Iterator[Found]:
    entry = line.object
    text = _said(entry.get("display"))
    if text is not None and not text.startswith("/"):
        yield SourceRecord(
            source="claude-code-history", position=f"{entry.get('timestamp')}:{entry.get('project')}", line=line.number,
            kind="turn", content=_with_pasted(text, entry.get("pastedContents")), role="user", agent="claude-code",
            **mapped(entry, at="timestamp", session="sessionId", folder="project"),
        )  # fmt: skip


def _with_pasted(text: str, pasted: object) -> str:
    """The prompt with the texts that were pasted into it."""
    for one in pasted.values() if isinstance(pasted, dict) else ():
        if isinstance(one, dict) and (content := text_of(one.get("content"))):
            mark = re.compile(rf"\[Pasted text #{re.escape(str(one.get('id')))}(?: \+\d+ lines)?\]")
            text = mark.sub(content.replace("\\", "\\\\"), text)
    return text


# -- Codex: ~/.codex/sessions/<date>/rollout-*.jsonl -----------------------------------------------------

_CODEX_TYPES = ("session_meta", "response_item", "event_msg", "turn_context", "compacted")
_CODEX_ROLES = {
    "user_message": "user", "agent_message": "assistant",
    # As items of later versions.
    "UserMessage": "user", "AgentMessage": "assistant",
}  # fmt: skip


def _is_codex(file: SourceFile) -> bool:
    found = first_objects(file.head)
    return any(one.get("type") in _CODEX_TYPES and isinstance(one.get("payload"), dict) for one in found)


def _may_be_said(line: bytes) -> bool:
    # What the model was sent holds files that the client added; what was said is also an event.
    return b'"type":"response_item"' not in line[:200]


def _codex_turns(file: SourceFile) -> Iterator[Found]:
    about: dict[str, Any] = {"session": None, "folder": None, "git_branch": None}
    number = 0
    before: tuple[str, str, bool] | None = None
    for line in json_values(file, wanted=_may_be_said):
        if isinstance(line, Skipped):
            yield line
            continue
        entry = line.object
        payload = entry.get("payload")
        if not isinstance(payload, dict):
            yield Skipped(f"line {line.number}", "it has no payload")
            continue
        if entry.get("type") == "session_meta":
            git = payload.get("git")
            branch = mapped(git if isinstance(git, dict) else {}, git_branch="branch")
            about = {**mapped(payload, session="id", folder="cwd"), **branch}
        if entry.get("type") != "event_msg":
            continue
        item = payload.get("item")
        message = item if isinstance(item, dict) and payload.get("type") == "item_completed" else payload
        role = _CODEX_ROLES.get(str(message.get("type")))
        text = _joined(message.get("content", message.get("message"))) if role else None
        # The same message may be written in both forms.
        if role is None or text is None or (role, text, message is not item) == before:
            continue
        before = (role, text, message is item)
        number += 1
        yield SourceRecord(
            source=f"codex:{about['session'] or file.path.name}", position=str(number), line=line.number, kind="turn",
            content=text, at=moment(entry.get("timestamp")), role=role, agent="codex", **about,
        )  # fmt: skip


# -- Codex: ~/.codex/history.jsonl, the prompts that a person typed, without their folder ----------------

_ID_LENGTH = 36


def _is_codex_history(file: SourceFile) -> bool:
    found = first_objects(file.head)
    return bool(found) and all({"session_id", "ts", "text"} <= one.keys() for one in found)


def _codex_prompts(file: SourceFile) -> Iterator[Found]:
    # The sessions beside it say more: they name their folder.
    beside = () if file.is_member else Path(file.name).parent.glob("*sessions/**/rollout-*.jsonl")
    kept = {one.stem[-_ID_LENGTH:] for one in beside}
    left = 0
    for line in json_values(file):
        if isinstance(line, Skipped):
            yield line
            continue
        entry = line.object
        session, text = text_of(entry.get("session_id")), _said(entry.get("text"))
        if session in kept:
            left += 1
        elif text is not None and not text.startswith("/"):
            yield SourceRecord(
                source="codex-history", position=f"{entry.get('ts')}:{session}", line=line.number, kind="turn",
                content=text, at=moment(entry.get("ts")), role="user", agent="codex", session=session,
            )  # fmt: skip
    if left:
        yield Skipped("", f"prompts that the sessions beside it hold too: {left}")


# -- Gemini CLI: ~/.gemini/tmp/<project>/chats/session-*.jsonl, and the .json of earlier versions --------

_WORKSPACE = re.compile(r"Workspace Directories:\*\*\n {2}- (.+)")
_Messages = dict[str, tuple[int, dict[str, Any]]]


def _is_gemini(file: SourceFile) -> bool:
    if any("sessionId" in one and "projectHash" in one for one in first_objects(file.head, 1)):
        return True
    start = file.head[:2_000]
    return start.lstrip().startswith(b"{") and b'"sessionId"' in start and b'"projectHash"' in start


def _gemini_turns(file: SourceFile) -> Iterator[Found]:
    """Replay the file: later lines replace, rewind or reset earlier messages."""
    messages: _Messages = {}
    facts: dict[str, Any] = {}
    for value in json_values(file, is_lines=bool(first_objects(file.head, 1))):
        if isinstance(value, Skipped):
            yield value
        else:
            _replay(value, messages, facts)
    session = text_of(facts.get("sessionId"))
    folder = _gemini_folder(facts, messages)
    for identity, (line, message) in messages.items():
        role = {"user": "user", "gemini": "assistant"}.get(str(message.get("type")))
        if role and (text := _joined(message.get("content"))):
            yield SourceRecord(
                source=f"gemini:{session or file.path.name}", position=identity, line=line, kind="turn", content=text,
                at=moment(message.get("timestamp")), role=role, agent="gemini", session=session, folder=folder,
            )  # fmt: skip


def _replay(given: JsonItem, messages: _Messages, facts: dict[str, Any]) -> None:
    value = given.object
    if isinstance(back := value.get("$rewindTo"), str):
        known = list(messages)
        for identity in known[known.index(back) if back in messages else 0 :]:
            del messages[identity]
        return
    changes = value.get("$set") if isinstance(value.get("$set"), dict) else None
    inner = changes if changes is not None else value
    if isinstance(inner.get("messages"), list):
        messages.clear()
        for message in inner["messages"]:
            if isinstance(message, dict) and isinstance(message.get("id"), str):
                messages[message["id"]] = (given.line, message)
    if changes is None and isinstance(value.get("id"), str) and "type" in value:
        messages[value["id"]] = (given.line, value)
    elif changes is not None or "projectHash" in value:
        facts |= {name: one for name, one in inner.items() if name != "messages"}


def _gemini_folder(facts: dict[str, Any], messages: _Messages) -> str | None:
    """The folder of a chat: a fact, or what the client tells the model in the first message."""
    folders = facts.get("directories")
    if isinstance(folders, list):
        return next((one for one in folders if isinstance(one, str)), None)
    first = next((one for _, one in messages.values()), {}).get("content")
    texts = [one.get("text") for one in first if isinstance(one, dict)] if isinstance(first, list) else [first]
    found = _WORKSPACE.search("\n".join(one for one in texts if isinstance(one, str)))
    # The hash proves that nobody only wrote so.
    is_it = found and sha256(found.group(1).encode()).hexdigest() == facts.get("projectHash")
    return found.group(1) if found and is_it else None


# -- exports of chat services, as a folder, a file or a zip archive --------------------------------------


def _begins(file: SourceFile, *names: bytes) -> bool:
    """Whether the file is an array whose first entries have these fields."""
    head = file.head.lstrip()
    return head.startswith(b"[") and all(b'"' + name + b'"' in head for name in names)


def _is_chatgpt(file: SourceFile) -> bool:
    return _begins(file, b"mapping") and (b'"parent"' in file.head or b'"message"' in file.head)


def _chatgpt_turns(entry: JsonItem, _file: SourceFile) -> Iterator[Found]:
    """A conversation is a tree of messages, of which the last branch is the one shown."""
    conversation = entry.object
    if not isinstance(conversation.get("mapping"), dict):
        yield Skipped(f"entry {entry.number}", "it is no conversation")
        return
    identity = text_of(conversation.get("conversation_id")) or text_of(conversation.get("id"))
    title, created = text_of(conversation.get("title")), conversation.get("create_time")
    for node, message in _ordered(conversation["mapping"]):
        author, facts, content = message.get("author"), message.get("metadata"), message.get("content")
        role = author.get("role") if isinstance(author, dict) else None
        is_hidden = isinstance(facts, dict) and facts.get("is_visually_hidden_from_conversation")
        if role not in ("user", "assistant") or is_hidden or not isinstance(content, dict):
            continue
        if content.get("content_type") not in ("text", "multimodal_text", None):
            continue
        parts = content.get("parts")
        texts = [one for one in parts if isinstance(one, str) and one] if isinstance(parts, list) else []
        if text := _said("\n\n".join(texts)):
            yield SourceRecord(
                source=f"chatgpt:{identity or f'{title}@{created}'}", position=text_of(message.get("id")) or node,
                line=entry.line, kind="turn", content=text, at=moment(message.get("create_time")) or moment(created),
                role=role, agent="chatgpt", session=identity, summary=title,
            )  # fmt: skip


def _ordered(mapping: dict[str, Any]) -> Iterator[tuple[str, dict[str, Any]]]:
    """The messages of all branches, each after its parent; a node is visited once, whatever its links say."""
    nodes = {name: node for name, node in mapping.items() if isinstance(node, dict)}
    roots = [name for name, node in nodes.items() if node.get("parent") not in nodes]
    waiting = [*reversed(nodes), *reversed(roots)]
    seen: set[str] = set()
    while waiting:
        name = waiting.pop()
        if name in seen:
            continue
        seen.add(name)
        node = nodes[name]
        if isinstance(node.get("message"), dict):
            yield name, node["message"]
        children = node.get("children")
        if isinstance(children, list):
            waiting += [one for one in reversed(children) if isinstance(one, str) and one in nodes]


def _is_claude_ai(file: SourceFile) -> bool:
    return _begins(file, b"chat_messages")


def _claude_ai_turns(entry: JsonItem, _file: SourceFile) -> Iterator[Found]:
    conversation = entry.object
    if not isinstance(conversation.get("chat_messages"), list):
        yield Skipped(f"entry {entry.number}", "it is no conversation")
        return
    about = mapped(conversation, session="uuid", summary="name")
    source = f"claude-ai:{about['session'] or conversation.get('created_at')}"
    for place, message in enumerate(conversation["chat_messages"], start=1):
        if not isinstance(message, dict):
            yield Skipped(f"entry {entry.number}, message {place}", "it is no message")
            continue
        role = {"human": "user", "assistant": "assistant"}.get(str(message.get("sender")))
        text = _said(message.get("text")) or _joined(message.get("content"))
        if role and text:
            yield SourceRecord(
                source=source, position=text_of(message.get("uuid")) or str(place), line=entry.line, kind="turn",
                content=text, at=moment(message.get("created_at")) or moment(conversation.get("created_at")), role=role,
                agent="claude-ai", **about,
            )  # fmt: skip


def _is_claude_ai_projects(file: SourceFile) -> bool:
    return _begins(file, b"prompt_template") or (_begins(file, b"docs", b"uuid") and b'"filename"' in file.head)


def _claude_ai_notes(entry: JsonItem, _file: SourceFile) -> Iterator[Found]:
    """The instructions and the documents of a project."""
    project = entry.object
    if not isinstance(entry.value, dict):
        yield Skipped(f"entry {entry.number}", "it is no project")
        return
    identity, name = text_of(project.get("uuid")), text_of(project.get("name")) or "project"
    source = f"claude-ai-projects:{identity or name}"
    created = moment(project.get("created_at"))
    if text := text_of(project.get("prompt_template")):
        yield SourceRecord(
            source=source, position="prompt_template", line=entry.line, content=text, at=created, namespace="prompts",
            agent="claude-ai", shown=f"{name} (Claude.ai)",
        )  # fmt: skip
    docs = project.get("docs")
    for place, doc in enumerate(docs if isinstance(docs, list) else (), start=1):
        text = text_of(doc.get("content")) if isinstance(doc, dict) else None
        if text is None:
            yield Skipped(f"entry {entry.number}, document {place}", "it has no content")
            continue
        yield SourceRecord(
            source=source, position=text_of(doc.get("uuid")) or str(place), line=entry.line, content=text,
            at=moment(doc.get("created_at")) or created, agent="claude-ai",
            shown=f"{name} (Claude.ai): {text_of(doc.get('filename')) or place}",
        )  # fmt: skip


CONVERSATIONS = (
    json_reader("claude-code", _is_claude_code, _claude_code_turn, wanted=_may_speak),
    SourceReader("codex", _is_codex, _codex_turns),
    SourceReader("gemini", _is_gemini, _gemini_turns),
    json_reader("claude-code-history", _is_claude_code_history, _claude_code_prompt),
    SourceReader("codex-history", _is_codex_history, _codex_prompts),
    json_reader("chatgpt", _is_chatgpt, _chatgpt_turns, is_lines=lambda _file: False),
    json_reader("claude-ai", _is_claude_ai, _claude_ai_turns, is_lines=lambda _file: False),
    json_reader("claude-ai-projects", _is_claude_ai_projects, _claude_ai_notes, is_lines=lambda _file: False),
)
