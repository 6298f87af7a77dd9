"""From what the library returns to what the context tools answer."""

from __future__ import annotations

from collections.abc import Container

from ..clock import iso
from ..context.branch import slug
from ..context.projection import BranchCheck
from ..context.relations import ContextGraph
from ..context.results import Appended, Linked, Resumed, Searched
from ..context.scan import Scanned
from ..errors import AmbiguousId, BadArguments, ContentBlocked, CortexError, wire_form
from ..grounding.record import shown_evidence
from ..grounding.verification import Verification
from ..ids import context_id
from ..records import Branch, Memory
from . import context_answers as answers

__all__ = [
    "context_error",
    "created",
    "found_contexts",
    "graph_info",
    "initialized",
    "linked",
    "loaded",
    "resumed",
    "updated",
    "verified",
]

_MOST_ASIDE = 50

# What the library calls a field where the tools' argument has another name.
_ARGUMENTS = {
    "id": ("context_id",),
    "limit": ("top_k",),
    "project": ("project_path",),
    "path": ("project_path",),
    "branch_id": ("branch_id", "cortex_branch_id", "parent_branch"),
}


def context_error(error: CortexError, arguments: Container[str] = ()) -> answers.ContextError:
    """An error in the form of this family; `arguments` are the names of those that the call was given."""
    field = next((name for name in _ARGUMENTS.get(error.field or "", ()) if name in arguments), error.field)
    told = [f"{type(error).__name__}." if not field else f"{type(error).__name__} in {field}."]
    if error.remedy:
        told.append(error.remedy)
    if isinstance(error, BadArguments):
        told = [f"Check: {', '.join(error.fields)}."]
    if isinstance(error, AmbiguousId):
        told.append(f"Candidates: {', '.join(error.candidates)}.")
    if isinstance(error, ContentBlocked):
        told.append(f"Kinds: {', '.join(error.kinds)}.")
    return answers.ContextError(error=error.message, error_code=wire_form(error).cortex, details=" ".join(told))


def initialized(scanned: Scanned) -> answers.Initialized:
    if scanned.mode == "none":
        message = "Project initialized successfully, without scanning"
    else:
        message = (
            f"Project initialized successfully: {scanned.files_changed} of {scanned.files_scanned} files were new or "
            f"changed, {scanned.contexts_updated} contexts updated, {scanned.files_removed} files gone"
        )
    return answers.Initialized(
        project_id=scanned.project.id,
        mode=scanned.mode,
        files_scanned=scanned.files_scanned,
        contexts_created=scanned.contexts_created,
        message=message,
    )


def created(branch: Branch, check: BranchCheck) -> answers.BranchCreated:
    ended = "created and verified" if check.verified else "created, but its file could not be verified"
    return answers.BranchCreated(
        branch_id=branch.id,
        branch_path=str(check.path),
        verified=check.verified,
        message=f"Branch '{slug(branch.topic)}' {ended}",
    )


def updated(appended: Appended) -> answers.MemoryUpdated:
    memory, found = appended.memory, appended.verification
    if found is not None:
        told = [f"Memory updated and verified; {found.message}"]
    elif appended.unchecked:
        told = [f"Memory updated; it could not be checked: {appended.unchecked}"]
    else:
        told = ["Memory updated; a user's own words are not checked"]
    if memory.redactions:
        told.append(f"redacted before storing: {', '.join(memory.redactions)}")
    return answers.MemoryUpdated(
        task_id=appended.task_id,
        grounding_score=found.score if found else None,
        hallucination_status=found.status if found else "NOT_AVAILABLE",
        risk_level=found.risk_level if found else "unknown",
        ontology_category=memory.category or "general",
        indexed=True,
        message="; ".join(told),
    )


def verified(found: Verification) -> answers.Verified:
    return answers.Verified(
        grounding_score=found.score,
        status=found.status,
        risk_level=found.risk_level,
        claims_extracted=len(found.findings),
        claims_verified=found.verified,
        evidence_items=[
            answers.EvidenceItem(
                claim=finding.claim.text,
                evidence=shown_evidence(finding),
                grounding=finding.probability,
                verified=finding.verdict == "supported",
                verdict=finding.verdict,
            )
            for finding in found.findings
        ],
        fuzzy_confidence=found.fuzzy_confidence,
        contradictions=[
            answers.SaidAgainst(claim=one.left, against=one.right, reason=one.reason, source=one.source or one.between)
            for one in found.contradictions
        ],
        not_checked=[answers.LeftAside(text=one.text, reason=one.reason) for one in found.unchecked[:_MOST_ASIDE]]
        or None,
        message=found.message,
    )


def resumed(found: Resumed) -> answers.ActiveSummary:
    summary = found.summary
    left = f", {summary.summary.left_out} points left out" if summary.summary.left_out else ""
    return answers.ActiveSummary(
        summary=summary.summary.text,
        content=found.content,
        branch_topic=summary.branch.topic,
        last_updated=iso(summary.last_updated),
        message_count=summary.entries,
        status=summary.branch.status,
        message=f"Summary of branch {summary.branch.id}, taken word for word from its entries{left}",
    )


def found_contexts(searched: Searched) -> answers.FoundContexts:
    results = []
    for shown in searched.results:
        memory = shown.hit.memory
        results.append(
            answers.ContextFound(
                context_id=context_id(memory.id),
                branch_id=memory.branch_id or "",
                branch_topic=searched.topics.get(memory.branch_id or "", ""),
                content=shown.text,
                score=round(shown.hit.score, 4),
                metadata=answers.FoundMetadata(
                    ontology_category=memory.category, created_at=iso(memory.created_at), source=memory.source
                ),
            )
        )
    return answers.FoundContexts(
        results=results,
        total_results=searched.total,
        search_time_ms=searched.milliseconds,
        message=f"{len(results)} of {searched.total} contexts shown",
    )


def loaded(memory: Memory) -> answers.ContextLoaded:
    return answers.ContextLoaded(
        context_id=context_id(memory.id),
        content=memory.content,
        metadata=answers.ContextMetadata(
            compressed=memory.compressed,
            size_bytes=len(memory.content.encode()),
            created_at=iso(memory.created_at),
        ),
        message="Context loaded successfully",
    )


def graph_info(graph: ContextGraph) -> answers.GraphInfo:
    contexts = {node.id for node in graph.nodes if node.kind == "context"}

    def shown(node_id: str) -> str:
        return context_id(node_id) if node_id in contexts else node_id

    nodes = [
        answers.GraphNode(id=shown(node.id), type=node.kind, label=node.label, branch_id=node.branch_id or "")
        for node in graph.nodes
    ]
    edges = [
        answers.GraphEdge(**{"from": shown(edge.source)}, to=shown(edge.target), type=edge.kind, weight=edge.weight)
        for edge in graph.edges
    ]
    return answers.GraphInfo(
        nodes=nodes,
        edges=edges,
        total_nodes=graph.total_nodes,
        total_edges=len(edges),
        orphans=[shown(one) for one in graph.orphans],
        message=f"{len(nodes)} of {graph.total_nodes} nodes shown, {len(graph.orphans)} orphans",
    )


def linked(link: Linked) -> answers.LinkedBranch:
    told = ["Cortex will auto-switch when you checkout this git branch"]
    if not link.exists:
        told.append("there is no such git branch yet")
    if link.released:
        told.append(f"no longer linked to it: {', '.join(link.released)}")
    return answers.LinkedBranch(linked=True, auto_switch=True, message="; ".join(told))
