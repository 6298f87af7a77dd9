"""Capture: store what a caller gives as searchable records, all of a batch or none."""

from __future__ import annotations

import re
import unicodedata
from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from concurrent.futures import Future, ThreadPoolExecutor
from contextlib import closing, nullcontext
from contextvars import copy_context
from dataclasses import replace
from datetime import datetime
from functools import cache, cached_property, partial
from hashlib import blake2b, sha256
from itertools import islice
from typing import TYPE_CHECKING, Any, NamedTuple, Protocol, TypeVar

from ...clock import Clock, IdMaker, Limit, apply_limit, current_limit, in_utc, to_micros
from ...config import Settings
from ...embedding.backends.backend import Backend
from ...errors import BranchNotFound, Conflict, ContentBlocked, ContentTooLarge, InvalidInput
from ...events import Events, MemoriesChanged
from ...jobs import Jobs, work_in_background
from ...records import LIVE_STATUSES, STATUSES, Memory, NewMemory
from ...security.callers import current_caller
from ...security.policy import COLUMN_ORIGINS, Screen
from ...security.repeats import next_key
from ...security.secrets.secrets import redact
from ...store.database import Session, by_space, retry_once
from ...store.documents.document import Document
from ...store.documents.memories import index_tag, memory_of, read_index
from ...store.rows import IndexedChunk, IndexedRecord, encode_terms, index_word, index_words, space_word, term_hash
from ...store.store import Store
from ..labels.ontology import canonical_category
from ..recall.filters import is_duration, parse_moment
from ..spaces import (
    CANNOT_EMBED,
    Place,
    canonical_domain,
    canonical_namespace,
    check_model,
    model_problem,
    record_model,
    set_spaces_without_vectors,
    spaces_to_lock,
    spaces_without_vectors,
    token_counter,
)
from ..text import Chunk, chunk, query_terms, split_turns, terms

if TYPE_CHECKING:
    from ...security.personal import NameFinder
    from ..labels.classifier import Labeller

__all__ = [
    "Annotator", "Capture", "DocumentIndexer", "Progress", "StoredRecord", "check_fields", "check_no_secret",
    "check_text", "clean_tags", "count_personal_data", "current_index_tag", "embed_ahead", "embed_if_possible",
    "embed_records", "embed_texts", "embedded_text", "entity_words", "heading_of", "index_entry", "index_record",
    "parse_ttl", "path_in", "screen_record", "with_personal_counts", "work_ahead",
]  # fmt: skip


_TAGS_MOST = 64
_TAG_LENGTH = 128
_FIELD_LENGTH = 2_000
_SUMMARY_LENGTH = 100_000
_OUTSIDE = tuple(
    name
    for name, sort in COLUMN_ORIGINS["memory"].items()
    if sort in ("prose", "name") and name not in ("tags", "idempotency_key")
)
# What a model adds to each text. Of a text in ASCII, no other token is shorter than a character.
_FRAME_TOKENS = 2
_NOT_TEXT = re.compile("[\ud800-\udfff]")
_SPACES = re.compile(r"\s+")
_LOCATION = re.compile(r":\d+(?:[-:]\d+)?\Z")
_PATH_LIKE = re.compile(r"[^\s:]*[\w)\]](?:/[^\s:]+|\.[A-Za-z][\w+]{0,9})\Z")


def check_text(text: str, field: str, most_bytes: int) -> str:
    """Refuse a text that is empty, not valid Unicode or too large."""
    if not text or not text.strip():
        raise InvalidInput(f"The {field} is empty.", remedy="Give some text.", field=field)
    if _NOT_TEXT.search(text):
        raise InvalidInput(f"The {field} is not valid Unicode text.", remedy="Remove the lone surrogates.", field=field)
    if len(text) > most_bytes or len(text.encode()) > most_bytes:
        raise ContentTooLarge(
            f"The {field} is larger than {most_bytes:,} bytes.",
            remedy="Split it, or raise max_content_bytes.",
            field=field,
        )
    return text


def check_no_secret(text: str, field: str) -> str:
    """Refuse a name that contains a secret: a redacted name would mean something else."""
    kinds = tuple(dict.fromkeys(finding.kind for finding in redact(text).findings))
    if kinds:
        raise ContentBlocked(
            f"The {field} contains what looks like a secret ({', '.join(kinds)}).",
            kinds=kinds,
            remedy="Remove it and repeat; nothing was stored.",
            field=field,
        )
    return text


