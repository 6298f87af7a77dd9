"""The branch files on disk: their paths, locks, reading and atomic replacement.

A file is replaced as a whole, so that a reader never sees half of one. Files are not flushed to the disk: after a power
failure they can be rendered from the store again.

In an encrypted home the files are sealed and their names reveal nothing; they cannot be edited by hand.
"""

from __future__ import annotations

import errno
import os
import re
import threading
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from pathlib import Path

from ....core.errors import BackupCorrupt, InvalidInput, StoreBusy, StoreDenied, storage_error
from ....core.paths import open_regular, read_regular
from ....core.security.home_key import HomeKey, is_sealed
from ....core.security.tenant_files import TenantFiles

__all__ = ["MAX_BYTES", "BranchFiles"]

MAX_BYTES = 256 * 1024 * 1024

# Sealing adds at most this, with the id of the branch.
_SEAL_BYTES = 1_024
_BRANCH = b"\0branch "
WAIT_SECONDS = 10.0
_POLL_SECONDS = 0.01
# Short enough for the prefix and suffix of the lock and the temporary file.
_PLAIN = re.compile(r"[A-Za-z0-9_][A-Za-z0-9_.-]{0,199}")
# Neither exists on Windows, where links need rights of their own.
_NO_LINK = getattr(os, "O_NOFOLLOW", 0)
_BINARY = getattr(os, "O_BINARY", 0)


class _ThreadLocks(threading.local):
    """The lock files that this thread holds, with the process id: a forked child holds none of them."""

    def __init__(self) -> None:
        self.locks: set[tuple[int, Path]] = set()


_thread = _ThreadLocks()


