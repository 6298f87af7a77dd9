"""One ranking of what a task will need: it says why, learns from answers, and is as sure as it is right."""

from __future__ import annotations

import random
from collections.abc import Callable, Sequence
from dataclasses import fields, replace

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from cases import each
from cortex_py.parts.suggest.feedback import trust_changes
from cortex_py.parts.suggest.ranking import (
    BINS,
    FLOOR,
    MEMORY,
    PRIORS,
    SOURCES,
    Counts,
    Cues,
    RankedMemory,
    Source,
    Trust,
    TrustKind,
    age_key,
    bin_of,
    calibrate,
    posterior,
    rank,
    trust_keys,
)

NOTHING: Trust = {}

unit = st.floats(0.0, 1.0)
signals = st.builds(
    Cues,
    memory_id=st.integers(0, 999).map("m{:03}".format),
    together=st.floats(0.0, 20.0) | st.just(float("nan")),
    together_with=st.sampled_from(["", "JWT decision", "Schema"]),
    together_times=st.integers(0, 9),
    habit=unit | st.just(float("nan")),
    habit_times=st.integers(0, 9),
    habit_bursts=st.integers(0, 20),
    semantic=unit | st.just(float("nan")),
    graph=unit,
    graph_entity=st.sampled_from(["", "PostgreSQL"]),
    git=unit,
    git_file=st.sampled_from(["", "auth.py"]),
    selected=st.integers(0, 4),
    used=st.floats(0.0, 50.0) | st.just(float("inf")),
    age_days=st.floats(0.0, 2000.0),
    branch_id=st.sampled_from([None, "b1", "b2"]),
    area=st.sampled_from(["", "src/auth"]),
    category=st.sampled_from(["", "decisions"]),
    text_key=st.sampled_from(["", "", "", "k1", "k2"]),
)
pools = st.lists(signals, max_size=12, unique_by=lambda one: one.memory_id)
counts = st.builds(Counts, st.floats(0.0, 50.0), st.floats(0.0, 50.0))
trusts = st.dictionaries(
    st.sampled_from(
        [("source", source) for source in SOURCES]
        + [("branch", "b1"), ("area", "src/auth"), ("age", "week"), ("category", "decisions"), ("memory", "m001")]
    ),
    counts,
)
tables = st.lists(st.tuples(st.floats(0.0, 200.0), st.floats(0.0, 200.0)), min_size=BINS, max_size=BINS)


def one(candidate: Cues, trust: Trust = NOTHING) -> RankedMemory:
    (found,) = rank([candidate], trust, 5)
    return found


@each(
    ("candidate", "source", "reason"),
    [
        (
            Cues("m", together=3.0, together_with="JWT decision", together_times=6),
            "reference_history",
            "loaded together with “JWT decision” 6 times",
        ),
        (
            Cues("m", together=1.0, together_with="JWT decision", together_times=1),
            "reference_history",
            "loaded together with “JWT decision” once",
        ),
        (Cues("m", together=1.0), "reference_history", "loaded together with what is in use"),
        (Cues("m", git=1.0, git_file="auth.py"), "ai_analysis", "about auth.py, which is changed on this branch"),
        (Cues("m", semantic=0.82, graph=1.0), "ai_analysis", "matches the task by meaning (0.82)"),
        (
            Cues("m", graph=1.0, graph_entity="PostgreSQL", graph_with="Schema"),
            "ai_analysis",
            "mentions PostgreSQL as does “Schema”",
        ),
        (Cues("m", graph=1.0, graph_with="Schema"), "ai_analysis", "mentions what is near to “Schema”"),
        (Cues("m", graph=1.0), "ai_analysis", "mentions what is near to what fits the task"),
        (
            Cues("m", habit=0.4, habit_times=6, habit_bursts=20),
            "reference_history",
            "used in 6 of the last 20 rounds of this line of work",
        ),
        (
            Cues("m", habit=0.4, habit_times=6, habit_bursts=20, together=0.5, together_times=2),
            "reference_history",
            "loaded together with what is in use 2 times",
        ),
        (Cues("m", selected=3), "user_selected", "you chose it 3 times for such tasks"),
        (Cues("m", selected=1, semantic=0.5), "user_selected", "you chose it once for such tasks"),
    ],
)
def test_a_suggestion_says_why(candidate: Cues, source: Source, reason: str) -> None:
    found = one(candidate)
    assert (found.source, found.reason) == (source, reason)


