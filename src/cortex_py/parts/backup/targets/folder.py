"""A folder as a target: on another disk, on a network drive, or one that a program synchronises."""

from __future__ import annotations

import errno
import logging
import os
import re
import secrets
import stat
import time
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from pathlib import Path

from ....core.errors import NetworkError, StorageError
from ....core.files import atomic_write, flush_folder
from ....core.paths import open_regular
from .target import StoredObject, check_name, check_prefix, is_name, too_large

__all__ = ["FolderTarget"]

logger = logging.getLogger(__name__)

# Drafts that `atomic_write` and `create` leave behind when their process is killed.
_DRAFT = re.compile(r"\.[a-z0-9._-]+-[a-z0-9_]{8,}\.part")
_DRAFT_SECONDS = 86_400
_NO_LINKS = frozenset({errno.EPERM, errno.ENOTSUP, errno.EOPNOTSUPP, errno.ENOSYS, errno.EMLINK})
_GONE = frozenset({errno.ENODEV, errno.ENXIO, errno.ENOTCONN, errno.ESTALE, errno.EIO, errno.EHOSTDOWN})


class FolderTarget:
    """Objects are files. Links within the folder, and files with other names, are left alone."""

    def __init__(self, root: Path) -> None:
        self._root = root
        self.shown = str(root)

    def put(self, name: str, data: bytes) -> None:
        with self._report_faults():
            path = self._place(check_name(name))
            with atomic_write(path) as file:
                file.write(data)

    def create(self, name: str, data: bytes) -> bool:
        with self._report_faults():
            path = self._place(check_name(name))
            if os.path.lexists(path):
                return False
            draft = path.with_name(f".{path.name}-{secrets.token_hex(8)}.part")
            try:
                with atomic_write(draft) as file:
                    file.write(data)
                return self._named_first(draft, path)
            finally:
                with suppress(OSError):
                    draft.unlink(missing_ok=True)

    def get(self, name: str, limit: int) -> bytes | None:
        check_name(name)
        with self._report_faults():
            if not self._exists() or self._behind_link(name):
                return None
            try:
                file = open_regular(self._root / name, follow=False)
            except (FileNotFoundError, NotADirectoryError, IsADirectoryError):
                return None
            except OSError as error:
                if error.errno in (errno.ELOOP, errno.EINVAL):
                    return None
                raise
            with file:
                found = os.fstat(file.fileno())
                data = b"" if found.st_size > limit else file.read(limit + 1)
        if found.st_size > limit or len(data) > limit:
            raise too_large(self.shown, name, limit)
        return data

    def list(self, prefix: str) -> Iterator[StoredObject]:
        check_prefix(prefix)
        with self._report_faults():
            if not self._exists():
                return iter(())
            above, slash, _ = prefix.rpartition("/")
            found = [] if slash and self._behind_link(above) else list(self._walk(above + slash, prefix))
        return iter(sorted(found))

    def delete(self, name: str) -> None:
        check_name(name)
        with self._report_faults():
            path = self._root / name
            if not self._exists() or self._behind_link(name):
                return
            with suppress(FileNotFoundError, NotADirectoryError):
                if stat.S_ISREG(path.lstat().st_mode):
                    path.unlink()

    def close(self) -> None:
        """Nothing is held open."""

    def _place(self, name: str) -> Path:
        """The path to write an object to, whose folders exist."""
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
        # One call only: another process may create it between two.
        with suppress(FileNotFoundError):
            if stat.S_ISDIR(self._root.stat().st_mode):
                return True
            raise NotADirectoryError(errno.ENOTDIR, os.strerror(errno.ENOTDIR), str(self._root))
        if not self._root.parent.is_dir():
            raise NetworkError(
                f"Neither {self.shown} nor the folder above it exists: is it mounted?",
                remedy="Mount or attach it, or create the folder.",
            )
        return False

    def _behind_link(self, name: str) -> bool:
        """Whether a folder on the way is a link, which could lead out of the target."""
        path = self._root
        for part in name.split("/"):
            path /= part
            if path.is_symlink():
                return True
        return False

    def _named_first(self, draft: Path, path: Path) -> bool:
        """Rename the draft unless the name is taken; exactly one of several processes succeeds."""
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
        """The same on file systems without hard links: the process that creates the claim may rename."""
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

    def _walk(self, folder: str, prefix: str) -> Iterator[StoredObject]:
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
                        yield StoredObject(name, entry.stat(follow_symlinks=False).st_size)

    @contextmanager
    def _report_faults(self) -> Iterator[None]:
        """Report errors of the operating system as faults of the target."""
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
            said, remedy = "cannot be reached: is it mounted?", "Mount or attach it, and try again."
        elif error.errno in (errno.ENOTDIR, errno.EEXIST, errno.EISDIR):
            where = error.filename or self.shown
            said, remedy = f"cannot be used: Cortex did not create {where}", "Move that away."
        else:
            said, remedy = f"cannot be used: {error.strerror or error}", "Check the folder, or choose another."
        return NetworkError(f"{self.shown} {said}.", remedy=remedy)


def _remove_old(draft: os.DirEntry[str]) -> None:
    """Remove the draft of a killed process; one that is being written is younger."""
    try:
        if time.time() - draft.stat(follow_symlinks=False).st_mtime > _DRAFT_SECONDS:
            Path(draft.path).unlink()
    except OSError as error:
        logger.debug("an old draft stays in the target: %s", type(error).__name__)
