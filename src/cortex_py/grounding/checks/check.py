"""A piece of evidence: what it is, and where a person can open it. Pure."""

from __future__ import annotations

from dataclasses import dataclass
from datetime import datetime
from typing import Literal

__all__ = ["Evidence", "EvidenceKind"]

EvidenceKind = Literal[
    "file", "symbol", "line", "dependency", "setting", "diff", "log", "test report", "memory"
]  # fmt: skip

_ABBREVIATED = 7
_LONGEST_DETAIL = 120


@dataclass(frozen=True, slots=True)
class Evidence:
    """Something of the project that bears on a claim.

    `path` and `line` are of the file as it is now, or as a commit made it; `commit` is None for what is not committed.
    """

    kind: EvidenceKind
    path: str | None = None
    line: int | None = None
    commit: str | None = None
    time: datetime | None = None
    detail: str = ""

    @property
    def location(self) -> str:
        """Where it is, in one line."""
        if self.kind == "memory":
            return f"Memory: {self.detail}"
        place = f"{self.path} line {self.line}" if self.path and self.line else self.path or ""
        if self.kind == "test report":
            return f"Test report: {place}: {self._shown}"
        if self.commit is not None:
            date = f" ({self.time:%Y-%m-%d})" if self.time else ""
            return f"Commit {self.commit[:_ABBREVIATED]}{date}: {self._shown}"
        if self.kind == "diff":
            return f"Uncommitted change: {place}"
        return f"File: {place}"

    @property
    def _shown(self) -> str:
        words = " ".join(self.detail.split())
        return words if len(words) <= _LONGEST_DETAIL else words[: _LONGEST_DETAIL - 1] + "…"
