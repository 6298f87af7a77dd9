"""Surface traits of records and queries that help ranking, found by word lists and regular expressions.

A record's traits are a bit mask and the name that signs it, computed once at capture. A query's traits are the kind of
answer it wants, the names in it and the dates it mentions. The cues are English; texts in other languages have fewer.
"""

from __future__ import annotations

import re
from dataclasses import dataclass
from enum import IntEnum, StrEnum
from functools import cache, lru_cache

from ...lazy import regex
from .terms import word_list, word_tables

__all__ = ["MONTHS", "QueryKind", "QueryTraits", "Trait", "frame_words", "query_traits", "record_traits"]

HEAD = 4000  # characters of a record or query that are read: longer ones have every cue anyway


class Trait(IntEnum):
    """Surface cues of a record, one bit each. They are stored: add new ones at the end and never renumber."""

    QUESTION = 1  # its last sentence asks something
    ONLY_ASKS = 2  # every sentence of some length asks something
    REPLY = 4  # opens with thanks, wow, great
    TIME = 8  # a date, a weekday, "last week", "since"
    DURATION = 16  # "for three years", "two hours"
    NUMBER = 32  # digits or number words
    NAME = 64  # a capitalised word inside a sentence
    PERSON = 128  # a relation: mother, friend, team, colleague
    PLACE = 256  # "in Paris", "office", "downtown"
    FIRST_PERSON = 512  # I, we, my, our
    REASON = 1024  # because, so that, due to
    FEELING = 2048  # love, glad, worried
    TITLE = 4096  # something in double quotes
    DIALOGUE = 8192  # several speakers in one record
    FROM_USER = 16384  # signed by a generic person: user, human, me
    FROM_ASSISTANT = 32768  # signed by a generic assistant
    SECOND_PERSON = 65536  # you, your
    CODE = 131072  # most of its lines are program text


class QueryKind(StrEnum):
    """The kind of answer a query asks for; `TOPIC` is a query that is not a question."""

    WHEN = "when"
    WHERE = "where"
    WHO = "who"
    HOW_MANY = "how_many"
    HOW_LONG = "how_long"
    WHY = "why"
    HOW = "how"
    WHAT = "what"
    WHICH = "which"
    YES_NO = "yes_no"
    TOPIC = "topic"


@dataclass(frozen=True, slots=True)
class RecordTraits:
    """The cues of one record; `author` is the folded first word of its leading "Name:" label."""

    flags: int
    author: str | None


@dataclass(frozen=True, slots=True)
class QueryTraits:
    """The cues of one query.

    `words` are all words, folded and without possessive, to compare with authors; `names` are those written as proper
    nouns. `dates` are (year, month, day) with 0 for unknown. `ago` is the range that "last week" or "two months ago"
    means, as the fewest and the most days before now.
    """

    kind: QueryKind
    words: frozenset[str]
    names: frozenset[str]
    dates: tuple[tuple[int, int, int], ...]
    ago: tuple[float, float] | None
    feeling: bool


MONTHS = (
    "january", "february", "march", "april", "may", "june", "july", "august", "september", "october", "november",
    "december",
)  # fmt: skip
_MONTHS = "|".join(MONTHS) + "|jan|feb|mar|apr|jun|jul|aug|sep|sept|oct|nov|dec"
_DAYS = "monday|tuesday|wednesday|thursday|friday|saturday|sunday"

