"""Which records hold the words of a query: rare words first, common ones only where nothing else is in sight."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
from hypothesis import given
from hypothesis import strategies as st

from cortex_py.core.store.search.process_space import WordMatches, by_words

SIZE = 10_000


class _Held:
    """Words that are held by known records; it notes which were looked for, and how many were read."""

    def __init__(self, *held: Sequence[int]) -> None:
        self.held = held
        self.shares = np.array([len(one) / SIZE for one in held])
        self.looked: list[int] = []
        self.read = 0

    def best(self, hidden: Sequence[int] = (), count: int = 10, open_records: int = SIZE) -> list[int]:
        def in_sight(nums: Sequence[int]) -> list[int]:
            return [num for num in nums if num not in hidden][:count]

        return by_words(self.shares, SIZE, open_records, self._look, in_sight)[0]

    def _look(self, i: int, most: int) -> WordMatches:
        found = list(self.held[i])[:most]
        self.looked.append(i)
        self.read += len(found)
        return WordMatches(len(found), len(found), found)


def test_a_rare_word_weighs_more_and_both_words_weigh_most() -> None:
    words = _Held(range(100, 130), [129, 7])
    assert words.best()[:3] == [129, 7, 100]


def test_a_common_word_is_not_looked_for_where_a_rare_one_was_found() -> None:
    words = _Held(range(5_000), [7])
    assert words.best() == [7]
    assert words.looked == [1]


def test_a_common_word_is_looked_for_where_the_rare_one_is_out_of_sight() -> None:
    words = _Held(range(5_000), [7], range(1_000))
    assert words.best(hidden=[7], count=3) == [0, 1, 2]
    assert words.looked == [1, 2]


@given(
    st.lists(st.lists(st.integers(0, SIZE - 1), unique=True, max_size=300), max_size=30),
    st.sets(st.integers(0, SIZE - 1)),
    st.integers(1, SIZE),
)
def test_what_is_found_is_in_sight_and_holds_a_word_and_little_is_read(
    held: list[list[int]], hidden: set[int], open_records: int
) -> None:
    words = _Held(*held)
    found = words.best(sorted(hidden), 10, open_records)
    every = {num for one in held for num in one}
    assert len(found) == len(set(found)) <= 10
    assert set(found) <= every - hidden
    assert words.read <= 8 * 600
    if open_records == SIZE and len(held) == 1:
        assert len(found) == min(10, len(every - hidden))
