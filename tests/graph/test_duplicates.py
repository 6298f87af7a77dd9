"""Likely duplicates are found with their reason, unlikely ones are not, and many entities take little time."""

from __future__ import annotations

import random
from datetime import UTC, datetime

import pytest

from cases import each
from cortex_py.core.graph_values import Entity, EntityType
from cortex_py.parts.graph.entities import DuplicateGroup, find_duplicates, fold_name
from timing import quick

NOW = datetime(2026, 1, 2, tzinfo=UTC)


def _entities(type: EntityType, *names: str) -> list[Entity]:
    return [
        Entity(id=f"{i:06}", space="p", name=name, type=type, created_at=NOW, updated_at=NOW)
        for i, name in enumerate(names)
    ]


def _found(type: EntityType, *names: str) -> list[tuple[set[str], str]]:
    return [(set(one.names), one.reason) for one in find_duplicates(_entities(type, *names))]


@each(
    ("type", "a", "b", "reason"),
    [
        ("Technology", "Postgre SQL", "postgresql", "same spelling"),
        ("Technology", "Node.js", "NodeJS", "same spelling"),
        ("Organization", "Café Noir", "CAFE NOIR", "same spelling"),
        ("Technology", "Postgres", "PostgreSQL", "short form"),
        ("Technology", "React", "React.js", "short form"),
        ("Technology", "Mongo", "MongoDB", "short form"),
        ("Organization", "Acme", "Acme Inc.", "short form"),
        ("Organization", "AWS", "Amazon Web Services", "acronym"),
        ("Concept", "CI", "continuous integration", "acronym"),
        ("Organization", "BoE", "Bank of England", "acronym"),
        ("Technology", "K8s", "Kubernetes", "acronym"),
        ("Technology", "Kubernetes", "Kuberentes", "typing error"),
        ("Technology", "Elasticsearch", "Elasticsearh", "typing error"),
        ("Concept", "eventual consistency", "eventual consistancy", "typing error"),
        ("Person", "Maria", "Maria Lopez", "part of a name"),
        ("Person", "M. Lopez", "Maria Lopez", "part of a name"),
        ("Person", "María López", "Maria Lopez", "same spelling"),
        ("Person", "Maria Lopez", "Maria del Carmen Lopez", "part of a name"),
        ("File", "./src/a.py", "src\\a.py", "same spelling"),
    ],
)
def test_the_same_thing_under_two_names_is_found(type: EntityType, a: str, b: str, reason: str) -> None:
    assert _found(type, a, "something else", b) == [({a, b}, reason)]


@each(
    ("type", "names"),
    [
        ("Technology", ["C", "C++", "C#"]),
        ("Technology", ["Java", "JavaScript"]),
        ("Technology", ["No", "NoSQL"]),
        ("Technology", ["Python 2", "Python 3"]),
        ("Technology", ["release 1.2.3", "release 1.2.4"]),
        ("Technology", ["vue", "vite"]),
        ("Person", ["Maria", "Maria Lopez", "Maria Garcia"]),
        ("Person", ["M. Lopez", "Maria Lopez", "Miguel Lopez"]),
        ("Concept", ["CI", "continuous integration", "customer interview"]),
        ("File", ["src/test_a.py", "src/test_b.py"]),
        ("File", ["src/A.py", "src/a.py"]),
        ("Concept", ["🧠", "🚀", "--", "%%"]),
    ],
)
def test_different_things_are_left_apart(type: EntityType, names: list[str]) -> None:
    assert _found(type, *names) == []


def test_only_entities_of_one_type_are_compared() -> None:
    assert find_duplicates([*_entities("Person", "Rust"), *_entities("Technology", "rust")]) == []


def test_the_likeliest_come_first_and_the_order_of_entities_does_not_matter() -> None:
    entities = _entities("Technology", "Postgres", "PostgreSQL", "postgre-sql", "Kubernetes", "K8s", "CI")
    found = find_duplicates(entities)
    assert found == find_duplicates(entities[::-1])
    assert [one.confidence for one in found] == sorted((one.confidence for one in found), reverse=True)
    assert found[0] == DuplicateGroup(
        "Technology", ("000001", "000002"), ("PostgreSQL", "postgre-sql"), "same spelling", 0.95
    )
    assert set(found[1].ids) == {"000000", "000001", "000002"}
    assert len(find_duplicates(entities, limit=1)) == 1


def test_folding_keeps_what_makes_a_name() -> None:
    assert fold_name("C++", "Technology") == "c++"
    assert fold_name("Node.js", "Technology") == "nodejs"
    assert fold_name("…", "Concept") == "…"


@pytest.mark.slow
def test_many_entities_take_little_time() -> None:
    lot = random.Random(7)
    syllables = ["ka", "ro", "mi", "ten", "sul", "per", "dor", "vin", "gal", "est", "nor", "bru", "chi", "lam"]
    words = ["".join(lot.choices(syllables, k=lot.randint(2, 4))) for _ in range(8_000)]
    types: list[EntityType] = ["Person", "Organization", "Technology", "Concept"]
    entities = [
        Entity(
            id=f"{i:06}",
            space="p",
            name=" ".join(lot.choices(words, k=lot.randint(1, 3))).title(),
            type=types[i % 4],
            created_at=NOW,
            updated_at=NOW,
        )
        for i in range(25_000)
    ]
    assert quick(lambda: find_duplicates(entities), 20)
