"""Ranking: the learned fusion of a candidate's features, its calibration to a score, and the preference for newer ones.

Raising a candidate's own cosine or BM25 never lowers its raw score, and its score by at most a thousandth or so.
`bench/train_ranking.py` writes the coefficients to `ranking_model.json`.
"""

from __future__ import annotations

import json
from collections.abc import Container, Mapping, Sequence
from dataclasses import dataclass
from functools import lru_cache
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from ...config import Fusion
from ...records import Mode
from ...store.search.search import CandidateSet
from ..capture.traits import QueryTraits
from .features import (
    FEATURE_NAMES,
    MEASURED,
    STILL,
    Background,
    Candidates,
    compute_z_scores,
    features,
    record_kinds,
)

__all__ = ["Fused", "RankingModel", "Scores", "calibration_terms", "default_model", "prefer_newer"]

Floats = NDArray[np.float64]

_RRF_K = 60.0
_CROWD = 20.0  # a scope of this size is half-way to having enough candidates to compare with
_SINGLE = {"vector": ("vector", "vector_window"), "text": ("text", "text_part", "text_window")}


@dataclass(frozen=True, slots=True, eq=False)
class Scores:
    """`score` is between 0 and 1 and comparable between queries; `raw` is the value of the fusion itself."""

    score: Floats
    raw: Floats

    def adjust(self, odds: NDArray[np.float32], weight: float) -> Scores:
        """Shift the scores by log odds, then weight them; candidates with equal odds keep their order."""
        if weight == 1.0 and not odds.any():
            return self
        grown = self.score * np.exp(odds)
        return Scores(weight * grown / (1.0 - self.score + grown), self.raw)


@dataclass(frozen=True, slots=True, eq=False)
class RankingModel:
    """The coefficients of the fusions, and of the maps from the value of a fusion to a score."""

    background: Background
    weights: Floats  # one per name of FEATURE_NAMES
    fixed: Mapping[str, float]  # weights of the plain fusion, by signal
    calibration: Mapping[str, Mapping[str, float]]  # by fusion or mode

    @classmethod
    def from_json(cls, text: str) -> RankingModel:
        """Read the file that `bench/train_ranking.py` writes."""
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
        """Score all candidates, in their order."""
        if not len(candidates):
            return Scores(np.zeros(0), np.zeros(0))
        name: str = fusion if mode == "hybrid" else mode
        fused = self.fuse(name, query, candidates)
        coefficients = self.calibration[name]
        terms = calibration_terms(fused, candidates, coefficients)
        # Plain numbers come before arrays, so that they are added once and not to each array.
        logit = sum((coefficients[key] * term for key, term in terms.items()), coefficients["offset"])
        return Scores(0.5 + 0.5 * np.tanh(0.5 * logit), fused.raw)

    def fuse(self, name: str, query: QueryTraits, candidates: Candidates) -> Fused:
        """The value of a fusion or mode for every candidate."""
        if name == "learned":
            rows = features(query, candidates, self.background)
            moving, still = self.weights[:STILL] @ rows[:STILL], self.weights[STILL:] @ rows[STILL:]
            return Fused(moving + still, float(still.mean()), rows, moving)
        if name == "rrf":
            ranks = [_ranks(values) for values in (candidates.vector, candidates.text_window)]
            return Fused(np.sum([1.0 / (_RRF_K + rank) for rank in ranks], axis=0))
        chosen = self.fixed if name == "weighted" else dict.fromkeys(_SINGLE[name], 1.0)
        z = compute_z_scores(candidates, self.background)
        return Fused(np.sum([weight * z[MEASURED.index(key)] for key, weight in chosen.items()], axis=0))


@dataclass(frozen=True, slots=True, eq=False)
class Fused:
    """The value of a fusion for every candidate.

    The learned one adds what is usual among them, its features, and the part of the value that cosines and words give.
    """

    raw: Floats
    usual: float = 0.0
    rows: Floats | None = None
    moving: Floats | None = None


_AT = {name: FEATURE_NAMES.index(name) for name in ("stranger", "author")}
_FAR, _STEEP = 5.0, 2.0  # how far behind the best still counts, and how fast being next to the best wears off
_HEAD = 10  # the best others that do not belong to the field


def calibration_terms(fused: Fused, candidates: Candidates, wanted: Container[str]) -> dict[str, Floats | float]:
    """The wanted terms of the calibration, numbers that all candidates share first.

    Each kind of record has terms of its own, because a cosine of 0.4 means more between a question and a function than
    between a question and a note.
    """
    c = candidates
    terms: dict[str, Floats | float] = {
        "usual": fused.usual,
        "crowd": c.scope_size / (c.scope_size + _CROWD),
        "alone": float(c.scope_size <= 1),
        "unseen": c.unseen,
        "named": float(bool(c.author_match.any())),
    }
    if "best_vector" in wanted:
        terms |= {"best_vector": float(c.vector.max()), "best_coverage": float(c.coverage.max())}
    terms |= {"raw": fused.raw, "vector": c.vector, "coverage": c.coverage}
    if fused.rows is not None and fused.moving is not None:
        kinds = record_kinds(c)
        for kind in ("turn", "lone", "long", "code"):
            share = getattr(kinds, kind)
            terms |= {kind: share, f"{kind}_raw": share * fused.raw}
            terms |= {f"{kind}_vector": share * c.vector, f"{kind}_coverage": share * c.coverage}
        terms |= {"long_part": kinds.long * c.coverage_part, "turn_window": kinds.turn * c.coverage_window}
        stranger, author = fused.rows[_AT["stranger"]], fused.rows[_AT["author"]]
        lead = _lead(fused.moving, stranger)
        terms |= {"stranger": stranger, "author": author}
        terms |= {"outdone": np.minimum(lead, 0.0), "ahead": kinds.turn * author * np.maximum(lead, 0.0)}
        behind = np.maximum(fused.raw - fused.raw.max(), -_FAR)
        top = np.exp(_STEEP * behind)
        terms["author_top"] = kinds.turn * author * top
        terms |= {"behind": behind, "top": (1.0 - kinds.lone) * top, "lone_top": kinds.lone * top}
        terms |= {"lone_crowd": kinds.lone * terms["crowd"], "field": _field(fused.raw - fused.usual)}
    return {name: term for name, term in terms.items() if name in wanted}


