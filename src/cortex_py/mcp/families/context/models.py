"""What the context tools answer, field by field as the published document shows it."""

from __future__ import annotations

from typing import Any, Literal

from pydantic import ConfigDict, Field

from .answers import Answer

__all__ = [
    "ActiveSummary",
    "AutomationStatus",
    "BranchCreated",
    "ContextError",
    "ContextFound",
    "ContextLoaded",
    "ContextMetadata",
    "EvidenceItem",
    "FoundContexts",
    "FoundMetadata",
    "GraphEdge",
    "GraphInfo",
    "GraphNode",
    "Initialized",
    "LeftAside",
    "LinkedBranch",
    "MemoryUpdated",
    "PendingSession",
    "SaidAgainst",
    "Success",
    "SuggestedContext",
    "SuggestedContexts",
    "SuggestionsAccepted",
    "SuggestionsRejected",
    "Verified",
]


class ContextError(Answer):
    """A call that failed; it comes as a result that is marked as an error."""

    success: Literal[False] = False
    error: str
    error_code: str
    details: str


def _always_told(schema: dict[str, Any]) -> None:
    """What has one value need not be given to be there."""
    schema["properties"]["success"].pop("default")
    schema["required"].insert(0, "success")


class Success(Answer):
    """What a call of this family answers when it did what was asked."""

    model_config = ConfigDict(json_schema_extra=_always_told)

    success: Literal[True] = True
    message: str


class Initialized(Success):
    project_id: str
    mode: Literal["full", "light", "none"]
    files_scanned: int
    contexts_created: int


class BranchCreated(Success):
    branch_id: str
    branch_path: str
    verified: bool


class MemoryUpdated(Success):
    task_id: str
    grounding_score: float | None = None
    hallucination_status: Literal["ACCEPT", "WARN", "REJECT", "NOT_AVAILABLE"]
    risk_level: Literal["low", "medium", "high", "unknown"]
    ontology_category: str
    indexed: bool


class EvidenceItem(Answer):
    claim: str
    evidence: str
    grounding: float
    verified: bool
    verdict: Literal["supported", "contradicted", "not found", "not checkable"]


class SaidAgainst(Answer):
    claim: str
    against: str
    reason: str
    source: str


class LeftAside(Answer):
    text: str
    reason: str


class Verified(Success):
    grounding_score: float
    status: Literal["ACCEPT", "WARN", "REJECT"]
    risk_level: Literal["low", "medium", "high"]
    claims_extracted: int
    claims_verified: int
    evidence_items: list[EvidenceItem]
    fuzzy_confidence: float
    contradictions: list[SaidAgainst]
    not_checked: list[LeftAside] | None = None


class SuggestedContext(Answer):
    context_id: str
    branch_id: str
    branch_topic: str
    reason: str
    confidence: float
    source: Literal["reference_history", "ai_analysis", "user_selected"]


class PendingSession(Answer):
    session_id: str
    task: str
    suggestions: int
    expires_at: str


class SuggestedContexts(Success):
    session_id: str
    suggestions: list[SuggestedContext]
    total_suggestions: int
    requires_confirmation: bool
    pending: list[PendingSession] | None = None


class SuggestionsAccepted(Success):
    accepted_count: int


class SuggestionsRejected(Success):
    pass


class AutomationStatus(Success):
    current_plan: Literal["A", "B"]
    acceptance_rate: float
    rejection_rate: float
    feedback_count: int
    requires_confirmation: list[str] | None = None
    held: dict[str, str] | None = None
    pending: list[PendingSession] | None = None


class ActiveSummary(Success):
    summary: str
    content: str
    branch_topic: str
    last_updated: str
    message_count: int
    status: str


class FoundMetadata(Answer):
    ontology_category: str | None = None
    created_at: str
    source: str | None = None


class ContextFound(Answer):
    context_id: str
    branch_id: str
    branch_topic: str
    content: str
    score: float
    metadata: FoundMetadata


class FoundContexts(Success):
    results: list[ContextFound]
    total_results: int
    search_time_ms: int


class ContextMetadata(Answer):
    compressed: bool
    size_bytes: int
    created_at: str


class ContextLoaded(Success):
    context_id: str
    content: str
    metadata: ContextMetadata


class GraphNode(Answer):
    id: str
    type: Literal["context", "branch", "entity"]
    label: str
    branch_id: str


class GraphEdge(Answer):
    from_: str = Field(serialization_alias="from", validation_alias="from")
    to: str
    type: Literal["references", "shares", "similar", "belongs_to", "child_of", "MentionedIn"]
    weight: float


class GraphInfo(Success):
    nodes: list[GraphNode]
    edges: list[GraphEdge]
    total_nodes: int
    total_edges: int
    orphans: list[str]


class LinkedBranch(Success):
    linked: bool
    auto_switch: bool
