"""Whether two notes say the same in other words, or are only similar, and in what they differ.

A difference decides alone, and so does one word in place of another that does not mean the same. Otherwise a logistic
model weighs the cosine of their vectors and how their words match, synonyms included. `bench/train_likeness.py` writes
its coefficients and thresholds to `likeness_model.json`. The order of the two statements does not matter.
"""

from __future__ import annotations

import json
import math
from bisect import bisect_left
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from itertools import pairwise
from pathlib import Path
from typing import Literal

from ...pools import load_once
from .opposites import SCOPES
from .statements import Statement, plain_text
from .synonyms import are_synonyms, with_synonyms

__all__ = [
    "FEATURE_NAMES",
    "LikenessModel",
    "default_model",
    "difference",
    "differences",
    "drop_synonyms",
    "judge",
    "likeness_features",
    "only_in",
    "replaced_word",
    "share_root",
    "unmatched",
]

# -- differences: a number, a name, a negation, an opposite ----------------------------------------
# Each check looks for one kind and returns the two values that differ, to show people the reason.

DifferenceKind = Literal[
    "code", "number", "version", "date", "quotation", "identifier", "environment", "negation", "opposite", "name",
    "question", "certainty", "scope", "order",
]  # fmt: skip
_PREFIXES = ("un", "in", "im", "ir", "il", "dis", "non", "de", "mis", "anti")


@dataclass(frozen=True, slots=True)
class Difference:
    """The kind of a difference and the two values, "" if a statement has none."""

    kind: DifferenceKind
    left: str
    right: str

    def __str__(self) -> str:
        return f"{self.kind}: {self.left or '–'} / {self.right or '–'}"


def difference(a: Statement, b: Statement) -> Difference | None:
    """The first difference of two statements, if any."""
    return next(differences(a, b), None)


def differences(a: Statement, b: Statement) -> Iterator[Difference]:
    """One difference of each kind that occurs."""
    for find in _CHECKS:
        if found := find(a, b):
            yield found


def _code(a: Statement, b: Statement) -> Difference | None:
    if a.fences == b.fences:
        return None
    return Difference("code", "\n".join(a.fences), "\n".join(b.fences))


def _numbers(a: Statement, b: Statement) -> Difference | None:
    left, right = only_in(a.numbers, b.numbers), only_in(b.numbers, a.numbers)
    if not left and not right:
        return None
    version = a.versions.intersection(left) or b.versions.intersection(right)
    return _shown("version" if version else "number", a.numbers, left, b.numbers, right)


def _dates(a: Statement, b: Statement) -> Difference | None:
    left, right = only_in(a.dates, b.dates), only_in(b.dates, a.dates)
    return _shown("date", a.dates, left, b.dates, right) if left or right else None


def _quotations(a: Statement, b: Statement) -> Difference | None:
    left = [key for key, words in a.quotations.items() if key not in b.quotations and plain_text(words) not in b.plain]
    right = [key for key, words in b.quotations.items() if key not in a.quotations and plain_text(words) not in a.plain]
    return _shown("quotation", a.quotations, left, b.quotations, right) if left and right else None


def _identifiers(a: Statement, b: Statement) -> Difference | None:
    left = [i for i in a.identifiers if i not in b.identifiers and i not in b.plain]
    right = [i for i in b.identifiers if i not in a.identifiers and i not in a.plain]
    return _shown("identifier", a.identifiers, left, b.identifiers, right) if left or right else None


def _environments(a: Statement, b: Statement) -> Difference | None:
    left, right = only_in(a.environments, b.environments), only_in(b.environments, a.environments)
    telling = any(a.environments[name] for name in left) or any(b.environments[name] for name in right)
    if (left and right) or telling:
        return Difference("environment", ", ".join(left), ", ".join(right))
    return None


def _polarity(a: Statement, b: Statement) -> Difference | None:
    """Negations and opposites together: two of them cancel out ("not allowed" is "forbidden")."""
    turned = a.negations % 2 != b.negations % 2 or (not a.negations) != (not b.negations)
    opposite = next(_opposites(a, b), None)
    if opposite and (not turned or opposite.kind == "scope"):
        return opposite
    if turned and not opposite:
        return Difference("negation", *(("not", "") if a.negations > b.negations else ("", "not")))
    return None


def _opposites(a: Statement, b: Statement) -> Iterator[Difference]:
    for axis in sorted({axis for axis, _ in a.sides}.intersection(axis for axis, _ in b.sides)):
        mine = {side: word for (on, side), word in a.sides.items() if on == axis}
        others = {side: word for (on, side), word in b.sides.items() if on == axis}
        if not mine.keys() & others.keys():
            kind: DifferenceKind = "scope" if axis in SCOPES else "opposite"
            yield Difference(kind, next(iter(mine.values())), next(iter(others.values())))
    left, right = only_in(a.words, b.words), only_in(b.words, a.words)
    yield from (Difference("opposite", a.spelled[x], b.spelled[y]) for x, y in _prefixed(left, right))
    yield from (Difference("opposite", a.spelled[x], b.spelled[y]) for y, x in _prefixed(right, left))


