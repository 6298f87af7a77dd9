"""`cortex verify`: whether what a text says is true of the project, for people and for continuous integration."""

from __future__ import annotations

from pathlib import Path

import click

from ..grounding.record import shown_evidence
from ..grounding.verification import Verification
from .options import common, open_cortex, read_text
from .show import print_json, print_table

__all__ = ["verify_command"]

# Beyond those of errors, so that a script can tell a doubtful text from a call that failed.
_EXIT = {"ACCEPT": 0, "WARN": 11, "REJECT": 12}
_MARKS = {"supported": "yes", "contradicted": "NO", "not found": "?", "not checkable": "-"}


@click.command("verify")
@click.argument("text", required=False)
@click.option("--file", type=click.Path(path_type=Path, exists=True, dir_okay=False), help="Read the text from a file.")
@click.option("-e", "--evidence", multiple=True, help="Count only this: a path, a pattern, 'git log', 'memories'.")
@click.option("--accept-warnings", is_flag=True, help="End with 0 where the text is only doubtful.")
@common
def verify_command(
    text: str | None,
    file: Path | None,
    evidence: tuple[str, ...],
    accept_warnings: bool,
    home: str | None,
    project: str,
    as_json: bool,
) -> None:
    """Check the claims of TEXT, of a file, or of standard input against the project."""
    if file and text is not None:
        raise click.UsageError("Give a text or a file, not both.")
    said = file.read_bytes().decode("utf-8", "replace") if file else read_text(text)
    with open_cortex(home, project) as cortex:
        found = cortex.grounding.verify(said, evidence_sources=list(evidence) or None)
    if as_json:
        print_json(_as_dict(found))
    else:
        _print(found)
    code = 0 if accept_warnings and found.status == "WARN" else _EXIT[found.status]
    if code:
        raise SystemExit(code)


def _print(found: Verification) -> None:
    rows = [
        (_MARKS[finding.verdict], f"{finding.probability:.2f}", finding.claim.text, shown_evidence(finding))
        for finding in found.findings
    ]
    if rows:
        print_table(("", "score", "claim", "evidence"), rows, wide=(2, 3))
    for one in found.contradictions:
        if one.between != "evidence":
            click.echo(f"contradiction: {one.left} / {one.right} ({one.reason}) {one.source}".rstrip())
    click.secho(f"{found.status}  {found.score:.2f}  risk {found.risk_level}", bold=True)
    click.echo(found.message)


def _as_dict(found: Verification) -> dict[str, object]:
    return {
        "grounding_score": found.score,
        "status": found.status,
        "risk_level": found.risk_level,
        "claims_extracted": len(found.findings),
        "claims_verified": found.verified,
        "claims": [
            {
                "claim": finding.claim.text,
                "type": finding.claim.type,
                "verdict": finding.verdict,
                "grounding": finding.probability,
                "evidence": [one.location for one in finding.evidence],
                "reason": finding.reason,
                "method": finding.method,
            }
            for finding in found.findings
        ],
        "not_checked": [{"text": one.text, "reason": one.reason} for one in found.unchecked],
        "fuzzy_confidence": found.fuzzy_confidence,
        "contradictions": list(found.contradictions),
        "message": found.message,
    }
