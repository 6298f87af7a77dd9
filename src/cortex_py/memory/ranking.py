"""How candidates become an order and a score: features of values, a learned fusion and its calibration.

The engine retrieves and fills `Candidates`; this module only computes. Each signal of a candidate is measured
against the *other* candidates, shrunk towards stored background values, so that one memory in an empty store gets a
sensible score and so that raising a candidate's own cosine or BM25 can never lower its score. The coefficients live
in `ranking_model.json`, made by `bench/train_ranking.py`.
"""

from __future__ import annotations

import json
from collections.abc import Mapping
from dataclasses import dataclass, fields
from datetime import date
from functools import lru_cache
from importlib import resources
from typing import Any, Literal

import numpy as np
from numpy.typing import ArrayLike, NDArray

from .traits import QueryKind, QueryTraits, Trait

__all__ = [
    "FEATURE_NAMES",
    "RISING_FEATURES",
    "Background",
    "Candidates",
    "Fusion",
    "Mode",
    "RankingModel",
    "Scores",
    "calibration_terms",
    "default_model",
    "features",
]

Floats = NDArray[np.float64]
Ints = NDArray[np.int64]
Fusion = Literal["learned", "weighted", "rrf"]
Mode = Literal["hybrid", "vector", "text"]

UNKNOWN_NEIGHBOUR = -0.5  # z-score of a neighbour that is not there: a little below an ordinary record
RIVALS = 100  # how many of the other candidates, strongest first, one is measured against
LONG_LENGTH = 5.2  # log of the number of terms from which a record counts as long: about 180
RRF_K = 60.0
CROWD = 20.0  # size of a scope that is half-way to having enough candidates to compare with
EPOCH_ORDINAL = date(1970, 1, 1).toordinal()


@dataclass(frozen=True, slots=True)
class Candidates:
    """The signals of one query's candidates, one entry per record; build it with `Candidates.of`.

    BM25 values are raw sums; `mass` is the query's idf sum, which makes them comparable between queries. Terms the
    scope has never seen count in `mass` (and so lower every coverage). `prev` and `next` index into these arrays.
    """

    vector: Floats  # cosine of the best chunk
    vector_window: Floats  # cosine of the mean with half of each neighbour
    vector_own: Floats  # cosine of the best chunk that is not an assistant's words
    text: Floats  # BM25 of the record
    text_part: Floats  # BM25 of its best chunk
    text_own: Floats  # BM25 of the best chunk that is not an assistant's words
    text_window: Floats  # BM25 of the record with its neighbours
    coverage: Floats  # share of the query's idf mass that the record matches
    coverage_window: Floats  # the same with its neighbours
    prev: Ints  # previous record of the branch, or -1
    next: Ints
    branch: Ints  # code of the branch, or -1
    length: Floats  # number of terms
    flags: Ints  # Trait bits
    author_match: Floats  # 1 where the query names the record's author
    name_match: Floats  # 1 where a name of the query occurs in the record's text
    created: Floats  # days since 1970
    scope_size: int
    mass: float
    now: float  # days since 1970

    @classmethod
    def of(
        cls, vector: ArrayLike, text: ArrayLike, *, scope_size: int, mass: float, now: float = 0.0, **signals: ArrayLike
    ) -> Candidates:
        """Candidates from the signals at hand; what is not given gets the value that says nothing."""
        given: dict[str, Any] = {"vector": vector, "text": text, **signals}
        size = len(np.asarray(vector))
        neutral: dict[str, Any] = {
            "vector_window": given["vector"],
            "vector_own": given["vector"],
            "text_part": given["text"],
            "text_own": given.get("text_part", given["text"]),
            "text_window": given["text"],
            "coverage_window": given.get("coverage", np.zeros(size)),
            "prev": np.full(size, -1),
            "next": np.full(size, -1),
            "branch": np.full(size, -1),
            "length": np.full(size, 20.0),
        }
        arrays: dict[str, Any] = {}
        for name in (field.name for field in fields(cls)[:-3]):
            kind = np.int64 if name in ("prev", "next", "branch", "flags") else np.float64
            arrays[name] = np.asarray(given.get(name, neutral.get(name, np.zeros(size))), dtype=kind)
            if arrays[name].shape != (size,):
                raise ValueError(f"{name} has shape {arrays[name].shape}, expected ({size},)")
        return cls(**arrays, scope_size=scope_size, mass=float(mass), now=float(now))

    def __len__(self) -> int:
        return len(self.vector)


