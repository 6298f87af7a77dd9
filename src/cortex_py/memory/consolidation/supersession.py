"""Which records contradict one, which record replaced which, and undoing a consolidation."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import lru_cache
from typing import TYPE_CHECKING, Literal, overload

from ...clock import Clock, to_micros
from ...embedding.backends.backend import Backend
from ...errors import Conflict, InvalidInput
from ...records import LIVE_STATUSES, Contradiction, Memory
from ...security.permission import require_write
from ...store.database import Session
from ...store.search.filters import EVERYTHING, View
from ...store.store import Store
from ..embedding_model import CANNOT_EMBED, check_model, model_problem
from ..lifecycle import Lifecycle, seek_readable
from ..place import Place

if TYPE_CHECKING:
    import numpy as np
    from numpy.typing import NDArray

    from ...store.search.candidates import Details
    from ..comparison.statements import Statement

__all__ = ["ConflictFinder", "LaterConflicts", "NeighbourFinder", "Supersession", "UndoResult"]

_NEIGHBOURS = 8
_REPORTED = 3
# Longer texts make many statements; one difference between two of them means little.
_LONGEST_COMPARED = 1_000


class NeighbourFinder:
    """Finds the notes nearest to a memory by plain cosine, which does not depend on what else is stored."""

    def __init__(self, store: Store, backend: Backend, clock: Clock, place: Place) -> None:
        self._store = store
        self._backend = backend
        self._clock = clock
        self._place = place

    def find(self, memory: Memory, count: int, text: str | None = None) -> list[tuple[Memory, float]]:
        """Other visible notes of the memory's own space with their cosines, nearest first.

        They are near to the memory as stored, or to `text` in its place. Without a usable model none are known.
        """
        if model_problem(self._backend):
            return []
        # Imported on first use: it imports NumPy.
        from ...store.search.vectors import single_threaded

        try:
            written = None if text is None else self._backend.embed([text])[0]
        except CANNOT_EMBED:
            return []
        with self._store.database.read() as session:
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
            with single_threaded():
                details = self._store.search.nearest(session, scope, written, count + 1)
                if not details.size:
                    return []
                nums, cosines = _nearest(details, written, count + 1)
            memories = self._store.memories.fetch(session, nums, (space,))
        found = [(memories[num], cosine) for num, cosine in zip(nums, cosines, strict=True) if num in memories]
        return [(one, cosine) for one, cosine in found if one.id != memory.id][:count]


class ConflictFinder:
    def __init__(self, neighbours: NeighbourFinder) -> None:
        self._neighbours = neighbours

    def find(self, memory: Memory) -> tuple[Contradiction, ...]:
        """Other memories of the same space that contradict this one, nearest first, each with the reason."""
        if memory.kind != "note" or memory.role is not None or len(memory.content) > _LONGEST_COMPARED:
            return ()
        # Imported on first use: recall does not need it.
        from ..comparison.conflicts import ABOUT_ONE_THING, conflict
        from ..recall.versions import replacement

        found = []
        for other, cosine in self._neighbours.find(memory, _NEIGHBOURS):
            if other.role is not None or len(other.content) > _LONGEST_COMPARED:
                continue
            older, newer = sorted((other, memory), key=lambda one: one.created_at)
            if gone := replacement(older, newer, cosine):
                found.append(Contradiction(other.id, f"given up: {gone}"))
            elif cosine >= ABOUT_ONE_THING and (
                difference := conflict(_statement(other.content), _statement(memory.content), cosine)
            ):
                found.append(Contradiction(other.id, str(difference)))
        return tuple(found[:_REPORTED])

    def rehearse(self, content: str) -> None:
        """Load what a comparison needs."""
        from ..comparison.conflicts import conflict
        from ..comparison.replacement import given_up

        conflict(_statement(content), _statement(content), 1.0)
        given_up(content, content)


class LaterConflicts(Sequence[Contradiction]):
    """The contradictions of a memory, looked for when they are first read."""

    def __init__(self, find: Callable[[], tuple[Contradiction, ...]]) -> None:
        self._find: Callable[[], tuple[Contradiction, ...]] | None = find
        self._found: tuple[Contradiction, ...] = ()

    def _all(self) -> tuple[Contradiction, ...]:
        if self._find is not None:
            self._found, self._find = self._find(), None
        return self._found

    @overload
    def __getitem__(self, at: int) -> Contradiction: ...

    @overload
    def __getitem__(self, at: slice) -> tuple[Contradiction, ...]: ...

    def __getitem__(self, at: int | slice) -> Contradiction | tuple[Contradiction, ...]:
        return self._all()[at]

    def __len__(self) -> int:
        return len(self._all())

    def __eq__(self, other: object) -> bool:
        return self._all() == (other._all() if isinstance(other, LaterConflicts) else other)

    def __hash__(self) -> int:
        return hash(self._all())

    def __repr__(self) -> str:
        return repr(self._all())


@lru_cache(maxsize=256)
def _statement(content: str) -> Statement:
    """What a note states; kept, because the notes around a subject are compared with each new one about it."""
    from ..comparison.statements import read_statement
    from .merging import without_context

    return read_statement(without_context(content))


@dataclass(frozen=True, slots=True)
class Counterpart:
    """A memory that says the same as another one, or the opposite; `merged` has all facts of two that say the same."""

    memory: Memory
    relation: Literal["repeats", "contradicts"]
    reason: str
    merged: str | None = None


class CounterpartFinder:
    """Compares a memory with its neighbours, for a person who decides about it."""

    def __init__(self, neighbours: NeighbourFinder) -> None:
        self._neighbours = neighbours

    def find(self, memory: Memory) -> list[Counterpart]:
        """Memories that repeat or contradict this one, nearest first. Merged texts are made by rules alone."""
        if memory.kind != "note" or memory.role is not None or len(memory.content) > _LONGEST_COMPARED:
            return []
        from ..comparison.conflicts import conflict
        from ..comparison.likeness import judge
        from .merging import Piece, merge

        mine = _statement(memory.content)
        found = []
        for other, cosine in self._neighbours.find(memory, _NEIGHBOURS):
            if other.role is not None or len(other.content) > _LONGEST_COMPARED:
                continue
            theirs = _statement(other.content)
            if difference := conflict(theirs, mine, cosine):
                found.append(Counterpart(other, "contradicts", str(difference)))
            elif (judged := judge(theirs, mine, cosine)).same:
                pieces = [Piece(one.content, one.created_at) for one in (other, memory)]
                reason = f"{judged.probability:.0%} likely to say the same"
                found.append(Counterpart(other, "repeats", reason, merge(pieces)))
        return found[:_REPORTED]


def _nearest(details: Details, vector: NDArray[np.float32], count: int) -> tuple[list[int], list[float]]:
    """The numbers of the nearest records and the best cosine among the chunks of each, nearest first."""
    import numpy as np

    starts = np.searchsorted(details.chunk_record, np.arange(details.size))
    best = np.maximum(np.maximum.reduceat(details.vectors @ vector, starts), np.float32(-1.0))
    order = np.lexsort((details.nums, -best))[:count]
    return details.nums[order].tolist(), best[order].tolist()


_LONGEST = 100


@dataclass(frozen=True, slots=True)
class UndoResult:
    """An undone consolidation: the record that was removed, and those that were restored."""

    result_id: str
    restored: tuple[str, ...]
    branches: frozenset[str] = frozenset()


class Supersession:
    def __init__(self, store: Store, clock: Clock, lifecycle: Lifecycle) -> None:
        self._store = store
        self._clock = clock
        self._locate = lifecycle.locate
        self._space_of = lifecycle.space_of

    def origins(self, ref: str) -> tuple[str, ...]:
        """Ids of the records that one was made from or replaces, oldest first."""
        with self._store.database.read() as session:
            _, space, memory = self._locate(session, ref)
            found = self._replaced(session, space, memory.id)
            return tuple(one.id for one in found if one.status != "tombstoned")

    def chain(self, ref: str) -> list[Memory]:
        """A record with all that it replaced and all that replaced it, oldest first."""
        with self._store.database.read() as session:
            _, space, start = self._locate(session, ref)
            newest = [start, *self._later(session, space, start)][-1]
            found: dict[str, Memory] = {newest.id: newest}
            open_ids = [newest.id]
            while open_ids and len(found) < _LONGEST:
                for older in reversed(self._replaced(session, space, open_ids.pop())):
                    if older.id not in found:
                        found[older.id] = older
                        open_ids.append(older.id)
        # A merged record has the time of its newest part, and comes after it.
        shown = (one for one in reversed(found.values()) if one.status != "tombstoned")
        return sorted(shown, key=lambda one: one.created_at)

    def undo(self, ref: str) -> UndoResult:
        """Undo a consolidation: delete its result and restore the records it was made from."""
        now = self._clock.now()
        with self._store.database.write(self._space_of(ref)) as session:
            num, space, result = self._locate(session, ref)
            require_write(space)
            made = self._store.consolidations.of_result(session, space, result.id)
            if made is None or made.undone_at is not None:
                raise InvalidInput(
                    f"The memory {result.id[:12]} was not made by a consolidation.",
                    remedy="Name the result of a consolidation.",
                )
            if result.superseded_by is not None:
                raise Conflict(
                    f"The memory {result.id[:12]} was itself replaced by {result.superseded_by[:12]}.",
                    remedy="Undo that first.",
                )
            at, seq = to_micros(now), self._store.memories.next_seq(session, space)
            table = self._store.consolidations
            restored = [
                memory_id
                for memory_id, status in made.parts
                if table.reinstate(session, space, memory_id, result.id, status, at, seq)
            ]
            # Also restore what the result replaced later: nothing may stay hidden behind a deleted record.
            later = [one.id for one in self._replaced(session, space, result.id)]
            restored += [one for one in later if table.reinstate(session, space, one, result.id, "active", at, seq)]
            self._store.memories.soft_delete(session, space, [num], at, seq)
            table.mark_undone(session, space, made.id, at)
            found = self._fetch(session, space, restored)
        branches = frozenset(one.branch_id for one in (result, *found) if one.branch_id)
        return UndoResult(result.id, tuple(restored), branches)

    def replace(self, older: str, newer: str) -> Memory:
        """Hide an older record behind a newer one of the same space."""
        now = self._clock.now()
        with self._store.database.write(self._space_of(older)) as session:
            _, space, old = self._locate(session, older)
            require_write(space)
            _, other_space, new = self._locate(session, newer)
            if (
                space != other_space
                or old.id == new.id
                or old.id in {one.id for one in self._later(session, space, new)}
            ):
                raise InvalidInput(
                    f"{new.id[:12]} cannot replace {old.id[:12]}: they are the same, of different domains, or the "
                    "other way round.",
                    field="supersedes",
                )
            if old.status not in LIVE_STATUSES:
                raise Conflict(
                    f"The memory {old.id[:12]} cannot be superseded: it is {old.status} already.",
                    remedy="Name one that recall shows.",
                    field="supersedes",
                )
            seq = self._store.memories.next_seq(session, space)
            self._store.consolidations.replace(session, space, [old.id], new.id, to_micros(now), seq)
            return self._fetch(session, space, [old.id])[0]

    def _replaced(self, session: Session, space: str, memory_id: str) -> list[Memory]:
        """The records that one replaced, deleted ones too, oldest first."""
        ids = self._store.consolidations.replaced_by(session, space, memory_id)
        return self._fetch(session, space, ids)

    def _fetch(self, session: Session, space: str, ids: Sequence[str]) -> list[Memory]:
        found = [self._store.memories.get(session, space, one) for one in ids]
        return [one for one in found if one is not None]

    def _later(self, session: Session, space: str, memory: Memory) -> list[Memory]:
        """The records that replaced one, in order."""
        found: list[Memory] = []
        while memory.superseded_by and len(found) < _LONGEST:
            later = self._store.memories.get(session, space, memory.superseded_by)
            if later is None or later in found:
                break
            memory = later
            found.append(memory)
        return found