_LABEL = regex(
    r"\s*+(?:[(\[][^)\]\n]{4,60}[)\]]\s*|\d{4}-\d\d-\d\d[T ,\d:.Z+-]*\s+)?"
    r"(?:\*\*)?([^\W\d_][\w.'-]*(?: [^\W\d_][\w.'-]*){0,2})(?:\*\*)?\s?:(?=\s|\*)"
)
_LINE_LABEL = regex(r"^([^\W\d_][\w.'-]{0,30}(?: [^\W\d_][\w.'-]{0,30})?):(?=\s)", re.MULTILINE)
_SENTENCE = regex(r"[^.!?\n]*[.!?\n]+|[^.!?\n]+$")
_WORD = regex(r"[^\W_]+(?:['’][^\W\d_]+)?")
_PROPER = regex(r"(?<=[\w,;'’\"(-] )(?!I\b)[A-Z][a-z]+")
_DATE_WORD = regex(rf"(?:{_MONTHS}|{_DAYS})$", re.IGNORECASE)
_PLACE = regex(r" (?:in|at|from|to|near|around|visited|visiting) (?:the )?(?!I\b)([A-Z]\w+)")
_TITLE = regex(r"[\"“][^\"”\n]{2,80}[\"”]")
_DIGIT = regex(r"\d")
_CODE_WIDTH = 200  # characters of a line that are read
# Openings and endings of lines that prose does not have. Indented lines count: prose in lists is marked by bullets.
_CODE_LINE = regex(
    r"\s*(?:def|class|return|import|from \S+ import|if .*[:{]$|else\b|elif\b|for .*[:{]$|while .*[:{]$|try\b|except\b|"
    r"raise\b|with .*:$|function\b|const\b|let\b|var\b|public\b|private\b|static\b|func\b|fn\b|package\b|#include|@\w+)"
    r"|.*[;{}]\s*$|.*[^\s.!?]\s*[-+*/|&]?=\s*\S|\s*[\w.]+\([^)]*\)?\s*[:,]?$|\s*[)\]}]|\s*(?:#|//|/\*|\"{3}|'{3})"
    r"|(?: {4}|\t)\s*(?![-*+•\d])\S"
)
_DATE = regex(r"(?<!\d)(?:(?:19|20)\d\d|\d{1,2}[/.-]\d{1,2}[/.-]\d{2,4})(?!\d)")


_USERS = frozenset({"user", "human", "me", "i", "customer", "client"})
_ASSISTANTS = frozenset({"assistant", "ai", "bot", "agent", "claude", "gpt", "chatgpt", "system", "model"})


@cache
def _word_cues() -> dict[str, int]:
    """The traits of each cue word, as bits: one pass over the words of a record sets all of them."""
    cues: dict[str, int] = {}
    for name, words in word_tables()["trait_cues"].items():
        for word in words:
            cues[word] = cues.get(word, 0) | Trait[name.upper()]
    return cues


def frame_words() -> frozenset[str]:
    """Words by which people ask, as opposed to what they ask about."""
    return word_list("frame_words")


def record_traits(content: str) -> RecordTraits:
    """The cues of a record's text."""
    flags, author, body = _read_label(content[:HEAD])
    words = _WORD.findall(body.casefold())
    cues = _word_cues()
    for word in set(words):
        flags |= cues.get(word, 0)
    if words and words[0] in word_list("replies"):
        flags |= Trait.REPLY
    if "?" in body:
        flags |= _asking(body)
    if _DIGIT.search(body):
        flags |= Trait.NUMBER
        if _DATE.search(body):
            flags |= Trait.TIME
    for trait, pattern in ((Trait.NAME, _PROPER), (Trait.PLACE, _PLACE)):
        if any(not _DATE_WORD.match(found[found.re.groups]) for found in pattern.finditer(body)):
            flags |= trait
    if _TITLE.search(body):
        flags |= Trait.TITLE
    if _looks_like_code(body):
        flags |= Trait.CODE
    return RecordTraits(flags, author)


def _looks_like_code(body: str) -> bool:
    """Whether most lines are program text; a sentence with a call in it is none."""
    lines = [line[:_CODE_WIDTH] for line in body.split("\n") if line.strip()]
    return len(lines) > 1 and 2 * sum(_CODE_LINE.match(line) is not None for line in lines) > len(lines)


def _read_label(head: str) -> tuple[int, str | None, str]:
    """The traits and the author that a leading "Name:" label shows, and the text after it."""
    label = _LABEL.match(head)
    author, *rest = label[1].split(" ") if label else ("",)
    # "Anna Lee: ..." is signed, "Roles decide access: ..." is not.
    is_name = not any(word[0].islower() for word in rest)
    author = author.casefold()
    if label is None or not is_name or author in word_list("labels_without_author"):
        return 0, None, head
    body = head[label.end() :].lstrip("* ")
    if "\n" in body and any(other[1] != label[1] for other in _LINE_LABEL.finditer(body)):
        return Trait.DIALOGUE, None, body
    if author in _USERS:
        return Trait.FROM_USER, author, body
    return Trait.FROM_ASSISTANT if author in _ASSISTANTS else 0, author, body


