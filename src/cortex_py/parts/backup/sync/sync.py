"""Sync: several machines push their documents to one target and pull those of the others, end-to-end encrypted.

The target sees sealed objects under meaningless names. No two machines write the same object, so no order of pushes
and pulls loses anything, and all machines arrive at the same documents. The format: formats.md. `Exchange` is sync
as the settings of a home configure it: which target, passphrase and spaces, and how often a day.
"""

from __future__ import annotations

import json
import os
import platform
import secrets
from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from contextlib import closing, contextmanager, suppress
from dataclasses import dataclass, replace
from datetime import timedelta
from hashlib import sha256
from typing import Any

from ....core.clock import Clock, SystemClock, to_micros
from ....core.config import Settings
from ....core.errors import BackupError, ConfigurationError, Conflict, CortexError, RateLimited, StorageError
from ....core.files import exclusive_lock
from ....core.records import DOMAINS, Domain
from ....core.security.ciphers import Random
from ....core.security.permission import may_administer, require_admin
from ....core.store.store import Store
from ..source import BackupSource, BackupSources
from ..targets.addresses import open_target
from ..targets.target import Target
from ..vault.header import LIMITS, KdfLimits, KdfParameters
from ..vault.passphrase import passphrase_of
from .collection import Collection, CollectionKey, OwnHead, SyncState
from .merge import local_changes
from .packs import ROOT, HeadName, PackHead, day_of, machine_mark, space_mark
from .pull import (
    HEAD_BYTES,
    HeadFault,
    Incoming,
    PackSpool,
    Plan,
    SyncConflict,
    gather,
    heads_of_space,
    newest_head,
    plan_changes,
)
from .push import Push, PushResult
from .store_replica import StoreReplica

__all__ = [
    "DAILY", "Exchange", "HeadFault", "MachineStatus", "PullResult", "PushResult", "SpaceStatus", "Sync",
    "SyncConflict", "SyncStatus",
]  # fmt: skip


_SPOOL_BYTES = 16 * 1024 * 1024
_ATTEMPTS = 5
_ACTOR_BYTES = 4


@dataclass(frozen=True, slots=True)
class PullResult:
    """The result of a pull of one or several spaces.

    `memories` counts those added or changed. `conflicts` names the copies kept of versions that lost; `overruled`
    counts losing versions of kinds that keep no copies. `machines` are those with something new, `faults` what could
    not be read, and `rolled_back` the machines of which the target showed an older state than was merged before.
    """

    target: str
    downloaded_bytes: int
    packs: int
    added: int
    changed: int
    removed: int
    conflicts: tuple[SyncConflict, ...]
    overruled: int
    machines: tuple[str, ...]
    faults: tuple[HeadFault, ...]
    rolled_back: tuple[str, ...]
    memories: int = 0


@dataclass(frozen=True, slots=True)
class MachineStatus:
    """What a machine has pushed of a space. `merged`: nothing of it remains to be pulled."""

    machine: str
    cloud_path: str
    sequence: int
    moment: int
    packs: int
    stored_bytes: int
    own: bool
    merged: bool


@dataclass(frozen=True, slots=True)
class SpaceStatus:
    """How a space compares with its target. `pending` counts the states that a push would upload."""

    target: str
    exists: bool
    pending: int
    machines: tuple[MachineStatus, ...] = ()
    faults: tuple[HeadFault, ...] = ()


