"""Which files and folders may be read or written: the one check for every path that comes from outside.

Without a bound caller the path is a person's own choice on their own machine, and only kernel file systems are
refused. A caller of a shared server reaches only folders below the operator's `project_roots`, and no other tenant's
project.
"""

from __future__ import annotations

import os
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Protocol

from ..errors import AccessDenied, InvalidInput
from ..paths import expanded
from .callers import current_caller

__all__ = ["PathAccess", "ProjectDirectory", "path_refusal", "resolve_outside_kernel"]

_KERNEL = tuple(Path(name) for name in ("/proc", "/sys", "/dev"))


def resolve_outside_kernel(path: str | Path, field: str = "path") -> Path:
    """The path with its links resolved; /proc, /sys and /dev are refused for everybody."""
    place = expanded(path)
    try:
        found = place.resolve()
    except (OSError, RuntimeError, ValueError):
        raise InvalidInput(
            f"{str(path)[:200]!r} cannot be a path here.", remedy="Give the path of an existing folder.", field=field
        ) from None
    if _in_kernel(found) or _in_kernel(Path(os.path.normpath(place.absolute()))):
        raise InvalidInput(
            "Nothing is read or written in /proc, /sys and /dev.", remedy="Give the path of a project.", field=field
        )
    return found


def path_refusal(field: str = "path") -> AccessDenied:
    """The same error for a folder that does not exist, is not allowed, or belongs to another tenant."""
    return AccessDenied(
        "No such folder is open to you here.",
        remedy="Give the whole path of a project inside one of the folders that the setting project_roots names; "
        "a new project also needs the level write.",
        field=field,
    )


class ProjectDirectory(Protocol):
    """The projects of the store, as far as access to files depends on them."""

    def org_of(self, project_id: str) -> str | None:
        """The organisation that a project was assigned to, if it was."""
        ...

    def is_foreign(self, around: Sequence[Path], path: Path) -> bool:
        """Whether a project that the caller may not read begins in one of the folders `around`, or below `path`."""
        ...


@dataclass(frozen=True, slots=True)
class PathAccess:
    """The folders of one server that callers may use."""

    home: Path
    roots: tuple[Path, ...]
    projects: ProjectDirectory

    def check(self, path: str | Path, field: str = "path") -> Path:
        """The resolved path, if it may be used. The error reveals nothing about a path that may not."""
        if current_caller() is None:
            return resolve_outside_kernel(path, field)
        if not self.roots:
            raise AccessDenied(
                "This server opens no folders for its callers.",
                remedy="An operator must name the folders that hold projects in the setting project_roots.",
                field=field,
            )
        place = Path(path)
        try:
            # Expanding "~" would reveal which users the machine has.
            found = place.resolve(strict=True) if place.is_absolute() else None
        except (OSError, RuntimeError, ValueError):
            found = None
        if found is None or not self.allows(found):
            raise path_refusal(field)
        return found

    def allows(self, *paths: Path) -> bool:
        """Whether the caller may have all of these paths read; links must be resolved already."""
        return all(self._allows(path) for path in paths)

    def keeps(self, path: Path) -> bool:
        """Whether a stored, resolved path still resolves to itself and not into the home."""
        try:
            same = path.resolve(strict=True) == path
        except (OSError, RuntimeError):
            return False
        return same and not _in_kernel(path) and not self._meets_home(path)

    def _allows(self, path: Path) -> bool:
        if _in_kernel(path) or self._meets_home(path):
            return False
        for root in self.roots:
            top = _resolved(root)
            # A root contains projects and is not one itself, unless the operator named a single repository.
            around = [one for one in (path, *path.parents) if top in one.parents]
            if path.is_relative_to(top) and (top / ".git").exists():
                around.append(top)
            if around and not self.projects.is_foreign(around, path):
                return True
        return False

    def _meets_home(self, path: Path) -> bool:
        """Whether a path is the home, inside it or around it, also under another spelling."""
        home = _resolved(self.home)
        if path.is_relative_to(home) or home.is_relative_to(path):
            return True
        try:
            inside = any(one.samefile(home) for one in (path, *path.parents))
            return inside or any(one.samefile(path) for one in home.parents)
        except OSError:
            return False


def _in_kernel(path: Path) -> bool:
    return any(path.is_relative_to(tree) for tree in _KERNEL)


def _resolved(path: Path) -> Path:
    try:
        return path.resolve()
    except (OSError, RuntimeError):
        return path
