"""Keeps the turns of hook events in the spool, before anything else is loaded.

What a client does not send with its event is read from the end of its transcript: an answer, and, of Codex, whether a
command failed.
"""

from __future__ import annotations

import json
import os
from collections.abc import Mapping
from functools import cached_property
from pathlib import Path
from typing import Any

from ...core.clock import Clock, SystemClock, iso
from ...core.config import Settings
from ...core.paths import open_regular
from ...core.security.home_key import HomeKey
from ...core.security.policy import Screen
from ...encryption import home_key
from .prepared import branch_of, read_head
from .sessions import GivenMemories, session_of
from .turns import append_turn, turns_of

__all__ = ["TurnKeeper"]

_TAIL_BYTES = 256 * 1024
_MOST_CHARACTERS = 32_000


class TurnKeeper:
    """Takes events of hooks: keeps their turns, and notes what their session was or was not given."""

    def __init__(self, settings: Settings, clock: Clock | None = None) -> None:
        self._settings = settings
        self._clock = clock or SystemClock()
        self._given = GivenMemories(settings.home)
        screen = Screen.by(settings)
        # Nobody can be asked about a turn, so a secret in it is removed even where the policy is to refuse it.
        self._screen = Screen("redact", screen.personal) if screen.policy == "block" else screen

    @cached_property
    def _key(self) -> HomeKey | None:
        return home_key(self._settings)

    def take(self, event: Mapping[str, Any]) -> dict[str, Any]:
        """Keep the turn of an event, and return the event with what its transcript adds.

        `delivered` in it are ids that the hook gave by itself; `missed` says that it gave nothing.
        """
        session, kind = session_of(event), event.get("kind")
        event = {**event, **_from_transcript(event)}
        if event.get("delivered"):
            self._given.add(
                session, tuple(str(one) for one in event["delivered"]), owed=False if kind == "start" else None
            )
        elif event.get("missed") and kind == "start":
            self._given.add(session, owed=True)
        if not self._settings.hook_capture:
            return event
        turn = {**event, "git_branch": branch_of(read_head(Path(str(event.get("cwd") or "/"))))}
        given = self._given.ids(session) if kind == "answer" else ()
        for one in turns_of(turn, self._screen, at=iso(self._clock.now()), given=given):
            append_turn(self._settings.home, one, self._key)
        return event


def _from_transcript(event: Mapping[str, Any]) -> dict[str, Any]:
    """The answer, or the failure of a command, that a client leaves out of its event."""
    path = str(event.get("transcript") or "")
    if event.get("kind") == "answer" and not event.get("text"):
        texts = (_answer_in(line) for line in _last_lines(path))
        return {"text": next((text[:_MOST_CHARACTERS] for text in texts if text), "")}
    if event.get("client") == "codex" and (call := str(event.get("call") or "")):
        codes = (_exit_code_in(line, call) for line in _last_lines(path) if call.encode() in line)
        if next((code for code in codes if code is not None), 0):
            return {"failed": True}
    return {}


def _last_lines(path: str) -> list[bytes]:
    """The lines at the end of a transcript, the last one first; none if it cannot be read."""
    if not path:
        return []
    try:
        with open_regular(Path(path)) as file:
            size = file.seek(0, os.SEEK_END)
            file.seek(max(0, size - _TAIL_BYTES))
            return file.read(_TAIL_BYTES).split(b"\n")[::-1]
    except (OSError, ValueError):
        return []


def _entry(line: bytes) -> dict[str, Any]:
    try:
        entry = json.loads(line)
    except (ValueError, RecursionError):
        return {}
    return entry if isinstance(entry, dict) else {}


def _exit_code_in(line: bytes, call: str) -> int | None:
    """The exit code of a command, in the entry that Codex writes when it has ended."""
    payload = _entry(line).get("payload")
    item = payload.get("item") if isinstance(payload, dict) else None
    code = item.get("exit_code") if isinstance(item, dict) and item.get("id") == call else None
    return code if isinstance(code, int) else None


def _answer_in(line: bytes) -> str:
    entry = _entry(line)
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
