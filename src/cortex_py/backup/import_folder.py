"""The Markdown files of a folder, and of folders in it. Nothing outside is ever read: links are not followed."""

from __future__ import annotations

import os
import stat
from collections.abc import Iterator
from pathlib import Path
from typing import NamedTuple

from ..prompts.structured import one_line
from ..records import DOMAINS, Domain, SavedKind
from .import_lines import fault
from .markdown_form import read_note

__all__ = ["NoteFile", "folder_notes", "is_markdown", "read_text"]

_DEPTH_MOST = 32
_SUFFIXES = (".md", ".markdown")
_SAVED: dict[str, SavedKind] = {"prompts": "prompt", "templates": "template"}
_README_MOST = 100_000
_FLAGS = os.O_RDONLY | getattr(os, "O_NONBLOCK", 0) | getattr(os, "O_BINARY", 0)
_NO_LINK = getattr(os, "O_NOFOLLOW", 0)


class NoteFile(NamedTuple):
    """A file, the part of an export that it belongs to, if any, and which kind of saved text it holds, if one."""

    path: Path
    domain: Domain | None = None
    saved: SavedKind | None = None


def is_markdown(name: str) -> bool:
    return name.lower().endswith(_SUFFIXES)


def folder_notes(folder: Path, left_out: list[str]) -> Iterator[NoteFile]:
    """All Markdown files below a folder by name; what is hidden belongs to other programs."""
    yield from _notes(folder, 0, None, None, left_out)


def _notes(
    folder: Path, depth: int, domain: Domain | None, saved: SavedKind | None, left_out: list[str]
) -> Iterator[NoteFile]:
    part = _exported(folder)
    domain = part or domain
    for entry in _entries(folder):
        path = folder / entry.name
        if entry.name.startswith("."):
            continue
        if entry.is_symlink():
            if is_markdown(entry.name) or path.is_dir():
                left_out.append(f"{one_line(str(path))}: it is a symbolic link, and those are not followed")
        elif entry.is_dir(follow_symlinks=False):
            if depth >= _DEPTH_MOST:
                left_out.append(f"{one_line(str(path))}: folders more than {_DEPTH_MOST} deep are not read")
                continue
            yield from _notes(path, depth + 1, domain, _SAVED.get(entry.name) if part else saved, left_out)
        elif part and entry.name == "README.md":
            continue
        elif is_markdown(entry.name) and entry.is_file(follow_symlinks=False):
            yield NoteFile(path, domain, saved)


def _entries(folder: Path) -> list[os.DirEntry[str]]:
    try:
        with os.scandir(folder) as entries:
            return sorted(entries, key=lambda entry: entry.name)
    except OSError as error:
        raise fault(str(folder), error.strerror or "it cannot be listed") from error


def _exported(folder: Path) -> Domain | None:
    """The domain of what an export wrote into a folder, by its `README.md`; None where none did."""
    path = folder / "README.md"
    if path.is_symlink() or not path.is_file() or path.stat().st_size > _README_MOST:
        return None
    text = read_text(path, str(path), _README_MOST, follow=False)
    if not text.startswith("---\ncortex_export: "):
        return None
    domain = read_note(str(path), text).fields.get("domain")
    return next((one for one in DOMAINS if one == domain), None)


def read_text(path: Path, name: str, most_bytes: int, *, follow: bool = True) -> str:
    """The text of a regular file; one that is too large, no text or no file is refused by name."""
    try:
        descriptor = os.open(path, _FLAGS if follow else _FLAGS | _NO_LINK)
        with os.fdopen(descriptor, "rb") as file:
            if not stat.S_ISREG(os.fstat(descriptor).st_mode):
                raise fault(name, "it is no regular file")
            data = file.read(most_bytes + 1)
    except OSError as error:
        raise fault(name, error.strerror or "it cannot be read") from error
    if len(data) > most_bytes:
        raise fault(name, f"it is larger than {most_bytes:,} bytes")
    try:
        return data.decode("utf-8").removeprefix("\ufeff")
    except UnicodeDecodeError as error:
        line = data.count(b"\n", 0, error.start) + 1
        raise fault(f"{name}, line {line}", "it is not UTF-8", "Save the file as UTF-8.") from error
