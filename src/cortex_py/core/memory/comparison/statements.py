"""What a note states: its words, numbers, dates, names and denials, read for comparing it with another."""

from __future__ import annotations

import json
import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import lru_cache
from pathlib import Path
from typing import Literal, NamedTuple

from ...lazy import regex
from ..labels.keyphrases import mostly_verbs
from ..text import stem
from .opposites import (
    COMMON,
    ENVIRONMENTS,
    FILLERS,
    FOREIGN,
    FOREIGN_NEGATIONS,
    HEDGES,
    NEGATIONS,
    OPENERS,
    PARTICIPLES,
    SERIES,
    SIDES,
    VERBS,
    word_set,
)

__all__ = [
    "NUMBER_WORDS", "STARTERS", "UNITS", "Measure", "Statement", "Token", "measure_at", "one_of_unit_at", "plain_text",
    "read_statement", "split_context", "without_context",
]  # fmt: skip


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


_TOKEN = regex(
    r"""
    (?P<word>[A-Za-z]+(?=[\s,]))  # most words, to skip the other alternatives
  | (?P<fence>```.*?(?:```|\Z))
  | (?P<secret>\[REDACTED:[a-z0-9-]{1,40}\])
  | (?P<url>(?<![\w.])[A-Za-z][A-Za-z0-9+.-]{0,20}://[^\s<>"'`)\]]+)
  | (?P<mixed>(?<![\w.])(?:\d+[A-Za-z_]+\d\w*|[a-z]{1,20}(?:-[a-z]{1,20}){1,4}-\d{1,4}[a-z]?\b))
  | (?P<number>(?<![A-Za-z_\d.])[-+]?[vV]?\d(?:[\d.,:/-]*\d)?(?:[A-Za-zµ]{1,3}(?!\w))?%?)
  | (?P<path>(?<![\w.])(?:(?:~|\.{1,2})?/[\w.@-]{0,80}\w(?:/[\w.@-]{0,80}\w)*
        |[\w.@-]{1,80}+(?:/[\w.@-]{0,80}\w){2,}|[\w@-]{1,80}+/[\w@-]{1,80}+\.[A-Za-z]\w{0,4}\b
        |[\w-]{2,80}+/(?=[\s.,;:)]|\Z)))
  | (?P<flag>(?<![\w-])--?[A-Za-z][\w-]*)
  | (?P<tag>(?<![\w&])[\#@][A-Za-z][\w-]*|\b[A-Za-z](?:\+\+|\#)(?!\w))
  | (?P<glyph>[\u3040-\u30ff\u3400-\u9fff])
  | (?P<other>[^\W_]\w*(?:['’]\w+|\.\w+)*|_\w+)
  | (?P<sign>[<>]=?|[≥≤$€£¥%+~])
  | (?P<end>[.!?;:\n]+)
    """,
    re.VERBOSE | re.DOTALL,
)
_IDENTIFIER = regex(r"\w*_\w*|[a-z]+[A-Z]\w*|\w{2,}(?:\.[a-z]\w{0,4})+|[A-Z]{2,}[a-z]+[A-Z]\w*")
_QUOTED = regex(
    r"""["“„«]([^"“”„«»\n]{2,120})["”“»]|``\s?([^`'\n]{2,120}?)\s?''|(?<!\w)['‘]([^'‘’\n]{3,120})['’](?!\w)"""
)
_QUOTE_MARK = regex(r"""["“„«]|``|(?<!\w)['‘]""")
_BACKTICKS = regex(r"(?<!`)`([^`\n]+)`(?!`)")
_GLYPH_NEGATION = regex(r"[不没沒無无未非]|な[いく]|ませ?ん")
# Longer phrases first, so that "a couple of" is not read as "a couple".
_FILLER = regex(
    rf"(?<![\w`/.-])(?:{'|'.join(map(re.escape, sorted(FILLERS, key=len, reverse=True)))})(?![\w`/-])"
    rf"|(?:^|(?<=[.!?]\s))(?:{'|'.join(OPENERS)})(?=,?\s)(?:,?\s+(?:{'|'.join(OPENERS)})(?=,?\s))*,?",
    re.IGNORECASE,
)
_BE = word_set("is are was were be been being gets get got")
# The word after one of these has a role that cannot be exchanged: from A to B, A before B, A rather than B.
_MARKERS = word_set("from to into by than over before after behind under instead because against then")
_DETERMINERS = word_set("a an the its our his her their this that my your each every all")
_PLACES = word_set("in on to for from into the our")
_ADDING = word_set("also too additionally besides moreover")
_PERMITTING = word_set("can may could might support supports accept accepts allow allows include includes")
_PAST = word_set("was were had did")
_HAVING = word_set("has have having")
_SELECTING = word_set("same next other another last previous former latter")
_LABELLED = regex(r"[^\n.!?;:=]{2,60}(?::|\s?=)\s")
_COUNTED = regex(r"\(\d{1,4}\)\s*\Z")
_REFERENCE = regex(r"(?:#|\b[A-Z]{2,10}-|[A-Za-z]-(?=\d{3}))(\d+)\b")
_LIST_MARK = regex(r"\s*\d{1,4}[.)]\s")
_SPECIAL = frozenset(
    {*FOREIGN, *FOREIGN_NEGATIONS, *SIDES, *ENVIRONMENTS, *HEDGES, *_MARKERS, *_BE, *_ADDING, *_PERMITTING, *_SELECTING}
    | {"only"}
)
_CACHED = 40  # letters of the longest word that is cached
_CODE_KINDS = frozenset(("url", "path", "flag", "tag", "mixed", "secret"))


