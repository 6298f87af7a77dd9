"""The files of an import: those of a folder, or the members of a zip archive, without links, pipes and bombs."""

from __future__ import annotations

import io
import os
import stat
import zipfile
from collections.abc import Callable, Iterator
from contextlib import suppress
from dataclasses import dataclass
from functools import cached_property, partial
from pathlib import Path, PurePosixPath
from typing import IO, BinaryIO

from .....core.errors import CortexError, InvalidInput
from .....core.paths import open_regular
from .....texts.structured import one_line

__all__ = ["SourceFile", "source_files", "text_within"]

_HEAD_BYTES = 256 * 1024
_CHECKED_BYTES = 1 << 20
_DEPTH_MOST = 32
_FILES_MOST = 1_000_000
# Kept by other programs for themselves; nobody wrote anything to remember there.
_NOT_ENTERED = frozenset((".git", ".hg", ".svn", "node_modules", ".venv", ".obsidian", ".trash", "__pycache__"))
# Text packs about ten times. Beyond a hundred, somebody made the archive to fill a disk.
_RATIO_MOST = 100
_RATIO_FROM = 10_000_000
_UNPACKED_MOST = 16_000_000_000
_MEMBERS_MOST = 100_000


@dataclass(frozen=True)
class SourceFile:
    """A file or a member of an archive. `name` says where it is, `path` where it is in what the caller named."""

    name: str
    path: PurePosixPath
    size: int
    modified: int
    opener: Callable[[], BinaryIO]
    is_member: bool = False

    def open(self) -> BinaryIO:
        """A stream of its bytes; OSError where it cannot be read or is no regular file."""
        return self.opener()

    def check(self) -> None:
        """Read a member of an archive to its end, where its checksum is; OSError if it is damaged.

        Else records of a damaged member would come in before the damage shows.
        """
        if self.is_member:
            with self.open() as stream:
                while stream.read(_CHECKED_BYTES):
                    pass

    @cached_property
    def head(self) -> bytes:
        """Its first bytes, by which readers recognise it; empty if it cannot be read."""
        try:
            with self.open() as stream:
                return stream.read(_HEAD_BYTES).removeprefix(b"\xef\xbb\xbf")
        except (OSError, zipfile.BadZipFile, EOFError, ValueError):
            return b""

    @property
    def suffix(self) -> str:
        return self.path.suffix.lower()

    def text(self, most_bytes: int) -> str:
        """All of it as text. InvalidInput where it is too large or not UTF-8."""
        with self.open() as stream:
            return text_within(stream, self.name, most_bytes)


def text_within(stream: BinaryIO, name: str, most_bytes: int) -> str:
    """The text of a stream, which must be UTF-8 and within the limit."""
    data = stream.read(most_bytes + 1)
    if len(data) > most_bytes:
        raise InvalidInput(f"{one_line(name)}: it is larger than {most_bytes:,} bytes.", field="file")
    try:
        return data.decode("utf-8").removeprefix("\ufeff")
    except UnicodeDecodeError as error:
        line = data.count(b"\n", 0, error.start) + 1
        raise InvalidInput(
            f"{one_line(name)}, line {line}: it is not UTF-8.", remedy="Save the file as UTF-8.", field="file"
        ) from error


def source_files(path: Path, refused: Callable[[str, str], None]) -> Iterator[SourceFile]:
    """The files at a path: itself, those of a folder by name, or the members of a zip archive.

    `refused` is called with the name and the reason of what is not opened.
    """
    if path.is_dir():
        yield from _folder(path, PurePosixPath(), 0, refused)
    else:
        yield from _file(path, PurePosixPath(path.name), refused, follow=True)


def _folder(
    folder: Path, inside: PurePosixPath, depth: int, refused: Callable[[str, str], None]
) -> Iterator[SourceFile]:
    try:
        with os.scandir(folder) as found:
            entries = sorted(found, key=lambda entry: entry.name)
    except OSError as error:
        refused(str(folder), error.strerror or "it cannot be listed")
        return
    for entry in entries[:_FILES_MOST]:
        place = folder / entry.name
        if entry.is_symlink():
            refused(str(place), "it is a symbolic link, and those are not followed")
        elif entry.is_dir(follow_symlinks=False):
            if entry.name in _NOT_ENTERED:
                continue
            if depth >= _DEPTH_MOST:
                refused(str(place), f"folders more than {_DEPTH_MOST} deep are not read")
                continue
            yield from _folder(place, inside / entry.name, depth + 1, refused)
        else:
            yield from _file(place, inside / entry.name, refused, follow=False)


