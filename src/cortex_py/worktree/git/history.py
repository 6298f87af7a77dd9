"""The history of a repository, read from the `git` binary: commits with what each did to which file and
which names, and the same of the work that is not committed.

All commits that HEAD descends from are told, newest first. A commit is compared with its parent; a merge
has no changes of its own, since its work is told by the commits it brought in. Where the content cannot be
known (the oldest commits of a shallow clone, all of a partial one) a commit is told without changes and
as not complete. The settings of a user change none of this.

A machine without git, or a branch without commits, has no history; a git that breaks off is an error,
because "no history" would be taken for the truth. Nothing here writes, reaches the network or runs a
configured command to show differences.
"""

from __future__ import annotations

import os
import re
import shutil
import subprocess
from collections.abc import Callable, Collection, Generator, Iterable, Iterator
from contextlib import closing, suppress
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from functools import partial
from typing import TypeVar

from ..errors import CortexError
from .diffs import (
    MOST_BYTES,
    MOST_FILES,
    MOST_LISTED,
    Change,
    Line,
    PatchReader,
    Status,
    added_lines,
    added_whole,
    label,
    listed_paths,
    split_lines,
)
from .files import FileRef, read_file
from .git import COMMIT, Repository, run_git, text_of

__all__ = [
    "Change",
    "Commit",
    "Line",
    "Patch",
    "Status",
    "WorkingChanges",
    "commit_facts",
    "commits",
    "patch",
    "reachable",
    "tags",
    "working_changes",
]

_T = TypeVar("_T")

_TIMEOUT_SECONDS = 120.0
_PIPE_BYTES = 1 << 20
_EPOCH = datetime(1970, 1, 1, tzinfo=UTC)
_MOST_SUBJECT = 2_000
_MOST_BODY = 100_000
_PREFIX = re.compile(r"[0-9a-f]{4,64}\Z")
# What git allows in a name, without what it would read as something else in a revision.
_PLAIN_NAME = re.compile(r"(?!-)(?!.*(?:\.\.|@\{|//))[^\x00-\x20\x7f~^:?*\[\\\ud800-\udfff]{1,250}\Z")

# A caller may run inside a git hook, or with differences shaped to a person's taste.
_INHERITED = re.compile(
    r"GIT_(DIR|WORK_TREE|INDEX_FILE|COMMON_DIR|OBJECT_DIRECTORY|NAMESPACE|PREFIX|DIFF_OPTS|EXTERNAL_DIFF|\w+_PATHSPECS)\Z"
)
_FORCED = {"LC_ALL": "C", "GIT_OPTIONAL_LOCKS": "0", "GIT_TERMINAL_PROMPT": "0"}
# Older versions of git know only the second way to keep a partial clone from fetching.
_FORCED |= {"GIT_NO_LAZY_FETCH": "1", "GIT_ALLOW_PROTOCOL": "none"}

_SETTINGS = (
    # Larger files count as binary: their lines could be of any length.
    *("-c", "core.quotepath=off", "-c", "core.fsmonitor=false", "-c", "core.bigFileThreshold=20m"),
    *("-c", "diff.noprefix=false", "-c", "diff.mnemonicPrefix=false", "-c", "diff.autoRefreshIndex=true"),
    *("-c", "mailmap.file=", "-c", "mailmap.blob=HEAD:.mailmap"),
)
_RENAMES = (
    "-M",
    f"-l{MOST_FILES}",
    "-O/dev/null",
    "--no-color",
    "--no-ext-diff",
    "--no-textconv",
    "--no-relative",
    "--ignore-submodules=dirty",
)
_PATCH = (
    *("-p", "-U0", "--inter-hunk-context=0", "--diff-algorithm=myers", "--indent-heuristic", "--submodule=short"),
    *("--src-prefix=a/", "--dst-prefix=b/", *_RENAMES),
)
# The NULs part what a message may not hold itself; a line of one NUL ends it.
_FORMAT = "--format=tformat:%x00%H%x00%P%x00%ct%x00%aN%x00%s%n%b%n%x00"
_LOG = ("--no-show-signature", "--no-notes", "--encoding=UTF-8", _FORMAT)


