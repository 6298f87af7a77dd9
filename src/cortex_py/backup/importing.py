"""Import: what files hold is added to what is there. All of it is checked first, and then written at once.

What is there already stays as it is unless it may be replaced; where it differs, that is told as a conflict.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, Protocol

from ..clock import Clock, to_micros
from ..config import Settings
from ..records import Domain, Memory, NewMemory
from ..store.database import Session
from ..store.document import KINDS, SHARED_KINDS, Document
from ..store.document_memories import ABOUT_KINDS
from ..store.store import Store
from .held import Held
from .import_gathering import Gathered
from .import_merging import joined, same
from .import_spool import Entry, Spool

__all__ = ["ImportConflict", "Imported", "Importer", "Memories"]

_BATCH = 400
_UNREAD: Mapping[str, Any] = {"read": 0, "mentions": []}


class Memories(Protocol):
    """What remembers plain memories, and reads for the graph what was not read yet."""

    def capture_many(self, items: Iterable[NewMemory]) -> list[Memory]: ...

    def annotate(self) -> int: ...


@dataclass(frozen=True, slots=True)
class ImportConflict:
    """Something that was not taken, since what is here differs. `place` is where it stands."""

    kind: str
    key: str
    place: str
    reason: str


@dataclass(frozen=True, slots=True)
class Imported:
    """What became of the documents of files, counted by kind.

    `kept` counts statistics of this home that differ from those that came. `left_out` tells what could not be taken,
    `notes` what else the caller should know.
    """

    added: Mapping[str, int]
    replaced: Mapping[str, int]
    unchanged: int
    kept: int
    conflicts: tuple[ImportConflict, ...]
    left_out: tuple[str, ...]
    redacted: int
    notes: tuple[str, ...]
    dry_run: bool


@dataclass(slots=True)
class _Outcome:
    added: Counter[str] = field(default_factory=Counter)
    replaced: Counter[str] = field(default_factory=Counter)
    unchanged: int = 0
    kept: int = 0
    conflicts: list[ImportConflict] = field(default_factory=list)
    left_out: list[str] = field(default_factory=list)
    changed: set[Domain] = field(default_factory=set)
    unread: bool = False


class Importer:
    """`hold` gives the space that documents of a domain go to."""

    def __init__(
        self, store: Store, clock: Clock, settings: Settings, hold: Callable[[Domain], Held], memories: Memories
    ) -> None:
        self._store = store
        self._clock = clock
        self._settings = settings
        self._hold = hold
        self._memories = memories

    def run(
        self, paths: Sequence[Path], *, domain: Domain | None = None, replace: bool = False, dry_run: bool = False
    ) -> Imported:
        with Spool(self._settings.home) as spool:
            gathered = Gathered(self._settings, self._clock, self._hold, spool, domain)
            for path in paths:
                gathered.read(path)
            outcome = _Outcome()
            if dry_run:
                with self._store.database.read() as session:
                    for one in spool.domains():
                        _Space(self, session, one, spool, outcome, replace).look()
                    self._look_at_plain(session, gathered.plain, outcome)
            else:
                self._write(spool, gathered.plain, outcome, replace)
        return Imported(
            added=dict(outcome.added),
            replaced=dict(outcome.replaced),
            unchanged=outcome.unchanged,
            kept=outcome.kept,
            conflicts=tuple(outcome.conflicts),
            left_out=(*gathered.left_out, *outcome.left_out),
            redacted=gathered.redacted,
            notes=tuple(gathered.notes),
            dry_run=dry_run,
        )

    def _write(self, spool: Spool, plain: Sequence[NewMemory], outcome: _Outcome, replace: bool) -> None:
        domains = spool.domains()
        held = {domain: self._hold(domain) for domain in domains}
        if domains:
            with self._store.database.write() as session:
                for domain in domains:
                    space = _Space(self, session, domain, spool, outcome, replace)
                    space.write(held[domain])
                self._look_at_plain(session, plain, outcome)
        else:
            with self._store.database.read() as session:
                self._look_at_plain(session, plain, outcome)
        for domain in domains:
            if domain in outcome.changed:
                held[domain].changed()
        if plain:
            self._memories.capture_many(plain)
        if outcome.unread:
            self._memories.annotate()

    def _look_at_plain(self, session: Session, plain: Sequence[NewMemory], outcome: _Outcome) -> None:
        """How many plain memories are new; capturing one that is known by its key gives the known one."""
        by_domain: dict[Domain, set[str]] = {}
        for item in plain:
            by_domain.setdefault(item.domain, set()).add(item.idempotency_key or "")
        for domain, keys in by_domain.items():
            known = self._store.memories.by_key(session, self._hold(domain).space, sorted(keys))
            outcome.unchanged += len(known)
            if len(keys) > len(known):
                outcome.added["memory"] += len(keys) - len(known)


class _Space:
    """The documents of one domain against those that are there, in one transaction."""

    def __init__(
        self, importer: Importer, session: Session, domain: Domain, spool: Spool, outcome: _Outcome, replace: bool
    ) -> None:
        self._store = importer._store
        self._now = to_micros(importer._clock.now())
        self._session = session
        self._domain = domain
        self._space = importer._hold(domain).space
        self._spool = spool
        self._outcome = outcome
        self._replace = replace
        self._here = {memory_id for memory_id, _ in self._store.memories.states(session, self._space)}
        # Memories of the import that are not taken, and those whose text becomes another.
        self._refused: set[str] = set()
        self._reworded: set[str] = set()

    def look(self) -> None:
        """Count what would be written."""
        for kind in KINDS:
            self._decide(kind, lambda _document: None)
        self._forget_readings(lambda _document: None)

    def write(self, held: Held) -> None:
        documents, session = self._store.documents, self._session
        seq = self._store.memories.next_seq(session)

        def put(document: Document) -> None:
            documents.put(session, self._space, document, seq, held.prepared)

        for kind in KINDS:
            self._decide(kind, put)
        self._forget_readings(put)
        if self._domain in self._outcome.changed:
            documents.mend(session, self._space)
            held.written(session)

    def _decide(self, kind: str, put: Callable[[Document], None]) -> None:
        for batch in self._spool.batches(self._domain, kind, _BATCH):
            there = {
                one.key: one
                for one in self._store.documents.some(
                    self._session, self._space, kind, [entry.key for entry, _ in batch]
                )
            }
            for entry, document in batch:
                chosen = self._chosen(entry, document, there.get(entry.key))
                if chosen is not None:
                    put(chosen)
                    self._outcome.changed.add(self._domain)

    def _chosen(self, entry: Entry, document: Document, there: Document | None) -> Document | None:
        """What is to be written, if anything."""
        if not self._belongs(entry, document):
            return None
        if there is None:
            return self._new(entry, document)
        if same(document, there, partial=entry.partial):
            self._outcome.unchanged += 1
            return None
        if not self._replace:
            if document.kind in SHARED_KINDS:
                self._conflict(entry, document.kind, "It differs from what is here.")
            else:
                # Two homes count apart; neither number is wrong.
                self._outcome.kept += 1
            return None
        self._outcome.replaced[document.kind] += 1
        if document.kind == "memory" and document.data["content"] != there.data["content"]:
            self._reworded.add(entry.key)
        return joined(document, there, self._now) if entry.partial else document

    def _new(self, entry: Entry, document: Document) -> Document | None:
        if document.kind == "memory":
            found = self._store.memories.find(self._session, entry.key, limit=1)
            if found:
                self._conflict(entry, "memory", "A memory of another project or domain has this id.")
                return None
            self._here.add(entry.key)
            if entry.partial:
                self._reworded.add(entry.key)
        self._outcome.added[document.kind] += 1
        return document

    def _belongs(self, entry: Entry, document: Document) -> bool:
        """Whether the memory that a document is about is here; where another one was kept, so is what is about it."""
        about = entry.key if document.kind in ABOUT_KINDS else None
        if document.kind == "relationship":
            about = document.data["memory"]
        if about is None:
            return True
        if about in self._refused:
            return document.kind == "relationship" and about in self._here
        if about not in self._here:
            self._outcome.left_out.append(f"{document.kind} {entry.key[:80]}: its memory is not here")
            return False
        if document.kind == "mention":
            return self._is_read_from(document)
        return True

    def _is_read_from(self, document: Document) -> bool:
        """Whether mentions were read from the text of their memory as it will be, and not from one edited since."""
        memory = self._spool.one(self._domain, "memory", document.key)
        past = max((one["past"] for one in document.data["mentions"]), default=0)
        outside = memory is not None and past > len(memory.data["content"])
        if document.key in self._reworded or outside:
            there = self._store.documents.some(self._session, self._space, "mention", [document.key])
            if outside or (there and there[0].line == document.line):
                self._reworded.add(document.key)
                return False
            self._reworded.discard(document.key)
        return True

    def _forget_readings(self, put: Callable[[Document], None]) -> None:
        """What was read from another wording is no longer true: the graph reads those memories anew."""
        for key in sorted(self._reworded):
            put(Document("mention", key, _UNREAD))
            self._outcome.unread = True

    def _conflict(self, entry: Entry, kind: str, reason: str) -> None:
        self._outcome.conflicts.append(ImportConflict(kind, entry.key, entry.place, reason))
        if kind == "memory":
            self._refused.add(entry.key)
