"""Reads a repository's history through git: commits with their changes to files and names, and the uncommitted work.

All ancestors of HEAD are read, newest first. A commit is compared with its parent; a merge has no changes of its own,
because the commits it brought in carry them. Where the content is not available (the oldest commits of a shallow
clone, all of a partial clone), a commit has no changes and is not complete. User settings do not affect the result.

Without git, or on a branch without commits, there is no history. If git fails half-way, that is an error, because an
empty history would be taken for the truth. Nothing here writes, uses the network or runs a configured diff command.
"""

from __future__ import annotations

import os
import re
from collections.abc import Callable, Collection, Generator, Iterable, Iterator, Sequence
from contextlib import closing
from dataclasses import dataclass, replace
from datetime import UTC, datetime, timedelta
from typing import TypeVar

from ...core.errors import CortexError, GitFailed
from ..files.files import FileRef, read_file
from .diffs import (
    MOST_BYTES,
    MOST_FILES,
    MOST_LISTED,
    ChangedLine,
    PatchFile,
    PatchReader,
    Status,
    TextCleaner,
    new_file_change,
    new_file_lines,
    parse_raw_listing,
    path_label,
)
from .repository import COMMIT, Repository, decode_output
from .runner import git_lines, has_git, run_git

__all__ = [
    "ChangedLine", "Commit", "Patch", "PatchFile", "Status", "WorkingChanges", "files_with", "find_commit",
    "is_partial_clone", "list_reachable", "read_commits", "read_log", "read_patch", "read_tags", "read_working_changes",
]  # fmt: skip

_T = TypeVar("_T")

_TIMEOUT_SECONDS = 120.0
_SEARCH_SECONDS = 0.5
_EPOCH = datetime(1970, 1, 1, tzinfo=UTC)
_MOST_SUBJECT = 2_000
_MOST_BODY = 100_000
_PREFIX = re.compile(r"[0-9a-f]{4,64}\Z")
# What git allows in a ref name, without characters that have a meaning in a revision.
_PLAIN_NAME = re.compile(r"(?!-)(?!.*(?:\.\.|@\{|//))[^\x00-\x20\x7f~^:?*\[\\\ud800-\udfff]{1,250}\Z")

_SETTINGS = (
    # Larger files count as binary: their lines could be of any length.
    *("core.bigFileThreshold=20m", "diff.noprefix=false", "diff.mnemonicPrefix=false", "diff.autoRefreshIndex=true"),
    "mailmap.blob=HEAD:.mailmap",
)
_RENAMES = ("-M", f"-l{MOST_FILES}", "-O/dev/null", "--no-color", "--no-relative", "--ignore-submodules=dirty")
_PATCH = (
    *("-p", "-U0", "--inter-hunk-context=0", "--diff-algorithm=myers", "--indent-heuristic", "--submodule=short"),
    *("--src-prefix=a/", "--dst-prefix=b/", *_RENAMES),
)
# Separated by NUL, which a message cannot contain; a line with a single NUL ends the message.
_FORMAT = "--format=tformat:%x00%H%x00%P%x00%ct%x00%aN%x00%s%n%b%n%x00"
_LOG = ("--no-notes", "--encoding=UTF-8", _FORMAT)


@dataclass(frozen=True, slots=True)
class Commit:
    """A commit, with its changes against its parent; a root commit's are against nothing, a merge has none.

    `time` is when it was committed, `author` after the project's own mailmap. It is not `complete` if
    not all of its patch was read for names, or if its content is not available.
    """

    id: str
    parents: tuple[str, ...]
    time: datetime
    author: str
    subject: str
    body: str
    changes: tuple[PatchFile, ...]
    complete: bool


@dataclass(frozen=True, slots=True)
class WorkingChanges:
    """Uncommitted work: index against HEAD, working tree against index, and untracked files."""

    staged: tuple[PatchFile, ...] = ()
    unstaged: tuple[PatchFile, ...] = ()
    untracked: tuple[PatchFile, ...] = ()
    complete: bool = True