@dataclass(frozen=True, slots=True)
class Statement:
    """A text in comparable form: its words of weight in order, and everything that must not differ.

    The mappings go from the compared form to the written form, which is shown to people.
    """

    plain: str  # without case, spaces, punctuation and list marks
    words: tuple[str, ...]  # stems and numbers
    spelled: Mapping[str, str]  # how those words are written, the first time
    numbers: Mapping[str, str]
    versions: frozenset[str]  # those of the numbers that name a version
    labels: frozenset[str]  # what tells which of several is meant: note 1, step 2, the next day
    dates: Mapping[str, str]
    names: Mapping[str, str]
    identifiers: Mapping[str, str]
    quotations: Mapping[str, str]
    fences: tuple[str, ...]  # blocks of code, to the letter
    environments: Mapping[str, bool]  # whether the word can mean nothing else
    sides: Mapping[tuple[int, int], str]  # (axis, side) of opposites
    negations: int
    bound: frozenset[tuple[str, str]]  # words with a role: those after "from", "before", "than"
    passive: bool
    tells_state: bool  # contains a form of "be"
    labelled: bool  # begins with what it is about: "log level: info"
    asks: bool
    hedged: bool
    only: bool
    adds: bool  # "also": says something further
    permits: bool  # says what is possible, beside which other things can be
    is_past: bool  # reports what happened
    english: bool

    @property
    def empty(self) -> bool:
        return not self.plain


class _Word(NamedTuple):
    """The properties of a word that do not depend on its context."""

    spelled: str
    lower: str
    stem: str
    negates: bool
    common: bool
    special: bool
    identifier: bool
    capital: bool
    past: bool  # a form that verbs have in the past, or after a form of "be"


_READ = 100_000  # characters


def read_statement(text: str) -> Statement:
    """Read the beginning of a text into comparable form."""
    return _Reader(text[:_READ]).statement()