class BranchFiles:
    """The files `<branch>.md` in the folder of each project, by default `<home>/memory/<project>`."""

    def __init__(self, home: Path, key: HomeKey | None = None, tenant_files: TenantFiles | None = None) -> None:
        self._home = home
        self._key = key
        self._tenant_files = tenant_files

    def path(self, project_id: str, branch_id: str) -> Path:
        """The path of the file of a branch, whether or not it exists."""
        name = _plain(branch_id, "branch_id")
        if self._key is not None:
            # The id contains the topic, which must not show.
            name = self._key.name(f"{project_id}/{name}")
        return self._folder(project_id) / f"{name}.md"

    @contextmanager
    def locked(self, project_id: str, branch_id: str) -> Iterator[None]:
        """Lock the file of a branch against other threads and processes; reentrant within a thread.

        Entering removes what a killed writer left behind.
        """
        path = self.path(project_id, branch_id)
        lock = path.with_name(f".{path.stem}.lock")
        hold = (os.getpid(), lock)
        if hold in _thread.locks:
            yield
            return
        self._make_folder(path.parent)
        # Imported here because most programs never write a branch file.
        from filelock import FileLock, Timeout

        file_lock = FileLock(lock, timeout=WAIT_SECONDS, mode=0o600, poll_interval=_POLL_SECONDS)
        try:
            file_lock.acquire()
        except Timeout as error:
            raise StoreBusy(
                f"The branch file {path} stayed locked for {WAIT_SECONDS:.0f} seconds.",
                remedy="Nothing was written; try again.",
            ) from error
        except OSError as error:
            raise storage_error(error, lock) from error
        _thread.locks.add(hold)
        try:
            _remove(_temporary(path))
            yield
        finally:
            _thread.locks.discard(hold)
            file_lock.release()

    def read(self, project_id: str, branch_id: str) -> str | None:
        """The text of the file, or None where it does not exist."""
        path = self.path(project_id, branch_id)
        try:
            data = self._bytes(path)
        except FileNotFoundError:
            return None
        except OSError as error:
            raise storage_error(error, path) from error
        data = _content(self._unsealed(path, data))[1]
        try:
            return data.decode("utf-8")
        except UnicodeDecodeError as error:
            line = data.count(b"\n", 0, error.start) + 1
            raise InvalidInput(
                f"The branch file {path} is not UTF-8, line {line}.", remedy="Save it as UTF-8.", field="branch_file"
            ) from error

    def write(self, project_id: str, branch_id: str, text: str) -> str:
        """Replace the file, readable by its owner only, and return its stamp. Takes the lock unless it is held."""
        path = self.path(project_id, branch_id)
        data = self._sealed(path, branch_id, _encoded(text, path))
        with self.locked(project_id, branch_id):
            temporary = _temporary(path)
            try:
                self._check_folder(path.parent)
                with os.fdopen(_create(temporary), "wb") as file:
                    file.write(data)
                # Taken before the file gets its name, so that an edit right after is not missed.
                stamp = _stamp(temporary.lstat())
                temporary.replace(path)
            except OSError as error:
                with suppress(OSError):
                    temporary.unlink(missing_ok=True)
                raise storage_error(error, path) from error
        return stamp

    def names(self, project_id: str) -> list[str]:
        """The branches whose files were written here: those have a note."""
        folder = self._folder(project_id)
        notes = folder.glob(".*.note") if folder.is_dir() else ()
        files = [path for note in notes if (path := folder / f"{note.name[1:-5]}.md").is_file()]
        return sorted(_content(self._unsealed(path, self._bytes(path)))[0] or path.stem for path in files)

    def remove(self, project_id: str, branch_id: str) -> None:
        """Delete a file and its note."""
        with self.locked(project_id, branch_id):
            for path in (self.path(project_id, branch_id), self._note_path(project_id, branch_id)):
                try:
                    path.unlink(missing_ok=True)
                except OSError as error:
                    raise storage_error(error, path) from error

    def stamp(self, project_id: str, branch_id: str) -> str | None:
        """A text that changes when anybody modifies the file; None where it does not exist."""
        path = self.path(project_id, branch_id)
        try:
            return _stamp(path.lstat())
        except FileNotFoundError:
            return None
        except OSError as error:
            raise storage_error(error, path) from error

    def note(self, project_id: str, branch_id: str) -> str | None:
        """The note of the file; None where there is none or it cannot be read. A note may always be lost."""
        path = self._note_path(project_id, branch_id)
        data = read_regular(path, MAX_BYTES, follow=False)
        try:
            return None if data is None else self._unsealed(path, data).decode("utf-8")
        except (UnicodeDecodeError, BackupCorrupt):
            return None

    def keep_note(self, project_id: str, branch_id: str, text: str) -> None:
        """Write the note of the file; the lock must be held."""
        path = self._note_path(project_id, branch_id)
        try:
            with os.fdopen(
                os.open(path, os.O_WRONLY | os.O_CREAT | os.O_TRUNC | _NO_LINK | _BINARY, 0o600), "wb"
            ) as file:
                file.write(text.encode() if self._key is None else self._key.seal(text.encode(), _use(path)))
        except OSError as error:
            raise storage_error(error, path) from error

    def _note_path(self, project_id: str, branch_id: str) -> Path:
        path = self.path(project_id, branch_id)
        return path.with_name(f".{path.stem}.note")

    def _sealed(self, path: Path, branch_id: str, data: bytes) -> bytes:
        """The bytes of a file; in an encrypted home with the branch id, which the name does not show."""
        if self._key is None:
            return data
        return self._key.seal(_BRANCH + branch_id.encode() + b"\n" + data, _use(path))

    def _unsealed(self, path: Path, data: bytes) -> bytes:
        if self._key is not None:
            return self._key.unseal(data, _use(path))
        if is_sealed(data):
            raise StoreDenied(
                f"{path} is encrypted, and there is no key for it.", remedy="Delete it; Cortex writes it again."
            )
        return data

    # -- encryption ------------------------------------------------------------------------------

    def recode(self, old: HomeKey | None) -> None:
        """Encrypt or decrypt every branch file of the home: from the key `old` to the key of this object.

        Notes are deleted: without one, a file is read and rewritten when its branch is next used.
        """
        before = BranchFiles(self._home, old)
        for path in sorted(self._home.glob("**/memory/**/*.md")):
            try:
                data = before._bytes(path)
                if is_sealed(data) == (self._key is not None):
                    continue
                branch_id, text = _content(before._unsealed(path, data))
                name = branch_id or path.stem
                target = path.with_name(self.path(path.parent.name, name).name)
                draft = _temporary(target)
                _remove(draft)
                with os.fdopen(_create(draft), "wb") as file:
                    file.write(self._sealed(target, name, text))
                    file.flush()
                    os.fsync(file.fileno())
                draft.replace(target)
                if target != path:
                    path.unlink()
            except OSError as error:
                raise storage_error(error, path) from error
        for folder in {path.parent for path in self._home.glob("**/memory/*/.*")}:
            for path in folder.iterdir():
                if path.name.startswith(".") and path.suffix in (".note", ".lock", ".tmp"):
                    _remove(path)

    def _folder(self, project_id: str) -> Path:
        name = _plain(project_id, "project_id")
        return self._tenant_files.folder("memory", name) if self._tenant_files else self._home / "memory" / name

    def _make_folder(self, folder: Path) -> None:
        try:
            self._home.mkdir(parents=True, exist_ok=True, mode=0o700)
            for each in self._below_home(folder):
                each.mkdir(exist_ok=True, mode=0o700)
            self._check_folder(folder)
        except OSError as error:
            raise storage_error(error, folder) from error

    def _check_folder(self, folder: Path) -> None:
        """Refuse links below the home, which could lead private notes anywhere. The home itself may be a link."""
        for each in self._below_home(folder):
            if each.is_symlink():
                raise _not_plain(each, "folder")

    def _below_home(self, folder: Path) -> list[Path]:
        """A folder and its parents up to the home, outermost first."""
        return [
            self._home.joinpath(*parts[:n])
            for parts in [folder.relative_to(self._home).parts]
            for n in range(1, len(parts) + 1)
        ]

    def _bytes(self, path: Path) -> bytes:
        self._check_folder(path.parent)
        if path.is_symlink():
            raise _not_plain(path, "file")
        most = MAX_BYTES + (0 if self._key is None else _SEAL_BYTES)
        try:
            with open_regular(path, follow=False) as file:
                data = file.read(most + 1)
        except OSError as error:
            raise (
                _not_plain(path, "file") if error.errno in (errno.EINVAL, errno.EISDIR, errno.ELOOP) else error
            ) from error
        if len(data) > most:
            raise _too_large(path)
        return data


def _content(data: bytes) -> tuple[str, bytes]:
    """The branch that a file names (or "") and its text."""
    if not data.startswith(_BRANCH):
        return "", data
    branch, _, text = data.removeprefix(_BRANCH).partition(b"\n")
    return branch.decode(), text


def _use(path: Path) -> str:
    """The purpose a file is sealed for: a file put in place of another cannot be opened."""
    return f"branch {path.parent.name}/{path.name}"


def _plain(name: str, field: str) -> str:
    if not _PLAIN.fullmatch(name):
        raise InvalidInput(
            f"{name[:80]!r} cannot be the name of a file.",
            remedy="Use up to 200 letters, digits, dashes, dots and underscores, with no dot in front.",
            field=field,
        )
    return name


def _temporary(path: Path) -> Path:
    # One name per branch: the holder of the lock knows that it is not in use.
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
        remedy="Continue in a new branch.",
        field="branch_file",
    )


def _not_plain(path: Path, kind: str) -> StoreDenied:
    return StoreDenied(f"{path} is not a plain {kind}.", remedy="Move it away; Cortex follows no links there.")
