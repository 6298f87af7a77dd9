"""Capture: store what a caller gives as searchable records, all of a batch or none."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from concurrent.futures import Future, ThreadPoolExecutor
from contextlib import closing, nullcontext
from contextvars import copy_context
from dataclasses import replace
from datetime import datetime
from functools import cache, cached_property, partial
from hashlib import sha256
from itertools import islice
from typing import TYPE_CHECKING, Any, NamedTuple, Protocol, TypeVar

from ...clock import Clock, in_utc, to_micros
from ...config import Settings
from ...deadline import Limit, apply_limit, current_limit
from ...embedding.backends.backend import Backend
from ...errors import BranchNotFound, Conflict, InvalidInput
from ...ids import IdMaker
from ...pools import work_in_background
from ...records import LIVE_STATUSES, Memory, NewMemory
from ...security.callers import current_caller
from ...security.policy import Screen
from ...security.repeats import next_key
from ...store.database import Session, by_space, retry_once
from ...store.documents.document import Document
from ...store.documents.memories import index_tag, memory_of, read_index
from ...store.rows import IndexedRecord, encode_terms
from ...store.store import Store
from ..embedding_model import (
    check_model,
    model_problem,
    record_model,
    set_spaces_without_vectors,
    spaces_to_lock,
    spaces_without_vectors,
    token_counter,
)
from ..labels.ontology import canonical_category
from ..namespaces import canonical_namespace
from ..place import Place, canonical_domain
from ..recall.filters import is_duration, parse_moment
from .pending import PendingReading
from .prepare import (
    check_fields,
    check_text,
    clean_tags,
    embed_if_possible,
    index_entry,
    index_record,
    screen_record,
    with_personal_counts,
)
from .terms import terms

if TYPE_CHECKING:
    from ..labels.classifier import Labeller

__all__ = [
    "Annotator",
    "Capture",
    "DocumentIndexer",
    "Progress",
    "StoredRecord",
    "current_index_tag",
    "embed_ahead",
    "parse_ttl",
    "work_ahead",
]

_Given = TypeVar("_Given")
_Done = TypeVar("_Done")


class StoredRecord(NamedTuple):
    """A record that was just stored, with the annotator's note on it."""

    num: int
    space: str
    memory: Memory
    note: object


class Annotator(Protocol):
    def read(self, memory: Memory, stored: tuple[str, int] | None = None) -> object:
        """Read a record before the transaction; the note is passed to `write`.

        Of one that is stored already, the space and number are given; it is read without regard to later ones.
        """
        ...

    def people(self, note: object) -> Sequence[tuple[int, int]]:
        """The spans of people's names in the content, as far as they are certain."""
        ...

    def write(self, session: Session, stored: Sequence[StoredRecord]) -> None:
        """Store the notes inside the transaction that stores the records."""
        ...


# Called with (done, total). It may raise to stop the operation.
Progress = Callable[[int, int], None]

# Enough for the model to sort by length, few enough to report progress soon.
_BATCH = 256


