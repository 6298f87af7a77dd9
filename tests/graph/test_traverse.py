"""Traversal finds what a plain search over the same graph finds, with the path."""

from __future__ import annotations

import random
from collections.abc import Sequence
from typing import TYPE_CHECKING, NamedTuple

import pytest
from hypothesis import given
from hypothesis import strategies as st

from cortex_py.parts.graph.traversal import Edges, EdgesBetween, neighbours, search

if TYPE_CHECKING:
    import networkx as nx


class Edge(NamedTuple):
    id: str
    source_id: str
    target_id: str
    type: str = "Uses"
    confidence: float = 0.5


def _asked(edges: Sequence[Edge], seed: int = 0) -> Edges:
    """The edges at some entities, in an order that nobody can rely on."""
    lot = random.Random(seed)

    def at(ids: Sequence[str]) -> list[Edge]:
        found = [edge for edge in edges if edge.source_id in ids or edge.target_id in ids]
        lot.shuffle(found)
        return found

    return at


def _joining(edges: Sequence[Edge]) -> EdgesBetween:
    def between(ids: Sequence[str], others: Sequence[str]) -> list[Edge]:
        ends = {(a, b) for a in ids for b in others} | {(b, a) for a in ids for b in others}
        return [edge for edge in edges if (edge.source_id, edge.target_id) in ends]

    return between


@st.composite
def graphs(draw: st.DrawFn) -> list[Edge]:
    size = draw(st.integers(2, 14))
    ends = st.integers(0, size - 1).map("n{:02}".format)
    drawn = draw(st.lists(st.tuples(ends, ends, st.sampled_from([0.3, 0.5, 0.9])), max_size=30))
    return [Edge(f"e{i:02}", a, b, confidence=c) for i, (a, b, c) in enumerate(drawn)]


def _networkx(edges: Sequence[Edge]) -> nx.Graph:
    # Not above: every run of any test would load it.
    import networkx as nx

    graph = nx.Graph()
    graph.add_nodes_from(f"n{i:02}" for i in range(14))
    graph.add_edges_from((edge.source_id, edge.target_id) for edge in edges)
    return graph


@given(edges=graphs(), hops=st.integers(1, 8))
def test_a_path_is_as_short_as_can_be_and_hangs_together(edges: list[Edge], hops: int) -> None:
    import networkx as nx

    lengths = dict(nx.all_pairs_shortest_path_length(_networkx(edges)))
    # Some edges only: where they are enough the way must be as short, and where not it must still be found.
    fewer = _asked(edges[::2])
    for b, some, joining in (
        ("n01", None, None),
        ("n05", None, _joining(edges)),
        ("n01", fewer, None),
        ("n09", fewer, _joining(edges)),
    ):
        found = search("n00", b, _asked(edges), hops, some_edges=some, joining=joining).steps
        expected = lengths["n00"].get(b)
        if expected is None or expected > hops:
            assert found is None
            continue
        assert found is not None
        assert len(found) == expected
        assert [step.from_id for step in found] == ["n00", *(step.to_id for step in found[:-1])]
        assert found[-1].to_id == b
        for step in found:
            ends = (step.from_id, step.to_id) if step.forward else (step.to_id, step.from_id)
            assert (step.edge.source_id, step.edge.target_id) == ends


@pytest.mark.slow
@given(edges=graphs(), depth=st.integers(1, 3))
def test_neighbours_are_those_of_a_breadth_first_search(edges: list[Edge], depth: int) -> None:
    import networkx as nx

    expected = nx.single_source_shortest_path_length(_networkx(edges), "n00", depth)
    found = neighbours("n00", _asked(edges), depth)
    assert found.complete
    assert {one.id: one.distance for one in found.reached} == {k: v for k, v in expected.items() if k != "n00"}
    distances = {"n00": 0} | {one.id: one.distance for one in found.reached}
    for one in found.reached:
        assert one.via.to_id == one.id
        assert distances[one.via.from_id] == one.distance - 1
    assert [one.distance for one in found.reached] == sorted(one.distance for one in found.reached)


@given(edges=graphs(), seed=st.integers(1, 1000))
def test_the_order_in_which_edges_come_changes_nothing(edges: list[Edge], seed: int) -> None:
    assert neighbours("n00", _asked(edges), 3, 4) == neighbours("n00", _asked(edges, seed), 3, 4)
    assert search("n00", "n01", _asked(edges), 6) == search("n00", "n01", _asked(edges, seed), 6)


def test_an_entity_is_no_hop_away_from_itself() -> None:
    assert search("a", "a", _asked([])).steps == ()


def test_a_way_may_go_against_the_direction_in_which_a_fact_is_stored() -> None:
    edges = [Edge("1", "alice", "acme", "WorksAt"), Edge("2", "bob", "acme", "WorksAt")]
    found = search("alice", "bob", _asked(edges)).steps
    assert found is not None
    assert [(step.from_id, step.to_id, step.forward) for step in found] == [
        ("alice", "acme", True),
        ("acme", "bob", False),
    ]


def test_the_surest_edge_is_the_one_by_which_an_entity_is_reached() -> None:
    edges = [Edge("1", "a", "b", confidence=0.4), Edge("2", "b", "a", "Created", 0.9)]
    (only,) = neighbours("a", _asked(edges)).reached
    assert (only.via.edge.id, only.via.forward) == ("2", False)


def test_a_limit_keeps_the_nearest_and_surest_and_says_so() -> None:
    edges = [Edge(f"{i}", "hub", f"leaf{i}", confidence=i / 10) for i in range(10)]
    found = neighbours("hub", _asked(edges), 2, limit=3)
    assert [one.id for one in found.reached] == ["leaf9", "leaf8", "leaf7"]
    assert not found.complete


def test_a_search_that_gave_up_is_not_taken_for_one_that_found_nothing() -> None:
    star = [Edge(f"{i}", "hub", f"leaf{i}") for i in range(100)] + [Edge("x", "other", "far")]
    assert search("hub", "far", _asked(star), 6).complete
    wide = star + [Edge(f"y{i}", f"leaf{i}", f"deep{i}") for i in range(100)]
    wide += [Edge(f"z{i}", "far", f"twig{i}") for i in range(200)]
    found = search("hub", "far", _asked(wide), 6, limit=50)
    assert found.steps is None
    assert not found.complete


def test_a_wide_ring_is_not_looked_beyond_once_there_are_enough() -> None:
    ring = [Edge(f"a{i:03}", "hub", f"n{i:03}", confidence=1 - i / 1000) for i in range(300)]
    leaves = [Edge(f"b{i:03}", f"n{i:03}", f"m{i:03}") for i in range(300)]
    asked: list[str] = []

    def at(ids: Sequence[str]) -> Sequence[Edge]:
        asked.extend(ids)
        return _asked(ring + leaves)(ids)

    found = neighbours("hub", at, 2, limit=310)
    assert not found.complete
    assert [one.id for one in found.reached[300:]] == [f"m{i:03}" for i in range(10)]
    assert len(asked) < 100


@pytest.mark.parametrize("depth", [4, 100])
def test_depth_ends_at_three(depth: int) -> None:
    chain = [Edge(f"{i}", f"n{i}", f"n{i + 1}") for i in range(9)]
    assert [one.id for one in neighbours("n0", _asked(chain), depth).reached] == ["n1", "n2", "n3"]
