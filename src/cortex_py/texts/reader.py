"""Classifies the sentences of a turn, and compares sentences by their content words.

`read` assigns a sentence to a section of the summary by its checkbox, its label, the heading above it and its words. A
sentence without a cue belongs to no section.
"""

from __future__ import annotations

import json
import math
import re
from collections.abc import Sequence
from functools import lru_cache
from pathlib import Path
from typing import NamedTuple

from ..core.memory.text import query_terms
from ..core.security.quoting import instructs
from .sentences import Sentence

__all__ = [
    "Cue", "abandoned_words", "all_words", "awaited_words", "chooses", "content_words", "counts", "hedges", "instructs",
    "learns", "read", "refused_words", "refuses", "replies", "resolves", "shares", "takes_all_back", "takes_back",
    "touches", "troubles",
]  # fmt: skip

# The words of the cues are in `cues.json`, as alternatives of regular expressions: English has the most; German,
# French, Spanish, Chinese, Japanese and Korean have the commonest.

SECTIONS = ("goal", "decisions", "done", "blockers", "open_questions", "next_step")
GOAL, DECISIONS, DONE, BLOCKERS, OPEN, NEXT = SECTIONS
RECENT = "recent"
UNVERIFIED = "unverified"  # what the check of a turn rejected
ANSWER = "answer"  # an "A:" line: nothing to show, but it settles the question before it

_DATA = json.loads(Path(__file__).with_name("cues.json").read_text("utf-8"))

MAKE = "|".join(_DATA["words"]["make"])
MADE = "|".join(_DATA["words"]["made"])
# Words that most reports share and that therefore say nothing about what is reported.
COMMON: list[str] = _DATA["words"]["common"]

_IRREGULAR = "|".join(_DATA["words"]["irregular"])
# A past form that opens a sentence reports something. Those in `not_made` only look like one, or report no work.
_NOT_MADE = "|".join(_DATA["words"]["not_made"])
_PARTS = {
    "%make%": MAKE,
    "%made%": MADE,
    "%any_made%": rf"(?:{MADE}|{_IRREGULAR}|(?!(?:{_NOT_MADE})\b)[a-z]{{2,}}ed)",
    # What stands after a verb: "Prepared statements break" opens with no report, "Prepared the release" does.
    "%object%": _DATA["object"],
}


def _any_case(pattern: str) -> re.Pattern[str]:
    for name, words in _PARTS.items():
        pattern = pattern.replace(name, words)
    return re.compile(pattern, re.IGNORECASE)


def _cue(name: str) -> re.Pattern[str]:
    """The words of a cue between word boundaries; scripts written without spaces have none."""
    cue = _DATA["cues"][name]
    return _any_case("|".join([rf"(?<!\w)(?:{'|'.join(cue['words'])})(?!\w)", *cue.get("unspaced", ())]))


HEADED = [(section, _any_case(f"(?:{'|'.join(words)})")) for section, words in _DATA["headings"].items()]
LABEL = re.compile(
    r"[*_]{0,3}([^\W\d_][\w '’/-]{0,28}?)[*_]{0,3} ?(?:\([^)]{1,20}\) ?)?[*_]{0,3}[:：][*_]{0,3}\s*(?=\S)"
)
COMMIT = re.compile(
    r"(?:feat|fix|docs|refactor|test|tests|perf|chore|build|ci|style|revert)(?:\([\w ./-]{1,30}\))?!?: (?=\S)"
)

# Questions and wishes
REQUEST = _cue("request")
UNDECIDED = _cue("undecided")
WISH = _cue("wish")
COMMAND = _any_case(_DATA["patterns"]["command"])

