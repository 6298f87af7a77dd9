"""What a replica remembers of a collection between exchanges, by typed names instead of text."""

from __future__ import annotations

import json
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

from .collection import Collection
from .heads import Head
from .packs import PackRef
from .replica import Replica

__all__ = ["Merged", "OwnHead", "Remembered"]

# Enough to tell the packs of one machine apart.
_SHORT = 16


@dataclass(frozen=True, slots=True)
class OwnHead:
    """The head that this replica wrote last, or was about to write."""

    sequence: int
    head: str
    day: str


@dataclass(frozen=True, slots=True)
class Merged:
    """What of another machine was merged."""

    sequence: int = -1
    head: str = ""
    packs: frozenset[str] = frozenset()
    machine: str = ""

    def has(self, pack: PackRef) -> bool:
        return pack.name[:_SHORT] in self.packs


class Remembered:
    """Kept apart for each collection: a place that was emptied and used anew is another one. What is true of the
    machine itself is kept under its name: a copy of a home may go on under another."""

    def __init__(self, replica: Replica, collection: Collection) -> None:
        self._replica = replica
        self._prefix = f"{collection.id[:12]}:"
        self._own = f"own:{replica.machine}"
        self._actor = f"actor:{replica.machine}"
        self._uploaded = f"uploaded:{replica.machine}"

    @property
    def own(self) -> OwnHead | None:
        told = self._read(self._own)
        return OwnHead(int(told[0]), str(told[1]), str(told[2])) if told is not None else None

    def own_is(self, own: OwnHead) -> None:
        self._write(self._own, [own.sequence, own.head, own.day])

    def is_foreign(self, head: Head) -> bool:
        """Whether a head of this machine was written by another home: one before this, or a copy of it."""
        own = self.own
        return own is None or (head.head != own.head and head.sequence >= own.sequence)

    @property
    def actor(self) -> str:
        """Under which name changes made here are counted: the machine's, or one of its own where that was used."""
        return str(self._read(self._actor) or self._replica.machine)

    def actor_is(self, actor: str) -> None:
        self._write(self._actor, actor)

    @property
    def uploaded(self) -> list[PackRef]:
        """Packs that were brought to the target for a head that is perhaps not there yet."""
        return [PackRef(str(name), int(size), int(count)) for name, size, count in self._read(self._uploaded) or ()]

    def uploaded_are(self, packs: Sequence[PackRef]) -> None:
        self._write(self._uploaded, [[pack.name, pack.size, pack.documents] for pack in packs])

    def merged(self, mark: str) -> Merged:
        told = self._read(f"merged:{mark}")
        if told is None:
            return Merged()
        sequence, head, packs, machine = told
        return Merged(int(sequence), str(head), frozenset(packs), str(machine))

    def merged_is(self, mark: str, head: Head) -> None:
        packs = [pack.name[:_SHORT] for pack in head.packs]
        self._write(f"merged:{mark}", [head.sequence, head.head, packs, head.machine])

    def _read(self, key: str) -> Any:
        text = self._replica.fact(self._prefix + key)
        return None if text is None else json.loads(text)

    def _write(self, key: str, value: object) -> None:
        self._replica.remember(self._prefix + key, json.dumps(value, separators=(",", ":")))