@dataclass(frozen=True, slots=True)
class Patch:
    """The changed lines of one file, each cut to a readable length; none if the file did not change."""

    path: str
    old_path: str | None = None
    lines: tuple[ChangedLine, ...] = ()
    complete: bool = True


def read_commits(
    repository: Repository,
    *,
    since: Collection[str] = (),
    most: int = 5_000,
    deadline: Callable[[], bool] = lambda: False,
    clean: TextCleaner = str,
) -> Iterator[Commit]:
    """The commits that HEAD descends from, newest first, without those that the given ones descend from.

    Unknown ids in `since` are ignored. The history is read lazily. `clean` is applied to lines before names are
    read from them.
    """
    head = repository.head().commit
    if head is None or most <= 0:
        return
    known = [name for name, kind in _objects(repository, since) if kind == "commit"]
    yield from _read(repository, most, [head, *(f"^{name}" for name in known)], deadline, clean)


def read_log(repository: Repository, *, most: int = 20_000) -> list[Commit]:
    """The commits that HEAD descends from, newest first, without their changes and bodies."""
    head = repository.head().commit
    if head is None or most <= 0:
        return []
    wanted = "--format=tformat:%H%x00%P%x00%ct%x00%aN%x00%s"
    options = ("--no-notes", "--encoding=UTF-8", "--no-patch", wanted, f"--max-count={most}", head)
    with closing(_lines(repository, "log", *options)) as lines:
        return [_commit(line.split(b"\0", 4)) for line in lines]


def find_commit(repository: Repository, revision: str) -> Commit | None:
    """One commit by its (possibly abbreviated) id, tag or branch; None if unknown or ambiguous."""
    name = _resolved(repository, revision)
    found = [] if name is None else list(_read(repository, 1, [name]))
    return found[0] if found else None


def list_reachable(repository: Repository, most: int = 50_000) -> list[str]:
    """The ids of the commits that HEAD descends from, newest first."""
    head = repository.head().commit
    return [] if head is None else decode_output(_ask(repository, "rev-list", f"--max-count={most}", head)).split()


def read_tags(repository: Repository) -> dict[str, tuple[str, ...]]:
    """The names of the tags at each commit that has any."""
    wanted = "--format=%(objecttype) %(objectname) %(*objecttype) %(*objectname) %(refname)"
    found: dict[str, tuple[str, ...]] = {}
    for line in decode_output(_ask(repository, "for-each-ref", wanted, "refs/tags/")).split("\n")[:-1]:
        kind, name, inner_kind, inner_name, ref = line.split(" ", 4)
        kind, name = inner_kind or kind, inner_name or name
        # A tag may point to another tag, or to something other than a commit.
        commit = name if kind == "commit" else _peeled(repository, name) if kind == "tag" else None
        if commit is not None:
            found[commit] = (*found.get(commit, ()), ref.removeprefix("refs/tags/"))
    return found


def read_working_changes(repository: Repository) -> WorkingChanges:
    """The uncommitted changes; none in a bare repository."""
    if repository.is_bare:
        return WorkingChanges()
    # For a file in conflict, only the checked-out side is compared.
    staged, whole = _difference(repository, "--cached")
    unstaged, whole_too = _difference(repository, "--ours")
    untracked: list[PatchFile] = []
    left = MOST_BYTES
    paths = _untracked(repository)
    is_complete = whole and whole_too and len(paths) <= MOST_FILES
    for position, path in enumerate(paths[:MOST_LISTED]):
        data = _content(repository, path) if position < MOST_FILES and left > 0 else None
        is_complete = is_complete and data is not None
        left -= len(data or b"")
        untracked.append(new_file_change(path, data or b""))
    return WorkingChanges(staged, unstaged, tuple(untracked), is_complete)


