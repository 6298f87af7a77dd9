"""Whether a newer note says that what an older one states has been given up: "no longer", "instead of", "switched to".

The newer note names in one sentence what was given up. The older one is outdated only if it states just that: it
contains the words, denies and asks nothing, and most of its other words stand in that sentence too. What the project
gave up in one place ("carts moved from PostgreSQL") it may go on to use in another. English only.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence

from ...lazy import regex
from .conflicts import only_other_name
from .likeness import differences
from .opposites import LIGHT
from .statements import Statement, read_statement
from .synonyms import with_synonyms

__all__ = ["given_up"]

# Found in linear time; only what has it is read more closely.
_CUE = regex(
    r"\b(?:no longer|any ?more|instead of|in place of|replaced"
    r"|(?:switched|moved|migrated|changed)\b[^.!?\n]{0,200}?\b(?:from|to))\b",
    re.IGNORECASE,
)
# Bounded, as all that follows, so that no text takes long.
_PHRASE = r"(?:[^.,;:!?()\n]|\.(?=\S)){1,80}?"
_END = (
    r"(?=[,;:!?()\n]|\.(?:\s|\Z)|\Z"
    r"|\s(?:because|since|so|but|and|for|now|which|that|in|on|at|to|until|after|before|by|anymore)\b)"
)
_CHANGED = r"(?<!being\s)(?:switched|moved|migrated|changed)"
_GIVEN_UP = regex(
    rf"\b(?:instead|in\splace)\sof\s(?!just\b|only\b)(?P<other>{_PHRASE}){_END}"
    rf"|\b{_CHANGED}\b(?:\s[\w-]+){{0,4}}?\sfrom\s(?P<former>{_PHRASE})\s(?:over\s)?to\b"
    rf"|\breplaced\s(?P<old>{_PHRASE})\s(?:with|by)\b"
    rf"|(?:^|(?<=[.,;:!?]\s))(?P<gone>{_PHRASE})\s(?:is|are|was|were|got|has\sbeen|have\sbeen)\s(?:now\s)?replaced\s(?:with|by)\b",
    re.IGNORECASE,
)
_DENIED = regex(
    rf"(?P<before>{_PHRASE})??\s?\b(?:no\slonger|(?:not|never|n[o']t|\w+n't)\b(?P<inner>{_PHRASE})\sany\s?more)\b"
    rf"(?P<after>{_PHRASE})??(?=[,;:!?()\n]|\.(?:\s|\Z)|\s(?:because|since|so|but|and|as)\b|\Z)",
    re.IGNORECASE,
)
_MOVED_ON = regex(
    r"\b(?:(?:was|were|is|are|has|have|been)\s)*(?:switched|moved|migrated)\s(?:over\s)?to\b", re.IGNORECASE
)
_REASON = regex(r",?\s(?:because|since|as|so)\s", re.IGNORECASE)
# A change that is denied, wished for, asked, or holds in some cases only replaces nothing.
_OPEN = regex(
    r"\b(?:if|when|whenever|unless|while|whether|except|only|temporarily|sometimes|should|could|would|might|(?-i:may)|maybe|perhaps"
    r"|consider\w*|propos\w*|suggest\w*|plan\w*|wants?|wanted|try|tried|what about|how about|for now)\b|\?",
    re.IGNORECASE,
)
_NOT_DONE = regex(r"(?:\bnot|n't|\bnever|\bwithout|\binstead of)(?:\s[\w-]{1,40}){0,4}\s?\Z", re.IGNORECASE)
# What something does instead of what it should do is a fault and no change.
_FAULT = regex(
    r"\b(?:return|print|show|rais|throw|fail|got|wrong|bug|error|crash|unexpected|accident|mistak|respond|display)\w*",
    re.IGNORECASE,
)
_SENTENCE = regex(r"(?<=[.!?])\s+|\n+")
_OF_ANOTHER = frozenset(("opposite", "environment", "scope"))  # differences that show another matter
# Beginnings of words that say no more of a thing than that it holds or is given up.
_EMPTY = (
    "use", "allow", "need", "requir", "support", "valid", "permit", "call", "name", "want", "build", "longer",
    "instead", "switch", "move", "migrat", "chang", "replac",
)  # fmt: skip
_CHOICE = regex(r"\A(?:we |the team )?(?:decided|chose|agreed) (?:to|that|on)\s", re.IGNORECASE)


def given_up(older: str, newer: str, known: Sequence[str] = ()) -> str | None:
    """What a newer note gave up that the older one states; None if the older one is not outdated.

    `known` are further things, in the older note's words, that something in the newer one is known to supersede.
    """
    sentences = [one for one in _SENTENCE.split(newer) if _speaks_of_change(one)] if _CUE.search(newer) else []
    if not (known or sentences):
        return None
    stated = read_statement(_CHOICE.sub("", older))
    # What happened stays true.
    if not stated.english or stated.is_past or stated.negations or _OPEN.search(older) or _speaks_of_change(older):
        return None
    for sentence in sentences:
        if found := _given_up_in(sentence, stated):
            return found
    return next((one for one in known if _states(stated, one, read_statement(newer))), None)


def _speaks_of_change(text: str) -> bool:
    return _CUE.search(text) is not None and any(pattern.search(text) for pattern in (_GIVEN_UP, _DENIED, _MOVED_ON))


def _given_up_in(sentence: str, older: Statement) -> str | None:
    if _OPEN.search(sentence):
        return None
    newer = read_statement(sentence)
    for phrase in _given_up(sentence):
        if _states(older, phrase, newer):
            return phrase
    if _MOVED_ON.search(sentence) and not any(_given_up(sentence)):
        # What was there before is not said: it is what the older note has in place of the new name.
        now = read_statement(_MOVED_ON.sub("use", _REASON.split(sentence, 1)[0]))
        if other := only_other_name(older, now):
            return other.left
    return None


def _given_up(sentence: str) -> Iterator[str]:
    for found in _GIVEN_UP.finditer(sentence):
        if not (_NOT_DONE.search(sentence[: found.start()]) or (found["other"] and _FAULT.search(sentence))):
            yield next(part for part in found.groups() if part).strip()
    for found in _DENIED.finditer(sentence):
        yield " ".join(part.strip() for part in found.groups() if part)


def _states(older: Statement, phrase: str, newer: Statement) -> bool:
    """Whether the older note states the thing of a phrase, of the same matter as the newer one."""
    gone = _telling(read_statement(phrase).words)
    if not gone or not set(gone).issubset(older.words):
        return False
    if any(one.kind in _OF_ANOTHER and one.left and one.right for one in differences(older, newer)):
        return False
    # Amounts alone are no other matter.
    unshared = [w for w in _telling(older.words) if not (w in gone or w in newer.words or w.startswith("#"))]
    # A rule on one thing, such as "npm is no longer allowed", holds wherever that is used.
    general = len(gone) == 1 and len([word for word in _telling(newer.words) if word not in gone]) <= 1
    return len(unshared) - len(with_synonyms(unshared, newer.words)) <= general


def _telling(words: Sequence[str]) -> list[str]:
    return [word for word in words if word not in LIGHT and not word.startswith(_EMPTY)]
