"""The branch files on disk: where each lies, who may write it now, and how it is read and replaced.

A file is replaced whole, so that a reader never meets half of one. Nothing is flushed to the disk on
purpose: after a power failure a file can be made again from the store.
"""

from __future__ import annotations

import os
import re
import stat
import threading
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from pathlib import Path

from ..errors import InvalidInput, StoreBusy, StoreDenied, storage_error

__all__ = ["MAX_BYTES", "BranchFiles"]

MAX_BYTES = 256 * 1024 * 1024

_WAIT_SECONDS = 10.0
_POLL_SECONDS = 0.01
# Room is left for the dots and endings of the lock and the temporary file.
_PLAIN = re.compile(r"[A-Za-z0-9_][A-Za-z0-9_.-]{0,199}")
# Neither exists on Windows, where links need rights of their own.
_NO_LINK = getattr(os, "O_NOFOLLOW", 0)
_NO_WAIT = getattr(os, "O_NONBLOCK", 0)
_BINARY = getattr(os, "O_BINARY", 0)


class _Held(threading.local):
    """The lock files that this thread holds; with the process, since a forked child holds none of them."""

    def __init__(self) -> None:
        self.locks: set[tuple[int, Path]] = set()


_held = _Held()


class BranchFiles:
    """The files `<home>/memory/<project>/<branch>.md`."""

    def __init__(self, home: Path) -> None:
        self._home = home

    def path(self, project_id: str, branch_id: str) -> Path:
        """Where the file of a branch lies, whether or not it exists."""
        return self._folder(project_id) / f"{_plain(branch_id, 'branch_id')}.md"

    @contextmanager
    def locked(self, project_id: str, branch_id: str) -> Iterator[None]:
        """Keep all other threads and processes from this branch file; a thread may enter again.

        What a killed writer left behind is cleared away on entry.
        """
        path = self.path(project_id, branch_id)
        lock = path.with_name(f".{branch_id}.lock")
        hold = (os.getpid(), lock)
        if hold in _held.locks:
            yield
            return
        self._make_folder(path.parent)
        # Imported here, since most programs never write a branch file.
        from filelock import FileLock, Timeout

        file_lock = FileLock(lock, timeout=_WAIT_SECONDS, mode=0o600, poll_interval=_POLL_SECONDS)
        try:
            file_lock.acquire()
        except Timeout as error:
            raise StoreBusy(
                f"The branch file {path} stayed locked for {_WAIT_SECONDS:.0f} seconds.",
                remedy="Nothing was written; try again.",
            ) from error
        except OSError as error:
            raise storage_error(error, lock) from error
        _held.locks.add(hold)
        try:
            _remove(_temporary(path))
            yield
        finally:
            _held.locks.discard(hold)
            file_lock.release()

    def read(self, project_id: str, branch_id: str) -> str | None:
        """The text of the file, or None where there is none."""
        path = self.path(project_id, branch_id)
        try:
            data = self._bytes(path)
        except FileNotFoundError:
            return None
        except OSError as error:
            raise storage_error(error, path) from error
        try:
            return data.decode("utf-8")
        except UnicodeDecodeError as error:
            line = data.count(b"\n", 0, error.start) + 1
            raise InvalidInput(
                f"The branch file {path} is not UTF-8, line {line}.", remedy="Save it as UTF-8.", field="branch_file"
            ) from error

    def write(self, project_id: str, branch_id: str, text: str) -> str:
        """Replace the file, readable by its owner only, and return its stamp; takes the lock unless it is held."""
        path = self.path(project_id, branch_id)
        data = _encoded(text, path)
        with self.locked(project_id, branch_id):
            temporary = _temporary(path)
            try:
                self._check_folder(path.parent)
                with os.fdopen(_create(temporary), "wb") as file:
                    file.write(data)
                # Of the file before it gets its name: an edit that follows at once is then not missed.
                stamp = _stamp(temporary.lstat())
                temporary.replace(path)
            except OSError as error:
                with suppress(OSError):
                    temporary.unlink(missing_ok=True)
                raise storage_error(error, path) from error
        return stamp

    def names(self, project_id: str) -> list[str]:
        """Branches that have a file which was written here: a note lies beside it."""
        folder = self._folder(project_id)
        notes = folder.glob(".*.note") if folder.is_dir() else ()
        return sorted(branch for note in notes if (branch := note.name[1:-5]) and (folder / f"{branch}.md").is_file())

    def remove(self, project_id: str, branch_id: str) -> None:
        """Take a file away with its note."""
        with self.locked(project_id, branch_id):
            for path in (self.path(project_id, branch_id), self._note_path(project_id, branch_id)):
                try:
                    path.unlink(missing_ok=True)
                except OSError as error:
                    raise storage_error(error, path) from error

    def stamp(self, project_id: str, branch_id: str) -> str | None:
        """A text that differs once anybody has touched the file; None where there is none."""
        path = self.path(project_id, branch_id)
        try:
            return _stamp(path.lstat())
        except FileNotFoundError:
            return None
        except OSError as error:
            raise storage_error(error, path) from error

    def note(self, project_id: str, branch_id: str) -> str | None:
        """What was noted beside the file; None where nothing was, or it cannot be read: a note may always be lost."""
        try:
            return self._note_path(project_id, branch_id).read_text("utf-8")
        except (OSError, UnicodeDecodeError):
            return None

    def keep_note(self, project_id: str, branch_id: str, text: str) -> None:
        """Note something beside the file; the lock must be held."""
        path = self._note_path(project_id, branch_id)
        try:
            with os.fdopen(
                os.open(path, os.O_WRONLY | os.O_CREAT | os.O_TRUNC | _NO_LINK | _BINARY, 0o600), "wb"
            ) as file:
                file.write(text.encode())
        except OSError as error:
            raise storage_error(error, path) from error

    def _note_path(self, project_id: str, branch_id: str) -> Path:
        return self.path(project_id, branch_id).with_name(f".{branch_id}.note")

    def _folder(self, project_id: str) -> Path:
        return self._home / "memory" / _plain(project_id, "project_id")

    def _make_folder(self, folder: Path) -> None:
        try:
            self._home.mkdir(parents=True, exist_ok=True, mode=0o700)
            for each in (folder.parent, folder):
                each.mkdir(exist_ok=True, mode=0o700)
            self._check_folder(folder)
        except OSError as error:
            raise storage_error(error, folder) from error

    def _check_folder(self, folder: Path) -> None:
        """The home may be a link; below it, a link could lead private notes anywhere."""
        for each in (folder.parent, folder):
            if each.is_symlink():
                raise _not_plain(each, "folder")

    def _bytes(self, path: Path) -> bytes:
        self._check_folder(path.parent)
        if path.is_symlink():
            raise _not_plain(path, "file")
        # Not waiting, for a pipe under this name would have us wait for ever.
        with os.fdopen(os.open(path, os.O_RDONLY | _NO_LINK | _NO_WAIT | _BINARY), "rb") as file:
            if not stat.S_ISREG(os.fstat(file.fileno()).st_mode):
                raise _not_plain(path, "file")
            data = file.read(MAX_BYTES + 1)
        if len(data) > MAX_BYTES:
            raise _too_large(path)
        return data