def read_patch(repository: Repository, commit: str | None, path: str, *, most_bytes: int = 200_000) -> Patch:
    """What a commit, or without one the work since HEAD, did to the file with the path of a `PatchFile`."""
    compared = _compared(repository, commit)
    if compared is None:
        return Patch(path)
    listing = _ask(repository, *compared, "--raw", "-z", *_RENAMES)
    entry = _choice(path, parse_raw_listing(listing), lambda pair: pair[1])
    if entry is not None:
        old, new = entry
        # git recognises a rename only if both paths are given.
        options = (*compared[1:], *_PATCH, "--", *{os.fsdecode(name): None for name in entry})
        with closing(_lines(repository, compared[0], *options)) as lines:
            found, is_complete = PatchReader(lines).lines_of(new, most_bytes)
        return Patch(path, None if old == new else path_label(old), found, is_complete)
    if commit is not None:
        return Patch(path, complete=bool(listing) or not repository.is_shallow)
    name = _choice(path, _untracked(repository), lambda name: name)
    data = b"" if name is None else _content(repository, name)
    found, is_complete = new_file_lines(data or b"", most_bytes)
    return Patch(path, None, found, is_complete and data is not None)


def _compared(repository: Repository, commit: str | None) -> tuple[str, ...] | None:
    """The command that compares a commit with its parent, or the working tree with HEAD, before its options."""
    if commit is not None:
        name = _resolved(repository, commit)
        root = () if repository.is_shallow else ("--root",)
        return None if name is None else ("diff-tree", "-r", "--no-commit-id", *root, name)
    if repository.is_bare:
        return None
    head = repository.head().commit
    # Before the first commit, compare with the empty tree, which every repository knows.
    base = head or decode_output(_ask(repository, "hash-object", "-t", "tree", "--stdin")).strip()
    return ("diff", base) if base else None


def _choice(path: str, entries: Iterable[_T], name: Callable[[_T], bytes]) -> _T | None:
    """The entry displayed under a path; an exact match of the bytes is preferred."""
    found = [entry for entry in entries if path_label(name(entry)) == path]
    exact = path.encode("utf-8", "replace")
    return next((entry for entry in found if name(entry) == exact), found[0] if found else None)


def _read(
    repository: Repository,
    most: int,
    revisions: Iterable[str],
    deadline: Callable[[], bool] = lambda: False,
    clean: TextCleaner = str,
) -> Iterator[Commit]:
    is_partial = is_partial_clone(repository)
    is_shallow = repository.is_shallow
    # At the boundary of a shallow clone, all files would seem to be new.
    settings = (f"log.showRoot={'false' if is_shallow else 'true'}",)
    patches = () if is_partial else _PATCH
    options = (*_LOG, *patches, f"--max-count={most}", "--stdin")
    with closing(_lines(repository, "log", *options, settings=settings, stdin=revisions)) as lines:
        reader = PatchReader(lines, clean)
        while reader.line is not None and not deadline():
            facts = reader.line.split(b"\0", 5)[1:]
            body = _body(reader)
            changes, is_whole = reader.changes()
            is_hidden = is_partial or (is_shallow and not facts[1])
            is_complete = is_whole and not is_hidden
            yield replace(_commit(facts), body=body, changes=changes, complete=is_complete)


def _commit(facts: Sequence[bytes]) -> Commit:
    """A commit by its id, parents, time, author and subject; its body and changes are not read."""
    name, parents, moment, author, subject = facts
    return Commit(
        id=decode_output(name),
        parents=tuple(decode_output(parents).split()),
        time=_time(moment),
        author=decode_output(author).strip(),
        subject=decode_output(subject).strip()[:_MOST_SUBJECT],
        body="",
        changes=(),
        complete=False,
    )


def files_with(repository: Repository, words: Collection[str]) -> frozenset[str]:
    """The tracked files that hold one of the words; none where git does not answer soon."""
    if not words:
        return frozenset()
    wanted = [part for word in words for part in ("-e", word)]
    answer = run_git(repository.root, "grep", "-lzIwF", *wanted, settings=_SETTINGS, timeout=_SEARCH_SECONDS)
    return frozenset(path_label(path) for path in answer.stdout.split(b"\0")) if answer else frozenset()


def is_partial_clone(repository: Repository) -> bool:
    """Whether git would have to fetch missing content: such a clone keeps a marker file beside its packs."""
    return any((repository.common_dir / "objects" / "pack").glob("*.promisor"))


