"""A multinomial logistic model whose classes come in families, fitted by limited-memory BFGS."""

from __future__ import annotations

from collections.abc import Callable, Sequence

import numpy as np
from numpy.typing import NDArray

Floats = NDArray[np.float64]
Integers = NDArray[np.int64]


def fit(rows: Floats, labels: Integers, held: Floats, family: Floats, family_held: Floats) -> Floats:
    """Weights of a multinomial logistic model: a row per column of `rows` and one more for the offset.

    The weights of a class are the sum of those of its family, which `family` names: a row per member of a family, a
    column per class. Large weights are held back by their row (`held`) and by their member (`family_held`).
    """
    # Single precision for the large products: twice as fast, and what is lost is far below the tolerance.
    columns = np.hstack([rows, np.ones((len(rows), 1))], dtype=np.float32, casting="same_kind")
    penalty = np.append(held * len(rows) / 1000, 1e-3)[:, None] * family_held
    wanted = np.eye(family.shape[1])[labels]
    shape = (columns.shape[1], len(family))

    def loss(flat: Floats) -> tuple[float, Floats]:
        weights = flat.reshape(shape)
        logits = (columns @ (weights @ family).astype(np.float32)).astype(np.float64)
        logits -= logits.max(axis=1, keepdims=True)
        raised = np.exp(logits)
        total = raised.sum(axis=1, keepdims=True)
        cost = (np.log(total).sum() - (wanted * logits).sum()) + (penalty * weights**2).sum() / 2
        astray = (raised / total - wanted).astype(np.float32)
        slope = (columns.T @ astray).astype(np.float64) @ family.T + penalty * weights
        return float(cost), slope.ravel()

    return minimise(loss, np.zeros(shape[0] * shape[1])).reshape(shape) @ family


def minimise(
    loss: Callable[[Floats], tuple[float, Floats]], start: Floats, steps: int = 500, remembered: int = 10
) -> Floats:
    """The minimum of a smooth convex loss by limited-memory BFGS, to where the slope is next to nothing."""
    at, (cost, slope) = start, loss(start)
    moves: list[tuple[Floats, Floats]] = []
    for _ in range(steps):
        if np.abs(slope).max() < 5e-2:
            break
        step = -_direction(slope, moves)
        reach, fall = 1.0, float(slope @ step)
        while True:
            new_cost, new_slope = loss(at + reach * step)
            if new_cost <= cost + 1e-4 * reach * fall:
                break
            reach /= 2
            if reach < 1e-10:
                return at
        change = new_slope - slope
        if (reach * step) @ change > 1e-12:
            moves = [*moves, (reach * step, change)][-remembered:]
        at, cost, slope = at + reach * step, new_cost, new_slope
    return at


def _direction(slope: Floats, moves: Sequence[tuple[Floats, Floats]]) -> Floats:
    """The slope seen through the curvature of the last moves."""
    direction, shares = slope.copy(), []
    for move, change in reversed(moves):
        shares.append(float(move @ direction) / float(move @ change))
        direction -= shares[-1] * change
    if moves:
        move, change = moves[-1]
        direction *= float(move @ change) / float(change @ change)
    else:
        direction /= max(1.0, float(np.linalg.norm(slope)))
    for (move, change), share in zip(moves, reversed(shares), strict=True):
        direction += (share - float(change @ direction) / float(move @ change)) * move
    return direction
