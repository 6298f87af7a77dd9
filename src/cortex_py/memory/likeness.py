"""Whether two notes say the same in other words, contradict each other, or only look alike. Pure.

A difference that no likeness outweighs decides alone. Where there is none, a logistic model weighs the cosine of their
vectors and how their words match. Its coefficients and the threshold live in `likeness_model.json`, made by
`bench/train_likeness.py`. Vectors come from the caller, as a cosine; the two statements may stand in either order.
"""

from __future__ import annotations

import json
import math
from bisect import bisect_left
from collections.abc import Sequence
from dataclasses import dataclass
from functools import lru_cache
from importlib import resources
from itertools import pairwise

from .differences import Difference, Kind, difference, differences, kin, only_in
from .opposites import SIDES, THINGS
from .statements import Statement, code_blocks, plain_text

__all__ = [
    "FEATURE_NAMES",
    "Difference",
    "Judgement",
    "Kind",
    "LikenessModel",
    "conflict",
    "default_model",
    "difference",
    "judge",
    "likeness_features",
    "same_text",
]

FEATURE_NAMES = ("cosine", "overlap", "one_sided", "equal", "order", "phrases", "length")
_MANY = 30  # words that each has alone: so many make two texts differ, whatever forms they are


@dataclass(frozen=True, slots=True)
class Judgement:
    """Whether two statements say the same, how likely that is, and the difference that speaks against it."""

    same: bool
    probability: float
    reason: str | None


def same_text(a: str, b: str) -> bool:
    """Whether two texts differ in nothing but case, spaces, list marks, quotes and punctuation between words."""
    return plain_text(a) == plain_text(b) and code_blocks(a) == code_blocks(b)


@dataclass(frozen=True, slots=True)
class LikenessModel:
    """The coefficients of the logistic model and where its probability counts as enough."""

    weights: tuple[float, ...]  # one per name of FEATURE_NAMES
    offset: float
    threshold: float
    foreign_threshold: float  # for other languages than English, of which less is read

    @classmethod
    def from_json(cls, text: str) -> LikenessModel:
        """The model in a file as `bench/train_likeness.py` writes it."""
        content = json.loads(text)
        weights = content["weights"]
        if set(weights) != set(FEATURE_NAMES):
            raise ValueError("the likeness model weighs other features than those that are computed")
        return cls(
            weights=tuple(float(weights[name]) for name in FEATURE_NAMES),
            offset=float(content["offset"]),
            threshold=float(content["threshold"]),
            foreign_threshold=float(content["foreign_threshold"]),
        )

    def probability(self, a: Statement, b: Statement, cosine: float) -> float:
        """How likely the two say the same, differences aside."""
        rows = zip(self.weights, likeness_features(a, b, cosine), strict=True)
        return 0.5 + 0.5 * math.tanh(0.5 * (self.offset + sum(weight * value for weight, value in rows)))


@lru_cache(maxsize=1)
def default_model() -> LikenessModel:
    """The model that ships with the package."""
    text = resources.files("cortex_py.memory").joinpath("likeness_model.json").read_text("utf-8")
    return LikenessModel.from_json(text)


def judge(a: Statement, b: Statement, cosine: float) -> Judgement:
    """Whether two statements say the same; `cosine` is that of their vectors. Nothing is the same as an empty text."""
    if a.empty or b.empty:
        return Judgement(False, 0.0, None)
    if a.plain == b.plain and a.fences == b.fences:
        return Judgement(True, 1.0, None)
    if found := difference(a, b):
        return Judgement(False, 0.0, str(found))
    model = default_model()
    probability = model.probability(a, b, cosine)
    threshold = model.threshold if a.english and b.english else model.foreign_threshold
    return Judgement(probability >= threshold, probability, None)


def likeness_features(a: Statement, b: Statement, cosine: float) -> tuple[float, ...]:
    """The values that the model weighs, in the order of FEATURE_NAMES; the same for both orders of the two."""
    left, right = _unmatched(a.words, b.words)
    shared = (len(set(a.words)) - len(left) + len(set(b.words)) - len(right)) / 2
    more, fewer = max(len(left), len(right)), min(len(left), len(right))
    overlap = shared / max(1.0, shared + more + fewer)
    if not more:  # how the words stand tells something only where others take their place
        return cosine, overlap, 0.0, 1.0, 0.0, 0.0, 0.0
    return (
        cosine,
        overlap,
        float(fewer == 0),
        0.0,
        _kept_order(a.words, b.words),
        _shared_pairs(a.words, b.words),
        math.log1p(len(a.words) + len(b.words)),
    )