@dataclass(frozen=True, slots=True)
class Commit:
    """A commit, with its changes against its parent; a root commit's are against nothing, a merge has none.

    `time` is when it was committed, `author` after the project's own mailmap. It is not `complete` where
    not all of its patch was read for names, or where its content is not here.
    """

    id: str
    parents: tuple[str, ...]
    time: datetime
    author: str
    subject: str
    body: str
    changes: tuple[Change, ...]
    complete: bool


@dataclass(frozen=True, slots=True)
class WorkingChanges:
    """What is not committed: index against HEAD, working tree against index, and files new to git."""

    staged: tuple[Change, ...] = ()
    unstaged: tuple[Change, ...] = ()
    untracked: tuple[Change, ...] = ()
    complete: bool = True


@dataclass(frozen=True, slots=True)
class Patch:
    """The changed lines of one file, each cut to a readable length; none where the file did not change."""

    path: str
    old_path: str | None = None
    lines: tuple[Line, ...] = ()
    complete: bool = True


def commits(
    repository: Repository,
    *,
    since: Collection[str] = (),
    most: int = 5_000,
    deadline: Callable[[], bool] = lambda: False,
) -> Iterator[Commit]:
    """The commits that HEAD descends from, newest first, without those that the given ones descend from.

    Given ids that are no longer here are passed over. What is not asked for any more is not read.
    """
    head = repository.head().commit
    if head is None or most <= 0:
        return
    known = [name for name, kind in _objects(repository, since) if kind == "commit"]
    yield from _read(repository, most, [head, *(f"^{name}" for name in known)], deadline)


def commit_facts(repository: Repository, revision: str) -> Commit | None:
    """One commit by its id, which may be shortened, or by a tag or branch; None if unknown or ambiguous."""
    name = _resolved(repository, revision)
    found = [] if name is None else list(_read(repository, 1, [name]))
    return found[0] if found else None


def reachable(repository: Repository, most: int = 50_000) -> list[str]:
    """The ids of the commits that HEAD descends from, newest first."""
    head = repository.head().commit
    return [] if head is None else text_of(_ask(repository, "rev-list", f"--max-count={most}", head)).split()


def tags(repository: Repository) -> dict[str, tuple[str, ...]]:
    """The names of the tags at each commit that has any."""
    wanted = "--format=%(objecttype) %(objectname) %(*objecttype) %(*objectname) %(refname)"
    found: dict[str, tuple[str, ...]] = {}
    for line in text_of(_ask(repository, "for-each-ref", wanted, "refs/tags/")).split("\n")[:-1]:
        kind, name, inner_kind, inner_name, ref = line.split(" ", 4)
        kind, name = inner_kind or kind, inner_name or name
        # A tag may stand for a tag, or for something that is no commit.
        commit = name if kind == "commit" else _peeled(repository, name) if kind == "tag" else None
        if commit is not None:
            found[commit] = (*found.get(commit, ()), ref.removeprefix("refs/tags/"))
    return found


def working_changes(repository: Repository) -> WorkingChanges:
    """What is changed and not committed; nothing in a bare repository."""
    if repository.is_bare:
        return WorkingChanges()
    # Of a file in conflict, only the side that is checked out is compared.
    staged, whole = _difference(repository, "--cached")
    unstaged, whole_too = _difference(repository, "--ours")
    untracked: list[Change] = []
    left = MOST_BYTES
    paths = _untracked(repository)
    is_complete = whole and whole_too and len(paths) <= MOST_FILES
    for position, path in enumerate(paths[:MOST_LISTED]):
        data = _content(repository, path) if position < MOST_FILES and left > 0 else None
        is_complete = is_complete and data is not None
        left -= len(data or b"")
        untracked.append(added_whole(path, data or b""))
    return WorkingChanges(staged, unstaged, tuple(untracked), is_complete)


