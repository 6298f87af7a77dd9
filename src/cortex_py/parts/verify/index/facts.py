"""The values of the index: what one file contains, where a name is defined, and the changes of the history. Pure."""

from __future__ import annotations

import posixpath
from dataclasses import dataclass, replace
from datetime import datetime
from typing import NamedTuple

from ....core.security.policy import Screen, holds_secret, screen_file
from ....worktree.code.imports import Import
from ....worktree.code.naming import language_of
from ....worktree.code.outline import Symbol, read_outline
from ....worktree.files.choice import decode_text, skip_by_content, skip_by_name
from ....worktree.formats import FileSetting, read_settings
from ....worktree.git.diffs import PatchFile
from ....worktree.git.history import Commit
from ....worktree.manifests.manifests import (
    Dependency,
    OwnVersion,
    is_dependency_file,
    read_dependencies,
    read_own_version,
)
from ..words import names_in, words_of

__all__ = [
    "ChangeRow", "Definition", "FileChange", "FileFacts", "Revision", "file_facts", "holds_secret", "redact_commit",
    "redact_dependency", "redact_line", "redact_text",
]  # fmt: skip


@dataclass(frozen=True, slots=True)
class Definition:
    """Where something is defined; `qualified` is its name with those of the enclosing definitions."""

    path: str
    name: str
    qualified: str
    kind: str
    line: int
    end_line: int


@dataclass(frozen=True, slots=True)
class Revision:
    """A commit that is reachable from HEAD; `whole` if all that it changed is known, which is not so for a merge."""

    id: str
    time: datetime
    author: str
    subject: str
    body: str
    whole: bool = False


@dataclass(frozen=True, slots=True)
class FileChange:
    """A change of one file; `revision` is None if it is not committed."""

    path: str
    old_path: str | None
    status: str
    revision: Revision | None


class ChangeRow(NamedTuple):
    """A change as it is stored, with the number of its commit."""

    path: str
    old_path: str | None
    status: str
    revision: int


_MOST_WORDS = 20_000


@dataclass(frozen=True, slots=True)
class FileFacts:
    """`state` is "read", or the reason why only the file's name is known."""

    state: str
    lines: int = 0
    symbols: tuple[Symbol, ...] = ()
    imports: tuple[Import, ...] = ()
    dependencies: tuple[Dependency, ...] = ()
    settings: tuple[FileSetting, ...] = ()
    stated: OwnVersion | None = None
    words: frozenset[str] = frozenset()


def file_facts(path: str, data: bytes | None) -> FileFacts:
    """Read the facts of a file; `data` is None if it could not be read."""
    if data is None:
        return FileFacts("unreadable")
    listed = is_dependency_file(path)
    reason = skip_by_name(path) or skip_by_content(path, data)
    # The pins of a lock file are facts of the project, although the file is generated.
    if reason is not None and not (reason == "generated" and listed):
        return FileFacts(reason, data.count(b"\n"))
    text = decode_text(data)
    if text is None:
        return FileFacts("binary")
    if reason is None:
        text = redact_text(text)
    # Generated lists are long, so only the entries taken from them are redacted.
    found = tuple(redact_dependency(one) for one in read_dependencies(path, text)) if listed else ()
    lines = text.count("\n") + (not text.endswith("\n"))
    if reason is not None:
        return FileFacts(reason, lines, dependencies=found)
    language = language_of(path, text)
    shape = read_outline(language, text.encode("utf-8", "replace")) if language is not None else None
    words = words_of({*names_in(text), posixpath.splitext(posixpath.basename(path))[0]})
    return FileFacts(
        "read",
        lines,
        tuple(shape.symbols) if shape else (),
        tuple(shape.imports) if shape else (),
        found,
        tuple(read_settings(path, text)),
        read_own_version(path, text),
        frozenset(sorted(words)[:_MOST_WORDS]),
    )


# Removes secrets from what is read of a project before it is indexed. Pure.
#
# Every project is indexed, whatever its policy, and nobody agreed to store the secrets in its files and history. Whole
# texts are redacted before names, words and lines are taken from them, so that no piece of a key is left.

_SCREEN = Screen("redact")


def redact_line(text: str) -> str:
    return _SCREEN.prose(text)


def redact_text(text: str) -> str:
    """The text of a file with the same line numbers."""
    return screen_file(text, _SCREEN)


def redact_commit(commit: Commit) -> Commit:
    """A commit without secrets; the names in its changes come from redacted lines already."""
    return replace(
        commit,
        author=redact_line(commit.author),
        subject=redact_line(commit.subject),
        body=redact_line(commit.body),
        changes=tuple(_redact_change(change) for change in commit.changes),
    )


def _redact_change(change: PatchFile) -> PatchFile:
    path, old_path = _SCREEN.found(change.path), change.old_path and _SCREEN.found(change.old_path)
    return (
        change if (path, old_path) == (change.path, change.old_path) else replace(change, path=path, old_path=old_path)
    )


def redact_dependency(found: Dependency) -> Dependency:
    """A dependency without secrets: its version can be a URL."""
    version = found.version and redact_line(found.version)
    return replace(found, name=redact_line(found.name), constraint=redact_line(found.constraint), version=version)
