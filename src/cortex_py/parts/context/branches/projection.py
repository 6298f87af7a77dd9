"""Keeps branch files up to date with the store, and applies a person's edits of them to the store.

The store is authoritative; the file is made from it. An edited file is never overwritten: its edits are applied first,
and a file that cannot be read is left as it is.
"""

from __future__ import annotations

import json
import logging
import threading
from collections.abc import Sequence
from dataclasses import dataclass, replace
from datetime import datetime
from hashlib import blake2b
from pathlib import Path

from ....core.clock import Clock, from_micros, to_micros
from ....core.errors import Conflict, CortexError, NotFound
from ....core.memory.service import Memories
from ....core.records import Branch, Memory, NewMemory
from ....core.security.callers import as_system
from ....core.store.database import Session
from ....core.store.store import Store
from .file import BranchFile, FileEntry, ParsedFile, append, check_topic, parse, render
from .store import BranchFiles

__all__ = ["BranchCheck", "EditPlan", "Projection", "Removal", "SyncResult", "Update", "plan"]


logger = logging.getLogger(__name__)


@dataclass(frozen=True, slots=True)
class SyncResult:
    """The changes that the edits of a branch file made to the store."""

    updated: int = 0
    conflicts: int = 0
    removed: int = 0
    added: int = 0

    def __bool__(self) -> bool:
        return bool(self.updated or self.conflicts or self.removed or self.added)


@dataclass(frozen=True, slots=True)
class BranchCheck:
    """Whether a branch has its file, a front matter that agrees with the store, and its record."""

    path: Path
    file_exists: bool
    front_matter_valid: bool
    indexed: bool

    @property
    def verified(self) -> bool:
        return self.file_exists and self.front_matter_valid and self.indexed


@dataclass(frozen=True, slots=True)
class _State:
    """What the file showed when it was last written. It only saves work, so it may be lost."""

    stamp: str
    revision: int
    count: int
    last: int
    head: str


