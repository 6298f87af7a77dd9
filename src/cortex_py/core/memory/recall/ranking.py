"""Ranking: the features of candidates, and one calibrated score from them.

Raising a candidate's own cosine or BM25 never lowers its raw score, and its score by at most a thousandth or so.
`training/ranking/train_ranking.py` writes the coefficients to `ranking_model.json`.
"""

from __future__ import annotations

import json
from collections.abc import Container, Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from datetime import date, timedelta
from functools import cache, lru_cache
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from ...config import Fusion
from ...records import Mode
from ...store.rows import term_hash
from ...store.search.search import CandidateSet
from ..text import MONTHS, QueryKind, QueryTraits, Trait, query_terms, query_traits, word_list

__all__ = [
    "FEATURE_NAMES", "MEASURED", "RISING_FEATURES", "RIVALS", "STILL", "Background", "Candidates", "Fused", "Matches",
    "RankingModel", "RecordKinds", "Scores", "calibration_terms", "compute_z_scores", "default_model", "features",
    "longness", "match", "measure", "prefer_newer", "query_hashes", "record_kinds",
]  # fmt: skip


# -- how well each candidate matches a query -----------------------------------------------------
# Exact BM25 and exact cosines, for the record, for its best chunk, and for the record together with its neighbours.

Singles = NDArray[np.float32]

_K1 = 1.2
_B = 0.75


@dataclass(frozen=True, slots=True, eq=False)
class Matches:
    """One value per candidate; `best_chunk` is the index of the chunk that matches best.

    `_own` leaves out the assistant's turns of a dialogue. `holds` says for each word of the query whether the record
    contains it; `mass` is the sum of the words' weights.
    """

    vector: Singles
    vector_own: Singles
    vector_window: Singles
    text: Singles
    text_part: Singles
    text_own: Singles
    text_window: Singles
    coverage: Singles
    coverage_window: Singles
    mass: float
    holds: NDArray[np.bool_]
    best_chunk: NDArray[np.int32]


def match(found: CandidateSet, hashes: Sequence[int], query: Singles | None) -> Matches:
    """Score all candidates for the query's distinct word hashes and its vector."""
    if not found.details.size:
        return _no_matches(max(len(hashes), 1))
    # All values are finite, but some BLAS kernels set the invalid flag for lanes that they do not use.
    with np.errstate(invalid="ignore"):
        return _matches(found, hashes, query)


def _matches(found: CandidateSet, hashes: Sequence[int], query: Singles | None) -> Matches:
    details = found.details
    counts = _counts(found, hashes)
    starts = np.searchsorted(details.chunk_record, np.arange(details.size))
    whole = np.add.reduceat(counts, starts, axis=0)
    alone = not len(found.before) or int(max(found.before.max(), found.after.max())) < 0
    around = whole if alone else whole + _at(whole, found.before) + _at(whole, found.after)
    rarity = _rarity(found.word_records, found.scope_size)
    chunk_length = np.bincount(details.term_chunk, details.term_count, len(counts)).astype(np.float32)
    length = found.length
    span = length if alone else length + _at(length, found.before) + _at(length, found.after)
    average = max(found.average_length, 1.0)
    part = _bm25(counts, chunk_length, min(average, float(chunk_length.mean())), rarity)
    mass = max(float(rarity.sum()), 1e-9)
    cosine, window = _cosines(found, starts, query, alone)
    text = _bm25(whole, length, average, rarity)
    coverage = (whole > 0) @ rarity / mass
    return Matches(
        vector=np.maximum.reduceat(cosine, starts),
        vector_own=_best_own(cosine, details.by_assistant, starts),
        vector_window=window,
        text=text,
        text_part=np.maximum.reduceat(part, starts),
        text_own=_best_own(part, details.by_assistant, starts),
        text_window=text if alone else _bm25(around, span, max(float(span.mean()), 1.0), rarity),
        coverage=coverage,
        coverage_window=coverage if alone else (around > 0) @ rarity / mass,
        mass=mass,
        holds=whole > 0,
        best_chunk=_best_of_each(cosine + part / max(float(part.max(initial=0.0)), 1.0), details.chunk_record, starts),
    )