def test_a_source_is_as_sure_as_the_document_says_at_most() -> None:
    sure = {
        "reference_history": Cues("m", together=1e9, used=1e9),
        "ai_analysis": Cues("m", semantic=1.0, graph=1.0, git=1.0, used=1e9),
        "user_selected": Cues("m", selected=1000, used=1e9),
    }
    for source in SOURCES:
        assert one(sure[source]).confidence == pytest.approx(PRIORS[source])
    assert PRIORS == {"user_selected": 1.00, "reference_history": 0.95, "ai_analysis": 0.70}


@given(pools, trusts, st.integers(-1, 8), tables)
def test_what_always_holds(pool: list[Cues], trust: Trust, top_k: int, bins: list[tuple[float, float]]) -> None:
    found = rank(pool, trust, top_k, bins=bins)
    assert found == rank(pool[::-1], trust, top_k, bins=bins), "the order of the candidates does not matter"
    assert len(found) <= max(0, top_k)
    assert len({ranked.memory_id for ranked in found}) == len(found)
    known = {candidate.memory_id: candidate for candidate in pool}
    keys = [known[ranked.memory_id].text_key for ranked in found if known[ranked.memory_id].text_key]
    assert len(keys) == len(set(keys)), "no text twice"
    for ranked in found:
        assert 0.0 < ranked.raw <= 1.0
        assert 0.0 <= ranked.confidence <= 1.0
        assert ranked.source != "user_selected" or known[ranked.memory_id].selected > 0
        assert ranked.reason
    assert [ranked.confidence for ranked in found] == sorted((ranked.confidence for ranked in found), reverse=True)


@given(signals, st.sampled_from(["together", "habit", "semantic", "graph", "git", "selected", "used"]), trusts)
def test_more_evidence_never_makes_less_sure(candidate: Cues, name: str, trust: Trust) -> None:
    value = getattr(candidate, name)
    if value != value or value == float("inf"):
        return
    more = replace(candidate, **{name: value + 1 if name in ("together", "selected", "used") else (1.0 + value) / 2})
    before = {ranked.memory_id: ranked.raw for ranked in rank([candidate], trust, 1)}
    after = {ranked.memory_id: ranked.raw for ranked in rank([more], trust, 1)}
    assert after.get(candidate.memory_id, 0.0) >= before.get(candidate.memory_id, 0.0) - 1e-12


def test_nothing_is_suggested_without_evidence() -> None:
    assert rank([Cues("m", used=100.0, branch_id="b1", category="decisions")], NOTHING, 5) == []
    assert rank([], NOTHING, 5) == []


def test_ties_are_broken_by_id() -> None:
    pool = [Cues(f"m{number}", semantic=0.5) for number in (3, 1, 2)]
    assert [ranked.memory_id for ranked in rank(pool, NOTHING, 2)] == ["m1", "m2"]


def test_a_memory_given_twice_is_suggested_once_with_the_better_evidence() -> None:
    (found,) = rank([Cues("m", semantic=0.3), Cues("m", semantic=0.9)], NOTHING, 5)
    assert found.reason == "matches the task by meaning (0.90)"


