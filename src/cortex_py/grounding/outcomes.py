"""What a claim says the tests gave, and whether two such claims about the same tests exclude each other. Pure."""

from __future__ import annotations

import re
from dataclasses import dataclass

from .claim_frames import stems
from .claims import Claim
from .mentions import Mention

__all__ = ["Outcome", "outcome_of", "outcomes_differ"]

_SUITE = frozenset(
    stems(
        """test tests suite specs spec pass passed passing fail failed failing failure failures green red broken succeed
        skipped error all none no same run runs unfortunately however check checks case cases total currently still
        xfailed deselected both two three four five six seven eight nine ten full entire whole successfully complete
        finally everything pytest result results ran running"""
    )
)
_PAST = re.compile(r"\b(?:failed|were|was|had|passed)\b", re.IGNORECASE)
_ALL = re.compile(r"\b(?:all|every)\b", re.IGNORECASE)


@dataclass(frozen=True, slots=True)
class Outcome:
    """Of which tests, how many passed and how many failed; None for what is not told, -1 for some."""

    scope: frozenset[str]
    passed: int | None
    failed: int | None
    told_as_past: bool


def outcome_of(claim: Claim) -> Outcome | None:
    """What the claim tells of a run of tests; nothing where it tells the same of two kinds of them."""
    found = [mention for mention in claim.mentions if mention.kind == "tests"]
    if claim.type != "test_result" or not found:
        return None
    results = [mention.value.partition(" ")[2] for mention in found]
    if len(set(results)) < len(results) or (len(found) > 1 and any(m.value.startswith("all ") for m in found)):
        return None
    passed: int | None = None
    failed: int | None = None
    for mention in found:
        more_passed, more_failed = _counted(mention)
        passed = passed if more_passed is None else more_passed
        failed = failed if more_failed is None else more_failed
    counts = {word for mention in found for word in stems(mention.text)}
    scope = {word for word in stems(claim.text) if word not in _SUITE and not (word in counts and word[0].isdigit())}
    return Outcome(frozenset(scope), passed, failed, _PAST.search(claim.text) is not None)


def _counted(mention: Mention) -> tuple[int | None, int | None]:
    """How many passed and how many failed, as far as one mention tells."""
    count, _, result = mention.value.partition(" ")
    if "/" in count:
        part, total = (int(number) for number in count.split("/"))
        return (part, total - part) if result == "passed" else (total - part, part)
    number = int(count) if count.isdigit() else 0 if count == "no" else None
    if result == "failed":
        return None, -1 if number is None else number
    if result == "passed":
        return number, 0 if count == "all" or _ALL.search(mention.text) else -1 if count == "no" else None
    return None, None


def outcomes_differ(first: Outcome, second: Outcome) -> str | None:
    """Why both cannot be of one run, in words."""
    if first.failed is not None and second.failed is not None and bool(first.failed) != bool(second.failed):
        return "says that the tests pass here and that some fail there"
    if first.passed is not None and second.passed is not None and first.passed != second.passed:
        return f"says that {first.passed} tests pass here and {second.passed} there"
    return None
