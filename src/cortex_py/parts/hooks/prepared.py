"""What a session is given at its start, prepared while a process is warm, for a start when none is.

Standard library only; part of `cortex hook`. A prepared text is used only while it is still right: the same version of
Cortex, the same git branch, no change to the store, nothing expired. Encrypted homes and PostgreSQL have none.
"""

from __future__ import annotations

import json
import os
import zlib
from contextlib import suppress
from pathlib import Path
from typing import Any

from ...core.paths import folders_around, read_regular
from ...version import __version__
from .sqlite_revision import read_revision

__all__ = ["branch_of", "forget_prepared", "read_head", "read_prepared", "roots_of", "write_prepared"]

_MOST_BYTES = 64_000
_MOST_LEVELS = 64
_MOST_POINTER = 4_096


def read_head(folder: Path) -> str:
    """What is checked out in a folder, as git's HEAD file has it; empty outside a repository."""
    with suppress(OSError, ValueError):
        if git := _git_folder(folder):
            return _pointer(git[1] / "HEAD")
    return ""


def roots_of(folder: Path) -> list[Path]:
    """The folders that the project of a folder may have as its root: those up to the top of the checkout around it.

    For a linked worktree also the main checkout, if each of them names the other; for a plain folder those around it.
    """
    with suppress(OSError, ValueError):
        if (git := _git_folder(folder)) is None:
            return folders_around(folder)
        place, inner = git
        found = [folder, *folder.parents][: len(folder.parts) - len(place.parts) + 1]
        if inner.parent.name == "worktrees" and inner.parents[1].name == ".git":
            # A relative name begins at the folder of the file that it is in.
            named = inner / _pointer(inner / "gitdir")
            found += [inner.parents[2].resolve()] if named.samefile(place / ".git") else []
        return found
    return []


def _git_folder(folder: Path) -> tuple[Path, Path] | None:
    """The root of the checkout that a folder is in, and the folder of its git files."""
    for place in (folder, *folder.parents)[:_MOST_LEVELS]:
        git = place / ".git"
        if git.is_file() and (name := _pointer(git).removeprefix("gitdir:").strip()):
            git = place / name
        if git.is_dir():
            return place, git
    return None


def _pointer(path: Path) -> str:
    """The line in a small file of git; empty where something else stands in its place."""
    return (read_regular(path, _MOST_POINTER) or b"").decode("utf-8").strip()


def branch_of(head: str) -> str:
    """The name of the git branch in a HEAD; empty if none is checked out."""
    return head.removeprefix("ref: refs/heads/") if head.startswith("ref: refs/heads/") else ""


def _path(home: Path, folder: Path) -> Path:
    # A folder of the same name by chance is noticed: the file holds the whole name.
    name = str(folder).encode("utf-8", "surrogateescape")
    return home / "hooks" / "start" / f"{zlib.crc32(name):08x}-{len(name)}.json"


def read_prepared(home: Path, folder: Path, now: float) -> dict[str, Any] | None:
    """The prepared start of a session in a folder (`text` and `ids`), if it is still right."""
    try:
        path = _path(home, folder)
        found: dict[str, Any] = json.loads(read_regular(path, _MOST_BYTES) or b"")
        same = (found["version"], found["folder"], found["head"]) == (__version__, str(folder), read_head(folder))
        if same and now < found["until"] and found["revision"] == read_revision(home / "cortex.db"):
            return found
    except (OSError, ValueError, LookupError, TypeError):
        pass
    return None


def write_prepared(home: Path, folder: Path, *, text: str, ids: list[str], until: float, revision: int) -> None:
    """Keep a start for later."""
    path = _path(home, folder)
    path.parent.mkdir(mode=0o700, parents=True, exist_ok=True)
    content = {
        "version": __version__,
        "folder": str(folder),
        "head": read_head(folder),
        "text": text,
        "ids": ids,
        "until": until,
        "revision": revision,
    }
    draft = path.with_name(f".{path.name}-{os.getpid()}")
    file = os.open(draft, os.O_WRONLY | os.O_CREAT | os.O_TRUNC, 0o600)
    with os.fdopen(file, "w", encoding="utf-8") as out:
        json.dump(content, out)
    draft.replace(path)


def forget_prepared(home: Path) -> None:
    """Remove all prepared starts."""
    with suppress(OSError):
        for path in (home / "hooks" / "start").iterdir():
            path.unlink(missing_ok=True)