def _no_matches(words: int) -> Matches:
    none = np.zeros(0, np.float32)
    holds = np.zeros((0, words), np.bool_)
    return Matches(none, none, none, none, none, none, none, none, none, 0.0, holds, np.zeros(0, np.int32))


def _counts(found: CandidateSet, hashes: Sequence[int]) -> Singles:
    """How often each chunk contains each word of the query."""
    details = found.details
    counts = np.zeros((len(details.chunk_record), max(len(hashes), 1)), np.float32)
    if hashes:
        wanted = np.array(hashes, np.uint32)
        order = np.argsort(wanted)
        slot = np.minimum(np.searchsorted(wanted[order], details.term_hash), len(wanted) - 1)
        hit = np.flatnonzero(wanted[order][slot] == details.term_hash)
        counts[details.term_chunk[hit], order[slot[hit]]] = details.term_count[hit]
    return counts


def _rarity(word_records: NDArray[np.float64], scope_size: int) -> Singles:
    if not len(word_records):
        return np.zeros(1, np.float32)
    total = max(scope_size, 1)
    held = np.clip(word_records, 0.0, total)
    return np.log1p((total - held + 0.5) / (held + 0.5)).astype(np.float32)


def _bm25(counts: Singles, length: Singles, average: float, rarity: Singles) -> Singles:
    damping = _K1 * (1 - _B + _B * length / max(average, 1.0))
    return np.asarray((counts * (_K1 + 1) / (counts + damping[:, None])) @ rarity, np.float32)


def _cosines(
    found: CandidateSet, starts: NDArray[np.int64], query: Singles | None, alone: bool
) -> tuple[Singles, Singles]:
    """The cosine of every chunk, and of every record together with its neighbours."""
    details = found.details
    if query is None:
        zeros = np.zeros(details.size, np.float32)
        return np.zeros(len(details.chunk_record), np.float32), zeros
    cosine = _product(details.vectors, query)
    if len(starts) == len(cosine):
        means, own = details.vectors, cosine
    else:
        means = np.add.reduceat(details.vectors, starts, axis=0)
        means = means / np.maximum(np.linalg.norm(means, axis=1, keepdims=True), 1e-6)
        own = _product(means, query)
    if alone:
        return cosine, own
    joined = means + 0.5 * _at(means, found.before) + 0.5 * _at(means, found.after)
    window = _product(joined / np.maximum(np.linalg.norm(joined, axis=1, keepdims=True), 1e-6), query)
    return cosine, window


def _product(vectors: NDArray[np.float32], query: NDArray[np.float32]) -> Singles:
    """Cosines, rounded: those of equal records differ in the last digits, by their place in the product."""
    return np.round(vectors @ query, 5)


def _best_own(score: Singles, by_assistant: NDArray[np.bool_], starts: NDArray[np.int64]) -> Singles:
    """The best of each record's chunks that are not an assistant's words; of all chunks if there is none."""
    if not by_assistant.any():
        return np.maximum.reduceat(score, starts)
    best = np.maximum.reduceat(np.where(by_assistant, -np.inf, score), starts)
    return np.where(best > -np.inf, best, np.maximum.reduceat(score, starts)).astype(np.float32)


def _at(values: Singles, index: NDArray[np.int32]) -> Singles:
    """The values of the neighbours, zero where there is none."""
    taken = values[index]
    taken[index < 0] = 0
    return taken


def _best_of_each(score: Singles, record: NDArray[np.int32], starts: NDArray[np.int64]) -> NDArray[np.int32]:
    if len(starts) == len(score):
        return np.arange(len(score), dtype=np.int32)
    return np.lexsort((-score, record))[starts].astype(np.int32)


Floats = NDArray[np.float64]
Numbers = NDArray[Any]  # the width depends on the engine

_OUTSTANDING = 2.5  # a rival that is better than this counts as this: near-identical records do not lower each other
RIVALS = 100  # each candidate is compared with this many of the strongest others
_UNKNOWN_NEIGHBOUR = -0.5  # z-score of a missing neighbour: a little below an ordinary record
_LONG_LENGTH = 5.2  # log of the number of terms from which a record counts as long: about 180
_EPOCH_ORDINAL = date(1970, 1, 1).toordinal()
_MICROS_A_DAY = 86_400_000_000
_FRAME_SHARE = 0.4


