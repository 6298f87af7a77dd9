"""A target that is a folder: of another disk, a network drive, or one that a program keeps in sync."""

from __future__ import annotations

import errno
import os
import re
import secrets
import stat
import time
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from pathlib import Path

from ..errors import NetworkError, StorageError
from .replacing import flush_folder, replacing
from .target import Stored
from .target_faults import too_large
from .target_names import check_name, check_prefix, is_name

__all__ = ["FolderTarget"]

# What `replacing` and `create` leave behind when their process is killed.
_DRAFT = re.compile(r"\.[a-z0-9._-]+-[a-z0-9_]{8,}\.part")
_DRAFT_SECONDS = 86_400
_NO_LINKS = frozenset({errno.EPERM, errno.ENOTSUP, errno.EOPNOTSUPP, errno.ENOSYS, errno.EMLINK})
_GONE = frozenset({errno.ENODEV, errno.ENXIO, errno.ENOTCONN, errno.ESTALE, errno.EIO, errno.EHOSTDOWN})
# No link is followed, and a pipe that waits for a writer is not waited for. Windows knows none of these.
_READING = os.O_RDONLY | getattr(os, "O_NOFOLLOW", 0) | getattr(os, "O_NONBLOCK", 0) | getattr(os, "O_BINARY", 0)


