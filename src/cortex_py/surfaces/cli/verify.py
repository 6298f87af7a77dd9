"""`cortex verify`: whether what a text says is true of the project, for people and for continuous integration."""

from __future__ import annotations

from pathlib import Path

import click

from ...parts.verify.verification import Verification, describe_evidence
from .input import read_input, read_text
from .options import CommandSession, command, with_session
from .output import SHORT_ID, print_json, print_table, say, score_colour, verdict_colour
from .progress import watched

__all__ = ["verify_command"]

# Beyond those of errors, so that a script can tell a doubtful text from a call that failed.
_EXIT = {"ACCEPT": 0, "WARN": 11, "REJECT": 12}
_MARKS = {"supported": "yes", "contradicted": "NO", "unverified": "~", "not found": "?", "not checkable": "-"}


@command("verify")
@click.argument("text", required=False)
@click.option("--file", type=click.Path(path_type=Path, exists=True, dir_okay=False), help="Read the text from a file.")
@click.option("-e", "--evidence", multiple=True, help="Count only this: a path, a pattern, 'git log', 'memories'.")
@click.option("--accept-warnings", is_flag=True, help="End with 0 where the text is only doubtful.")
@click.option("--memories", is_flag=True, help="Check the stored memories, and mark those that are stale.")
@with_session
def verify_command(
    text: str | None,
    file: Path | None,
    evidence: tuple[str, ...],
    accept_warnings: bool,
    memories: bool,
    session: CommandSession,
) -> None:
    """Check the claims of TEXT, of a file, of standard input or of the memories against the project."""
    if memories:
        if text is not None or file or evidence:
            raise click.UsageError("Give --memories alone: the memories are checked against the whole project.")
        _review(session)
        return
    if file and text is not None:
        raise click.UsageError("Give a text or a file, not both.")
    said = read_input(file).decode("utf-8", "replace") if file else read_text(text)
    with session.open(needs_model=True) as cortex, watched("Reading the project:", "files", session):
        found = cortex.grounding.verify(said, evidence_sources=list(evidence) or None)
    if session.as_json:
        print_json(_as_dict(found))
    else:
        _print(found)
    code = 0 if accept_warnings and found.status == "WARN" else _EXIT[found.status]
    if code:
        raise SystemExit(code)


def _review(session: CommandSession) -> None:
    """Check the memories; ends with the code of a warning if some are stale."""
    with session.open(needs_model=True) as cortex, watched("Reading the project:", "files", session):
        found = cortex.grounding.review_memories()
    if session.as_json:
        print_json({
            "checked": found.checked,
            "stale": [
                {"id": one.memory.id, "claim": one.claim, "reason": one.reason, "new": not one.was}
                for one in found.stale
            ],
            "fresh": [one.id for one in found.fresh],
        })  # fmt: skip
    else:
        rows = [(one.memory.id[:SHORT_ID], one.claim, one.reason) for one in found.stale]
        print_table(("memory", "claim", "evidence"), rows, wide=(1, 2), empty="No memory is stale.")
        again = f", {len(found.fresh)} no longer" if found.fresh else ""
        say(f"{found.checked} memories checked, {len(found.stale)} stale{again}.")
    if found.stale:
        raise SystemExit(_EXIT["WARN"])


def _print(found: Verification) -> None:
    rows = [
        (_MARKS[finding.verdict], f"{finding.probability:.2f}", finding.claim.text, describe_evidence(finding))
        for finding in found.findings
    ]
    print_table(
        ("", "score", "claim", "evidence"),
        rows,
        wide=(2, 3),
        empty="The text claims nothing that can be checked.",
        tint={0: verdict_colour, 1: score_colour},
    )
    for one in found.contradictions:
        if one.between != "evidence":
            say(f"contradiction: {one.left} / {one.right} ({one.reason}) {one.source}".rstrip())
    say(f"{found.status}  {found.score:.2f}  risk {found.risk_level}", bold=True, fg=verdict_colour(found.status))
    say(found.message)


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