class Sync:
    """Exchanges with one target under one passphrase. Only one exchange of a replica may run at a time."""

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
        self._key = CollectionKey(target, passphrase, parameters=parameters, limits=limits, random=random)
        self._clock = clock or SystemClock()
        self._random = random
        self._spool_bytes = spool_bytes

    def push(self, replica: StoreReplica, space: str, *, whole: bool = False) -> PushResult:
        """Upload what changed here since the last push. `whole` uploads everything, replacing what may be damaged."""
        collection = self._key.open_or_make()
        state = SyncState(replica, collection)
        own = _own_name(collection, replica, space)
        names = self._own_heads(own, state)
        head = newest_head(self._target, names, collection, [])
        if head is not None and state.is_foreign(head[1]):
            # Otherwise the state that the old home pushed would be replaced by what is here.
            incoming, _ = self._merge(replica, space, collection, state, [names])
            if not whole:
                incoming.raise_if_nothing_was_read()
        push = Push(self._target, collection, state, self._clock, self._random, names=names, head=head, own=own)
        return push.run(replica, space, whole=whole)

    def pull(self, replica: StoreReplica, space: str) -> PullResult:
        """Merge what other machines have pushed. Nothing changes until all of it is verified."""
        collection = self._key.open()
        if collection is None:
            raise BackupError(f"{self._target.shown} holds no backup.", remedy="Push from a machine first.")
        own = _own_name(collection, replica, space)
        names = heads_of_space(self._target, ROOT + own.space)
        state = SyncState(replica, collection)
        incoming, plan = self._merge(replica, space, collection, state, list(names.values()))
        incoming.raise_if_nothing_was_read()
        return PullResult(
            self._target.shown,
            incoming.downloaded,
            incoming.packs,
            plan.added,
            plan.changed,
            plan.removed,
            tuple(plan.conflicts),
            plan.overruled,
            tuple(sorted(head.machine for _, head in incoming.merged)),
            tuple(incoming.faults),
            tuple(sorted(head.machine for head in incoming.rolled_back)),
        )

    def status(self, replica: StoreReplica, space: str) -> SpaceStatus:
        """Compare the replica with the target. Changes nothing and reads only the heads of the target."""
        collection = self._key.open()
        if collection is None:
            pending = sum(not replica.withholds(one) for one in replica.documents())
            return SpaceStatus(self._target.shown, False, pending)
        state = SyncState(replica, collection)
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
            machines.append(_machine_status(name, head, state, own=is_own))
        states = local_changes(
            replica.documents(),
            replica.entries(),
            state.actor,
            changed_at=replica.changed_at,
            now=0,
            withheld=replica.withholds,
        )
        pending = sum(entry.pack not in named for _, entry, _ in states)
        machines.sort(key=lambda one: one.machine)
        return SpaceStatus(self._target.shown, True, pending, tuple(machines), tuple(faults))

    def _own_heads(self, own: HeadName, state: SyncState) -> Sequence[HeadName]:
        """The heads of this machine, latest first, including the latest one if a listing does not show it yet."""
        names = heads_of_space(self._target, own.path.removesuffix(".enc")).get(own.machine, [])
        written = state.own
        latest = own._replace(day=max(day_of(self._clock.now()), written.day if written else ""))
        if (not names or names[0].day < latest.day) and self._target.get(latest.path, HEAD_BYTES) is not None:
            return [latest, *names]
        return names

    def _merge(
        self,
        replica: StoreReplica,
        space: str,
        collection: Collection,
        state: SyncState,
        names: Sequence[Sequence[HeadName]],
    ) -> tuple[Incoming, Plan]:
        """Merge what these machines have pushed into the replica, all in one transaction."""
        own_mark = machine_mark(collection.keys, replica.machine)
        plan = Plan()
        with closing(PackSpool(collection, space, self._spool_bytes)) as spool:
            incoming = gather(self._target, collection, names, own_mark, state, spool)
            if incoming.foreign:
                # Counts under the machine's name were used for changes that this home does not know.
                state.actor_is(f"{replica.machine}~{self._random(_ACTOR_BYTES).hex()}")
            if incoming.states:
                plan = self._apply(replica, incoming, spool, state.actor)
        for name, head in incoming.merged:
            if name.machine == own_mark:
                state.own_is(OwnHead(head.sequence, head.head, name.day))
            else:
                state.merged_is(name.machine, head)
        return incoming, plan

    def _apply(self, replica: StoreReplica, incoming: Incoming, spool: PackSpool, actor: str) -> Plan:
        for _ in range(_ATTEMPTS):
            plan = plan_changes(replica, incoming, spool, actor=actor, now=to_micros(self._clock.now()))
            if not replica.apply(plan.changes, plan.entries):
                return plan
        raise Conflict(
            "The documents kept changing while the pulled ones were being written.",
            remedy="Nothing was changed; pull again when less is being written.",
        )


