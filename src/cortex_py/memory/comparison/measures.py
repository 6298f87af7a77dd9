"""Numbers, versions and dates in a text, each in one canonical spelling.

"5s" is "5 seconds", "1k" is "1,000", "four" is "4", "2 January 2026" is "2026-01-02". A comparison belongs to its
number: "over 2 million" is not "2 million".
"""

from __future__ import annotations

import json
import re
from collections.abc import Sequence
from pathlib import Path
from typing import Literal, NamedTuple

from ...lazy import regex

__all__ = ["NUMBER_WORDS", "STARTERS", "UNITS", "Measure", "Token", "measure_at", "one_of_unit_at"]


class Token(NamedTuple):
    """A piece of a text; `kind` is the name of the pattern group that matched it."""

    kind: str
    text: str
    lower: str


class Measure(NamedTuple):
    """A number or date; `key` is the same for all spellings, `end` is the position after its last token."""

    kind: Literal["number", "version", "date"]
    key: str
    end: int


_TABLES = json.loads(Path(__file__).with_name("measures.json").read_text("utf-8"))


def _numbered(words: list[str], start: int = 1) -> dict[str, int]:
    return {word: number for number, word in enumerate(words, start)}


def _signs(name: str) -> dict[str, str]:
    """The sign, ">" or "<", that each word of a comparison stands for."""
    return {word: sign for sign, words in _TABLES["comparisons"][name].items() for word in words}


_SMALL = _numbered(_TABLES["small"], start=0)
_TENS = {word: 10 * number for word, number in _numbered(_TABLES["tens"], start=2).items()}
_POWERS: dict[str, int] = _TABLES["powers"]
_SHORT_POWERS: dict[str, int] = _TABLES["short_powers"]
_CROWDS = {f"{word}s": f"~1e{power}" for word, power in _POWERS.items()} | {"dozens": "~12"}
_ORDINALS = _numbered(_TABLES["ordinals"])
_COUNTS: dict[str, int] = _SMALL | _TENS | _TABLES["times"]
# Units of one dimension are converted to one base unit, so that two hours are 120 minutes.
_UNITS: dict[str, tuple[float, str]] = {
    word: (row["factor"], row["base"]) for row in _TABLES["units"] for word in row["words"]
}
_FOLLOWING = frozenset({*_UNITS, *_POWERS})
_CURRENCIES: dict[str, str] = _TABLES["currencies"]
_MONTHS = {
    spelling: number
    for name, number in _numbered(_TABLES["months"]).items()
    for spelling in (name, name[:3], "sept" if number == 9 else name)
}
_ALSO_WORDS = frozenset[str](_TABLES["months_that_are_words"])
_BEFORE_MONTHS = frozenset[str](_TABLES["before_months"])
_DAYS: dict[str, str] = {spelling: name for name in _TABLES["days"] for spelling in (name, f"{name}s")}
_THAN, _BEFORE, _AFTER, _BOUNDS = _signs("than"), _signs("before"), _signs("after"), _signs("bounds")
_IN_TIME = _signs("in_time")  # for points in time, not for durations
_PAIRS = {("at", "least"): ">", ("at", "most"): "<", ("up", "to"): "<"}
_SIGNS: dict[str, str] = _TABLES["signs"]
_LOOSE = frozenset[str](_TABLES["loose"])
_TURNED = {">": "<", "<": ">"}

NUMBER_WORDS = frozenset({*_COUNTS, *_POWERS, *_ORDINALS})
UNITS = frozenset(unit for unit in _UNITS if len(unit) > 2)
_VALUES = frozenset({*_COUNTS, *_POWERS, *_CROWDS, *_ORDINALS, *_MONTHS, *_DAYS, *_CURRENCIES})
STARTERS = _VALUES | {*_THAN, *_BEFORE, *_IN_TIME, *_BOUNDS, "at", "up", "no", "not", *_SIGNS}

_EXACT = 9  # digits that survive a multiplication; longer numbers are kept as written

_ISO = regex(r"(\d{4})[-/.](\d{1,2})(?:[-/.](\d{1,2}))?")
_CLOCK = regex(r"(\d{1,2})(?::(\d\d(?::\d\d)?))?(am|pm)?")
_DAY = regex(r"(\d{1,2}(?:-\d{1,2})?)(?:st|nd|rd|th)?")
_YEAR = regex(r"(?:1[5-9]|20)\d\d")
_NUMBER = regex(r"([-+]?)(v?)(\d(?:[\d.,:/-]*\d)?)([^\W\d_]*)(%?)", re.IGNORECASE)
_THOUSANDS = regex(r"\d{1,3}(?:,\d{3})+(?:\.\d+)?")
_PLAIN = regex(r"\d+(?:\.\d+)?")


