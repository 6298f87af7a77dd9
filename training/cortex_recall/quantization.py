"""How weights and activations become 8-bit integers: scales, limits, and MiniLM's exceptions.

The scales of activations are fixed here rather than taken from each input. That makes a vector
independent of the batch it was computed in, and it is closer to the float model too, because a few
channels of this model are far larger than the rest and would otherwise set the scale for all. Cosine
to the float model over 2,150 texts that played no part in choosing the numbers: mean 0.998, least
0.988. With scales taken from each input the reference texts gave 0.974 at worst, these 0.991.

The numbers were measured on the float model over conversations, code, long chats and random token
sequences. A model with other weights has a `Calibration` of its own, which `export.py` measures.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

__all__ = [
    "MINILM",
    "Activation",
    "Calibration",
    "quantize_columns",
    "quantize_rows",
]


@dataclass(frozen=True, slots=True)
class Activation:
    """The 8-bit form of what enters one kind of matrix product; values outside `low`..`high` are cut.

    `large` names the channels that reach beyond `high`, with the largest value seen. They are scaled
    down to fit before rounding, and their weights are scaled up by as much.
    """

    name: str
    low: float
    high: float
    large: Mapping[int, float]

    @property
    def scale(self) -> np.float32:
        return np.float32((self.high - self.low) / 255)

    @property
    def zero_point(self) -> np.uint8:
        return np.uint8(round(-self.low / float(self.scale)))

    def stretch(self, channels: int) -> NDArray[np.float32]:
        """The factor of each channel's weights; activations are divided by it."""
        factors = np.ones(channels, dtype=np.float32)
        for channel, largest in self.large.items():
            factors[channel] = largest / self.high
        return factors


@dataclass(frozen=True, slots=True)
class Calibration:
    """The activations of one model, and what is not rounded.

    Inside the feed-forward part a few channels, named in `float_channels` by layer, are far larger than all others,
    and the sentence marks hang on them. They are multiplied in float, beside the integer product: their share in the
    rounding error would be larger than that of everything else together.
    """

    attention_input: Activation
    attention_output: Activation
    feed_forward_input: Activation
    feed_forward_inner: Activation
    float_channels: Mapping[int, tuple[int, ...]]


MINILM = Calibration(
    attention_input=Activation(
        "attention_input", low=-5.0, high=5.0, large={
            62: 7.1, 63: 6.4, 94: 5.3, 99: 10.5, 157: 8.6, 223: 5.5, 245: 5.4, 249: 5.5,
            297: 5.1, 338: 6.1, 363: 5.6, 383: 5.3,
        },
    ),
    attention_output=Activation("attention_output", low=-4.0, high=4.0, large={}),
    feed_forward_input=Activation(
        "feed_forward_input", low=-6.0, high=6.0, large={
            62: 10.3, 63: 11.3, 99: 30.3, 127: 13.8, 157: 8.5, 223: 16.4, 249: 7.4, 267: 8.1, 303: 6.6, 319: 9.5,
            338: 6.3,
        },
    ),
    feed_forward_inner=Activation("feed_forward_inner", low=-0.17, high=6.0, large={}),
    # They reach 14 to 25 where all others stay under 10.
    float_channels={0: (856,), 1: (607,), 2: (218, 1004), 3: (358,)},
)  # fmt: skip

_LARGEST = 127


def quantize_columns(weights: NDArray[np.float32]) -> tuple[NDArray[np.int8], NDArray[np.float32]]:
    """Integers and a scale per column of a matrix that activations are multiplied with from the left.

    Processors with AVX2 but without VNNI add two neighbouring 8-bit products in 16 bits, and saturate.
    So two neighbours of one sign may not exceed 128 together (255 * 128 < 2**15): with that, all
    processors compute the same sums. It costs less precision than the usual 7-bit weights.
    """
    first, second = weights[0::2], weights[1::2]
    together = np.where(first * second > 0, np.abs(first + second), 0)
    largest = np.maximum(np.abs(weights).max(axis=0), together.max(axis=0))
    scales = (largest / np.float32(_LARGEST)).astype(np.float32)
    return np.rint(weights / scales).astype(np.int8), scales


def quantize_rows(table: NDArray[np.float32]) -> tuple[NDArray[np.int8], NDArray[np.float32]]:
    """Integers and a scale per row of a table that rows are looked up in."""
    scales = (np.abs(table).max(axis=1, keepdims=True) / np.float32(_LARGEST)).astype(np.float32)
    return np.rint(table / scales).astype(np.int8), scales
