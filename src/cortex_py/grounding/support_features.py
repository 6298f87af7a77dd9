"""What speaks for and against a text bearing out a claim, as numbers that a model can weigh. Pure.

A claim's words are looked for in the text, rare ones counting more and other forms of a word somewhat less; its figures
are compared by value; then come how near the shared words stand, negations, opposites and superlatives.
"""

from __future__ import annotations

import math
import re
from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from itertools import pairwise
from typing import get_args

from ..memory.differences import kin
from ..memory.opposites import word_set
from ..memory.statements import Statement, read_statement
from .figures import Figure, Verdict, agreement, aligned, comparable, figures_of

__all__ = ["Passage", "WordWeights", "found_words", "read_passage", "support_features", "whole_features"]

_LONGEST = 20_000  # characters of a text that are read
_FIGURES = 1000  # of all evidence
_NEAR = 5  # places within which two words count as near each other
_SPARE = 0.5  # how well a word must be found to count as there
_ANOTHER_FORM, _SIMILAR = 0.8, 0.6
_TOPICAL = 0.25  # the weighed share of a claim's words from which a text counts as being about it
_AS_LONG = 2  # words that a text may have beyond the claim and still be about nothing else
_COMPARED_AXES = 3  # the first opposites are comparisons and times, which figures tell better
_EXTREMES = word_set(
    "first only most least best worst largest biggest highest lowest oldest youngest last sole every all"
)
_MONEY = re.compile(r"\b(?:US|AU|CA|NZ|HK|[AC])\s?(?=\$)|\b(?:Rs\.?|INR|USD|EUR|GBP)\s?(?=\d)|₹\s?", re.IGNORECASE)
_BEARING = frozenset(("equal", "follows", "likely"))


@dataclass(frozen=True, slots=True)
class Passage:
    """A text as it is compared."""

    statement: Statement
    words: tuple[str, ...]  # stems without figures
    known: frozenset[str]
    figures: tuple[Figure, ...]
    extremes: frozenset[str]


def read_passage(text: str) -> Passage:
    """What the text says; spaces make no difference, nor does the country of a dollar."""
    readable = text[:_LONGEST].encode("utf-8", "replace").decode("utf-8")
    statement = read_statement(_MONEY.sub("", " ".join(readable.split())))
    measures = {f"#{key}" for key in (*statement.numbers, *statement.dates)}
    words = tuple(word for word in statement.words if word not in measures)
    extremes = _EXTREMES.intersection(statement.plain.split())
    return Passage(statement, words, frozenset(words), tuple(figures_of(statement)), extremes)


@dataclass(frozen=True, slots=True)
class WordWeights:
    """How telling a word is: the rarer, the more. Words that the table lacks are rare."""

    table: Mapping[str, float]
    rare: float

    def of(self, word: str) -> float:
        return self.table.get(word, self.rare)

    def share(self, words: Sequence[str], found: Mapping[str, float]) -> float:
        """The weighed share of the words that are found."""
        whole = sum(map(self.of, words))
        return sum(self.of(word) * found[word] for word in words) / whole if whole else 1.0


def found_words(words: Sequence[str], known: frozenset[str]) -> dict[str, float]:
    """How well each word is found: 1 as it is, less in another form or with another spelling, 0 not at all."""
    found = {word: float(word in known) for word in words}
    starts = {word[:3] for word, degree in found.items() if not degree}
    alike: dict[str, list[str]] = {}
    for other in known:
        if other[:3] in starts:
            alike.setdefault(other[:3], []).append(other)
    return {word: degree or _degree(word, alike.get(word[:3], ())) for word, degree in found.items()}


def _degree(word: str, others: Sequence[str]) -> float:
    if any(kin(word, other) for other in others):
        return _ANOTHER_FORM
    mine = _trigrams(word)
    dice = (2 * len(mine & theirs) / max(1, len(mine) + len(theirs)) for theirs in map(_trigrams, others))
    return _SIMILAR if max(dice, default=0.0) >= _SIMILAR else 0.0


def _trigrams(word: str) -> frozenset[str]:
    return frozenset(word[n : n + 3] for n in range(len(word) - 2))


def support_features(claim: Passage, told: Passage, weights: WordWeights) -> dict[str, float]:
    """The features of a claim and a short text, by name."""
    covered = _coverage(claim, told, weights)
    topical = min(1.0, covered["coverage"] / _TOPICAL)
    return {
        **covered,
        **_phrasing(claim.statement.words, told.statement.words),
        **_polarity(claim, told, covered["coverage"]),
        **_borne_out("number", [figure for figure in claim.figures if len(figure.value) == 1], told.figures, topical),
        **_borne_out("date", [figure for figure in claim.figures if len(figure.value) > 1], told.figures, topical),
        "claim_length": math.log1p(len(claim.words)),
    }


