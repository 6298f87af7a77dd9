"""What one machine brings to a target: new packs first, then the head that makes them visible, then the clearing up."""

from __future__ import annotations

import os
from collections import Counter, deque
from collections.abc import Sequence
from concurrent.futures import Future, ThreadPoolExecutor
from contextlib import closing
from dataclasses import dataclass, field, replace

from ..clock import Clock, to_micros
from ..errors import BackupError, NetworkError
from .collection import Collection
from .compaction import pack_limit, to_rewrite
from .gathering import read_head
from .heads import ROOT, Head, HeadName, Leaving, day_of, seal_head
from .merging import local_changes
from .packs import PackBuilder, PackRef, pack_path, seal_pack
from .remembered import OwnHead, Remembered
from .replica import Entry, Name, Replica
from .target import Target
from .vault_header import Random

__all__ = ["RETAINED_HEADS", "Push", "Pushed"]

RETAINED_HEADS = 7

_LEAVING_MICROS = 7 * 24 * 3600 * 1_000_000
_HEAD_ID_BYTES = 16
_WORKERS = max(1, min(4, os.cpu_count() or 1))
_AHEAD = _WORKERS


@dataclass(frozen=True, slots=True)
class Pushed:
    """What a push came to. `documents` and `gone` are the states written, those heard from others and those packed
    anew among them; `changed_here` of the documents were changed on this machine. `total` is what the head now
    tells of. `cleared` is false where superseded objects could not be removed: the next push does."""

    cloud_path: str
    uploaded_bytes: int
    packs: int
    documents: int
    changed_here: int
    gone: int
    total: int
    sequence: int
    cleared: bool = True


@dataclass(slots=True)
class _Written:
    packs: list[PackRef] = field(default_factory=list)
    entries: dict[Name, Entry] = field(default_factory=dict)
    bytes: int = 0
    uploads: int = 0
    plain: int = 0
    documents: int = 0
    changed_here: int = 0
    gone: int = 0
    total: int = 0