@dataclass(frozen=True, slots=True)
class Scores:
    """What callers see: `score` in 0..1 means the same for every query; `raw` is the fusion's own value."""

    score: Floats
    raw: Floats


# Rising features never lose by a better match, and their weights are kept from being negative.
_RISING = (
    "vector", "vector_window", "vector_own", "text_part", "text_own", "text_window", "coverage",
    "coverage_window", "near_vector", "near_text", "branch_vector", "branch_text", "answer_vector",
    "answer_text", "long_vector", "long_vector_own", "long_text", "long_text_part", "long_text_own",
    "long_coverage", "author", "author_speaks", "name", "date",
)  # fmt: skip
_FREE = (
    "after_question", "length", "length_curve", "long_length", "asks", "only_asks", "replies", "time",
    "proper_noun", "place", "feeling", "when_time", "how_long_duration", "how_many_number", "where_place",
    "where_proper_noun", "who_proper_noun", "who_person", "why_reason", "what_proper_noun", "what_title",
    "feeling_asked",
)  # fmt: skip
FEATURE_NAMES: tuple[str, ...] = _RISING + _FREE
RISING_FEATURES: frozenset[str] = frozenset(_RISING)
# Features that no cosine and no BM25 moves.
_STILL = np.array([name in (*_FREE, "author", "author_speaks", "name", "date") for name in FEATURE_NAMES])


@dataclass(frozen=True, slots=True)
class Background:
    """What the strongest hundred of a scope usually look like: the yardstick where there are few to compare with."""

    mean: Mapping[str, float]
    spread: Mapping[str, float]
    weight: float  # how many other candidates it counts as


class _Measured:
    """One signal as distances from the other candidates, in their spread.

    Each candidate is compared with the strongest `RIVALS` of the *others*, so its own value moves nothing but its
    own distance, and the comparison is the same whether the whole scope or only its best part was retrieved.
    """

    __slots__ = ("_centre", "_value", "_width", "z")

    def __init__(self, values: Floats, name: str, background: Background) -> None:
        value = (values - background.mean[name]) / background.spread[name]
        size = len(value)
        if size > RIVALS + 1:
            ranked = np.partition(value, size - RIVALS - 1)[size - RIVALS - 1 :]
            least = ranked[0]  # the one that takes the place of a candidate among the strongest
            first, second = ranked.sum(), ranked @ ranked
            own = np.maximum(value, least)
            count = RIVALS
        else:
            first, second = value.sum(), value @ value
            own = value
            count = size - 1
        total = count + background.weight
        self._centre = (first - own) / total
        variance = (second - own * own + background.weight) / total - self._centre**2
        self._width = 1.0 / np.sqrt(np.maximum(variance, 0.01))
        self._value = value
        self.z: Floats = (value - self._centre) * self._width

    def of(self, index: Ints) -> Floats:
        """The value of another candidate, as seen from this one."""
        seen = (self._value[index] - self._centre) * self._width
        return np.where(index < 0, UNKNOWN_NEIGHBOUR, seen)

    def best(self, branch: Ints) -> Floats:
        """The best value in the candidate's branch; its own where it has none."""
        inside = branch >= 0
        if not inside.any():
            return self.z
        best = np.full(int(branch.max()) + 1, -np.inf)
        np.maximum.at(best, branch[inside], self._value[inside])
        return np.where(inside, (best[branch] - self._centre) * self._width, self.z)