@dataclass(frozen=True, slots=True, eq=False)
class Candidates:
    """The signals of one query's candidates, one entry per record.

    BM25 values are raw sums; `mass` is the sum of the query's idf values, which makes them comparable between queries.
    Terms that the scope has never seen count in `mass` and so lower every coverage. `prev` and `next` index into these
    arrays.
    """

    vector: Numbers  # cosine of the best chunk
    vector_window: Numbers  # cosine of the mean with half of each neighbour
    vector_own: Numbers  # cosine of the best chunk that is not an assistant's words
    vector_first: Numbers  # cosine of the first such chunk, which shows what a long record is about
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
    has_author: Numbers  # 1 where somebody signed the record
    speaker: Numbers  # 1 where that somebody signed another candidate too
    name_match: Numbers  # 1 where a name of the query occurs in the record's text
    date_match: Numbers  # 1 where the record's text names a month of the query
    created: Numbers  # days since 1970
    scope_size: int
    mass: float
    unseen: float  # share of the mass that no record of the scope contains
    now: float  # days since 1970

    def __len__(self) -> int:
        return len(self.vector)


# Signals that are compared with those of the other candidates; from the fifth on they are BM25 sums.
MEASURED = (
    "vector_window", "vector_own", "vector_first", "vector", "text_window", "text", "text_part", "text_own",
)  # fmt: skip
_TEXTS = slice(4, None)
_LENT = slice(3, 6)  # those taken over from neighbours: vector, text_window, text
_SHARED = slice(3, 5)  # and those taken over from the rest of a branch

# Moving features depend on a cosine or a BM25. Rising features have no negative weight: a better match never lowers
# the score.
_MOVING = (
    *MEASURED, *(f"long_{name}" for name in MEASURED),
    "long_coverage", "long_coverage_part", "long_coverage_own", "long_coverage_first", "coverage", "coverage_window",
    "near_vector", "near_text", "branch_vector", "branch_text", "answer_vector", "answer_text",
    "lone_vector", "lone_text", "lone_coverage",
    "code_vector", "code_vector_window", "code_text", "code_text_part", "code_covered",
)  # fmt: skip
_STILL_RISING = (
    "author", "author_speaks", "addressed", "name", "date_day", "date_week", "date_month", "date_text", "ago",
)  # fmt: skip
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
    "stranger", "after_question", "length", "length_curve", "long_length",
    *(name for name, _ in _CUES), "feeling_asked", *(name for name, _, _ in _WANTED),
)  # fmt: skip
FEATURE_NAMES: tuple[str, ...] = (*_MOVING, *_STILL_RISING, *_FREE)
RISING_FEATURES: frozenset[str] = frozenset((*_MOVING, *_STILL_RISING))
STILL = len(_MOVING)  # features from here on depend on neither a cosine nor a BM25
_ROW = {name: n for n, name in enumerate(FEATURE_NAMES)}
_BITS = np.array([[int(trait)] for _, trait in _CUES], np.int64)
_FEELING = [name for name, _ in _CUES].index("feeling")
_ASKED = {
    kind: tuple((_ROW[name], int(trait)) for name, kinds, trait in _WANTED if kind in kinds) for kind in QueryKind
}


@dataclass(frozen=True, slots=True, eq=False)
class Background:
    """What the strongest hundred candidates usually look like, for scopes with few records to compare with.

    `mean` and `spread` are columns with one row for each name of `MEASURED`.
    """

    mean: Floats
    spread: Floats
    weight: float  # how many other candidates it counts as


