"""A frame is a claim prepared for comparison: its subject, what it says about it, when, and how firmly. Pure.

Two claims exclude each other only if nearly everything in them is equal, so a frame separates what must be equal from
what may differ: the subject, the words, the numbers, the sides of opposites, the negation. A claim with an unclear
subject gets none and is not compared.
"""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import dataclass
from functools import lru_cache
from typing import Literal, NamedTuple

import Stemmer

from ....core.memory.comparison.opposites import COMMON, NEGATIONS, SIDES, VERBS
from ..claims.claims import Claim
from ..claims.passages import Span, read_passages
from ..claims.verbs import CHANGES
from ..words import load_pattern, load_words

__all__ = [
    "Amount", "ClaimFrame", "FrameConflict", "FramePair", "Kind", "build_frame", "find_sections", "same_place",
    "same_section", "stems",
]  # fmt: skip

Time = Literal["before", "state", "event", "after"]


class Amount(NamedTuple):
    """A number of a claim; `sign` is that of a bound."""

    sign: str
    value: float
    unit: str


class Side(NamedTuple):
    """A word of a claim that is one of two opposites."""

    axis: str
    side: int
    word: str


@dataclass(frozen=True, slots=True)
class ClaimFrame:
    """`at` is the position of the claim in the text."""

    claim: Claim
    at: int
    subject: tuple[str, ...]  # empty for a claim that is not compared
    name: str  # the symbol or file, if the subject is nothing else
    kinds: frozenset[str]  # the noun beside the name: "the `users` fixture" is no table
    verb: str
    words: frozenset[str]  # of the statement, opposites by their axis; "~" marks those of a limiting clause
    scoped: frozenset[str]  # those after a preposition
    denied: bool
    sides: tuple[Side, ...]
    amounts: tuple[Amount, ...]
    time: Time
    firm: bool  # neither hedged nor limited
    files: tuple[str, ...]
    section: tuple[str, ...] = ()

    @property
    def text(self) -> str:
        return self.claim.text


_STEMMER = Stemmer.Stemmer("english")
_TOKEN = re.compile(r"`([^`\n]+)`|([^\W\d_][\w'’-]*(?:[./:]\w+)*(?:\(\))?)|([-+]?\d[\w.,:%]*)")
_LEAD = load_pattern("contradictions", "lead")
_CODE = re.compile(r"`[^`\n]*`|(?<![^\s`])\S*[./_]\w\S*")
_VAGUE = load_pattern("contradictions", "vague")
_BROKEN = load_pattern("contradictions", "broken")  # an incomplete sentence
_LABEL = re.compile(r"[^`:]{1,60}:\s")  # "Before: …", "On Linux: …": the label is part of the statement
_SEQUENCE = re.compile(r"\b(?:then|again|later|afterwards?|eventually|meanwhile|at first|once)\b", re.I)
_THE_CHANGE = (
    r"(?:this|the|that|my|our|these)\s+(?:\w+\s+)?(?:change|fix|commit|patch|update|refactor\w*|pr|release|version"
    r"|upgrade|migration|merge)s?"
)
_BEFORE = re.compile(
    rf"\b(?:previously|formerly|used to|originally|initially|earlier|historically|in the past|prior to|until now|so far"
    rf"|old|legacy|before {_THE_CHANGE}|before(?=\W*$)|without {_THE_CHANGE})\b",
    re.I,
)
_AFTER = re.compile(
    rf"\b(?:now|no longer|any ?more|from now on|as of|starting|going forward|new|newly|since"
    rf"|(?:after|with) {_THE_CHANGE})\b",
    re.I,
)
_PAST = re.compile(r"\b(?:was|were|did|had|didn['’]t|wasn['’]t|weren['’]t|hadn['’]t)\b", re.I)
_PRESENT = re.compile(r"\b(?:is|are|isn['’]t|aren['’]t|does|do|doesn['’]t|don['’]t)\b", re.I)
_DONE = load_pattern("contradictions", "done")
_LIMIT = load_pattern("contradictions", "limit")
_PREPOSITION = load_words("contradictions", "prepositions")
_NO = re.compile(r"\b(?:(?i:not|no|never|cannot|nothing)|none)\b|n['’]t\b")  # "None" is a value
_NOT_ONLY = re.compile(r"\bnot (?:only|just|merely)\b|\bno (?:doubt|problem|matter)\b", re.I)
_INDEFINITE = re.compile(r"(?:an?|some|another|one|any|no|many|most|several|few)\s|.*\b(?:that|whether)\b", re.I)
_PLACE = load_pattern("contradictions", "place")
_SWITCH = re.compile(r"(?:\b(?:turned|switched)\s+)?\b(on|off)(?=\W*$)")
_FROM_TO = re.compile(r"(?<!\s)\s++(?:from\s+\S.*?\s+to|to|from|by|=)\s+[`\d-].*$", re.I)
_FILLER = load_words("contradictions", "filler")
_DETERMINERS = load_words("contradictions", "determiners")
# Nouns beside a name that do not change what it names.
_KIND_NOUNS = load_words("contradictions", "kind_nouns")
_OPENING = re.compile(rf"(?:the\s+)?`[^`\n]+`(?:\s+(?:{'|'.join(sorted(_KIND_NOUNS))}))?(?=\s)", re.I)
# A subject of only these words refers to something mentioned before.
_ANAPHORIC = load_words("contradictions", "anaphoric")
_AXES = load_words("contradictions", "axes")
_BARE = load_words("contradictions", "negated_forms")
_TURNED = {"stateless": "stateful", "nullable": "non-nullable"}
_NUMBER = re.compile(r"([<>]?)([-+]?\d+(?:\.\d+)?(?:e[-+]?\d+)?)(?: (\D.*))?")
_WAS = re.compile(r"\b(?:problem|wrong|cause|background|before|bug|symptom|current|broken|issue(?!s))\b")
_MOST_HEDGED = 0.3
_PLAIN_HEADING = load_words("contradictions", "plain_headings")


