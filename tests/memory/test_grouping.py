"""Groups by complete linkage: every two of a group agree, nobody is in two, and order does not matter."""

from __future__ import annotations

import random
from itertools import combinations

from hypothesis import given
from hypothesis import strategies as st

from cortex_py.core.memory.consolidation.consolidation import Pair, complete_groups

NUMBERS = st.integers(0, 11)
LIKENESS = st.sampled_from([0.7, 0.75, 0.8, 0.9, 1.0])
PAIRS = st.lists(st.builds(Pair, NUMBERS, NUMBERS, LIKENESS), max_size=40)
AGREED = st.sets(st.tuples(NUMBERS, NUMBERS))


def test_a_group_needs_every_two_of_it_to_agree() -> None:
    pairs = [Pair(0, 1, 0.9), Pair(1, 2, 0.8), Pair(0, 2, 0.7)]
    assert complete_groups(pairs, lambda *_: True) == [(0, 1, 2)]
    # A chain is no group: 0 goes with 1 and 1 with 2, but 0 does not go with 2.
    assert complete_groups(pairs, lambda one, other: (one, other) != (0, 2)) == [(0, 1)]
    assert complete_groups(pairs, lambda *_: False) == []


def test_the_most_alike_are_joined_first() -> None:
    pairs = [Pair(0, 1, 0.8), Pair(1, 2, 0.95)]
    assert complete_groups(pairs, lambda one, other: (one, other) != (0, 2)) == [(1, 2)]


def test_those_who_were_no_candidates_are_asked_too() -> None:
    asked: list[tuple[int, int]] = []

    def agree(one: int, other: int) -> bool:
        asked.append((one, other))
        return True

    assert complete_groups([Pair(0, 1, 0.9), Pair(2, 1, 0.8)], agree) == [(0, 1, 2)]
    assert sorted(asked) == [(0, 1), (0, 2), (1, 2)]


@given(PAIRS, AGREED, st.randoms(use_true_random=False))
def test_any_groups_are_cliques_and_do_not_depend_on_order(
    pairs: list[Pair], agreed: set[tuple[int, int]], chance: random.Random
) -> None:
    asked: list[tuple[int, int]] = []

    def agree(one: int, other: int) -> bool:
        asked.append((one, other))
        return (one, other) in agreed

    groups = complete_groups(pairs, agree)
    assert len(asked) == len(set(asked))
    assert all(one < other for one, other in asked)
    members = [number for group in groups for number in group]
    assert len(members) == len(set(members))
    for group in groups:
        assert len(group) > 1
        assert all(pair in agreed for pair in combinations(group, 2))
    # What agrees and is a candidate is apart only where one of the two is in a group already.
    for pair in pairs:
        ends = tuple(sorted((pair.left, pair.right)))
        if ends[0] != ends[1] and ends in agreed:
            assert set(ends) & set(members)
    others = [Pair(one.right, one.left, one.likeness) if chance.random() < 0.5 else one for one in pairs]
    chance.shuffle(others)
    assert complete_groups(others, lambda one, other: (one, other) in agreed) == groups