def patch(repository: Repository, commit: str | None, path: str, *, most_bytes: int = 200_000) -> Patch:
    """What a commit, or without one the work since HEAD, did to one file, given the path that a change tells."""
    compared = _compared(repository, commit)
    if compared is None:
        return Patch(path)
    listing = _ask(repository, *compared, "--raw", "-z", *_RENAMES)
    entry = _choice(path, listed_paths(listing), lambda pair: pair[1])
    if entry is not None:
        old, new = entry
        # A rename is seen only by who looks at both of its ends.
        options = (*compared[1:], *_PATCH, "--", *{os.fsdecode(name): None for name in entry})
        with closing(_lines(repository, compared[0], *options)) as lines:
            found, is_complete = PatchReader(lines).lines_of(new, most_bytes)
        return Patch(path, None if old == new else label(old), found, is_complete)
    if commit is not None:
        return Patch(path, complete=bool(listing) or not _is_shallow(repository))
    name = _choice(path, _untracked(repository), lambda name: name)
    data = b"" if name is None else _content(repository, name)
    found, is_complete = added_lines(data or b"", most_bytes)
    return Patch(path, None, found, is_complete and data is not None)


def _compared(repository: Repository, commit: str | None) -> tuple[str, ...] | None:
    """The command that compares a commit with its parent, or the working tree with HEAD, before its options."""
    if commit is not None:
        name = _resolved(repository, commit)
        root = () if _is_shallow(repository) else ("--root",)
        return None if name is None else ("diff-tree", "-r", "--no-commit-id", *root, name)
    if repository.is_bare:
        return None
    head = repository.head().commit
    # Before the first commit, everything is new; git knows the empty tree without having it.
    base = head or text_of(_ask(repository, "hash-object", "-t", "tree", "--stdin")).strip()
    return ("diff", base) if base else None


def _choice(path: str, entries: Iterable[_T], name: Callable[[_T], bytes]) -> _T | None:
    """The entry that is shown under a path, rather one whose name is just that."""
    found = [entry for entry in entries if label(name(entry)) == path]
    exact = path.encode("utf-8", "replace")
    return next((entry for entry in found if name(entry) == exact), found[0] if found else None)


def _read(
    repository: Repository, most: int, revisions: Iterable[str], deadline: Callable[[], bool] = lambda: False
) -> Iterator[Commit]:
    # What git has not got, it would have to fetch; such a clone keeps a mark beside its packs.
    is_partial = any((repository.common_dir / "objects" / "pack").glob("*.promisor"))
    is_shallow = _is_shallow(repository)
    # Where a shallow clone was cut off, all files would seem to be new.
    settings = ("-c", f"log.showRoot={'false' if is_shallow else 'true'}", "-c", f"core.attributesFile={os.devnull}")
    patches = () if is_partial else _PATCH
    options = (*_LOG, *patches, f"--max-count={most}", "--stdin")
    with closing(_lines(repository, "log", *options, settings=settings, stdin=revisions)) as lines:
        reader = PatchReader(lines)
        while reader.line is not None and not deadline():
            _, name, parents, moment, author, subject = reader.line.split(b"\0", 5)
            body = _body(reader)
            changes, is_whole = reader.changes()
            is_hidden = is_partial or (is_shallow and not parents)
            yield Commit(
                id=text_of(name),
                parents=tuple(text_of(parents).split()),
                time=_time(moment),
                author=text_of(author).strip(),
                subject=text_of(subject).strip()[:_MOST_SUBJECT],
                body=body,
                changes=changes,
                complete=is_whole and not is_hidden,
            )


def _body(reader: PatchReader) -> str:
    lines: list[bytes] = []
    left = _MOST_BODY
    while (line := reader.advance()) is not None and line != b"\0":
        left -= len(line) + 1
        if left >= 0:
            lines.append(line)
    reader.advance()
    return text_of(b"\n".join(lines)).strip()


def _time(seconds: bytes) -> datetime:
    try:
        return _EPOCH + timedelta(seconds=int(seconds))
    except (ValueError, OverflowError):
        # A commit can claim any time; one that no calendar knows is told as none.
        return _EPOCH


def _is_shallow(repository: Repository) -> bool:
    return (repository.common_dir / "shallow").exists()


def _difference(repository: Repository, side: str) -> tuple[tuple[Change, ...], bool]:
    with closing(_lines(repository, "diff", side, *_PATCH)) as lines:
        return PatchReader(lines).changes()


