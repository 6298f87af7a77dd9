"""A claim laid out for comparison: what it is about, what it says of that, when, and how far it holds. Pure.

Two claims exclude each other only where nearly everything in them is the same, so a frame keeps what must be equal
apart from what may differ: the subject, the words said of it, the numbers, the sides of opposites, whether it is
denied. A claim that holds only in part, or of which it is not plain what it speaks of, has no subject.
"""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import dataclass
from functools import lru_cache
from typing import Literal, NamedTuple

import Stemmer

from ..memory.opposites import COMMON, NEGATIONS, SIDES, VERBS, word_set
from .claim_words import CHANGES
from .claims import Claim
from .passages import Span, read_passages

__all__ = ["Amount", "Frame", "Side", "Time", "frame_of", "one_section", "same_place", "section_of", "stems"]

Time = Literal["before", "state", "event", "after"]


class Amount(NamedTuple):
    """A number of a claim; `sign` is that of a bound."""

    sign: str
    value: float
    unit: str


class Side(NamedTuple):
    """One of two opposites that stands in a claim."""

    axis: str
    side: int
    word: str


@dataclass(frozen=True, slots=True)
class Frame:
    """What of a claim is compared; `at` is its place in the row of claims."""

    claim: Claim
    at: int
    subject: tuple[str, ...]  # empty: with nothing to be compared
    name: str  # what the subject names, where it is nothing but a name
    kinds: frozenset[str]  # what it is called beside its name: "the `users` fixture" is no table
    verb: str
    words: frozenset[str]  # said of the subject, opposites by their axis; "~" marks those of a clause that limits it
    scoped: frozenset[str]  # those that stand after a preposition
    denied: bool
    sides: tuple[Side, ...]
    amounts: tuple[Amount, ...]
    time: Time
    firm: bool  # is not hedged, and holds without a choice or an exception
    files: tuple[str, ...]
    section: tuple[str, ...] = ()

    @property
    def text(self) -> str:
        return self.claim.text


