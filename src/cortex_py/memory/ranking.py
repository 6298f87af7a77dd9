"""How candidates become an order and a score: a learned fusion of their features, and its calibration.

The engine retrieves and fills `Candidates`; this module only computes. Raising a candidate's own cosine or BM25 can
never lower its score. The coefficients live in `ranking_model.json`, made by `bench/train_ranking.py`.
"""

from __future__ import annotations

import json
from collections.abc import Container, Mapping
from dataclasses import dataclass
from functools import lru_cache
from importlib import resources
from typing import Any, Literal

import numpy as np
from numpy.typing import NDArray

from .features import FEATURE_NAMES, MEASURED, STILL, Background, Candidates, features, longness, measured
from .traits import QueryTraits

__all__ = ["Candidates", "Fusion", "Mode", "RankingModel", "Scores", "calibration_terms", "default_model"]

Floats = NDArray[np.float64]
Fusion = Literal["learned", "weighted", "rrf"]
Mode = Literal["hybrid", "vector", "text"]

RRF_K = 60.0
CROWD = 20.0  # size of a scope that is half-way to having enough candidates to compare with


@dataclass(frozen=True, slots=True)
class Scores:
    """What callers see: `score` in 0..1 means the same for every query; `raw` is the fusion's own value."""

    score: Floats
    raw: Floats

    def nudged(self, odds: NDArray[np.float32], weight: float) -> Scores:
        """Scores moved by log odds, and then weighed; neither can change the order of two that are treated alike."""
        if weight == 1.0 and not odds.any():
            return self
        grown = self.score * np.exp(odds)
        return Scores(weight * grown / (1.0 - self.score + grown), self.raw)


@dataclass(frozen=True, slots=True)
class RankingModel:
    """The coefficients of the fusions and of the maps from a fusion's value to a score."""

    background: Background
    weights: Floats  # one per name of FEATURE_NAMES
    fixed: Mapping[str, float]  # weights of the plain fusion, by signal
    calibration: Mapping[str, Mapping[str, float]]  # by fusion or mode

    @classmethod
    def from_json(cls, text: str) -> RankingModel:
        """The model in a file as `bench/train_ranking.py` writes it."""
        content = json.loads(text)
        signals, weights = content["background"]["signals"], content["weights"]
        unknown = set(weights) - set(FEATURE_NAMES)
        if unknown:
            raise ValueError(f"the ranking model weighs unknown features: {', '.join(sorted(unknown))}")
        return cls(
            background=Background(
                mean=np.array([[float(signals[name][0])] for name in MEASURED]),
                spread=np.array([[float(signals[name][1])] for name in MEASURED]),
                weight=float(content["background"]["weight"]),
            ),
            weights=np.array([float(weights.get(name, 0.0)) for name in FEATURE_NAMES]),
            fixed={name: float(weight) for name, weight in content["fixed"].items()},
            calibration=content["calibration"],
        )

    def score(
        self, query: QueryTraits, candidates: Candidates, *, fusion: Fusion = "learned", mode: Mode = "hybrid"
    ) -> Scores:
        """Scores of all candidates, in their order."""
        if not len(candidates):
            return Scores(np.zeros(0), np.zeros(0))
        name: str = fusion if mode == "hybrid" else mode
        raw, usual = self.fuse(name, query, candidates)
        coefficients = self.calibration[name]
        terms = calibration_terms(raw, usual, candidates, coefficients)
        # Numbers first, then arrays: adding the former to each array would cost as much again.
        logit = sum((coefficients[key] * term for key, term in terms.items()), coefficients["offset"])
        return Scores(0.5 + 0.5 * np.tanh(0.5 * logit), raw)

    def fuse(self, name: str, query: QueryTraits, candidates: Candidates) -> tuple[Floats, float]:
        """The value of a fusion or mode for every candidate, and the part of it that all usually have."""
        if name == "learned":
            rows = features(query, candidates, self.background)
            still = self.weights[STILL:] @ rows[STILL:]
            return self.weights[:STILL] @ rows[:STILL] + still, float(still.mean())
        if name == "rrf":
            ranks = [_ranks(values) for values in (candidates.vector, candidates.text_window)]
            return np.sum([1.0 / (RRF_K + rank) for rank in ranks], axis=0), 0.0
        chosen = self.fixed if name == "weighted" else dict.fromkeys(_SINGLE[name], 1.0)
        z = measured(candidates, self.background)
        return np.sum([weight * z[MEASURED.index(key)] for key, weight in chosen.items()], axis=0), 0.0


def calibration_terms(
    raw: Floats, usual: float, candidates: Candidates, wanted: Container[str]
) -> dict[str, Floats | float]:
    """What a score is made of, as far as it is wanted. Short records without neighbours are judged by themselves."""
    c = candidates
    terms: dict[str, Floats | float] = {
        "usual": usual,
        "crowd": c.scope_size / (c.scope_size + CROWD),
        "alone": float(c.scope_size <= 1),
    }
    if "best_vector" in wanted:
        terms |= {"best_vector": float(c.vector.max()), "best_coverage": float(c.coverage.max())}
    terms |= {"raw": raw, "vector": c.vector, "coverage": c.coverage}
    if "lone" in wanted:
        lone = ((c.prev < 0) & (c.next < 0)) * (1.0 - longness(np.log1p(c.length)))
        terms |= {"lone": lone, "lone_vector": lone * c.vector, "lone_coverage": lone * c.coverage}
    return {name: term for name, term in terms.items() if name in wanted}


_SINGLE = {"vector": ("vector", "vector_window"), "text": ("text", "text_part", "text_window")}


def _ranks(values: NDArray[Any]) -> Floats:
    """Ranks from 1; equal values share the better one."""
    ordered = np.sort(values)
    return np.asarray(1 + len(values) - np.searchsorted(ordered, values, side="right"), np.float64)


@lru_cache(maxsize=1)
def default_model() -> RankingModel:
    """The model that ships with the package."""
    text = resources.files("cortex_py.memory").joinpath("ranking_model.json").read_text("utf-8")
    return RankingModel.from_json(text)