def features(query: QueryTraits, candidates: Candidates, background: Background) -> Floats:
    """The feature matrix: one row per candidate, one column per name of `FEATURE_NAMES`."""
    c = candidates
    mass = max(c.mass, 1e-9)
    vector = _Measured(c.vector, "vector", background)
    text = _Measured(c.text / mass, "text", background)
    part = _Measured(c.text_part / mass, "text_part", background)
    around = _Measured(c.text_window / mass, "text_window", background)
    vector_own = _Measured(c.vector_own, "vector_own", background).z
    text_own = _Measured(c.text_own / mass, "text_own", background).z
    answers = _trait(c.flags, Trait.QUESTION)[c.prev] * (c.prev >= 0)
    log_length = np.log1p(c.length)
    long = _longness(log_length)
    short = 1.0 - long
    columns: dict[str, Floats] = {
        "vector": vector.z,
        "vector_window": _Measured(c.vector_window, "vector_window", background).z,
        "vector_own": vector_own,
        "text_part": part.z,
        "text_own": text_own,
        "text_window": around.z,
        "coverage": c.coverage,
        "coverage_window": c.coverage_window,
        "near_vector": np.maximum(vector.of(c.prev), vector.of(c.next)),
        "near_text": np.maximum(around.of(c.prev), around.of(c.next)),
        "branch_vector": vector.best(c.branch),
        "branch_text": around.best(c.branch),
        "answer_vector": answers * vector.of(c.prev),
        "answer_text": answers * text.of(c.prev),
        "long_vector": long * vector.z,
        "long_vector_own": long * vector_own,
        "long_text": long * text.z,
        "long_text_part": long * part.z,
        "long_text_own": long * text_own,
        "long_coverage": long * c.coverage,
        "author": c.author_match,
        "author_speaks": short * c.author_match * _trait(c.flags, Trait.FIRST_PERSON),
        "name": c.name_match,
        "date": _date_match(query, c),
        "after_question": answers,
        "length": short * log_length,
        "length_curve": short * (log_length - 3.0) ** 2,
        "long_length": long * (log_length - 7.5),
    }
    columns |= {name: short * _trait(c.flags, trait) for name, trait in _CUES}
    for name, kinds, trait in _WANTED:
        columns[name] = short * _trait(c.flags, trait) if query.kind in kinds else np.zeros(len(c))
    columns["feeling_asked"] = columns["feeling"] * float(query.feeling)
    return np.stack([columns[name] for name in FEATURE_NAMES], axis=1)


_CUES = (
    ("asks", Trait.QUESTION),
    ("only_asks", Trait.ONLY_ASKS),
    ("replies", Trait.REPLY),
    ("time", Trait.TIME),
    ("proper_noun", Trait.NAME),
    ("place", Trait.PLACE),
    ("feeling", Trait.FEELING),
)
_WANTED = (
    ("when_time", {QueryKind.WHEN}, Trait.TIME),
    ("how_long_duration", {QueryKind.HOW_LONG}, Trait.DURATION),
    ("how_many_number", {QueryKind.HOW_MANY, QueryKind.HOW_LONG}, Trait.NUMBER),
    ("where_place", {QueryKind.WHERE}, Trait.PLACE),
    ("where_proper_noun", {QueryKind.WHERE}, Trait.NAME),
    ("who_proper_noun", {QueryKind.WHO}, Trait.NAME),
    ("who_person", {QueryKind.WHO}, Trait.PERSON),
    ("why_reason", {QueryKind.WHY}, Trait.REASON),
    ("what_proper_noun", {QueryKind.WHAT, QueryKind.WHICH}, Trait.NAME),
    ("what_title", {QueryKind.WHAT, QueryKind.WHICH}, Trait.TITLE),
)


def _trait(flags: Ints, trait: Trait) -> Floats:
    return np.asarray((flags & int(trait)) != 0, np.float64)


def _date_match(query: QueryTraits, candidates: Candidates) -> Floats:
    """How well the day a record was made fits the time the query mentions, 0 to 1."""
    if query.ago is not None:
        age = candidates.now - candidates.created
        return np.where((age >= query.ago[0] - 1.0) & (age <= query.ago[1] + 1.0), 0.5, 0.0)
    if not query.dates:
        return np.zeros(len(candidates))
    days, where = np.unique(np.floor(candidates.created).astype(np.int64), return_inverse=True)
    fits = [max(_fit(date.fromordinal(int(day) + EPOCH_ORDINAL), *wanted) for wanted in query.dates) for day in days]
    return np.asarray(fits)[where]


