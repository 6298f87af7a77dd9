"""A strength kept as one number is the sum over all uses, and memories used together find each other."""

from __future__ import annotations

from itertools import permutations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from cortex_py.core.store.tables.suggestions import ReferenceRow
from cortex_py.parts.suggest.usage_log import (
    HALF_LIFE,
    WEIGHTS,
    EventKind,
    Strength,
    fade,
    habits,
)

from reference_model import coreferences, uses

HOUR = 3_600_000_000
NOW = 1_767_000_000_000_000


def load(
    memory: str, at: int = NOW, branch: str | None = "b1", task: str = "", kind: EventKind = "load"
) -> ReferenceRow:
    return ReferenceRow(memory, kind, branch, task, at)


moments = st.integers(NOW - 10 * HALF_LIFE, NOW)


def test_what_a_person_did_by_hand_weighs_most() -> None:
    assert sorted(WEIGHTS, key=lambda kind: -WEIGHTS[kind]) == ["select", "accept", "load", "recall", "together"]


def test_half_is_left_after_thirty_days() -> None:
    assert HALF_LIFE == 30 * 24 * HOUR
    assert fade(1.0, NOW, NOW + HALF_LIFE) == 0.5
    assert fade(1.0, NOW, NOW) == 1.0
    assert fade(1.0, NOW, NOW - HALF_LIFE) == 1.0, "a clock that went back makes nothing stronger"
    assert fade(1.0, 0, 10**30) == 0.0


@given(st.lists(st.tuples(st.floats(0.0, 5.0), moments), max_size=40))
def test_one_number_is_the_sum_over_all_uses_in_any_order(added: list[tuple[float, int]]) -> None:
    kept = Strength()
    for weight, at in added:
        kept = kept.plus(weight, at)
    for now in (NOW, NOW + HALF_LIFE // 3):
        assert fade(kept.value, kept.at, now) == pytest.approx(
            sum(fade(weight, at, now) for weight, at in added), abs=1e-9
        )
    assert kept.times == len(added)


def test_two_loads_within_two_hours_belong_together() -> None:
    assert coreferences([load("a"), load("b", NOW + 2 * HOUR)]) == {("a", "b"): Strength(1.0, NOW + 2 * HOUR, 1)}
    assert coreferences([load("a"), load("b", NOW + 2 * HOUR + 1)]) == {}
    assert coreferences([load("a"), load("a", NOW + 1)]) == {}


def test_another_line_of_work_is_not_together() -> None:
    assert not coreferences([load("a", branch="b1"), load("b", branch="b2")])
    assert not coreferences([load("a", branch=None, task="x"), load("b", branch=None, task="y")])
    assert coreferences([load("a", branch=None, task="x"), load("b", branch=None, task="x")])
    assert coreferences([load("a", task="x"), load("b", task="y")]), "a branch is one line, whatever its tasks"


def test_a_pair_is_as_strong_as_its_weaker_use_and_counts_its_bursts() -> None:
    done = [load("a", kind="select"), load("b", kind="recall")]
    done += [load("a", NOW + 30 * HOUR), load("b", NOW + 31 * HOUR)]
    for order in permutations(done):
        pair = coreferences(order)[("a", "b")]
        assert pair.times == 2
        assert fade(pair.value, pair.at, NOW + 31 * HOUR) == pytest.approx(
            fade(WEIGHTS["recall"], NOW, NOW + 31 * HOUR) + 1.0
        )


def test_a_use_again_in_the_same_burst_is_no_further_time() -> None:
    found = uses([load("a"), load("a", NOW + 1), load("a", NOW + 3 * HOUR)])["a"]
    assert (found.times, found.value) == (2, pytest.approx(3.0, rel=1e-2))


# Moments of bursts, each with what was used in it, newest first; hours lie between any two.
histories = st.lists(st.sets(st.sampled_from("abcd"), min_size=1), max_size=20)


def told(history: list[set[str]]) -> list[tuple[str, int]]:
    return [(one, NOW - place * 5 * HOUR) for place, used in enumerate(history) for one in sorted(used)]


@given(histories)
def test_a_habit_is_the_share_of_bursts_in_which_something_was_used(history: list[set[str]]) -> None:
    found = habits(told(history))
    assert found.keys() == set().union(*history)
    for memory, habit in found.items():
        assert (habit.times, habit.bursts) == (sum(memory in used for used in history), len(history))
        assert 0.0 < habit.rate < 1.0


@given(histories, st.sampled_from("abcd"))
def test_using_something_once_more_makes_it_a_stronger_habit_and_nothing_else(
    history: list[set[str]], memory: str
) -> None:
    before = habits(told([{"x"}, *history]))
    after = habits(told([{"x", memory}, *history]))
    assert after[memory].rate > (before[memory].rate if memory in before else 0.0)
    assert all(after[one].rate == before[one].rate for one in before if one != memory)


def test_what_was_used_lately_is_the_stronger_habit_and_one_burst_is_none() -> None:
    late, early = habits(told([{"a"}, {"b"}])).values()
    assert late.rate > early.rate
    assert habits(told([{"a"}]))["a"].rate == 0.5
    # However often something is loaded at once, it is one use.
    assert habits([("a", NOW)] * 30) == habits([("a", NOW)])
