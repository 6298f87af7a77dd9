"""Turns of conversations as records: searchable by words at once, by meaning when their vectors have been filled in.

Nobody can be asked about a turn, so a secret in one is removed even where notes with secrets are refused. A turn is
neither labelled nor read for the graph, and personal data in it is counted later, with the vectors.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace

from ...config import Settings
from ...embedding.backends.backend import Backend
from ...records import Memory, NewMemory
from ...security.policy import Screen
from ...store.store import Store
from ..spaces import Place, record_model, spaces_to_lock
from .capture import Capture, screen_record

__all__ = ["TurnCapture"]


class TurnCapture:
    def __init__(self, store: Store, backend: Backend, settings: Settings, place: Place, capture: Capture) -> None:
        self._store = store
        self._backend = backend
        self._screen = Screen("redact" if settings.secrets == "block" else settings.secrets, settings.personal_data)
        self._place = place
        self._capture = capture

    def check(self, item: NewMemory) -> Memory:
        """The record of a turn, checked and screened; nothing is written."""
        if item.kind != "turn" or item.domain != "project":
            item = replace(item, kind="turn", domain="project")
        return screen_record(self._capture.check(item), self._screen)

    def known(self, keys: Sequence[str]) -> dict[str, Memory]:
        """The stored turns with these keys."""
        with self._store.database.read() as session:
            return self._store.memories.by_key(session, self._place.space("project", "turn"), keys)

    def write(self, turns: Mapping[str, Memory]) -> None:
        """Store turns that `check` returned, by their keys, in one transaction; one whose key is known stays."""
        space = self._place.writable_space("project", "turn")
        drafts = [self._capture.index(memory, space, key) for key, memory in turns.items()]
        if not drafts:
            return
        with self._store.database.write(*spaces_to_lock(self._store, self._backend, drafts)) as session:
            # Another process may have stored some of them meanwhile.
            stored = self._store.memories.by_key(session, space, list(turns))
            fresh = [one for one in drafts if one.idempotency_key not in stored]
            record_model(self._store, session, self._backend, fresh)
            self._store.memories.insert_all(session, fresh, self._store.memories.next_seqs(session, [space]))
