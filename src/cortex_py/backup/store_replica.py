"""The store as sync sees it: one space of this home, and what is remembered of it for one target."""

from __future__ import annotations

import json
from collections.abc import Iterable, Iterator, Mapping, Sequence
from itertools import groupby

from ..store.database import Session
from ..store.document import SHARED_KINDS, Document
from ..store.documents import check_document
from ..store.replicas import EntryRow
from ..store.store import Store
from .held import Held
from .replica import Change, Changes, Entry, Name

__all__ = ["StoreReplica"]

_BATCH = 400
_Expected = tuple[Name, str | None]
# The first of these that a document has is when it was last changed.
_MOMENTS = ("updated_at", "checked_at", "undone_at", "ended_at", "recorded_at", "created_at")


class _Changed(Exception):
    """Something was written between the look and the change."""

    def __init__(self, names: list[Name]) -> None:
        self.names = names


class StoreReplica:
    """`target` names the target in what is remembered."""

    def __init__(self, store: Store, held: Held, machine: str, target: str) -> None:
        self.machine = machine
        self._store = store
        self._held = held
        self._target = target

    def documents(self) -> Iterator[Document]:
        with self._store.database.read() as session:
            yield from self._store.documents.scan(session, self._held.space, SHARED_KINDS, vectors=True)

    def entries(self) -> dict[Name, Entry]:
        with self._store.database.read() as session:
            rows = self._store.replicas.entries(session, self._held.space, self._target)
        return {
            Name(row.kind, row.key): Entry(
                json.loads(row.versions), row.stamp, row.latest, row.digest, row.pack, row.maker
            )
            for row in rows
        }

    def changed_at(self, document: Document) -> int:
        found = (document.data.get(name) for name in _MOMENTS)
        return next((moment for moment in found if isinstance(moment, int)), 0)

    def apply(self, changes: Sequence[Change], entries: Mapping[Name, Entry]) -> Sequence[Name]:
        try:
            with self._store.database.write() as session:
                # All before the first is made: what is taken away takes with it what cannot be without.
                self._check(session, changes)
                seq = self._store.memories.next_seq(session)
                for change in changes:
                    self._apply(session, seq, change)
                self._store.documents.mend(session, self._held.space)
                self._held.written(session)
                self._store.replicas.keep(session, self._held.space, self._target, _rows(entries))
        except _Changed as changed:
            return changed.names
        return ()

    def _check(self, session: Session, changes: Sequence[Change]) -> None:
        """Refuse where a document is no longer what a change expects."""
        given = changes.expected() if isinstance(changes, Changes) else ((one.name, one.expected) for one in changes)
        for kind, group in groupby(given, key=lambda pair: pair[0].kind):
            for batch in _batches(group):
                keys = [name.key for name, _ in batch]
                there = self._store.documents.some(session, self._held.space, kind, keys)
                digests = {one.key: one.digest for one in there}
                other = [name for name, expected in batch if digests.get(name.key) != expected]
                if other:
                    raise _Changed(other)

    def _apply(self, session: Session, seq: int, change: Change) -> None:
        documents, space, document = self._store.documents, self._held.space, change.document
        if document is None:
            documents.remove(session, space, *change.name, seq)
        else:
            check_document(document)
            documents.put(session, space, document, seq, self._held.prepared)

    def keep(self, entries: Mapping[Name, Entry], dropped: Iterable[Name] = ()) -> None:
        with self._store.database.write() as session:
            self._store.replicas.keep(session, self._held.space, self._target, _rows(entries))
            self._store.replicas.drop(session, self._held.space, self._target, dropped)

    def fact(self, key: str) -> str | None:
        with self._store.database.read() as session:
            return self._store.replicas.fact(session, self._held.space, self._target, key)

    def remember(self, key: str, value: str) -> None:
        with self._store.database.write() as session:
            self._store.replicas.remember(session, self._held.space, self._target, key, value)


def _rows(entries: Mapping[Name, Entry]) -> Iterator[EntryRow]:
    for name, entry in entries.items():
        versions = json.dumps(dict(entry.versions), sort_keys=True, separators=(",", ":"))
        yield EntryRow(*name, versions, entry.stamp, entry.floor, entry.digest, entry.pack, entry.maker)


def _batches(items: Iterable[_Expected]) -> Iterator[list[_Expected]]:
    batch: list[_Expected] = []
    for item in items:
        batch.append(item)
        if len(batch) == _BATCH:
            yield batch
            batch = []
    if batch:
        yield batch
