"""What a statement says, in a form that can be compared with another.

Two texts can share nearly all words and mean different things: another number, version, date or environment, a
negation, an opposite, another name, exchanged roles. One pass over the tokens reads all of these. The rules for words
are English; in other languages numbers, identifiers, quotations and the most common negations are read.
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import dataclass
from functools import lru_cache
from typing import NamedTuple

from ...lazy import regex
from ..capture.terms import stem
from ..labels.keyphrases import mostly_verbs
from .measures import STARTERS, Measure, Token, measure_at
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

__all__ = ["Statement", "plain_text", "read_statement"]

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
