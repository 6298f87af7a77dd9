"""The memories of one project, as the rest of the code uses them: capture, recall, change, consolidate, maintain."""

from __future__ import annotations

import time
from collections import deque
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass, field
from datetime import date, datetime, timedelta
from functools import cached_property
from typing import TYPE_CHECKING

from ..clock import Clock, IdMaker, from_micros, to_micros
from ..config import Fusion, Settings
from ..embedding.backends.backend import Backend
from ..errors import AmbiguousId, InvalidInput, NotFound
from ..events import Events, MemoriesChanged
from ..jobs import Jobs
from ..records import (
    KINDS,
    Contradiction,
    Domain,
    Hit,
    Memory,
    Mode,
    NewMemory,
    Page,
    Status,
    Version,
    kind_space,
    tells_subject,
)  # fmt: skip
from ..security.callers import as_system, current_caller
from ..security.permission import permitted_spaces, require_write
from ..store.database import Session
from ..store.search.filters import EVERYTHING, View, Where
from ..store.store import Store
from ..store.tables.upkeep import FacetColumn
from .capture.capture import Capture, DocumentIndexer, Progress, parse_ttl
from .compression import CompressionResult, Compressor
from .lifecycle import GarbageCollector, GcResult, Lifecycle, ReindexResult, Supersession, UndoResult
from .recall.filters import parse_filter, parse_moment
from .recall.recall import Query, Recall, RecallCounter
from .spaces import NAMESPACES, Namespace, Neighbours, Place, spaces_without_vectors, token_counter
from .text import leading_query_terms, matching_spans

if TYPE_CHECKING:
    import numpy as np
    from numpy.typing import NDArray

    from ..llm.client import LanguageModel
    from .capture.files import FileCapture
    from .capture.reading import WaitingNotes
    from .capture.turns import TurnCapture
    from .comparison.conflicts import Counterpart
    from .consolidation.consolidation import ConsolidationResult, Consolidator, HygieneFinding
    from .consolidation.enrichment import Enricher, EnrichmentResult, GraphReader
    from .consolidation.merging import Strategy

__all__ = ["Memories", "MemoryStatus", "MemoryUses"]

_TOP_TAGS = 10
_TIMES_KEPT = 120
_AGES = ("1d", "7d", "30d", "1y")
_MINUTE = 60_000_000  # microseconds
_FIRST_DAY = date(1970, 1, 1)
_REHEARSED = "Anna Smith decided on 5 May that the service stores its events in PostgreSQL."
_FACET_COLUMNS: dict[str, FacetColumn] = {
    "ns": "namespace", "status": "status", "branch": "git_branch", "user": "user_id", "agent": "agent_id",
    "project": "project_id",
}  # fmt: skip


@dataclass(frozen=True, slots=True)
class MemoryStatus:
    """Counts of what a caller sees. Figures of the whole store are 0 or empty for an authenticated caller."""

    project_id: str
    project_name: str
    project_remote: str | None
    path: str | None
    branch: str | None
    engine: str
    total_count: int
    namespace_counts: dict[str, int]
    status_counts: dict[str, int]
    recent_topics: tuple[str, ...]
    top_tags: tuple[tuple[str, int], ...]
    size_bytes: int
    model: str | None
    # Today's model, calls, input tokens, output tokens and failures.
    llm_use: tuple[tuple[str, int, int, int, int], ...] = ()
    # How many memories a verification found grounded, doubtful and not grounded.
    grounding_counts: dict[str, int] = field(default_factory=dict)
    # How many memories contain each kind of personal data, and how many are not scanned yet.
    personal_counts: dict[str, int] = field(default_factory=dict)
    # How many memories and parts of files are found by words only, until their vectors are computed.
    pending_vectors: int = 0
    # How many of these are the first parts of files, whose vectors are computed first.
    pending_outlines: int = 0


@dataclass(frozen=True, slots=True)
class MemoryUses:
    """How often a memory was recalled, and when last."""

    recalls: int
    last_recalled_at: datetime | None


