"""Capture: what a caller gives becomes a stored, searchable record, or nothing changes at all."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Sequence
from concurrent.futures import Future, ThreadPoolExecutor
from dataclasses import replace
from datetime import datetime
from functools import partial

from ..clock import Clock, in_utc, to_micros
from ..config import Settings
from ..embedding.backend import Backend
from ..errors import BranchNotFound, Conflict, InvalidInput
from ..ids import IdMaker
from ..records import LIVE_STATUSES, Memory, NewMemory
from ..security.callers import current_caller
from ..store.database import Session
from ..store.repeating import repeated
from ..store.rows import Prepared
from ..store.store import Store
from .annotating import Annotator, Stored
from .filters import is_duration, parse_moment
from .labelling import Labels
from .model import check_model
from .namespaces import canonical_namespace
from .ontology import canonical_category
from .place import Place, canonical_domain
from .prepare import check_fields, check_text, clean_tags, draft, embed_drafts, without_secrets

__all__ = ["Capture", "Progress", "embedded_ahead", "expiry"]

Progress = Callable[[int, int], None]

# Enough for the model to sort by length, few enough to hold in memory and acknowledge soon.
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
    ) -> None:
        self._store = store
        self._backend = backend
        self._settings = settings
        self._clock = clock
        self._ids = ids
        self._place = place
        self.labels = Labels(backend)
        self.annotator = annotator

    def capture_many(self, items: Iterable[NewMemory], progress: Progress | None = None) -> list[Memory]:
        """Store records in order. All are checked before the first is written."""
        self._place.arrive()
        git_branch = self._place.git_branch()
        linked = self._linked(git_branch)
        given = list(items)
        records = [self._record(item, git_branch, linked) for item in given]
        for domain, kind in {(record.domain, record.kind) for record in records}:
            self._place.writing(domain, kind)
        self._check_branches(records)
        batches = [slice(low, low + _BATCH) for low in range(0, len(given), _BATCH)]
        stored: list[Memory] = []
        for batch, prepared in zip(batches, self._prepare(given, records, batches), strict=True):
            filed = [self.labels.given_to(one, item) for one, item in zip(prepared, given[batch], strict=True)]
            keyed = all(record.idempotency_key for record in filed)
            stored += repeated(partial(self._write, filed, given[batch]), keyed=keyed)
            if progress:
                progress(len(stored), len(given))
        return stored

    def _prepare(
        self, given: Sequence[NewMemory], records: Sequence[Memory], batches: Sequence[slice]
    ) -> Iterator[list[Prepared]]:
        """Batches with their vectors. While the model works on one, the next is cut and the last is written."""
        drafts = (self._drafts(given[batch], records[batch]) for batch in batches)
        if len(batches) == 1:
            yield embed_drafts(next(drafts), self._backend)
        else:
            yield from embedded_ahead(drafts, self._backend)

    def _drafts(self, given: Sequence[NewMemory], records: Sequence[Memory]) -> list[Prepared]:
        return [
            self.redraft(record, self._place.space(record.domain, record.kind), item.idempotency_key)
            for item, record in zip(given, records, strict=True)
        ]

    def redraft(self, memory: Memory, space: str, idempotency_key: str | None = None) -> Prepared:
        """A record made ready again, after its content changed or its index is rebuilt."""
        return draft(
            memory,
            space=space,
            idempotency_key=idempotency_key,
            count_tokens=self._backend.count_tokens,
            window=self._backend.max_tokens,
        )

    def _linked(self, git_branch: str | None) -> str | None:
        """The line of work that belongs to the git branch, if one is linked."""
        if git_branch is None:
            return None
        with self._store.database.read() as session:
            branch = self._store.branches.linked_to(session, self._place.project.id, git_branch)
        return branch.id if branch else None

    def _record(self, item: NewMemory, git_branch: str | None, linked: str | None) -> Memory:
        """The checked and cleaned record of what a caller gave."""
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
            # Known callers cannot write in the name of others.
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
            memory = replace(memory, confinement=self._place.confinement(memory.git_branch))
        check_fields(memory)
        return self.screened(memory)

    def screened(self, memory: Memory) -> Memory:
        """The record as it may be kept, by the policy on secrets."""
        return without_secrets(memory, self._settings.secrets)

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

    def _write(self, records: Sequence[Prepared], given: Sequence[NewMemory]) -> list[Memory]:
        notes = [self.annotator.read(record.memory) for record in records] if self.annotator else [None] * len(records)
        with self._store.database.write() as session:
            check_model(self._store, session, self._backend, claim=True)
            seq = self._store.memories.next_seq(session)
            repeated = self._repeated(session, records)
            twins = self._twins(session, records)
            stored: list[Memory] = []
            fresh: list[tuple[Prepared, NewMemory, object]] = []
            for record, item, note in zip(records, given, notes, strict=True):
                known = repeated.get((record.space, record.idempotency_key or ""))
                if known is None:
                    record = _named_twin(self._stamped(record) if item.created_at is None else record, twins)
                    known = record.memory
                    fresh.append((record, item, note))
                    if record.idempotency_key:
                        repeated[(record.space, record.idempotency_key)] = known
                stored.append(known)
            nums = self._store.memories.insert_all(session, [record for record, _, _ in fresh], seq)
            for record, item, _ in fresh:
                if item.supersedes:
                    self._supersede(session, record.space, item.supersedes, record.memory, seq)
            if self.annotator:
                self.annotator.write(
                    session,
                    [
                        Stored(num, record.space, record.memory, note)
                        for num, (record, _, note) in zip(nums, fresh, strict=True)
                    ],
                )
            return stored

    def _stamped(self, record: Prepared) -> Prepared:
        """The record named and dated under the write lock, so that both follow the order of commits."""
        now = self._clock.now()
        return replace(record, memory=replace(record.memory, id=self._ids.new(), created_at=now, updated_at=now))

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

    def _twins(self, session: Session, records: Sequence[Prepared]) -> dict[tuple[str, bytes], str]:
        found = {}
        for space in {record.space for record in records}:
            digests = [record.digest for record in records if record.space == space]
            for digest, twin in self._store.memories.twins(session, space, digests).items():
                found[(space, digest)] = twin
        return found

    def _repeated(self, session: Session, records: Sequence[Prepared]) -> dict[tuple[str, str], Memory]:
        """Records that an earlier attempt of the same caller already stored."""
        found = {}
        for space in {record.space for record in records}:
            keys = [r.idempotency_key for r in records if r.space == space and r.idempotency_key]
            for key, memory in self._store.memories.by_key(session, space, keys).items():
                found[(space, key)] = memory
        return found


def _named_twin(record: Prepared, twins: dict[tuple[str, bytes], str]) -> Prepared:
    """The record, with the one that already said exactly this; from now on it is that one where there was none."""
    twin = twins.setdefault((record.space, record.digest), record.memory.id)
    return record if twin == record.memory.id else replace(record, memory=replace(record.memory, duplicate_of=twin))


def embedded_ahead(drafts: Iterable[list[Prepared]], backend: Backend) -> Iterator[list[Prepared]]:
    """Batches with their vectors: the model works on one while the caller has the last and makes the next."""
    with ThreadPoolExecutor(1, "cortex-embed") as pool:
        waiting: Future[list[Prepared]] | None = None
        for batch in drafts:
            started = pool.submit(embed_drafts, batch, backend)
            if waiting:
                yield waiting.result()
            waiting = started
        if waiting:
            yield waiting.result()


def expiry(ttl: str, now: datetime) -> datetime:
    """The moment a time to live such as `30d` ends."""
    text = ttl.strip()
    past = parse_moment(text, now=now) if is_duration(text) else now
    if past >= now:
        raise InvalidInput(
            f"The time to live {ttl[:40]!r} is not a duration.",
            remedy="Write for example 12h, 30d or 3mo.",
            field="ttl",
        )
    return now + (now - past)