def test_five_suggestions_are_not_one() -> None:
    groups = {f"{group}{number}": group for group in "ab" for number in range(5)}
    pool = [Cues(id, semantic=0.8 if group == "a" else 0.5) for id, group in groups.items()]

    def near(a: str, b: str) -> float:
        return 0.9 if groups[a] == groups[b] else 0.1

    asked: list[list[str]] = []

    def all_near(ids: Sequence[str]) -> Callable[[str, str], float]:
        asked.append(list(ids))
        return near

    plain, varied = rank(pool, NOTHING, 4), rank(pool, NOTHING, 4, near=all_near)
    assert len(asked) == 1, "what is alike is asked for once, of the best"
    assert {ranked.memory_id for ranked in varied} <= set(asked[0])
    assert {groups[ranked.memory_id] for ranked in plain} == {"a"}
    assert {groups[ranked.memory_id] for ranked in varied} == {"a", "b"}
    assert varied[0] == plain[0]
    assert len(rank(pool, NOTHING, 4, near=lambda _: lambda a, b: 1.0)) == 1, "what is the same is suggested once"


def test_at_most_three_for_one_reason_while_there_are_others() -> None:
    same = [Cues(f"a{n}", together=5.0, together_with="JWT decision", together_times=4) for n in range(6)]
    other = [Cues("b1", semantic=0.4), Cues("b2", semantic=0.3)]
    assert sum(ranked.memory_id[0] == "a" for ranked in rank([*same, *other], NOTHING, 5)) == 3
    assert len(rank(same, NOTHING, 5)) == 5, "room that is left is filled"


def test_age_has_names() -> None:
    assert [age_key(days) for days in (0, 1, 7, 30, 90, 365)] == ["day", "week", "month", "quarter", "year", "older"]


def test_a_suggestion_is_made_of_what_is_known() -> None:
    assert trust_keys(Cues("m1"), "ai_analysis") == {"source": "ai_analysis", "memory": "m1", "age": "day"}
    assert {field.name for field in fields(Cues)} >= {"memory_id", "together", "semantic", "graph", "git"}


@given(unit, st.floats(0.1, 50.0), st.floats(0.0, 100.0), st.floats(0.0, 100.0))
def test_a_posterior_lies_between_the_prior_and_the_answers(p: float, w: float, yes: float, no: float) -> None:
    mean = posterior(p, w, yes, no)
    rate = yes / (yes + no) if yes + no else p
    assert min(p, rate) - 1e-9 <= mean <= max(p, rate) + 1e-9


def test_counts_forget() -> None:
    kept = Counts()
    for _ in range(200):
        kept = kept.plus(Counts(0.0, 1.0))
    assert kept.refused == pytest.approx(MEMORY, rel=0.01)


@given(signals, counts, st.sampled_from(["memory", "branch", "area", "age", "category"]))
def test_distrust_lowers_mildly_and_trust_never_raises(candidate: Cues, held: Counts, kind: TrustKind) -> None:
    key = trust_keys(candidate, "ai_analysis").get(kind)
    for ranked in rank([candidate], NOTHING if key is None else {(kind, key): held}, 1):
        before = one(candidate)
        assert before.raw * FLOOR <= ranked.raw <= before.raw + 1e-12


def test_a_memory_that_is_refused_again_and_again_sinks_and_comes_back() -> None:
    candidate, trust, raws = Cues("m", semantic=0.8), dict[tuple[TrustKind, str], Counts](), [0.0]
    for kinds in [("outdated",)] * 5 + [None] * 15:
        raws.append(one(candidate, trust).raw)
        for key, lesson in trust_changes(trust_keys(candidate, "ai_analysis"), kinds).items():
            trust[key] = trust.get(key, Counts()).plus(lesson)
    assert raws[6] < 0.6 * raws[1]
    assert raws[-1] > 0.85 * raws[1]


def mixed(seed: int, size: int, chosen: float, together: float, meaning: float) -> list[Cues]:
    """Candidates as a project has them: most known by meaning, some by use, a few by choice."""
    chance = random.Random(seed)

    def maybe(likely: float, draw: Callable[[], float]) -> float:
        return draw() if chance.random() < likely else 0.0

    return [
        Cues(
            f"m{number:03}",
            together=maybe(together, lambda: chance.expovariate(1.25)),
            together_with=f"t{number % 7}",
            together_times=3,
            semantic=maybe(meaning, lambda: chance.betavariate(2.5, 3.0)),
            graph=maybe(0.3, chance.random),
            graph_entity=f"e{number}",
            git=maybe(0.2, chance.random),
            git_file=f"f{number}.py",
            selected=int(maybe(chosen, lambda: chance.choice([1, 1, 2, 3]))),
            used=chance.expovariate(1.0),
        )
        for number in range(size)
    ]