def _own_name(collection: Collection, replica: StoreReplica, space: str) -> HeadName:
    return HeadName(space_mark(collection.keys, space), machine_mark(collection.keys, replica.machine), "")


def _machine_status(name: HeadName, head: PackHead, state: SyncState, *, own: bool) -> MachineStatus:
    merged = not state.is_foreign(head) if own else head.sequence <= state.merged(name.machine).sequence
    stored = sum(pack.size for pack in head.packs)
    return MachineStatus(head.machine, name.path, head.sequence, head.moment, len(head.packs), stored, own, merged)


DAILY = {"push": 100, "pull": 20}
_MACHINE = "machine"
# Enough for a pack of 2 MB over a slow connection.
_OPERATION_SECONDS = 120.0


@dataclass(frozen=True, slots=True)
class SyncStatus:
    """How this home compares with its target, for each domain, and how many exchanges were used today."""

    target: str
    machine: str
    domains: Mapping[Domain, SpaceStatus]
    pushes_today: int
    pulls_today: int


class Exchange:
    """Exchanges a project, and what belongs to the person and the organisation, with the target of the settings."""

    def __init__(self, store: Store, clock: Clock, settings: Settings, sources: BackupSources) -> None:
        self._store = store
        self._clock = clock
        self._settings = settings
        self._sources = sources

    def push(self, project_id: str | None, *, whole: bool = False) -> PushResult:
        """Upload what changed here: the project first, then what belongs to the person and the organisation."""
        shared = self._shared(project_id)
        with self._sync("push") as (target, sync):
            results: list[PushResult] = []
            for source in shared.values():
                source.settle()
                if self._keeps_personal_data:
                    source.look_for_personal_data()
                results.append(sync.push(self._replica(source, target), source.space, whole=whole))
        sums = _sums(results, "uploaded_bytes", "packs", "documents", "changed_here", "gone", "total")
        return replace(results[0], **sums, withheld=sum((one.withheld for one in results), Counter()))

    def pull(self, project_id: str | None) -> PullResult:
        """Merge what other machines uploaded. When two machines change the same memory, both versions are kept."""
        shared = self._shared(project_id)
        with self._sync("pull") as (target, sync):
            results: list[PullResult] = []
            memories = 0
            for source in shared.values():
                source.settle()
                before = self._memories(source)
                pulled = sync.pull(self._replica(source, target), source.space)
                results.append(pulled)
                if pulled.added or pulled.changed or pulled.removed:
                    source.changed()
                    memories += len(self._memories(source) - before)
        return replace(
            results[0],
            **_sums(results, "downloaded_bytes", "packs", "added", "changed", "removed", "overruled"),
            memories=memories,
            machines=tuple(sorted({machine for one in results for machine in one.machines})),
            conflicts=tuple(conflict for one in results for conflict in one.conflicts),
            rolled_back=tuple(sorted({machine for one in results for machine in one.rolled_back})),
            faults=tuple(fault for one in results for fault in one.faults),
        )

    def status(self, project_id: str | None) -> SyncStatus:
        """Compare this home with what other machines uploaded. Nothing is exchanged."""
        shared = self._shared(project_id)
        with self._sync(None) as (target, sync):
            if self._keeps_personal_data:
                # What was not looked at yet would count as withheld.
                with suppress(StorageError):
                    for source in shared.values():
                        source.look_for_personal_data()
            domains = {
                domain: sync.status(self._replica(source, target), source.space) for domain, source in shared.items()
            }
        with self._store.database.read() as session:
            used = {way: self._store.replicas.counted(session, self._today(), way) for way in DAILY}
        return SyncStatus(target.shown, self._machine(), domains, used["push"], used["pull"])

    def change_passphrase(self, new: str) -> None:
        """Replace the passphrase; the other objects in the target stay as they are."""
        with self._target() as target:
            CollectionKey(target, passphrase_of(self._settings)).change_passphrase(new)

    # -- parts -----------------------------------------------------------------------------------

    def _shared(self, project_id: str | None) -> dict[Domain, BackupSource]:
        """The project, and the other domains that the caller administers."""
        source = {domain: self._sources.source(project_id, domain) for domain in DOMAINS}
        require_admin(source["project"].space)
        return {domain: one for domain, one in source.items() if may_administer(one.space)}

    def _memories(self, source: BackupSource) -> set[tuple[str, int]]:
        """Every memory of a space with its last change."""
        with self._store.database.read() as session:
            return self._store.memories.states(session, source.space)

    def _replica(self, source: BackupSource, target: Target) -> StoreReplica:
        name = sha256(target.shown.encode()).hexdigest()[:16]
        return StoreReplica(self._store, source, self._machine(), name, withholding=self._keeps_personal_data)

    @property
    def _keeps_personal_data(self) -> bool:
        return self._settings.personal_data != "keep" and not self._settings.sync_personal_data

    @contextmanager
    def _sync(self, direction: str | None) -> Iterator[tuple[Target, Sync]]:
        passphrase = self._passphrase()
        with (
            exclusive_lock(self._settings.home / "sync.lock", "Another sync of this home is running."),
            self._target() as target,
        ):
            if direction is not None:
                self._check_limit(direction)
            yield target, Sync(target, passphrase, clock=self._clock)
            # One that failed does not count.
            if direction is not None:
                with self._store.database.write() as session:
                    self._store.replicas.count(session, self._today(), direction)

    def _passphrase(self) -> str:
        """The passphrase. Where more than that is missing, all of it is named at once."""
        try:
            return passphrase_of(self._settings)
        except ConfigurationError as error:
            try:
                with self._target():
                    pass
            except CortexError as other:
                remedies = " ".join(filter(None, (other.remedy, error.remedy)))
                message = f"{other.message} {error.message}"
                raise ConfigurationError(message, remedy=remedies, field=other.field) from None
            raise

    @contextmanager
    def _target(self) -> Iterator[Target]:
        if not self._settings.cloud_url:
            raise ConfigurationError(
                "No sync target is set.",
                remedy="Set CORTEX_CLOUD_URL, for example to file:///path/to/a/synced/folder or s3://bucket/prefix.",
                field="cloud_url",
            )
        target = open_target(self._settings.cloud_url, timeout=_OPERATION_SECONDS)
        try:
            yield target
        finally:
            target.close()

    def _check_limit(self, direction: str) -> None:
        with self._store.database.read() as session:
            if self._store.replicas.counted(session, self._today(), direction) >= DAILY[direction]:
                now = self._clock.now()
                tomorrow = now.replace(hour=0, minute=0, second=0, microsecond=0) + timedelta(days=1)
                raise RateLimited(
                    f"There were {DAILY[direction]} calls of sync {direction} today.",
                    retry_after=(tomorrow - now).total_seconds(),
                    remedy="Try again tomorrow (UTC).",
                )

    def _today(self) -> str:
        return f"{self._clock.now():%Y-%m-%d}"

    def _machine(self) -> str:
        """The id of this home among others. A copy of the home on another machine gets its own id."""
        place = sha256(f"{platform.node()}\n{self._settings.home.resolve()}".encode()).hexdigest()[:16]
        with self._store.database.read() as session:
            known = json.loads(self._store.settings.get(session, _MACHINE) or "{}")
        if known.get("place") != place:
            known = {"id": secrets.token_hex(8), "place": place}
            with self._store.database.write() as session:
                self._store.settings.put(session, _MACHINE, json.dumps(known))
        return str(known["id"])


def _sums(results: Sequence[object], *names: str) -> dict[str, Any]:
    return {name: sum(getattr(one, name) for one in results) for name in names}
