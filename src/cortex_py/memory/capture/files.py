"""Parts of files as records: read again, a file keeps the records of what did not change.

A part whose text is the same stays the record it was, wherever it has moved; a part that goes by the same symbol
becomes a new version of its record; the rest is new, and what is left over disappears. One batch of files is one
transaction: a file is either as it was or as it is, and an interrupted scan goes on where it stopped.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass, replace

from ..clock import Clock, to_micros
from ..config import Settings
from ..embedding.backend import Backend
from ..ids import IdMaker
from ..records import Memory
from ..store.database import Session
from ..store.rows import Prepared
from ..store.scans import FileImport, FileSymbol, ScannedFile
from ..store.store import Store
from .capture import Capture, embedded_ahead
from .model import check_model
from .place import Place
from .prepare import without_secrets

__all__ = ["FileCapture", "FileCounts", "FilePart", "FileText"]

# Enough for the model to sort by length; a file is never divided.
_BATCH = 192


@dataclass(frozen=True, slots=True)
class FilePart:
    """A stretch of a file; lines count from 1."""

    text: str
    symbol: str | None
    first_line: int
    last_line: int


@dataclass(frozen=True, slots=True)
class FileText:
    """A file to be remembered, cut into parts. `formerly` is the path of the file it was before it was renamed."""

    path: str
    blob: str
    whole: bool
    parts: tuple[FilePart, ...]
    symbols: tuple[FileSymbol, ...]
    imports: tuple[FileImport, ...]
    formerly: str | None = None


@dataclass(slots=True)
class FileCounts:
    """What became of parts."""

    created: int = 0
    updated: int = 0
    kept: int = 0
    removed: int = 0


@dataclass(frozen=True, slots=True)
class _Step:
    """One part with the record that stands for it, and how many drafts of the batch are its own: none or one."""

    memory: Memory
    num: int | None
    is_same: bool
    is_drafted: bool


@dataclass(frozen=True, slots=True)
class _Plan:
    """What becomes of a file, told from how it was `before`."""

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
        # A file is not refused for a secret in it; the secret is.
        self._policy = "redact" if settings.secrets == "block" else settings.secrets
        self._clock = clock
        self._ids = ids
        self._place = place
        self._capture = capture
        self._space = place.space("project", "file")

    def write(self, files: Iterable[FileText], written: Callable[[FileText], None] = lambda _file: None) -> FileCounts:
        """Remember files. `written` is told of each one when it is safe; what it raises stops the work there."""
        counts = FileCounts()
        waiting: list[list[_Plan]] = []

        def drafts() -> Iterator[list[Prepared]]:
            for plans, batch in self._batches(files):
                waiting.append(plans)
                yield batch

        for prepared in embedded_ahead(drafts(), self._backend):
            plans = waiting.pop(0)
            self._store_batch(plans, prepared, counts)
            for plan in plans:
                written(plan.file)
        return counts

    def remove(self, paths: Sequence[str]) -> int:
        """Forget files that are gone; returns how many records went with them."""
        if not paths:
            return 0
        with self._store.database.write() as session:
            nums = [num for path in paths for num, _, _ in self._store.memories.of_path(session, self._space, path)]
            self._store.memories.purge(session, self._space, nums, self._store.memories.next_seq(session))
            self._store.scans.remove(session, self._place.project.id, paths)
        return len(nums)

    # -- planning --------------------------------------------------------------------------------

    def _batches(self, files: Iterable[FileText]) -> Iterator[tuple[list[_Plan], list[Prepared]]]:
        plans: list[_Plan] = []
        drafts: list[Prepared] = []
        for file in files:
            plan = self._plan(file)
            plans.append(plan)
            drafts += [self._capture.redraft(step.memory, self._space) for step in plan.steps if step.is_drafted]
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
        fresh = [self._fresh(file, part) for part in file.parts]
        same = [by_text[one.content].pop(0) if by_text.get(one.content) else None for one in fresh]
        for left in by_text.values():
            for num, memory in left:
                if memory.symbol:
                    by_symbol.setdefault(memory.symbol, []).append((num, memory))
        steps = []
        for one, known in zip(fresh, same, strict=True):
            if known is None and one.symbol and by_symbol.get(one.symbol):
                steps.append(_changed(one, *by_symbol[one.symbol].pop(0)))
            elif known is None:
                steps.append(_Step(one, None, False, True))
            else:
                steps.append(_unchanged(one, *known))
        used = {step.num for step in steps}
        return _Plan(file, before, tuple(steps), tuple(num for num, _, _ in old if num not in used))

    def _before(self, session: Session, file: FileText) -> ScannedFile | None:
        return self._store.scans.file(session, self._place.project.id, file.formerly or file.path)

    def _fresh(self, file: FileText, part: FilePart) -> Memory:
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
            source=f"{file.path}:{part.first_line}-{part.last_line}",
            path=file.path,
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
        )
        return without_secrets(memory, self._policy)

    # -- writing ---------------------------------------------------------------------------------

    def _store_batch(self, plans: Sequence[_Plan], prepared: Sequence[Prepared], counts: FileCounts) -> None:
        drafts = iter(prepared)
        now = to_micros(self._clock.now())
        with self._store.database.write() as session:
            check_model(self._store, session, self._backend, claim=True)
            seq = self._store.memories.next_seq(session)
            for plan in plans:
                self._store_file(session, plan, drafts, seq, now, counts)

    def _store_file(
        self, session: Session, plan: _Plan, drafts: Iterator[Prepared], seq: int, now: int, counts: FileCounts
    ) -> None:
        memories, project, file = self._store.memories, self._place.project.id, plan.file
        steps = [(step, next(drafts) if step.is_drafted else None) for step in plan.steps]
        if self._before(session, file) != plan.before:
            return  # Another process has read the file meanwhile; the next scan sees whether anything is left to do.
        if file.formerly:
            self._store.scans.rename(session, project, file.formerly, file.path, seq)
        for step, draft in steps:
            self._store_step(session, step, draft, seq, counts)
        memories.purge(session, self._space, plan.leftover, seq)
        counts.removed += len(plan.leftover)
        scanned = ScannedFile(file.path, file.blob, len(file.parts), file.whole)
        self._store.scans.save(session, project, scanned, file.symbols, file.imports, now)

    def _store_step(self, session: Session, step: _Step, draft: Prepared | None, seq: int, counts: FileCounts) -> None:
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
            before = memories.located(session, self._space, [step.num])[0][3]
            operation = "capture" if before.version == 1 else "update"
            memories.archive_version(session, self._space, before, operation, to_micros(before.updated_at))
            memories.replace(session, step.num, draft, seq)


def _unchanged(new: Memory, num: int, old: Memory) -> _Step:
    """The same text; only under another path or symbol is it found by other words."""
    elsewhere = (new.path, new.symbol) != (old.path, old.symbol)
    moved = replace(old, path=new.path, symbol=new.symbol, source=new.source, compressed=False)
    return _Step(replace(moved, first_line=new.first_line, last_line=new.last_line), num, True, elsewhere)


def _changed(new: Memory, num: int, old: Memory) -> _Step:
    return _Step(replace(new, id=old.id, created_at=old.created_at, version=old.version + 1), num, False, True)
