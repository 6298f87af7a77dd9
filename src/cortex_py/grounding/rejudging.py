"""A second look at claims that the checks leave open, by a model that the user supplies; without one they stay open."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import Protocol

from ..errors import CortexError
from .evidence import Evidence
from .lookup import Lookup
from .verification import ACCEPTED, REJECTED, Finding, Verdict

__all__ = ["Judge", "Question", "excerpt", "rejudge"]

_MOST = 20
_AROUND = 12  # lines on either side of the one that evidence points to
_LONGEST = 3_000


@dataclass(frozen=True, slots=True)
class Question:
    """A claim and what bears on it."""

    claim: str
    passages: tuple[str, ...]


class Judge(Protocol):
    """Tells for each question how likely the passages bear the claim out; None where it cannot tell."""

    @property
    def name(self) -> str: ...

    def judge(self, questions: Sequence[Question]) -> list[float | None]: ...


def rejudge(findings: Sequence[Finding], judge: Judge, lookup: Lookup) -> tuple[list[Finding], str]:
    """The findings with those that were open judged anew, and a note where the judge could not be asked."""
    open_ones = [
        (place, question)
        for place, finding in enumerate(findings)
        if _is_open(finding) and (question := _question(finding, lookup)).passages
    ][:_MOST]
    result = list(findings)
    if not open_ones:
        return result, ""
    try:
        answers = judge.judge([question for _, question in open_ones])
    except CortexError as error:
        # The checks have decided what they could; a model that is away takes nothing from that.
        return result, f"The claims left open were not judged by {judge.name}: {error}"
    for (place, _), answer in zip(open_ones, answers, strict=True):
        if answer is not None:
            result[place] = _judged(findings[place], answer, judge.name)
    return result, ""


def _is_open(finding: Finding) -> bool:
    return finding.verdict == "not found" or REJECTED <= finding.probability < ACCEPTED


def _judged(finding: Finding, answer: float, method: str) -> Finding:
    probability = round(min(1.0, max(0.0, answer)), 4)
    verdict: Verdict = "supported" if probability >= ACCEPTED else "not found"
    return replace(finding, probability=probability, verdict=verdict, method=method)


def _question(finding: Finding, lookup: Lookup) -> Question:
    places = dict.fromkeys([*finding.evidence, *(check.evidence for check in finding.checks if check.evidence)])
    texts = (excerpt(one, lookup) for one in list(places)[:3])
    return Question(finding.claim.text, tuple(text for text in texts if text))


def excerpt(evidence: Evidence, lookup: Lookup) -> str:
    """The text that a piece of evidence points to."""
    if evidence.commit is not None:
        revision = lookup.commit(evidence.commit)
        return f"{revision.subject}\n{revision.body}"[:_LONGEST] if revision else ""
    if evidence.path is None:
        return ""
    lines = lookup.lines(evidence.path)
    at = evidence.line or 1
    return "\n".join(lines[max(0, at - 1 - _AROUND) : at + _AROUND])[:_LONGEST]