class Projection:
    """The branch files of one project."""

    def __init__(self, store: Store, clock: Clock, files: BranchFiles, project_id: str, memories: Memories) -> None:
        self._store = store
        self._clock = clock
        self._files = files
        self._project = project_id
        self._memories = memories
        self._applying = threading.local()

    def path(self, branch_id: str) -> Path:
        return self._files.path(self._project, branch_id)

    def refresh(self, branch_id: str, *, whole: bool = False) -> None:
        """Apply a person's edits, then update the file; `whole` rewrites it, where more than entries changed."""
        # While edits are applied, each change asks for a refresh, and the file is about to be written anyway.
        if getattr(self._applying, "branch", None) == branch_id:
            return
        # The person who edited the file is not the caller.
        with as_system(), self._files.locked(self._project, branch_id):
            state = self._state(branch_id)
            if self._is_touched(branch_id, state):
                self._apply_edits(branch_id)
                state = None
            self._write(branch_id, None if whole else state)

    def try_refresh(self, branch_id: str, *, whole: bool = False) -> None:
        """As `refresh`, after a committed change: a file that cannot be written must not fail the call."""
        try:
            self.refresh(branch_id, whole=whole)
        except CortexError as error:
            logger.warning("the file of branch %s was not written: %s", branch_id, error)

    def refresh_all(self, branches: Sequence[Branch]) -> None:
        """As `try_refresh`, for the branches whose file was edited, is missing or is behind the store."""
        with as_system(), self._store.database.read() as session:
            behind = [branch.id for branch in branches if not self._is_current(session, branch)]
        for branch_id in behind:
            self.try_refresh(branch_id)

    def _is_current(self, session: Session, branch: Branch) -> bool:
        """Whether a refresh would change nothing. Takes no lock: a project may have thousands of branches."""
        try:
            state = self._state(branch.id)
            if state is None or self._is_touched(branch.id, state):
                return False
        except CortexError:
            return False  # the refresh reports it
        old, rows = self._store.memories.of_branch_since(session, self._project, branch.id, state.revision)
        return state.head == _head(branch) and old == state.count and not rows

    def sync(self, branch_id: str) -> SyncResult:
        """Apply a person's edits and rewrite the file."""
        with as_system(), self._files.locked(self._project, branch_id):
            state = self._state(branch_id)
            done = self._apply_edits(branch_id) if self._is_touched(branch_id, state) else SyncResult()
            self._write(branch_id, None)
        return done

    def check(self, branch_id: str) -> BranchCheck:
        """Check the three things that make a branch complete."""
        text = self._files.read(self._project, branch_id)
        with self._store.database.read() as session:
            branch = self._store.branches.get(session, self._project, branch_id)
        valid = False
        if text is not None and branch is not None:
            try:
                found = parse(text, branch).branch
                valid = (found.topic, found.parent_id, found.git_branch) == (
                    branch.topic,
                    branch.parent_id,
                    branch.git_branch,
                )
            except CortexError as error:
                logger.warning("the file of branch %s is not valid: %s", branch_id, error)
        return BranchCheck(self.path(branch_id), text is not None, valid, branch is not None)

    # -- writing ---------------------------------------------------------------------------------

    def _write(self, branch_id: str, state: _State | None) -> None:
        with self._store.database.read() as session:
            branch = self._store.branches.get(session, self._project, branch_id)
            if branch is None:
                return
            seen = state.revision if state else 0
            old, rows = self._store.memories.of_branch_since(session, self._project, branch_id, seen)
            if state and (state.head != _head(branch) or old != state.count or not _follows(rows, state)):
                state = None
            if state is None:
                old, rows = 0, self._store.memories.of_branch(session, self._project, branch_id)
        if state and not rows:
            return
        revision = max([seq for _, seq, _ in rows], default=0)
        entries = [_entry(memory) for _, _, memory in rows]
        last = max([to_micros(memory.created_at) for _, _, memory in rows], default=0)
        branch = _as_of(branch, [memory.updated_at for _, _, memory in rows])
        text = self._files.read(self._project, branch_id) if state else None
        if text is None:
            text = render(BranchFile(branch, revision, tuple(entries)))
        else:
            text = append(text, branch, revision, entries)
        stamp = self._files.write(self._project, branch_id, text)
        self._keep(branch_id, _State(stamp, revision, old + len(rows), last, _head(branch)))

    def _keep(self, branch_id: str, state: _State) -> None:
        fields = [state.stamp, state.revision, state.count, state.last, state.head]
        self._files.keep_note(self._project, branch_id, json.dumps(fields))

    def _state(self, branch_id: str) -> _State | None:
        if self._files.stamp(self._project, branch_id) is None:
            return None  # a missing file is rewritten as a whole
        note = self._files.note(self._project, branch_id)
        try:
            stamp, revision, count, last, head = json.loads(note or "null")
            return _State(str(stamp), int(revision), int(count), int(last), str(head))
        except (ValueError, TypeError):
            return None

    def _is_touched(self, branch_id: str, state: _State | None) -> bool:
        found = self._files.stamp(self._project, branch_id)
        return found is not None and (state is None or found != state.stamp)

    # -- edits -----------------------------------------------------------------------------------

    def _apply_edits(self, branch_id: str) -> SyncResult:
        text = self._files.read(self._project, branch_id)
        with self._store.database.read() as session:
            branch = self._store.branches.get(session, self._project, branch_id)
            rows = self._store.memories.of_branch(session, self._project, branch_id)
        if text is None or branch is None:
            return SyncResult()
        parsed = parse(text, branch)
        edits = plan(parsed, [_entry(memory) for _, _, memory in rows])
        if parsed.branch.topic != branch.topic:
            edits = self._retitle(branch, parsed.branch.topic, edits)
        self._applying.branch = branch_id
        try:
            return self._carry_out(branch_id, edits)
        finally:
            self._applying.branch = None

    def _retitle(self, branch: Branch, topic: str, edits: EditPlan) -> EditPlan:
        """Store a new topic from the front matter. The title below still shows the old one; that is no added text."""
        check_topic(topic)
        with self._store.database.write(self._project) as session:
            self._store.branches.retitle(session, self._project, branch.id, topic, to_micros(self._clock.now()))
        title = f"# {branch.topic}".split()
        return replace(edits, additions=tuple(one for one in edits.additions if one.content.split() != title))

    def _carry_out(self, branch_id: str, edits: EditPlan) -> SyncResult:
        updated, removed = 0, 0
        kept = [(one.content, one.key, ("conflict",)) for one in edits.conflicts]
        for update in edits.updates:
            try:
                self._memories.update(update.id, content=update.content, expected_version=update.expected_version)
                updated += 1
            except (Conflict, NotFound):
                # It has changed since the plan was made: keep the person's text beside it.
                kept.append((update.content, f"{branch_id}:{update.id}:{update.expected_version}", ("conflict",)))
        for removal in edits.removals:
            if self._memories.get(removal.id).version == removal.expected_version:
                self._memories.delete(removal.id)
                removed += 1
        added = [(one.content, one.key, ()) for one in edits.additions]
        self._memories.capture_many(
            NewMemory(content=content, branch_id=branch_id, role="user", tags=tags, idempotency_key=key, namespace=None)
            for content, key, tags in (*kept, *added)
        )
        return SyncResult(updated, len(kept), removed, len(added))


def _entry(memory: Memory) -> FileEntry:
    return FileEntry(
        memory.id, memory.version, memory.created_at, memory.role, memory.namespace, memory.category, memory.content
    )


