"""Classifies branches: still open, merged into the default branch, or deleted without being merged.

Merged means that the work is in the default branch, here or on the project's remote: by a merge commit, a
fast-forward, a rebase (each patch is there), a squash (one commit makes the whole change) or several commits that each
took a part (each file was once there as the branch leaves it). A branch without commits of its own cannot be merged.

"deleted" removes memories, so it is reported only if the branch is gone everywhere and its last commit is known here
and is not in the default branch. In doubt the answer is "open": the commit is unknown, the history is cut off (a
shallow clone), the merge may be older than the window that is searched, the default branch is uncertain, or git does
not answer. A squash that was edited by hand is not recognised.
"""

from __future__ import annotations

import hashlib
import logging
import os
import re
import time
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from functools import cached_property
from pathlib import Path
from typing import Literal, NamedTuple

from ...core.errors import CortexError
from .repository import COMMIT, RENAMED, Repository, Survey, current_name, decode_output, read_text
from .runner import run_git

__all__ = ["BranchState", "classify_branches", "former_name", "refs_watermark"]

logger = logging.getLogger(__name__)

BranchState = Literal["open", "merged", "deleted"]

# A commit and what to compare it with: nothing for its parent, else an older commit.
_Change = tuple[str, str]
_Parents = dict[str, tuple[str, ...]]

WINDOW = 500
MOST_FOLDERS = 2_000
_HEADER = re.compile(rb"[0-9a-f]{40}(?:[0-9a-f]{24})?\Z")
_CREATED = re.compile(r"branch: Created from (?P<start>\S+)\Z")
_MOVED = re.compile(r"checkout: moving from (?P<old>\S+) to (?P<new>\S+)\Z")
_TOOK = re.compile(r"merge (?P<names>[^:]+): ")
_WORKED = re.compile(r"(?:commit|cherry-pick|revert|am)\b|.*: Merge made by ")
_REBASED = re.compile(r"(?:rebase|pull)\b.*\(finish\).* onto (?P<onto>[0-9a-f]+)\Z")
# One line of context: a clean merge leaves the lines next to a change alone, but not those further off.
_PATCH = ("-p", "-U1", "--full-index", "--submodule=short")


def classify_branches(repository: Repository, tips: Mapping[str, str | None]) -> dict[str, BranchState]:
    """The state of each branch, given the last commit seen on it, which may be None or out of date."""
    try:
        known = _BranchClassifier(repository, repository.survey()).classify(tips)
    except CortexError as error:
        logger.debug("branches count as open: %s", error)
        known = {}
    return {name: known.get(name, "open") for name in tips}


def former_name(repository: Repository, name: str) -> str | None:
    """The name of an existing local branch before its last rename."""
    found = [match for entry in _branch_log(repository, name) if (match := RENAMED.match(entry.message))]
    # The log of a copy goes on from that of the branch it was copied from.
    return next((match["old"] for match in reversed(found) if match["new"] == name), None)


def refs_watermark(repository: Repository) -> str:
    """A text that changes whenever a local or remote-tracking branch or a HEAD has changed.

    It may also change without a reason: always if there are too many folders to look at, and shortly after a change,
    when another change could have the same timestamp.
    """
    common = repository.common_dir
    heads = (common / "HEAD", *(common / "worktrees").glob("*/HEAD"))
    parts = [f"{place}\0{read_text(place)}" for place in heads]
    # The name of a reftable is never reused, so the list of names changes with every update.
    parts += [f"{read_text(folder / 'reftable' / 'tables.list')}" for folder in (common, repository.git_dir)]
    newest = 0
    # git updates a branch by renaming a lock file, which changes its folder's mtime.
    folders = [*_folders(common / "refs" / "heads"), *_folders(common / "refs" / "remotes")]
    for place in (*folders, str(common / "packed-refs")):
        try:
            facts = os.stat(place)  # noqa: PTH116 - the paths are plain texts, for speed
        except OSError:
            continue
        newest = max(newest, facts.st_mtime_ns)
        parts.append(f"{place}\0{facts.st_mtime_ns}\0{facts.st_ino}\0{facts.st_size}")
    # Times step by up to 10 ms, on some file systems by up to 2 s; those have no fractions.
    step = 50_000_000 if newest % 1_000_000_000 else 2_500_000_000
    if abs(time.time_ns() - newest) < step or len(folders) > MOST_FOLDERS:
        parts.append(os.urandom(8).hex())
    return hashlib.sha256("\1".join(sorted(parts)).encode("utf-8", "surrogateescape")).hexdigest()[:32]


def _folders(top: Path) -> list[str]:
    found = [str(top)]
    for folder in found:
        try:
            with os.scandir(folder) as entries:
                found += [entry.path for entry in entries if entry.is_dir()]
        except OSError:
            continue
        if len(found) > MOST_FOLDERS:
            break
    return found