def _file(
    path: Path, inside: PurePosixPath, refused: Callable[[str, str], None], *, follow: bool
) -> Iterator[SourceFile]:
    try:
        with open_regular(path, follow=follow) as stream:
            facts = os.fstat(stream.fileno())
            begin = stream.read(16)
    except OSError as error:
        refused(str(path), error.strerror or "it cannot be read")
        return
    if begin.startswith(b"PK\x03\x04"):
        yield from _members(path, inside, refused, follow=follow)
        return
    size, modified = facts.st_size, facts.st_mtime_ns
    if begin.startswith(b"SQLite format 3"):
        # What a running program writes goes into the log first.
        with suppress(OSError):
            log = os.lstat(f"{path}-wal")
            size, modified = size + log.st_size, max(modified, log.st_mtime_ns)
    yield SourceFile(str(path), inside, size, modified, lambda: open_regular(path, follow=follow))


# -- archives ------------------------------------------------------------------------------------


def _members(
    path: Path, inside: PurePosixPath, refused: Callable[[str, str], None], *, follow: bool
) -> Iterator[SourceFile]:
    try:
        with open_regular(path, follow=follow) as stream:
            members = _directory(stream)
    except OSError as error:
        refused(str(path), error.strerror or str(error))
        return
    if len(members) > _MEMBERS_MOST or sum(one.file_size for one in members) > _UNPACKED_MOST:
        refused(str(path), "it unpacks to more than an export of conversations can have")
        return
    for member in sorted(members, key=lambda one: one.filename):
        if member.is_dir():
            continue
        name = f"{path}!{one_line(member.filename)}"
        if reason := _refusal(member):
            refused(name, reason)
            continue
        yield SourceFile(
            name,
            inside / PurePosixPath(member.filename),
            member.file_size,
            path.stat().st_mtime_ns,
            partial(_open_member, path, member, follow=follow),
            is_member=True,
        )


def _directory(stream: BinaryIO) -> list[zipfile.ZipInfo]:
    try:
        with zipfile.ZipFile(stream) as archive:
            return archive.infolist()
    except Exception as error:
        # Of a damaged directory come errors of many kinds.
        raise OSError(f"it is no zip archive that can be read ({type(error).__name__})") from error


def _refusal(member: zipfile.ZipInfo) -> str | None:
    parts = PurePosixPath(member.filename.replace("\\", "/")).parts
    if not parts or parts[0].startswith("/") or ".." in parts or ":" in parts[0] or "\0" in member.filename:
        return "its name leads out of the archive"
    if stat.S_ISLNK(member.external_attr >> 16):
        return "it is a symbolic link, and those are not followed"
    if parts[-1].lower().endswith(".zip"):
        return "archives in an archive are not opened"
    if member.flag_bits & 1:
        return "it is encrypted"
    if member.file_size > _RATIO_FROM and member.file_size > _RATIO_MOST * max(1, member.compress_size):
        return f"it unpacks to more than {_RATIO_MOST} times its size"
    return None


def _open_member(path: Path, member: zipfile.ZipInfo, *, follow: bool) -> BinaryIO:
    stream = open_regular(path, follow=follow)
    try:
        # Not more than the size that was checked comes out, whatever the data hold.
        archive = zipfile.ZipFile(stream)
        return _Member(archive.open(member), stream)
    except Exception as error:
        stream.close()
        raise OSError(f"the archive is damaged ({type(error).__name__})") from error
    except BaseException:
        stream.close()
        raise


class _Member(io.BufferedReader):
    """A member of an archive; closing it closes the archive. Damage shows as OSError."""

    def __init__(self, member: IO[bytes], archive: BinaryIO) -> None:
        super().__init__(_Raw(member))
        self._archive = archive

    def close(self) -> None:
        super().close()
        self._archive.close()


class _Raw(io.RawIOBase):
    def __init__(self, member: IO[bytes]) -> None:
        self._member = member

    def readable(self) -> bool:
        return True

    def readinto(self, buffer: memoryview) -> int:  # type: ignore[override]  # what BufferedReader passes
        try:
            data = self._member.read(len(buffer))
        except (zipfile.BadZipFile, EOFError, ValueError, CortexError) as error:
            raise OSError(f"the archive is damaged ({type(error).__name__})") from error
        except Exception as error:
            # zlib and its relatives have errors of their own.
            raise OSError("the archive is damaged") from error
        buffer[: len(data)] = data
        return len(data)