def measure_at(tokens: Sequence[Token], at: int) -> Measure | None:
    """The number or date that begins at this token, with a comparison before it."""
    sign, start, in_time = _comparison(tokens, at)
    if start >= len(tokens) or (tokens[start].kind != "number" and tokens[start].lower not in _VALUES):
        return None
    found = _date(tokens, start) or _quantity(tokens, start)
    if found is None:
        return None
    end = found.end
    if not sign and end + 1 < len(tokens) and tokens[end].lower == "or" and tokens[end + 1].lower in _AFTER:
        sign, end = _AFTER[tokens[end + 1].lower], end + 2
    elif end < len(tokens) and tokens[end].text == "+":
        sign, end = ">", end + 1
    if in_time and found.key.endswith((" s", " month")):
        sign = ""
    return Measure(found.kind, sign + found.key, end)


def one_of_unit_at(tokens: Sequence[Token], at: int) -> Measure | None:
    """One of a unit or a part of one, as "an hour" or "half a minute"; "100 calls a minute" is a rate."""
    part = _PARTS.get(_lower(tokens, at))
    one = at + (part is not None) + (part is not None and _lower(tokens, at + 1) == "of")
    unit = _lower(tokens, one + 1)
    if _lower(tokens, one) not in ("a", "an") or unit not in UNITS:
        return None
    if part is not None:
        return _scaled(tokens, one + 1, part, 0, "", "")
    if _lower(tokens, at - 1) not in _BEFORE_ONE or (unit == "second" and _lower(tokens, one + 2).isalpha()):
        return None  # "is a second copy"
    and_half = [_lower(tokens, one + place) for place in (2, 3, 4)] == ["and", "a", "half"]
    return _scaled(tokens, one + 1, 1.5 if and_half else 1.0, 0, "", "")


_PARTS = {"half": 0.5, "quarter": 0.25}
_BEFORE_ONE = frozenset(("is", "are", "was", "were", "be", "for", "after", "to", "in", "every", "lasts", "takes"))


def _lower(tokens: Sequence[Token], at: int) -> str:
    return tokens[at].lower if 0 <= at < len(tokens) else ""


def _comparison(tokens: Sequence[Token], at: int) -> tuple[str, int, bool]:
    """The sign of the comparison that begins here, the position after it, and whether it compares points in time."""
    word, following = tokens[at].lower, _lower(tokens, at + 1)
    if word in ("no", "not") and following in _THAN:
        sign, end, _ = _comparison(tokens, at + 1)
        return _TURNED.get(sign, ""), end, False
    sign, end, in_time = "", at, False
    if word in _THAN and following == "than":
        sign, end = _THAN[word], at + 2
    elif (word, following) in _PAIRS:
        sign, end = _PAIRS[word, following], at + 2
    elif word in _BEFORE or word in _BOUNDS:
        sign, end = _BEFORE.get(word) or _BOUNDS[word], at + 1
    elif word in _IN_TIME:
        sign, end, in_time = _IN_TIME[word], at + 1, True
    elif word in _SIGNS:
        sign, end = _SIGNS[word], at + 1
    if end > at:
        while _lower(tokens, end) in _LOOSE:
            end += 1
    return sign, end, in_time


def _date(tokens: Sequence[Token], at: int) -> Measure | None:
    token = tokens[at]
    if token.kind == "number":
        return _written_date(tokens, at)
    if token.lower in _DAYS:
        return Measure("date", _DAYS[token.lower], at + 1)
    if token.lower in _MONTHS:
        return _month_first(tokens, at)
    return None


def _written_date(tokens: Sequence[Token], at: int) -> Measure | None:
    """A date or time of day that begins with digits."""
    lower = tokens[at].lower
    if found := _ISO.fullmatch(lower):
        year, month, day = found.groups()
        return Measure("date", _date_key(year, int(month), day), at + 1) if int(month) <= 12 else None
    if (found := _CLOCK.fullmatch(lower)) and (time := _clock(found, _lower(tokens, at + 1))):
        return Measure("date", time, at + 1 + (found[3] is None and _half(_lower(tokens, at + 1)) is not None))
    if found := _DAY.fullmatch(lower):
        after = at + 1 + (_lower(tokens, at + 1) == "of")
        month_name = _lower(tokens, after)
        if month_name in _MONTHS:
            year, end = _year(tokens, after + 1)
            return Measure("date", _date_key(year, _MONTHS[month_name], found[1]), end)
    return None


def _half(word: str) -> str | None:
    return {"am": "am", "a.m": "am", "pm": "pm", "p.m": "pm"}.get(word)


def _clock(found: re.Match[str], following: str) -> str | None:
    hour, minute, half = int(found[1]), found[2], found[3] or _half(following)
    if (minute is None and half is None) or hour > 24:
        return None
    if half is not None and hour <= 12:
        hour = hour % 12 + (12 if half == "pm" else 0)
    return f"{hour:02}:{minute or '00'}"


def _month_first(tokens: Sequence[Token], at: int) -> Measure | None:
    month = _MONTHS[tokens[at].lower]
    place = at + 1 + (_lower(tokens, at + 1) == "." and len(tokens[at].lower) <= 4)
    day = _DAY.fullmatch(_lower(tokens, place))
    if day:
        year, end = _year(tokens, place + 1)
        return Measure("date", _date_key(year, month, day[1]), end)
    year, end = _year(tokens, place)
    if year is not None:
        return Measure("date", _date_key(year, month, None), end)
    # "May" and "march" are also ordinary words.
    alone = tokens[at].lower not in _ALSO_WORDS or (_lower(tokens, at - 1) in _BEFORE_MONTHS and at > 0)
    return Measure("date", _date_key(None, month, None), at + 1) if alone and tokens[at].text[0].isupper() else None


