"""What took the place of what: the way back from a record to those it came from, and the way forward."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass

from ..clock import Clock, to_micros
from ..errors import Conflict, InvalidInput
from ..records import LIVE_STATUSES, Memory
from ..security.permission import require_write
from ..store.database import Session
from ..store.store import Store

__all__ = ["Supersession", "Undone"]

_LONGEST = 100

# The number, space and record that a reference names.
Locate = Callable[[Session, str], tuple[int, str, Memory]]


@dataclass(frozen=True, slots=True)
class Undone:
    """A consolidation taken back: the record that went, and those that are there again."""

    result_id: str
    restored: tuple[str, ...]
    branches: frozenset[str] = frozenset()


class Supersession:
    def __init__(self, store: Store, clock: Clock, locate: Locate) -> None:
        self._store = store
        self._clock = clock
        self._locate = locate

    def origins(self, ref: str) -> tuple[str, ...]:
        """Ids of the records that one came from or replaces, oldest first."""
        with self._store.database.read() as session:
            _, space, memory = self._locate(session, ref)
            found = self._replaced(session, space, memory.id)
            return tuple(one.id for one in found if one.status != "tombstoned")

    def chain(self, ref: str) -> list[Memory]:
        """A record with all that it replaced and all that replaced it, oldest first."""
        with self._store.database.read() as session:
            _, space, start = self._locate(session, ref)
            newest = self._newest(session, space, start)
            found: dict[str, Memory] = {newest.id: newest}
            open_ids = [newest.id]
            while open_ids and len(found) < _LONGEST:
                for older in self._replaced(session, space, open_ids.pop()):
                    if older.id not in found:
                        found[older.id] = older
                        open_ids.append(older.id)
        shown = (one for one in found.values() if one.status != "tombstoned")
        return sorted(shown, key=lambda one: (one.created_at, one.id))

    def undo(self, ref: str) -> Undone:
        """Take a consolidation back: its result goes, and what it was made of is there again."""
        now = self._clock.now()
        with self._store.database.write() as session:
            num, space, result = self._locate(session, ref)
            require_write(space)
            made = self._store.consolidations.of_result(session, space, result.id)
            if made is None or made.undone_at is not None:
                raise InvalidInput(
                    f"The memory {result.id[:12]} was not made of others.", remedy="Name the result of a consolidation."
                )
            if result.superseded_by is not None:
                raise Conflict(
                    f"The memory {result.id[:12]} was itself replaced by {result.superseded_by[:12]}.",
                    remedy="Undo that first.",
                )
            at, seq = to_micros(now), self._store.memories.next_seq(session)
            table = self._store.consolidations
            restored = [
                memory_id
                for memory_id, status in made.parts
                if table.bring_back(session, space, memory_id, result.id, status, at, seq)
            ]
            # Nothing stays hidden behind a record that is gone, also what it was told to replace later.
            later = [one.id for one in self._replaced(session, space, result.id)]
            restored += [one for one in later if table.bring_back(session, space, one, result.id, "active", at, seq)]
            self._store.memories.bury(session, space, [num], at, seq)
            table.undone(session, space, made.id, at)
            found = self._those(session, space, restored)
        branches = frozenset(one.branch_id for one in (result, *found) if one.branch_id)
        return Undone(result.id, tuple(restored), branches)

    def replace(self, older: str, newer: str) -> Memory:
        """Hide an older record behind a newer one of the same space."""
        now = self._clock.now()
        with self._store.database.write() as session:
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
            seq = self._store.memories.next_seq(session)
            self._store.consolidations.replace(session, space, [old.id], new.id, to_micros(now), seq)
            return self._those(session, space, [old.id])[0]

    def _replaced(self, session: Session, space: str, memory_id: str) -> list[Memory]:
        """What a record took the place of, deleted ones too, oldest first."""
        ids = self._store.consolidations.replaced_by(session, space, memory_id)
        return self._those(session, space, ids)

    def _those(self, session: Session, space: str, ids: Sequence[str]) -> list[Memory]:
        found = [self._store.memories.get(session, space, one) for one in ids]
        return [one for one in found if one is not None]

    def _later(self, session: Session, space: str, memory: Memory) -> list[Memory]:
        """What replaced a record, one after the other."""
        found: list[Memory] = []
        while memory.superseded_by and len(found) < _LONGEST:
            later = self._store.memories.get(session, space, memory.superseded_by)
            if later is None or later in found:
                break
            memory = later
            found.append(memory)
        return found

    def _newest(self, session: Session, space: str, memory: Memory) -> Memory:
        return [memory, *self._later(session, space, memory)][-1]
