"""What a record and a query look like on the surface: cheap cues that help to rank, read by regular expressions.

A record's traits are a bit mask and the name it is signed with, taken once at capture. A query's traits say what
kind of answer it wants, whom it names and which dates it mentions. The cues are English; text in other languages
simply has fewer of them. Nothing here looks at the store or at scores.
"""

from __future__ import annotations

import re
from dataclasses import dataclass
from enum import IntEnum, StrEnum
from functools import lru_cache

__all__ = ["FRAME_WORDS", "QueryKind", "QueryTraits", "RecordTraits", "Trait", "query_traits", "record_traits"]

HEAD = 4000  # characters of a record that are looked at: longer ones have every cue anyway


class Trait(IntEnum):
    """Surface cues of a record, one bit each. They are stored: add new ones at the end, never renumber."""

    QUESTION = 1  # its last sentence asks something
    ONLY_ASKS = 2  # every sentence of some length asks something
    REPLY = 4  # opens with thanks, wow, great: answers more than it tells
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


class QueryKind(StrEnum):
    """What kind of answer a query asks for; `TOPIC` is a query that is no question."""

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

    `words` holds every word folded and without its possessive, so an author can be met whatever the case it is
    asked in; `names` only the words written as proper nouns. `dates` are (year, month, day) with 0 for unknown; `ago`
    is the stretch of "last week" or "two months ago" as the fewest and the most days before now.
    """

    kind: QueryKind
    words: frozenset[str]
    names: frozenset[str]
    dates: tuple[tuple[int, int, int], ...]
    ago: tuple[float, float] | None
    feeling: bool

    def met_by(self, author: str | None) -> bool:
        """Whether this author, as `RecordTraits` gives it, is named in the query."""
        return author is not None and author in self.words


_MONTHS = (
    "january|february|march|april|may|june|july|august|september|october|november|december"
    "|jan|feb|mar|apr|jun|jul|aug|sep|sept|oct|nov|dec"
)
_DAYS = "monday|tuesday|wednesday|thursday|friday|saturday|sunday"

_LABEL = re.compile(
    r"\s*+(?:[(\[][^)\]\n]{4,60}[)\]]\s*|\d{4}-\d\d-\d\d[T ,\d:.Z+-]*\s+)?"
    r"(?:\*\*)?([^\W\d_][\w.'-]*(?: [^\W\d_][\w.'-]*){0,2})(?:\*\*)?\s?:(?=\s|\*)"
)
_LINE_LABEL = re.compile(r"^([^\W\d_][\w.'-]{0,30}(?: [^\W\d_][\w.'-]{0,30})?):(?=\s)", re.MULTILINE)
_SENTENCE = re.compile(r"[^.!?\n]*[.!?\n]+|[^.!?\n]+$")
_WORD = re.compile(r"[^\W_]+(?:['’][^\W\d_]+)?")
_PROPER = re.compile(r"(?<=[\w,;'’\"(-] )(?!I\b)[A-Z][a-z]+")
_DATE_WORD = re.compile(rf"(?:{_MONTHS}|{_DAYS})$", re.IGNORECASE)
_PLACE = re.compile(r" (?:in|at|from|to|near|around|visited|visiting) (?:the )?(?!I\b)([A-Z]\w+)")
_TITLE = re.compile(r"[\"“][^\"”\n]{2,80}[\"”]")
_DIGIT = re.compile(r"\d")
_DATE = re.compile(r"(?<!\d)(?:(?:19|20)\d\d|\d{1,2}[/.-]\d{1,2}[/.-]\d{2,4})(?!\d)")


def _words(text: str) -> list[str]:
    return re.findall(r"[^\s|]+", text)


# Word cues are looked up, not searched: one pass over the words of a record sets all of them.
_CUES: dict[str, int] = {}
for _trait, _listed in {
    Trait.TIME: f"""{_MONTHS} {_DAYS} yesterday today tonight tomorrow ago recently lately since until weekend weekends
        week weeks month months year years day days hour hours minute minutes morning afternoon evening night summer
        winter spring autumn fall last next soon earlier later before after daily weekly sprint quarter deadline""",
    Trait.NUMBER: """one two three four five six seven eight nine ten eleven twelve few couple several many half twenty
        thirty fifty hundred hundreds thousand million dozen twice once first second third""",
    Trait.DURATION: "minute minutes hour hours days weeks months year years decade since whole seconds",
    Trait.FIRST_PERSON: "i we my our me us i'm i've i'd i'll we're we've we'll mine ours myself",
    Trait.REASON: """because since therefore due reason so cause caused why purpose motivated inspired order
        prevents""",
    Trait.FEELING: """love loved loves like liked enjoy enjoyed happy glad proud excited sad worried afraid scared
        nervous angry grateful thankful feel feels feeling felt hope hate prefer prefers preferred favorite favourite
        amazing awesome upset stressed relieved passionate inspiring inspired peaceful tough important""",
    Trait.PERSON: """mother mom mum father dad sister brother son daughter kids children wife husband partner friend
        friends family boss manager team colleague colleagues coworker coworkers neighbor neighbour aunt uncle cousin
        grandma grandmother grandpa grandfather teacher coach mentor girlfriend boyfriend parents owner maintainer
        author""",
    Trait.PLACE: """city country countries town street beach park museum restaurant office region downtown cafe café
        school university hometown hotel airport located directory folder lives moved""",
}.items():
    for _word in _words(_listed):
        _CUES[_word] = _CUES.get(_word, 0) | _trait

_REPLIES = frozenset(
    _words(
        """thanks thank wow yeah yes yep yup sure great awesome cool nice congrats congratulations absolutely exactly
        sounds totally definitely aw aww oh hey hi hello bye take no okay ok right that's glad haha lol sweet perfect"""
    )
)
_NO_AUTHORS = frozenset(  # labels that open a note without naming who wrote it
    _words(
        """note notes todo fixme hack warning decision summary context example update fix bug tip title topic subject re
        fyi ps problem solution answer question reason cause result status goal plan step important remember rule lesson
        error feat docs test chore refactor perf build ci style"""
    )
)
_USERS = frozenset({"user", "human", "me", "i", "customer", "client"})
_ASSISTANTS = frozenset({"assistant", "ai", "bot", "agent", "claude", "gpt", "chatgpt", "system", "model"})


