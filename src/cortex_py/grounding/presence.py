"""Whether something that is said to be removed, or not to be there, is said to be there as well. Pure."""

from __future__ import annotations

import re
from collections.abc import Iterator

from .claim_frames import Frame
from .claim_words import CHANGES
from .frame_pairs import Conflict, Pair

__all__ = ["existence", "existence_keys"]

_GONE = re.compile(
    r"\b(?:remov\w+|delet\w+|gone|unused|dead|obsolete|deprecat\w+|replac\w+|supersed\w+|mov(?:ed|es|ing)|renam\w+"
    r"|inlin\w+|merg\w+|migrat\w+|missing|absent|drop\w*|revert\w*|restor\w+|re-?add\w*|rewr\w+|re-?creat\w+|no longer"
    r"|used to|instead|old|new|stub|alias|shim)\b",
    re.I,
)
_CODE = re.compile(r"`[^`\n]*`|\S*[./_]\w\S*")
_REMOVES = re.compile(r"\b(?:removed|deleted|dropped|eliminated)\b", re.I)
_ABSENT = re.compile(
    r"^\W*there(?:['’]s| is| are) no\b|\b(?:does not|doesn['’]t) exist\b|\b(?:not|n['’]t) (?:defined|present)\b"
    r"|\bis (?:missing|absent)\b",
    re.I,
)
_ELSEWHERE = re.compile(r"\b(?:read|taken|loaded|imported|provided|comes?|available|resolved|used|internal\w*)\b", re.I)
_INTO = re.compile(r"\b(?:to|in|into|inside)\s+(?:the\s+)?(?:file\s+)?`?$", re.I)


def existence_keys(frame: Frame) -> Iterator[tuple[str]]:
    if frame.name:
        yield (frame.name,)
    for file in _into(frame) if not frame.denied else ():
        yield (file,)


def _into(frame: Frame) -> list[str]:
    """The files that must be there for the claim to be so: those that something is in."""
    if frame.claim.type not in ("implemented", "exists") or frame.time == "before":
        return []
    found = []
    for mention in frame.claim.mentions:
        before, there, _ = frame.text.partition(mention.text) if mention.kind == "file" else ("", "", "")
        opens = frame.claim.type == "exists" and before.strip("` ").lower() in ("", "the", "the file")
        if there and (opens or _INTO.search(before)):
            found.append(mention.value)
    return found


def existence(pair: Pair) -> Conflict | None:
    """Whether one of the two cannot be, since the other says that its subject is gone."""
    for gone, there in ((pair.first, pair.second), (pair.second, pair.first)):
        name = _common(gone, there)
        if not name or not _is_there(there, name):
            continue
        if _removed(gone) and _stays(gone, there, name, pair):
            return Conflict("existence", f"`{name}` is said to be removed, and yet that “{_told(there)}”")
        if _absent(gone) and name == gone.name and pair.at_one_time and bool(gone.files) == bool(there.files):
            return Conflict("existence", f"`{name}` is said not to be there, and yet that “{_told(there)}”")
    return None


def _stays(gone: Frame, there: Frame, name: str, pair: Pair) -> bool:
    """Whether it is told to be there after it was removed, from the same place."""
    if _GONE.search(_CODE.sub(" ", there.text)):
        return False
    if there is pair.first and (there.time != "event" or there.claim.type not in CHANGES):
        return False  # what was there before
    if there is pair.second and pair.apart and there.claim.type in CHANGES:
        return False  # made anew since
    elsewhere = name.isupper() or _ELSEWHERE.search(there.text) is not None
    return not (gone.files and not there.files and elsewhere)


def _common(gone: Frame, there: Frame) -> str:
    return gone.name if gone.name and (gone.name == there.name or gone.name in _into(there)) else ""


def _removed(frame: Frame) -> bool:
    told = frame.claim.type == "removed" and not frame.denied and frame.time in ("event", "state", "after")
    return told and _REMOVES.search(frame.text) is not None


def _absent(frame: Frame) -> bool:
    return frame.claim.type == "exists" and frame.time == "state" and _ABSENT.search(frame.text) is not None


def _is_there(frame: Frame, name: str) -> bool:
    if frame.denied or frame.time == "before" or frame.claim.type in ("removed", "reference", "test_result"):
        return False
    return name in _into(frame) or frame.claim.type in ("exists", "behaviour", "value", "implemented")


def _told(frame: Frame) -> str:
    return frame.text.rstrip(".!")[:120]