# Decisions
DECIDED = _cue("decided")
REVERSED = _cue("reversed")
MAYBE = _cue("maybe")
CHOICE = _any_case(_DATA["patterns"]["choice"])
IT_IS = _any_case(_DATA["patterns"]["it_is"])
LETS = _any_case(_DATA["patterns"]["lets"])
ALTERNATIVES = _any_case(_DATA["patterns"]["alternatives"])
UNDO = [_any_case(pattern) for pattern in _DATA["undo"]]
REFUSED = [_any_case(pattern) for pattern in _DATA["refused"]]
NOTHING_OF_IT = _any_case(_DATA["patterns"]["nothing_of_it"])
BACK_AGAIN = _any_case(_DATA["patterns"]["back_again"])
CLAUSE_END = _any_case(_DATA["patterns"]["clause_end"])

# Obstacles
BLOCKED = _cue("blocked")
UNBLOCKED = _cue("unblocked")
TAKEN_BACK = _cue("taken_back")
RESOLVED = _cue("resolved")
AWAITED = _any_case(_DATA["patterns"]["awaited"])
COMPLAINT = _any_case(rf"(?<!\w)(?:{'|'.join(_DATA['complaint'])})(?!\w)")
LEARNED = _any_case(rf"(?<!\w)(?:{'|'.join(_DATA['learned'])})(?!\w)")
ADMISSION = _any_case(rf"(?<!\w)(?:{'|'.join(_DATA['admission'])})(?!\w)")

OPTIONS = _any_case(r"(?:we (?:can|could) )?either\b.{1,200}\bor\b")

# Replies: a turn of thanks and plans answers no question.
ASKED = _any_case(_DATA["asked"])
_THANKS = "|".join(_DATA["replies"]["thanks"])
THANKS = _any_case(rf"(?:{_THANKS})[.!,;: ]*")
ACKNOWLEDGED = _any_case(_DATA["patterns"]["acknowledged"])
LEADING_THANKS = _any_case(rf"(?:(?:oh|and|ah)[, ]+)?(?:(?:{_THANKS})[,.!;]+\s*)+")
PLAN = _any_case(rf"(?:{'|'.join(_DATA['replies']['plan'])})")
_COUNTED = re.compile(r"(?<![\w.])(\d[\d.,]*|two|three|four|five|six|seven|eight|nine|ten|twelve) ([a-z]{3,})", re.I)

# Plans
AHEAD = _cue("ahead")
STRONGLY_AHEAD = _cue("strongly_ahead")

# Reports
NOT_DONE = _cue("not_done")
MADE_FIRST = _any_case(_DATA["patterns"]["made_first"])
MADE_LAST = _any_case(_DATA["patterns"]["made_last"])
MADE_LATER = _cue("made_later")

_GENERIC = frozenset(
    term[:6] for word in re.findall(r"\w+", f"{MAKE} {MADE} {' '.join(COMMON)}") for term in query_terms(word)
)
_NOT_WORD = re.compile(r"[\W_]+")


class Cue(NamedTuple):
    """The section of a sentence, the strength of the cue (1 to 3), and the sentence without its label."""

    section: str
    strength: int
    text: str


def replies(said: Sequence[Sentence], role: str | None) -> bool:
    """Whether a turn answers what was asked right before it.

    A person's turn does if it states something and neither asks, commands nor doubts. The assistant's turn does if its
    first sentence makes a statement; one that opens with a report or a plan may have ignored the question.
    """
    passes = _puts_off if role == "user" else _acknowledges
    telling = [sentence for sentence in said if content_words(sentence.text) and not passes(sentence.text)]
    if not telling or role not in ("user", "assistant"):
        return False
    cue = read(telling[0], role)
    if role == "assistant":
        return cue is None and not any(hedges(sentence.text) for sentence in telling[:2])
    return (cue is None or cue.section != GOAL) and not any(hedges(sentence.text) for sentence in said)


def _puts_off(text: str) -> bool:
    """Whether a sentence only thanks, or says what its speaker will do."""
    rest = LEADING_THANKS.sub("", _straight(text), count=1)
    return not rest or bool(THANKS.fullmatch(rest) or PLAN.match(rest))


