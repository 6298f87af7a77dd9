"""How well the sentences of some evidence support a claim. Pure.

`rank` orders sentences by how much of the claim they say. The best few are read together and weighed by a logistic
model (`support_model.json`, made by `train_support.py`). The caller can pass the cosine of the claim with each
sentence; without cosines only words count.
"""

from __future__ import annotations

import json
import math
import re
from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import lru_cache
from importlib import resources
from itertools import pairwise
from typing import Any, Literal, get_args

from ....core.jobs import load_once
from ....core.memory.comparison.conflicts import share_root
from ....core.memory.comparison.opposites import word_set
from ....core.memory.comparison.statements import Statement, read_statement

__all__ = [
    "FEATURE_NAMES", "Figure", "SupportModel", "Verdict", "WordWeights", "are_comparable", "compare", "default_model",
    "find_counterpart", "model_features", "rank", "read_figures", "read_passage", "support",
]  # fmt: skip

FEATURE_NAMES = (
    "coverage", "coverage_second", "last_covered", "one_missing", "figureless", "figureless_coverage",
    "figureless_all", "near_pairs", "density", "negation", "opposites", "extremes_missing", "hedged", "number_equal",
    "number_follows", "number_likely", "number_open", "number_against", "number_absent", "number_compared",
    "date_equal", "date_follows", "date_likely", "date_open", "date_against", "date_absent", "date_compared",
    "claim_length", "document", "document_coverage", "whole_near_pairs", "whole_figures", "sentences", "cosine",
)  # fmt: skip
_USUAL_COSINE = 0.65  # of a claim and a text on the same subject, used without cosines
_CLAIM = 2000  # characters of a claim that are read
_ALL = 400_000  # characters of all evidence that are read
_FOCUS = 5  # sentences that are read together
_WORDS = 0.65  # the part of a sentence's score that comes from words; the rest is its cosine
_REPEATED = 0.7  # the worth of a word that an earlier sentence has
_PICKED = 8  # sentences chosen one after the other; the others follow by their own score
_CANDIDATES = 100  # sentences to choose from
_LONGEST = 20_000  # characters of a text that are read
_FIGURES = 1000  # of all evidence
_CLAIMED = 20  # figures of a claim that are compared
_NEAR = 5  # distance in words within which two words are near each other
_SPARE = 0.5  # how well a word must be found to count as present
_ANOTHER_FORM, _SIMILAR = 0.8, 0.6
_TOPICAL = 0.25  # the weighted share of a claim's words from which a text is about it
_AS_LONG = 2  # extra words with which a text is still about nothing but the claim
_COMPARED_AXES = 3  # the first opposites are comparisons and times, which figures decide better
_EXTREMES = word_set(
    "first only most least best worst largest biggest highest lowest oldest youngest last sole every all"
)
_SHORT = 2_000  # characters up to which a text that was read is cached
_MONEY = re.compile(r"\b(?:US|AU|CA|NZ|HK|[AC])\s?(?=\$)|\b(?:Rs\.?|INR|USD|EUR|GBP)\s?(?=\d)|₹\s?", re.I)
_SUPPORTING = frozenset(("equal", "follows", "likely"))


@dataclass(frozen=True, slots=True)
class SupportPassage:
    """A text as it is compared."""

    statement: Statement
    words: tuple[str, ...]  # stems without figures
    known: frozenset[str]
    figures: tuple[Figure, ...]
    extremes: frozenset[str]


def read_passage(text: str) -> SupportPassage:
    """Read a text; spaces and the country of a dollar make no difference."""
    return _short_passage(text) if len(text) <= _SHORT else _passage(text)


def _passage(text: str) -> SupportPassage:
    readable = text[:_LONGEST].encode("utf-8", "replace").decode("utf-8")
    statement = read_statement(_MONEY.sub("", " ".join(readable.split())))
    measures = {f"#{key}" for key in (*statement.numbers, *statement.dates)}
    words = tuple(word for word in statement.words if word not in measures)
    extremes = _EXTREMES.intersection(statement.plain.split())
    return SupportPassage(statement, words, frozenset(words), tuple(read_figures(statement)), extremes)