def record_traits(content: str) -> RecordTraits:
    """The cues of a record's text."""
    head = content[:HEAD]
    flags = 0
    author: str | None = None
    body = head
    label = _LABEL.match(head)
    if label is not None:
        author = label[1].split(" ", 1)[0].casefold()
    if label is None or author in _NO_AUTHORS:
        author = None
    else:
        body = head[label.end() :].lstrip("* ")
        if "\n" in body and any(other[1] != label[1] for other in _LINE_LABEL.finditer(body)):
            flags |= Trait.DIALOGUE
            author = None
        elif author in _USERS:
            flags |= Trait.FROM_USER
        elif author in _ASSISTANTS:
            flags |= Trait.FROM_ASSISTANT
    words = _WORD.findall(body.casefold())
    for word in set(words):
        flags |= _CUES.get(word, 0)
    if words and words[0] in _REPLIES:
        flags |= Trait.REPLY
    if "?" in body:
        flags |= _asking(body)
    if _DIGIT.search(body):
        flags |= Trait.NUMBER
        if _DATE.search(body):
            flags |= Trait.TIME
    if any(not _DATE_WORD.match(found) for found in _PROPER.findall(body)):
        flags |= Trait.NAME
    if any(not _DATE_WORD.match(found) for found in _PLACE.findall(body)):
        flags |= Trait.PLACE
    if _TITLE.search(body):
        flags |= Trait.TITLE
    return RecordTraits(flags, author)


def _asking(body: str) -> int:
    """Which of the two stronger question traits hold for a text with a question mark in it."""
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


