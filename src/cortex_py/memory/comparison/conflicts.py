"""Whether two notes contradict each other: the same thing, the same property, another value or the opposite.

Two notes contradict each other if, apart from one difference, neither says anything that the other lacks. The
difference is a number, version or date in place of another, a name in place of another, a denial, or an opposite. Two
of a series, two events, two possibilities, a proposal, an example and a part of a history can all hold together.
The order of the two statements does not matter.
"""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence

from ...lazy import regex
from .likeness import Difference, differences, drop_synonyms, only_in, unmatched
from .opposites import CHANGES, EXCLUSIVE, HOLDERS, LIGHT, MANY, RESERVED, SIDES, THINGS
from .statements import Statement
from .synonyms import is_known

__all__ = ["ABOUT_ONE_THING", "conflict", "only_other_name"]

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
