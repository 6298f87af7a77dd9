"""Dates of birth, and street addresses.

An address is a number and a street by the words of several languages, then flat, place and postcode. Every rule starts
at a street number and reads the few words before or after it.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence

from ...lazy import regex
from .numbers import TABLES, Span, phrases, words, words_before

__all__ = ["find_addresses", "find_births"]

_NUMBER = regex(r"(?<![\w.,:/$€£#+\0-])\d{1,5}[A-Za-z]?(?:[-/]\d{1,4}[A-Za-z]?)?(?![\w%:\0]|[.,]\d)")
_WORD = regex(r"[^\W\d_][\w.'’-]{0,24}|\d{1,3}(?:st|nd|rd|th)(?!\w)")
_NEXT = regex(r"(?:\d{1,5} )?[^\W\d_]|\d{1,3}(?:st|nd|rd|th) ")
_LINKS = words("street_links")
_NOT_STREETS = words("not_streets")
_NOT_STREET_WORDS = words("not_street_words")
_TYPES, _WEAK = words("street_types"), words("street_types_weak")
_ENDINGS = tuple(sorted(words("street_endings")))
_AFTER_NAME = words("street_words_after")
_BEFORE_NAME = words("street_words_before")
_AFTER_NUMBER = words("street_words_numbered")
_YEAR = regex(r"(?:1[89]|20)\d\d\b")
_UNITS = frozenset(("apt", "apartment", "suite", "ste"))
_LEADS = phrases(TABLES["words"]["address_leads"])
_BOXES = regex(
    r"(?<!\w)(?:(?:psc|unit|cmr) \d{1,5},? box \d{1,5}|(?:uss|usns|usnv|uscgc) [^\W\d_]{2,24})"
    r"\s{1,3}(?:apo|fpo|dpo),? a[aep] \d{5}(?!\w)|(?<!\w)p\.? ?o\.? ?box \d{1,6}(?!\w)",
    re.IGNORECASE,
)
_BOX_WORDS = regex(r"(?:box|fpo|dpo|apo) ", re.IGNORECASE)
_UNIT = r"(?:apt|apartment|suite|ste)\b\.? ?#?\d{1,5}[A-Za-z]?(?!\w)"
_POSTCODE = (
    r"(?:[A-Z]{1,2}[- ])?(?!(?:1[89]|20)\d\d\b)(?:\d{5}(?:-\d{3,4})?|\d{4}|\d{6})(?!\w|[-.]\w)"
    r"|[A-Z]{1,2}\d[A-Z\d]? ?\d[A-Z]{2}(?!\w)"
)
_STEP = r"\.?(?:,? ?\n[ >?]{0,4}(?:, ?)?|, )"  # to the next part of an address, on this line or the next
_CAPITAL = r"[^\W\d_a-z][\w.'’()-]{0,24}"
_PLACE = rf"{_CAPITAL}(?: (?:{_CAPITAL}|{'|'.join(sorted(_LINKS))})){{0,3}}"
_TAIL = regex(
    rf"(?:[,.]?[ \n>?]{{1,6}}(?i:{_UNIT}|unit \d{{1,4}}|floor \d{{1,3}})){{0,2}}"
    rf"(?:{_STEP}(?:{_POSTCODE})(?:,? {_CAPITAL}){{0,2}}"
    rf"|(?:{_STEP}{_PLACE}){{1,3}}(?:,? |{_STEP})(?:{_POSTCODE}))?"
)
_BEFORE_UNIT = regex(
    r"(?<![\w.,:/$€£#-])\d{2,6} (?:\d{1,5} )?([^\W\d_][\w.'’ -]{2,50}?) ?(?:\d{1,5}\.?)?,?[\s>?]{0,6}\Z"
)
_WINDOW = 90
_MOST_WORDS = 7


def find_addresses(text: str) -> Iterator[Span]:
    """Every street address, with what follows of it."""
    taken = 0
    for start, end in sorted(_cores(text), key=lambda core: (core[0], -core[1])):
        if start >= taken:
            tail = _TAIL.match(text, end)
            taken = tail.end() if tail else end
            yield start, taken, "street-address"


def _cores(text: str) -> Iterator[tuple[int, int]]:
    """A number with a street, however it is recognised."""
    for match in _NUMBER.finditer(text):
        start, end = match.span()
        gap = end + 2 if text.startswith(", ", end) else end + 1
        if text[end : end + 1] in (" ", ",") and _NEXT.match(text, gap):
            found = _number_first(text, start, gap)
            if found:
                yield start, found
        if text[start - 1 : start] == " " and start > 1 and (text[start - 2].isalpha() or text[start - 2] in ".,"):
            first = _street_first(text, start)
            if first is not None:
                yield first, end
    if _BOX_WORDS.search(text):
        for match in _BOXES.finditer(text):
            yield match.span()


def _number_first(text: str, start: int, gap: int) -> int | None:
    """The end of a street after its number: "12 High Street", "4 rue du Lac", "address: 45 Exemplo 12"."""
    line = text[gap : gap + _WINDOW].partition("\n")[0]
    second = re.match(r"\d{1,5} (?=[^\W\d_])", line)
    if second:
        gap, line = gap + second.end(), line[second.end() :]
    names = _name(line)
    if not names:
        return None
    lowered = [name.group().lower().rstrip(".") for name in names]
    for place, word in enumerate(lowered[1:5], 1):
        if word in _TYPES or word in _WEAK:
            given = [name.group() for name in names[:place]]
            weak = word in _WEAK and (gap - start < 3 or _YEAR.match(text, start))
            written = names[place].group()[0].isupper() and _capitalised(given)
            if written and lowered[place - 1] not in _NOT_STREETS and not weak:
                return gap + names[place].start() + len(word)
    if names[0].group().lower() in _AFTER_NUMBER:
        last = _last_of_name(names[1:])
        if last is not None:
            return gap + last.start() + len(last.group().rstrip("."))
    if f" {_lead(text, start)} ".endswith(_LEADS):
        last = names[-1]
        number = re.match(r" \d{1,5}(?!\w)", line[last.end() :])
        if number:
            return gap + last.end() + number.end()
        if gap - start > 3 and names[0].group()[0].isupper():
            last = _last_of_name(names) or names[0]
            return gap + last.start() + len(last.group().rstrip("."))
    return None


def _street_first(text: str, start: int) -> int | None:
    """Where a street begins that precedes its number: "Hauptstraße 5", "Via Roma 131", "Kossuth u. 12"."""
    begin = max(0, start - _WINDOW)
    window = text[begin : start - 1].rpartition("\0")[2]
    line = window.rpartition("\n")[2]
    offset = start - 1 - len(line)
    line = line.rstrip(",")
    names = _together(list(_WORD.finditer(line))[-_MOST_WORDS:], line)
    if not names or names[-1].end() != len(line):
        return None
    last = names[-1].group()
    low = last.lower()
    found: re.Match[str] | None = None
    if last[0].isupper() and len(last) > 6 and low.endswith(_ENDINGS) and low not in _NOT_STREET_WORDS:
        found = names[-1]
    elif low in _AFTER_NAME and len(names) > 1 and names[-2].group()[0].isupper():
        found = names[-3] if len(names) > 2 and names[-3].group()[0].isupper() else names[-2]
    elif low.rstrip(".") in _UNITS:
        return _before_unit(window[: len(window) - len(low)], start - 1 - len(window))
    else:
        for place in range(len(names) - 2, -1, -1):
            name = names[place].group()
            if name.lower() in _BEFORE_NAME and name[0].isupper() | name.endswith("."):
                found = names[place] if _capitalised([given.group() for given in names[place + 1 :]]) else None
                break
            if not (name[0].isupper() or name.lower() in _LINKS):
                break
    if found is None:
        return None
    number = re.search(r"(?<![\w.])\d{3,5} \Z", line[: found.start()])
    return offset + (number.start() if number else found.start())


def _before_unit(window: str, offset: int) -> int | None:
    """Where the address begins whose flat is named: "450 Exemplo 12 Apt. 3"."""
    before = _BEFORE_UNIT.search(window)
    return offset + before.start() if before and before[1][0].isupper() else None


def _lead(text: str, start: int) -> str:
    """The words right before a number, with a blank between them."""
    window = text[max(0, start - 40) : start].rpartition("\0")[2].lower()
    lead = re.search(r"((?:[^\W\d_]{1,20} ){0,2}[^\W\d_]{1,20}):?\s{0,4}\Z", window)
    return lead[1] if lead else ""


def _name(line: str) -> list[re.Match[str]]:
    """The words at the beginning of a line that blanks alone part."""
    names: list[re.Match[str]] = []
    at = 0
    while len(names) < _MOST_WORDS and (word := _WORD.match(line, at)) is not None:
        names.append(word)
        at = word.end() + 1
        if line[word.end() : at] != " ":
            break
    return names


def _together(names: list[re.Match[str]], line: str) -> list[re.Match[str]]:
    """The last of the words that single blanks part."""
    first = len(names) - 1
    while first > 0 and line[names[first - 1].end() : names[first].start()] == " ":
        first -= 1
    return names[max(first, 0) :]


def _capitalised(names: Sequence[str]) -> bool:
    """Every word begins with a capital, but for small ones such as "de la"."""
    given = [word for word in names if word.lower().rstrip("'’") not in _LINKS]
    return bool(given) and all(word[0].isupper() or word[0].isdigit() or word[1:2] in ("'", "’") for word in given)


def _last_of_name(names: Sequence[re.Match[str]]) -> re.Match[str] | None:
    """The last capitalised word that small words and capitals lead to."""
    last: re.Match[str] | None = None
    for name in names:
        word = name.group()
        if word[0].isupper() or word[1:2] in ("'", "’"):
            last = name
        elif word.lower() not in _LINKS:
            break
    return last


# Dates of birth: a date right after a word for being born.

_MONTH = "|".join(sorted(words("months"), key=len, reverse=True))
_DAY = r"(?:0?[1-9]|[12]\d|3[01])"
_BIRTH_YEAR = r"(?:18|19|20)\d\d"
_DATE = regex(
    rf"(?<![\w.\0-])(?:{_BIRTH_YEAR}[-/.](?:0?[1-9]|1[0-2])[-/.]{_DAY}"
    rf"|{_DAY}[-/.]{_DAY}[-/.](?:{_BIRTH_YEAR}|\d\d)"
    rf"|{_DAY}(?:st|nd|rd|th|\.|º)?(?: de| of)? (?:{_MONTH})\.?,?(?: de| del)?(?: {_BIRTH_YEAR})?"
    rf"|(?:{_MONTH})\.? {_DAY}(?:st|nd|rd|th)?(?:,? {_BIRTH_YEAR})?)(?![\w-])",
    re.IGNORECASE,
)
_BORN = tuple(tuple(phrase.split()) for phrase in phrases(TABLES["words"]["birth_words"]))
_FILLERS = words("birth_fillers")
_HINT = regex(r"(?<![^\W\d_])(?:" + "|".join(r"\W{1,3}".join(born) for born in _BORN) + r")(?![^\W\d_])")


def find_births(text: str) -> Iterator[Span]:
    """Every date that small words alone part from a word for being born."""
    if not _HINT.search(text.lower()):
        return
    for match in _DATE.finditer(text):
        near = words_before(text, match.start())
        while near and not _ends_born(near):
            if near.pop() not in _FILLERS:
                near = []
        if near:
            yield match.start(), match.end(), "date-of-birth"


def _ends_born(near: list[str]) -> bool:
    return any(tuple(near[-len(born) :]) == born for born in _BORN)
