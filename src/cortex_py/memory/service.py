"""`cortex.memories`: everything that can be done with memories, in one place."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from dataclasses import replace
from datetime import datetime
from typing import TYPE_CHECKING

from ..clock import Clock, to_micros
from ..config import Fusion, Settings
from ..embedding.backend import Backend
from ..errors import AmbiguousId, InvalidInput, NotFound
from ..ids import IdMaker
from ..records import Domain, Memory, Mode, NewMemory, Page, Version, files_space
from ..records import Status as RecordStatus
from ..security.callers import acting_as, current_caller
from ..security.permission import require_write
from ..store.conditions import EVERYTHING
from ..store.database import Session
from ..store.store import Store
from ..store.where import Where
from .annotating import Annotator
from .capture import Capture, Progress, expiry
from .carrying import Carried
from .compressing import Compressed, Compressor
from .enrichment import Surroundings, known_nothing
from .file_capture import FileCapture
from .gc import Collected, GarbageCollector, StaleBranches
from .lifecycle import Lifecycle, Reindexed
from .looking import LookingOperations
from .namespaces import NAMESPACES, Namespace
from .place import Place
from .recall import Query, Recall
from .status import Status, read_status
from .tidying import TidyOperations
from .uses import Uses

if TYPE_CHECKING:
    from ..llm.client import LanguageModel

__all__ = ["Memories", "Touched"]

Touched = Callable[[frozenset[str]], None]


class Memories(TidyOperations, LookingOperations):
    """The memories that a caller at one place sees and writes."""

    def __init__(
        self,
        store: Store,
        backend: Backend,
        settings: Settings,
        clock: Clock,
        ids: IdMaker,
        place: Place,
        stale_branches: StaleBranches,
        touched: Touched = lambda _branches: None,
        annotator: Annotator | None = None,
        model: Callable[[], LanguageModel | None] = lambda: None,
        surroundings: Surroundings = known_nothing,
    ) -> None:
        """`touched` is told which lines of work a change has reached, once it is safe.

        `model` gives the language model where one is configured, `surroundings` what is known around a memory.
        """
        self._store = store
        self._backend = backend
        self._clock = clock
        self._settings = settings
        self._ids = ids
        self._place = place
        self._capture = Capture(store, backend, settings, clock, ids, place, annotator)
        self._recall = Recall(store, backend, clock, place)
        self._lifecycle = Lifecycle(store, backend, settings, clock, self._capture)
        self._collector = GarbageCollector(store, clock, place, stale_branches)
        self._compressor = Compressor(store, clock, settings.compress_after_minutes)
        self._files = FileCapture(store, backend, settings, clock, ids, place, self._capture)
        self._touched = touched
        self._uses = Uses(store, clock)
        self._tidy(model, surroundings)

    @property
    def place(self) -> Place:
        """Where the caller stands."""
        return self._place

    def count_tokens(self, text: str) -> int:
        """How long a text is for the embedding model; for a language model it is an estimate."""
        return self._backend.count_tokens(text)

    @property
    def files(self) -> FileCapture:
        """The parts of the project's files among the memories."""
        return self._files

    def carried(self, space: str) -> Carried:
        """Makes memories that come from elsewhere ready for a space."""
        return Carried(self._store, self._capture, self._backend, space)

    def fill_vectors(self, stop: Callable[[], bool] = lambda: False) -> int:
        """Make the vectors of memories that came without any, or with those of another model."""
        with acting_as(None):
            return self._lifecycle.fill_vectors(stop)

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
        """Remember a text. When this returns, every process finds it.

        A secret in it is redacted (see `redactions` of the result) or refused, as configured. A text
        that is already there is stored again and says so in `duplicate_of`. Older memories that say something
        else of the same thing are told in `conflicts_with`; one that is named in `supersedes` is replaced.
        Repeating a call with the same `idempotency_key` returns the first record.
        """
        if ttl is not None and expires_at is not None:
            raise InvalidInput("Both ttl and expires_at were given.", remedy="Give one of them.", field="ttl")
        item = NewMemory(
            content=content,
            namespace=namespace,
            domain=domain,
            tags=tags,  # type: ignore[arg-type]  # any sequence is taken here and checked on the way in
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
            expires_at=expiry(ttl, self._clock.now()) if ttl is not None else expires_at,
            idempotency_key=idempotency_key,
            supersedes=None if supersedes is None else self._superseded(supersedes),
        )
        stored = self.capture_many([item])[0]
        return replace(stored, conflicts_with=self._conflicts.of(stored))

    def capture_many(self, items: Iterable[NewMemory], *, progress: Progress | None = None) -> list[Memory]:
        """Remember many texts; returns the records in order. `progress` is told (done, total)."""
        return self._told(self._capture.capture_many(items, progress))

    def recall(
        self,
        query: str | None = None,
        *,
        filter: str = "",
        namespace: str | None = None,
        mode: Mode = "hybrid",
        limit: int | None = None,
        offset: int = 0,
        min_score: float = 0.0,
        category: str | None = None,
        domain: Domain | None = None,
        user_id: str | None = None,
        agent_id: str | None = None,
        fusion: Fusion | None = None,
        prefer_newer: bool | None = None,
    ) -> Page:
        """Search by meaning and words, or list the newest first when there is no query.

        With `prefer_newer` the latest of several results on one subject comes first, as suits questions about how
        things are now.
        """
        page = self._recall.run(
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
            )
        )
        if query:
            self._uses.note(hit.memory.id for hit in page.results)
        return page

    def get(self, ref: str) -> Memory:
        """One memory by id, unique prefix of at least 8 digits, context id, URN or URI."""
        return self._lifecycle.get(ref)

    def update(
        self,
        ref: str,
        *,
        content: str | None = None,
        tags: Sequence[str] | None = None,
        namespace: str | None = None,
        source: str | None = None,
        status: RecordStatus | None = None,
        ttl: str | None = None,
        expected_version: int | None = None,
    ) -> Memory:
        """Change a memory; the former version stays in its history."""
        memory = self._lifecycle.update(
            ref,
            content=content,
            tags=tags,
            namespace=namespace,
            source=source,
            status=status,
            expires_at=expiry(ttl, self._clock.now()) if ttl is not None else None,
            expected_version=expected_version,
        )
        return self._told([memory])[0]

    def delete(self, ref: str, *, hard: bool = False) -> Memory:
        """Delete a memory so that `restore` can bring it back, or, with `hard`, for good."""
        return self._told([self._lifecycle.delete(ref, hard=hard)])[0]

    def restore(self, ref: str) -> Memory:
        """Bring a deleted memory back."""
        return self._told([self._lifecycle.restore(ref)])[0]

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
    ) -> Collected:
        """Tombstone memories of deleted git branches and expired ones; with `purge` remove tombstones.

        Idle memories are packed.

        A `progress` that raises before the last step stops the run, and nothing has changed.
        """
        collected = self._collector.run(
            dry_run=dry_run, branch=branch, purge=purge, older_than=older_than, progress=progress
        )
        if not dry_run:
            # All that lies idle is packed, whoever asks.
            with acting_as(None):
                self._compressor.run()
            if collected.branches:
                self._touched(collected.branches)
        return collected

    def write_uses(self) -> None:
        """Write down what was recalled since the last time; a recall itself writes nothing."""
        with acting_as(None):
            self._uses.write()
            self._compressor.write_uses()

    def compress(self, stop: Callable[[], bool] = lambda: False) -> Compressed:
        """Pack the contents of memories that lie idle, without loss; `stop` is asked between two batches."""
        return self._compressor.run(stop)

    def annotate(self, stop: Callable[[], bool] = lambda: False) -> int:
        """Read for the graph what was stored before there was one; returns how many memories that were."""
        return self._lifecycle.annotate(stop)

    def used(self, memory: Memory) -> None:
        """Note that a memory was loaded, so that it does not count as idle."""
        self._compressor.used(memory.id)

    def keep_verification(self, memory: Memory, result: str) -> None:
        """Keep what a check of a memory against its project found, as JSON."""
        with self._store.database.write() as session:
            space = self._lifecycle.locate(session, memory.id)[1]
            require_write(space)
            self._store.verifications.put(session, space, memory.id, to_micros(self._clock.now()), result)

    def verification(self, ref: str) -> str | None:
        """What a check of a memory against its project found, as JSON; None where none was made."""
        with self._store.database.read() as session:
            _, space, memory = self._lifecycle.locate(session, ref)
            return self._store.verifications.get(session, space, memory.id)

    def reindex(self, *, project_id: str | None = None, progress: Progress | None = None) -> Reindexed:
        """Rebuild text index and vectors from the records: of the whole store, or of one project.

        A caller of a shared server rebuilds what they may write of what is seen from here.

        A `progress` that raises stops the run between two batches; repeating it completes the work.
        """
        spaces: tuple[str, ...] | None = None
        if project_id is not None:
            require_write(project_id)
            spaces = (project_id, files_space(project_id))
        elif current_caller() is not None:
            spaces = (self._place.writing("project"), self._place.writing("project", "file"))
            spaces += tuple(space for space in self._place.spaces("write") if space not in spaces)
        return self._lifecycle.reindex(progress, spaces)

    def status(self) -> Status:
        """Counts, recent topics and top tags of what is visible here."""
        self._place.arrive()
        return read_status(self._store, self._clock, self._place)

    def tags(self, prefix: str = "", *, limit: int = 100) -> tuple[tuple[str, int], ...]:
        """Tags in use here that begin with a prefix, the most used first, with how many memories have each."""
        self._place.arrive()
        with self._store.database.read() as session:
            return tuple(self._store.statistics.top_tags(session, self._visible(session), limit, prefix.lower()))

    def ids(self, prefix: str = "", *, limit: int = 100) -> tuple[str, ...]:
        """Ids of visible memories that begin with a prefix, the newest first."""
        self._place.arrive()
        with self._store.database.read() as session:
            return tuple(self._store.statistics.ids(session, self._visible(session), prefix.lower(), limit))

    def revision(self) -> int:
        """A number that grows with every change to the store, by whichever process."""
        with self._store.database.read() as session:
            return self._store.statistics.revision(session)

    def _superseded(self, ref: str) -> str:
        try:
            return self._lifecycle.get(ref).id
        except (NotFound, AmbiguousId, InvalidInput) as error:
            error.field = "supersedes"
            raise

    def _told(self, memories: list[Memory]) -> list[Memory]:
        """Pass changed memories on, after telling which lines of work they belong to."""
        if branches := frozenset(one.branch_id for one in memories if one.branch_id):
            self._touched(branches)
        return memories

    def _visible(self, session: Session) -> Where:
        return self._store.scope(session, EVERYTHING, self._place.view(to_micros(self._clock.now()))).where

    def namespaces(self) -> tuple[Namespace, ...]:
        """The namespaces a memory can have."""
        return NAMESPACES