def _untracked(repository: Repository) -> list[bytes]:
    paths = _ask(repository, "ls-files", "-z", "--others", "--exclude-standard").split(b"\0")
    # A trailing slash marks another repository inside this one.
    return sorted(path for path in paths if path and not path.endswith(b"/"))


def _content(repository: Repository, path: bytes) -> bytes | None:
    """What is in a new file, nothing in a link; None where that is too much or cannot be read."""
    name = os.fsdecode(path)
    return b"" if (repository.root / name).is_symlink() else read_file(repository.root, FileRef(name, 0, None))


def _resolved(repository: Repository, revision: str) -> str | None:
    """The one commit that a (shortened) id, a tag or a branch stands for."""
    found: set[str | None] = set()
    if _PREFIX.match(revision):
        is_whole = COMMIT.match(revision)
        alike = [revision] if is_whole else text_of(_ask(repository, "rev-parse", f"--disambiguate={revision}")).split()
        objects = _objects(repository, alike)
        for kind in ("commit", "tag"):
            found |= {_peeled(repository, name) for name, one in objects if one == kind} if not found else set()
    if _PLAIN_NAME.match(revision):
        found |= {_peeled(repository, f"refs/{room}/{revision}") for room in ("tags", "heads")}
    found.discard(None)
    return found.pop() if len(found) == 1 else None


def _peeled(repository: Repository, name: str) -> str | None:
    answer = run_git(repository.root, "rev-parse", "--quiet", "--verify", f"{name}^{{commit}}")
    return (text_of(answer.stdout).strip() or None) if answer and answer.returncode == 0 else None


def _objects(repository: Repository, names: Iterable[str]) -> list[tuple[str, str]]:
    """Those of the full ids that are here, with the kind of each."""
    asked = "".join(f"{name}\n" for name in names if COMMIT.match(name))
    lines = text_of(_ask(repository, "cat-file", "--batch-check", stdin=asked.encode())).splitlines() if asked else []
    facts = [line.split(" ") for line in lines]
    return [(words[0], words[1]) for words in facts if len(words) == 3]


def _ask(repository: Repository, command: str, *options: str, stdin: bytes = b"") -> bytes:
    """What a short git command prints; nothing without git, an error where it fails."""
    answer = run_git(repository.root, *_SETTINGS, command, *options, stdin=stdin, timeout=_TIMEOUT_SECONDS)
    if answer is None and shutil.which("git") is None:
        return b""
    if answer is None or answer.returncode != 0:
        raise _broken(repository, command)
    return answer.stdout


def _lines(
    repository: Repository, command: str, *options: str, settings: Iterable[str] = (), stdin: Iterable[str] = ()
) -> Generator[bytes]:
    """The lines that git prints, as it prints them; it is stopped when no more are wanted."""
    environment = {name: value for name, value in os.environ.items() if not _INHERITED.match(name)} | _FORCED
    words = ["git", "-C", str(repository.root), "--literal-pathspecs", *_SETTINGS, *settings, command, *options]
    pipe = subprocess.PIPE
    try:
        # A wide pipe lets git work ahead while a commit is read.
        process = subprocess.Popen(
            words, env=environment, stdin=pipe, stdout=pipe, stderr=subprocess.DEVNULL, pipesize=_PIPE_BYTES
        )
    except OSError:
        return
    is_done = False
    with process:
        assert process.stdin is not None and process.stdout is not None
        try:
            # git reads all of this before it prints; if it ended instead, its status tells.
            with suppress(BrokenPipeError), process.stdin as given:
                given.write("".join(f"{line}\n" for line in stdin).encode())
            yield from split_lines(partial(os.read, process.stdout.fileno()))
            is_done = True
        finally:
            if not is_done:
                process.kill()
    if process.returncode != 0:
        raise _broken(repository, command)


def _broken(repository: Repository, command: str) -> CortexError:
    return CortexError(
        f"'git {command}' broke off in the repository at {repository.root}.",
        remedy="Check that git works there, for example with 'git fsck'.",
    )