def _acknowledges(text: str) -> bool:
    return bool(ACKNOWLEDGED.fullmatch(text))


def chooses(text: str, said_before: frozenset[str]) -> bool:
    """Whether a person's reply takes up what was just said to them, and neither asks nor reports a problem."""
    text = LEADING_THANKS.sub("", _straight(text), count=1)
    if hedges(text) or PLAN.match(text) or COMPLAINT.search(text) or RESOLVED.search(text):
        return False
    return bool(content_words(text) & said_before)


def counts(text: str) -> dict[str, str]:
    """The things that a sentence counts, by stem, with their number."""
    found = {}
    for number, thing in _COUNTED.findall(text):
        for word in content_words(thing):
            found[word] = number.casefold()
    return found


def read(sentence: Sentence, role: str | None) -> Cue | None:
    """The cue of a sentence, or None. The speaker matters: wishes are a person's, reports mostly the agent's."""
    text = sentence.text
    if sentence.box is not None:
        open_box = OPEN if text.endswith(("?", "？")) else NEXT
        return Cue(DONE if sentence.box else open_box, 3, text)
    if COMMIT.match(text):
        return Cue(DONE, 2, text)
    label = LABEL.match(text)
    if label and (section := _headed(label[1])):
        held_up = section == NEXT and BLOCKED.search(text)
        return Cue(BLOCKERS if held_up else section, 3, text[label.end() :])
    if sentence.heading and (section := _headed(sentence.heading)) and section != ANSWER:
        asked = section in (NEXT, BLOCKERS) and text.endswith(("?", "？"))
        return Cue(OPEN if asked else section, 3 if sentence.listed else 2, text)
    section, strength = _by_words(text, role)
    return Cue(section, strength, text) if section else None


def _headed(heading: str) -> str:
    heading = heading.strip(" *_:：-").casefold()
    return next((section for section, pattern in HEADED if pattern.fullmatch(heading)), "")


def _by_words(text: str, role: str | None) -> tuple[str, int]:
    """The section and strength by the words alone; the plainest cues are tried first."""
    user, text = role == "user", _straight(text)
    ahead = bool(STRONGLY_AHEAD.search(text))
    if text.rstrip("\"'”’)*_ ").endswith(("?", "？")) or (user and ASKED.match(text)):
        return _asked(text, user)
    if UNDECIDED.search(text) and not MADE_FIRST.match(text):
        return OPEN, 2
    if not user and (ADMISSION.search(text) or OPTIONS.match(text)):
        return "", 0
    if role == "assistant" and REVERSED.search(text) and NOT_DONE.search(text) and not DECIDED.search(text):
        return "", 0
    if MADE_FIRST.match(text) and (not user or not REVERSED.search(text)):
        return DONE, 1 if user else 2
    if not (user or ahead) and REVERSED.search(text) and not (DECIDED.search(text) or NOT_DONE.search(text)):
        return DONE, 1
    if (strength := _deciding(text, user)) and (strength == 3 or not ahead):
        return DECISIONS, strength
    if BLOCKED.search(text) and not UNBLOCKED.search(text):
        return BLOCKERS, 2
    if not ahead and not user and _made(text):
        return DONE, 1
    if ahead or (not user and AHEAD.search(text)):
        return NEXT, 2 if ahead else 1
    if user and (WISH.search(text) or COMMAND.match(text)):
        return GOAL, 2
    return "", 0


def _asked(text: str, user: bool) -> tuple[str, int]:
    if user and REQUEST.search(text):
        return GOAL, 2
    return (OPEN, 2) if content_words(text) else ("", 0)


def _deciding(text: str, user: bool) -> int:
    maybe = bool(MAYBE.search(text))
    if DECIDED.search(text):
        return 1 if maybe and not re.search(r"(?i)decided|agreed|决定|決定", text) else 3
    if user and (CHOICE.match(text) or IT_IS.match(text) or (LETS.match(text) and not maybe)):
        return 2
    return 2 if REVERSED.search(text) and not maybe else 0