class _Reader:
    """One pass over the tokens of a text."""

    def __init__(self, text: str) -> None:
        self.text = text
        self.words: list[str] = []
        self.spelled: dict[str, str] = {}
        self.numbers: dict[str, str] = {}
        self.versions: set[str] = set()
        self.labels: set[str] = set()
        self.dates: dict[str, str] = {}
        self.names: dict[str, str] = {}
        self.identifiers: dict[str, str] = {}
        self.fences: list[str] = []
        self.environments: dict[str, bool] = {}
        self.sides: dict[tuple[int, int], str] = {}
        self.bound: set[tuple[str, str]] = set()
        self.negations = self.foreign_negations = self.foreign = self.familiar = self.glyphs = 0
        self.passive = self.tells_state = self.asks = self.hedged = self.only = self.adds = False
        self.permits = self.is_past = False
        self.subject = True  # nothing but the first words of the subject was read
        self.marker = ""
        self.acted_on = False  # a form of "be" was the last word of weight
        self.begins = True
        self.tokens = _tokens(_FILLER.sub("", text))
        self.titled = _titled(self.tokens)
        self.references = frozenset(_REFERENCE.findall(text))

    def statement(self) -> Statement:
        at = 0
        while at < len(self.tokens):
            at = self._step(at)
        english = not self.glyphs and self.foreign <= self.familiar
        negations = self.negations if english else self.negations + self.foreign_negations
        if self.glyphs:
            negations += len(_GLYPH_NEGATION.findall(self.text))
        if "`" in self.text:
            self.identifiers |= {plain_text(found[1]): found[1] for found in _BACKTICKS.finditer(self.text)}
        return Statement(
            plain=plain_text(self.text),
            words=tuple(self.words),
            spelled=self.spelled,
            numbers=self.numbers,
            versions=frozenset(self.versions),
            labels=frozenset(self.labels),
            dates=self.dates,
            names=self.names,
            identifiers=self.identifiers,
            quotations=_quotations(self.text),
            fences=tuple(self.fences),
            environments=self.environments,
            sides=self.sides,
            negations=negations,
            bound=frozenset(self.bound),
            passive=self.passive,
            tells_state=self.tells_state,
            labelled=_LABELLED.match(self.text) is not None,
            asks=self.asks,
            hedged=self.hedged,
            only=self.only,
            adds=self.adds,
            permits=self.permits,
            is_past=self.is_past,
            english=english,
        )

    def _step(self, at: int) -> int:
        """Read what begins at this token, and return the position of the next."""
        token = self.tokens[at]
        if (token.kind == "number" or token.lower in STARTERS) and (found := measure_at(self.tokens, at)):
            self._measure(found, at)
            return found.end
        if token.kind == "word" and self._letters_one(at):
            one = f"{self.tokens[at - 1].lower} {token.lower}"
            self.identifiers[one] = f"{self.tokens[at - 1].text} {token.text}"
            self.labels.add(one)
            self._add(one, token.text)
            return at + 1
        if token.kind == "word":
            self._word(at, _word(token.text) if len(token.text) <= _CACHED else _word.__wrapped__(token.text))
            return at + 1 + (token.lower == "no" and self._following(at) == "longer")
        if token.kind == "end":
            self.begins = True
            self.marker = ""
            self.asks = self.asks or "?" in token.text
        elif token.kind == "fence":
            self.fences.append(_inside(token.text))
        elif token.kind == "glyph":
            self.glyphs += 1
            self._add(token.text, token.text)
        elif token.kind in _CODE_KINDS:
            written = token.text.rstrip(".,;:!?")
            self.identifiers[written.lower()] = written
            self._add(written.lower(), written)
        return at + 1

    def _measure(self, found: Measure, at: int) -> None:
        written = " ".join(token.text for token in self.tokens[at : found.end])
        if found.kind == "date":
            self.dates[found.key] = written
        else:
            self.numbers[found.key] = written
            if self._numbers_subject(at, found.end):
                self.labels.add(found.key)
            if found.kind == "version":
                self.versions.add(found.key)
        self._add(f"#{found.key}", written)

    def _numbers_subject(self, at: int, end: int) -> bool:
        """Whether a number tells which of several: "note 1", "ticket #4521", "rerun (3)", the mark of a list."""
        if not at:
            return bool(_LIST_MARK.match(self.text)) or self.tokens[at].text in self.references
        if (end == len(self.tokens) and _COUNTED.search(self.text)) or self.tokens[at].text in self.references:
            return True
        before = self.tokens[at - 1]
        if before.kind == "word" and self._tells_of(before.lower, self._following(end - 1)):
            return True
        if not self.subject or before.lower in SERIES:
            return self.subject
        return len(self.words) == 1 and self.text.lstrip().startswith(f"{self.tokens[0].text} {self.tokens[at].text}:")

    def _letters_one(self, at: int) -> bool:
        """Whether a letter tells which of several: "option B"."""
        letter = self.tokens[at].text
        return (
            len(letter) == 1
            and "A" <= letter <= "Z"
            and letter != "I"
            and at > 0
            and self.tokens[at - 1].lower in SERIES
        )

    @staticmethod
    def _tells_of(before: str, after: str) -> bool:
        """Whether a number between two words belongs to the subject: "incident 12 was", "worker 7 expires"."""
        return after in _BE or (stem(after) in mostly_verbs() and stem(before) not in mostly_verbs())

    def _add(self, word: str, written: str) -> None:
        """Add a word of weight."""
        self.words.append(word)
        self.spelled.setdefault(word, written)
        if self.marker:
            self.bound.add((self.marker, word))
        self.marker = ""
        self.acted_on = self.begins = False

    def _word(self, at: int, word: _Word) -> None:
        self.is_past = self.is_past or word.lower in _PAST or (word.past and not self.acted_on and self._reports(at))
        if word.negates:
            self.negations += not (word.lower == "not" and self._following(at) == "only")
            self.marker = "not"
            return
        if word.special:
            self._special(at, word)
        if word.common:
            self.subject = self.subject and (word.lower in _DETERMINERS or word.lower in SERIES)
            self.familiar += 1
            self.begins = False
            if word.lower not in _MARKERS and word.lower not in _DETERMINERS:
                self.marker = ""
        else:
            self._add_word(word)

    def _special(self, at: int, word: _Word) -> None:
        """Record what a word says beyond its meaning: language, opposite, environment, role, doubt."""
        lower = word.lower
        self.foreign += lower in FOREIGN
        self.foreign_negations += lower in FOREIGN_NEGATIONS
        if lower != "on" or self._is_switched(at):
            for side in SIDES.get(lower, ()):
                self.sides[side] = lower
        if lower in ENVIRONMENTS:
            self._environment(lower, self.tokens[at - 1].lower if at else "")
        if lower in _MARKERS:
            self.marker = lower
        if lower in _BE:
            self.acted_on = self.tells_state = True
        self.hedged = self.hedged or lower in HEDGES
        self.only = self.only or lower == "only"
        self.adds = self.adds or lower in _ADDING
        self.permits = self.permits or lower in _PERMITTING
        if lower in _SELECTING:
            self.labels.add(lower)

    def _is_switched(self, at: int) -> bool:
        """Whether "on" is a state, as in "it is on by default", and not the place that follows it."""
        after = self._following(at)
        return not after or (after in COMMON and after not in _DETERMINERS) or after in (".", ",", ";")

    def _reports(self, at: int) -> bool:
        """Whether a past form is the verb: "fixed the test", "failed at noon"; not "failed payments"."""
        before = self.tokens[at - 1].lower if at else ""
        after = self.tokens[at + 1] if at + 1 < len(self.tokens) else None
        if before in _DETERMINERS or before in _HAVING:
            return False
        return after is None or after.kind != "word" or after.lower in COMMON or after.text[0].isupper()

    def _add_word(self, word: _Word) -> None:
        acted_on = self.acted_on
        if word.identifier:
            self.identifiers[word.lower] = word.spelled
        elif word.capital and not self.titled and not self.begins:
            self.names[word.lower] = word.spelled
        self._add(word.stem, word.spelled)
        if acted_on:
            self.passive = self.passive or word.lower.endswith("ed") or word.lower in PARTICIPLES
            self.acted_on = word.lower.endswith("ly")  # "is automatically merged"

    def _environment(self, lower: str, before: str) -> None:
        name, telling = ENVIRONMENTS[lower]
        self.environments[name] = self.environments.get(name, False) or telling or before in _PLACES

    def _following(self, at: int) -> str:
        return self.tokens[at + 1].lower if at + 1 < len(self.tokens) else ""


