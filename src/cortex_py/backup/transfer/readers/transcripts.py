"""Transcripts of coding agents: Claude Code, Codex, Gemini CLI. What was said becomes turns; what tools did not."""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator
from hashlib import sha256
from pathlib import Path
from typing import Any

from ....security.spoken import spoken
from .files import SourceFile
from .parsing import Line, first_objects, json_entries, json_lines, moment, text_of
from .records import Found, Skipped, SourceRecord

__all__ = [
    "ClaudeCodeHistory", "ClaudeCodeTranscripts", "CodexHistory", "CodexSessions", "GeminiChats", "joined", "said",
]  # fmt: skip


def said(text: object) -> str | None:
    """What a person or model said; None if that is nothing."""
    return (spoken(text) or None) if isinstance(text, str) else None


def joined(content: object) -> str | None:
    """The text of a message that is a text or a list of blocks."""
    if isinstance(content, list):
        blocks = (one for one in content if isinstance(one, dict))
        texts = (one.get("text") for one in blocks if str(one.get("type", "text")).lower() == "text")
        content = "\n\n".join(text for text in texts if isinstance(text, str) and text)
    return said(content)


class ClaudeCodeTranscripts:
    """`~/.claude/projects/<folder>/<session>.jsonl`."""

    kind = "claude-code"

    def recognises(self, file: SourceFile) -> bool:
        found = first_objects(file.head)
        # A session that was resumed often begins with many summaries, which name no session.
        return any("leafUuid" in one or ("sessionId" in one and ("uuid" in one or "snapshot" in one)) for one in found)

    def read(self, file: SourceFile) -> Iterator[Found]:
        with file.open() as stream:
            for line in json_lines(stream, wanted=_may_speak):
                if isinstance(line, Skipped):
                    yield line
                elif isinstance(line.value, dict) and line.value.get("type") in ("user", "assistant"):
                    yield from self._turn(line)

    def _turn(self, line: Line) -> Iterator[Found]:
        entry = line.value
        message, uuid = entry.get("message"), entry.get("uuid")
        # What the client, another agent or a failed request wrote, nobody said in this conversation.
        if any(entry.get(mark) for mark in ("isMeta", "isCompactSummary", "isSidechain", "isApiErrorMessage")):
            return
        if not isinstance(message, dict) or not isinstance(uuid, str):
            yield Skipped(f"line {line.number}", "it has no message or no uuid")
            return
        text = joined(message.get("content"))
        if text is None:
            return
        yield SourceRecord(
            source=self.kind,
            position=uuid,
            line=line.number,
            kind="turn",
            content=text,
            at=moment(entry.get("timestamp")),
            role=entry["type"],
            agent=self.kind,
            session=text_of(entry.get("sessionId")),
            folder=text_of(entry.get("cwd")),
            git_branch=text_of(entry.get("gitBranch")),
        )


def _may_speak(line: bytes) -> bool:
    """Whether a line may hold words of a person or model: results and calls of tools are most of a transcript."""
    if b'"type":"text"' in line:
        return True
    # Inside a text these quotation marks would be escaped.
    return not (b'"type":"tool_result"' in line or b'"type":"tool_use"' in line or b'"type":"thinking"' in line)


class ClaudeCodeHistory:
    """`~/.claude/history.jsonl`: the prompts that a person typed."""

    kind = "claude-code-history"

    def recognises(self, file: SourceFile) -> bool:
        found = first_objects(file.head)
        return bool(found) and all("display" in one and "timestamp" in one and "project" in one for one in found)

    def read(self, file: SourceFile) -> Iterator[Found]:
        with file.open() as stream:
            for line in json_lines(stream):
                if isinstance(line, Skipped):
                    yield line
                    continue
                entry = line.value if isinstance(line.value, dict) else {}
                text, stamp = said(entry.get("display")), entry.get("timestamp")
                if text is None or text.startswith("/"):
                    continue
                yield SourceRecord(
                    source=self.kind,
                    position=f"{stamp}:{entry.get('project')}",
                    line=line.number,
                    kind="turn",
                    content=_with_pasted(text, entry.get("pastedContents")),
                    at=moment(stamp),
                    role="user",
                    agent="claude-code",
                    session=text_of(entry.get("sessionId")),
                    folder=text_of(entry.get("project")),
                )


def _with_pasted(text: str, pasted: object) -> str:
    """The prompt with the texts that were pasted into it."""
    for one in pasted.values() if isinstance(pasted, dict) else ():
        if isinstance(one, dict) and (content := text_of(one.get("content"))):
            mark = re.compile(rf"\[Pasted text #{re.escape(str(one.get('id')))}(?: \+\d+ lines)?\]")
            text = mark.sub(content.replace("\\", "\\\\"), text)
    return text


