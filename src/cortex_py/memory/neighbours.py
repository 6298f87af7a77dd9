"""What lies near a memory by meaning, as plain cosines: the same whatever else is stored."""

from __future__ import annotations

from typing import TYPE_CHECKING

from ..clock import Clock, to_micros
from ..embedding.backend import Backend
from ..records import Memory
from ..store.conditions import EVERYTHING
from ..store.scope import View
from ..store.store import Store
from .finding import seek_readable
from .model import check_model
from .place import Place

if TYPE_CHECKING:
    import numpy as np
    from numpy.typing import NDArray

__all__ = ["Neighbours"]


class Neighbours:
    def __init__(self, store: Store, backend: Backend, clock: Clock, place: Place) -> None:
        self._store = store
        self._backend = backend
        self._clock = clock
        self._place = place

    def of(self, memory: Memory, count: int, text: str | None = None) -> list[tuple[Memory, float]]:
        """Other notes of the memory's own space that are seen from here, the nearest first.

        Near to the memory as it is stored, or to a text in its place.
        """
        written = None if text is None else self._backend.embed([text])[0]
        with self._store.search.turn(), self._store.database.read() as session:
            check_model(self._store, session, self._backend)
            stored = seek_readable(self._store, session, self._place.spaces(), memory.id)
            space = stored[1] if stored else self._place.space(memory.domain)
            here = self._place.git_branch() if space in self._place.spaces() else None
            view = View((space,), to_micros(self._clock.now()), here)
            scope = self._store.scope(session, EVERYTHING, view)
            if written is None:
                if stored is None:
                    return []
                written = self._store.vectors(session, (space,), [stored[0]])[0]
            vector = written
            details = self._store.search.candidates(session, scope, (), vector, count + 1).details
            cosines = _best(details.vectors @ vector, details.chunk_record, details.size)
            order = sorted(range(details.size), key=lambda n: (-cosines[n], int(details.nums[n])))[: count + 1]
            nums = [int(details.nums[n]) for n in order]
            memories = self._store.memories.fetch(session, nums, (space,))
        found = [(memories[num], cosines[n]) for num, n in zip(nums, order, strict=True) if num in memories]
        return [(one, cosine) for one, cosine in found if one.id != memory.id][:count]


def _best(cosines: NDArray[np.float32], record: NDArray[np.int32], size: int) -> list[float]:
    """The best cosine of each record's parts."""
    best = [-1.0] * size
    for value, number in zip(cosines.tolist(), record.tolist(), strict=True):
        best[number] = max(best[number], value)
    return best