def _head(branch: Branch) -> str:
    """The fields of the front matter that do not depend on the entries."""
    return json.dumps([branch.topic, branch.parent_id, branch.git_branch])


def _follows(rows: Sequence[tuple[int, int, Memory]], state: _State) -> bool:
    """Whether new entries belong below all entries of the file; entries of the same moment may not."""
    return not rows or to_micros(rows[0][2].created_at) > state.last


def _as_of(branch: Branch, moments: Sequence[datetime]) -> Branch:
    newest = max([to_micros(moment) for moment in (branch.updated_at, *moments)])
    return replace(branch, updated_at=from_micros(newest))


# -- the changes to the store that a person's edits of a file call for --------------------------
# The rules lose neither a person's text nor what the store has:
#
# - A changed entry is an update while the store has the version that the file showed. If the store has moved on, its
#   version stays and the person's text becomes an entry of its own.
# - An emptied or deleted entry is removed if the store still has the version that the file showed. An entry that was
#   never in the file is not missing from it.
# - An entry that the store no longer has in this branch stays removed, because it may have been purged on purpose. Only
#   text that a person has changed since is kept, as an entry of its own.
# - An entry that Cortex never wrote to this file was pasted from elsewhere. It is new text, as is all text outside
#   entries.
# - A text equal to the store's is no change, so that a plan that was carried out in part can be made again.


@dataclass(frozen=True, slots=True)
class Update:
    """A new text for a memory that must still be at `expected_version`."""

    id: str
    content: str
    expected_version: int


@dataclass(frozen=True, slots=True)
class Addition:
    """A text that becomes an entry of its own.

    `key` is the same in every plan made from the same file. As an idempotency key it prevents a second attempt from
    adding the text twice.
    """

    content: str
    key: str


@dataclass(frozen=True, slots=True)
class Removal:
    """A memory to delete if it still is at `expected_version`."""

    id: str
    expected_version: int


@dataclass(frozen=True, slots=True)
class EditPlan:
    """The changes, each kind in the order of the file; falsy where there are none.

    `conflicts` are a person's texts for memories that have changed or gone in the meantime, to be kept beside them.
    """

    updates: tuple[Update, ...] = ()
    conflicts: tuple[Addition, ...] = ()
    removals: tuple[Removal, ...] = ()
    additions: tuple[Addition, ...] = ()

    def __bool__(self) -> bool:
        return bool(self.updates or self.conflicts or self.removals or self.additions)


def plan(parsed: ParsedFile, stored: Sequence[FileEntry]) -> EditPlan:
    """The changes that apply the edits of a file to the store, which now has `stored` in this branch."""
    known = {entry.id: entry for entry in stored}
    updates: list[Update] = []
    conflicts: list[Addition] = []
    removals: list[Removal] = []
    pasted: list[str] = []
    for found in parsed.entries:
        entry = known.get(found.id)
        if entry is None and not parsed.was_projected(found.id, found.version):
            pasted.append(found.content)
        elif not found.edited or (entry and entry.content == found.content):
            continue
        elif entry is None or entry.version != found.version:
            conflicts.append(Addition(found.content, _key(parsed, found.id, found.content)))
        elif _is_blank(found.content):
            removals.append(Removal(found.id, found.version))
        else:
            updates.append(Update(found.id, found.content, found.version))
    return EditPlan(
        updates=tuple(updates),
        # An emptied entry leaves no text to keep.
        conflicts=tuple(kept for kept in conflicts if not _is_blank(kept.content)),
        removals=(*removals, *_missing(parsed, stored)),
        additions=_additions(parsed, [*pasted, *parsed.loose]),
    )


def _missing(parsed: ParsedFile, stored: Sequence[FileEntry]) -> list[Removal]:
    """Entries that the file held in the store's version, and that a person deleted from it."""
    present = {entry.id for entry in parsed.entries}
    return [
        Removal(entry.id, entry.version)
        for entry in stored
        if entry.id not in present and parsed.was_projected(entry.id, entry.version)
    ]


def _additions(parsed: ParsedFile, texts: Sequence[str]) -> tuple[Addition, ...]:
    additions: list[Addition] = []
    seen: dict[str, int] = {}
    for text in texts:
        if _is_blank(text):
            continue
        # The same words written twice are two entries.
        seen[text] = seen.get(text, 0) + 1
        additions.append(Addition(text, _key(parsed, f"addition {seen[text]}", text)))
    return tuple(additions)


def _is_blank(text: str) -> bool:
    return not text.strip()


def _key(parsed: ParsedFile, what: str, content: str) -> str:
    name = f"{parsed.branch.project_id}\n{parsed.branch.id}\n{parsed.revision}\n{what}\n{content}"
    return f"branch-file-{blake2b(name.encode('utf-8', 'surrogatepass'), digest_size=16).hexdigest()}"
