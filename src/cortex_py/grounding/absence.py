"""Words that say that something is not there, or was taken away, in other ways than by a plain "not". Pure."""

from __future__ import annotations

import re

__all__ = ["is_absent", "is_taken_away"]

_BEING = r"(?:in|at|there|present|available|defined|declared|found|part|exist\w*)"
_HAVING = r"(?:have|has|defin(?:e|es|ing)|contain(?:s|ing)?|includ(?:e|es|ing)|declar(?:e|es|ing)|export(?:s|ing)?)"
# That a thing is not there.
_ABSENT = re.compile(
    r"\b(?:is|are|was|were|been)\s+(?:now\s+)?(?:missing|absent|gone)\b|\b(?:has|have)\s+disappeared\b"
    rf"|\bno longer\s+{_BEING}\b|\b(?:isn|aren|wasn)['’]t\s+{_BEING}\b|\bnot\s+{_BEING}\b"
    r"|\bthere\s+(?:is|are|was)(?:n['’]t|\s+no(?:t|thing)?)\b|\bno\s+(?:such\s+)?(?:\w+\s+){0,2}(?:called|named)\b"
    r"|\bnothing\b.{0,40}\b(?:called|named)\b|\b(?:does|do|did)(?:n['’]t| not)\s+exist\b"
    r"|\b(?:could not|couldn['’]t|won['’]t|cannot|can['’]t)\s+(?:be\s+)?f(?:ind|ound)\b",
    re.IGNORECASE,
)
# That one thing has not another.
_WITHOUT = re.compile(
    rf"\black(?:s|ing)\b|\b(?:has|have)\s+(?:lost|no)\b|\bno longer\s+{_HAVING}\b|\bused to\s+{_HAVING}\b"
    rf"|\b{_HAVING}\b.{{0,80}}\bany\s?more\b|\bstopped\s+{_HAVING}\b|\b(?:does|do|did)(?:n['’]t| not)\s+{_HAVING}\b"
    rf"|\bnothing\b.{{0,40}}\b{_HAVING}\b|\bno definition\b",
    re.IGNORECASE,
)
_NOT_ABSENT = re.compile(r"\b(?:not|n['’]t|never)\s+(?:missing|absent|gone|lack)", re.IGNORECASE)
_TAKEN_AWAY = re.compile(
    r"\b(?:got|gotten|getting|get)\s+rid\s+of\b|\b(?:taken|took|cut|ripped)\s+(?:\S+\s+)?out\s+of\b"
    r"|\bby\s+(?:removing|deleting|dropping)\b",
    re.IGNORECASE,
)
_CODE = re.compile(r"`[^`]*`")
# What follows is of a clause inside: "returns 404 when the user does not exist".
_INSIDE = re.compile(r"\b(?:when(?:ever)?|if|unless|because|while|so that|where|until|in case)\b", re.IGNORECASE)


def is_absent(text: str, names: int) -> bool:
    """Whether a clause that has so many files and symbols says that one is not there: "is gone from", "lacks".

    One name alone may lack faults, or contain nothing that has a name, and be there all the same.
    """
    words = _INSIDE.split(_CODE.sub("`x`", text))[0]
    denied = _ABSENT.search(words) or (names > 1 and _WITHOUT.search(words))
    return bool(denied) and _NOT_ABSENT.search(words) is None


def is_taken_away(text: str) -> bool:
    """Whether a clause tells of a removal in words that no single verb has."""
    return _TAKEN_AWAY.search(_CODE.sub("`x`", text)) is not None
