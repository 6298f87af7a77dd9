"""How two notes differ: whether they say the same, contradict each other, or one gives up what the other states."""

from __future__ import annotations

import json
import math
import re
from bisect import bisect_left
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import lru_cache
from itertools import pairwise
from pathlib import Path
from typing import Literal

from ...jobs import load_once
from ...lazy import regex
from ...records import Contradiction, Memory
from ..text import ABOUT_ONE_MATTER
from .opposites import CHANGES, EXCLUSIVE, HOLDERS, LIGHT, MANY, RESERVED, SCOPES, SIDES, THINGS
from .statements import Statement, plain_text, read_statement, without_context
from .synonyms import are_synonyms, is_known, with_synonyms

__all__ = [
    "ABOUT_ONE_THING", "COMPARED", "FEATURE_NAMES", "Counterpart", "LikenessModel", "conflict", "contradictions",
    "counterparts", "default_model", "difference", "differences", "drop_synonyms", "given_up", "is_comparable", "judge",
    "likeness_features", "only_in", "only_other_name", "rehearse", "replaced_word", "replacement", "share_root",
    "unmatched",
]  # fmt: skip


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
        """Read the file that `training/likeness/train_likeness.py` writes."""
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


ABOUT_ONE_THING = 0.6  # the cosine of two texts below which nothing is compared
_FURTHER = 3  # words that one may have beyond the other
_VALUES = frozenset(("number", "version", "date"))
_TURNING = frozenset(("negation", "opposite"))  # those that deny, also of what is over
_NAMED = frozenset(("name", "identifier", "quotation"))
_ONE_DIFFERENCE = _VALUES | _TURNING | _NAMED
_KEY = regex(r"([<>]?)(-?\d+(?:\.\d+)*)(.*)")
_PLACED = regex(r"\b(?:with|by|from|to|through|over|via|using|uses?|in|on|at) (?:the |our )?(\S+)")
_BE = regex(r"\b(?:is|are|was|were)\b")
_SAME_SIZE = 1.1  # 1 GB may be 1 GiB


def conflict(a: Statement, b: Statement, cosine: float) -> Difference | None:
    """The one difference in which two statements about the same thing contradict each other."""
    if a.empty or b.empty or cosine < ABOUT_ONE_THING or _can_both_hold(a, b):
        return None
    found: list[Difference] = []
    for one in differences(a, b):
        found.append(one)
        # Beside another difference, only a name in place of another is none.
        if one.kind not in _ONE_DIFFERENCE or (len(found) > 1 and not all(two.kind in _NAMED for two in found)):
            return None
    # Comparing the words takes by far the longest, so it comes last.
    if set(a.words).isdisjoint(b.words):
        return None
    if all(one.kind in _NAMED for one in found):
        if not _can_exclude(a, b) or not (_one_only(a) and _one_only(b)):
            return None
        return only_other_name(a, b)
    if len(found) != 1 or not _excludes(found[0], a, b) or not _same_opening(found[0], a, b):
        return None
    left, right = _own_words(a, b, synonyms=found[0].kind not in _TURNING)
    if found[0].kind == "opposite":
        left, right = _without(left, found[0].left), _without(right, found[0].right)
    return found[0] if _nothing_else(a, b, left, right) else None


def _can_both_hold(a: Statement, b: Statement) -> bool:
    """Whether two statements can hold side by side whatever they say: of a series, changes, a proposal, an example."""
    if a.labels != b.labels or a.adds or b.adds or _reserved(a) != _reserved(b):
        return True
    return _names_work(a) and _names_work(b)


def _names_work(statement: Statement) -> bool:
    """Whether a statement is the line of a log or a title, and asserts nothing: "update A to 2", "running scripts"."""
    if statement.tells_state or not statement.words:
        return False
    first = statement.spelled[statement.words[0]].lower()
    return first in CHANGES or first.endswith("ing")


def _reserved(statement: Statement) -> frozenset[str]:
    return frozenset(RESERVED.findall(statement.plain))


def _own_words(a: Statement, b: Statement, *, synonyms: bool) -> tuple[list[str], list[str]]:
    """The words of weight that each has for itself; two that only join a thing and its value cancel out."""
    left, right = ([word for word in own if not word.startswith("#")] for own in unmatched(a.words, b.words))
    names = [word for word in left if _is_name(a, word)], [word for word in right if _is_name(b, word)]
    left, right = only_in(left, names[0]), only_in(right, names[1])
    if synonyms:
        drop_synonyms(left, right)
    while not LIGHT.isdisjoint(left) and not LIGHT.isdisjoint(right):
        for own in (left, right):
            own.remove(next(word for word in own if word in LIGHT))
    return left + names[0], right + names[1]


