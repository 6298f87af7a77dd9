"""Keeps the turns of hook events in the spool, before anything else is loaded."""

from __future__ import annotations

from collections.abc import Mapping
from functools import cached_property
from pathlib import Path
from typing import Any

from ..clock import Clock, SystemClock, iso
from ..config import Settings
from ..encryption import home_key
from ..security.home_key import HomeKey
from ..security.policy import Screen
from .prepared import branch_of, read_head
from .sessions import GivenMemories, session_of
from .transcripts import last_answer
from .turns import append_turn, turns_of

__all__ = ["TurnKeeper"]


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

    def take(self, event: Mapping[str, Any]) -> None:
        """Keep the turn of an event.

        `delivered` in it are ids that the hook gave by itself; `missed` says that it gave nothing.
        """
        session, kind = session_of(event), event.get("kind")
        if event.get("delivered"):
            self._given.add(
                session, tuple(str(one) for one in event["delivered"]), owed=False if kind == "start" else None
            )
        elif event.get("missed") and kind == "start":
            self._given.add(session, owed=True)
        if not self._settings.hook_capture:
            return
        turn = {**event, "git_branch": branch_of(read_head(Path(str(event.get("cwd") or "/"))))}
        if kind == "answer" and not event.get("text"):
            turn["text"] = last_answer(str(event.get("transcript") or ""))
        given = self._given.ids(session) if kind == "answer" else ()
        for one in turns_of(turn, self._screen, at=iso(self._clock.now()), given=given):
            append_turn(self._settings.home, one, self._key)
