"""Lists the files of a project: what git tracks or would add, or the files of a plain folder.

Each file comes with git's id of its content, so that an unchanged file is recognised without being read. Nothing
outside the root is listed or read: symbolic links are not followed. `choice` decides what is worth remembering.
"""

from __future__ import annotations

import hashlib
import os
import stat
from collections.abc import Iterable, Iterator, Mapping
from contextlib import suppress
from dataclasses import dataclass, field
from pathlib import Path
from typing import Literal

from ...core.errors import CortexError, InvalidInput
from ...core.paths import read_regular
from ..git.repository import Repository
from ..git.runner import run_git
from .ignore_rules import IgnoreRules

__all__ = ["HUGE", "VENDORED", "FileRef", "blob_id", "compute_stamp", "project_files", "read_file"]

HUGE = 1_000_000
# Folders of third-party code or build output, by the names that tools commonly give them.
_VENDORED = (
    "node_modules bower_components jspm_packages site-packages .venv venv virtualenv vendor vendors vendored _vendor "
    "third_party third-party thirdparty 3rdparty pods carthage deriveddata dist __pycache__ .tox .nox .eggs "
    ".yarn .pnpm-store .next .nuxt .svelte-kit .gradle .terraform"
)
VENDORED = frozenset(_VENDORED.split())

Algorithm = Literal["sha1", "sha256"]

_TIMEOUT_SECONDS = 120.0
MOST_IN_A_FOLDER = 200_000
_KEPT_DOT_FOLDERS = frozenset((b".github", b".gitlab", b".circleci"))
_LINK, _SUBMODULE = b"120000", b"160000"


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


def project_files(root: Path, *, max_bytes: int = HUGE, home: Path | None = None) -> list[FileRef]:
    """All files below a folder that git tracks or would add; without a repository, those not ignored.

    Submodules and nested repositories are left out, and so is the `home` of Cortex: what an assistant said before is no
    evidence for it. Sorted by path.
    """
    root = root.resolve()
    repository = Repository.discover(root)
    if repository is None:
        listing = _Listing(root, max_bytes)
        found = (listing.ref(path, None) for path in folder_paths(root))
    elif repository.is_bare or not root.is_relative_to(repository.root):
        return []
    else:
        below = _Below(repository.root, root)
        tracked, algorithm = _tracked(below)
        listing = _Listing(root, max_bytes, algorithm)
        names = [*tracked, *_untracked(below)]
        found = (listing.ref(path, tracked.get(path)) for path in names if listing.is_inside(path))
    own = _folder_below(home, root)
    return sorted((ref for ref in found if ref and not (own and ref.path.startswith(own))), key=lambda ref: ref.path)


def _folder_below(home: Path | None, root: Path) -> str:
    """How the paths of the files of a home below the root begin; empty for one elsewhere, or that is the root."""
    if home is None or not (place := home.resolve()).is_relative_to(root) or place == root:
        return ""
    return place.relative_to(root).as_posix() + "/"


def read_file(root: Path, file: FileRef, *, max_bytes: int = HUGE) -> bytes | None:
    """The content of a listed file; None if it is gone, cannot be read, or exceeds the limit."""
    return read_regular(root / file.path, max_bytes, follow=False)


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
        """Whether every parent is a real folder; git still lists files behind a folder replaced by a link."""
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
        if blob is None and size <= self.max_bytes:
            data = read_regular(self._place(path), self.max_bytes, follow=False)
            size, blob = (size, None) if data is None else (len(data), blob_id(data, self.algorithm))
        return FileRef(os.fsdecode(path), size, blob)

    def _place(self, path: bytes) -> bytes:
        return os.path.join(os.fsencode(self.root), path)  # noqa: PTH118 - names are bytes


def _mode(place: bytes) -> int:
    try:
        return os.lstat(place).st_mode
    except OSError:
        return 0


def _tracked(below: _Below) -> tuple[Mapping[bytes, str | None], Algorithm]:
    """The tracked files with their blob id, None if the working tree differs from the index."""
    changed = frozenset(below.list("--modified"))
    found: dict[bytes, str | None] = {}
    algorithm: Algorithm = "sha1"
    for line in below.list("--stage"):
        facts, _, path = line.partition(b"\t")
        path = path.removeprefix(below.prefix)
        mode, blob, stage = facts.split(b" ")
        algorithm = "sha256" if len(blob) == 64 else "sha1"
        if mode not in (_LINK, _SUBMODULE):
            # A file in conflict has up to three index entries, none of which is the file on disk.
            found[path] = None if path in changed or stage != b"0" else blob.decode("ascii")
    return found, algorithm


def _untracked(below: _Below) -> list[bytes]:
    paths = below.list("--others", "--exclude-standard")
    # A trailing slash marks another repository inside this one.
    return [path for path in paths if not path.endswith(b"/")]


