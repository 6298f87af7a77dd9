"""The result of a verification: a finding for each claim, and one score for all of them. Pure.

The score is a harmonic mean of the claims' probabilities, so it falls with the worst of them. A text is accepted only
if each claim that could be checked is supported.
"""

from __future__ import annotations

import json
import math
from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, Literal

from ...core.security.policy import ScreenedText
from ...core.security.secrets.secrets import redact
from .checks.check import Check, Evidence
from .claims.claims import Claim, Uncheckable
from .contradictions.contradictions import Contradiction

__all__ = [
    "ACCEPTED", "REJECTED", "Finding", "Verdict", "Verification", "build_verification", "compute_score",
    "describe_evidence", "status_of", "to_stored_json",
]  # fmt: skip

Verdict = Literal["supported", "contradicted", "unverified", "not found", "not checkable"]
Status = Literal["ACCEPT", "WARN", "REJECT"]
RiskLevel = Literal["low", "medium", "high"]

# The documented thresholds. A score equal to one belongs to the better side.
ACCEPTED = 0.7
REJECTED = 0.3
_UNKNOWN = 0.5  # the score of a text whose claims could not be checked
_LEAST = 0.01
_REFERENCE_WEIGHT = 0.4  # of a claim that only refers to something
_SHOWN = 3
_STORED = 50  # findings and contradictions
_STORED_CHARACTERS = 400  # of one text
_READ = 20_000


@dataclass(frozen=True, slots=True)
class Finding:
    """One claim with its verdict: how likely it is true, the evidence, and the reason."""

    claim: Claim
    verdict: Verdict
    probability: float
    evidence: tuple[Evidence, ...]
    reason: str
    checks: tuple[Check, ...] = ()
    method: str = "rules"
    features: Mapping[str, float] = field(default_factory=dict, compare=False, repr=False)

    @property
    def weight(self) -> float:
        """How much the claim counts: a mere reference counts less than a statement."""
        return _REFERENCE_WEIGHT if self.claim.type == "reference" or not self.claim.mentions else 1.0


@dataclass(frozen=True, slots=True)
class Verification:
    """`findings` and `unchecked` are in the order of the text."""

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


def compute_score(findings: Sequence[Finding], contradictions: int = 0) -> float:
    """One score for all findings: 1 without claims, 0.5 if no claim could be checked."""
    judged = [finding for finding in findings if finding.verdict != "not checkable"]
    if not findings:
        return 1.0
    if not judged:
        return _UNKNOWN
    # Exact sums, so that the order of the claims does not matter.
    total = math.fsum(finding.weight for finding in judged)
    plain = math.fsum(finding.weight * finding.probability for finding in judged) / total
    mean = min(plain, total / math.fsum(finding.weight / max(_LEAST, finding.probability) for finding in judged))
    central = [one.probability for one in judged if one.verdict == "contradicted" and one.weight == 1.0]
    bounds = [(1 + min(central)) / 2 * ACCEPTED] if central else []
    # A text that contradicts itself, or says what nothing bears out, is not accepted as a whole.
    open_ones = any(one.verdict != "supported" for one in judged)
    bounds += [ACCEPTED - 0.01] if contradictions or open_ones else []
    return min([mean, *bounds])


def status_of(score: float) -> Status:
    return "ACCEPT" if score >= ACCEPTED else "WARN" if score >= REJECTED else "REJECT"


def build_verification(
    findings: Sequence[Finding],
    unchecked: Sequence[Uncheckable],
    fuzzy_confidence: float,
    contradictions: Sequence[Contradiction],
    notes: Sequence[str] = (),
) -> Verification:
    """Compute the score, the status, the risk and a message for people; `notes` are appended to the message."""
    score = round(compute_score(findings, sum(one.between == "text" for one in contradictions)), 4)
    status = status_of(score)
    message = " ".join([_message(findings, unchecked, contradictions), *notes])
    return Verification(
        score, status, _risk(findings, status), tuple(findings), tuple(unchecked), round(fuzzy_confidence, 4),
        tuple(contradictions), message,
    )  # fmt: skip


def _risk(findings: Sequence[Finding], status: Status) -> RiskLevel:
    """How harmful it is to rely on the text; a wrong central claim without a hedge is worst."""
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
    for verdict, words in (
        ("contradicted", "Contradicted"),
        ("unverified", "Unverified"),
        ("not found", "No evidence"),
    ):
        some = [finding for finding in findings if finding.verdict == verdict]
        if some:
            said.append(f"{words}: {'; '.join(map(_shown, some[:_SHOWN]))}{_more(len(some) - _SHOWN)}.")
    if counts["not checkable"]:
        said.append(f"{counts['not checkable']} could not be checked.")
    if contradictions:
        said.append(f"{len(contradictions)} contradiction{'s' if len(contradictions) > 1 else ''} found.")
    if unchecked:
        said.append(f"Not checked: {_reasons(unchecked)}.")
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


def describe_evidence(finding: Finding) -> str:
    """Where a claim is confirmed, or why it is not, in one line."""
    places = finding.evidence[0].location if finding.evidence else ""
    if finding.verdict == "supported":
        return places
    reason = finding.reason or "no evidence found"
    # A path or a name is shown as it is.
    return reason[:1].upper() + reason[1:] if reason.partition(" ")[0].rstrip(":").isalpha() else reason


def to_stored_json(found: Verification) -> ScreenedText:
    """The result as it is stored with a record: the figures, and the first claims with their verdicts."""
    content: dict[str, Any] = {
        "grounding_score": found.score,
        "status": found.status,
        "risk_level": found.risk_level,
        "claims_extracted": len(found.findings),
        "claims_verified": found.verified,
        "fuzzy_confidence": found.fuzzy_confidence,
        "claims": [
            {
                "claim": _short(finding.claim.text),
                "verdict": finding.verdict,
                "grounding": finding.probability,
                "evidence": _short(describe_evidence(finding)),
            }
            for finding in found.findings[:_STORED]
        ],
        "contradictions": [
            {"left": _short(one.left), "right": _short(one.right), "reason": _short(one.reason)}
            for one in found.contradictions[:_STORED]
        ],
    }
    return ScreenedText(json.dumps(content, ensure_ascii=False))


def _short(text: str) -> str:
    """A text without secrets. They are removed before the text is cut, because half a secret is not recognised."""
    return redact(text[:_READ]).text[:_STORED_CHARACTERS]