WORLDS = {
    "balanced": [mixed(seed, 40, 0.05, 0.25, 0.8) for seed in range(60)],
    "little history": [mixed(seed, 40, 0.03, 0.12, 0.9) for seed in range(60)],
    "few candidates": [mixed(seed, 15, 0.10, 0.30, 0.7) for seed in range(60)],
}


def share(world: str, source: Source, held: Counts) -> float:
    shown = [ranked.source for pool in WORLDS[world] for ranked in rank(pool, {("source", source): held}, 5)]
    return shown.count(source) / len(shown)


def answered(held: Counts, accepted: bool, times: int) -> Counts:
    for _ in range(times):
        held = held.plus(Counts(1.0, 0.0) if accepted else Counts(0.0, 1.0))
    return held


@pytest.mark.slow
def test_twenty_refusals_halve_a_source_and_twenty_acceptances_mend_it() -> None:
    refused = answered(Counts(), False, 20)
    mended = answered(refused, True, 20)
    fallen: list[float] = []
    for world in WORLDS:
        for source in SOURCES:
            before = share(world, source, Counts())
            fallen.append(share(world, source, refused) / before)
            assert share(world, source, mended) >= 0.8 * before, (world, source)
    assert max(fallen) <= 0.5, fallen


@given(pools, st.sampled_from(SOURCES))
def test_a_source_that_is_turned_down_is_never_silenced_altogether(pool: list[Cues], source: Source) -> None:
    trust: Trust = {("source", source): answered(Counts(), False, 20)}
    for top_k in (1, 5):
        before, after = ([ranked.source for ranked in rank(pool, known, top_k)] for known in (NOTHING, trust))
        # What fell to another source, or has no other beside it, is still shown.
        assert bool(after) == bool(before)
        assert after.count(source) <= max(1, before.count(source))


def test_what_is_passed_over_now_and_then_fills_all_places_still() -> None:
    pool = [Cues(f"m{number}", semantic=0.5) for number in range(8)]
    for accepted, shown in ((0.0, 1), (1.0, 5)):
        trust: Trust = {("source", "ai_analysis"): Counts(accepted, 12.0)}
        assert len(rank(pool, trust, 5)) == shown


@given(unit, unit, tables)
def test_the_surer_stays_the_surer(a: float, b: float, bins: list[tuple[float, float]]) -> None:
    low, high = sorted((a, b))
    assert 0.0 <= calibrate(low, bins) <= calibrate(high, bins) <= 1.0


@given(unit)
def test_without_answers_the_raw_confidence_stands(raw: float) -> None:
    assert calibrate(raw, []) == raw
    assert calibrate(raw, [(0.0, 0.0)] * BINS) == pytest.approx(raw)


def test_bins_part_zero_to_one() -> None:
    assert [bin_of(raw) for raw in (-1.0, 0.0, 0.05, 0.1, 0.95, 1.0, 7.0, float("nan"))] == [0, 0, 0, 1, 9, 9, 9, 0]


# Chances of acceptance that a raw confidence of so much really has.
DISTORTED: dict[str, Callable[[float], float]] = {
    "right already": lambda raw: raw, "too sure": lambda raw: raw * raw, "not sure enough": lambda raw: raw**0.5,
    "half as good": lambda raw: 0.5 * raw, "hardly telling": lambda raw: 0.3 + 0.3 * raw,
    "all or nothing": lambda raw: 0.15 if raw < 0.6 else 0.85, "upside down": lambda raw: 1.0 - raw,
    "never": lambda raw: 0.03, "always": lambda raw: 0.97,
}  # fmt: skip
SHOWN: dict[str, Callable[[random.Random], float]] = {
    "all over": lambda chance: chance.random(),
    "mostly sure": lambda chance: chance.betavariate(5.0, 2.0),
    "all alike": lambda chance: chance.uniform(0.8, 0.95),
}