class Capture:
    def __init__(
        self,
        store: Store,
        backend: Backend,
        settings: Settings,
        clock: Clock,
        ids: IdMaker,
        place: Place,
        annotator: Annotator | None = None,
        pending: PendingReading | None = None,
    ) -> None:
        """With `pending`, new notes are annotated after they are stored."""
        self._store = store
        self._backend = backend
        self._settings = settings
        self._clock = clock
        self._ids = ids
        self._place = place
        self.annotator = annotator
        self._pending = pending
        if pending:
            pending.use(self)

    @cached_property
    def labeller(self) -> Labeller:
        # Imported on first use: it imports NumPy.
        from ..labels.classifier import Labeller

        return Labeller(self._backend)

    def capture_many(self, items: Iterable[NewMemory], progress: Progress | None = None) -> list[Memory]:
        """Store records in order. All are checked before the first is written."""
        self._place.sync_git_state()
        git_branch = self._place.git_branch()
        linked = self._linked(git_branch)
        screen = Screen.by(self._settings)
        given = [
            replace(item, idempotency_key=screen.name(item.idempotency_key, "idempotency_key"))
            if item.idempotency_key
            else item
            for item in items
        ]
        batches = [slice(low, low + _BATCH) for low in range(0, len(given), _BATCH)]
        draft = partial(self.draft, git_branch=git_branch, linked=linked)
        stored: list[Memory] = []
        with self._pending.held_back() if self._pending and len(batches) > 1 else nullcontext():
            for batch, indexed in zip(batches, self._index_batches(given, batches, draft), strict=True):
                filed = self.labeller.label(indexed, given[batch])
                keys = [None if record.idempotency_key else next_key() for record in filed]
                keyed = all(record.idempotency_key or key for record, key in zip(filed, keys, strict=True))
                stored += retry_once(partial(self._write, filed, given[batch], keys), keyed=keyed)
                if progress:
                    progress(len(stored), len(given))
        return stored

    def rehearse(self, content: str) -> None:
        """Do all that a capture does, but write nothing."""
        item = NewMemory(content=content)
        memory = self.draft(item)
        indexed = embed_if_possible([self.index(memory, self._place.space(memory.domain))], self._backend)
        self.annotate(self.labeller.label(indexed, [item])[0])

    def _index_batches(
        self, given: Sequence[NewMemory], batches: Sequence[slice], draft: Callable[[NewMemory], Memory]
    ) -> Iterator[list[IndexedRecord]]:
        """The batches with their vectors, each embedded while the previous one is written.

        The first is embedded while the others are checked. Nothing is handed out before all are, so that none is
        written if one of them is refused.
        """
        if not batches:
            return
        first, rest = batches[0], slice(_BATCH, None)

        def indexed() -> Iterator[list[IndexedRecord]]:
            records = self._drafted(given[first], draft)
            yield self._indexed(given[first], records)
            records += self._drafted(given[rest], draft)
            for batch in batches[1:]:
                yield self._indexed(given[batch], records[batch])

        if len(batches) == 1:
            yield embed_if_possible(next(indexed()), self._backend)
        else:
            yield from embed_ahead(indexed(), self._backend)

    def _drafted(self, given: Sequence[NewMemory], draft: Callable[[NewMemory], Memory]) -> list[Memory]:
        """The records for what a caller gave, which may all be stored where they belong."""
        records = [draft(item) for item in given]
        for domain, kind in {(record.domain, record.kind) for record in records}:
            self._place.writable_space(domain, kind)
        self._check_branches(records)
        return records

    def _indexed(self, given: Sequence[NewMemory], records: Sequence[Memory]) -> list[IndexedRecord]:
        return [
            self.index(record, self._place.space(record.domain, record.kind), item.idempotency_key)
            for item, record in zip(given, records, strict=True)
        ]

    def index(self, memory: Memory, space: str, idempotency_key: str | None = None) -> IndexedRecord:
        """Index a record, without vectors."""
        return index_record(
            memory,
            space=space,
            idempotency_key=idempotency_key,
            count_tokens=token_counter(self._backend),
            window=self._backend.max_tokens,
            indexed=self._settings.max_indexed_characters,
        )

    def index_note(self, memory: Memory) -> str | None:
        """A note for the caller if only the beginning of a memory is indexed."""
        most, length = self._settings.max_indexed_characters, len(memory.content)
        if length <= most:
            return None
        return f"Indexed the first {most:,} of {length:,} characters; the text is stored whole."

    def _linked(self, git_branch: str | None) -> str | None:
        """The line of work that is linked to the git branch, if any."""
        if git_branch is None:
            return None
        with self._store.database.read() as session:
            branch = self._store.branches.linked_to(session, self._place.project.id, git_branch)
        return branch.id if branch else None

    def draft(
        self,
        item: NewMemory,
        git_branch: str | None = None,
        linked: str | None = None,
        screened: Callable[[Memory], Memory] | None = None,
    ) -> Memory:
        """The checked and screened record for what a caller gave; nothing is written."""
        domain = canonical_domain(item.domain)
        now = self._clock.now()
        in_project = domain == "project"
        bound = current_caller()
        memory = Memory(
            id=self._ids.new(),
            domain=domain,
            project_id=self._place.project.id if in_project else None,
            branch_id=item.branch_id or (linked if in_project else None),
            namespace=canonical_namespace(item.namespace or "context"),
            category=None if item.category is None else canonical_category(item.category),
            role=item.role,
            content=check_text(item.content, "content", self._settings.max_content_bytes),
            summary=item.summary,
            tags=clean_tags(item.tags),
            source=item.source,
            path=item.path,
            git_branch=item.git_branch or (git_branch if in_project else None),
            # An authenticated caller cannot write in the name of others.
            user_id=bound.user if bound else item.user_id or self._place.user_id,
            agent_id=bound.agent if bound else item.agent_id or self._place.agent_id,
            status=item.status,
            created_at=in_utc(item.created_at) if item.created_at else now,
            updated_at=now,
            accessed_at=None,
            expires_at=in_utc(item.expires_at) if item.expires_at else None,
            tombstoned_at=None,
            superseded_by=None,
            grounding=item.grounding,
            version=1,
            kind=item.kind,
            symbol=item.symbol,
            first_line=item.first_line,
            last_line=item.last_line,
        )
        if in_project and memory.git_branch and memory.kind == "note":
            memory = replace(memory, confinement=self._place.git.confinement(memory.git_branch))
        check_fields(memory)
        return (screened or self.screen)(memory)

    def screen(self, memory: Memory) -> Memory:
        """Apply the policies on secrets and personal data to a record."""
        annotator = self.annotator

        def people(content: str) -> Sequence[tuple[int, int]]:
            return annotator.people(annotator.read(replace(memory, content=content))) if annotator else ()

        return screen_record(memory, Screen.by(self._settings, people))

    def annotate(self, record: IndexedRecord) -> tuple[IndexedRecord, object]:
        """The record with its kinds of personal data, and the annotator's note on it."""
        note = self.annotator.read(record.memory) if self.annotator else None
        return replace(record, memory=self.count_personal_data(record.memory, note)), note

    def count_personal_data(self, memory: Memory, note: object) -> Memory:
        """The record with its kinds of personal data, unless the settings turn detection off."""
        if self._settings.personal_data == "keep":
            return replace(memory, personal=None)
        return with_personal_counts(memory, self.annotator.people(note) if self.annotator else ())

    def read_stored(self, space: str, num: int, memory: Memory) -> StoredRecord:
        """What the annotator reads in a note that is stored already, with the note's kinds of personal data."""
        note = self.annotator.read(memory, (space, num)) if self.annotator else None
        return StoredRecord(num, space, self.count_personal_data(memory, note), note)

    def unreadable(self, space: str, num: int, memory: Memory) -> StoredRecord:
        """A note in which the annotator reads nothing."""
        return StoredRecord(num, space, self.count_personal_data(memory, None), None)

    def write_stored(self, session: Session, one: StoredRecord) -> None:
        """Store what was read in a note."""
        if self.annotator:
            self.annotator.write(session, [one])
        if one.memory.personal is not None:
            self._store.memories.set_personal(session, [(one.space, one.num, one.memory)])

    def _check_branches(self, records: Sequence[Memory]) -> None:
        wanted = {record.branch_id for record in records} - {None}
        if not wanted:
            return
        with self._store.database.read() as session:
            known = {branch.id for branch in self._store.branches.all(session, self._place.project.id)}
        for branch_id in sorted(str(name) for name in wanted - known):
            raise BranchNotFound(
                f"There is no branch {branch_id!r} in this project.", remedy="Create it first.", field="branch_id"
            )

    def _write(
        self, records: Sequence[IndexedRecord], given: Sequence[NewMemory], keys: Sequence[str | None]
    ) -> list[Memory]:
        pending = self._pending if self.annotator else None
        both = [(one, _LATER) if pending and one.memory.kind == "note" else self.annotate(one) for one in records]
        batch = _Batch(both, given, keys)
        spaces = spaces_to_lock(self._store, self._backend, records)
        if len(spaces) == 1 and pending and batch.is_plain:
            # The rights of each to write there were checked; the transaction is that of any of them, or of the server.
            key = (spaces[0], current_caller() is None)
            done: list[Memory] = self._store.groups.run(key, batch, partial(self._write_batches, spaces, pending))
            return done
        return self._write_batches(spaces, pending, lambda: [batch])[0]

    def _write_batches(
        self, spaces: Sequence[str], pending: PendingReading | None, take: Callable[[], list[_Batch]]
    ) -> list[list[Memory]]:
        """Store batches in one transaction, which begins before they are taken; the records of each."""
        with self._store.database.write(*spaces) as session:
            batches = take()
            both = [one for batch in batches for one in batch.records]
            given = [item for batch in batches for item in batch.given]
            keys = [key for batch in batches for key in batch.keys]
            records = [record for record, _ in both]
            record_model(self._store, session, self._backend, records)
            seqs = self._store.memories.next_seqs(session, [record.space for record in records])
            repeated = self._repeated(session, records)
            answered = self._answered(session, records, keys)
            twins = self._twins(session, records)
            stored: list[Memory] = []
            fresh: list[tuple[IndexedRecord, NewMemory, object]] = []
            made: dict[str, dict[str, str]] = {}
            for (record, note), item, key in zip(both, given, keys, strict=True):
                known = answered.get(key) if key else repeated.get((record.space, record.idempotency_key or ""))
                if known is None:
                    changed = {} if note is not _LATER else _UNREAD
                    record = self._stamp(record, changed, is_new=item.created_at is None)
                    record = _mark_duplicate(record, twins)
                    known = record.memory
                    fresh.append((record, item, note))
                    if record.idempotency_key:
                        repeated[(record.space, record.idempotency_key)] = known
                    if key:
                        answered[key] = known
                        made.setdefault(record.space, {})[key] = known.id
                stored.append(known)
            for space, by_request in made.items():
                self._store.requests.keep(session, space, by_request, to_micros(self._clock.now()))
            nums = self._store.memories.insert_all(session, [record for record, _, _ in fresh], seqs)
            for record, item, _ in fresh:
                if item.supersedes:
                    self._supersede(session, record.space, item.supersedes, record.memory, seqs[record.space])
            written = [
                StoredRecord(num, record.space, record.memory, note)
                for num, (record, _, note) in zip(nums, fresh, strict=True)
            ]
            unread = by_space((one.space, one.num) for one in written if one.note is _LATER)
            if pending:
                for space, new in unread.items():
                    pending.mark(session, space, new)
            if self.annotator:
                self.annotator.write(session, [one for one in written if one.note is not _LATER])
        if pending and unread:
            pending.added(sum(map(len, unread.values())))
        results = iter(stored)
        return [list(islice(results, len(batch.given))) for batch in batches]

    def _answered(
        self, session: Session, records: Sequence[IndexedRecord], keys: Sequence[str | None]
    ) -> dict[str, Memory]:
        """Records that an earlier request with the same key already stored."""
        found: dict[str, Memory] = {}
        for record, key in zip(records, keys, strict=True):
            known = self._store.requests.result(session, record.space, key)
            memory = None if known is None else self._store.memories.get(session, record.space, known)
            if key is not None and memory is not None:
                found[key] = memory
        return found

    def _stamp(self, record: IndexedRecord, changes: Mapping[str, Any], *, is_new: bool) -> IndexedRecord:
        """Give a new record its id and date under the write lock, so that both follow the order of commits."""
        if is_new:
            now = self._clock.now()
            changes = {**changes, "id": self._ids.new(), "created_at": now, "updated_at": now}
        return replace(record, memory=replace(record.memory, **changes)) if changes else record

    def _supersede(self, session: Session, space: str, older: str, newer: Memory, seq: int) -> None:
        found = self._store.memories.get(session, space, older)
        if found is None or found.status not in LIVE_STATUSES:
            raise Conflict(
                f"The memory {older[:12]} cannot be superseded: it is not in the same domain, or no longer in use.",
                remedy="Name one that recall shows.",
                field="supersedes",
            )
        at = to_micros(newer.updated_at)
        self._store.consolidations.replace(session, space, [older], newer.id, at, seq)

    def _twins(self, session: Session, records: Sequence[IndexedRecord]) -> dict[tuple[str, bytes], str]:
        """Ids of stored records with the same text."""
        found = {}
        for space in {record.space for record in records}:
            digests = [record.digest for record in records if record.space == space]
            for digest, twin in self._store.memories.oldest_by_digest(session, space, digests).items():
                found[(space, digest)] = twin
        return found

    def _repeated(self, session: Session, records: Sequence[IndexedRecord]) -> dict[tuple[str, str], Memory]:
        """Records that an earlier attempt with the same key already stored."""
        found = {}
        for space in {record.space for record in records}:
            keys = [r.idempotency_key for r in records if r.space == space and r.idempotency_key]
            for key, memory in self._store.memories.by_key(session, space, keys).items():
                found[(space, key)] = memory
        return found


