"""The files of a project: what git knows or would know, or what lies in a plain folder.

Each file comes with the id that git gives to its content, so that an unchanged file is recognised
without being read. Nothing outside the root is ever listed or read: symbolic links are not followed.
What is worth remembering is decided in `choice`.
"""

from __future__ import annotations

import hashlib
import os
import stat
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Literal

from ..errors import CortexError, InvalidInput
from .git import Repository, run_git
from .ignoring import IgnoreRules

__all__ = ["HUGE", "VENDORED", "FileRef", "blob_id", "folder_paths", "project_files", "read_file"]

HUGE = 1_000_000
# Folders of other people's code, or of built things, under any name that tools commonly give them.
_VENDORED = (
    "node_modules bower_components jspm_packages site-packages .venv venv virtualenv vendor vendors vendored _vendor "
    "third_party third-party thirdparty 3rdparty pods carthage deriveddata dist __pycache__ .tox .nox .eggs "
    ".yarn .pnpm-store .next .nuxt .svelte-kit .gradle .terraform"
)
VENDORED = frozenset(_VENDORED.split())

Algorithm = Literal["sha1", "sha256"]

_TIMEOUT_SECONDS = 120.0
_MOST_IN_A_FOLDER = 200_000
_KEPT_DOT_FOLDERS = frozenset((b".github", b".gitlab", b".circleci"))
_LINK, _SUBMODULE = b"120000", b"160000"
_READ_FLAGS = os.O_RDONLY | getattr(os, "O_NOFOLLOW", 0) | getattr(os, "O_NONBLOCK", 0) | getattr(os, "O_BINARY", 0)


@dataclass(frozen=True, slots=True)
class FileRef:
    """A file by its path below the root, with `/` between folders.

    `path` opens the file whatever bytes its name is made of; `label` is the form to store and to show.
    `blob` is git's id of the content, None for a file above the size that is read at all.
    """

    path: str
    size: int
    blob: str | None

    @property
    def label(self) -> str:
        return os.fsencode(self.path).decode("utf-8", "backslashreplace")


def project_files(root: Path, *, max_bytes: int = HUGE) -> list[FileRef]:
    """All files below a folder that git tracks or would add; without a repository, those not ignored.

    Submodules and repositories inside the folder belong to themselves. Sorted by path.
    """
    root = root.resolve()
    repository = Repository.discover(root)
    if repository is None:
        listing = _Listing(root, max_bytes)
        found = (listing.ref(path, None) for path in folder_paths(root))
    elif repository.is_bare:
        return []
    else:
        tracked, algorithm = _tracked(root)
        listing = _Listing(root, max_bytes, algorithm)
        names = [*tracked, *_untracked(root)]
        found = (listing.ref(path, tracked.get(path)) for path in names if listing.is_inside(path))
    return sorted((ref for ref in found if ref), key=lambda ref: ref.path)


def read_file(root: Path, file: FileRef, *, max_bytes: int = HUGE) -> bytes | None:
    """The content of a listed file; None when it is gone, cannot be read, or has grown beyond the limit."""
    return _read(root / file.path, max_bytes)


def blob_id(data: bytes, algorithm: Algorithm = "sha1") -> str:
    """The id that git gives to a file with this content."""
    digest = hashlib.new(algorithm, b"blob %d\0" % len(data), usedforsecurity=False)
    digest.update(data)
    return digest.hexdigest()


@dataclass(frozen=True, slots=True)
class _Listing:
    root: Path
    max_bytes: int
    algorithm: Algorithm = "sha1"
    _folders: dict[bytes, bool] = field(default_factory=lambda: {b"": True})

    def is_inside(self, path: bytes) -> bool:
        """Whether every folder on the way is a real one; git still lists files behind a swapped-in link."""
        missing = []
        folder = path.rpartition(b"/")[0]
        while folder not in self._folders:
            missing.append(folder)
            folder = folder.rpartition(b"/")[0]
        for name in reversed(missing):
            above = self._folders[name.rpartition(b"/")[0]]
            self._folders[name] = above and stat.S_ISDIR(_mode(self._place(name)))
        return self._folders[path.rpartition(b"/")[0]]

    def ref(self, path: bytes, blob: str | None) -> FileRef | None:
        try:
            facts = os.lstat(self._place(path))
        except OSError:
            return None
        if not stat.S_ISREG(facts.st_mode):
            return None
        size = facts.st_size
        if blob is None and size <= self.max_bytes and (data := _read(self._place(path), self.max_bytes)) is not None:
            size, blob = len(data), blob_id(data, self.algorithm)
        return FileRef(os.fsdecode(path), size, blob)

    def _place(self, path: bytes) -> bytes:
        return os.path.join(os.fsencode(self.root), path)  # noqa: PTH118 - names are bytes


