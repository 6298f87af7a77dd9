"""How well the sentences of some evidence bear out a claim. Pure.

`rank` orders sentences by how much of the claim they tell; the best few are read together and weighed by a logistic
model, whose coefficients and word weights live in `support_model.json`, made by `bench/train_support.py`. Vectors come
from the caller, as cosines of the claim with each sentence; without them the words alone are asked.
"""

from __future__ import annotations

import json
import math
from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import lru_cache
from importlib import resources

from .support_features import Passage, WordWeights, read_passage, support_features, whole_features

__all__ = ["FEATURE_NAMES", "Support", "SupportModel", "default_model", "features_of", "rank", "support"]

FEATURE_NAMES = (
    "coverage", "coverage_second", "last_covered", "one_missing", "figureless", "figureless_coverage",
    "figureless_all", "near_pairs", "density", "negation", "opposites", "extremes_missing", "hedged", "number_equal",
    "number_follows", "number_likely", "number_open", "number_against", "number_absent", "number_compared",
    "date_equal", "date_follows", "date_likely", "date_open", "date_against", "date_absent", "date_compared",
    "claim_length", "document", "document_coverage", "whole_near_pairs", "whole_figures", "sentences", "cosine",
)  # fmt: skip
_USUAL_COSINE = 0.65  # that of a claim and a text about the same, where none is told
_CLAIM = 2000  # characters of a claim that are read
_ALL = 400_000  # characters of all evidence together; what comes later is not read
_FOCUS = 5  # sentences that are read together
_WORDS = 0.65  # the part of a sentence's score that comes from words; the rest is its cosine
_TOLD = 0.7  # what a word is still worth once a sentence before has told it
_PICKED = 8  # sentences that are chosen one after the other; the others follow by their own score
_CANDIDATES = 100  # among how many they are chosen


@dataclass(frozen=True, slots=True)
class Support:
    """How likely the evidence bears the claim out, which sentence does most (-1 for none), and what was weighed."""

    probability: float
    best: int
    features: Mapping[str, float]


@dataclass(frozen=True, slots=True)
class SupportModel:
    """The coefficients of the logistic model and how telling words are."""

    coefficients: Mapping[str, float]
    offset: float
    words: WordWeights

    @classmethod
    def from_json(cls, text: str) -> SupportModel:
        """The model in a file as `bench/train_support.py` writes it."""
        content = json.loads(text)
        if set(content["weights"]) != set(FEATURE_NAMES):
            raise ValueError("the support model weighs other features than those that are computed")
        words = WordWeights(content["words"], float(content["rare"]))
        return cls({name: float(content["weights"][name]) for name in FEATURE_NAMES}, float(content["offset"]), words)

    def probability(self, features: Mapping[str, float]) -> float:
        total = self.offset + sum(weight * features[name] for name, weight in self.coefficients.items())
        return 0.5 + 0.5 * math.tanh(0.5 * total)


@lru_cache(maxsize=1)
def default_model() -> SupportModel:
    """The model that ships with the package."""
    text = resources.files("cortex_py.grounding").joinpath("support_model.json").read_text("utf-8")
    return SupportModel.from_json(text)


def support(claim: str, evidence: Sequence[str], cosines: Sequence[float] | None = None) -> Support:
    """How likely the sentences together bear the claim out; `cosines` has one value per sentence."""
    model = default_model()
    best, features = features_of(claim, evidence, cosines, model.words)
    if best < 0 or not claim.strip():
        return Support(0.0, -1, features)
    return Support(model.probability(features), best, features)


def rank(claim: str, sentences: Sequence[str], cosines: Sequence[float] | None = None) -> list[int]:
    """The places of all sentences, the one that tells most of the claim first."""
    return _order(read_passage(claim[:_CLAIM]), _read_all(sentences), _checked(sentences, cosines))


def features_of(
    claim: str, evidence: Sequence[str], cosines: Sequence[float] | None, words: WordWeights
) -> tuple[int, dict[str, float]]:
    """The best sentence and what the model weighs."""
    said, told, near = read_passage(claim[:_CLAIM]), _read_all(evidence), _checked(evidence, cosines)
    order = _order(said, told, near)
    focus = sorted(order[:_FOCUS])
    together = told[focus[0]] if len(focus) == 1 else read_passage("\n".join(evidence[place] for place in focus))
    features = support_features(said, together, words) | whole_features(said, told, words, _FOCUS)
    features["cosine"] = max((near[place] for place in focus), default=0.0) if near else _USUAL_COSINE
    return (order[0] if order and not together.statement.empty else -1), features


def _checked(evidence: Sequence[str], cosines: Sequence[float] | None) -> list[float]:
    if cosines is None:
        return []
    if len(cosines) != len(evidence):
        raise ValueError("there must be one cosine per sentence")
    return [min(1.0, max(-1.0, float(value))) if math.isfinite(value) else 0.0 for value in cosines]


def _read_all(evidence: Sequence[str]) -> list[Passage]:
    """Sentences after so much text are taken as empty, so that their places stay."""
    told, left = [], _ALL
    for sentence in evidence:
        told.append(read_passage(sentence[: max(0, left)]))
        left -= len(sentence)
    return told


def _order(claim: Passage, told: Sequence[Passage], near: Sequence[float]) -> list[int]:
    """Chosen one after the other: what a sentence before has told counts less for those that follow."""
    weights = _local_weights(claim, told)
    total = sum(weights.values()) or 1.0
    shared = [weights.keys() & set(passage.statement.words) for passage in told]
    part = _WORDS if near else 1.0
    base = [(1.0 - part) * value for value in near] or [0.0] * len(told)

    def score(place: int) -> float:
        return base[place] + part * sum(weights[word] for word in sorted(shared[place])) / total

    alone = sorted(range(len(told)), key=lambda place: (-score(place), place))
    chosen: list[int] = []
    candidates = alone[:_CANDIDATES]
    while candidates and len(chosen) < _PICKED:
        chosen.append(min(candidates, key=lambda place: (-score(place), place)))
        candidates.remove(chosen[-1])
        for word in shared[chosen[-1]]:
            weights[word] *= _TOLD
    picked = set(chosen)
    return chosen + [place for place in alone if place not in picked]


def _local_weights(claim: Passage, told: Sequence[Passage]) -> dict[str, float]:
    """How telling the claim's words are among these sentences."""
    wanted = dict.fromkeys(claim.statement.words)
    counts = Counter(word for passage in told for word in wanted.keys() & set(passage.statement.words))
    return {word: math.log((len(told) + 1) / (counts[word] + 0.5)) for word in wanted}