class _Batch(NamedTuple):
    """Records of one caller, each with the annotator's note on it, and what the caller gave."""

    records: Sequence[tuple[IndexedRecord, object]]
    given: Sequence[NewMemory]
    # Of the requests that gave them, where these may be repeated.
    keys: Sequence[str | None]

    @property
    def is_plain(self) -> bool:
        """Whether only the store can refuse it, so that it can share a transaction."""
        return all(note is _LATER for _, note in self.records) and not any(item.supersedes for item in self.given)


_LATER = object()  # the annotator's note on a record that it reads later
_UNREAD: Mapping[str, Any] = {"personal": None, "pending": ("graph",)}


def _mark_duplicate(record: IndexedRecord, twins: dict[tuple[str, bytes], str]) -> IndexedRecord:
    """The record, marked as a duplicate of the first one with the same text; `twins` is brought up to date."""
    twin = twins.setdefault((record.space, record.digest), record.memory.id)
    return record if twin == record.memory.id else replace(record, memory=replace(record.memory, duplicate_of=twin))


def embed_ahead(drafts: Iterable[list[IndexedRecord]], backend: Backend) -> Iterator[list[IndexedRecord]]:
    """Batches with their vectors; the model embeds one while the caller uses the last and makes the next."""
    return work_ahead(drafts, lambda batch: embed_if_possible(batch, backend))