@lru_cache(maxsize=8192)
def _stem(word: str) -> str:
    lower = word.lower().replace("’", "'").removesuffix("'s")
    return str(_STEMMER.stemWord(VERBS.get(lower, lower)))


def _opposites() -> dict[str, tuple[str, int]]:
    """Opposites by stem: their axis, and the side of it."""
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
    """The stems of a text's words without common ones; names in backticks stay as they are."""
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


def build_frame(claim: Claim, at: int = 0, section: tuple[str, ...] = ()) -> ClaimFrame:
    """Prepare a claim for comparison."""
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
    prose = _CODE.sub("x", text)  # words inside names say nothing about time
    label = _LABEL.match(text)
    broken = _BROKEN.search(text) or (label and not any(file in label[0] for file in claim.files))
    vague = broken or _VAGUE.search(_NOT_ONLY.sub(" ", prose)) or _SEQUENCE.search(prose) or denies > 1
    return ClaimFrame(
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
    """The subject as written; a name at the start of the claim is its subject."""
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
    """The symbol or file, if the subject is nothing else."""
    if len(subject) != 1:
        return ""
    for mention in claim.mentions:
        if mention.kind in ("symbol", "file") and subject[0] in (mention.value, mention.text):
            return mention.value
    return ""


def _said(claim: Claim, text: str, own: str) -> str:
    """The claim without its subject and its file."""
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
    """The numbers of the statement; of "from 10 to 30" the last."""
    found = [
        Amount(read[1], float(read[2]), read[3] or "")
        for mention in claim.mentions
        if mention.kind == "number" and mention.text in main and f"#{mention.text}" not in main
        if (read := _NUMBER.fullmatch(mention.value))
    ]
    if len(found) > 1 and re.search(r"\bfrom\b.+\bto\b", main, re.I):
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
    """Whether both can be in one file: one names none, or one path ends in the other."""
    if not left or not right:
        return True
    return any(a == b or a.endswith(f"/{b}") or b.endswith(f"/{a}") for a in left for b in right)


def find_sections(text: str, claims: Sequence[Claim]) -> dict[int, tuple[str, ...]]:
    """The words of each heading above a claim, by the offset of the claim."""
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


def same_section(left: tuple[str, ...], right: tuple[str, ...]) -> bool:
    """Whether the headings of one start with those of the other."""
    return all(a == b for a, b in zip(left, right, strict=False))


def _heading(line: str) -> str:
    """The distinctive words of a heading; "" for a long line above a list, which is a sentence."""
    words = [word for word in re.findall(r"[\w.]+", line.lower()) if word not in _PLAIN_HEADING]
    return " ".join(words) if len(words) <= 8 else ""


# Two frames side by side

Kind = Literal["polarity", "number", "version", "order", "place", "existence", "tests"]
_BY_US = re.compile(r"\b(?:I|we)\b", re.I)


class FrameConflict(NamedTuple):
    """Why two claims exclude each other."""

    kind: Kind
    reason: str


class FramePair(NamedTuple):
    """`first` comes first in the text, or is older; `apart` if the claims are from two texts."""

    first: ClaimFrame
    second: ClaimFrame
    apart: bool

    @property
    def same_time(self) -> bool:
        """Whether both describe the same time: the first may describe how things were before."""
        if "before" in (self.first.time, self.second.time):
            return False
        return self.first.time != "state" or self.second.time == "state"

    @property
    def same_state(self) -> bool:
        """Whether at least one describes a state; of two changes, one may have followed the other."""
        return self.same_time and not self.first.time == self.second.time == "event"

    @property
    def contradicts_in_order(self) -> bool:
        """Whether the second denies the first, and does not only describe what followed."""
        if self.first.time == self.second.time == "event":
            # "X was not updated. I updated X": first what was missing, then that it was done.
            return self.apart or not self.first.denied or _BY_US.search(self.first.text) is not None
        return self.same_time
