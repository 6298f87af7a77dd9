"""What a person who browses needs: a query that mixes words and conditions, marks, facets, and no trace of looking."""

from __future__ import annotations

import pytest

from cortex_py import Cortex
from cortex_py.core.memory.recall.filters import split_query

from helpers import FakeClock


@pytest.mark.parametrize(
    ("text", "words", "filter"),
    [
        ("redis tests", "redis tests", ""),
        ("tag:auth session length", "session length", "tag:auth"),
        ('path:"my docs/**" how -ns:decisions,blockers', "how", 'path:"my docs/**" -ns:decisions,blockers'),
        ("see http://example.org and c:\\temp", "see http://example.org and c:\\temp", ""),
        ('tag:"unfinished', 'tag:"unfinished', ""),
        ("since:", "", "since:"),
        ("", "", ""),
    ],
)
def test_one_field_holds_words_and_conditions(text: str, words: str, filter: str) -> None:
    assert split_query(text) == (words, filter)


def test_marks_are_the_words_without_the_signs_around_them(cortex: Cortex) -> None:
    text = "Use `PostgreSQL`, (sessions) expire."
    marked = [text[start:end] for start, end in cortex.memories.marks("postgresql session", text)]
    assert marked == ["PostgreSQL", "sessions"]
    assert cortex.memories.marks("", text) == []


def test_facets_count_what_a_filter_leaves(cortex: Cortex) -> None:
    cortex.memories.capture("One", namespace="decisions", tags=["db", "api"])
    cortex.memories.capture("Two", namespace="decisions", tags=["db"])
    cortex.memories.capture("Three", namespace="learnings", tags=["api"])
    found = cortex.memories.facets()
    assert found["ns"] == (("decisions", 2), ("learnings", 1))
    assert found["tag"] == (("api", 2), ("db", 2))
    assert cortex.memories.facets("ns:decisions")["tag"] == (("db", 2), ("api", 1))
    assert cortex.memories.facets("tag:none") == {}


def test_looking_up_finds_what_a_recall_finds(cortex: Cortex) -> None:
    for text in ("Sessions expire after an hour", "Redis runs on port 6380"):
        cortex.memories.capture(text)
    looked = [hit.memory.id for hit in cortex.memories.look_up("redis port").results]
    assert looked == [hit.memory.id for hit in cortex.memories.recall("redis port").results]


def test_tags_of_hidden_memories_do_not_count(cortex: Cortex, clock: FakeClock) -> None:
    for n in range(6):
        cortex.memories.capture(f"Note {n} about the build", tags=["build", f"part-{n % 2}"])
    gone = [
        cortex.memories.capture("A deleted note", tags=["build", "deleted"]),
        cortex.memories.capture("An older note", tags=["build", "older"]),
        cortex.memories.capture("A newer note", tags=["newer"]),
    ]
    cortex.memories.capture("A short note", tags=["build", "short"], ttl="10m")
    cortex.memories.delete(gone[0].id)
    cortex.memories.supersede(gone[1].id, gone[2].id)
    clock.advance(minutes=30)
    wanted = (("build", 6), ("part-0", 3), ("part-1", 3), ("newer", 1))
    assert cortex.memories.tags() == wanted
    # Under a filter, the records are looked up one by one.
    assert cortex.memories.facets()["tag"] == cortex.memories.facets("since:1d")["tag"] == wanted
    assert cortex.memories.tags("part") == wanted[1:3]
    assert cortex.memories.status().top_tags == wanted
