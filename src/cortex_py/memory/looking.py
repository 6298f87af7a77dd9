"""Looking at memories without using them: what other parts ask for on their own account counts as nobody's recall."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING

from ..clock import Clock, to_micros
from ..records import Hit, Memory, Mode
from ..store.conditions import EVERYTHING
from ..store.database import Session
from ..store.scope import View
from ..store.store import Store
from ..store.where import Where
from .place import Place
from .recall import Query, Recall

if TYPE_CHECKING:
    import numpy as np
    from numpy.typing import NDArray

__all__ = ["LookingOperations"]


class LookingOperations:
    _store: Store
    _clock: Clock
    _place: Place
    _recall: Recall

    def related(self, text: str, limit: int, *, mode: Mode = "text", filter: str = "") -> list[Hit]:
        """Memories about a text, best first: by their words, or by meaning too."""
        return list(self._recall.run(Query(text=text, filter=filter, mode=mode, limit=limit)).results)

    def listed(self, filter: str, limit: int) -> list[Memory]:
        """The newest memories that a filter lets through."""
        return [hit.memory for hit in self._recall.run(Query(text=None, filter=filter, limit=limit)).results]

    def visible(self, ids: Sequence[str]) -> dict[str, Memory]:
        """Those of the memories that can be seen from here, by id, parts of scanned files among them."""
        if not ids:
            return {}
        with self._store.database.read() as session:
            return {memory.id: memory for _, memory in self._store.memories.named(session, ids, self._sight(session))}

    def vectors(self, ids: Sequence[str]) -> dict[str, NDArray[np.float32]]:
        """One vector of length 1 for each of the memories that can be seen from here."""
        if not ids:
            return {}
        with self._store.database.read() as session:
            sight = self._sight(session)
            rows = self._store.memories.numbers(session, ids, sight)
            return dict(zip(rows, self._store.vectors(session, sight.spaces, list(rows.values())), strict=True))

    def _sight(self, session: Session) -> Where:
        place, now = self._place, to_micros(self._clock.now())
        view = View((*place.spaces(), place.space("project", "file")), now, place.git_branch())
        return self._store.scope(session, EVERYTHING, view).where