def _nothing_else(a: Statement, b: Statement, left: Sequence[str], right: Sequence[str]) -> bool:
    """Whether at most one has a few words more. If each says something that the other lacks, they are of two things."""
    shared = len(set(a.words).intersection(b.words))
    most = max(len(left), len(right))
    return not (left and right) and most <= _FURTHER and shared > most


def _without(words: Sequence[str], written: str) -> list[str]:
    return [word for word in words if not written.lower().startswith(word[:3])]


# -- another value, a denial, an opposite ----------------------------------------------------------


def _excludes(found: Difference, a: Statement, b: Statement) -> bool:
    """Whether both cannot be; a value that only one of them has is a detail."""
    if found.kind == "negation":
        return _denies(a, b) if a.negations > b.negations else _denies(b, a)
    if found.kind not in _VALUES:
        return bool(found.left and found.right)
    if (a.is_past and b.is_past) or (found.kind != "number" and _add_up(a, b)):
        return False
    if found.kind == "date":
        return _one_each(a.dates, b.dates) is not None
    keys = _one_each(a.numbers, b.numbers)
    return keys is not None and not _overlap(*keys)


def _denies(denial: Statement, other: Statement) -> bool:
    """Whether the other says what is denied, and not only what stands beside it."""
    denied = {word for marker, word in denial.bound if marker == "not"}
    if not denied:
        return not any(unmatched(denial.words, other.words))
    return any(word in LIGHT or not unmatched((word,), other.words)[0] for word in denied)


def _add_up(a: Statement, b: Statement) -> bool:
    """Whether both say what is possible, or both what is not: two such things hold together."""
    return (a.permits and b.permits) or (a.negations > 0 and b.negations > 0)


def _one_each(a: Mapping[str, str], b: Mapping[str, str]) -> tuple[str, str] | None:
    left, right = only_in(a, b), only_in(b, a)
    return (left[0], right[0]) if len(left) == len(right) == 1 else None


def _overlap(one: str, other: str) -> bool:
    """Whether two amounts can both be right: of different units, one within the bounds of the other, or close."""
    left, right = _KEY.fullmatch(one), _KEY.fullmatch(other)
    if left is None or right is None:
        return one.partition(" ")[2] != other.partition(" ")[2]
    (sign, mine, unit), (other_sign, others, other_unit) = left.groups(), right.groups()
    if unit != other_unit:
        return True
    low, high = _comparable(mine, unit), _comparable(others, unit)
    if sign == other_sign:
        return unit == " B" and max(low, high)[0] <= _SAME_SIZE * min(low, high)[0]
    # "up to 40" and "5", "3.10 or newer" and "3.12", "at least 3" and "at most 9"
    return low <= high if sign == ">" or other_sign == "<" else high <= low


def _comparable(value: str, unit: str) -> tuple[float, ...]:
    """An amount by its size; without a unit, part by part as versions are: 3.9 is before 3.10."""
    return (float(value),) if unit and value.count(".") < 2 else tuple(map(float, value.split(".")))


def _same_opening(found: Difference, a: Statement, b: Statement) -> bool:
    """Whether the first word, mostly the subject, is common to both or belongs to the difference."""
    left, right = unmatched(a.words, b.words)
    openings = ((a.words, left), (b.words, right))
    return all(words and (words[0] not in own or _belongs(found, words[0])) for words, own in openings)


def _belongs(found: Difference, word: str) -> bool:
    if found.kind == "opposite":
        bits = (found.left.lower(), found.right.lower())
        things = any(axis in THINGS for bit in bits for axis, _ in SIDES.get(bit, ()))
        return not things and any(bit.startswith(word[:3]) for bit in bits)
    return word.startswith("#") or word in LIGHT


# -- another name ----------------------------------------------------------------------------------