class _Entry(NamedTuple):
    """One line of a reflog."""

    old: str
    new: str
    moment: int
    message: str


def _branch_log(repository: Repository, name: str) -> list[_Entry]:
    ref = f"refs/heads/{name}"
    # A stored name may not be a valid branch; it must not lead out of the folder.
    return [] if ".." in name or "\0" in name else _log(repository, repository.common_dir / "logs" / ref, ref)


def _head_log(repository: Repository) -> list[_Entry]:
    """The checkouts of all working trees, oldest first."""
    common = repository.common_dir
    entries = _log(repository, common / "logs" / "HEAD", "main-worktree/HEAD")
    for head in (common / "worktrees").glob("*/HEAD"):
        entries += _log(repository, head.parent / "logs" / "HEAD", f"worktrees/{head.parent.name}/HEAD")
    return sorted(entries, key=lambda entry: entry.moment)


def _log(repository: Repository, place: Path, ref: str) -> list[_Entry]:
    """The reflog of a reference, oldest entry first; empty if git keeps none."""
    if (repository.common_dir / "reftable").is_dir():
        options = ("--walk-reflogs", "--date=unix", "--format=%H %H %gd +0%x09%gs")
        answer = run_git(repository.root, "log", *options, ref, "--")
        lines = decode_output(answer.stdout).split("\n")[::-1] if answer else []
    else:
        lines = (read_text(place) or "").split("\n")
    entries: list[_Entry] = []
    for line in lines:
        facts, _, message = line.partition("\t")
        words = facts.split(" ")
        moment = words[-2].rpartition("{")[2].rstrip("}") if len(words) > 3 else ""
        if moment.isdecimal() and len(moment) < 19 and COMMIT.match(words[1]):
            entries.append(_Entry(entries[-1].new if entries else "", words[1], int(moment), message))
    return entries


@dataclass(slots=True)
class _CheckoutTrail:
    """What the checkouts show about a branch that is gone."""

    entered: list[_Entry] = field(default_factory=list)
    left: str | None = None
    taken: str | None = None

    def is_untouched(self, seen: str | None) -> bool:
        """Whether the branch certainly never got a commit: created at HEAD, and left there."""
        first = self.entered[0] if self.entered else None
        places = {entry.new for entry in self.entered} | ({self.left, seen} - {None})
        return first is not None and first.old == first.new and len(places) == 1 and self.taken is None


def _trails(entries: Iterable[_Entry]) -> dict[str, _CheckoutTrail]:
    trails: dict[str, _CheckoutTrail] = {}
    for entry in entries:
        if match := _MOVED.match(entry.message):
            trails.setdefault(match["new"], _CheckoutTrail()).entered.append(entry)
            trail = trails.setdefault(match["old"], _CheckoutTrail())
            # An earlier merge belongs to an earlier branch of the same name.
            trail.left, trail.taken = entry.old, None
        elif match := _TOOK.match(entry.message):
            for name in match["names"].split():
                trails.setdefault(name, _CheckoutTrail()).taken = entry.new
    return trails


