"""Reads and verifies what other machines have pushed, and plans what has to change here to match it.

A machine is taken as a whole or not at all; a fault in one does not affect the others. Packs are spooled sealed, as
they arrived, so that no plain text touches the disk. The changes are planned as a whole and applied in one transaction.
"""

from __future__ import annotations

import tempfile
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field, replace
from functools import partial
from typing import NamedTuple

from ....core.errors import BackupCorrupt, BackupError, NetworkError
from ....core.jobs import report
from ....core.store.documents.document import KINDS, Document
from ..targets.target import Target
from .collection import Collection, SyncState
from .merge import (
    CONFLICT_MAKER,
    Change,
    DocumentState,
    Name,
    conflict_copy,
    copy_entry,
    local_changes,
    same_work,
    settle,
)
from .packs import HeadName, PackHead, PackRef, Versions, head_names, open_head, pack_path, read_pack
from .store_replica import StoreReplica

__all__ = [
    "HEAD_BYTES", "HeadFault", "Incoming", "PackSpool", "Plan", "SyncConflict", "gather", "heads_of_space",
    "newest_head", "plan_changes", "read_head",
]  # fmt: skip


HEAD_BYTES = 64 * 1024 * 1024
# A slightly longer object is read and reported as damaged; a much longer one is not read.
_SLACK_BYTES = 64 * 1024
_CACHED_PACKS = 2


class HeadFault(NamedTuple):
    """What is wrong with the backup of a machine; `machine` is its name if known, else its mark."""

    machine: str
    day: str
    error: BackupError


class IncomingState(NamedTuple):
    """A received state, and the index of its pack in the spool."""

    entry: DocumentState
    pack: int


class PackSpool:
    """Sealed packs, in memory or above a limit in an unnamed file."""

    def __init__(self, collection: Collection, space: str, limit: int) -> None:
        self._collection = collection
        self._space = space
        self._file = tempfile.SpooledTemporaryFile(max_size=limit)  # noqa: SIM115
        self._packs: list[tuple[int, PackRef, str]] = []
        self._cache: dict[int, dict[Name, Document | None]] = {}
        self._versions = Versions()
        self.size = 0

    def close(self) -> None:
        self._file.close()

    def add(self, pack: PackRef, machine: str, sealed: bytes) -> dict[Name, IncomingState]:
        """Verify a pack, store it and return its states."""
        place = len(self._packs)
        found = {
            record.name: IncomingState(record.entry, place)
            for record in read_pack(
                sealed, self._collection.keys, pack.name, space=self._space, machine=machine, versions=self._versions
            )
        }
        self._file.seek(self.size)
        self._file.write(sealed)
        self._packs.append((self.size, pack, machine))
        self.size += len(sealed)
        return found

    def origin(self, place: int) -> tuple[str, str]:
        """The machine and the name of a pack."""
        _, pack, machine = self._packs[place]
        return machine, pack.name

    def document(self, place: int, name: Name) -> Document:
        """Read a document of a pack. Reading the documents pack by pack opens each pack once."""
        if place not in self._cache:
            while len(self._cache) >= _CACHED_PACKS:
                del self._cache[next(iter(self._cache))]
            offset, pack, machine = self._packs[place]
            self._file.seek(offset)
            records = read_pack(
                self._file.read(pack.size), self._collection.keys, pack.name, space=self._space, machine=machine
            )
            self._cache[place] = {record.name: record.document for record in records}
        document = self._cache[place][name]
        if document is None:
            raise LookupError(f"{name} is gone in this pack")
        return document


@dataclass(slots=True)
class Incoming:
    """What was received: `states` holds each state once, `merged` the heads whose packs are among them."""

    states: dict[Name, list[IncomingState]] = field(default_factory=dict)
    merged: list[tuple[HeadName, PackHead]] = field(default_factory=list)
    unchanged: list[PackHead] = field(default_factory=list)
    rolled_back: list[PackHead] = field(default_factory=list)
    faults: list[HeadFault] = field(default_factory=list)
    # Whether another home wrote a head of this machine.
    foreign: bool = False
    downloaded: int = 0
    packs: int = 0

    def raise_if_nothing_was_read(self) -> None:
        if self.faults and not (self.merged or self.unchanged or self.rolled_back):
            raise self.faults[0].error

    def _take(self, states: dict[Name, IncomingState]) -> None:
        for name, arrived in states.items():
            here = self.states.setdefault(name, [])
            # Machines that have synced hold the same states of most documents.
            if not any(
                other.entry.versions == arrived.entry.versions and other.entry.digest == arrived.entry.digest
                for other in here
            ):
                here.append(arrived)


