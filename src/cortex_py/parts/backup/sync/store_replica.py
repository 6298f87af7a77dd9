"""The store as a replica: one space of this home, what is recorded of it for one target, and what stays here.

The tests of sync have another one in memory, whose faults and clocks they choose.
"""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping, Sequence
from itertools import groupby

from ....core.memory.capture.capture import count_personal_data
from ....core.store.database import Session, batched
from ....core.store.documents.document import SHARED_KINDS, Document
from ....core.store.documents.documents import check_document
from ....core.store.store import Store
from ....core.store.tables.replicas import EntryRow, earlier_texts, marked, only_mentioned_by, replacements
from ..source import BackupSource
from ..transfer.import_checks import texts_in
from .merge import Change, DocumentState, Name

__all__ = ["PersonalDataFilter", "StoreReplica"]

# What stays on this machine when it pushes: documents that hold personal data, and what belongs to them.
#
# A document that stays is not pushed, and nothing is said about it: other machines keep what they have of it.

# Free text in documents other than memories. What is found in a memory is stored with it.
_TEXTS = {
    "branch": ("topic",),
    "entity": ("name", "aliases", "properties"),
    "verification": ("result",),
    "relationship": ("evidence", "properties"),
    "merge": ("log",),
    "saved": ("description", "tags", "variables", "versions"),
}


class PersonalDataFilter:
    """Decides for the documents of one scan, in the order of the scan, which ones stay on this machine.

    Those are documents with personal data and what belongs to them. They are not pushed and their absence is not
    recorded, so other machines keep what they have.
    """

    def __init__(self, session: Session, space: str) -> None:
        nums = marked(session, space)
        for identity, num, texts in earlier_texts(session, space):
            if identity not in nums and any(count_personal_data(text) for text in texts):
                nums[identity] = num
        # A memory replaced by one that stays would be hidden on other machines, with nothing in its place.
        replaced = replacements(session, space)
        while more := {one: num for one, num, by in replaced if by in nums and one not in nums}:
            nums |= more
        self._memories = nums.keys()
        self._entities = only_mentioned_by(session, space, set(nums.values()))

    def __contains__(self, document: Document) -> bool:
        """Whether a document stays here."""
        kind, data = document.kind, document.data
        if kind == "memory":
            return document.key in self._memories
        if kind == "consolidation":
            return data["result_id"] in self._memories
        if self._belongs(document) or _holds_personal_data(document):
            if kind == "entity":
                self._entities.add(document.key)
            return True
        return False

    def _belongs(self, document: Document) -> bool:
        kind, data = document.kind, document.data
        if kind in ("mention", "verification"):
            return document.key in self._memories
        if kind == "entity":
            return document.key in self._entities
        if kind == "relationship":
            ends = (data["source_id"], data["target_id"])
            return data["memory"] in self._memories or any(end in self._entities for end in ends)
        if kind == "merge":
            return data["into_id"] in self._entities or any(one["memory"] in self._memories for one in data["log"])
        return False


def _holds_personal_data(document: Document) -> bool:
    names = _TEXTS.get(document.kind, ())
    return any(count_personal_data(text) for name in names for text in texts_in(document.data[name]))


_BATCH = 400
# The first of these that a document has is when it was last changed.
_MOMENTS = ("updated_at", "checked_at", "undone_at", "ended_at", "recorded_at", "created_at")


class _Changed(Exception):
    """A document was written between planning and applying a change."""

    def __init__(self, names: list[Name]) -> None:
        self.names = names


class StoreReplica:
    """One space of one machine, as sync sees it for one target. Callers exclude concurrent exchanges.

    `target` identifies the target in what is recorded; `withholding` keeps personal data on this machine.
    """

    def __init__(
        self, store: Store, source: BackupSource, machine: str, target: str, *, withholding: bool = False
    ) -> None:
        self.machine = machine
        self._store = store
        self._source = source
        self._target = target
        self._withholding = withholding
        self._scan: Session | None = None
        self._withheld: PersonalDataFilter | None = None

    def documents(self) -> Iterator[Document]:
        """All shared documents with their vectors, as of one moment."""
        with self._store.database.read() as session:
            self._scan, self._withheld = session, None
            yield from self._store.documents.scan(session, self._source.space, SHARED_KINDS, tag=self._source.tag)

    def withholds(self, document: Document) -> bool:
        """Whether a document of the current scan stays on this machine."""
        if not self._withholding or self._scan is None:
            return False
        if self._withheld is None:
            self._withheld = PersonalDataFilter(self._scan, self._source.space)
        return document in self._withheld

    def entries(self) -> dict[Name, DocumentState]:
        """What was known after the last exchange with the target."""
        with self._store.database.read() as session:
            rows = self._store.replicas.entries(session, self._source.space, self._target)
        return {
            Name(row.kind, row.key): DocumentState(
                json.loads(row.versions), row.stamp, row.latest, row.digest, row.pack, row.maker
            )
            for row in rows
        }

    def changed_at(self, document: Document) -> int:
        """When a document was last changed by its user, in microseconds."""
        found = (document.data.get(name) for name in _MOMENTS)
        return next((moment for moment in found if isinstance(moment, int)), 0)

    def apply(self, changes: Sequence[Change], entries: Mapping[Name, DocumentState]) -> Sequence[Name]:
        """Make the changes, ordered as `KINDS`, and keep the entries in one transaction.

        Returns the names changed meanwhile; if there is one, nothing is done.
        """
        try:
            with self._store.database.write() as session:
                # All checks come first, since deleting a document also deletes what depends on it.
                self._check(session, changes)
                seq = self._store.memories.next_seq(session, self._source.space)
                for change in changes:
                    self._apply(session, seq, change)
                self._store.documents.mend(session, self._source.space)
                self._source.finish(session)
                self._store.replicas.keep(session, self._source.space, self._target, _rows(entries))
        except _Changed as changed:
            return changed.names
        return ()

    def _check(self, session: Session, changes: Sequence[Change]) -> None:
        """Refuse if a document is no longer what a change expects."""
        for kind, group in groupby(changes, key=lambda change: change.name.kind):
            for batch in batched(group, _BATCH):
                keys = [one.name.key for one in batch]
                there = self._store.documents.by_keys(session, self._source.space, kind, keys)
                digests = {one.key: one.digest for one in there}
                other = [one.name for one in batch if digests.get(one.name.key) != one.expected]
                if other:
                    raise _Changed(other)

    def _apply(self, session: Session, seq: int, change: Change) -> None:
        documents, space = self._store.documents, self._source.space
        if change.load is None:
            documents.remove(session, space, *change.name, seq)
        else:
            document = change.load()
            check_document(document)
            documents.put(session, space, document, seq, self._source.index)

    def keep(self, entries: Mapping[Name, DocumentState]) -> None:
        """Keep entries without changing documents."""
        with self._store.database.write(self._source.space) as session:
            self._store.replicas.keep(session, self._source.space, self._target, _rows(entries))

    def fact(self, key: str) -> str | None:
        """A value recorded about the target."""
        with self._store.database.read() as session:
            return self._store.replicas.fact(session, self._source.space, self._target, key)

    def remember(self, key: str, value: str) -> None:
        with self._store.database.write(self._source.space) as session:
            self._store.replicas.remember(session, self._source.space, self._target, key, value)


def _rows(entries: Mapping[Name, DocumentState]) -> Iterator[EntryRow]:
    for name, entry in entries.items():
        versions = json.dumps(dict(entry.versions), sort_keys=True, separators=(",", ":"))
        yield EntryRow(*name, versions, entry.stamp, entry.floor, entry.digest, entry.pack, entry.maker)