def work_ahead(
    batches: Iterable[_Given], work: Callable[[_Given], _Done], *, in_background: bool = False
) -> Iterator[_Done]:
    """The results of some work on batches; a thread does one while the caller uses the last and makes the next.

    A result is handed out once the batch after it was made. With `in_background` calls have the cores first.
    """
    # Where the caller is interrupted, the model does not finish the batch first.
    limit = Limit.within(current_limit())

    def limited(batch: _Given) -> _Done:
        with apply_limit(limit):
            return work(batch)

    begin = work_in_background if in_background else None
    with ThreadPoolExecutor(1, "cortex-embed", initializer=begin) as pool, closing(limit):
        waiting: Future[_Done] | None = None
        for batch in batches:
            started = pool.submit(copy_context().run, limited, batch)
            if waiting:
                yield waiting.result()
            waiting = started
        if waiting:
            yield waiting.result()


def parse_ttl(ttl: str, now: datetime) -> datetime:
    """The time at which a time to live such as `30d` ends."""
    text = ttl.strip()
    past = parse_moment(text, now=now) if is_duration(text) else now
    if past >= now:
        raise InvalidInput(
            f"The time to live {ttl[:40]!r} is not a duration.",
            remedy="Write for example 12h, 30d or 3mo.",
            field="ttl",
        )
    return now + (now - past)


