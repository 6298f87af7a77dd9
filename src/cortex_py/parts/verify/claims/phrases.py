"""The phrases that decide whether a clause can be checked, what it denies, and what a heading announces (English)."""

from __future__ import annotations

import math
import re
from typing import Literal, NamedTuple

from ....core.memory.comparison.opposites import NEGATIONS
from ..words import alternatives, load_pattern, load_table, load_words
from .verbs import WORD, Verb

__all__ = [
    "BOOSTERS", "HEDGES", "Reason", "confidence", "heading_type", "hedging", "is_absent", "is_doubt", "is_lacking",
    "is_negated", "is_removal", "reason_for",
]  # fmt: skip

Reason = Literal["question", "plan", "opinion", "instruction", "quotation", "heading", "not understood"]
HeadingType = Literal["plan", "instruction", "report", "implemented", "modified", "fixed", "removed"]

# Denial

_INNER = load_pattern("claims", "inner")
_NONE = re.compile(r"(?<=[\w=:`] )None\b(?!\s+of\b)|(?<=[=(:,])\s*None\b")  # the value, not the word
_NO_DENIAL = frozenset((("not", "only"), ("no", "doubt"), ("no", "problem"), ("not", "sure"), ("not", "just")))


_SNAKE = re.compile(r"\w+_\w*")  # `NO_COLOR` denies nothing


def is_negated(text: str) -> bool:
    """Whether the clause denies something. "Not only", "without" and the value `None` deny nothing.

    A denial in a subordinate clause does not count: "raises for anything that is not a token".
    """
    main = _INNER.split(_NONE.sub(" ", _SNAKE.sub("`x`", text)), maxsplit=1)[0]
    words = [found[0].lower().replace("’", "'") for found in WORD.finditer(main)]
    following = [*words[1:], ""]
    return any(
        (word in NEGATIONS or word.endswith("n't"))
        and word not in ("without", "non")
        and (word, after) not in _NO_DENIAL
        for word, after in zip(words, following, strict=True)
    )


_BEING = (
    r"(?:in|at|there|present|available|defined|declared|found|exist\w*"
    r"|part of (?:the |this )?(?:project|repository|package|module|file|class|code|`))"
)
_HAVING = r"(?:have|has|defin(?:e|es|ing)|contain(?:s|ing)?|includ(?:e|es|ing)|declar(?:e|es|ing)|export(?:s|ing)?)"
_ABSENT = re.compile(
    r"\b(?:is|are|was|were|been)\s+(?:now\s+)?(?:missing|absent|gone)\b|\b(?:has|have)\s+disappeared\b"
    rf"|\bno longer\s+{_BEING}\b|\b(?:isn|aren|wasn)['’]t\s+{_BEING}\b|\bnot\s+{_BEING}\b"
    r"|\bthere\s+(?:is|are|was)(?:n['’]t|\s+no(?:t|thing)?)\b|\bno\s+(?:such\s+)?(?:\w+\s+){0,2}(?:called|named)\b"
    r"|\b(?:does|do|did)(?:n['’]t| not)\s+have\s+(?:an?|any)\s+(?:\w+\s+){0,2}(?:called|named)\b"
    r"|\bnothing\b.{0,40}\b(?:called|named)\b|\b(?:does|do|did)(?:n['’]t| not)\s+exist\b"
    r"|\b(?:could not|couldn['’]t|won['’]t|cannot|can['’]t)\s+(?:be\s+)?f(?:ind|ound)\b",
    re.I,
)
# One thing does not have another.
_WITHOUT = re.compile(
    rf"\black(?:s|ing)\b|\b(?:has|have)\s+(?:lost|no)\b(?!\s+(?:effect|influence|impact))"
    rf"|\bno longer\s+{_HAVING}\b|\bused to\s+{_HAVING}\b"
    rf"|\b{_HAVING}\b.{{0,80}}\bany\s?more\b|\bstopped\s+{_HAVING}\b|\b(?:does|do|did)(?:n['’]t| not)\s+{_HAVING}\b"
    rf"|\bnothing\b.{{0,40}}\b{_HAVING}\b|\bno definition\b",
    re.I,
)
_NEXT_NAME = re.compile(r"\s+(?:\w+\s+){0,2}`x`")
_NOT_ABSENT = re.compile(r"\b(?:not|n['’]t|never)\s+(?:missing|absent|gone|lack)", re.I)
_TAKEN_AWAY = load_pattern("claims", "taken_away")
_CODE = re.compile(r"`[^`]*`")
# What follows belongs to a subordinate clause: "returns 404 when the user does not exist".
_INSIDE = re.compile(
    r"\b(?:when(?:ever)?|if|unless|because|while|so that|where|until|in case|as (?:long|soon) as)\b"
    r"|\w\s+(?:that|which|whose)\s",
    re.I,
)