_STEMMER = Stemmer.Stemmer("english")
_TOKEN = re.compile(r"`([^`\n]+)`|([^\W\d_][\w'’-]*(?:[./:]\w+)*(?:\(\))?)|([-+]?\d[\w.,:%]*)")
_LEAD = re.compile(
    r"\W*(?:(?:please\s+)?(?:note|keep in mind)\s+that\s+"
    r"|(?:note|known issues?|limitations?|warning|caveats?|summary|results?|tip|important|status|tests?|testing):\s+"
    r"|(?:however|unfortunately|also|additionally|furthermore|moreover|therefore|thus|overall|currently|again|and|but"
    r"|today|first|in summary|in short|as a result|in addition|by the way|importantly|yes|no|so),?\s+)+",
    re.IGNORECASE,
)
_CODE = re.compile(r"`[^`\n]*`|\S*[./_]\w\S*")
_VAGUE = re.compile(
    r"\b(?:either|or|otherwise|except|unless|only|some|sometimes|often|usually|rarely|typically|mostly|partly|partially"
    r"|instead|rather than|but|however|though|other|another|others|fully|completely|entirely|necessarily|temporar\w+"
    r"|neither|nor|too|enough|depending|optionally|per|each|every|would|could|should|might|may|must|can be|ideally"
    r"|alternatively|e\.g|for example|such as|whether|almost|nearly|yet|by itself|alone|directly|just|simply"
    r"|respectively)\b|\bnot (?:all|always|both|the|a|an|just|quite|very|really)\b|\?",
    re.IGNORECASE,
)
_BROKEN = re.compile(
    r"^\W*(?:is|are|was|were|has|have|will|does|do|not|and|or)\b|[:,(…]\W*$|\.\.\.$|^\W*--\s|\S@\S", re.I
)  # no whole one
_LABEL = re.compile(r"[^`:]{1,60}:\s")  # "Before: …", "On Linux: …": of what is said, the label is the half
_SEQUENCE = re.compile(r"\b(?:then|again|later|afterwards?|eventually|meanwhile|at first|once)\b", re.IGNORECASE)
_THE_CHANGE = (
    r"(?:this|the|that|my|our|these)\s+(?:\w+\s+)?(?:change|fix|commit|patch|update|refactor\w*|pr|release|version"
    r"|upgrade|migration|merge)s?"
)
_BEFORE = re.compile(
    rf"\b(?:previously|formerly|used to|originally|initially|earlier|historically|in the past|prior to|until now|so far"
    rf"|old|legacy|before {_THE_CHANGE}|before(?=\W*$)|without {_THE_CHANGE})\b",
    re.IGNORECASE,
)
_AFTER = re.compile(
    rf"\b(?:now|no longer|any ?more|from now on|as of|starting|going forward|new|newly|since"
    rf"|(?:after|with) {_THE_CHANGE})\b",
    re.IGNORECASE,
)
_PAST = re.compile(r"\b(?:was|were|did|had|didn['’]t|wasn['’]t|weren['’]t|hadn['’]t)\b", re.IGNORECASE)
_PRESENT = re.compile(r"\b(?:is|are|isn['’]t|aren['’]t|does|do|doesn['’]t|don['’]t)\b", re.IGNORECASE)
_DONE = re.compile(
    r"\b(?:changed|bumped|upgraded|downgraded|updated|increased|decreased|reduced|raised|lowered|set|switched|migrated"
    r"|replaced|pinned|added|removed|moved|extended|shortened|made|fixed|dropped|deleted)\b"
    r"|^\W*(?:bump|upgrade|downgrade|update|pin|set|change|increase|decrease|reduce|raise|lower|require|use|drop)\b",
    re.IGNORECASE,
)
_LIMIT = re.compile(
    r"\b(?:when|whenever|if|because|since|so|while|although|whereas|which|that|until|where|as|in order|during"
    r"|(?:after|before)(?!\s+\d))\b|,",
    re.IGNORECASE,
)
_PREPOSITION = word_set(
    "on in for under with without via by using at from to against inside outside across between within into of about"
)
_NO = re.compile(r"\b(?:(?i:not|no|never|cannot|nothing)|none)\b|n['’]t\b")  # "None" is a value
_NOT_ONLY = re.compile(r"\bnot (?:only|just|merely)\b|\bno (?:doubt|problem|matter)\b", re.IGNORECASE)
_INDEFINITE = re.compile(r"(?:an?|some|another|one|any|no|many|most|several|few)\s|.*\b(?:that|whether)\b", re.I)
_PLACE = re.compile(
    r"(?:\b(?:in|to|from|into|of|inside|within|at|under)\s+)?(?:\bthe\s+)?(?:\b(?:file|module)\s+)?`?$", re.I
)
_SWITCH = re.compile(r"(?:\b(?:turned|switched)\s+)?\b(on|off)(?=\W*$)")
_FROM_TO = re.compile(r"\s+(?:from\s+\S.*?\s+to|to|from|by|=)\s+[`\d-].*$", re.IGNORECASE)
_FILLER = word_set(
    """set equal equals configured currently already also still explicitly correctly properly successfully actually
    really unfortunately however therefore thus here note indeed finally now longer anymore exactly always value i we
    then existing stays stay remains remain kept defaulted is are has have i've we've been"""
)
_DETERMINERS = word_set("the a an our its this that these those your my their all previously now then both")
# What may stand beside a name without making something else of it.
_KIND_NOUNS = word_set(
    """function functions method class parameter argument option flag field setting variable constant module file helper
    attribute property decorator fixture struct interface enum component hook type command unused deprecated obsolete
    dead old endpoint table column package library script new route key"""
)
_OPENING = re.compile(rf"(?:the\s+)?`[^`\n]+`(?:\s+(?:{'|'.join(sorted(_KIND_NOUNS))}))?(?=\s)", re.I)
# A subject that is nothing but one of these is of whatever was spoken of last.
_ANAPHORIC = word_set(
    """it this that they he she there these those function method class file module code value default result output
    input option flag parameter argument field command script example name number type test change fix commit pr tests
    first second third one other same rest latter former user users you i we data list item object key line section
    note text string return returned the problem issue bug error reason point idea way thing things everything nothing
    something anything each both all some none what which who version update call case step part page following above
    below here program library package project method attribute property variable documentation docs release instance
    feature argument arguments options request response set time size length behavior behaviour process system support
    changes also if when class template element message""")  # fmt: skip
_AXES = word_set("enabled allowed true public sync encrypted required included manual static permanent works immutable")
_BARE = word_set(
    """unsupported unused uncached unsorted unsafe unstable unauthenticated unencrypted uncompressed unlimited
    unavailable unsigned untyped unresolved unvalidated unprotected unlocked unordered unbuffered invalid
    immutable incompatible incomplete inactive incorrect inconsistent insecure invisible non-blocking nonblocking
    stateless nullable"""
)
_TURNED = {"stateless": "stateful", "nullable": "non-nullable"}
_NUMBER = re.compile(r"([<>]?)([-+]?\d+(?:\.\d+)?(?:e[-+]?\d+)?)(?: (\D.*))?")
_WAS = re.compile(r"\b(?:problem|wrong|cause|background|before|bug|symptom|current|broken|issue(?!s))\b")
_MOST_HEDGED = 0.3
_PLAIN_HEADING = word_set(
    """summary changes change details detail testing tests test overview results result notes note what was were changed
    how it works fix fixed the solution description implementation done did i we known issues limitations status
    conclusion in verification caveats next steps and why usage of to here is are have has been made my our this that"""
)


