"""Codes that a process keeps of a large space: the answers stay those of the engine, whatever is written meanwhile."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest
from test_vector_index import Pair, pair, real_pair

from cortex_py import NewMemory
from cortex_py.core.errors import ProjectNotFound
from cortex_py.core.security.callers import Caller, acting_as
from cortex_py.core.security.rights import Rights
from cortex_py.core.store.search import codes, search
from cortex_py.core.store.search import search as engine_space
from cortex_py.core.store.search.codes import CodeCache
from cortex_py.core.store.search.filters import Where
from cortex_py.team.postgres.vector_index import PostgresVectorIndex

__all__ = ["pair", "real_pair"]

FILTERS = ("tag:rare", "tag:t3,t4", "tag:t3 tag:common", "tag:t1*", "ns:decisions", "tag:t0 ns:decisions", "tag:nobody")


@pytest.fixture(autouse=True)
def every_filter_lets_little_through(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(engine_space, "_SELDOM", 0)


@pytest.fixture
def used(monkeypatch: pytest.MonkeyPatch) -> list[int]:
    """How many records were asked for, each time codes told which to compare."""
    counted: list[int] = []
    compared = PostgresVectorIndex.compared

    def noting(self: PostgresVectorIndex, *given: Any) -> list[int]:
        counted.append(len(given[4]))
        return compared(self, *given)

    monkeypatch.setattr(PostgresVectorIndex, "compared", noting)
    return counted


def _kept(pair: Pair) -> CodeCache:
    return pair.cortex._store.search._in_engine[pair.space].codes


def _with_codes(pair: Pair) -> None:
    assert pair.build()
    pair.cortex.memories.recall("cache", filter="tag:rare")
    assert not len(_kept(pair))
    pair.cortex.upkeep()
    assert len(_kept(pair))


def _finder(pair: Pair, filter: str = "tag:animals") -> Callable[[], list[str]]:
    def found() -> list[str]:
        hits = pair.cortex.memories.recall("zebra in the savanna", filter=filter, mode="vector", limit=6).results
        return sorted(hit.memory.content for hit in hits)

    return found


def _animals(count: int) -> list[NewMemory]:
    return [NewMemory(content=f"zebra {n} in the savanna", tags=("animals",)) for n in range(count)]


@pytest.mark.slow
def test_the_nearest_are_those_of_a_comparison_with_all(
    real_pair: Pair, used: list[int], monkeypatch: pytest.MonkeyPatch
) -> None:
    _with_codes(real_pair)

    def nearest() -> dict[str, list[str]]:
        def ids(filter: str) -> list[str]:
            asked = real_pair.cortex.memories.recall("cache of the parser", filter=filter, mode="vector", limit=4)
            return [hit.memory.id for hit in asked.results]

        return {filter: ids(filter) for filter in FILTERS}

    by_codes = [nearest()]
    monkeypatch.setattr(codes, "_COMPARED", 1)
    by_codes.append(nearest())
    assert len(used) >= 2 * len(FILTERS)
    monkeypatch.setattr(engine_space, "_SELDOM", 10**9)
    seen = len(used)
    assert by_codes == [nearest()] * 2
    assert len(used) == seen


def test_what_is_written_after_they_were_read_is_found_and_what_is_gone_is_not(pair: Pair, used: list[int]) -> None:
    _with_codes(pair)
    memories, found = pair.cortex.memories, _finder(pair)
    one, two, three = memories.capture_many(_animals(3))
    assert found() == ["zebra 0 in the savanna", "zebra 1 in the savanna", "zebra 2 in the savanna"]
    memories.update(one.id, content="a giraffe")
    memories.delete(two.id)
    memories.delete(three.id, hard=True)
    assert found() == ["a giraffe"]
    assert used
    memories.restore(two.id)
    assert found() == ["a giraffe", "zebra 1 in the savanna"]


@pytest.mark.slow
def test_they_are_brought_up_to_date_between_calls(
    pair: Pair, used: list[int], monkeypatch: pytest.MonkeyPatch
) -> None:
    _with_codes(pair)
    before, found = len(_kept(pair)), _finder(pair)
    pair.cortex.memories.capture_many(_animals(4))
    monkeypatch.setattr(codes, "_RECENT", 0)
    # Too much was written since: the index finds them.
    expected = found()
    assert len(expected) == 4
    assert not used
    pair.cortex.upkeep()
    assert len(_kept(pair)) == before + 4
    assert found() == expected
    assert used == [4]


def test_beyond_many_changes_they_are_read_anew(pair: Pair, monkeypatch: pytest.MonkeyPatch) -> None:
    _with_codes(pair)
    before = len(_kept(pair))
    (one, *_) = pair.cortex.memories.capture_many(_animals(4))
    pair.cortex.memories.delete(one.id, hard=True)
    monkeypatch.setattr(codes, "_MANY", 1)
    pair.cortex.upkeep()
    assert len(_kept(pair)) == before + 3


def test_more_than_a_process_shall_hold_is_left_to_the_engine(
    pair: Pair, used: list[int], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(search, "_CODES_MOST", 10)
    pair.cortex.memories.capture_many(_animals(2))
    assert pair.build()
    found = _finder(pair)
    found()
    pair.cortex.upkeep()
    assert not len(_kept(pair))
    assert len(found()) == 2
    assert not used


def test_a_space_that_was_emptied_or_lost_its_index_stops_no_upkeep(pair: Pair) -> None:
    _with_codes(pair)
    database, kept = pair.cortex._store.database, _kept(pair)
    memories = pair.cortex.memories
    for hit in memories.recall(None, limit=1_000).results:
        memories.delete(hit.memory.id, hard=True)
    kept._kept = None
    pair.cortex.upkeep()
    assert not len(kept)
    assert memories.recall("cache", filter="tag:rare").results == ()
    with database.write() as session:
        session.run("DELETE FROM near_space WHERE space = ?", (pair.space,))
    pair.cortex.upkeep()
    assert memories.recall("cache", filter="tag:rare").results == ()


def test_a_server_that_ends_stops_reading(pair: Pair) -> None:
    assert pair.build()
    pair.cortex.memories.recall("cache", filter="tag:rare")
    pair.cortex._store.read_codes(lambda: True)
    assert not len(_kept(pair))


def test_a_caller_gets_the_same_and_one_without_rights_nothing(pair: Pair, used: list[int]) -> None:
    pair.cortex.memories.capture_many(_animals(4))
    _with_codes(pair)
    found = _finder(pair)
    expected = found()
    assert len(expected) == 4
    seen = len(used)
    rights = Rights().with_project(pair.space, "read")
    with acting_as(Caller("rea", org="acme", rights=rights)):
        assert found() == expected
        assert pair.cortex.memories.recall("zebra", filter="tag:animals", limit=6).total == 4
    assert len(used) == seen + 2
    database = pair.cortex._store.database
    nearest, where = database.vector_index, Where("TRUE", (), (pair.space,))
    assert nearest is not None
    with database.read() as session:
        assert nearest.numbers(session, pair.space, where)
    with acting_as(Caller("eve", org="acme", rights=Rights().with_project("another", "admin"))):
        with pytest.raises(ProjectNotFound):
            found()
        # Whatever a statement asked for, the engine shows nothing.
        with database.read() as session:
            assert nearest.numbers(session, pair.space, where) == b""
            assert nearest.covered(session, [pair.space]) == set()


def test_a_filter_under_which_most_are_dead_still_finds_the_living(
    pair: Pair, used: list[int], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(codes, "_COMPARED", 1)
    memories = pair.cortex.memories
    written = memories.capture_many([*_animals(40), NewMemory(content="a giraffe far away", tags=("animals",))])
    _with_codes(pair)
    for one in written[:40]:
        memories.delete(one.id)
    pair.cortex.upkeep()
    hits = memories.recall("zebra in the savanna", filter="tag:animals", mode="vector", limit=2).results
    assert [hit.memory.content for hit in hits] == ["a giraffe far away"]
    assert used == [32, 41]