def _prefixed(words: Sequence[str], bases: Sequence[str]) -> Iterator[tuple[str, str]]:
    """Pairs of a word with a negative prefix and its base: invalid and valid."""
    known = {base for base in bases if len(base) > 3}
    for word in words:
        if known and word.startswith(_PREFIXES):
            yield from ((word, word[len(p) :]) for p in _PREFIXES if word.startswith(p) and word[len(p) :] in known)


def _names(a: Statement, b: Statement) -> Difference | None:
    left = [name for name in only_in(a.names, b.names) if not _has_kin(name, a.names[name], b)]
    right = [name for name in only_in(b.names, a.names) if not _has_kin(name, b.names[name], a)]
    return _shown("name", a.names, left, b.names, right) if left and right else None


def _has_kin(name: str, written: str, other: Statement) -> bool:
    """Whether the other statement has the name in another form: Greek for Greece, SC for Supreme Court."""
    if any(share_root(name, word) for word in other.words) or any(share_root(name, word) for word in other.names):
        return True
    return written.isupper() and name in "".join(word[0] for word in other.words)


_ROOT = 4  # letters at least that forms of a word begin with


def share_root(word: str, other: str) -> bool:
    """Whether two words are forms of one, by their beginning: China and Chinese, not Austria and Australia."""
    if word[:_ROOT] != other[:_ROOT]:
        return False
    alike = next((n for n, (x, y) in enumerate(zip(word, other, strict=False)) if x != y), min(len(word), len(other)))
    return alike >= _ROOT and alike >= 0.75 * min(len(word), len(other)) and alike > 0.5 * max(len(word), len(other))


def _question(a: Statement, b: Statement) -> Difference | None:
    return _marked("question", a.asks, b.asks, "?")


def _certainty(a: Statement, b: Statement) -> Difference | None:
    return _marked("certainty", a.hedged, b.hedged, "perhaps")


def _scope(a: Statement, b: Statement) -> Difference | None:
    return _marked("scope", a.only, b.only, "only")


def _marked(kind: DifferenceKind, left: bool, right: bool, mark: str) -> Difference | None:
    return Difference(kind, mark if left else "", mark if right else "") if left != right else None


def _order(a: Statement, b: Statement) -> Difference | None:
    """Exchanged roles: "from A to B" against "from B to A", "A calls B" against "B calls A"."""
    mine, others = sorted(a.bound - b.bound), sorted(b.bound - a.bound)
    for marker, word in mine:
        for other_marker, other in others:
            exchanged = marker == other_marker and word in b.words and other in a.words
            if exchanged or (word == other and {marker, other_marker} == {"from", "to"}):
                return Difference("order", f"{marker} {a.spelled[word]}", f"{other_marker} {b.spelled[other]}")
    if a.english and b.english and a.passive == b.passive and (roles := _exchanged(a.words, b.words)):
        left, right = [a.spelled[word] for word in roles], [b.spelled[word] for word in reversed(roles)]
        return Difference("order", " … ".join(left), " … ".join(right))
    return None


def _exchanged(a: Sequence[str], b: Sequence[str]) -> tuple[str, ...] | None:
    """Three words in reverse order in the other statement: subject, verb and object were exchanged.

    Moving a part of a sentence to its other end never reverses three words.
    """
    if a == b or len(a) > 12 or len(set(a)) < len(a) or set(a) != set(b):
        return None
    place = {word: n for n, word in enumerate(b)}
    for x, first in enumerate(a):
        for y in range(x + 1, len(a)):
            if place[a[y]] > place[first]:
                continue
            for last in a[y + 1 :]:
                if place[last] < place[a[y]]:
                    return first, a[y], last
    return None


def only_in(mine: Mapping[str, object] | Sequence[str], others: Mapping[str, object] | Sequence[str]) -> list[str]:
    """What only the first has, in its order."""
    known = others if isinstance(others, Mapping) else set(others)
    return [key for key in mine if key not in known]


def _shown(
    kind: DifferenceKind, a: Mapping[str, str], left: Sequence[str], b: Mapping[str, str], right: Sequence[str]
) -> Difference:
    return Difference(kind, ", ".join(a[key] for key in left), ", ".join(b[key] for key in right))


_CHECKS: tuple[Callable[[Statement, Statement], Difference | None], ...] = (
    _code, _numbers, _dates, _quotations, _identifiers, _environments, _polarity, _names, _question, _certainty, _scope,
    _order,
)  # fmt: skip

FEATURE_NAMES = ("cosine", "overlap", "one_sided", "equal", "order", "phrases", "length")
_MANY = 30  # with more unmatched words on both sides, word forms are not compared
_SYNONYM = 0.9  # of a shared word


@dataclass(frozen=True, slots=True)
class Judgement:
    """Whether two statements say the same, with what probability, and the difference if there is one."""

    same: bool
    probability: float
    reason: str | None


