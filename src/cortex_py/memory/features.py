"""What the ranking knows of each candidate: its signals, and the features that are made of them.

Each signal of a candidate is measured against the *other* candidates, shrunk towards stored background values, so
that one memory in an empty store gets a sensible score and so that raising a candidate's own cosine or BM25 can
never lower a feature that counts for it. Everything is one matrix operation where it can be: this runs in every recall.
"""

from __future__ import annotations

from dataclasses import dataclass, fields
from datetime import date
from typing import Any

import numpy as np
from numpy.typing import ArrayLike, NDArray

from .traits import QueryKind, QueryTraits, Trait

__all__ = [
    "FEATURE_NAMES",
    "MEASURED",
    "RISING_FEATURES",
    "RIVALS",
    "STILL",
    "Background",
    "Candidates",
    "features",
    "longness",
    "measured",
]

Floats = NDArray[np.float64]
Numbers = NDArray[Any]  # of whatever width the engine has them in

UNKNOWN_NEIGHBOUR = -0.5  # z-score of a neighbour that is not there: a little below an ordinary record
RIVALS = 100  # how many of the other candidates, strongest first, one is measured against
LONG_LENGTH = 5.2  # log of the number of terms from which a record counts as long: about 180
EPOCH_ORDINAL = date(1970, 1, 1).toordinal()


