"""What each client sends to a hook, and the answer it accepts. Standard library only; part of `cortex hook`.

Clients refuse answers with a field they do not know, so every answer is built here and nowhere else.
"""

from __future__ import annotations

import json
import re
from collections.abc import Mapping
from typing import Any, NamedTuple

__all__ = ["CLIENTS", "Hook", "answer", "find_hook", "read_event"]

_MOST_TEXT = 32_000  # characters of a turn that are kept
_MOST_TOOL = 4_000  # of what a tool was given, and of what it answered
# Gemini CLI lists behind the output of a command what became of it; these two only of one that failed.
_GEMINI_FAILURE = re.compile(
    r"^(?:Exit Code|Signal): .+(?:\n(?:Signal|Background PIDs|Process Group PGID): .+)*\s*(?:</untrusted_\w+>)?\s*\Z",
    re.MULTILINE,
)
_GEMINI_END = 300  # characters


class Hook(NamedTuple):
    """One event of a client: its name there, what it is for us, and whether the answer to it can bring context."""

    name: str
    kind: str
    takes_context: bool = False


# The kinds: `start` of a session, a user's `prompt`, a `tool` that was used, the assistant's `answer`, a `compact` of
# the conversation that comes now, and the `end` of a session. Gemini CLI announces a compression with the trigger
# `auto` before each request, whether it is needed or not; only the trigger `manual` is one.
CLIENTS: Mapping[str, tuple[Hook, ...]] = {
    "claude-code": (
        Hook("SessionStart", "start", True),
        Hook("UserPromptSubmit", "prompt", True),
        Hook("PostToolUse", "tool", True),
        Hook("PostToolUseFailure", "tool", True),
        Hook("PreCompact", "compact"),
        Hook("Stop", "answer"),
        Hook("SessionEnd", "end"),
    ),
    "codex": (
        Hook("SessionStart", "start", True),
        Hook("UserPromptSubmit", "prompt", True),
        Hook("PostToolUse", "tool", True),
        Hook("PreCompact", "compact"),
        Hook("Stop", "answer"),
    ),
    "gemini": (
        Hook("SessionStart", "start", True),
        Hook("BeforeAgent", "prompt", True),
        Hook("AfterTool", "tool", True),
        Hook("PreCompress", "compact"),
        Hook("AfterAgent", "answer"),
        Hook("SessionEnd", "end"),
    ),
    "cursor": (
        Hook("sessionStart", "start", True),
        Hook("beforeSubmitPrompt", "prompt"),
        Hook("afterAgentResponse", "answer"),
        Hook("stop", "end"),
    ),
    "copilot": (
        Hook("sessionStart", "start", True),
        Hook("userPromptSubmitted", "prompt"),
        Hook("postToolUse", "tool"),
        Hook("agentStop", "answer"),
        Hook("sessionEnd", "end"),
    ),
}


def find_hook(client: str, event: str) -> Hook | None:
    """The event of a client by its name there, in any case, with or without hyphens."""
    wanted = _plain(event)
    return next((one for one in CLIENTS.get(client, ()) if _plain(one.name) == wanted), None)


def _plain(name: str) -> str:
    return name.replace("-", "").replace("_", "").lower()


def answer(client: str, hook: Hook, context: str = "") -> str:
    """The answer in the client's form; without a context, its empty answer."""
    text = context if hook.takes_context else ""
    body: dict[str, Any] = {}
    if client == "cursor":
        body = {"continue": True} if hook.kind == "prompt" else {}
        body |= {"additional_context": text} if text else {}
    elif client == "copilot":
        body = {"additionalContext": text} if text else {}
    elif text:
        body = {"hookSpecificOutput": {"hookEventName": hook.name, "additionalContext": text}}
    # In ASCII, so that no code page can spoil it.
    return json.dumps(body, separators=(",", ":"))


def read_event(client: str, hook: Hook, data: bytes) -> dict[str, Any]:
    """What a client sent, in one form for all of them; what is missing or of the wrong type is left out."""
    try:
        sent = json.loads(data.decode("utf-8-sig", "replace")) if data.strip() else {}
    except (ValueError, RecursionError):
        sent = {}
    if not isinstance(sent, dict):
        sent = {}
    roots = sent.get("workspace_roots")
    event = {
        "client": client,
        "event": hook.name,
        "kind": hook.kind,
        "session": _text(sent, "session_id", "sessionId", "conversation_id"),
        "turn": _text(sent, "prompt_id", "turn_id", "turnId", "generation_id"),
        "cwd": _text(sent, "cwd") or (str(roots[0]) if isinstance(roots, list) and roots else ""),
        "source": _text(sent, "source", "trigger", "reason"),
        "transcript": _text(sent, "transcript_path", "transcriptPath"),
    }
    if hook.kind == "prompt":
        event["text"] = _text(sent, "prompt")
    elif hook.kind == "answer":
        event["text"] = _text(sent, "last_assistant_message", "prompt_response", "text")
    elif hook.kind == "tool":
        event |= _tool(sent, hook)
    if client == "gemini" and hook.kind == "compact" and event["source"] == "auto":
        event["kind"] = ""
    kept = {key: value[:_MOST_TEXT] if isinstance(value, str) else value for key, value in event.items()}
    return {key: value for key, value in kept.items() if value not in (None, "")}


def _text(sent: Mapping[str, Any], *names: str) -> str:
    return next((value for name in names if isinstance(value := sent.get(name), str) and value), "")


def _tool(sent: Mapping[str, Any], hook: Hook) -> dict[str, Any]:
    given = _parsed(sent.get("tool_input", sent.get("toolArgs")))
    output = _parsed(sent.get("tool_response", sent.get("toolResult", sent.get("error"))))
    found: dict[str, Any] = {
        "tool": _text(sent, "tool_name", "toolName"),
        "call": _text(sent, "tool_use_id"),
        "failed": hook.name.endswith("Failure") or _failed(output),
        "text": _shortened(_said(output)),
    }
    if isinstance(given, dict):
        found["path"] = _text(given, "file_path", "path", "absolute_path", "filePath", "notebook_path")
        found["command"] = _text(given, "command", "cmd")[:_MOST_TOOL]
    return found


def _parsed(value: Any) -> Any:
    """Some clients send JSON inside a text."""
    if isinstance(value, str) and value[:1] in ("{", "["):
        try:
            return json.loads(value)
        except (ValueError, RecursionError):
            return value
    return value


def _failed(output: Any) -> bool:
    if not isinstance(output, dict):
        return False
    code = next((output[name] for name in ("exit_code", "exitCode", "returnCode") if name in output), 0)
    said = output.get("llmContent")
    return (
        bool(output.get("error") or output.get("is_error") or output.get("isError"))
        or (isinstance(code, int) and code != 0)
        or output.get("resultType") == "failure"
        or (isinstance(said, str) and bool(_GEMINI_FAILURE.search(said[-_GEMINI_END:])))
    )


def _said(output: Any) -> str:
    """The text of a tool's answer."""
    if isinstance(output, str):
        return output
    if isinstance(output, dict):
        names = ("error", "stderr", "stdout", "output", "llmContent", "textResultForLlm", "content")
        texts = [output[name] for name in names if isinstance(output.get(name), str) and output[name]]
        return "\n".join(texts)
    return ""


def _shortened(text: str) -> str:
    """The beginning and the end: an error comes last."""
    half = _MOST_TOOL // 2
    return text if len(text) <= _MOST_TOOL else f"{text[:half]}\n[…]\n{text[-half:]}"
