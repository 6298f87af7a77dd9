"""Operations of the page beyond single memories: check a text, lines of work, the next session, health."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from ..web.models import (
    Brief,
    CheckedClaim,
    CheckedText,
    CheckRequest,
    ClaimEvidence,
    Contradicting,
    Given,
    Health,
    HealthCheck,
    LineOfWork,
    LinesOfWork,
    LineSummary,
    NextSession,
    NextSessionQuery,
    OutboundView,
    UncheckedText,
)
from .api import NoInput, Operation

if TYPE_CHECKING:
    from ..app import Cortex
    from ..hooks.service import Injection

__all__ = ["INSIGHT"]

_CHECK_SECONDS = 20.0
_MOST_LINES = 200


def _check(cortex: Cortex, _id: str, asked: CheckRequest) -> CheckedText:
    found = cortex.grounding.verify(asked.text, seconds=_CHECK_SECONDS)
    claims = [
        CheckedClaim(
            text=one.claim.text,
            verdict=one.verdict,
            probability=one.probability,
            reason=one.reason,
            evidence=[
                ClaimEvidence(place=evidence.location, path=evidence.path, line=evidence.line)
                for evidence in one.evidence
            ],
        )
        for one in found.findings
    ]
    return CheckedText(
        score=found.score,
        status=found.status,
        message=found.message,
        claims=claims,
        unchecked=[UncheckedText(text=one.text, reason=one.reason) for one in found.unchecked],
        contradictions=[
            Contradicting(left=one.left, right=one.right, reason=one.reason, source=one.source)
            for one in found.contradictions
        ],
    )


def _lines(cortex: Cortex, _id: str, _: NoInput) -> LinesOfWork:
    active = cortex.contexts.active()
    newest = sorted(cortex.contexts.branches(), key=lambda one: one.updated_at, reverse=True)
    lines = [
        LineOfWork(
            id=one.id,
            topic=one.topic,
            git_branch=one.git_branch,
            status=one.status,
            active=active is not None and one.id == active.id,
            updated_at=one.updated_at,
        )
        for one in newest[:_MOST_LINES]
    ]
    return LinesOfWork(total=len(newest), lines=lines)


def _line(cortex: Cortex, id: str, _: NoInput) -> LineSummary:
    found = cortex.contexts.summary(id)
    return LineSummary(
        id=found.branch.id,
        topic=found.branch.topic,
        entries=found.entries,
        tokens=found.summary.tokens,
        text=found.summary.text,
        sections={name: texts for name, texts in found.summary.sections.items() if texts},
        left_out=found.summary.left_out,
        last_updated=found.last_updated,
    )


def _next_session(cortex: Cortex, _id: str, asked: NextSessionQuery) -> NextSession:
    root = cortex.project.root
    if root is None:
        return NextSession(start=_given(cortex, None), prompt=None)
    start = cortex.hooks.session_start(root)
    prompt = cortex.hooks.prompt(asked.prompt, root, without=start.ids) if asked.prompt.strip() else None
    return NextSession(start=_given(cortex, start), prompt=None if prompt is None else _given(cortex, prompt))


def _given(cortex: Cortex, found: Injection | None) -> Given:
    if found is None:
        return Given(text="", tokens=0, memories=[])
    memories = cortex.memories.visible(found.ids)
    tokens = cortex.memories.count_tokens(found.text) if found.text else 0
    return Given(
        text=found.text, tokens=tokens, memories=[Brief.of(memories[id]) for id in found.ids if id in memories]
    )


def _health(cortex: Cortex, _id: str, _: NoInput) -> Health:
    found, status = cortex.doctor(), cortex.memories.status()
    return Health(
        checks=[HealthCheck(name=one.name, well=one.well, detail=one.told) for one in found.checks],
        outbound=[OutboundView(purpose=one.purpose, host=one.host, what=one.what) for one in found.outbound],
        memories=status.total_count,
        statuses=status.status_counts,
        size_bytes=status.size_bytes,
        engine=status.engine,
    )


INSIGHT: tuple[Operation[Any], ...] = (
    Operation("POST", "/check", "check", "Check the claims of a text", CheckRequest, CheckedText, _check),
    Operation("GET", "/lines", "lines", "Lines of work, the newest first", NoInput, LinesOfWork, _lines),
    Operation("GET", "/lines/{id}", "line", "Where a line of work stands", NoInput, LineSummary, _line),
    Operation(
        "POST", "/next", "nextSession", "What the next session is given", NextSessionQuery, NextSession, _next_session
    ),
    Operation("GET", "/doctor", "doctor", "The health of the memory", NoInput, Health, _health),
)
