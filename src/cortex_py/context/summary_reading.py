"""Reading: what a sentence of a turn is about, and whether two sentences speak of the same thing.

`read` puts a sentence into a section of the summary by its box, its label, the heading above it and the words in it; a
sentence without a cue belongs nowhere. What was wanted, asked or blocked is compared with what came of it by content
words.
"""

from __future__ import annotations

import math
import re
import unicodedata
from collections.abc import Sequence
from functools import lru_cache
from typing import NamedTuple

from ..memory.terms import query_terms
from . import summary_cues as cues
from .sentences import Sentence
from .summary_cues import ANSWER, BLOCKERS, DECISIONS, DONE, GOAL, NEXT, OPEN

__all__ = [
    "Cue",
    "agrees",
    "all_words",
    "awaited",
    "content_words",
    "hedges",
    "instructs",
    "read",
    "replies",
    "resolves",
    "shares",
    "takes_back",
    "touches",
    "undone",
]

_GENERIC = frozenset(
    term[:6] for word in re.findall(r"\w+", f"{cues.MAKE} {cues.MADE} {cues.COMMON}") for term in query_terms(word)
)
_NOT_WORD = re.compile(r"[\W_]+")


class Cue(NamedTuple):
    """The section of a sentence, how plainly it says so (1 to 3), and the sentence without its label."""

    section: str
    strength: int
    text: str


def instructs(text: str) -> bool:
    """Whether a text speaks to the model as one who commands it, which no memory of work has reason to do."""
    return bool(cues.INSTRUCTS.search(cues.INVISIBLE.sub("", unicodedata.normalize("NFKC", text))))


def agrees(content: str) -> bool:
    """Whether a turn opens with yes, no or another word that only answers."""
    return bool(cues.AGREES.match(content.lstrip()[:40]))


def replies(said: Sequence[Sentence], role: str | None) -> bool:
    """Whether a turn answers what was asked right before it.

    A person does who tells something and neither asks, commands nor doubts. The assistant does whose first sentence
    makes a statement; where it opens with a report or a plan, it may have passed over the question.
    """
    telling = [sentence for sentence in said if content_words(sentence.text)]
    if not telling or role not in ("user", "assistant"):
        return False
    cue = read(telling[0], role)
    if role == "assistant":
        return cue is None and not any(hedges(sentence.text) for sentence in telling[:2])
    return (cue is None or cue.section != GOAL) and not any(hedges(sentence.text) for sentence in said)


def read(sentence: Sentence, role: str | None) -> Cue | None:
    """Where a sentence belongs, or None. It matters who speaks: wishes are a person's, reports mostly the agent's."""
    text = sentence.text
    if sentence.box is not None:
        open_box = OPEN if text.endswith(("?", "？")) else NEXT
        return Cue(DONE if sentence.box else open_box, 3, text)
    if cues.COMMIT.match(text):
        return Cue(DONE, 2, text)
    label = cues.LABEL.match(text)
    if label and (section := _headed(label[1])):
        held_up = section == NEXT and cues.BLOCKED.search(text)
        return Cue(BLOCKERS if held_up else section, 3, text[label.end() :])
    if sentence.heading and (section := _headed(sentence.heading)) and section != ANSWER:
        asked = section in (NEXT, BLOCKERS) and text.endswith(("?", "？"))
        return Cue(OPEN if asked else section, 3 if sentence.listed else 2, text)
    section, strength = _by_words(text, role)
    if section == NEXT and (lead := cues.LEADING.match(text)):
        text = text[lead.end() :]
    return Cue(section, strength, text) if section else None


def _headed(heading: str) -> str:
    heading = heading.strip(" *_:：-").casefold()
    return next((section for section, pattern in cues.HEADED if pattern.fullmatch(heading)), "")


def _by_words(text: str, role: str | None) -> tuple[str, int]:
    """The section that the words alone speak for; what is said most plainly is looked for first."""
    user, text = role == "user", _straight(text)
    ahead = bool(cues.STRONGLY_AHEAD.search(text))
    if text.rstrip("\"'”’)*_ ").endswith(("?", "？")):
        return _asked(text, user)
    if cues.ASK_NEXT.match(text):
        return NEXT, 2
    if cues.UNDECIDED.search(text) and not cues.MADE_FIRST.match(text):
        return OPEN, 2
    if cues.MADE_FIRST.match(text) and not cues.REVERSED.search(text):
        return DONE, 1 if user else 2
    if (strength := _deciding(text, user)) and (strength == 3 or not ahead):
        return DECISIONS, strength
    if cues.BLOCKED.search(text) and not cues.UNBLOCKED.search(text):
        return BLOCKERS, 2
    if not ahead and _made(text) and (not user or _reporting(text)):
        return DONE, 1
    if ahead or (not user and cues.AHEAD.search(text)):
        return NEXT, 2 if ahead else 1
    if role != "assistant" and (strength := _wishing(text, user)):
        return GOAL, strength
    return "", 0