class Memories:
    """The memories that a caller at one place sees and writes."""

    def __init__(
        self,
        store: Store,
        backend: Backend,
        settings: Settings,
        clock: Clock,
        ids: IdMaker,
        place: Place,
        events: Events,
        reader: GraphReader,
        model: Callable[[], LanguageModel | None],
        notes: WaitingNotes,
        jobs: Jobs,
    ) -> None:
        """`model` returns the language model if one is configured; `reader` is how the graph reads a memory."""
        self._store = store
        self._backend = backend
        self._clock = clock
        self._settings = settings
        self._ids = ids
        self._place = place
        self._model = model
        self._events = events
        self._jobs = jobs
        self._capture = Capture(store, backend, settings, clock, ids, place, events, reader, jobs)
        notes.use(self._capture)
        self._recall = Recall(store, backend, clock, place)
        self._lifecycle = Lifecycle(store, backend, settings, clock, place, self._capture)
        self._collector = GarbageCollector(store, clock, place)
        self._compressor = Compressor(store, clock, settings.compress_after_minutes)
        self._recall_counter = RecallCounter(store, clock)
        self._recall_times: deque[float] = deque(maxlen=_TIMES_KEPT)
        self._supersession = Supersession(store, clock, self._lifecycle)
        self._neighbours = Neighbours(store, backend, clock, place)
        self._reader = reader

    @property
    def place(self) -> Place:
        """The project, person and spaces these memories belong to."""
        return self._place

    def count_tokens(self, text: str) -> int:
        """The tokens of a text for the embedding model; an estimate for a language model."""
        return token_counter(self._backend)(text)

    def index_note(self, memory: Memory) -> str | None:
        """A note on how much of a memory is indexed; None if all of it is."""
        return self._capture.index_note(memory)

    # What follows is imported on first use: a command needs at most one of them.

    @cached_property
    def files(self) -> FileCapture:
        """Captures parts of the project's files."""
        from .capture.files import FileCapture

        return FileCapture(
            self._store, self._backend, self._settings, self._clock, self._ids, self._place, self._capture
        )

    @cached_property
    def turns(self) -> TurnCapture:
        """Captures turns of conversations."""
        from .capture.turns import TurnCapture

        return TurnCapture(self._store, self._backend, self._settings, self._place, self._capture)

    @cached_property
    def _enricher(self) -> Enricher:
        from .consolidation.enrichment import Enricher

        return Enricher(self._neighbours, self._reader, self._model, self._lifecycle)

    def check(self, item: NewMemory) -> Memory:
        """The record that a capture would store, checked and screened; nothing is written."""
        return self._capture.screen(self._capture.check(item))

    def carried(self, space: str) -> DocumentIndexer:
        """An indexer for memories that arrive as documents in a space."""
        return DocumentIndexer(self._store, self._capture, self._backend, space)

    def fill_vectors(self, stop: Callable[[], bool] = lambda: False, progress: Progress | None = None) -> int:
        """Compute the vectors of memories that arrived without them; returns how many.

        `progress` is called with (done, total) for those of a large scan.
        """

        return self._jobs.vectors.run(lambda stop: self._fill_vectors(stop, progress), stop)

    def begin_vectors(self) -> None:
        """Compute them in the background."""
        self._jobs.vectors.begin(self._fill_vectors)

    def _fill_vectors(self, stop: Callable[[], bool], progress: Progress | None = None) -> int:
        with as_system():
            return self._lifecycle.fill_vectors(stop, progress)

    def capture(
        self,
        content: str,
        *,
        namespace: str = "context",
        tags: Sequence[str] = (),
        source: str | None = None,
        domain: Domain = "project",
        path: str | None = None,
        branch_id: str | None = None,
        git_branch: str | None = None,
        category: str | None = None,
        role: str | None = None,
        summary: str | None = None,
        user_id: str | None = None,
        agent_id: str | None = None,
        created_at: datetime | None = None,
        ttl: str | None = None,
        expires_at: datetime | None = None,
        idempotency_key: str | None = None,
        supersedes: str | None = None,
    ) -> Memory:
        """Store a text. When this returns, every process can find it.

        A secret in it is redacted (see `redactions` of the result) or refused, as configured. If the same text is
        already stored, `duplicate_of` names it. The memory named by `supersedes` is replaced. Repeating a call with the
        same `idempotency_key` returns the first record. `conflicts` finds older memories that contradict it.

        Names and statements are read into the graph afterwards (`pending`); whatever needs them waits for that.
        """
        if ttl is not None and expires_at is not None:
            raise InvalidInput("Both ttl and expires_at were given.", remedy="Give one of them.", field="ttl")
        item = NewMemory(
            content=content,
            namespace=namespace,
            domain=domain,
            tags=tags,  # type: ignore[arg-type]  # any sequence is accepted here and checked later
            source=source,
            path=path,
            branch_id=branch_id,
            git_branch=git_branch,
            category=category,
            role=role,
            summary=summary,
            user_id=user_id,
            agent_id=agent_id,
            created_at=created_at,
            expires_at=parse_ttl(ttl, self._clock.now()) if ttl is not None else expires_at,
            idempotency_key=idempotency_key,
            supersedes=None if supersedes is None else self._superseded_id(supersedes),
        )
        stored = self.capture_many([item])[0]
        if stored.pending:
            stored = self._capture.count_personal_data(stored, None)
        return stored

    def capture_many(self, items: Iterable[NewMemory], *, progress: Progress | None = None) -> list[Memory]:
        """Store many texts; returns the records in order. `progress` is called with (done, total)."""
        return self._capture.capture_many(items, progress)

    def warm_up(self) -> None:
        """Load what captures and recalls need, so that the first take no longer than later ones. Stores nothing."""
        if self._backend.name == "openai":
            return  # there is nothing to load, and an endpoint that is away would hold up the start
        self._recall.run(Query(text=_REHEARSED))
        self._capture.rehearse(_REHEARSED)
        # Imported on first use, here and below: recall does not need it.
        from .comparison.conflicts import rehearse

        rehearse(_REHEARSED)

    def finish_reading(self) -> bool:
        """Read the visible notes that wait for the graph; returns whether none is left after a few seconds."""
        return self._jobs.finish(self._place.spaces())

    def recall(
        self,
        query: str | None = None,
        *,
        filter: str = "",
        namespace: str | None = None,
        mode: Mode = "hybrid",
        limit: int | None = None,
        offset: int = 0,
        min_score: float | None = None,
        category: str | None = None,
        domain: Domain | None = None,
        user_id: str | None = None,
        agent_id: str | None = None,
        fusion: Fusion | None = None,
        prefer_newer: bool | None = None,
    ) -> Page:
        """Search by meaning and words, or list the newest memories if there is no query.

        Without a `min_score`, results whose score rounds to 0.00 are left out.

        With `prefer_newer` the latest of several results on one subject comes first, which suits questions about the
        present state.
        """
        self._settle(filter)
        page = self._timed(
            Query(
                text=query,
                filter=filter,
                namespace=namespace,
                mode=mode,
                limit=limit,
                offset=offset,
                min_score=min_score,
                category=category,
                domain=domain,
                user_id=user_id,
                agent_id=agent_id,
                fusion=fusion or self._settings.fusion,
                prefer_newer=self._settings.prefer_newer if prefer_newer is None else prefer_newer,
                with_turns=self._settings.recall_conversations,
            )
        )
        if query:
            self._recall_counter.note(hit.memory.id for hit in page.results)
        return page

    def get(self, ref: str) -> Memory:
        """A memory by id, unique prefix of at least 8 digits, context id, URN or URI."""
        found = self._lifecycle.get(ref)
        if found.personal is None and found.kind == "note":
            self.finish_reading()
            found = self._lifecycle.get(ref)
        return found

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
        ttl: str | None = None,
        expected_version: int | None = None,
    ) -> Memory:
        """Change a memory; the old version stays in its history."""
        self.finish_reading()
        memory = self._lifecycle.update(
            ref,
            content=content,
            tags=tags,
            namespace=namespace,
            source=source,
            summary=summary,
            status=status,
            expires_at=parse_ttl(ttl, self._clock.now()) if ttl is not None else None,
            expected_version=expected_version,
        )
        return self._notify([memory])[0]

    def delete(self, ref: str, *, hard: bool = False) -> Memory:
        """Delete a memory. `restore` undoes this, unless it is `hard`."""
        return self._notify([self._lifecycle.delete(ref, hard=hard)])[0]

    def restore(self, ref: str) -> Memory:
        """Undo the deletion of a memory."""
        return self._notify([self._lifecycle.restore(ref)])[0]

    def history(self, ref: str) -> list[Version]:
        """All versions of a memory, oldest first."""
        return self._lifecycle.history(ref)

    def gc(
        self,
        *,
        dry_run: bool = False,
        branch: str | None = None,
        purge: bool = False,
        older_than: str | None = None,
        progress: Progress | None = None,
    ) -> GcResult:
        """Tombstone expired memories and those of deleted git branches; with `purge`, remove old tombstones.

        Idle memories are compressed. If `progress` raises before the last step, nothing is changed.
        """
        collected = self._collector.run(
            dry_run=dry_run, branch=branch, purge=purge, older_than=older_than, progress=progress
        )
        if not dry_run:
            # Compression covers the whole store, whatever the caller may write.
            with as_system():
                self._compressor.run()
            self._publish_changes(collected.branches)
        return collected

    def write_uses(self) -> None:
        """Store the recalls and loads counted since the last call; a recall itself writes nothing."""
        with as_system():
            self._recall_counter.write()
            self._compressor.write_uses()

    def compress(self, stop: Callable[[], bool] = lambda: False) -> CompressionResult:
        """Compress the contents of idle memories without loss; `stop` is called between batches."""
        return self._compressor.run(stop)

    def annotate(self, stop: Callable[[], bool] = lambda: False) -> int:
        """Annotate the memories that were stored without an annotator; returns how many."""
        return self._lifecycle.annotate(stop)

    def look_for_personal_data(self, stop: Callable[[], bool] = lambda: False, *, space: str | None = None) -> int:
        """Scan the memories that were not scanned for personal data yet; returns how many."""
        with as_system():
            return self._lifecycle.look_for_personal_data(stop, space)

    def used(self, memory: Memory) -> None:
        """Record that a memory was loaded, so that it does not count as idle."""
        self._compressor.mark_used(memory.id)

    def keep_verification(self, memory: Memory, result: str) -> None:
        """Store the result of verifying a memory against its project, as JSON."""
        with self._store.database.write(self._lifecycle.space_of(memory.id)) as session:
            space = self._lifecycle.locate(session, memory.id)[1]
            require_write(space)
            self._store.verifications.put(session, space, memory.id, to_micros(self._clock.now()), result)

    def verification(self, ref: str) -> str | None:
        """The result of verifying a memory against its project, as JSON; None if there is none."""
        with self._store.database.read() as session:
            _, space, memory = self._lifecycle.locate(session, ref)
            return self._store.verifications.get(session, space, memory.id)

    def reindex(self, *, project_id: str | None = None, progress: Progress | None = None) -> ReindexResult:
        """Rebuild the text index and the vectors from the records, of the whole store or of one project.

        A caller of a shared server rebuilds the visible spaces that they may write. If `progress` raises, the run stops
        between two batches; repeating it completes the work.
        """
        spaces: tuple[str, ...] | None = None
        if project_id is not None:
            require_write(project_id)
            spaces = tuple(kind_space(project_id, kind) for kind in KINDS)
        elif current_caller() is not None:
            spaces = tuple(self._place.writable_space("project", kind) for kind in KINDS)
            spaces += tuple(space for space in self._place.spaces("write") if space not in spaces)
        return self._lifecycle.reindex(progress, spaces)

    def status(self) -> MemoryStatus:
        """Counts, recent topics and top tags of the visible memories."""
        # Imported on first use: its tables take a while to load.
        from .labels.topics import find_topics

        self._place.sync_git_state()
        self.finish_reading()
        bound = current_caller() is not None
        with self._store.database.read() as session:
            scope = self._store.scope(session, EVERYTHING, self._place.view(to_micros(self._clock.now())))
            namespaces = self._store.statistics.by_namespace(session, scope.where)
            pending, outlines = self._pending_vectors(session)
            tags = [one for one in self._store.statistics.top_tags(session, scope, None) if tells_subject(one[0])]
            return MemoryStatus(
                project_id=self._place.project.id,
                project_name=self._place.project.name,
                project_remote=self._place.project.remote,
                path=self._place.project.root,
                branch=self._place.git_branch(),
                engine=self._store.database.name,
                total_count=sum(namespaces.values()),
                namespace_counts=namespaces,
                status_counts=self._store.statistics.by_status(session, scope.spaces),
                recent_topics=find_topics(self._store, session, scope.where),
                top_tags=tuple(tags[:_TOP_TAGS]),
                size_bytes=0 if bound else self._store.database.size_bytes(),
                model=self._store.settings.get(session, "embedding"),
                llm_use=()
                if bound
                else tuple(self._store.llm_usage.of_day(session, self._clock.now().date().isoformat())),
                grounding_counts=self._store.verifications.counts(session, scope.where),
                personal_counts=self._store.statistics.by_personal(session, scope.where),
                pending_vectors=pending,
                pending_outlines=outlines,
            )

    def _pending_vectors(self, session: Session) -> tuple[int, int]:
        """How many records have no vector, and how many of them are the first parts of files."""
        mine = (*self._place.spaces(), *(self._place.space("project", kind) for kind in KINDS[1:]))
        waiting = [one for one in spaces_without_vectors(self._store, session) if one in mine]
        waiting = list(permitted_spaces(waiting))
        if not waiting:
            return 0, 0
        files = [one for one in waiting if one == self._place.space("project", "file")]
        outlines = sum(len(self._store.memories.heads_without_vectors(session, one)) for one in files)
        return self._store.memories.count_without_vectors(session, waiting), outlines

    def tags(self, prefix: str = "", *, limit: int = 100) -> tuple[tuple[str, int], ...]:
        """Tags that begin with a prefix, most used first, each with its number of memories."""
        self._place.sync_git_state()
        with self._store.database.read() as session:
            scope = self._store.scope(session, EVERYTHING, self._place.view(to_micros(self._clock.now())))
            return tuple(self._store.statistics.top_tags(session, scope, limit, prefix.lower()))

    def facets(
        self, filter: str = "", *, among: Sequence[str] | None = None, limit: int = 12
    ) -> dict[str, tuple[tuple[str, int], ...]]:
        """What the memories that match a filter, and are among those with some ids, have in common: by key of the
        filter language, the most frequent values, each with its number of memories."""
        if among is not None and not among:
            return {}
        self._place.sync_git_state()
        self._settle(filter)
        now = self._clock.now()
        parsed = parse_filter(filter, now=now).filter
        with self._store.database.read() as session:
            scope = self._store.scope(session, parsed, self._place.view(to_micros(now)))
            scope = scope if among is None else scope.among(among)
            where, counts = scope.where, self._store.statistics
            columns = counts.by_columns(session, where, tuple(_FACET_COLUMNS.values()), limit)
            found = {key: tuple(values) for key, values in zip(_FACET_COLUMNS, columns, strict=True)}
            named = {one.id: one.name for one in self._store.projects.all(session)}
            found["project"] = tuple((named.get(one, one), count) for one, count in found["project"])
            ages = [to_micros(parse_moment(age, now=now)) for age in _AGES]
            since = counts.since(session, where, ages)
            # An age that adds nothing to a shorter one says nothing.
            found["since"] = tuple(
                (age, now) for age, now, before in zip(_AGES, since, (0, *since), strict=False) if now > before
            )
            found["tag"] = tuple(counts.top_tags(session, scope, limit))
            found["grounded"] = tuple(one for one in self._store.verifications.counts(session, where).items() if one[1])
        return {key: values for key, values in found.items() if values}

    def days(self, *, shift_minutes: int = 0, filter: str = "") -> list[tuple[date, int]]:
        """How many visible memories were captured on each day, newest first. `shift_minutes` is added to UTC."""
        self._place.sync_git_state()
        with self._store.database.read() as session:
            found = self._store.statistics.by_day(session, self._visible(session, filter), shift_minutes * _MINUTE)
        return [(_FIRST_DAY + timedelta(days=day), count) for day, count in found]

    def captured_between(
        self, since: datetime, before: datetime, *, limit: int, offset: int = 0, filter: str = ""
    ) -> list[Memory]:
        """The visible memories of a period, newest first."""
        self._place.sync_git_state()
        span = to_micros(since), to_micros(before)
        with self._store.database.read() as session:
            return self._store.memories.list_between(session, self._visible(session, filter), *span, limit, offset)

    def moments_between(
        self, since: datetime, before: datetime, *, limit: int, offset: int = 0, filter: str = ""
    ) -> list[datetime]:
        """When the memories of `captured_between` were captured: cheaper than the memories themselves."""
        self._place.sync_git_state()
        span = to_micros(since), to_micros(before)
        with self._store.database.read() as session:
            found = self._store.memories.moments(session, self._visible(session, filter), *span, limit, offset)
        return [from_micros(one) for one in found]

    def uses(self, ref: str) -> MemoryUses:
        """How often a memory was recalled, and when last."""
        with self._store.database.read() as session:
            _, space, memory = self._lifecycle.locate(session, ref)
            count, at = self._store.recalls.of(session, space, memory.id)
        more, later = self._recall_counter.waiting(memory.id)
        last = max(at, later)
        return MemoryUses(count + more, from_micros(last) if last else None)

    def recall_times(self) -> list[float]:
        """How long the last searches in this process took, in milliseconds, oldest first."""
        return list(self._recall_times)

    def marks(self, query: str, text: str) -> list[tuple[int, int]]:
        """Where a text has words of a query, as (start, end): what to highlight."""
        return matching_spans(text, leading_query_terms(query)) if query.strip() else []

    def ids(self, prefix: str = "", *, limit: int = 100) -> tuple[str, ...]:
        """Ids of visible memories that begin with a prefix, newest first."""
        self._place.sync_git_state()
        with self._store.database.read() as session:
            return tuple(self._store.statistics.ids(session, self._visible(session), prefix.lower(), limit))

    def revision(self) -> int:
        """A number that grows with every change by any process in the spaces that the caller may read."""
        with self._store.database.read() as session:
            return self._store.statistics.revision(session)

    def namespaces(self) -> tuple[Namespace, ...]:
        """The namespaces that a memory can have."""
        return NAMESPACES

    # -- consolidation ----------------------------------------------------------------------------

    def consolidate(
        self,
        namespace: str | None = None,
        *,
        strategy: Strategy = "merge",
        query: str | None = None,
        dry_run: bool = False,
        method: str = "auto",
        progress: Progress | None = None,
    ) -> ConsolidationResult:
        """Merge memories that say the same (`merge`, `dedupe`) or belong together (`summarize`).

        The originals become superseded; `undo` restores them. `query` selects the memories to compare. `method` is
        `auto`, `local` or `llm`. If `progress` raises, the run stops between two groups.
        """
        from .consolidation.merging import check_method

        self.finish_reading()
        done = self._consolidator.run(
            namespace, strategy=strategy, query=query, dry_run=dry_run, method=check_method(method), progress=progress
        )
        self._publish_changes(done.branches)
        return done

    def undo(self, ref: str) -> UndoResult:
        """Undo the consolidation that made a memory: delete it and restore the originals."""
        undone = self._supersession.undo(ref)
        self._publish_changes(undone.branches)
        return undone

    def supersede(self, older: str, newer: str) -> Memory:
        """Replace one memory by another; returns the older, which recall no longer shows."""
        return self._notify([self._supersession.replace(older, newer)])[0]

    def chain(self, ref: str) -> list[Memory]:
        """A memory with all that it replaced and all that replaced it, oldest first."""
        return self._supersession.chain(ref)

    def origins(self, ref: str) -> tuple[str, ...]:
        """Ids of the memories that one was made from or replaces, oldest first."""
        return self._supersession.origins(ref)

    def conflicts(self, memory: Memory | str) -> tuple[Contradiction, ...]:
        """Search for memories that contradict one, each with the difference."""
        from .comparison.conflicts import contradictions

        memory = self._lifecycle.get(memory) if isinstance(memory, str) else memory
        return contradictions(memory, self._compared_with(memory))

    def counterparts(self, memory: Memory | str) -> list[Counterpart]:
        """Memories that repeat or contradict one, each with the reason, and a text that merges those that repeat it."""
        from .comparison.conflicts import counterparts

        memory = self._lifecycle.get(memory) if isinstance(memory, str) else memory
        return counterparts(memory, self._compared_with(memory))

    def _compared_with(self, memory: Memory) -> list[tuple[Memory, float]]:
        """The notes nearest to a memory with which it can be compared, each with its cosine."""
        from .comparison.conflicts import COMPARED, is_comparable

        near = self._neighbours.near(memory, COMPARED) if is_comparable(memory) else []
        return [(other, cosine) for other, cosine in near if is_comparable(other)]

    def enrich(
        self,
        ref: str,
        *,
        tags: bool = True,
        structure: bool = True,
        context: bool = False,
        method: str = "auto",
        dry_run: bool = False,
    ) -> EnrichmentResult:
        """Add tags, a better form, and context from the store to a memory.

        The old version stays in its history. Nothing is added that has no source in the store.
        """
        from .consolidation.merging import check_method

        self._place.sync_git_state()
        self.finish_reading()
        done = self._enricher.run(
            self._lifecycle.get(ref),
            tags=tags,
            structured=structure,
            context=context,
            method=check_method(method),
            dry_run=dry_run,
        )
        if done.changed and not dry_run:
            self._notify([done.memory])
        return done

    def suggest(self) -> list[HygieneFinding]:
        """What could be cleaned up, each with the command that does it."""
        from .consolidation.consolidation import Hygiene

        return Hygiene(self._store, self._clock, self._place, self._consolidator, self.conflicts).report()

    # -- internal queries: they do not count as recalls -------------------------------------------

    def related(self, text: str, limit: int, *, mode: Mode = "text", filter: str = "") -> list[Hit]:
        """Memories about a text, best first: by words, or by meaning too."""
        return list(self._recall.run(Query(text=text, filter=filter, mode=mode, limit=limit, min_score=0.0)).results)

    def look_up(self, query: str, *, filter: str = "", limit: int | None = None, offset: int = 0) -> Page:
        """A recall for a person who browses: by meaning and words, and it does not count as a use."""
        self._settle(filter)
        return self._timed(
            Query(
                text=query, filter=filter, limit=limit, offset=offset, fusion=self._settings.fusion,
                prefer_newer=self._settings.prefer_newer,
            )
        )  # fmt: skip

    def listed(self, filter: str, limit: int) -> list[Memory]:
        """The newest memories that match a filter."""
        self._settle(filter)
        return [hit.memory for hit in self._recall.run(Query(text=None, filter=filter, limit=limit)).results]

    def visible(self, ids: Sequence[str]) -> dict[str, Memory]:
        """The visible ones of some memories by id, including parts of scanned files."""
        if not ids:
            return {}
        with self._store.database.read() as session:
            where = self._visible_with_files(session)
            return {memory.id: memory for _, memory in self._store.memories.by_ids(session, ids, where)}

    def vectors(self, ids: Sequence[str]) -> dict[str, NDArray[np.float32]]:
        """One vector of length 1 for each visible memory of some."""
        if not ids:
            return {}
        with self._store.database.read() as session:
            where = self._visible_with_files(session)
            rows = self._store.memories.numbers(session, ids, where)
            return dict(zip(rows, self._store.vectors(session, where.spaces, list(rows.values())), strict=True))

    @cached_property
    def _consolidator(self) -> Consolidator:
        # Imported on first use: capture and recall do not need it.
        from .consolidation.consolidation import Consolidator
        from .consolidation.merging import TextMerger

        merger = TextMerger(self._model)
        store, backend, clock, ids = self._store, self._backend, self._clock, self._ids
        return Consolidator(store, backend, clock, ids, self._place, self._capture, self._recall, merger)

    # -- helpers ----------------------------------------------------------------------------------

    def _superseded_id(self, ref: str) -> str:
        try:
            return self._lifecycle.get(ref).id
        except (NotFound, AmbiguousId, InvalidInput) as error:
            error.field = "supersedes"
            raise

    def _settle(self, filter: str) -> None:
        """Read the notes that wait for the graph before a filter asks what they name."""
        asked = parse_filter(filter, now=self._clock.now()).filter if filter else EVERYTHING
        if asked.having("entity") or asked.having("personal"):
            self.finish_reading()

    def _notify(self, memories: list[Memory]) -> list[Memory]:
        """Publish that memories changed, and return them."""
        self._capture.publish(memories)
        return memories

    def _publish_changes(self, branches: frozenset[str]) -> None:
        if branches:
            self._events.publish(MemoriesChanged(branches))

    def _timed(self, query: Query) -> Page:
        """Run a search, and note how long it took."""
        self._jobs.note_call()
        begun = time.perf_counter()
        page = self._recall.run(query)
        if query.text:
            self._recall_times.append(1e3 * (time.perf_counter() - begun))
        return page

    def _visible(self, session: Session, filter: str = "") -> Where:
        now = self._clock.now()
        wanted = parse_filter(filter, now=now).filter if filter else EVERYTHING
        return self._store.scope(session, wanted, self._place.view(to_micros(now))).where

    def _visible_with_files(self, session: Session) -> Where:
        place, now = self._place, to_micros(self._clock.now())
        kinds = (place.space("project", kind) for kind in KINDS[1:])
        view = View((*place.spaces(), *kinds), now, place.git_branch())
        return self._store.scope(session, EVERYTHING, view).where
