"""The filter language: `ns:decisions -tag:draft since:7d path:"my docs/**"` as a compiled `Filter`.

    filter  = { term }                       terms are joined by AND
    term    = ["-"] key ":" value { "," value }      commas are OR, "-" negates the whole term
    value   = bare | '"' … '"'               in quotes, \\" and \\\\ are escapes

Repeating `tag`, `since`, `before`, `grounded` or a negated term adds a condition; repeating any other key adds
alternatives to its condition. Words without a key give a warning. An unknown key, or a value that cannot be parsed, is
an error with its position.
"""

from __future__ import annotations

import calendar
import re
from collections.abc import Iterator
from dataclasses import dataclass
from datetime import datetime, timedelta

from ...clock import in_utc
from ...echo import cleaner_for
from ...errors import FilterSyntaxError, InvalidInput, UnknownNamespace
from ...lazy import regex
from ...records import KINDS, STATUSES
from ...store.search.filters import GROUNDED_WORDS, Condition, Filter, Key, Value
from ..labels.ontology import canonical_category
from ..spaces import canonical_namespace

__all__ = ["FILTER_KEYS", "ParsedFilter", "is_filter_word", "parse_filter", "parse_moment", "split_query"]

# Long enough for any sensible filter, short enough for one SQL statement.
MAX_FILTER_LENGTH = 10_000

FILTER_KEYS: dict[str, Key] = {
    "ns": "namespace", "namespace": "namespace", "tag": "tag", "tags": "tag", "since": "since", "after": "since",
    "before": "before", "source": "source", "src": "source", "project": "project", "proj": "project", "repo": "project",
    "branch": "branch", "path": "path", "file": "path", "status": "status", "entity": "entity", "category": "category",
    "kind": "kind", "role": "role", "user": "user", "agent": "agent", "grounded": "grounded", "personal": "personal",
}  # fmt: skip

_TIMES: frozenset[Key] = frozenset({"since", "before"})
_SEPARATE: frozenset[Key] = _TIMES | {"tag", "grounded"}
_WITHOUT_GLOBS: frozenset[Key] = frozenset({"entity", "category", "kind", "role", "user", "agent", "grounded"})
_CLOSED: dict[Key, tuple[str, ...]] = {"status": STATUSES, "kind": KINDS}
_SHOWN = 40

_UNSTORABLE = regex("[\x00\ud800-\udfff]")
_SPACE = regex(r"\s*")
_KEY = regex(r'([^\s:"]*):')
_BARE = regex(r'[^\s,"]+')
_WORD = regex(r'[^\s"]+')
_QUOTED = regex(r'"((?:[^"\\]|\\.)*)"', re.DOTALL)
_ESCAPE = regex(r'\\(["\\])')
_CONDITION = regex(r'(?<!\S)(-?([^\s:"]+):(?:"(?:[^"\\]|\\.)*"|[^\s"])*)(?!\S)', re.DOTALL)
_SCORE = regex(r"(<=?|>=?|=?)([0-9]{1,3}(?:\.[0-9]{1,9})?|\.[0-9]{1,9})")
_DURATION = regex(r"([0-9]{1,9})(mo|[mhdwy])")
_UNITS = {"m": timedelta(minutes=1), "h": timedelta(hours=1), "d": timedelta(days=1), "w": timedelta(weeks=1)}
_ISO = regex(
    r"[0-9]{4}-[0-9]{2}-[0-9]{2}"
    r"([Tt ][0-9]{2}:[0-9]{2}(:[0-9]{2}([.,][0-9]+)?)?([Zz]|[+-][0-9]{2}(:?[0-9]{2})?)?)?"
)


@dataclass(frozen=True, slots=True)
class ParsedFilter:
    """The conditions of a filter text, and warnings about what was ignored."""

    filter: Filter
    warnings: tuple[str, ...]


def parse_filter(text: str, *, now: datetime) -> ParsedFilter:
    """Parse a filter; durations count back from `now`.

    Raises `FilterSyntaxError` with a position, or `UnknownNamespace`.
    """
    if len(text) > MAX_FILTER_LENGTH:
        raise _fault("The filter is too long", MAX_FILTER_LENGTH, f"Keep it below {MAX_FILTER_LENGTH} characters.")
    if unstorable := _UNSTORABLE.search(text):
        raise _fault("The filter contains a character that cannot be stored", unstorable.start(), "Remove it.")
    scanner = _Scanner(text)
    conditions: list[Condition] = []
    literal_stars: list[str] = []
    for term in scanner.terms():
        if term.key in _TIMES and len(term.pieces) > 1:
            raise _fault(f"{term.key!r} takes one value", term.pieces[1].position, "Repeat the key to add another.")
        values = tuple(dict.fromkeys(_value(term.key, piece, now) for piece in term.pieces))
        _add(conditions, Condition(term.key, values, term.negated))
        if term.key in _WITHOUT_GLOBS and any("*" in piece.text for piece in term.pieces):
            literal_stars.append(f"'*' has no special meaning in {term.key!r}; it was taken as it stands")
    warnings = (*scanner.warnings(), *dict.fromkeys(literal_stars))
    if warnings:
        warnings = tuple(map(cleaner_for(text), warnings))
    return ParsedFilter(Filter(tuple(conditions)), warnings)


