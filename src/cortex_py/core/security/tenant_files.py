"""Where a home stores the files of each tenant, for callers who may read them.

A project without an organisation has its files in the home itself: `memory/<project>`, `backups/<project>`,
`evidence/<project>`. An organisation's projects have the same folders below `tenants/<organisation>`. Files that an
earlier version or another organisation left elsewhere are moved when they are first needed.
"""

from __future__ import annotations

import logging
import os
from collections.abc import Iterator, Mapping
from contextlib import contextmanager, suppress
from hashlib import sha256
from pathlib import Path
from typing import Literal, get_args
from urllib.parse import quote, unquote

from ..errors import ProjectNotFound, StorageError, StoreBusy, storage_error
from .path_access import ProjectDirectory
from .permission import may_read

__all__ = ["TenantFiles"]

Kind = Literal["memory", "backups", "evidence"]
_KINDS: tuple[Kind, ...] = get_args(Kind)
_WAIT_SECONDS = 10.0
_MOST_KNOWN = 1_000
# The files of a database; the database itself is moved last, because nobody reads the others without it.
_BESIDE = ("-wal", "-shm", "")
logger = logging.getLogger(__name__)


class TenantFiles:
    """The files of one home."""

    def __init__(self, home: Path, projects: ProjectDirectory) -> None:
        self._home = home
        self._projects = projects
        self._known: dict[str, Path] = {}

    def folder(self, kind: Kind, space: str) -> Path:
        """The folder for one kind of files of a space; ProjectNotFound for a caller who may not read the space."""
        if not may_read(space):
            raise ProjectNotFound(f"There is no project {space[:80]!r}.", field="project_id")
        name = _file_name(space)
        known = self._known.get(space)
        # If the folder is gone, the project was moved to another organisation.
        if known is None or not (known / kind / name).is_dir():
            known = self._base(self._projects.org_of(space))
            target = known / kind / name
            if not target.is_dir() and (left := self._moved_here(kind, target)) is not None:
                return left
            if len(self._known) >= _MOST_KNOWN:
                self._known.clear()
            self._known[space] = known
        return known / kind / name

    def adopt(self, kind: Kind, space: str, name: str) -> Path:
        """A file in the folder of a space; a file that an earlier version kept in the shared folder is moved there."""
        folder = self.folder(kind, space)
        if (self._home / kind / name).is_file():
            try:
                with self._moving():
                    for each in (folder.parent, folder):
                        each.mkdir(exist_ok=True, mode=0o700)
                    for suffix in _BESIDE if not (folder / name).exists() else ():
                        _take(self._home / kind / f"{name}{suffix}", folder / f"{name}{suffix}")
            except OSError as error:
                logger.debug("%s was not moved and is dropped: %s", name, error.strerror)
            self.drop(kind, name)
        return folder / name

    def settle(self, orgs: Mapping[str, str]) -> None:
        """Move the files of projects to the folders of their organisations."""
        if not orgs:
            return
        try:
            for base in (self._home, *_folders(self._home / "tenants")):
                for kind in _KINDS:
                    for folder in _folders(base / kind):
                        org = orgs.get(unquote(folder.name))
                        if org is not None and (target := self._base(org) / kind / folder.name) != folder:
                            self._moved_here(kind, target)
        except StorageError as error:
            # They are moved when they are needed.
            logger.warning("files of the home were not put in order: %s", error)

    def loose(self, kind: Kind) -> list[str]:
        """Databases that an earlier version kept in the shared folder."""
        try:
            return sorted(one.name for one in (self._home / kind).iterdir() if one.suffix == ".db" and one.is_file())
        except OSError:
            return []

    def drop(self, kind: Kind, name: str) -> None:
        """Delete such a file, which can be rebuilt."""
        for suffix in _BESIDE:
            with suppress(OSError):
                (self._home / kind / f"{name}{suffix}").unlink()

    def _base(self, org: str | None) -> Path:
        if org is None:
            return self._home
        # The digest separates names that a file system treats as equal.
        name = f"{_file_name(org)[:100]}-{sha256(org.encode()).hexdigest()[:12]}"
        base = self._home / "tenants" / name
        with suppress(OSError):
            for folder in (base.parent, base):
                folder.mkdir(exist_ok=True, mode=0o700)
        return base

    def _moved_here(self, kind: Kind, target: Path) -> Path | None:
        """Move folders of this name from elsewhere; returns the folder to use if it cannot be moved."""
        bases = (self._home, *_folders(self._home / "tenants"))
        places = [place for base in bases if (place := base / kind / target.name) != target]
        places = [place for place in places if place.is_dir() and not place.is_symlink()]
        if not places:
            return None
        try:
            with self._moving():
                target.parent.mkdir(parents=True, exist_ok=True, mode=0o700)
                for place in places:
                    _move(place, target)
        except OSError as error:
            logger.warning("the files of %s stay where they are: %s", target.name, error)
            return places[0] if not target.is_dir() else None
        return None

    @contextmanager
    def _moving(self) -> Iterator[None]:
        """One process at a time moves files."""
        from filelock import FileLock, Timeout

        lock = self._home / ".moving.lock"
        try:
            with FileLock(lock, timeout=_WAIT_SECONDS, mode=0o600):
                yield
        except Timeout as error:
            raise StoreBusy(
                "Another process has been moving files of this home for long.", remedy="Try again."
            ) from error


def _move(place: Path, target: Path) -> None:
    """Move a folder, or merge it into an existing one without overwriting anything."""
    if not place.is_dir():
        return  # another process was faster
    if not target.exists():
        place.rename(target)
        return
    for one in place.iterdir():
        _take(one, target / one.name)
    with suppress(OSError):
        # What is in both stays where it is.
        place.rmdir()


def _take(old: Path, new: Path) -> None:
    """Move a file unless the target exists; symbolic links are left, because they may lead anywhere."""
    with suppress(FileExistsError, FileNotFoundError):
        if not old.is_symlink():
            os.link(old, new)
            old.unlink()


def _folders(base: Path) -> list[Path]:
    try:
        return sorted(one for one in base.iterdir() if one.is_dir() and not one.is_symlink())
    except FileNotFoundError:
        return []
    except OSError as error:
        raise storage_error(error, base) from error


def _file_name(space: str) -> str:
    """A space as a folder name that cannot lead out of its parent."""
    return quote(space, safe="") if space.strip(".") else quote(f"{space}/", safe="")