def heads_of_space(target: Target, prefix: str) -> dict[str, list[HeadName]]:
    """The heads below a prefix, by the mark of their machine, latest first."""
    found: dict[str, list[HeadName]] = {}
    for name in head_names([stored.name for stored in target.list(prefix)]):
        found.setdefault(name.machine, []).append(name)
    return found


def read_head(target: Target, name: HeadName, collection: Collection) -> PackHead:
    sealed = target.get(name.path, HEAD_BYTES)
    if sealed is None:
        raise BackupCorrupt(f"The backup {name.path} is missing.", remedy="Pull again, or push from its machine.")
    try:
        return open_head(sealed, name, collection.keys)
    except BackupCorrupt as error:
        raise BackupCorrupt(
            f"The backup {name.path} is damaged or was altered.", remedy="Push from its machine again."
        ) from error


def newest_head(
    target: Target, names: Sequence[HeadName], collection: Collection, faults: list[HeadFault]
) -> tuple[HeadName, PackHead] | None:
    """The latest readable head of a machine; an older restore point is better than none."""
    for name in names:
        try:
            return name, read_head(target, name, collection)
        except NetworkError:
            raise
        except BackupError as error:
            faults.append(HeadFault(name.machine, name.day, error))
    return None


def gather(
    target: Target,
    collection: Collection,
    names: Iterable[Sequence[HeadName]],
    own_mark: str,
    state: SyncState,
    spool: PackSpool,
) -> Incoming:
    """Read what the machines, each given by the names of its heads, have pushed since the last merge."""
    incoming = Incoming()
    for of_machine in names:
        faults: list[HeadFault] = []
        found = newest_head(target, of_machine, collection, faults)
        before = state.merged(of_machine[0].machine)
        incoming.faults += [fault._replace(machine=before.machine or fault.machine) for fault in faults]
        if found is None:
            continue
        name, head = found
        if name.machine == own_mark:
            if not state.is_foreign(head):
                continue
            incoming.foreign = True
        if head.sequence < before.sequence:
            incoming.rolled_back.append(head)
        elif head.head == before.head:
            incoming.unchanged.append(head)
        else:
            try:
                states = _states(target, head, [pack for pack in head.packs if not before.has(pack)], spool, incoming)
            except NetworkError:
                raise
            except BackupError as error:
                incoming.faults.append(HeadFault(head.machine, name.day, error))
                continue
            incoming._take(states)
            incoming.merged.append(found)
    return incoming


def _states(
    target: Target, head: PackHead, packs: Sequence[PackRef], spool: PackSpool, incoming: Incoming
) -> dict[Name, IncomingState]:
    states: dict[Name, IncomingState] = {}
    for number, pack in enumerate(packs, start=1):
        report("packs", number, len(packs))
        what = f"Pack {number} of {len(packs)} of the backup of {head.machine}"
        sealed = target.get(pack_path(pack.name), pack.size + _SLACK_BYTES)
        remedy = f"Push from {head.machine} with all documents; what other machines hold is merged."
        if sealed is None:
            raise BackupCorrupt(f"{what} is missing.", remedy=remedy)
        incoming.downloaded += len(sealed)
        incoming.packs += 1
        try:
            if len(sealed) != pack.size:
                raise BackupCorrupt("The pack has an unexpected size.")
            # Later packs hold later states.
            states.update(spool.add(pack, head.machine, sealed))
        except BackupCorrupt as error:
            raise BackupCorrupt(f"{what} is damaged or was altered.", remedy=remedy) from error
    return states


class SyncConflict(NamedTuple):
    """Two machines changed a document independently; `kept` is the copy of the losing version."""

    name: Name
    kept: Name


@dataclass(slots=True)
class Plan:
    """The arguments of `Replica.apply`, and what they amount to."""

    changes: Sequence[Change] = ()
    entries: dict[Name, DocumentState] = field(default_factory=dict)
    added: int = 0
    changed: int = 0
    removed: int = 0
    conflicts: list[SyncConflict] = field(default_factory=list)
    overruled: int = 0


