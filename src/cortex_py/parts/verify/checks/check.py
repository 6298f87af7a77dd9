"""A check is one thing that a claim says and the project confirms or refutes, with the evidence. Pure.

The claim model weighs checks by their names. What cannot be looked up makes no check.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from datetime import datetime
from typing import Literal, get_args

__all__ = ["CHECK_NAMES", "Check", "CheckName", "Evidence", "negate_checks"]

EvidenceKind = Literal[
    "file", "symbol", "line", "dependency", "setting", "diff", "log", "test report", "memory"
]  # fmt: skip

_ABBREVIATED = 7
_LONGEST_DETAIL = 120


@dataclass(frozen=True, slots=True)
class Evidence:
    """Something in the project that speaks for or against a claim.

    `path` and `line` refer to the file as it is now, or as `commit` left it; `commit` is None for uncommitted work. The
    passage ends with `end_line`.
    """

    kind: EvidenceKind
    path: str | None = None
    line: int | None = None
    commit: str | None = None
    time: datetime | None = None
    detail: str = ""
    end_line: int | None = None

    @property
    def location(self) -> str:
        """The place in one line, as it is shown to a person."""
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


CheckName = Literal[
    "file", "present", "defined", "placed", "used", "known", "member", "relation", "change", "touched", "gone", "value",
    "version", "dependency", "line", "commit", "tests", "changelog", "moved", "inherits", "raises", "catches",
    "returns", "calls", "signature", "library", "setting", "count", "guard", "order", "message", "memory", "words",
    "detail", "documented",
]  # fmt: skip
CHECK_NAMES: tuple[CheckName, ...] = get_args(CheckName)


@dataclass(frozen=True, slots=True)
class Check:
    """`sure` says how far the check is met, if that is a matter of degree; `reason` says what was seen."""

    name: CheckName
    holds: bool
    reason: str
    evidence: Evidence | None = None
    sure: float = 1.0
    core: bool = True  # whether a negated claim negates the check


# A change happened, whatever the claim denies with it: "since 2.0 it no longer accepts that".
_NEVER_NEGATED = frozenset(("change", "touched", "gone", "changelog", "commit"))
# Only a claim about existence denies that something exists: "`f` does not fail" presupposes that f does.
_PRESENCE = frozenset(("present", "defined", "placed", "used"))


def negate_checks(checks: Sequence[Check], *, of_presence: bool) -> list[Check]:
    """The checks of a negated claim: a failed check supports it. Checks of what it merely names stay as they are."""
    kept = _NEVER_NEGATED if of_presence else _NEVER_NEGATED | _PRESENCE
    return [replace(one, holds=not one.holds) if one.core and one.name not in kept else one for one in checks]