def _tokens(text: str) -> list[Token]:
    found = []
    for match in _TOKEN.finditer(text):
        kind, written = match.lastgroup or "", match[0]
        if kind == "other":
            found.append(Token("word", written, written.lower().replace("’", "'").removesuffix("'s")))
        else:
            found.append(Token(kind, written, written.lower()))
    return found


@lru_cache(maxsize=16384)
def _word(text: str) -> _Word:
    spelled = text.replace("’", "'")
    lower = spelled.lower()
    if lower.endswith("'s"):
        spelled, lower = spelled[:-2], lower[:-2]
    if re.fullmatch(r"(?:[a-z]\.)+[a-z]", lower):  # U.S is US
        spelled, lower = spelled.replace(".", ""), lower.replace(".", "")
    return _Word(
        spelled=spelled,
        lower=lower,
        stem=stem(VERBS.get(lower, lower)),
        negates=lower in NEGATIONS or lower.endswith("n't"),
        common=lower in COMMON,
        special=lower in _SPECIAL,
        identifier=_IDENTIFIER.fullmatch(spelled) is not None or any(map(str.isdigit, spelled)),
        capital=len(spelled) > 1 and spelled[0].isupper(),
        past=lower in VERBS or (len(lower) > 4 and lower.endswith("ed")),
    )


