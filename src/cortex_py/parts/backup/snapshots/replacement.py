"""Replaces the state of a space by another one, writing only what differs; documents as parts of an archive; and copies
of a whole store.

A store of either engine is copied space by space, read back and compared. Each space is one transaction. After an
interruption the copy can be repeated: complete spaces are skipped. The form of the parts: docs/reference/formats.md.
"""

from __future__ import annotations

import struct
from collections import Counter
from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass, field
from hashlib import sha256
from typing import Protocol

from ....core.errors import BackupCorrupt, Conflict
from ....core.store.database import Session
from ....core.store.documents.document import Document, parse_canonical
from ....core.store.documents.documents import check_document, key_order
from ....core.store.rows import IndexedRecord
from ....core.store.store import Store
from .archive import ArchivePart

__all__ = [
    "MoveResult", "ReplaceResult", "StateDigest", "copy_projects", "documents_in", "move_store", "parts_of",
    "replace_state", "state_of",
]  # fmt: skip


_LINES_BYTES = 4_000_000
_LENGTH = struct.Struct(">I")


class StateDigest:
    """One digest of all documents in order, and their number by kind."""

    def __init__(self) -> None:
        self._sum = sha256()
        self.counts: Counter[str] = Counter()

    @classmethod
    def of(cls, documents: Iterable[Document]) -> StateDigest:
        made = cls()
        for document in documents:
            made.add(document)
        return made

    def add(self, document: Document) -> None:
        self._sum.update(document.line)
        self._sum.update(b"\n")
        self.counts[document.kind] += 1

    def hexdigest(self) -> str:
        return self._sum.hexdigest()


def parts_of(documents: Iterable[Document], state: StateDigest) -> Iterator[ArchivePart]:
    """Parts of bounded size: lines of documents and, next to them, their vectors."""
    lines: list[bytes] = []
    indexes: list[bytes] = []
    size = number = 0
    for document in documents:
        state.add(document)
        lines.append(document.line)
        indexes.append(_LENGTH.pack(len(document.vectors)) + document.vectors)
        size += len(document.line) + len(document.vectors)
        if size >= _LINES_BYTES:
            number += 1
            yield from _pair(number, lines, indexes)
            lines, indexes, size = [], [], 0
    if lines:
        yield from _pair(number + 1, lines, indexes)


def _pair(number: int, lines: list[bytes], indexes: list[bytes]) -> Iterator[ArchivePart]:
    yield ArchivePart(f"documents/{number:06d}.jsonl", b"\n".join(lines) + b"\n")
    yield ArchivePart(f"vectors/{number:06d}.bin", b"".join(indexes), compress=False)


def documents_in(parts: Iterable[ArchivePart], state: StateDigest, *, checked: bool = False) -> Iterator[Document]:
    """The documents of an archive, in strictly ascending order; each is checked unless `checked`."""
    waiting: ArchivePart | None = None
    last: tuple[int, tuple[str, ...]] = (-1, ())
    for part in parts:
        folder = part.name.split("/")[0]
        if folder == "documents" and waiting is None:
            waiting = part
        elif folder == "vectors" and waiting is not None and part.name[-10:-4] == waiting.name[-12:-6]:
            for document in _documents(waiting, part):
                place = key_order(document)
                if place <= last:
                    raise _corrupt(waiting.name, "its documents are not in order")
                last = place
                if not checked:
                    check_document(document)
                    state.add(document)
                yield document
            waiting = None
        elif folder != "files":
            raise _corrupt(part.name, "it does not belong to the part before it")
    if waiting is not None:
        raise _corrupt(waiting.name, "the part that belongs to it is missing")


def _documents(lines: ArchivePart, indexes: ArchivePart) -> Iterator[Document]:
    place = 0
    for number, line in enumerate(lines.data.removesuffix(b"\n").split(b"\n"), start=1):
        end = place + _LENGTH.size
        if end > len(indexes.data):
            raise _corrupt(indexes.name, "it is shorter than its documents")
        (length,) = _LENGTH.unpack_from(indexes.data, place)
        place = end + length
        try:
            # Only the canonical spelling is accepted, since only that reads back from a store unchanged.
            document = parse_canonical(line, indexes.data[end:place])
        except (ValueError, RecursionError) as error:
            raise _corrupt(lines.name, f"line {number} is not a document") from error
        yield document
    if place != len(indexes.data):
        raise _corrupt(indexes.name, "it does not end with its documents")