class FolderTarget:
    """Objects are files. Links within the folder, and files with names that no object has, are left alone."""

    def __init__(self, root: Path) -> None:
        self._root = root

    @property
    def shown(self) -> str:
        return str(self._root)

    def put(self, name: str, data: bytes) -> None:
        with self._telling():
            path = self._place(check_name(name))
            with replacing(path) as file:
                file.write(data)

    def create(self, name: str, data: bytes) -> bool:
        with self._telling():
            path = self._place(check_name(name))
            if os.path.lexists(path):
                return False
            draft = path.with_name(f".{path.name}-{secrets.token_hex(8)}.part")
            try:
                with replacing(draft) as file:
                    file.write(data)
                return self._named_first(draft, path)
            finally:
                with suppress(OSError):
                    draft.unlink(missing_ok=True)

    def get(self, name: str, limit: int) -> bytes | None:
        check_name(name)
        with self._telling():
            if not self._exists() or self._behind_link(name):
                return None
            try:
                descriptor = os.open(self._root / name, _READING)
            except (FileNotFoundError, NotADirectoryError, IsADirectoryError):
                return None
            except OSError as error:
                if error.errno == errno.ELOOP:
                    return None
                raise
            with os.fdopen(descriptor, "rb") as file:
                found = os.fstat(file.fileno())
                if not stat.S_ISREG(found.st_mode):
                    return None
                data = b"" if found.st_size > limit else file.read(limit + 1)
        if found.st_size > limit or len(data) > limit:
            raise too_large(self.shown, name, limit)
        return data

    def list(self, prefix: str) -> Iterator[Stored]:
        check_prefix(prefix)
        with self._telling():
            if not self._exists():
                return iter(())
            above, slash, _ = prefix.rpartition("/")
            found = [] if slash and self._behind_link(above) else list(self._walk(above + slash, prefix))
        return iter(sorted(found))

    def delete(self, name: str) -> None:
        check_name(name)
        with self._telling():
            path = self._root / name
            if not self._exists() or self._behind_link(name):
                return
            with suppress(FileNotFoundError, NotADirectoryError):
                if stat.S_ISREG(path.lstat().st_mode):
                    path.unlink()

    def close(self) -> None:
        """Nothing is held open."""

    def _place(self, name: str) -> Path:
        """Where to write an object, in folders that are there."""
        if not self._exists():
            self._root.mkdir(mode=0o700, exist_ok=True)
        folder = self._root
        for part in name.split("/")[:-1]:
            folder /= part
            with suppress(FileExistsError):
                folder.mkdir(mode=0o700)
                flush_folder(folder.parent)
            if not stat.S_ISDIR(folder.lstat().st_mode):
                raise NotADirectoryError(errno.ENOTDIR, os.strerror(errno.ENOTDIR), str(folder))
        path = self._root / name
        with suppress(FileNotFoundError):
            if not stat.S_ISREG(path.lstat().st_mode):
                raise FileExistsError(errno.EEXIST, os.strerror(errno.EEXIST), str(path))
        return path

    def _exists(self) -> bool:
        # One look only: another process may make it between two.
        with suppress(FileNotFoundError):
            if stat.S_ISDIR(self._root.stat().st_mode):
                return True
            raise NotADirectoryError(errno.ENOTDIR, os.strerror(errno.ENOTDIR), str(self._root))
        if not self._root.parent.is_dir():
            raise NetworkError(
                f"{self.shown} is not there, nor is the folder above it: not mounted?",
                remedy="Mount or attach it, or create the folder.",
            )
        return False

    def _behind_link(self, name: str) -> bool:
        """Whether one of the folders on the way is a link, which might lead out of the target."""
        path = self._root
        for part in name.split("/"):
            path /= part
            if path.is_symlink():
                return True
        return False

    def _named_first(self, draft: Path, path: Path) -> bool:
        """Give the draft its name unless that is taken; of several processes exactly one succeeds."""
        try:
            os.link(draft, path)
        except FileExistsError:
            return False
        except OSError as error:
            if error.errno not in _NO_LINKS:
                raise
            return self._claimed(draft, path)
        flush_folder(path.parent)
        return True

    def _claimed(self, draft: Path, path: Path) -> bool:
        """The same where files can have one name only: whoever makes the claim may give the name."""
        claim = path.with_name(f".{path.name}-claimed0.part")
        try:
            os.close(os.open(claim, os.O_CREAT | os.O_EXCL | os.O_WRONLY, 0o600))
        except FileExistsError:
            if os.path.lexists(path):
                return False
            raise NetworkError(
                f"{path.name} in {self.shown} is being written by another process.",
                remedy=f"Try again; if no other process runs, remove {claim}.",
            ) from None
        try:
            if os.path.lexists(path):
                return False
            draft.replace(path)
            flush_folder(path.parent)
            return True
        finally:
            claim.unlink(missing_ok=True)

    def _walk(self, folder: str, prefix: str) -> Iterator[Stored]:
        """The objects below a folder, whose name is empty or ends in `/`."""
        try:
            entries = list(os.scandir(self._root / folder))
        except (FileNotFoundError, NotADirectoryError):
            return
        for entry in entries:
            name = folder + entry.name
            if _DRAFT.fullmatch(entry.name):
                _remove_old(entry)
            elif is_name(name):
                if entry.is_dir(follow_symlinks=False):
                    below = f"{name}/"
                    if below.startswith(prefix) or prefix.startswith(below):
                        yield from self._walk(below, prefix)
                elif name.startswith(prefix) and entry.is_file(follow_symlinks=False):
                    with suppress(FileNotFoundError):
                        yield Stored(name, entry.stat(follow_symlinks=False).st_size)

    @contextmanager
    def _telling(self) -> Iterator[None]:
        """What the operating system refuses, as a fault of the target."""
        try:
            yield
        except StorageError as error:
            if isinstance(error.__cause__, OSError):
                raise self._fault(error.__cause__) from error.__cause__
            raise
        except OSError as error:
            raise self._fault(error) from error

    def _fault(self, error: OSError) -> NetworkError:
        if error.errno in (errno.ENOSPC, errno.EDQUOT):
            said, remedy = "is full", "Free some space there and try again."
        elif error.errno == errno.EROFS:
            said, remedy = "can only be read", "Mount it so that it can be written, or choose another folder."
        elif error.errno in (errno.EACCES, errno.EPERM):
            said, remedy = "may not be accessed", "Check the owner and the permissions of the folder."
        elif error.errno in _GONE:
            said, remedy = "cannot be reached: not mounted?", "Mount or attach it, and try again."
        elif error.errno in (errno.ENOTDIR, errno.EEXIST, errno.EISDIR):
            where = error.filename or self.shown
            said, remedy = f"cannot be used: {where} is not what Cortex made there", "Move that away."
        else:
            said, remedy = f"cannot be used: {error.strerror or error}", "Check the folder, or choose another."
        return NetworkError(f"{self.shown} {said}.", remedy=remedy)


def _remove_old(draft: os.DirEntry[str]) -> None:
    """Remove what a killed process left; one that is being written is younger."""
    with suppress(OSError):
        if time.time() - draft.stat(follow_symlinks=False).st_mtime > _DRAFT_SECONDS:
            Path(draft.path).unlink()
