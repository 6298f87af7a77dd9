"""One push: documents that are in no pack of this machine yet go into new packs, then a new head lists all packs.

Packs that hold mostly superseded documents are rewritten, within a budget, so that a small change stays a small push.
"""

from __future__ import annotations

import logging
import os
from collections import Counter, deque
from collections.abc import Mapping, Sequence
from concurrent.futures import Future, ThreadPoolExecutor
from contextlib import closing
from dataclasses import dataclass, field, replace

from ....core.clock import Clock, to_micros
from ....core.errors import BackupError
from ....core.jobs import report
from ....core.security.ciphers import Random
from ....core.store.documents.document import Document
from ..targets.target import Target
from .collection import Collection, OwnHead, SyncState
from .merge import DocumentState, Name, local_changes
from .packs import ROOT, HeadName, PackBuilder, PackHead, PackRef, RetiredPack, day_of, pack_path, seal_head, seal_pack
from .pull import read_head
from .store_replica import StoreReplica

__all__ = ["RETAINED_HEADS", "Push", "PushResult", "pack_limit", "packs_to_rewrite"]

logger = logging.getLogger(__name__)

RETAINED_HEADS = 7

_RETIRED_MICROS = 7 * 24 * 3600 * 1_000_000
_HEAD_ID_BYTES = 16
_WORKERS = max(1, min(4, os.cpu_count() or 1))
_LEAST_BYTES, _MOST_BYTES = 64 * 1024, 2 * 1024 * 1024
_SHARE_OF_ALL = 32
_BUDGET_SHARE = 32
_MOST_SMALL = 16
_SMALL_SHARE, _LEAST_SMALL = 16, 16 * 1024


@dataclass(slots=True)
class PushResult:
    """The result of a push of one or several spaces.

    `documents` and `gone` count the states written, including those received from other machines and those repacked;
    `changed_here` counts documents changed on this machine. `total` counts the states in the new head. `cleared` is
    false if superseded objects could not be deleted; the next push tries again. `withheld` counts by kind the
    documents that stay on this machine because they hold personal data or belong to one that does.
    """

    target: str
    cloud_path: str = ""
    uploaded_bytes: int = 0
    packs: int = 0
    documents: int = 0
    changed_here: int = 0
    gone: int = 0
    total: int = 0
    sequence: int = 0
    cleared: bool = True
    withheld: Counter[str] = field(default_factory=Counter)

    @property
    def stayed(self) -> str:
        """What was withheld, in words; empty if nothing was."""
        memories = self.withheld["memory"]
        return (
            f"{memories:,} memories and {self.withheld.total() - memories:,} other documents" if self.withheld else ""
        )