def _quotations(text: str) -> dict[str, str]:
    """The quotations, by their words in sorted order."""
    if not _QUOTE_MARK.search(text):
        return {}
    quoted = [next(filter(None, found.groups())) for found in _QUOTED.finditer(text)]
    return {" ".join(sorted(plain_text(words).split())): words.strip() for words in quoted}


def _titled(tokens: list[Token]) -> bool:
    """Whether the text is written like a headline, where capitals do not mark names."""
    capitals = 0
    for token in tokens:
        if token.kind == "word" and token.lower not in COMMON:
            if not token.text[0].isupper():
                return False
            capitals += 1
    return capitals > 3


_MARKS = regex(r"^[ \t]*(?:[-*+•–—]|#{1,6}|>(?![ \t]+\d))[ \t]+", re.MULTILINE)
_QUOTES = str.maketrans(dict.fromkeys("\"“”„«»‘’'`*", " "))
_POINTS = regex(r"(?<![.,;:!…])[.,;:!…]++(?=\s|$)|(?<=\s)[-–—.,;:!]++(?=\s|$)|[()\[\]]")


def _inside(fenced: str) -> str:
    return fenced.strip("`").strip()


def plain_text(text: str) -> str:
    """The text without case, list marks, quotes, punctuation between words and extra spaces."""
    bare = _MARKS.sub("", text).translate(_QUOTES)
    return " ".join(_POINTS.sub(" ", bare).lower().split())


# -- the context that enrichment adds ---------------------------------------------------------------

_CONTEXT = regex(r"\n\n\*\*Context:\*\*\n(?:- [^\n]* \(subcog://memory/[0-9a-f]+\)(?:\n|\Z))+\Z")


def without_context(content: str) -> str:
    """A content without the context block that enrichment added."""
    return split_context(content)[0]


def split_context(content: str) -> tuple[str, str]:
    """A content without its context block, and the lines of that block."""
    found = _CONTEXT.search(content)
    if not found:
        return content, ""
    return content[: found.start()], found[0].partition("**Context:**\n")[2].rstrip("\n")