_short_passage = lru_cache(maxsize=512)(_passage)  # many claims meet the same few sentences


@dataclass(frozen=True, slots=True)
class WordWeights:
    """How distinctive each word is: the rarer, the more. Words that the table lacks are rare."""

    table: Mapping[str, float]
    rare: float

    def of(self, word: str) -> float:
        return self.table.get(word, self.rare)

    def share(self, words: Sequence[str], found: Mapping[str, float]) -> float:
        """The weighted share of the words that are found."""
        whole = sum(map(self.of, words))
        return sum(self.of(word) * found[word] for word in words) / whole if whole else 1.0


@dataclass(frozen=True, slots=True)
class Support:
    """How likely the evidence supports the claim, the best sentence (-1 for none), and the features."""

    probability: float
    best: int
    features: Mapping[str, float]


@dataclass(frozen=True, slots=True)
class LogisticModel:
    """The coefficients of a logistic model, by feature."""

    coefficients: Mapping[str, float]
    offset: float

    def probability(self, features: Mapping[str, float]) -> float:
        total = self.offset + sum(weight * features[name] for name, weight in self.coefficients.items())
        return 0.5 + 0.5 * math.tanh(0.5 * total)


def read_weights(content: Mapping[str, Any], features: Sequence[str]) -> tuple[dict[str, float], float]:
    """The weight of each feature and the offset, as the training programs write them."""
    if set(content["weights"]) != set(features):
        raise ValueError("the features of the model differ from the computed ones")
    return {name: float(content["weights"][name]) for name in features}, float(content["offset"])


@dataclass(frozen=True, slots=True)
class SupportModel(LogisticModel):
    words: WordWeights

    @classmethod
    def from_json(cls, text: str) -> SupportModel:
        """Read a model as `training/likeness/train_support.py` writes it."""
        content = json.loads(text)
        words = WordWeights(content["words"], float(content["rare"]))
        return cls(*read_weights(content, FEATURE_NAMES), words)


@load_once
def default_model() -> SupportModel:
    """The model of the package."""
    text = resources.files("cortex_py.parts.verify.judges").joinpath("support_model.json").read_text("utf-8")
    return SupportModel.from_json(text)


def support(claim: str, evidence: Sequence[str], cosines: Sequence[float] | None = None) -> Support:
    """How likely the sentences together support the claim; `cosines` has one value per sentence."""
    model = default_model()
    best, features = model_features(claim, evidence, cosines, model.words)
    if best < 0 or not claim.strip():
        return Support(0.0, -1, features)
    return Support(model.probability(features), best, features)


def rank(claim: str, sentences: Sequence[str], cosines: Sequence[float] | None = None) -> list[int]:
    """The indexes of all sentences, the one that says most of the claim first."""
    return _order(read_passage(claim[:_CLAIM]), _read_all(sentences), _checked(sentences, cosines))


def model_features(
    claim: str, evidence: Sequence[str], cosines: Sequence[float] | None, words: WordWeights
) -> tuple[int, dict[str, float]]:
    """The best sentence, and the features for the model."""
    said, passages, near = read_passage(claim[:_CLAIM]), _read_all(evidence), _checked(evidence, cosines)
    order = _order(said, passages, near)
    focus = sorted(order[:_FOCUS])
    together = passages[focus[0]] if len(focus) == 1 else read_passage("\n".join(evidence[place] for place in focus))
    features = support_features(said, together, words) | whole_features(said, passages, words, _FOCUS)
    features["cosine"] = max((near[place] for place in focus), default=0.0) if near else _USUAL_COSINE
    return (order[0] if order and not together.statement.empty else -1), features


def _checked(evidence: Sequence[str], cosines: Sequence[float] | None) -> list[float]:
    if cosines is None:
        return []
    if len(cosines) != len(evidence):
        raise ValueError("there must be one cosine per sentence")
    return [min(1.0, max(-1.0, float(value))) if math.isfinite(value) else 0.0 for value in cosines]


