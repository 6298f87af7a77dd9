"""Whether the figures of a claim are borne out by those of its evidence: "over 50" by 53, not by 47. Pure.

Every number or date becomes a `Figure`: what it counts, how it is compared and its value. A figure of the claim is laid
beside the figure of the evidence that most likely tells the same thing, by the words around both and by how near their
values are.
"""

from __future__ import annotations

import math
import re
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Literal

from ..memory.opposites import word_set
from ..memory.statements import Statement

__all__ = ["Figure", "Verdict", "agreement", "aligned", "comparable", "figures_of"]

# How a figure of the evidence stands to one of the claim; "likely" is what a bound all but tells: over 512, below 600.
Verdict = Literal["equal", "follows", "likely", "open", "against", "absent"]

_NUMBER = re.compile(r"([<>]?)(~?)(#?)([-+]?\d+(?:\.\d+)?(?:e[-+]?\d+)?)(?: (\D.*))?")
_DATE = re.compile(r"([<>]?)(\d{4})?-(\d\d)(?:-(\d\d))?")
_AMOUNT_WORDS = word_set("more less fewer greater over under above below least most up exceeding within")
_INCLUSIVE = re.compile(r"\b(?:at (?:least|most)|up to|no (?:more|less|fewer)|not (?:more|less)|min|max|or)\b|[=≥≤+]")
_YEARS = range(1500, 2101)
_MANY = 200  # figures of a text that are looked at
_REACH = 5  # words on either side that tell what a figure is about


@dataclass(frozen=True, slots=True)
class Figure:
    """A number or date; `value` is a date's year, month and day, with 0 where one is not told."""

    kind: str  # "date", "year" for what may be a date or a number, "#" for a place in a row, else the unit
    sign: str  # "<", "<=", ">", ">=" or ""
    value: tuple[float, ...]
    around: dict[str, float]  # words beside it, the nearer the weightier


def figures_of(statement: Statement) -> list[Figure]:
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
    """What follows a figure says more often what is counted than what stands before it."""
    weights: dict[str, float] = {}
    for distance in range(1, _REACH + 1):
        for at, weight in ((place + distance, 1.0), (place - distance, 0.8)):
            if 0 <= at < len(words) and not words[at].startswith("#"):
                weights[words[at]] = max(weights.get(words[at], 0.0), weight / distance)
    return weights


def comparable(claimed: Figure, told: Figure) -> bool:
    """Whether both are of one kind; digits that may be a year stand beside dates and beside plain numbers."""
    return claimed.kind == told.kind or {claimed.kind, told.kind} in ({"year", "date"}, {"year", ""})


def agreement(claimed: Figure, told: Figure) -> Verdict:
    """What a figure of the evidence says about one of the claim, taken that both are about the same."""
    if len(claimed.value) == 1 or len(told.value) == 1:
        return _compared(claimed.sign, told.sign, claimed.value[0], told.value[0])
    # Parts of a date that only one of them tells are taken to be the same.
    parts = list(zip(claimed.value, told.value, strict=True))
    known = [(mine, other) for mine, other in parts if mine and other]
    if not known:
        return "open"
    verdict = _compared(claimed.sign, told.sign, _folded([a for a, _ in known]), _folded([b for _, b in known]))
    untold = any(mine and not other for mine, other in parts)
    return "open" if untold and verdict == "equal" and len(known) == 1 else verdict


def _folded(parts: Sequence[float]) -> float:
    """Year, month and day as one number that keeps their order."""
    total = 0.0
    for part in parts:
        total = total * 40 + part
    return total


def _compared(claimed: str, told: str, value: float, other: float) -> Verdict:
    if value == other:
        return _at_the_bound(claimed, told)
    if not claimed:
        return "open" if told and (other < value) == told.startswith(">") else "against"
    beyond = (other > value) == claimed.startswith(">")
    if not told:
        return "follows" if beyond else "against"
    if told[0] == claimed[0]:
        return "follows" if beyond else "open"
    return "likely" if beyond else "against"


def _at_the_bound(claimed: str, told: str) -> Verdict:
    if claimed == told:
        return "equal"
    if claimed.endswith("="):
        return "follows" if not told or told[0] == claimed[0] else "open"
    if not claimed:
        return "likely" if told.endswith("=") else "open"
    return "open" if told and told[0] == claimed[0] else "against"


def aligned(claimed: Figure, told: Sequence[Figure]) -> Figure | None:
    """The figure of the same kind that most likely tells the same thing."""

    def score(figure: Figure) -> float:
        common = sum(min(weight, figure.around.get(word, 0.0)) for word, weight in claimed.around.items())
        return common - min(2.0, 2.0 * _distance(claimed, figure))

    return max((figure for figure in told if comparable(claimed, figure)), key=score, default=None)


def _distance(claimed: Figure, told: Figure) -> float:
    """How far apart the values are: in powers of two for numbers, in years for dates."""
    if len(claimed.value) == len(told.value) > 1:
        gaps = [abs(a - b) if a and b else 0.3 for a, b in zip(claimed.value, told.value, strict=True)]
        return min(4.0, gaps[0] + 0.5 * min(1.0, gaps[1]) + 0.25 * min(1.0, gaps[2]))
    a, b = claimed.value[0], told.value[0]
    if a == b:
        return 0.0
    return min(4.0, abs(math.log2(a) - math.log2(b))) if a > 0 and b > 0 else 4.0