def is_absent(text: str, names: int) -> bool:
    """Whether a clause that names so many files and symbols says that one of them is missing: "is gone from", "lacks".

    With a single name, "lacks" is about something that has no name, unless it is what something lacks.
    """
    words = _INSIDE.split(_CODE.sub("`x`", text))[0]
    denied = _ABSENT.search(words) or (names > 1 and _WITHOUT.search(words)) or is_lacking(text)
    return bool(denied) and _NOT_ABSENT.search(words) is None


def is_lacking(text: str) -> bool:
    """Whether something without a name lacks the name that follows: "the model has no `x` column"."""
    words = _INSIDE.split(_CODE.sub("`x`", text))[0]
    lacks = _WITHOUT.search(words)
    return lacks is not None and "`" not in words[: lacks.start()] and _NEXT_NAME.match(words, lacks.end()) is not None


def is_removal(text: str) -> bool:
    """Whether a clause describes a removal by a phrase, without one of the verbs for it."""
    return _TAKEN_AWAY.search(_CODE.sub("`x`", text)) is not None


_DOUBT = load_pattern("claims", "doubt")
_DENIES = re.compile(r"\bun|n['’]t\b|\bnot\b", re.I)


def is_doubt(text: str) -> bool:
    """Whether the clause only qualifies the one beside it: "but it is untested"."""
    return _DOUBT.fullmatch(text) is not None and _DENIES.search(text) is not None


# What cannot be checked