def is_filter_word(word: str) -> bool:
    """Whether a word is a condition such as `tag:auth` or `-since:7d`."""
    key, sign, _ = word.removeprefix("-").partition(":")
    return bool(sign) and key.lower() in FILTER_KEYS


def split_query(text: str) -> tuple[str, str]:
    """The words and the filter of a text that mixes both, as people type into one field: `tag:auth session length`."""
    conditions: list[str] = []

    def keep(match: re.Match[str]) -> str:
        if match[2].lower() not in FILTER_KEYS:
            return match[0]
        conditions.append(match[1])
        return " "

    words = _CONDITION.sub(keep, text)
    return " ".join(words.split()), " ".join(conditions)


def is_duration(text: str) -> bool:
    """Whether a text is a duration such as `30d`."""
    return _DURATION.fullmatch(text) is not None


def parse_moment(text: str, *, now: datetime) -> datetime:
    """Parse a duration before `now` (`30m 12h 7d 2w 3mo 1y`) or an ISO date or time, as a time in UTC."""
    try:
        if duration := _DURATION.fullmatch(text):
            return _before(in_utc(now), int(duration[1]), duration[2])
        if _ISO.fullmatch(text):
            return in_utc(datetime.fromisoformat(text.upper()))
    except OverflowError:
        raise InvalidInput(
            f"{text[:_SHOWN]!r} is outside the years 1 to 9999.", remedy="Give a time nearer to the present."
        ) from None
    except ValueError as error:
        raise InvalidInput(f"{text[:_SHOWN]!r} is no date: {error}.", remedy="Check the date.") from None
    raise InvalidInput(
        f"{text[:_SHOWN]!r} is neither a duration nor a date.",
        remedy="Write a duration such as 30m, 12h, 7d, 2w, 3mo or 1y, or a date such as 2026-01-31 "
        "or 2026-01-31T12:00:00Z.",
    )


@dataclass(frozen=True, slots=True)
class _Piece:
    text: str
    position: int


@dataclass(frozen=True, slots=True)
class _Term:
    key: Key
    pieces: tuple[_Piece, ...]
    negated: bool


class _Scanner:
    """Splits a filter text into terms, and collects what it ignores."""

    def __init__(self, text: str) -> None:
        self._text = text
        self._at = 0
        self._words: dict[str, None] = {}

    def terms(self) -> Iterator[_Term]:
        while self._skip_space():
            start = self._at
            negated = self._text[start] == "-"
            if negated:
                self._at += 1
                if self._ends_here():
                    raise _fault("A '-' stands alone", start, "Write it directly before a key, as in -tag:draft.")
            if not (match := _KEY.match(self._text, self._at)):
                self._words[self._skip_word()] = None
                continue
            self._at = match.end()
            if not match[1]:
                raise _fault("A key is missing before ':'", match.start(), "Write key:value without spaces.")
            if key := FILTER_KEYS.get(match[1].lower()):
                yield _Term(key, self._pieces(match[1]), negated)
            else:
                raise _unknown_key(match[1], match.start())

    def warnings(self) -> tuple[str, ...]:
        if not self._words:
            return ()
        words = ", ".join(_shown(word) for word in list(self._words)[:10])
        return (f"words without a key were ignored: {words}; put words to search for in the query",)

    def _pieces(self, key: str) -> tuple[_Piece, ...]:
        pieces = [self._piece(key)]
        while self._text.startswith(",", self._at):
            self._at += 1
            pieces.append(self._piece(key))
        return tuple(pieces)

    def _piece(self, key: str) -> _Piece:
        start = self._at
        if self._text.startswith('"', start):
            text = self._quoted()
            if not self._ends_here() and self._text[self._at] != ",":
                raise _fault("Text follows a closing quote", self._at, "Put the whole value in quotes.")
        else:
            match = _BARE.match(self._text, start)
            text = match[0] if match else ""
            self._at = start + len(text)
            if text and self._text.startswith('"', self._at):
                raise _fault(
                    "A quote stands inside a value",
                    self._at,
                    'Put the whole value in quotes, with \\" for a quote inside.',
                )
        if not text:
            raise _fault(
                f"The key {key!r} has an empty value", start, f"Write {key}:value, without spaces around ':' or ','."
            )
        return _Piece(text, start)

    def _quoted(self) -> str:
        match = _QUOTED.match(self._text, self._at)
        if not match:
            raise _fault(
                "A quote is opened but not closed", self._at, 'Close it with "; inside quotes write \\" and \\\\.'
            )
        self._at = match.end()
        return _ESCAPE.sub(r"\1", match[1])

    def _skip_word(self) -> str:
        start = self._at
        while not self._ends_here():
            if word := _WORD.match(self._text, self._at):
                self._at = word.end()
            else:
                self._quoted()
        return self._text[start : self._at]

    def _skip_space(self) -> bool:
        if space := _SPACE.match(self._text, self._at):
            self._at = space.end()
        return self._at < len(self._text)

    def _ends_here(self) -> bool:
        return self._at >= len(self._text) or self._text[self._at].isspace()


