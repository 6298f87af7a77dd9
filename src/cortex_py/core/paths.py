"""Expanding paths, and opening files that may turn out not to be regular files."""

from __future__ import annotations

import errno
import os
import stat
from io import BufferedReader
from pathlib import Path

__all__ = [
    "expanded",
    "find_program",
    "folders_around",
    "open_regular",
    "read_regular",
    "read_whole",
    "search_path",
]

_FLAGS = (
    os.O_RDONLY | getattr(os, "O_NONBLOCK", 0) | getattr(os, "O_NOCTTY", 0)
    | getattr(os, "O_CLOEXEC", 0) | getattr(os, "O_BINARY", 0)
)  # fmt: skip
_NO_LINK = getattr(os, "O_NOFOLLOW", 0)


def expanded(path: str | Path) -> Path:
    """The path with `~` expanded; unchanged if there is no home folder."""
    try:
        return Path(path).expanduser()
    except RuntimeError:
        return Path(path)


def folders_around(folder: Path) -> list[Path]:
    """A folder and the folders around it, nearest first, up to the user's own folder, which holds everything."""
    home = expanded("~").resolve()
    return [folder, *(one for one in folder.parents[:-1] if not home.is_relative_to(one))]


def search_path() -> str:
    """The search path for programs, without relative entries: those name files of the folder one happens to be in."""
    path = os.environ.get("PATH", os.defpath)
    return os.pathsep.join(entry for entry in path.split(os.pathsep) if Path(entry).is_absolute())


def find_program(name: str) -> str | None:
    """The absolute path of a program, never one in the present folder."""
    # Imported here: it is not light, and a hook needs no program.
    import shutil

    found = shutil.which(name, path=search_path())
    return found if found and Path(found).is_absolute() else None


def open_regular(path: Path | bytes, *, follow: bool = True) -> BufferedReader:
    """Open a regular file for reading; OSError for anything else, without waiting for it.

    Without `follow`, a symbolic link at the end of the path is an error too.
    """
    # Opening a device can have side effects, so the name is checked first; the open descriptor decides.
    _check(os.stat(path, follow_symlinks=follow))  # noqa: PTH116 - names may be bytes
    descriptor = os.open(path, _FLAGS if follow else _FLAGS | _NO_LINK)
    try:
        _check(os.fstat(descriptor))
        return open(descriptor, "rb")  # noqa: PTH123 - a descriptor is no path
    except BaseException:
        os.close(descriptor)
        raise


def read_regular(path: Path | bytes, most_bytes: int, *, follow: bool = True) -> bytes | None:
    """The content of a regular file; None if it is missing, unreadable or larger than `most_bytes`."""
    try:
        return read_whole(path, most_bytes, follow=follow)
    except (OSError, ValueError):
        # ValueError: the path contains a NUL.
        return None


def read_whole(path: Path | bytes, most_bytes: int, *, follow: bool = True) -> bytes:
    """The content of a regular file; OSError for anything else, and for more than `most_bytes`."""
    with open_regular(path, follow=follow) as file:
        # A file without content can claim any size, and memory would be taken for it.
        is_larger = os.fstat(file.fileno()).st_size > most_bytes
        data = b"" if is_larger else file.read(most_bytes + 1)
    if is_larger or len(data) > most_bytes:
        raise OSError(errno.EFBIG, f"it is larger than {most_bytes:,} bytes")
    return data


def _check(facts: os.stat_result) -> None:
    if stat.S_ISLNK(facts.st_mode):
        raise OSError(errno.ELOOP, "it is a symbolic link, and those are not followed")
    if stat.S_ISDIR(facts.st_mode):
        raise IsADirectoryError(errno.EISDIR, os.strerror(errno.EISDIR))
    if not stat.S_ISREG(facts.st_mode):
        raise OSError(errno.EINVAL, "it is not a regular file")
