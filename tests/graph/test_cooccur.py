"""Entities that are mentioned together more often than chance are related, with evidence."""

from __future__ import annotations

import random

from hypothesis import given
from hypothesis import strategies as st

from cases import each
from cortex_py.core.graph_values import EntityType, RelationshipType
from cortex_py.parts.graph.relationships import InferredPair, infer

TYPES: dict[str, EntityType] = {
    "alice": "Person",
    "bob": "Person",
    "acme": "Organization",
    "rust": "Technology",
    "tokio": "Technology",
    "caching": "Concept",
    "main.rs": "File",
}


def _memories(times: int, *together: str, others: int = 20) -> dict[str, set[str]]:
    noise: dict[str, set[str]] = {f"x{i:02}": {"caching"} for i in range(others)}
    return noise | {f"m{i:02}": set(together) for i in range(times)}


def _only(memories: dict[str, set[str]], *stated: tuple[str, str, RelationshipType]) -> InferredPair:
    (found,) = infer(memories, TYPES, stated=stated)
    return found


@each(
    ("a", "b", "source", "type"),
    [
        ("rust", "alice", "alice", "Uses"),
        ("acme", "alice", "alice", "RelatesTo"),
        ("rust", "main.rs", "main.rs", "Uses"),
        ("tokio", "rust", "rust", "RelatesTo"),
        ("acme", "rust", "acme", "Uses"),
        ("bob", "alice", "alice", "RelatesTo"),
        ("main.rs", "alice", "alice", "RelatesTo"),
    ],
)
def test_the_types_say_what_a_pair_may_be(a: str, b: str, source: str, type: str) -> None:
    found = _only(_memories(4, a, b))
    assert (found.source_id, {found.source_id, found.target_id}, found.type) == (source, {a, b}, type)
    assert found.method == "comention"


def test_someone_works_somewhere_only_if_a_text_says_so() -> None:
    memories = _memories(4, "alice", "acme")
    said = _only(memories, ("alice", "acme", "WorksAt"))
    assert (said.source_id, said.target_id, said.type, said.method) == ("alice", "acme", "WorksAt", "comention+pattern")
    assert said.confidence > _only(memories).confidence
    # An organisation does not work at a person, whatever was read.
    assert _only(memories, ("acme", "alice", "WorksAt")).type == "RelatesTo"


def test_each_result_says_what_speaks_for_it() -> None:
    found = _only(_memories(3, "rust", "tokio"))
    assert found.memory_ids == ("m00", "m01", "m02")
    assert found.support == 3
    assert found.pmi > 2
    assert found.likelihood > 10


@given(times=st.integers(2, 60))
def test_confidence_grows_with_support(times: int) -> None:
    less = _only(_memories(times, "rust", "tokio", others=10 * times))
    more = _only(_memories(times + 1, "rust", "tokio", others=10 * times + 10))
    assert 0 < less.confidence < more.confidence <= 1


def test_one_memory_is_no_pattern() -> None:
    assert infer(_memories(1, "rust", "tokio"), TYPES) == []
    assert len(infer(_memories(1, "rust", "tokio"), TYPES, min_support=1)) == 1


def test_what_stands_everywhere_is_related_to_nothing() -> None:
    memories = {f"m{i:02}": {"alice", "rust"} for i in range(10)}
    assert infer(memories, TYPES) == []
    # Unless there are memories that name neither.
    assert len(infer(memories, TYPES, total=100)) == 1


def test_chance_relates_little() -> None:
    lot = random.Random(3)
    types: dict[str, EntityType] = {f"e{i:02}": "Concept" for i in range(30)}
    memories = {f"m{i:03}": set(lot.sample(sorted(types), 4)) for i in range(400)}
    assert len(infer(memories, types)) < 0.06 * 30 * 29 / 2


def test_order_changes_nothing_and_the_limit_keeps_the_surest() -> None:
    memories = _memories(4, "rust", "tokio", "alice") | {"z": {"rust", "main.rs"}, "zz": {"rust", "main.rs"}}
    found = infer(memories, TYPES)
    assert len(found) == 4
    assert found == infer(dict(reversed(memories.items())), TYPES)
    assert infer(memories, TYPES, limit=2) == found[:2]
    assert [one.confidence for one in found] == sorted((one.confidence for one in found), reverse=True)


def test_a_memory_that_names_very_much_is_bounded() -> None:
    types: dict[str, EntityType] = {f"e{i:04}": "Concept" for i in range(3000)}
    memories: dict[str, set[str]] = {f"m{i}": set(types) for i in range(3)}
    assert len(infer(memories, types, total=1000, limit=10**6)) == 40 * 39 // 2


def test_entities_without_a_type_are_passed_over() -> None:
    assert infer(_memories(4, "rust", "nobody knows"), TYPES) == []