def _read_all(evidence: Sequence[str]) -> list[SupportPassage]:
    """Read all sentences; those beyond the limit count as empty, so that indexes stay."""
    passages, left = [], _ALL
    for sentence in evidence:
        passages.append(read_passage(sentence[: max(0, left)]))
        left -= len(sentence)
    return passages


def _order(claim: SupportPassage, passages: Sequence[SupportPassage], near: Sequence[float]) -> list[int]:
    """Pick sentences one after the other; a word counts less once a picked sentence has it."""
    weights = _local_weights(claim, passages)
    total = sum(weights.values()) or 1.0
    shared = [weights.keys() & set(passage.statement.words) for passage in passages]
    part = _WORDS if near else 1.0
    base = [(1.0 - part) * value for value in near] or [0.0] * len(passages)

    def score(place: int) -> float:
        return base[place] + part * sum(weights[word] for word in sorted(shared[place])) / total

    alone = sorted(range(len(passages)), key=lambda place: (-score(place), place))
    chosen: list[int] = []
    candidates = alone[:_CANDIDATES]
    while candidates and len(chosen) < _PICKED:
        chosen.append(min(candidates, key=lambda place: (-score(place), place)))
        candidates.remove(chosen[-1])
        for word in shared[chosen[-1]]:
            weights[word] *= _REPEATED
    picked = set(chosen)
    return chosen + [place for place in alone if place not in picked]


def _local_weights(claim: SupportPassage, passages: Sequence[SupportPassage]) -> dict[str, float]:
    """How distinctive the claim's words are among these sentences."""
    wanted = dict.fromkeys(claim.statement.words)
    counts = Counter(word for passage in passages for word in wanted.keys() & set(passage.statement.words))
    return {word: math.log((len(passages) + 1) / (counts[word] + 0.5)) for word in wanted}


# Features: the words of the claim that the text has (rare ones count more, other forms of a word less), its figures
# compared by value, then how near the shared words are, negations, opposites and superlatives.


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
    if any(share_root(word, other) for other in others):
        return _ANOTHER_FORM
    mine = _trigrams(word)
    dice = (2 * len(mine & theirs) / max(1, len(mine) + len(theirs)) for theirs in map(_trigrams, others))
    return _SIMILAR if max(dice, default=0.0) >= _SIMILAR else 0.0


def _trigrams(word: str) -> frozenset[str]:
    return frozenset(word[n : n + 3] for n in range(len(word) - 2))


def support_features(claim: SupportPassage, passage: SupportPassage, weights: WordWeights) -> dict[str, float]:
    """The features of a claim and a short text, by name."""
    covered = _coverage(claim, passage, weights)
    topical = min(1.0, covered["coverage"] / _TOPICAL)
    return {
        **covered,
        **_phrasing(claim.statement.words, passage.statement.words),
        **_polarity(claim, passage, covered["coverage"]),
        **_figure_features(
            "number", [figure for figure in claim.figures if len(figure.value) == 1], passage.figures, topical
        ),
        **_figure_features(
            "date", [figure for figure in claim.figures if len(figure.value) > 1], passage.figures, topical
        ),
        "claim_length": math.log1p(len(claim.words)),
    }


def _coverage(claim: SupportPassage, passage: SupportPassage, weights: WordWeights) -> dict[str, float]:
    """A claim without figures rests on its words alone, so it has features of its own."""
    distinct = list(dict.fromkeys(claim.words))
    found = found_words(distinct, passage.known)
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


def _phrasing(claim: Sequence[str], passage: Sequence[str]) -> dict[str, float]:
    place: dict[str, int] = {}
    for number, word in enumerate(passage):
        place.setdefault(word, number)
    common = [place[word] for word in dict.fromkeys(claim) if word in place]
    return {
        "near_pairs": _near_pairs(claim, passage),
        "density": len(common) / (max(common) - min(common) + 1) if common else 0.0,
    }


