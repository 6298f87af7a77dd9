"""Records that hold the words of a query, by the weight of those words. Which records hold a word is asked outside.

Words that very many records hold are left out while there are rarer ones, and of each word only the newest records
are read: the cost stays the same however large the store grows.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

__all__ = ["Held", "by_words"]

_WORDS_MOST = 24
_COMMON = 0.04
_MATCHES_MOST = 600


@dataclass(frozen=True, slots=True)
class Held:
    """What one look for a word read: how many records in all, how many of them of this space, and those worth more."""

    read: int
    known: int
    records: Sequence[int]


def by_words(
    shares: NDArray[np.float64],
    size: int,
    open_records: int,
    look: Callable[[int, int], Held],
    in_sight: Callable[[Sequence[int]], list[int]],
    longer: float = 8.0,
) -> tuple[list[int], NDArray[np.float64]]:
    """The best records in sight, and about how many records hold each word.

    `shares` tells which share of the space's `size` records holds each word. `look` takes the place of a word and how
    many records to read at most. `in_sight` is given records best first, and leaves out those that may not be seen.
    `longer` bounds how much more a filter that lets little through has it read.
    """
    records = shares * size
    # A filter that lets little through needs a longer look to find as much.
    budget = int(_MATCHES_MOST * min(longer, size / max(1, open_records)))
    total: dict[int, float] = {}
    best: list[int] = []
    for words in _in_turn(shares):
        for i in words:
            if budget <= 0:
                break
            held = look(i, budget)
            records[i] = held.known if held.read < budget else max(float(records[i]), float(held.known))
            weight = math.log1p(size / max(float(records[i]), 0.5))
            for one in held.records:
                total[one] = total.get(one, 0.0) + weight
            budget -= held.read
        # Nearly all have one word; those come in the order they were read, the newest first.
        best = in_sight(sorted(total, key=total.__getitem__, reverse=True))
        if best or budget <= 0:
            break
    return best, records


def _in_turn(shares: NDArray[np.float64]) -> list[list[int]]:
    """The rare words together, rarest first; then one by one the common ones, for when nothing else was found."""
    order = [int(i) for i in np.argsort(shares, kind="stable")[:_WORDS_MOST]]
    rare = [i for i in order if shares[i] <= _COMMON]
    return [rare, *([i] for i in order[len(rare) :])]
