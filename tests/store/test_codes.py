"""Codes of vectors: which records are worth comparing, told from the signs of their values alone."""

from __future__ import annotations

import numpy as np
from hypothesis import given
from hypothesis import strategies as st
from numpy.typing import NDArray

from cortex_py.core.store.search.codes import Codes

Records = st.dictionaries(st.integers(1, 60), st.integers(1, 3), max_size=25)


def _vectors(parts: int, dimensions: int, seed: int) -> NDArray[np.float32]:
    return np.random.default_rng(seed).normal(size=(parts, dimensions)).astype(np.float32)


def _codes(records: dict[int, int], dimensions: int, seed: int = 1) -> tuple[Codes, NDArray[np.float32], list[int]]:
    """Codes as an engine sends them, beside the vectors and numbers they are of."""
    nums = [num for num, parts in records.items() for _ in range(parts)]
    vectors = _vectors(len(nums), dimensions, seed)
    count = dimensions.to_bytes(4, "big")
    bits = b"".join(count + np.packbits(vector > 0).tobytes() for vector in vectors)
    return Codes.sent(b"".join(num.to_bytes(8, "big") for num in nums), bits, dimensions), vectors, nums


@given(Records, st.sets(st.integers(0, 70)), st.integers(1, 80), st.integers(3, 40))
def test_those_asked_for_come_in_the_order_of_the_query_against_their_signs(
    records: dict[int, int], among: set[int], count: int, dimensions: int
) -> None:
    codes, vectors, nums = _codes(records, dimensions)
    query = _vectors(1, dimensions, 2)[0]
    found, complete = codes.nearest(query, np.array(sorted(among), np.int64), count)
    scores = (vectors > 0).astype(np.float32) @ query
    asked = [i for i in range(len(nums)) if nums[i] in among]
    best = {num: max(float(scores[i]) for i in asked if nums[i] == num) for num in {nums[i] for i in asked}}
    assert complete == (len(asked) <= count)
    assert set(found.tolist()) <= set(best)
    assert [best[num] for num in found.tolist()] == sorted((best[num] for num in found.tolist()), reverse=True)
    if complete:
        assert set(found.tolist()) == set(best)
    elif len(found):
        left_out = [score for num, score in best.items() if num not in found.tolist()]
        assert max(left_out, default=-np.inf) <= best[int(found[-1])] + 1e-6


@given(Records, Records, st.sets(st.integers(1, 60)))
def test_what_changed_is_replaced_and_nothing_else(
    records: dict[int, int], later: dict[int, int], gone: set[int]
) -> None:
    before, _, _ = _codes(records, 16)
    now, _, nums_now = _codes(later, 16, seed=3)
    after = before.changed([*later, *gone], now)
    expected = [num for num in before.nums.tolist() if num not in later and num not in gone] + nums_now
    assert sorted(after.nums.tolist()) == sorted(expected)
    query = _vectors(1, 16, 4)[0]
    if later:
        among = np.array(sorted(later), np.int64)
        assert after.nearest(query, among, 200)[0].tolist() == now.nearest(query, among, 200)[0].tolist()