@dataclass(frozen=True, slots=True)
class LikenessModel:
    """The coefficients and thresholds of the logistic model."""

    weights: tuple[float, ...]  # one per name of FEATURE_NAMES
    offset: float
    threshold: float
    foreign_threshold: float  # for languages other than English, of which less is understood

    @classmethod
    def from_json(cls, text: str) -> LikenessModel:
        """Read the file that `bench/train_likeness.py` writes."""
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
        """The probability that two statements without a difference say the same."""
        rows = zip(self.weights, likeness_features(a, b, cosine), strict=True)
        return 0.5 + 0.5 * math.tanh(0.5 * (self.offset + sum(weight * value for weight, value in rows)))


@load_once
def default_model() -> LikenessModel:
    """The model that ships with the package."""
    return LikenessModel.from_json(Path(__file__).with_name("likeness_model.json").read_text("utf-8"))


def judge(a: Statement, b: Statement, cosine: float) -> Judgement:
    """Whether two statements say the same; `cosine` is that of their vectors. An empty text equals nothing."""
    if a.empty or b.empty:
        return Judgement(False, 0.0, None)
    if a.plain == b.plain and a.fences == b.fences:
        return Judgement(True, 1.0, None)
    if found := difference(a, b):
        return Judgement(False, 0.0, str(found))
    if contrast := replaced_word(a, b):
        return Judgement(False, 0.0, "word: {} / {}".format(*contrast))
    model = default_model()
    probability = model.probability(a, b, cosine)
    threshold = model.threshold if a.english and b.english else model.foreign_threshold
    return Judgement(probability >= threshold, probability, None)


def replaced_word(a: Statement, b: Statement) -> tuple[str, str] | None:
    """The one word in which two statements differ, if neither is a form or a synonym of the other."""
    if not (a.english and b.english) or len(a.words) != len(b.words) or len(a.words) < 2:
        return None
    replaced = [(one, other) for one, other in zip(a.words, b.words, strict=True) if one != other]
    if len(replaced) != 1:
        return None
    (mine, other), *_ = replaced
    alike = share_root(mine, other) or are_synonyms(mine, other)
    return None if alike else (a.spelled[mine], b.spelled[other])


def likeness_features(a: Statement, b: Statement, cosine: float) -> tuple[float, ...]:
    """The features of the model, in the order of FEATURE_NAMES; they do not depend on the order of the two."""
    left, right = unmatched(a.words, b.words)
    shared = (len(set(a.words)) - len(left) + len(set(b.words)) - len(right)) / 2
    shared += _SYNONYM * drop_synonyms(left, right)
    more, fewer = max(len(left), len(right)), min(len(left), len(right))
    overlap = shared / max(1.0, shared + more + fewer)
    if not more:  # the order of the words matters only if some were exchanged
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


def drop_synonyms(left: list[str], right: list[str]) -> int:
    """Take pairs of synonyms out of the words that each has for itself; returns how many."""
    if min(len(left), len(right)) > _MANY:
        return 0
    found = 0
    # Most words have no synonym on the other side, which one look at all of it says.
    for word in with_synonyms(left, right):
        if other := next((one for one in right if are_synonyms(word, one)), None):
            left.remove(word)
            right.remove(other)
            found += 1
    return found


def unmatched(a: tuple[str, ...], b: tuple[str, ...]) -> tuple[list[str], list[str]]:
    """The words of each that the other has in no form; "sun glasses" is a form of "sunglasses"."""
    if b < a:  # the first match is taken, so the order of the two is fixed
        return unmatched(b, a)[::-1]
    left, right = list(dict.fromkeys(only_in(a, b))), list(dict.fromkeys(only_in(b, a)))
    if min(len(left), len(right)) > _MANY:
        return left, right
    beginnings = {word[:_ROOT] for word in right}
    for word in tuple(left):
        if word[:_ROOT] not in beginnings:
            continue
        if form := next((other for other in right if share_root(word, other)), None):
            left.remove(word)
            right.remove(form)
    _join(a, left, right)
    _join(b, right, left)
    return left, right


def _join(words: Sequence[str], mine: list[str], others: list[str]) -> None:
    beginnings = {word[:_ROOT] for word in others}
    for first, second in pairwise(words):
        if (first + second)[:_ROOT] not in beginnings:
            continue
        if first == second or first not in mine or second not in mine:
            continue
        if whole := next((other for other in others if share_root(first + second, other)), None):
            mine.remove(first)
            mine.remove(second)
            others.remove(whole)


def _kept_order(a: Sequence[str], b: Sequence[str]) -> float:
    """The share of the common words in the same order: the longest common subsequence."""
    place = {word: n for n, word in enumerate(dict.fromkeys(b))}
    common = [word for word in dict.fromkeys(a) if word in place]
    ends: list[int] = []
    for word in common:
        at = bisect_left(ends, place[word])
        ends[at : at + 1] = [place[word]]
    return len(ends) / len(common) if common else 1.0


def _shared_pairs(a: Sequence[str], b: Sequence[str]) -> float:
    """The share of pairs of neighbouring words that occur in both."""
    left, right = set(pairwise(a)), set(pairwise(b))
    return len(left & right) / max(1, len(left | right))