def _plain(name: str, field: str) -> str:
    if not _PLAIN.fullmatch(name):
        raise InvalidInput(
            f"{name[:80]!r} cannot be the name of a file.",
            remedy="Use up to 200 letters, digits, dashes, dots and underscores, with no dot in front.",
            field=field,
        )
    return name


def _temporary(path: Path) -> Path:
    # One name for each branch: whoever holds the lock knows that it is not in use.
    return path.with_name(f".{path.stem}.tmp")


def _create(path: Path) -> int:
    return os.open(path, os.O_WRONLY | os.O_CREAT | os.O_EXCL | _NO_LINK | _BINARY, 0o600)


def _remove(path: Path) -> None:
    try:
        path.unlink(missing_ok=True)
    except OSError as error:
        raise storage_error(error, path) from error


def _stamp(status: os.stat_result) -> str:
    return f"{status.st_size}-{status.st_mtime_ns}-{status.st_ino}"


def _encoded(text: str, path: Path) -> bytes:
    try:
        data = text.encode("utf-8")
    except UnicodeEncodeError as error:
        raise InvalidInput(
            f"The text for {path} is not valid Unicode.", remedy="Remove the lone surrogates.", field="branch_file"
        ) from error
    if len(data) > MAX_BYTES:
        raise _too_large(path)
    return data


def _too_large(path: Path) -> InvalidInput:
    return InvalidInput(
        f"The branch file {path} is larger than {MAX_BYTES >> 20} MB.",
        remedy="Go on in a new branch.",
        field="branch_file",
    )


def _not_plain(path: Path, kind: str) -> StoreDenied:
    return StoreDenied(f"{path} is not a plain {kind}.", remedy="Move it away; Cortex follows no links there.")