def _near_pairs(claim: Sequence[str], passage: Sequence[str]) -> float:
    """The share of the claim's neighbouring words that are near each other in the text, in either order."""
    pairs, wanted = set(pairwise(claim)), set(claim)
    hits = [(number, word) for number, word in enumerate(passage) if word in wanted]
    near: set[tuple[str, str]] = set()
    for at, (number, word) in enumerate(hits):
        for further, other in hits[at + 1 : at + _NEAR]:
            if further - number < _NEAR:
                near.update(((word, other), (other, word)))
    return len(pairs & near) / max(1, len(pairs))


def _polarity(claim: SupportPassage, passage: SupportPassage, coverage: float) -> dict[str, float]:
    a, b = claim.statement, passage.statement
    axes = {axis for axis, _ in a.sides if axis >= _COMPARED_AXES}
    sides = [({side for on, side in a.sides if on == x}, {side for on, side in b.sides if on == x}) for x in axes]
    opposites = sum(bool(others) and not mine & others for mine, others in sides)
    return {
        "negation": coverage * _differs_in_negation(claim, passage),  # irrelevant in a text about something else
        "opposites": float(min(2, opposites)),
        "extremes_missing": float(min(2, len(claim.extremes - passage.extremes))),
        "hedged": float(_as_long(claim, passage) and ((b.hedged and not a.hedged) or (b.asks and not a.asks))),
    }


def _differs_in_negation(claim: SupportPassage, passage: SupportPassage) -> bool:
    """Whether only one of the two negates a shared word, or, in a text hardly longer than the claim, negates at all."""
    a, b = claim.statement, passage.statement
    mine, others = ({word for mark, word in x.bound if mark == "not"} for x in (a, b))
    if any(
        _covers_around(claim, passage, word) for word in mine ^ others if word in claim.known and word in passage.known
    ):
        return True
    return (not a.negations) != (not b.negations) and _as_long(claim, passage)


def _as_long(claim: SupportPassage, passage: SupportPassage) -> bool:
    return len(passage.words) <= len(claim.words) + _AS_LONG


def _covers_around(claim: SupportPassage, passage: SupportPassage, word: str) -> bool:
    """Whether the text has at least half of the claim's words around this word, which it has once."""
    if passage.words.count(word) > 1:
        return False
    at = passage.words.index(word)
    around = claim.known.intersection(passage.words[max(0, at - len(claim.words)) : at + len(claim.words)])
    return 2 * len(around) > len(claim.known)


def _figure_features(
    name: str, claimed: Sequence[Figure], stated: Sequence[Figure], topical: float
) -> dict[str, float]:
    """Count the verdicts on the figures of one kind, and whether the claim compares them.

    A matching figure counts only as far as the text is about the claim.
    """
    counts = Counter(_verdicts(claimed[:_CLAIMED], stated))
    return {
        **{f"{name}_{v}": min(2, counts[v]) * (topical if v in _SUPPORTING else 1.0) for v in get_args(Verdict)},
        f"{name}_compared": float(any(figure.sign for figure in claimed)),
    }


def _verdicts(claimed: Sequence[Figure], stated: Sequence[Figure]) -> list[Verdict]:
    """One verdict per figure. Both bounds of "between 40 and 60" fail if one does."""
    found: list[Verdict] = [compare(f, other) if (other := find_counterpart(f, stated)) else "absent" for f in claimed]
    for place in range(len(claimed) - 1):
        bounds = claimed[place].sign, claimed[place + 1].sign
        if bounds == (">=", "<=") and "against" in found[place : place + 2]:
            found[place : place + 2] = ["against", "against"]
    return found


def _any_share(claimed: Sequence[Figure], stated: Sequence[Figure]) -> float:
    supported = [any(are_comparable(f, t) and compare(f, t) in _SUPPORTING for t in stated) for f in claimed[:_CLAIMED]]
    return sum(supported) / len(supported) if supported else 0.0


