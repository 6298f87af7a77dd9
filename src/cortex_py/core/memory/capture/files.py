"""Parts of files as records. When a file is read again, unchanged parts keep their records.

A part with the same text keeps its record, even if it moved; a part with the same symbol becomes a new version of its
record; other parts are new, and records that are left over are removed. A batch of files is one transaction, so an
interrupted scan continues where it stopped.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass, replace

from ...clock import Clock, IdMaker, to_micros
from ...config import Settings
from ...embedding.backends.backend import Backend
from ...records import Memory
from ...security.policy import Screen, ScreenedText, redacted_kinds, screen_file
from ...store.database import Session
from ...store.rows import IndexedRecord
from ...store.store import Store
from ...store.tables.scans import FileImport, FileSymbol, ScannedFile
from ..spaces import Place, defer_vectors, model_problem, record_model, spaces_to_lock, spaces_without_vectors
from .capture import Capture, embed_ahead, screen_record

__all__ = ["FileCapture", "FilePart", "FileText"]

# Enough for the model to sort by length; a file is never split.
_BATCH = 192


@dataclass(frozen=True, slots=True)
class FilePart:
    """A part of a file, cut from the text that `FileCapture.screen` returned; lines count from 1."""

    text: ScreenedText
    symbol: str | None
    first_line: int
    last_line: int


@dataclass(frozen=True, slots=True)
class FileText:
    """A file to be stored, split into parts. `formerly` is its path before it was renamed."""

    path: str
    blob: str
    whole: bool
    parts: tuple[FilePart, ...]
    symbols: tuple[FileSymbol, ...]
    imports: tuple[FileImport, ...]
    formerly: str | None = None


@dataclass(slots=True)
class FileCounts:
    """How many parts were created, updated, kept and removed."""

    created: int = 0
    updated: int = 0
    kept: int = 0
    removed: int = 0


@dataclass(frozen=True, slots=True)
class _Step:
    """One part with its record; `is_drafted` says whether it was indexed again."""

    memory: Memory
    num: int | None
    is_same: bool
    is_drafted: bool


@dataclass(frozen=True, slots=True)
class _Plan:
    """The steps for a file; `before` is the state they were planned from."""

    file: FileText
    before: ScannedFile | None
    steps: tuple[_Step, ...]
    leftover: tuple[int, ...]


class FileCapture:
    def __init__(
        self,
        store: Store,
        backend: Backend,
        settings: Settings,
        clock: Clock,
        ids: IdMaker,
        place: Place,
        capture: Capture,
    ) -> None:
        self._store = store
        self._backend = backend
        # A secret in a file is redacted even if notes with secrets are refused.
        self._screen = Screen("redact" if settings.secrets == "block" else settings.secrets, settings.personal_data)
        self._clock = clock
        self._ids = ids
        self._place = place
        self._capture = capture
        self._space = place.space("project", "file")

    def write(
        self,
        files: Iterable[FileText],
        written: Callable[[FileText], None] = lambda _file: None,
        *,
        defer_vectors: bool = False,
    ) -> FileCounts:
        """Store files. `written` is called for each one after its commit; if it raises, the work stops.

        With `defer_vectors` they are found by words at once, and by meaning after `fill_vectors`.
        """
        counts = FileCounts()
        # Without a model the chunks are a guess, which `fill_vectors` replaces.
        if defer_vectors and not model_problem(self._backend):
            for plans, batch in self._batches(files):
                self._store_batch(plans, batch, counts, deferred=True)
                for plan in plans:
                    written(plan.file)
            return counts
        waiting: list[list[_Plan]] = []

        def drafts() -> Iterator[list[IndexedRecord]]:
            for plans, batch in self._batches(files):
                waiting.append(plans)
                yield batch

        for prepared in embed_ahead(drafts(), self._backend):
            plans = waiting.pop(0)
            self._store_batch(plans, prepared, counts)
            for plan in plans:
                written(plan.file)
        return counts

    def remove(self, paths: Sequence[str]) -> int:
        """Remove the records of deleted files; returns how many."""
        if not paths:
            return 0
        with self._store.database.write() as session:
            nums = [num for path in paths for num, _, _ in self._store.memories.of_path(session, self._space, path)]
            self._store.memories.purge(session, self._space, nums, self._store.memories.next_seq(session, self._space))
            self._store.scans.remove(session, self._place.project.id, paths)
        return len(nums)

    def screen(self, text: str) -> ScreenedText:
        """Redact a whole file before it is split: a key may span several lines."""
        return screen_file(text, self._screen)

    # -- planning --------------------------------------------------------------------------------

    def _batches(self, files: Iterable[FileText]) -> Iterator[tuple[list[_Plan], list[IndexedRecord]]]:
        plans: list[_Plan] = []
        drafts: list[IndexedRecord] = []
        for file in files:
            plan = self._plan(file)
            plans.append(plan)
            drafts += [self._capture.index(step.memory, self._space) for step in plan.steps if step.is_drafted]
            if len(drafts) >= _BATCH or len(plans) >= _BATCH:
                yield plans, drafts
                plans, drafts = [], []
        if plans:
            yield plans, drafts

    def _plan(self, file: FileText) -> _Plan:
        with self._store.database.read() as session:
            before = self._before(session, file)
            old = self._store.memories.of_path(session, self._space, file.formerly or file.path)
        by_text: dict[str, list[tuple[int, Memory]]] = {}
        by_symbol: dict[str, list[tuple[int, Memory]]] = {}
        for num, _, memory in old:
            by_text.setdefault(memory.content, []).append((num, memory))
        fresh = [self._new_memory(file, part) for part in file.parts]
        same = [by_text[one.content].pop(0) if by_text.get(one.content) else None for one in fresh]
        for left in by_text.values():
            for num, memory in left:
                if memory.symbol:
                    by_symbol.setdefault(memory.symbol, []).append((num, memory))
        steps = []
        for one, known in zip(fresh, same, strict=True):
            if known is None and one.symbol and by_symbol.get(one.symbol):
                steps.append(_update_part(one, *by_symbol[one.symbol].pop(0)))
            elif known is None:
                steps.append(_Step(one, None, False, True))
            else:
                steps.append(_keep_part(one, *known))
        used = {step.num for step in steps}
        return _Plan(file, before, tuple(steps), tuple(num for num, _, _ in old if num not in used))

    def _before(self, session: Session, file: FileText) -> ScannedFile | None:
        return self._store.scans.file(session, self._place.project.id, file.formerly or file.path)

    def _new_memory(self, file: FileText, part: FilePart) -> Memory:
        now = self._clock.now()
        memory = Memory(
            id=self._ids.new(),
            domain="project",
            project_id=self._place.project.id,
            branch_id=None,
            namespace="context",
            category=None,
            role=None,
            content=part.text,
            summary=None,
            tags=(),
            # A path with a secret is never scanned, so both pass the screen.
            source=ScreenedText(f"{file.path}:{part.first_line}-{part.last_line}"),
            path=ScreenedText(file.path),
            git_branch=None,
            user_id=self._place.user_id,
            agent_id=self._place.agent_id,
            status="active",
            created_at=now,
            updated_at=now,
            accessed_at=None,
            expires_at=None,
            tombstoned_at=None,
            superseded_by=None,
            grounding=None,
            version=1,
            kind="file",
            symbol=part.symbol,
            first_line=part.first_line,
            last_line=part.last_line,
            redactions=redacted_kinds(part.text),
        )
        return self._capture.count_personal_data(screen_record(memory, self._screen), None)

    # -- writing ---------------------------------------------------------------------------------

    def pending_vectors(self) -> tuple[int, int]:
        """How many parts wait for their vectors, and how many of them are the first of their file."""
        memories = self._store.memories
        with self._store.database.read() as session:
            if self._space not in spaces_without_vectors(self._store, session):
                return 0, 0
            heads = memories.heads_without_vectors(session, self._space)
            return memories.count_without_vectors(session, [self._space]), len(heads)

    def _store_batch(
        self, plans: Sequence[_Plan], prepared: Sequence[IndexedRecord], counts: FileCounts, *, deferred: bool = False
    ) -> None:
        drafts = iter(prepared)
        now = to_micros(self._clock.now())
        # A purge removes what any project has recorded about the records.
        purges = any(plan.leftover for plan in plans)
        spaces = () if purges else spaces_to_lock(self._store, self._backend, prepared)
        with self._store.database.write(*spaces) as session:
            record_model(self._store, session, self._backend, prepared)
            if deferred:
                defer_vectors(self._store, session, self._space)
            seq = self._store.memories.next_seq(session, self._space)
            for plan in plans:
                self._store_file(session, plan, drafts, seq, now, counts)

    def _store_file(
        self, session: Session, plan: _Plan, drafts: Iterator[IndexedRecord], seq: int, now: int, counts: FileCounts
    ) -> None:
        memories, project, file = self._store.memories, self._place.project.id, plan.file
        steps = [(step, next(drafts) if step.is_drafted else None) for step in plan.steps]
        if self._before(session, file) != plan.before:
            return  # Another process has stored the file; the next scan does what is left.
        if file.formerly:
            self._store.scans.rename(session, project, file.formerly, file.path, seq)
        for step, draft in steps:
            self._store_step(session, step, draft, seq, counts)
        memories.purge(session, self._space, plan.leftover, seq)
        counts.removed += len(plan.leftover)
        scanned = ScannedFile(file.path, file.blob, len(file.parts), file.whole)
        self._store.scans.save(session, project, scanned, file.symbols, file.imports, now)

    def _store_step(
        self, session: Session, step: _Step, draft: IndexedRecord | None, seq: int, counts: FileCounts
    ) -> None:
        memories, memory = self._store.memories, step.memory
        if step.num is None and draft:
            memories.insert(session, draft, seq)
            counts.created += 1
        elif step.num is not None and step.is_same:
            counts.kept += 1
            memories.move(session, self._space, step.num, memory)
            if draft:
                memories.reindex(session, step.num, draft, seq)
        elif step.num is not None and draft:
            counts.updated += 1
            before = memories.by_numbers(session, self._space, [step.num])[0][3]
            operation = "capture" if before.version == 1 else "update"
            memories.archive_version(session, self._space, before, operation, to_micros(before.updated_at))
            memories.replace(session, step.num, draft, seq)


def _keep_part(new: Memory, num: int, old: Memory) -> _Step:
    """A part with the same text; it is indexed again only if its path or symbol changed."""
    elsewhere = (new.path, new.symbol) != (old.path, old.symbol)
    moved = replace(old, path=new.path, symbol=new.symbol, source=new.source, compressed=False)
    return _Step(replace(moved, first_line=new.first_line, last_line=new.last_line), num, True, elsewhere)


def _update_part(new: Memory, num: int, old: Memory) -> _Step:
    return _Step(replace(new, id=old.id, created_at=old.created_at, version=old.version + 1), num, False, True)
