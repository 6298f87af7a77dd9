"""A record's life after capture: read, changed as a new version, deleted, restored, purged, reindexed."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from datetime import datetime

from ..clock import Clock, to_micros
from ..config import Settings
from ..embedding.backend import Backend
from ..errors import AmbiguousId, Conflict, InvalidInput, MemoryNotFound
from ..ids import parse_ref
from ..records import LIVE_STATUSES, Memory, Status, Version
from ..security.permission import require_admin, require_write
from ..store.database import Session
from ..store.placement import by_space
from ..store.store import Store
from .annotating import Stored
from .capture import Capture, Progress
from .finding import find_readable
from .model import check_model, mark_changing, set_model, set_spaces_without_vectors, spaces_without_vectors
from .namespaces import canonical_namespace
from .prepare import check_fields, check_text, clean_tags, embed_drafts, index_entry, without_secrets

__all__ = ["Lifecycle", "Reindexed"]

_REINDEX_BATCH = 128


@dataclass(frozen=True, slots=True)
class Reindexed:
    indexed: int
    duration_ms: int


@dataclass(frozen=True, slots=True)
class _Located:
    num: int
    space: str
    memory: Memory


class Lifecycle:
    def __init__(self, store: Store, backend: Backend, settings: Settings, clock: Clock, capture: Capture) -> None:
        self._store = store
        self._backend = backend
        self._settings = settings
        self._clock = clock
        self._capture = capture

    def get(self, ref: str) -> Memory:
        """The record that an id, a prefix, a context id or an address names. Deleted ones are not found."""
        with self._store.database.read() as session:
            return self._locate(session, ref).memory

    def history(self, ref: str) -> list[Version]:
        """All versions, oldest first; the last is the present one. Deleted records have a history too."""
        with self._store.database.read() as session:
            here = self._locate(session, ref, deleted=True)
            past = self._store.memories.history(session, here.space, here.memory.id)
        now = here.memory
        operation = "delete" if now.status == "tombstoned" else ("update" if past else "capture")
        present = Version(
            now.version, now.content, now.namespace, now.tags, now.source, now.updated_at, operation, now.id
        )
        return [*past, present]

    def update(
        self,
        ref: str,
        *,
        content: str | None = None,
        tags: Sequence[str] | None = None,
        namespace: str | None = None,
        source: str | None = None,
        status: Status | None = None,
        expires_at: datetime | None = None,
        expected_version: int | None = None,
    ) -> Memory:
        """A new version: scanned and embedded anew, the old one kept in the history."""
        if all(value is None for value in (content, tags, namespace, source, status, expires_at)):
            raise InvalidInput("Nothing to change was given.", remedy="Give content, tags or another field.")
        if status == "tombstoned":
            raise InvalidInput("A status of tombstoned is set by delete.", field="status")
        with self._store.database.read() as session:
            before = self._locate(session, ref)
        require_write(before.space)
        self._check_version(before.memory, expected_version)
        now = self._clock.now()
        changed = replace(
            before.memory,
            content=before.memory.content
            if content is None
            else check_text(content, "content", self._settings.max_content_bytes),
            tags=before.memory.tags if tags is None else clean_tags(tags),
            namespace=before.memory.namespace if namespace is None else canonical_namespace(namespace),
            source=before.memory.source if source is None else source,
            path=before.memory.path if source is None else None,
            status=before.memory.status if status is None else status,
            # What is put to use again is no longer hidden behind another.
            superseded_by=None if status in LIVE_STATUSES else before.memory.superseded_by,
            expires_at=before.memory.expires_at if expires_at is None else expires_at,
            updated_at=now,
            version=before.memory.version + 1,
            # Another wording was checked by nobody.
            grounding=before.memory.grounding if content in (None, before.memory.content) else None,
            compressed=False,
        )
        check_fields(changed)
        clean = without_secrets(changed, self._settings.secrets)
        record = embed_drafts([self._capture.redraft(clean, before.space)], self._backend)[0]
        if content is not None and clean.kind == "note":
            record = replace(record, memory=replace(record.memory, category=self._capture.labels.of(record).category))
        annotator = self._capture.annotator
        note = annotator.read(record.memory) if annotator else None
        with self._store.database.write() as session:
            check_model(self._store, session, self._backend, claim=True)
            current = self._locate(session, before.memory.id)
            self._check_version(current.memory, before.memory.version)
            memories = self._store.memories
            memories.archive_version(
                session, before.space, current.memory, _operation(current.memory), to_micros(current.memory.updated_at)
            )
            memories.replace(session, before.num, record, memories.next_seq(session))
            if record.memory.grounding is None:
                self._store.verifications.drop(session, before.space, record.memory.id)
            if annotator:
                annotator.write(session, [Stored(before.num, before.space, record.memory, note)])
        return record.memory

    def delete(self, ref: str, *, hard: bool = False) -> Memory:
        """Soft delete, undone by `restore`; a hard one leaves no trace. Returns what was deleted."""
        with self._store.database.write() as session:
            here = self._locate(session, ref, deleted=hard)
            (require_admin if hard else require_write)(here.space)
            seq = self._store.memories.next_seq(session)
            if hard:
                self._store.memories.purge(session, here.space, [here.num], seq)
            else:
                self._store.memories.bury(session, here.space, [here.num], to_micros(self._clock.now()), seq)
        return here.memory

    def restore(self, ref: str) -> Memory:
        """Bring a deleted record back, everywhere, with the status it had."""
        with self._store.database.write() as session:
            here = self._locate(session, ref, deleted=True)
            require_write(here.space)
            if here.memory.status != "tombstoned":
                raise InvalidInput(f"Memory {here.memory.id} is not deleted.", field="id")
            words = index_entry(here.space, self._store.memories.terms(session, here.space, here.num))
            now, seq = to_micros(self._clock.now()), self._store.memories.next_seq(session)
            self._store.memories.raise_up(session, here.space, here.num, words, now, seq)
        return self.get(here.memory.id)

    def reindex(self, progress: Progress | None = None, spaces: Sequence[str] | None = None) -> Reindexed:
        """Compute terms, vectors and the text index anew from the records, with the configured model.

        Batches are transactions of their own; a record that changes meanwhile is taken as it then is.
        With another model than before, the store names the new one only when all is done: until then nobody
        mixes vectors of the two, and an interrupted run is simply repeated. Some spaces can be done alone only
        while the model stays the same.
        """
        started = self._clock.now()
        with self._store.database.write() as session:
            if spaces is not None:
                check_model(self._store, session, self._backend)
            mark_changing(self._store, session, self._backend)
            memories = self._store.memories
            placed = {space: memories.all_numbers(session, space) for space in spaces or memories.spaces(session)}
            # Pulls the sequence forward, so that other processes read everything again.
            memories.next_seq(session)
        done, total = 0, sum(map(len, placed.values()))
        for space, nums in placed.items():
            for low in range(0, len(nums), _REINDEX_BATCH):
                done += self._reindex_batch(space, nums[low : low + _REINDEX_BATCH])
                if progress:
                    progress(done, total)
        with self._store.database.write() as session:
            set_model(self._store, session, self._backend)
        self._store.search.forget_all()
        elapsed = self._clock.now() - started
        return Reindexed(done, round(elapsed.total_seconds() * 1000))

    def annotate(self, stop: Callable[[], bool]) -> int:
        """Catch up with records that nobody has read for the graph, batch by batch."""
        annotator, done = self._capture.annotator, 0
        while annotator and not stop():
            with self._store.database.read() as session:
                before = self._located(session, self._store.graph.unread(session, _REINDEX_BATCH))
            if not before:
                break
            notes = {num: annotator.read(memory) for num, _, _, memory in before}
            with self._store.database.write() as session:
                placed = by_space((space, num) for num, space, _, _ in before)
                current = {num: memory.version for num, _, _, memory in self._located(session, placed)}
                same = [row for row in before if current.get(row[0]) == row[3].version]
                annotator.write(session, [Stored(num, space, memory, notes[num]) for num, space, _, memory in same])
            done += len(same)
        return done

    def fill_vectors(self, stop: Callable[[], bool]) -> int:
        """Give vectors to records that came without any, batch by batch."""
        done = 0
        while not stop():
            with self._store.database.read() as session:
                spaces = spaces_without_vectors(self._store, session)
                if not spaces:
                    break
                placed = {spaces[0]: self._store.memories.without_vectors(session, spaces[0], _REINDEX_BATCH)}
                before = self._located(session, placed)
            records = embed_drafts(
                [self._capture.redraft(memory, space, key) for _, space, key, memory in before], self._backend
            )
            with self._store.database.write() as session:
                seq = self._store.memories.next_seq(session)
                current = {num: memory.version for num, _, _, memory in self._located(session, placed)}
                for (num, _, _, memory), record in zip(before, records, strict=True):
                    if current.get(num) == memory.version:
                        self._store.memories.reindex(session, num, record, seq)
                if not placed[spaces[0]]:
                    set_spaces_without_vectors(self._store, session, spaces[1:])
            done += len(placed[spaces[0]])
        return done

    def _located(
        self, session: Session, placed: Mapping[str, Sequence[int]]
    ) -> list[tuple[int, str, str | None, Memory]]:
        return [row for space, nums in placed.items() for row in self._store.memories.located(session, space, nums)]

    def _reindex_batch(self, space: str, nums: Sequence[int]) -> int:
        with self._store.database.read() as session:
            before = self._store.memories.located(session, space, nums)
        records = embed_drafts(
            [self._capture.redraft(memory, space, key) for _, space, key, memory in before], self._backend
        )
        annotator = self._capture.annotator
        notes = {num: annotator.read(memory) for num, _, _, memory in before} if annotator else {}
        with self._store.database.write() as session:
            seq = self._store.memories.next_seq(session)
            current = {num: memory.version for num, _, _, memory in self._located(session, {space: nums})}
            same = [row for row in zip(before, records, strict=True) if current.get(row[0][0]) == row[0][3].version]
            for (num, *_), record in same:
                self._store.memories.reindex(session, num, record, seq)
            if annotator:
                annotator.write(
                    session, [Stored(num, space, memory, notes[num]) for (num, space, _, memory), _ in same]
                )
        return len(before)

    def locate(self, session: Session, ref: str) -> tuple[int, str, Memory]:
        """Number, space and record that a reference names."""
        found = self._locate(session, ref)
        return found.num, found.space, found.memory

    def _locate(self, session: Session, ref: str, *, deleted: bool = False) -> _Located:
        wanted = parse_ref(ref)
        found = [
            _Located(num, space, memory)
            for num, space, memory in find_readable(self._store, session, wanted.prefix)
            if deleted or memory.status != "tombstoned"
        ]
        if not found:
            raise MemoryNotFound(
                f"There is no memory {wanted.prefix!r}.",
                remedy="Search with `recall`; a deleted one comes back with `restore`.",
                field="id",
            )
        if len(found) > 1:
            ids = tuple(one.memory.id for one in found)
            raise AmbiguousId(
                f"{wanted.prefix!r} names {len(found)} memories or more: {', '.join(i[:20] for i in ids)}.",
                candidates=ids,
                remedy="Give more digits.",
            )
        return found[0]

    def _check_version(self, memory: Memory, expected: int | None) -> None:
        if expected is not None and memory.version != expected:
            raise Conflict(
                f"Memory {memory.id} is at version {memory.version}, not {expected}.",
                remedy="Read it again and repeat the change.",
                field="version",
            )


def _operation(memory: Memory) -> str:
    return "capture" if memory.version == 1 else "update"