class _Comparison:
    """Each signal of `MEASURED` as a z-score against the other candidates, one row for each.

    A candidate is compared with the strongest `RIVALS` of the *others*: its own value changes only its own z-score,
    and the result is the same whether the whole scope or only its best part was retrieved.
    """

    __slots__ = ("_centre", "_value", "_width", "z")

    def __init__(self, c: Candidates, background: Background) -> None:
        value = np.array([getattr(c, name) for name in MEASURED], np.float64)
        value[_TEXTS] /= max(c.mass, 1e-9)
        value -= background.mean
        value /= background.spread
        size = value.shape[1]
        if size > RIVALS + 1:
            # A candidate among the strongest is replaced by the next one, the weakest of these.
            ranked = np.partition(value, size - RIVALS - 1, axis=1)[:, size - RIVALS - 1 :]
            own = np.maximum(value, ranked[:, :1])
            count = RIVALS
        else:
            ranked = own = value
            count = size - 1
        ranked, own = np.minimum(ranked, _OUTSTANDING), np.minimum(own, _OUTSTANDING)
        total = count + background.weight
        self._centre = (ranked.sum(axis=1, keepdims=True) - own) / total
        squares = np.einsum("ij,ij->i", ranked, ranked)[:, None] + background.weight
        variance = (squares - own * own) / total - self._centre**2
        self._width = 1.0 / np.sqrt(np.maximum(variance, 0.01))
        self._value = value
        self.z: Floats = (value - self._centre) * self._width

    def neighbours(self, index: Numbers) -> Floats:
        """The signals of neighbours, on the scale of these candidates."""
        seen = (self._value[_LENT][:, index] - self._centre[_LENT]) * self._width[_LENT]
        return np.where(index < 0, _UNKNOWN_NEIGHBOUR, seen)

    def best(self, branch: Numbers) -> Floats:
        """The best cosine and BM25 in each candidate's branch; its own where it has no branch."""
        order = np.argsort(branch, kind="stable")
        codes = branch[order]
        starts = np.flatnonzero(codes[1:] != codes[:-1]) + 1
        starts = np.concatenate(([0], starts))
        best = np.maximum.reduceat(self._value[_SHARED][:, order], starts, axis=1)
        of_branch = best[:, np.searchsorted(codes[starts], branch)]
        seen = (of_branch - self._centre[_SHARED]) * self._width[_SHARED]
        return np.where(branch >= 0, seen, self.z[_SHARED])


def compute_z_scores(candidates: Candidates, background: Background) -> Floats:
    """The compared signals alone, one row for each name of `MEASURED`."""
    return _Comparison(candidates, background).z


def features(
    query: QueryTraits, candidates: Candidates, background: Background, kinds: RecordKinds | None = None
) -> Floats:
    """Compute the feature matrix: one row per name of `FEATURE_NAMES`, one column per candidate.

    Every kind of record has its own rows: code only those named so, other records the rest. Short records without
    neighbours and long ones have rows in addition.
    """
    c = candidates
    compared = _Comparison(c, background)
    log_length = np.log1p(c.length)
    kinds = kinds or record_kinds(c)
    long, code = kinds.long, kinds.code
    short = 1.0 - long - code
    rows = np.zeros((len(FEATURE_NAMES), len(c)))
    rows[:8] = compared.z
    rows[20], rows[21] = c.coverage, c.coverage_window
    _fill_neighbourhood(rows[22:28], rows[_ROW["after_question"]], c, compared)
    if code.any():
        # A query all of whose words occur is most likely a name.
        rows[31:36] = compared.z[3], compared.z[0], compared.z[5], compared.z[6], c.coverage**4
        rows[31:36] *= code
        rows[:28] *= 1.0 - code
    if long.max() > 1e-3:
        np.multiply(compared.z, long, out=rows[8:16])
        rows[16:20] = c.coverage, c.coverage_part, c.coverage_own, c.coverage_first
        rows[16:20] *= long
    if kinds.lone.any():
        rows[28:31] = compared.z[3], compared.z[5], c.coverage
        rows[28:31] *= kinds.lone
    _fill_persons(rows, c, short)
    if query.dates:
        rows[_ROW["date_day"] : _ROW["date_month"] + 1] = _date_fit(query, c)
        rows[_ROW["date_text"]] = c.date_match
    if query.ago is not None:
        rows[_ROW["ago"]] = _ago_fit(query.ago, c.now - c.created)
    free = rows[_ROW["length"] :]
    free[0] = short * log_length
    free[1] = short * (log_length - 3.0) ** 2
    free[2] = long * (log_length - 7.5)
    free[3 : 3 + len(_CUES)] = ((c.flags & _BITS) != 0) * short
    if query.feeling:
        free[3 + len(_CUES)] = free[3 + _FEELING]
    for row, bit in _ASKED[query.kind]:
        rows[row] = short * ((c.flags & bit) != 0)
    return rows