def whole_features(
    claim: SupportPassage, passages: Sequence[SupportPassage], weights: WordWeights, picked: int
) -> dict[str, float]:
    """The features of all sentences together. With more sentences than were picked, the evidence is a document."""
    distinct = list(dict.fromkeys(claim.words))
    everything = frozenset[str]().union(*(passage.known for passage in passages))
    figures = [figure for passage in passages for figure in passage.figures][:_FIGURES]
    document = float(len(passages) > picked)
    return {
        "document": document,
        "document_coverage": document * weights.share(distinct, found_words(distinct, everything)),
        "whole_near_pairs": _near_pairs(claim.statement.words, [w for p in passages for w in p.statement.words]),
        "whole_figures": _any_share(claim.figures, figures),
        "sentences": math.log1p(len(passages)),
    }


# Whether the figures in the evidence support those of a claim: 53 supports "over 50", 47 does not. Pure.
#
# Every number or date becomes a `Figure`: what it counts, its bound and its value. A figure of the claim is compared
# with the figure of the evidence that most likely means the same, by the words around both and by their values.

# What a figure of the evidence says about one of the claim; "likely" if the bounds overlap: over 512, below 600.
Verdict = Literal["equal", "follows", "likely", "open", "against", "absent"]

_NUMBER = re.compile(r"([<>]?)(~?)(#?)([-+]?\d+(?:\.\d+)?(?:e[-+]?\d+)?)(?: (\D.*))?")
_DATE = re.compile(r"([<>]?)(\d{4})?-(\d\d)(?:-(\d\d))?")
_AMOUNT_WORDS = word_set("more less fewer greater over under above below least most up exceeding within")
_INCLUSIVE = re.compile(r"\b(?:at (?:least|most)|up to|no (?:more|less|fewer)|not (?:more|less)|min|max|or)\b|[=≥≤+]")
_YEARS = range(1500, 2101)
_MANY = 200  # figures of a text that are read
_REACH = 5  # words on either side that say what a figure is about


@dataclass(frozen=True, slots=True)
class Figure:
    """A number or date; `value` is a date's year, month and day, with 0 for what is missing."""

    kind: str  # "date", "year" for what may be a date or a number, "#" for a place in a row, else the unit
    sign: str  # "<", "<=", ">", ">=" or ""
    value: tuple[float, ...]
    around: dict[str, float]  # words beside it, the nearer the weightier


def read_figures(statement: Statement) -> list[Figure]:
    """The figures of a statement in their order, each with the words around it."""
    found: list[Figure] = []
    words = statement.words
    for place, word in enumerate(words):
        if not word.startswith("#") or len(found) >= _MANY:
            continue
        key, written = word[1:], statement.spelled.get(word, "")
        if (read := _read(key, written)) and not _in_a_name(written, statement.plain):
            kind, sign, value = read
            found.append(Figure(kind, sign or _bound(words, place), value, _around(words, place)))
    return found


def _read(key: str, written: str) -> tuple[str, str, tuple[float, ...]] | None:
    if date := _DATE.fullmatch(key):
        sign, *parts = date.groups()
        return "date", sign, tuple(float(part or 0) for part in parts)
    number = _NUMBER.fullmatch(key)
    if number is None:
        return None
    sign, crowd, place, digits, unit = number.groups()
    value = float(digits)
    if not math.isfinite(value):
        return None
    if not (crowd or place or unit) and _is_year(value, written):
        return "year", sign, (value, 0.0, 0.0)
    if sign and _INCLUSIVE.search(written.lower()):
        sign += "="
    return place or unit or "", ">" if crowd else sign, (value,)


def _is_year(value: float, written: str) -> bool:
    first = written.split(maxsplit=1)[0].lower() if written else ""
    return value in _YEARS and "," not in written and "." not in written and first not in _AMOUNT_WORDS


def _in_a_name(written: str, plain: str) -> bool:
    """Whether the digits always end a name, as in "F-16"."""
    if f"-{written}" not in plain:
        return False
    places = [found.start() for found in re.finditer(rf"(?<!\w){re.escape(written)}(?!\w)", plain)]
    return all(place > 1 and plain[place - 1] == "-" and plain[place - 2].isalpha() for place in places)