def only_other_name(a: Statement, b: Statement) -> Difference | None:
    """A name in place of another, apart from which neither says anything that the other lacks."""
    left, right = _own_words(a, b, synonyms=True)
    mine, others = [word for word in left if _is_name(a, word)], [word for word in right if _is_name(b, word)]
    if not (_is_phrase(a, mine) and _is_phrase(b, others)):
        return None
    if not _nothing_else(a, b, only_in(left, mine), only_in(right, others)):
        return None
    subjects = _is_subject(a, mine) and _is_subject(b, others)
    if (subjects and not (_has_holder(a) and _has_holder(b))) or _is_purpose(a, mine) or _is_purpose(b, others):
        return None
    shown, other_shown = " ".join(a.spelled[word] for word in mine), " ".join(b.spelled[word] for word in others)
    if _abbreviates(shown, other_shown):
        return None
    code = all(one.lower() in side.identifiers for side, bit in ((a, shown), (b, other_shown)) for one in bit.split())
    return Difference("identifier" if code else "name", shown, other_shown)


def _can_exclude(a: Statement, b: Statement) -> bool:
    """Whether a name in place of another can be a contradiction: both are of now, and neither adds to the other."""
    return not (a.is_past and b.is_past) and not _add_up(a, b)


def _is_subject(statement: Statement, words: Sequence[str]) -> bool:
    """Whether words open a statement or stand before its verb."""
    verb = _BE.search(statement.plain)
    place = statement.plain.find(statement.spelled[words[0]].lower())
    return statement.words[0] in words or (verb is not None and place < verb.start())


def _is_purpose(statement: Statement, words: Sequence[str]) -> bool:
    written = re.escape(statement.spelled[words[0]].lower())
    return re.search(rf"\bfor (?:the |our )?{written}", statement.plain) is not None


def _is_phrase(statement: Statement, words: Sequence[str]) -> bool:
    """Whether words stand side by side."""
    places = [statement.words.index(word) for word in words]
    return bool(places) and max(places) - min(places) == len(places) - 1


def _is_name(statement: Statement, word: str) -> bool:
    """Whether a word is a name: written like one, or no English word and in the place of one."""
    written = statement.spelled[word].lower()
    if word.startswith(("#", "-")):
        return False
    if written in statement.names or word in statement.identifiers or written in statement.identifiers:
        return True
    if any(
        marker in statement.plain and re.search(rf"\b{marker}{re.escape(written)}\b", statement.plain)
        for marker in ("called ", "named ")
    ):
        return True
    if statement.spelled[word][0].isupper():
        return not is_known(word) or (_has_holder(statement) and word == statement.words[0])
    return not is_known(word) and written in _PLACED.findall(statement.plain)


def _one_only(statement: Statement) -> bool:
    """Whether a statement says what, where or whose a thing is, of which there is one; not what it has or calls."""
    if MANY.search(statement.plain):
        return False
    return statement.tells_state or statement.labelled or not EXCLUSIVE.isdisjoint(statement.words)


def _has_holder(statement: Statement) -> bool:
    return not HOLDERS.isdisjoint(statement.words)


def _abbreviates(short: str, long: str) -> bool:
    """Whether one may be short for the other: JS and JavaScript, k8s and Kubernetes, GCP and Google Cloud."""
    if len(short) > len(long):
        short, long = long, short
    letters = iter(long.lower().replace(" ", ""))
    plain = [letter for letter in short.lower() if letter.isalpha()]
    return len(short) <= 4 and short[0].lower() == long[0].lower() and all(letter in letters for letter in plain[:-1])