def clean_tags(tags: Sequence[str]) -> tuple[str, ...]:
    """Trim tags, and drop empty ones and repetitions that differ only in case."""
    if isinstance(tags, str):
        raise InvalidInput("The tags are one text.", remedy="Give a list of texts.", field="tags")
    kept: dict[str, str] = {}
    for tag in tags:
        if not isinstance(tag, str):
            raise InvalidInput(f"The tag {tag!r} is not a text.", field="tags")
        clean = _SPACES.sub(" ", tag).strip()
        if len(clean) > _TAG_LENGTH:
            raise InvalidInput(f"A tag is longer than {_TAG_LENGTH} characters.", field="tags")
        if clean:
            check_text(clean, "tag", _FIELD_LENGTH)
            kept.setdefault(clean.casefold(), clean)
    if len(kept) > _TAGS_MOST:
        raise InvalidInput(f"There are more than {_TAGS_MOST} tags.", remedy="Keep the most useful ones.", field="tags")
    return tuple(kept.values())


def check_fields(memory: Memory) -> None:
    """Refuse an unknown status, and fields that are empty, too long or not valid text."""
    if memory.status not in STATUSES:
        raise InvalidInput(
            f"Unknown status {memory.status!r}.", remedy=f"Choose one of {', '.join(STATUSES)}.", field="status"
        )
    for field in ("source", "path", "summary", "category", "role", "user_id", "agent_id", "git_branch"):
        text = getattr(memory, field)
        if text is not None:
            check_text(text, field, _SUMMARY_LENGTH if field == "summary" else _FIELD_LENGTH)


def screen_record(memory: Memory, screen: Screen) -> Memory:
    """The record as it may be stored: every text that comes from outside passes the screen."""
    kept, kinds = screen.fields("memory", {name: getattr(memory, name) for name in _OUTSIDE})
    tags, in_tags = screen.each("tags", memory.tags)
    found = tuple(dict.fromkeys((*kinds, *in_tags)))
    # Copied even where nothing was removed: the store screens again what is not marked as screened.
    changes: dict[str, Any] = {**kept, "tags": tags, "redactions": found or memory.redactions}
    return replace(memory, **changes)


def with_personal_counts(memory: Memory, people: Sequence[tuple[int, int]] = ()) -> Memory:
    """The record with its kinds of personal data; `people` are the spans of names in its content."""
    found = count_personal_data(memory.content, lambda _text: people)
    # The source of a part of a file is its path with the lines: the parts of a file share what that holds.
    source = None if memory.kind == "file" else memory.source
    for text in (memory.summary, source):
        if text:
            found += count_personal_data(text)
    for text in (*memory.tags, *([str(memory.path)] if memory.kind == "file" and memory.path else [])):
        found += count_personal_data(text)
    return replace(memory, personal=tuple(sorted(found.items())))


def count_personal_data(text: str, people: NameFinder | None = None) -> Counter[str]:
    """How often each kind of personal data occurs in a text."""
    # Imported on first use, because it takes a while to load.
    from ...security.personal import find_personal_data

    return Counter(finding.kind for finding in find_personal_data(text, people))


def index_record(
    memory: Memory,
    *,
    space: str,
    idempotency_key: str | None,
    count_tokens: Callable[[str], int],
    window: int,
    indexed: int,
) -> IndexedRecord:
    """Compute all that search needs except vectors: chunks, terms, traits and words for the text index.

    Only the first `indexed` characters are indexed; the record keeps its whole content.
    """
    # Imported on first use: only what is stored has traits.
    from ..text import record_traits

    if memory.path is None and memory.source:
        memory = replace(memory, path=path_in(memory.source))
    beginning = memory.content[:indexed]
    spans, voices = passages(beginning, count_tokens, window)
    heading = heading_of(memory)
    lists = [terms(memory.content[span.start : span.end]) for span in spans]
    if heading:
        lists[0] = [*terms(heading), *lists[0]]
    chunk_terms = tuple(encode_terms(words) for words in lists)
    traits = record_traits(beginning)
    return IndexedRecord(
        memory=memory,
        space=space,
        digest=digest(memory.content),
        idempotency_key=idempotency_key,
        words=index_entry(space, chunk_terms),
        length=sum(map(len, lists)),
        flags=int(traits.flags),
        author=term_hash(traits.author) if traits.author else 0,
        chunks=tuple(
            IndexedChunk(span.start, span.end, voice, blob, None)
            for span, voice, blob in zip(spans, voices, chunk_terms, strict=True)
        ),
        heading=heading,
    )