@dataclass(frozen=True, slots=True, eq=False)
class RecordKinds:
    """How far each candidate is code, a long record, a note, or a turn of talk.

    A short record is a turn if it belongs to a branch and is signed by somebody who signed another one too: a label
    such as "Retries:" opens one note, the name of a speaker many turns. Otherwise it is a note.

    The four add up to 1.
    """

    code: Floats
    long: Floats
    lone: Floats

    @property
    def turn(self) -> Floats:
        return 1.0 - self.code - self.long - self.lone


def record_kinds(c: Candidates) -> RecordKinds:
    """What kinds of record the candidates are."""
    code = ((c.flags & int(Trait.CODE)) != 0).astype(np.float64)
    long = (1.0 - code) * longness(np.log1p(c.length))
    lone = (c.speaker == 0) | ((c.prev < 0) & (c.next < 0) & (c.branch < 0))
    return RecordKinds(code, long, lone * (1.0 - code - long))


def _fill_persons(rows: Floats, c: Candidates, short: Floats) -> None:
    """Fill in who speaks and of whom, where the query names somebody."""
    rows[_ROW["name"]] = c.name_match
    if not c.author_match.any():
        return
    by_named = np.asarray(c.author_match, np.float64)
    first = short * ((c.flags & int(Trait.FIRST_PERSON)) != 0)
    near = np.maximum(by_named[c.prev] * (c.prev >= 0), by_named[c.next] * (c.next >= 0))
    addressed = short * (1.0 - by_named) * near * ((c.flags & int(Trait.SECOND_PERSON)) != 0)
    rows[_ROW["author"]] = by_named
    rows[_ROW["author_speaks"]] = first * by_named
    rows[_ROW["addressed"]] = addressed
    # Somebody else speaks of themselves, or of nobody whom the query names.
    rows[_ROW["stranger"]] = short * (1.0 - by_named) * (1.0 - c.name_match) * (addressed == 0) * c.has_author


def _fill_neighbourhood(rows: Floats, after_question: Floats, c: Candidates, compared: _Comparison) -> None:
    """Fill in what neighbours and the branch add: near, branch and answer, each by cosine and by BM25."""
    if c.prev.max() < 0 and c.next.max() < 0:
        rows[:2] = _UNKNOWN_NEIGHBOUR
    else:
        before, after = compared.neighbours(c.prev), compared.neighbours(c.next)
        np.maximum(before[:2], after[:2], out=rows[:2])
        after_question[:] = ((c.flags[c.prev] & int(Trait.QUESTION)) != 0) & (c.prev >= 0)
        rows[4:6] = after_question * before[::2]
    rows[2:4] = compared.best(c.branch) if c.branch.max() >= 0 else compared.z[_SHARED]


def _ago_fit(ago: tuple[float, float], age: Numbers) -> Floats:
    """How well a record's age in days fits the period the query names, from 0 to 1."""
    fewest, most = ago
    off = np.maximum(np.maximum(fewest - age, age - most), 0.0)
    return np.asarray(np.exp(-1.5 * off / max(most - fewest, 2.0)) * (age >= -1.0))


def _date_fit(query: QueryTraits, candidates: Candidates) -> Floats:
    """Whether a record was made on a day that the query names, within the week around it, or in its month or season."""
    days, where = np.unique(np.floor(candidates.created).astype(np.int64), return_inverse=True)
    fits = [
        np.max([_fit(date.fromordinal(int(day) + _EPOCH_ORDINAL), *wanted) for wanted in query.dates], axis=0)
        for day in days
    ]
    return np.asarray(fits).T[:, where]