@lru_cache(maxsize=8192)
def _stem(word: str) -> str:
    lower = word.lower().replace("’", "'").removesuffix("'s")
    return str(_STEMMER.stemWord(VERBS.get(lower, lower)))


def _opposites() -> dict[str, tuple[str, int]]:
    """Words of an axis by stem: the axis, and the side of it."""
    chosen = {axis: number for number, word in enumerate(sorted(_AXES)) for axis, _ in SIDES.get(word, ())}
    table = {
        _stem(word): (f"|{chosen[axis]}", side)
        for word, sides in SIDES.items()
        for axis, side in sides
        if axis in chosen and word not in COMMON
    }
    for word in sorted(_BARE):
        base = _TURNED.get(word) or re.sub(r"^(?:un|in|im|non-?)", "", word)
        table |= {_stem(base): (f"|{base}", 0), _stem(word): (f"|{base}", 1)}
    return table


_OPPOSITES = _opposites()


def stems(text: str) -> list[str]:
    """The telling words of a text; what stands in backticks is kept to the letter."""
    found = []
    for match in _TOKEN.finditer(text):
        if match[1]:
            found.append(match[1].strip().partition("(")[0].lstrip("@$"))
        elif match[3]:
            found.append(match[3].rstrip(".,:"))
        elif match[2].lower() not in COMMON and match[2].lower() not in NEGATIONS and not match[2].endswith("n't"):
            found.append(_written(match[2]))
    return found


def _written(word: str) -> str:
    coded = "_" in word or word.endswith("()") or "." in word or re.search(r"[a-z][A-Z]", word)
    return word.removesuffix("()") if coded else _stem(word)


def frame_of(claim: Claim, at: int = 0, section: tuple[str, ...] = ()) -> Frame:
    """The claim as it is compared."""
    lead = _LEAD.match(claim.text)
    text = claim.text[lead.end() :] if lead else claim.text
    own = _subject_text(claim, text)
    subject = _subject(own)
    said = _said(claim, text, own)
    limit = _LIMIT.search(said, 1)
    main, rest = (said[: limit.start()], said[limit.start() :]) if limit else (said, "")
    words, scoped, sides = _main_words(main, claim)
    limits = {f"~{word}" for word in stems(rest)} | ({"~not"} if _NO.search(rest) else set())
    if limit and limit[0] != ",":
        limits.add(f"~{limit[0].lower()}")
    denies = len(_NO.findall(_NOT_ONLY.sub(" ", main)))
    prose = _CODE.sub("x", text)  # what is named in code tells nothing of time
    label = _LABEL.match(text)
    broken = _BROKEN.search(text) or (label and not any(file in label[0] for file in claim.files))
    vague = broken or _VAGUE.search(_NOT_ONLY.sub(" ", prose)) or _SEQUENCE.search(prose) or denies > 1
    return Frame(
        claim=claim,
        at=at,
        subject=subject,
        name=_name(claim, subject),
        kinds=_KIND_STEMS.intersection(stems(own)) - _STATE_STEMS,
        verb=words[0] if words else "",
        words=frozenset((*words, *limits)),
        scoped=scoped | limits,
        denied=denies % 2 == 1,
        sides=sides,
        amounts=_amounts(claim, main),
        time="before" if any(map(_WAS.search, section)) else _time(claim, prose),
        firm=not vague and claim.hedge < _MOST_HEDGED,
        files=claim.files,
        section=section,
    )


def _subject_text(claim: Claim, text: str) -> str:
    """What the claim is about as it is written; a name that opens the claim is it, whatever follows."""
    opening = _OPENING.match(text)
    if opening and claim.type not in CHANGES and claim.type != "exists":
        return opening[0]
    subject = claim.subject
    lead = _LEAD.match(subject)
    subject = subject[lead.end() :] if lead else subject
    subject = re.split(r",|\s(?:which|because|so|when|if|since|while|after|before)\s", subject, maxsplit=1)[0]
    return _FROM_TO.sub("", subject)


def _subject(own: str) -> tuple[str, ...]:
    if _INDEFINITE.match(own):
        return ()
    named = "`" in own
    words = [
        word
        for word in stems(re.sub(r"\b(?:never|not only|always|also|still|already)\b", " ", own))
        if word not in _DETERMINERS and not (named and word in _KIND_STEMS)
    ]
    generic = not named and all(word in _ANAPHORIC_STEMS for word in words)
    if not words or len(words) > 7 or (generic and (len(words) < 2 or words[0] in _SERIAL_STEMS)):
        return ()
    return tuple(words)