def plan_changes(replica: StoreReplica, incoming: Incoming, spool: PackSpool, *, actor: str, now: int) -> Plan:
    """Join what was received with what is here now."""
    planning = _Planning(replica, incoming, spool)
    known = replica.entries()
    states = local_changes(replica.documents(), known, actor, changed_at=replica.changed_at, now=now)
    for name, entry, document in states:
        planning.local(name, known.get(name), entry, document)
    planning.others(known)
    return planning.plan()


class _Planning:
    def __init__(self, replica: StoreReplica, incoming: Incoming, spool: PackSpool) -> None:
        self._machine = replica.machine
        self._incoming = incoming.states
        self._spool = spool
        self._plan = Plan()
        self._changes: dict[Name, Change] = {}
        self._local: set[Name] = set()
        self._lost: list[tuple[Name, Document, DocumentState]] = []

    def local(self, name: Name, known: DocumentState | None, entry: DocumentState, document: Document | None) -> None:
        """A document that is or was here."""
        if entry is not known:
            self._plan.entries[name] = entry
        arrived = self._incoming.get(name)
        if arrived:
            self._local.add(name)
            self._join(name, entry, document, arrived)

    def others(self, known: dict[Name, DocumentState]) -> None:
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
                self._plan.conflicts.append(SyncConflict(name, kept))

    def plan(self) -> Plan:
        plan = self._plan
        plan.changes = sorted(self._changes.values(), key=lambda one: (KINDS.index(one.name.kind), one.pack, one.name))
        plan.removed = sum(one.load is None for one in plan.changes)
        plan.added = sum(one.expected is None for one in plan.changes)
        plan.changed = len(plan.changes) - plan.removed - plan.added
        plan.conflicts.sort()
        return plan

    def _join(
        self, name: Name, entry: DocumentState | None, document: Document | None, came: Sequence[IncomingState]
    ) -> None:
        here = [] if entry is None else [entry]
        states = [*here, *(one.entry for one in came)]
        settled = settle(states)
        offset = len(here)
        merged = settled.entry
        if entry is not None and _same(merged, entry):
            # Nothing to push: only what the next change has to exceed may have grown.
            merged = replace(entry, floor=merged.floor)
        else:
            merged = replace(merged, pack=self._own_pack(merged, came))
        if merged != entry:
            self._plan.entries[name] = merged
        present = document.digest if document is not None else None
        if merged.digest != present:
            if settled.winner is None:
                self._changes[name] = Change(name, present)
            else:
                pack = came[settled.winner - offset].pack
                self._changes[name] = Change(name, present, partial(self._spool.document, pack, name), pack)
        for place in settled.losers:
            rivals = [
                document if one < offset else self._spool.document(came[one - offset].pack, name)
                for one in (place, settled.winner)
                if one is not None
            ]
            lost, won = rivals
            if lost is not None and won is not None and not same_work(lost, won):
                self._lost.append((name, lost, states[place]))

    def _own_pack(self, merged: DocumentState, came: Sequence[IncomingState]) -> str:
        """The pack of this machine that holds just this state, where a new home reads what the old one pushed."""
        for one in came:
            machine, pack = self._spool.origin(one.pack)
            if machine == self._machine and _same(merged, one.entry):
                return pack
        return ""

    def _keep_copy(self, document: Document, loser: DocumentState, known: dict[Name, DocumentState]) -> Name | None:
        copy = conflict_copy(document)
        while copy is not None:
            name = Name(copy.kind, copy.key)
            present = self._plan.entries.get(name) or known.get(name)
            if present is not None and present.versions.get(CONFLICT_MAKER):
                # It was made before, here or elsewhere, and perhaps changed or deleted since.
                return name
            if present is None:
                self._plan.entries[name] = copy_entry(copy, loser)
                self._changes[name] = Change(name, None, partial(_given, copy))
                return name
            # Somebody gave this very name to something else.
            copy = conflict_copy(copy)
        return None


def _same(left: DocumentState, right: DocumentState) -> bool:
    """Whether two states are the same to other machines."""
    return (left.versions, left.stamp, left.digest, left.maker) == (
        right.versions,
        right.stamp,
        right.digest,
        right.maker,
    )


def _given(document: Document) -> Document:
    return document
