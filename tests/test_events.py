"""Handlers run at once, in the order of their subscription, for their own kind of event."""

from __future__ import annotations

import pytest

from cortex_py.core.events import BranchesChanged, Events, MemoriesChanged

CHANGE = MemoriesChanged(frozenset({"a"}))


def test_handlers_run_in_order_and_only_for_their_event() -> None:
    events, seen = Events(), list[tuple[str, object]]()
    events.subscribe(MemoriesChanged, lambda event: seen.append(("first", event)))
    events.subscribe(MemoriesChanged, lambda event: seen.append(("second", event)))
    events.subscribe(BranchesChanged, lambda event: seen.append(("other", event)))
    events.publish(CHANGE)
    assert seen == [("first", CHANGE), ("second", CHANGE)]


def test_an_event_without_handlers_is_ignored() -> None:
    Events().publish(CHANGE)


def test_an_error_of_a_handler_reaches_the_publisher() -> None:
    def fail(_event: MemoriesChanged) -> None:
        raise ValueError("broken")

    events = Events()
    events.subscribe(MemoriesChanged, fail)
    with pytest.raises(ValueError, match="broken"):
        events.publish(CHANGE)
