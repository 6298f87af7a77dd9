"""The memory tools: capture, recall, and the life of a memory.

Parameters and answers follow the published document; each function calls the library and builds the answer.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import TYPE_CHECKING, Annotated, Any, Literal, Self

from pydantic import Field

from ....core.clock import iso, memory_uri, memory_urn
from ....core.memory.spaces import NAMESPACES
from ....core.records import Detail, Mode
from .answer import Answer, FamilyTools, Progress

if TYPE_CHECKING:
    from ....core.memory.spaces import Namespace
    from ....core.records import Contradiction, Detail, Memory, Page

__all__ = ["MemoryAnswer", "MemoryTools", "NamespacesAnswer", "RecallAnswer", "TagCount", "TopicsAnswer"]


def _shared(memory: Memory) -> dict[str, Any]:
    return {
        "urn": memory_urn(memory.domain, memory.namespace, memory.id),
        "redacted": list(memory.redactions) or None,
        "personal": dict(memory.personal or ()) or None,
    }


class ConflictItem(Answer):
    """An older memory that contradicts this one."""

    memory_id: str
    reason: str


class CaptureAnswer(Answer):
    id: str
    urn: str
    duplicate_of: str | None = None
    redacted: list[str] | None = None
    personal: dict[str, int] | None = None
    conflicts_with: list[ConflictItem] | None = None
    pending: list[str] | None = None
    warnings: list[str] | None = None

    @classmethod
    def from_memory(cls, memory: Memory, conflicts: Iterable[Contradiction], note: str | None) -> Self:
        return cls.from_record(
            memory,
            **_shared(memory),
            conflicts_with=[ConflictItem.from_record(one) for one in conflicts] or None,
            pending=list(memory.pending) or None,
            warnings=[note] if note else None,
        )


class RecallItem(Answer):
    id: str
    namespace: str
    tags: list[str]
    content: str | None = None
    score: float | None = None
    uri: str
    source: str | None = None
    branch: str | None = None
    created_at: str
    outdated_by: str | None = None


class RecallAnswer(Answer):
    results: list[RecallItem]
    total: int
    message: str | None = None
    warnings: list[str] | None = None

    @classmethod
    def from_page(cls, page: Page, detail: Detail, *, searched: bool) -> Self:
        whole, scored = detail == "everything", searched and detail != "light"
        return cls(
            results=[
                RecallItem(
                    id=hit.memory.id,
                    namespace=hit.memory.namespace,
                    tags=list(hit.memory.tags),
                    content=hit.memory.content if whole else hit.snippet if detail == "medium" else None,
                    score=round(hit.score, 4) if scored else None,
                    uri=memory_uri(hit.memory.id),
                    source=hit.memory.source if whole else None,
                    branch=hit.memory.git_branch if whole else None,
                    created_at=iso(hit.memory.created_at),
                    outdated_by=hit.outdated_by,
                )
                for hit in page.results
            ],
            total=page.total,
            message=page.words_only,
            warnings=[one for one in page.warnings if one != page.words_only] or None,
        )


class MemoryAnswer(Answer):
    id: str
    urn: str
    uri: str
    namespace: str
    domain: str
    tags: list[str]
    content: str
    source: str | None = None
    branch: str | None = None
    status: str
    version: int
    created_at: str
    updated_at: str
    expires_at: str | None = None
    duplicate_of: str | None = None
    redacted: list[str] | None = None
    personal: dict[str, int] | None = None
    superseded_by: str | None = None
    supersedes: list[str] | None = None

    @classmethod
    def from_memory(cls, memory: Memory, origins: Sequence[str] = ()) -> Self:
        """`origins` are the memories whose place it took."""
        return cls.from_record(
            memory,
            **_shared(memory),
            uri=memory_uri(memory.id),
            branch=memory.git_branch,
            supersedes=list(origins) or None,
        )


class UpdateAnswer(Answer):
    id: str
    urn: str
    version: int
    status: str
    redacted: list[str] | None = None
    personal: dict[str, int] | None = None
    warnings: list[str] | None = None

    @classmethod
    def from_memory(cls, memory: Memory, note: str | None = None) -> Self:
        return cls.from_record(memory, **_shared(memory), warnings=[note] if note else None)


class DeleteAnswer(Answer):
    id: str
    deleted: bool
    hard: bool


class VersionItem(Answer):
    version: int
    operation: str
    recorded_at: str
    namespace: str
    tags: list[str]
    content: str
    source: str | None = None


class HistoryAnswer(Answer):
    id: str
    versions: list[VersionItem]


class RepositoryState(Answer):
    path: str | None = None
    project_id: str
    branch: str | None = None


class Storage(Answer):
    persistence: str
    index: str
    vector: str


class TagCount(Answer):
    tag: str
    count: int


class Statistics(Answer):
    total_count: int
    namespace_counts: dict[str, int]
    recent_topics: list[str]
    top_tags: list[TagCount]
    grounding_counts: dict[str, int] | None = None
    personal_counts: dict[str, int] | None = None
    pending_vectors: int | None = None
    pending_outlines: int | None = None


class ModelUse(Answer):
    """How much a language model was used today."""

    model: str
    calls: int
    input_tokens: int
    output_tokens: int
    failed: int


class StatusAnswer(Answer):
    repository: RepositoryState
    storage: Storage
    statistics: Statistics
    llm: list[ModelUse] | None = None


class CandidateMerge(Answer):
    """Memories that become one, the lowest similarity between two of them, and the merged text."""

    memories: list[str]
    similarity: float
    proposed_content: str
    method: str
    result_id: str | None = None


class ConsolidateAnswer(Answer):
    groups_found: int
    candidate_merges: list[CandidateMerge]
    dry_run: bool
    strategy: str
    method: str
    skipped: int | None = None
    warnings: list[str] | None = None


class EnrichChanges(Answer):
    tags_added: list[str]
    structure_improved: bool
    context_added: str | None = None


class EnrichAnswer(Answer):
    memory_id: str
    changes: EnrichChanges
    diff: str | None = None
    method: str
    sources: dict[str, str] | None = None
    version: int
    warnings: list[str] | None = None


class CollectAnswer(Answer):
    stale_branches: list[str]
    memories_affected: int
    dry_run: bool
    status: str
    expired: int
    purged: int


class NamespaceItem(Answer):
    name: str
    description: str
    signal_words: list[str]


class NamespacesAnswer(Answer):
    namespaces: list[NamespaceItem]

    @classmethod
    def from_namespaces(cls, known: Iterable[Namespace]) -> Self:
        return cls(namespaces=[NamespaceItem.from_record(one) for one in known])


class ReindexAnswer(Answer):
    indexed: int
    duration_ms: int
    status: str


class TopicsAnswer(Answer):
    topics: list[TagCount]


class SyncAnswer(Answer):
    message: str
    status: str


Id = Annotated[str, Field(description="Id or prefix of 8+ digits")]
NamespaceName = Annotated[str, Field(description=f"One of {', '.join(one.name for one in NAMESPACES)}")]


class MemoryTools(FamilyTools):
    def capture(
        self,
        content: Annotated[str, Field(description="What to remember: one fact, exact names and numbers")],
        namespace: NamespaceName,
        tags: list[str] | None = None,
        source: Annotated[str | None, Field(description="File or address it comes from")] = None,
        supersedes: Annotated[str | None, Field(description="Id of a memory it replaces")] = None,
    ) -> CaptureAnswer:
        memories = self._cortex.memories
        memory = memories.capture(content, namespace=namespace, tags=tags or (), source=source, supersedes=supersedes)
        return CaptureAnswer.from_memory(memory, memories.conflicts(memory), memories.index_note(memory))

    def recall(
        self,
        query: str | None = None,
        namespace: str | None = None,
        filter: Annotated[str | None, Field(description="E.g. ns:decisions since:7d -tag:draft path:src/**")] = None,
        mode: Mode = "hybrid",
        detail: Detail = "medium",
        limit: Annotated[int | None, Field(description="Default 10, list 50")] = None,
        offset: int | None = None,
        user_id: str | None = None,
        agent_id: str | None = None,
        prefer_newer: Annotated[bool | None, Field(description="For how things are now")] = None,
    ) -> RecallAnswer:
        page = self._cortex.memories.recall(
            query,
            filter=filter or "",
            namespace=namespace,
            mode=mode,
            limit=limit,
            offset=offset or 0,
            user_id=user_id,
            agent_id=agent_id,
            prefer_newer=prefer_newer,
        )
        return RecallAnswer.from_page(page, detail, searched=bool(query and query.strip()))

    def get(self, memory_id: Id) -> MemoryAnswer:
        memory = self._cortex.memories.get(memory_id)
        return MemoryAnswer.from_memory(memory, self._cortex.memories.origins(memory.id))

    def update(self, memory_id: Id, content: str | None = None, tags: list[str] | None = None) -> UpdateAnswer:
        memory = self._cortex.memories.update(memory_id, content=content, tags=tags)
        return UpdateAnswer.from_memory(memory, self._cortex.memories.index_note(memory))

    def delete(
        self, memory_id: Id, hard: Annotated[bool, Field(description="For good, with its history")] = False
    ) -> DeleteAnswer:
        memory = self._cortex.memories.delete(memory_id, hard=hard)
        return DeleteAnswer(id=memory.id, deleted=True, hard=hard)

    def restore(self, memory_id: Id) -> UpdateAnswer:
        return UpdateAnswer.from_memory(self._cortex.memories.restore(memory_id))

    def history(self, memory_id: Id) -> HistoryAnswer:
        versions = self._cortex.memories.history(memory_id)
        items = [VersionItem.from_record(version) for version in versions]
        return HistoryAnswer(id=versions[-1].memory_id, versions=items)

    def status(self) -> StatusAnswer:
        status = self._cortex.memories.status()
        tags = [TagCount(tag=tag, count=count) for tag, count in status.top_tags]
        project_id = status.project_remote or status.project_id
        return StatusAnswer(
            repository=RepositoryState(path=status.path, project_id=project_id, branch=status.branch),
            storage=Storage(persistence=status.engine, index=status.engine, vector="exact"),
            statistics=Statistics.from_record(
                status,
                top_tags=tags,
                pending_vectors=status.pending_vectors or None,
                pending_outlines=status.pending_outlines or None,
            ),
            llm=[
                ModelUse(model=model, calls=calls, input_tokens=asked, output_tokens=answered, failed=failed)
                for model, calls, asked, answered, failed in status.llm_use
            ]
            or None,
        )

    def gc(
        self,
        dry_run: bool = False,
        branch: Annotated[str | None, Field(description="Only this git branch")] = None,
        purge: Annotated[bool, Field(description="Also remove deleted ones for good")] = False,
        older_than: Annotated[str | None, Field(description="Purge only those deleted this long ago, e.g. 30d")] = None,
        *,
        progress: Progress,
    ) -> CollectAnswer:
        done = self._cortex.memories.gc(
            dry_run=dry_run, branch=branch, purge=purge, older_than=older_than, progress=progress
        )
        return CollectAnswer.from_record(done, status="preview" if done.dry_run else "completed")

    def consolidate(
        self,
        namespace: str,
        strategy: Literal["merge", "summarize", "dedupe"] = "merge",
        query: Annotated[str | None, Field(description="Only what fits these words")] = None,
        dry_run: bool = False,
        method: Literal["auto", "local", "llm"] = "auto",
        *,
        progress: Progress,
    ) -> ConsolidateAnswer:
        done = self._cortex.memories.consolidate(
            namespace, strategy=strategy, query=query, dry_run=dry_run, method=method, progress=progress
        )
        merges = [CandidateMerge.from_record(one, proposed_content=one.content) for one in done.groups]
        return ConsolidateAnswer.from_record(
            done,
            groups_found=len(done.groups) + done.skipped,
            candidate_merges=merges,
            method=", ".join(dict.fromkeys(one.method for one in done.groups)) or "local",
            skipped=done.skipped or None,
        )

    def enrich(
        self,
        memory_id: Id,
        enrich_tags: bool = True,
        enrich_structure: bool = True,
        add_context: bool = False,
        method: Literal["auto", "local", "llm"] = "auto",
    ) -> EnrichAnswer:
        done = self._cortex.memories.enrich(
            memory_id, tags=enrich_tags, structure=enrich_structure, context=add_context, method=method
        )
        return EnrichAnswer.from_record(
            done, memory_id=done.memory.id, changes=EnrichChanges.from_record(done), version=done.memory.version
        )

    def namespaces(self) -> NamespacesAnswer:
        return NamespacesAnswer.from_namespaces(self._cortex.memories.namespaces())

    def reindex(
        self,
        repo_path: Annotated[str | None, Field(description="Only that project's")] = None,
        *,
        progress: Progress,
    ) -> ReindexAnswer:
        project = self._cortex.contexts.project_at(repo_path) if repo_path else None
        project_id = project.id if project else None
        result = self._cortex.memories.reindex(project_id=project_id, progress=progress)
        return ReindexAnswer(indexed=result.indexed, duration_ms=result.duration_ms, status="success")

    def sync(self, direction: Literal["push", "fetch", "full"] = "full") -> SyncAnswer:  # noqa: ARG002
        return SyncAnswer(
            message="subcog_sync is deprecated. SQLite is now the authoritative storage layer.", status="deprecated"
        )
