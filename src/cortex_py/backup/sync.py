"""Sync: several machines push their documents to one target and pull those of the others, end-to-end encrypted.

The target sees sealed objects under names that tell nothing. Machines never write the same object, so no
order of pushes and pulls loses anything, and all machines come to the same documents. The form: docs/formats.md.
"""

from __future__ import annotations

import os
from collections.abc import Sequence
from dataclasses import dataclass

from ..clock import Clock, SystemClock, to_micros
from ..errors import BackupError, Conflict
from .collection import Collection, open_collection, open_or_make_collection
from .gathering import HEAD_BYTES, Gathered, HeadFault, Spool, gather, heads_of_space, newest_head
from .heads import ROOT, Head, HeadName, day_of, machine_mark, space_mark
from .key_derivation import LIMITS, KdfLimits, KdfParameters
from .merging import local_changes
from .pulling import ConflictFound, Plan, plan_changes
from .pushing import Push, Pushed
from .remembered import OwnHead, Remembered
from .replica import Replica
from .target import Target
from .vault_header import Random

__all__ = ["ConflictFound", "HeadFault", "MachineStatus", "Pulled", "Pushed", "Status", "Sync"]

_SPOOL_BYTES = 16 * 1024 * 1024
_ATTEMPTS = 5
_ACTOR_BYTES = 4


@dataclass(frozen=True, slots=True)
class Pulled:
    """What a pull came to. `conflicts` tell the copies of what lost, `overruled` counts what lost of kinds without
    copies; `machines` are those of which something new was merged; `faults` tell what could not be read,
    `rolled_back` of which machines the target showed an older state than was merged before."""

    downloaded_bytes: int
    packs: int
    added: int
    changed: int
    removed: int
    conflicts: tuple[ConflictFound, ...]
    overruled: int
    machines: tuple[str, ...]
    faults: tuple[HeadFault, ...]
    rolled_back: tuple[str, ...]


@dataclass(frozen=True, slots=True)
class MachineStatus:
    """What a machine has pushed of a space. `merged`: nothing of it is still to be pulled."""

    machine: str
    cloud_path: str
    sequence: int
    moment: int
    packs: int
    stored_bytes: int
    own: bool
    merged: bool


@dataclass(frozen=True, slots=True)
class Status:
    """How replica and target stand. `pending` counts the states that a push would bring."""

    target: str
    exists: bool
    pending: int
    machines: tuple[MachineStatus, ...] = ()
    faults: tuple[HeadFault, ...] = ()