# -- memories that arrive as documents -----------------------------------------------------------

_VECTOR_NUMBER_BYTES = 4
# One word of every kind, so that another tokenisation gives another digest.
_PROBE = "parseHTTPResponse2 snake_case_name v1.2.3 naïve Straße 数据库迁移 データ deploying ran /usr/lib x86-64 don't"


def current_index_tag(backend: Backend) -> bytes:
    """The tag of indexes made by this model and this tokenisation."""
    return _tag(backend.fingerprint)


@cache
def _tag(model: str) -> bytes:
    return index_tag(model, sha256(encode_terms(terms(_PROBE))).hexdigest())


class DocumentIndexer:
    """Indexes documents of memories for one space."""

    def __init__(self, store: Store, capture: Capture, backend: Backend, space: str) -> None:
        self._store = store
        self._backend = backend
        self._missing = False
        self._capture = capture
        self._vector_bytes = backend.dimensions * _VECTOR_NUMBER_BYTES
        self._space = space

    @property
    def tag(self) -> bytes | None:
        """The tag of the index entries that this home makes; None without a usable model."""
        return None if model_problem(self._backend) else current_index_tag(self._backend)

    def index(self, document: Document) -> IndexedRecord:
        """Index a document. If its vectors are of another model it stays without; `finish` schedules them."""
        memory = memory_of(document)
        key = document.data["idempotency_key"]
        tag = self.tag
        index = tag and read_index(document.vectors, tag, content=memory.content, vector_bytes=self._vector_bytes)
        if not index:
            self._missing = True
            return self._capture.index(memory, self._space, key)
        return IndexedRecord(
            memory=memory,
            space=self._space,
            digest=index.digest,
            idempotency_key=key,
            words=index_entry(self._space, [one.terms for one in index.chunks]),
            length=index.length,
            flags=index.flags,
            author=index.author,
            chunks=index.chunks,
        )

    def finish(self, session: Session) -> None:
        """Record the model of the stored vectors, and whether some are missing, in the transaction that stored them."""
        if not model_problem(self._backend):
            check_model(self._store, session, self._backend, claim=True)
        if self._missing:
            waiting = spaces_without_vectors(self._store, session)
            set_spaces_without_vectors(self._store, session, [*waiting, self._space])
