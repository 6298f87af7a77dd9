"""Exports of chat services: ChatGPT and Claude.ai, as a folder, a file or a zip archive."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

from .files import SourceFile
from .parsing import json_entries, moment, text_of
from .records import Found, Skipped, SourceRecord
from .transcripts import joined, said

__all__ = ["ChatGptExport", "ClaudeAiExport", "ClaudeAiProjects"]


def _begins(file: SourceFile, *names: bytes) -> bool:
    """Whether the file is an array whose first entries have these fields."""
    head = file.head.lstrip()
    return head.startswith(b"[") and all(b'"' + name + b'"' in head for name in names)


class ChatGptExport:
    """`conversations.json`: each conversation is a tree of messages, of which the last branch is the one shown."""

    kind = "chatgpt"

    def recognises(self, file: SourceFile) -> bool:
        return _begins(file, b"mapping") and (b'"parent"' in file.head or b'"message"' in file.head)

    def read(self, file: SourceFile) -> Iterator[Found]:
        with file.open() as stream:
            for entry in json_entries(stream):
                if isinstance(entry, Skipped):
                    yield entry
                elif not isinstance(entry.value, dict) or not isinstance(entry.value.get("mapping"), dict):
                    yield Skipped(f"entry {entry.number}", "it is no conversation")
                else:
                    yield from self._turns(entry.value, entry.line)

    def _turns(self, conversation: dict[str, Any], line: int) -> Iterator[Found]:
        identity = text_of(conversation.get("conversation_id")) or text_of(conversation.get("id"))
        title = text_of(conversation.get("title"))
        created = conversation.get("create_time")
        source = f"{self.kind}:{identity or f'{title}@{created}'}"
        for node, message in _ordered(conversation["mapping"]):
            author = message.get("author")
            role = author.get("role") if isinstance(author, dict) else None
            facts = message.get("metadata")
            is_hidden = isinstance(facts, dict) and facts.get("is_visually_hidden_from_conversation")
            content = message.get("content")
            if role not in ("user", "assistant") or is_hidden or not isinstance(content, dict):
                continue
            if content.get("content_type") not in ("text", "multimodal_text", None):
                continue
            parts = content.get("parts")
            texts = [one for one in parts if isinstance(one, str)] if isinstance(parts, list) else []
            if text := said("\n\n".join(one for one in texts if one)):
                yield SourceRecord(
                    source=source,
                    position=text_of(message.get("id")) or node,
                    line=line,
                    kind="turn",
                    content=text,
                    at=moment(message.get("create_time")) or moment(created),
                    role=role,
                    agent=self.kind,
                    session=identity,
                    summary=title,
                )


def _ordered(mapping: dict[str, Any]) -> Iterator[tuple[str, dict[str, Any]]]:
    """The messages of all branches, each after its parent; a node is visited once, whatever its links say."""
    nodes = {name: node for name, node in mapping.items() if isinstance(node, dict)}
    waiting = [name for name, node in nodes.items() if node.get("parent") not in nodes][::-1]
    waiting = [*list(nodes)[::-1], *waiting]
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


class ClaudeAiExport:
    """`conversations.json` of Claude.ai."""

    kind = "claude-ai"

    def recognises(self, file: SourceFile) -> bool:
        return _begins(file, b"chat_messages")

    def read(self, file: SourceFile) -> Iterator[Found]:
        with file.open() as stream:
            for entry in json_entries(stream):
                if isinstance(entry, Skipped):
                    yield entry
                elif not isinstance(entry.value, dict) or not isinstance(entry.value.get("chat_messages"), list):
                    yield Skipped(f"entry {entry.number}", "it is no conversation")
                else:
                    yield from self._turns(entry.value, entry.number, entry.line)

    def _turns(self, conversation: dict[str, Any], number: int, line: int) -> Iterator[Found]:
        identity = text_of(conversation.get("uuid"))
        for place, message in enumerate(conversation["chat_messages"], start=1):
            if not isinstance(message, dict):
                yield Skipped(f"entry {number}, message {place}", "it is no message")
                continue
            role = {"human": "user", "assistant": "assistant"}.get(str(message.get("sender")))
            text = said(message.get("text")) or joined(message.get("content"))
            if role and text:
                yield SourceRecord(
                    source=f"{self.kind}:{identity or conversation.get('created_at')}",
                    position=text_of(message.get("uuid")) or str(place),
                    line=line,
                    kind="turn",
                    content=text,
                    at=moment(message.get("created_at")) or moment(conversation.get("created_at")),
                    role=role,
                    agent=self.kind,
                    session=identity,
                    summary=text_of(conversation.get("name")),
                )


class ClaudeAiProjects:
    """`projects.json` of Claude.ai: the instructions and documents of projects become notes."""

    kind = "claude-ai-projects"

    def recognises(self, file: SourceFile) -> bool:
        return _begins(file, b"prompt_template") or (_begins(file, b"docs", b"uuid") and b'"filename"' in file.head)

    def read(self, file: SourceFile) -> Iterator[Found]:
        with file.open() as stream:
            for entry in json_entries(stream):
                if isinstance(entry, Skipped):
                    yield entry
                elif not isinstance(entry.value, dict):
                    yield Skipped(f"entry {entry.number}", "it is no project")
                else:
                    yield from self._notes(entry.value, entry.number, entry.line)

    def _notes(self, project: dict[str, Any], number: int, line: int) -> Iterator[Found]:
        identity, name = text_of(project.get("uuid")), text_of(project.get("name")) or "project"
        source = f"{self.kind}:{identity or name}"
        created = moment(project.get("created_at"))
        if text := text_of(project.get("prompt_template")):
            shown = f"{name} (Claude.ai)"
            yield SourceRecord(
                source=source, position="prompt_template", line=line, content=text, at=created, namespace="prompts",
                agent="claude-ai", shown=shown,
            )  # fmt: skip
        docs = project.get("docs")
        for place, doc in enumerate(docs if isinstance(docs, list) else (), start=1):
            text = text_of(doc.get("content")) if isinstance(doc, dict) else None
            if text is None or not isinstance(doc, dict):
                yield Skipped(f"entry {number}, document {place}", "it has no content")
                continue
            yield SourceRecord(
                source=source, position=text_of(doc.get("uuid")) or str(place), line=line, content=text,
                at=moment(doc.get("created_at")) or created, agent="claude-ai",
                shown=f"{name} (Claude.ai): {text_of(doc.get('filename')) or place}",
            )  # fmt: skip
