"""How long work may take, measured so that a slow or busy machine changes nothing.

Time is the CPU time of the thread that works, and the best of three runs counts. A ceiling is at least ten times what
the work takes on a quiet machine: it finds work that explodes, and not work that is a little slow. `no_hang` is for
work that waits instead.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import TypeVar

__all__ = ["MINUTE", "explodes", "growth", "is_steep", "no_hang", "quick"]

MINUTE = 60.0  # how long a test waits for what must happen: it costs nothing where it does
_RUNS = 3
_T = TypeVar("_T")
# Below it the clock and the collector weigh more than the work.
_MEASURABLE = 0.001
_SHORTER = 4  # so much shorter is the text beside which a slow one is held
_FAR = 10


def quick(work: Callable[[], _T], seconds: float, *, clock: Callable[[], float] = time.thread_time) -> _T:
    """What the work returns; it fails where each of three runs takes more CPU time than the ceiling.

    Work that other threads do needs `time.process_time` as its clock.
    """
    taken: list[float] = []
    while len(taken) < _RUNS:
        began = clock()
        result = work()
        taken.append(clock() - began)
        if taken[-1] < seconds:
            return result
    raise AssertionError(f"took {min(taken):.2f} s of CPU time, more than {seconds} s")


def growth(work: Callable[[int], object], small: int, large: int) -> float:
    """How many times longer the work takes with the large size than with the small one."""
    return _best(lambda: work(large)) / max(_best(lambda: work(small)), _MEASURABLE)


def explodes(work: Callable[[int], object], size: int, ceiling: float) -> bool:
    """Whether the work takes more than the ceiling, and more of it than a slow machine explains.

    What is above the ceiling is done again with a quarter of the size, where a quadratic search takes a sixteenth.
    """
    taken = _best(lambda: work(size), ceiling)
    if taken < ceiling:
        return False
    return taken > _FAR * ceiling or is_steep(taken, _best(lambda: work(size // _SHORTER)))


def is_steep(long: float, short: float) -> bool:
    """Whether a time has grown faster than a text that is four times as long."""
    return long > _SHORTER**1.5 * max(short, _MEASURABLE)


def _best(work: Callable[[], object], enough: float = 0.0) -> float:
    """The shortest of three times, or the first below what is enough."""
    best = float("inf")
    for _ in range(_RUNS):
        began = time.thread_time()
        work()
        best = min(best, time.thread_time() - began)
        if best < enough:
            break
    return best


@contextmanager
def no_hang(seconds: float = MINUTE) -> Iterator[None]:
    """What is inside ends by itself, long before this many seconds have passed."""
    began = time.monotonic()
    yield
    assert time.monotonic() - began < seconds, "it waited for something"
