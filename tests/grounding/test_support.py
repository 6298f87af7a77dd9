"""Whether evidence supports a claim: figures by value, negations, names and units; any text gets an answer."""

from __future__ import annotations

import json
from importlib import resources

import pytest
from hypothesis import given
from hypothesis import strategies as st

from cases import each
from cortex_py.parts.verify.judges.support import (
    FEATURE_NAMES,
    SupportModel,
    compare,
    default_model,
    find_counterpart,
    rank,
    read_figures,
    read_passage,
    support,
)
from timing import quick

TEXTS = st.text(max_size=200)
WORDS = ("The", "parser", "tested", "by", "53", "users", "since", "2019", "not", "over", "$", "5", "million")


@each(
    ("claim", "supporting", "other"),
    [
        ("The cluster has over 50 servers.", "The cluster has 53 servers.", "The cluster has 47 servers."),
        ("The cluster has over 50 servers.", "The cluster has 53 servers.", "53 chickens crossed the road."),
        ("Fewer than 300 people came.", "280 people came.", "310 people came."),
        ("At least 50 users signed up.", "50 users signed up.", "49 users signed up."),
        ("Between 40 and 60 people came.", "53 people came.", "75 people came."),
        ("Under 2 million copies were sold.", "It sold 1.9 million copies.", "It sold 2.4 million copies."),
        ("It earned more than US $ 1 billion.", "It earned $1.2 billion.", "It earned $1.2 million."),
        ("The timeout is 5 seconds.", "The timeout is 5000 ms.", "The timeout is 5 minutes."),
        ("Sales rose 24%.", "Sales rose 24 percent.", "Sales rose 42 percent."),
        ("Sales rose 24%.", "Sales rose 24 percent.", "Sales fell 24 percent."),
        ("It was the second album.", "It was the second album.", "It was the third album."),
        ("The release was before May 5, 2020.", "The release was on 1 May 2020.", "The release was on 9 May 2020."),
        ("It came out in 2006.", "It was released in June 2006.", "It was released in June 2009."),
        ("We use PostgreSQL 15.", "We use PostgreSQL 15 here.", "We use PostgreSQL 14 here."),
        ("Guests are allowed to write.", "Guests are allowed to write here.", "Guests are not allowed to write."),
        ("The job never retries.", "The job never retries.", "The job retries."),
        ("The cache is enabled.", "The cache is enabled there.", "The cache is disabled there."),
        ("Alice Brown wrote the parser.", "The parser was written by Alice Brown.", "Bob Stone wrote the parser."),
        ("The parser is tested.", "The parser is tested.", "The parser might be tested."),
    ],
)
def test_supporting_evidence_is_told_from_what_only_looks_like_it(claim: str, supporting: str, other: str) -> None:
    good, bad = support(claim, [supporting]).probability, support(claim, [other]).probability
    assert good > 0.5
    assert good > bad + 0.05


@each(
    ("claimed", "told", "verdict"),
    [
        ("over 50 users", "53 users", "follows"),
        ("over 50 users", "47 users", "against"),
        ("over 50 users", "50 users", "against"),
        ("at least 50 users", "50 users", "follows"),
        ("at most 50 users", "50 users", "follows"),
        ("over 50 users", "over 60 users", "follows"),
        ("over 50 users", "over 40 users", "open"),
        ("under 375 users", "over 400 users", "against"),
        ("50 users", "over 40 users", "open"),
        ("50 users", "53 users", "against"),
        ("under 2 million users", "1,900,000 users", "follows"),
        ("more than 1,500 cases", "1565 cases", "follows"),
        ("after March 2015", "April 2015", "follows"),
        ("before 2010", "12 May 2009", "follows"),
        ("12 May 2009", "13 May 2009", "against"),
        ("12 May", "12 May 2009", "equal"),
        ("12 May 2009", "the year 2009", "open"),
    ],
)
def test_figures_are_compared_by_value(claimed: str, told: str, verdict: str) -> None:
    left, right = (read_figures(read_passage(f"There were {text}.").statement) for text in (claimed, told))
    other = find_counterpart(left[0], right)
    assert other is not None
    assert compare(left[0], other) == verdict


