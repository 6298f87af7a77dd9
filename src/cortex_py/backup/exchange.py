"""Sync by the settings of a home: which target, under which passphrase, how often a day, and for which spaces."""

from __future__ import annotations

import json
import platform
import secrets
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass
from datetime import timedelta
from hashlib import sha256

from ..clock import Clock
from ..config import Settings
from ..errors import ConfigurationError, RateLimited
from ..records import DOMAINS, Domain
from ..security.permission import administrable, require_admin
from ..store.store import Store
from .collection import change_passphrase
from .held import Held
from .locking import alone
from .passphrase import passphrase_of
from .store_replica import StoreReplica
from .sync import ConflictFound, HeadFault, Pulled, Pushed, Status, Sync
from .target import Target
from .target_opening import open_target

__all__ = ["DAILY", "Exchange", "Received", "Sent", "SyncState"]

DAILY = {"push": 100, "pull": 20}
_MACHINE = "machine"
# A pack of 2 MB over a slow line.
_OPERATION_SECONDS = 120.0


@dataclass(frozen=True, slots=True)
class Sent:
    """What a push brought. `cloud_path` is where the project's state begins in the target; `changed_here` are those of
    the documents that were changed on this machine, the others came from elsewhere or are packed anew."""

    target: str
    cloud_path: str
    uploaded_bytes: int
    documents: int
    changed_here: int
    total: int


@dataclass(frozen=True, slots=True)
class Received:
    """What a pull brought. `memories` counts those added or changed, `overruled` small facts of which the later one
    holds; `faults` tell what could not be read, `rolled_back` of which machines the target showed an older state."""

    target: str
    downloaded_bytes: int
    added: int
    changed: int
    removed: int
    memories: int
    machines: tuple[str, ...]
    conflicts: tuple[ConflictFound, ...]
    overruled: int
    rolled_back: tuple[str, ...]
    faults: tuple[HeadFault, ...]


@dataclass(frozen=True, slots=True)
class SyncState:
    """How this home stands to its target: for each domain, and how much of the day's number is used up."""

    target: str
    machine: str
    domains: Mapping[Domain, Status]
    pushes_today: int
    pulls_today: int


class Exchange:
    """`hold` gives what is exchanged, by project id and domain."""

    def __init__(
        self, store: Store, clock: Clock, settings: Settings, hold: Callable[[str | None, Domain], Held]
    ) -> None:
        self._store = store
        self._clock = clock
        self._settings = settings
        self._hold = hold

    def push(self, project_id: str | None, *, whole: bool = False) -> Sent:
        """Bring what changed here; first the project, then what belongs to the person and the organisation."""
        shared = self._shared(project_id)
        with self._sync("push") as (target, sync):
            done: list[Pushed] = []
            for held in shared.values():
                held.settle()
                done.append(sync.push(self._replica(held, target), held.space, whole=whole))
            return Sent(
                target.shown,
                done[0].cloud_path,
                sum(one.uploaded_bytes for one in done),
                sum(one.documents for one in done),
                sum(one.changed_here for one in done),
                sum(one.total for one in done),
            )

    def pull(self, project_id: str | None) -> Received:
        """Merge what other machines brought. Where two changed the same memory, both are kept."""
        shared = self._shared(project_id)
        with self._sync("pull") as (target, sync):
            done: list[Pulled] = []
            memories = 0
            for held in shared.values():
                held.settle()
                before = self._memories(held)
                pulled = sync.pull(self._replica(held, target), held.space)
                done.append(pulled)
                if pulled.added or pulled.changed or pulled.removed:
                    held.changed()
                    memories += len(self._memories(held) - before)
            return Received(
                target.shown,
                sum(one.downloaded_bytes for one in done),
                sum(one.added for one in done),
                sum(one.changed for one in done),
                sum(one.removed for one in done),
                memories,
                tuple(sorted({machine for one in done for machine in one.machines})),
                tuple(conflict for one in done for conflict in one.conflicts),
                sum(one.overruled for one in done),
                tuple(sorted({machine for one in done for machine in one.rolled_back})),
                tuple(fault for one in done for fault in one.faults),
            )

    def status(self, project_id: str | None) -> SyncState:
        """What waits here, and what other machines have brought; nothing is changed."""
        shared = self._shared(project_id)
        with self._sync(None) as (target, sync):
            domains = {domain: sync.status(self._replica(held, target), held.space) for domain, held in shared.items()}
        with self._store.database.read() as session:
            used = {way: self._store.replicas.counted(session, self._today(), way) for way in DAILY}
        return SyncState(target.shown, self._machine(), domains, used["push"], used["pull"])

    def change_passphrase(self, new: str) -> None:
        """Put another passphrase in the place of the one in use; what lies in the target need not be written anew."""
        with self._target() as target:
            change_passphrase(target, passphrase_of(self._settings), new)

    # -- parts -----------------------------------------------------------------------------------

    def _shared(self, project_id: str | None) -> dict[Domain, Held]:
        """The project, and of what is beyond it all that the caller may do anything with."""
        held = {domain: self._hold(project_id, domain) for domain in DOMAINS}
        require_admin(held["project"].space)
        return {domain: one for domain, one in held.items() if administrable(one.space)}

    def _memories(self, held: Held) -> set[tuple[str, int]]:
        """Every memory of a space with the change it last went through."""
        with self._store.database.read() as session:
            return self._store.memories.states(session, held.space)

    def _replica(self, held: Held, target: Target) -> StoreReplica:
        return StoreReplica(self._store, held, self._machine(), sha256(target.shown.encode()).hexdigest()[:16])

    @contextmanager
    def _sync(self, direction: str | None) -> Iterator[tuple[Target, Sync]]:
        passphrase = passphrase_of(self._settings)
        with (
            alone(self._settings.home / "sync.lock", "Another sync of this home is running."),
            self._target() as target,
        ):
            if direction is not None:
                self._count(direction)
            yield target, Sync(target, passphrase, clock=self._clock)

    @contextmanager
    def _target(self) -> Iterator[Target]:
        if not self._settings.cloud_url:
            raise ConfigurationError(
                "There is no place to sync with.",
                remedy="Set CORTEX_CLOUD_URL, for example to file:///path/to/a/synced/folder or s3://bucket/prefix.",
                field="cloud_url",
            )
        target = open_target(self._settings.cloud_url, timeout=_OPERATION_SECONDS)
        try:
            yield target
        finally:
            target.close()

    def _count(self, direction: str) -> None:
        with self._store.database.write() as session:
            if self._store.replicas.count(session, self._today(), direction) > DAILY[direction]:
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
        """The name of this home among others. A copy of it on another machine gets a name of its own."""
        place = sha256(f"{platform.node()}\n{self._settings.home.resolve()}".encode()).hexdigest()[:16]
        with self._store.database.read() as session:
            known = json.loads(self._store.settings.get(session, _MACHINE) or "{}")
        if known.get("place") != place:
            known = {"id": secrets.token_hex(8), "place": place}
            with self._store.database.write() as session:
                self._store.settings.put(session, _MACHINE, json.dumps(known))
        return str(known["id"])
