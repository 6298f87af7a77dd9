"""The tools for projects, branches of work, contexts and suggestions.

Parameters and answers follow the published document; each function calls the library and builds the answer.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, Annotated, Any, Literal

from pydantic import ConfigDict, Field

from ....core.clock import context_id as as_context_id
from ....core.clock import iso
from ....core.errors import InvalidInput, LicenseRequired
from ....core.paths import expanded
from ....core.security.callers import current_caller
from ....parts.context.branches.file import slug
from ....parts.context.scan import ScanMode
from ....parts.verify.verification import describe_evidence
from .answer import Answer, FamilyTools, Progress

if TYPE_CHECKING:
    from ....parts.suggest.sessions import Pending

__all__ = ["ContextTools", "Success"]


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


class ContextNode(Answer):
    id: str
    type: Literal["context", "branch", "entity"]
    label: str
    branch_id: str


class ContextEdge(Answer):
    from_: str = Field(serialization_alias="from", validation_alias="from")
    to: str
    type: Literal["references", "shares", "similar", "belongs_to", "child_of", "MentionedIn"]
    weight: float


class GraphInfoAnswer(Success):
    nodes: list[ContextNode]
    edges: list[ContextEdge]
    total_nodes: int
    total_edges: int
    orphans: list[str]


class LinkAnswer(Success):
    linked: bool
    auto_switch: bool


_MOST_UNCHECKED = 50

BranchId = Annotated[str, Field(description="Id, or 'active' for the checked-out git branch's")]
MaxTokens = Annotated[int | None, Field(description="Bounds the answer")]


class ContextTools(FamilyTools):
    def initialize_context(
        self,
        project_path: Annotated[str, Field(description="Absolute path")],
        mode: Annotated[
            ScanMode, Field(description="light: README, entry points, configuration; full: all text files")
        ] = "light",
        *,
        progress: Progress,
    ) -> InitializeAnswer:
        # A relative path would be relative to the server's folder, not the client's. A known caller gets less detail.
        if current_caller() is None and not expanded(project_path).is_absolute():
            raise InvalidInput(
                f"The path {project_path[:200]!r} is not absolute.", remedy="Give the whole path.", field="project_path"
            )
        scanned = self._cortex.contexts.initialize(project_path, mode, progress=progress)
        if scanned.mode == "none":
            message = "Project initialized successfully, without scanning"
        else:
            message = (
                f"Project initialized successfully: {scanned.files_changed} of {scanned.files_scanned} files were new "
                f"or changed, {scanned.contexts_updated} contexts updated, {scanned.files_removed} files gone"
            )
        if scanned.pending_vectors:
            message += f"; found by words now, and by meaning once {scanned.pending_vectors} vectors are computed"
        if scanned.apart:
            message += f". {scanned.apart}"
        return InitializeAnswer.from_record(
            scanned,
            project_id=scanned.project.id,
            pending_vectors=scanned.pending_vectors or None,
            pending_outlines=scanned.pending_outlines or None,
            message=message,
        )

    def create_branch(self, project_id: str, branch_topic: str, parent_branch: str | None = None) -> CreateBranchAnswer:
        contexts = self._cortex.contexts
        branch = contexts.create_branch(branch_topic, parent_id=parent_branch, project_id=project_id)
        check = contexts.check_branch(branch.id, project_id=project_id)
        state = "created and verified" if check.verified else "created, but its file could not be verified"
        return CreateBranchAnswer(
            branch_id=branch.id,
            branch_path=str(check.path),
            verified=check.verified,
            message=f"Branch '{slug(branch.topic)}' {state}",
        )

    def update_memory(
        self, project_id: str, branch_id: BranchId, content: str, role: Literal["user", "assistant"]
    ) -> UpdateMemoryAnswer:
        unlicensed = self._unlicensed("verify_response") if role == "assistant" else ""
        append = self._cortex.contexts.append
        appended = append(branch_id, content, role, check=not unlicensed, project_id=project_id)
        memory, found = appended.memory, appended.verification
        if found is not None:
            notes = [f"Memory updated and verified; {found.message}"]
        elif unchecked := unlicensed or appended.unchecked:
            notes = [f"Memory updated; it could not be checked: {unchecked}"]
        else:
            notes = ["Memory updated; a user's own words are not checked"]
        if memory.redactions:
            notes.append(f"redacted before storing: {', '.join(memory.redactions)}")
        if memory.personal:
            notes.append(f"holds personal data: {', '.join(kind for kind, _ in memory.personal)}")
        if appended.note:
            notes.append(appended.note)
        return UpdateMemoryAnswer(
            task_id=appended.task_id,
            grounding_score=found.score if found else None,
            hallucination_status=found.status if found else "NOT_AVAILABLE",
            risk_level=found.risk_level if found else "unknown",
            ontology_category=memory.category or "general",
            indexed=True,
            message="; ".join(notes),
        )

    def _unlicensed(self, tool: str) -> str:
        """Why the licence does not include a tool; empty where it does, or none is needed."""
        try:
            self._cortex.require(tool)
        except LicenseRequired as error:
            return error.message
        return ""

    def verify_response(
        self,
        project_id: str,
        response_text: str,
        evidence_sources: Annotated[
            list[str] | None, Field(description="Only these count: paths, globs, 'git log', 'memories', 'test report'")
        ] = None,
    ) -> VerifyAnswer:
        contexts = self._cortex.contexts
        found = contexts.verify(response_text, evidence_sources=evidence_sources, project_id=project_id)
        return VerifyAnswer(
            grounding_score=found.score,
            status=found.status,
            risk_level=found.risk_level,
            claims_extracted=len(found.findings),
            claims_verified=found.verified,
            evidence_items=[
                EvidenceItem(
                    claim=finding.claim.text,
                    evidence=describe_evidence(finding),
                    grounding=finding.probability,
                    verified=finding.verdict == "supported",
                    verdict=finding.verdict,
                )
                for finding in found.findings
            ],
            fuzzy_confidence=found.fuzzy_confidence,
            contradictions=[
                ContradictionItem(
                    claim=one.left, against=one.right, reason=one.reason, source=one.source or one.between
                )
                for one in found.contradictions
            ],
            not_checked=[UncheckedItem.from_record(one) for one in found.unchecked[:_MOST_UNCHECKED]] or None,
            message=found.message,
        )

    def get_active_summary(self, project_id: str, branch_id: BranchId, max_tokens: MaxTokens = None) -> SummaryAnswer:
        found = self._cortex.contexts.resume(branch_id, max_tokens=max_tokens, project_id=project_id)
        summary = found.summary
        left_out = summary.summary.left_out
        more = f", {left_out} points left out" if left_out else ""
        return SummaryAnswer(
            summary=summary.summary.text,
            content=found.content,
            branch_topic=summary.branch.topic,
            last_updated=iso(summary.last_updated),
            message_count=summary.entries,
            status=summary.branch.status,
            message=f"Summary of branch {summary.branch.id}, taken word for word from its entries{more}",
        )

    def search_context(
        self,
        project_id: str,
        query: str,
        top_k: int = 10,
        filter_category: Annotated[str | None, Field(description="Such as bug_fix or architecture")] = None,
        min_score: float = 0.3,
        max_tokens: MaxTokens = None,
    ) -> SearchAnswer:
        searched = self._cortex.contexts.search(
            query,
            top_k=top_k,
            category=filter_category,
            min_score=min_score,
            max_tokens=max_tokens,
            project_id=project_id,
        )
        results = [
            SearchItem(
                context_id=as_context_id(memory.id),
                branch_id=memory.branch_id or "",
                branch_topic=searched.topics.get(memory.branch_id or "", ""),
                content=shown.text,
                score=round(shown.hit.score, 4),
                metadata=SearchItemMetadata.from_record(memory, ontology_category=memory.category),
            )
            for shown in searched.results
            for memory in (shown.hit.memory,)
        ]
        return SearchAnswer(
            results=results,
            total_results=searched.total,
            search_time_ms=searched.milliseconds,
            message=". ".join((f"{len(results)} of {searched.total} contexts shown", *searched.warnings)),
        )

    def load_context(
        self,
        project_id: str,
        branch_id: Annotated[str, Field(description="As search_context shows it, or empty")],
        context_id: str,
    ) -> LoadAnswer:
        memory = self._cortex.contexts.load(context_id, branch_id, project_id=project_id)
        return LoadAnswer(
            context_id=as_context_id(memory.id),
            content=memory.content,
            metadata=ContextMetadata.from_record(memory, size_bytes=len(memory.content.encode())),
            message="Context loaded successfully",
        )

    def suggest_contexts(
        self, project_id: str, current_context: Annotated[str, Field(description="The task at hand")], top_k: int = 5
    ) -> SuggestAnswer:
        found = self._cortex.suggestions.suggest(current_context, top_k=top_k, project_id=project_id)
        count = len(found.suggestions)
        message = f"{count} relevant context{'' if count == 1 else 's'} suggested"
        if not count:
            message = "0 relevant contexts suggested: nothing fits this task yet, and no answer is needed"
        elif found.requires_confirmation:
            message += "; ask the user before loading them"
        return SuggestAnswer(
            session_id=found.session_id,
            suggestions=[
                SuggestionItem.from_record(
                    one,
                    context_id=as_context_id(one.memory.id),
                    branch_id=one.memory.branch_id or "",
                    reason=one.reason[:1].upper() + one.reason[1:],
                )
                for one in found.suggestions
            ],
            total_suggestions=count,
            requires_confirmation=found.requires_confirmation,
            pending=_pending(found.pending),
            message=message,
        )

    def accept_suggestions(self, project_id: str, session_id: str, context_ids: list[str]) -> AcceptAnswer:
        count = self._cortex.suggestions.accept(session_id, context_ids, project_id=project_id)
        return AcceptAnswer(
            accepted_count=count, message=f"Feedback recorded: {count} taken; later suggestions learn from it"
        )

    def reject_suggestions(self, project_id: str, session_id: str, reason: str) -> RejectAnswer:
        kinds = self._cortex.suggestions.reject(session_id, reason, project_id=project_id)
        message = f"Feedback recorded ({', '.join(kinds)}); such tasks will not get these suggestions again"
        return RejectAnswer(message=message if kinds else "Session closed; nothing was suggested")

    def get_automation_status(self, project_id: str) -> AutomationAnswer:
        found = self._cortex.suggestions.automation(project_id=project_id)
        standing = found.standing
        return AutomationAnswer(
            current_plan=standing.plan,
            acceptance_rate=round(standing.acceptance_rate, 4),
            rejection_rate=round(standing.rejection_rate, 4),
            feedback_count=standing.feedback_count,
            requires_confirmation=[name for name, one in found.actions.items() if one.plan == "B"] or None,
            held=found.held or None,
            pending=_pending(found.pending),
            message=standing.message,
        )

    def get_context_graph_info(self, project_id: str, branch_id: str | None = None) -> GraphInfoAnswer:
        graph = self._cortex.contexts.graph(branch_id, project_id=project_id)
        ids = {node.id: as_context_id(node.id) for node in graph.nodes if node.kind == "context"}
        nodes = [
            ContextNode(id=ids.get(node.id, node.id), type=node.kind, label=node.label, branch_id=node.branch_id or "")
            for node in graph.nodes
        ]
        edges = [
            ContextEdge(
                **{"from": ids.get(edge.source, edge.source)},
                to=ids.get(edge.target, edge.target),
                type=edge.kind,
                weight=edge.weight,
            )
            for edge in graph.edges
        ]
        return GraphInfoAnswer(
            nodes=nodes,
            edges=edges,
            total_nodes=graph.total_nodes,
            total_edges=len(edges),
            orphans=[ids.get(one, one) for one in graph.orphans],
            message=f"{len(nodes)} of {graph.total_nodes} nodes shown, {len(graph.orphans)} orphans",
        )

    def link_git_branch(self, project_id: str, cortex_branch_id: str, git_branch_name: str) -> LinkAnswer:
        link = self._cortex.contexts.link(cortex_branch_id, git_branch_name, project_id=project_id)
        notes = ["Cortex will auto-switch when you checkout this git branch"]
        if not link.exists:
            notes.append("there is no such git branch yet")
        if link.released:
            notes.append(f"no longer linked to it: {', '.join(link.released)}")
        return LinkAnswer(linked=True, auto_switch=True, message="; ".join(notes))


def _pending(waiting: Sequence[Pending]) -> list[PendingItem] | None:
    return [PendingItem.from_record(one) for one in waiting] or None
