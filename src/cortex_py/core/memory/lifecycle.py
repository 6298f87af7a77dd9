"""The life of a record after capture: get, update, delete, restore, reindex, complete missing data, collect garbage."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from datetime import datetime
from typing import NamedTuple

from ..clock import ID_LENGTH, Clock, parse_ref, to_micros
from ..config import Settings
from ..embedding.backends.backend import Backend
from ..errors import AmbiguousId, Conflict, InvalidInput, MemoryNotFound
from ..records import LIVE_STATUSES, Memory, Status, Version
from ..security.permission import may_read, require_admin, require_write
from ..security.repeats import next_key
from ..security.rights import Level
from ..store.database import Session, by_space
from ..store.rows import IndexedRecord
from ..store.store import Store
from ..store.tables.memories import EmptyChunk
from .capture.capture import (
    Capture,
    Progress,
    StoredRecord,
    check_fields,
    check_text,
    clean_tags,
    embed_if_possible,
    embed_records,
    embed_texts,
    embedded_text,
    heading_of,
    index_entry,
    work_ahead,
)
from .recall.filters import parse_moment
from .spaces import (
    CANNOT_EMBED,
    Place,
    canonical_namespace,
    check_model,
    deferred_spaces,
    finish_space,
    mark_changing,
    mark_outlined,
    record_model,
    set_model,
    spaces_to_lock,
    spaces_without_vectors,
)

__all__ = ["GarbageCollector", "GcResult", "Lifecycle", "ReindexResult", "Supersession", "UndoResult"]


_REINDEX_BATCH = 128
# Records that the graph or a scan for personal data reads between two looks at `stop`: about 50 ms.
READ_BATCH = 16
# Enough for the model to sort by length; a stop waits for a part of it.
_FILL_BATCH = 192

# Number, space, idempotency key and record.
_Row = tuple[int, str, str | None, Memory]


@dataclass(frozen=True, slots=True)
class ReindexResult:
    indexed: int
    duration_ms: int


class Located(NamedTuple):
    """A record with its number and space."""

    num: int
    space: str
    memory: Memory


class _EmptyChunks(NamedTuple):
    """Chunks without vectors, their texts, and whether with these the first parts of all files have theirs."""

    chunks: Sequence[EmptyChunk]
    texts: Sequence[str]
    completes_heads: bool


class Lifecycle:
    def __init__(
        self, store: Store, backend: Backend, settings: Settings, clock: Clock, place: Place, capture: Capture
    ) -> None:
        self._store = store
        self._place = place
        self._backend = backend
        self._settings = settings
        self._clock = clock
        self._capture = capture

    def get(self, ref: str) -> Memory:
        """The record that an id, prefix, context id, URN or URI names; deleted records are not found."""
        with self._store.database.read() as session:
            return self.locate(session, ref).memory

    def history(self, ref: str) -> list[Version]:
        """All versions, oldest first, ending with the current one; also of deleted records."""
        with self._store.database.read() as session:
            here = self.locate(session, ref, deleted=True)
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
        summary: str | None = None,
        status: Status | None = None,
        expires_at: datetime | None = None,
        expected_version: int | None = None,
    ) -> Memory:
        """Store a new version, screened and embedded again; the old one stays in the history."""
        if all(value is None for value in (content, tags, namespace, source, summary, status, expires_at)):
            raise InvalidInput("Nothing to change was given.", remedy="Give content, tags or another field.")
        if status == "tombstoned":
            raise InvalidInput("A status of tombstoned is set by delete.", field="status")
        with self._store.database.read() as session:
            before = self.locate(session, ref)
            # Kept, so that what captured the record, such as an import, still knows it.
            key = self._store.memories.by_numbers(session, before.space, [before.num])[0][2]
            request = next_key()
            answered = self._store.requests.result(session, before.space, request)
        require_write(before.space)
        if answered == before.memory.id:
            return before.memory
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
            summary=before.memory.summary if summary is None else summary,
            status=before.memory.status if status is None else status,
            # A record in use again is no longer superseded.
            superseded_by=None if status in LIVE_STATUSES else before.memory.superseded_by,
            expires_at=before.memory.expires_at if expires_at is None else expires_at,
            updated_at=now,
            version=before.memory.version + 1,
            # A new content has not been verified.
            grounding=before.memory.grounding if content in (None, before.memory.content) else None,
            compressed=False,
        )
        check_fields(changed)
        clean = self._capture.screen(changed)
        record = embed_if_possible([self._capture.index(clean, before.space, key)], self._backend)[0]
        if content is not None and clean.kind == "note":
            (found,) = self._capture.labeller.classify([record])
            record = replace(record, memory=replace(record.memory, category=found.category))
        annotator = self._capture.annotator
        record, note = self._capture.annotate(record)
        with self._store.database.write(*spaces_to_lock(self._store, self._backend, [record])) as session:
            record_model(self._store, session, self._backend, [record])
            current = self.locate(session, before.memory.id)
            if self._store.requests.result(session, before.space, request) == current.memory.id:
                return current.memory
            if request:
                self._store.requests.keep(session, before.space, {request: current.memory.id}, to_micros(now))
            self._check_version(current.memory, before.memory.version)
            memories = self._store.memories
            operation = "capture" if current.memory.version == 1 else "update"
            at = to_micros(current.memory.updated_at)
            memories.archive_version(session, before.space, current.memory, operation, at)
            memories.replace(session, before.num, record, memories.next_seq(session, before.space))
            if record.memory.grounding is None:
                self._store.verifications.drop(session, before.space, record.memory.id)
            if annotator:
                annotator.write(session, [StoredRecord(before.num, before.space, record.memory, note)])
        return record.memory

    def delete(self, ref: str, *, hard: bool = False) -> Memory:
        """Delete a record; `restore` undoes this unless it is `hard`. Returns the deleted record."""
        # A purge removes what any project has recorded about the record.
        with self._store.database.write(*(() if hard else [self.space_of(ref)])) as session:
            here = self.locate(session, ref, deleted=hard)
            (require_admin if hard else require_write)(here.space)
            seq = self._store.memories.next_seq(session, here.space)
            if hard:
                self._store.memories.purge(session, here.space, [here.num], seq)
            else:
                self._store.memories.soft_delete(session, here.space, [here.num], to_micros(self._clock.now()), seq)
        return here.memory

    def restore(self, ref: str) -> Memory:
        """Undo the deletion of a record; it gets its former status."""
        with self._store.database.write(self.space_of(ref, deleted=True)) as session:
            here = self.locate(session, ref, deleted=True)
            require_write(here.space)
            if here.memory.status != "tombstoned":
                raise InvalidInput(f"Memory {here.memory.id} is not deleted.", field="id")
            words = index_entry(here.space, self._store.memories.terms(session, here.space, here.num))
            now, seq = to_micros(self._clock.now()), self._store.memories.next_seq(session, here.space)
            self._store.memories.undelete(session, here.space, here.num, words, now, seq)
        return self.get(here.memory.id)

    def reindex(self, progress: Progress | None = None, spaces: Sequence[str] | None = None) -> ReindexResult:
        """Recompute terms, vectors and the text index from the records, with the configured model.

        Each batch is a transaction. If the model changes, the store names the new one only when all is done, so that
        vectors of two models are never mixed; an interrupted run is repeated. Single spaces can be reindexed only if
        the model stays the same.
        """
        started = self._clock.now()
        with self._store.database.write() as session:
            if spaces is not None:
                check_model(self._store, session, self._backend)
            mark_changing(self._store, session, self._backend)
            memories = self._store.memories
            placed = {space: memories.all_numbers(session, space) for space in spaces or memories.spaces(session)}
            # Advances the sequences, so that other processes reload everything.
            memories.next_seqs(session, placed)
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
        return ReindexResult(done, round(elapsed.total_seconds() * 1000))

    def annotate(self, stop: Callable[[], bool]) -> int:
        """Annotate records that the graph has not read, batch by batch."""
        annotator, done = self._capture.annotator, 0
        while annotator and not stop():
            with self._store.database.read() as session:
                before = self._located(session, self._store.graph.unread(session, READ_BATCH))
            if not before:
                break
            notes = {num: annotator.read(memory) for num, _, _, memory in before}
            placed = by_space((space, num) for num, space, _, _ in before)
            with self._store.database.write(*placed) as session:
                current = {num: memory.version for num, _, _, memory in self._located(session, placed)}
                same = [row for row in before if current.get(row[0]) == row[3].version]
                annotator.write(
                    session, [StoredRecord(num, space, memory, notes[num]) for num, space, _, memory in same]
                )
            done += len(same)
        return done

    def look_for_personal_data(self, stop: Callable[[], bool], space: str | None = None) -> int:
        """Scan records of one space or of all for personal data that were not scanned yet, batch by batch."""
        if self._settings.personal_data == "keep":
            return 0
        capture, done = self._capture, 0
        while not stop():
            with self._store.database.read() as session:
                before = self._located(session, self._store.memories.without_personal_check(session, space, READ_BATCH))
            if not before:
                break
            annotator = capture.annotator
            looked = [
                (space_, num, capture.count_personal_data(memory, annotator.read(memory) if annotator else None))
                for num, space_, _, memory in before
            ]
            with self._store.database.write(*{space_ for space_, _, _ in looked}) as session:
                self._store.memories.set_personal(session, looked)
            done += len(looked)
        return done

    def fill_vectors(self, stop: Callable[[], bool], progress: Progress | None = None) -> int:
        """Compute the vectors of records that were stored without them, batch by batch.

        `progress` is called for those of large scans.
        """
        done = reached = 0
        while not stop():
            with self._store.database.read() as session:
                spaces = spaces_without_vectors(self._store, session)
                if not spaces:
                    break
                deferred = deferred_spaces(self._store, session)
            if deferred:
                try:
                    done += self._fill_deferred(deferred[0], stop, progress)
                except CANNOT_EMBED:
                    break
                continue
            with self._store.database.read() as session:
                # Each batch begins where the last one ended: what is done is not read again.
                nums = self._store.memories.without_vectors(session, spaces[0], _REINDEX_BATCH, reached)
                placed = {spaces[0]: nums}
                before = self._located(session, placed)
            if not nums and reached:
                # Records that changed meanwhile may have been passed by.
                reached = 0
                continue
            try:
                records = self._index(before)
            except CANNOT_EMBED:
                break
            with self._store.database.write() as session:
                check_model(self._store, session, self._backend, claim=True)
                seq = self._store.memories.next_seq(session, spaces[0])
                current = {num: memory.version for num, _, _, memory in self._located(session, placed)}
                for (num, _, _, memory), record in zip(before, records, strict=True):
                    if current.get(num) == memory.version:
                        self._store.memories.reindex(session, num, record, seq)
                if not nums:
                    finish_space(self._store, session, spaces[0])
            done += len(nums)
            reached = nums[-1] if nums else 0
        return done

    def _fill_deferred(self, space: str, stop: Callable[[], bool], progress: Progress | None) -> int:
        """Compute the vectors of records whose chunks are right as they are; the model never waits for the store."""
        memories, done, total = self._store.memories, 0, 0
        if progress:
            with self._store.database.read() as session:
                total = memories.count_without_vectors(session, [space])
        outlined = False
        for batch, made in work_ahead(self._empty_chunks(space, stop), self._embed_chunks, in_background=True):
            # The model is recorded for the whole store.
            known = self._store.known_model == self._backend.fingerprint
            with self._store.database.write(*((space,) if known else ()), derived=True) as session:
                check_model(self._store, session, self._backend, claim=True)
                memories.set_vectors(session, space, made, memories.next_seq(session, space))
            if batch.completes_heads and not outlined:
                outlined = True
                with self._store.database.write(derived=True) as session:
                    mark_outlined(self._store, session, space)
            done += len({one.num for one, _ in made})
            if progress:
                progress(done, max(done, total))
            if stop():
                return done
        with self._store.database.write(derived=True) as session:
            # Records that changed meanwhile wait for the next round.
            if not memories.without_vectors(session, space, 1):
                finish_space(self._store, session, space)
        return done

    def _empty_chunks(self, space: str, stop: Callable[[], bool]) -> Iterator[_EmptyChunks]:
        """The chunks of a space that have no vector, with the texts that are embedded for them, in batches.

        The first part of each file comes first: with those, a file is found by what it is for.
        """
        memories = self._store.memories
        with self._store.database.read() as session:
            heads = memories.heads_without_vectors(session, space)
        for first in range(0, len(heads), _FILL_BATCH):
            if stop():
                return
            is_last = first + _FILL_BATCH >= len(heads)
            yield self._texts_of(space, heads[first : first + _FILL_BATCH], completes_heads=is_last)
        reached = 0
        while not stop():
            with self._store.database.read() as session:
                nums = memories.without_vectors(session, space, _FILL_BATCH, reached)
            if not nums:
                return
            yield self._texts_of(space, nums, completes_heads=True)
            reached = nums[-1]

    def _texts_of(self, space: str, nums: Sequence[int], *, completes_heads: bool) -> _EmptyChunks:
        memories = self._store.memories
        with self._store.database.read() as session:
            rows = {num: memory for num, _, _, memory in memories.by_numbers(session, space, nums)}
            chunks = [one for one in memories.empty_chunks(session, space, nums) if one.num in rows]
        texts = [embedded_text(rows[one.num].content, heading_of(rows[one.num]), one.first, one.past) for one in chunks]
        return _EmptyChunks(chunks, texts, completes_heads)

    def _embed_chunks(self, batch: _EmptyChunks) -> tuple[_EmptyChunks, list[tuple[EmptyChunk, bytes]]]:
        return batch, list(zip(batch.chunks, embed_texts(batch.texts, self._backend), strict=True))

    def _index(self, rows: Sequence[_Row]) -> list[IndexedRecord]:
        return embed_records([self._capture.index(memory, space, key) for _, space, key, memory in rows], self._backend)

    def _located(self, session: Session, placed: Mapping[str, Sequence[int]]) -> list[_Row]:
        return [row for space, nums in placed.items() for row in self._store.memories.by_numbers(session, space, nums)]

    def _reindex_batch(self, space: str, nums: Sequence[int]) -> int:
        with self._store.database.read() as session:
            before = self._store.memories.by_numbers(session, space, nums)
        records = self._index(before)
        annotator = self._capture.annotator
        notes = {num: annotator.read(memory) for num, _, _, memory in before} if annotator else {}
        with self._store.database.write(space) as session:
            seq = self._store.memories.next_seq(session, space)
            current = {num: memory.version for num, _, _, memory in self._located(session, {space: nums})}
            same = [row for row in zip(before, records, strict=True) if current.get(row[0][0]) == row[0][3].version]
            for (num, *_), record in same:
                self._store.memories.reindex(session, num, record, seq)
            if annotator:
                annotator.write(
                    session, [StoredRecord(num, space, memory, notes[num]) for (num, space, _, memory), _ in same]
                )
        return len(before)

    def locate(self, session: Session, ref: str, *, deleted: bool = False) -> Located:
        """The record that a reference names, with its number and space."""
        wanted = parse_ref(ref)
        found = [
            Located(num, space, memory)
            for num, space, memory in self._find(session, wanted.prefix)
            if deleted or memory.status != "tombstoned"
        ]
        if not found:
            raise MemoryNotFound(
                f"There is no memory {wanted.prefix!r}.",
                remedy="Search for it; a deleted memory can be restored.",
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

    def space_of(self, ref: str, *, deleted: bool = False) -> str:
        """The space of the record that a reference names."""
        with self._store.database.read() as session:
            return self.locate(session, ref, deleted=deleted).space

    def _find(self, session: Session, prefix: str) -> list[tuple[int, str, Memory]]:
        """Readable records whose id begins with a prefix.

        On a cluster a whole id is looked for in this project first: elsewhere every worker would have to answer.
        """
        if self._store.database.distributed and len(prefix) == ID_LENGTH:
            here = self._place.space("project")
            if may_read(here) and (found := self._store.memories.find(session, prefix, 1, here)):
                return found
        return _find_readable(self._store, session, prefix)

    def _check_version(self, memory: Memory, expected: int | None) -> None:
        if expected is not None and memory.version != expected:
            raise Conflict(
                f"Memory {memory.id} is at version {memory.version}, not {expected}.",
                remedy="Read it again and repeat the change.",
                field="version",
            )


def _find_readable(store: Store, session: Session, prefix: str, limit: int = 6) -> list[tuple[int, str, Memory]]:
    """Readable records whose id begins with a prefix, as (number, space, record)."""
    asked = limit
    while True:
        rows = store.memories.find(session, prefix, asked)
        seen = [row for row in rows if may_read(row[1])]
        if len(seen) >= limit or len(rows) < asked:
            return seen[:limit]
        # Records stored at the same moment share a prefix, and unreadable ones may have filled the limit.
        asked *= 8


_STEPS = 3


@dataclass(frozen=True, slots=True)
class GcResult:
    """What a run did or would do. `memories_affected` counts each record once; `branches` are lines of work."""

    stale_branches: tuple[str, ...]
    memories_affected: int
    tombstoned: int
    expired: int
    purged: int
    dry_run: bool
    branches: frozenset[str] = frozenset()


@dataclass(frozen=True, slots=True)
class _Plan:
    """Records by number, for each space."""

    stale_branches: tuple[str, ...]
    orphaned: dict[str, list[int]]
    expired: dict[str, list[int]]
    purged: dict[str, list[int]]
    branches: frozenset[str]

    def tombstoned(self) -> dict[str, list[int]]:
        """What is to be tombstoned, for either reason or both."""
        return {space: sorted({*nums, *self.expired[space]}) for space, nums in self.orphaned.items()}


class GarbageCollector:
    def __init__(self, store: Store, clock: Clock, place: Place) -> None:
        self._store = store
        self._clock = clock
        self._place = place

    def run(
        self,
        *,
        dry_run: bool = False,
        branch: str | None = None,
        purge: bool = False,
        older_than: str | None = None,
        progress: Progress | None = None,
    ) -> GcResult:
        """Tombstone expired memories and those of deleted git branches; with `purge`, remove old tombstones."""
        report = progress or (lambda _done, _total: None)
        level: Level = "admin" if purge else "write"
        (require_admin if purge else require_write)(self._place.space("project"))
        spaces = self._place.spaces(level)
        self._place.sync_git_state()
        now = self._clock.now()
        until = _moment(older_than, now) if older_than else now
        stale = self._stale_branches(branch, spaces)
        report(1, _STEPS)
        if dry_run:
            with self._store.database.read() as session:
                plan = self._plan(session, spaces, stale, branch, purge, now, until)
        else:
            # A purge removes what any project has recorded about the records.
            with self._store.database.write(*(() if purge else spaces)) as session:
                plan = self._plan(session, spaces, stale, branch, purge, now, until)
                self._carry_out(session, plan, now)
                # The caller's last chance to stop: raising here rolls everything back.
                report(2, _STEPS)
            if any(plan.purged.values()):
                self._store.database.compact()
        report(_STEPS, _STEPS)
        tombstoned = plan.tombstoned()
        return GcResult(
            plan.stale_branches,
            sum(len({*nums, *plan.purged[space]}) for space, nums in tombstoned.items()),
            sum(map(len, tombstoned.values())),
            sum(map(len, plan.expired.values())),
            sum(map(len, plan.purged.values())),
            dry_run,
            plan.branches,
        )

    def _stale_branches(self, branch: str | None, spaces: tuple[str, ...]) -> tuple[str, ...]:
        """Branches of memories that ended without a merge; found before the transaction, because git is slow.

        Of a branch that the caller names, it is enough that nothing shows a merge.
        """
        with self._store.database.read() as session:
            named = self._store.statistics.git_branches(session, spaces)
        wanted = [branch] if branch else list(named)
        return tuple(name for name in self._place.git.stale(wanted, unsure=bool(branch)) if name in named)

    def _plan(
        self,
        session: Session,
        spaces: tuple[str, ...],
        stale: tuple[str, ...],
        branch: str | None,
        purge: bool,
        now: datetime,
        until: datetime,
    ) -> _Plan:
        statistics = self._store.statistics
        plan = _Plan(stale, {}, {}, {}, frozenset())
        branches: set[str] = set()
        for space in spaces:
            plan.orphaned[space] = statistics.on_git_branches(session, space, stale) if stale else []
            plan.expired[space] = [] if branch else statistics.expired(session, space, to_micros(now))
            # Tombstones of this run are too young to be purged.
            plan.purged[space] = statistics.tombstones(session, space, to_micros(until), branch) if purge else []
            every = {*plan.orphaned[space], *plan.expired[space], *plan.purged[space]}
            branches |= statistics.lines_of_work(session, space, sorted(every))
        return replace(plan, branches=frozenset(branches))

    def _carry_out(self, session: Session, plan: _Plan, now: datetime) -> None:
        memories = self._store.memories
        tombstoned = plan.tombstoned()
        if not any(tombstoned.values()) and not any(plan.purged.values()):
            return
        seqs = memories.next_seqs(session, tombstoned)
        for space, nums in tombstoned.items():
            seq = seqs[space]
            memories.soft_delete(session, space, nums, to_micros(now), seq)
            memories.purge(session, space, plan.purged[space], seq)


def _moment(text: str, now: datetime) -> datetime:
    try:
        moment = parse_moment(text, now=now)
    except InvalidInput as error:
        raise InvalidInput(error.message, remedy=error.remedy, field="older_than") from None
    if moment > now:
        raise InvalidInput(f"{text[:40]!r} is in the future.", remedy="Give an age such as 30d.", field="older_than")
    return moment


# -- which record replaced which -------------------------------------------------------------------

_LONGEST_CHAIN = 100


@dataclass(frozen=True, slots=True)
class UndoResult:
    """An undone consolidation: the record that was removed, and those that were restored."""

    result_id: str
    restored: tuple[str, ...]
    branches: frozenset[str] = frozenset()


class Supersession:
    def __init__(self, store: Store, clock: Clock, lifecycle: Lifecycle) -> None:
        self._store = store
        self._clock = clock
        self._locate = lifecycle.locate
        self._space_of = lifecycle.space_of

    def origins(self, ref: str) -> tuple[str, ...]:
        """Ids of the records that one was made from or replaces, oldest first."""
        with self._store.database.read() as session:
            _, space, memory = self._locate(session, ref)
            found = self._replaced(session, space, memory.id)
            return tuple(one.id for one in found if one.status != "tombstoned")

    def chain(self, ref: str) -> list[Memory]:
        """A record with all that it replaced and all that replaced it, oldest first."""
        with self._store.database.read() as session:
            _, space, start = self._locate(session, ref)
            newest = [start, *self._later(session, space, start)][-1]
            found: dict[str, Memory] = {newest.id: newest}
            open_ids = [newest.id]
            while open_ids and len(found) < _LONGEST_CHAIN:
                for older in reversed(self._replaced(session, space, open_ids.pop())):
                    if older.id not in found:
                        found[older.id] = older
                        open_ids.append(older.id)
        # A merged record has the time of its newest part, and comes after it.
        shown = (one for one in reversed(found.values()) if one.status != "tombstoned")
        return sorted(shown, key=lambda one: one.created_at)

    def undo(self, ref: str) -> UndoResult:
        """Undo a consolidation: delete its result and restore the records it was made from."""
        now = self._clock.now()
        with self._store.database.write(self._space_of(ref)) as session:
            num, space, result = self._locate(session, ref)
            require_write(space)
            made = self._store.consolidations.of_result(session, space, result.id)
            if made is None or made.undone_at is not None:
                raise InvalidInput(
                    f"The memory {result.id[:12]} was not made by a consolidation.",
                    remedy="Name the result of a consolidation.",
                )
            if result.superseded_by is not None:
                raise Conflict(
                    f"The memory {result.id[:12]} was itself replaced by {result.superseded_by[:12]}.",
                    remedy="Undo that first.",
                )
            at, seq = to_micros(now), self._store.memories.next_seq(session, space)
            table = self._store.consolidations
            restored = [
                memory_id
                for memory_id, status in made.parts
                if table.reinstate(session, space, memory_id, result.id, status, at, seq)
            ]
            # Also restore what the result replaced later: nothing may stay hidden behind a deleted record.
            later = [one.id for one in self._replaced(session, space, result.id)]
            restored += [one for one in later if table.reinstate(session, space, one, result.id, "active", at, seq)]
            self._store.memories.soft_delete(session, space, [num], at, seq)
            table.mark_undone(session, space, made.id, at)
            found = self._fetch(session, space, restored)
        branches = frozenset(one.branch_id for one in (result, *found) if one.branch_id)
        return UndoResult(result.id, tuple(restored), branches)

    def replace(self, older: str, newer: str) -> Memory:
        """Hide an older record behind a newer one of the same space."""
        now = self._clock.now()
        with self._store.database.write(self._space_of(older)) as session:
            _, space, old = self._locate(session, older)
            require_write(space)
            _, other_space, new = self._locate(session, newer)
            if (
                space != other_space
                or old.id == new.id
                or old.id in {one.id for one in self._later(session, space, new)}
            ):
                raise InvalidInput(
                    f"{new.id[:12]} cannot replace {old.id[:12]}: they are the same, of different domains, or the "
                    "other way round.",
                    field="supersedes",
                )
            if old.status not in LIVE_STATUSES:
                raise Conflict(
                    f"The memory {old.id[:12]} cannot be superseded: it is {old.status} already.",
                    remedy="Name one that recall shows.",
                    field="supersedes",
                )
            seq = self._store.memories.next_seq(session, space)
            self._store.consolidations.replace(session, space, [old.id], new.id, to_micros(now), seq)
            return self._fetch(session, space, [old.id])[0]

    def _replaced(self, session: Session, space: str, memory_id: str) -> list[Memory]:
        """The records that one replaced, deleted ones too, oldest first."""
        ids = self._store.consolidations.replaced_by(session, space, memory_id)
        return self._fetch(session, space, ids)

    def _fetch(self, session: Session, space: str, ids: Sequence[str]) -> list[Memory]:
        found = [self._store.memories.get(session, space, one) for one in ids]
        return [one for one in found if one is not None]

    def _later(self, session: Session, space: str, memory: Memory) -> list[Memory]:
        """The records that replaced one, in order."""
        found: list[Memory] = []
        while memory.superseded_by and len(found) < _LONGEST_CHAIN:
            later = self._store.memories.get(session, space, memory.superseded_by)
            if later is None or later in found:
                break
            memory = later
            found.append(memory)
        return found