def _year(tokens: Sequence[Token], at: int) -> tuple[str | None, int]:
    return (tokens[at].text, at + 1) if _YEAR.fullmatch(_lower(tokens, at)) else (None, at)


def _date_key(year: str | None, month: int, day: str | None) -> str:
    # A range of days is kept as written.
    shown = "" if day is None else f"-{day:0>2}"
    return f"{year or ''}-{month:02}{shown}"


def _quantity(tokens: Sequence[Token], at: int) -> Measure | None:
    currency = _CURRENCIES.get(_lower(tokens, at))
    at += currency is not None
    if at >= len(tokens):
        return None
    if tokens[at].kind == "number":
        return _digits(tokens, at, currency or "")
    word = tokens[at].lower
    if word in _CROWDS:
        return Measure("number", _CROWDS[word], at + 1)
    if word in _ORDINALS:
        # "Second" is more often a duration than an ordinal.
        counted = word != "second" or _lower(tokens, at - 1) in ("the", "its", "his", "her", "their", "our")
        return Measure("number", f"#{_ORDINALS[word]}", at + 1) if counted else None
    return _spelled(tokens, at, currency or "")


def _digits(tokens: Sequence[Token], at: int, currency: str) -> Measure | None:
    found = _NUMBER.fullmatch(tokens[at].text)
    if found is None:
        return None
    minus, version, digits, glued, percent = found.groups()
    value = digits.replace(",", "") if _THOUSANDS.fullmatch(digits) else digits
    if glued in ("st", "nd", "rd", "th"):
        return Measure("number", f"#{value}", at + 1)
    if version or value.count(".") > 1:
        return Measure("version", value, at + 1)
    power = 6 if glued == "M" else _SHORT_POWERS.get(glued.lower(), 0)
    unit = percent or (glued.lower() if glued.lower() in _UNITS else "")
    if not _PLAIN.fullmatch(value) or len(value) > _EXACT or (glued and not power and not unit):
        return Measure("number", f"{minus}{value} {glued.lower()}".rstrip(), at + 1)
    bare = not power and not unit and _lower(tokens, at + 1) not in _FOLLOWING
    if bare and (_is_version(tokens, at) or "." in value):  # 3.1 is not 3.10, so the digits are kept
        kind: Literal["number", "version"] = "version" if _is_version(tokens, at) else "number"
        return Measure(kind, minus + value, at + 1)
    return _scaled(tokens, at + 1, float(minus + value), power, unit, currency)


def _is_version(tokens: Sequence[Token], at: int) -> bool:
    """Whether "version" or a capitalised word inside a sentence comes right before, as in "PostgreSQL 15"."""
    if at < 1 or tokens[at - 1].kind != "word":
        return False
    named = at > 1 and tokens[at - 2].kind != "end" and tokens[at - 1].text[0].isupper()
    short = len(tokens[at].text) < 3 or "." in tokens[at].text  # a long number is a port or a year
    return tokens[at - 1].lower in ("version", "release") or (named and short)


def _spelled(tokens: Sequence[Token], at: int, currency: str) -> Measure | None:
    """A number in words: "twenty-three", "two hundred", "a million"; "one" alone is rarely a number."""
    value, end, before = 0.0, at, ""
    while (word := _lower(tokens, end)) and _goes_on(before, word):
        if word in _POWERS:
            value = max(value, 1.0) * 10.0 ** _POWERS[word]
        else:
            value = value * 12 if word == "dozen" and value else value + _COUNTS[word]
        before, end = word, end + 1
    if end == at or (before == "one" and end == at + 1 and _lower(tokens, end) not in _UNITS):
        return None
    return _scaled(tokens, end, value, 0, "", currency)


def _goes_on(before: str, word: str) -> bool:
    """Whether a word belongs to the same number as the one before it: "two hundred", not "two three"."""
    if word in _POWERS:
        return before not in _POWERS
    if word == "dozen" or not before:
        return word in _COUNTS
    return (before in _TENS and 0 < _SMALL.get(word, 0) < 10) or (before == "hundred" and word in _COUNTS)


def _scaled(tokens: Sequence[Token], end: int, value: float, power: int, unit: str, currency: str) -> Measure:
    """A number with the magnitude and unit that follow it."""
    if not unit and not power and (following := _lower(tokens, end)) in _POWERS:
        power, end = _POWERS[following], end + 1
    if not unit and _lower(tokens, end) in _UNITS:
        unit, end = tokens[end].lower, end + 1
    factor, base = _UNITS.get(unit, (1.0, currency))
    return Measure("number", f"{_shown(value * 10.0**power * factor)} {base}".rstrip(), end)


def _shown(value: float) -> str:
    return f"{value:.12g}"
