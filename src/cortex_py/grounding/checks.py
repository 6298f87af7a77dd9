"""A check: one thing that a claim says and the project bears out or not, with where that was seen. Pure.

The names of the checks are what the model weighs; each either holds or fails. What could not be looked at makes no
check at all.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import Literal, get_args

from .evidence import Evidence

__all__ = ["CHECK_NAMES", "Check", "CheckName", "turned"]

CheckName = Literal[
    "file", "present", "defined", "placed", "used", "known", "member", "relation", "change", "touched", "gone", "value",
    "version", "dependency", "line", "commit", "tests", "changelog", "memory", "words",
]  # fmt: skip
CHECK_NAMES: tuple[CheckName, ...] = get_args(CheckName)


@dataclass(frozen=True, slots=True)
class Check:
    """`sure` is how far the check is met where that is a matter of degree; `reason` says what was seen."""

    name: CheckName
    holds: bool
    reason: str
    evidence: Evidence | None = None
    sure: float = 1.0
    core: bool = True  # whether denying the claim turns it


# What was done was done, whatever the claim denies with it: "since 2.0 it no longer accepts that".
_NEVER_TURNED = frozenset(("change", "touched", "gone", "changelog", "commit"))


# That something is there is denied only by a claim about that: "`f` does not fail" takes for granted that f exists.
_PRESENCE = frozenset(("present", "defined", "placed", "used"))


def turned(checks: Sequence[Check], *, of_presence: bool) -> list[Check]:
    """The checks of a claim that denies something: what failed bears it out. What it only names stays as it is."""
    kept = _NEVER_TURNED if of_presence else _NEVER_TURNED | _PRESENCE
    return [replace(one, holds=not one.holds) if one.core and one.name not in kept else one for one in checks]