def error_after(answers: int, world: Callable[[float], float], shown: Callable[[random.Random], float]) -> float:
    """The expected calibration error on new suggestions, over ten bins of confidence; the mean of some runs."""
    runs = 6
    total = 0.0
    for seed in range(runs):
        chance = random.Random(seed)
        table = [[0.0, 0.0] for _ in range(BINS)]
        for _ in range(answers):
            raw = shown(chance)
            table[bin_of(raw)][chance.random() >= world(raw)] += 1.0
        bins = [(accepted, refused) for accepted, refused in table]
        gaps = [0.0] * BINS
        for _ in range(300):
            raw = shown(chance)
            confidence = calibrate(raw, bins)
            gaps[bin_of(confidence)] += confidence - world(raw)
        total += sum(map(abs, gaps)) / 300
    return total / runs


@pytest.mark.slow
@each("shown", SHOWN)
@each("world", DISTORTED)
def test_confidence_becomes_right_as_answers_come(world: str, shown: str) -> None:
    before, after = (error_after(answers, DISTORTED[world], SHOWN[shown]) for answers in (0, 300))
    assert after <= 0.10
    assert after <= max(before, 0.06)


@given(unit, unit, tables, tables)
def test_the_surer_stays_the_surer_within_a_source(
    a: float, b: float, bins: list[tuple[float, float]], own: list[tuple[float, float]]
) -> None:
    low, high = sorted((a, b))
    assert 0.0 <= calibrate(low, bins, own) <= calibrate(high, bins, own) <= 1.0


@given(unit, tables)
def test_a_source_without_answers_is_as_sure_as_all_are(raw: float, bins: list[tuple[float, float]]) -> None:
    assert calibrate(raw, bins, [(0.0, 0.0)] * BINS) == pytest.approx(calibrate(raw, bins), abs=1e-6)


def test_sources_that_are_right_more_and_less_often_part_as_answers_come() -> None:
    chance = random.Random(3)
    rates = {"reference_history": 0.8, "ai_analysis": 0.2}
    own = {source: [[0.0, 0.0] for _ in range(BINS)] for source in rates}
    bins = [[0.0, 0.0] for _ in range(BINS)]
    for _ in range(300):
        for source, rate in rates.items():
            raw, wrong = chance.random(), chance.random() >= rate
            own[source][bin_of(raw)][wrong] += 1.0
            bins[bin_of(raw)][wrong] += 1.0
    together = [(yes, no) for yes, no in bins]
    for source, rate in rates.items():
        apart = [(yes, no) for yes, no in own[source]]
        places = [number / 20 for number in range(1, 20)]
        gaps = [abs(calibrate(raw, together, apart) - rate) for raw in places]
        shared = [abs(calibrate(raw, together) - rate) for raw in places]
        assert sum(gaps) / len(gaps) < 0.1 < sum(shared) / len(shared)


@settings(max_examples=20)
@given(pools)
def test_confidence_is_the_raw_one_as_answers_correct_it(pool: list[Cues]) -> None:
    bins = [(0.0, 20.0)] * BINS
    for ranked in rank(pool, NOTHING, 5, bins=bins):
        assert ranked.confidence == calibrate(ranked.raw, bins)


def test_weak_evidence_is_not_offered_unless_a_link_can_be_named() -> None:
    weak = Cues("weak", semantic=0.25)
    linked = Cues("linked", semantic=0.02, graph=0.2, graph_entity="Redis", graph_with="a note")
    assert [one.memory_id for one in rank([weak, linked], {}, 5)] == ["linked"]
    assert rank([Cues("enough", semantic=0.3)], {}, 5)
    assert rank([Cues("barely", graph=0.01, graph_entity="Redis")], {}, 5) == []


def test_the_reason_names_what_the_task_and_the_memory_share() -> None:
    (found,) = rank([Cues("m", semantic=0.9, shared=("CSV", "export"))], {}, 5)
    assert found.reason == "fits the task (0.90): both mention “CSV” and “export”"
