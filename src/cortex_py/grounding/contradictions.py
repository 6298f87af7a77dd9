"""Claims that exclude each other: inside one text, or against what a memory or a piece of evidence says. Pure.

Only claims about the same subject are laid side by side, and only where all but one thing is the same in both: a
denial, an opposite, a number, a version, a place, an order, what the tests gave, or whether something is there at all.
A text that tells how things were and how they are now contradicts nothing, so what is told first matters. A wrong alarm
costs more than a missed one: whatever is hedged, limited or unclear is left alone.
"""

from __future__ import annotations

import re
from bisect import bisect_right
from collections import defaultdict
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from functools import lru_cache
from itertools import combinations
from typing import Literal

from .claim_frames import Frame, frame_of, one_section, section_of
from .claim_words import CHANGES
from .claims import Claim, read_claims
from .exclusions import Conflict, Key, Kind, exclusion, is_open, keys_of

__all__ = ["Contradiction", "Kind", "against", "inside"]


@dataclass(frozen=True, slots=True)
class Contradiction:
    """Two things that cannot both be so; `source` tells where the other side comes from, "" inside one text."""

    left: str
    right: str
    reason: str
    kind: Kind
    between: Literal["text", "evidence", "memory"]
    source: str


_MOVES = re.compile(
    r"\b(?:mov(?:e|ed|es|ing)|renam\w+|extract\w*|migrat\w+|restor\w+|re-?add\w*|relocat\w+|replac\w+|rewr\w+)\b", re.I
)
_MENDS = re.compile(r"\b(?:fix\w*|solution|resolv\w*|instead|therefore|that['’]?s why|chang\w+|patch\w*)\b", re.I)
_MOST = 32  # claims of one subject that are compared with each other, so that no text costs more than a bounded time


def inside(claims: Sequence[Claim], text: str = "") -> list[Contradiction]:
    """The claims of one text that exclude each other, in its order.

    With the text itself, claims under headings that speak of different things ("Backend", "Frontend") are kept apart.
    """
    sections = section_of(text, claims) if text else {}
    frames = _frames(claims, sections)
    changes = _changes(frames)
    groups: dict[Key, list[Frame]] = defaultdict(list)
    for frame in frames:
        for key in keys_of(frame):
            if len(groups[key]) < _MOST:
                groups[key].append(frame)
    found: dict[tuple[int, int], Conflict] = {}
    moved = _moved(frames)
    for key, members in groups.items():
        if len(members) < 2 or (key[0] == "existence" and key[1] in moved) or not is_open(key, members):
            continue
        for first, second in combinations(members, 2):
            pair = (first.at, second.at)
            if pair in found or not (conflict := exclusion(key, first, second)):
                continue
            if _mended_between(text, first, second) or _changed_between(changes, first, second):
                continue
            if one_section(first.section, second.section):
                found[pair] = conflict
    return [
        Contradiction(frames[a].text, frames[b].text, conflict.reason, conflict.kind, "text", "")
        for (a, b), conflict in sorted(found.items())
    ]


def against(claim: Claim, sentences: Sequence[str]) -> tuple[int, str, Kind] | None:
    """The first sentence that excludes the claim, with the reason and its kind.

    The sentences are taken to be older: a claim of a change is not excluded by the state before it.
    """
    own = frame_of(claim, 1)
    keys = keys_of(own)
    for number, sentence in enumerate(sentences) if keys else ():
        for other in _told(sentence):
            for key in keys_of(other):
                if key in keys and (conflict := exclusion(key, other, own, apart=True)):
                    return number, conflict.reason, conflict.kind
    return None


@lru_cache(maxsize=1024)  # many claims are laid beside the same few memories
def _told(sentence: str) -> tuple[Frame, ...]:
    return tuple(_frames(read_claims(sentence).claims, {}))


def _frames(claims: Sequence[Claim], sections: dict[int, tuple[str, ...]]) -> list[Frame]:
    """The claims in their order; what is said twice is said once, the first time."""
    first = {claim.text: claim for claim in reversed(claims)}
    ordered = sorted(first.values(), key=lambda claim: (claim.start, claim.end, claim.text))
    return [frame_of(claim, at, sections.get(claim.start, ())) for at, claim in enumerate(ordered)]


def _changes(frames: Sequence[Frame]) -> dict[str, list[int]]:
    """Where something is told to have changed, by the words of what has; "" for all of them."""
    places: dict[str, list[int]] = defaultdict(list)
    for frame in frames:
        if frame.claim.type in CHANGES and frame.time == "event" and not frame.denied:
            for word in {"", *frame.subject, *(mention.value for mention in frame.claim.mentions)}:
                places[word].append(frame.at)
    return places


def _moved(frames: Sequence[Frame]) -> set[object]:
    """What was removed only from where it had been."""
    return {
        mention.value
        for frame in frames
        if _MOVES.search(frame.text)
        for mention in frame.claim.mentions
        if mention.kind in ("symbol", "file")
    }


def _changed_between(changes: dict[str, list[int]], first: Frame, second: Frame) -> bool:
    """Whether what the first tells may be the state before a change that is told between the two."""
    if first.time == "event":
        return False
    tested = first.claim.type == "test_result" == second.claim.type
    if tested and not any("failed" in mention.value for mention in first.claim.mentions):
        return False
    return any(_between(changes.get(word, ()), first.at, second.at) for word in _touched(first, tested))


def _mended_between(text: str, first: Frame, second: Frame) -> bool:
    """Whether what something does not do is followed by how that was mended; that need not be a claim."""
    if not text or not first.denied or second.denied or first.time == "event":
        return False
    return _MENDS.search(text, first.claim.end, max(first.claim.end, second.claim.start)) is not None


def _touched(frame: Frame, tested: bool) -> Iterator[str]:
    if tested:
        yield ""  # any change may have mended the tests
    yield from frame.subject
    yield from (mention.value for mention in frame.claim.mentions if mention.kind in ("symbol", "file"))


def _between(places: Sequence[int], low: int, high: int) -> bool:
    at = bisect_right(places, low)
    return at < len(places) and places[at] < high
