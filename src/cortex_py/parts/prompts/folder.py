"""Prompts and templates that a team shares through git: the files in `.cortex/prompts` and `.cortex/templates`.

A cloned repository may contain anything, so nothing outside of it is shown: symbolic links are not followed, and only
regular files are opened. A file that cannot be used is reported and does not affect the others.
"""

from __future__ import annotations

import errno
import os
import stat
from collections.abc import Iterator
from dataclasses import dataclass, field, replace
from datetime import datetime
from pathlib import Path
from threading import Lock

from ...core.clock import from_micros
from ...core.config import SecretPolicy
from ...core.errors import InvalidInput
from ...core.paths import open_regular
from ...core.records import SavedKind
from ...core.security.policy import Screen
from ...texts.structured import one_line
from .checks import Draft
from .files import FILE_MOST, format_of, load

__all__ = ["BYTES_MOST", "DEPTH_MOST", "FILES_MOST", "FolderTexts", "PromptFolder"]

FILES_MOST = 1_000
DEPTH_MOST = 3
# Of all files together; what is read stays in memory.
BYTES_MOST = 32_000_000

_HOME = ".cortex"
_FOLDERS: dict[SavedKind, str] = {"prompt": "prompts", "template": "templates"}
_NOT_OURS = frozenset(("readme.md",))
# The end of the year 9999; some file systems go on beyond.
_MICROS_MOST = 253_402_300_799_999_999
_NAMES = Screen("redact")
_LINK = "it is a symbolic link, and those are not followed"


@dataclass(frozen=True, slots=True)
class FolderText:
    """A text, its file relative to the root with `/` between folders, and the time of the last change."""

    draft: Draft
    path: str
    changed_at: datetime


@dataclass(frozen=True, slots=True)
class FolderTexts:
    """The usable texts by path, and a line about each unusable file."""

    items: tuple[FolderText, ...] = ()
    problems: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True)