class CodexSessions:
    """`~/.codex/sessions/<date>/rollout-*.jsonl`."""

    kind = "codex"

    def recognises(self, file: SourceFile) -> bool:
        types = ("session_meta", "response_item", "event_msg", "turn_context", "compacted")
        return any(
            one.get("type") in types and isinstance(one.get("payload"), dict) for one in first_objects(file.head)
        )

    def read(self, file: SourceFile) -> Iterator[Found]:
        about: dict[str, str | None] = {"session": None, "folder": None, "git_branch": None}
        number = 0
        before: tuple[str, str, bool] | None = None
        with file.open() as stream:
            for line in json_lines(stream, wanted=_may_be_said):
                if isinstance(line, Skipped):
                    yield line
                    continue
                entry = line.value if isinstance(line.value, dict) else {}
                payload = entry.get("payload")
                if not isinstance(payload, dict):
                    yield Skipped(f"line {line.number}", "it has no payload")
                    continue
                if entry.get("type") == "session_meta":
                    about |= _codex_facts(payload)
                if entry.get("type") != "event_msg":
                    continue
                item = payload.get("item")
                message = item if isinstance(item, dict) and payload.get("type") == "item_completed" else payload
                role = _SAID.get(str(message.get("type")))
                text = joined(message.get("content", message.get("message"))) if role else None
                # The same message may be written in both forms.
                if role is None or text is None or (role, text, message is not item) == before:
                    continue
                before = (role, text, message is item)
                number += 1
                yield SourceRecord(
                    source=f"{self.kind}:{about['session'] or file.path.name}",
                    position=str(number),
                    line=line.number,
                    kind="turn",
                    content=text,
                    at=moment(entry.get("timestamp")),
                    role=role,
                    agent=self.kind,
                    session=about["session"],
                    folder=about["folder"],
                    git_branch=about["git_branch"],
                )


_SAID = {
    "user_message": "user", "agent_message": "assistant",
    # As items of later versions.
    "UserMessage": "user", "AgentMessage": "assistant",
}  # fmt: skip


def _may_be_said(line: bytes) -> bool:
    # What the model was sent holds files that the client added; what was said is also an event.
    return b'"type":"response_item"' not in line[:200]


def _codex_facts(payload: dict[str, Any]) -> dict[str, str | None]:
    git = payload.get("git")
    branch = git.get("branch") if isinstance(git, dict) else None
    return {
        "session": text_of(payload.get("id")),
        "folder": text_of(payload.get("cwd")),
        "git_branch": text_of(branch),
    }


class CodexHistory:
    """`~/.codex/history.jsonl`: the prompts that a person typed, without the folder they were typed in."""

    kind = "codex-history"

    def recognises(self, file: SourceFile) -> bool:
        found = first_objects(file.head)
        return bool(found) and all({"session_id", "ts", "text"} <= one.keys() for one in found)

    def read(self, file: SourceFile) -> Iterator[Found]:
        # The sessions beside it say more: they name their folder.
        home = Path(file.name).parent
        kept = (
            set() if file.is_member else {one.stem[-_ID_LENGTH:] for one in home.glob("*sessions/**/rollout-*.jsonl")}
        )
        left = 0
        with file.open() as stream:
            for line in json_lines(stream):
                if isinstance(line, Skipped):
                    yield line
                    continue
                entry = line.value if isinstance(line.value, dict) else {}
                session, stamp, text = text_of(entry.get("session_id")), entry.get("ts"), said(entry.get("text"))
                if session in kept:
                    left += 1
                elif text is not None and not text.startswith("/"):
                    yield SourceRecord(
                        source=self.kind,
                        position=f"{stamp}:{session}",
                        line=line.number,
                        kind="turn",
                        content=text,
                        at=moment(stamp),
                        role="user",
                        agent="codex",
                        session=session,
                    )
        if left:
            yield Skipped("", f"prompts that the sessions beside it hold too: {left}")


_ID_LENGTH = 36


class GeminiChats:
    """`~/.gemini/tmp/<project>/chats/session-*.jsonl`, and the `.json` of earlier versions."""

    kind = "gemini"

    def recognises(self, file: SourceFile) -> bool:
        if any("sessionId" in one and "projectHash" in one for one in first_objects(file.head, 1)):
            return True
        start = file.head[:2_000]
        return start.lstrip().startswith(b"{") and b'"sessionId"' in start and b'"projectHash"' in start

    def read(self, file: SourceFile) -> Iterator[Found]:
        messages: dict[str, tuple[int, dict[str, Any]]] = {}
        facts: dict[str, Any] = {}
        for number, value in self._values(file, messages, facts):
            if number is None:
                yield value
        folder = _gemini_folder(facts, messages)
        session = text_of(facts.get("sessionId"))
        for identity, (line, message) in messages.items():
            role = {"user": "user", "gemini": "assistant"}.get(str(message.get("type")))
            text = joined(message.get("content")) if role else None
            if text is not None:
                yield SourceRecord(
                    source=f"{self.kind}:{session or file.path.name}",
                    position=identity,
                    line=line,
                    kind="turn",
                    content=text,
                    at=moment(message.get("timestamp")),
                    role=role,
                    agent=self.kind,
                    session=session,
                    folder=folder,
                )

    def _values(
        self, file: SourceFile, messages: dict[str, tuple[int, dict[str, Any]]], facts: dict[str, Any]
    ) -> Iterator[tuple[int | None, Any]]:
        """Replay the file: later lines replace, rewind or reset earlier messages. Yields only what is damaged."""
        is_lines = bool(first_objects(file.head, 1))
        with file.open() as stream:
            found: Iterable[Any] = json_lines(stream) if is_lines else json_entries(stream)
            for one in found:
                if isinstance(one, Skipped):
                    yield None, one
                    continue
                line = one.number if is_lines else one.line
                _replay(one.value, line, messages, facts)


_WORKSPACE = re.compile(r"Workspace Directories:\*\*\n {2}- (.+)")


def _gemini_folder(facts: dict[str, Any], messages: dict[str, tuple[int, dict[str, Any]]]) -> str | None:
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


def _replay(value: object, line: int, messages: dict[str, tuple[int, dict[str, Any]]], facts: dict[str, Any]) -> None:
    if not isinstance(value, dict):
        return
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
                messages[message["id"]] = (line, message)
    if changes is None and isinstance(value.get("id"), str) and "type" in value:
        messages[value["id"]] = (line, value)
    elif changes is not None or "projectHash" in value:
        facts |= {name: one for name, one in inner.items() if name != "messages"}