def passages(
    content: str, count_tokens: Callable[[str], int], window: int
) -> tuple[tuple[Chunk, ...], tuple[bool, ...]]:
    """The chunks of a content, and which are an assistant's words. A dialogue of several chunks is split by turns."""
    if content.isascii() and len(content) <= window - _FRAME_TOKENS:
        return (Chunk(0, len(content)),), (False,)
    whole = chunk(content, count_tokens=count_tokens, window=window)
    spoken = split_turns(content) if len(whole) > 1 else []
    if len(spoken) < 2:
        return tuple(whole), (False,) * len(whole)
    spans, voices = [], []
    for turn in spoken:
        for span in chunk(content[turn.start : turn.end], count_tokens=count_tokens, window=window):
            spans.append(Chunk(turn.start + span.start, turn.start + span.end))
            voices.append(turn.by_assistant)
    return tuple(spans), tuple(voices)


def path_in(source: str | None) -> str | None:
    """The file that a source names, without its line number; None if it names something else."""
    if not source or "://" in source:
        return None
    path = _LOCATION.sub("", source.strip())
    return path if _PATH_LIKE.match(path) else None


def embed_records(records: Sequence[IndexedRecord], backend: Backend) -> list[IndexedRecord]:
    """Give every chunk its vector, in one call to the model. Equal texts are embedded once."""
    texts = [embedded_text(one.memory.content, one.heading, c.first, c.past) for one in records for c in one.chunks]
    made = iter(embed_texts(texts, backend))
    return [replace(one, chunks=tuple([replace(c, vector=next(made)) for c in one.chunks])) for one in records]


def embed_texts(texts: Sequence[str], backend: Backend) -> list[bytes]:
    """The vectors of texts, as they are stored; equal texts are embedded once."""
    rows = {text: row for row, text in enumerate(dict.fromkeys(texts))}
    vectors = backend.embed(list(rows))
    return [vectors[rows[text]].tobytes() for text in texts]


def embed_if_possible(records: Sequence[IndexedRecord], backend: Backend) -> list[IndexedRecord]:
    """Give every chunk its vector; while none can be computed the records stay without."""
    try:
        return embed_records(records, backend)
    except CANNOT_EMBED:
        return list(records)


def heading_of(memory: Memory) -> str:
    """What is embedded and indexed before the first chunk of a record: the place of a part of a file."""
    return " ".join(filter(None, (memory.path, memory.symbol))) if memory.kind == "file" else ""


def embedded_text(content: str, heading: str, first: int, past: int) -> str:
    """What the model is given for a chunk."""
    text = content[first:past]
    return f"{heading}\n{text}" if heading and first == 0 else text


def index_entry(space: str, chunk_terms: Sequence[bytes]) -> str:
    """The entry of the text index: the word of the space, and the word of each term once."""
    words = dict.fromkeys(word for blob in chunk_terms for word in index_words(blob).split())
    return " ".join((space_word(space), *words))


def entity_words(name: str) -> list[str]:
    """The index words of a name: a record that mentions the name contains all of them."""
    return [index_word(term_hash(term)) for term in dict.fromkeys(query_terms(name))]


def digest(content: str) -> bytes:
    """A digest that is equal for texts that differ only in case, spacing or Unicode form."""
    normal = _SPACES.sub(" ", unicodedata.normalize("NFKC", content)).strip().casefold()
    return blake2b(normal.encode(), digest_size=16).digest()


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
BATCH = 256