def _lead(moving: Floats, stranger: Floats) -> Floats | float:
    """How far a candidate is before or behind the best words of somebody whom the query does not name.

    If somebody else said what the query asks about a person, the query mixes them up and has no answer.
    """
    if not stranger.any():
        return 0.0
    return np.asarray(np.clip(moving - moving[stranger > 0].max(), -_FAR, _FAR))


def _field(raw: Floats) -> Floats:
    """How strong the other candidates are after the best ten of them, on the scale of the fusion.

    A candidate's own value does not count, nor do a few that are as good: near-identical records do not lower each
    other.
    """
    if len(raw) <= _HEAD + 1:
        return np.zeros(len(raw))
    share = np.exp(np.minimum(raw, 30.0))
    edge = np.partition(raw, len(raw) - _HEAD - 1)[len(raw) - _HEAD - 1]  # the best that does not belong to the head
    total = share[raw < edge].sum() + np.exp(min(edge, 30.0)) * ((raw == edge).sum() - _HEAD + (raw > edge).sum())
    return np.asarray(np.log1p(np.maximum(total - np.exp(np.minimum(np.minimum(raw, edge), 30.0)), 0.0)))


def _ranks(values: NDArray[Any]) -> Floats:
    """Ranks from 1; equal values share the better rank."""
    ordered = np.sort(values)
    return np.asarray(1 + len(values) - np.searchsorted(ordered, values, side="right"), np.float64)


@lru_cache(maxsize=1)
def default_model() -> RankingModel:
    """The model that ships with the package."""
    return RankingModel.from_json(Path(__file__).with_name("ranking_model.json").read_text("utf-8"))


# How many results are reordered, and which share of the query's weight two of them must have in common. Both were set
# by hand on the development part of LongMemEval.
_REORDERED = 10
_SAME_SUBJECT = 0.4
# A result whose score is below this share of another's has a different subject.
_LEAST_SHARE = 0.2


def prefer_newer(found: CandidateSet, scores: Scores, order: NDArray[np.int64], hashes: Sequence[int]) -> Scores:
    """Exchange the scores of the first results on one subject, so that the newest has the best.

    The rare words of a query show its subject: two results that contain the same of them are versions of one
    statement, and the newer is the one that holds today. For questions about the past this is wrong, so callers ask
    for it.
    """
    first = order[:_REORDERED]
    if len(first) < 2 or not len(hashes):
        return scores
    score = scores.score.copy()
    held = _held(found, first, hashes)
    weights = _weights(found, hashes)
    taken: set[int] = set()
    for place in range(len(first)):
        if place in taken:
            continue
        group = [place, *_same_subject(found, first, score, held, weights, place, taken)]
        if len(group) > 1:
            taken.update(group)
            best = sorted((float(score[first[one]]) for one in group), reverse=True)
            newest = sorted(group, key=lambda one: -int(found.created[first[one]]))
            for one, value in zip(newest, best, strict=True):
                score[first[one]] = value
    return Scores(score, scores.raw)


def _same_subject(
    found: CandidateSet,
    first: NDArray[np.int64],
    score: NDArray[np.float64],
    held: NDArray[np.bool_],
    weights: NDArray[np.float64],
    place: int,
    taken: set[int],
) -> list[int]:
    """Later results on the same subject as one; records of one branch are neighbours, not versions."""
    own = int(found.branch[first[place]])
    least = _LEAST_SHARE * float(score[first[place]])
    return [
        other
        for other in range(place + 1, len(first))
        if other not in taken
        and (own < 0 or int(found.branch[first[other]]) != own)
        and float(score[first[other]]) >= least
        and float(weights[held[place] & held[other]].sum()) >= _SAME_SUBJECT
    ]


def _held(found: CandidateSet, first: NDArray[np.int64], hashes: Sequence[int]) -> NDArray[np.bool_]:
    """Which of the words each result contains."""
    details = found.details
    held = np.zeros((len(first), len(hashes)), bool)
    record = details.chunk_record[details.term_chunk]
    place = {int(number): n for n, number in enumerate(first)}
    for n, word in enumerate(hashes):
        for number in set(record[details.term_hash == word].tolist()):
            if number in place:
                held[place[number], n] = True
    return held


def _weights(found: CandidateSet, hashes: Sequence[int]) -> NDArray[np.float64]:
    """The weight of each word as a share of all: rarer words weigh more."""
    size = max(found.scope_size, 1)
    rarity = np.maximum(np.log((size + 1) / (found.word_records[: len(hashes)] + 0.5)), 0.0)
    return np.asarray(rarity / max(float(rarity.sum()), 1e-9), np.float64)
