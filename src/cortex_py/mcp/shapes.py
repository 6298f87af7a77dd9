"""From the library's values to the answers of the tools."""

from __future__ import annotations

from collections.abc import Iterable, Sequence

from ..clock import iso
from ..ids import memory_uri, memory_urn
from ..memory.consolidation import Consolidated as Consolidation
from ..memory.enrichment import Enriched
from ..memory.gc import Collected as Collection
from ..memory.namespaces import Namespace
from ..memory.status import Status
from ..records import Detail, Hit, Memory, Page, Version
from . import answers

__all__ = [
    "captured",
    "changed",
    "collected",
    "consolidated",
    "enriched",
    "found",
    "history",
    "memory_view",
    "namespaces",
    "status_view",
]


def captured(memory: Memory) -> answers.Captured:
    return answers.Captured(
        id=memory.id,
        urn=_urn(memory),
        duplicate_of=memory.duplicate_of,
        redacted=list(memory.redactions) or None,
        conflicts_with=[
            answers.ConflictItem(memory_id=one.memory_id, reason=one.reason) for one in memory.conflicts_with
        ]
        or None,
    )


def found(page: Page, detail: Detail, *, searched: bool) -> answers.Found:
    return answers.Found(
        results=[_hit(hit, detail, searched) for hit in page.results],
        total=page.total,
        warnings=list(page.warnings) or None,
    )


def _hit(hit: Hit, detail: Detail, searched: bool) -> answers.FoundMemory:
    memory = hit.memory
    whole = detail == "everything"
    return answers.FoundMemory(
        id=memory.id,
        namespace=memory.namespace,
        tags=list(memory.tags),
        content=memory.content if whole else hit.snippet if detail == "medium" else None,
        score=round(hit.score, 4) if searched and detail != "light" else None,
        uri=memory_uri(memory.id),
        source=memory.source if whole else None,
        branch=memory.git_branch if whole else None,
        created_at=iso(memory.created_at) if whole else None,
    )


def memory_view(memory: Memory, origins: Sequence[str] = ()) -> answers.MemoryView:
    return answers.MemoryView(
        id=memory.id,
        urn=_urn(memory),
        uri=memory_uri(memory.id),
        namespace=memory.namespace,
        domain=memory.domain,
        tags=list(memory.tags),
        content=memory.content,
        source=memory.source,
        branch=memory.git_branch,
        status=memory.status,
        version=memory.version,
        created_at=iso(memory.created_at),
        updated_at=iso(memory.updated_at),
        expires_at=iso(memory.expires_at) if memory.expires_at else None,
        duplicate_of=memory.duplicate_of,
        redacted=list(memory.redactions) or None,
        superseded_by=memory.superseded_by,
        supersedes=list(origins) or None,
    )


def changed(memory: Memory) -> answers.Changed:
    return answers.Changed(
        id=memory.id,
        urn=_urn(memory),
        version=memory.version,
        status=memory.status,
        redacted=list(memory.redactions) or None,
    )


def history(versions: list[Version]) -> answers.History:
    return answers.History(
        id=versions[-1].memory_id,
        versions=[
            answers.VersionView(
                version=version.version,
                operation=version.operation,
                recorded_at=iso(version.recorded_at),
                namespace=version.namespace,
                tags=list(version.tags),
                content=version.content,
                source=version.source,
            )
            for version in versions
        ],
    )


def collected(result: Collection) -> answers.Collected:
    return answers.Collected(
        stale_branches=list(result.stale_branches),
        memories_affected=result.memories_affected,
        dry_run=result.dry_run,
        status="preview" if result.dry_run else "completed",
        expired=result.expired,
        purged=result.purged,
    )


def namespaces(known: Iterable[Namespace]) -> answers.Namespaces:
    views = [
        answers.NamespaceView(name=one.name, description=one.description, signal_words=list(one.signal_words))
        for one in known
    ]
    return answers.Namespaces(namespaces=views)


def consolidated(done: Consolidation) -> answers.ConsolidationView:
    methods = list(dict.fromkeys(group.method for group in done.groups))
    return answers.ConsolidationView(
        groups_found=len(done.groups) + done.skipped,
        candidate_merges=[
            answers.CandidateMerge(
                memories=list(group.memories),
                similarity=group.similarity,
                proposed_content=group.content,
                method=group.method,
                result_id=group.result_id,
            )
            for group in done.groups
        ],
        dry_run=done.dry_run,
        strategy=done.strategy,
        method=", ".join(methods) or "local",
        skipped=done.skipped or None,
        warnings=list(done.warnings) or None,
    )


def enriched(done: Enriched) -> answers.EnrichView:
    return answers.EnrichView(
        memory_id=done.memory.id,
        changes=answers.EnrichChanges(
            tags_added=list(done.tags_added),
            structure_improved=done.structure_improved,
            context_added=done.context_added,
        ),
        diff=done.diff or None,
        method=done.method,
        version=done.memory.version,
        warnings=list(done.warnings) or None,
    )


def status_view(status: Status) -> answers.StatusView:
    return answers.StatusView(
        repository=answers.Repository(
            path=status.path, project_id=status.project_remote or status.project_id, branch=status.branch
        ),
        storage=answers.Storage(persistence=status.engine, index=status.engine, vector="exact"),
        statistics=answers.Statistics(
            total_count=status.total_count,
            namespace_counts=status.namespace_counts,
            recent_topics=list(status.recent_topics),
            top_tags=[answers.TagCount(tag=tag, count=count) for tag, count in status.top_tags],
            grounding_counts=status.grounding_counts or None,
        ),
        llm=[
            answers.ModelUse(model=model, calls=calls, input_tokens=asked, output_tokens=answered, failed=failed)
            for model, calls, asked, answered, failed in status.llm_use
        ]
        or None,
    )


def _urn(memory: Memory) -> str:
    return memory_urn(memory.domain, memory.namespace, memory.id)