class Sync:
    """Exchanges with one target under one passphrase. For a replica only one exchange may run at a time."""

    def __init__(
        self,
        target: Target,
        passphrase: str,
        *,
        clock: Clock | None = None,
        parameters: KdfParameters | None = None,
        limits: KdfLimits = LIMITS,
        random: Random = os.urandom,
        spool_bytes: int = _SPOOL_BYTES,
    ) -> None:
        self._target = target
        self._passphrase = passphrase
        self._clock = clock or SystemClock()
        self._parameters = parameters
        self._limits = limits
        self._random = random
        self._spool_bytes = spool_bytes
        self._known: dict[bytes, Collection] = {}

    def push(self, replica: Replica, space: str, *, whole: bool = False) -> Pushed:
        """Bring what changed here since the last push. `whole` writes all anew, also over what may be damaged there."""
        collection = open_or_make_collection(
            self._target,
            self._passphrase,
            parameters=self._parameters,
            limits=self._limits,
            random=self._random,
            known=self._known,
        )
        remembered = Remembered(replica, collection)
        own = _own_name(collection, replica, space)
        names = self._own_heads(own, remembered)
        head = newest_head(self._target, names, collection, [])
        if head is not None and remembered.is_foreign(head[1]):
            # Else the state that the old home pushed would be replaced by what is here.
            merged = self._merge(replica, space, collection, remembered, [names])
            if not whole:
                merged.raise_if_nothing_was_read()
        pushing = Push(
            self._target,
            collection,
            remembered,
            self._clock,
            self._random,
            names=names,
            head=head,
            own=own,
        )
        return pushing.run(replica, space, whole=whole)

    def pull(self, replica: Replica, space: str) -> Pulled:
        """Merge what other machines have pushed. Nothing changes before all of it was verified."""
        collection = self._existing()
        remembered = Remembered(replica, collection)
        own = _own_name(collection, replica, space)
        names = heads_of_space(self._target, ROOT + own.space)
        plan = Plan()
        gathered = self._merge(replica, space, collection, remembered, list(names.values()), plan)
        gathered.raise_if_nothing_was_read()
        return Pulled(
            gathered.downloaded,
            gathered.packs,
            plan.added,
            plan.changed,
            plan.removed,
            tuple(plan.conflicts),
            plan.overruled,
            tuple(sorted(head.machine for _, head in gathered.merged)),
            tuple(gathered.faults),
            tuple(sorted(head.machine for head in gathered.rolled_back)),
        )

    def status(self, replica: Replica, space: str) -> Status:
        """How things stand; nothing is changed, and of the target only heads are read."""
        collection = open_collection(self._target, self._passphrase, limits=self._limits, known=self._known)
        if collection is None:
            return Status(self._target.shown, False, sum(1 for _ in replica.documents()))
        remembered = Remembered(replica, collection)
        own = _own_name(collection, replica, space)
        faults: list[HeadFault] = []
        machines: list[MachineStatus] = []
        named: frozenset[str] = frozenset()
        for of_machine in heads_of_space(self._target, ROOT + own.space).values():
            found = newest_head(self._target, of_machine, collection, faults)
            if found is None:
                continue
            name, head = found
            is_own = name.machine == own.machine
            if is_own:
                named = frozenset(pack.name for pack in head.packs)
            machines.append(_machine_status(name, head, remembered, own=is_own))
        states = local_changes(
            replica.documents(), replica.entries(), remembered.actor, changed_at=replica.changed_at, now=0
        )
        pending = sum(entry.pack not in named for _, entry, _ in states)
        return Status(
            self._target.shown,
            True,
            pending,
            tuple(sorted(machines, key=lambda one: one.machine)),
            tuple(faults),
        )

    def _own_heads(self, own: HeadName, remembered: Remembered) -> Sequence[HeadName]:
        """The heads of this machine, the latest first, also the one that would be replaced and is not listed yet."""
        names = heads_of_space(self._target, own.path.removesuffix(".enc")).get(own.machine, [])
        written = remembered.own
        latest = own._replace(day=max(day_of(self._clock.now()), written.day if written else ""))
        if (not names or names[0].day < latest.day) and self._target.get(latest.path, HEAD_BYTES) is not None:
            return [latest, *names]
        return names

    def _existing(self) -> Collection:
        collection = open_collection(self._target, self._passphrase, limits=self._limits, known=self._known)
        if collection is None:
            raise BackupError(f"{self._target.shown} holds no backup.", remedy="Push from a machine first.")
        return collection

    def _merge(
        self,
        replica: Replica,
        space: str,
        collection: Collection,
        remembered: Remembered,
        names: Sequence[Sequence[HeadName]],
        told: Plan | None = None,
    ) -> Gathered:
        """Merge what these machines have pushed into the replica, all in one step."""
        own_mark = machine_mark(collection.keys, replica.machine)
        with Spool(collection, space, self._spool_bytes) as spool:
            gathered = gather(self._target, collection, names, own_mark, remembered, spool)
            if gathered.foreign:
                # Counts under the machine's name were given to changes that this home knows nothing of.
                remembered.actor_is(f"{replica.machine}~{self._random(_ACTOR_BYTES).hex()}")
            if gathered.incoming:
                plan = self._applied(replica, gathered, spool, remembered.actor)
                if told is not None:
                    told.added, told.changed, told.removed = plan.added, plan.changed, plan.removed
                    told.conflicts, told.overruled = plan.conflicts, plan.overruled
        for name, head in gathered.merged:
            if name.machine == own_mark:
                remembered.own_is(OwnHead(head.sequence, head.head, name.day))
            else:
                remembered.merged_is(name.machine, head)
        return gathered

    def _applied(self, replica: Replica, gathered: Gathered, spool: Spool, actor: str) -> Plan:
        for _ in range(_ATTEMPTS):
            plan = plan_changes(replica, gathered, spool, actor=actor, now=to_micros(self._clock.now()))
            if not replica.apply(plan.changes, plan.entries):
                return plan
        raise Conflict(
            "The documents changed every time while what was pulled was put in.",
            remedy="Nothing was changed; pull again when less is being written.",
        )


def _own_name(collection: Collection, replica: Replica, space: str) -> HeadName:
    return HeadName(space_mark(collection.keys, space), machine_mark(collection.keys, replica.machine), "")


def _machine_status(name: HeadName, head: Head, remembered: Remembered, *, own: bool) -> MachineStatus:
    merged = not remembered.is_foreign(head) if own else head.sequence <= remembered.merged(name.machine).sequence
    return MachineStatus(
        head.machine,
        name.path,
        head.sequence,
        head.moment,
        len(head.packs),
        sum(pack.size for pack in head.packs),
        own,
        merged,
    )