class Push:
    """One push. `names` are the heads of this machine in the target, the latest first, and `head` the latest that
    can be read."""

    def __init__(
        self,
        target: Target,
        collection: Collection,
        remembered: Remembered,
        clock: Clock,
        random: Random,
        *,
        names: Sequence[HeadName],
        head: tuple[HeadName, Head] | None,
        own: HeadName,
    ) -> None:
        self._target = target
        self._collection = collection
        self._remembered = remembered
        self._random = random
        self._names = names
        self._at: HeadName | None = head[0] if head else None
        self._head: Head | None = head[1] if head else None
        self._own = own
        now = clock.now()
        self._now = to_micros(now)
        self._today = day_of(now)
        self._listed: dict[str, int] = {}

    def run(self, replica: Replica, space: str, *, whole: bool) -> Pushed:
        self._listed = {stored.name: stored.size for stored in self._target.list(f"{ROOT}packs/")}
        uploaded = self._remembered.uploaded
        before = list({pack.name: pack for pack in (*(self._head.packs if self._head else ()), *uploaded)}.values())
        # A pack that vanished is no longer counted on: its documents are written again.
        usable = [] if whole else [pack for pack in before if self._is_there(pack)]
        known = replica.entries()
        live = Counter(entry.pack for entry in known.values() if entry.pack)
        rewritten = to_rewrite(usable, live)
        kept = [pack for pack in usable if pack.name not in rewritten]
        written = self._write(replica, space, known, kept, uploaded, whole)
        packs = tuple({pack.name: pack for pack in (*kept, *written.packs)}.values())
        # A damaged head lies before the one that could be read: it is replaced in any case.
        newest = self._at is not None and self._at == self._names[0] and not whole
        if newest and self._at is not None and self._head is not None and packs == self._head.packs:
            return self._pushed(written, self._at, self._head, cleared=True)
        name, head = self._next_head(replica.machine, space, packs, before)
        sealed = seal_head(head, name, self._collection.keys, self._random)
        # Before it is there: where the answer is lost, the head is still known as one of this home.
        self._remembered.own_is(OwnHead(head.sequence, head.head, name.day))
        self._target.put(name.path, sealed)
        written.bytes += len(sealed)
        self._remembered.uploaded_are(())
        return self._pushed(written, name, head, cleared=self._clear(name, head))

    def _write(
        self,
        replica: Replica,
        space: str,
        known: dict[Name, Entry],
        kept: Sequence[PackRef],
        uploaded: Sequence[PackRef],
        whole: bool,
    ) -> _Written:
        """Put what lies in none of the kept packs into new ones, and keep what became of it, also of a part."""
        names = {pack.name for pack in kept}
        stored = sum(pack.size for pack in kept)
        written = _Written()
        builder = PackBuilder(space, replica.machine)
        actor = self._remembered.actor
        states = local_changes(replica.documents(), known, actor, changed_at=replica.changed_at, now=self._now)
        # Compressing takes most of the time and lets other threads run; what is sent goes out in order.
        packing: deque[tuple[PackBuilder, Future[bytes]]] = deque()
        try:
            with ThreadPoolExecutor(_WORKERS, "cortex-pack") as pool, closing(states):
                for name, entry, document in states:
                    written.total += 1
                    if entry.pack in names:
                        continue
                    builder.add(name, entry, document)
                    if document is None:
                        written.gone += 1
                    else:
                        written.documents += 1
                        written.changed_here += entry.maker == actor and not entry.pack
                    if builder.size >= pack_limit(stored + written.plain):
                        written.plain += builder.size
                        packing.append((builder, pool.submit(builder.plain)))
                        builder = PackBuilder(space, replica.machine)
                        if len(packing) > _AHEAD:
                            self._upload(*packing.popleft(), written, whole)
                if builder.entries:
                    packing.append((builder, pool.submit(builder.plain)))
                while packing:
                    self._upload(*packing.popleft(), written, whole)
        finally:
            if written.packs:
                # The counts have to be kept before a head shows them: a count is never given twice. Packs that
                # arrived are not uploaded again after a fault.
                self._remembered.uploaded_are([*uploaded, *written.packs])
                replica.keep(written.entries)
        return written

    def _upload(self, builder: PackBuilder, plain: Future[bytes], written: _Written, whole: bool) -> None:
        name, sealed = seal_pack(plain.result(), self._collection.keys, self._random)
        pack = PackRef(name, len(sealed), len(builder.entries))
        if whole or not self._is_there(pack):
            self._target.put(pack_path(name), sealed)
            written.bytes += len(sealed)
            written.uploads += 1
        written.packs.append(pack)
        written.entries.update((name_, replace(entry, pack=name)) for name_, entry in builder.entries.items())

    def _is_there(self, pack: PackRef) -> bool:
        return self._listed.get(pack_path(pack.name)) == pack.size

    def _next_head(
        self, machine: str, space: str, packs: tuple[PackRef, ...], before: Sequence[PackRef]
    ) -> tuple[HeadName, Head]:
        own, head = self._remembered.own, self._head
        # Never before an earlier one, so that readers find the latest by its name, whatever the clock does.
        day = max([self._today, *([own.day] if own else []), *(name.day for name in self._names[:1])])
        sequence = max(own.sequence if own else 0, head.sequence if head else 0) + 1
        listed = {pack.name for pack in packs}
        leaving = {pack.name: self._now for pack in before} | dict(head.leaving if head else ())
        return self._own._replace(day=day), Head(
            space,
            machine,
            sequence,
            self._random(_HEAD_ID_BYTES).hex(),
            self._now,
            packs,
            tuple(
                Leaving(name, since)
                for name, since in sorted(leaving.items())
                if name not in listed and pack_path(name) in self._listed
            ),
        )

    def _pushed(self, written: _Written, name: HeadName, head: Head, *, cleared: bool) -> Pushed:
        return Pushed(
            name.path,
            written.bytes,
            written.uploads,
            written.documents,
            written.changed_here,
            written.gone,
            written.total,
            head.sequence,
            cleared,
        )

    def _clear(self, name: HeadName, head: Head) -> bool:
        """Remove restore points beyond the last ones, and packs that no head has named for some days."""
        heads = sorted({*self._names, name}, key=lambda one: one.day, reverse=True)
        try:
            for old in heads[RETAINED_HEADS:]:
                self._target.delete(old.path)
            noted = dict(self._head.leaving) if self._head else {}
            due = [one.name for one in head.leaving if noted.get(one.name, self._now) <= self._now - _LEAVING_MICROS]
            if due:
                named = {
                    pack.name
                    for other in heads[:RETAINED_HEADS]
                    if other != name
                    for pack in read_head(self._target, other, self._collection).packs
                }
                for pack in due:
                    if pack not in named:
                        self._target.delete(pack_path(pack))
        except NetworkError:
            return False
        except BackupError:
            # A restore point that cannot be read may name any of them.
            return False
        return True
