"""Groups in which every record goes with every other: near pairs, and complete linkage over them. Pure."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    import numpy as np
    from numpy.typing import NDArray

__all__ = ["Pair", "complete_groups", "near_pairs"]

_NEAREST = 12
_ROWS = 512


@dataclass(frozen=True, slots=True)
class Pair:
    """Two records, by number, that may go together, and how alike they are."""

    left: int
    right: int
    likeness: float


def complete_groups(pairs: Iterable[Pair], agree: Callable[[int, int], bool]) -> list[tuple[int, ...]]:
    """Groups of two or more, the most alike joined first; no record is in two. `agree` is asked once for a pair.

    The outcome depends on the pairs alone, not on their order.
    """
    asked: dict[tuple[int, int], bool] = {}

    def agreed(left: int, right: int) -> bool:
        key = (left, right) if left < right else (right, left)
        if key not in asked:
            asked[key] = agree(*key)
        return asked[key]

    members: dict[int, list[int]] = {}
    group_of: dict[int, int] = {}
    for pair in sorted(pairs, key=_order):
        left, right = (group_of.setdefault(number, number) for number in (pair.left, pair.right))
        if left == right:
            continue
        here, there = members.setdefault(left, [left]), members.setdefault(right, [right])
        if all(agreed(one, other) for one in here for other in there):
            here += there
            group_of.update(dict.fromkeys(there, left))
            del members[right]
    return sorted(tuple(sorted(group)) for group in members.values() if len(group) > 1)


def _order(pair: Pair) -> tuple[float, int, int]:
    return -pair.likeness, min(pair.left, pair.right), max(pair.left, pair.right)


def near_pairs(
    vectors: Sequence[NDArray[np.float32]],
    fresh: Sequence[int],
    least: float,
    looked: Callable[[int], None] | None = None,
) -> list[Pair]:
    """Pairs of near records with at least one of the fresh. A record brings its nearest only: in a crowd of
    look-alikes all pairs would be too many to look at.

    `looked` is told again and again how many more records were looked at.
    """
    import numpy as np

    matrix = np.stack(vectors) if vectors else np.empty((0, 1), np.float32)
    found: dict[tuple[int, int], float] = {}
    nearest = min(_NEAREST, len(vectors) - 1)
    for low in range(0, len(fresh), _ROWS):
        rows = np.asarray(fresh[low : low + _ROWS])
        likeness = matrix[rows] @ matrix.T
        likeness[np.arange(len(rows)), rows] = -1.0
        columns = np.argpartition(-likeness, nearest - 1, axis=1)[:, :nearest]
        for row, near in zip(range(len(rows)), columns, strict=True):
            for column in near[likeness[row, near] >= least].tolist():
                number = int(rows[row])
                pair = (number, column) if number < column else (column, number)
                found[pair] = float(likeness[row, column])
        if looked:
            looked(len(rows))
    return [Pair(left, right, likeness) for (left, right), likeness in found.items()]
