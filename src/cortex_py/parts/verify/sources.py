"""The sources of evidence that a caller allows: files and patterns, the history, memories, test reports. Pure."""

from __future__ import annotations

import fnmatch
import posixpath
import re
from collections.abc import Sequence
from dataclasses import dataclass

from ...core.errors import InvalidInput

__all__ = ["EVERYTHING", "Sources", "read_sources"]

_MOST = 100
_LONGEST = 500
_HISTORY = re.compile(
    r"(?:the\s+)?(?:git(?:\s+(?:log|history|diff|status|commits?|show|blame))?|history|commits?|diffs?)", re.I
)
_MEMORIES = re.compile(r"(?:the\s+)?(?:stored\s+)?(?:memor(?:y|ies)|contexts?|notes?)", re.I)
_REPORTS = re.compile(r"(?:the\s+)?tests?\s+(?:reports?|results?|output|runs?)", re.I)
_FILES = re.compile(
    r"(?:the\s+|all\s+|project\s+)*(?:files?|code(?:base)?|source(?:s|\s+code)?|project|repo(?:sitory)?)", re.I
)


@dataclass(frozen=True, slots=True)
class Sources:
    """What counts as evidence. `patterns` are paths and globs of files; None means all files."""

    patterns: tuple[str, ...] | None = None
    history: bool = True
    memories: bool = True
    reports: bool = True

    @property
    def narrowed(self) -> bool:
        """Whether files or the history are left out, so that something may be there that is not looked at."""
        return self.patterns is not None or not self.history

    def takes(self, path: str) -> bool:
        """Whether a file of the project counts as evidence."""
        return self.patterns is None or any(_fits(pattern, path) for pattern in self.patterns)


EVERYTHING = Sources()


def read_sources(names: Sequence[str] | None) -> Sources:
    """Parse a list of source names; None and an empty list mean all sources."""
    if not names:
        return EVERYTHING
    if len(names) > _MOST or any(len(name) > _LONGEST for name in names):
        raise InvalidInput(
            "There are too many evidence sources, or one is too long.",
            remedy=f"Name at most {_MOST}, of {_LONGEST} characters each.",
            field="evidence_sources",
        )
    written = [name.strip() for name in names]
    if not all(written):
        raise InvalidInput(
            "An evidence source is empty.",
            remedy='Name files, patterns such as "src/**/*.py", "git log", "memories" or "test report".',
            field="evidence_sources",
        )
    whole = any(_FILES.fullmatch(name) for name in written)
    known = (_HISTORY, _MEMORIES, _REPORTS, _FILES)
    paths = tuple(name for name in written if not any(pattern.fullmatch(name) for pattern in known))
    return Sources(
        None if whole else tuple(_pattern(path) for path in paths),
        any(_HISTORY.fullmatch(name) for name in written),
        any(_MEMORIES.fullmatch(name) for name in written),
        any(_REPORTS.fullmatch(name) for name in written) or bool(paths),
    )


def _pattern(written: str) -> str:
    """A path relative to the project: "File: auth.py line 45" and "./auth.py:45" mean auth.py."""
    path = re.sub(r"^File:\s*", "", written, flags=re.I)
    path = re.sub(r"(?:\s+lines?\s+\d.*|:\d+(?:[-:]\d+)?|#L\d.*)$", "", path)
    return posixpath.normpath(path.replace("\\", "/").strip("`\"'")).removeprefix("/")


def _fits(pattern: str, path: str) -> bool:
    if pattern == ".":
        return True
    if not any(sign in pattern for sign in "*?["):
        return f"/{path}".endswith(f"/{pattern}") or path.startswith(f"{pattern}/") or f"/{pattern}/" in f"/{path}"
    # In fnmatch a star crosses folders. As in an ignore file, a pattern without a folder matches names.
    tried = (path,) if "/" in pattern else (path, posixpath.basename(path))
    return any(fnmatch.fnmatchcase(one, pattern.replace("**/", "*").replace("**", "*")) for one in tried)