_KIND_STEMS = frozenset(map(_stem, _KIND_NOUNS))
_STATE_STEMS = frozenset(map(_stem, ("unused", "deprecated", "obsolete", "dead", "old", "new", "helper", "type")))
_ANAPHORIC_STEMS = frozenset(map(_stem, _ANAPHORIC))
_SERIAL_STEMS = frozenset(map(_stem, ("return", "test", "first", "second", "third", "other", "one", "same", "example")))
_FILLER_STEMS = frozenset((*map(_stem, _FILLER), *_FILLER))


def _name(claim: Claim, subject: tuple[str, ...]) -> str:
    """The symbol or file that the subject is, without anything beside it."""
    if len(subject) != 1:
        return ""
    for mention in claim.mentions:
        if mention.kind in ("symbol", "file") and subject[0] in (mention.value, mention.text):
            return mention.value
    return ""


def _said(claim: Claim, text: str, own: str) -> str:
    """The claim without its subject and without the file that it is in."""
    said = text.replace(own, " ", 1) if own else text
    for file in dict.fromkeys(mention.text for mention in claim.mentions if mention.kind == "file"):
        before, there, after = said.partition(file)
        if there:
            said = f"{_PLACE.sub('', before)} {after.lstrip('`:')}"
    return _SWITCH.sub(lambda found: "enabled" if found[1] == "on" else "disabled", said).strip()


def _main_words(main: str, claim: Claim) -> tuple[list[str], frozenset[str], tuple[Side, ...]]:
    numbers = {part for mention in claim.mentions if mention.kind == "number" for part in mention.text.lower().split()}
    words, scoped, sides, after = [], set(), [], False
    for match in _TOKEN.finditer(main):
        lower = match[0].lower()
        after = after or lower in _PREPOSITION
        for word in stems(match[0]):
            if word in _FILLER_STEMS or lower in numbers or lower.rstrip(".,") in numbers:
                continue
            axis = None if match[1] and word not in ("true", "false") else _OPPOSITES.get(word.lower())
            if axis:
                sides.append(Side(axis[0], axis[1], match[0].strip("`")))
            shown = axis[0] if axis else word
            words.append(shown)
            if after:
                scoped.add(shown)
    return words, frozenset(scoped), tuple(sides)


def _amounts(claim: Claim, main: str) -> tuple[Amount, ...]:
    """The numbers that are said of the subject; of "from 10 to 30" the last."""
    found = [
        Amount(read[1], float(read[2]), read[3] or "")
        for mention in claim.mentions
        if mention.kind == "number" and mention.text in main and f"#{mention.text}" not in main
        if (read := _NUMBER.fullmatch(mention.value))
    ]
    if len(found) > 1 and re.search(r"\bfrom\b.+\bto\b", main, re.IGNORECASE):
        return tuple(found[-1:])
    return tuple(found)


def _time(claim: Claim, text: str) -> Time:
    if _BEFORE.search(text):
        return "before"
    if _AFTER.search(text):
        return "after"
    done = _DONE.search(text) if claim.type not in CHANGES else None
    if (claim.type in CHANGES or done) and not _PRESENT.search(text[: done.start()] if done else text):
        return "event"
    return "before" if _PAST.search(text) and claim.type != "test_result" else "state"


def same_place(left: Sequence[str], right: Sequence[str]) -> bool:
    """Whether both may be in one file: one tells none, or one path is the end of the other."""
    if not left or not right:
        return True
    return any(a == b or a.endswith(f"/{b}") or b.endswith(f"/{a}") for a in left for b in right)


def section_of(text: str, claims: Sequence[Claim]) -> dict[int, tuple[str, ...]]:
    """The telling words of each heading that a claim stands under, by where the claim begins."""
    found: dict[int, tuple[str, ...]] = {}
    shown: dict[Span, str] = {}
    starts = sorted({claim.start for claim in claims})
    at = 0
    for passage in read_passages(text):
        while at < len(starts) and starts[at] < passage.end:
            above = [span for span in passage.context if not span[0] <= starts[at] < span[1]]
            shown |= {span: _heading(text[slice(*span)]) for span in above if span not in shown}
            found[starts[at]] = tuple(shown[span] for span in above if shown[span])
            at += 1
    return found


def one_section(left: tuple[str, ...], right: tuple[str, ...]) -> bool:
    """Whether one stands right under what the other stands under, or both under the same."""
    return all(a == b for a, b in zip(left, right, strict=False))


def _heading(line: str) -> str:
    """A heading without the words that limit nothing; a long line above a list is a sentence."""
    words = [word for word in re.findall(r"[\w.]+", line.lower()) if word not in _PLAIN_HEADING]
    return " ".join(words) if len(words) <= 8 else ""