def _mode(place: bytes) -> int:
    try:
        return os.lstat(place).st_mode
    except OSError:
        return 0


def _read(place: Path | bytes, max_bytes: int) -> bytes | None:
    try:
        descriptor = os.open(place, _READ_FLAGS)
    except OSError:
        return None
    with os.fdopen(descriptor, "rb") as file:
        facts = os.fstat(descriptor)
        if not stat.S_ISREG(facts.st_mode) or facts.st_size > max_bytes:
            return None
        try:
            data = file.read(max_bytes + 1)
        except OSError:
            return None
    return data if len(data) <= max_bytes else None


def _tracked(root: Path) -> tuple[Mapping[bytes, str | None], Algorithm]:
    """The tracked files with the id of their content, None where the working tree differs from the index."""
    changed = frozenset(_git(root, "ls-files", "-z", "--modified"))
    found: dict[bytes, str | None] = {}
    algorithm: Algorithm = "sha1"
    for line in _git(root, "ls-files", "-z", "--stage"):
        facts, _, path = line.partition(b"\t")
        mode, blob, stage = facts.split(b" ")
        algorithm = "sha256" if len(blob) == 64 else "sha1"
        if mode not in (_LINK, _SUBMODULE):
            # A file in conflict is in the index up to three times, and none of them is what lies there.
            found[path] = None if path in changed or stage != b"0" else blob.decode("ascii")
    return found, algorithm


def _untracked(root: Path) -> list[bytes]:
    paths = _git(root, "ls-files", "-z", "--others", "--exclude-standard")
    # A trailing slash marks another repository inside this one.
    return [path for path in paths if not path.endswith(b"/")]


def _git(root: Path, *arguments: str) -> list[bytes]:
    """The entries that git lists for a folder, relative to it."""
    done = run_git(root, "-c", "core.fsmonitor=false", *arguments, timeout=_TIMEOUT_SECONDS)
    if done is None or done.returncode != 0:
        raise CortexError(
            f"'git {arguments[0]}' gave no answer for the files below {root}.",
            remedy="Check that git works there, for example with 'git status'.",
        )
    return [entry for entry in done.stdout.split(b"\0") if entry]


def folder_paths(root: Path) -> Iterator[bytes]:
    """Paths in a plain folder, without ignored ones, vendored and hidden folders, and links."""
    count = 0
    waiting: list[tuple[bytes, IgnoreRules | None]] = [(b"", None)]
    while waiting:
        folder, above = waiting.pop()
        entries = _entries(os.path.join(os.fsencode(root), folder))  # noqa: PTH118 - names are bytes
        rules = _rules(entries, folder, above)
        for entry in entries:
            path = folder + b"/" + entry.name if folder else entry.name
            is_folder = entry.is_dir(follow_symlinks=False)
            if is_folder and _is_skipped(entry.name):
                continue
            if rules is not None and rules.ignored(path, is_folder=is_folder):
                continue
            if is_folder:
                waiting.append((path, rules))
            elif entry.is_file(follow_symlinks=False):
                count += 1
                yield path
        if count > _MOST_IN_A_FOLDER:
            raise InvalidInput(
                f"{root} holds more than {_MOST_IN_A_FOLDER:,} files and is no git repository.",
                remedy="Choose a folder that is one project.",
                field="path",
            )


def _is_skipped(folder: bytes) -> bool:
    hidden = folder.startswith(b".") and folder not in _KEPT_DOT_FOLDERS
    return hidden or os.fsdecode(folder).lower() in VENDORED


def _entries(folder: bytes) -> list[os.DirEntry[bytes]]:
    try:
        with os.scandir(folder) as entries:
            return list(entries)
    except OSError:
        # A folder that may not be listed holds nothing for us.
        return []


def _rules(entries: Iterable[os.DirEntry[bytes]], folder: bytes, above: IgnoreRules | None) -> IgnoreRules | None:
    for entry in entries:
        if entry.name == b".gitignore" and entry.is_file(follow_symlinks=False):
            text = _read(entry.path, HUGE)
            return above if text is None else IgnoreRules(text, folder, above)
    return above
