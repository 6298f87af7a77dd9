"""Cortex acts by itself as long as it is trusted, and asks when it is not."""

from __future__ import annotations

from itertools import product
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from cases import each
from cortex_py.parts.suggest.automation import (
    ACTIONS,
    ENOUGH,
    LEAST,
    WINDOW,
    Plan,
    assess,
    next_plan,
)

counts = st.floats(0.0, 1e6) | st.integers(0, 100).map(float)
plans = st.sampled_from(["A", "B"])


@each(
    ("accepted", "refused", "expected"),
    [(0, 0, "A"), (0, 9, "A"), (0, 10, "B"), (7, 3, "A"), (69, 31, "B"), (70, 30, "A"), (10, 0, "A")],
)
def test_the_plan_follows_the_answers(accepted: float, refused: float, expected: Plan) -> None:
    assert next_plan(accepted, refused, override=None) == expected


@given(counts, counts, plans)
def test_a_setting_wins(accepted: float, refused: float, override: Plan) -> None:
    assert next_plan(accepted, refused, override=override) == override
    told = assess(accepted, refused, override=override)
    assert told.plan == override
    assert "setting" in told.message


@given(st.integers(0, 100), st.integers(0, 100))
def test_a_better_rate_never_means_a_worse_plan(accepted: int, refused: int) -> None:
    if accepted + refused >= ENOUGH and next_plan(accepted, refused) == "A":
        assert next_plan(accepted + 1, refused) == "A"


@given(counts, counts)
def test_rates_are_shares_of_the_answers(accepted: float, refused: float) -> None:
    told = assess(accepted, refused)
    assert 0.0 <= told.acceptance_rate <= 1.0
    assert told.acceptance_rate + told.rejection_rate == pytest.approx(1.0 if accepted + refused > 0 else 0.0)
    assert told.feedback_count == round(accepted + refused)
    assert told.message.startswith(f"Plan {told.plan}: ")


A, B = "Plan A: Cortex acts by itself.", "Plan B: Cortex asks before it acts."
BY_SETTING = "A setting says so, whatever the answers are."


@each(
    ("accepted", "refused", "given", "message"),
    [
        (0, 0, {}, f"{A} Nothing is known yet: no suggestion has been answered."),
        (1, 0, {}, f"{A} 1 answer so far; the plan can change after 10."),
        (80, 20, {}, f"{A} 80% of the last 100 answers accepted what it suggested; below 70% it will ask first."),
        (16, 7, {}, f"{B} 69% of the last 23 answers accepted what it suggested; from 70% on it acts by itself again."),
        (10, 90, {"override": "A"}, f"{A} {BY_SETTING} So far 10% of 100 answers accepted what it suggested."),
        (0, 0, {"override": "B"}, f"{B} {BY_SETTING}"),
        (
            5, 15, {"action": "promote"},
            f"{B} 25% of the last 20 answers agreed with the memories it moved; from 70% on it acts by itself again.",
        ),
        (0, 0, {"action": "consolidate"}, f"{A} Nothing is known yet: no merging of memories has been answered."),
    ],
)  # fmt: skip
def test_messages_say_what_is_and_what_would_change_it(
    accepted: float, refused: float, given: dict[str, Any], message: str
) -> None:
    assert assess(accepted, refused, **given).message == message


def test_messages_of_an_action_speak_of_no_other() -> None:
    assert ACTIONS == ("suggest", "branch", "promote", "consolidate")
    assert (LEAST, ENOUGH, WINDOW) == (0.70, 10, 100)
    for rates, override, action in product(((0, 0), (3, 3), (5, 15), (15, 5)), (None, "A", "B"), ACTIONS[1:]):
        assert "suggest" not in assess(*rates, override=override, action=action).message