def _made(text: str) -> bool:
    return bool(MADE_LATER.search(text) or MADE_LAST.match(text)) and not NOT_DONE.search(text)


@lru_cache(maxsize=4096)
def all_words(text: str) -> frozenset[str]:
    """The terms of a sentence, shortened so that endings matter less."""
    # Six letters distinguish most words, and unite "configure" and "configuration" in any language.
    found = (term[:6] if term.isalpha() else term for term in query_terms(_NOT_WORD.sub(" ", text)))
    return frozenset(term for term in found if len(term) > 1 or not term.isascii())


@lru_cache(maxsize=4096)
def content_words(text: str) -> frozenset[str]:
    """The terms of a sentence without those that most reports share."""
    return all_words(text) - _GENERIC


def awaited_words(text: str) -> frozenset[str]:
    """The content words of what a blocker waits for, if it names it."""
    match = AWAITED.search(text)
    return content_words(match["what"]) if match else frozenset()


@lru_cache(maxsize=4096)
def abandoned_words(text: str) -> frozenset[str]:
    """The content words of what a sentence gives up: "Redis" in "Postgres instead of Redis"."""
    return _named_by(UNDO, text)


def refused_words(text: str) -> frozenset[str]:
    """The content words of what a person's sentence refuses: "Celery" in "no celery please"."""
    return _named_by([*UNDO, *REFUSED], _straight(text))


def refuses(text: str) -> bool:
    """Whether a person's sentence refuses what was proposed, and says nothing else."""
    text = _straight(text)
    return bool(
        NOTHING_OF_IT.fullmatch(text) or takes_all_back(text) or REFUSED[0].match(text) or REFUSED[1].search(text)
    )


def takes_all_back(text: str) -> bool:
    """Whether a person's sentence asks to undo what was just done, without naming it."""
    return bool(BACK_AGAIN.fullmatch(_straight(text)))


def troubles(text: str) -> bool:
    """Whether a sentence reports something that does not work."""
    return bool(BLOCKED.search(text) or COMPLAINT.search(_straight(text)))


def _named_by(patterns: Sequence[re.Pattern[str]], text: str) -> frozenset[str]:
    found: frozenset[str] = frozenset()
    for pattern in patterns:
        for match in pattern.finditer(text):
            old = next(part for part in match.groups() if part)
            found |= content_words(CLAUSE_END.split(old, maxsplit=1)[0])
    return found


def resolves(text: str) -> bool:
    """Whether a sentence reports that an obstacle is gone."""
    return bool(RESOLVED.search(_straight(text)))


def shares(wanted: frozenset[str], words: frozenset[str], ratio: float) -> bool:
    """Whether enough of the wanted words occur: at least two, unless there is only one."""
    least = max(min(2, len(wanted)), math.ceil(ratio * len(wanted)))
    return 0 < least <= len(wanted & words)


def touches(wanted: frozenset[str], words: frozenset[str]) -> bool:
    """As `shares`, for a sentence that itself says something is over: a third is enough."""
    return len(wanted & words) * 3 >= len(wanted) > 0


def learns(text: str) -> bool:
    """Whether a sentence passes on what somebody else answered."""
    return bool(LEARNED.search(_straight(text)))


def takes_back(text: str) -> bool:
    """Whether a sentence reports that something was undone."""
    return bool(TAKEN_BACK.search(text))


def hedges(text: str) -> bool:
    """Whether a sentence leaves its subject open."""
    return bool(UNDECIDED.search(_straight(text)) or ASKED.match(text)) or text.rstrip("\"'”’)*_ ").endswith(
        ("?", "？")
    )


def _straight(text: str) -> str:
    """The text with straight apostrophes, as the cues have."""
    return text.replace("’", "'")
