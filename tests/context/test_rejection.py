"""Why a suggestion was refused is read from plain wording, and what is not understood is called unclear."""

from __future__ import annotations

from hypothesis import given
from hypothesis import strategies as st

from cases import each
from code_samples import read_samples
from cortex_py.parts.suggest.feedback import ACCEPTANCE, EFFECTS, KINDS, RejectionKind, classify, trust_changes
from cortex_py.parts.suggest.ranking import Counts, Cues, trust_keys

PHASE, AREA, OLD, TWICE, KNOWN, OFF, UNCLEAR = KINDS

_SAMPLES = read_samples("refusals")
REASONS, HELD_BACK = (
    {reason: set(kinds.split(", ")) for kinds, reasons in _SAMPLES[part].items() for reason in reasons}
    for part in ("fitted", "held_back")
)
assert (len(REASONS), len(HELD_BACK)) == (60, 30)


@each("reason", REASONS)
def test_what_a_reason_says(reason: str) -> None:
    assert set(classify(reason)) == REASONS[reason]


def test_reasons_that_no_rule_was_made_for() -> None:
    right = [reason for reason, kinds in HELD_BACK.items() if set(classify(reason)) == kinds]
    assert len(right) >= 27


@each(
    ("reason", "kinds"),
    [
        ("It's not that it is outdated, it's a duplicate", {TWICE}),
        ("I don’t think it’s outdated, but I already know it", {KNOWN}),
        ("it isn't redundant or stale - it's for a different team", {AREA}),
        ("without being outdated it is simply off topic", {OFF}),
        ("it is the right phase but the wrong module", {AREA}), ("not the right phase", {PHASE}),
        ("it is not from a different phase, it is unrelated", {OFF}), ("no this is outdated", {OLD}),
        ("not needed, it's stale", {OLD}), ("Not relevant anymore", {OLD}),
        ("I didn't know this, but it is unrelated", {OFF}), ("not outdated", {UNCLEAR}),
        ("not useless, but I am working on this module and it is outdated", {OLD}),
    ],
)  # fmt: skip
def test_what_is_denied_is_not_said(reason: str, kinds: set[RejectionKind]) -> None:
    assert set(classify(reason)) == kinds


@each(
    "reason",
    ["", "   ", "?", "👎", "c'est obsolète", "Das ist irrelevant", "no es relevante", "устарело", "过时了", "già noto"],
)
def test_other_languages_and_silence_are_unclear(reason: str) -> None:
    assert classify(reason) == (UNCLEAR,)


@given(
    st.text(max_size=300)
    | st.lists(st.sampled_from(["not", "no", "a", "outdated", "phase", "wrong", ",", "module", "but"])).map(" ".join)
)
def test_any_text_has_kinds_in_order(reason: str) -> None:
    kinds = classify(reason)
    assert kinds
    assert list(kinds) == sorted(set(kinds), key=KINDS.index)
    assert kinds == (UNCLEAR,) or UNCLEAR not in kinds


def test_a_long_reason_costs_little() -> None:
    assert classify("not a different " * 100_000) == (UNCLEAR,)


def test_effects_lower_what_is_to_blame() -> None:
    assert dict(EFFECTS[PHASE])["branch"] > dict(EFFECTS[PHASE])["age"] > 0
    assert set(dict(EFFECTS[AREA])) == {"area", "branch"}
    assert set(dict(EFFECTS[OLD])) == {"age", "memory"}
    assert set(dict(EFFECTS[TWICE])) == set(dict(EFFECTS[KNOWN])) == {"memory"}
    for kind in (OFF, UNCLEAR):
        assert dict(EFFECTS[kind])["source"] > dict(EFFECTS[kind])["memory"] > 0
    assert all(0 < weight <= 1 for kind in KINDS for weight in EFFECTS[kind].values())


def test_an_answer_is_written_under_what_the_suggestion_was_made_of() -> None:
    keys = trust_keys(Cues("m1", age_days=400.0, branch_id="b1", area="src/auth"), "ai_analysis")
    assert trust_changes(keys, classify("different project phase")) == {
        ("branch", "b1"): Counts(0.0, 1.0),
        ("age", "older"): Counts(0.0, 0.3),
    }
    assert trust_changes(keys, ("outdated", "wrong area")) == {
        ("memory", "m1"): Counts(0.0, 1.0),
        ("age", "older"): Counts(0.0, 0.5),
        ("area", "src/auth"): Counts(0.0, 1.0),
        ("branch", "b1"): Counts(0.0, 0.3),
    }
    # There is no category, so nothing is learned of one.
    assert trust_changes(keys, None) == {
        (kind, keys[kind]): Counts(weight, 0.0) for kind, weight in ACCEPTANCE.items() if kind != "category"
    }


@given(st.sets(st.sampled_from(KINDS), min_size=1))
def test_several_kinds_are_one_answer(kinds: set[RejectionKind]) -> None:
    keys = trust_keys(Cues("m1", branch_id="b1", area="src", category="decisions"), "reference_history")
    assert all(counts.accepted == 0.0 and counts.refused <= 1.0 for counts in trust_changes(keys, kinds).values())
