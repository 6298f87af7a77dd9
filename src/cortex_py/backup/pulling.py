"""What has to change here for what came from other machines: worked out whole, then made in one step."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field, replace
from typing import NamedTuple, overload

from ..store.document import KINDS, Document
from .conflict_copies import conflict_copy, same_work
from .gathering import Arrived, Gathered, Spool
from .merging import CONFLICT_MAKER, copy_entry, local_changes, settle
from .replica import Change, Changes, Entry, Name, Replica

__all__ = ["ConflictFound", "Plan", "plan_changes"]


class ConflictFound(NamedTuple):
    """Two machines changed a document apart from each other: `kept` is the copy of what lost."""

    name: Name
    kept: Name


class _Planned(NamedTuple):
    """A change whose document lies in a pack of the spool, or is at hand, or is to be removed."""

    name: Name
    expected: str | None
    pack: int | None
    document: Document | None


class _Changes(Changes):
    """Changes in the order of their kinds, each document read when its change is taken."""

    def __init__(self, planned: Sequence[_Planned], spool: Spool) -> None:
        self._planned = planned
        self._spool = spool

    def __len__(self) -> int:
        return len(self._planned)

    @overload
    def __getitem__(self, at: int) -> Change: ...
    @overload
    def __getitem__(self, at: slice) -> Sequence[Change]: ...
    def __getitem__(self, at: int | slice) -> Change | Sequence[Change]:
        if isinstance(at, slice):
            return _Changes(self._planned[at], self._spool)
        planned = self._planned[at]
        document = planned.document
        if planned.pack is not None:
            document = self._spool.document(planned.pack, planned.name)
        return Change(planned.name, planned.expected, document)

    def expected(self) -> Iterator[tuple[Name, str | None]]:
        return ((one.name, one.expected) for one in self._planned)

    def __iter__(self) -> Iterator[Change]:
        return (self[at] for at in range(len(self)))


@dataclass(slots=True)
class Plan:
    """What to hand to `Replica.apply`, and what it comes to."""

    changes: Sequence[Change] = ()
    entries: dict[Name, Entry] = field(default_factory=dict)
    added: int = 0
    changed: int = 0
    removed: int = 0
    conflicts: list[ConflictFound] = field(default_factory=list)
    overruled: int = 0


def plan_changes(replica: Replica, gathered: Gathered, spool: Spool, *, actor: str, now: int) -> Plan:
    """What came, joined with what is here at this moment."""
    planning = _Planning(replica, gathered, spool)
    known = replica.entries()
    states = local_changes(replica.documents(), known, actor, changed_at=replica.changed_at, now=now)
    for name, entry, document in states:
        planning.local(name, known.get(name), entry, document)
    planning.others(known)
    return planning.plan()


class _Planning:
    def __init__(self, replica: Replica, gathered: Gathered, spool: Spool) -> None:
        self._machine = replica.machine
        self._incoming = gathered.incoming
        self._spool = spool
        self._plan = Plan()
        self._planned: dict[Name, _Planned] = {}
        self._local: set[Name] = set()
        self._lost: list[tuple[Name, Document, Entry]] = []

    def local(self, name: Name, known: Entry | None, entry: Entry, document: Document | None) -> None:
        """A document that is or was here."""
        if entry is not known:
            self._plan.entries[name] = entry
        arrived = self._incoming.get(name)
        if arrived:
            self._local.add(name)
            self._join(name, entry, document, arrived)

    def others(self, known: dict[Name, Entry]) -> None:
        """What was never here, and the copies of rivals that lost."""
        for name, arrived in self._incoming.items():
            if name not in self._local:
                self._join(name, None, None, arrived)
        while self._lost:
            name, document, entry = self._lost.pop()
            kept = self._keep_copy(document, entry, known)
            if kept is None:
                self._plan.overruled += 1
            else:
                self._plan.conflicts.append(ConflictFound(name, kept))

    def plan(self) -> Plan:
        plan = self._plan
        planned = sorted(self._planned.values(), key=_order)
        plan.changes = _Changes(planned, self._spool)
        plan.removed = sum(one.pack is None and one.document is None for one in planned)
        plan.added = sum(one.expected is None for one in planned)
        plan.changed = len(planned) - plan.removed - plan.added
        plan.conflicts.sort()
        return plan

    def _join(self, name: Name, entry: Entry | None, document: Document | None, arrived: Sequence[Arrived]) -> None:
        here = [] if entry is None else [entry]
        states = [*here, *(one.entry for one in arrived)]
        settled = settle(states)
        offset = len(here)
        merged = settled.entry
        if entry is not None and _same(merged, entry):
            # Nothing to push: only what the next change has to exceed may have grown.
            merged = replace(entry, floor=merged.floor)
        else:
            merged = replace(merged, pack=self._own_pack(merged, arrived))
        if merged != entry:
            self._plan.entries[name] = merged
        present = document.digest if document is not None else None
        if merged.digest != present:
            pack = None if settled.winner is None else arrived[settled.winner - offset].pack
            self._planned[name] = _Planned(name, present, pack, None)
        for place in settled.losers:
            rivals = [
                document if one < offset else self._spool.document(arrived[one - offset].pack, name)
                for one in (place, settled.winner)
                if one is not None
            ]
            lost, won = rivals
            if lost is not None and won is not None and not same_work(lost, won):
                self._lost.append((name, lost, states[place]))

    def _own_pack(self, merged: Entry, arrived: Sequence[Arrived]) -> str:
        """The pack of this machine that holds just this state, where a new home reads what the old one pushed."""
        for one in arrived:
            machine, pack = self._spool.origin(one.pack)
            if machine == self._machine and _same(merged, one.entry):
                return pack
        return ""

    def _keep_copy(self, document: Document, loser: Entry, known: dict[Name, Entry]) -> Name | None:
        copy = conflict_copy(document)
        while copy is not None:
            name = Name(copy.kind, copy.key)
            present = self._plan.entries.get(name) or known.get(name)
            if present is not None and present.versions.get(CONFLICT_MAKER):
                # It was made before, here or elsewhere, and perhaps changed or deleted since.
                return name
            if present is None:
                self._plan.entries[name] = copy_entry(copy, loser)
                self._planned[name] = _Planned(name, None, None, copy)
                return name
            # Somebody gave this very name to something else.
            copy = conflict_copy(copy)
        return None


def _same(left: Entry, right: Entry) -> bool:
    """Whether two states are one to whoever hears of them."""
    return (left.versions, left.stamp, left.digest, left.maker) == (
        right.versions,
        right.stamp,
        right.digest,
        right.maker,
    )


def _order(planned: _Planned) -> tuple[int, int, Name]:
    return KINDS.index(planned.name.kind), -1 if planned.pack is None else planned.pack, planned.name
