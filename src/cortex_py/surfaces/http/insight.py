"""Operations of the page beyond single memories: check a text, lines of work, the next session, health, snapshots."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from ...core.echo import clean_text
from ...core.errors import AccessDenied, AmbiguousId, Conflict, InvalidInput, NotFound
from ...core.records import Memory
from ..web import models, project_models
from .api import NoInput, Operations, require_write

if TYPE_CHECKING:
    from ...app import Cortex
    from ...parts.hooks.service import Injection

__all__ = ["INSIGHT", "show_health", "show_line", "show_lines", "show_next_session"]

_CHECK_SECONDS = 20.0
_LONGEST_ID = 200
_MOST_LINES = 200
_MOST_STAGED = 100
_MOST_SNAPSHOTS = 100
_GROWTH_DAYS = 90

INSIGHT = Operations()


@INSIGHT.add("POST", "/check", "check", "Check the claims of a text")
def _check(cortex: Cortex, _id: str, asked: models.CheckRequest) -> models.CheckedText:
    found = cortex.grounding.verify(asked.text, seconds=_CHECK_SECONDS)
    claims = []
    for one in found.findings:
        # What was read on the way to no verdict speaks neither for the claim nor against it.
        evidence = () if one.verdict == "unverified" else one.evidence
        shown = [models.ClaimEvidence(place=place.location, path=place.path, line=place.line) for place in evidence]
        claims.append(models.CheckedClaim.from_record(one, text=one.claim.text, evidence=shown))
    return models.CheckedText.from_record(found, claims=claims)


@INSIGHT.add("GET", "/lines", "lines", "Lines of work, the newest first")
def show_lines(cortex: Cortex, _id: str, _: NoInput) -> models.LinesOfWork:
    active = cortex.contexts.active()
    newest = sorted(cortex.contexts.branches(), key=lambda one: one.updated_at, reverse=True)
    lines = [
        models.LineOfWork.from_record(one, active=active is not None and one.id == active.id)
        for one in newest[:_MOST_LINES]
    ]
    return models.LinesOfWork(total=len(newest), lines=lines)


@INSIGHT.add("GET", "/lines/{id}", "line", "Where a line of work stands")
def show_line(cortex: Cortex, id: str, _: NoInput) -> models.LineSummary:
    found = cortex.contexts.summary(id)
    return models.LineSummary.from_record(
        found.summary,
        id=found.branch.id,
        topic=found.branch.topic,
        entries=found.entries,
        sections={name: texts for name, texts in found.summary.sections.items() if texts},
        last_updated=found.last_updated,
        staged=[models.Brief.of(one) for one in cortex.contexts.staged(id)[:_MOST_STAGED]],
        pending=[models.Brief.of(one) for one in _pending(cortex, found.branch.git_branch)],
    )


def _pending(cortex: Cortex, git_branch: str | None) -> list[Memory]:
    if git_branch is None:
        return []
    escaped = git_branch.replace("\\", "\\\\").replace('"', '\\"')
    return cortex.memories.listed(f'kind:note status:pending branch:"{escaped}"', _MOST_STAGED)


@INSIGHT.add("POST", "/next", "nextSession", "What the next session is given")
def show_next_session(cortex: Cortex, _id: str, asked: models.NextSessionQuery) -> models.NextSession:
    root = cortex.project.root
    if root is None:
        return models.NextSession(start=_given(cortex, None), prompt=None)
    start = cortex.hooks.session_start(root)
    prompt = cortex.hooks.prompt(asked.prompt, root, without=start.ids) if asked.prompt.strip() else None
    return models.NextSession(start=_given(cortex, start), prompt=None if prompt is None else _given(cortex, prompt))


def _given(cortex: Cortex, found: Injection | None) -> models.Given:
    if found is None:
        return models.Given(text="", tokens=0, memories=[])
    memories = cortex.memories.visible(found.ids)
    tokens = cortex.memories.count_tokens(found.text) if found.text else 0
    return models.Given(
        text=found.text, tokens=tokens, memories=[models.Brief.of(memories[id]) for id in found.ids if id in memories]
    )


@INSIGHT.add("GET", "/evidence", "evidence", "A file around a line")
def _evidence(cortex: Cortex, _id: str, asked: project_models.EvidenceQuery) -> project_models.ExcerptView:
    found = cortex.grounding.excerpt(asked.path, asked.line)
    lines = [project_models.ExcerptLine(number=found.first_line + n, text=text) for n, text in enumerate(found.lines)]
    return project_models.ExcerptView(path=found.path, lines=lines)


@INSIGHT.add("POST", "/promote", "promote", "Decide on confined memories", changes=True)
def _promote(cortex: Cortex, _id: str, given: project_models.Promotion) -> project_models.PromotionOutcome:
    done: list[str] = []
    failed: dict[str, str] = {}
    for id in dict.fromkeys(given.ids):
        try:
            done.append(cortex.contexts.promote(id, back=given.back).id)
        except (NotFound, InvalidInput, AmbiguousId, AccessDenied, Conflict) as error:
            failed[clean_text(id, _LONGEST_ID)] = str(error)
    return project_models.PromotionOutcome(done=done, failed=failed)


@INSIGHT.add(
    "POST", "/memory-tool", "memoryTool", "The memory tool of Claude's API: takes the tool's input, answers its text"
)
def _memory_tool(cortex: Cortex, _id: str, given: project_models.MemoryToolCall) -> project_models.MemoryToolAnswer:
    if given.command != "view":
        require_write(cortex)
    return project_models.MemoryToolAnswer(text=cortex.memory_tool.call(given.model_dump(exclude_none=True)))


@INSIGHT.add("GET", "/doctor", "doctor", "The health of the memory")
def show_health(cortex: Cortex, _id: str, _: NoInput) -> models.Health:
    found, status = cortex.doctor(), cortex.memories.status()
    return models.Health.from_record(
        status,
        checks=[models.HealthCheck(name=one.name, well=one.well, detail=one.told) for one in found.checks],
        outbound=found.outbound,
        memories=status.total_count,
        statuses=status.status_counts,
        growth=[models.DayCount(day=day, count=count) for day, count in cortex.memories.days()[:_GROWTH_DAYS]],
        recall_ms=[round(one, 2) for one in cortex.memories.recall_times()],
        clients=found.clients,
        sync=cortex.settings.cloud_url is not None,
    )


# -- snapshots and sync ----------------------------------------------------------------------------


def _snapshot_view(one: Any) -> project_models.SnapshotView:
    return project_models.SnapshotView.from_record(one, memories=one.counts.get("memory", 0))


@INSIGHT.add("GET", "/snapshots", "snapshots", "Snapshots, the newest first")
def _snapshots(cortex: Cortex, _id: str, _: NoInput) -> project_models.SnapshotsView:
    return project_models.SnapshotsView(
        snapshots=[_snapshot_view(one) for one in cortex.backups.snapshots()[:_MOST_SNAPSHOTS]]
    )


@INSIGHT.add("POST", "/snapshots", "createSnapshot", "Save all of the project", changes=True)
def _create_snapshot(cortex: Cortex, _id: str, given: project_models.SnapshotRequest) -> project_models.SnapshotView:
    return _snapshot_view(cortex.backups.create(given.description))


@INSIGHT.add("POST", "/snapshots/{id}/verify", "verifySnapshot", "Read all of a snapshot and check it")
def _verify_snapshot(cortex: Cortex, id: str, _: NoInput) -> project_models.SnapshotView:
    return _snapshot_view(cortex.backups.verify(id))


@INSIGHT.add("POST", "/snapshots/{id}/restore", "restoreSnapshot", "Go back to a snapshot", changes=True)
def _restore_snapshot(cortex: Cortex, id: str, given: project_models.SnapshotRestore) -> project_models.Restored:
    if given.confirm != id:
        raise InvalidInput("The restore is not confirmed.", remedy="Repeat the id in confirm.", field="confirm")
    done = cortex.backups.restore(id)
    return project_models.Restored(id=done.snapshot_id, safety=done.safety, memories=done.memories)


@INSIGHT.add("GET", "/sync", "sync", "What waits to be pushed and pulled; asks the target")
def _sync(cortex: Cortex, _id: str, _: NoInput) -> project_models.SyncView:
    found = cortex.backups.sync_status()
    machines = [one for domain in found.domains.values() for one in domain.machines]
    pending = sum(one.pending for one in found.domains.values())
    waiting = len({one.machine for one in machines if not one.own and not one.merged})
    return project_models.SyncView.from_record(found, pending=pending, waiting=waiting)
