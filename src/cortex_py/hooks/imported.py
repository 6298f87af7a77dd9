"""Reads the turns of imported conversations behind the import, and stages what is worth keeping, as of live sessions.

The position is kept in the store for each project, so that a reading that is stopped or killed goes on from there. One
process of a home reads at a time, and a call reads a bounded number of turns.
"""

from __future__ import annotations

import json
import time
from collections.abc import Callable
from dataclasses import asdict
from typing import Any

from ..backup.files import exclusive_lock
from ..clock import iso
from ..context.session import ProjectSession, ProjectSessions
from ..records import Memory
from .gate import SessionState
from .staging import NOT_KEPT, Reading, TurnReader
from .turns import Turn

__all__ = ["ImportedTurnReader"]

_AT_ONCE = 50  # turns between two savings of the position
_ROLES = ("user", "assistant")
_SESSION = "session:"


class ImportedTurnReader(TurnReader):
    """Reads on in the turns that were imported into a project."""

    def __init__(self, sessions: ProjectSessions, project: ProjectSession) -> None:
        super().__init__(sessions, lambda _folder: project)
        self._store = sessions.store
        self._space = project.memories.place.space("project", "turn")
        self._fact = f"turns-read:{project.id}"

    def read_on(self, stop: Callable[[], bool], most: int, seconds: float) -> Reading:
        """Read turns that were not read yet, until there are none, or `most`, or the time is over."""
        folder = self._home / "hooks"
        folder.mkdir(mode=0o700, parents=True, exist_ok=True)
        until = time.monotonic() + seconds
        with exclusive_lock(folder / "imported.lock", "", wait=False) as held:
            count, staged = 0, list[Memory]()
            after = self._load_position() if held else 0
            while held and count < most and time.monotonic() < until and not stop():
                with self._store.database.read() as session:
                    nums = self._store.memories.numbers_after(session, self._space, after, min(_AT_ONCE, most - count))
                    rows = self._store.memories.by_numbers(session, self._space, nums)
                if not nums:
                    break
                turns = [_turn(memory) for _, _, _, memory in rows if memory.status == "active"]
                read = [(turn, passage) for turn in turns if turn.role in _ROLES for passage in self._passages(turn)]
                staged += self._stage(read)
                after, count = nums[-1], count + len(nums)
                self._save_position(after)
        return Reading(count, tuple(staged))

    def _load_position(self) -> int:
        with self._store.database.read() as session:
            value = self._store.settings.get(session, self._fact)
        known: dict[str, Any] = json.loads(value) if value else {"after": 0, "sessions": {}}
        if not self._states:
            self._states = {name: SessionState(**state) for name, state in known["sessions"].items()}
        return int(known["after"])

    def _save_position(self, after: int) -> None:
        states = {name: asdict(state) | NOT_KEPT for name, state in list(self._states.items())[-20:]}
        with self._store.database.write() as session:
            self._store.settings.put(session, self._fact, json.dumps({"after": after, "sessions": states}))


def _turn(memory: Memory) -> Turn:
    session = next((tag.removeprefix(_SESSION) for tag in memory.tags if tag.startswith(_SESSION)), "")
    return Turn(
        id=memory.id,
        client=memory.agent_id or "import",
        session=session,
        role=memory.role or "",
        text=memory.content,
        git_branch=memory.git_branch or "",
        at=iso(memory.created_at),
    )
