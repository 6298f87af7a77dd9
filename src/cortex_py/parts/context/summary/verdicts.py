"""What the check of a turn doubted: no claim that it did not confirm is reported as done without a mark."""

from __future__ import annotations

import json
from collections.abc import Iterable
from dataclasses import dataclass
from typing import Any

from ....texts.reader import all_words
from ....texts.sentences import one_line

__all__ = ["Doubt", "find_doubt", "read_doubts"]

_REASON = 120  # characters
_COVERED = 0.8  # share of a claim's words that a sentence has if it makes that claim


@dataclass(frozen=True, slots=True)
class Doubt:
    """A claim that the check did not confirm; `rejected` if it must not be reported as a fact."""

    claim: str
    rejected: bool
    reason: str

    @property
    def mark(self) -> str:
        """What stands beside the claim where it is reported all the same."""
        return f"unverified: {self.reason}" if self.reason else "unverified"


def read_doubts(result: str) -> tuple[Doubt, ...]:
    """The doubts of a stored verification: what was contradicted, not found, or could not be confirmed.

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
        Doubt(
            one_line(claim),
            (rejected and verdict == "not found") or verdict == "contradicted",
            _reason(verdict, evidence),
        )
        for claim, verdict, evidence in rows
        if verdict in ("contradicted", "not found", "unverified")
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


def _reason(verdict: str, evidence: str) -> str:
    """Why a claim is doubted. What no check confirms has no reason of its own."""
    short = "" if verdict == "unverified" else one_line(evidence).rstrip(" .;,:")
    return short if len(short) <= _REASON else short[: _REASON - 1].rstrip() + "…"