def _asking(body: str) -> int:
    """The question traits of a text with a question mark in it."""
    sentences = [s for s in (part.strip() for part in _SENTENCE.findall(body)) if len(s) > 3]
    if not sentences:
        return 0
    found = 0
    if sentences[-1].endswith("?"):
        found |= Trait.QUESTION
    telling = sum(len(s) for s in sentences if not s.endswith("?") and len(s) > 25)
    if telling == 0:
        found |= Trait.ONLY_ASKS
    return found


_KINDS = (  # the more specific first
    (
        QueryKind.HOW_LONG,
        regex(r"\bhow long\b|\bhow (?:many |much )?(?:days|weeks|months|years|hours|minutes|time)\b|\bhow soon\b"),
    ),
    (QueryKind.HOW_MANY, regex(r"\bhow (?:many|much|often|old)\b|\bwhat (?:number|amount|percentage)\b")),
    (
        QueryKind.WHEN,
        regex(rf"\bwhen\b|\b(?:what|which) (?:date|day|month|year|time|weekend|week|season|{_DAYS})\b"),
    ),
    (
        QueryKind.WHERE,
        regex(r"\bwhere\b|\b(?:what|which) (?:city|country|state|place|location|town|area|folder|directory)\b"),
    ),
    (QueryKind.WHO, regex(r"\bwho(?:m|se|['’]s)?\b|\b(?:what|which) (?:person|friend|people)\b")),
    (QueryKind.WHY, regex(r"\bwhy\b|\bwhat (?:(?:was |is |were )?the reasons?|motivat|inspir|made|caused)")),
    (QueryKind.HOW, regex(r"\bhow\b")),
    (QueryKind.WHICH, regex(r"\bwhich\b")),
    (QueryKind.WHAT, regex(r"\bwhat\b")),
    (
        QueryKind.YES_NO,
        regex(r"^(?:is|are|was|were|do|does|did|has|have|had|can|could|would|will|should|may|might)\b"),
    ),
)
_FEELING = regex(
    r"\b(?:feel|feeling|feelings|felt|reaction|react|think|thoughts?|opinion|attitude|like|love|enjoy|favou?rite|prefer)"
)
_NAMES = regex(r"[A-Z][\w'’.-]*[\w]")
_MONTH_STEMS = "janfebmaraprmayjunjulaugsepoctnovdec"
_YEAR = r"(?P<{0}>(?:19|20)\d\d)"
_OPENERS = ("in", "of", "by", "last", "this", "since", "early", "late", "during", "until")
_BEFORE_MONTH = f"(?:{'|'.join(f'(?<={word} )' for word in _OPENERS)})"
_QUERY_DATE = regex(
    rf"\b(?P<d1>\d{{1,2}})(?:st|nd|rd|th)?(?: of)? (?P<m1>{_MONTHS})\b(?:,? {_YEAR.format('y1')})?"
    rf"|\b(?P<m2>{_MONTHS})\.? (?P<d2>\d{{1,2}})(?:st|nd|rd|th)?\b(?!\d)(?:,? {_YEAR.format('y2')})?"
    rf"|\b(?P<m3>{_MONTHS}),? {_YEAR.format('y3')}"
    rf"|\b{_YEAR.format('y4')}[-/](?P<m4>\d{{1,2}})(?:[-/](?P<d4>\d{{1,2}}))?\b"
    rf"|{_BEFORE_MONTH}\b(?P<m5>{_MONTHS})\b"
    rf"|\b{_YEAR.format('y6')}\b"
)
_SEASON = regex(
    r"\b(?:in|of|last|this|during|since|early|late) (?:the )?(spring|summer|autumn|fall|winter)\b(?: of)?"
    rf"(?: {_YEAR.format('y')})?"
)
_SEASON_MONTHS = {
    "spring": (3, 4, 5),
    "summer": (6, 7, 8),
    "autumn": (9, 10, 11),
    "fall": (9, 10, 11),
    "winter": (12, 1, 2),
}
_HOLIDAY = regex(r"\b(christmas(?: eve)?|new year'?s eve|new year'?s(?: day)?|halloween|valentine'?s|thanksgiving)\b")
_HOLIDAYS = {
    "christmas": (12, 25), "christmas eve": (12, 24), "new years eve": (12, 31), "new years": (1, 1),
    "new years day": (1, 1), "halloween": (10, 31), "valentines": (2, 14), "thanksgiving": (11, 0),
}  # fmt: skip
_COUNT_WORDS = {
    word: n
    for n, word in enumerate(["a", "two", "three", "four", "five", "six", "seven", "eight", "nine", "ten"], start=1)
}
_COUNT_WORDS |= {"an": 1, "one": 1, "couple of": 2, "few": 3, "several": 4}
_UNIT_DAYS = {"day": 1.0, "week": 7.0, "month": 30.5, "year": 365.0}
_COUNT = r"(?:a )?(\d{1,3}|" + "|".join(_COUNT_WORDS) + ")"
_AGO = regex(rf"\b{_COUNT} (day|week|month|year)s? ago\b")
_WITHIN = regex(rf"\b(?:last|past|previous) (?:{_COUNT} )?(day|week|month|year)s?\b")
_LAST_DAY = regex(rf"\blast (?:{_DAYS}|weekend|night)\b")
_LAST_TIME = regex(rf"\blast (?:{_MONTHS}|spring|summer|autumn|fall|winter)\b")
_THIS = regex(r"\bthis (week|month|year)\b")


