"""The sliding window: compared with counting by hand, on a clock that moves when told."""

from __future__ import annotations

import threading
import time
from concurrent.futures import ThreadPoolExecutor

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from cortex_py.core.embedding.guards import SlidingWindow
from cortex_py.core.errors import RateLimited
from timing import MINUTE


class Ticking:
    def __init__(self) -> None:
        self.moment = 1000.0

    def __call__(self) -> float:
        return self.moment


def _taken(window: SlidingWindow, caller: str = "me") -> bool:
    try:
        window.take(caller)
    except RateLimited:
        return False
    return True


@settings(deadline=None)
@given(
    limit=st.integers(1, 5),
    seconds=st.integers(1, 20),
    steps=st.lists(st.tuples(st.integers(0, 12), st.sampled_from("abc")), max_size=60),
)
def test_it_counts_as_one_would_by_hand(limit: int, seconds: int, steps: list[tuple[int, str]]) -> None:
    now = Ticking()
    window = SlidingWindow(limit, seconds, now)
    taken: list[tuple[float, str]] = []
    for wait, caller in steps:
        now.moment += wait
        recent = [moment for moment, who in taken if who == caller and moment > now.moment - seconds]
        if len(recent) < limit:
            window.take(caller)
            taken.append((now.moment, caller))
        else:
            with pytest.raises(RateLimited) as caught:
                window.take(caller)
            assert caught.value.retry_after == recent[0] + seconds - now.moment


@settings(deadline=None)
@given(st.lists(st.integers(0, 9), min_size=1, max_size=40))
def test_who_waits_as_long_as_told_is_served(waits: list[int]) -> None:
    now = Ticking()
    window = SlidingWindow(3, 10, now)
    for wait in waits:
        now.moment += wait
        try:
            window.take("me")
        except RateLimited as refused:
            now.moment += refused.retry_after
            window.take("me")


def test_the_window_slides_instead_of_starting_anew() -> None:
    now = Ticking()
    window = SlidingWindow(2, 60, now)
    assert _taken(window)
    now.moment += 50
    assert [_taken(window), _taken(window)] == [True, False]
    now.moment += 10
    assert [_taken(window), _taken(window)] == [True, False]


def test_the_answer_tells_when_to_come_back() -> None:
    now = Ticking()
    window = SlidingWindow(2, 60, now)
    window.take("me")
    now.moment += 1
    window.take("me")
    now.moment += 3.5
    with pytest.raises(RateLimited) as caught:
        window.take("me")
    assert caught.value.retry_after == 55.5
    assert caught.value.message == "More than 2 requests in 60 s."
    assert caught.value.remedy == "Wait 56 s, or raise the rate limit."
    now.moment += 55.25
    with pytest.raises(RateLimited) as caught:
        window.take("me")
    assert caught.value.remedy == "Wait 1 s, or raise the rate limit."


def test_without_a_limit_nothing_is_refused() -> None:
    window = SlidingWindow(0, 60, Ticking())
    assert all(_taken(window) for _ in range(1000))


def test_callers_are_remembered_up_to_a_bound_the_silent_forgotten_first() -> None:
    window = SlidingWindow(1, 60, Ticking(), most_callers=3)
    assert [_taken(window, caller) for caller in "abc"] == [True, True, True]
    assert not _taken(window, "a")
    assert _taken(window, "d")
    assert [_taken(window, caller) for caller in "adb"] == [False, False, True]


def test_threads_take_exactly_what_there_is() -> None:
    inside = threading.Lock()
    together = threading.Barrier(8)

    def now() -> float:
        # Lets the other threads in, if anything does.
        assert inside.acquire(blocking=False), "two threads count at once"
        time.sleep(0)
        inside.release()
        return 1000.0

    window = SlidingWindow(100, 60, now)

    def work(_: int) -> int:
        together.wait(MINUTE)
        return sum(_taken(window) for _ in range(50))

    with ThreadPoolExecutor(8) as pool:
        assert sum(pool.map(work, range(8))) == 100
