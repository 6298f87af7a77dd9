"""What each session of a client was given already: small files in the home that outlive the process."""

from __future__ import annotations

import hashlib
import json
import os
import threading
import time
from collections.abc import Mapping
from contextlib import suppress
from datetime import UTC, datetime
from pathlib import Path
from typing import Any, NamedTuple

from ...core.paths import read_regular

__all__ = ["GivenMemories", "GivenTo", "session_of"]

_MOST_IDS = 2_000
_MOST_SESSIONS = 500
_MOST_BYTES = 200_000
_KEEP_SECONDS = 14 * 24 * 3_600


def session_of(event: Mapping[str, Any]) -> str:
    """The session of an event, by a name that no other client has; empty if the client did not say."""
    session = event.get("session")
    return f"{event.get('client')}:{session}" if session else ""


class GivenTo(NamedTuple):
    """To how many sessions a memory was given, and when the last of them was last given something."""

    sessions: int
    last_at: datetime | None


class GivenMemories:
    """By session: the ids of the memories it was given, and whether its start is still owed.

    A start is owed if the client did not get the answer to it in time; the next prompt then brings it.
    """

    def __init__(self, home: Path) -> None:
        self._folder = home / "hooks" / "sessions"
        self._lock = threading.Lock()

    def ids(self, session: str) -> tuple[str, ...]:
        """Memories that a session was given; without a session nothing is known."""
        return tuple(self._read(session).get("given", ()))

    def owes_start(self, session: str) -> bool:
        return bool(self._read(session).get("owed"))

    def add(self, session: str, ids: tuple[str, ...] = (), *, owed: bool | None = None) -> None:
        """Note memories as given, or a start as owed or delivered."""
        if not session:
            return
        with self._lock:
            state = self._read(session)
            given = list(dict.fromkeys((*state.get("given", ()), *ids)))[-_MOST_IDS:]
            self._write(session, {"given": given, "owed": state.get("owed", False) if owed is None else owed})

    def forget(self, session: str) -> None:
        """The client has dropped what it was given: its conversation was cleared or compacted."""
        with self._lock, suppress(OSError):
            self._path(session).unlink(missing_ok=True)

    def of_memory(self, memory_id: str) -> GivenTo:
        """How many sessions were given a memory, among the last ones."""
        count, last = 0, 0.0
        with suppress(OSError):
            dated = sorted(((path.stat().st_mtime, path) for path in self._folder.glob("*.json")), reverse=True)
            for changed, path in dated[:_MOST_SESSIONS]:
                if memory_id in self._content(path).get("given", ()):
                    count, last = count + 1, max(last, changed)
        return GivenTo(count, datetime.fromtimestamp(last, UTC) if last else None)

    def clean(self) -> None:
        """Remove what is left of sessions that nobody has continued for two weeks."""
        with suppress(OSError):
            for path in self._folder.iterdir():
                if path.stat().st_mtime < time.time() - _KEEP_SECONDS:
                    path.unlink(missing_ok=True)

    def _path(self, session: str) -> Path:
        name = hashlib.sha256(session.encode("utf-8", "surrogatepass")).hexdigest()[:32]
        return self._folder / f"{name}.json"

    def _read(self, session: str) -> dict[str, Any]:
        return self._content(self._path(session))

    def _content(self, path: Path) -> dict[str, Any]:
        try:
            found = json.loads(read_regular(path, _MOST_BYTES) or b"{}")
        except ValueError:
            return {}
        return found if isinstance(found, dict) else {}

    def _write(self, session: str, state: dict[str, Any]) -> None:
        self._folder.mkdir(mode=0o700, parents=True, exist_ok=True)
        path = self._path(session)
        draft = path.with_name(f".{path.name}-{os.getpid()}")
        with os.fdopen(os.open(draft, os.O_WRONLY | os.O_CREAT | os.O_TRUNC, 0o600), "w") as file:
            json.dump(state, file)
        draft.replace(path)
