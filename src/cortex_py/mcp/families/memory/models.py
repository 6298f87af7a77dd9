"""What the memory tools answer, field by field as the published document shows it."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import TYPE_CHECKING, Any, Self

from ....clock import iso
from ....ids import memory_uri, memory_urn
from ..answer import Answer

if TYPE_CHECKING:
    from ....memory.namespaces import Namespace
    from ....records import Detail, Memory, Page

__all__ = [
    "CandidateMerge", "CaptureAnswer", "CollectAnswer", "ConflictItem", "ConsolidateAnswer", "DeleteAnswer",
    "EnrichAnswer", "EnrichChanges", "HistoryAnswer", "MemoryAnswer", "ModelUse", "NamespaceItem", "NamespacesAnswer",
    "RecallAnswer", "RecallItem", "ReindexAnswer", "Repository", "Statistics", "StatusAnswer", "Storage", "SyncAnswer",
    "TagCount", "TopicsAnswer", "UpdateAnswer", "VersionItem",
]  # fmt: skip


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
    def from_memory(cls, memory: Memory, note: str | None) -> Self:
        conflicts = [ConflictItem.from_record(one) for one in memory.conflicts_with]
        return cls.from_record(
            memory,
            **_shared(memory),
            conflicts_with=conflicts or None,
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


class Repository(Answer):
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
    repository: Repository
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
