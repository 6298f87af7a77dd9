"""Differences that no likeness of two statements outweighs: another number or name, a negation, an opposite. Pure.

Each check looks for one kind and tells the two bits that do not go together, so that people can read why.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Literal

from .opposites import SCOPES
from .statements import Statement, plain_text

__all__ = ["Difference", "Kind", "difference", "differences", "kin", "only_in"]

Kind = Literal[
    "code", "number", "version", "date", "quotation", "identifier", "environment", "negation", "opposite", "name",
    "question", "certainty", "scope", "order",
]  # fmt: skip
_PREFIXES = ("un", "in", "im", "ir", "il", "dis", "non", "de", "mis", "anti")


@dataclass(frozen=True, slots=True)
class Difference:
    """What makes two statements differ: its kind, and the two bits that do not go together ("" where one has none)."""

    kind: Kind
    left: str
    right: str

    def __str__(self) -> str:
        return f"{self.kind}: {self.left or '–'} / {self.right or '–'}"


def difference(a: Statement, b: Statement) -> Difference | None:
    """The first difference that no likeness outweighs."""
    return next(differences(a, b), None)


def differences(a: Statement, b: Statement) -> Iterator[Difference]:
    """One difference of each kind that there is."""
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
    """Negations and opposites together: an even number of turns cancels out ("not allowed" is "forbidden")."""
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
            kind: Kind = "scope" if axis in SCOPES else "opposite"
            yield Difference(kind, next(iter(mine.values())), next(iter(others.values())))
    left, right = only_in(a.words, b.words), only_in(b.words, a.words)
    yield from (Difference("opposite", a.spelled[x], b.spelled[y]) for x, y in _prefixed(left, right))
    yield from (Difference("opposite", a.spelled[x], b.spelled[y]) for y, x in _prefixed(right, left))


def _prefixed(words: Sequence[str], bases: Sequence[str]) -> Iterator[tuple[str, str]]:
    """Words that are others with a prefix of negation: invalid and valid."""
    known = {base for base in bases if len(base) > 3}
    for word in words:
        yield from ((word, word[len(p) :]) for p in _PREFIXES if word.startswith(p) and word[len(p) :] in known)


def _names(a: Statement, b: Statement) -> Difference | None:
    left = [name for name in only_in(a.names, b.names) if not _has_kin(name, a.names[name], b)]
    right = [name for name in only_in(b.names, a.names) if not _has_kin(name, b.names[name], a)]
    return _shown("name", a.names, left, b.names, right) if left and right else None


def _has_kin(name: str, written: str, other: Statement) -> bool:
    """Whether the other has the name in another form: Greek for Greece, SC for Supreme Court."""
    if any(kin(name, word) for word in other.words) or any(kin(name, word) for word in other.names):
        return True
    return written.isupper() and name in "".join(word[0] for word in other.words)


def kin(word: str, other: str) -> bool:
    """Whether two words are forms of one, by what they begin with: China and Chinese, not Austria and Australia."""
    if word[:4] != other[:4]:
        return False
    alike = next((n for n, (x, y) in enumerate(zip(word, other, strict=False)) if x != y), min(len(word), len(other)))
    return alike >= 4 and alike >= 0.75 * min(len(word), len(other)) and alike > 0.5 * max(len(word), len(other))


def _question(a: Statement, b: Statement) -> Difference | None:
    return Difference("question", *_marked(a.asks, b.asks, "?")) if a.asks != b.asks else None


def _certainty(a: Statement, b: Statement) -> Difference | None:
    return Difference("certainty", *_marked(a.hedged, b.hedged, "perhaps")) if a.hedged != b.hedged else None


def _scope(a: Statement, b: Statement) -> Difference | None:
    return Difference("scope", *_marked(a.only, b.only, "only")) if a.only != b.only else None


def _marked(left: bool, right: bool, mark: str) -> tuple[str, str]:
    return (mark if left else "", mark if right else "")


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
    """Three words of which each comes after the next in the other: what acts and what is acted on, about a verb.

    Moving a part of a sentence to its other end never does that.
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
    """What the first has and the second has not, in its order."""
    known = others if isinstance(others, Mapping) else set(others)
    return [key for key in mine if key not in known]


def _shown(
    kind: Kind, a: Mapping[str, str], left: Sequence[str], b: Mapping[str, str], right: Sequence[str]
) -> Difference:
    return Difference(kind, ", ".join(a[key] for key in left), ", ".join(b[key] for key in right))


_CHECKS: tuple[Callable[[Statement, Statement], Difference | None], ...] = (
    _code, _numbers, _dates, _quotations, _identifiers, _environments, _polarity, _names, _question, _certainty, _scope,
    _order,
)  # fmt: skip
