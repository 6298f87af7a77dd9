"""Which of the memories that a search found a prompt is given with, and how much of each is quoted.

`bench/hooks.py --choose` chooses the limits on development data and writes them to `limits.json`, with how it did so.
Standard library only: the search without a warm process uses them too.
"""

from __future__ import annotations

import json
import re
from collections.abc import Callable, Sequence
from functools import cache
from pathlib import Path
from typing import TYPE_CHECKING, NamedTuple, TypeVar

from ...core.records import FETCHED_TAG, NEVER_INJECTED_TAG, STALE_TAG
from ...core.security.quoting import instructs, plain
from .frame import Quote, fit, frame, quote

if TYPE_CHECKING:
    from ...core.records import Hit, Memory

__all__ = ["LONGEST_QUOTE", "MOST_GIVEN", "HookLimits", "certain", "limits", "may_be_given", "quoted"]

MOST_GIVEN = 5
LONGEST_QUOTE = 700  # characters
_SHORTEST_QUOTE = 120
_CHARACTERS_PER_TOKEN = 4
_READ = 50_000  # characters of a long memory

_Found = TypeVar("_Found")
# What a planted text needs: a command, an address or a permission. Wide, because a person can accept what is sound.
_RISKY = re.compile(
    r"\b(?:always|never|must|should|shall|ha(?:ve|s) to|needs? to|please|make sure|do(?: not|n['’]t)|run|"
    r"execute|install|call|open|visit|send|post|upload|download|fetch|use|add|set|delete|remove|curl|sudo|may|can|"
    r"allow\w*|approv\w*|permi(?:t|ss)\w*|authori[sz]\w*|confirm\w*|trust\w*|without asking|localhost|dot)\b|"
    r"[`$@\\]|://|::|\[\.|\w[.。][^\W\d]\w|\d\.\d+\.\d|\w:\d",
    re.IGNORECASE,
)


class HookLimits(NamedTuple):
    """The score that a memory must have, and the share of the best one's score that further ones must have."""

    floor: float
    margin: float


def may_be_given(memory: Memory, *, unreviewed: bool) -> bool:
    """Whether a memory may be given to a session unasked.

    What nobody reviewed may not. With `unreviewed` it may, unless a text from outside would gain by it.
    """
    if {NEVER_INJECTED_TAG, STALE_TAG}.intersection(memory.tags):
        return False
    if memory.status != "pending":
        return True
    text = plain(f"{memory.content}\n{memory.summary or ''}")
    return unreviewed and FETCHED_TAG not in memory.tags and not (_RISKY.search(text) or instructs(text))


@cache
def limits(kind: str) -> HookLimits:
    """The limits of `warm` scores, which are calibrated, or of `cold` ones, which are shares of words."""
    content = json.loads(Path(__file__).with_name("limits.json").read_text("utf-8"))[kind]
    return HookLimits(content["floor"], content["margin"])


def certain(found: Sequence[tuple[float, _Found]], least: HookLimits) -> list[_Found]:
    """What is certain enough of what was found with these scores, best first."""
    floor = max(least.floor, least.margin * max((score for score, _ in found), default=0.0))
    return [one for score, one in found if score >= floor]


def quoted(hits: Sequence[Hit], tokens: int, count_tokens: Callable[[str], int]) -> list[Quote]:
    """The memories as quotes that fit into a budget.

    Each has an equal share of it. A memory that is longer than that is quoted by the passage that matches best, and by
    the one with most words of the prompt.
    """
    share = (tokens - count_tokens(frame(["-"]))) // max(1, len(hits))
    quotes = []
    for hit in hits:
        one = quote(hit.memory, hit.memory.content) if len(hit.memory.content) <= LONGEST_QUOTE else None
        if one is None or count_tokens(one.text) > share:
            source = count_tokens(quote(hit.memory, "-").text)
            length = max(_SHORTEST_QUOTE, min(LONGEST_QUOTE, _CHARACTERS_PER_TOKEN * (share - source)))
            one = quote(hit.memory, _passages(hit, length))
        quotes.append(one)
    return fit(quotes, tokens, count_tokens)


def _passages(hit: Hit, length: int) -> str:
    # Imported here: a hook without a warm process does not come here.
    from ...core.memory.text import Chunk

    content = hit.memory.content
    best = hit.passage(length=length // 2)
    whole = Chunk(0, min(len(content), _READ))
    wordy = hit.passage(length=length // 2, span=whole)
    inner = wordy.strip("…")
    near = best.strip("…")
    if inner in near or near in inner or inner[: len(inner) // 2] in near or inner[len(inner) // 2 :] in near:
        return hit.passage(length=length, span=whole)
    return f"{best}\n{wordy}"
