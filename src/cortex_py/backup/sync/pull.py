"""What other machines have pushed: their heads and packs read and verified, before anything is done with them.

A machine is taken whole or not at all; what is wrong with one does not keep the others out. Packs are put aside
as they came, sealed, so that no plain text touches the disk.
"""

from __future__ import annotations

import tempfile
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field
from types import TracebackType
from typing import NamedTuple, Self

from ..errors import BackupCorrupt, BackupError, NetworkError
from ..store.document import Document
from .collection import Collection
from .heads import Head, HeadName, head_names, open_head
from .packs import PackRef, Versions, pack_path, read_pack
from .remembered import Remembered
from .replica import Entry, Name
from .target import Target

__all__ = [
    "HEAD_BYTES",
    "Arrived",
    "Gathered",
    "HeadFault",
    "Spool",
    "gather",
    "heads_of_space",
    "newest_head",
    "read_head",
]

HEAD_BYTES = 64 * 1024 * 1024
# A longer object is damaged like any other; only one far too long is not even read.
_SLACK_BYTES = 64 * 1024
_CACHED_PACKS = 2


class HeadFault(NamedTuple):
    """What is wrong with the backup of a machine: its name where that is known, else the mark of it."""

    machine: str
    day: str
    error: BackupError


class Arrived(NamedTuple):
    """A state that came, and the place of its pack in the spool."""

    entry: Entry
    pack: int


class Spool:
    """Sealed packs that are put aside, in memory or beyond a bound in a nameless file."""

    def __init__(self, collection: Collection, space: str, limit: int) -> None:
        self._collection = collection
        self._space = space
        # Closed by the `with` of whoever uses the spool.
        self._file = tempfile.SpooledTemporaryFile(max_size=limit)  # noqa: SIM115
        self._packs: list[tuple[int, PackRef, str]] = []
        self._cache: dict[int, dict[Name, Document | None]] = {}
        self._versions = Versions()
        self.size = 0

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self._file.close()

    def add(self, pack: PackRef, machine: str, sealed: bytes) -> dict[Name, Arrived]:
        """Verify a pack and put it aside; its states."""
        place = len(self._packs)
        found = {
            record.name: Arrived(record.entry, place)
            for record in read_pack(
                sealed,
                self._collection.keys,
                pack.name,
                space=self._space,
                machine=machine,
                versions=self._versions,
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
        """A document of a pack; documents asked for pack by pack are read together."""
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
class Gathered:
    """What came: `incoming` has each state once, `merged` the heads whose packs are in it."""

    incoming: dict[Name, list[Arrived]] = field(default_factory=dict)
    merged: list[tuple[HeadName, Head]] = field(default_factory=list)
    unchanged: list[Head] = field(default_factory=list)
    rolled_back: list[Head] = field(default_factory=list)
    faults: list[HeadFault] = field(default_factory=list)
    # Whether a head of this very machine was written by another home.
    foreign: bool = False
    downloaded: int = 0
    packs: int = 0

    def raise_if_nothing_was_read(self) -> None:
        if self.faults and not (self.merged or self.unchanged or self.rolled_back):
            raise self.faults[0].error

    def _take(self, states: dict[Name, Arrived]) -> None:
        for name, arrived in states.items():
            here = self.incoming.setdefault(name, [])
            # Machines that have exchanged everything tell the same of most documents.
            if not any(
                other.entry.versions == arrived.entry.versions and other.entry.digest == arrived.entry.digest
                for other in here
            ):
                here.append(arrived)


def heads_of_space(target: Target, prefix: str) -> dict[str, list[HeadName]]:
    """The heads whose names begin so, by the mark of their machine, the latest first."""
    found: dict[str, list[HeadName]] = {}
    for name in head_names([stored.name for stored in target.list(prefix)]):
        found.setdefault(name.machine, []).append(name)
    return found


def read_head(target: Target, name: HeadName, collection: Collection) -> Head:
    sealed = target.get(name.path, HEAD_BYTES)
    if sealed is None:
        raise BackupCorrupt(f"The backup {name.path} is missing.", remedy="Pull again, or push from its machine.")
    try:
        return open_head(sealed, name, collection.keys)
    except BackupCorrupt as error:
        raise BackupCorrupt(
            f"The backup {name.path} is damaged or was altered.", remedy="Push from its machine anew."
        ) from error


def newest_head(
    target: Target, names: Sequence[HeadName], collection: Collection, faults: list[HeadFault]
) -> tuple[HeadName, Head] | None:
    """The latest of a machine's heads that can be read; an older restore point is better than nothing."""
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
    remembered: Remembered,
    spool: Spool,
) -> Gathered:
    """What the machines, each given by the names of its heads, have pushed since it was merged."""
    gathered = Gathered()
    for of_machine in names:
        faults: list[HeadFault] = []
        found = newest_head(target, of_machine, collection, faults)
        before = remembered.merged(of_machine[0].machine)
        gathered.faults += [fault._replace(machine=before.machine or fault.machine) for fault in faults]
        if found is None:
            continue
        name, head = found
        if name.machine == own_mark:
            if not remembered.is_foreign(head):
                continue
            gathered.foreign = True
        if head.sequence < before.sequence:
            gathered.rolled_back.append(head)
        elif head.head == before.head:
            gathered.unchanged.append(head)
        else:
            try:
                states = _states(target, head, [pack for pack in head.packs if not before.has(pack)], spool, gathered)
            except NetworkError:
                raise
            except BackupError as error:
                gathered.faults.append(HeadFault(head.machine, name.day, error))
                continue
            gathered._take(states)
            gathered.merged.append(found)
    return gathered


def _states(
    target: Target, head: Head, packs: Sequence[PackRef], spool: Spool, gathered: Gathered
) -> dict[Name, Arrived]:
    states: dict[Name, Arrived] = {}
    for number, pack in enumerate(packs, start=1):
        what = f"Pack {number} of {len(packs)} of the backup of {head.machine}"
        sealed = target.get(pack_path(pack.name), pack.size + _SLACK_BYTES)
        remedy = f"Push from {head.machine} with all documents; what other machines hold is merged."
        if sealed is None:
            raise BackupCorrupt(f"{what} is missing.", remedy=remedy)
        gathered.downloaded += len(sealed)
        gathered.packs += 1
        try:
            if len(sealed) != pack.size:
                raise BackupCorrupt("Another size.")
            # A later pack holds the later state.
            states.update(spool.add(pack, head.machine, sealed))
        except BackupCorrupt as error:
            raise BackupCorrupt(f"{what} is damaged or was altered.", remedy=remedy) from error
    return states