def _body(reader: PatchReader) -> str:
    lines: list[bytes] = []
    left = _MOST_BODY
    while (line := reader.advance()) is not None and line != b"\0":
        left -= len(line) + 1
        if left >= 0:
            lines.append(line)
    reader.advance()
    return decode_output(b"\n".join(lines)).strip()


def _time(seconds: bytes) -> datetime:
    try:
        return _EPOCH + timedelta(seconds=int(seconds))
    except (ValueError, OverflowError):
        # A commit can claim any time; one outside the calendar becomes the epoch.
        return _EPOCH


def _difference(repository: Repository, side: str) -> tuple[tuple[PatchFile, ...], bool]:
    try:
        with closing(_lines(repository, "diff", side, *_PATCH)) as lines:
            return PatchReader(lines).changes()
    except GitFailed:
        # A partial clone may lack what a deleted file had.
        with closing(_lines(repository, "diff", side, "--irreversible-delete", *_PATCH)) as lines:
            return PatchReader(lines).changes()[0], False


def _untracked(repository: Repository) -> list[bytes]:
    paths = _ask(repository, "ls-files", "-z", "--others", "--exclude-standard").split(b"\0")
    # A trailing slash marks another repository inside this one.
    return sorted(path for path in paths if path and not path.endswith(b"/"))


def _content(repository: Repository, path: bytes) -> bytes | None:
    """The content of a new file, empty for a link; None if it is too large or cannot be read."""
    name = os.fsdecode(path)
    return b"" if (repository.root / name).is_symlink() else read_file(repository.root, FileRef(name, 0, None))


def _resolved(repository: Repository, revision: str) -> str | None:
    """The one commit that an (abbreviated) id, a tag or a branch names."""
    found: set[str | None] = set()
    if _PREFIX.match(revision):
        is_whole = COMMIT.match(revision)
        alike = (
            [revision]
            if is_whole
            else decode_output(_ask(repository, "rev-parse", f"--disambiguate={revision}")).split()
        )
        objects = _objects(repository, alike)
        for kind in ("commit", "tag"):
            found |= {_peeled(repository, name) for name, one in objects if one == kind} if not found else set()
    if _PLAIN_NAME.match(revision):
        found |= {_peeled(repository, f"refs/{kind}/{revision}") for kind in ("tags", "heads")}
    found.discard(None)
    return found.pop() if len(found) == 1 else None


def _peeled(repository: Repository, name: str) -> str | None:
    answer = run_git(repository.root, "rev-parse", "--quiet", "--verify", f"{name}^{{commit}}")
    return (decode_output(answer.stdout).strip() or None) if answer and answer.returncode == 0 else None


def _objects(repository: Repository, names: Iterable[str]) -> list[tuple[str, str]]:
    """Those of the full ids that exist here, with the type of each."""
    asked = "".join(f"{name}\n" for name in names if COMMIT.match(name))
    lines = (
        decode_output(_ask(repository, "cat-file", "--batch-check", stdin=asked.encode())).splitlines() if asked else []
    )
    facts = [line.split(" ") for line in lines]
    return [(words[0], words[1]) for words in facts if len(words) == 3]


def _ask(repository: Repository, command: str, *options: str, stdin: bytes = b"") -> bytes:
    """The output of a short git command; empty without git, an error if it fails."""
    answer = run_git(repository.root, command, *options, settings=_SETTINGS, stdin=stdin, timeout=_TIMEOUT_SECONDS)
    if answer is None and not has_git():
        return b""
    if answer is None or answer.returncode != 0:
        raise CortexError(
            f"'git {command}' gave no answer for the repository at {repository.root}.",
            remedy="Check that git works there, for example with 'git fsck'.",
        )
    return answer.stdout


def _lines(
    repository: Repository, command: str, *options: str, settings: Iterable[str] = (), stdin: Iterable[str] = ()
) -> Generator[bytes]:
    """The lines that git prints, as they arrive; git is stopped when the generator is closed."""
    given = "".join(f"{line}\n" for line in stdin).encode()
    return git_lines(repository.root, command, *options, settings=(*_SETTINGS, *settings), stdin=given)