@dataclass(frozen=True, slots=True)
class Candidates:
    """The signals of one query's candidates, one entry per record; `Candidates.of` fills in what is not known.

    BM25 values are raw sums; `mass` is the query's idf sum, which makes them comparable between queries. Terms the
    scope has never seen count in `mass` (and so lower every coverage). `prev` and `next` index into these arrays.
    """

    vector: Numbers  # cosine of the best chunk
    vector_window: Numbers  # cosine of the mean with half of each neighbour
    vector_own: Numbers  # cosine of the best chunk that is not an assistant's words
    vector_first: Numbers  # cosine of the first such chunk, which tells what a long record is about
    text: Numbers  # BM25 of the record
    text_part: Numbers  # BM25 of its best chunk
    text_own: Numbers  # BM25 of the best chunk that is not an assistant's words
    text_window: Numbers  # BM25 of the record with its neighbours
    coverage: Numbers  # share of the query's idf mass that the record matches
    coverage_part: Numbers  # the same for the chunk that matches most of it
    coverage_own: Numbers  # and for the one among those that are not an assistant's words
    coverage_first: Numbers  # and for the first of these
    coverage_window: Numbers  # for the record with its neighbours
    prev: Numbers  # previous record of the branch, or -1
    next: Numbers
    branch: Numbers  # code of the branch, or -1
    length: Numbers  # number of terms
    flags: Numbers  # Trait bits
    author_match: Numbers  # 1 where the query names the record's author
    name_match: Numbers  # 1 where a name of the query occurs in the record's text
    created: Numbers  # days since 1970
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
        coverage = given.get("coverage", np.zeros(size))
        own = given.get("vector_own", vector)
        neutral: dict[str, Any] = {
            "vector_window": vector,
            "vector_own": own,
            "vector_first": own,
            "text_part": text,
            "text_own": given.get("text_part", text),
            "text_window": text,
            **dict.fromkeys(("coverage_part", "coverage_own", "coverage_first", "coverage_window"), coverage),
            **dict.fromkeys(("prev", "next", "branch"), np.full(size, -1)),
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


# Signals that are measured against the other candidates; from the fifth on they are BM25 sums.
MEASURED = (
    "vector_window", "vector_own", "vector_first", "vector", "text_window", "text", "text_part", "text_own",
)  # fmt: skip
_TEXTS = slice(4, None)
_LENT = slice(3, 6)  # those that neighbours lend each other: vector, text_window, text
_SHARED = slice(3, 5)  # and those that a branch shares

# Moving features depend on a cosine or a BM25. Rising ones never lose by a better match: no weight is negative.
_MOVING = (
    *MEASURED, *(f"long_{name}" for name in MEASURED),
    "long_coverage", "long_coverage_part", "long_coverage_own", "long_coverage_first", "coverage", "coverage_window",
    "near_vector", "near_text", "branch_vector", "branch_text", "answer_vector", "answer_text",
)  # fmt: skip
_STILL_RISING = ("author", "author_speaks", "name", "date", "ago")
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
_FREE = (
    "after_question", "length", "length_curve", "long_length",
    *(name for name, _ in _CUES), "feeling_asked", *(name for name, _, _ in _WANTED),
)  # fmt: skip
FEATURE_NAMES: tuple[str, ...] = (*_MOVING, *_STILL_RISING, *_FREE)
RISING_FEATURES: frozenset[str] = frozenset((*_MOVING, *_STILL_RISING))
STILL = len(_MOVING)  # from here on no cosine and no BM25 moves a feature
_ROW = {name: n for n, name in enumerate(FEATURE_NAMES)}
_BITS = np.array([[int(trait)] for _, trait in _CUES], np.int64)
_FEELING = [name for name, _ in _CUES].index("feeling")
_ASKED = {
    kind: tuple((_ROW[name], int(trait)) for name, kinds, trait in _WANTED if kind in kinds) for kind in QueryKind
}


@dataclass(frozen=True, slots=True)
class Background:
    """What the strongest hundred of a scope usually look like: the yardstick where there are few to compare with.

    `mean` and `spread` are columns with one row for each name of `MEASURED`.
    """

    mean: Floats
    spread: Floats
    weight: float  # how many other candidates it counts as


class _Measured:
    """The measured signals as distances from the other candidates, in their spread; one row for each.

    Each candidate is compared with the strongest `RIVALS` of the *others*, so its own value moves nothing but its
    own distance, and the comparison is the same whether the whole scope or only its best part was retrieved.
    """

    __slots__ = ("_centre", "_value", "_width", "z")

    def __init__(self, c: Candidates, background: Background) -> None:
        value = np.array([getattr(c, name) for name in MEASURED], np.float64)
        value[_TEXTS] /= max(c.mass, 1e-9)
        value -= background.mean
        value /= background.spread
        size = value.shape[1]
        if size > RIVALS + 1:
            # The weakest of these takes the place of a candidate among the strongest.
            ranked = np.partition(value, size - RIVALS - 1, axis=1)[:, size - RIVALS - 1 :]
            own = np.maximum(value, ranked[:, :1])
            count = RIVALS
        else:
            ranked = own = value
            count = size - 1
        total = count + background.weight
        self._centre = (ranked.sum(axis=1, keepdims=True) - own) / total
        squares = np.einsum("ij,ij->i", ranked, ranked)[:, None] + background.weight
        variance = (squares - own * own) / total - self._centre**2
        self._width = 1.0 / np.sqrt(np.maximum(variance, 0.01))
        self._value = value
        self.z: Floats = (value - self._centre) * self._width

    def neighbours(self, index: Numbers) -> Floats:
        """The lent signals of other candidates, as seen from these."""
        seen = (self._value[_LENT][:, index] - self._centre[_LENT]) * self._width[_LENT]
        return np.where(index < 0, UNKNOWN_NEIGHBOUR, seen)

    def best(self, branch: Numbers) -> Floats:
        """The best cosine and the best BM25 in each candidate's branch; its own where it has none."""
        order = np.argsort(branch, kind="stable")
        codes = branch[order]
        starts = np.flatnonzero(codes[1:] != codes[:-1]) + 1
        starts = np.concatenate(([0], starts))
        best = np.maximum.reduceat(self._value[_SHARED][:, order], starts, axis=1)
        of_branch = best[:, np.searchsorted(codes[starts], branch)]
        seen = (of_branch - self._centre[_SHARED]) * self._width[_SHARED]
        return np.where(branch >= 0, seen, self.z[_SHARED])


def measured(candidates: Candidates, background: Background) -> Floats:
    """The measured signals alone, one row for each name of `MEASURED`."""
    return _Measured(candidates, background).z


def features(query: QueryTraits, candidates: Candidates, background: Background) -> Floats:
    """The feature matrix: one row per name of `FEATURE_NAMES`, one column per candidate."""
    c = candidates
    compared = _Measured(c, background)
    log_length = np.log1p(c.length)
    long = longness(log_length)
    short = 1.0 - long
    rows = np.zeros((len(FEATURE_NAMES), len(c)))
    rows[:8] = compared.z
    if long.max() > 1e-3:
        np.multiply(compared.z, long, out=rows[8:16])
        rows[16:20] = c.coverage, c.coverage_part, c.coverage_own, c.coverage_first
        rows[16:20] *= long
    rows[20], rows[21] = c.coverage, c.coverage_window
    _fill_neighbourhood(rows[22:STILL], rows[_ROW["after_question"]], c, compared)
    still = rows[STILL:]
    still[0] = c.author_match
    if still[0].any():
        still[1] = short * still[0] * ((c.flags & int(Trait.FIRST_PERSON)) != 0)
    still[2] = c.name_match
    if query.dates:
        still[3] = _date_fit(query, c)
    if query.ago is not None:
        still[4] = _ago_fit(query.ago, c.now - c.created)
    free = rows[STILL + len(_STILL_RISING) :]
    free[1] = short * log_length
    free[2] = short * (log_length - 3.0) ** 2
    free[3] = long * (log_length - 7.5)
    free[4 : 4 + len(_CUES)] = ((c.flags & _BITS) != 0) * short
    if query.feeling:
        free[4 + len(_CUES)] = free[4 + _FEELING]
    for row, bit in _ASKED[query.kind]:
        rows[row] = short * ((c.flags & bit) != 0)
    return rows


def _fill_neighbourhood(rows: Floats, after_question: Floats, c: Candidates, compared: _Measured) -> None:
    """What neighbours and the rest of the branch add: near, branch and answer, each by cosine and by BM25."""
    if c.prev.max() < 0 and c.next.max() < 0:
        rows[:2] = UNKNOWN_NEIGHBOUR
    else:
        before, after = compared.neighbours(c.prev), compared.neighbours(c.next)
        np.maximum(before[:2], after[:2], out=rows[:2])
        after_question[:] = ((c.flags[c.prev] & int(Trait.QUESTION)) != 0) & (c.prev >= 0)
        rows[4:6] = after_question * before[::2]
    rows[2:4] = compared.best(c.branch) if c.branch.max() >= 0 else compared.z[_SHARED]


def _ago_fit(ago: tuple[float, float], age: Numbers) -> Floats:
    """How well a record's age in days fits the stretch of time the query speaks of, 0 to 1."""
    fewest, most = ago
    off = np.maximum(np.maximum(fewest - age, age - most), 0.0)
    return np.asarray(np.exp(-1.5 * off / max(most - fewest, 2.0)) * (age >= -1.0))


def _date_fit(query: QueryTraits, candidates: Candidates) -> Floats:
    """How well the day a record was made fits a date the query names, 0 to 1."""
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


def longness(log_length: Floats) -> Floats:
    """0 for a note or a turn, 1 for a document or a whole session."""
    return np.asarray(0.5 + 0.5 * np.tanh(1.5 * (log_length - LONG_LENGTH)))
