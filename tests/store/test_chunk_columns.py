"""The chunks of a small space as growing arrays: the same as gathering them anew, whatever changed in between."""

from __future__ import annotations

import threading
from dataclasses import fields
from pathlib import Path

import numpy as np
import pytest
from numpy.typing import NDArray

from cortex_py import Cortex
from cortex_py.core.clock import to_micros
from cortex_py.core.store.search.candidates import ChunkColumns, Details, Signal, gather, join_details, read_signals
from cortex_py.core.store.search.filters import EVERYTHING, View
from inside import store_of

from stub_backend import StubBackend

DIMENSIONS = 4


def _signal(rng: np.random.Generator) -> Signal:
    return [
        (
            rng.integers(0, 1 << 32, terms, np.uint32).tobytes() + rng.integers(1, 9, terms, np.uint8).tobytes(),
            rng.random(DIMENSIONS, np.float32).tobytes() if rng.random() < 0.9 else None,
            int(rng.random() < 0.3),
            10 * n,
            10 * n + 9,
        )
        for n, terms in enumerate(rng.integers(0, 6, rng.integers(1, 4)).tolist())
    ]


def _same(one: Details, other: Details) -> bool:
    return all(np.array_equal(getattr(one, field.name), getattr(other, field.name)) for field in fields(Details))


def _take(columns: ChunkColumns, stored: dict[int, Signal], places: NDArray[np.int32]) -> Details:
    """As a query does it: what is missing is read first. The number of a record is ten times its place."""
    nums = places.astype(np.int64) * 10
    missing = columns.missing(places)
    columns.add(places[missing], nums[missing], {num: stored[num] for num in nums[missing].tolist()})
    return columns.take(places, nums)


def test_any_selection_is_what_gathering_gives_while_records_come_change_and_go() -> None:
    rng = np.random.default_rng(5)
    columns, stored = ChunkColumns(DIMENSIONS), dict[int, Signal]()
    handed_out: list[tuple[Details, Details]] = []
    for step in range(300):
        for _ in range(rng.integers(1, 4)):
            stored[10 * len(stored)] = _signal(rng)
        if step % 3 == 0:
            changed = rng.integers(0, len(stored), rng.integers(1, 5)).astype(np.int32)
            stored |= {10 * place: _signal(rng) for place in changed.tolist()}
            columns.forget(np.unique(changed))
        every = np.arange(len(stored), dtype=np.int32)
        for places in (every, every[step % 7 :], every[rng.random(len(every)) < 0.5], every[:0]):
            found = _take(columns, stored, places)
            expected = gather([10 * place for place in places.tolist()], stored, DIMENSIONS)
            assert _same(found, expected)
        handed_out.append((found, expected))
    assert all(_same(found, expected) for found, expected in handed_out), "what a query holds must not change"


def test_the_same_places_again_are_not_taken_again() -> None:
    columns, stored = ChunkColumns(DIMENSIONS), {10 * n: _signal(np.random.default_rng(n)) for n in range(5)}
    places = np.arange(3, dtype=np.int32)
    first = _take(columns, stored, places)
    assert _take(columns, stored, places.copy()) is first
    columns.forget(np.array([1], np.int32))
    assert _take(columns, stored, places) is not first


def test_the_records_of_several_spaces_are_joined_as_if_they_were_gathered_together() -> None:
    stored = {n: _signal(np.random.default_rng(n)) for n in range(9)}
    parts = [gather(nums, stored, DIMENSIONS) for nums in ([0, 1, 2], [3], [4, 5, 6, 7, 8])]
    assert _same(join_details(parts), gather(list(range(9)), stored, DIMENSIONS))


@pytest.mark.sqlite_only
def test_a_query_that_began_before_a_change_sees_what_was_there_before(home: Path, project: Path) -> None:
    with Cortex.open(home, project=project, backend=StubBackend()) as cortex:
        memories, store = cortex.memories, store_of(cortex)
        kept, changed, gone = (
            memories.capture(f"{word} stays on shelf nine").id for word in ("amber", "basil", "cedar")
        )

        def elsewhere() -> None:
            """Another caller changes the space and brings the shared columns up to date."""
            memories.update(changed, content="a wholly different text of another length, about ships")
            memories.delete(gone, hard=True)
            memories.capture("delta came later")
            memories.recall("shelf")

        memories.recall("shelf")
        view = View(memories.place.spaces(), to_micros(memories.get(kept).created_at), None)
        with store.database.read() as session:
            scope = store.scope(session, EVERYTHING, view)
            before = store.search.candidates(session, scope, (), None, 8).details
            other = threading.Thread(target=elsewhere)
            other.start()
            other.join()
            again = store.search.candidates(session, scope, (), None, 8).details
            expected = gather(again.nums.tolist(), read_signals(session, view.spaces[0], again.nums.tolist()), 32)
            assert _same(again, expected)
            assert set(again.nums.tolist()) <= set(before.nums.tolist())


@pytest.mark.sqlite_only
def test_a_process_that_followed_all_changes_answers_as_a_fresh_one(home: Path, project: Path) -> None:
    def answers(cortex: Cortex) -> list[list[tuple[str, float, str]]]:
        pages = [
            cortex.memories.recall(f"shelf {n} amber", filter=written) for n in range(4) for written in ("", "tag:red")
        ]
        return [[(hit.memory.id, round(hit.score, 6), hit.snippet) for hit in page.results] for page in pages]

    with Cortex.open(home, project=project, backend=StubBackend()) as cortex:
        ids: list[str] = []
        for n in range(24):
            ids.append(cortex.memories.capture(f"amber note {n} lies on shelf {n % 5}", tags=["red"] * (n % 2)).id)
            cortex.memories.recall("shelf")
            if n % 6 == 5:
                cortex.memories.update(ids[n - 3], content=f"note {n} moved to shelf {n % 4}, said the keeper of amber")
            if n % 8 == 7:
                cortex.memories.delete(ids[n - 4], hard=n % 16 == 7)
        followed = answers(cortex)
    with Cortex.open(home, project=project, backend=StubBackend()) as cortex:
        assert answers(cortex) == followed
