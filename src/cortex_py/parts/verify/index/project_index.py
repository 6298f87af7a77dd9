"""Keeps the index of a project folder up to date; only what changed is read again.

A stamp of the folder shows whether anything changed at all. Files that the caller names are read first, then those that
hold a word that the caller names. If time runs out, the index is marked incomplete: something that is missing in it may
still exist. Progress is reported for the files, then for the commits.
"""

from __future__ import annotations

import hashlib
import json
import logging
import posixpath
import threading
from collections import OrderedDict
from collections.abc import Callable, Collection, Iterable, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import TypeVar

from ....core.errors import GitFailed
from ....core.jobs import report
from ....worktree.code.behaviour import SyntaxFile
from ....worktree.code.naming import Language
from ....worktree.files.choice import skip_by_name
from ....worktree.files.files import FileRef, compute_stamp, project_files, read_file
from ....worktree.git.history import (
    Commit,
    WorkingChanges,
    files_with,
    is_partial_clone,
    list_reachable,
    read_commits,
    read_tags,
    read_working_changes,
)
from ....worktree.git.repository import Repository
from .facts import FileFacts, file_facts, holds_secret, redact_commit, redact_line
from .sqlite_index import IndexFile, IndexReader, drop_file, keep_note, put_commit, put_file

__all__ = ["IndexState", "ProjectIndex", "index_name"]

logger = logging.getLogger(__name__)

_BATCH_FILES = 200
_BATCH_COMMITS = 100
_FEW_FILES = 20  # are read as fast as they are searched
_MOST_COMMITS = 5_000
_MOST_TREES = 24  # syntax trees that are kept for later claims
_SHORT_NAME = 3
_UNREAD = frozenset(("binary", "private", "vendored"))
_NO_CHANGES = WorkingChanges((), (), ())
Stop = Callable[[], bool]
_T = TypeVar("_T")


@dataclass(frozen=True, slots=True)
class IndexState:
    """What the index covers, and what git knows: reachable commits, tags, uncommitted changes.

    `whole_history` is False for a shallow or partial clone and for a history with more commits than are read.
    """

    files: int
    complete: bool
    whole_history: bool
    commits: frozenset[str]
    tags: dict[str, tuple[str, ...]]
    uncommitted: WorkingChanges


def index_name(root: Path) -> str:
    """The name of a folder's index file. Two working trees of one project have different files, hence two indexes."""
    return f"{hashlib.sha256(str(root).encode('utf-8', 'surrogateescape')).hexdigest()[:24]}.db"