def test_a_figure_is_laid_beside_the_one_with_the_same_words_around() -> None:
    claim = read_figures(read_passage("There were 5 deaths.").statement)[0]
    told = read_figures(read_passage("There were 5 recoveries and 7 deaths.").statement)
    assert [figure.value for figure in told] == [(5.0,), (7.0,)]
    assert read_figures(read_passage("COVID-19 spread.").statement) == []
    assert find_counterpart(claim, told[1:]) is told[1]
    assert find_counterpart(claim, []) is None


def test_sentences_together_support_what_none_does_alone() -> None:
    claim = "Ada designed the parser and Grace tested the store."
    halves = ["Ada designed the parser.", "Lunch is at noon.", "Grace tested the store."]
    assert support(claim, halves).probability > max(support(claim, [half]).probability for half in halves)
    assert set(rank(claim, halves)[:2]) == {0, 2}


def test_the_best_sentence_is_named_and_what_was_told_counts_less() -> None:
    sentences = ["Lunch is at noon.", "The timeout is five seconds.", "Timeouts are a nuisance."]
    assert support("The timeout is 5 seconds.", sentences).best == 1
    assert rank("The timeout is 5 seconds.", sentences)[0] == 1
    assert rank("zebra", sentences, [0.1, 0.2, 0.9]) == [2, 1, 0]


def test_nothing_supports_and_nothing_is_supported() -> None:
    for claim, evidence in (("", ["a fact"]), ("a claim", []), ("a claim", ["", " "]), ("  ", [])):
        found = support(claim, evidence)
        assert (found.probability, found.best) == (0.0, -1)
    assert rank("a claim", []) == []
    with pytest.raises(ValueError, match="one cosine per sentence"):
        support("a claim", ["a fact"], [])


def test_the_shipped_model_weighs_what_is_computed() -> None:
    text = resources.files("cortex_py.parts.verify.judges").joinpath("support_model.json").read_text("utf-8")
    content = json.loads(text)
    assert set(FEATURE_NAMES) <= set(support("a claim", ["a fact"]).features)
    assert default_model() == SupportModel.from_json(text)
    with pytest.raises(ValueError, match="differ from the computed"):
        SupportModel.from_json(json.dumps(content | {"weights": {}}))


@given(TEXTS, st.lists(TEXTS, max_size=8))
def test_any_text_is_answered_alike_each_time(claim: str, evidence: list[str]) -> None:
    found = support(claim, evidence)
    assert 0.0 <= found.probability <= 1.0
    assert -1 <= found.best < len(evidence)
    assert sorted(rank(claim, evidence)) == list(range(len(evidence)))
    assert found == support(claim, evidence)


@given(st.lists(st.sampled_from(WORDS), max_size=12))
def test_spaces_make_no_difference(words: list[str]) -> None:
    claim = "The parser has over 50 users."
    assert support(claim, [" ".join(words)]) == support(f"\n {claim} ", ["  \t".join([*words, ""])])


def test_capitals_make_no_difference() -> None:
    claim, told = "Over 50 guests came to Oslo in 2019.", "In 2019, 53 guests came to Oslo."
    assert support(claim.lower(), [told.upper()]).probability == support(claim, [told]).probability


@given(st.integers(1, 10**6), st.integers(1, 10**6))
def test_a_bound_is_kept_by_arithmetic(bound: int, value: int) -> None:
    claim = read_figures(read_passage(f"more than {bound:,} users").statement)[0]
    told = read_figures(read_passage(f"{value:,} users").statement)[0]
    assert (compare(claim, told) == "follows") == (value > bound)


@each("text", ["word " * 200_000, "9" * 1_000_000, "not " * 250_000, "a" * 1_000_000, "\ud800 x"])
def test_long_and_broken_texts_take_no_time(text: str) -> None:
    quick(lambda: support(text, [text, "5 words"]), 3)
    pieces = [text[place : place + 100] for place in range(0, len(text), 100)][:3000]
    quick(lambda: support("5 words are here", pieces), 3)