class _Stamp:
    """Differs when a file changed. The inode's time reveals a change of permissions, and an mtime set back."""

    mtime_ns: int
    size: int
    inode: int
    device: int
    ctime_ns: int

    @classmethod
    def of(cls, facts: os.stat_result) -> _Stamp:
        return cls(facts.st_mtime_ns, facts.st_size, facts.st_ino, facts.st_dev, facts.st_ctime_ns)

    @property
    def changed_at(self) -> datetime:
        return from_micros(min(max(self.mtime_ns // 1000, 0), _MICROS_MOST))


@dataclass(frozen=True, slots=True)
class _Listing:
    """The files to read with their stamps, by path, and problems on the way to them."""

    files: tuple[tuple[str, _Stamp], ...] = ()
    problems: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True)
class _Held:
    """What a file held when it had this stamp; not `lasting` if the system refused it, which may be temporary."""

    stamp: _Stamp
    drafts: tuple[Draft, ...] = ()
    problem: str | None = None
    lasting: bool = True


class PromptFolder:
    """The shared texts of one kind below a root; none if the root is None."""

    def __init__(self, root: Path | None, kind: SavedKind, policy: SecretPolicy = "redact") -> None:
        self._root = root
        self._kind = kind
        # A secret in a file is redacted; the file is not refused.
        self._screen = Screen("allow" if policy == "allow" else "redact")
        self._lock = Lock()
        self._held: dict[str, _Held] = {}
        self._last: tuple[_Listing, FolderTexts] | None = None

    def fingerprint(self) -> object:
        """A value that differs after every change to the files; no file is read for it."""
        return self._listing()

    def read(self) -> FolderTexts:
        """All texts. A file is parsed again only when it changed."""
        with self._lock:
            listing = self._listing()
            if self._last is None or self._last[0] != listing:
                held = {path: self._hold(path, stamp) for path, stamp in listing.files}
                shared = _shared(held, listing.problems)
                self._held = {path: one for path, one in held.items() if one.lasting}
                self._last = (listing, shared) if len(self._held) == len(held) else None
                return shared
            return self._last[1]

    def _listing(self) -> _Listing:
        return _Walk(self._root, _FOLDERS[self._kind]).listing() if self._root is not None else _Listing()

    def _hold(self, path: str, stamp: _Stamp) -> _Held:
        held = self._held.get(path)
        if held is not None and held.stamp == stamp:
            return held
        try:
            drafts = load(self._data(path, stamp), filename=_label(path), kind=self._kind)
        except InvalidInput as error:
            return _Held(stamp, problem=error.message)
        except OSError as error:
            return _Held(stamp, problem=_problem(path, error.strerror or "it cannot be read"), lasting=False)
        return _Held(stamp, tuple(self._clean(draft) for draft in drafts))

    def _clean(self, draft: Draft) -> Draft:
        """A shared text without secrets, since everybody who asks for it gets it."""
        description = draft.description and self._screen.prose(draft.description)
        return replace(
            draft,
            name=self._screen.found(draft.name),
            content=self._screen.prose(draft.content),
            description=description,
        )

    def _data(self, path: str, stamp: _Stamp) -> bytes:
        assert self._root is not None
        with open_regular(self._root / path, follow=False) as file:
            facts = os.fstat(file.fileno())
            # Only the file that was listed: a folder above it may have become a link since.
            if (facts.st_ino, facts.st_dev) != (stamp.inode, stamp.device):
                raise OSError(errno.ESTALE, "it was replaced while it was read")
            return file.read(FILE_MOST + 1)


def _shared(held: dict[str, _Held], problems: tuple[str, ...]) -> FolderTexts:
    found: dict[str, FolderText] = {}
    reports = list(problems)
    for path, one in held.items():
        label = _label(path)
        if one.problem is not None:
            reports.append(one.problem)
        for draft in one.drafts:
            first = found.setdefault(draft.name, FolderText(draft, label, one.stamp.changed_at))
            if first.draft is not draft:
                reports.append(
                    _problem(path, f"the name {draft.name[:80]!r} is already taken by {one_line(first.path)}")
                )
    return FolderTexts(tuple(found.values()), tuple(sorted(reports)))


@dataclass(slots=True)
class _Walk:
    """One pass over the folder: names and stamps; only folders are opened."""

    root: Path
    name: str
    problems: list[str] = field(default_factory=list)

    def listing(self) -> _Listing:
        place = f"{_HOME}/{self.name}"
        if not all(map(self._is_folder, (_HOME, place))):
            return _Listing((), tuple(self.problems))
        paths = sorted(self._paths(place, 0))
        if len(paths) > FILES_MOST:
            self.problems.append(
                _problem(place, f"it holds {len(paths):,} files, and only the first {FILES_MOST:,} are read")
            )
        files = tuple(self._sized(paths[:FILES_MOST]))
        return _Listing(files, tuple(self.problems))

    def _is_folder(self, path: str) -> bool:
        try:
            mode = os.lstat(self.root / path).st_mode
        except (FileNotFoundError, NotADirectoryError):
            return False
        except OSError as error:
            self._report(path, error.strerror or "it cannot be looked at")
            return False
        if not stat.S_ISDIR(mode):
            self._report(path, _LINK if stat.S_ISLNK(mode) else "it is not a folder")
        return stat.S_ISDIR(mode)

    def _paths(self, folder: str, depth: int) -> Iterator[str]:
        """The files that may hold texts. Hidden files belong to editors and other tools."""
        for entry in self._entries(folder):
            path = f"{folder}/{entry.name}"
            if entry.name.startswith(".") or entry.name.lower() in _NOT_OURS:
                continue
            if entry.is_symlink():
                self._report(path, _LINK)
            elif entry.is_dir(follow_symlinks=False):
                if depth < DEPTH_MOST:
                    yield from self._paths(path, depth + 1)
                else:
                    self._report(path, f"folders more than {DEPTH_MOST} deep are not read")
            elif format_of(entry.name):
                yield path

    def _entries(self, folder: str) -> list[os.DirEntry[str]]:
        try:
            with os.scandir(self.root / folder) as entries:
                return sorted(entries, key=lambda entry: entry.name)
        except OSError as error:
            self._report(folder, error.strerror or "it cannot be listed")
            return []

    def _sized(self, paths: list[str]) -> Iterator[tuple[str, _Stamp]]:
        """The regular files within the limits on size."""
        left = BYTES_MOST
        for path in paths:
            try:
                facts = os.lstat(self.root / path)
            except OSError as error:
                self._report(path, error.strerror or "it cannot be looked at")
                continue
            if not stat.S_ISREG(facts.st_mode):
                self._report(path, _LINK if stat.S_ISLNK(facts.st_mode) else "it is not a regular file")
            elif facts.st_size > FILE_MOST:
                self._report(path, f"it is larger than {FILE_MOST:,} bytes")
            elif facts.st_size > left:
                self._report(path, f"the files before it come near {BYTES_MOST:,} bytes, the most that is read")
            else:
                left -= facts.st_size
                yield path, _Stamp.of(facts)

    def _report(self, path: str, what: str) -> None:
        self.problems.append(_problem(path, what))


def _problem(path: str, what: str) -> str:
    return f"{one_line(_label(path))}: {what}."


def _label(path: str) -> str:
    """The path as text, whatever bytes its name is made of, without secrets; for messages only."""
    return _NAMES.found(os.fsencode(path).decode("utf-8", "backslashreplace"))
