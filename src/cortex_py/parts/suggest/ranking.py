"""Ranks the memories that a task may need, by their signals and by what earlier answers have taught.

Three sources speak for a memory: it was used together with what is in use (`reference_history`), it is about the task
by meaning, by the entities it names or by the files that changed (`ai_analysis`), or a person chose it for such a task
(`user_selected`). The weight of a source follows from the answers to its suggestions. All functions here are pure;
`feedback.py` computes what an answer changes.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from math import exp2, prod
from typing import Literal

__all__ = [
    "BINS", "HABIT", "PRIORS", "SOURCES", "Counts", "Cues", "RankedMemory", "Source", "Trust", "TrustKind", "age_key",
    "bin_of", "calibrate", "posterior", "rank", "trust_keys",
]  # fmt: skip

Source = Literal["user_selected", "reference_history", "ai_analysis"]
TrustKind = Literal["source", "memory", "branch", "area", "age", "category"]

SOURCES: tuple[Source, ...] = ("user_selected", "reference_history", "ai_analysis")
PRIORS: Mapping[Source, float] = {"user_selected": 1.00, "reference_history": 0.95, "ai_analysis": 0.70}
# The answers that a prior is worth, and the answers that are remembered. Together they set how fast a source loses
# and regains weight: twenty refusals about halve how often it is shown, twenty acceptances restore it.
PRIOR_WEIGHT = 12.0
MEMORY = 15.0

# What a branch uses again and again it needs, but this task may not.
HABIT = 0.5
_NOT_CHOSEN = 0.3
# A shared name or file says less than meaning, because many memories share it.
_GRAPH, _GIT = 0.4, 0.6
# Frequent use makes another use likelier, but alone suggests nothing.
_UNUSED, _USED_HALF = 0.9, 3.0

# Distrust lowers a score at most to this share, so that a memory can come back.
_NEUTRAL = 0.7
FLOOR = 0.15
# By kind: the lowest share, and the answers that the prior is worth. A single memory is judged sooner than what many
# memories share.
_LOWERED: Mapping[TrustKind, tuple[float, float]] = {
    "memory": (0.2, 2.0), "branch": (0.5, 6.0), "area": (0.5, 6.0), "age": (0.7, 6.0), "category": (0.7, 6.0),
}  # fmt: skip

_LOOKED_AT = 2  # times `top_k`: likeness matters among the best only
SAME = 0.95  # from this likeness on, two memories count as one
# A source is limited once this many answers refused it and at most one in twenty accepted it. Suggestions that are
# passed over now and then do not cause that: of five, one or two are accepted.
_REFUSED, _TAKEN = 6.0, 0.05
_DIVERSITY = 0.6  # the share of its score that a memory loses beside a nearly identical one
_ALIKE = 3  # suggestions with the same reason before all others come first

# The evidence below which nothing is offered: by meaning alone, about the recall score of 0.3 that counts as a match by
# default, and with a link that can be named. Refusals do not count here: what was never shown again could never be
# accepted again.
LEAST_ALIKE, LEAST_LINKED = 0.18, 0.04

BINS = 10
_RAW_WEIGHT = 6.0
_SAYS_NOTHING = 1e-6
_AGES = ((1.0, "day"), (7.0, "week"), (30.0, "month"), (90.0, "quarter"), (365.0, "year"))


@dataclass(frozen=True, slots=True)
class Counts:
    """How often something was accepted and refused; an answer may count for less than one."""

    accepted: float = 0.0
    refused: float = 0.0

    def plus(self, new: Counts) -> Counts:
        """The counts with an answer added; older answers fade by its weight."""
        keep = max(0.0, 1.0 - (new.accepted + new.refused) / MEMORY)
        return Counts(self.accepted * keep + new.accepted, self.refused * keep + new.refused)


Trust = Mapping[tuple[TrustKind, str], Counts]
Bins = Sequence[tuple[float, float]]
# How alike two memories are, in 0..1.
Near = Callable[[str, str], float]
_UNKNOWN = Counts()


@dataclass(frozen=True, slots=True)
class Cues:
    """The signals of a candidate.

    `used` is a strength as in `usage_log.py`; `together`, `habit`, `semantic`, `graph` and `git` are 0..1.
    """

    memory_id: str
    together: float = 0.0
    together_with: str = ""
    together_times: int = 0
    habit: float = 0.0
    habit_times: int = 0
    habit_bursts: int = 0
    semantic: float = 0.0
    by_meaning: bool = True  # false where only words were compared
    shared: tuple[str, ...] = ()  # words that the task and the memory both have
    graph: float = 0.0
    graph_entity: str = ""
    graph_with: str = ""
    git: float = 0.0
    git_file: str = ""
    selected: int = 0
    used: float = 0.0
    age_days: float = 0.0
    branch_id: str | None = None
    area: str = ""
    category: str = ""
    text_key: str = ""


@dataclass(frozen=True, slots=True)
class RankedMemory:
    """A suggestion: the `raw` score, and the `confidence` calibrated by answers."""

    memory_id: str
    source: Source
    confidence: float
    raw: float
    reason: str


def posterior(prior_mean: float, prior_weight: float, accepted: float, refused: float) -> float:
    """The mean of a Beta distribution whose prior is worth `prior_weight` answers."""
    total = prior_weight + accepted + refused
    return (prior_mean * prior_weight + accepted) / total if total > 0 else prior_mean


def age_key(days: float) -> str:
    """The name of an age group: memories of about the same age share their trust."""
    return next((name for limit, name in _AGES if days < limit), "older")


def trust_keys(signals: Cues, source: Source) -> dict[TrustKind, str]:
    """The keys under which the answers to a suggestion are counted."""
    keys: dict[TrustKind, str] = {
        "source": source,
        "memory": signals.memory_id,
        "branch": signals.branch_id or "",
        "area": signals.area,
        "age": age_key(signals.age_days),
        "category": signals.category,
    }
    return {kind: key for kind, key in keys.items() if key}


def rank(
    candidates: Sequence[Cues],
    trust: Trust,
    top_k: int,
    *,
    near: Callable[[Sequence[str]], Near] | None = None,
    bins: Bins = (),
    own: Mapping[str, Bins] | None = None,
) -> list[RankedMemory]:
    """The suggestions, the surest first, without candidates that no signal speaks for.

    `near` is called once, for the best candidates, and returns the likeness of two memories in 0..1. `bins` and, by
    source, `own` are the arguments of `calibrate`. The order of the candidates does not matter.
    """
    judged = _worth(candidates, {source: _weight(trust, source) for source in SOURCES}, trust)
    limits = _limits(candidates, judged, trust, top_k)
    if near is None:
        chosen = _diverse(judged, top_k, None, limits)
    else:
        # Where a source is limited, the candidates that replace it must be among the best.
        wide = {source: _LOOKED_AT * limit for source, limit in limits.items()}
        best = _diverse(judged, _LOOKED_AT * top_k, None, wide) if wide else judged[: _LOOKED_AT * top_k]
        chosen = _diverse(best, top_k, near([one.signals.memory_id for one in best]), limits)
    found = [
        RankedMemory(
            one.signals.memory_id,
            one.source,
            calibrate(one.raw, bins, (own or {}).get(one.source, ())),
            one.raw,
            one.reason,
        )
        for one in chosen
    ]
    return sorted(found, key=lambda one: (-one.confidence, -one.raw, one.memory_id))


def bin_of(raw: float) -> int:
    """The bin in which an answer to a suggestion with this raw score is counted."""
    return min(BINS - 1, int(_clamped(raw) * BINS))


def calibrate(raw: float, bins: Bins, own: Bins = ()) -> float:
    """The raw score, corrected by how often suggestions like it were accepted and refused.

    Each bin follows the raw score until answers outweigh it. The bins of `own`, for one source, follow those of all
    sources until their own answers outweigh them. The result is monotone: bins that would fall are joined. Between the
    middles of two bins it is linear.
    """
    raw = _clamped(raw)
    if not bins:
        return raw
    middles = [(number + 0.5) / len(bins) for number in range(len(bins))]
    line = _line(middles, bins, (0.0, 1.0))
    if own:
        line = _line(line[1:-1], own, (line[0], line[-1]))
    places = [0.0, *middles, 1.0]
    at = min(len(bins), int(raw * len(bins) + 0.5))
    along = _clamped((raw - places[at]) / (places[at + 1] - places[at]))
    # Rounding must not exceed the next value: the order is kept to the last digit.
    return min(line[at + 1], line[at] + (line[at + 1] - line[at]) * along)


def _line(expected: Sequence[float], bins: Bins, ends: tuple[float, float]) -> list[float]:
    """The values at the middles of bins after correction by answers, with the two ends."""
    means = [posterior(mean, _RAW_WEIGHT, *counts) for mean, counts in zip(expected, bins, strict=True)]
    # Only answers weigh in joined bins: an empty bin follows its neighbours.
    levels = _monotone(means, [accepted + refused + _SAYS_NOTHING for accepted, refused in bins])
    # Beyond the outer middles, the line continues as far as the expectation still counts there.
    first = levels[0] - (expected[0] - ends[0]) * _RAW_WEIGHT / (_RAW_WEIGHT + sum(bins[0]))
    last = levels[-1] + (ends[1] - expected[-1]) * _RAW_WEIGHT / (_RAW_WEIGHT + sum(bins[-1]))
    return [max(0.0, first), *levels, min(1.0, last)]


def _monotone(means: Sequence[float], weights: Sequence[float]) -> list[float]:
    """The nearest monotone values: neighbours that fall are replaced by their weighted mean."""
    pools: list[tuple[float, float, int]] = []
    for mean, weight in zip(means, weights, strict=True):
        pool = (mean, weight, 1)
        while pools and pools[-1][0] > pool[0]:
            value, heavy, count = pools.pop()
            total = heavy + pool[1]
            pool = ((value * heavy + pool[0] * pool[1]) / total, total, count + pool[2])
        pools.append(pool)
    return [value for value, _, count in pools for _ in range(count)]


@dataclass(frozen=True, slots=True)
class _Judged:
    signals: Cues
    source: Source
    raw: float
    reason: str
    alike: tuple[str, str]  # the source and the thing that the reason names


def _weight(trust: Trust, source: Source) -> float:
    counts = trust.get(("source", source), _UNKNOWN)
    return posterior(PRIORS[source], PRIOR_WEIGHT, counts.accepted, counts.refused)


def _meanings(signals: Cues) -> dict[str, float]:
    return {
        "semantic": _clamped(signals.semantic),
        "graph": _GRAPH * _clamped(signals.graph),
        "git": _GIT * _clamped(signals.git),
    }


def _evidence(signals: Cues) -> dict[Source, float]:
    """What speaks for a candidate by source, each in 0..1."""
    return {
        "user_selected": 1.0 - _NOT_CHOSEN ** max(0, signals.selected),
        "reference_history": 1.0 - (1.0 - _clamped(signals.together)) * (1.0 - HABIT * _clamped(signals.habit)),
        "ai_analysis": 1.0 - prod(1.0 - value for value in _meanings(signals).values()),
    }


def _judged(signals: Cues, weights: Mapping[Source, float], trust: Trust) -> _Judged:
    meaning, evidence = _meanings(signals), _evidence(signals)
    spoken = {source: weights[source] * evidence[source] for source in SOURCES}
    source = max(SOURCES, key=lambda one: spoken[one])
    raw = (1.0 - prod(1.0 - part for part in spoken.values())) * _lively(signals) * _trusted(signals, source, trust)
    reason, named = _reason(signals, source, max(meaning, key=lambda one: meaning[one]))
    return _Judged(signals, source, raw, reason, (source, named))


def _order(judged: _Judged) -> tuple[float, str]:
    return -judged.raw, judged.signals.memory_id


def _trusted(signals: Cues, source: Source, trust: Trust) -> float:
    """The share of its score that a memory keeps: all, unless it or what it shares with others was refused."""
    kept = 1.0
    for kind, key in trust_keys(signals, source).items():
        counts = trust.get((kind, key))
        if counts is not None and kind in _LOWERED:
            floor, weight = _LOWERED[kind]
            mean = posterior(_NEUTRAL, weight, counts.accepted, counts.refused)
            kept *= floor + (1.0 - floor) * min(1.0, mean / _NEUTRAL)
    return max(FLOOR, kept)


def _reason(signals: Cues, source: Source, strongest: str) -> tuple[str, str]:
    """The reason in words for people, and the thing that it names."""
    if source == "user_selected":
        return f"you chose it {_times(signals.selected)} for such tasks", ""
    if source == "reference_history":
        if HABIT * _clamped(signals.habit) > _clamped(signals.together):
            often = f"used in {signals.habit_times} of the last {signals.habit_bursts} rounds of this line of work"
            return often, ""
        what = f"“{signals.together_with}”" if signals.together_with else "what is in use"
        return f"loaded together with {what} {_times(signals.together_times)}".rstrip(), signals.together_with
    if strongest == "git":
        file = signals.git_file or "a file"
        return f"about {file}, which is changed on this branch", signals.git_file
    if strongest == "graph":
        beside = f"“{signals.graph_with}”" if signals.graph_with else "what fits the task"
        if not signals.graph_entity:
            return f"mentions what is near to {beside}", ""
        return f"mentions {signals.graph_entity} as does {beside}", signals.graph_entity
    if signals.shared:
        both = " and ".join(f"“{word}”" for word in signals.shared)
        return f"fits the task ({signals.semantic:.2f}): both mention {both}", ""
    return f"matches the task by {'meaning' if signals.by_meaning else 'words'} ({signals.semantic:.2f})", ""


def _times(count: int) -> str:
    return "" if count < 1 else "once" if count == 1 else f"{count} times"


def _worth(candidates: Sequence[Cues], weights: Mapping[Source, float], trust: Trust) -> list[_Judged]:
    """The scored candidates, the best first, without those that score nothing."""
    found = (_judged(one, weights, trust) for one in candidates if _is_offered(one))
    return sorted((one for one in found if one.raw > 0.0), key=_order)


def _is_offered(signals: Cues) -> bool:
    """Whether enough speaks for a candidate, whatever was answered before."""
    evidence = _evidence(signals)
    likely = 1.0 - prod(1.0 - PRIORS[source] * evidence[source] for source in SOURCES)
    linked = (
        signals.graph_entity or signals.git > 0 or signals.together > 0 or signals.habit > 0 or signals.selected > 0
    )
    return likely * _lively(signals) >= (LEAST_LINKED if linked else LEAST_ALIKE)


def _lively(signals: Cues) -> float:
    return 1.0 - (1.0 - _UNUSED) * exp2(-max(0.0, signals.used) / _USED_HALF)


def _limits(candidates: Sequence[Cues], judged: Sequence[_Judged], trust: Trust, top_k: int) -> dict[Source, int]:
    """How many suggestions a limited source may fill: half the share that its signals would give it.

    At least one, because a source that is never shown could never be accepted again.
    """
    limits: dict[Source, int] = {}
    for source in SOURCES:
        counts = trust.get(("source", source), _UNKNOWN)
        if counts.refused < _REFUSED or counts.accepted > _TAKEN * (counts.accepted + counts.refused):
            continue
        weights = {one: PRIORS[one] if one == source else _weight(trust, one) for one in SOURCES}
        before = [one.source for one in _diverse(_worth(candidates, weights, trust), top_k, None, {})]
        others = len({one.signals.memory_id for one in judged if one.source != source})
        half = before.count(source) / max(1, len(before)) / 2
        fits = (n for n in range(top_k, 0, -1) if n / (n + min(others, top_k - n)) <= half)
        limits[source] = next(fits, 1)
    return limits


def _diverse(judged: Sequence[_Judged], top_k: int, near: Near | None, limits: Mapping[Source, int]) -> list[_Judged]:
    """The best different candidates: one like a chosen one loses score, and one that is the same is left out.

    After a few with the same reason, others come first. Candidates beyond the limit of their source are left out even
    if fewer than `top_k` remain.
    """
    taken: list[_Judged] = []
    # Of a memory that was given twice the better stays.
    left = {one.signals.memory_id: one for one in reversed(judged)}
    likeness = dict.fromkeys(left, 0.0)
    reasons: Counter[tuple[str, str]] = Counter()
    filled: Counter[Source] = Counter()

    def place(one: _Judged) -> tuple[bool, float, str]:
        id = one.signals.memory_id
        return reasons[one.alike] >= _ALIKE, -one.raw * (1.0 - _DIVERSITY * likeness[id]), id

    while left and len(taken) < top_k:
        best = min(left.values(), key=place)
        taken.append(best)
        filled[best.source] += 1
        if best.alike[1]:
            reasons[best.alike] += 1
        del left[best.signals.memory_id]
        full = filled[best.source] >= limits.get(best.source, top_k)
        for id, other in list(left.items()):
            if full and other.source == best.source:
                del left[id]
                continue
            same = bool(best.signals.text_key) and best.signals.text_key == other.signals.text_key
            alike = 1.0 if same else _clamped(near(best.signals.memory_id, id)) if near is not None else 0.0
            likeness[id] = max(likeness[id], alike)
            if alike >= SAME:
                del left[id]
    return taken


def _clamped(value: float) -> float:
    """The value within 0..1; NaN counts as 0."""
    return min(1.0, value) if value > 0.0 else 0.0