def _unmatched(a: tuple[str, ...], b: tuple[str, ...]) -> tuple[list[str], list[str]]:
    """The words of each that the other has in no form; "sun glasses" is a form of "sunglasses"."""
    if b < a:  # the first that fits is taken, so that which is asked first must not matter
        return _unmatched(b, a)[::-1]
    left, right = list(dict.fromkeys(only_in(a, b))), list(dict.fromkeys(only_in(b, a)))
    if min(len(left), len(right)) > _MANY:
        return left, right
    for word in tuple(left):
        if form := next((other for other in right if kin(word, other)), None):
            left.remove(word)
            right.remove(form)
    _join(a, left, right)
    _join(b, right, left)
    return left, right


def _join(words: Sequence[str], mine: list[str], others: list[str]) -> None:
    for first, second in pairwise(words):
        if first == second or first not in mine or second not in mine:
            continue
        if whole := next((other for other in others if kin(first + second, other)), None):
            mine.remove(first)
            mine.remove(second)
            others.remove(whole)


def _kept_order(a: Sequence[str], b: Sequence[str]) -> float:
    """The share of the common words that stand in the same order: the longest such run, left to right."""
    place = {word: n for n, word in enumerate(dict.fromkeys(b))}
    common = [word for word in dict.fromkeys(a) if word in place]
    ends: list[int] = []
    for word in common:
        at = bisect_left(ends, place[word])
        ends[at : at + 1] = [place[word]]
    return len(ends) / len(common) if common else 1.0


def _shared_pairs(a: Sequence[str], b: Sequence[str]) -> float:
    """The share of neighbouring words that are neighbours in both."""
    left, right = set(pairwise(a)), set(pairwise(b))
    return len(left & right) / max(1, len(left | right))


# Kinds of differences by which two statements about one thing exclude each other.
_EXCLUDING = frozenset(("number", "version", "date", "negation", "opposite", "name", "identifier", "quotation"))
_ABOUT_ONE_THING = 0.6  # cosine
_FURTHER = 3  # words that one may have beyond the other


def conflict(a: Statement, b: Statement, cosine: float) -> Difference | None:
    """The one thing in which two statements about the same exclude each other, as an older and a newer note do."""
    if a.empty or b.empty or cosine < _ABOUT_ONE_THING:
        return None
    found = list(differences(a, b))
    if len(found) != 1 or found[0].kind not in _EXCLUDING or not _one_for_one(found[0], a, b):
        return None
    return found[0] if _about_the_same(found[0], a, b) else None


def _one_for_one(found: Difference, a: Statement, b: Statement) -> bool:
    """Whether one value stands against one other: what only one side tells is more detail, no contradiction."""
    if found.kind == "negation":
        return True
    values = (a.numbers, b.numbers) if found.kind in ("number", "version") else (a.dates, b.dates)
    if found.kind in ("number", "version", "date"):
        return len(only_in(*values)) == len(only_in(*reversed(values))) == 1
    if found.kind == "identifier" and not (a.tells_state and b.tells_state):
        return False  # "see A" and "see B", "run with A" and "run with B" go together
    return bool(found.left and found.right)


def _about_the_same(found: Difference, a: Statement, b: Statement) -> bool:
    """Whether, but for the difference, both have the same subject and nearly the same words."""
    left, right = _unmatched(a.words, b.words)
    if not all(_opens_alike(found, *side) for side in ((a.words, left), (b.words, right))):
        return False
    further = [_further(found.kind, *side) for side in ((left, found.left), (right, found.right))]
    shared = len(set(a.words).intersection(b.words))
    return min(further) <= 1 and max(further) <= _FURTHER and shared > max(further)


def _opens_alike(found: Difference, words: Sequence[str], unmatched: Sequence[str]) -> bool:
    """Whether the first word is common to both, or may differ though mostly the subject stands there."""
    if not words or words[0] not in unmatched:
        return bool(words)
    word = words[0]
    if found.kind == "opposite":
        things = any(axis in THINGS for bit in (found.left, found.right) for axis, _ in SIDES.get(bit, ()))
        return not things and any(bit.lower().startswith(word[:3]) for bit in (found.left, found.right))
    return word.startswith("#")


def _further(kind: Kind, unmatched: Sequence[str], bit: str) -> int:
    """How many words go beyond those of the difference itself; numbers and dates are words with a mark."""
    own = len(bit.split()) if kind in ("name", "identifier", "opposite", "quotation") else 0
    return max(0, sum(not word.startswith("#") for word in unmatched) - own)
