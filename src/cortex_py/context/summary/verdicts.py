"""What the check of a turn doubted: a claim that it rejected is never reported as done."""

from __future__ import annotations

import json
from collections.abc import Iterable
from dataclasses import dataclass
from typing import Any

from .reader import all_words
from .sentences import one_line

__all__ = ["Doubt", "find_doubt", "read_doubts"]

_REASON = 120  # characters
_COVERED = 0.8  # share of a claim's words that a sentence has if it makes that claim


@dataclass(frozen=True, slots=True)
class Doubt:
    """A claim that the check did not confirm; `rejected` if it must not be reported as a fact."""

    claim: str
    rejected: bool
    reason: str


def read_doubts(result: str) -> tuple[Doubt, ...]:
    """The doubts of a stored verification: what was contradicted, and what was not found.

    What was not found counts as rejected only where the turn as a whole was rejected. A result that cannot be read
    holds none.
    """
    try:
        content: Any = json.loads(result)
        rejected = content["status"] == "REJECT"
        rows = [(str(one["claim"]), str(one["verdict"]), str(one["evidence"])) for one in content["claims"]]
    except (ValueError, KeyError, TypeError, RecursionError):
        return ()
    return tuple(
        Doubt(one_line(claim), rejected or verdict == "contradicted", _reason(evidence))
        for claim, verdict, evidence in rows
        if verdict in ("contradicted", "not found")
    )


def find_doubt(text: str, doubts: Iterable[Doubt]) -> Doubt | None:
    """The doubt about a sentence, a rejection before others."""
    said, words = one_line(text).casefold(), all_words(text)
    found = [one for one in doubts if _claims(said, words, one)]
    return max(found, key=lambda one: one.rejected, default=None)


def _claims(said: str, words: frozenset[str], doubt: Doubt) -> bool:
    claim = doubt.claim.casefold().rstrip(" .;,:…")
    if not claim:
        return False
    wanted = all_words(doubt.claim)
    return claim in said or said.rstrip(" .;,:") in claim or len(wanted & words) >= _COVERED * len(wanted) > 0


def _reason(evidence: str) -> str:
    short = one_line(evidence).rstrip(" .;,:")
    return short if len(short) <= _REASON else short[: _REASON - 1].rstrip() + "…"
