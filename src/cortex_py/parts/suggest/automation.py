"""How much Cortex does unasked: with Plan A it acts, with Plan B it asks first. The answers to suggestions decide.

Rates are over the last hundred answers: a number of answers rather than of days, so that a project that rests keeps its
plan, and a plain window rather than a fading one, so that "61 of the last 100" can be checked.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Literal

from ...core.config import Settings
from ...core.store.tables.suggestions import TrustRow

__all__ = [
    "ACTIONS", "ENOUGH", "LEAST", "WINDOW", "Plan", "PlanStatus", "action_plan", "assess", "fixed_plan", "next_plan",
]  # fmt: skip

Plan = Literal["A", "B"]

# What Cortex does by itself: suggest contexts, name a branch, keep a session's facts, merge duplicates.
ACTIONS = ("suggest", "branch", "promote", "consolidate")
WINDOW = 100
# Fewer answers are chance: one in eight runs of ten would fall below the bar at a true acceptance of 0.8.
ENOUGH = 10
LEAST = 0.70  # acceptance from which Cortex acts by itself


@dataclass(frozen=True, slots=True)
class PlanStatus:
    """The plan in force, and a message for people that says why."""

    plan: Plan
    acceptance_rate: float
    rejection_rate: float
    feedback_count: int
    message: str


def next_plan(accepted: float, refused: float, *, override: Plan | None = None) -> Plan:
    """The plan after these answers. A setting wins, and a few answers leave Plan A."""
    if override is not None:
        return override
    total = accepted + refused
    return "A" if total < ENOUGH or accepted / total >= LEAST else "B"


def assess(accepted: float, refused: float, *, override: Plan | None = None, action: str = "suggest") -> PlanStatus:
    """The plan and its reason after these answers to one kind of action."""
    total = accepted + refused
    rate = accepted / total if total > 0 else 0.0
    plan = next_plan(accepted, refused, override=override)
    message = _message(plan, rate, round(total), override, action)
    return PlanStatus(plan, rate, 1.0 - rate if total > 0 else 0.0, round(total), message)


def fixed_plan(settings: Settings) -> Plan | None:
    """The plan that the settings fix, if they do."""
    return None if settings.automation == "learned" else settings.automation


def action_plan(rows: Mapping[tuple[str, str], TrustRow], action: str, settings: Settings) -> Plan:
    """The plan for an automatic action, by how often it was right."""
    row = rows.get(("action", action))
    counts = (row.accepted, row.refused) if row is not None else (0.0, 0.0)
    return next_plan(*counts, override=fixed_plan(settings))


_DOES: dict[Plan, str] = {"A": "Plan A: Cortex acts by itself.", "B": "Plan B: Cortex asks before it acts."}


# For each action: what an answer agrees with, and what has not been answered yet.
_WORDS: dict[str, tuple[str, str]] = {
    "suggest": ("accepted what it suggested", "no suggestion has been answered"),
    "branch": ("agreed with the lines of work it began", "no line of work that it began has been answered"),
    "promote": ("agreed with the memories it moved", "no move of memories has been answered"),
    "consolidate": ("agreed with what it merged", "no merging of memories has been answered"),
}


def _message(plan: Plan, rate: float, total: int, override: Plan | None, action: str) -> str:
    given = f"{total} answer{'' if total == 1 else 's'}"
    agreed, silent = _WORDS[action]
    if override is not None:
        so_far = f" So far {_percent(rate)} of {given} {agreed}." if total else ""
        return f"{_DOES[plan]} A setting says so, whatever the answers are.{so_far}"
    if not total:
        return f"{_DOES[plan]} Nothing is known yet: {silent}."
    if total < ENOUGH:
        return f"{_DOES[plan]} {given} so far; the plan can change after {ENOUGH}."
    accepted = f"{_percent(rate)} of the last {given} {agreed}"
    if plan == "B":
        return f"{_DOES[plan]} {accepted}; from {LEAST:.0%} on it acts by itself again."
    return f"{_DOES[plan]} {accepted}; below {LEAST:.0%} it will ask first."


def _percent(rate: float) -> str:
    """Whole percents, never rounded up: 69.6 % is below 70 % and must not be shown as 70 %."""
    return f"{int(rate * 100.0 + 1e-9)}%"
