"""Stores what readers found: each record once, changed ones as new versions, whatever interrupted the run before.

A record is known by a key made of its source and position, so a run that was killed is repeated and ends in the same
state. Batches are transactions of their own: what is stored stays stored.
"""

from __future__ import annotations

import json
from collections import Counter
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field, replace
from datetime import datetime
from difflib import SequenceMatcher
from hashlib import sha256
from pathlib import Path
from typing import TYPE_CHECKING, NamedTuple, TypeVar

from ....core.echo import clean_text
from ....core.errors import CortexError
from ....core.jobs import report
from ....core.memory.capture.capture import path_in
from ....core.records import LIVE_STATUSES, SESSION_TAG, Domain, Memory, NewMemory
from ....core.security.callers import current_caller
from ....core.security.policy import ScreenedText
from ....core.store.store import Store
from ....texts.structured import one_line
from ..source import BackupSources
from .graph_intake import GraphIntake
from .readers.files import SourceFile
from .readers.records import Found, Skipped, SourceEntity, SourceReader, SourceRecord, SourceRelation, skip_because

if TYPE_CHECKING:
    from ....core.memory.service import Memories

__all__ = ["Intake", "IntakeOptions", "SourceSummary", "record_key"]

_T = TypeVar("_T")

_NOTES, _TURNS = 256, 512
_TURN_CHARACTERS = 4_000_000
# How alike two statements under one heading must be for the later to be the next version of the earlier.
_ALIKE = 0.5
_COMPARED = 2_000  # characters


@dataclass(frozen=True, slots=True)
class IntakeOptions:
    """Which records to take: not older than `since`, of this folder, at most so many."""

    domain: Domain | None = None
    since: datetime | None = None
    folder: str | None = None
    limit: int | None = None
    dry_run: bool = False


@dataclass(slots=True)
class SourceSummary:
    """What the files of one kind gave to one project."""

    kind: str
    project: str
    files: int = 0
    added: int = 0
    changed: int = 0
    known: int = 0
    skipped: int = 0
    first: datetime | None = None
    last: datetime | None = None

    def saw(self, at: datetime | None) -> None:
        if at is not None:
            self.first = at if self.first is None else min(self.first, at)
            self.last = at if self.last is None else max(self.last, at)


@dataclass(slots=True)
class IntakeResult:
    """What was taken. `gone` names sources and statements that are no longer there; their memories stay."""

    added: Counter[str] = field(default_factory=Counter)
    changed: Counter[str] = field(default_factory=Counter)
    unchanged: int = 0
    redacted: int = 0
    skipped: list[str] = field(default_factory=list)
    gone: list[str] = field(default_factory=list)
    ignored: Counter[str] = field(default_factory=Counter)
    # By folder that belongs to no project here: its sessions, with the number of their records.
    elsewhere: dict[str, Counter[str | None]] = field(default_factory=dict)
    summaries: dict[tuple[str, str], SourceSummary] = field(default_factory=dict)


def record_key(source: str, position: str) -> str:
    """The key of a record: hexadecimal digits of its source, then of its position."""
    if not source:
        return position
    # Digits that were made here, so nothing that came from outside is in them.
    return ScreenedText(f"{_source_prefix(source)}{sha256(position.encode('utf-8', 'replace')).hexdigest()[:32]}")


def _source_prefix(source: str) -> str:
    return f"import:{sha256(source.encode('utf-8', 'replace')).hexdigest()[:16]}"