def _coverage(claim: Passage, told: Passage, weights: WordWeights) -> dict[str, float]:
    """A claim without figures rests on its words alone, so that they are weighed apart there."""
    distinct = list(dict.fromkeys(claim.words))
    found = found_words(distinct, told.known)
    missing = sum(degree < _SPARE for degree in found.values())
    coverage, alone = weights.share(distinct, found), float(not claim.figures)
    return {
        "coverage": coverage,
        "coverage_second": weights.share(distinct[(len(distinct) + 1) // 2 :], found),
        "last_covered": found[distinct[-1]] if distinct else 1.0,
        "one_missing": float(missing == 1),
        "figureless": alone,
        "figureless_coverage": alone * coverage,
        "figureless_all": alone * float(not missing),
    }


def _phrasing(claim: Sequence[str], told: Sequence[str]) -> dict[str, float]:
    place: dict[str, int] = {}
    for number, word in enumerate(told):
        place.setdefault(word, number)
    common = [place[word] for word in dict.fromkeys(claim) if word in place]
    return {
        "near_pairs": _near_pairs(claim, told),
        "density": len(common) / (max(common) - min(common) + 1) if common else 0.0,
    }


def _near_pairs(claim: Sequence[str], told: Sequence[str]) -> float:
    """The share of the claim's neighbouring words that stand near each other in the text, in either order."""
    pairs, wanted = set(pairwise(claim)), set(claim)
    hits = [(number, word) for number, word in enumerate(told) if word in wanted]
    near: set[tuple[str, str]] = set()
    for at, (number, word) in enumerate(hits):
        for further, other in hits[at + 1 : at + _NEAR]:
            if further - number < _NEAR:
                near.update(((word, other), (other, word)))
    return len(pairs & near) / max(1, len(pairs))


def _polarity(claim: Passage, told: Passage, coverage: float) -> dict[str, float]:
    a, b = claim.statement, told.statement
    axes = {axis for axis, _ in a.sides if axis >= _COMPARED_AXES}
    sides = [({side for on, side in a.sides if on == x}, {side for on, side in b.sides if on == x}) for x in axes]
    opposites = sum(bool(others) and not mine & others for mine, others in sides)
    return {
        "negation": coverage * _negated_otherwise(claim, told),  # of other matters it tells nothing
        "opposites": float(min(2, opposites)),
        "extremes_missing": float(min(2, len(claim.extremes - told.extremes))),
        "hedged": float(_as_long(claim, told) and ((b.hedged and not a.hedged) or (b.asks and not a.asks))),
    }


def _negated_otherwise(claim: Passage, told: Passage) -> bool:
    """Whether what both tell is negated in one only: a shared word, or all of a text hardly longer than the claim."""
    a, b = claim.statement, told.statement
    mine, others = ({word for mark, word in x.bound if mark == "not"} for x in (a, b))
    if any(_told_there(claim, told, word) for word in mine ^ others if word in claim.known and word in told.known):
        return True
    return (not a.negations) != (not b.negations) and _as_long(claim, told)


def _as_long(claim: Passage, told: Passage) -> bool:
    return len(told.words) <= len(claim.words) + _AS_LONG


def _told_there(claim: Passage, told: Passage, word: str) -> bool:
    """Whether around this word, which the text has once, at least half of the claim is told."""
    if told.words.count(word) > 1:
        return False
    at = told.words.index(word)
    around = claim.known.intersection(told.words[max(0, at - len(claim.words)) : at + len(claim.words)])
    return 2 * len(around) > len(claim.known)


def _borne_out(name: str, claimed: Sequence[Figure], told: Sequence[Figure], topical: float) -> dict[str, float]:
    """How the figures of one kind stand: counts of each verdict, and whether they are compared.

    A figure that fits tells nothing in a text about something else, so that it counts by how much the text is about
    the claim.
    """
    counts = Counter(_verdicts(claimed, told))
    return {
        **{f"{name}_{v}": min(2, counts[v]) * (topical if v in _BEARING else 1.0) for v in get_args(Verdict)},
        f"{name}_compared": float(any(figure.sign for figure in claimed)),
    }


def _verdicts(claimed: Sequence[Figure], told: Sequence[Figure]) -> list[Verdict]:
    """One verdict a figure; "between 40 and 60" is one, and no bound of it may be broken."""
    found: list[Verdict] = [agreement(f, other) if (other := aligned(f, told)) else "absent" for f in claimed]
    for place in range(len(claimed) - 1):
        bounds = claimed[place].sign, claimed[place + 1].sign
        if bounds == (">=", "<=") and "against" in found[place : place + 2]:
            found[place : place + 2] = ["against", "against"]
    return found


def _any_share(claimed: Sequence[Figure], told: Sequence[Figure]) -> float:
    borne = [any(comparable(f, t) and agreement(f, t) in _BEARING for t in told) for f in claimed]
    return sum(borne) / len(borne) if borne else 0.0


def whole_features(claim: Passage, told: Sequence[Passage], weights: WordWeights, picked: int) -> dict[str, float]:
    """What all sentences together say, beyond the few that were picked; a document is where there are others."""
    distinct = list(dict.fromkeys(claim.words))
    everything = frozenset[str]().union(*(passage.known for passage in told))
    figures = [figure for passage in told for figure in passage.figures][:_FIGURES]
    document = float(len(told) > picked)
    return {
        "document": document,
        "document_coverage": document * weights.share(distinct, found_words(distinct, everything)),
        "whole_near_pairs": _near_pairs(claim.statement.words, [w for p in told for w in p.statement.words]),
        "whole_figures": _any_share(claim.figures, figures),
        "sentences": math.log1p(len(told)),
    }