_KINDS = (  # special before general
    (
        QueryKind.HOW_LONG,
        re.compile(r"\bhow long\b|\bhow (?:many |much )?(?:days|weeks|months|years|hours|minutes|time)\b|\bhow soon\b"),
    ),
    (QueryKind.HOW_MANY, re.compile(r"\bhow (?:many|much|often|old)\b|\bwhat (?:number|amount|percentage)\b")),
    (
        QueryKind.WHEN,
        re.compile(rf"\bwhen\b|\b(?:what|which) (?:date|day|month|year|time|weekend|week|season|{_DAYS})\b"),
    ),
    (
        QueryKind.WHERE,
        re.compile(r"\bwhere\b|\b(?:what|which) (?:city|country|state|place|location|town|area|folder|directory)\b"),
    ),
    (QueryKind.WHO, re.compile(r"\bwho(?:m|se|['’]s)?\b|\b(?:what|which) (?:person|friend|people)\b")),
    (QueryKind.WHY, re.compile(r"\bwhy\b|\bwhat (?:(?:was |is |were )?the reasons?|motivat|inspir|made|caused)")),
    (QueryKind.HOW, re.compile(r"\bhow\b")),
    (QueryKind.WHICH, re.compile(r"\bwhich\b")),
    (QueryKind.WHAT, re.compile(r"\bwhat\b")),
    (
        QueryKind.YES_NO,
        re.compile(r"^(?:is|are|was|were|do|does|did|has|have|had|can|could|would|will|should|may|might)\b"),
    ),
)
_FEELING = re.compile(
    r"\b(?:feel|feeling|feelings|felt|reaction|react|think|thoughts?|opinion|attitude|like|love|enjoy|favou?rite|prefer)"
)
_NAMES = re.compile(r"[A-Z][\w'’.-]*[\w]")
_QUERY_OPENERS = frozenset(
    _words(
        """what when where who whom whose which why how is are was were do does did has have had can could would will
        should may might i the a an in on at for of to if and tell give list find show describe name explain remind i'm
        i've"""
    )
)
# Words by which people ask and not what they ask about.
FRAME_WORDS = frozenset(
    _words(
        """many much long often day days week weeks month months year years ago passed pass since last past first total
        number time times order earliest latest happened happen mentioned mention remind recommend recommendation
        suggest suggestion tip tips advice currently current recently lately previous previously earlier told tell say
        said name think start started different type types kind kinds get got went go going take took combined compare
        compared average amount ever help conversation discussed talked wondering asked looking find thing things
        something someone typical usually"""
    )
)
_MONTH_STEMS = "janfebmaraprmayjunjulaugsepoctnovdec"
_YEAR = r"(?P<{0}>(?:19|20)\d\d)"
_QUERY_DATE = re.compile(
    rf"\b(?P<d1>\d{{1,2}})(?:st|nd|rd|th)?(?: of)? (?P<m1>{_MONTHS})\b(?:,? {_YEAR.format('y1')})?"
    rf"|\b(?P<m2>{_MONTHS})\.? (?P<d2>\d{{1,2}})(?:st|nd|rd|th)?\b(?!\d)(?:,? {_YEAR.format('y2')})?"
    rf"|\b(?P<m3>{_MONTHS}),? {_YEAR.format('y3')}"
    rf"|\b{_YEAR.format('y4')}[-/](?P<m4>\d{{1,2}})(?:[-/](?P<d4>\d{{1,2}}))?\b"
    rf"|\b(?<=(?:in|of|by) )(?P<m5>{_MONTHS})\b"
    rf"|\b{_YEAR.format('y6')}\b"
)
_COUNT_WORDS = {word: n for n, word in enumerate(_words("a two three four five six seven eight nine ten"), start=1)}
_COUNT_WORDS |= {"an": 1, "one": 1, "couple of": 2, "few": 3, "several": 4}
_UNIT_DAYS = {"day": 1.0, "week": 7.0, "month": 30.5, "year": 365.0}
_COUNT = r"(?:a )?(\d{1,3}|" + "|".join(_COUNT_WORDS) + ")"
_AGO = re.compile(rf"\b{_COUNT} (day|week|month|year)s? ago\b")
_WITHIN = re.compile(rf"\b(?:last|past|previous) (?:{_COUNT} )?(day|week|month|year)s?\b")
_LAST_DAY = re.compile(rf"\blast (?:{_DAYS}|weekend|night)\b")
_THIS = re.compile(r"\bthis (week|month|year)\b")


@lru_cache(maxsize=256)
def query_traits(query: str) -> QueryTraits:
    """The cues of a query's text."""
    text = query.strip()
    folded = text.casefold()
    kind = _kind(folded)
    names = {_bare(name) for name in _NAMES.findall(text)} - _QUERY_OPENERS
    return QueryTraits(
        kind=kind,
        words=frozenset(_bare(word) for word in _WORD.findall(folded)),
        names=frozenset(name for name in names if not _DATE_WORD.match(name)),
        dates=tuple(_dates(folded)),
        ago=_ago(folded),
        feeling=_FEELING.search(folded) is not None,
    )


def _kind(folded: str) -> QueryKind:
    """The kind of the first question word; where two patterns start at one place, the more special one."""
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
    return found


def _ago(folded: str) -> tuple[float, float] | None:
    if match := _AGO.search(folded):
        unit = _UNIT_DAYS[match[2]]
        days = _count(match[1]) * unit
        return max(days - 0.6 * unit, 0.0), days + 0.6 * unit
    if match := _WITHIN.search(folded):
        unit = _UNIT_DAYS[match[2]]
        # "Last month" may reach back two, "the last three months" not much more than three.
        return 0.0, _count(match[1]) * unit + 1 if match[1] else 2 * unit
    if match := _THIS.search(folded):
        return 0.0, _UNIT_DAYS[match[1]]
    if "yesterday" in folded:
        return 0.0, 2.0
    return (0.0, 8.0) if _LAST_DAY.search(folded) else None


def _count(text: str) -> int:
    return int(text) if text.isdigit() else _COUNT_WORDS[text]