# Found in linear time; only what has it is read more closely.
_CUE = regex(
    r"\b(?:no longer|any ?more|instead of|in place of|replaced"
    r"|(?:switched|moved|migrated|changed)\b[^.!?\n]{0,200}?\b(?:from|to))\b",
    re.IGNORECASE,
)
# Bounded, as all that follows, so that no text takes long.
_PHRASE = r"(?:[^.,;:!?()\n]|\.(?=\S)){1,80}?"
_END = (
    r"(?=[,;:!?()\n]|\.(?:\s|\Z)|\Z"
    r"|\s(?:because|since|so|but|and|for|now|which|that|in|on|at|to|until|after|before|by|anymore)\b)"
)
_CHANGED = r"(?<!being\s)(?:switched|moved|migrated|changed)"
_GIVEN_UP = regex(
    rf"\b(?:instead|in\splace)\sof\s(?!just\b|only\b)(?P<other>{_PHRASE}){_END}"
    rf"|\b{_CHANGED}\b(?:\s[\w-]+){{0,4}}?\sfrom\s(?P<former>{_PHRASE})\s(?:over\s)?to\b"
    rf"|\breplaced\s(?P<old>{_PHRASE})\s(?:with|by)\b"
    rf"|(?:^|(?<=[.,;:!?]\s))(?P<gone>{_PHRASE})\s(?:is|are|was|were|got|has\sbeen|have\sbeen)\s(?:now\s)?replaced\s(?:with|by)\b",
    re.IGNORECASE,
)
_DENIED = regex(
    rf"(?P<before>{_PHRASE})??\s?\b(?:no\slonger|(?:not|never|n[o']t|\w+n't)\b(?P<inner>{_PHRASE})\sany\s?more)\b"
    rf"(?P<after>{_PHRASE})??(?=[,;:!?()\n]|\.(?:\s|\Z)|\s(?:because|since|so|but|and|as)\b|\Z)",
    re.IGNORECASE,
)
_MOVED_ON = regex(
    r"\b(?:(?:was|were|is|are|has|have|been)\s)*(?:switched|moved|migrated)\s(?:over\s)?to\b", re.IGNORECASE
)
_REASON = regex(r",?\s(?:because|since|as|so)\s", re.IGNORECASE)
# A change that is denied, wished for, asked, or holds in some cases only replaces nothing.
_OPEN = regex(
    r"\b(?:if|when|whenever|unless|while|whether|except|only|temporarily|sometimes|should|could|would|might|(?-i:may)|maybe|perhaps"
    r"|consider\w*|propos\w*|suggest\w*|plan\w*|wants?|wanted|try|tried|what about|how about|for now)\b|\?",
    re.IGNORECASE,
)
_NOT_DONE = regex(r"(?:\bnot|n't|\bnever|\bwithout|\binstead of)(?:\s[\w-]{1,40}){0,4}\s?\Z", re.IGNORECASE)
# What something does instead of what it should do is a fault and no change.
_FAULT = regex(
    r"\b(?:return|print|show|rais|throw|fail|got|wrong|bug|error|crash|unexpected|accident|mistak|respond|display)\w*",
    re.IGNORECASE,
)
_SENTENCE = regex(r"(?<=[.!?])\s+|\n+")
_OF_ANOTHER = frozenset(("opposite", "environment", "scope"))  # differences that show another matter
# Beginnings of words that say no more of a thing than that it holds or is given up.
_EMPTY = (
    "use", "allow", "need", "requir", "support", "valid", "permit", "call", "name", "want", "build", "longer",
    "instead", "switch", "move", "migrat", "chang", "replac",
)  # fmt: skip
_CHOICE = regex(r"\A(?:we |the team )?(?:decided|chose|agreed) (?:to|that|on)\s", re.IGNORECASE)


def given_up(older: str, newer: str, known: Sequence[str] = ()) -> str | None:
    """What a newer note gave up that the older one states; None if the older one is not outdated.

    `known` are further things, in the older note's words, that something in the newer one is known to supersede.
    """
    sentences = [one for one in _SENTENCE.split(newer) if _speaks_of_change(one)] if _CUE.search(newer) else []
    if not (known or sentences):
        return None
    stated = read_statement(_CHOICE.sub("", older))
    # What happened stays true.
    if not stated.english or stated.is_past or stated.negations or _OPEN.search(older) or _speaks_of_change(older):
        return None
    for sentence in sentences:
        if found := _given_up_in(sentence, stated):
            return found
    return next((one for one in known if _states(stated, one, read_statement(newer))), None)


def _speaks_of_change(text: str) -> bool:
    return _CUE.search(text) is not None and any(pattern.search(text) for pattern in (_GIVEN_UP, _DENIED, _MOVED_ON))


def _given_up_in(sentence: str, older: Statement) -> str | None:
    if _OPEN.search(sentence):
        return None
    newer = read_statement(sentence)
    for phrase in _given_up(sentence):
        if _states(older, phrase, newer):
            return phrase
    if _MOVED_ON.search(sentence) and not any(_given_up(sentence)):
        # What was there before is not said: it is what the older note has in place of the new name.
        now = read_statement(_MOVED_ON.sub("use", _REASON.split(sentence, 1)[0]))
        if other := only_other_name(older, now):
            return other.left
    return None