class _BranchClassifier:
    """Classifies all branches in one pass, to start few git processes."""

    def __init__(self, repository: Repository, survey: Survey) -> None:
        self._repository = repository
        self._survey = survey
        self._default = repository.settled_default(survey) or ""
        here = survey.local.get(self._default)
        self._trunk = _unique([here, *survey.trusted.get(self._default, ())])

    def classify(self, tips: Mapping[str, str | None]) -> dict[str, BranchState]:
        """The states other than "open"."""
        alive, spared = self._survey.alive, {self._default, self._survey.remote_default, ""}
        gone = tips.keys() - alive
        renamed = self._repository.renamed(self._survey) if gone else {}
        now = {name: current_name(name, renamed) if name in gone else name for name in tips}
        living = {name: self._living(now[name]) for name in tips if now[name] in alive - spared}
        lost = {name: tips[name] for name in tips if now[name] not in alive | spared}
        if not self._trunk or not (living or lost):
            return {}
        self._trails = _trails(_head_log(self._repository)) if lost else {}
        self._look(
            {commit for commits, _ in living.values() for commit in commits}, self._mentioned_commits(living, lost)
        )
        found: dict[str, BranchState] = {name: self._state_of_existing(*facts) for name, facts in living.items()}
        return found | {name: self._state_of_lost(name, seen) for name, seen in lost.items()}

    def _living(self, name: str) -> tuple[list[str], str | None]:
        """The tips of a branch (none if it is new) and the newest commit known to be made on it."""
        local = self._survey.local.get(name)
        commits = _unique([local, *self._survey.tracked.get(name, ())])
        log = _branch_log(self._repository, name) if local else []
        made = [entry.new for entry in log if _is_work(entry)]
        created = _CREATED.match(log[0].message) if log else None
        # A branch created from its remote-tracking branch contains that one's work.
        is_own_start = created is not None and not f"/{created['start']}".endswith(f"/{name}")
        if is_own_start and not made and {entry.new for entry in log} == set(commits):
            return [], None
        return commits, made[-1] if made else None

    def _mentioned_commits(
        self, living: Mapping[str, tuple[list[str], str | None]], lost: Mapping[str, str | None]
    ) -> set[str]:
        """Commits named only by reflogs and callers; they may no longer exist."""
        trails = [self._trails[name] for name in lost if name in self._trails]
        heard = {made for _, made in living.values()} | set(lost.values())
        heard |= {commit for trail in trails for commit in (trail.left, trail.taken)}
        return {commit for commit in heard if commit and COMMIT.match(commit)}

    def _look(self, standing: set[str], heard: set[str]) -> None:
        names = self._repository.lines("cat-file", "--batch-check", stdin=sorted(heard)) if heard else []
        here = {line.split(" ")[0] for line in names if " commit " in line}
        try:
            self._outside = self._history(standing | here)
        except CortexError:
            # An unreferenced commit may exist without its ancestors.
            here = set()
            self._outside = self._history(standing)
        self._here = standing | here
        judged = [commit for commit in sorted(self._here) if commit in self._outside]
        self._patches = _Patches(self._repository, self._trunk, self._outside, judged)

    def _history(self, commits: set[str]) -> _Parents:
        """The commits before the given ones that are not in the trunk, with their parents."""
        lines = [*sorted(commits), *(f"^{commit}" for commit in self._trunk)]
        return _parents(self._repository.lines("rev-list", "--parents", "--stdin", stdin=lines))

    def _state_of_existing(self, commits: Sequence[str], made: str | None) -> BranchState:
        if not commits:
            return "open"
        if outside := [commit for commit in commits if commit in self._outside]:
            return "merged" if all(self._patches.hold(commit) for commit in outside) else "open"
        if made in self._here:
            # The branch points into the trunk; its own work may have been discarded instead of merged.
            return "merged" if made not in self._outside or self._patches.hold(made) else "open"
        # Without a reflog, only a commit off the first-parent line certainly came from a branch.
        return "open" if self._main_line.issuperset(commits) else "merged"

    @cached_property
    def _main_line(self) -> frozenset[str]:
        return frozenset(self._repository.lines("rev-list", "--first-parent", "--stdin", stdin=self._trunk))

    def _state_of_lost(self, name: str, seen: str | None) -> BranchState:
        trail = self._trails.get(name) or _CheckoutTrail()
        last = _unique([seen, trail.left])
        known = [commit for commit in last if commit in self._here]
        inside = [commit for commit in [*known, trail.taken] if commit in self._here and commit not in self._outside]
        outside = self._patches.latest([commit for commit in known if commit in self._outside])
        if not outside:
            is_empty = bool(inside) and len(known) == len(last) and trail.is_untouched(seen)
            return "deleted" if is_empty else "merged" if inside else "open"
        if any(self._patches.hold(commit) for commit in outside):
            return "merged"
        # It also pointed to merged work that its other commits do not continue.
        independent = ("merge-base", "--independent", *outside)
        if any(commit in self._repository.lines(*independent, commit) for commit in inside):
            return "merged"
        is_sure = len(known) == len(last) and all(self._patches.saw_all_since(commit) for commit in outside)
        return "deleted" if is_sure and not self._repository.is_shallow else "open"