class ProjectIndex:
    """The index of one folder."""

    def __init__(
        self, path: Path, root: Path, repository: Repository | None, key: bytes | None = None, home: Path | None = None
    ) -> None:
        self.file = IndexFile(path, key)
        self.root = root
        self._home = home
        self.repository = repository
        # A condition instead of a lock, because git may take long and other threads wait only so long.
        self._turn = threading.Condition()
        self._is_reading = False
        self._stamp: tuple[str, int] | None = None
        self._standing = IndexState(0, False, True, frozenset(), {}, _NO_CHANGES)
        self._trees: OrderedDict[tuple[str, int], SyntaxFile] = OrderedDict()

    def syntax(self, path: str, text: str, language: Language) -> SyntaxFile:
        """The syntax of a file, kept for later claims until the text changes."""
        key = (path, hash(text))
        with self._turn:
            found = self._trees.get(key)
        if found is None:
            found = SyntaxFile(language, text)
        with self._turn:
            self._trees[key] = found
            self._trees.move_to_end(key)
            while len(self._trees) > _MOST_TREES:
                self._trees.popitem(last=False)
        return found

    def marks(self) -> dict[str, str]:
        """The indexed files, each with a mark of its content."""
        return self.guarded(lambda: IndexReader(self.file).marks())

    def defined_names(self, paths: Iterable[str]) -> set[str]:
        """The names that some files define, without those that may be any word."""
        reader = IndexReader(self.file)
        found = self.guarded(lambda: [one.name for path in paths for one in reader.definitions_in(path)])
        return {name for name in found if len(name) > _SHORT_NAME}

    def guarded(self, work: Callable[[], _T]) -> _T:
        """Do some work on the index; if the file turns out to be damaged, rebuild it and do the work again."""
        return self.file.guarded(work)

    def close(self) -> None:
        self.file.close()

    def refresh(
        self,
        first: Collection[str] = (),
        stop: Stop = lambda: False,
        patience: float | None = None,
        words: Collection[str] = (),
    ) -> IndexState:
        """Read what changed since the last time, until `stop` returns True.

        The files in `first` come before those with one of the words, and these before others. If another thread is
        reading, wait for it up to `patience` seconds, then return what it has so far.
        """
        with self._turn:
            if not self._turn.wait_for(lambda: not self._is_reading, patience):
                return self._standing
            self._is_reading = True
        try:
            now = compute_stamp(self.root, self.repository)
            if now is None or (now, self._opening()) != self._stamp or not self._standing.complete:
                self._stamp = None
                self._standing = replace(self._standing, complete=False)
                self.guarded(lambda: self._read(first, words, stop))
                self._stamp = (now, self._opening()) if now is not None else None
            return self._standing
        finally:
            with self._turn:
                self._is_reading = False
                self._turn.notify()

    def _opening(self) -> int:
        return self.guarded(lambda: self.file.opening)

    def _read(self, first: Collection[str], words: Collection[str], stop: Stop) -> None:
        # A file with a secret in its path is left out, as in a scan: it could only be indexed under another name.
        # A path has one slash where the address that it was named after has two.
        refs = (
            ref for ref in project_files(self.root, home=self._home) if not holds_secret(ref.label.replace(":/", "://"))
        )
        listed = {ref.label: ref for ref in refs}
        known = IndexReader(self.file).marks()
        gone = [path for path in known if path not in listed]
        changed = [ref for path, ref in listed.items() if known.get(path) != _mark(ref)]
        names = {posixpath.basename(path).lower() for path in first}
        holding = files_with(self.repository, words) if self.repository and len(changed) > _FEW_FILES else ()
        changed.sort(
            key=lambda ref: (
                posixpath.basename(ref.label).lower() not in names,
                ref.label not in holding,
                _weight(ref),
                ref.label,
            )
        )
        self._standing = self._outlook(len(listed))
        self._forget(gone)
        taken = self._take(changed, stop)
        # Their indexed content is outdated.
        self._forget(ref.label for ref in changed[taken:] if ref.label in known)
        whole = self._history(stop) and taken == len(changed)
        cut = bool(self.file.value("cut"))
        self._standing = replace(self._standing, complete=whole, whole_history=self._standing.whole_history and not cut)

    def _outlook(self, files: int) -> IndexState:
        """The state before any file is read."""
        repository = self.repository
        if repository is None:
            return IndexState(files, False, True, frozenset(), {}, _NO_CHANGES)
        ids = frozenset(list_reachable(repository))
        cut = (repository.common_dir / "shallow").exists() or is_partial_clone(repository)
        cut = cut or bool(self.file.value("cut"))
        whole = len(ids) <= _MOST_COMMITS and not cut
        return IndexState(files, False, whole, ids, read_tags(repository), read_working_changes(repository))

    def _take(self, changed: Sequence[FileRef], stop: Stop) -> int:
        """Index files; returns how many, which is fewer than all if stopped."""
        for low in range(0, len(changed), _BATCH_FILES):
            facts = []
            for ref in changed[low : low + _BATCH_FILES]:
                if stop():
                    break
                facts.append((ref, self._facts(ref)))
                report("files", low + len(facts), len(changed))
            with self.file.write() as connection:
                for ref, found in facts:
                    put_file(connection, ref.label, _mark(ref), found)
            if low + len(facts) < min(low + _BATCH_FILES, len(changed)):
                return low + len(facts)
        return len(changed)

    def _facts(self, ref: FileRef) -> FileFacts:
        reason = skip_by_name(ref.label)
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
        """Read new commits; True if all were read. Those of other branches stay: lookups ask for reachable ones."""
        repository = self.repository
        if repository is None:
            return True
        head = repository.head().commit
        tips: list[str] = json.loads(self.file.value("tips") or "[]")
        if head is None or head in tips:
            return True
        batch: list[Commit] = []
        unread = 0 if tips else min(len(self._standing.commits), _MOST_COMMITS)
        done = 0
        stopped = False

        def ended() -> bool:
            nonlocal stopped
            stopped = stopped or stop()
            return stopped

        try:
            for commit in read_commits(repository, since=tips, most=_MOST_COMMITS, deadline=ended, clean=redact_line):
                batch.append(commit)
                done += 1
                report("files", done, unread)
                if len(batch) == _BATCH_COMMITS:
                    self._put_commits(batch)
                    batch = []
        except GitFailed as error:
            # A history with missing objects is known only in part, and the files can still be checked.
            logger.debug("the history of a project could not be read to its end: %s", type(error).__name__)
            with self.file.write() as connection:
                keep_note(connection, "cut", head)
        self._put_commits(batch)
        if not stopped:
            with self.file.write() as connection:
                keep_note(connection, "tips", json.dumps([head, *tips][:50]))
        return not stopped

    def _put_commits(self, batch: Sequence[Commit]) -> None:
        if batch:
            with self.file.write() as connection:
                for commit in batch:
                    put_commit(connection, redact_commit(commit))


def _mark(ref: FileRef) -> str:
    return ref.blob or f"size {ref.size}"


def _weight(ref: FileRef) -> int:
    """Source code and manifests come before other files."""
    return 1 if skip_by_name(ref.label) is not None else 0