def _corrupt(name: str, why: str) -> BackupCorrupt:
    return BackupCorrupt(f"The part {name} cannot be read: {why}.", remedy="Use another snapshot.")


@dataclass(slots=True)
class ReplaceResult:
    """How many documents were written, and which were removed."""

    written: int = 0
    removed: list[tuple[str, str]] = field(default_factory=list)


class Carrier(Protocol):
    """Indexes memories for the store, and records what the written documents require."""

    @property
    def tag(self) -> bytes | None: ...

    def index(self, document: Document) -> IndexedRecord: ...

    def finish(self, session: Session) -> None: ...


def replace_state(
    store: Store, session: Session, space: str, carrier: Carrier, wanted: Iterable[Document], digest: str
) -> ReplaceResult:
    """Make the space hold exactly the wanted documents, and read it back to verify that."""
    done = ReplaceResult()
    seq = store.memories.next_seq(session, space)
    documents = store.documents
    waiting = []
    for old, new in paired(documents.scan(session, space), wanted):
        if new is None and old is not None:
            documents.remove(session, space, old.kind, old.key, seq)
            done.removed.append((old.kind, old.key))
        elif new is not None and (old is None or old.line != new.line):
            done.written += 1
            if not documents.put(session, space, new, seq, carrier.index):
                waiting.append(new)
    for new in waiting:
        # The document that had its key is gone by now.
        documents.put(session, space, new, seq, carrier.index)
    carrier.finish(session)
    if state_of(store, session, space).hexdigest() != digest:
        raise BackupCorrupt(
            "The restored documents do not read back as they were saved.",
            remedy="Nothing was changed; run `cortex doctor`, and restore into an empty home.",
        )
    return done


def state_of(store: Store, session: Session, space: str) -> StateDigest:
    """The digest of a space as it is."""
    return StateDigest.of(store.documents.scan(session, space))


def paired(old: Iterable[Document], new: Iterable[Document]) -> Iterator[tuple[Document | None, Document | None]]:
    """Two ordered sequences side by side; a document that only one of them has is paired with None."""
    olds, news = iter(old), iter(new)
    left, right = next(olds, None), next(news, None)
    while left is not None or right is not None:
        order = _order(left, right)
        if order < 0:
            yield left, None
            left = next(olds, None)
        elif order > 0:
            yield None, right
            right = next(news, None)
        else:
            yield left, right
            left, right = next(olds, None), next(news, None)


def _order(left: Document | None, right: Document | None) -> int:
    if left is None or right is None:
        return 1 if left is None else -1
    one, other = key_order(left), key_order(right)
    return (one > other) - (one < other)


@dataclass(frozen=True, slots=True)
class MoveResult:
    """How many spaces were written and how many were there already, and the documents of all of them by kind."""

    spaces: int
    there_already: int
    documents: dict[str, int]


def copy_projects(source: Store, target: Store) -> None:
    """Copy the projects of one store to another."""
    with source.database.read() as old, target.database.write() as new:
        target.projects.copy(new, source.projects.rows(old))


def move_store(
    source: Store, target: Store, carrier: Callable[[str], Carrier], progress: Callable[[int, int], None] | None = None
) -> MoveResult:
    """Copy everything from one store, read at one moment, into another.

    A space that holds something else in the target is refused. Scanned files are left out: a scan reads them again.
    """
    written = there_already = 0
    documents: Counter[str] = Counter()
    with source.database.read() as old:
        spaces = source.documents.spaces(old)
        for done, space in enumerate(spaces):
            if progress is not None:
                progress(done, len(spaces))
            wanted = state_of(source, old, space)
            documents += wanted.counts
            with target.database.write() as new:
                found = state_of(target, new, space)
                if found.hexdigest() == wanted.hexdigest():
                    there_already += 1
                    continue
                if found.counts.total():
                    raise Conflict(
                        f"The other store already holds something else under {space!r}.",
                        remedy="Move into an empty database; the spaces before this one are complete.",
                    )
                indexer = carrier(space)
                documents_to_copy = source.documents.scan(old, space, tag=indexer.tag)
                replace_state(target, new, space, indexer, documents_to_copy, wanted.hexdigest())
                written += 1
    if progress is not None:
        progress(len(spaces), len(spaces))
    return MoveResult(written, there_already, dict(documents))
