"""Rounding to 8 bits: small errors, no saturation on any processor, limits that use all bits."""

from __future__ import annotations

import numpy as np
from hypothesis import given
from hypothesis import strategies as st
from hypothesis.extra import numpy as arrays
from numpy.typing import NDArray
from quantization import MINILM, quantize_columns, quantize_rows

WEIGHTS = arrays.arrays(
    np.float32, (8, 3), elements=st.floats(0.015625, 2, width=32).flatmap(lambda x: st.sampled_from([x, -x]))
)


@given(weights=WEIGHTS)
def test_columns_come_back_within_half_a_step(weights: NDArray[np.float32]) -> None:
    integers, scales = quantize_columns(weights)
    assert integers.dtype == np.int8
    assert (np.abs(integers * scales - weights) <= scales * 0.5001).all()


@given(weights=WEIGHTS)
def test_two_neighbours_never_overflow_sixteen_bits(weights: NDArray[np.float32]) -> None:
    integers = quantize_columns(weights)[0].astype(int)
    for pairs in (integers[0::2], integers[1::2]):
        assert np.abs(pairs).max() <= 127
    highest = 255 * (np.maximum(integers[0::2], 0) + np.maximum(integers[1::2], 0))
    lowest = 255 * (np.minimum(integers[0::2], 0) + np.minimum(integers[1::2], 0))
    assert highest.max() < 2**15
    assert lowest.min() >= -(2**15)


@given(table=WEIGHTS)
def test_rows_come_back_within_half_a_step(table: NDArray[np.float32]) -> None:
    integers, scales = quantize_rows(table)
    assert scales.shape == (8, 1)
    assert (np.abs(integers).max(axis=1) == 127).all()
    assert (np.abs(integers * scales - table) <= scales * 0.5001).all()


def test_limits_use_all_of_the_eight_bits() -> None:
    sites = (MINILM.attention_input, MINILM.attention_output, MINILM.feed_forward_input, MINILM.feed_forward_inner)
    for activation in sites:
        lowest = round(activation.low / float(activation.scale)) + int(activation.zero_point)
        highest = round(activation.high / float(activation.scale)) + int(activation.zero_point)
        assert abs(lowest) <= 1
        assert abs(highest - 255) <= 1


def test_large_channels_are_stretched_to_the_limit_and_others_are_not() -> None:
    activation = MINILM.feed_forward_input
    factors = activation.stretch(384)
    assert np.isclose(factors[99], 30.3 / 6.0)
    assert (factors[list(activation.large)] > 1).all()
    assert (np.delete(factors, list(activation.large)) == 1).all()
