"""The branch file kept in step with the store, and a person's edits of it taken in.

The store is right; the file is made from it. A file that somebody touched is never written over: its edits are taken
in first, and one that cannot be read is left as it is.
"""

from __future__ import annotations

import json
import logging
import threading
from collections.abc import Sequence
from dataclasses import dataclass, replace
from datetime import datetime
from pathlib import Path

from ..clock import Clock, from_micros, to_micros
from ..errors import Conflict, CortexError, NotFound
from ..memory.service import Memories
from ..records import Branch, Memory, NewMemory
from ..security.callers import acting_as
from ..store.store import Store
from .branch import check_topic
from .branch_edits import Plan, plan
from .branch_file import BranchFile, Entry, append, parse, render
from .branch_store import BranchFiles

__all__ = ["BranchCheck", "Projection", "Synced"]

_log = logging.getLogger(__name__)


@dataclass(frozen=True, slots=True)
class Synced:
    """What was taken from a branch file into the store."""

    updated: int = 0
    conflicts: int = 0
    removed: int = 0
    added: int = 0

    def __bool__(self) -> bool:
        return bool(self.updated or self.conflicts or self.removed or self.added)


@dataclass(frozen=True, slots=True)
class BranchCheck:
    """Whether a branch is truly there: its file, a front matter that says the same as the store, and its record."""

    path: Path
    file_exists: bool
    front_matter_valid: bool
    indexed: bool

    @property
    def verified(self) -> bool:
        return self.file_exists and self.front_matter_valid and self.indexed


@dataclass(frozen=True, slots=True)
class _State:
    """What the file showed when it was last written; only a short cut, so that it may be lost."""

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
        self._taking = threading.local()

    def path(self, branch_id: str) -> Path:
        return self._files.path(self._project, branch_id)

    def refresh(self, branch_id: str, *, whole: bool = False) -> None:
        """Bring a file up to date, with a person's edits taken in first; `whole` where more than entries changed."""
        # While edits are taken in, each change would call for a file that is about to be written anyway.
        if getattr(self._taking, "branch", None) == branch_id:
            return
        # Whoever edited the file was not the caller.
        with acting_as(None), self._files.locked(self._project, branch_id):
            state = self._state(branch_id)
            if self._is_touched(branch_id, state):
                self._take_in(branch_id)
                state = None
            self._write(branch_id, None if whole else state)

    def try_refresh(self, branch_id: str, *, whole: bool = False) -> None:
        """As `refresh`, after a change that is already safe: a file that cannot be written must not undo it."""
        try:
            self.refresh(branch_id, whole=whole)
        except CortexError as error:
            _log.warning("the file of branch %s was not written: %s", branch_id, error)

    def sync(self, branch_id: str) -> Synced:
        """Take a person's edits in and write the file anew."""
        with acting_as(None), self._files.locked(self._project, branch_id):
            state = self._state(branch_id)
            done = self._take_in(branch_id) if self._is_touched(branch_id, state) else Synced()
            self._write(branch_id, None)
        return done

    def check(self, branch_id: str) -> BranchCheck:
        """The three things that make a branch verified, each looked up anew."""
        text = self._files.read(self._project, branch_id)
        with self._store.database.read() as session:
            branch = self._store.branches.get(session, self._project, branch_id)
            listed = any(one.id == branch_id for one in self._store.branches.all(session, self._project))
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
                _log.warning("the file of branch %s is not valid: %s", branch_id, error)
        return BranchCheck(self.path(branch_id), text is not None, valid, branch is not None and listed)

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
            return None  # a file that is gone is written anew, whole
        note = self._files.note(self._project, branch_id)
        try:
            stamp, revision, count, last, head = json.loads(note or "null")
            return _State(str(stamp), int(revision), int(count), int(last), str(head))
        except (ValueError, TypeError):
            return None

    def _is_touched(self, branch_id: str, state: _State | None) -> bool:
        found = self._files.stamp(self._project, branch_id)
        return found is not None and (state is None or found != state.stamp)

    # -- taking in -------------------------------------------------------------------------------

    def _take_in(self, branch_id: str) -> Synced:
        text = self._files.read(self._project, branch_id)
        with self._store.database.read() as session:
            branch = self._store.branches.get(session, self._project, branch_id)
            rows = self._store.memories.of_branch(session, self._project, branch_id)
        if text is None or branch is None:
            return Synced()
        parsed = parse(text, branch)
        edits = plan(parsed, [_entry(memory) for _, _, memory in rows])
        if parsed.branch.topic != branch.topic:
            edits = self._retitle(branch, parsed.branch.topic, edits)
        self._taking.branch = branch_id
        try:
            return self._carry_out(branch_id, edits)
        finally:
            self._taking.branch = None

    def _retitle(self, branch: Branch, topic: str, edits: Plan) -> Plan:
        """Take a new topic from the front matter; the title below it still shows the old one, which nobody added."""
        check_topic(topic)
        with self._store.database.write() as session:
            self._store.branches.retitle(session, self._project, branch.id, topic, to_micros(self._clock.now()))
        title = f"# {branch.topic}".split()
        return replace(edits, additions=tuple(one for one in edits.additions if one.content.split() != title))

    def _carry_out(self, branch_id: str, edits: Plan) -> Synced:
        updated, removed = 0, 0
        kept = [(one.content, one.key, ("conflict",)) for one in edits.conflicts]
        for update in edits.updates:
            try:
                self._memories.update(update.id, content=update.content, expected_version=update.expected_version)
                updated += 1
            except (Conflict, NotFound):
                # Changed between our look and now: the person's text is kept beside it.
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
        return Synced(updated, len(kept), removed, len(added))


def _entry(memory: Memory) -> Entry:
    return Entry(
        memory.id,
        memory.version,
        memory.created_at,
        memory.role,
        memory.namespace,
        memory.category,
        memory.content,
    )


def _head(branch: Branch) -> str:
    """What the front matter says of a branch besides its entries."""
    return json.dumps([branch.topic, branch.parent_id, branch.git_branch])


def _follows(rows: Sequence[tuple[int, int, Memory]], state: _State) -> bool:
    """Whether new entries belong below all that the file shows; at the same moment their numbers would decide."""
    return not rows or to_micros(rows[0][2].created_at) > state.last


def _as_of(branch: Branch, moments: Sequence[datetime]) -> Branch:
    newest = max([to_micros(moment) for moment in (branch.updated_at, *moments)])
    return replace(branch, updated_at=from_micros(newest))