def _asked(text: str, user: bool) -> tuple[str, int]:
    if user and cues.REQUEST.search(text):
        return GOAL, 2
    words = content_words(text)
    if not words or (cues.COURTESY.search(text) and len(words) < 4):
        return "", 0
    return OPEN, 2


def _deciding(text: str, user: bool) -> int:
    maybe = bool(cues.MAYBE.search(text))
    if cues.DECIDED.search(text):
        return 1 if maybe and not re.search(r"(?i)decided|agreed|决定|決定", text) else 3
    if user and (cues.CHOICE.match(text) or cues.IT_IS.match(text) or (cues.LETS.match(text) and not maybe)):
        return 2
    return 2 if cues.REVERSED.search(text) and not maybe else 0


def _made(text: str) -> bool:
    return bool(cues.MADE_LATER.search(text) or cues.MADE_LAST.match(text)) and not cues.NOT_DONE.search(text)


def _reporting(text: str) -> bool:
    """Whether a person tells what came about, and not how things are or should be."""
    return bool(cues.RESOLVED.search(text) or cues.FIRST_PERSON.search(text)) and not cues.WISH.search(text)


def _wishing(text: str, user: bool) -> int:
    if cues.GOAL_ITSELF.search(text):
        return 3
    return (2 if cues.WISH.search(text) or cues.COMMAND.match(text) else 0) if user else 0


@lru_cache(maxsize=4096)
def all_words(text: str) -> frozenset[str]:
    """The terms of a sentence, cut so that endings matter less."""
    # Six letters tell most words apart, and make one of "configure" and "configuration" in any language.
    found = (term[:6] if term.isalpha() else term for term in query_terms(_NOT_WORD.sub(" ", text)))
    return frozenset(term for term in found if len(term) > 1 or not term.isascii())


@lru_cache(maxsize=4096)
def content_words(text: str) -> frozenset[str]:
    """What a sentence is about: its words without those of any report."""
    return all_words(text) - _GENERIC


def awaited(text: str) -> frozenset[str]:
    """The content words of what a blocker waits for, where it says so."""
    match = cues.AWAITED.search(text)
    return content_words(match["what"]) if match else frozenset()


@lru_cache(maxsize=4096)
def undone(text: str) -> frozenset[str]:
    """The content words of what a sentence gives up: "Redis" in "Postgres instead of Redis"."""
    found: frozenset[str] = frozenset()
    for pattern in cues.UNDO:
        for match in pattern.finditer(text):
            old = next(part for part in match.groups() if part)
            found |= content_words(cues.CLAUSE_END.split(old, maxsplit=1)[0])
    return found


def resolves(text: str) -> bool:
    """Whether a sentence reports that something stands in the way no more."""
    return bool(cues.RESOLVED.search(_straight(text)))


def shares(wanted: frozenset[str], words: frozenset[str], ratio: float) -> bool:
    """Whether enough of the wanted words are met: two at least, unless there is but one."""
    least = max(min(2, len(wanted)), math.ceil(ratio * len(wanted)))
    return 0 < least <= len(wanted & words)


def touches(wanted: frozenset[str], words: frozenset[str]) -> bool:
    """As `shares`, for a sentence that says by itself that something is over: a third is enough."""
    return len(wanted & words) * 3 >= len(wanted) > 0


def takes_back(text: str) -> bool:
    """Whether a sentence reports that something was done and is so no more."""
    return bool(cues.TAKEN_BACK.search(text))


def hedges(text: str) -> bool:
    """Whether a sentence leaves open what it speaks of."""
    return bool(cues.UNDECIDED.search(_straight(text))) or text.rstrip("\"'”’)*_ ").endswith(("?", "？"))


def _straight(text: str) -> str:
    """The text with the apostrophes that the cues are written with."""
    return text.replace("’", "'")