def _fit(made: date, year: int, month: int, day: int) -> float:
    if year and made.year != year:
        return 0.0
    if not month:
        return 0.1
    if not day:
        return 0.7 if made.month == month else 0.0
    try:
        late = (made - date(year or made.year, month, day)).days
    except ValueError:  # the 30th of February
        return 0.0
    # People write about a day on it and soon after it.
    if 0 <= late <= 1:
        return 1.0
    if -1 <= late <= 7:
        return 0.6
    return 0.3 if abs(late) <= 14 else 0.0


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
                mean={name: float(mean) for name, (mean, _) in signals.items()},
                spread={name: float(spread) for name, (_, spread) in signals.items()},
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
        terms = calibration_terms(raw, usual, candidates)
        coefficients = self.calibration[name]
        logit = coefficients["offset"] + sum(coefficients.get(key, 0.0) * term for key, term in terms.items())
        return Scores(1.0 / (1.0 + np.exp(-np.clip(logit, -30.0, 30.0))), raw)

    def fuse(self, name: str, query: QueryTraits, candidates: Candidates) -> tuple[Floats, float]:
        """The value of a fusion or mode for every candidate, and the part of it that all usually have."""
        if name == "learned":
            columns = features(query, candidates, self.background)
            usual = columns[:, _STILL].mean(axis=0) @ self.weights[_STILL]
            return columns @ self.weights, float(usual)
        signals = _signals(candidates)
        if name == "rrf":
            return np.sum([1.0 / (RRF_K + _ranks(signals[key])) for key in ("vector", "text_window")], axis=0), 0.0
        chosen = self.fixed if name == "weighted" else dict.fromkeys(_SINGLE[name], 1.0)
        parts = [weight * _Measured(signals[key], key, self.background).z for key, weight in chosen.items()]
        return np.sum(parts, axis=0), 0.0


def calibration_terms(raw: Floats, usual: float, candidates: Candidates) -> dict[str, Floats | float]:
    """What a score is made of besides the fused value. Short records without neighbours are judged by themselves."""
    c = candidates
    lone = ((c.prev < 0) & (c.next < 0)) * (1.0 - _longness(np.log1p(c.length)))
    return {
        "raw": raw,
        "usual": usual,
        "crowd": c.scope_size / (c.scope_size + CROWD),
        "alone": float(c.scope_size <= 1),
        "lone": lone,
        "lone_vector": lone * c.vector,
        "lone_coverage": lone * c.coverage,
        "vector": c.vector,
        "coverage": c.coverage,
        "best_vector": float(c.vector.max()),
        "best_coverage": float(c.coverage.max()),
    }


def _longness(log_length: Floats) -> Floats:
    """0 for a note or a turn, 1 for a document or a whole session."""
    return np.asarray(1.0 / (1.0 + np.exp(np.clip(3.0 * (LONG_LENGTH - log_length), -30.0, 30.0))))


_SINGLE = {"vector": ("vector", "vector_window"), "text": ("text", "text_part", "text_window")}


def _signals(c: Candidates) -> dict[str, Floats]:
    mass = max(c.mass, 1e-9)
    texts = {"text": c.text / mass, "text_part": c.text_part / mass, "text_window": c.text_window / mass}
    return {"vector": c.vector, "vector_window": c.vector_window, **texts}


def _ranks(values: Floats) -> Floats:
    """Ranks from 1; equal values share the better one."""
    ordered = np.sort(values)
    return np.asarray(1 + len(values) - np.searchsorted(ordered, values, side="right"), np.float64)


@lru_cache(maxsize=1)
def default_model() -> RankingModel:
    """The model that ships with the package."""
    text = resources.files("cortex_py.memory").joinpath("ranking_model.json").read_text("utf-8")
    return RankingModel.from_json(text)
