"""How much Cortex does unasked: Plan A acts, Plan B asks first. The answers to suggestions decide which.

Rates are over the last hundred answers. A count of answers, rather than of days, because a project that rests should
find its plan as it left it; and a plain window, rather than a fading one, because "61 of the last 100" can be checked.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Literal

from ..config import Settings
from ..store.suggestions import TrustRow

__all__ = [
    "ACTIONS",
    "ENOUGH",
    "FALL",
    "RETURN",
    "WINDOW",
    "Plan",
    "Standing",
    "action_plan",
    "last_plan",
    "next_plan",
    "override_of",
    "requires_confirmation",
    "standing",
    "standing_after",
]

Plan = Literal["A", "B"]

# What Cortex would do by itself: suggest contexts, name a line of work, keep a session's facts, tidy up duplicates.
ACTIONS = ("suggest", "branch", "promote", "consolidate")
WINDOW = 100
# Fewer answers are chance: one in eight runs of ten would fall below the bar at a true acceptance of 0.8.
ENOUGH = 10
FALL = 0.70
# Higher than the fall, so that one answer more or less does not turn the plan back and forth.
RETURN = 0.75


@dataclass(frozen=True, slots=True)
class Standing:
    """The plan in force and why, in words for a person. The rates are over the answers that count."""

    plan: Plan
    acceptance_rate: float
    rejection_rate: float
    feedback_count: int
    message: str


def next_plan(current: Plan, accepted: float, refused: float, *, override: Plan | None = None) -> Plan:
    """The plan after these answers. A setting wins; nobody's answers mean Plan A; a few change nothing."""
    if override is not None:
        return override
    total = accepted + refused
    if total <= 0:
        return "A"
    if total < ENOUGH:
        return current
    return "A" if accepted / total >= (FALL if current == "A" else RETURN) else "B"


def requires_confirmation(plan: Plan) -> bool:
    """Whether an action waits for a yes."""
    return plan == "B"


def standing(
    current: Plan, accepted: float, refused: float, *, override: Plan | None = None, action: str = "suggest"
) -> Standing:
    """Where automation stands after these answers, which are about one kind of action."""
    total = accepted + refused
    rate = accepted / total if total > 0 else 0.0
    plan = next_plan(current, accepted, refused, override=override)
    message = _message(plan, rate, round(total), override, action)
    return Standing(plan, rate, 1.0 - rate if total > 0 else 0.0, round(total), message)


def override_of(settings: Settings) -> Plan | None:
    """The plan that a setting decrees, if it does."""
    return None if settings.automation == "learned" else settings.automation


def action_plan(rows: Mapping[tuple[str, str], TrustRow], action: str, settings: Settings) -> Plan:
    """The plan for something that Cortex does by itself, by how often that was right."""
    row = rows.get(("action", action))
    counts = (row.accepted, row.refused) if row is not None else (0.0, 0.0)
    return next_plan(last_plan(rows, action), *counts, override=override_of(settings))


def last_plan(rows: Mapping[tuple[str, str], TrustRow], action: str) -> Plan:
    """The plan that the last answer to an action has led to: it takes more to come back than to stay."""
    row = rows.get(("plan", action))
    return "B" if row is not None and row.refused else "A"


def standing_after(shares: Sequence[float], override: Plan | None = None) -> Standing:
    """Where automation stands after answers, oldest first, each the part of what was suggested that was taken."""
    plan: Plan = "A"
    accepted = refused = 0.0
    for count in range(1, len(shares) + 1):
        last = shares[max(0, count - WINDOW) : count]
        accepted = sum(last)
        refused = len(last) - accepted
        plan = next_plan(plan, accepted, refused)
    return standing(plan, accepted, refused, override=override)


_DOES: dict[Plan, str] = {
    "A": "Plan A: Cortex acts by itself.",
    "B": "Plan B: Cortex asks before it acts.",
}


# What an answer says yes to, and what nobody has answered yet.
_TOLD: dict[str, tuple[str, str]] = {
    "suggest": ("accepted what it suggested", "no suggestion has been answered"),
    "branch": ("agreed with the lines of work it began", "no line of work that it began has been answered"),
    "promote": ("agreed with the memories it moved", "no move of memories has been answered"),
    "consolidate": ("agreed with what it merged", "no merging of memories has been answered"),
}


def _message(plan: Plan, rate: float, total: int, override: Plan | None, action: str) -> str:
    given = f"{total} answer{'' if total == 1 else 's'}"
    agreed, silent = _TOLD[action]
    if override is not None:
        told = f" So far {_percent(rate)} of {given} {agreed}." if total else ""
        return f"{_DOES[plan]} A setting says so, whatever the answers are.{told}"
    if not total:
        return f"{_DOES[plan]} Nothing is known yet: {silent}."
    if total < ENOUGH:
        return f"{_DOES[plan]} {given} so far; the plan can change after {ENOUGH}."
    accepted = f"{_percent(rate)} of the last {given} {agreed}"
    if plan == "B":
        return f"{_DOES[plan]} {accepted}; from {RETURN:.0%} on it acts by itself again."
    return f"{_DOES[plan]} {accepted}; below {FALL:.0%} it will ask first."


def _percent(rate: float) -> str:
    """Whole percents, never rounded up: 69.6 must not read as the 70 that it missed."""
    return f"{int(rate * 100.0 + 1e-9)}%"