def _add(conditions: list[Condition], new: Condition) -> None:
    for index, old in enumerate(conditions):
        if old.key == new.key and new.key not in _SEPARATE and not (old.negated or new.negated):
            conditions[index] = Condition(old.key, tuple(dict.fromkeys(old.values + new.values)))
            return
    conditions.append(new)


def _value(key: Key, piece: _Piece, now: datetime) -> Value:
    if key == "namespace":
        try:
            return canonical_namespace(piece.text)
        except UnknownNamespace as error:
            raise UnknownNamespace(
                f"{error.message} It stands at position {piece.position} of the filter.",
                remedy=error.remedy,
                field="filter",
            ) from None
    if key in _TIMES or key == "category":
        try:
            return canonical_category(piece.text) if key == "category" else parse_moment(piece.text, now=now)
        except InvalidInput as error:
            raise _fault(error.message.rstrip("."), piece.position, error.remedy) from None
    if key == "grounded":
        return _grounded(piece)
    if known := _personal_kinds() if key == "personal" else _CLOSED.get(key):
        value = piece.text.strip().lower()
        if key == "personal" and value == "*":
            return "any"
        if value not in known:
            raise _fault(f"There is no {key} {_shown(piece.text)}", piece.position, f"Use one of: {', '.join(known)}.")
        return value
    return piece.text


def _personal_kinds() -> tuple[str, ...]:
    # Imported on first use, because it takes a while to load.
    from ...security.personal import PERSONAL_KINDS

    return ("any", *PERSONAL_KINDS)


def _grounded(piece: _Piece) -> str:
    """A comparison with a score, or a word for one: `<0.3`, `>=0.7`, `warn`, `none`."""
    value = piece.text.strip().lower()
    match = _SCORE.fullmatch(value)
    if value in GROUNDED_WORDS or (match and 0 <= float(match[2]) <= 1):
        return value
    raise _fault(
        f"{_shown(piece.text)} is no grounding score",
        piece.position,
        f"Write a comparison such as <0.3 or >=0.7, or one of: {', '.join(GROUNDED_WORDS)}.",
    )


def _unknown_key(key: str, position: int) -> FilterSyntaxError:
    from difflib import get_close_matches

    near = get_close_matches(key.lower(), FILTER_KEYS, n=1)
    meant = f"Did you mean {near[0]!r}? " if near else ""
    return _fault(f"There is no filter key {_shown(key)}", position, f"{meant}The keys are: {', '.join(FILTER_KEYS)}.")


def _fault(message: str, position: int, remedy: str | None) -> FilterSyntaxError:
    return FilterSyntaxError(f"{message} (position {position}).", position=position, remedy=remedy)


def _shown(text: str) -> str:
    return repr(text if len(text) <= _SHOWN else text[:_SHOWN] + "…")


def _before(now: datetime, count: int, unit: str) -> datetime:
    if unit in _UNITS:
        return now - count * _UNITS[unit]
    return _months_before(now, count if unit == "mo" else 12 * count)


def _months_before(now: datetime, months: int) -> datetime:
    """The same day of an earlier month, or that month's last day where it is shorter."""
    year, month = divmod(now.year * 12 + now.month - 1 - months, 12)
    if year < 1:
        raise OverflowError
    day = min(now.day, calendar.monthrange(year, month + 1)[1])
    return now.replace(year=year, month=month + 1, day=day)