@dataclass(frozen=True, slots=True)
class _Below:
    """A folder of a working tree. git runs at the top, because a subfolder could imitate a repository."""

    top: Path
    root: Path

    @property
    def prefix(self) -> bytes:
        return b"" if self.root == self.top else os.fsencode(self.root.relative_to(self.top).as_posix()) + b"/"

    def list(self, *options: str) -> list[bytes]:
        """The entries that `git ls-files` prints for the folder, with paths relative to it."""
        where = ("--", os.fsdecode(self.prefix)) if self.prefix else ()
        done = run_git(self.top, "ls-files", "-z", *options, *where, timeout=_TIMEOUT_SECONDS)
        if done is None or done.returncode != 0:
            raise CortexError(
                f"'git ls-files' gave no answer for the files below {self.root}.",
                remedy="Check that git works there, for example with 'git status'.",
            )
        return [entry.removeprefix(self.prefix) for entry in done.stdout.split(b"\0") if entry]


def folder_paths(root: Path) -> Iterator[bytes]:
    """The paths in a plain folder, without ignored files, vendored and hidden folders, and links."""
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
        if count > MOST_IN_A_FOLDER:
            raise InvalidInput(
                f"{root} holds more than {MOST_IN_A_FOLDER:,} files and is no git repository.",
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
        # A folder without permission to list counts as empty.
        return []


def _rules(entries: Iterable[os.DirEntry[bytes]], folder: bytes, above: IgnoreRules | None) -> IgnoreRules | None:
    for entry in entries:
        if entry.name == b".gitignore" and entry.is_file(follow_symlinks=False):
            text = read_regular(entry.path, HUGE, follow=False)
            return above if text is None else IgnoreRules(text, folder, above)
    return above


# Change stamps: if two stamps of a folder are equal, no file in it changed in between.
#
# In a repository, git compares the files with its index, which is faster than any walk; only files that differ are
# looked at, by size and time. A plain folder is walked.

_STATUS_SECONDS = 120.0
_STATUS = ("status", "--porcelain=v2", "-z", "--untracked-files=all", "--no-renames")


def compute_stamp(root: Path, repository: Repository | None) -> str | None:
    """A stamp of the files below a folder, HEAD and the tags; None if git gives no answer."""
    digest = hashlib.sha1(usedforsecurity=False)
    if repository is None:
        _add_files(digest, root, folder_paths(root))
        return digest.hexdigest()
    head = repository.head()
    index, shallow = _facts(repository.git_dir / "index"), _facts(repository.common_dir / "shallow")
    digest.update(f"{head.branch}\0{head.commit}\0{index}\0{shallow}\0".encode("utf-8", "replace"))
    _add_tags(digest, repository.common_dir)
    if repository.is_bare:
        return digest.hexdigest()
    answer = run_git(repository.root, *_STATUS, timeout=_STATUS_SECONDS)
    if answer is None or answer.returncode != 0:
        return None
    digest.update(answer.stdout)
    _add_files(digest, repository.root, (path for line in answer.stdout.split(b"\0") if (path := _path(line))))
    return digest.hexdigest()


def _add_tags(digest: hashlib._Hash, common_dir: Path) -> None:
    """Add the files that store tags in any format; asking git would cost as much as everything else."""
    for name in ("packed-refs", "reftable/tables.list"):
        digest.update(f"{_facts(common_dir / name)}\0".encode())
    waiting = [os.fsencode(common_dir / "refs" / "tags")]
    while waiting:
        folder = waiting.pop()
        digest.update(f"{_facts(folder)}\0".encode())
        with suppress(OSError), os.scandir(folder) as entries:
            for entry in sorted(entries, key=lambda one: one.name):
                if entry.is_dir(follow_symlinks=False):
                    waiting.append(entry.path)
                else:
                    digest.update(entry.name + b"\0" + _facts(entry.path).encode())


def _path(line: bytes) -> bytes:
    """The path in a status line: after 8 fields of a changed file, 10 of one in conflict, 1 of a new one."""
    fields = {b"1": 8, b"u": 10, b"?": 1}.get(line[:1], 0)
    return line.split(b" ", fields)[-1] if fields else b""


def _add_files(digest: hashlib._Hash, root: Path, paths: Iterable[bytes]) -> None:
    base = os.fsencode(root)
    for path in paths:
        place = os.path.join(base, path)  # noqa: PTH118 - names are bytes
        digest.update(path + b"\0" + _facts(place).encode() + b"\0")


def _facts(place: Path | bytes) -> str:
    try:
        found = os.lstat(place)
    except OSError:
        return "-"
    return f"{found.st_mtime_ns} {found.st_ctime_ns} {found.st_size} {found.st_ino} {found.st_mode}"
