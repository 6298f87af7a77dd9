"""A verification as it is kept beside a record, and as it is shown: plain values. Pure."""

from __future__ import annotations

import json
from typing import Any

from ..security.secrets import redact
from .verification import Finding, Verification

__all__ = ["as_json", "shown_evidence"]

_MOST = 50
_LONGEST = 400
_READ = 20_000


def shown_evidence(finding: Finding) -> str:
    """Where a claim is borne out, or what speaks against it, in one line."""
    places = finding.evidence[0].location if finding.evidence else ""
    if finding.verdict == "supported":
        return places
    return finding.reason[:1].upper() + finding.reason[1:] if finding.reason else "No evidence found"


def as_json(found: Verification) -> str:
    """What is kept: the result, and the claims with their verdicts as far as they are of use later."""
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
                "evidence": _short(shown_evidence(finding)),
            }
            for finding in found.findings[:_MOST]
        ],
        "contradictions": [
            {"left": _short(one.left), "right": _short(one.right), "reason": _short(one.reason)}
            for one in found.contradictions[:_MOST]
        ],
    }
    return json.dumps(content, ensure_ascii=False)


def _short(text: str) -> str:
    """Kept like a memory is: without secrets. They are looked for first, as half of one is not recognised."""
    return redact(text[:_READ]).text[:_LONGEST]
