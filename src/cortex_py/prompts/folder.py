"""Prompts and templates that a team shares through git: the files in `.cortex/prompts` and `.cortex/templates`.

A cloned repository may hold anything, so nothing outside of it is ever shown: symbolic links are not followed, and
what is no regular file is not opened. A file that cannot be used is told and does not keep the others back.
"""

from __future__ import annotations

import errno
import os
import stat
from collections.abc import Iterator
from dataclasses import dataclass, field
from datetime import datetime
from pathlib import Path
from threading import Lock

from ..clock import from_micros
from ..errors import InvalidInput
from ..records import SavedKind
from .draft import Draft
from .files import FILE_MOST, format_of, load
from .structured import one_line

__all__ = ["BYTES_MOST", "DEPTH_MOST", "FILES_MOST", "PromptFolder", "Shared", "SharedText"]

FILES_MOST = 1_000
DEPTH_MOST = 3
# Of all files together; what is read stays in memory.
BYTES_MOST = 32_000_000

_HOME = ".cortex"
_FOLDERS: dict[SavedKind, str] = {"prompt": "prompts", "template": "templates"}
_NOT_OURS = frozenset(("readme.md",))
_READ_FLAGS = os.O_RDONLY | getattr(os, "O_NOFOLLOW", 0) | getattr(os, "O_NONBLOCK", 0) | getattr(os, "O_BINARY", 0)
# The end of the year 9999; some file systems go on beyond.
_MICROS_MOST = 253_402_300_799_999_999
_LINK = "it is a symbolic link, and those are not followed"


@dataclass(frozen=True, slots=True)
class SharedText:
    """A text, the file that holds it, relative to the root with `/` between folders, and when that changed."""

    draft: Draft
    path: str
    changed_at: datetime


@dataclass(frozen=True, slots=True)
class Shared:
    """The usable texts by path, and a line about each file that is none."""

    items: tuple[SharedText, ...] = ()
    problems: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True)
class _Stamp:
    """Differs when a file changed. The time of the inode tells a change of permissions, and an mtime set back."""

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
    """The files to read with their stamps, by path, and what was wrong on the way to them."""

    files: tuple[tuple[str, _Stamp], ...] = ()
    problems: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True)
class _Held:
    """What a file held when it had this stamp; `lasting` unless the system refused it, which may pass."""

    stamp: _Stamp
    drafts: tuple[Draft, ...] = ()
    problem: str | None = None
    lasting: bool = True


class PromptFolder:
    """The shared texts of one kind below a root; a root of None has none."""

    def __init__(self, root: Path | None, kind: SavedKind) -> None:
        self._root = root
        self._kind = kind
        self._lock = Lock()
        self._held: dict[str, _Held] = {}
        self._last: tuple[_Listing, Shared] | None = None

    def fingerprint(self) -> object:
        """Differs after every change to the files; nothing is read for it."""
        return self._listing()

    def read(self) -> Shared:
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
        return _Held(stamp, tuple(drafts))

    def _data(self, path: str, stamp: _Stamp) -> bytes:
        assert self._root is not None
        descriptor = os.open(self._root / path, _READ_FLAGS)
        try:
            facts = os.fstat(descriptor)
            # Only the very file that was seen below real folders: one of them may have become a link since.
            if not stat.S_ISREG(facts.st_mode) or (facts.st_ino, facts.st_dev) != (stamp.inode, stamp.device):
                raise OSError(errno.ESTALE, "it was replaced while it was read")
            with os.fdopen(descriptor, "rb", closefd=False) as file:
                return file.read(FILE_MOST + 1)
        finally:
            os.close(descriptor)


def _shared(held: dict[str, _Held], problems: tuple[str, ...]) -> Shared:
    found: dict[str, SharedText] = {}
    told = list(problems)
    for path, one in held.items():
        label = _label(path)
        if one.problem is not None:
            told.append(one.problem)
        for draft in one.drafts:
            first = found.setdefault(draft.name, SharedText(draft, label, one.stamp.changed_at))
            if first.draft is not draft:
                told.append(_problem(path, f"the name {draft.name[:80]!r} is already taken by {one_line(first.path)}"))
    return Shared(tuple(found.values()), tuple(sorted(told)))


@dataclass(slots=True)
class _Walk:
    """One look at the folder: names and stamps, nothing opened but folders."""

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
            self._tell(path, error.strerror or "it cannot be looked at")
            return False
        if not stat.S_ISDIR(mode):
            self._tell(path, _LINK if stat.S_ISLNK(mode) else "it is no folder")
        return stat.S_ISDIR(mode)

    def _paths(self, folder: str, depth: int) -> Iterator[str]:
        """Files that may be ours. What is hidden belongs to editors and other tools."""
        for entry in self._entries(folder):
            path = f"{folder}/{entry.name}"
            if entry.name.startswith(".") or entry.name.lower() in _NOT_OURS:
                continue
            if entry.is_symlink():
                self._tell(path, _LINK)
            elif entry.is_dir(follow_symlinks=False):
                if depth < DEPTH_MOST:
                    yield from self._paths(path, depth + 1)
                else:
                    self._tell(path, f"folders more than {DEPTH_MOST} deep are not read")
            elif format_of(entry.name):
                yield path

    def _entries(self, folder: str) -> list[os.DirEntry[str]]:
        try:
            with os.scandir(self.root / folder) as entries:
                return sorted(entries, key=lambda entry: entry.name)
        except OSError as error:
            self._tell(folder, error.strerror or "it cannot be listed")
            return []

    def _sized(self, paths: list[str]) -> Iterator[tuple[str, _Stamp]]:
        """The regular files of a bearable size, while there is room for them."""
        room = BYTES_MOST
        for path in paths:
            try:
                facts = os.lstat(self.root / path)
            except OSError as error:
                self._tell(path, error.strerror or "it cannot be looked at")
                continue
            if not stat.S_ISREG(facts.st_mode):
                self._tell(path, _LINK if stat.S_ISLNK(facts.st_mode) else "it is no regular file")
            elif facts.st_size > FILE_MOST:
                self._tell(path, f"it is larger than {FILE_MOST:,} bytes")
            elif facts.st_size > room:
                self._tell(path, f"the files before it come near {BYTES_MOST:,} bytes, the most that is read")
            else:
                room -= facts.st_size
                yield path, _Stamp.of(facts)

    def _tell(self, path: str, what: str) -> None:
        self.problems.append(_problem(path, what))


def _problem(path: str, what: str) -> str:
    return f"{one_line(_label(path))}: {what}."


def _label(path: str) -> str:
    """The path as text, whatever bytes its name is made of."""
    return os.fsencode(path).decode("utf-8", "backslashreplace")