class _Patches:
    """The work outside the trunk, and which of it the trunk contains in other commits."""

    def __init__(self, repository: Repository, trunk: Sequence[str], outside: _Parents, tips: Sequence[str]) -> None:
        self._repository, self._trunk, self._outside = repository, trunk, outside
        self._reach = {tip: _ancestors(tip, outside) for tip in tips}
        self._window: _Parents = {}
        self._bases: dict[str, str | None] = {}
        self._ids: dict[_Change, bytes] = {}
        self._files: dict[_Change, frozenset[tuple[bytes, bytes]]] = {}
        try:
            self._compare() if tips else None
        except CortexError:
            # A partial clone has no content to compare; the ancestry is still valid.
            self._bases = {}

    def latest(self, commits: Sequence[str]) -> list[str]:
        """The commits without ancestors of other ones among them."""
        return [one for one in commits if not any(one in self._reach[other] for other in commits if other != one)]

    def saw_all_since(self, tip: str) -> bool:
        base = self._bases.get(tip)
        return base is not None and (base in self._window or len(self._window) < WINDOW)

    def hold(self, tip: str) -> bool:
        """Whether the trunk contains the changes of a commit and its ancestors since the merge base."""
        base = self._bases.get(tip)
        if base is None:
            return False
        # A change that was reverted before the branch began does not count.
        later = self._window.keys() - _ancestors(base, self._window)
        there = {self._ids[commit, ""] for commit in later if (commit, "") in self._ids} - {b""}
        single = [self._ids.get((commit, "")) for commit in _singles(self._reach[tip], self._outside)]
        changes = [patch for patch in single if patch != b""]
        if (changes and there.issuperset(changes)) or self._ids.get((tip, base)) in there:
            return True
        whole = self._files[tip, base]
        return bool(whole) and all(any(file in self._files.get((one, ""), ()) for one in later) for file in whole)

    def _compare(self) -> None:
        lines = self._repository.lines("rev-list", "--parents", f"--max-count={WINDOW}", "--stdin", stdin=self._trunk)
        self._window = _parents(lines)
        self._bases = {tip: self._base(tip) for tip in self._reach}
        inside = {(commit, "") for commit in _singles(self._window, self._window)}
        short = [reach for reach in self._reach.values() if len(reach) <= WINDOW]
        singles = {(commit, "") for reach in short for commit in _singles(reach, self._outside)}
        whole = [(tip, base) for tip, base in self._bases.items() if base]
        # Single commits first: git caches the base of a whole change as the parent of its tip.
        changes = [*inside, *singles, *whole]
        self._files = dict(zip(changes, map(_files_of, self._differences(changes, "--raw")), strict=True))
        names = {change: frozenset(name for name, _ in files) for change, files in self._files.items()}
        common = {names[change] for change in inside} & {names[change] for change in (*singles, *whole)}
        alike = [change for change in changes if names[change] and names[change] in common]
        self._ids = {change: b"" for change in changes if not names[change]}
        self._ids |= zip(alike, map(_patch_id, self._differences(alike, *_PATCH)), strict=True)

    def _base(self, tip: str) -> str | None:
        """The last commit that a tip and the trunk have in common."""
        edges = {parent for commit in self._reach[tip] for parent in self._outside[commit]} - self._outside.keys()
        if len(edges) < 2:
            return next(iter(edges), None)
        return next(iter(self._repository.lines("merge-base", tip, *self._trunk)), None)

    def _differences(self, changes: Sequence[_Change], *form: str) -> list[list[bytes]]:
        """The lines that git prints for each change."""
        options = ("--stdin", "-r", "--root", "--always", "--no-renames", "--no-color", *form)
        lines = "".join(f"{commit} {base}".rstrip() + "\n" for commit, base in changes)
        answer = run_git(self._repository.root, "diff-tree", *options, stdin=lines.encode())
        if answer is None or answer.returncode != 0:
            raise CortexError("'git diff-tree' gave no answer.")
        blocks: list[list[bytes]] = []
        for line in answer.stdout.split(b"\n")[:-1]:
            if _HEADER.match(line):
                blocks.append([])
            elif blocks:
                blocks[-1].append(line)
        return blocks


def _singles(commits: Iterable[str], parents: _Parents) -> list[str]:
    return [commit for commit in commits if len(parents[commit]) < 2]


def _files_of(lines: Iterable[bytes]) -> frozenset[tuple[bytes, bytes]]:
    """The changed files with the blob id after the change."""
    facts = [line.split(b" ", 4) for line in lines if line.startswith(b":")]
    return frozenset((words[4], words[3]) for words in facts)


def _patch_id(lines: Iterable[bytes]) -> bytes:
    """A digest of a change that does not depend on line numbers."""
    digest = hashlib.sha256()
    index = b""
    for line in lines:
        if line.startswith(b"index "):
            index = line
        elif not line.startswith(b"@@"):
            # For binary files git prints only the blob ids.
            digest.update((index if line.startswith(b"Binary files ") else b"") + line + b"\n")
    return digest.digest()


def _is_work(entry: _Entry) -> bool:
    rebased = _REBASED.match(entry.message)
    return rebased["onto"] != entry.new if rebased else bool(_WORKED.match(entry.message))


def _ancestors(start: str, parents: _Parents) -> set[str]:
    found = {start} & parents.keys()
    waiting = list(found)
    while waiting:
        new = [parent for parent in parents[waiting.pop()] if parent in parents and parent not in found]
        found.update(new)
        waiting += new
    return found


def _unique(commits: Iterable[str | None]) -> list[str]:
    return list(dict.fromkeys(commit for commit in commits if commit))


def _parents(lines: Iterable[str]) -> _Parents:
    return {words[0]: tuple(words[1:]) for words in (line.split(" ") for line in lines)}
