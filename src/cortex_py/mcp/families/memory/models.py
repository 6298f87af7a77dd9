"""What the memory tools answer, field by field as the published document shows it.

A field that a call does not fill is left out of the answer, never sent as null.
"""

from __future__ import annotations

from typing import Any

from pydantic import BaseModel, ConfigDict

__all__ = [
    "Answer",
    "CandidateMerge",
    "Captured",
    "Changed",
    "Collected",
    "ConflictItem",
    "ConsolidationView",
    "Deleted",
    "EnrichChanges",
    "EnrichView",
    "Found",
    "FoundMemory",
    "History",
    "MemoryView",
    "ModelUse",
    "NamespaceView",
    "Namespaces",
    "Reindexed",
    "Repository",
    "Statistics",
    "StatusView",
    "Storage",
    "Synced",
    "TagCount",
    "Topics",
    "VersionView",
]


class Answer(BaseModel):
    model_config = ConfigDict(extra="forbid")

    def payload(self) -> dict[str, Any]:
        """What goes over the wire."""
        return self.model_dump(mode="json", exclude_none=True, by_alias=True)


class ConflictItem(Answer):
    """An older memory that says something else of the same thing."""

    memory_id: str
    reason: str


class Captured(Answer):
    id: str
    urn: str
    duplicate_of: str | None = None
    redacted: list[str] | None = None
    conflicts_with: list[ConflictItem] | None = None


class FoundMemory(Answer):
    id: str
    namespace: str
    tags: list[str]
    content: str | None = None
    score: float | None = None
    uri: str
    source: str | None = None
    branch: str | None = None
    created_at: str | None = None


class Found(Answer):
    results: list[FoundMemory]
    total: int
    warnings: list[str] | None = None


class MemoryView(Answer):
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
    superseded_by: str | None = None
    supersedes: list[str] | None = None


class Changed(Answer):
    id: str
    urn: str
    version: int
    status: str
    redacted: list[str] | None = None


class Deleted(Answer):
    id: str
    deleted: bool
    hard: bool


class VersionView(Answer):
    version: int
    operation: str
    recorded_at: str
    namespace: str
    tags: list[str]
    content: str
    source: str | None = None


class History(Answer):
    id: str
    versions: list[VersionView]


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


class ModelUse(Answer):
    """What a language model was used today."""

    model: str
    calls: int
    input_tokens: int
    output_tokens: int
    failed: int


class StatusView(Answer):
    repository: Repository
    storage: Storage
    statistics: Statistics
    llm: list[ModelUse] | None = None


class CandidateMerge(Answer):
    """Memories that become one, the least likeness between two of them, and what they become."""

    memories: list[str]
    similarity: float
    proposed_content: str
    method: str
    result_id: str | None = None


class ConsolidationView(Answer):
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


class EnrichView(Answer):
    memory_id: str
    changes: EnrichChanges
    diff: str | None = None
    method: str
    version: int
    warnings: list[str] | None = None


class Collected(Answer):
    stale_branches: list[str]
    memories_affected: int
    dry_run: bool
    status: str
    expired: int
    purged: int


class NamespaceView(Answer):
    name: str
    description: str
    signal_words: list[str]


class Namespaces(Answer):
    namespaces: list[NamespaceView]


class Reindexed(Answer):
    indexed: int
    duration_ms: int
    status: str


class Topics(Answer):
    topics: list[TagCount]


class Synced(Answer):
    message: str
    status: str
