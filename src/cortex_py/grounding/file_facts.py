"""What one file tells about its project: definitions, imports, dependencies, settings, words. Pure."""

from __future__ import annotations

import posixpath
from dataclasses import dataclass

from ..worktree.choice import content_reason, name_reason
from ..worktree.decoding import decode
from ..worktree.imports import Import
from ..worktree.languages import language_of
from ..worktree.manifests import Dependency, Stated, dependencies, is_dependency_file, own_version
from ..worktree.outline import Symbol, outline
from ..worktree.settings_keys import Setting, settings_in
from .words import names_in, words_of

__all__ = ["FileFacts", "file_facts"]

_MOST_WORDS = 20_000


@dataclass(frozen=True, slots=True)
class FileFacts:
    """`state` is "read", or why nothing but the file itself is known."""

    state: str
    lines: int = 0
    symbols: tuple[Symbol, ...] = ()
    imports: tuple[Import, ...] = ()
    dependencies: tuple[Dependency, ...] = ()
    settings: tuple[Setting, ...] = ()
    stated: Stated | None = None
    words: frozenset[str] = frozenset()


def file_facts(path: str, data: bytes | None) -> FileFacts:
    """The facts of a file; None for data that could not be read."""
    if data is None:
        return FileFacts("unreadable")
    listed = is_dependency_file(path)
    reason = name_reason(path) or content_reason(path, data)
    # What a lock file pins is a fact of the project, though nobody wrote it.
    if reason is not None and not (reason == "generated" and listed):
        return FileFacts(reason, data.count(b"\n"))
    text = decode(data)
    if text is None:
        return FileFacts("binary")
    found = tuple(dependencies(path, text)) if listed else ()
    lines = text.count("\n") + (not text.endswith("\n"))
    if reason is not None:
        return FileFacts(reason, lines, dependencies=found)
    language = language_of(path, text)
    shape = outline(language, text.encode("utf-8", "replace")) if language is not None else None
    words = words_of({*names_in(text), posixpath.splitext(posixpath.basename(path))[0]})
    return FileFacts(
        "read",
        lines,
        tuple(shape.symbols) if shape else (),
        tuple(shape.imports) if shape else (),
        found,
        tuple(settings_in(path, text)),
        own_version(path, text),
        frozenset(sorted(words)[:_MOST_WORDS]),
    )