class Capture:
    def __init__(
        self,
        store: Store,
        backend: Backend,
        settings: Settings,
        clock: Clock,
        ids: IdMaker,
        place: Place,
        events: Events,
        annotator: Annotator | None,
        jobs: Jobs,
    ) -> None:
        """The annotator reads new notes after they are stored, when `jobs` lets it."""
        self._store = store
        self._backend = backend
        self._settings = settings
        self._clock = clock
        self._ids = ids
        self._place = place
        self.annotator = annotator
        self._events = events
        self._jobs = jobs

    @cached_property
    def labeller(self) -> Labeller:
        # Imported on first use: it imports NumPy.
        from ..labels.classifier import Labeller

        return Labeller(self._backend)

    def capture_many(self, items: Iterable[NewMemory], progress: Progress | None = None) -> list[Memory]:
        """Check, screen, index, write and publish records, in their order; none is written before all are checked."""
        self._place.sync_git_state()
        git_branch = self._place.git_branch()
        linked = self._linked(git_branch)
        given = [self._with_screened_key(item) for item in items]

        checked = [self.check(item, git_branch, linked) for item in given]
        self._check_places(checked)
        clean = [self.screen(memory) for memory in checked]
        stored: list[Memory] = []
        with self._jobs.held_back() if len(given) > BATCH else nullcontext():
            for batch, indexed in self._index_batches(given, clean):
                written = self._write(indexed, batch)
                self._jobs.added(sum(bool(one.pending) for one in written))
                stored += written
                if progress:
                    progress(len(stored), len(given))
        self.publish(stored)
        return stored

    def publish(self, changed: Iterable[Memory]) -> None:
        """Tell those who depend on the branches of changed records."""
        if branches := frozenset(one.branch_id for one in changed if one.branch_id):
            self._events.publish(MemoriesChanged(branches))

    def rehearse(self, content: str) -> None:
        """Do all that a capture does, but write nothing."""
        item = NewMemory(content=content)
        ((_, indexed),) = self._index_batches([item], [self.screen(self.check(item))])
        self.annotate(indexed[0])

    def _with_screened_key(self, item: NewMemory) -> NewMemory:
        if not item.idempotency_key:
            return item
        screened = Screen.by(self._settings).name(item.idempotency_key, "idempotency_key")
        return replace(item, idempotency_key=screened)

    def _check_places(self, records: Sequence[Memory]) -> None:
        """Refuse records that may not be stored where they belong."""
        for domain, kind in {(record.domain, record.kind) for record in records}:
            self._place.writable_space(domain, kind)
        self._check_branches(records)

    def _index_batches(
        self, given: Sequence[NewMemory], clean: Sequence[Memory]
    ) -> Iterator[tuple[Sequence[NewMemory], list[IndexedRecord]]]:
        """Batches with their vectors and labels, each embedded while the one before is written."""
        batches = [slice(first, first + BATCH) for first in range(0, len(given), BATCH)]
        drafts = (
            [
                self.index(memory, self._place.space(memory.domain, memory.kind), item.idempotency_key)
                for item, memory in zip(given[batch], clean[batch], strict=True)
            ]
            for batch in batches
        )
        ahead = len(batches) > 1
        embedded = (
            embed_ahead(drafts, self._backend) if ahead else (embed_if_possible(one, self._backend) for one in drafts)
        )
        for batch, records in zip(batches, embedded, strict=True):
            yield given[batch], self.labeller.label(records, given[batch])

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

    def check(self, item: NewMemory, git_branch: str | None = None, linked: str | None = None) -> Memory:
        """The checked record for what a caller gave; it is not screened yet."""
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
        return memory

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

    def _write(self, records: Sequence[IndexedRecord], given: Sequence[NewMemory]) -> list[Memory]:
        """Store records in one transaction, perhaps together with those of other callers."""
        keys = [None if record.idempotency_key else next_key() for record in records]
        keyed = all(record.idempotency_key or key for record, key in zip(records, keys, strict=True))
        spaces = spaces_to_lock(self._store, self._backend, records)

        def write() -> list[Memory]:
            later = self.annotator is not None
            both = [(one, _LATER) if later and one.memory.kind == "note" else self.annotate(one) for one in records]
            batch = _Batch(both, given, keys)
            if len(spaces) != 1 or not batch.is_plain:
                return self._write_batches(spaces, lambda: [batch])[0]
            # The rights of each to write there were checked; the transaction is that of any of them, or of the server.
            key = (spaces[0], current_caller() is None)
            done: list[Memory] = self._store.groups.run(key, batch, partial(self._write_batches, spaces))
            return done

        return retry_once(write, keyed=keyed)

    def _write_batches(self, spaces: Sequence[str], take: Callable[[], list[_Batch]]) -> list[list[Memory]]:
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
            for space, new in unread.items():
                self._store.graph.mark_pending(session, space, new)
            if self.annotator:
                self.annotator.write(session, [one for one in written if one.note is not _LATER])
        results = iter(stored)
        return [list(islice(results, len(batch.given))) for batch in batches]

    def _answered(
        self, session: Session, records: Sequence[IndexedRecord], keys: Sequence[str | None]
    ) -> dict[str, Memory]:
        """Records that an earlier request with the same key already stored."""
        found: dict[str, Memory] = {}
        for record, key in zip(records, keys, strict=True):
            known = key and self._store.requests.result(session, record.space, key)
            memory = self._store.memories.get(session, record.space, known) if known else None
            if key and memory:
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