def query_traits(query: str) -> QueryTraits:
    """The cues of a query's text."""
    return _traits(query.strip()[:HEAD])


@lru_cache(maxsize=256)
def _traits(text: str) -> QueryTraits:
    folded = text.casefold()
    kind = _kind(folded)
    names = {_bare(name) for name in _NAMES.findall(text)} - word_list("query_openers")
    return QueryTraits(
        kind=kind,
        words=frozenset(_bare(word) for word in _WORD.findall(folded)),
        names=frozenset(name for name in names if not _DATE_WORD.match(name)),
        dates=tuple(_dates(folded)),
        ago=_ago(folded),
        feeling=_FEELING.search(folded) is not None,
    )


def _kind(folded: str) -> QueryKind:
    """The kind of the first question word; of two at the same place, the more specific."""
    found = [(match.start(), n, kind) for n, (kind, p) in enumerate(_KINDS) if (match := p.search(folded))]
    return min(found)[2] if found else QueryKind.TOPIC


def _bare(word: str) -> str:
    folded = word.casefold().replace("’", "'")
    return folded[:-2] if folded.endswith("'s") else folded.rstrip("'.")


def _dates(folded: str) -> list[tuple[int, int, int]]:
    found: list[tuple[int, int, int]] = []
    for match in _QUERY_DATE.finditer(folded):
        part = {name[0]: value for name, value in match.groupdict().items() if value is not None}
        month = part.get("m", "0")
        number = int(month) if month.isdigit() else _MONTH_STEMS.index(month[:3]) // 3 + 1
        day = int(part.get("d", "0"))
        if number <= 12 and day <= 31:
            found.append((int(part.get("y", "0")), number, day))
    for match in _SEASON.finditer(folded):
        # The months of a winter that has a number belong to two years.
        year = int(match["y"] or 0)
        months = _SEASON_MONTHS[match[1]]
        found += [(year + 1 if year and months[0] > month else year, month, 0) for month in months]
    for match in _HOLIDAY.finditer(folded):
        month, day = _HOLIDAYS[match[1].replace("'", "")]
        found.append((0, month, day))
    return found


def _ago(folded: str) -> tuple[float, float] | None:
    if match := _AGO.search(folded):
        unit = _UNIT_DAYS[match[2]]
        days = _count(match[1]) * unit
        return max(days - 0.6 * unit, 0.0), days + 0.6 * unit
    if match := _WITHIN.search(folded):
        unit = _UNIT_DAYS[match[2]]
        # "Last month" may reach back two months, "the last three months" hardly more than three.
        return 0.0, _count(match[1]) * unit + 1 if match[1] else 2 * unit
    if match := _THIS.search(folded):
        return 0.0, _UNIT_DAYS[match[1]]
    if "yesterday" in folded:
        return 0.0, 2.0
    if _LAST_TIME.search(folded):
        return 0.0, 400.0
    return (0.0, 8.0) if _LAST_DAY.search(folded) else None


def _count(text: str) -> int:
    return int(text) if text.isdigit() else _COUNT_WORDS[text]
