"""One score for all claims: its bounds, what it may not hide, and what it says where nothing was checked."""

from __future__ import annotations

import random

from hypothesis import given
from hypothesis import strategies as st

from cases import each
from cortex_py.parts.verify.claims.claims import Claim, Uncheckable
from cortex_py.parts.verify.claims.mentions import Mention
from cortex_py.parts.verify.contradictions.contradictions import Contradiction
from cortex_py.parts.verify.verification import (
    ACCEPTED,
    REJECTED,
    Finding,
    Verdict,
    build_verification,
    compute_score,
    status_of,
)

NAMED = (Mention("symbol", "login", 0, 5, "login"),)
AGAINST = Contradiction("a", "b", "both cannot be", "number", "text", "")  # type: ignore[arg-type]


def finding(probability: float, verdict: Verdict = "supported", *, central: bool = True, hedge: float = 0.0) -> Finding:
    kind = "behaviour" if central else "reference"
    claim = Claim(f"it is {probability}", 0, 5, kind, NAMED, False, hedge, "it")  # type: ignore[arg-type]
    return Finding(claim, verdict, probability, (), "why")


def judged(probability: float, central: bool) -> Finding:
    """As the project would judge: what is likely is supported, what is not is contradicted."""
    return finding(probability, "supported" if probability >= 0.5 else "contradicted", central=central)


PROBABILITIES = st.floats(0.0, 1.0)
FINDINGS = st.lists(st.builds(judged, PROBABILITIES, st.booleans()), max_size=12)


def test_where_nothing_is_claimed_the_score_is_one_and_the_message_says_so() -> None:
    found = build_verification([], [], 1.0, [])
    assert (found.score, found.status, found.risk_level) == (1.0, "ACCEPT", "low")
    assert found.message == "Nothing was checked: the text makes no claim."
    asked = build_verification([], [Uncheckable("Shall I?", 0, 8, "question")], 1.0, [])
    assert (asked.score, asked.message) == (
        1.0,
        "Nothing was checked: the text makes no claim that can be (1 question).",
    )


def test_where_nothing_could_be_checked_the_score_is_in_the_middle() -> None:
    found = build_verification([finding(0.5, "not checkable")] * 3, [], 1.0, [])
    assert (found.score, found.status, found.risk_level) == (0.5, "WARN", "medium")
    assert "3 could not be checked." in found.message


def test_what_could_not_be_checked_counts_for_nothing_beside_what_could() -> None:
    assert compute_score([finding(0.9), finding(0.5, "not checkable")]) == compute_score([finding(0.9)])


@each(
    ("score", "status"),
    [
        (1.0, "ACCEPT"),
        (ACCEPTED, "ACCEPT"),
        (0.6999, "WARN"),
        (REJECTED, "WARN"),
        (0.2999, "REJECT"),
        (0.0, "REJECT"),
    ],
)
def test_what_stands_on_a_threshold_belongs_to_the_better_side(score: float, status: str) -> None:
    assert status_of(score) == status


@given(FINDINGS, st.integers(0, 3))
def test_a_score_lies_between_nothing_and_all(findings: list[Finding], contradictions: int) -> None:
    assert 0.0 <= compute_score(findings, contradictions) <= 1.0


@given(FINDINGS, st.floats(0.0, 0.4999))
def test_a_central_claim_that_is_contradicted_is_never_accepted(findings: list[Finding], low: float) -> None:
    among = [*findings, *[finding(1.0)] * 30, finding(low, "contradicted")]
    found = build_verification(among, [], 1.0, [])
    assert found.score < ACCEPTED
    assert found.status != "ACCEPT"
    assert found.risk_level == "high"


@given(FINDINGS)
def test_a_text_that_contradicts_itself_is_never_accepted(findings: list[Finding]) -> None:
    found = build_verification([*findings, finding(1.0)], [], 1.0, [AGAINST])
    assert found.status != "ACCEPT"


@given(FINDINGS, st.integers(0, 1000))
def test_the_order_of_the_claims_does_not_matter(findings: list[Finding], seed: int) -> None:
    mixed = random.Random(seed).sample(findings, len(findings))
    assert compute_score(mixed) == compute_score(findings)


@given(st.lists(PROBABILITIES, min_size=1, max_size=8), st.integers(0, 7), PROBABILITIES)
def test_a_likelier_claim_never_lowers_the_score(values: list[float], at: int, other: float) -> None:
    at %= len(values)
    low, high = sorted((values[at], other))
    before = [judged(low if place == at else value, True) for place, value in enumerate(values)]
    after = [judged(high if place == at else value, True) for place, value in enumerate(values)]
    assert compute_score(after) >= compute_score(before) - 1e-12


@given(FINDINGS.filter(bool))
def test_a_certain_claim_more_never_lowers_the_score_and_a_wrong_one_never_raises_it(findings: list[Finding]) -> None:
    before = compute_score(findings)
    assert compute_score([*findings, finding(1.0)]) >= before - 1e-12
    assert compute_score([*findings, finding(0.0, "contradicted")]) <= before + 1e-12


@given(st.lists(st.floats(0.7, 1.0), max_size=20), st.sampled_from(("unverified", "not found")), st.booleans())
def test_one_claim_that_nothing_bears_out_is_enough_for_a_warning(
    values: list[float], verdict: Verdict, central: bool
) -> None:
    open_one = finding(0.65, verdict, central=central)
    assert status_of(compute_score([*map(finding, values), open_one])) == "WARN"


@given(st.lists(st.floats(0.7, 1.0), min_size=1, max_size=20))
def test_a_text_of_supported_claims_is_accepted(values: list[float]) -> None:
    found = build_verification([finding(value) for value in values], [], 1.0, [])
    assert found.status == "ACCEPT"
    assert found.risk_level == "low"


@given(st.lists(PROBABILITIES, min_size=1, max_size=10))
def test_the_score_falls_with_the_worst_rather_than_with_the_mean(values: list[float]) -> None:
    assert compute_score([finding(value) for value in values]) <= max(0.01, sum(values) / len(values)) + 1e-9


def test_what_is_only_mentioned_matters_less() -> None:
    true = [finding(0.95)] * 4
    aside = compute_score([*true, finding(0.05, "contradicted", central=False)])
    central = compute_score([*true, finding(0.05, "contradicted")])
    assert central < aside


def test_doubt_lowers_the_risk_and_not_the_score() -> None:
    plain = build_verification([finding(0.45, "contradicted"), finding(0.9)], [], 1.0, [])
    doubted = build_verification([finding(0.45, "contradicted", hedge=0.6), finding(0.9)], [], 0.4, [])
    assert plain.score == doubted.score
    assert (plain.risk_level, doubted.risk_level) == ("high", "medium")


def test_a_message_names_what_is_wrong_and_how_much_more() -> None:
    wrong = [finding(0.01 * n, "contradicted") for n in range(1, 6)]
    message = build_verification([finding(0.9), *wrong], [], 1.0, [AGAINST], ["A note."]).message
    assert message.startswith("1 of 6 claims is supported. Contradicted: “it is 0.01” (why)")
    assert "and 2 more." in message
    assert message.endswith("1 contradiction found. A note.")
    assert build_verification([finding(0.9)], [], 1.0, []).message == "The claim is supported by evidence."
