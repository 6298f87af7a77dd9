"""Surface cues of records and queries."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from cases import each
from cortex_py.core.memory.text import HEAD, QueryKind, Trait, query_traits, record_traits


def has(content: str, *traits: Trait) -> bool:
    flags = record_traits(content).flags
    return all(flags & trait for trait in traits)


@each(
    ("content", "author"),
    [
        ("Caroline: I went to a support group yesterday.", "caroline"),
        ("(1:56 pm on 8 May, 2023) Melanie: Hey there!", "melanie"),
        ("[2024-05-01 10:00] Bob Smith: done", "bob"),
        ("2024-05-01 10:00 Bob: done", "bob"),
        ("**Dana:** please review", "dana"),
        ("user: which port?", "user"),
        ("Note: the port is 5432", None),
        ("TODO: remove the flag", None),
        ("https://example.com/a", None),
        ("Use PostgreSQL because of JSONB", None),
        ("std::vector is fine", None),
        ("", None),
    ],
)
def test_author_is_the_folded_first_word_of_the_leading_label(content: str, author: str | None) -> None:
    assert record_traits(content).author == author


def test_a_dialogue_has_no_single_author() -> None:
    traits = record_traits("user: which port?\nassistant: 5432")
    assert traits.author is None
    assert traits.flags & Trait.DIALOGUE


def test_generic_speakers_are_told_apart() -> None:
    assert has("user: I moved to Lyon", Trait.FROM_USER)
    assert has("assistant: here is a list", Trait.FROM_ASSISTANT)


def test_questions() -> None:
    assert has("Ann: That is great! How long did it take?", Trait.QUESTION)
    assert not has("Ann: That is great news for all of us! How long?", Trait.ONLY_ASKS)
    assert has("Ann: What now?", Trait.QUESTION, Trait.ONLY_ASKS)
    assert not has("Is it slow? It is fast.", Trait.QUESTION)


@each(
    ("content", "trait"),
    [
        ("we met last Tuesday", Trait.TIME),
        ("released on 2024-03-01", Trait.TIME),
        ("it took three hours", Trait.DURATION),
        ("there are 42 of them", Trait.NUMBER),
        ("there are a dozen of them", Trait.NUMBER),
        ("we hired Priya for it", Trait.NAME),
        ("she lives in Paris now", Trait.PLACE),
        ("the files are in that folder", Trait.PLACE),
        ("ask my manager", Trait.PERSON),
        ("I changed it", Trait.FIRST_PERSON),
        ("slow because of the lock", Trait.REASON),
        ("I love this editor", Trait.FEELING),
        ('I read "Dune" again', Trait.TITLE),
        ("Thanks, that works", Trait.REPLY),
    ],
)
def test_cues(content: str, trait: Trait) -> None:
    assert has(content, trait)


def test_plain_text_has_no_cues() -> None:
    assert record_traits("the lock is held by the writer").flags == 0


@each(
    ("query", "kind"),
    [
        ("When did we deploy?", QueryKind.WHEN),
        ("what time is the stand-up", QueryKind.WHEN),
        ("Where is the config kept?", QueryKind.WHERE),
        ("who owns billing", QueryKind.WHO),
        ("how many nodes", QueryKind.HOW_MANY),
        ("How many weeks did it take?", QueryKind.HOW_LONG),
        ("how long do tokens live", QueryKind.HOW_LONG),
        ("why Postgres?", QueryKind.WHY),
        ("How do I roll back?", QueryKind.HOW),
        ("which editor", QueryKind.WHICH),
        ("What does Nate want when he visits?", QueryKind.WHAT),
        ("did we drop React?", QueryKind.YES_NO),
        ("database storage decision", QueryKind.TOPIC),
        ("", QueryKind.TOPIC),
    ],
)
def test_kind_is_that_of_the_first_question_word(query: str, kind: QueryKind) -> None:
    assert query_traits(query).kind is kind


def test_names_and_words_of_a_query() -> None:
    traits = query_traits("What is Caroline's plan for March?")
    assert traits.names == {"caroline"}
    assert "caroline" in traits.words
    assert "melanie" not in traits.words
    assert "caroline" in query_traits("what did caroline say").words


@each(
    ("query", "dates"),
    [
        ("what happened on 7 February, 2022?", ((2022, 2, 7),)),
        ("on February 7th 2022", ((2022, 2, 7),)),
        ("in August 2022", ((2022, 8, 0),)),
        ("in May", ((0, 5, 0),)),
        ("on 2023-04-05", ((2023, 4, 5),)),
        ("back in 2019", ((2019, 0, 0),)),
        ("in October 2023", ((2023, 10, 0),)),
        ("what did we decide last spring", ((0, 3, 0), (0, 4, 0), (0, 5, 0))),
        ("during the summer of 2022", ((2022, 0, 0), (2022, 6, 0), (2022, 7, 0), (2022, 8, 0))),
        ("on Christmas eve", ((0, 12, 24),)),
        ("the fall of Rome", ()),
        ("may I use it?", ()),
        ("since 2023-13-41", ()),
    ],
)
def test_dates_of_a_query(query: str, dates: tuple[tuple[int, int, int], ...]) -> None:
    assert query_traits(query).dates == dates


@each(
    ("query", "ago"),
    [
        ("what did we decide last week", (0.0, 14.0)),
        ("the outage yesterday", (0.0, 2.0)),
        ("changes in the past 3 days", (0.0, 4.0)),
        ("what did I buy two weeks ago", (9.8, 18.2)),
        ("a couple of days ago", (1.4, 2.6)),
        ("deploys this month", (0.0, 30.5)),
        ("database choice", None),
    ],
)
def test_relative_times_of_a_query(query: str, ago: tuple[float, float] | None) -> None:
    assert query_traits(query).ago == (pytest.approx(ago) if ago else None)


@pytest.mark.slow
@given(st.text())
def test_any_text_has_traits(text: str) -> None:
    assert record_traits(text).flags >= 0
    assert query_traits(text).kind in QueryKind


def test_only_the_head_of_a_long_text_is_read() -> None:
    for text in ("(" * 50_000, "A: " * 20_000, "a b " * 20_000 + "?", "1/" * 30_000, '"' * 30_000):
        assert record_traits(text) == record_traits(text[:HEAD])


@each(
    ("content", "code"),
    [
        ("def add(a, b):\n    return a + b\n", True),
        ("for (let i = 0; i < n; i++) {\n  total += i;\n}", True),
        ("Call add(a, b) to sum.\nIt returns a number.\nSee also sub.", False),
        ("We use Redis.\n- as a cache\n- as a queue", False),
        ("Ann: I went to the gym today.", False),
    ],
)
def test_program_text_is_told_from_prose(content: str, code: bool) -> None:
    assert bool(record_traits(content).flags & Trait.CODE) is code


def test_a_record_that_speaks_to_somebody_says_so() -> None:
    assert record_traits("Ann: How was your trip?").flags & Trait.SECOND_PERSON
    assert not record_traits("Ann: I had a good trip.").flags & Trait.SECOND_PERSON