_QUOTED_ERROR = load_pattern("claims", "quoted_error")
_MADE = (
    r"(?:add|implement|creat|refactor|renam|mov|replac|remov|delet|updat|chang|split|extract|migrat|writ|drop"
    r"|introduc|deprecat|document|rewrit|rewritt|done|investigat|revisit|extend|clean)\w*"
)
_PLAN = re.compile(
    r"\b(?:I|we)(?:['’]ll|\s+(?:will|shall|plan|intend|want|need|should|would|can|could|may|might)(?:\s+(?:also|now"
    r"|then|next|still|like))*\s+(?!(?:have|say|guess|think|expect|assume|believe|argue|be|see|tell)\b)\w+"
    r"|(?:['’]d)\s+(?:suggest|recommend|propose|like)\b|\s+(?:suggest|recommend|propose)\b|(?:\s+am|['’]m|\s+are"
    r"|['’]re)\s+(?:(?:now|currently)\s+)?(?:going|planning|about)\s+to\b)"
    r"|\blet['’]s\b|^\W*lets\b|\blet me\b(?!\s+know)|\b(?:TODO|FIXME|TBD)\b|\bnext,?\s+(?:I|we|up|step)\b|\bgoing to\b"
    r"|\bnext steps?\b"
    rf"|\b(?:will|should|must|needs? to|still needs? to|remains? to)\s+(?:also\s+|then\s+"
    rf"|still\s+|later\s+)*be\s+(?:\w+ly\s+)?{_MADE}(?!\s+now)\b(?!\s+now)"
    r"|\b(?:in a (?:follow[- ]up|later|future)|later on|at a later|future work|remains? to be|yet to be"
    r"|still (?:needs?|to do)|plan(?:s|ned)? to|not yet (?:done|implemented))\b"
    r"|^\W*(?:then\s+|also\s+)?will\s+\w+",
    re.I,
)
_NOT_YET = re.compile(r"\bnot yet (?:done|implemented)\b", re.I)
_INSTRUCTION = re.compile(
    r"^\W*(?:(?:(?:then|now|next|finally|first|also|to \w+(?: \w+){0,4}|after that),?"
    rf"|if [^,]{{1,80}},|once [^,]{{1,80}},)\s+)?(?:{alternatives('claims', 'instructions')})"
    r"\b(?![`/$]|[.-]\w)(?!\s*[:(]|\s+v?\d)(?!\w*\s+(?:is|are|was|were|has|now|and|or|\w{2,}(?<!s)s(?:\s+\w+)?\s+(?:is|are|carry|have|get|use|raise))\b)"
    r"|\byou(?:['’]ll|['’]d)?\s+(?:can|could|should|need|may|might|must|want|will|have to|need to)\b"
    r"(?!\s+(?:find|see|pass)\b.*[`_./])"
    r"|\blet me know\b|\bfeel free\b|\b(?:would|do) you (?:like|want)\b"
    r"|\bif you (?:want|need|like|prefer|['’]d like)\b|\byou(?:['’]re| are) (?:welcome|free|ready)\b",
    re.I,
)
_OPINION = re.compile(
    r"\b(?:looks?|sounds?|feels?|seems?|is|are|was|be|it['’]s|that['’]s|makes?|now)\s+(?:\w+\s+){0,4}?"
    rf"(?:{alternatives('claims', 'opinions')})\b(?=\s*(?:$|[.,;:!)]|to\b|for\b|and\b|than\b|now\b|way\b))"
    rf"|^[^\w`]*(?:{alternatives('claims', 'courtesies')})\b[^.]{{0,40}}[.!]*$"
    r"|\bI (?:like|love|prefer|hate|dislike|appreciate|agree|disagree)\b|\b(?:in my opinion|imho|personally"
    r"|best practice|I['’]m (?:happy|glad|sorry|afraid))\b",
    re.I,
)


_LATE = 60  # characters before an opinion that say something else
_ASIDE = 20  # characters after a verb from which an opinion is only part of what is said


def reason_for(text: str, listed: bool, under_changes: bool, verb: Verb | None) -> Reason | None:
    """Why a clause cannot be checked, or None. Hedging is no reason.

    In a list of changes, "Add x" says what was done and asks for nothing.
    """
    if text.rstrip(" *_`\"')”’").endswith(("?", "？", "؟")):
        return "question"
    if _QUOTED_ERROR.match(text):
        return "quotation"
    if _PLAN.search(text) and not _NOT_YET.search(text):
        return "plan"
    if not (listed and under_changes) and _INSTRUCTION.search(text):
        return "instruction"
    done = verb is not None and verb.form == "past"
    opinion = None if done else _OPINION.search(text)
    if opinion is None or opinion.start() > _LATE:
        return None
    return None if verb is not None and verb.start < opinion.start() - _ASIDE else "opinion"


# Headings