def pack_limit(stored: int) -> int:
    """The size before compression at which a pack is closed: a small share of the bytes stored so far."""
    return min(max(stored // _SHARE_OF_ALL, _LEAST_BYTES), _MOST_BYTES)


def packs_to_rewrite(packs: Sequence[PackRef], live: Mapping[str, int]) -> set[str]:
    """Choose the packs whose live states go into new packs; `live` counts the states that no later pack supersedes.

    Packs that are at most half live come first, the emptiest before the others; then the smallest ones, if there are
    too many small ones. The cost is at most 1/32 of what is stored, unless three quarters of it are superseded.
    """
    stored, living = sum(pack.documents for pack in packs), sum(live.get(pack.name, 0) for pack in packs)
    total = sum(pack.size for pack in packs)
    budget = max(total // _BUDGET_SHARE, _LEAST_BYTES) if living * 4 >= stored else total
    chosen: set[str] = set()

    def live_share(pack: PackRef) -> float:
        return live.get(pack.name, 0) / max(pack.documents, 1)

    for pack in sorted(packs, key=lambda pack: (live_share(pack), pack.name)):
        share = live_share(pack)
        if share > 0.5 or pack.size * share > budget:
            break
        chosen.add(pack.name)
        budget -= round(pack.size * share)
    small_bytes = max(pack_limit(total) // _SMALL_SHARE, _LEAST_SMALL)
    small = sorted((pack.size, pack.name) for pack in packs if pack.name not in chosen and pack.size < small_bytes)
    if len(small) > _MOST_SMALL:
        for size, name in small:
            if size > budget:
                break
            chosen.add(name)
            budget -= size
    return chosen


class Push:
    """`names` are the heads of this machine in the target, latest first; `head` is the latest that can be read."""

    def __init__(
        self,
        target: Target,
        collection: Collection,
        state: SyncState,
        clock: Clock,
        random: Random,
        *,
        names: Sequence[HeadName],
        head: tuple[HeadName, PackHead] | None,
        own: HeadName,
    ) -> None:
        self._target = target
        self._collection = collection
        self._state = state
        self._random = random
        self._names = names
        self._at: HeadName | None = head[0] if head else None
        self._head: PackHead | None = head[1] if head else None
        self._own = own
        now = clock.now()
        self._now = to_micros(now)
        self._today = day_of(now)
        self._listed: dict[str, int] = {}
        self._packs: list[PackRef] = []
        self._entries: dict[Name, DocumentState] = {}
        self._result = PushResult(target.shown)

    def run(self, replica: StoreReplica, space: str, *, whole: bool) -> PushResult:
        self._listed = {stored.name: stored.size for stored in self._target.list(f"{ROOT}packs/")}
        uploaded = self._state.uploaded
        before = list({pack.name: pack for pack in (*(self._head.packs if self._head else ()), *uploaded)}.values())
        # The documents of a pack that disappeared are written again.
        usable = [] if whole else [pack for pack in before if self._is_there(pack)]
        known = replica.entries()
        rewritten = packs_to_rewrite(usable, Counter(entry.pack for entry in known.values() if entry.pack))
        kept = [pack for pack in usable if pack.name not in rewritten]
        self._write(replica, space, known, kept, uploaded, whole)
        packs = tuple({pack.name: pack for pack in (*kept, *self._packs)}.values())
        # If the newest head could not be read, it is replaced in any case.
        readable = self._at is not None and self._at == self._names[0] and not whole
        if readable and self._at is not None and self._head is not None and packs == self._head.packs:
            return self._finish(self._at, self._head)
        name, head = self._next_head(replica.machine, space, packs, before)
        sealed = seal_head(head, name, self._collection.keys, self._random)
        # Recorded before the upload: if its answer is lost, the head is still recognised as one of this home.
        self._state.own_is(OwnHead(head.sequence, head.head, name.day))
        self._target.put(name.path, sealed)
        self._result.uploaded_bytes += len(sealed)
        self._state.uploaded_are(())
        self._result.cleared = self._clear(name, head)
        return self._finish(name, head)

    def _finish(self, name: HeadName, head: PackHead) -> PushResult:
        withheld = Counter({kind: count for kind, count in self._result.withheld.items() if count})
        return replace(self._result, cloud_path=name.path, sequence=head.sequence, withheld=withheld)

    def _write(
        self,
        replica: StoreReplica,
        space: str,
        known: dict[Name, DocumentState],
        kept: Sequence[PackRef],
        uploaded: Sequence[PackRef],
        whole: bool,
    ) -> None:
        """Put the states that are in none of the kept packs into new ones, and record the progress even on a fault."""
        names = {pack.name for pack in kept}
        plain = sum(pack.size for pack in kept)
        builder = PackBuilder(space, replica.machine)
        actor, result = self._state.actor, self._result

        def withheld(document: Document) -> bool:
            stays = replica.withholds(document)
            result.withheld[document.kind] += stays
            return stays

        states = local_changes(
            replica.documents(), known, actor, changed_at=replica.changed_at, now=self._now, withheld=withheld
        )
        # Compression takes most of the time and releases the GIL; uploads go out in order.
        packing: deque[tuple[PackBuilder, Future[bytes]]] = deque()
        try:
            with ThreadPoolExecutor(_WORKERS, "cortex-pack") as pool, closing(states):
                for name, entry, document in states:
                    result.total += 1
                    report("documents", result.total)
                    if entry.pack in names:
                        continue
                    builder.add(name, entry, document)
                    if document is None:
                        result.gone += 1
                    else:
                        result.documents += 1
                        result.changed_here += entry.maker == actor and not entry.pack
                    if builder.size >= pack_limit(plain):
                        plain += builder.size
                        packing.append((builder, pool.submit(builder.plain)))
                        builder = PackBuilder(space, replica.machine)
                        if len(packing) > _WORKERS:
                            self._upload(*packing.popleft(), whole)
                if builder.entries:
                    packing.append((builder, pool.submit(builder.plain)))
                while packing:
                    self._upload(*packing.popleft(), whole)
        finally:
            if self._packs:
                # Counts are recorded before a head shows them, so that none is used twice; after a fault, packs that
                # arrived are not uploaded again.
                self._state.uploaded_are([*uploaded, *self._packs])
                replica.keep(self._entries)

    def _upload(self, builder: PackBuilder, plain: Future[bytes], whole: bool) -> None:
        name, sealed = seal_pack(plain.result(), self._collection.keys, self._random)
        pack = PackRef(name, len(sealed), len(builder.entries))
        if whole or not self._is_there(pack):
            self._target.put(pack_path(name), sealed)
            self._result.uploaded_bytes += len(sealed)
            self._result.packs += 1
        self._packs.append(pack)
        self._entries.update((document, replace(entry, pack=name)) for document, entry in builder.entries.items())

    def _is_there(self, pack: PackRef) -> bool:
        return self._listed.get(pack_path(pack.name)) == pack.size

    def _next_head(
        self, machine: str, space: str, packs: tuple[PackRef, ...], before: Sequence[PackRef]
    ) -> tuple[HeadName, PackHead]:
        own, head = self._state.own, self._head
        # Never earlier than an existing one, whatever the clock does: readers find the latest head by its name.
        day = max([self._today, *([own.day] if own else []), *(name.day for name in self._names[:1])])
        sequence = max(own.sequence if own else 0, head.sequence if head else 0) + 1
        listed = {pack.name for pack in packs}
        retired = {pack.name: self._now for pack in before} | dict(head.leaving if head else ())
        leaving = tuple(
            RetiredPack(name, since)
            for name, since in sorted(retired.items())
            if name not in listed and pack_path(name) in self._listed
        )
        identity = self._random(_HEAD_ID_BYTES).hex()
        return self._own._replace(day=day), PackHead(space, machine, sequence, identity, self._now, packs, leaving)

    def _clear(self, name: HeadName, head: PackHead) -> bool:
        """Delete restore points beyond the retained ones, and packs that no head has listed for some days."""
        heads = sorted({*self._names, name}, key=lambda one: one.day, reverse=True)
        try:
            for old in heads[RETAINED_HEADS:]:
                self._target.delete(old.path)
            noted = dict(self._head.leaving) if self._head else {}
            due = [one.name for one in head.leaving if noted.get(one.name, self._now) <= self._now - _RETIRED_MICROS]
            if due:
                retained = [other for other in heads[:RETAINED_HEADS] if other != name]
                named = {pack.name for one in retained for pack in read_head(self._target, one, self._collection).packs}
                for pack in due:
                    if pack not in named:
                        self._target.delete(pack_path(pack))
        except BackupError as error:
            # A restore point that cannot be read may list any of the packs.
            logger.debug("superseded objects stay in the target: %s", type(error).__name__)
            return False
        return True