class Intake:
    """Takes files one after the other."""

    def __init__(self, store: Store, sources: BackupSources, project_id: str | None, options: IntakeOptions) -> None:
        self.store = store
        self.options = options
        self.current = sources.memories(project_id)
        self._sources = sources
        self._current_id = self.current.place.project.id
        self._targets: dict[str, str | None] = {}
        self.result = IntakeResult()
        self._taken = 0

    @property
    def left(self) -> int | None:
        """How many new records may still be taken; None without a limit."""
        limit = self.options.limit
        return None if limit is None else max(0, limit - self._taken)

    @property
    def is_full(self) -> bool:
        return self.left == 0

    def take(self, file: SourceFile, reader: SourceReader, *, whole: bool = True) -> None:
        """Read a file and store what is new in it; if it is not the `whole` source, it is read again next time."""
        _FileIntake(self, file, reader, whole=whole).run()

    def refuse(self, name: str, reason: str) -> None:
        """Note what is not read, and why."""
        self.result.skipped.append(f"{clean_text(one_line(name), 1_000)}: {reason}")

    def note_gone(self, roots: Sequence[Path]) -> None:
        """Note the sources below these folders that were imported before and are no longer there."""
        prefix = f"import:{self._current_id}:"
        with self.store.database.read() as session:
            known = self.store.settings.beginning_with(session, prefix)
        for value in known.values():
            name = json.loads(value).get("name", "")
            path = Path(str(name).partition("!")[0])
            if name and any(path.is_relative_to(root) for root in roots) and not path.exists():
                self.result.gone.append(clean_text(one_line(str(name)), 1_000))

    # -- used by the intake of a file ------------------------------------------------------------

    def target(self, folder: str | None) -> Memories | None:
        """The memories of the project that a folder belongs to; the current ones without a folder.

        None if it belongs to no project here, unless the caller named the folder: then it is meant for this project.
        """
        if folder is None or self.options.domain not in (None, "project"):
            return self.current
        if folder not in self._targets:
            is_home = Path(folder) == Path.home()
            unknown = None if self.options.folder is None else self._current_id
            self._targets[folder] = (None if is_home else self._sources.project_of(folder)) or unknown
        found = self._targets[folder]
        if found is None:
            return None
        return self.current if found == self._current_id else self._sources.memories(found)

    def leave_elsewhere(self, folder: str, session: str | None) -> None:
        """Note a record whose folder belongs to no project here."""
        self.result.elsewhere.setdefault(folder, Counter())[session] += 1

    def count(self, taken: int) -> None:
        self._taken += taken
        report("documents", self._taken + self.result.unchanged)

    def summary(self, kind: str, project: str) -> SourceSummary:
        return self.result.summaries.setdefault((kind, project), SourceSummary(kind, project))

    def relate(self, entities: Sequence[SourceEntity], relations: Sequence[SourceRelation]) -> None:
        """Store names and relations in the graph of the current project; known ones stay."""
        graph = GraphIntake(self._sources.graph(self._current_id), self.options.domain or "project", self.refuse)
        if added := graph.relate(entities, relations):
            self.result.added["relationship"] += added


class _Draft(NamedTuple):
    """A record, what is captured of it, and the memory that this becomes: what passed the screen is compared."""

    record: SourceRecord
    item: NewMemory
    memory: Memory

    @property
    def key(self) -> str:
        return self.item.idempotency_key or ""


