"""A stamp of a folder: two that are equal mean that no file of it changed between them.

In a repository git itself compares the files with its index, which is quicker than anything done here; only what
differs is looked at, by size and time. A plain folder is walked.
"""

from __future__ import annotations

import hashlib
import os
from collections.abc import Iterable
from contextlib import suppress
from pathlib import Path

from .files import folder_paths
from .git import Repository, run_git

__all__ = ["stamp"]

_TIMEOUT_SECONDS = 120.0
_STATUS = ("status", "--porcelain=v2", "-z", "--untracked-files=all", "--no-renames", "--ignore-submodules=all")


def stamp(root: Path, repository: Repository | None) -> str | None:
    """The stamp of what lies below a folder, of what is checked out and of the tags; None where it cannot be told."""
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
    answer = run_git(root, "-c", "core.fsmonitor=false", *_STATUS, timeout=_TIMEOUT_SECONDS)
    if answer is None or answer.returncode != 0:
        return None
    digest.update(answer.stdout)
    _add_files(digest, repository.root, (path for line in answer.stdout.split(b"\0") if (path := _path(line))))
    return digest.hexdigest()


def _add_tags(digest: hashlib._Hash, common_dir: Path) -> None:
    """The files that tags are kept in, whichever way: asking git for them would cost as much as all the rest."""
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
    """The path in a line of status: after eight fields of a changed file, ten of one in conflict, one of a new one."""
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
