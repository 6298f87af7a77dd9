"""Import: what files hold is added to what is there. All of it is checked first, and then written at once.

What is there already stays as it is unless it may be replaced; where it differs, that is told as a conflict.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterable, Mapping, Sequence, Set
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

    `kept` counts what this home itself counted, read from a memory or found out about it, where that differs from
    what came. `left_out` tells what could not be taken, `notes` what else the caller should know.
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


@dataclass(frozen=True, slots=True)
class _Terms:
    """Whether what differs is replaced, which memories have another text than came, and the moment."""

    replace: bool
    reworded: Set[str]
    now: int


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
            terms = _Terms(replace, gathered.reworded, to_micros(self._clock.now()))
            if dry_run:
                with self._store.database.read() as session:
                    for one in spool.domains():
                        _Space(self._store, session, self._hold(one), one, spool, outcome, terms).look()
                    self._look_at_plain(session, gathered.plain, outcome)
            else:
                self._write(spool, gathered.plain, outcome, terms)
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

    def _write(self, spool: Spool, plain: Sequence[NewMemory], outcome: _Outcome, terms: _Terms) -> None:
        domains = spool.domains()
        held = {domain: self._hold(domain) for domain in domains}
        if domains:
            with self._store.database.write() as session:
                for domain in domains:
                    _Space(self._store, session, held[domain], domain, spool, outcome, terms).write()
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
        self, store: Store, session: Session, held: Held, domain: Domain, spool: Spool, outcome: _Outcome, terms: _Terms
    ) -> None:
        self._store = store
        self._session = session
        self._held = held
        self._domain: Domain = domain
        self._spool = spool
        self._outcome = outcome
        self._terms = terms
        self._here = {memory_id for memory_id, _ in store.memories.states(session, held.space)}
        self._entities: dict[str, bool] = {}
        # Memories of the import: not taken, taken, and taken with a text from which nothing was read yet.
        self._refused: set[str] = set()
        self._taken: set[str] = set()
        self._unread: set[str] = set()
        self._verified: set[str] = set()

    def look(self) -> None:
        """Count what would be written."""
        for kind in KINDS:
            self._decide(kind, lambda _document: None)

    def write(self) -> None:
        documents, session, space = self._store.documents, self._session, self._held.space
        seq = self._store.memories.next_seq(session)

        def put(document: Document) -> None:
            documents.put(session, space, document, seq, self._held.prepared)

        for kind in KINDS:
            self._decide(kind, put)
        for key in sorted(self._unread):
            # What was read from another wording, and found out about it, is no longer true.
            put(Document("mention", key, _UNREAD))
            if key not in self._verified:
                documents.remove(session, space, "verification", key, seq)
        self._outcome.unread = self._outcome.unread or bool(self._unread)
        if self._domain in self._outcome.changed:
            documents.mend(session, space)
            self._held.written(session)

    def _decide(self, kind: str, put: Callable[[Document], None]) -> None:
        for batch in self._spool.batches(self._domain, kind, _BATCH):
            there = {one.key: one for one in self._some(kind, [entry.key for entry, _ in batch])}
            for entry, document in batch:
                chosen = self._chosen(entry, document, there.get(entry.key))
                if chosen is not None:
                    put(chosen)
                    self._outcome.changed.add(self._domain)

    def _some(self, kind: str, keys: Sequence[str]) -> list[Document]:
        return self._store.documents.some(self._session, self._held.space, kind, keys)

    def _chosen(self, entry: Entry, document: Document, there: Document | None) -> Document | None:
        """What is to be written, if anything."""
        if not self._belongs(entry, document):
            return None
        if document.kind in ("mention", "verification"):
            return self._about(document, there)
        if there is None:
            return self._new(entry, document)
        if same(document, there, partial=entry.partial):
            self._outcome.unchanged += 1
            return None
        if not self._terms.replace:
            if document.kind in SHARED_KINDS:
                self._conflict(entry, document.kind, "It differs from what is here.")
            else:
                # Two homes count apart; neither number is wrong.
                self._outcome.kept += 1
            return None
        self._outcome.replaced[document.kind] += 1
        if document.kind == "memory":
            self._taken.add(entry.key)
            if document.data["content"] != there.data["content"]:
                self._unread.add(entry.key)
        return joined(document, there, self._terms.now) if entry.partial else document

    def _new(self, entry: Entry, document: Document) -> Document | None:
        if document.kind == "memory":
            if self._store.memories.find(self._session, entry.key, limit=1):
                self._conflict(entry, "memory", "A memory of another project or domain has this id.")
                return None
            self._here.add(entry.key)
            self._taken.add(entry.key)
            if entry.partial:
                self._unread.add(entry.key)
        self._outcome.added[document.kind] += 1
        return document

    def _about(self, document: Document, there: Document | None) -> Document | None:
        """What was read from a memory or found out about it comes with the memory, or not at all.

        An edit of the text in the file leaves it behind: it is then what is here already, or stands outside the text.
        """
        key, equal = document.key, there is not None and there.line == document.line
        if key not in self._taken:
            self._outcome.unchanged += equal
            self._outcome.kept += not equal
            return None
        if document.kind == "mention":
            if self._stands_elsewhere(document) or (equal and key in self._unread):
                self._unread.add(key)
                return None
            self._unread.discard(key)
        elif equal and key in self._unread:
            return None
        else:
            self._verified.add(key)
        counts = self._outcome.added if there is None else self._outcome.replaced
        if equal:
            self._outcome.unchanged += 1
            return None
        counts[document.kind] += 1
        return document

    def _stands_elsewhere(self, document: Document) -> bool:
        memory = self._spool.one(self._domain, "memory", document.key)
        past = max((one["past"] for one in document.data["mentions"]), default=0)
        return document.key in self._terms.reworded or (memory is not None and past > len(memory.data["content"]))

    def _is_entity(self, entity_id: str) -> bool:
        if entity_id not in self._entities:
            coming = self._spool.has(self._domain, "entity", entity_id)
            self._entities[entity_id] = coming or bool(self._some("entity", [entity_id]))
        return self._entities[entity_id]

    def _belongs(self, entry: Entry, document: Document) -> bool:
        """Whether all that a document points at is here; where another memory was kept, so is what is about it."""
        about, missing = (entry.key if document.kind in ABOUT_KINDS else None), "memory is"
        if document.kind == "relationship":
            about = document.data["memory"]
            if not all(self._is_entity(document.data[end]) for end in ("source_id", "target_id")):
                about, missing = "", "entities are"
        if about is None or (about in self._here and (about not in self._refused or document.kind == "relationship")):
            return True
        if about not in self._refused:
            self._outcome.left_out.append(f"{document.kind} {entry.key[:80]}: its {missing} not here")
        return False

    def _conflict(self, entry: Entry, kind: str, reason: str) -> None:
        self._outcome.conflicts.append(ImportConflict(kind, entry.key, entry.place, reason))
        if kind == "memory":
            self._refused.add(entry.key)