class _FileIntake:
    """Takes one file: batches of turns and of notes with lasting positions as they come, statements at the end."""

    def __init__(self, intake: Intake, file: SourceFile, reader: SourceReader, *, whole: bool) -> None:
        self._intake = intake
        self._file = file
        self._reader = reader
        self._result = intake.result
        self._dry = intake.options.dry_run
        # By project and kind of record.
        self._waiting: dict[tuple[str, str], list[_Draft]] = {}
        self._statements: dict[str, list[_Draft]] = {}
        self._memories: dict[str, Memories] = {}
        self._entities: list[SourceEntity] = []
        self._relations: list[SourceRelation] = []
        self._characters = 0
        self._records = 0
        self._found = False
        self._sample: tuple[str, str] | None = None
        self._is_whole = whole
        # What every turn of the file would be found to name.
        self._path = path_in(file.name)

    def run(self) -> None:
        if self._is_unchanged():
            return
        for found in self._read():
            self._found = True
            if isinstance(found, SourceRecord):
                self._add(found)
            elif isinstance(found, SourceEntity):
                self._entities.append(found)
            elif isinstance(found, SourceRelation):
                self._relations.append(found)
            else:
                self._skip(found)
            if self._intake.is_full:
                self._is_whole = False
                break
        if not self._found:
            self._intake.refuse(self._file.name, f"it holds nothing of the kind {self._reader.kind}")
        self._flush()
        for project, items in self._statements.items():
            self._store_statements(self._memories[project], items)
        if self._entities or self._relations:
            if self._dry:
                self._result.added["entity"] += len(self._entities)
                self._result.added["relationship"] += len(self._relations)
            else:
                self._intake.relate(self._entities, self._relations)
        for memories in self._memories.values():
            self._intake.summary(self._reader.kind, memories.place.project.name).files += 1
        self._remember()

    def _read(self) -> Iterator[Found]:
        try:
            self._file.check()
            yield from self._reader.read(self._file)
        except (OSError, CortexError) as error:
            yield skip_because(error, self._file.name)

    def _skip(self, found: Skipped) -> None:
        place = f"{self._file.name}, {found.place}" if found.place else self._file.name
        self._intake.refuse(place, found.reason)
        self._is_whole = False
        for memories in self._memories.values():
            self._intake.summary(self._reader.kind, memories.place.project.name).skipped += 1
            break

    # -- choosing --------------------------------------------------------------------------------

    def _add(self, record: SourceRecord) -> None:
        options = self._intake.options
        if options.since is not None and (record.at is None or record.at < options.since):
            self._is_whole = False
            return
        if options.folder is not None and not _is_inside(record.folder, options.folder):
            self._is_whole = False
            return
        memories = self._intake.target(record.folder)
        if memories is None:
            self._is_whole = False
            self._intake.leave_elsewhere(record.folder or "", record.session)
            return
        project = memories.place.project.id
        item = self._item(record)
        try:
            checked = memories.turns.check(item) if record.kind == "turn" else memories.check(item)
        except CortexError as error:
            place = f"line {record.line}" if record.line is not None else ""
            self._skip(Skipped(place, error.message.rstrip(".")))
            return
        self._memories.setdefault(project, memories)
        self._result.ignored.update(record.ignored)
        self._result.redacted += bool(checked.redactions)
        self._records += 1
        draft = _Draft(record, item, checked)
        if record.by_text:
            self._statements.setdefault(project, []).append(draft)
            return
        is_turn = record.kind == "turn"
        space = memories.place.space("project", "turn") if is_turn else memories.place.space(item.domain)
        self._sample = self._sample or (space, draft.key)
        waiting = self._waiting.setdefault((project, record.kind), [])
        waiting.append(draft)
        self._characters += len(item.content) if is_turn else 0
        if len(waiting) >= (_TURNS if is_turn else _NOTES) or self._characters >= _TURN_CHARACTERS:
            self._flush()

    def _item(self, record: SourceRecord) -> NewMemory:
        is_turn = record.kind == "turn"
        session = (f"{SESSION_TAG}{record.session[:100]}",) if record.session else ()
        return NewMemory(
            content=record.content,
            kind=record.kind,
            namespace=record.namespace,
            domain="project" if is_turn else self._intake.options.domain or "project",
            tags=(*record.tags, *session),
            source=record.shown or self._file.name,
            path=record.path or (self._path if is_turn else None),
            git_branch=record.git_branch,
            category=record.category,
            role=record.role,
            summary=record.summary,
            user_id=record.author,
            agent_id=record.agent,
            created_at=record.at,
            idempotency_key=record_key(record.source, record.position),
            first_line=record.line if is_turn else None,
            last_line=record.line if is_turn else None,
        )

    # -- storing ---------------------------------------------------------------------------------

    def _flush(self) -> None:
        for (project, kind), drafts in self._waiting.items():
            self._store_records(self._memories[project], kind, drafts)
        self._waiting.clear()
        self._characters = 0

    def _store_records(self, memories: Memories, kind: str, drafts: Sequence[_Draft]) -> None:
        """Store turns, or notes with a lasting position."""
        given = {one.key: one for one in drafts}
        if kind == "turn":
            known = memories.turns.known(list(given))
        else:
            space = memories.place.space(drafts[0].item.domain)
            with self._intake.store.database.read() as session:
                known = self._intake.store.memories.by_key(session, space, list(given))
        changed = [
            (known[key], one) for key, one in given.items() if key in known and self._differs(memories, known[key], one)
        ]
        fresh = self._allowed([one for key, one in given.items() if key not in known])
        if not self._dry:
            self._update(memories, changed)
            if kind == "turn":
                memories.turns.write({one.key: one.memory for one in fresh})
            else:
                memories.capture_many([one.item for one in fresh])
        self._note_days(memories, [*fresh, *(one for key, one in given.items() if key in known)])
        counted = "turn" if kind == "turn" else "memory"
        self._count(memories, counted, len(fresh), len(changed), len(known) - len(changed))

    def _store_statements(self, memories: Memories, given: Sequence[_Draft]) -> None:
        """Match the statements of a document with those stored from it: by their text, then by their heading."""
        space = memories.place.space(given[0].item.domain)
        with self._intake.store.database.read() as session:
            stored = self._intake.store.memories.by_key_prefix(session, space, _source_prefix(given[0].record.source))
        unmatched, used = self._match_texts(memories, given, [memory for _, memory in stored])
        left = [one for _, one in stored if one.id not in used and one.status in LIVE_STATUSES]
        changed: list[tuple[Memory, _Draft]] = []
        fresh: list[NewMemory] = []
        for one in unmatched:
            near = _closest(one.memory, left)
            if near is None:
                fresh.append(_numbered(one, fresh))
            else:
                left.remove(near)
                changed.append((near, one))
        fresh = self._allowed(fresh)
        if not self._dry:
            self._update(memories, changed)
            memories.capture_many(fresh)
        self._note_days(memories, given)
        self._count(memories, "memory", len(fresh), len(changed), len(given) - len(unmatched))
        if self._is_whole:
            self._result.gone += [f"{self._file.name}: {clean_text(one_line(one.content), 80)}" for one in left]
        keys = [key for key, _ in stored] + [one.idempotency_key or "" for one in fresh]
        self._sample = (space, keys[0]) if keys else None

    def _match_texts(
        self, memories: Memories, given: Sequence[_Draft], stored: Sequence[Memory]
    ) -> tuple[list[_Draft], set[str]]:
        """The statements whose text no stored memory has or had, and the ids of the memories that match others."""
        by_text: dict[str, list[Memory]] = {}
        for memory in stored:
            for text in (memory.content, *self._former(memories, memory)):
                by_text.setdefault(text, []).append(memory)
        used: set[str] = set()
        unmatched = []
        for one in given:
            same = next((other for other in by_text.get(one.memory.content, ()) if other.id not in used), None)
            if same is None:
                unmatched.append(one)
            else:
                used.add(same.id)
        return unmatched, used

    def _allowed(self, fresh: list[_T]) -> list[_T]:
        """As many of the new records as may still be taken."""
        left = self._intake.left
        if left is None or len(fresh) <= left:
            return fresh
        self._is_whole = False
        return fresh[:left]

    def _former(self, memories: Memories, memory: Memory) -> list[str]:
        """Earlier texts of a memory. One that was deleted shows none."""
        if memory.version == 1 or memory.status == "tombstoned":
            return []
        return [one.content for one in memories.history(memory.id)]

    def _differs(self, memories: Memories, before: Memory, draft: _Draft) -> bool:
        """Whether the source says something that the memory never said: what was edited or deleted here stays so."""
        if before.content == draft.memory.content or before.status == "tombstoned":
            return False
        return draft.memory.content not in self._former(memories, before)

    def _update(self, memories: Memories, changed: Sequence[tuple[Memory, _Draft]]) -> None:
        for before, draft in changed:
            item = draft.item
            memories.update(before.id, content=item.content, tags=item.tags or None, source=item.source)

    def _note_days(self, memories: Memories, drafts: Sequence[_Draft]) -> None:
        summary = self._intake.summary(self._reader.kind, memories.place.project.name)
        for one in drafts:
            summary.saw(one.record.at)

    def _count(self, memories: Memories, kind: str, added: int, changed: int, known: int) -> None:
        summary = self._intake.summary(self._reader.kind, memories.place.project.name)
        for counts, number in ((self._result.added, added), (self._result.changed, changed)):
            if number:
                counts[kind] += number
        self._result.unchanged += known
        summary.added += added
        summary.changed += changed
        summary.known += known
        self._intake.count(added)

    # -- what is known of the file ---------------------------------------------------------------

    @property
    def _fact(self) -> str:
        digest = sha256(self._file.name.encode("utf-8", "replace")).hexdigest()[:32]
        return f"import:{self._intake.current.place.project.id}:{digest}"

    def _is_unchanged(self) -> bool:
        """Whether nothing changed since the file was taken whole, and what it gave is still here."""
        with self._intake.store.database.read() as session:
            value = self._intake.store.settings.get(session, self._fact)
            if value is None:
                return False
            known = json.loads(value)
            if [known.get(name) for name in ("kind", "size", "modified")] != self._state:
                return False
            if not self._intake.store.memories.by_key(session, known["space"], [known["key"]]):
                return False
        self._result.unchanged += known["records"]
        project = known.get("project") or self._intake.current.place.project.name
        self._intake.summary(self._reader.kind, project).known += known["records"]
        return True

    def _remember(self) -> None:
        if self._dry or not self._is_whole or self._sample is None:
            return
        space, key = self._sample
        kind, size, modified = self._state
        # The facts of a store are shared by its tenants: only who has it alone leaves names there.
        value: dict[str, object] = {"name": "", "project": ""}
        if current_caller() is None:
            projects = [one.place.project.name for one in self._memories.values()]
            value = {"name": clean_text(self._file.name, 4_096), "project": clean_text(projects[0]) if projects else ""}
        value |= {"kind": kind, "size": size, "modified": modified}
        value |= {"space": space, "key": key, "records": self._records}
        with self._intake.store.database.write() as session:
            self._intake.store.settings.put(session, self._fact, json.dumps(value))

    @property
    def _state(self) -> list[object]:
        domain = self._intake.options.domain or "project"
        return [f"{self._reader.kind}/{domain}", self._file.size, self._file.modified]


def _is_inside(folder: str | None, wanted: str) -> bool:
    return folder is not None and (folder == wanted or Path(folder).is_relative_to(wanted))


def _closest(new: Memory, among: Sequence[Memory]) -> Memory | None:
    """The memory of the same place that a new one most likely is the next version of; None if none is like it."""
    best, ratio = None, _ALIKE
    for memory in among:
        if memory.source != new.source:
            continue
        matcher = SequenceMatcher(None, memory.content[:_COMPARED], new.content[:_COMPARED], autojunk=False)
        if matcher.real_quick_ratio() > ratio and matcher.quick_ratio() > ratio and matcher.ratio() > ratio:
            best, ratio = memory, matcher.ratio()
    return best


def _numbered(draft: _Draft, before: Sequence[NewMemory]) -> NewMemory:
    """What is captured, with a key of its own: a document may say the same thing twice."""
    record, item = draft.record, draft.item
    count = sum(one.content == item.content for one in before)
    return replace(item, idempotency_key=record_key(record.source, f"{record.position}\0{item.content}\0{count}"))
