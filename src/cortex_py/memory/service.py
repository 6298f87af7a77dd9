"""`cortex.memories`: everything that can be done with memories, in one place."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from datetime import datetime

from ..clock import Clock, to_micros
from ..config import Fusion, Settings
from ..embedding.backend import Backend
from ..errors import InvalidInput
from ..ids import IdMaker
from ..records import Domain, Memory, Mode, NewMemory, Page, Version
from ..records import Status as RecordStatus
from ..store.conditions import EVERYTHING
from ..store.database import Session
from ..store.store import Store
from ..store.where import Where
from .capture import Capture, Progress, expiry
from .gc import Collected, GarbageCollector, StaleBranches
from .lifecycle import Lifecycle, Reindexed
from .namespaces import NAMESPACES, Namespace
from .place import Place
from .recall import Query, Recall
from .status import Status, read_status

__all__ = ["Memories"]


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
        stale_branches: StaleBranches,
    ) -> None:
        self._store = store
        self._clock = clock
        self._settings = settings
        self._place = place
        self._capture = Capture(store, backend, settings, clock, ids, place)
        self._recall = Recall(store, backend, clock, place)
        self._lifecycle = Lifecycle(store, backend, settings, clock, self._capture)
        self._collector = GarbageCollector(store, clock, place, stale_branches)

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
    ) -> Memory:
        """Remember a text. When this returns, every process finds it.

        A secret in it is redacted (see `redactions` of the result) or refused, as configured. A text
        that is already there is stored again and says so in `duplicate_of`. Repeating a call with the
        same `idempotency_key` returns the first record.
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
        )
        return self._capture.capture_many([item])[0]

    def capture_many(self, items: Iterable[NewMemory], *, progress: Progress | None = None) -> list[Memory]:
        """Remember many texts; returns the records in order. `progress` is told (done, total)."""
        return self._capture.capture_many(items, progress)

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
    ) -> Page:
        """Search by meaning and words, or list the newest first when there is no query."""
        return self._recall.run(
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
            )
        )

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
        return self._lifecycle.update(
            ref,
            content=content,
            tags=tags,
            namespace=namespace,
            source=source,
            status=status,
            expires_at=expiry(ttl, self._clock.now()) if ttl is not None else None,
            expected_version=expected_version,
        )

    def delete(self, ref: str, *, hard: bool = False) -> Memory:
        """Delete a memory so that `restore` can bring it back, or, with `hard`, for good."""
        return self._lifecycle.delete(ref, hard=hard)

    def restore(self, ref: str) -> Memory:
        """Bring a deleted memory back."""
        return self._lifecycle.restore(ref)

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

        A `progress` that raises before the last step stops the run, and nothing has changed.
        """
        return self._collector.run(
            dry_run=dry_run, branch=branch, purge=purge, older_than=older_than, progress=progress
        )

    def reindex(self, *, project_id: str | None = None, progress: Progress | None = None) -> Reindexed:
        """Rebuild text index and vectors from the records: of the whole store, or of one project.

        A `progress` that raises stops the run between two batches; repeating it completes the work.
        """
        return self._lifecycle.reindex(progress, project_id)

    def status(self) -> Status:
        """Counts, recent topics and top tags of what is visible here."""
        return read_status(self._store, self._clock, self._place)

    def tags(self, prefix: str = "", *, limit: int = 100) -> tuple[tuple[str, int], ...]:
        """Tags in use here that begin with a prefix, the most used first, with how many memories have each."""
        with self._store.database.read() as session:
            return tuple(self._store.statistics.top_tags(session, self._visible(session), limit, prefix.lower()))

    def ids(self, prefix: str = "", *, limit: int = 100) -> tuple[str, ...]:
        """Ids of visible memories that begin with a prefix, the newest first."""
        with self._store.database.read() as session:
            return tuple(self._store.statistics.ids(session, self._visible(session), prefix.lower(), limit))

    def revision(self) -> int:
        """A number that grows with every change to the store, by whichever process."""
        with self._store.database.read() as session:
            return self._store.statistics.revision(session)

    def _visible(self, session: Session) -> Where:
        return self._store.scope(session, EVERYTHING, self._place.spaces(), to_micros(self._clock.now())).where

    def namespaces(self) -> tuple[Namespace, ...]:
        """The namespaces a memory can have."""
        return NAMESPACES