def _fit(made: date, year: int, month: int, day: int) -> tuple[float, float, float]:
    if year and not month:
        return 0.0, 0.0, 0.3 * (made.year == year)
    # What happened at the end of a month is written about in the next one.
    after = date(year or made.year, month, 28) + timedelta(days=13)
    in_month = made.month == month and (not year or made.year == year)
    just_after = 0 <= (after - made).days < 11
    if not day:
        return 0.0, 0.0, 1.0 if in_month else 0.4 * just_after
    try:
        late = (made - date(year or made.year, month, day)).days
    except ValueError:  # the 30th of February
        return 0.0, 0.0, 0.0
    # People write about a day on that day and soon after.
    return float(0 <= late <= 1), float(-1 <= late <= 7), float(abs(late) <= 14)


def longness(log_length: Floats) -> Floats:
    """0 for a note or a turn, 1 for a document or a whole session."""
    return np.asarray(0.5 + 0.5 * np.tanh(1.5 * (log_length - _LONG_LENGTH)))


@dataclass(frozen=True, slots=True, eq=False)
class QuerySignals:
    """Everything needed to rank one query's candidates."""

    matches: Matches
    traits: QueryTraits
    candidates: Candidates


def query_hashes(words: Iterable[str]) -> list[int]:
    """The distinct hashes of the terms of a query."""
    return list(dict.fromkeys(map(term_hash, words)))


def measure(found: CandidateSet, text: str, hashes: Sequence[int], vector: Singles | None, *, now: int) -> QuerySignals:
    """Compute the signals of what retrieval found for a query; `now` is in microseconds."""
    traits = query_traits(text)
    weighed = _discount_frame_words(found, hashes)
    matches = match(weighed, hashes, vector)
    return QuerySignals(matches, traits, _candidates(weighed, matches, hashes, traits, vector, now))


def _candidates(
    found: CandidateSet, matches: Matches, hashes: Sequence[int], traits: QueryTraits, vector: Singles | None, now: int
) -> Candidates:
    authors, names = _named(traits)
    named = [i for i, number in enumerate(hashes) if number in names]
    parts = _Parts(matches.vector_own, matches.coverage, matches.coverage, matches.coverage)
    if len(found.details.chunk_record) > found.details.size:
        parts = _parts(found, matches, hashes, vector)
    return Candidates(
        vector=matches.vector,
        vector_window=matches.vector_window,
        vector_own=matches.vector_own,
        vector_first=parts.vector_first,
        text=matches.text,
        text_part=matches.text_part,
        text_own=matches.text_own,
        text_window=matches.text_window,
        coverage=matches.coverage,
        coverage_part=parts.best,
        coverage_own=parts.own,
        coverage_first=parts.first,
        coverage_window=matches.coverage_window,
        prev=found.before,
        next=found.after,
        branch=found.branch,
        length=found.length,
        flags=found.flags,
        author_match=np.array([number in authors for number in found.author.tolist()], np.bool_),
        has_author=found.author != 0,
        speaker=_speakers(found.author),
        name_match=np.any(matches.holds[:, named], axis=1, keepdims=True)[:, 0],
        date_match=_names_month(found, traits),
        created=found.created / _MICROS_A_DAY,
        scope_size=found.scope_size,
        mass=matches.mass,
        unseen=_unseen(found),
        now=now / _MICROS_A_DAY,
    )


def _speakers(author: NDArray[Any]) -> NDArray[np.bool_]:
    """Which records are signed by somebody who signed another of them too."""
    if not author.any():
        return np.zeros(len(author), np.bool_)
    ordered = np.sort(author)
    times = np.searchsorted(ordered, author, "right") - np.searchsorted(ordered, author, "left")
    return np.asarray((times > 1) & (author != 0))


def _discount_frame_words(found: CandidateSet, hashes: Sequence[int]) -> CandidateSet:
    """Treat the words that frame a question ("how many", "remind me") as common: an answer does not repeat them."""
    frame = [i for i, number in enumerate(hashes) if number in _frame()]
    if not frame:
        return found
    held = found.word_records.copy()
    held[frame] = np.maximum(held[frame], _FRAME_SHARE * found.scope_size)
    return replace(found, word_records=held)


@lru_cache(maxsize=1)
def _frame() -> frozenset[int]:
    return frozenset(term_hash(term) for word in word_list("frame_words") for term in query_terms(word))


