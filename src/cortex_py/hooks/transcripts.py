"""The last answer in the transcript of a client that does not send it with its event."""

from __future__ import annotations

import json
import os
from pathlib import Path
from typing import Any

from ..paths import open_regular

__all__ = ["last_answer"]

_TAIL_BYTES = 256 * 1024
_MOST_CHARACTERS = 32_000


def last_answer(path: str) -> str:
    """The text of the newest turn of the assistant, read from the end of a transcript; empty if there is none."""
    if not path:
        return ""
    try:
        with open_regular(Path(path)) as file:
            size = file.seek(0, os.SEEK_END)
            file.seek(max(0, size - _TAIL_BYTES))
            lines = file.read(_TAIL_BYTES).split(b"\n")
    except (OSError, ValueError):
        return ""
    for line in reversed(lines):
        if text := _answer_in(line):
            return text[:_MOST_CHARACTERS]
    return ""


def _answer_in(line: bytes) -> str:
    try:
        entry = json.loads(line)
    except (ValueError, RecursionError):
        return ""
    if not isinstance(entry, dict):
        return ""
    message = entry.get("message")
    if entry.get("type") == "assistant" and isinstance(message, dict):
        return _joined(message.get("content"))
    payload = entry.get("payload")
    if isinstance(payload, dict) and payload.get("type") == "agent_message":
        return str(payload.get("message") or "")
    return ""


def _joined(content: Any) -> str:
    if isinstance(content, str):
        return content
    blocks = content if isinstance(content, list) else []
    texts = [one.get("text") for one in blocks if isinstance(one, dict) and one.get("type") == "text"]
    return "\n".join(text for text in texts if isinstance(text, str))