def _given_up(sentence: str) -> Iterator[str]:
    for found in _GIVEN_UP.finditer(sentence):
        if not (_NOT_DONE.search(sentence[: found.start()]) or (found["other"] and _FAULT.search(sentence))):
            yield next(part for part in found.groups() if part).strip()
    for found in _DENIED.finditer(sentence):
        yield " ".join(part.strip() for part in found.groups() if part)


def _states(older: Statement, phrase: str, newer: Statement) -> bool:
    """Whether the older note states the thing of a phrase, of the same matter as the newer one."""
    gone = _telling(read_statement(phrase).words)
    if not gone or not set(gone).issubset(older.words):
        return False
    if any(one.kind in _OF_ANOTHER and one.left and one.right for one in differences(older, newer)):
        return False
    # Amounts alone are no other matter.
    unshared = [w for w in _telling(older.words) if not (w in gone or w in newer.words or w.startswith("#"))]
    # A rule on one thing, such as "npm is no longer allowed", holds wherever that is used.
    general = len(gone) == 1 and len([word for word in _telling(newer.words) if word not in gone]) <= 1
    return len(unshared) - len(with_synonyms(unshared, newer.words)) <= general


def _telling(words: Sequence[str]) -> list[str]:
    return [word for word in words if word not in LIGHT and not word.startswith(_EMPTY)]


# -- the notes around a memory ---------------------------------------------------------------------

COMPARED = 8  # of the notes around a memory
_REPORTED = 3
# Longer texts make many statements; one difference between two of them means little.
_LONGEST_COMPARED = 1_000


def replacement(older: Memory, newer: Memory, gone: Sequence[str] = ()) -> str | None:
    """What a newer note has given up that an older one states. A text that nobody reviewed replaces none that was."""
    if any(one.kind != "note" or one.role or len(one.content) > _LONGEST_COMPARED for one in (older, newer)):
        return None
    if newer.status == "pending" and older.status != "pending":
        return None
    # Imported on first use: few queries find two such notes.
    from .conflicts import given_up
    from .statements import without_context

    return given_up(without_context(older.content), without_context(newer.content), gone)


@dataclass(frozen=True, slots=True)
class Counterpart:
    """A memory that says the same as another one, or the opposite; `merged` has all facts of two that say the same."""

    memory: Memory
    relation: Literal["repeats", "contradicts"]
    reason: str
    merged: str | None = None


def contradictions(memory: Memory, near: Iterable[tuple[Memory, float]]) -> tuple[Contradiction, ...]:
    """The memories near one, each with its cosine, that contradict it, nearest first, each with the reason."""
    found = []
    for other, cosine in near:
        older, newer = sorted((other, memory), key=lambda one: one.created_at)
        if cosine >= ABOUT_ONE_MATTER and (gone := replacement(older, newer)):
            found.append(Contradiction(other.id, f"given up: {gone}"))
        elif cosine >= ABOUT_ONE_THING and (
            difference := conflict(_statement(other.content), _statement(memory.content), cosine)
        ):
            found.append(Contradiction(other.id, str(difference)))
    return tuple(found[:_REPORTED])


def counterparts(memory: Memory, near: Iterable[tuple[Memory, float]]) -> list[Counterpart]:
    """The memories near one that repeat or contradict it, nearest first. Merged texts are made by rules alone."""
    from ..consolidation.merging import Piece, merge

    mine = _statement(memory.content)
    found = []
    for other, cosine in near:
        theirs = _statement(other.content)
        if difference := conflict(theirs, mine, cosine):
            found.append(Counterpart(other, "contradicts", str(difference)))
        elif (judged := judge(theirs, mine, cosine)).same:
            pieces = [Piece(one.content, one.created_at) for one in (other, memory)]
            reason = f"{judged.probability:.0%} likely to say the same"
            found.append(Counterpart(other, "repeats", reason, merge(pieces)))
    return found[:_REPORTED]


def rehearse(content: str) -> None:
    """Load what a comparison needs."""
    conflict(_statement(content), _statement(content), 1.0)
    given_up(content, content)


def is_comparable(memory: Memory) -> bool:
    """Whether a memory can repeat or contradict another: a note that nobody spoke, and no long one."""
    return memory.kind == "note" and memory.role is None and len(memory.content) <= _LONGEST_COMPARED


@lru_cache(maxsize=256)
def _statement(content: str) -> Statement:
    """What a note states; kept, because the notes around a subject are compared with each new one about it."""
    return read_statement(without_context(content))
