"""What the context tools answer, field by field as the published document shows it."""

from __future__ import annotations

from collections.abc import Container
from typing import Any, Literal, Self

from pydantic import ConfigDict, Field

from ....errors import CortexError
from ...error_forms import context_error
from ..answer import Answer

__all__ = [
    "AcceptAnswer", "AutomationAnswer", "ContextError", "ContextMetadata", "ContradictionItem", "CreateBranchAnswer",
    "EvidenceItem", "GraphEdge", "GraphInfoAnswer", "GraphNode", "InitializeAnswer", "LinkAnswer", "LoadAnswer",
    "PendingItem", "RejectAnswer", "SearchAnswer", "SearchItem", "SearchItemMetadata", "Success", "SuggestAnswer",
    "SuggestionItem", "SummaryAnswer", "UncheckedItem", "UpdateMemoryAnswer", "VerifyAnswer",
]  # fmt: skip


class ContextError(Answer):
    """A failed call; it comes as a result that is marked as an error."""

    success: Literal[False] = False
    error: str
    error_code: str
    details: str

    @classmethod
    def from_error(cls, error: CortexError, arguments: Container[str] = ()) -> Self:
        """An error in the form of this family; `arguments` are the names of those that the call was given."""
        return cls(**context_error(error, arguments))


def _require_success(schema: dict[str, Any]) -> None:
    """`success` has one value and is always sent, so its schema has no default."""
    schema["properties"]["success"].pop("default")
    schema["required"].insert(0, "success")


class Success(Answer):
    """The answer of a call that did what was asked."""

    model_config = ConfigDict(json_schema_extra=_require_success)

    success: Literal[True] = True
    message: str


class InitializeAnswer(Success):
    project_id: str
    mode: Literal["full", "light", "none"]
    files_scanned: int
    contexts_created: int
    pending_vectors: int | None = None
    pending_outlines: int | None = None


class CreateBranchAnswer(Success):
    branch_id: str
    branch_path: str
    verified: bool


class UpdateMemoryAnswer(Success):
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
    verdict: Literal["supported", "contradicted", "unverified", "not found", "not checkable"]


class ContradictionItem(Answer):
    claim: str
    against: str
    reason: str
    source: str


class UncheckedItem(Answer):
    text: str
    reason: str


class VerifyAnswer(Success):
    grounding_score: float
    status: Literal["ACCEPT", "WARN", "REJECT"]
    risk_level: Literal["low", "medium", "high"]
    claims_extracted: int
    claims_verified: int
    evidence_items: list[EvidenceItem]
    fuzzy_confidence: float
    contradictions: list[ContradictionItem]
    not_checked: list[UncheckedItem] | None = None


class SuggestionItem(Answer):
    context_id: str
    branch_id: str
    branch_topic: str
    reason: str
    confidence: float
    source: Literal["reference_history", "ai_analysis", "user_selected"]


class PendingItem(Answer):
    session_id: str
    task: str
    suggestions: int
    expires_at: str


class SuggestAnswer(Success):
    session_id: str
    suggestions: list[SuggestionItem]
    total_suggestions: int
    requires_confirmation: bool
    pending: list[PendingItem] | None = None


class AcceptAnswer(Success):
    accepted_count: int


class RejectAnswer(Success):
    pass


class AutomationAnswer(Success):
    current_plan: Literal["A", "B"]
    acceptance_rate: float
    rejection_rate: float
    feedback_count: int
    requires_confirmation: list[str] | None = None
    held: dict[str, str] | None = None
    pending: list[PendingItem] | None = None


class SummaryAnswer(Success):
    summary: str
    content: str
    branch_topic: str
    last_updated: str
    message_count: int
    status: str


class SearchItemMetadata(Answer):
    ontology_category: str | None = None
    created_at: str
    source: str | None = None


class SearchItem(Answer):
    context_id: str
    branch_id: str
    branch_topic: str
    content: str
    score: float
    metadata: SearchItemMetadata


class SearchAnswer(Success):
    results: list[SearchItem]
    total_results: int
    search_time_ms: int


class ContextMetadata(Answer):
    compressed: bool
    size_bytes: int
    created_at: str


class LoadAnswer(Success):
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


class GraphInfoAnswer(Success):
    nodes: list[GraphNode]
    edges: list[GraphEdge]
    total_nodes: int
    total_edges: int
    orphans: list[str]


class LinkAnswer(Success):
    linked: bool
    auto_switch: bool