def _bound(words: Sequence[str], place: int) -> str:
    """The sign of a figure in "between 40 and 60"."""
    if place and words[place - 1] == "between" and words[place + 1 : place + 2] and words[place + 1].startswith("#"):
        return ">="
    return "<=" if place > 1 and words[place - 2] == "between" and words[place - 1].startswith("#") else ""


def _around(words: Sequence[str], place: int) -> dict[str, float]:
    """The words around a figure by weight; those after it more often say what is counted."""
    weights: dict[str, float] = {}
    for distance in range(1, _REACH + 1):
        for at, weight in ((place + distance, 1.0), (place - distance, 0.8)):
            if 0 <= at < len(words) and not words[at].startswith("#"):
                weights[words[at]] = max(weights.get(words[at], 0.0), weight / distance)
    return weights


def are_comparable(claimed: Figure, stated: Figure) -> bool:
    """Whether both are of one kind; what may be a year compares with dates and with plain numbers."""
    return claimed.kind == stated.kind or {claimed.kind, stated.kind} in ({"year", "date"}, {"year", ""})


def compare(claimed: Figure, stated: Figure) -> Verdict:
    """What a figure of the evidence says about one of the claim, assuming that both mean the same."""
    if len(claimed.value) == 1 or len(stated.value) == 1:
        return _compare_values(claimed.sign, stated.sign, claimed.value[0], stated.value[0])
    # A part of a date that only one of them has counts as equal.
    parts = list(zip(claimed.value, stated.value, strict=True))
    known = [(mine, other) for mine, other in parts if mine and other]
    if not known:
        return "open"
    verdict = _compare_values(claimed.sign, stated.sign, _fold([a for a, _ in known]), _fold([b for _, b in known]))
    untold = any(mine and not other for mine, other in parts)
    return "open" if untold and verdict == "equal" and len(known) == 1 else verdict


def _fold(parts: Sequence[float]) -> float:
    """Year, month and day as one number that keeps their order."""
    total = 0.0
    for part in parts:
        total = total * 40 + part
    return total


def _compare_values(claimed: str, stated: str, value: float, other: float) -> Verdict:
    if value == other:
        return _compare_at_bound(claimed, stated)
    if not claimed:
        return "open" if stated and (other < value) == stated.startswith(">") else "against"
    beyond = (other > value) == claimed.startswith(">")
    if not stated:
        return "follows" if beyond else "against"
    if stated[0] == claimed[0]:
        return "follows" if beyond else "open"
    return "likely" if beyond else "against"


def _compare_at_bound(claimed: str, stated: str) -> Verdict:
    if claimed == stated:
        return "equal"
    if claimed.endswith("="):
        return "follows" if not stated or stated[0] == claimed[0] else "open"
    if not claimed:
        return "likely" if stated.endswith("=") else "open"
    return "open" if stated and stated[0] == claimed[0] else "against"


def find_counterpart(claimed: Figure, stated: Sequence[Figure]) -> Figure | None:
    """The figure of the same kind that most likely means the same."""

    def score(figure: Figure) -> float:
        common = sum(min(weight, figure.around.get(word, 0.0)) for word, weight in claimed.around.items())
        return common - min(2.0, 2.0 * _distance(claimed, figure))

    return max((figure for figure in stated if are_comparable(claimed, figure)), key=score, default=None)


def _distance(claimed: Figure, stated: Figure) -> float:
    """How far apart the values are: in powers of two for numbers, in years for dates."""
    if len(claimed.value) == len(stated.value) > 1:
        gaps = [abs(a - b) if a and b else 0.3 for a, b in zip(claimed.value, stated.value, strict=True)]
        return min(4.0, gaps[0] + 0.5 * min(1.0, gaps[1]) + 0.25 * min(1.0, gaps[2]))
    a, b = claimed.value[0], stated.value[0]
    if a == b:
        return 0.0
    return min(4.0, abs(math.log2(a) - math.log2(b))) if a > 0 and b > 0 else 4.0
