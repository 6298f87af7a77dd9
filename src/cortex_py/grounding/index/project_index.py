"""The index of a project folder, brought up to date before it is asked: only what changed is read again.

One look at the folder tells whether anything changed at all. Where there is not enough time to read everything, what a
caller names comes first, and the index says that it is not complete: then something that is not in it may still exist.
"""

from __future__ import annotations

import hashlib
import json
import posixpath
import threading
from collections.abc import Callable, Collection, Iterable, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import TypeVar

from ..worktree.choice import name_reason
from ..worktree.files import FileRef, project_files, read_file
from ..worktree.git import Repository
from ..worktree.history import Commit, WorkingChanges, commits, reachable, tags, working_changes
from ..worktree.stamps import stamp
from .file_facts import FileFacts, file_facts
from .sqlite_index import IndexFile
from .sqlite_reading import IndexReader
from .sqlite_writing import drop_file, keep_note, put_commit, put_file

__all__ = ["ProjectIndex", "Standing", "index_path"]

_BATCH_FILES = 200
_BATCH_COMMITS = 100
_MOST_COMMITS = 5_000
_UNREAD = frozenset(("binary", "private", "vendored"))
_NO_CHANGES = WorkingChanges((), (), ())
Stop = Callable[[], bool]
_T = TypeVar("_T")


@dataclass(frozen=True, slots=True)
class Standing:
    """What the index stands for: how much of the folder was read, and what is not committed.

    `whole_history` is False for a shallow clone, and where there are more commits than are read.
    """

    files: int
    complete: bool
    whole_history: bool
    commits: frozenset[str]
    tags: dict[str, tuple[str, ...]]
    uncommitted: WorkingChanges


def index_path(home: Path, root: Path) -> Path:
    """Where the index of a folder is kept: two working trees of one project differ in their files."""
    name = hashlib.sha256(str(root).encode("utf-8", "surrogateescape")).hexdigest()[:24]
    return home / "evidence" / f"{name}.db"


class ProjectIndex:
    """The index of one folder."""

    def __init__(self, path: Path, root: Path, repository: Repository | None) -> None:
        self.file = IndexFile(path)
        self.root = root
        self.repository = repository
        self._lock = threading.Lock()
        self._stamp: tuple[str, int] | None = None
        self._standing = Standing(0, False, True, frozenset(), {}, _NO_CHANGES)

    def guarded(self, work: Callable[[], _T]) -> _T:
        """Do some work on the index; once more, with another, where it turns out to be damaged."""
        return self.file.guarded(work)

    def close(self) -> None:
        self.file.close()

    def refresh(
        self, first: Collection[str] = (), stop: Stop = lambda: False, patience: float | None = None
    ) -> Standing:
        """Read what changed since the last time, files that `first` names before others, until `stop` says so.

        Where another thread is reading, wait for it, but no longer than `patience` seconds: then what it has so far
        has to do.
        """
        if not self._lock.acquire(timeout=-1 if patience is None else patience):
            return self._standing
        try:
            now = stamp(self.root, self.repository)
            if now is None or (now, self._opening()) != self._stamp or not self._standing.complete:
                self._stamp = None
                self._standing = replace(self._standing, complete=False)
                self.guarded(lambda: self._read(first, stop))
                self._stamp = (now, self._opening()) if now is not None else None
            return self._standing
        finally:
            self._lock.release()

    def _opening(self) -> int:
        return self.guarded(lambda: self.file.opening)

    def _read(self, first: Collection[str], stop: Stop) -> None:
        listed = {ref.label: ref for ref in project_files(self.root)}
        known = IndexReader(self.file).marks()
        gone = [path for path in known if path not in listed]
        changed = [ref for path, ref in listed.items() if known.get(path) != _mark(ref)]
        names = {posixpath.basename(path).lower() for path in first}
        changed.sort(key=lambda ref: (posixpath.basename(ref.label).lower() not in names, _weight(ref), ref.label))
        self._standing = self._outlook(len(listed))
        self._forget(gone)
        taken = self._take(changed, stop)
        # What was read of them before is no longer so.
        self._forget(ref.label for ref in changed[taken:] if ref.label in known)
        whole = self._history(stop) and taken == len(changed)
        self._standing = replace(self._standing, complete=whole)

    def _outlook(self, files: int) -> Standing:
        """What can be told before anything is read."""
        repository = self.repository
        if repository is None:
            return Standing(files, False, True, frozenset(), {}, _NO_CHANGES)
        ids = frozenset(reachable(repository))
        whole = len(ids) <= _MOST_COMMITS and not (repository.common_dir / "shallow").exists()
        return Standing(files, False, whole, ids, tags(repository), working_changes(repository))

    def _take(self, changed: Sequence[FileRef], stop: Stop) -> int:
        """Read files and write down what they tell; how many, which is less than all when stopped before the end."""
        for low in range(0, len(changed), _BATCH_FILES):
            facts = []
            for ref in changed[low : low + _BATCH_FILES]:
                if stop():
                    break
                facts.append((ref, self._facts(ref)))
            with self.file.write() as connection:
                for ref, found in facts:
                    put_file(connection, ref.label, _mark(ref), found)
            if low + len(facts) < min(low + _BATCH_FILES, len(changed)):
                return low + len(facts)
        return len(changed)

    def _facts(self, ref: FileRef) -> FileFacts:
        reason = name_reason(ref.label)
        if reason in _UNREAD:
            return FileFacts(reason)
        return file_facts(ref.label, read_file(self.root, ref)) if ref.blob is not None else FileFacts("huge")

    def _forget(self, paths: Iterable[str]) -> None:
        paths = list(paths)
        if paths:
            with self.file.write() as connection:
                for path in paths:
                    drop_file(connection, path)

    def _history(self, stop: Stop) -> bool:
        """Read the commits that are new; those of other branches stay, and are told apart by who can reach them."""
        repository = self.repository
        if repository is None:
            return True
        head = repository.head().commit
        tips: list[str] = json.loads(self.file.value("tips") or "[]")
        if head is None or head in tips:
            return True
        batch: list[Commit] = []
        stopped = False

        def ended() -> bool:
            nonlocal stopped
            stopped = stopped or stop()
            return stopped

        for commit in commits(repository, since=tips, most=_MOST_COMMITS, deadline=ended):
            batch.append(commit)
            if len(batch) == _BATCH_COMMITS:
                self._put_commits(batch)
                batch = []
        self._put_commits(batch)
        if not stopped:
            with self.file.write() as connection:
                keep_note(connection, "tips", json.dumps([head, *tips][:50]))
        return not stopped

    def _put_commits(self, batch: Sequence[Commit]) -> None:
        if batch:
            with self.file.write() as connection:
                for commit in batch:
                    put_commit(connection, commit)


def _mark(ref: FileRef) -> str:
    return ref.blob or f"size {ref.size}"


def _weight(ref: FileRef) -> int:
    """Source and manifests before what is rarely spoken of."""
    return 1 if name_reason(ref.label) is not None else 0