_HEADINGS: tuple[tuple[HeadingType, re.Pattern[str]], ...] = tuple(
    (kind, re.compile(rf"\b(?:{words})\b", re.I))  # type: ignore[misc]
    for kind, words in (
        ("plan", r"next steps?|to-?dos?|remaining|future|follow[- ]?ups?|planned|plan|roadmap|outstanding"
            r"|still to do|not done|upcoming|left to do|proposal|suggestions?|recommendations?|ideas?"),
        ("instruction", r"how to|usage|instructions?|getting started|to (?:run|test|use|try|verify|reproduce)"
            r"|you (?:can|should|need)|steps to|prerequisites"),
        ("removed", r"removed?|removals?|deleted?|deletions?|dropped"),
        ("fixed", r"fix(?:ed|es)?|bug ?fix(?:es)?|resolved?|bugs"),
        ("implemented", r"added|adds?|additions?|new|implement(?:ed|ation|s)?|created?|features?|introduced"),
        ("modified", r"chang(?:ed|es?)|modif(?:ied|ications?)|updat(?:ed|es?)|refactor(?:ed|ing)?|improve(?:d"
            r"|ments?)|edits?|renamed|moved"),
        ("report", r"summary|what (?:i|we) did|what was done|done|completed|accomplished|overview|results?|work"
            r"|did|i['’]ve|we['’]ve"),
    )
)  # fmt: skip
_NAME = re.compile(r"`[^`]*`|(?<![^\s`])\S*[./_]\w\S*")


def heading_type(text: str) -> HeadingType | None:
    """What a heading or lead-in announces, by its words; those inside a file name do not count."""
    bare = _NAME.sub(" ", text)
    return next((kind for kind, pattern in _HEADINGS if pattern.search(bare)), None)


# How sure a text sounds: hedges lower the confidence, boosters raise it a little. Pure.
#
# A hedge is weighed against the sentences without one, so one doubt in a long answer counts little. Adding a hedge
# never raises the result: hedges are single words, and none hides another or makes a booster count.

_PLAIN = 0.9  # the confidence of a plain statement; only boosters raise it


HEDGES = {word: float(weight) for weight, words in load_table("claims", "hedges").items() for word in words.split()}
BOOSTERS = load_words("claims", "boosters")
_WEIGHT_OF_DENIED = 0.5  # "not verified", "not sure"
_LIKE_A_MONTH = "May"
_CODE_SPAN = re.compile(r"`[^`\n]*`")
_SENTENCE = re.compile(r"[^.!?\n。！？]+(?:\.(?=\w)[^.!?\n。！？]+)*")
_WORD = re.compile(r"\w+(?:['’]\w+)?")
_ABOUT = re.compile(r"\b(?:about|around)\s+\d|~\d")


class _Tone(NamedTuple):
    weight: float
    boosted: bool


def confidence(text: str) -> float:
    """How sure the text sounds, from 0 to 1; an empty text counts as plain."""
    tones = _tones(text)
    boosted = sum(tone.boosted for tone in tones)
    base = _PLAIN + (1 - _PLAIN) * boosted / max(1, len(tones))
    return base * (1 - _hedged(tones))


def hedging(text: str) -> float:
    """How much the text is hedged: 0 for not at all, always below 1."""
    return _hedged(_tones(text))


def _hedged(tones: list[_Tone]) -> float:
    # Only sentences without a hedge dilute the doubt; counting hedged ones would let a mild hedge raise the mean.
    plain = sum(not tone.weight for tone in tones)
    total = sum(tone.weight for tone in tones)
    return 1 - math.exp(-total / (1 + plain))


def _tones(text: str) -> list[_Tone]:
    return [tone for found in _SENTENCE.finditer(_CODE_SPAN.sub(" ", text)) if (tone := _tone(found[0])) is not None]


def _tone(sentence: str) -> _Tone | None:
    written = _WORD.findall(sentence)
    if not written:
        return None
    weight, denied, boosted = 0.0, False, 0
    for word in written:
        lower = word.lower()
        denied = denied or lower in NEGATIONS or lower.endswith(("n't", "n’t"))
        boosted += lower in BOOSTERS
        if word != _LIKE_A_MONTH:
            weight += HEDGES.get(lower, 0.0)
    if _ABOUT.search(sentence):
        weight += 0.1
    # A negation anywhere in a sentence turns its boosters into hedges.
    return _Tone(weight + (_WEIGHT_OF_DENIED * boosted if denied else 0.0), bool(boosted) and not denied)
