"""The result of a verification: what was found for each claim, and one score for all of them. Pure.

The score is a harmonic mean of the claims' probabilities, so that it falls with the worst of them: among ten claims one
that is invented is enough for a warning, and a central one that is contradicted keeps the whole from being accepted.
"""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Literal

from .checks import Check
from .claims import Claim, Uncheckable
from .contradictions import Contradiction
from .evidence import Evidence

__all__ = [
    "ACCEPTED",
    "REJECTED",
    "Finding",
    "RiskLevel",
    "Status",
    "Verdict",
    "Verification",
    "score_of",
    "status_of",
    "verification",
]

Verdict = Literal["supported", "contradicted", "not found", "not checkable"]
Status = Literal["ACCEPT", "WARN", "REJECT"]
RiskLevel = Literal["low", "medium", "high"]

# The documented thresholds; what stands on one belongs to the better side.
ACCEPTED = 0.7
REJECTED = 0.3
_UNKNOWN = 0.5  # the score where there are claims and none could be checked
_LEAST = 0.01
_ASIDE = 0.4  # what a claim weighs that only refers to something
_SHOWN = 3


@dataclass(frozen=True, slots=True)
class Finding:
    """One claim with what was found: how likely it is true, on what evidence, and why."""

    claim: Claim
    verdict: Verdict
    probability: float
    evidence: tuple[Evidence, ...]
    reason: str
    checks: tuple[Check, ...] = ()
    method: str = "rules"

    @property
    def weight(self) -> float:
        """How much the claim matters: what only mentions something matters less than what says it was done or is so."""
        return _ASIDE if self.claim.type == "reference" or not self.claim.mentions else 1.0


@dataclass(frozen=True, slots=True)
class Verification:
    """`findings` and `unchecked` are in the order of the text; `notes` say what else a reader should know."""

    score: float
    status: Status
    risk_level: RiskLevel
    findings: tuple[Finding, ...]
    unchecked: tuple[Uncheckable, ...]
    fuzzy_confidence: float
    contradictions: tuple[Contradiction, ...]
    message: str

    @property
    def verified(self) -> int:
        return sum(finding.verdict == "supported" for finding in self.findings)


def score_of(findings: Sequence[Finding], contradictions: int = 0) -> float:
    """One score: 1 where nothing is claimed, the middle where nothing could be checked."""
    judged = [finding for finding in findings if finding.verdict != "not checkable"]
    if not findings:
        return 1.0
    if not judged:
        return _UNKNOWN
    # Summed exactly, so that the order of the claims does not matter.
    total = math.fsum(finding.weight for finding in judged)
    plain = math.fsum(finding.weight * finding.probability for finding in judged) / total
    mean = min(plain, total / math.fsum(finding.weight / max(_LEAST, finding.probability) for finding in judged))
    central = [one.probability for one in judged if one.verdict == "contradicted" and one.weight == 1.0]
    bounds = [(1 + min(central)) / 2 * ACCEPTED] if central else []
    # A text that contradicts itself cannot be true as a whole, whatever the project says.
    bounds += [ACCEPTED - 0.01] if contradictions else []
    return min([mean, *bounds])


def status_of(score: float) -> Status:
    return "ACCEPT" if score >= ACCEPTED else "WARN" if score >= REJECTED else "REJECT"


def verification(
    findings: Sequence[Finding],
    unchecked: Sequence[Uncheckable],
    fuzzy_confidence: float,
    contradictions: Sequence[Contradiction],
    notes: Sequence[str] = (),
) -> Verification:
    """Everything put together, with a message that a person understands."""
    score = round(score_of(findings, sum(one.between == "text" for one in contradictions)), 4)
    status = status_of(score)
    message = " ".join([_message(findings, unchecked, contradictions), *notes])
    return Verification(
        score, status, _risk(findings, status), tuple(findings), tuple(unchecked), round(fuzzy_confidence, 4),
        tuple(contradictions), message,
    )  # fmt: skip


def _risk(findings: Sequence[Finding], status: Status) -> RiskLevel:
    """How bad it would be to go on with the text: a central claim that is wrong and said without doubt is worst."""
    wrong = [finding for finding in findings if finding.verdict == "contradicted"]
    if status == "REJECT" or any(one.weight == 1.0 and one.claim.hedge < 0.25 for one in wrong):
        return "high"
    return "medium" if wrong or status == "WARN" else "low"


def _message(
    findings: Sequence[Finding], unchecked: Sequence[Uncheckable], contradictions: Sequence[Contradiction]
) -> str:
    if not findings:
        return _nothing(unchecked)
    counts = Counter(finding.verdict for finding in findings)
    total = len(findings)
    if counts["supported"] == total:
        said = [
            "The claim is supported by evidence." if total == 1 else f"All {total} claims are supported by evidence."
        ]
    else:
        said = [f"{counts['supported']} of {total} claims {'is' if counts['supported'] == 1 else 'are'} supported."]
    for verdict, words in (("contradicted", "Contradicted"), ("not found", "No evidence")):
        some = [finding for finding in findings if finding.verdict == verdict]
        if some:
            said.append(f"{words}: {'; '.join(map(_shown, some[:_SHOWN]))}{_more(len(some) - _SHOWN)}.")
    if counts["not checkable"]:
        said.append(f"{counts['not checkable']} could not be checked.")
    if contradictions:
        said.append(f"{len(contradictions)} contradiction{'s' if len(contradictions) > 1 else ''} found.")
    if unchecked:
        said.append(f"Left aside: {_reasons(unchecked)}.")
    return " ".join(said)


def _nothing(unchecked: Sequence[Uncheckable]) -> str:
    if not unchecked:
        return "Nothing was checked: the text makes no claim."
    return f"Nothing was checked: the text makes no claim that can be ({_reasons(unchecked)})."


def _reasons(unchecked: Sequence[Uncheckable]) -> str:
    counts = Counter(one.reason for one in unchecked)
    return ", ".join(f"{count} {reason}{'s' if count > 1 and reason != 'not understood' else ''}"
                     for reason, count in sorted(counts.items()))  # fmt: skip


def _shown(finding: Finding) -> str:
    words = finding.claim.text if len(finding.claim.text) <= 80 else finding.claim.text[:79] + "…"
    return f"“{words.rstrip('.')}” ({finding.reason})" if finding.reason else f"“{words.rstrip('.')}”"


def _more(count: int) -> str:
    return f" and {count} more" if count > 0 else ""
