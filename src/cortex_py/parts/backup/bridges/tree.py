"""The notes of a folder that other programs write too: listed, read and written without following a link."""

from __future__ import annotations

import os
import stat
import time
from collections.abc import Callable, Iterator
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path

from ....core.errors import Conflict, InvalidInput, storage_error
from ....core.files import atomic_write
from ....core.paths import open_regular

__all__ = ["NoteFile", "NoteTree"]

_DEPTH_MOST = 16
_FILES_MOST = 50_000
_PATH_MOST = 1_000
# A file that was written so recently may change again without a new date.
_SETTLED_SECONDS = 2.0


@dataclass(frozen=True, slots=True)
class NoteFile:
    """A file by its path below the folder, with what tells that it was written again."""

    path: str
    size: int
    modified: int
    number: int

    @property
    def stamp(self) -> tuple[int, int]:
        """Size and date; a date of 0 for a file that may still be written."""
        settled = time.time() - self.modified / 1e9 > _SETTLED_SECONDS
        return self.size, self.modified if settled else 0


class NoteTree:
    """The Markdown files below a folder. Hidden files, links and odd names are not touched."""

    def __init__(self, folder: Path, most_bytes: int) -> None:
        self.folder = folder
        self._most_bytes = most_bytes

    def files(self, refuse: Callable[[str, str], None]) -> dict[str, NoteFile]:
        """All files by path. `refuse` is called with the path and the reason of what is not read."""
        found: dict[str, NoteFile] = {}
        for one in self._walk(self.folder, "", 0, refuse):
            if len(found) >= _FILES_MOST:
                raise InvalidInput(
                    f"{self.folder} holds more than {_FILES_MOST:,} notes.", remedy="Choose a smaller folder."
                )
            found[one.path] = one
        return dict(sorted(found.items()))

    def _walk(self, folder: Path, inside: str, depth: int, refuse: Callable[[str, str], None]) -> Iterator[NoteFile]:
        try:
            with os.scandir(folder) as entries:
                listed = sorted(entries, key=lambda one: one.name)
        except OSError as error:
            if not depth:
                raise storage_error(error, folder) from error
            refuse(inside, error.strerror or "it cannot be listed")
            return
        for entry in listed:
            path = f"{inside}/{entry.name}" if inside else entry.name
            is_note = entry.name.lower().endswith(".md")
            if entry.name.startswith("."):
                continue
            if entry.is_symlink():
                if is_note or entry.is_dir():
                    refuse(path, "it is a symbolic link, and those are not followed")
            elif entry.is_dir(follow_symlinks=False):
                if depth >= _DEPTH_MOST:
                    refuse(path, f"folders more than {_DEPTH_MOST} deep are not read")
                else:
                    yield from self._walk(folder / entry.name, path, depth + 1, refuse)
            elif is_note:
                if not _is_plain(path):
                    refuse(path, "its name has characters that are not taken")
                    continue
                with suppress(FileNotFoundError):
                    facts = entry.stat(follow_symlinks=False)
                    if stat.S_ISREG(facts.st_mode):
                        yield NoteFile(path, facts.st_size, facts.st_mtime_ns, facts.st_ino)
                    else:
                        refuse(path, "it is not a regular file")

    def read(self, path: str) -> str:
        """The text of a file. InvalidInput if it is too large or not UTF-8, OSError if it cannot be opened."""
        self._check_parents(path)
        with open_regular(self.folder / path, follow=False) as file:
            data = file.read(self._most_bytes + 1)
        if len(data) > self._most_bytes:
            raise InvalidInput(f"It is larger than {self._most_bytes:,} bytes.", field="file")
        try:
            return data.decode("utf-8").removeprefix("\ufeff")
        except UnicodeDecodeError as error:
            line = data.count(b"\n", 0, error.start) + 1
            raise InvalidInput(f"Line {line} is not UTF-8.", field="file") from error

    def write(self, path: str, text: str, known: NoteFile | None) -> NoteFile:
        """Write a file whole. Conflict if it is no longer the `known` one, or is there though none is known."""
        place = self.folder / path
        self._check_parents(path)
        self._check_known(path, known)
        try:
            place.parent.mkdir(parents=True, exist_ok=True)
        except OSError as error:
            raise storage_error(error, place.parent) from error
        with atomic_write(place, durable=False) as file:
            file.write(text.encode("utf-8", "replace"))
        facts = place.lstat()
        return NoteFile(path, facts.st_size, facts.st_mtime_ns, facts.st_ino)

    def remove(self, path: str, known: NoteFile) -> None:
        """Remove a file. Conflict if it is no longer the `known` one."""
        self._check_parents(path)
        self._check_known(path, known)
        try:
            (self.folder / path).unlink(missing_ok=True)
        except OSError as error:
            raise storage_error(error, self.folder / path) from error

    def known(self, path: str) -> NoteFile | None:
        """A regular file as it is now."""
        with suppress(FileNotFoundError):
            facts = (self.folder / path).lstat()
            if stat.S_ISREG(facts.st_mode):
                return NoteFile(path, facts.st_size, facts.st_mtime_ns, facts.st_ino)
        return None

    def is_free(self, path: str) -> bool:
        return not os.path.lexists(self.folder / path)

    def _check_known(self, path: str, known: NoteFile | None) -> None:
        try:
            facts = (self.folder / path).lstat()
        except FileNotFoundError:
            return
        now = (facts.st_size, facts.st_mtime_ns, facts.st_ino)
        if known is None or now != (known.size, known.modified, known.number) or not stat.S_ISREG(facts.st_mode):
            raise Conflict(f"{path} was changed meanwhile.", remedy="The next run takes the change in.")

    def _check_parents(self, path: str) -> None:
        """Refuse a path that leads out of the folder, also by a link that was put into it meanwhile."""
        if not _is_plain(path):
            raise InvalidInput(f"{path[:200]!r} is no path below the folder.", field="file")
        place = self.folder
        for part in path.split("/")[:-1]:
            place /= part
            if place.is_symlink():
                raise InvalidInput(f"{path[:200]!r} leads through a symbolic link.", field="file")


def _is_plain(path: str) -> bool:
    parts = path.split("/")
    return (
        len(path) <= _PATH_MOST
        and all(part not in ("", ".", "..") for part in parts)
        and all(char.isprintable() and char != "\\" for char in path)
    )
