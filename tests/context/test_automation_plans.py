"""Cortex acts by itself as long as it is trusted, asks when it is not, and does not waver in between."""

from __future__ import annotations

import random
from itertools import pairwise

import pytest
from hypothesis import given
from hypothesis import strategies as st

from cases import each
from cortex_py.context.suggestions.automation import (
    ACTIONS,
    ENOUGH,
    FALL,
    RETURN,
    WINDOW,
    Plan,
    assess,
    assess_answers,
    next_plan,
    requires_confirmation,
)

counts = st.floats(0.0, 1e6) | st.integers(0, 100).map(float)
plans = st.sampled_from(["A", "B"])


@each(
    ("current", "accepted", "refused", "expected"),
    [
        ("A", 0, 0, "A"),
        ("B", 0, 0, "A"),  # everything was forgotten: it begins anew
        ("A", 0, 9, "A"),
        ("B", 9, 0, "B"),
        ("A", 0, 10, "B"),
        ("A", 7, 3, "A"),
        ("A", 69, 31, "B"),
        ("A", 70, 30, "A"),
        ("B", 70, 30, "B"),
        ("B", 74, 26, "B"),
        ("B", 75, 25, "A"),
        ("B", 10, 0, "A"),
    ],
)
def test_the_plan_follows_the_answers(current: Plan, accepted: float, refused: float, expected: Plan) -> None:
    assert next_plan(current, accepted, refused, override=None) == expected


@given(plans, counts, counts, plans)
def test_a_setting_wins(current: Plan, accepted: float, refused: float, override: Plan) -> None:
    assert next_plan(current, accepted, refused, override=override) == override
    told = assess(current, accepted, refused, override=override)
    assert told.plan == override
    assert "setting" in told.message


@given(plans, counts, counts)
def test_answers_that_do_not_change_leave_the_plan_where_it_is(current: Plan, accepted: float, refused: float) -> None:
    once = next_plan(current, accepted, refused)
    assert next_plan(once, accepted, refused) == once


@given(plans, st.integers(0, 100), st.integers(0, 100))
def test_a_better_rate_never_means_a_worse_plan(current: Plan, accepted: int, refused: int) -> None:
    if accepted + refused >= ENOUGH and next_plan(current, accepted, refused) == "A":
        assert next_plan(current, accepted + 1, refused) == "A"


@given(plans, counts, counts)
def test_rates_are_shares_of_the_answers(current: Plan, accepted: float, refused: float) -> None:
    told = assess(current, accepted, refused)
    assert 0.0 <= told.acceptance_rate <= 1.0
    assert told.acceptance_rate + told.rejection_rate == pytest.approx(1.0 if accepted + refused > 0 else 0.0)
    assert told.feedback_count == round(accepted + refused)
    assert told.message.startswith(f"Plan {told.plan}: ")


def test_nothing_is_known_at_first() -> None:
    told = assess("A", 0, 0)
    assert (told.plan, told.acceptance_rate, told.rejection_rate, told.feedback_count) == ("A", 0.0, 0.0, 0)
    assert told.message == ("Plan A: Cortex acts by itself. Nothing is known yet: no suggestion has been answered.")


def test_messages_say_what_is_and_what_would_change_it() -> None:
    assert assess("A", 1, 0).message == (
        "Plan A: Cortex acts by itself. 1 answer so far; the plan can change after 10."
    )
    assert assess("A", 80, 20).message == (
        "Plan A: Cortex acts by itself. 80% of the last 100 answers accepted what it suggested; "
        "below 70% it will ask first."
    )
    assert assess("A", 16, 7).message == (
        "Plan B: Cortex asks before it acts. 69% of the last 23 answers accepted what it suggested; "
        "from 75% on it acts by itself again."
    )
    assert assess("A", 10, 90, override="A").message == (
        "Plan A: Cortex acts by itself. A setting says so, whatever the answers are. "
        "So far 10% of 100 answers accepted what it suggested."
    )
    assert assess("A", 0, 0, override="B").message == (
        "Plan B: Cortex asks before it acts. A setting says so, whatever the answers are."
    )


def test_only_plan_b_asks() -> None:
    assert [requires_confirmation(plan) for plan in ("A", "B")] == [False, True]
    assert ACTIONS == ("suggest", "branch", "promote", "consolidate")
    assert (FALL, RETURN, ENOUGH, WINDOW) == (0.70, 0.75, 10, 100)


def test_messages_speak_of_what_was_done() -> None:
    told = {action: assess("A", 5, 15, action=action).message for action in ACTIONS}
    assert told["suggest"] == assess("A", 5, 15).message
    assert told["promote"] == (
        "Plan B: Cortex asks before it acts. 25% of the last 20 answers agreed with the memories it moved; "
        "from 75% on it acts by itself again."
    )
    assert assess("A", 0, 0, action="consolidate").message == (
        "Plan A: Cortex acts by itself. Nothing is known yet: no merging of memories has been answered."
    )
    for rates in ((0, 0), (3, 3), (5, 15), (15, 5)):
        for override in (None, "A", "B"):
            for action in ("branch", "promote", "consolidate"):
                message = assess("A", *rates, override=override, action=action).message
                assert "suggest" not in message


@given(st.lists(st.sampled_from([0.0, 0.5, 1.0]), max_size=250))
def test_only_the_last_answers_count(shares: list[float]) -> None:
    told = assess_answers(shares)
    assert told.feedback_count == min(WINDOW, len(shares))
    last = shares[-WINDOW:]
    assert told.acceptance_rate == pytest.approx(sum(last) / len(last) if last else 0.0)
    assert assess_answers([*[0.0] * 120, *[1.0] * WINDOW]).plan == "A"


def plans_over(rates: list[float], seed: int) -> list[Plan]:
    """The plan after each of many answers that accept with these chances."""
    chance, answers, plan, seen = random.Random(seed), list[bool](), "A", list[Plan]()
    for rate in rates:
        answers.append(chance.random() < rate)
        last = answers[-WINDOW:]
        plan = next_plan("A" if plan == "A" else "B", sum(last), len(last) - sum(last))
        seen.append(plan)
    return seen


def test_a_plan_does_not_waver_and_comes_back() -> None:
    trusted = [plans_over([0.9] * 400, seed) for seed in range(20)]
    assert sum(one.count("B") for one in trusted) < 0.02 * 400 * 20
    # Right at the bar is the worst place to be: without the gap it would turn every few answers.
    turns = [sum(a != b for a, b in pairwise(plans_over([0.72] * 400, seed))) for seed in range(20)]
    assert sum(turns) / len(turns) <= 8
    for seed in range(20):
        seen = plans_over([0.9] * 150 + [0.2] * 60 + [0.95] * 110, seed)
        assert seen[209] == "B"
        assert seen[-1] == "A"
