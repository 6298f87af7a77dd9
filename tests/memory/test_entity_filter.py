"""`entity:` finds the memories that speak of something, under whichever name they do, and only the caller's own."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest

from cases import each
from cortex_py import Cortex
from cortex_py.core.errors import FilterSyntaxError
from cortex_py.core.records import MODES

from helpers import FakeClock
from stub_backend import StubBackend

NOTES = {
    "kubernetes": "The deploy runs on Kubernetes.",
    "postgresql": "PostgreSQL stores the ledger.",
    "words": "Somebody lowered the kubernetes bill.",
    "none": "The importer reads the ledger twice a day.",
}


@pytest.fixture
def desk(home: Path, project: Path, clock: FakeClock) -> Iterator[Cortex]:
    with Cortex.open(home, project=project, clock=clock, backend=StubBackend()) as opened:
        for content in NOTES.values():
            opened.memories.capture(content)
        yield opened


def found(cortex: Cortex, filter: str) -> set[str]:
    """Which notes a filter lets through, which must be the same in a list and in every mode of search."""
    listed = {hit.memory.content for hit in cortex.memories.recall(filter=filter, limit=100).results}
    for mode in MODES:
        page = cortex.memories.recall("the ledger deploy bill", filter=filter, mode=mode, limit=100, min_score=0.0)
        contents = {hit.memory.content for hit in page.results}
        assert contents <= listed
        if mode != "text":
            assert contents == listed
    assert cortex.memories.recall(filter=filter, limit=1).total == len(listed)
    names = {content: name for name, content in NOTES.items()}
    return {names.get(content, content) for content in listed}


@each(
    ("filter", "notes"),
    [
        ("entity:Kubernetes", {"kubernetes", "words"}),
        ("entity:KUBERNETES", {"kubernetes", "words"}),
        ("entity:k8s", {"kubernetes"}),
        ("entity:entity_kubernetes", {"kubernetes"}),
        ("entity:postgres", {"postgresql"}),
        ("entity:pg", {"postgresql"}),
        ("entity:ledger", {"postgresql", "none"}),
        ('entity:"the ledger"', {"postgresql", "none"}),
        ("entity:k8s,pg", {"kubernetes", "postgresql"}),
        ("entity:k8s entity:pg", {"kubernetes", "postgresql"}),
        ("entity:entity_nobody", set()),
        ("entity:nobody", set()),
        ("-entity:k8s", {"postgresql", "words", "none"}),
        ("-entity:Kubernetes", {"postgresql", "none"}),
        ("-entity:k8s,pg", {"words", "none"}),
        ("-entity:nobody", set(NOTES)),
        ("entity:Kubernetes -entity:k8s", {"words"}),
        ('entity:"\'; DROP TABLE entity; --"', set()),
    ],
)
def test_a_name_finds_what_mentions_it_or_says_its_words(
    desk: Cortex, retrieval: str, filter: str, notes: set[str]
) -> None:
    # What the tagger makes of a lower-case word is its own affair: here words stand for themselves.
    with desk.store.database.write() as session:
        session.run("DELETE FROM mention WHERE num IN (SELECT num FROM memory WHERE content LIKE 'Somebody%')")
    assert found(desk, filter) == notes


def test_a_spelling_that_was_learned_finds_too(desk: Cortex) -> None:
    assert found(desk, "entity:steersman") == set()
    desk.graph.create("Steersman", "Technology")
    desk.graph.merge(["Kubernetes", "Steersman"])
    assert "kubernetes" in found(desk, "entity:steersman")
    desk.graph.delete("Kubernetes")
    assert found(desk, "entity:steersman") == set()


def test_what_is_deleted_or_changed_is_found_no_more(desk: Cortex) -> None:
    (hit,) = desk.memories.recall(filter="entity:pg").results
    desk.memories.delete(hit.memory.id)
    assert found(desk, "entity:pg") == set()
    desk.memories.restore(hit.memory.id)
    assert found(desk, "entity:pg") == {"postgresql"}
    desk.memories.update(hit.memory.id, content="SQLite stores the ledger.")
    assert found(desk, "entity:pg") == set()
    assert found(desk, "entity:sqlite") == {"SQLite stores the ledger."}


def test_it_goes_with_other_conditions(desk: Cortex) -> None:
    desk.memories.capture("Kubernetes again.", tags=["ops"], namespace="decisions")
    assert found(desk, "entity:k8s tag:ops") == found(desk, "entity:k8s ns:decisions") == {"Kubernetes again."}
    assert found(desk, "entity:k8s -tag:ops") == {"kubernetes", "words"}


def test_a_name_is_no_pattern(desk: Cortex) -> None:
    for filter in ("entity:*", "entity:kube*"):
        try:
            assert "none" not in found(desk, filter)
        except FilterSyntaxError:
            continue


def test_nothing_is_found_across_projects(desk: Cortex, home: Path, tmp_path: Path, clock: FakeClock) -> None:
    (tmp_path / "other").mkdir()
    desk.memories.capture("Kubernetes is mine.", domain="user")
    with Cortex.open(home, project=tmp_path / "other", clock=clock, backend=StubBackend()) as other:
        assert found(other, "entity:k8s") == {"Kubernetes is mine."}
        other.memories.capture("Kubernetes of the others.")
        assert found(other, "entity:k8s") == {"Kubernetes is mine.", "Kubernetes of the others."}
        assert found(other, "entity:pg") == set()
        # A spelling that the other project learned does not carry over.
        desk.graph.create("Steersman", "Technology")
        desk.graph.merge(["Kubernetes", "Steersman"])
        assert found(other, "entity:steersman") == set()
        # A project that is named is searched, by the names that it has.
        assert found(other, f"entity:steersman project:{desk.project.id}") == {"kubernetes"} | (
            found(desk, "entity:steersman") - {"kubernetes"}
        )
    assert found(desk, "entity:k8s") >= {"kubernetes", "Kubernetes is mine."}
    assert "Kubernetes of the others." not in found(desk, "entity:k8s")
