"""Operations of the page beyond single memories: check a text, lines of work, the next session, health, snapshots."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from ..echo import clean_text
from ..errors import AccessDenied, AmbiguousId, Conflict, InvalidInput, NotFound
from ..records import Memory
from ..web.models import (
    Brief,
    CheckedClaim,
    CheckedText,
    CheckRequest,
    ClaimEvidence,
    ClientView,
    Contradicting,
    DayCount,
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
from ..web.project_models import (
    EvidenceQuery,
    ExcerptLine,
    ExcerptView,
    MemoryToolAnswer,
    MemoryToolCall,
    Promotion,
    PromotionOutcome,
    Restored,
    SnapshotRequest,
    SnapshotRestore,
    SnapshotsView,
    SnapshotView,
    SyncView,
)
from .api import NoInput, Operation, require_write

if TYPE_CHECKING:
    from ..app import Cortex
    from ..hooks.service import Injection

__all__ = ["INSIGHT", "show_health", "show_line", "show_lines", "show_next_session"]

_CHECK_SECONDS = 20.0
_MOST_LINES = 200
_MOST_STAGED = 100
_MOST_SNAPSHOTS = 100
_GROWTH_DAYS = 90
_LONGEST_ID = 200


def _check(cortex: Cortex, _id: str, asked: CheckRequest) -> CheckedText:
    found = cortex.grounding.verify(asked.text, seconds=_CHECK_SECONDS)
    claims = [
        CheckedClaim(
            text=one.claim.text,
            verdict=one.verdict,
            probability=one.probability,
            reason=one.reason,
            # What was read on the way to no verdict speaks neither for the claim nor against it.
            evidence=[
                ClaimEvidence(place=evidence.location, path=evidence.path, line=evidence.line)
                for evidence in one.evidence
                if one.verdict != "unverified"
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


def show_lines(cortex: Cortex, _id: str, _: NoInput) -> LinesOfWork:
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


def show_line(cortex: Cortex, id: str, _: NoInput) -> LineSummary:
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
        staged=[Brief.of(one) for one in cortex.contexts.staged(id)[:_MOST_STAGED]],
        pending=[Brief.of(one) for one in _pending(cortex, found.branch.git_branch)],
    )


def _pending(cortex: Cortex, git_branch: str | None) -> list[Memory]:
    if git_branch is None:
        return []
    escaped = git_branch.replace("\\", "\\\\").replace('"', '\\"')
    return cortex.memories.listed(f'kind:note status:pending branch:"{escaped}"', _MOST_STAGED)


def _promote(cortex: Cortex, _id: str, given: Promotion) -> PromotionOutcome:
    done: list[str] = []
    failed: dict[str, str] = {}
    for id in dict.fromkeys(given.ids):
        try:
            done.append(cortex.contexts.promote(id, back=given.back).id)
        except (NotFound, InvalidInput, AmbiguousId, AccessDenied, Conflict) as error:
            failed[clean_text(id, _LONGEST_ID)] = str(error)
    return PromotionOutcome(done=done, failed=failed)


def _evidence(cortex: Cortex, _id: str, asked: EvidenceQuery) -> ExcerptView:
    found = cortex.grounding.excerpt(asked.path, asked.line)
    lines = [ExcerptLine(number=found.first_line + n, text=text) for n, text in enumerate(found.lines)]
    return ExcerptView(path=found.path, lines=lines)


def show_next_session(cortex: Cortex, _id: str, asked: NextSessionQuery) -> NextSession:
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


def show_health(cortex: Cortex, _id: str, _: NoInput) -> Health:
    found, status = cortex.doctor(), cortex.memories.status()
    return Health(
        checks=[HealthCheck(name=one.name, well=one.well, detail=one.told) for one in found.checks],
        outbound=[OutboundView(purpose=one.purpose, host=one.host, what=one.what) for one in found.outbound],
        memories=status.total_count,
        statuses=status.status_counts,
        size_bytes=status.size_bytes,
        engine=status.engine,
        model=status.model,
        growth=[DayCount(day=day, count=count) for day, count in cortex.memories.days()[:_GROWTH_DAYS]],
        recall_ms=[round(one, 2) for one in cortex.memories.recall_times()],
        clients=[
            ClientView(name=one.name, key=one.key, installed=one.installed, server=one.server, hooks=one.hooks)
            for one in found.clients
        ],
        sync=cortex.settings.cloud_url is not None,
    )


# -- snapshots and sync ----------------------------------------------------------------------------


def _snapshot_view(one: Any) -> SnapshotView:
    fields = ("id", "created_at", "description", "kind", "size_bytes", "verified", "fault")
    return SnapshotView(**{name: getattr(one, name) for name in fields}, memories=one.counts.get("memory", 0))


def _snapshots(cortex: Cortex, _id: str, _: NoInput) -> SnapshotsView:
    return SnapshotsView(snapshots=[_snapshot_view(one) for one in cortex.backups.snapshots()[:_MOST_SNAPSHOTS]])


def _create_snapshot(cortex: Cortex, _id: str, given: SnapshotRequest) -> SnapshotView:
    return _snapshot_view(cortex.backups.create(given.description))


def _verify_snapshot(cortex: Cortex, id: str, _: NoInput) -> SnapshotView:
    return _snapshot_view(cortex.backups.verify(id))


def _restore_snapshot(cortex: Cortex, id: str, given: SnapshotRestore) -> Restored:
    if given.confirm != id:
        raise InvalidInput("The restore is not confirmed.", remedy="Repeat the id in confirm.", field="confirm")
    done = cortex.backups.restore(id)
    return Restored(id=done.snapshot_id, safety=done.safety, memories=done.memories)


def _sync(cortex: Cortex, _id: str, _: NoInput) -> SyncView:
    found = cortex.backups.sync_status()
    machines = [one for domain in found.domains.values() for one in domain.machines]
    return SyncView(
        target=found.target,
        pending=sum(one.pending for one in found.domains.values()),
        waiting=len({one.machine for one in machines if not one.own and not one.merged}),
        pushes_today=found.pushes_today,
        pulls_today=found.pulls_today,
    )


def _memory_tool(cortex: Cortex, _id: str, given: MemoryToolCall) -> MemoryToolAnswer:
    if given.command != "view":
        require_write(cortex)
    return MemoryToolAnswer(text=cortex.memory_tool.call(given.model_dump(exclude_none=True)))


INSIGHT: tuple[Operation[Any], ...] = (
    Operation("POST", "/check", "check", "Check the claims of a text", CheckRequest, CheckedText, _check),
    Operation("GET", "/lines", "lines", "Lines of work, the newest first", NoInput, LinesOfWork, show_lines),
    Operation("GET", "/lines/{id}", "line", "Where a line of work stands", NoInput, LineSummary, show_line),
    Operation(
        "POST",
        "/next",
        "nextSession",
        "What the next session is given",
        NextSessionQuery,
        NextSession,
        show_next_session,
    ),
    Operation("GET", "/evidence", "evidence", "A file around a line", EvidenceQuery, ExcerptView, _evidence),
    Operation(
        "POST",
        "/promote",
        "promote",
        "Decide on confined memories",
        Promotion,
        PromotionOutcome,
        _promote,
        changes=True,
    ),
    Operation(
        "POST",
        "/memory-tool",
        "memoryTool",
        "The memory tool of Claude's API: takes the tool's input, answers its text",
        MemoryToolCall,
        MemoryToolAnswer,
        _memory_tool,
    ),
    Operation("GET", "/doctor", "doctor", "The health of the memory", NoInput, Health, show_health),
    Operation("GET", "/snapshots", "snapshots", "Snapshots, the newest first", NoInput, SnapshotsView, _snapshots),
    Operation(
        "POST",
        "/snapshots",
        "createSnapshot",
        "Save all of the project",
        SnapshotRequest,
        SnapshotView,
        _create_snapshot,
        changes=True,
    ),
    Operation(
        "POST",
        "/snapshots/{id}/verify",
        "verifySnapshot",
        "Read all of a snapshot and check it",
        NoInput,
        SnapshotView,
        _verify_snapshot,
    ),
    Operation(
        "POST",
        "/snapshots/{id}/restore",
        "restoreSnapshot",
        "Go back to a snapshot",
        SnapshotRestore,
        Restored,
        _restore_snapshot,
        changes=True,
    ),
    Operation("GET", "/sync", "sync", "What waits to be pushed and pulled; asks the target", NoInput, SyncView, _sync),
)