@lru_cache(maxsize=256)
def _named(traits: QueryTraits) -> tuple[frozenset[int], frozenset[int]]:
    """The hashes of the authors the query may mean, and of the names in it."""
    authors = frozenset(map(term_hash, traits.words))
    return authors, frozenset(term_hash(term) for name in traits.names for term in query_terms(name))


def _unseen(found: CandidateSet) -> float:
    rarity = _rarity(found.word_records, found.scope_size)
    return float(rarity[: len(found.word_records)][found.word_records == 0].sum() / max(float(rarity.sum()), 1e-9))


def _names_month(found: CandidateSet, traits: QueryTraits) -> NDArray[np.bool_]:
    """Which records name a month that the query means."""
    named = np.zeros(found.details.size, np.bool_)
    months = {month for _, month, _ in traits.dates if month}
    if months:
        details = found.details
        wanted = np.array([number for month in months for number in _month_terms(month)], np.uint32)
        hit = np.isin(details.term_hash, wanted)
        named[details.chunk_record[details.term_chunk[hit]]] = True
    return named


@cache
def _month_terms(month: int) -> tuple[int, ...]:
    name = MONTHS[month - 1]
    return tuple(term_hash(term) for written in (name, name[:3]) for term in query_terms(written))


@dataclass(frozen=True, slots=True, eq=False)
class _Parts:
    """For each record: the cosine of its first own chunk, and the largest share of the query that one chunk covers."""

    vector_first: Singles
    best: Singles
    own: Singles
    first: Singles


def _parts(found: CandidateSet, matches: Matches, hashes: Sequence[int], vector: Singles | None) -> _Parts:
    details = found.details
    covered = np.zeros(len(details.chunk_record), np.float32)
    total = max(found.scope_size, 1)
    held = np.clip(found.word_records, 0.0, total)
    shares = np.log1p((total - held + 0.5) / (held + 0.5)) / matches.mass
    for number, share in zip(hashes, shares.tolist(), strict=True):
        # A chunk has each term once, so no index occurs twice.
        covered[details.term_chunk[np.flatnonzero(details.term_hash == number)]] += share
    starts = np.searchsorted(details.chunk_record, np.arange(details.size))
    own = np.where(details.by_assistant, np.float32(-1.0), covered)
    # The last write wins, so going backwards leaves each record's first own chunk; the first of all if none is its own.
    first = starts.copy()
    by_person = np.flatnonzero(~details.by_assistant)[::-1]
    first[details.chunk_record[by_person]] = by_person
    best = np.maximum.reduceat(covered, starts)
    best_own = np.maximum.reduceat(own, starts)
    return _Parts(
        vector_first=matches.vector_own if vector is None else details.vectors[first] @ vector,
        best=best,
        own=np.where(best_own < 0, best, best_own),
        first=covered[first],
    )


_RRF_K = 60.0
_CROWD = 20.0  # a scope of this size is half-way to having enough candidates to compare with
_SINGLE = {"vector": ("vector", "vector_window"), "text": ("text", "text_part", "text_window")}


@dataclass(frozen=True, slots=True, eq=False)
class Scores:
    """`score` is between 0 and 1 and comparable between queries; `raw` is the value of the fusion itself."""

    score: Floats
    raw: Floats

    def exchange(self, pairs: Iterable[tuple[int, int]]) -> Scores:
        """The scores with those of each pair of an older and a newer record exchanged if the older has the better."""
        score, raw = self.score.copy(), self.raw.copy()
        for older, newer in pairs:
            if (score[older], raw[older]) >= (score[newer], raw[newer]):
                for values in (score, raw):
                    values[older], values[newer] = values[newer], values[older]
        return Scores(score, raw)

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
        """Read the file that `training/ranking/train_ranking.py` writes."""
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
            kinds = record_kinds(candidates)
            rows = features(query, candidates, self.background, kinds)
            moving, still = self.weights[:STILL] @ rows[:STILL], self.weights[STILL:] @ rows[STILL:]
            return Fused(moving + still, float(still.mean()), rows, moving, kinds)
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
    kinds: RecordKinds | None = None


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
    if fused.rows is not None and fused.moving is not None and fused.kinds is not None:
        kinds = fused.kinds
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
